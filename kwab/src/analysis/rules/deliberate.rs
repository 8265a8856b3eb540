//! Dumps that were asked for: through SysRq, or of a system in which nothing died.
//!
//! A dump by a non-maskable interrupt is not among them, nor one that was taken from outside of a guest that hangs: it
//! is how a hang is looked at, and the hang is to be explained.

use kwab_format::record::{CauseKind, Reason};

use crate::analysis::context::Context;
use crate::analysis::finding::Claim;

/// The death was asked for through SysRq, or nothing died.
pub(super) fn asked_for(ctx: &Context<'_, '_>) -> Vec<Claim> {
    let death = &ctx.death;
    let message = death.message.to_lowercase();
    let reason = ctx.case.identities.first().and_then(|identity| identity.reason);
    let claim = if death.kind == Some(CauseKind::SYSRQ) || message.contains("sysrq triggered crash") {
        let who = death.pid.filter(|_| !death.program.is_empty()).map(|pid| format!(" by {}[{pid}]", death.program));
        Claim::new(format!("deliberate: sysrq{}", who.unwrap_or_default())).proven(
            0.95,
            death.message.trim().to_owned(),
            death.at,
        )
    } else if reason == Some(Reason::HANG) {
        return Vec::new();
    } else if death.kind == Some(CauseKind::LIVE) || (reason == Some(Reason::LIVE) && !death.is_known()) {
        let at = death.at.or_else(|| ctx.case.identities.first().map(|identity| identity.at));
        Claim::new("deliberate: a live dump, nothing died").proven(0.95, "reason: live", at)
    } else {
        return Vec::new();
    };
    vec![claim]
}

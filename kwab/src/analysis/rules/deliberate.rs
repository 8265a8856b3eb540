//! Dumps that somebody asked for.

use kwab_format::record::{CauseKind, Reason};

use crate::analysis::context::Context;
use crate::analysis::finding::Claim;

/// The death was asked for, or nothing died.
pub(super) fn asked_for(ctx: &Context<'_, '_>) -> Vec<Claim> {
    let death = &ctx.death;
    let message = death.message.to_lowercase();
    let reason = ctx.case.identities.first().and_then(|identity| identity.reason);
    let claim = if death.kind == Some(CauseKind::SYSRQ) || message.contains("sysrq triggered crash") {
        let who = death.pid.filter(|_| !death.comm.is_empty()).map(|pid| format!(" by {}[{pid}]", death.comm));
        Claim::new(format!("deliberate: sysrq{}", who.unwrap_or_default())).because(
            0.95,
            death.message.trim().to_owned(),
            death.at,
        )
    } else if death.kind == Some(CauseKind::NMI) {
        Claim::new("deliberate: a non-maskable interrupt asked for the dump").because(0.7, "cause: nmi", death.at)
    } else if death.kind == Some(CauseKind::LIVE) || (reason == Some(Reason::LIVE) && !death.is_known()) {
        let at = death.at.or_else(|| ctx.case.identities.first().map(|identity| identity.at));
        Claim::new("deliberate: a live dump, nothing died").because(0.95, "reason: live", at)
    } else {
        return Vec::new();
    };
    vec![claim]
}

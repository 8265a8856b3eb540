//! Dumps that lost the record of what died.

use crate::analysis::context::Context;
use crate::analysis::finding::Claim;
use kwab_format::record::Reason;

/// Nothing says what died, and something is lost that may have.
pub(super) fn cause_lost(ctx: &Context<'_, '_>) -> Vec<Claim> {
    let reason = ctx.case.identities.first().and_then(|identity| identity.reason);
    let losses = ctx.case.losses();
    if ctx.death.is_known() || losses.is_empty() || matches!(reason, Some(Reason::LIVE | Reason::RECORDING)) {
        return Vec::new();
    }
    let mut claim = Claim::new("the dump is damaged, and the record of the crash is lost");
    for loss in losses.into_iter().take(6) {
        claim = claim.because(0.3, loss, None);
    }
    vec![claim]
}

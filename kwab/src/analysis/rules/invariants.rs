//! Invariants that the dump refutes, as hypotheses.

use crate::analysis::blame;
use crate::analysis::context::Context;
use crate::analysis::finding::Claim;
use crate::analysis::invariants;
use crate::analysis::keepers;
use crate::analysis::stacks;

/// Each invariant that does not hold, with what violates it.
pub(super) fn violated(ctx: &Context<'_, '_>) -> Vec<Claim> {
    let broken = invariants::check(ctx).into_iter().filter(|checked| !checked.violations.is_empty());
    let claims = broken.map(|checked| {
        let first = &checked.violations[0];
        let guilty = first.tid.and_then(|tid| blame::guilty(&stacks::of_task(ctx.case, ctx.symbols, &ctx.death, tid)));
        let place = guilty.as_ref().map(|guilty| format!(", in {}", guilty.name)).unwrap_or_default();
        let mut claim = Claim::new(format!("{}{place} [{}]", checked.rule.violated, checked.rule.id));
        for (number, violation) in checked.violations.iter().take(4).enumerate() {
            let (text, at) = (violation.text.clone(), violation.at);
            claim =
                if number == 0 { claim.proven(checked.rule.weight, text, at) } else { claim.because(0.0, text, at) };
        }
        let rest = checked.checked.saturating_sub(checked.violations.len() as u64);
        let row = format!("the invariant holds for {rest} of {} checked", checked.checked);
        let keepers = checked.rule.promise.and_then(|promise| keepers::in_words(ctx, promise));
        let claim = claim.because(0.0, row, None).because_if(0.0, keepers.map(|row| (row, None)));
        claim.about(checked.rule.id).blames(guilty)
    });
    claims.collect()
}

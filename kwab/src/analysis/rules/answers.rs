//! Answers of the kernel that cannot be right, by what it answered before.

use crate::analysis::context::Context;
use crate::analysis::finding::Claim;
use crate::analysis::{reach, replay};

/// The first wrong answer; those after it may follow from it.
pub(super) fn wrong(ctx: &Context<'_, '_>) -> Vec<Claim> {
    let answers = replay::wrong_answers(ctx);
    let Some((first, others)) = answers.split_first() else { return Vec::new() };
    let behind = match first.errno {
        Some(errno) => reach::makers(ctx.symbols, first.nr, errno),
        None => reach::parts(ctx.symbols, first.nr),
    };
    let behind = (!behind.is_empty()).then(|| format!("that answer can come from {}", behind.join(", ")));
    let claim = Claim::new(format!("the kernel answered process {} wrongly: {}", first.pid, first.call));
    let claim = claim.proven(0.72, first.why.clone(), Some(first.at)).because_if(0.0, behind.map(|row| (row, None)));
    let row = |claim: Claim, wrong: &replay::WrongAnswer| {
        claim.because(0.0, format!("wrong too: {}: {}", wrong.call, wrong.why), Some(wrong.at))
    };
    vec![others.iter().fold(claim, row)]
}

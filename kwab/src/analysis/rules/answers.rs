//! Answers of the kernel that cannot be right, by what it answered before.

use crate::analysis::context::Context;
use crate::analysis::finding::{Claim, Statement};
use crate::analysis::{reach, replay};

/// The first wrong answer; those after it may follow from it.
pub(super) fn wrong(ctx: &Context<'_, '_>) -> Vec<Claim> {
    let answers = replay::wrong_answers(ctx);
    let Some((first, others)) = answers.split_first() else { return Vec::new() };
    let makers = first.errno.map(|errno| reach::makers(ctx.symbols, first.nr, errno)).unwrap_or_default();
    let parts = reach::parts(ctx.symbols, first.nr);
    let claim = Claim::new(format!("the kernel answered process {} wrongly: {}", first.pid, first.call));
    let claim = claim
        .proven(0.72, first.why.clone(), Some(first.at))
        .because_if(0.0, Statement::listing("that answer can come from", makers).map(|fact| (fact, None)))
        .because_if(0.0, Statement::listing("the call is made of", parts).map(|fact| (fact, None)));
    let row = |claim: Claim, wrong: &replay::WrongAnswer| {
        claim.because(0.0, format!("wrong too: {}: {}", wrong.call, wrong.why), Some(wrong.at))
    };
    vec![others.iter().fold(claim, row)]
}

//! A processor that could deliver no exception: QEMU's log of exceptions names what the delivery could not reach.

use crate::analysis::context::Context;
use crate::analysis::finding::Claim;

/// A triple fault, by the chain of exceptions before it.
pub(super) fn fault(ctx: &Context<'_, '_>) -> Vec<Claim> {
    let message = &ctx.death.message;
    if !ctx.kernel_died() || !message.starts_with("triple fault") {
        return Vec::new();
    }
    let mut parts = message.split(", while delivering ");
    let first = parts.next().unwrap_or(message);
    let links: Vec<&str> = parts.collect();
    let what = if message.contains(" of the IDT at ") {
        Some("the interrupt table is not mapped")
    } else if message.contains(", the stack below ") {
        Some("the stack for exceptions is not mapped")
    } else {
        None
    };
    let because = what.map(|what| format!("; {what}, so that the processor cannot deliver it")).unwrap_or_default();
    let mut claim = Claim::new(format!("{first}{because}"));
    for link in &links {
        let text = format!("while delivering {link}");
        claim = match what {
            Some(_) => claim.proven(0.85, text, ctx.death.at),
            None => claim.because(0.3, text, ctx.death.at),
        };
    }
    vec![if links.is_empty() { claim.because(0.4, "QEMU reports a triple fault", ctx.death.at) } else { claim }]
}

//! A processor that could deliver no exception: QEMU's log of exceptions names what the delivery could not reach.
//!
//! Only the reader of that log writes the chain into a message; other kernels print `triple fault` with words of their
//! own, which say nothing of a chain. The chain is proven when the exceptions of the dump bear it out and are of one
//! processor: between the lines of several, QEMU's log does not tell whose exception came during whose delivery.

use kwab_format::record::{FlightEvent, Registers};

use crate::analysis::context::Context;
use crate::analysis::finding::Claim;
use crate::model::case::QEMU_TRACE;

/// A triple fault, by the chain of exceptions before it.
pub(super) fn fault(ctx: &Context<'_, '_>) -> Vec<Claim> {
    let message = &ctx.death.message;
    let of_qemu = ctx.case.source.as_ref().is_some_and(|source| source.dialect == Some(QEMU_TRACE));
    if !ctx.kernel_died() || !of_qemu || !message.starts_with("triple fault") {
        return Vec::new();
    }
    let mut parts = message.split(", while delivering ");
    let first = parts.next().unwrap_or(message);
    let links: Vec<&str> = parts.collect();
    let what = if message.contains(" of the IDT at ") {
        Some("the interrupt table is not mapped")
    } else if message.contains(" of the interrupt table") {
        Some("its gate in the interrupt table cannot be used")
    } else if message.contains(", the stack below ") {
        Some("the stack for exceptions is not mapped")
    } else {
        None
    };
    let because = what.map(|what| format!("; {what}, so that the processor cannot deliver it")).unwrap_or_default();
    let mut claim = Claim::new(format!("{first}{because}"));
    let one_processor = ctx.death.cpu.is_some();
    let is_proven = what.is_some() && one_processor && bears_out(ctx, links.len());
    for link in &links {
        let text = format!("while delivering {link}");
        claim = if is_proven { claim.proven(0.85, text, ctx.death.at) } else { claim.because(0.3, text, ctx.death.at) };
    }
    if links.is_empty() {
        claim = claim.because(0.4, "QEMU reports a triple fault", ctx.death.at);
    }
    if !one_processor {
        let text = "the log does not say which processor its exceptions are of";
        claim = claim.but(0.1, text, ctx.death.at);
    }
    vec![claim]
}

/// Whether the dump has the registers of the first exception, and as many exceptions from it on as the chain has links.
fn bears_out(ctx: &Context<'_, '_>, links: usize) -> bool {
    let Some(cause) = ctx.case.causes.first() else { return false };
    let first = ctx.case.registers.first().filter(|set| set.vector == cause.vector && set.stamp.line.is_some());
    let Some(first) = first else { return false };
    let of_chain =
        |event: &FlightEvent<'_>| event.stamp.line >= first.stamp.line && event.stamp.line < cause.stamp.line;
    let mut chain = ctx.case.flight.iter().filter(|event| of_chain(event));
    let ip = instruction(first);
    // An exception that a chain ends with was raised, but no longer delivered: it is in the message only.
    chain.next().is_some_and(|event| event.b == ip && ip.is_some()) && chain.count() + 1 >= links.max(2)
}

fn instruction(set: &Registers<'_>) -> Option<u64> {
    let mut all = set.regs.iter().flat_map(kwab_format::List::iter);
    all.find(|reg| reg.id == Some(kwab_format::record::RegId::RIP)).and_then(|reg| reg.value)
}

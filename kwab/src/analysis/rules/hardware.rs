//! Deaths that the hardware reported by itself: machine checks, and errors of the bus.

use crate::analysis::context::Context;
use crate::analysis::finding::Claim;

/// `#MC` (SDM volume 3, chapter 17).
const MACHINE_CHECK: u32 = 18;

/// Words of a message, what they mean, and what is looked at next.
const ERRORS: &[(&str, &str, &str)] = &[
    (
        "machine check",
        "the processor reported a machine check",
        "the banks' status in the log (rasdaemon decodes it); then the memory, the processor and their cooling",
    ),
    (
        "hardware error",
        "the firmware or the processor reported a hardware error",
        "the section of the error in the log (rasdaemon decodes it); then the part that it names",
    ),
    (
        "serror",
        "an access was answered with an asynchronous error of the bus (SError)",
        "the driver that ran last: its device's clock, power and address; an SError comes later than its access",
    ),
    (
        "external abort",
        "an access was answered with an error of the bus (external abort)",
        "the device or memory behind the address: its clock, power and mapping",
    ),
    (
        "bus error",
        "an access was answered with an error of the bus",
        "the device or memory behind the address: its clock, power and mapping",
    ),
];

/// What the hardware reported, when that is what the kernel died of.
pub(in crate::analysis) fn reported(ctx: &Context<'_, '_>) -> Option<(&'static str, &'static str)> {
    if !ctx.kernel_died() {
        return None;
    }
    let message = ctx.death.message.to_ascii_lowercase();
    let by_words = ERRORS.iter().find(|(words, ..)| message.contains(words));
    let row = by_words.or_else(|| ERRORS.first().filter(|_| ctx.death.vector == Some(MACHINE_CHECK)))?;
    Some((row.1, row.2))
}

/// An error of the hardware, or of the way in which a driver used it.
pub(super) fn error(ctx: &Context<'_, '_>) -> Vec<Claim> {
    let Some((what, decides)) = reported(ctx) else { return Vec::new() };
    let message = ctx.death.message.lines().next().unwrap_or("exception 18 (machine check)");
    vec![Claim::new(format!("{what}{}", ctx.in_culprit())).because(0.65, message, ctx.death.at).because(
        0.0,
        format!("would decide: {decides}"),
        None,
    )]
}

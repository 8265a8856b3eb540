//! Deaths that the hardware reported by itself: machine checks, and errors of the bus.

use crate::analysis::context::Context;
use crate::analysis::finding::Claim;
use crate::analysis::quote::says;

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

/// An error of the hardware, or of the way in which a driver used it.
pub(super) fn error(ctx: &Context<'_, '_>) -> Vec<Claim> {
    let message = ctx.death.message.to_ascii_lowercase();
    let by_words = ERRORS.iter().find(|(words, ..)| says(&message, words));
    let by_number = || ERRORS.first().filter(|_| ctx.death.vector == Some(MACHINE_CHECK));
    let Some((_, what, decides)) = by_words.or_else(by_number).filter(|_| ctx.kernel_died()) else {
        return Vec::new();
    };
    let told = ctx.death.message.lines().next().unwrap_or("exception 18 (machine check)");
    let claim = Claim::new(format!("{what}{}", ctx.in_culprit())).because(0.65, told, ctx.death.at);
    vec![claim.because(0.0, format!("would decide: {decides}"), None)]
}

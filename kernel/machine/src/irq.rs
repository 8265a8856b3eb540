//! Interrupts of this processor, and the devices that raise them.

use core::marker::PhantomData;
use core::sync::atomic::Ordering;

use crate::x86_64::cpu::{irq as hardware, local};

pub use crate::trap::Irq;

/// Interrupts are off while this lives; nests.
pub struct IrqOff {
    was_on: bool,
    _this_processor_only: PhantomData<*mut ()>,
}

/// Turn interrupts off until the guard is dropped.
#[inline]
pub fn off() -> IrqOff {
    let was_on = hardware::enabled();
    hardware::disable();
    IrqOff { was_on, _this_processor_only: PhantomData }
}

impl Drop for IrqOff {
    #[inline]
    fn drop(&mut self) {
        if self.was_on {
            hardware::enable();
        }
    }
}

/// Whether they are on.
#[inline]
pub fn enabled() -> bool {
    hardware::enabled()
}

/// Whether this is interrupt context.
#[inline]
pub fn in_interrupt() -> bool {
    local::here().irq_depth.load(Ordering::Relaxed) != 0
}

/// Whether the interrupt being handled (or the last one) came while this processor ran a program.
#[inline]
pub fn interrupted_user() -> bool {
    local::here().from_user.load(Ordering::Relaxed)
}

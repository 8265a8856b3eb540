//! Interrupts of this processor, and the devices that raise them.

use core::marker::PhantomData;

/// A device interrupt the kernel is told of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Irq {
    /// The console received something: drain [`crate::console::read`].
    Console,
    /// A platform interrupt line.
    Line(u8),
}

/// Interrupts are off while this lives; nests.
pub struct IrqOff {
    was_on: bool,
    _this_processor_only: PhantomData<*mut ()>,
}

/// Turn interrupts off until the guard is dropped.
#[inline]
pub fn off() -> IrqOff {
    todo!()
}

impl Drop for IrqOff {
    #[inline]
    fn drop(&mut self) {
        let _ = self.was_on;
        todo!()
    }
}

/// Whether they are on.
pub fn enabled() -> bool {
    todo!()
}

/// Whether this is interrupt context.
pub fn in_interrupt() -> bool {
    todo!()
}

//! The serial console: polled output that works from the first instruction, interrupt-driven input.

use crate::describe::Entry;
use crate::sync::{Holder, SpinLock};
use crate::x86_64::devices::uart;

static OUTPUT: SpinLock<()> = SpinLock::new(());
/// The console's lock in [`crate::describe`].
pub static FIELDS: [Entry; 1] = [Entry::address("held.console", &OUTPUT)];

/// Write bytes as they are. Whole calls are not interleaved with those of other processors.
pub fn write(bytes: &[u8]) {
    let _held = OUTPUT.lock_irq();
    uart::send(bytes);
}

/// Who is writing, for dumps.
pub fn holder() -> Option<Holder> {
    OUTPUT.holder()
}

/// Run `f` with the console's lock held: it must not write itself. For tests of the crash path.
pub fn with_lock(f: impl FnOnce()) {
    let _held = OUTPUT.lock_irq();
    f();
}

/// Write without waiting for the lock: for the crash path, which may have interrupted its holder. Returns `false` if
/// the lock was held and the bytes may be interleaved with the holder's.
pub fn write_unlocked(bytes: &[u8]) -> bool {
    let held = OUTPUT.try_lock();
    uart::send(bytes);
    held.is_some()
}

/// One received byte.
pub fn read() -> Option<u8> {
    uart::receive()
}

/// Begin telling the kernel of input by [`crate::irq::Irq::Console`].
pub fn enable_input() {
    crate::x86_64::devices::ioapic::enable_console();
    uart::enable_receive_interrupt();
}

/// Formats straight to the console, lock per call.
pub struct Writer;

impl core::fmt::Write for Writer {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        write(text.as_bytes());
        Ok(())
    }
}

//! The serial console: polled output that works from the first instruction, interrupt-driven input.

/// Write bytes as they are. Whole calls are not interleaved with those of other processors.
pub fn write(bytes: &[u8]) {
    let _ = bytes;
    todo!()
}

/// Write without waiting for the lock: for the crash path, which may have interrupted its holder. Returns `false` if the lock
/// was held and the bytes may be interleaved with the holder's.
pub fn write_unlocked(bytes: &[u8]) -> bool {
    let _ = bytes;
    todo!()
}

/// One received byte.
pub fn read() -> Option<u8> {
    todo!()
}

/// Begin telling the kernel of input by [`crate::irq::Irq::Console`].
pub fn enable_input() {
    todo!()
}

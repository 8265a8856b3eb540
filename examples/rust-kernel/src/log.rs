//! The example kernel's log: printed as it is written, and its first bytes kept for the dump.

use core::fmt::{self, Write as _};
use core::sync::atomic::{AtomicU8, AtomicUsize, Ordering::Relaxed};

use crate::machine;

/// Bytes that are kept.
pub(crate) const KEPT: usize = 1024;

static BYTES: [AtomicU8; KEPT] = [const { AtomicU8::new(0) }; KEPT];
static WRITTEN: AtomicUsize = AtomicUsize::new(0);

struct Console;

impl fmt::Write for Console {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        machine::print(text.as_bytes());
        for byte in text.bytes() {
            if let Some(to) = BYTES.get(WRITTEN.load(Relaxed)) {
                to.store(byte, Relaxed);
                WRITTEN.fetch_add(1, Relaxed);
            }
        }
        Ok(())
    }
}

/// Writes a line; gives the number of bytes before it.
pub(crate) fn line(text: fmt::Arguments<'_>) -> usize {
    let before = WRITTEN.load(Relaxed);
    // The console takes everything.
    let _ = writeln!(Console, "{text}");
    before
}

/// Copies what is kept.
pub(crate) fn copy(into: &mut [u8; KEPT]) -> &[u8] {
    into.iter_mut().zip(&BYTES).for_each(|(to, byte)| *to = byte.load(Relaxed));
    &into[..WRITTEN.load(Relaxed).min(KEPT)]
}

//! The kernel's log: a ring everyone can read back, and the console for what is urgent enough.
//!
//! A message is formatted into a buffer on the stack and handed over whole, so messages of several processors never
//! mix. Each line in the ring begins with `<level>[seconds.micros] `, the form `/dev/kmsg` readers and `dmesg` take
//! apart.

use core::fmt::{self, Write};
use core::mem::offset_of;
use core::sync::atomic::{AtomicU8, Ordering};

use machine::describe::Entry;
use machine::sync::{Holder, SpinLock};

/// Urgency, as syslog(2) counts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// The system is unusable.
    Emergency = 0,
    /// Something failed (KERN_ERR).
    Error = 3,
    /// Something is wrong and work goes on (KERN_WARNING).
    Warning = 4,
    /// Normal but significant (KERN_NOTICE).
    Notice = 5,
    /// Progress of boot and drivers (KERN_INFO).
    Info = 6,
    /// Details for debugging (KERN_DEBUG).
    Debug = 7,
}

/// Logs at a level: `log!(Level::Info, "text {}", value)`.
macro_rules! log {
    ($level:expr, $($arg:tt)*) => { $crate::log::write($level, ::core::format_args!($($arg)*)) };
}
/// Logs an error.
macro_rules! error {
    ($($arg:tt)*) => { $crate::log::log!($crate::log::Level::Error, $($arg)*) };
}
/// Logs a warning.
macro_rules! warn_ {
    ($($arg:tt)*) => { $crate::log::log!($crate::log::Level::Warning, $($arg)*) };
}
/// Logs progress ([`Level::Info`]).
macro_rules! info {
    ($($arg:tt)*) => { $crate::log::log!($crate::log::Level::Info, $($arg)*) };
}
#[allow(unused_imports, reason = "not every level has a caller at all times")]
pub(crate) use {error, info, log, warn_ as warn};

static CONSOLE_LEVEL: AtomicU8 = AtomicU8::new(7);
static RING: SpinLock<Ring> = SpinLock::new(Ring { bytes: [0; RING_BYTES], written: 0, cleared: 0 });

/// The ring in [`machine::describe`].
pub static FIELDS: [Entry; 5] = [
    Entry::address("held.kernel log", &RING),
    Entry::address("log", &RING),
    Entry::number("log.bytes", SpinLock::<Ring>::VALUE + offset_of!(Ring, bytes)),
    Entry::number("log.size", RING_BYTES),
    Entry::number("log.written", SpinLock::<Ring>::VALUE + offset_of!(Ring, written)),
];

/// Bytes of log kept.
pub const RING_BYTES: usize = 128 * 1024;
/// Longest message; the rest is cut.
const LINE_BYTES: usize = 512;

struct Ring {
    bytes: [u8; RING_BYTES],
    /// Bytes ever written; the newest lies at `written % RING_BYTES`.
    written: u64,
    /// Where `SYSLOG_ACTION_READ_CLEAR` left off.
    cleared: u64,
}

/// Messages below this level reach the console.
pub fn set_console_level(level: u8) {
    CONSOLE_LEVEL.store(level, Ordering::Relaxed);
}

/// The present console level.
pub fn console_level() -> u8 {
    CONSOLE_LEVEL.load(Ordering::Relaxed)
}

/// Logs one message; a newline is added.
pub fn write(level: Level, message: fmt::Arguments<'_>) {
    let mut line = Line::<LINE_BYTES>::new();
    let now = machine::time::now();
    let (seconds, micros) = (now / 1_000_000_000, now / 1000 % 1_000_000);
    // A full line is cut; that is all that can go wrong.
    let _ = write!(line, "<{}>[{seconds:5}.{micros:06}] {message}", level as u8);
    line.end();
    append(line.bytes());
    if (level as u8) < console_level() {
        machine::console::write(&line.bytes()[3..]);
    }
}

/// Adds bytes a program wrote to `/dev/kmsg`.
pub fn append(bytes: &[u8]) {
    let mut ring = RING.lock_irq();
    for byte in bytes {
        let at = (ring.written % RING_BYTES as u64) as usize;
        ring.bytes[at] = *byte;
        ring.written += 1;
    }
}

/// Bytes ever logged.
pub fn written() -> u64 {
    RING.lock_irq().written
}

/// Where the log not yet cleared begins.
pub fn cleared() -> u64 {
    RING.lock_irq().cleared
}

/// Hides everything logged so far from `dmesg`.
pub fn clear() {
    let mut ring = RING.lock_irq();
    ring.cleared = ring.written;
}

/// Copies log bytes from position `from` on; the position they really begin at, and how many.
pub fn read(from: u64, to: &mut [u8]) -> (u64, usize) {
    let ring = RING.lock_irq();
    copy(&ring, from, to)
}

/// [`read`] for dumps: `None` if the log is locked.
pub fn try_read(from: u64, to: &mut [u8]) -> Option<(u64, usize)> {
    let ring = RING.try_lock()?;
    Some(copy(&ring, from, to))
}

/// [`written`] for dumps.
pub fn try_written() -> Option<u64> {
    Some(RING.try_lock()?.written)
}

/// The holder of the log's lock, for dumps.
pub fn holder() -> Option<Holder> {
    RING.holder()
}

fn copy(ring: &Ring, from: u64, to: &mut [u8]) -> (u64, usize) {
    let from = from.max(ring.written.saturating_sub(RING_BYTES as u64));
    let len = (ring.written.saturating_sub(from) as usize).min(to.len());
    for (n, byte) in to[..len].iter_mut().enumerate() {
        *byte = ring.bytes[((from + n as u64) % RING_BYTES as u64) as usize];
    }
    (from, len)
}

/// A line being formatted; what does not fit is cut.
#[derive(Clone, Copy)]
pub struct Line<const N: usize> {
    bytes: [u8; N],
    len: usize,
    /// Something did not fit.
    pub cut: bool,
}

impl<const N: usize> Line<N> {
    /// Where its bytes and their number lie, for readers of memory.
    pub const LAYOUT: (usize, usize) = (offset_of!(Self, bytes), offset_of!(Self, len));

    /// A log without lines.
    pub const fn new() -> Self {
        Self { bytes: [0; N], len: 0, cut: false }
    }

    /// What was written.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Ends it with a newline, at the price of its last byte if it is full.
    pub fn end(&mut self) {
        let at = self.len.min(N - 1);
        self.bytes[at] = b'\n';
        self.len = at + 1;
    }
}

impl<const N: usize> Write for Line<N> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let len = text.len().min(N - self.len);
        self.bytes[self.len..self.len + len].copy_from_slice(&text.as_bytes()[..len]);
        self.len += len;
        self.cut |= len < text.len();
        Ok(())
    }
}

/// Bytes shown as text, with escapes for what is not printable.
pub struct Escaped<'a>(pub &'a [u8]);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.0 {
            match byte {
                b' '..=b'~' => f.write_char(char::from(*byte))?,
                _ => write!(f, "\\x{byte:02x}")?,
            }
        }
        Ok(())
    }
}

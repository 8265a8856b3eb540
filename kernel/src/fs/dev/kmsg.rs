//! `/dev/kmsg`: the kernel's log, one record per read, in the form `priority,sequence,microseconds,-;text`
//! (Documentation/ABI/testing/dev-kmsg). What is written there is logged.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicU8, Ordering::Relaxed};

use linux_abi::{Errno, capabilities as cap};
use machine::sync::SpinLock;
use machine::time::{Nanos, now};

use crate::fs::Actor as _;
use crate::fs::file::{File, FileOps, Seeking};
use crate::fs::io::{Sink, Source};
use crate::log::{self, Escaped, Level};
use crate::sched::Sleep;
use crate::sync::wait::sleep_until;
use crate::upper::current;

/// One opening of the log, with what it has read.
pub struct Reader {
    at: SpinLock<Position>,
    written: SpinLock<Written>,
}

/// What was written through one opening since a moment.
#[derive(Default)]
struct Written {
    since: Nanos,
    lines: u32,
}

/// What becomes of lines that programs write (`kernel.printk_devkmsg`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writing {
    /// They are logged.
    On,
    /// They vanish, and the log cannot be opened.
    Off,
    /// [`BURST`] of each opening are logged in [`INTERVAL`], the others vanish.
    Limited,
}

impl Writing {
    const ALL: [(&'static str, Self); 3] = [("on", Self::On), ("off", Self::Off), ("ratelimit", Self::Limited)];

    /// What holds now.
    pub fn get() -> Self {
        Self::ALL[usize::from(WRITING.load(Relaxed))].1
    }

    /// As a program reads it.
    pub fn name() -> &'static str {
        Self::ALL[usize::from(WRITING.load(Relaxed))].0
    }

    /// Sets it by its name; EINVAL for another.
    pub fn set(name: &[u8]) -> Result<(), Errno> {
        let at = Self::ALL.iter().position(|(known, _)| known.as_bytes() == name).ok_or(Errno::EINVAL)?;
        WRITING.store(at as u8, Relaxed);
        Ok(())
    }
}

/// Index into [`Writing::ALL`].
static WRITING: AtomicU8 = AtomicU8::new(2);
const BURST: u32 = 10;
const INTERVAL: Nanos = 5_000_000_000;

struct Position {
    byte: u64,
    record: u64,
}

/// How long a reader at the end of the log sleeps between looks.
const LOOK_AGAIN: u64 = 100_000_000;
/// Longest record read back.
const LONGEST: usize = 1024;
/// Longest line written (`LOG_LINE_MAX`).
const LONGEST_WRITTEN: usize = LONGEST - 32;

impl Reader {
    /// At the oldest record.
    pub fn new() -> Self {
        Self { at: SpinLock::new(Position { byte: 0, record: 0 }), written: SpinLock::default() }
    }

    /// Whether a line that is written now is logged.
    fn admits(&self) -> bool {
        match Writing::get() {
            Writing::On => return true,
            Writing::Off => return false,
            Writing::Limited => {}
        }
        let now = now();
        let mut written = self.written.lock();
        if written.lines == 0 || now.saturating_sub(written.since) >= INTERVAL {
            *written = Written { since: now, lines: 0 };
        }
        let admitted = written.lines < BURST;
        written.lines += u32::from(admitted);
        admitted
    }

    fn next_record(&self) -> Option<Vec<u8>> {
        let mut buffer = alloc::vec![0; LONGEST];
        let mut at = self.at.lock();
        let (start, length) = log::read(at.byte, &mut buffer);
        let line_length = buffer[..length].iter().position(|&byte| byte == b'\n')?;
        at.byte = start + line_length as u64 + 1;
        at.record += 1;
        Some(record(&buffer[..line_length], at.record - 1))
    }
}

/// `kernel.dmesg_restrict`, on: EPERM for the running thread unless it has CAP_SYSLOG or CAP_SYS_ADMIN (syslog(2)).
pub fn check_reader() -> Result<(), Errno> {
    let me = current();
    let may = me.capable(cap::SYSLOG) || me.capable(cap::SYS_ADMIN);
    if may { Ok(()) } else { Err(Errno::EPERM) }
}

impl Default for Reader {
    fn default() -> Self {
        Self::new()
    }
}

/// Turns a line of the log, `<level>[seconds.micros] text`, into a record.
fn record(line: &[u8], sequence: u64) -> Vec<u8> {
    let (level, rest) = match line {
        [b'<', level, b'>', rest @ ..] => (level.saturating_sub(b'0'), rest),
        _ => (6, line),
    };
    let close = rest.iter().position(|&byte| byte == b']');
    let (stamp, text) = match close {
        Some(close) if rest.first() == Some(&b'[') => (&rest[1..close], rest.get(close + 2..).unwrap_or(&[])),
        _ => (&b""[..], rest),
    };
    let micros = stamp
        .iter()
        .filter(|byte| byte.is_ascii_digit())
        .fold(0_u64, |value, digit| value.wrapping_mul(10).wrapping_add(u64::from(digit - b'0')));
    let mut out = alloc::format!("{level},{sequence},{micros},-;").into_bytes();
    out.extend_from_slice(text);
    out.push(b'\n');
    out
}

impl FileOps for Reader {
    fn read(&self, file: &File, _position: u64, sink: &mut Sink<'_>) -> Result<(), Errno> {
        let record = loop {
            match self.next_record() {
                Some(record) => break record,
                None if file.is_nonblocking() => return Err(Errno::EAGAIN),
                None => match sleep_until(now() + LOOK_AGAIN, Sleep::Interruptible) {
                    Err(crate::sync::wait::WaitError::Interrupted) => return Err(Errno::ERESTARTSYS),
                    _ => continue,
                },
            }
        };
        if record.len() > sink.left() {
            return Err(Errno::EINVAL);
        }
        sink.put(&record).map(|_| ())
    }

    fn write(&self, _file: &File, position: u64, source: &mut Source<'_>) -> Result<u64, Errno> {
        if source.left() > LONGEST_WRITTEN {
            return Err(Errno::EINVAL);
        }
        if !self.admits() {
            source.skip(source.left());
            return Ok(position);
        }
        let mut text = alloc::vec![0; source.left()];
        source.take(&mut text)?;
        let (level, text) = priority(&text);
        log::log!(level, "{}", Escaped(text.trim_ascii_end()));
        Ok(position)
    }

    fn seeking(&self) -> Seeking {
        Seeking::Ignored
    }
}

/// The `<N>` a writer may put in front.
fn priority(text: &[u8]) -> (Level, &[u8]) {
    let close = text.iter().take(5).position(|&byte| byte == b'>');
    let number = close
        .filter(|_| text.first() == Some(&b'<'))
        .and_then(|close| core::str::from_utf8(&text[1..close]).ok()?.parse::<u32>().ok());
    let rest = if number.is_some() { &text[close.map_or(0, |close| close + 1)..] } else { text };
    let level = match number.map_or(4, |number| number & 7) {
        0 => Level::Emergency,
        1..=3 => Level::Error,
        4 => Level::Warning,
        5 => Level::Notice,
        6 => Level::Info,
        _ => Level::Debug,
    };
    (level, rest)
}

//! Walks a stack frame by frame, choosing at each one the most trustworthy way that works.

use super::Registers;
use crate::symbols::{Probe, Step, UnwindTables, is_after_x86_call};

/// How a frame was found, most trustworthy first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Trust {
    /// The interrupted instruction itself.
    Exact,
    /// Unwind tables of the image.
    UnwindTable,
    /// The return address on top of the stack, after a jump to somewhere that holds no code.
    TopOfStack,
    /// The chain of frame pointers.
    FramePointer,
    /// A word on the stack that points behind a call: it may be left over from an earlier call.
    Scan,
    /// Printed by the kernel that crashed, which did not say how it found it.
    Printed,
}

impl Trust {
    /// All ways, in their order.
    pub const ALL: [Self; 6] =
        [Self::Exact, Self::UnwindTable, Self::TopOfStack, Self::FramePointer, Self::Scan, Self::Printed];

    /// The word of reports and of their JSON form.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::UnwindTable => "unwind table",
            Self::TopOfStack => "top of stack",
            Self::FramePointer => "frame pointer",
            Self::Scan => "scan",
            Self::Printed => "printed",
        }
    }

    /// The way that has this [`name`](Self::name).
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|trust| trust.name() == name)
    }

    /// What it means, in a few words.
    #[must_use]
    pub const fn about(self) -> &'static str {
        match self {
            Self::Exact => "the interrupted instruction itself",
            Self::UnwindTable => "unwind tables",
            Self::TopOfStack => "top of the stack",
            Self::FramePointer => "frame pointer",
            Self::Scan => "a guess",
            Self::Printed => "printed by the kernel",
        }
    }

    /// The letters that a backtrace shows.
    #[must_use]
    pub const fn short(self) -> &'static str {
        match self {
            Self::Exact => "ip",
            Self::UnwindTable => "cfi",
            Self::TopOfStack => "top",
            Self::FramePointer => "fp",
            Self::Scan => "scan",
            Self::Printed => "log",
        }
    }
}

/// A frame, innermost first in a [`Backtrace`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Address of the instruction, or the return address into this frame.
    pub ip: u64,
    /// Stack pointer in this frame, when known.
    pub sp: Option<u64>,
    /// How it was found.
    pub trust: Trust,
    /// Whether `ip` is an instruction or a return address.
    pub probe: Probe,
    /// What is known of the registers in it.
    pub registers: Registers,
}

/// Why a walk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// The outermost frame was reached.
    Outermost,
    /// The stack goes on at this address, where the dump has no bytes.
    NotCaptured(u64),
    /// Nothing on the captured stack looks like a caller.
    NoCaller,
    /// The limit of frames.
    Limit,
    /// Instruction or stack pointer are not known.
    NoRegisters,
}

impl Stopped {
    /// In words, when it leaves callers unknown.
    #[must_use]
    pub fn in_words(self) -> Option<String> {
        match self {
            Self::Outermost => None,
            Self::NotCaptured(addr) => Some(format!("the stack continues at 0x{addr:016x}, which is not in the dump")),
            Self::NoCaller => Some("no return address was found on the captured stack".to_owned()),
            Self::Limit => Some("there are more frames than are shown".to_owned()),
            Self::NoRegisters => Some("the instruction pointer or the stack pointer is not known".to_owned()),
        }
    }
}

/// The frames of a stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backtrace {
    /// The frames, innermost first.
    pub frames: Vec<Frame>,
    /// Why there are no more.
    pub stopped: Stopped,
}

/// What a walk must know about the address space.
pub trait Space {
    /// The captured bytes from an address on, as far as they lie together; empty when there are none.
    fn captured(&self, addr: u64) -> &[u8];
    /// The little-endian word at an address, when the dump has it.
    fn word(&self, addr: u64) -> Option<u64> {
        self.captured(addr).first_chunk().map(|word| u64::from_le_bytes(*word))
    }
    /// Whether the address can hold code.
    fn is_code(&self, addr: u64) -> bool;
    /// The bytes before an address (at most 8, the last one directly before it); fewer when they are not known.
    fn bytes_before(&self, addr: u64) -> Vec<u8>;
    /// Unwind tables for the address, and the run-time minus the link address of their image.
    fn tables(&self, addr: u64) -> Option<(&UnwindTables, u64)>;
}

/// Words that a scan looks at for one frame.
const SCAN_WORDS: u64 = 1024;
/// The largest frame that a frame pointer may span.
const MAX_FRAME: u64 = 1 << 20;

/// Walks from these registers, `limit` frames at most.
#[must_use]
pub fn backtrace(space: &dyn Space, start: &Registers, limit: usize) -> Backtrace {
    let (Some(ip), Some(_)) = (start.ip(), start.sp()) else {
        let frames =
            start.ip().map(|ip| Frame { ip, sp: None, trust: Trust::Exact, probe: Probe::Exact, registers: *start });
        return Backtrace { frames: frames.into_iter().collect(), stopped: Stopped::NoRegisters };
    };
    let mut frames = vec![Frame { ip, sp: start.sp(), trust: Trust::Exact, probe: Probe::Exact, registers: *start }];
    let mut registers = *start;
    let mut probe = Probe::Exact;
    loop {
        if frames.len() >= limit {
            return Backtrace { frames, stopped: Stopped::Limit };
        }
        match caller(space, &registers, probe) {
            Ok((next, trust, next_probe)) => {
                // Every way yields a known instruction and stack pointer.
                let ip = next.ip().unwrap_or(0);
                frames.push(Frame { ip, sp: next.sp(), trust, probe: next_probe, registers: next });
                (registers, probe) = (next, next_probe);
            }
            Err(stopped) => return Backtrace { frames, stopped },
        }
    }
}

fn caller(space: &dyn Space, callee: &Registers, probe: Probe) -> Result<(Registers, Trust, Probe), Stopped> {
    let (Some(ip), Some(sp)) = (callee.ip(), callee.sp()) else { return Err(Stopped::NoRegisters) };
    let higher = |next: &Registers| next.sp().is_some_and(|next| next > sp);
    let leads_on = |next: &Registers| next.ip().is_some_and(|ip| space.is_code(ip));
    match by_tables(space, callee, probe) {
        Some(Step::Outermost) => return Err(Stopped::Outermost),
        Some(Step::Caller(next, _)) if next.ip() == Some(0) => return Err(Stopped::Outermost),
        // A signal and a trap can come on a stack of their own, so what they interrupted can lie anywhere.
        Some(Step::Caller(next, by_signal))
            if (by_signal && next.sp().is_some() || higher(&next)) && leads_on(&next) =>
        {
            let next_probe = if by_signal { Probe::Exact } else { Probe::Return };
            return Ok((next, Trust::UnwindTable, next_probe));
        }
        _ => {}
    }
    if probe == Probe::Exact && !space.is_code(ip) {
        let top = space.word(sp).filter(|&word| space.is_code(word) && is_after_call(space, word) != Some(false));
        if let Some(word) = top {
            return Ok((moved(callee, word, sp.saturating_add(8)), Trust::TopOfStack, Probe::Return));
        }
    }
    if let Some(next) = by_frame_pointer(space, callee).filter(higher) {
        return Ok((next, Trust::FramePointer, Probe::Return));
    }
    by_scan(space, callee, sp).map(|next| (next, Trust::Scan, Probe::Return))
}

fn by_tables(space: &dyn Space, callee: &Registers, probe: Probe) -> Option<Step> {
    let ip = probe.instruction(callee.ip()?);
    let (tables, bias) = space.tables(ip)?;
    tables.step(ip.wrapping_sub(bias), callee, &|addr| space.word(addr))
}

fn by_frame_pointer(space: &dyn Space, callee: &Registers) -> Option<Registers> {
    let frame = callee.get(Registers::RBP)?;
    let sp = callee.sp()?;
    if !frame.is_multiple_of(8) || frame < sp || frame - sp > MAX_FRAME {
        return None;
    }
    let back = space.word(frame.checked_add(8)?)?;
    if !space.is_code(back) || is_after_call(space, back) == Some(false) {
        return None;
    }
    let mut next = moved(callee, back, frame.checked_add(16)?);
    next.set(Registers::RBP, space.word(frame));
    Some(next)
}

fn by_scan(space: &dyn Space, callee: &Registers, sp: u64) -> Result<Registers, Stopped> {
    let first = sp.checked_next_multiple_of(8).ok_or(Stopped::NoCaller)?;
    let mut run: &[u8] = &[];
    for step in 0..SCAN_WORDS {
        let Some(addr) = first.checked_add(step * 8) else { return Err(Stopped::NoCaller) };
        if run.len() < 8 {
            run = space.captured(addr);
        }
        let Some((word, rest)) = run.split_first_chunk::<8>() else {
            return Err(if step == 0 { Stopped::NotCaptured(addr) } else { Stopped::NoCaller });
        };
        let word = u64::from_le_bytes(*word);
        run = rest;
        // Without the code bytes a scan would take every function pointer for a caller.
        if space.is_code(word) && is_after_call(space, word) == Some(true) {
            return Ok(moved(callee, word, addr.saturating_add(8)));
        }
    }
    Err(Stopped::NoCaller)
}

/// The callee's preserved registers with another location; the frame pointer stays because most code keeps it.
fn moved(callee: &Registers, ip: u64, sp: u64) -> Registers {
    let mut next = Registers::at(ip, sp);
    next.set(Registers::RBP, callee.get(Registers::RBP));
    next
}

/// Whether the bytes before an address are a call instruction; `None` when they are not known.
fn is_after_call(space: &dyn Space, addr: u64) -> Option<bool> {
    is_after_x86_call(&space.bytes_before(addr))
}

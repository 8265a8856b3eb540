//! Walks kernel stacks by the tables that a Linux carries for that (`Documentation/arch/x86/orc-unwinder.rst`).
//!
//! One table holds, in order, where each rule begins, relative to its own entries; the other the rules: how to find the
//! caller's stack pointer, where the frame pointer was saved, and whether a trap's registers stand there.

use super::super::space::Space;
use super::kallsyms::Kallsyms;

/// Rules that are read: 1 for 3 instructions or so; a kernel of Debian has 600,000.
const MOST_RULES: u64 = 1 << 23;
/// Bytes of a rule.
const RULE: u64 = 6;
/// Frames of a stack.
const MOST_FRAMES: usize = 64;
/// Where `struct pt_regs` keeps registers (x86-64, `arch/x86/include/asm/ptrace.h`).
const REGS_R10: u64 = 56;
const REGS_R13: u64 = 16;
const REGS_BP: u64 = 32;
const REGS_ORIG_AX: u64 = 120;
const REGS_IP: u64 = 128;
const REGS_CS: u64 = 136;
const REGS_SP: u64 = 152;

/// Registers that rules speak of.
const UNDEFINED: u16 = 0;
const PREVIOUS_SP: u16 = 1;
const DX: u16 = 2;
const DI: u16 = 3;
const BP: u16 = 4;
const SP: u16 = 5;
const R10: u16 = 6;
const R13: u16 = 7;
const BP_INDIRECT: u16 = 8;
const SP_INDIRECT: u16 = 9;

/// What a rule says of the frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Frame {
    Call,
    Registers,
    /// Only what the processor pushes for a trap.
    Trap,
    End,
    Unknown,
}

/// The tables of a kernel.
#[derive(Debug)]
pub(super) struct Orc {
    starts: u64,
    rules: u64,
    count: u64,
    /// Since 6.4 the kinds of frames have other numbers.
    renumbered: bool,
}

/// Registers on the way up a stack.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct At {
    pub ip: u64,
    pub sp: u64,
    pub bp: u64,
    pub r10: u64,
    pub r13: u64,
    pub dx: u64,
    pub di: u64,
}

/// The way from where a thread stands to its begin or to its program.
#[derive(Debug, Default)]
pub(super) struct StackWalk {
    /// Addresses of code; whether it is one to return to, not one where the thread was interrupted.
    pub frames: Vec<(u64, bool)>,
    /// Instruction and stack pointer of the program that entered the kernel, and the number of its system call.
    pub user: Option<(u64, u64, i64)>,
}

impl Orc {
    pub(super) fn find(symbols: &Kallsyms, release: &str) -> Option<Self> {
        let starts = symbols.find("__start_orc_unwind_ip")?;
        let count = symbols.find("__stop_orc_unwind_ip")?.checked_sub(starts)? / 4;
        let mut numbers = release.split(|letter: char| !letter.is_ascii_digit()).map(str::parse);
        let version = (numbers.next()?.unwrap_or(0), numbers.next()?.unwrap_or(0));
        let rules = symbols.find("__start_orc_unwind")?;
        let has_rules = symbols.find("__stop_orc_unwind")?.checked_sub(rules)? / RULE == count;
        (has_rules && (1..=MOST_RULES).contains(&count)).then_some(Self {
            starts,
            rules,
            count,
            renumbered: version >= (6, 4),
        })
    }

    /// Walks up from registers; `exact` says that the first address is where the thread stands, not one to return to.
    pub(super) fn walk(&self, space: &Space<'_>, mut at: At, exact: bool) -> StackWalk {
        let mut walk = StackWalk::default();
        let mut returns = !exact;
        while walk.frames.len() < MOST_FRAMES && at.ip >> 63 == 1 {
            walk.frames.push((at.ip, returns));
            let Some((next, by_call)) = self.step(space, at, returns, &mut walk.user) else { break };
            // A stack goes up.
            if next.sp <= at.sp && by_call {
                break;
            }
            (at, returns) = (next, by_call);
        }
        walk
    }

    /// The caller's registers, and whether it called; `None` at the end, or where the tables do not know on.
    fn step(&self, space: &Space<'_>, at: At, returns: bool, user: &mut Option<(u64, u64, i64)>) -> Option<(At, bool)> {
        // The call before a return address may be the last instruction of its function.
        let rule = self.rule(space, at.ip - u64::from(returns))?;
        let sp = match rule.sp_register {
            SP => at.sp.wrapping_add_signed(rule.sp),
            BP => at.bp.wrapping_add_signed(rule.sp),
            BP_INDIRECT => space.word(at.bp.wrapping_add_signed(rule.sp))?,
            SP_INDIRECT => space.word(at.sp)?.wrapping_add_signed(rule.sp),
            R10 => at.r10,
            R13 => at.r13,
            DX => at.dx,
            DI => at.di,
            _ => return None,
        };
        let mut next = At { sp, ..at };
        match rule.frame {
            Frame::Call => next.ip = space.word(sp.checked_sub(8)?)?,
            Frame::Registers | Frame::Trap => {
                // A trap's own words are the last five of the registers.
                let regs = if rule.frame == Frame::Registers { sp } else { sp.checked_sub(REGS_IP)? };
                let of = |offset: u64| space.word(regs.checked_add(offset)?);
                (next.ip, next.sp) = (of(REGS_IP)?, of(REGS_SP)?);
                if rule.frame == Frame::Registers {
                    (next.bp, next.r10, next.r13) = (of(REGS_BP)?, of(REGS_R10)?, of(REGS_R13)?);
                }
                if of(REGS_CS)? & 3 == 3 {
                    *user = Some((next.ip, next.sp, of(REGS_ORIG_AX)? as i64));
                    return None;
                }
                return Some((next, false));
            }
            Frame::End | Frame::Unknown => return None,
        }
        match rule.bp_register {
            UNDEFINED => {}
            PREVIOUS_SP => next.bp = space.word(sp.wrapping_add_signed(rule.bp))?,
            BP => next.bp = space.word(at.bp.wrapping_add_signed(rule.bp))?,
            _ => return None,
        }
        Some((next, true))
    }

    fn rule(&self, space: &Space<'_>, ip: u64) -> Option<Rule> {
        let start = |number: u64| {
            let entry = self.starts.wrapping_add(4 * number);
            Some(entry.wrapping_add_signed(i64::from(space.half(entry)? as i32)))
        };
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low.midpoint(high);
            if start(middle)? <= ip { low = middle + 1 } else { high = middle }
        }
        let mut bytes = [0; RULE as usize];
        space.fill(self.rules.wrapping_add(RULE * low.checked_sub(1)?), &mut bytes)?;
        let of = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let bits = of(4);
        let frame = if self.renumbered {
            [Frame::Unknown, Frame::End, Frame::Call, Frame::Registers, Frame::Trap].get(usize::from(bits >> 8 & 7))
        } else if bits >> 10 & 1 == 1 {
            Some(&Frame::End)
        } else {
            [Frame::Call, Frame::Registers, Frame::Trap].get(usize::from(bits >> 8 & 3))
        };
        Some(Rule {
            sp: i64::from(of(0) as i16),
            bp: i64::from(of(2) as i16),
            sp_register: bits & 15,
            bp_register: bits >> 4 & 15,
            frame: *frame?,
        })
    }
}

/// How to go one frame up.
struct Rule {
    sp: i64,
    bp: i64,
    sp_register: u16,
    bp_register: u16,
    frame: Frame,
}

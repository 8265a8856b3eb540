//! Stacks and the code that ran: bytes, bounds and guards.

use kwab_format::record::{Memory, MemoryKind, StackBounds};
use machine::arch::Registers;
use machine::cpu::{self, CpuId};
use machine::crash;

use super::{Dump, Scope, Stop, Subject};

/// Bytes of code before and from the instruction on.
const CODE: (u64, usize) = (64, 128);
/// What lies below the stack pointer may still be in use (System V ABI, "red zone").
const RED_ZONE: u64 = 128;

pub(super) fn stacks(dump: &mut Dump<'_>, subject: &Subject<'_>) -> Result<(), Stop> {
    let registers = &subject.death.registers;
    code(dump, subject, registers)?;
    if subject.death.in_kernel {
        kernel_stack(dump, subject, registers, subject.thread.map(|thread| thread.tid()))?;
    }
    user_stack(dump, subject)?;
    if subject.scope != Scope::Kernel {
        return Ok(());
    }
    for number in (0..64).filter(|number| cpu::online() >> number & 1 != 0) {
        let cpu = CpuId(number);
        if let Some((registers, _)) = crash::stopped_registers(cpu).filter(|(registers, _)| registers.cs & 3 == 0) {
            let thread = crate::upper::START.current_of(cpu);
            kernel_stack(dump, subject, &registers, thread.map(|thread| thread.tid()))?;
        }
    }
    Ok(())
}

/// The instructions around the one that ran.
fn code(dump: &mut Dump<'_>, subject: &Subject<'_>, registers: &Registers) -> Result<(), Stop> {
    let mut bytes = [0; CODE.0 as usize + CODE.1];
    let ip = registers.rip;
    // Where the bytes before are not mapped the instruction's own may be.
    for before in [CODE.0, ip & 63, 0] {
        let start = ip.wrapping_sub(before);
        let wanted = before as usize + CODE.1;
        let len = crash::probe_read(start, &mut bytes[..wanted]);
        if len <= before as usize {
            continue;
        }
        return dump.put(&Memory {
            kind: Some(MemoryKind::CODE),
            vaddr: Some(start),
            pid: subject.pid().filter(|_| !subject.death.in_kernel),
            bytes: Some(&bytes[..len]),
            wanted: Some(wanted as u64),
            marked: Some(before),
            ..Memory::default()
        });
    }
    Ok(())
}

/// The part of a kernel stack in use, and its bounds.
fn kernel_stack(
    dump: &mut Dump<'_>,
    subject: &Subject<'_>,
    registers: &Registers,
    tid: Option<u32>,
) -> Result<(), Stop> {
    let tid = tid.filter(|tid| *tid != 0);
    let area = crash::stack_at(registers.rsp);
    if let Some(area) = area {
        dump.put(&StackBounds {
            label: Some(area.label.as_bytes()),
            low: Some(area.low),
            high: Some(area.high),
            guard: Some(area.guard).filter(|guard| *guard != 0),
            tid,
            ..StackBounds::default()
        })?;
    }
    // A stack that ran over is shown from its lowest byte on; one that is not ours as far as it can be read.
    let start = registers.rsp.saturating_sub(RED_ZONE) & !7;
    let start = area.map_or(start, |area| start.max(area.low));
    let end = area.map_or(start + 4096, |area| area.high).min(start.saturating_add(subject.amount.kernel_stack as u64));
    memory(dump, MemoryKind::KERNEL_STACK, start, end, (None, tid), area.map_or("stack", |area| area.label))
}

/// The top of the user stack of the thread that was running.
fn user_stack(dump: &mut Dump<'_>, subject: &Subject<'_>) -> Result<(), Stop> {
    let Some(thread) = subject.thread.filter(|thread| !thread.kernel_thread) else { return Ok(()) };
    let sp = match subject.death.in_kernel {
        false => subject.death.registers.rsp,
        true => match thread.user_frame() {
            Some(frame) => frame.sp(),
            None => return Ok(()),
        },
    };
    let start = sp.saturating_sub(RED_ZONE) & !7;
    let end = start.saturating_add(subject.amount.user_stack as u64);
    memory(dump, MemoryKind::USER_STACK, start, end, (subject.pid(), Some(thread.tid())), "user stack")
}

/// Captures `start..end` as far as it can be read, in as many records as it takes.
pub(super) fn memory(
    dump: &mut Dump<'_>,
    kind: MemoryKind,
    start: u64,
    end: u64,
    whose: (Option<u32>, Option<u32>),
    label: &str,
) -> Result<(), Stop> {
    memory_by(dump, kind, start, end, whose, label, &mut crash::probe_read)
}

/// The same of memory that `read` copies from an address as far as it can, and says how much.
pub(super) fn memory_by(
    dump: &mut Dump<'_>,
    kind: MemoryKind,
    start: u64,
    end: u64,
    (pid, tid): (Option<u32>, Option<u32>),
    label: &str,
    read: &mut dyn FnMut(u64, &mut [u8]) -> usize,
) -> Result<(), Stop> {
    let mut bytes = [0; PIECE];
    let mut at = start;
    while at < end {
        let wanted = (end - at).min(dump.max_bytes().min(PIECE) as u64) as usize;
        let len = read(at, &mut bytes[..wanted]);
        if len > 0 {
            dump.put(&Memory {
                kind: Some(kind),
                vaddr: Some(at),
                pid,
                tid,
                bytes: Some(&bytes[..len]),
                wanted: Some(end - at).filter(|_| len < wanted),
                label: Some(label.as_bytes()),
                ..Memory::default()
            })?;
        }
        if len < wanted {
            break;
        }
        at += len as u64;
    }
    Ok(())
}

/// Bytes captured at a time: they pass over the crash path's stack.
const PIECE: usize = 4096;

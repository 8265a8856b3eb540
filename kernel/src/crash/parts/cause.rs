//! Sections of identity and cause: the kernel, the death, the registers of each processor.

use kwab_format::List;
use kwab_format::record::{
    Arch, Cause, Cpu, CpuState, Frame, FrameTrust, Identity, Reg, RegId, RegisterRole, Registers, Stamp,
};
use machine::arch::{Control, Registers as Set};
use machine::cpu::{self, CpuId};
use machine::crash;

use super::{Death, Dump, Scope, Stop, Subject};
use crate::task::Thread;
use crate::trace::event::signal_name;
use crate::uts::{RELEASE, VERSION};
use crate::{log, options};

/// Most frames of a printed backtrace.
const MAX_FRAMES: usize = 32;

pub(super) fn identity(dump: &mut Dump<'_>, subject: &Subject<'_>) -> Result<(), Stop> {
    let mut version = log::Line::<192>::new();
    // What does not fit is cut.
    let _ = core::fmt::Write::write_fmt(&mut version, format_args!("{RELEASE} (kwab) {VERSION}"));
    let boot = machine::boot::info();
    let clock = machine::time::params();
    let now = machine::time::now();
    dump.put(&Identity {
        kernel_name: Some(b"kwab"),
        kernel_version: Some(version.bytes()),
        kernel_build_id: Some(machine::boot::build_id()),
        arch: Some(Arch::X86_64),
        command_line: Some(&options::get().line),
        wall_ns: Some((machine::time::wall_at_boot() + now) as i64),
        mono_ns: Some(now),
        reason: Some(subject.death.reason),
        reason_text: subject.death.kind.name().map(str::as_bytes),
        producer: Some(concat!("kwab kernel ", env!("CARGO_PKG_VERSION")).as_bytes()),
        cpus: Some(cpu::online().count_ones()),
        page_size: Some(4096),
        tsc_hz: Some(clock.hz),
        ram_bytes: Some(crate::mm::frames::total() as u64 * 4096),
        kernel_offset: Some(machine::boot::image_slide()),
        direct_map: Some(machine::boot::direct_map()),
        hardware: Some(boot.platform.as_bytes()),
        debug: Some(&options::get().debug),
        ..Identity::default()
    })
}

pub(super) fn cause(dump: &mut Dump<'_>, subject: &Subject<'_>) -> Result<(), Stop> {
    let death = subject.death;
    let mut comm = [0; 16];
    let named = subject.thread.map(|thread| name_of(thread, &mut comm));
    let mut line = [0; 256];
    let words = command_line(subject, &mut line);
    let syscall = subject.thread.and_then(Thread::user_frame).and_then(|frame| frame.syscall());
    let with = |text: &'static str| Some(text.as_bytes());
    dump.put(&Cause {
        kind: Some(death.kind),
        message: Some(death.message.bytes().trim_ascii_end()).filter(|text| !text.is_empty()),
        file: Some(death.file.bytes()).filter(|file| !file.is_empty()),
        source_line: Some(death.line_column.0).filter(|line| *line != 0),
        column: Some(death.line_column.1).filter(|column| *column != 0),
        pid: subject.pid(),
        tid: subject.thread.filter(|thread| !thread.kernel_thread).map(|thread| thread.tid()),
        comm: named,
        cmdline: Some(words).filter(|words| !words.is_empty()),
        signal: death.signal.map(|(signal, _)| u32::from(signal)),
        signal_name: death.signal.and_then(|(signal, _)| with(signal_name(signal))),
        signal_code: death.signal.map(|(_, code)| i64::from(code)),
        fault_addr: death.fault_addr(),
        ip: Some(death.registers.rip),
        sp: Some(death.registers.rsp),
        vector: death.trap().map(|trap| u32::from(trap.vector)),
        exception: death.trap().and_then(|trap| with(machine::trap::exception_name(trap.vector)?)),
        error_code: death.trap().map(|trap| trap.error),
        syscall: syscall.map(|nr| nr as i64),
        in_kernel: Some(death.in_kernel),
        stamp: Stamp { cpu: Some(cpu::id().0), ns: Some(machine::time::now()), ..Stamp::default() },
        ..Cause::default()
    })?;
    if !death.in_kernel {
        return Ok(());
    }
    let callers = crash::backtrace(death.registers.rip, death.registers.rbp);
    for (index, addr) in callers.take(MAX_FRAMES).enumerate() {
        dump.put(&Frame {
            trace: Some(0),
            index: Some(index as u32),
            addr: Some(addr),
            trust: Some(if index == 0 { FrameTrust::EXACT } else { FrameTrust::FRAME_POINTER }),
            ..Frame::default()
        })?;
    }
    Ok(())
}

/// What is known of the death without looking at anything: for when looking failed.
pub fn brief(dump: &mut Dump<'_>, death: &Death) -> Result<(), Stop> {
    dump.put(&Cause {
        kind: Some(death.kind),
        message: Some(death.message.bytes().trim_ascii_end()).filter(|text| !text.is_empty()),
        file: Some(death.file.bytes()).filter(|file| !file.is_empty()),
        source_line: Some(death.line_column.0).filter(|line| *line != 0),
        fault_addr: death.fault_addr(),
        ip: Some(death.registers.rip),
        sp: Some(death.registers.rsp),
        vector: death.trap().map(|trap| u32::from(trap.vector)),
        error_code: death.trap().map(|trap| trap.error),
        in_kernel: Some(death.in_kernel),
        stamp: Stamp { cpu: Some(cpu::id().0), ..Stamp::default() },
        ..Cause::default()
    })
}

/// The thread's `comm`; empty while it changes.
pub(super) fn name_of<'b>(task: &crate::task::Task, into: &'b mut [u8; 16]) -> &'b [u8] {
    if let Some(name) = task.name.try_lock() {
        *into = *name;
    }
    let len = into.iter().position(|b| *b == 0).unwrap_or(15);
    &into[..len]
}

/// The argument strings of the running process, with blanks between.
fn command_line<'b>(subject: &Subject<'_>, into: &'b mut [u8; 256]) -> &'b [u8] {
    let Some(thread) = subject.thread else { return &[] };
    let range = thread.mm.try_with(|mm| mm.try_lock().map(|map| map.args)).flatten();
    let Some((start, end)) = range else { return &[] };
    let wanted = (end.saturating_sub(start) as usize).min(into.len());
    let len = crash::probe_read(start, &mut into[..wanted]);
    into[..len].iter_mut().filter(|byte| **byte == 0).for_each(|byte| *byte = b' ');
    into[..len].trim_ascii_end()
}

pub(super) fn registers(dump: &mut Dump<'_>, subject: &Subject<'_>) -> Result<(), Stop> {
    let death = subject.death;
    let me = cpu::id();
    let role = match subject.scope {
        Scope::Live => RegisterRole::DUMPER,
        _ => RegisterRole::FAULT,
    };
    let whose = (subject.pid(), subject.thread.filter(|t| !t.kernel_thread).map(|t| t.tid()));
    let trap = death.trap().map(|trap| (trap.vector, trap.error));
    put_set(dump, role, whose, me, &death.registers, Some(&death.control), trap)?;
    if death.in_kernel
        && let Some(frame) = subject.thread.and_then(Thread::user_frame)
    {
        put_set(dump, RegisterRole::USER, whose, me, frame.registers(), None, None)?;
    }
    for number in 0..64 {
        let cpu = CpuId(number);
        if cpu::online() >> number & 1 == 0 {
            continue;
        }
        if cpu != me
            && let Some((registers, control)) = crash::stopped_registers(cpu)
        {
            put_set(dump, RegisterRole::STOPPED, thread_on(cpu), cpu, &registers, Some(&control), None)?;
        }
        put_cpu(dump, subject, cpu)?;
    }
    Ok(())
}

/// Process and thread a stopped processor was running.
fn thread_on(cpu: CpuId) -> (Option<u32>, Option<u32>) {
    match crate::upper::START.current_of(cpu) {
        Some(thread) if !thread.kernel_thread => (Some(thread.pid()), Some(thread.tid())),
        _ => (None, None),
    }
}

fn put_cpu(dump: &mut Dump<'_>, subject: &Subject<'_>, cpu: CpuId) -> Result<(), Stop> {
    let mine = cpu == cpu::id();
    let stopped = crash::stopped_registers(cpu);
    let idle = crate::upper::START.current_of(cpu).is_some_and(|thread| thread.sched.is_idle());
    let state = match (mine, &stopped, subject.scope) {
        (true, ..) => CpuState::DUMPING,
        (_, Some(_), _) if idle => CpuState::IDLE,
        (_, Some(_), _) => CpuState::STOPPED,
        (_, None, Scope::Kernel) => CpuState::SILENT,
        _ => CpuState::RUNNING,
    };
    let (pid, tid) = if mine { (subject.pid(), subject.thread.map(|thread| thread.tid())) } else { thread_on(cpu) };
    let (flags, root) = match &stopped {
        Some((registers, control)) => (Some(registers.rflags), Some(control.cr3)),
        None if mine => (Some(subject.death.registers.rflags), Some(subject.death.control.cr3)),
        None => (None, None),
    };
    let (locks, depth) = crash::nesting(cpu).unzip();
    let controller = if mine { subject.death.controller } else { crash::controller(cpu) };
    dump.put(&Cpu {
        number: Some(cpu.0),
        hardware_id: crash::hardware_id(cpu).map(u64::from),
        state: Some(state),
        pid,
        tid: tid.filter(|tid| *tid != 0),
        interrupts_on: flags.map(|flags| flags >> 9 & 1 != 0),
        interrupt_depth: depth,
        // The crash path counts a lock of its own.
        preempt_count: locks.map(|locks| locks.saturating_sub(u32::from(mine && subject.scope == Scope::Kernel))),
        page_table_root: root,
        vector_in_service: controller.map(|state| state.in_service),
        vector_requested: controller.map(|state| state.requested),
        task_priority: controller.map(|state| state.priority),
        timer_counts: controller.map(|state| state.timer_counts),
        timer_ns: crash::timer(cpu),
        ..Cpu::default()
    })
}

/// The registers of a set: first the sixteen that every instruction may name, then instruction pointer and flags, then
/// the rest.
pub(super) fn general(set: &Set) -> [(RegId, u64); 21] {
    [
        (RegId::RAX, set.rax),
        (RegId::RBX, set.rbx),
        (RegId::RCX, set.rcx),
        (RegId::RDX, set.rdx),
        (RegId::RSI, set.rsi),
        (RegId::RDI, set.rdi),
        (RegId::RBP, set.rbp),
        (RegId::RSP, set.rsp),
        (RegId::R8, set.r8),
        (RegId::R9, set.r9),
        (RegId::R10, set.r10),
        (RegId::R11, set.r11),
        (RegId::R12, set.r12),
        (RegId::R13, set.r13),
        (RegId::R14, set.r14),
        (RegId::R15, set.r15),
        (RegId::RIP, set.rip),
        (RegId::RFLAGS, set.rflags),
        (RegId::CS, set.cs),
        (RegId::SS, set.ss),
        (RegId::ORIG_RAX, set.orig_rax),
    ]
}

/// Puts one set of registers.
pub(super) fn put_set(
    dump: &mut Dump<'_>,
    role: RegisterRole,
    (pid, tid): (Option<u32>, Option<u32>),
    cpu: CpuId,
    set: &Set,
    control: Option<&Control>,
    trap: Option<(u8, u64)>,
) -> Result<(), Stop> {
    let mut regs = [Reg::default(); 29];
    let mut count = 0;
    let mut add = |(id, value)| {
        regs[count] = Reg::new(id, value);
        count += 1;
    };
    general(set).into_iter().for_each(&mut add);
    if let Some(control) = control {
        let more = [
            (RegId::CR0, control.cr0),
            (RegId::CR3, control.cr3),
            (RegId::CR4, control.cr4),
            (RegId::EFER, control.efer),
            (RegId::FS_BASE, control.fs_base),
            (RegId::GS_BASE, control.gs_base),
            (RegId::KERNEL_GS_BASE, control.kernel_gs_base),
        ];
        more.into_iter().for_each(&mut add);
        // Of a death that was no page fault it is the address of some fault before, which a reader would take for the
        // cause.
        if role == RegisterRole::STOPPED || trap.is_some_and(|(vector, _)| matches!(vector, 8 | 14)) {
            add((RegId::CR2, control.cr2));
        }
    }
    dump.put(&Registers {
        role: Some(role),
        pid,
        tid,
        arch: Some(Arch::X86_64),
        vector: trap.map(|(vector, _)| u32::from(vector)),
        error_code: trap.map(|(_, error)| error),
        regs: Some(List::new(&regs[..count])),
        stamp: Stamp { cpu: Some(cpu.0), ..Stamp::default() },
        ..Registers::default()
    })
}

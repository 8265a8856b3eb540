//! The state of a process: `stat`, `statm` and `status` (proc(5)).

use alloc::format;
use alloc::vec::Vec;
use core::fmt::Write as _;
use core::sync::atomic::Ordering::Relaxed;

use kernel_logic::runqueue::Policy;
use kernel_logic::signal::{SIG_DFL, SIG_IGN};
use kernel_logic::vma::{Prot, VmaFlags};
use linux_abi::Errno;

use super::lines::Lines;
use super::{Target, lines};
use crate::mm::{AddressSpace, page_down, page_up};
use crate::task::access::{self, By};
use crate::task::account::Kind;
use crate::task::clock;
use crate::task::limits::resource;
use crate::task::process::Phase;
use crate::task::{Process, Thread, ThreadRef, current};
use crate::time;

/// Pages of a kind of memory.
#[derive(Default)]
struct Sizes {
    total: u64,
    resident: crate::mm::Resident,
    peak: u64,
    data: u64,
    stack: u64,
    code: u64,
    /// Code besides the program's own.
    libraries: u64,
    locked: u64,
    /// Page tables but the root.
    tables: u64,
}

fn sizes(mm: Option<&AddressSpace>) -> Sizes {
    let Some(mm) = mm else { return Sizes::default() };
    let map = mm.lock();
    let mut sizes = Sizes { total: map.vmas.pages(), ..Sizes::default() };
    for vma in map.vmas.iter() {
        let pages = vma.bytes() / 4096;
        if vma.flags.has(VmaFlags::STACK) {
            sizes.stack += pages;
        } else if vma.prot.has(Prot::WRITE) && !vma.flags.has(VmaFlags::SHARED) {
            sizes.data += pages;
        }
        if vma.flags.has(VmaFlags::LOCKED) {
            sizes.locked += pages;
        }
        if vma.prot.has(Prot::EXEC) && !vma.prot.has(Prot::WRITE) && !vma.flags.has(VmaFlags::STACK) {
            sizes.libraries += pages;
        }
    }
    sizes.code = page_up(map.code.1).unwrap_or(map.code.1).saturating_sub(page_down(map.code.0)) / 4096;
    sizes.libraries = sizes.libraries.saturating_sub(sizes.code);
    drop(map);
    sizes.resident = mm.resident();
    sizes.tables = (mm.space.table_frames() as u64).saturating_sub(1);
    sizes.peak = mm.peak().max(sizes.resident.total());
    sizes
}

fn letter(process: &Process, thread: Option<&ThreadRef>) -> char {
    match process.life.phase() {
        Phase::Zombie => 'Z',
        Phase::Stopped => 'T',
        Phase::Running => thread.map_or('X', |thread| thread.sched.letter()),
    }
}

/// The name of a thread; a process without threads (a zombie) has the one it ended with.
fn comm_of(thread: Option<&ThreadRef>) -> Vec<u8> {
    let mut comm = [0; 16];
    match thread {
        Some(thread) => {
            let length = thread.comm(&mut comm);
            comm[..length].to_vec()
        }
        None => b"defunct".to_vec(),
    }
}

/// Time in user mode and in the kernel, of ended threads too.
fn processor_time(process: &Process) -> (u64, u64) {
    process.threads.with(|threads| {
        let usage = process.accounting.ended_threads();
        threads.iter().fold((usage.user, usage.system), |(user, system), thread| {
            let (more_user, more_system) = clock::split_time(thread);
            (user + more_user, system + more_system)
        })
    })
}

/// Where things lie in a program's memory.
#[derive(Default)]
struct Layout {
    code: (u64, u64),
    stack: u64,
    args: (u64, u64),
    envs: (u64, u64),
    brk: u64,
}

fn layout(mm: Option<&AddressSpace>) -> Layout {
    let Some(mm) = mm else { return Layout::default() };
    let map = mm.lock();
    Layout { code: map.code, stack: map.stack_start, args: map.args, envs: map.envs, brk: map.brk_start }
}

/// The layout as the caller may see it: addresses need access to the process, without it only a program's presence
/// shows.
fn shown_layout(thread: Option<&Thread>, mm: Option<&AddressSpace>) -> Layout {
    if thread.is_none_or(|thread| access::check(&current(), thread, By::FileSystemIds).is_ok()) {
        return layout(mm);
    }
    let program = if mm.is_some() { (1, 1) } else { (0, 0) };
    Layout { code: program, ..Layout::default() }
}

pub(super) fn stat(target: Target) -> Result<Vec<u8>, Errno> {
    let process = target.process()?;
    let thread = target.thread().ok();
    let mm = thread.as_ref().and_then(|thread| thread.mm());
    let sizes = sizes(mm.as_deref());
    let (usage, of_children) = (process.accounting.ended_threads(), process.accounting.children());
    let (user, system) = processor_time(&process);
    let (tty, foreground) =
        process.family.with_session(crate::tty::of_session).map_or((0, -1), |(dev, pgrp)| (dev, pgrp as i32));
    let nice = thread.as_ref().map_or(0, |thread| thread.sched.nice());
    let Layout { code, stack, args, envs, brk } = shown_layout(thread.as_deref(), mm.as_deref());
    let mut out = format!("{} (", target.tid).into_bytes();
    out.extend_from_slice(&comm_of(thread.as_ref()));
    let ticks = time::to_ticks;
    let faults = usage.minor_faults + thread.as_ref().map_or(0, |thread| thread.minor_faults.load(Relaxed));
    let pending = thread.as_ref().map_or(0, |thread| thread.signals.pending.set().0 & 0x7fff_ffff);
    let blocked = thread.as_ref().map_or(0, |thread| thread.signals.blocked().0 & 0x7fff_ffff);
    let (ignored, caught) = dispositions(&process);
    let (policy, real_time) = scheduling(thread.as_deref());
    let priority = if real_time > 0 { -1 - i64::from(real_time) } else { i64::from(20 + nice) };
    // Fields 3 to 52; those that are not kept (stack and instruction pointers, wait channel, swap) are 0.
    let fields: [i128; 50] = [
        0,
        process.ppid().into(),
        process.pgid().into(),
        process.sid().into(),
        tty.into(),
        foreground.into(),
        0,
        faults.into(),
        of_children.minor_faults.into(),
        usage.major_faults.into(),
        of_children.major_faults.into(),
        ticks(user).into(),
        ticks(system).into(),
        ticks(of_children.user).into(),
        ticks(of_children.system).into(),
        priority.into(),
        nice.into(),
        process.threads.count() as i128,
        0,
        ticks(process.started).into(),
        (sizes.total * 4096).into(),
        sizes.resident.total().into(),
        process.limit(resource::RSS).into(),
        code.0.into(),
        code.1.into(),
        stack.into(),
        0,
        0,
        pending.into(),
        blocked.into(),
        (ignored & 0x7fff_ffff).into(),
        (caught & 0x7fff_ffff).into(),
        0,
        0,
        0,
        17,
        thread.as_ref().map_or(0, |thread| thread.sched.cpu().0).into(),
        real_time.into(),
        policy.number().into(),
        0,
        0,
        0,
        brk.into(),
        brk.into(),
        brk.into(),
        args.0.into(),
        args.1.into(),
        envs.0.into(),
        envs.1.into(),
        0,
    ];
    out.extend_from_slice(format!(") {}", letter(&process, thread.as_ref())).as_bytes());
    for field in &fields[1..] {
        out.extend_from_slice(format!(" {field}").as_bytes());
    }
    out.push(b'\n');
    Ok(out)
}

/// Scheduling policy and real-time priority; of a process without threads the usual ones.
fn scheduling(thread: Option<&Thread>) -> (Policy, u8) {
    thread.map_or((Policy::Normal, 0), |thread| (thread.sched.policy(), thread.sched.real_time_priority()))
}

pub(super) fn statm(target: Target) -> Result<Vec<u8>, Errno> {
    let mm = target.thread().ok().and_then(|thread| thread.mm());
    let sizes = sizes(mm.as_deref());
    let shared = sizes.resident.file + sizes.resident.shmem;
    Ok(format!("{} {} {shared} {} 0 {} 0\n", sizes.total, sizes.resident.total(), sizes.code, sizes.data + sizes.stack)
        .into_bytes())
}

pub(super) fn status(target: Target) -> Result<Vec<u8>, Errno> {
    let process = target.process()?;
    let thread = target.thread().ok();
    let mut name = b"Name:\t".to_vec();
    for byte in comm_of(thread.as_ref()) {
        // A newline in a name begins no line.
        match byte {
            b'\n' => name.extend_from_slice(b"\\n"),
            b'\\' => name.extend_from_slice(b"\\\\"),
            _ => name.push(byte),
        }
    }
    name.push(b'\n');
    // The list of groups may be long.
    let mut out = Lines::new();
    out.push(&name)?;
    identity(&mut out, target, &process, thread.as_ref()).map_err(lines::full)?;
    let mm = thread.as_ref().and_then(|thread| thread.mm());
    if let Some(mm) = &mm {
        memory(&mut out, &sizes(Some(mm))).map_err(lines::full)?;
    }
    signals(&mut out, &process, thread.as_ref()).map_err(lines::full)?;
    Ok(out.into_text())
}

fn identity(out: &mut Lines, target: Target, process: &Process, thread: Option<&ThreadRef>) -> core::fmt::Result {
    let letter = letter(process, thread);
    let word = match letter {
        'R' => "running",
        'S' => "sleeping",
        'D' => "disk sleep",
        'T' => "stopped",
        'Z' => "zombie",
        _ => "dead",
    };
    let umask = thread.and_then(|thread| thread.fs.get()).map_or(0, |fs| fs.umask());
    let size = thread.and_then(|thread| thread.files.get()).map_or(0, |files| files.capacity());
    writeln!(out, "Umask:\t{umask:04o}\nState:\t{letter} ({word})\nTgid:\t{}\nNgid:\t0", process.pid)?;
    writeln!(out, "Pid:\t{}\nPPid:\t{}\nTracerPid:\t0", target.tid, process.ppid())?;
    if let Some(thread) = thread {
        let creds = thread.creds();
        writeln!(out, "Uid:\t{}\t{}\t{}\t{}", creds.uid, creds.euid, creds.suid, creds.fsuid)?;
        writeln!(out, "Gid:\t{}\t{}\t{}\t{}", creds.gid, creds.egid, creds.sgid, creds.fsgid)?;
        write!(out, "FDSize:\t{size}\nGroups:\t")?;
        for group in &creds.groups {
            write!(out, "{group} ")?;
        }
        writeln!(out)?;
    }
    Ok(())
}

fn memory(out: &mut Lines, sizes: &Sizes) -> core::fmt::Result {
    let rows = [
        ("VmPeak", sizes.total),
        ("VmSize", sizes.total),
        ("VmLck", sizes.locked),
        ("VmPin", 0),
        ("VmHWM", sizes.peak),
        ("VmRSS", sizes.resident.total()),
        ("RssAnon", sizes.resident.anonymous),
        ("RssFile", sizes.resident.file),
        ("RssShmem", sizes.resident.shmem),
        ("VmData", sizes.data),
        ("VmStk", sizes.stack),
        ("VmExe", sizes.code),
        ("VmLib", sizes.libraries),
        ("VmPTE", sizes.tables),
        ("VmSwap", 0),
    ];
    for (name, pages) in rows {
        writeln!(out, "{name}:\t{:8} kB", pages * 4)?;
    }
    Ok(())
}

/// The signals that a process ignores, and those that it has handlers for.
fn dispositions(process: &Process) -> (u64, u64) {
    let (mut ignored, mut caught) = (0_u64, 0_u64);
    for signal in 1..=64_u8 {
        let handler = process.signals.action(signal).handler;
        let bit = 1 << (signal - 1);
        match handler {
            SIG_IGN => ignored |= bit,
            SIG_DFL => {}
            _ => caught |= bit,
        }
    }
    (ignored, caught)
}

fn signals(out: &mut Lines, process: &Process, thread: Option<&ThreadRef>) -> core::fmt::Result {
    let (ignored, caught) = dispositions(process);
    writeln!(out, "Threads:\t{}", process.threads.count())?;
    let queued = thread.map_or(0, |thread| thread.creds.with(|creds| creds.account.sum(Kind::Signals)));
    writeln!(out, "SigQ:\t{queued}/{}", process.limit(resource::SIGPENDING))?;
    if let Some(thread) = thread {
        writeln!(out, "SigPnd:\t{:016x}", thread.signals.pending.set().0)?;
        writeln!(out, "ShdPnd:\t{:016x}", process.signals.pending.set().0)?;
        writeln!(out, "SigBlk:\t{:016x}", thread.signals.blocked().0)?;
        writeln!(out, "SigIgn:\t{ignored:016x}\nSigCgt:\t{caught:016x}")?;
        let creds = thread.creds();
        writeln!(out, "CapInh:\t{:016x}\nCapPrm:\t{:016x}", creds.inheritable, creds.permitted)?;
        writeln!(out, "CapEff:\t{:016x}\nCapBnd:\t{:016x}\nCapAmb:\t{:016x}", creds.effective, creds.bounding, 0)?;
        writeln!(out, "NoNewPrivs:\t{}\nSeccomp:\t0", u8::from(creds.no_new_privs))?;
        writeln!(out, "Cpus_allowed:\t{:x}", thread.sched.affinity() & machine::cpu::online())?;
        let [voluntary, involuntary] =
            [&thread.sched.voluntary, &thread.sched.involuntary].map(|count| count.load(Relaxed));
        writeln!(out, "voluntary_ctxt_switches:\t{voluntary}\nnonvoluntary_ctxt_switches:\t{involuntary}")?;
    }
    Ok(())
}

//! Dumps of a megabyte whose records refer to each other, and logs of the same kind: what a command costs grows with
//! its input, not with the square of it.
//!
//! Each crowd was quadratic once: 30,000 threads cost a rule 30,000 walks over all of them, 10 s to minutes.

use crate::common::peak;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::folder;
use kwab::format::record::{
    Cause, CauseKind, Cpu, Frame, Image, Lock, Pte, Reg, RegId, RegisterRole, Registers, StackBounds, SyscallRecord,
    Task, TaskState, Vma,
};
use kwab::format::{BootId, DumpId, FileHeader, List, SectionKind};
use kwab::model::emit::DumpWriter;
use wait4::Wait4 as _;

/// Records of each kind in a crowd.
const MANY: u32 = 30_000;
/// What a command may take of a processor; a command that walks over all records for each takes more than twice that.
const MOST: Duration = Duration::from_secs(3);

type Out = DumpWriter<Vec<u8>>;

/// A hang, and the records that `each` writes for every number from 2 on.
fn hang(mut each: impl FnMut(&mut Out, u32)) -> Vec<u8> {
    let mut out = DumpWriter::new(Vec::new(), FileHeader::new(DumpId(7), BootId([1; 16])));
    let cause = Cause { kind: Some(CauseKind::STALL), message: Some(b"nothing runs"), ..Cause::default() };
    out.put(SectionKind::CAUSE, &cause);
    (2..MANY + 2).for_each(|number| each(&mut out, number));
    out.finish().expect("memory")
}

/// A thread that has slept for a long time.
fn asleep(number: u32, reason: &'static str) -> Task<'static> {
    Task {
        pid: Some(number),
        tid: Some(number),
        ppid: Some(1),
        comm: Some(b"t"),
        state: Some(TaskState::SLEEPING),
        wait_reason: Some(reason.as_bytes()),
        state_ns: Some(1 << 40),
        user_ip: Some(0x1000),
        ..Task::default()
    }
}

fn set(role: RegisterRole, tid: u32, values: &[(RegId, u64)], out: &mut Out) {
    let regs: Vec<Reg<'_>> =
        values.iter().map(|(id, value)| Reg { id: Some(*id), value: Some(*value), ..Reg::default() }).collect();
    let set = Registers {
        role: Some(role),
        pid: Some(tid),
        tid: Some(tid),
        regs: Some(List::new(&regs)),
        ..Registers::default()
    };
    out.put(SectionKind::REGISTERS, &set);
}

fn call(pid: u32, out: &mut Out) {
    let call = SyscallRecord {
        pid: Some(pid),
        tid: Some(pid),
        nr: Some(0),
        in_progress: Some(true),
        ..SyscallRecord::default()
    };
    out.put(SectionKind::SYSCALLS, &call);
}

fn task(out: &mut Out, task: Task<'_>) {
    out.put(SectionKind::TASKS, &task);
}

/// A crowd by its name.
type Crowd = (&'static str, Vec<u8>);

/// Threads that wait for each other.
fn waiting() -> Vec<Crowd> {
    vec![
        (
            "sleepers and the calls of others",
            hang(|out, number| {
                task(out, asleep(number, "poll"));
                call(number + MANY, out);
            }),
        ),
        (
            "threads of one process and its children",
            hang(|out, number| {
                task(out, Task { pid: Some(2), ..asleep(number, "wait4") });
                let state = Some(TaskState::ZOMBIE);
                task(out, Task { ppid: Some(2), state, ..asleep(number + MANY, "") });
            }),
        ),
        ("parents without a child", hang(|out, number| task(out, asleep(number, "wait4")))),
        (
            "parents in vfork",
            hang(|out, number| {
                task(out, Task { page_table_root: Some(4096), ..asleep(number, "vfork") });
            }),
        ),
        (
            "pairs of threads in futexes",
            hang(|out, number| {
                let wait_object = Some(0x1000);
                task(out, Task { pid: Some(number / 2), wait_object, deadline_ns: Some(5), ..asleep(number, "futex") });
                set(RegisterRole::USER, number + MANY, &[(RegId::RIP, 0x1000)], out);
            }),
        ),
    ]
}

/// A backtrace that no stack could hold, and mappings that lie over each other.
fn piles() -> Vec<Crowd> {
    let base = 0x5555_5500_0000;
    vec![
        (
            "frames of one backtrace",
            hang(|out, number| {
                for index in [2 * number, 2 * number + 1] {
                    let symbol = format!("function_{index}");
                    let (addr, symbol) = (Some(0xffff_ffff_8100_0000 + u64::from(index) * 16), Some(symbol.as_bytes()));
                    let frame = Frame { trace: Some(0), index: Some(index), addr, symbol, ..Frame::default() };
                    out.put(SectionKind::CAUSE, &Frame { pid: Some(1), tid: Some(1), ..frame });
                }
            }),
        ),
        (
            "entries below mappings that overlap",
            hang(|out, number| {
                let (pid, at) = (Some(2), base + u64::from(number) * 4096);
                let end = Some(base + (u64::from(MANY) << 13));
                out.put(SectionKind::MEMORY_MAP, &Vma { pid, start: Some(at), end, prot: Some(5), ..Vma::default() });
                let entry = Pte { pid, vaddr: Some(at), paddr: Some(at), size: Some(4096), ..Pte::default() };
                out.put(SectionKind::PAGE_TABLE, &Pte { rights: Some(11), ..entry });
            }),
        ),
    ]
}

/// Processors, images and backtraces beside those that they do not belong to.
fn strangers() -> Vec<Crowd> {
    vec![
        (
            "stopped processors and the stacks of others",
            hang(|out, number| {
                set(RegisterRole::STOPPED, number, &[(RegId::RSP, 0x2000), (RegId::RBP, 0x3000)], out);
                let low = u64::from(number) << 20;
                let stack = StackBounds { low: Some(low), high: Some(low + 4096), ..StackBounds::default() };
                out.put(SectionKind::STACKS, &stack);
            }),
        ),
        (
            "stopped processors and the tasks of others",
            hang(|out, number| {
                task(out, asleep(number, "x"));
                set(RegisterRole::STOPPED, number + MANY, &[(RegId::CS, 3), (RegId::RIP, 0x1000)], out);
            }),
        ),
        (
            "deadlines that have passed, on processors of others",
            hang(|out, number| {
                task(out, Task { deadline_ns: Some(1), last_cpu: Some(number), ..asleep(number, "nanosleep") });
                let cpu = Cpu { number: Some(number + MANY), ..Cpu::default() };
                out.put(SectionKind::REGISTERS, &cpu);
            }),
        ),
        (
            "locks and those that wait",
            hang(|out, number| {
                let object = Some(u64::from(number) << 12);
                task(out, Task { wait_object: object, wait_tid: Some(number + 1), ..asleep(number, "mutex") });
                let lock = Lock { addr: object, holder_tid: Some(number + 1), ..Lock::default() };
                out.put(SectionKind::LOCKS, &lock);
            }),
        ),
        (
            "images and the mappings of others",
            hang(|out, number| {
                let path = Some(&b"/bin/one"[..]);
                out.put(SectionKind::IMAGES, &Image { path, pid: Some(2), ..Image::default() });
                let start = u64::from(number) << 12;
                let (start, end, path) = (Some(start), Some(start + 4096), Some(&b"/bin/two"[..]));
                out.put(SectionKind::MEMORY_MAP, &Vma { pid: Some(2), start, end, path, ..Vma::default() });
            }),
        ),
        (
            "backtraces of processes that are not listed",
            hang(|out, number| {
                task(out, asleep(number, "x"));
                let addr = Some(0xffff_8000_0000_0000 + u64::from(number));
                let frame = Frame { trace: Some(number), addr, pid: Some(number + MANY), ..Frame::default() };
                out.put(SectionKind::CAUSE, &frame);
            }),
        ),
    ]
}

/// What a run took of a processor, and its status.
fn run(folder: &Path, arguments: &[&str]) -> (Duration, Option<i32>) {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("kwab"));
    command.args(arguments).current_dir(folder);
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it runs");
    let used = child.wait4().expect("it ends");
    (used.rusage.utime + used.rusage.stime, used.status.code())
}

#[test]
fn records_that_refer_to_each_other_cost_a_look_up_each() {
    let folder = folder();
    let mut slow = Vec::new();
    for (name, bytes) in waiting().into_iter().chain(strangers()).chain(piles()) {
        std::fs::write(folder.path().join("crowd.kwab"), &bytes).expect("written");
        for arguments in [&["triage"][..], &["inspect"], &["export", "--to", "folded"]] {
            let (took, status) = run(folder.path(), &[arguments, &["crowd.kwab"]].concat());
            println!("{name}, {} bytes: {took:?}: {arguments:?}", bytes.len());
            if took > MOST || !matches!(status, Some(0..=3)) {
                slow.push(format!("{name}: {arguments:?}: {took:?}, {status:?}"));
            }
        }
    }
    assert!(slow.is_empty(), "{slow:#?}");
}

#[test]
fn folded_stacks_hold_the_records_of_a_dump_once() {
    let folder = folder();
    let (_, bytes) = strangers().pop().expect("a crowd");
    std::fs::write(folder.path().join("crowd.kwab"), &bytes).expect("written");
    let (status, peak) = peak::of(folder.path(), &["export", "--to", "folded", "crowd.kwab"]);
    let promised = (64 << 20) + 4 * bytes.len() as u64;
    assert_eq!(status, Some(0));
    assert!(peak <= promised, "{} MiB of {}", peak >> 20, promised >> 20);
}

#[test]
fn a_console_of_500_boots_that_all_panic_is_not_imported_for_each_of_them() {
    let folder = folder();
    let boot = |number: u32| {
        let panic = format!("Kernel panic - not syncing: x{number}");
        format!("[    0.000000] Linux version 6.1.0\n[    1.000000] {panic}\n[    1.000000] ---[ end {panic} ]---\n")
    };
    let console: String = (0..500).map(boot).collect();
    std::fs::write(folder.path().join("console.log"), console).expect("written");
    let (took, status) = run(folder.path(), &["follow", "console.log", "--once", "--silence", "1", "-o", "dumps"]);
    println!("{took:?}, {status:?}");
    let dumps = std::fs::read_dir(folder.path().join("dumps")).expect("a folder").count();
    assert_eq!((status, dumps), (Some(1), 500));
    for number in [1, 2, 8, 9, 10, 11, 250, 500] {
        let mut triage = Command::new(assert_cmd::cargo::cargo_bin("kwab"));
        let said = triage.args(["triage", &format!("dumps/console-{number}.kwab")]).current_dir(folder.path()).output();
        let said = String::from_utf8(said.expect("it runs").stdout).expect("text");
        assert!(said.contains(&format!("explicit panic: x{} ", number - 1)), "{number}: {said}");
    }
    // It took a minute when the whole console was imported again for each of the boots.
    assert!(took < 3 * MOST, "{took:?}");
}

#[test]
fn a_line_of_many_frames_costs_what_it_is_long() {
    let folder = folder();
    // Of 295 KB it took 9 s when the rest was searched again for each frame, and four times that of twice as many.
    let line = format!("panic: x Stopped at y{}{}\n", " ".repeat(200), "a() at b ".repeat(60_000));
    std::fs::write(folder.path().join("line.log"), line).expect("written");
    let (took, status) = run(folder.path(), &["import", "line.log", "-o", "line.kwab"]);
    println!("{took:?}, {status:?}");
    assert!(matches!(status, Some(0..=3)) && took < MOST, "{took:?}, {status:?}");
}

//! Dumps to look at: imported from real logs, and made with everything a dump can have, damaged in every way.

use std::path::Path;

use kwab::format::record::*;
use kwab::format::{BootId, DumpId, FileHeader, List, RecordType, SectionKind};
use kwab::import::emit::DumpWriter;

/// Imports the real logs of the repository.
pub(crate) fn import_logs(folder: &Path) {
    let logs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testing/data/logs");
    for name in ["kevlar-panic-socket", "kevlar-pipe-profile", "kevlar-segv-children", "linux-6.1-sysrq-panic"] {
        let log = std::fs::File::open(logs.join(format!("{name}.log"))).expect("a log of the repository");
        let options = kwab::import::Options { source: format!("{name}.log"), folder: Some(folder.to_path_buf()) };
        let (_, dumps) = kwab::import::import(log, &options, &mut |_| {}).expect("imported");
        for dump in dumps {
            let file = dump.file.expect("written");
            file.name(&folder.join(format!("{name}.kwab")), kwab::output::Replace::Force).expect("named");
        }
    }
}

/// Copies dumps that our kernel wrote when a known bug was planted.
pub(crate) fn of_our_kernel(folder: &Path) {
    let dumps = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testing/dumps");
    for name in ["null-dereference.kwab", "cache-writable.kwab"] {
        std::fs::copy(dumps.join(name), folder.join(name)).expect("a dump of the repository");
    }
}

/// A dump with everything, one with nothing, and damaged ones.
pub(crate) fn make(folder: &Path) {
    let rich = rich();
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.join(name), bytes).expect("written");
    write("rich.kwab", &rich);
    write("empty.kwab", &DumpWriter::new(Vec::new(), header(9)).finish().expect("written"));
    write("damaged-cut.kwab", &rich[..rich.len() * 3 / 5]);
    let mut flipped = rich.clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 0x10;
    write("damaged-bit.kwab", &flipped);
    let mut zeroed = rich.clone();
    zeroed[200..900].fill(0);
    write("damaged-hole.kwab", &zeroed);
    write("damaged-text.kwab", b"this is a text and no dump\n");
    write("damaged-nothing.kwab", b"");
}

/// Events of the long dump.
pub(crate) const LONG_EVENTS: usize = 150_000;

/// A dump that is longer than what is held whole, with more sections of events than conclusions need.
pub(crate) fn long(path: &Path) {
    let file = std::io::BufWriter::new(std::fs::File::create(path).expect("created"));
    let mut out = DumpWriter::new(file, header(8));
    let cause = Cause { kind: Some(CauseKind::PANIC), message: Some(b"long"), ..Cause::default() };
    out.put(SectionKind::CAUSE, &cause);
    for number in 0..LONG_EVENTS as u64 {
        let fault = PageFault { pid: Some(3), vaddr: Some(number << 12), stamp: at(number, 0), ..PageFault::default() };
        out.put(SectionKind::EVENTS, &fault);
    }
    let mut page = [0u8; 4096];
    let mut seed = 1u64;
    for number in 0..(34u64 << 20) / 4096 {
        for word in page.chunks_mut(8) {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            word.copy_from_slice(&seed.to_le_bytes());
        }
        let vaddr = Some(number << 12);
        let memory = Memory { kind: Some(MemoryKind::PAGE), vaddr, bytes: Some(&page), ..Memory::default() };
        out.put(SectionKind::MEMORY, &memory);
    }
    drop(out.finish().expect("written"));
}

fn header(number: u64) -> FileHeader {
    FileHeader::new(DumpId(number), BootId([number as u8; 16]))
}

fn at(ns: u64, cpu: u32) -> Stamp<'static> {
    Stamp { ns: Some(ns), cpu: Some(cpu), ..Stamp::default() }
}

/// A crash of a program on a kernel with two processors that recorded everything.
pub(crate) fn rich() -> Vec<u8> {
    let mut out = DumpWriter::new(Vec::new(), header(7));
    identity(&mut out);
    death(&mut out);
    memory(&mut out);
    tasks(&mut out);
    events(&mut out);
    out.finish().expect("written")
}

type Out = DumpWriter<Vec<u8>>;

fn put<'r, R: RecordType<'r>>(out: &mut Out, kind: SectionKind, record: &R) {
    out.put(kind, record);
}

fn identity(out: &mut Out) {
    let identity = Identity {
        kernel_name: Some(b"kwab-kernel"),
        kernel_version: Some(b"0.4.1"),
        kernel_build_id: Some(&[0x7f, 0x3a, 1, 2]),
        arch: Some(Arch::X86_64),
        reason: Some(Reason::PROCESS_CRASH),
        cpus: Some(2),
        tsc_hz: Some(1_000_000_000),
        ram_bytes: Some(512 << 20),
        mono_ns: Some(3_100_000_000),
        wall_ns: Some(1_700_000_000_000_000_000),
        ..Identity::default()
    };
    put(out, SectionKind::IDENTITY, &identity);
}

fn death(out: &mut Out) {
    let cause = Cause {
        kind: Some(CauseKind::FATAL_SIGNAL),
        pid: Some(130),
        tid: Some(130),
        cmdline: Some(b"/bin/grep -r x /tmp"),
        signal: Some(11),
        signal_name: Some(b"SIGSEGV"),
        fault_addr: Some(0x51_fbf0),
        ip: Some(0x46_2a1d),
        sp: Some(0x9fff_fe90),
        vector: Some(14),
        error_code: Some(7),
        in_kernel: Some(false),
        stamp: at(3_000_900_000, 1),
        ..Cause::default()
    };
    put(out, SectionKind::CAUSE, &cause);
    let values = [
        (RegId::RIP, 0x46_2a1d),
        (RegId::RSP, 0x9fff_fe90),
        (RegId::RBP, 0x9fff_fec0),
        (RegId::RAX, 0),
        (RegId::RDI, 0x51_fbf0),
        (RegId::RSI, 0x6b6b_6b6b_6b6b_6b6b),
        (RegId::RFLAGS, 0x10246),
        (RegId::CR2, 0x51_fbf0),
    ];
    let regs = values.map(|(id, value)| Reg::new(id, value));
    let set = Registers {
        role: Some(RegisterRole::FAULT),
        pid: Some(130),
        arch: Some(Arch::X86_64),
        vector: Some(14),
        error_code: Some(7),
        regs: Some(List::new(&regs)),
        ..Registers::default()
    };
    put(out, SectionKind::REGISTERS, &set);
    let code = [0x48, 0x8b, 0x07, 0xff, 0xd0, 0x48, 0x89, 0xc3, 0xc3];
    let code = Memory {
        kind: Some(MemoryKind::CODE),
        vaddr: Some(0x46_2a1a),
        pid: Some(130),
        bytes: Some(&code),
        marked: Some(3),
        ..Memory::default()
    };
    put(out, SectionKind::STACKS, &code);
    let mut stack = Vec::new();
    for word in [0x51_fbf0_u64, 0x46_2a1e, 0x9fff_fee0, 0x40_d3b1, 0, 0x7468_6769_7300_0a3a, 0x9fff_fe90, 0x51_c000] {
        stack.extend_from_slice(&word.to_le_bytes());
    }
    let stack = Memory {
        kind: Some(MemoryKind::USER_STACK),
        vaddr: Some(0x9fff_fe90),
        pid: Some(130),
        bytes: Some(&stack),
        wanted: Some(4096),
        ..Memory::default()
    };
    put(out, SectionKind::STACKS, &stack);
    let page: Vec<u8> = (0..4096u32).map(|byte| if byte < 0xbf0 { (byte % 251) as u8 } else { 0 }).collect();
    let page = Memory {
        kind: Some(MemoryKind::PAGE),
        vaddr: Some(0x51_c000),
        pid: Some(130),
        bytes: Some(&page),
        ..Memory::default()
    };
    put(out, SectionKind::MEMORY, &page);
}

fn memory(out: &mut Out) {
    type Mapping = (u64, u64, u32, Option<&'static [u8]>, Option<&'static [u8]>, u64);
    let mappings: [Mapping; 6] = [
        (0x40_0000, 0x51_9000, 5, Some(b"/bin/busybox"), None, 0),
        (0x51_9000, 0x51_c000, 1, Some(b"/bin/busybox"), None, 0x11_9000),
        (0x51_c000, 0x51_cbf0, 3, None, Some(b"[anon]"), 0),
        (0x51_cbf0, 0x52_1bf8, 3, Some(b"/bin/busybox"), None, 0x11_bbf0),
        (0x52_2000, 0x52_3000, 3, None, Some(b"[heap]"), 0),
        (0x9ffe_0000, 0xa000_0000, 3, None, Some(b"[stack]"), 0),
    ];
    for (start, end, prot, path, name, offset) in mappings {
        let vma = Vma {
            pid: Some(130),
            start: Some(start),
            end: Some(end),
            prot: Some(prot),
            path,
            name,
            file_offset: path.map(|_| offset),
            ..Vma::default()
        };
        put(out, SectionKind::MEMORY_MAP, &vma);
    }
    for number in 0..64u64 {
        let present = number % 5 != 4;
        let raw = 0x3f1d_7005 + number * 0x1000;
        let pte = Pte {
            pid: Some(130),
            vaddr: Some(0x50_0000 + number * 0x1000),
            raw: Some(if present { raw } else { 0 }),
            paddr: Some(raw & !0xfff),
            size: Some(4096),
            rights: Some(if present { 0b0001_1001 | u32::from(number > 27) << 1 } else { 0 }),
            refcount: Some(1 + number % 3),
            ..Pte::default()
        };
        put(out, SectionKind::PAGE_TABLE, &pte);
    }
    for number in 0..8u64 {
        let wrong = number == 5;
        let check = PageCheck {
            pid: Some(130),
            vaddr: Some(0x51_7000 + number * 0x1000),
            path: Some(b"/bin/busybox"),
            file_offset: Some(0x11_7000 + number * 0x1000),
            length: Some(4096),
            first_diff: wrong.then_some(0xbf0),
            expected: wrong.then_some(&[0xc0, 0x1f, 0x52, 0x00]),
            actual: wrong.then_some(&[0, 0, 0, 0]),
            result: Some(if wrong { CheckResult::DIFFERENT } else { CheckResult::EQUAL }),
            ..PageCheck::default()
        };
        put(out, SectionKind::PAGE_CHECKS, &check);
    }
}

fn tasks(out: &mut Out) {
    let names: [(&[u8], u32, TaskState); 4] = [
        (b"init", 1, TaskState::SLEEPING),
        (b"sh", 121, TaskState::BLOCKED),
        (b"grep", 130, TaskState::RUNNING),
        (b"kswapd", 7, TaskState::BLOCKED),
    ];
    for (comm, pid, state) in names {
        let blocked = state == TaskState::BLOCKED;
        let task = Task {
            pid: Some(pid),
            tid: Some(pid),
            ppid: Some(if pid == 1 { 0 } else { 1 }),
            comm: Some(comm),
            state: Some(state),
            wait_reason: blocked.then_some(b"mutex"),
            wait_object: blocked.then_some(if pid == 7 { 0xffff_8000_0000_1000 } else { 0xffff_8000_0000_2000 }),
            last_cpu: Some(pid % 2),
            state_ns: Some(2_500_000),
            ..Task::default()
        };
        put(out, SectionKind::TASKS, &task);
    }
    for (name, addr, holder, waiter) in
        [(&b"inode table"[..], 0xffff_8000_0000_1000_u64, 121, 7), (&b"page cache"[..], 0xffff_8000_0000_2000, 7, 121)]
    {
        let lock = Lock {
            addr: Some(addr),
            name: Some(name),
            kind: Some(LockKind::MUTEX),
            holder_tid: Some(holder),
            held_ns: Some(40_000_000),
            location: Some(b"fs/inode.rs:120"),
            ..Lock::default()
        };
        put(out, SectionKind::LOCKS, &lock);
        let wait = LockWait {
            addr: Some(addr),
            name: Some(name),
            waiter_tid: Some(waiter),
            waited_ns: Some(39_000_000),
            ..LockWait::default()
        };
        put(out, SectionKind::LOCKS, &wait);
    }
    let entries =
        [(0, &b"read"[..], 900u64, 45_000_000u64), (1, b"write", 120, 9_000_000), (257, b"openat", 40, 600_000)].map(
            |(nr, name, calls, total)| SyscallProfileEntry {
                nr: Some(nr),
                name: Some(name),
                calls: Some(calls),
                total_ns: Some(total),
                avg_ns: Some(total / calls),
                min_ns: Some(120),
                max_ns: Some(total / calls * 9),
                ..SyscallProfileEntry::default()
            },
        );
    let profile = SyscallProfile { entries: Some(List::new(&entries)), ..SyscallProfile::default() };
    put(out, SectionKind::COUNTERS, &profile);
    put(
        out,
        SectionKind::LOG,
        &LogChunk { bytes: Some(b"booting\nmounted /\nWARN: low memory\npid 130 died\n"), ..LogChunk::default() },
    );
}

fn events(out: &mut Out) {
    for number in 0..60u64 {
        let cpu = (number % 2) as u32;
        let pid = Some(if cpu == 0 { 121 } else { 130 });
        let stamp = at(3_000_000_000 + number * 15_000, cpu);
        let nr = [0, 1, 12][(number % 3) as usize];
        let entry = SyscallEntry {
            pid,
            nr: Some(nr),
            arg0: Some(3),
            arg1: Some(0x9fff_fc40),
            arg2: Some(4096),
            stamp,
            ..SyscallEntry::default()
        };
        put(out, SectionKind::EVENTS, &entry);
        let result = Some(if number % 7 == 6 { -2 } else { 1180 });
        let stamp = at(3_000_004_000 + number * 15_000, cpu);
        put(out, SectionKind::EVENTS, &SyscallExit { pid, nr: Some(nr), result, stamp, ..SyscallExit::default() });
        let spans: [(&[u8], &[u8], u64); 6] = [
            (b"page_fault", b"enter", 5_000),
            (b"find_vma", b"enter", 5_400),
            (b"find_vma", b"exit", 6_200),
            (if number % 3 == 0 { b"read_page" } else { b"zero_page" }, b"enter", 6_500),
            (if number % 3 == 0 { b"read_page" } else { b"zero_page" }, b"exit", 8_800),
            (b"page_fault", b"exit", 9_000),
        ];
        for (name, dir, ns) in spans {
            let stamp = Stamp { tsc: Some(number * 15_000 + ns), ..at(3_000_000_000 + number * 15_000 + ns, cpu) };
            let span = Htrace {
                name: Some(name),
                dir: Some(dir),
                depth: Some(0),
                data: Some(0x51_c000),
                stamp,
                ..Htrace::default()
            };
            put(out, SectionKind::EVENTS, &span);
        }
    }
    let fault = PageFault {
        pid: Some(130),
        vaddr: Some(0x51_fbf0),
        ip: Some(0x46_2a1d),
        reason: Some(b"CAUSED_BY_USER"),
        resolved: Some(false),
        stamp: at(3_000_890_000, 1),
        ..PageFault::default()
    };
    put(out, SectionKind::EVENTS, &fault);
    let signal = Signal {
        pid: Some(130),
        signal: Some(11),
        signal_name: Some(b"SIGSEGV"),
        action: Some(b"terminate"),
        ip: Some(0x46_2a1d),
        stamp: at(3_000_895_000, 1),
        ..Signal::default()
    };
    put(out, SectionKind::EVENTS, &signal);
}

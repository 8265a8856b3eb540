//! A machine whose memory holds a small kernel of ours by hand: its table, three threads in a tree of two levels, and a
//! zombie.

mod recorders;

use kwab_format::record::TaskState;

use super::super::of_core;
use super::super::tests::{core_of, file, qemu_note};
use super::Ours;
use super::tasks::Thread;

/// Where the image is mapped, from physical address 0 on, and its bytes.
const IMAGE: u64 = 0xffff_ffff_8000_0000;
const LENGTH: usize = 0x3_0000;
/// Where its parts lie in it.
const ROOT: usize = 0x1000;
const TABLE: usize = 0x5000;
const ENTRIES: usize = 0x5100;
const THREADS: usize = 0x7000;
const ROOT_NODE: usize = 0x7100;
const LEAVES: usize = 0x7300;
const PROCESSES: usize = 0x7800;
const PROCESS_NODE: usize = 0x7900;
const TEXTS: usize = 0x7c00;
const TICKS: usize = 0x7d00;
const CPUS: usize = 0x7d80;
const BLOCK: usize = 0x7e00;
const PLACE: usize = 0x7e80;
const LOG: usize = 0x7f00;
const THREAD: usize = 0x8000;
const PROCESS: usize = 0xa000;
const STACK: usize = 0x1_0000;
/// What an `Arc` has before its value.
const COUNTS: usize = 16;
/// Nanoseconds of one second.
const SECOND: u64 = 1_000_000_000;

fn put(memory: &mut [u8], at: usize, bytes: &[u8]) {
    memory[at..at + bytes.len()].copy_from_slice(bytes);
}

fn words(memory: &mut [u8], at: usize, words: &[u64]) {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    put(memory, at, &bytes);
}

fn mapped(at: usize) -> u64 {
    IMAGE + at as u64
}

/// Members of a thread, 8 bytes each behind the one before.
const OF_THREAD: [&str; 22] = [
    "thread.sp",
    "thread.state",
    "thread.cpu",
    "thread.frame_end",
    "thread.stack_low",
    "thread.stack_high",
    "sched.state",
    "sched.cpu",
    "sched.nice",
    "sched.since",
    "sched.ran",
    "sched.idle",
    "wait.reason",
    "wait.object",
    "wait.deadline",
    "wait.thread",
    "wait.progress",
    "task.ids",
    "task.process",
    "task.memory",
    "task.pending",
    "task.blocked",
];

fn of_thread(name: &str) -> usize {
    8 * OF_THREAD.iter().position(|member| *member == name).expect("a member")
}

fn table() -> Vec<(&'static str, u64)> {
    let members = OF_THREAD.iter().map(|name| (*name, of_thread(name) as u64));
    let others = [
        ("task.name", 0xc0),
        ("arc.value", COUNTS as u64),
        ("frame.size", 32),
        ("frame.syscall", 8),
        ("frame.ip", 16),
        ("frame.sp", 24),
        ("process.pid", 0),
        ("process.parent", 8),
        ("process.gone", 16),
        ("process.pending", 24),
        ("threads", mapped(THREADS)),
        ("threads.map", 16),
        ("threads.node.length", 0x8e),
        ("threads.node.values", 8),
        ("threads.node.size", 8),
        ("threads.node.edges", 0x90),
        ("processes", mapped(PROCESSES)),
        ("processes.map", 16),
        ("processes.node.length", 0x196),
        ("processes.node.values", 24),
        ("processes.node.size", 32),
        ("processes.node.edges", 0x198),
        ("map.root", 0),
        ("map.height", 8),
        ("map.count", 16),
        ("reasons", mapped(TEXTS)),
        ("reasons.length", 28),
        ("release", mapped(TEXTS)),
        ("release.length", 5),
        ("version", mapped(TEXTS) + 2),
        ("version.length", 3),
        ("image", mapped(0x3000)),
        ("image.linked", mapped(0x1000)),
        ("ticks", mapped(TICKS)),
        ("ticks.stride", 64),
        ("ticks.at", 8),
        ("cpus", mapped(CPUS)),
        ("cpus.count", 1),
        ("cpu.awaits", 0x40),
        ("cpu.awaits_taken", 0x48),
        ("cpu.awaits_from", 0x50),
        ("lock.holder", 0),
        ("lock.taken", 8),
        ("place.file", 0),
        ("place.file_length", 8),
        ("place.line", 16),
        ("place.column", 20),
        ("held.threads", mapped(THREADS)),
        ("log", mapped(LOG)),
        ("log.bytes", 16),
        ("log.size", 32),
        ("log.written", 8),
    ];
    members.chain(others).chain(recorders::entries()).collect()
}

/// Where a thread with this number begins; its counts lie before it.
fn place(number: usize) -> usize {
    THREAD + 0x400 * number + COUNTS
}

fn set(memory: &mut [u8], number: usize, name: &str, value: u64) {
    words(memory, place(number) + of_thread(name), &[value]);
}

fn thread(memory: &mut [u8], number: usize, ids: (u32, u32), state: u64, comm: &[u8]) {
    set(memory, number, "task.ids", u64::from(ids.0) << 32 | u64::from(ids.1));
    set(memory, number, "task.process", mapped(PROCESS));
    set(memory, number, "sched.state", state);
    set(memory, number, "sched.since", 2 * SECOND);
    set(memory, number, "wait.deadline", u64::MAX);
    set(memory, number, "thread.state", u64::from(state == 0));
    put(memory, place(number) + 0xc0, comm);
}

fn machine() -> Vec<u8> {
    let mut memory = vec![0; LENGTH];
    words(&mut memory, ROOT + 8 * 511, &[0x2003]);
    words(&mut memory, 0x2000 + 8 * 510, &[0x3003]);
    words(&mut memory, 0x3000, &[0x83]);
    put(&mut memory, TABLE, b"KWAB.DESCRIPTION");
    let entries = table();
    words(&mut memory, TABLE + 16, &[1, mapped(TABLE), 1, mapped(ENTRIES), entries.len() as u64]);
    for (number, (name, value)) in entries.into_iter().enumerate() {
        put(&mut memory, ENTRIES + 32 * number, name.as_bytes());
        words(&mut memory, ENTRIES + 32 * number + 24, &[value]);
    }
    // A root with one thread, and a leaf with one on each side of it.
    words(&mut memory, THREADS + 16, &[mapped(ROOT_NODE), 1, 3]);
    for (node, number) in [(LEAVES, 0), (ROOT_NODE, 1), (LEAVES + 0x100, 2)] {
        words(&mut memory, node + 8, &[mapped(place(number) - COUNTS)]);
        put(&mut memory, node + 0x8e, &[1, 0]);
    }
    words(&mut memory, ROOT_NODE + 0x90, &[mapped(LEAVES), mapped(LEAVES + 0x100)]);
    thread(&mut memory, 0, (1, 1), 2, b"init");
    thread(&mut memory, 1, (2, 2), 4, b"exam");
    thread(&mut memory, 2, (2, 3), 0, b"spins");
    set(&mut memory, 1, "wait.reason", 2);
    set(&mut memory, 1, "wait.object", 0xabc0);
    set(&mut memory, 1, "wait.thread", 3);
    // What the switch pushed, and the caller's frame above.
    let sp = STACK + 0x100;
    set(&mut memory, 1, "thread.sp", mapped(sp));
    set(&mut memory, 1, "thread.stack_low", mapped(STACK));
    set(&mut memory, 1, "thread.stack_high", mapped(STACK + 0x200));
    words(&mut memory, sp, &[15, 14, 13, 12, 3, mapped(sp + 0x60), 0x1111]);
    words(&mut memory, sp + 0x60, &[mapped(sp + 0x80), 0x2222, 0, 0, 0, 0x3333]);
    // The registers of its program end the stack.
    set(&mut memory, 1, "thread.frame_end", mapped(STACK + 0x200));
    words(&mut memory, STACK + 0x1e0, &[0, 56, 0x40_1000, 0x7f00]);
    words(&mut memory, PROCESSES + 16, &[mapped(PROCESS_NODE), 0, 2]);
    put(&mut memory, PROCESS_NODE + 0x196, &[2, 0]);
    for (number, (pid, gone)) in [(2, 0), (9, 1)].into_iter().enumerate() {
        let at = PROCESS + 0x100 * number;
        words(&mut memory, PROCESS_NODE + 24 + 32 * number, &[mapped(at)]);
        words(&mut memory, at + COUNTS, &[pid, 1, gone, 0x100]);
    }
    put(&mut memory, TEXTS, b"vfork\na mutex of the kernel\n");
    words(&mut memory, TICKS + 8, &[5 * SECOND]);
    // Its one processor has the lock of the threads, and spins for it.
    words(&mut memory, CPUS, &[mapped(BLOCK)]);
    words(&mut memory, BLOCK + 0x40, &[mapped(THREADS), mapped(THREADS) + 8, mapped(PLACE)]);
    words(&mut memory, THREADS, &[1, mapped(PLACE)]);
    words(&mut memory, PLACE, &[mapped(TEXTS), 5, 7 | 9 << 32]);
    // 40 bytes were logged into a ring of 32.
    words(&mut memory, LOG + 8, &[40]);
    put(&mut memory, LOG + 16, b"6789\n<6>log of 1\n<6>log of 2\n<6>");
    recorders::fill(&mut memory);
    memory
}

fn read(memory: Vec<u8>) -> Option<Ours> {
    let core = core_of(&[(0, memory)], &qemu_note(ROOT as u64, mapped(0x4000)));
    of_core(file(&core)).ok()?.ours
}

fn tids(ours: &Ours) -> Vec<u32> {
    ours.threads.iter().map(|thread| thread.tid).collect()
}

#[test]
fn threads_are_read_by_the_table_that_the_kernel_has_of_itself() {
    let ours = read(machine()).expect("a kernel of ours");
    assert_eq!((ours.missing.as_slice(), ours.now), (&[][..], Some(5 * SECOND)));
    assert_eq!((ours.release.as_deref(), ours.offset), (Some("vfork (kwab) ork"), Some(0x2000)));
    assert_eq!(tids(&ours), [1, 2, 3, 9]);
    let [init, exam, spins, zombie] = ours.threads.as_slice() else { panic!("four") };
    assert_eq!((init.name.as_deref(), init.state), (Some(&b"init"[..]), Some(TaskState::SLEEPING)));
    assert_eq!((init.object, init.saved, init.user), (None, None, None));
    assert_eq!((exam.pid, exam.parent, exam.state), (2, Some(1), Some(TaskState::BLOCKED)));
    assert_eq!((exam.reason.as_deref(), exam.object), (Some("a mutex of the kernel"), Some(0xabc0)));
    assert_eq!((exam.waits_on, exam.deadline, exam.since), (Some(3), None, Some(2 * SECOND)));
    let saved = exam.saved.expect("parked");
    assert_eq!(saved.pointers, [0x1111, mapped(STACK + 0x138), mapped(STACK + 0x160)]);
    assert_eq!((saved.others, exam.frames.as_slice()), ([3, 12, 13, 14, 15], &[0x1111, 0x2222, 0x3333][..]));
    assert_eq!((exam.stack.len(), exam.user), (0xc8, Some((0x40_1000, 0x7f00, Some(56)))));
    assert_eq!(exam.signals, Some((0x100, 0)));
    assert_eq!((spins.pid, spins.state, spins.runs, spins.saved), (2, Some(TaskState::RUNNING), true, None));
    let left = Thread { pid: 9, tid: 9, parent: Some(1), state: Some(TaskState::ZOMBIE), ..Thread::default() };
    assert_eq!(*zombie, left);
}

#[test]
fn spin_locks_with_their_places_and_the_log_are_read() {
    let ours = read(machine()).expect("a kernel of ours");
    let [named, spun] = ours.held.as_slice() else { panic!("{:?}", ours.held) };
    assert_eq!((named.name.as_deref(), named.addr, named.cpu), (Some("threads"), None, 0));
    assert_eq!(named.taken.as_deref(), Some("vfork:7:9"));
    assert_eq!(
        (spun.name.as_deref(), spun.addr, spun.taken.as_deref()),
        (None, Some(mapped(THREADS)), Some("vfork:7:9"))
    );
    let [awaited] = ours.awaited.as_slice() else { panic!("{:?}", ours.awaited) };
    assert_eq!((awaited.addr, awaited.cpu), (mapped(THREADS), 0));
    assert_eq!(awaited.place.as_deref(), Some("vfork:7:9"));
    assert_eq!((ours.log.0, String::from_utf8_lossy(&ours.log.1).as_ref()), (8, "log of 1\n<6>log of 2\n<6>6789\n<6>"));
}

#[test]
fn a_table_of_another_version_is_told_and_one_that_lies_elsewhere_is_none() {
    let mut memory = machine();
    words(&mut memory, TABLE + 16, &[2]);
    let ours = read(memory).expect("a kernel of ours");
    assert!(ours.threads.is_empty() && ours.missing[0].contains("version 2"), "{:?}", ours.missing);
    let mut memory = machine();
    words(&mut memory, TABLE + 24, &[mapped(TABLE + 8)]);
    assert!(read(memory).is_none());
}

#[test]
fn a_circle_of_nodes_ends_and_is_told() {
    let mut memory = machine();
    words(&mut memory, THREADS + 16, &[mapped(ROOT_NODE), 16, 3]);
    words(&mut memory, ROOT_NODE + 0x90, &[mapped(ROOT_NODE); 12]);
    let ours = read(memory).expect("a kernel of ours");
    assert!(ours.missing[0].contains("map of threads is broken"), "{:?}", ours.missing);
    assert_eq!(tids(&ours).last(), Some(&9), "the processes are still read");
}

#[test]
fn a_long_reason_is_cut_because_every_thread_has_it() {
    let mut memory = machine();
    let at = ENTRIES + 32 * table().iter().position(|(name, _)| *name == "reasons.length").expect("there") + 24;
    words(&mut memory, at, &[0x800]);
    // Beyond the two reasons there is no end of a line.
    words(&mut memory, at - 32, &[mapped(STACK + 0x1000)]);
    memory[STACK + 0x1000..STACK + 0x1800].fill(b'x');
    set(&mut memory, 1, "wait.reason", 1);
    let ours = read(memory).expect("a kernel of ours");
    assert_eq!(ours.threads[1].reason.as_ref().map(String::len), Some(80));
}

#[test]
fn memory_that_lies_ends_without_a_panic_and_within_its_length() {
    let whole = machine();
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    let mut read_any = 0;
    for _ in 0..600 {
        let mut memory = whole.clone();
        for _ in 0..1 + random() % 6 {
            let parts = [
                ENTRIES,
                ENTRIES + 0x400,
                CPUS,
                LOG,
                THREADS,
                ROOT_NODE,
                LEAVES,
                PROCESSES,
                PROCESS_NODE,
                THREAD,
                STACK,
            ];
            let at = parts[random() as usize % parts.len()] + random() as usize % 0x300;
            memory[at] = if random() % 3 == 0 { 0xff } else { random() as u8 };
        }
        let Some(ours) = read(memory) else { continue };
        read_any += 1;
        let kept: usize = ours.threads.iter().map(|thread| thread.stack.len() + 8 * thread.frames.len()).sum();
        assert!(ours.threads.len() < LENGTH / 2048 && kept < LENGTH, "{}", ours.threads.len());
    }
    assert!(read_any > 300, "{read_any} were read");
}

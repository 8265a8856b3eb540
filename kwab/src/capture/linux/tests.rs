//! A machine whose memory holds a small Linux by hand: log, symbols, types, rules, and two threads.

use kwab_format::record::TaskState;

use super::super::of_core;
use super::super::tests::{core_of, file, qemu_note};
use super::Linux;

/// Where the image is mapped, from physical address 0 on, and its bytes.
const IMAGE: u64 = 0xffff_ffff_8000_0000;
const LENGTH: usize = 0x3_0000;
/// Where its parts lie in it.
const ROOT: usize = 0x1000;
const RING: usize = 0x4000;
const DESCS: usize = 0x4100;
const INFOS: usize = 0x4200;
const TEXTS: usize = 0x4400;
const KALLSYMS: usize = 0x5000;
const NAMES: usize = 0x6000;
const TOKENS: usize = 0x7000;
const TYPES: usize = 0x8000;
const RULES: usize = 0x9000;
const INIT: usize = 0xa000;
const OTHER: usize = 0xa800;
const PROCESS: usize = 0xb000;
const STACK: usize = 0xc000;
const CODE: usize = 0x1_0000;
const WORDS: usize = 0x2_0000;

fn put(memory: &mut [u8], at: usize, bytes: &[u8]) {
    memory[at..at + bytes.len()].copy_from_slice(bytes);
}

fn words(memory: &mut [u8], at: usize, words: &[u64]) {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    put(memory, at, &bytes);
}

fn halves(memory: &mut [u8], at: usize, words: &[u32]) {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    put(memory, at, &bytes);
}

fn mapped(at: usize) -> u64 {
    IMAGE + at as u64
}

/// Types with these structures; every member is a number, and lies 8 bytes behind the one before.
fn types(structures: &[(&str, &[&str])]) -> Vec<u8> {
    let (mut names, mut types) = (vec![0], Vec::<u32>::new());
    let mut name = |text: &str| {
        names.extend(text.bytes().chain([0]));
        (names.len() - text.len() - 1) as u32
    };
    types.extend([name("long"), 1 << 24, 8, 64]);
    for (number, (structure, members)) in structures.iter().enumerate() {
        types.extend([name(structure), 4 << 24 | members.len() as u32, 8 * members.len() as u32]);
        for (at, member) in members.iter().enumerate() {
            // A member with the name of a structure before it is one.
            let inner = structures[..number].iter().position(|(known, _)| known == member).map_or(1, |at| at + 2);
            types.extend([name(member), inner as u32, 64 * at as u32]);
        }
    }
    let types: Vec<u8> = types.into_iter().flat_map(u32::to_le_bytes).collect();
    let head = [24, 0, types.len() as u32, types.len() as u32, names.len() as u32];
    let head = head.into_iter().flat_map(u32::to_le_bytes);
    [0x9f, 0xeb, 1, 0].into_iter().chain(head).chain(types).chain(names).collect()
}

const TASK: [&str; 16] = [
    "tasks",
    "tasks_prev",
    "pid",
    "tgid",
    "__state",
    "exit_state",
    "on_cpu",
    "cpu",
    "comm",
    "comm_rest",
    "real_parent",
    "mm",
    "signal",
    "thread_node",
    "thread",
    "se",
];

fn task(memory: &mut [u8], at: usize, next: usize, pid: u64, state: u64, name: &[u8]) {
    let fields = [mapped(next), 0, pid, pid, state, 0, 0, 0, 0, 0, mapped(INIT), 0, mapped(PROCESS), 0];
    words(memory, at, &fields);
    put(memory, at + 8 * 8, name);
}

/// One record of the log.
fn record(memory: &mut [u8], slot: usize, id: u64, state: u64, at: u64, text: &[u8]) {
    let next = at + 8 + (text.len() as u64).next_multiple_of(8);
    words(memory, DESCS + 24 * slot, &[state << 62 | id, at, next]);
    words(memory, INFOS + 32 * slot, &[0, 1_500_000 * (id + 1)]);
    put(memory, INFOS + 32 * slot + 16, &(text.len() as u16).to_le_bytes());
    memory[INFOS + 32 * slot + 19] = 6 << 5;
    let begin = if (at + 8 + text.len() as u64) / 256 == at / 256 { at as usize % 256 } else { 0 };
    put(memory, TEXTS + begin + 8, text);
}

fn log(memory: &mut [u8]) {
    words(memory, RING - 8, &[mapped(RING)]);
    halves(memory, RING, &[2, 0]);
    words(memory, RING + 8, &[mapped(DESCS), mapped(INFOS), 7, 4]);
    halves(memory, RING + 48, &[8, 0]);
    words(memory, RING + 56, &[mapped(TEXTS)]);
    record(memory, 0, 4, 2, 48, b"first");
    record(memory, 1, 5, 1, 248, b"this one stands at the begin");
    record(memory, 2, 6, 2, 64, b"two\nlines");
    record(memory, 3, 7, 0, 128, b"not yet written");
}

/// Names with tokens that are letters, and offsets below the base.
fn symbols(memory: &mut [u8], symbols: &[(&str, u64)]) {
    words(memory, KALLSYMS, &[IMAGE, symbols.len() as u64]);
    let mut at = NAMES;
    for (number, (name, address)) in symbols.iter().enumerate() {
        let packed = format!("T{name}");
        memory[at] = packed.len() as u8;
        put(memory, at + 1, packed.as_bytes());
        at += 1 + packed.len();
        let offset = -((*address - IMAGE) as i32) - 1;
        put(memory, KALLSYMS + 16 + 4 * number, &offset.to_le_bytes());
    }
    for letter in 1..=255_u8 {
        put(memory, TOKENS + 2 * usize::from(letter), &[letter, 0]);
        let start = (0x200 + 2 * u16::from(letter)).to_le_bytes();
        put(memory, TOKENS + 0x800 + 2 * usize::from(letter), &start);
    }
    let texts: Vec<u8> = (0..=255_u8).flat_map(|letter| [letter, 0]).collect();
    put(memory, TOKENS + 0x200, &texts);
}

fn machine() -> Vec<u8> {
    let mut memory = vec![0; LENGTH];
    words(&mut memory, ROOT + 511 * 8, &[0x2003]);
    words(&mut memory, 0x2000 + 510 * 8, &[0x3003]);
    words(&mut memory, 0x3000, &[0x83]);
    log(&mut memory);
    let types = types(&[
        ("inactive_task_frame", &["bp", "ret_addr"]),
        ("signal_struct", &["thread_head"]),
        ("rq", &["idle", "curr", "clock"]),
        ("mm_struct", &["pgd", "arg_start", "arg_end"]),
        ("thread", &["sp"]),
        ("se", &["exec_start", "sum_exec_runtime"]),
        ("task_struct", &TASK),
    ]);
    put(&mut memory, TYPES, &types);
    let code = |at: usize| mapped(CODE + at);
    symbols(
        &mut memory,
        &[
            ("_stext", code(0)),
            ("ret_from_fork", code(0)),
            ("__sched_text_start", code(0x100)),
            ("schedule", code(0x100)),
            ("__sched_text_end", code(0x200)),
            ("pipe_wait", code(0x200)),
            ("_etext", code(0x1000)),
            ("init_task", mapped(INIT)),
            ("__start_BTF", mapped(TYPES)),
            ("__stop_BTF", mapped(TYPES + types.len())),
            ("__start_orc_unwind_ip", mapped(RULES)),
            ("__stop_orc_unwind_ip", mapped(RULES + 12)),
            ("__start_orc_unwind", mapped(RULES + 0x100)),
            ("__stop_orc_unwind", mapped(RULES + 0x112)),
        ],
    );
    for (number, start) in [0, 0x100, 0x200].into_iter().enumerate() {
        let entry = RULES + 4 * number;
        halves(&mut memory, entry, &[(code(start) - mapped(entry)) as u32]);
    }
    // The end of all stacks; a return address at the stack pointer; the same behind two words.
    let rules = [[0, 0, 0, 0, 0, 4], [8, 0, 0, 0, 5, 0], [24, 0, 0, 0, 5, 0]];
    put(&mut memory, RULES + 0x100, &rules.concat());
    task(&mut memory, INIT, OTHER, 0, 0, b"swapper/0");
    task(&mut memory, OTHER, INIT, 7, 2, b"reader");
    words(&mut memory, PROCESS, &[mapped(PROCESS)]);
    words(&mut memory, OTHER + 8 * 14, &[mapped(STACK)]);
    // Frame pointer and return address of the switch, then the stack above.
    words(&mut memory, STACK, &[0, code(0x110), code(0x210), 0, 0, code(0x10)]);
    let hex = |at: usize| format!("{:x}", mapped(at));
    let told = [
        ("prb", hex(RING - 8)),
        ("init_top_pgt", hex(ROOT)),
        ("_stext", hex(CODE)),
        ("kallsyms_relative_base", hex(KALLSYMS)),
        ("kallsyms_num_syms", hex(KALLSYMS + 8)),
        ("kallsyms_offsets", hex(KALLSYMS + 16)),
        ("kallsyms_names", hex(NAMES)),
        ("kallsyms_token_table", hex(TOKENS)),
        ("kallsyms_token_index", hex(TOKENS + 0x800)),
    ];
    let told: String = told.iter().map(|(name, value)| format!("SYMBOL({name})={value}\n")).collect();
    let text = format!("OSRELEASE=6.1.0-test\n{told}{LAYOUT}NUMBER(phys_base)=0\n");
    put(&mut memory, WORDS, text.as_bytes());
    memory
}

const LAYOUT: &str = "\
OFFSET(printk_ringbuffer.desc_ring)=0
OFFSET(printk_ringbuffer.text_data_ring)=48
OFFSET(prb_desc_ring.count_bits)=0
OFFSET(prb_desc_ring.descs)=8
OFFSET(prb_desc_ring.infos)=16
OFFSET(prb_desc_ring.head_id)=24
OFFSET(prb_desc_ring.tail_id)=32
SIZE(prb_desc)=24
OFFSET(prb_desc.state_var)=0
OFFSET(prb_desc.text_blk_lpos)=8
OFFSET(prb_data_blk_lpos.begin)=0
OFFSET(prb_data_blk_lpos.next)=8
SIZE(printk_info)=32
OFFSET(printk_info.ts_nsec)=8
OFFSET(printk_info.text_len)=16
OFFSET(prb_data_ring.size_bits)=0
OFFSET(prb_data_ring.data)=8
";

fn read(memory: Vec<u8>) -> Option<Linux> {
    let core = core_of(&[(0, memory)], &qemu_note(ROOT as u64, mapped(CODE + 0x10)));
    of_core(file(&core)).ok()?.linux
}

#[test]
fn log_threads_and_their_stacks_are_read_without_an_image_of_the_kernel() {
    let linux = read(machine()).expect("a Linux");
    assert_eq!(linux.missing, [""; 0]);
    let log = "<6>[    0.007500] first\n<6>[    0.009000] this one stands at the begin\n\
               <6>[    0.010500] two\n<6>[    0.010500] lines\n";
    assert_eq!(String::from_utf8_lossy(&linux.log), log);
    let (thread, frames) = linux.threads.iter().find(|(thread, _)| thread.tid == 7).expect("the reader");
    assert_eq!((thread.name.as_slice(), thread.state), (&b"reader"[..], Some(TaskState::BLOCKED)));
    assert_eq!(thread.waits_in, b"pipe_wait");
    let names: Vec<_> = frames.iter().map(|frame| String::from_utf8_lossy(&frame.name)).collect();
    assert_eq!(names, ["schedule", "pipe_wait", "ret_from_fork"]);
    assert_eq!((frames[1].address, frames[1].offset, frames[1].size), (mapped(CODE + 0x210), 0x10, 0xe00));
    assert!(linux.death.is_none());
}

#[test]
fn a_thread_that_has_not_run_yet_stands_at_the_begin_of_its_function() {
    let mut memory = machine();
    words(&mut memory, STACK, &[0, mapped(CODE + 0x200), 0, 0, mapped(CODE + 0x10)]);
    let linux = read(memory).expect("a Linux");
    let (_, frames) = linux.threads.iter().find(|(thread, _)| thread.tid == 7).expect("the reader");
    let names: Vec<_> = frames.iter().map(|frame| String::from_utf8_lossy(&frame.name)).collect();
    assert_eq!(names, ["pipe_wait", "ret_from_fork"], "not the function that lies before it");
}

#[test]
fn a_linux_without_symbols_types_or_rules_still_has_its_log() {
    for (name, other, expected) in
        [("SYMBOL(kallsyms_names)", "SYMBOL(kallsyms_nomes)", "kallsyms"), ("SYMBOL(prb)", "SYMBOL(prx)", "the log")]
    {
        let mut memory = machine();
        let at = memchr::memmem::find(&memory, name.as_bytes()).expect("told");
        put(&mut memory, at, other.as_bytes());
        let linux = read(memory).expect("a Linux");
        assert!(linux.missing.iter().any(|missing| missing.contains(expected)), "{:?}", linux.missing);
        assert_eq!(linux.log.is_empty(), expected == "the log");
        assert_eq!(linux.threads.is_empty(), expected != "the log");
    }
}

#[test]
fn memory_that_is_mapped_many_times_is_read_as_far_as_it_is_long() {
    let aliased = |edit: &dyn Fn(&mut Vec<u8>)| {
        let mut memory = machine();
        words(&mut memory, 0x3000, &[0x83; 511]);
        edit(&mut memory);
        read(memory).expect("a Linux")
    };
    // The number of symbols, and where the types end.
    let many = aliased(&|memory| words(memory, KALLSYMS + 8, &[1 << 19]));
    assert!(many.missing[0].contains("kallsyms"), "{:?}", many.missing);
    let long = aliased(&|memory| put(memory, KALLSYMS + 16 + 4 * 9, &(-(60_i32 << 20)).to_le_bytes()));
    assert!(long.missing[0].contains("types cannot be read"), "{:?}", long.missing);
    // A ring of texts that is larger than the memory, each record's text a row of ends of lines.
    let lines = aliased(&|memory| {
        halves(memory, RING + 48, &[26]);
        memory[TEXTS..TEXTS + 0x400].fill(b'\n');
        (0..3).for_each(|slot| put(memory, INFOS + 32 * slot + 16, &u16::MAX.to_le_bytes()));
    });
    assert!(lines.log.len() < LENGTH / 4 + (64 << 10), "{}", lines.log.len());
    // A list of threads that ends in itself.
    let endless = aliased(&|memory| words(memory, OTHER, &[mapped(OTHER)]));
    assert!(endless.missing[0].contains("broken"), "{:?}", endless.missing);
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
            let parts = [RING - 8, DESCS, INFOS, KALLSYMS, NAMES, TOKENS, TYPES, RULES, INIT, PROCESS, STACK, WORDS];
            let at = parts[random() as usize % parts.len()] + random() as usize % 0x300;
            memory[at] = if random() % 3 == 0 { 0xff } else { random() as u8 };
        }
        let Some(linux) = read(memory) else { continue };
        read_any += 1;
        assert!(linux.log.len() < 4 * LENGTH && linux.threads.len() < 64, "{}", linux.threads.len());
    }
    assert!(read_any > 300, "{read_any} were read");
}

//! Real samples (`testing/data/exchange`) and mutations of them: what a dump says of each, and that none asks for more
//! than its bytes.

use std::fs::File;
use std::io::{Read as _, Write as _};

use kwab_format::record::{CauseKind, ImageKind, Memory, RegId, RegisterRole, Task};

use super::{Format, TextFormat, import_file, import_text};
use crate::import::{ImportReport, Options, PendingDump};
use crate::memory::{Ram, Reader, Space};
use crate::model::{Death, Dump};

const CORE: &[u8] = include_bytes!("../../../testing/data/exchange/process.core.gz");
const TRIPLE: &str = include_str!("../../../testing/data/exchange/triple.log");

pub(super) fn process_core() -> Vec<u8> {
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(CORE).read_to_end(&mut bytes).expect("packed by us");
    bytes
}

pub(super) fn options() -> Options {
    Options { source: "sample".to_owned(), folder: Some(std::env::temp_dir()) }
}

pub(super) fn file(bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(bytes).expect("written");
    file
}

pub(super) fn dump_of(dump: PendingDump) -> Dump {
    let mut bytes = Vec::new();
    dump.file.expect("a folder was given").copy_to(&mut bytes).expect("memory");
    Dump::from_bytes(bytes).expect("a dump")
}

pub(super) fn only((report, dumps): (ImportReport, Vec<PendingDump>)) -> (ImportReport, Dump) {
    assert_eq!(dumps.len(), 1);
    (report, dump_of(dumps.into_iter().next().expect("one")))
}

pub(super) fn text(bytes: &str) -> (ImportReport, Vec<PendingDump>) {
    let format = TextFormat::of_head(bytes.as_bytes()).expect("it is recognised");
    import_text(bytes.as_bytes(), bytes.as_bytes(), format, &options(), &mut |_| ()).expect("memory")
}

/// Calls `check` with mutations of `whole`: bytes and extreme words among the first `room` bytes or anywhere, and cuts.
pub(super) fn mutated(whole: &[u8], room: usize, mut check: impl FnMut(&[u8])) {
    const EXTREMES: [u64; 6] = [0, 1, 0x7fff_ffff, 0xffff_ffff, 0x7fff_ffff_ffff_ffff, u64::MAX];
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move |below: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed % below.max(1) as u64) as usize
    };
    for _ in 0..300 {
        let mut bytes = whole.to_vec();
        for _ in 0..=random(4) {
            let near = if random(4) == 0 { bytes.len() } else { room.min(bytes.len()) };
            let at = random(near);
            let word = EXTREMES[random(EXTREMES.len())].to_le_bytes();
            match random(3) {
                0 => bytes[at] = random(256) as u8,
                1 => bytes[at] ^= 1 << random(8),
                _ => bytes.iter_mut().skip(at / 4 * 4).zip(word).for_each(|(byte, new)| *byte = new),
            }
        }
        if random(8) == 0 {
            bytes.truncate(random(whole.len()));
        }
        check(&bytes);
    }
}

#[test]
fn the_core_of_a_process_says_who_died_where_with_all_threads_mappings_and_memory() {
    let bytes = process_core();
    assert_eq!(Format::of_head(&bytes), Some(Format::ElfCore));
    let (report, dump) = only(import_file(file(&bytes), Format::ElfCore, &options()).expect("a core"));
    assert_eq!((report.cut.as_deref(), report.dumps[0].subject.starts_with("./process[")), (None, true));
    let death = Death::of(&dump).expect("a death");
    assert_eq!((death.kind, death.signal, death.signal_code), (Some(CauseKind::FATAL_SIGNAL), Some(11), Some(1)));
    assert_eq!((death.comm.as_deref(), death.fault_addr), (Some(&b"process"[..]), Some(0x18)));
    let case = dump.case();
    let roles: Vec<_> = case.registers.iter().filter_map(|set| Some((set.role?, set.tid? == set.pid?))).collect();
    assert_eq!(roles, [(RegisterRole::FAULT, true), (RegisterRole::SWITCHED_OUT, false)]);
    let waiting = dump.records::<Task<'_>>().find(|task| task.tid != task.pid).expect("the second thread");
    assert_eq!(waiting.syscall, Some(34), "it is in pause(2)");
    let image = &case.images[0];
    assert_eq!((image.kind, image.load_bias), (Some(ImageKind::EXECUTABLE), Some(0)));
    assert_eq!((image.path, image.build_id.map(<[u8]>::len)), (Some(&b"/srv/demo/process"[..]), Some(20)));
    let code = case.vmas.iter().find(|vma| vma.start == Some(0x40_0000)).expect("the code");
    assert_eq!((code.prot, code.path), (Some(5), image.path));
    assert!(case.vmas.iter().any(|vma| vma.name == Some(b"[stack]") && vma.start < death.sp));
    assert!(case.vmas.iter().all(|vma| vma.end < Some(1 << 47)), "the vsyscall page is of no process");
    let (ram, space) = (Ram::of(&dump), Space { pid: death.pid, tables: None, name: String::new() });
    let reader = Reader::new(&case, &ram);
    let mut head = [0; 4];
    assert_eq!((reader.read(&space, 0x40_0000, &mut head), &head), (4, b"\x7fELF"));
    let rdi = case.registers[0].regs.iter().flat_map(kwab_format::List::iter).find(|reg| reg.id == Some(RegId::RDI));
    assert_eq!(rdi.and_then(|reg| reg.value), Some(0x10), "the list's end that is none");
    let stored: u64 = dump.records::<Memory<'_>>().map(|memory| memory.bytes.map_or(0, |b| b.len() as u64)).sum();
    assert!(stored < 64 << 10, "{stored} bytes of a core that is nearly all zeros");
}

#[test]
fn a_core_that_is_cut_says_how_much_is_missing_and_names_its_death_still() {
    let mut bytes = process_core();
    bytes.truncate(bytes.len() - 0x20_000);
    let (report, dump) = only(import_file(file(&bytes), Format::ElfCore, &options()).expect("a core"));
    assert_eq!(report.cut.as_deref(), Some("the file does not have 128 KiB of memory: the core is cut"));
    assert_eq!(Death::of(&dump).and_then(|death| death.signal), Some(11));
}

#[test]
fn mutated_cores_end_without_a_panic_and_within_their_bytes() {
    let whole = process_core();
    mutated(&whole, 0x2000, |bytes| {
        if let Ok((_, dumps)) = import_file(file(bytes), Format::ElfCore, &options()) {
            let written: u64 = dumps.iter().map(|dump| dump.summary.bytes).sum();
            assert!(written < 2 * whole.len() as u64 + (64 << 10), "{written} bytes of {}", bytes.len());
        }
    });
}

#[test]
fn segments_that_claim_the_same_bytes_of_the_file_get_them_once() {
    let mut core = process_core();
    // Every segment with memory claims the whole file at an address of its own.
    let count = usize::from(core[56]);
    for number in 1..count {
        let at = 64 + 56 * number;
        let length = core.len() as u64;
        let words = [(8, 0), (16, (number as u64) << 32), (32, length), (40, length)];
        words.iter().for_each(|(field, word): &(usize, u64)| {
            core[at + field..at + field + 8].copy_from_slice(&word.to_le_bytes());
        });
    }
    let (report, dump) = only(import_file(file(&core), Format::ElfCore, &options()).expect("a core"));
    let held: u64 = dump
        .records::<Memory<'_>>()
        .filter(|memory| memory.tid.is_none())
        .map(|memory| memory.bytes.map_or(0, |bytes| bytes.len() as u64) + memory.zeros.unwrap_or(0))
        .sum();
    assert_eq!(held, core.len() as u64);
    assert!(report.cut.expect("the rest is missing").contains("the core is cut"));
}

#[test]
fn a_triple_fault_in_qemus_log_is_the_chain_of_exceptions_before_it() {
    let (report, dumps) = text(TRIPLE);
    assert_eq!((report.lines, report.events, report.dumps[0].line), (75, 2, Some(75)));
    let (_, dump) = only((report, dumps));
    let death = Death::of(&dump).expect("a death");
    let message = String::from_utf8_lossy(death.message.as_deref().expect("a message")).into_owned();
    assert_eq!(
        message,
        "triple fault: page fault at 0x123456789000, while delivering the page fault: page fault at \
         0xffff8000000010e0, gate 14 of the IDT at 0xffff800000001000, while delivering the double fault: page fault"
    );
    assert_eq!((death.ip, death.fault_addr, death.vector), (Some(0x10_009c), Some(0x1234_5678_9000), Some(14)));
    let case = dump.case();
    let value = |id| {
        let mut regs = case.registers[0].regs.iter().flat_map(kwab_format::List::iter);
        regs.find(|reg| reg.id == Some(id)).and_then(|reg| reg.value)
    };
    assert_eq!((value(RegId::RBX), value(RegId::CR3)), (Some(0x1234_5678_9000), Some(0x10_1000)));
    assert_eq!(case.flight.len(), 2);
}

/// The message of the death in a text of QEMU.
fn message(log: &str) -> String {
    let (_, dump) = only(text(log));
    String::from_utf8(Death::of(&dump).and_then(|death| death.message).expect("a message")).expect("text")
}

#[test]
fn a_double_fault_that_no_page_fault_caused_names_no_address() {
    // There is no table of handlers: each delivery ends in a general protection fault, and CR2 is of no exception.
    let log = "check_exception old: 0xffffffff new 0xd\n\
        0: v=0d e=0000 i=0 cpl=0 IP=0008:0000000000100000 pc=0000000000100000 SP=0010:0000000000104ff8\n\
        IDT=     0000000000000000 00000000\nCR0=80000011 CR2=0000000000000000 CR3=0000000000101000 CR4=00000020\n\
        check_exception old: 0xd new 0xd\n\
        1: v=08 e=0000 i=0 cpl=0 IP=0008:0000000000100000 pc=0000000000100000 SP=0010:0000000000104ff8\n\
        IDT=     0000000000000000 00000000\nCR0=80000011 CR2=0000000000000000 CR3=0000000000101000 CR4=00000020\n\
        check_exception old: 0x8 new 0xd\nTriple fault\n";
    let name = super::qemu::name_of(13);
    let told = format!("triple fault: {name}, while delivering the {name}: {name}");
    assert_eq!(message(log), format!("{told}, while delivering the double fault: {name}"));
}

#[test]
fn an_exception_that_finds_no_gate_is_the_first_of_the_chain() {
    // QEMU 7.2 of a program that runs `ud2` without a table of handlers of its own.
    let log = "CPU Reset (CPU 0)\ncheck_exception old: 0xffffffff new 0x6\n\
        0: v=06 e=0000 i=0 cpl=0 IP=0008:0000000000100013 pc=0000000000100013 SP=0010:0000000000006f08\n\
        EAX=deadbee0 EBX=00009500 ECX=0010000c EDX=00000511\nIDT=     00000000 000003ff\n\
        check_exception old: 0xffffffff new 0xd\n\
        1: v=0d e=0032 i=0 cpl=0 IP=0008:0000000000100013 pc=0000000000100013 SP=0010:0000000000006f08\n\
        EAX=deadbee0 EBX=00009500 ECX=0010000c EDX=00000511\nIDT=     00000000 000003ff\n\
        check_exception old: 0xd new 0xd\n\
        2: v=08 e=0000 i=0 cpl=0 IP=0008:0000000000100013 pc=0000000000100013 SP=0010:0000000000006f08\n\
        EAX=deadbee0 EBX=00009500 ECX=0010000c EDX=00000511\nIDT=     00000000 000003ff\n\
        check_exception old: 0x8 new 0xd\nTriple fault\n";
    let (invalid, protection) = (super::qemu::name_of(6), super::qemu::name_of(13));
    let told = format!(
        "triple fault: {invalid}, while delivering the {invalid}: {protection}, gate 6 of the interrupt table, while \
         delivering the {protection}: {protection}, while delivering the double fault: {protection}"
    );
    assert_eq!(message(log), told);
    let (_, dump) = only(text(log));
    assert_eq!(Death::of(&dump).and_then(|death| death.vector), Some(6));
    assert_eq!(dump.case().registers[0].vector, Some(6));
    let elsewhere = log.replacen("pc=0000000000100013", "pc=0000000000100010", 1);
    let another = log.replacen("e=0032", "e=006a", 1);
    for log in [elsewhere, another] {
        assert!(message(&log).starts_with(&format!("triple fault: {protection}, while")), "{log}");
    }
}

#[test]
fn the_processor_is_known_where_only_one_was_ever_reset() {
    let twice = format!("{TRIPLE}CPU Reset (CPU 0)\nCPU Reset (CPU 1)\nRAX=0000000000000001 RBX=0\n{TRIPLE}");
    let (report, dumps) = text(&twice);
    assert_eq!(report.dumps.iter().map(|dump| dump.same_as).collect::<Vec<_>>(), [None, Some(1)]);
    let cpus: Vec<_> = dumps.into_iter().map(|dump| Death::of(&dump_of(dump)).and_then(|death| death.cpu)).collect();
    assert_eq!(cpus, [Some(0), None]);
}

#[test]
fn what_a_program_did_before_a_triple_fault_is_not_what_the_kernel_did() {
    let log = TRIPLE.replace("v=0e e=0000 i=0 cpl=0", "v=0e e=0004 i=0 cpl=3");
    let (_, dump) = only(text(&log));
    let death = Death::of(&dump).expect("a death");
    assert_eq!((death.vector, death.error_code, death.fault_addr, death.ip), (None, None, None, None));
    let case = dump.case();
    let set = &case.registers[0];
    assert_eq!((set.role, set.vector, set.error_code), (Some(RegisterRole::USER), None, None));
    assert!(message(&log).starts_with("triple fault: page fault at 0x123456789000, while delivering"));
}

#[test]
fn an_exception_keeps_a_bounded_number_of_registers_and_a_full_chain_none() {
    let (head, tail) = TRIPLE.split_once("R8 =").expect("registers");
    let many = format!("{head}{}R8 ={tail}", "RAX=1 RBX=2 RCX=3\n".repeat(10_000));
    let (_, dump) = only(text(&many));
    // The instruction pointer is that of the exception's own line.
    assert_eq!(dump.case().registers[0].regs.iter().flat_map(kwab_format::List::iter).count(), 64 + 1);
    let link = "check_exception old: 0xe new 0xe\n0: v=08 e=0000 i=0 cpl=0 pc=1 SP=0010:2\nRAX=1 RBX=2\n";
    let mut reading = super::qemu::Reading::default();
    link.repeat(12).lines().for_each(|line| assert!(reading.take(line).is_none()));
    assert_eq!(reading.chain_registers(), [2; 8]);
}

#[test]
fn a_log_of_exceptions_that_all_arrived_is_a_recording() {
    let healthy = TRIPLE.replace("Triple fault\n", "").replace("check_exception old: 0x8 new 0xe\n", "");
    let (report, dump) = only(text(&healthy));
    assert_eq!((report.dumps[0].kind.as_str(), report.events), ("recording", 2));
    assert_eq!((Death::of(&dump), dump.case().flight.len()), (None, 2));
}

#[test]
fn mutated_logs_of_qemu_end_without_a_panic_and_within_their_bytes() {
    let long = TRIPLE.repeat(8);
    mutated(long.as_bytes(), long.len(), |bytes| {
        let made = import_text(bytes, bytes, TextFormat::QemuTrace, &options(), &mut |_| ()).expect("memory");
        let written: u64 = made.1.iter().map(|dump| dump.summary.bytes).sum();
        assert!(written < 4 * long.len() as u64, "{written}");
    });
}

#[test]
fn no_captured_log_is_taken_for_the_text_of_a_tool() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../testing/data/logs");
    let mut logs = 0;
    for entry in std::fs::read_dir(folder).expect("there").flatten().filter(|entry| entry.path().is_file()) {
        let bytes = std::fs::read(entry.path()).expect("readable");
        assert_eq!(TextFormat::of_head(&bytes[..bytes.len().min(64 << 10)]), None, "{}", entry.path().display());
        logs += 1;
    }
    assert!(logs >= 4, "{logs}");
}

/// A core whose only row of `NT_FILE`, with a path of a MiB, is that of 60,000 segments.
fn core_of_one_long_path() -> Vec<u8> {
    const SEGMENTS: u16 = 60_000;
    let mut notes = Vec::new();
    let mut note = |kind: u32, body: &[u8]| {
        for word in [5, body.len() as u32, kind] {
            notes.extend_from_slice(&word.to_le_bytes());
        }
        notes.extend_from_slice(b"CORE\0\0\0\0");
        notes.extend_from_slice(body);
        notes.resize(notes.len().next_multiple_of(4), 0);
    };
    note(1, &[0; 336]);
    let mut files: Vec<u8> = [1_u64, 1, 0, 1 << 46, 0].iter().flat_map(|word| word.to_le_bytes()).collect();
    files.resize(files.len() + (1 << 20), b'/');
    files.push(0);
    note(0x4649_4c45, &files);
    let behind = 64 + 56 * (u64::from(SEGMENTS) + 1);
    let mut bytes = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x04\0\x3e\0\x01\0\0\0".to_vec();
    for word in [0_u64, 64, 0] {
        bytes.extend_from_slice(&word.to_le_bytes());
    }
    bytes.extend_from_slice(&[0; 4]);
    for half in [64, 56, SEGMENTS + 1, 0, 0, 0] {
        bytes.extend_from_slice(&half.to_le_bytes());
    }
    let mut segment = |kind: u32, flags: u32, words: [u64; 6]| {
        bytes.extend_from_slice(&kind.to_le_bytes());
        bytes.extend_from_slice(&flags.to_le_bytes());
        words.iter().for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
    };
    segment(4, 4, [behind, 0, 0, notes.len() as u64, 0, 4]);
    for number in 0..u64::from(SEGMENTS) {
        segment(1, 5, [behind, 0x1_0000 + number * 0x2000, 0, 0, 0x1000, 0x1000]);
    }
    bytes.extend_from_slice(&notes);
    bytes
}

#[test]
fn a_path_that_every_segment_shares_is_told_within_a_budget() {
    let bytes = core_of_one_long_path();
    assert_eq!(Format::of_head(&bytes), Some(Format::ElfCore));
    let (report, dump) = only(import_file(file(&bytes), Format::ElfCore, &options()).expect("a core"));
    assert!(report.dumps[0].bytes < 40 << 20, "{} bytes of dump", report.dumps[0].bytes);
    let case = dump.case();
    let named = case.vmas.iter().filter(|vma| vma.path.is_some()).count();
    let left_out = case.vmas.iter().filter(|vma| vma.name == Some(b"[path left out]")).count();
    assert_eq!((named, left_out), ((16 << 20) / 4096, 60_000 - (16 << 20) / 4096));
}

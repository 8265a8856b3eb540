//! A real minidump (`testing/data/exchange`), what other processors and systems write into its place, mutations of it,
//! and minidumps of ours.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::time::Instant;

use kwab_format::record::{Arch, CauseKind, ImageKind, Memory, RegId, RegisterRole, Task};
use minidump_common::format::{CONTEXT_ARM64, CONTEXT_X86};
use scroll::{LE, Pread as _, Pwrite as _};

use super::super::tests::{file, mutated, only, options, process_core};
use super::super::{ExchangeError, Format, import_file};
use crate::export::{MinidumpError, minidump as export};
use crate::import::ImportReport;
use crate::model::{Death, Dump};

const SAMPLE: &[u8] = include_bytes!("../../../../testing/data/exchange/process.dmp.gz");
/// Kinds of streams.
const THREADS: u32 = 3;
const MODULES: u32 = 4;
const MEMORY: u32 = 5;
const EXCEPTION: u32 = 6;
const SYSTEM: u32 = 7;

pub(super) fn sample() -> Vec<u8> {
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(SAMPLE).read_to_end(&mut bytes).expect("packed by us");
    bytes
}

fn imported(bytes: &[u8]) -> (ImportReport, Dump) {
    assert_eq!(Format::of_head(bytes), Some(Format::Minidump));
    only(import_file(file(bytes), Format::Minidump, &options()).expect("a minidump"))
}

fn word(bytes: &[u8], at: usize) -> usize {
    bytes.pread_with::<u32>(at, LE).expect("there") as usize
}

fn put(bytes: &mut [u8], at: usize, word: u32) {
    bytes.pwrite_with(word, at, LE).expect("there");
}

/// Where the row of a stream in the directory is, and the stream.
fn stream(bytes: &[u8], kind: u32) -> (usize, usize) {
    let (count, directory) = (word(bytes, 8), word(bytes, 12));
    let row = (0..count).map(|number| directory + 12 * number).find(|row| word(bytes, *row) == kind as usize);
    let row = row.expect("it has such a stream");
    (row, word(bytes, row + 8))
}

/// Replaces the contexts of all threads and of the exception.
fn with_contexts(bytes: &mut [u8], context: &[u8]) {
    let (_, threads) = stream(bytes, THREADS);
    let (_, exception) = stream(bytes, EXCEPTION);
    let rows = (0..word(bytes, threads)).map(|number| threads + 4 + 48 * number + 40);
    for location in rows.chain([exception + 160]).collect::<Vec<_>>() {
        put(bytes, location, context.len() as u32);
        let at = word(bytes, location + 4);
        bytes[at..at + context.len()].copy_from_slice(context);
    }
}

#[test]
fn a_minidump_says_who_died_where_with_threads_images_mappings_and_memory() {
    let (report, dump) = imported(&sample());
    assert_eq!((report.cut.as_deref(), report.dumps[0].subject.starts_with("./process[")), (None, true));
    let death = Death::of(&dump).expect("a death");
    assert_eq!((death.kind, death.signal, death.signal_code), (Some(CauseKind::FATAL_SIGNAL), Some(11), Some(1)));
    assert_eq!(
        (death.comm.as_deref(), death.fault_addr, death.ip),
        (Some(&b"process"[..]), Some(0x18), Some(0x40_0155))
    );
    let case = dump.case();
    let roles: Vec<_> = case.registers.iter().filter_map(|set| Some((set.role?, set.tid? == set.pid?))).collect();
    assert_eq!(roles, [(RegisterRole::FAULT, true), (RegisterRole::SWITCHED_OUT, false)]);
    let rdi = case.registers[0].regs.iter().flat_map(kwab_format::List::iter).find(|reg| reg.id == Some(RegId::RDI));
    assert_eq!(rdi.and_then(|reg| reg.value), Some(0x10), "the list's end that is none");
    assert!(dump.records::<Task<'_>>().all(|task| task.comm == Some(b"process")));
    let image = &case.images[0];
    assert_eq!((image.kind, image.path), (Some(ImageKind::EXECUTABLE), Some(&b"/srv/demo/process"[..])));
    assert_eq!(image.build_id.map(<[u8]>::len), Some(20));
    let code = case.vmas.iter().find(|vma| vma.start == Some(0x40_0000)).expect("the code");
    assert_eq!((code.prot, code.path), (Some(5), image.path));
    assert!(case.vmas.iter().any(|vma| vma.name == Some(b"[stack]") && vma.start < death.sp));
    assert!(case.vmas.iter().all(|vma| vma.end < Some(1 << 47)), "the vsyscall page is of no process");
    assert_eq!(case.identities[0].kernel_name, Some(&b"Linux"[..]));
    assert!(case.identities[0].kernel_version.is_some_and(|text| text.starts_with(b"6.1.0 ")), "the name once");
    assert_eq!(case.identities[0].arch, Some(Arch::X86_64));
    let stack = dump.records::<Memory<'_>>().find(|memory| memory.vaddr <= death.sp && memory.tid == death.tid);
    assert!(stack.is_some(), "the stack of the dead thread");
}

#[test]
fn a_minidump_that_is_cut_names_what_is_missing_and_its_death_still() {
    let whole = sample();
    let (row, memory) = stream(&whole, MEMORY);
    let mut bytes = whole.clone();
    put(&mut bytes, row + 4, 4 + 16 * 9);
    put(&mut bytes, memory, 9_000);
    let (report, dump) = imported(&bytes);
    let cut = report.cut.expect("defects");
    assert!(cut.contains("memory: 9000 rows at"), "{cut}");
    assert_eq!(Death::of(&dump).and_then(|death| death.signal), Some(11));
    let cut = imported(&whole[..whole.len() - 200]).0.cut.expect("defects");
    assert!(cut.contains("are claimed"), "{cut}");
    let refused = import_file(file(b"MDMP\x93\xa7"), Format::Minidump, &options());
    assert!(matches!(refused, Err(ExchangeError::Refused(_))));
}

#[test]
fn mutated_minidumps_end_without_a_panic_and_within_their_bytes() {
    let whole = sample();
    let mut read = 0;
    mutated(&whole, 0x400, |bytes| {
        if let Ok((_, dumps)) = import_file(file(bytes), Format::Minidump, &options()) {
            let written: u64 = dumps.iter().map(|dump| dump.summary.bytes).sum();
            assert!(written < 4 * whole.len() as u64 + (64 << 10), "{written} bytes of {}", bytes.len());
            read += 1;
        }
    });
    assert!(read > 50, "{read} were read");
}

#[test]
fn registers_that_all_threads_share_are_read_as_far_as_the_file_has_room_beside_its_streams() {
    const ROWS: u32 = 16_384;
    let mut bytes = sample();
    let (row, threads) = stream(&bytes, THREADS);
    let first = bytes[threads + 4..threads + 52].to_vec();
    let list = bytes.len() as u32;
    bytes.extend_from_slice(&ROWS.to_le_bytes());
    for number in 0..ROWS {
        let at = bytes.len();
        bytes.extend_from_slice(&first);
        put(&mut bytes, at, 100_000 + number);
    }
    put(&mut bytes, row + 4, 4 + 48 * ROWS);
    put(&mut bytes, row + 8, list);
    let (report, dump) = imported(&bytes);
    assert!(report.dumps[0].bytes < 8 << 20, "{} of {}", report.dumps[0].bytes, bytes.len());
    let has_any = |set: &&kwab_format::record::Registers<'_>| set.regs.is_some_and(|regs| !regs.is_empty());
    let read = dump.case().registers.iter().map(|found| found.record).filter(|set| has_any(&set)).count();
    assert!((60..80).contains(&read), "registers of {read} threads");
    assert!(report.cut.expect("not all are read").contains("registers of 163"));
}

#[test]
fn a_name_that_every_module_and_thread_shares_is_read_within_a_budget() {
    const ROWS: u32 = 400_000;
    let mut bytes = sample();
    let name = bytes.len() as u32;
    bytes.extend_from_slice(&(1_u32 << 20).to_le_bytes());
    bytes.resize(bytes.len() + (1 << 20), b'n');
    let list = bytes.len() as u32;
    bytes.extend_from_slice(&ROWS.to_le_bytes());
    for number in 0..u64::from(ROWS) {
        let mut row = [0; 108];
        row[..8].copy_from_slice(&(0x1000_0000 + number * 0x1000).to_le_bytes());
        row[8..12].copy_from_slice(&0x1000_u32.to_le_bytes());
        row[20..24].copy_from_slice(&name.to_le_bytes());
        bytes.extend_from_slice(&row);
    }
    let (row, _) = stream(&bytes, MODULES);
    put(&mut bytes, row + 4, 4 + 108 * ROWS);
    put(&mut bytes, row + 8, list);
    let begun = Instant::now();
    let (report, dump) = imported(&bytes);
    assert!(report.dumps[0].bytes < 40 << 20, "{} bytes of dump", report.dumps[0].bytes);
    assert!(begun.elapsed().as_secs() < 60, "{:?}", begun.elapsed());
    assert_eq!(dump.case().images.len(), 4096);
    assert!(report.cut.expect("rows are left out").contains("modules: 4096 of 400000 rows are read"));
}

#[test]
fn threads_of_a_32_bit_processor_have_the_names_of_their_registers() {
    let mut bytes = sample();
    let mut context = vec![0; 716];
    let x86 = CONTEXT_X86 { eip: 0x0804_8123, esp: 0xbfff_0000, eax: 7, ..CONTEXT_X86::default() };
    context.pwrite_with(x86, 0, LE).expect("room");
    with_contexts(&mut bytes, &context);
    let (_, system) = stream(&bytes, SYSTEM);
    bytes[system..system + 2].copy_from_slice(&[0, 0]);
    let (_, dump) = imported(&bytes);
    let death = Death::of(&dump).expect("a death");
    assert_eq!((death.ip, death.sp), (Some(0x0804_8123), Some(0xbfff_0000)));
    let case = dump.case();
    let named: BTreeMap<_, _> = case.registers[0]
        .regs
        .iter()
        .flat_map(kwab_format::List::iter)
        .filter_map(|reg| Some((reg.name?, reg.value?)))
        .collect();
    assert_eq!((named[&b"eax"[..]], named[&b"eip"[..]]), (7, 0x0804_8123));
    assert_eq!(case.identities[0].arch, None);
}

#[test]
fn an_access_violation_of_windows_has_its_name_and_address() {
    let mut bytes = sample();
    let ((_, system), (_, exception)) = (stream(&bytes, SYSTEM), stream(&bytes, EXCEPTION));
    put(&mut bytes, system + 20, 2);
    put(&mut bytes, exception + 8, 0xc000_0005);
    put(&mut bytes, exception + 32, 2);
    put(&mut bytes, exception + 48, 0x1234);
    let (_, dump) = imported(&bytes);
    let death = Death::of(&dump).expect("a death");
    assert_eq!((death.exception.as_deref(), death.signal), (Some(&b"EXCEPTION_ACCESS_VIOLATION"[..]), None));
    assert_eq!((death.fault_addr, death.kind), (Some(0x1234), Some(CauseKind::FATAL_SIGNAL)));
    assert_eq!(dump.case().identities[0].kernel_name, Some(&b"Windows"[..]));
    assert!(matches!(export(&dump.case(), &mut Vec::new()), Err(MinidumpError::System(_))));
}

#[test]
fn a_minidump_that_was_asked_for_is_no_death() {
    let mut bytes = sample();
    let (_, exception) = stream(&bytes, EXCEPTION);
    put(&mut bytes, exception + 8, u32::MAX);
    let (report, dump) = imported(&bytes);
    assert_eq!(report.dumps[0].kind, "recording");
    assert_eq!(Death::of(&dump).and_then(|death| death.kind), Some(CauseKind::LIVE));
}

#[test]
fn the_minidump_of_an_imported_core_says_the_same_when_it_is_read() {
    let (_, dump) = only(import_file(file(&process_core()), Format::ElfCore, &options()).expect("a core"));
    let (case, death) = (dump.case(), Death::of(&dump).expect("a death"));
    let mut bytes = Vec::new();
    export(&case, &mut bytes).expect("of a process");
    let (report, again) = imported(&bytes);
    assert_eq!(report.cut, None);
    let back = Death::of(&again).expect("a death");
    assert_eq!((back.signal, back.signal_code, back.fault_addr), (death.signal, death.signal_code, death.fault_addr));
    assert_eq!((back.pid, back.ip, back.comm), (death.pid, death.ip, death.comm));
    assert_eq!(again.case().vmas.len(), case.vmas.len());
}

#[test]
fn registers_of_aarch64_come_through_a_minidump_and_back() {
    let mut bytes = sample();
    let mut context = vec![0; 912];
    let mut arm = CONTEXT_ARM64 { sp: 0x7fff_0000, pc: 0x40_0155, cpsr: 0x6000_0000, ..CONTEXT_ARM64::default() };
    arm.iregs[30] = 0x40_0171;
    context.pwrite_with(arm, 0, LE).expect("room");
    with_contexts(&mut bytes, &context);
    let (_, system) = stream(&bytes, SYSTEM);
    bytes[system..system + 2].copy_from_slice(&[12, 0]);
    let (_, dump) = imported(&bytes);
    assert_eq!(dump.case().identities[0].arch, Some(Arch::AARCH64));
    let value = |dump: &Dump, id: u16| {
        let case = dump.case();
        let mut regs = case.registers[0].regs.iter().flat_map(kwab_format::List::iter);
        regs.find(|reg| reg.id == Some(RegId(id))).and_then(|reg| reg.value)
    };
    assert_eq!(
        (value(&dump, 30), value(&dump, 31), value(&dump, 32)),
        (Some(0x40_0171), Some(0x7fff_0000), Some(0x40_0155))
    );
    let mut written = Vec::new();
    export(&dump.case(), &mut written).expect("of a process");
    let again = imported(&written).1;
    assert_eq!(
        (value(&again, 30), value(&again, 31), value(&again, 32)),
        (Some(0x40_0171), Some(0x7fff_0000), Some(0x40_0155))
    );
}

#[test]
fn the_death_of_a_kernel_is_no_minidump() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../testing/dumps/null-dereference.kwab");
    let dump = Dump::from_bytes(std::fs::read(path).expect("there")).expect("a dump");
    assert!(matches!(export(&dump.case(), &mut Vec::new()), Err(MinidumpError::Kernel)));
}

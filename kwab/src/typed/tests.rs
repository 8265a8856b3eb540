//! A program of known values, stopped in its innermost function, judged by gdb (`testing/data/typed/make.sh`).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kwab_format::record::{
    Cause, CauseKind, Cpu, CpuState, Memory, Reg, RegId, RegisterRole, Registers, Stamp, Task, TaskState,
};
use kwab_format::{BootId, DumpId, FileHeader, List, SectionKind};

use super::*;
use crate::memory::{Ram, Reader, Wanted};
use crate::model::emit::DumpWriter;
use crate::model::{Depth, Dump, DumpFile};
use crate::symbols::{Image, ImageBytes, IndexCache, LoadedImage, Symbols, slim};

const PID: u32 = 9;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../testing/data/typed").join(name)
}

/// The program's dump; `memory` says whether the program's own memory is in it beside its stack.
fn dump(image: &Image, memory: bool) -> Dump {
    let text = std::fs::read_to_string(fixture("values.gdb")).expect("there");
    let hex = |word: &str| u64::from_str_radix(word.trim_start_matches("0x"), 16).expect("a number");
    let names = [("rip", RegId::RIP), ("rsp", RegId::RSP), ("rbp", RegId::RBP), ("rbx", RegId::RBX)];
    let (mut regs, mut stack, mut low) = (Vec::new(), Vec::new(), None);
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let Some((addr, values)) = line.split_once(":\t") {
            low = low.or(Some(hex(addr)));
            values.split_whitespace().for_each(|value| stack.extend(hex(value).to_le_bytes()));
        } else if let Some((_, id)) = names.iter().find(|(name, _)| words.first() == Some(name)) {
            regs.push(Reg::new(*id, hex(words[1])));
        }
    }
    let mut writer = DumpWriter::new(Vec::new(), FileHeader::new(DumpId(5), BootId([1; 16])));
    let cause = Cause { kind: Some(CauseKind::FATAL_SIGNAL), pid: Some(PID), signal: Some(5), ..Cause::default() };
    writer.put(SectionKind::CAUSE, &cause);
    let role = Some(RegisterRole::FAULT);
    let set = Registers { role, pid: Some(PID), regs: Some(List::new(&regs)), ..Registers::default() };
    writer.put(SectionKind::REGISTERS, &set);
    let mut put = |vaddr, bytes: &[u8]| {
        let piece = Memory { pid: Some(PID), vaddr: Some(vaddr), bytes: Some(bytes), ..Memory::default() };
        writer.put(SectionKind::STACKS, &piece);
    };
    put(low.expect("a stack"), &stack);
    for (start, _, length) in image.loaded().filter(|_| memory) {
        let mut bytes = vec![0; length as usize];
        assert_eq!(image.read(start, &mut bytes), bytes.len());
        put(start, &bytes);
    }
    let bytes = writer.finish().expect("memory");
    Dump::load(DumpFile::from_bytes(bytes).expect("a dump"), Depth::Rules)
}

const LIMITS: Limits = Limits { depth: 4, elements: 16 };

fn asked(memory: bool, text: Option<&str>, number: usize) -> Result<PrintReport, PrintError> {
    let image = Arc::new(Image::open(&fixture("values.elf"), &IndexCache::none()).expect("the fixture"));
    asked_by(&image.clone(), image, memory, text, number)
}

/// The same with symbols of another image.
fn asked_by(
    image: &Image,
    named: Arc<Image>,
    memory: bool,
    text: Option<&str>,
    number: usize,
) -> Result<PrintReport, PrintError> {
    let dump = dump(image, memory);
    let mut symbols = Symbols::new();
    symbols.add(LoadedImage::new(named, 0, Some(PID)));
    let (case, ram) = (dump.case(), Ram::of(&dump));
    let space = Wanted { pid: Some(PID), ..Wanted::default() }.find(&case).expect("recorded");
    let subject = Subject { case: &case, symbols: &symbols, reader: Reader::new(&case, &ram), space: &space };
    let parsed = text.map(|text| (text, Expression::parse(text).expect("an expression")));
    let expression = parsed.as_ref().map(|(text, parsed)| (*text, parsed));
    print(subject, expression, FrameChoice { number, ..FrameChoice::default() }, LIMITS, "x")
}

/// The value in words, fields in braces.
fn words(node: &Node) -> String {
    if let Some(missing) = node.missing {
        return format!("<{missing:?}>");
    }
    let mut out = node.value.clone().unwrap_or_default();
    if !node.fields.is_empty() {
        let name = |field: &Node| field.name.as_ref().map(|name| format!("{name}: ")).unwrap_or_default();
        let fields: Vec<String> = node.fields.iter().map(|field| format!("{}{}", name(field), words(field))).collect();
        out.push_str(&format!(" {{{}}}", fields.join(", ")));
    }
    out.trim().to_owned()
}

fn value(text: &str, number: usize) -> String {
    words(&asked(true, Some(text), number).unwrap_or_else(|error| panic!("{text}: {error}")).values[0])
}

#[test]
fn arguments_and_locals_of_a_frame_are_what_gdb_shows() {
    let report = asked(true, None, 1).expect("a frame");
    assert!(report.frame.as_deref().is_some_and(|frame| frame.starts_with("#1 values::inner+")), "{report:?}");
    let shown: Vec<String> = report
        .values
        .iter()
        .map(|node| format!("{} = {}", node.name.as_deref().unwrap_or_default(), words(node)))
        .collect();
    for wanted in [
        "record = 0x402040",
        "offset = -6",
        "label = \"outer\"",
        "numbers = 0x402002, 5 long {1, 2, 3, 5, 8}",
        "list = {5, 2, 3}",
        "level = 5",
        "maybe = Some {0: 2}",
        "pair = {0: -6, 1: 4294967298 (0x100000002)}",
    ] {
        assert!(shown.iter().any(|line| line == wanted), "{wanted} is not in {shown:#?}");
    }
    assert_eq!(value("count", 2), "3");
}

#[test]
fn statics_are_shown_with_their_variants_and_parts_of_them_are_reached() {
    let whole = value("RECORD", 0);
    for wanted in [
        "id: 4294967298 (0x100000002)",
        "name: \"the record\"",
        "shapes: {Circle {radius: 500}, Named {0: \"square\", 1: 4}, Empty}",
        "none: None",
        "letter: 'ß'",
        "on: true",
        "share: 0.25",
        "level: High",
    ] {
        assert!(whole.contains(wanted), "{wanted} is not in {whole}");
    }
    assert_eq!(value("RECORD.shapes[0].radius", 0), "500");
    assert_eq!(value("RECORD.shapes[1].1", 0), "4");
    assert_eq!(value("*RECORD.at.Some.0", 0), "{x: -3, y: 4}");
    assert_eq!(value("values::RECORD.at.0.y", 0), "4");
    assert_eq!(value("record.name", 1), "\"the record\"");
    assert_eq!(value("*pair", 0), "{0: -6, 1: 4294967298 (0x100000002)}");
    assert_eq!(value("deep::NUMBERS[4]", 0), "8");
    assert_eq!((value("deep::TWICE", 0), value("other::TWICE", 0)), ("1".to_owned(), "2".to_owned()));
}

#[test]
fn what_is_not_in_the_dump_or_the_program_is_told_and_never_zero() {
    let report = asked(false, Some("RECORD"), 0).expect("it is known where it is");
    assert!(report.incomplete);
    assert!(
        report.values[0].fields.iter().all(|field| field.value.is_none() || field.missing.is_some()),
        "{report:#?}"
    );
    let through = asked(false, Some("record.name"), 1).expect("a pointer in the stack");
    assert_eq!(through.values[0].missing, Some(Missing::NotCaptured));
    let refused = |text: &str, number| asked(true, Some(text), number).expect_err(text);
    assert_eq!(refused("nothing", 0), PrintError::Unknown("nothing".to_owned()));
    assert!(matches!(refused("TWICE", 0), PrintError::Ambiguous(names) if names.contains("other::TWICE")));
    assert!(matches!(refused("RECORD.radius", 0), PrintError::Unfit { .. }));
    assert!(matches!(refused("RECORD.id[3]", 0), PrintError::Unfit { .. }));
    assert!(matches!(asked(true, None, 99), Err(PrintError::NoFrame { number: 99, .. })));
}

/// Every function of an image.
fn functions(image: &Image) -> BTreeSet<(u64, u64)> {
    let symbols = image.all_symbols().expect("an index");
    symbols
        .into_iter()
        .filter(|(_, at, size)| *size > 0 && image.is_code(*at))
        .map(|(_, at, size)| (at, size))
        .collect()
}

#[test]
fn a_small_symbol_file_prints_what_the_whole_image_does() {
    let whole = Arc::new(Image::open(&fixture("values.elf"), &IndexCache::none()).expect("the fixture"));
    let (bytes, is_cut) = slim::slim(&whole, &functions(&whole), &[]).expect("a symbol file");
    assert!(!is_cut);
    let length = std::fs::metadata(fixture("values.elf")).expect("there").len();
    assert!((bytes.len() as u64) < length / 3, "{} of {length} bytes", bytes.len());
    let bytes = ImageBytes::Memory { name: "slim".into(), bytes: bytes.into() };
    let small = Arc::new(Image::from_bytes(bytes, &IndexCache::none()).expect("an image"));
    let mut values = 0;
    for number in 0..4 {
        let [one, two] = [&whole, &small].map(|named| asked_by(&whole, Arc::clone(named), true, None, number));
        assert_eq!(one, two, "frame {number}");
        values += one.map_or(0, |report| report.values.len());
    }
    assert!(values > 10, "{values}");
    for text in ["RECORD", "*RECORD.at.Some.0", "deep::NUMBERS", "deep::TWICE", "other::TWICE", "TWICE", "nothing"] {
        let [one, two] = [&whole, &small].map(|named| asked_by(&whole, Arc::clone(named), true, Some(text), 0));
        assert_eq!(one, two, "{text}");
    }
}

#[test]
fn random_expressions_and_mutated_debug_information_end_without_a_panic() {
    let mut seed = 0x0123_4567_89ab_cdef_u64;
    let mut random = move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    let parts =
        ["*", "RECORD", ".", "shapes", "[", "1", "]", "0x", "::", "ß", " ", "record", "-", "99999999999999999999"];
    for _ in 0..2000 {
        let text: String = (0..1 + random() % 8).map(|_| parts[random() as usize % parts.len()]).collect();
        let _ = Expression::parse(&text);
    }
    let whole = std::fs::read(fixture("values.elf")).expect("there");
    let sound = Image::open(&fixture("values.elf"), &IndexCache::none()).expect("the fixture");
    let (dump, functions) = (dump(&sound, true), functions(&sound));
    let (case, ram) = (dump.case(), Ram::of(&dump));
    let space = Wanted { pid: Some(PID), ..Wanted::default() }.find(&case).expect("recorded");
    let parsed = Expression::parse("RECORD").expect("an expression");
    for _ in 0..300 {
        let mut bytes = whole.clone();
        for _ in 0..1 + random() % 6 {
            // Behind the loaded parts, where the debug information is.
            let at = 0x1000 + random() as usize % (bytes.len() - 0x1000);
            bytes[at] = random() as u8;
        }
        let bytes = ImageBytes::Memory { name: "mutated".into(), bytes: bytes.into() };
        let Ok(image) = Image::from_bytes(bytes, &IndexCache::none()) else { continue };
        let _ = slim::slim(&image, &functions, &[]);
        let mut symbols = Symbols::new();
        symbols.add(LoadedImage::new(Arc::new(image), 0, Some(PID)));
        let subject = Subject { case: &case, symbols: &symbols, reader: Reader::new(&case, &ram), space: &space };
        for number in 0..3 {
            let _ = print(subject, None, FrameChoice { number, ..FrameChoice::default() }, LIMITS, "x");
        }
        let _ = print(subject, Some(("RECORD", &parsed)), FrameChoice::default(), LIMITS, "x");
    }
}

/// A dump of processors and tasks: each set of registers with its thread and processor, and whether that idled.
fn threads(sets: &[(Option<u32>, u32, u64, bool)], tasks: &[(u32, u32, u64)]) -> Dump {
    let mut writer = DumpWriter::new(Vec::new(), FileHeader::new(DumpId(6), BootId([1; 16])));
    writer.put(SectionKind::CAUSE, &Cause { kind: Some(CauseKind::LIVE), ..Cause::default() });
    for (tid, cpu, ip, idle) in sets {
        let (regs, stamp) = ([Reg::new(RegId::RIP, *ip)], Stamp { cpu: Some(*cpu), ..Stamp::default() });
        let set = Registers { tid: *tid, regs: Some(List::new(&regs)), stamp, ..Registers::default() };
        writer.put(SectionKind::REGISTERS, &set);
        let state = Some(if *idle { CpuState::IDLE } else { CpuState::STOPPED });
        writer.put(SectionKind::REGISTERS, &Cpu { number: Some(*cpu), state, ..Cpu::default() });
    }
    for (tid, cpu, ip) in tasks {
        let running = Some(TaskState::RUNNING).filter(|_| *ip == 0);
        let (kernel_ip, kernel_sp) = (Some(*ip).filter(|ip| *ip != 0), Some(16).filter(|_| *ip != 0));
        let (tid, last_cpu) = (Some(*tid), Some(*cpu));
        let state = running.or(Some(TaskState::IDLE));
        writer.put(SectionKind::TASKS, &Task { tid, last_cpu, state, kernel_ip, kernel_sp, ..Task::default() });
    }
    Dump::load(DumpFile::from_bytes(writer.finish().expect("memory")).expect("a dump"), Depth::Rules)
}

const KERNEL: u64 = 0xffff_8000_0000_0000;

fn chosen(dump: &Dump, tid: u32, cpu: Option<u32>) -> Result<u64, PrintError> {
    stack::of_thread(&dump.case(), tid, cpu).map(|(registers, _)| registers.ip().expect("a place") - KERNEL)
}

#[test]
fn thread_0_is_the_idle_thread_of_the_processor_that_idled() {
    // Ours: no set names the idle thread, and the processor's record says that it idled.
    let dump = threads(&[(None, 0, KERNEL + 1, true), (Some(3), 1, KERNEL + 2, false)], &[(3, 1, 0)]);
    assert_eq!(chosen(&dump, 0, None), Ok(1));
    assert_eq!(chosen(&dump, 3, None), Ok(2));
    let error = chosen(&dump, 0, Some(1)).expect_err("it ran thread 3");
    assert_eq!(error.to_string(), "the dump has no idle thread of CPU 1; it has those of CPUs 0");
}

#[test]
fn the_idle_threads_of_a_linux_are_chosen_by_processor() {
    // CPU 1 runs its own; that of CPU 0 is switched out, where its task record says; thread 9 is on CPU 0.
    let sets = [(Some(9), 0, KERNEL + 1, false), (None, 1, KERNEL + 2, false)];
    let dump = threads(&sets, &[(0, 1, 0), (9, 0, 0), (0, 0, KERNEL + 3), (5, 0, KERNEL + 4)]);
    assert_eq!((chosen(&dump, 0, Some(1)), chosen(&dump, 0, Some(0))), (Ok(2), Ok(3)));
    assert_eq!((chosen(&dump, 9, None), chosen(&dump, 5, None)), (Ok(1), Ok(4)));
    let error = chosen(&dump, 0, None).expect_err("there are two");
    assert!(error.to_string().contains("CPUs 0, 1; choose with --cpu"), "{error}");
    let busy = threads(&[(Some(9), 0, KERNEL + 1, false)], &[]);
    assert_eq!(chosen(&busy, 0, None), Err(PrintError::NoIdle));
    assert_eq!(chosen(&busy, 4, None), Err(PrintError::NoThread(4)));
}

#[test]
fn statics_of_a_unit_in_an_object_of_its_own_are_printed() {
    let folder = tempfile::tempdir().expect("a folder");
    let text =
        "struct point { int x; long y; };\nstruct point origin = { 3, 4 };\nint main(void) { return origin.x; }\n";
    std::fs::write(folder.path().join("one.c"), text).expect("written");
    let run = |arguments: &[&str]| {
        let status = std::process::Command::new("gcc").current_dir(&folder).args(arguments).status();
        assert!(status.expect("gcc").success());
    };
    run(&["-g", "-gsplit-dwarf", "-c", "one.c", "-o", "one.o"]);
    run(&["-no-pie", "one.o", "-o", "one"]);
    let image = Arc::new(Image::open(&folder.path().join("one"), &IndexCache::none()).expect("an image"));
    let (dump, whole) = (dump(&image, true), Arc::clone(&image));
    let mut symbols = Symbols::new();
    symbols.add(LoadedImage::new(image, 0, Some(PID)));
    let (case, ram) = (dump.case(), Ram::of(&dump));
    let space = Wanted { pid: Some(PID), ..Wanted::default() }.find(&case).expect("recorded");
    let subject = Subject { case: &case, symbols: &symbols, reader: Reader::new(&case, &ram), space: &space };
    let parsed = Expression::parse("origin.y").expect("an expression");
    let expression = Some(("origin.y", &parsed));
    let report = print(subject, expression, FrameChoice::default(), LIMITS, "x").expect("printed");
    assert_eq!(report.values.len(), 1);
    assert_eq!(report.values[0].value.as_deref(), Some("4"), "{:?}", report.values);

    // A small symbol file has them in itself.
    let (bytes, _) = slim::slim(&whole, &BTreeSet::new(), &[]).expect("a symbol file");
    let bytes = ImageBytes::Memory { name: "slim".into(), bytes: bytes.into() };
    let small = Arc::new(Image::from_bytes(bytes, &IndexCache::none()).expect("an image"));
    let mut symbols = Symbols::new();
    symbols.add(LoadedImage::new(small, 0, Some(PID)));
    let subject = Subject { symbols: &symbols, ..subject };
    let again = print(subject, expression, FrameChoice::default(), LIMITS, "x").expect("printed");
    assert_eq!(again.values, report.values);
}

//! Trails through `testing/data/trail/trail.s`, whose flow of values is known.

use std::path::Path;
use std::sync::Arc;

use kwab_format::record::{Cause, CauseKind, Memory, MemoryKind, RegId, RegisterRole, Registers};
use kwab_format::{BootId, DumpId, FileHeader, List, SectionKind, Sink, SinkError, Writer};
use object::{Object as _, ObjectSymbol as _};

use super::*;
use crate::analysis::evidence::ListedFunction;
use crate::analysis::finding::Evidence;
use crate::analysis::verify::Backing;
use crate::analysis::{Context, triage, triage_since};
use crate::builds::{BuildChanges, ChangedFunction};
use crate::model::Dump;
use crate::symbols::{Image, IndexCache, LoadedImage, Symbols};

/// Where the stack of the dead program lies.
const STACK: u64 = 0x7ffc_0000_1000;

struct Bytes(Vec<u8>);

impl Sink for Bytes {
    fn write(&mut self, bytes: &[u8]) -> Result<(), SinkError> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }
}

fn elf() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../testing/data/trail/trail.elf")
}

/// The address of a function of the fixture.
fn of(name: &str) -> u64 {
    let bytes = std::fs::read(elf()).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    file.symbols().find(|symbol| symbol.name() == Ok(name)).unwrap_or_else(|| panic!("{name}")).address()
}

fn symbols() -> Symbols {
    let mut symbols = Symbols::new();
    symbols.add(LoadedImage::new(Arc::new(Image::open(&elf(), &IndexCache::none()).unwrap()), 0, Some(7)));
    symbols
}

/// A death of the program: signal, instruction, failed access, registers, and the words from [`STACK`] on.
struct Death<'d> {
    signal: u32,
    ip: u64,
    fault: Option<u64>,
    registers: &'d [(RegId, u64)],
    words: &'d [u64],
}

impl Death<'_> {
    fn dump(&self) -> Vec<u8> {
        let mut buf = vec![0; 1 << 16];
        let header = FileHeader::new(DumpId(1), BootId([7; 16]));
        let mut writer = Writer::new(Bytes(Vec::new()), &mut buf, header);
        writer.begin(SectionKind::CAUSE).unwrap();
        let cause = Cause {
            kind: Some(CauseKind::FATAL_SIGNAL),
            pid: Some(7),
            comm: Some(b"prog"),
            signal: Some(self.signal),
            ip: Some(self.ip),
            fault_addr: self.fault,
            in_kernel: Some(false),
            ..Cause::default()
        };
        writer.put(&cause).unwrap();
        writer.begin(SectionKind::REGISTERS).unwrap();
        let place = [(RegId::RIP, self.ip), (RegId::RSP, STACK)];
        let regs: Vec<_> =
            place.iter().chain(self.registers).map(|(id, value)| kwab_format::record::Reg::new(*id, *value)).collect();
        let set = Registers {
            role: Some(RegisterRole::FAULT),
            pid: Some(7),
            regs: Some(List::new(&regs)),
            ..Registers::default()
        };
        writer.put(&set).unwrap();
        writer.begin(SectionKind::STACKS).unwrap();
        let bytes: Vec<u8> = self.words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let stack = Memory {
            kind: Some(MemoryKind::USER_STACK),
            vaddr: Some(STACK),
            pid: Some(7),
            bytes: Some(&bytes),
            ..Memory::default()
        };
        writer.put(&stack).unwrap();
        let (Bytes(bytes), done) = writer.finish();
        done.unwrap();
        bytes
    }

    fn trail(&self) -> Trail {
        let dump = Dump::from_bytes(self.dump()).unwrap();
        let case = dump.case();
        let symbols = symbols();
        let ctx = Context::new(&case, &symbols, &Backing::none());
        follow(&ctx).unwrap_or_else(|| panic!("no trail: {:?}", ctx.trace))
    }
}

fn texts(trail: &Trail) -> Vec<&str> {
    trail.links.iter().map(|link| link.text.as_str()).collect()
}

/// The stack of a fault in `close_session`, called from an address: its frame, then the caller's.
fn in_close_session(back: u64, outer: u64) -> Vec<u64> {
    let frame = STACK + 16;
    // Room of close_session, its saved rbx; then the frame record; then the caller's 16 bytes and frame record.
    vec![0, 0x1111, frame + 0x20, back, 0, 0, STACK + 0x40, outer, 0]
}

fn fault_in_close_session(words: &[u64]) -> Trail {
    let registers = [(RegId::RBX, 0), (RegId::RBP, STACK + 16)];
    let ip = of("close_session") + 0x11;
    Death { signal: 11, ip, fault: Some(0x18), registers: &registers, words }.trail()
}

#[test]
fn a_result_is_followed_through_a_spill_and_an_argument_to_the_function_that_returned_it() {
    let trail = fault_in_close_session(&in_close_session(of("run") + 0x1f, of("_start") + 9));
    assert_eq!(trail.start, "rbx=0x0 in close_session");
    let slot = STACK + 16 + 0x20 - 8;
    let expected = [
        "rdi".to_owned(),
        "argument 1 of close_session".to_owned(),
        format!("stack slot {slot:#x}"),
        "rax".to_owned(),
        "returned by open_session".to_owned(),
    ];
    assert_eq!(texts(&trail), expected, "{trail:#?}");
    assert_eq!(trail.origin.as_ref().map(|origin| origin.name.as_str()), Some("open_session"));
    assert!(trail.ends.contains("open_session has returned"), "{}", trail.ends);
    let words = trail.in_words();
    assert!(words.starts_with("rbx=0x0 in close_session ← rdi ← argument 1 of close_session ← stack slot"), "{words}");
}

#[test]
fn a_constant_argument_ends_at_the_caller_that_sets_it() {
    let mut words = in_close_session(of("set_up") + 0x10, of("_start") + 0xe);
    words[2] = STACK + 0x20;
    words.splice(4..6, []);
    let trail = fault_in_close_session(&words);
    assert_eq!(texts(&trail), ["rdi", "argument 1 of close_session", "0x0, a constant"], "{trail:#?}");
    assert_eq!(trail.origin.unwrap().name, "set_up");
    assert_eq!(trail.links[2].function, "set_up");
}

#[test]
fn a_call_through_an_empty_table_is_followed_to_the_table() {
    let words = [of("dispatch") + 0xa, STACK + 0x18, of("serve") + 0x10, STACK + 0x30, of("_start") + 0x13, 0];
    let registers = [(RegId::RAX, 0), (RegId::RBP, STACK + 8)];
    let trail = Death { signal: 11, ip: 0, fault: Some(0), registers: &registers, words: &words }.trail();
    assert_eq!(trail.start, "rax=0x0 in dispatch");
    let table = format!("address [{:#x}]", of("table"));
    assert_eq!(texts(&trail), ["[rdi+0x8]", "argument 1 of dispatch", table.as_str()], "{trail:#?}");
    assert!(trail.ends.contains("address of a variable"), "{}", trail.ends);
}

#[test]
fn a_panic_is_followed_from_the_check_that_led_to_it() {
    let words = [STACK + 0x10, of("check_session") + 0x15, STACK + 0x20, of("_start") + 0x18, 0, 0];
    let registers = [(RegId::RBP, STACK)];
    let ip = of("__assert_fail") + 4;
    let trail = Death { signal: 6, ip, fault: None, registers: &registers, words: &words }.trail();
    assert!(
        trail.start.starts_with("the check ") && trail.start.ends_with("test rax,rax in check_session: rax"),
        "{}",
        trail.start
    );
    assert_eq!(texts(&trail), ["returned by open_session"], "{trail:#?}");
    assert_eq!(trail.origin.unwrap().name, "open_session");
}

fn function(name: &str) -> Function {
    Function::of_image(&symbols(), Some(7), of(name)).unwrap()
}

#[test]
fn the_function_whose_result_was_tested_decided_that_a_check_failed() {
    let function = function("check_session");
    let call = function.ending_at(of("check_session") + 0x15).unwrap();
    assert_eq!(function.code[call].way, Way::End, "the code behind a failed assertion belongs to another way");
    let found = deciders::deciders(&symbols(), Some(7), &function, call);
    let told: Vec<_> = found.iter().map(|found| (found.name.as_str(), found.how.as_str(), found.entry)).collect();
    assert_eq!(told, [("open_session", "returned the tested value", Some(of("open_session")))]);
    let fact = Evidence::context(listed_suspects(&found).unwrap());
    assert_eq!(fact.functions[0].in_words(), "open_session, returned the tested value");
    assert_eq!(listed_suspects(&[]), None);
    // Nothing decides that the first instruction runs.
    assert_eq!(deciders::deciders(&symbols(), Some(7), &function, 0), []);
}

#[test]
fn the_function_that_returned_a_value_is_found_through_a_spill() {
    let function = function("run");
    let call = function.ending_at(of("run") + 0x1f).unwrap();
    let found = deciders::bringers(&symbols(), Some(7), &function, call, &[deciders::Place::Register(5)]);
    assert_eq!(found.iter().map(|found| found.name.as_str()).collect::<Vec<_>>(), ["open_session"]);
    assert_eq!(deciders::bringers(&symbols(), Some(7), &function, call, &[deciders::Place::Register(4)]), []);
}

#[test]
fn a_value_that_two_paths_bring_is_not_attributed_to_one_of_them() {
    let words = [STACK + 0x10, of("_start") + 0x1d, 0, 0];
    let registers = [(RegId::RAX, 0x10), (RegId::RBP, STACK)];
    let ip = of("pick") + 0x12;
    let trail = Death { signal: 11, ip, fault: Some(0x10), registers: &registers, words: &words }.trail();
    assert_eq!(texts(&trail), [""; 0]);
    assert!(trail.ends.contains("2 paths define it") && trail.ends.contains("[rdi+8]"), "{}", trail.ends);
    assert_eq!(trail.origin, None);
}

#[test]
fn the_trail_is_evidence_of_the_hypothesis_about_the_value() {
    let words = in_close_session(of("run") + 0x1f, of("_start") + 9);
    let registers = [(RegId::RBX, 0), (RegId::RBP, STACK + 16)];
    let ip = of("close_session") + 0x11;
    let bytes = Death { signal: 11, ip, fault: Some(0x18), registers: &registers, words: &words }.dump();
    let dump = Dump::from_bytes(bytes).unwrap();
    let triage = triage(&dump.case(), &symbols(), &Backing::none(), "x");
    let first = &triage.hypotheses[0];
    assert_eq!((first.rule, first.proven), ("NULL", false));
    assert!(first.score < 0.7, "a null pointer in a program is a symptom: {}", first.score);
    assert_eq!(first.function.as_ref().map(|function| function.name.as_str()), Some("close_session"));
    assert!(first.evidence.iter().any(|fact| fact.text.contains("returned by open_session")), "{first:#?}");
    assert!(triage.trail.is_some());
}

#[test]
fn any_registers_and_stack_are_followed_without_a_panic_and_in_bounded_steps() {
    let mut state = 1_u64;
    let mut random = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 16
    };
    let code = of("_start");
    for _ in 0..300 {
        let words: Vec<u64> = (0..24)
            .map(|_| match random() % 3 {
                0 => code + random() % 0xd0,
                1 => STACK + random() % 0xc0 / 8 * 8,
                _ => random(),
            })
            .collect();
        let registers = [(RegId::RBX, random()), (RegId::RBP, STACK + random() % 0x80 / 8 * 8)];
        let death = Death {
            signal: 11,
            ip: code + random() % 0xd0,
            fault: Some(random()),
            registers: &registers,
            words: &words,
        };
        let dump = Dump::from_bytes(death.dump()).unwrap();
        let case = dump.case();
        let symbols = symbols();
        let ctx = Context::new(&case, &symbols, &Backing::none());
        assert!(follow(&ctx).is_none_or(|trail| trail.links.len() <= 2 * MOST_STEPS));
    }
}

#[test]
fn what_was_changed_since_a_build_that_worked_comes_by_what_the_death_has_to_do_with_it() {
    let changed = |name: &str, explains: usize| ChangedFunction {
        name: name.to_owned(),
        file: Some("prog.c".to_owned()),
        line: Some(7),
        old_instructions: 40,
        new_instructions: 41,
        changed: 5,
        score: 0.1,
        explains,
        ..ChangedFunction::default()
    };
    let functions = vec![changed("elsewhere", 1), changed("came_along", 0), changed("close_session", 1)];
    let changes = BuildChanges { old: "0123456789abcdef".to_owned(), functions, ..BuildChanges::default() };
    let words = in_close_session(of("run") + 0x1f, of("_start") + 9);
    let registers = [(RegId::RBX, 0), (RegId::RBP, STACK + 16)];
    let ip = of("close_session") + 0x11;
    let death = Death { signal: 11, ip, fault: Some(0x18), registers: &registers, words: &words };
    let dump = Dump::from_bytes(death.dump()).unwrap();
    let case = dump.case();
    let triage = triage_since(&case, &symbols(), &Backing::none(), Some(&changes), "crash.kwab");
    let since = triage.since.unwrap();
    let rows: Vec<String> = since.functions.iter().map(ListedFunction::in_words).collect();
    let expected = [
        "close_session (prog.c:7), 3 of 41 instructions differ, on the stack of the death",
        "elsewhere (prog.c:7), 3 of 41 instructions differ",
    ];
    assert_eq!((rows.iter().map(String::as_str).collect::<Vec<_>>().as_slice(), since.more), (&expected[..], 0));
    let fact = triage.hypotheses[0].evidence.iter().find(|fact| fact.text.starts_with("changed since build 01234567…"));
    assert_eq!(fact.unwrap().functions, since.functions);
}

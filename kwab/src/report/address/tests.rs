//! Questions about addresses of small machines whose answers are known.

use kwab_format::record::{Memory, MemoryKind, Pte, PteLevel, Reg, RegId, RegisterRole, Registers, StackBounds};
use kwab_format::{BootId, DumpId, FileHeader, List, SectionKind};

use super::search::{Pattern, PatternError, search};
use super::translate::{Source, translate};
use super::whatis::{Question, Subject};
use crate::memory::{Ram, Wanted};
use crate::model::bulk::BulkMemory;
use crate::model::emit::DumpWriter;
use crate::model::{Depth, Dump, DumpFile};
use crate::symbols::Symbols;

type Writer = DumpWriter<Vec<u8>>;

fn dump(fill: impl FnOnce(&mut Writer)) -> Dump {
    let mut writer = DumpWriter::new(Vec::new(), FileHeader::new(DumpId(9), BootId([1; 16])));
    fill(&mut writer);
    let bytes = writer.finish().expect("memory");
    Dump::load(DumpFile::from_bytes(bytes).expect("a dump"), Depth::Rules)
}

fn page_of(entries: &[(usize, u64)]) -> Vec<u8> {
    let mut page = vec![0; 4096];
    entries.iter().for_each(|(at, raw)| page[at * 8..at * 8 + 8].copy_from_slice(&raw.to_le_bytes()));
    page
}

/// CPU 0 maps 0x400000 to 0x20_0000 by a large page, of which 12 KiB are captured: text, zeros, text.
fn machine(writer: &mut Writer) {
    let regs = [Reg::new(RegId::CR3, 0x1000), Reg::new(RegId::RSP, 0x40_1f00), Reg::new(RegId::RBX, 0x40_0ffe)];
    let set = Registers { role: Some(RegisterRole::FAULT), regs: Some(List::new(&regs)), ..Registers::default() };
    writer.put(SectionKind::REGISTERS, &set);
    let mut bulk = BulkMemory::default();
    bulk.put(writer, 0x1000, &page_of(&[(0, 0x2007)]));
    bulk.put(writer, 0x2000, &page_of(&[(0, 0x3007)]));
    bulk.put(writer, 0x3000, &page_of(&[(2, 0x20_0087), (3, 0x7000_0000)]));
    let mut text = vec![b'.'; 4096];
    text[4094..].copy_from_slice(b"ab");
    bulk.put(writer, 0x20_0000, &text);
    bulk.put(writer, 0x20_1000, &[0; 4096]);
    bulk.put(writer, 0x20_2000, &[b'z'; 4096]);
    std::mem::take(&mut bulk).finish(writer);
}

#[test]
fn a_search_finds_what_crosses_pages_zeros_and_sections_and_says_where_it_is_mapped() {
    let dump = dump(machine);
    let (case, ram) = (dump.case(), Ram::of(&dump));
    let find = |bytes: &[u8], align| {
        let pattern = Pattern::new(bytes.to_vec(), align).expect("a pattern");
        search(&case, &ram, &Symbols::new(), &pattern, 8, "x")
    };
    let across = find(b"ab\0\0\0", 1);
    assert_eq!((across.count, across.searched), (1, 6 * 4096));
    let hit = &across.hits[0];
    assert_eq!(hit.physical.as_deref(), Some("0x0000000000200ffe"));
    assert_eq!(hit.addresses[0].address, "0x0000000000400ffe");
    assert_eq!((hit.before.as_str(), hit.behind.len()), ("2e".repeat(16).as_str(), 32));
    assert_eq!(find(b"\0\0z", 1).hits[0].physical.as_deref(), Some("0x0000000000201ffe"));
    let whole: Vec<u8> = [&b"b"[..], &[0; 4000]].concat();
    assert_eq!(find(&whole, 1).count, 1);
    assert_eq!(find(&[&b"b"[..], &[0; 4090], b"z"].concat(), 1).count, 0);
    assert_eq!((find(b"zz", 1).count, find(b"zz", 2).count, find(b"zz", 2).hits.len()), (4095, 2048, 8));
    assert_eq!(Pattern::new(vec![0; 8], 8).expect_err("refused"), PatternError::Zeros);
    assert_eq!(Pattern::new(Vec::new(), 8).expect_err("refused"), PatternError::Empty);
}

#[test]
fn hits_are_counted_as_a_scan_over_all_bytes_counts_them() {
    let mut seed = 77_u64;
    let mut random = move |most: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % most
    };
    for _ in 0..30 {
        // Pieces of a few bytes of few values, some zero, without gaps: many hits across their seams.
        let pieces: Vec<Vec<u8>> = (0..40)
            .map(|_| {
                let value = random(3) as u8;
                (0..1 + random(9)).map(|_| if value == 0 { 0 } else { random(2) as u8 }).collect()
            })
            .collect();
        let flat: Vec<u8> = pieces.concat();
        let dump = dump(|writer| {
            let mut bulk = BulkMemory::default();
            let mut at = 0x5000;
            for piece in &pieces {
                bulk.put(writer, at, piece);
                at += piece.len() as u64;
            }
            bulk.finish(writer);
        });
        let (case, ram) = (dump.case(), Ram::of(&dump));
        for pattern in [&b"\x01"[..], b"\x01\0", b"\0\x01", b"\0\0\x01\0\0", b"\x01\0\0\0\0\0\x01"] {
            let wanted = flat.windows(pattern.len()).filter(|window| *window == pattern).count() as u64;
            let asked = Pattern::new(pattern.to_vec(), 1).expect("a pattern");
            assert_eq!(search(&case, &ram, &Symbols::new(), &asked, 4, "x").count, wanted, "{pattern:?} in {flat:?}");
        }
    }
}

#[test]
fn a_translation_shows_each_level_and_what_is_missing() {
    let dump = dump(machine);
    let (case, ram) = (dump.case(), Ram::of(&dump));
    let space = Wanted::default().find(&case).expect("a space");
    let asked = |addr| translate(&case, &ram, &space, addr, "x");
    let led = asked(0x40_1234);
    assert_eq!((led.physical.as_deref(), led.page_bytes), (Some("0x0000000000201234"), Some(2 << 20)));
    let shown: Vec<_> = led.levels.iter().map(|row| (row.table, row.index)).collect();
    assert_eq!(shown, [("PML4", 0), ("PDPT", 0), ("PD", 2)]);
    assert!(led.captured && !led.incomplete && led.source == Source::Tables);
    let hole = asked(0x40_3000);
    assert_eq!((hole.captured, hole.incomplete), (false, false));
    assert!(asked(0x60_0000).conclusion.contains("PD entry is not present"));
    assert!(asked(0x8000_0000_0000).conclusion.contains("not canonical"));
    let other = Wanted { cr3: Some(0x9000), ..Wanted::default() }.find(&case).expect("given");
    let lost = translate(&case, &ram, &other, 0x1000, "x");
    assert!(lost.incomplete && lost.levels[0].entry.is_none(), "{lost:?}");
}

#[test]
fn an_address_of_57_bits_is_one_where_cr4_says_so() {
    let class = |cr4| {
        let dump = dump(|writer| {
            let regs = [Reg::new(RegId::CR3, 0x1000), Reg::new(RegId::CR4, cr4)];
            let set =
                Registers { role: Some(RegisterRole::FAULT), regs: Some(List::new(&regs)), ..Registers::default() };
            writer.put(SectionKind::REGISTERS, &set);
        });
        let (case, ram, symbols) = (dump.case(), Ram::of(&dump), Symbols::new());
        let space = Wanted::default().find(&case).expect("a space");
        let question =
            Question { case: &case, ram: &ram, symbols: &symbols, space: &space, addr: 0xff11_0000_1234_5678 };
        question.answer(false, "x").facts.remove(0).text
    };
    assert_eq!(class(0), "not canonical: no 4-level page table maps it");
    assert_eq!(class(1 << 12), "an address of the kernel");
}

#[test]
fn recorded_entries_translate_as_far_as_they_go() {
    let levels = [(4, 0x2007, 0x1000), (3, 0x3007, 0x2000), (2, 0x4007, 0x3010)];
    let levels: Vec<PteLevel<'_>> = levels
        .map(|(level, raw, addr)| PteLevel {
            level: Some(level),
            raw: Some(raw),
            addr: Some(addr),
            ..PteLevel::default()
        })
        .to_vec();
    let dump = dump(|writer| {
        let pte = Pte {
            pid: Some(7),
            vaddr: Some(0x40_1000),
            raw: Some(0x8000_0000_0000_9007),
            size: Some(4096),
            count: Some(3),
            levels: Some(List::new(&levels)),
            ..Pte::default()
        };
        writer.put(SectionKind::PAGE_TABLE, &pte);
    });
    let (case, ram) = (dump.case(), Ram::of(&dump));
    let space = Wanted { pid: Some(7), ..Wanted::default() }.find(&case).expect("recorded");
    let led = translate(&case, &ram, &space, 0x40_2010, "x");
    assert_eq!((led.source, led.physical.as_deref()), (Source::Records, Some("0x000000000000a010")));
    assert_eq!(led.rights.as_deref(), Some("rw- user"));
    let last = led.levels.last().expect("the leaf");
    assert_eq!((last.at.as_deref(), last.entry.as_deref()), (Some("0x0000000000004010"), Some("0x800000000000a007")));
    assert!(translate(&case, &ram, &space, 0x50_0000, "x").incomplete);
}

#[test]
fn what_an_address_is_names_registers_stacks_tables_and_captured_bytes() {
    let dump = dump(|writer| {
        machine(writer);
        let stack =
            StackBounds { label: Some(b"task"), low: Some(0x40_1000), high: Some(0x40_2000), ..StackBounds::default() };
        writer.put(SectionKind::STACKS, &stack);
        let piece = Memory {
            kind: Some(MemoryKind::OBJECT),
            vaddr: Some(0x40_0ff0),
            bytes: Some(&[1; 32]),
            ..Memory::default()
        };
        writer.put(SectionKind::STACKS, &piece);
    });
    let (case, ram) = (dump.case(), Ram::of(&dump));
    let space = Wanted::default().find(&case).expect("a space");
    let ask = |addr, physical| {
        let symbols = Symbols::new();
        Question { case: &case, ram: &ram, symbols: &symbols, space: &space, addr }.answer(physical, "x")
    };
    let has = |answer: &super::whatis::WhatIs, subject, words: &str| {
        assert!(answer.facts.iter().any(|fact| fact.subject == subject && fact.text.contains(words)), "{answer:#?}");
    };
    let held = ask(0x40_0ffe, false);
    has(&held, Subject::Register, "rbx");
    has(&held, Subject::Captured, "byte 14 of 32");
    has(&held, Subject::Translation, "0x0000000000200ffe");
    let stack = ask(0x40_1f10, false);
    has(&stack, Subject::Stack, "0x10 bytes above");
    has(&stack, Subject::Stack, "the task stack");
    assert!(stack.captured && !ask(0x40_3000, false).captured);
    has(&ask(0x2008, true), Subject::PageTable, "level 3");
    has(&ask(0x20_0000, true), Subject::Mapped, "0x0000000000400000");
}

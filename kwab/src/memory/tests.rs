//! Page tables of every shape, sound and hostile, and memory that is there, zero, or missing.

use std::collections::HashMap;

use kwab_format::record::{Memory, Reg, RegId, RegisterRole, Registers};
use kwab_format::{BootId, DumpId, FileHeader, List, SectionKind};

use super::*;
use crate::model::Dump;
use crate::model::bulk::BulkMemory;
use crate::model::emit::DumpWriter;

fn led(entries: &[(u64, u64)], levels: u8, addr: u64) -> Walk {
    let words: HashMap<u64, u64> = entries.iter().copied().collect();
    walk(Tables { root: 0x1000, levels }, addr, &|at| words.get(&at).copied())
}

#[test]
fn leaves_of_every_size_are_reached_with_the_rights_of_all_levels() {
    let small = [(0x1000, 0x2007), (0x2000, 0x3007), (0x3008, 0x4005), (0x4010, 0x8000_0000_0009_9003)];
    let walked = led(&small, 4, 0x20_2abc);
    let rights = Rights { write: false, user: false, execute: false };
    assert_eq!(walked.outcome, Outcome::Page { paddr: 0x9_9abc, size: 4096, rights });
    let steps: Vec<_> = walked.steps.iter().map(|step| (step.level, step.index, step.at)).collect();
    assert_eq!(steps, [(4, 0, 0x1000), (3, 0, 0x2000), (2, 1, 0x3008), (1, 2, 0x4010)]);
    let large = [(0x1000, 0x2007), (0x2000, 0x3007), (0x3008, 0x1260_1087), (0x2008, 0xc000_0083)];
    assert_eq!(led(&large, 4, 0x23_4567).outcome.size(), Some((0x1263_4567, 1 << 21)));
    assert_eq!(led(&large, 4, 0x4765_4321).outcome.size(), Some((0xc765_4321, 1 << 30)));
    let five = [(0x1008, 0x2007), (0x2000, 0x3007), (0x3000, 0x4007), (0x4000, 0x5007), (0x5000, 0x6007)];
    assert_eq!(led(&five, 5, 1 << 48).paddr(), Some(0x6000));
    assert_eq!(led(&five, 4, 1 << 48).outcome, Outcome::NotCanonical);
    assert_eq!(flags(0x8000_0000_0009_9063, 1), ["present", "write", "accessed", "no-execute", "dirty"]);
    assert_eq!(flags(0x83, 2), ["present", "write", "large"]);
}

impl Outcome {
    fn size(self) -> Option<(u64, u64)> {
        match self {
            Self::Page { paddr, size, .. } => Some((paddr, size)),
            _ => None,
        }
    }
}

#[test]
fn what_ends_a_walk_is_told_with_its_level() {
    assert_eq!(led(&[(0x1000, 0x2007)], 4, 0).outcome, Outcome::NotCaptured(3));
    assert_eq!(led(&[(0x1000, 0x2006)], 4, 0).outcome, Outcome::NotPresent(4));
    assert_eq!(led(&[(0x1000, 0x2087)], 4, 0).outcome, Outcome::Reserved(4));
    assert_eq!(led(&[], 4, 0x8000_0000_0000).outcome, Outcome::NotCanonical);
    assert_eq!(led(&[], 4, 0xffff_8000_0000_0000).outcome, Outcome::NotCaptured(4));
    assert_eq!(led(&[], 0, 0).outcome, Outcome::NotCaptured(0));
    let far = walk(Tables { root: u64::MAX, levels: 4 }, u64::MAX, &|_| None);
    assert_eq!((far.outcome, far.steps[0].at), (Outcome::NotCaptured(4), 0x000f_ffff_ffff_fff8));
}

/// A dump with this physical memory, and CPU 0 with its root at `cr3`.
fn dump(memory: &[(u64, Vec<u8>)], cr3: u64) -> Dump {
    let mut writer = DumpWriter::new(Vec::new(), FileHeader::new(DumpId(3), BootId([1; 16])));
    let regs = [Reg::new(RegId::CR3, cr3)];
    let set = Registers { role: Some(RegisterRole::FAULT), regs: Some(List::new(&regs)), ..Registers::default() };
    writer.put(SectionKind::REGISTERS, &set);
    // Captured by virtual address, so it comes before what the tables say.
    let piece = Memory { vaddr: Some(0x40_1010), bytes: Some(b"captured"), ..Memory::default() };
    writer.put(SectionKind::STACKS, &piece);
    let mut bulk = BulkMemory::default();
    for (start, bytes) in memory {
        for (number, page) in bytes.chunks(4096).enumerate() {
            bulk.put(&mut writer, start + number as u64 * 4096, page);
        }
    }
    bulk.finish(&mut writer);
    Dump::from_bytes(writer.finish().expect("memory")).expect("a dump")
}

fn page_of(entries: &[(usize, u64)]) -> Vec<u8> {
    let mut page = vec![0; 4096];
    entries.iter().for_each(|(at, raw)| page[at * 8..at * 8 + 8].copy_from_slice(&raw.to_le_bytes()));
    page
}

#[test]
fn reads_take_captured_bytes_first_then_the_tables_and_end_where_nothing_is_known() {
    let memory = [
        (0x1000, page_of(&[(0, 0x2007)])),
        (0x2000, page_of(&[(0, 0x3007)])),
        (0x3000, page_of(&[(2, 0x4007)])),
        (0x4000, page_of(&[(1, 0x9007), (2, 0xa007), (3, 0x7_7007)])),
        (0x9000, vec![b'x'; 4096]),
        (0xa000, vec![0; 4096]),
    ];
    let dump = dump(&memory, 0x1000);
    let (case, ram) = (dump.case(), Ram::of(&dump));
    let reader = Reader::new(&case, &ram);
    let space = Wanted::default().find(&case).expect("a space");
    let mut bytes = vec![1; 3 * 4096];
    assert_eq!(reader.read(&space, 0x40_1000, &mut bytes), 2 * 4096, "the third page is mapped and not captured");
    assert_eq!(&bytes[..0x1a], b"xxxxxxxxxxxxxxxxcapturedxx");
    assert!(bytes[4096..8192].iter().all(|byte| *byte == 0));
    assert_eq!(reader.word(&space, 0x40_4000), None, "not mapped");
    assert_eq!(reader.word(&space, u64::MAX - 3), None);
    let other = Wanted { cr3: Some(0x5000), ..Wanted::default() }.find(&case).expect("given");
    assert_eq!(reader.word(&other, 0x40_1000), None, "its tables are not captured");
    assert!(Wanted { pid: Some(77), ..Wanted::default() }.find(&case).is_err());
    assert!(Wanted { cpu: Some(9), ..Wanted::default() }.find(&case).is_err());
    let reverse = Reverse::of(&ram, &spaces(&case));
    assert_eq!(reverse.mapped(0xa123).map(|(addr, _)| addr).collect::<Vec<_>>(), [0x40_2123]);
    assert_eq!((reverse.table_at(0x3008), reverse.table_at(0x9000)), (Some((2, 0)), None));
}

#[test]
fn memory_is_found_without_an_index_and_a_wrong_index_finds_no_wrong_bytes() {
    let memory = [(0x10_0000, vec![5; 8192]), (0x80_0000, vec![6; 4096])];
    let whole = dump(&memory, 0);
    let read = |dump: &Dump, at| {
        let mut byte = [0];
        (Ram::of(dump).read(at, &mut byte) == 1).then_some(byte[0])
    };
    let seen = |dump: &Dump| [0x10_0000, 0x10_1fff, 0x10_2000, 0x80_0fff].map(|at| read(dump, at));
    assert_eq!(seen(&whole), [Some(5), Some(5), None, Some(6)]);
    let mut unlisted = dump(&memory, 0);
    unlisted.file.tables.clear();
    assert_eq!(seen(&unlisted), [Some(5), Some(5), None, Some(6)]);
}

#[test]
fn tables_that_lead_to_themselves_end_a_search_for_mappings() {
    let looped = |at: u64| (0..512).map(|entry| (entry, at | 7)).collect::<Vec<_>>();
    let dump = dump(&[(0x1000, page_of(&looped(0x1000)))], 0x1000);
    let (case, ram) = (dump.case(), Ram::of(&dump));
    let reverse = Reverse::of(&ram, &spaces(&case));
    assert!(!reverse.cut && reverse.missing == 0);
    // The recursive mapping shows the table at addresses of its own.
    assert!(reverse.mapped(0x1000).next().is_some());
    let walked = walk(Tables { root: 0x1000, levels: 4 }, 0x1234, &|at| ram.word(at));
    assert_eq!(walked.paddr(), Some(0x1234));
}

#[test]
fn random_tables_end_every_walk_in_at_most_five_steps() {
    let mut seed = 0xdead_beef_cafe_f00d_u64;
    let mut random = move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    for round in 0..40 {
        let pages: Vec<(u64, Vec<u8>)> = (0..6)
            .map(|page| {
                let entry =
                    |at| (at, if random() % 3 == 0 { random() } else { (random() % 8) << 12 | (random() & 0x87) });
                (0x1000 * page, page_of(&(0..512).map(entry).collect::<Vec<_>>()))
            })
            .collect();
        let dump = dump(&pages, 0x1000 * (round % 6));
        let (case, ram) = (dump.case(), Ram::of(&dump));
        let space = Wanted::default().find(&case).expect("a space");
        let tables = Tables { levels: 4 + (round % 2) as u8, ..space.tables.expect("a root") };
        for _ in 0..200 {
            let addr = random();
            let walked = walk(tables, addr, &|at| ram.word(at));
            assert!(walked.steps.len() <= 5);
            let _ = Reader::new(&case, &ram).word(&space, addr);
        }
        let reverse = Reverse::of(&ram, &[Space { tables: Some(tables), ..space }]);
        let _ = reverse.mapped(random() % 0x8000).count();
    }
}

/// A dump of passes over the same addresses, each of which has every third page in sections of its own.
fn in_passes(pages: u64) -> Dump {
    let mut writer = DumpWriter::new(Vec::new(), FileHeader::new(DumpId(3), BootId([1; 16])));
    for pass in 0..3 {
        for section in 0..pages / 48 {
            let mut bulk = BulkMemory::default();
            // The first pass has one section for all addresses.
            let (first, step) = if pass == 0 { (0, pages / 16) } else { (section * 48, 3) };
            for number in (first + pass..).step_by(step as usize).take(16) {
                bulk.put(&mut writer, number * 4096, &[1 + pass as u8; 4096]);
            }
            bulk.finish(&mut writer);
            if pass == 0 {
                break;
            }
        }
    }
    Dump::from_bytes(writer.finish().expect("memory")).expect("a dump")
}

#[test]
fn memory_in_order_of_value_is_found_under_later_passes_over_the_same_addresses() {
    let dump = in_passes(48 * 64);
    let ram = Ram::of(&dump);
    let first = |page: u64| ram.word(page * 4096).map(|word| word.to_le_bytes()[0]);
    // The section of the first pass begins before sixty-three of the others.
    let sparse: Vec<_> = (0..16).map(|number| first(number * 192)).collect();
    assert_eq!(sparse, [Some(1); 16]);
    assert_eq!((first(1), first(2), first(48 * 63 + 1), first(48 * 63 + 2)), (Some(2), Some(3), Some(2), Some(3)));
    assert_eq!((first(3), first(48 * 64)), (None, None), "pages of no pass");
}

//! What analyses cost on dumps made to be expensive, counted in comparisons of the lookups by address.

use super::*;
use crate::intervals::work;
use crate::model::emit::DumpWriter;

/// Records of a kind in these dumps.
const MANY: u64 = 10_000;
/// Sets of registers whose stacks are walked.
const STACKS: u64 = 40;
/// Words on the stack, none of which is a return address.
const WORDS: u64 = 1024;

fn dump(records: impl FnOnce(&mut DumpWriter<Vec<u8>>)) -> Dump {
    let mut writer = DumpWriter::new(Vec::new(), header());
    records(&mut writer);
    Dump::from_bytes(writer.finish().unwrap()).unwrap()
}

#[test]
fn stacks_among_ten_thousand_pieces_of_memory_cost_a_bisection_per_word() {
    let stack: Vec<u8> = (0..WORDS).flat_map(|word| (0xffff_9000_0000_0000 + word * 0x1000).to_le_bytes()).collect();
    let dump = dump(|out| {
        for number in 0..MANY {
            let vaddr = Some(0xffff_8000_0000_0000 + number * 0x10_0000);
            out.put(SectionKind::MEMORY, &Memory { vaddr, bytes: Some(b"12345678"), ..Memory::default() });
            let (start, end) = (0xffff_a000_0000_0000 + number * 0x2000, 0xffff_a000_0000_1000 + number * 0x2000);
            let (start, end, kind) = (Some(start), Some(end), Some(ImageKind::MODULE));
            out.put(SectionKind::MEMORY, &Image { kind, start, end, ..Image::default() });
        }
        let vaddr = Some(0xffff_c000_0000_0000);
        out.put(SectionKind::MEMORY, &Memory { vaddr, bytes: Some(&stack), ..Memory::default() });
        for number in 0..STACKS {
            let reg = |id: u16, value: u64| Reg { id: Some(RegId(id)), value: Some(value), ..Reg::default() };
            let regs = [reg(7, 0xffff_c000_0000_0000), reg(16, 0xffff_9000_0000_0000 + number)];
            let set = Registers {
                role: Some(RegisterRole::SWITCHED_OUT),
                tid: Some(number as u32),
                regs: Some(List::new(&regs)),
                ..Registers::default()
            };
            out.put(SectionKind::REGISTERS, &set);
        }
    });
    let (case, symbols) = (dump.case(), Symbols::new());
    let death = Postmortem::of(&case);
    let (found, comparisons) = work::of(|| stacks::all(&case, &symbols, &death));
    assert!(!found.is_empty());
    // A scan over the records would make 400 million.
    assert!(comparisons < STACKS * WORDS * 32, "{comparisons} comparisons");
    assert!(comparisons > STACKS * WORDS, "the words were looked at: {comparisons}");
}

#[test]
fn page_checks_among_ten_thousand_mappings_cost_a_bisection_each() {
    let dump = dump(|out| {
        for number in 0..MANY {
            let (start, end) = (Some(0x40_0000 + number * 0x2000), Some(0x40_1000 + number * 0x2000));
            let vma = Vma { pid: Some(9), start, end, path: Some(b"/bin/f"), prot: Some(5), ..Vma::default() };
            out.put(SectionKind::MEMORY_MAP, &vma);
            let addr = Some(0x7f00_0000_0000 + number * 0x1000);
            let fail = PageVerifyFail { pid: Some(9), vaddr: addr, vma_start: addr, ..PageVerifyFail::default() };
            out.put(SectionKind::PAGE_CHECKS, &fail);
            let memory = Memory { pid: Some(9), vaddr: addr, bytes: Some(b"12345678"), ..Memory::default() };
            out.put(SectionKind::MEMORY, &memory);
        }
    });
    let case = dump.case();
    let (pages, comparisons) = work::of(|| crate::analysis::verify::verify(&case, &Backing::none()));
    assert_eq!(pages.len(), MANY as usize);
    assert!(comparisons < 2 * MANY * 64, "{comparisons} comparisons");
}

#[test]
fn frames_that_are_mapped_beyond_the_first_gibibyte_are_counted_too() {
    // Two processes map 2 GiB each, and the last frame is counted once only.
    let entries = |pid: u32, vaddr: u64| Pte {
        pid: Some(pid),
        vaddr: Some(vaddr),
        paddr: Some(0x1_0000_0000),
        count: Some(1 << 19),
        rights: Some(0b1001),
        ..Pte::default()
    };
    let last = 0x10_0000 + (1 << 19) - 1;
    let dump = dump(|out| {
        out.put(SectionKind::PAGE_TABLE, &entries(1, 0x40_0000));
        out.put(SectionKind::PAGE_TABLE, &entries(2, 0x7f00_0000_0000));
        let right =
            FrameInfo { frame: Some(0x10_0000), count: Some((1 << 19) - 1), refcount: Some(2), ..FrameInfo::default() };
        out.put(SectionKind::PAGE_TABLE, &right);
        out.put(SectionKind::PAGE_TABLE, &FrameInfo { frame: Some(last), refcount: Some(1), ..FrameInfo::default() });
    });
    let found = crate::analysis::audit::audit(&dump.case());
    let low = found.iter().find(|finding| finding.rule.contains("COUNT-LOW")).unwrap_or_else(|| panic!("{found:?}"));
    assert_eq!(low.count, 1);
    assert!(
        low.witnesses[0].text.starts_with(&format!("frame {:#x}: 1 reference, mapped 2 times", last << 12)),
        "{low:?}"
    );
}

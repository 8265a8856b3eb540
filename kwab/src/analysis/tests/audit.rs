//! Each rule of the audit: violated once, kept once, and with its records in other orders.

use super::*;
use crate::analysis::audit::{RULES, audit};

const M: SectionKind = SectionKind::MEMORY_MAP;
const P: SectionKind = SectionKind::PAGE_TABLE;

fn rules_of(maker: &Maker) -> Vec<&'static str> {
    let dump = Dump::from_bytes(maker.bytes()).unwrap();
    audit(&dump.case()).into_iter().map(|finding| finding.rule).collect()
}

/// A process whose mappings, entries and frames agree.
fn sound() -> Maker {
    Maker::new()
        .put(M, &vma(0x40_0000, 0x40_2000, 5, "/bin/prog"))
        .put(M, &vma(0x60_0000, 0x60_2000, 3, ""))
        .put(P, &pte(0x40_0000, 0xa000, "xu"))
        .put(P, &pte(0x60_0000, 0xb000, "wu"))
        .put(P, &frame(0xa000, 2, 2))
        .put(P, &frame(0xb000, 1, 0))
}

#[test]
fn addresses_of_programs_end_where_the_machine_says() {
    let high = || sound().put(M, &vma(1 << 50, (1 << 50) + 0x1000, 3, "")).put(P, &pte(1 << 50, 0xd000, "wu"));
    assert_eq!(rules_of(&high()), ["VM-KERNEL-U"], "four levels");
    let values = regs(&[(RegId::CR4, 1 << 12)]);
    let set = Registers { regs: Some(List::new(&values)), ..Registers::default() };
    let with_cr4 = |maker: Maker| maker.put(SectionKind::REGISTERS, &set);
    assert!(rules_of(&with_cr4(high())).is_empty(), "CR4.LA57");
    let outside = with_cr4(sound()).put(P, &pte(1 << 50, 0xd000, "wu"));
    assert_eq!(rules_of(&outside), ["VM-PTE"]);
    let of_arm = Identity { arch: Some(Arch::AARCH64), ..Identity::default() };
    let stack = vma(0xffff_f7fd_0000, 0xffff_f7ff_0000, 3, "[stack]");
    assert!(rules_of(&sound().put(SectionKind::IDENTITY, &of_arm).put(M, &stack)).is_empty(), "48 bits of a program");
}

fn level(raw: u64, entry: Pte<'static>) -> Maker {
    let mut maker = sound();
    maker.parts.push((P, one_level(&[PteLevel { level: Some(3), raw: Some(raw), ..PteLevel::default() }], entry)));
    maker
}

/// What violates each rule, and only it unless a second id is given.
fn violations() -> Vec<(&'static str, Maker)> {
    let segment = Segment { start: Some(0x70_0000), length: Some(0x2000), prot: Some(5), ..Segment::default() };
    let segments = [segment];
    let image = Image {
        pid: Some(7),
        path: Some(b"/bin/other"),
        kind: Some(ImageKind::EXECUTABLE),
        segments: Some(List::new(&segments)),
        ..Image::default()
    };
    let huge = Pte { size: Some(2 << 20), ..pte(0x20_0000, 0x40_0000, "wu") };
    let task =
        |pid: u32, root: u64| Task { pid: Some(pid), comm: Some(b"t"), page_table_root: Some(root), ..Task::default() };
    let audited =
        [AuditVma { start: Some(0x40_0000), end: Some(0x40_1000), perm_mismatch: Some(3), ..AuditVma::default() }];
    let leaked = FrameInfo {
        frame: Some(0x99),
        count: Some(40),
        refcount: Some(1),
        mapped: Some(0),
        flags: Some(0),
        ..FrameInfo::default()
    };
    let tail = |number: u64, refs: u64, flag: u32| FrameInfo {
        frame: Some(number),
        refcount: Some(refs),
        flags: Some(flag),
        ..FrameInfo::default()
    };
    vec![
        ("VM-OVERLAP", sound().put(M, &vma(0x60_1000, 0x60_3000, 3, ""))),
        (
            "VM-SPAN-2",
            sound()
                .put(M, &vma(0x60_2000, 0x60_2bf0, 3, ""))
                .put(M, &vma(0x60_2bf0, 0x60_4000, 3, "/bin/prog"))
                .put(P, &pte(0x60_2000, 0xc000, "wu")),
        ),
        ("VM-KERNEL-U", sound().put(P, &pte(0xffff_8000_0000_0000, 0xd000, "u"))),
        ("VM-ELF", sound().put(SectionKind::IMAGES, &image).put(M, &vma(0x70_0000, 0x70_2000, 7, "/bin/other"))),
        ("VM-LEVEL", level(1 << 63 | 7, pte(0x40_1000, 0xe000, "xu"))),
        ("VM-CACHE-W", sound().put(P, &pte(0x60_1000, 0xa000, "wu")).put(P, &frame(0xa000, 3, 2))),
        ("VM-FREE", sound().put(P, &pte(0x60_1000, 0xf000, "wu")).put(P, &frame(0xf000, 0, 1))),
        ("VM-COUNT-LOW", sound().put(P, &pte(0x60_1000, 0xb000, "wu"))),
        ("VM-SHARE", sound().put(SectionKind::TASKS, &task(1, 0x1000)).put(SectionKind::TASKS, &task(2, 0x1000))),
        ("VM-PTE", sound().put(P, &pte(0x80_0000, 0x1_0000, "wu"))),
        ("VM-RIGHTS-W", sound().put(P, &pte(0x40_1000, 0x1_1000, "wxu"))),
        ("VM-RIGHTS-X", sound().put(P, &pte(0x60_1000, 0x1_2000, "wxu"))),
        ("VM-RIGHTS-U", sound().put(M, &vma(0x90_0000, 0x90_1000, 0, "")).put(P, &pte(0x90_0000, 0x1_3000, "u"))),
        ("VM-DENY-X", sound().put(P, &pte(0x40_1000, 0x1_4000, "u"))),
        ("VM-DENY-U", sound().put(P, &pte(0x60_1000, 0x1_5000, "w"))),
        ("VM-HUGE", sound().put(M, &vma(0x20_0000, 0x30_0000, 3, "")).put(P, &huge)),
        ("VM-HUGE-COUNT", sound().put(P, &tail(512, 1, 0x10)).put(P, &tail(513, 2, 0x20))),
        ("VM-LEAK", sound().put(P, &leaked)),
        (
            "VM-REPORT",
            sound().put(
                SectionKind::EVENTS,
                &VmAudit { pid: Some(7), vmas: Some(List::new(&audited)), ..VmAudit::default() },
            ),
        ),
        ("VM-WX", sound().put(M, &vma(0x90_0000, 0x90_1000, 7, ""))),
    ]
}

#[test]
fn mappings_and_page_tables_that_agree_give_no_finding() {
    assert_eq!(rules_of(&sound()), Vec::<&str>::new());
}

#[test]
fn every_rule_finds_its_violation_and_names_the_record() {
    let all = violations();
    assert_eq!(
        all.iter().map(|(rule, _)| *rule).collect::<Vec<_>>(),
        RULES.iter().map(|rule| rule.id).collect::<Vec<_>>()
    );
    for (rule, maker) in all {
        let dump = Dump::from_bytes(maker.bytes()).unwrap();
        let findings = audit(&dump.case());
        let Some(finding) = findings.iter().find(|finding| finding.rule == rule) else {
            panic!("{rule} is silent: {findings:#?}")
        };
        assert!(finding.count >= 1 && finding.witnesses[0].at.is_some(), "{rule}");
        // A violation may break a second rule by its nature; never more.
        assert!(findings.len() <= 3, "{rule}: {findings:#?}");
    }
}

#[test]
fn a_violation_does_not_depend_on_the_order_of_records() {
    for (rule, mut maker) in violations() {
        maker.parts.reverse();
        assert!(rules_of(&maker).contains(&rule), "{rule}");
    }
}

#[test]
fn sharing_as_it_should_be_is_no_finding() {
    // Copy-on-write pages, shared mappings of cached pages, a vfork child, relro, and a run of entries.
    let shared = Vma { flags: Some(1), ..vma(0x70_0000, 0x70_1000, 3, "/tmp/shared") };
    let run = Pte { count: Some(2), ..pte(0x68_0000, 0x3_0000, "wu") };
    let task = |pid: u32, root: u64, why: &'static [u8]| Task {
        pid: Some(pid),
        page_table_root: Some(root),
        wait_reason: Some(why),
        ..Task::default()
    };
    let maker = sound()
        .put(P, &pte(0x60_1000, 0x2_0000, "uc"))
        .put(M, &shared)
        .put(P, &pte(0x70_0000, 0x2_1000, "wu"))
        .put(P, &frame(0x2_1000, 2, 2))
        .put(M, &vma(0x68_0000, 0x68_2000, 3, ""))
        .put(P, &run)
        .put(SectionKind::TASKS, &task(1, 0x1000, b"vfork"))
        .put(SectionKind::TASKS, &task(2, 0x1000, b""));
    assert_eq!(rules_of(&maker), Vec::<&str>::new());
}

#[test]
fn segments_in_one_mapping_are_judged_each_by_its_own_pages() {
    // Code and data meet in the page 0x701000.
    let segment = |start: u64, length: u64, prot: u32| Segment {
        start: Some(start),
        length: Some(length),
        prot: Some(prot),
        ..Segment::default()
    };
    let segments = [segment(0x70_0000, 0x1100, 5), segment(0x70_1800, 0x2000, 3)];
    let image = Image {
        pid: Some(7),
        path: Some(b"/bin/other"),
        kind: Some(ImageKind::EXECUTABLE),
        segments: Some(List::new(&segments)),
        ..Image::default()
    };
    let maker = || sound().put(SectionKind::IMAGES, &image);
    let apart =
        maker().put(M, &vma(0x70_0000, 0x70_1000, 5, "/bin/other")).put(M, &vma(0x70_1000, 0x70_4000, 3, "/bin/other"));
    assert_eq!(rules_of(&apart), Vec::<&str>::new());
    // With all rights everywhere the kernel makes one mapping of both.
    let merged = maker().put(M, &vma(0x70_0000, 0x70_4000, 7, "/bin/other"));
    let dump = Dump::from_bytes(merged.bytes()).unwrap();
    let findings = audit(&dump.case());
    let found = findings.iter().find(|finding| finding.rule == "VM-ELF").unwrap();
    assert_eq!(found.count, 2, "{:#?}", found.witnesses);
}

#[test]
fn the_level_that_denies_a_right_is_named() {
    let maker = level(1 << 63 | 7, pte(0x40_1000, 0xe000, "xu"));
    let dump = Dump::from_bytes(maker.bytes()).unwrap();
    let findings = audit(&dump.case());
    let denied = findings.iter().find(|finding| finding.rule == "VM-DENY-X").unwrap();
    assert!(denied.witnesses[0].text.contains("denied by level 3"), "{}", denied.witnesses[0].text);
}

/// Values at which sums, products and roundings leave 64 bits.
const EXTREMES: &[u64] = &[
    0,
    1,
    511,
    4095,
    4096,
    (1 << 21) - 1,
    1 << 21,
    0x40_1000,
    1 << 47,
    (1 << 52) - 1,
    1 << 52,
    1 << 63,
    u64::MAX - 4096,
    u64::MAX - 4095,
    u64::MAX - 1,
    u64::MAX,
];

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(400))]

    /// Records with sound checksums may hold any number.
    #[test]
    fn extreme_numbers_are_no_panic(
        picks in proptest::collection::vec(proptest::sample::select(EXTREMES), 24),
        flags in proptest::prelude::any::<u32>(),
        same in proptest::prelude::any::<bool>(),
    ) {
        let value = |at: usize| Some(picks[at]);
        let pid = if same { Some(7) } else { None };
        let mut maker = violations().swap_remove(flags as usize % RULES.len()).1;
        for at in [0, 4, 8] {
            let (map, entry) = (vma(0, 0, 7, "/bin/prog"), pte(0, 0, "xwu"));
            let map = Vma { pid, start: value(at), end: value(at + 1), file_offset: value(at + 2), ..map };
            let entry = Pte { pid, vaddr: value(at + 3), paddr: value(at), size: value(at + 1), ..entry };
            let info = FrameInfo {
                frame: value(at + 2),
                count: value(at + 3),
                refcount: value(at),
                mapped: value(at + 1),
                flags: Some(flags | 0x30),
                ..FrameInfo::default()
            };
            maker = maker.put(M, &map).put(P, &entry).put(P, &info);
        }
        let bytes = |at: usize| {
            Memory { pid, vaddr: value(at), paddr: value(at + 1), bytes: Some(&[1, 2, 3]), ..Memory::default() }
        };
        let cause = Cause {
            pid,
            kind: Some(CauseKind::FATAL_SIGNAL),
            signal: Some(11),
            ip: value(14),
            fault_addr: value(15),
            ..Cause::default()
        };
        let path = Some(&b"/bin/prog"[..]);
        let check = PageCheck { pid, vaddr: value(16), file_offset: value(17), path, ..PageCheck::default() };
        maker = maker
            .put(SectionKind::MEMORY, &bytes(12))
            .put(SectionKind::MEMORY, &bytes(18))
            .put(SectionKind::CAUSE, &cause)
            .put(SectionKind::PAGE_CHECKS, &check);
        judge(maker.bytes());
        let dump = Dump::from_bytes(maker.bytes()).unwrap();
        let files = Backing::from_files(vec![("/bin/prog".into(), vec![9; 5000])]);
        let _ = crate::analysis::verify::verify(&dump.case(), &files);
        let _ = crate::analysis::verify::verified(&dump.case(), &files);
    }
}

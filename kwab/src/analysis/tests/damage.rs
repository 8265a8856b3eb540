//! Dumps that are cut or flipped: no panic, and nothing certain that rests on what is lost.

use super::*;
use crate::analysis::forms::{AuditReport, VerifyReport};
use crate::model::{Depth, DumpFile, RecordRef};

/// A dump with a bit of everything that rules look at.
fn full() -> Vec<u8> {
    let wait = LockWait { addr: Some(0xb0), waiter_tid: Some(1), ..LockWait::default() };
    let lock = Lock { addr: Some(0xb0), holder_tid: Some(1), ..Lock::default() };
    let stack = Memory {
        kind: Some(MemoryKind::KERNEL_STACK),
        vaddr: Some(0xffff_8000_0000_1000),
        bytes: Some(&[0; 256]),
        ..Memory::default()
    };
    let values = regs(&[(RegId::RIP, 0), (RegId::RSP, 0xffff_8000_0000_1000), (RegId::RBP, 0), (RegId::CS, 8)]);
    let set = Registers { role: Some(RegisterRole::FAULT), regs: Some(List::new(&values)), ..Registers::default() };
    let check = PageCheck {
        pid: Some(7),
        vaddr: Some(0x40_1000),
        path: Some(b"/bin/prog"),
        result: Some(CheckResult::DIFFERENT),
        ..PageCheck::default()
    };
    let identity = Identity {
        kernel_name: Some(b"kernel"),
        cpus: Some(2),
        reason: Some(Reason::KERNEL_CRASH),
        ..Identity::default()
    };
    Maker::new()
        .put(SectionKind::IDENTITY, &identity)
        .put(SectionKind::CAUSE, &kernel_fault(0, 0, 0x10))
        .put(SectionKind::REGISTERS, &set)
        .put(SectionKind::STACKS, &stack)
        .put(
            SectionKind::SYSCALLS,
            &SyscallRecord { pid: Some(7), name: Some(b"read"), in_progress: Some(true), ..SyscallRecord::default() },
        )
        .put(
            SectionKind::FLIGHT,
            &FlightEvent { kind: Some(FlightKind::CONTEXT_SWITCH), pid: Some(7), ..FlightEvent::default() },
        )
        .put(SectionKind::MEMORY_MAP, &vma(0x40_0000, 0x40_2000, 5, "/bin/prog"))
        .put(SectionKind::PAGE_TABLE, &pte(0x40_1000, 0xa000, "wxu"))
        .put(SectionKind::PAGE_CHECKS, &check)
        .put(SectionKind::TASKS, &Task { pid: Some(7), state: Some(TaskState::BLOCKED), ..Task::default() })
        .put(SectionKind::LOCKS, &lock)
        .put(SectionKind::LOCKS, &wait)
        .bytes()
}

/// Whether each hypothesis that the damaged dump supports is also one of the whole dump, or says that it is weaker.
pub(super) fn honest(damaged: &Triage, whole: &Triage) -> bool {
    damaged.hypotheses.iter().all(|found| {
        let known = whole.hypotheses.iter().find(|other| other.rule == found.rule && other.claim == found.claim);
        known.is_some_and(|known| found.score <= known.score) || !found.weakened.is_empty() || found.rule == "DAMAGED"
    })
}

#[test]
fn a_dump_cut_at_any_byte_is_judged_without_a_panic_and_without_false_certainty() {
    let bytes = full();
    let whole = judge(bytes.clone());
    assert!(whole.losses.is_empty());
    for cut in 0..bytes.len() {
        let Ok(dump) = Dump::from_bytes(bytes[..cut].to_vec()) else { continue };
        let case = dump.case();
        let triage = triage(&case, &Symbols::new(), &Backing::none(), "x");
        assert!(!triage.losses.is_empty(), "cut at {cut} and not said");
        assert!(honest(&triage, &whole), "cut at {cut}: {:#?}", triage.hypotheses);
        for found in &triage.hypotheses {
            let rests_on = rules::RULES.iter().find(|rule| rule.id == found.rule).unwrap().rests_on;
            assert!(
                rests_on.is_empty() || !found.weakened.is_empty(),
                "cut at {cut}: {} is as sure as ever",
                found.rule
            );
        }
    }
}

#[test]
fn every_single_bit_flip_is_judged_without_a_panic_and_without_false_certainty() {
    let bytes = full();
    let whole = judge(bytes.clone());
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let Ok(dump) = Dump::from_bytes(flipped) else { continue };
        let case = dump.case();
        let triage = triage(&case, &Symbols::new(), &Backing::none(), "x");
        assert!(honest(&triage, &whole), "bit {bit}: {:#?}", triage.hypotheses);
    }
}

#[test]
fn a_dump_that_lost_its_cause_says_so_instead_of_guessing() {
    let bytes = full();
    let at = memchr::memmem::find(&bytes, b"page fault in the kernel").unwrap();
    let mut broken = bytes;
    broken[at] ^= 1;
    // Registers survive, but no record says whose they are: the damage is the first thing to know.
    let triage = judge(broken);
    assert!(triage.hypotheses.iter().any(|found| found.rule == "DAMAGED"), "{:#?}", triage.hypotheses);
    assert!(triage.losses.iter().any(|loss| loss.contains("cause")), "{:?}", triage.losses);
}

/// Dumps that our kernel wrote, one of each exam fault, beside the one made here.
fn corpus() -> Vec<(String, Vec<u8>)> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../testing/dumps");
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let dumps = files.filter(|path| path.extension().is_some_and(|end| end == "kwab"));
    let mut all: Vec<_> = dumps.map(|path| (path.display().to_string(), std::fs::read(&path).unwrap())).collect();
    all.sort();
    all.push(("made here".to_owned(), full()));
    all
}

/// Numbers that look random and are the same in every run (Numerical Recipes' constants).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

/// What the three analyses say of a dump.
struct Said {
    triage: Triage,
    audit: AuditReport,
    verify: VerifyReport,
}

impl Said {
    fn of(case: &Case<'_>, name: &str) -> Self {
        let backing = Backing::none();
        let (audit, verify) = (AuditReport::of(case, &[], name), VerifyReport::of(case, &backing, name));
        Self { triage: judge_case(case), audit, verify }
    }
}

/// What is wrong with how the three analyses take a damaged dump; they are as sure as on the whole one, or say why not.
fn certainty(name: &str, damaged: &[u8], before: &Said) {
    let Ok(dump) = Dump::from_bytes(damaged.to_vec()) else { return };
    let after = Said::of(&dump.case(), name);
    assert!(honest(&after.triage, &before.triage), "{name}: {:#?}", after.triage.hypotheses);
    assert!(
        after.triage.has_findings() || !before.triage.has_findings() || !after.triage.weakened.is_empty(),
        "{name}: a bug went away and nothing is said to be lost"
    );
    for found in after.triage.hypotheses.iter().filter(|found| found.weakened.is_empty()) {
        let rests_on = rules::RULES.iter().find(|rule| rule.id == found.rule).unwrap().rests_on;
        assert!(dump.case().weakness(rests_on).is_empty(), "{name}: {} rests on what is damaged, unsaid", found.rule);
    }
    let (before_audit, after_audit) = (&before.audit, &after.audit);
    for finding in &after_audit.findings {
        let same = before_audit.findings.iter().any(|known| known.rule == finding.rule && known.count >= finding.count);
        assert!(same || !finding.weakened.is_empty(), "{name}: {} is made up", finding.rule);
    }
    let fewer = after_audit.findings.len() < before_audit.findings.len();
    assert!(!fewer || !after_audit.weakened.is_empty(), "{name}: audit");
    let (before, after) = (&before.verify, &after.verify);
    for page in &after.wrong {
        let same =
            before.wrong.iter().any(|known| (known.pid, known.vaddr, known.rule) == (page.pid, page.vaddr, page.rule));
        assert!(same || !page.weakened.is_empty(), "{name}: page {:#x} is made up", page.vaddr);
    }
    assert!(after.wrong.len() >= before.wrong.len() || !after.weakened.is_empty(), "{name}: verify");
}

fn judge_case(case: &Case<'_>) -> Triage {
    triage(case, &Symbols::new(), &Backing::none(), "x")
}

#[test]
fn no_analysis_is_surer_of_any_dump_cut_at_200_random_places_or_with_1000_random_bits_flipped() {
    let corpus = corpus();
    assert!(corpus.len() > 16, "only {} dumps", corpus.len());
    // Two halves: the machines that run this have two processors.
    std::thread::scope(|scope| {
        for half in corpus.chunks(corpus.len().div_ceil(2)) {
            scope.spawn(move || half.iter().for_each(|(name, bytes)| damage(name, bytes)));
        }
    });
}

/// Cuts and flips one dump.
fn damage(name: &str, bytes: &[u8]) {
    let mut random = Random(5);
    let whole = Dump::from_bytes(bytes.to_vec()).unwrap();
    let said = Said::of(&whole.case(), name);
    for _ in 0..200 {
        let cut = random.below(bytes.len());
        certainty(&format!("{name} cut at {cut}"), &bytes[..cut], &said);
    }
    for _ in 0..1000 {
        let bit = random.below(bytes.len() * 8);
        let mut flipped = bytes.to_vec();
        flipped[bit / 8] ^= 1 << (bit % 8);
        certainty(&format!("{name} with bit {bit} flipped"), &flipped, &said);
    }
}

#[test]
fn every_depth_knows_the_same_losses_and_the_same_positions() {
    let whole = full();
    let page_table = |bytes: &[u8]| {
        let file = DumpFile::from_bytes(bytes.to_vec()).unwrap();
        let found = file.sections.iter().find(|section| section.header.kind == SectionKind::PAGE_TABLE).unwrap();
        (found.offset as usize, found.header.total_len() as usize)
    };
    let (start, length) = page_table(&whole);
    let cut_out = [&whole[..start], &whole[start + length..]].concat();
    let told = |depth: Depth| {
        let dump = Dump::load(DumpFile::from_bytes(cut_out.clone()).unwrap(), depth);
        let case = dump.case();
        let positions: Vec<RecordRef> = case.tasks.iter().map(|task| task.at).collect();
        (case.losses(), positions, case.ends.len())
    };
    let all = told(Depth::All);
    assert!(all.0.iter().any(|text| text == "page-table sections lost: 1 of 1"), "{:?}", all.0);
    assert_eq!((all.1.len(), all.2), (1, 1));
    for depth in [Depth::Digest, Depth::Analysis, Depth::Rules] {
        assert_eq!(told(depth), all, "{depth:?}");
    }
}

/// What the commands load must be all that a rule looks at.
#[test]
fn triage_says_the_same_of_every_dump_however_much_of_it_is_loaded() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../testing/dumps");
    let mut judged = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|kind| kind != "kwab") {
            continue;
        }
        let told = |depth| {
            let dump = Dump::open(&path, depth).unwrap();
            serde_json::to_string_pretty(&triage(&dump.case(), &Symbols::new(), &Backing::none(), "x")).unwrap()
        };
        assert_eq!(told(Depth::Rules), told(Depth::Export), "{}", path.display());
        judged += 1;
    }
    assert!(judged > 10, "{judged}");
}

//! Dumps that are cut or flipped: no panic, and nothing certain that rests on what is lost.

use super::*;

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
        let Ok(dump) = Dump::open(bytes[..cut].to_vec()) else { continue };
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
        let Ok(dump) = Dump::open(flipped) else { continue };
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
    // Registers survive, but nobody says whose they are: the damage is the first thing to know.
    let triage = judge(broken);
    assert!(triage.hypotheses.iter().any(|found| found.rule == "DAMAGED"), "{:#?}", triage.hypotheses);
    assert!(triage.losses.iter().any(|loss| loss.contains("cause")), "{:?}", triage.losses);
}

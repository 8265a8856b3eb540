//! What a rule may take for evidence: an address only of a page fault, a panic only where one was written.

use super::*;

const C: SectionKind = SectionKind::CAUSE;
const K: u64 = 0xffff_ffff_8010_0000;

fn rules(triage: &Triage) -> Vec<&'static str> {
    triage.hypotheses.iter().map(|found| found.rule).collect()
}

fn claims(triage: &Triage) -> String {
    triage.hypotheses.iter().map(|found| format!("{}; ", found.claim)).collect()
}

/// A fault set whose CR2 is left from an earlier page fault.
fn stale(address: u64, error_code: u64) -> Vec<u8> {
    let values = regs(&[(RegId::RIP, K), (RegId::RSP, K), (RegId::CR2, address)]);
    let set = Registers {
        role: Some(RegisterRole::FAULT),
        pid: Some(7),
        error_code: Some(error_code),
        regs: Some(List::new(&values)),
        ..Registers::default()
    };
    Maker::new().put(SectionKind::REGISTERS, &set).parts.remove(0).1
}

#[test]
fn an_address_counts_only_where_a_page_fault_gave_it() {
    for (vector, message) in [
        (Some(13), &b"general protection fault"[..]),
        (Some(6), b"invalid opcode"),
        (Some(0), b"divide error"),
        (None, b"general protection fault in the kernel"),
        (None, b"invalid opcode: 0000 [#1] PREEMPT SMP"),
    ] {
        for address in [0, 0x10, 0x40_2010, 0xffff_8000_1234_5678] {
            let fault = Cause { vector, message: Some(message), ..kernel_fault(address, K, 0) };
            let mut maker = Maker::new().put(C, &fault);
            maker.parts.push((SectionKind::REGISTERS, stale(address, 0)));
            let triage = judge(maker.bytes());
            let found = rules(&triage);
            let about_an_address = ["NULL", "USER-PTR", "JUMP-DATA", "STACK"];
            assert!(!found.iter().any(|rule| about_an_address.contains(rule)), "{vector:?} {address:#x}: {found:?}");
            assert!(!claims(&triage).contains(&format!("{address:#x}")), "{}", claims(&triage));
        }
    }
    let panic = Cause {
        kind: Some(CauseKind::PANIC),
        vector: None,
        fault_addr: None,
        message: Some(b"no space"),
        ..kernel_fault(0, K, 0)
    };
    let mut maker = Maker::new().put(C, &panic);
    maker.parts.push((SectionKind::REGISTERS, stale(0x40_2010, 0)));
    assert!(!rules(&judge(maker.bytes())).contains(&"USER-PTR"));
}

#[test]
fn a_signal_without_an_address_is_no_null_pointer() {
    let death = Cause { signal_code: Some(0x80), ..user_death(11, 0x40_1000, Some(0)) };
    assert!(!rules(&judge(Maker::new().put(C, &death).bytes())).contains(&"NULL"));
    let death = Cause { signal_code: Some(1), ..user_death(11, 0x40_1000, Some(0)) };
    assert!(rules(&judge(Maker::new().put(C, &death).bytes())).contains(&"NULL"));
}

#[test]
fn a_page_that_forbids_the_access_is_not_called_unmapped() {
    for (address, ip, code) in [(K + 0x5000, K + 0x5000, 0x11), (K + 0x5000, K, 3)] {
        let triage = judge(Maker::new().put(C, &kernel_fault(address, ip, code)).bytes());
        assert!(!claims(&triage).contains("unmapped address"), "{}", claims(&triage));
        assert!(claims(&triage).contains("page"), "{}", claims(&triage));
        let absent = judge(Maker::new().put(C, &kernel_fault(address, ip, code & !1)).bytes());
        assert!(claims(&absent).contains("unmapped address"), "{}", claims(&absent));
    }
}

#[test]
fn a_protection_fault_at_an_instruction_that_cannot_be_says_so() {
    let gp = Cause { vector: Some(13), fault_addr: None, ..kernel_fault(0, 0x6d65_6d6f_7279_2121, 0) };
    let triage = judge(Maker::new().put(C, &gp).bytes());
    assert_eq!(rules(&triage).first(), Some(&"WILD"), "{}", claims(&triage));
    assert!(claims(&triage).contains("jumped to the non-canonical address 0x6d656d6f72792121"), "{}", claims(&triage));
}

#[test]
fn only_a_panic_that_was_written_is_called_explicit() {
    let death = |kind, message: &'static [u8]| {
        let cause = Cause { kind: Some(kind), message: Some(message), in_kernel: Some(true), ..Cause::default() };
        judge(Maker::new().put(C, &cause).bytes())
    };
    for (kind, message) in [
        (CauseKind::OOPS, &b"Oops: 0002 [#1] SMP"[..]),
        (CauseKind::OOPS, b"divide error: 0000 [#1]"),
        (CauseKind::BUG, b"BUG: scheduling while atomic"),
        (CauseKind::PANIC, b"soft lockup on CPU 1"),
        (CauseKind::PANIC, b"the guard page of a kernel stack was hit"),
        (CauseKind::PANIC, b"Unable to handle kernel paging request"),
    ] {
        let triage = death(kind, message);
        assert!(!claims(&triage).contains("explicit panic"), "{}", claims(&triage));
    }
    let written = death(CauseKind::PANIC, b"the root file system is gone");
    assert!(claims(&written).contains("explicit panic"), "{}", claims(&written));
}

#[test]
fn a_place_printed_for_debugging_is_a_place_in_the_headline() {
    let message = b"panicked at Some(Location { file: \"mm/fault.rs\", line: 31, col: 9 })";
    let cause =
        Cause { kind: Some(CauseKind::PANIC), message: Some(message), in_kernel: Some(true), ..Cause::default() };
    let triage = judge(Maker::new().put(C, &cause).bytes());
    assert!(triage.headline.contains("mm/fault.rs:31:9") && !triage.headline.contains("Some("), "{}", triage.headline);
}

#[test]
fn a_task_that_waits_for_nothing_named_lost_no_wake_up() {
    let cause = Cause { kind: Some(CauseKind::HUNG_TASK), pid: Some(7), in_kernel: Some(true), ..Cause::default() };
    let asleep = Task {
        pid: Some(7),
        tid: Some(7),
        comm: Some(b"ksoftirqd/0"),
        state: Some(TaskState::BLOCKED),
        ..Task::default()
    };
    let judged = |task: &Task<'_>| judge(Maker::new().put(C, &cause).put(SectionKind::TASKS, task).bytes());
    assert!(!rules(&judged(&asleep)).contains(&"LOST-WAKE"));
    let named = judged(&Task { wait_object: Some(0xffff_8000_0000_1000), ..asleep });
    assert!(claims(&named).contains("ksoftirqd/0[7] waits for 0xffff800000001000"), "{}", claims(&named));
}

#[test]
fn a_death_that_no_rule_explains_is_a_finding_all_the_same() {
    let cause = Cause { vector: Some(18), message: Some(b"machine check"), fault_addr: None, ..kernel_fault(0, K, 0) };
    let triage = judge(Maker::new().put(C, &cause).bytes());
    assert!(triage.has_findings() && triage.died, "{}", claims(&triage));
    let asked =
        Cause { kind: Some(CauseKind::SYSRQ), message: Some(b"sysrq"), in_kernel: Some(true), ..Cause::default() };
    assert!(!judge(Maker::new().put(C, &asked).bytes()).has_findings());
}

/// What the inspection says about the cause.
fn inspected(maker: &Maker) -> crate::report::inspect::CauseReport {
    let file = crate::model::DumpFile::from_bytes(maker.bytes()).unwrap();
    let dump = Dump::load(file, crate::model::Depth::Digest);
    crate::report::inspect::inspect(&dump, "x", crate::report::inspect::Options { rows: 8, ..Default::default() })
        .cause
        .unwrap()
}

#[test]
fn an_error_code_in_the_place_of_a_call_number_is_no_call() {
    let in_user = |rcx: u64| {
        let values = regs(&[(RegId::RIP, 0x40_1000), (RegId::RCX, rcx), (RegId::ORIG_RAX, 7)]);
        let set = Registers {
            role: Some(RegisterRole::USER),
            pid: Some(7),
            regs: Some(List::new(&values)),
            ..Registers::default()
        };
        Maker::new().put(C, &kernel_fault(0, K, 2)).put(SectionKind::REGISTERS, &set)
    };
    let calls = |rcx| inspected(&in_user(rcx)).reasons.iter().any(|reason| reason.starts_with("user code was in poll"));
    assert!(calls(0x40_1000), "SYSCALL leaves its return address in rcx");
    assert!(!calls(3), "a page fault does not");
}

#[test]
fn the_call_path_goes_out_to_the_system_call() {
    let values = regs(&[(RegId::RIP, 0x40_1000), (RegId::RCX, 0x40_1000), (RegId::ORIG_RAX, 3), (RegId::RDI, 5)]);
    let user = |pid| Registers {
        role: Some(RegisterRole::USER),
        pid: Some(pid),
        regs: Some(List::new(&values)),
        ..Registers::default()
    };
    let printed = |index, name: &'static [u8]| Frame {
        index: Some(index),
        trace: Some(0),
        addr: Some(K + u64::from(index)),
        symbol: Some(name),
        ..Frame::default()
    };
    let path = |pid| {
        let maker = Maker::new().put(C, &kernel_fault(0, K, 2)).put(SectionKind::REGISTERS, &user(pid));
        let maker =
            maker.put(SectionKind::STACKS, &printed(0, b"take")).put(SectionKind::STACKS, &printed(1, b"close"));
        let first = judge(maker.bytes()).hypotheses.remove(0);
        let called = first.evidence.iter().find(|fact| fact.text.starts_with("called: "));
        called.map(|fact| fact.text.clone()).unwrap_or_default()
    };
    assert_eq!(path(7), "called: take ← close ← the system call close(5)");
    assert_eq!(path(8), "called: take ← close", "another process's registers");
}

#[test]
fn a_kernel_thread_keeps_its_whole_name_and_a_path_its_last_part() {
    let name = |comm: &'static [u8]| {
        inspected(&Maker::new().put(C, &Cause { comm: Some(comm), ..kernel_fault(0, K, 2) })).comm
    };
    assert_eq!(name(b"ksoftirqd/0").as_deref(), Some("ksoftirqd/0"));
    assert_eq!(name(b"/bin/grep").as_deref(), Some("grep"));
}

#[test]
fn a_signal_that_contradicts_the_map_is_named_a_contradiction() {
    let death = Cause { signal_code: Some(1), ..user_death(11, 0x40_1000, Some(0x7010)) };
    let map = vma(0x7000, 0x8000, 3, "");
    let reasons = inspected(&Maker::new().put(C, &death).put(SectionKind::MEMORY_MAP, &map)).reasons;
    assert!(reasons.iter().any(|reason| reason.contains("one of the two is wrong")), "{reasons:?}");
}

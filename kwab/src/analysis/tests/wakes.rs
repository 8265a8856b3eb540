//! Sleepers on futexes and the calls that should have woken them, and when a thread fell asleep.

use super::*;

const SECOND: u64 = 1_000_000_000;
const WORD: u64 = 0x7000_0010;
const PRIVATE: u64 = 128;

fn futex(pid: u32, addr: u64, op: u64, most: u64, result: Option<i64>, at: u64) -> SyscallRecord<'static> {
    SyscallRecord {
        pid: Some(pid),
        tid: Some(pid),
        nr: Some(202),
        arg0: Some(addr),
        arg1: Some(op),
        arg2: Some(most),
        arg3: Some(0),
        arg4: Some(0),
        arg5: Some(0),
        result,
        in_progress: Some(result.is_none()),
        stamp: Stamp { ns: Some(at), ..Stamp::default() },
        ..SyscallRecord::default()
    }
}

fn shared(pid: u32, start: u64, flags: u32) -> Vma<'static> {
    Vma {
        pid: Some(pid),
        start: Some(start),
        end: Some(start + 4096),
        prot: Some(3),
        flags: Some(flags),
        path: Some(b"/tmp/shared"),
        inode: Some(9),
        file_offset: Some(4096),
        ..Vma::default()
    }
}

/// Process 5 has slept since second 5 when the machine is stopped at 20, and its record is written a second later.
fn hang(maps: &[Vma<'_>], calls: &[SyscallRecord<'_>]) -> Triage {
    let cause = Cause {
        kind: Some(CauseKind::NMI),
        message: Some(b"non-maskable interrupt"),
        in_kernel: Some(true),
        stamp: Stamp { ns: Some(20 * SECOND), ..Stamp::default() },
        ..Cause::default()
    };
    let task = Task {
        pid: Some(5),
        tid: Some(5),
        ppid: Some(4),
        comm: Some(b"prog"),
        state: Some(TaskState::SLEEPING),
        user_ip: Some(0x40_1000),
        wait_reason: Some(b"futex"),
        state_ns: Some(16 * SECOND),
        stamp: Stamp { ns: Some(21 * SECOND), ..Stamp::default() },
        ..Task::default()
    };
    let parent = Task { pid: Some(4), tid: Some(4), ppid: Some(1), wait_reason: Some(b"wait4"), ..task };
    let maker = Maker::new().put(SectionKind::CAUSE, &cause);
    let maker = maker.put(SectionKind::TASKS, &task).put(SectionKind::TASKS, &parent);
    let maker = maps.iter().fold(maker, |maker, map| maker.put(SectionKind::MEMORY_MAP, map));
    judge(calls.iter().fold(maker, |maker, call| maker.put(SectionKind::SYSCALLS, call)).bytes())
}

fn unwoken(maps: &[Vma<'_>], calls: &[SyscallRecord<'_>]) -> Option<String> {
    let found = hang(maps, calls).hypotheses.into_iter().find(|found| found.about == Some("INV-FUTEX"))?;
    Some(found.evidence[0].text.clone())
}

#[test]
fn a_wake_up_that_passed_over_a_sleeper_of_its_word_is_found_across_processes() {
    let maps = [shared(4, 0x7000_0000, 1), shared(5, 0x6000_0000, 1)];
    let asleep = futex(5, 0x6000_0010, 0, 0, None, 5 * SECOND);
    let wake = |op, most, woken, at| unwoken(&maps, &[asleep, futex(4, WORD, op, most, Some(woken), at)]);
    let said = "prog[5] sleeps on the futex 0x70000010 of process 4, whose FUTEX_WAKE of up to 10 woke 0, 1000.0 ms \
                after it fell asleep";
    assert_eq!(wake(1, 10, 0, 6 * SECOND).as_deref(), Some(said));
    // A private wake-up, one before it slept, and one that woke as many as it was to.
    assert_eq!(wake(1 | PRIVATE, 10, 0, 6 * SECOND), None);
    assert_eq!(wake(1, 10, 0, 4 * SECOND), None);
    assert_eq!(wake(1, 1, 1, 6 * SECOND), None);
    // Private memory at the same address is another word, and what was moved may sleep on any.
    let apart = [shared(4, 0x7000_0000, 0), shared(5, 0x6000_0000, 0)];
    assert_eq!(unwoken(&apart, &[asleep, futex(4, 0x6000_0010, 1, 10, Some(0), 6 * SECOND)]), None);
    let moved = futex(4, WORD, 4, 10, Some(0), 6 * SECOND);
    assert_eq!(unwoken(&maps, &[asleep, moved, futex(4, WORD, 1, 10, Some(0), 7 * SECOND)]), None);
}

#[test]
fn a_thread_fell_asleep_by_the_time_of_its_own_record() {
    let asleep = futex(5, 0x6000_0010, 0, 0, None, 5 * SECOND);
    // Between the time by the death, 4 s, and that by the record, 5 s: before it slept.
    let called = SyscallRecord { nr: Some(218), ..futex(4, 0x9000, 0, 0, Some(4), 4 * SECOND + SECOND / 2) };
    let told = |at| {
        let call = SyscallRecord { stamp: Stamp { ns: Some(at), ..Stamp::default() }, ..called };
        format!("{:?}", hang(&[], &[call, asleep]).hypotheses)
    };
    assert!(!told(4 * SECOND + SECOND / 2).contains("to wake it"), "{}", told(4 * SECOND + SECOND / 2));
    assert!(told(6 * SECOND).contains("1000.0 ms after it went to sleep: it may have been to wake it"));
}

//! Answers of the kernel that contradict the call or earlier answers, and answers that only look so.

use super::super::finding::Hypothesis;
use super::*;

const C: SectionKind = SectionKind::CAUSE;
const CALLS: SectionKind = SectionKind::SYSCALLS;

/// A call of process 7, by its name.
fn call(name: &str, args: [u64; 6], result: i64) -> SyscallRecord<'static> {
    let nr = linux_abi::syscalls::by_name(name).unwrap().nr;
    let [arg0, arg1, arg2, arg3, arg4, arg5] = args.map(Some);
    SyscallRecord {
        pid: Some(7),
        tid: Some(7),
        nr: Some(i64::from(nr)),
        arg0,
        arg1,
        arg2,
        arg3,
        arg4,
        arg5,
        result: Some(result),
        in_progress: Some(false),
        ..SyscallRecord::default()
    }
}

/// What triage says of these calls before a death, if they are answered wrongly.
fn wrong(calls: &[SyscallRecord<'_>], maps: &[Vma<'_>]) -> Option<Hypothesis> {
    let mut maker = Maker::new().put(C, &user_death(11, 0x40_1000, Some(0x10)));
    for call in calls {
        maker = maker.put(CALLS, call);
    }
    for map in maps {
        maker = maker.put(SectionKind::MEMORY_MAP, map);
    }
    judge(maker.bytes()).hypotheses.into_iter().find(|found| found.rule == "ANSWER")
}

fn why(calls: &[SyscallRecord<'_>], maps: &[Vma<'_>]) -> String {
    wrong(calls, maps).map(|found| format!("{}; {}", found.claim, found.evidence[0].text)).unwrap_or_default()
}

/// An anonymous mapping of two pages that is readable and writable.
fn mapped(addr: i64) -> SyscallRecord<'static> {
    call("mmap", [0, 8192, 3, 0x22, u64::MAX, 0], addr)
}

#[test]
fn an_answer_that_the_call_does_not_allow_is_wrong() {
    assert!(why(&[call("read", [3, 0x7000, 16, 0, 0, 0], 17)], &[]).contains("more than the 16 asked for"));
    assert!(why(&[call("write", [1, 0x7000, 5, 0, 0, 0], 0)], &[]).contains("nothing of 5 bytes was written"));
    assert!(why(&[call("close", [3, 0, 0, 0, 0, 0], 1)], &[]).contains("close answers 0 or an error"));
    assert!(why(&[call("dup2", [3, 9, 0, 0, 0, 0], 4)], &[]).contains("dup2 answers its second argument"));
    assert!(why(&[call("wait4", [8, 0, 0, 0, 0, 0], 0)], &[]).contains("without WNOHANG"));
    let right = [
        call("read", [3, 0x7000, 16, 0, 0, 0], 16),
        call("write", [1, 0x7000, 0, 0, 0, 0], 0),
        call("wait4", [8, 0, 1, 0, 0, 0], 0),
        call("recvfrom", [3, 0x7000, 16, 0x20, 0, 0], 90),
        call("poll", [0x7000, 1, 10, 0, 0, 0], 0),
        call("lseek", [3, 7, 0, 0, 0, 0], 7),
    ];
    assert_eq!(wrong(&right, &[]), None);
}

#[test]
fn a_mapping_in_a_range_that_is_mapped_already_names_both_calls() {
    let said = why(&[mapped(0x7000_0000), mapped(0x7000_1000)], &[]);
    assert!(said.contains("0x70001000; the kernel chose a range that is mapped already, by mmap"), "{said}");
    let unmap = call("munmap", [0x7000_0000, 8192, 0, 0, 0, 0], 0);
    assert_eq!(wrong(&[mapped(0x7000_0000), unmap, mapped(0x7000_1000)], &[]), None);
    let fixed = call("mmap", [0x7000_1000, 4096, 3, 0x32, u64::MAX, 0], 0x7000_1000);
    assert_eq!(wrong(&[mapped(0x7000_0000), fixed], &[]), None);
}

#[test]
fn the_map_of_the_dump_must_be_what_the_last_calls_left() {
    let (low, high) = (vma(0x7000_0000, 0x7000_2000, 3, ""), vma(0x7fff_0000, 0x7fff_8000, 3, ""));
    let calls = [mapped(0x7000_0000)];
    assert_eq!(wrong(&calls, &[low, high]), None);
    let half = Vma { end: Some(0x7000_1000), ..low };
    assert!(why(&calls, &[half, high]).contains("0x70001000 is not mapped in the dump"));
    assert!(why(&calls, &[Vma { prot: Some(1), ..low }, high]).contains("other rights in the dump"));
    let unmap = call("munmap", [0x7000_1000, 4096, 0, 0, 0, 0], 0);
    assert!(why(&[mapped(0x7000_0000), unmap], &[low, high]).contains("0x70001000 is mapped in the dump"));
    // A map that ends below was cut, and a call that did not return may have done half of its work.
    assert_eq!(wrong(&calls, &[vma(0x1000, 0x2000, 1, "")]), None);
    let half_done = SyscallRecord { result: None, in_progress: Some(true), ..unmap };
    assert_eq!(wrong(&[mapped(0x7000_0000), half_done], &[half, high]), None);
}

#[test]
fn descriptors_are_the_lowest_that_is_free_and_open_until_they_are_closed() {
    let open = |fd| call("openat", [u64::from(-100_i32 as u32), 0x7000, 0, 0, 0, 0], fd);
    let close = |fd: u64, result| call("close", [fd, 0, 0, 0, 0, 0], result);
    assert!(why(&[open(3), open(3)], &[]).contains("descriptor 3 is open since openat"));
    assert!(why(&[open(3), close(3, 0), open(4)], &[]).contains("the lower descriptor 3 is free since close"));
    assert!(why(&[open(3), close(3, -9)], &[]).contains("descriptor 3 is open"));
    assert!(why(&[open(3), close(3, 0), close(3, 0)], &[]).contains("descriptor 3 is closed"));
    let pipe = call("pipe2", [0x7000, 0, 0, 0, 0, 0], 0);
    assert_eq!(wrong(&[open(3), close(3, 0), pipe, open(5), close(5, 0), close(5, -9)], &[]), None);
    // Threads share descriptors, and calls of those that ended are not in the dump.
    let thread = call("clone", [0x3d_0f00, 0, 0, 0, 0, 0], 8);
    assert_eq!(wrong(&[open(3), thread, open(3)], &[]), None);
}

#[test]
fn a_refusal_of_arguments_that_decide_alone_is_wrong() {
    let (invalid, not_permitted) = (-22, -1);
    let wrong_refusals = [
        (call("arch_prctl", [0x1002, 0x40_f558, 0, 0, 0, 0], not_permitted), "beyond user space"),
        (call("rt_sigprocmask", [2, 0x7000, 0, 8, 0, 0], invalid), "how and size are valid"),
        (call("mmap", [0, 8192, 3, 0x22, u64::MAX, 0], invalid), "anonymous mapping are valid"),
        (call("munmap", [0x7000, 8192, 0, 0, 0, 0], invalid), "whole pages of user space"),
        (call("pipe2", [0x7000, 0o200_0000, 0, 0, 0, 0], invalid), "flags are known"),
        (call("wait4", [8, 0, 1, 0, 0, 0], invalid), "options are known"),
    ];
    for (refused, told) in wrong_refusals {
        assert!(why(std::slice::from_ref(&refused), &[]).contains(told), "{told}");
    }
    let right_refusals = [
        call("arch_prctl", [0x1002, 1 << 47, 0, 0, 0, 0], not_permitted),
        call("rt_sigprocmask", [3, 0x7000, 0, 8, 0, 0], invalid),
        call("rt_sigprocmask", [2, 0x7000, 0, 16, 0, 0], invalid),
        call("mmap", [0, 0, 3, 0x22, u64::MAX, 0], invalid),
        call("munmap", [0x7001, 8192, 0, 0, 0, 0], invalid),
        call("munmap", [0x7fff_ffff_f000, 8192, 0, 0, 0, 0], invalid),
        call("rt_sigaction", [9, 0x7000, 0, 8, 0, 0], invalid),
        call("futex", [0x7000, 129, 1, 0, 0, 0], invalid),
        call("pipe2", [0x7000, 1, 0, 0, 0, 0], invalid),
    ];
    assert!(wrong(&right_refusals, &[]).is_none());
}

#[test]
fn the_thread_pointer_of_the_dead_thread_is_the_one_that_it_set() {
    let why = |calls: &[SyscallRecord<'_>], base: u64| {
        let values = [Reg::new(RegId::RIP, 0x40_1000), Reg::new(RegId::CS, 0x33), Reg::new(RegId::FS_BASE, base)];
        let set = Registers {
            role: Some(RegisterRole::FAULT),
            pid: Some(7),
            tid: Some(7),
            regs: Some(List::new(&values)),
            ..Registers::default()
        };
        let maker = Maker::new().put(C, &user_death(11, 0x40_1000, Some(0x10))).put(SectionKind::REGISTERS, &set);
        let maker = calls.iter().fold(maker, |maker, call| maker.put(CALLS, call));
        let found = judge(maker.bytes()).hypotheses.into_iter().find(|found| found.rule == "ANSWER");
        found.map(|found| found.evidence[0].text.clone()).unwrap_or_default()
    };
    let set = call("arch_prctl", [0x1002, 0x40_f558, 0, 0, 0, 0], 0);
    assert_eq!(why(&[set], 0), "the thread pointer (FS base) of thread 7 is 0x0");
    assert_eq!(why(&[set], 0x40_f558), "");
    // Refused, of another thread, or of the program before.
    assert!(!why(&[SyscallRecord { result: Some(-1), ..set }], 0).contains("thread pointer"));
    assert_eq!(why(&[SyscallRecord { tid: Some(8), ..set }], 0), "");
    assert_eq!(why(&[set, call("execve", [0x7000, 0, 0, 0, 0, 0], 0)], 0), "");
}

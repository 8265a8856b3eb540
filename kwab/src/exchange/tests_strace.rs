//! Texts of strace: what a dump says of them, and mutations.

use kwab_format::record::{CauseKind, Frame, SyscallRecord, Task};

use super::TextFormat;
use super::tests::{dump_of, mutated, only, options, text};
use crate::model::Death;

/// In the form of `strace -f -T -o FILE`: the child of a shell reads through a bad pointer, its second thread waits.
const TEXT: &str = r#"7100  execve("/bin/sh", ["sh", "-c", "./demo 1"], 0x7ffd0 /* 3 vars */) = 0 <0.000311>
7100  clone(child_stack=NULL, flags=CLONE_CHILD_CLEARTID|SIGCHLD, child_tidptr=0x7f0a10) = 7101 <0.000151>
7101  execve("./demo", ["./demo", "1"], 0x55d0 /* 3 vars */) = 0 <0.000240>
7101  openat(AT_FDCWD, "/etc/ld.so.cache", O_RDONLY|O_CLOEXEC) = 3 <0.000010>
7101  read(3, "\177ELF\2"..., 832) = 832 <0.000007>
7101  openat(AT_FDCWD, "/none", O_RDONLY) = -1 ENOENT (No such file or directory) <0.000009>
7100  wait4(-1,  <unfinished ...>
7101  clone3({flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD, exit_signal=0}, 88) = 7102 <0.000055>
7102  futex(0x4c2e0, FUTEX_WAIT_PRIVATE, 1, NULL <unfinished ...>
7101  write(1, "going\n", 6) = 6 <0.000012>
7101  --- SIGSEGV {si_signo=SIGSEGV, si_code=SEGV_MAPERR, si_addr=0x18} ---
7102  <... futex resumed>) = ? <unavailable>
7102  +++ killed by SIGSEGV (core dumped) +++
7101  +++ killed by SIGSEGV (core dumped) +++
7100  <... wait4 resumed>[{WIFSIGNALED(s) && WTERMSIG(s) == SIGSEGV && WCOREDUMP(s)}], 0, NULL) = 7101 <0.102000>
7100  --- SIGCHLD {si_signo=SIGCHLD, si_code=CLD_DUMPED, si_pid=7101, si_uid=0, si_status=SIGSEGV} ---
7100  exit_group(139)                   = ?
7100  +++ exited with 139 +++
"#;

#[test]
fn a_death_by_a_signal_is_a_dump_with_the_calls_before_it() {
    let (report, dump) = only(text(TEXT));
    assert_eq!((report.lines, report.cut.as_deref(), report.dumps[0].line), (18, None, Some(14)));
    let death = Death::of(&dump).expect("a death");
    assert_eq!((death.kind, death.pid, death.tid), (Some(CauseKind::FATAL_SIGNAL), Some(7101), Some(7101)));
    assert_eq!((death.signal, death.signal_code, death.fault_addr), (Some(11), Some(1), Some(0x18)));
    assert_eq!((death.comm.as_deref(), death.cmdline.as_deref()), (Some(&b"demo"[..]), Some(&b"./demo 1"[..])));
    let calls: Vec<SyscallRecord<'_>> = dump.records().collect();
    let failed = calls.iter().find(|call| call.result == Some(-2)).expect("ENOENT");
    assert_eq!((failed.nr, failed.text1, failed.duration_ns), (Some(257), Some(&b"/none"[..]), Some(9000)));
    let read = calls.iter().find(|call| call.nr == Some(0)).expect("read");
    assert_eq!((read.arg0, read.text1, read.texts_cut), (Some(3), Some(&b"\x7fELF\x02"[..]), Some(2)));
    assert_eq!(calls.last().map(|call| (call.nr, call.tid, call.stamp.line)), Some((Some(202), Some(7102), Some(9))));
    let thread = dump.records::<Task<'_>>().find(|task| task.tid == Some(7102)).expect("the second thread");
    assert_eq!((thread.pid, thread.comm), (Some(7101), Some(&b"demo"[..])));
}

/// In the form of `strace -f -t -n -i -Y -T -k -o FILE`, version 6.1.
const ALL_MARKS: &str = r#"7100<my sh> 09:42:05 [  59] [00007fb2379b0ad7] execve("./t", ["./t"], 0x7ff) = 0 <0.000208>
 > /usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2(_dl_catch_error+0x26f0) [0x1ab70]
7100<t> 09:42:05 [  56] [00007f3f660e6c47] clone(child_stack=0x7f3f, flags=CLONE_VM|CLONE_THREAD) = 7101<t> <0.000008>
 > /usr/lib/x86_64-linux-gnu/libc.so.6(__xmknodat+0x23c) [0x1098ec]
 > /srv/demo/t(main+0xb9) [0x128f]
7100<t> 09:42:05 [ 202] [00007f14c33f7c47] futex(0x7f8b990, FUTEX_WAIT, 7101, NULL <unfinished ...>
7101<t> 09:42:06 [  60] [00007f72f48e9226] exit(0) = ?
 > /usr/lib/x86_64-linux-gnu/libc.so.6(__xmknodat+0x23c) [0x1098ec]
7101<t> 09:42:06 [  60] [????????????????] +++ exited with 0 +++
7100<t> 09:42:06 [ 202] [00007f72f48e5f16] <... futex resumed>) = 0 <1.007631>
 > /usr/lib/x86_64-linux-gnu/libc.so.6(pthread_join+0x163) [0x8ace3]
7100<t> 09:42:06 [ 202] [000056255b8bd294] --- SIGSEGV {si_signo=SIGSEGV, si_code=SEGV_MAPERR, si_addr=0x18} ---
 > /srv/demo/t(main+0xbe) [0x1294]
 > /usr/lib/x86_64-linux-gnu/libc.so.6(__libc_start_main+0x85) [0x27305]
 > /srv/demo/t() [0x10f1]
7100<t> 09:42:06 [ 202] [????????????????] +++ killed by SIGSEGV +++
"#;

#[test]
fn stacks_pointers_numbers_and_names_that_strace_prints_are_read() {
    let (report, dump) = only(text(ALL_MARKS));
    assert_eq!((report.cut.as_deref(), report.events), (None, 4));
    let death = Death::of(&dump).expect("a death");
    assert_eq!((death.pid, death.ip, death.fault_addr), (Some(7100), Some(0x5625_5b8b_d294), Some(0x18)));
    let frames: Vec<Frame<'_>> = dump.records().collect();
    let told: Vec<_> = frames.iter().map(|frame| (frame.module, frame.symbol, frame.symbol_offset)).collect();
    let main = (Some(&b"t"[..]), Some(&b"main"[..]), Some(0xbe));
    let start = (Some(&b"libc.so.6"[..]), Some(&b"__libc_start_main"[..]), Some(0x85));
    assert_eq!(told, [main, start, (Some(&b"t"[..]), None, None)]);
    let futex = dump.records::<SyscallRecord<'_>>().find(|call| call.nr == Some(202)).expect("futex");
    assert_eq!((futex.tid, futex.result, futex.duration_ns), (Some(7100), Some(0), Some(1_007_631_000)));
}

#[test]
fn a_terminal_names_threads_in_brackets() {
    let on_terminal = |line: &str| match line.split_once(' ') {
        Some((thread, rest)) if !thread.is_empty() => format!("[pid {thread}] {}\n", rest.trim_start()),
        _ => format!("{line}\n"),
    };
    // The name of the shell has a space in it, which `split_once` would take for the end.
    let lines: String = ALL_MARKS.replace("my sh", "sh").lines().map(on_terminal).collect();
    assert_eq!(only(text(&lines)).0.dumps[0].subject, only(text(ALL_MARKS)).0.dumps[0].subject);
    let named = lines.replace("+++ killed", "+++ left").replace("SIGSEGV", "SIGUSR1");
    assert_eq!(only(text(&named)).1.records::<Task<'_>>().next().and_then(|task| task.comm), Some(&b"t"[..]));
}

#[test]
fn a_stack_below_a_call_is_none_of_the_death() {
    let without = ALL_MARKS.lines().filter(|line| !line.contains("main+0xbe") && !line.contains("__libc_start_main"));
    let without: String = without.filter(|line| !line.contains("[0x10f1]")).map(|line| format!("{line}\n")).collect();
    let (_, dump) = only(text(&without));
    assert!(Death::of(&dump).is_some());
    assert_eq!(dump.records::<Frame<'_>>().count(), 0);
}

/// Without `-f` no line names its thread.
#[test]
fn a_death_without_a_process_number_is_that_of_a_program() {
    let lines = "execve(\"./t\", [\"./t\", \"-v\"], 0x7ffd0 /* 3 vars */) = 0\nbrk(NULL) = 0x5616\n\
        --- SIGSEGV {si_signo=SIGSEGV, si_code=SEGV_MAPERR, si_addr=0x18} ---\n+++ killed by SIGSEGV +++\n";
    let (report, dump) = only(text(lines));
    let told = &report.dumps[0];
    assert_eq!((told.kind.as_str(), told.subject.as_str(), told.cause.as_str()), ("process", "./t", "SIGSEGV"));
    let death = Death::of(&dump).expect("a death");
    assert_eq!((death.pid, death.signal, death.comm.as_deref()), (None, Some(11), Some(&b"t"[..])));
}

#[test]
fn a_signal_that_was_sent_or_handled_is_no_death_of_a_program() {
    let handled = TEXT.replace("+++ killed by SIGSEGV (core dumped) +++", "+++ exited with 1 +++");
    let (report, dump) = only(text(&handled));
    assert_eq!((report.dumps[0].kind.as_str(), Death::of(&dump)), ("recording", None));
    assert!(dump.records::<SyscallRecord<'_>>().count() > 8);
    let killed = TEXT.replace("SIGSEGV", "SIGTERM");
    assert_eq!(only(text(&killed)).0.dumps[0].kind, "recording");
}

#[test]
fn each_death_is_a_dump_and_lines_that_cannot_be_read_are_told() {
    let twice = format!("{TEXT}7100  what is this\n{}", TEXT.replace("71", "82"));
    let (report, dumps) = text(&twice);
    assert_eq!(dumps.len(), 2);
    assert_eq!(report.cut.as_deref(), Some("1 line could not be read, the first is line 19"));
    let pids: Vec<_> = dumps.into_iter().map(|dump| Death::of(&dump_of(dump)).and_then(|death| death.pid)).collect();
    assert_eq!(pids, [Some(7101), Some(8201)]);
}

#[test]
fn mutated_texts_of_strace_end_without_a_panic_and_within_their_bytes() {
    let long = TEXT.repeat(8);
    mutated(long.as_bytes(), long.len(), |bytes| {
        let format = TextFormat::Strace;
        let made = super::import_text(bytes, bytes, format, &options(), &mut |_| ()).expect("memory");
        let written: u64 = made.1.iter().map(|dump| dump.summary.bytes).sum();
        assert!(written < 64 * long.len() as u64, "{written}");
    });
}

#[test]
fn many_deaths_after_many_calls_are_dumps_of_their_last_calls_only() {
    use std::fmt::Write as _;
    const DEATHS: u32 = 100;
    let mut log = String::new();
    let long = "x".repeat(300);
    (0..8000).for_each(|_| writeln!(log, "100  write(1, \"{long}\", 300) = 300").expect("a string"));
    for pid in 200..200 + DEATHS {
        let told = "--- SIGSEGV {si_signo=SIGSEGV, si_code=SEGV_MAPERR, si_addr=0x10} ---";
        writeln!(log, "{pid}  {told}\n{pid}  +++ killed by SIGSEGV (core dumped) +++").expect("a string");
    }
    let (_, dumps) = text(&log);
    assert_eq!(dumps.len(), DEATHS as usize);
    let written: u64 = dumps.iter().map(|dump| dump.summary.bytes).sum();
    let promised = (64 << 20) + 4 * log.len() as u64;
    assert!((promised..promised + (24 << 20)).contains(&written), "{written} bytes of {promised}");
    let last = dump_of(dumps.into_iter().next_back().expect("one"));
    assert_eq!(Death::of(&last).and_then(|death| death.pid), Some(199 + DEATHS));
    let calls: Vec<SyscallRecord<'_>> = last.records().collect();
    assert_eq!((calls.len(), calls.last().and_then(|call| call.stamp.line)), (256, Some(8000)));
}

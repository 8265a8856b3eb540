//! Runs written as text of strace or as events, and what comparing them must say.

use super::operand::{Answer, Operand, Same};
use super::report::{DivergenceKind, OracleReport, TraceOrigin, Verdict};
use super::trace::What;
use super::{CompareOptions, Trace, compare, is_strace, of_dumps, of_strace, text};
use crate::import::{Options as ImportOptions, PendingDump, import};
use crate::model::{Depth, Dump, DumpFile, OpenError};
use linux_abi::syscalls::ArgKind;

fn judged(good: &Trace, bad: &Trace) -> OracleReport {
    compare(("good", good), ("bad", bad), &CompareOptions::default())
}

fn both(good: &str, bad: &str) -> OracleReport {
    judged(&of_strace(good.as_bytes()), &of_strace(bad.as_bytes()))
}

/// A recording as our kernel prints it: `entry PID nr args…`, `exit PID nr result texts…`, or an event as it is.
fn recorded(rows: &[&str]) -> Trace {
    let mut log = String::new();
    for (seq, row) in rows.iter().enumerate() {
        log.push_str(&format!("DBG {{\"seq\":{seq},\"cpu\":0,\"ns\":{},{row}}}\n", seq * 1000));
    }
    let folder = tempfile::tempdir().expect("a folder");
    let options = ImportOptions { source: "serial.log".into(), folder: Some(folder.path().to_owned()) };
    let (_, dumps) = import(log.as_bytes(), &options, &mut |_| ()).expect("imported");
    let loaded = |dump: PendingDump| {
        let mut bytes = Vec::new();
        dump.file.expect("a file").copy_to(&mut bytes).expect("copied");
        Ok::<_, OpenError>(Dump::load(DumpFile::from_bytes(bytes)?, Depth::Export))
    };
    of_dumps(dumps.into_iter().map(loaded)).expect("sound")
}

fn entry(pid: u32, nr: u32, args: [u64; 6]) -> String {
    let args: Vec<_> = args.iter().map(|arg| format!("\"{arg:#x}\"")).collect();
    format!("\"type\":\"syscall_entry\",\"pid\":{pid},\"nr\":{nr},\"args\":[{}]", args.join(","))
}

fn exit(pid: u32, nr: u32, result: i64, more: &str) -> String {
    format!("\"type\":\"syscall_exit\",\"pid\":{pid},\"nr\":{nr},\"result\":{result}{more}")
}

const START: &str = "7 execve(\"/bin/p\", [\"p\"], 0x7ffc0 /* 3 vars */) = 0\n";

#[test]
fn the_first_answer_of_the_kernel_that_differs_is_named_with_what_follows() {
    let good = format!(
        "{START}7 open(\"/etc/x\", O_RDONLY|O_CLOEXEC) = 3\n7 fcntl(3, F_GETFD) = 0x1 (flags FD_CLOEXEC)\n\
         7 write(1, \"yes\\n\", 4) = 4\n7 exit_group(0) = ?\n7 +++ exited with 0 +++\n"
    );
    let bad = good.replace("= 0x1 (flags FD_CLOEXEC)", "= 0").replace("\"yes\\n\", 4) = 4", "\"no\\n\", 3) = 3");
    let report = both(&good, &bad.replace("7 ", "31 "));
    let first = report.first.as_ref().expect("a difference");
    assert_eq!((report.verdict, first.kind, first.name.as_str()), (Verdict::Differs, DivergenceKind::Answer, "fcntl"));
    assert_eq!(first.sentence(), "fcntl returned 0; in the good run 1");
    assert_eq!((report.later_count, report.later[0].kind), (1, DivergenceKind::Argument));
    assert_eq!(report.before.len(), 2);
    assert!(report.suspects.is_empty());
    assert_eq!(both(&good, &good).verdict, Verdict::Same);
    assert!(text(&report).contains("first difference: fcntl returned 0; in the good run 1"));
}

#[test]
fn a_program_that_was_misled_points_at_the_calls_that_write_to_memory() {
    let good = format!("{START}7 stat(\"/a\", 0x7ffe) = 0\n7 getpid() = 7\n7 chmod(\"/a\", 0600) = 0\n");
    let report = both(&good, &good.replace("chmod(\"/a\", 0600)", "chmod(\"/a\", 0644)"));
    let first = report.first.expect("a difference");
    assert_eq!((first.kind, first.argument.as_deref()), (DivergenceKind::Argument, Some("mode")));
    assert_eq!(report.suspects, ["stat(\"/a\", 0x7ffe) = 0"]);
}

#[test]
fn what_a_call_wrote_is_its_answer_and_what_it_was_given_is_the_programs() {
    let run = |nr: u32, more: &str, mode: u64| {
        let rows = [
            entry(1, 59, [0x1000, 0x2000, 0, 0, 0, 0]),
            exit(1, 59, 0, ",\"text0\":\"/bin/p\""),
            entry(1, nr, [0, 0x7000, 0x7008, 8, 0, 0]),
            exit(1, nr, 0, more),
            entry(1, 90, [0x8000, mode, 0, 0, 0, 0]),
            exit(1, 90, 0, ",\"text0\":\"/a\""),
        ];
        recorded(&rows.each_ref().map(String::as_str))
    };
    // getresuid(ruid, euid, suid): the numbers of users are the same in each run.
    let report = judged(&run(118, ",\"bytes1\":\"e8030000\"", 0o600), &run(118, ",\"bytes1\":\"d0070000\"", 0o644));
    let first = report.first.as_ref().expect("a difference");
    assert_eq!((first.kind, first.sentence().as_str()), {
        (DivergenceKind::Memory, "getresuid wrote other bytes to euid")
    });
    assert!(first.bad.as_ref().is_some_and(|row| row.contains("[2000]")), "{:?}", first.bad);
    // rt_sigprocmask(how, set, oldset, size).
    let given =
        judged(&run(14, ",\"bytes1\":\"0200000000000000\"", 0), &run(14, ",\"bytes1\":\"0400000000000000\"", 0));
    assert_eq!(given.first.map(|first| first.kind), Some(DivergenceKind::Argument));
    // A descriptor has another number in each run.
    let pipe = |fds: &str| run(22, &format!(",\"bytes0\":\"{fds}\""), 0);
    assert_eq!(judged(&pipe("0300000004000000"), &pipe("0500000006000000")).first, None);
}

#[test]
fn a_signal_that_was_handled_before_may_have_misled_the_program() {
    let run = |action: &str, mode: u64| {
        let rows = [
            entry(1, 59, [0x1000, 0x2000, 0, 0, 0, 0]),
            exit(1, 59, 0, ",\"text0\":\"/bin/p\""),
            format!("\"type\":\"signal\",\"pid\":1,\"signal\":11,\"signal_name\":\"SIGSEGV\",\"action\":\"{action}\""),
            entry(1, 90, [0x1000, mode, 0, 0, 0, 0]),
            exit(1, 90, 0, ",\"text0\":\"/a\""),
        ];
        recorded(&rows.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let report = judged(&run("handler", 0o600), &run("handler", 0o644));
    assert_eq!(report.suspects, ["SIGSEGV was handled"]);
    assert_eq!(judged(&run("ignore", 0o600), &run("ignore", 0o644)).suspects, [""; 0]);
}

#[test]
fn a_signal_that_comes_before_a_call_in_one_run_and_behind_it_in_the_other_parts_nothing() {
    let (wait, signal) = ("7 waitid(P_ALL, 0, NULL, WEXITED, NULL) = 0\n", "7 --- SIGCHLD {si_signo=SIGCHLD} ---\n");
    let run = |rows: &str| format!("{START}7 rt_sigprocmask(SIG_SETMASK, [], NULL, 8) = 0\n{rows}7 getpid() = 7\n");
    let (before, behind) = (run(&format!("{signal}{wait}")), run(&format!("{wait}{signal}")));
    for (good, bad) in [(&before, &behind), (&behind, &before)] {
        let report = both(good, bad);
        assert_eq!((report.first, report.calls_alike), (None, 4));
    }
    // One that a handler took may have misled the program wherever it came.
    let handled = |rows: &[String], mode: u64| {
        let (begin, call) = (
            [entry(1, 59, [0; 6]), exit(1, 59, 0, ",\"text0\":\"/bin/p\"")],
            [entry(1, 90, [0, mode, 0, 0, 0, 0]), exit(1, 90, 0, ",\"text0\":\"/a\"")],
        );
        let rows: Vec<&str> = begin.iter().chain(rows).chain(&call).map(String::as_str).collect();
        recorded(&rows)
    };
    let alarm = "\"type\":\"signal\",\"pid\":1,\"signal\":14,\"signal_name\":\"SIGALRM\",\"action\":\"handler\"";
    let (entered, left) = (entry(1, 39, [0; 6]), exit(1, 39, 1, ""));
    let before = handled(&[alarm.to_owned(), entered.clone(), left.clone()], 0o600);
    let behind = handled(&[entered, left, alarm.to_owned()], 0o644);
    assert_eq!(judged(&before, &behind).suspects, ["SIGALRM was handled"]);
}

#[test]
fn a_futex_call_that_is_refused_is_a_difference_where_the_good_run_has_no_such_answer() {
    let wait = "7 futex(0x7f00, FUTEX_WAIT, 0, NULL) = ";
    let good = format!("{START}{wait}-1 EAGAIN (Resource temporarily unavailable)\n7 getpid() = 7\n");
    let bad = format!("{START}{wait}-1 EINVAL (Invalid argument)\n7 getpid() = 7\n");
    let first = both(&good, &bad).first.expect("a difference");
    assert_eq!((first.kind, first.name.as_str(), first.good.as_deref()), (DivergenceKind::Answer, "futex", None));
    assert_eq!(first.sentence(), "futex returned -1 EINVAL; in the good run never that");
    assert_eq!(both(&bad, &bad).first, None);
    let waits = good.replace("-1 EAGAIN (Resource temporarily unavailable)", "0");
    assert_eq!(both(&good, &waits).first, None, "which wait finds its word changed depends on time");
}

#[test]
fn a_lock_in_a_futex_that_is_given_twice_is_a_difference_and_one_that_is_taken_without_a_call_is_none() {
    let lock = "7 futex(0x7f00, FUTEX_LOCK_PI_PRIVATE, 0, NULL) = ";
    let good = format!("{START}{lock}0\n{lock}-1 EDEADLK (Resource deadlock avoided)\n7 getpid() = 7\n");
    let bad = format!("{START}{lock}0\n{lock}0\n7 getpid() = 7\n");
    let first = both(&good, &bad).first.expect("a difference");
    assert_eq!(first.sentence(), "futex returned 0; in the good run -1 EDEADLK");
    let (called, alone) = (format!("{START}{lock}0\n7 getpid() = 7\n"), format!("{START}7 getpid() = 7\n"));
    assert_eq!(both(&called, &alone).first, None);
    assert_eq!(both(&alone, &called).first, None);
}

#[test]
fn a_call_in_which_the_good_recording_ends_is_no_difference() {
    let begin = [entry(1, 59, [0; 6]), exit(1, 59, 0, ",\"text0\":\"/bin/p\""), entry(1, 1, [1, 0x2000, 13, 0, 0, 0])];
    let rows = |more: &[String]| {
        let rows: Vec<&str> = begin.iter().chain(more).map(String::as_str).collect();
        recorded(&rows)
    };
    let (cut, whole) = (rows(&[]), rows(&[exit(1, 1, 13, "")]));
    assert_eq!(judged(&cut, &whole).first, None);
    let first = judged(&whole, &cut).first.expect("a difference");
    assert_eq!(first.kind, DivergenceKind::NotReturned);
    // Another call behind it proves that the good machine went on.
    let behind = rows(&[entry(2, 39, [0; 6]), exit(2, 39, 2, "")]);
    assert!(judged(&behind, &whole).first.is_some());
}

#[test]
fn processes_addresses_and_names_of_temporary_files_are_renamed() {
    let run = |pid: u32, child: u32, at: &str, name: &str| {
        format!(
            "{pid} execve(\"/bin/p\", [\"p\"], NULL) = 0\n\
             {pid} mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, -1, 0) = {at}\n\
             {pid} munmap({at}, 4096) = 0\n{pid} mkdir(\"/tmp/x-{name}\", 0700) = 0\n{pid} fork() = {child}\n\
             {child} kill({pid}, SIGUSR1) = 0\n{pid} --- SIGUSR1 {{si_signo=SIGUSR1, si_pid={child}}} ---\n\
             {child} exit_group(3) = ?\n{child} +++ exited with 3 +++\n\
             {pid} wait4({child}, [{{WIFEXITED(s) && WEXITSTATUS(s) == 3}}], 0, NULL) = {child}\n\
             {pid} wait4(-1, NULL, 0, NULL) = -1 ECHILD (No child processes)\n"
        )
    };
    let good = run(10, 11, "0x7f10", "aB3dE6");
    assert_eq!(both(&good, &run(200, 207, "0x7e80", "Zz1Yy2")).first, None);
    // Another process than the one that was made is not a renaming.
    let wrong = run(200, 207, "0x7e80", "aB3dE6").replace("wait4(207, [", "wait4(200, [");
    assert_eq!(both(&good, &wrong).first.expect("a difference").argument.as_deref(), Some("pid"));
    // A path of a process is renamed with it.
    let status = |run: String, pid: u32| format!("{run}{pid} open(\"/proc/{pid}/status\", O_RDONLY) = 3\n");
    assert_eq!(both(&status(good.clone(), 10), &status(run(200, 207, "0x7e80", "Zz1Yy2"), 200)).first, None);
    // A hint that was followed in one run only is another answer.
    let hint = good.replace("mmap(NULL, ", "mmap(0x7f10, ");
    let elsewhere = hint.replace(" = 0x7f10\n10 munmap(0x7f10", " = 0x9990\n10 munmap(0x9990");
    assert_eq!(both(&hint, &elsewhere).first.expect("a difference").name, "mmap");
}

#[test]
fn descriptors_are_compared_as_numbers_unless_the_runs_began_with_others_open() {
    let run = |first: u32, second: u32| {
        format!(
            "{START}7 open(\"/a\", O_RDONLY) = {first}\n7 dup({first}) = {second}\n7 close({second}) = 0\n\
             7 close({first}) = 0\n"
        )
    };
    assert_eq!(both(&run(3, 4), &run(5, 9)).first, None);
    let report = both(&run(3, 4), &run(3, 5));
    assert_eq!(report.first.expect("a difference").name, "dup");
}

#[test]
fn unfinished_calls_are_joined_and_a_call_that_never_returns_is_a_difference() {
    let good = "5 execve(\"/p\", [\"p\"], NULL) = 0\n5 fork() = 6\n5 wait4(6, <unfinished ...>\n6 exit_group(0) = ?\n\
                6 +++ exited with 0 +++\n5 <... wait4 resumed>NULL, 0, NULL) = 6\n5 exit_group(0) = ?\n\
                5 +++ exited with 0 +++\n";
    let trace = of_strace(good.as_bytes());
    assert_eq!((trace.calls(), trace.gaps.len()), (5, 0));
    let hung = "5 execve(\"/p\", [\"p\"], NULL) = 0\n5 fork() = 6\n5 wait4(6, <unfinished ...>\n6 exit_group(0) = ?\n\
                6 +++ exited with 0 +++\n5 +++ killed by SIGKILL +++\n";
    let report = both(good, hung);
    let first = report.first.expect("a difference");
    assert_eq!((first.kind, first.name.as_str()), (DivergenceKind::NotReturned, "wait4"));
    assert_eq!(report.ends.bad.as_deref(), Some("killed by SIGKILL"));
}

#[test]
fn a_call_that_was_printed_in_pieces_has_the_arguments_of_a_whole_one() {
    let run = |call: &str| {
        format!("5 execve(\"/p\", [\"p\"], NULL) = 0\n{call}5 exit_group(0) = ?\n5 +++ exited with 0 +++\n")
    };
    let whole = run("5 waitid(P_PID, 6, {si_signo=SIGCHLD}, WEXITED, NULL) = 0\n");
    let torn =
        run("5 waitid(P_PID, 6,  <unfinished ...>\n5 <... waitid resumed>{si_signo=SIGCHLD}, WEXITED, NULL) = 0\n");
    assert_eq!(both(&whole, &torn).first, None);
    assert_eq!(both(&torn, &whole).first, None);
}

#[test]
fn a_call_in_which_a_process_was_killed_is_the_same_however_the_trace_says_that() {
    let run = |pause: &str| {
        of_strace(format!("{START}7 pause() = {pause}\n7 --- SIGTERM ---\n7 +++ killed by SIGTERM +++\n").as_bytes())
    };
    let (unavailable, restarted) = (run("?"), run("? ERESTARTNOHAND (To be restarted if no handler)"));
    assert_eq!(judged(&unavailable, &restarted).first, None);
    assert_eq!(judged(&restarted, &unavailable).first, None);
    assert_eq!(judged(&restarted, &run("-1 EINTR (x)")).first, None);
    let survives = of_strace(format!("{START}7 pause() = -1 EINTR (x)\n7 exit_group(0) = ?\n").as_bytes());
    assert_eq!(judged(&unavailable, &survives).first.expect("a difference").name, "pause");
}

#[test]
fn how_far_a_process_came_before_another_one_killed_it_depends_on_time() {
    let run = |calls: &str, signal: &str| {
        let parent = format!("{START}7 fork() = 8\n7 kill(8, SIGKILL) = 0\n7 +++ exited with 0 +++\n");
        format!("{parent}8 getppid() = 7\n{calls}8 +++ killed by {signal} +++\n")
    };
    let (mask, open) = ("8 rt_sigprocmask(SIG_SETMASK, [], NULL, 8) = 0\n", "8 open(\"/x\", O_RDONLY) = 3\n");
    assert_eq!(both(&run(mask, "SIGKILL"), &run("", "SIGKILL")).verdict, Verdict::Same);
    assert_eq!(both(&run("", "SIGKILL"), &run(mask, "SIGKILL")).verdict, Verdict::Same);
    assert_eq!(both(&run(mask, "SIGSEGV"), &run("", "SIGSEGV")).verdict, Verdict::Differs, "a fault has a cause");
    let (good, bad) = (run(&format!("{mask}{open}"), "SIGKILL"), run(open, "SIGKILL"));
    assert_eq!(both(&good, &bad).verdict, Verdict::Differs, "both came further");
}

#[test]
fn what_a_process_did_before_it_killed_itself_does_not_depend_on_time() {
    let run = |pid: u32, calls: &str, sends: &str| {
        let calls = format!("7 getppid() = 1\n{calls}7 {sends}\n7 --- SIGTERM ---\n");
        format!("{START}{calls}7 +++ killed by SIGTERM +++\n")
            .replace("7 ", &format!("{pid} "))
            .replace("(7,", &format!("({pid},"))
    };
    let open = "7 open(\"/x\", O_RDONLY) = 3\n";
    let told = |good: &str, bad: &str| {
        let opened = |report: OracleReport| report.first.iter().chain(&report.later).any(|found| found.name == "open");
        (opened(both(good, bad)), opened(both(bad, good)))
    };
    for (good, bad) in
        [("tkill(7, SIGTERM) = 0", "kill(7, SIGTERM) = 0"), ("kill(0, SIGTERM) = 0", "tgkill(7, 7, SIGTERM) = ?")]
    {
        assert_eq!(told(&run(7, "", good), &run(30, open, bad)), (true, true), "{good} {bad}");
    }
    // An earlier signal of the same kind that a handler took did not end it; nor one to another process.
    let handled = |calls: &str| {
        let first = "7 kill(7, SIGTERM) = 0\n7 --- SIGTERM ---\n7 rt_sigreturn({mask=[]}) = 0\n";
        format!("{START}{first}7 kill(9, SIGTERM) = 0\n{calls}7 +++ killed by SIGTERM +++\n")
    };
    assert_eq!(told(&handled(""), &handled(open)), (false, false));
}

#[test]
fn a_recording_is_compared_with_strace_where_both_show_something() {
    let rows = |mode: u64, result: i64| {
        [
            entry(1, 59, [0x1000, 0, 0, 0, 0, 0]),
            exit(1, 59, 0, ",\"text0\":\"/sbin/runner\""),
            entry(1, 57, [0; 6]),
            exit(1, 57, 2, ""),
            entry(2, 59, [0x1000, 0x2000, 0x3000, 0, 0, 0]),
            exit(2, 59, 0, ",\"text0\":\"/bin/p\""),
            entry(2, 257, [0xffff_ff9c, 0x1000, 0x241, mode, 0, 0]),
            exit(2, 257, result, ",\"text1\":\"/tmp/a-name-that-is-\",\"texts_cut\":2"),
            entry(2, 231, [0; 6]),
            "\"type\":\"process_exit\",\"pid\":2,\"status\":0,\"by_signal\":false".to_owned(),
        ]
    };
    let strace = of_strace(
        b"9 execve(\"/bin/p\", [\"p\"], 0x7f /* 2 vars */) = 0\n\
          9 openat(AT_FDCWD, \"/tmp/a-name-that-is-long\", O_WRONLY|O_CREAT|O_TRUNC, 0640) = 3\n\
          9 exit_group(0) = ?\n9 +++ exited with 0 +++\n",
    );
    let against = |rows: &[String]| judged(&strace, &recorded(&rows.iter().map(String::as_str).collect::<Vec<_>>()));
    let report = against(&rows(0o640, 3));
    assert_eq!((report.first, report.calls_alike), (None, 3));
    assert_eq!((report.good.origin, report.bad.origin), (TraceOrigin::Strace, TraceOrigin::Recording));
    assert_eq!(report.ends.bad.as_deref(), Some("exit status 0"));
    assert_eq!(against(&rows(0o644, 3)).first.expect("a difference").argument.as_deref(), Some("mode"));
    let report = against(&rows(0o640, -13));
    assert_eq!(report.first.expect("a difference").sentence(), "openat returned -1 EACCES; in the good run 3");
}

#[test]
fn a_log_that_a_crash_cuts_into_dumps_is_one_run() {
    let crash = "\"type\":\"crash_report\",\"pid\":2,\"signal\":11,\"signal_name\":\"SIGSEGV\",\"cmdline\":\"p\"";
    let rows = [
        entry(1, 59, [0x1000, 0x2000, 0, 0, 0, 0]),
        exit(1, 59, 0, ",\"text0\":\"/bin/p\""),
        entry(1, 57, [0; 6]),
        exit(1, 57, 2, ""),
        entry(1, 61, [2, 0, 0, 0, 0, 0]),
        "\"type\":\"signal\",\"pid\":2,\"signal\":34,\"signal_name\":\"SIGRT\",\"action\":\"handler\"".to_owned(),
        crash.to_owned(),
        "\"type\":\"process_exit\",\"pid\":2,\"status\":11,\"by_signal\":true".to_owned(),
        exit(1, 61, 2, ""),
        crash.to_owned(),
    ];
    let trace = recorded(&rows.iter().map(String::as_str).collect::<Vec<_>>());
    let good = of_strace(
        b"9 execve(\"/bin/p\", [\"p\"], NULL) = 0\n9 fork() = 10\n10 --- SIGRT_2 {} ---\n\
          10 +++ killed by SIGSEGV (core dumped) +++\n9 wait4(10, NULL, 0, NULL) = 10\n",
    );
    let report = judged(&good, &trace);
    assert_eq!((report.first, report.calls_alike), (None, 3));
    assert_eq!(trace.calls(), 3, "events before a crash are in its dump and in the next");
}

#[test]
fn what_differs_from_run_to_run_is_no_difference() {
    let good = format!(
        "{START}7 clock_gettime(CLOCK_REALTIME, 0x7f) = 0\n7 futex(0x7f, FUTEX_WAKE, 1) = 0\n\
         7 getrandom(\"abc\", 3, 0) = 3\n7 nanosleep({{tv_sec=0, tv_nsec=1000}}, NULL) = 0\n\
         7 --- SIGCHLD {{si_signo=SIGCHLD}} ---\n\
         7 read(3, 0x7ff, 1) = ? ERESTARTSYS (To be restarted if SA_RESTART is set)\n7 read(3, \"x\", 1) = 1\n"
    );
    let bad = format!(
        "{START}7 getrandom(\"xyz\", 3, 0) = 3\n7 nanosleep({{tv_sec=0, tv_nsec=1000}}, NULL) = 0\n\
         7 nanosleep({{tv_sec=0, tv_nsec=1000}}, NULL) = 0\n7 read(3, \"x\", 1) = 1\n"
    );
    assert_eq!(both(&good, &bad).first, None);
    let report = both(&good, &bad.replace("read(3, \"x\"", "read(3, \"y\""));
    assert_eq!(report.first.expect("a difference").kind, DivergenceKind::Memory);
}

#[test]
fn a_program_that_is_not_in_both_runs_cannot_be_compared() {
    let good = of_strace(START.as_bytes());
    let bad = of_strace(b"7 execve(\"/bin/q\", [\"q\"], NULL) = 0\n7 getpid() = 7\n");
    assert_eq!(judged(&good, &bad).verdict, Verdict::CannotTell);
    assert_eq!(judged(&of_strace(b""), &bad).verdict, Verdict::CannotTell);
}

#[test]
fn a_machine_that_ended_before_the_program_began_is_compared_from_its_first_thread_on() {
    let common = [
        entry(1, 59, [0x1000, 0, 0, 0, 0, 0]),
        exit(1, 59, 0, ",\"text0\":\"/sbin/runner\""),
        entry(1, 2, [0x1000, 0, 0, 0, 0, 0]),
        exit(1, 2, 3, ",\"text0\":\"/etc/jobs\""),
        entry(1, 0, [3, 0x2000, 512, 0, 0, 0]),
    ];
    let run = |more: &[String]| {
        let rows: Vec<&str> = common.iter().chain(more).map(String::as_str).collect();
        recorded(&rows)
    };
    let good = run(&[
        exit(1, 0, 9, ""),
        entry(1, 57, [0; 6]),
        exit(1, 57, 2, ""),
        entry(2, 59, [0x1000, 0, 0, 0, 0, 0]),
        exit(2, 59, 0, ",\"text0\":\"/bin/p\""),
        entry(2, 39, [0; 6]),
        exit(2, 39, 2, ""),
    ]);
    let bad = run(&[exit(1, 0, -14, "")]);
    let options = CompareOptions { program: Some("p".to_owned()), from_init: false };
    let report = compare(("good", &good), ("bad", &bad), &options);
    let first = report.first.as_ref().expect("a difference");
    assert_eq!((first.name.as_str(), first.kind, report.program.as_deref()), ("read", DivergenceKind::Answer, None));
    assert_eq!(report.bad.gaps, ["/bin/p is not executed in this run: compared from the first thread on"]);
    // Two recordings of other programs are not compared when the good one has not this one either.
    assert_eq!(compare(("bad", &bad), ("good", &good), &options).verdict, Verdict::CannotTell);
}

#[test]
fn a_machine_that_went_wrong_beside_the_program_is_compared_from_init_on_when_that_is_asked() {
    let run = |reaped: i64| {
        let rows = [
            entry(1, 57, [0; 6]),
            exit(1, 57, 2, ""),
            entry(2, 59, [0x1000, 0, 0, 0, 0, 0]),
            exit(2, 59, 0, ",\"text0\":\"/bin/p\""),
            entry(2, 32, [0; 6]),
            exit(2, 32, 3, ""),
            entry(1, 61, [u64::MAX, 0, 0, 0, 0, 0]),
            exit(1, 61, reaped, ""),
        ];
        recorded(&rows.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let (good, bad) = (run(2), run(-10));
    let judged = |from_init| {
        let options = CompareOptions { program: Some("p".to_owned()), from_init };
        compare(("good", &good), ("bad", &bad), &options)
    };
    assert_eq!((judged(false).verdict, judged(false).bad.gaps.len()), (Verdict::Same, 0));
    let report = judged(true);
    assert_eq!((report.verdict, report.first.expect("a difference").name.as_str()), (Verdict::Differs, "wait4"));
    assert_eq!(report.bad.gaps, ["/bin/p does the same in both runs: compared from the first thread on"]);
}

#[test]
fn rings_lack_calls_without_arguments_and_are_never_complete() {
    let good = of_strace(format!("{START}7 getpid() = 7\n7 dup(0) = 3\n").as_bytes());
    let ring = |calls: &str| {
        let mut trace = of_strace(calls.as_bytes());
        trace.origin = super::trace::Origin::Rings;
        trace
    };
    let report = judged(&good, &ring(&format!("{START}7 dup(0) = 3\n")));
    assert_eq!((report.verdict, report.bad.origin), (Verdict::Same, TraceOrigin::Rings));
    assert_eq!(
        judged(&good, &ring(&format!("{START}7 dup(0) = -1 EMFILE\n"))).first.expect("a difference").name,
        "dup"
    );
    // A ring that begins behind the execve does not tell which program it is of.
    assert_eq!(judged(&ring("7 dup(0) = 3\n"), &good).verdict, Verdict::CannotTell);
}

#[test]
fn a_trace_with_gaps_says_that_a_difference_may_lie_in_them() {
    let good = of_strace(START.as_bytes());
    let report = judged(&good, &of_strace(format!("{START}what is this\n").as_bytes()));
    assert!(report.is_partial() && report.verdict == Verdict::Same);
    assert!(text(&report).contains("What the incomplete run lacks may differ."), "{}", text(&report));
    assert!(!judged(&good, &good).is_partial());
}

#[test]
fn a_run_whose_kernel_died_is_not_a_whole_one() {
    let lived = [entry(2, 39, [0; 6]), exit(2, 39, 2, "")];
    let died = "\"type\":\"panic\",\"message\":\"demo\"".to_owned();
    let rows = |rows: &[String]| recorded(&rows.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(rows(&lived).gaps.is_empty());
    let trace = rows(&[lived[0].clone(), lived[1].clone(), died]);
    assert_eq!((trace.calls(), trace.gaps.first().is_some_and(|gap| gap.contains("died"))), (1, true));
}

#[test]
fn text_is_strace_when_most_of_its_first_lines_are() {
    assert!(is_strace(START.as_bytes()));
    assert!(is_strace(b"[pid   12] 10:02:03.5 close(3) = 0 <0.000010>\n"));
    assert!(is_strace(
        b"[pid 12<a b>] [   3] [00007f14c33fdad7] close(3) = 0\n > /bin/a(f+0x1) [0x11]\n > /b() [0x2]\n"
    ));
    assert!(!is_strace(b" > /bin/a(f+0x1) [0x11]\n > /bin/b(g+0x2) [0x12]\n"));
    assert!(!is_strace(b"[12] [00007f14c33fdad7] a kernel\n[  1.2] b(c) d\n"));
    assert!(is_strace(b"execve(\"/bin/ls\", [\"ls\"], 0x7ff /* 5 vars */) = 0\nbrk(NULL) = 0x5555\n"));
    assert!(!is_strace(b"[    0.91] Kernel panic - not syncing: x\nCall Trace:\n"));
    assert!(!is_strace(b"DBG {\"type\":\"syscall_exit\",\"pid\":1}\n"));
    assert!(!is_strace(b"\x00\x01KWAB") && !is_strace(b""));
}

#[test]
fn lines_that_are_no_call_are_counted_with_the_place_of_the_first() {
    let trace = of_strace(b"7 getpid() = 7\nhello\n7 write(1, \"unterminated\n7 +++ exited with 0 +++\n");
    assert_eq!(trace.gaps, ["2 lines could not be read, the first is line 2"]);
    assert_eq!(trace.calls(), 1);
}

#[test]
fn operands_of_registers_and_of_text_compare_by_what_they_are() {
    let register = |word: u64| Operand::of_register(Some(word), None);
    let of = |kind, token| Operand::of_strace(Some(kind), token);
    assert_eq!(register(0o1101).same(&of(ArgKind::Mode, "01101"), ArgKind::Mode), Same::Yes);
    assert_eq!(register(0).same(&of(ArgKind::Ptr, "NULL"), ArgKind::Ptr), Same::Yes);
    assert_eq!(register(0x7f00).same(&of(ArgKind::Ptr, "{st_mode=S_IFREG|0644}"), ArgKind::Ptr), Same::CannotTell);
    assert_eq!(register(0).same(&of(ArgKind::Ptr, "{st_mode=S_IFREG|0644}"), ArgKind::Ptr), Same::No);
    assert_eq!(register(10).same(&of(ArgKind::Signal, "SIGUSR1"), ArgKind::Signal), Same::Yes);
    assert_eq!(of(ArgKind::Fd, "3</etc/passwd>").word, Some(3));
    assert_eq!(of(ArgKind::Str, r#""a\33\n\x41"..."#).text.map(|text| text.bytes), Some(b"a\x1b\nA".to_vec()));
    assert_eq!(of(ArgKind::Ptr, r#"["sh", "-c"]"#).text.map(|text| text.bytes), Some(b"sh\0-c\0".to_vec()));
    assert_eq!(Answer::of_register(-512), Answer::Restart);
    assert_eq!(Answer::of_register(-11), Answer::Error("EAGAIN".into()));
}

#[test]
fn hostile_text_is_read_in_time_and_never_panics() {
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    let pieces = [
        "7 ",
        "read(",
        "\"",
        "\\",
        "...",
        "]",
        "[",
        "{",
        ")",
        " = ",
        "?",
        "<unfinished ...>",
        "<... ",
        " resumed>",
        "\n",
        "--- SIG",
        "+++ ",
        "exited with ",
        "0x",
        "-1 E",
        "\u{7f}",
        "fork() = 8\n8 ",
        "é",
    ];
    for _ in 0..3000 {
        let mut text = String::new();
        for _ in 0..40 {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            text.push_str(pieces[(seed % pieces.len() as u64) as usize]);
        }
        let trace = of_strace(text.as_bytes());
        let _ = is_strace(text.as_bytes());
        let report = judged(&trace, &of_strace(START.as_bytes()));
        let _ = super::text(&report);
    }
    // As many threads, and as many calls beside none of the same name, as there are lines.
    let threads: String = (0..50_000).map(|pid| format!("{pid} getpid() = {pid}\n")).collect();
    assert_eq!(of_strace(threads.as_bytes()).threads.len(), 50_000);
    let of = |name: &str| {
        let calls: String = (0..30_000).map(|fd| format!("7 {name}({fd}) = -1 EBADF\n7 --- SIGHUP\n")).collect();
        of_strace(format!("{START}{calls}").as_bytes())
    };
    assert_eq!(judged(&of("dup"), &of("close")).later_count, 59_999);
    // A line of children, each made by the one before, of which each ends otherwise.
    let line = |status: u32| -> String {
        let one = |pid: u32| {
            let child = pid + 1;
            format!("{pid} fork() = {child}\n{pid} exit_group({status}) = ?\n{pid} +++ exited with {status} +++\n")
        };
        (7..20_000).map(one).collect()
    };
    let of = |status| of_strace(format!("{START}{}", line(status)).as_bytes());
    assert_eq!(judged(&of(0), &of(1)).later_count, 2 * (20_000 - 7) - 1);
    let calls = of_strace("7 getpid() = 7\n".repeat(50_000).as_bytes());
    assert!(calls.threads[0].rows.iter().all(|row| matches!(row.what, What::Call(_))));
    assert_eq!(judged(&calls, &of_strace("7 getpid() = 7\n".repeat(49_000).as_bytes())).verdict, Verdict::Same);
}

#[test]
fn what_a_text_takes_beyond_its_budget_is_left_out_and_said() {
    let calls = |count: usize| {
        let mut text = START.to_owned();
        (0..count).for_each(|_| text.push_str("7 getpid() = 7\n"));
        of_strace(text.as_bytes())
    };
    let (few, many) = (calls(1000), calls(600_000));
    assert!(few.gaps.is_empty() && few.calls() == 1001, "{:?}", few.gaps);
    assert!(many.calls() < 600_000, "{}", many.calls());
    let line = many.calls() + 1;
    assert!(many.gaps[0].starts_with(&format!("what is from line {line} on was left out")), "{:?}", many.gaps);
    let held: u64 = many.threads[0].rows.iter().map(|row| row.what.footprint()).sum();
    // 64 MiB and four times the text of 9 MB.
    assert!(held < (64 << 20) + 4 * 9_100_000, "{held}");
    let report = judged(&many, &many);
    assert!(report.verdict == Verdict::Same && report.is_partial(), "{:?}", report.verdict);
}

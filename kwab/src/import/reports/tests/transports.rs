//! Reports whose lines a transport glued together, or a mail program wrapped.

use super::super::Report;
use super::super::class::Class;
use super::only;

fn frames(report: &Report) -> Vec<&str> {
    report.stacks[0].frames.iter().filter_map(|frame| frame.symbol.as_deref()).collect()
}

#[test]
fn lines_that_were_glued_together_are_read_one_by_one() {
    // Shape: a serial console that lost line ends
    let log = "\
[    5.100000] demo: probe of 0000:00:04.0 failed with[    5.100001] BUG: kernel NULL pointer dereference, address: 0018
[    5.100002] #PF: supervisor write access in kernel mode[    5.100003] #PF: error_code(0x0002) - not-present page
[    5.100004] PGD 0 P4D 0 [    5.100005] Oops: 0002 [#1] PREEMPT SMP[    5.100006] CPU: 3 PID: 140 Comm: kworker/3:1 \
Not tainted 6.1.0-demo #7
[    5.100007] RIP: 0010:demo_ring+0x1d/0x40 [demo][    5.100008] Code: 48 89 c3 <48> 89 58 18 eb
[    5.100009] RSP: 0018:ffffc90000123d40 EFLAGS: 00010246[    5.100010] RAX: 0000000000000000 RBX: ffff888101234000
[    5.100011] Call Trace:[    5.100012]  <TASK>[    5.100013]  demo_store+0x1d/0x40 [demo][    5.100014]  \
process_one_work+0x1b0/0x350[    5.100015]  </TASK>
[    5.100016] ---[ end trace 0000000000000000 ]---
";
    for log in [log.to_owned(), log.replace('\n', " ")] {
        let report = only(&log);
        assert_eq!(report.headline, "BUG: unable to handle kernel NULL pointer dereference in demo_ring");
        assert_eq!((report.cpu, report.pid, report.comm.as_deref()), (Some(3), Some(140), Some("kworker/3:1")));
        assert_eq!((report.fault_address, report.error_code), (Some(0x18), Some(2)));
        assert_eq!(frames(&report), ["demo_store", "process_one_work"]);
    }
}

#[test]
fn a_head_that_a_mail_program_wrapped_is_one_line_again() {
    // Shapes: kernel/panic.c, kernel/hung_task.c, kernel/watchdog.c, wrapped at 72 columns
    let warning = only(
        "[  242.123460] WARNING: CPU: 3 PID: 512 at\ndrivers/net/demo/demo_main.c:1234 demo_xmit+0x1f4/0x220 [demo]\n\
         [  242.123470] Modules linked in: demo(+) e1000e\n\
         [  242.123480] CPU: 3 PID: 512 Comm: ip Not tainted 5.10.0-demo\n#12\n\
         [  242.123500] Call Trace:\n[  242.123510]  dev_hard_start_xmit+0x8c/0x1f0\n",
    );
    assert_eq!((warning.class, warning.headline.as_str()), (Class::Warning, "WARNING in demo_xmit"));
    assert_eq!(warning.source, Some(("drivers/net/demo/demo_main.c".into(), 1234)));
    assert_eq!((warning.cpu, warning.comm.as_deref(), warning.first.line), (Some(3), Some("ip"), 1));
    let hung = only(
        "> [ 1812.123456] INFO: task demo_sync:812 blocked for more than\n> 120 seconds.\n\
         > [ 1812.123460]       Not tainted 6.1.0 #1\n> [ 1812.123466] Call Trace:\n\
         > [ 1812.123470]  __schedule+0x2c1/0x8c0\n> [ 1812.123474]  demo_wait_commit+0x9a/0x110\n> [demo]\n",
    );
    assert_eq!((hung.class, hung.comm.as_deref(), hung.pid), (Class::HungTask, Some("demo_sync"), Some(812)));
    assert_eq!(hung.function.as_deref(), Some("demo_wait_commit"));
    assert_eq!(hung.stacks[0].frames[1].module.as_deref(), Some("demo"));
    let lockup = only(
        "[  512.123456] watchdog: BUG: soft lockup - CPU#3 stuck for 22s!\n[demo-worker:812]\n\
         [  512.123466] Call Trace:\n[  512.123468]  demo_thread+0x44/0x60 [demo]\n",
    );
    assert_eq!((lockup.class, lockup.cpu, lockup.pid), (Class::SoftLockup, Some(3), Some(812)));
    assert_eq!(lockup.comm.as_deref(), Some("demo-worker"));
    let fault = only(
        "[   12.345678] BUG: unable to handle\npage fault for address: ffffc90000a01000\n\
         [   12.345690] Oops: 0002 [#1] PREEMPT SMP NOPTI\n[   12.345696] RIP: 0010:demo_init+0x5c/0xa0\n[demo]\n\
         [   12.345697] Code: 48 89 c3 48 85\n43 10 <c7> 03 01\n\
         [   12.345698] RAX: ffffc90000a01000 RBX:\nffffc90000a01008 RCX: 0000000000000003\n",
    );
    assert_eq!((fault.class, fault.fault_address), (Class::PageFault, Some(0xffff_c900_00a0_1000)));
    assert_eq!(fault.location.as_ref().and_then(|frame| frame.module.as_deref()), Some("demo"));
    assert_eq!(fault.code.as_ref().map(|code| (code.bytes.len(), code.marked)), Some((10, Some(7))));
    let values: Vec<u64> = fault.registers[0].registers.iter().map(|(_, value)| *value).collect();
    assert_eq!(values, [0xffff_c900_00a0_1000, 0xffff_c900_00a0_1008, 3]);
}

#[test]
fn a_line_of_a_program_behind_a_whole_head_is_not_joined_with_it() {
    // An init script writes beside the kernel.
    let report = only(
        "[  512.123456] watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [demo:812]\nStarting [net:1]: ok\n\
         [  512.123466] Call Trace:\n[  512.123468]  demo_thread+0x44/0x60 [demo]\n",
    );
    assert_eq!((report.comm.as_deref(), report.pid, report.cpu), (Some("demo"), Some(812), Some(3)));
}

#[test]
fn frames_behind_the_words_call_trace_are_frames() {
    let report = only(
        "Kernel panic - not syncing: Attempted to kill init! exitcode=0x0000000b\nCPU: 0 PID: 1 Comm: init Not tainted \
         4.19.0 #1\nCall Trace: [<ffffffff81123450>] dump_stack+0x5c/0x80 [<ffffffff81123460>] panic+0xe7/0x247 \
         [<ffffffff81123470>] do_exit.cold+0x1a/0x7b\n",
    );
    assert_eq!(frames(&report), ["dump_stack", "panic", "do_exit.cold"]);
}

#[test]
fn the_task_of_a_failed_allocation_may_have_colons_in_its_name() {
    // Shape: mm/page_alloc.c (warn_alloc)
    let report = only(
        "[  812.100000] kworker/u8:2: page allocation failure: order:4, mode:0x40cc0(GFP_KERNEL|__GFP_COMP)\n\
         [  812.100010] CPU: 1 PID: 88 Comm: kworker/u8:2 Not tainted 6.1.0 #1\n[  812.100030] Call Trace:\n\
         [  812.100060]  warn_alloc+0x132/0x1b0\n[  812.100080]  __alloc_pages+0x2e8/0x330\n\
         [  812.100100]  demo_ring_alloc+0x33/0x90 [demo]\n",
    );
    assert_eq!(
        (report.class, report.headline.as_str()),
        (Class::Warning, "page allocation failure in demo_ring_alloc")
    );
}

#[test]
fn nuttx_prints_the_name_of_a_function_before_each_line_of_registers() {
    // Shapes: NuttX sched/misc/assert.c, arch/arm/src/armv7-m/arm_hardfault.c, arm_busfault.c
    let report = only(
        "arm_hardfault: Hard Fault Reason:\n\
         up_assert: Assertion failed at file:armv7-m/up_hardfault.c line: 148 task: demo_main\n\
         arm_registerdump: R0: 20001234 R1: 00000000 R2: 00000001  R3: 00000000\n\
         arm_registerdump: IP: 00000000 SP: 20002f00 LR: 08001235  PC: 08001240\n",
    );
    assert_eq!((report.family.as_str(), report.class), ("nuttx", Class::Exception));
    assert_eq!((report.comm.as_deref(), report.ip), (Some("demo_main"), Some(0x0800_1240)));
    let report = only(
        "[    1.230000] [ EMERG] arm_busfault: PANIC!!! Bus Fault:\n\
         [    1.230000] [ EMERG] arm_busfault: \tIRQ: 5 regs: 0x20004f10\n\
         [    1.230000] [ EMERG] _assert: Assertion failed panic: at file: armv7-m/arm_busfault.c:113 task: demo_task \
         process: demo_task 0x8004321\n\
         [    1.230000] [ EMERG] up_dump_register: IP: 00000000 SP: 20004fb0 LR: 08004333  PC: 08004340\n",
    );
    assert_eq!((report.family.as_str(), report.class), ("nuttx", Class::Exception));
    assert_eq!((report.comm.as_deref(), report.ip), (Some("demo_task"), Some(0x0800_4340)));
}

#[test]
fn soft_breaks_of_quoted_printable_text_are_taken_out_before_anything_else() {
    // Shape: mail as quoted-printable (RFC 2045, 6.7), quoted
    let report = only(
        "> > [=A0=A0 11.999119] ------------[ cut here ]------------\n\
         > > [=A0=A0 12.012734] WARNING: CPU: 0 PID: 7 at net/sched/sch_demo.c:44=\n3\n> > demo_watchdog+0x3e8/0x420\n\
         > >\n> > [=A0=A0 12.022206] CPU: 0 PID: 7 Comm: demo/0 Not tainted\n> > 5.2.0-demo #25\n",
    );
    assert_eq!((report.class, report.headline.as_str()), (Class::Warning, "WARNING in demo_watchdog"));
    assert_eq!(report.source, Some(("net/sched/sch_demo.c".into(), 443)));
    assert_eq!((report.cpu, report.pid, report.comm.as_deref()), (Some(0), Some(7), Some("demo/0")));
}

#[test]
fn a_directory_is_no_function_and_not_is_no_part_of_a_name() {
    let report = only(
        "[  655.853961] WARNING: CPU: 1 PID: 0 at lib/refcount.c:28 \ndemo_switch+0x208/0x268\n\
         [  655.861929] refcount_t: underflow; use-after-free.\n[  655.869802] CPU: 1 PID: 0 Comm: swapper/1 Not\n\
         tainted 5.18.0-demo #47\n[  655.884901]  unwind_backtrace from show_stack+0x10/0x14\n",
    );
    assert_eq!((report.class, report.function.as_deref()), (Class::Refcount, Some("demo_switch")));
    assert_eq!(report.comm.as_deref(), Some("swapper/1"));
}

#[test]
fn a_terminal_program_puts_a_sign_behind_its_time() {
    // Shape: UefiCpuPkg/Library/CpuExceptionHandlerLib of EDK2
    let report = only(
        "17:00:25.018 : InstallProtocolInterface: 1 2\n\
         17:00:25.091 : !!!! X64 Exception Type - 0E(#PF - Page-Fault)  CPU Apic ID - 00000000 !!!!\n\
         17:00:25.091 : RIP  - 00000000870A1A2C, CS  - 0000000000000038, RFLAGS - 0000000000010217\n",
    );
    assert_eq!((report.family.as_str(), report.cpu, report.ip), ("edk2", Some(0), Some(0x870a_1a2c)));
}

#[test]
fn a_head_of_a_loggers_line_is_joined_with_a_bare_line_and_not_with_the_loggers_next() {
    let report = only(
        "> Dec  1 07:59:34 demo kernel: WARNING: CPU: 0 PID: 9 at\n\
         > net/sched/sch_demo.c:447 demo_watchdog+0x208/0x210\n\
         > Dec  1 07:59:34 demo kernel: Modules linked in: act_police\n",
    );
    assert_eq!((report.function.as_deref(), report.cpu), (Some("demo_watchdog"), Some(0)));
    let lockup = only(
        "Dec  1 07:59:34 demo kernel: BUG: soft lockup - CPU#3 stuck for 22s!\n\
         Dec  1 07:59:34 demo kernel: Modules linked in: [demo:12]\nDec  1 07:59:34 demo kernel: Call Trace:\n",
    );
    assert_eq!((lockup.pid, lockup.cpu), (None, Some(3)));
}

/// Shape: syslog on a machine without a name
#[test]
fn a_host_without_a_name_is_part_of_the_transport() {
    let report = only("2011-06-13T12:59:32.897951+02:00 (none) kernel: BUG: scheduling while atomic: demo/20569/0x2\n");
    assert_eq!((report.class, report.comm.as_deref()), (Class::Atomic, Some("demo")));
}

/// Shape: arch/arm64/mm/fault.c in kernel 5.4 with the patches for real time.
#[test]
fn the_processor_behind_the_time_of_a_real_time_kernel_is_taken_off() {
    let lines =
        ["Unable to handle kernel NULL pointer dereference at virtual address 0000000000000000", "Mem abort info:"];
    let rest = ["", "pc : demo_read+0x18/0x40", "Call trace:", " demo_read+0x18/0x40", " vfs_read+0xc0/0x2a0"];
    let log: String = lines.iter().chain(&rest).map(|line| format!("[   17.987668] 003: {line}\n")).collect();
    let report = only(&log);
    assert_eq!((report.class, report.cpu, report.function.as_deref()), (Class::NullDeref, Some(3), Some("demo_read")));
}

#[test]
fn the_console_that_a_service_wrote_to_its_log_is_read() {
    let lines = [
        "WARNING: CPU: 1 PID: 77 at kernel/demo.c:12 demo_put+0x57/0x70",
        "CPU: 1 PID: 77 Comm: demo Not tainted 4.8.4 #1",
        "Call Trace:",
        " [<ffffffff81429496>] demo_put+0x57/0x70",
        " [<ffffffff81429500>] demo_ioctl+0x10/0x20",
    ];
    let of_service = |head: &str| lines.map(|line| format!("{head}{line}\n")).concat();
    for head in [
        "12:04:14 I0409 12:04:12.920030    8843 vm_console.go:96] SB[vm-oIkNyXZLZD] [CNL] ",
        "E0409 12:04:12.920030    8843 console.go:96] ",
    ] {
        let report = only(&of_service(head));
        let found = (report.class, report.cpu, report.comm.as_deref(), report.function.as_deref());
        assert_eq!(found, (Class::Warning, Some(1), Some("demo"), Some("demo_put")), "{head}");
        assert_eq!(report.stacks[0].frames.len(), 2, "{head}");
    }
}

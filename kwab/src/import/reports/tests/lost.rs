//! Reports of which the first lines are lost, lines that a transport ran together or set in its own marks.

use super::super::class::Class;
use super::{only, reports};

/// Shapes: mm/kasan/report.c, lib/ubsan.c, kernel/panic.c, arch/x86/kernel/traps.c, the first lines of the report lost
#[test]
fn a_reporter_in_the_stack_says_what_a_cut_report_is_about() {
    let stack = |reporter: &str| {
        format!(
            "[   12.000001] CPU: 5 PID: 226 Comm: demo Tainted: G        W 6.1.0 #1\n[   12.000002] Call trace:\n\
             [   12.000003]  dump_stack_lvl+0x84/0xc0\n[   12.000004]  {reporter}+0x10/0x20\n\
             [   12.000005]  demo_unbind+0x3c/0xc0\n[   12.000006]  demo_exit+0x3c/0xc0\n"
        )
    };
    for (reporter, class, headline) in [
        ("kasan_report_invalid_free", Class::Kasan, "KASAN in demo_unbind"),
        ("__ubsan_handle_shift_out_of_bounds", Class::Ubsan, "UBSAN in demo_unbind"),
        ("___might_sleep", Class::InvalidContext, "BUG: sleeping function called from invalid context in demo_unbind"),
        ("exc_divide_error", Class::Divide, "divide error in demo_unbind"),
        ("panic", Class::Panic, "kernel panic in demo_unbind"),
    ] {
        let report = only(&stack(reporter));
        assert_eq!((report.class, report.headline.as_str()), (class, headline), "{reporter}");
    }
    let both = stack("panic").replace("demo_unbind", "kasan_end_report");
    assert_eq!(only(&both).class, Class::Kasan);
    assert_eq!(only(&stack("demo_step")).headline, "stack dump in demo_step");
}

/// Shapes: kernel/panic.c, mm/oom_kill.c on arm, lib/refcount.c on arm64, of which nothing but frames is left
#[test]
fn frames_of_a_report_alone_open_it() {
    let told = |log: &str| {
        let report = only(log);
        (report.class, report.function.unwrap_or_default())
    };
    let warning = "[    3.000001] Call Trace:\n[    3.000002]  <IRQ>\n[    3.000003]  dump_stack+0x63/0x81\n\
                   [    3.000004]  __warn+0xcb/0xf0\n[    3.000005]  warn_slowpath_fmt+0x5a/0x80\n\
                   [    3.000006]  demo_watch+0x22c/0x230\n[    3.000007]  call_timer_fn+0x35/0x140\n";
    assert_eq!(told(warning), (Class::Warning, "demo_watch".into()));
    let arm = "[    5.000001]  dump_stack_lvl from dump_header+0x54/0x1fc\n\
               [    5.000002]  dump_header from oom_kill_process+0x23c/0x248\n\
               [    5.000003]  oom_kill_process from out_of_memory+0x218/0x34c\n\
               [    5.000004]  out_of_memory from demo_alloc+0xa98/0x1044\n[    5.000005] Mem-Info:\n";
    assert_eq!(told(arm), (Class::OomKill, "demo_alloc".into()));
    let count = "[    7.000001] Call trace:\n[    7.000002]  refcount_inc_checked+0x40/0x48\n\
                 [    7.000003]  demo_queue+0x108/0x160\n[    7.000004]  demo_run+0xc8/0x100\n";
    assert_eq!(told(count), (Class::Refcount, "demo_queue".into()));
    let counter = "[    9.000001] pc : demo_fill+0x16c/0x188\n[    9.000002] lr : demo_step+0x10/0x20\n\
                   [    9.000003] Call trace:\n[    9.000004]  demo_fill+0x16c/0x188\n";
    assert_eq!(told(counter), (Class::Oops, "demo_fill".into()));
    // The stacks of all tasks, of which none failed.
    let tasks = "[    9.000001] task:demo            state:S stack:0     pid:7\n[    9.000002] Call Trace:\n\
                 [    9.000003]  <TASK>\n[    9.000004]  __schedule+0x310/0x8c0\n[    9.000005]  demo_wait+0x5d/0xd0\n";
    assert!(reports(tasks).is_empty(), "{:#?}", reports(tasks));
    for prose in [
        "| \"kernel BUG at <file>:<line>\" | `demo` |",
        "| Oops:Oops:#[##]           | 0          | 6          |",
        "| BUG:demo_of_a_list         | 0          | 6          |",
        "FATAL ERROR",
        "Oops!",
        "Stack overflow.",
        "Unhandled Exception.",
        "fatal error: too many errors emitted, stopping now [-ferror-limit=]",
        "fatal error: error in backend: Cannot select: demo",
        "we are in panic+0x10 now",
        "? kasan_report+0x10/0x20",
        "demo: calls __warn+0x1/0x2 and goes on",
    ] {
        assert!(reports(prose).is_empty(), "{prose}{:#?}", reports(prose));
    }
}

/// Shapes: arch/arm64/mm/fault.c, arch/x86/mm/fault.c and arch/riscv/kernel/traps.c without the line of the address
#[test]
fn the_code_of_a_fault_says_what_a_cut_oops_is_about() {
    let arm = only(
        "[   75.192425] Internal error: Oops: 0000000096000046 [#1] SMP\n\
         [   75.192532] CPU: 1 UID: 0 PID: 81 Comm: demo Not tainted 6.12.0 #1\n\
         [   75.192585] pstate: 41400005 (nZcv daif +PAN -UAO -TCO +DIT -SSBS BTYPE=--)\n\
         [   75.192655] pc : demo_fill+0x16c/0x188\n[   75.192780] x29: ffff800080433ba0 x28: ffff0a0cbab752c0\n",
    );
    assert_eq!(arm.headline, "BUG: unable to handle kernel paging request in demo_fill");
    let intel = only(
        "[    8.000001] Oops: 0002 [#1] SMP\n[    8.000002] CPU: 1 PID: 81 Comm: demo Not tainted 6.1.0 #1\n\
         [    8.000003] RIP: 0010:demo_fill+0x6/0x20\n[    8.000004] RAX: 0000000000000000 RBX: ffff88001f6cf868\n\
         [    8.000005] CR2: 0000000000000018 CR3: 0000000001a05000 CR4: 00000000000006e0\n",
    );
    assert_eq!((intel.class, intel.function.as_deref()), (Class::NullDeref, Some("demo_fill")));
    let riscv = only("[   11.000001] Oops - load access fault [#1]\n[   11.000002] CPU: 0 PID: 29 Comm: vi\n");
    assert_eq!((riscv.class, riscv.headline.as_str()), (Class::PageFault, "load access fault"));
    let none = only("[   11.000001] Oops - load address misaligned [#1]\n[   11.000002] CPU: 0 PID: 29 Comm: vi\n");
    assert_eq!(none.class, Class::Alignment);
}

/// Shapes: mm/kfence/report.c and kernel/panic.c, the first lines of the report lost
#[test]
fn the_object_and_the_end_of_a_report_open_it_when_the_head_is_lost() {
    let object = only(
        "[    4.257865] kfence-#31 [0xffff8c2aae240000-0xffff8c2aae24001f, size=32, cache=kmalloc-32] \
         allocated by task 9:\n\
         [    4.258952]  demo_alloc+0xf0/0x6ff\n[    4.261157]  ret_from_fork+0x22/0x30\n\
         [    4.264559] CPU: 5 PID: 114 Comm: demo Tainted: G    B             5.11.0 #1\n\
         [    4.266585] RIP: 0010:demo_read+0xb3/0x143\n",
    );
    assert_eq!((object.class, object.headline.as_str(), object.cpu), (Class::Kfence, "KFENCE in demo_read", Some(5)));
    let end = "[    0.274476] ---[ end Kernel panic - not syncing: Attempted to kill init! exitcode=0x0000000b ]---\n";
    assert_eq!(only(end).class, Class::KillInit);
    let whole =
        format!("[    0.270000] Kernel panic - not syncing: Attempted to kill init! exitcode=0x0000000b\n{end}");
    assert_eq!(only(&whole).first.line, 1);
}

/// Shapes: a console that a program's last words run into, a page that sets lines as code or in bold
#[test]
fn what_stands_around_a_head_does_not_hide_it() {
    let glued = reports(
        "panic: runtime e[43204.878510] Kernel panic - not syncing: Attempted to kill init! exitcode=0x00000200\n\
         [43204.887558] CPU: 2 PID: 4188 Comm: init Tainted: G                T 5.10.69 #1\n",
    );
    let last = glued.last().expect("a report");
    assert_eq!((last.class, last.cpu, last.pid), (Class::KillInit, Some(2), Some(4188)));
    let bold = only(
        "Dec 27 19:05:38 pi kernel: **UBSAN: shift-out-of-bounds in /build/demo.c:1717:69**\n\
         Dec 27 19:05:38 pi kernel: **shift exponent 63 is too large for 32-bit type 'int'**\n\
         Dec 27 19:05:38 pi kernel: CPU: 0 UID: 0 PID: 0 Comm: swapper/0 Tainted: G 6.11.0 #5\n",
    );
    assert_eq!((bold.class, bold.source), (Class::Ubsan, Some(("/build/demo.c".into(), 1717))));
    let code = only(
        "`[Browser(50:50)]: ASSERTION FAILED: index.value()\n\
         [Browser(50:50)]: ../../Kernel/Demo.cpp:899 in int Kernel::Demo::read()\n\
         [#0 Browser(50:50)]: 0xc053d38f  __assertion_failed(char const*) +0x145\n",
    );
    assert_eq!((code.comm.as_deref(), code.pid), (Some("Browser"), Some(50)));
    let level = only(
        "  ERROR        EXCEPTION: Page Fault\n  ERROR        \n  ERROR        Accessed Address: 0x0\n\
         \x20 TRACE         0: 0xffffffff8022e07e - __interrupt_page_fault\n\
         \x20 TRACE         1: 0xffffffff80228d12 - demo_walk\n",
    );
    assert_eq!((level.class, level.function.as_deref()), (Class::PageFault, Some("demo_walk")));
}

/// Shapes: OpenBSD sys/arch/amd64/amd64/trap.c and ddb(4), as a web page shows them on one line
#[test]
fn the_lines_of_a_debugger_that_were_run_together_are_read_apart() {
    let report = only(
        "@uvm_fault(0xfffffd80605e33f8, 0x0, 0, 1) -> e fatal page fault in supervisor mode trap type 6 code 0 rip \
         ffffffff81577d98 cs 8 rflags 10207 cr2 0 cpl 0 rsp ffff800034009920 panic: trap type 6, code=0, \
         pc=ffffffff81577d98 Starting stack trace... panic(ffffffff833a20e5) at panic+0x1d0 sys/kern/subr_prf.c:229 \
         kerntrap(ffff800034009870) at kerntrap+0x30b alltraps_kern_meltdown() at alltraps_kern_meltdown+0x7b \
         demo_stop(ffff800001481000) at demo_stop+0x108 sys/dev/demo.c:586 democlose(11e5f,81) at democlose+0x109\n",
    );
    assert_eq!((report.class, report.function.as_deref()), (Class::PageFault, Some("demo_stop")));
    let frames: usize = report.stacks.iter().map(|stack| stack.frames.len()).sum();
    assert!(frames >= 4, "{report:#?}");
}

/// Shapes: XNU osfmk/i386/trap.c, Rust's backtrace of a kernel, each without its first line
#[test]
fn a_stack_of_another_kernel_tells_of_a_panic_whose_message_is_lost() {
    let xnu = only(
        "0xffffff82dc3e90f0 : 0xffffff802732bd1f mach_kernel : _panic + 0x4f\n\
         0xffffff82dc3e9170 : 0xffffff8027417cc2 mach_kernel : _kernel_trap + 0x8d2\n\
         0xffffff82dc3e9350 : 0xffffff802733a7ad mach_kernel : _demo_print + 0x107d\n",
    );
    assert_eq!((xnu.family.as_str(), xnu.function.as_deref()), ("xnu", Some("_demo_print")));
    let mailed = only(
        "+#4 0xffffffff8310b119 at demo_commit+0x69\n+#5 0xffffffff80c09c8c at vpanic+0xec\n\
         +#6 0xffffffff810617a8 at calltrap+0x8\n",
    );
    assert_eq!((mailed.family.as_str(), mailed.function.as_deref()), ("freebsd", Some("demo_commit")));
    let early = only(
        "[87] lock order reversal: (sleepable after non-sleepable)\n[87]  1st 0xfffff8011b7557c0 demo @ /a/demo.c:9\n\
         [87] stack backtrace:\n[87] #0 0xffffffff80b52c61 at witness_debugger+0x71\n\
         [87] #1 0xffffffff80af5dd5 at demo_root+0xd5\n",
    );
    assert_eq!((early.class, early.function.as_deref()), (Class::Deadlock, Some("demo_root")));
    let rust = only(
        "   2:   ffffffc00099983e - rust_begin_unwind\n   3:   ffffffc000a09016 - core::panicking::panic_fmt\n\
         \x20  6:   ffffffc0003e9d8e - demo::kmain\n",
    );
    assert_eq!((rust.class, rust.function.as_deref()), (Class::Panic, Some("demo::kmain")));
    assert!(
        reports("   2:     0x55d5c0a09016 - rust_begin_unwind\n   3:     0x55d5c0a09116 - demo::main\n").is_empty()
    );
}

/// Shapes: uts/intel/os/archdep.c of illumos, arch/arc of Zephyr 1.12, the screen of a small kernel
#[test]
fn the_words_of_a_panic_say_where_and_what() {
    let place = only("panic message: assertion failed: p->p_fd != 0 (0x0 != 0x0), file: ../../io/demo.c, line: 408\n");
    assert_eq!(place.source, Some(("../../io/demo.c".into(), 408)));
    let cut =
        only("[CPU0] dump_assert_info: Assertion failed panic: at file: /arch/demo.c:561 task(CPU0): nsh_main p\n");
    assert_eq!(cut.source, Some(("/arch/demo.c".into(), 561)));
    let esp = only(
        "14:01:01: /demo/freertos/queue.c:1445 (demoReceive)- assert failed!\n\
         14:01:01: abort() was called at PC 0x4009642f on core 1\n14:01:01: Rebooting...\n",
    );
    assert_eq!((esp.class, esp.cpu, esp.function.as_deref()), (Class::Assertion, Some(1), Some("demoReceive")));
    let saved = only(
        " Type:Hard Fault in file:armv7-m/arm_hardfault.c at line: 134 running task: tests\n\
         \x20r8:0x0816d70c r9:0x00000002 r10:0x2002fd00 sp:0x2002fc98 lr:0x080e1ce5 pc:0x08001234\n",
    );
    assert_eq!((saved.comm.as_deref(), saved.source.map(|(_, line)| line)), (Some("tests"), Some(134)));
    let vague = only(
        "Exception vector: 0x6, cause code: 0x1, parameter 0x2\nAddress 0xa80011e4\n\
                       ***** Stack Check Fail! *****\n",
    );
    assert_eq!(vague.class, Class::StackOverflow);
    let shout = only("\tKERNEL PANIC\n\t// Abort, Retry, Fail?\n\n\tCPU EXCEPTION: 'Page fault' (INT:14 ERR:0) !\n");
    assert_eq!(shout.class, Class::PageFault);
    assert!(shout.headline.contains("Page fault"), "{}", shout.headline);
}

/// Shapes: print_other_cpu_stall of kernel/rcu/tree_stall.h, KTSAN, the last line of an oops of Linux 4.12
#[test]
fn reports_of_linux_that_say_little_are_read() {
    let rcu = only(
        "rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:\nrcu:    (detected by 3, t=18002 jiffies, g=206, q=2)\n\
         rcu: All QSes seen, last rcu_preempt kthread activity 17996\n",
    );
    assert_eq!((rcu.class, rcu.cpu), (Class::RcuStall, Some(3)));
    let race =
        only("ThreadSanitizer: data-race in demo_remove\n\nWrite at 0x000000004f677744 of size 8 by thread 10\n");
    assert_eq!((race.class, race.function.as_deref()), (Class::Kcsan, Some("demo_remove")));
    let end =
        only("[  171.661488] RIP: demo_free+0x13a/0x180 RSP: ffff9a69c1b1fd38\n[  171.661875] ---[ end trace 4 ]---\n");
    assert_eq!((end.class, end.function.as_deref()), (Class::Oops, Some("demo_free")));
}

/// Shapes: kernel/rcu/tree_stall.h, mm/debug.c, mm/memcontrol.c, mm/kasan/report.c, of which the first lines are lost
#[test]
fn a_line_that_one_kind_of_report_has_opens_a_cut_one() {
    for (line, class) in [
        (
            "rcu: rcu_preempt kthread starved for 16758 jiffies! g-951 f0x2 RCU_GP_WAIT_FQS(5) ->state=0x0",
            Class::RcuStall,
        ),
        ("page dumped because: nonzero _refcount", Class::BadPage),
        ("memory: usage 1048576kB, limit 1048576kB, failcnt 141", Class::OomKill),
        ("The buggy address belongs to the object at ffff2a6807684780", Class::Kasan),
    ] {
        let log = format!("[   12.000001] {line}\n[   12.000002] Modules linked in: demo\n");
        assert_eq!(only(&log).class, class, "{line}");
    }
    let whole = "[   12.000001] BUG: Bad page state in process demo  pfn:46c479\n\
                 [   12.000002] page:ffffea00 refcount:0 mapcount:0\n\
                 [   12.000003] page dumped because: nonzero _refcount\n";
    assert_eq!(only(whole).comm.as_deref(), Some("demo"));
    let kill = "[  518.050606] Out of memory: Killed process 15784 (demo) total-vm:11964kB, anon-rss:4288kB\n";
    assert_eq!(only(kill).comm.as_deref(), Some("demo"));
}

/// Shapes: kernel/watchdog.c as typed from a screen, as a title; a page that made links of addresses; arm's registers
#[test]
fn lines_that_people_and_pages_changed_are_read() {
    for line in [
        "kernel:[ 4071.489871] watchdog: BUG: soft lockup. - CPU#7 stuck for 28s! -[demo:[1:CHILD]:864]",
        "My node says kernel:NMI watchdog: BUG: soft lockup - CPU#7 stuck for 22s! [demo:[1:CHILD]:864]",
    ] {
        let report = only(&format!("{line}\n"));
        assert_eq!(report.class, Class::SoftLockup, "{line}");
        assert_eq!((report.cpu, report.comm.as_deref(), report.pid), (Some(7), Some("demo:[1:CHILD]"), Some(864)));
    }
    let linked = only(
        "[    0.012400] kernel BUG at arch/x86/demo.c:322!\n[    0.012409] invalid opcode: 0000 [SMP \n\
         [    0.012416](#1]) CPU 3 \n[    0.012429] Pid: 1, comm: demo Not tainted 3.2.7 #1  \n\
         [    0.012438] RIP: e030:[ [<ffffffff8143a229>](<ffffffff8143a229>]) demo_context+0x263/0x280\n",
    );
    assert_eq!((linked.function.as_deref(), linked.cpu), (Some("demo_context"), Some(3)));
    let cut = only(
        "1717.272016][T500572] CPU: 5 PID: 572 Comm: demo Tainted: G S      W  OE     5.15.180 #1\n\
         [ 1717.272025][T500572] pc : mutex_lock+0x34/0x178\n[ 1717.272034][T500572] lr : demo_lseek+0x38/0xc8\n",
    );
    assert_eq!((cut.cpu, cut.comm.as_deref()), (Some(5), Some("demo")));
    let module = "[  531.834458] PC is at 0xbfa58b9c\n[  531.834488] LR is at demo_copy+0x384/0x574 [demo]\n\
                  [  531.835145] pc : [<bfa58b9c>]    lr : [<bf21cb90>]    psr: 60000013\n\
                  [  531.835171] sp : dc985e50  ip : c696a080  fp : c0c2f02c\n";
    assert_eq!(only(module).ip, Some(0xbfa5_8b9c));
    assert!(reports(&module.replace("bfa58b9c", "76f58b9c")).is_empty());
}

/// Shapes: arch/x86/kernel/dumpstack.c, an excerpt that begins in a stack; kernel/sched/core.c, a list of all tasks
#[test]
fn an_excerpt_that_begins_in_the_middle_of_a_stack_is_a_report() {
    let frames = "[    3.000002]  demo_unlock+0x28/0x62\n[    3.000003]  demo_die+0x21/0x30\n\
                  [    3.000004]  takedown_demo+0x9c/0xe0\n";
    let trace = format!("[    3.000001] Call Trace:\n{frames}");
    for log in [frames, trace.as_str()] {
        let report = only(log);
        assert_eq!((report.class, report.function.as_deref()), (Class::Warning, Some("demo_unlock")), "{log}");
    }
    let user = only(
        "lis 16 19:01:53 demo kernel:  ? demo_close+0x11/0x40\nlis 16 19:01:53 demo kernel:  ? demo_call+0x6e/0xb0\n\
         lis 16 19:01:53 demo kernel:  entry_SYSCALL_64_after_hwframe+0x44/0xae\n\
         lis 16 19:01:53 demo kernel: RIP: 0033:0x7f54981d03fd\n\
         lis 16 19:01:53 demo kernel: RAX: ffffffffffffffda RBX: 00000000000000b0 RCX: 00007f54981d03fd\n",
    );
    assert!(user.stacks.iter().any(|stack| stack.frames.len() == 3));
    // The whole log of a healthy boot, where a task waits, and where a list shows one that runs.
    let booted = format!("[    0.000000] Linux version 6.1.0\n{trace}");
    let waits = format!("[    3.000001] Call Trace:\n[    3.000001]  __schedule+0x310/0x8c0\n{frames}");
    let runs = format!("[    3.000000] task:demo    state:R  running task     stack:0     pid:7\n{trace}");
    let two = frames.lines().take(2).collect::<Vec<_>>().join("\n");
    for log in [&booted, &waits, &runs, &two] {
        assert!(reports(log).is_empty(), "{log}{:#?}", reports(log));
    }
}

/// Shapes: kernel/hung_task.c and kernel/sched/core.c behind the end of an earlier report
#[test]
fn the_rest_of_a_report_gives_way_to_a_whole_one() {
    let rest = "[  479.972469]  demo_process+0x2c3/0x4c4 [demo]\n[  479.972489]  demo_loop+0xe3/0x127 [demo]\n\
                [  479.972493]  kthread+0x76/0x7e\n";
    let hung = only(&format!(
        "{rest}[  479.972521] INFO: task nfsd:3782 blocked for more than 120 seconds.\n\
         [  479.972808] Call Trace:\n[  479.972813]  demo_lookup+0x29/0x288 [demo]\n"
    ));
    assert_eq!((hung.class, hung.comm.as_deref(), hung.number), (Class::HungTask, Some("nfsd"), 1));
    let bug = "__schedule_bug+0x48/0x60";
    let again = only(&format!(
        "[    7.000001]  {bug}\n[    7.000002]  demo_idle+0x104/0x120\n\
         [    7.000003] BUG: scheduling while atomic: swapper/1/0/0xfffffe00\n[    7.000004]  {bug}\n"
    ));
    assert_eq!((again.class, again.comm.as_deref()), (Class::Atomic, Some("swapper/1")));
    // Another failure stays one.
    let other = reports(&format!(
        "[    7.000001]  {bug}\n[    7.000002]  demo_idle+0x104/0x120\n{hung}",
        hung = "[    8.000001] INFO: task nfsd:3782 blocked for more than 120 seconds.\n"
    ));
    assert_eq!(other.len(), 2, "{other:#?}");
}

/// Shapes: mm/kasan/report.c and mm/memcontrol.c behind the end of a stack; a page with tags and `×`
#[test]
fn what_stands_behind_the_end_of_a_stack_tells_of_what() {
    let frames = "[    1.000001]  demo_work+0x238/0x508\n[    1.000002]  demo_thread+0x2e0/0x514\n";
    let kasan = only(&format!("{frames}[    1.000003] The buggy address belongs to the object at ffff2a6807684780\n"));
    assert_eq!(kasan.class, Class::Kasan);
    let group = only(&format!("{frames}[    1.000003] memory: usage 1048576kB, limit 1048576kB, failcnt 141\n"));
    assert_eq!(group.class, Class::OomKill);
    let fault = only(&format!("{frames}[    1.000003] RIP: 0010:demo_halt+0x13/0x20\n"));
    assert_eq!(fault.location.and_then(|frame| frame.symbol).as_deref(), Some("demo_halt"));
    let page = only(
        "Unable to handle kernel paging request at virtual address f899b670\nOops: 0002 [#1]\nCPU: 0\n\
         EIP is at demo_add+0×83/0xd7\nCall Trace:\n[] demo_register+0×19/0×39\n",
    );
    assert_eq!(page.function.as_deref(), Some("demo_add"));
    assert!(page.stacks.iter().any(|stack| !stack.frames.is_empty()), "{page:#?}");
    let registers = only(
        "[  844.746243] RIP: 0010:[<ffffffff81088847>]  [<ffffffff81088847>] demo_wait+0x4/0xa\n\
         [  844.751443] RSP: 0018:ffff880337517d50  EFLAGS: 00000202\n\
         [ 1016.841821] BUG: soft lockup - CPU#5 stuck for 23s! [modprobe:4176]\n",
    );
    assert_eq!((registers.class, registers.cpu), (Class::SoftLockup, Some(5)));
}

/// Shapes: a vendor's kernel on arm64 that names the task in front of every line; kernel/panic.c, arch/arm64/mm/fault.c
#[test]
fn what_stands_above_the_trap_of_which_the_kernel_died_is_not_guilty() {
    let mut log = String::new();
    for frame in [
        "show_stack",
        "demo_notify_vendor",
        "atomic_notifier_call_chain",
        "panic",
        "die",
        "die_kernel_fault",
        "do_page_fault",
        "el1_abort",
        "el1h_64_sync_handler",
        "el1h_64_sync",
        "demo_read_proc",
        "vfs_read",
    ] {
        log += &format!("[  188.464444] [pid:97,cpu1,demo/0:3] {frame}+0x18/0x30\n");
    }
    let report = only(&log);
    assert_eq!(report.function.as_deref(), Some("demo_read_proc"), "{report:#?}");
    assert_eq!((report.cpu, report.comm.as_deref()), (Some(1), Some("demo/0:3")));
    // Without a death the frames above an entry are what runs.
    let alive = only(
        "[    3.000001] Call Trace:\n[    3.000002]  dump_stack+0x63/0x81\n[    3.000003]  __warn+0xcb/0xf0\n\
         [    3.000004]  demo_watch+0x22c/0x230\n[    3.000005]  asm_exc_page_fault+0x22/0x30\n\
         [    3.000006]  demo_user+0x35/0x140\n",
    );
    assert_eq!(alive.function.as_deref(), Some("demo_watch"));
}

/// Shape: the command `bt` of crash(8) below the line of the oops
#[test]
fn the_backtrace_of_crash_tells_the_task_and_the_function() {
    let report = only(
        "BUG: unable to handle kernel NULL pointer dereference at 0000000000000010\n\
         PID: 191  TASK: ffff9780a738af70  CPU: 16  COMMAND: \"demo:[2:INIT]\"\n\
         \x20#0 [ffff97743cb5f9f8] machine_kexec at ffffffff9666178a\n\
         \x20#3 [ffff97743cb5fb40] oops_end at ffffffff96d18738\n\
         \x20#9 [ffff97743cb5fcb0] page_fault at ffffffff96d17758\n    [exception RIP: strchr]\n\
         \x20   RIP: ffffffff96954850  RSP: ffff97743cb5fd60  RFLAGS: 00010202\n\
         #10 [ffff97743cb5fd60] demo_show at ffffffff968dbbb5\n#11 [ffff97743cb5fdc0] demo_seq at ffffffff968dbbff\n",
    );
    assert_eq!((report.cpu, report.comm.as_deref()), (Some(16), Some("demo:[2:INIT]")), "{report:#?}");
    assert_eq!(report.function.as_deref(), Some("demo_show"));
}

/// Shapes: a page that lost the ends of lines; two lines in one behind blanks
#[test]
fn a_report_without_ends_of_lines_is_read() {
    let page = only(
        "------------[ cut here ]------------ WARNING: CPU: 1 PID: 28 at kernel/demo.c:11 demo_put+0x57/0x70 Modules \
         linked in: a(-) b CPU: 1 PID: 28 Comm: rm Tainted: P 4.8.4 #1 Hardware name: X/Y, BIOS 02/23/2009 00000000 \
         Call Trace: [<c12ba080>] ? dump_stack+0x44/0x64 [<f80ca4d0>] ? demo_set+0x460/0x460 [demo_mod]\n",
    );
    assert_eq!((page.class, page.cpu, page.comm.as_deref()), (Class::Warning, Some(1), Some("rm")), "{page:#?}");
    let typed = only(
        "Unable to handle kernel NULL pointer dereference at virtual address 00000014 *pde = 00000000 Oops: 0000 \
         CPU: 3 EIP: 0010:[] EFLAGS: 00210213 eax: 00000000 ebx: c6155c6c ecx: 00000038 edx: 00000000 esi: c672f000\n",
    );
    assert_eq!((typed.class, typed.cpu), (Class::NullDeref, Some(3)), "{typed:#?}");
    let bug = only(
        "[49762.1] x\n[49762.145406] ------------[ cut here ]------------      [49762.145409] Kernel BUG at \
         demo_all.constprop.0+0x22f/0x2b0 [demo] [verbose debug info unavailable]\n\
         [49762.145426] invalid opcode: 0000 [#1] SMP         [49762.145431] CPU: 27 PID: 52 Comm: rm \
         Not tainted 5.13.7\n\
         [49762.145437] RIP:  0010:demo_all.constprop.0+0x22f/0x2b0 [demo]\n",
    );
    assert_eq!((bug.class, bug.function.as_deref(), bug.cpu), (Class::Bug, Some("demo_all"), Some(27)), "{bug:#?}");
}

/// Shapes: the table above a report of the kernel test robot; the assertion of a file system above its `BUG()`; an oops
/// in a softirq
#[test]
fn what_stands_before_a_report_and_behind_its_softirq_is_not_it() {
    let robot = only(
        "+----------------------+------------+\n| Oops:Oops:#[##]      | 0          | 6          |\n\
         | Kernel_panic-not_syncing:Fatal_exception | 0 | 6 |\n\n\
         [    1.770141][    T1] BUG: unable to handle page fault for address: fffba000\n\
         [    1.772326][    T1] Oops: Oops: 0002 [#1]\n\
         [    1.772326][    T1] CPU: 0 UID: 0 PID: 1 Comm: demo Not tainted 6.18.0 #1\n\
         [    1.772326][    T1] EIP: demo_set (demo/string_32.h:168 demo/lib.c:17)\n",
    );
    assert_eq!((robot.class, robot.comm.as_deref()), (Class::PageFault, Some("demo")), "{robot:#?}");
    let asserted = only(
        "assertion failed: !demo, in fs/demo/disk.c:1103\n------------[ cut here ]------------\n\
         kernel BUG at fs/demo/tree.h:3664!\nInternal error: Oops - BUG: 00000000f2000800 [#1] PREEMPT SMP\n\
         CPU: 1 PID: 3035 Comm: demo Not tainted 6.0.0 #0\npc : assertfail+0x28/0x2c\nCall trace:\n\
         \x20assertfail+0x28/0x2c\n demo_open+0x10/0x20\n",
    );
    assert_eq!((asserted.family.as_str(), asserted.class, asserted.cpu), ("linux", Class::Bug, Some(1)));
    assert_eq!(asserted.function.as_deref(), Some("demo_open"), "{asserted:#?}");
    assert!(asserted.notes.iter().any(|note| note.contains("!demo")), "{asserted:#?}");
    let softirq = only(
        "BUG: unable to handle page fault for address: ffffffffc00eb920\nOops: 0000 [#1] PREEMPT SMP\n\
         CPU: 1 PID: 0 Comm: swapper/1 Not tainted 5.9.0 #4\nRIP: 0010:rcu_cblist_dequeue+0x12/0x30\nCall Trace:\n\
         \x20<IRQ>\n rcu_core+0x1b1/0x860\n __do_softirq+0xfe/0x326\n </IRQ>\n demo_idle+0x10/0x20\n",
    );
    assert_eq!(softirq.function.as_deref(), Some("rcu_cblist_dequeue"), "{softirq:#?}");
}

/// Shape: arch/arm64/kernel/traps.c of Linux 4.4 (do_ni_syscall)
#[test]
fn a_system_call_that_arm64_does_not_have_is_no_crash() {
    let log = "demo-users[1327]: syscall 285\nCode: aa0503e4 aa0603e5 aa0703e6 d4000001 (b13ffc1f) \n\
               CPU: 2 PID: 1327 Comm: demo-users Not tainted 4.4.89 #1\nHardware name: Example Board (DT)\n\
               PC is at 0x7fb6f691d4\nLR is at 0x5590e05dac\n\
               pc : [<0000007fb6f691d4>] lr : [<0000005590e05dac>] pstate: 20000000\nsp : 0000007fe03d8720\n\
               x29: 0000007fe03d8720 x28: 0000000000000001 \nx27: 0000000000000001 x26: 0000007fe03d8990 \n";
    assert!(reports(log).is_empty());
    // The same from the kernel is what is left of a report.
    assert_eq!(reports(&log.replace("pstate: 20000000", "pstate: 20000005")).len(), 1);
}

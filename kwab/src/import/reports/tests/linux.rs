//! Reports of Linux.

use super::super::class::Class;
use super::super::report::{AccessKind, Arch, StackKind};
use super::{only, reports};

/// Shape: arch/x86/mm/fault.c and arch/x86/kernel/dumpstack.c of Linux 6.
const OOPS: &str = "\
[    5.100000][  T140] BUG: kernel NULL pointer dereference, address: 0000000000000018
[    5.100001][  T140] #PF: supervisor write access in kernel mode
[    5.100002][  T140] #PF: error_code(0x0002) - not-present page
[    5.100003][  T140] PGD 0 P4D 0
[    5.100004][  T140] Oops: Oops: 0002 [#1] PREEMPT SMP
[    5.100005][  T140] CPU: 3 UID: 0 PID: 140 Comm: kworker/3:1 Tainted: G        W          6.12.0-demo #7
[    5.100006][  T140] Hardware name: Example Board
[    5.100007][  T140] RIP: 0010:memcpy+0x1d/0x40
[    5.100008][  T140] Code: 48 89 c3 <48> 89 58 18 eb
[    5.100009][  T140] RSP: 0018:ffffc90000123d40 EFLAGS: 00010246
[    5.100010][  T140] RAX: 0000000000000000 RBX: ffff888101234000 RCX: 0000000000000001
[    5.100011][  T140] Call Trace:
[    5.100012][  T140]  <TASK>
[    5.100013][  T140]  ? __die+0x20/0x70
[    5.100014][  T140]  demo_store.constprop.0+0x1d/0x40 [demo]
[    5.100015][  T140]  process_one_work+0x1b0/0x350
[    5.100016][  T140]  </TASK>
[    5.100017][  T140] Modules linked in: demo(O)
[    5.100018][  T140] CR2: 0000000000000018
[    5.100019][  T140] ---[ end trace 0000000000000000 ]---
[    5.100020][  T140] Kernel panic - not syncing: Fatal exception
[    5.100021][  T140] Kernel Offset: 0x1a000000 from 0xffffffff81000000
";

#[test]
fn an_oops_with_the_panic_it_leads_to_is_one_report() {
    let report = only(OOPS);
    assert_eq!(report.class, Class::NullDeref);
    assert_eq!(report.headline, "BUG: unable to handle kernel NULL pointer dereference in demo_store");
    assert_eq!((report.cpu, report.pid, report.comm.as_deref()), (Some(3), Some(140), Some("kworker/3:1")));
    assert_eq!((report.arch, report.fault_address), (Some(Arch::X86_64), Some(0x18)));
    assert_eq!(report.error_text.as_deref(), Some("supervisor write, page not present"));
    assert_eq!(report.panic.as_deref(), Some("Fatal exception"));
    assert_eq!(report.kernel_offset, Some(0x1a00_0000));
    assert_eq!(report.taint.as_deref(), Some("G        W"));
    assert_eq!((report.first.line, report.last.line), (1, 22));
    assert_eq!(report.code.as_ref().and_then(|code| code.marked), Some(3));
    assert!(report.missing.is_empty(), "{:?}", report.missing);
}

#[test]
fn interleaved_tasks_are_told_apart_by_the_caller_id() {
    let other = OOPS.replace("T140", "T141").replace("PID: 140", "PID: 141").replace("demo_store", "other_store");
    let mixed: Vec<&str> = OOPS.lines().zip(other.lines()).flat_map(|(one, two)| [one, two]).collect();
    let found = reports(&mixed.join("\n"));
    let functions: Vec<_> = found.iter().map(|report| (report.function.as_deref(), report.pid)).collect();
    assert_eq!(functions, [(Some("demo_store"), Some(140)), (Some("other_store"), Some(141))]);
    assert_eq!(found[1].follows, Some(1), "what breaks behind a fatal failure follows from it");
}

/// Shape: mm/kasan/report.c and report_generic.c.
const KASAN: &str = "\
==================================================================
BUG: KASAN: slab-use-after-free in __list_del_entry_valid+0x80/0xd0
Read of size 8 at addr ffff888012345608 by task demo/u8:1/77

CPU: 1 PID: 77 Comm: demo/u8:1 Not tainted 6.5.0 #1
Call Trace:
 <TASK>
 dump_stack_lvl+0x50/0x70
 kasan_report+0xc0/0xf0
 __list_del_entry_valid+0x80/0xd0
 demo_unlink+0x20/0x60
 </TASK>

Allocated by task 70:
 kasan_save_stack+0x20/0x40
 demo_create+0x30/0x80

Freed by task 71:
 kfree+0x50/0x90
 demo_release+0x15/0x30

The buggy address belongs to the object at ffff888012345600
 which belongs to the cache kmalloc-64 of size 64
The buggy address is located 8 bytes inside of
 freed 64-byte region [ffff888012345600, ffff888012345640)
Memory state around the buggy address:
 ffff888012345500: fb fb fb fb fc fc fc fc
>ffff888012345600: fb fb fb fb fc fc fc fc
==================================================================
";

#[test]
fn kasan_tells_access_object_and_both_stacks() {
    let report = only(KASAN);
    assert_eq!(report.headline, "KASAN: slab-use-after-free Read in demo_unlink");
    assert_eq!((report.comm.as_deref(), report.pid), (Some("demo/u8:1"), Some(77)));
    let access = report.access.as_ref().expect("an access");
    assert_eq!(
        (access.kind, access.size, access.cache.as_deref()),
        (Some(AccessKind::Read), Some(8), Some("kmalloc-64"))
    );
    let kinds: Vec<_> = report.stacks.iter().map(|stack| stack.kind).collect();
    assert_eq!(kinds, [StackKind::Crash, StackKind::Allocated, StackKind::Freed]);
    assert_eq!(report.stacks[2].frames[1].symbol.as_deref(), Some("demo_release"));
    assert_eq!(report.first.line, 1);
}

/// The headline of a sleep in atomic context.
const SLEEPING: &str = "BUG: sleeping function called from invalid context in demo_work";
/// The headline of a race with what runs timers.
const TIMERS: &str = "KCSAN: data-race in __hrtimer_run_queues / demo_b";
/// The headline of a page fault.
const PAGING: &str = "BUG: unable to handle kernel paging request in demo_work";

/// Heads of the other classes and what they are: the wording of kernel/, lib/, mm/ and arch/.
#[test]
fn every_wording_has_its_class_and_headline() {
    let trace = "Call Trace:\n demo_work+0x10/0x20\n kthread+0x1/0x2\n";
    for (head, class, headline) in [
        (
            "watchdog: BUG: soft lockup - CPU#2 stuck for 22s! [demo:one:12]",
            Class::SoftLockup,
            "BUG: soft lockup in demo_work",
        ),
        ("NMI watchdog: Watchdog detected hard LOCKUP on cpu 3", Class::HardLockup, "BUG: hard lockup in demo_work"),
        (
            "rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:",
            Class::RcuStall,
            "INFO: rcu detected stall in demo_work",
        ),
        ("INFO: rcu_sched self-detected stall on CPU", Class::RcuStall, "INFO: rcu detected stall in demo_work"),
        ("INFO: task demo/x:12 blocked for more than 143 seconds.", Class::HungTask, "INFO: task hung in demo_work"),
        (
            "BUG: scheduling while atomic: demo/0/12/0x00000002",
            Class::Atomic,
            "BUG: scheduling while atomic in demo_work",
        ),
        ("BUG: sleeping function called from invalid context at mm/slab.h:1", Class::InvalidContext, SLEEPING),
        ("UBSAN: shift-out-of-bounds in fs/demo.c:10:3", Class::Ubsan, "UBSAN: shift-out-of-bounds in demo_work"),
        ("BUG: KMSAN: uninit-value in demo_read+0x1/0x2", Class::Kmsan, "KMSAN: uninit-value in demo_read"),
        ("BUG: KCSAN: data-race in __hrtimer_run_queues / demo_b", Class::Kcsan, TIMERS),
        ("BUG: KCSAN: data-race in demo_a / demo_b", Class::Kcsan, "KCSAN: data-race in demo_a / demo_b"),
        ("refcount_t: underflow; use-after-free.", Class::Refcount, "WARNING: refcount bug in demo_work"),
        (
            "list_del corruption. prev->next should be 1, but was 2",
            Class::Corruption,
            "BUG: corrupted list in demo_work",
        ),
        ("BUG: Bad page state in process demo  pfn:1234", Class::BadPage, "BUG: Bad page state in demo_work"),
        ("demo invoked oom-killer: gfp_mask=0x1, order=0", Class::OomKill, "demo invoked oom-killer"),
        ("WARNING: possible recursive locking detected", Class::Deadlock, "possible deadlock in demo_work"),
        ("[ INFO: possible circular locking dependency detected ]", Class::Deadlock, "possible deadlock in demo_work"),
        ("[ BUG: bad unlock balance detected! ]", Class::LockUse, "WARNING: bad unlock balance in demo_work"),
        ("WARNING: inconsistent lock state", Class::LockState, "inconsistent lock state in demo_work"),
        ("WARNING: suspicious RCU usage", Class::RcuUsage, "WARNING: suspicious RCU usage in demo_work"),
        ("WARNING: fs/demo.c:12 at demo_new+0x1/0x2, CPU#1: demo/12", Class::Warning, "WARNING in demo_new"),
        (
            "Oops: general protection fault, probably for non-canonical address 0xdead: 0000 [#1] SMP",
            Class::GeneralProtection,
            "general protection fault in demo_work",
        ),
        (
            "Kernel panic - not syncing: Attempted to kill init! exitcode=0x0000000b",
            Class::KillInit,
            "kernel panic: Attempted to kill init!",
        ),
        (
            "Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)",
            Class::NoRoot,
            "kernel panic: VFS: Unable to mount root fs",
        ),
        ("Unhandled fault: external abort (0x814) at 0xb6f0", Class::Oops, "external abort in demo_work"),
        ("Unable to handle kernel pointer dereference in virtual kernel address space", Class::PageFault, PAGING),
        ("BUG: Unable to handle kernel data access on read at 0xc000000000000010", Class::PageFault, PAGING),
        (
            "BUG: workqueue lockup - pool cpus=0 node=0 flags=0x0 nice=0 stuck for 31s!",
            Class::WorkqueueLockup,
            "BUG: workqueue lockup",
        ),
        ("unreferenced object 0xffff888100000000 (size 64):", Class::Kmemleak, "memory leak in demo_work"),
        (
            "BUG kmalloc-64 (Not tainted): Poison overwritten",
            Class::SlabCorruption,
            "BUG kmalloc-64: Poison overwritten in demo_work",
        ),
        (
            "INFO: trying to register non-static key.",
            Class::LockUse,
            "INFO: trying to register non-static key in demo_work",
        ),
    ] {
        let report = only(&format!("{head}\n{trace}"));
        assert_eq!((report.class, report.headline.as_str()), (class, headline), "{head}");
    }
}

#[test]
fn arm64_says_what_the_syndrome_means() {
    // Shape: arch/arm64/mm/fault.c, arch/arm64/kernel/process.c
    let report = only(
        "Unable to handle kernel paging request at virtual address ffff800012345678\nMem abort info:\n\
           ESR = 0x0000000096000047\n\
         Internal error: Oops: 0000000096000047 [#1] SMP\nCPU: 2 PID: 9 Comm: demo Not tainted 6.6.0 #1\n\
         pstate: 60400005 (nZCv daif +PAN -UAO)\npc : demo_write+0x10/0x20 [demo]\n\
         lr : vfs_write+0xa8/0x2b0\nsp : ffff80001234bd60\n\
         x29: ffff80001234bd60 x28: ffff0000c1234500\nCall trace:\n demo_write+0x10/0x20 [demo] (P)\n\
          vfs_write+0xa8/0x2b0\nCode: a9bd7bfd 910003fd (f968d6a1)\n",
    );
    assert_eq!(report.error_text.as_deref(), Some("data abort, level 3 translation fault, write"));
    assert_eq!((report.arch, report.function.as_deref()), (Some(Arch::Arm64), Some("demo_write")));
    assert_eq!(report.code.as_ref().map(|code| (code.bytes.len(), code.marked)), Some((12, Some(8))));
}

#[test]
fn a_stall_blames_what_was_interrupted() {
    // Shape: kernel/rcu/tree_stall.h, arch/x86/kernel/nmi.c
    let report = only(
        "rcu: INFO: rcu_preempt self-detected stall on CPU\n\
         rcu: \t1-....: (20999 ticks this GP) idle=01/1/0x4000 softirq=1/1 fqs=5250\n\
         NMI backtrace for cpu 1\nCPU: 1 PID: 77 Comm: demo Not tainted 6.5.0 #1\nCall Trace:\n <IRQ>\n\
          dump_stack_lvl+0x50/0x70\n \
         nmi_cpu_backtrace+0x10/0x20\n update_process_times+0x1/0x2\n </IRQ>\n <TASK>\n\
          asm_sysvec_apic_timer_interrupt+0x1a/0x20\n \
         _raw_spin_lock+0x1/0x2\n demo_spin+0x12/0x40\n </TASK>\n",
    );
    assert_eq!(report.headline, "INFO: rcu detected stall in demo_spin");
    assert_eq!((report.cpu, report.comm.as_deref()), (Some(1), Some("demo")));
}

#[test]
fn healthy_lines_give_no_report() {
    for line in [
        "Kernel command line: root=/dev/vda panic=1 oops=panic softlockup_panic=1",
        "Linux version 6.1.0 (gcc)",
        "FAULT_INJECTION: forcing a failure is off",
        "pvpanic-mmio: probed",
        "kernel panic timeout set to 10 seconds",
        "systemd[1]: Starting Load Kernel Module pstore...",
        "EXT4-fs (vda): mounted filesystem, errors=panic",
        "RAS: Correctable Errors collector initialized.",
        "NMI watchdog: Enabled. Permanently consumes one hw-PMU counter.",
        "rcu: \tRCU event tracing is enabled.",
        "mce: CPU supports 10 MCE banks",
        "BUG_ON count is 0 in the tests",
        "x86/mm: Checked W+X mappings: passed, no W+X pages found.",
        "page_owner is disabled",
        "stackdepot: allocating hash table",
        "Spectre V2 : User space: Vulnerable",
        "hung_task_timeout_secs = 120",
        "PANIC: disabled",
        "kfence: initialized - using 2097152 bytes for 255 objects",
    ] {
        assert!(reports(line).is_empty(), "{line}: {:#?}", reports(line));
    }
}

/// Shape: WARN with a text (lib/bug.c, kernel/panic.c): the text stands between the mark and `WARNING:`.
#[test]
fn the_text_of_a_warning_is_not_a_report_of_its_own() {
    let report = only(
        "------------[ cut here ]------------\n\
         General protection fault in a copy of demo\n\
         WARNING: CPU: 2 PID: 140 at demo/copy.c:12 demo_copy+0x4d/0x60\n\
         CPU: 2 PID: 140 Comm: demo:1 Not tainted 6.5.0 #1\n\
         Call Trace:\n demo_copy+0x4d/0x60\n demo_write+0x20/0x40\n---[ end trace 0000000000000000 ]---\n",
    );
    assert_eq!((report.class, report.headline.as_str()), (Class::Warning, "WARNING in demo_copy"));
    assert_eq!((report.cpu, report.comm.as_deref(), report.number), (Some(2), Some("demo:1"), 1));
    assert_eq!(report.first.line, 1);
    assert!(report.notes.iter().any(|note| note.contains("a copy of demo")), "{:?}", report.notes);
}

#[test]
fn stalls_of_two_processors_are_two_reports() {
    let found = reports(
        "[ 3511.510903] INFO: rcu_demo_state detected stall on CPU 0 (t=105060 jiffies)\n\
         [ 5911.420208] INFO: rcu_demo_state detected stall on CPU 1 (t=15000 jiffies)\n\
         [ 5911.520208] INFO: rcu_demo_state detected stall on CPU 1 (t=15100 jiffies)\n\
         [12711.540104] INFO: rcu_demo_state detected stalls on CPUs/tasks: { 2} (detected by 7, t=15002 jiffies)\n",
    );
    let cpus: Vec<_> = found.iter().map(|report| report.cpu).collect();
    assert_eq!(cpus, [Some(0), Some(1), Some(2)]);
}

/// Shapes: a screen that a person typed off, the first KASAN, and a page of HTML around an oops
#[test]
fn heads_that_are_written_in_other_ways_are_read() {
    let typed = only(
        "[17.79] BUG unable to handle page fault for address ffffffff822c26c0\n\
         [17.80] #PF: supervisor read access in kernel mode\nCall Trace:\n\
         demo_info_by_fd+0x19d/0x2b0\n__do_sys_demo+0x3fb/0x18b0\n",
    );
    assert_eq!(typed.headline, "BUG: unable to handle kernel paging request in demo_info_by_fd");
    let first = only(
        "BUG: KASan: use after free in demo_free+0x2c9/0x340 [demo] at addr ffff880d59947040\n\
         Read of size 8 by task ksoftirqd/2/15\n",
    );
    assert_eq!((first.class, first.function.as_deref()), (Class::Kasan, Some("demo_free")));
    let page = only(
        "<summary>kernel oops log</summary>\n<pre>\n\
         [50806.42] Oops: general protection fault, maybe for address 0xbfff93fcd9822a28: 0000 [#1] SMP\n\
         [50806.42] CPU: 6 UID: 0 PID: 687 Comm: demo_evict Not tainted 6.12.4 #1\n\
         [50806.42] RIP: 0010:demo_fini+0x43/0x80\n",
    );
    assert_eq!((page.family.as_str(), page.function.as_deref()), ("linux", Some("demo_fini")));
    assert_eq!((page.cpu, page.pid), (Some(6), Some(687)));
}

/// Shape: the stack of the grace-period thread behind a stall, with what the unwinder is not sure of
#[test]
fn a_doubtful_frame_of_a_stall_is_not_the_guilty_one() {
    let report = only(
        "rcu: INFO: rcu_sched detected stalls on CPUs/tasks:\nrcu: \t1-...!: (0 ticks this GP) idle=cf8/0/0x0\n\
         rcu: RCU grace-period kthread stack dump:\nrcu_sched       I15016    11      2 0x80004000\nCall Trace:\n\
         __schedule+0x288/0x600\n ? __mod_timer+0x1a6/0x3c0\n schedule+0x34/0xa0\n rcu_gp_kthread+0x4f6/0xd40\n",
    );
    assert_eq!((report.cpu, report.function.as_deref()), (Some(1), None));
}

/// Shapes: a 4.4 kernel of arm, which prints no `Call trace:`, and the same without the stack of the code that slept
#[test]
fn what_disabled_preemption_is_no_stack_of_the_failure() {
    let head = "BUG: scheduling while atomic: swapper/0/0/0x00000002\nModules linked in:\n\
                Preemption disabled at:[<c0447f2d>] demo_idle+0x15/0x16\n\n\
                CPU: 0 PID: 0 Comm: swapper/0 Not tainted 4.4.144 #1\nHardware name: Generic DT based system\n\
                [<c0061afd>] (unwind_backtrace) from [<c005f683>] (show_stack+0xb/0xc)\n";
    let slept = only(&format!("{head}[<c0364c13>] (demo_choose) from [<c0365267>] (demo_timer+0x153/0x240)\n"));
    assert_eq!(slept.function.as_deref(), Some("demo_choose"));
    assert_eq!(only(head).function.as_deref(), Some("demo_idle"), "the code that slept is not shown");
}

/// Shape: the tail of an oops whose head scrolled off, and the registers that are printed again behind an end
#[test]
fn where_a_fault_was_is_a_report_without_its_head() {
    let tail = "NIP [c000000000ac0ce8] demo_update+0x18/0xf0\nLR [c000000000159748] demo_entity+0x4a8/0x5f0\n\
                Call Trace:\n[c000003fdc18bd40] [c000000000150aec] demo_wake+0x13c/0x310\n";
    let report = only(tail);
    assert_eq!((report.class, report.function.as_deref()), (Class::Oops, Some("demo_update")));
    let whole = "BUG: unable to handle page fault for address: ffffffffc0de0000\nOops: 0000 [#1] SMP\n\
                 CPU: 1 PID: 77 Comm: demo Not tainted 6.1.0 #1\nRIP: 0010:demo_read+0x3/0x20\n\
                 Call Trace:\n demo_call+0x5/0x30\n---[ end trace 0000000000000000 ]---\n";
    let other = "demo: a line of another kind\n".repeat(40);
    assert_eq!(reports(&format!("{whole}{other}RIP: 0010:demo_read+0x3/0x20\n{other}")).len(), 1, "printed again");
    assert_eq!(reports("RIP: 0033:0x7f5d1c\nCode: 00 00\n").len(), 0, "where a program was");
}

/// Shapes: lockdep with lines that a web page joined, and a workqueue with the item that does not end
#[test]
fn joined_rules_and_items_in_flight_are_read() {
    let rule = "=".repeat(54);
    let dashes = "-".repeat(54);
    let report = only(&format!(
        "{rule} WARNING: possible circular locking dependency detected 6.6.0 #4 Not tainted\n\
         {dashes} demo.0/2181 is trying to acquire lock:\n\
         ffffffff84772410 (demo_rwsem){{++++}}-{{3:3}}, at: demo_copy+0x216/0x590 but task is already holding lock:\n"
    ));
    assert_eq!((report.function.as_deref(), report.pid), (Some("demo_copy"), Some(2181)));
    assert_eq!(report.comm.as_deref(), Some("demo.0"));
    let works = only(
        "BUG: workqueue lockup - pool cpus=3 node=0 flags=0x1 nice=0 stuck for 231s!\n\
         Showing busy workqueues and worker pools:\nworkqueue events: flags=0x0\n\
         pwq 6: cpus=3 node=0 flags=0x1 active=15/256\n  in-flight: 14164:demo_refill, 2953:demo_two\n",
    );
    assert_eq!((works.cpu, works.function.as_deref()), (Some(3), Some("demo_refill")));
}

#[test]
fn of_the_lines_that_syzbot_repeats_the_first_that_is_no_helper_names_the_function() {
    let report = only(
        "BUG: KASAN: slab-use-after-free in instrument_atomic_read_write include/linux/instrumented.h:96 [inline]\n\
         BUG: KASAN: slab-use-after-free in sock_hold include/net/sock.h:781 [inline]\n\
         BUG: KASAN: slab-use-after-free in demo_del+0x9a/0x2c0 net/demo.c:227\n\
         Write of size 4 at addr ffff88801f485080 by task kworker/u9:1/4491\n",
    );
    assert_eq!(report.headline, "KASAN: slab-use-after-free Write in demo_del");
}

#[test]
fn the_forms_of_sparc_of_mips_and_of_linux_2_6_name_processor_and_function() {
    // Shapes: arch/sparc/kernel/traps_64.c, arch/mips/kernel/traps.c, arch/x86_64/kernel/traps.c of 2.6.15
    let sparc = only(
        "> [  305.287234] demo-op(1517): Oops [#1]\n> [  305.343363] CPU: 1 PID: 1517 Comm: demo-op Not tainted \n\
         > 5.11.0-dirty #294\n> [  305.591565] TPC: <__demo_lookup+0x78/0x1e0>\n",
    );
    assert_eq!((sparc.class, sparc.function.as_deref()), (Class::Oops, Some("__demo_lookup")));
    assert_eq!((sparc.cpu, sparc.comm.as_deref(), sparc.arch), (Some(1), Some("demo-op"), Some(Arch::Sparc)));
    let mips = only("Kernel bug detected[#1]:\nCpu 3\n$ 0   : 00000000 b000ec00 00000001 00000004\n");
    assert_eq!(mips.cpu, Some(3));
    let old = only(
        "Kernel BUG at mm/demo.c:491\ninvalid operand: 0000 [2] SMP \nCPU 3 \n\
         Pid: 16651, comm: sh Tainted: G    B 2.6.15 #3\n\
         RIP: 0010:[<ffffffff80160b33>] <ffffffff80160b33>{page_demo+21}\n",
    );
    assert_eq!((old.function.as_deref(), old.cpu), (Some("page_demo"), Some(3)));
    let tail = only(
        "[   36.337950] EIP: [<c10851fa>] demo_put+0x1a/0x80 SS:ESP 0068:eea5fd70\n\
         [   36.337957] CR2: 0000000000000180\n[   36.337960] ---[ end trace ba3dd4357ec40995 ]---\n",
    );
    assert_eq!((tail.function.as_deref(), tail.fault_address), (Some("demo_put"), Some(0x180)));
}

#[test]
fn a_lockup_without_a_task_has_its_processor_and_a_wrapped_lock_its_function() {
    let report =
        only("[ 4757.0] watchdog: BUG: soft lockup - CPU#11 stuck for 94s!\n[ 4757.1] Call trace:\n demo_x+0x1/0x2\n");
    assert_eq!((report.class, report.cpu), (Class::SoftLockup, Some(11)));
    let lock = only(
        ">  WARNING: possible circular locking dependency detected\n>  swapper/0/1 is trying to acquire lock:\n\
         >  ff1db4cb40178698 (&domain->mutex){+.+.}-{3:3},\n>    at: demo_alloc+0x3b/0xa0\n>\n\
         >  but task is already holding lock:\n>  ffffffffa0c1cdf0 (demo_lock){++++}-{3:3},\n\
         >    at: demo_init+0x58e/0x880\n",
    );
    assert_eq!((lock.class, lock.function.as_deref()), (Class::Deadlock, Some("demo_alloc")));
}

#[test]
fn a_protection_fault_in_the_shadow_of_kasan_is_an_access_of_what_it_stands_for() {
    // Shape: arch/x86/kernel/traps.c, without the line in which KASAN says it
    let report = only(
        "[ 1.0] general protection fault, probably for non-canonical address 0xdffffc0000000009: 0000 [#1] SMP KASAN\n\
         [ 1.1] CPU: 1 PID: 2 Comm: demo Not tainted 6.6.0 #1\n[ 1.2] RIP: 0010:demo_deref+0x30/0x50\n",
    );
    assert_eq!((report.class, report.fault_address), (Class::GeneralProtection, Some(0x48)));
}

#[test]
fn the_words_of_old_kernels_and_of_their_loggers_name_the_function() {
    // Shapes: arch/i386/kernel/traps.c of Linux 2.4 behind klogd(8) and ksymoops(8), and of Red Hat's 2.4.18
    let logged = only(
        "Unable to handle kernel NULL pointer dereference at virtual address 0000005c\nOops: 0000\nCPU:    0\n\
         EIP:    0010:[demo_update+447/768]    Not tainted\nEFLAGS: 00010246\n\
         Process demo.bin (pid: 2030, stackpage=e21d1000)\n\
         Call Trace: [demo_async+34/224] [demo_page+203/272] \n[demo_sync+83/144] [demo_interval+105/208] \n",
    );
    assert_eq!((logged.function.as_deref(), logged.comm.as_deref()), (Some("demo_update"), Some("demo.bin")));
    let names = |report: &super::super::Report| report.stacks.iter().map(|stack| stack.frames.len()).sum::<usize>();
    assert_eq!(names(&logged), 4);
    let looked_up = only(
        "Unable to handle kernel NULL pointer dereference at virtual address 00000024\nOops: 0000\nCPU:    1\n\
         EIP:    0010:[<c0117c48>]\nEFLAGS: 00010246\n\
         >>EIP; c0117c48 <demo_wait+2ac/304>   <=====\nTrace; c0109f0c <demo_call+34/38>\n",
    );
    assert_eq!((looked_up.function.as_deref(), looked_up.cpu), (Some("demo_wait"), Some(1)));
    let package = only(
        "kernel BUG at demo.c:130!\ninvalid operand: 0000\nCPU:    1\nEIP:    0010:[<c013ac4e>]    Not tainted\n\
         EIP is at demo_pages_ok [kernel] 0x5e (2.4.18-demo)\n",
    );
    assert_eq!(package.function.as_deref(), Some("demo_pages_ok"));
    // A report whose first lines are lost.
    for line in ["EIP is at demo_write+0x73/0x91 [demo]", "PC is at demo_write+0x73/0x91 [demo]"] {
        let report = only(&format!("{line}\nProcess insmod (pid: 10503, ti=e55ea000 task=f2293570)\n"));
        assert_eq!((report.class, report.function.as_deref()), (Class::Oops, Some("demo_write")), "{line}");
    }
    // Shape: arch/m68k/kernel/traps.c
    let m68k = only(
        "Unable to handle kernel access at virtual address 6b7cdccf\nOops: 00000000\n\
         PC: [<00237454>] demo_erase+0x1c/0x346\nProcess ping (pid: 73, task=1e7eecd7)\n",
    );
    assert_eq!((m68k.function.as_deref(), m68k.comm.as_deref()), (Some("demo_erase"), Some("ping")));
    // Shape: arch/s390/kernel/dumpstack.c; the module was wrapped off
    let s390 = only(
        "CPU: 10 UID: 107 PID: 6210 Comm: demo Not tainted 6.16.0 #79 NONE\n\
         Krnl PSW : 0704c00180000000 000002482f7ee55e (demo_remove+0xde/0xf0\n[demo])\n",
    );
    assert_eq!(s390.function.as_deref(), Some("demo_remove"));
}

#[test]
fn a_lock_is_named_by_who_takes_it_or_by_who_holds_the_other() {
    // Shapes: kernel/locking/lockdep.c
    let wrapped = only(
        ">> WARNING: possible recursive locking detected\n>> sh/31444 is trying to acquire lock:\n\
         >> ffffffff82c51af0 (demo_lock){++++}-{0:0}, at:\n>> demo_stop+0x7/0x60\n>> \n\
         >> but task is already holding lock:\n>> ffffffff82c51af0 (demo_lock){++++}-{0:0}, at:\n\
         >> demo_start+0x28/0x140\n",
    );
    assert_eq!((wrapped.pid, wrapped.function.as_deref()), (Some(31444), Some("demo_stop")));
    let served = only(
        "WARNING: possible circular locking dependency detected\ndemo/7 is trying to acquire lock:\n\
         ffff8880222c2938 ((wq_completion)demo){+.+.}-{0:0}, at: flush_work+0xe1/0x15b0 kernel/workqueue.c:2815\n\n\
         but task is already holding lock:\n\
         ffff88801a7e9360 (&demo->mutex){+.+.}-{3:3}, at: demo_clear+0x7a/0x1070 drivers/demo.c:1106\n",
    );
    assert_eq!(served.function.as_deref(), Some("demo_clear"));
}

#[test]
fn the_note_of_an_exiting_task_names_it() {
    // Shape: kernel/exit.c, behind the end of a report that is cut
    let report = only(
        "RIP  [<ffffffff81083097>] demo_remove+0x54/0xa5\n RSP <ffff8800721dbc58>\n\
         ---[ end trace f47060e664cbf335 ]---\nnote: Xorg[6034] exited with preempt_count 1\n",
    );
    assert_eq!((report.comm.as_deref(), report.pid), (Some("Xorg"), Some(6034)));
}

/// Shapes: BUG() of Linux where an architecture has no trap for it (include/asm-generic/bug.h), and the head of an oops
/// on MIPS (arch/mips/mm/fault.c).
#[test]
fn the_place_in_the_first_line_is_kept() {
    let bug = only("BUG: failure at drivers/demo/ring.c:135/demo_run_list()!\nKernel panic - not syncing: BUG!\n");
    assert_eq!((bug.class, bug.headline.as_str()), (Class::Bug, "kernel BUG in demo_run_list"));
    assert_eq!(bug.source, Some(("drivers/demo/ring.c".into(), 135)));
    let oops = only(
        "CPU 1 Unable to handle kernel paging request at virtual address fffffff0, epc == 8005d844, ra == 800575ec\n\
         Oops[#1]:\n",
    );
    assert_eq!((oops.ip, oops.cpu, oops.fault_address), (Some(0x8005_d844), Some(1), Some(0xffff_fff0)));
}

/// Shape: dmesg(1) `-H`: the minute where it changes, the time since the line before in front of the others
#[test]
fn the_human_times_of_dmesg_hide_no_report() {
    for (minute, sign) in [("Nov27 03:10", '.'), ("27. Nov 03:10", ',')] {
        let report = only(&format!(
            "[{minute}] ------------[ cut here ]------------\n\
             [  +0{sign}000003] WARNING: CPU: 1 PID: 77 at fs/demo/x.c:12 demo_sync+0x10/0x20 [demo]\n\
             [  +0{sign}000100] CPU: 1 PID: 77 Comm: dd Not tainted 6.1.0 #1\n\
             [  +0{sign}000001] RIP: 0010:demo_sync+0x10/0x20 [demo]\n[  +0{sign}000001] Call Trace:\n\
             [  +0{sign}000001]  demo_write+0x10/0x20 [demo]\n"
        ));
        assert_eq!((report.headline.as_str(), report.cpu), ("WARNING in demo_sync", Some(1)), "{minute}");
        assert_eq!((report.comm.as_deref(), report.first.line), (Some("dd"), 1), "{minute}");
    }
}

/// Shapes: LAVA's lists of strings, Ansible's output, a table
#[test]
fn a_report_in_a_list_of_strings_is_read_to_its_end() {
    for (open, close) in
        [("- {\"lvl\": \"target\", \"msg\": \"", "\"}"), ("        \"", "\","), ("box,kernel,\"", "\"")]
    {
        let line = |text: &str| format!("{open}[   12.345678] {text}{close}\n");
        let report = only(
            &[
                "BUG: kernel NULL pointer dereference, address: 0000000000000008",
                "Oops: 0000 [#1] SMP",
                "CPU: 3 PID: 140 Comm: demo Not tainted 6.1.0 #1",
                "RIP: 0010:demo_fn+0x1/0x20",
            ]
            .map(line)
            .concat(),
        );
        assert_eq!((report.cpu, report.comm.as_deref()), (Some(3), Some("demo")), "{open}");
        assert_eq!(report.function.as_deref(), Some("demo_fn"), "{open}");
    }
}

/// Shape: rcu_check_gp_kthread_starvation of kernel/rcu/tree_stall.h
#[test]
fn the_thread_of_rcu_is_not_what_stalls() {
    let head = "rcu: INFO: rcu_sched detected stalls on CPUs/tasks:\n\
                rcu: \t1-...!: (0 ticks this GP) idle=cf8/0/0x0 softirq=20/20 fqs=0\n\
                rcu: RCU grace-period kthread stack dump:\n\
                task:rcu_sched       state:I stack:0     pid:17    tgid:17    ppid:2      flags:0x00000008\n\
                Call Trace:\n __schedule+0x288/0x600\n rcu_gp_kthread+0x4f6/0xd40\n";
    let idle = only(head);
    assert_eq!((idle.cpu, idle.comm, idle.function), (Some(1), None, None));
    let busy = only(&format!(
        "{head}CPU: 1 PID: 105 Comm: demo Not tainted 6.7.0 #3\nRIP: 0010:queued_spin_lock_slowpath+0x4a/0x2d0\n\
         Call Trace:\n <TASK>\n _raw_spin_lock+0x3d/0x50\n demo_bypass+0x93/0x240\n"
    ));
    assert_eq!((busy.comm.as_deref(), busy.pid), (Some("demo"), Some(105)));
    assert_eq!(busy.function.as_deref(), Some("demo_bypass"));
}

#[test]
fn the_words_of_a_warning_stand_before_it_or_behind_it() {
    // Shape: WARN() before Linux 4.12 prints its message behind the place
    let report = only(
        "WARNING: CPU: 2 PID: 531 at kernel/locking/demo.c:3523 demo_check+0x1eb/0x220()\n\
         DEBUG_LOCKS_WARN_ON(!current->hardirqs_enabled)\nCPU: 2 PID: 531 Comm: demo Not tainted 4.4.55 #1730\n\
         Call Trace:\n [<ffffffff8130a515>] dump_stack+0x67/0x92\n [<ffffffff810a55bb>] demo_check+0x1eb/0x220\n",
    );
    assert_eq!((report.class, report.comm.as_deref(), report.cpu), (Class::LockUse, Some("demo"), Some(2)));
    assert_eq!(report.function.as_deref(), Some("demo_check"));
}

#[test]
fn a_hung_task_whose_first_line_is_lost_is_known_by_its_second() {
    // Shape: kernel/hung_task.c; of some kernels all frames are guesses
    let report = only(
        " \"echo 0 > /proc/sys/kernel/hung_task_timeout_secs\" disables this message.\n\
         demo_sync       D    0  3259      2 0x00000000\nCall Trace:\n\
         [<ffffffff813a3aee>] ? io_schedule+0x5b/0x74\n [<ffffffff8106439d>] ? wake_up_atomic_t+0x22/0x22\n\
         [<ffffffffa06e2fdd>] ? demo_wait_io+0x116/0x15f [demo]\n",
    );
    assert_eq!((report.class, report.comm.as_deref(), report.pid), (Class::HungTask, Some("demo_sync"), Some(3259)));
    assert_eq!(report.function.as_deref(), Some("demo_wait_io"));
}

#[test]
fn a_work_item_in_parentheses_is_named_without_them() {
    // Shape: print_worker_info of kernel/workqueue.c, when the name of the queue cannot be read
    let report = only(
        "Unable to handle kernel paging request at virtual address 00000061fed09482\nOops [#1]\n\
         CPU: 0 PID: 1842 Comm: kworker/0:1H Not tainted 5.10.6+ #26\nWorkqueue:  0x0 (demo_complete)\n\
         epc: ffffffe00022affe ra : ffffffe00022afea sp : ffffffe086d3fe30\n",
    );
    assert_eq!(report.function.as_deref(), Some("demo_complete"));
}

#[test]
fn a_failure_that_was_injected_is_no_crash() {
    // Shape: fail_dump of lib/fault-inject.c
    let log = "FAULT_INJECTION: forcing a failure.\nname failslab, interval 1, probability 0, space 0, times 0\n\
               CPU: 0 PID: 1 Comm: demo Not tainted 6.12.0 #1\nCall Trace:\n dump_stack_lvl+0x10/0x20\n \
               should_fail_ex+0x10/0x20\n should_failslab+0x9/0x20\n demo_open+0x30/0x90\n";
    assert!(reports(log).is_empty(), "{:#?}", reports(log));
}

/// Shape: arch/powerpc/xmon/xmon.c, arch/powerpc/kernel/process.c
#[test]
fn the_debugger_of_power_says_where_who_and_on_which_processor() {
    let report = only(
        "cpu 0x1f: Vector: 300 (Data Access) at [c00000000111f7d0]\n    pc: c000000000022148: demo_stop+0x8/0x24\n    \
         lr: c00000000004e1d4: demo_idle+0x4c/0x70\n    sp: c00000000111fa50\n   msr: 9000000000001033\n   dar: 18\n \
         dsisr: 80000\n  current = 0xc0000000010e9e80\n    pid   = 12, comm = swapper/31\n",
    );
    assert_eq!((report.class, report.cpu, report.fault_address), (Class::PageFault, Some(31), Some(0x18)));
    assert_eq!((report.pid, report.comm.as_deref()), (Some(12), Some("swapper/31")));
    assert_eq!((report.function.as_deref(), report.ip), (Some("demo_stop"), Some(0xc000_0000_0002_2148)));
    let old = only(
        "Unable to handle kernel paging request for data at address 0x00000000\n\
         Oops: Kernel access of bad area, sig: 11 [#1]\nNIP: d107c0c8 LR: c0072834 CTR: 0fe368a4\n\
         TASK = cfa5d000[950] 'demo shell' THREAD: cf9ce000 CPU: 2\n\
         NIP [d107c0c8] demo_write+0x8/0x10 [demo]\nCall Trace:\n[cf9cfef0] [c0072804] vfs_write+0x9c/0x16c\n",
    );
    assert_eq!((old.cpu, old.pid, old.comm.as_deref()), (Some(2), Some(950), Some("demo shell")));
}

#[test]
fn the_task_of_another_processor_that_printed_in_between_is_not_that_of_the_warning() {
    let report = only(
        "WARNING: CPU: 1 PID: 58 at net/demo.c:208 demo_kill+0x3fa/0x580 net/demo.c:208\nModules linked in:\n\
         CPU: 0 PID: 62 Comm: demo.4 Not tainted 5.10.0 #52\nCPU: 1 PID: 58 Comm: demo.1 Not tainted 5.10.0 #52\n\
         Call Trace:\n dump_stack+0xbe/0xf9 lib/dump_stack.c:118\nRIP: 0010:demo_kill+0x3fa/0x580 net/demo.c:208\n",
    );
    assert_eq!((report.cpu, report.pid, report.comm.as_deref()), (Some(1), Some(58), Some("demo.1")));
}

#[test]
fn a_division_by_zero_on_arm_is_that_of_who_called_the_helper() {
    let report = only(
        "Division by zero in kernel.\nCPU: 0 PID: 57 Comm: demo Not tainted 5.1.12 #1\nBacktrace: \n\
         [<80683990>] (dump_stack) from [<801080a8>] (__div0+0x20/0x28)\n\
         [<80108088>] (__div0) from [<806821b8>] (Ldiv0+0x8/0x10)\n\
         [<803581f8>] (div64_u64) from [<804f1c94>] (demo_average+0xa8/0xac)\n\
         [<804f1bec>] (demo_average) from [<804f2524>] (demo_show+0x2e4/0x32c)\n",
    );
    assert_eq!((report.class, report.function.as_deref()), (Class::Divide, Some("demo_average")));
}

#[test]
fn what_a_text_says_of_bug_reports_is_none_and_a_remark_in_a_line_hides_no_function() {
    assert!(reports("Kernel bug reports often come with a stack dump like the one below:\n").is_empty());
    let report = only(
        "kernel BUG at drivers/demo.c:399!\nInternal error: Oops - BUG: 0 [#1] PREEMPT SMP ARM\n\
         CPU: 0    Not tainted  (3.5.0 #3)\nPC is at demo_link+0xe8(the offset)/0xec)(its size)\n\
         LR is at demo_sink+0x13c/0x240\n",
    );
    assert_eq!(report.function.as_deref(), Some("demo_link"));
    let report = only(
        "BUG: KASan: user-memory-access on address 310000006a690d0d\nWrite of size 672 by task demo-c7/48\n\
         Call Trace:\n [<ffffffff81428492>] __asan_storeN+0x132/0x1b0\n [<ffffffff81a13e3c>] demo_copy+0x8c/0xb0\n",
    );
    assert_eq!(report.headline, "KASAN: user-memory-access Write in demo_copy");
}

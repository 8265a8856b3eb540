//! What stands beside the usual: reports that lost their head, their processor or their last line, and loggers that say
//! it in their own place.

use super::super::class::Class;
use super::{only, reports};

/// Shape: an issue that is titled with the first line of its report, of which only the trace follows
#[test]
fn a_heading_is_the_first_line_of_the_trace_below_it() {
    let issue = "# BUG: kernel NULL pointer dereference, address: 0000000000000018\n\n\
                 Feb  1 23:13:13 box kernel: [    8.091288]  demo_fill+0x1c/0x40\n\
                 Feb  1 23:13:13 box kernel: [    8.091290]  demo_recv+0x55/0x100\n";
    let report = only(issue);
    assert_eq!((report.class, report.function.as_deref()), (Class::NullDeref, Some("demo_fill")));
    assert!(
        reports("# BUG: kernel NULL pointer dereference, address: 0000000000000018\n\nsince the update.\n").is_empty()
    );
    assert!(reports("# BUG: the button does nothing when pressed\n# oops=panic is set\n").is_empty());
    let whole = format!("{}{}", issue, "text\n".repeat(20))
        + "[    9.000001] BUG: kernel NULL pointer dereference, address: 0000000000000018\n\
           [    9.000002] CPU: 3 PID: 77 Comm: demo Not tainted 6.1.0 #1\n";
    assert_eq!(reports(&whole).last().and_then(|report| report.cpu), Some(3));
}

/// Shapes: arch/mips/kernel/traps.c and arch/arm/kernel/traps.c, the first lines of the report lost
#[test]
fn the_process_of_an_oops_opens_it_when_the_head_is_lost() {
    let mips = only(
        "[   17.435729] Process kworker/0:0 (pid: 4, threadinfo=84042000, task=8402d440, tls=00000000)\n\
         [   17.480969] Call Trace:\n[   17.483483] [<8005d844>] demo_data+0x4/0xc\n\
         [   17.487982] [<800575ec>] demo_worker+0x14/0xcc\n[   17.518899] ---[ end trace 0351e38daaaada9b ]---\n",
    );
    assert_eq!((mips.class, mips.comm.as_deref(), mips.pid), (Class::Oops, Some("kworker/0:0"), Some(4)));
    assert_eq!(mips.function.as_deref(), Some("demo_data"));
}

/// Shapes: mm/oom_kill.c of Linux 2.6.32 and later, a log that was searched for `Killed`
#[test]
fn the_kill_alone_tells_that_memory_ran_out() {
    for line in [
        "[2858609.598568] Killed process 11726, UID 498, (demo) total-vm:7823732kB, anon-rss:2539268kB, file-rss:768kB",
        "[2858609.598568] Killed process 11726 (demo) total-vm:7823732kB, anon-rss:2539268kB, file-rss:768kB",
    ] {
        let report = only(line);
        assert_eq!((report.class, report.headline.as_str()), (Class::OomKill, "Out of memory: killed demo"));
    }
}

/// Shape: arch/x86/kernel/cpu/mce/core.c, `__print_mce`
#[test]
fn an_error_that_the_hardware_corrected_is_no_crash() {
    let logged = |status: &str| {
        format!(
            "[    1.0] mce: [Hardware Error]: Machine check events logged\n\
             [    1.1] mce: [Hardware Error]: CPU 1: Machine Check: 0 Bank 11: {status}\n"
        )
    };
    assert!(reports(&logged("8c00004f000800c2")).is_empty());
    assert_eq!(only(&logged("a600000000020408")).class, Class::MachineCheck);
    let fatal = "[    1.1] mce: [Hardware Error]: CPU 1: Machine Check Exception: 5 Bank 11: 8c00004f000800c2\n";
    assert_eq!(only(fatal).class, Class::MachineCheck);
}

/// Shape: arch/arm/kernel/traps.c, `dump_backtrace_entry`, cut behind a line
#[test]
fn the_caller_in_the_last_line_of_arm_is_a_frame() {
    for last in [
        "[<8057eefc>] (wait_for_common) from [<7f0d0248>] (demo_set+0xd8/0x144 [demo])\n",
        "[<8057eefc>](wait_for_common+0x140/0x198) from [<7f0d0248>](demo_set+0xd8/0x144 [demo])\n",
    ] {
        let log = format!(
            "BUG: scheduling while atomic: demo/903/0x00000202\nCPU: 0 PID: 903 Comm: demo Not tainted 4.1.36 #4\n\
             [<800507b8>] (__schedule_bug) from [<8057c618>] (__schedule+0x400/0x50c)\n{last}"
        );
        let report = only(&log);
        assert_eq!(report.function.as_deref(), Some("demo_set"), "{log}");
    }
}

/// Shape: arch/x86/kernel/dumpstack.c, `?` before what stands in the stack by accident
#[test]
fn a_guess_above_a_sure_frame_is_a_leftover() {
    let report = only(
        "BUG: scheduling while atomic: swapper/0/0/0x10000100\nCPU: 0 PID: 0 Comm: swapper/0 Not tainted 3.10.0 #43\n\
         Call Trace:\n [<c15ad3a9>] dump_stack+0x16/0x18\n [<c15a9c08>] __schedule_bug+0x4e/0x5c\n\
         [<c1035869>] ? demo_msg_text+0x99/0x170\n [<c1133155>] __kmalloc+0x165/0x1b0\n",
    );
    assert_ne!(report.function.as_deref(), Some("demo_msg_text"));
}

/// Shape: a vendor's kernel that prints task and processor behind the time stamp
#[test]
fn the_processor_in_a_prefix_is_that_of_the_report() {
    let report = only(
        "[    0.000000] [pid:0,cpu2,swapper/2]BUG: KASAN: slab-out-of-bounds in demo_alloc+0x48/0x3b8\n\
         [    0.000000] [pid:0,cpu2,swapper/2]Read at addr fcff19f30000d91c by task swapper/2/0\n",
    );
    assert_eq!((report.cpu, report.comm.as_deref()), (Some(2), Some("swapper/2")));
}

/// Shapes: RT-Thread cpuport.c; Zephyr arch/arc and arch/xtensa; Unikraft plat/kvm/x86; the log levels are ours
#[test]
fn small_kernels_say_the_instruction_in_a_place_of_their_own() {
    let thread = only(
        "psr: 0x61000000\nr00: 0x00000000\nr01: 0x00000001\n lr: 0x08009031\n pc: 0x08009030\n\
                       hard fault on thread: demo\nthread pri  status      sp     stack size\n",
    );
    assert_eq!((thread.ip, thread.comm.as_deref()), (Some(0x0800_9030), Some("demo")));
    assert_eq!(thread.headline, "hard fault on thread demo");
    let arm = only(
        "cpu exception\nE: ***** USAGE FAULT *****\nE: r0/a1:  0x0000000e  r1/a2:  0x0000000a  r2/a3:  0x90000000\n\
         E: Faulting instruction address (r15/pc): 0x20000c3c\nE: >>> ZEPHYR FATAL ERROR 0: CPU exception on CPU 0\n",
    );
    assert_eq!((arm.family.as_str(), arm.ip, arm.cpu), ("zephyr", Some(0x2000_0c3c), Some(0)));
    let shown = only(
        "[00:00:00.006,744] \u{241b}[1;31m<err> os: Faulting instruction address (r15/pc): 0x0000a506\u{241b}[0m\n\
         [00:00:00.006,744] \u{241b}[1;31m<err> os: >>> ZEPHYR FATAL ERROR 0: CPU exception on CPU 0\u{241b}[0m\n\
         [00:00:00.006,744] \u{241b}[1;31m<err> os: Current thread: 0x20001340 (demo)\u{241b}[0m\n",
    );
    assert_eq!((shown.family.as_str(), shown.cpu, shown.comm.as_deref()), ("zephyr", Some(0), Some("demo")));
    let arc = only(
        "E: ***** Exception vector: 0x8, cause code: 0x0, parameter 0x0\nE: Address 0x3c4\n\
         E: >>> ZEPHYR FATAL ERROR 0: CPU exception on CPU 1\n",
    );
    assert_eq!((arc.family.as_str(), arc.ip, arc.cpu), ("zephyr", Some(0x3c4), Some(1)));
    let unikraft = only(
        "[    0.372817] CRIT: [libdemo] Cannot handle write page fault at 0xffffc6e78 (ec: 0x2): Bad address (14).\n\
         [    0.373627] CRIT: [libplat] RIP: 00000010088df442 CS: 0008\n\
         [    0.377741] CRIT: [libplat] base is 0x10000eff00 caller is 0x10088e3d21\n",
    );
    assert_eq!(unikraft.family, "unikraft");
    assert_eq!((unikraft.ip, unikraft.fault_address), (Some(0x10_088d_f442), Some(0xf_fffc_6e78)));
    let assertion = only("[ 0.000000] CRIT: [libplat] <demo.c @  541> Assertion failure: demo_is_valid(x, y)\n");
    assert_eq!((assertion.class, assertion.source), (Class::Assertion, Some(("demo.c".into(), 541))));
}

/// Shapes: OP-TEE core/kernel/trace.c; Redox of 2017; Hermit kernel/src/logging.rs; RIOT cpu/native
#[test]
fn what_stands_before_the_message_tells_processor_and_place() {
    assert_eq!(only("E/TC:2 0 Panic at core/demo_mmu.c:2114 <demo_matches>\nE/TC:2 0 Call stack:\n").cpu, Some(2));
    let redox = only(
        "Protection fault: 7FB at 08:FFFFFF000014BAB2\nTRACE: FFFFFF0008463D20\n\
                      \x20 FFFFFF0008463D20: FFFFFF000014EED2\n",
    );
    assert_eq!((redox.class, redox.ip), (Class::GeneralProtection, Some(0xffff_ff00_0014_bab2)));
    let hermit = only(
        "[1][ERROR] General Protection (#GP) Exception: InterruptStackFrame {\n\
                       \x20  instruction_pointer: VirtAddr(\n        0x8d5551,\n    ),\n",
    );
    assert_eq!((hermit.family.as_str(), hermit.cpu, hermit.class), ("hermit", Some(1), Class::GeneralProtection));
    assert_eq!(hermit.headline, "general protection fault");
    let riot = only("app/main.c:32 => *** RIOT kernel panic:\nFAILED ASSERTION.\n\n*** halted.\n");
    assert_eq!((riot.family.as_str(), riot.source), ("riot", Some(("app/main.c".into(), 32))));
}

/// Shapes: WinDbg's analysis, cut; savecore(8) of illumos and FreeBSD
#[test]
fn an_analysis_without_its_head_names_the_function() {
    let named = only(
        "0: kd> !analyze -v\nDRIVER_IRQL_NOT_LESS_OR_EQUAL (d1)\nArguments:\n\
         Arg1: 0000000000000008, memory referenced\n\
         Arg4: fffff8010a160de8, address which referenced memory\n\nFAULTING_IP: \nDEMOIO!DemoInvoke+60\n",
    );
    assert_eq!((named.ip, named.function.as_deref()), (Some(0xffff_f801_0a16_0de8), Some("DemoInvoke")));
    let cut = only(
        "FAULTING_IP: \ndemodrv+5715\nfffff880`00c8d715 8b6e28          mov     ebp,dword ptr [rsi+28h]\n\n\
         BUGCHECK_STR:  0xD1\n\nSYMBOL_NAME:  demodrv+5715\n\nMODULE_NAME: demodrv\n",
    );
    assert_eq!((cut.class, cut.function.as_deref()), (Class::Bugcheck, Some("demodrv")));
    let saved = "2015-10-18T19:53:37+02:00 box savecore: [ID 570001 auth.error] reboot after panic: \
                 BAD TRAP: type=e (#pf Page fault) rp=ffffff007bef8a30 addr=400001c8 occurred in module \"demo\"\n";
    assert_eq!((only(saved).family.as_str(), only(saved).fault_address), ("illumos", Some(0x4000_01c8)));
    assert_eq!(only("savecore[1234]: reboot after panic: page fault\n").class, Class::PageFault);
}

/// Shapes: the shells of BusyBox, GNU and macOS on the console of a machine whose program died
#[test]
fn a_shell_that_names_the_signal_of_a_program_tells_no_crash_of_the_kernel() {
    for line in [
        "Illegal instruction",
        "Illegal instruction (core dumped)",
        "Illegal instruction: 4",
        "Bus error",
        "Bus error (core dumped)",
        "Bus error: 10",
    ] {
        assert!(
            reports(&format!("Starting demo... [  OK  ]\n{line}\n[    8.1] reboot: Power down\n")).is_empty(),
            "{line}"
        );
    }
    let kernel = only("Illegal instruction\neip: 00101f3c  esp: 00107fb0  eflags: 00000246\n");
    assert_eq!((kernel.class, kernel.ip), (Class::InvalidOpcode, Some(0x0010_1f3c)));
}

/// Shape: `echo l > /proc/sysrq-trigger` on a machine that is well
#[test]
fn stacks_that_an_operator_asked_for_are_no_crash() {
    let asked = "[    4.1] sysrq: Show backtrace of all active CPUs\n[    4.1] NMI backtrace for cpu 0\n\
                 [    4.1] CPU: 0 UID: 0 PID: 1 Comm: init Not tainted 6.12.1 #1\n[    4.1] Call trace:\n\
                 [    4.1]  show_stack+0x20/0x38\n[    4.1]  nmi_cpu_backtrace+0xfc/0x140\n";
    let rest = "[    4.1]  __handle_sysrq+0xa4/0x1a8\n[    4.1]  write_sysrq_trigger+0xc8/0xe0\n";
    assert!(reports(&format!("{asked}{rest}")).is_empty());
    // A stack without such a frame was not asked for, and what was asked to crash did.
    assert_eq!(reports(asked).len(), 1);
    assert_eq!(reports(&format!("{asked}[    4.1]  sysrq_handle_crash+0x14/0x20\n{rest}")).len(), 1);
    let power = "[    4.1] NIP [c0000000007801c8] sysrq_handle_crash+0x28/0x30\n[    4.1] Call Trace:\n";
    assert_eq!(reports(&format!("{power}[    4.1] [c000003d64a13c60] [c0000000007812f4] {}", &rest[9..])).len(), 1);
}

/// Shapes: sysrq's list of tasks on Power, and a processor of it that came back
#[test]
fn what_power_shows_of_a_program_is_no_oops() {
    let waits = "task:init state:S stack:0 pid:1 ppid:0 flags:0x0\nCall Trace:\n\
                 [c000000002f9bbb0] [c00000000001aa68] __switch_to+0x1d8/0x2d0\n--- interrupt: c00\n\
                 NIP [00000000100c41b4] 0x100c41b4\nLR [000000001012dae4] 0x1012dae4\n--- interrupt: c00\n\
                 task:kthreadd state:S stack:0 pid:2 ppid:0 flags:0x00000800\nCall Trace:\n\
                 [c000000002f9bbb0] [c00000000001aa68] __switch_to+0x1d8/0x2d0\n\
                 [c000000002f9bc10] [c000000000dbf7a0] __schedule+0x370/0xc00\n";
    assert!(reports(&format!("Linux version 6.1.0\n{waits}")).is_empty());
    let back = only(
        "watchdog: CPU 0 became unstuck TB:27632537271\nCPU: 0 PID: 1 Comm: swapper/0 Not tainted 6.1.0 #1\n\
         NIP [c0000000020489dc] demo_init+0x4c/0xc8\nLR [c0000000020489dc] demo_init+0x4c/0xc8\n",
    );
    assert_eq!((back.class, back.function.as_deref()), (Class::HardLockup, Some("demo_init")));
}

/// Shapes: an issue that shows its report in a fence of Markdown, `BUG at` of a test of Linux, lockdep cut in its
/// chain, crash(8)
#[test]
fn reports_of_linux_that_others_show_in_part_have_their_place() {
    let cpu = "CPU: 1 PID: 7 Comm: demo Not tainted 6.9.0 #3\n";
    let frames = "Call Trace:\n demo_copy+0x12/0x20\n demo_init+0x44/0x80\n";
    let fenced = only(&format!(
        "With the driver built in I get a kernel panic:\n~~~\n{cpu}RIP: 0010:demo_copy+0x12/0x20\n{frames}~~~\n"
    ));
    assert_eq!((fenced.cpu, fenced.comm.as_deref()), (Some(1), Some("demo")));
    assert_eq!(fenced.function.as_deref(), Some("demo_copy"));
    let own = only(&format!("BUG at demo_check:57\n{cpu}{frames}"));
    assert_eq!((own.class, own.function.as_deref()), (Class::Bug, Some("demo_check")));
    let chain = only(&format!(
        "       demo_scan+0x178/0x1d0\n       demo_shrink+0x334/0x870\n       demo_kswapd+0x35f/0x780\n\n\
         other info that might help us debug this:\n\n Possible unsafe locking scenario:\n\n *** DEADLOCK ***\n\n\
         stack backtrace:\n{cpu}Call Trace:\n dump_stack_lvl+0x63/0x90\n print_circular_bug.cold+0x17e/0x1bb\n \
         check_noncircular+0x123/0x140\n __lock_acquire+0x15be/0x27d0\n lock_acquire+0xb2/0x290\n \
         demo_lock+0x14b/0x2b0\n"
    ));
    assert_eq!((chain.class, chain.function.as_deref()), (Class::Deadlock, Some("demo_lock")));
    let told = only(
        "        CPUS: 4\n       PANIC: \"CPU 3 Unable to handle kernel paging request at virtual address \
         0000000000000010, era == 9000000000a61044, ra == 9000000000a619cc\"\n         PID: 1613\n\
         \ncrash> bt\nPID: 1613   TASK: 900000043b294300  CPU: 3   COMMAND: \"demo\"\n \
         #0 [900000043b233d50] demo_read at 9000000000a61044\n #1 [900000043b233d50] demo_call at 9000000000a619cc\n",
    );
    assert_eq!((told.class, told.comm.as_deref()), (Class::PageFault, Some("demo")));
    assert_eq!((told.cpu, told.function.as_deref()), (Some(3), Some("demo_read")));
}

/// Shapes: WinDbg's keys, macOS and OpenSBI without their first lines
#[test]
fn reports_of_other_kernels_without_their_first_lines_are_read() {
    let keys = only(
        "BUGCHECK_CODE:  d1\n\nBUGCHECK_P1: 8\n\nBUGCHECK_P2: 2\n\nBUGCHECK_P3: 0\n\nBUGCHECK_P4: fffff8024e50c688\n\n\
         PROCESS_NAME:  demo.exe\n",
    );
    assert_eq!((keys.class, keys.ip, keys.error_code), (Class::Bugcheck, Some(0xffff_f802_4e50_c688), Some(0xd1)));
    assert_eq!(keys.comm.as_deref(), Some("demo.exe"));
    let cores = only(
        "CORE 0 [EACC0] recently retired instr at 0xfffffe003c542ee8\n\
         CORE 1 [EACC0] recently retired instr at 0xfffffe003c542ef0\n\
         CORE 0: PC=0xfffffe003c532b80, LR=0xfffffe003c53d3d8, FP=0xfffffe3c84177e40\n",
    );
    assert_eq!((cores.family.as_str(), cores.ip), ("xnu", Some(0xffff_fe00_3c54_2ee8)));
    let boot = only(
        "Exception handlers installed.\nexception _data_abort\nR0 = 0x1a421377\nR1 = 0x8eb49128\nSP = 0x4030cd18\n\
         LR = 0x402f17e5\nPC = 0x402f17ee\nDFAR = 0x1a42137b\n",
    );
    assert_eq!((boot.family.as_str(), boot.ip, boot.fault_address), ("coreboot", Some(0x402f_17ee), Some(0x1a42_137b)));
    let trap = only(
        "sbi_trap_error: hart2: trap1: mcause=0x0000000000000005 mtval=0x0000000000000010\n\
         sbi_trap_error: hart2: trap1: mepc=0x00000000800113ae mstatus=0x0000000a00001800\n",
    );
    assert_eq!((trap.family.as_str(), trap.cpu, trap.ip), ("opensbi", Some(2), Some(0x8001_13ae)));
}

//! Reports of embedded, research and older kernels and of firmware, and what looks like them and is none.

use super::super::Report;
use super::super::class::Class;
use super::{only, reports};

/// Family, class, function and address of the only report of a log.
fn facts(log: &str) -> (String, Class, Option<String>, Option<u64>) {
    let report = only(log);
    (report.family, report.class, report.function, report.fault_address)
}

fn known(family: &str, class: Class, function: &str, address: u64) -> (String, Class, Option<String>, Option<u64>) {
    (family.into(), class, Some(function).filter(|name| !name.is_empty()).map(Into::into), Some(address))
}

/// Shapes: RIOT core/lib/panic.c under pyterm; Mbed OS mbed_fault_handler.c; RT-Thread cpuport.c; Zephyr in a runner
#[test]
fn kernels_of_microcontrollers_say_the_fault() {
    let riot = only("2019-11-07 13:18:11,992 # *** RIOT kernel panic:\n2019-11-07 13:18:11,993 # FAILED ASSERTION.\n");
    assert_eq!((riot.family.as_str(), riot.class), ("riot", Class::Assertion));
    let riot = only(
        "2016-02-04 11:13:06,836 - INFO # Context before hardfault:\n\
         2016-02-04 11:13:06,838 - INFO #    r0: 0x2000015c\n2016-02-04 11:13:06,839 - INFO #    pc: 0x08001234\n",
    );
    assert_eq!((riot.family.as_str(), riot.class, riot.ip), ("riot", Class::Exception, Some(0x0800_1234)));
    let mbed = only(
        "++ MbedOS Fault Handler ++\n\nFaultType: HardFault\n\nContext:\nR0   : 00000001\nR1   : 0000030A\n\
         PC   : 00001874\nHFSR : 40000000\nMMFSR: 00000000\nBFSR : 00000000\nUFSR : 00000100\nMode : Thread\n",
    );
    assert_eq!((mbed.headline.as_str(), mbed.ip), ("HardFault: unaligned access", Some(0x1874)));
    let thread = only(" pc: 0x0002c580\nhard fault on handler\nusage fault:\nSCB_CFSR_UFSR:0x02 INVSTATE \n");
    assert_eq!(thread.headline, "hard fault in an interrupt handler: invalid execution state");
    let zephyr = only(
        "E#1      @rack/board  console output: ***** MPU FAULT *****\n\
         E#1      @rack/board  console output: Faulting instruction address = 0xa0000000\n",
    );
    assert_eq!((zephyr.family.as_str(), zephyr.ip), ("zephyr", Some(0xa000_0000)));
}

/// Shapes: OP-TEE core/arch/arm/kernel/abort.c and core/kernel/panic.c; EDK2 CpuExceptionHandlerLib; GRUB kern/mm.c
#[test]
fn firmware_names_the_function_and_the_image() {
    let tee = "E/TC:0 0 Core data-abort at address 0x6ee66004 (translation fault)\n\
               E/TC:0 0  cpu #0          cpsr 0x000001b3\nE/TC:0 0 Call stack:\n\
               E/TC:0 0  0x6ee2152e demo_entry at os/core/demo.c:209\n\
               E/TC:0 0 Panic 'unhandled pageable abort' at core/abort.c:553 <abort_handler>\nE/TC:0 0 Call stack:\n\
               E/TC:0 0  0x6edcec2d print_kernel_stack at os/core/unwind.c:109\n";
    assert_eq!(facts(tee), known("op-tee", Class::PageFault, "demo_entry", 0x6ee6_6004));
    let place = |report: &Report| (report.source.clone(), report.function.clone());
    let panic = only("E/TC:0 0 Panic at core/demo_mmu.c:2114 <demo_matches>\nE/TC:0 0 Call stack:\n");
    assert_eq!(panic.family, "op-tee");
    assert_eq!(place(&panic), (Some(("core/demo_mmu.c".into(), 2114)), Some("demo_matches".into())));
    let assertion = only("E/TC:? 0 assertion 'demo() & MASK' failed at core/demo.h:22 <demo_pos>\n");
    assert_eq!((assertion.family.as_str(), assertion.class), ("op-tee", Class::Assertion));
    assert_eq!(place(&assertion), (Some(("core/demo.h".into(), 22)), Some("demo_pos".into())));
    let old = "core data-abort at address 0x0\n fsr 0x00000805  ttbr0 0x0537006a  ttbr1 0x0537006a\n\
               PANIC: demo_handle_fault core/arch/arm/mm/demo.c:654\n";
    assert_eq!(facts(old).3, Some(0));
    let edk2 = only(
        "!!!! IA32 Exception Type - 0D(#GP - General Protection)  CPU Apic ID - 00000001 !!!!\n\
         EIP  - 76799950, CS  - 00000010, EFLAGS - 00010012\n\
         !!!! Find image based on IP(0x76799950) k:\\demo\\IA32\\DemoPei.pdb (ImageBase=0000000076795180) !!!!\n",
    );
    assert!(edk2.headline.ends_with("in DemoPei.pdb"), "{}", edk2.headline);
    assert_eq!(only("ASSERT /src/Demo/Demo.c(1478): Index != 0\n").source, Some(("/src/Demo/Demo.c".into(), 1478)));
    assert_eq!(only("alloc magic is broken at 0x74ec9880: 74dee140\n").family, "grub");
}

/// Shapes: Nanos src/x86_64/interrupt.c; Theseus exceptions_full; OSv core/mmu.cc; Mini-OS arch/x86/traps.c;
/// IRIX' console; HelenOS debug/panic.c; managarm in gdb; kernels that follow "OS in 1,000 Lines"
#[test]
fn the_address_in_the_words_of_a_message_is_taken() {
    let nanos = "cpu 0000000000000000, state kernel, vector 000000000000000e\n\
                 \x20interrupt: 000000000000000e (Page fault)\n   address: ffffffff801242f7\n\
                 \x20 rip: ffffffff8003593a\t(demo_config + 00000000000000aa/00000000000003f7)\n";
    assert_eq!(facts(nanos), known("nanos", Class::PageFault, "demo_config", 0xffff_ffff_8012_42f7));
    let theseus = "EXCEPTION: PAGE FAULT while accessing 0x8\nerror code: CAUSED_BY_WRITE\nExceptionStackFrame {\n\
                   \x20   instruction_pointer: 0xffffffff80108a01,\n";
    assert_eq!(facts(theseus), known("theseus", Class::PageFault, "", 8));
    let osv = "page fault outside application, addr: 0x0000000000000000\n[backtrace]\n\
               0x000000000032ad3b <mmu::vm_fault(unsigned long, exception_frame*)+171>\n\
               0x00000000002392b8 <demo_receive+2664>\n";
    assert_eq!(facts(osv), known("osv", Class::PageFault, "demo_receive", 0));
    let mini =
        "Page fault at linear address 28, rip fcca1, regs 00000000002af988, sp 2afa30, our_sp 00000000002af950\n";
    assert_eq!(facts(mini), known("mini-os", Class::PageFault, "", 0x28));
    let irix = "PANIC: KERNEL FAULT\nEXC code:128, `Software detected SEGV '\nBad addr: 0x10, cause: 0x10000008\n";
    assert_eq!(facts(irix).3, Some(0x10));
    let helenos = "Kernel panic in demo_handler() at arch/demo.c:236: Interruption: 0x5300.\n";
    assert_eq!((facts(helenos).0.as_str(), facts(helenos).2.as_deref()), ("helenos", Some("demo_handler")));
    let thousand = "PANIC: kernel.c:323: unexpected trap scause=0000000f, stval=80214d44, sepc=0100002a\n";
    assert_eq!(facts(thousand).3, Some(0x8021_4d44));
    let oak = "ERROR: KERNEL PANIC: PAGE FAULT\nERROR: Instruction pointer: 0xffffffff8057c091\\n\n\
               ERROR: Faulting virtual address: 0x00000000d0810014\\n\n";
    assert_eq!(facts(oak), known("generic", Class::PageFault, "", 0xd081_0014));
    let inside = only("panicked at src/trap.rs:2:1:\nUnexpected trap: Context { a0: 1, mcause: 0x5, mtval: 0x10 }\n");
    assert_eq!((inside.class, inside.fault_address), (Class::Exception, Some(0x10)));
}

/// Shapes: sys/amd64/amd64/db_trace.c of FreeBSD: how a kernel thread's stack ends, and where a trap came in between
#[test]
fn the_trap_lines_of_a_freebsd_stack_are_told_apart() {
    let end = only(
        "panic: VERIFY(demo == 0) failed\ncpuid = 4\nKDB: stack backtrace:\n\
         demo_write() at demo_write+0x1b4/frame 0xfffffe00a69d7090\n\
         fork_trampoline() at fork_trampoline+0xe/frame 0xfffffe00a69d7f30\n\
         --- trap 0, rip = 0, rsp = 0, rbp = 0 ---\n",
    );
    assert_eq!((end.ip, end.error_code, end.function.as_deref()), (None, None, Some("demo_write")));
    let inside = only(
        "Fatal trap 12: page fault while in kernel mode\nfault virtual address\t= 0x8\nKDB: stack backtrace:\n\
         demo_console() at demo_console+0x4/frame 0xfffffe034def4200\n\
         vpanic() at vpanic+0x10a/frame 0xfffffe034def4250\n\
         --- trap 0xc, rip = 0xffffffff80ab383f, rsp = 0xfffffe034def45f0, rbp = 0xfffffe034def4670 ---\n\
         demo_check() at demo_check+0x24f/frame 0xfffffe034def4670\n",
    );
    assert_eq!(inside.function.as_deref(), Some("demo_check"));
    let task =
        only("Fatal trap 9: general protection fault while in kernel mode\ncurrent process = 12 (swi4: demo (0))\n");
    assert_eq!(task.comm.as_deref(), Some("swi4: demo (0)"));
}

/// Shapes: DragonFly's trap.c; OpenBSD's trap.c; ReactOS' kdb; other systems that greet as Haiku does
#[test]
fn kernels_that_print_alike_are_told_apart() {
    assert_eq!(only("Fatal double fault\nrip = 0xffffffff806564d4\ncpuid = 1; lapic id = 1\n").family, "dragonfly");
    let openbsd = only(
        "uvm_fault(0xfffffd806bee0b58, 0x0, 0, 1) -> e\nfatal page fault in supervisor mode\n\
         trap type 6 code 0 rip ffffffff8152ac20 cs 8 rflags 10207 cr2 0\nStarting stack trace...\n\
         kerntrap(ffff80003c424e30) at kerntrap+0x29b\ndemo_stop(ffff8000013fd000) at demo_stop+0xf0\n",
    );
    assert_eq!((openbsd.family.as_str(), openbsd.function.as_deref()), ("openbsd", Some("demo_stop")));
    let reactos =
        only("*** Assertion failed: demo == FALSE\nkdb:> bt\nFrames:\n<NTOSKRNL.EXE:125a40 (demo.c:13 (KiDemo))>\n");
    assert_eq!((reactos.family.as_str(), reactos.function.as_deref()), ("reactos", Some("KiDemo")));
    let haiku = only(
        "PANIC: demo: no redistributor\nWelcome to Kernel Debugging Land...\nThread 0 \"\" running on CPU 12\n\
         \x203 ffff0000024f1e30 (+ 176) ffff0000000dbbcc   <kernel_arm64> panic() + 0x8c\n\
         \x204 ffff0000024f1f50 (+ 288) ffff000000182cec   <kernel_arm64> Demo::_Current() + 0x8c\n",
    );
    assert_eq!((haiku.family.as_str(), haiku.cpu), ("haiku", Some(12)));
    assert_eq!(haiku.function.as_deref(), Some("Demo::_Current"));
    assert_eq!(only("PANIC:\nPage fault!\nWelcome to Kernel Debugging Land...\n").family, "generic");
    let bsd = only("login: panic: demo_put: double put\nStopped at      db_enter+0xa:   popq    %rbp\n");
    assert_eq!(bsd.family, "openbsd");
}

/// Shapes: osfmk/i386/trap.c; a kernel derived from xv6. CR2 means nothing for a general protection fault.
#[test]
fn a_stale_cr2_is_no_address_of_an_access() {
    let xnu = only(
        "panic(cpu 0 caller 0xffffff8007dd155a): Kernel trap at 0xffffff7f88881f3b, type 13=general protection, \
         registers:\nCR0: 0x0000000080010033, CR2: 0x0000000100f1d000, CR3: 0x0000000015c35063\n\
         Fault CR2: 0x0000000100f1d000, Error code: 0x0000000000000000, Fault CPU: 0x0, PL: 0\n",
    );
    assert_eq!((xnu.class, xnu.fault_address, xnu.ip), (Class::GeneralProtection, None, Some(0xffff_ff7f_8888_1f3b)));
    let xv6 = only("kernel trap 13 err 0x0 cpu 0 cs 16 ss 24\n  cr2 ffffff00049f7070 cr3 00000000077e800a\n");
    assert_eq!((xv6.class, xv6.fault_address), (Class::GeneralProtection, None));
}

/// Shapes: WinDbg's !analyze and its disassembly
#[test]
fn a_debugger_s_analysis_of_windows_names_the_code() {
    let report = only(
        "*        Bugcheck Analysis        *\nDEMO_EXCEPTION (3b)\nAn exception happened.\nPROCESS_NAME:  demo.exe\n",
    );
    assert_eq!((report.class, report.error_code), (Class::Bugcheck, Some(0x3b)));
    assert_eq!((report.headline.as_str(), report.comm.as_deref()), ("bug check 3b DEMO_EXCEPTION", Some("demo.exe")));
    let keys = only("KEY_VALUES_STRING: 1\n    Key  : Failure.Bucket\n    Value: 0x3B_C0000006_VRF_nt!DemoGetCell\n");
    assert_eq!(keys.function.as_deref(), Some("DemoGetCell"));
    let broken =
        only("*** Fatal System Error: 0x00000139\nnt!DbgBreakPointWithStatus:\nfffff800`493e58c0 cc    int  3\n");
    assert_eq!(broken.function, None);
}

/// Any kernel: a word for a death in the middle of a line counts when a stack or registers follow.
#[test]
fn a_death_of_an_unknown_kernel_is_one() {
    let unknown = only("demo[3] hit HardFault in isr\npc: 0x08001234 lr: 0x08005678\n");
    assert_eq!((unknown.family.as_str(), unknown.class, unknown.ip), ("generic", Class::Exception, Some(0x0800_1234)));
    // Prose before the report of another kernel gives way to it.
    let linux =
        only("It ends with a machine check, not a kernel panic:\nWARNING: CPU: 1 PID: 7 at demo.c:12 demo+0x1/0x2\n");
    assert_eq!((linux.family.as_str(), linux.number), ("linux", 1));
    assert!(reports("the word HardFault in prose\nand nothing else\n").is_empty());
}

/// Shapes: std::panicking of Rust, Go's net/http, C source in a mail, a heading, seL4's faults of user threads
#[test]
fn words_of_programs_and_prose_are_no_crash() {
    let kernels = |log: &str| reports(log).into_iter().filter(|report| !report.of_program).count();
    for log in [
        "thread 'main' panicked at src/demo.rs:60:30:\ncalled `Result::unwrap()` on an `Err` value: Demo\n\
         note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n",
        "panicked at src/demo.rs:60:30:\nlost\nnote: run with `RUST_BACKTRACE=1` environment variable\n",
        "2021/04/15 20:19:17 http: panic serving 192.0.2.1:80: demo\ngoroutine 3 [running]:\n\
         panic(0xadc740, 0x104f450)\n\truntime/panic.go:971 +0x499\n",
        "\tif (demo)\n\t\tpanic(\"Fatal exception in demo\");\n",
        "Page Fault\n\nAt 0x203\n\nCan you be more explicit?\n",
    ] {
        assert_eq!(kernels(log), 0, "{log}{:#?}", reports(log));
    }
}

/// Shapes: Serenity's Kernel before 2021, Redox before 2018, NuttX without the names of its functions, iPXE's console
#[test]
fn older_forms_of_small_kernels_are_read() {
    let serenity = only(
        "demo_task(7:7) Unrecoverable page fault, write to address 0xc004b000\n\
         CRASH: Page Fault. Kernel: demo_task(7)\nexception code: 0002 (isr: 0000)\n  pc=0008:001483ba flags=0206\n\
         eax=c004b000 ebx=003171d8 ecx=00000400 edx=00001000\n117c2d (next: c00279b8)\n117e1e (next: c0027a08)\n",
    );
    assert_eq!((serenity.family.as_str(), serenity.class), ("serenity", Class::PageFault));
    assert_eq!((serenity.comm.as_deref(), serenity.fault_address), (Some("demo_task"), Some(0xc004_b000)));
    assert_eq!(serenity.stacks.first().map(|stack| stack.frames.len()), Some(2));
    let nameless = only(
        "[demo(5:5)]: Unrecoverable page fault, read from address V0xc3f5f000\n\
         [demo(5:5)]: CRASH: Page Fault. Ring 0.\n\
         [demo(5:5)]: 0xc0119909 (no ELF symbols for process)\n",
    );
    assert_eq!((nameless.function, nameless.stacks[0].frames[0].address), (None, Some(0xc011_9909)));
    let redox = only(
        "Page fault: 0000017FFFFFFFF8\nRFLAG: 0000000000010013\nCS:    0000000000000008\nRIP:   FFFFFF0000191C84\n\
         RAX:   FFFFFE8000571948\nSIGNAL 11, CPU 1, PID ContextId(45)\n",
    );
    assert_eq!((redox.family.as_str(), redox.class, redox.cpu), ("redox", Class::PageFault, Some(1)));
    let first = only(
        "  INT E: Page fault\n    CS:  00000008    IP:  00001000    FLG: 00010002\n\
                      \x20   CR0: 80010033    CR2: 00000010    CR3: 00200000    CR4: 00000600\n",
    );
    assert_eq!((first.class, first.fault_address), (Class::PageFault, Some(0x10)));
    let nuttx = only(
        "Hard Fault escalation:\nPANIC!!! Hard Fault!:\n        CFSR: 00008200 HFSR: 40000000\n\
         Assertion failed panic: at file: :0 task: demo process: demo 0x8100039\n\
         R0: 00000000 R1: 00000000 R2: 00000080  R3: 00000000\n",
    );
    assert_eq!((nuttx.family.as_str(), nuttx.comm.as_deref()), ("nuttx", Some("demo")));
    let bare = only("Assertion failed at file:demo.c line: 86 task: commander\nsp:     2000883c\nIRQ stack:\n");
    assert_eq!(
        (bare.class, bare.source, bare.comm.as_deref()),
        (Class::Assertion, Some(("demo.c".into(), 86)), Some("commander"))
    );
    let prompt = only(
        "iPXE&gt; !!!! X64 Exception Type - 0D(#GP - General Protection) CPU Apic ID - 00000002 !!!!\n\
         RIP - 0000000530646870, CS - 0000000000000038, RFLAGS - 0000000000010202\n",
    );
    assert_eq!((prompt.family.as_str(), prompt.cpu, prompt.ip), ("edk2", Some(2), Some(0x5_3064_6870)));
}

#[test]
fn an_exception_is_named_by_its_number_and_a_debugger_names_the_frame() {
    // Shapes: kernels of hobby systems; probe-rs run; lldb(1) at XNU
    assert_eq!(only("[INT] FATAL: Exception 14\n[INT] Error code: 0x2\n").class, Class::Exception);
    for line in ["Exception 14 handler installed", "exception 3rd time lucky", "exceptional 3"] {
        assert!(reports(line).is_empty(), "{line}");
    }
    let probe = only(
        "Firmware exited unexpectedly: Exception\nCore 1\n    Frame 0: HardFault_ @ 0x08005dba\n\
         \x20      /src/demo.rs:10:1\n    Frame 1: demo_poll @ 0x08004abc\n",
    );
    assert_eq!((probe.family.as_str(), probe.cpu, probe.function.as_deref()), ("probe-rs", Some(1), Some("demo_poll")));
    let lldb = only(
        "   1 mach_kernel                    0xffffff8000504750 panic + 0xec\n\
         \x20  2 mach_kernel                    0xffffff800060e1d0 kernel_trap + 0x96c\n\
         \x20  3 org.demo.fs                    0xffffff7f85065040\n\
         \x20  4 org.demo.fs                    0xffffff7f85065238 demo_load + 0x1c\n",
    );
    assert_eq!((lldb.family.as_str(), lldb.class), ("xnu", Class::Panic));
    assert_eq!(lldb.stacks[0].frames.len(), 3);
}

/// Shape: the stack protector of glibc, which ends a process
#[test]
fn a_program_whose_stack_was_smashed_is_not_the_kernel() {
    assert!(reports("*** stack smashing detected ***: terminated\nAborted\n").is_empty());
    assert_eq!(only("*** stack smashing detected ***\n").class, Class::StackCorrupted);
}

/// Shapes: core_esp8266_postmortem.cpp of the Arduino core, panic.c of ESP-IDF 2, kernel/fatal.c of Zephyr and
/// faulthandler.c of seL4
#[test]
fn faults_of_microcontrollers_in_other_forms_are_read() {
    let stack = "\nctx: cont \nsp: 3ffff0a0 end: 3fffffd0 offset: 01a0\n\n>>>stack>>>\n\
                 3ffff240:  3ffe0000 04a70000 40241000 3ffef000  \n<<<stack<<<\n";
    let lines = "epc1=0x40201234 epc2=0x00000000 epc3=0x00000000 excvaddr=0x00000010 depc=0x00000000";
    for log in [
        format!("Exception (28):\n{lines}\n{stack}"),
        format!("Soft WDT reset\n\nException (4):\n{lines}\n{stack}"),
        format!("# Exception (28): {lines}\n"),
    ] {
        let report = only(&log);
        assert_eq!((report.family.as_str(), report.ip), ("esp8266", Some(0x4020_1234)), "{log}");
        assert_eq!(report.fault_address, Some(0x10));
    }
    assert!(reports("Exception (28):\nwhat does it mean?\n").is_empty());
    assert!(reports("Soft WDT reset\nis what it says\n").is_empty());
    let watchdog = only(&format!("Soft WDT reset\n{stack}"));
    assert_eq!(watchdog.headline, "reset by the software watchdog");

    let behind = only(
        "began at: 208Guru Meditation Error of type LoadProhibited occurred on core  1. Exception was unhandled.\n\
         Register dump:\nPC      : 0x40081234  PS      : 0x00060933  A0      : 0x80082000  A1      : 0x3ffc0000\n",
    );
    assert_eq!((behind.headline.as_str(), behind.cpu), ("Guru Meditation: LoadProhibited", Some(1)));
    assert_eq!(behind.ip, Some(0x4008_1234));
    let zephyr = only("[00:00:00.000,000] <err> os: >>> ZEPHYR FATAL ERROR 4: Kernel panic\n");
    assert_eq!(zephyr.family, "zephyr");

    let fault = only(
        "Caught cap fault in send phase at address 0\nwhile trying to handle:\n\
         vm fault on data at address 0x46cde0 with status 0x92000007\n\
         in thread 0xffffff806ffde400 \"Demo\" at address 0x45598c\n",
    );
    assert_eq!((fault.of_program, fault.comm.as_deref(), fault.ip), (false, Some("Demo"), Some(0x45_598c)));
}

/// Shapes: the purple screen of ESXi 4 to 8 in articles of its knowledge base, with and without numbers
#[test]
fn purple_screens_of_esxi_are_read() {
    let frames = "0x4100c7ff7d08:[0x418036001234]DemoNewInt+0xa3 stack: 0x4100a30e4bf0\n\
                  0x4100c7ff7d38:[0x418036005678]Demo_New+0xbe stack: 0xbad0014\n";
    for head in [
        "@BlueScreen: #PF Exception(14) in world 1056:demo ip 0x418036001234 addr 0x417ff5d1e50c",
        "2024-11-06T12:13:14.1Z cpu3:1056)@BlueScreen: #PF Exception 14 in world 1056:demo IP 0x418036001234 addr 0x10",
        "#GP Exception(13) in world 1056:demo @ 0x418036001234",
    ] {
        let report = only(&format!("{head}\nCode starts at 0x418036000000\n{frames}"));
        let told = (report.family.as_str(), report.comm.as_deref(), report.ip, report.function.as_deref());
        assert_eq!(told, ("esxi", Some("demo"), Some(0x4180_3600_1234), Some("DemoNewInt")), "{head}");
    }
    let masked = only(
        "cpu##:########)@BlueScreen: #PF Exception 14 in world ########:demo IP 0x############ addr 0x## ...\n\
         cpu##:########)0x############:[0x############]DemoMap_Range@vmkernel#nover+0x45 stack: ...\n\
         cpu##:########)0x############:[0x############]DemoMap_Loop@vmkernel#nover+0x44 stack: ...\n",
    );
    assert_eq!((masked.comm.as_deref(), masked.function.as_deref()), (Some("demo"), Some("DemoMap_Range")));
    let cut = only("[0x42001ab7c298]DemoLow@vmkernel#nover+0x0\n[0x42001abb988f]DemoHigh@vmkernel#nover+0x94\n");
    assert_eq!((cut.family.as_str(), cut.function.as_deref()), ("esxi", Some("DemoLow")));
}

/// Shapes: nt's KeBugCheckEx on a debugger, !analyze of WinDbg
#[test]
fn the_parameters_of_a_bug_check_say_the_instruction() {
    let parameters = "(0x00000000C0000005,0xFFFFF80181001234,0xFFFFF005EEE50000,0xFFFFF80181005678)";
    for (code, ip) in [("3b", Some(0xffff_f801_8100_1234)), ("d1", Some(0xffff_f801_8100_5678)), ("139", None)] {
        let report =
            only(&format!("*** Fatal System Error: 0x000000{code:0>2}\n                       {parameters}\n"));
        assert_eq!((report.class, report.ip), (Class::Bugcheck, ip), "{code}");
    }
    let driver = only(
        "*                        Bugcheck Analysis                                    *\n\n\
         DRIVER_VERIFIER_DETECTED_VIOLATION (c4)\nArguments:\nArg1: 000000f6, Referencing user handle as KernelMode.\n\
         Arg4: 81711234, Address inside the driver that is performing the incorrect reference.\nBUGCHECK_STR:  c4_f6\n",
    );
    assert_eq!(driver.ip, Some(0x8171_1234));
}

/// Shapes: illumos' uts/intel/os/trap.c through syslogd; its stack as a list; Go's traceback without its title
#[test]
fn a_trap_of_illumos_names_the_process_and_the_module() {
    let report = only(
        "Dec 25 10:07:04 host unix: [ID 836849 kern.notice] \n\
         Dec 25 10:07:04 host ^Mpanic[cpu8]/thread=fffffe83d37b7420: \n\
         Dec 25 10:07:04 host genunix: [ID 335743 kern.notice] BAD TRAP: type=e (#pf Page fault) \
         rp=fffffe00b6e59b50 addr=0 occurred in module \"demofs\" due to a NULL pointer dereference\n",
    );
    assert_eq!((report.cpu, report.headline.as_str()), (Some(8), "BAD TRAP: #pf Page fault in demofs"));
    let named = only(
        "BAD TRAP: type=e (#pf Page fault) rp=ffffff003e986830 addr=ffffff04d8ecb000\n\ndemod:\n#pf Page fault\n\
         Bad kernel fault at addr=0xffffff04d8ecb000\npid=22042, pc=0xfffffffffb871234, sp=0xffffff003e986928\n",
    );
    assert_eq!((named.comm.as_deref(), named.ip), (Some("demod"), Some(0xffff_ffff_fb87_1234)));
    let listed = only(
        "   - `BAD TRAP: type=8 (#df Double fault) rp=fffffffffbc13f10 addr=0`\n\nThe stack:\n\n    unix:die\n    \
         unix:trap\n    unix:demo_restore\n    unix:demo_read\n",
    );
    assert_eq!((listed.class, listed.function.as_deref()), (Class::DoubleFault, Some("demo_restore")));
    let go = only(
        "panic: runtime error: invalid memory address or nil pointer dereference\n\
         [signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x102a411]\n\n\
         gvisor.dev/gvisor/pkg/sentry/kernel.(*ThreadGroup).Demo(...)\n        pkg/sentry/kernel/demo.go:12\n",
    );
    assert!(go.function.is_some_and(|name| name.ends_with("Demo")));
}

/// Shapes: core::panicking with a backtrace of addr2line's form, of a panic in a dependency and in Rust's own library
#[test]
fn a_panic_in_a_library_has_the_place_of_its_caller() {
    for library in
        ["/build/demo/.cargo/registry/src/index-1949cf8c/spin-0.9.8/src/mutex.rs", "/rustc/9fc6/library/core/src/x.rs"]
    {
        let report = only(&format!(
            "panicked at {library}:12:5:\nlost\nstack backtrace:\n   0: 0xffffffff80001000 - rust_begin_unwind\n\
             \x20            at /build/kernel/src/panic.rs:9:5\n   1: 0xffffffff80002000 - core::panicking::panic_fmt\n\
             \x20            at /rustc/9fc6/library/core/src/panicking.rs:75:14\n\
             \x20  2: 0xffffffff80003000 - demo_kernel::mm::map\n             at /build/kernel/src/mm/map.rs:44:9\n\
             \x20  3: 0xffffffff80004000 - demo_kernel::main\n             at /build/kernel/src/main.rs:4:9\n"
        ));
        assert_eq!(report.source, Some(("/build/kernel/src/mm/map.rs".into(), 44)), "{report:#?}");
        assert!(report.notes.iter().any(|note| note.contains(library)));
    }
    let alone =
        only("panicked at /build/demo/.cargo/registry/src/index-1949cf8c/spin-0.9.8/src/mutex.rs:12:5:\nlost\n");
    assert_eq!(alone.source.map(|(_, line)| line), Some(12));
}

/// Shapes: !analyze of Windows' debugger, for a bug check that the table does not name; a setting in the same letters
#[test]
fn a_bug_check_of_any_name_is_told_by_its_parameters() {
    let lines = "Arguments:\nArg1: c0000005, The exception code that was not handled\n\
                 Arg2: 8cd9a76c, The address that the exception occurred at\nArg3: 89a54364, Trap Frame\n";
    let report = only(&format!("DEMO_MODE_EXCEPTION_NOT_HANDLED_M (1000008e)\nThis is common.\n{lines}"));
    assert_eq!((report.class, report.ip), (Class::Bugcheck, Some(0x8cd9_a76c)));
    assert!(report.headline.contains("DEMO_MODE_EXCEPTION_NOT_HANDLED_M"), "{}", report.headline);
    let plain = only("DEMO_DETECTED_VIOLATION (c4)\nA demo did a bad thing.\nArguments:\nArg1: 2000\nArg2: 8cd9a76c\n");
    assert_eq!(plain.family, "windows");
    for log in ["DEMO_ERROR_LIMIT (10)\nDEMO_POOL_SIZE (20)\n", "HTTP_ERROR (500)\nArguments: none\n"] {
        assert!(reports(log).is_empty(), "{log}");
    }
}

/// Shape: the traceback of the Go runtime, pkg/sentry of gVisor, the first lines lost
#[test]
fn a_traceback_of_gvisor_that_lost_its_head_has_its_first_frame() {
    let report = only(
        "gvisor.dev/gvisor/pkg/sentry/kernel.(*runDemo).execute(0x0, 0xc00055a000)\n\
         \tpkg/sentry/kernel/task_run.go:258 +0xed5\n\
         gvisor.dev/gvisor/pkg/sentry/kernel.(*Task).run(0xc00055a000, 0x1)\n\
         \tpkg/sentry/kernel/task_run.go:92 +0x18b\n",
    );
    assert!(report.function.is_some_and(|name| name.ends_with("execute")));
}

//! Reports of other kernels, and of a dialect that a user adds.

use super::super::class::Class;
use super::super::dialect::Dialects;
use super::super::{LogPosition, Recogniser};
use super::{only, reports};

#[test]
fn freebsd_names_the_function_behind_the_trap() {
    // Shape: sys/amd64/amd64/trap.c (trap_fatal), sys/kern/subr_kdb.c
    let report = only(
        "Fatal trap 12: page fault while in kernel mode\ncpuid = 2; apic id = 02\n\
         fault virtual address\t= 0x18\nfault code\t\t= supervisor read data, page not present\n\
         instruction pointer\t= 0x20:0xffffffff80a01234\ncurrent process\t\t= 812 (demo worker)\n\
         trap number\t\t= 12\npanic: page fault\ncpuid = 2\nKDB: stack backtrace:\n\
         #0 0xffffffff80c00001 at kdb_backtrace+0x65\n#1 0xffffffff80b00001 at vpanic+0x17f\n\
         #2 0xffffffff80b00002 at trap_fatal+0x38c\n#3 0xffffffff80b00003 at calltrap+0x8\n\
         #4 0xffffffff80a01234 at demo_lookup+0x44\nUptime: 5m12s\n",
    );
    assert_eq!(
        (report.family.as_str(), report.headline.as_str()),
        ("freebsd", "Fatal trap 12: page fault in demo_lookup")
    );
    assert_eq!((report.cpu, report.pid, report.comm.as_deref()), (Some(2), Some(812), Some("demo worker")));
    assert_eq!((report.fault_address, report.ip), (Some(0x18), Some(0xffff_ffff_80a0_1234)));
}

#[test]
fn the_lines_behind_panic_tell_the_kernel() {
    // Shapes: NetBSD sys/ddb/db_trace.c, OpenBSD sys/ddb/db_run.c
    let netbsd = only(
        "panic: kernel diagnostic assertion \"x > 0\" failed: file \"sys/demo.c\", line 12\n\
         cpu1: Begin traceback...\nvpanic() at netbsd:vpanic+0x183\n\
         demo_open() at netbsd:demo_open+0x3f\ncpu1: End traceback...\n",
    );
    assert_eq!(
        (netbsd.family.as_str(), netbsd.class, netbsd.function.as_deref()),
        ("netbsd", Class::Assertion, Some("demo_open"))
    );
    assert_eq!(netbsd.source, Some(("sys/demo.c".into(), 12)));
    let openbsd = only(
        "panic: demo: lock not held\nStopped at      db_enter+0x14:  popq    %rbp\n\
             TID    PID    UID     PRFLAGS     PFLAGS  CPU  COMMAND\n\
         *123456  4321      0         0          0    1K demo\npanic() at panic+0x13f\n\
         demo_ioctl(ffff,1,2) at demo_ioctl+0x55\n",
    );
    assert_eq!((openbsd.family.as_str(), openbsd.function.as_deref()), ("openbsd", Some("demo_ioctl")));
    assert_eq!((openbsd.cpu, openbsd.comm.as_deref()), (Some(1), Some("demo")));
}

#[test]
fn rust_kernels_say_the_place_in_two_forms() {
    // Shapes: core::panic::PanicInfo before and since Rust 1.73
    let new = only(
        "[ERROR] panicked at kernel/src/fs/demo.rs:41:5:\nno dentry left\n\
            0: 0xffffffff80001234 - kernel::fs::demo::open\n",
    );
    assert_eq!(new.source, Some(("kernel/src/fs/demo.rs".into(), 41)));
    assert_eq!((new.message.as_str(), new.function.as_deref()), ("no dentry left", Some("kernel::fs::demo::open")));
    let old = only("panicked at 'no dentry left', src/demo.rs:41:5\n");
    assert_eq!((old.message.as_str(), old.source), ("no dentry left", Some(("src/demo.rs".into(), 41))));
}

#[test]
fn small_kernels_are_read_without_a_row() {
    let report = only(
        "*** KERNEL PANIC: page table is gone\nEIP=c0101234 CR2=00000010 ESP=c0200000\n\
         EAX=00000001 EBX=00000002\n[0] 0xc0101234 mm_map+0x24\n[1] 0xc0105678 main+0x10\nSystem halted\n\
         ",
    );
    assert_eq!((report.class, report.function.as_deref()), (Class::Panic, Some("mm_map")));
    assert_eq!(report.registers.iter().map(|set| set.registers.len()).sum::<usize>(), 5);
    // Shape: xv6-riscv kernel/trap.c
    let report =
        only("scause 0x000000000000000d\nsepc=0x0000000080002a3c stval=0x0000000000000008\npanic: kerneltrap\n");
    assert_eq!((report.family.as_str(), report.ip, report.fault_address), ("xv6", Some(0x8000_2a3c), Some(8)));
    // Nothing more can be read: the line is reported all the same.
    assert_eq!(only("!! DOUBLE FAULT !!\n").class, Class::DoubleFault);
    assert_eq!(only("Assertion failed: head != tail\n").class, Class::Assertion);
}

#[test]
fn embedded_kernels_have_rows() {
    // Shapes: Zephyr arch/arm/core/fatal.c, seL4 src/machine/io.c, ESP-IDF panic.c
    let zephyr = only(
        "E: ***** MPU FAULT *****\nE:   Data Access Violation\n\
         E: r0/a1:  0x00000001  r1/a2:  0x20000abc  r2/a3:  0x00000000\n\
         E: Faulting instruction address (r15/pc): 0x08001234\n\
         E: >>> ZEPHYR FATAL ERROR 19: Unknown error on CPU 0\nE: Current thread: 0x20000100 (demo)\n\
         E: Halting system\n",
    );
    assert_eq!(
        (zephyr.family.as_str(), zephyr.ip, zephyr.comm.as_deref()),
        ("zephyr", Some(0x0800_1234), Some("demo"))
    );
    let sel4 = only(
        "seL4 failed assertion 'cap_valid' at /src/object/demo.c:77 in function decodeDemo\n\
         halting...\n",
    );
    assert_eq!((sel4.class, sel4.function.as_deref()), (Class::Assertion, Some("decodeDemo")));
}

#[test]
fn a_user_adds_a_kernel_in_a_file() {
    let rows = r#"
[[dialect]]
name = "lemon"
lines = ["task {pid:dec} \"{comm}\", pc {ip:hex}"]
frames = ["[{:dec}] {address:hex} {symbol:sym}+{offset:hex}"]
registers = ["A", "B"]
ends = ["*** lemon: halted"]
skip = ["lemon_panic"]

[[dialect.begins]]
line = "*** lemon: core {cpu:dec} died of {kind} at {address:hex}"
class = "page-fault"
title = "lemon: {kind} in {function}"
"#;
    let mut recogniser = Recogniser::with(Dialects::from_toml(rows).expect("sound rows"));
    let log = "*** lemon: core 1 died of page fault at 0xdeadb000\n\
         task 12 \"shell\", pc 0xffffffff80001234\nA=0x1 B=0x2\n[0] 0xffffffff80001230 lemon_panic+0x2\n\
         [1] 0xffffffff80001234 read_inode+0x24\n*** lemon: halted\n";
    for (index, line) in log.lines().enumerate() {
        recogniser.line(line.as_bytes(), LogPosition { offset: 0, line: index as u64 + 1 });
    }
    recogniser.finish();
    let report = recogniser.next_report().expect("a report");
    assert_eq!((report.family.as_str(), report.headline.as_str()), ("lemon", "lemon: page fault in read_inode"));
    assert_eq!(
        (report.cpu, report.pid, report.comm.as_deref(), report.registers.len()),
        (Some(1), Some(12), Some("shell"), 1)
    );
    // What the row skips is not a frame of the failure for those who read the dump.
    let stack = |at: usize| report.stacks[at].frames.iter().filter_map(|frame| frame.symbol.as_deref()).collect();
    let (failure, way): (Vec<_>, Vec<_>) = (stack(0), stack(1));
    assert_eq!((failure, way), (vec!["read_inode"], vec!["lemon_panic"]));
    assert_eq!(report.stacks[1].title.as_deref(), Some("the way into the panic"));
}

#[test]
fn programs_that_speak_of_faults_are_not_crashes() {
    for line in [
        "page fault handler installed",
        "pagefault: lazily mapped 0x7fff0000",
        "Panic handler: ready",
        "exceptions: 0 so far",
        "heap: assertion checks enabled",
        "FATAL: Module demo not found.",
        "fault injection is off",
        "on panic: reboot",
    ] {
        assert!(reports(line).is_empty(), "{line}");
    }
}

/// Shape: sys/ddb/db_command.c (scripts), sys/amd64/amd64/db_trace.c.
#[test]
fn a_session_of_freebsd_s_debugger_is_a_panic() {
    let report = only(
        "db:0:kdb.enter.default>  show pcpu\n\
         cpuid        = 3\n\
         curthread    = 0xfffff80001959000: pid 11 tid 100003 critnest 3 \"demo: cpu3\"\n\
         db:0:kdb.enter.default>  bt\n\
         Tracing pid 11 tid 100003 td 0xfffff80001959000\n\
         kdb_enter() at kdb_enter+0x33/frame 0xfffffe001d71a000\n\
         panic() at panic+0x43/frame 0xfffffe001d71a010\n\
         demo_lookup() at demo_lookup+0x46/frame 0xfffffe001d71a020\n",
    );
    assert_eq!((report.class, report.headline.as_str()), (Class::Panic, "panic in demo_lookup"));
    assert_eq!((report.cpu, report.pid, report.comm.as_deref()), (Some(3), Some(11), Some("demo: cpu3")));
}

/// Shape: sys/arm64/arm64/db_trace.c of FreeBSD 11: the callee, where it was called, and its registers below.
#[test]
fn frames_of_older_freebsd_name_the_callee() {
    let report = only(
        "panic: demo length\n\
         KDB: stack backtrace:\n\
         vpanic() at kassert_panic+0x164\n\
         \t pc = 0xffffff8000153000  lr = 0xffffff8000153004\n\
         \t sp = 0xffffff80685b2000  fp = 0xffffff80685b2010\n\
         \n\
         demo_decode() at demo_run+0x30\n\
         \t pc = 0xffffff8000153004  lr = 0xffffff80003cd000\n",
    );
    assert_eq!(report.function.as_deref(), Some("demo_decode"));
}

/// Shape: xen/arch/x86/traps.c: what kind of address each frame is, and static functions with their file.
#[test]
fn xen_s_trace_before_its_panic_belongs_to_it() {
    let report = only(
        "(XEN) Xen call trace:\n\
         (XEN)    [<ffff82d0403a5000>] R demo.c#demo_prepare+0x288/0x390\n\
         (XEN)    [<ffff82d0403a6000>] S demo_init+0x19/0x3c0\n\
         (XEN) \n\
         (XEN) ****************************************\n\
         (XEN) Panic on CPU 2:\n\
         (XEN) Xen BUG at demo/init.c:1386\n\
         (XEN) ****************************************\n",
    );
    assert_eq!((report.class, report.function.as_deref()), (Class::Bug, Some("demo_prepare")));
    assert_eq!((report.cpu, report.source.as_ref().map(|source| source.1)), (Some(2), Some(1386)));
    assert_eq!(report.stacks[0].frames.len(), 2);
}

/// Shape: sys/amd64/amd64/db_trace.c (db_nextframe); the lines before the stack are lost.
#[test]
fn a_stack_without_its_report_is_a_death() {
    let report = only(
        "demo_populate() at demo_populate+0x140/frame 0xfffffe034d000000\n\
         vm_fault() at vm_fault+0x75/frame 0xfffffe034d000010\n\
         calltrap() at calltrap+0x8/frame 0xfffffe034d000020\n\
         --- trap 0xc, rip = 0x820000000, rsp = 0x7fff00000000, rbp = 0x7fff00000010 ---\n\
         Uptime: 23h38m34s\n",
    );
    assert_eq!((report.class, report.function.as_deref()), (Class::Oops, Some("demo_populate")));
    assert_eq!(report.stacks[0].frames.len(), 3);
}

/// Shape: kgdb(1) of FreeBSD, `bt` over a core.
#[test]
fn a_debugger_s_backtrace_of_a_panic_is_a_death() {
    let report = only(
        "#0  doadump (textdump=1) at pcpu.h:228\n\
         #1  0xffffffff80600000 in kern_reboot (howto=260) at /usr/src/sys/kern/kern_shutdown.c:415\n\
         #2  0xffffffff80600010 in vpanic (fmt=<value optimized out>) at /usr/src/sys/kern/kern_shutdown.c:811\n\
         #3  0xffffffff80600020 in demo_take (c=0xfffff80000000000, opts=0) at /usr/src/sys/kern/demo.c:294\n",
    );
    assert_eq!((report.class, report.function.as_deref()), (Class::Panic, Some("demo_take")));
}

/// Shape: sys/vm/vm_fault.c prints it before its panic.
#[test]
fn a_fault_on_a_nofault_entry_is_a_page_fault() {
    let report = only("vm_fault_lookup: fault on nofault entry addr: 0xfffffff021600000\nvpanic+0x131\npanic+0x43\n");
    assert_eq!((report.class, report.fault_address), (Class::PageFault, Some(0xffff_fff0_2160_0000)));
}

/// Shape: xen/arch/x86/traps.c: the registers are printed for every kind of death, and CR2 is only one of a page fault.
#[test]
fn a_register_dump_of_xen_is_no_page_fault() {
    let report = only(
        "(XEN) ----[ Xen-4.17.2  x86_64  debug=n  Not tainted ]----\n\
         (XEN) CPU:    0\n\
         (XEN) RIP:    e008:[<ffff82d040200000>] demo.c#demo_free+0x65/0xd0\n\
         (XEN) cr3: 000000091e000000   cr2: 00000000bf200000\n",
    );
    assert_eq!((report.function.as_deref(), report.fault_address), (Some("demo_free"), None));
}

#[test]
fn lines_that_programs_print_too_need_a_kernels_evidence() {
    // Shapes: PostgreSQL's elog PANIC, a lone frame of FreeBSD's ddb quoted in a message
    for log in [
        "PANIC:  could not locate a valid checkpoint record\nLOG:  startup process was terminated\n",
        "demo() at demo+0x42/frame 0xfffffe0012345678\nall is well\n",
    ] {
        assert!(reports(log).is_empty(), "{log}{:#?}", reports(log));
    }
    let stack = "demo() at demo+0x42/frame 0xfffffe0012345678\ncaller() at caller+0x8/frame 0xfffffe0012345698\n";
    assert_eq!(only(stack).family, "freebsd");
    // Shape: Redox kernel/src/panic.rs before 2024
    let redox = only("PANIC: no context\nFILE: src/context/list.rs\nLINE: 31\nCPU 1, PID 7\nTRACE: 1f00\n");
    assert_eq!((redox.family.as_str(), redox.cpu), ("redox", Some(1)));
}

#[test]
fn the_traceback_of_a_go_program_is_none_of_a_kernel() {
    // Shape: Go's runtime/panic.go and runtime/traceback.go
    let traceback = |function: &str| {
        format!(
            "panic: runtime error: index out of range [3] with length 3\n\ngoroutine 7 [running]:\n\
             {function}(0xc0000b2000, 0x3)\n\t/src/demo/demo.go:42 +0x1d\nmain.main()\n\t/src/demo/main.go:9 +0x85\n\
             exit status 2\n"
        )
    };
    let program = only(&traceback("example.org/demo.(*Table).Row"));
    assert!(program.of_program, "{program:#?}");
    let sentry = only(&traceback("gvisor.dev/gvisor/pkg/sentry/mm.(*MemoryManager).Fork"));
    assert!(!sentry.of_program && sentry.class == Class::Panic, "{sentry:#?}");
    // The package that marks the kernel stands in the guilty frame, which is kept.
    assert_eq!(sentry.function.as_deref(), Some("gvisor.dev/gvisor/pkg/sentry/mm.(*MemoryManager).Fork"));
}

/// Shape: FreeBSD's periodic(8) mails, which show the lines of dmesg that are new since yesterday.
#[test]
fn a_report_in_a_comparison_is_read_behind_its_plus() {
    let report = only(
        "+Fatal trap 12: page fault while in kernel mode\n+cpuid = 1; apic id = 01\n\
         +fault virtual address\t= 0x37d9101000\n+\t\t\t= DPL 0, pres 1, long 1\n\
         +current process\t\t= 673 (demo)\n+#0 0xffffffff80e30003 at linux_dump_stack+0x23\n\
         +#1 0xffffffff830f03c3 at demo_check+0xb3\n",
    );
    assert_eq!((report.family.as_str(), report.cpu, report.comm.as_deref()), ("freebsd", Some(1), Some("demo")));
    assert_eq!((report.fault_address, report.function.as_deref()), (Some(0x37_d910_1000), Some("demo_check")));
}

/// Shape: the files of macOS' diagnostics (`.panic`, `.ips`): one JSON string, often cut off.
#[test]
fn a_report_in_a_string_of_json_is_read() {
    let line = concat!(
        r#"  "panicString" : "panic(cpu 1 caller 0xfffffff025a00984): demo \"watchdog\" detected\nOS version: 15P1\n"#,
        r"Panicked task 0xffffffe000749720: 2604 pages, 166 threads: pid 0: kernel_task\n",
        r"Panicked thread: 0xffffffe000a00000, backtrace: 0xffffffe016f00530, tid: 312\n",
        r"\t\t  lr: 0xfffffff0263f08f0  fp: 0xffffffe016f00670\n",
        r#"\t\t  lr: 0xfffffff0262e05f4  fp: 0xffffffe016f00680\n","#,
    );
    for line in [line, &line[..line.len() - 12]] {
        let report = only(line);
        assert_eq!((report.family.as_str(), report.cpu, report.comm.as_deref()), ("xnu", Some(1), Some("kernel_task")));
        assert_eq!(report.message, "demo \"watchdog\" detected");
        let frames = report.stacks.first().map(|stack| stack.frames.len());
        assert!(frames >= Some(1), "{report:#?}");
    }
}

/// Shapes: sched/misc/assert.c, arch/risc-v/src/common/riscv_exception.c, arch/arm/src/armv8-m/arm_hardfault.c
#[test]
fn nuttx_says_the_assertion_the_fault_and_the_task() {
    let assertion = only(
        "[CPU0] dump_assert_info: Current Version: NuttX  10.4.0 f7f1bb863f Jul 15 2025 17:38:32 xtensa\n\
         [CPU0] dump_assert_info: Assertion failed : at file: mm/demo.c:243 task(CPU0): nsh process: nsh 0x4201b1ac\n\
         [CPU0] up_dump_register:    PC: 420376ab    PS: 00060322\n\
         [CPU0] up_dump_register:   A12: 00000000   A13: 00000000   A14: 3fcb2388   A15: 3fcbe970\n\
         [CPU0] up_dump_register:   SAR: 0000000f CAUSE: 9cc37aea VADDR: aaaaadba\n\
         [CPU0] up_dump_register:  LBEG: 400554b9  LEND: 400554dd  LCNT: 82023245\n",
    );
    let names = assertion.registers.iter().flat_map(|set| &set.registers).map(|(name, _)| name.as_str());
    let names: Vec<_> = names.collect();
    assert_eq!(names, "PC PS A12 A13 A14 A15 SAR CAUSE VADDR LBEG LEND LCNT".split(' ').collect::<Vec<_>>());
    assert_eq!((assertion.family.as_str(), assertion.class), ("nuttx", Class::Assertion));
    assert_eq!((assertion.source.as_ref(), assertion.comm.as_deref()), (Some(&("mm/demo.c".into(), 243)), Some("nsh")));
    let fault = only(
        "nsh> [1387274436608000.001000] riscv_exception: EXCEPTION: Store/AMO access fault. MCAUSE: 00000007, \
         EPC: 8020cc90, MTVAL: 00000018\n\
         [1387274436608000.001000] riscv_fault_handler: PANIC!!! Exception = 00000007\n\
         [1387274436608000.001000] dump_assert_info: Assertion failed panic: at file: common/riscv_exception.c:135 \
         task: demo process: Kernel 0x80201bf0\n",
    );
    assert_eq!((fault.headline.as_str(), fault.comm.as_deref()), ("Store/AMO access fault", Some("demo")));
    assert_eq!((fault.fault_address, fault.ip), (Some(0x18), Some(0x8020_cc90)));
    let hard = only(
        "[17] arm_hardfault: PANIC!!! Hard fault: 00000000\n\
         [17] up_assert: Assertion failed at file:armv8-m/arm_hardfault.c line: 134 task: init\n\
         [17] [BackTrace|17|0]:   0xc0f946e  0xc0ec74a  0xc0f9868\n",
    );
    assert_eq!((hard.headline.as_str(), hard.comm.as_deref()), ("hard fault", Some("init")));
    assert_eq!(hard.stacks.first().map(|stack| stack.frames.len()), Some(3));
}

/// Shapes: sys/arch/amd64/amd64/trap.c of both: the first line is the same.
#[test]
fn the_second_line_tells_two_kernels_apart_that_begin_alike() {
    let netbsd = only(
        "uvm_fault(0xfffffe8071e49b90, 0x0, 1) -> e\nfatal page fault in supervisor mode\n\
         trap type 6 code 0 rip ffffffff805d085d cs 8 rflags 10286 cr2 8 ilevel 0 rsp fffffe80013f9bf0\n\
         curlwp 0xfffffe8059c6f140 pid 5782.5 lowest kstack 0xfffffe80013f72c0\npanic: trap\n\
         cpu0: Begin traceback...\nvpanic() at netbsd:vpanic+0x13c\nalltraps() at netbsd:alltraps+0xc0\n\
         demo_unpark() at netbsd:demo_unpark+0x3d\ncpu0: End traceback...\n",
    );
    assert_eq!((netbsd.family.as_str(), netbsd.pid), ("netbsd", Some(5782)));
    assert_eq!((netbsd.ip, netbsd.function.as_deref()), (Some(0xffff_ffff_805d_085d), Some("demo_unpark")));
}

/// Shapes: esp_system/panic.c; seL4 src/arch/riscv; core::panic::PanicInfo as `{:#?}`; C++ and Mach-O names in stacks
#[test]
fn what_other_kernels_print_beside_the_usual_is_taken() {
    let esp = only(
        "Guru Meditation Error: Core  0 panic'ed (LoadProhibited). Exception was unhandled.\n\
         Backtrace:0x4008b562:0x3ffc3440 0x400dc81f:0x3ffc3450 0x400d3962:0x3ffc3600\n",
    );
    let frames: Vec<_> = esp.stacks.iter().flat_map(|stack| &stack.frames).filter_map(|frame| frame.address).collect();
    assert_eq!(frames, [0x4008_b562, 0x400d_c81f, 0x400d_3962]);
    let sel4 = only("KERNEL ABORT (exception within s-mode)!\nscause: 0xf, stval: 0x8\nhalting...\n");
    assert_eq!((sel4.family.as_str(), sel4.error_code, sel4.fault_address), ("sel4", Some(15), Some(8)));
    let rust = only(
        "[panic]:PanicInfo {\n    payload: Any { .. },\n    message: Some(\n        demo lost its way,\n    ),\n\
         location: Location {\n        file: \"src/demo.rs\",\n        line: 65,\n        col: 9,\n    },\n}\n",
    );
    assert_eq!(rust.source, Some(("src/demo.rs".into(), 65)));
    assert!(rust.message.starts_with("demo lost its way"), "{}", rust.message);
    let long = only(&format!(
        "panicked at src/trap.rs:225:13:\n[C#14:0x80170a20] Unexpected trap: {}\n",
        "a0: 1, ".repeat(90)
    ));
    assert!(long.message.starts_with("[C#14:0x80170a20] Unexpected trap"), "{}", long.message);
    let serenity = only(
        "[dash(323:323)]: ASSERTION FAILED: demo()\n\
         [dash(323:323)]: ./Kernel/Demo.cpp:176 in void Kernel::demo(Frame*)\n\
         Kernel + 0x0000000000319292  Kernel::__panic(char const*, unsigned int, char const*) +0x138\n\
         Kernel + 0x0000000000314cf2  __assertion_failed(char const*, char const*, unsigned int) +0x12e\n\
         Kernel + 0x00000000003ebafc  Kernel::demo(Frame*) +0xad6\n",
    );
    let names: Vec<_> =
        serenity.stacks.iter().flat_map(|stack| &stack.frames).filter_map(|frame| frame.symbol.as_deref()).collect();
    assert_eq!(names.first(), Some(&"Kernel::__panic(char const*, unsigned int, char const*)"));
    let illumos = only(
        "panic message: BAD TRAP: type=d (#gp General protection) rp=ffffd001f2b38b90 addr=0\n\
         > ::panicinfo\n             cpu               10\n",
    );
    assert_eq!((illumos.family.as_str(), illumos.cpu), ("illumos", Some(10)));
}

/// Found by the random test of the properties: a message of blanks in a line of HTML.
#[test]
fn a_report_without_a_word_is_named_by_its_class() {
    let report = only("&lt;panic: > \n#0 0xffffffff80001234 at f+0x1\n");
    assert_eq!(report.headline, "panic");
}

#[test]
fn what_fails_in_firmware_and_small_kernels_is_said_on_a_line_of_its_own() {
    // Shapes: OpenSBI lib/sbi/sbi_trap.c; U-Boot arch/arm/lib/interrupts_64.c; Zephyr's fault of a Cortex-M;
    // newlib's assert under ESP-IDF; Xen's xen/drivers/char/console.c
    let sbi = only(
        "sbi_trap_error: hart1: trap0: double trap handler failed (error -10)\n\n\
         sbi_trap_error: hart1: trap0: mcause=0x0000000000000010 mtval=0x0000000000000000\n\
         sbi_trap_error: hart1: trap0: mepc=0x00000000802000d8 mstatus=0x8000000a01006900\n",
    );
    assert_eq!((sbi.family.as_str(), sbi.headline.as_str()), ("opensbi", "OpenSBI: double trap handler failed"));
    assert_eq!((sbi.cpu, sbi.ip, sbi.fault_address), (Some(1), Some(0x8020_00d8), None));
    let abort = only(
        "   Loading Device Tree to 00000000bfff4000 ... \"Synchronous Abort\" handler, esr 0x96000045\n\
         elr: 000000000006e1cc lr : 0000000000068fd8 (reloc)\n",
    );
    assert_eq!((abort.family.as_str(), abort.ip), ("u-boot", Some(0x6_e1cc)));
    let zephyr = only(
        "E: ***** BUS FAULT *****\nE:   BFAR Address: 0xa\n\
         E: Faulting instruction address: demo_get (net_buf/buf.c:82)\nE: Current thread: Demo Work\n",
    );
    assert_eq!((zephyr.function.as_deref(), zephyr.comm.as_deref()), (Some("demo_get"), Some("Demo Work")));
    let esp = only(
        "assertion \"a == B::C || a == B::D\" failed: file \"/demo/page.cpp\", line 315, function: esp_err_t \
         nvs::Demo::erase(size_t)\nabort() was called at PC 0x400de1a7\n\
         Guru Meditation Error: Core  0 panic'ed (abort)\n\nBacktrace: 0x400de20e:0x3ffb64f0\n",
    );
    assert_eq!((esp.class, esp.function.as_deref()), (Class::Assertion, Some("nvs::Demo::erase")));
    assert_eq!(esp.source, Some(("/demo/page.cpp".into(), 315)));
    let xen = only(
        "(XEN) ****************************************\n(XEN) Panic on CPU 2:\n\
         (XEN) Unable to find a demo in the tree\n(XEN) ****************************************\n",
    );
    assert_eq!((xen.headline.as_str(), xen.cpu), ("Xen panic: Unable to find a demo in the tree", Some(2)));
}

#[test]
fn reports_of_systems_that_saved_a_panic_are_read() {
    // Shapes: fmdump(8) of illumos; WinDbg without its banner
    let illumos = only(
        "  panicstr = BAD TRAP: type=e (#pf Page fault) rp=fffffe0003540e00 addr=8 occurred in module \"genunix\" due \
         to a NULL pointer dereference\n  panicstack =\n      unix:trap+e08 () |\n      unix:cmntrap+e6 () |\n      \
         genunix:list_demo+2c () |\n      virtio:vq_demo+43 () |\n",
    );
    assert_eq!((illumos.family.as_str(), illumos.fault_address), ("illumos", Some(8)));
    assert_eq!(illumos.function.as_deref(), Some("list_demo"));
    let sparc = only(
        "BAD TRAP: type=10 (illegal instruction)\npcbe.SUNW,UltraSPARC-T1:demo_program+88\ngenunix:kcpc_demo+ec\n\
         unix:cu_init+110\n",
    );
    let names: Vec<_> = sparc.stacks[0].frames.iter().filter_map(|frame| frame.symbol.as_deref()).collect();
    assert_eq!(names, ["demo_program", "kcpc_demo", "cu_init"]);
    assert_eq!(sparc.stacks[0].frames[0].offset, Some(0x88));
    let windows = only(
        "IRQL_NOT_LESS_OR_EQUAL (a)\nArguments:\nArg1: 0000000000000000, memory referenced\n\
         Arg2: 0000000000000002, IRQL\n",
    );
    assert_eq!((windows.family.as_str(), windows.class), ("windows", Class::Bugcheck));
}

#[test]
fn a_debugger_is_not_where_the_kernel_failed() {
    // Shape: sys/ddb/db_trap.c of NetBSD
    let stopped = only(
        "panic: kernel diagnostic assertion \"demo\" failed: file \"sys/demo.c\", line 17\n\
         Stopped in pid 104.104 (init) at netbsd:cpu_Debugger+0x4\n",
    );
    assert_eq!((stopped.function.as_deref(), stopped.comm.as_deref()), (None, Some("init")));
    let fault = only(
        "uvm_fault(0xc15ad960, 0xdf000, 2) -> 0xe\nfatal page fault in supervisor mode\n\
         Stopped in pid 0.0 (system) at netbsd:demo_region+0x27\n\
         demo_match(1,2) at netbsd:demo_match+0x19e\n",
    );
    assert_eq!(fault.function.as_deref(), Some("demo_region"));
    assert_eq!(fault.location.and_then(|frame| frame.symbol).as_deref(), Some("demo_region"));
}

#[test]
fn a_trap_of_a_bsd_is_told_by_its_type_and_its_table_of_processes() {
    // Shapes: sys/arch/amd64/amd64/trap.c and sys/ddb/db_command.c of OpenBSD, behind a logger that took `kernel: ` off
    let trap = only(
        "kernel: page fault trap, code=0\nStopped at    demo_route+0x263:        mov     0x40(%edi),%edx\n\
         ddb> trace\ndemo_route(e28cb7e4,2) at demo_route+0x263\ndemo_test(2,1f4ad) at demo_test+0x706\n",
    );
    assert_eq!((trap.family.as_str(), trap.function.as_deref()), ("openbsd", Some("demo_route")));
    assert_eq!(trap.headline, "page fault trap in demo_route");
    let user = only(
        "panic: attempt to execute user address 0x0 in supervisor mode\nStopped at      db_enter+0x18:  addq\n\
        \x20   TID    PID    UID     PRFLAGS     PFLAGS  CPU  COMMAND\n\
        \x20 72594  64597      0         0x2  0x4000000    0  demo-fuzzer\n\
         * 45102  55868      0     0x14000      0x200    1K softnet\n\
         db_enter() at db_enter+0x18\npanic() at panic+0x15c\npageflttrap() at pageflttrap+0x40b\n",
    );
    assert_eq!((user.cpu, user.comm.as_deref(), user.function.as_deref()), (Some(1), Some("softnet"), None));
    // The same words belong to FreeBSD's report when they stand in one.
    let freebsd = only(
        "Fatal trap 12: page fault while in kernel mode\nfault virtual address   = 0x3a\n\
         kernel: type 12 trap, code=0\nStopped at      demo_fault1+0x122:        incw    0x3a(%eax)\n\
         db> t\ndemo_fault1(c033bd0c,0) at demo_fault1+0x122\n",
    );
    assert_eq!((freebsd.family.as_str(), freebsd.function.as_deref()), ("freebsd", Some("demo_fault1")));
    // Shapes: trap.c of NetBSD's mac68k, powerpc and mips
    for (log, class, ip) in [
        (
            "Kernel FPU trap.\ntrap type 16, code = 0x0, v=0x0\nkernel program counter = 0x194\n",
            Class::Exception,
            Some(0x194),
        ),
        ("trap: kernel read DSI trap @ 0x10 by 0x8100 (DSISR 0x40000000, err=14)\n", Class::PageFault, Some(0x8100)),
        (
            "pid 0(system): trap: cpu0, address error (load or I-fetch) in kernel mode\n\
             status=0x3, cause=0x10, epc=0x80001234, vaddr=0x3\n",
            Class::Exception,
            Some(0x8000_1234),
        ),
    ] {
        let report = only(log);
        assert_eq!((report.family.as_str(), report.class, report.ip), ("netbsd", class, ip), "{log}");
    }
}

#[test]
fn a_report_in_quotation_marks_needs_what_a_kernel_prints_behind_it() {
    // Shape: src/kernel/faulthandler.c of seL4
    let cited = only(
        "\"Caught cap fault in send phase at address 0x0\nwhile trying to handle:\nuser exception 0x6 code 0x0\n\
         in thread 0xffaf7400 \"demo\" at address 0x80571eb\nWith stack:\n0x807b2b0: 0x401740\n0x807b2b4: 0x401100\n",
    );
    assert_eq!((cited.comm.as_deref(), cited.ip), (Some("demo"), Some(0x805_71eb)));
    assert!(
        reports("\"Caught cap fault in send phase at address 0x0\" is what it said\nand then nothing\n").is_empty()
    );
}

#[test]
fn the_panic_of_linux_behind_other_words_counts_when_its_last_lines_follow() {
    let report = only(
        "Job error: Kernel panic - not syncing: Attempted to kill init! exitcode=0x00000009\n\
         [    1.2] Kernel Offset: 0x19600000 from 0xffffffff81000000 (relocation range: 0x0-0x1)\n",
    );
    assert_eq!(report.class, Class::Panic);
    assert!(reports("Job error: Kernel panic - not syncing: Attempted to kill init!\nsee the attachment\n").is_empty());
}

#[test]
fn an_exception_of_xnu_and_an_assertion_in_pretty_quotation_marks_are_told_by_their_function_and_place() {
    // Shape: osfmk/i386/trap.c of XNU; newer ones print `type = 14=`.
    let newer = only(
        "panic(cpu 16 caller 0xffffff800433bb2a): Kernel trap at 0xffffff7f9cb9b1ab, type = 6=invalid opcode, \
         registers:\n\
         Backtrace (CPU 16), panicked thread: 0xffffff8ba1ac6598, Frame : Return Address\n\
         0xffffffa794aaf3c0 : 0xffffff7f9cb9b1ab org.demo.fs : _demo_sum + 0x11b\n",
    );
    assert_eq!((newer.cpu, newer.headline.as_str()), (Some(16), "type 6 invalid opcode in _demo_sum"));
    let trap = only(
        "panic(cpu 0 caller 0xffffff8007dd155a): Kernel trap at 0xffffff7f88881f3b, type 14=page fault, registers:\n\
         CR0: 0x000000008001003b, CR2: 0x0000000000000018, CR3: 0x00000000040bc000, CR4: 0x0000000000002660\n\
         Backtrace (CPU 0), Frame : Return Address\n\
         0xffffff80e945dc50 : 0xffffff8007cde792 mach_kernel : _panic + 0xe2\n\
         0xffffff80e945ded0 : 0xffffff7f88881f3b org.demo.fs : _demo_sync + 0x6d\n",
    );
    assert_eq!((trap.family.as_str(), trap.headline.as_str()), ("xnu", "type 14 page fault in _demo_sync"));
    for (open, close) in [('\'', '\''), ('‘', '’')] {
        let report = only(&format!("Assertion {open}demo > 0{close} failed at core/demo.c:244\n"));
        let place = report.source.as_ref().map(|(file, line)| (file.as_str(), *line));
        assert_eq!((report.class, place), (Class::Assertion, Some(("core/demo.c", 244))), "{open}");
    }
}

/// Shapes: uts/i86pc/os/trap.c and uts/common/os/panic.c of illumos, as console, syslog and mdb(1) have them
#[test]
fn a_trap_of_illumos_is_told_by_its_kind_whichever_line_says_it() {
    let console = "panic[cpu33]/thread=ffffff01e871bc40: BAD TRAP: type=e (#pf Page fault) rp=ffffff01e871b7d0 \
                   addr=116e occurred in module \"unix\" due to an illegal access to a user address\n";
    let syslog = "2013-10-18T09:27:31.763864+00:00 host unix: [ID 836849 kern.notice] \
                  #012#015panic[cpu33]/thread=ffff:\n2013-10-18T09:27:31.763871+00:00 host genunix: \
                  [ID 683410 kern.notice] BAD TRAP: type=e (#pf Page fault) rp=ffffff003d0074d0 addr=116e\n";
    for (log, place) in [(console, " in unix"), (syslog, "")] {
        let report = only(log);
        let headline = format!("BAD TRAP: #pf Page fault{place}");
        assert_eq!((report.family.as_str(), report.class, report.cpu), ("illumos", Class::PageFault, Some(33)));
        assert_eq!((&report.headline, report.fault_address), (&headline, Some(0x116e)));
    }
    let mdb = only("panic message: BAD TRAP: type=d (#gp General protection) rp=ffffd001f2b38b90 addr=0\n");
    assert_eq!((mdb.family.as_str(), mdb.class), ("illumos", Class::GeneralProtection));
}

/// Shapes: exceptions.cc of OSv, plat/kvm/x86/traps.c of Unikraft, Kernel/Library/Assertions.cpp of SerenityOS
#[test]
fn kernels_for_one_program_and_an_assertion_of_one_word_are_read() {
    let osv = only(
        "page fault outside application, addr: 0xffff800240000000 pc:0x3e0e3c text_start:0x202000\n[registers]\n\
         RIP: 0x00000000003e0e3c <memory::demo_allocator::free(memory::page_range*)+268>\n",
    );
    assert_eq!(osv.headline, "page fault in memory::demo_allocator::free");
    let unikraft = only(
        "[    0.127479] CRIT: [libkvmplat] <traps.c @   84> Unhandled Trap 8 (double fault), error code=0x0\n\
         [    0.182522] CRIT: [libkvmplat] <trace.c @   41> RIP: 0000000000165d51 CS: 0008\n\
         [    0.270205] CRIT: [libkvmplat] <trace.c @   44> RAX: 0000000000000002 RBX: 0000000000165d54\n",
    );
    assert_eq!((unikraft.family.as_str(), unikraft.class), ("unikraft", Class::DoubleFault));
    assert!(unikraft.registers.iter().flat_map(|set| &set.registers).any(|(name, _)| name == "RBX"), "{unikraft:#?}");
    let serenity = only(
        "[IO WorkQueue(2:2)]: ASSERTION FAILED: handler\n\
         [IO WorkQueue(2:2)]: ./Kernel/Demo.cpp:491 in void Kernel::demo_interrupt(Kernel::TrapFrame*)\n",
    );
    assert_eq!((serenity.class, serenity.comm.as_deref()), (Class::Assertion, Some("IO WorkQueue")));
}

/// Shapes: small kernels of hobby systems; QEMU's cpu_abort
#[test]
fn an_exception_in_the_middle_of_a_line_counts_with_the_registers_behind_it() {
    let small = only(
        " exception  general protection fault in task 1 (process 1)\n     eip: 0x00101010   eflags: 0x00000202\n\
              eax: 0x00000000      ebx: 0x00000000\n",
    );
    assert_eq!(small.class, Class::GeneralProtection);
    assert!(reports(" exception  general protection fault in task 1 (process 1)\nsystem ready\n").is_empty());
    let gave_up = only(
        "qemu: fatal: invalid tss type\nEAX=00000000 EBX=00009500 ECX=00000000 EDX=000003d5\n\
         EIP=00000000 EFL=00260002 [-------] CPL=3 II=0 A20=1 SMM=0 HLT=0\n",
    );
    assert_eq!((gave_up.class, gave_up.headline.as_str()), (Class::Exception, "QEMU gave up: invalid tss type"));
}

#[test]
fn reports_of_small_systems_that_had_no_place_have_one() {
    type Found<'a> = (&'a str, &'a str, Option<u64>);
    let cases: [Found<'_>; 9] = [
        (
            "KVM internal error. Suberror: 1\nemulation failure\nRAX=0 RBX=0\nRIP=ffff80000020ea22 RFL=00010086\n",
            "kvm",
            Some(0xffff_8000_0020_ea22),
        ),
        (
            "qemu: Failed to put registers after init: Invalid argument\nEAX=00000000\nEIP=c00083c6 EFL=00000082\n",
            "kvm",
            Some(0xc000_83c6),
        ),
        ("Hardfault.\nReturn Address: 0x26BE\n\t(DACCVIOL) Data Access Violation\n", "teensy", Some(0x26be)),
        ("BAO ERROR: unknown synchronous exception (3)\n", "bao", None),
        ("Fault #14, from unexpected cs: 0x60, ip: 0xffffffff80048b54\n", "managarm", Some(0xffff_ffff_8004_8b54)),
        (
            "***** CPU exception 6\nCurrent thread ID = 0x00400060\nFaulting segment:address = 0x0008:0x000012b7\n",
            "zephyr",
            Some(0x12b7),
        ),
        (
            "(XEN) ----[ Xen-4.8.5  x86_64 debug=n ]----\n(XEN) CPU:    3\n(XEN) RIP:    e033:[<00000000001f0f58>]\n",
            "xen",
            Some(0x1f_0f58),
        ),
        ("mbed assertation failed: status == osOK, file: .\\rtos\\demo.cpp, line 108\n", "mbed-os", None),
        (
            "Page Fault Exception\nError Code = 2\nEAX        = $FF000004\nEIP        = $001024DE\n",
            "generic",
            Some(0x10_24de),
        ),
    ];
    for (log, family, ip) in cases {
        let report = only(log);
        assert_eq!((report.family.as_str(), report.ip), (family, ip), "{log}");
    }
    let report = only("ERROR panicked at 'assertion failed: demo'\n");
    assert_eq!(report.headline, "panicked: assertion failed: demo");
}

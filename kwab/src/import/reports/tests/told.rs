//! Reports of kernels without a row that tell their place in words, reports that lost their head, and rows beside them.

use super::super::class::Class;
use super::{only, reports};

/// Shapes: small kernels in Rust and C, a one-line trap of RISC-V, sources in words
#[test]
fn a_line_of_an_unknown_kernel_tells_its_place() {
    for (log, ip, source, cpu) in [
        ("[EXCEPTION] code=2 (demo), epc=80001234, cause=00000002\n", Some(0x8000_1234), None, None),
        ("[demo] Page Fault at 0x10, rip=0xffffffff80001234\n", Some(0xffff_ffff_8000_1234), None, None),
        ("KERNEL PANIC: out of frames at mm/demo.c, line 120\n", None, Some(("mm/demo.c", 120)), None),
        ("KERNEL PANIC on CPU 3: lost\n  at mm/demo.c:120 in demo()\n", None, Some(("mm/demo.c", 120)), Some(3)),
        ("panic: lost\nlocation: file mm/demo.c line 120\n", None, Some(("mm/demo.c", 120)), None),
        ("core 3: panicked at src/demo.rs:7:5:\nlost\n", None, Some(("src/demo.rs", 7)), Some(3)),
    ] {
        let report = only(log);
        assert_eq!(report.ip, ip, "{log}");
        assert_eq!(report.source.as_ref().map(|(file, line)| (file.as_str(), *line)), source, "{log}");
        assert_eq!(report.cpu, cpu, "{log}");
    }
    // Prose and healthy lines with the same words.
    for log in [
        "[demo] page fault handler at 0x1000 installed\n",
        "a page fault is not an error of the kernel\nand nothing follows\n",
        "[EXCEPTION] vectors at 0x80000000\n",
        "Nov 28 12:00:01 host demo[97]: Unhandled exception. Demo.Failed: at mm/demo.c:12\n",
        "Unhandled exception. Demo.Failed: at mm/demo.c, line 12\n",
    ] {
        assert!(reports(log).is_empty(), "{log}{:#?}", reports(log));
    }
}

/// Shapes: mdb(1) of illumos, ddb(4) of OpenBSD and NetBSD, OSv's core/mmu.cc, Go's runtime, WinDbg's `kn`, probe-run
#[test]
fn a_stack_without_its_head_is_a_report() {
    let stack = |log: &str| {
        let report = only(log);
        (report.family.clone(), report.function.unwrap_or_default())
    };
    let illumos = "> $C\nffffd001f2b38cf0 demo_owner+0xd()\nffffd001f2b38d30 demo_free+0x37(ffffd065493b0008)\n\
                   > ::status\npanic message: BAD TRAP: type=d (#gp General protection) rp=ffffd001f2b38b90 addr=0\n";
    assert_eq!(stack(illumos), ("illumos".into(), "demo_owner".into()));
    let openbsd = "ddb{0}> trace\ndemo_get(d05e7c20,0,dab19ef8,d0169414,80) at demo_get+0x226\n\
                   demo_buf(d0a62000,d3c12b00) at demo_buf+0xa5\n";
    assert_eq!(stack(openbsd), ("openbsd".into(), "demo_get".into()));
    let netbsd = "db{0}> bt\ndemo_get() at netbsd:demo_get+0x226\ndemo_buf() at netbsd:demo_buf+0xa5\n";
    assert_eq!(stack(netbsd), ("netbsd".into(), "demo_get".into()));
    let osv = "Aborted\n\n[backtrace]\n0x3c7af2 osv::generate_signal(siginfo&, exception_frame_)+50\n\
               0x318e8b mmu::vm_fault(unsigned long, exception_frame*)+219\n0x34d315 demo_read+101\n";
    assert_eq!(stack(osv), ("osv".into(), "demo_read".into()));
    let go = "goroutine 1 gp=0x25ff836e1e0 m=4 mp=0x25ff8480008 [running]:\npanic({0x11f6b00?, 0x151c1e0?})\n\
              \tGOROOT/src/runtime/panic.go:879 +0x16f\ngvisor.dev/gvisor/pkg/sentry/demo.(*Demo).run(0x25ff)\n\
              \tpkg/sentry/demo/demo.go:219 +0x19d\n";
    assert_eq!(stack(go), ("go".into(), "gvisor.dev/gvisor/pkg/sentry/demo.(*Demo).run".into()));
    let windows = "*** Fatal System Error: 0x000000c1\n2: kd> kn\n # Child-SP          RetAddr           Call Site\n\
                   00 ffff878b`1fde6558 fffff807`3ec91582     nt!DbgBreakPointWithStatus [demo.asm @ 124]\n\
                   01 ffff878b`1fde6560 fffff807`3ec90d07     nt!KiBugCheckDebugBreak+0x12 [demo.c @ 447]\n\
                   02 ffff878b`1fde6d20 fffff807`3ed4bde1     demo!DemoFreePool+0xca [demo.c @ 2221]\n";
    assert_eq!(stack(windows), ("windows".into(), "DemoFreePool".into()));
    let probe = "stack backtrace:\n   0: 0x000002be - __bkpt\n   1: 0x000002bc - panic_probe::__cortex_m_rt_HardFault\n\
                 \x20  2: 0x0000036a - HardFault\n      <exception entry>\n   3: 0x000002d0 - __udf\n\
                 \x20  4: 0x0000025a - core::panicking::panic_fmt\n   5: 0x00000162 - demo::__cortex_m_rt_main\n";
    assert_eq!(stack(probe).1, "demo::__cortex_m_rt_main");
    let kgdb = "#3  0xffffffff80bd26bf in vpanic (fmt=0xffffffff82cf72a7 \"demo\") at demo.c:921\n\
                #4  0xffffffff80bd2423 in panic (fmt=0x0) at demo.c:844\n\
                #5  0xffffffff82a1b2c3 in demo_done (zio=0x0) at demo.c:7\n";
    assert_eq!(stack(kgdb), ("freebsd".into(), "demo_done".into()));
    let redox = "#0  kernel::panic::rust_begin_unwind (fmt=..., \n    file=..., line=<optimized out>)\n\
                 \x20   at src/panic.rs:20\n#1  0xffffff00001a2144 in core::panicking::panic_fmt ()\n\
                 #2  0xffffff00001a21b9 in kernel::demo::step ()\n";
    assert_eq!(stack(redox).1, "kernel::demo::step");
    let analyze = "00 ffff968a`ef821e90 fffff800`7345f1d1     nt!KiBreakpointTrap+0x35b\n\
                   01 ffff968a`ef822020 fffff800`7347fc9f     demo!demo_panic+0x71 [demo.c @ 87]\n\
                   02 ffff968a`ef822080 fffff800`73480072     demo!demo_assert+0x3f [demo.h @ 174]\n";
    assert_eq!(stack(analyze), ("windows".into(), "demo_panic".into()));
    let decoder = "Decoding stack results\n0x4008305d: panic_abort at esp_system/panic.c line 402\n\
                   0x4008b271: esp_system_abort at esp_system/esp_system.c line 129\n\
                   0x4008c1d1: demo_take at main/demo.c line 1545\n";
    assert_eq!(stack(decoder), ("esp-idf".into(), "demo_take".into()));
    // A program in Go dies the same way.
    let program = "goroutine 1 [running]:\npanic(0xadc740, 0x104f450)\n\truntime/panic.go:971 +0x499\n\
                   main.demo(0x1)\n\tdemo.go:7 +0x1\nmain.main()\n\tdemo.go:3 +0x1\n";
    assert!(reports(program).iter().all(|report| report.of_program), "{:#?}", reports(program));
}

/// Shapes: procnto of QNX, arch/arm of Little Kernel, hal/armv7a of Phoenix-RTOS, a probe's terminal, bold Markdown
#[test]
fn rows_of_more_kernels_are_read() {
    let qnx = only(
        "Shutdown[0,0] S/C/F=5/3/3 C/D=fe06601c/fe0fafb0\nQNX Version 7.1.0 Release 2021/06/08-17:43:35EDT KSB:80\n\
         [0]PID-TID=647179-1 P/T FL=41000400/00040000 state=00 \"./demo\"\narmle context[fe065368]:\n\
         0000: 00000000 0000004c 1b4c9044 1b4c8f88\ninstruction[1b4c65f4]:\nf8 29 00 00 6e 2a\nstack[5a07cdc8]:\n",
    );
    assert_eq!((qnx.family.as_str(), qnx.cpu, qnx.ip), ("qnx", Some(0), Some(0x1b4c_65f4)));
    assert_eq!(qnx.sp, Some(0x5a07_cdc8));
    let lk = only(
        "demo thread starting up, will go for busfault: exception frame at 0x20000be8\n\
         \tr0  0x000000c3 r1  0x0000c350 r2  0x0000000a r3 0x00000000 r4 0x0000c350\n\
         \tlr  0x08004f47 pc  0x080065cc psr 0x01000000\nHALT: spinning forever...\n",
    );
    assert_eq!((lk.family.as_str(), lk.ip), ("lk", Some(0x0800_65cc)));
    let phoenix = only(
        "Exception: 4 #Abort\n r0=00000000  r1=00000000  r2=000000b0  r3=00027ab8\n\
         \x20ip=fffffffc  sp=c0161ef4  lr=00019b55  pc=00015702\n\nin thread 18, process \"/bin/demo\" (PID: 8)\n",
    );
    assert_eq!((phoenix.family.as_str(), phoenix.comm.as_deref()), ("phoenix-rtos", Some("/bin/demo")));
    assert_eq!(phoenix.ip, Some(0x15702));
    let rtt = only(
        "00> [00:00:11.659,362] <err> os: ***** BUS FAULT *****\n\
         00> [00:00:11.659,423] <err> os: Faulting instruction address (r15/pc): 0x0001d3e2\n\
         00> [00:00:11.659,423] <err> os: >>> ZEPHYR FATAL ERROR 0: CPU exception on CPU 0\n",
    );
    assert_eq!((rtt.family.as_str(), rtt.ip, rtt.cpu), ("zephyr", Some(0x1d3e2), Some(0)));
    let twister = only(
        "DEBUG   - DEVICE: Running test suite E: ***** MPU FAULT *****\n\
         DEBUG   - DEVICE: E:   Data Access Violation\nDEBUG   - DEVICE: E:   MMFAR Address: 0x20002c08\n\
         DEBUG   - DEVICE: E: Faulting instruction address (r15/pc): 0x0001d3e2\n",
    );
    assert_eq!((twister.family.as_str(), twister.class), ("zephyr", Class::Exception));
    assert_eq!((twister.ip, twister.fault_address), (Some(0x1d3e2), Some(0x2000_2c08)));
    let riscv = only("E:      sp: 2fc07094\nE:    mepc: 2fc00f2a\nE: mstatus: 00001880\n");
    assert_eq!((riscv.family.as_str(), riscv.ip), ("zephyr", Some(0x2fc0_0f2a)));
    let acrn = only(
        "[5144571us][cpu=2][idle0][sev=2][seq=33]:= Unhandled exception: 6 (Invalid Opcode)\n\
         [5153963us][cpu=2][idle0][sev=2][seq=34]:\nHost Registers:\n\
         [5161005us][cpu=2][idle0][sev=2][seq=35]:= Vector=0x0000000000000006 RIP=0x0000000011014A31\n",
    );
    assert_eq!((acrn.family.as_str(), acrn.cpu, acrn.ip), ("acrn", Some(2), Some(0x1101_4a31)));
    let firmware = only(
        "qemu    | ExceptionData - 0000000000000000\n\
         qemu    | RIP  - 000000007EB36B16, CS  - 0000000000000038, RFLAGS - 0000000000010206\n\
         qemu    | RAX  - AFAFAFAFAFAFAFAF, RCX - AFAFAFAFAFAFAFAF, RDX - 000000007FE5DF38\n",
    );
    assert_eq!((firmware.family.as_str(), firmware.ip), ("edk2", Some(0x7eb3_6b16)));
    let hci = only("E: HCI Fatal error in: demo/src/hook.c at 88.\n");
    assert_eq!(hci.source, Some(("demo/src/hook.c".into(), 88)));
    let bold = only(
        "**Guru Meditation Error: Core  1 panic'ed (LoadProhibited). Exception was unhandled.\n\
         Core 1 register dump:\nPC      : 0x4008c484  PS      : 0x00060733  A0      : 0x8008c522\n",
    );
    assert_eq!((bold.family.as_str(), bold.cpu, bold.ip), ("esp-idf", Some(1), Some(0x4008_c484)));
}

/// Lines of change logs, where a sentence was broken, and the same words as a small kernel prints them
#[test]
fn a_sentence_about_a_failure_is_none() {
    for log in [
        "  - fix a stack\n    overflow in demo, and a\n    fatal error in low memory condition.\n",
        "* demo:\n  division by zero trap. Additionally, change the demo\n  assertion failure for certain inputs.\n",
        "  * UBSAN: Fail tests if a demo is detected\n",
        "* panic in demo, and more\n- fatal error when it ends.\n",
        "panic in some cases.\nkernel bug any longer, there is room for cleanup.\n",
    ] {
        assert!(reports(log).is_empty(), "{log}{:#?}", reports(log));
    }
    for log in ["page fault at 0xdead0000\n", "divide by zero at 80001234\n", "panic: lost\n", "fatal trap 12\n"] {
        assert_eq!(reports(log).len(), 1, "{log}");
    }
    let behind = "stack overflow\nrip=0xffffffff80001234 rsp=0xffffffff80009000 rbp=0x0\n";
    assert_eq!(reports(behind).len(), 1);
}

/// Shapes: core/arch/arm/kernel/abort.c of OP-TEE, humility(1) at a task of Hubris, event 1001 of Windows, the end of a
/// dump of the ESP8266, DuetPkg's registers behind the number of a port
#[test]
fn the_death_of_a_trusted_application_or_of_a_task_is_told_with_its_place() {
    let abort = only(
        "E/TC:? 0 User TA data-abort at address 0x0 (translation fault)\n\
         E/TC:? 0  esr 0x92000045  ttbr0 0x20000450fb080   ttbr1 0x00000000   cidr 0x0\n\
         E/TC:? 0  cpu #4          cpsr 0x60000100\nE/TC:? 0  x0  0000000000000000 x1  00000000801186b0\n\
         E/TC:? 0  x30 000000008001a860 elr 0000000080019e84\n",
    );
    assert_eq!((abort.family.as_str(), abort.ip, abort.cpu), ("op-tee", Some(0x8001_9e84), Some(4)));
    assert!(!abort.of_program);
    let panic = only(
        "E/TC:? 0 TA panicked with code 0xffff0001\nE/LD:  Status of TA 8aaaf201-2450-11e4-abe2-0002a5d5c57b\n\
         E/LD:  Call stack:\nE/LD:   0x0000000040014c3c\nE/LD:   0x0000000040011700\n",
    );
    assert_eq!((panic.family.as_str(), panic.class), ("op-tee", Class::Panic));
    assert_eq!(panic.stacks[0].frames[0].address, Some(0x4001_4c3c));
    let old = only(
        "ERROR:   TEE-CORE: user TA data-abort at address 0x0 (translation fault)\n\
         ERROR:   TEE-CORE:  cpu #2          cpsr 0x80000130\n\
         ERROR:   TEE-CORE:  r3 0x00000000      r7 0x00102718   r11 0x00000000    pc 0x00105648\n",
    );
    assert_eq!((old.family.as_str(), old.ip, old.cpu), ("op-tee", Some(0x10_5648), Some(2)));
    let riscv = only(
        "E/TC:? 0 User mode undef-abort at address 0x0\n\
         E/TC:? 0  cause 0000000000000002 epc 00000000400814C4 tval 0000000000000000   satp 800070000008E0D5\n\
         E/TC:? 0  cpu #1 status 0000000000040020\n",
    );
    assert_eq!((riscv.ip, riscv.cpu), (Some(0x4008_14c4), Some(1)));
    let core = only(
        "E/TC:? 0 TA panicked with code 0xbeef\n\
         E/TC:? 0 assertion 'demo()' failed at core/demo.h:22 <demo_pos>\n\
         E/TC:0 0 Panic at core/assert.c:28 <_break>\n",
    );
    assert_eq!((core.class, core.function.as_deref()), (Class::Assertion, Some("demo_pos")), "{core:#?}");
    let task = only(
        "ID TASK                       GEN PRI STATE\n\
         \x206 demo                      0   1 FAULT: reply fault: task id #0/gen0 (was: wait: reply from jefe/gen0)\n\
         \x20  |\n   +--->  0x24008110 0x0809805e userlib::sys_send_stub\n\
         \x20         0x240082c8 0x080992d9 task_demo::Demo::read\n                     @ /demo/src/lib.rs:137:14\n",
    );
    assert_eq!((task.family.as_str(), task.comm.as_deref()), ("hubris", Some("demo")));
    assert_eq!(task.function.as_deref(), Some("task_demo::Demo::read"), "{task:#?}");
    assert_eq!(task.stacks[0].frames[0].source, Some(("/demo/src/lib.rs".into(), 137)), "{task:#?}");
    let event = only(
        "The computer has rebooted from a bugcheck.  The bugcheck was: 0x0000000a (0x000000000000026c, \
         0x0000000000000002, 0x0000000000000000, 0xfffff800234dc1b9).\n",
    );
    assert_eq!((event.class, event.ip), (Class::Bugcheck, Some(0xffff_f800_234d_c1b9)), "{event:#?}");
    let rest = only("3fffff70:  3fff1114 401017a7 00000000 00000000\n<<<stack<<<\n\n ets Jan  8 2013,rst cause:4\n");
    assert_eq!(rest.family, "esp8266");
    let port = only(
        "  12: !!!! X64 Exception Type - 0D(#GP - General Protection)  CPU Apic ID - 00000001 !!!!\n\
         \x20 12: RIP  - 0000000140006384, CS  - 0000000000000018, RFLAGS - 0000000000010046\n",
    );
    assert_eq!((port.family.as_str(), port.cpu, port.ip), ("edk2", Some(1), Some(0x1_4000_6384)));
    let cut = only(
        "\t  x28: 0x0000000000000000 fp:  0xfffffe701a63b660  lr:  0x30ae7e002e2ed61c  sp:  0xfffffe701a63b640\n\
         \t  pc:  0xfffffe002e414d9c cpsr: 0x20401208         esr: 0x0000000096000006  far: 0x0000000000000068\n\n\
         Debugger message: panic\nMemory ID: 0x6\n",
    );
    assert_eq!((cut.family.as_str(), cut.ip, cut.fault_address), ("xnu", Some(0xffff_fe00_2e41_4d9c), Some(0x68)));
    let newest_first = only(
        "2024-01-04T21:52:37\tNotice\tkernel\tvpanic() at vpanic+0x151/frame 0xfffffe00107d62e0\t\n\
         2024-01-04T21:52:37\tNotice\tkernel\tpanic: page fault\t\n\
         2024-01-04T12:56:30\tNotice\tkernel\tKDB: enter: panic\t\n\
         2024-01-04T12:56:30\tNotice\tkernel\tpanic() at panic+0x43/frame 0xfffffe00107d1340\t\n",
    );
    assert_eq!((newest_first.class, newest_first.family.as_str()), (Class::PageFault, "freebsd"), "{newest_first:#?}");
}

/// Shape: the log of `cargo test` with `RUST_BACKTRACE=1`
#[test]
fn the_backtrace_of_a_program_in_rust_is_no_crash_of_a_kernel() {
    let frames = |library: &str| {
        format!(
            "assertion `left == right` failed\n  left: 1\n right: 2\nstack backtrace:\n\
             \x20  0: __rustc::rust_begin_unwind\n\
             \x20            at {library}/panicking.rs:689:5\n   1: core::panicking::panic_fmt\n\
             \x20            at /rustc/5980/library/core/src/panicking.rs:80:14\n   2: demo::mm::unmap\n\
             \x20            at ./src/mm.rs:34:5\n   3: demo::mm::exit\n             at ./src/mm.rs:90:5\n"
        )
    };
    let program = reports(&frames("/rustc/5980/library/std/src"));
    assert!(program.iter().all(|report| report.of_program), "{program:#?}");
    let kernel = reports(&frames("./src/lang"));
    assert!(kernel.iter().any(|report| !report.of_program), "{kernel:#?}");
}

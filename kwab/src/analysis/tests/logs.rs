//! The real logs, imported and judged.

use std::path::Path;

use super::*;
use crate::import::{Options, PendingFile, import};
use crate::symbols::{Finder, IndexCache};

/// The triage of every dump that a log becomes.
fn judged(name: &str) -> Vec<Triage> {
    imported(name).into_iter().map(judge).collect()
}

/// Every dump that a log of `testing/data/logs` becomes.
fn imported(name: &str) -> Vec<Vec<u8>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testing/data/logs").join(name);
    dumps_of(std::fs::File::open(path).unwrap(), name)
}

/// Every dump that a log becomes.
fn dumps_of(log: impl std::io::Read, name: &str) -> Vec<Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { source: name.to_owned(), folder: Some(folder.path().to_path_buf()) };
    let (_, dumps) = import(log, &options, &mut |_| {}).unwrap();
    let read = |mut file: PendingFile| {
        let mut bytes = Vec::new();
        file.copy_to(&mut bytes).unwrap();
        bytes
    };
    dumps.into_iter().filter_map(|dump| dump.file).map(read).collect()
}

#[test]
fn the_socket_log_is_a_return_through_a_zeroed_context_not_a_call_through_null() {
    let all = judged("kevlar-panic-socket.log");
    assert_eq!(all.len(), 1);
    let top = &all[0].hypotheses[0];
    assert_eq!(top.rule, "JUMP-ZERO");
    assert!(top.claim.starts_with("the kernel returned to 0x0 through a zeroed stack"), "{}", top.claim);
    assert!(top.evidence.iter().any(|fact| fact.text.contains("from_pid=2 to_pid=1")), "{:#?}", top.evidence);
    assert!(all[0].headline.contains("page fault occurred in the kernel: rip=0"), "{}", all[0].headline);
    assert!(all[0].lacking.iter().any(|lack| lack.contains("debug=audit")), "{:?}", all[0].lacking);
}

#[test]
fn the_child_of_the_segv_log_dereferenced_null_and_the_log_lacks_registers_and_map() {
    let all = judged("kevlar-segv-children.log");
    let child = all.iter().find(|triage| triage.headline.contains("SIGSEGV")).unwrap();
    assert_eq!(child.hypotheses[0].rule, "NULL");
    assert!(child.hypotheses[0].claim.contains("null pointer plus 0x10"), "{}", child.hypotheses[0].claim);
    assert!(child.hypotheses.iter().all(|found| found.rule != "JUMP-ZERO"), "ip=0 of the signal event is not a jump");
    for lack in ["registers at the fault", "the memory map of the process"] {
        assert!(child.lacking.iter().any(|line| line == lack), "{:?}", child.lacking);
    }
}

#[test]
fn the_linux_log_is_a_deliberate_crash_and_no_bug() {
    let all = judged("linux-6.1-sysrq-panic.log");
    assert_eq!(all.len(), 1);
    let rules: Vec<_> = all[0].hypotheses.iter().map(|found| found.rule).collect();
    assert_eq!(rules, ["DELIBERATE"]);
    assert!(all[0].hypotheses[0].claim.starts_with("deliberate: sysrq by init[1]"));
    assert!(!all[0].has_findings());
}

#[test]
fn the_profile_log_without_a_crash_has_no_hypothesis() {
    for triage in judged("kevlar-pipe-profile.log") {
        assert_eq!(triage.hypotheses, []);
        assert_eq!(triage.headline, "a recording without a crash");
    }
}

/// What this workspace's kernel prints when it stops with a message, interrupted in a program's system call.
fn stopped_with(message: &str) -> String {
    format!(
        "[PANIC] CPU=0\n{message}\nPID=5 TID=5 comm=lseek_checks_it\nRIP=ffffffff9f98effd RSP=fffff718d32ef988 \
         RBP=fffff718d32ef9b0\nR14=fffff718d32efac8 R15=0000000000000000 CS=0010 RFLAGS=0000000000000202\n\
         0: ffffffff9f98effd kernel::fs::io::Source::take_frame+0xd\n1: ffffffff9f992f7c kernel::fs::pipe::write+0x2c\n"
    )
}

#[test]
fn a_log_of_a_kernel_that_was_stopped_because_it_hung_is_a_hang_to_be_explained_and_no_panic() {
    for (message, kind) in [
        ("non-maskable interrupt", "nmi"),
        ("soft lockup: CPU 1 has been in the kernel for 10 s", "soft lockup"),
        ("hard lockup: CPU 0 has taken no interrupt for 20 s", "soft lockup"),
        ("hung task: thread 5 has been blocked for 120 s", "hung task"),
        ("stall: no program has run for 60 s: 4 threads sleep, none of them with a timer", "stall"),
        ("page fault loop: thread 5 faults at 0x7ffbf7ed3000, ip 0x402f8c, for 10 s", "page fault loop"),
    ] {
        let dumps = dumps_of(stopped_with(message).as_bytes(), "serial.log");
        let dump = Dump::from_bytes(dumps[0].clone()).unwrap();
        assert_eq!(dump.case().causes[0].kind.and_then(CauseKind::name), Some(kind), "{message}");
        assert_eq!(dump.identity().unwrap().reason, Some(Reason::HANG), "{message}");
        let triage = judge(dumps[0].clone());
        assert!(triage.hypotheses.iter().all(|found| found.rule == "HANG"), "{message}: {:#?}", triage.hypotheses);
        assert!(triage.has_findings() && !triage.deliberate, "{message}");
    }
    let stopped = judge(dumps_of(stopped_with("non-maskable interrupt").as_bytes(), "serial.log")[0].clone());
    let found = &stopped.hypotheses[0];
    let claim = "CPU 0 stays in the kernel in kernel::fs::io::Source::take_frame, on behalf of lseek_checks_it[5]";
    assert!(found.claim.starts_with(claim), "{}", found.claim);
    assert_eq!(found.function.as_ref().unwrap().callers, ["kernel::fs::pipe::write"]);
    let panicked = dumps_of(stopped_with("the non-maskable interrupt came twice").as_bytes(), "serial.log");
    assert_eq!(judge(panicked[0].clone()).hypotheses[0].rule, "PANIC");
}

#[test]
fn dumps_of_real_logs_cut_at_200_places_or_with_1000_bits_flipped_are_judged_without_a_panic_or_false_certainty() {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = move |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below.max(1)
    };
    for name in ["kevlar-panic-socket.log", "kevlar-segv-children.log"] {
        for whole in imported(name) {
            let sound = judge(whole.clone());
            for round in 0..1200 {
                let mut broken = whole.clone();
                if round < 200 {
                    broken.truncate(random(whole.len()));
                } else {
                    broken[random(whole.len())] ^= 1 << random(8);
                }
                let Ok(dump) = Dump::from_bytes(broken) else { continue };
                let case = dump.case();
                let verdict = triage(&case, &Symbols::new(), &Backing::none(), "x");
                assert!(damage::honest(&verdict, &sound), "{name}, round {round}: {:#?}", verdict.hypotheses);
                let _ =
                    (crate::analysis::audit::audit(&case), crate::analysis::verify::verify(&case, &Backing::none()));
            }
        }
    }
}

#[test]
fn the_function_beside_the_registers_is_the_innermost_frame() {
    let log = b"[    3.175925] BUG: kernel NULL pointer dereference, address: 0000000000000028\n\
        [    3.176356] #PF: supervisor read access in kernel mode\n\
        [    3.176552] #PF: error_code(0x0000) - not-present page\n\
        [    3.177182] Oops: Oops: 0000 [#1] PREEMPT SMP NOPTI\n\
        [    3.177649] CPU: 1 UID: 0 PID: 146 Comm: writer Not tainted 6.12.0 #1\n\
        [    3.179555] RIP: 0010:read_nothing+0xe/0x20 [module]\n\
        [    3.180473] RSP: 0018:ff4d62c0c01b7c20 EFLAGS: 00000246\n\
        [    3.180611] RAX: 0000000000000028 RBX: ffffffffc022c100 RCX: 00000000ffffff01\n\
        [    3.184296] Call Trace:\n\
        [    3.185129]  <TASK>\n\
        [    3.185384]  take_write+0x146/0x1b0 [module]\n\
        [    3.186680]  vfs_write+0xf8/0x450\n\
        [    3.195103]  </TASK>\n\
        [    3.196987] ---[ end trace 0000000000000000 ]---\n";
    let found = judge(dumps_of(&log[..], "serial.log")[0].clone());
    assert!(found.hypotheses[0].claim.contains("in read_nothing+0xe"), "{}", found.hypotheses[0].claim);
    let function = found.hypotheses[0].function.as_ref().unwrap();
    assert_eq!(
        (function.name.as_str(), &function.callers[..2]),
        ("read_nothing", &["take_write".to_owned(), "vfs_write".to_owned()][..])
    );
}

/// The triage of the only dump of a log.
fn only(log: &str) -> Triage {
    let mut dumps = dumps_of(log.as_bytes(), "serial.log");
    assert_eq!(dumps.len(), 1, "{log}");
    judge(dumps.remove(0))
}

fn rules(triage: &Triage) -> Vec<&'static str> {
    triage.hypotheses.iter().map(|found| found.rule).collect()
}

/// An oops of Linux on arm64 at an address.
fn arm64(address: &str, what: &str) -> String {
    let lines = [
        what,
        "Mem abort info:",
        "  ESR = 0x0000000096000005",
        "Internal error: Oops: 0000000096000005 [#1] PREEMPT SMP",
        "CPU: 2 PID: 812 Comm: demo Not tainted 6.6.0 #1",
        "pc : demo_read+0x18/0x60 [demo]",
        "lr : vfs_read+0xc0/0x2a0",
        "sp : ffff80008a3f3c50",
        "x29: ffff80008a3f3c50 x28: ffff0000c1234000 x27: 0000000000000000",
        "Call trace:",
        " demo_read+0x18/0x60 [demo]",
        " vfs_read+0xc0/0x2a0",
        "---[ end trace 0000000000000000 ]---",
    ];
    lines.map(|line| format!("[  100.0] {}\n", line.replace("ADDRESS", address))).concat()
}

#[test]
fn a_kernel_address_of_arm64_is_no_wild_one_of_x86() {
    let triage = only(&arm64("ffff000012345678", "Unable to handle kernel paging request at virtual address ADDRESS"));
    let claims: Vec<&str> = triage.hypotheses.iter().map(|found| found.claim.as_str()).collect();
    assert!(!claims.iter().any(|claim| claim.contains("non-canonical")), "{claims:?}");
    assert!(claims.iter().any(|claim| claim.contains("0xffff000012345678")), "{claims:?}");
    assert!(!claims.iter().any(|claim| claim.contains("unmapped")), "the log does not say so: {claims:?}");
}

#[test]
fn what_the_bus_refused_is_no_bad_pointer() {
    let triage = only(&arm64("", "Internal error: synchronous external abort: 0000000096000010 [#1] SMP"));
    assert_eq!(rules(&triage)[0], "HARDWARE", "{:#?}", triage.hypotheses);
    for rule in ["NULL", "WILD", "USER-PTR", "PANIC"] {
        assert!(!rules(&triage).contains(&rule), "{:?}", rules(&triage));
    }
}

#[test]
fn a_machine_check_is_the_hardwares_and_no_case_for_kasan() {
    let triage = only(
        "[    5.0] mce: [Hardware Error]: CPU 3: Machine Check Exception: 5 Bank 4: b200000000070005\n\
         [    5.0] mce: [Hardware Error]: RIP 10:<ffffffff81234567> {intel_idle+0x60/0xa0}\n\
         [    5.0] mce: [Hardware Error]: PROCESSOR 0:206d7 TIME 1600000000 SOCKET 0 APIC 6\n\
         [    5.0] Kernel panic - not syncing: Fatal machine check on current CPU\n",
    );
    assert_eq!(rules(&triage)[0], "HARDWARE", "{:#?}", triage.hypotheses);
    assert!(triage.undecided.is_none(), "it was advised to boot with KASAN: {:?}", triage.undecided);
}

#[test]
fn a_kernel_of_32_bits_uses_no_user_pointer_where_its_own_data_lies() {
    let triage = only(
        "[   50.0] BUG: unable to handle page fault for address: c1234560\n\
         [   50.0] #PF: supervisor read access in kernel mode\n[   50.0] #PF: error_code(0x0000) - not-present page\n\
         [   50.0] Oops: 0000 [#1] SMP\n[   50.0] CPU: 0 PID: 77 Comm: demo Not tainted 5.10.0 #1\n\
         [   50.0] EIP: demo_ioctl+0x11/0x40 [demo]\n\
         [   50.0] EAX: c1234560 EBX: 00000000 ECX: 00000000 EDX: 00000001\n\
         [   50.0] Call Trace:\n[   50.0]  vfs_ioctl+0x1b/0x30\n[   50.0] ---[ end trace 0000000000000000 ]---\n",
    );
    assert!(!rules(&triage).contains(&"USER-PTR"), "{:#?}", triage.hypotheses);
}

#[test]
fn the_trap_of_a_check_is_no_illegal_instruction() {
    let triage = only(
        "[   70.0] list_del corruption. prev->next should be ffff888012345678, but was ffff888087654321\n\
         [   70.0] ------------[ cut here ]------------\n[   70.0] kernel BUG at lib/list_debug.c:59!\n\
         [   70.0] invalid opcode: 0000 [#1] PREEMPT SMP\n[   70.0] CPU: 1 PID: 9 Comm: demo Not tainted 6.1.0 #1\n\
         [   70.0] RIP: 0010:__list_del_entry_valid+0x8a/0x90\n[   70.0] Call Trace:\n\
         [   70.0]  demo_remove+0x1c/0x80 [demo]\n[   70.0] ---[ end trace 0000000000000000 ]---\n",
    );
    assert_eq!(rules(&triage)[0], "CHECK", "{:#?}", triage.hypotheses);
    assert!(!rules(&triage).contains(&"ILLEGAL"), "{:#?}", triage.hypotheses);
}

#[test]
fn a_kernel_that_does_not_say_its_name_gets_no_advice_for_this_one() {
    for log in [
        "!! DOUBLE FAULT !!\nRIP=ffffffff80101234 RSP=ffffffff80200000 CR2=0000000000400010\n",
        "*** KERNEL PANIC: page fault\nEIP=c0101234 CR2=00400010 ESP=c0200000\n[0] 0xc0101234 mm_map+0x24\n",
    ] {
        let triage = only(log);
        let said = format!("{:?} {:?}", triage.lacking, triage.undecided);
        assert!(!said.contains("debug=") && !said.contains("cargo xtask"), "{said}");
    }
}

#[test]
fn a_hung_task_of_a_log_is_named_with_what_it_waits_in() {
    let triage = only(
        "[  240.0] INFO: task demo_commit:17344 blocked for more than 120 seconds.\n\
         [  240.0]       Not tainted 4.16.2 #1\n[  240.0] demo_commit     D    0 17344  17342 0x00000080\n\
         [  240.0] Call Trace:\n[  240.0]  __schedule+0x293/0x8a0\n[  240.0]  schedule+0x36/0x80\n\
         [  240.0]  demo_wait_commit+0x98/0x120\n[  240.0]  demo_sync+0x57/0x90\n",
    );
    let best = &triage.hypotheses[0];
    assert_eq!((best.rule, best.claim.as_str()), ("HANG", "demo_commit[17344] hangs in demo_wait_commit"));
    assert_eq!(best.function.as_ref().map(|found| found.name.as_str()), Some("demo_wait_commit"));
}

#[test]
fn what_lockdep_and_the_allocator_report_is_a_check_and_no_panic() {
    for (head, what) in [
        ("WARNING: possible circular locking dependency detected", "locks taken in an order that can deadlock"),
        ("demo: page allocation failure: order:4, mode:0x2080d0", "memory could not be allocated"),
    ] {
        let triage = only(&format!(
            "[    3.0] {head}\n[    3.0] demo/109 is trying to acquire lock:\n\
             [    3.0] CPU: 5 PID: 109 Comm: demo Not tainted 5.9.0 #1\n[    3.0] Call Trace:\n\
             [    3.0]  dump_stack+0x8b/0xb8\n[    3.0]  warn_alloc.cold+0x75/0xd9\n\
             [    3.0]  lock_acquire+0x10/0x20\n[    3.0]  demo_start+0x22b/0x1550 [demo]\n"
        ));
        let best = &triage.hypotheses[0];
        assert_eq!(best.rule, "CHECK", "{best:#?}");
        assert!(best.claim.starts_with(what), "{}", best.claim);
        assert_eq!(best.function.as_ref().map(|found| found.name.as_str()), Some("demo_start"));
    }
}

#[test]
fn a_program_that_died_on_another_architecture_is_a_program() {
    let triage =
        only("[    0.99] demo[57]: unhandled signal 11 code 0x1 at 0x0000000000000038 in libc.so[2000024000+13e000]\n");
    assert_eq!(triage.hypotheses[0].rule, "NULL", "{:#?}", triage.hypotheses);
    assert!(triage.headline.starts_with("demo[57] died of SIGSEGV"), "{}", triage.headline);
}

/// The claim of the first hypothesis, its rule, and the function that it blames.
fn first(log: &str) -> (String, &'static str, Option<String>) {
    let triage = only(log);
    let best = triage.hypotheses.first().unwrap_or_else(|| panic!("no hypothesis: {log}"));
    (best.claim.clone(), best.rule, best.function.as_ref().map(|found| found.name.clone()))
}

#[test]
fn no_backtrace_is_offered_of_a_log_that_has_only_an_instruction_pointer() {
    let log = "[ 0.1][ T1] BUG: Unable to handle kernel data access on read at 0x8000000012345678\n\
               [ 0.1][ T1] Faulting instruction address: 0xc000000000123450\n\
               [ 0.1][ T1] Oops: Kernel access of bad area, sig: 11 [#1]\n\
               [ 0.1][ T1] CPU: 0 PID: 1 Comm: demo Not tainted 5.9.0 #1\n\
               [ 0.1][ T1] NIP:  c000000000123450 LR: c000000000123400 CTR: c000000000012300\n";
    let bare = only(log);
    let offered = |triage: &Triage| triage.hypotheses[0].next.iter().any(|next| next.contains(" bt"));
    assert!(!offered(&bare), "{:#?}", bare.hypotheses[0].next);
    let rest = "[ 0.1][ T1] Call Trace:\n[ 0.1][ T1] [c00000007e343b20] [c000000000123400] demo_get+0x40/0x90\n\
                [ 0.1][ T1] [c00000007e343b60] [c000000000123100] demo_show+0x20/0x40\n";
    let whole = only(&format!("{log}{rest}"));
    assert!(offered(&whole), "{:#?}", whole.hypotheses[0].next);
}

#[test]
fn the_address_that_a_general_protection_fault_names_is_used() {
    let head = "[ 9.1] Oops: general protection fault, probably for non-canonical address";
    let rest = "[ 9.1] CPU: 0 UID: 0 PID: 867 Comm: demo Not tainted 6.12.0 #1\n[ 9.1] RIP: 0010:demo_get+0x3e/0xe0\n\
                [ 9.1] RAX: 0000000000000000 RBX: b11675ef8d1ccbc0 RCX: 0000000000000001\n\
                [ 9.1] Call Trace:\n[ 9.1]  demo_show+0x12/0x40\n";
    let (claim, rule, function) = first(&format!("{head} 0xb11675ef8d1ccbce: 0000 [#1] PREEMPT SMP\n{rest}"));
    assert_eq!((rule, function.as_deref()), ("WILD", Some("demo_get")));
    assert!(claim.starts_with("the kernel used the non-canonical address 0xb11675ef8d1ccbce"), "{claim}");
    // KASAN reads its shadow before the access: the address that faulted is that of the shadow.
    let (claim, rule, _) = first(&format!(
        "{head} 0xdffffc0000000007: 0000 [#1] PREEMPT SMP KASAN\n\
         [ 9.1] KASAN: null-ptr-deref in range [0x0000000000000038-0x000000000000003f]\n{rest}"
    ));
    assert_eq!(rule, "NULL");
    assert!(claim.starts_with("the kernel dereferenced a null pointer plus 0x38 in demo_get"), "{claim}");
}

#[test]
fn the_history_of_a_lock_or_an_object_is_not_where_it_failed() {
    let (_, rule, function) = first(
        "WARNING: possible circular locking dependency detected\n6.2.0 #4 Not tainted\n\
         demo/1119 is trying to acquire lock:\nffff888005e5c130 (slock){+.-.}-{2:2}, at: demo_error_report+0x1/0x20\n\
         but task is already holding lock:\nffff8880062ecac8 (rskq){+.-.}-{2:2}, at: demo_queue_add+0x1/0x20\n\
         the existing dependency chain (in reverse order) is:\n-> #1 (rskq){+.-.}-{2:2}:\n\
         _raw_spin_lock+0x1/0x20\ndemo_hashdance+0x1/0x20\n",
    );
    assert_eq!((rule, function.as_deref()), ("CHECK", Some("demo_error_report")));
    let (_, _, function) = first(
        "BUG kmalloc-64 (Tainted: G B): Right Redzone overwritten\n\
         -----------------------------------------------------------------------------\n\
         INFO: 0xffff8880-0xffff8887. First byte 0x0 instead of 0xcc\n\
         Allocated in demo_device_alloc+0x20/0x90 age=12 cpu=0 pid=1\n\
         \t__slab_alloc+0x1c/0x30\n\tdemo_device_alloc+0x20/0x90\n",
    );
    assert_eq!(function, None);
}

#[test]
fn what_a_report_says_of_its_kind_is_kept() {
    let told = "CPU: 0 PID: 837 Comm: demo Not tainted 5.10.4 #1\nCall Trace:\n refcount_dec_and_test+0x2e/0x34\n\
                demo_put+0x12/0x40\n";
    let (claim, rule, function) = first(&format!(
        "------------[ cut here ]------------\n\
         WARNING: CPU: 0 PID: 837 at lib/refcount.c:28 refcount_dec_and_test+0x2e/0x34\n\
         refcount_t: underflow; use-after-free.\nModules linked in:\n{told}---[ end trace 9e8c ]---\n"
    ));
    assert_eq!((rule, function.as_deref()), ("CHECK", Some("demo_put")));
    assert!(claim.starts_with("reference count out of its range"), "{claim}");
    let (_, rule, _) = first(
        "sysrq: Trigger a crash\nBUG: kernel NULL pointer dereference, address: 0000000000000000\n\
         CPU: 1 PID: 7 Comm: sh Not tainted 5.10.4 #1\nRIP: 0010:sysrq_handle_crash+0x16/0x20\nCall Trace:\n\
          __handle_sysrq+0x9f/0x170\n write_sysrq_trigger+0x28/0x40\n",
    );
    assert_eq!(rule, "DELIBERATE");
    let (claim, _, _) = first(
        "demo invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=986\n\
         CPU: 4 PID: 63635 Comm: demo Not tainted 5.4.0 #86\nCall Trace:\n dump_header+0x4f/0x1eb\n\
         out_of_memory+0x6d/0xd0\n mem_cgroup_out_of_memory+0xbd/0xe0\n try_charge+0x77c/0x810\n\
         Memory cgroup out of memory: Killed process 63635 (demo) total-vm:3149468kB, anon-rss:164992kB\n",
    );
    assert!(claim.starts_with("a memory control group reached its limit"), "{claim}");
    let (claim, rule, function) = first(
        "Unhandled fault: synchronous external abort (0x96000210) at 0xffff000008f92000\n\
         Internal error: : 96000210 [#1] PREEMPT SMP\nCPU: 6 PID: 1 Comm: swapper/0 Not tainted 4.9.0 #183\n\
         PC is at demo_probe+0x528/0x570\nLR is at demo_probe+0x524/0x570\n\
         pc : [<ffff0000087b8cf4>] lr : [<ffff0000087b8cf0>] pstate: 60000045\nsp : ffff80003518bba0\n",
    );
    assert_eq!((rule, function.as_deref()), ("HARDWARE", Some("demo_probe")), "{claim}");
}

#[test]
fn the_code_of_another_machine_is_not_decoded_as_x86() {
    let triage = only(
        "CPU 0 Unable to handle kernel paging request at virtual address fffffff0, epc == 8005d844, ra == 800575ec\n\
         Oops[#6]:\nCPU: 0 PID: 4 Comm: demo Tainted: G      D    O 3.10.14 #120\n\
         $ 0   : 00000000 10001c00 00000000 84003380\nepc   : 8005d844 demo_data+0x4/0xc\n\
         ra    : 800575ec demo_sleeping+0x14/0xcc\nCode: 00000000  8c8202a4  03e00008 <00000000> 27bdffe8\n",
    );
    let said: Vec<_> = triage.hypotheses.iter().flat_map(|found| &found.evidence).map(|row| &row.text).collect();
    assert!(!said.is_empty() && said.iter().all(|row| !row.contains("[rax]") && !row.contains(": or ")), "{said:?}");
}

/// What a program prints on the console of this workspace's kernel after the kernel has named itself.
fn printed(words: &str) -> Vec<Triage> {
    let log = format!("kwab kernel 0.1.0, x86_64\nRAM: 512 MiB\n$ ./demo\n{words}$ exit\n");
    dumps_of(log.as_bytes(), "console").into_iter().map(judge).collect()
}

#[test]
fn an_image_that_is_loaded_as_a_log_shows_it_names_the_functions_of_its_dead_program() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testing/data/trail");
    let told = |offset: u32, name: &str| {
        let part = |start: &str, end: &str, prot: u32, offset: u32| {
            let file = format!("\"type\":\"file\",\"prot\":{prot},\"file\":\"{name}\",\"offset\":{offset}");
            format!("{{\"start\":\"{start}\",\"end\":\"{end}\",{file}}}")
        };
        let code = part("0x7f0000000000", "0x7f0000001000", 5, 0);
        let data = part("0x7f0000001000", "0x7f0000002000", 3, offset);
        let log = format!(
            "DBG {{\"type\":\"crash_report\",\"seq\":0,\"cpu\":0,\"ns\":5,\"pid\":7,\"signal\":11,\
             \"signal_name\":\"SIGSEGV\",\"cmdline\":\"{name}\",\"fault_addr\":\"0x18\",\"ip\":\"0x7f0000000159\",\
             \"regs\":{{\"rax\":\"0x0\"}},\"vmas\":[{code},{data}]}}\n"
        );
        let bytes = dumps_of(log.as_bytes(), "x.log").into_iter().next().expect("a crash");
        let dump = Dump::from_bytes(bytes).unwrap();
        let mut finder = Finder::new(vec![folder.clone()], false).with_debug_dirs(Vec::new());
        let images = images::load(&dump.case(), &mut finder, &IndexCache::none());
        let first = triage(&dump.case(), &images.symbols, &Backing::none(), "x").hypotheses.remove(0);
        (first.function.map(|function| function.name), images.problems)
    };
    assert_eq!(told(0, "trail.elf"), (Some("close_session".to_owned()), Vec::new()));
    // Another build is loaded otherwise, and a name that was not given is not missed.
    let (function, problems) = told(0x3000, "trail.elf");
    assert!(function.is_none() && problems[0].ends_with("is not the trail.elf of this log: it is loaded otherwise"));
    assert_eq!(told(0, "other.elf"), (None, Vec::new()));
}

#[test]
fn whom_this_kernel_kills_for_memory_died_of_that() {
    let line = "[    0.588698] Out of memory: killed process 3 (tail), 84688 KiB resident\n";
    let found = printed(&format!("{line}Killed\n"));
    let [triage] = &found[..] else { panic!("{found:#?}") };
    let first = &triage.hypotheses[0];
    assert_eq!(first.claim, "tail was killed because the machine ran out of memory");
    assert!(first.proven && (0.8..0.9).contains(&first.score), "{first:#?}");
    // The kernel breaks the words in what programs print.
    let forged = printed(&line.replace("killed", "kille\\d"));
    assert!(forged.iter().all(|triage| !triage.died), "{forged:#?}");
    let told = printed("Out of memory: killed process 3 (tail) by the weather\n");
    assert!(told.iter().all(|triage| !triage.died), "{told:#?}");
}

#[test]
fn a_program_on_the_console_does_not_kill_the_kernel_by_words() {
    let oops = "BUG: unable to handle page fault for address: ffffc90000a5e000\nOops: 0000 [#1] PREEMPT SMP\n\
                CPU: 0 PID: 42 Comm: demo Not tainted 6.1.0 #1\nRIP: 0010:demo_read+0x10/0x20\n\
                Call Trace:\n demo_call+0x1/0x2\n---[ end trace 0000000000000000 ]---\n";
    for words in [
        oops,
        "watchdog: BUG: soft lockup - CPU#0 stuck for 22s! [demo:42]\n",
        "[PA\x1b[0mNIC] CPU=0\nforged\nPID=1 TID=1 comm=init\n",
        "[PA\0NIC] CPU=0\nforged\nPID=1 TID=1 comm=init\n",
        "BUG: unable to handle page fault for address: ffffc90000a5e000 !!! double fault panicked a\\t\n",
        "!!! double fault\n",
        "Fatal exception in interrupt\n",
        "demo[42]: segfault at 0 ip 401000 sp 7ffd error 4\n",
    ] {
        for triage in printed(words) {
            assert!(!triage.died, "{words}: {}", triage.headline);
        }
        let linux = format!("Linux version 6.1.0 (demo) #1\n{words}");
        let died = dumps_of(linux.as_bytes(), "linux").into_iter().map(judge).any(|triage| triage.died);
        assert_eq!(died, words != "Fatal exception in interrupt\n", "{words}");
        let later = format!("kwab kernel 0.1.0, x86_64\nRAM: 512 MiB\n$ exit\nLinux version 6.1.0 (demo) #1\n{words}");
        let later = dumps_of(later.as_bytes(), "both").into_iter().map(judge).any(|triage| triage.died);
        assert_eq!(later, died, "in the boot behind that of the own kernel: {words}");
    }
    let own = printed("[PANIC] CPU=0\nit is true\nPID=1 TID=1 comm=init\n");
    assert!(own.iter().any(|triage| triage.died), "the kernel's own words");
}

#[test]
fn a_protection_fault_at_a_poisoned_address_is_not_one_of_which_the_address_is_not_known() {
    let log = "\
        [   12.345678] general protection fault, probably for non-canonical address 0xdead000000000122: 0000 [#1]\n\
        [   12.345679] CPU: 3 PID: 1234 Comm: kworker/3:1 Not tainted 6.1.0 #1\n\
        [   12.345681] RIP: 0010:__list_del_entry_valid+0x29/0x90\n\
        [   12.345683] RSP: 0018:ffffb2e5c0a3fe18 EFLAGS: 00010217\n\
        [   12.345684] RAX: dead000000000122 RBX: ffff8e0f4a3c1000 RCX: dead000000000122\n\
        [   12.345689] Call Trace:\n\
        [   12.345691]  process_one_work+0x1c7/0x380\n\
        [   12.345696] ---[ end trace 0000000000000000 ]---\n";
    let dumps = dumps_of(log.as_bytes(), "poison.log");
    let triage = judge(dumps.into_iter().next().unwrap());
    assert_eq!(triage.hypotheses[0].rule, "POISON");
    assert!(triage.hypotheses.iter().all(|found| found.rule != "WILD"), "{:#?}", triage.hypotheses);
}

#[test]
fn a_jump_to_zero_names_the_caller_that_a_log_prints_without_its_address() {
    let log = "[   10.000001] BUG: kernel NULL pointer dereference, address: 0000000000000000\n\
               [   10.000002] #PF: supervisor instruction fetch in kernel mode\n\
               [   10.000003] #PF: error_code(0x0010) - not-present page\n\
               [   10.000005] Oops: 0010 [#1] PREEMPT SMP PTI\n\
               [   10.000006] CPU: 1 PID: 77 Comm: cat Not tainted 6.1.0 #1\n\
               [   10.000007] RIP: 0010:0x0\n\
               [   10.000009] RSP: 0018:ffffb2e5c0a3fe18 EFLAGS: 00010217\n\
               [   10.000012] Call Trace:\n\
               [   10.000014]  vfs_read+0x9d/0x1a0\n\
               [   10.000015]  ksys_read+0x5f/0xe0\n\
               [   10.000016]  </TASK>\n";
    let triage = judge(dumps_of(log.as_bytes(), "call.log").into_iter().next().unwrap());
    let first = &triage.hypotheses[0];
    assert!(first.rule == "JUMP-ZERO" && first.claim.ends_with("last known in vfs_read+0x9d"), "{}", first.claim);
}

#[test]
fn a_thread_that_was_listed_before_the_death_may_be_any_programs_words() {
    let listed = |name: &str, pid: u32, state: char, asleep: u32| {
        format!(
            "task:{name} state:{state} stack:0 pid:{pid} tid:{pid} ppid:1 asleep:{asleep}.000 call:read waits:a pipe\n"
        )
    };
    let forged = listed("evil", 9, 'S', 99) + &listed("worse", 8, 'D', 98);
    let death = "[PANIC] CPU=0\nnon-maskable interrupt\n0: ffffffff80100020\n";
    let log = forged + death + &listed("sh", 7, 'S', 3) + "kwab: dump of 9 bytes on the memory region in 1 us\n";
    let dumps = dumps_of(log.as_bytes(), "forged.log");
    let claims: Vec<String> =
        dumps.into_iter().flat_map(|dump| judge(dump).hypotheses).map(|found| found.claim).collect();
    assert!(claims.iter().any(|claim| claim.starts_with("sh[7] hangs, waiting for read")), "{claims:?}");
    assert!(!claims.iter().any(|claim| claim.contains("evil") || claim.contains("worse")), "{claims:?}");
}

#[test]
fn who_is_killed_for_memory_died_of_no_bug_of_the_function_that_asked_last() {
    // Shape: mm/oom_kill.c
    let log = "[ 7123.456789] stress invoked oom-killer: gfp_mask=0x140cca(GFP_HIGHUSER_MOVABLE), order=0\n\
        [ 7123.456801] CPU: 2 PID: 4711 Comm: stress Not tainted 6.6.30 #1\n[ 7123.456808] Call Trace:\n\
        [ 7123.456818]  dump_header+0x4a/0x250\n[ 7123.456826]  out_of_memory+0x246/0x590\n\
        [ 7123.456838]  folio_alloc+0x1b/0x50\n[ 7123.456842]  handle_mm_fault+0x9a0/0x1000\n\
        [ 7123.456920] Out of memory: Killed process 4711 (stress) total-vm:2400000kB, anon-rss:1800000kB\n";
    let triage = only(log);
    assert_eq!(rules(&triage), ["OOM"]);
    assert_eq!(triage.hypotheses[0].function, None);
    assert!(triage.headline.starts_with("kernel out-of-memory kill"), "{}", triage.headline);
    assert!(triage.headline.contains("running stress[4711]"), "{}", triage.headline);
}

#[test]
fn a_failed_allocation_is_a_warning_of_the_function_that_asked() {
    // Shape: mm/page_alloc.c (warn_alloc)
    let log = "[  812.100000] kworker/u8:2: page allocation failure: order:4, mode:0x40cc0(GFP_KERNEL|__GFP_COMP)\n\
        [  812.100010] CPU: 1 PID: 88 Comm: kworker/u8:2 Not tainted 6.1.0 #1\n[  812.100030] Call Trace:\n\
        [  812.100060]  warn_alloc+0x132/0x1b0\n[  812.100080]  __alloc_pages+0x2e8/0x330\n\
        [  812.100100]  demo_ring_alloc+0x33/0x90 [demo]\n";
    let triage = only(log);
    assert_eq!(rules(&triage), ["CHECK"]);
    assert!(
        triage.headline.starts_with("kernel warning on CPU 1, running kworker/u8:2[88]: page"),
        "{}",
        triage.headline
    );
}

#[test]
fn what_a_kernel_survives_is_no_death_of_it_and_a_hard_lockup_no_soft_one() {
    // Shapes: kernel/watchdog_perf.c, lib/refcount.c, kernel/rcu/tree_stall.h
    for (head, begins) in [
        ("NMI watchdog: Watchdog detected hard LOCKUP on cpu 15", "kernel hard lockup"),
        ("rcu: INFO: rcu_sched self-detected stall on CPU", "kernel RCU stall"),
        ("INFO: task demo:12 blocked for more than 120 seconds.", "kernel hung task"),
        ("WARNING: CPU: 1 PID: 2 at lib/demo.c:28 demo_warn+0x1/0x2", "kernel warning"),
    ] {
        let log = format!("[ 1.000000] {head}\n[ 1.000001] Call Trace:\n[ 1.000002]  demo_loop+0x44/0x60\n");
        let dumps = dumps_of(log.as_bytes(), "serial.log");
        let dump = Dump::from_bytes(dumps[0].clone()).unwrap();
        let page = crate::report::inspect::headline_of(&dump);
        assert!(page.starts_with(begins), "{page}");
        assert!(judge(dumps[0].clone()).headline.starts_with(begins), "{head}");
    }
}

#[test]
fn an_address_that_x86_could_not_map_is_nothing_special_elsewhere() {
    // Shapes: arch/s390/mm/fault.c, arch/powerpc/mm/fault.c
    let s390 = "[ 1051.330289] Unable to handle kernel pointer dereference in virtual kernel address space\n\
        [ 1051.330360] Failing address: c880003d16572000 TEID: c880003d16572803\n\
        [ 1051.330539]  [<00000000fccbd33e>] demo_alloc+0xd6/0x3d8\n";
    let power = "BUG: Unable to handle kernel data access at 0x8000000001610000\n\
        Faulting instruction address: 0xc0000000003cc178\nOops: Kernel access of bad area, sig: 11 [#1]\n\
        NIP [c0000000003cc178] demo_scan+0xa8/0x190\n";
    let unknown = "Unable to handle kernel paging request at virtual address 8000000001610000\nOops [#1]\n\
        Call Trace:\n demo_scan+0xa8/0x190\n";
    for log in [s390, power, unknown] {
        let triage = only(log);
        let canonical = |text: &str| text.contains("canonical");
        for found in &triage.hypotheses {
            assert!(!canonical(&found.claim), "{}", found.claim);
            assert!(found.evidence.iter().all(|fact| !canonical(&fact.text)), "{:#?}", found.evidence);
        }
    }
}

#[test]
fn the_interrupted_function_of_a_stall_stands_behind_the_watchdogs_frames() {
    // Shape: kernel/watchdog.c on x86: the trace begins at the caller of the function beside the registers
    for before in ["", "[ 1.3]  watchdog_timer_fn+0x1/0x2\n[ 1.3]  asm_sysvec_apic_timer_interrupt+0x16/0x20\n"] {
        let log = format!(
            "[ 1.0] watchdog: BUG: soft lockup - CPU#4 stuck for 48s! [demo:52]\n\
             [ 1.1] RIP: 0010:demo_set_dirty+0x30/0x50 [kvm]\n[ 1.2] Call Trace:\n{before}\
             [ 1.4]  demo_changed_pte+0x1b2/0x2f0 [kvm]\n[ 1.5]  demo_zap_root+0x307/0x4d0 [kvm]\n"
        );
        let triage = only(&log);
        let function = triage.hypotheses[0].function.as_ref().map(|function| function.name.as_str());
        assert_eq!(function, Some("demo_set_dirty"), "{:#?}", triage.hypotheses);
        assert!(triage.hypotheses[0].claim.contains("demo_set_dirty"), "{}", triage.hypotheses[0].claim);
    }
}

#[test]
fn the_code_of_a_protection_fault_is_not_read_as_that_of_a_page_fault() {
    let log = "[ 1.0] general protection fault, probably for non-canonical address 0xdead4ead00000000: 0000 [#1] SMP\n\
        [ 1.1] CPU: 1 PID: 2 Comm: demo Not tainted 6.6.0 #1\n[ 1.2] RIP: 0010:demo_deref+0x30/0x50\n\
        [ 1.3] RAX: dead4ead00000000 RBX: 0000000000000001\n[ 1.4] Call Trace:\n[ 1.5]  demo_caller+0x1/0x2\n";
    let dumps = dumps_of(log.as_bytes(), "serial.log");
    let dump = Dump::from_bytes(dumps[0].clone()).unwrap();
    assert_eq!(dump.case().causes[0].error_code, None);
}

#[test]
fn a_report_that_lies_in_two_parts_of_pstore_is_whole() {
    // Shape: fs/pstore/platform.c: the part with the last lines comes first
    let log = "Panic#2 Part1\n<4>[   77.100011] Call Trace:\n<4>[   77.100021]  demo_store+0x1d/0x40 [demo]\n\
        <4>[   77.100027] ---[ end trace 0000000000000000 ]---\n\
        <0>[   77.100028] Kernel panic - not syncing: Fatal exception\nPanic#2 Part2\n\
        <1>[   77.100000] BUG: kernel NULL pointer dereference, address: 0000000000000018\n\
        <4>[   77.100004] Oops: 0002 [#1] PREEMPT SMP NOPTI\n\
        <4>[   77.100005] CPU: 3 PID: 140 Comm: kworker/3:1 Not tainted 6.1.0-demo #7\n\
        <4>[   77.100007] RIP: 0010:demo_ring+0x1d/0x40 [demo]\n";
    let triage = only(log);
    let function = triage.hypotheses[0].function.as_ref().expect("a function");
    assert_eq!((function.name.as_str(), function.callers.as_slice()), ("demo_ring", &["demo_store".to_owned()][..]));
    assert!(triage.headline.contains("kworker/3:1[140]"), "{}", triage.headline);
}

/// Shape: arch/arm/core/cortex_m/fault.c of Zephyr
#[test]
fn registers_of_another_architecture_are_not_called_missing() {
    let log = "E: ***** BUS FAULT *****\nE:   Precise data bus error\nE:   BFAR Address: 0x10\n\
               E: r0/a1:  0x20000134  r1/a2:  0x00000000  r2/a3:  0x00000140\nE:  xpsr:  0x81000200\n\
               E: Faulting instruction address (r15/pc): 0x0800d104\n\
               E: >>> ZEPHYR FATAL ERROR 0: CPU exception on CPU 0\n";
    let all: Vec<_> = dumps_of(log.as_bytes(), "zephyr.log").into_iter().map(judge).collect();
    assert_eq!(all.len(), 1);
    assert!(all[0].lacking.iter().all(|lack| lack != "registers at the fault"), "{:?}", all[0].lacking);
}

/// What the first cause says of the instruction, and the code around it.
fn instruction_of(log: &str) -> Vec<String> {
    let triage = only(log);
    let rows = triage.hypotheses.iter().flat_map(|found| &found.evidence).map(|row| row.text.clone());
    rows.filter(|row| row.contains('[')).collect()
}

#[test]
fn the_code_of_arm64_is_decoded_with_the_values_of_its_registers() {
    let log = "[    3.1] Unable to handle kernel NULL pointer dereference at virtual address 0000000000000018\n\
               [    3.1] Mem abort info:\n[    3.1]   ESR = 0x0000000096000005\n\
               [    3.1] Internal error: Oops: 0000000096000005 [#1] PREEMPT SMP\n\
               [    3.1] CPU: 1 PID: 77 Comm: demo Not tainted 6.6.0 #1\n\
               [    3.1] pc : demo_read+0x18/0x40 [demo]\n[    3.1] lr : vfs_read+0xc0/0x2a0\n\
               [    3.1] x2 : 0000000000000100 x1 : 0000ffffc0de1000 x0 : 0000000000000000\n\
               [    3.1] Call trace:\n[    3.1]  demo_read+0x18/0x40 [demo]\n\
               [    3.1] Code: a9bf7bfd 910003fd d503201f aa0003f3 (b9401801)\n";
    let rows = instruction_of(log);
    assert!(rows.iter().any(|row| row.contains("ldr w1, [x0, #24]") && row.contains("x0=0x0")), "{rows:?}");
    let arm = log.replace("pc : demo_read+0x18/0x40 [demo]", "PC is at demo_read+0x18/0x40 [demo]");
    let arm = arm.replace("[    3.1]   ESR = 0x0000000096000005\n", "").replace("x2 : 0", "r2 : 0");
    let arm = arm.replace("x1 : 0000ffff", "r1 : ").replace("x0 : 00000000", "r0 : ").replace("lr :", "LR is at");
    assert_eq!(instruction_of(&arm), Vec::<String>::new(), "32-bit ARM: {arm}");
}

#[test]
fn the_code_of_a_modern_x86_log_is_decoded_though_it_prints_no_address() {
    let log = "[    3.1] BUG: kernel NULL pointer dereference, address: 0000000000000018\n\
               [    3.1] #PF: error_code(0x0000) - not-present page\n[    3.1] Oops: 0000 [#1] PREEMPT SMP\n\
               [    3.1] CPU: 1 PID: 7 Comm: demo Not tainted 6.6.0 #1\n[    3.1] RIP: 0010:demo_read+0x8/0x40 [demo]\n\
               [    3.1] Code: 0f 1f 44 00 00 53 89 d3 <8b> 47 18 5b c3\n\
               [    3.1] RSP: 0018:ffffc90000123d20 EFLAGS: 00010246\n\
               [    3.1] RDX: 0000000000000100 RSI: 00007ffc0de10000 RDI: 0000000000000000\n\
               [    3.1] Call Trace:\n[    3.1]  vfs_read+0xc0/0x2a0\n";
    let is_it = |row: &String| row.contains("[rdi+0x18]") || row.contains("[rdi+18h]");
    assert!(instruction_of(log).iter().any(is_it), "{:?}", instruction_of(log));
}

//! The lines that open a report of Linux: one table, from the wording to the class and the headline.
//!
//! `*` at the front of a template stands for `WARNING`, `INFO` and `BUG`, which lockdep used in turn over the years.
//! In a headline `{function}` is the guilty function, `{racer}` one that the line names, `{access}` `Read` or `Write`;
//! a part of unknown value is left out with the `in` before it. Sources: the printk calls of Linux 2.4 to 6.17.

use super::super::class as crate_class;
use crate_class::Class::*;

/// What part a line plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Opens a report.
    Opens,
    /// Opens a report and says what is wrong; a `WARNING:` or `kernel BUG at` that follows belongs to it.
    Announces,
    /// A later line of a trap report (`Oops: 0002 [#1]`); opens one only when its first line is lost.
    Stage,
    /// A panic: of its own, or the end of the report before it.
    Panic,
}

/// A row of the table.
#[derive(Debug)]
pub struct Head {
    /// What it opens.
    pub class: crate_class::Class,
    /// What part it plays.
    pub part: Part,
    /// Headline of the report, with captures in braces.
    pub title: &'static str,
    /// Wordings of the first line, one template each.
    pub templates: &'static [&'static str],
}

const fn row(class: crate_class::Class, part: Part, title: &'static str, templates: &'static [&'static str]) -> Head {
    Head { class, part, title, templates }
}

use Part::{Announces, Opens, Panic as Panics, Stage};

pub(super) const NULL: &str = "BUG: unable to handle kernel NULL pointer dereference in {function}";
pub(super) const PAGING: &str = "BUG: unable to handle kernel paging request in {function}";
const DEADLOCK: &str = "possible deadlock in {function}";

/// The table; the first row that matches counts.
pub const HEADS: &[Head] = &[
    // Sanitizers.
    row(
        Kasan,
        Opens,
        "KASAN: invalid-free in {function}",
        &["BUG: KASAN: double-free or invalid-free in {function:sym}"],
    ),
    row(
        Kasan,
        Opens,
        "KASAN: {kind} {access} in {function}",
        &[
            "BUG: KASAN: {kind:sym} in {function:sym}",
            "BUG: KASan: {kind} in {function:sym}",
            "BUG: KASan: {kind:sym} on address {address:hex}",
            "BUG: KASAN: {kind:sym} on address {address:hex}",
            "BUG: KASAN: {kind:sym}",
        ],
    ),
    row(
        Kfence,
        Opens,
        "KFENCE: {kind} in {function}",
        &["BUG: KFENCE: {kind} in {function:sym}", "BUG: KFENCE: {kind}"],
    ),
    row(
        Kmsan,
        Opens,
        "KMSAN: {kind} in {function}",
        &["BUG: KMSAN: {kind:sym} in {function:sym}", "BUG: KMSAN: {kind}"],
    ),
    row(
        Kcsan,
        Opens,
        "KCSAN: {kind} in {racer} / {other}",
        &[
            "BUG: KCSAN: {kind} in {racer:sym} / {other:sym}",
            "ThreadSanitizer: {kind} in {racer:sym}",
            "BUG: KCSAN: {kind} in {racer:sym}",
            "BUG: KCSAN: {kind}",
        ],
    ),
    row(Ubsan, Opens, "UBSAN: {kind} in {function}", &["UBSAN: {kind} in {file}:{line:dec}", "UBSAN: {kind}"]),
    row(Kmemleak, Opens, "memory leak in {function}", &["BUG: memory leak", "unreferenced object {address:hex}"]),
    // x86 traps.
    row(
        StackOverflow,
        Opens,
        "BUG: stack guard page was hit in {function}",
        &[
            "BUG: stack guard page was hit at {address:hex}",
            "BUG: {} stack guard page was hit at {address:hex}",
            "Insufficient stack space to handle exception",
            "kernel stack overflow (double-fault)",
            "Kernel stack overflow",
            "BUG: IRQ stack overflow",
        ],
    ),
    row(
        NullDeref,
        Opens,
        NULL,
        &[
            "BUG: kernel NULL pointer dereference, address: {address:hex}",
            "BUG: unable to handle kernel NULL pointer dereference at virtual address {address:hex}",
            "BUG: unable to handle kernel NULL pointer dereference at {address:hex}",
            "BUG: unable to handle kernel NULL pointer dereference",
            "BUG: Kernel NULL pointer dereference on {} at {address:hex}",
            "BUG: Kernel NULL pointer dereference at {address:hex}",
            "Unable to handle kernel NULL pointer dereference at virtual address {address:hex}",
            "Unable to handle kernel NULL pointer dereference",
            "Unable to handle kernel instruction fetch (NULL pointer",
            "BUG: Unable to handle kernel instruction fetch (NULL pointer",
            "BUG: Unable to handle kernel NULL pointer dereference",
        ],
    ),
    row(
        PageFault,
        Opens,
        PAGING,
        &[
            "BUG: unable to handle page fault for address: {address:hex}",
            "BUG unable to handle page fault for address {address:hex}",
            "BUG: unable to handle kernel paging request for address {address:hex}",
            "BUG: unable to handle kernel paging request at virtual address {address:hex}",
            "BUG: unable to handle kernel paging request at {address:hex}",
            "BUG: unable to handle kernel paging request",
            "BUG: unable to handle page fault",
            "BUG: Unable to handle kernel data access on {} at {address:hex}",
            "BUG: Unable to handle kernel data access at {address:hex}",
            "BUG: Unable to handle {}",
            "Unable to handle kernel paging request at virtual address {address:hex}",
            "Unable to handle kernel paging request at {address:hex}",
            "Unable to handle kernel paging request for {} at address {address:hex}",
            "Unable to handle kernel {} at virtual address {address:hex}",
            "Unable to handle kernel {}",
            "CPU {cpu:dec} Unable to handle kernel paging request at virtual address {address:hex}, epc == {ip:hex}",
            "CPU {cpu:dec} Unable to handle kernel paging request at virtual address {address:hex}",
            "CPU {cpu:dec} Unable to handle kernel {}",
            "kernel tried to execute NX-protected page",
            "kernel tried to execute user page",
            "kernel tried to access user page",
            "Kernel attempted to {} user page ({address:hex})",
            "unable to execute userspace code",
            "unable to handle kernel paging request",
        ],
    ),
    row(
        Oops,
        Opens,
        "{kind} in {function}",
        &[
            "Unhandled fault: {kind} ({code:hex}) at {address:hex}",
            "Unhandled fault: {kind} at {address:hex}",
            "Unhandled fault: {kind}",
        ],
    ),
    row(
        GeneralProtection,
        Opens,
        "general protection fault in {function}",
        &[
            "general protection fault, {} address {address:hex}: {code:hex} [#",
            "general protection fault",
            "Oops: general protection fault, {} address {address:hex}: {code:hex} [#",
            "Oops: general protection fault",
            "traps: general protection fault: {code:hex} [#",
        ],
    ),
    row(
        StackSegment,
        Opens,
        "stack segment fault in {function}",
        &["stack segment: {code:hex} [#", "Oops: stack segment: "],
    ),
    row(
        Divide,
        Opens,
        "divide error in {function}",
        &["divide error: {code:hex}", "Oops: divide error: {code:hex}", "Division by zero in kernel."],
    ),
    row(
        DoubleFault,
        Opens,
        "PANIC: double fault in {function}",
        &[
            "PANIC: double fault",
            "traps: PANIC: double fault",
            "double fault: {code:hex}",
            "Oops: double fault: {code:hex}",
        ],
    ),
    row(
        InvalidOpcode,
        Stage,
        "invalid opcode in {function}",
        &[
            "invalid opcode: {code:hex}",
            "Oops: invalid opcode: {code:hex}",
            "Internal error: Oops - Undefined instruction: {code:hex}",
            "Internal error: Oops - undefined instruction: {code:hex}",
            "Oops - illegal instruction [#",
            "Reserved instruction in kernel code[#",
            "undefined instruction: pc={address:hex}",
        ],
    ),
    row(
        Alignment,
        Opens,
        "alignment fault in {function}",
        &[
            "alignment check: {code:hex} [#",
            "Oops: alignment check: {code:hex}",
            "Unhandled kernel unaligned access[#",
            "Kernel unaligned instruction access",
            "Unable to handle kernel unaligned access",
        ],
    ),
    row(
        Exception,
        Opens,
        "control protection fault in {function}",
        &["Missing ENDBR: {function:sym}", "Oops: control protection: "],
    ),
    row(Exception, Opens, "CFI failure in {function}", &["CFI failure at {function:sym}"]),
    row(PageFault, Stage, PAGING, &["cpu {processor:hex}: Vector: 300 (Data Access) at ["]),
    row(Oops, Stage, "Oops in {function}", &["Internal error: Oops: {code:hex} [#", "Internal error: Oops [#"]),
    row(Bug, Stage, "kernel BUG in {function}", &["Internal error: Oops - BUG: {code:hex}"]),
    row(
        Exception,
        Stage,
        "{kind} in {function}",
        &[
            "cpu {processor:hex}: Vector: {code:hex} ({kind}) at [",
            "int3: {code:hex} [#",
            "Oops: int3: {code:hex}",
            "Internal error: {kind}: {code:hex} [#",
            "Internal error: {kind} [#",
            "Bad mode in {kind} handler detected on CPU{cpu:dec}",
        ],
    ),
    row(
        Bug,
        Announces,
        "kernel BUG in {function}",
        &[
            "kernel BUG at {file}:{line:dec}!",
            "Kernel BUG at {file}:{line:dec}",
            "Kernel BUG at {place} [verbose debug info unavailable]",
            "kernel BUG at {file}",
            "BUG at {function:sym}:{line:dec}",
            "BUG: failure at {file}:{line:dec}/{function:sym}()!",
        ],
    ),
    row(Bug, Stage, "kernel BUG in {function}", &["Kernel BUG [#", "Kernel bug detected[#"]),
    row(
        MachineCheck,
        Opens,
        "machine check: {message}",
        &[
            "mce: [Hardware Error]: CPU {cpu:dec}: Machine Check Exception: {message}",
            "CPU {cpu:dec}: Machine Check Exception: {message}",
            "[Hardware Error]: CPU {cpu:dec}: Machine Check Exception: {message}",
            "mce: [Hardware Error]: CPU {cpu:dec}: Machine Check: {message}",
            "[Hardware Error]: CPU {cpu:dec}: Machine Check: {message}",
            "SError Interrupt on CPU{cpu:dec}, code {code:hex}",
            "Machine check in kernel mode.",
        ],
    ),
    row(MachineCheck, Stage, "machine check in {function}", &["Oops: Machine check, sig: {}"]),
    // RISC-V names the cause.
    row(PageFault, Stage, "{kind} access fault in {function}", &["Oops - {kind} access fault [#"]),
    row(Alignment, Stage, "{kind} address misaligned in {function}", &["Oops - {kind} address misaligned [#"]),
    row(Oops, Stage, "{kind} in {function}", &["Oops - {kind} [#"]),
    row(Oops, Stage, "Oops: kernel access of bad area in {function}", &["Oops: Kernel access of bad area, sig: {}"]),
    row(
        Oops,
        Stage,
        "Oops in {function}",
        &[
            "Oops: {code:hex} [#",
            "Oops: {code:hex} ilc:",
            "Oops: {} [#",
            "Oops [#",
            "Oops[#",
            "{comm}({pid:dec}): Oops [#",
            "Oops: {code:hex}",
            "Internal error: Oops",
            "monitor event: {code:hex} ilc:",
            "addressing exception: {code:hex} [#",
            "specification exception: {code:hex} [#",
            "illegal operation: {code:hex} [#",
            "protection exception: {code:hex} [#",
        ],
    ),
    // Lockups and stalls.
    row(
        SoftLockup,
        Opens,
        "BUG: soft lockup in {function}",
        &[
            "watchdog: BUG: soft lockup{}CPU#{cpu:dec} stuck for {}[{task}]",
            "NMI watchdog: BUG: soft lockup{}CPU#{cpu:dec} stuck for {}[{task}]",
            "BUG: soft lockup{}CPU#{cpu:dec} stuck for {}[{task}]",
            "watchdog: BUG: soft lockup - CPU#{cpu:dec} stuck for",
            "NMI watchdog: BUG: soft lockup - CPU#{cpu:dec} stuck for",
            "BUG: soft lockup - CPU#{cpu:dec} stuck for",
            "{}BUG: soft lockup{}CPU#{cpu:dec} stuck for {}[{task}]",
            "watchdog: BUG: soft lockup",
            "NMI watchdog: BUG: soft lockup",
            "BUG: soft lockup detected on CPU#{cpu:dec}",
            "BUG: soft lockup",
            "watchdog: CPU#{cpu:dec}: soft lockup",
        ],
    ),
    row(
        HardLockup,
        Opens,
        "BUG: hard lockup in {function}",
        &[
            "watchdog: Watchdog detected hard LOCKUP on cpu {cpu:dec}",
            "NMI watchdog: Watchdog detected hard LOCKUP on cpu {cpu:dec}",
            "Watchdog detected hard LOCKUP on cpu {cpu:dec}",
            "watchdog: CPU{}: Watchdog detected hard LOCKUP on cpu {cpu:dec}",
            "watchdog: CPU {} detected hard LOCKUP on other CPUs {cpu:dec}",
            "watchdog: CPU {cpu:dec} self-detected hard LOCKUP @ {function:sym}",
            "watchdog: CPU {cpu:dec} Hard LOCKUP",
            "watchdog: CPU {cpu:dec} became unstuck TB:",
            "Watchdog CPU:{cpu:dec} Hard LOCKUP",
            "watchdog: BUG: hard lockup",
            "NMI Watchdog detected LOCKUP on CPU{cpu:dec}",
            "NMI Watchdog detected LOCKUP",
        ],
    ),
    row(
        RcuStall,
        Opens,
        "INFO: rcu detected stall in {function}",
        &[
            "rcu: INFO: rcu_{kind:sym} self-detected stall",
            "rcu: INFO: rcu_{kind:sym} detected {} stall",
            "rcu: INFO: rcu_{kind:sym} detected stall",
            "INFO: rcu_{kind:sym} self-detected stall on CPU {{ {cpu:dec}",
            "INFO: rcu_{kind:sym} self-detected stall",
            "INFO: rcu_{kind:sym} detected stall on CPU {cpu:dec}",
            "INFO: rcu_{kind:sym} detected stall",
            "INFO: rcu_{kind:sym} detected {} stall",
            "INFO: rcu_{kind:sym} self-detected expedited stall",
            "rcu_{kind:sym}: wait state: RTGS_WAIT_GPS(",
        ],
    ),
    row(
        HungTask,
        Opens,
        "INFO: task hung in {function}",
        &[
            "INFO: task {task} blocked for more than {}",
            "INFO: task {task} blocked in I/O wait for more than {}",
            "INFO: task {task} <{}> blocked for more than",
        ],
    ),
    // The line behind the head, which a cut log begins with.
    row(
        HungTask,
        Stage,
        "INFO: task hung in {function}",
        &["\"echo 0 > /proc/sys/kernel/hung_task_timeout_secs\" disables this message."],
    ),
    row(HungTask, Opens, "INFO: task can't die in {function}", &["INFO: task {task} can't die for more than {}"]),
    row(
        WorkqueueLockup,
        Opens,
        "BUG: workqueue lockup",
        &["BUG: workqueue lockup - pool cpus={cpu:dec}", "BUG: workqueue lockup"],
    ),
    row(
        Netdevice,
        Opens,
        "unregister_netdevice: waiting for {device} to become free",
        &["unregister_netdevice: waiting for {device:sym} to become free"],
    ),
    // Lockdep.
    row(
        Deadlock,
        Opens,
        DEADLOCK,
        &[
            "*: possible circular locking dependency detected",
            "*: possible recursive locking detected",
            "*: possible irq lock inversion dependency detected",
            "*: HARDIRQ-safe -> HARDIRQ-unsafe lock order detected",
            "*: SOFTIRQ-safe -> SOFTIRQ-unsafe lock order detected",
            "*: RECLAIM_FS-safe -> RECLAIM_FS-unsafe lock order detected",
            "*: hard-safe -> hard-unsafe lock order detected",
            "*: soft-safe -> soft-unsafe lock order detected",
            "*: possible deadlock detected",
            "*: circular locking deadlock detected!",
        ],
    ),
    row(LockState, Opens, "inconsistent lock state in {function}", &["*: inconsistent lock state"]),
    row(LockUse, Opens, "WARNING: bad unlock balance in {function}", &["*: bad unlock balance detected!"]),
    row(LockUse, Opens, "WARNING: bad contention detected in {function}", &["*: bad contention detected!"]),
    row(LockUse, Opens, "WARNING: held lock freed in {function}", &["*: held lock freed!"]),
    row(LockUse, Opens, "WARNING: nested lock was not taken in {function}", &["*: Nested lock was not taken"]),
    row(
        LockUse,
        Opens,
        "WARNING: lock held when returning to user space in {function}",
        &["*: lock held when returning to user space!"],
    ),
    row(LockUse, Opens, "WARNING: lock held at task exit in {function}", &["*: lock held at task exit time!"]),
    row(
        LockUse,
        Opens,
        "BUG: still has locks held in {function}",
        &["BUG: {task} still has locks held!", "*: {task} still has locks held!"],
    ),
    row(LockUse, Opens, "WARNING: invalid wait context in {function}", &["*: Invalid wait context"]),
    row(
        LockUse,
        Opens,
        "INFO: trying to register non-static key in {function}",
        &["INFO: trying to register non-static key"],
    ),
    row(
        LockUse,
        Opens,
        "BUG: lock key has not been registered in {function}",
        &["BUG: key {} has not been registered!"],
    ),
    row(LockUse, Opens, "BUG: {message}", &["BUG: MAX_{message}", "BUG: looking up invalid subclass: {message}"]),
    row(
        LockUse,
        Opens,
        "BUG: workqueue leaked lock or atomic in {function}",
        &["BUG: workqueue leaked {}: {comm}/0x{}/{pid:dec}"],
    ),
    row(
        LockUse,
        Opens,
        "BUG: spinlock {kind} in {function}",
        &[
            "BUG: spinlock {kind} on CPU#{cpu:dec}, {task}",
            "BUG: rwlock {kind} on CPU#{cpu:dec}, {task}",
            "BUG: spinlock {kind}",
            "BUG: rwlock-{kind}",
        ],
    ),
    row(
        RcuUsage,
        Opens,
        "WARNING: suspicious RCU usage in {function}",
        &["*: suspicious RCU usage", "*: suspicious rcu_dereference_check() usage"],
    ),
    row(
        Atomic,
        Opens,
        "BUG: scheduling while atomic in {function}",
        &[
            "BUG: scheduling while atomic: {task}/0x{:hex}",
            "BUG: scheduling while atomic: {task}",
            "BUG: scheduling while atomic",
            "scheduling while atomic: {task}/0x{:hex}",
            "bad: scheduling while atomic",
        ],
    ),
    row(
        InvalidContext,
        Opens,
        "BUG: sleeping function called from invalid context in {function}",
        &[
            "BUG: sleeping function called from invalid context at {file}:{line:dec}",
            "BUG: sleeping function called from invalid context",
            "Debug: sleeping function called from invalid context",
            "BUG: assuming atomic context at {file}:{line:dec}",
            "BUG: assuming non migratable context at {file}:{line:dec}",
        ],
    ),
    row(
        Preemptible,
        Opens,
        "BUG: using {kind} in preemptible code in {function}",
        &["BUG: using {kind} in preemptible [{}] code: {task}", "BUG: using {kind} in preemptible code: {task}"],
    ),
    // Memory.
    row(
        BadPage,
        Opens,
        "BUG: Bad page state in {function}",
        &["BUG: Bad page state in process {comm} pfn:", "BUG: Bad page state"],
    ),
    row(
        BadPage,
        Opens,
        "BUG: Bad page map in {function}",
        &["BUG: Bad page map in process {comm} pte:", "BUG: Bad page map in process {comm} pmd:", "BUG: Bad page map"],
    ),
    row(BadPage, Opens, "BUG: Bad page cache in {function}", &["BUG: Bad page cache in process {comm} pfn:"]),
    row(BadPage, Opens, "BUG: Bad rss-counter state", &["BUG: Bad rss-counter state"]),
    row(BadPage, Opens, "BUG: non-zero pgtables_bytes on freeing mm", &["BUG: non-zero {}"]),
    row(
        SlabCorruption,
        Opens,
        "BUG {cache}: {kind} in {function}",
        &[
            "BUG {cache:word} ({}): {kind}",
            "Slab corruption {}: {cache:word} start=",
            "slab error in {function:sym}(): cache `{cache}': {kind}",
            "BUG: {cache:word} ({}): {kind}",
        ],
    ),
    row(OomKill, Opens, "{comm} invoked oom-killer", &["{comm} invoked oom-killer: "]),
    row(
        OomKill,
        Stage,
        "Out of memory: killed {victim}",
        &[
            "Out of memory: Killed process {pid:dec} ({victim})",
            "Out of memory: Kill process {pid:dec} ({victim})",
            "Memory cgroup out of memory: Killed process {pid:dec} ({victim})",
            "Memory cgroup out of memory: Kill process {pid:dec} ({victim})",
            "Out of Memory: Killed process {pid:dec} ({victim})",
            "Killed process {pid:dec}, UID {:dec}, ({victim}) total-vm:",
            "Killed process {pid:dec} ({victim}) total-vm:",
        ],
    ),
    row(
        Corruption,
        Announces,
        "BUG: corrupted list in {function}",
        &[
            "list_add corruption",
            "list_del corruption",
            "list_add double add",
            "slab list corruption",
            "plist corruption",
        ],
    ),
    // The Solaris porting layer of ZFS.
    row(Bug, Opens, "PANIC at {file} in {function}", &["PANIC at {file}:{line:dec}:{function:sym}()"]),
    row(
        Refcount,
        Announces,
        "WARNING: refcount bug in {function}",
        &["refcount_t: {kind}", "refcount_t {} at {function:sym}+{:hex}"],
    ),
    row(Odebug, Announces, "WARNING: ODEBUG bug in {function}", &["ODEBUG: {kind}"]),
    row(
        Usercopy,
        Announces,
        "BUG: bad usercopy in {function}",
        &["usercopy: {kind}", "Bad or missing usercopy whitelist? {kind}"],
    ),
    row(
        Corruption,
        Announces,
        "buffer overflow in {function}",
        &["detected buffer overflow in {}", "{:sym}: detected buffer overflow: "],
    ),
    row(
        Warning,
        Announces,
        "memcpy: detected field-spanning write in {function}",
        &["{:sym}: detected field-spanning write"],
    ),
    row(LockUse, Announces, "WARNING: locking bug in {function}", &["DEBUG_LOCKS_WARN_ON({})"]),
    // Warnings.
    row(
        Warning,
        Opens,
        "WARNING in {function}",
        &[
            "WARNING: CPU: {cpu:dec} PID: {pid:dec} at {file}:{line:dec} {function:sym}",
            "WARNING: CPU: {cpu:dec} PID: {pid:dec} at {file}:{line:dec}",
            "WARNING: CPU: {cpu:dec} PID: {pid:dec} at {function:sym}",
            "WARNING: {file}:{line:dec} at {function:sym}, CPU#{cpu:dec}: {task}",
            "WARNING: {file}:{line:dec} at {function:sym}+{}, CPU#{cpu:dec}: {task}",
            "WARNING: at {file}:{line:dec} {function:sym}",
            "WARNING: at {file}:{line:dec}",
            "Badness at {file}:{line:dec}",
            "Badness in {function:sym} at {file}:{line:dec}",
        ],
    ),
    row(
        Warning,
        Opens,
        "WARNING: kernel stack regs has bad '{kind}' value",
        &["WARNING: kernel stack regs at {} in {task} has bad '{kind}' value"],
    ),
    row(
        Warning,
        Opens,
        "WARNING: kernel stack frame pointer has bad value",
        &["WARNING: kernel stack frame pointer at {} in {task} has bad value"],
    ),
    row(Warning, Opens, "page allocation failure in {function}", &["{comm}: page allocation failure"]),
    row(Warning, Opens, "page allocation stalls in {function}", &["{comm}: page allocation stalls for {}, order:"]),
    row(Warning, Opens, "irq: nobody cared in {function}", &["irq {:dec}: nobody cared"]),
    row(
        Warning,
        Opens,
        "sysfs: cannot create duplicate filename in {function}",
        &["sysfs: cannot create duplicate filename"],
    ),
    row(
        Warning,
        Opens,
        "kobject: tried to init an initialized object in {function}",
        &["kobject {}: tried to init an initialized object", "kobject: {}: tried to init an initialized object"],
    ),
    // Panics.
    row(
        KillInit,
        Panics,
        "kernel panic: Attempted to kill init!",
        &["Kernel panic - not syncing: Attempted to kill init!", "Kernel panic: Attempted to kill init"],
    ),
    row(
        KillInit,
        Panics,
        "kernel panic: Attempted to kill the idle task!",
        &["Kernel panic - not syncing: Attempted to kill the idle task!"],
    ),
    row(
        NoRoot,
        Panics,
        "kernel panic: VFS: Unable to mount root fs",
        &["Kernel panic - not syncing: VFS: Unable to mount root fs", "Kernel panic: VFS: Unable to mount root fs"],
    ),
    row(
        NoRoot,
        Panics,
        "kernel panic: {message}",
        &[
            "Kernel panic - not syncing: {:word} working init found",
            "Kernel panic - not syncing: No working init found",
            "Kernel panic - not syncing: Requested init {} failed",
            "Kernel panic - not syncing: No init found",
        ],
    ),
    row(
        StackCorrupted,
        Panics,
        "kernel panic: stack is corrupted in {function}",
        &["Kernel panic - not syncing: stack-protector: Kernel stack is corrupted in: {function:sym}"],
    ),
    row(
        StackCorrupted,
        Panics,
        "kernel panic: corrupted stack end in {function}",
        &["Kernel panic - not syncing: corrupted stack end detected inside scheduler"],
    ),
    row(
        OomPanic,
        Panics,
        "kernel panic: {message}",
        &[
            "Kernel panic - not syncing: {:word} of memory",
            "Kernel panic - not syncing: System is deadlocked on memory",
        ],
    ),
    row(
        MachineCheck,
        Panics,
        "kernel panic: {message}",
        &[
            "Kernel panic - not syncing: Fatal {:word} check",
            "Kernel panic - not syncing: Asynchronous SError Interrupt",
            "Kernel panic - not syncing: Machine check",
        ],
    ),
    row(
        HardLockup,
        Panics,
        "BUG: hard lockup in {function}",
        &[
            "Kernel panic - not syncing: Watchdog detected hard LOCKUP on cpu {cpu:dec}",
            "Kernel panic - not syncing: Hard LOCKUP",
        ],
    ),
    row(SoftLockup, Panics, "BUG: soft lockup in {function}", &["Kernel panic - not syncing: softlockup: hung tasks"]),
    row(HungTask, Panics, "INFO: task hung", &["Kernel panic - not syncing: hung_task: blocked tasks"]),
    row(RcuStall, Panics, "INFO: rcu detected stall", &["Kernel panic - not syncing: RCU Stall"]),
    row(
        Panic,
        Panics,
        "kernel panic: {message}",
        &["Kernel panic - not syncing: {message}", "Kernel panic - not syncing", "Kernel panic: {message}"],
    ),
    // What has no row of its own.
    row(Oops, Stage, "{kind} in {function}", &["{kind}: {code:hex} [#", "{kind} ilc:{:dec} [#"]),
    row(Bug, Opens, "BUG: {message}", &["BUG: {message}"]),
];

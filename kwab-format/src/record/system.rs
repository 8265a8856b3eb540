//! Owns the records of the system's state: tasks and locks.

open_enum! {
    /// What a task is doing.
    TaskState: u8 {
        /// On a processor.
        1 RUNNING = "running",
        /// Ready to run, waiting for a processor.
        2 RUNNABLE = "runnable",
        /// Waits, and a signal would wake it.
        3 SLEEPING = "sleeping",
        /// Waits, and only the event will wake it.
        4 BLOCKED = "blocked",
        /// Stopped by a signal or a debugger.
        5 STOPPED = "stopped",
        /// Dead and not waited for.
        6 ZOMBIE = "zombie",
        /// The idle task.
        7 IDLE = "idle",
    }
}

fields! {
    /// A thread of a process, or of the kernel.
    record Task {
        /// Process id, the thread group's.
        1 pid: u32,
        /// Thread id; equal to `pid` in the first thread.
        2 tid: u32,
        /// Process id of the parent; absent if it has none.
        3 ppid: u32,
        /// Name of the thread, at most 15 bytes on Linux.
        4 comm: &'a [u8],
        /// What it is doing.
        5 state: TaskState,
        /// What it waits for, in the kernel's words.
        6 wait_reason: &'a [u8],
        /// Address of the object it waits for: lock, queue, futex.
        7 wait_object: u64,
        /// Task it waits for.
        8 wait_tid: u32,
        /// Nanoseconds it has been in this state.
        9 state_ns: u64,
        /// Processor it runs or last ran on.
        10 last_cpu: u32,
        /// Saved kernel stack pointer.
        11 kernel_sp: u64,
        /// Saved kernel instruction pointer.
        12 kernel_ip: u64,
        /// User stack pointer.
        13 user_sp: u64,
        /// User instruction pointer.
        14 user_ip: u64,
        /// System call in progress.
        15 syscall: i64,
        /// Command line of the process, arguments separated by spaces.
        16 cmdline: &'a [u8],
        /// Nanoseconds it has run.
        17 run_ns: u64,
        /// Nice value or priority.
        18 priority: i64,
        /// Page-table root, physical.
        19 page_table_root: u64,
        /// Pending signals, bit n-1 for signal n.
        20 pending: u64,
        /// Blocked signals, bit n-1 for signal n.
        21 blocked: u64,
        /// Whether it was current on the processor that wrote the dump.
        22 current: bool,
        /// State as the source printed it.
        23 state_text: &'a [u8],
        /// What the object is, in the kernel's words.
        32 wait_object_name: &'a [u8],
        /// When its sleep ends at the latest, nanoseconds since boot; absent without a timeout.
        33 deadline_ns: u64,
    }
}

open_enum! {
    /// What a lock is.
    LockKind: u8 {
        /// Waiters spin on a processor.
        1 SPIN = "spin lock",
        /// Waiters sleep; one holder at a time.
        2 MUTEX = "mutex",
        /// Many readers or one writer.
        3 RW = "rw lock",
        /// A word in user memory (futex(2)).
        4 FUTEX = "futex",
    }
}

fields! {
    /// A lock that is held.
    record Lock {
        /// Address of the lock, its identity within the dump.
        1 addr: u64,
        /// Name of the lock, where the kernel gives it one.
        2 name: &'a [u8],
        /// What it is.
        3 kind: LockKind,
        /// Processor that holds it.
        4 holder_cpu: u32,
        /// Process that holds it.
        5 holder_pid: u32,
        /// Thread that holds it.
        6 holder_tid: u32,
        /// Where it was taken: `file:line`.
        7 location: &'a [u8],
        /// Address of the instruction that took it.
        8 location_ip: u64,
        /// Nanoseconds it has been held.
        9 held_ns: u64,
        /// Readers that hold it.
        10 readers: u32,
        /// Whether interrupts were off while it was taken.
        11 irqs_off: bool,
    }
}

fields! {
    /// A processor or thread that waits for a lock.
    record LockWait {
        /// Address of the lock, its identity within the dump.
        1 addr: u64,
        /// Name of the lock, where the kernel gives it one.
        2 name: &'a [u8],
        /// Processor that waits.
        3 waiter_cpu: u32,
        /// Process that waits.
        4 waiter_pid: u32,
        /// Thread that waits.
        5 waiter_tid: u32,
        /// Where it waits: `file:line`.
        6 location: &'a [u8],
        /// Nanoseconds it has waited.
        7 waited_ns: u64,
        /// What it is.
        8 kind: LockKind,
    }
}

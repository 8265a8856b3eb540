//! The table of spans: each one's identifier and name.

/// Declares the spans: identifier and name, numbered from 0.
macro_rules! spans {
    ($($(#[$doc:meta])* $id:ident = $name:literal,)*) => {
        /// A stretch of code that is told apart.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Id { $($(#[$doc])* $id,)* }

        /// Names by number.
        pub const NAMES: &[&str] = &[$($name,)*];
        /// Identifiers by number.
        pub const IDS: &[Id] = &[$(Id::$id,)*];
    };
}

spans! {
    /// A system call; its number.
    Syscall = "syscall",
    /// A page fault; its address.
    PageFault = "page_fault",
    /// The timer's interrupt.
    TimerInterrupt = "timer_irq",
    /// A path is walked.
    PathWalk = "path_walk",
    /// A program is executed, up to where it would begin.
    Exec = "exec",
    /// Its file is found and opened, `#!` followed.
    ExecOpen = "exec.open",
    /// ELF headers are read and parsed.
    ExecParse = "exec.elf_parse",
    /// The new address space.
    ExecSpace = "exec.vm_new",
    /// Its segments are mapped.
    ExecSegments = "exec.load_segments",
    /// Pages of its files that are in memory are mapped.
    ExecPrefault = "exec.prefault",
    /// Arguments, environment and auxiliary vector.
    ExecStack = "exec.stack",
    /// Other threads end.
    ExecAlone = "exec.de_thread",
    /// The old memory goes, the new one comes.
    ExecSwitch = "exec.switch_vm",
    /// Descriptors marked close-on-exec are closed.
    ExecClose = "exec.close_cloexec",
    /// Handlers are reset.
    ExecSignals = "exec.signal_reset",
    /// A fork, vfork or clone, without the time a vfork parent waits.
    Fork = "fork",
    /// The child's memory.
    ForkMemory = "fork.vm",
    /// Its process and thread.
    ForkTask = "fork.task",
    /// Its kernel stack and registers.
    ForkThread = "fork.thread",
    /// A thread ends.
    Exit = "exit",
    /// It lets go of its memory.
    ExitMemory = "exit.vm",
    /// Its files are closed.
    ExitFiles = "exit.files",
    /// Its family learns of it.
    ExitFamily = "exit.family",
    /// A parent waits for children.
    Wait = "wait",
}

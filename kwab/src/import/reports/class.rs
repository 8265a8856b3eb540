//! What kind of failure a report tells about: one table, read by headlines, completeness and links between reports.

use serde::Serialize;

/// How much a failure ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Weight {
    /// The kernel stops, or kills the task that it ran for.
    Fatal,
    /// Something does not go on: a processor, a task, a work queue.
    Stall,
    /// The kernel found a defect and went on.
    Warning,
}

macro_rules! classes {
    ($($name:ident $text:literal $weight:ident $doc:literal;)*) => {
        /// What a report can be about.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
        pub enum Class {
            $(#[doc = $doc] $name,)*
            /// A line that says that something deadly happened, and nothing more that could be read.
            #[default]
            Unknown,
        }

        impl Class {
            /// Every class, `Unknown` last.
            pub const ALL: &'static [Self] = &[$(Self::$name,)* Self::Unknown];

            /// Its name in tables and reports.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                    Self::Unknown => "unknown",
                }
            }

            /// How much it ends.
            pub fn weight(self) -> Weight {
                match self {
                    $(Self::$name => Weight::$weight,)*
                    Self::Unknown => Weight::Fatal,
                }
            }
        }
    };
}

classes! {
    Panic "panic" Fatal "The kernel panicked for a reason without a class of its own.";
    Oops "oops" Fatal "An unexpected exception of a kind that the report does not name.";
    NullDeref "null-dereference" Fatal "An access near address zero.";
    PageFault "page-fault" Fatal "An access to an address that is not mapped or not allowed.";
    GeneralProtection "general-protection" Fatal "A general protection fault (x86).";
    Bug "bug" Fatal "`BUG_ON`: a violated invariant without which the kernel cannot continue.";
    Divide "divide-error" Fatal "A division by zero or out of range.";
    InvalidOpcode "invalid-opcode" Fatal "An undefined instruction.";
    DoubleFault "double-fault" Fatal "An exception while another one was being delivered.";
    StackSegment "stack-segment" Fatal "A stack segment fault (x86).";
    Alignment "alignment" Fatal "An unaligned access.";
    StackOverflow "stack-overflow" Fatal "A kernel stack ran into its guard page.";
    StackCorrupted "stack-corrupted" Fatal "The stack protector or the stack end marker was overwritten.";
    Assertion "assertion" Fatal "A failed assertion.";
    Exception "exception" Fatal "Another processor exception.";
    MachineCheck "machine-check" Fatal "The hardware reported an error.";
    Bugcheck "bug-check" Fatal "A numbered stop code.";
    OomPanic "oom-panic" Fatal "Out of memory, and the kernel panicked.";
    KillInit "kill-init" Fatal "The first process died.";
    NoRoot "no-root" Fatal "The root file system or the first program cannot be used.";
    Corruption "data-corruption" Fatal "A list or another structure was found damaged.";
    Usercopy "usercopy" Fatal "A copy between kernel and user memory crossed an object's bounds.";
    Kasan "kasan" Warning "An invalid access found by KASAN.";
    Kfence "kfence" Warning "An invalid access found by KFENCE.";
    Kmsan "kmsan" Warning "A use of uninitialised memory found by KMSAN.";
    Kcsan "kcsan" Warning "A data race found by KCSAN.";
    Ubsan "ubsan" Warning "Undefined behaviour found by UBSAN.";
    Kmemleak "memory-leak" Warning "A leaked object: no pointer to it was found.";
    Warning "warning" Warning "`WARN_ON`: the kernel continued.";
    Refcount "refcount" Warning "A reference count left its range.";
    Odebug "object-debug" Warning "A timer, work or RCU head used in the wrong state.";
    SoftLockup "soft-lockup" Stall "A processor stayed in the kernel without scheduling.";
    HardLockup "hard-lockup" Stall "A processor took no interrupts.";
    RcuStall "rcu-stall" Stall "A grace period does not end.";
    HungTask "hung-task" Stall "A task sleeps uninterruptibly for long.";
    WorkqueueLockup "workqueue-lockup" Stall "A workqueue's pool of workers makes no progress.";
    Deadlock "deadlock" Warning "Lock dependencies that can deadlock.";
    LockState "lock-state" Warning "A lock taken in contexts that exclude each other.";
    LockUse "lock-use" Warning "A lock used against its rules.";
    RcuUsage "rcu-usage" Warning "A read of RCU data without its lock.";
    Atomic "scheduling-while-atomic" Warning "The scheduler was entered in atomic context.";
    InvalidContext "invalid-context" Warning "A function that may sleep was called where that is not allowed.";
    Preemptible "preemptible" Warning "Per-processor data used in preemptible code.";
    BadPage "bad-page" Warning "A page with state that it must not have.";
    SlabCorruption "slab-corruption" Warning "A slab object or its padding was overwritten.";
    OomKill "oom-kill" Warning "Out of memory, and a process was killed.";
    Netdevice "netdevice-reference" Stall "A network device whose references are never dropped.";
}

impl Serialize for Class {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl Class {
    /// Whether the kernel stopped, or killed the task that it ran for.
    pub fn is_fatal(self) -> bool {
        self.weight() == Weight::Fatal
    }

    /// Whether something does not go on.
    pub fn is_stall(self) -> bool {
        self.weight() == Weight::Stall
    }

    /// Whether the kernel went on.
    pub fn is_warning(self) -> bool {
        self.weight() == Weight::Warning
    }

    /// Whether it is a processor exception, which `Oops:` and a register dump complete.
    pub fn is_trap(self) -> bool {
        matches!(
            self,
            Self::Oops
                | Self::NullDeref
                | Self::PageFault
                | Self::GeneralProtection
                | Self::Bug
                | Self::Divide
                | Self::InvalidOpcode
                | Self::DoubleFault
                | Self::StackSegment
                | Self::Alignment
                | Self::StackOverflow
                | Self::Exception
                | Self::Usercopy
                | Self::Corruption
        )
    }

    /// The class of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|class| class.name() == name)
    }
}

//! The kinds of events of the `DBG` dialect and their names on the wire.

/// Declares the kinds of events and their names on the wire.
macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// The types of events that this version knows; `Other` is any other type.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum EventKind {
            $(#[doc = concat!("`", $text, "`")] $name,)*
            /// A type without a record of its own.
            Other,
        }

        impl EventKind {
            /// Every kind, `Other` last.
            pub const ALL: &'static [EventKind] = &[$(EventKind::$name,)* EventKind::Other];

            /// The name in the log.
            pub const fn name(self) -> &'static str {
                match self {
                    $(EventKind::$name => $text,)*
                    EventKind::Other => "other",
                }
            }

            /// The kind of this name; `Other` when there is none.
            #[inline]
            #[must_use]
            pub fn from_name(name: &[u8]) -> EventKind {
                $(if name == $text.as_bytes() { return EventKind::$name; })*
                EventKind::Other
            }
        }
    };
}

// The most frequent come first: names are compared in this order.
kinds! {
    SyscallEntry = "syscall_entry",
    SyscallExit = "syscall_exit",
    CanaryCheck = "canary_check",
    Htrace = "htrace",
    PageFault = "page_fault",
    Usercopy = "usercopy",
    Signal = "signal",
    ProcessFork = "process_fork",
    ProcessExec = "process_exec",
    ProcessExit = "process_exit",
    UnimplementedSyscall = "unimplemented_syscall",
    UserFault = "user_fault",
    UsercopyFault = "usercopy_fault",
    UcopyTraceDump = "ucopy_trace_dump",
    SignalStackWrite = "signal_stack_write",
    CrashReport = "crash_report",
    Panic = "panic",
    SyscallProfile = "syscall_profile",
    PageFaults = "page_faults",
    SpanProfile = "span_profile",
    HtraceSummary = "htrace_summary",
    PageVerifyFail = "page_verify_fail",
    HugePageVerifyFail = "huge_page_verify_fail",
    PageVerifyOk = "page_verify_ok",
    VmAudit = "vm_audit",
    ExecPrefault = "exec_prefault",
}

//! Says which events matter to the importer beyond being recorded, and into which section each kind goes.
//!
//! Frequent events go by without a look: their [`Notable::notice`] is a constant. Rare ones that inspection wants without
//! reading a gigabyte of events have sections of their own.

use kwab_format::SectionKind;
use kwab_format::record::{
    CanaryCheck, CrashReport, ExecPrefault, Htrace, HtraceSummary, HugePageVerifyFail, PageFault, PageFaults,
    PageVerifyFail, PageVerifyOk, Panic, ProcessExec, ProcessExit, ProcessFork, Signal, SignalStackWrite, SpanProfile,
    Stamp, SyscallEntry, SyscallExit, SyscallProfile, UcopyTraceDump, UnimplementedSyscall, UnknownEvent, UserFault,
    Usercopy, UsercopyFault, VmAudit,
};

/// What the importer does with an event beside recording it.
#[derive(Debug, Clone, Copy)]
pub enum Notice<'r, 'a> {
    /// Nothing.
    None,
    /// A signal was sent or delivered: it may be fatal.
    Signal(&'r Signal<'a>),
    /// A program died, with everything the kernel knew.
    CrashReport(&'r CrashReport<'a>),
    /// The kernel gave up.
    Panic(&'r Panic<'a>),
    /// A page fault that nothing resolved.
    PageFault(&'r PageFault<'a>),
    /// An exception in a program.
    UserFault(&'r UserFault<'a>),
    /// A process began to run a program.
    Exec(&'r ProcessExec<'a>),
    /// A process ended.
    Exit(&'r ProcessExit<'a>),
    /// A process was made.
    Fork(&'r ProcessFork<'a>),
    /// A call that the kernel does not have.
    Unimplemented(&'r UnimplementedSyscall<'a>),
    /// The frequency of the clock, from a profile.
    Clock(Option<u64>),
}

/// An event record as the importer sees it.
pub trait Notable<'a> {
    /// The section it goes into.
    const SECTION: SectionKind = SectionKind::EVENTS;

    /// What it means.
    #[inline(always)]
    fn notice(&self) -> Notice<'_, 'a> {
        Notice::None
    }

    /// When and where it happened.
    fn stamp(&self) -> &Stamp<'a>;
}

macro_rules! notable {
    ($($name:ident $(in $section:ident)? $(=> |$record:ident| $notice:expr)?;)*) => {$(
        impl<'a> Notable<'a> for $name<'a> {
            $(const SECTION: SectionKind = SectionKind::$section;)?
            $(#[inline(always)]
            fn notice(&self) -> Notice<'_, 'a> {
                let $record = self;
                $notice
            })?
            #[inline(always)]
            fn stamp(&self) -> &Stamp<'a> {
                &self.stamp
            }
        }
    )*};
}

notable! {
    SyscallEntry;
    SyscallExit;
    CanaryCheck;
    Htrace;
    Usercopy;
    SignalStackWrite;
    ExecPrefault;
    UnknownEvent;
    PageFault => |r| if r.resolved == Some(false) { Notice::PageFault(r) } else { Notice::None };
    Signal => |r| Notice::Signal(r);
    ProcessFork => |r| Notice::Fork(r);
    ProcessExec => |r| Notice::Exec(r);
    ProcessExit => |r| Notice::Exit(r);
    UnimplementedSyscall => |r| Notice::Unimplemented(r);
    UserFault => |r| Notice::UserFault(r);
    UsercopyFault;
    UcopyTraceDump;
    CrashReport in CAUSE => |r| Notice::CrashReport(r);
    Panic in CAUSE => |r| Notice::Panic(r);
    SyscallProfile in COUNTERS => |r| Notice::Clock(r.tsc_freq_hz);
    SpanProfile in COUNTERS => |r| Notice::Clock(r.tsc_freq_hz);
    PageFaults in COUNTERS;
    HtraceSummary in COUNTERS;
    PageVerifyFail in PAGE_CHECKS;
    HugePageVerifyFail in PAGE_CHECKS;
    PageVerifyOk in PAGE_CHECKS;
    VmAudit in MEMORY_MAP;
}

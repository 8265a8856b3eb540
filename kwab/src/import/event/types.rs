//! The typed event: one variant per record, and what the importer has to know about each record type.
//!
//! Frequent events are recorded without a look: their [`EventRecord::is_interpreted`] is a constant. Rare ones that
//! inspection wants without reading a gigabyte of events have sections of their own.

use kwab_format::SectionKind;
use kwab_format::record::{
    CanaryCheck, CrashReport, ExecPrefault, Htrace, HtraceSummary, HugePageVerifyFail, PageFault, PageFaults,
    PageVerifyFail, PageVerifyOk, Panic, ProcessExec, ProcessExit, ProcessFork, Signal, SignalStackWrite, SpanProfile,
    Stamp, SyscallEntry, SyscallExit, SyscallProfile, UcopyTraceDump, UnimplementedSyscall, UnknownEvent, UserFault,
    Usercopy, UsercopyFault, VmAudit,
};
use kwab_format::wire::RecordType;

use super::listed::{
    CrashReportEvent, PanicEvent, SpanProfileEvent, SyscallProfileEvent, UcopyTraceDumpEvent, VmAuditEvent,
};
use crate::text::dialect::EventKind;

/// A record that an event becomes.
pub trait EventRecord<'a>: RecordType<'a> {
    /// The kind of its event.
    const EVENT: EventKind;
    /// The section it goes into.
    const SECTION: SectionKind = SectionKind::EVENTS;

    /// Whether the importer concludes something from it beside recording it.
    #[inline(always)]
    fn is_interpreted(&self) -> bool {
        false
    }

    /// Its time, processor and place.
    fn stamp(&self) -> &Stamp<'a>;
}

/// Declares the events: their variants, and the section and the interpretation of their records.
macro_rules! events {
    ($($kind:ident($owner:ty): $record:ident $(in $section:ident)? $(, interpreted $(when |$it:ident| $when:expr)?)?;)*) => {
        /// An event of a log, understood. It borrows from its line.
        #[derive(Debug)]
        pub enum Event<'a> {
            $(#[doc = concat!("A [`", stringify!($record), "`].")] $kind($owner),)*
        }

        impl Event<'_> {
            /// Its kind.
            #[must_use]
            pub const fn kind(&self) -> EventKind {
                match self {
                    $(Self::$kind(_) => EventKind::$kind,)*
                }
            }
        }

        $(impl<'a> EventRecord<'a> for $record<'a> {
            const EVENT: EventKind = EventKind::$kind;
            $(const SECTION: SectionKind = SectionKind::$section;)?
            $(#[inline(always)]
            fn is_interpreted(&self) -> bool {
                true $(&& { let $it = self; $when })?
            })?
            #[inline(always)]
            fn stamp(&self) -> &Stamp<'a> {
                &self.stamp
            }
        })*
    };
}

events! {
    SyscallEntry(SyscallEntry<'a>): SyscallEntry;
    SyscallExit(SyscallExit<'a>): SyscallExit;
    CanaryCheck(CanaryCheck<'a>): CanaryCheck;
    Htrace(Htrace<'a>): Htrace;
    PageFault(PageFault<'a>): PageFault, interpreted when |fault| fault.resolved == Some(false);
    Usercopy(Usercopy<'a>): Usercopy;
    Signal(Signal<'a>): Signal, interpreted;
    ProcessFork(ProcessFork<'a>): ProcessFork, interpreted;
    ProcessExec(ProcessExec<'a>): ProcessExec, interpreted;
    ProcessExit(ProcessExit<'a>): ProcessExit, interpreted;
    UnimplementedSyscall(UnimplementedSyscall<'a>): UnimplementedSyscall, interpreted;
    UserFault(UserFault<'a>): UserFault, interpreted;
    UsercopyFault(UsercopyFault<'a>): UsercopyFault;
    UcopyTraceDump(Box<UcopyTraceDumpEvent<'a>>): UcopyTraceDump;
    SignalStackWrite(SignalStackWrite<'a>): SignalStackWrite;
    CrashReport(Box<CrashReportEvent<'a>>): CrashReport in CAUSE, interpreted;
    Panic(Box<PanicEvent<'a>>): Panic in CAUSE, interpreted;
    SyscallProfile(Box<SyscallProfileEvent<'a>>): SyscallProfile in COUNTERS, interpreted;
    PageFaults(PageFaults<'a>): PageFaults in COUNTERS;
    SpanProfile(Box<SpanProfileEvent<'a>>): SpanProfile in COUNTERS, interpreted;
    HtraceSummary(HtraceSummary<'a>): HtraceSummary in COUNTERS;
    PageVerifyFail(PageVerifyFail<'a>): PageVerifyFail in PAGE_CHECKS;
    HugePageVerifyFail(HugePageVerifyFail<'a>): HugePageVerifyFail in PAGE_CHECKS;
    PageVerifyOk(PageVerifyOk<'a>): PageVerifyOk in PAGE_CHECKS;
    VmAudit(Box<VmAuditEvent<'a>>): VmAudit in MEMORY_MAP;
    ExecPrefault(ExecPrefault<'a>): ExecPrefault;
    Other(UnknownEvent<'a>): UnknownEvent;
}

/// Evaluates an expression with the record of an event, whatever its type.
macro_rules! with_record {
    ($event:expr, $record:ident => $body:expr) => {
        match $event {
            $crate::import::event::Event::SyscallEntry($record) => $body,
            $crate::import::event::Event::SyscallExit($record) => $body,
            $crate::import::event::Event::CanaryCheck($record) => $body,
            $crate::import::event::Event::Htrace($record) => $body,
            $crate::import::event::Event::PageFault($record) => $body,
            $crate::import::event::Event::Usercopy($record) => $body,
            $crate::import::event::Event::Signal($record) => $body,
            $crate::import::event::Event::ProcessFork($record) => $body,
            $crate::import::event::Event::ProcessExec($record) => $body,
            $crate::import::event::Event::ProcessExit($record) => $body,
            $crate::import::event::Event::UnimplementedSyscall($record) => $body,
            $crate::import::event::Event::UserFault($record) => $body,
            $crate::import::event::Event::UsercopyFault($record) => $body,
            $crate::import::event::Event::UcopyTraceDump(owner) => {
                let $record = &owner.record();
                $body
            }
            $crate::import::event::Event::SignalStackWrite($record) => $body,
            $crate::import::event::Event::CrashReport(owner) => {
                let $record = &owner.record();
                $body
            }
            $crate::import::event::Event::Panic(owner) => {
                let $record = &owner.record();
                $body
            }
            $crate::import::event::Event::SyscallProfile(owner) => {
                let $record = &owner.record();
                $body
            }
            $crate::import::event::Event::PageFaults($record) => $body,
            $crate::import::event::Event::SpanProfile(owner) => {
                let $record = &owner.record();
                $body
            }
            $crate::import::event::Event::HtraceSummary($record) => $body,
            $crate::import::event::Event::PageVerifyFail($record) => $body,
            $crate::import::event::Event::HugePageVerifyFail($record) => $body,
            $crate::import::event::Event::PageVerifyOk($record) => $body,
            $crate::import::event::Event::VmAudit(owner) => {
                let $record = &owner.record();
                $body
            }
            $crate::import::event::Event::ExecPrefault($record) => $body,
            $crate::import::event::Event::Other($record) => $body,
        }
    };
}

pub(crate) use with_record;

//! The typed event: one variant per record, and what the importer has to know about each record type.
//!
//! Events with lists own memory, and are an enum of their own: the frequent ones then cost nothing to drop.
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
    const SECTION: SectionKind;

    /// Whether the importer concludes something from it beside recording it.
    #[inline(always)]
    fn is_interpreted(&self) -> bool {
        false
    }

    /// Its time, processor and position.
    fn stamp(&self) -> &Stamp<'a>;
}

/// Declares the events: their variants, and the section and the interpretation of their records.
macro_rules! events {
    (plain { $($kind:ident: $plain:ident $plain_more:tt;)* }
     listed { $($list_kind:ident($owner:ident): $listed:ident $listed_more:tt;)* }) => {
        /// An event of a log without lists, understood. It borrows from its line.
        #[derive(Debug, Clone, Copy)]
        pub enum Event<'a> {
            $(#[doc = concat!("A [`", stringify!($plain), "`].")] $kind($plain<'a>),)*
        }

        /// An event with lists.
        #[derive(Debug)]
        pub enum ListedEvent<'a> {
            $(#[doc = concat!("A [`", stringify!($listed), "`].")] $list_kind($owner<'a>),)*
        }

        impl EventSlot<'_> {
            /// The kind of the event; `None` when the slot is empty.
            #[must_use]
            pub fn kind(&self) -> Option<EventKind> {
                match (&self.plain, self.listed.as_deref()) {
                    $((Some(Event::$kind(_)), _) => Some(EventKind::$kind),)*
                    $((None, Some(ListedEvent::$list_kind(_))) => Some(EventKind::$list_kind),)*
                    (None, None) => None,
                }
            }
        }

        $(event_record!($plain: $kind $plain_more);)*
        $(event_record!($listed: $list_kind $listed_more);)*
    };
}

/// What the importer has to know about one record type.
macro_rules! event_record {
    ($record:ident: $kind:ident ($section:ident $(, interpreted $(when |$it:ident| $when:expr)?)?)) => {
        impl<'a> EventRecord<'a> for $record<'a> {
            const EVENT: EventKind = EventKind::$kind;
            const SECTION: SectionKind = SectionKind::$section;
            $(#[inline(always)]
            fn is_interpreted(&self) -> bool {
                true $(&& { let $it = self; $when })?
            })?
            #[inline(always)]
            fn stamp(&self) -> &Stamp<'a> {
                &self.stamp
            }
        }
    };
}

/// The storage that an event is read into, so that nothing as long as a record is moved.
#[derive(Debug, Default)]
pub struct EventSlot<'a> {
    /// An event without lists.
    pub plain: Option<Event<'a>>,
    /// An event with lists; only when the other is `None`.
    pub listed: Option<Box<ListedEvent<'a>>>,
}

events! {
    plain {
        SyscallEntry: SyscallEntry (EVENTS);
        SyscallExit: SyscallExit (EVENTS);
        CanaryCheck: CanaryCheck (EVENTS);
        Htrace: Htrace (EVENTS);
        PageFault: PageFault (EVENTS, interpreted when |fault| fault.resolved == Some(false));
        Usercopy: Usercopy (EVENTS);
        Signal: Signal (EVENTS, interpreted);
        ProcessFork: ProcessFork (EVENTS, interpreted);
        ProcessExec: ProcessExec (EVENTS, interpreted);
        ProcessExit: ProcessExit (EVENTS, interpreted);
        UnimplementedSyscall: UnimplementedSyscall (EVENTS, interpreted);
        UserFault: UserFault (EVENTS, interpreted);
        UsercopyFault: UsercopyFault (EVENTS);
        SignalStackWrite: SignalStackWrite (EVENTS);
        PageFaults: PageFaults (COUNTERS);
        HtraceSummary: HtraceSummary (COUNTERS);
        PageVerifyFail: PageVerifyFail (PAGE_CHECKS);
        HugePageVerifyFail: HugePageVerifyFail (PAGE_CHECKS);
        PageVerifyOk: PageVerifyOk (PAGE_CHECKS);
        ExecPrefault: ExecPrefault (EVENTS);
        Other: UnknownEvent (EVENTS);
    }
    listed {
        UcopyTraceDump(UcopyTraceDumpEvent): UcopyTraceDump (EVENTS);
        CrashReport(CrashReportEvent): CrashReport (CAUSE, interpreted);
        Panic(PanicEvent): Panic (CAUSE, interpreted);
        SyscallProfile(SyscallProfileEvent): SyscallProfile (COUNTERS, interpreted);
        SpanProfile(SpanProfileEvent): SpanProfile (COUNTERS, interpreted);
        VmAudit(VmAuditEvent): VmAudit (MEMORY_MAP);
    }
}

/// Evaluates an expression with the record of the event in a slot, whatever its type; another one for an empty slot.
macro_rules! with_record {
    ($slot:expr, $record:ident => $body:expr, else $empty:expr) => {
        match &$slot.plain {
            Some($crate::import::event::Event::SyscallEntry($record)) => $body,
            Some($crate::import::event::Event::SyscallExit($record)) => $body,
            Some($crate::import::event::Event::CanaryCheck($record)) => $body,
            Some($crate::import::event::Event::Htrace($record)) => $body,
            Some($crate::import::event::Event::PageFault($record)) => $body,
            Some($crate::import::event::Event::Usercopy($record)) => $body,
            Some($crate::import::event::Event::Signal($record)) => $body,
            Some($crate::import::event::Event::ProcessFork($record)) => $body,
            Some($crate::import::event::Event::ProcessExec($record)) => $body,
            Some($crate::import::event::Event::ProcessExit($record)) => $body,
            Some($crate::import::event::Event::UnimplementedSyscall($record)) => $body,
            Some($crate::import::event::Event::UserFault($record)) => $body,
            Some($crate::import::event::Event::UsercopyFault($record)) => $body,
            Some($crate::import::event::Event::SignalStackWrite($record)) => $body,
            Some($crate::import::event::Event::PageFaults($record)) => $body,
            Some($crate::import::event::Event::HtraceSummary($record)) => $body,
            Some($crate::import::event::Event::PageVerifyFail($record)) => $body,
            Some($crate::import::event::Event::HugePageVerifyFail($record)) => $body,
            Some($crate::import::event::Event::PageVerifyOk($record)) => $body,
            Some($crate::import::event::Event::ExecPrefault($record)) => $body,
            Some($crate::import::event::Event::Other($record)) => $body,
            None => match $slot.listed.as_deref() {
                Some($crate::import::event::ListedEvent::UcopyTraceDump(owner)) => {
                    let $record = &owner.record();
                    $body
                }
                Some($crate::import::event::ListedEvent::CrashReport(owner)) => {
                    let $record = &owner.record();
                    $body
                }
                Some($crate::import::event::ListedEvent::Panic(owner)) => {
                    let $record = &owner.record();
                    $body
                }
                Some($crate::import::event::ListedEvent::SyscallProfile(owner)) => {
                    let $record = &owner.record();
                    $body
                }
                Some($crate::import::event::ListedEvent::SpanProfile(owner)) => {
                    let $record = &owner.record();
                    $body
                }
                Some($crate::import::event::ListedEvent::VmAudit(owner)) => {
                    let $record = &owner.record();
                    $body
                }
                None => $empty,
            },
        }
    };
}

pub(crate) use with_record;

//! The events that hold lists. A record only borrows its lists; these own them.

use kwab_format::List;
use kwab_format::record::{
    AuditVma, CrashReport, CrashSyscall, CrashVma, Panic, PanicFrame, Reg, SpanProfile, SpanProfileEntry,
    SyscallProfile, SyscallProfileEntry, UcopyEntry, UcopyTraceDump, VmAudit,
};

/// Declares an event that owns the lists its record borrows.
macro_rules! owns_lists {
    ($($event:ident: $record:ident { $($list:ident: $element:ident),+ };)*) => {$(
        #[doc = concat!("A [`", stringify!($record), "`] with the lists it holds.")]
        #[derive(Debug)]
        pub struct $event<'a> {
            pub(super) plain: $record<'a>,
            $(pub(super) $list: Option<Vec<$element<'a>>>,)+
        }

        impl $event<'_> {
            /// The record, which borrows the lists.
            #[must_use]
            pub fn record(&self) -> $record<'_> {
                let mut record: $record<'_> = self.plain;
                $(record.$list = self.$list.as_deref().map(List::new);)+
                record
            }
        }
    )*};
}

owns_lists! {
    CrashReportEvent: CrashReport { regs: Reg, syscalls: CrashSyscall, vmas: CrashVma };
    PanicEvent: Panic { backtrace: PanicFrame };
    UcopyTraceDumpEvent: UcopyTraceDump { entries: UcopyEntry };
    SyscallProfileEvent: SyscallProfile { entries: SyscallProfileEntry };
    SpanProfileEvent: SpanProfile { entries: SpanProfileEntry };
    VmAuditEvent: VmAudit { vmas: AuditVma };
}

//! One death, as every part of kwab holds it: what a [`Cause`] record says, with texts of its own.
//!
//! `import` fills it from the lines of a log and writes it as a record; analyses begin with it and add what registers
//! and other records say; reports render it.

use kwab_format::record::{Cause, CauseKind, CrashReport, Panic, Stamp};

use super::dump::Dump;

/// Makes a struct that owns what a [`Cause`] borrows, with the conversions of both directions.
macro_rules! owned_cause {
    (
        $(#[$about:meta])* $name:ident
        values { $($(#[$doc:meta])* $value:ident: $type:ty,)* }
        texts { $($(#[$text_doc:meta])* $text:ident,)* }
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, Default, PartialEq)]
        pub struct $name {
            $($(#[$doc])* pub $value: Option<$type>,)*
            $($(#[$text_doc])* pub $text: Option<Vec<u8>>,)*
            /// The processor that died or ran the dead program.
            pub cpu: Option<u32>,
            /// Time of death, nanoseconds since boot.
            pub ns: Option<u64>,
            /// Line of the log where the death was first seen.
            pub line: Option<u64>,
        }

        impl From<&Cause<'_>> for $name {
            fn from(cause: &Cause<'_>) -> Self {
                Self {
                    $($value: cause.$value,)*
                    $($text: cause.$text.map(<[u8]>::to_vec),)*
                    cpu: cause.stamp.cpu,
                    ns: cause.stamp.ns,
                    line: cause.stamp.line,
                }
            }
        }

        impl $name {
            /// The record that says this.
            #[must_use]
            pub fn record(&self) -> Cause<'_> {
                Cause {
                    $($value: self.$value,)*
                    $($text: self.$text.as_deref(),)*
                    stamp: Stamp { cpu: self.cpu, ns: self.ns, line: self.line, ..Stamp::default() },
                }
            }
        }
    };
}

owned_cause! {
    /// What died, where and why, as far as it is known.
    Death
    values {
        /// The kind of death.
        kind: CauseKind,
        /// Line in [`file`](Self::file).
        source_line: u32,
        /// Column in that line.
        column: u32,
        /// The process that died, or that ran when the kernel died.
        pid: u32,
        /// The thread of that process.
        tid: u32,
        /// Number of the signal a program died of.
        signal: u32,
        /// `si_code` of that signal (sigaction(2)).
        signal_code: i64,
        /// Address whose access failed.
        fault_addr: u64,
        /// Address of the instruction.
        ip: u64,
        /// Stack pointer at the death.
        sp: u64,
        /// Number of the exception.
        vector: u32,
        /// Error code of the exception.
        error_code: u64,
        /// Number of the system call in progress.
        syscall: i64,
        /// Whether the processor was in the kernel.
        in_kernel: bool,
        /// Address of the lock that is held or awaited.
        lock: u64,
    }
    texts {
        /// The kernel's message, or the line that told of the death.
        message,
        /// Source file of a panic.
        file,
        /// Name of the thread.
        comm,
        /// Command line of the process.
        cmdline,
        /// Name of the signal.
        signal_name,
        /// Name of the exception.
        exception,
        /// Symbol and offset printed with the instruction.
        location,
        /// What the kernel was doing, in its words.
        context,
    }
}

/// What a program that died is called in every report: the first word of its command line, else the thread's name.
#[must_use]
pub fn program_name<'a>(cmdline: Option<&'a [u8]>, comm: Option<&'a [u8]>) -> Option<&'a [u8]> {
    let word = |line: &'a [u8]| line.split(|byte| *byte == b' ').next().filter(|word| !word.is_empty());
    cmdline.and_then(word).or(comm)
}

/// Vector of a non-maskable interrupt (SDM volume 3, table 6-1).
const NMI: u32 = 2;

impl Death {
    /// The death that a dump is about: its cause record, or what a panic event or a crash report says when the kernel
    /// wrote none. `None` when the loaded records tell of no death.
    #[must_use]
    pub fn of(dump: &Dump) -> Option<Self> {
        let cause = dump.records::<Cause<'_>>().next().map(|cause| Self::from(&cause));
        let panic = || dump.records::<Panic<'_>>().next().map(|panic| Self::from(&panic));
        let report = || dump.records::<CrashReport<'_>>().next().map(|report| Self::from(&report));
        cause.or_else(panic).or_else(report)
    }

    /// Whether the exception of an instruction was the death. An NMI, a watchdog and a request stop a processor
    /// wherever it is, and a panic is a call.
    #[must_use]
    pub fn is_fault(&self) -> bool {
        let by_kind = matches!(
            self.kind,
            Some(
                CauseKind::EXCEPTION
                    | CauseKind::DOUBLE_FAULT
                    | CauseKind::STACK_OVERFLOW
                    | CauseKind::OOPS
                    | CauseKind::FAULT_LOOP
            )
        );
        let by_signal = matches!(self.signal, Some(4 | 5 | 7 | 8 | 11));
        by_kind || by_signal || self.fault_addr.is_some() || self.vector.is_some_and(|vector| vector != NMI)
    }

    /// Whether the kernel died, rather than a program: what the record says, else by the kind.
    #[must_use]
    pub fn is_of_kernel(&self) -> bool {
        self.in_kernel.unwrap_or(self.kind != Some(CauseKind::FATAL_SIGNAL))
    }

    /// Where in the source a panic was raised, `file:line`.
    #[must_use]
    pub fn source(&self) -> Option<String> {
        let file = String::from_utf8_lossy(self.file.as_deref()?);
        let file = without_toolchain(&file);
        Some(self.source_line.map_or_else(|| file.to_owned(), |line| format!("{file}:{line}")))
    }

    /// Whether a printed frame is that of the instruction itself, which the kernel prints beside the registers: the
    /// first one, with that function's name. The addresses of all others are return addresses.
    #[must_use]
    pub fn is_instruction(&self, index: u32, symbol: &[u8]) -> bool {
        let told = self.location.as_deref().and_then(crate::text::console::location);
        index == 0 && told.is_some_and(|told| told.symbol == symbol)
    }

    /// What kind of death it was, in words. Linux names stalls that are no soft lockup; its words are kept.
    #[must_use]
    pub fn kind_name(&self) -> &'static str {
        const NAMES: &[(&str, &str)] = &[
            ("workqueue lockup", "workqueue lockup"),
            ("hard LOCKUP", "hard lockup"),
            ("BUG: hard lockup", "hard lockup"),
            ("INFO: rcu", "RCU stall"),
        ];
        let message = String::from_utf8_lossy(self.message.as_deref().unwrap_or_default());
        let linux = NAMES.iter().find(|(words, _)| message.contains(words)).map(|(_, name)| *name);
        let name = linux.filter(|_| self.kind == Some(CauseKind::SOFT_LOCKUP));
        name.or_else(|| self.kind.and_then(CauseKind::name)).unwrap_or("death")
    }

    /// Whether nothing died: something does not go on, and a watchdog or a non-maskable interrupt says so.
    #[must_use]
    pub fn is_hang(&self) -> bool {
        use CauseKind as Kind;
        let kinds = [Kind::HUNG_TASK, Kind::SOFT_LOCKUP, Kind::NMI, Kind::STALL, Kind::FAULT_LOOP];
        self.kind.is_some_and(|kind| kinds.contains(&kind))
    }

    /// Notes source file and line of a panic, unless they are known.
    pub fn raised_at(&mut self, file: &[u8], line: u32) {
        if self.file.is_none() {
            (self.file, self.source_line) = (Some(file.to_vec()), Some(line));
        }
    }

    /// Notes number and name of the signal, unless a signal is known.
    pub fn signalled(&mut self, number: u32, name: impl Into<Vec<u8>>) {
        if self.signal.is_none() {
            (self.signal, self.signal_name) = (Some(number), Some(name.into()));
        }
    }
}

impl From<&Panic<'_>> for Death {
    fn from(panic: &Panic<'_>) -> Self {
        Self {
            in_kernel: Some(true),
            ..Self::from(&Cause {
                kind: Some(CauseKind::PANIC),
                message: panic.message,
                stamp: panic.stamp,
                ..Cause::default()
            })
        }
    }
}

impl From<&CrashReport<'_>> for Death {
    fn from(report: &CrashReport<'_>) -> Self {
        Self::from(&Cause {
            kind: Some(CauseKind::FATAL_SIGNAL),
            pid: report.pid,
            cmdline: report.cmdline,
            signal: report.signal.and_then(|signal| u32::try_from(signal).ok()),
            signal_name: report.signal_name,
            fault_addr: report.fault_addr,
            ip: report.ip,
            stamp: report.stamp,
            ..Cause::default()
        })
    }
}

/// A path of Rust's library without what is of one toolchain: `/rustc/HASH/library/core/src/ptr.rs` begins with
/// `library`.
fn without_toolchain(file: &str) -> &str {
    let below = file.strip_prefix("/rustc/").and_then(|rest| rest.split_once('/'));
    below.map_or(file, |(_, path)| path)
}

/// Whether a source file is of Rust's library or of a downloaded package, of which a project has no file.
#[must_use]
pub fn is_of_library(file: &str) -> bool {
    const RUST: [&str; 4] = ["/rustc/", "library/alloc/src/", "library/core/src/", "library/std/src/"];
    RUST.iter().any(|folder| file.starts_with(folder)) || file.contains("/.cargo/registry/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_processor_that_an_nmi_or_a_panic_stopped_did_not_fault_there() {
        let of = |kind, vector| Death { kind: Some(kind), vector, ..Death::default() };
        for (kind, vector) in
            [(CauseKind::NMI, Some(2)), (CauseKind::SYSRQ, None), (CauseKind::PANIC, None), (CauseKind::STALL, None)]
        {
            assert!(!of(kind, vector).is_fault(), "{kind:?}");
        }
        assert!(of(CauseKind::EXCEPTION, Some(13)).is_fault() && of(CauseKind::STACK_OVERFLOW, None).is_fault());
        let signal = |number| Death { signal: Some(number), ..of(CauseKind::FATAL_SIGNAL, None) };
        assert!(signal(11).is_fault() && !signal(9).is_fault());
    }

    #[test]
    fn a_death_says_the_record_it_was_read_from() {
        let cause = Cause {
            kind: Some(CauseKind::EXCEPTION),
            message: Some(b"page fault"),
            file: Some(b"mm/fault.rs"),
            source_line: Some(7),
            column: Some(3),
            pid: Some(1),
            tid: Some(2),
            comm: Some(b"init"),
            cmdline: Some(b"/init"),
            signal: Some(11),
            signal_name: Some(b"SIGSEGV"),
            signal_code: Some(1),
            fault_addr: Some(0x10),
            ip: Some(0x40),
            sp: Some(0x80),
            vector: Some(14),
            exception: Some(b"page fault"),
            error_code: Some(4),
            syscall: Some(0),
            location: Some(b"f+0x1"),
            in_kernel: Some(true),
            lock: Some(8),
            context: Some(b"idle"),
            stamp: Stamp { cpu: Some(1), ns: Some(9), line: Some(5), ..Stamp::default() },
        };
        assert_eq!(Death::from(&cause).record(), cause);
    }
}

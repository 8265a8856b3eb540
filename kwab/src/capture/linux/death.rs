//! Reads out of a Linux's log what it died of, when it says so: a machine that panicked stands still with its report.

use std::io::Cursor;

use kwab_format::Records;
use kwab_format::SectionKind;
use kwab_format::record::{Cause, CauseKind, RawRecord};

use crate::analysis;
use crate::import::{Options, import};
use crate::model::{Depth, Dump, DumpFile};

/// The sections that say how something died; the rest of the machine is read from its memory.
const SECTIONS: [SectionKind; 3] = [SectionKind::CAUSE, SectionKind::REGISTERS, SectionKind::STACKS];

/// What a kernel does not outlive, or goes on from with a thread less; a bug is one when it is not a warning.
const FATAL: [CauseKind; 7] = [
    CauseKind::PANIC,
    CauseKind::EXCEPTION,
    CauseKind::DOUBLE_FAULT,
    CauseKind::STACK_OVERFLOW,
    CauseKind::OOPS,
    CauseKind::RECURSIVE_PANIC,
    CauseKind::SYSRQ,
];

/// A death as records.
#[derive(Debug)]
pub struct Death(Dump);

/// The last death of the kernel in a log. Warnings and stalls, which a kernel outlives, are none unless
/// it panicked.
pub(super) fn of_log(log: &[u8]) -> Option<Death> {
    let has_panicked = memchr::memmem::find(log, b"Kernel panic - not syncing").is_some();
    let options = Options { source: "log".to_owned(), folder: Some(std::env::temp_dir()) };
    let (_, dumps) = import(Cursor::new(log), &options, &mut |_offset| ()).ok()?;
    let last = dumps.into_iter().rfind(|dump| dump.summary.kind == "panic")?;
    let file = DumpFile::of_file(last.file?.into_file().ok()?, 1).ok()?;
    let dump = Dump::load(file, Depth::Export);
    let is_death = dump.records::<Cause<'_>>().next().is_some_and(|cause| {
        let message = String::from_utf8_lossy(cause.message.unwrap_or_default());
        let is_bug = cause.kind == Some(CauseKind::BUG) && analysis::in_words(cause.kind, &message).is_none();
        is_bug || has_panicked || cause.kind.is_some_and(|kind| FATAL.contains(&kind))
    });
    is_death.then_some(Death(dump))
}

impl Death {
    /// Its records and the sections that they belong to.
    pub(in crate::capture) fn records(&self) -> impl Iterator<Item = (SectionKind, RawRecord<'_>)> {
        let sections = self.0.loaded.iter().filter(|section| SECTIONS.contains(&section.kind));
        sections.flat_map(|section| Records::new(&section.payload).map(|record| (section.kind, record)))
    }
}

//! Feeds console text to the recogniser of reports, and gives its reports to the crashes they are about.
//!
//! One boot of a kernel is one crash. Its cause is the first report of the greatest weight that follows from no other:
//! what killed the kernel before what stalled it, and that before what it only warned of. Every other report is a
//! remark.
//!
//! A log with events is that of a kernel whose own words [`super::console`] reads; the recogniser leaves it alone.

use kwab_format::record::{CauseKind, NoteKind};

use super::crash::{Crash, cause_kind};
use super::lines::LogPosition;
use super::reports::class::{Class, Weight};
use super::reports::dialect::Dialects;
use super::reports::{Recogniser, Report, Role};

/// What the recogniser says about a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heard {
    /// The kind of death that the line announces.
    pub opens: Option<CauseKind>,
    /// Whether the line is part of a report.
    pub belongs: bool,
}

/// The recogniser and what it has found in this boot.
#[derive(Debug)]
pub struct Reported {
    recogniser: Recogniser,
    /// The weight of the report that the crash of this boot is told by.
    main: Option<(Weight, String, u64)>,
    /// Whether the kernel speaks a dialect that is read elsewhere.
    own: bool,
}

impl Reported {
    /// Recognises Linux and the kernels of `dialects`.
    pub fn new(dialects: Dialects) -> Self {
        Self { recogniser: Recogniser::with(dialects), main: None, own: false }
    }

    /// The kernel speaks a dialect that is read elsewhere: its lines are not looked at any more.
    pub fn leave(&mut self) {
        self.own = true;
    }

    /// The recogniser, while no report is open; it has then no state that a line without its needles could change.
    pub fn idle(&self) -> Option<&Recogniser> {
        (!self.recogniser.is_open()).then_some(&self.recogniser)
    }

    /// Whether a report goes on, and the last line that belongs to one which may.
    pub fn reading(&self) -> (bool, Option<u64>) {
        self.recogniser.reading()
    }

    /// Takes a line as it stands in the log.
    pub fn line(&mut self, line: &[u8], position: LogPosition) -> Heard {
        let nothing = Heard { opens: None, belongs: false };
        if self.own {
            return nothing;
        }
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        match self.recogniser.line(line, position) {
            Role::Console => nothing,
            Role::Belongs => Heard { belongs: true, ..nothing },
            Role::Opens(class) => Heard { opens: Some(kind_of(class)), belongs: true },
        }
    }

    /// The next finished report.
    pub fn next_report(&mut self) -> Option<Report> {
        self.recogniser.next_report()
    }

    /// The boot or the log ends: what is open is finished.
    pub fn finish(&mut self) {
        self.recogniser.finish();
    }

    /// A boot begins: its reports are about a crash of its own.
    pub fn begin_boot(&mut self) {
        self.main = None;
    }

    /// Whether a report tells about the crash of this boot already.
    pub fn has_main(&self) -> bool {
        self.main.is_some()
    }

    /// Gives a report to the crash it is about.
    pub fn give(&mut self, report: &Report, crash: &mut Crash) {
        let weight = if report.panic.is_some() { Weight::Fatal } else { report.class.weight() };
        let line = report.first.line;
        let heavier = match &self.main {
            None => true,
            Some((main, ..)) => report.follows.is_none() && rank(weight) < rank(*main),
        };
        if heavier {
            if let Some((_, headline, line)) = self.main.replace((weight, report.headline.clone(), line)) {
                crash.remark(NoteKind::REMARK, format!("line {line}: before it, {headline}"));
            }
            crash.adopt(report);
            return;
        }
        let how = if report.follows.is_some() { "follows" } else { "also reported" };
        crash.remark(NoteKind::REMARK, format!("line {line}: {how}: {}", report.headline));
    }
}

/// What kind of death a line announces.
fn kind_of(class: Class) -> CauseKind {
    cause_kind(class, true)
}

fn rank(weight: Weight) -> u8 {
    match weight {
        Weight::Fatal => 0,
        Weight::Stall => 1,
        Weight::Warning => 2,
    }
}

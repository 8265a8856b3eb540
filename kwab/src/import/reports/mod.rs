//! Recognises the crash reports of any kernel in the lines of its console.
//!
//! A line loses its transport ([`prefix`]); then it opens a report (the table of [`linux::heads`], the rows of
//! [`dialect`], the phrases of `deadly`), adds to one that is open ([`linux::body`], [`dialect::read`]), or is console
//! text. A [`Report`] is plain data: this module knows neither dumps nor the importer.
//!
//! Lines of interleaved processors are told apart by the caller id that `CONFIG_PRINTK_CALLER` prints; a report takes
//! only the lines of its caller, except stalls, which show the stacks of others. Without caller ids there is one
//! stream.
//!
//! Bounds: at most [`MOST_OPEN`] reports are open at once, each of the size that [`report`] says; a line costs time in
//! proportion to its length. No input makes the recogniser panic.

pub mod build;
pub mod class;
mod clean;
mod deadly;
pub mod decode;
pub mod dialect;
pub mod frame;
mod frames;
pub mod function;
pub mod generic;
mod head;
pub mod links;
pub mod linux;
mod merge;
pub mod needle;
mod opened;
mod pairs;
pub mod prefix;
mod program;
mod reflow;
pub mod registers;
pub mod report;
pub mod table;
pub mod template;
mod told;
mod transport;
pub mod words;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use build::{Builder, Took};
use class::Class;
use dialect::Dialects;
use head::{is_cut, is_text_of, opening};
use merge::{later_stage, merge};
use needle::Wanted;
use opened::{OF_PROCESS, Open, Reader, is_process, is_task};
use prefix::{Caller, Stripped, Stripper};
use reflow::Half;
pub use report::{LogPosition, Report};

/// Reports that are read at the same time.
pub const MOST_OPEN: usize = 8;
/// Lines in a row that say nothing about a report, behind which it is closed.
const PATIENCE: u32 = 64;
/// The same for a report that a line ended.
const PATIENCE_ENDED: u32 = 24;
/// Lines between a task in a list of them and its stack.
const LISTED_REACH: u64 = 3;
/// Lines between a cut mark and the head it belongs to.
const CUT_REACH: u64 = 10;

/// What [`Recogniser`] looks for besides its tables: a boot, the cut marks, a task line, the instruction of a fault, a
/// report in a string of JSON, an object of KFENCE.
const OWN_NEEDLES: [&[u8]; 15] = [
    b"Linux version ",
    b"------------[ cut here ]",
    b"8<--- cut here",
    b"====================",
    b"Comm: ",
    b"RIP: 0010:",
    b"NIP [",
    b"EIP: [<",
    b"RIP  [<ff",
    b"RIP [<ff",
    b"EIP is at ",
    b"PC is at ",
    head::END_OF_OOPS.0,
    head::COUNTERS[0],
    clean::PANIC_STRING,
];

/// What a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A line of console text.
    Console,
    /// The first line of a report that says what happened.
    Opens(Class),
    /// A line of an open report.
    Belongs,
}

/// Recognises reports, line by line.
#[derive(Debug)]
pub struct Recogniser {
    dialects: Dialects,
    stripper: Stripper,
    open: Vec<Open>,
    ready: VecDeque<Report>,
    links: links::Links,
    number: u32,
    /// The number of the last report that was given out.
    given: u32,
    /// The last cut mark, and who printed it.
    cut: Option<(LogPosition, Option<Caller>)>,
    /// Whether the log is one of Linux.
    linux: bool,
    /// The last line that told of a task in a list of them.
    listed: Option<u64>,
    /// The function at which the last report faulted.
    last_location: Option<String>,
    /// The line before, if it may be the first part of a head.
    half: Option<Half>,
    /// The line before without the soft break of quoted-printable text that it ends with.
    soft: Vec<u8>,
}

impl Default for Recogniser {
    fn default() -> Self {
        Self::new()
    }
}

impl Recogniser {
    /// Knows Linux and the builtin dialects.
    pub fn new() -> Self {
        Self::with(Dialects::builtin())
    }

    /// Knows Linux and these dialects.
    pub fn with(dialects: Dialects) -> Self {
        Self {
            dialects,
            stripper: Stripper::default(),
            open: Vec::new(),
            ready: VecDeque::new(),
            links: links::Links::default(),
            number: 0,
            given: 0,
            cut: None,
            linux: false,
            listed: None,
            last_location: None,
            half: None,
            soft: Vec::new(),
        }
    }

    /// Whether the log is known to be one of Linux. What it is decides about [`Self::needles`].
    pub fn is_linux(&self) -> bool {
        self.linux
    }

    /// What a line must hold to open a report. Stacks whose beginning is lost count only until the log is known to be
    /// one of Linux.
    pub fn needles(&self) -> impl Iterator<Item = Wanted> {
        let own = OWN_NEEDLES.into_iter().chain(OF_PROCESS).chain(reflow::BEGINNINGS).chain(head::OF_RUST);
        let stacks = (!self.linux).then(linux::lost::needles_of_stack).into_iter().flatten();
        linux::needles()
            .chain(stacks)
            .chain(self.dialects.needles())
            .chain(head::needles())
            .chain(head::bug_checks())
            .map(Wanted::all)
            .chain(own.map(Wanted::one))
            .chain(deadly::needles().map(Wanted::in_any_case))
    }

    /// Whether a line may have to be unpacked before it can be searched for [`Self::needles`].
    pub fn is_wrapped(line: &[u8]) -> bool {
        clean::may_be_wrapped(line) || reflow::softly_broken(line).is_some()
    }

    /// Takes a line as it stands in the log, without its end.
    pub fn line(&mut self, line: &[u8], position: LogPosition) -> Role {
        if let Some(begun) = reflow::softly_broken(line).filter(|_| self.soft.len() < reflow::LONGEST_SOFT) {
            self.soft.extend_from_slice(begun);
            return Role::Console;
        }
        if !self.soft.is_empty() {
            let mut whole = std::mem::take(&mut self.soft);
            whole.extend_from_slice(line);
            return self.unbroken(&whole, position);
        }
        self.unbroken(line, position)
    }

    /// A line without soft breaks.
    fn unbroken(&mut self, line: &[u8], position: LogPosition) -> Role {
        if let Some(quoted) = clean::quoted_panic(line) {
            let roles = quoted.lines().map(|line| self.plain_line(line.as_bytes(), position));
            return roles.fold(Role::Console, |role, next| if role == Role::Console { next } else { role });
        }
        self.plain_line(line, position)
    }

    fn plain_line(&mut self, line: &[u8], position: LogPosition) -> Role {
        let mut stripper = std::mem::take(&mut self.stripper);
        let mut role = Role::Console;
        for piece in reflow::pieces(&stripper.strip(line)) {
            let next = self.stripped(&piece, position);
            role = if role == Role::Console { next } else { role };
        }
        self.stripper = stripper;
        role
    }

    /// Whether a report is being read.
    pub fn is_open(&self) -> bool {
        !self.open.is_empty() || self.half.is_some() || !self.soft.is_empty()
    }

    /// Whether an open report has not had its last line, and the last line that belongs to an open one.
    pub fn reading(&self) -> (bool, Option<u64>) {
        let reports = || self.open.iter().filter(|open| open.is_report());
        (reports().any(|open| !open.builder.ended), reports().map(|open| open.builder.report.last.line).max())
    }

    /// The next finished report, in the order of first lines.
    pub fn next_report(&mut self) -> Option<Report> {
        let waiting = self.open.iter().filter(|open| open.is_report()).map(|open| open.builder.report.number).min();
        let ready = self.ready.front()?.number;
        if waiting.is_some_and(|number| number < ready) {
            return None;
        }
        self.given = ready;
        self.ready.pop_front()
    }

    /// The log ends: closes what is open.
    pub fn finish(&mut self) {
        self.half = None;
        self.soft.clear();
        while !self.open.is_empty() {
            self.close(0);
        }
    }

    fn stripped(&mut self, line: &Stripped<'_>, position: LogPosition) -> Role {
        let text = head::unmarked(line.text.trim_ascii());
        let line = &Stripped { text, ..*line };
        if text.is_empty() {
            return Role::Console;
        }
        if text.starts_with(b"Linux version ") {
            self.linux = true;
            self.new_boot();
            return Role::Console;
        }
        if let Some(role) = self.wrapped(line, text, position) {
            return role;
        }
        let role = self.whole_line(line, text, position);
        if Half::begins(text) {
            let opened = matches!(role, Role::Opens(_)).then_some(self.number);
            self.half = (role != Role::Belongs).then(|| Half::new(line, position, opened));
        }
        role
    }

    /// A line that completes the head of a report that the line before begins, where a mail program wrapped it.
    fn wrapped(&mut self, line: &Stripped<'_>, text: &[u8], position: LogPosition) -> Option<Role> {
        let half = self.half.take()?;
        if linux::find(text).is_some() {
            return None;
        }
        let half = half.with(line, position)?;
        if linux::find(&half.text).is_none() {
            self.half = Some(half).filter(|half| half.opened.is_none());
            return None;
        }
        let found = linux::find(&half.text)?;
        let Some(number) = half.opened else {
            let whole = Stripped { caller: half.caller, ns: half.ns, comm: None, text: &half.text, prefix: 0 };
            let at = self.stream(half.caller);
            let role = self.linux_head(at, &whole, &half.text, half.first)?;
            self.open.last_mut()?.builder.report.last = position;
            return Some(role);
        };
        let open = self.open.iter_mut().find(|open| open.builder.report.number == number)?;
        let before = linux::find(half.head());
        let said = before.as_ref().map_or(0, |head| head.captures.iter().count());
        let is_general = before.is_some_and(|head| head.head.title == "BUG: {message}");
        if found.captures.iter().count() <= said && !(is_general && found.head.title != "BUG: {message}") {
            return None;
        }
        open.builder.title = found.head.title.to_string();
        open.builder.report.class = found.head.class;
        open.builder.report.message = words::text(&half.text);
        linux::head_line(&mut open.builder, &found, &half.text);
        open.builder.report.last = position;
        Some(Role::Belongs)
    }

    /// A line as it was printed.
    fn whole_line(&mut self, line: &Stripped<'_>, text: &[u8], position: LogPosition) -> Role {
        let at = self.stream(line.caller);
        let at = self.without_mention(at, text, position);
        if is_cut(text) {
            self.cut = Some((position, line.caller));
        }
        // The lines of another kernel's report may look like heads of Linux.
        let of_row = |at: &usize| self.open[*at].reader != Reader::Linux && !self.open[*at].builder.ended;
        if let Some(at) = at.filter(of_row).filter(|at| !self.is_told_better(*at, text, position))
            && let Some(role) = self.dialect_line(at, text, position)
        {
            return role;
        }
        let lost = head::end_of_panic(text).filter(|_| at.is_none() && self.number == 0);
        if let Some(role) = self.linux_head(at, line, lost.unwrap_or(text), position) {
            return role;
        }
        if let Some(role) = self.dialect_head(at, line, position) {
            return role;
        }
        let Some(at) = at.or_else(|| self.stalled()) else { return self.orphan(line, text, position) };
        if self.open[at].tail {
            self.open[at].show(text, position);
        }
        self.learn(at, text, position)
    }

    /// The open report at `at`, unless it only is a line of prose that names a death and the line at hand opens a
    /// report.
    fn without_mention(&mut self, at: Option<usize>, text: &[u8], position: LogPosition) -> Option<usize> {
        let Some(open) = at.and_then(|at| self.open.get(at)) else { return at };
        if !(open.weak && open.is_bare()) {
            return at;
        }
        let head = linux::find(text);
        if head.as_ref().is_some_and(|head| is_text_of(&open.builder, head, position)) {
            return at;
        }
        let opened = self.dialects.opens(self.dialects.unprefixed(text).0);
        if head.is_none() && !is_task(text) && opened.is_none_or(|(opening, _)| opening.weak) {
            return at;
        }
        self.forget(at?);
        None
    }

    /// Takes back what is open at `at`, which is not a report. Its number is free when it was the last.
    fn forget(&mut self, at: usize) {
        let number = self.open.remove(at).builder.report.number;
        self.number -= u32::from(number == self.number);
    }

    /// The open report of a stream.
    fn stream(&self, caller: Option<Caller>) -> Option<usize> {
        self.open
            .iter()
            .rposition(|open| caller.is_none() || open.builder.caller.is_none() || open.builder.caller == caller)
    }

    /// The last open report that shows the stacks of other processors.
    fn stalled(&self) -> Option<usize> {
        self.open.iter().rposition(|open| open.builder.report.class.is_stall())
    }

    /// Offers a line to the report at `at`.
    fn learn(&mut self, at: usize, text: &[u8], position: LogPosition) -> Role {
        let Some(open) = self.open.get_mut(at) else { return Role::Console };
        let took = match &mut open.reader {
            Reader::Linux => linux::body::learn(&mut open.builder, text, position),
            Reader::Row(row) => dialect::read::learn(&self.dialects, row, &mut open.builder, text, position),
        };
        self.took(at, took, position)
    }

    fn took(&mut self, at: usize, took: Took, position: LogPosition) -> Role {
        let Some(open) = self.open.get_mut(at) else { return Role::Console };
        let builder = &mut open.builder;
        match took {
            Took::No => {
                builder.quiet += 1;
                let patience = if builder.ended { PATIENCE_ENDED } else { PATIENCE };
                if builder.quiet > patience {
                    self.close(at);
                }
                Role::Console
            }
            Took::Yes | Took::End => {
                builder.ended |= took == Took::End;
                builder.quiet = 0;
                builder.report.last = position;
                let bare = open.orphan && !open.builder.has_stack() || open.weak && !open.has_evidence();
                if bare { Role::Console } else { Role::Belongs }
            }
        }
    }

    /// Whether a line is the head that the report at `at` waits for: Linux's own behind prose with a deadly word, or
    /// that of a certain kernel behind a line that several kernels print.
    fn is_told_better(&self, at: usize, text: &[u8], position: LogPosition) -> bool {
        let Some(open) = self.open.get(at) else { return false };
        let Reader::Row(row) = open.reader else { return false };
        if (open.gives_way(text) || open.is_reason_of(text)) && linux::find(text).is_some() {
            return true;
        }
        let near = position.line.saturating_sub(open.builder.report.first.line) <= 12 && !open.builder.has_stack();
        let other = |opening: &dialect::Opening| opening.row != row && opening.row != self.dialects.generic();
        let (text, _) = self.dialects.unprefixed(text);
        near && self.dialects.opens(text).is_some_and(|(opening, _)| !opening.stage && !opening.weak && other(opening))
    }

    /// A line of a report that a dialect row reads; absent when the row has no use for it.
    fn dialect_line(&mut self, at: usize, text: &[u8], position: LogPosition) -> Option<Role> {
        let (rest, before) = self.dialects.unprefixed(text);
        let open = self.open.get_mut(at)?;
        let Reader::Row(row) = &mut open.reader else { return None };
        open.of_program |= program::is_of_program(rest);
        open.builder.report.cpu = open.builder.report.cpu.or(before.dec("cpu"));
        open.weak = open.weak && self.dialects.opens(rest).is_none_or(|(opening, _)| opening.weak);
        match dialect::read::learn(&self.dialects, row, &mut open.builder, rest, position) {
            Took::No => None,
            took => Some(self.took(at, took, position)),
        }
    }

    /// A line that opens a report of Linux, or is a later head of the one that is open.
    fn linux_head(
        &mut self,
        at: Option<usize>,
        line: &Stripped<'_>,
        text: &[u8],
        position: LogPosition,
    ) -> Option<Role> {
        let title = head::title(text);
        let text = title.unwrap_or(text);
        let found = linux::find(text).filter(|found| title.is_none() || head::may_be_title(found))?;
        if head::is_row_of_table(text) {
            return None;
        }
        if let Some(open) = at.and_then(|at| self.open.get_mut(at)) {
            let fallback = found.head.title == "BUG: {message}" || found.head.title.starts_with("{kind}");
            // What only a deadly word has opened is prose beside the kernel's own count of its oopses.
            let prose = open.gives_way(text);
            if open.reader != Reader::Linux && fallback && !open.builder.ended && !prose {
                return None;
            }
            if open.reader == Reader::Linux && merge(open, &found, text, position) {
                return Some(Role::Belongs);
            }
        }
        let at = at.filter(|at| {
            let prose = self.open[*at].gives_way(text);
            if prose {
                self.open.remove(*at);
            }
            !prose
        });
        let at = at.filter(|at| {
            let rest = self.open[*at].is_rest_before(&found);
            if rest {
                self.forget(*at);
            }
            !rest
        });
        let is_said = |open: &Open| is_text_of(&open.builder, &found, position) || open.is_reason_of(text);
        let said = at.filter(|at| is_said(&self.open[*at]));
        let said = said.map(|at| self.open.remove(at).builder.report);
        let at = if said.is_some() { None } else { at };
        let mut builder = linux::open(&found, text, position);
        self.linux = true;
        self.begin(&mut builder, line, at, position);
        if let Some(said) = said {
            // It was no report: its number is free when it was the last.
            if said.number + 1 == self.number {
                self.number = said.number;
                builder.report.number = said.number;
            }
            builder.report.first = said.first;
            builder.note(said.message);
        }
        let class = builder.report.class;
        let weak = title.is_some();
        self.push(Open { builder, reader: Reader::Linux, orphan: false, of_program: false, weak, tail: false });
        Some(if weak { Role::Console } else { Role::Opens(class) })
    }

    /// A line that opens a report of another kernel, or is a later stage of the one that is open.
    fn dialect_head(&mut self, at: Option<usize>, line: &Stripped<'_>, position: LogPosition) -> Option<Role> {
        let (text, said) = self.dialects.unprefixed(line.text.trim_ascii());
        let before = at.and_then(|at| self.open.get(at));
        let inside_linux = before.is_some_and(|open| open.reader == Reader::Linux && !open.builder.ended);
        let (opening, captures) = opening(&self.dialects, text, before.is_some(), self.linux)?;
        if inside_linux || program::is_of_program(text) || head::is_row_of_table(text) {
            return None;
        }
        let captures = captures.unwrap_or_default();
        if let Some(at) = at
            && let Some(open) = self.open.get_mut(at)
            && let Reader::Row(row) = open.reader
        {
            let near = position.line.saturating_sub(open.builder.report.first.line) <= 12 && !open.builder.has_stack();
            let again = open.builder.ended || open.builder.has_stack() && !opening.stage;
            if (opening.stage || near) && !again {
                later_stage(&mut open.builder, &opening, &captures, row);
                // `Panic on CPU 0:`, and the message on the next line.
                let announces = text.ends_with(b":") && words::has(text, b"anic");
                open.builder.wants_message |= announces && open.builder.value("message").is_none();
                // The first head may be one that several kernels print; the second is not.
                let named = opening.row != self.dialects.generic() && !opening.stage && !opening.weak;
                if let Some(dialect) = self.dialects.row(opening.row).filter(|_| named && opening.row != row) {
                    open.reader = Reader::Row(opening.row);
                    open.builder.report.family = dialect.name().into();
                }
                return Some(self.took(at, Took::Yes, position));
            }
        }
        let mut builder = dialect::read::open(&self.dialects, &opening, &captures, text, position);
        dialect::read::said(&mut builder, &said);
        if opening.row == usize::MAX {
            builder.report.message = words::text(deadly::undecorated(text));
        }
        if builder.report.family == "generic" {
            told::head(&mut builder, deadly::untagged(text));
        }
        let row = if opening.row == usize::MAX { self.dialects.generic() } else { opening.row };
        drop(captures);
        self.begin(&mut builder, line, at, position);
        self.push(Open {
            builder,
            reader: Reader::Row(row),
            orphan: false,
            of_program: opening.program,
            weak: opening.weak,
            tail: false,
        });
        Some(if opening.weak { Role::Console } else { Role::Opens(opening.class) })
    }

    /// A task line, or where a fault was, without a head: the head may be lost.
    fn orphan(&mut self, line: &Stripped<'_>, text: &[u8], position: LogPosition) -> Role {
        let faulted = || head::is_faulted(text);
        // The kernel prints registers once more behind the end of a report.
        let again = || self.last_location.as_ref().is_some_and(|name| words::has(text, name.as_bytes()));
        let (is_task, is_process) = (is_task(text), is_process(text));
        if let Some((mut builder, orphan)) = head::of_cut(text, position) {
            self.begin(&mut builder, line, None, position);
            linux::body::learn(&mut builder, text, position);
            self.push(Open { builder, reader: Reader::Linux, orphan, of_program: false, weak: false, tail: false });
            return Role::Console;
        }
        if linux::lost::is_listed_task(text) {
            self.listed = Some(position.line);
        }
        // What is cut out of a log has neither the banner nor another report before it.
        let listed = self.listed.is_some_and(|line| position.line.saturating_sub(line) <= LISTED_REACH);
        let cut_out = !self.linux && self.number == 0 && !listed;
        let of_report = is_task || is_process || (faulted() || linux::lost::is_of_report(text)) && !again();
        let tail = !of_report && cut_out && linux::lost::is_of_stack(text);
        if of_report || tail {
            let mut builder = Builder::new("linux", Class::Warning, "stack dump in {function}", position);
            builder.report.message = words::text(text);
            if is_process || faulted() {
                builder.report.class = Class::Oops;
            }
            if is_process {
                builder.title = "Oops in {function}".into();
            }
            self.begin(&mut builder, line, None, position);
            linux::body::learn(&mut builder, text, position);
            self.push(Open { builder, reader: Reader::Linux, orphan: true, of_program: false, weak: false, tail });
        }
        Role::Console
    }

    /// Completes the first line of a report; `at` is the open report of the same stream, which it ends.
    fn begin(&mut self, builder: &mut Builder, line: &Stripped<'_>, at: Option<usize>, position: LogPosition) {
        if let Some(at) = at {
            self.close(at);
        }
        self.number += 1;
        builder.report.number = self.number;
        builder.report.ns = line.ns;
        builder.caller = line.caller;
        builder.printer = line.comm.map(words::text);
        if let Some((cut, caller)) = self.cut.take()
            && position.line.saturating_sub(cut.line) <= CUT_REACH
            && (caller == line.caller || caller.is_none())
        {
            builder.report.first = cut;
        }
    }

    fn push(&mut self, open: Open) {
        if self.open.len() >= MOST_OPEN {
            self.close(0);
        }
        self.open.push(open);
    }

    fn close(&mut self, at: usize) {
        if at >= self.open.len() {
            return;
        }
        let open = self.open.remove(at);
        if !open.is_report() {
            return;
        }
        let located = open.builder.report.location.is_some();
        if let Some(frame) = &open.builder.report.location {
            self.last_location.clone_from(&frame.symbol);
        }
        let of_program = open.of_program || open.is_of_go_program() || open.is_of_rust_program();
        let mut builder = open.builder;
        if let (Some(Caller::Cpu(cpu)), false) = (builder.caller, builder.report.class.is_stall()) {
            builder.report.cpu.get_or_insert(cpu);
        }
        // A stall is printed by the task that the detector interrupted.
        if !builder.report.class.is_stall() {
            builder.report.comm = builder.report.comm.take().or(builder.printer.take());
        }
        if builder.report.number <= self.given {
            // Its stack came after a later report was given out.
            self.number += 1;
            builder.report.number = self.number;
        }
        let untold = matches!(builder.report.class, Class::Warning | Class::Oops);
        if open.orphan && untold && (located || !builder.report.registers.is_empty()) {
            builder.report.class = Class::Oops;
            builder.title = "Oops in {function}".into();
        }
        if open.reader == Reader::Linux {
            linux::lost::tell(&mut builder);
        }
        if let Reader::Row(row) = open.reader {
            self.skip_own(&mut builder, row);
            dialect::read::refine(&mut builder);
        }
        let mut report = builder.finish();
        report.of_program = of_program;
        if !of_program {
            self.links.link(&mut report);
        }
        let after = self.ready.iter().rposition(|ready| ready.number < report.number).map_or(0, |at| at + 1);
        self.ready.insert(after, report);
    }

    /// Names the guilty function of a report whose row says which functions are never guilty.
    fn skip_own(&self, builder: &mut Builder, row: usize) {
        let crash = builder.report.stacks.iter().find(|stack| stack.kind == report::StackKind::Crash);
        let names = crash.into_iter().flat_map(|stack| &stack.frames).filter_map(|frame| frame.symbol.as_deref());
        let mut names =
            names.filter(|name| !dialect::read::skips(&self.dialects, row, name) && !function::is_skipped(name));
        let first = names.next().map(str::to_string);
        let doubtful =
            builder.head_function.as_deref().is_none_or(|name| dialect::read::skips(&self.dialects, row, name));
        if doubtful && first.is_some() {
            builder.head_function = first;
        }
        dialect::read::part_way(&self.dialects, builder, row);
    }

    fn new_boot(&mut self) {
        self.finish();
        self.links.new_boot();
        self.cut = None;
    }
}

/// Whether a line is one that a program prints, or source text.
pub(super) fn is_foreign(line: &[u8]) -> bool {
    program::is_of_program(line) || program::is_source(line) || program::is_tagged(line)
}

//! Tells the first line of a report from lines that look like one.

use std::sync::LazyLock;

use super::build::Builder;
use super::class::Class;
use super::dialect::{self, Dialects};
use super::template::{Captures, Template};
use super::words::has;
use super::{LogPosition, deadly, linux};

/// What a line that opens a report of another kernel says, by a row or by deadly words; `is_open` says that its stream
/// has a report already, `linux` that the log is one of Linux.
pub(super) fn opening<'t, 'l>(
    dialects: &'t Dialects,
    text: &'l [u8],
    is_open: bool,
    linux: bool,
) -> Option<(dialect::Opening, Option<Captures<'t, 'l>>)> {
    if let Some((opening, captures)) = dialects.opens(text) {
        // The expression of an assertion is not a setting, whatever its name.
        let may_be = opening.class != Class::Assertion;
        let healthy = may_be && captures.get("message").is_some_and(deadly::is_healthy);
        return (!healthy).then(|| (opening.clone(), Some(captures)));
    }
    if let Some((opening, captures)) = bug_check(dialects, text) {
        return Some((opening, Some(captures)));
    }
    if let Some(opening) = lost_panic(text).filter(|_| !is_open && !linux) {
        return Some((opening, None));
    }
    // A report in quotation marks, where prose cites it: worth one only with what a kernel prints behind it.
    if let Some((opening, captures)) = text.strip_prefix(b"\"").and_then(|text| dialects.opens(text)) {
        return Some((dialect::Opening { weak: true, ..opening.clone() }, Some(captures)));
    }
    // The heading of an issue, which has the report below.
    if let Some((opening, captures)) = title(text).filter(|_| !is_open).and_then(|text| dialects.opens(text)) {
        return Some((dialect::Opening { weak: true, ..opening.clone() }, Some(captures)));
    }
    let heading = title(text).filter(|_| !is_open && !linux);
    let text = heading.unwrap_or(text);
    let is_prose = |class, bare: &[u8]| {
        let listed = [&b"* "[..], b"- ", b"+ "].iter().any(|sign| text.strip_prefix(*sign) == Some(bare));
        let undecorated = bare == text || listed;
        heading.is_some() || bare == text && deadly::is_title(class, bare) || undecorated && deadly::is_prose(bare)
    };
    let said = deadly::deadly(text).map(|(class, bare)| (class, is_prose(class, bare)));
    // A report that is open reads such a line as one of its own.
    let mentioned = || deadly::mentions(text).filter(|_| !is_open && !linux);
    let said = said.or_else(|| mentioned().map(|class| (class, true)));
    let (class, weak) = said.filter(|(class, _)| !linux || *class == Class::Panic)?;
    let title = "{message}".into();
    Some((dialect::Opening { row: usize::MAX, class, title, stage: true, program: false, weak }, None))
}

/// How the line begins that says where a fault was, of which the head is lost.
const FAULTED: [&[u8]; 7] =
    [b"RIP: 0010:", b"NIP [", b"EIP: [<", b"RIP  [<ff", b"RIP [<ff", b"EIP is at ", b"PC is at "];

/// How it begins on arm64 and RISC-V, where only a symbol behind it tells it from other lines.
pub(super) const COUNTERS: [&[u8]; 2] = [b"pc : ", b"epc : "];

/// What the last line of an oops holds, of which all others are lost: `RIP: demo+0x13a/0x180 RSP: ffff9a69c1b1fd38`.
pub(super) const END_OF_OOPS: (&[u8], &[u8]) = (b"RIP: ", b" RSP: ffff");

/// Whether a line says where a fault was, the head of its report being lost.
pub(super) fn is_faulted(text: &[u8]) -> bool {
    if text.starts_with(b"NIP [") && is_of_user(&text[5..]) {
        return false;
    }
    let counter = COUNTERS.iter().any(|mark| text.starts_with(mark)) && has(text, b"+0x");
    let end = text.starts_with(END_OF_OOPS.0) && has(text, END_OF_OOPS.1);
    FAULTED.iter().any(|mark| text.starts_with(mark)) || counter || end
}

/// Whether Power's counter `100c41b4] 0x100c41b4` has no symbol and the address of a program, where a list of tasks
/// shows what each was interrupted in.
fn is_of_user(counter: &[u8]) -> bool {
    const LOWEST: u64 = 1 << 16;
    let Some((address, rest)) = super::words::hex(counter) else { return false };
    let highest = if counter.len() - rest.len() > 8 { 1 << 63 } else { 1 << 31 };
    rest.starts_with(b"] 0x") && (LOWEST..highest).contains(&address)
}

/// Words of which the name of a bug check of Windows has one, behind its first.
const BUG_CHECKS: [&[u8]; 14] = [
    b"_EXCEPTION",
    b"_FAULT",
    b"_ERROR",
    b"_FAILURE",
    b"_VIOLATION",
    b"_CORRUPT",
    b"_POOL",
    b"_TRAP",
    b"_NOT_",
    b"_TIMEOUT",
    b"_DIED",
    b"_LEAK",
    b"_LOCKED",
    b"_INVALID",
];

/// What stands before the number of a bug check.
const CODE: &[u8] = b" (";

/// For each word of [`BUG_CHECKS`] the texts of the line.
pub(super) fn bug_checks() -> impl Iterator<Item = Vec<Vec<u8>>> {
    BUG_CHECKS.iter().map(|word| vec![word.to_vec(), CODE.to_vec()])
}

/// `DRIVER_VERIFIER_DETECTED_VIOLATION (c4)`, the first line of what Windows' debugger says of a bug check; its
/// parameters must follow.
fn bug_check<'t, 'l>(dialects: &'t Dialects, line: &'l [u8]) -> Option<(dialect::Opening, Captures<'t, 'l>)> {
    static LINE: LazyLock<Option<Template>> = LazyLock::new(|| Template::new("{name:sym} ({code:hex})").ok());
    let (captures, rest) = LINE.as_ref()?.prefix(line)?;
    let name = captures.get("name")?;
    let shouts = name.iter().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b'_');
    let known = shouts && rest.is_empty() && BUG_CHECKS.iter().any(|word| has(name, word));
    let row = dialects.number("windows").filter(|_| known)?;
    let title = "bug check {code} {name} in {function}".into();
    let opening = dialect::Opening { row, class: Class::Bugcheck, title, stage: true, program: false, weak: true };
    Some((opening, captures))
}

/// Functions by which a backtrace shows a panic of Rust.
pub(super) const OF_RUST: [&[u8]; 2] = [b"rust_begin_unwind", b"core::panicking::"];

/// The backtrace of a kernel in Rust whose panic message is lost; programs have theirs in the lower half of memory.
fn lost_panic(text: &[u8]) -> Option<dialect::Opening> {
    const UPPER_HALF: u64 = 1 << 63;
    OF_RUST.iter().find(|name| has(text, name))?;
    let frame = super::frames::frames(text, true).into_iter().next()?;
    // gdb(1) leaves the address of the innermost frame out.
    let of_kernel = frame.symbol.as_ref().is_some_and(|name| name.starts_with("kernel::"));
    frame.address.map_or(of_kernel, |address| address >= UPPER_HALF).then_some(())?;
    let title = "panic (message lost) in {function}".into();
    Some(dialect::Opening { row: usize::MAX, class: Class::Panic, title, stage: true, program: false, weak: true })
}

/// Whether what is open is only the text that a warning prints between the cut mark and its first line.
pub(super) fn is_text_of(builder: &Builder, found: &linux::Found<'_, '_>, position: LogPosition) -> bool {
    let report = &builder.report;
    let behind_the_mark = report.first.line < report.last.line && report.last.line + 1 == position.line;
    found.head.class == Class::Warning
        && found.head.title == "WARNING in {function}"
        && behind_the_mark
        && !builder.has_stack()
        && report.registers.is_empty()
}

/// Bytes before a shown carriage return: the name of a host.
const LONGEST_HOST: usize = 80;

/// A line without the marks by which Markdown sets it as code or in bold and a mail of differences as new, and without
/// the level that a logger pads with blanks: `ERROR        EXCEPTION: Page Fault`.
pub(super) fn unmarked(text: &[u8]) -> &[u8] {
    const LEVELS: [&[u8]; 8] = [b"ERROR", b"TRACE", b"FATAL", b"PANIC", b"DEBUG", b"CRITICAL", b"WARN", b"INFO"];
    let text = text.strip_prefix(b"+").filter(|rest| rest.starts_with(b"#")).unwrap_or(text);
    // The carriage return before a panic of illumos, as syslogd shows it: `host ^Mpanic[cpu3]/thread=`.
    // A page made a link of the count of an oops: `[SMP (#1]) CPU 0`.
    let text = text.strip_prefix(b"(#1]) ").unwrap_or(text);
    let caret = super::words::find(&text[..text.len().min(LONGEST_HOST)], b"^Mpanic[cpu");
    let text = caret.map_or(text, |at| &text[at + 2..]);
    let text = match text.strip_prefix(b"`") {
        Some(rest) if !rest.starts_with(b"`") => rest.strip_suffix(b"`").unwrap_or(rest),
        _ => text,
    };
    let bold = text.strip_prefix(b"**").and_then(|rest| rest.strip_suffix(b"**"));
    // The bold may end at a later line.
    let opened = || text.strip_prefix(b"**").filter(|rest| rest.first().is_some_and(u8::is_ascii_alphanumeric));
    let bold = bold.or_else(opened);
    let text = bold.filter(|text| text.len() > 8 && !text.starts_with(b"*")).unwrap_or(text);
    // crash(8) says why the machine of the dump stopped: `PANIC: "Oops: 0000 [#1] SMP"`.
    let told = text.strip_prefix(b"PANIC: \"").and_then(|rest| rest.strip_suffix(b"\""));
    if let Some(told) = told.filter(|told| linux::find(told).is_some()) {
        return told;
    }
    let level = LEVELS.iter().find_map(|level| text.strip_prefix(*level));
    level.filter(|rest| rest.starts_with(b"   ")).map_or(text, <[u8]>::trim_ascii_start)
}

/// The panic that the last line of one repeats: `---[ end Kernel panic - not syncing: …`.
pub(super) fn end_of_panic(text: &[u8]) -> Option<&[u8]> {
    let panic = text.strip_prefix(b"---[ end ").filter(|rest| rest.starts_with(b"Kernel panic"))?;
    Some(panic.strip_suffix(b"]---").unwrap_or(panic).trim_ascii_end())
}

/// How the line begins by which KFENCE shows an object.
pub(super) const KFENCE_OBJECT: &[u8] = b"kfence-#";

/// Lines that only one kind of report has, by two texts that each holds: what a report tells that lost its first lines.
/// A report of the last kind, whose stack says no more than others have said, needs one.
const ONLY_OF: [(&[u8], &[u8], Class, &str); 7] = [
    (b"kthread starved for ", b" jiffies!", Class::RcuStall, "INFO: rcu detected stall in {function}"),
    (b"page dumped because: ", b"nonzero ", Class::BadPage, "BUG: Bad page state in {function}"),
    (b"page dumped because: ", b"PAGE_FLAGS_CHECK", Class::BadPage, "BUG: Bad page state in {function}"),
    (b"page dumped because: ", b"kasan: bad access", Class::Kasan, "KASAN in {function}"),
    (b"The buggy address ", b"belongs to the object at", Class::Kasan, "KASAN in {function}"),
    (b"memory: usage ", b", failcnt ", Class::OomKill, "out of memory of a group"),
    (KFENCE_OBJECT, b"size=", Class::Kfence, "KFENCE in {function}"),
];

/// A report that lost its first lines and begins with a line of [`ONLY_OF`]; whether it is one only with a stack.
pub(super) fn of_cut(text: &[u8], position: LogPosition) -> Option<(Builder, bool)> {
    const LONGEST: usize = 200;
    let fits = |begin: &[u8], inner: &[u8]| match begin.first() {
        // Behind the name of the grace period: `rcu: rcu_sched kthread starved for 12 jiffies!`.
        Some(b'k') if begin != KFENCE_OBJECT => text.starts_with(b"rcu") && has(text, begin) && has(text, inner),
        _ => text.starts_with(begin) && has(text, inner),
    };
    let row = ONLY_OF.iter().find(|(begin, inner, ..)| text.len() < LONGEST && fits(begin, inner));
    row.map(|(_, _, class, title)| {
        let mut builder = Builder::new("linux", *class, title, position);
        builder.report.message = super::words::text(text);
        (builder, *class == Class::Kfence)
    })
}

/// For each line of [`ONLY_OF`] the texts that it holds.
pub(super) fn needles() -> impl Iterator<Item = Vec<Vec<u8>>> {
    ONLY_OF.iter().map(|(begin, inner, ..)| vec![begin.to_vec(), inner.to_vec()])
}

/// The text of a Markdown heading, as an issue has it that is titled with the first line of its report.
pub(super) fn title(text: &[u8]) -> Option<&[u8]> {
    let signs = text.iter().take_while(|byte| **byte == b'#').count();
    let rest = text.get(signs..)?.strip_prefix(b" ")?;
    (1..=6).contains(&signs).then(|| rest.trim_ascii_start())
}

/// Whether a line is the row of a table, which counts or explains the heads that it names: `Oops:#[##] | 0 | 6 |`.
pub(super) fn is_row_of_table(text: &[u8]) -> bool {
    text.ends_with(b"|") && has(text, b" | ")
}

/// Whether the first line of a report is told well enough to be one in a heading.
pub(super) fn may_be_title(found: &linux::Found<'_, '_>) -> bool {
    use linux::heads::Part;
    matches!(found.head.part, Part::Opens | Part::Announces | Part::Panic) && found.head.title != "BUG: {message}"
}

/// A line of signs by which reports begin.
pub(super) fn is_cut(text: &[u8]) -> bool {
    text.starts_with(b"------------[ cut here ]")
        || text.starts_with(b"8<--- cut here")
        || text.starts_with(b"====================")
}

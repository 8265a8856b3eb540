//! The lines that say that something deadly happened, when no table knows them.
//!
//! A line is deadly when it *begins* with one of the phrases below, after decoration (`***`, `[ERROR]`, `kernel:`), and
//! holds none of the words by which healthy kernels speak of the same things (`panic=10` on a command line, `page fault
//! handler installed`). Such a line is reported even when nothing else can be read.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::class::Class;
use super::pairs::{Marks, Pairs};
use super::program;
use super::words::{dec, find, has};

/// Phrases that begin a deadly line, in lower case, and what they announce.
const DEADLY: &[(&str, Class)] = &[
    ("kernel panic", Class::Panic),
    ("kernel-panic", Class::Panic),
    ("panicked", Class::Panic),
    ("panic:", Class::Panic),
    ("panic!", Class::Panic),
    ("panic -", Class::Panic),
    ("panic in ", Class::Panic),
    ("panic at ", Class::Panic),
    ("panic on ", Class::Panic),
    ("panic from ", Class::Panic),
    ("panic (", Class::Panic),
    ("panic(", Class::Panic),
    ("panic occurred", Class::Panic),
    ("system panic", Class::Panic),
    ("kernel oops", Class::Oops),
    ("kernel crash", Class::Panic),
    ("kernel died", Class::Panic),
    ("kernel fault", Class::Exception),
    ("kernel exception", Class::Exception),
    ("kernel trap", Class::Exception),
    ("kernel error", Class::Panic),
    ("kernel abort", Class::Panic),
    ("kernel assertion", Class::Assertion),
    ("kernel page fault", Class::PageFault),
    ("kernel data abort", Class::PageFault),
    ("kernel stack overflow", Class::StackOverflow),
    ("kernel bug", Class::Bug),
    ("fatal exception", Class::Exception),
    ("fatal fault", Class::Exception),
    ("fatal trap", Class::Exception),
    ("fatal page fault", Class::PageFault),
    ("fatal kernel", Class::Panic),
    ("fatal error", Class::Panic),
    ("fatal cpu exception", Class::Exception),
    ("unhandled exception", Class::Exception),
    ("unhandled trap", Class::Exception),
    ("unhandled fault", Class::Exception),
    ("unhandled page fault", Class::PageFault),
    ("unhandled kernel", Class::Exception),
    ("unhandled interrupt exception", Class::Exception),
    ("unhandled cpu exception", Class::Exception),
    ("unexpected exception", Class::Exception),
    ("unexpected trap", Class::Exception),
    ("unexpected kernel", Class::Exception),
    ("unrecoverable", Class::Exception),
    ("uncaught exception", Class::Exception),
    ("cpu exception", Class::Exception),
    ("exception occurred", Class::Exception),
    ("exception:", Class::Exception),
    ("exception #", Class::Exception),
    ("exception 0x", Class::Exception),
    ("exception number", Class::Exception),
    ("exception in kernel", Class::Exception),
    ("got exception", Class::Exception),
    ("received exception", Class::Exception),
    ("page fault", Class::PageFault),
    ("pagefault", Class::PageFault),
    ("#pf", Class::PageFault),
    ("#gp", Class::GeneralProtection),
    ("#df", Class::DoubleFault),
    ("#ud", Class::InvalidOpcode),
    ("#de", Class::Divide),
    ("general protection", Class::GeneralProtection),
    ("double fault", Class::DoubleFault),
    ("triple fault", Class::DoubleFault),
    ("invalid opcode", Class::InvalidOpcode),
    ("divide by zero", Class::Divide),
    ("division by zero", Class::Divide),
    ("divide error", Class::Divide),
    ("divide-by-zero", Class::Divide),
    ("stack smashing detected", Class::StackCorrupted),
    ("stack overflow", Class::StackOverflow),
    ("stack corruption", Class::StackCorrupted),
    ("assertion failed", Class::Assertion),
    ("assertion failure", Class::Assertion),
    ("assertion fail", Class::Assertion),
    ("assertion `", Class::Assertion),
    ("assertion '", Class::Assertion),
    ("assertion \"", Class::Assertion),
    ("assertion ‘", Class::Assertion),
    ("assertion “", Class::Assertion),
    ("assertion (", Class::Assertion),
    ("assert failed", Class::Assertion),
    ("assert fail", Class::Assertion),
    ("assert:", Class::Assertion),
    ("assert(", Class::Assertion),
    ("data abort", Class::PageFault),
    ("prefetch abort", Class::PageFault),
    ("instruction abort", Class::PageFault),
    ("undefined instruction", Class::InvalidOpcode),
    ("illegal instruction", Class::InvalidOpcode),
    ("synchronous exception", Class::Exception),
    ("synchronous abort", Class::Exception),
    ("sync exception", Class::Exception),
    ("hard fault", Class::Exception),
    ("hardfault", Class::Exception),
    ("bus fault", Class::Exception),
    ("usage fault", Class::Exception),
    ("mem fault", Class::Exception),
    ("memmanage", Class::Exception),
    ("bus error", Class::Exception),
    ("unknown synchronous exception", Class::Exception),
    ("bugcheck", Class::Bugcheck),
    ("bug check", Class::Bugcheck),
    ("load access fault", Class::PageFault),
    ("store access fault", Class::PageFault),
    ("instruction access fault", Class::PageFault),
    ("load page fault", Class::PageFault),
    ("store page fault", Class::PageFault),
    ("instruction page fault", Class::PageFault),
    ("store/amo page fault", Class::PageFault),
    ("guru meditation", Class::Exception),
    ("system crash", Class::Panic),
    ("oops:", Class::Oops),
    ("oops!", Class::Oops),
];

/// Words by which healthy kernels and programs speak of the same things.
const HEALTHY: &[&str] = &[
    "panic=",
    "panic_",
    "timeout",
    "disabled",
    "enabled",
    "regist",
    "install",
    "initiali",
    "notifier",
    "setting up",
    "set up",
    "support",
    "configur",
    "testing",
    "test:",
    "tests",
    "pvpanic",
    "inject",
    "fault-around",
    " handling",
    "handler",
    "no panic",
    "lazily",
    " gate at ",
    "demand",
    "copy-on-write",
    "will ",
    "on panic:",
    "passed",
    "capab",
    "recovered",
    "ignored",
    " handled",
    "count:",
    "statistic",
    "stats",
    "status",
    "none",
    "usage:",
    "option",
    "ready",
    "hook",
    "loaded",
    "entry",
    "vector table",
    "stack overflow forum",
    "stack overflow question",
    "stack overflow answer",
    "tracing",
    " rate",
    "ratelimit",
    "exceptions:",
    "delivered",
    "bug reports",
];

/// The phrase that a number follows.
const NUMBERED: (&str, Class) = ("exception ", Class::Exception);

/// Whether a line is `Exception 14`, or that and what it means or where it was.
fn numbered(bare: &[u8]) -> bool {
    let head = bare.get(..NUMBERED.0.len()).filter(|head| head.eq_ignore_ascii_case(NUMBERED.0.as_bytes()));
    let Some((number, rest)) = head.and_then(|head| dec(&bare[head.len()..])) else { return false };
    let place = [&b" ("[..], b" at ", b" in ", b" -", b" on ", b":", b"(", b",", b"!", b"."];
    number < 256 && (rest.is_empty() || place.iter().any(|mark| rest.starts_with(mark)))
}

/// The phrases that begin with a letter, in the order of the table.
fn beginning_with(letter: u8) -> &'static [(&'static str, Class)] {
    static BY_LETTER: LazyLock<HashMap<u8, Vec<(&'static str, Class)>>> = LazyLock::new(|| {
        let mut by_letter: HashMap<u8, Vec<_>> = HashMap::new();
        for phrase in DEADLY {
            by_letter.entry(phrase.0.as_bytes()[0]).or_default().push(*phrase);
        }
        by_letter
    });
    BY_LETTER.get(&letter).map_or(&[], Vec::as_slice)
}

/// Texts of which every deadly line holds one, in any case.
pub(super) fn needles() -> impl Iterator<Item = &'static [u8]> {
    DEADLY.iter().map(|(phrase, _)| phrase.as_bytes()).chain([
        NUMBERED.0.as_bytes(),
        &b"panic"[..],
        b"hardfault",
        b"data-abort",
        b"prefetch-abort",
        b"exception",
        b"unhandled ",
        b"unexpected trap",
    ])
}

/// Whether a line says that something deadly happened; what, and the line without decoration.
pub(super) fn deadly(line: &[u8]) -> Option<(Class, &[u8])> {
    let bare = undecorated(line);
    let bare = named(bare).unwrap_or(bare);
    if bare.len() < 3 || line.len() > 400 {
        return None;
    }
    let shout = bare.starts_with(b"PANIC") && bare.len() == 5 || bare.eq_ignore_ascii_case(b"kernel panic");
    // `panic() at panic+0x43`: a frame of a debugger's backtrace.
    let foreign = || has(bare, b"() at ") || program::is_source(bare);
    if shout {
        return (!foreign()).then_some((Class::Panic, bare));
    }
    let first = bare.first()?.to_ascii_lowercase();
    let fits = |phrase: &str| bare.get(..phrase.len()).is_some_and(|head| head.eq_ignore_ascii_case(phrase.as_bytes()));
    let known = beginning_with(first).iter().find(|(phrase, _)| fits(phrase));
    let (phrase, class) = known.or_else(|| numbered(bare).then_some(&NUMBERED))?;
    // `stack overflowing`, `page faults: 12`: the phrase must end as a word.
    let next = bare.get(phrase.len());
    let whole = next.is_none_or(|byte| !byte.is_ascii_alphanumeric() || *byte == b'e')
        || !phrase.ends_with(|last: char| last.is_ascii_alphanumeric());
    let lower = String::from_utf8_lossy(line).to_ascii_lowercase();
    let healthy = HEALTHY.iter().any(|word| lower.contains(word));
    (whole && !healthy && !foreign()).then_some((*class, bare))
}

/// What a kernel says of its panic behind its own name: `moss: Kernel panic: not yet implemented`.
fn named(bare: &[u8]) -> Option<&[u8]> {
    const LONGEST_NAME: usize = 16;
    let colon = memchr::memchr(b':', &bare[..bare.len().min(LONGEST_NAME)])?;
    let rest = bare[colon + 1..].strip_prefix(b" ")?;
    let is_name = bare[..colon].iter().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    let panics = [&b"Kernel panic: "[..], b"Kernel Panic: ", b"KERNEL PANIC"].iter().any(|mark| rest.starts_with(mark));
    (is_name && panics).then_some(rest)
}

/// Words that name a death wherever they stand in a line, in their own case, and what they announce.
const ANYWHERE: &[(&str, Class)] = &[
    ("PANIC", Class::Panic),
    ("panic:", Class::Panic),
    ("kernel panic", Class::Panic),
    ("Kernel panic", Class::Panic),
    ("HardFault", Class::Exception),
    ("hardfault", Class::Exception),
    ("data-abort", Class::Exception),
    ("data abort", Class::Exception),
    ("prefetch-abort", Class::Exception),
    ("EXCEPTION", Class::Exception),
    ("nhandled exception", Class::Exception),
    ("nhandled Exception", Class::Exception),
    ("nhandled interrupt", Class::Exception),
    ("nhandled Int", Class::Exception),
    ("nhandled trap", Class::Exception),
    ("nhandled Trap", Class::Exception),
    ("nexpected trap", Class::Exception),
    ("page fault", Class::PageFault),
    ("Page fault", Class::PageFault),
    ("Page Fault", Class::PageFault),
    ("PAGE FAULT", Class::PageFault),
    ("general protection fault", Class::GeneralProtection),
    ("General protection fault", Class::GeneralProtection),
    ("General Protection Fault", Class::GeneralProtection),
    ("double fault", Class::DoubleFault),
    ("Double fault", Class::DoubleFault),
    ("Double Fault", Class::DoubleFault),
];

/// Bytes of a line in which a word of [`ANYWHERE`] counts; longer lines are prose.
const LONGEST_MENTION: usize = 160;

/// Whether a line names a death in its middle: worth a report only when what a kernel prints in one follows.
pub(super) fn mentions(line: &[u8]) -> Option<Class> {
    if line.len() > LONGEST_MENTION {
        return None;
    }
    let is_word = |at: usize, word: &str| {
        let before = at.checked_sub(1).and_then(|at| line.get(at));
        let after = line.get(at + word.len());
        let joins = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'=');
        // `nhandled`: the first letter may be large or small.
        let begins =
            !before.is_some_and(joins) || word.starts_with('n') && before.is_some_and(|byte| b"uU".contains(byte));
        begins && (word.ends_with(':') || !after.is_some_and(joins))
    };
    static MARKS: LazyLock<Vec<Option<Marks>>> =
        LazyLock::new(|| ANYWHERE.iter().map(|(word, _)| Marks::of(word.as_bytes())).collect());
    let pairs = Pairs::of(line);
    let mut may_stand =
        ANYWHERE.iter().zip(MARKS.iter()).filter(|(_, marks)| marks.is_none_or(|marks| pairs.may_hold(marks)));
    let found = may_stand.find(|((word, _), _)| find(line, word.as_bytes()).is_some_and(|at| is_word(at, word)));
    let ((_, class), _) = found?;
    // `2: 0x0000036a - HardFault`: a frame of a backtrace, not its head.
    let frame = || !super::frames::frames(line, true).is_empty();
    if program::is_source(line) || program::is_of_program(line) || frame() {
        return None;
    }
    let lower = String::from_utf8_lossy(line).to_ascii_lowercase();
    (!HEALTHY.iter().any(|word| lower.contains(word))).then_some(*class)
}

/// Whether a deadly line is nothing but a title in the letters of a sentence, as prose has above a paragraph, or the
/// words with which programs die as well: `FATAL ERROR`, `Oops!`, `Stack overflow.`
pub(super) fn is_title(class: Class, line: &[u8]) -> bool {
    let plain = line.iter().all(|byte| byte.is_ascii_alphabetic() || matches!(byte, b' ' | b'-'));
    // A kernel that says no more than the others does so of these.
    let prose = matches!(class, Class::PageFault | Class::GeneralProtection);
    let words = line.strip_suffix(b".").or_else(|| line.strip_suffix(b"!")).unwrap_or(line);
    let sentence = words.len() < line.len() && line.iter().any(u8::is_ascii_lowercase);
    let of_programs: [&[u8]; 3] = [b"stack overflow", b"unhandled exception", b"oops"];
    prose && plain && line.iter().any(u8::is_ascii_lowercase)
        || is_of_shell(line)
        || words.eq_ignore_ascii_case(b"fatal error")
        || sentence && of_programs.iter().any(|known| words.eq_ignore_ascii_case(known))
}

/// Whether a shell says by which signal a program died: the words of the signal, the number that the shells of BSD
/// systems and macOS add, and whether the program left a core.
fn is_of_shell(line: &[u8]) -> bool {
    const SIGNALS: [&[u8]; 2] = [b"Illegal instruction", b"Bus error"];
    let dumped = [&b"(core dumped)"[..], b"- core dumped"].iter().find_map(|mark| line.strip_suffix(*mark));
    let words = dumped.unwrap_or(line).trim_ascii_end();
    let end = words.iter().rposition(|byte| !byte.is_ascii_digit()).map_or(0, |at| at + 1);
    let words = words[..end].strip_suffix(b": ").unwrap_or(words);
    SIGNALS.contains(&words)
}

/// Whether a deadly line reads as a line out of a text: in small letters, not by the words with which kernels begin,
/// and without a number that says what or where.
pub(super) fn is_prose(line: &[u8]) -> bool {
    const BEGINNINGS: [&[u8]; 7] =
        [b"panic:", b"panic!", b"panic -", b"panic(", b"panicked", b"kernel panic", b"kernel-"];
    let is_number = |word: &[u8]| {
        let word = word.trim_ascii_end();
        let end = word.iter().rposition(|byte| !b",.:;)".contains(byte)).map_or(0, |at| at + 1);
        let digits = &word[..end];
        digits.iter().any(u8::is_ascii_digit) && digits.iter().all(u8::is_ascii_hexdigit) || digits.starts_with(b"0x")
    };
    line.first().is_some_and(u8::is_ascii_lowercase)
        && !BEGINNINGS.iter().any(|words| line.starts_with(words))
        && !line.split(|byte| matches!(byte, b' ' | b'=' | b'(')).any(is_number)
}

/// Whether the words behind `panic:` speak of a setting rather than of a failure.
pub(super) fn is_healthy(message: &[u8]) -> bool {
    const SETTINGS: &[&str] = &["disabled", "enabled", "ready", "none", "off", "on", "handler", "regist", "timeout"];
    let first = message.trim_ascii().split(|byte| *byte == b' ').next().unwrap_or_default().to_ascii_lowercase();
    SETTINGS.iter().any(|word| first == word.as_bytes())
}

/// A line without the tags in brackets that stand before its message: the position in one is that of the logger.
pub(super) fn untagged(line: &[u8]) -> &[u8] {
    let mut rest = line.trim_ascii();
    while rest.starts_with(b"[")
        && let Some(end) = memchr::memchr(b']', &rest[..rest.len().min(48)])
        && !rest[end + 1..].trim_ascii().is_empty()
    {
        rest = rest[end + 1..].trim_ascii_start();
    }
    rest
}

/// A line without what decorates its message: signs, tags in brackets, and words such as `ERROR:`.
pub(super) fn undecorated(line: &[u8]) -> &[u8] {
    let mut rest = line.trim_ascii();
    for _ in 0..4 {
        let signs = rest
            .iter()
            .position(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'[' | b'#' | b'(' | b'<'))
            .unwrap_or(rest.len());
        rest = &rest[signs..];
        let close = match rest.first() {
            Some(b'[') => b']',
            Some(b'<') => b'>',
            Some(b'(') => b')',
            _ => 0,
        };
        if close != 0
            && let Some(end) = memchr::memchr(close, &rest[..rest.len().min(48)])
        {
            rest = rest[end + 1..].trim_ascii_start();
            rest = rest.strip_prefix(b":").unwrap_or(rest).trim_ascii_start();
            continue;
        }
        const WORDS: &[&str] = &[
            "error:",
            "error]",
            "err:",
            "fatal:",
            "critical:",
            "crit:",
            "emerg:",
            "kernel:",
            "kern:",
            "[kernel]",
            "cpu0:",
            "cpu 0:",
            "core 0:",
            "log:",
            "fatal -",
            "e:",
        ];
        // No line pays for the words unless one of them may stand at its front.
        if !matches!(rest.first(), Some(b'e' | b'E' | b'f' | b'F' | b'c' | b'C' | b'k' | b'K' | b'l' | b'L' | b'[')) {
            break;
        }
        let word = WORDS
            .iter()
            .find(|word| rest.get(..word.len()).is_some_and(|head| head.eq_ignore_ascii_case(word.as_bytes())));
        match word {
            Some(word) => rest = rest[word.len()..].trim_ascii_start(),
            None => break,
        }
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadly_lines_are_told_from_healthy_ones() {
        for line in [
            "*** KERNEL PANIC ***",
            "[ERROR] Page fault at 0xdead",
            "!!! Double Fault !!!",
            "PANIC",
            "Assertion failed: x != 0",
            "kernel panic: no init",
            "Unhandled exception 14",
            "demo: Kernel panic: not yet implemented",
        ] {
            assert!(deadly(line.as_bytes()).is_some(), "{line}");
        }
        for line in [
            "Kernel command line: root=/dev/sda panic=1",
            "Kernel panic timeout is 10 s",
            "PANIC: disabled",
            "fault injection ready",
            "page fault handler installed",
            "Panic notifier registered",
            "Exceptions: initialised",
            "pvpanic device found",
            "FAULT_INJECTION forcing a failure",
            "general protection enabled",
            // Shapes: a line of C source, a frame of Go's traceback
            "panic(\"Fatal demo\");",
            "panic(0xadc740, 0x104f450)",
            "page faults: 12",
        ] {
            assert!(deadly(line.as_bytes()).is_none(), "{line}");
        }
    }
}

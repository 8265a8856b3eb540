//! Makes whole lines of a console again where a transport glued two together or a mail program wrapped one.
//!
//! Soft breaks of quoted-printable text are taken out first ([`softly_broken`]). Glued lines are told by the time stamp
//! of a kernel in their middle ([`pieces`]). A wrapped head of a report is told by joining it with the line behind it,
//! which has no time stamp of its own ([`Half`]).

use super::prefix::{Caller, Stripped, strip_clean};
use super::report::LogPosition;

/// The most bytes that are kept of a line with soft breaks.
pub(super) const LONGEST_SOFT: usize = 4096;
/// The most bytes of a head that was joined.
const LONGEST_HEAD: usize = 400;
/// Lines that a head may be wrapped into.
const MOST_PARTS: u32 = 3;
/// A line that would be at least so long with the next word, its transport included, may have been wrapped.
const WRAPPED_AT: usize = 72;

/// How heads begin that are long enough to be wrapped; the beginning alone opens no report.
pub(super) const BEGINNINGS: [&[u8]; 16] = [
    b"WARNING: CPU: ",
    b"WARNING: at ",
    b"INFO: task ",
    b"INFO: rcu_",
    b"INFO: possible ",
    b"WARNING: possible ",
    b"BUG: soft ",
    b"BUG: unable",
    b"watchdog: BUG",
    b"NMI watchdog: ",
    b"kernel BUG at",
    b"Kernel panic - ",
    b"Unable to handle",
    b"Internal error: ",
    b"general protection",
    b"Watchdog detected",
];

/// The beginning of a line of quoted-printable text that a soft break ends: such lines have 76 characters at most, and
/// nearly as many where a word may be broken.
pub(super) fn softly_broken(line: &[u8]) -> Option<&[u8]> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    line.strip_suffix(b"=")
        .filter(|begun| (70..78).contains(&line.len()) && !begun.ends_with(b"=") && begun.contains(&b' '))
}

/// The lines in one line: it is cut before each time stamp of a kernel but the first, and where a page ran the lines of
/// a debugger of BSD together.
pub(super) fn pieces<'l>(line: &Stripped<'l>) -> impl Iterator<Item = Stripped<'l>> {
    let together = is_run_together(line.text);
    let mut cuts = (!together && is_flattened(line.text)).then(|| Cuts::of(line.text));
    let mut rest =
        Some(if together { line.text.trim_ascii_start().strip_prefix(b"@").unwrap_or(line.text) } else { line.text });
    let mut first = Some(*line);
    std::iter::from_fn(move || {
        let text = rest.take()?;
        let end = match &mut cuts {
            _ if together => line_end(text),
            Some(cuts) => cuts.end(text),
            None => inner_stamp(text),
        };
        let piece = &text[..end.unwrap_or(text.len())];
        rest = end.map(|at| &text[at..]);
        match first.take() {
            Some(line) => Some(Stripped { text: piece, ..line }),
            None => Some(strip_clean(piece)),
        }
    })
}

/// Bytes from which on a line may be several of a debugger.
const LONG: usize = 160;
/// Bytes in which a line of a debugger ends. A line of the log may be a megabyte: the whole rest is not looked at again
/// for each part of it.
const LONGEST_PART: usize = 1024;

/// Whether a line holds a fault and its backtrace, as ddb(4) prints them on many.
fn is_run_together(text: &[u8]) -> bool {
    const FAULTS: [&[u8]; 4] = [b"uvm_fault(", b"panic: ", b"Stopped at ", b" trap, code="];
    text.len() >= LONG
        && super::words::find_all(text, b") at ").nth(1).is_some()
        && FAULTS.iter().any(|fault| super::words::find(text, fault).is_some())
}

/// Where the first line of several ends that were run together: before the words by which ddb(4) begins one, and behind
/// a frame with its position.
fn line_end(text: &[u8]) -> Option<usize> {
    let text = &text[..text.len().min(LONGEST_PART)];
    const WORDS: [&[u8]; 10] = [
        b" fatal ",
        b" kernel: ",
        b" panic: ",
        b" Starting stack trace",
        b" Stopped at ",
        b" end of kernel",
        b" end trace frame",
        b" End of stack trace",
        b" TID PID ",
        b" ddb{",
    ];
    let inner = text.get(1..)?;
    const TRAP: &[u8] = b" trap type ";
    // `trap type 6 code 0 rip`, and not the words of a panic.
    let trap = super::words::find_all(inner, TRAP).find(|at| {
        let number = &inner[at + TRAP.len()..];
        number[word_length(number)..].starts_with(b" code ")
    });
    let word = WORDS.iter().filter_map(|word| super::words::find(inner, word)).chain(trap).min().map(|at| at + 1);
    let frame = super::words::find(inner, b") at ").map(|at| at + 1).map(|at| {
        let place = at + b") at ".len();
        let named = place + word_length(&text[place..]);
        // `sys/kern/subr_prf.c:229`, `[inline]`
        let mut end = named;
        while let Some(next) = text.get(end..).filter(|rest| rest.starts_with(b" ")).map(|rest| &rest[1..]) {
            let length = word_length(next);
            let is_place = memchr::memchr(b'/', &next[..length]).is_some() && memchr::memchr(b':', next).is_some();
            if length == 0 || !(is_place || &next[..length] == b"[inline]") {
                break;
            }
            end += 1 + length;
        }
        end
    });
    [word, frame].into_iter().flatten().min().filter(|end| *end < text.len())
}

/// Bytes that are taken apart where a page lost the ends of lines.
const LONGEST_PAGE: usize = 64 << 10;

/// The words by which lines of a report of Linux begin, with the blank that took the place of the end of a line.
const REPORT_WORDS: [&[u8]; 18] = [
    b" CPU: ",
    b" Modules linked in:",
    b" Hardware name: ",
    b" RIP: ",
    b" EIP: ",
    b" EFLAGS: ",
    b" RSP: ",
    b" Code: ",
    b" Stack: ",
    b" Call Trace:",
    b" Call trace:",
    b" Oops: ",
    b" Internal error: ",
    b" ---[ end trace ",
    b" <TASK>",
    b" </TASK>",
    b" Process ",
    b" WARNING: CPU: ",
];

/// Whether a line holds a report of Linux that a page shows without the ends of its lines, and without time stamps.
fn is_flattened(text: &[u8]) -> bool {
    const FEWEST: usize = 4;
    (LONG..=LONGEST_PAGE).contains(&text.len())
        && inner_stamp(text).is_none()
        && REPORT_WORDS.iter().filter(|word| super::words::find(text, word).is_some()).take(FEWEST).count() == FEWEST
}

/// Where the lines of a report of Linux end in such a text: before a word by which one begins, and before a frame. Each
/// place is found once, however many pieces there are.
struct Cuts<'l> {
    text: &'l [u8],
    /// Where each of the words stands next; the end of the text where it does not.
    words: [usize; REPORT_WORDS.len()],
    /// Where the next frame begins, and where the search for the one behind it goes on.
    frame: usize,
    plus: usize,
}

impl<'l> Cuts<'l> {
    fn of(text: &'l [u8]) -> Self {
        Self { text, words: [0; REPORT_WORDS.len()], frame: 0, plus: 0 }
    }

    /// The end of the first line of `rest`, with which the text ends.
    fn end(&mut self, rest: &[u8]) -> Option<usize> {
        let from = self.text.len() - rest.len();
        let next = (0..REPORT_WORDS.len()).map(|word| self.word(word, from)).min()?.min(self.frame(from));
        (next < self.text.len()).then_some(next - from)
    }

    /// Where a word stands behind `from`.
    fn word(&mut self, word: usize, from: usize) -> usize {
        if self.words[word] <= from {
            // `WARNING: CPU: 1 PID: …` is one line.
            let behind = self.text.get(from + 1..).unwrap_or_default();
            let mut places = super::words::find_all(behind, REPORT_WORDS[word]).map(|at| from + 1 + at);
            let begins = |at: &usize| !self.text[..*at].ends_with(b"WARNING:");
            self.words[word] = places.find(begins).unwrap_or(self.text.len());
        }
        self.words[word]
    }

    /// Where a frame begins behind `from`.
    fn frame(&mut self, from: usize) -> usize {
        while self.frame <= from {
            let Some(at) = super::words::find(&self.text[self.plus..], b"+0x") else {
                self.frame = self.text.len();
                break;
            };
            let plus = self.plus + at;
            self.frame = frame_start(self.text, plus).unwrap_or(self.frame);
            self.plus = plus + 1;
        }
        self.frame
    }
}

/// Where the frame begins whose offset in its function stands at `plus`: `[<c12ba080>] ? demo+0x44/0x64`.
fn frame_start(text: &[u8], plus: usize) -> Option<usize> {
    let sized = memchr::memchr(b'/', &text[plus..text.len().min(plus + LONGEST_OFFSET)])?;
    text[plus + sized..].starts_with(b"/0x").then_some(())?;
    let least = plus.saturating_sub(LONGEST_FRAME);
    let before = |end: usize| memchr::memrchr(b' ', &text[least..end]).map(|at| least + at);
    let mut start = before(plus)?;
    if text[least..start].ends_with(b" ?") {
        start -= 2;
    }
    if text[least..start].ends_with(b">]") {
        start = before(start)?;
    }
    Some(start)
}

/// Bytes of an offset in a function.
const LONGEST_OFFSET: usize = 20;
/// Bytes of a frame before its offset.
const LONGEST_FRAME: usize = 512;

fn word_length(text: &[u8]) -> usize {
    text.iter().position(|byte| *byte == b' ').unwrap_or(text.len())
}

/// Where `[   12.345678]` stands in a text, but not at its front.
fn inner_stamp(text: &[u8]) -> Option<usize> {
    let is_stamp = |at: usize| {
        let inner = text[at + 1..].trim_ascii_start();
        let whole = inner.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let fraction = inner.get(whole + 1..).unwrap_or_default();
        (1..=9).contains(&whole)
            && inner.get(whole) == Some(&b'.')
            && fraction.iter().take_while(|byte| byte.is_ascii_digit()).count() == 6
            && fraction.get(6) == Some(&b']')
    };
    memchr::memchr_iter(b'[', text).filter(|at| *at > 0).find(|at| is_stamp(*at))
}

/// A line that may be the first part of a head.
#[derive(Debug)]
pub(super) struct Half {
    /// The parts so far, one space between them.
    pub(super) text: Vec<u8>,
    /// Where the first one stands.
    pub(super) first: LogPosition,
    /// Who printed it.
    pub(super) caller: Option<Caller>,
    /// When it was printed, ns since boot.
    pub(super) ns: Option<u64>,
    /// Number of the report that it opened already.
    pub(super) opened: Option<u32>,
    /// Length of the first part.
    head: usize,
    last: u64,
    parts: u32,
    /// Length of the transport before the first part, and of the last line with its transport.
    prefix: usize,
    length: usize,
}

impl Half {
    /// The first part.
    pub(super) fn new(line: &Stripped<'_>, first: LogPosition, opened: Option<u32>) -> Self {
        let text = line.text.trim_ascii().to_vec();
        let length = line.prefix + line.text.trim_ascii_end().len();
        let (head, last, prefix) = (text.len(), first.line, line.prefix);
        Self { text, first, caller: line.caller, ns: line.ns, opened, head, last, parts: 1, prefix, length }
    }

    /// The first part alone.
    pub(super) fn head(&self) -> &[u8] {
        &self.text[..self.head.min(self.text.len())]
    }

    /// Whether the beginning of a head that was wrapped stands here.
    pub(super) fn begins(text: &[u8]) -> bool {
        text.len() < LONGEST_HEAD && BEGINNINGS.iter().any(|beginning| text.starts_with(beginning.trim_ascii_end()))
    }

    /// The head together with the next line, if that may be its next part.
    pub(super) fn with(mut self, line: &Stripped<'_>, position: LogPosition) -> Option<Self> {
        let text = line.text.trim_ascii();
        // A kernel with time stamps stamps each line, and a logger writes its head before each. Without either a
        // wrapped line is told by its length.
        let follows = self.last + 1 == position.line && line.ns.is_none() && line.caller.is_none();
        let is_bare = self.prefix < 8 || line.prefix + 8 <= self.prefix;
        let word = text.iter().position(|byte| *byte == b' ').unwrap_or(text.len());
        let is_long = self.length + 1 + word >= WRAPPED_AT;
        let sound = follows && is_bare && (self.ns.is_some() || is_long) && self.parts < MOST_PARTS;
        if !sound || self.text.len() + text.len() >= LONGEST_HEAD {
            return None;
        }
        self.text.push(b' ');
        self.text.extend_from_slice(text);
        self.length = line.prefix + line.text.trim_ascii_end().len();
        (self.last, self.parts) = (position.line, self.parts + 1);
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_of_nothing_but_beginnings_is_looked_through_once() {
        // Beginnings of lines, frames, and offsets without a blank before them.
        for part in [
            " CPU:  RIP:  Code:  Stack: ",
            " Call Trace: RIP: CPU: Code:  a+0x1/0x2",
            "+0x1/0x2 CPU:  RIP:  Code:  Stack: ",
        ] {
            let page = part.repeat(LONGEST_PAGE / part.len());
            let parts = page.len() / part.len();
            let lines = texts(&page);
            assert!(lines.len() >= 3 * parts && lines.concat().len() <= page.len(), "{} lines", lines.len());
        }
    }

    #[test]
    fn a_report_on_a_page_without_ends_of_lines_is_cut_at_its_words_and_frames() {
        let page = "------------[ cut here ]------------ WARNING: CPU: 1 PID: 28 at kernel/demo.c:11 \
                    demo_put+0x57/0x70 Modules linked in: a(-) b [last unloaded: c] \
                    CPU: 1 PID: 28 Comm: rm Tainted: P 4.8.4 #1 \
                    Hardware name: X/Y, BIOS 02/23/2009 00000000 c12ba080 Call Trace: [<c12ba080>] ? \
                    dump_stack+0x44/0x64 [<f80ca4d0>] ? demo_set+0x460/0x460 [demo_mod] \
                    demo_exit+0x3a/0x70 [demo] entry+0x1/0x2";
        let lines = texts(page);
        assert_eq!(lines[1], " WARNING: CPU: 1 PID: 28 at kernel/demo.c:11");
        for line in [
            " Call Trace:",
            " [<c12ba080>] ? dump_stack+0x44/0x64",
            " [<f80ca4d0>] ? demo_set+0x460/0x460 [demo_mod]",
            " demo_exit+0x3a/0x70 [demo]",
        ] {
            assert!(lines.iter().any(|found| found == line), "{line}{lines:#?}");
        }
    }

    fn texts(line: &str) -> Vec<String> {
        let stripped = strip_clean(line.as_bytes());
        pieces(&stripped).map(|piece| String::from_utf8_lossy(piece.text).into_owned()).collect()
    }

    #[test]
    fn glued_lines_are_cut_at_the_stamps_of_a_kernel_and_nowhere_else() {
        assert_eq!(texts("[    5.100001] a b[    5.100002] c [    5.100003]  d"), ["a b", "c ", " d"]);
        assert_eq!(texts("no stamp[    5.100002][   T12] c"), ["no stamp", "c"]);
        for line in ["[    5.100001] a [12.5] b", "a [1] b", "x [0.123456", "a [foo] [  ] b", "0: [12.34567] x"] {
            assert_eq!(texts(line).len(), 1, "{line}");
        }
    }
}

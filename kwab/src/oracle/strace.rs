//! Reads the text that strace(1) prints, with or without `-f`, `-t`, `-r`, `-T`, `-y`, `-Y`, `-n`, `-i`, `-k`, to a
//! file or a terminal.

use std::borrow::Cow;
use std::collections::HashMap;

use linux_abi::syscalls;

use super::operand::{Answer, Operand, number};
use super::trace::{Called, Ended, Origin, Trace, What};
use crate::model::memory::Budget;
use crate::units::{bytes as in_bytes, count};

/// Lines at the beginning of a text that decide whether it is strace's.
const LOOKED_AT: usize = 32;

/// The place of `pos_h` in the arguments of preadv(2).
const OFFSET_HIGH: usize = 4;

/// Whether a text is one of strace: most of its first lines are calls, signals or ends.
#[must_use]
pub fn is_strace(bytes: &[u8]) -> bool {
    let lines = bytes.split(|byte| *byte == b'\n').map(String::from_utf8_lossy);
    // A stack says nothing: mails quote so too.
    let told = |line: &str| !line.trim().is_empty() && frame(line).is_none();
    let lines: Vec<_> = lines.filter(|line| told(line)).take(LOOKED_AT).collect();
    let understood = lines.iter().filter(|line| !matches!(StraceLine::of(split(line).1), StraceLine::Other)).count();
    understood > 0 && understood * 2 >= lines.len()
}

/// Reads a whole text. Lines that cannot be read are counted in the gaps of the trace, and so are those for which
/// there is no memory: 64 MiB and four times the text, or the limit that the user has set.
#[must_use]
pub fn of_strace(bytes: &[u8]) -> Trace {
    let mut reading = Reading {
        trace: Trace::new(Origin::Strace),
        begun: HashMap::new(),
        budget: Budget::of(bytes.len() as u64, bytes.len() as u64),
        unread: 0,
        first_unread: 0,
    };
    for (at, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        if !reading.line(at, &String::from_utf8_lossy(line)) {
            let limit = in_bytes(reading.budget.total());
            let from = at + 1;
            let gap =
                format!("what is from line {from} on was left out: {limit} of memory are used; --max-mem allows more");
            reading.trace.gaps.push(gap);
            break;
        }
    }
    reading.finish()
}

/// A text that is being read.
struct Reading {
    trace: Trace,
    /// Calls that have not returned yet, and where they began.
    begun: HashMap<u32, (usize, String)>,
    budget: Budget,
    unread: u64,
    first_unread: usize,
}

impl Reading {
    /// Takes a line; `false` when there is no memory for it.
    fn line(&mut self, at: usize, line: &str) -> bool {
        if frame(line).is_some() {
            return true;
        }
        let (Prefix { tid, .. }, body) = split(line);
        match StraceLine::of(body) {
            StraceLine::Whole(call) => return self.push(tid, at, What::Call(Box::new(call))),
            StraceLine::Begun(start) => return self.begin(tid, at, start),
            StraceLine::Resumed(rest) => match self.taken(tid).and_then(|(_, start)| called(&joined(&start, rest))) {
                Some(call) => return self.push(tid, at, What::Call(Box::new(call))),
                None => self.cannot_read(at),
            },
            StraceLine::Signal(name) => return self.push(tid, at, What::Signal { name, acts: None }),
            StraceLine::End(end) => {
                // What a thread was in when it ended never returned.
                let call = self.taken(tid);
                return self.unreturned(tid, call) && self.push(tid, at, What::End(end));
            }
            StraceLine::Other if !body.trim().is_empty() => self.cannot_read(at),
            StraceLine::Remark | StraceLine::Other => {}
        }
        true
    }

    fn begin(&mut self, tid: u32, at: usize, start: &str) -> bool {
        let _ = self.taken(tid);
        let fits = self.budget.take(begun_footprint(start));
        if fits {
            self.begun.insert(tid, (at, start.to_owned()));
        }
        fits
    }

    /// The call that a thread was in, which it is no longer.
    fn taken(&mut self, tid: u32) -> Option<(usize, String)> {
        let call = self.begun.remove(&tid)?;
        self.budget.give(begun_footprint(&call.1));
        Some(call)
    }

    fn push(&mut self, tid: u32, at: usize, what: What) -> bool {
        /// A thread with its name in the index, and in the pairs of the comparison.
        const THREAD: u64 = 256;
        let thread = if self.trace.thread(tid).is_none() { THREAD } else { 0 };
        let fits = self.budget.take(what.footprint() + thread);
        if fits {
            self.trace.push(tid, at, what);
        }
        fits
    }

    /// Adds a call that has not returned, at the line where it began.
    fn unreturned(&mut self, tid: u32, call: Option<(usize, String)>) -> bool {
        let call = call.and_then(|(at, start)| Some((at, called(&format!("{start}) = ?"))?)));
        call.is_none_or(|(at, call)| self.push(tid, at, What::Call(Box::new(call))))
    }

    fn cannot_read(&mut self, at: usize) {
        if self.unread == 0 {
            self.first_unread = at + 1;
        }
        self.unread += 1;
    }

    fn finish(mut self) -> Trace {
        let mut left: Vec<_> = std::mem::take(&mut self.begun).into_iter().collect();
        left.sort_unstable_by_key(|(_, (at, _))| *at);
        let mut lost = 0;
        for (tid, call) in left {
            self.budget.give(begun_footprint(&call.1));
            lost += u64::from(!self.unreturned(tid, Some(call)));
        }
        if lost > 0 {
            let calls = count(lost, "call that did not return was", "calls that did not return were");
            self.trace.gaps.push(format!("{calls} left out for want of memory; --max-mem allows more"));
        }
        if self.unread > 0 {
            let lines = count(self.unread, "line", "lines");
            self.trace.gaps.push(format!("{lines} could not be read, the first is line {}", self.first_unread));
        }
        self.trace
    }
}

/// What a call that has not returned takes.
fn begun_footprint(start: &str) -> u64 {
    const ENTRY: usize = 96;
    (start.len() + ENTRY) as u64
}

/// What stands before a call, a signal or an end.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Prefix<'l> {
    /// The thread; 0 when none is named.
    pub tid: u32,
    /// Its name, with `-Y`.
    pub comm: Option<&'l str>,
    /// Its instruction pointer, with `-i`.
    pub ip: Option<u64>,
}

/// What stands before a call, a signal or an end, and the line without it.
pub(crate) fn split(line: &str) -> (Prefix<'_>, &str) {
    let mut prefix = Prefix::default();
    let mut rest = line.trim_end_matches('\r').trim_start();
    if let Some((thread, behind)) = threaded(rest) {
        (prefix.tid, prefix.comm) = thread;
        rest = behind.trim_start();
    }
    // At most a time of day, or seconds, and the time since the line before.
    for _ in 0..2 {
        match rest.split_once(' ') {
            Some((word, behind)) if is_time(word) => rest = behind.trim_start(),
            _ => break,
        }
    }
    // The number of the call, and the instruction pointer.
    for _ in 0..2 {
        let Some((word, behind)) = rest.strip_prefix('[').and_then(|rest| rest.split_once("] ")) else { break };
        let (word, is_pointer) = (word.trim(), matches!(word.len(), 8 | 16));
        match u64::from_str_radix(word, 16) {
            Ok(ip) if is_pointer => prefix.ip = Some(ip),
            Err(_) if is_pointer && word.bytes().all(|byte| byte == b'?') => {}
            _ if !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit()) => {}
            _ => break,
        }
        rest = behind.trim_start();
    }
    (prefix, rest)
}

/// The thread in front of a line, and what is behind it: `[pid   12] …`, `12 …`, and with its name `12<cat> …`.
fn threaded(line: &str) -> Option<((u32, Option<&str>), &str)> {
    let bracketed = line.strip_prefix("[pid");
    let text = bracketed.map_or(line, str::trim_start);
    let (number, behind) = text.split_at(text.bytes().take_while(u8::is_ascii_digit).count());
    let tid = number.parse().ok()?;
    let end = if bracketed.is_some() { "]" } else { " " };
    let (comm, behind) = match behind.strip_prefix('<') {
        Some(named) => named.split_once(&*format!(">{end}")).map(|(comm, behind)| (Some(comm), behind))?,
        None => (None, behind.trim_start_matches(|space| space == ' ' && end == "]").strip_prefix(end)?),
    };
    Some(((tid, comm), behind))
}

/// A line of the stack that `-k` prints below a call or a signal, without its mark: `/bin/cat(main+0x1f) [0x2a3f]`.
pub(crate) fn frame(line: &str) -> Option<&str> {
    let text = line.strip_prefix(" > ")?.trim_end();
    let (_, at) = text.split_once(" [0x")?;
    let digits = at.bytes().take_while(u8::is_ascii_hexdigit).count();
    (digits > 0 && at[digits..].starts_with(']')).then_some(text)
}

/// `12:34:56`, `12:34:56.789012`, `1700000000.123456`, `0.000123`, `(+`.
fn is_time(word: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, part) = word.split_once('.').map_or((word, None), |(whole, part)| (whole, Some(part)));
    part.is_none_or(digits) && whole.split(':').all(digits) && (word.contains(':') || part.is_some())
}

/// A line without its thread.
pub(crate) enum StraceLine<'l> {
    /// A call with its answer.
    Whole(Called),
    /// How a call begins that other lines interrupt.
    Begun(&'l str),
    /// How it goes on.
    Resumed(&'l str),
    /// A signal was delivered.
    Signal(String),
    /// The thread ended.
    End(Ended),
    /// Words of strace itself.
    Remark,
    /// Nothing that is known.
    Other,
}

impl<'l> StraceLine<'l> {
    /// What a line tells.
    pub(crate) fn of(body: &'l str) -> Self {
        if let Some(rest) = body.strip_prefix("--- ") {
            let name = rest.split([' ', '{']).next().unwrap_or(rest);
            return if name == "stopped" { Self::Remark } else { Self::Signal(name.to_owned()) };
        }
        if let Some(rest) = body.strip_prefix("+++ ") {
            return end(rest).map_or(Self::Remark, Self::End);
        }
        if body.starts_with("strace: ") {
            return Self::Remark;
        }
        if let Some(rest) = body.strip_prefix("<... ") {
            return rest.split_once(" resumed>").map_or(Self::Other, |(_, rest)| Self::Resumed(rest));
        }
        if let Some(start) = body.strip_suffix("<unfinished ...>").or_else(|| body.strip_suffix("<unfinished ...>)")) {
            return if name_of(start).is_some() { Self::Begun(start.trim_end()) } else { Self::Other };
        }
        called(body).map_or(Self::Other, Self::Whole)
    }
}

/// A call whose text was printed in two pieces, of which the first has lost the space at its end.
fn joined(start: &str, rest: &str) -> String {
    let between = if start.ends_with(',') { " " } else { "" };
    format!("{start}{between}{}", rest.trim_start())
}

fn end(text: &str) -> Option<Ended> {
    if let Some(status) = text.strip_prefix("exited with ") {
        return Some(Ended::Exit(status.split(' ').next()?.parse().ok()?));
    }
    Some(Ended::Signal(text.strip_prefix("killed by ")?.split(' ').next()?.to_owned()))
}

/// The name in front of the arguments.
fn name_of(text: &str) -> Option<(&str, &str)> {
    let (name, rest) = text.split_once('(')?;
    let is_name = |name: &str| {
        name.starts_with(|first: char| first.is_ascii_lowercase() || first == '_')
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    is_name(name).then_some((name, rest))
}

/// A call with its answer: `read(3, "x"..., 10) = 1 <0.000012>`.
pub(crate) fn called(body: &str) -> Option<Called> {
    let (name, rest) = name_of(body)?;
    let (tokens, behind) = arguments(rest)?;
    let answer = behind.trim_start().strip_prefix('=')?.trim_start();
    let known = syscalls::by_name(name);
    let kind = |at: usize| known.and_then(|known| known.args.get(at)).map(|arg| arg.kind);
    let operand = |(at, token): (usize, &&str)| match named(token) {
        // strace writes clone(2) with the names of its arguments, in another order.
        Some(_) if matches!(known.map(|known| known.name), Some("clone" | "clone3")) => Operand::default(),
        Some(value) => Operand::of_strace(kind(at), value),
        None => Operand::of_strace(kind(at), token),
    };
    let mut args: Vec<Operand> = tokens.iter().enumerate().map(operand).collect();
    // Offsets are one number there and two registers in the table.
    if args.len() >= OFFSET_HIGH && matches!(name, "preadv" | "pwritev" | "preadv2" | "pwritev2") {
        args.insert(OFFSET_HIGH, Operand::default());
    }
    let pids = known.filter(|known| known.name == "clone");
    if let Some(first) = args.first_mut().filter(|_| pids.is_some()) {
        first.written = tokens.iter().find_map(|token| token.strip_prefix("flags=")).map(Box::from);
    }
    let end = body.len() - behind.len();
    // What is restored behind a handler is a register of the program, no answer.
    let answer = if name == "rt_sigreturn" { Answer::None } else { answered(answer) };
    let name = known.map_or_else(|| Cow::Owned(name.to_owned()), |known| Cow::Borrowed(known.name));
    Some(Called { known, name, args: args.into(), answer, text: body[..end].into(), number: None })
}

/// The value of `name=value`.
fn named(token: &str) -> Option<&str> {
    let (name, value) = token.split_once('=')?;
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    is_name.then_some(value)
}

/// `3`, `0x7f00`, `-1 ENOENT (No such file or directory)`, `? ERESTARTSYS (To be restarted …)`, `?`, `3</etc/passwd>`.
fn answered(text: &str) -> Answer {
    let mut words = text.split([' ', '<']);
    let (value, second) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    match (value, second) {
        ("?", name) if name.starts_with("ERESTART") => Answer::Restart,
        ("?", _) => Answer::None,
        ("-1", name) if name.starts_with('E') => Answer::Error(name.to_owned()),
        // The answer of umask(2) is octal.
        _ => number(value).map_or(Answer::Unknown, |value| Answer::Value(value as i64)),
    }
}

/// The arguments up to the bracket that ends them, and what follows it.
fn arguments(text: &str) -> Option<(Vec<&str>, &str)> {
    let (mut tokens, mut from, mut depth, mut quoted) = (Vec::new(), 0, 0_usize, false);
    let mut bytes = text.bytes().enumerate();
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'\\' if quoted => drop(bytes.next()),
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b'(' | b'[' | b'{' => depth += 1,
            b')' if depth == 0 => {
                let last = text.get(from..at)?.trim();
                tokens.extend((!last.is_empty()).then_some(last));
                return Some((tokens, text.get(at + 1..)?));
            }
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                tokens.push(text.get(from..at)?.trim());
                from = at + 1;
            }
            _ => {}
        }
    }
    None
}

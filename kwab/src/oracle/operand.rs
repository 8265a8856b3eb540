//! Arguments and answers of calls, from registers or from strace's text, and when two of them are the same.

use linux_abi::Errno;
use linux_abi::flags::{FlagSet, file};
use linux_abi::signals::Signal;
use linux_abi::syscalls::{ArgKind, ResultKind, Syscall};

use crate::report::align::shape;

/// An argument as far as the trace shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Operand {
    /// The register's value, where it can be told.
    pub word: Option<u64>,
    /// The string that it points at.
    pub text: Option<Text>,
    /// How strace wrote what it points at.
    pub written: Option<Box<str>>,
    /// Whether what is written has no number that differs from run to run.
    pub exact: bool,
}

/// A string, or how it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Text {
    /// Its bytes; of several strings each ends with a NUL.
    pub bytes: Vec<u8>,
    /// Whether it goes on.
    pub cut: bool,
}

/// What a call returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// What the register held, other than an error.
    Value(i64),
    /// An error, by its name.
    Error(String),
    /// The call is made again, or was interrupted to be restarted.
    Restart,
    /// It had not returned when the trace ended, or never does.
    None,
    /// The trace does not say.
    Unknown,
}

/// Whether two operands or answers are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Same {
    Yes,
    No,
    /// One of the traces does not show it.
    CannotTell,
}

impl From<bool> for Same {
    fn from(same: bool) -> Self {
        if same { Self::Yes } else { Self::No }
    }
}

impl Answer {
    /// What a register says.
    pub(super) fn of_register(value: i64) -> Self {
        match value {
            // ERESTARTSYS, ERESTARTNOINTR, ERESTARTNOHAND, ERESTART_RESTARTBLOCK of include/linux/errno.h.
            -516 | -514 | -513 | -512 => Self::Restart,
            _ => match Errno::from_result(value) {
                Some(errno) => Self::Error(errno.name().map_or_else(|| format!("errno {}", -value), str::to_owned)),
                None => Self::Value(value),
            },
        }
    }

    /// The answer as strace writes it.
    pub(super) fn shown(&self, known: Option<&Syscall>) -> String {
        match self {
            Self::Value(value) => match known.map(|known| known.result) {
                Some(ResultKind::Address | ResultKind::Hex) => format!("{value:#x}"),
                _ => value.to_string(),
            },
            Self::Error(name) => format!("-1 {name}"),
            Self::Restart => "? (restarted)".to_owned(),
            Self::None => "? (not returned)".to_owned(),
            Self::Unknown => "?".to_owned(),
        }
    }

    /// The value, when there is one.
    pub(super) fn value(&self) -> Option<i64> {
        if let Self::Value(value) = self { Some(*value) } else { None }
    }
}

impl Operand {
    /// A register, with the string that it points at.
    pub(super) fn of_register(word: Option<u64>, text: Option<(&[u8], bool)>) -> Self {
        let text = text.map(|(bytes, cut)| Text { bytes: bytes.to_vec(), cut });
        Self { word, text, ..Self::default() }
    }

    /// A register, and the structure that it points at as strace would write it.
    pub(super) fn of_structure(word: Option<u64>, (written, exact): (String, bool)) -> Self {
        Self { word, written: Some(written.into()), exact, ..Self::default() }
    }

    /// A word of strace's text, by what the table says that the argument is.
    pub(super) fn of_strace(kind: Option<ArgKind>, token: &str) -> Self {
        let written = token.trim();
        let bare = written.split_once(" /* ").map_or(written, |(word, _)| word).trim_end();
        let mut operand = Self { written: Some(written.into()), ..Self::default() };
        match (kind, bare.as_bytes().first()) {
            (_, Some(b'"' | b'[')) => operand.text = strings(bare),
            (_, Some(b'{')) | (_, None) => {}
            (Some(ArgKind::Flags(set) | ArgKind::Flags64(set)), _) => operand.word = flags(set, bare),
            (Some(ArgKind::Signal), Some(b'S')) => {
                operand.word = Signal::from_name(bare).map(|it| u64::from(it.number()));
            }
            // With -y a descriptor is followed by what it is: `3</etc/passwd>`.
            (Some(ArgKind::Fd | ArgKind::DirFd), _) => {
                operand.word = match bare.split('<').next().unwrap_or(bare) {
                    "AT_FDCWD" => Some(-100_i64 as u64),
                    word => number(word),
                };
            }
            _ => operand.word = number(bare),
        }
        if operand.word.is_some() || operand.text.is_some() {
            operand.written = None;
        }
        operand
    }

    /// Whether a pointer is null, as far as it is shown.
    fn is_null(&self) -> Option<bool> {
        match (self.word, &self.text, &self.written) {
            (Some(word), _, _) => Some(word == 0),
            (None, None, None) => None,
            (None, None, Some(written)) => Some(&**written == "NULL"),
            _ => Some(false),
        }
    }

    /// Whether two operands of one kind are the same but for what is renamed (descriptors, processes, addresses).
    pub(super) fn same(&self, other: &Self, kind: ArgKind) -> Same {
        match kind {
            ArgKind::Path | ArgKind::Str | ArgKind::Ptr => self.same_memory(other),
            // Renamed, or a remainder of time that the program computed.
            ArgKind::Fd | ArgKind::DirFd | ArgKind::Pid | ArgKind::Time | ArgKind::CloneFlags => Same::CannotTell,
            ArgKind::Size | ArgKind::Offset | ArgKind::Long | ArgKind::Flags64(_) => self.same_word(other, u64::MAX),
            ArgKind::Flags(set) if set.name == file::OPEN.name => {
                // 64-bit programs need no O_LARGEFILE, and strace leaves it out.
                self.same_word(other, u64::from(u32::MAX) & !file::O_LARGEFILE)
            }
            ArgKind::Mode | ArgKind::Id | ArgKind::Int | ArgKind::Uint | ArgKind::Signal | ArgKind::Flags(_) => {
                self.same_word(other, u64::from(u32::MAX))
            }
            // Of either sort by another argument; what looks like an address is one.
            ArgKind::Hex => match (self.word, other.word) {
                (Some(word), Some(of_other)) if word.max(of_other) >> 32 == 0 => (word == of_other).into(),
                _ => Same::CannotTell,
            },
        }
    }

    fn same_word(&self, other: &Self, mask: u64) -> Same {
        match (self.word, other.word) {
            (Some(word), Some(of_other)) => (word & mask == of_other & mask).into(),
            _ => Same::CannotTell,
        }
    }

    fn same_memory(&self, other: &Self) -> Same {
        match (self.is_null(), other.is_null()) {
            (Some(null), Some(of_other)) if null != of_other => return Same::No,
            (Some(true), Some(true)) => return Same::Yes,
            _ => {}
        }
        match (&self.text, &other.text) {
            (Some(text), Some(of_other)) => text.same(of_other),
            _ => match (&self.written, &other.written) {
                // Two texts of strace, or two recordings, which write the same fields: structures, without the numbers
                // that differ from run to run.
                (Some(written), Some(of_other))
                    if self.word.is_some() == other.word.is_some() && written.starts_with(['{', '[']) =>
                {
                    let exact = self.exact && other.exact;
                    (written == of_other || !exact && shape(written) == shape(of_other)).into()
                }
                _ => Same::CannotTell,
            },
        }
    }
}

impl Text {
    fn same(&self, other: &Self) -> Same {
        let (here, there) = match (self.cut, other.cut) {
            (false, false) => (self.bytes.len(), other.bytes.len()),
            (true, false) => (self.bytes.len(), self.bytes.len()),
            (false, true) => (other.bytes.len(), other.bytes.len()),
            (true, true) => (self.bytes.len().min(other.bytes.len()), self.bytes.len().min(other.bytes.len())),
        };
        match (self.bytes.get(..here), other.bytes.get(..there)) {
            (Some(start), Some(of_other)) => (start == of_other || is_renamed(start, of_other)).into(),
            _ => Same::No,
        }
    }
}

/// Characters that mkdtemp(3) and mkstemp(3) choose.
const CHOSEN: usize = 6;

/// Whether two paths differ only in what differs from run to run: the number of a process, and what mkdtemp(3) chose,
/// the last six characters of a component.
fn is_renamed(here: &[u8], there: &[u8]) -> bool {
    let (mut ours, mut theirs) = (here.split(|byte| *byte == b'/'), there.split(|byte| *byte == b'/'));
    loop {
        match (ours.next(), theirs.next()) {
            (None, None) => return true,
            (Some(here), Some(there)) if here == there || is_number(here) && is_number(there) => {}
            (Some(here), Some(there)) => {
                let start = |name: &[u8]| name.len().checked_sub(CHOSEN).map(|end| name.split_at(end).0.to_vec());
                let chosen = |name: &[u8]| name.iter().rev().take(CHOSEN).all(u8::is_ascii_alphanumeric);
                if start(here).is_none() || start(here) != start(there) || !chosen(here) || !chosen(there) {
                    return false;
                }
            }
            _ => return false,
        }
    }
}

fn is_number(word: &[u8]) -> bool {
    !word.is_empty() && word.iter().all(u8::is_ascii_digit)
}

/// A number as strace writes it: decimal, octal with a leading zero, hexadecimal; NULL is zero.
pub(super) fn number(word: &str) -> Option<u64> {
    if word == "NULL" {
        return Some(0);
    }
    if let Some(digits) = word.strip_prefix("0x") {
        return u64::from_str_radix(digits, 16).ok();
    }
    if word.len() > 1 && word.starts_with('0') {
        return u64::from_str_radix(word, 8).ok();
    }
    word.parse::<i64>().map(|value| value as u64).or_else(|_| word.parse()).ok()
}

/// The word behind names joined by `|`; `None` when one of them is not of the set.
fn flags(set: &FlagSet, words: &str) -> Option<u64> {
    words.split('|').try_fold(0, |sum, word| {
        let named = set.names().find(|(_, name)| *name == word).map(|(value, _)| value);
        Some(sum | named.or_else(|| number(word))?)
    })
}

/// `"text"`, `"text"...`, `["a", "b"]`, `["a", ...]` as bytes; `None` for lists of other things.
fn strings(token: &str) -> Option<Text> {
    let Some(list) = token.strip_prefix('[') else {
        let (bytes, rest) = quoted(token)?;
        return Some(Text { bytes, cut: rest.starts_with("...") });
    };
    let (mut rest, mut text) = (list, Text { bytes: Vec::new(), cut: false });
    loop {
        rest = rest.trim_start_matches([',', ' ']);
        if rest.starts_with("...") || rest.is_empty() {
            return Some(Text { cut: true, ..text });
        }
        if rest.starts_with(']') {
            return Some(text);
        }
        let (bytes, behind) = quoted(rest)?;
        text.bytes.extend_from_slice(&bytes);
        if let Some(behind) = behind.strip_prefix("...") {
            // What this string goes on with is not known, so nothing behind it can be placed.
            return Some(Text { cut: true, bytes: text.bytes }).filter(|_| behind.starts_with([',', ']']));
        }
        text.bytes.push(0);
        rest = behind;
    }
}

/// A string in quotes with C's escapes, and what follows it.
fn quoted(token: &str) -> Option<(Vec<u8>, &str)> {
    let body = token.strip_prefix('"')?;
    let (mut bytes, mut at) = (Vec::new(), 0);
    let raw = body.as_bytes();
    loop {
        match *raw.get(at)? {
            b'"' => return Some((bytes, body.get(at + 1..)?)),
            b'\\' => {
                let (byte, used) = escape(raw.get(at + 1..)?)?;
                bytes.push(byte);
                at += 1 + used;
            }
            byte => {
                bytes.push(byte);
                at += 1;
            }
        }
    }
}

/// The byte behind a backslash, and how many characters name it.
fn escape(rest: &[u8]) -> Option<(u8, usize)> {
    let first = *rest.first()?;
    if matches!(first, b'0'..=b'7') {
        let digits = rest.iter().take(3).take_while(|digit| matches!(digit, b'0'..=b'7')).count();
        let value = rest[..digits].iter().fold(0_u32, |value, digit| value * 8 + u32::from(digit - b'0'));
        return Some((value as u8, digits));
    }
    if first == b'x' {
        let digits = std::str::from_utf8(rest.get(1..3)?).ok()?;
        return Some((u8::from_str_radix(digits, 16).ok()?, 3));
    }
    let byte = match first {
        b'n' => b'\n',
        b't' => b'\t',
        b'r' => b'\r',
        b'v' => 0x0b,
        b'f' => 0x0c,
        b'a' => 0x07,
        b'b' => 0x08,
        other => other,
    };
    Some((byte, 1))
}

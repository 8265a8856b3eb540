//! Decides what stays of a text: fixed words, names by their grammar, sentences by a list of words.

use std::collections::HashSet;
use std::sync::OnceLock;

use linux_abi::{Errno, Signal, syscalls};

use super::known::Known;
use super::table::{self, Holds};

/// Texts that kernels and kwab write for themselves, one a line.
const KNOWN: &str = include_str!("known.txt");
/// The words of messages that rules and tables of reports look for.
const WORDS: &str = include_str!("words.txt");
/// The longest name that stays.
const LONGEST_NAME: usize = 256;
/// Bytes of a sentence that are looked at; a panic message is shorter.
const LONGEST_PROSE: usize = 64 << 10;
/// What stands for words that were removed.
const GAP: &str = "…";

/// Whether a text is a fixed one.
pub(super) fn is_known(text: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(text) else { return false };
    let text = text.trim();
    // `switches on cpu 3` is `switches on cpu N`.
    let (stem, number) = text.rsplit_once(' ').unwrap_or((text, ""));
    let numbered = (1..=4).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_digit());
    text.is_empty()
        || is_line(text)
        || (numbered && is_line(&format!("{stem} N")))
        || syscalls::by_name(text).is_some()
        || Signal::from_name(text).is_some()
        || Errno::from_name(text).is_some()
        || is_field(text)
}

fn is_line(text: &str) -> bool {
    static LINES: OnceLock<HashSet<&str>> = OnceLock::new();
    LINES.get_or_init(|| KNOWN.lines().collect()).contains(text)
}

/// Whether a text names a field of the table, as the counters of a redaction do.
fn is_field(text: &str) -> bool {
    let Some((record, field)) = text.split_once('.') else { return false };
    let Some(rows) = table::TABLE.iter().find(|rows| rows.name == record) else { return false };
    let own = |fields: &[table::Field]| fields.iter().any(|known| known.name == field);
    own(rows.fields)
        || own(table::STAMP)
        || rows.fields.iter().any(|known| match known.holds {
            Holds::List(fields) => {
                let element = field.strip_prefix(known.name).and_then(|rest| rest.strip_prefix('.'));
                element.is_some_and(|name| fields.iter().any(|known| known.name == name))
            }
            _ => false,
        })
}

/// A name, when it has the grammar of one: what compilers and linkers make.
pub(super) fn symbol(text: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(text).ok()?;
    let name = text.trim();
    let signs = |sign: char| sign.is_ascii_alphanumeric() || "_.$:<>,&*()[]{}#+-=;' ".contains(sign);
    let spaced = name.contains(' ') && !name.contains('<') && !name.contains('[');
    let sound = !name.is_empty() && name.len() <= LONGEST_NAME && name.chars().all(signs) && !spaced;
    // Kernels' tables have `+0x12/0x80` behind a name.
    let (name, size) = name.split_once('/').unwrap_or((name, ""));
    let sized =
        size.len() <= 18 && size.strip_prefix("0x").is_some_and(|hex| hex.chars().all(|c| c.is_ascii_hexdigit()));
    (sound || (sized && symbol_of_table(name))).then(|| text.to_owned())
}

fn symbol_of_table(name: &str) -> bool {
    let signs = |sign: char| sign.is_ascii_alphanumeric() || "_.$:+".contains(sign);
    !name.is_empty() && name.len() <= LONGEST_NAME && name.chars().all(signs)
}

/// A source path with its line: a relative one whole, of an absolute one the last part.
pub(super) fn source(text: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(text).ok()?.trim();
    let relative = !text.starts_with(['/', '~', '\\']) && !text.split('/').any(|part| part == "..");
    let kept = if relative { text } else { text.rsplit(['/', '\\']).next()? };
    let signs = |sign: char| sign.is_ascii_alphanumeric() || "_.-/:".contains(sign);
    (!kept.is_empty() && kept.len() <= LONGEST_NAME && kept.chars().all(signs)).then(|| kept.to_owned())
}

/// The first words of a name with its release, up to the first that is neither.
pub(super) fn version(text: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(text).ok()?;
    let signs = |sign: char| sign.is_ascii_alphanumeric() || "._+~-".contains(sign);
    let words = text.split_ascii_whitespace().take(3);
    let kept: Vec<&str> = words.take_while(|word| word.len() <= 40 && word.chars().all(signs)).collect();
    (!kept.is_empty()).then(|| kept.join(" "))
}

/// A sentence without the words that are not in the list; numbers stay where they are addresses or small.
pub(super) fn prose(text: &[u8], known: &Known) -> Option<String> {
    let text = String::from_utf8_lossy(text.get(..LONGEST_PROSE).unwrap_or(text));
    let mut out = String::new();
    let mut rest = &*text;
    let mut signs = 0;
    let mut row = NumberRow::default();
    while let Some(first) = rest.chars().next() {
        let is_word = |sign: char| sign.is_alphanumeric() || sign == '_' || !(sign.is_ascii());
        let length = rest.find(|sign| is_word(sign) != is_word(first)).unwrap_or(rest.len());
        let (token, behind) = rest.split_at(length);
        rest = behind;
        if is_word(first) {
            signs = 0;
            if stays(token, known) && row.takes(token, &mut out) {
                out.push_str(token);
                continue;
            }
            row.passes(token);
            // Gaps in a row are one.
            let told = out.trim_end_matches(|sign: char| sign.is_ascii() && !sign.is_alphanumeric()).len();
            match out[..told].ends_with(GAP) {
                true => out.truncate(told),
                false => out.push_str(GAP),
            }
            continue;
        }
        // Signs between words, few of them: a run could spell something.
        for sign in token.chars().filter(|sign| " ,.:;()[]+-/=#\n".contains(*sign)) {
            signs += 1;
            if signs <= 2 {
                out.push(sign);
            }
        }
    }
    let told = out.chars().any(char::is_alphanumeric);
    told.then(|| out.trim().to_owned())
}

/// Digits of numbers in a row that may stay.
const MOST_DIGITS: usize = 6;

/// Numbers in a row, which could spell a text byte by byte, or a card's number in groups.
#[derive(Default)]
struct NumberRow {
    /// Digits so far.
    digits: usize,
    /// Where the first of them begins in what is written.
    from: usize,
}

impl NumberRow {
    /// Whether a word that may stay does: a number only while its row is short. One that grows too long goes whole.
    fn takes(&mut self, word: &str, out: &mut String) -> bool {
        let digits = match word.strip_prefix("0x") {
            // A pointer has its own rule.
            Some(hex) if hex.len() > MOST_DIGITS => return true,
            Some(hex) => hex.len(),
            None if word.bytes().all(|byte| byte.is_ascii_digit()) => word.len(),
            None => {
                self.digits = 0;
                return true;
            }
        };
        if self.digits == 0 {
            self.from = out.len();
        }
        self.digits += digits;
        if self.digits > MOST_DIGITS {
            out.truncate(self.from);
        }
        self.digits <= MOST_DIGITS
    }

    /// A word that does not stay ends a row, unless it could be one of its numbers.
    fn passes(&mut self, word: &str) {
        let digits = word.strip_prefix("0x").unwrap_or(word);
        if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            self.digits = 0;
        }
    }
}

fn stays(word: &str, known: &Known) -> bool {
    if let Some(hex) = word.strip_prefix("0x") {
        return u64::from_str_radix(hex, 16).is_ok_and(|value| known.is_address(value));
    }
    if word.bytes().all(|byte| byte.is_ascii_digit()) {
        return word.len() <= MOST_DIGITS;
    }
    let lower = word.to_ascii_lowercase();
    static LISTED: OnceLock<HashSet<&str>> = OnceLock::new();
    LISTED.get_or_init(|| WORDS.split_ascii_whitespace().collect()).contains(&*lower)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_keeps_the_words_that_rules_know_and_no_others() {
        let told = |text: &str| prose(text.as_bytes(), &Known::default()).unwrap_or_default();
        assert_eq!(
            told("kernel page fault: Read of 0x18, error code 0x0"),
            "kernel page fault: Read of 0x18, error code 0x0"
        );
        assert_eq!(told("cannot open /srv/joe/thesis: page fault"), "cannot …: page fault");
        assert_eq!(told("fault at 0x6f656a20796d"), "fault at …");
        assert_eq!(told("hunter2"), "");
        assert_eq!(told("page fault 4111 1111 1111 1111 in cpu 3"), "page fault … in cpu 3");
        assert_eq!(told("page fault 54 72 6f 75 62 34 64 6f 72, error 12"), "page fault …, error 12");
        assert_eq!(told("page fault 0x54 0x72 0x30 0x75, error 0x2"), "page fault …, error 0x2");
        assert_eq!(told("fault in mm.rs:120:13 on cpu 2, 4096 bytes"), "fault in mm.rs:120:13 on cpu 2, 4096 bytes");
    }

    #[test]
    fn names_keep_their_grammar_and_paths_lose_where_they_were_built() {
        let text = |kept: Option<String>| kept.unwrap_or_default();
        assert_eq!(text(symbol(b"do_sys_open+0x12/0x80")), "do_sys_open+0x12/0x80");
        assert_eq!(
            text(symbol(b"<kernel::mm::Space as core::ops::Drop>::drop")),
            "<kernel::mm::Space as core::ops::Drop>::drop"
        );
        assert_eq!(text(symbol(b"/srv/joe/a.out")), "");
        assert_eq!(text(symbol(b"my secret words")), "");
        assert_eq!(text(source(b"/srv/joe/kernel/mm/slub.c:12:3")), "slub.c:12:3");
        assert_eq!(text(source(b"kernel/src/mm/fault.rs")), "kernel/src/mm/fault.rs");
        assert_eq!(text(source(b"../joe/fault.rs")), "fault.rs");
        assert_eq!(text(version(b"6.1.0-56-cloud-amd64 (joe@host) (gcc-12) #1 SMP")), "6.1.0-56-cloud-amd64");
    }

    #[test]
    fn fixed_texts_are_those_of_the_lists() {
        for text in
            ["openat", "SIGSEGV", "EAGAIN", "[heap]", "switches on cpu 3", "Memory.bytes", "Registers.regs.value"]
        {
            assert!(is_known(text.as_bytes()), "{text}");
        }
        for text in ["Memory.secret", "joe", "switches on cpu joe", "switches on cpu 123456"] {
            assert!(!is_known(text.as_bytes()), "{text}");
        }
    }
}

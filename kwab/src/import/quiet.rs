//! Tells the lines of console text that no reader has a use for, at the speed of one look at each byte.
//!
//! Most of a log is such lines. Every reader of console text says which texts a line must hold to mean anything to it
//! (its `needles`). Of each set of texts four bytes are chosen, those that the log itself has had least often so far,
//! and a line that has none of the chosen ones is only recorded. Lines with control characters or tabs are never quiet.
//! Builds with debug assertions ask all readers about each quiet line.

use memchr::memmem::Finder;

use super::reports::Recogniser;
use super::{boot, console, text};

/// Bytes of text that go by before four bytes are chosen.
const SAMPLE: usize = if cfg!(debug_assertions) { 4 << 10 } else { 256 << 10 };
/// Four bytes are told apart by so many bits of their hash.
const BITS: u32 = 15;
/// Length of what is looked up.
const GRAM: usize = 4;
/// A text is found by two of its grams side by side: one of them stands at an even position of the line.
const PAIR: usize = GRAM + 1;

/// Looks for the texts of all readers.
#[derive(Debug)]
pub(super) enum Quiet {
    /// Counts what the log holds.
    Sampling { bytes: usize, counts: Vec<u32> },
    /// Sorts lines by the texts that the sieve finds in them.
    Sorting(Sieve),
}

impl Default for Quiet {
    fn default() -> Self {
        Self::Sampling { bytes: 0, counts: vec![0; 1 << BITS] }
    }
}

impl Quiet {
    /// Whether a line can mean nothing to any reader, if none of them is in the middle of something.
    #[inline]
    pub(super) fn is_quiet(&mut self, line: &[u8], recogniser: &Recogniser) -> bool {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        match self {
            Self::Sampling { bytes, counts } => {
                *bytes += line.len();
                line.windows(GRAM).for_each(|gram| counts[bucket(gram)] += 1);
                if *bytes >= SAMPLE {
                    let sieve = Sieve::new(needles(recogniser), counts);
                    *self = Self::Sorting(sieve);
                }
                false
            }
            Self::Sorting(sieve) => sieve.holds_none(line) && !Recogniser::is_wrapped(line) && is_plain(line),
        }
    }
}

/// The sets of texts of all readers.
fn needles(recogniser: &Recogniser) -> impl Iterator<Item = Vec<Vec<u8>>> {
    let others = text::needles().chain(console::NEEDLES.iter().copied()).chain(boot::NEEDLES.iter().copied());
    recogniser.needles().chain(others.map(|text| vec![text.to_vec()]))
}

/// Four bytes of each set.
#[derive(Debug)]
pub(super) struct Sieve {
    /// One for the buckets of the chosen four bytes.
    chosen: Box<[u8; 1 << BITS]>,
    /// Texts of sets that have none as long as four bytes.
    short: Vec<Finder<'static>>,
    /// A set has no text at all: every line may be meant.
    open: bool,
}

impl Sieve {
    fn new(sets: impl Iterator<Item = Vec<Vec<u8>>>, counts: &[u32]) -> Self {
        let mut sieve = Self { chosen: Box::new([0; 1 << BITS]), short: Vec::new(), open: false };
        for set in sets {
            let pairs = set.iter().flat_map(|text| text.windows(PAIR));
            let pairs = pairs.map(|pair| [bucket(&pair[..GRAM]), bucket(&pair[1..])]);
            let cost = |pair: &[usize; 2]| pair.iter().map(|bucket| u64::from(counts[*bucket])).sum::<u64>();
            let longest = set.iter().max_by_key(|text| text.len()).filter(|text| !text.is_empty());
            match (pairs.min_by_key(cost), longest) {
                (Some(pair), _) => pair.iter().for_each(|bucket| sieve.chosen[*bucket] = 1),
                (None, Some(text)) => sieve.short.push(Finder::new(text).into_owned()),
                (None, None) => sieve.open = true,
            }
        }
        sieve
    }

    /// Whether a line has nothing of any set.
    #[inline]
    fn holds_none(&self, line: &[u8]) -> bool {
        // Without a branch per position: lines are short, and most are quiet.
        let (eights, _) = line.as_chunks::<8>();
        let mut found = 0;
        let mut last = 0;
        for eight in eights {
            // The grams that lie across two chunks take the end of the one before.
            let now = u64::from_le_bytes(*eight);
            let across = last >> 48 | now << 16;
            for word in [across, now, now >> 16, now >> 32] {
                found |= self.chosen[bucket_of(word as u32)];
            }
            last = now;
        }
        let rest = line.get((eights.len() * 8).saturating_sub(2)..).unwrap_or_default();
        for gram in rest.windows(GRAM).step_by(2) {
            found |= self.chosen[bucket(gram)];
        }
        found == 0 && !self.open && self.short.iter().all(|text| text.find(line).is_none())
    }
}

/// The bucket of four bytes, the same for upper and lower case.
#[inline(always)]
fn bucket(gram: &[u8]) -> usize {
    bucket_of(u32::from_le_bytes([gram[0], gram[1], gram[2], gram[3]]))
}

#[inline(always)]
fn bucket_of(gram: u32) -> usize {
    ((gram | 0x2020_2020).wrapping_mul(0x9e37_79b1) >> (32 - BITS)) as usize
}

/// Whether a line has no control characters. Without a branch per byte, so that many bytes are looked at at once.
#[inline]
fn is_plain(line: &[u8]) -> bool {
    line.iter().fold(0, |found, byte| found | u8::from(*byte < 0x20) | u8::from(*byte == 0x7f)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A filter that has seen enough of ordinary lines.
    fn sorting(recogniser: &Recogniser) -> Quiet {
        let mut quiet = Quiet::default();
        while let Quiet::Sampling { .. } = quiet {
            assert!(!quiet.is_quiet(b"pci 0000:00:01.0: [8086:7000] type 00 class 0x060100", recogniser));
        }
        quiet
    }

    #[test]
    fn ordinary_lines_are_quiet_and_those_of_any_reader_are_not() {
        let recogniser = Recogniser::new();
        let mut quiet = sorting(&recogniser);
        let mut is_quiet = |line: &str| quiet.is_quiet(line.as_bytes(), &recogniser);
        for line in ["", "ok", "[    1.312054] pci 0000:00:01.0: [8086:7000] type 00 class 0x060100\r"] {
            assert!(is_quiet(line), "{line}");
        }
        for line in [
            "[    0.000000] Linux version 6.1.0",
            "kernel PANIC",
            "BUG: unable to handle page fault for address: 0",
            "invalid opcode: 0000 [#1]",
            "init[1]: segfault at 0 ip 0 sp 0 error 4",
            "[PANIC] CPU=0 at x.rs:1",
            "smp: Brought up 1 node, 2 CPUs",
            "&lt;1&gt;x",
            "\x1b[0m",
            "a\rb",
            "a\tb",
            "{\"MESSAGE\":\"x\"}",
            "Run /init as init process",
        ] {
            assert!(!is_quiet(line), "{line}");
        }
    }

    #[test]
    fn the_rarest_four_bytes_of_a_set_are_chosen_and_short_texts_are_searched() {
        let mut counts = vec![0; 1 << BITS];
        counts[bucket(b"page")] = 9;
        counts[bucket(b"aged")] = 9;
        let set = |texts: &[&str]| texts.iter().map(|text| text.as_bytes().to_vec()).collect::<Vec<_>>();
        let sieve = Sieve::new([set(&["paged", "losts"]), set(&["[#"])].into_iter(), &counts);
        assert!(sieve.holds_none(b"a paged page") && !sieve.holds_none(b"x [#1]"));
        for at in 0..40 {
            let line = [&vec![b'x'; at][..], b" LOSTS "].concat();
            assert!(!sieve.holds_none(&line), "at {at}");
            assert!(!sieve.holds_none(line.trim_ascii_end()), "at {at}, at the end");
        }
        let open = Sieve::new([set(&[])].into_iter(), &counts);
        assert!(!open.holds_none(b"anything"), "a template without text may mean any line");
    }
}

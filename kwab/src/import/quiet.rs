//! Tells the lines of console text that no reader has a use for, at the speed of one look at each byte.
//!
//! Most of a log is such lines. Every reader of console text says which texts a line must hold to mean anything to it
//! (its `needles`). Of each set of texts four bytes are chosen, those that the log itself has had least often so far,
//! and a line that has none of the chosen ones is only recorded. So is one that has some by accident: the text that
//! they were chosen for is compared where they stand, and the rest of its set searched for. One more look tells lines
//! with control characters besides tabs, which are never quiet, and those with the bytes that need a longer one.
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
    Sampling { bytes: usize, counts: Counts },
    /// Sorts lines by the texts that the sieve finds in them.
    Sorting(Sieve),
}

impl Default for Quiet {
    fn default() -> Self {
        Self::Sampling { bytes: 0, counts: Counts::default() }
    }
}

/// How often a log has had each four bytes, by bucket, and each byte.
#[derive(Debug)]
pub(super) struct Counts {
    grams: Vec<u32>,
    bytes: Vec<u32>,
}

impl Default for Counts {
    fn default() -> Self {
        Self { grams: vec![0; 1 << BITS], bytes: vec![0; 256] }
    }
}

impl Counts {
    fn add(&mut self, line: &[u8]) {
        line.windows(GRAM).for_each(|gram| self.grams[bucket(gram)] += 1);
        line.iter().for_each(|byte| self.bytes[usize::from(*byte)] += 1);
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
                counts.add(line);
                if *bytes >= SAMPLE {
                    let sieve = Sieve::new(needles(recogniser), counts);
                    *self = Self::Sorting(sieve);
                }
                false
            }
            Self::Sorting(sieve) => {
                let signs = signs(line, &sieve.marks);
                signs & LOUD == 0 && sieve.holds_none(line, signs) && !is_wrapped(line, signs)
            }
        }
    }
}

/// The sets of texts of all readers.
fn needles(recogniser: &Recogniser) -> impl Iterator<Item = Vec<Vec<u8>>> {
    let others = text::needles().chain(console::NEEDLES.iter().copied()).chain(boot::NEEDLES.iter().copied());
    recogniser.needles().chain(others.map(|text| vec![text.to_vec()]))
}

/// A set of texts by the four bytes that were chosen for it.
#[derive(Debug)]
struct Choice {
    /// The text that has the four bytes.
    text: Vec<u8>,
    /// Where in the text.
    offset: usize,
    /// The other texts of the set.
    others: Vec<Finder<'static>>,
}

/// Four bytes of each set.
#[derive(Debug)]
pub(super) struct Sieve {
    /// One for the buckets of the chosen four bytes.
    chosen: Box<[u8; 1 << BITS]>,
    /// Where [`Self::sets`] has those that a bucket was chosen for; 0 for none.
    which: Box<[u16; 1 << BITS]>,
    /// The sets that a bucket was chosen for.
    sets: Vec<Vec<Choice>>,
    /// The line that is searched for whole sets, in lower case.
    lower: Vec<u8>,
    /// Sets of which no text is as long as two grams side by side.
    short: Vec<Vec<Finder<'static>>>,
    /// The rarest byte of each of these sets.
    marks: [u8; MARKS],
    /// A set has no text at all: every line may be meant.
    open: bool,
}

impl Sieve {
    fn new(sets: impl Iterator<Item = Vec<Vec<u8>>>, counts: &Counts) -> Self {
        let mut sieve = Self {
            chosen: Box::new([0; 1 << BITS]),
            which: Box::new([0; 1 << BITS]),
            sets: vec![Vec::new()],
            lower: Vec::new(),
            short: Vec::new(),
            marks: [0; MARKS],
            open: false,
        };
        let mut marks = Vec::new();
        for set in sets {
            let places = |(number, text): (usize, &Vec<u8>)| {
                (0..(text.len() + 1).saturating_sub(PAIR)).map(move |at| (number, at))
            };
            let pairs = set.iter().enumerate().flat_map(places);
            let grams = |(number, at): (usize, usize)| [at, at + 1].map(|at| bucket(&set[number][at..at + GRAM]));
            let cost =
                |pair: &(usize, usize)| grams(*pair).map(|bucket| u64::from(counts.grams[bucket])).iter().sum::<u64>();
            let rarest = set.iter().flatten().copied().min_by_key(|byte| counts.bytes[usize::from(*byte)]);
            match (pairs.min_by_key(cost), rarest) {
                (Some((number, at)), _) => {
                    for (offset, bucket) in [at, at + 1].into_iter().zip(grams((number, at))) {
                        sieve.choose(bucket, Choice::new(&set, number, offset));
                    }
                }
                (None, Some(rarest)) => {
                    sieve.short.push(set.iter().map(|text| Finder::new(text).into_owned()).collect());
                    marks.push(rarest);
                }
                (None, None) => sieve.open = true,
            }
        }
        marks.sort_unstable();
        marks.dedup();
        // Each byte has its mark when there are more than can be looked for.
        sieve.open |= marks.len() > MARKS;
        marks.into_iter().zip(&mut sieve.marks).for_each(|(mark, place)| *place = mark);
        sieve
    }

    fn choose(&mut self, bucket: usize, choice: Choice) {
        self.chosen[bucket] = 1;
        if self.which[bucket] == 0 {
            // Fewer texts than buckets are chosen.
            self.which[bucket] = u16::try_from(self.sets.len()).unwrap_or_default();
            self.sets.push(Vec::new());
        }
        self.sets[usize::from(self.which[bucket])].push(choice);
    }

    /// Whether a line with these signs has nothing of any set.
    #[inline]
    fn holds_none(&mut self, line: &[u8], signs: u8) -> bool {
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
        !self.open
            && (found == 0 || self.completes_none(line))
            && (signs & MARKED == 0 || !self.short.iter().any(|set| set.iter().all(|text| text.find(line).is_some())))
    }

    /// Whether a line that has chosen four bytes has the whole of none of their sets, in upper or lower case.
    fn completes_none(&mut self, line: &[u8]) -> bool {
        let Self { chosen, which, sets, lower, .. } = self;
        lower.clear();
        for (at, gram) in line.windows(GRAM).enumerate().step_by(2) {
            let bucket = bucket(gram);
            if chosen[bucket] == 0 {
                continue;
            }
            for choice in sets[usize::from(which[bucket])].iter().filter(|choice| choice.stands(line, at)) {
                if lower.is_empty() && !choice.others.is_empty() {
                    lower.extend(line.iter().map(u8::to_ascii_lowercase));
                }
                if choice.others.iter().all(|text| text.find(lower).is_some()) {
                    return false;
                }
            }
        }
        true
    }
}

impl Choice {
    fn new(set: &[Vec<u8>], number: usize, offset: usize) -> Self {
        let others = set.iter().enumerate().filter(|(other, _)| *other != number);
        let others = others.map(|(_, text)| Finder::new(&text.to_ascii_lowercase()).into_owned()).collect();
        Self { text: set[number].clone(), offset, others }
    }

    /// Whether its text stands in a line that has its four bytes at `at`, in upper or lower case.
    fn stands(&self, line: &[u8], at: usize) -> bool {
        let text = at.checked_sub(self.offset).and_then(|begin| line.get(begin..begin + self.text.len()));
        text.is_some_and(|text| text.eq_ignore_ascii_case(&self.text))
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

/// Bytes that are looked at at once.
const LANES: usize = 16;
/// The most bytes by which short sets are found.
const MARKS: usize = 8;
/// The line has a control character besides tabs, or may have an entity of HTML.
const LOUD: u8 = 1;
/// It has a byte of [`Sieve::marks`].
const MARKED: u8 = 2;
/// It may be quoted-printable.
const EQUALS: u8 = 4;

/// What single bytes of a line say. Without a branch per byte, so that many bytes are looked at at once.
#[inline]
fn signs(line: &[u8], marks: &[u8; MARKS]) -> u8 {
    let mut seen = [0; LANES];
    let (chunks, rest) = line.as_chunks();
    chunks.iter().for_each(|chunk| look(chunk, marks, &mut seen));
    match line.last_chunk() {
        Some(last) => look(last, marks, &mut seen),
        None => {
            let mut last = [b' '; LANES];
            last[..rest.len()].copy_from_slice(rest);
            look(&last, marks, &mut seen);
        }
    }
    seen.iter().fold(0, |all, one| all | one)
}

#[inline(always)]
fn look(chunk: &[u8; LANES], marks: &[u8; MARKS], seen: &mut [u8; LANES]) {
    for (byte, seen) in chunk.iter().zip(seen) {
        let control = u8::from(*byte < b' ') & u8::from(*byte != b'\t') | u8::from(*byte == 0x7f);
        let marked = marks.iter().fold(0, |found, mark| found | u8::from(byte == mark));
        let loud = control | u8::from(*byte == b'&');
        *seen |= (loud * LOUD) | (marked * MARKED) | (u8::from(*byte == b'=') * EQUALS);
    }
}

/// Whether a line with these signs, none of them [`LOUD`], may have to be unpacked.
#[inline]
fn is_wrapped(line: &[u8], signs: u8) -> bool {
    let may_be = signs & EQUALS != 0 || line.first() == Some(&b'{');
    debug_assert!(may_be || !Recogniser::is_wrapped(line), "{:?}", String::from_utf8_lossy(line));
    may_be && Recogniser::is_wrapped(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(sieve: &mut Sieve, line: &[u8]) -> bool {
        sieve.holds_none(line, signs(line, &sieve.marks))
    }

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
        for line in ["", "ok", "a\tb", "[    1.312054] pci 0000:00:01.0: [8086:7000] type 00 class 0x060100\r"] {
            assert!(is_quiet(line), "{line}");
        }
        for line in [
            "[    0.000000] Linux version 6.1.0",
            "kernel PANIC",
            "BUG: unable to handle page fault for address: 0",
            "invalid opcode: 0000 [#1]",
            "init[1]: segfault at 0 ip 0 sp 0 error 4",
            "[PANIC] CPU=0 at x.rs:1",
            "Out of memory: killed process 3 (tail), 84688 KiB resident",
            "smp: Brought up 1 node, 2 CPUs",
            "&lt;1&gt;x",
            "\x1b[0m",
            "a\rb",
            "{\"MESSAGE\":\"x\"}",
            "Run /init as init process",
        ] {
            assert!(!is_quiet(line), "{line}");
        }
    }

    #[test]
    fn the_rarest_four_bytes_of_a_set_are_chosen_and_short_texts_are_searched() {
        let mut counts = Counts::default();
        counts.grams[bucket(b"page")] = 9;
        counts.grams[bucket(b"aged")] = 9;
        let set = |texts: &[&str]| texts.iter().map(|text| text.as_bytes().to_vec()).collect::<Vec<_>>();
        let sets = [set(&["paged", "losts"]), set(&["[#"]), set(&["@", " at "])];
        let mut sieve = Sieve::new(sets.into_iter(), &counts);
        assert!(holds(&mut sieve, b"a paged page") && !holds(&mut sieve, b"x [#1]"));
        assert!(holds(&mut sieve, b"x at y") && holds(&mut sieve, b"@ y") && !holds(&mut sieve, b"@ at y"));
        for at in 0..40 {
            let half = [&vec![b'x'; at][..], b" LOSTS "].concat();
            assert!(holds(&mut sieve, &half), "one text of two, at {at}");
            let line = [b"Paged", &half[..]].concat();
            assert!(!holds(&mut sieve, &line), "at {at}");
            assert!(!holds(&mut sieve, line.trim_ascii_end()), "at {at}, at the end");
        }
        let mut open = Sieve::new([set(&[])].into_iter(), &counts);
        assert!(!holds(&mut open, b"anything"), "a template without text may mean any line");
    }
}

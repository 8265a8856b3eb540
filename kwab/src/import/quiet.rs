//! Tells the lines of console text that no reader has a use for, at the speed of one look at each byte.
//!
//! Most of a log is such lines. Every reader of console text says which texts a line must hold to mean anything to it
//! (its `needles`). Of each set of texts four bytes are chosen, those that the log itself has had least often so far.
//! What has been read of the log is looked at in blocks, whatever lines they hold: where none of the chosen bytes
//! stands, no control character besides tabs and line ends, and nothing that may have to be unpacked, all lines are
//! quiet. A line with a part in another block is looked at by itself: the text that its four bytes were chosen for is
//! compared where they stand, and the rest of its set searched for. A line that only tells a fact of the boot needs no
//! other reader. Builds with debug assertions ask all readers about each quiet line.

use memchr::memmem::Finder;

use super::reports::Recogniser;
use super::reports::needle::Wanted;
use super::{boot, console, text};

/// Bytes of text that must be known before four bytes are chosen.
const ENOUGH: usize = if cfg!(debug_assertions) { 4 << 10 } else { 32 << 10 };
/// The most bytes that are counted at once.
const SAMPLE: usize = 256 << 10;
/// The most bytes that are looked at before the lines in them are.
const AHEAD: usize = 16 << 10;
/// Bytes that are told free of everything at once.
const BLOCK: usize = 64;
/// Bytes behind a block that are looked at with it: what begins in it may end there.
const BEHIND: usize = GRAM - 1;
/// How much further a log must have gone until it is counted again: its beginning may not be like the rest.
const STRIDE: u64 = 4;
/// Four bytes are told apart by so many bits of their hash.
const BITS: u32 = 15;
/// Length of what is looked up.
const GRAM: usize = 4;
/// A text is found by two of its grams side by side: one of them stands at an even position of the line.
const PAIR: usize = GRAM + 1;

/// What a line may mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Meaning {
    /// Nothing to any reader.
    Nothing,
    /// A fact about the boot ([`boot`]) at most.
    Fact,
    /// Whatever a reader knows.
    Any,
}

/// Looks for the texts of all readers.
#[derive(Debug, Default)]
pub(super) struct Quiet {
    counts: Counts,
    /// Bytes that were counted.
    sampled: usize,
    /// Offset in the log from which on it is counted again.
    next_sample: u64,
    /// Sorts lines by the texts that it finds in them; absent until enough is counted.
    sieve: Option<Sieve>,
    /// Offset in the log before which nothing that was read behind the last line looked at can mean anything.
    free_until: u64,
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
    /// Counts what stands at `offset` of the log and behind it, if it is time to.
    pub(super) fn sample(&mut self, ahead: &[u8], offset: u64) {
        if offset < self.next_sample || ahead.is_empty() {
            return;
        }
        self.next_sample = offset.saturating_mul(STRIDE).max(1);
        let ahead = &ahead[..ahead.len().min(SAMPLE)];
        self.counts.add(ahead);
        self.sampled += ahead.len();
        self.sieve = None;
    }

    /// What the line at `offset` may mean, if no reader is in the middle of something. `ahead` is what has been read
    /// from its first byte on, or nothing.
    #[inline]
    pub(super) fn meaning(&mut self, line: &[u8], ahead: &[u8], offset: u64, recogniser: &Recogniser) -> Meaning {
        let Some(sieve) = self.sieve.as_mut().filter(|sieve| sieve.linux == recogniser.is_linux()) else {
            return self.meaning_at_first(line, recogniser);
        };
        if ahead.is_empty() {
            return sieve.meaning(line);
        }
        let end = offset + line.len() as u64;
        if end > self.free_until {
            self.free_until = offset + sieve.free(&ahead[..ahead.len().min(AHEAD)]) as u64;
            if end > self.free_until {
                return sieve.meaning(line);
            }
        }
        debug_assert!(sieve.meaning(line) == Meaning::Nothing, "by itself: {:?}", String::from_utf8_lossy(line));
        Meaning::Nothing
    }

    /// The same without a sieve for such a log: makes it if enough is known to choose.
    #[cold]
    fn meaning_at_first(&mut self, line: &[u8], recogniser: &Recogniser) -> Meaning {
        if self.sampled < ENOUGH {
            self.counts.add(line);
            self.sampled += line.len();
            return Meaning::Any;
        }
        self.sieve.insert(Sieve::new(needles(recogniser), &self.counts, recogniser.is_linux())).meaning(line)
    }
}

/// What a line must hold to mean something to a reader, and what it may mean then.
fn needles(recogniser: &Recogniser) -> impl Iterator<Item = (Wanted, Meaning)> {
    let reported = recogniser.needles().chain(text::needles());
    let any = reported.chain(console::NEEDLES.iter().map(|text| Wanted::one(text)));
    let facts = boot::NEEDLES.iter().map(|text| Wanted::one(text));
    any.map(|wanted| (wanted, Meaning::Any)).chain(facts.map(|wanted| (wanted, Meaning::Fact)))
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
    /// Whether they count in upper and lower case; the finders then have the lower one.
    any_case: bool,
    /// What a line with the whole set may mean.
    meaning: Meaning,
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
    /// Sets of which no text is as long as two grams side by side, and whether each counts in any case.
    short: Vec<(Vec<Finder<'static>>, bool)>,
    /// A byte that every line has which holds such a set: the rarest.
    marks: [u8; MARKS],
    /// A set has no text at all: every line may be meant.
    open: bool,
    /// Whether it is for logs of Linux.
    linux: bool,
}

impl Sieve {
    fn new(sets: impl Iterator<Item = (Wanted, Meaning)>, counts: &Counts, linux: bool) -> Self {
        let mut sieve = Self {
            chosen: Box::new([0; 1 << BITS]),
            which: Box::new([0; 1 << BITS]),
            sets: vec![Vec::new()],
            lower: Vec::new(),
            short: Vec::new(),
            marks: [0; MARKS],
            open: false,
            linux,
        };
        let mut marks = Vec::new();
        for (Wanted { texts: set, any_case }, meaning) in sets {
            let places = |(number, text): (usize, &Vec<u8>)| {
                (0..(text.len() + 1).saturating_sub(PAIR)).map(move |at| (number, at))
            };
            let pairs = set.iter().enumerate().flat_map(places);
            let grams = |(number, at): (usize, usize)| [at, at + 1].map(|at| bucket(&set[number][at..at + GRAM]));
            let cost =
                |pair: &(usize, usize)| grams(*pair).map(|bucket| u64::from(counts.grams[bucket])).iter().sum::<u64>();
            // A letter is one byte in either case only where the spelling counts.
            let sign = |byte: &u8| !any_case || !byte.is_ascii_alphabetic();
            let rarest = set.iter().flatten().copied().filter(sign).min_by_key(|byte| counts.bytes[usize::from(*byte)]);
            match (pairs.min_by_key(cost), rarest) {
                (Some((number, at)), _) => {
                    for (offset, bucket) in [at, at + 1].into_iter().zip(grams((number, at))) {
                        sieve.choose(bucket, Choice::new(&set, (any_case, meaning), number, offset));
                    }
                }
                (None, Some(rarest)) => {
                    sieve.short.push((set.iter().map(|text| finder(text, any_case)).collect(), any_case));
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

    /// What a line may mean.
    #[inline]
    fn meaning(&mut self, line: &[u8]) -> Meaning {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let signs = signs(line, &self.marks);
        if signs & LOUD != 0 || is_wrapped(line, signs) {
            return Meaning::Any;
        }
        self.held(line, signs)
    }

    /// How many bytes at the front of a text have nothing that a line of any meaning has: every line that ends there is
    /// quiet.
    fn free(&self, ahead: &[u8]) -> usize {
        let mut free = 0;
        while let Some(block) = ahead.get(free..).and_then(<[u8]>::first_chunk)
            && !self.open
            && self.is_free(block)
        {
            free += BLOCK;
        }
        free
    }

    /// Whether nothing of the kind begins in a block. Without a branch per byte.
    #[inline(always)]
    fn is_free(&self, block: &[u8; BLOCK + BEHIND]) -> bool {
        let mut found = 0;
        for at in (0..BLOCK).step_by(8) {
            let [a, b, c, d, e, f, g, h, i, j] = *block[at..].first_chunk().unwrap_or(&[0; 10]);
            let now = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
            let across = now >> 48 | u64::from(i) << 16 | u64::from(j) << 24;
            for word in [now, now >> 16, now >> 32, across] {
                found |= self.chosen[bucket_of(word as u32)];
            }
        }
        let mut seen = [0; LANES];
        for at in (0..BLOCK).step_by(LANES) {
            let lanes = block[at..].iter().zip(&block[at + 1..]).zip(&block[at + 2..]);
            for (((byte, next), third), seen) in lanes.zip(&mut seen) {
                let is = |one: &u8, other: u8| u8::from(*one == other);
                let blank = is(byte, b'\t') | is(byte, b'\n') | is(byte, b'\r') & is(next, b'\n');
                let control = u8::from(*byte < b' ') & (blank ^ 1) | is(byte, 0x7f);
                let marked = self.marks.iter().fold(0, |found, mark| found | is(byte, *mark));
                let printable = is(next, b'3') & is(third, b'D') | is(next, b'A') & is(third, b'0');
                let broken = is(next, b'2') & is(third, b'0') | is(next, b'0') & is(third, b'A');
                *seen |= control | marked | is(byte, b'&') | is(byte, b'{') | is(byte, b'=') & (printable | broken);
            }
        }
        found | seen.iter().fold(0, |all, one| all | one) == 0
    }

    /// What a line with these signs may mean by the sets that it holds.
    #[inline]
    fn held(&mut self, line: &[u8], signs: u8) -> Meaning {
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
        if self.open || signs & MARKED != 0 && self.holds_short(line) {
            return Meaning::Any;
        }
        if found == 0 { Meaning::Nothing } else { self.completed(line) }
    }

    /// Whether a line has the whole of a short set.
    fn holds_short(&mut self, line: &[u8]) -> bool {
        let Self { short, lower, .. } = self;
        lower.clear();
        lower.extend(line.iter().map(u8::to_ascii_lowercase));
        let held = |(set, any_case): &(Vec<Finder<'static>>, bool)| {
            let line = if *any_case { &lower[..] } else { line };
            set.iter().all(|text| text.find(line).is_some())
        };
        short.iter().any(held)
    }

    /// What a line that has chosen four bytes may mean by those of their sets that it has the whole of.
    fn completed(&mut self, line: &[u8]) -> Meaning {
        let Self { chosen, which, sets, lower, .. } = self;
        let mut meaning = Meaning::Nothing;
        lower.clear();
        for (at, gram) in line.windows(GRAM).enumerate().step_by(2) {
            let bucket = bucket(gram);
            if chosen[bucket] == 0 {
                continue;
            }
            for choice in sets[usize::from(which[bucket])].iter().filter(|choice| choice.stands(line, at)) {
                if lower.is_empty() && choice.any_case && !choice.others.is_empty() {
                    lower.extend(line.iter().map(u8::to_ascii_lowercase));
                }
                let line = if choice.any_case { &lower[..] } else { line };
                if choice.others.iter().all(|text| text.find(line).is_some()) {
                    meaning = meaning.max(choice.meaning);
                }
            }
            if meaning == Meaning::Any {
                break;
            }
        }
        meaning
    }
}

impl Choice {
    fn new(set: &[Vec<u8>], (any_case, meaning): (bool, Meaning), number: usize, offset: usize) -> Self {
        let others = set.iter().enumerate().filter(|(other, _)| *other != number);
        let others = others.map(|(_, text)| finder(text, any_case)).collect();
        Self { text: set[number].clone(), offset, others, any_case, meaning }
    }

    /// Whether its text stands in a line that has its four bytes at `at`.
    fn stands(&self, line: &[u8], at: usize) -> bool {
        let text = at.checked_sub(self.offset).and_then(|begin| line.get(begin..begin + self.text.len()));
        let fits = |text: &[u8]| text == self.text || self.any_case && text.eq_ignore_ascii_case(&self.text);
        text.is_some_and(fits)
    }
}

/// Finds a text in a line; in one of lower case if any case counts.
fn finder(text: &[u8], any_case: bool) -> Finder<'static> {
    if any_case { Finder::new(&text.to_ascii_lowercase()).into_owned() } else { Finder::new(text).into_owned() }
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
        sieve.held(line, signs(line, &sieve.marks)) == Meaning::Nothing
    }

    /// A filter that has seen enough of ordinary lines.
    fn sorting(recogniser: &Recogniser) -> Quiet {
        let mut quiet = Quiet::default();
        while quiet.sampled < ENOUGH {
            let line = b"pci 0000:00:01.0: [8086:7000] type 00 class 0x060100";
            assert_eq!(quiet.meaning(line, b"", 0, recogniser), Meaning::Any);
        }
        quiet
    }

    #[test]
    fn ordinary_lines_are_quiet_and_those_of_any_reader_are_not() {
        let recogniser = Recogniser::new();
        let mut quiet = sorting(&recogniser);
        let mut is_quiet = |line: &str| quiet.meaning(line.as_bytes(), b"", 0, &recogniser) == Meaning::Nothing;
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
            "#DF at 0xffffffff80201000",
        ] {
            assert!(!is_quiet(line), "{line}");
        }
        let facts =
            ["smp: Brought up 1 node, 2 CPUs", "tsc: Detected 2445.406 MHz processor", "Run /init as init process"];
        for line in facts {
            assert_eq!(quiet.meaning(line.as_bytes(), b"", 0, &recogniser), Meaning::Fact, "{line}");
        }
        let mut is_quiet = |line: &str| quiet.meaning(line.as_bytes(), b"", 0, &recogniser) == Meaning::Nothing;
        for line in ["printk: debug: ignoring loglevel setting.", "zram: Added device: zram0"] {
            assert!(is_quiet(line), "spelled otherwise: {line}");
        }
    }

    #[test]
    fn a_log_whose_front_is_known_is_sorted_from_its_first_line_on_and_counted_again_later() {
        let recogniser = Recogniser::new();
        let mut quiet = Quiet::default();
        let text = b"pci 0000:00:01.0: [8086:7000] type 00 class 0x060100\n".repeat(1000);
        quiet.sample(&text, 0);
        let sorts = |quiet: &mut Quiet| {
            let mut meaning = |line: &[u8]| quiet.meaning(line, b"", 0, &recogniser);
            (meaning(b"an ordinary line"), meaning(b"kernel panic")) == (Meaning::Nothing, Meaning::Any)
        };
        assert!(sorts(&mut quiet));
        let counted = quiet.sampled;
        quiet.sample(&text, 0);
        assert_eq!(quiet.sampled, counted, "nothing is counted twice");
        quiet.sample(&text, 1000);
        assert!(quiet.sampled > counted && quiet.sieve.is_none());
        assert!(sorts(&mut quiet));
        quiet.sample(&text, 2000);
        assert!(quiet.sieve.is_some(), "not again before the log is four times as long");
    }

    #[test]
    fn a_frame_may_be_the_rest_of_a_report_only_until_the_log_is_one_of_linux() {
        let mut recogniser = Recogniser::new();
        let mut quiet = sorting(&recogniser);
        let frame = b"initcall demo_init+0x0/0x40 returned 0 after 0 usecs";
        assert_eq!(quiet.meaning(frame, b"", 0, &recogniser), Meaning::Any);
        recogniser.line(b"[    0.000000] Linux version 6.1.0", super::super::reports::LogPosition::default());
        assert_eq!(quiet.meaning(frame, b"", 0, &recogniser), Meaning::Nothing);
    }

    #[test]
    fn lines_that_are_looked_at_together_are_sorted_as_each_by_itself() {
        let recogniser = Recogniser::new();
        let mut quiet = sorting(&recogniser);
        let quiet_line = "pci 0000:00:01.0: reg 0x10: [io  0xc000-0xc03f], size=17, a\tb";
        let said =
            ["kernel panic", "\u{1b}[0m", "a\rb", "&lt;", "{\"MESSAGE\":\"x\"}", "x=3Dy", "y=20", "#DF at 0", "\u{7f}"];
        for (number, said) in said.iter().enumerate() {
            for before in 0..70 {
                let fill = "x".repeat(before);
                let log =
                    format!("{quiet_line}\r\n{fill}\n{fill}{said}\n{quiet_line}\n").repeat(2) + &quiet_line.repeat(4);
                let mut at = 0;
                quiet.free_until = 0;
                for line in log.split_inclusive('\n') {
                    let bytes = line.strip_suffix('\n').unwrap_or(line).as_bytes();
                    let together = quiet.meaning(bytes, &log.as_bytes()[at..], at as u64, &recogniser);
                    let alone = quiet.meaning(bytes, b"", at as u64, &recogniser);
                    assert_eq!(together, alone, "{number}, {before}: {line:?}");
                    at += line.len();
                }
                assert!(quiet.free_until > 0);
            }
        }
        let text = b"pci 0000:00:01.0: [8086:7000] type 00 class 0x060100\n".repeat(1000);
        let mut quiet = Quiet::default();
        quiet.sample(&text, 0);
        assert_eq!(quiet.meaning(b"ordinary", b"", 0, &recogniser), Meaning::Nothing);
        let free = quiet.sieve.as_ref().expect("enough was counted").free(&text);
        assert!(free + BLOCK + BEHIND > text.len(), "what was counted is free to its end: {free}");
    }

    #[test]
    fn the_rarest_four_bytes_of_a_set_are_chosen_and_short_texts_are_searched() {
        let mut counts = Counts::default();
        counts.grams[bucket(b"page")] = 9;
        counts.grams[bucket(b"aged")] = 9;
        let set = |texts: &[&str]| {
            let texts = texts.iter().map(|text| text.as_bytes().to_vec()).collect();
            (Wanted { texts, any_case: true }, Meaning::Any)
        };
        let sets = [set(&["paged", "losts"]), set(&["[#"]), set(&["@", " at "])];
        let mut sieve = Sieve::new(sets.into_iter(), &counts, false);
        assert!(holds(&mut sieve, b"a paged page") && !holds(&mut sieve, b"x [#1]"));
        assert!(holds(&mut sieve, b"x at y") && holds(&mut sieve, b"@ y") && !holds(&mut sieve, b"@ at y"));
        for at in 0..40 {
            let half = [&vec![b'x'; at][..], b" LOSTS "].concat();
            assert!(holds(&mut sieve, &half), "one text of two, at {at}");
            let line = [b"Paged", &half[..]].concat();
            assert!(!holds(&mut sieve, &line), "at {at}");
            assert!(!holds(&mut sieve, line.trim_ascii_end()), "at {at}, at the end");
        }
        let mut open = Sieve::new([set(&[])].into_iter(), &counts, false);
        assert!(!holds(&mut open, b"anything"), "a template without text may mean any line");
    }
}

//! A noisy line costs nothing up to what the parity lines can mend, and never gives another dump.

use kwab_format::DumpId;
use kwab_format::armour::{Found, LINE_BYTES, LINE_LEN, Lines, decode_line, encode_line};
use kwab_format::parity::{GROUP_BYTES, Parity, ParitySink, Row};
use kwab_format::sink::Sink as _;
use proptest::collection::vec;
use proptest::prelude::*;

use super::super::assemble::Assembly;
use super::rows_in;

/// A xorshift generator: the same noise in every run.
struct Random(u64);

impl Random {
    fn seeded(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// One time in `1_000_000 / millionths`.
    fn hits(&mut self, millionths: u64) -> bool {
        self.next() % 1_000_000 < millionths
    }
}

fn sample(length: usize) -> Vec<u8> {
    let file = std::fs::read("../testing/dumps/null-dereference.kwab").expect("checked in");
    file.into_iter().cycle().take(length).collect()
}

fn console(dump: &[u8], step: usize) -> Vec<u8> {
    let (mut text, mut parity) = (Vec::new(), Parity::new());
    let mut sink = ParitySink::new(DumpId(0x5eed), &mut parity, |line: &[u8]| {
        text.extend_from_slice(line);
        true
    });
    dump.chunks(step).for_each(|piece| sink.write(piece).expect("it does not fail"));
    sink.flush().expect("it does not fail");
    text
}

/// What the stages before do with the text; gives the bytes that came and were mended, by position.
fn received(text: &[u8]) -> Option<(Assembly, u64)> {
    let mut assembly: Option<Assembly> = None;
    let mut early = Vec::new();
    for line in text.split(|byte| *byte == b'\n') {
        let mut sound = false;
        for found in Lines::new(line) {
            if let Found::Line { chunk, .. } = found {
                sound = true;
                match &mut assembly {
                    Some(assembly) => assembly.add(&chunk),
                    none => *none = Some(Assembly::new(&chunk).expect("a temporary file")),
                }
            }
        }
        let Some(assembly) = &mut assembly else {
            early.push(line);
            continue;
        };
        for line in early.drain(..) {
            assembly.add_damaged(line);
        }
        let (rows, only) = rows_in(line);
        rows.iter().for_each(|row| assembly.add_row(row));
        if !sound && !only {
            assembly.add_damaged(line);
        }
    }
    let mut assembly = assembly?;
    let mended = assembly.mend().expect("a temporary file").bytes;
    Some((assembly, mended))
}

fn bytes_wrong(text: &[u8], millionths: u64, random: &mut Random, wrong: impl Fn(u8, u64) -> u8) -> Vec<u8> {
    let noisy = |byte: &u8| if random.hits(millionths) { wrong(*byte, random.next()) } else { *byte };
    text.iter().map(noisy).collect()
}

fn lines_lost(text: &[u8], millionths: u64, random: &mut Random) -> Vec<u8> {
    text.split_inclusive(|byte| *byte == b'\n').filter(|_| !random.hits(millionths)).collect::<Vec<_>>().concat()
}

fn any_byte(_: u8, random: u64) -> u8 {
    (random >> 20) as u8
}

fn another_digit(_: u8, random: u64) -> u8 {
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"[(random >> 20) as usize % 64]
}

fn a_bit(byte: u8, random: u64) -> u8 {
    byte ^ 1 << (random >> 20 & 7)
}

#[test]
fn with_one_percent_of_bytes_or_lines_wrong_nothing_is_lost() {
    let dump = sample(57_000);
    let text = console(&dump, 1021);
    for seed in 1..=4 {
        let random = &mut Random::seeded(seed);
        for (name, noisy) in [
            ("bytes", bytes_wrong(&text, 10_000, random, any_byte)),
            ("digits", bytes_wrong(&text, 10_000, random, another_digit)),
            ("bits", bytes_wrong(&text, 10_000, random, a_bit)),
            ("lines", lines_lost(&text, 10_000, random)),
            ("lines and bytes", lines_lost(&bytes_wrong(&text, 10_000, random, a_bit), 10_000, random)),
            ("a tenth of the lines", lines_lost(&text, 100_000, random)),
        ] {
            let (assembly, mended) = received(&noisy).expect("lines came");
            assert!(mended > 0 || name == "lines", "{name}");
            assert_eq!(assembly.coverage(), (dump.len() as u64, 0), "{name} {seed}");
            assert!(assembly.read().expect("readable") == dump, "{name} {seed}: other bytes");
        }
    }
}

#[test]
fn noise_beyond_what_can_be_mended_gives_no_wrong_byte() {
    let dump = sample(30_000);
    let text = console(&dump, 4096);
    for millionths in [20_000, 30_000, 50_000, 100_000, 300_000] {
        for seed in 1..=2 {
            let random = &mut Random::seeded(seed);
            let noisy = lines_lost(&bytes_wrong(&text, millionths, random, another_digit), millionths, random);
            let Some((assembly, _)) = received(&noisy) else { continue };
            let holes = assembly.coverage().1 > 0 || assembly.coverage().0 < dump.len() as u64;
            let read = assembly.read().expect("readable");
            let right = read.iter().zip(&dump).all(|(read, sent)| read == sent || holes && *read == 0);
            assert!(right, "{millionths} {seed}");
        }
    }
}

#[test]
fn parity_lines_of_far_groups_are_not_put_together() {
    let chunk = |position| {
        let mut out = [0; LINE_LEN + 1];
        decode_line(encode_line(DumpId(7), position, &[1; 48], &mut out)).expect("a sound line").0
    };
    let mut assembly = Assembly::new(&chunk(0)).expect("a temporary file");
    for number in 1..100_000 {
        let end = number * GROUP_BYTES as u32;
        assembly.add_row(&Row { dump: 7, end, row: 3, bytes: [1; LINE_BYTES] });
    }
    // None of these groups is ever put together: 23 KB each, 2.3 GB.
    assert_eq!(assembly.mend().expect("a temporary file").bytes, 0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_about_and_inside_a_dump_is_survived(
        edits in vec((any::<u16>(), 0usize..40, vec(any::<u8>(), 0..40)), 0..40),
        length in 1usize..12_000,
    ) {
        let dump = sample(length);
        let mut text = console(&dump, 500);
        for (at, cut, put) in edits {
            let at = usize::from(at) % text.len();
            let end = (at + cut).min(text.len());
            text.splice(at..end, put);
        }
        if let Some((assembly, _)) = received(&text) {
            let read = assembly.read().expect("readable");
            prop_assert!(read.iter().zip(&dump).all(|(read, sent)| read == sent || *read == 0));
        }
    }
}

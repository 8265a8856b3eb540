//! Parity lines mend what a noisy line has done to a dump, and never make another dump of it.

mod support;

use std::collections::BTreeMap;

use kwab_format::armour::{Found, LINE_BYTES, Lines};
use kwab_format::parity::{GROUP_BYTES, Parity, ParitySink, ROWS, Row, decode_line, group_start};
use kwab_format::reed_solomon::{CHECKS, Checks, MOST_DATA, mend};
use kwab_format::*;
use proptest::prelude::*;

/// The lines of `dump`, written in steps of `step` bytes.
fn lines(dump: &[u8], step: usize) -> Vec<String> {
    let (mut lines, mut parity) = (Vec::new(), Parity::new());
    let mut sink = ParitySink::new(DumpId(7), &mut parity, |line: &[u8]| {
        lines.push(String::from_utf8(line.trim_ascii_end().to_vec()).expect("printable"));
        true
    });
    dump.chunks(step).for_each(|piece| sink.write(piece).unwrap());
    sink.flush().unwrap();
    lines
}

/// A host that takes whole lines only: what they do not bring is missing.
fn assemble<'a>(lines: impl IntoIterator<Item = &'a String>, len: usize) -> Option<Vec<u8>> {
    let mut dump: Vec<Option<u8>> = vec![None; len];
    let mut rows: BTreeMap<(u32, u8), Row> = BTreeMap::new();
    for line in lines {
        if let Some((row, _)) = decode_line(line.as_bytes()) {
            rows.insert((row.end, row.row), row);
        }
        for found in Lines::new(line.as_bytes()) {
            let Found::Line { chunk, .. } = found else { continue };
            for (at, byte) in (chunk.position as usize..).zip(chunk.bytes()) {
                dump[at] = Some(*byte);
            }
        }
    }
    let ends: Vec<u32> = rows.keys().map(|(end, _)| *end).collect();
    for end in ends {
        for column in 0..LINE_BYTES {
            let places: Vec<usize> =
                (group_start(end) as usize..end as usize).skip(column).step_by(LINE_BYTES).collect();
            let data = places.iter().map(|at| dump[*at]);
            let checks = (0..ROWS as u8).map(|row| rows.get(&(end, row)).map(|row| row.bytes[column]));
            let word: Vec<Option<u8>> = data.chain(checks).collect();
            let missing: Vec<u8> = (0u8..).zip(&word).filter(|(_, byte)| byte.is_none()).map(|(at, _)| at).collect();
            let mut word: Vec<u8> = word.iter().map(|byte| byte.unwrap_or(0)).collect();
            if !places.is_empty() && mend(&mut word, &missing).is_some() {
                places.iter().zip(word).for_each(|(at, byte)| dump[*at] = Some(byte));
            }
        }
    }
    dump.into_iter().collect()
}

fn noise(len: usize) -> Vec<u8> {
    (0..len as u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

#[test]
fn as_many_lines_as_a_group_has_parity_lines_may_be_lost_wherever_lines_begin() {
    for (len, step) in [(30_000, 1000), (GROUP_BYTES, 48), (GROUP_BYTES + 1, 9000), (30, 30), (1, 1)] {
        let dump = noise(len);
        let all = lines(&dump, step);
        let (first, kept) = (all.iter().position(|line| line.starts_with("KP1:")).unwrap(), all.len());
        assert_eq!(assemble(&all, len).as_ref(), Some(&dump), "{len} in {step}");
        // A burst that ends with the last line of the first group, and one among its parity lines.
        for end in [first, first + 30] {
            let burst = end.saturating_sub(ROWS)..end.min(kept);
            let rest = all.iter().enumerate().filter(|(at, _)| !burst.contains(at)).map(|(_, line)| line);
            assert_eq!(assemble(rest, len).as_ref(), Some(&dump), "{len} in {step} without {burst:?}");
        }
    }
}

#[test]
fn a_burst_beyond_the_parity_lines_costs_its_group_and_no_other() {
    let dump = noise(3 * GROUP_BYTES);
    let all = lines(&dump, GROUP_BYTES);
    assert_eq!(all.len(), 3 * (MOST_DATA + ROWS));
    let lost = all.iter().enumerate().filter(|(at, _)| !(10..10 + ROWS + 1).contains(at)).map(|(_, line)| line);
    assert_eq!(assemble(lost, dump.len()), None);
}

#[test]
fn a_dump_that_goes_back_gets_no_parity_for_the_group_it_went_back_in() {
    let (mut parity, mut printed) = (Parity::new(), Vec::new());
    let mut emit = |line: &[u8]| {
        printed.push(decode_line(line).expect("a parity line").0.end);
        true
    };
    let group = GROUP_BYTES as u32;
    assert!(parity.push(DumpId(7), 0, &[1; 100], &mut emit));
    assert!(parity.push(DumpId(7), 60, &vec![2; GROUP_BYTES * 2 - 60], &mut emit));
    assert!(parity.push(DumpId(7), 2 * group, &[3; 5], &mut emit) && parity.finish(DumpId(7), &mut emit));
    let expected: Vec<u32> = [2 * group, 2 * group + 5].iter().flat_map(|end| vec![*end; ROWS]).collect();
    assert_eq!(printed, expected);
}

#[test]
fn a_parity_line_with_any_character_changed_is_none_and_is_no_armoured_line() {
    let all = lines(&noise(100), 100);
    let line = all.last().unwrap().as_bytes();
    assert!(decode_line(line).is_some() && Lines::new(line).next().is_none());
    for at in 0..line.len() {
        for bit in 0..8 {
            let mut bent = line.to_vec();
            bent[at] ^= 1 << bit;
            assert!(decode_line(&bent).is_none(), "{}", String::from_utf8_lossy(&bent));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 2 } else { 100 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn words_are_those_of_another_implementation_and_are_mended_as_far_as_the_code_goes(
        data in proptest::collection::vec(any::<u8>(), 1..=MOST_DATA),
        places in proptest::collection::hash_set(0usize..1 << 16, 0..=CHECKS),
        missing in 0usize..=CHECKS, change in any::<u8>(),
    ) {
        let mut checks = Checks::NONE;
        data.iter().for_each(|byte| checks.push(*byte));
        let word: Vec<u8> = data.iter().copied().chain((0..CHECKS).map(|row| checks.get(row))).collect();
        prop_assert_eq!(&word[..], &::reed_solomon::Encoder::new(CHECKS).encode(&data)[..]);
        let mut places: Vec<u8> = places.iter().map(|place| (place % word.len()) as u8).collect();
        places.sort_unstable();
        places.dedup();
        let missing = missing.min(places.len());
        places.truncate(missing + (CHECKS - missing) / 2);
        let mut bent = word.clone();
        places.iter().for_each(|place| bent[usize::from(*place)] ^= change);
        let wrong = mend(&mut bent, &places[..missing]);
        prop_assert_eq!(wrong, Some(if change == 0 { 0 } else { places.len() }));
        prop_assert_eq!(bent, word);
    }

    #[test]
    fn any_word_is_mended_to_one_of_the_code_or_left_alone(
        mut word in proptest::collection::vec(any::<u8>(), 0..=256),
        missing in proptest::collection::vec(any::<u8>(), 0..=60),
    ) {
        let before = word.clone();
        if mend(&mut word, &missing).is_none() {
            prop_assert_eq!(word, before);
        }
    }
}

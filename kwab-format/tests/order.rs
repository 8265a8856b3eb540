//! Sections out of order, twice, or behind an early end section: everything sound is read, and what is odd is named.

mod support;

use kwab_format::*;
use support::*;

/// The file header and the sections of a sound dump.
fn pieces(dump: &[u8]) -> (&[u8], Vec<&[u8]>) {
    let (good, bad) = read(dump);
    assert_eq!(bad, []);
    let whole = |section: &Section<'_>| {
        let end = section.offset + usize::try_from(section.header.total_len()).unwrap();
        &dump[section.offset..end]
    };
    (&dump[..48], good.iter().map(whole).collect())
}

fn joined<'a>(head: &[u8], sections: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    sections.into_iter().fold(head.to_vec(), |mut dump, section| {
        dump.extend_from_slice(section);
        dump
    })
}

/// The sequence numbers that are read, sorted, and the defects.
fn numbers(dump: &[u8]) -> (Vec<u32>, Vec<Defect>) {
    let (good, bad) = read(dump);
    let mut numbers: Vec<u32> = good.iter().map(|section| section.header.seq).collect();
    numbers.sort_unstable();
    (numbers, bad)
}

fn all(count: usize) -> Vec<u32> {
    (0..count as u32).collect()
}

#[test]
fn two_sections_that_changed_places_are_both_read() {
    let (head, sections) = pieces(DUMPS[1]);
    for at in (0..sections.len() - 1).step_by(stride(7)) {
        let mut swapped = sections.clone();
        swapped.swap(at, at + 1);
        let (numbers, bad) = numbers(&joined(head, swapped));
        assert_eq!(numbers, all(sections.len()), "swap at {at}: {bad:?}");
        assert!(bad.iter().all(|defect| defect.sections.is_none()), "swap at {at}: {bad:?}");
        let late = DefectKind::OutOfOrder { seq: at as u32 };
        assert_eq!(bad.iter().filter(|defect| defect.kind == late).count(), 1, "swap at {at}: {bad:?}");
    }
}

#[test]
fn sections_in_the_opposite_order_are_all_read() {
    let (head, sections) = pieces(DUMPS[1]);
    let (numbers, bad) = numbers(&joined(head, sections.iter().rev().copied()));
    assert_eq!(numbers, all(sections.len()), "{bad:?}");
    assert!(bad.iter().all(|defect| defect.sections.is_none()), "{bad:?}");
}

#[test]
fn an_end_section_at_the_front_hides_nothing() {
    let (head, mut sections) = pieces(DUMPS[1]);
    sections.rotate_right(1);
    let (numbers, bad) = numbers(&joined(head, sections.iter().copied()));
    assert_eq!(numbers, all(sections.len()), "{bad:?}");
    let late = |defect: &&Defect| matches!(defect.kind, DefectKind::OutOfOrder { .. });
    assert_eq!(bad.iter().filter(late).count(), 1, "a run of late sections is one defect: {bad:?}");
    assert!(!bad.iter().any(|defect| defect.kind == DefectKind::NoEnd), "{bad:?}");
}

#[test]
fn bytes_between_the_end_section_and_late_ones_are_named_and_passed() {
    let (head, sections) = pieces(DUMPS[1]);
    let (last, first) = sections.split_last().unwrap();
    let junk = [0, 0xf5, 7, 7];
    let order = first[..1].iter().copied().chain([*last, &junk[..]]).chain(first[1..].iter().copied());
    let (numbers, bad) = numbers(&joined(head, order));
    assert_eq!(numbers, all(sections.len()), "{bad:?}");
    assert!(bad.iter().any(|defect| (defect.kind, defect.length) == (DefectKind::Trailing, 4)), "{bad:?}");
}

#[test]
fn a_sound_copy_of_a_damaged_section_is_read_and_a_copy_of_a_sound_one_is_not() {
    let (head, sections) = pieces(DUMPS[1]);
    let mut broken = sections[1].to_vec();
    broken[50] ^= 1;
    let order = [sections[0], &broken, sections[1], sections[1]].into_iter().chain(sections[2..].iter().copied());
    let (numbers, bad) = numbers(&joined(head, order));
    assert_eq!(numbers, all(sections.len()), "{bad:?}");
    assert_eq!(bad.iter().filter(|defect| defect.kind == DefectKind::Repeated).count(), 1, "{bad:?}");
}

#[test]
fn sections_that_never_come_are_missing_at_the_place_of_the_gap() {
    let (head, sections) = pieces(DUMPS[1]);
    let order = [0, 4, 2, 5].into_iter().map(|at: usize| sections[at]).chain(sections[6..].iter().copied());
    let (_, bad) = numbers(&joined(head, order));
    let missing = bad.iter().filter(|defect| defect.kind == DefectKind::Missing);
    assert_eq!(missing.map(|defect| defect.sections).collect::<Vec<_>>(), [Some((1, 1)), Some((3, 3))], "{bad:?}");
}

#[test]
fn more_gaps_than_are_remembered_lose_no_section_that_is_in_order() {
    let (head, sections) = pieces(DUMPS[0]);
    let section = Section::parse(sections[0], 0).unwrap();
    let mut dump = head.to_vec();
    for seq in (0..1000u32).map(|number| number * 2) {
        let position = dump.len() as u64;
        let mut buf = vec![0; sections[0].len()];
        buf[40..40 + section.payload.len()].copy_from_slice(section.payload);
        let header = SectionHeader { seq, position, ..section.header };
        dump.extend_from_slice(section::seal(&mut buf, &header).unwrap());
    }
    let (numbers, bad) = numbers(&dump);
    assert_eq!(numbers.len(), 1000);
    let missing = bad.iter().filter(|defect| defect.kind == DefectKind::Missing);
    assert_eq!(missing.count(), 999);
}

#[test]
fn a_stream_keeps_an_early_end_and_what_follows_it_together() {
    let (head, mut sections) = pieces(DUMPS[1]);
    let (other, rest) = pieces(DUMPS[0]);
    sections.rotate_right(1);
    let first = joined(head, sections);
    let both = [first.clone(), joined(other, rest)].concat();
    let found: Vec<_> = stream::Dumps::new(&both).map(|dump| dump.bytes.len()).collect();
    assert_eq!(found, [first.len(), both.len() - first.len()]);
}

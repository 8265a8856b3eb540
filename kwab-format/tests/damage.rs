//! Damage costs one section: every single-bit flip and every cut of several whole dumps.

mod support;

use kwab_format::record::{CanaryCheck, Identity, LogChunk, Memory, Stamp};
use kwab_format::*;
use support::*;

/// A dump of more, longer and differently filled sections than the vectors have.
fn long_dump() -> Vec<u8> {
    let mut buf = [0; 700];
    let mut slots = [IndexSlot::default(); 32];
    let mut writer = Writer::new(Collect::default(), &mut buf, HEADER).with_index(&mut slots);
    writer.begin(SectionKind::IDENTITY).unwrap();
    writer.put(&Identity { kernel_name: Some(b"kernel"), tsc_hz: Some(2_600_000_000), ..Identity::default() }).unwrap();
    writer.begin(SectionKind::EVENTS).unwrap();
    for i in 0..90 {
        let stamp = Stamp { seq: Some(i), ns: Some(i << 20), ..Stamp::default() };
        writer
            .put(&CanaryCheck {
                pid: Some(1),
                found: Some(i << 30),
                when: Some(b"pre_syscall"),
                stamp,
                ..CanaryCheck::default()
            })
            .unwrap();
    }
    writer.begin(SectionKind::LOG).unwrap();
    writer.put(&LogChunk { bytes: Some(&[b'l'; 500]), ..LogChunk::default() }).unwrap();
    writer.begin_with(SectionKind::MEMORY, Flags::CRITICAL).unwrap();
    // Memory that holds the mark of a section, as a dump of the dump's own buffer would.
    let mut page = [0; 400];
    page[100..104].copy_from_slice(&section::SYNC_MARK);
    writer.put(&Memory { bytes: Some(&page), ..Memory::default() }).unwrap();
    let (sink, result) = writer.finish();
    result.unwrap();
    sink.0
}

fn dumps() -> Vec<Vec<u8>> {
    let mut dumps: Vec<_> = DUMPS.iter().map(|d| d.to_vec()).collect();
    dumps.push(long_dump());
    dumps
}

const STRIDE: usize = stride(797);

#[test]
fn every_single_bit_flip_is_blamed_on_its_section_and_costs_no_other() {
    for dump in dumps() {
        let (whole, none) = read(&dump);
        assert_eq!(none, []);
        let mut bent = dump.clone();
        for bit in (0..dump.len() * 8).step_by(STRIDE) {
            bent[bit / 8] ^= 1 << (bit % 8);
            check_flip(&dump, &whole, &bent, bit / 8);
            bent[bit / 8] = dump[bit / 8];
        }
    }
}

fn check_flip(dump: &[u8], whole: &[Section<'_>], bent: &[u8], at: usize) {
    let (good, bad) = read(bent);
    let hit = whole.iter().find(|s| (s.offset..s.offset + s.header.total_len() as usize).contains(&at));
    let spared: Vec<_> = whole.iter().filter(|s| hit.is_none_or(|hit| hit.offset != s.offset)).collect();
    assert_eq!(good.len(), spared.len(), "flip at {at}: {bad:?}");
    for (read, spared) in good.iter().zip(spared) {
        assert_eq!((read.header, read.payload), (spared.header, spared.payload), "flip at {at}");
    }
    let Some(hit) = hit else {
        assert_eq!(bad.iter().map(|d| (d.kind, d.sections)).collect::<Vec<_>>(), [(DefectKind::BadFileHeader, None)]);
        return;
    };
    let blamed = bad[0];
    assert_eq!(blamed.sections, Some((hit.header.seq, hit.header.seq)), "flip at {at}: {bad:?}");
    assert_eq!((blamed.offset, blamed.length), (hit.offset as u64, hit.header.total_len()), "flip at {at}");
    let last = hit.offset + hit.header.total_len() as usize == dump.len();
    let more: Vec<_> = bad[1..].iter().map(|d| d.kind).collect();
    assert_eq!(more, if last { vec![DefectKind::NoEnd] } else { vec![] }, "flip at {at}");
}

#[test]
fn every_cut_yields_exactly_the_whole_sections_before_it_and_says_so() {
    for dump in dumps() {
        let (whole, _) = read(&dump);
        assert_eq!(Reader::new(&[]).err(), Some(reader::OpenError::Empty));
        for cut in (1..dump.len()).step_by(STRIDE) {
            let (good, bad) = read(&dump[..cut]);
            let before: Vec<_> = whole.iter().filter(|s| s.offset + s.header.total_len() as usize <= cut).collect();
            assert_eq!(good.len(), before.len(), "cut at {cut}: {bad:?}");
            for (read, whole) in good.iter().zip(&before) {
                assert_eq!((read.header, read.payload), (whole.header, whole.payload));
            }
            assert_eq!(bad.last().map(|d| d.kind), Some(DefectKind::NoEnd), "cut at {cut}");
            let between = before.last().map_or(48, |s| s.offset + s.header.total_len() as usize) == cut;
            let cuts = bad.iter().filter(|d| matches!(d.kind, DefectKind::Cut { .. })).count();
            assert_eq!((cuts, bad.len()), if between { (0, 1) } else { (1, 2) }, "cut at {cut}: {bad:?}");
            if !between && cut > 48 {
                let next = before.len() as u32;
                assert_eq!(bad[0].sections, Some((next, next)), "cut at {cut}");
            }
        }
    }
}

#[test]
fn a_hole_of_lost_bytes_anywhere_costs_only_the_sections_it_touches() {
    for dump in dumps() {
        let (whole, _) = read(&dump);
        for start in (48..dump.len()).step_by(7 * STRIDE) {
            let end = (start + 23).min(dump.len());
            let mut torn = dump[..start].to_vec();
            torn.extend_from_slice(&dump[end..]);
            let (good, bad) = read(&torn);
            // By chance the bytes behind a hole can be those that it took away, so the bytes decide, not the places.
            let is_whole = |s: &&Section<'_>| {
                let bytes = &dump[s.offset..][..s.header.total_len() as usize];
                torn[s.offset.min(torn.len())..].starts_with(bytes)
                    || (s.offset >= end - start && torn[s.offset - (end - start)..].starts_with(bytes))
            };
            let spared = whole.iter().filter(is_whole);
            let spared: Vec<_> = spared.map(|s| (s.header.seq, s.payload)).collect();
            let found: Vec<_> = good.iter().map(|s| (s.header.seq, s.payload)).collect();
            let numbers = |of: &[(u32, &[u8])]| of.iter().map(|(seq, _)| *seq).collect::<Vec<_>>();
            assert!(found == spared, "hole at {start}: {:?}, not {:?}; {bad:?}", numbers(&found), numbers(&spared));
            assert!(!bad.is_empty());
        }
    }
}

#[test]
fn walking_headers_only_finds_the_same_sections() {
    for dump in dumps() {
        let by_walk: Vec<_> = Reader::new(&dump)
            .unwrap()
            .headers()
            .map(|item| match item {
                Item::Section(section) => {
                    section.verify().unwrap();
                    section.header
                }
                Item::Defect(defect) => panic!("{defect}"),
            })
            .collect();
        assert_eq!(by_walk, read(&dump).0.iter().map(|s| s.header).collect::<Vec<_>>());
    }
}

#[test]
fn the_end_section_is_found_from_the_back_and_leads_to_the_index() {
    let dump = long_dump();
    let tail = &dump[dump.len().saturating_sub(tail::TAIL_LEN)..];
    let end = tail::end_record(&tail::find_end(tail).expect("an end section")).expect("an end record");
    assert_eq!((end.complete, end.unindexed), (Some(true), Some(0)));
    let mut entries = Vec::new();
    let mut at = end.index.unwrap() as usize;
    while let Some(section) = Section::parse(&dump[at..], at).filter(|s| s.header.kind == SectionKind::INDEX) {
        section.verify().unwrap();
        entries.extend(
            section
                .records()
                .filter_map(|r| match r.decode() {
                    Ok(AnyRecord::IndexEntry(e)) => Some(e),
                    _ => None,
                })
                .map(|e| (e.position.unwrap(), e.section.unwrap())),
        );
        at += section.header.total_len() as usize;
    }
    let (whole, _) = read(&dump);
    let expected: Vec<_> = whole
        .iter()
        .filter(|s| s.header.kind != SectionKind::INDEX && s.header.kind != SectionKind::END)
        .map(|s| (s.header.position, s.header.seq))
        .collect();
    assert_eq!(entries, expected);
    assert!(expected.len() > 5, "the dump is long enough to be worth an index");
    for (position, seq) in entries {
        assert_eq!(Section::parse(&dump[position as usize..], 0).unwrap().header.seq, seq);
    }
}

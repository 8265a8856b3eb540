//! A writer in trouble: sinks that fail anywhere, no room, faults and time limits while a section is collected.

mod support;

use kwab_format::record::{Cause, DroppedSection, Text};
use kwab_format::*;
use support::*;

/// Takes `left` bytes, then fails once in the middle of a write, then works again.
struct FailsOnce {
    out: Vec<u8>,
    left: Option<usize>,
}

impl Sink for FailsOnce {
    fn write(&mut self, bytes: &[u8]) -> Result<(), SinkError> {
        match &mut self.left {
            Some(left) if *left < bytes.len() => {
                self.out.extend_from_slice(&bytes[..*left]);
                let written = *left as u64;
                self.left = None;
                Err(SinkError { written })
            }
            left => {
                self.out.extend_from_slice(bytes);
                if let Some(left) = left {
                    *left -= bytes.len();
                }
                Ok(())
            }
        }
    }
}

const KINDS: [SectionKind; 4] = [SectionKind::IDENTITY, SectionKind::CAUSE, SectionKind::LOG, SectionKind::KEPT];

/// A section of each kind, each with one recognisable record; results are the kernel's business, so they are ignored.
fn write_four<S: Sink>(sink: S) -> S {
    let mut buf = [0; MIN_BUFFER];
    let mut writer = Writer::new(sink, &mut buf, HEADER);
    for kind in KINDS {
        let _ = writer.begin(kind);
        let _ = writer.put(&Text { bytes: Some(&[kind.0 as u8; 40]), ..Text::default() });
    }
    writer.finish().0
}

fn dropped(section: &Section<'_>) -> Vec<(u16, DropReason, u32, u64)> {
    let drops = section.records().filter_map(|r| match r.decode() {
        Ok(AnyRecord::DroppedSection(DroppedSection { kind, reason, sections, records, .. })) => {
            Some((kind?, reason?, sections?, records?))
        }
        _ => None,
    });
    drops.collect()
}

#[test]
fn a_sink_that_fails_at_any_byte_costs_one_section_and_the_end_section_tells() {
    let whole = write_four(FailsOnce { out: Vec::new(), left: None }).out;
    let places: Vec<_> = read(&whole).0.iter().map(|s| s.offset).collect();
    for fails_at in (0..whole.len()).step_by(stride(37)) {
        let out = write_four(FailsOnce { out: Vec::new(), left: Some(fails_at) }).out;
        let (good, bad) = read(&out);
        let kinds: Vec<_> = good.iter().map(|s| s.header.kind).collect();
        match places.iter().rposition(|place| *place <= fails_at) {
            // The file header is torn: all sections are there.
            None => assert_eq!(kinds.len(), 5, "{fails_at}: {bad:?}"),
            Some(4) => assert_eq!(kinds, KINDS, "the end section itself is torn"),
            Some(torn) => {
                let others: Vec<_> =
                    KINDS.iter().copied().filter(|k| *k != KINDS[torn]).chain([SectionKind::END]).collect();
                assert_eq!(kinds, others, "{fails_at}: {bad:?}");
                assert_eq!(
                    dropped(good.last().unwrap()),
                    [(KINDS[torn].0, DropReason::SINK_FAILED, 1, 1)],
                    "{fails_at}"
                );
            }
        }
        if fails_at > 0 && !places.contains(&fails_at) && fails_at < *places.last().unwrap() {
            assert!(!bad.is_empty(), "{fails_at}");
        }
    }
}

#[test]
fn a_sink_without_room_gets_an_end_section_that_says_what_did_not_fit() {
    let big = vec![b'x'; 3000];
    for size in (2200..9000).step_by(stride(997)) {
        let mut region = vec![0; size];
        let mut buf = vec![0; 4096];
        let mut writer = Writer::new(SliceSink::new(&mut region), &mut buf, HEADER);
        for _ in 0..3 {
            let _ = writer.begin(SectionKind::LOG);
            let _ = writer.put(&Text { bytes: Some(&big), ..Text::default() });
        }
        let (sink, _) = writer.finish();
        let (good, bad) = read(sink.written());
        assert_eq!(bad, [], "{size}");
        let end = good.last().expect("an end section");
        assert_eq!(end.header.kind, SectionKind::END);
        let fitted = good.len() as u32 - 1;
        let expected =
            if fitted == 3 { vec![] } else { vec![(13, DropReason::NO_ROOM, 3 - fitted, 3 - u64::from(fitted))] };
        assert_eq!(dropped(end), expected, "{size}");
        assert_eq!(fitted as usize, ((size - 2048 - 48) / (3000 + 4 + 4 + 44)).min(3), "{size}");
    }
}

#[test]
fn a_fault_while_collecting_drops_that_section_says_so_and_goes_on() {
    let mut buf = [0; MIN_BUFFER];
    let mut writer = Writer::new(Collect::default(), &mut buf, HEADER);
    writer.begin(SectionKind::TASKS).unwrap();
    writer.put(&Text { bytes: Some(b"half"), ..Text::default() }).unwrap();
    writer.abandon(DropReason::FAULT);
    writer.skip(SectionKind::LOCKS, DropReason::LOCKED);
    writer.begin(SectionKind::LOG).unwrap();
    writer.put(&Text { bytes: Some(b"what there was time for"), ..Text::default() }).unwrap();
    writer.end_partial(DropReason::TIME_BUDGET).unwrap();
    assert_eq!(writer.put(&Text::default()), Err(WriteError::NoSection));
    let (sink, result) = writer.finish();
    result.unwrap();
    let (good, bad) = read(&sink.0);
    assert_eq!(bad, []);
    assert_eq!(good.iter().map(|s| s.header.kind).collect::<Vec<_>>(), [SectionKind::LOG, SectionKind::END]);
    assert!(good[0].header.flags.contains(Flags::PARTIAL));
    assert_eq!(
        dropped(&good[1]),
        [(10, DropReason::FAULT, 1, 1), (11, DropReason::LOCKED, 1, 0), (13, DropReason::TIME_BUDGET, 0, 0)]
    );
    let end = tail::end_record(&good[1]).unwrap();
    assert_eq!(end.complete, Some(false));
}

#[test]
fn the_end_section_holds_the_totals_of_any_number_of_kinds_and_reasons() {
    let mut buf = [0; MIN_BUFFER];
    let mut region = vec![0; 1 << 16];
    let mut writer = Writer::new(SliceSink::new(&mut region), &mut buf, HEADER);
    for kind in 1..=100 {
        writer.begin(SectionKind(0x7000 + kind)).unwrap();
        writer.put(&Text { repeated: Some(u64::MAX), ..Text::default() }).unwrap();
        for reason in 0..3 {
            writer.skip(SectionKind(0x7000 + kind), DropReason(reason));
        }
    }
    let (sink, result) = writer.finish();
    result.unwrap();
    let (good, bad) = read(sink.written());
    assert_eq!((good.len(), bad.len()), (101, 0));
    let end = good.last().unwrap();
    assert!(end.header.total_len() < writer::END_RESERVE);
    assert_eq!(tail::end_record(end).unwrap().sections, Some(100));
    assert_eq!(dropped(end).iter().map(|(_, _, sections, _)| sections).sum::<u32>(), 300, "every drop is counted");
}

#[test]
fn a_buffer_of_any_size_neither_panics_nor_lies() {
    for size in (0..2400).step_by(stride(101)) {
        let mut buf = vec![0; size];
        let mut writer = Writer::new(Collect::default(), &mut buf, HEADER);
        let put = writer
            .begin(SectionKind::CAUSE)
            .and_then(|()| writer.put(&Cause { message: Some(&[b'm'; 200]), ..Cause::default() }));
        let (sink, _) = writer.finish();
        let (good, bad) = read(&sink.0);
        let holds = good.iter().any(|s| s.header.kind == SectionKind::CAUSE);
        assert_eq!(holds, put.is_ok(), "{size}");
        if size >= MIN_BUFFER {
            assert_eq!((holds, bad.len()), (true, 0), "{size}");
        }
    }
}

#[test]
fn records_survive_the_failure_of_the_section_before_them() {
    let sink = FailsOnce { out: Vec::new(), left: Some(48 + 100) };
    let mut buf = [0; MIN_BUFFER];
    let mut writer = Writer::new(sink, &mut buf, HEADER);
    writer.begin(SectionKind::EVENTS).unwrap();
    let results: Vec<_> = (0..60u64)
        .map(|i| writer.put(&Text { repeated: Some(i), bytes: Some(&[b'e'; 60]), ..Text::default() }))
        .collect();
    let (sink, _) = writer.finish();
    let lost = results.iter().position(Result::is_err).expect("one put tells of the lost section");
    assert_eq!(results[lost], Err(WriteError::Sink(SinkError { written: 100 })));
    let (good, _) = read(&sink.out);
    let numbers = good.iter().flat_map(Section::records).filter_map(|r| match r.decode() {
        Ok(AnyRecord::Text(text)) => text.repeated,
        _ => None,
    });
    assert_eq!(numbers.collect::<Vec<_>>(), (lost as u64..60).collect::<Vec<_>>(), "the telling record itself is kept");
}

/// Keeps all bytes written to it.
struct Shared<'a>(&'a std::cell::RefCell<Vec<u8>>);

impl Sink for Shared<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<(), SinkError> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(())
    }
}

#[test]
fn a_writer_that_takes_over_from_one_that_faulted_loses_the_open_section_only() {
    let out = std::cell::RefCell::new(Vec::new());
    let mut buf = [0; MIN_BUFFER];
    let mut first = Writer::new(Shared(&out), &mut buf, HEADER);
    let _ = first.begin(KINDS[0]);
    let _ = first.put(&Text { bytes: Some(b"out"), ..Text::default() });
    let _ = first.begin(KINDS[1]);
    let _ = first.put(&Text { bytes: Some(b"lost"), ..Text::default() });
    let progress = first.progress();
    assert_eq!(progress.position(), out.borrow().len() as u64);
    let mut second = Writer::resume(Shared(&out), &mut buf, &progress);
    second.skip(KINDS[1], DropReason::FAULT);
    let _ = second.begin(KINDS[2]);
    let _ = second.put(&Text { bytes: Some(b"goes on"), ..Text::default() });
    second.close().expect("nothing failed");
    let bytes = out.borrow();
    let reader = Reader::new(&bytes).expect("a dump");
    let sections: Vec<_> = reader
        .sections()
        .map(|item| match item {
            Item::Section(section) => section,
            Item::Defect(defect) => panic!("{defect}"),
        })
        .collect();
    let kinds: Vec<_> = sections.iter().map(|section| section.header.kind).collect();
    assert_eq!(kinds, [KINDS[0], KINDS[2], SectionKind::END]);
    assert_eq!(dropped(&sections[2]), [(KINDS[1].0, DropReason::FAULT, 1, 0)]);
}

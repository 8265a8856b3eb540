//! Armoured lines survive a shared console: text around, torn, interleaved, repeated, reordered and missing lines.

mod support;

use kwab_format::armour::{ArmourSink, Found, LINE_LEN, Lines, encode_line};
use kwab_format::parity::{Parity, ParitySink};
use kwab_format::*;
use proptest::prelude::*;
use support::*;

fn armoured(dump: &[u8], id: DumpId) -> Vec<String> {
    let mut lines = Vec::new();
    let sink = ArmourSink::new(id, |line: &[u8]| {
        lines.push(String::from_utf8(line.to_vec()).expect("printable").trim_end().to_owned());
        true
    });
    copy(dump, sink);
    lines
}

/// Hands a dump to a sink as a writer does: the file header, then whole sections.
fn copy(dump: &[u8], mut sink: impl Sink) {
    sink.write(&dump[..48]).unwrap();
    for section in read(dump).0 {
        sink.write(&dump[section.offset..][..section.header.total_len() as usize]).unwrap();
    }
    sink.flush().unwrap();
}

/// What a host does: pieces by position into a file, holes are zeros.
fn assemble(text: &[u8], id: DumpId) -> Vec<u8> {
    let mut dump = Vec::new();
    for found in Lines::new(text) {
        if let Found::Line { chunk, .. } = found
            && chunk.dump == id.short()
        {
            let start = chunk.position as usize;
            dump.resize(dump.len().max(start + chunk.bytes().len()), 0);
            dump[start..start + chunk.bytes().len()].copy_from_slice(chunk.bytes());
        }
    }
    dump
}

fn id_of(dump: &[u8]) -> DumpId {
    Reader::new(dump).unwrap().dump_id().unwrap()
}

#[test]
fn the_lines_of_the_vectors_are_those_that_the_sink_writes() {
    let lines = armoured(DUMPS[0], id_of(DUMPS[0]));
    assert_eq!(lines, include_str!("../vectors/armour.txt").lines().collect::<Vec<_>>());
    assert!(lines.iter().all(|l| l.len() <= LINE_LEN && l.bytes().all(|b| b.is_ascii_graphic())));
}

#[test]
fn the_vector_with_parity_is_what_the_sink_writes_and_reads_without_its_parity_lines() {
    let (mut text, mut parity) = (Vec::new(), Parity::new());
    let sink = ParitySink::new(id_of(DUMPS[0]), &mut parity, |line: &[u8]| {
        text.extend_from_slice(line);
        true
    });
    copy(DUMPS[0], sink);
    let vector = include_str!("../vectors/armour-parity.txt");
    let of_parity = |text: &str| text.lines().filter(|l| l.starts_with("KP1:")).map(str::to_owned).collect::<Vec<_>>();
    // The vector has full lines; parity does not depend on where lines begin.
    assert_eq!(of_parity(std::str::from_utf8(&text).unwrap()), of_parity(vector));
    assert_eq!(of_parity(vector).len(), 48);
    assert_eq!(assemble(vector.as_bytes(), id_of(DUMPS[0])), DUMPS[0]);
}

#[test]
fn torn_repeated_and_reordered_lines_still_give_the_whole_dump() {
    let text = include_bytes!("../vectors/armour-torn.txt");
    assert_eq!(assemble(text, id_of(DUMPS[0])), DUMPS[0]);
    assert!(Lines::new(text).any(|found| matches!(found, Found::Torn { .. })));
}

#[test]
fn each_missing_line_costs_one_section() {
    let dump = DUMPS[1];
    let lines = armoured(dump, id_of(dump));
    let (whole, _) = read(dump);
    for lost in (0..lines.len()).step_by(stride(29)) {
        let text: String =
            lines.iter().enumerate().filter(|(i, _)| *i != lost).map(|(_, l)| format!("{l}\r\n")).collect();
        let rebuilt = assemble(text.as_bytes(), id_of(dump));
        let (good, bad) = read(&rebuilt);
        assert_eq!(good.len(), whole.len() - usize::from(lost > 0), "line {lost}: {bad:?}");
        assert!(!bad.is_empty());
    }
}

#[test]
fn two_dumps_interleaved_line_by_line_come_apart() {
    let (a, b) = (DUMPS[1], DUMPS[2]);
    let (of_a, of_b) = (armoured(a, id_of(a)), armoured(b, id_of(b)));
    let mut text = String::new();
    for i in 0..of_a.len().max(of_b.len()) {
        for lines in [&of_b, &of_a] {
            if let Some(line) = lines.get(i) {
                text += &format!("[    {i}.0] console {line} and more");
            }
        }
    }
    assert_eq!(assemble(text.as_bytes(), id_of(a)), a);
    assert_eq!(assemble(text.as_bytes(), id_of(b)), b);
}

#[test]
fn a_console_that_loses_a_line_costs_the_section_and_the_writer_says_so() {
    let mut text = Vec::new();
    let mut count = 0;
    let sink = ArmourSink::new(HEADER.dump_id, |line: &[u8]| {
        count += 1;
        if count != 3 {
            text.extend_from_slice(line);
        }
        count != 3
    });
    let mut buf = [0; 1024];
    let mut writer = Writer::new(sink, &mut buf, HEADER);
    for kind in [SectionKind::IDENTITY, SectionKind::LOG] {
        let _ = writer.begin(kind);
        let _ = writer.put(&record::Text { bytes: Some(&[b't'; 300]), ..record::Text::default() });
    }
    let _ = writer.finish();
    let dump = assemble(&text, HEADER.dump_id);
    let (good, bad) = read(&dump);
    assert_eq!(good.iter().map(|s| s.header.kind).collect::<Vec<_>>(), [SectionKind::LOG, SectionKind::END]);
    assert_eq!(bad.iter().map(|d| d.sections).collect::<Vec<_>>(), [Some((0, 0))]);
}

#[test]
fn no_single_character_of_a_line_can_change_unnoticed() {
    let mut out = [0; LINE_LEN + 1];
    let line = encode_line(HEADER.dump_id, 96, &[0xC3; 48], &mut out).to_vec();
    let text = &line[..line.len() - 1];
    for at in (0..text.len()).step_by(stride(5)) {
        for c in (0..=255u8).step_by(stride(51)).filter(|c| *c != text[at]) {
            let mut bent = text.to_vec();
            bent[at] = c;
            assert!(armour::decode_line(&bent).is_none(), "{}", String::from_utf8_lossy(&bent));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 4 } else { 2000 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_piece_survives_in_any_text(
        piece in proptest::collection::vec(any::<u8>(), 1..=48), position in any::<u32>(), id in any::<u64>(),
        before in proptest::collection::vec(any::<u8>(), 0..30), after in proptest::collection::vec(any::<u8>(), 0..30),
    ) {
        let mut out = [0; LINE_LEN + 1];
        let line = encode_line(DumpId(id), position, &piece, &mut out);
        let text = [&before, line, &after].concat();
        let whole = |found| match found {
            Found::Line { chunk, .. } => Some(chunk),
            Found::Torn { .. } => None,
        };
        let chunks: Vec<_> = Lines::new(&text).filter_map(whole).collect();
        prop_assert_eq!(chunks.len(), 1);
        let chunk = &chunks[0];
        prop_assert_eq!((chunk.dump, chunk.position, chunk.bytes()), (DumpId(id).short(), position, &piece[..]));
    }
}

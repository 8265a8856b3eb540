//! What several fuzz targets need: dumps that hold the fuzzer's records, and a sink that only counts.
//!
//! A fuzzer does not find a right checksum by itself. So the targets behind the reader take a run of records as their
//! input, as it would stand in a payload, and put it into a sound dump.

use kwab_format::section::{self, SECTION_HEADER_LEN, SECTION_TRAILER_LEN};
use kwab_format::{BootId, DumpId, FileHeader, Flags, Records, SectionHeader, SectionKind};

/// A sound dump whose records are those at the front of `data`; they may be malformed. Its first byte decides whether
/// one section holds them all or each has one of its own.
pub fn dump_of(data: &[u8]) -> Vec<u8> {
    let (&how, run) = data.split_first().unwrap_or((&0, &[]));
    let mut dump = FileHeader::new(DumpId(0x1234), BootId([1; 16])).encode().to_vec();
    let (mut seq, mut rest) = (0, run);
    while how & 1 == 1 && seq < 64 {
        let Some(raw) = Records::new(rest).next() else { break };
        let (one, after) = rest.split_at(4 + raw.body.len());
        append(&mut dump, seq, kind_for(how, seq), one);
        (seq, rest) = (seq + 1, after);
    }
    append(&mut dump, seq, kind_for(how, seq), rest);
    append(&mut dump, seq + 1, SectionKind::END, &[]);
    dump
}

fn kind_for(how: u8, seq: u32) -> SectionKind {
    let kinds = SectionKind::NAMES;
    SectionKind(kinds[(usize::from(how >> 1) + seq as usize) % (kinds.len() - 2)].0)
}

fn append(dump: &mut Vec<u8>, seq: u32, kind: SectionKind, payload: &[u8]) {
    let header = SectionHeader {
        kind,
        version: 0,
        flags: Flags::default(),
        payload_len: payload.len() as u32,
        seq,
        dump_id: DumpId(0x1234),
        position: dump.len() as u64,
        records: Records::new(payload).count() as u32,
    };
    let mut whole = vec![0; SECTION_HEADER_LEN + payload.len() + SECTION_TRAILER_LEN];
    whole[SECTION_HEADER_LEN..][..payload.len()].copy_from_slice(payload);
    section::seal(&mut whole, &header).expect("room");
    dump.extend(whole);
}

/// Takes numbers and pieces off the front of the fuzzer's input; past its end there are zeros.
pub struct Input<'a>(pub &'a [u8]);

impl<'a> Input<'a> {
    /// The next byte of the input; 0 behind its end.
    pub fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }

    /// Eight bytes as a number.
    pub fn word(&mut self) -> u64 {
        (0..8).fold(0, |sum, _| sum << 8 | u64::from(self.byte()))
    }

    /// A piece whose length two bytes give.
    pub fn piece(&mut self) -> &'a [u8] {
        let length = usize::from(self.byte()) << 8 | usize::from(self.byte());
        let (piece, rest) = self.0.split_at(length.min(self.0.len()));
        self.0 = rest;
        piece
    }
}

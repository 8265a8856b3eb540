//! Writes one dump while its input streams by: a buffer per kind of section, emptied into the file when it is full.
//!
//! kwab-format's `Writer` serves a kernel that knows what comes next; an importer does not, so it collects every kind
//! at the same time. A short log never fills a buffer and its dump comes out in order of value; in a long one the full
//! sections come first and the identity last, where the section headers and the index find it.

use std::collections::BTreeMap;
use std::io::{self, Write};

use kwab_format::record::{End, IndexEntry, KindTotal, RECORD_HEADER_LEN};
use kwab_format::section::{SECTION_HEADER_LEN, SECTION_TRAILER_LEN};
use kwab_format::wire::{Encoder, RecordType, SLACK};
use kwab_format::{FileHeader, Flags, RawRecord, Records, SectionHeader, SectionKind, lz4, section};

/// Payload bytes after which a section is closed.
const SECTION_SIZE: usize = 256 << 10;
/// The largest payload this writer makes: room for the longest record that a line can become.
const LARGEST_SECTION: usize = 8 << 20;

/// What sections collect, in the order in which a dump of a short log has them.
const LANES: [SectionKind; 19] = [
    SectionKind::IDENTITY,
    SectionKind::CAUSE,
    SectionKind::REGISTERS,
    SectionKind::STACKS,
    SectionKind::MEMORY,
    SectionKind::SYSCALLS,
    SectionKind::FLIGHT,
    SectionKind::MEMORY_MAP,
    SectionKind::PAGE_TABLE,
    SectionKind::PAGE_CHECKS,
    SectionKind::TASKS,
    SectionKind::LOCKS,
    SectionKind::IMAGES,
    SectionKind::NOTES,
    SectionKind::COUNTERS,
    SectionKind::EVENTS,
    SectionKind::LOG,
    SectionKind::KEPT,
    SectionKind::IMAGE_FILES,
];

/// A dump being written to `out`.
#[derive(Debug)]
pub struct DumpWriter<W> {
    out: W,
    file: FileHeader,
    lanes: Vec<Lane>,
    /// The lane of each section kind, by its number.
    lane_of: [u8; 128],
    position: u64,
    seq: u32,
    totals: BTreeMap<u16, (u32, u64, u64)>,
    index: Vec<(SectionHeader, Option<(u64, u64)>)>,
    /// Records that were longer than a section can be.
    too_long: u64,
    failed: Option<io::Error>,
}

/// The section of one kind that is being filled: room for its header, then records.
#[derive(Debug)]
struct Lane {
    kind: SectionKind,
    buf: Vec<u8>,
    used: usize,
    records: u32,
}

impl Lane {
    fn new(kind: SectionKind) -> Self {
        Self { kind, buf: Vec::new(), used: SECTION_HEADER_LEN, records: 0 }
    }

    /// Appends a record; `false` when it does not fit any more.
    #[inline(always)]
    fn append<'r, R: RecordType<'r>>(&mut self, record: &R) -> bool {
        let body = self.used + RECORD_HEADER_LEN;
        let mut encoder = Encoder::new(&mut self.buf, body);
        record.encode(&mut encoder);
        match encoder.position() {
            Some(end) => self.close_record(R::KIND.0, body, end),
            None => false,
        }
    }

    fn append_raw(&mut self, record: RawRecord<'_>) -> bool {
        let body = self.used + RECORD_HEADER_LEN;
        let end = body + record.body.len();
        if end + SLACK > self.buf.len() {
            return false;
        }
        self.buf[body..end].copy_from_slice(record.body);
        self.close_record(record.kind.0, body, end)
    }

    #[inline(always)]
    fn close_record(&mut self, kind: u8, body: usize, end: usize) -> bool {
        let [l0, l1, l2, ..] = (end - body).to_le_bytes();
        let Some(header) = self.buf.get_mut(self.used..body) else { return false };
        header.copy_from_slice(&[kind, l0, l1, l2]);
        self.used = end;
        self.records += 1;
        true
    }

    fn payload(&self) -> &[u8] {
        self.buf.get(SECTION_HEADER_LEN..self.used).unwrap_or_default()
    }
}

impl<W: Write> DumpWriter<W> {
    /// Starts a dump: the file header goes out at once. A failure of `out` is kept until [`DumpWriter::finish`] or
    /// [`DumpWriter::check`] asks.
    pub fn new(out: W, file: FileHeader) -> Self {
        let mut lane_of = [0u8; 128];
        for (index, kind) in LANES.iter().enumerate() {
            lane_of[usize::from(kind.0) % 128] = index as u8;
        }
        let mut writer = Self {
            out,
            file,
            lanes: LANES.iter().map(|kind| Lane::new(*kind)).collect(),
            lane_of,
            position: 0,
            seq: 0,
            totals: BTreeMap::new(),
            index: Vec::new(),
            too_long: 0,
            failed: None,
        };
        writer.send(&file.encode());
        writer
    }

    /// Appends `record` to the section of `kind` that is being filled. Kinds without a lane share the first.
    #[inline(always)]
    pub fn put<'r, R: RecordType<'r>>(&mut self, kind: SectionKind, record: &R) {
        let lane = usize::from(self.lane_of[usize::from(kind.0) % 128]);
        if !self.lanes[lane].append(record) {
            self.put_into_next(lane, |lane| lane.append(record));
        }
    }

    /// Appends a record as it stands in another dump.
    pub fn put_raw(&mut self, kind: SectionKind, record: RawRecord<'_>) {
        let lane = usize::from(self.lane_of[usize::from(kind.0) % 128]);
        if !self.lanes[lane].append_raw(record) {
            self.put_into_next(lane, |lane| lane.append_raw(record));
        }
    }

    /// Writes a section of another dump as it is, under a header of this one.
    pub fn put_section(&mut self, header: &SectionHeader, payload: &[u8]) {
        self.put_whole(header, payload, None);
    }

    /// Writes a section whose payload is made already; `extent` is the physical memory in it, first address and the one
    /// behind the last.
    pub(crate) fn put_packed(
        &mut self,
        kind: SectionKind,
        flags: Flags,
        records: u32,
        payload: &[u8],
        extent: Option<(u64, u64)>,
    ) {
        let (dump_id, payload_len) = (self.file.dump_id, payload.len() as u32);
        let header = SectionHeader { kind, version: 0, flags, payload_len, seq: 0, dump_id, position: 0, records };
        self.put_whole(&header, payload, extent);
    }

    /// Writes records that are encoded already as a section of their own, compressed where that fits.
    pub(crate) fn put_compressed(
        &mut self,
        kind: SectionKind,
        count: u32,
        records: &[u8],
        extent: Option<(u64, u64)>,
        table: &mut lz4::Table,
    ) {
        let length = records.len();
        // The worst case of the format: a byte more for every 255 literals, and the token.
        let mut packed = vec![0; 4 + length + length / 255 + 16];
        packed[..4].copy_from_slice(&(length as u32).to_le_bytes());
        match lz4::compress(records, &mut packed[4..], table) {
            Some(used) => {
                packed.truncate(4 + used);
                self.put_packed(kind, Flags::COMPRESSED, count, &packed, extent);
            }
            // A section that the format has no room for in packed form goes as it is.
            None => Records::new(records).for_each(|record| self.put_raw(kind, record)),
        }
    }

    fn put_whole(&mut self, header: &SectionHeader, payload: &[u8], extent: Option<(u64, u64)>) {
        let header = SectionHeader {
            payload_len: payload.len() as u32,
            seq: self.seq,
            dump_id: self.file.dump_id,
            position: self.position,
            ..*header
        };
        let mut buf = vec![0; SECTION_HEADER_LEN + payload.len() + SECTION_TRAILER_LEN];
        buf[SECTION_HEADER_LEN..][..payload.len()].copy_from_slice(payload);
        if let Some(bytes) = section::seal(&mut buf, &header) {
            self.send(bytes);
        }
        self.note(header, extent);
    }

    /// Makes room: a first buffer, an empty one, or a larger one for a record that is longer than any.
    #[cold]
    fn put_into_next(&mut self, lane: usize, append: impl Fn(&mut Lane) -> bool) {
        self.flush(lane);
        let lane = &mut self.lanes[lane];
        let room = SECTION_HEADER_LEN + SECTION_TRAILER_LEN + SLACK;
        let mut size = SECTION_SIZE;
        loop {
            if lane.buf.len() < size + room {
                lane.buf.resize(size + room, 0);
            }
            if append(lane) {
                return;
            }
            if size >= LARGEST_SECTION {
                self.too_long += 1;
                return;
            }
            size *= 2;
        }
    }

    /// Writes the section of a lane, if there is anything in it.
    fn flush(&mut self, lane: usize) {
        let lane = &mut self.lanes[lane];
        if lane.records == 0 {
            return;
        }
        let payload_len = lane.used - SECTION_HEADER_LEN;
        let header = SectionHeader {
            kind: lane.kind,
            version: 0,
            flags: Flags(if lane.kind == SectionKind::END { Flags::CRITICAL.0 } else { 0 }),
            payload_len: payload_len as u32,
            seq: self.seq,
            dump_id: self.file.dump_id,
            position: self.position,
            records: lane.records,
        };
        let mut buf = std::mem::take(&mut lane.buf);
        lane.used = SECTION_HEADER_LEN;
        lane.records = 0;
        let index = self.lane_of[usize::from(lane.kind.0) % 128];
        if let Some(bytes) = section::seal(&mut buf, &header) {
            self.send(bytes);
        }
        // One overlong record must not make the buffer large for good.
        buf.truncate(SECTION_SIZE + SECTION_HEADER_LEN + SECTION_TRAILER_LEN + SLACK);
        buf.shrink_to(SECTION_SIZE * 2);
        self.lanes[usize::from(index)].buf = buf;
        self.note(header, None);
    }

    fn note(&mut self, header: SectionHeader, extent: Option<(u64, u64)>) {
        let total = self.totals.entry(header.kind.0).or_default();
        total.0 += 1;
        total.1 += u64::from(header.records);
        total.2 += u64::from(header.payload_len);
        self.seq += 1;
        if header.kind != SectionKind::INDEX && header.kind != SectionKind::END {
            self.index.push((header, extent));
        }
    }

    fn send(&mut self, bytes: &[u8]) {
        if self.failed.is_none()
            && let Err(error) = self.out.write_all(bytes)
        {
            self.failed = Some(error);
        }
        self.position += bytes.len() as u64;
    }

    /// The first failure of the output so far.
    ///
    /// # Errors
    /// That failure.
    pub fn check(&mut self) -> io::Result<()> {
        self.failed.take().map_or(Ok(()), Err)
    }

    /// Bytes written so far.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Records left out because no section can hold them.
    pub fn too_long(&self) -> u64 {
        self.too_long
    }

    /// The last records of `kind` that have not left the buffer yet, at most `count` of them.
    pub fn recent(&self, kind: SectionKind, count: usize) -> Vec<RawRecord<'_>> {
        let lane = &self.lanes[usize::from(self.lane_of[usize::from(kind.0) % 128])];
        let skip = (lane.records as usize).saturating_sub(count);
        Records::new(lane.payload()).skip(skip).collect()
    }

    /// Writes what is still in the buffers, in order of value.
    pub fn flush_all(&mut self) {
        for lane in 0..self.lanes.len() {
            self.flush(lane);
        }
    }

    /// Closes the dump: the buffers, the index, the end section. Gives the output back.
    ///
    /// # Errors
    /// The first failure of the output.
    pub fn finish(mut self) -> io::Result<W> {
        self.flush_all();
        let index_at = self.position;
        let index = std::mem::take(&mut self.index);
        let (sections, records) = self.totals.values().fold((0, 0), |sum, kind| (sum.0 + kind.0, sum.1 + kind.1));
        self.lanes[0].kind = SectionKind::INDEX;
        self.lane_of[usize::from(SectionKind::INDEX.0)] = 0;
        for (header, extent) in &index {
            let entry = IndexEntry {
                kind: Some(header.kind.0),
                section: Some(header.seq),
                position: Some(header.position),
                length: Some(u64::from(header.payload_len)),
                records: Some(header.records),
                paddr: extent.map(|(low, _)| low),
                span: extent.map(|(low, end)| end.saturating_sub(low)),
                ..IndexEntry::default()
            };
            self.put(SectionKind::INDEX, &entry);
        }
        self.flush(0);
        self.lanes[0].kind = SectionKind::END;
        self.lane_of[usize::from(SectionKind::END.0)] = 0;
        let totals = std::mem::take(&mut self.totals);
        for (kind, (sections, records, bytes)) in &totals {
            let total = KindTotal {
                kind: Some(*kind),
                sections: Some(*sections),
                records: Some(*records),
                bytes: Some(*bytes),
                ..KindTotal::default()
            };
            self.put(SectionKind::END, &total);
        }
        let index_sections = totals.get(&SectionKind::INDEX.0).copied().unwrap_or_default();
        let end = End {
            sections: Some(sections + index_sections.0),
            records: Some(records + index_sections.1),
            bytes: Some(self.position),
            complete: Some(self.too_long == 0),
            index: (!index.is_empty()).then_some(index_at),
            unindexed: (!index.is_empty()).then_some(0),
            ..End::default()
        };
        self.put(SectionKind::END, &end);
        self.flush(0);
        self.check()?;
        self.out.flush()?;
        Ok(self.out)
    }
}

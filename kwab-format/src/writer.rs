//! Decides when records become sections and what happens to those that cannot get out.
//!
//! The writer owns nothing but counters: the buffer, the optional index slots and the optional compressor are the
//! caller's. A section is collected in the buffer and handed to the sink in one call, so that a section is either whole
//! or blamed. Nothing here panics, allocates, locks or recurses.
//!
//! A record counts only when all of it is in the buffer: a kernel that faults while it encodes one and comes back to
//! the same writer finds the section as it was before that record, and may [`end_partial`](Writer::end_partial) or
//! [`abandon`](Writer::abandon) it.

use crate::lz4;
pub use crate::record::DropReason;
use crate::record::{
    AnyRecord, DroppedSection, End, IndexEntry, KindTotal, MAX_BODY_LEN, RECORD_HEADER_LEN, RawRecord, RecordKind,
};
use crate::section::{
    self, FILE_HEADER_LEN, FileHeader, Flags, MAX_PAYLOAD_LEN, SECTION_HEADER_LEN, SECTION_TRAILER_LEN, SectionHeader,
    SectionKind,
};
use crate::sink::{Sink, SinkError};
use crate::totals::{self, Totals};
use crate::wire::{Encoder, Fields, RecordType};
use core::fmt;

/// Room that is kept in a bounded sink so that the end section always fits.
pub const END_RESERVE: u64 = 2048;

/// A buffer of this many bytes always holds the end section, which must not be split; a shorter one is of little use.
pub const MIN_BUFFER: usize = 1536;

/// Why something could not be written; the writer stays usable after each of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteError {
    /// The section that was just closed is lost. The record that was being put is kept for the next one.
    Sink(SinkError),
    /// The section that was just closed did not fit the sink. The record that was being put is kept for the next one.
    NoRoom,
    /// The record does not fit the buffer; it is left out and counted.
    TooLong,
    /// There is no open section to put a record into.
    NoSection,
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sink(error) => write!(f, "a section is lost: {error}"),
            Self::NoRoom => f.write_str("a section is lost: no room in the sink"),
            Self::TooLong => f.write_str("a record is left out: longer than the buffer"),
            Self::NoSection => f.write_str("no section is open"),
        }
    }
}

impl core::error::Error for WriteError {}

/// One slot of the optional index, given by the caller.
#[derive(Clone, Copy, Debug, Default)]
pub struct IndexSlot {
    kind: u16,
    seq: u32,
    position: u64,
    length: u32,
    records: u32,
}

/// What the caller gives for compressing payloads.
#[derive(Debug)]
pub struct Compression<'b> {
    /// The compressor's static table.
    pub table: &'b mut lz4::Table,
    /// Room for a compressed section; at least as long as the writer's buffer to be of use.
    pub scratch: &'b mut [u8],
}

/// Writes one dump into a sink.
///
/// Sections should be begun in order of their value: what is written first survives a cut. A full or failing sink costs
/// the section it met, and the end section says so.
///
/// ```
/// use kwab_format::record::{Counter, Identity};
/// use kwab_format::*;
///
/// // The sink has room for the first section and the end section, not for the second.
/// let (mut region, mut buffer) = ([0; 4096], [0; 4096]);
/// let header = FileHeader::new(DumpId(7), BootId::default());
/// let mut writer = Writer::new(SliceSink::new(&mut region), &mut buffer, header);
/// writer.begin(SectionKind::IDENTITY)?;
/// writer.put(&Identity { kernel_name: Some(b"toy"), cpus: Some(2), ..Identity::default() })?;
/// writer.begin(SectionKind::COUNTERS)?;
/// for value in 0..150 {
///     writer.put(&Counter { name: Some(b"page faults"), value: Some(value), ..Counter::default() })?;
/// }
/// assert_eq!(writer.end(), Err(WriteError::NoRoom));
/// let (sink, result) = writer.finish();
/// result?;
///
/// let reader = Reader::new(sink.written()).expect("a dump");
/// let kinds: Vec<_> = reader.sections().filter_map(|item| match item {
///     Item::Section(section) => Some(section.header.kind),
///     Item::Defect(_) => None,
/// }).collect();
/// assert_eq!(kinds, [SectionKind::IDENTITY, SectionKind::END]);
/// # Ok::<(), WriteError>(())
/// ```
#[derive(Debug)]
pub struct Writer<'b, S> {
    sink: S,
    buf: &'b mut [u8],
    open: Option<Open>,
    file: FileHeader,
    seq: u32,
    position: u64,
    totals: Totals,
    index: &'b mut [IndexSlot],
    indexed: usize,
    unindexed: u32,
    compression: Option<Compression<'b>>,
}

/// How far a dump has come: what a writer that takes over needs to know.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    file: FileHeader,
    seq: u32,
    position: u64,
    totals: Totals,
    unindexed: u32,
}

/// The section that is being collected.
#[derive(Clone, Copy, Debug)]
struct Open {
    kind: SectionKind,
    flags: Flags,
    records: u32,
    used: usize,
}

impl Progress {
    /// Bytes of the dump that reached the sink.
    #[must_use]
    pub const fn position(&self) -> u64 {
        self.position
    }

    /// The id of the dump.
    #[must_use]
    pub const fn dump_id(&self) -> section::DumpId {
        self.file.dump_id
    }
}

impl<'b, S: Sink> Writer<'b, S> {
    /// Starts a dump: the file header goes out at once. `buf` decides how long sections become; [`MIN_BUFFER`] bytes is
    /// the least, and 16 MiB the most that is used. A sink that fails already here is noted in the end section.
    pub fn new(mut sink: S, buf: &'b mut [u8], file: FileHeader) -> Self {
        let mut totals = Totals::default();
        let position = match sink.write(&file.encode()) {
            Ok(()) => FILE_HEADER_LEN as u64,
            Err(SinkError { written }) => {
                totals.dropped(SectionKind(0), DropReason::SINK_FAILED, 1, 0, FILE_HEADER_LEN as u64);
                written
            }
        };
        let useful = buf.len().min((MAX_PAYLOAD_LEN as usize).saturating_add(SECTION_HEADER_LEN));
        let (buf, _) = buf.split_at_mut(useful);
        Self {
            sink,
            buf,
            open: None,
            file,
            seq: 0,
            position,
            totals,
            index: &mut [],
            indexed: 0,
            unindexed: 0,
            compression: None,
        }
    }

    /// Goes on with a dump that another writer has begun and will not go on with: the kernel faulted in the middle of
    /// it, say. `sink` continues behind [`Progress::position`]. Whatever section was open then is lost: say so with
    /// [`skip`](Self::skip).
    pub fn resume(sink: S, buf: &'b mut [u8], progress: &Progress) -> Self {
        let useful = buf.len().min((MAX_PAYLOAD_LEN as usize).saturating_add(SECTION_HEADER_LEN));
        let (buf, _) = buf.split_at_mut(useful);
        Self {
            sink,
            buf,
            open: None,
            file: progress.file,
            seq: progress.seq,
            position: progress.position,
            totals: progress.totals,
            index: &mut [],
            indexed: 0,
            unindexed: progress.unindexed,
            compression: None,
        }
    }

    /// How far this dump has come, without the open section. Changes when [`position`](Self::position) does, and when
    /// something is dropped.
    #[must_use]
    pub const fn progress(&self) -> Progress {
        Progress {
            file: self.file,
            seq: self.seq,
            position: self.position,
            totals: self.totals,
            unindexed: self.unindexed,
        }
    }

    /// Gives slots for an index section; sections beyond their number are not in it.
    #[must_use]
    pub const fn with_index(mut self, slots: &'b mut [IndexSlot]) -> Self {
        self.index = slots;
        self
    }

    /// Gives what it takes to write sections that are begun with [`Flags::COMPRESSED`].
    #[must_use]
    pub fn with_compression(mut self, compression: Compression<'b>) -> Self {
        self.compression = Some(compression);
        self
    }

    /// The longest record body that fits a section of its own.
    #[must_use]
    pub const fn max_body(&self) -> usize {
        self.buf.len().saturating_sub(SECTION_HEADER_LEN + RECORD_HEADER_LEN + crate::wire::SLACK)
    }

    /// How many bytes of memory or text a record can safely carry beside a handful of other fields; longer runs are
    /// cut into several records.
    #[must_use]
    pub const fn max_bytes(&self) -> usize {
        self.max_body().saturating_sub(128)
    }

    /// Bytes of the dump so far, without the open section.
    #[must_use]
    pub const fn position(&self) -> u64 {
        self.position
    }

    /// The sink, for example to ask how full it is.
    pub const fn sink(&self) -> &S {
        &self.sink
    }

    /// Closes the open section and opens one of `kind`; a section without records is not written.
    ///
    /// # Errors
    /// When the section that is closed is lost. The new one is open nevertheless.
    pub fn begin(&mut self, kind: SectionKind) -> Result<(), WriteError> {
        self.begin_with(kind, Flags::default())
    }

    /// As [`begin`](Self::begin), with [`Flags::CRITICAL`] or [`Flags::COMPRESSED`].
    ///
    /// # Errors
    /// When the section that is closed is lost. The new one is open nevertheless.
    pub fn begin_with(&mut self, kind: SectionKind, flags: Flags) -> Result<(), WriteError> {
        let closed = self.end();
        self.open = Some(Open { kind, flags, records: 0, used: SECTION_HEADER_LEN });
        closed
    }

    /// Decides whether the open section is packed when it is closed: [`Flags::COMPRESSED`] until then.
    pub const fn set_packed(&mut self, packed: bool) {
        if let Some(open) = &mut self.open {
            let rest = open.flags.0 & !Flags::COMPRESSED.0;
            open.flags = if packed { Flags(rest).with(Flags::COMPRESSED) } else { Flags(rest) };
        }
    }

    /// Bytes of records in the open section.
    #[must_use]
    pub const fn collected(&self) -> usize {
        match &self.open {
            Some(open) => open.used.saturating_sub(SECTION_HEADER_LEN),
            None => 0,
        }
    }

    /// Appends a record to the open section; a full section is closed and one of the same kind opened.
    ///
    /// # Errors
    /// [`WriteError`]; after [`WriteError::Sink`] and [`WriteError::NoRoom`] the record itself is kept.
    #[inline]
    pub fn put<'r, R: RecordType<'r>>(&mut self, record: &R) -> Result<(), WriteError> {
        if self.append(R::KIND, |out| record.encode(out)) {
            return Ok(());
        }
        self.put_into_next(R::KIND, |out| record.encode(out))
    }

    /// Appends a decoded record of any kind.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn put_any(&mut self, record: &AnyRecord<'_>) -> Result<(), WriteError> {
        if self.append(record.kind(), |out| record.encode_body(out)) {
            return Ok(());
        }
        self.put_into_next(record.kind(), |out| record.encode_body(out))
    }

    /// Appends a record that is already encoded, known or not.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn put_raw(&mut self, record: &RawRecord<'_>) -> Result<(), WriteError> {
        if self.append(record.kind, |out| out.append(record.body)) {
            return Ok(());
        }
        self.put_into_next(record.kind, |out| out.append(record.body))
    }

    /// Closes the open section, if any, and hands it to the sink.
    ///
    /// # Errors
    /// When it is lost.
    pub fn end(&mut self) -> Result<(), WriteError> {
        match self.open.take() {
            Some(open) if open.records > 0 => self.flush_section(open),
            _ => Ok(()),
        }
    }

    /// Closes the open section before everything that belongs into it was put, and notes why.
    ///
    /// # Errors
    /// When it is lost.
    pub fn end_partial(&mut self, reason: DropReason) -> Result<(), WriteError> {
        if let Some(open) = &mut self.open {
            open.flags = open.flags.with(Flags::PARTIAL);
            let kind = open.kind;
            self.totals.dropped(kind, reason, 0, 0, 0);
        }
        self.end()
    }

    /// Forgets what the open section has collected since it was last handed to the sink, and notes why.
    pub fn abandon(&mut self, reason: DropReason) {
        if let Some(open) = self.open.take() {
            let bytes = open.used.saturating_sub(SECTION_HEADER_LEN) as u64;
            self.totals.dropped(open.kind, reason, 1, u64::from(open.records), bytes);
        }
    }

    /// Notes that a section was not written at all.
    pub fn skip(&mut self, kind: SectionKind, reason: DropReason) {
        self.totals.dropped(kind, reason, 1, 0, 0);
    }

    /// Closes the open section, writes index and end section, and flushes the sink. Afterwards the dump is complete and
    /// the writer of no more use.
    ///
    /// # Errors
    /// The first failure of these; the rest is done nevertheless.
    pub fn close(&mut self) -> Result<(), WriteError> {
        let mut result = self.end();
        let index = self.write_index();
        let (sections, records) = self.totals.sum();
        let end = End {
            sections: Some(sections),
            records: Some(records),
            bytes: Some(self.position),
            complete: Some(!self.totals.any_dropped()),
            index,
            unindexed: index.is_some().then_some(self.unindexed),
            ..End::default()
        };
        result = result.and(self.begin_with(SectionKind::END, Flags::CRITICAL));
        // Nothing here may spill into a second section, because a reader stops behind the first end section.
        let mut fits = true;
        for slot in 0..totals::KINDS {
            if let Some(total) = self.totals.kind(slot) {
                fits &= self.append(KindTotal::KIND, |out| total.encode(out));
            }
        }
        for slot in 0..totals::DROPS {
            if let Some(dropped) = self.totals.drop(slot) {
                fits &= self.append(DroppedSection::KIND, |out| dropped.encode(out));
            }
        }
        fits &= self.append(End::KIND, |out| end.encode(out));
        result = result.and(if fits { Ok(()) } else { Err(WriteError::TooLong) }).and(self.end());
        result.and(self.sink.flush().map_err(WriteError::Sink))
    }

    /// [`close`](Self::close), and the sink back.
    pub fn finish(mut self) -> (S, Result<(), WriteError>) {
        let result = self.close();
        (self.sink, result)
    }

    /// Position of the first index section, when there is an index.
    fn write_index(&mut self) -> Option<u64> {
        let slots = core::mem::take(&mut self.index);
        let used = slots.get(..self.indexed).filter(|used| !used.is_empty())?;
        let position = self.position;
        let mut written = self.begin(SectionKind::INDEX);
        for slot in used {
            let entry = IndexEntry {
                kind: Some(slot.kind),
                section: Some(slot.seq),
                position: Some(slot.position),
                length: Some(u64::from(slot.length)),
                records: Some(slot.records),
                ..IndexEntry::default()
            };
            written = written.and(self.put(&entry));
        }
        written.and(self.end()).is_ok().then_some(position)
    }

    #[inline(always)]
    fn append(&mut self, kind: RecordKind, encode: impl FnOnce(&mut Encoder<'_>)) -> bool {
        let Some(open) = &mut self.open else { return false };
        let body = open.used.wrapping_add(RECORD_HEADER_LEN);
        let mut out = Encoder::new(self.buf, body);
        encode(&mut out);
        let Some(end) = out.position() else { return false };
        let len = end.wrapping_sub(body);
        if len > MAX_BODY_LEN {
            return false;
        }
        let header = self.buf.get_mut(open.used..).and_then(|rest| rest.first_chunk_mut::<RECORD_HEADER_LEN>());
        let Some(header) = header else { return false };
        let [l0, l1, l2, ..] = len.to_le_bytes();
        *header = [kind.0, l0, l1, l2];
        open.used = end;
        open.records = open.records.wrapping_add(1);
        true
    }

    /// The slow path of `put`: closes the full section and tries once more in an empty one.
    #[cold]
    fn put_into_next(&mut self, kind: RecordKind, encode: impl FnOnce(&mut Encoder<'_>)) -> Result<(), WriteError> {
        let Some(open) = self.open else { return Err(WriteError::NoSection) };
        let closed = self.begin_with(open.kind, open.flags);
        if !self.append(kind, encode) {
            self.totals.dropped(open.kind, DropReason::TOO_LONG, 0, 1, 0);
            return Err(WriteError::TooLong);
        }
        closed
    }

    fn flush_section(&mut self, open: Open) -> Result<(), WriteError> {
        let payload_len = open.used.saturating_sub(SECTION_HEADER_LEN);
        let packed = if open.flags.contains(Flags::COMPRESSED) { self.pack(open.used) } else { None };
        let flags = Flags(match packed {
            Some(_) => open.flags.0,
            None => open.flags.0 & !Flags::COMPRESSED.0,
        });
        let header = SectionHeader {
            kind: open.kind,
            version: 0,
            flags,
            payload_len: u32::try_from(packed.unwrap_or(payload_len)).unwrap_or(u32::MAX),
            seq: self.seq,
            dump_id: self.file.dump_id,
            position: self.position,
            records: open.records,
        };
        let lost = |totals: &mut Totals, reason| {
            totals.dropped(open.kind, reason, 1, u64::from(open.records), payload_len as u64);
        };
        let reserve = if open.kind == SectionKind::END { 0 } else { END_RESERVE };
        if self.sink.room().is_some_and(|room| header.total_len().saturating_add(reserve) > room) {
            lost(&mut self.totals, DropReason::NO_ROOM);
            return Err(WriteError::NoRoom);
        }
        let buf = match (packed, &mut self.compression) {
            (Some(_), Some(compression)) => &mut *compression.scratch,
            _ => &mut *self.buf,
        };
        let sent = match section::seal(buf, &header) {
            Some(section) => self.sink.write(section),
            None => Err(SinkError { written: 0 }),
        };
        if let Err(error) = sent {
            self.position = self.position.saturating_add(error.written);
            self.seq = self.seq.wrapping_add(u32::from(error.written > 0));
            lost(&mut self.totals, DropReason::SINK_FAILED);
            return Err(WriteError::Sink(error));
        }
        self.note_written(&header);
        Ok(())
    }

    fn note_written(&mut self, header: &SectionHeader) {
        self.totals.written(header.kind, u64::from(header.records), u64::from(header.payload_len));
        match self.index.get_mut(self.indexed) {
            Some(slot) => {
                *slot = IndexSlot {
                    kind: header.kind.0,
                    seq: header.seq,
                    position: header.position,
                    length: header.payload_len,
                    records: header.records,
                };
                self.indexed = self.indexed.wrapping_add(1);
            }
            None if header.kind == SectionKind::INDEX => {}
            None => self.unindexed = self.unindexed.saturating_add(1),
        }
        self.seq = self.seq.wrapping_add(1);
        self.position = self.position.saturating_add(header.total_len());
    }

    /// Compresses the collected payload into the scratch buffer; the length there, or `None` when that does not pay.
    fn pack(&mut self, used: usize) -> Option<usize> {
        let payload = self.buf.get(SECTION_HEADER_LEN..used)?;
        let compression = self.compression.as_mut()?;
        let end = compression.scratch.len().checked_sub(SECTION_TRAILER_LEN)?;
        let room = compression.scratch.get_mut(SECTION_HEADER_LEN..end)?;
        let (length, block) = room.split_first_chunk_mut::<4>()?;
        let packed = lz4::compress(payload, block, compression.table)?.checked_add(4)?;
        *length = u32::try_from(payload.len()).ok()?.to_le_bytes();
        (packed < payload.len()).then_some(packed)
    }
}

//! Collects physical memory for a dump: runs of bytes and of zeros, packed into sections of about a mebibyte.
//!
//! Pages come in ascending order of physical address. Zeros are not stored but counted, so that memory which is zero
//! differs from memory that was not captured. Each section is compressed, and the index says which addresses are in it.

use std::io::Write;

use kwab_format::record::{Memory, RECORD_HEADER_LEN};
use kwab_format::wire::{Encoder, SLACK};
use kwab_format::{RecordType, SectionKind, lz4};

use super::emit::DumpWriter;

/// Bytes of records after which a section is closed.
const SECTION: usize = 1 << 20;
/// The largest run of bytes in one record; a page fits behind it.
const RUN: usize = 256 << 10;
/// Room for a record's header and its numbers.
const OVERHEAD: usize = 64;
/// Bytes of a page: what is looked at for zeros as a whole.
pub const PAGE: usize = 4096;

/// Memory that is being written into `writer`.
#[derive(Debug)]
pub struct BulkMemory {
    records: Vec<u8>,
    count: u32,
    /// Lowest address and the one behind the highest of what is in `records`.
    extent: Option<(u64, u64)>,
    /// The record at hand: its address, its bytes, the zeros behind them.
    start: u64,
    bytes: Vec<u8>,
    zeros: u64,
    table: Box<lz4::Table>,
    totals: Totals,
}

/// Appends a record with `bytes` bytes of content to records of a section; whether it could be encoded.
pub(crate) fn append<'r, R: RecordType<'r>>(records: &mut Vec<u8>, record: &R, bytes: usize) -> bool {
    let at = records.len();
    let body = at + RECORD_HEADER_LEN;
    records.resize(body + bytes + OVERHEAD + SLACK, 0);
    let mut encoder = Encoder::new(records, body);
    record.encode(&mut encoder);
    let end = encoder.position().unwrap_or(at);
    records.truncate(end.max(at));
    if end <= body {
        records.truncate(at);
        return false;
    }
    let [l0, l1, l2, ..] = (end - body).to_le_bytes();
    records[at..body].copy_from_slice(&[R::KIND.0, l0, l1, l2]);
    true
}

/// What was put in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Bytes of memory, zeros included.
    pub bytes: u64,
    /// Bytes of pages that hold only zeros.
    pub zeros: u64,
}

impl Default for BulkMemory {
    fn default() -> Self {
        Self {
            records: Vec::with_capacity(SECTION + RUN + PAGE),
            count: 0,
            extent: None,
            start: 0,
            bytes: Vec::with_capacity(RUN + PAGE),
            zeros: 0,
            table: Box::new([0; lz4::TABLE_LEN]),
            totals: Totals::default(),
        }
    }
}

impl BulkMemory {
    /// Adds memory at `paddr`, at most a page of it.
    pub fn put<W: Write>(&mut self, writer: &mut DumpWriter<W>, paddr: u64, page: &[u8]) {
        let end = self.start.wrapping_add(self.bytes.len() as u64).wrapping_add(self.zeros);
        let zero = page.iter().all(|byte| *byte == 0);
        let begun = !self.bytes.is_empty() || self.zeros > 0;
        if begun && (end != paddr || (!zero && (self.zeros > 0 || self.bytes.len() >= RUN))) {
            self.close_record(writer);
        }
        if self.bytes.is_empty() && self.zeros == 0 {
            self.start = paddr;
        }
        self.totals.bytes += page.len() as u64;
        if zero {
            self.zeros += page.len() as u64;
            self.totals.zeros += page.len() as u64;
        } else {
            self.bytes.extend_from_slice(page);
        }
    }

    /// Adds so many zeros at `paddr`, however many they are.
    pub fn put_zeros<W: Write>(&mut self, writer: &mut DumpWriter<W>, paddr: u64, length: u64) {
        let end = self.start.wrapping_add(self.bytes.len() as u64).wrapping_add(self.zeros);
        let begun = !self.bytes.is_empty() || self.zeros > 0;
        if begun && end != paddr {
            self.close_record(writer);
        }
        if self.bytes.is_empty() && self.zeros == 0 {
            self.start = paddr;
        }
        self.zeros += length;
        self.totals.bytes += length;
        self.totals.zeros += length;
    }

    /// Writes what is left.
    pub fn finish<W: Write>(mut self, writer: &mut DumpWriter<W>) -> Totals {
        self.close_record(writer);
        self.close_section(writer);
        self.totals
    }

    fn close_record<W: Write>(&mut self, writer: &mut DumpWriter<W>) {
        let length = self.bytes.len() as u64 + self.zeros;
        if length == 0 {
            return;
        }
        let record = Memory {
            paddr: Some(self.start),
            bytes: Some(&self.bytes),
            zeros: Some(self.zeros).filter(|zeros| *zeros > 0),
            ..Memory::default()
        };
        self.count += u32::from(append(&mut self.records, &record, self.bytes.len()));
        let low = self.extent.map_or(self.start, |(low, _)| low.min(self.start));
        self.extent = Some((low, self.start.saturating_add(length)));
        self.bytes.clear();
        self.zeros = 0;
        if self.records.len() >= SECTION {
            self.close_section(writer);
        }
    }

    fn close_section<W: Write>(&mut self, writer: &mut DumpWriter<W>) {
        let Some(extent) = self.extent.take() else { return };
        writer.put_compressed(SectionKind::MEMORY, self.count, &self.records, Some(extent), &mut self.table);
        self.records.clear();
        self.count = 0;
    }
}

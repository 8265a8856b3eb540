//! Captured memory as bytes: sixteen in a row, an inspector for what is under the cursor, pointers that can be
//! followed.
//!
//! Only where the pieces lie is kept; their bytes are read from the dump when a row of them is drawn.

use std::fmt::Write as _;
use std::sync::Arc;

use kwab::analysis::text as of_bytes;
use kwab::decode::{Paging, PointerClass, classify_on};
use kwab::format::record::{Memory, MemoryKind, Registers};
use kwab::format::{AnyRecord, RecordType as _, Records, SectionKind};
use kwab::memory::levels;
use kwab::model::payloads::Payloads;
use kwab::report::filter::FieldValue;

use super::{Column, Link, Look, Row, Target, View, number, text};
use crate::text::{Line, address, count};
use crate::theme::Tone;

/// All captured memory as rows of sixteen bytes.
pub struct HexView {
    payloads: Arc<Payloads>,
    pieces: Vec<Piece>,
    rows: usize,
    /// Which addresses the machine can map: what a word may point at.
    paging: Paging,
    /// Pieces that the dump's memory limit left no room for.
    pub left_out: usize,
}

/// What a piece takes of the dump's budget: its offset, its label, and room to grow.
const PRICE: u64 = 3 * size_of::<Piece>() as u64;

/// A captured piece.
struct Piece {
    base: u64,
    length: u64,
    section: u32,
    offset: u32,
    pid: Option<u32>,
    label: String,
    /// The first of its rows.
    first: usize,
    /// The address at the instruction pointer.
    marked: Option<u64>,
}

impl Piece {
    /// The address its first row begins with.
    const fn start(&self) -> u64 {
        self.base & !15
    }

    const fn rows(&self) -> usize {
        ((self.base + self.length).div_ceil(16) - self.base / 16) as usize
    }
}

impl HexView {
    /// Looks for captured memory in all sections that may hold some; user pieces of other processes come last.
    #[must_use]
    pub fn new(payloads: Arc<Payloads>) -> Self {
        let (mut pieces, mut left_out, mut paging) = (Vec::new(), 0, Paging::default());
        let file = payloads.file();
        let may_hold = |kind| {
            matches!(
                kind,
                SectionKind::MEMORY
                    | SectionKind::STACKS
                    | SectionKind::REGISTERS
                    | SectionKind::CAUSE
                    | SectionKind::PAGE_TABLE
            )
        };
        for (section, _) in file.sections.iter().enumerate().filter(|(_, info)| may_hold(info.header.kind)) {
            let Ok(payload) = file.payload(section) else { continue };
            let mut records = Records::new(&payload);
            let mut at = 0;
            while let Some(raw) = records.next() {
                let offset = at;
                at = payload.len() - records.rest().len();
                if raw.kind == Registers::KIND
                    && let Ok(AnyRecord::Registers(set)) = raw.decode()
                {
                    paging.arch = paging.arch.or(set.arch);
                    paging.five_levels |= levels(std::iter::once(set)) == 5;
                }
                if raw.kind == Memory::KIND
                    && let Ok(AnyRecord::Memory(memory)) = raw.decode()
                {
                    if file.budget.take(PRICE) {
                        pieces.extend(piece(&memory, section, offset));
                    } else {
                        left_out += 1;
                    }
                }
            }
        }
        pieces.sort_by_key(|piece| (piece.base, piece.pid));
        let mut rows = 0;
        for piece in &mut pieces {
            piece.first = rows;
            rows += piece.rows();
        }
        Self { payloads, pieces, rows, paging, left_out }
    }

    fn piece_of(&self, row: usize) -> Option<&Piece> {
        let at = self.pieces.partition_point(|piece| piece.first <= row).checked_sub(1)?;
        self.pieces.get(at)
    }

    fn address_of(&self, row: usize) -> Option<u64> {
        let piece = self.piece_of(row)?;
        Some(piece.start() + 16 * (row - piece.first) as u64)
    }

    /// The captured bytes from an address on, of the piece that a row belongs to.
    fn read(&self, piece: &Piece, from: u64, length: usize) -> Vec<u8> {
        let Some(skip) = from.checked_sub(piece.base).and_then(|skip| usize::try_from(skip).ok()) else {
            return Vec::new();
        };
        let bytes = self.payloads.record(piece.section as usize, piece.offset as usize, |raw| match raw.decode() {
            Ok(AnyRecord::Memory(memory)) => {
                let bytes = memory.bytes.unwrap_or_default();
                let rest = bytes.get(skip..).unwrap_or_default();
                rest[..rest.len().min(length)].to_vec()
            }
            _ => Vec::new(),
        });
        bytes.unwrap_or_default()
    }

    /// The address of a row and its sixteen bytes; `None` for a byte that was not captured.
    fn cells(&self, row: usize) -> Option<(u64, [Option<u8>; 16])> {
        let piece = self.piece_of(row)?;
        let at = self.address_of(row)?;
        let from = at.max(piece.base);
        let skip = usize::try_from(from - at).ok()?;
        let mut cells = [None; 16];
        for (cell, byte) in cells[skip..].iter_mut().zip(self.read(piece, from, 16 - skip)) {
            *cell = Some(byte);
        }
        Some((at, cells))
    }

    /// The bytes under the cursor, up to eight.
    fn under(&self, row: usize, look: &Look) -> Option<(u64, Vec<u8>)> {
        let piece = self.piece_of(row)?;
        let at = self.address_of(row)? + u64::from(look.byte);
        Some((at, self.read(piece, at, 8)))
    }

    /// The word under the cursor as a pointer.
    fn pointer(&self, row: usize, look: &Look) -> Option<u64> {
        let piece = self.piece_of(row)?;
        let aligned = (self.address_of(row)? + u64::from(look.byte)) & !7;
        let bytes = self.read(piece, aligned, 8);
        let word: [u8; 8] = bytes.try_into().ok()?;
        Some(if look.big_endian { u64::from_be_bytes(word) } else { u64::from_le_bytes(word) })
    }

    fn holds(&self, addr: u64) -> Option<(usize, u8)> {
        let inside = |piece: &&Piece| addr >= piece.base && addr - piece.base < piece.length;
        let piece = self.pieces.iter().find(inside)?;
        let row = piece.first + usize::try_from((addr - piece.start()) / 16).ok()?;
        Some((row, (addr % 16) as u8))
    }
}

fn piece(memory: &Memory<'_>, section: usize, offset: usize) -> Option<Piece> {
    let base = memory.vaddr.or(memory.paddr)?;
    let length = memory.bytes?.len() as u64;
    if length == 0 || base.checked_add(length + 16).is_none() {
        return None;
    }
    let kind = memory.kind.and_then(MemoryKind::name).unwrap_or("memory");
    let said = memory.label.map(|label| of_bytes(Some(label)));
    Some(Piece {
        base,
        length,
        section: u32::try_from(section).ok()?,
        offset: u32::try_from(offset).ok()?,
        pid: memory.pid,
        label: said.map_or_else(|| kind.to_string(), |said| format!("{kind}: {said}")),
        first: 0,
        marked: memory.marked.and_then(|marked| base.checked_add(marked)),
    })
}

const COLUMNS: &[Column] =
    &[Column::new("address", 18, 0), Column::new("bytes", 50, 0), Column::new("text", 16, 1), Column::rest("")];

/// The same where the bytes stand in pairs, so that eighty columns have room for the text.
const PAIRED: &[Column] =
    &[Column::new("address", 18, 0), Column::new("bytes", 40, 0), Column::new("text", 16, 1), Column::rest("")];

/// What `COLUMNS` takes: below it bytes stand in pairs.
const WIDE: u16 = 88;

/// A byte as text.
fn shown(byte: u8) -> char {
    if byte.is_ascii_graphic() || byte == b' ' { char::from(byte) } else { '.' }
}

/// Bytes in groups of the word's size, the word in its byte order.
fn grouped(cells: &[Option<u8>; 16], look: &Look) -> String {
    let size = usize::from(look.word.clamp(1, 8));
    let mut out = String::new();
    for (index, word) in cells.chunks(size).enumerate() {
        out.extend(std::iter::repeat_n(' ', gaps(index, size, look)));
        let byte = |cell: &Option<u8>, out: &mut String| {
            let _ = match cell {
                Some(byte) => write!(out, "{byte:02x}"),
                None => write!(out, "··"),
            };
        };
        // The most significant byte is written first.
        if look.big_endian || size == 1 {
            word.iter().for_each(|cell| byte(cell, &mut out));
        } else {
            word.iter().rev().for_each(|cell| byte(cell, &mut out));
        }
    }
    out
}

/// Spaces between a word and the one before it.
const fn gaps(word: usize, size: usize, look: &Look) -> usize {
    let joined = size == 1 && look.room < WIDE && word % 2 == 1;
    if word == 0 || joined { 0 } else { 1 + (word * size == 8) as usize }
}

/// Where the byte under the cursor is drawn in the column of bytes.
#[must_use]
pub fn cursor_column(look: &Look) -> usize {
    let size = usize::from(look.word.clamp(1, 8));
    let byte = usize::from(look.byte.min(15));
    let (word, within) = (byte / size, byte % size);
    let within = if look.big_endian || size == 1 { within } else { size - 1 - within };
    let before: usize = (0..=word).map(|word| gaps(word, size, look)).sum();
    word * 2 * size + before + 2 * within
}

impl View for HexView {
    fn columns(&self) -> &[Column] {
        COLUMNS
    }

    fn columns_in(&self, room: u16) -> &[Column] {
        if room < WIDE { PAIRED } else { COLUMNS }
    }

    fn len(&self) -> usize {
        self.rows
    }

    fn row(&self, row: usize, look: &Look) -> Row {
        let Some((at, cells)) = self.cells(row) else { return Row::default() };
        let shown: String = cells.iter().map(|cell| cell.map_or(' ', shown)).collect();
        let piece = self.piece_of(row);
        let label = piece.filter(|piece| piece.first == row).map_or(String::new(), |piece| piece.label.clone());
        let marked = piece.and_then(|piece| piece.marked).is_some_and(|marked| (at..at + 16).contains(&marked));
        let label = if marked { format!("◀ ip {label}") } else { label };
        let quiet = cells.iter().all(|cell| matches!(cell, None | Some(0)));
        let tone = if quiet { Tone::Dim } else { Tone::Plain };
        Row::of(tone, [address(at), grouped(&cells, look), shown, label])
            .tone(0, Tone::Dim)
            .tone(2, Tone::Code)
            .tone(3, Tone::Care)
    }

    fn detail(&self, row: usize, look: &Look) -> Vec<Line> {
        let Some((at, bytes)) = self.under(row, look) else { return Vec::new() };
        let piece = self.piece_of(row);
        let mut lines = vec![Line::of(Tone::Head, format!("byte {}", address(at)))];
        if let Some(piece) = piece {
            lines.push(Line::field(
                "piece",
                format!("{} of {:#x} bytes at {:#x}", piece.label, piece.length, piece.base),
            ));
            lines.extend(piece.pid.map(|pid| Line::field("process", pid.to_string())));
        }
        if bytes.is_empty() {
            lines.push(Line::of(Tone::Dim, "not captured"));
            return lines;
        }
        let row_text: String = self
            .cells(row)
            .map_or(String::new(), |(_, cells)| cells.iter().map(|cell| cell.map_or(' ', shown)).collect());
        lines.push(Line::field("text", "").and(Tone::Code, row_text));
        for size in [1usize, 2, 4, 8].into_iter().filter(|size| bytes.len() >= *size) {
            let value = bytes[..size].iter().enumerate().fold(0u64, |value, (index, byte)| {
                let shift = if look.big_endian { size - 1 - index } else { index };
                value | u64::from(*byte) << (8 * shift)
            });
            let signed = (value << (64 - 8 * size)) as i64 >> (64 - 8 * size);
            lines.push(Line::field(&format!("{} bits", 8 * size), format!("{value:#x}  {value}  {signed}")));
        }
        if let Some(pointer) = self.pointer(row, look) {
            let is = match classify_on(self.paging, pointer) {
                PointerClass::Null => "null".to_string(),
                PointerClass::NearNull => "near null: a number, or a field of a null pointer".to_string(),
                PointerClass::Poison(what) => what.to_string(),
                _ if self.holds(pointer).is_some() => "captured: ↵ follows".to_string(),
                PointerClass::User => "user address, not captured".to_string(),
                PointerClass::Kernel => "kernel address, not captured".to_string(),
                PointerClass::BelowNull | PointerClass::NonCanonical => "no address".to_string(),
            };
            lines.push(Line::field("pointer", address(pointer)).and(Tone::Care, format!("  {is}")));
        }
        lines.push(Line::of(
            Tone::Dim,
            format!(
                "{} endian, words of {}",
                if look.big_endian { "big" } else { "little" },
                count(usize::from(look.word), "byte", "bytes")
            ),
        ));
        lines
    }

    fn links(&self, row: usize, look: &Look) -> Vec<Link> {
        let mut links = Vec::new();
        if let Some(pointer) = self.pointer(row, look).filter(|pointer| *pointer > 0xffff) {
            if self.holds(pointer).is_some() {
                links.push(Link::new(format!("bytes at {pointer:#x}"), Target::Bytes(pointer)));
            }
            links.push(Link::new(format!("mapping of {pointer:#x}"), Target::Mapping(pointer)));
        }
        if let Some(at) = self.address_of(row) {
            links.push(Link::new(format!("mapping of {at:#x}, this byte"), Target::Mapping(at)));
        }
        links
    }

    fn target(&self, row: usize, look: &Look) -> Option<Target> {
        self.address_of(row).map(|at| Target::Bytes(at + u64::from(look.byte)))
    }

    fn find(&self, target: &Target) -> Option<usize> {
        match target {
            Target::Bytes(addr) => self.holds(*addr).map(|found| found.0),
            Target::Record(at) => {
                let number = |piece: &Piece| {
                    let section = self.payloads.file().sections.get(piece.section as usize)?;
                    Some(section.header.seq)
                };
                let payload = self.pieces.iter().filter(|piece| number(piece) == Some(at.section));
                let payload = payload.filter_map(|piece| {
                    let payload = self.payloads.get(piece.section as usize).ok()?;
                    let mut records = Records::new(&payload);
                    for _ in 0..at.record {
                        records.next()?;
                    }
                    ((payload.len() - records.rest().len()) == piece.offset as usize).then_some(piece.first)
                });
                payload.min()
            }
            _ => None,
        }
    }

    fn byte_of(&self, target: &Target) -> Option<u8> {
        match target {
            Target::Bytes(addr) => self.holds(*addr).map(|found| found.1),
            _ => None,
        }
    }

    fn fields(&self) -> &'static [&'static str] {
        &["addr", "word", "pid", "piece"]
    }

    fn field(&self, row: usize, name: &str) -> Option<FieldValue<'static>> {
        match name {
            "addr" => number(self.address_of(row)?),
            "pid" => number(self.piece_of(row)?.pid?),
            "piece" => text(self.piece_of(row)?.label.clone()),
            "word" => {
                let word =
                    |byte| self.pointer(row, &Look { byte, ..Look::default() }).map(|word| format!("{word:#018x}"));
                text([word(0), word(8)].into_iter().flatten().collect::<Vec<_>>().join(" "))
            }
            _ => None,
        }
    }

    /// Bytes with and without spaces, and the text: a search for `48 8b`, `488b` and `root:` all work.
    fn text(&self, row: usize) -> String {
        let Some((at, cells)) = self.cells(row) else { return String::new() };
        let hex: Vec<String> = cells.iter().flatten().map(|byte| format!("{byte:02x}")).collect();
        let shown: String = cells
            .iter()
            .flatten()
            .map(|byte| if byte.is_ascii_graphic() || *byte == b' ' { char::from(*byte) } else { '.' })
            .collect();
        format!("{} {} {} {shown}", address(at), hex.join(" "), hex.concat())
    }

    fn alike(&self, row: usize) -> String {
        self.address_of(row).map(address).unwrap_or_default()
    }

    fn command(&self, dump: &str) -> String {
        format!("kwab inspect {dump} --section memory")
    }

    fn when_empty(&self) -> String {
        "no memory was captured in this dump: logs hold a few words of stack, kernels write pages with debug=dump"
            .to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cursor_stands_on_its_byte_in_every_word_size_order_and_width() {
        let cells: [Option<u8>; 16] = std::array::from_fn(|index| Some(index as u8));
        let looks = [1, 2, 4, 8].into_iter().flat_map(|word| {
            [(false, WIDE), (false, WIDE - 1), (true, WIDE), (true, WIDE - 1)].map(|(big_endian, room)| Look {
                word,
                big_endian,
                room,
                ..Look::default()
            })
        });
        for look in looks {
            let shown = grouped(&cells, &look);
            let column = if look.room < WIDE { PAIRED[1].width } else { COLUMNS[1].width };
            assert!(shown.len() <= usize::from(column), "{look:?} {shown}");
            for byte in 0..16 {
                let at = cursor_column(&Look { byte, ..look });
                assert_eq!(&shown[at..at + 2], format!("{byte:02x}"), "{look:?} {shown}");
            }
        }
    }
}

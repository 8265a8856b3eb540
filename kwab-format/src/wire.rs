//! Decides how a record's fields become bytes: one key byte, then an integer of 0, 1, 2, 4, 6 or 8 bytes or a run of
//! bytes.
//!
//! A key is `number << 3 | code`. Codes 0 to 5 are little-endian integers whose width the code gives, 6 is a length and
//! that many bytes, 7 is reserved. Numbers 31 to 255 take a second key byte. The writer always takes the narrowest code
//! that holds the value, so equal records are equal bytes. Signed numbers are zigzag-coded first.
//!
//! The encoder stores eight bytes whatever the width and then advances by the width, which is why it wants
//! [`SLACK`] bytes of room beyond what it keeps; that makes a field about one nanosecond.

use crate::schema::{FieldSchema, Shape};

/// Bytes of room that must remain behind the last field while encoding.
pub const SLACK: usize = 16;

/// Code of a field that holds a run of bytes.
pub const CODE_BYTES: u8 = 6;

/// Field numbers from here on take a second key byte.
pub const FIRST_WIDE_NUMBER: u8 = 31;

/// Why a record's fields could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireError {
    /// The bytes end inside a field; `at` is the offset of its key within the record's body.
    Short {
        /// Offset of the key in the body.
        at: u32,
    },
    /// Field `number` has the reserved code 7.
    ReservedCode {
        /// The field's number.
        number: u8,
    },
    /// Field `number` holds another shape than its definition: an integer where bytes belong, or out of range.
    BadShape {
        /// The field's number.
        number: u8,
    },
}

impl core::fmt::Display for WireError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Short { at } => write!(f, "the record ends inside the field at byte {at}"),
            Self::ReservedCode { number } => write!(f, "field {number} has the reserved wire code 7"),
            Self::BadShape { number } => write!(f, "field {number} does not hold what its definition says"),
        }
    }
}

impl core::error::Error for WireError {}

/// A set of numbered fields: a record's body, or an element of a [`List`](crate::List).
pub trait Fields<'a>: Copy + Default + PartialEq + core::fmt::Debug {
    /// The name in documents.
    const NAME: &'static str;

    /// The fields in ascending order of their numbers.
    const FIELDS: &'static [FieldSchema];

    /// Appends the fields that are present, in ascending order of their numbers.
    fn encode(&self, out: &mut Encoder<'_>);

    /// Takes one field; `Ok(false)` says that the number is not known here.
    ///
    /// # Errors
    /// [`WireError::BadShape`] when the number is known and the value cannot be its.
    fn set(&mut self, number: u8, raw: Raw<'a>) -> Result<bool, WireError>;

    /// Reads a body; fields with unknown numbers are skipped and counted.
    ///
    /// # Errors
    /// The first field that is cut, reserved or of the wrong shape.
    fn decode(body: &'a [u8]) -> Result<(Self, u32), WireError> {
        let mut value = Self::default();
        let mut unknown = 0u32;
        let mut fields = FieldIter::new(body);
        while let Some((number, raw)) = fields.next_field()? {
            if !value.set(number, raw)? {
                unknown = unknown.saturating_add(1);
            }
        }
        Ok((value, unknown))
    }
}

/// The number in a record header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordKind(pub u8);

/// A kind of record: fields under a record header.
///
/// The records of the format are in [`record`](crate::record). A program may add its own under the numbers 200 to 249,
/// which are for private use; a reader without it skips them and keeps them as they stand.
///
/// ```
/// use kwab_format::wire::{Encoder, Raw, Value};
/// use kwab_format::*;
///
/// /// How warm the machine was.
/// #[derive(Clone, Copy, Debug, Default, PartialEq)]
/// struct Temperature<'a> {
///     millidegrees: Option<i64>,
///     sensor: Option<&'a [u8]>,
/// }
///
/// impl<'a> Fields<'a> for Temperature<'a> {
///     const NAME: &'static str = "Temperature";
///     const FIELDS: &'static [FieldSchema] = &[
///         FieldSchema { number: 1, name: "millidegrees", shape: i64::SHAPE },
///         FieldSchema { number: 2, name: "sensor", shape: <&[u8]>::SHAPE },
///     ];
///
///     fn encode(&self, out: &mut Encoder<'_>) {
///         self.millidegrees.iter().for_each(|value| value.put(1, out));
///         self.sensor.iter().for_each(|value| value.put(2, out));
///     }
///
///     fn set(&mut self, number: u8, raw: Raw<'a>) -> Result<bool, WireError> {
///         match number {
///             1 => self.millidegrees = Some(Value::get(raw).ok_or(WireError::BadShape { number })?),
///             2 => self.sensor = Some(Value::get(raw).ok_or(WireError::BadShape { number })?),
///             _ => return Ok(false),
///         }
///         Ok(true)
///     }
/// }
///
/// impl<'a> RecordType<'a> for Temperature<'a> {
///     const KIND: RecordKind = RecordKind(200);
/// }
///
/// let (mut region, mut buffer) = ([0; 4096], [0; MIN_BUFFER]);
/// let header = FileHeader::new(DumpId(7), BootId::default());
/// let mut writer = Writer::new(SliceSink::new(&mut region), &mut buffer, header);
/// let warm = Temperature { millidegrees: Some(-40_000), sensor: Some(b"cpu0") };
/// writer.begin(SectionKind::COUNTERS)?;
/// writer.put(&warm)?;
/// let (sink, result) = writer.finish();
/// result?;
///
/// let reader = Reader::new(sink.written()).expect("just written");
/// let records = reader.sections().filter_map(|item| match item {
///     Item::Section(section) => Some(section.records()),
///     Item::Defect(_) => None,
/// });
/// let found = records.flatten().find(|record| record.kind == Temperature::KIND).expect("it was put");
/// assert_eq!(Temperature::decode(found.body), Ok((warm, 0)));
/// // A reader without the type keeps the record as it stands.
/// assert_eq!(found.decode(), Ok(AnyRecord::Unknown(found)));
/// # Ok::<(), WriteError>(())
/// ```
pub trait RecordType<'a>: Fields<'a> {
    /// The number that stands in the record header.
    const KIND: RecordKind;
}

/// The raw value of one field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Raw<'a> {
    /// Codes 0 to 5.
    Int(u64),
    /// Code 6: a length and that many bytes.
    Bytes(&'a [u8]),
}

/// A type that a field can hold.
pub trait Value<'a>: Sized {
    /// How the documentation names it.
    const SHAPE: Shape;
    /// Appends the field.
    fn put(&self, number: u8, out: &mut Encoder<'_>);
    /// Reads it back; `None` when `raw` cannot be this type.
    fn get(raw: Raw<'a>) -> Option<Self>;
}

macro_rules! unsigned {
    ($($t:ty),*) => {$(
        impl<'a> Value<'a> for $t {
            const SHAPE: Shape = Shape::Unsigned(<$t>::BITS);
            #[inline(always)]
            fn put(&self, number: u8, out: &mut Encoder<'_>) {
                out.int(number, u64::from(*self));
            }
            #[inline(always)]
            fn get(raw: Raw<'a>) -> Option<Self> {
                match raw {
                    Raw::Int(v) => Self::try_from(v).ok(),
                    Raw::Bytes(_) => None,
                }
            }
        }
    )*};
}
unsigned!(u8, u16, u32, u64);

impl<'a> Value<'a> for i64 {
    const SHAPE: Shape = Shape::Signed;
    #[inline(always)]
    fn put(&self, number: u8, out: &mut Encoder<'_>) {
        out.int(number, zigzag(*self));
    }
    #[inline(always)]
    fn get(raw: Raw<'a>) -> Option<Self> {
        match raw {
            Raw::Int(v) => Some(unzigzag(v)),
            Raw::Bytes(_) => None,
        }
    }
}

impl<'a> Value<'a> for bool {
    const SHAPE: Shape = Shape::Bool;
    #[inline(always)]
    fn put(&self, number: u8, out: &mut Encoder<'_>) {
        out.int(number, u64::from(*self));
    }
    #[inline(always)]
    fn get(raw: Raw<'a>) -> Option<Self> {
        match raw {
            Raw::Int(0) => Some(false),
            Raw::Int(1) => Some(true),
            _ => None,
        }
    }
}

impl<'a> Value<'a> for &'a [u8] {
    const SHAPE: Shape = Shape::Bytes;
    #[inline(always)]
    fn put(&self, number: u8, out: &mut Encoder<'_>) {
        out.bytes(number, self);
    }
    #[inline(always)]
    fn get(raw: Raw<'a>) -> Option<Self> {
        match raw {
            Raw::Int(_) => None,
            Raw::Bytes(b) => Some(b),
        }
    }
}

/// Maps small magnitudes to small codes: 0, -1, 1, -2, 2 … become 0, 1, 2, 3, 4 …
#[must_use]
pub const fn zigzag(v: i64) -> u64 {
    (v.wrapping_shl(1) ^ v.wrapping_shr(63)).cast_unsigned()
}

/// The inverse of [`zigzag`].
#[must_use]
pub const fn unzigzag(v: u64) -> i64 {
    (v >> 1).cast_signed() ^ (v & 1).cast_signed().wrapping_neg()
}

/// Appends fields to a buffer; when the buffer is full it remembers so and writes nothing more.
#[derive(Debug)]
pub struct Encoder<'b> {
    buf: &'b mut [u8],
    pos: usize,
    full: bool,
}

impl<'b> Encoder<'b> {
    /// Starts at byte `pos` of `buf`; [`SLACK`] bytes at the end of `buf` stay unused.
    #[inline(always)]
    pub fn new(buf: &'b mut [u8], pos: usize) -> Self {
        let full = pos > buf.len();
        Self { buf, pos, full }
    }

    /// Where the next byte goes, or `None` when something did not fit.
    #[inline(always)]
    #[must_use]
    pub fn position(&self) -> Option<usize> {
        (!self.full).then_some(self.pos)
    }

    /// Appends field `number` as an integer of the narrowest width.
    #[inline(always)]
    pub fn int(&mut self, number: u8, value: u64) {
        self.key(number);
        let (code, width) = width_of(value);
        let Some(room) = self.room::<SLACK>() else { return };
        let [last_key, low @ ..] = room;
        *last_key = if number < FIRST_WIDE_NUMBER { number << 3 | code } else { number };
        if let Some(low) = low.first_chunk_mut::<8>() {
            *low = value.to_le_bytes();
        }
        if number >= FIRST_WIDE_NUMBER {
            self.patch_wide(code);
        }
        self.pos = self.pos.wrapping_add(1).wrapping_add(width);
    }

    /// Appends field `number` as a run of bytes.
    #[inline(always)]
    pub fn bytes(&mut self, number: u8, bytes: &[u8]) {
        self.key(number);
        let Some(room) = self.room::<SLACK>() else { return };
        let [last_key, _rest @ ..] = room;
        *last_key = if number < FIRST_WIDE_NUMBER { number << 3 | CODE_BYTES } else { number };
        if number >= FIRST_WIDE_NUMBER {
            self.patch_wide(CODE_BYTES);
        }
        self.pos = self.pos.wrapping_add(1);
        self.length(bytes.len());
        self.raw(bytes);
    }

    /// Appends field `number` as the bytes that `body` appends.
    pub fn nested(&mut self, number: u8, body: impl FnOnce(&mut Self)) {
        self.bytes_key(number);
        self.prefixed(body);
    }

    /// Appends a length and the bytes that `body` appends; the length is written when it is known.
    pub fn prefixed(&mut self, body: impl FnOnce(&mut Self)) {
        let start = self.pos;
        self.length(0);
        let first = self.pos;
        body(self);
        if self.full {
            return;
        }
        let len = self.pos.wrapping_sub(first);
        let shift = length_width(len).wrapping_sub(1);
        if shift > 0 {
            if self.pos.saturating_add(shift).saturating_add(SLACK) > self.buf.len() {
                self.full = true;
                return;
            }
            self.make_room(first, len, shift);
        }
        self.pos = start;
        self.length(len);
        self.pos = self.pos.wrapping_add(len);
    }

    /// Appends bytes that are already encoded.
    pub fn append(&mut self, bytes: &[u8]) {
        self.raw(bytes);
    }

    /// Moves `len` bytes at `first` up by `shift`; back to front, since they overlap. `copy_within` could panic.
    fn make_room(&mut self, first: usize, len: usize, shift: usize) {
        let Some(region) = self.buf.get_mut(first..) else { return };
        for from in (0..len).rev() {
            let byte = region.get(from).copied();
            if let (Some(byte), Some(to)) = (byte, region.get_mut(from.wrapping_add(shift))) {
                *to = byte;
            }
        }
    }

    fn bytes_key(&mut self, number: u8) {
        self.key(number);
        let Some([first, ..]) = self.room::<SLACK>() else { return };
        *first = if number < FIRST_WIDE_NUMBER { number << 3 | CODE_BYTES } else { number };
        if number >= FIRST_WIDE_NUMBER {
            self.patch_wide(CODE_BYTES);
        }
        self.pos = self.pos.wrapping_add(1);
    }

    /// Leaves room for the first byte of a wide key; the code is patched in when it is known.
    #[inline(always)]
    fn key(&mut self, number: u8) {
        if number >= FIRST_WIDE_NUMBER {
            self.pos = self.pos.wrapping_add(1);
        }
    }

    #[inline(always)]
    fn patch_wide(&mut self, code: u8) {
        if let Some(b) = self.buf.get_mut(self.pos.wrapping_sub(1)) {
            *b = FIRST_WIDE_NUMBER << 3 | code;
        }
    }

    #[inline(always)]
    fn length(&mut self, len: usize) {
        let Some(room) = self.room::<SLACK>() else { return };
        let [a, b, c, d, e, ..] = room;
        let [l0, l1, l2, l3, ..] = len.to_le_bytes();
        let width = length_width(len);
        match width {
            1 => *a = l0,
            3 => (*a, *b, *c) = (LEN_U16, l0, l1),
            _ => (*a, *b, *c, *d, *e) = (LEN_U32, l0, l1, l2, l3),
        }
        self.pos = self.pos.wrapping_add(width);
    }

    #[inline(always)]
    fn raw(&mut self, bytes: &[u8]) {
        let rest = self.buf.get_mut(self.pos..).unwrap_or_default();
        if rest.len() < bytes.len().wrapping_add(SLACK) {
            self.full = true;
            return;
        }
        if let Some(dst) = rest.get_mut(..bytes.len()) {
            copy(dst, bytes);
        }
        self.pos = self.pos.wrapping_add(bytes.len());
    }

    #[inline(always)]
    fn room<const N: usize>(&mut self) -> Option<&mut [u8; N]> {
        if self.full {
            return None;
        }
        let room = self.buf.get_mut(self.pos..).and_then(|s| s.first_chunk_mut::<N>());
        if room.is_none() {
            self.full = true;
        }
        room
    }
}

const LEN_U16: u8 = 254;
const LEN_U32: u8 = 255;

const fn length_width(len: usize) -> usize {
    match len {
        0..=253 => 1,
        254..=0xFFFF => 3,
        _ => 5,
    }
}

/// Code and byte width of the narrowest integer that holds `value`.
#[inline(always)]
fn width_of(value: u64) -> (u8, usize) {
    // Bit `n` for a value of `n` bits, at most bit 63: never zero, so that one instruction finds it.
    let marked = value | value.wrapping_shl(1) | 1;
    let bits = 63u32.wrapping_sub(marked.leading_zeros());
    // Two tables packed into constants would save nothing: both sit in one cache line.
    CODES.get(bits as usize).copied().map_or((5, 8), |(code, width)| (code, width as usize))
}

#[expect(clippy::indexing_slicing, reason = "evaluated at compile time")]
static CODES: [(u8, u8); 64] = {
    let mut table = [(5, 8); 64];
    let mut bits = 0;
    while bits < 64 {
        table[bits] = match bits {
            0 => (0, 0),
            1..=8 => (1, 1),
            9..=16 => (2, 2),
            17..=32 => (3, 4),
            33..=48 => (4, 6),
            _ => (5, 8),
        };
        bits += 1;
    }
    table
};

/// Copies as many bytes as both have. That both slices have the same length is plain to the compiler here, so that the
/// panic of `copy_from_slice` is not in the kernel's binary.
#[inline(always)]
pub(crate) fn copy(to: &mut [u8], from: &[u8]) {
    let len = to.len().min(from.len());
    if let (Some(to), Some(from)) = (to.get_mut(..len), from.get(..len)) {
        to.copy_from_slice(from);
    }
}

/// Walks the fields of a body.
#[derive(Clone, Copy, Debug)]
pub struct FieldIter<'a> {
    body: &'a [u8],
    rest: &'a [u8],
}

impl<'a> FieldIter<'a> {
    /// Starts at the first field.
    #[must_use]
    pub const fn new(body: &'a [u8]) -> Self {
        Self { body, rest: body }
    }

    /// The next field's number and value, or `None` at the end of the body.
    ///
    /// # Errors
    /// A cut field or a reserved code; the walk is over then.
    #[inline(always)]
    pub fn next_field(&mut self) -> Result<Option<(u8, Raw<'a>)>, WireError> {
        let Some((&key, after_key)) = self.rest.split_first() else { return Ok(None) };
        let at = self.body.len().wrapping_sub(self.rest.len());
        let short = WireError::Short { at: u32::try_from(at).unwrap_or(u32::MAX) };
        let mut number = key >> 3;
        let mut rest = after_key;
        if number == FIRST_WIDE_NUMBER {
            let (&wide, after) = rest.split_first().ok_or(short)?;
            number = wide;
            rest = after;
        }
        let raw = match key & 7 {
            CODE_BYTES => {
                let (bytes, after) = split_prefixed(rest).ok_or(short)?;
                rest = after;
                Raw::Bytes(bytes)
            }
            7 => return Err(WireError::ReservedCode { number }),
            code => {
                let (value, after) = split_int(rest, code).ok_or(short)?;
                rest = after;
                Raw::Int(value)
            }
        };
        self.rest = rest;
        Ok(Some((number, raw)))
    }
}

#[inline(always)]
fn split_int(bytes: &[u8], code: u8) -> Option<(u64, &[u8])> {
    let (width, mask) = match code {
        0 => (0, 0),
        1 => (1, 0xFF),
        2 => (2, 0xFFFF),
        3 => (4, 0xFFFF_FFFF),
        4 => (6, 0xFFFF_FFFF_FFFF),
        _ => (8, u64::MAX),
    };
    let rest = bytes.get(width..)?;
    if let Some(word) = bytes.first_chunk::<8>() {
        return Some((u64::from_le_bytes(*word) & mask, rest));
    }
    let mut word = [0u8; 8];
    copy(&mut word, bytes.get(..width)?);
    Some((u64::from_le_bytes(word), rest))
}

/// Splits `length, bytes` off the front.
#[inline(always)]
pub(crate) fn split_prefixed(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&first, rest) = bytes.split_first()?;
    let (len, rest) = match first {
        LEN_U16 => {
            let (len, rest) = rest.split_first_chunk::<2>()?;
            (usize::from(u16::from_le_bytes(*len)), rest)
        }
        LEN_U32 => {
            let (len, rest) = rest.split_first_chunk::<4>()?;
            (usize::try_from(u32::from_le_bytes(*len)).ok()?, rest)
        }
        short => (usize::from(short), rest),
    };
    rest.split_at_checked(len)
}

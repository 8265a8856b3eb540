//! Owns one section as it stands in a dump: its payload, the checksum over it, and the records inside.

use crate::defect::{Defect, DefectKind};
use crate::lz4;
use crate::record::Records;
use crate::section::{
    Flags, MAX_PAYLOAD_LEN, PAYLOAD_CRC_START, SECTION_HEADER_LEN, SECTION_TRAILER_LEN, SectionHeader,
};

/// A section that was found: its header, where it lies, and its payload as stored.
#[derive(Clone, Copy, Debug)]
pub struct Section<'a> {
    /// The header; its CRC is right.
    pub header: SectionHeader,
    /// Where the header stands in the bytes that were read.
    pub offset: usize,
    /// Its payload, packed when [`Flags::COMPRESSED`] is set.
    pub payload: &'a [u8],
    /// What the payload's CRC is taken of: the header's CRC and the payload.
    covered: &'a [u8],
    stored_crc: u32,
}

impl<'a> Section<'a> {
    /// Takes a whole section from the front of `bytes`, for readers that seek; `offset` is only remembered. The header
    /// is checked, the payload is not.
    #[must_use]
    pub fn parse(bytes: &'a [u8], offset: usize) -> Option<Self> {
        let header = SectionHeader::decode(bytes.first_chunk::<SECTION_HEADER_LEN>()?).ok()?;
        let whole = bytes.get(PAYLOAD_CRC_START..usize::try_from(header.total_len()).ok()?)?;
        let (covered, crc) = whole.split_last_chunk::<SECTION_TRAILER_LEN>()?;
        let payload = covered.get(SECTION_HEADER_LEN.wrapping_sub(PAYLOAD_CRC_START)..)?;
        Some(Section { header, offset, payload, covered, stored_crc: u32::from_le_bytes(*crc) })
    }

    /// Checks the payload's CRC.
    ///
    /// # Errors
    /// [`DefectKind::BadPayload`].
    pub fn verify(&self) -> Result<(), Defect> {
        let computed = crc32fast::hash(self.covered);
        if computed == self.stored_crc {
            return Ok(());
        }
        Err(self.defect(DefectKind::BadPayload { stored: self.stored_crc, computed }))
    }

    /// Bytes of records in it; a compressed section claims them, at most 16 MiB. 0 when what it claims is not allowed,
    /// and when the section's version is not known.
    #[must_use]
    pub fn unpacked_len(&self) -> usize {
        if !self.holds_records() {
            return 0;
        }
        if !self.header.flags.contains(Flags::COMPRESSED) {
            return self.payload.len();
        }
        self.claimed_len().unwrap_or_default()
    }

    /// Whether the payload is a run of records, packed or not: not known of a later section version.
    const fn holds_records(&self) -> bool {
        self.header.version == 0
    }

    /// The length that a compressed payload begins with, when it is allowed.
    fn claimed_len(&self) -> Option<usize> {
        let claimed = u32::from_le_bytes(*self.payload.first_chunk::<4>()?);
        if claimed > MAX_PAYLOAD_LEN { None } else { usize::try_from(claimed).ok() }
    }

    /// The records' bytes, none when the section's version is not known; `scratch` of
    /// [`unpacked_len`](Self::unpacked_len) bytes is only needed when it is compressed.
    ///
    /// # Errors
    /// [`DefectKind::BadCompression`] when it does not unpack to the claimed length within `scratch`.
    pub fn unpack<'s>(&self, scratch: &'s mut [u8]) -> Result<&'s [u8], Defect>
    where
        'a: 's,
    {
        if !self.holds_records() {
            return Ok(&[]);
        }
        if !self.header.flags.contains(Flags::COMPRESSED) {
            return Ok(self.payload);
        }
        let bad = self.defect(DefectKind::BadCompression);
        let claimed = self.claimed_len().ok_or(bad)?;
        let block = self.payload.get(4..).ok_or(bad)?;
        let out = scratch.get_mut(..claimed).ok_or(bad)?;
        if lz4::decompress(block, out) == Some(claimed) { Ok(out) } else { Err(bad) }
    }

    /// The records of a section that is not compressed; a compressed one, and one of an unknown version, has none here.
    #[must_use]
    pub fn records(&self) -> Records<'a> {
        let hidden = self.header.flags.contains(Flags::COMPRESSED) || !self.holds_records();
        Records::new(if hidden { &[] } else { self.payload })
    }

    /// Checks that `records`, what [`unpack`](Self::unpack) returned, is as many whole records as the header says. The
    /// records' fields are checked when they are decoded.
    ///
    /// # Errors
    /// [`DefectKind::BadRecords`]: the section's writer is at fault, since its checksum is right.
    pub fn check_records(&self, records: &[u8]) -> Result<(), Defect> {
        if !self.holds_records() {
            return Ok(());
        }
        let mut walk = Records::new(records);
        let count = walk.by_ref().fold(0u32, |count, _| count.saturating_add(1));
        if count == self.header.records && walk.rest().is_empty() {
            return Ok(());
        }
        Err(self.defect(DefectKind::BadRecords))
    }

    pub(crate) fn defect(&self, kind: DefectKind) -> Defect {
        let (seq, section) = (self.header.seq, self.header.kind);
        Defect::new(kind, self.offset as u64, self.header.total_len()).blame(seq, seq, Some(section))
    }
}

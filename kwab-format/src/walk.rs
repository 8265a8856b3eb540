//! Decides where sections begin in bytes that may be damaged: yields the sound ones, and a defect for everything else.
//!
//! The walk goes from header to header. Where no sound header stands, it looks for the next sync mark whose header has
//! a right CRC, this dump's id and a sequence number that was not yet seen. Lengths are only believed after the
//! header's CRC, and never beyond the bytes that are there. Damage makes it look at bytes again, in all at most four
//! times.
//!
//! Sequence numbers that were passed over are remembered (module `gaps`), so that a section that stands out of order,
//! or a sound copy of a damaged one, is yielded where it stands. What is still missing at the end is reported there.

use crate::defect::{Defect, DefectKind};
use crate::gaps::Gaps;
use crate::payload::Section;
use crate::section::{
    DumpId, FILE_HEADER_LEN, FileHeader, Flags, SECTION_HEADER_LEN, SYNC_MARK, SectionHeader, SectionKind,
};

/// A header can bring a gap, a displacement, a lost number, itself, and a warning about its kind or what follows it.
const PENDING: usize = 6;

/// What a walk over a dump finds.
#[derive(Clone, Copy, Debug)]
pub enum Item<'a> {
    /// A section with a sound header (and, from [`Reader::sections`](crate::Reader::sections), a sound payload).
    Section(Section<'a>),
    /// Damage, with its offset; the walk continues behind it.
    Defect(Defect),
}

/// Walks the sections of a dump.
#[derive(Clone, Copy, Debug)]
pub struct Sections<'a> {
    bytes: &'a [u8],
    file: Option<FileHeader>,
    dump_id: Option<DumpId>,
    verify: bool,
    pos: usize,
    stage: Stage,
    /// The sequence number that comes next; one more than can be written after the last.
    expected: u64,
    /// Actual offset of the last section minus the offset in its header.
    displaced: i64,
    /// Sequence numbers below `expected` that no sound section has brought.
    gaps: Gaps,
    /// The section that was read last, when it stood out of order.
    late: Option<u32>,
    /// Whether an end section was found.
    ended: bool,
    /// Bytes that may still be searched or checked a second time.
    budget: usize,
    pending: [Option<Item<'a>>; PENDING],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    FileHeader,
    Walking,
    /// The bytes are used up; a missing end section is still to be reported.
    NoEnd,
    /// Sections that are missing without a trace are still to be reported.
    Missing,
    Done,
}

impl<'a> Sections<'a> {
    /// Starts at the front of `bytes`; `dump_id` is the file header's, or else the first sound section's.
    pub(crate) const fn new(bytes: &'a [u8], file: Option<FileHeader>, dump_id: Option<DumpId>, verify: bool) -> Self {
        let budget = bytes.len().saturating_mul(4);
        let pending = [None; PENDING];
        let (gaps, stage) = (Gaps::new(), Stage::FileHeader);
        Self {
            bytes,
            file,
            dump_id,
            verify,
            pos: 0,
            stage,
            expected: 0,
            displaced: 0,
            gaps,
            late: None,
            ended: false,
            budget,
            pending,
        }
    }

    /// Bytes up to the end of the last thing that was found; behind the end section, where the dump ends.
    #[must_use]
    pub const fn position(&self) -> usize {
        self.pos
    }

    fn file_header(&mut self) -> Option<Item<'a>> {
        self.stage = Stage::Walking;
        let len = self.bytes.len();
        if self.file.is_some() {
            self.pos = FILE_HEADER_LEN;
            return None;
        }
        if len < FILE_HEADER_LEN && self.dump_id.is_none() {
            (self.pos, self.stage) = (len, Stage::NoEnd);
            let cut = DefectKind::Cut { claimed: FILE_HEADER_LEN as u64, remain: len as u64 };
            return Some(Item::Defect(Defect::new(cut, 0, len as u64)));
        }
        // A damaged header still has its length, unless a section starts earlier: then bytes of it are lost.
        self.pos = find_header(self.bytes, 0, |_| true).map_or(FILE_HEADER_LEN, |(at, _)| at.min(FILE_HEADER_LEN));
        Some(Item::Defect(Defect::new(DefectKind::BadFileHeader, 0, self.pos as u64)))
    }

    fn step(&mut self) -> Option<Item<'a>> {
        let rest = self.bytes.get(self.pos..).unwrap_or_default();
        if rest.is_empty() {
            self.stage = Stage::NoEnd;
            return None;
        }
        let header = rest.first_chunk::<SECTION_HEADER_LEN>().map(SectionHeader::decode);
        match header {
            Some(Ok(header)) if self.is_ours(&header) => {
                if u64::from(header.seq) < self.expected {
                    self.note_late(&header);
                } else {
                    self.note_gap(&header);
                    self.late = None;
                    self.expected = u64::from(header.seq).saturating_add(1);
                }
                self.section(header, rest);
                None
            }
            Some(Ok(header)) => Some(self.foreign(&header, rest)),
            _ if self.ended && rest.iter().all(|&b| b == 0) => {
                self.stage = Stage::NoEnd;
                None
            }
            Some(Err(_)) => Some(self.resync(DefectKind::BadSectionHeader)),
            None => {
                let cut = DefectKind::Cut { claimed: SECTION_HEADER_LEN as u64, remain: rest.len() as u64 };
                Some(self.resync(cut))
            }
        }
    }

    fn is_ours(&self, header: &SectionHeader) -> bool {
        let new = u64::from(header.seq) >= self.expected || self.gaps.hold(header.seq);
        self.dump_id.is_none_or(|id| id == header.dump_id) && new
    }

    /// A section that is not wanted is skipped; one that is not sound may have overwritten others or be overwritten by
    /// them, so they are searched within its claim.
    fn foreign(&mut self, header: &SectionHeader, rest: &'a [u8]) -> Item<'a> {
        let ours = self.dump_id.is_none_or(|id| id == header.dump_id);
        let kind = if ours { DefectKind::Repeated } else { DefectKind::Foreign { dump_id: header.dump_id } };
        let offset = self.pos;
        let total = usize::try_from(header.total_len()).unwrap_or(usize::MAX);
        match Section::parse(rest, offset) {
            None => self.find_or_end(offset.saturating_add(SECTION_HEADER_LEN)),
            Some(section) => {
                let end = offset.saturating_add(total);
                self.pos = end;
                if self.verify && self.budget >= total {
                    self.budget = self.budget.saturating_sub(total);
                    if section.verify().is_err() {
                        self.after_bad_payload(offset, end);
                    }
                }
            }
        }
        Item::Defect(Defect::new(kind, offset as u64, self.pos.saturating_sub(offset) as u64))
    }

    fn section(&mut self, header: SectionHeader, rest: &'a [u8]) {
        let total = usize::try_from(header.total_len()).unwrap_or(usize::MAX);
        let offset = self.pos;
        self.dump_id = Some(header.dump_id);
        let Some(section) = Section::parse(rest, offset) else {
            self.lose(header.seq);
            let cut = self.cut_section(&header, rest.len());
            self.push(cut);
            return;
        };
        let end = offset.saturating_add(total);
        if self.verify
            && let Err(defect) = section.verify()
        {
            self.lose(header.seq);
            self.after_bad_payload(offset, end);
            self.push(Item::Defect(Defect { length: (self.pos.saturating_sub(offset)) as u64, ..defect }));
            return;
        }
        self.pos = end;
        self.push(Item::Section(section));
        if header.kind == SectionKind::END {
            self.ended = true;
            self.note_trailing();
        } else if header.version > 0 || header.kind.name().is_none() {
            self.note_unknown(&section);
        }
    }

    /// A section whose number was passed over: taken where it stands.
    fn note_late(&mut self, header: &SectionHeader) {
        if let Some(missing) = self.gaps.fill(header.seq) {
            self.push(Item::Defect(missing));
        }
        if header.seq.checked_sub(1).is_none_or(|before| self.late != Some(before)) {
            let kind = DefectKind::OutOfOrder { seq: header.seq };
            self.push(Item::Defect(Defect::new(kind, self.pos as u64, 0)));
        }
        self.late = Some(header.seq);
        // The bytes that were missing at the offset in the section's header are here.
        self.displaced = self.displaced.wrapping_add_unsigned(header.total_len());
    }

    /// A section that is blamed by a defect: a sound copy of it is still welcome.
    fn lose(&mut self, seq: u32) {
        if let Some(missing) = self.gaps.open(seq, seq, None) {
            self.push(Item::Defect(missing));
        }
    }

    /// A sound header whose payload is not all there: the end of a cut dump, unless a later header stands within.
    fn cut_section(&mut self, header: &SectionHeader, remain: usize) -> Item<'a> {
        let offset = self.pos;
        self.find_or_end(offset.saturating_add(SECTION_HEADER_LEN));
        let cut = DefectKind::Cut { claimed: header.total_len(), remain: remain as u64 };
        let defect = Defect::new(cut, offset as u64, self.pos.saturating_sub(offset) as u64);
        Item::Defect(defect.blame(header.seq, header.seq, Some(header.kind)))
    }

    /// Goes on at the first header of this dump at or behind `start`, or ends.
    fn find_or_end(&mut self, start: usize) {
        match find_header(self.bytes, start, |header| self.is_ours(header)) {
            Some((at, _)) => self.pos = at,
            None => (self.pos, self.stage) = (self.bytes.len(), Stage::NoEnd),
        }
    }

    fn note_unknown(&mut self, section: &Section<'a>) {
        if section.header.flags.contains(Flags::CRITICAL) {
            self.push(Item::Defect(section.defect(DefectKind::CriticalUnknown)));
        }
    }

    /// Reports sections and bytes that are missing before `header`.
    fn note_gap(&mut self, header: &SectionHeader) {
        let offset = self.pos as u64;
        if u64::from(header.seq) > self.expected {
            let gap = self.gaps.open(self.next_seq(), header.seq.saturating_sub(1), Some(offset));
            if let Some(missing) = gap {
                self.push(Item::Defect(missing));
            }
        }
        let by = offset.cast_signed().wrapping_sub(header.position.cast_signed());
        if by != self.displaced {
            let change = by.wrapping_sub(self.displaced);
            self.displaced = by;
            self.push(Item::Defect(Defect::new(DefectKind::Displaced { by: change }, offset, 0)));
        }
    }

    /// After a payload with a wrong CRC: go on behind it, or, when bytes of it were lost, at the next header within.
    fn after_bad_payload(&mut self, offset: usize, end: usize) {
        self.pos = end;
        let rest = self.bytes.get(end..).unwrap_or_default();
        let next = rest.first_chunk::<SECTION_HEADER_LEN>().map(SectionHeader::decode);
        let sound = matches!(next, Some(Ok(header)) if self.is_ours(&header));
        let within = end.saturating_sub(offset);
        if sound || rest.is_empty() || self.budget < within {
            return;
        }
        self.budget = self.budget.saturating_sub(within);
        let start = offset.saturating_add(SECTION_HEADER_LEN);
        let window = self.bytes.get(..end.saturating_add(SECTION_HEADER_LEN)).unwrap_or(self.bytes);
        if let Some((at, _)) = find_header(window, start, |header| self.is_ours(header)) {
            self.pos = at;
        }
    }

    /// No sound header at `self.pos`: goes on at the next one, and blames what lies between.
    fn resync(&mut self, kind: DefectKind) -> Item<'a> {
        let start = self.pos;
        match find_header(self.bytes, start.saturating_add(1), |header| self.is_ours(header)) {
            Some((at, header)) => {
                self.pos = at;
                let lost = u64::from(header.seq) > self.expected;
                let defect = Defect::new(kind, start as u64, at.saturating_sub(start) as u64);
                if !lost {
                    return Item::Defect(defect);
                }
                let (first, last) = (self.next_seq(), header.seq.saturating_sub(1));
                self.expected = u64::from(header.seq);
                if let Some(missing) = self.gaps.open(first, last, None) {
                    self.push(Item::Defect(missing));
                }
                Item::Defect(defect.blame(first, last, None))
            }
            None => {
                let len = self.bytes.len();
                (self.pos, self.stage) = (len, Stage::NoEnd);
                let defect = Defect::new(kind, start as u64, len.saturating_sub(start) as u64);
                Item::Defect(defect.blame(self.next_seq(), self.next_seq(), None))
            }
        }
    }

    /// Behind the end section only padding with zeros is in order; sections of this dump that stand there are read.
    fn note_trailing(&mut self) {
        let rest = self.bytes.get(self.pos..).unwrap_or_default();
        let next = rest.first_chunk::<SECTION_HEADER_LEN>().map(SectionHeader::decode);
        if matches!(next, Some(Ok(header)) if self.is_ours(&header)) {
            return;
        }
        if rest.iter().all(|&b| b == 0) {
            self.stage = Stage::NoEnd;
            return;
        }
        let ours = find_header(self.bytes, self.pos, |header| self.is_ours(header));
        let end = ours.map_or(self.bytes.len(), |(at, _)| at);
        let length = end.saturating_sub(self.pos);
        self.push(Item::Defect(Defect::new(DefectKind::Trailing, self.pos as u64, length as u64)));
        match ours {
            Some((at, _)) => self.pos = at,
            None => self.stage = Stage::NoEnd,
        }
    }

    /// What to blame when the next section is lost.
    fn next_seq(&self) -> u32 {
        u32::try_from(self.expected).unwrap_or(u32::MAX)
    }

    fn push(&mut self, item: Item<'a>) {
        if let Some(slot) = self.pending.iter_mut().find(|slot| slot.is_none()) {
            *slot = Some(item);
        }
    }

    fn pop(&mut self) -> Option<Item<'a>> {
        let first = self.pending.first_mut()?.take()?;
        self.pending.rotate_left(1);
        Some(first)
    }
}

impl<'a> Iterator for Sections<'a> {
    type Item = Item<'a>;

    fn next(&mut self) -> Option<Item<'a>> {
        loop {
            if let Some(item) = self.pop() {
                return Some(item);
            }
            let item = match self.stage {
                Stage::FileHeader => self.file_header(),
                Stage::Walking => self.step(),
                Stage::NoEnd => {
                    self.stage = Stage::Missing;
                    let defect = Defect::new(DefectKind::NoEnd, self.pos as u64, 0);
                    (!self.ended).then_some(Item::Defect(defect))
                }
                Stage::Missing => {
                    let missing = self.gaps.next_missing();
                    if missing.is_none() {
                        self.stage = Stage::Done;
                    }
                    missing.map(Item::Defect)
                }
                Stage::Done => return None,
            };
            if item.is_some() {
                return item;
            }
        }
    }
}

/// The first sound section header at or behind `from` that `accept` takes.
pub(crate) fn find_header(
    bytes: &[u8],
    from: usize,
    accept: impl Fn(&SectionHeader) -> bool,
) -> Option<(usize, SectionHeader)> {
    let [mark, ..] = SYNC_MARK;
    let mut at = from;
    loop {
        let rest = bytes.get(at..)?;
        let skip = rest.iter().position(|&b| b == mark)?;
        at = at.saturating_add(skip);
        let candidate = bytes.get(at..)?.first_chunk::<SECTION_HEADER_LEN>()?;
        if let Ok(header) = SectionHeader::decode(candidate)
            && accept(&header)
        {
            return Some((at, header));
        }
        at = at.saturating_add(1);
    }
}

//! The bytes of a core: a file as it is, or makedumpfile's flattened form, which can be written to a pipe.
//!
//! A flattened file is a header, then records of an offset, a length and the bytes that belong there, in big-endian
//! order (makedumpfile, `print_info.h`, `makedumpfile.h`; QEMU, `dump/dump.c`). Records may come in any order; of two
//! for the same place the later one counts, as when they are written one by one. A place without a record has no bytes.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use super::CaptureError;

/// How a flattened file begins.
const FLATTENED: &[u8; 16] = b"makedumpfile\0\0\0\0";
/// Bytes of its header, and of what stands before the bytes of each record.
const HEADER: u64 = 4096;
const RECORD: u64 = 16;
/// Type and version that are known.
const KNOWN: [u64; 2] = [1, 1];
/// Records that are looked at: so many, and one more for so many bytes of the file. Writers put at least 4 KiB into
/// most of theirs.
const MOST_RECORDS: u64 = 1 << 16;
const BYTES_PER_RECORD: u64 = 128;
/// Bytes that the records may claim: so many, and for each byte of the file so many more.
const MOST_CLAIMED: u64 = 64 << 20;
const CLAIMED_PER_BYTE: u64 = 4;

/// Something with bytes at offsets.
pub(crate) trait ReadAt {
    /// Fills `out` from an offset on; how many bytes there are.
    fn read_some_at(&self, out: &mut [u8], at: u64) -> io::Result<usize>;

    /// Fills all of `out`.
    fn read_all_at(&self, out: &mut [u8], at: u64) -> io::Result<()> {
        if self.read_some_at(out, at)? == out.len() { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }
}

impl ReadAt for File {
    fn read_some_at(&self, out: &mut [u8], at: u64) -> io::Result<usize> {
        // The system refuses an offset that is beyond every file.
        let most = usize::try_from((i64::MAX as u64).saturating_sub(at)).unwrap_or(usize::MAX).min(out.len());
        let mut done = 0;
        while done < most {
            match self.read_at(&mut out[done..most], at + done as u64) {
                Ok(0) => break,
                Ok(count) => done += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }
}

/// The bytes of a core.
#[derive(Debug)]
pub(crate) struct Source {
    file: File,
    /// Bytes of the file itself, whatever its records claim.
    pub stored: u64,
    /// Where the core ends.
    pub length: u64,
    /// Of a flattened file: first offset of a stretch to the one behind it and its place in the file.
    flat: Option<BTreeMap<u64, (u64, u64)>>,
    /// What the records claim and the file does not have.
    pub missing: Vec<String>,
}

impl Source {
    /// Looks at the beginning of a file, and at all records of a flattened one.
    pub(crate) fn open(file: File) -> Result<Self, CaptureError> {
        let stored = file.metadata()?.len();
        let mut source = Self { file, stored, length: stored, flat: None, missing: Vec::new() };
        let mut head = [0; 32];
        if source.file.read_some_at(&mut head, 0)? == head.len() && head.starts_with(FLATTENED) {
            source.flatten(&head)?;
        }
        Ok(source)
    }

    fn flatten(&mut self, head: &[u8]) -> Result<(), CaptureError> {
        let told = [big(head, 16), big(head, 24)];
        if told != KNOWN {
            let why = format!("its flattened form has type {} and version {}, not 1 and 1", told[0], told[1]);
            return Err(CaptureError::Kdump(why));
        }
        let most = MOST_RECORDS + self.stored / BYTES_PER_RECORD;
        let (mut at, mut count, mut flat) = (HEADER, 0, BTreeMap::new());
        loop {
            let mut record = [0; RECORD as usize];
            if self.file.read_some_at(&mut record, at)? < record.len() {
                self.missing.push(format!("the end of the flattened form: the file ends at byte {}", self.stored));
                break;
            }
            let (offset, length) = (big(&record, 0), big(&record, 8));
            if offset == u64::MAX && length == u64::MAX {
                break;
            }
            count += 1;
            if count > most {
                self.missing.push(format!("what is behind byte {at}: more than {most} records of the flattened form"));
                break;
            }
            let there = length.min(self.stored.saturating_sub(at + RECORD));
            let Some(end) = offset.checked_add(length).filter(|end| *end <= i64::MAX as u64) else {
                self.missing
                    .push(format!("what is behind byte {at}: a record of {length} bytes at offset {offset:#x}"));
                break;
            };
            put(&mut flat, offset..offset + there, at + RECORD);
            if there < length {
                let lost = length - there;
                self.missing
                    .push(format!("{lost} bytes of the record at byte {at} and what is behind it: the file is cut"));
                self.length = end;
                break;
            }
            at += RECORD + length;
        }
        self.length = flat.last_key_value().map_or(0, |(_, (end, _))| *end);
        if self.length > MOST_CLAIMED.saturating_add(self.stored.saturating_mul(CLAIMED_PER_BYTE)) {
            let (claimed, stored) = (self.length, self.stored);
            return Err(CaptureError::Kdump(format!("its records claim {claimed} bytes, the file has {stored}")));
        }
        self.flat = Some(flat);
        Ok(())
    }
}

impl ReadAt for Source {
    fn read_some_at(&self, out: &mut [u8], at: u64) -> io::Result<usize> {
        let Some(flat) = &self.flat else { return self.file.read_some_at(out, at) };
        let mut done = 0;
        while done < out.len() {
            let Some(at) = at.checked_add(done as u64) else { break };
            let Some((start, (end, place))) = flat.range(..=at).next_back() else { break };
            let count = (out.len() - done).min(usize::try_from(end.saturating_sub(at)).unwrap_or(usize::MAX));
            let read = self.file.read_some_at(&mut out[done..done + count], place + (at - start))?;
            done += read;
            if read == 0 || read < count {
                break;
            }
        }
        Ok(done)
    }
}

/// Puts a stretch over what is there.
fn put(flat: &mut BTreeMap<u64, (u64, u64)>, stretch: std::ops::Range<u64>, place: u64) {
    if stretch.is_empty() {
        return;
    }
    let first = flat.range(..stretch.start).next_back().map(|(start, known)| (*start, *known));
    let mut behind = None;
    if let Some((start, (end, known))) = first.filter(|(_, (end, _))| *end > stretch.start) {
        flat.insert(start, (stretch.start, known));
        behind = (end > stretch.end).then_some((end, known + (stretch.end - start)));
    }
    while let Some((start, (end, known))) = flat.range(stretch.clone()).next().map(|(start, known)| (*start, *known)) {
        flat.remove(&start);
        if end > stretch.end {
            behind = Some((end, known + (stretch.end - start)));
        }
    }
    flat.insert(stretch.start, (stretch.end, place));
    if let Some(behind) = behind {
        flat.insert(stretch.end, behind);
    }
}

/// A big-endian word of 64 bits.
fn big(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::super::tests::file;
    use super::*;

    fn flattened(records: &[(u64, &[u8])]) -> Vec<u8> {
        let mut bytes = FLATTENED.to_vec();
        KNOWN.iter().for_each(|word| bytes.extend(word.to_be_bytes()));
        bytes.resize(HEADER as usize, 0);
        for (offset, data) in records {
            bytes.extend(offset.to_be_bytes());
            bytes.extend((data.len() as u64).to_be_bytes());
            bytes.extend_from_slice(data);
        }
        bytes.extend([0xff; 16]);
        bytes
    }

    #[test]
    fn of_two_records_for_a_place_the_later_one_counts_and_a_hole_has_no_bytes() {
        let records: [(u64, &[u8]); 5] = [(0, b"aaaaaaaa"), (20, b"cc"), (2, b"bb"), (6, b"dddd"), (5, b"e")];
        let source = Source::open(file(&flattened(&records))).expect("flattened");
        assert_eq!((source.length, source.missing.len()), (22, 0));
        let mut out = [0; 22];
        assert_eq!(source.read_some_at(&mut out, 0).expect("read"), 10);
        assert_eq!(&out[..10], b"aabbaedddd");
        assert_eq!(source.read_some_at(&mut out, 10).expect("read"), 0, "not zeros");
        assert_eq!((source.read_some_at(&mut out, 20).expect("read"), &out[..2]), (2, &b"cc"[..]));
    }

    #[test]
    fn records_that_are_cut_or_claim_too_much_are_told_with_their_place() {
        let whole = flattened(&[(0, b"aaaa"), (4, b"bbbb")]);
        let cut = Source::open(file(&whole[..whole.len() - 18])).expect("flattened");
        assert_eq!(cut.missing, ["2 bytes of the record at byte 4116 and what is behind it: the file is cut"]);
        let no_end = Source::open(file(&whole[..whole.len() - 16])).expect("flattened");
        assert_eq!(no_end.missing, ["the end of the flattened form: the file ends at byte 4136"]);
        let far = Source::open(file(&flattened(&[(1 << 40, b"a")]))).expect_err("refused").to_string();
        assert!(far.contains("claim 1099511627777 bytes, the file has 4129"), "{far}");
        let mut wild = whole;
        wild[HEADER as usize..][..8].copy_from_slice(&(u64::MAX - 2).to_be_bytes());
        let wild = Source::open(file(&wild)).expect("nothing in it");
        assert!(wild.missing[0].contains("behind byte 4096"), "{:?}", wild.missing);
    }
}

//! Opens every dump of a file, one after the other, and reads the file once.

use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::ops::Range;
use std::path::Path;

use super::extents::extents;
use super::file::{DumpFile, OpenError, READ_WHOLE};
use super::memory::read_unsized;

/// The dumps of a file, in the order of the file; each is opened when it is asked for.
#[derive(Debug)]
pub struct DumpsOf(Held);

#[derive(Debug)]
enum Held {
    /// A dump that is alone in its file.
    One(Option<Box<DumpFile>>),
    /// Bytes in memory, where each dump lies in them, and how many were opened.
    Many { bytes: Vec<u8>, extents: Vec<Range<usize>>, opened: usize },
}

impl DumpsOf {
    /// The dumps of the file at `path`.
    ///
    /// # Errors
    /// [`OpenError`] when the file cannot be read or is not a dump; damage is not an error.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        Self::of_file(File::open(path)?)
    }

    /// The dumps of an open file, whose position is at its beginning.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn of_file(mut file: File) -> Result<Self, OpenError> {
        let meta = file.metadata()?;
        if meta.is_dir() {
            return Err(OpenError::Directory);
        }
        if meta.is_file() && meta.len() > READ_WHOLE {
            let first = DumpFile::of_file(file.try_clone()?, 1)?;
            if first.dumps == 1 {
                return Ok(Self(Held::One(Some(Box::new(first)))));
            }
            // The clone shares its position.
            file.rewind()?;
        }
        if !meta.is_file() {
            return Self::within(read_unsized(file)?);
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Self::within(bytes)
    }

    /// The dumps of a file that is already in memory.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn within(bytes: Vec<u8>) -> Result<Self, OpenError> {
        let extents = extents(&bytes);
        if extents.len() < 2 {
            return Ok(Self(Held::One(Some(Box::new(DumpFile::from_bytes(bytes)?)))));
        }
        Ok(Self(Held::Many { bytes, extents, opened: 0 }))
    }

    /// Dumps in the file.
    #[must_use]
    pub const fn count_all(&self) -> usize {
        match &self.0 {
            Held::One(_) => 1,
            Held::Many { extents, .. } => extents.len(),
        }
    }
}

impl Iterator for DumpsOf {
    type Item = Result<DumpFile, OpenError>;

    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.0 {
            Held::One(dump) => dump.take().map(|dump| Ok(*dump)),
            Held::Many { bytes, extents, opened } => {
                let extent = extents.get(*opened)?.clone();
                *opened += 1;
                Some(DumpFile::part(bytes[extent].to_vec(), *opened, extents.len(), bytes.len()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use kwab_format::{BootId, DumpId, FileHeader, SectionKind};

    use super::*;
    use crate::model::emit::DumpWriter;

    fn dump(id: u64) -> Vec<u8> {
        let mut writer = DumpWriter::new(Vec::new(), FileHeader::new(DumpId(id), BootId([1; 16])));
        let note = kwab_format::record::Note { text: Some(b"kept"), ..Default::default() };
        writer.put(SectionKind::NOTES, &note);
        writer.finish().unwrap()
    }

    #[test]
    fn each_dump_of_a_file_is_opened_once_with_its_number_and_its_own_bytes() {
        let file = [dump(1), dump(2), dump(3)].concat();
        let dumps: Vec<DumpFile> = DumpsOf::within(file.clone()).unwrap().collect::<Result<_, _>>().unwrap();
        let told =
            dumps.iter().map(|dump| (dump.number, dump.dumps, dump.header.unwrap().dump_id.0, dump.defects.len()));
        assert_eq!(told.collect::<Vec<_>>(), [(1, 3, 1, 0), (2, 3, 2, 0), (3, 3, 3, 0)]);
        for (number, dump) in (1..).zip(&dumps) {
            let alone = DumpFile::number_of(file.clone(), number).unwrap();
            assert_eq!((alone.len, alone.sections.len()), (dump.len, dump.sections.len()));
        }
        assert!(matches!(DumpsOf::within(b"text".to_vec()), Err(OpenError::Text)));
        let one: Vec<_> = DumpsOf::within(dump(4)).unwrap().collect();
        assert_eq!(one.len(), 1);
    }
}

//! The container of a minidump: header, directory, and streams by their kind, each read as far as the file has it.
//!
//! Nothing is believed beyond the bytes of the file: a list gives at most as many rows as lie in it and as its caller
//! asks for, and what is claimed and not there becomes a sentence in [`Container::missing`].

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use minidump_common::format::{
    MINIDUMP_DIRECTORY, MINIDUMP_HEADER, MINIDUMP_LOCATION_DESCRIPTOR as Location, MINIDUMP_STREAM_TYPE as StreamType,
};
use scroll::ctx::{SizeWith, TryFromCtx};
use scroll::{Endian, LE, Pread as _};

use super::super::ExchangeError;

/// Bytes of the header.
const HEADER: usize = 32;
/// Streams of a directory that are looked at: a dozen are usual.
const MOST_STREAMS: u32 = 1024;
/// Sentences about damage: a file can be damaged in every row.
const MOST_DEFECTS: usize = 32;
/// Bytes of all texts that other structures point at, and of those beyond the length of the file: many can point at
/// one.
const MOST_TEXT: u64 = 16 << 20;
const MOST_SHARED: u64 = 1 << 20;
/// The same of the registers of threads; an exception has its own.
const MOST_CONTEXTS: u64 = 64 << 10;

/// A minidump as far as its directory.
#[derive(Debug)]
pub(super) struct Container<'f> {
    file: &'f File,
    length: u64,
    streams: Vec<(u32, Location)>,
    /// When it was written, seconds since 1970.
    pub written: u32,
    /// Bytes of texts that may still be read.
    text_left: Cell<usize>,
    /// Bytes of registers that may still be read.
    contexts_left: Cell<u64>,
    missing: RefCell<Vec<String>>,
}

impl<'f> Container<'f> {
    /// Reads header and directory.
    ///
    /// # Errors
    /// [`ExchangeError`] when it is not a minidump of a little-endian machine.
    pub(super) fn open(file: &'f File) -> Result<Self, ExchangeError> {
        let length = file.metadata()?.len();
        let mut container = Self {
            file,
            length,
            streams: Vec::new(),
            written: 0,
            text_left: Cell::new(length.saturating_add(MOST_SHARED).min(MOST_TEXT) as usize),
            contexts_left: Cell::default(),
            missing: RefCell::default(),
        };
        let head = container.at(0, HEADER as u64)?;
        let header: MINIDUMP_HEADER =
            head.pread_with(0, LE).map_err(|_| refused("is shorter than the header of a minidump"))?;
        container.written = header.time_date_stamp;
        let count = header.stream_count.min(MOST_STREAMS);
        if count < header.stream_count {
            container.lacks(format!("{} of {} streams: a directory is not so long", count, header.stream_count));
        }
        let location = Location { data_size: count.saturating_mul(12), rva: header.stream_directory_rva };
        let rows: Vec<MINIDUMP_DIRECTORY> = container.rows("directory", location, 0, u64::from(count), 12)?;
        container.streams = rows.into_iter().map(|row| (row.stream_type, row.location)).collect();
        // Registers lie beside the streams: where these take most of the file, threads must share what is left.
        let streams: u64 = container.streams.iter().map(|(_, location)| u64::from(location.data_size)).sum();
        container.contexts_left = Cell::new(length.saturating_sub(streams).saturating_add(MOST_CONTEXTS));
        Ok(container)
    }

    /// Notes that something is claimed and not there.
    pub(super) fn lacks(&self, what: String) {
        let mut missing = self.missing.borrow_mut();
        if missing.len() < MOST_DEFECTS {
            missing.push(what);
        } else if missing.len() == MOST_DEFECTS {
            missing.push("more that is not told".to_owned());
        }
    }

    /// What is claimed and not there.
    pub(super) fn into_missing(self) -> Vec<String> {
        self.missing.into_inner()
    }

    /// Bytes of the file.
    pub(super) const fn length(&self) -> u64 {
        self.length
    }

    /// Kinds of all streams.
    pub(super) fn kinds(&self) -> impl Iterator<Item = u32> + '_ {
        self.streams.iter().map(|(kind, _)| *kind)
    }

    /// Where the first stream of this kind lies, unless it is empty.
    pub(super) fn stream(&self, kind: StreamType) -> Option<Location> {
        let of_kind = self.streams.iter().filter(|(known, _)| *known == kind as u32);
        of_kind.map(|(_, location)| *location).find(|location| location.data_size > 0)
    }

    /// The bytes at an offset, as far as the file has them.
    fn at(&self, offset: u64, length: u64) -> io::Result<Vec<u8>> {
        let there = length.min(self.length.saturating_sub(offset));
        let mut bytes = vec![0; usize::try_from(there).unwrap_or(0)];
        self.file.read_exact_at(&mut bytes, offset)?;
        Ok(bytes)
    }

    /// The bytes of a location, `most` at most, as far as the file has them.
    pub(super) fn bytes(&self, what: &str, location: Location, most: usize) -> io::Result<Vec<u8>> {
        let wanted = u64::from(location.data_size).min(most as u64);
        let bytes = self.at(location.rva.into(), wanted)?;
        if (bytes.len() as u64) < wanted {
            self.lacks(format!("{what}: {wanted} bytes at {:#x} are claimed, {} are there", location.rva, bytes.len()));
        }
        Ok(bytes)
    }

    /// The bytes of a stream, `most` at most.
    pub(super) fn whole(&self, what: &str, kind: StreamType, most: usize) -> io::Result<Option<Vec<u8>>> {
        self.stream(kind).map(|location| self.bytes(what, location, most)).transpose()
    }

    /// A structure at a location; what the file has less of it is zero, unless it is less than `least` bytes.
    pub(super) fn structure<T>(&self, what: &str, location: Location, least: usize) -> io::Result<Option<T>>
    where
        T: for<'b> TryFromCtx<'b, Endian, Error = scroll::Error> + SizeWith<Endian>,
    {
        let size = T::size_with(&LE);
        let mut bytes = self.bytes(what, location, size)?;
        if bytes.len() < least {
            return Ok(None);
        }
        bytes.resize(size, 0);
        Ok(bytes.pread_with(0, LE).ok())
    }

    /// Whether the registers at a location may be read: those of all threads together are no longer than what the file
    /// has beside its streams.
    pub(super) fn has_room_for(&self, context: Location) -> bool {
        let left = self.contexts_left.get().checked_sub(context.data_size.into());
        self.contexts_left.set(left.unwrap_or_default());
        left.is_some()
    }

    /// The rows of a list whose number of 32 bits stands in front of them, `most` at most.
    pub(super) fn list<T>(&self, what: &str, kind: StreamType, most: u32) -> io::Result<Vec<T>>
    where
        T: for<'b> TryFromCtx<'b, Endian, Error = scroll::Error> + SizeWith<Endian>,
    {
        let Some(location) = self.stream(kind) else { return Ok(Vec::new()) };
        let head = self.bytes(what, location, 4)?;
        let count: u32 = head.pread_with(0, LE).unwrap_or(0);
        let size = T::size_with(&LE);
        // Some writers put four bytes behind the number, so that the rows lie at a multiple of eight.
        let padded = u64::from(location.data_size) == u64::from(count).saturating_mul(size as u64).saturating_add(8);
        self.rows(what, location, if padded { 8 } else { 4 }, self.bounded(what, count.into(), most.into()), size)
    }

    /// As many rows as are read of these.
    pub(super) fn bounded(&self, what: &str, count: u64, most: u64) -> u64 {
        if count > most {
            self.lacks(format!("{what}: {most} of {count} rows are read"));
        }
        count.min(most)
    }

    /// `count` rows of `stride` bytes, from `skip` on in a location.
    pub(super) fn rows<T>(
        &self,
        what: &str,
        location: Location,
        skip: u64,
        count: u64,
        stride: usize,
    ) -> io::Result<Vec<T>>
    where
        T: for<'b> TryFromCtx<'b, Endian, Error = scroll::Error> + SizeWith<Endian>,
    {
        let stride = stride.max(T::size_with(&LE));
        let start = u64::from(location.rva) + skip;
        let claimed = count.saturating_mul(stride as u64).min(u64::from(location.data_size).saturating_sub(skip));
        let bytes = self.at(start, claimed)?;
        let rows: Vec<T> = bytes.chunks_exact(stride).filter_map(|row| row.pread_with(0, LE).ok()).collect();
        if (rows.len() as u64) < count {
            self.lacks(format!("{what}: {count} rows at {start:#x} are claimed, {} are there", rows.len()));
        }
        Ok(rows)
    }

    /// A length of 32 bits and so many bytes of UTF-16, `most` characters of them.
    pub(super) fn utf16(&self, rva: u64, most: usize) -> io::Result<Option<String>> {
        let Some(bytes) = self.counted(rva, most * 2)? else { return Ok(None) };
        let halves: Vec<u16> = bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
        Ok(Some(String::from_utf16_lossy(&halves)))
    }

    /// A length of 32 bits and so many bytes, `most` of them; `None` when there is no such text, or no room for it.
    pub(super) fn counted(&self, rva: u64, most: usize) -> io::Result<Option<Vec<u8>>> {
        if rva == 0 {
            return Ok(None);
        }
        let head = self.at(rva, 4)?;
        let Ok(length) = head.pread_with::<u32>(0, LE) else {
            self.lacks(format!("the text at {rva:#x}"));
            return Ok(None);
        };
        let wanted = (length as usize).min(most);
        if wanted > self.text_left.get() {
            self.lacks("texts: more structures share them than there is memory for".to_owned());
            return Ok(None);
        }
        self.text_left.set(self.text_left.get() - wanted);
        let bytes = self.at(rva.saturating_add(4), wanted as u64)?;
        if bytes.len() < wanted {
            self.lacks(format!("the text at {rva:#x}: {length} bytes are claimed, {} are there", bytes.len()));
        }
        Ok(Some(bytes))
    }
}

/// An error of this module.
pub(super) fn refused(why: &str) -> ExchangeError {
    ExchangeError::Refused(why.to_owned())
}

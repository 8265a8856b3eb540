//! Reads a `newc` cpio archive, the format of an initramfs, from any byte source.
//!
//! Several archives may follow one another with zero padding between them, as Linux accepts (the microcode archive in
//! front of the real one). A hard link's contents stand with the last of its names; the other names carry a size of 0
//! and share `(ino, dev)`. Nothing is copied: an entry names a range of the archive.
//!
//! Source: cpio(5) "New ASCII Format"; Documentation/driver-api/early-userspace/buffer-format.rst.

use alloc::vec::Vec;

/// Where the bytes of an archive are.
pub trait Source {
    /// Length in bytes.
    fn len(&self) -> usize;
    /// Whether there is nothing in it.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Fills `into` from `at`; returns how many bytes there were.
    fn read(&self, at: usize, into: &mut [u8]) -> usize;
}

impl Source for &[u8] {
    fn len(&self) -> usize {
        <[u8]>::len(self)
    }

    fn read(&self, at: usize, into: &mut [u8]) -> usize {
        let rest = self.get(at..).unwrap_or(&[]);
        let count = rest.len().min(into.len());
        into[..count].copy_from_slice(&rest[..count]);
        count
    }
}

/// One member of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Path as written, without a leading `/` or `./`.
    pub name: Vec<u8>,
    /// Inode number inside the archive; with `dev` it identifies hard links.
    pub ino: u32,
    /// Device the archive was made on, `(major, minor)`.
    pub dev: (u32, u32),
    /// File type and permission bits as in `st_mode`.
    pub mode: u32,
    /// User id of the owner.
    pub uid: u32,
    /// Group id of the owner.
    pub gid: u32,
    /// Number of names the file has in the archive.
    pub nlink: u32,
    /// Modification time, seconds since the epoch.
    pub mtime: u32,
    /// Device number of a device node, `(major, minor)`.
    pub rdev: (u32, u32),
    /// First byte of the contents in the archive.
    pub start: usize,
    /// Length of the contents in bytes.
    pub size: usize,
}

/// What is wrong with an archive, with the offset of the header that shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Defect {
    /// No `070701` or `070702` where a header must be.
    BadMagic(usize),
    /// A header field is not hexadecimal.
    BadNumber(usize),
    /// The archive ends inside a header, a name or a file's contents.
    Truncated(usize),
    /// A name is empty or longer than a path may be.
    BadName(usize),
}

/// Walks the members of an archive; the first defect ends the walk.
#[derive(Debug)]
pub struct Reader<S> {
    source: S,
    at: usize,
    finished: bool,
}

const HEADER: usize = 110;
const TRAILER: &[u8] = b"TRAILER!!!";
/// PATH_MAX of Linux, the terminating zero included.
const LONGEST_NAME: usize = 4096;

impl<S: Source> Reader<S> {
    /// Starts at the first byte of `source`.
    pub fn new(source: S) -> Self {
        Self { source, at: 0, finished: false }
    }

    fn skip_padding(&mut self) {
        let mut byte = [0];
        while self.source.read(self.at, &mut byte) == 1 && byte[0] == 0 {
            self.at += 1;
        }
    }

    fn next_entry(&mut self) -> Result<Option<Entry>, Defect> {
        loop {
            if self.at >= self.source.len() {
                return Ok(None);
            }
            let entry = self.entry_here()?;
            if entry.name != TRAILER {
                return Ok(Some(entry));
            }
            self.skip_padding();
        }
    }

    fn entry_here(&mut self) -> Result<Entry, Defect> {
        let at = self.at;
        let mut header = [0; HEADER];
        let got = self.source.read(at, &mut header);
        if got >= 6 && &header[..6] != b"070701" && &header[..6] != b"070702" {
            return Err(Defect::BadMagic(at));
        }
        if got < HEADER {
            return Err(Defect::Truncated(at));
        }
        let mut field = [0_u32; 13];
        for (value, text) in field.iter_mut().zip(header[6..].chunks_exact(8)) {
            *value = hexadecimal(text).ok_or(Defect::BadNumber(at))?;
        }
        let [ino, mode, uid, gid, nlink, mtime, size, dev_major, dev_minor, rdev_major, rdev_minor, name_size, _] =
            field;
        let (size, name_size) = (size as usize, name_size as usize);
        if !(2..=LONGEST_NAME).contains(&name_size) {
            return Err(Defect::BadName(at));
        }
        let start = (at + HEADER + name_size).next_multiple_of(4);
        let end = start.checked_add(size).filter(|&end| end <= self.source.len()).ok_or(Defect::Truncated(at))?;
        let mut name = alloc::vec![0; name_size - 1];
        self.source.read(at + HEADER, &mut name);
        self.at = end.next_multiple_of(4);
        Ok(Entry {
            name: strip(name),
            ino,
            dev: (dev_major, dev_minor),
            mode,
            uid,
            gid,
            nlink,
            mtime,
            rdev: (rdev_major, rdev_minor),
            start,
            size,
        })
    }
}

impl<S: Source> Iterator for Reader<S> {
    type Item = Result<Entry, Defect>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.finished {
            return None;
        }
        let step = self.next_entry().transpose();
        self.finished = !matches!(step, Some(Ok(_)));
        step
    }
}

/// Drops leading `/` and `./`: every name is relative to the root being filled.
fn strip(name: Vec<u8>) -> Vec<u8> {
    let mut rest = &name[..];
    loop {
        rest = match rest {
            [b'/', tail @ ..] | [b'.', b'/', tail @ ..] => tail,
            _ if rest.len() == name.len() => return name,
            _ => return rest.to_vec(),
        }
    }
}

fn hexadecimal(text: &[u8]) -> Option<u32> {
    text.iter().try_fold(0_u32, |value, &digit| Some(value << 4 | char::from(digit).to_digit(16)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(name: &str, ino: u32, mode: u32, body: &[u8]) -> Vec<u8> {
        let mut out = alloc::format!(
            "070701{ino:08x}{mode:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}",
            0,
            0,
            1,
            7,
            body.len(),
            0,
            1,
            5,
            1,
            name.len() + 1,
            0
        )
        .into_bytes();
        out.extend_from_slice(name.as_bytes());
        out.push(0);
        out.resize(out.len().next_multiple_of(4), 0);
        out.extend_from_slice(body);
        out.resize(out.len().next_multiple_of(4), 0);
        out
    }

    #[test]
    fn two_archives_with_padding_between_them_read_as_one() {
        let mut bytes = member("./a", 1, 0o100_644, b"hello");
        bytes.extend(member("TRAILER!!!", 0, 0, b""));
        bytes.resize(bytes.len().next_multiple_of(512), 0);
        bytes.extend(member("/b/c", 2, 0o100_755, b""));
        bytes.extend(member("TRAILER!!!", 0, 0, b""));
        let all: Vec<Entry> = Reader::new(&bytes[..]).map(Result::unwrap).collect();
        assert_eq!(all.iter().map(|e| &e.name[..]).collect::<Vec<_>>(), [&b"a"[..], b"b/c"]);
        assert_eq!(&bytes[all[0].start..all[0].start + all[0].size], b"hello");
        assert_eq!((all[1].mode, all[1].rdev), (0o100_755, (5, 1)));
    }

    #[test]
    fn an_archive_cut_inside_a_file_yields_the_files_before_and_says_where() {
        let mut bytes = member("a", 1, 0o100_644, b"x");
        let second = bytes.len();
        bytes.extend(member("b", 2, 0o100_644, b"yyyyyyyy"));
        bytes.truncate(bytes.len() - 4);
        let all: Vec<_> = Reader::new(&bytes[..]).collect();
        assert_eq!(all.len(), 2);
        assert_eq!(all[1], Err(Defect::Truncated(second)));
    }

    #[test]
    fn a_size_of_four_gigabytes_is_refused_before_anything_is_allocated() {
        let mut bytes = member("a", 1, 0o100_644, b"x");
        bytes[6 + 8 * 6..6 + 8 * 7].copy_from_slice(b"ffffffff");
        assert_eq!(Reader::new(&bytes[..]).next(), Some(Err(Defect::Truncated(0))));
        bytes[6 + 8 * 11..6 + 8 * 12].copy_from_slice(b"ffffffff");
        assert_eq!(Reader::new(&bytes[..]).next(), Some(Err(Defect::BadName(0))));
    }

    #[test]
    fn an_archive_without_a_trailer_ends_where_the_bytes_end() {
        let bytes = member("a", 1, 0o100_644, b"x");
        assert_eq!(Reader::new(&bytes[..]).count(), 1);
    }

    #[test]
    fn a_file_that_is_no_archive_is_named_so() {
        assert_eq!(Reader::new(&b"\x7fELF__________"[..]).next(), Some(Err(Defect::BadMagic(0))));
    }
}

//! Tells source files of the version that an image was built from from later ones.
//!
//! DWARF 5 has room for an MD5 of each file (section 6.2.4.1, `DW_LNCT_MD5`), which clang writes and rustc and gcc do
//! not. What `kwab` keeps of an image, in the store or beside a dump, has them: they are taken when it is kept, of
//! files that are older than the image. Of an image that lies where it was built, the time of its file is known, and a
//! source file that is newer is in doubt.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::time::SystemTime;

use md5::Digest as _;

use super::allowance::Allowance;
use super::regular;

/// The longest source file that is read.
pub(super) const MAX_SOURCE_BYTES: u64 = 8 << 20;
/// Bytes of source files that are read for the checksums of one image, several times those of a kernel: an image may
/// name a file that is there by any number of paths.
const MOST_TOGETHER: u64 = 256 << 20;
/// The section with the checksums of source files: 32 hexadecimal digits, a space and the recorded path in each line.
pub(super) const SOURCES: &str = ".kwab.sources";

/// How files end that are taken for sources; an image may name any file of its reader.
const ENDINGS: [&str; 14] = ["rs", "c", "h", "S", "s", "asm", "inc", "cc", "cpp", "cxx", "hpp", "hh", "zig", "go"];

/// The MD5 of a file, which tells its versions apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Md5(pub [u8; 16]);

/// What is known of the version of a source file that an image was built from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SourceVersion {
    /// Nothing is known of it.
    #[default]
    Unknown,
    /// The file had this checksum.
    Md5(Md5),
    /// When the image was written, so that it was there before.
    Before(SystemTime),
}

impl Md5 {
    /// That of these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(md5::Md5::digest(bytes).into())
    }

    fn digits(self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn from_digits(digits: &str) -> Option<Self> {
        let digits: &[u8; 32] = digits.as_bytes().try_into().ok()?;
        let mut sum = [0; 16];
        for (byte, pair) in sum.iter_mut().zip(digits.as_chunks::<2>().0) {
            *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
        }
        Some(Self(sum))
    }
}

/// A path as an index keeps it: with the checksum behind it, if there is one. No path has a zero byte.
pub(super) fn marked(path: &str, sum: Option<Md5>) -> String {
    sum.map_or_else(|| path.to_owned(), |sum| format!("{path}\0{}", sum.digits()))
}

/// Path and version of what [`marked`] made.
pub(super) fn unmarked(text: &str) -> (&str, SourceVersion) {
    let split = text.split_once('\0');
    let sum = split.and_then(|(_, digits)| Md5::from_digits(digits));
    (split.map_or(text, |(path, _)| path), sum.map_or(SourceVersion::Unknown, SourceVersion::Md5))
}

/// Bytes of source files that may still be read for an image.
pub(super) const fn room() -> Allowance {
    Allowance::exactly(MOST_TOGETHER)
}

/// The checksum of a source file as it was when the image was built, if it can be told and there is room.
pub(super) fn of_file(path: &str, version: SourceVersion, room: &Allowance) -> Option<Md5> {
    let image = match version {
        SourceVersion::Md5(sum) => return Some(sum),
        SourceVersion::Before(image) => image,
        SourceVersion::Unknown => return None,
    };
    let path = Path::new(path);
    let is_source = path.extension().is_some_and(|ending| ENDINGS.iter().any(|known| ending == *known));
    let meta = path.metadata().ok().filter(|_| is_source && path.is_absolute())?;
    let is_that = meta.modified().is_ok_and(|changed| changed <= image) && room.take(meta.len());
    is_that.then(|| regular::read(path, MAX_SOURCE_BYTES).ok().map(|bytes| Md5::of(&bytes)))?
}

/// The text of the section [`SOURCES`] for files as [`marked`] names them, of an image that was written at a time.
pub(super) fn lines(files: &BTreeSet<String>, written: Option<SystemTime>) -> String {
    let room = room();
    let line = |text: &String| {
        let (file, recorded) = unmarked(text);
        let version = match (recorded, written) {
            (SourceVersion::Unknown, Some(written)) => SourceVersion::Before(written),
            (recorded, _) => recorded,
        };
        // A line has one path.
        of_file(file, version, &room).filter(|_| !file.contains('\n')).map(|sum| format!("{} {file}\n", sum.digits()))
    };
    files.iter().filter_map(line).collect()
}

/// What the section [`SOURCES`] says.
pub(super) fn read(section: &[u8]) -> HashMap<String, Md5> {
    let text = String::from_utf8_lossy(section);
    let lines = text.lines().filter_map(|line| line.split_once(' '));
    lines.filter_map(|(digits, path)| Some((path.to_owned(), Md5::from_digits(digits)?))).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn sums_are_of_sources_older_than_the_image_and_what_is_read_for_them_is_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let (source, secret) = (path("a.c"), path("secret"));
        fs::write(&source, vec![b'x'; MAX_SOURCE_BYTES as usize]).unwrap();
        fs::write(&secret, "x").unwrap();
        let written = SystemTime::now() + std::time::Duration::from_secs(60);
        let sum = |path: &str, version| of_file(path, version, &room());
        assert!(sum(&source, SourceVersion::Before(written)).is_some());
        for (path, version) in [
            (source.as_str(), SourceVersion::Before(SystemTime::UNIX_EPOCH)),
            (&source, SourceVersion::Unknown),
            (&secret, SourceVersion::Before(written)),
            ("Cargo.toml", SourceVersion::Before(written)),
        ] {
            assert_eq!(sum(path, version), None, "{path}");
        }
        let spelled: BTreeSet<String> = (1..100).map(|slashes| path(&format!("{}a.c", "./".repeat(slashes)))).collect();
        let all = lines(&spelled, Some(written));
        assert_eq!(all.lines().count() as u64, MOST_TOGETHER / MAX_SOURCE_BYTES - 1);
        assert_eq!(read(all.as_bytes()).len(), all.lines().count());
    }
}

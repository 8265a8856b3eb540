//! Opens what a search has found: a regular file, without waiting for anything.
//!
//! A search looks at a name and opens it later. What the name leads to by then may be a FIFO, whose open would wait for
//! a writer, or a device: the open does not wait, and what was opened is looked at again.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;

/// Opens a regular file for reading.
///
/// # Errors
/// Those of the system, and for what is not a regular file.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits() as i32;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("is not a regular file")) }
}

/// The bytes of a regular file, whatever length the system says it has (0 for those of `/proc`).
///
/// # Errors
/// As [`open`], and for one of more than `most` bytes.
pub(crate) fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most { Err(io::Error::other("is too long")) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fifo_without_a_writer_and_a_device_are_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RWXU).unwrap();
        for path in [fifo.as_path(), Path::new("/dev/zero")] {
            assert_eq!(open(path).unwrap_err().to_string(), "is not a regular file");
        }
        let file = folder.path().join("file");
        std::fs::write(&file, "abc").unwrap();
        assert_eq!(read(&file, 3).unwrap(), b"abc");
        assert_eq!(read(&file, 2).unwrap_err().to_string(), "is too long");
    }
}

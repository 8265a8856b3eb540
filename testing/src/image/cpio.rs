//! Writes a newc cpio archive, the form in which a kernel takes its first file system.
//!
//! The archive is a function of its entries alone: times are zero, inode numbers count up, the owner is root, and the
//! caller's order is kept. The crate `cpio` lays out the bytes; this module says which numbers an entry gets.

use std::io::Write as _;

use cpio::newc;

/// What an entry is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    /// A directory; entries inside it come after it in the archive.
    Folder,
    /// A file with its content.
    File(Vec<u8>),
    /// A symbolic link and where it points.
    Link(String),
    /// A character device: major and minor number.
    Device(u32, u32),
}

/// Entries in the order in which they were added.
#[derive(Debug, Default)]
pub struct Archive {
    bytes: Vec<u8>,
    entries: u32,
}

impl Archive {
    /// Appends one entry. `name` has no leading slash; `permissions` are the low twelve bits of the mode.
    pub fn add(&mut self, name: &str, permissions: u32, node: &Node) {
        let (kind, data, (major, minor)) = match node {
            Node::Folder => (0o040_000, &[][..], (0, 0)),
            Node::File(content) => (0o100_000, &content[..], (0, 0)),
            Node::Link(target) => (0o120_000, target.as_bytes(), (0, 0)),
            Node::Device(major, minor) => (0o020_000, &[][..], (*major, *minor)),
        };
        let links = if *node == Node::Folder { 2 } else { 1 };
        // A guest program over 4 GiB is not a thing to handle but a mistake to notice.
        let size = u32::try_from(data.len()).expect("an initramfs file has at most 4 GiB");
        self.entries += 1;
        let entry = newc::Builder::new(name).ino(self.entries).mode(kind | (permissions & 0o7777)).nlink(links);
        let mut writer = entry.rdev_major(major).rdev_minor(minor).write(&mut self.bytes, size);
        writer.write_all(data).and_then(|()| writer.finish().map(drop)).expect(TO_MEMORY);
    }

    /// Ends the archive, padded to 512 bytes as cpio does.
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        newc::trailer(&mut self.bytes).expect(TO_MEMORY);
        self.bytes.resize(self.bytes.len().next_multiple_of(512), 0);
        self.bytes
    }
}

/// Why writing an archive cannot fail.
const TO_MEMORY: &str = "writing to a vector does not fail";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_entry_has_the_fields_that_the_format_names_in_their_places() {
        let mut archive = Archive::default();
        archive.add("a", 0o644, &Node::File(b"hello".to_vec()));
        let bytes = archive.finish();
        let header = "070701\
            00000001000081a4000000000000000000000001000000000000000500000000000000000000000000000000\
            0000000200000000";
        assert_eq!(&bytes[..110], header.as_bytes());
        assert_eq!(&bytes[110..112], b"a\0");
        assert_eq!(&bytes[112..120], b"hello\0\0\0");
        assert_eq!(bytes.len() % 512, 0);
    }

    #[test]
    fn cpio_itself_reads_the_archive_back() {
        use crate::process::Call;
        if crate::setup::find("cpio").is_none() {
            eprintln!("no cpio on this machine: the format test above stands alone");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let mut archive = Archive::default();
        archive.add("d", 0o755, &Node::Folder);
        archive.add("d/file", 0o600, &Node::File(b"0123456789".to_vec()));
        archive.add("d/link", 0o777, &Node::Link("file".into()));
        std::fs::write(folder.path().join("a.cpio"), archive.finish()).unwrap();
        let script = "cpio --quiet -idm < a.cpio && cat d/link && stat -c %a d/file";
        let output = Call::new("sh").args(["-c", script]).folder(folder.path()).capture().unwrap();
        assert_eq!(output.stdout, "0123456789600\n");
    }
}

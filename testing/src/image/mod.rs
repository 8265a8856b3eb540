//! Builds the file system that a guest starts from: a tree of entries, and the archive made of it.
//!
//! An [`Image`] is a sorted map from path to entry, so the same content gives the same bytes whatever the order in
//! which it was put together; parents come into being by themselves. [`mod@base`] is what a person expects to find
//! after login; commands put their own programs and job lists on top.

pub mod base;
pub mod cpio;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

pub use base::base;
pub use cpio::Node;

/// A tree of files on its way into a guest.
#[derive(Clone, Debug, Default)]
pub struct Image {
    entries: BTreeMap<String, (u32, Node)>,
}

impl Image {
    /// Puts an entry at an absolute path, replacing what was there; missing parents are made with mode 755.
    pub fn put(&mut self, path: &str, permissions: u32, node: Node) {
        let name = path.trim_matches('/');
        for (at, _) in name.match_indices('/') {
            self.entries.entry(name[..at].to_owned()).or_insert((0o755, Node::Folder));
        }
        self.entries.insert(name.to_owned(), (permissions, node));
    }

    /// Puts a text file with mode 644.
    pub fn text(&mut self, path: &str, content: &str) {
        self.put(path, 0o644, Node::File(content.as_bytes().to_vec()));
    }

    /// Puts a program from the host, mode 755.
    pub fn program(&mut self, path: &str, from: &Path) -> Result<()> {
        let content = fs::read(from).with_context(|| format!("cannot read {}", from.display()))?;
        self.put(path, 0o755, Node::File(content));
        Ok(())
    }

    /// Copies a folder of the host below `path`, with its links and permissions; devices and sockets are left out.
    pub fn tree(&mut self, path: &str, from: &Path) -> Result<()> {
        use std::os::unix::fs::PermissionsExt as _;
        for entry in walkdir::WalkDir::new(from).min_depth(1) {
            let entry = entry?;
            let below = entry.path().strip_prefix(from)?;
            let name = format!("{}/{}", path.trim_end_matches('/'), below.display());
            let permissions = entry.metadata()?.permissions().mode() & 0o7777;
            let kind = entry.file_type();
            if kind.is_dir() {
                self.put(&name, permissions, Node::Folder);
            } else if kind.is_symlink() {
                self.put(&name, 0o777, Node::Link(fs::read_link(entry.path())?.display().to_string()));
            } else if kind.is_file() {
                self.put(&name, permissions, Node::File(fs::read(entry.path())?));
            }
        }
        Ok(())
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The newc archive of all entries.
    pub fn archive(&self) -> Vec<u8> {
        let mut archive = cpio::Archive::default();
        for (name, (permissions, node)) in &self.entries {
            archive.add(name, *permissions, node);
        }
        archive.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_building_does_not_show_in_the_archive() {
        let (mut one, mut other) = (Image::default(), Image::default());
        one.text("/etc/a", "1");
        one.text("/etc/b", "2");
        other.text("/etc/b", "2");
        other.text("/etc/a", "1");
        assert_eq!(one.archive(), other.archive());
    }

    #[test]
    fn parents_exist_and_come_before_their_children() {
        let mut image = Image::default();
        image.text("/usr/share/doc/readme", "x");
        let names: Vec<&String> = image.entries.keys().collect();
        assert_eq!(names, ["usr", "usr/share", "usr/share/doc", "usr/share/doc/readme"]);
    }
}

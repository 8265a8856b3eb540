//! Owns the repro pack: one archive with a dump and what is needed to look at it without a network.
//!
//! A pack is a ZIP archive whose first entry, `kwab-pack.json`, lists every other one with its role, length and
//! SHA-256. Names in it are of one grammar: `dump.kwab`, or a folder of [`FOLDERS`] and a plain name. [`write()`] makes
//! a pack, [`unpack`] restores one into a new directory. An archive comes from a stranger: nothing of it is trusted but
//! what the list says and the digests confirm, and a directory is there whole or not at all.

mod embed;
#[cfg(test)]
mod tests;
mod unpack;
mod write;

pub use embed::{FileOfImage, embed};
pub use unpack::{UnpackError, unpack};
pub use write::{PackError, Part, write};

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::output::folder_of;

/// The version of [`Manifest`].
pub const SCHEMA: u32 = 1;
/// The name of the list, in the archive and in the directory that is made of it.
pub const MANIFEST: &str = "kwab-pack.json";
/// The name of the dump.
pub const DUMP: &str = "dump.kwab";
/// The folders that a pack has: images by build-id, what the guest was given, notes.
pub const FOLDERS: [&str; 3] = ["images", "inputs", "notes"];
/// Entries that a pack can have.
const MOST_FILES: usize = 1024;
/// Bytes of the list.
const LONGEST_MANIFEST: u64 = 1 << 20;

/// What a file of a pack is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PackRole {
    /// The dump that the pack is about.
    Dump,
    /// An image that ran: the kernel, a module, a program.
    Image,
    /// What the machine was given: an initramfs, a disk, a test.
    Input,
    /// How it was run: the command of QEMU, the command line of the kernel.
    Note,
}

/// A file of a pack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PackedFile {
    /// Its path in the pack.
    pub path: String,
    /// What it is.
    pub role: PackRole,
    /// Its length in bytes.
    pub bytes: u64,
    /// Its SHA-256, in hexadecimal digits.
    pub sha256: String,
    /// The build-id of an image.
    pub build_id: Option<String>,
}

/// What a pack holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Version of this form.
    pub schema: u32,
    /// The program that made the pack, with its version.
    pub producer: String,
    /// The kernel and its release.
    pub kernel: String,
    /// The policy by which the dump was redacted, if it was.
    pub redacted: Option<String>,
    /// Images that the dump names and that were not found.
    pub missing: Vec<String>,
    /// The files, the dump first.
    pub files: Vec<PackedFile>,
}

/// The folders beside a dump whose images count by their build-id: `symbols`, and `images` of a restored pack.
#[must_use]
pub fn images_beside(dump: &Path) -> Vec<PathBuf> {
    let folder = folder_of(dump);
    let names = [("symbols", true), ("images", folder.join(MANIFEST).is_file())];
    let folders = names.into_iter().filter(|(_, counts)| *counts).map(|(name, _)| folder.join(name));
    // Restoring makes no links; what one leads to did not come with the dump.
    folders.filter(|path| std::fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir())).collect()
}

/// Bytes that an archive of this length may unpack to.
const fn most_unpacked(length: u64) -> u64 {
    (64_u64 << 20).saturating_add(length.saturating_mul(40))
}

/// Whether a path is one that a pack can have.
fn is_path(path: &str) -> bool {
    let plain = |name: &str| {
        let signs = |sign: char| sign.is_ascii_alphanumeric() || "._+-".contains(sign);
        (1..=128).contains(&name.len()) && !name.starts_with('.') && name.chars().all(signs)
    };
    path == DUMP || path.split_once('/').is_some_and(|(folder, name)| FOLDERS.contains(&folder) && plain(name))
}

/// A digest in hexadecimal digits.
fn hex(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

//! Restores a pack into a new directory, or leaves nothing.
//!
//! The archive's own directory is believed in nothing: an entry must be a regular file that the list names, once, and
//! have the length and the digest of the list. What it unpacks to is bounded before the first byte is written, and
//! everything is written into a directory without its final name.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use sha2::{Digest as _, Sha256};
use zip::ZipArchive;
use zip::result::ZipError;

use super::{DUMP, LONGEST_MANIFEST, MANIFEST, MOST_FILES, Manifest, PackRole, SCHEMA, hex, is_path, most_unpacked};
use crate::output::{folder_of, name_folder};

/// Bytes of the end record of an archive without a comment (APPNOTE.TXT, 4.3.16).
const END_LEN: u64 = 22;
/// Bytes of a header in its directory, before the name (APPNOTE.TXT, 4.3.12).
const HEADER_LEN: usize = 46;
/// Bytes of the directory of an archive: 256 for each entry are more than a name and its fields take.
const LONGEST_DIRECTORY: u32 = 256 * (MOST_FILES as u32 + 1);

/// Why a pack was not restored. Nothing of it is left then.
#[derive(Debug, thiserror::Error)]
pub enum UnpackError {
    /// Reading the archive or writing a file failed.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// Not a ZIP archive, or a damaged one.
    #[error("is not a pack: {0}")]
    Zip(#[from] ZipError),
    /// Not made by `kwab pack`.
    #[error("is not a pack: {0}")]
    Foreign(&'static str),
    /// Its list is not one.
    #[error("its list cannot be read: {0}")]
    Manifest(#[from] serde_json::Error),
    /// Made by a later version.
    #[error("is a pack of version {0}, which this kwab cannot read; a newer one can")]
    Version(u32),
    /// An entry or a line of the list that a pack cannot have.
    #[error("refused: {what}: {name:?}")]
    Refused {
        /// What is wrong.
        what: &'static str,
        /// The name of the entry.
        name: String,
    },
    /// More than such an archive may unpack to.
    #[error("unpacks to {bytes} bytes, more than {most}, which an archive of its length may hold")]
    Bomb {
        /// What the list claims.
        bytes: u64,
        /// What is allowed.
        most: u64,
    },
    /// The directory is there already.
    #[error("exists; name another directory with -o")]
    Exists,
}

fn refused(what: &'static str, name: impl Into<String>) -> UnpackError {
    UnpackError::Refused { what, name: name.into() }
}

/// Restores the pack in `archive` as the directory `to`, which must not exist.
///
/// # Errors
/// [`UnpackError`]; nothing is left behind then.
pub fn unpack(mut archive: impl Read + Seek, to: &Path) -> Result<Manifest, UnpackError> {
    if fs::symlink_metadata(to).is_ok() {
        return Err(UnpackError::Exists);
    }
    let length = archive.seek(SeekFrom::End(0))?;
    let entries = entries(&mut archive, length)?;
    archive.rewind()?;
    let mut archive = ZipArchive::new(archive)?;
    // Of entries with one name the reader keeps one.
    if archive.len() != entries {
        return Err(UnpackError::Foreign("two of its entries have one name"));
    }
    if archive.has_overlapping_entries()? {
        return Err(UnpackError::Foreign("its entries overlap"));
    }
    let manifest = manifest(&mut archive)?;
    let most = most_unpacked(length);
    let bytes = manifest.files.iter().fold(0, |sum: u64, file| sum.saturating_add(file.bytes));
    if bytes > most {
        return Err(UnpackError::Bomb { bytes, most });
    }
    let folder = tempfile::Builder::new().prefix(".kwab-").tempdir_in(folder_of(to))?;
    extract(&mut archive, &manifest, folder.path())?;
    match name_folder(folder, to) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(UnpackError::Exists),
        named => Ok(named.map(|()| manifest)?),
    }
}

/// Entries by the record at the end of the archive. Its directory ends where the record begins, so that every reader
/// takes the same one, and is short, so that reading it takes little memory.
fn entries(archive: &mut (impl Read + Seek), length: u64) -> Result<usize, UnpackError> {
    let at = length.checked_sub(END_LEN).ok_or(UnpackError::Foreign("it is too short"))?;
    archive.seek(SeekFrom::Start(at))?;
    let mut end = [0; END_LEN as usize];
    archive.read_exact(&mut end)?;
    let [b'P', b'K', 5, 6, 0, 0, 0, 0, here_low, here_high, low, high, sizes @ .., 0, 0] = end else {
        return Err(UnpackError::Foreign("it does not end as a ZIP archive without a comment does"));
    };
    if [here_low, here_high] != [low, high] {
        return Err(UnpackError::Foreign("parts of it are on other disks"));
    }
    let [a, b, c, d, e, f, g, h] = sizes;
    let (size, start) = (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]));
    if u64::from(start) + u64::from(size) != at {
        return Err(UnpackError::Foreign("its directory does not lie at its end"));
    }
    let entries = usize::from(u16::from_le_bytes([low, high]));
    if entries > MOST_FILES + 1 || size > LONGEST_DIRECTORY {
        return Err(UnpackError::Foreign("it has too many entries"));
    }
    let mut directory = vec![0; size as usize];
    archive.seek(SeekFrom::Start(start.into()))?;
    archive.read_exact(&mut directory)?;
    match headers(&directory) == Some(entries) && start != u32::MAX {
        true => Ok(entries),
        false => Err(UnpackError::Foreign("its directory is not one of so many entries")),
    }
}

/// Headers in a directory that consists of them (APPNOTE.TXT, 4.3.12). The reader goes back to an earlier end record
/// when the last one leads it to something else, and one in front of it may have millions of entries.
fn headers(mut directory: &[u8]) -> Option<usize> {
    let mut count = 0;
    while let Some((header, rest)) = directory.split_first_chunk::<HEADER_LEN>() {
        let length = |at: usize| usize::from(u16::from_le_bytes([header[at], header[at + 1]]));
        directory = rest.get(length(28) + length(30) + length(32)..)?;
        count += usize::from(header.starts_with(b"PK\x01\x02"));
    }
    directory.is_empty().then_some(count)
}

/// The list, checked against the entries.
fn manifest<R: Read + Seek>(archive: &mut ZipArchive<R>) -> Result<Manifest, UnpackError> {
    let mut text = Vec::new();
    let entry = match archive.by_name(MANIFEST) {
        Ok(entry) => entry,
        Err(ZipError::FileNotFound) => return Err(UnpackError::Foreign("it has no kwab-pack.json")),
        Err(error) => return Err(error.into()),
    };
    entry.take(LONGEST_MANIFEST + 1).read_to_end(&mut text)?;
    if text.len() as u64 > LONGEST_MANIFEST {
        return Err(UnpackError::Foreign("its list is longer than 1 MiB"));
    }
    let version: Version = serde_json::from_slice(&text)?;
    if version.schema != SCHEMA {
        return Err(UnpackError::Version(version.schema));
    }
    let manifest: Manifest = serde_json::from_slice(&text)?;
    let mut names = BTreeSet::from([MANIFEST]);
    for file in &manifest.files {
        if !is_path(&file.path) {
            return Err(refused("a path that a pack cannot have", &file.path));
        }
        if !names.insert(&file.path) {
            return Err(refused("listed twice", &file.path));
        }
    }
    if manifest.files.iter().any(|file| (file.role == PackRole::Dump) != (file.path == DUMP)) || !names.contains(DUMP) {
        return Err(UnpackError::Foreign("it has no dump, or several, or one under another name"));
    }
    for number in 0..archive.len() {
        let entry = archive.by_index_raw(number)?;
        let name = entry.name()?.into_owned();
        if !entry.is_file() || entry.is_symlink() {
            return Err(refused("not a regular file", name));
        }
        if entry.unix_mode().is_some_and(|mode| mode & 0o170_000 != 0o100_000 && mode & 0o170_000 != 0) {
            return Err(refused("not a regular file", name));
        }
        if entry.encrypted() {
            return Err(refused("encrypted", name));
        }
        if !names.contains(&*name) {
            return Err(refused("not in the list", name));
        }
    }
    match names.len() == archive.len() {
        true => Ok(manifest),
        false => Err(UnpackError::Foreign("files of its list are not in it")),
    }
}

/// The version, of whatever else a list consists.
#[derive(serde::Deserialize)]
struct Version {
    schema: u32,
}

/// Writes the files and checks each against the list.
fn extract<R: Read + Seek>(archive: &mut ZipArchive<R>, manifest: &Manifest, folder: &Path) -> Result<(), UnpackError> {
    for file in &manifest.files {
        let path = folder.join(&file.path);
        fs::create_dir_all(folder_of(&path))?;
        let mut out = File::create_new(&path)?;
        let mut entry = archive.by_name(&file.path)?.take(file.bytes.saturating_add(1));
        let (mut digest, mut length) = (Sha256::new(), 0);
        let mut chunk = vec![0; 64 << 10];
        loop {
            let read = entry.read(&mut chunk)?;
            if read == 0 {
                break;
            }
            length += read as u64;
            digest.update(&chunk[..read]);
            out.write_all(&chunk[..read])?;
        }
        if length != file.bytes || hex(&digest.finalize()) != file.sha256 {
            return Err(refused("not what the list says of its length and digest", &file.path));
        }
    }
    let text = serde_json::to_vec_pretty(manifest)?;
    File::create_new(folder.join(MANIFEST))?.write_all(&text)?;
    Ok(())
}

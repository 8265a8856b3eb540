//! Writes a pack: the list first, then each file of it.

use std::collections::BTreeSet;
use std::io::{self, Read, Seek, Write};

use sha2::{Digest as _, Sha256};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

use super::{MANIFEST, MOST_FILES, Manifest, PackRole, PackedFile, hex, is_path, most_unpacked};

/// Why a pack was not made.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// Reading a part or writing the archive failed.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The archive cannot be written.
    #[error("{0}")]
    Zip(#[from] zip::result::ZipError),
    /// A path that a pack cannot have, or has already.
    #[error("{0}: not a name that a pack can have, or there twice")]
    Name(String),
    /// More files than a pack can have.
    #[error("{0} files; a pack has at most {MOST_FILES}")]
    Many(usize),
    /// What `unpack` would refuse.
    #[error("{bytes} bytes in an archive of {length}: a pack is shorter than 4 GiB and holds at most {most} then")]
    Large {
        /// Bytes of the files.
        bytes: u64,
        /// Bytes of the archive.
        length: u64,
        /// What an archive of this length may hold.
        most: u64,
    },
    /// A file that changed while it was read.
    #[error("{0}: changed while it was packed")]
    Changed(String),
}

/// A file to put into a pack.
#[derive(Debug)]
pub struct Part<R> {
    /// Its path in the pack.
    pub path: String,
    /// What it is.
    pub role: PackRole,
    /// The build-id of an image.
    pub build_id: Option<String>,
    /// Its content, read twice: for the digest, then into the archive.
    pub content: R,
}

/// Writes a pack of `parts`; `manifest` is filled with what they are. The same parts make the same bytes.
///
/// # Errors
/// [`PackError`]; what was written until then is of no use.
pub fn write<R: Read + Seek>(
    mut manifest: Manifest,
    parts: &mut [Part<R>],
    out: &mut (impl Write + Seek),
) -> Result<Manifest, PackError> {
    if parts.len() > MOST_FILES {
        return Err(PackError::Many(parts.len()));
    }
    let mut names = BTreeSet::new();
    manifest.files.clear();
    for part in &mut *parts {
        if !is_path(&part.path) || !names.insert(part.path.clone()) {
            return Err(PackError::Name(part.path.clone()));
        }
        let mut digest = Sha256::new();
        let bytes = io::copy(&mut part.content, &mut HashInto(&mut digest))?;
        part.content.rewind()?;
        manifest.files.push(PackedFile {
            path: part.path.clone(),
            role: part.role,
            bytes,
            sha256: hex(&digest.finalize()),
            build_id: part.build_id.clone(),
        });
    }
    let mut archive = ZipWriter::new(out);
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Deflated)
        .last_modified_time(DateTime::default())
        .unix_permissions(0o644)
        .large_file(true);
    archive.start_file(MANIFEST, options)?;
    archive.write_all(&serde_json::to_vec_pretty(&manifest).map_err(io::Error::from)?)?;
    for (part, listed) in parts.iter_mut().zip(&manifest.files) {
        archive.start_file(&*part.path, options)?;
        let copied = io::copy(&mut part.content.by_ref().take(listed.bytes.saturating_add(1)), &mut archive)?;
        if copied != listed.bytes {
            return Err(PackError::Changed(part.path.clone()));
        }
    }
    let length = archive.finish()?.stream_position()?;
    let bytes = manifest.files.iter().fold(0, |sum: u64, file| sum.saturating_add(file.bytes));
    let most = most_unpacked(length);
    if bytes > most || u32::try_from(length).is_err() {
        return Err(PackError::Large { bytes, length, most });
    }
    Ok(manifest)
}

/// Hashes what is written.
pub(super) struct HashInto<'d>(pub(super) &'d mut Sha256);

impl Write for HashInto<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

//! The bytes of an ELF image: a file, or a part of an archive in memory.

use std::path::PathBuf;
use std::sync::Arc;

/// Where the bytes of an image are.
#[derive(Clone, Debug)]
pub enum ImageBytes {
    /// A file of its own.
    File(PathBuf),
    /// Taken out of an archive, or made by a test.
    Memory {
        /// What to call it.
        name: String,
        /// The bytes of the ELF file.
        bytes: Arc<[u8]>,
    },
}

impl ImageBytes {
    /// Its path, or the name it goes by.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Memory { name, .. } => name.clone(),
        }
    }

    /// How many bytes there are.
    ///
    /// # Errors
    /// Those of the system for a file.
    pub(super) fn size(&self) -> std::io::Result<u64> {
        match self {
            Self::File(path) => Ok(std::fs::metadata(path)?.len()),
            Self::Memory { bytes, .. } => Ok(bytes.len() as u64),
        }
    }
}

//! The table by which our kernel says where its facts lie (`kernel/machine/src/describe.rs`): found in the memory of
//! its image, read into names and numbers.

use std::collections::BTreeMap;

use super::super::image::Kernel;
use super::super::space::Space;

/// How it begins.
const MAGIC: &[u8; 16] = b"KWAB.DESCRIPTION";
/// The version whose names are known.
const VERSION: u64 = 1;
/// Lists, entries of one, and bytes of an entry and of its name.
const MOST_PARTS: u64 = 64;
const MOST_ENTRIES: u64 = 256;
const ENTRY: usize = 32;
const NAME: usize = 24;
/// Bytes of an image that are looked through.
const MOST_IMAGE: u64 = 64 << 20;
const PAGE: u64 = 4096;

/// Names and their values: addresses, offsets, sizes.
#[derive(Debug)]
pub(super) struct Table(BTreeMap<String, u64>);

impl Table {
    /// The one in the image of `kernel`. `None` where there is none; a text says why one that is there cannot be read.
    pub(super) fn find(space: &Space<'_>, kernel: &Kernel) -> Option<Result<Self, String>> {
        let end = kernel.end.min(kernel.start.saturating_add(MOST_IMAGE));
        for page in (kernel.start..end).step_by(PAGE as usize) {
            let Some(bytes) = space.bytes(page, PAGE as usize) else { continue };
            for at in memchr::memmem::find_iter(&bytes, MAGIC) {
                let at = page + at as u64;
                // Where the text stands by chance, no word behind it is its address.
                if space.word(at.wrapping_add(24)) == Some(at) {
                    return Some(Self::read(space, at));
                }
            }
        }
        None
    }

    fn read(space: &Space<'_>, at: u64) -> Result<Self, String> {
        let word = |at: u64| space.word(at).ok_or("its table is not in the memory");
        let version = word(at + 16)?;
        if version != VERSION {
            return Err(format!("its table is of version {version}, this program knows version {VERSION}"));
        }
        let mut names = BTreeMap::new();
        for part in 0..word(at + 32)?.min(MOST_PARTS) {
            let (first, count) = (word(at + 40 + 16 * part)?, word(at + 48 + 16 * part)?.min(MOST_ENTRIES));
            let bytes = space.bytes(first, ENTRY * count as usize).ok_or("a part of its table is not in the memory")?;
            for entry in bytes.chunks_exact(ENTRY) {
                let (name, value) = entry.split_at(NAME);
                let name = &name[..memchr::memchr(0, name).unwrap_or(NAME)];
                let value = value.try_into().map_or(0, u64::from_le_bytes);
                names.insert(String::from_utf8_lossy(name).into_owned(), value);
            }
        }
        Ok(Self(names))
    }

    /// The value of a name.
    pub(super) fn get(&self, name: &str) -> Option<u64> {
        self.0.get(name).copied()
    }

    /// The values of all names that begin so, with what stands behind that.
    pub(super) fn beginning<'t>(&'t self, prefix: &'t str) -> impl Iterator<Item = (&'t str, u64)> {
        self.0.iter().filter_map(move |(name, value)| Some((name.strip_prefix(prefix)?, *value)))
    }

    /// The text that `name` is the address of and `NAME.length` the length.
    pub(super) fn text(&self, space: &Space<'_>, name: &str) -> Option<String> {
        const MOST: u64 = 1 << 16;
        let length = self.get(&format!("{name}.length")).filter(|length| *length <= MOST)?;
        let bytes = space.bytes(self.get(name)?, length as usize)?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }
}

//! Functions that a kernel printed by name: `vfs_write+0xf8/0x450 [ext4]`, without an address.
//!
//! The size that Linux prints is the distance to the next symbol, which an image repeats; a function whose name and
//! size are those of an image is that image's. That is also how an image proves to be the one of a log that has no
//! build-id.

use super::demangle;

/// A function as the frames of a log name it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PrintedFunction {
    /// Its name, demangled.
    pub name: String,
    /// Bytes to the next symbol, when printed.
    pub size: Option<u64>,
    /// The module that holds it; `None` for the kernel itself.
    pub module: Option<String>,
}

impl PrintedFunction {
    /// From the parts of a frame; `None` without a name.
    #[must_use]
    pub fn new(name: &str, size: Option<u64>, module: Option<&str>) -> Option<Self> {
        let name = demangle(name.trim());
        (!name.is_empty()).then(|| Self { name, size, module: module.map(str::to_owned) })
    }

    /// Whether a symbol of `size` bytes with the next one `gap` bytes behind its start has the printed size. Linux
    /// counts the last function of a module's section up to the end of its pages.
    #[must_use]
    pub fn fits(&self, size: u64, gap: u64) -> bool {
        let Some(printed) = self.size else { return true };
        let between = size > 0 && (size..gap).contains(&printed);
        printed == gap || printed == size || between || (self.module.is_some() && size > 0 && printed > gap)
    }
}

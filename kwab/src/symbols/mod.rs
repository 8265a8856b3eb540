//! Turns addresses into functions, inline chains, files and lines, from ELF images that match the dump.
//!
//! An [`Image`] is one ELF file with its [`Index`]: a flat, checksummed table of everything its DWARF and symbol table
//! say about addresses, kept in the user's cache so that the second open reads a few kilobytes. A [`Finder`] looks for
//! the image with the right build-id in files, directories, initramfs archives, the user's [`Store`] and the system's
//! debug directory.
//! [`Symbols`] puts images at the addresses where a dump had them loaded and answers for run-time addresses.
//!
//! Addresses are either *link* addresses (as in the ELF file) or *run-time* addresses; the difference is the load bias.
//!
//! ```
//! use std::sync::Arc;
//! use kwab::symbols::{Image, IndexCache, LoadedImage, Probe, Symbols, short};
//!
//! let image = Image::open(&std::env::current_exe()?, &IndexCache::none())?;
//! let (link, _size) = image.find_symbol("main").expect("every program has one");
//! // The image as a dump had it loaded: 0x10000 above its link addresses, in process 7.
//! let mut symbols = Symbols::new();
//! symbols.add(LoadedImage::new(Arc::new(image), 0x10000, Some(7)));
//! let location = symbols.resolve(link + 0x10000, Some(7), Probe::Exact);
//! assert_eq!(location.function().map(|name| &**name), Some("main"));
//! assert!(short(&location).is_some_and(|line| line.starts_with("main")));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod allowance;
mod build;
mod bytes;
mod cache;
mod calls;
mod cfi;
mod compact;
pub mod cpio;
mod debug_files;
mod debug_info;
mod debuginfod;
mod dwarf;
mod elf;
pub(crate) mod expression;
mod find;
mod image;
mod index;
pub(crate) mod info;
mod layout;
mod names;
mod printed;
mod registers;
pub(crate) mod regular;
mod relocatable;
mod resolve;
mod skip;
pub mod slim;
mod source;
mod split;
mod store;
mod units;
mod version;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_split;

pub use bytes::ImageBytes;
pub use cache::IndexCache;
pub(crate) use calls::is_after_x86_call;
pub use cfi::{Step, UnwindTables};
pub use debug_info::Dwarf;
pub use find::{FindError, Finder, Wanted};
pub use image::Image;
pub use index::{Index, IndexError};
pub(crate) use names::cut;
pub use names::{demangle, is_machinery};
pub use printed::PrintedFunction;
pub use registers::Registers;
pub use resolve::{LoadedImage, Symbols, short};
pub use skip::{Role, is_allocator, is_skipped, kernel_rows, plain, role};
pub use source::SourceLines;
pub use store::{Added, KeptImage, Store, StoreError};
pub(crate) use units::Units;
pub use version::{Md5, SourceVersion};

use std::fmt;
use std::sync::Arc;

/// A GNU build-id: the bytes of the `NT_GNU_BUILD_ID` note.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BuildId(pub Vec<u8>);

impl fmt::Display for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BuildId({self})")
    }
}

/// What an address is to the code that produced it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    /// The address of an instruction: an interrupted instruction pointer, a pointer to a function.
    Exact,
    /// A return address: the call is the instruction before it, which may belong to another line or even function.
    Return,
}

impl Probe {
    /// The address whose line is meant.
    #[must_use]
    pub const fn instruction(self, addr: u64) -> u64 {
        match self {
            Self::Exact => addr,
            Self::Return => addr.saturating_sub(1),
        }
    }
}

/// What is known about one address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Location {
    /// The entry of the symbol table that covers the address.
    pub symbol: Option<Symbol>,
    /// Source frames, innermost first; all but the last are inlined into the next. Empty without DWARF.
    pub frames: Vec<SourceFrame>,
}

impl Location {
    /// The name of the physical function: that of the symbol, or of the outermost source frame.
    #[must_use]
    pub fn function(&self) -> Option<&Arc<str>> {
        self.symbol.as_ref().map(|symbol| &symbol.name).or_else(|| self.frames.last()?.function.as_ref())
    }
}

/// An entry of a symbol table and where in it an address lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// Demangled name of the symbol.
    pub name: Arc<str>,
    /// Bytes from its start to the address.
    pub offset: u64,
    /// Its size in bytes; 0 when the symbol table does not say.
    pub size: u64,
}

/// A function at an address, as the source has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFrame {
    /// Demangled name of the function; `None` when no symbol covers the address.
    pub function: Option<Arc<str>>,
    /// Source file as the compiler recorded it.
    pub file: Option<Arc<str>>,
    /// Which version of the file.
    pub version: SourceVersion,
    /// Line in it, from 1.
    pub line: Option<u32>,
    /// Whether it is inlined into the next frame.
    pub inlined: bool,
    /// Whether it is panic or library machinery that a reader rarely wants to see first.
    pub machinery: bool,
}

/// Why an ELF image cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SymbolError {
    /// The file cannot be read.
    #[error("{path}: {source}")]
    Io {
        /// Path of the file that cannot be read.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is not an ELF file, or a broken one.
    #[error("{path}: not a usable ELF image: {source}")]
    Elf {
        /// Path of the file that is not a usable ELF image.
        path: String,
        /// What is wrong.
        source: object::Error,
    },
    /// Its code and data lie further apart than an index can say.
    #[error("{path}: addresses span {span:#x} bytes; at most 4 GiB can be indexed")]
    TooWide {
        /// Path of the image that is too wide.
        path: String,
        /// Highest minus lowest address.
        span: u64,
    },
    /// The index of the image is damaged.
    #[error("{path}: {source}")]
    Index {
        /// Path of the image whose index is damaged.
        path: String,
        /// What is wrong.
        source: IndexError,
    },
}

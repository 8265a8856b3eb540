//! The form of the table by which a reader of this kernel's memory finds what the kernel knows, without an image.
//!
//! [`Description`] begins with a magic number and its own address, which a reader compares with where it found it. Its
//! parts are lists of [`Entry`]: a name, and an address or a number (an offset, a size, a count). Each module lists its
//! own types, because it alone sees their fields. Names are added and never change their meaning; a change that a
//! reader could not notice raises [`VERSION`]. Nothing in the kernel reads the table: it costs no instruction.

use core::ptr;

/// How a description begins.
pub const MAGIC: [u8; 16] = *b"KWAB.DESCRIPTION";
/// Version of the meaning of names.
pub const VERSION: u64 = 1;
/// Bytes of a name, of which the last is 0.
const NAME: usize = 24;

/// An address, which boot relocates with the image, or a number.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct Value(*const ());

// SAFETY: the pointer is never followed.
unsafe impl Sync for Value {}

/// A name and its value.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Entry {
    name: [u8; NAME],
    value: Value,
}

impl Entry {
    /// A number: an offset or a size in bytes, or a count.
    pub const fn number(name: &str, number: usize) -> Self {
        Self { name: padded(name), value: Value(ptr::without_provenance(number)) }
    }

    /// The numbers of a list.
    pub const fn numbers<const COUNT: usize>(list: [(&str, usize); COUNT]) -> [Self; COUNT] {
        let (mut entries, mut at) = ([Self::number("", 0); COUNT], 0);
        while at < COUNT {
            entries[at] = Self::number(list[at].0, list[at].1);
            at += 1;
        }
        entries
    }

    /// Where something lies.
    pub const fn address<T: ?Sized>(name: &str, of: &'static T) -> Self {
        Self { name: padded(name), value: Value(ptr::from_ref(of).cast()) }
    }

    /// Where a symbol of the linker lies.
    pub(crate) const fn symbol(name: &str, symbol: *const u8) -> Self {
        Self { name: padded(name), value: Value(symbol.cast()) }
    }
}

const fn padded(text: &str) -> [u8; NAME] {
    let (text, mut name, mut at) = (text.as_bytes(), [0; NAME], 0);
    assert!(text.len() < NAME);
    while at < text.len() {
        name[at] = text[at];
        at += 1;
    }
    name
}

/// A list of entries.
#[repr(C)]
pub struct Part {
    first: Value,
    count: usize,
}

impl Part {
    /// The part with these entries, which are a static of a module.
    pub const fn of(entries: &'static [Entry]) -> Self {
        Self { first: Value(entries.as_ptr().cast()), count: entries.len() }
    }
}

/// The table. One static.
#[repr(C)]
pub struct Description<const PARTS: usize> {
    magic: [u8; 16],
    version: u64,
    this: Value,
    count: usize,
    parts: [Part; PARTS],
}

impl<const PARTS: usize> Description<PARTS> {
    /// The table at `this`, which is the static that the result is put into.
    pub const fn new(this: &'static Self, parts: [Part; PARTS]) -> Self {
        Self { magic: MAGIC, version: VERSION, this: Value(ptr::from_ref(this).cast()), count: PARTS, parts }
    }
}

//! Owns [`List`]: a field that holds several sets of fields, without allocation on either side.
//!
//! A writer points it at its own slice; a reader finds it pointing into the dump. Both iterate alike and compare equal
//! when their elements do. On the wire a list is a run of bytes: per element a length and that many bytes of fields. An
//! empty list that is present differs from an absent one.

use crate::schema::Shape;
use crate::wire::{Encoder, Fields, Raw, Value, split_prefixed};

/// Several `T`, either the writer's own or still encoded in a dump.
#[derive(Clone, Copy)]
pub struct List<'a, T> {
    repr: Repr<'a, T>,
}

#[derive(Clone, Copy)]
enum Repr<'a, T> {
    Items(&'a [T]),
    Encoded(&'a [u8]),
}

impl<'a, T> List<'a, T> {
    /// A list of the caller's own elements.
    #[must_use]
    pub const fn new(items: &'a [T]) -> Self {
        Self { repr: Repr::Items(items) }
    }
}

impl<'a, T: Fields<'a>> List<'a, T> {
    /// The elements in order.
    #[must_use]
    pub const fn iter(&self) -> ListIter<'a, T> {
        ListIter { repr: self.repr }
    }

    /// The number of elements; walks an encoded list.
    #[must_use]
    pub fn len(&self) -> usize {
        self.iter().count()
    }

    /// Whether there is no element.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        match self.repr {
            Repr::Items(items) => items.is_empty(),
            Repr::Encoded(bytes) => bytes.is_empty(),
        }
    }
}

impl<'a, T: Fields<'a>> IntoIterator for List<'a, T> {
    type Item = T;
    type IntoIter = ListIter<'a, T>;

    fn into_iter(self) -> ListIter<'a, T> {
        self.iter()
    }
}

/// Iterates a [`List`].
#[derive(Clone, Copy)]
pub struct ListIter<'a, T> {
    repr: Repr<'a, T>,
}

impl<'a, T: Fields<'a>> Iterator for ListIter<'a, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        match &mut self.repr {
            Repr::Items(items) => {
                let (first, rest) = items.split_first()?;
                *items = rest;
                Some(*first)
            }
            Repr::Encoded(bytes) => {
                let (element, rest) = split_prefixed(bytes)?;
                *bytes = rest;
                // `Value::get` has decoded every element before this list could exist.
                T::decode(element).ok().map(|(value, _)| value)
            }
        }
    }
}

impl<'a, T: Fields<'a>> Value<'a> for List<'a, T> {
    const SHAPE: Shape = Shape::List { element: T::NAME, fields: T::FIELDS };

    fn put(&self, number: u8, out: &mut Encoder<'_>) {
        out.nested(number, |out| {
            for item in self.iter() {
                out.prefixed(|out| item.encode(out));
            }
        });
    }

    fn get(raw: Raw<'a>) -> Option<Self> {
        let Raw::Bytes(bytes) = raw else { return None };
        let mut rest = bytes;
        while !rest.is_empty() {
            let (element, after) = split_prefixed(rest)?;
            T::decode(element).ok()?;
            rest = after;
        }
        Some(Self { repr: Repr::Encoded(bytes) })
    }
}

impl<'a, T: Fields<'a>> PartialEq for List<'a, T> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<'a, T: Fields<'a>> core::fmt::Debug for List<'a, T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

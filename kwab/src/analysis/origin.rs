//! Says where wrong bytes come from: zeros, poison, another page, or the right file moved by some bytes.
//!
//! A page is found by bisection. A run that lies anywhere in its file is found by reading the file, so all searches of
//! a dump together read a bounded number of bytes ([`MOST_READ`]); a page for which none are left says so.

use std::cell::Cell;

use schemars::JsonSchema;
use serde::Serialize;

use super::backing::Backing;
use super::space::PAGE;

/// The shortest run of bytes that is looked for elsewhere in a file.
const SHORTEST_RUN: usize = 8;
/// The longest run that is looked for.
const LONGEST_RUN: usize = 64;
/// How far on both sides of its place a run is looked for first: a match here is the nearest one.
const NEAR: usize = 64 << 10;
/// Bytes of files that the searches of one dump read.
const MOST_READ: usize = 2 << 30;

/// What the wrong bytes are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "content", rename_all = "kebab-case")]
pub enum Content {
    /// Nothing but zeros.
    Zeros,
    /// One byte over and over, as allocators leave it.
    Poison {
        /// The byte that fills the page.
        byte: u8,
    },
    /// Another page of the same file.
    SameFile {
        /// Its offset in the file.
        #[serde(serialize_with = "crate::text::word")]
        #[schemars(with = "String")]
        offset: u64,
    },
    /// A page of another file.
    OtherFile {
        /// Path of the file whose page it is.
        path: String,
        /// The offset in it.
        #[serde(serialize_with = "crate::text::word")]
        #[schemars(with = "String")]
        offset: u64,
    },
    /// The right file, moved by some bytes.
    Shifted {
        /// How far: the page holds what belongs this many bytes further on.
        by: i64,
    },
    /// An older state of the cached page.
    Stale {
        /// The generation it is of.
        generation: u64,
        /// The newest generation in the dump.
        newest: u64,
    },
    /// What the file has behind the end of a segment, where the program's zeros begin.
    Boundary,
    /// Something else, or too few bytes to say.
    Unknown,
}

impl Content {
    /// The id of the rule for this kind of content.
    #[must_use]
    pub const fn rule(&self) -> &'static str {
        match self {
            Self::Zeros => "PG-ZERO",
            Self::Poison { .. } => "PG-POISON",
            Self::SameFile { .. } => "PG-SAME-FILE",
            Self::OtherFile { .. } => "PG-OTHER-FILE",
            Self::Shifted { .. } => "PG-SHIFT",
            Self::Stale { .. } => "PG-STALE",
            Self::Boundary => "PG-BOUNDARY",
            Self::Unknown => "PG-DIFF",
        }
    }

    /// A few words for it.
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Self::Zeros => "zeros".to_owned(),
            Self::Poison { byte } => format!("poison ({byte:#04x} repeated)"),
            Self::SameFile { offset } => format!("another page of the same file (+{offset:#x})"),
            Self::OtherFile { path, offset } => format!("a page of {path} (+{offset:#x})"),
            Self::Shifted { by } => format!("the same file shifted by {by} bytes"),
            Self::Stale { generation, newest } => {
                format!("generation {generation} of the page; the newest is {newest}")
            }
            Self::Boundary => "what the file has behind the end of its segment, where .bss begins".to_owned(),
            Self::Unknown => "bytes of unknown origin".to_owned(),
        }
    }
}

/// The files that wrong bytes are looked for in, and how much may still be read.
#[derive(Debug)]
pub(super) struct Search<'b> {
    backing: &'b Backing,
    left: Cell<usize>,
}

impl<'b> Search<'b> {
    pub(super) const fn new(backing: &'b Backing) -> Self {
        Self { backing, left: Cell::new(MOST_READ) }
    }

    /// The files to compare pages with.
    pub(super) const fn files(&self) -> &'b Backing {
        self.backing
    }

    /// What bytes are that should be those of `path` from `offset` on, and why that is less sure than it looks.
    pub(super) fn identify(&self, actual: &[u8], path: &str, offset: Option<u64>) -> (Content, Vec<String>) {
        let Some(&first) = actual.first() else { return (Content::Unknown, Vec::new()) };
        if actual.iter().all(|&byte| byte == first) && (first == 0 || actual.len() >= SHORTEST_RUN) {
            return (if first == 0 { Content::Zeros } else { Content::Poison { byte: first } }, Vec::new());
        }
        let Some(offset) = offset else { return (Content::Unknown, Vec::new()) };
        let in_page = offset % PAGE;
        // The rest of a whole page, at the same place of another page, is that page.
        if let Some((other, found)) = self.backing.page_with(actual, in_page, path) {
            let found = found - in_page;
            let same = other == path;
            let content = if same {
                Content::SameFile { offset: found }
            } else {
                Content::OtherFile { path: other, offset: found }
            };
            return (content, Vec::new());
        }
        let Some(file) = self.backing.file(path).filter(|_| actual.len() >= SHORTEST_RUN) else {
            return (Content::Unknown, Vec::new());
        };
        match self.nearest(file, &actual[..actual.len().min(LONGEST_RUN)], offset) {
            Ok(Some(found)) => (Content::Shifted { by: found.wrapping_sub(offset).cast_signed() }, Vec::new()),
            Ok(None) => (Content::Unknown, Vec::new()),
            Err(()) => {
                let why = format!("not compared with all of its file: the search ended after {} GiB", MOST_READ >> 30);
                (Content::Unknown, vec![why])
            }
        }
    }

    /// Where `run` occurs in `file` nearest to `offset`; an error when no more bytes may be read.
    fn nearest(&self, file: &[u8], run: &[u8], offset: u64) -> Result<Option<u64>, ()> {
        let at = usize::try_from(offset).unwrap_or(usize::MAX).min(file.len());
        let near = (at.saturating_sub(NEAR), file.len().min(at.saturating_add(NEAR)));
        for (from, to) in [near, (0, file.len())] {
            self.left.set(self.left.get().checked_sub(to - from).ok_or(())?);
            let found = memchr::memmem::find_iter(&file[from..to], run).map(|found| (from + found) as u64);
            if let Some(nearest) = found.min_by_key(|found| found.abs_diff(offset)) {
                return Ok(Some(nearest));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_searches_of_a_dump_read_a_bounded_number_of_bytes_and_then_say_so() {
        let file: Vec<u8> = (0..1_u32 << 18).flat_map(u32::to_le_bytes).collect();
        let backing = Backing::from_files(vec![("/bin/a".to_owned(), file.clone())]);
        let search = Search::new(&backing);
        let near = search.identify(&file[0x2010..0x2030], "/bin/a", Some(0x2000));
        assert_eq!(near, (Content::Shifted { by: 16 }, Vec::new()));
        assert!(
            MOST_READ - search.left.get() <= 2 * NEAR,
            "a run near its place is found without the rest of the file"
        );
        let far = search.identify(&file[0x8_0010..0x8_0030], "/bin/a", Some(0x2000));
        assert_eq!(far.0, Content::Shifted { by: 0x7_e010 });
        search.left.set(1 << 20);
        let unknown = search.identify(b"occurs nowhere in it", "/bin/a", Some(0x2000));
        assert_eq!(unknown.0, Content::Unknown);
        assert!(unknown.1.iter().any(|why| why.contains("ended after 2 GiB")), "{:?}", unknown.1);
    }
}

//! A text to search for: the searcher is built by the first search, so that a table that is never asked costs little.

use std::sync::OnceLock;

use memchr::memmem::Finder;

/// A text, and its searcher once it has been searched for.
#[derive(Debug, Clone)]
pub struct Needle {
    text: Box<[u8]>,
    finder: OnceLock<Box<Finder<'static>>>,
}

impl Needle {
    /// Prepares to search for `text`.
    pub fn new(text: &[u8]) -> Self {
        Self { text: text.into(), finder: OnceLock::new() }
    }

    /// The text itself.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// Offset of the first occurrence in `line`.
    pub fn find(&self, line: &[u8]) -> Option<usize> {
        if line.len() < self.text.len() {
            return None;
        }
        self.finder.get_or_init(|| Box::new(Finder::new(&self.text).into_owned())).find(line)
    }
}

/// What a line must hold to mean something to a reader: all of these texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The texts; none at all means any line.
    pub texts: Vec<Vec<u8>>,
    /// Whether upper and lower case count as the same.
    pub any_case: bool,
}

impl Wanted {
    /// All of these texts, as they are spelled.
    pub fn all(texts: Vec<Vec<u8>>) -> Self {
        Self { texts, any_case: false }
    }

    /// This text, as it is spelled.
    pub fn one(text: &[u8]) -> Self {
        Self::all(vec![text.to_vec()])
    }

    /// This text in upper or lower case.
    pub fn in_any_case(text: &[u8]) -> Self {
        Self { texts: vec![text.to_vec()], any_case: true }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_shorter_than_the_text_builds_no_searcher() {
        let needle = Needle::new(b"panicked at");
        assert_eq!(needle.find(b"panicked a"), None);
        assert!(needle.finder.get().is_none());
        assert_eq!(needle.find(b"x panicked at y"), Some(2));
        assert!(needle.finder.get().is_some());
        assert_eq!(Needle::new(b"").find(b""), Some(0));
    }
}

//! Finds the templates that may match a line without trying them all: by the first two bytes of the line.

use std::borrow::Cow;
use std::sync::OnceLock;

use fnv::FnvHashMap;

use super::needle::Needle;
use super::pairs::{Marks, Pairs};
use super::template::{Captures, Template};

/// Templates with a value each, in the order in which they count.
#[derive(Debug)]
pub struct Index<T> {
    rows: Vec<Row<T>>,
    /// Rows that begin with text, by their first two bytes.
    anchored: FnvHashMap<[u8; 2], Vec<usize>>,
    /// Rows that may begin anywhere, the text that a line must hold for each, and the marks of that.
    floating: Vec<(usize, Option<Needle>, Option<Marks>)>,
}

/// A template as it is written, read by the first line that begins like it, and what it stands for.
#[derive(Debug)]
struct Row<T> {
    text: Cow<'static, str>,
    template: OnceLock<Option<Template>>,
    value: T,
}

impl<T> Row<T> {
    /// The template; absent when it cannot be read.
    fn template(&self) -> Option<&Template> {
        self.template.get_or_init(|| Template::new(&self.text).ok()).as_ref()
    }

    fn find<'t, 'l>(&'t self, line: &'l [u8]) -> Option<(&'t T, Captures<'t, 'l>)> {
        Some((&self.value, self.template()?.matches(line)?))
    }

    /// The first two bytes of every line that matches; absent when they differ from line to line.
    fn first_bytes(&self) -> Option<[u8; 2]> {
        match self.text.as_bytes() {
            [first, second, ..] if !b"{ ".contains(first) && !b"{ ".contains(second) => Some([*first, *second]),
            _ => self.template()?.first_bytes()?.first_chunk().copied(),
        }
    }
}

impl<T> Default for Index<T> {
    fn default() -> Self {
        Self { rows: Vec::new(), anchored: FnvHashMap::default(), floating: Vec::new() }
    }
}

impl<T> Index<T> {
    /// Adds a template; one that cannot be read matches no line. Tables are tested, and a user's rows are checked
    /// before.
    pub fn add(&mut self, template: impl Into<Cow<'static, str>>, value: T) {
        let number = self.rows.len();
        let row = Row { text: template.into(), template: OnceLock::new(), value };
        match row.first_bytes() {
            Some(first) => self.anchored.entry(first).or_default().push(number),
            None => {
                let needle = row.template().and_then(Template::longest_literal).map(Needle::new);
                let marks = needle.as_ref().and_then(|needle| Marks::of(needle.text()));
                self.floating.push((number, needle, marks));
            }
        }
        self.rows.push(row);
    }

    /// The first row that matches: those that begin with the line's text first, then those that begin anywhere.
    pub fn find<'t, 'l>(&'t self, line: &'l [u8]) -> Option<(&'t T, Captures<'t, 'l>)> {
        let line = line.trim_ascii_start();
        if let [first, second, ..] = line
            && let Some(rows) = self.anchored.get(&[*first, *second])
        {
            for number in rows {
                if let Some(found) = self.rows[*number].find(line) {
                    return Some(found);
                }
            }
        }
        let pairs = (!self.floating.is_empty()).then(|| Pairs::of(line));
        for (number, needle, marks) in &self.floating {
            if let (Some(pairs), Some(marks)) = (&pairs, marks)
                && !pairs.may_hold(*marks)
            {
                continue;
            }
            if needle.as_ref().is_some_and(|needle| needle.find(line).is_none()) {
                continue;
            }
            if let Some(found) = self.rows[*number].find(line) {
                return Some(found);
            }
        }
        None
    }

    /// For each template the texts that every line which matches it holds.
    pub fn needles(&self) -> impl Iterator<Item = Vec<Vec<u8>>> {
        self.rows.iter().filter_map(Row::template).map(Template::literals)
    }

    /// How many templates there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_is_read_by_the_first_line_that_begins_like_it() {
        let mut index = Index::default();
        for (value, text) in
            ["panic: {message}", "x {rest}", "{} panicked at {place}", "{{a}", "{bad"].iter().enumerate()
        {
            index.add(*text, value);
        }
        let read = |index: &Index<usize>| index.rows.iter().map(|row| row.template.get().is_some()).collect::<Vec<_>>();
        assert_eq!(read(&index), [false, true, true, true, true]);
        assert!(index.find(b"plain").is_none());
        assert!(!read(&index)[0]);
        let find = |line: &[u8]| index.find(line).map(|(value, _)| *value);
        assert_eq!(find(b"panic: at the disco"), Some(0));
        assert_eq!(find(b"x y"), Some(1));
        assert_eq!(find(b"it panicked at x.rs"), Some(2));
        assert_eq!(find(b"{a}"), Some(3));
        assert_eq!(find(b"{bad"), None);
        assert!(read(&index)[0]);
    }
}

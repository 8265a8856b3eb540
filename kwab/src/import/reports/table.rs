//! Finds the templates that may match a line without trying them all: by the first two bytes of the line.

use std::collections::HashMap;

use memchr::memmem::Finder;

use super::template::{Captures, Template};

/// Templates with a value each, in the order in which they count.
#[derive(Debug)]
pub struct Index<T> {
    rows: Vec<(Template, T)>,
    /// The text that a line must hold for each floating row.
    needles: Vec<Option<Finder<'static>>>,
    /// Rows that begin with text, by their first two bytes.
    anchored: HashMap<[u8; 2], Vec<usize>>,
    /// Rows that may begin anywhere.
    floating: Vec<usize>,
}

impl<T> Default for Index<T> {
    fn default() -> Self {
        Self { rows: Vec::new(), needles: Vec::new(), anchored: HashMap::new(), floating: Vec::new() }
    }
}

impl<T> Index<T> {
    /// Adds a template; one that cannot be read is left out. Tables are tested, and a user's rows are checked before.
    pub fn add(&mut self, template: &str, value: T) {
        if let Ok(template) = Template::new(template) {
            self.insert(template, value);
        }
    }

    /// Adds a template.
    pub fn insert(&mut self, template: Template, value: T) {
        let number = self.rows.len();
        match template.first_bytes() {
            Some([first, second, ..]) => self.anchored.entry([*first, *second]).or_default().push(number),
            _ => {
                self.floating.push(number);
                self.needles.push(template.longest_literal().map(|text| Finder::new(text).into_owned()));
            }
        }
        self.rows.push((template, value));
    }

    /// The first row that matches: those that begin with the line's text first, then those that begin anywhere.
    pub fn find<'t, 'l>(&'t self, line: &'l [u8]) -> Option<(&'t T, Captures<'t, 'l>)> {
        let line = line.trim_ascii_start();
        if let [first, second, ..] = line
            && let Some(rows) = self.anchored.get(&[*first, *second])
        {
            for number in rows {
                let (template, value) = &self.rows[*number];
                if let Some(captures) = template.matches(line) {
                    return Some((value, captures));
                }
            }
        }
        for (number, needle) in self.floating.iter().zip(&self.needles) {
            if needle.as_ref().is_some_and(|needle| needle.find(line).is_none()) {
                continue;
            }
            let (template, value) = &self.rows[*number];
            if let Some(captures) = template.matches(line) {
                return Some((value, captures));
            }
        }
        None
    }

    /// For each template the texts that every line which matches it holds.
    pub fn needles(&self) -> impl Iterator<Item = Vec<Vec<u8>>> {
        self.rows.iter().map(|(template, _)| template.literals())
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

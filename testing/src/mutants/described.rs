//! Mutants that are described in words instead of drawn: a function and a piece of its text to be replaced.
//!
//! For the slice of every test run, which cannot wait until `cargo-mutants` is installed. The kinds of change are its
//! kinds.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};

use super::list::{Function, Mutant, Position, Span};
use crate::paths;

/// A change to be made.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    /// The file, relative to the workspace.
    pub file: &'static str,
    /// The function, without its type.
    pub function: &'static str,
    /// What stands once in it.
    pub from: &'static str,
    /// What takes its place.
    pub to: &'static str,
}

/// The mutant that a change describes. An error when the file has no such function, or several, or not exactly one such
/// text.
pub fn mutant(root: &Path, change: &Change) -> Result<Mutant> {
    let Change { file, function, from, to } = *change;
    let text = paths::read(&root.join(file))?;
    let parsed = syn::parse_file(&text).with_context(|| format!("{file} does not parse"))?;
    let mut finder = Finder { name: function, found: Vec::new() };
    finder.visit_file(&parsed);
    ensure!(finder.found.len() == 1, "{file} has {} functions {function}", finder.found.len());
    let around = finder.found.remove(0);
    let (first, last) = (around.start.line, around.end.line);
    let hits: Vec<(usize, &str)> = text
        .lines()
        .enumerate()
        .map(|(index, line)| (index + 1, line))
        .filter(|(line, text)| (first..=last).contains(line) && text.contains(from))
        .collect();
    ensure!(hits.len() == 1, "{file}: {} lines of {function} have `{from}`", hits.len());
    let (line, old) = hits[0];
    let before = old.find(from).map_or(0, |at| old[..at].chars().count());
    let start = Position { line, column: before + 1 };
    let span = Span { start, end: Position { line, column: start.column + from.chars().count() } };
    let new = old.replacen(from, to, 1);
    Ok(Mutant {
        name: format!("{file}:{line}:{}: replace {from} with {to} in {function}", start.column),
        package: String::new(),
        file: file.to_owned(),
        function: Some(Function { name: function.to_owned(), span: around }),
        span,
        replacement: to.to_owned(),
        genre: "Described".to_owned(),
        diff: format!("--- {file}\n+++ replace {from} with {to}\n@@ -{line} +{line} @@\n-{old}\n+{new}\n"),
    })
}

/// Collects the functions of one name.
struct Finder<'a> {
    name: &'a str,
    found: Vec<Span>,
}

impl Finder<'_> {
    fn take(&mut self, name: &syn::Ident, node: proc_macro2::Span) {
        if name == self.name {
            // Columns of proc_macro2 count from 0.
            let position = |at: proc_macro2::LineColumn| Position { line: at.line, column: at.column + 1 };
            self.found.push(Span { start: position(node.start()), end: position(node.end()) });
        }
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item_fn(&mut self, node: &'ast syn::ItemFn) {
        self.take(&node.sig.ident, node.span());
        visit::visit_item_fn(self, node);
    }

    fn visit_impl_item_fn(&mut self, node: &'ast syn::ImplItemFn) {
        self.take(&node.sig.ident, node.span());
        visit::visit_impl_item_fn(self, node);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_found_by_its_function_and_must_be_the_only_one() {
        let folder = tempfile::tempdir().unwrap();
        let text = "fn f() -> bool {\n    1 < 2\n}\n\nfn g() -> bool {\n    1 < 2 && 2 < 3 || 1 < 2\n}\n";
        std::fs::write(folder.path().join("x.rs"), text).unwrap();
        let change = |function, from| Change { file: "x.rs", function, from, to: ">" };
        let found = mutant(folder.path(), &change("f", "<")).unwrap();
        assert_eq!((found.span.start.line, found.span.start.column, found.span.end.column), (2, 7, 8));
        assert_eq!(found.function.unwrap().span.end.line, 3);
        assert!(mutant(folder.path(), &change("f", "&&")).is_err());
        assert!(mutant(folder.path(), &change("h", "<")).is_err());
    }
}

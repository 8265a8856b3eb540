//! Reads which file of a crate imports which: `use` items, paths that begin with `crate`, `super`, `self` or an
//! imported module, and such paths inside macro calls. A name that a module re-exports counts as an import of the file
//! it is from. Code under `#[cfg(test)]` is not read: a test may look at everything.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result};
use proc_macro2::{TokenStream, TokenTree};
use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};
use syn::{Attribute, UseTree};

use super::super::Source;

/// One `use` path or path expression that leads to another module.
#[derive(Clone, Copy, Debug)]
pub(super) struct Import {
    /// The file that imports.
    pub from: usize,
    /// The file it imports from.
    pub to: usize,
    /// The line of the import, from 1.
    pub line: usize,
}

/// A path as it is written, absolute from the crate's root, and its line.
type Written = (Vec<String>, usize);

/// One file of the crate.
struct File {
    path: String,
    /// Its module path; empty for the crate's root.
    module: Vec<String>,
    /// The layer it belongs to; `None` for the crate's root.
    layer: Option<String>,
    /// Names it imports or re-exports, with the absolute path each stands for.
    names: BTreeMap<String, Vec<String>>,
    /// All paths it mentions.
    mentions: Vec<Written>,
}

/// The files of a crate and their imports.
pub(super) struct Graph {
    files: Vec<File>,
    imports: Vec<Import>,
}

/// A re-export of a re-export is followed this far.
const HOPS: usize = 8;

impl Graph {
    /// Reads the files of the crate whose sources lie under `root`. A layer is a top-level module, or, of those in
    /// `split`, a child of one: `parent::child`.
    pub(super) fn read<'a>(root: &str, split: &[String], sources: impl Iterator<Item = &'a Source>) -> Result<Self> {
        let mut files = Vec::new();
        for source in sources {
            let Some(module) = module_of(root, &source.path) else { continue };
            let syntax = syn::parse_file(&source.text).with_context(|| format!("parsing {}", source.path))?;
            let mut reader = Reader { module: module.clone(), names: BTreeMap::new(), mentions: Vec::new() };
            reader.visit_file(&syntax);
            let layer = match module.as_slice() {
                [top, child, ..] if split.contains(top) => Some(format!("{top}::{child}")),
                [top, ..] => Some(top.clone()),
                [] => None,
            };
            let (names, mentions) = (reader.names, reader.mentions);
            files.push(File { path: source.path.clone(), module, layer, names, mentions });
        }
        let mut graph = Self { files, imports: Vec::new() };
        graph.imports = graph.resolve();
        Ok(graph)
    }

    fn resolve(&self) -> Vec<Import> {
        let modules: BTreeMap<&[String], usize> =
            self.files.iter().enumerate().map(|(at, file)| (file.module.as_slice(), at)).collect();
        let mut seen = BTreeSet::new();
        let mut imports = Vec::new();
        for (from, file) in self.files.iter().enumerate() {
            for (written, line) in &file.mentions {
                let Some(to) = self.target(&modules, from, written) else { continue };
                if to != from && seen.insert((from, to)) {
                    imports.push(Import { from, to, line: *line });
                }
            }
        }
        imports
    }

    /// The file that a path leads to, through re-exports; `None` for a path out of the crate.
    fn target(&self, modules: &BTreeMap<&[String], usize>, from: usize, written: &[String]) -> Option<usize> {
        let mut path = match written.first()?.as_str() {
            "crate" => written[1..].to_vec(),
            first => {
                // A name that the file itself imported, or a child module.
                let own = &self.files[from];
                let child: Vec<String> = own.module.iter().cloned().chain([first.to_owned()]).collect();
                let base = if modules.contains_key(child.as_slice()) { child } else { own.names.get(first)?.clone() };
                base.into_iter().chain(written[1..].iter().cloned()).collect()
            }
        };
        for _ in 0..HOPS {
            let depth = (0..=path.len()).rev().find(|&depth| modules.contains_key(&path[..depth]))?;
            let at = modules[&path[..depth]];
            let Some(name) = path.get(depth) else { return Some(at) };
            match self.files[at].names.get(name) {
                Some(real) if at != from => {
                    path = real.iter().cloned().chain(path[depth + 1..].iter().cloned()).collect();
                }
                _ => return Some(at),
            }
        }
        None
    }

    /// How many files there are.
    pub(super) fn len(&self) -> usize {
        self.files.len()
    }

    /// All imports, each pair of files once.
    pub(super) fn imports(&self) -> &[Import] {
        &self.imports
    }

    /// A file's path in the workspace.
    pub(super) fn path(&self, file: usize) -> &str {
        &self.files[file].path
    }

    /// The layer that a file belongs to; `None` for the crate's root.
    pub(super) fn top_of(&self, file: usize) -> Option<&str> {
        self.files[file].layer.as_deref()
    }

    /// Names of the layers that the crate has, in alphabetical order.
    pub(super) fn top_level(&self) -> BTreeSet<&str> {
        (0..self.len()).filter_map(|file| self.top_of(file)).collect()
    }

    /// Whether `child` is a direct part of `parent`.
    pub(super) fn is_parent_of(&self, parent: usize, child: usize) -> bool {
        let (parent, child) = (&self.files[parent].module, &self.files[child].module);
        child.len() == parent.len() + 1 && child.starts_with(parent)
    }
}

/// The module path of a file; `None` for a binary beside the library, whose root is not this one's.
fn module_of(root: &str, path: &str) -> Option<Vec<String>> {
    let inner = path.strip_prefix(root)?.strip_prefix('/')?.strip_suffix(".rs")?;
    let mut parts: Vec<String> = inner.split('/').map(str::to_owned).collect();
    match parts.last().map(String::as_str) {
        Some("main" | "lib") if parts.len() == 1 => parts.clear(),
        Some("mod") => drop(parts.pop()),
        Some("tests") => return None,
        _ => {}
    }
    (!parts.iter().any(|part| part == "tests" || part == "bin")).then_some(parts)
}

/// Collects the paths of one file.
struct Reader {
    module: Vec<String>,
    names: BTreeMap<String, Vec<String>>,
    mentions: Vec<Written>,
}

impl Reader {
    /// Makes a path that begins with `crate`, `super` or `self` absolute (from the root, without `crate`).
    fn absolute(&self, path: &[String]) -> Option<Vec<String>> {
        let mut base = match path.first()?.as_str() {
            "crate" => Vec::new(),
            "self" | "super" => self.module.clone(),
            _ => return None,
        };
        let mut rest = path;
        if rest[0] == "crate" || rest[0] == "self" {
            rest = &rest[1..];
        }
        while rest.first().is_some_and(|word| word == "super") {
            base.pop()?;
            rest = &rest[1..];
        }
        base.extend(rest.iter().cloned());
        Some(base)
    }

    fn mention(&mut self, path: &[String], line: usize) {
        match self.absolute(path) {
            Some(absolute) => {
                let written = [vec!["crate".to_owned()], absolute].concat();
                self.mentions.push((written, line));
            }
            None => self.mentions.push((path.to_vec(), line)),
        }
    }

    fn use_tree(&mut self, tree: &UseTree, prefix: &mut Vec<String>, line: usize) {
        match tree {
            UseTree::Path(path) => {
                prefix.push(path.ident.to_string());
                self.use_tree(&path.tree, prefix, line);
                prefix.pop();
            }
            UseTree::Group(group) => group.items.iter().for_each(|item| self.use_tree(item, prefix, line)),
            UseTree::Glob(_) => self.mention(prefix, line),
            UseTree::Name(name) => self.leaf(prefix, &name.ident.to_string(), None, line),
            UseTree::Rename(name) => {
                self.leaf(prefix, &name.ident.to_string(), Some(name.rename.to_string()), line);
            }
        }
    }

    fn leaf(&mut self, prefix: &[String], name: &str, rename: Option<String>, line: usize) {
        let mut path = prefix.to_vec();
        if name != "self" || prefix.is_empty() {
            path.push(name.to_owned());
        }
        self.mention(&path, line);
        let local = rename.or_else(|| path.last().cloned());
        // A path without `crate`, `self` or `super` leads to a child of this module or out of the crate.
        let target = self.absolute(&path).unwrap_or_else(|| self.module.iter().cloned().chain(path).collect());
        if let Some(local) = local.filter(|local| local != "_") {
            self.names.insert(local, target);
        }
    }

    /// Paths that begin with `crate` inside a macro call, whose grammar only the macro knows.
    fn tokens(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        for (at, token) in tokens.iter().enumerate() {
            match token {
                TokenTree::Group(group) => self.tokens(group.stream()),
                TokenTree::Ident(word) if word == "crate" || word == "super" => {
                    let path = path_at(&tokens[at..]);
                    // One word alone is a visibility: `pub(crate)`.
                    if path.len() > 1 {
                        self.mention(&path, word.span().start().line);
                    }
                }
                _ => {}
            }
        }
    }
}

/// The words of a path at the beginning of `tokens`.
fn path_at(tokens: &[TokenTree]) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = tokens;
    while let [TokenTree::Ident(word), more @ ..] = rest {
        words.push(word.to_string());
        match more {
            [TokenTree::Punct(a), TokenTree::Punct(b), more @ ..] if a.as_char() == ':' && b.as_char() == ':' => {
                rest = more;
            }
            _ => break,
        }
    }
    words
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        syn::Meta::List(list) if list.path.is_ident("cfg") => list.tokens.to_string().contains("test"),
        syn::Meta::Path(path) => path.is_ident("test"),
        _ => false,
    })
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if is_test(&item.attrs) {
            return;
        }
        if let Some((_, items)) = &item.content {
            // Paths inside an inline module are relative to it; it shares its file.
            self.module.push(item.ident.to_string());
            items.iter().for_each(|item| self.visit_item(item));
            self.module.pop();
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if !is_test(&item.attrs) {
            self.use_tree(&item.tree, &mut Vec::new(), item.span().start().line);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if !is_test(&item.attrs) {
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        if !is_test(&item.attrs) {
            visit::visit_item_impl(self, item);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let words: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if words.len() > 1 {
            self.mention(&words, path.span().start().line);
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.tokens(call.tokens.clone());
    }
}

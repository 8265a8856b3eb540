//! Which functions a kernel image has, and whether a text names one of them: the truth that `kwab` is compared with.
//!
//! A mutated function is known by its file and lines, so its names are taken from the debugging information (by
//! `addr2line`, not by `kwab`'s own reader): every function with an instruction of those lines in it, closures
//! included. A text names it by one of these names, or by `symbol+0xoffset` where the code at that place was inlined
//! from it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use addr2line::Loader;
use anyhow::{Context as _, Result, anyhow};
use kwab::symbols::demangle;
use object::{Object as _, ObjectSymbol as _, SymbolKind};
use serde::{Deserialize, Serialize};

use super::list::Mutant;

/// The functions of a kernel image.
pub struct Names {
    loader: Loader,
    /// Link addresses of the symbols, by demangled name.
    symbols: BTreeMap<String, u64>,
    /// From the first to the last address of code.
    code: (u64, u64),
}

/// The functions that a mutation is in.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Blamed {
    /// Their demangled names, with paths.
    pub names: BTreeSet<String>,
    file: String,
    lines: (u32, u32),
}

impl Names {
    /// Reads an image with debugging information.
    pub fn of(kernel: &Path) -> Result<Self> {
        let bytes = std::fs::read(kernel).with_context(|| format!("cannot read {}", kernel.display()))?;
        let elf = object::File::parse(&*bytes).context("the kernel is not an ELF file")?;
        let code = elf.symbols().filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.address() != 0);
        let code: Vec<_> = code.collect();
        let symbols =
            code.iter().filter_map(|symbol| Some((demangle(symbol.name().ok()?), symbol.address()))).collect();
        let first = code.iter().map(object::ObjectSymbol::address).min().context("the kernel has no symbols")?;
        let last = code.iter().map(|symbol| symbol.address() + symbol.size()).max().unwrap_or(first);
        let loader = Loader::new(kernel).map_err(|error| anyhow!("the kernel's debugging information: {error}"))?;
        Ok(Self { loader, symbols, code: (first, last) })
    }

    /// Adds the functions that a mutation is in. Of a constant there are none.
    pub fn blame(&self, mutant: &Mutant, blamed: &mut Blamed) -> Result<()> {
        let Some(function) = &mutant.function else { return Ok(()) };
        let own = function.name.rsplit("::").next().unwrap_or_default();
        let line = |line: usize| u32::try_from(line).unwrap_or(u32::MAX);
        blamed.file.clone_from(&mutant.file);
        blamed.lines = (line(function.span.start.line), line(function.span.end.line));
        let broken = |error| anyhow!("the kernel's line table: {error}");
        for (address, _, place) in self.loader.find_location_range(self.code.0, self.code.1).map_err(broken)? {
            if blamed.is_at(place.file, place.line) {
                let inside = self.chain(address).into_iter().find(|frame| blamed.is_at(frame.1.as_deref(), frame.2));
                // Functions with the same code may be folded into one, with the lines of either.
                blamed
                    .names
                    .extend(inside.and_then(|frame| frame.0).filter(|name| name.contains("::") && base(name) == own));
            }
        }
        Ok(())
    }

    /// The functions at an address, innermost first: name, file, line.
    fn chain(&self, address: u64) -> Vec<(Option<String>, Option<String>, Option<u32>)> {
        let mut chain = Vec::new();
        let Ok(mut frames) = self.loader.find_frames(address) else { return chain };
        while let Ok(Some(frame)) = frames.next() {
            let name = frame.function.and_then(|name| Some(demangle(&name.raw_name().ok()?)));
            let (file, line) = frame.location.map_or((None, None), |at| (at.file.map(str::to_owned), at.line));
            chain.push((name, file, line));
        }
        // Without full debugging information a function has no path there; that of the physical one is in the symbol
        // table.
        if let Some((name, ..)) = chain.last_mut()
            && name.as_ref().is_none_or(|name| !name.contains("::"))
        {
            *name = self.loader.find_symbol(address).map(demangle).or_else(|| name.take());
        }
        chain
    }

    /// Whether a text names one of the functions.
    #[must_use]
    pub fn names(&self, text: &str, blamed: &Blamed) -> bool {
        let text = spaced(text);
        blamed.names.iter().any(|name| ends_of(&text, name).next().is_some()) || self.has_inlined(&text, blamed)
    }

    /// Whether code at a `symbol+0xoffset` of the text was inlined from one of the functions.
    fn has_inlined(&self, text: &str, blamed: &Blamed) -> bool {
        self.places(text).any(|address| {
            // A return address may be that of the next statement.
            let chains = [address, address.saturating_sub(1)].map(|address| self.chain(address));
            chains.iter().flatten().any(|frame| blamed.is_at(frame.1.as_deref(), frame.2))
        })
    }

    /// The addresses that a text gives as `symbol+0xoffset`.
    fn places<'t>(&'t self, text: &'t str) -> impl Iterator<Item = u64> + 't {
        let of = move |(name, address): (&'t String, &'t u64)| {
            ends_of(text, name).filter_map(move |end| {
                let digits = text[end..].strip_prefix("+0x")?;
                let length = digits.bytes().take_while(u8::is_ascii_hexdigit).count();
                Some(address.saturating_add(u64::from_str_radix(&digits[..length], 16).ok()?))
            })
        };
        self.symbols.iter().flat_map(of)
    }

    /// The first function of the kernel that a text names, if there is one.
    #[must_use]
    pub fn any(&self, text: &str) -> Option<&str> {
        let text = spaced(text);
        let named = self.symbols.keys().filter(|name| name.contains("::"));
        named.filter(|name| ends_of(&text, name).next().is_some()).max_by_key(|name| name.len()).map(String::as_str)
    }
}

impl Blamed {
    /// Whether a place in the sources belongs to the mutated function.
    fn is_at(&self, file: Option<&str>, line: Option<u32>) -> bool {
        let is_file = file.is_some_and(|file| !self.file.is_empty() && file.ends_with(&self.file));
        is_file && line.is_some_and(|line| (self.lines.0..=self.lines.1).contains(&line))
    }
}

/// A function's own name: the last part of its path, without what it encloses.
fn base(name: &str) -> &str {
    let around = name.split("::{").next().unwrap_or_default();
    around.rsplit("::").next().unwrap_or_default()
}

/// The text without the line ends that wrapping put into it.
fn spaced(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Where a function's name ends in a text each time that it stands there as a whole; its closures count as itself.
fn ends_of<'t>(text: &'t str, name: &'t str) -> impl Iterator<Item = usize> + 't {
    let part = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    text.match_indices(name).filter_map(move |(at, _)| {
        let (before, rest) = (&text[..at], &text[at + name.len()..]);
        let begins = !before.ends_with(part) || before.ends_with(": ");
        let ends = rest.starts_with("::{") || rest.starts_with(": ") || !rest.starts_with(part);
        (begins && ends && !name.is_empty()).then_some(at + name.len())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutants::list::{Function, Position, Span};

    fn is_named(text: &str, name: &str) -> bool {
        ends_of(&spaced(text), name).next().is_some()
    }

    #[test]
    fn a_name_counts_as_a_whole_and_over_a_line_end() {
        assert!(is_named("in kernel::fs::open: it failed", "kernel::fs::open"));
        assert!(is_named("at kernel::fs::open+0x12", "kernel::fs::open"));
        assert!(is_named("kernel::fs::open::{{closure}}", "kernel::fs::open"));
        assert!(is_named("<a::B as\n          c::D>::f blocks", "<a::B as c::D>::f"));
        assert!(!is_named("kernel::fs::open_at", "kernel::fs::open"));
        assert!(!is_named("kernel::fs::open::other", "kernel::fs::open"));
        assert!(!is_named("x::kernel::fs::open", "kernel::fs::open"));
    }

    #[test]
    fn a_closure_has_the_name_of_its_function() {
        assert_eq!(base("a::b::letter::{{closure}}"), "letter");
        assert_eq!(base("<a::B as c::D>::drop"), "drop");
    }

    /// This test's own executable is an image like any other.
    #[test]
    fn a_function_is_found_by_its_lines_and_by_what_was_inlined_from_it() {
        let me = std::env::current_exe().unwrap();
        let names = Names::of(&me).unwrap();
        let text = include_str!("names.rs");
        let start = 1 + text.lines().position(|line| line.contains("fn spaced(")).unwrap();
        let at = |line| Position { line, column: 1 };
        let function = Function { name: "spaced".into(), span: Span { start: at(start), end: at(start + 2) } };
        let mutant = Mutant {
            name: String::new(),
            package: String::new(),
            file: "testing/src/mutants/names.rs".into(),
            span: function.span,
            function: Some(function),
            replacement: String::new(),
            genre: String::new(),
            diff: String::new(),
        };
        let mut blamed = Blamed::default();
        names.blame(&mutant, &mut blamed).unwrap();
        assert!(blamed.names.contains("testing::mutants::names::spaced"), "{:?}", blamed.names);
        assert!(blamed.names.iter().all(|name| name.starts_with("testing::mutants::names::spaced")), "{blamed:?}");
        assert!(names.names("blocked in testing::mutants::names::spaced+0x1", &blamed));
        assert!(!names.names("blocked in testing::mutants::names::ends_of", &blamed));
        assert_eq!(names.any("in testing::mutants::names::spaced."), Some("testing::mutants::names::spaced"));
        assert_eq!(names.any("nothing"), None);
    }
}

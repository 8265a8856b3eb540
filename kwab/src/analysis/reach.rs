//! Where a system call's error can come from: the functions that its handler calls and that make that error.
//!
//! The handler stands in the kernel's table of system calls, its calls and the error numbers in its machine code. Calls
//! through pointers are not followed, and which of several places made the error is not known: what is found are
//! candidates, nearest to the handler first.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::rc::Rc;

use linux_abi::Errno;

use super::evidence::ListedFunction;
use super::keepers::{self, TABLE};
use super::{blame, trail};
use crate::decode::calls::{Reference, references};
use crate::symbols::{LoadedImage, Probe, Role, Symbols, role};

/// Bytes of an entry: a pointer to the handler, and how the call is recorded.
const ENTRY: u64 = 16;
/// Calls between the handler and a function that is looked at.
const DEEPEST: usize = 4;
/// Functions that are looked at.
const MOST_FUNCTIONS: usize = 256;
/// Bytes of a function that is looked at.
const MOST_CODE: u64 = 64 << 10;
/// Candidates that are named.
const MOST: usize = 6;
/// Candidates of which it is said what decided that they made the error, and functions that are named for each.
const DECIDED: usize = 3;
const MOST_DECIDERS: usize = 3;
/// Functions of a system call that are named, and calls between them and the handler.
const MOST_PARTS: usize = 10;
/// Functions among which those are looked for that are named first.
const MOST_SORTED: usize = 64;
const SHALLOW: usize = 2;
/// Functions of a system call that are ranked, and calls between them and the handler.
const MOST_RANKED: usize = 256;
const DEEP: usize = 4;

/// The functions that may have made the error that a system call ended with, with their source lines, nearest to its
/// handler first. Empty without an image of this workspace's kernel.
pub(super) fn makers(symbols: &Symbols, nr: i64, errno: Errno) -> Vec<ListedFunction> {
    handler(symbols, nr).map_or_else(Vec::new, |handler| makers_in(symbols, handler, errno))
}

/// As [`makers`], for what the function at an address calls.
pub(super) fn makers_in(symbols: &Symbols, start: u64, errno: Errno) -> Vec<ListedFunction> {
    let mut queue = VecDeque::from([(start, 0)]);
    let mut seen = BTreeSet::from([start]);
    let mut found: Vec<(String, Option<String>, u64)> = Vec::new();
    while let Some((function, depth)) = queue.pop_front() {
        let mut calls: Vec<u64> = trail::places(symbols, function).into_iter().filter_map(|place| place.1).collect();
        for reference in code_of(symbols, function) {
            match reference {
                Reference::Constant { at, value } if is_error(value, errno) => {
                    let new = maker(symbols, at).filter(|(name, _)| !found.iter().any(|(known, ..)| known == name));
                    found.extend(new.map(|(name, place)| (name, place, at)));
                }
                Reference::Call { target, .. } => calls.push(target),
                Reference::Constant { .. } => {}
            }
        }
        for target in calls {
            if depth < DEEPEST && seen.len() < MOST_FUNCTIONS && is_suspect(symbols, target) && seen.insert(target) {
                queue.push_back((target, depth + 1));
            }
        }
        if found.len() >= MOST {
            break;
        }
    }
    let listed = |(number, (name, place, at)): (usize, (String, Option<String>, u64))| {
        let mut deciders = if number < DECIDED { trail::deciders_at(symbols, at) } else { Vec::new() };
        deciders.retain(|decider| *decider != name);
        deciders.truncate(MOST_DECIDERS);
        let why = (!deciders.is_empty()).then(|| format!("decided by {}", deciders.join(" and ")));
        ListedFunction { name, place, why }
    };
    found.into_iter().take(MOST).enumerate().map(listed).collect()
}

/// Ranks the functions that a wrong answer can come from by how many right answers they had a part in.
///
/// A function that many calls are made of, all of which were answered alike in both runs, is a worse suspect than one
/// that only the call with the wrong answer is made of (spectrum-based fault localisation, here over the calls that the
/// machine code makes).
pub(crate) struct Spectrum<'s> {
    graph: CallGraph<'s>,
    /// For each function how many of the calls that were answered right are made of it.
    right: HashMap<String, usize>,
}

impl<'s> Spectrum<'s> {
    /// Of the calls with these numbers, which were answered right.
    pub(crate) fn of(symbols: &'s Symbols, right: impl IntoIterator<Item = i64>) -> Self {
        let mut spectrum = Self { graph: CallGraph::of(symbols), right: HashMap::new() };
        for nr in right {
            for name in spectrum.graph.call(nr) {
                *spectrum.right.entry(name).or_default() += 1;
            }
        }
        spectrum
    }

    /// The functions that an answer of a system call can come from: of an error those that make it, then those that the
    /// call is made of.
    pub(crate) fn behind_call(&mut self, nr: i64, errno: Option<Errno>) -> Vec<String> {
        let makers = errno.map(|errno| makers(self.graph.symbols, nr, errno)).unwrap_or_default();
        let parts = self.graph.call(nr);
        makers.iter().map(ListedFunction::in_words).chain(self.ranked(parts)).collect()
    }

    /// The functions that deliver a signal to its handler.
    pub(crate) fn behind_signal(&mut self) -> Vec<String> {
        let parts = keepers::HANDLER.iter().flat_map(|name| {
            let start = start_of(self.graph.symbols, name);
            start.map_or_else(Vec::new, |start| self.graph.parts(start, MOST_RANKED, SHALLOW))
        });
        let parts = parts.collect();
        self.ranked(parts)
    }

    fn ranked(&self, mut parts: Vec<String>) -> Vec<String> {
        parts.sort_by_key(|name| self.right.get(name).copied().unwrap_or_default());
        parts
    }
}

/// The functions that a system call is made of: its handler, then what that has inlined and what it calls, nearest
/// first. Empty without an image of this workspace's kernel.
pub(super) fn parts(symbols: &Symbols, nr: i64) -> Vec<ListedFunction> {
    listed(all_parts(symbols, nr, MOST_PARTS))
}

/// As [`parts`], of a function of the kernel, those of its own module first.
pub(super) fn parts_of(symbols: &Symbols, function: &str) -> Vec<ListedFunction> {
    let start = start_of(symbols, function);
    let mut found = start.map_or_else(Vec::new, |start| parts_from(symbols, start, MOST_SORTED));
    found.sort_by_key(|name| module(name) != module(function));
    listed(found)
}

/// As [`parts`], those of some modules first: a call has many parts, and few have to do with what a thread waits for.
pub(super) fn parts_near(symbols: &Symbols, nr: i64, modules: &[&str]) -> Vec<ListedFunction> {
    let mut found = all_parts(symbols, nr, MOST_SORTED);
    found.sort_by_key(|name| !modules.contains(&module(name)));
    listed(found)
}

/// The first of some functions, as a fact lists them.
fn listed(names: Vec<String>) -> Vec<ListedFunction> {
    names.into_iter().take(MOST_PARTS).map(ListedFunction::plain).collect()
}

/// The module of a function: `kernel::fs::pipe` of `<kernel::fs::pipe::Pipe as kernel::fs::File>::read`.
pub(super) fn module(name: &str) -> &str {
    let own = name.trim_start_matches(['<', '&', ' ']);
    let path = own.split([' ', '>', '{', '<']).next().unwrap_or(own);
    // `module::<impl Trait>::method`
    if let Some(module) = path.strip_suffix("::") {
        return module;
    }
    let parent = path.rsplit_once("::").map_or(path, |(parent, _)| parent);
    // A method of a type is one level deeper.
    let is_type = |part: &str| part.starts_with(|c: char| c.is_ascii_uppercase());
    match parent.rsplit_once("::") {
        Some((outer, last)) if is_type(last) => outer,
        _ => parent,
    }
}

/// Where a function of the kernel begins.
fn start_of(symbols: &Symbols, function: &str) -> Option<u64> {
    let mut images = symbols.loaded().iter().filter(|loaded| loaded.pid.is_none());
    images.find_map(|loaded| {
        let (link, _) = loaded.image.find_symbol(function)?;
        Some(link.wrapping_add(loaded.bias))
    })
}

fn all_parts(symbols: &Symbols, nr: i64, enough: usize) -> Vec<String> {
    handler(symbols, nr).map_or_else(Vec::new, |handler| parts_from(symbols, handler, enough))
}

fn parts_from(symbols: &Symbols, start: u64, enough: usize) -> Vec<String> {
    CallGraph::of(symbols).parts(start, enough, SHALLOW)
}

/// What one function is made of.
#[derive(Default)]
struct GraphNode {
    /// Itself and the functions that were inlined into it, the outermost of each place first.
    names: Vec<String>,
    /// Where the functions begin that it calls.
    calls: Vec<u64>,
}

/// What functions are made of, each looked at once.
pub(super) struct CallGraph<'s> {
    symbols: &'s Symbols,
    known: HashMap<u64, Rc<GraphNode>>,
}

impl<'s> CallGraph<'s> {
    pub(super) fn of(symbols: &'s Symbols) -> Self {
        Self { symbols, known: HashMap::new() }
    }

    /// The functions that a system call is made of, nearest to its handler first.
    pub(super) fn call(&mut self, nr: i64) -> Vec<String> {
        handler(self.symbols, nr).map_or_else(Vec::new, |handler| self.parts(handler, MOST_RANKED, DEEP))
    }

    /// The functions that a function is made of, itself first, until there are enough.
    fn parts(&mut self, start: u64, enough: usize, deepest: usize) -> Vec<String> {
        let mut queue = VecDeque::from([(start, 0)]);
        let mut seen = BTreeSet::from([start]);
        let (mut found, mut listed) = (Vec::new(), HashSet::new());
        while let Some((function, depth)) = queue.pop_front() {
            let node = self.node(function);
            found.extend(node.names.iter().filter(|name| listed.insert((*name).clone())).cloned());
            if found.len() >= enough {
                break;
            }
            if depth < deepest {
                let new = node.calls.iter().filter(|target| seen.insert(**target));
                queue.extend(new.map(|target| (*target, depth + 1)));
            }
        }
        found
    }

    fn node(&mut self, function: u64) -> Rc<GraphNode> {
        if let Some(known) = self.known.get(&function) {
            return known.clone();
        }
        let mut node = GraphNode::default();
        for (at, target) in trail::places(self.symbols, function) {
            let location = self.symbols.resolve(at, None, Probe::Exact);
            // The outermost is written first: it is nearer to the handler.
            let inner = location.frames.iter().rev().filter_map(|frame| frame.function.as_deref());
            let bare = location.function().filter(|_| location.frames.is_empty()).map(|name| &**name);
            for name in inner.chain(bare).map(blame::owner) {
                if role(&name) == Role::Suspect && !is_served(&name) && !node.names.contains(&name) {
                    node.names.push(name);
                }
            }
            let target = target.filter(|target| !node.calls.contains(target) && is_suspect(self.symbols, *target));
            node.calls.extend(target);
        }
        let node = Rc::new(node);
        self.known.insert(function, node.clone());
        node
    }
}

/// Whether a function only records what happens, or belongs to a type of the language: `<u64>::checked_add`.
pub(crate) fn is_served(name: &str) -> bool {
    let primitive = |name: &str| name.split_once(">::").is_some_and(|(own, _)| !own.contains("::"));
    name.contains("::trace::") || name.contains("recorder") || name.starts_with('<') && primitive(name)
}

/// Run-time address of the function that answers a system call.
fn handler(symbols: &Symbols, nr: i64) -> Option<u64> {
    let offset = u64::try_from(nr).ok()?.checked_mul(ENTRY)?;
    let images = symbols.loaded().iter().filter(|loaded| loaded.pid.is_none());
    images.into_iter().find_map(|loaded| {
        let (table, size) = loaded.image.find_symbol(TABLE)?;
        let mut entry = [0; ENTRY as usize];
        let whole = offset + ENTRY <= size && loaded.image.read(table + offset, &mut entry) == entry.len();
        let (words, _) = entry.as_chunks::<8>();
        let pointer = words.iter().map(|word| u64::from_le_bytes(*word)).find(|word| is_code(loaded, *word));
        // The file has the address before the kernel moves itself.
        pointer.filter(|_| whole).map(|link| link.wrapping_add(loaded.bias))
    })
}

fn is_code(loaded: &LoadedImage, link: u64) -> bool {
    loaded.image.is_code(link)
}

fn code_of(symbols: &Symbols, function: u64) -> Vec<Reference> {
    let location = symbols.resolve(function, None, Probe::Exact);
    let Some(symbol) = location.symbol.filter(|symbol| symbol.offset == 0) else { return Vec::new() };
    let mut bytes = vec![0; symbol.size.min(MOST_CODE) as usize];
    let found = symbols.read(function, None, &mut bytes);
    references(&bytes[..found], function)
}

/// Whether a function may be to blame: locks, allocators and the language's library make no errors of their own.
fn is_suspect(symbols: &Symbols, function: u64) -> bool {
    let location = symbols.resolve(function, None, Probe::Exact);
    location.function().is_some_and(|name| role(name) == Role::Suspect || name.contains("FnOnce"))
}

/// Whether a constant is an error: alone, negative as the result of a call, or behind the tag of a `Result`.
fn is_error(value: u64, errno: Errno) -> bool {
    let number = u64::from(errno.number());
    let negative = errno.to_result();
    value == number
        || value as i64 == negative
        || value == u64::from(negative as i32 as u32)
        || (value >> 16 == number && value & 0xffff <= 1)
}

/// The function of the code at an address, and `file:line` where they are known; the innermost that is not of the
/// library.
fn maker(symbols: &Symbols, at: u64) -> Option<(String, Option<String>)> {
    let location = symbols.resolve(at, None, Probe::Exact);
    let telling = location
        .frames
        .iter()
        .find(|frame| !frame.machinery && frame.function.as_deref().is_some_and(|name| role(name) == Role::Suspect));
    let Some(frame) = telling else { return location.function().map(|name| (name.to_string(), None)) };
    // Line 0 is code that the compiler made without one.
    let line = frame.line.filter(|line| *line != 0);
    let place = frame.file.as_deref().zip(line).map(|(file, line)| format!("{file}:{line}"));
    Some((frame.function.as_deref()?.to_owned(), place))
}

#[cfg(test)]
mod tests {
    use super::module;

    #[test]
    fn the_module_of_a_function_is_that_of_its_type() {
        for name in [
            "kernel::fs::pipe::open",
            "kernel::fs::pipe::Pipe::read",
            "<kernel::fs::pipe::Pipe as kernel::fs::File>::read",
            "kernel::fs::pipe::<impl kernel::fs::File>::read",
            "<kernel::fs::pipe::Pipe>::read",
        ] {
            assert_eq!(module(name), "kernel::fs::pipe", "{name}");
        }
        assert_eq!(module("main"), "main");
    }
}

//! What two builds of an image differ in: the functions whose code is not the same, whatever address it lies at.
//!
//! Symbols are matched by their demangled name and compared by the [shape](crate::decode::shape) of their instructions.
//! In those that differ every instruction belongs to the function that it was inlined from, and the instructions of
//! such a function are compared over all symbols that differ. A function that was changed differs wherever it was
//! inlined and takes what is inlined into it along; one that only calls it differs little, and one that went with it
//! stands elsewhere as it was. Data, and code that was written in assembly without a size, are not compared.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use schemars::JsonSchema;
use serde::Serialize;

use crate::decode::shape::{Shape, Surroundings, shapes};
use crate::symbols::{Image, Probe, SymbolError};

/// Version of the form of the changes.
const SCHEMA: u32 = 1;
/// Bytes of a function that is compared.
const MOST_CODE: u64 = 1 << 20;
/// Functions of the image in which a changed one stands that are named.
const MOST_INSIDE: usize = 4;
/// Link addresses from here on may stand in instructions; an image below is addressed from the instruction.
const LOWEST: u64 = 1 << 20;

/// What differs between two builds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct BuildChanges {
    /// Version of this form.
    pub schema: u32,
    /// Build-id of the older build; empty without one.
    pub old: String,
    /// Build-id of the newer build; empty without one.
    pub new: String,
    /// Functions of both images that were compared.
    pub compared: usize,
    /// Those that differ, are only in one of them, or are in one more often.
    pub differing: usize,
    /// The functions of the source that their code comes from, most changed first.
    pub functions: Vec<ChangedFunction>,
}

/// A function of the source whose code differs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct ChangedFunction {
    /// Its demangled name.
    pub name: String,
    /// Source file, where the newer build or else the older one says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Its first line that differs there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Its instructions in the functions of the older image that differ.
    pub old_instructions: usize,
    /// Its instructions in the functions of the newer image that differ.
    pub new_instructions: usize,
    /// Instructions of both that the other has not.
    pub changed: usize,
    /// Functions of the newer image in which it stands and that do not differ.
    pub unchanged_copies: usize,
    /// How well its change explains that the functions differ in which it stands, from 0 to 1.
    pub score: f64,
    /// How many of the functions of the image that differ it explains best. One that explains none came along with the
    /// change of another.
    pub explains: usize,
    /// The functions of the image that differ and hold them.
    pub inside: Vec<String>,
}

impl ChangedFunction {
    /// `file:line`, or the part of it that is known.
    #[must_use]
    pub fn place(&self) -> Option<String> {
        let file = self.file.as_deref()?;
        Some(self.line.map_or_else(|| file.to_owned(), |line| format!("{file}:{line}")))
    }

    /// How much of it differs, in words.
    #[must_use]
    pub fn in_words(&self) -> String {
        match (self.old_instructions, self.new_instructions) {
            (0, new) => format!("{new} instructions, all new"),
            (old, 0) => format!("its {old} instructions are gone"),
            (old, new) => format!("{} of {} instructions differ", self.changed.div_ceil(2), old.max(new)),
        }
    }
}

/// Why two builds cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum BuildsError {
    /// Instructions of another processor are not decoded.
    #[error("{0}: is not an image for x86_64; builds of others cannot be compared")]
    Processor(String),
    /// It names no function.
    #[error("{0}: has no symbols, so that its functions cannot be told apart")]
    NoSymbols(String),
    /// Its symbols cannot be read.
    #[error(transparent)]
    Symbols(#[from] SymbolError),
}

/// Compares two builds.
///
/// # Errors
/// [`BuildsError`] when one of the images cannot be compared with anything.
pub fn changes(old: &Image, new: &Image) -> Result<BuildChanges, BuildsError> {
    let (older, newer) = (Build::of(old)?, Build::of(new)?);
    let names: Vec<&str> = older.functions.keys().chain(newer.functions.keys()).map(String::as_str).collect();
    let names = names.into_iter().collect::<BTreeSet<_>>();
    let mut origins: BTreeMap<String, Origin> = BTreeMap::new();
    let (mut compared, mut differing_names) = (0, HashSet::new());
    for name in names {
        let (old, new) = (older.code(name), newer.code(name));
        compared += 1;
        let (gone, come) = (unmatched(&old, &new), unmatched(&new, &old));
        if gone.is_empty() && come.is_empty() {
            continue;
        }
        differing_names.insert(name);
        for (build, code, side) in [(&older, gone, Side::Old), (&newer, come, Side::New)] {
            for shape in code.into_iter().flatten() {
                build.attribute(name, shape, side, &mut origins)?;
            }
        }
    }
    let unchanged = newer.unchanged(&differing_names, &origins)?;
    let finish = |(name, origin): (String, Origin)| {
        let copies = unchanged.get(&name).map_or(0, HashSet::len);
        origin.finish(name, copies)
    };
    let symbols: Vec<(String, HashSet<String>)> =
        origins.iter().map(|(name, origin)| (name.clone(), origin.known.clone())).collect();
    let mut functions: Vec<ChangedFunction> = origins.into_iter().filter_map(finish).collect();
    functions.sort_by(|a, b| b.score.total_cmp(&a.score).then(b.changed.cmp(&a.changed)));
    explain(&mut functions, &symbols.into_iter().collect());
    functions.sort_by_key(|function| function.explains == 0);
    let differing = differing_names.len();
    let id = |image: &Image| image.build_id().map(|id| id.to_string()).unwrap_or_default();
    Ok(BuildChanges { schema: SCHEMA, old: id(old), new: id(new), compared, differing, functions })
}

/// Counts for each function, the best first, of how many functions of the image it is the best explanation.
fn explain(functions: &mut [ChangedFunction], symbols: &HashMap<String, HashSet<String>>) {
    let mut explained: HashSet<&str> = HashSet::new();
    for function in functions {
        let inside = symbols.get(&function.name).into_iter().flatten();
        let new: Vec<&str> = inside.map(String::as_str).filter(|name| explained.insert(name)).collect();
        function.explains = new.len();
    }
}

/// The functions of `one` that have no counterpart in `other`.
fn unmatched<'c>(one: &'c [Vec<Shape>], other: &[Vec<Shape>]) -> Vec<&'c [Shape]> {
    let mut left: Vec<u64> = other.iter().map(|code| digest(code)).collect();
    let mut alone = Vec::new();
    for code in one {
        match left.iter().position(|digest_of| *digest_of == digest(code)) {
            Some(at) => drop(left.swap_remove(at)),
            None => alone.push(code.as_slice()),
        }
    }
    alone
}

fn digest(code: &[Shape]) -> u64 {
    let mut hasher = DefaultHasher::new();
    code.iter().for_each(|shape| shape.exact.hash(&mut hasher));
    hasher.finish()
}

/// An image with its functions by name.
struct Build<'i> {
    image: &'i Image,
    range: std::ops::Range<u64>,
    /// Start and size of each function of a name.
    functions: BTreeMap<String, Vec<(u64, u64)>>,
    /// Everything with a name, by address: start, size, a number for the name.
    places: Vec<(u64, u64, u64)>,
}

impl<'i> Build<'i> {
    fn of(image: &'i Image) -> Result<Self, BuildsError> {
        if !image.is_x86_64() {
            return Err(BuildsError::Processor(image.name()));
        }
        let (low, high) = image.link_range();
        let mut build = Self { image, range: low..high, functions: BTreeMap::new(), places: Vec::new() };
        for (name, start, size) in image.all_symbols()? {
            let name = plain(&name);
            if is_nameless(name) {
                continue;
            }
            build.places.push((start, size, number(name)));
            if size > 0 && size <= MOST_CODE && image.is_code(start) {
                let starts = build.functions.entry(name.to_owned()).or_default();
                if !starts.iter().any(|known| known.0 == start) {
                    starts.push((start, size));
                }
            }
        }
        build.places.sort_unstable();
        if build.functions.is_empty() {
            return Err(BuildsError::NoSymbols(image.name()));
        }
        Ok(build)
    }

    /// The code of the functions of a name.
    fn code(&self, name: &str) -> Vec<Vec<Shape>> {
        let functions = self.functions.get(name).into_iter().flatten();
        let code = functions.map(|(start, size)| {
            let mut bytes = vec![0; usize::try_from(*size).unwrap_or(0)];
            let found = self.image.read(*start, &mut bytes);
            shapes(&bytes[..found], *start, self)
        });
        code.collect()
    }

    /// Counts an instruction of a symbol for the function of the source that it comes from.
    fn attribute(
        &self,
        symbol: &str,
        shape: &Shape,
        side: Side,
        origins: &mut BTreeMap<String, Origin>,
    ) -> Result<(), SymbolError> {
        let location = self.image.locate(shape.at, Probe::Exact)?;
        let own = location.frames.iter().filter(|frame| !frame.machinery && frame.function.is_some());
        let mut seen = Vec::new();
        for frame in own {
            let name = frame.function.as_deref().map_or(symbol, plain);
            if !seen.contains(&name) {
                let origin = origins.entry(name.to_owned()).or_default();
                if seen.is_empty() {
                    let place = frame.file.as_deref().map(str::to_owned).zip(frame.line);
                    origin.add(symbol, shape, place, side);
                }
                origin.add_inlined(shape, side);
                seen.push(name);
            }
        }
        if seen.is_empty() {
            let origin = origins.entry(symbol.to_owned()).or_default();
            origin.add(symbol, shape, None, side);
            origin.add_inlined(shape, side);
        }
        Ok(())
    }

    /// For each of these functions of the source the functions of the image, but those that differ, in which it stands.
    fn unchanged(
        &self,
        differing: &HashSet<&str>,
        wanted: &BTreeMap<String, Origin>,
    ) -> Result<HashMap<String, HashSet<u64>>, SymbolError> {
        let mut starts: Vec<(u64, u64, bool)> = Vec::new();
        for (name, functions) in &self.functions {
            starts.extend(functions.iter().map(|(at, size)| (*at, *size, differing.contains(name.as_str()))));
        }
        starts.sort_unstable();
        let mut found: HashMap<String, HashSet<u64>> = HashMap::new();
        self.image.visit_functions(&mut |addr, functions| {
            let behind = starts.partition_point(|start| start.0 <= addr);
            let Some((start, size, differs)) = behind.checked_sub(1).and_then(|at| starts.get(at)) else { return };
            if *differs || addr - start >= *size {
                return;
            }
            for name in functions.iter().map(|name| plain(name)).filter(|name| wanted.contains_key(*name)) {
                match found.get_mut(name) {
                    Some(copies) => drop(copies.insert(*start)),
                    None => drop(found.insert(name.to_owned(), HashSet::from([*start]))),
                }
            }
        })?;
        Ok(found)
    }
}

impl Surroundings for Build<'_> {
    fn is_address(&self, value: u64) -> bool {
        self.range.start >= LOWEST && self.range.contains(&value)
    }

    fn named(&self, addr: u64) -> Option<u64> {
        let behind = self.places.partition_point(|place| place.0 <= addr);
        let (start, size, name) = self.places.get(behind.checked_sub(1)?)?;
        let inside = addr - start;
        // The place in a function of another shape is of no use; that in a variable tells its fields apart.
        let inside = if self.image.is_code(*start) { 0 } else { inside };
        (inside < (*size).max(1)).then(|| name.wrapping_add(inside))
    }

    fn constant(&self, addr: u64, out: &mut [u8]) -> bool {
        let length = out.len();
        let is_constant = self.image.constant_bytes(addr).is_some_and(|left| left >= length as u64);
        is_constant && self.image.read(addr, out) == length
    }
}

/// Which of the two builds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Old,
    New,
}

/// What is known of a function of the source while builds are compared.
#[derive(Default)]
struct Origin {
    old: usize,
    new: usize,
    /// For each loose shape how often the newer build has it more than the older, and the same exactly.
    loose: HashMap<u64, i64>,
    exact: HashMap<u64, i64>,
    /// All instructions with those of the functions that were inlined into it, and how often the newer build has a
    /// loose shape of them more than the older.
    whole: usize,
    inlined: HashMap<u64, i64>,
    /// Where instructions of a loose shape come from, in the newer build if it has them.
    places: HashMap<u64, (Side, String, u32)>,
    inside: Vec<String>,
    known: HashSet<String>,
}

impl Origin {
    fn add(&mut self, symbol: &str, shape: &Shape, place: Option<(String, u32)>, side: Side) {
        let (count, step) = match side {
            Side::Old => (&mut self.old, -1),
            Side::New => (&mut self.new, 1),
        };
        *count += 1;
        *self.loose.entry(shape.loose).or_default() += step;
        *self.exact.entry(shape.exact).or_default() += step;
        if let Some((file, line)) = place.filter(|(_, line)| *line > 0) {
            let known = self.places.get(&shape.loose);
            if known.is_none_or(|(of, _, first)| *of != side || line < *first) {
                self.places.insert(shape.loose, (side, file, line));
            }
        }
        if self.known.insert(symbol.to_owned()) && self.inside.len() < MOST_INSIDE {
            self.inside.push(symbol.to_owned());
        }
    }

    /// Counts an instruction of its own, or of a function that was inlined into it.
    fn add_inlined(&mut self, shape: &Shape, side: Side) {
        self.whole += 1;
        *self.inlined.entry(shape.loose).or_default() += if side == Side::Old { -1 } else { 1 };
    }

    /// The function, if it has instructions that only one of the builds has; and in how many functions of the image it
    /// stands as it was.
    fn finish(self, name: String, unchanged_copies: usize) -> Option<ChangedFunction> {
        let differing = |counts: &HashMap<u64, i64>| -> usize {
            counts.values().map(|count| usize::try_from(count.unsigned_abs()).unwrap_or(0)).sum()
        };
        let changed = differing(&self.loose);
        // Where values are kept differs in every function around a change; it counts only where nothing else does.
        if changed == 0 && (differing(&self.exact) == 0 || self.inside != [name.as_str()]) {
            return None;
        }
        let changed = if changed == 0 { differing(&self.exact) } else { changed };
        let (own, whole) = (self.old + self.new, differing(&self.inlined));
        let share = (changed as f64 / own.max(1) as f64 + whole as f64 / self.whole.max(1) as f64) / 2.0;
        let copies = self.known.len();
        let score = share * copies as f64 / (copies + unchanged_copies) as f64;
        let mut places: Vec<&(Side, String, u32)> = self
            .loose
            .iter()
            .filter(|(_, count)| **count != 0)
            .filter_map(|(shape, _)| self.places.get(shape))
            .collect();
        places.sort_by_key(|(side, file, line)| (*side == Side::Old, file.clone(), *line));
        let place = places.first().map(|(_, file, line)| (file.clone(), *line));
        let (file, line) = place.unzip();
        let (old_instructions, new_instructions) = (self.old, self.new);
        let inside = self.inside;
        Some(ChangedFunction {
            name,
            file,
            line,
            old_instructions,
            new_instructions,
            changed,
            unchanged_copies,
            score,
            explains: 0,
            inside,
        })
    }
}

/// A name without what the compiler adds to a copy that it made.
fn plain(name: &str) -> &str {
    name.split_once(".llvm.").map_or(name, |(own, _)| own)
}

/// Whether a name differs from build to build: `anon.1f2e….3`, `.Lunnamed_1`.
fn is_nameless(name: &str) -> bool {
    name.is_empty() || name.starts_with("anon.") || name.starts_with(".L") || name.starts_with('$')
}

fn number(name: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    hasher.finish()
}

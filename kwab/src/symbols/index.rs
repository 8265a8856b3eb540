//! Answers from an index: which functions, files and lines an address belongs to.
//!
//! Only what is asked for is read: a lookup touches one block of segments, a few of nodes and strings, each checked
//! against its CRC32 when it is read first and kept afterwards. A damaged block is an error, never a wrong answer.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::layout::{BLOCK, BLOCKED, ENTRY, HEADER, Header, NONE, PER_BLOCK, SECTIONS, Section, word};
use super::names::is_machinery;
use super::version::{SourceVersion, unmarked};
use super::{Location, PrintedFunction, Probe, SourceFrame, Symbol};

/// Why an index cannot answer.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// It cannot be read.
    #[error("symbol index: {0}")]
    Io(#[from] std::io::Error),
    /// Its header is not that of an index of this version.
    #[error("symbol index: the header is damaged or of another version")]
    Header,
    /// A block does not match its checksum.
    #[error("symbol index: block {0} does not match its checksum")]
    Block(usize),
}

/// The longest inline chain that is followed; deeper ones come from damage.
const MAX_CHAIN: usize = 256;

/// An open index.
#[derive(Debug)]
pub struct Index {
    bytes: IndexBytes,
    header: Header,
    fences: Vec<u32>,
    checks: Vec<u32>,
    /// The number of the first block of each section among all checks.
    first_block: [usize; SECTIONS],
    kept: Mutex<Kept>,
}

#[derive(Debug)]
enum IndexBytes {
    File(File),
    Memory(Vec<u8>),
}

#[derive(Debug, Default)]
struct Kept {
    blocks: Vec<Option<Arc<[u8]>>>,
    texts: HashMap<u32, (Arc<str>, bool)>,
    files: HashMap<u32, SourceFile>,
    nodes: Vec<Option<Arc<Node>>>,
}

/// A source file: the path that the compiler recorded, and which version.
type SourceFile = (Arc<str>, SourceVersion);

/// A node with its texts.
#[derive(Debug)]
struct Node {
    parent: u32,
    function: Option<Arc<str>>,
    machinery: bool,
    call_file: Option<SourceFile>,
    call_line: u32,
}

impl Index {
    /// Opens an index file.
    ///
    /// # Errors
    /// [`IndexError`] when it cannot be read, or is damaged, or was written by another version.
    pub fn open(file: File) -> Result<Self, IndexError> {
        let length = file.metadata()?.len();
        Self::load(IndexBytes::File(file), length)
    }

    /// Uses an index that was just built.
    ///
    /// # Errors
    /// [`IndexError::Header`] when it is none.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, IndexError> {
        let length = bytes.len() as u64;
        Self::load(IndexBytes::Memory(bytes), length)
    }

    fn load(bytes: IndexBytes, length: u64) -> Result<Self, IndexError> {
        let mut head = vec![0; HEADER.min(usize::try_from(length).unwrap_or(HEADER))];
        bytes.read(0, &mut head)?;
        let header = Header::decode(&head, length).ok_or(IndexError::Header)?;
        let mut eager = crc32fast::Hasher::new();
        let mut words = |section: Section| -> Result<Vec<u32>, IndexError> {
            let (offset, length) = header.sections[section as usize];
            let mut all = vec![0; usize::try_from(length).map_err(|_| IndexError::Header)?];
            bytes.read(offset, &mut all)?;
            eager.update(&all);
            Ok((0..all.len() / 4).map(|at| word(&all, at * 4)).collect())
        };
        let fences = words(Section::Fences)?;
        let checks = words(Section::Checks)?;
        if eager.finalize() != header.eager_crc {
            return Err(IndexError::Header);
        }
        let mut first_block = [0; SECTIONS];
        let mut before = 0;
        for section in BLOCKED {
            first_block[section as usize] = before;
            let length = usize::try_from(header.sections[section as usize].1).map_err(|_| IndexError::Header)?;
            before += length.div_ceil(BLOCK);
        }
        let nodes = usize::try_from(header.sections[Section::Nodes as usize].1).unwrap_or(0) / ENTRY;
        let blocks = vec![None; checks.len()];
        let kept = Kept { blocks, nodes: vec![None; nodes], ..Kept::default() };
        Ok(Self { bytes, header, fences, checks, first_block, kept: Mutex::new(kept) })
    }

    /// Build-id of the ELF file it was made from; empty without one.
    #[must_use]
    pub fn build_id(&self) -> &[u8] {
        &self.header.build_id
    }

    /// Length in bytes of the ELF file it was made from.
    #[must_use]
    pub fn elf_size(&self) -> u64 {
        self.header.elf_size
    }

    /// Units of DWARF that are not in it because reading them costs more than an image of its length may.
    #[must_use]
    pub fn left_out(&self) -> u32 {
        self.header.left_out
    }

    /// Everything known about a link address; an empty [`Location`] when nothing is.
    ///
    /// # Errors
    /// [`IndexError`] when a part that is needed cannot be read or is damaged.
    pub fn locate(&self, addr: u64, probe: Probe) -> Result<Location, IndexError> {
        let mut reader = Reader { index: self, kept: self.kept.lock().unwrap_or_else(PoisonError::into_inner) };
        let target = probe.instruction(addr);
        let Some(offset) = target.checked_sub(self.header.base).and_then(|o| u32::try_from(o).ok()) else {
            return Ok(Location::default());
        };
        let symbol = reader.symbol(offset, addr.saturating_sub(target))?;
        let frames = reader.frames(offset)?;
        Ok(Location { symbol, frames })
    }

    /// The link address and size of the symbol with this demangled name.
    ///
    /// # Errors
    /// [`IndexError`] when the symbol table cannot be read or is damaged.
    pub fn find_symbol(&self, name: &str) -> Result<Option<(u64, u64)>, IndexError> {
        let mut reader = Reader { index: self, kept: self.kept.lock().unwrap_or_else(PoisonError::into_inner) };
        for at in 0..reader.entries(Section::Symbols) {
            let [offset, size, text, _] = reader.entry(Section::Symbols, at)?;
            if reader.text(text)?.is_some_and(|(found, _)| &*found == name) {
                return Ok(Some((self.header.base + u64::from(offset), u64::from(size))));
            }
        }
        Ok(None)
    }

    /// Shows `visit` the functions of every piece of code of one place in the source: its first link address, and the
    /// functions there, the innermost first.
    ///
    /// # Errors
    /// [`IndexError`] when the index cannot be read or is damaged.
    pub fn visit_functions(&self, visit: &mut dyn FnMut(u64, &[Arc<str>])) -> Result<(), IndexError> {
        let mut reader = Reader { index: self, kept: self.kept.lock().unwrap_or_else(PoisonError::into_inner) };
        let mut functions = Vec::new();
        for at in 0..reader.entries(Section::Segments) {
            let [offset, mut node, ..] = reader.entry(Section::Segments, at)?;
            functions.clear();
            for _ in 0..MAX_CHAIN {
                if node == NONE {
                    break;
                }
                let found = reader.node(node)?;
                functions.extend(found.function.clone());
                node = found.parent;
            }
            visit(self.header.base + u64::from(offset), &functions);
        }
        Ok(())
    }

    /// Every symbol by address: its demangled name, link address and size.
    ///
    /// # Errors
    /// [`IndexError`] when the symbol table cannot be read or is damaged.
    pub fn all_symbols(&self) -> Result<Vec<(Arc<str>, u64, u64)>, IndexError> {
        let mut reader = Reader { index: self, kept: self.kept.lock().unwrap_or_else(PoisonError::into_inner) };
        let mut all = Vec::new();
        for at in 0..reader.entries(Section::Symbols) {
            let [offset, size, text, _] = reader.entry(Section::Symbols, at)?;
            let name = reader.text(text)?.map(|(name, _)| name);
            all.extend(name.map(|name| (name, self.header.base + u64::from(offset), u64::from(size))));
        }
        Ok(all)
    }
}

impl Index {
    /// The link addresses of functions as a kernel printed them, by name and size, in their order; `None` for one that
    /// is not here. Of several that fit, as static functions of one name, the first by address.
    ///
    /// # Errors
    /// [`IndexError`] when the symbol table cannot be read or is damaged.
    pub fn find_printed(&self, wanted: &[PrintedFunction]) -> Result<Vec<Option<u64>>, IndexError> {
        let mut reader = Reader { index: self, kept: self.kept.lock().unwrap_or_else(PoisonError::into_inner) };
        let mut found = vec![None; wanted.len()];
        let mut by_name: HashMap<&str, Vec<usize>> = HashMap::new();
        for (number, function) in wanted.iter().enumerate() {
            by_name.entry(&function.name).or_default().push(number);
        }
        let count = reader.entries(Section::Symbols);
        for at in 0..count {
            let [offset, size, text, _] = reader.entry(Section::Symbols, at)?;
            let next = if at + 1 < count { reader.entry(Section::Symbols, at + 1)?[0] } else { NONE };
            let (size, gap) = (u64::from(size), u64::from(next.saturating_sub(offset)));
            // Names are read only of symbols with a size that was printed.
            if !wanted.iter().any(|function| function.fits(size, gap)) {
                continue;
            }
            let Some((name, _)) = reader.text(text)? else { continue };
            for &number in by_name.get(&*name).map(Vec::as_slice).unwrap_or_default() {
                if found[number].is_none() && wanted[number].fits(size, gap) {
                    found[number] = Some(self.header.base + u64::from(offset));
                }
            }
        }
        Ok(found)
    }
}

impl IndexBytes {
    fn read(&self, offset: u64, out: &mut [u8]) -> std::io::Result<()> {
        match self {
            Self::File(file) => file.read_exact_at(out, offset),
            Self::Memory(bytes) => {
                let start = usize::try_from(offset).unwrap_or(usize::MAX);
                let found = start.checked_add(out.len()).and_then(|end| bytes.get(start..end));
                out.copy_from_slice(found.ok_or(std::io::ErrorKind::UnexpectedEof)?);
                Ok(())
            }
        }
    }
}

struct Reader<'i> {
    index: &'i Index,
    kept: MutexGuard<'i, Kept>,
}

impl Reader<'_> {
    fn symbol(&mut self, offset: u32, past: u64) -> Result<Option<Symbol>, IndexError> {
        let Some(at) = self.last_at_or_before(Section::Symbols, 0, self.entries(Section::Symbols), offset)? else {
            return Ok(None);
        };
        let [start, size, name, _] = self.entry(Section::Symbols, at)?;
        let inside = u64::from(offset - start);
        // A symbol without a size (assembly) reaches to the next one; one with a size does not cover the gap behind it.
        if size != 0 && inside >= u64::from(size) {
            return Ok(None);
        }
        let name = self.text(name)?.map(|(name, _)| name);
        Ok(name.map(|name| Symbol { name, offset: inside + past, size: u64::from(size) }))
    }

    fn frames(&mut self, offset: u32) -> Result<Vec<SourceFrame>, IndexError> {
        let number = self.index.fences.partition_point(|&first| first <= offset);
        let Some(number) = number.checked_sub(1) else { return Ok(Vec::new()) };
        let block = self.block(Section::Segments, number)?;
        let (mut low, mut high) = (0, block.len() / ENTRY);
        while low < high {
            let middle = low + (high - low) / 2;
            if word(&block, middle * ENTRY) <= offset { low = middle + 1 } else { high = middle }
        }
        let Some(at) = low.checked_sub(1).map(|at| at * ENTRY) else { return Ok(Vec::new()) };
        let [mut node, file, mut line] = [4, 8, 12].map(|field| word(&block, at + field));
        let mut file = self.file(file)?;
        let mut frames = Vec::new();
        if node == NONE
            && let Some((file, version)) = file.take()
        {
            let (function, file, line) = (None, Some(file), positive(line));
            frames.push(SourceFrame { function, file, version, line, inlined: false, machinery: false });
        }
        while node != NONE && frames.len() < MAX_CHAIN {
            let found = self.node(node)?;
            let (path, version) = file.map_or((None, SourceVersion::Unknown), |(path, version)| (Some(path), version));
            frames.push(SourceFrame {
                function: found.function.clone(),
                file: path,
                version,
                line: positive(line),
                inlined: found.parent != NONE,
                machinery: found.machinery,
            });
            (node, file, line) = (found.parent, found.call_file.clone(), found.call_line);
        }
        Ok(frames)
    }

    fn node(&mut self, number: u32) -> Result<Arc<Node>, IndexError> {
        if let Some(Some(node)) = self.kept.nodes.get(number as usize) {
            return Ok(Arc::clone(node));
        }
        let [parent, name, call_file, call_line] = self.entry(Section::Nodes, number as usize)?;
        let (function, machinery) = self.text(name)?.map_or((None, false), |(name, machinery)| (Some(name), machinery));
        let call_file = self.file(call_file)?;
        let node = Arc::new(Node { parent, function, machinery, call_file, call_line });
        if let Some(slot) = self.kept.nodes.get_mut(number as usize) {
            *slot = Some(Arc::clone(&node));
        }
        Ok(node)
    }

    fn entries(&self, section: Section) -> usize {
        usize::try_from(self.index.header.sections[section as usize].1).unwrap_or(0) / ENTRY
    }

    /// The last entry in `first..end` whose address is not above `offset`.
    fn last_at_or_before(
        &mut self,
        section: Section,
        first: usize,
        end: usize,
        offset: u32,
    ) -> Result<Option<usize>, IndexError> {
        let (mut low, mut high) = (first, end);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.entry(section, middle)?[0] <= offset {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low.checked_sub(1).filter(|&at| at >= first))
    }

    fn entry(&mut self, section: Section, at: usize) -> Result<[u32; 4], IndexError> {
        let block = self.block(section, at / PER_BLOCK)?;
        let start = at % PER_BLOCK * ENTRY;
        if start + ENTRY > block.len() {
            return Err(IndexError::Header);
        }
        Ok([0, 4, 8, 12].map(|field| word(&block, start + field)))
    }

    fn text(&mut self, offset: u32) -> Result<Option<(Arc<str>, bool)>, IndexError> {
        if offset == NONE {
            return Ok(None);
        }
        if let Some((text, machinery)) = self.kept.texts.get(&offset) {
            return Ok(Some((Arc::clone(text), *machinery)));
        }
        let mut length = [0; 4];
        self.string_bytes(offset as usize, &mut length)?;
        let length = u32::from_le_bytes(length) as usize;
        if length as u64 > self.index.header.sections[Section::Strings as usize].1 {
            return Err(IndexError::Header);
        }
        let mut bytes = vec![0; length];
        self.string_bytes(offset as usize + 4, &mut bytes)?;
        let text: Arc<str> = String::from_utf8_lossy(&bytes).into();
        let machinery = is_machinery(&text);
        self.kept.texts.insert(offset, (Arc::clone(&text), machinery));
        Ok(Some((text, machinery)))
    }

    /// The source file that a string of the index names.
    fn file(&mut self, offset: u32) -> Result<Option<SourceFile>, IndexError> {
        if let Some(file) = self.kept.files.get(&offset) {
            return Ok(Some(file.clone()));
        }
        let Some((text, _)) = self.text(offset)? else { return Ok(None) };
        let (path, version) = unmarked(&text);
        let file = if path.len() == text.len() { (Arc::clone(&text), version) } else { (path.into(), version) };
        self.kept.files.insert(offset, file.clone());
        Ok(Some(file))
    }

    fn string_bytes(&mut self, mut at: usize, mut out: &mut [u8]) -> Result<(), IndexError> {
        while !out.is_empty() {
            let block = self.block(Section::Strings, at / BLOCK)?;
            let found = block.get(at % BLOCK..).filter(|found| !found.is_empty()).ok_or(IndexError::Header)?;
            let taken = found.len().min(out.len());
            let (now, later) = out.split_at_mut(taken);
            now.copy_from_slice(&found[..taken]);
            out = later;
            at += taken;
        }
        Ok(())
    }

    fn block(&mut self, section: Section, number: usize) -> Result<Arc<[u8]>, IndexError> {
        let global = self.index.first_block[section as usize].checked_add(number).ok_or(IndexError::Header)?;
        let (offset, length) = self.index.header.sections[section as usize];
        let start = (number as u64).saturating_mul(BLOCK as u64);
        let rest = length.checked_sub(start).filter(|&rest| rest > 0).ok_or(IndexError::Header)?;
        if let Some(Some(block)) = self.kept.blocks.get(global) {
            return Ok(Arc::clone(block));
        }
        let mut bytes = vec![0; rest.min(BLOCK as u64) as usize];
        self.index.bytes.read(offset + start, &mut bytes)?;
        if self.index.checks.get(global) != Some(&crc32fast::hash(&bytes)) {
            return Err(IndexError::Block(global));
        }
        let block: Arc<[u8]> = bytes.into();
        if let Some(slot) = self.kept.blocks.get_mut(global) {
            *slot = Some(Arc::clone(&block));
        }
        Ok(block)
    }
}

const fn positive(line: u32) -> Option<u32> {
    if line == 0 { None } else { Some(line) }
}

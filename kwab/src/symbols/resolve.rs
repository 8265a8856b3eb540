//! Puts images where a dump had them loaded, and answers for run-time addresses.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use super::{Image, Location, PrintedFunction, Probe, SourceFrame};
use crate::intervals::ByProcess;

/// An image at the addresses of one address space.
#[derive(Clone, Debug)]
pub struct LoadedImage {
    /// The image that is loaded at `bias`.
    pub image: Arc<Image>,
    /// Run-time minus link address, wrapping.
    pub bias: u64,
    /// First run-time address.
    pub start: u64,
    /// The run-time address behind the last.
    pub end: u64,
    /// The process it is loaded in; `None` for the kernel, which is the same everywhere.
    pub pid: Option<u32>,
}

impl LoadedImage {
    /// An image with a load bias, covering all of its loadable segments.
    #[must_use]
    pub fn new(image: Arc<Image>, bias: u64, pid: Option<u32>) -> Self {
        let (low, high) = image.link_range();
        Self { image, bias, start: low.wrapping_add(bias), end: high.wrapping_add(bias), pid }
    }

    /// The link address of a run-time address.
    #[must_use]
    pub const fn link(&self, addr: u64) -> u64 {
        addr.wrapping_sub(self.bias)
    }
}

/// The images of a dump.
#[derive(Clone, Debug, Default)]
pub struct Symbols {
    loaded: Vec<LoadedImage>,
    /// Where each of them lies; built when an address is asked for.
    ranges: OnceLock<ByProcess>,
    /// Functions that were printed without addresses: the image of each, and its link address there.
    printed: HashMap<PrintedFunction, (Arc<Image>, u64)>,
}

impl Symbols {
    /// No images yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an image.
    pub fn add(&mut self, loaded: LoadedImage) {
        self.loaded.push(loaded);
        self.ranges = OnceLock::new();
    }

    /// All images, in the order they were added.
    #[must_use]
    pub fn loaded(&self) -> &[LoadedImage] {
        &self.loaded
    }

    /// The image at an address, as seen by a process (`None`: by the kernel).
    #[must_use]
    pub fn image_at(&self, addr: u64, pid: Option<u32>) -> Option<&LoadedImage> {
        let ranges =
            self.ranges.get_or_init(|| {
                let numbered = (0_u32..).zip(&self.loaded);
                ByProcess::of(numbered.filter_map(|(number, loaded)| {
                    Some((loaded.pid, (loaded.start, loaded.end.checked_sub(1)?, number)))
                }))
            });
        self.loaded.get(ranges.seen_by(pid, addr)? as usize)
    }

    /// Everything known about an address; empty when no image is there or its symbols cannot be read.
    #[must_use]
    pub fn resolve(&self, addr: u64, pid: Option<u32>, probe: Probe) -> Location {
        let Some(loaded) = self.image_at(probe.instruction(addr), pid) else { return Location::default() };
        loaded.image.locate(loaded.link(addr), probe).unwrap_or_default()
    }

    /// Adds a function that was printed by name, with the image that has it and its link address there.
    pub fn add_printed(&mut self, function: PrintedFunction, image: Arc<Image>, link: u64) {
        self.printed.insert(function, (image, link));
    }

    /// Everything known about a position in a function that was printed by name; empty when no image has it.
    #[must_use]
    pub fn resolve_printed(&self, function: &PrintedFunction, offset: u64, probe: Probe) -> Location {
        let Some((image, link)) = self.printed.get(function) else { return Location::default() };
        image.locate(link.wrapping_add(offset), probe).unwrap_or_default()
    }

    /// Whether an address lies in executable code of an image.
    #[must_use]
    pub fn is_code(&self, addr: u64, pid: Option<u32>) -> bool {
        self.image_at(addr, pid).is_some_and(|loaded| loaded.image.is_code(loaded.link(addr)))
    }

    /// Fills `out` with what the image has at an address; how many bytes there are.
    #[must_use]
    pub fn read(&self, addr: u64, pid: Option<u32>, out: &mut [u8]) -> usize {
        self.image_at(addr, pid).map_or(0, |loaded| loaded.image.read(loaded.link(addr), out))
    }
}

/// `name+0xoffset`, as a debugger prints an address; `None` when there is no name.
#[must_use]
pub fn short(location: &Location) -> Option<String> {
    if let Some(symbol) = &location.symbol {
        return Some(format!("{}+{:#x}", symbol.name, symbol.offset));
    }
    location.frames.last().and_then(|frame: &SourceFrame| frame.function.as_ref()).map(ToString::to_string)
}

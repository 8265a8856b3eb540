//! Collects what a dump says of the machine: where mappings and the code of the kernel lie, and the architecture.
//!
//! An address of a user says something of a user's bytes only when it points nowhere: bytes that were taken for a
//! pointer look like one. So an address in the user's half counts as an address when a mapping of the dump holds it.

use std::collections::BTreeSet;

use kwab_format::record::*;
use kwab_format::{Fields as _, RawRecord, RecordType as _, Records};

use crate::decode::{PointerClass, classify};
use crate::intervals::IntervalMap;
use crate::model::DumpFile;

/// Ranges of mappings that are remembered: more than processes of a dump have, and few enough to hold.
const MOST_RANGES: usize = 1 << 16;
/// A mapping longer than this is a reservation, in which nearly every number is an address.
const LONGEST: u64 = 64 << 30;
/// Numbers below this are counts, flags, errors and characters, not texts.
pub(super) const SMALL: u64 = 4096;
/// Where Linux loads kernel and modules on x86-64, for dumps that do not say where the kernel is.
const KERNEL_CODE: u64 = 0xffff_ffff_8000_0000;

/// What is known of the machine.
#[derive(Debug, Default)]
pub(super) struct Known {
    mapped: IntervalMap,
    code: IntervalMap,
    code_is_known: bool,
    /// Upper halves of the addresses at which the dump says that the kernel has something.
    regions: BTreeSet<u32>,
    /// The address whose access failed.
    fault: Option<u64>,
    pub(super) arch: Option<Arch>,
}

impl Known {
    /// Reads the sections that can say it; one that is damaged says nothing.
    pub(super) fn of(file: &DumpFile) -> Self {
        let mut ranges = Ranges::default();
        for index in 0..file.sections.len() {
            let Ok(payload) = file.payload(index) else { continue };
            Records::new(&payload).for_each(|raw| ranges.take(raw));
        }
        let numbered = |list: Vec<(u64, u64)>| IntervalMap::of(list.into_iter().map(|(low, end)| (low, end - 1, 0)));
        Self {
            code_is_known: !ranges.code.is_empty(),
            mapped: numbered(ranges.mapped),
            code: numbered(ranges.code),
            regions: ranges.regions,
            fault: ranges.fault,
            arch: ranges.arch,
        }
    }

    /// A machine whose kernel has something at these upper halves of addresses.
    #[cfg(test)]
    pub(super) fn with_regions(regions: &[u32]) -> Self {
        Self { regions: regions.iter().copied().collect(), ..Self::default() }
    }

    /// Whether an address lies in the kernel's half. Of architectures whose halves no bit tells apart, none does.
    pub(super) fn is_kernel(&self, addr: u64) -> bool {
        match self.arch {
            Some(Arch::AARCH64 | Arch::RISCV64) => addr >> 48 == 0xffff,
            _ => addr >> 47 == 0x1_ffff,
        }
    }

    /// Whether a value is an address and nothing else.
    pub(super) fn is_address(&self, value: u64) -> bool {
        match classify(value) {
            PointerClass::Null | PointerClass::NearNull | PointerClass::BelowNull | PointerClass::Poison(_) => true,
            _ if self.is_kernel(value) => true,
            PointerClass::User => value.is_multiple_of(4096) || self.mapped.at(value).is_some(),
            PointerClass::Kernel | PointerClass::NonCanonical => false,
        }
    }

    /// Whether 64 bits that code chose cannot be bytes of a text: a small number, a pattern of an allocator, a pointer
    /// of the kernel, a pointer into a mapping.
    pub(super) fn is_word(&self, value: u64) -> bool {
        match classify(value) {
            PointerClass::Null | PointerClass::BelowNull | PointerClass::Poison(_) => true,
            PointerClass::NearNull => value < SMALL,
            // What the fault is about: the dump says that it is an address.
            _ if self.fault == Some(value) => self.is_address(value),
            // Six letters below the top bytes of an older pointer look like a pointer of the kernel too.
            _ if self.is_kernel(value) => self.regions.contains(&region(value)),
            _ => self.mapped.at(value).is_some(),
        }
    }

    /// Whether a value is a page-table entry: a text has bits set above the physical address.
    pub(super) fn is_entry(&self, value: u64) -> bool {
        let never = match self.arch {
            // Arm ARM, D8.3: the upper attributes are bits 50 to 58 and 63 down to 59 for hierarchical ones.
            Some(Arch::AARCH64) => 0x000f_0000_0000_0000,
            // SDM 3A, 4.5: bit 63 forbids execution; software and protection keys have the others.
            _ => 0x7fff_0000_0000_0000,
        };
        value & never == 0
    }

    /// Whether the bytes at an address are code of the kernel.
    pub(super) fn is_code(&self, addr: u64) -> bool {
        match self.code_is_known {
            true => self.code.at(addr).is_some(),
            false => self.arch == Some(Arch::X86_64) && addr >= KERNEL_CODE,
        }
    }
}

/// What is collected.
#[derive(Debug, Default)]
struct Ranges {
    mapped: Vec<(u64, u64)>,
    code: Vec<(u64, u64)>,
    regions: BTreeSet<u32>,
    fault: Option<u64>,
    arch: Option<Arch>,
}

/// The four GiB that an address lies in.
const fn region(addr: u64) -> u32 {
    (addr >> 32) as u32
}

impl Ranges {
    fn take(&mut self, raw: RawRecord<'_>) {
        match raw.kind {
            Vma::KIND => {
                if let Ok((vma, _)) = Vma::decode(raw.body) {
                    self.map(vma.start, vma.end);
                }
            }
            CrashReport::KIND => {
                let vmas = CrashReport::decode(raw.body).ok().and_then(|(report, _)| report.vmas);
                vmas.iter().flat_map(kwab_format::List::iter).for_each(|vma| self.map(vma.start, vma.end));
            }
            Image::KIND => {
                if let Ok((image, _)) = Image::decode(raw.body) {
                    self.image(&image);
                }
            }
            Identity::KIND => {
                if let Ok((identity, _)) = Identity::decode(raw.body) {
                    self.arch = self.arch.or(identity.arch);
                    let ram = identity.ram_bytes.unwrap_or(0).min(1 << 42);
                    let pieces = (0..=ram >> 32).map(|piece| identity.direct_map?.checked_add(piece << 32));
                    pieces.for_each(|addr| self.region(addr));
                }
            }
            Cause::KIND => {
                if let Ok((cause, _)) = Cause::decode(raw.body) {
                    self.fault = self.fault.or(cause.fault_addr);
                    [cause.ip, cause.sp, cause.lock].into_iter().for_each(|addr| self.region(addr));
                }
            }
            Frame::KIND => self.region(Frame::decode(raw.body).ok().and_then(|(frame, _)| frame.addr)),
            StackBounds::KIND => {
                if let Ok((stack, _)) = StackBounds::decode(raw.body) {
                    [stack.low, stack.high].into_iter().for_each(|addr| self.region(addr));
                }
            }
            Task::KIND => {
                if let Ok((task, _)) = Task::decode(raw.body) {
                    [task.kernel_sp, task.kernel_ip].into_iter().for_each(|addr| self.region(addr));
                }
            }
            Memory::KIND => self.region(Memory::decode(raw.body).ok().and_then(|(memory, _)| memory.vaddr)),
            Registers::KIND if self.arch.is_none() => {
                self.arch = Registers::decode(raw.body).ok().and_then(|(registers, _)| registers.arch);
            }
            _ => {}
        }
    }

    fn region(&mut self, addr: Option<u64>) {
        if let Some(addr) = addr.filter(|addr| addr >> 48 == 0xffff)
            && self.regions.len() < MOST_RANGES
        {
            self.regions.insert(region(addr));
        }
    }

    fn map(&mut self, start: Option<u64>, end: Option<u64>) {
        let (Some(start), Some(end)) = (start, end) else { return };
        let whole = start.is_multiple_of(4096) && start >> 47 == 0 && end > start && end - start <= LONGEST;
        if whole && self.mapped.len() < MOST_RANGES {
            self.mapped.push((start, end));
        }
    }

    /// The executable segments of the kernel or a module; without segments all of it.
    fn image(&mut self, image: &Image<'_>) {
        [image.start, image.end].into_iter().for_each(|addr| self.region(addr));
        if !matches!(image.kind, Some(ImageKind::KERNEL | ImageKind::MODULE)) || image.pid.is_some() {
            return;
        }
        let segments = image.segments.iter().flat_map(kwab_format::List::iter);
        let executable = segments.filter(|segment| segment.prot.is_some_and(|prot| prot & 4 != 0));
        let before = self.code.len();
        for segment in executable.take(64) {
            if let (Some(start), Some(length)) = (segment.start, segment.length) {
                self.code_range(start, start.saturating_add(length));
            }
        }
        if let (true, Some(start), Some(end)) = (self.code.len() == before, image.start, image.end) {
            self.code_range(start, end);
        }
    }

    fn code_range(&mut self, start: u64, end: u64) {
        if start >> 47 == 0x1_ffff && end > start && self.code.len() < MOST_RANGES {
            self.code.push((start, end));
        }
    }
}

//! Finds the kernel in captured memory: the note with its build-id, where its image is mapped, its page tables.

use kwab_format::record::RegId;

use super::registers::Processor;
use super::vmcore::{Stored, Vmcore};
use crate::memory::vmcoreinfo::{self, MOST_TEXTS};
use crate::memory::{Outcome, Tables, walk};

/// Where x86-64 kernels run: the last 2 GiB. Linux has its image first, then modules, then what is mapped for good
/// (`Documentation/arch/x86/x86_64/mm.rst`); ours may be anywhere but in the last 2 MiB.
const IMAGES: std::ops::Range<u64> = 0xffff_ffff_8000_0000..0xffff_ffff_ffe0_0000;
/// Without a mapping for so long, an image is over: what follows are modules.
const GAP: u64 = 16 << 20;
const PAGE: u64 = 4096;
/// Type and name of a note with a build-id (gABI; `NT_GNU_BUILD_ID`); sizes of name and body stand before it.
const MARK: &[u8] = b"\x03\0\0\0GNU\0";
/// The longest build-id.
const LONGEST: usize = 64;

/// The kernel of a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernel {
    /// The build-id and the run-time address of its note.
    pub build_id: Option<(Vec<u8>, u64)>,
    /// First mapped address among those where kernels run.
    pub start: u64,
    /// Address behind the last one.
    pub end: u64,
}

/// The page tables of a processor.
pub(super) fn tables(processor: &Processor) -> Option<Tables> {
    let root = processor.get(RegId::CR3);
    (root != 0).then(|| Tables::of(root, processor.get(RegId::CR4)))
}

/// The page tables that Linux says it has (`VMCOREINFO`), for a core without control registers.
pub(super) fn told_tables(core: &Vmcore) -> Option<Tables> {
    vmcoreinfo::tables(core.info.as_deref()?)
}

/// What a Linux says about itself, in the page that it keeps for readers of cores.
pub(super) fn described(core: &Vmcore, processors: &[Tables]) -> Option<String> {
    const READ: usize = 1 << 20;
    let mut buffer = vec![0; READ];
    let mut looked_at = 0;
    for load in core.loads.iter().filter(|load| load.stored != Stored::Zeros) {
        let first = load.paddr.next_multiple_of(PAGE);
        let end = load.paddr.saturating_add(load.length);
        for at in (first..end).step_by(READ) {
            let wanted = usize::try_from(end - at).unwrap_or(READ).min(READ);
            let read = core.read(at, &mut buffer[..wanted]).ok()?;
            for text in buffer[..read].chunks(PAGE as usize).filter_map(vmcoreinfo::text) {
                if vmcoreinfo::is_of(text, processors, |paddr| core.word(paddr)) {
                    return Some(text.to_owned());
                }
                looked_at += 1;
                if looked_at == MOST_TEXTS {
                    return None;
                }
            }
        }
    }
    None
}

/// Looks through the pages that are mapped where kernels run.
pub(super) fn find(core: &Vmcore, tables: Tables) -> Option<Kernel> {
    let mut kernel: Option<Kernel> = None;
    let mut buffer = vec![0; PAGE as usize];
    let mut at = IMAGES.start;
    while at < IMAGES.end {
        let walked = walk(tables, at, &|paddr| core.word(paddr));
        let (paddr, size) = match walked.outcome {
            Outcome::Page { paddr, size, .. } => (paddr, size),
            Outcome::NotPresent(level) | Outcome::NotCaptured(level) | Outcome::Reserved(level) if level > 0 => {
                let reach = PAGE << (9 * u32::from(level - 1));
                let Some(next) = (at / reach + 1).checked_mul(reach) else { break };
                at = next;
                continue;
            }
            _ => return kernel,
        };
        if let Some(known) = kernel.take_if(|known| at - known.end >= GAP)
            && known.build_id.is_some()
        {
            return Some(known);
        }
        for skip in (0..size).step_by(PAGE as usize) {
            let page = at + skip;
            let known = kernel.get_or_insert(Kernel { build_id: None, start: page, end: page });
            known.end = page + PAGE;
            if known.build_id.is_some() || core.read(paddr + skip, &mut buffer).unwrap_or(0) < buffer.len() {
                continue;
            }
            // A page that begins with an ELF header is a program's, such as the vDSO.
            if !buffer.starts_with(b"\x7fELF") {
                known.build_id = note(&buffer).map(|(id, offset)| (id.to_vec(), page + offset));
            }
        }
        at += size;
    }
    kernel
}

/// The build-id of the first note in a page, and where the note begins.
fn note(page: &[u8]) -> Option<(&[u8], u64)> {
    memchr::memmem::find_iter(page, MARK).find_map(|mark| {
        let at = mark.checked_sub(8).filter(|at| at.is_multiple_of(4))?;
        let number =
            |at: usize| page.get(at..at + 4).map(|bytes| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]));
        let length = number(at + 4)? as usize;
        let fits = number(at)? == 4 && (8..=LONGEST).contains(&length);
        let id = page.get(mark + MARK.len()..mark + MARK.len() + length)?;
        (fits && id.iter().any(|byte| *byte != 0)).then_some((id, at as u64))
    })
}

/// Memory at virtual addresses, as far as it is mapped and in the file.
pub(super) fn read(core: &Vmcore, tables: Tables, start: u64, end: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut at = start;
    while at < end {
        let Some(paddr) = walk(tables, at, &|paddr| core.word(paddr)).paddr() else { break };
        let count = (end - at).min(PAGE - at % PAGE) as usize;
        let mut page = vec![0; count];
        let found = core.read(paddr, &mut page).unwrap_or(0);
        bytes.extend_from_slice(&page[..found]);
        if found < count {
            break;
        }
        at += count as u64;
    }
    bytes
}

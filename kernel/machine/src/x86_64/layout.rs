//! The layout of the kernel's half of the address space.
//!
//! | addresses | what |
//! |---|---|
//! | from `0xffff_8000_0000_0000` | *direct map*: physical address + [`direct_map`], RAM write-back, devices uncached |
//! | from `0xffff_c080_0000_0000` | kernel stacks, one slot of 64 KiB each: 32 KiB unmapped, 32 KiB stack |
//! | 128 GiB and more above them | the heap's spans, see [`spans`](super::memory::spans) |
//! | from `0xffff_ffff_8000_0000` | the image, physical address + [`image_base`]; see [`slide`](super::entry::slide) |
//!
//! Direct map, stacks and spans each have a base that [`choose`] draws at boot, unless `nokaslr` is on the command
//! line: 16 bits of entropy for the direct map in steps of 1 GiB, 27 for the stacks in steps of a slot, 31 for the
//! spans in steps of a page. The image is moved before: 992 addresses in steps of 2 MiB.
//!
//! The root entries of these are made at boot and never change, so every address space copies them once.

use core::cell::UnsafeCell;
use core::mem::offset_of;

use crate::addr::PhysAddr;
use crate::describe::Entry;

/// Start of the kernel's half, and of the direct map until [`choose`].
pub(crate) const KERNEL_HALF: u64 = 0xffff_8000_0000_0000;
/// The lowest start of the stack slots. Nothing is ever mapped in the 512 GiB below.
const STACKS: u64 = 0xffff_c080_0000_0000;
/// The lowest distance of the heap's spans from the beginning of the root entry they share with the stacks.
const SPANS_OFFSET: u64 = 128 << 30;
/// Bytes that one entry of a root table covers.
const ROOT_SPAN: u64 = 1 << 39;
/// An address that is never mapped.
pub(crate) const NOWHERE: u64 = STACKS - 4096;

/// Where the regions begin.
#[derive(Clone, Copy)]
pub(crate) struct Bases {
    pub direct: u64,
    pub stacks: u64,
    pub spans: u64,
}

struct SharedBases(UnsafeCell<Bases>);

// SAFETY: written by `set` alone, on the one processor, while no address of the regions is in use.
unsafe impl Sync for SharedBases {}

static BASES: SharedBases =
    SharedBases(UnsafeCell::new(Bases { direct: KERNEL_HALF, stacks: STACKS, spans: STACKS + SPANS_OFFSET }));

/// Where the image was linked to and where it is, and where the direct map begins.
pub static FIELDS: [Entry; 4] = [
    Entry::symbol("image", &raw const __kernel_start),
    Entry::number("image.linked", (LINKED + LOADED) as usize),
    Entry::address("bases", &BASES),
    Entry::number("bases.direct", offset_of!(Bases, direct)),
];

#[inline(always)]
fn bases() -> Bases {
    // SAFETY: see `SharedBases`.
    unsafe { *BASES.0.get() }
}

/// Start of the direct map.
#[inline(always)]
pub(crate) fn direct_map() -> u64 {
    bases().direct
}

/// First address past what the direct map's root entry can show.
pub(crate) fn direct_end() -> u64 {
    (direct_map() | (ROOT_SPAN - 1)).wrapping_add(1)
}

/// Start of the stack slots.
#[inline(always)]
pub(crate) fn stacks() -> u64 {
    bases().stacks
}

/// Start of the heap's spans.
#[inline(always)]
pub(crate) fn spans() -> u64 {
    bases().spans
}

/// First address past what the spans' root entry can show.
pub(crate) fn spans_end() -> u64 {
    (spans() | (ROOT_SPAN - 1)).wrapping_add(1)
}

/// Numbers drawn from random bits: a multiplicative generator, which spreads the few bits that each draw uses over all
/// that follow.
pub(crate) struct Draws(pub u64);

impl Draws {
    /// A number below `limit`, which is taken as at least 1.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(0x9e37_79b9_7f4a_7c15);
        ((u128::from(self.0) * u128::from(limit.max(1))) >> 64) as u64
    }
}

/// Draw bases from random bits, for physical memory and device registers below `reach`. Without bits: the lowest of
/// each.
pub(crate) fn choose(bits: Option<u64>, reach: u64) -> Bases {
    /// Root entries for the direct map, and for stacks and spans.
    const DIRECT_SLOTS: u64 = 128;
    const STACK_SLOTS: u64 = 126;
    const GIB: u64 = 1 << 30;
    /// Of a stack.
    const SLOT: u64 = 64 << 10;
    /// Room for the most stacks there can be, and for all spans.
    const STACKS_ROOM: u64 = GIB;
    const SPANS_ROOM: u64 = 17 * 16 * GIB;
    let Some(mut draws) = bits.map(Draws) else { return bases() };
    let mut below = |limit| draws.below(limit);
    let free = ROOT_SPAN.saturating_sub(reach) / GIB;
    let direct = KERNEL_HALF + below(DIRECT_SLOTS) * ROOT_SPAN + below(free) * GIB;
    let shared = STACKS + below(STACK_SLOTS) * ROOT_SPAN;
    let stacks = shared + below((SPANS_OFFSET - STACKS_ROOM) / SLOT) * SLOT;
    let spans = shared + SPANS_OFFSET + below((ROOT_SPAN - SPANS_OFFSET - SPANS_ROOM) / 4096) * 4096;
    Bases { direct, stacks, spans }
}

/// Use these from here on.
///
/// # Safety
/// Once, on the one processor that runs, with tables that map the direct map there, and while no address of any region
/// is in use.
pub(crate) unsafe fn set(bases: Bases) {
    // SAFETY: the caller's.
    unsafe { *BASES.0.get() = bases };
}

/// Root-table indices in use by the kernel's half.
#[inline]
pub(crate) fn kernel_root_slots() -> [usize; 3] {
    let index = |at: u64| (at >> 39) as usize & 511;
    [index(direct_map()), index(stacks()), 511]
}
/// Virtual minus physical address of the image as it is linked; the linker script agrees.
const LINKED: u64 = 0xffff_ffff_8000_0000;
/// Physical address of the image's first byte; the linker script agrees.
const LOADED: u64 = 1 << 20;
/// End of physical memory the direct map can reach (the room of one root entry).
pub(crate) const DIRECT_LIMIT: u64 = ROOT_SPAN;

unsafe extern "C" {
    static pvh_start: u8;
    static __kernel_start: u8;
    static __text_end: u8;
    static __rodata_end: u8;
    static __kernel_end: u8;
    static __build_id_start: u8;
    static __build_id_end: u8;
    static __fixups_start: u8;
    static __fixups_end: u8;
    static __relocations_start: u8;
    static __relocations_end: u8;
}

/// Virtual minus physical address of the image in this boot.
#[inline(always)]
pub(crate) fn image_base() -> u64 {
    // The compiler finds the symbol relative to the instruction, so this is right wherever the image is.
    (&raw const __kernel_start) as u64 - LOADED
}

/// How far the image was moved: run-time minus link-time address.
pub(crate) fn slide() -> u64 {
    image_base() - LINKED
}

/// Where the ELF entry point is.
pub(crate) fn entry() -> u64 {
    (&raw const pvh_start) as u64
}

/// The image's bounds, virtual: start, end of text, end of read-only data, end.
pub(crate) fn image() -> [u64; 4] {
    [
        (&raw const __kernel_start) as u64,
        (&raw const __text_end) as u64,
        (&raw const __rodata_end) as u64,
        (&raw const __kernel_end) as u64,
    ]
}

/// The build-id note as linked (header included).
pub(crate) fn build_id_note() -> &'static [u8] {
    let (start, end) = ((&raw const __build_id_start), (&raw const __build_id_end));
    // SAFETY: the linker script puts both symbols around one read-only section.
    unsafe { core::slice::from_raw_parts(start, end as usize - start as usize) }
}

/// The exception table: pairs of (faulting instruction, where to continue).
pub(crate) fn fixups() -> &'static [[u64; 2]] {
    let (start, end) = ((&raw const __fixups_start), (&raw const __fixups_end));
    // SAFETY: the linker script aligns the section to 8, and only `fixup!` fills it, with pairs of quads.
    unsafe { core::slice::from_raw_parts(start.cast(), (end as usize - start as usize) / 16) }
}

/// Where the image's data holds addresses of the image, as words of an ELF section of type `SHT_RELR`.
pub(super) fn relocations() -> &'static [u64] {
    let (start, end) = ((&raw const __relocations_start), (&raw const __relocations_end));
    // SAFETY: the linker script aligns the section to 8 and puts both symbols around it; it is never written.
    unsafe { core::slice::from_raw_parts(start.cast(), (end as usize - start as usize) / 8) }
}

/// Where the direct map shows `addr`. Dereferencing it is the caller's responsibility.
#[inline]
pub(crate) fn direct(addr: PhysAddr) -> *mut u8 {
    direct_map().wrapping_add(addr.0) as *mut u8
}

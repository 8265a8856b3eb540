//! Says what kind of thing an address is, from its value and the architecture.

use kwab_format::record::Arch;

/// A kind of address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PointerClass {
    /// The address 0 itself.
    Null,
    /// Within 64 KiB of zero: a field or an element of something at null.
    NearNull,
    /// Just below zero: a negative offset from null, or an error number used as a pointer.
    BelowNull,
    /// The bits above the widest virtual address are not all equal: no page table can map it.
    NonCanonical,
    /// A byte pattern that allocators and debuggers leave behind.
    Poison(&'static str),
    /// In the user's half.
    User,
    /// In the kernel's half.
    Kernel,
}

/// What decides which addresses page tables can map, and whose they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Paging {
    /// The architecture; one that is not known counts as x86-64.
    pub arch: Option<Arch>,
    /// Whether x86-64 has five page-table levels (CR4.LA57): addresses of 57 bits instead of 48.
    pub five_levels: bool,
}

impl Paging {
    /// The paging of an architecture, with four levels on x86-64.
    #[must_use]
    pub const fn on(arch: Option<Arch>) -> Self {
        Self { arch, five_levels: false }
    }

    /// Where the user's half ends: the first address that no program can have mapped.
    #[must_use]
    pub const fn user_end(self) -> u64 {
        match self.arch {
            Some(Arch::AARCH64) => 1 << 52,
            Some(Arch::RISCV64) => 1 << 56,
            Some(Arch::POWERPC | Arch::MIPS | Arch::LOONGARCH | Arch::SPARC) => 1 << 63,
            Some(Arch::S390X) => u64::MAX,
            _ if self.five_levels => 1 << 56,
            _ => 1 << 47,
        }
    }
}

/// How far from zero an address still looks like a field of a null pointer: 64 KiB, Linux's `mmap_min_addr`.
const NEAR_NULL: u64 = 0x1_0000;

/// The kind of an address on x86-64 with four page-table levels.
#[must_use]
pub fn classify(addr: u64) -> PointerClass {
    classify_on(Paging::default(), addr)
}

/// The kind of an address on a machine.
#[must_use]
pub fn classify_on(paging: Paging, addr: u64) -> PointerClass {
    if addr == 0 {
        return PointerClass::Null;
    }
    if let Some(name) = is_poison(addr) {
        return PointerClass::Poison(name);
    }
    match addr {
        _ if addr < NEAR_NULL => PointerClass::NearNull,
        // Error numbers go down to -4095.
        _ if addr > u64::MAX - 4096 => PointerClass::BelowNull,
        _ => match half_of(paging, addr) {
            None => PointerClass::NonCanonical,
            Some(true) => PointerClass::Kernel,
            Some(false) => PointerClass::User,
        },
    }
}

/// Whether an address lies in the kernel's half; `None` when no page table of the machine can map it.
fn half_of(paging: Paging, addr: u64) -> Option<bool> {
    // The bits that must all be equal: those above the widest virtual address that the architecture has.
    let equal = |bits: u32| {
        let top = addr.cast_signed() >> (bits - 1);
        matches!(top, 0 | -1).then_some(top == -1)
    };
    match paging.arch {
        // Bits 56 to 63 may hold a tag (Arm ARM, D8.8); bit 55 says which table translates; 52 bits are translated.
        Some(Arch::AARCH64) => {
            let untagged = (addr << 8).cast_signed() >> 8;
            matches!(untagged >> 52, 0 | -1).then_some(untagged < 0)
        }
        // Sv57 is the widest mode (RISC-V privileged architecture, 12.6).
        Some(Arch::RISCV64) => equal(57),
        // Segments and regions: every address can be mapped, the kernel has the upper half, or a space of its own.
        Some(Arch::POWERPC | Arch::MIPS | Arch::LOONGARCH | Arch::SPARC) => Some(addr >> 63 == 1),
        Some(Arch::S390X) => Some(true),
        // SDM 3A, 4.5.2: five levels translate 57 bits, four 48.
        _ => equal(if paging.five_levels { 57 } else { 48 }),
    }
}

/// What left a byte pattern behind, when a word or an address built from one carries it.
///
/// The word itself, or an offset of at most 4095 from it, counts: code adds field offsets before it dereferences.
#[must_use]
pub fn is_poison(addr: u64) -> Option<&'static str> {
    // Non-canonical repetitions, with some room for a field offset in the low bits.
    let near = |pattern: u64| addr.wrapping_sub(pattern) < 0x1000 || pattern.wrapping_sub(addr) < 0x1000;
    POISON.iter().find(|(pattern, _)| near(*pattern)).map(|(_, name)| *name)
}

/// Patterns: each an eight-byte word and what writes it.
const POISON: &[(u64, &str)] = &[
    (0x6b6b_6b6b_6b6b_6b6b, "freed slab object (0x6b)"),
    (0xdfdf_dfdf_dfdf_dfdf, "freed kernel object (0xdf)"),
    (0xdddd_dddd_dddd_dddd, "freed heap block (0xdd)"),
    (0xfdfd_fdfd_fdfd_fdfd, "guard bytes of a heap block (0xfd)"),
    (0xcdcd_cdcd_cdcd_cdcd, "uninitialised heap block (0xcd)"),
    (0x5a5a_5a5a_5a5a_5a5a, "uninitialised slab object (0x5a)"),
    (0xa5a5_a5a5_a5a5_a5a5, "end of a slab object (0xa5)"),
    (0xaaaa_aaaa_aaaa_aaaa, "poisoned page (0xaa)"),
    (0xefef_efef_efef_efef, "freed frame (0xef)"),
    (0xdead_0000_0000_0100, "removed list entry, next (Linux LIST_POISON1)"),
    (0xdead_0000_0000_0122, "removed list entry, previous (Linux LIST_POISON2)"),
    (0xdead_beef_dead_beef, "0xdeadbeef"),
    (0xdead_dead_dead_dead, "0xdeaddead"),
    (0xbaad_f00d_baad_f00d, "0xbaadf00d"),
    (0xfeee_feee_feee_feee, "freed memory (0xfeee)"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_famous_crashes_are_classified() {
        assert_eq!(classify(0), PointerClass::Null);
        assert_eq!(classify(8), PointerClass::NearNull);
        assert_eq!(classify(u64::MAX - 11), PointerClass::BelowNull);
        assert_eq!(classify(0x8000_0000_0000), PointerClass::NonCanonical);
        assert_eq!(classify(0x7fff_ffff_f000), PointerClass::User);
        assert_eq!(classify(0xffff_8000_0000_0000), PointerClass::Kernel);
        assert!(matches!(classify(0x6b6b_6b6b_6b6b_6b7b), PointerClass::Poison(_)));
        assert!(matches!(classify(0xdead_0000_0000_0108), PointerClass::Poison(_)));
    }

    #[test]
    fn halves_of_the_address_space_are_those_of_the_architecture() {
        let classify_on = |arch, addr| classify_on(Paging::on(arch), addr);
        let kernel_of_arm = 0xffff_0000_1234_5678;
        assert_eq!(classify_on(None, kernel_of_arm), PointerClass::NonCanonical);
        assert_eq!(classify_on(Some(Arch::X86_64), kernel_of_arm), PointerClass::NonCanonical);
        assert_eq!(classify_on(Some(Arch::AARCH64), kernel_of_arm), PointerClass::Kernel);
        assert_eq!(classify_on(Some(Arch::AARCH64), 0xf4ff_0000_1234_5678), PointerClass::Kernel, "a tag of KASAN");
        assert_eq!(classify_on(Some(Arch::AARCH64), 0x0000_ffff_1234_5678), PointerClass::User);
        assert_eq!(classify_on(Some(Arch::AARCH64), 0x4141_4141_4141_4141), PointerClass::NonCanonical);
        assert_eq!(classify_on(Some(Arch::RISCV64), 0xff60_0000_0123_4567), PointerClass::Kernel);
        assert_eq!(classify_on(Some(Arch::RISCV64), 0x0041_4141_4141_4141), PointerClass::User);
        assert_eq!(classify_on(Some(Arch::RISCV64), 0x4141_4141_4141_4141), PointerClass::NonCanonical);
        assert_eq!(classify_on(Some(Arch::POWERPC), 0xc000_0000_0123_4567), PointerClass::Kernel);
        assert_eq!(classify_on(Some(Arch::S390X), 0x0000_0000_8123_4567), PointerClass::Kernel);
        assert_eq!(classify_on(Some(Arch::S390X), 0x18), PointerClass::NearNull);
    }

    #[test]
    fn with_five_levels_bit_56_decides_and_not_bit_47() {
        let five = |addr| classify_on(Paging { arch: Some(Arch::X86_64), five_levels: true }, addr);
        let direct_map = 0xff11_0000_1234_5678;
        assert_eq!(classify(direct_map), PointerClass::NonCanonical);
        assert_eq!(five(direct_map), PointerClass::Kernel);
        assert_eq!(five(0x00ff_7fff_1234_5678), PointerClass::User);
        assert_eq!(five(0x0100_0000_0000_0000), PointerClass::NonCanonical);
        assert_eq!(five(0xfeff_ffff_ffff_f000), PointerClass::NonCanonical);
        assert!(matches!(five(0xdead_0000_0000_0108), PointerClass::Poison(_)));
    }
}

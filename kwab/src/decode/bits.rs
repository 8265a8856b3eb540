//! Names of the bits that a crash shows, and of exceptions and MSRs.
//!
//! Source: Intel 64 and IA-32 Architectures SDM, volume 3A (chapters 2.5, 4.7, 6.3) and volume 4; AMD64 APM volume 2.

/// A bit of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bit {
    /// Number of the bit, 0 the lowest.
    pub bit: u8,
    /// Its short name.
    pub name: &'static str,
    /// What it means when it is set.
    pub meaning: &'static str,
}

const fn bit(bit: u8, name: &'static str, meaning: &'static str) -> Bit {
    Bit { bit, name, meaning }
}

/// The error code of a page fault.
pub const PAGE_FAULT: &[Bit] = &[
    bit(0, "P", "the page is present and forbids the access"),
    bit(1, "W", "write"),
    bit(2, "U", "from user mode"),
    bit(3, "RSVD", "a reserved bit is set in a page-table entry"),
    bit(4, "I", "instruction fetch"),
    bit(5, "PK", "protection key"),
    bit(6, "SS", "shadow stack"),
    bit(15, "SGX", "enclave access control"),
];

/// Control register 0.
pub const CR0: &[Bit] = &[
    bit(0, "PE", "protected mode"),
    bit(1, "MP", "WAIT traps while TS is set"),
    bit(2, "EM", "no FPU"),
    bit(3, "TS", "FPU instructions trap (task switched)"),
    bit(4, "ET", "387 present"),
    bit(5, "NE", "FPU errors raise exceptions"),
    bit(16, "WP", "the kernel respects read-only pages"),
    bit(18, "AM", "alignment checks enabled"),
    bit(29, "NW", "not write-through"),
    bit(30, "CD", "caches off"),
    bit(31, "PG", "paging"),
];

/// Control register 4.
pub const CR4: &[Bit] = &[
    bit(0, "VME", "virtual-8086 extensions"),
    bit(1, "PVI", "virtual interrupt flag"),
    bit(2, "TSD", "RDTSC in kernel mode only"),
    bit(3, "DE", "debugging extensions"),
    bit(4, "PSE", "4 MiB pages"),
    bit(5, "PAE", "physical addresses beyond 32 bits"),
    bit(6, "MCE", "machine checks"),
    bit(7, "PGE", "global pages"),
    bit(8, "PCE", "RDPMC in user mode"),
    bit(9, "OSFXSR", "SSE state is saved"),
    bit(10, "OSXMMEXCPT", "SSE exceptions"),
    bit(11, "UMIP", "SGDT, SIDT, SLDT, SMSW and STR trap in user mode"),
    bit(12, "LA57", "five page-table levels"),
    bit(13, "VMXE", "VMX"),
    bit(14, "SMXE", "SMX"),
    bit(16, "FSGSBASE", "RDFSBASE, WRFSBASE and the same for GS"),
    bit(17, "PCIDE", "process-context identifiers"),
    bit(18, "OSXSAVE", "XSAVE"),
    bit(20, "SMEP", "the kernel may not execute user pages"),
    bit(21, "SMAP", "the kernel may not access user pages"),
    bit(22, "PKE", "protection keys for user pages"),
    bit(23, "CET", "control-flow enforcement"),
    bit(24, "PKS", "protection keys for kernel pages"),
];

/// MSR 0xC000_0080, extended features.
pub const EFER: &[Bit] = &[
    bit(0, "SCE", "SYSCALL and SYSRET"),
    bit(8, "LME", "long mode enabled"),
    bit(10, "LMA", "long mode active"),
    bit(11, "NXE", "no-execute pages"),
    bit(12, "SVME", "SVM"),
    bit(14, "FFXSR", "fast FXSAVE"),
];

/// Bits of RFLAGS (Intel SDM volume 1, section 3.4.3).
pub const RFLAGS: &[Bit] = &[
    bit(0, "CF", "carry"),
    // Always set, says nothing, and so has no name.
    bit(1, "", "reserved"),
    bit(2, "PF", "parity"),
    bit(4, "AF", "auxiliary carry"),
    bit(6, "ZF", "zero"),
    bit(7, "SF", "sign"),
    bit(8, "TF", "single step"),
    bit(9, "IF", "interrupts on"),
    bit(10, "DF", "string operations run downwards"),
    bit(11, "OF", "overflow"),
    bit(14, "NT", "nested task"),
    bit(16, "RF", "resume"),
    bit(17, "VM", "virtual-8086 mode"),
    bit(18, "AC", "alignment check, or SMAP suspended"),
    bit(19, "VIF", "virtual interrupts on"),
    bit(20, "VIP", "virtual interrupt pending"),
    bit(21, "ID", "CPUID supported"),
];

/// The names of the set bits, lowest first; bits without a name are put behind as one number.
#[must_use]
pub fn describe_bits(value: u64, table: &[Bit]) -> String {
    let known = table.iter().fold(0, |known, bit| known | 1_u64 << bit.bit);
    let set = table.iter().filter(|bit| value >> bit.bit & 1 == 1);
    let mut words: Vec<String> = set.filter(|bit| !bit.name.is_empty()).map(|bit| bit.name.to_owned()).collect();
    let rest = value & !known;
    if rest != 0 {
        words.push(format!("{rest:#x}"));
    }
    words.join(" ")
}

/// What a page-fault error code says, in a sentence without a subject: "read from user mode of a page that is not
/// present".
#[must_use]
pub fn page_fault_sentence(code: u64) -> String {
    let access = match (code & 0x10 != 0, code & 2 != 0) {
        (true, _) => "instruction fetch",
        (false, true) => "write",
        (false, false) => "read",
    };
    let mode = if code & 4 != 0 { "user" } else { "kernel" };
    let why = if code & 8 != 0 {
        "through a page-table entry with a reserved bit set"
    } else if code & 1 != 0 {
        "of a present page that forbids it"
    } else {
        "of a page that is not present"
    };
    format!("{access} in {mode} mode {why}")
}

/// Exceptions by number: mnemonic and name.
const EXCEPTIONS: &[(u32, &str, &str)] = &[
    (0, "#DE", "divide error"),
    (1, "#DB", "debug"),
    (2, "NMI", "non-maskable interrupt"),
    (3, "#BP", "breakpoint"),
    (4, "#OF", "overflow"),
    (5, "#BR", "bound range exceeded"),
    (6, "#UD", "invalid opcode"),
    (7, "#NM", "no FPU"),
    (8, "#DF", "double fault"),
    (10, "#TS", "invalid TSS"),
    (11, "#NP", "segment not present"),
    (12, "#SS", "stack segment fault"),
    (13, "#GP", "general protection fault"),
    (14, "#PF", "page fault"),
    (16, "#MF", "x87 error"),
    (17, "#AC", "alignment check"),
    (18, "#MC", "machine check"),
    (19, "#XM", "SIMD error"),
    (20, "#VE", "virtualization exception"),
    (21, "#CP", "control protection fault"),
];

/// Mnemonic and name of an exception.
#[must_use]
pub fn exception_name(vector: u32) -> Option<(&'static str, &'static str)> {
    EXCEPTIONS.iter().find(|(number, ..)| *number == vector).map(|(_, short, name)| (*short, *name))
}

/// The number of an exception, from a name in any of the usual spellings.
#[must_use]
pub fn vector_of(name: &str) -> Option<u32> {
    let plain = |text: &str| text.to_lowercase().replace(['_', '-', '#'], " ").trim().to_owned();
    let wanted = plain(name);
    EXCEPTIONS
        .iter()
        // A single word such as `overflow` or `debug` stands in many messages that name no exception.
        .find(|(_, short, long)| {
            wanted == plain(short) || wanted == *long || (long.contains(' ') && wanted.contains(&plain(long)))
        })
        .map(|(number, ..)| *number)
}

/// Whether an exception comes with the address whose access failed: a page fault does, and the double fault that
/// another page fault became (Intel SDM volume 3, section 7.15). After any other, CR2 holds an older address.
#[must_use]
pub const fn has_address(vector: u32) -> bool {
    matches!(vector, 8 | 14)
}

/// Model-specific registers that a kernel's crash is likely to show.
const MSRS: &[(u32, &str)] = &[
    (0x10, "TSC"),
    (0x1b, "APIC_BASE"),
    (0x48, "SPEC_CTRL"),
    (0x8b, "UCODE_REV"),
    (0x174, "SYSENTER_CS"),
    (0x175, "SYSENTER_ESP"),
    (0x176, "SYSENTER_EIP"),
    (0x179, "MCG_CAP"),
    (0x1a0, "MISC_ENABLE"),
    (0x277, "PAT"),
    (0x2ff, "MTRR_DEF_TYPE"),
    (0x6e0, "TSC_DEADLINE"),
    (0xc000_0080, "EFER"),
    (0xc000_0081, "STAR"),
    (0xc000_0082, "LSTAR"),
    (0xc000_0083, "CSTAR"),
    (0xc000_0084, "FMASK"),
    (0xc000_0100, "FS_BASE"),
    (0xc000_0101, "GS_BASE"),
    (0xc000_0102, "KERNEL_GS_BASE"),
    (0xc000_0103, "TSC_AUX"),
    (0x4b56_4d00, "KVM_WALL_CLOCK"),
    (0x4b56_4d01, "KVM_SYSTEM_TIME"),
];

/// The name of an MSR.
#[must_use]
pub fn msr_name(number: u32) -> Option<&'static str> {
    match number {
        // The x2APIC registers: SDM volume 3A, table 11-6.
        0x800..=0x8ff => Some("X2APIC"),
        _ => MSRS.iter().find(|(msr, _)| *msr == number).map(|(_, name)| *name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_code_of_a_jump_to_null_in_the_kernel_reads_as_one() {
        assert_eq!(page_fault_sentence(0x10), "instruction fetch in kernel mode of a page that is not present");
        assert_eq!(page_fault_sentence(0x7), "write in user mode of a present page that forbids it");
        assert_eq!(describe_bits(0x7, PAGE_FAULT), "P W U");
    }

    #[test]
    fn register_bits_are_named_and_unknown_ones_are_kept() {
        assert_eq!(describe_bits(0x8005_0033, CR0), "PE MP ET NE WP AM PG");
        assert_eq!(describe_bits(0x246, RFLAGS), "PF ZF IF");
        assert_eq!(describe_bits(0xd01 | 1 << 40, EFER), "SCE LME LMA NXE 0x10000000000");
    }

    #[test]
    fn exceptions_are_found_by_any_spelling() {
        for name in ["PAGE_FAULT", "page fault", "#PF"] {
            assert_eq!(vector_of(name), Some(14), "{name}");
        }
        assert_eq!(vector_of("INVALID_OPCODE"), Some(6));
        assert_eq!(vector_of("nonsense"), None);
        assert_eq!(msr_name(0xc000_0082), Some("LSTAR"));
        assert_eq!(msr_name(0x80b), Some("X2APIC"));
    }
}

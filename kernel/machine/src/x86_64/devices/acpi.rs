//! The few ACPI facts a kernel needs: processors, interrupt controllers, the timer port, the way to switch off.
//!
//! Tables are read through bounds-checked copies; a table that is short, or missing, leaves its facts at their
//! defaults.

use crate::processor::MAX_CPUS;
use crate::x86_64::memory::paging;

/// What was found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    pub madt: Madt,
    /// I/O port of the 3.579545 MHz timer; 0 if none.
    pub timer_port: u16,
    /// Where S5 is written.
    pub sleep: Sleep,
    /// Registers of the high precision event timer; 0 if none.
    pub hpet: u64,
    /// A PCI Express configuration area: q35 and newer.
    pub has_mcfg: bool,
    /// No fixed ACPI hardware: microvm.
    pub hardware_reduced: bool,
}

/// How to switch off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sleep {
    Unknown,
    /// PM1a control port, and the sleep type.
    Port(u16, u8),
    /// Address of the sleep control register, and the sleep type.
    Register(u64, u8),
}

/// The multiple APIC description table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Madt {
    pub cpus: [u32; MAX_CPUS],
    pub cpu_count: usize,
    pub io_apic: u64,
    pub io_apic_first: u32,
    /// Which controller input each of the old lines is wired to.
    pub lines: [u32; 16],
}

impl Facts {
    const NONE: Self = Self {
        madt: Madt {
            cpus: [0; MAX_CPUS],
            cpu_count: 0,
            io_apic: 0,
            io_apic_first: 0,
            lines: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
        },
        timer_port: 0,
        sleep: Sleep::Unknown,
        hpet: 0,
        has_mcfg: false,
        hardware_reduced: false,
    };
}

/// A table in memory, read with bounds.
#[derive(Clone, Copy)]
struct Bytes(&'static [u8]);

impl Bytes {
    /// The table at a physical address, header included.
    fn table(at: u64) -> Option<Self> {
        let head = Self::raw(at, 36)?;
        Self::raw(at, u64::from(head.u32(4)).clamp(36, 1 << 20))
    }

    fn raw(at: u64, len: u64) -> Option<Self> {
        if at == 0 || at.checked_add(len)? > 1 << 32 {
            return None;
        }
        let shown = paging::map_firmware(at, len);
        // SAFETY: mapped just now; firmware tables do not change, and below 4 GiB every address reads as something.
        Some(Self(unsafe { core::slice::from_raw_parts(shown, len as usize) }))
    }

    fn array<const N: usize>(&self, at: usize) -> [u8; N] {
        self.0.get(at..at + N).and_then(|b| b.try_into().ok()).unwrap_or([0; N])
    }

    fn u8(&self, at: usize) -> u8 {
        self.array::<1>(at)[0]
    }

    fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.array(at))
    }

    fn u64(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.array(at))
    }
}

/// Read everything, beginning at the root pointer the loader gave (0: search for it).
pub(crate) fn read(rsdp: u64) -> Facts {
    let mut facts = Facts::NONE;
    let Some(root) = root_pointer(rsdp) else { return facts };
    let (directory, entry_size) = match root.u8(15) {
        0 => (u64::from(root.u32(16)), 4),
        _ => (root.u64(24), 8),
    };
    let Some(directory) = Bytes::table(directory) else { return facts };
    for entry in directory.0[36..].chunks_exact(entry_size) {
        let at = entry.iter().rev().fold(0, |at, byte| at << 8 | u64::from(*byte));
        let Some(table) = Bytes::table(at) else { continue };
        match &table.array::<4>(0) {
            b"APIC" => read_madt(table, &mut facts.madt),
            b"FACP" => read_fadt(table, &mut facts),
            b"MCFG" => facts.has_mcfg = true,
            b"HPET" => facts.hpet = table.u64(44),
            _ => {}
        }
    }
    facts
}

fn root_pointer(given: u64) -> Option<Bytes> {
    let signed = |at: u64| Bytes::raw(at, 36).filter(|b| b.array(0) == *b"RSD PTR ");
    signed(given).or_else(|| (0xe_0000..0xf_ffe0).step_by(16).find_map(signed))
}

fn read_madt(table: Bytes, madt: &mut Madt) {
    const PROCESSOR: u8 = 0;
    const IO_APIC: u8 = 1;
    const OVERRIDE: u8 = 2;
    const X2APIC: u8 = 9;
    let mut at = 44;
    while at + 2 <= table.0.len() {
        let len = usize::from(table.u8(at + 1)).max(2);
        match table.u8(at) {
            PROCESSOR if table.u32(at + 4) & 1 == 1 => madt.add(u32::from(table.u8(at + 3))),
            X2APIC if table.u32(at + 8) & 1 == 1 => madt.add(table.u32(at + 4)),
            IO_APIC if madt.io_apic == 0 => {
                madt.io_apic = u64::from(table.u32(at + 4));
                madt.io_apic_first = table.u32(at + 8);
            }
            OVERRIDE => {
                if let Some(line) = madt.lines.get_mut(usize::from(table.u8(at + 3))) {
                    *line = table.u32(at + 4);
                }
            }
            _ => {}
        }
        at += len;
    }
}

impl Madt {
    fn add(&mut self, apic_id: u32) {
        if let Some(slot) = self.cpus.get_mut(self.cpu_count) {
            *slot = apic_id;
            self.cpu_count += 1;
        }
    }
}

fn read_fadt(table: Bytes, facts: &mut Facts) {
    const HARDWARE_REDUCED: u32 = 1 << 20;
    facts.hardware_reduced = table.u32(112) & HARDWARE_REDUCED != 0;
    if !facts.hardware_reduced {
        facts.timer_port = table.u32(76) as u16;
    }
    let dsdt = if table.u64(140) != 0 { table.u64(140) } else { u64::from(table.u32(40)) };
    let sleep_type = Bytes::table(dsdt).and_then(|dsdt| s5_type(dsdt.0)).unwrap_or(0);
    let control = table.u32(64) as u16;
    facts.sleep = match (facts.hardware_reduced, table.u64(244 + 4), control) {
        (true, 0, _) | (false, _, 0) => Sleep::Unknown,
        (true, register, _) => Sleep::Register(register, sleep_type),
        (false, _, port) => Sleep::Port(port, sleep_type),
    };
}

/// The first element of the `\_S5` package: name, package opcode, length byte(s), count, then an integer.
fn s5_type(code: &[u8]) -> Option<u8> {
    const PACKAGE: u8 = 0x12;
    const BYTE_PREFIX: u8 = 0x0a;
    let at = code.windows(5).position(|w| w == [b'_', b'S', b'5', b'_', PACKAGE])? + 5;
    let length_bytes = 1 + usize::from(*code.get(at)? >> 6);
    let element = code.get(at + length_bytes + 1..)?;
    match element {
        [BYTE_PREFIX, value, ..] => Some(*value),
        [value, ..] => Some(*value),
        [] => None,
    }
}

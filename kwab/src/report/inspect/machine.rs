//! The machine at the death: registers, captured bytes, the memory map around the fault.

use std::collections::{BTreeMap, BTreeSet};

use kwab_format::record::{CrashReport, Memory, MemoryKind, Reg, RegId, RegisterRole, Registers, Vma};
use linux_abi::Errno;

use super::{MemoryExcerpt, RegisterRow, RegisterSet, VmaRow, address, text};
use crate::model::{Death, Dump};

/// Bytes of an excerpt that are shown.
const EXCERPT: usize = 256;
/// Registers of one set; no processor has more.
const MOST_REGISTERS: usize = 256;
/// Mappings of which the nearest are chosen: as many as Linux allows a process by default (vm.max_map_count).
const MOST_MAPPINGS: usize = 65_530;

/// Register sets: those of the dump, or the crash report's.
pub(super) fn registers(dump: &Dump, death: &Option<Death>, vmas: &[VmaRow]) -> Vec<RegisterSet> {
    let processors: BTreeSet<u32> = dump.records::<Registers<'_>>().filter_map(|set| set.stamp.cpu).collect();
    let mut sets: Vec<RegisterSet> = dump
        .records::<Registers<'_>>()
        .take(16)
        .map(|set| {
            let cpu = set.stamp.cpu.filter(|_| processors.len() > 1);
            let cpu = cpu.map_or(String::new(), |cpu| format!(", CPU {cpu}"));
            let role = match set.role {
                Some(RegisterRole::FAULT) if death.as_ref().is_some_and(|death| !death.is_fault()) => {
                    "where it stopped"
                }
                role => role.and_then(RegisterRole::name).unwrap_or("registers"),
            };
            let who = set.pid.map_or(String::new(), |pid| format!(", pid {pid}"));
            let code = set.error_code.map_or(String::new(), |code| format!(", error code {code:#x}"));
            let regs = set.regs.iter().flat_map(kwab_format::List::iter);
            RegisterSet { title: format!("{role}{cpu}{who}{code}"), registers: rows(regs, death, vmas) }
        })
        .collect();
    if sets.is_empty()
        && let Some(report) = dump.records::<CrashReport<'_>>().next()
        && let Some(regs) = report.regs
    {
        let title = format!("at the fault, pid {}", report.pid.unwrap_or(0));
        sets.push(RegisterSet { title, registers: rows(regs.iter(), death, vmas) });
    }
    sets
}

fn rows<'a>(regs: impl Iterator<Item = Reg<'a>>, death: &Option<Death>, vmas: &[VmaRow]) -> Vec<RegisterRow> {
    let regs: Vec<Reg<'a>> = regs.take(MOST_REGISTERS).collect();
    // Linux fills rax with -ENOSYS while a system call runs: that is not an error.
    let in_call = regs.iter().any(|reg| reg.id == Some(RegId::ORIG_RAX));
    let mut rows: Vec<(usize, RegisterRow)> = regs
        .into_iter()
        .map(|reg| {
            let name = match (reg.id.and_then(RegId::name), reg.name) {
                (Some(name), _) => name.to_string(),
                (None, Some(name)) => text(name).to_lowercase(),
                (None, None) => "?".to_string(),
            };
            let value = reg.value.unwrap_or(0);
            let note = if in_call && name == "rax" { None } else { note(&name, value, death, vmas) };
            (order_of(&name), RegisterRow { name, value: format!("{value:016x}"), note })
        })
        .collect();
    rows.sort_by_key(|(order, _)| *order);
    rows.into_iter().map(|(_, row)| row).collect()
}

/// The order in which people look for registers.
fn order_of(name: &str) -> usize {
    const ORDER: &[&str] = &[
        "rip", "rsp", "rbp", "rflags", "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12",
        "r13", "r14", "r15", "orig_rax", "cs", "ss", "ds", "es", "fs", "gs", "fs_base", "gs_base", "cr0", "cr2", "cr3",
        "cr4",
    ];
    ORDER.iter().position(|known| *known == name).unwrap_or(ORDER.len())
}

/// What a value is, when something is known about it.
fn note(name: &str, value: u64, death: &Option<Death>, vmas: &[VmaRow]) -> Option<String> {
    if name == "rflags" {
        return Some(flags(value));
    }
    // Numbers that are not addresses of the process: control bits, a physical address, the number of a system call.
    if matches!(name, "cr0" | "cr3" | "cr4" | "efer" | "orig_rax") {
        return None;
    }
    if matches!(name, "cs" | "ss" | "ds" | "es" | "fs" | "gs") {
        return (name == "cs").then(|| format!("ring {}", value & 3));
    }
    let death = death.as_ref()?;
    if name == "rip" && Some(value) == death.ip {
        return death.location.as_deref().map(text).filter(|_| value != 0);
    }
    if value != 0 && Some(value) == death.fault_addr {
        return Some("the faulting address".to_string());
    }
    if let Some(errno) = Errno::from_result(value as i64).filter(|_| name == "rax") {
        return Some(format!("-{} {errno:?}", errno.number()));
    }
    let within = vmas.iter().find(|vma| {
        let number = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap_or(0);
        (number(&vma.start)..number(&vma.end)).contains(&value)
    });
    within.map(|vma| format!("in {} {}", vma.prot, vma.name))
}

/// The flags that matter, as names (Intel SDM volume 1, "EFLAGS Register").
fn flags(value: u64) -> String {
    const BITS: &[(u32, &str)] = &[
        (0, "CF"),
        (2, "PF"),
        (4, "AF"),
        (6, "ZF"),
        (7, "SF"),
        (8, "TF"),
        (9, "IF"),
        (10, "DF"),
        (11, "OF"),
        (14, "NT"),
        (16, "RF"),
        (17, "VM"),
        (18, "AC"),
    ];
    let set: Vec<_> = BITS.iter().filter(|(bit, _)| value >> bit & 1 == 1).map(|(_, name)| *name).collect();
    if set.is_empty() { "no flags; interrupts off".to_string() } else { set.join(" ") }
}

/// Excerpts of the captured bytes, at most 256 bytes of each.
pub(super) fn memory(dump: &Dump) -> Vec<MemoryExcerpt> {
    let excerpts = dump.records::<Memory<'_>>().take(32).map(|memory| {
        let bytes = memory.bytes.unwrap_or_default();
        let kind = memory.kind.and_then(MemoryKind::name).unwrap_or("memory");
        let label = memory.label.map_or_else(|| kind.to_string(), |label| format!("{kind}: {}", text(label)));
        MemoryExcerpt {
            label,
            addr: memory.vaddr.map(address),
            bytes: bytes.iter().take(EXCERPT).map(|byte| format!("{byte:02x}")).collect(),
            marked: memory.marked,
            length: bytes.len() as u64,
        }
    });
    excerpts.collect()
}

/// The memory map around the fault: the dump's, or the crash report's.
pub(super) fn vmas(dump: &Dump, death: &Option<Death>, most: usize) -> Vec<VmaRow> {
    let pid = death.as_ref().and_then(|death| death.pid);
    let fault = death.as_ref().and_then(|death| death.fault_addr);
    let ip = death.as_ref().and_then(|death| death.ip);
    let row = |start: u64, end: u64, prot: Option<u64>, name: String| VmaRow {
        start: address(start),
        end: address(end),
        prot: prot.map_or_else(|| "???".to_string(), protection),
        name,
        fault: fault.is_some_and(|fault| (start..end).contains(&fault)),
        ip: ip.is_some_and(|ip| (start..end).contains(&ip)),
    };
    let of_process = || {
        dump.records::<Vma<'_>>().filter(|vma| vma.pid.is_none() || pid.is_none() || vma.pid == pid).take(MOST_MAPPINGS)
    };
    let rows = nearest(
        of_process,
        |vma| vma.start.unwrap_or(0),
        fault.or(ip),
        most,
        |vma| {
            let name = vma_name(vma.path, vma.name, vma.file_offset);
            row(vma.start.unwrap_or(0), vma.end.unwrap_or(0), vma.prot.map(u64::from), name)
        },
    );
    if !rows.is_empty() {
        return rows;
    }
    let report = dump.records::<CrashReport<'_>>().next();
    let reported =
        || report.iter().flat_map(|report| &report.vmas).flat_map(kwab_format::List::iter).take(MOST_MAPPINGS);
    nearest(
        reported,
        |vma| vma.start.unwrap_or(0),
        fault.or(ip),
        most,
        |vma| {
            let name = vma_name(vma.file, vma.kind, vma.file_offset);
            row(vma.start.unwrap_or(0), vma.end.unwrap_or(0), vma.prot, name)
        },
    )
}

/// Rows of the `most` mappings whose starts are around `address`, by start. Two walks over the mappings, so that only
/// the chosen ones become rows.
fn nearest<T, I: Iterator<Item = T>>(
    mappings: impl Fn() -> I,
    start: impl Fn(&T) -> u64,
    address: Option<u64>,
    most: usize,
    row: impl Fn(T) -> VmaRow,
) -> Vec<VmaRow> {
    let mut starts: Vec<(u64, usize)> =
        mappings().zip(0..).map(|(mapping, number)| (start(&mapping), number)).collect();
    starts.sort_unstable();
    let at = starts.partition_point(|(start, _)| address.is_some_and(|address| *start <= address));
    let first = if starts.len() <= most { 0 } else { at.saturating_sub(most / 2).min(starts.len() - most) };
    let chosen: BTreeMap<usize, usize> =
        starts.iter().skip(first).take(most).enumerate().map(|(place, (_, number))| (*number, place)).collect();
    let mut rows: Vec<(usize, VmaRow)> =
        mappings().enumerate().filter_map(|(number, mapping)| Some((*chosen.get(&number)?, row(mapping)))).collect();
    rows.sort_unstable_by_key(|(place, _)| *place);
    rows.into_iter().map(|(_, row)| row).collect()
}

fn vma_name(path: Option<&[u8]>, kind: Option<&[u8]>, offset: Option<u64>) -> String {
    match (path.filter(|path| !path.is_empty()), kind) {
        (Some(path), _) => format!("{} +{:#x}", text(path), offset.unwrap_or(0)),
        (None, Some(kind)) => text(kind),
        (None, None) => "[anon]".to_string(),
    }
}

/// Bit 0 read, bit 1 write, bit 2 execute, as in `mmap`.
fn protection(prot: u64) -> String {
    [(1, 'r'), (2, 'w'), (4, 'x')].iter().map(|(bit, letter)| if prot & bit != 0 { *letter } else { '-' }).collect()
}

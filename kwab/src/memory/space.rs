//! Chooses the address space that a question is about: by process, by processor, or by the value of CR3.

use kwab_format::record::{RegId, RegisterRole, Registers};

use super::walk::Tables;
use crate::model::Case;

/// An address space of a dump.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Space {
    /// The process that it belongs to, when the dump says which.
    pub pid: Option<u32>,
    /// Its page tables, when their root is known.
    pub tables: Option<Tables>,
    /// Where it was taken from, in words.
    pub name: String,
}

/// Which address space is asked for; empty means that of the death.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wanted {
    /// That of a process.
    pub pid: Option<u32>,
    /// The one that a processor had loaded.
    pub cpu: Option<u32>,
    /// The one with its root here.
    pub cr3: Option<u64>,
}

/// Why there is no such address space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SpaceError {
    /// No record of the dump names the process.
    #[error("the dump holds neither page tables nor memory of process {0}")]
    Process(u32),
    /// No record of the dump names the processor's page tables.
    #[error("the dump does not say which page tables CPU {0} had loaded")]
    Processor(u32),
}

/// A root that a record of the dump names.
#[derive(Debug, Clone, Copy)]
struct Root {
    tables: Tables,
    pid: Option<u32>,
    cpu: Option<u32>,
    of_death: bool,
}

impl Wanted {
    /// Finds it in the records of a dump.
    ///
    /// # Errors
    /// [`SpaceError`] when the dump knows no such process or processor.
    pub fn find(self, case: &Case<'_>) -> Result<Space, SpaceError> {
        let roots = roots(case);
        let space = |root: &Root| Space { pid: root.pid, tables: Some(root.tables), name: named(root) };
        if let Some(cr3) = self.cr3 {
            let tables = Tables::of(cr3, cr4(case.registers.iter().map(|set| set.record)));
            let known = roots.iter().find(|root| root.tables == tables);
            let pid = self.pid.or_else(|| known.and_then(|root| root.pid));
            return Ok(Space { pid, tables: Some(tables), name: format!("CR3 {cr3:#x}") });
        }
        if let Some(cpu) = self.cpu {
            return roots.iter().find(|root| root.cpu == Some(cpu)).map(space).ok_or(SpaceError::Processor(cpu));
        }
        if let Some(pid) = self.pid {
            if let Some(root) = roots.iter().find(|root| root.pid == Some(pid)) {
                return Ok(space(root));
            }
            let recorded = case.ptes.iter().any(|pte| pte.pid == Some(pid))
                || case.vmas.iter().any(|vma| vma.pid == Some(pid))
                || case.memory.iter().any(|memory| memory.pid == Some(pid));
            let name = format!("process {pid}");
            return if recorded {
                Ok(Space { pid: Some(pid), tables: None, name })
            } else {
                Err(SpaceError::Process(pid))
            };
        }
        let chosen = roots.iter().find(|root| root.of_death).or(roots.first());
        let pid = case.causes.first().and_then(|cause| cause.pid);
        Ok(chosen.map(space).unwrap_or_else(|| Space { pid, tables: None, name: "the records of the dump".to_owned() }))
    }
}

/// All page tables whose root the dump names, that of the death first, each once.
#[must_use]
pub fn spaces(case: &Case<'_>) -> Vec<Space> {
    let mut roots = roots(case);
    roots.sort_by_key(|root| !root.of_death);
    let mut seen = std::collections::HashSet::new();
    roots.retain(|root| seen.insert(root.tables));
    roots.iter().map(|root| Space { pid: root.pid, tables: Some(root.tables), name: named(root) }).collect()
}

fn named(root: &Root) -> String {
    let owner = match (root.cpu, root.pid) {
        (Some(cpu), _) => format!("CPU {cpu}, "),
        (None, Some(pid)) => format!("process {pid}, "),
        (None, None) => String::new(),
    };
    format!("{owner}CR3 {:#x}", root.tables.root)
}

fn register(set: &Registers<'_>, id: RegId) -> Option<u64> {
    set.regs.as_ref()?.iter().find(|reg| reg.id == Some(id))?.value
}

/// CR4 as the first processor that has it; its paging mode is that of all.
fn cr4<'a>(mut sets: impl Iterator<Item = Registers<'a>>) -> u64 {
    sets.find_map(|set| register(&set, RegId::CR4)).unwrap_or(0)
}

/// Page-table levels of x86-64 by CR4 in the register sets of a dump: 5 with LA57, else 4.
#[must_use]
pub fn levels<'a>(sets: impl Iterator<Item = Registers<'a>>) -> u8 {
    Tables::of(0, cr4(sets)).levels
}

fn roots(case: &Case<'_>) -> Vec<Root> {
    let cr4 = cr4(case.registers.iter().map(|set| set.record));
    let mut roots: Vec<Root> = Vec::new();
    for set in &case.registers {
        let Some(cr3) = register(set, RegId::CR3) else { continue };
        let of_death = set.role == Some(RegisterRole::FAULT);
        roots.push(Root { tables: Tables::of(cr3, cr4), pid: set.pid, cpu: set.stamp.cpu, of_death });
    }
    for cpu in &case.cpus {
        let Some(root) = cpu.page_table_root else { continue };
        roots.push(Root { tables: Tables::of(root, cr4), pid: cpu.pid, cpu: cpu.number, of_death: false });
    }
    let mut last = None;
    for pte in &case.ptes {
        if let Some(root) = pte.root.filter(|root| last != Some((*root, pte.pid))) {
            roots.push(Root { tables: Tables::of(root, cr4), pid: pte.pid, cpu: None, of_death: false });
            last = Some((root, pte.pid));
        }
    }
    roots
}

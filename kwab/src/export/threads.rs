//! Decides which threads a core file or minidump shows, with which registers and names: the dead one first.
//!
//! Of a kernel they are the processors and every task: with the registers that were saved for it, or with the place
//! where it left its processor. Of a program they are the threads of the process. Every thread has a number of its own.

use std::collections::{BTreeMap, BTreeSet};

use kwab_format::List;
use kwab_format::record::{CpuState, Reg, RegId, RegisterRole, Registers, Task};

use crate::analysis::Postmortem;
use crate::model::{Case, Located};

/// A thread of a core file.
#[derive(Debug)]
pub(super) struct CoreThread<'a> {
    /// Its number in the system, as gdb shows it.
    pub id: u32,
    /// Its name; empty where the dump has none.
    pub name: &'a [u8],
    values: ThreadRegisters<'a>,
    /// Floating-point and vector state as the processor saves it.
    pub extended: &'a [u8],
}

/// Registers of a thread. Those of tens of thousands of threads are read where they lie.
#[derive(Debug)]
enum ThreadRegisters<'a> {
    Known(Vec<(RegId, u64)>),
    Recorded(Option<List<'a, Reg<'a>>>),
}

impl ThreadRegisters<'_> {
    fn iter(&self) -> impl Iterator<Item = (RegId, u64)> {
        let (known, recorded) = match self {
            Self::Known(values) => (values.as_slice(), None),
            Self::Recorded(values) => (&[][..], values.as_ref()),
        };
        let recorded = recorded.into_iter().flat_map(List::iter);
        known.iter().copied().chain(recorded.filter_map(|reg| Some((reg.id?, reg.value?))))
    }
}

impl CoreThread<'_> {
    /// A register; 0 where it is not known.
    pub(super) fn value(&self, id: RegId) -> u64 {
        self.values.iter().find(|(known, _)| *known == id).map_or(0, |(_, value)| value)
    }

    /// Registers with their values.
    pub(super) fn values(&self) -> Vec<(RegId, u64)> {
        self.values.iter().collect()
    }
}

/// Thread numbers for processors whose thread has none of its own.
const CPU_THREADS: u32 = 1_000_000;
/// Likewise, where there are several for a processor.
const NAMELESS_THREADS: u32 = 2_000_000;
/// Threads that are shown; a debugger asks for each.
const MOST_THREADS: usize = 1 << 16;

/// The threads, the dead one first.
pub(super) fn threads<'a>(case: &Case<'a>, death: &Postmortem) -> Vec<CoreThread<'a>> {
    let mut tasks: BTreeMap<u32, &Located<Task<'a>>> = BTreeMap::new();
    for task in &case.tasks {
        if let Some(tid) = task.tid.or(task.pid).filter(|tid| *tid != 0) {
            tasks.entry(tid).or_insert(task);
        }
    }
    let mut found = Found { threads: Vec::new(), taken: BTreeSet::new(), tasks };
    let of_death = case.registers.iter().find(|set| Some(set.at) == death.registers_at);
    if !death.registers.is_empty() {
        let cpu = CPU_THREADS.saturating_add(dead_cpu(case, death));
        let id = of_death.and_then(|set| set.tid).or(death.tid).or(death.pid);
        let extended = of_death.and_then(|set| set.extended).unwrap_or_default();
        let values = ThreadRegisters::Known(death.registers.clone());
        found.add(id.filter(|id| *id != 0).unwrap_or(cpu), values, extended);
    }
    let others = case.registers.iter().filter(|set| Some(set.at) != death.registers_at && is_thread(set, death));
    for set in others {
        let values = ThreadRegisters::Recorded(set.regs);
        let known = |id: RegId| values.iter().any(|(other, _)| other == id);
        let x86 = known(RegId::RIP) && known(RegId::RSP);
        if !(x86 || known(ARM64_PC) && known(ARM64_SP)) {
            continue;
        }
        let own = set.tid.or(set.pid).filter(|id| *id != 0 && !found.taken.contains(id));
        let number = found.threads.len() as u32;
        let by_cpu = CPU_THREADS.saturating_add(set.stamp.cpu.unwrap_or(number));
        let free = if found.taken.contains(&by_cpu) { NAMELESS_THREADS.saturating_add(number) } else { by_cpu };
        found.add(own.unwrap_or(free), values, set.extended.unwrap_or_default());
    }
    // A program's dump has the places of other processes' tasks too, which are not in its address space.
    if death.in_kernel && !found.threads.is_empty() {
        let left: Vec<_> = found.tasks.values().filter_map(|task| place(task)).collect();
        for (id, values) in left {
            found.add(id, ThreadRegisters::Known(values), &[]);
        }
    }
    found.threads
}

/// DWARF numbers of AArch64.
pub(super) const ARM64_SP: RegId = RegId(31);
/// Likewise, of the program counter.
pub(super) const ARM64_PC: RegId = RegId(32);

/// Threads as they are found.
struct Found<'c, 'a> {
    threads: Vec<CoreThread<'a>>,
    taken: BTreeSet<u32>,
    tasks: BTreeMap<u32, &'c Located<Task<'a>>>,
}

impl<'a> Found<'_, 'a> {
    /// Adds a thread, unless its number is taken.
    fn add(&mut self, id: u32, values: ThreadRegisters<'a>, extended: &'a [u8]) {
        if self.threads.len() < MOST_THREADS && self.taken.insert(id) {
            let name = self.tasks.get(&id).and_then(|task| task.comm).unwrap_or_default();
            self.threads.push(CoreThread { id, name, values, extended });
        }
    }
}

/// Where a task left its processor in the kernel.
fn place(task: &Task<'_>) -> Option<(u32, Vec<(RegId, u64)>)> {
    let (ip, sp) = (task.kernel_ip.filter(|ip| *ip != 0)?, task.kernel_sp?);
    Some((task.tid.or(task.pid)?, vec![(RegId::RIP, ip), (RegId::RSP, sp)]))
}

/// Whether a set of registers is a thread of the address space that the core file shows.
fn is_thread(set: &Located<Registers<'_>>, death: &Postmortem) -> bool {
    let kernel_role =
        matches!(set.role, Some(RegisterRole::STOPPED | RegisterRole::SWITCHED_OUT | RegisterRole::FAULT));
    if death.in_kernel {
        return kernel_role;
    }
    // What was imported from a core file has the other threads as their kernel saved them: in their own code.
    let mut regs = set.regs.iter().flat_map(List::iter);
    let ip = regs.find(|reg| matches!(reg.id, Some(RegId::RIP | ARM64_PC))).and_then(|reg| reg.value);
    let in_program = ip.is_some_and(|ip| ip >> 63 == 0);
    set.pid == death.pid && (set.role == Some(RegisterRole::USER) || kernel_role && in_program)
}

fn dead_cpu(case: &Case<'_>, death: &Postmortem) -> u32 {
    let by_record = case.registers.iter().find(|set| Some(set.at) == death.registers_at).and_then(|set| set.stamp.cpu);
    let dumping = case.cpus.iter().find(|cpu| cpu.state == Some(CpuState::DUMPING)).and_then(|cpu| cpu.number);
    by_record.or(dumping).unwrap_or(0)
}

//! Chooses the registers from which the stack of a thread is walked.
//!
//! A thread's own set is taken first, then where its task record says that the kernel will go on with it, as captures
//! of Linux have it. Thread 0 is the idle thread of every processor: sets of those that idled carry no thread, and
//! when there are several the processor decides.

use kwab_format::record::{CpuState, RegId, Registers as RegistersRecord, TaskState};

use super::error::PrintError;
use crate::model::Case;
use crate::symbols::Registers;

/// The thread that every processor has one of.
const IDLE: u32 = 0;

/// Registers, and the process when they are those of user mode.
pub(super) type Start = (Registers, Option<u32>);

/// Where the walk of a thread's stack begins. `cpu` chooses among idle threads, and only among those.
pub(super) fn of_thread(case: &Case<'_>, tid: u32, cpu: Option<u32>) -> Result<Start, PrintError> {
    if tid == IDLE {
        return of_idle(case, cpu);
    }
    let sets = case.registers.iter().filter(|set| set.tid.or(set.pid) == Some(tid));
    let set = sets.filter_map(|set| of_set(set)).find(|set| set.ip().is_some());
    let set = set.or_else(|| switched_out(case, tid).next().map(|(_, set)| set)).ok_or(PrintError::NoThread(tid))?;
    let user = set.ip().is_some_and(|ip| ip >> 63 == 0);
    Ok((set, Some(tid).filter(|_| user)))
}

fn of_idle(case: &Case<'_>, cpu: Option<u32>) -> Result<Start, PrintError> {
    let mut found: Vec<(Option<u32>, Registers)> = Vec::new();
    let on_processors = case.registers.iter().filter_map(|set| {
        let (tid, on) = (set.tid.or(set.pid), set.stamp.cpu);
        let idle = tid == Some(IDLE) || tid.is_none() && on.is_some_and(|on| idles(case, on));
        let registers = of_set(set).filter(|registers| registers.ip().is_some_and(|ip| ip >> 63 == 1))?;
        idle.then_some((on, registers))
    });
    for (on, registers) in on_processors.chain(switched_out(case, IDLE)) {
        if on.is_none() || found.iter().all(|(other, _)| *other != on) {
            found.push((on, registers));
        }
    }
    let mut known: Vec<u32> = found.iter().filter_map(|(on, _)| *on).collect();
    known.sort_unstable();
    let listed = known.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    match (cpu, found.as_slice()) {
        (_, []) => Err(PrintError::NoIdle),
        (None, [(_, only)]) => Ok((*only, None)),
        (None, _) => Err(PrintError::SeveralIdle(listed)),
        (Some(cpu), _) => match found.iter().find(|(on, _)| *on == Some(cpu)) {
            Some((_, registers)) => Ok((*registers, None)),
            None => Err(PrintError::NotIdle { cpu, listed }),
        },
    }
}

/// Whether a processor ran its idle thread.
fn idles(case: &Case<'_>, cpu: u32) -> bool {
    let halted = case.cpus.iter().any(|one| one.number == Some(cpu) && one.state == Some(CpuState::IDLE));
    let is_idle = |state| state == TaskState::RUNNING || state == TaskState::IDLE;
    let runs = case.tasks.iter().filter(|task| task.tid.or(task.pid) == Some(IDLE) && task.last_cpu == Some(cpu));
    halted || runs.filter(|task| task.kernel_ip.is_none()).any(|task| task.state.is_some_and(is_idle))
}

/// The processor and the registers of each task of this number that does not run.
fn switched_out(case: &Case<'_>, tid: u32) -> impl Iterator<Item = (Option<u32>, Registers)> {
    let tasks = case.tasks.iter().filter(move |task| task.tid.or(task.pid) == Some(tid));
    tasks.filter_map(|task| {
        let mut registers = Registers::default();
        registers.set(RegId::RIP.0, Some(task.kernel_ip.filter(|ip| *ip != 0)?));
        registers.set(RegId::RSP.0, Some(task.kernel_sp?));
        Some((task.last_cpu, registers))
    })
}

fn of_set(set: &RegistersRecord<'_>) -> Option<Registers> {
    let mut registers = Registers::default();
    for reg in set.regs.as_ref()?.iter() {
        registers.set(reg.id?.0, reg.value);
    }
    Some(registers)
}

//! Says where everything stood: the stack of every processor and task in the dump, equal ones together.
//!
//! Stacks are walked from saved registers through whatever stack bytes the dump holds; a task without registers keeps
//! the frames that its kernel printed. Two stacks are equal when they hold the same addresses, and for programs the
//! same names.

use std::collections::{BTreeMap, BTreeSet};

use kwab_format::record::{Frame, RegId, RegisterRole, Registers, Task};

use super::context::{View, named_frames, printed_frame, walked};
use super::death::Postmortem;
use super::frame::TraceFrame;
use super::quote::text;
use super::threads::{self, Tasks, ThreadKey};
use crate::model::{Case, Located, RecordRef};
use crate::symbols::{Probe, Symbols};
use crate::unwind::{self, Stopped, Trust};

/// A stack, and everybody who stood there.
#[derive(Clone, Debug)]
pub struct Stack {
    /// Whose it is: `CPU 1`, `task sh[7], sleeping`, `user code of sh[7]`.
    pub owners: Vec<String>,
    /// Whether it is user code.
    pub user: bool,
    /// Its frames, innermost first.
    pub frames: Vec<TraceFrame>,
    /// Why it ends where it does; `None` for one that the kernel printed.
    pub stopped: Option<Stopped>,
    /// The registers or the first frame it comes from.
    pub at: Option<RecordRef>,
}

/// Stacks that are walked: more tasks than that are a list, not a picture.
const MOST: usize = 4096;
/// Frames of all of them together.
const MOST_FRAMES: usize = 1 << 15;
/// Frames of one of them.
const MAX_FRAMES: usize = 64;

/// All stacks of the dump but that of the death itself, in the order of the dump.
#[must_use]
pub fn all(case: &Case<'_>, symbols: &Symbols, death: &Postmortem) -> Vec<Stack> {
    let others = case.registers.iter().filter(|set| Some(set.at) != death.registers_at);
    let sets = others.filter(|set| set.role != Some(RegisterRole::DUMPER)).take(MOST);
    let tasks = Tasks::of(case);
    let mut saved: Vec<(Stack, Option<u32>)> = Vec::new();
    let mut frames = 0;
    for set in sets {
        let Some(stack) = of_registers(case, symbols, death, set, &tasks) else { continue };
        frames += stack.frames.len();
        if frames > MOST_FRAMES {
            break;
        }
        saved.push((stack, set.stamp.cpu));
    }
    // What was walked says how far it can be trusted; what was printed does not, but may know more of the way.
    let mut told: BTreeMap<ThreadKey, usize> = BTreeMap::new();
    let of_tasks = case.frames.iter().filter(|frame| frame.at.kind == kwab_format::SectionKind::TASKS);
    of_tasks.filter_map(|frame| thread_of(case, frame)).for_each(|thread| *told.entry(thread).or_default() += 1);
    let is_whole = |stack: &Stack, thread| told.get(&thread).is_none_or(|printed| stack.frames.len() >= *printed);
    let walked: BTreeSet<ThreadKey> = saved
        .iter()
        .filter(|(stack, _)| !stack.user)
        .flat_map(|(stack, cpu)| {
            let threads = stack.owners.iter().filter_map(|owner| Some(ThreadKey::on(named_tid(owner)?, *cpu)));
            threads.filter(|thread| is_whole(stack, *thread)).collect::<Vec<_>>()
        })
        .collect();
    let mut saved: Vec<Stack> = saved.into_iter().map(|(stack, _)| stack).collect();
    let printed = printed(case, symbols, &tasks, |thread| walked.contains(&thread));
    let printed = once(&mut saved, printed);
    grouped(saved.into_iter().chain(printed))
}

/// Puts what was printed of a thread into the stack of the processor that was found at the same instruction, where it
/// says more of the way; gives the other stacks.
fn once(saved: &mut [Stack], printed: Vec<Stack>) -> Vec<Stack> {
    let mut begun: BTreeMap<u64, usize> = BTreeMap::new();
    for (number, stack) in saved.iter().enumerate().filter(|(_, stack)| !stack.user) {
        begun.entry(stack.frames.first().map_or(0, |frame| frame.ip)).or_insert(number);
    }
    let mut others = Vec::new();
    for stack in printed {
        let first = stack.frames.first().map_or(0, |frame| frame.ip);
        let same = begun.get(&first).and_then(|number| saved.get_mut(*number));
        let Some(same) = same.filter(|same| first != 0 && same.frames.len() <= stack.frames.len()) else {
            others.push(stack);
            continue;
        };
        // A second thread at the same instruction is a stack of its own.
        begun.remove(&first);
        if let ([owner], Some(task)) = (same.owners.as_mut_slice(), stack.owners.first())
            && named_tid(owner).is_none()
        {
            *owner = format!("{owner}, running {}", task.trim_start_matches("task "));
        }
        (same.frames, same.stopped) = (stack.frames, None);
    }
    others
}

/// The stack behind saved registers, innermost frame first.
#[must_use]
pub fn of_values(case: &Case<'_>, symbols: &Symbols, death: &Postmortem, values: &[(RegId, u64)]) -> Vec<TraceFrame> {
    let mut registers = unwind::Registers::default();
    values.iter().for_each(|(id, value)| registers.set(id.0, Some(*value)));
    let user = registers.ip().is_some_and(|ip| ip >> 63 == 0);
    let view = View::of(case, symbols, death.pid.filter(|_| user), death);
    walked(&view, &registers, MAX_FRAMES).0
}

/// The stack behind a register set, innermost frame first.
#[must_use]
pub fn of_set(case: &Case<'_>, symbols: &Symbols, death: &Postmortem, set: &Registers<'_>) -> Vec<TraceFrame> {
    let Some(registers) = for_unwinding(set) else { return Vec::new() };
    let user = registers.ip().is_some_and(|ip| ip >> 63 == 0);
    let view = View::of(case, symbols, set.pid.filter(|_| user), death);
    walked(&view, &registers, MAX_FRAMES).0
}

/// The kernel stack of a thread: walked from its saved registers, else as its kernel printed it. Empty when the dump
/// has neither.
#[must_use]
pub fn of_task(case: &Case<'_>, symbols: &Symbols, death: &Postmortem, tid: u32) -> Vec<TraceFrame> {
    let kernel = |role: Option<RegisterRole>| matches!(role, Some(RegisterRole::SWITCHED_OUT | RegisterRole::STOPPED));
    let own = case.registers.iter().find(|set| set.tid.or(set.pid) == Some(tid) && kernel(set.role));
    let walked = own.map(|set| of_set(case, symbols, death, set)).unwrap_or_default();
    if walked.len() > 1 {
        return walked;
    }
    let in_tasks = |frame: &&Located<Frame<'_>>| frame.at.kind == kwab_format::SectionKind::TASKS;
    let mut printed =
        case.frames.iter().filter(in_tasks).filter(|frame| frame.tid.or(frame.pid) == Some(tid)).peekable();
    // Idle threads of Linux share their number: one backtrace is that of one thread.
    let trace = printed.peek().and_then(|frame| frame.trace);
    let printed = printed.filter(|frame| frame.trace == trace);
    named_frames(
        printed.take(MAX_FRAMES).map(|frame| printed_frame(frame, symbols, Probe::Return)).collect(),
        symbols,
        None,
    )
}

fn for_unwinding(set: &Registers<'_>) -> Option<unwind::Registers> {
    let mut registers = unwind::Registers::default();
    for reg in set.regs.as_ref()?.iter() {
        registers.set(reg.id?.0, reg.value);
    }
    Some(registers)
}

/// The thread that a printed frame belongs to.
fn thread_of(case: &Case<'_>, frame: &Located<Frame<'_>>) -> Option<ThreadKey> {
    let cpu = threads::owner(case, frame).and_then(|task| task.last_cpu);
    Some(ThreadKey::on(frame.tid.or(frame.pid)?, cpu))
}

/// The thread that an owner's name ends with or is followed by its state: `task sh[7], sleeping`.
fn named_tid(owner: &str) -> Option<u32> {
    owner.match_indices('[').find_map(|(at, _)| owner[at + 1..].split_once(']')?.0.parse().ok())
}

fn of_registers(
    case: &Case<'_>,
    symbols: &Symbols,
    death: &Postmortem,
    set: &Located<Registers<'_>>,
    tasks: &Tasks<'_, '_>,
) -> Option<Stack> {
    let registers = for_unwinding(set)?;
    let ip = registers.ip().filter(|&ip| ip != 0)?;
    let user = ip >> 63 == 0;
    let view = View::of(case, symbols, set.pid.filter(|_| user), death);
    let (frames, stopped) = walked(&view, &registers, MAX_FRAMES);
    let task = set.tid.or(set.pid).map(|tid| task_name(tasks, ThreadKey::on(tid, set.stamp.cpu)));
    let cpu = set.stamp.cpu.map(|cpu| format!("CPU {cpu}"));
    let owner = match (set.role, cpu) {
        (Some(RegisterRole::STOPPED), Some(cpu)) => match task {
            Some(task) => format!("{cpu}, running {task}"),
            None => cpu,
        },
        (Some(RegisterRole::USER), _) => {
            format!("user code of {}", task.unwrap_or_else(|| "a process".to_owned()))
        }
        (Some(RegisterRole::SWITCHED_OUT), _) => format!("task {}", task.unwrap_or_else(|| "?".to_owned())),
        (_, Some(cpu)) => cpu,
        (role, None) => role.and_then(RegisterRole::name).unwrap_or("registers").to_owned(),
    };
    Some(Stack { owners: vec![owner], user, frames, stopped: Some(stopped), at: Some(set.at) })
}

/// `sh[7], sleeping: pipe read`.
fn task_name(tasks: &Tasks<'_, '_>, thread: ThreadKey) -> String {
    let tid = thread.tid();
    tasks.get(thread).map_or_else(|| format!("[{tid}]"), |task| name_of(task, tid))
}

fn name_of(task: &Task<'_>, tid: u32) -> String {
    let mut name = format!("{}[{tid}]", text(task.comm));
    if let Some(state) = task.state.and_then(kwab_format::record::TaskState::name) {
        name.push_str(&format!(", {state}"));
    }
    let reason = text(task.wait_reason);
    if !reason.is_empty() {
        name.push_str(&format!(": {reason}"));
    }
    name
}

/// Frames that the kernel printed for its tasks.
fn printed(case: &Case<'_>, symbols: &Symbols, tasks: &Tasks<'_, '_>, known: impl Fn(ThreadKey) -> bool) -> Vec<Stack> {
    let mut stacks: BTreeMap<(u32, u32), Stack> = BTreeMap::new();
    let of_tasks = case.frames.iter().filter(|frame| frame.at.kind == kwab_format::SectionKind::TASKS);
    for frame in of_tasks {
        let Some(thread) = thread_of(case, frame).filter(|thread| !known(*thread)) else { continue };
        if stacks.len() >= MOST {
            break;
        }
        let stack = stacks.entry((frame.trace.unwrap_or(0), thread.tid())).or_insert_with(|| Stack {
            owners: vec![format!("task {}", task_name(tasks, thread))],
            user: false,
            frames: Vec::new(),
            stopped: None,
            at: Some(frame.at),
        });
        if stack.frames.len() < MAX_FRAMES {
            stack.frames.push(printed_frame(frame, symbols, Probe::Return));
        }
    }
    let named = |stack: Stack| Stack { frames: named_frames(stack.frames, symbols, None), ..stack };
    stacks.into_values().map(named).collect()
}

/// Puts equal stacks together; the order is that of their first.
fn grouped(stacks: impl Iterator<Item = Stack>) -> Vec<Stack> {
    let mut groups: Vec<Stack> = Vec::new();
    let mut places: BTreeMap<Vec<(u64, Option<String>)>, usize> = BTreeMap::new();
    for stack in stacks.filter(|stack| !stack.frames.is_empty()) {
        let sure = |frame: &&TraceFrame| frame.trust != Trust::Scan;
        let key: Vec<_> = stack
            .frames
            .iter()
            .filter(sure)
            .map(|frame| (frame.ip, if stack.user { frame.name.clone() } else { None }))
            .collect();
        match places.get(&key).and_then(|place| groups.get_mut(*place)) {
            Some(group) => group.owners.extend(stack.owners),
            None => {
                places.insert(key, groups.len());
                groups.push(stack);
            }
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(owner: &str, ips: &[u64], stopped: Option<Stopped>) -> Stack {
        let frame = |&ip: &u64| TraceFrame {
            ip,
            sp: None,
            name: None,
            source: None,
            trust: Trust::Printed,
            machinery: false,
            functions: Vec::new(),
            at: None,
        };
        let frames = ips.iter().map(frame).collect();
        Stack { owners: vec![owner.to_string()], user: false, frames, stopped, at: None }
    }

    #[test]
    fn a_processor_that_was_walked_a_little_has_the_frames_of_its_thread_once() {
        let ends = Some(Stopped::Outermost);
        let mut saved = [stack("CPU 0", &[16], ends), stack("CPU 1", &[32, 33, 34], ends), stack("CPU 2", &[48], ends)];
        let printed = vec![
            stack("task swapper/0[0], running", &[16, 17, 18], None),
            stack("task sh[7], running", &[32, 33], None),
            stack("task cat[8], running", &[16, 19], None),
        ];
        let others = once(&mut saved, printed);
        let shown: Vec<_> = saved.iter().map(|one| (one.owners[0].as_str(), one.frames.len(), one.stopped)).collect();
        let whole = ("CPU 0, running swapper/0[0], running", 3, None);
        assert_eq!(shown, [whole, ("CPU 1", 3, ends), ("CPU 2", 1, ends)]);
        let left: Vec<_> = others.iter().map(|one| one.owners[0].as_str()).collect();
        assert_eq!(left, ["task sh[7], running", "task cat[8], running"]);
    }
}

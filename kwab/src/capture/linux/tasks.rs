//! Lists the threads of a Linux, with where each stands (`include/linux/sched.h`).

use std::cell::Cell;
use std::collections::BTreeSet;

use kwab_format::record::{RegId, TaskState};

use super::super::registers::Processor;
use super::super::space::Space;
use super::btf::Btf;
use super::kallsyms::Kallsyms;
use super::orc::{At, Orc, StackWalk};

/// Threads that are read: `pid_max` of small machines.
const MOST: usize = 1 << 15;
/// Bytes of a command line, and of a thread's name (`TASK_COMM_LEN`).
const MOST_COMMAND: usize = 512;
const NAME: usize = 16;
/// Bytes of memory for each frame with its name: a stack has a few hundred for each.
const BYTES_PER_FRAME: u64 = 256;
/// Processors whose run queues are looked at.
const MOST_CPUS: u64 = 512;
/// Bits of a thread's state and of its state at the exit.
const INTERRUPTIBLE: u32 = 1;
const UNINTERRUPTIBLE: u32 = 2;
const STOPPED: u32 = 4 | 8;
const PARKED: u32 = 0x40;
const NO_LOAD: u32 = 0x400;
const GONE: u32 = 16 | 32;

/// A thread of Linux, as its `task_struct` says.
#[derive(Debug, Default)]
pub struct Thread {
    /// Number of its process.
    pub pid: u32,
    /// Its own number; that of an idle thread is 0 on each processor.
    pub tid: u32,
    /// Number of the process that made it.
    pub parent: Option<u32>,
    /// Name, at most 15 bytes.
    pub name: Vec<u8>,
    /// Its command line; empty for a thread of the kernel.
    pub command: Vec<u8>,
    /// What it does.
    pub state: Option<TaskState>,
    /// The state in the kernel's numbers.
    pub state_bits: u32,
    /// The function that it waits in, behind those of the scheduler.
    pub waits_in: Vec<u8>,
    /// The processor that it runs or ran on.
    pub cpu: Option<u32>,
    /// Whether it is on a processor.
    pub runs: bool,
    /// Nanoseconds since it last ran.
    pub since: Option<u64>,
    /// Nanoseconds that it has run.
    pub ran: Option<u64>,
    /// Physical address of its page tables.
    pub root: Option<u64>,
    /// Stack and instruction pointer that it goes on with.
    pub saved: Option<(u64, u64)>,
    /// What its program did last: instruction and stack pointer, and the system call.
    pub user: Option<(u64, u64, i64)>,
    /// Addresses of its kernel stack, innermost first; whether each is one to return to.
    pub frames: Vec<(u64, bool)>,
}

/// What threads are read with.
pub(super) struct ThreadReader<'r> {
    pub space: &'r Space<'r>,
    pub symbols: &'r Kallsyms,
    pub btf: &'r Btf,
    pub orc: Option<&'r Orc>,
    pub processors: &'r [Processor],
    /// Steps along lists, and frames, that may still be taken: lists of broken memory need not end.
    steps: Cell<u32>,
    frames: Cell<u64>,
}

impl<'r> ThreadReader<'r> {
    pub(super) fn new(
        space: &'r Space<'r>,
        symbols: &'r Kallsyms,
        btf: &'r Btf,
        orc: Option<&'r Orc>,
        processors: &'r [Processor],
    ) -> Self {
        let frames = Cell::new(space.held() / BYTES_PER_FRAME);
        Self { space, symbols, btf, orc, processors, steps: Cell::new(4 * MOST as u32), frames }
    }

    /// Takes a step along a list, unless too many were taken.
    fn step(&self) -> Option<()> {
        self.steps.set(self.steps.get().checked_sub(1)?);
        Some(())
    }

    /// All threads, those of the kernel first as they were made; and what stopped the reading early.
    pub(super) fn all(&self) -> (Vec<Thread>, Option<String>) {
        let (mut threads, mut seen, mut problem) = (Vec::new(), BTreeSet::new(), None);
        let idle = self.run_queues();
        let clock = idle.iter().map(|queue| queue.clock).max();
        let mut add = |address: u64| {
            let is_new = threads.len() < MOST && seen.insert(address);
            let thread = if is_new { self.one(address, clock) } else { None };
            let found = thread.is_some();
            threads.extend(thread);
            found
        };
        for queue in &idle {
            add(queue.idle);
        }
        let walked = self.leaders(&mut |leader| {
            let mut found = add(leader);
            for thread in self.group(leader) {
                found |= add(thread);
            }
            found
        });
        if walked.is_none() {
            problem = Some(format!("the list of tasks is broken behind {} threads", threads.len()));
        }
        if self.frames.get() == 0 {
            problem = Some(format!("frames of stacks: more than {} bytes of memory have", self.space.held()));
        }
        // Nothing of a list that is broken names what runs.
        for queue in &idle {
            if seen.insert(queue.current) {
                threads.extend(self.one(queue.current, clock));
            }
        }
        (threads, problem)
    }

    fn offset(&self, path: &str) -> Option<u64> {
        self.btf.offset("task_struct", path)
    }

    /// Calls `look` with the first thread of each process, until it says that nothing is there; `None` when the list
    /// does not come back to its begin.
    fn leaders(&self, look: &mut dyn FnMut(u64) -> bool) -> Option<()> {
        let first = self.symbols.find("init_task")?;
        let list = self.offset("tasks")?;
        let mut at = first;
        while self.step().is_some() {
            at = self.space.word(at.checked_add(list)?)?.wrapping_sub(list);
            if at == first {
                return Some(());
            }
            if !look(at) {
                return None;
            }
        }
        None
    }

    /// The other threads of a process.
    fn group(&self, leader: u64) -> Vec<u64> {
        let walk = || {
            let node = self.offset("thread_node")?;
            let signal = self.space.word(leader.wrapping_add(self.offset("signal")?))?;
            let head = signal.checked_add(self.btf.offset("signal_struct", "thread_head")?)?;
            let (mut at, mut found) = (self.space.word(head)?, Vec::new());
            while at != head {
                self.step()?;
                found.push(at.wrapping_sub(node));
                at = self.space.word(at)?;
            }
            Some(found)
        };
        walk().unwrap_or_default()
    }

    /// The run queue of each processor.
    fn run_queues(&self) -> Vec<Queue> {
        let read = |cpu: u64| {
            let base = self.space.word(self.symbols.find("__per_cpu_offset")?.checked_add(8 * cpu)?)?;
            let queue = self.symbols.find("runqueues")?.wrapping_add(base);
            let of = |member: &str| self.space.word(queue.checked_add(self.btf.offset("rq", member)?)?);
            Some(Queue { idle: of("idle")?, current: of("curr")?, clock: of("clock").unwrap_or(0) })
        };
        let count = self.symbols.find("nr_cpu_ids").and_then(|at| self.space.half(at)).unwrap_or(1);
        (0..u64::from(count).min(MOST_CPUS)).filter_map(read).filter(|queue| queue.idle >> 63 == 1).collect()
    }

    fn one(&self, task: u64, clock: Option<u64>) -> Option<Thread> {
        let half = |path: &str| self.space.half(task.checked_add(self.offset(path)?)?);
        let word = |path: &str| self.space.word(task.checked_add(self.offset(path)?)?);
        let tid = half("pid")?;
        let bits = half("__state").or_else(|| half("state"))? | half("exit_state").unwrap_or(0);
        let runs = half("on_cpu").is_some_and(|on| on != 0);
        let cpu = half("thread_info.cpu").or_else(|| half("cpu"));
        let parent = word("real_parent").and_then(|parent| self.space.half(parent.checked_add(self.offset("tgid")?)?));
        let space = word("mm").filter(|mm| *mm != 0);
        let root = space.and_then(|mm| self.space.word(mm.checked_add(self.btf.offset("mm_struct", "pgd")?)?));
        let root = root.and_then(|root| self.space.physical(root));
        let mut thread = Thread {
            pid: half("tgid")?,
            tid,
            parent: parent.filter(|_| tid != 0),
            name: self.space.text(task.wrapping_add(self.offset("comm")?), NAME),
            command: space.zip(root).and_then(|(mm, root)| self.command(mm, root)).unwrap_or_default(),
            state: state(bits, runs),
            state_bits: bits,
            cpu,
            runs,
            since: clock.zip(word("se.exec_start")).and_then(|(now, then)| now.checked_sub(then)).filter(|_| !runs),
            ran: word("se.sum_exec_runtime"),
            root,
            ..Thread::default()
        };
        if tid == 0 {
            thread.state = if runs { thread.state } else { Some(TaskState::IDLE) };
        }
        self.stand(task, &mut thread);
        Some(thread)
    }

    fn command(&self, mm: u64, root: u64) -> Option<Vec<u8>> {
        let of = |member: &str| self.space.word(mm.checked_add(self.btf.offset("mm_struct", member)?)?);
        let (start, end) = (of("arg_start")?, of("arg_end")?);
        let length = usize::try_from(end.checked_sub(start)?).ok()?.min(MOST_COMMAND);
        let mut words = self.space.of_root(root).bytes(start, length)?;
        while words.last() == Some(&0) {
            words.pop();
        }
        words.iter_mut().filter(|byte| **byte == 0).for_each(|byte| *byte = b' ');
        Some(words)
    }

    /// Fills in where the thread stands and how it came there.
    fn stand(&self, task: u64, thread: &mut Thread) {
        let Some((at, exact)) = self.registers(task, thread) else { return };
        if !thread.runs {
            thread.saved = Some((at.sp, at.ip));
        }
        let walk = match self.orc {
            Some(orc) => orc.walk(self.space, at, exact),
            None => self.chain(at, exact),
        };
        (thread.frames, thread.user) = (walk.frames, walk.user);
        let left = self.frames.get();
        thread.frames.truncate(left as usize);
        self.frames.set(left - thread.frames.len() as u64);
        let slept = thread.frames.iter().find(|frame| !self.schedules(frame.0));
        let function = slept.filter(|_| !thread.runs).and_then(|frame| self.symbols.at(frame.0));
        thread.waits_in = function.map(|(name, ..)| name.to_vec()).unwrap_or_default();
    }

    /// Whether code belongs to the scheduler: functions that sleep for their caller.
    fn schedules(&self, ip: u64) -> bool {
        let range = self.symbols.find("__sched_text_start").zip(self.symbols.find("__sched_text_end"));
        range.is_some_and(|(start, end)| (start..end).contains(&ip))
    }

    fn registers(&self, task: u64, thread: &Thread) -> Option<(At, bool)> {
        if thread.runs {
            let processor = self.processors.iter().find(|one| Some(one.number) == thread.cpu && !one.in_user)?;
            let of = |id: RegId| processor.get(id);
            let at = At {
                ip: processor.ip(),
                sp: processor.sp(),
                bp: of(RegId::RBP),
                r10: of(RegId::R10),
                r13: of(RegId::R13),
                dx: of(RegId::RDX),
                di: of(RegId::RDI),
            };
            return Some((at, true));
        }
        let sp = self.space.word(task.checked_add(self.offset("thread.sp")?)?)?;
        let frame = |member: &str| self.btf.offset("inactive_task_frame", member).unwrap_or(0);
        let (ip, bp) =
            (self.space.word(sp.wrapping_add(frame("ret_addr")))?, self.space.word(sp.wrapping_add(frame("bp")))?);
        let sp = sp.checked_add(self.btf.size("inactive_task_frame")?)?;
        // A thread that has not run yet returns to the begin of a function, which no call stands before.
        let is_new = self.symbols.at(ip).is_some_and(|(_, offset, _)| offset == 0);
        Some((At { ip, sp, bp, ..At::default() }, is_new))
    }

    /// The way by frame pointers, for a kernel without tables: each frame keeps the caller's pointer and the address to
    /// return to.
    fn chain(&self, at: At, exact: bool) -> StackWalk {
        let (mut frames, mut bp) = (vec![(at.ip, !exact)], at.bp);
        while frames.len() < 64 {
            let (Some(next), Some(ip)) = (self.space.word(bp), self.space.word(bp.wrapping_add(8))) else { break };
            if self.symbols.at(ip).is_none() {
                break;
            }
            frames.push((ip, true));
            // A stack goes up.
            if next <= bp {
                break;
            }
            bp = next;
        }
        StackWalk { frames, user: None }
    }
}

/// What the scheduler of a processor says.
struct Queue {
    idle: u64,
    current: u64,
    clock: u64,
}

fn state(bits: u32, runs: bool) -> Option<TaskState> {
    Some(match bits {
        _ if bits & GONE != 0 => TaskState::ZOMBIE,
        _ if runs => TaskState::RUNNING,
        0 => TaskState::RUNNABLE,
        _ if bits & STOPPED != 0 => TaskState::STOPPED,
        _ if bits & NO_LOAD != 0 || bits & PARKED != 0 => TaskState::IDLE,
        _ if bits & UNINTERRUPTIBLE != 0 => TaskState::BLOCKED,
        _ if bits & INTERRUPTIBLE != 0 => TaskState::SLEEPING,
        _ => return None,
    })
}

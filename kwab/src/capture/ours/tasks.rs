//! Lists the threads of our kernel, and the processes that are zombies, with what the kernel's own dump says of them
//! (`kernel/src/crash/parts/tasks.rs`).

use kernel_logic::runqueue::ThreadState;
use kwab_format::record::TaskState;

use super::super::space::Space;
use super::calls::{CallReader, Calls};
use super::map::Nodes;
use super::table::Table;

/// Threads and zombies that are read: `pid_max`.
const MOST: usize = 1 << 15;
/// Frames of a stack, as in the kernel's own dump.
const MOST_FRAMES: usize = 12;
/// Bytes of memory for each thread: its stack alone has 32 KiB.
const BYTES_PER_THREAD: u64 = 4096;
/// Letters of what a thread sleeps for.
const MOST_REASON: usize = 80;
/// Bytes of a thread's name, and the state of a thread that is switched out.
const NAME: usize = 16;
const PARKED: u32 = 0;
/// What the switch pushes: R15 to R12, RBX, RBP, the address to go on at.
const PUSHED: u64 = 56;
/// Where the upper half of addresses begins.
const KERNEL_HALF: u64 = 1 << 63;

/// A thread, or a process of which nothing but its number is left.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Thread {
    /// Number of its process.
    pub pid: u32,
    /// Its own number.
    pub tid: u32,
    /// Number of the process that made it.
    pub parent: Option<u32>,
    /// Name, at most 15 bytes.
    pub name: Option<Vec<u8>>,
    /// What it does.
    pub state: Option<TaskState>,
    /// What it sleeps for, of the kernel's reasons.
    pub reason: Option<String>,
    /// Of which object.
    pub object: Option<u64>,
    /// The thread that has the mutex that it sleeps for, or has it next.
    pub waits_on: Option<u32>,
    /// When its sleep ends at the latest.
    pub deadline: Option<u64>,
    /// Since when it has been in its state.
    pub since: Option<u64>,
    /// The processor that it runs or ran on.
    pub cpu: Option<u32>,
    /// Whether it is on that processor.
    pub runs: bool,
    /// Where it goes on, if it is switched out.
    pub saved: Option<Saved>,
    /// What its program did last: instruction and stack pointer, and the system call.
    pub user: Option<(u64, u64, Option<u64>)>,
    /// Nanoseconds that it has run before its present turn.
    pub ran: Option<u64>,
    /// From -20, which gets most, to 19.
    pub nice: Option<i32>,
    /// Physical address of its page tables.
    pub root: Option<u64>,
    /// Pending and blocked signals.
    pub signals: Option<(u64, u64)>,
    /// Addresses of its kernel stack, innermost first.
    pub frames: Vec<u64>,
    /// The innermost bytes of that stack, from its stack pointer on.
    pub stack: Vec<u8>,
    /// Lowest address of its kernel stack, and the one behind the highest.
    pub bounds: Option<(u64, u64)>,
    /// Its last system calls.
    pub calls: Option<Calls>,
}

/// The registers that the switch kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Saved {
    /// Instruction, stack and frame pointer.
    pub pointers: [u64; 3],
    /// RBX and R12 to R15.
    pub others: [u64; 5],
}

/// What threads are read with.
pub(super) struct ThreadReader<'r> {
    space: &'r Space<'r>,
    table: &'r Table,
    reasons: Vec<String>,
    /// Bytes of stacks that may still be kept.
    stacks: usize,
    calls: Option<CallReader<'r>>,
    /// Calls that may still be kept.
    calls_left: usize,
}

/// Bytes of a stack that are kept, and of all of them.
const STACK: usize = 1 << 10;
const ALL_STACKS: usize = 256 * STACK;
/// System calls of all threads that are kept.
const ALL_CALLS: usize = 1 << 15;

impl<'r> ThreadReader<'r> {
    pub(super) fn new(space: &'r Space<'r>, table: &'r Table) -> Self {
        let reasons = table.text(space, "reasons").unwrap_or_default();
        // Every thread has a copy: a text that lies must not be long.
        let reasons = reasons.lines().map(|line| line.chars().take(MOST_REASON).collect()).collect();
        let calls = CallReader::new(space, table);
        Self { space, table, reasons, stacks: ALL_STACKS, calls, calls_left: ALL_CALLS }
    }

    /// The threads by their numbers, then the zombies; and what stopped the reading early.
    pub(super) fn all(&mut self) -> (Vec<Thread>, Option<String>) {
        let most = usize::try_from(self.space.held() / BYTES_PER_THREAD).unwrap_or(MOST).min(MOST);
        let (threads, whole) = self.values("threads", most);
        let mut problem = whole.is_none().then(|| format!("the map of threads is broken behind {}", threads.len()));
        let mut found: Vec<Thread> = threads.iter().filter_map(|at| self.one(*at)).collect();
        if found.len() < threads.len() {
            problem = Some(format!("{} of {} threads cannot be read", threads.len() - found.len(), threads.len()));
        }
        let (processes, whole) = self.values("processes", most);
        if whole.is_none() {
            problem.get_or_insert(format!("the map of processes is broken behind {}", processes.len()));
        }
        found.extend(processes.iter().filter_map(|at| self.zombie(*at)));
        (found, problem)
    }

    /// What the values of a map point to, and whether it was whole.
    fn values(&self, name: &str, most: usize) -> (Vec<u64>, Option<()>) {
        let (mut found, mut steps) = (Vec::new(), 4 * most as u32 + 16);
        let walked = Nodes::of(self.space, self.table, name).and_then(|nodes| {
            nodes.walk(&mut steps, &mut |at| {
                if found.len() < most {
                    found.extend(self.counted(at));
                }
            })
        });
        (found, walked)
    }

    fn offset(&self, name: &str) -> Option<u64> {
        self.table.get(name)
    }

    /// What the `Arc` at an address holds; `None` when there is none.
    fn counted(&self, at: u64) -> Option<u64> {
        self.space.word(at).filter(|at| *at != 0)?.checked_add(self.offset("arc.value")?)
    }

    fn word(&self, at: u64, name: &str) -> Option<u64> {
        self.space.word(at.checked_add(self.offset(name)?)?)
    }

    fn half(&self, at: u64, name: &str) -> Option<u32> {
        self.space.half(at.checked_add(self.offset(name)?)?)
    }

    fn byte(&self, at: u64, name: &str) -> Option<u8> {
        let mut byte = [0];
        self.space.fill(at.checked_add(self.offset(name)?)?, &mut byte)?;
        Some(byte[0])
    }

    fn one(&mut self, at: u64) -> Option<Thread> {
        /// Of a sleep without an end.
        const NEVER: u64 = u64::MAX;
        let ids = self.word(at, "task.ids")?;
        let process = self.counted(at.checked_add(self.offset("task.process")?)?)?;
        let state = ThreadState::from_number(self.byte(at, "sched.state")?);
        let asleep = !matches!(state, ThreadState::Running | ThreadState::Queued | ThreadState::Dead);
        let reason = self.byte(at, "wait.reason").unwrap_or(0);
        let reason = self.reasons.get(usize::from(reason).wrapping_sub(1)).filter(|_| asleep).cloned();
        let sleeps_for_mutex = state == ThreadState::Uninterruptible && reason.as_deref() == Some(MUTEX);
        let (since, progress) = (self.word(at, "sched.since"), self.word(at, "wait.progress"));
        let memory = self.offset("task.memory").and_then(|offset| self.counted(at.checked_add(offset)?));
        let space = memory.and_then(|memory| self.counted(memory.checked_add(self.offset("memory.space")?)?));
        let root = space.and_then(|space| self.half(space, "space.root"));
        let pending = self.word(at, "task.pending").zip(self.word(process, "process.pending"));
        let mut thread = Thread {
            pid: (ids >> 32) as u32,
            tid: ids as u32,
            parent: self.half(process, "process.parent"),
            name: self.offset("task.name").map(|offset| self.space.text(at.wrapping_add(offset), NAME)),
            state: Some(self.state(at, state)),
            object: self.word(at, "wait.object").filter(|object| asleep && *object != 0),
            waits_on: self.half(at, "wait.thread").filter(|on| sleeps_for_mutex && *on != 0),
            deadline: self.word(at, "wait.deadline").filter(|at| asleep && *at != NEVER),
            reason,
            since: since.map(|since| since.max(progress.unwrap_or(0))),
            cpu: self.half(at, "sched.cpu"),
            runs: self.half(at, "thread.state") == Some(RUNS),
            ran: self.word(at, "sched.ran"),
            nice: self.half(at, "sched.nice").map(u32::cast_signed),
            root: root.and_then(|frame| self.offset("space.frame_size")?.checked_mul(u64::from(frame))),
            signals: pending.map(|(own, shared)| own | shared).zip(self.word(at, "task.blocked")),
            ..Thread::default()
        };
        thread.user = self.user(at);
        thread.bounds = self.word(at, "thread.stack_low").zip(self.word(at, "thread.stack_high"));
        thread.calls = self.calls.as_ref().and_then(|calls| calls.of(at, self.calls_left));
        self.calls_left = self.calls_left.saturating_sub(thread.calls.as_ref().map_or(0, |calls| calls.calls.len()));
        self.stand(at, &mut thread);
        Some(thread)
    }

    fn state(&self, at: u64, state: ThreadState) -> TaskState {
        match state {
            _ if self.byte(at, "sched.idle").is_some_and(|idle| idle != 0) => TaskState::IDLE,
            ThreadState::Running => TaskState::RUNNING,
            ThreadState::Queued => TaskState::RUNNABLE,
            ThreadState::Interruptible => TaskState::SLEEPING,
            ThreadState::Stopped => TaskState::STOPPED,
            ThreadState::Dead => TaskState::ZOMBIE,
            ThreadState::Killable | ThreadState::Uninterruptible => TaskState::BLOCKED,
        }
    }

    /// The registers that a program entered the kernel with.
    fn user(&self, at: u64) -> Option<(u64, u64, Option<u64>)> {
        let end = self.word(at, "thread.frame_end").filter(|end| *end != 0)?;
        let frame = end.checked_sub(self.offset("frame.size")?)?;
        let call = self.word(frame, "frame.syscall").filter(|call| *call != u64::MAX);
        Some((self.word(frame, "frame.ip")?, self.word(frame, "frame.sp")?, call))
    }

    /// Fills in where a thread that is switched out goes on, and how it came there.
    fn stand(&mut self, at: u64, thread: &mut Thread) {
        let Some(saved) = self.saved(at) else { return };
        let [mut ip, sp, mut fp] = saved.pointers;
        thread.saved = Some(saved);
        // As the kernel walks its own stacks: each frame keeps the caller's pointer and the address to return to.
        while ip != 0 && thread.frames.len() < MOST_FRAMES {
            thread.frames.push(ip);
            let is_sound = fp >= KERNEL_HALF && fp.is_multiple_of(8);
            let record = self.space.word(fp).zip(fp.checked_add(8).and_then(|at| self.space.word(at)));
            let (next, above) = record.filter(|_| is_sound).unwrap_or((0, 0));
            ip = above;
            fp = if next > fp { next } else { 0 };
        }
        let high = self.word(at, "thread.stack_high").unwrap_or(0);
        let length = usize::try_from(high.saturating_sub(sp)).unwrap_or(0).min(STACK).min(self.stacks);
        thread.stack = self.space.bytes(sp, length).unwrap_or_default();
        self.stacks -= thread.stack.len();
    }

    fn saved(&self, at: u64) -> Option<Saved> {
        let is_parked = self.half(at, "thread.state")? == PARKED;
        let (sp, low, high) =
            (self.word(at, "thread.sp")?, self.word(at, "thread.stack_low")?, self.word(at, "thread.stack_high")?);
        if !is_parked || sp < low || sp > high.checked_sub(PUSHED)? {
            return None;
        }
        let word = |number: u64| self.space.word(sp.checked_add(8 * number)?);
        Some(Saved {
            pointers: [word(6)?, sp.checked_add(PUSHED)?, word(5)?],
            others: [word(4)?, word(3)?, word(2)?, word(1)?, word(0)?],
        })
    }

    /// A process that has ended and that its parent has not waited for.
    fn zombie(&self, process: u64) -> Option<Thread> {
        self.byte(process, "process.gone").filter(|gone| *gone == 1)?;
        let pid = self.half(process, "process.pid")?;
        let state = Some(TaskState::ZOMBIE);
        Some(Thread { pid, tid: pid, parent: self.half(process, "process.parent"), state, ..Thread::default() })
    }
}

/// The kernel's words for a mutex, and the state of a thread on a processor.
const MUTEX: &str = "a mutex of the kernel";
const RUNS: u32 = 1;

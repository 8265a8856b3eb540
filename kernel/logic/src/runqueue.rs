//! Decides who runs next on one CPU and for how long.
//!
//! Real-time tasks run strictly by priority, in order of arrival within one. All other tasks share by weight: each
//! task carries a virtual runtime that advances more slowly the heavier it is, and the task furthest behind runs. A
//! task that slept is placed at most half a latency period behind the queue, so that sleeping earns a quick turn and
//! never a monopoly. Weights are those of nice levels: each level changes the share by a quarter, 1024 at nice 0.

use alloc::collections::BinaryHeap;
use core::cmp::{Ordering, Reverse};

use linux_abi::flags::process;

/// What a thread does, and which queue it is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ThreadState {
    /// On a processor, in no queue.
    Running = 0,
    /// In a run queue.
    Queued = 1,
    /// Asleep, any signal wakes it.
    Interruptible = 2,
    /// Asleep, a fatal signal wakes it.
    Killable = 3,
    /// Asleep, no signal wakes it.
    Uninterruptible = 4,
    /// Stopped by job control.
    Stopped = 5,
    /// Exited; never scheduled again.
    Dead = 6,
}

impl ThreadState {
    /// The state that has this number; [`Dead`](Self::Dead) for a number that has none.
    #[inline]
    pub const fn from_number(number: u8) -> Self {
        match number {
            0 => Self::Running,
            1 => Self::Queued,
            2 => Self::Interruptible,
            3 => Self::Killable,
            4 => Self::Uninterruptible,
            5 => Self::Stopped,
            _ => Self::Dead,
        }
    }

    /// Whether it waits for something other than a processor.
    pub const fn is_asleep(self) -> bool {
        matches!(self, Self::Interruptible | Self::Killable | Self::Uninterruptible | Self::Stopped)
    }
}

/// How a task is scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// `SCHED_FIFO` at a priority of 1 to 99: runs until it blocks or yields.
    Fifo(u8),
    /// `SCHED_RR` at a priority of 1 to 99: as FIFO, in turns of [`SLICE`].
    RoundRobin(u8),
    /// `SCHED_OTHER` and `SCHED_BATCH`.
    Normal,
    /// `SCHED_IDLE`: the lightest weight there is.
    Idle,
}

impl Policy {
    /// Linux's number for it (sched(7)).
    #[must_use]
    pub const fn number(self) -> i32 {
        let number = match self {
            Self::Normal => process::SCHED_OTHER,
            Self::Fifo(_) => process::SCHED_FIFO,
            Self::RoundRobin(_) => process::SCHED_RR,
            Self::Idle => process::SCHED_IDLE,
        };
        number as i32
    }
}

/// A task's scheduling parameters: its policy and its key in the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entity {
    /// The scheduling policy, with the priority if it is a real-time one.
    pub policy: Policy,
    /// -20 to 19.
    pub nice: i8,
    /// Weighted nanoseconds consumed.
    pub vruntime: u64,
}

impl Entity {
    /// A normal task at nice 0 that has not run.
    pub const fn new() -> Self {
        Self { policy: Policy::Normal, nice: 0, vruntime: 0 }
    }

    /// Weight of the share.
    pub fn weight(&self) -> u64 {
        match self.policy {
            Policy::Idle => 3,
            _ => WEIGHTS[(i32::from(self.nice) + 20).clamp(0, 39) as usize],
        }
    }

    /// Accounts `ran` nanoseconds of processor time.
    pub fn charge(&mut self, ran: u64) {
        self.vruntime = self.vruntime.wrapping_add(weighted(ran, self.weight()));
    }

    fn class(&self) -> u8 {
        match self.policy {
            Policy::Fifo(priority) | Policy::RoundRobin(priority) => 100 - priority.min(99),
            Policy::Normal | Policy::Idle => 100,
        }
    }
}

impl Default for Entity {
    fn default() -> Self {
        Self::new()
    }
}

/// Nanoseconds of processor time as virtual time of a task of this weight.
pub const fn weighted(ran: u64, weight: u64) -> u64 {
    if weight == 1024 { ran } else { ran.saturating_mul(1024) / weight }
}

/// One turn in nanoseconds, when another task is runnable.
pub const SLICE: u64 = 4_000_000;
/// Slack before a woken task interrupts the running one.
pub const WAKE_GRANULARITY: u64 = 1_000_000;
/// Waiting tasks that one search for work asks, at most (Linux: `sched_nr_migrate`).
pub const MOST_ASKED: usize = 32;
/// How far behind the queue a sleeper may be placed.
const SLEEPER_CREDIT: u64 = 3_000_000;

/// `sched_prio_to_weight`: 1024 at nice 0, a factor of 1.25 per level.
const WEIGHTS: [u64; 40] = [
    88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, 9548, 7620, 6100, 4904, 3906, 3121, 2501,
    1991, 1586, 1277, 1024, 820, 655, 526, 423, 335, 272, 215, 172, 137, 110, 87, 70, 56, 45, 36, 29, 23, 18, 15,
];

/// How a task comes onto the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// It was created.
    New,
    /// It was asleep and is runnable again.
    Woken,
    /// It was running and gave way.
    Preempted,
    /// It came from another CPU's queue, whose clock read this.
    Moved {
        /// [`RunQueue::clock`] of the queue it left.
        from_clock: u64,
    },
}

/// The tasks that wait for one CPU.
#[derive(Debug)]
pub struct RunQueue<T> {
    heap: BinaryHeap<Reverse<Queued<T>>>,
    /// The smallest virtual runtime at which a task may be queued; never decreases.
    clock: u64,
    serial: u64,
    /// Where [`RunQueue::steal`] goes on, an index into the heap.
    asked: usize,
}

#[derive(Debug)]
struct Queued<T> {
    class: u8,
    vruntime: u64,
    serial: u64,
    task: T,
}

impl<T> Default for RunQueue<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> RunQueue<T> {
    /// An empty run queue; allocates nothing.
    pub const fn new() -> Self {
        Self { heap: BinaryHeap::new(), clock: 0, serial: 0, asked: 0 }
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether the queue is empty.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// The queue's virtual time.
    pub fn clock(&self) -> u64 {
        self.clock
    }

    /// Makes room, so that later pushes do not allocate.
    pub fn reserve(&mut self, tasks: usize) {
        self.heap.reserve(tasks.saturating_sub(self.heap.len()));
    }

    /// Advances the queue's virtual time to the running task's `vruntime`, so that a newly queued task starts beside it
    /// rather than at an old value. Advances no further than to the first queued task.
    pub fn advance_to(&mut self, vruntime: u64) {
        let floor = match self.heap.peek() {
            Some(Reverse(first)) if first.class == 100 => vruntime.min(first.vruntime),
            _ => vruntime,
        };
        self.clock = self.clock.max(floor);
    }

    /// Virtual runtime of the task that would run next.
    pub fn first_vruntime(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse(first)| first.vruntime)
    }

    /// Gives an arriving task the virtual runtime it is to queue at.
    pub fn settle(&self, entity: &mut Entity, arrival: Arrival) {
        match arrival {
            Arrival::New => entity.vruntime = entity.vruntime.max(self.clock),
            Arrival::Woken => entity.vruntime = entity.vruntime.max(self.clock.saturating_sub(SLEEPER_CREDIT)),
            Arrival::Preempted => {}
            Arrival::Moved { from_clock } => {
                entity.vruntime = (self.clock + entity.vruntime).saturating_sub(from_clock);
            }
        }
    }

    /// Queues a task and settles its virtual runtime.
    pub fn push(&mut self, task: T, entity: &mut Entity, arrival: Arrival) {
        self.settle(entity, arrival);
        self.serial += 1;
        self.heap.push(Reverse(Queued { class: entity.class(), vruntime: entity.vruntime, serial: self.serial, task }));
    }

    /// Takes the task that should run now.
    pub fn pop(&mut self) -> Option<T> {
        let Reverse(queued) = self.heap.pop()?;
        if queued.class == 100 {
            self.clock = self.clock.max(queued.vruntime);
        }
        Some(queued.task)
    }

    /// Takes, from the back of the order, a task that `may` leave for another CPU. Looks at no more than [`MOST_ASKED`]
    /// and goes on from there the next time: a user may have thousands of tasks wait that must stay.
    pub fn steal(&mut self, mut may: impl FnMut(&T) -> bool) -> Option<T> {
        let all = self.heap.as_slice();
        let begin = if self.asked < all.len() { self.asked } else { 0 };
        let asked = (begin..all.len()).chain(0..begin).take(MOST_ASKED);
        let at = asked.filter(|at| may(&all[*at].0.task)).max_by(|a, b| all[*b].cmp(&all[*a]));
        self.asked = if all.len() > MOST_ASKED { (begin + MOST_ASKED) % all.len() } else { 0 };
        let at = at?;
        let mut all = core::mem::take(&mut self.heap).into_vec();
        let stolen = all.swap_remove(at).0.task;
        self.heap = BinaryHeap::from(all);
        Some(stolen)
    }

    /// Whether the first in the queue should take over from the running task right now.
    pub fn preempts(&self, running: &Entity) -> bool {
        let Some(Reverse(first)) = self.heap.peek() else { return false };
        match first.class.cmp(&running.class()) {
            Ordering::Less => true,
            Ordering::Greater => false,
            Ordering::Equal => first.class == 100 && first.vruntime + WAKE_GRANULARITY < running.vruntime,
        }
    }

    /// Whether the running task, having run `ran` nanoseconds of its turn, should give way.
    pub fn turn_is_over(&self, running: &Entity, ran: u64) -> bool {
        let Some(Reverse(first)) = self.heap.peek() else { return false };
        match first.class.cmp(&running.class()) {
            Ordering::Less => true,
            Ordering::Greater => false,
            Ordering::Equal => ran >= SLICE && !matches!(running.policy, Policy::Fifo(_)),
        }
    }
}

impl<T> Queued<T> {
    fn key(&self) -> (u8, u64, u64) {
        (self.class, self.vruntime, self.serial)
    }
}

impl<T> PartialEq for Queued<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}
impl<T> Eq for Queued<T> {}
impl<T> PartialOrd for Queued<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl<T> Ord for Queued<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec;

    /// Runs `n` always-busy tasks for `turns` turns; nanoseconds each got.
    fn simulate(entities: &mut [Entity], turns: usize) -> vec::Vec<u64> {
        let mut queue = RunQueue::new();
        let mut got = vec![0; entities.len()];
        for (id, entity) in entities.iter_mut().enumerate() {
            queue.push(id, entity, Arrival::New);
        }
        for _ in 0..turns {
            let id = queue.pop().unwrap();
            got[id] += SLICE;
            entities[id].charge(SLICE);
            queue.push(id, &mut entities[id], Arrival::Preempted);
        }
        got
    }

    #[test]
    fn a_state_is_found_by_its_number_and_no_other_number_runs() {
        use ThreadState::{Dead, Interruptible, Killable, Queued, Running, Stopped, Uninterruptible};
        for state in [Running, Queued, Interruptible, Killable, Uninterruptible, Stopped, Dead] {
            assert_eq!(ThreadState::from_number(state as u8), state);
        }
        assert!((7..=u8::MAX).all(|number| ThreadState::from_number(number) == Dead));
        let asleep = |number: &u8| ThreadState::from_number(*number).is_asleep();
        assert_eq!((0..=u8::MAX).filter(asleep).collect::<vec::Vec<_>>(), [2, 3, 4, 5]);
    }

    #[test]
    fn equal_tasks_get_equal_time_and_nice_ones_their_share() {
        let mut equal = [Entity::new(); 5];
        let got = simulate(&mut equal, 5000);
        assert!(got.iter().all(|ns| *ns == 1000 * SLICE), "{got:?}");
        let mut mixed = [Entity::new(), Entity { nice: 5, ..Entity::new() }];
        let got = simulate(&mut mixed, 10_000);
        let share = got[0] as f64 / got[1] as f64;
        assert!((share - 1024.0 / 335.0).abs() < 0.05, "{share}");
    }

    #[test]
    fn a_long_sleeper_does_not_monopolise_the_cpu() {
        let mut queue = RunQueue::new();
        let (mut busy, mut sleeper) = (Entity::new(), Entity::new());
        queue.push('b', &mut busy, Arrival::New);
        queue.pop();
        busy.charge(10_000_000_000);
        queue.push('b', &mut busy, Arrival::Preempted);
        queue.pop();
        queue.push('s', &mut sleeper, Arrival::Woken);
        assert!(queue.preempts(&busy));
        assert!(busy.vruntime - sleeper.vruntime <= SLEEPER_CREDIT);
    }

    #[test]
    fn whoever_ran_alone_for_a_minute_keeps_its_share_when_company_comes() {
        let mut queue = RunQueue::new();
        let mut hog = Entity::new();
        hog.charge(60_000_000_000);
        queue.advance_to(hog.vruntime);
        let mut newcomer = Entity::new();
        queue.push('n', &mut newcomer, Arrival::New);
        queue.push('h', &mut hog, Arrival::Preempted);
        assert!(newcomer.vruntime >= hog.vruntime);
        // While a queued task is further behind, the clock does not advance.
        let before = queue.clock();
        queue.advance_to(u64::MAX);
        assert_eq!(queue.clock(), before);
    }

    #[test]
    fn a_task_keeps_its_lead_not_its_number_when_it_moves() {
        let queue: RunQueue<char> = RunQueue::new();
        let mut ahead = Entity { vruntime: 90_000_000_000 + 500, ..Entity::new() };
        queue.settle(&mut ahead, Arrival::Moved { from_clock: 90_000_000_000 });
        assert_eq!(ahead.vruntime, 500);
    }

    #[test]
    fn real_time_goes_first_and_fifo_is_not_cut_short() {
        let mut queue = RunQueue::new();
        let mut normal = Entity::new();
        let mut low = Entity { policy: Policy::Fifo(10), ..normal };
        let mut high = Entity { policy: Policy::RoundRobin(50), ..normal };
        queue.push('n', &mut normal, Arrival::New);
        queue.push('l', &mut low, Arrival::New);
        queue.push('h', &mut high, Arrival::New);
        assert_eq!(queue.pop(), Some('h'));
        assert_eq!(queue.pop(), Some('l'));
        assert!(!queue.turn_is_over(&low, 100 * SLICE));
        assert_eq!(queue.pop(), Some('n'));
        queue.push('l', &mut low, Arrival::Woken);
        assert!(queue.preempts(&normal));
    }

    #[test]
    fn a_thief_takes_the_one_that_would_have_waited_longest() {
        let mut queue = RunQueue::new();
        for (id, vruntime) in [(1, 5), (2, 50), (3, 20)] {
            queue.push(id, &mut Entity { vruntime, ..Entity::new() }, Arrival::Preempted);
        }
        assert_eq!(queue.steal(|id| *id != 2), Some(3));
        assert_eq!(queue.steal(|_| true), Some(2));
        assert_eq!(queue.steal(|_| false), None);
        assert_eq!(queue.pop(), Some(1));
    }

    #[test]
    fn a_search_for_work_among_thousands_that_must_stay_is_short_and_finds_the_one_that_may_go() {
        let mut queue = RunQueue::new();
        for id in 0..3000 {
            queue.push(id, &mut Entity::new(), Arrival::New);
        }
        let mut searches = 0;
        let stolen = loop {
            let mut asked = 0;
            let stolen = queue.steal(|id| {
                asked += 1;
                *id == 1234
            });
            assert!(asked <= MOST_ASKED);
            searches += 1;
            if stolen.is_some() || searches > 3000 / MOST_ASKED {
                break stolen;
            }
        };
        assert_eq!(stolen, Some(1234));
        assert_eq!(queue.len(), 2999);
        assert_eq!(queue.steal(|_| false), None);
    }
}

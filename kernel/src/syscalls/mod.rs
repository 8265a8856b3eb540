//! System call dispatch: the table from numbers to functions.
//!
//! Each area lists its calls once, in a `CALLS` table of (number, function) next to the functions; [`TABLE`] is put
//! together from those at compile time. A call that is not listed returns `ENOSYS`; it is counted, and with
//! `debug=unimplemented` leaves an event.

use alloc::sync::Arc;

use linux_abi::Errno;
use linux_abi::syscalls::{self, nr};
use machine::arch::UserFrame;
use machine::thread::Current;
use machine::time::cycles_in_halves;

use crate::task::{Pid, Process, Task, current, current_here, tree};
use crate::trace::ring::Open;
use crate::trace::{self, flight};
use crate::user::{Plain, UserPtr};

mod clock;
mod dir_mount;
mod dir_names;
mod fd_events;
mod fd_table;
mod file_attr;
mod file_open;
mod file_rw;
mod file_stat;
pub mod file_xattr;
mod futexes;
mod identity;
mod lookup;
mod memory;
mod memory_advice;
mod mqueue;
mod poll;
mod process;
mod process_compare;
mod process_setup;
mod process_usage;
mod scheduling;
mod signals;
mod socket;
mod socket_control;
pub mod system;

/// What a call returns: a value for the result register, or an error.
pub type SysResult = Result<usize, Errno>;

/// One call as its function sees it.
pub struct Call<'a> {
    /// The calling thread.
    pub task: Current<Task>,
    /// Its user registers.
    pub frame: &'a mut UserFrame,
}

impl Call<'_> {
    /// The `index`th argument, 0 to 5, as it came in the register.
    #[inline(always)]
    pub fn arg(&self, index: usize) -> u64 {
        self.frame.args()[index]
    }

    /// The `index`th argument where the interface says `int`: the upper half of the register says nothing.
    #[inline(always)]
    pub fn int(&self, index: usize) -> i32 {
        self.frame.args()[index] as i32
    }

    /// The `index`th argument where the interface says `unsigned int`.
    #[inline(always)]
    pub fn uint(&self, index: usize) -> u32 {
        self.frame.args()[index] as u32
    }

    /// [`Self::uint`] as a word of a set of flags or commands.
    #[inline(always)]
    pub fn word(&self, index: usize) -> u64 {
        u64::from(self.uint(index))
    }

    /// The `index`th argument where the interface says `long`, `off_t` or `loff_t`.
    #[inline(always)]
    pub fn long(&self, index: usize) -> i64 {
        self.frame.args()[index] as i64
    }

    /// The `index`th argument where the interface says `size_t`.
    #[inline(always)]
    pub fn size(&self, index: usize) -> usize {
        self.frame.args()[index] as usize
    }

    /// The `index`th argument as the address of a `T`.
    #[inline(always)]
    pub fn pointer<T: Plain>(&self, index: usize) -> UserPtr<T> {
        UserPtr::new(self.frame.args()[index])
    }

    /// The `index`th argument as flags (`int`): `EINVAL` for one that is not `known`.
    #[inline(always)]
    pub fn flags(&self, index: usize, known: u64) -> Result<u64, Errno> {
        let flags = self.word(index);
        if flags & !known != 0 { Err(Errno::EINVAL) } else { Ok(flags) }
    }
}

/// Answers a call.
pub type Handler = fn(&mut Call<'_>) -> SysResult;

/// An area's calls.
pub type Calls = &'static [(u64, Handler)];

/// Every area's calls. No number is listed twice: that would not compile.
const AREAS: &[Calls] = &[
    dir_mount::CALLS,
    dir_names::CALLS,
    fd_events::CALLS,
    fd_table::CALLS,
    file_attr::CALLS,
    file_open::CALLS,
    file_rw::CALLS,
    file_stat::CALLS,
    file_xattr::CALLS,
    poll::CALLS,
    socket::CALLS,
    memory::CALLS,
    memory_advice::CALLS,
    mqueue::CALLS,
    process::CALLS,
    process_compare::CALLS,
    process_setup::CALLS,
    process_usage::CALLS,
    identity::CALLS,
    signals::CALLS,
    clock::CALLS,
    scheduling::CALLS,
    futexes::CALLS,
    system::CALLS,
];

/// Numbers the table covers.
const NUMBERS: usize = 512;

/// How a number is answered and recorded.
#[derive(Clone, Copy)]
struct Answer {
    handler: Handler,
    record: u32,
    /// For [`MORE`]: five or six arguments, not four.
    all: bool,
}

/// No slot in the call ring: it has no arguments, cannot fail and cannot sleep.
const BRIEF: u32 = 0;
/// A slot with three arguments.
const THREE: u32 = 1;
/// A slot with four, or with all six ([`Answer::all`]). One kind for both: with a fourth [`dispatch`] would be a jump
/// table, which the frequent calls would pay for.
const MORE: u32 = 2;

/// The calls that are [`BRIEF`].
const TRIVIAL: [u64; 8] =
    [nr::getpid, nr::gettid, nr::getppid, nr::getpgrp, nr::getuid, nr::geteuid, nr::getgid, nr::getegid];

static TABLE: [Answer; NUMBERS] = build();

const fn build() -> [Answer; NUMBERS] {
    let mut table = [Answer { handler: unimplemented, record: MORE, all: true }; NUMBERS];
    let mut listed = [false; NUMBERS];
    let mut area = 0;
    while area < AREAS.len() {
        let mut at = 0;
        while at < AREAS[area].len() {
            let (nr, handler) = AREAS[area][at];
            assert!(!listed[nr as usize], "a system call is listed twice");
            listed[nr as usize] = true;
            let (record, all) = recording(nr);
            table[nr as usize] = Answer { handler, record, all };
            at += 1;
        }
        area += 1;
    }
    table
}

const fn recording(nr: u64) -> (u32, bool) {
    let mut at = 0;
    while at < TRIVIAL.len() {
        if TRIVIAL[at] == nr {
            return (BRIEF, false);
        }
        at += 1;
    }
    let mut at = 0;
    while at < syscalls::TABLE.len() {
        if syscalls::TABLE[at].nr as u64 == nr {
            return match syscalls::TABLE[at].args.len() {
                0..=3 => (THREE, false),
                4 => (MORE, false),
                _ => (MORE, true),
            };
        }
        at += 1;
    }
    (MORE, true)
}

fn unimplemented(call: &mut Call<'_>) -> SysResult {
    trace::calls::unimplemented_syscall(call.frame.syscall_number());
    Err(Errno::ENOSYS)
}

/// Answers the call in `frame`; `args` are its second and third argument.
#[inline]
pub fn dispatch(frame: &mut UserFrame, args: [u64; 2]) {
    let nr = frame.syscall_number();
    let Some(answer) = TABLE.get(nr as usize) else { return unknown(frame) };
    let watched = trace::watches_calls();
    if !flight::ON && watched == 0 {
        let result = run(answer.handler, current(), frame);
        return finish(frame, result);
    }
    match answer.record | watched {
        BRIEF if flight::ON => {
            let task = current();
            task.calls.brief(nr as u32);
            let result = run(answer.handler, task, frame);
            frame.set_result(result as u64);
        }
        THREE if flight::ON => recorded::<3>(answer.handler, frame, nr, args),
        MORE if flight::ON => {
            if answer.all {
                recorded::<6>(answer.handler, frame, nr, args);
            } else {
                recorded::<4>(answer.handler, frame, nr, args);
            }
        }
        _ => watch(answer.handler, frame),
    }
}

#[inline(always)]
fn run(handler: Handler, task: Current<Task>, frame: &mut UserFrame) -> i64 {
    match handler(&mut Call { task, frame }) {
        Ok(value) => value as i64,
        Err(errno) => errno.to_result(),
    }
}

#[inline(always)]
fn finish(frame: &mut UserFrame, result: i64) {
    frame.set_result(result as u64);
    if (FIRST_RESTART..=LAST_RESTART).contains(&result) {
        // An interrupted call is restarted, or not, on the way out.
        machine::cpu::request_work();
    }
}

/// Answers a call with an entry in the thread's ring, with so many of its arguments. What is in registers is stored
/// before the clock is read, which takes two of them.
#[inline(always)]
fn recorded<const ARGS: usize>(handler: Handler, frame: &mut UserFrame, nr: u64, [b, c]: [u64; 2]) {
    let (task, cpu) = current_here();
    let draft = task.calls.begin();
    draft.call(nr as u32, cpu.0);
    draft.args::<0, 3>([frame.args()[0], b, c]);
    if ARGS > 3 {
        draft.args::<3, 1>([frame.args()[3]]);
    }
    if ARGS > 4 {
        // One after the other: three registers would be one more to save, in each call.
        draft.args::<4, 1>([frame.args()[4]]);
        draft.args::<5, 1>([frame.args()[5]]);
    }
    draft.entry(cycles_in_halves());
    let open = draft.publish();
    // Beside what the handler sees, so that it takes no register over the call.
    let mut recorded = Recorded { call: Call { task, frame: &mut *frame }, open };
    let result = match handler(&mut recorded.call) {
        Ok(value) => value as i64,
        Err(errno) => errno.to_result(),
    };
    recorded.open.end(result, cycles_in_halves());
    finish(frame, result);
}

/// A call and its entry in the ring.
struct Recorded<'a, 'r> {
    call: Call<'a>,
    open: Open<'r>,
}

/// With every argument.
#[inline(always)]
fn recorded_with_all(handler: Handler, frame: &mut UserFrame) {
    let [_, b, c, ..] = frame.args();
    recorded::<6>(handler, frame, frame.syscall_number(), [b, c]);
}

/// A number beyond the table. A ring has 32 bits for it; programs that use more find no name there.
#[cold]
#[inline(never)]
fn unknown(frame: &mut UserFrame) {
    match trace::watches_calls() {
        0 if flight::ON => recorded_with_all(unimplemented, frame),
        0 => {
            let result = run(unimplemented, current(), frame);
            finish(frame, result);
        }
        _ => watch(unimplemented, frame),
    }
}

/// Runs a call that is traced, with an event before and after.
#[cold]
#[inline(never)]
fn watch(handler: Handler, frame: &mut UserFrame) {
    let before = trace::calls::enter(frame);
    if flight::ON {
        recorded_with_all(handler, frame);
    } else {
        let result = run(handler, current(), frame);
        finish(frame, result);
    }
    trace::calls::leave(&before, frame.result() as i64);
}

/// Results that mean "interrupted, maybe to be restarted": -`ERESTART_RESTARTBLOCK` to -`ERESTARTSYS`.
const FIRST_RESTART: i64 = Errno::ERESTART_RESTARTBLOCK.to_result();
const LAST_RESTART: i64 = Errno::ERESTARTSYS.to_result();

/// The process argument 0 names, by its id or by that of one of its threads; the caller for 0.
fn named(call: &Call<'_>) -> Result<Arc<Process>, Errno> {
    match call.int(0) {
        0 => Ok(call.task.process.clone()),
        pid => tree::process(pid as Pid)
            .or_else(|| tree::thread(pid as Pid).map(|thread| thread.process.clone()))
            .ok_or(Errno::ESRCH),
    }
}

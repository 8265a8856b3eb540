//! Dispatch: which function answers which number.
//!
//! Each area lists its calls once, in a `CALLS` table of (number, function) next to the functions; [`TABLE`] is put together
//! from those at compile time. A call that nobody lists leaves an `unimplemented_syscall` event and returns `ENOSYS`.

use linux_abi::Errno;
use machine::arch::UserFrame;
use machine::thread::Current;

use crate::debug;
use crate::task::{Task, current};

mod clock;
mod dir_mount;
mod dir_names;
mod fd_table;
mod file_attr;
mod file_open;
mod file_rw;
mod file_stat;
pub mod file_xattr;
mod futexes;
mod identity;
mod memory;
mod place;
mod poll;
mod process;
mod process_setup;
mod process_usage;
mod scheduling;
mod signals;
mod socket;
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

    /// The `index`th argument where the interface says `int`.
    #[inline(always)]
    pub fn int(&self, index: usize) -> i32 {
        self.frame.args()[index] as i32
    }
}

/// Answers a call.
pub type Handler = fn(&mut Call<'_>) -> SysResult;

/// An area's calls.
pub type Calls = &'static [(u64, Handler)];

/// Every area's calls. A number listed twice is answered by the later one.
const AREAS: &[Calls] = &[
    dir_mount::CALLS,
    dir_names::CALLS,
    fd_table::CALLS,
    file_attr::CALLS,
    file_open::CALLS,
    file_rw::CALLS,
    file_stat::CALLS,
    file_xattr::CALLS,
    poll::CALLS,
    socket::CALLS,
    memory::CALLS,
    process::CALLS,
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

static TABLE: [Handler; NUMBERS] = build();

const fn build() -> [Handler; NUMBERS] {
    let mut table = [unimplemented as Handler; NUMBERS];
    let mut area = 0;
    while area < AREAS.len() {
        let mut at = 0;
        while at < AREAS[area].len() {
            let (nr, handler) = AREAS[area][at];
            table[nr as usize] = handler;
            at += 1;
        }
        area += 1;
    }
    table
}

fn unimplemented(call: &mut Call<'_>) -> SysResult {
    debug::event::unimplemented_syscall(call.frame.syscall_number());
    Err(Errno::ENOSYS)
}

/// Answers the call in `frame`.
#[inline]
pub fn dispatch(frame: &mut UserFrame) {
    let nr = frame.syscall_number();
    let task = current();
    let traced = debug::traces_calls();
    if traced {
        debug::event::syscall_entry(nr, &frame.args());
    }
    let handler = match TABLE.get(nr as usize) {
        Some(handler) => *handler,
        None => unimplemented,
    };
    let result = match handler(&mut Call { task, frame }) {
        Ok(value) => value as i64,
        Err(errno) => errno.to_result(),
    };
    frame.set_result(result as u64);
    if traced {
        debug::event::syscall_exit(nr, result);
    }
    if (FIRST_RESTART..=LAST_RESTART).contains(&result) {
        // Whoever was interrupted settles on the way out whether to start again.
        machine::cpu::request_work();
    }
}

/// Results that mean "interrupted, maybe to be restarted": -`ERESTART_RESTARTBLOCK` to -`ERESTARTSYS`.
const FIRST_RESTART: i64 = Errno::ERESTART_RESTARTBLOCK.to_result();
const LAST_RESTART: i64 = Errno::ERESTARTSYS.to_result();

//! Trace points around every system call: two events, its time, its span, the program's stack canary, its buffers.

use core::sync::atomic::{AtomicU64, Ordering};

use machine::arch::UserFrame;
use machine::time::{cycles, params};

use super::event::Event;
use super::span::{self, Id};
use super::{Category, buffers, canary, event, flight, htrace, is_on, limit, profile, ring};
use crate::upper::try_current;

/// What is kept from the way in to the way out.
pub struct Before {
    nr: u64,
    start: u64,
    events: bool,
    traced: bool,
    canary: Option<canary::Seen>,
    /// Its arguments, while buffers are recorded: exec and signals change the frame.
    args: Option<[u64; 6]>,
}

/// On the way in.
pub fn enter(frame: &UserFrame) -> Before {
    let nr = frame.syscall_number();
    let events = is_on(Category::Syscall);
    if events {
        event::syscall_entry(nr, &frame.args());
    }
    let canary = if is_on(Category::Canary) { canary::look() } else { None };
    let traced = is_on(Category::Htrace);
    if traced {
        htrace::enter(Id::Syscall, nr);
    }
    let args = (flight::ON && is_on(Category::Buffers)).then(|| frame.args());
    if let Some(args) = &args {
        buffers::before(nr, args);
    }
    Before { nr, start: cycles(), events, traced, canary, args }
}

/// On the way out.
pub fn leave(before: &Before, result: i64) {
    let lasted = cycles().saturating_sub(before.start);
    if is_on(Category::Profile) {
        profile::call(before.nr, lasted);
    }
    if before.traced {
        htrace::exit(Id::Syscall, before.nr);
    }
    if let Some(seen) = &before.canary {
        canary::compare(seen, before.nr);
    }
    if let Some(args) = &before.args {
        buffers::after(before.nr, args, result);
    }
    if before.events {
        let texts = try_current().map_or([None; 6], |task| ring::last_texts(&task, before.nr));
        event::syscall_exit(before.nr, result, params().nanoseconds(lasted), &texts);
    }
}

/// The set of categories changes from `before` to `now`: what was collected for those that go is written.
pub fn switched(before: u32, now: u32) {
    report(before & !now);
}

/// Writes and forgets what was collected for these categories.
pub fn report(categories: u32) {
    let has = |category: Category| categories & category as u32 != 0;
    if has(Category::Profile) {
        profile::report();
    }
    if has(Category::Trace) {
        span::report();
    }
    if has(Category::Htrace) {
        htrace::report();
    }
}

/// Calls that are not implemented, made since the start.
static UNIMPLEMENTED: AtomicU64 = AtomicU64::new(0);

/// How many calls were made that are not implemented.
pub fn unimplemented_count() -> u64 {
    UNIMPLEMENTED.load(Ordering::Relaxed)
}

/// A call that is not implemented: counted always, written if that is on.
#[cold]
pub fn unimplemented_syscall(nr: u64) {
    UNIMPLEMENTED.fetch_add(1, Ordering::Relaxed);
    if is_on(Category::Unimplemented) && limit::UNIMPLEMENTED.admits() {
        write_unimplemented(nr);
    }
}

#[inline(never)]
fn write_unimplemented(nr: u64) {
    let mut event = Event::new("unimplemented_syscall");
    event.number("pid", event::pid()).string("name", event::call_name(nr).as_bytes()).number("nr", nr);
    event.emit();
}

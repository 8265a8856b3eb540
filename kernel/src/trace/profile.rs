//! Time per kind of call and in page faults (`debug=profile`), and per phase (`debug=trace`): the meters and their
//! reports.
//!
//! Reports are event lines: when the category is switched off through
//! `/proc/sys/kernel/debug`, and before the machine is switched off or rebooted. A report resets the counts.

use kernel_logic::meter::{Meter, Reading};
use linux_abi::syscalls;
use machine::time::params;

use super::event::{Event, Long};

/// Numbers that are told apart; higher ones share the last meter.
const NUMBERS: usize = 512;

/// What a meter of cycles showed, in nanoseconds; set back.
pub fn take(meter: &Meter) -> Option<Reading> {
    meter.take().map(in_ns)
}

/// What a meter of cycles shows, in nanoseconds.
pub fn read(meter: &Meter) -> Option<Reading> {
    meter.read().map(in_ns)
}

fn in_ns(reading: Reading) -> Reading {
    let clock = params();
    reading.map(|cycles| clock.nanoseconds(cycles))
}

/// A reading as fields of an event.
pub fn put(event: &mut Event<Long>, reading: &Reading) {
    event.number("calls", reading.calls).number("total_ns", reading.total).number("avg_ns", reading.mean());
    event.number("min_ns", reading.min).number("max_ns", reading.max);
}

static CALLS: [Meter; NUMBERS] = [const { Meter::new() }; NUMBERS];
static FAULTS: Meter = Meter::new();

/// A call ended.
pub fn call(nr: u64, cycles: u64) {
    CALLS[(nr as usize).min(NUMBERS - 1)].add(cycles);
}

/// The page faults since the last report (`debug=profile`).
pub fn faults() -> Option<Reading> {
    read(&FAULTS)
}

/// A page fault was dealt with.
pub fn page_fault(cycles: u64) {
    FAULTS.add(cycles);
}

/// Writes `syscall_profile` and `page_faults`.
#[inline(never)]
pub fn report() {
    let entries = CALLS.iter().enumerate().filter_map(|(nr, meter)| Some((nr as u64, take(meter)?)));
    list("syscall_profile", entries, |event, nr, reading| {
        let name = syscalls::by_number(nr).map_or("unknown", |call| call.name);
        event.number("nr", nr).string("name", name.as_bytes());
        put(event, reading);
    });
    if let Some(faults) = take(&FAULTS) {
        let mut event = Event::new("page_faults");
        event.number("count", faults.calls).number("total_ns", faults.total);
        event.number("avg_ns", faults.mean());
        event.emit();
    }
}

/// Writes `entries` as one event of this type.
pub fn list<T>(
    kind: &str,
    entries: impl Iterator<Item = (T, Reading)>,
    mut put: impl FnMut(&mut Event<Long>, T, &Reading),
) {
    let mut event = Event::<Long>::begin(kind);
    event.number("tsc_freq_hz", params().hz);
    event.array("entries", |event| {
        for (what, reading) in entries {
            event.item(|event| put(event, what, &reading));
        }
    });
    event.emit();
}

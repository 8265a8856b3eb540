//! The hierarchical tracer (`debug=htrace`): every span's two ends with its nesting, in a ring per processor.
//!
//! Events are kept, not printed, so that tracing does not change what it traces more than it must; [`report`] prints
//! and forgets them. Nesting is counted per thread; an interrupt nests in the thread it interrupts.

use core::sync::atomic::{AtomicU64, Ordering};

use kernel_logic::recorder::Recorder;
use machine::cpu::{self, CpuId, MAX_CPUS, PerCpu};
use machine::time::{cycles, now};

use super::Traced;
use super::event::Event;
use super::spans::{Id, NAMES};
use crate::upper::try_current;

/// Ends of spans a processor's ring holds.
const RING: usize = 512;
/// Time in cycles and nanoseconds, the span's datum, the thread, span and depth.
const WORDS: usize = 5;

static RINGS: PerCpu<Recorder<WORDS, RING>> = PerCpu::new([const { Recorder::new() }; MAX_CPUS]);
/// Number of each ring's first entry that was not reported.
static REPORTED: PerCpu<AtomicU64> = PerCpu::new([const { AtomicU64::new(0) }; MAX_CPUS]);

/// Tags: which end of a span it is.
const ENTERS: u8 = 1;
const LEAVES: u8 = 2;

/// A span begins.
pub fn enter(id: Id, data: u64) {
    let depth = match try_current() {
        Some(task) => task.span_depth().fetch_add(1, Ordering::Relaxed),
        None => 0,
    };
    put(id, ENTERS, depth, data);
}

/// A span ends.
pub fn exit(id: Id, data: u64) {
    let depth = match try_current() {
        // One that began before the tracer was switched on was not counted.
        Some(task) => {
            let deep = task.span_depth().load(Ordering::Relaxed).saturating_sub(1);
            task.span_depth().store(deep, Ordering::Relaxed);
            deep
        }
        None => 0,
    };
    put(id, LEAVES, depth, data);
}

fn put(id: Id, end: u8, depth: u32, data: u64) {
    let who = try_current().map_or(0, |task| task.ids());
    RINGS.here().put(end, [cycles(), now(), data, who, (id as u64) << 32 | u64::from(depth)]);
}

/// Writes what the rings hold and was not written before: `htrace` events processor by processor, then
/// `htrace_summary`.
#[inline(never)]
pub fn report() {
    for cpu in (0..MAX_CPUS as u32).map(CpuId).filter(|cpu| cpu::online() >> cpu.0 & 1 != 0) {
        let (ring, reported) = (RINGS.of(cpu), REPORTED.of(cpu));
        let counts = ring.counts();
        let first = reported.swap(counts.total, Ordering::Relaxed);
        let fresh = counts.total - first;
        ring.for_each(|entry| {
            if entry.number >= first {
                write(cpu, entry.tag, &entry.words);
            }
        });
        let mut event: Event = Event::at("htrace_summary", cpu, now());
        event.number("total_entries", fresh).number("ring_size", RING as u64);
        event.emit();
    }
}

#[inline(never)]
fn write(cpu: CpuId, end: u8, words: &[u64; WORDS]) {
    let [tsc, ns, data, who, span] = *words;
    let id = span >> 32;
    let mut event: Event = Event::at("htrace", cpu, ns);
    event.number("tsc", tsc).number("pid", who >> 32).number("id", id);
    event.string("name", NAMES.get(id as usize).copied().unwrap_or("unknown").as_bytes());
    event.number("depth", span & 0xffff_ffff);
    event.string("dir", if end == ENTERS { b"enter" } else { b"exit" });
    event.number("data", data);
    event.emit();
}

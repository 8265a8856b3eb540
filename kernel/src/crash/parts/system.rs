//! Sections of the whole system: the tail of the log, and counters.

use kwab_format::List;
use kwab_format::record::{Counter, LogChunk, PageFaults, SpanProfile, SpanProfileEntry};
use machine::cpu::{self, CpuId};
use machine::thread::KERNEL_STACK_SIZE;

use super::dump::COST;
use super::{Dump, Stop, Subject, process, ram};
use crate::fs::{headers, tmpfs};
use crate::mm::{ahead, frames, image, template};
use crate::options::level::Level;
use crate::task::tree;
use crate::trace::{calls, profile, span};
use crate::{log as kernel_log, sched};

/// Bytes copied out of the log at a time.
const PIECE: usize = 1024;

pub(super) fn log(dump: &mut Dump<'_>, subject: &Subject<'_>) -> Result<(), Stop> {
    let end = dump.get(kernel_log::try_written)?;
    let mut at = end.saturating_sub(subject.amount.log as u64);
    while at < end {
        let mut bytes = [0; PIECE];
        let wanted = (end - at).min(PIECE as u64) as usize;
        let (from, len) = dump.get(|| kernel_log::try_read(at, &mut bytes[..wanted]))?;
        if len == 0 {
            break;
        }
        dump.put(&LogChunk { bytes: Some(&bytes[..len]), log_offset: Some(from), ..LogChunk::default() })?;
        at = from + len as u64;
    }
    Ok(())
}

pub(super) fn counters(dump: &mut Dump<'_>, _subject: &Subject<'_>) -> Result<(), Stop> {
    put(dump, "memory", "total", frames::total() as u64, "pages")?;
    put(dump, "memory", "in magazines", machine::frame::in_magazines() as u64, "pages")?;
    put(dump, "scheduler", "runnable", u64::from(sched::runnable()), "threads")?;
    for number in (0..64).filter(|number| cpu::online() >> number & 1 != 0) {
        let switches = sched::of(CpuId(number)).switches.load(core::sync::atomic::Ordering::Relaxed);
        let mut name = kernel_log::Line::<24>::new();
        // It always fits.
        let _ = core::fmt::Write::write_fmt(&mut name, format_args!("switches on cpu {number}"));
        put(dump, "scheduler", core::str::from_utf8(name.bytes()).unwrap_or("switches"), switches, "")?;
    }
    if let Some(left_out) = process::left_out() {
        put(dump, "dumps", "of processes left out", left_out, "")?;
    }
    put(dump, "calls", "not implemented", calls::unimplemented_count(), "")?;
    executions(dump)?;
    times(dump)?;
    let blocks = dump.get(frames::try_blocks)?;
    let mut free = 0;
    for (order, count) in blocks.iter().enumerate() {
        free += (*count as u64) << order;
        let mut name = kernel_log::Line::<32>::new();
        // It always fits.
        let _ = core::fmt::Write::write_fmt(&mut name, format_args!("free blocks of order {order}"));
        dump.put(&Counter {
            group: Some(b"memory"),
            name: Some(name.bytes()),
            value: i64::try_from(*count).ok(),
            ..Counter::default()
        })?;
    }
    let unjoined = dump.get(frames::try_unjoined)?;
    if unjoined != 0 {
        dump.put(&Counter {
            group: Some(b"memory"),
            name: Some(b"free blocks apart from their free buddies"),
            value: i64::try_from(unjoined).ok(),
            ..Counter::default()
        })?;
    }
    free += frames::waiting() as u64;
    put_pages(dump, "free", free)?;
    let in_use = (frames::given() as u64).saturating_sub(free + machine::frame::in_magazines() as u64);
    put_pages(dump, "in use", in_use)?;
    owners(dump)
}

/// Which executions had templates, and what was made for them in advance, as far as the samples tell.
fn executions(dump: &mut Dump<'_>) -> Result<(), Stop> {
    for (name, count) in template::counts() {
        put(dump, "exec templates", name, count, "")?;
    }
    let (prepared, waiting) = machine::frame::prepared();
    put(dump, "idle", "cleared in advance", prepared, "frames")?;
    put(dump, "idle", "cleared and waiting", waiting as u64, "frames")?;
    for (name, count) in image::counts() {
        put(dump, "exec images", name, count, "")?;
    }
    for (name, count) in headers::counts() {
        put(dump, "exec headers", name, count, "")?;
    }
    let seen = ahead::seen();
    put(dump, "exec", "executions", seen.executions, "")?;
    put(dump, "exec", "samples", seen.samples, "")?;
    put(dump, "exec", "made in advance for the samples", seen.made, "pages")?;
    put(dump, "exec", "made in advance and never accessed", seen.unused, "pages")
}

/// Times of spans (`debug=trace`) and of page faults (`debug=profile`) since the last report.
#[inline(never)]
fn times(dump: &mut Dump<'_>) -> Result<(), Stop> {
    let mut entries = [SpanProfileEntry::default(); span::KINDS];
    let mut count = 0;
    for ((id, name, reading), entry) in span::readings().zip(&mut entries) {
        *entry = SpanProfileEntry {
            id: Some(id),
            name: Some(name.as_bytes()),
            calls: Some(reading.calls),
            total_ns: Some(reading.total),
            avg_ns: Some(reading.mean()),
            min_ns: Some(reading.min),
            max_ns: Some(reading.max),
            ..SpanProfileEntry::default()
        };
        count += 1;
    }
    if count != 0 {
        let entries = Some(List::new(&entries[..count]));
        let tsc_freq_hz = Some(machine::time::params().hz);
        dump.put(&SpanProfile { tsc_freq_hz, entries, ..SpanProfile::default() })?;
    }
    if let Some(faults) = profile::faults() {
        let (count, total_ns, avg_ns) = (Some(faults.calls), Some(faults.total), Some(faults.mean()));
        dump.put(&PageFaults { count, total_ns, avg_ns, ..PageFaults::default() })?;
    }
    Ok(())
}

fn put(dump: &mut Dump<'_>, group: &str, name: &str, value: u64, unit: &str) -> Result<(), Stop> {
    dump.put(&Counter {
        group: Some(group.as_bytes()),
        name: Some(name.as_bytes()),
        value: i64::try_from(value).ok(),
        unit: Some(unit.as_bytes()),
        ..Counter::default()
    })
}

fn put_pages(dump: &mut Dump<'_>, name: &str, pages: u64) -> Result<(), Stop> {
    put(dump, "memory", name, pages, "pages")
}

/// Memory in use by process. A page that processes share counts for each of them: the sum may be more than there is in
/// use, and less only if pages were lost.
fn owners(dump: &mut Dump<'_>) -> Result<(), Stop> {
    let (mut programs, mut tables, mut threads) = (0, 0, 0);
    dump.get(|| {
        (programs, tables, threads) = (0, 0, 0);
        tree::try_visit(
            &mut |thread| {
                threads += 1;
                let leads = thread.pid() == thread.tid();
                if let Some((pages, own)) =
                    thread.mm.try_with(|mm| (mm.resident(), mm.space.table_frames())).filter(|_| leads)
                {
                    programs += pages.anonymous + pages.shmem;
                    tables += own as u64;
                }
                true
            },
            &mut |_| true,
        )
    })?;
    put_pages(dump, "of programs", programs)?;
    put_pages(dump, "of page tables", tables)?;
    put_pages(dump, "of files", tmpfs::pages())?;
    put_pages(dump, "of kernel stacks", threads * (KERNEL_STACK_SIZE as u64 >> 12))?;
    put_pages(dump, "of the kernel heap", machine::heap::usage().held as u64 >> 12)
}

/// What the parts before took, and how much memory there was for them to take.
pub(super) fn cost(dump: &mut Dump<'_>, subject: &Subject<'_>) -> Result<(), Stop> {
    for (kind, ns, bytes) in COST.all() {
        let name = kind.name().map(str::as_bytes);
        for (group, value, unit) in [(&b"dump time"[..], ns, &b"ns"[..]), (b"dump size", bytes, b"bytes")] {
            let value = i64::try_from(value).ok();
            dump.put(&Counter { group: Some(group), name, value, unit: Some(unit), ..Counter::default() })?;
        }
    }
    if subject.amount.level == Level::Brief {
        return Ok(());
    }
    let level = subject.amount.level;
    let (group, name) = (Some(&b"dump level"[..]), Some(level.name().as_bytes()));
    dump.put(&Counter { group, name, value: Some(level as i64), ..Counter::default() })?;
    for (name, wanted, stored, zeros) in ram::tallies() {
        let values = [(&b"memory wanted"[..], wanted), (b"memory stored", stored), (b"memory of zeros", zeros)];
        for (group, value) in values {
            let (group, name, unit) = (Some(group), Some(name.as_bytes()), Some(&b"bytes"[..]));
            dump.put(&Counter { group, name, value: i64::try_from(value).ok(), unit, ..Counter::default() })?;
        }
    }
    Ok(())
}

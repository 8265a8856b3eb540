//! Says an event of the flight recorder in words: which number means what, by the kind of the event.
//!
//! The meanings are those of `FlightKind` in `kwab-format/RECORDS.md`. Events that a log prints have their details as
//! text and are shown as they stand.

use kwab_format::record::{FlightEvent, FlightKind};

use crate::text::console::printable;

/// The event in words, without time, processor and process.
pub(super) fn line(event: &FlightEvent<'_>) -> String {
    let name = event.kind.and_then(FlightKind::name).map(str::to_string);
    let name = name.or_else(|| event.name.map(printable)).unwrap_or_else(|| "?".to_string());
    match details(event) {
        Some(details) if !details.is_empty() => format!("{name}: {details}"),
        _ => name,
    }
}

/// What the event's numbers say, or the details as a log printed them.
pub(crate) fn details(event: &FlightEvent<'_>) -> Option<String> {
    if let Some(detail) = event.detail {
        return Some(printable(detail));
    }
    let known = event.kind.and_then(|kind| numbers(kind, event.tid, [event.a, event.b, event.c]));
    known.or_else(|| {
        let all: Vec<_> = [event.a, event.b, event.c, event.d].into_iter().map_while(|word| word).map(hex).collect();
        (!all.is_empty()).then(|| all.join(" "))
    })
}

/// Absent when a number that the kind needs is absent.
fn numbers(kind: FlightKind, tid: Option<u32>, [a, b, c]: [Option<u64>; 3]) -> Option<String> {
    Some(match kind {
        FlightKind::CONTEXT_SWITCH => {
            format!("{} → {}", thread(a, c), thread(Some(b?), tid.map(u64::from)))
        }
        FlightKind::IPI_SEND => format!("to CPU {}", a?),
        FlightKind::IPI_RECEIVE => String::new(),
        FlightKind::TLB_SEND => format!("to {}{}", processors(a?), kernel_too(b)),
        FlightKind::TLB_RECEIVE => kernel_too(Some(a?)).trim_start_matches(", ").to_string(),
        FlightKind::PAGE_FAULT => {
            let (access, page) = access(c?);
            format!("{access} {}, {page}, ip {}", hex(a?), hex(b?))
        }
        FlightKind::MMAP | FlightKind::MPROTECT => format!("{} {}", range(a?, b?), rights(c?)),
        FlightKind::MUNMAP => range(a?, b?),
        FlightKind::SIGNAL_SEND => format!("{} to {}", signal(a?), b?),
        FlightKind::SIGNAL_DELIVER if b? == 0 => format!("{}, default action", signal(a?)),
        FlightKind::SIGNAL_DELIVER => format!("{}, handler {}", signal(a?), hex(b?)),
        FlightKind::FORK => format!("{} → {}", a?, b?),
        FlightKind::EXEC => format!("entry {} sp {}", hex(a?), hex(b?)),
        FlightKind::EXIT => {
            let others = if b == Some(0) { ", other threads go on" } else { "" };
            format!("{}{others}", status(a?))
        }
        FlightKind::IRQ => format!("{}{}", source(a?), repeats(b)),
        FlightKind::LOCK_CONTENDED => format!("{}, held by CPU {}", hex(a?), b?),
        FlightKind::LOCK_TAKEN => hex(a?),
        FlightKind::SLEEP => String::new(),
        _ => return None,
    })
}

fn hex(word: u64) -> String {
    format!("{word:#x}")
}

/// `2`, or `2/5` for a thread that is not the first of its process.
fn thread(pid: Option<u64>, tid: Option<u64>) -> String {
    match (pid, tid) {
        (Some(0), _) => "idle".to_string(),
        (Some(pid), Some(tid)) if tid != pid => format!("{pid}/{tid}"),
        (Some(pid), _) => pid.to_string(),
        (None, _) => "?".to_string(),
    }
}

/// `CPU 1`, `CPUs 1, 3`.
fn processors(mask: u64) -> String {
    let numbers: Vec<_> = (0..64).filter(|bit| mask >> bit & 1 != 0).map(|bit| bit.to_string()).collect();
    let word = if numbers.len() == 1 { "CPU" } else { "CPUs" };
    format!("{word} {}", numbers.join(", "))
}

fn kernel_too(kernel: Option<u64>) -> &'static str {
    if kernel.is_some_and(|kernel| kernel != 0) { ", kernel translations too" } else { "" }
}

/// The access and the page that the error code of a page fault tells of (SDM volume 3, 4.7).
fn access(code: u64) -> (&'static str, &'static str) {
    let access = match (code & 4 != 0, code & 0x10 != 0, code & 2 != 0) {
        (true, true, _) => "user fetch",
        (true, false, true) => "user write",
        (true, false, false) => "user read",
        (false, true, _) => "kernel fetch",
        (false, false, true) => "kernel write",
        (false, false, false) => "kernel read",
    };
    (access, if code & 1 != 0 { "present" } else { "absent" })
}

fn range(start: u64, length: u64) -> String {
    format!("{}-{}", hex(start), hex(start.wrapping_add(length)))
}

/// `rw-` of read 1, write 2, execute 4.
fn rights(prot: u64) -> String {
    [(1, 'r'), (2, 'w'), (4, 'x')].map(|(bit, letter)| if prot & bit != 0 { letter } else { '-' }).iter().collect()
}

fn signal(number: u64) -> String {
    let known = linux_abi::Signal::new(number).and_then(linux_abi::Signal::name);
    known.map_or_else(|| format!("signal {number}"), ToString::to_string)
}

/// A wait status as wait(2) packs it.
fn status(status: u64) -> String {
    match status & 0x7f {
        0 => format!("status {}", status >> 8 & 0xff),
        number => format!("by {}", signal(number)),
    }
}

/// Source of an interrupt: 0 the timer, 1 the console, 16 and up the lines of the platform.
fn source(number: u64) -> String {
    match number {
        0 => "timer".to_string(),
        1 => "console".to_string(),
        16.. => format!("line {}", number - 16),
        other => format!("source {other}"),
    }
}

fn repeats(count: Option<u64>) -> String {
    count.filter(|count| *count > 0).map_or_else(String::new, |count| format!(", and {count} more"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(kind: FlightKind, numbers: &[u64]) -> String {
        let at = |index: usize| numbers.get(index).copied();
        let event = FlightEvent { kind: Some(kind), tid: Some(5), a: at(0), b: at(1), ..FlightEvent::default() };
        line(&FlightEvent { c: at(2), d: at(3), ..event })
    }

    #[test]
    fn each_kind_says_what_its_numbers_mean() {
        for (kind, numbers, words) in [
            (FlightKind::CONTEXT_SWITCH, &[2, 0, 2, 1][..], "context switch: 2 → idle"),
            (FlightKind::CONTEXT_SWITCH, &[2, 4, 3, 1], "context switch: 2/3 → 4/5"),
            (FlightKind::IPI_SEND, &[1, 0], "ipi send: to CPU 1"),
            (FlightKind::IPI_RECEIVE, &[1, 0], "ipi receive"),
            (FlightKind::TLB_SEND, &[0b1010, 1], "tlb shootdown send: to CPUs 1, 3, kernel translations too"),
            (FlightKind::TLB_RECEIVE, &[0], "tlb shootdown receive"),
            (FlightKind::PAGE_FAULT, &[0x10, 0x20, 6], "page fault: user write 0x10, absent, ip 0x20"),
            (FlightKind::MMAP, &[0x1000, 0x2000, 3], "mmap: 0x1000-0x3000 rw-"),
            (FlightKind::MUNMAP, &[u64::MAX, 2], "munmap: 0xffffffffffffffff-0x1"),
            (FlightKind::SIGNAL_SEND, &[11, 7], "signal send: SIGSEGV to 7"),
            (FlightKind::SIGNAL_DELIVER, &[10, 0], "signal deliver: SIGUSR1, default action"),
            (FlightKind::FORK, &[2, 3], "fork: 2 → 3"),
            (FlightKind::EXIT, &[9, 1], "exit: by SIGKILL"),
            (FlightKind::EXIT, &[0x300, 0], "exit: status 3, other threads go on"),
            (FlightKind::IRQ, &[0, 41, 9], "irq: timer, and 41 more"),
            (FlightKind::IRQ, &[20], "irq: line 4"),
            (FlightKind::LOCK_CONTENDED, &[0xf0, 1], "lock contended: 0xf0, held by CPU 1"),
            (FlightKind::LOCK_TAKEN, &[0xf0], "lock taken: 0xf0"),
            (FlightKind::WAKE, &[], "wake"),
            (FlightKind(900), &[1, 2], "?: 0x1 0x2"),
        ] {
            assert_eq!(said(kind, numbers), words);
        }
        // A number that is not there leaves the rest as it stands.
        assert_eq!(said(FlightKind::PAGE_FAULT, &[0x10]), "page fault: 0x10");
    }
}

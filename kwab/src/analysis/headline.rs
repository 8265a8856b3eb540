//! What died and of what, in the one line that stands at the head of every report.

use kwab_format::record::CauseKind;
use linux_abi::Signal;

use crate::decode::without_debug_location;
use crate::model::line::printable;
use crate::model::{Death, program_name};

/// Accesses below this address are through a null pointer plus an offset.
pub(crate) const NULL_PAGE: u64 = 4096;

/// A death in one line: `kernel page fault on CPU 0, running sh[2]: Read of 0x18, error code 0x0`, or
/// `/bin/grep[130] died of SIGSEGV: accessed 0x10, near NULL, at ip 0x401000`.
#[must_use]
pub(crate) fn of(death: &Death) -> String {
    if death.kind == Some(CauseKind::LIVE) {
        let message = message(death, "").map_or(String::new(), |message| format!(": {message}"));
        return format!("nothing died (live dump){message}");
    }
    if !death.is_of_kernel() {
        let how = in_brief(death).map_or(String::new(), |how| format!(": {how}"));
        return format!("{} died of {}{how}", victim(death), signal(death));
    }
    let what = of_kernel(death);
    let cpu = death.cpu.map_or(String::new(), |cpu| format!(" on CPU {cpu}"));
    let name = death.comm.as_deref().or(death.cmdline.as_deref()).map(printed);
    let running = match (name, death.pid) {
        (Some(name), Some(pid)) => format!(", running {name}[{pid}]"),
        (None, Some(pid)) => format!(", running process {pid}"),
        (Some(name), None) => format!(", running {name}"),
        (None, None) => String::new(),
    };
    let message = message(death, &what).map_or(String::new(), |message| format!(": {message}"));
    format!("kernel {what}{cpu}{running}{message}")
}

/// What died: `/bin/grep[130]`, or `kernel`.
#[must_use]
pub(crate) fn victim(death: &Death) -> String {
    if death.is_of_kernel() {
        return "kernel".to_owned();
    }
    let name = program_name(death.cmdline.as_deref(), death.comm.as_deref()).map(printed);
    match (name, death.pid) {
        (Some(program), Some(pid)) => format!("{program}[{pid}]"),
        (Some(program), None) => program,
        (None, Some(pid)) => format!("process {pid}"),
        (None, None) => "a process".to_owned(),
    }
}

/// The name of the signal that a program died of.
#[must_use]
pub(crate) fn signal(death: &Death) -> String {
    match (&death.signal_name, death.signal.map(u64::from).and_then(Signal::new)) {
        (Some(name), _) => printed(name),
        (None, Some(signal)) => signal.to_string(),
        (None, None) => "a signal".to_owned(),
    }
}

/// What the kernel died of, without the word `kernel`.
fn of_kernel(death: &Death) -> String {
    let kind = match death.kind {
        Some(CauseKind::EXCEPTION) => death.exception.as_deref().map(printed),
        Some(CauseKind::SYSRQ) => Some("panic (sysrq)".to_owned()),
        Some(CauseKind::NMI) => Some("stopped (nmi)".to_owned()),
        Some(CauseKind::PANIC | CauseKind::OOPS | CauseKind::STACK_OVERFLOW) => None,
        // Most of these a kernel survives.
        kind => {
            in_words(kind, &String::from_utf8_lossy(death.message.as_deref().unwrap_or_default())).map(str::to_owned)
        }
    };
    let what = kind.unwrap_or_else(|| death.kind_name().to_owned());
    what.strip_prefix("kernel ").map_or(what.clone(), str::to_owned)
}

/// What kind of death it is, where the message says it better than the kind that a dump can record: what the kernel
/// survives by itself is not a bug yet.
pub(crate) fn in_words(kind: Option<CauseKind>, message: &str) -> Option<&'static str> {
    survived(message).filter(|_| kind == Some(CauseKind::BUG))
}

/// What a kernel reports and goes on, in a word.
fn survived(message: &str) -> Option<&'static str> {
    const REPORTS: &[(&str, &str)] = &[
        ("WARNING", "warning"),
        ("Out of memory", "out-of-memory kill"),
        ("page allocation ", "warning"),
        ("irq: nobody cared", "warning"),
        ("sysfs: cannot create", "warning"),
        ("stack dump", "warning"),
    ];
    let begins = REPORTS.iter().find(|(begin, _)| message.trim_start().starts_with(begin)).map(|(_, word)| *word);
    begins.or(message.contains(" invoked oom-killer").then_some("out-of-memory kill"))
}

/// The first line of the message that tells something, without the words that stand before it already.
fn message(death: &Death, what: &str) -> Option<String> {
    let message = printed(death.message.as_deref()?);
    let message = without_debug_location(&message);
    // The line that only says where a panic was raised says less than the next one.
    let says = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with("panicked at");
    let line = message.lines().find(says).unwrap_or(&message).trim();
    let line = line.strip_prefix("kernel ").unwrap_or(line);
    let rest = line.strip_prefix(what).filter(|_| !what.is_empty());
    let rest = rest.and_then(|rest| [": ", " in the kernel, "].iter().find_map(|join| rest.strip_prefix(join)));
    Some(rest.unwrap_or(line).to_owned()).filter(|line| !line.is_empty() && line != what)
}

/// The fault in half a sentence.
fn in_brief(death: &Death) -> Option<String> {
    match (death.ip, death.fault_addr) {
        (Some(ip), _) if ip < NULL_PAGE => Some(format!("jumped to {ip:#x}")),
        (Some(ip), Some(addr)) if addr < NULL_PAGE => Some(format!("accessed {addr:#x}, near NULL, at ip {ip:#x}")),
        (Some(ip), Some(addr)) if addr == ip => Some(format!("cannot execute at {ip:#x}")),
        (Some(ip), Some(addr)) => Some(format!("accessed {addr:#x} at ip {ip:#x}")),
        (Some(ip), None) => Some(format!("at ip {ip:#x}")),
        (None, Some(addr)) => Some(format!("accessed {addr:#x}")),
        (None, None) => None,
    }
}

/// Bytes of a dump as text, line by line.
fn printed(bytes: &[u8]) -> String {
    bytes.split(|byte| *byte == b'\n').map(printable).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn death(kind: CauseKind, message: &str) -> Death {
        let message = Some(message.as_bytes().to_vec());
        Death { kind: Some(kind), message, cpu: Some(1), pid: Some(7), comm: Some(b"sh".to_vec()), ..Death::default() }
    }

    #[test]
    fn a_word_stands_once() {
        let mut fault = death(CauseKind::EXCEPTION, "kernel page fault: Read of 0x18, error code 0x0");
        fault.exception = Some(b"page fault".to_vec());
        assert_eq!(of(&fault), "kernel page fault on CPU 1, running sh[7]: Read of 0x18, error code 0x0");
        let mut protection = death(CauseKind::EXCEPTION, "general protection in the kernel, vector 13");
        protection.exception = Some(b"general protection".to_vec());
        assert_eq!(of(&protection), "kernel general protection on CPU 1, running sh[7]: vector 13");
        let again = death(CauseKind::PANIC, "kernel panic");
        assert_eq!(of(&again), "kernel panic on CPU 1, running sh[7]");
    }

    #[test]
    fn the_first_line_that_tells_something_is_the_message() {
        let text = "panicked at kernel/src/a.rs:1:2:\nassertion `left == right` failed\n  left: 1\n right: 2";
        let mut panic = Death { cpu: None, pid: None, ..death(CauseKind::PANIC, text) };
        assert_eq!(of(&panic), "kernel panic, running sh: assertion `left == right` failed");
        panic.comm = None;
        assert_eq!(of(&panic), "kernel panic: assertion `left == right` failed");
        let live = death(CauseKind::LIVE, "\n asked for by a test");
        assert_eq!(of(&live), "nothing died (live dump): asked for by a test");
    }

    #[test]
    fn a_program_without_a_name_or_a_number_is_a_process() {
        let mut program = Death { kind: Some(CauseKind::FATAL_SIGNAL), signal: Some(11), ..Death::default() };
        assert_eq!(of(&program), "a process died of SIGSEGV");
        (program.pid, program.ip, program.fault_addr) = (Some(3), Some(0x40_1000), Some(0x10));
        assert_eq!(of(&program), "process 3 died of SIGSEGV: accessed 0x10, near NULL, at ip 0x401000");
    }
}

//! Says any record in one line: for timelines, `kwab cat` and the terminal interface.

use kwab_format::record::{
    AnyRecord, Cause, CauseKind, Htrace, PageFault, Signal, SyscallEntry, SyscallExit, SyscallRecord,
};

use super::call::{Call, arguments, result};
use super::{flight, json};
use crate::units;
use kwab_format::RawRecord;

pub use crate::text::console::printable;

/// The longest record that is summed up in words, bytes.
const LONGEST: usize = 64 << 10;

/// The summary of a record; of a long one its type and its length.
pub fn in_words(record: &AnyRecord<'_>, raw: RawRecord<'_>) -> String {
    if raw.body.len() > LONGEST {
        return format!("{}: {} bytes", json::type_name(raw.kind).replace('_', " "), raw.body.len());
    }
    summary(record, raw)
}

/// What happened, without time, processor and process, which have columns of their own.
pub fn summary(record: &AnyRecord<'_>, raw: RawRecord<'_>) -> String {
    match record {
        AnyRecord::SyscallEntry(entry) => entry_line(entry),
        AnyRecord::SyscallExit(exit) => exit_line(exit),
        AnyRecord::SyscallRecord(call) => ring_line(call),
        AnyRecord::PageFault(fault) => fault_line(fault),
        AnyRecord::Signal(signal) => signal_line(signal),
        AnyRecord::Htrace(trace) => trace_line(trace),
        AnyRecord::FlightEvent(event) => flight::line(event),
        AnyRecord::ProcessFork(fork) => format!("fork: child {}", decimal(fork.child_pid)),
        AnyRecord::ProcessExec(exec) => format!("exec {} entry {}", text(exec.argv0), word(exec.entry)),
        AnyRecord::ProcessExit(exit) => {
            let how = if exit.by_signal == Some(true) { " by a signal" } else { "" };
            format!("exit: status {}{how}", exit.status.unwrap_or(0))
        }
        AnyRecord::UnimplementedSyscall(call) => {
            format!("unimplemented system call {} {}", call.nr.unwrap_or(-1), text(call.name))
        }
        AnyRecord::CanaryCheck(check) => {
            let verdict = if check.corrupted == Some(true) { "CORRUPTED" } else { "ok" };
            let (expected, found) = (word(check.expected), word(check.found));
            format!("canary {verdict} {} {}: expected {expected} found {found}", text(check.when), text(check.syscall))
        }
        AnyRecord::Usercopy(copy) => {
            let length = copy.len.unwrap_or(0);
            format!("user copy {} {} {length} bytes {}", text(copy.dir), word(copy.addr), text(copy.ctx))
        }
        AnyRecord::UserFault(fault) => {
            format!("user fault: {} at ip {}", text(fault.exception), word(fault.ip))
        }
        AnyRecord::UsercopyFault(fault) => format!(
            "user copy failed at {} ({} of {} bytes left) {}",
            word(fault.fault_addr),
            fault.remaining.unwrap_or(0),
            fault.orig_len.unwrap_or(0),
            text(fault.ctx)
        ),
        AnyRecord::CrashReport(report) => {
            format!("crash report: {} of {} at ip {}", text(report.signal_name), text(report.cmdline), word(report.ip))
        }
        AnyRecord::Panic(panic) => format!("panic: {}", text(panic.message).replace('\n', " ")),
        AnyRecord::PageVerifyFail(fail) => {
            let at = fail.first_diff.unwrap_or(0);
            format!("page {} differs from its file at +{at:#x}", word(fail.vaddr))
        }
        AnyRecord::Cause(cause) => cause_line(cause),
        AnyRecord::Text(record) => within_a_line(record.bytes.unwrap_or_default()),
        _ => other(raw),
    }
}

/// The process a record is about.
pub fn pid(record: &AnyRecord<'_>) -> Option<u32> {
    match record {
        AnyRecord::SyscallEntry(record) => record.pid,
        AnyRecord::SyscallExit(record) => record.pid,
        AnyRecord::SyscallRecord(record) => record.pid,
        AnyRecord::UnimplementedSyscall(record) => record.pid,
        AnyRecord::CanaryCheck(record) => record.pid,
        AnyRecord::PageFault(record) => record.pid,
        AnyRecord::UserFault(record) => record.pid,
        AnyRecord::UsercopyFault(record) => record.pid,
        AnyRecord::UcopyTraceDump(record) => record.pid,
        AnyRecord::Usercopy(record) => record.pid,
        AnyRecord::Signal(record) => record.pid,
        AnyRecord::SignalStackWrite(record) => record.pid,
        AnyRecord::ProcessFork(record) => record.parent_pid,
        AnyRecord::ProcessExec(record) => record.pid,
        AnyRecord::ProcessExit(record) => record.pid,
        AnyRecord::CrashReport(record) => record.pid,
        AnyRecord::PageVerifyFail(record) => record.pid,
        AnyRecord::HugePageVerifyFail(record) => record.pid,
        AnyRecord::PageVerifyOk(record) => record.pid,
        AnyRecord::VmAudit(record) => record.pid,
        AnyRecord::ExecPrefault(record) => record.pid,
        AnyRecord::UnknownEvent(record) => record.pid,
        AnyRecord::FlightEvent(record) => record.pid,
        AnyRecord::Frame(record) => record.pid,
        AnyRecord::Task(record) => record.pid,
        AnyRecord::Vma(record) => record.pid,
        AnyRecord::Cause(record) => record.pid,
        _ => None,
    }
}

fn entry_line(entry: &SyscallEntry<'_>) -> String {
    let call = Call { nr: entry.nr, name: entry.name, args: entry.args(), ..Call::default() };
    format!("→ {}", arguments(&call))
}

fn exit_line(exit: &SyscallExit<'_>) -> String {
    let value = exit.result.map_or_else(|| "?".to_string(), |value| result(exit.nr, value));
    // Kernels that write dumps themselves leave the names to the table.
    let known = exit.nr.and_then(|nr| u64::try_from(nr).ok()).and_then(linux_abi::syscalls::by_number);
    let name = match (exit.name, known) {
        (None, Some(known)) => known.name.to_string(),
        (name, _) => text(name),
    };
    format!("← {name} = {value}")
}

fn ring_line(call: &SyscallRecord<'_>) -> String {
    let (args, texts) = (call.args(), call.texts());
    let shown = arguments(&Call { nr: call.nr, name: call.name, args, texts, result: call.result });
    match call.result {
        Some(value) => format!("{shown} = {}", result(call.nr, value)),
        None if call.in_progress == Some(false) => format!("{shown} = ? (not recorded)"),
        None => format!("{shown} = ? (in progress)"),
    }
}

fn fault_line(fault: &PageFault<'_>) -> String {
    let outcome = if fault.resolved == Some(false) { "NOT resolved" } else { "resolved" };
    let reason = text(fault.reason);
    format!("page fault at {} ip {} {reason}: {outcome}", word(fault.vaddr), word(fault.ip))
}

fn signal_line(signal: &Signal<'_>) -> String {
    let number = signal.signal.unwrap_or(0);
    let name = signal.signal_name.map_or_else(|| format!("signal {number}"), |name| text(Some(name)));
    format!("{name}: {} at ip {}", text(signal.action), word(signal.ip))
}

/// `death: exception in /bin/exam[2]: kernel page fault: Read of 0x18, at ip 0xffffffff801d23c9`.
fn cause_line(cause: &Cause<'_>) -> String {
    let kind = cause.kind.and_then(CauseKind::name).unwrap_or("?");
    let who = cause.cmdline.and_then(|line| line.split(|byte| *byte == b' ').next()).or(cause.comm);
    let who = who.map(|who| format!(" in {}[{}]", within_a_line(who), decimal(cause.pid)));
    let what = match (cause.signal_name, cause.message) {
        (Some(signal), _) => format!(": {}", within_a_line(signal)),
        (None, Some(message)) => format!(": {}", within_a_line(message).replace('\n', " ")),
        (None, None) => String::new(),
    };
    let at = cause.ip.map(|ip| format!(", at ip {ip:#x}")).unwrap_or_default();
    format!("death: {kind}{}{what}{at}", who.unwrap_or_default())
}

fn trace_line(trace: &Htrace<'_>) -> String {
    let indent = "  ".repeat(trace.depth.unwrap_or(0).min(16) as usize);
    let arrow = match trace.dir {
        Some(b"enter") => ">",
        Some(b"exit") => "<",
        _ => "-",
    };
    let data = match (trace.name, trace.data) {
        (Some(b"page_fault"), Some(address)) => format!(" {address:#x}"),
        (Some(b"syscall"), Some(nr)) => match linux_abi::syscalls::by_number(nr) {
            Some(call) => format!(" {}", call.name),
            None => format!(" {nr}"),
        },
        (_, Some(data)) if data != 0 => format!(" {data:#x}"),
        _ => String::new(),
    };
    format!("{indent}{arrow} {}{data}", text(trace.name))
}

/// The longest record whose members are spelled out, and the longest text that a line holds, bytes.
const LONG: usize = 16 << 10;

/// Records without a sentence of their own: their members.
fn other(raw: RawRecord<'_>) -> String {
    if raw.body.len() > LONG {
        let name = json::type_name(raw.kind).replace('_', " ");
        return format!("{name}: {}, too long for a line", units::memory(raw.body.len() as u64));
    }
    let object = json::object(raw);
    let name = object.get("type").and_then(|name| name.as_str()).unwrap_or("record").replace('_', " ");
    let hidden = ["type", "line", "offset", "seq", "cpu", "ns", "tsc", "pid"];
    let members = object.iter().filter(|(key, _)| !hidden.contains(&key.as_str()));
    let shown: Vec<_> = members
        .map(|(key, value)| match value {
            serde_json::Value::String(text) => format!("{key} {text}"),
            serde_json::Value::Array(items) => format!("{} {key}", items.len()),
            serde_json::Value::Object(items) => format!("{} {key}", items.len()),
            value => format!("{key} {value}"),
        })
        .collect();
    format!("{name}: {}", shown.join(", "))
}

fn text(bytes: Option<&[u8]>) -> String {
    bytes.map_or_else(|| "?".to_string(), within_a_line)
}

/// A text, as much of it as a line holds.
fn within_a_line(bytes: &[u8]) -> String {
    match bytes.split_at_checked(LONG) {
        Some((shown, rest)) if !rest.is_empty() => {
            format!("{}… ({} more)", printable(shown), units::memory(rest.len() as u64))
        }
        _ => printable(bytes),
    }
}

fn word(value: Option<u64>) -> String {
    value.map_or_else(|| "?".to_string(), |value| format!("{value:#x}"))
}

fn decimal(value: Option<u32>) -> String {
    value.map_or_else(|| "?".to_string(), |value| value.to_string())
}

#[cfg(test)]
mod tests {
    use kwab_format::RecordKind;
    use kwab_format::record::Text;

    use super::*;

    #[test]
    fn a_record_of_megabytes_makes_one_short_line() {
        let body = vec![b'a'; 4 << 20];
        let raw = RawRecord { kind: RecordKind(27), body: &body };
        assert_eq!(other(raw), "syscall profile: 4.0 MiB, too long for a line");
        let long = AnyRecord::Text(Text { bytes: Some(&body), ..Text::default() });
        let line = summary(&long, raw);
        assert!(line.ends_with("a… (4.0 MiB more)") && line.len() < LONG + 64, "{}", line.len());
        let fits = AnyRecord::Text(Text { bytes: Some(&body[..LONG]), ..Text::default() });
        assert_eq!(summary(&fits, raw).len(), LONG);
    }
}

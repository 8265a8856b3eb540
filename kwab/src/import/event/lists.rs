//! Reads the rare events that hold lists: crash reports, panics, profiles, audits.

use kwab_format::record::{
    AuditVma, CrashReport, CrashSyscall, CrashVma, Panic, PanicFrame, Reg, RegId, SpanProfile, SpanProfileEntry, Stamp,
    SyscallProfile, SyscallProfileEntry, UcopyEntry, UcopyTraceDump, VmAudit,
};

use super::listed::{
    CrashReportEvent, PanicEvent, SpanProfileEvent, SyscallProfileEvent, UcopyTraceDumpEvent, VmAuditEvent,
};
use super::members::{Extra, Take, array, keep, member, members, next_name, objects, special};
use super::{EventKind, EventSlot, ListedEvent};
use crate::text::lex::{Lexer, Malformed};

/// An event of plain members and one list of objects.
macro_rules! list_event {
    ($event:ident: $record:ident { $($field:ident),* },
     $list:ident: $element:ident { $($key:literal => $efield:ident,)* };
     $lexer:ident, $stamp:ident, $first:ident, $extra:ident, $slot:ident) => {{
        let mut record = $record { stamp: $stamp, ..$record::default() };
        let mut items: Vec<$element<'a>> = Vec::new();
        let mut already = false;
        members!($lexer, $extra, $first, stamp record, {
            $($field => record.$field,)*
        } special {
            $list => objects!(items, already, $element { $($key => $efield,)* }),
        });
        record.stamp.extra = $extra.bytes();
        $slot.listed = Some(Box::new(ListedEvent::$record($event { plain: record, $list: already.then_some(items) })));
        Ok(())
    }};
}

/// The rare events that hold lists.
pub(super) fn with_lists<'a>(
    lexer: &mut Lexer<'a>,
    kind: EventKind,
    stamp: Stamp<'a>,
    first: bool,
    extra: &'a mut Extra,
    slot: &mut EventSlot<'a>,
) -> Result<(), Malformed> {
    match kind {
        EventKind::CrashReport => crash_report(lexer, stamp, first, extra, slot),
        EventKind::Panic => panic_event(lexer, stamp, first, extra, slot),
        EventKind::UcopyTraceDump => {
            list_event!(UcopyTraceDumpEvent: UcopyTraceDump { pid, trigger, total_calls }, entries: UcopyEntry {
                "dst" => dst, "src" => src, "len" => len, "ret" => ret,
            }; lexer, stamp, first, extra, slot)
        }
        EventKind::SyscallProfile => {
            list_event!(SyscallProfileEvent: SyscallProfile { tsc_freq_hz }, entries: SyscallProfileEntry {
                "nr" => nr, "name" => name, "calls" => calls, "total_ns" => total_ns, "avg_ns" => avg_ns,
                "min_ns" => min_ns, "max_ns" => max_ns,
            }; lexer, stamp, first, extra, slot)
        }
        EventKind::SpanProfile => {
            list_event!(SpanProfileEvent: SpanProfile { tsc_freq_hz }, entries: SpanProfileEntry {
                "id" => id, "name" => name, "calls" => calls, "total_ns" => total_ns, "avg_ns" => avg_ns,
                "min_ns" => min_ns, "max_ns" => max_ns,
            }; lexer, stamp, first, extra, slot)
        }
        _ => list_event!(VmAuditEvent: VmAudit { pid }, vmas: AuditVma {
            "start" => start, "end" => end, "prot" => prot, "mapped" => mapped, "unmapped" => unmapped,
            "perm_mismatch" => perm_mismatch,
        }; lexer, stamp, first, extra, slot),
    }
}

fn crash_report<'a>(
    lexer: &mut Lexer<'a>,
    stamp: Stamp<'a>,
    first: bool,
    extra: &'a mut Extra,
    slot: &mut EventSlot<'a>,
) -> Result<(), Malformed> {
    let mut record = CrashReport { stamp, ..CrashReport::default() };
    let mut regs: Vec<Reg<'a>> = Vec::new();
    let mut syscalls: Vec<CrashSyscall<'a>> = Vec::new();
    let mut vmas: Vec<CrashVma<'a>> = Vec::new();
    let (mut regs_seen, mut syscalls_seen, mut vmas_seen) = (false, false, false);
    members!(lexer, extra, first, stamp record, {
        pid => record.pid,
        tid => record.tid,
        signal => record.signal,
        signal_name => record.signal_name,
        signal_code => record.signal_code,
        cmdline => record.cmdline,
        fault_addr => record.fault_addr,
        ip => record.ip,
        fsbase => record.fsbase,
    } special {
        regs => |lexer| {
            if std::mem::replace(&mut regs_seen, true) {
                return Ok(false);
            }
            registers(lexer, &mut regs)
        },
        syscalls => objects!(syscalls, syscalls_seen, CrashSyscall {
            "nr" => nr, "name" => name, "result" => result, "a0" => arg0, "a1" => arg1, "a2" => arg2, "a3" => arg3,
            "a4" => arg4, "a5" => arg5, "duration_ns" => duration_ns, "cpu" => cpu,
        }),
        vmas => objects!(vmas, vmas_seen, CrashVma {
            "start" => start, "end" => end, "type" => kind, "prot" => prot, "file" => file, "offset" => file_offset,
        }),
    });
    record.stamp.extra = extra.bytes();
    slot.listed = Some(Box::new(ListedEvent::CrashReport(CrashReportEvent {
        plain: record,
        regs: regs_seen.then_some(regs),
        syscalls: syscalls_seen.then_some(syscalls),
        vmas: vmas_seen.then_some(vmas),
    })));
    Ok(())
}

/// Reads `{name: word, …}`; a register without a number in [`RegId`] keeps its name.
fn registers<'a>(lexer: &mut Lexer<'a>, regs: &mut Vec<Reg<'a>>) -> Result<bool, Malformed> {
    lexer.expect(b'{')?;
    let mut first = true;
    while let Some((name, _)) = next_name(lexer, &mut first)? {
        let value = u64::take(lexer).ok_or(Malformed)?;
        regs.push(register(name, value));
    }
    Ok(true)
}

/// The register that a kernel prints as `name`, in any case.
pub fn register(name: &[u8], value: u64) -> Reg<'_> {
    let known = RegId::NAMES.iter().find(|(_, known)| known.as_bytes().eq_ignore_ascii_case(name));
    match known.and_then(|(number, _)| u16::try_from(*number).ok()) {
        Some(number) => Reg::new(RegId(number), value),
        None => Reg { name: Some(name), value: Some(value), ..Reg::default() },
    }
}

fn panic_event<'a>(
    lexer: &mut Lexer<'a>,
    stamp: Stamp<'a>,
    first: bool,
    extra: &'a mut Extra,
    slot: &mut EventSlot<'a>,
) -> Result<(), Malformed> {
    let mut record = Panic { stamp, ..Panic::default() };
    let mut frames: Vec<PanicFrame<'a>> = Vec::new();
    let mut seen = false;
    members!(lexer, extra, first, stamp record, {
        message => record.message,
        file => record.file,
        line => record.source_line,
    } special {
        backtrace => objects!(frames, seen, PanicFrame { "addr" => addr, "sym" => sym, "off" => off, }),
    });
    record.stamp.extra = extra.bytes();
    slot.listed = Some(Box::new(ListedEvent::Panic(PanicEvent { plain: record, backtrace: seen.then_some(frames) })));
    Ok(())
}

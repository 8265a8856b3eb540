//! Turns the object of one event line into the record of its type.
//!
//! The list of types is `dispatch`; the members of each are listed once, in the order in which the dialects write them.
//! Reading predicts that order and falls back to looking members up by name, so that both dialects, any order and any
//! white space give the same record. A member that its record has no field for, or that comes twice, or whose value is
//! not what the field holds, goes into `stamp.extra` as it stood: the record never loses a byte's meaning.

use kwab_format::record::{
    CanaryCheck, ExecPrefault, Htrace, HtraceSummary, HugePageVerifyFail, PageFault, PageFaults, PageVerifyFail,
    PageVerifyOk, ProcessExec, ProcessExit, ProcessFork, Signal, SignalStackWrite, Stamp, SyscallEntry, SyscallExit,
    UnimplementedSyscall, UnknownEvent, UserFault, Usercopy, UsercopyFault,
};

use crate::text::lex::{Lexer, Malformed};
use members::{HexBytes, Take, array, keep, member, members, next_name};

mod listed;
mod lists;
mod members;
mod types;

pub use crate::text::dialect::EventKind;
pub use listed::{
    CrashReportEvent, PanicEvent, SpanProfileEvent, SyscallProfileEvent, UcopyTraceDumpEvent, VmAuditEvent,
};
pub use lists::register;
pub use members::Extra;
pub(crate) use types::with_record;
pub use types::{Event, EventRecord, EventSlot, ListedEvent};

/// Reads one event whose `{` comes next into the empty `slot`. `stamp` says where in the log it stands; `extra` keeps
/// the members that its record has no field for.
///
/// # Errors
/// [`Malformed`] when the input is not a complete object with a `type`; the lexer then stands where it failed, and
/// `slot` holds nothing of use.
#[inline]
pub fn read_event<'a>(
    lexer: &mut Lexer<'a>,
    stamp: Stamp<'a>,
    extra: &'a mut Extra,
    slot: &mut EventSlot<'a>,
) -> Result<(), Malformed> {
    extra.clear();
    let start = lexer.at();
    if !lexer.eat(b"{\"type\":\"") {
        return read_disordered(lexer, stamp, extra, slot);
    }
    let known = |name| Some(EventKind::from_name(name)).filter(|kind| *kind != EventKind::Other);
    if let Some(kind) = lexer.word_if(known) {
        return dispatch(lexer, kind, stamp, false, extra, slot);
    }
    let name = lexer.word_until_quote()?;
    lexer.rewind(start);
    read_unknown(lexer, name, stamp, slot)
}

/// An object in which `type` is not the first member, or that has white space.
#[cold]
fn read_disordered<'a>(
    lexer: &mut Lexer<'a>,
    stamp: Stamp<'a>,
    extra: &'a mut Extra,
    slot: &mut EventSlot<'a>,
) -> Result<(), Malformed> {
    let start = lexer.at();
    lexer.expect(b'{')?;
    let body = lexer.at();
    let mut first = true;
    let mut type_name = None;
    while let Some((name, _)) = next_name(lexer, &mut first)? {
        if name == b"type" && type_name.is_none() {
            type_name = Some(lexer.string()?);
        } else {
            lexer.skip_value()?;
        }
    }
    let name = type_name.ok_or(Malformed)?;
    let kind = EventKind::from_name(name);
    if kind == EventKind::Other {
        lexer.rewind(start);
        return read_unknown(lexer, name, stamp, slot);
    }
    lexer.rewind(body);
    dispatch(lexer, kind, stamp, true, extra, slot)
}

/// An event of a type without a record: kept whole.
#[cold]
fn read_unknown<'a>(
    lexer: &mut Lexer<'a>,
    type_name: &'a [u8],
    stamp: Stamp<'a>,
    slot: &mut EventSlot<'a>,
) -> Result<(), Malformed> {
    let start = lexer.at();
    lexer.skip_value()?;
    let json = lexer.since(start);
    let mut record = UnknownEvent { type_name: Some(type_name), json: Some(json), stamp, ..UnknownEvent::default() };
    // A second look for the members that every event may have; the object is known to be well-formed.
    lexer.rewind(start);
    lexer.expect(b'{')?;
    let mut first = true;
    let mut ignored = Extra::default();
    while let Some((name, at)) = next_name(lexer, &mut first)? {
        match name {
            b"pid" => member(lexer, at, &mut record.pid, &mut ignored)?,
            b"seq" => member(lexer, at, &mut record.stamp.seq, &mut ignored)?,
            b"cpu" => member(lexer, at, &mut record.stamp.cpu, &mut ignored)?,
            b"ns" => member(lexer, at, &mut record.stamp.ns, &mut ignored)?,
            b"tsc" => member(lexer, at, &mut record.stamp.tsc, &mut ignored)?,
            _ => {
                lexer.skip_value()?;
            }
        }
    }
    slot.plain = Some(Event::Other(record));
    Ok(())
}

/// Reads the members of an event of a known kind. `first` says that no member has been read yet.
#[inline]
fn dispatch<'a>(
    lexer: &mut Lexer<'a>,
    kind: EventKind,
    stamp: Stamp<'a>,
    first: bool,
    extra: &'a mut Extra,
    slot: &mut EventSlot<'a>,
) -> Result<(), Malformed> {
    /// Reads a record of plain members where it will stay: a record is too long to be moved for nothing.
    macro_rules! plain {
        ($record:ident { $($field:ident),* }) => {{
            slot.plain = Some(Event::$record($record { stamp, ..$record::default() }));
            let Some(Event::$record(record)) = &mut slot.plain else { return Err(Malformed) };
            members!(lexer, extra, first, stamp record, {
                $($field => record.$field,)*
            });
            record.stamp.extra = extra.bytes();
        }};
    }
    match kind {
        EventKind::SyscallEntry => return syscall_entry(lexer, stamp, first, extra, slot),
        EventKind::SyscallExit => return syscall_exit(lexer, stamp, first, extra, slot),
        EventKind::CanaryCheck => plain!(CanaryCheck { pid, fsbase, expected, found, corrupted, when, syscall }),
        EventKind::Htrace => plain!(Htrace { id, name, depth, dir, data }),
        EventKind::PageFault => {
            plain!(PageFault { pid, vaddr, ip, reason, resolved, vma_start, vma_end, vma_type, error_code });
        }
        EventKind::Usercopy => plain!(Usercopy { pid, dir, addr, len, ctx }),
        EventKind::Signal => plain!(Signal { pid, signal, signal_name, action, ip, handler }),
        EventKind::ProcessFork => plain!(ProcessFork { parent_pid, child_pid }),
        EventKind::ProcessExec => plain!(ProcessExec { pid, argv0, entry }),
        EventKind::ProcessExit => plain!(ProcessExit { pid, status, by_signal }),
        EventKind::UnimplementedSyscall => plain!(UnimplementedSyscall { pid, name, nr }),
        EventKind::UserFault => plain!(UserFault { pid, exception, ip, signal_delivered, fault_addr }),
        EventKind::UsercopyFault => {
            plain!(UsercopyFault { pid, fault_addr, ip, label, dst, src, remaining, orig_len, ctx });
        }
        EventKind::SignalStackWrite => {
            plain!(SignalStackWrite { pid, signal, what, addr, len, rsp_before, rsp_after });
        }
        EventKind::PageFaults => plain!(PageFaults { count, total_ns, avg_ns }),
        EventKind::HtraceSummary => plain!(HtraceSummary { total_entries, ring_size }),
        EventKind::PageVerifyFail => {
            plain!(PageVerifyFail { pid, vaddr, first_diff, expected, actual, file_offset, vma_start });
        }
        EventKind::HugePageVerifyFail => {
            plain!(HugePageVerifyFail { pid, huge_base, sub_page, first_diff, expected, actual, vma_start, vma_type });
        }
        EventKind::PageVerifyOk => plain!(PageVerifyOk { pid, verified, failed }),
        EventKind::ExecPrefault => plain!(ExecPrefault { pid, vaddr, cached, file_read, zero, total }),
        EventKind::UcopyTraceDump
        | EventKind::CrashReport
        | EventKind::Panic
        | EventKind::SyscallProfile
        | EventKind::SpanProfile
        | EventKind::VmAudit => return lists::with_lists(lexer, kind, stamp, first, extra, slot),
        EventKind::Other => return Err(Malformed),
    }
    Ok(())
}

#[inline]
fn syscall_entry<'a>(
    lexer: &mut Lexer<'a>,
    stamp: Stamp<'a>,
    first: bool,
    extra: &'a mut Extra,
    slot: &mut EventSlot<'a>,
) -> Result<(), Malformed> {
    slot.plain = Some(Event::SyscallEntry(SyscallEntry { stamp, ..SyscallEntry::default() }));
    let Some(Event::SyscallEntry(record)) = &mut slot.plain else { return Err(Malformed) };
    let mut args = None;
    members!(lexer, extra, first, stamp record, {
        pid => record.pid,
        tid => record.tid,
        name => record.name,
        nr => record.nr,
        args => args,
    });
    let Args([arg0, arg1, arg2, arg3, arg4, arg5]) = args.unwrap_or_default();
    (record.arg0, record.arg1, record.arg2) = (arg0, arg1, arg2);
    (record.arg3, record.arg4, record.arg5) = (arg3, arg4, arg5);
    record.stamp.extra = extra.bytes();
    Ok(())
}

/// What arguments point at is text, or bytes in hexadecimal.
#[inline]
fn syscall_exit<'a>(
    lexer: &mut Lexer<'a>,
    stamp: Stamp<'a>,
    first: bool,
    extra: &'a mut Extra,
    slot: &mut EventSlot<'a>,
) -> Result<(), Malformed> {
    slot.plain = Some(Event::SyscallExit(SyscallExit { stamp, ..SyscallExit::default() }));
    let Some(Event::SyscallExit(record)) = &mut slot.plain else { return Err(Malformed) };
    let mut bytes: [Option<HexBytes<'a>>; 6] = [None; 6];
    members!(lexer, extra, first, stamp record, {
        pid => record.pid,
        tid => record.tid,
        name => record.name,
        nr => record.nr,
        result => record.result,
        errno => record.errno,
        duration_ns => record.duration_ns,
        text0 => record.text0,
        bytes0 => bytes[0],
        text1 => record.text1,
        bytes1 => bytes[1],
        text2 => record.text2,
        bytes2 => bytes[2],
        text3 => record.text3,
        bytes3 => bytes[3],
        text4 => record.text4,
        bytes4 => bytes[4],
        text5 => record.text5,
        bytes5 => bytes[5],
        texts_cut => record.texts_cut,
    });
    let texts = [
        &mut record.text0,
        &mut record.text1,
        &mut record.text2,
        &mut record.text3,
        &mut record.text4,
        &mut record.text5,
    ];
    for (text, bytes) in texts.into_iter().zip(bytes) {
        *text = text.or(bytes.map(|HexBytes(bytes)| bytes));
    }
    record.stamp.extra = extra.bytes();
    Ok(())
}

/// Up to six argument words.
#[derive(Debug, Default, Clone, Copy)]
struct Args([Option<u64>; 6]);

impl<'a> Take<'a> for Args {
    #[inline(always)]
    fn take(lexer: &mut Lexer<'a>) -> Option<Self> {
        let mark = lexer.at();
        let mut args = [None; 6];
        if !lexer.eat_byte(b'[') {
            return None;
        }
        for (index, position) in args.iter_mut().enumerate() {
            match lexer.number() {
                Ok(number) if !number.negative => *position = Some(number.magnitude),
                _ => break,
            }
            if index < 5 && !lexer.eat_byte(b',') {
                break;
            }
        }
        if lexer.eat_byte(b']') {
            return Some(Args(args));
        }
        lexer.rewind(mark);
        Args::take_spaced(lexer)
    }
}

impl Args {
    /// The same for an array with white space, none of whose elements may be lost.
    #[cold]
    fn take_spaced(lexer: &mut Lexer<'_>) -> Option<Self> {
        let mark = lexer.at();
        let mut args = [None; 6];
        let mut count = 0;
        let outcome = array(lexer, |lexer| {
            let position = args.get_mut(count).ok_or(Malformed)?;
            *position = Some(u64::take(lexer).ok_or(Malformed)?);
            count += 1;
            Ok(())
        });
        if outcome.is_err() {
            lexer.rewind(mark);
            return None;
        }
        Some(Args(args))
    }
}

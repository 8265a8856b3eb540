//! Event lines: `DBG {json}`, one per event, strict JSON, whole lines only.
//!
//! An event is put together in a buffer and written in one piece, so two processors never mix inside a line. Every
//! event carries a sequence number, the processor and the time. An event too long for the buffer is replaced by a
//! `dropped` one that counts, never cut in the middle.

use alloc::vec::Vec;
use core::fmt::{self, Write};
use core::sync::atomic::{AtomicU64, Ordering};

use kernel_logic::recorder::texts::CallText;
use kernel_logic::signal::{Delivery, SigInfo};
use linux_abi::{Errno, Signal, syscalls};
use machine::cpu::CpuId;
use machine::time::Nanos;

use super::{Category, Traced, is_on};
use crate::log::Line;
use crate::upper::{Task, try_current};

static SEQUENCE: AtomicU64 = AtomicU64::new(0);
static DROPPED: AtomicU64 = AtomicU64::new(0);

/// Longest event line. It lies on the stack, a fifth of it, so functions that write events are never inlined: no frame
/// that stays has room for one.
pub const EVENT_BYTES: usize = 6144;

/// Where an event's line is put together.
pub trait LineBuffer: Write {
    /// A line without text.
    fn empty() -> Self;
    /// What was written.
    fn bytes(&self) -> &[u8];
    /// Ends the line.
    fn end(&mut self);
    /// Something did not fit.
    fn is_cut(&self) -> bool;
}

impl LineBuffer for Line<EVENT_BYTES> {
    fn empty() -> Self {
        Self::new()
    }

    fn bytes(&self) -> &[u8] {
        Line::bytes(self)
    }

    fn end(&mut self) {
        Line::end(self);
    }

    fn is_cut(&self) -> bool {
        self.cut
    }
}

/// A line of any length, on the heap: for reports outside the crash path.
pub struct Long(Vec<u8>);

impl Write for Long {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

impl LineBuffer for Long {
    fn empty() -> Self {
        Self(Vec::new())
    }

    fn bytes(&self) -> &[u8] {
        &self.0
    }

    fn end(&mut self) {
        self.0.push(b'\n');
    }

    fn is_cut(&self) -> bool {
        false
    }
}

/// An event being written.
pub struct Event<L = Line<EVENT_BYTES>> {
    line: L,
    /// A comma is due before the next item.
    open: bool,
}

impl Event {
    /// Begins an event of this type.
    pub fn new(kind: &str) -> Self {
        Self::begin(kind)
    }

    /// Writes the line without waiting for the console: for the crash path.
    pub fn emit_unlocked(mut self) {
        self.text("}");
        self.line.end();
        machine::console::write_unlocked(self.line.bytes());
    }
}

impl<L: LineBuffer> Event<L> {
    /// Begins an event of this type in an empty buffer.
    pub fn begin(kind: &str) -> Self {
        Self::at(kind, machine::cpu::id(), machine::time::now())
    }

    /// Begins an event that happened elsewhere or earlier.
    pub fn at(kind: &str, cpu: CpuId, ns: Nanos) -> Self {
        let mut event = Self { line: L::empty(), open: false };
        event.text("DBG {");
        event.string("type", kind.as_bytes());
        let sequence = SEQUENCE.fetch_add(1, Ordering::Relaxed);
        event.number("seq", sequence).number("cpu", u64::from(cpu.0)).number("ns", ns);
        event
    }

    /// A decimal field.
    pub fn number(&mut self, name: &str, value: u64) -> &mut Self {
        self.field(name, format_args!("{value}"))
    }

    /// A signed decimal field.
    pub fn signed(&mut self, name: &str, value: i64) -> &mut Self {
        self.field(name, format_args!("{value}"))
    }

    /// An address field: a string of hexadecimal.
    pub fn address(&mut self, name: &str, value: u64) -> &mut Self {
        self.field(name, format_args!("\"{value:#x}\""))
    }

    /// A truth field.
    pub fn flag(&mut self, name: &str, value: bool) -> &mut Self {
        self.field(name, format_args!("{value}"))
    }

    /// A text field; bytes that are not printable ASCII are escaped.
    pub fn string(&mut self, name: &str, value: &[u8]) -> &mut Self {
        self.field(name, format_args!("\"{}\"", Json(value)))
    }

    /// Opens an array field, its items written by `items`.
    pub fn array(&mut self, name: &str, items: impl FnOnce(&mut Self)) -> &mut Self {
        self.field(name, format_args!("["));
        self.open = false;
        items(self);
        self.text("]");
        self.open = true;
        self
    }

    /// Opens an object field, its fields written by `fields`.
    pub fn object(&mut self, name: &str, fields: impl FnOnce(&mut Self)) -> &mut Self {
        self.field(name, format_args!("{{"));
        self.open = false;
        fields(self);
        self.text("}");
        self.open = true;
        self
    }

    /// An item of an array that is an object.
    pub fn item(&mut self, fields: impl FnOnce(&mut Self)) -> &mut Self {
        self.comma();
        self.text("{");
        self.open = false;
        fields(self);
        self.text("}");
        self.open = true;
        self
    }

    /// An item of an array that is an address.
    pub fn address_item(&mut self, value: u64) -> &mut Self {
        self.comma();
        // The line notes itself when it is full.
        let _ = write!(self.line, "\"{value:#x}\"");
        self
    }

    /// An item of an array that is a text.
    pub fn string_item(&mut self, value: &[u8]) -> &mut Self {
        self.comma();
        // The line notes itself when it is full.
        let _ = write!(self.line, "\"{}\"", Json(value));
        self
    }

    /// Ends the line and writes it to the console. The value is used up.
    #[inline(never)]
    pub fn emit(&mut self) {
        self.text("}");
        self.line.end();
        if self.line.is_cut() {
            return tell_drop();
        }
        machine::console::write(self.line.bytes());
    }

    fn field(&mut self, name: &str, value: fmt::Arguments<'_>) -> &mut Self {
        self.comma();
        // The line notes itself when it is full.
        let _ = write!(self.line, "\"{name}\":{value}");
        self
    }

    fn comma(&mut self) {
        if core::mem::replace(&mut self.open, true) {
            self.text(",");
        }
    }

    fn text(&mut self, text: &str) {
        // The line notes itself when it is full.
        let _ = self.line.write_str(text);
    }
}

/// An event did not fit its line: one that counts takes its place.
#[cold]
#[inline(never)]
fn tell_drop() {
    let lost = DROPPED.fetch_add(1, Ordering::Relaxed) + 1;
    let mut event = Event::new("dropped");
    event.number("count", lost);
    event.text("}");
    event.line.end();
    machine::console::write(event.line.bytes());
}

/// Bytes inside a JSON string.
struct Json<'a>(&'a [u8]);

impl fmt::Display for Json<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            for character in chunk.valid().chars() {
                match character {
                    '"' => f.write_str("\\\"")?,
                    '\\' => f.write_str("\\\\")?,
                    '\n' => f.write_str("\\n")?,
                    ' '..='~' => f.write_char(character)?,
                    _ => {
                        for unit in character.encode_utf16(&mut [0; 2]) {
                            write!(f, "\\u{unit:04x}")?;
                        }
                    }
                }
            }
            // Bytes that are not text have no name in JSON: the code point of the same number.
            for byte in chunk.invalid() {
                write!(f, "\\u{byte:04x}")?;
            }
        }
        Ok(())
    }
}

/// Two digits a byte.
struct Hex<'a>(&'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The running thread's process, 0 without one.
pub(super) fn pid() -> u64 {
    try_current().map_or(0, |task| task.ids() >> 32)
}

/// A call's name.
pub(super) fn call_name(nr: u64) -> &'static str {
    syscalls::by_number(nr).map_or("unknown", |call| call.name)
}

/// So many events of a kind were left out by their limit.
#[cold]
#[inline(never)]
pub fn suppressed(what: &str, count: u64) {
    let mut event = Event::new("suppressed");
    event.string("of", what.as_bytes()).number("count", count);
    event.emit();
}

/// The running thread, where it is not its process's first.
fn thread<L: LineBuffer>(event: &mut Event<L>) {
    let ids = try_current().map_or(0, |task| task.ids());
    let (pid, tid) = (ids >> 32, ids & u64::from(u32::MAX));
    event.number("pid", pid);
    if tid != pid {
        event.number("tid", tid);
    }
}

/// A call begins.
#[cold]
#[inline(never)]
pub fn syscall_entry(nr: u64, args: &[u64; 6]) {
    let mut event = Event::new("syscall_entry");
    thread(&mut event);
    event.string("name", call_name(nr).as_bytes()).number("nr", nr);
    event.array("args", |event| {
        for arg in args {
            event.address_item(*arg);
        }
    });
    event.emit();
}

/// A call ends that lasted so long; how begins what its arguments point at: strings as they are, other bytes in
/// hexadecimal.
#[cold]
#[inline(never)]
pub fn syscall_exit(nr: u64, result: i64, lasted: Nanos, texts: &[Option<CallText>; 6]) {
    const NAMES: [(&str, &str); 6] = [
        ("text0", "bytes0"),
        ("text1", "bytes1"),
        ("text2", "bytes2"),
        ("text3", "bytes3"),
        ("text4", "bytes4"),
        ("text5", "bytes5"),
    ];
    let mut event = Event::new("syscall_exit");
    thread(&mut event);
    event.string("name", call_name(nr).as_bytes()).number("nr", nr).signed("result", result);
    if let Some(name) = Errno::from_result(result).and_then(Errno::name) {
        event.string("errno", name.as_bytes());
    }
    event.number("duration_ns", lasted);
    let mut cut = 0;
    for (at, text) in texts.iter().enumerate() {
        let Some(text) = text else { continue };
        let (as_text, as_bytes) = NAMES[at];
        let is_text = |text: &str| {
            text.chars().all(|c| !c.is_control() || matches!(c, '\0' | '\n')) && text.contains(|c| c != '\0')
        };
        if core::str::from_utf8(text.bytes()).is_ok_and(is_text) {
            event.string(as_text, text.bytes());
        } else {
            event.field(as_bytes, format_args!("\"{}\"", Hex(text.bytes())));
        }
        cut |= u64::from(text.is_cut()) << at;
    }
    if cut != 0 {
        event.number("texts_cut", cut);
    }
    event.emit();
}

/// A signal is delivered.
#[inline]
pub fn signal(task: &Task, info: &SigInfo, verdict: &Delivery, ip: u64) {
    if is_on(Category::Signal) {
        write_signal(task, info, verdict, ip);
    }
}

#[cold]
#[inline(never)]
fn write_signal(task: &Task, info: &SigInfo, verdict: &Delivery, ip: u64) {
    let action: &[u8] = match verdict {
        Delivery::Drop => b"ignore",
        Delivery::Handle(_) => b"handler",
        Delivery::Kill { core: true } => b"core",
        Delivery::Kill { core: false } => b"terminate",
        Delivery::Stop => b"stop",
    };
    let mut event = Event::new("signal");
    event.number("pid", task.ids() >> 32).number("signal", u64::from(info.signal));
    event.string("signal_name", signal_name(info.signal).as_bytes()).string("action", action).address("ip", ip);
    if let Delivery::Handle(disposition) = verdict {
        event.address("handler", disposition.handler);
    }
    event.emit();
}

/// The name of a signal, `SIGRT` for real-time ones.
pub fn signal_name(signal: u8) -> &'static str {
    Signal::new(u64::from(signal)).and_then(Signal::name).unwrap_or("SIGRT")
}

/// A page fault was, or could not be, resolved.
#[cold]
#[inline(never)]
pub fn page_fault(addr: u64, ip: u64, reason: &str, resolved: bool) {
    let mut event = Event::new("page_fault");
    event.number("pid", pid()).address("vaddr", addr).address("ip", ip);
    event.string("reason", reason.as_bytes()).flag("resolved", resolved);
    event.emit();
}

/// An exception in a program became a signal.
#[cold]
#[inline(never)]
pub fn user_fault(exception: &str, ip: u64, signal: u8) {
    let mut event = Event::new("user_fault");
    event.number("pid", pid()).string("exception", exception.as_bytes()).address("ip", ip);
    event.number("signal_delivered", u64::from(signal));
    event.emit();
}

/// A process was made.
#[inline(never)]
pub fn fork(parent: u32, child: u32) {
    if is_on(Category::Process) {
        let mut event = Event::new("process_fork");
        event.number("parent_pid", u64::from(parent)).number("child_pid", u64::from(child));
        event.emit();
    }
}

/// A process executed a program.
#[inline(never)]
pub fn exec(pid: u32, argv0: &[u8], entry: u64) {
    if is_on(Category::Process) {
        let mut event = Event::new("process_exec");
        event.number("pid", u64::from(pid)).string("argv0", &argv0[..argv0.len().min(256)]).address("entry", entry);
        event.emit();
    }
}

/// What exec maps at once: pages of its files that are in memory, and those that it makes, of the initial stack among
/// them.
#[inline(never)]
pub fn exec_prefault(vaddr: u64, [cached, zero]: [u64; 2]) {
    if is_on(Category::Memory) {
        let mut event = Event::new("exec_prefault");
        event.number("pid", pid()).address("vaddr", vaddr).number("cached", cached).number("file_read", 0);
        event.number("zero", zero).number("total", cached + zero);
        event.emit();
    }
}

/// A signal frame was written on a stack. Its caller has asked whether that [`is_on`].
#[cold]
#[inline(never)]
pub fn signal_stack_write(task: &Task, signal: u8, what: &str, addr: u64, len: u64, before: u64, after: u64) {
    let mut event = Event::new("signal_stack_write");
    event.number("pid", task.ids() >> 32).number("signal", u64::from(signal));
    event.string("what", what.as_bytes()).address("addr", addr).number("len", len);
    event.address("rsp_before", before).address("rsp_after", after);
    event.emit();
}

/// What a copy moves, and which way.
#[derive(Clone, Copy)]
pub enum Copy {
    /// From the program.
    FromUser,
    /// To the program.
    ToUser,
}

/// A copy from or to a program; `fault` is the address at which it stopped short.
#[cold]
#[inline(never)]
pub fn usercopy(way: Copy, addr: u64, len: usize, fault: Option<u64>) {
    let task = try_current();
    let nr = task.and_then(|task| task.user_frame()).map_or(u64::MAX, |frame| frame.syscall_number());
    let dir: &[u8] = match way {
        Copy::FromUser => b"from_user",
        Copy::ToUser => b"to_user",
    };
    let mut event = Event::new(if fault.is_some() { "usercopy_fault" } else { "usercopy" });
    event.number("pid", pid());
    if let Some(at) = fault {
        let remaining = addr.wrapping_add(len as u64).saturating_sub(at.max(addr));
        event.address("fault_addr", at).string("label", dir);
        event.address(if matches!(way, Copy::ToUser) { "dst" } else { "src" }, addr);
        event.number("remaining", remaining).number("orig_len", len as u64);
    } else {
        event.string("dir", dir).address("addr", addr).number("len", len as u64);
    }
    event.string("ctx", call_name(nr).as_bytes());
    event.emit();
}

/// A process ended.
#[inline(never)]
pub fn exit(pid: u32, status: i32, by_signal: bool) {
    if is_on(Category::Process) {
        let mut event = Event::new("process_exit");
        event.number("pid", u64::from(pid)).signed("status", i64::from(status)).flag("by_signal", by_signal);
        event.emit();
    }
}

//! Makes dumps of the text that strace(1) prints: the calls of all threads, and each death by a signal.
//!
//! Lines are read by [`crate::oracle::strace`], which compares such texts. A thread that is killed by the signal that
//! was delivered to it right before is a death; its dump has the last calls of every thread, as a kernel's ring has
//! them, and the last lines as they were. Without a death the text becomes a recording. The other threads of a process
//! that dies end by the same signal, which is one death. With `-k` its frames are there, with `-i` the instruction.

use std::collections::{HashMap, VecDeque};
use std::io::{self, Read};

use kwab_format::SectionKind;
use kwab_format::record::{
    Arch, CauseKind, Frame, FrameTrust, Identity, Note, NoteKind, Reason, Source, Stamp, SyscallRecord, Task, Text,
    TextKind,
};
use linux_abi::Errno;
use linux_abi::signals::Signal;

use super::process::is_deadly;
use super::text_lines::for_each_line;
use crate::import::emit::DumpWriter;
use crate::import::made::{Maker, Told};
use crate::import::segment::Out;
use crate::import::{ImportError, ImportReport, Options, PendingDump};
use crate::model::Death;
use crate::oracle::strace::{Prefix, StraceLine, called, frame, split};
use crate::oracle::{Answer, Called, Ended, Operand};
use crate::units::count;

/// Calls before a death that are kept, and bytes of all their texts.
const MOST_CALLS: usize = 1 << 14;
const MOST_BYTES: usize = 8 << 20;
/// Threads that are told apart, and deaths that become dumps.
const MOST_THREADS: usize = 1 << 12;
const MOST_DEATHS: u64 = 256;
/// Bytes of all dumps, beside four times the text, after which a dump has its process and the last calls only: each
/// death repeats what was before it.
const MOST_WRITTEN: u64 = 64 << 20;
const LEAST_CALLS: usize = 256;
/// Bytes of the lines that are kept for each death, and of a command line.
const MOST_TEXT: usize = 64 << 10;
const MOST_COMMAND: usize = 4096;
/// Bytes of a call that has not returned, and of what is told of a signal.
const MOST_BEGUN: usize = 4096;
const MOST_SIGNAL: usize = 512;
/// Frames of a stack, and bytes of one.
const MOST_FRAMES: usize = 256;
const MOST_FRAME: usize = 512;
/// Bytes of a thread's name in Linux, without the end.
const COMM: usize = 15;
/// `si_code` by its name (sigaction(2)).
const CODES: [(&str, i64); 17] = [
    ("SI_USER", 0),
    ("SI_KERNEL", 0x80),
    ("SI_QUEUE", -1),
    ("SI_TKILL", -6),
    ("SEGV_MAPERR", 1),
    ("SEGV_ACCERR", 2),
    ("SEGV_PKUERR", 4),
    ("BUS_ADRALN", 1),
    ("BUS_ADRERR", 2),
    ("BUS_OBJERR", 3),
    ("FPE_INTDIV", 1),
    ("FPE_INTOVF", 2),
    ("ILL_ILLOPC", 1),
    ("ILL_ILLOPN", 2),
    ("TRAP_BRKPT", 1),
    ("TRAP_TRACE", 2),
    ("SYS_SECCOMP", 1),
];

/// Makes the dumps. `progress` hears the offset now and then.
pub(super) fn import(
    input: impl Read,
    head: &[u8],
    options: &Options,
    progress: &mut dyn FnMut(u64),
) -> Result<(ImportReport, Vec<PendingDump>), ImportError> {
    let mut maker = Maker::new(options, head, head.len() as u64);
    let mut run = Run::default();
    let end = for_each_line(input, progress, |line, at| {
        run.lines = at.lines;
        let Some(death) = run.take(line) else { return Ok(()) };
        run.is_short = maker.bytes() > MOST_WRITTEN.saturating_add(at.bytes.saturating_mul(4));
        maker.add(|out| run.write(Some(death), &options.source, out))
    })?;
    if run.deaths == 0 {
        maker.add(|out| run.write(None, &options.source, out))?;
    }
    let (mut report, dumps) = maker.finish(run.lines, run.lost());
    (report.bytes, report.events) = (end.bytes, run.calls);
    Ok((report, dumps))
}

/// A thread of the run.
#[derive(Debug, Default, Clone)]
struct Traced {
    pid: u32,
    parent: Option<u32>,
    comm: Vec<u8>,
    command: Vec<u8>,
    /// The signal that was delivered last.
    signal: Option<Delivered>,
    /// A call that has not returned, and its line.
    begun: Option<(String, u64)>,
}

/// A signal that was delivered to a thread.
#[derive(Debug, Default, Clone)]
struct Delivered {
    name: String,
    /// The line that says so.
    told: String,
    /// Where the thread was, with `-i`.
    ip: Option<u64>,
    /// Its stack, with `-k`, as printed.
    frames: Vec<String>,
}

/// A call of the ring.
#[derive(Debug)]
struct Kept {
    tid: u32,
    line: u64,
    duration_ns: Option<u64>,
    is_open: bool,
    call: Called,
}

/// The run as far as it was read.
#[derive(Debug, Default)]
struct Run {
    lines: u64,
    calls: u64,
    deaths: u64,
    unread: u64,
    first_unread: u64,
    threads: HashMap<u32, Traced>,
    ring: VecDeque<Kept>,
    ring_bytes: usize,
    /// The last lines.
    text: VecDeque<u8>,
    /// Whether a dump has its process and the last calls only.
    is_short: bool,
    /// The thread that ended with the line before.
    gone: Option<u32>,
    /// The thread that the line before delivered a signal to, or a line of its stack.
    delivered: Option<u32>,
    /// The process that died last, and by which signal: its other threads end likewise.
    dead: Option<(u32, String)>,
}

impl Run {
    /// Takes a line; the death that it tells of.
    fn take(&mut self, line: &str) -> Option<Death> {
        if let Some(gone) = self.gone.take() {
            self.threads.remove(&gone);
        }
        self.text.extend(line.as_bytes());
        let more = self.text.len().saturating_sub(MOST_TEXT);
        self.text.drain(..more);
        if let Some(frame) = frame(line) {
            self.stacked(frame);
            return None;
        }
        let (Prefix { tid, comm, ip }, body) = split(line.trim_end_matches('\n'));
        self.delivered = None;
        if let Some(comm) = comm.map(str::as_bytes) {
            self.with(tid, |thread| thread.comm = comm[..comm.len().min(COMM)].to_vec());
        }
        match StraceLine::of(body) {
            StraceLine::Whole(call) => self.returned(tid, call, body, self.lines),
            StraceLine::Begun(start) if start.len() > MOST_BEGUN => self.cannot_read(),
            StraceLine::Begun(start) => {
                let begun = Some((start.to_owned(), self.lines));
                self.with(tid, |thread| thread.begun = begun);
            }
            StraceLine::Resumed(rest) => {
                let begun = self.threads.get_mut(&tid).and_then(|thread| thread.begun.take());
                let whole = begun.map(|(start, line)| (format!("{start}{rest}"), line));
                match whole.and_then(|(whole, line)| Some((called(&whole)?, whole, line))) {
                    Some((call, whole, line)) => self.returned(tid, call, &whole, line),
                    None => self.cannot_read(),
                }
            }
            StraceLine::Signal(name) => {
                let told = body.chars().take(MOST_SIGNAL).collect();
                self.with(tid, |thread| thread.signal = Some(Delivered { name, told, ip, frames: Vec::new() }));
                self.delivered = Some(tid);
            }
            StraceLine::End(end) => return self.ended(tid, end),
            StraceLine::Other if !body.trim().is_empty() => self.cannot_read(),
            StraceLine::Remark | StraceLine::Other => {}
        }
        None
    }

    /// Takes a line of a stack, which is kept when it is that of a signal.
    fn stacked(&mut self, frame: &str) {
        let thread = self.delivered.and_then(|tid| self.threads.get_mut(&tid));
        if let Some(signal) = thread.and_then(|thread| thread.signal.as_mut())
            && signal.frames.len() < MOST_FRAMES
            && frame.len() <= MOST_FRAME
        {
            signal.frames.push(frame.to_owned());
        }
    }

    fn cannot_read(&mut self) {
        if self.unread == 0 {
            self.first_unread = self.lines;
        }
        self.unread += 1;
    }

    fn with(&mut self, tid: u32, change: impl FnOnce(&mut Traced)) {
        let room = self.threads.len() < MOST_THREADS;
        match self.threads.get_mut(&tid) {
            Some(thread) => change(thread),
            None if room => change(self.threads.entry(tid).or_insert(Traced { pid: tid, ..Traced::default() })),
            None => {}
        }
    }

    fn returned(&mut self, tid: u32, call: Called, body: &str, line: u64) {
        self.calls += 1;
        self.with(tid, |thread| thread.signal = None);
        match (&*call.name, &call.answer) {
            ("execve" | "execveat", Answer::Value(0)) => self.executed(tid, &call),
            ("clone" | "clone3" | "fork" | "vfork", Answer::Value(child)) => {
                if let Ok(child) = u32::try_from(*child) {
                    self.made(tid, child, body.contains("CLONE_THREAD"));
                }
            }
            _ => {}
        }
        self.keep(Kept { tid, line, duration_ns: duration(body), is_open: call.answer == Answer::None, call });
    }

    fn executed(&mut self, tid: u32, call: &Called) {
        let at = usize::from(call.name == "execveat");
        let of = |at: usize| call.args.get(at).and_then(|arg| arg.text.as_ref()).map(|text| text.bytes.as_slice());
        let path = of(at).unwrap_or_default();
        let short = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
        let mut command = of(at + 1).unwrap_or(path).to_vec();
        command.truncate(MOST_COMMAND);
        command.iter_mut().filter(|byte| **byte == 0).for_each(|byte| *byte = b' ');
        let (comm, command) = (short[..short.len().min(COMM)].to_vec(), command.trim_ascii().to_vec());
        self.with(tid, |thread| (thread.comm, thread.command) = (comm, command));
    }

    /// A child has the name of its parent until it executes another program; a thread has its process too.
    fn made(&mut self, tid: u32, child: u32, is_thread: bool) {
        let parent = self.threads.get(&tid).cloned().unwrap_or(Traced { pid: tid, ..Traced::default() });
        self.with(child, |thread| {
            if is_thread {
                thread.pid = parent.pid;
            }
            thread.parent = if is_thread { parent.parent } else { Some(parent.pid).filter(|pid| *pid != 0) };
            if thread.comm.is_empty() {
                (thread.comm, thread.command) = (parent.comm, parent.command);
            }
        });
    }

    fn keep(&mut self, kept: Kept) {
        self.ring_bytes += kept.call.size();
        self.ring.push_back(kept);
        while self.ring.len() > MOST_CALLS || self.ring_bytes > MOST_BYTES {
            let Some(first) = self.ring.pop_front() else { break };
            self.ring_bytes -= first.call.size();
        }
    }

    fn ended(&mut self, tid: u32, end: Ended) -> Option<Death> {
        let thread = self.threads.get(&tid).cloned().unwrap_or(Traced { pid: tid, ..Traced::default() });
        let begun = thread.begun.clone();
        // What a thread was in when it ended never returned.
        if let Some((start, line)) = begun
            && let Some(call) = called(&format!("{start}) = ?"))
        {
            self.keep(Kept { tid, line, duration_ns: None, is_open: true, call });
        }
        let Ended::Signal(name) = end else {
            self.gone = Some(tid);
            return None;
        };
        let told = thread.signal.as_ref().filter(|signal| signal.name == name);
        let number = Signal::from_name(&name).map(|signal| u32::from(signal.number()));
        let of_dead = (thread.pid, name.clone());
        let again = tid != 0 && self.dead.as_ref() == Some(&of_dead);
        if again || told.is_none() || !number.is_some_and(is_deadly) {
            // The other threads of a process that dies may end before the one that it died of.
            return None;
        }
        self.gone = Some(tid);
        self.dead = Some(of_dead);
        self.deaths += 1;
        (self.deaths <= MOST_DEATHS).then(|| death(tid, &thread, number, told, self.lines))
    }

    /// What was not read or left out.
    fn lost(&self) -> Option<String> {
        let more = self.deaths.saturating_sub(MOST_DEATHS);
        let deaths = (more > 0).then(|| format!("{more} more deaths were left out; the first {MOST_DEATHS} are dumps"));
        let (unread, first) = (self.unread, self.first_unread);
        let lines = count(unread, "line", "lines");
        let lines = (unread > 0).then(|| format!("{lines} could not be read, the first is line {first}"));
        let parts: Vec<String> = deaths.into_iter().chain(lines).collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    fn write(&self, death: Option<Death>, source: &str, out: &mut DumpWriter<Out>) -> io::Result<Told> {
        let identity = Identity {
            kernel_name: Some(b"Linux"),
            arch: Some(Arch::X86_64),
            reason: Some(if death.is_some() { Reason::PROCESS_CRASH } else { Reason::RECORDING }),
            producer: Some(concat!("kwab ", env!("CARGO_PKG_VERSION"), " import").as_bytes()),
            ..Identity::default()
        };
        out.put(SectionKind::IDENTITY, &identity);
        let (name, dialect) = (Some(source.as_bytes()), Some(&b"strace"[..]));
        out.put(SectionKind::IDENTITY, &Source { name, dialect, ..Source::default() });
        if let Some(death) = &death {
            out.put(SectionKind::CAUSE, &death.record());
            let thread = self.threads.get(&death.tid.unwrap_or(0));
            let signal = thread.and_then(|thread| thread.signal.as_ref());
            signal.into_iter().for_each(|signal| stack(death, &signal.frames, out));
        }
        let calls = if self.is_short { self.ring.len().min(LEAST_CALLS) } else { self.ring.len() };
        for (index, kept) in self.ring.iter().skip(self.ring.len() - calls).enumerate() {
            self.call(index as u64, kept, out);
        }
        let pid = death.as_ref().and_then(|death| death.pid).filter(|_| self.is_short);
        let told = |thread: &Traced| pid.is_none_or(|pid| pid == thread.pid);
        let mut threads: Vec<_> = self.threads.iter().filter(|(tid, thread)| **tid != 0 && told(thread)).collect();
        threads.sort_unstable_by_key(|(tid, _)| **tid);
        for (tid, thread) in threads {
            let record = Task {
                pid: Some(thread.pid),
                tid: Some(*tid),
                ppid: thread.parent,
                comm: Some(thread.comm.as_slice()).filter(|comm| !comm.is_empty()),
                cmdline: Some(thread.command.as_slice()).filter(|command| !command.is_empty()),
                ..Task::default()
            };
            out.put(SectionKind::TASKS, &record);
        }
        if self.calls > calls as u64 {
            let text = format!("the last {calls} of {} calls", self.calls);
            let record = Note { kind: Some(NoteKind::REMARK), text: Some(text.as_bytes()), ..Note::default() };
            out.put(SectionKind::NOTES, &record);
        }
        let text: Vec<u8> = self.text.iter().copied().collect();
        let record = Text { kind: Some(TextKind::CONSOLE), bytes: Some(&text), ..Text::default() };
        out.put(SectionKind::KEPT, &record);
        out.check()?;
        let line = death.as_ref().and_then(|death| death.line);
        Ok(Told { death, line, events: calls as u64, missing: Vec::new() })
    }

    fn call(&self, index: u64, kept: &Kept, out: &mut DumpWriter<Out>) {
        let Kept { tid, line, call, .. } = kept;
        let arg = |at: usize| call.args.get(at);
        let word = |at: usize| arg(at).and_then(|arg| arg.word);
        let text = |at: usize| arg(at).and_then(|arg| arg.text.as_ref()).map(|text| text.bytes.as_slice());
        let cut = |at: usize| arg(at).and_then(|arg| arg.text.as_ref()).is_some_and(|text| text.cut);
        let cuts = (0..6).filter(|at| cut(*at)).fold(0, |all: u32, at| all | 1 << at);
        let pid = self.threads.get(tid).map_or(*tid, |thread| thread.pid);
        let known = Some(*tid).filter(|tid| *tid != 0);
        let record = SyscallRecord {
            pid: known.map(|_| pid),
            tid: known,
            nr: call.known.map(|known| i64::from(known.nr)),
            name: Some(call.name.as_bytes()),
            arg0: word(0),
            arg1: word(1),
            arg2: word(2),
            arg3: word(3),
            arg4: word(4),
            arg5: word(5),
            result: result(&call.answer),
            duration_ns: kept.duration_ns,
            in_progress: kept.is_open.then_some(true),
            index: Some(index),
            text0: text(0),
            text1: text(1),
            text2: text(2),
            text3: text(3),
            text4: text(4),
            text5: text(5),
            texts_cut: Some(cuts).filter(|cuts| *cuts != 0),
            stamp: Stamp { line: Some(*line), ..Stamp::default() },
            ..SyscallRecord::default()
        };
        out.put(SectionKind::SYSCALLS, &record);
    }
}

impl Called {
    /// Bytes that it takes in memory, about.
    fn size(&self) -> usize {
        let of_arg = |arg: &Operand| {
            let text = arg.text.as_ref().map_or(0, |text| text.bytes.len());
            text + arg.written.as_ref().map_or(0, |written| written.len()) + 96
        };
        self.text.len() + self.args.iter().map(of_arg).sum::<usize>() + 128
    }
}

/// What the register held.
fn result(answer: &Answer) -> Option<i64> {
    match answer {
        Answer::Value(value) => Some(*value),
        Answer::Error(name) => Errno::from_name(name).map(|errno| -i64::from(errno.number())),
        Answer::Restart | Answer::None | Answer::Unknown => None,
    }
}

/// The seconds at the end of a line, with `-T`: `<0.000012>`.
fn duration(body: &str) -> Option<u64> {
    let (_, last) = body.trim_end().strip_suffix('>')?.rsplit_once('<')?;
    let (seconds, part) = last.split_once('.')?;
    let micros: u64 = part.parse().ok().filter(|_| part.len() == 6)?;
    seconds.parse::<u64>().ok()?.checked_mul(1_000_000)?.checked_add(micros)?.checked_mul(1000)
}

/// The frames of the thread that died: `/bin/cat(main+0x1f) [0x2a3f]`, whose address is one of the file.
fn stack(death: &Death, frames: &[String], out: &mut DumpWriter<Out>) {
    for (index, frame) in frames.iter().enumerate() {
        let Some((place, _)) = frame.split_once(" [0x") else { continue };
        let (path, symbol) = match place.strip_suffix(')').and_then(|place| place.rsplit_once('(')) {
            Some((path, symbol)) => (path, Some(symbol)),
            None => (place, None),
        };
        let (symbol, offset) = match symbol.and_then(|symbol| symbol.rsplit_once("+0x")) {
            Some((symbol, offset)) => (Some(symbol), u64::from_str_radix(offset, 16).ok()),
            None => (symbol, None),
        };
        let module = path.rsplit('/').next().unwrap_or(path);
        let record = Frame {
            trace: Some(0),
            index: u32::try_from(index).ok(),
            symbol: symbol.map(str::as_bytes).filter(|symbol| !symbol.is_empty()),
            symbol_offset: offset,
            module: Some(module.as_bytes()).filter(|module| !module.is_empty()),
            trust: Some(FrameTrust::UNWIND_TABLE),
            pid: death.pid,
            tid: death.tid,
            ..Frame::default()
        };
        out.put(SectionKind::CAUSE, &record);
    }
}

/// The death that `--- SIGSEGV {si_signo=SIGSEGV, si_code=SEGV_MAPERR, si_addr=0x18} ---` and the end after it tell of.
fn death(tid: u32, thread: &Traced, number: Option<u32>, signal: Option<&Delivered>, line: u64) -> Death {
    let info = signal.map_or("", |signal| signal.told.as_str());
    let field = |name: &str| {
        let (_, rest) = info.split_once(name)?;
        rest.split([',', '}', ' ']).next()
    };
    let code = field("si_code=").and_then(|name| CODES.iter().find(|(known, _)| *known == name));
    let addr = field("si_addr=").and_then(|word| match word {
        "NULL" => Some(0),
        word => u64::from_str_radix(word.strip_prefix("0x")?, 16).ok(),
    });
    let known = Some(tid).filter(|tid| *tid != 0);
    let text = |text: &Vec<u8>| Some(text.clone()).filter(|text| !text.is_empty());
    Death {
        kind: Some(CauseKind::FATAL_SIGNAL),
        pid: known.map(|_| thread.pid),
        tid: known,
        signal: number,
        signal_name: signal.map(|signal| signal.name.as_bytes().to_vec()),
        ip: signal.and_then(|signal| signal.ip),
        signal_code: code.map(|(_, code)| *code),
        fault_addr: addr,
        comm: text(&thread.comm),
        cmdline: text(&thread.command),
        in_kernel: Some(false),
        line: Some(line),
        ..Death::default()
    }
}

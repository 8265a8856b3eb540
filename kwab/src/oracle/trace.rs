//! A run as the comparison sees it: threads, and the rows of each in their order.

use std::borrow::Cow;
use std::collections::HashMap;

use linux_abi::syscalls::Syscall;

use super::operand::{Answer, Operand};

/// Where a trace comes from, which decides what it can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// Events of a recording of ours.
    Recording,
    /// The rings of recent calls in a dump: the end of each thread's calls only.
    Rings,
    /// The text that strace(1) prints.
    Strace,
}

/// A run of a program.
#[derive(Clone, Debug)]
pub struct Trace {
    /// Where it comes from.
    pub(super) origin: Origin,
    /// Its threads in the order in which they appear.
    pub(super) threads: Vec<Thread>,
    /// What the trace is known to lack, for people: lost events, lines that could not be read.
    pub(super) gaps: Vec<String>,
    /// Where each thread lies in [`Self::threads`].
    index: HashMap<u32, usize>,
}

/// A thread of the run.
#[derive(Clone, Debug)]
pub(super) struct Thread {
    /// Its number; 0 where the trace does not say it.
    pub tid: u32,
    /// Its rows in the order in which they ended.
    pub rows: Vec<TraceRow>,
}

/// A row of a thread.
#[derive(Clone, Debug)]
pub(super) struct TraceRow {
    /// Its position in the run as a whole.
    pub at: usize,
    /// The call, signal or end that the row tells of.
    pub what: What,
}

/// What a row tells of.
#[derive(Clone, Debug)]
pub(super) enum What {
    /// A system call.
    Call(Box<Called>),
    /// A signal was delivered; what is done about it, where the trace says that.
    Signal {
        /// `SIGSEGV` and the like; `SIGRT` for real-time ones of a recording.
        name: String,
        /// Whether a handler runs or the process ends, as far as the trace says.
        acts: Option<bool>,
    },
    /// The thread or its process ended.
    End(Ended),
}

/// How a process ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// With an exit status.
    Exit(i64),
    /// By a signal.
    Signal(String),
}

/// A system call of a row.
#[derive(Clone, Debug)]
pub(crate) struct Called {
    /// What the table says about it; absent for names that Linux does not have.
    pub known: Option<&'static Syscall>,
    /// What Linux calls it, or the kernel that recorded it.
    pub name: Cow<'static, str>,
    /// Its arguments, as many as the trace shows.
    pub args: Box<[Operand]>,
    /// What it returned.
    pub answer: Answer,
    /// The call as the trace shows it, without its answer.
    pub text: Box<str>,
    /// How many calls of the machine began before it, in a recording.
    pub number: Option<u32>,
}

impl Trace {
    /// An empty trace.
    pub(super) fn new(origin: Origin) -> Self {
        Self { origin, threads: Vec::new(), gaps: Vec::new(), index: HashMap::new() }
    }

    /// The recording of a machine that printed no event.
    #[must_use]
    pub fn silent() -> Self {
        let gaps = vec!["the machine printed no event in this run".to_owned()];
        Self { gaps, ..Self::new(Origin::Recording) }
    }

    /// Adds a row to a thread.
    pub(super) fn push(&mut self, tid: u32, at: usize, what: What) {
        let at_thread = *self.index.entry(tid).or_insert(self.threads.len());
        if at_thread == self.threads.len() {
            self.threads.push(Thread { tid, rows: Vec::new() });
        }
        self.threads[at_thread].rows.push(TraceRow { at, what });
    }

    /// The thread with this number.
    pub(super) fn thread(&self, tid: u32) -> Option<&Thread> {
        self.threads.get(*self.index.get(&tid)?)
    }

    /// System calls in the whole trace.
    #[must_use]
    pub fn calls(&self) -> usize {
        let rows = self.threads.iter().flat_map(|thread| &thread.rows);
        rows.filter(|row| matches!(row.what, What::Call(_))).count()
    }

    /// The first thread that executes `program` (its path, or the last part of it), and the row in which it does;
    /// without a name, the first that executes anything, else the first thread of an strace: one that was attached.
    pub(super) fn root(&self, program: Option<&str>) -> Option<(&Thread, usize)> {
        let mut execs: Vec<(usize, &Thread, usize)> = Vec::new();
        for thread in &self.threads {
            let found = thread.rows.iter().position(|row| match &row.what {
                What::Call(call) => call.executes(program),
                _ => false,
            });
            execs.extend(found.map(|row| (thread.rows[row].at, thread, row)));
        }
        let first = execs.into_iter().min_by_key(|exec| exec.0).map(|exec| (exec.1, exec.2));
        let attached = program.is_none() && self.origin == Origin::Strace;
        first.or_else(|| self.threads.first().filter(|_| attached).map(|thread| (thread, 0)))
    }

    /// Of a recording, the first thread with its first row: init, which all others come from.
    pub(super) fn first(&self) -> Option<(&Thread, usize)> {
        let began = |thread: &&Thread| thread.rows.first().map_or(usize::MAX, |row| row.at);
        self.threads.iter().min_by_key(began).filter(|_| self.origin == Origin::Recording).map(|thread| (thread, 0))
    }
}

/// What the allocator adds to a piece of memory.
const PIECE: usize = 16;

impl What {
    /// Bytes that a row with this takes, with what comparing it takes: places in lists that double, a fingerprint, a
    /// row of the alignment and its index.
    pub(super) fn footprint(&self) -> u64 {
        const ROW: usize = size_of::<TraceRow>() * 3 / 2 + 64;
        let held = match self {
            Self::Call(call) => call.footprint(),
            Self::Signal { name, .. } => name.capacity() + PIECE,
            Self::End(_) => PIECE,
        };
        (ROW + held) as u64
    }
}

impl Called {
    fn footprint(&self) -> usize {
        let of_operand = |operand: &Operand| {
            let text = operand.text.as_ref().map_or(0, |text| text.bytes.capacity() + PIECE);
            let written = operand.written.as_ref().map_or(0, |written| written.len() + PIECE);
            size_of::<Operand>() + text + written
        };
        let name = if matches!(self.name, Cow::Owned(_)) { self.name.len() + PIECE } else { 0 };
        let args: usize = self.args.iter().map(of_operand).sum();
        size_of::<Self>() + self.text.len() + name + args + 3 * PIECE
    }

    /// Whether the call executed this program.
    fn executes(&self, program: Option<&str>) -> bool {
        let path = match &*self.name {
            "execve" => self.args.first(),
            "execveat" => self.args.get(1),
            _ => return false,
        };
        if matches!(self.answer, Answer::Error(_)) {
            return false;
        }
        let Some(program) = program.map(str::as_bytes) else { return true };
        path.and_then(|path| path.text.as_ref()).is_some_and(|text| {
            let last = text.bytes.rsplit(|byte| *byte == b'/').next();
            if text.cut { program.starts_with(&text.bytes) } else { text.bytes == program || last == Some(program) }
        })
    }

    /// The path that the program executes, when it executes one.
    pub(super) fn executed(&self) -> Option<String> {
        let at = usize::from(self.name == "execveat");
        let text = self.args.get(at)?.text.as_ref()?;
        self.executes(None).then(|| String::from_utf8_lossy(&text.bytes).into_owned())
    }

    /// The call and its answer as strace writes them.
    pub(super) fn line(&self) -> String {
        format!("{} = {}", self.text, self.answer.shown(self.known))
    }
}

//! Puts a report together from its lines: stacks, registers, the task, and what is said about them at the end.

use super::class::Class;
use super::function::{guilty, is_of_rcu};
use super::prefix::Caller;
use super::registers::{Line, arch_of};
use super::report::{
    Frame, LONGEST_TEXT, LogPosition, MOST_FRAMES, MOST_NOTES, MOST_REGISTERS, MOST_SETS, MOST_STACKS, RegisterSet,
    Report, Stack, StackKind,
};

/// The answer to a line that was offered to a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Took {
    /// It says nothing about the report.
    No,
    /// It belongs to the report.
    Yes,
    /// It belongs to the report and ends it; only a panic may follow.
    End,
}

/// The task that the lines at hand speak of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReportedTask {
    /// Processor that printed the report.
    pub cpu: Option<u32>,
    /// Thread that ran on it.
    pub pid: Option<u32>,
    /// Name of that thread.
    pub comm: Option<String>,
}

/// A report that is being read.
#[derive(Debug, Default)]
pub struct Builder {
    /// What is known so far.
    pub report: Report,
    /// Who prints it.
    pub caller: Option<Caller>,
    /// The task that prints it, where every line names one.
    pub printer: Option<String>,
    /// The headline with placeholders.
    pub title: String,
    /// What the placeholders stand for.
    pub values: Vec<(String, String)>,
    /// The function that its first line names.
    pub head_function: Option<String>,
    /// The function in the link register.
    pub link: Option<String>,
    /// Whether frames are being printed.
    pub in_stack: bool,
    /// Whether the last registers were those of user code.
    pub user: bool,
    /// The register that a line of bare words begins with (s390).
    pub next_register: Option<usize>,
    /// The register whose value a line was wrapped before.
    pub open_register: Option<String>,
    /// The line of the bytes of code so far.
    pub code_line: u64,
    /// Whether a line said that the report is over.
    pub ended: bool,
    /// Lines in a row that said nothing about it.
    pub quiet: u32,
    /// Whether its first line only announces what a later head tells.
    pub announced: bool,
    /// Whether the next line is the message.
    pub wants_message: bool,
    /// Whether the next line is the function that took a lock.
    pub wants_lock: bool,
    /// The task that the lines at hand speak of, when it is not that of the report.
    pub other: Option<ReportedTask>,
    /// Whether the name of the task came with the number of another.
    borrowed: bool,
    /// Whether a line told which kernel prints the report.
    pub marked: bool,
    /// The caller of the last frame, which the line of that frame names.
    outer: Option<(Frame, LogPosition)>,
    /// Whether the frames before the next one are the way from a trap into the panic.
    trapped: bool,
    /// The kind and title of the stack that comes next.
    next: Option<(StackKind, Option<String>)>,
    /// The stack that grows.
    current: Option<usize>,
}

impl Builder {
    /// A report that opens at `position`.
    pub fn new(family: &str, class: Class, title: &str, position: LogPosition) -> Self {
        let report = Report { family: family.to_string(), class, first: position, last: position, ..Report::default() };
        Self { report, title: title.to_string(), ..Self::default() }
    }

    /// The value of a placeholder.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.values.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Sets a placeholder, unless it has a value.
    pub fn say(&mut self, name: &str, value: impl Into<String>) {
        let value = value.into();
        if self.value(name).is_none() && !value.is_empty() && self.values.len() < 16 {
            self.values.push((name.to_string(), value));
        }
    }

    /// The next frames belong to a stack of that kind.
    pub fn begin(&mut self, kind: StackKind, title: Option<String>) {
        self.end_stack();
        self.next = Some((kind, title));
        self.current = None;
        self.in_stack = true;
        self.trapped = false;
    }

    /// `Call Trace:`: a stack of the kind that was announced, or of the failure.
    pub fn trace(&mut self) {
        self.end_stack();
        if self.next.is_none() {
            let kind = self.untitled();
            self.next = Some((kind, None));
        }
        self.current = None;
        self.in_stack = true;
    }

    /// A line says where a trap interrupted the kernel: the frames behind it are the stack of the failure, those before
    /// it the way into the panic. Only the innermost trap counts.
    pub fn trapped(&mut self) {
        let again = self.report.stacks.iter().any(|stack| stack.kind == StackKind::Repeated);
        if self.has_crash_stack() && !again {
            self.begin(StackKind::Crash, None);
            self.trapped = true;
        }
    }

    /// The kind of a stack without a title.
    fn untitled(&self) -> StackKind {
        let has_crash =
            self.report.stacks.iter().any(|stack| stack.kind == StackKind::Crash && !stack.frames.is_empty());
        match (&self.other, has_crash) {
            (Some(other), _) if other.cpu != self.report.cpu => StackKind::OtherCpu,
            (Some(_), _) => StackKind::OtherTask,
            (None, true) if self.report.class.is_stall() => StackKind::OtherTask,
            (None, true) => StackKind::Repeated,
            (None, false) => StackKind::Crash,
        }
    }

    /// Adds a frame to the stack at hand.
    pub fn frame(&mut self, mut frame: Frame, position: LogPosition) {
        self.outer = None;
        frame.line = position.line;
        let kept: usize = self.report.stacks.iter().map(|stack| stack.frames.len()).sum();
        let no_room = self.current.is_none() && self.report.stacks.len() >= MOST_STACKS;
        if kept >= MOST_FRAMES || no_room {
            self.report.left_out += 1;
            return;
        }
        let at = match self.current {
            Some(at) => at,
            None => {
                let untitled = self.untitled();
                let (kind, title) = self.next.take().unwrap_or((untitled, None));
                let who = match kind {
                    StackKind::Crash | StackKind::Repeated => ReportedTask::default(),
                    _ => self.other.clone().unwrap_or_default(),
                };
                if std::mem::take(&mut self.trapped) {
                    let before = self.report.stacks.iter_mut().filter(|stack| stack.kind == StackKind::Crash);
                    before.for_each(|stack| stack.kind = StackKind::Repeated);
                }
                let ReportedTask { cpu, pid, comm } = who;
                self.report.stacks.push(Stack { kind, title, cpu, pid, comm, frames: Vec::new() });
                self.report.stacks.len() - 1
            }
        };
        self.current = Some(at);
        self.in_stack = true;
        if let Some(stack) = self.report.stacks.get_mut(at) {
            stack.frames.push(frame);
        }
    }

    /// Keeps the caller that the line of the last frame names, unless it only is the way into the kernel: it is a frame
    /// of its own if no other follows.
    pub fn called_by(&mut self, caller: Option<Frame>, position: LogPosition) {
        let guilty = |frame: &Frame| frame.symbol.as_deref().is_some_and(|name| !super::function::is_skipped(name));
        self.outer = caller.filter(guilty).map(|frame| (frame, position));
    }

    /// No frame follows in the stack at hand.
    fn end_stack(&mut self) {
        if let Some((frame, position)) = self.outer.take() {
            self.frame(frame, position);
        }
    }

    /// The last frame of the stack at hand.
    pub fn last_frame(&mut self) -> Option<&mut Frame> {
        let stack = self.report.stacks.get_mut(self.current?)?;
        stack.frames.last_mut()
    }

    /// Whether a stack of the failure has frames.
    pub fn has_stack(&self) -> bool {
        self.report.stacks.iter().any(|stack| !stack.frames.is_empty())
    }

    /// Whether the stack of the failure itself has frames.
    pub fn has_crash_stack(&self) -> bool {
        self.report.stacks.iter().any(|stack| stack.kind == StackKind::Crash && !stack.frames.is_empty())
    }

    /// Takes a line of registers.
    pub fn registers(&mut self, line: Line) {
        let user = if line.user || line.pairs.iter().any(|(name, _)| matches!(name.as_str(), "RSP" | "ESP" | "EIP")) {
            self.user = line.user;
            line.user
        } else {
            self.user
        };
        let cpu = self.other.as_ref().and_then(|other| other.cpu);
        for (name, value) in line.pairs {
            if self.report.arch.is_none() {
                self.report.arch = arch_of(&name);
            }
            let again = |set: &RegisterSet| {
                set.user != user || set.cpu != cpu || set.registers.iter().any(|(known, _)| *known == name)
            };
            if self.report.registers.last().is_none_or(again) {
                if self.report.registers.len() >= MOST_SETS {
                    self.report.left_out += 1;
                    return;
                }
                self.report.registers.push(RegisterSet { user, cpu, registers: Vec::new() });
            }
            if let Some(set) = self.report.registers.last_mut()
                && set.registers.len() < MOST_REGISTERS
            {
                set.registers.push((name, value));
            }
        }
        self.in_stack = false;
    }

    /// Adds a remark.
    pub fn note(&mut self, text: impl Into<String>) {
        let text: String = text.into();
        if text.is_empty() || self.report.notes.contains(&text) {
            return;
        }
        if self.report.notes.len() < MOST_NOTES {
            self.report.notes.push(text);
        } else {
            self.report.left_out += 1;
        }
    }

    /// The history of an object or a lock is over: what comes next is not a frame of it.
    fn end_history(&mut self) {
        use StackKind::{Allocated, Freed, Lock, Origin};
        let is_history = |kind: &StackKind| matches!(kind, Allocated | Freed | Lock | Origin);
        let announced = self.next.as_ref().map(|(kind, _)| *kind);
        let growing = self.current.and_then(|at| self.report.stacks.get(at)).map(|stack| stack.kind);
        if announced.or(growing).as_ref().is_some_and(is_history) {
            (self.next, self.current) = (None, None);
        }
    }

    /// A line says who runs.
    pub fn task(&mut self, found: ReportedTask) {
        self.end_history();
        let report = &mut self.report;
        let same_cpu = found.cpu.is_none() || report.cpu.is_none() || found.cpu == report.cpu;
        let same_pid = found.pid.is_none() || report.pid.is_none() || found.pid == report.pid;
        // The watchdog's or the fault handler's own task line may come later: the first one counts.
        if same_cpu && same_pid || !self.has_stack() && !self.report.class.is_stall() {
            let report = &mut self.report;
            report.cpu = report.cpu.or(found.cpu);
            report.pid = report.pid.or(found.pid);
            // A line in between may be that of a task that printed at the same time.
            if report.comm.is_none() || self.borrowed && same_pid {
                report.comm = found.comm;
                self.borrowed = !same_pid;
            }
            self.other = None;
        } else {
            self.other = Some(found);
        }
    }

    /// The value of a kernel register of the failure.
    pub fn register(&self, name: &str) -> Option<u64> {
        let sets = self.report.registers.iter().filter(|set| !set.user);
        let mut all = sets.flat_map(|set| &set.registers);
        all.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| *value)
    }

    /// Concludes what the lines say together.
    pub fn finish(mut self) -> Report {
        self.end_stack();
        self.report.stacks.retain(|stack| !stack.frames.is_empty());
        if !self.report.stacks.iter().any(|stack| stack.kind == StackKind::Crash) {
            let stall = self.report.class == Class::RcuStall;
            let own = |stack: &&mut Stack| {
                matches!(stack.kind, StackKind::OtherCpu | StackKind::OtherTask | StackKind::Repeated)
                    && !(stall && is_of_rcu(stack.comm.as_deref()))
            };
            let cpu = self.report.cpu;
            let mine =
                self.report.stacks.iter_mut().find(|stack| own(stack) && stack.cpu.is_some() && stack.cpu == cpu);
            let chosen = match mine {
                Some(stack) => Some(stack),
                None => self.report.stacks.iter_mut().find(own),
            };
            if let Some(stack) = chosen {
                stack.kind = StackKind::Crash;
                self.report.pid = self.report.pid.or(stack.pid);
                self.report.cpu = self.report.cpu.or(stack.cpu);
                self.report.comm = self.report.comm.take().or_else(|| stack.comm.clone());
            }
        }
        self.report.ip = self.report.ip.or_else(|| {
            ["RIP", "EIP", "pc", "epc", "NIP", "sepc", "mepc", "ELR", "ERA"].iter().find_map(|name| self.register(name))
        });
        self.report.sp =
            self.report.sp.or_else(|| ["RSP", "ESP", "sp", "GPR1", "usp"].iter().find_map(|name| self.register(name)));
        self.report.function = guilty(&self.report, self.head_function.as_deref(), self.link.as_deref())
            .or_else(|| self.value("holder").map(|name| super::function::plain(name).to_string()));
        self.report.headline = self.headline();
        self.report.missing = missing(&self.report);
        self.report.signature = signature(&self.report);
        self.report
    }

    /// Fills the placeholders of the title.
    fn headline(&self) -> String {
        let mut line = self.title.clone();
        // Other kernels may tell no more than the module.
        let module = || self.value("module").filter(|_| self.report.family != "linux").map(str::to_owned);
        let function = self.report.function.clone().or_else(module);
        for (name, value) in [("function", function.as_deref()), ("message", Some(self.report.message.as_str()))] {
            let value = self.value(name).filter(|_| name != "function").or(value);
            if let Some(value) = value {
                line = line.replace(&format!("{{{name}}}"), value);
            }
        }
        for (name, value) in &self.values {
            line = line.replace(&format!("{{{name}}}"), value);
        }
        let line = tidy(&line);
        // A message of nothing but placeholders and blanks leaves the class.
        if line.is_empty() { self.report.class.name().replace('-', " ") } else { line }
    }
}

/// Removes placeholders without a value, the `in` and `/` before them, and double spaces.
fn tidy(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(open) = rest.find('{') {
        let Some(close) = rest[open..].find('}') else { break };
        let name = &rest[open + 1..open + close];
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_lowercase()) {
            out.push_str(&rest[..open + close + 1]);
        } else {
            let head = rest[..open].trim_end();
            let head = [" in", " /", " at", " -", ":"].iter().find_map(|tail| head.strip_suffix(tail)).unwrap_or(head);
            out.push_str(head);
        }
        rest = &rest[open + close + 1..];
    }
    out.push_str(rest);
    let words: Vec<&str> = out.split_whitespace().collect();
    let mut line = words.join(" ");
    if line.len() > LONGEST_TEXT {
        let end = (0..=LONGEST_TEXT).rev().find(|at| line.is_char_boundary(*at)).unwrap_or(0);
        line.truncate(end);
    }
    line
}

/// What a complete report of its class has and this one lacks.
fn missing(report: &Report) -> Vec<&'static str> {
    let mut missing = Vec::new();
    let has_stack = report.stacks.iter().any(|stack| stack.kind == StackKind::Crash);
    let bare = matches!(
        report.class,
        Class::Netdevice | Class::WorkqueueLockup | Class::MachineCheck | Class::Bugcheck | Class::NoRoot
    );
    if !has_stack && !bare {
        missing.push("backtrace");
    }
    if report.class.is_trap() && report.registers.is_empty() {
        missing.push("registers");
    }
    if report.comm.is_none() && report.pid.is_none() && !bare && report.family == "linux" {
        missing.push("task");
    }
    if report.function.is_none() && !bare && has_stack {
        missing.push("symbols");
    }
    missing
}

/// Text for grouping: without addresses, numbers and what differs from run to run.
fn signature(report: &Report) -> String {
    let crash = report.stacks.iter().find(|stack| stack.kind == StackKind::Crash);
    let mut parts = vec![report.family.clone(), report.class.name().to_string()];
    match &report.function {
        Some(function) => parts.push(function.clone()),
        None => parts.push(without_numbers(&report.message)),
    }
    let frames = crash.map(|stack| stack.frames.as_slice()).unwrap_or_default();
    let names = frames.iter().filter(|frame| !frame.guess && !frame.inline).filter_map(|frame| frame.symbol.as_deref());
    let names = names.filter(|name| !super::function::is_skipped(name)).map(super::function::plain);
    let rest = names.filter(|name| Some(*name) != report.function.as_deref()).take(2);
    parts.extend(rest.map(str::to_string));
    parts.join("|")
}

/// A message without its numbers: every word that holds a digit becomes `#`.
fn without_numbers(text: &str) -> String {
    let word =
        |word: &str| if word.bytes().any(|byte| byte.is_ascii_digit()) { "#".to_string() } else { word.to_string() };
    text.split_whitespace().take(12).map(word).collect::<Vec<_>>().join(" ")
}

//! A report that is being read, and whether what has been read of it is worth a report.

use super::build::Builder;
use super::class::Class;
use super::{LogPosition, head, linux, words};

/// How the lines of an open report are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reader {
    /// The readers of Linux.
    Linux,
    /// The row of a dialect.
    Row(usize),
}

#[derive(Debug)]
pub(super) struct Open {
    /// What is known of it.
    pub(super) builder: Builder,
    /// Who reads its lines.
    pub(super) reader: Reader,
    /// Opened by a task line alone: worth a report only with a stack.
    pub(super) orphan: bool,
    /// Whether a line of it told that a program printed it.
    pub(super) of_program: bool,
    /// Opened by a line that programs print too: worth a report only with a kernel's evidence behind it.
    pub(super) weak: bool,
    /// Opened in the middle of a stack by the first lines of a log: all that announced it is lost.
    pub(super) tail: bool,
}

/// What the line of the process in a report of a trap holds, of which the head is lost.
pub(super) const OF_PROCESS: [&[u8]; 3] = [b", threadinfo=", b", threadinfo ", b", stack limit = 0x"];

/// Whether a line is that of the task in a report.
pub(super) fn is_task(text: &[u8]) -> bool {
    text.starts_with(b"CPU: ") && linux::context::task_line(text).is_some()
}

/// Whether a line is that of the process in a report of a trap.
pub(super) fn is_process(text: &[u8]) -> bool {
    text.starts_with(b"Process ") && OF_PROCESS.iter().any(|mark| words::has(text, mark))
}

/// Whether only reports have such a line.
fn is_of_report(text: &[u8]) -> bool {
    is_task(text) || is_process(text) || head::is_faulted(text) || linux::lost::is_of_report(text)
}

/// The fewest frames that make a stack of a line that is one frame itself.
const WEAK_FRAMES: usize = 2;

impl Open {
    /// Whether what was read is worth a report.
    pub(super) fn is_report(&self) -> bool {
        let report = &self.builder.report;
        // The kernel names the machine only where it shows a stack.
        let named = || report.hardware.is_some() && !linux::lost::is_of_program(report);
        let located = || report.location.is_some() || named() || linux::lost::is_in_module(report);
        (!self.orphan || (self.builder.has_stack() || located()) && !self.is_injected() && !self.is_asked_for())
            && (!self.weak || self.has_evidence())
            && (!self.tail || linux::lost::is_of_failure(&self.builder.report))
    }

    /// Whether it is what is left of a report, and a head of Linux that follows opens one that tells more: of a stack
    /// alone any, of a report whose class the rest tells one of that class.
    pub(super) fn is_rest_before(&mut self, found: &linux::Found<'_, '_>) -> bool {
        if self.orphan && !self.tail && !self.builder.ended && self.builder.report.comm.is_none() {
            let registers_alone = !self.builder.has_stack();
            linux::lost::tell(&mut self.builder);
            return registers_alone || self.builder.report.class == found.head.class;
        }
        self.tail
    }

    /// Takes a line behind the middle of a stack, with which the log began, that shows the stack to be of a report.
    pub(super) fn show(&mut self, text: &[u8], position: LogPosition) {
        if let Some((cut, orphan)) = head::of_cut(text, position) {
            self.builder.report.class = cut.report.class;
            self.builder.title = cut.title;
            (self.orphan, self.tail) = (orphan, false);
        }
        self.tail &= !is_of_report(text);
    }

    /// Whether it is the stack that fault injection shows of an allocation that it lets fail.
    pub(super) fn is_injected(&self) -> bool {
        let frames = self.builder.report.stacks.iter().flat_map(|stack| &stack.frames);
        frames.filter_map(|frame| frame.symbol.as_deref()).take(8).any(|name| name.starts_with("should_fail"))
    }

    /// Whether it is the stack of processors or tasks that an operator asked for with a key or `sysrq-trigger`.
    fn is_asked_for(&self) -> bool {
        let frames = self.builder.report.stacks.iter().flat_map(|stack| &stack.frames);
        let mut names = frames.filter_map(|frame| frame.symbol.as_deref()).peekable();
        let asked = names.clone().any(|name| name == "write_sysrq_trigger" || name.starts_with("__handle_sysrq"));
        asked && self.builder.report.location.is_none() && !names.any(|name| name == "sysrq_handle_crash")
    }

    /// Whether a deadly word opened it, and nothing that a kernel prints has followed.
    pub(super) fn is_bare(&self) -> bool {
        self.builder.title == "{message}" && self.reader != Reader::Linux && !self.has_evidence()
    }

    /// Whether a head of Linux ends it as prose, or as the last words of a program: one with the kernel's count of its
    /// oopses what only a deadly word has opened, a panic of Linux all that nothing has followed.
    pub(super) fn gives_way(&self, text: &[u8]) -> bool {
        let panics = text.starts_with(b"Kernel panic - not syncing");
        self.is_bare() && words::has(text, b"[#") || panics && self.reader != Reader::Linux && !self.has_evidence()
    }

    /// Whether it is the assertion that Linux prints before the `BUG()` by which it dies of it.
    pub(super) fn is_reason_of(&self, text: &[u8]) -> bool {
        let report = &self.builder.report;
        text.starts_with(b"kernel BUG at ")
            && report.family == "generic"
            && report.class == Class::Assertion
            && !self.builder.has_stack()
            && report.registers.is_empty()
    }

    /// Whether a kernel printed more than the line that opened the report: a stack, registers, a processor, a position.
    pub(super) fn has_evidence(&self) -> bool {
        let report = &self.builder.report;
        let frames: usize = report.stacks.iter().map(|stack| stack.frames.len()).sum();
        // `At 0x203` in prose reads as one register.
        let registers: usize = report.registers.iter().map(|set| set.registers.len()).sum();
        let says = report.cpu.is_some() || report.source.is_some() || report.ip.is_some() || registers > 1;
        // The second parameter of a bug check.
        let says = says || self.builder.value("p2").is_some();
        says || self.builder.marked || frames >= WEAK_FRAMES
    }

    /// Whether the panic of a program in Rust printed it: a kernel has `core` alone, and no standard library.
    pub(super) fn is_of_rust_program(&self) -> bool {
        const RUNTIME: [&str; 4] =
            ["std::rt::lang_start", "std::panicking::", "test::run_test", "std::sys::backtrace::"];
        let mut frames = self.builder.report.stacks.iter().flat_map(|stack| &stack.frames);
        self.builder.report.family == "generic"
            && frames.any(|frame| {
                let of_library =
                    frame.source.as_ref().is_some_and(|(file, _)| file.contains("library/std/src/panicking.rs"));
                let name = frame.symbol.as_deref().unwrap_or_default();
                of_library || RUNTIME.iter().any(|known| name.starts_with(known))
            })
    }

    /// Whether the Go runtime of a program printed it: the traceback of a kernel in Go has the kernel's packages.
    pub(super) fn is_of_go_program(&self) -> bool {
        let report = &self.builder.report;
        let mut names =
            report.stacks.iter().flat_map(|stack| &stack.frames).filter_map(|frame| frame.symbol.as_deref()).peekable();
        let kernels = ["gvisor", "/sentry", "kernel", "biscuit"];
        report.family == "go"
            && names.peek().is_some()
            && !names.any(|name| kernels.iter().any(|kernel| name.contains(kernel)))
    }
}

//! Signals: numbers, names, what they do without a handler, and what their `si_code` says.
//!
//! Numbers from asm/signal.h (x86_64), default actions from signal(7), codes from asm-generic/siginfo.h.

use core::fmt;

/// A signal number, 1..=64.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Signal(u8);

/// What happens to a process that neither handles nor ignores a signal (signal(7)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DefaultAction {
    /// The process ends.
    Terminate,
    /// The process ends and leaves a core dump.
    CoreDump,
    /// The signal is discarded.
    Ignore,
    /// The process stops.
    Stop,
    /// A stopped process goes on.
    Continue,
}

macro_rules! signals {
    ($($name:ident = $number:literal, $action:ident, $text:literal;)*) => {
        impl Signal {
            $(#[doc = concat!($text, " (", stringify!($number), ").")] pub const $name: Signal = Signal($number);)*
        }
        /// Every standard signal by rising number: itself, its name, its default action, its text.
        pub static TABLE: &[(Signal, &str, DefaultAction, &str)] =
            &[$((Signal($number), stringify!($name), DefaultAction::$action, $text),)*];
    };
}

signals! {
    SIGHUP = 1, Terminate, "Hangup";
    SIGINT = 2, Terminate, "Interrupt";
    SIGQUIT = 3, CoreDump, "Quit";
    SIGILL = 4, CoreDump, "Illegal instruction";
    SIGTRAP = 5, CoreDump, "Trace/breakpoint trap";
    SIGABRT = 6, CoreDump, "Aborted";
    SIGBUS = 7, CoreDump, "Bus error";
    SIGFPE = 8, CoreDump, "Floating point exception";
    SIGKILL = 9, Terminate, "Killed";
    SIGUSR1 = 10, Terminate, "User defined signal 1";
    SIGSEGV = 11, CoreDump, "Segmentation fault";
    SIGUSR2 = 12, Terminate, "User defined signal 2";
    SIGPIPE = 13, Terminate, "Broken pipe";
    SIGALRM = 14, Terminate, "Alarm clock";
    SIGTERM = 15, Terminate, "Terminated";
    SIGSTKFLT = 16, Terminate, "Stack fault";
    SIGCHLD = 17, Ignore, "Child exited";
    SIGCONT = 18, Continue, "Continued";
    SIGSTOP = 19, Stop, "Stopped (signal)";
    SIGTSTP = 20, Stop, "Stopped";
    SIGTTIN = 21, Stop, "Stopped (tty input)";
    SIGTTOU = 22, Stop, "Stopped (tty output)";
    SIGURG = 23, Ignore, "Urgent I/O condition";
    SIGXCPU = 24, CoreDump, "CPU time limit exceeded";
    SIGXFSZ = 25, CoreDump, "File size limit exceeded";
    SIGVTALRM = 26, Terminate, "Virtual timer expired";
    SIGPROF = 27, Terminate, "Profiling timer expired";
    SIGWINCH = 28, Ignore, "Window changed";
    SIGIO = 29, Terminate, "I/O possible";
    SIGPWR = 30, Terminate, "Power failure";
    SIGSYS = 31, CoreDump, "Bad system call";
}

impl Signal {
    /// The first real-time signal as the kernel counts (asm/signal.h); libc keeps the first few for itself.
    pub const RT_MIN: u8 = 32;
    /// The last signal.
    pub const MAX: u8 = 64;

    /// The signal with this number; `None` outside 1..=64.
    pub const fn new(number: u64) -> Option<Signal> {
        if number >= 1 && number <= Self::MAX as u64 { Some(Signal(number as u8)) } else { None }
    }

    /// The signal's number, 1 to 64.
    pub const fn number(self) -> u8 {
        self.0
    }

    /// Whether it is a real-time signal.
    pub const fn is_realtime(self) -> bool {
        self.0 >= Self::RT_MIN
    }

    /// The name, `SIGSEGV`; `None` for real-time signals, which `Debug` prints as `SIGRT_2`.
    pub fn name(self) -> Option<&'static str> {
        self.entry().map(|entry| entry.1)
    }

    /// The text, `Segmentation fault`.
    pub fn text(self) -> &'static str {
        self.entry().map_or("Real-time signal", |entry| entry.3)
    }

    /// What happens without a handler.
    pub fn default_action(self) -> DefaultAction {
        self.entry().map_or(DefaultAction::Terminate, |entry| entry.2)
    }

    /// The signal called `name`, with or without `SIG`.
    pub fn from_name(name: &str) -> Option<Signal> {
        let short = name.strip_prefix("SIG").unwrap_or(name);
        match short {
            "POLL" => Some(Signal::SIGIO),
            "IOT" => Some(Signal::SIGABRT),
            "CLD" => Some(Signal::SIGCHLD),
            _ => TABLE.iter().find(|entry| &entry.1[3..] == short).map(|entry| entry.0),
        }
    }

    fn entry(self) -> Option<&'static (Signal, &'static str, DefaultAction, &'static str)> {
        TABLE.get(usize::from(self.0) - 1)
    }
}

impl fmt::Debug for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "SIGRT_{}", self.0 - Self::RT_MIN),
        }
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

macro_rules! codes {
    ($($signal:literal { $($name:ident = $value:literal, $text:literal;)* })*) => {
        $($(#[doc = concat!($text, " (asm-generic/siginfo.h).")] pub const $name: i32 = $value;)*)*
        /// Every `si_code`: the signal it belongs to (0: any), its value, its name, its text.
        pub static CODES: &[(u8, i32, &str, &str)] = &[$($(($signal, $value, stringify!($name), $text),)*)*];
    };
}

codes! {
    0 {
        SI_USER = 0, "sent by kill";
        SI_KERNEL = 128, "sent by the kernel";
        SI_QUEUE = -1, "sent by sigqueue";
        SI_TIMER = -2, "timer expired";
        SI_MESGQ = -3, "message queue changed state";
        SI_ASYNCIO = -4, "asynchronous I/O completed";
        SI_SIGIO = -5, "queued SIGIO";
        SI_TKILL = -6, "sent by tkill or tgkill";
    }
    4 {
        ILL_ILLOPC = 1, "illegal opcode";
        ILL_ILLOPN = 2, "illegal operand";
        ILL_ILLADR = 3, "illegal addressing mode";
        ILL_ILLTRP = 4, "illegal trap";
        ILL_PRVOPC = 5, "privileged opcode";
        ILL_PRVREG = 6, "privileged register";
        ILL_COPROC = 7, "coprocessor error";
        ILL_BADSTK = 8, "internal stack error";
    }
    5 {
        TRAP_BRKPT = 1, "process breakpoint";
        TRAP_TRACE = 2, "process trace trap";
        TRAP_BRANCH = 3, "process taken branch trap";
        TRAP_HWBKPT = 4, "hardware breakpoint or watchpoint";
    }
    7 {
        BUS_ADRALN = 1, "invalid address alignment";
        BUS_ADRERR = 2, "non-existent physical address";
        BUS_OBJERR = 3, "object-specific hardware error";
    }
    8 {
        FPE_INTDIV = 1, "integer divide by zero";
        FPE_INTOVF = 2, "integer overflow";
        FPE_FLTDIV = 3, "floating point divide by zero";
        FPE_FLTOVF = 4, "floating point overflow";
        FPE_FLTUND = 5, "floating point underflow";
        FPE_FLTRES = 6, "floating point inexact result";
        FPE_FLTINV = 7, "invalid floating point operation";
        FPE_FLTSUB = 8, "subscript out of range";
    }
    11 {
        SEGV_MAPERR = 1, "address not mapped";
        SEGV_ACCERR = 2, "not allowed by the mapping's protection";
        SEGV_BNDERR = 3, "failed address bound checks";
        SEGV_PKUERR = 4, "denied by a protection key";
    }
    17 {
        CLD_EXITED = 1, "child exited";
        CLD_KILLED = 2, "child was killed";
        CLD_DUMPED = 3, "child terminated abnormally";
        CLD_TRAPPED = 4, "traced child has trapped";
        CLD_STOPPED = 5, "child has stopped";
        CLD_CONTINUED = 6, "stopped child has continued";
    }
    29 {
        POLL_IN = 1, "data input available";
        POLL_OUT = 2, "output buffers available";
        POLL_MSG = 3, "input message available";
        POLL_ERR = 4, "I/O error";
        POLL_PRI = 5, "high priority input available";
        POLL_HUP = 6, "device disconnected";
    }
    31 {
        SYS_SECCOMP = 1, "seccomp triggered";
    }
}

/// Name and text of an `si_code` of a signal.
pub fn code_name(signal: Signal, code: i32) -> Option<(&'static str, &'static str)> {
    let entry = CODES.iter().find(|entry| entry.1 == code && (entry.0 == 0 || entry.0 == signal.0))?;
    Some((entry.2, entry.3))
}

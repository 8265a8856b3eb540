//! Decides what a signal does: which is delivered next, what its default is, and how an interrupted call goes on.
//!
//! Nouns: a [`SigSet`] is 64 bits, bit `n - 1` for signal `n`. A [`SigInfo`] says who sent a signal and why;
//! [`Pending`] holds those not yet delivered (ordinary signals once each, real-time ones queued in order); a
//! [`Disposition`] is what the program asked for with sigaction(2). Source: signal(7), sigaction(2).

use alloc::collections::VecDeque;
use alloc::sync::Arc;

#[cfg(test)]
mod tests;

/// Highest signal number.
pub const MAX_SIGNAL: u8 = linux_abi::Signal::MAX;
/// First real-time signal.
pub const FIRST_RT: u8 = linux_abi::Signal::RT_MIN;

/// Signal numbers the rules need (x86_64 and aarch64 agree on all of them).
pub mod sig {
    #![allow(missing_docs, reason = "the names are signal(7)'s own")]
    use linux_abi::Signal;

    pub const HUP: u8 = Signal::SIGHUP.number();
    pub const INT: u8 = Signal::SIGINT.number();
    pub const QUIT: u8 = Signal::SIGQUIT.number();
    pub const ILL: u8 = Signal::SIGILL.number();
    pub const TRAP: u8 = Signal::SIGTRAP.number();
    pub const ABRT: u8 = Signal::SIGABRT.number();
    pub const BUS: u8 = Signal::SIGBUS.number();
    pub const FPE: u8 = Signal::SIGFPE.number();
    pub const KILL: u8 = Signal::SIGKILL.number();
    pub const USR1: u8 = Signal::SIGUSR1.number();
    pub const SEGV: u8 = Signal::SIGSEGV.number();
    pub const PIPE: u8 = Signal::SIGPIPE.number();
    pub const ALRM: u8 = Signal::SIGALRM.number();
    pub const TERM: u8 = Signal::SIGTERM.number();
    pub const CHLD: u8 = Signal::SIGCHLD.number();
    pub const CONT: u8 = Signal::SIGCONT.number();
    pub const STOP: u8 = Signal::SIGSTOP.number();
    pub const TSTP: u8 = Signal::SIGTSTP.number();
    pub const TTIN: u8 = Signal::SIGTTIN.number();
    pub const TTOU: u8 = Signal::SIGTTOU.number();
    pub const URG: u8 = Signal::SIGURG.number();
    pub const XCPU: u8 = Signal::SIGXCPU.number();
    pub const XFSZ: u8 = Signal::SIGXFSZ.number();
    pub const VTALRM: u8 = Signal::SIGVTALRM.number();
    pub const PROF: u8 = Signal::SIGPROF.number();
    pub const WINCH: u8 = Signal::SIGWINCH.number();
    pub const SYS: u8 = Signal::SIGSYS.number();
}

/// A set of signals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SigSet(pub u64);

impl SigSet {
    /// The set without signals.
    pub const EMPTY: SigSet = SigSet(0);
    /// The two that can be neither caught nor blocked.
    pub const UNBLOCKABLE: SigSet = SigSet(bit(sig::KILL) | bit(sig::STOP));
    /// The four that stop by default.
    pub const STOPS: SigSet = SigSet(bit(sig::STOP) | bit(sig::TSTP) | bit(sig::TTIN) | bit(sig::TTOU));
    /// Those raised by the program's own instructions, delivered before others.
    pub const SYNCHRONOUS: SigSet =
        SigSet(bit(sig::SEGV) | bit(sig::BUS) | bit(sig::ILL) | bit(sig::TRAP) | bit(sig::FPE) | bit(sig::SYS));

    /// Just one signal.
    pub const fn only(signal: u8) -> SigSet {
        SigSet(bit(signal))
    }

    /// Whether `signal` is in the set.
    pub const fn has(self, signal: u8) -> bool {
        self.0 & bit(signal) != 0
    }

    /// The signals in either set.
    pub const fn with(self, other: SigSet) -> SigSet {
        SigSet(self.0 | other.0)
    }

    /// The signals of `self` that are not in `other`.
    pub const fn without(self, other: SigSet) -> SigSet {
        SigSet(self.0 & !other.0)
    }

    /// Whether it holds nothing.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The signal of the set that is delivered first: synchronous ones, then the lowest number.
    pub fn first(self) -> Option<u8> {
        let urgent = self.0 & SigSet::SYNCHRONOUS.0;
        let from = if urgent != 0 { urgent } else { self.0 };
        (from != 0).then(|| from.trailing_zeros() as u8 + 1)
    }
}

const fn bit(signal: u8) -> u64 {
    1 << ((signal - 1) & 63)
}

/// What a signal does without a handler (signal(7)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultAction {
    /// Ends the process.
    Terminate,
    /// Ends it, with the core bit in its wait status.
    Core,
    /// Discarded at delivery.
    Ignore,
    /// Stops all threads of the process.
    Stop,
    /// Continues it (which happened when the signal was sent); nothing at delivery.
    Continue,
}

/// signal(7), column "Action".
pub fn default_action(signal: u8) -> DefaultAction {
    match signal {
        sig::CHLD | sig::URG | sig::WINCH => DefaultAction::Ignore,
        sig::CONT => DefaultAction::Continue,
        sig::STOP | sig::TSTP | sig::TTIN | sig::TTOU => DefaultAction::Stop,
        sig::QUIT | sig::ILL | sig::TRAP | sig::ABRT | sig::BUS | sig::FPE | sig::SEGV => DefaultAction::Core,
        sig::XCPU | sig::XFSZ | sig::SYS => DefaultAction::Core,
        _ => DefaultAction::Terminate,
    }
}

pub use linux_abi::numbers::{SIG_DFL, SIG_IGN};

/// `sa_flags` bits, x86_64.
pub mod sa {
    #![allow(missing_docs, reason = "the names are sigaction(2)'s own")]
    use linux_abi::flags::process as abi;

    pub const NOCLDSTOP: u64 = abi::SA_NOCLDSTOP;
    pub const NOCLDWAIT: u64 = abi::SA_NOCLDWAIT;
    pub const SIGINFO: u64 = abi::SA_SIGINFO;
    pub const RESTORER: u64 = abi::SA_RESTORER;
    pub const ONSTACK: u64 = abi::SA_ONSTACK;
    pub const RESTART: u64 = abi::SA_RESTART;
    pub const NODEFER: u64 = abi::SA_NODEFER;
    pub const RESETHAND: u64 = abi::SA_RESETHAND;
}

/// What the program asked for one signal; the kernel's `struct sigaction` in its own order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Disposition {
    /// [`SIG_DFL`], [`SIG_IGN`] or the handler's address.
    pub handler: u64,
    /// Flags of sigaction(2), from [`sa`].
    pub flags: u64,
    /// Where the handler returns to.
    pub restorer: u64,
    /// Blocked while the handler runs.
    pub mask: SigSet,
}

impl Disposition {
    /// What is left of it without the program that asked for it: a handler is the default then, the rest is 0
    /// (execve(2)).
    pub fn forget_handler(&mut self) {
        let handler = if self.handler == SIG_IGN { SIG_IGN } else { SIG_DFL };
        *self = Self { handler, ..Self::default() };
    }

    /// Whether sending `signal` has no effect at all under this disposition.
    pub fn ignores(&self, signal: u8) -> bool {
        match self.handler {
            SIG_IGN => true,
            SIG_DFL => matches!(default_action(signal), DefaultAction::Ignore),
            _ => false,
        }
    }
}

/// What delivering a signal means now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// The signal is discarded.
    Drop,
    /// Run the handler.
    Handle(Disposition),
    /// End the process, with or without the core bit.
    Kill {
        /// Whether the wait status carries the core bit.
        core: bool,
    },
    /// Stop it. `SIGSTOP` always; the other three not in an orphaned process group, which the caller checks.
    Stop,
}

/// The rule of delivery. `protected` is true for init, which no signal of its own namespace kills by default.
pub fn deliver(signal: u8, disposition: &Disposition, protected: bool) -> Delivery {
    if SigSet::UNBLOCKABLE.has(signal) {
        return match (protected, signal) {
            (true, _) => Delivery::Drop,
            (false, sig::KILL) => Delivery::Kill { core: false },
            (false, _) => Delivery::Stop,
        };
    }
    match disposition.handler {
        SIG_IGN => Delivery::Drop,
        SIG_DFL => match default_action(signal) {
            DefaultAction::Ignore | DefaultAction::Continue => Delivery::Drop,
            _ if protected => Delivery::Drop,
            DefaultAction::Terminate => Delivery::Kill { core: false },
            DefaultAction::Core => Delivery::Kill { core: true },
            DefaultAction::Stop => Delivery::Stop,
        },
        _ => Delivery::Handle(*disposition),
    }
}

/// Values of `si_code` that the kernel itself sends (sigaction(2)).
pub mod code {
    #![allow(missing_docs, reason = "the names are sigaction(2)'s own")]
    pub use linux_abi::signals::{
        BUS_ADRALN, BUS_ADRERR, CLD_CONTINUED, CLD_DUMPED, CLD_EXITED, CLD_KILLED, CLD_STOPPED, FPE_INTDIV, ILL_ILLOPN,
        SEGV_ACCERR, SEGV_MAPERR, TRAP_BRKPT, TRAP_TRACE,
    };

    use linux_abi::numbers;

    pub const USER: i32 = numbers::SI_USER;
    pub const KERNEL: i32 = numbers::SI_KERNEL;
    pub const QUEUE: i32 = numbers::SI_QUEUE;
    pub const TIMER: i32 = numbers::SI_TIMER;
    pub const TKILL: i32 = numbers::SI_TKILL;
}

/// The part of a siginfo that depends on `si_code`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// No further fields.
    None,
    /// `kill`, `tgkill`: sender.
    Sender {
        /// Process id of the sender, in the receiver's view.
        pid: u32,
        /// Its real user.
        uid: u32,
    },
    /// `sigqueue`: sender and value.
    Value {
        /// Process id of the sender, in the receiver's view.
        pid: u32,
        /// Its real user.
        uid: u32,
        /// `si_value`: the word the sender passed.
        value: u64,
    },
    /// A POSIX timer.
    Timer {
        /// `si_timerid`: the id that timer_create(2) returned.
        id: u32,
        /// Expirations that found the signal still pending.
        overrun: u32,
        /// `si_value`: the word passed to timer_create(2).
        value: u64,
        /// Which setting of the timer sent it; no program sees this.
        setting: u64,
    },
    /// A fault at an address.
    Fault {
        /// `si_addr`: the faulting address.
        addr: u64,
    },
    /// A child changed state.
    Child {
        /// Process id of the child.
        pid: u32,
        /// Its real user.
        uid: u32,
        /// Exit code or signal.
        status: i32,
        /// User time in clock ticks.
        utime: u64,
        /// System time in clock ticks.
        stime: u64,
    },
    /// A file is ready.
    Poll {
        /// `si_band`: the poll(2) events that are ready.
        band: u64,
        /// `si_fd`: the descriptor that is ready.
        fd: i32,
    },
    /// The program's own 112 bytes, from `rt_sigqueueinfo`. Apart, so that the others are cheap to copy.
    Raw(Arc<[u64; SIGINFO_WORDS - 2]>),
}

/// Who sent a signal and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SigInfo {
    /// `si_signo`: the signal's number, 1 to 64.
    pub signal: u8,
    /// `si_code`: one of [`code`] or the sender's own value.
    pub code: i32,
    /// `si_errno`: 0 for every signal the kernel sends.
    pub errno: i32,
    /// The fields that depend on `code`.
    pub cause: Cause,
}

/// Words of `siginfo_t`, 128 bytes.
pub const SIGINFO_WORDS: usize = 16;

impl SigInfo {
    /// From the kernel itself (`SI_KERNEL`).
    pub fn kernel(signal: u8) -> SigInfo {
        SigInfo { signal, code: code::KERNEL, errno: 0, cause: Cause::None }
    }

    /// A fault of the running program.
    pub fn fault(signal: u8, code: i32, addr: u64) -> SigInfo {
        SigInfo { signal, code, errno: 0, cause: Cause::Fault { addr } }
    }

    /// The layout of `siginfo_t` (asm-generic/siginfo.h, 64 bit), in words of low byte first.
    pub fn words(&self) -> [u64; SIGINFO_WORDS] {
        let mut words = [0; SIGINFO_WORDS];
        self.write(&mut words);
        words
    }

    /// [`Self::words`] into `words`, which are zeros.
    #[inline]
    pub fn write(&self, words: &mut [u64; SIGINFO_WORDS]) {
        let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        words[0] = pair(u32::from(self.signal), self.errno as u32);
        words[1] = u64::from(self.code as u32);
        match &self.cause {
            Cause::None => {}
            Cause::Sender { pid, uid } => words[2] = pair(*pid, *uid),
            Cause::Value { pid, uid, value } => (words[2], words[3]) = (pair(*pid, *uid), *value),
            Cause::Timer { id, overrun, value, .. } => (words[2], words[3]) = (pair(*id, *overrun), *value),
            Cause::Fault { addr } => words[2] = *addr,
            Cause::Child { pid, uid, status, utime, stime } => {
                (words[2], words[3]) = (pair(*pid, *uid), u64::from(*status as u32));
                (words[4], words[5]) = (*utime, *stime);
            }
            Cause::Poll { band, fd } => (words[2], words[3]) = (*band, u64::from(*fd as u32)),
            Cause::Raw(rest) => words[2..].copy_from_slice(&rest[..]),
        }
    }

    /// Reads a `siginfo_t` a program passed; `signal` replaces what it says.
    pub fn decode(words: &[u64; SIGINFO_WORDS], signal: u8) -> SigInfo {
        let mut rest = [0; SIGINFO_WORDS - 2];
        rest.copy_from_slice(&words[2..]);
        let (code, errno) = (words[1] as i32, (words[0] >> 32) as i32);
        SigInfo { signal, code, errno, cause: Cause::Raw(Arc::new(rest)) }
    }
}

/// Signals sent and not yet delivered. Each entry of the queue keeps a `Ticket`, dropped when the signal is taken or
/// thrown away; a timer's has none, since the timer has counted its entry.
#[derive(Debug)]
pub struct Pending<Ticket> {
    set: SigSet,
    queue: VecDeque<(SigInfo, Option<Ticket>)>,
}

impl<Ticket> Default for Pending<Ticket> {
    fn default() -> Self {
        Self::new()
    }
}

impl<Ticket> Pending<Ticket> {
    /// No pending signals; allocates nothing.
    pub const fn new() -> Self {
        Self { set: SigSet::EMPTY, queue: VecDeque::new() }
    }

    /// The set of pending signals.
    pub fn set(&self) -> SigSet {
        self.set
    }

    /// How many entries are queued.
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.set.is_empty()
    }

    /// Adds a signal. An ordinary one that already waits is merged. `admit` gives the ticket for an entry; it is told
    /// whether the limit binds this signal, which it does not if `kill` or the kernel sends an ordinary one. Without a
    /// ticket an ordinary signal still becomes pending (without its info), a real-time one of `kill` too, and another
    /// real-time one is refused: `false`, which is `EAGAIN` for `sigqueue`.
    ///
    /// A timer's signal is merged with that of the same timer only, which then counts one overrun more, since the timer
    /// goes on when this very entry is taken.
    pub fn push(&mut self, info: SigInfo, admit: impl FnOnce(Limit) -> Option<Ticket>) -> bool {
        if let Cause::Timer { id, setting, .. } = info.cause {
            self.push_timer(info, id, setting);
            return true;
        }
        let ordinary = info.signal < FIRST_RT;
        if ordinary && self.set.has(info.signal) {
            return true;
        }
        let ticket = admit(if ordinary && info.code >= 0 { Limit::Lifted } else { Limit::Binds });
        if ticket.is_none() && !ordinary && info.code != code::USER {
            return false;
        }
        self.set = self.set.with(SigSet::only(info.signal));
        if ticket.is_some() {
            self.queue.push_back((info, ticket));
        }
        true
    }

    /// Takes the next signal among `wanted`.
    pub fn take(&mut self, wanted: SigSet) -> Option<SigInfo> {
        let signal = SigSet(self.set.0 & wanted.0).first()?;
        let is_it = |(info, _): &(SigInfo, Option<Ticket>)| info.signal == signal;
        let info = if self.queue.front().is_some_and(is_it) {
            self.queue.pop_front()
        } else {
            self.queue.iter().position(is_it).and_then(|at| self.queue.remove(at))
        };
        if self.queue.is_empty() || !self.queue.iter().any(is_it) {
            self.set = self.set.without(SigSet::only(signal));
        }
        Some(info.map(|(info, _)| info).unwrap_or(SigInfo { signal, code: code::USER, errno: 0, cause: Cause::None }))
    }

    /// Forgets the signals of POSIX timers (exec); a signal that was sent by other means too stays.
    pub fn discard_timers(&mut self) {
        let of_timer = |info: &SigInfo| matches!(info.cause, Cause::Timer { .. });
        let (mut gone, mut left) = (SigSet::EMPTY, SigSet::EMPTY);
        for (info, _) in &self.queue {
            let set = if of_timer(info) { &mut gone } else { &mut left };
            *set = set.with(SigSet::only(info.signal));
        }
        if !gone.is_empty() {
            self.queue.retain(|(info, _)| !of_timer(info));
            self.set = self.set.without(gone).with(left);
        }
    }

    /// Forgets every pending signal of `set`.
    pub fn discard(&mut self, set: SigSet) {
        if self.set.0 & set.0 != 0 {
            self.queue.retain(|(info, _)| !set.has(info.signal));
            self.set = self.set.without(set);
        }
    }

    fn push_timer(&mut self, info: SigInfo, timer: u32, latest: u64) {
        for (queued, _) in self.queue.iter_mut().filter(|(queued, _)| queued.signal == info.signal) {
            if let Cause::Timer { id, overrun, setting, .. } = &mut queued.cause
                && *id == timer
            {
                *overrun = overrun.saturating_add(1).min(i32::MAX as u32);
                *setting = latest;
                return;
            }
        }
        self.set = self.set.with(SigSet::only(info.signal));
        self.queue.push_back((info, None));
    }
}

/// Whether `RLIMIT_SIGPENDING` applies to a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// The limit holds: the signal is refused once the user has as many queued.
    Binds,
    /// It is counted, and queued however many there are.
    Lifted,
}

/// How a call that a signal interrupted continues: Linux's kernel-internal error numbers, which programs never see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupted {
    /// `ERESTARTSYS`: again if the handler has `SA_RESTART` or there is no handler, else `EINTR`.
    Restart,
    /// `ERESTARTNOINTR`: always again.
    Always,
    /// `ERESTARTNOHAND`: `EINTR` if a handler runs, again if none does.
    UnlessHandled,
    /// `ERESTART_RESTARTBLOCK`: `EINTR` if a handler runs, else `restart_syscall`.
    Block,
}

/// What to do with the interrupted call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resume {
    /// The call returns `EINTR`.
    Fail,
    /// Execute the same call again.
    Again,
    /// The thread executes `restart_syscall`, which resumes the call with the time that remains.
    RestartBlock,
}

/// `handler` holds the flags of the handler about to run, if one is.
pub fn resume(kind: Interrupted, handler: Option<u64>) -> Resume {
    match (kind, handler) {
        (Interrupted::Always, _) => Resume::Again,
        (Interrupted::Block, None) => Resume::RestartBlock,
        (_, None) => Resume::Again,
        (Interrupted::Restart, Some(flags)) if flags & sa::RESTART != 0 => Resume::Again,
        (_, Some(_)) => Resume::Fail,
    }
}

/// Whether a sender may signal a target, by credentials alone (kill(2)).
pub fn may_signal(sender: (u32, u32), target: (u32, u32), sender_is_capable: bool) -> bool {
    let (ruid, euid) = sender;
    let (target_ruid, target_suid) = target;
    sender_is_capable || [ruid, euid].iter().any(|uid| *uid == target_ruid || *uid == target_suid)
}

//! Decides what a signal does: which is delivered next, what its default is, and how an interrupted call goes on.
//!
//! Nouns: a [`SigSet`] is 64 bits, bit `n - 1` for signal `n`. A [`SigInfo`] says who sent a signal and why; [`Pending`]
//! holds those not yet delivered (ordinary signals once each, real-time ones queued in order); a [`Disposition`] is what
//! the program asked for with sigaction(2). Source: signal(7), sigaction(2).

use alloc::collections::VecDeque;
use alloc::sync::Arc;

/// Highest signal number.
pub const MAX_SIGNAL: u8 = 64;
/// First real-time signal.
pub const FIRST_RT: u8 = 32;

/// Signal numbers the rules need (x86_64 and aarch64 agree on all of them).
pub mod sig {
    #![allow(missing_docs, reason = "the names are signal(7)'s own")]
    pub const HUP: u8 = 1;
    pub const INT: u8 = 2;
    pub const QUIT: u8 = 3;
    pub const ILL: u8 = 4;
    pub const TRAP: u8 = 5;
    pub const ABRT: u8 = 6;
    pub const BUS: u8 = 7;
    pub const FPE: u8 = 8;
    pub const KILL: u8 = 9;
    pub const USR1: u8 = 10;
    pub const SEGV: u8 = 11;
    pub const PIPE: u8 = 13;
    pub const ALRM: u8 = 14;
    pub const TERM: u8 = 15;
    pub const CHLD: u8 = 17;
    pub const CONT: u8 = 18;
    pub const STOP: u8 = 19;
    pub const TSTP: u8 = 20;
    pub const TTIN: u8 = 21;
    pub const TTOU: u8 = 22;
    pub const URG: u8 = 23;
    pub const XCPU: u8 = 24;
    pub const XFSZ: u8 = 25;
    pub const VTALRM: u8 = 26;
    pub const PROF: u8 = 27;
    pub const WINCH: u8 = 28;
    pub const SYS: u8 = 31;
}

/// A set of signals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SigSet(pub u64);

impl SigSet {
    /// No signal.
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

    /// Union.
    pub const fn with(self, other: SigSet) -> SigSet {
        SigSet(self.0 | other.0)
    }

    /// Difference.
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

/// What a signal does when nobody handles it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultAction {
    /// Ends the process.
    Terminate,
    /// Ends it, with the core bit in its wait status.
    Core,
    /// Nothing.
    Ignore,
    /// Stops it.
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

/// `SIG_DFL`
pub const SIG_DFL: u64 = 0;
/// `SIG_IGN`
pub const SIG_IGN: u64 = 1;

/// `sa_flags` bits, x86_64.
pub mod sa {
    #![allow(missing_docs, reason = "the names are sigaction(2)'s own")]
    pub const NOCLDSTOP: u64 = 1;
    pub const NOCLDWAIT: u64 = 2;
    pub const SIGINFO: u64 = 4;
    pub const RESTORER: u64 = 0x0400_0000;
    pub const ONSTACK: u64 = 0x0800_0000;
    pub const RESTART: u64 = 0x1000_0000;
    pub const NODEFER: u64 = 0x4000_0000;
    pub const RESETHAND: u64 = 0x8000_0000;
}

/// What the program asked for one signal; the kernel's `struct sigaction` in its own order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Disposition {
    /// [`SIG_DFL`], [`SIG_IGN`] or the handler's address.
    pub handler: u64,
    /// [`sa`] bits.
    pub flags: u64,
    /// Where the handler returns to.
    pub restorer: u64,
    /// Blocked while the handler runs.
    pub mask: SigSet,
}

impl Disposition {
    /// What is left of it without the program that asked for it: a handler is the default then, the rest is 0 (execve(2)).
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
    /// Nothing.
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

/// `si_code` values.
pub mod code {
    #![allow(missing_docs, reason = "the names are sigaction(2)'s own")]
    pub const USER: i32 = 0;
    pub const KERNEL: i32 = 0x80;
    pub const QUEUE: i32 = -1;
    pub const TIMER: i32 = -2;
    pub const TKILL: i32 = -6;
    pub const SEGV_MAPERR: i32 = 1;
    pub const SEGV_ACCERR: i32 = 2;
    pub const BUS_ADRALN: i32 = 1;
    pub const BUS_ADRERR: i32 = 2;
    pub const ILL_ILLOPN: i32 = 2;
    pub const FPE_INTDIV: i32 = 1;
    pub const TRAP_BRKPT: i32 = 1;
    pub const TRAP_TRACE: i32 = 2;
    pub const CLD_EXITED: i32 = 1;
    pub const CLD_KILLED: i32 = 2;
    pub const CLD_DUMPED: i32 = 3;
    pub const CLD_STOPPED: i32 = 5;
    pub const CLD_CONTINUED: i32 = 6;
}

/// The part of a siginfo that depends on `si_code`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// No further fields.
    None,
    /// `kill`, `tgkill`: sender.
    Sender {
        /// Sending process.
        pid: u32,
        /// Its real user.
        uid: u32,
    },
    /// `sigqueue`: sender and value.
    Value {
        /// Sending process.
        pid: u32,
        /// Its real user.
        uid: u32,
        /// `si_value`.
        value: u64,
    },
    /// A POSIX timer.
    Timer {
        /// Timer id.
        id: u32,
        /// Expirations that found the signal still pending.
        overrun: u32,
        /// `si_value`.
        value: u64,
        /// Which setting of the timer sent it; no program sees this.
        setting: u64,
    },
    /// A fault at an address.
    Fault {
        /// `si_addr`.
        addr: u64,
    },
    /// A child changed state.
    Child {
        /// The child.
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
        /// `si_band`
        band: u64,
        /// `si_fd`
        fd: i32,
    },
    /// The program's own 112 bytes, from `rt_sigqueueinfo`. Apart, so that the others are cheap to copy.
    Raw(Arc<[u64; SIGINFO_WORDS - 2]>),
}

/// Who sent a signal and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SigInfo {
    /// Signal number.
    pub signal: u8,
    /// `si_code`
    pub code: i32,
    /// `si_errno`
    pub errno: i32,
    /// The rest.
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
        let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        let mut words = [0; SIGINFO_WORDS];
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
        words
    }

    /// Reads a `siginfo_t` a program passed; `signal` replaces what it says.
    pub fn decode(words: &[u64; SIGINFO_WORDS], signal: u8) -> SigInfo {
        let mut rest = [0; SIGINFO_WORDS - 2];
        rest.copy_from_slice(&words[2..]);
        let (code, errno) = (words[1] as i32, (words[0] >> 32) as i32);
        SigInfo { signal, code, errno, cause: Cause::Raw(Arc::new(rest)) }
    }
}

/// Signals sent and not yet delivered. Each entry of the queue keeps a `Ticket`, dropped when the signal is taken or thrown
/// away; a timer's has none, since the timer has counted its entry.
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
    /// None.
    pub const fn new() -> Self {
        Self { set: SigSet::EMPTY, queue: VecDeque::new() }
    }

    /// Which signals wait.
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

    /// Adds a signal. An ordinary one that already waits is merged. `admit` gives the ticket for an entry; it is told whether
    /// the limit binds this signal, which it does not if `kill` or the kernel sends an ordinary one. Without a ticket an
    /// ordinary signal still becomes pending (without its info), a real-time one of `kill` too, and another real-time one
    /// is refused: `false`, which is `EAGAIN` for `sigqueue`.
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

/// Whether a user's limit on queued signals holds for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// It does.
    Binds,
    /// It is counted, and queued however many there are.
    Lifted,
}

/// How a call that a signal interrupted goes on; the kernel-internal error numbers Linux uses (never seen by programs).
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
    /// Return `EINTR`.
    Fail,
    /// Execute the same call again.
    Again,
    /// Execute `restart_syscall`.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A queue of `limit` entries at most.
    struct Queue {
        pending: Pending<()>,
        limit: usize,
    }

    impl Queue {
        fn of(limit: usize) -> Self {
            Self { pending: Pending::new(), limit }
        }

        fn push(&mut self, info: SigInfo) -> bool {
            let room = self.pending.len() < self.limit;
            self.pending.push(info, |limit| (room || limit == Limit::Lifted).then_some(()))
        }
    }

    fn info(signal: u8, value: u64) -> SigInfo {
        SigInfo { signal, code: code::QUEUE, errno: 0, cause: Cause::Value { pid: 1, uid: 0, value } }
    }

    #[test]
    fn ordinary_signals_merge_and_real_time_ones_queue_in_order() {
        let mut pending = Queue::of(100);
        for value in 0..3 {
            assert!(pending.push(info(sig::USR1, value)));
            assert!(pending.push(info(40, value)));
        }
        assert_eq!(pending.pending.take(SigSet(!0)), Some(info(sig::USR1, 0)));
        for value in 0..3 {
            assert_eq!(pending.pending.take(SigSet(!0)), Some(info(40, value)));
        }
        assert_eq!(pending.pending.take(SigSet(!0)), None);
        assert!(pending.pending.is_empty());
        assert_eq!(pending.pending.take(SigSet(!0)), None);
    }

    #[test]
    fn a_full_queue_refuses_real_time_signals_but_never_loses_an_ordinary_one() {
        let mut pending = Queue::of(1);
        assert!(pending.push(info(40, 0)));
        assert!(!pending.push(info(40, 1)));
        assert!(pending.push(info(sig::TERM, 0)));
        assert_eq!(pending.pending.take(SigSet(!0)).unwrap().signal, sig::TERM);
        assert_eq!(pending.pending.take(SigSet(!0)), Some(info(40, 0)));
    }

    #[test]
    fn signals_of_timers_go_with_their_timers_and_others_stay() {
        let timer = |signal| SigInfo {
            signal,
            code: code::TIMER,
            errno: 0,
            cause: Cause::Timer { id: 1, overrun: 0, value: 0, setting: 0 },
        };
        let mut pending = Queue::of(100);
        for info in [timer(sig::USR1), timer(40), info(40, 7), info(sig::TERM, 0)] {
            assert!(pending.push(info));
        }
        pending.pending.discard_timers();
        assert_eq!(pending.pending.set(), SigSet::only(40).with(SigSet::only(sig::TERM)));
        assert_eq!(pending.pending.take(SigSet::only(40)), Some(info(40, 7)));
        assert_eq!(pending.pending.len(), 1);
    }

    #[test]
    fn a_real_time_signal_of_kill_is_pending_even_without_room_for_its_info() {
        let mut pending = Queue::of(0);
        assert!(pending.push(SigInfo { code: code::USER, ..info(40, 0) }));
        assert!(!pending.push(info(41, 0)));
        assert_eq!(pending.pending.take(SigSet(!0)).map(|info| info.signal), Some(40));
    }

    #[test]
    fn an_ordinary_signal_of_the_kernel_keeps_its_info_however_many_wait() {
        let mut pending = Queue::of(0);
        let fault = SigInfo::fault(sig::SEGV, code::SEGV_MAPERR, 16);
        assert!(pending.push(fault.clone()) && pending.push(info(sig::USR1, 7)));
        assert_eq!(pending.pending.len(), 1, "sigqueue's is only a bit");
        assert_eq!(pending.pending.take(SigSet(!0)), Some(fault));
        assert_eq!(pending.pending.take(SigSet(!0)).map(|info| info.cause), Some(Cause::None));
    }

    #[test]
    fn a_fault_is_delivered_before_an_earlier_hangup() {
        let mut pending = Queue::of(100);
        pending.push(SigInfo::kernel(sig::HUP));
        pending.push(SigInfo::fault(sig::SEGV, code::SEGV_MAPERR, 16));
        assert_eq!(pending.pending.take(SigSet(!0)).unwrap().signal, sig::SEGV);
        assert_eq!(pending.pending.take(SigSet::only(sig::INT)), None);
    }

    #[test]
    fn init_survives_what_it_did_not_ask_for() {
        let default = Disposition::default();
        for signal in 1..=MAX_SIGNAL {
            assert_eq!(deliver(signal, &default, true), Delivery::Drop, "signal {signal}");
        }
        let handled = Disposition { handler: 0x1000, ..default };
        assert_eq!(deliver(sig::TERM, &handled, true), Delivery::Handle(handled));
        assert_eq!(deliver(sig::KILL, &handled, false), Delivery::Kill { core: false });
    }

    #[test]
    fn interrupted_calls_restart_only_where_linux_restarts_them() {
        assert_eq!(resume(Interrupted::Restart, Some(sa::RESTART)), Resume::Again);
        assert_eq!(resume(Interrupted::Restart, Some(0)), Resume::Fail);
        assert_eq!(resume(Interrupted::UnlessHandled, Some(sa::RESTART)), Resume::Fail);
        assert_eq!(resume(Interrupted::Block, Some(sa::RESTART)), Resume::Fail);
        assert_eq!(resume(Interrupted::Block, None), Resume::RestartBlock);
        assert_eq!(resume(Interrupted::Always, Some(0)), Resume::Again);
    }

    #[test]
    fn a_siginfo_survives_its_wire_form() {
        let encoded = SigInfo::fault(sig::SEGV, code::SEGV_ACCERR, 0x1234_5678_9abc).words();
        assert_eq!(encoded[..3], [11, 2, 0x1234_5678_9abc]);
        let again = SigInfo::decode(&encoded, sig::SEGV).words();
        assert_eq!(encoded, again);
    }

    #[test]
    fn default_actions_end_stop_or_do_nothing_and_ignoring_beats_them() {
        let default = Disposition::default();
        let ignored = Disposition { handler: SIG_IGN, ..default };
        let handled = Disposition { handler: 0x1000, ..default };
        assert_eq!(deliver(sig::TERM, &default, false), Delivery::Kill { core: false });
        assert_eq!(deliver(sig::SEGV, &default, false), Delivery::Kill { core: true });
        assert_eq!(deliver(sig::TSTP, &default, false), Delivery::Stop);
        assert_eq!(deliver(sig::STOP, &handled, false), Delivery::Stop);
        assert_eq!(deliver(sig::CHLD, &default, false), Delivery::Drop);
        assert_eq!(deliver(sig::SEGV, &ignored, false), Delivery::Drop);
        assert!(default.ignores(sig::CHLD) && !default.ignores(sig::TERM));
        assert!(ignored.ignores(sig::TERM) && !handled.ignores(sig::CHLD));
    }

    #[test]
    fn discarded_signals_are_gone_and_the_others_stay_in_order() {
        let mut pending = Queue::of(100);
        for signal in [sig::TSTP, 40, sig::CONT, 40] {
            assert!(pending.push(info(signal, u64::from(signal))));
        }
        pending.pending.discard(SigSet::only(sig::CONT));
        assert!(!pending.pending.set().has(sig::CONT) && pending.pending.set().has(sig::TSTP));
        pending.pending.discard(SigSet::only(50));
        assert_eq!(pending.pending.len(), 3);
        assert_eq!(pending.pending.take(SigSet::only(40)).map(|info| info.signal), Some(40));
        assert_eq!(pending.pending.len(), 2);
    }

    #[test]
    fn a_timers_signal_waits_once_beside_an_ordinary_one_and_counts_for_its_last_setting() {
        let timer = |id, setting| SigInfo {
            signal: sig::USR1,
            code: code::TIMER,
            errno: 0,
            cause: Cause::Timer { id, overrun: 0, value: 7, setting },
        };
        let wanted = SigSet::only(sig::USR1);
        let mut pending = Queue::of(1);
        assert!(pending.push(info(sig::USR1, 0)));
        assert!(pending.push(timer(1, 1)) && pending.push(timer(2, 1)) && pending.push(timer(1, 2)));
        assert_eq!(pending.pending.take(wanted).map(|info| info.cause), Some(info(sig::USR1, 0).cause));
        assert!(pending.pending.set().has(sig::USR1), "the timers' signals still wait");
        let first = Cause::Timer { id: 1, overrun: 1, value: 7, setting: 2 };
        assert_eq!(pending.pending.take(wanted).map(|info| info.cause), Some(first));
        assert_eq!(pending.pending.take(wanted).map(|info| info.cause), Some(timer(2, 1).cause));
        assert!(pending.pending.is_empty());
    }

    /// Offsets of the union's members in siginfo_t (asm-generic/siginfo.h, 64 bit).
    #[test]
    fn every_cause_has_its_fields_where_programs_look() {
        let bytes = |cause| {
            let info = SigInfo { signal: sig::USR1, code: -1, errno: 5, cause };
            info.words().map(u64::to_le_bytes).as_flattened().to_vec()
        };
        let word = |bytes: &[u8], at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let long = |bytes: &[u8], at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        let none = bytes(Cause::None);
        assert_eq!((word(&none, 0), word(&none, 4), word(&none, 8)), (u32::from(sig::USR1), 5, u32::MAX));
        assert!(none[16..].iter().all(|byte| *byte == 0));
        let sender = bytes(Cause::Sender { pid: 7, uid: 1000 });
        assert_eq!((word(&sender, 16), word(&sender, 20)), (7, 1000));
        let value = bytes(Cause::Value { pid: 7, uid: 1000, value: 1 << 40 });
        assert_eq!((word(&value, 16), word(&value, 20), long(&value, 24)), (7, 1000, 1 << 40));
        let timer = bytes(Cause::Timer { id: 3, overrun: 9, value: 11, setting: u64::MAX });
        assert_eq!((word(&timer, 16), word(&timer, 20), long(&timer, 24)), (3, 9, 11));
        let child = bytes(Cause::Child { pid: 7, uid: 1, status: 2, utime: 3, stime: 4 });
        assert_eq!((word(&child, 24), long(&child, 32), long(&child, 40)), (2, 3, 4));
        let poll = bytes(Cause::Poll { band: 1, fd: -2 });
        assert_eq!((long(&poll, 16), word(&poll, 24)), (1, -2i32 as u32));
    }
}

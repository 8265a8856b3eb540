//! Terminals: the console on the first serial line, and pseudo-terminals ([`pty`]).
//!
//! A [`Tty`] joins the line discipline of `kernel_logic::tty` to a device and to job control: which session it
//! controls, which of its process groups may read and write ([`job`]). Requests are in [`ioctl`].

mod ioctl;
mod job;
pub mod pty;

use alloc::sync::Arc;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicU32};

use kernel_logic::readiness::{ERR, HUP, IN, OUT, RDNORM, WRNORM};
use kernel_logic::signal::sig;
use kernel_logic::tty::marks::Marks;
use kernel_logic::tty::termios::{ICANON, TOSTOP, Termios, VMIN, VTIME};
use kernel_logic::tty::{Action, LineDiscipline, Taken};
use linux_abi::Errno;
use linux_abi::flags::system::{TIOCSCTTY, TIOCSPGRP};
use machine::sync::{Once, SpinLock};
use machine::time::now;

use crate::fs::dev::kmsg::check_reader;
use crate::fs::dev::{CONSOLE, PTMX, TTY_S0, split};
use crate::fs::file::{File, FileOps};
use crate::fs::inode::DeviceNode;
use crate::fs::io::{Sink, Source};
use crate::sched::{Sleep, breathe_or_stop};
use crate::sync::WaitReason;
use crate::sync::wait::{WaitError, WaitQueue, Waiter};
use crate::task::creds::cap;
use crate::task::{self, Pid};

/// Rows, columns and their sizes in pixels (`struct winsize`).
pub type WindowSize = [u16; 4];

/// A terminal: its line discipline and who may use it.
pub struct Tty {
    /// Device number of its node.
    pub rdev: u64,
    discipline: SpinLock<LineDiscipline>,
    control: SpinLock<Control>,
    window: SpinLock<WindowSize>,
    /// Something to read: the reader whose turn it is waits here.
    readable: WaitQueue,
    turn: ReadTurn,
    /// Output goes on after a stop.
    writable: WaitQueue,
    /// What a pseudo-terminal is connected to; the console has none.
    wire: Option<pty::Wire>,
    /// `TIOCEXCL`: only a program with `CAP_SYS_ADMIN` may open it again.
    exclusive: AtomicBool,
    /// How often it was hung up: descriptions that were opened before stand for nothing any more.
    hang_ups: AtomicU32,
}

/// The right to read from one side of a terminal. A read keeps it until it returns, so a line is not shared between
/// readers and input wakes one of them; the others wait for their turn.
struct ReadTurn {
    taken: AtomicBool,
    freed: WaitQueue,
}

/// A read's turn, given up by dropping it.
struct Reading<'t>(&'t ReadTurn);

impl ReadTurn {
    const fn new() -> Self {
        Self { taken: AtomicBool::new(false), freed: WaitQueue::new(WaitReason::ReadTurn) }
    }

    /// Waits for the turn: `EAGAIN` if another read has it and the caller must not wait.
    fn take(&self, nonblocking: bool) -> Result<Reading<'_>, Errno> {
        let attempt = || self.taken.compare_exchange(false, true, Acquire, Relaxed).ok();
        match attempt() {
            Some(_) => {}
            None if nonblocking => return Err(Errno::EAGAIN),
            None => {
                self.freed.wait_exclusive(None, attempt)?;
            }
        }
        Ok(Reading(self))
    }
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        self.0.taken.store(false, Release);
        self.0.freed.wake_one();
    }
}

/// Whose terminal it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Control {
    /// The session it controls, 0 for none.
    pub session: Pid,
    /// The foreground process group, 0 for none.
    pub foreground: Pid,
}

static CONSOLE_TTY: Once<Arc<Tty>> = Once::new();

/// The terminal of the serial console.
pub fn console() -> &'static Arc<Tty> {
    loop {
        if let Some(tty) = CONSOLE_TTY.get() {
            return tty;
        }
        if CONSOLE_TTY.set(Tty::new(TTY_S0, Termios::console(), None)).is_ok() {
            machine::console::enable_input();
        }
    }
}

/// Whether input on the console can wake a thread: one waits for it, or a key can send its foreground group a signal.
/// Waits for no lock.
pub fn console_can_wake() -> bool {
    CONSOLE_TTY.get().is_some_and(|tty| {
        let controls = tty.control.try_lock().is_none_or(|control| control.foreground != 0);
        controls || tty.readable.has_waiters() || tty.writable.has_waiters()
    })
}

/// Opens `/dev/console`, `/dev/ttyS0`, `/dev/tty`, `/dev/ptmx` or a terminal of devpts.
pub fn open(node: &DeviceNode<'_>, flags: u32) -> Result<Arc<dyn FileOps>, Errno> {
    let rdev = node.rdev;
    if rdev == PTMX {
        return pty::open_master();
    }
    if let (pty::MAJOR, index) = split(rdev) {
        return pty::open_slave(index as u32, node, flags);
    }
    let console_node = rdev == CONSOLE;
    if !console_node && rdev != TTY_S0 {
        let session = task::current().process.family.session();
        let tty = session.terminal.lock().clone().ok_or(Errno::ENXIO)?;
        tty.check_exclusive()?;
        return Ok(TtyFile::new(tty));
    }
    let tty = console().clone();
    tty.check_exclusive()?;
    // Opening the console device itself never makes it a controlling terminal.
    if console_node {
        return Ok(TtyFile::of_console(tty));
    }
    job::adopt_if_free(&tty, flags);
    Ok(TtyFile::new(tty))
}

/// Drains the console's device: every byte goes through the line discipline. Thread context.
pub fn console_input() {
    let tty = console();
    while let Some(byte) = machine::console::read() {
        tty.input(byte, Trust::Full);
    }
}

/// The controlling terminal's device number of a session, for `/proc/PID/stat`, with its foreground group.
pub fn of_session(session: &task::Session) -> Option<(u64, Pid)> {
    let tty = session.terminal.lock().clone()?;
    let control = *tty.control.lock();
    Some((tty.rdev, control.foreground))
}

/// vhangup(2): the session of the caller loses its terminal, and all that is open of it ends.
pub fn hang_up_own() {
    let terminal = task::current().process.family.session().terminal.lock().clone();
    if let Some(tty) = terminal {
        tty.hang_up();
        job::hang_up(&tty);
    }
}

/// The leader of `session` ended: its terminal is hung up (called by exit).
pub fn leader_ended(tty: &Arc<Tty>, session: &task::Session) {
    job::disassociate(tty, session.id);
}

/// Output on its way to the screen, shown in few pieces: a line and its end together, so that no event of another
/// processor comes between them.
struct Gathered<'t> {
    tty: &'t Tty,
    trust: Trust,
    bytes: [u8; GATHERED],
    len: usize,
}

impl Gathered<'_> {
    fn put(&mut self, bytes: &[u8]) {
        if bytes.len() > GATHERED - self.len {
            self.show();
        }
        match self.bytes.get_mut(self.len..self.len + bytes.len()) {
            Some(room) => {
                room.copy_from_slice(bytes);
                self.len += bytes.len();
            }
            None => self.tty.screen_for(self.trust, bytes),
        }
    }

    fn show(&mut self) {
        if self.len > 0 {
            self.tty.screen_for(self.trust, &self.bytes[..core::mem::take(&mut self.len)]);
        }
    }
}

/// Whether output on the console may read like the kernel's own lines ([`Marks`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Trust {
    /// Input over the wire, or output of a thread that may read and write the kernel's log.
    Full,
    /// Output of an ordinary user.
    None,
}

impl Trust {
    /// The running thread's.
    fn of_caller() -> Self {
        if check_reader().is_ok() { Self::Full } else { Self::None }
    }
}

/// What ordinary users showed on the console last.
static SHOWN: SpinLock<Marks> = SpinLock::new(Marks::new());

/// Most bytes that are shown at once.
const GATHERED: usize = 512;

impl Tty {
    fn new(rdev: u64, termios: Termios, wire: Option<pty::Wire>) -> Arc<Self> {
        Arc::new(Self {
            rdev,
            discipline: SpinLock::new(LineDiscipline::new(termios)),
            control: SpinLock::new(Control::default()),
            window: SpinLock::new([0; 4]),
            readable: WaitQueue::new(WaitReason::TerminalInput),
            turn: ReadTurn::new(),
            writable: WaitQueue::new(WaitReason::TerminalOutput),
            wire,
            exclusive: AtomicBool::new(false),
            hang_ups: AtomicU32::new(0),
        })
    }

    /// Whether the calling program may open the terminal: `EBUSY` while it is exclusive (`TIOCEXCL`).
    fn check_exclusive(&self) -> Result<(), Errno> {
        let privileged = || task::current().creds.with(|creds| creds.capable(cap::SYS_ADMIN));
        if self.exclusive.load(Relaxed) && !privileged() { Err(Errno::EBUSY) } else { Ok(()) }
    }

    /// Shows bytes as they are; [`Tty::shown`] follows once the discipline is unlocked.
    fn screen(&self, bytes: &[u8]) {
        match &self.wire {
            None => machine::console::write(bytes),
            Some(wire) => wire.put(bytes),
        }
    }

    /// [`Tty::screen`], the console's without marks of the kernel's lines unless there is trust.
    fn screen_for(&self, trust: Trust, bytes: &[u8]) {
        if trust == Trust::Full || self.wire.is_some() {
            return self.screen(bytes);
        }
        SHOWN.lock().pass(bytes, &mut |bytes| self.screen(bytes));
    }

    /// Wakes a master that waits for output.
    fn shown(&self) {
        if let Some(wire) = &self.wire {
            wire.was_shown();
        }
    }

    /// Wakes a master that waits for room to type.
    fn made_room(&self) {
        if let Some(wire) = &self.wire {
            wire.was_read();
        }
    }

    /// Ends all open descriptions of it but those of `/dev/console`: what is left of a session does not read what the
    /// next user types.
    fn hang_up(&self) {
        self.hang_ups.fetch_add(1, Release);
        self.readable.wake_all();
        self.writable.wake_all();
    }

    fn is_cut(&self) -> bool {
        self.wire.as_ref().is_some_and(pty::Wire::is_cut)
    }

    /// Whether a program that writes must wait.
    fn is_stopped(&self) -> bool {
        self.discipline.lock().output_stopped()
            || self.wire.as_ref().is_some_and(|wire| !wire.is_cut() && !wire.has_room())
    }

    fn input(&self, byte: u8, trust: Trust) {
        let mut discipline = self.discipline.lock();
        let was_stopped = discipline.output_stopped();
        let action = discipline.input(byte, &mut |bytes| self.screen_for(trust, bytes));
        let restarted = was_stopped && !discipline.output_stopped();
        drop(discipline);
        self.shown();
        if restarted {
            self.writable.wake_all();
        }
        match action {
            Action::None => {}
            Action::Readable => self.readable.wake_all(),
            Action::Interrupt => job::signal_foreground(self, sig::INT),
            Action::Quit => job::signal_foreground(self, sig::QUIT),
            Action::Suspend => job::signal_foreground(self, sig::TSTP),
        }
    }

    /// The settings (termios(3)).
    pub fn termios(&self) -> Termios {
        *self.discipline.lock().termios()
    }

    fn try_read(&self, buffer: &mut [u8]) -> Option<usize> {
        if self.is_cut() {
            // What was typed before is lost.
            return Some(0);
        }
        let taken = self.discipline.lock().take(buffer);
        match taken {
            Taken::Nothing => None,
            Taken::Bytes(count) => {
                self.made_room();
                Some(count)
            }
        }
    }
}

/// What a descriptor of a terminal stands for.
struct TtyFile {
    tty: Arc<Tty>,
    /// [`Tty::hang_ups`] when it was opened; `None` for what no hang-up ends.
    opened: Option<u32>,
}

impl TtyFile {
    fn new(tty: Arc<Tty>) -> Arc<Self> {
        if let Some(wire) = &tty.wire {
            wire.opened();
        }
        let opened = Some(tty.hang_ups.load(Acquire));
        Arc::new(Self { tty, opened })
    }

    /// Of the console's own device, which goes on.
    fn of_console(tty: Arc<Tty>) -> Arc<Self> {
        Arc::new(Self { tty, opened: None })
    }

    /// The terminal was hung up since this was opened.
    fn is_over(&self) -> bool {
        self.opened.is_some_and(|opened| opened != self.tty.hang_ups.load(Acquire))
    }

    fn try_read(&self, buffer: &mut [u8]) -> Option<usize> {
        if self.is_over() { Some(0) } else { self.tty.try_read(buffer) }
    }

    /// A read in raw mode: returns as VMIN and VTIME say (termios(3)).
    fn read_raw(&self, termios: &Termios, buffer: &mut [u8]) -> Result<usize, Errno> {
        let least = usize::from(termios.cc[VMIN]).min(buffer.len());
        let tenths = u64::from(termios.cc[VTIME]) * 100_000_000;
        let mut done = self.try_read(buffer).unwrap_or(0);
        // With VMIN, the time runs from the last byte; without it, from the call.
        while done < least.max(1) {
            if least == 0 && tenths == 0 {
                break;
            }
            let timed = tenths > 0 && (least == 0 || done > 0);
            let deadline = timed.then(|| now() + tenths);
            let got =
                self.tty.readable.wait_until(deadline, Sleep::Interruptible, || self.try_read(&mut buffer[done..]));
            match got {
                Ok(0) => break,
                Ok(count) => done += count,
                Err(WaitError::TimedOut) => break,
                Err(WaitError::Interrupted) if done > 0 => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(done)
    }
}

/// Bytes moved at a time between a program and the terminal.
const PIECE: usize = 256;

impl FileOps for TtyFile {
    fn read(&self, file: &File, _position: u64, sink: &mut Sink<'_>) -> Result<(), Errno> {
        if self.is_over() {
            return Ok(());
        }
        job::check_background(&self.tty, sig::TTIN)?;
        let mut buffer = alloc::vec![0; sink.left().min(4096)];
        let termios = self.tty.termios();
        let _turn = self.tty.turn.take(file.is_nonblocking())?;
        let count = if file.is_nonblocking() {
            self.try_read(&mut buffer).ok_or(Errno::EAGAIN)?
        } else if termios.local(ICANON) {
            self.tty.readable.wait(|| self.try_read(&mut buffer))?
        } else {
            self.read_raw(&termios, &mut buffer)?
        };
        sink.put(&buffer[..count]).map(|_| ())
    }

    fn write(&self, file: &File, position: u64, source: &mut Source<'_>) -> Result<u64, Errno> {
        if !self.is_over() && self.tty.termios().local(TOSTOP) {
            job::check_background(&self.tty, sig::TTOU)?;
        }
        let trust = if self.tty.wire.is_none() { Trust::of_caller() } else { Trust::Full };
        let mut piece = [0; PIECE];
        while source.left() > 0 {
            if self.is_over() || self.tty.is_cut() {
                return Err(Errno::EIO);
            }
            if self.tty.is_stopped() {
                if file.is_nonblocking() {
                    return Err(Errno::EAGAIN);
                }
                self.tty.writable.wait(|| (self.is_over() || !self.tty.is_stopped()).then_some(()))?;
                continue;
            }
            let count = source.take(&mut piece)?;
            let mut discipline = self.tty.discipline.lock();
            let mut gathered = Gathered { tty: &self.tty, trust, bytes: [0; GATHERED], len: 0 };
            discipline.write(&piece[..count], &mut |bytes| gathered.put(bytes));
            gathered.show();
            drop(discipline);
            self.tty.shown();
            if source.left() > 0 {
                breathe_or_stop(Sleep::Interruptible).map_err(|_| Errno::ERESTARTSYS)?;
            }
        }
        Ok(position)
    }

    fn poll<'q>(&'q self, _file: &'q File, waiter: Option<&mut Waiter<'q>>) -> u32 {
        if let Some(waiter) = waiter {
            waiter.add(&self.tty.readable);
            waiter.add(&self.tty.writable);
        }
        if self.is_over() {
            return IN | OUT | RDNORM | WRNORM | ERR | HUP;
        }
        if self.tty.is_cut() {
            return IN | OUT | RDNORM | WRNORM | HUP;
        }
        let readable = if self.tty.discipline.lock().readable() { IN | RDNORM } else { 0 };
        let writable = if self.tty.is_stopped() { 0 } else { OUT | WRNORM };
        readable | writable
    }

    fn sends_sigio(&self) -> bool {
        true
    }

    fn ioctl(&self, file: &File, request: u64, argument: u64) -> Result<usize, Errno> {
        if self.is_over() {
            return Err(if request == TIOCSPGRP { Errno::ENOTTY } else { Errno::EIO });
        }
        if self.tty.is_cut() {
            return Err(Errno::EIO);
        }
        if request == TIOCSCTTY {
            return job::adopt_on_request(&self.tty, file, argument == 1).map(|()| 0);
        }
        ioctl::handle(&self.tty, request, argument)
    }

    fn release(&self, _file: &File) {
        if let Some(wire) = &self.tty.wire {
            wire.closed();
        }
    }
}

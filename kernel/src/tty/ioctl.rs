//! ioctl requests of terminals (ioctl_tty(2)).

use alloc::sync::Arc;
use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::Relaxed;

use kernel_logic::signal::sig;
use kernel_logic::tty::termios::{TERMIOS_SIZE, Termios};
use linux_abi::Errno;
use linux_abi::flags::system::{
    FIONREAD, TCFLSH, TCGETA, TCGETS, TCGETS2, TCSBRK, TCSBRKP, TCSETA, TCSETAF, TCSETS, TCSETS2, TCSETSF, TCSETSF2,
    TCXONC, TIOCEXCL, TIOCGDEV, TIOCGETD, TIOCGEXCL, TIOCGPGRP, TIOCGSID, TIOCGWINSZ, TIOCMGET, TIOCNOTTY, TIOCNXCL,
    TIOCOUTQ, TIOCSCTTY, TIOCSETD, TIOCSPGRP, TIOCSTI, TIOCSWINSZ,
};

use super::{Trust, Tty, job};
use crate::task::creds::cap;
use crate::task::{self, Pid, tree};
use crate::user::{UserPtr, read_bytes, write_bytes};

/// The speed a pseudo-terminal has.
const B38400: u32 = 0o17;

/// Size of the old `struct termio`, whose flags are 16 bits wide.
const TERMIO_SIZE: usize = 18;

pub(super) fn handle(tty: &Arc<Tty>, request: u64, argument: u64) -> Result<usize, Errno> {
    match request {
        TCGETS => write_bytes(argument, &tty.termios().to_bytes()).map(|()| 0),
        TCSETS..=TCSETSF => {
            let mut bytes = [0; TERMIOS_SIZE];
            read_bytes(argument, &mut bytes)?;
            set(tty, Termios::from_bytes(&bytes), request == TCSETSF)
        }
        TCGETS2 => {
            let termios = tty.termios();
            write_bytes(argument, &termios.to_bytes())?;
            // c_ispeed and c_ospeed follow: as c_cflag says, of which only two occur.
            let baud = if termios.cflag & B38400 == B38400 { 38_400 } else { 9600 };
            write_int(argument + TERMIOS_SIZE as u64, baud)?;
            write_int(argument + TERMIOS_SIZE as u64 + 4, baud)
        }
        TCSETS2..=TCSETSF2 => {
            let mut bytes = [0; TERMIOS_SIZE];
            read_bytes(argument, &mut bytes)?;
            set(tty, Termios::from_bytes(&bytes), request == TCSETSF2)
        }
        TCGETA => write_bytes(argument, &to_termio(&tty.termios())).map(|()| 0),
        TCSETA..=TCSETAF => {
            let mut bytes = [0; TERMIO_SIZE];
            read_bytes(argument, &mut bytes)?;
            set(tty, from_termio(&tty.termios(), &bytes), request == TCSETAF)
        }
        TCSBRK | TCSBRKP => Ok(0),
        TIOCEXCL | TIOCNXCL | TIOCGEXCL => exclusive(&tty.exclusive, request, argument),
        TCXONC => flow(tty, argument),
        TCFLSH => flush(tty, argument),
        TIOCGWINSZ | TIOCSWINSZ => window(tty, request, argument),
        FIONREAD => write_int(argument, tty.discipline.lock().available() as i32),
        TIOCOUTQ | TIOCGETD => write_int(argument, 0),
        TIOCSETD => match UserPtr::<i32>::new(argument).read()? {
            0 => Ok(0),
            _ => Err(Errno::EINVAL),
        },
        // Carrier, clear to send and data set ready, as a null modem gives them.
        TIOCMGET => write_int(argument, 0x126),
        TIOCSTI => push_input(tty, argument),
        TIOCGDEV => write_int(argument, tty.rdev as i32),
        TIOCNOTTY | TIOCGPGRP | TIOCSPGRP | TIOCGSID => control(tty, request, argument),
        _ => Err(Errno::ENOTTY),
    }
}

/// Requests to the master of a pseudo-terminal: they mean the terminal, as on its own side. `waiting` is what could be
/// read.
pub(super) fn handle_master(tty: &Arc<Tty>, request: u64, argument: u64, waiting: usize) -> Result<usize, Errno> {
    match request {
        FIONREAD => write_int(argument, waiting as i32),
        TIOCGPGRP => write_int(argument, tty.control.lock().foreground as i32),
        TIOCGSID => match tty.control.lock().session {
            0 => Err(Errno::ENOTTY),
            session => write_int(argument, session as i32),
        },
        TIOCSCTTY | TIOCNOTTY | TIOCSTI => Err(Errno::ENOTTY),
        TIOCEXCL | TIOCNXCL | TIOCGEXCL => match &tty.wire {
            Some(wire) => exclusive(&wire.exclusive, request, argument),
            None => Err(Errno::ENOTTY),
        },
        _ => handle(tty, request, argument),
    }
}

/// Requests about exclusive use, of either end's own flag.
fn exclusive(flag: &AtomicBool, request: u64, argument: u64) -> Result<usize, Errno> {
    if request == TIOCGEXCL {
        return write_int(argument, i32::from(flag.load(Relaxed)));
    }
    flag.store(request == TIOCEXCL, Relaxed);
    Ok(0)
}

fn set(tty: &Arc<Tty>, termios: Termios, flush: bool) -> Result<usize, Errno> {
    job::check_background(tty, sig::TTOU)?;
    let mut discipline = tty.discipline.lock();
    if flush {
        discipline.flush_input();
    }
    discipline.set_termios(termios);
    drop(discipline);
    tty.readable.wake_all();
    tty.writable.wake_all();
    tty.made_room();
    Ok(0)
}

/// TCXONC: 0 stops output, 1 restarts it, 2 and 3 send the stop and start characters (which a screen does not need).
fn flow(tty: &Arc<Tty>, action: u64) -> Result<usize, Errno> {
    job::check_background(tty, sig::TTOU)?;
    match action {
        0 | 1 => {
            tty.discipline.lock().set_output_stopped(action == 0);
            tty.writable.wake_all();
            Ok(0)
        }
        2 | 3 => Ok(0),
        _ => Err(Errno::EINVAL),
    }
}

/// TCFLSH: 0 input, 1 output, 2 both. Output is never queued.
fn flush(tty: &Arc<Tty>, queue: u64) -> Result<usize, Errno> {
    job::check_background(tty, sig::TTOU)?;
    match queue {
        0 | 2 => {
            tty.discipline.lock().flush_input();
            tty.made_room();
            Ok(0)
        }
        1 => Ok(0),
        _ => Err(Errno::EINVAL),
    }
}

fn window(tty: &Arc<Tty>, request: u64, argument: u64) -> Result<usize, Errno> {
    let mut bytes = [0; 8];
    if request == TIOCGWINSZ {
        for (slot, value) in bytes.chunks_exact_mut(2).zip(*tty.window.lock()) {
            slot.copy_from_slice(&value.to_ne_bytes());
        }
        return write_bytes(argument, &bytes).map(|()| 0);
    }
    read_bytes(argument, &mut bytes)?;
    let mut size = [0; 4];
    for (value, slot) in size.iter_mut().zip(bytes.chunks_exact(2)) {
        *value = u16::from_ne_bytes([slot[0], slot[1]]);
    }
    let old = core::mem::replace(&mut *tty.window.lock(), size);
    if old != size {
        job::signal_foreground(tty, sig::WINCH);
    }
    Ok(0)
}

fn push_input(tty: &Arc<Tty>, argument: u64) -> Result<usize, Errno> {
    let task = task::current();
    let own = task
        .process
        .family
        .with_session(|session| session.terminal.lock().as_ref().is_some_and(|own| Arc::ptr_eq(own, tty)));
    if !own && !task.creds.with(|creds| creds.capable(cap::SYS_ADMIN)) {
        return Err(Errno::EPERM);
    }
    tty.input(UserPtr::<u8>::new(argument).read()?, Trust::of_caller());
    Ok(0)
}

fn control(tty: &Arc<Tty>, request: u64, argument: u64) -> Result<usize, Errno> {
    let task = task::current();
    let process = &task.process;
    let own = process
        .family
        .with_session(|session| session.terminal.lock().as_ref().is_some_and(|own| Arc::ptr_eq(own, tty)));
    match request {
        TIOCNOTTY => job::give_up(tty, process).map(|()| 0),
        _ if !own => Err(Errno::ENOTTY),
        TIOCGPGRP => write_int(argument, tty.control.lock().foreground as i32),
        TIOCGSID => write_int(argument, tty.control.lock().session as i32),
        _ => {
            job::check_background(tty, sig::TTOU)?;
            let group = UserPtr::<i32>::new(argument).read()?;
            let group = Pid::try_from(group).map_err(|_| Errno::EINVAL)?;
            let members = tree::group_members(group);
            let Some(member) = members.first() else { return Err(Errno::ESRCH) };
            if member.sid() != process.sid() {
                return Err(Errno::EPERM);
            }
            tty.control.lock().foreground = group;
            Ok(0)
        }
    }
}

fn to_termio(termios: &Termios) -> [u8; TERMIO_SIZE] {
    let mut bytes = [0; TERMIO_SIZE];
    for (slot, word) in bytes.chunks_exact_mut(2).zip([termios.iflag, termios.oflag, termios.cflag, termios.lflag]) {
        slot.copy_from_slice(&(word as u16).to_ne_bytes());
    }
    bytes[8] = termios.line;
    bytes[9..17].copy_from_slice(&termios.cc[..8]);
    bytes
}

fn from_termio(now: &Termios, bytes: &[u8; TERMIO_SIZE]) -> Termios {
    let low = |old: u32, at: usize| old & 0xffff_0000 | u32::from(u16::from_ne_bytes([bytes[at], bytes[at + 1]]));
    let mut cc = now.cc;
    cc[..8].copy_from_slice(&bytes[9..17]);
    Termios {
        iflag: low(now.iflag, 0),
        oflag: low(now.oflag, 2),
        cflag: low(now.cflag, 4),
        lflag: low(now.lflag, 6),
        line: bytes[8],
        cc,
    }
}

fn write_int(argument: u64, value: i32) -> Result<usize, Errno> {
    UserPtr::<i32>::new(argument).write(value).map(|()| 0)
}

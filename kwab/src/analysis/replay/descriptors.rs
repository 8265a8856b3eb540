//! The descriptors of a process by its calls, in the kernel's own table: which are open, which are free.

use std::collections::BTreeMap;

use kernel_logic::fdtable::FdTable;
use linux_abi::Errno;
use linux_abi::syscalls::{ArgKind, ResultKind};

use super::{Answered, MOST, WrongAnswer};

/// Numbers from here on are not followed, so that a hostile dump needs no large table.
const LIMIT: u32 = 1 << 16;

/// What is known of the numbers: by which call each became what it is.
struct KnownDescriptors {
    open: FdTable<usize>,
    free: BTreeMap<u32, usize>,
}

/// The answers that contradict earlier ones.
pub(super) fn wrong_answers(rows: &[Answered<'_>]) -> Vec<WrongAnswer> {
    let mut known = KnownDescriptors { open: FdTable::new(), free: BTreeMap::new() };
    let mut found = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        if found.len() >= MOST {
            return found;
        }
        if let Some((why, because)) = known.contradicts(row) {
            let since = rows.get(because).map(Answered::said).unwrap_or_default();
            found.push(row.wrong(format!("{why} since {since}")));
        }
        known.learn(row, number);
    }
    found
}

impl KnownDescriptors {
    /// Why an answer cannot be right, and the number of the call that says so.
    fn contradicts(&self, row: &Answered<'_>) -> Option<(String, usize)> {
        let fd = subject(row);
        if row.errno() == Some(Errno::EBADF) && OPEN_SUFFICES.contains(&row.call.name) {
            let since = *self.open.get(fd?)?;
            return Some((format!("descriptor {} is open", fd?), since));
        }
        if row.result < 0 {
            return None;
        }
        if let Some((fd, since)) = fd.and_then(|fd| Some((fd, *self.free.get(&fd)?))) {
            return Some((format!("descriptor {fd} is closed"), since));
        }
        let (new, least) = made(row)?;
        if let Some(since) = self.open.get(new) {
            return Some((format!("descriptor {new} is open"), *since));
        }
        // The lowest number that is free (open(2), dup(2), fcntl(2)).
        let (lower, since) = self.free.range(least..new.max(least)).next()?;
        Some((format!("the lower descriptor {lower} is free"), *since))
    }

    fn learn(&mut self, row: &Answered<'_>, number: usize) {
        match row.call.name {
            // Also a close that fails with an error of the file has closed it (close(2)).
            "close" if row.errno() != Some(Errno::EBADF) => {
                let fd = row.args[0] as u32;
                self.open.remove(fd);
                if fd < LIMIT {
                    self.free.insert(fd, number);
                }
            }
            "dup2" | "dup3" if row.result >= 0 => self.opened(row.args[1] as u32, number),
            "execve" | "execveat" | "close_range" | "unshare" => {
                *self = Self { open: FdTable::new(), free: BTreeMap::new() };
            }
            // They make descriptors whose numbers are in the caller's memory.
            "pipe" | "pipe2" | "socketpair" | "recvmsg" | "recvmmsg" | "ioctl" | "io_uring_enter" | "fcntl"
                if made(row).is_none() =>
            {
                self.free.clear();
            }
            _ => {
                if let Some((fd, _)) = made(row) {
                    self.opened(fd, number);
                }
            }
        }
    }

    fn opened(&mut self, fd: u32, number: usize) {
        self.free.remove(&fd);
        // A number beyond the limit is not followed.
        let _ = self.open.replace(fd, number, LIMIT, false);
    }
}

/// The descriptor that a call is about: its first argument.
fn subject(row: &Answered<'_>) -> Option<u32> {
    row.call.args.first().filter(|arg| matches!(arg.kind, ArgKind::Fd))?;
    u32::try_from(row.args[0] as u32 as i32).ok()
}

/// The new descriptor that a call answers, and the lowest number that it was to have.
fn made(row: &Answered<'_>) -> Option<(u32, u32)> {
    let new = u32::try_from(row.result).ok().filter(|new| *new < LIMIT)?;
    match row.call.name {
        "fcntl" if [0, 1030].contains(&row.args[1]) => Some((new, row.args[2] as u32)),
        // signalfd changes the descriptor that it is given.
        "signalfd" | "signalfd4" if row.args[0] as u32 as i32 >= 0 => None,
        "dup2" | "dup3" => None,
        _ => (row.call.result == ResultKind::Fd).then_some((new, 0)),
    }
}

/// Calls that refuse a descriptor only when it is not open; others also when it is open for something else.
const OPEN_SUFFICES: &[&str] = &["close", "fstat", "dup"];

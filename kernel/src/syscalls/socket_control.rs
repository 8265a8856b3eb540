//! Control messages (cmsg(3)): credentials and open files beside a message's bytes.

use alloc::vec::Vec;

use linux_abi::Errno;
use linux_abi::flags::socket::{self, MSG_CMSG_CLOEXEC, MSG_CTRUNC};
use linux_abi::numbers::{SCM_CREDENTIALS, SCM_RIGHTS};

use super::Call;
use super::file_open::fd_limit;
use crate::ipc::unix::{Beside, Credentials, MOST_RIGHTS, Rights};
use crate::task::creds::cap;
use crate::task::tree;
use crate::user::{UserPtr, read_bytes, write_words};

const SOL_SOCKET: u32 = socket::SOL_SOCKET as u32;
/// Bytes of a `struct cmsghdr`: length, level, type.
const HEADER: usize = 16;
/// Longest control buffer (`net.core.optmem_max`).
const LONGEST: usize = 20_480;

/// Reads the control buffer of a message to send: the files and the credentials in it.
pub(super) fn read(call: &Call<'_>, at: u64, length: u64) -> Result<Beside, Errno> {
    let length = usize::try_from(length).ok().filter(|length| *length <= LONGEST).ok_or(Errno::ENOBUFS)?;
    if length < HEADER {
        return Ok(Beside::default());
    }
    let mut sender = None;
    let mut bytes = alloc::vec![0; length];
    read_bytes(at, &mut bytes)?;
    let mut files = Vec::new();
    let mut rest = &bytes[..];
    while let Some((header, _)) = rest.split_first_chunk::<HEADER>() {
        let word = |at: usize| u32::from_ne_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let (size, level, kind) = (word(0) as usize | (word(4) as usize) << 32, word(8), word(12));
        let data = rest.get(HEADER..size).ok_or(Errno::EINVAL)?;
        match (level, kind) {
            (SOL_SOCKET, SCM_RIGHTS) => {
                for fd in data.chunks_exact(4) {
                    if files.len() == MOST_RIGHTS {
                        return Err(Errno::EINVAL);
                    }
                    let fd = i32::from_ne_bytes([fd[0], fd[1], fd[2], fd[3]]);
                    files.push(call.task.files().get(fd)?);
                }
            }
            (SOL_SOCKET, SCM_CREDENTIALS) => sender = Some(check_credentials(call, data)?),
            (SOL_SOCKET, _) => return Err(Errno::EINVAL),
            _ => {}
        }
        rest = rest.get(size.next_multiple_of(8)..).unwrap_or(&[]);
    }
    Ok(Beside { rights: Rights::new(files)?, sender })
}

/// The credentials that a sender names: without privilege its own process, and ids that it has.
fn check_credentials(call: &Call<'_>, data: &[u8]) -> Result<Credentials, Errno> {
    let data: &[u8; 12] = data.try_into().map_err(|_| Errno::EINVAL)?;
    let word = |at: usize| u32::from_ne_bytes([data[at], data[at + 1], data[at + 2], data[at + 3]]);
    let named = Credentials { pid: word(0), uid: word(4), gid: word(8) };
    if named.uid == u32::MAX || named.gid == u32::MAX {
        return Err(Errno::EINVAL);
    }
    let creds = call.task.creds();
    let permitted = (named.pid == call.task.pid() || creds.capable(cap::SYS_ADMIN))
        && ([creds.uid, creds.euid, creds.suid].contains(&named.uid) || creds.capable(cap::SETUID))
        && ([creds.gid, creds.egid, creds.sgid].contains(&named.gid) || creds.capable(cap::SETGID));
    if !permitted {
        return Err(Errno::EPERM);
    }
    let known = named.pid == call.task.pid() || tree::process(named.pid).is_some();
    if known { Ok(named) } else { Err(Errno::ESRCH) }
}

/// A control buffer that is filled.
pub(super) struct Writer {
    at: u64,
    room: u64,
    /// Bytes used so far.
    pub(super) used: u64,
    /// `MSG_CTRUNC` once something did not fit.
    pub(super) marks: i32,
}

impl Writer {
    /// Into `room` bytes at `at`.
    pub(super) fn new(at: u64, room: u64) -> Self {
        Self { at, room: if at == 0 { 0 } else { room }, used: 0, marks: 0 }
    }

    fn left(&self) -> u64 {
        self.room - self.used
    }

    /// Where the data behind the next header goes. The buffer may lie anywhere.
    fn data(&self) -> u64 {
        self.at.wrapping_add(self.used + HEADER as u64)
    }

    fn cut(&mut self) {
        self.marks |= MSG_CTRUNC as i32;
    }

    fn head(&self, length: u64, kind: u32) -> Result<(), Errno> {
        write_words(self.at.wrapping_add(self.used), &[length, u64::from(SOL_SOCKET) | u64::from(kind) << 32])
    }

    /// Credentials of the sender. As on Linux, a buffer that cannot be written is not an error.
    pub(super) fn credentials(&mut self, sender: &Credentials) {
        const LENGTH: u64 = HEADER as u64 + 12;
        if self.left() < LENGTH {
            return self.cut();
        }
        let ids = UserPtr::<u32>::new(self.data());
        let words = [sender.pid, sender.uid, sender.gid];
        let mut stores = words.into_iter().enumerate().map(|(index, word)| ids.add(index).write(word));
        if self.head(LENGTH, SCM_CREDENTIALS).is_ok() && stores.all(|stored| stored.is_ok()) {
            self.used += LENGTH.next_multiple_of(8).min(self.left());
        }
    }

    /// The files that came along, as descriptors of the caller; those without room, or whose number cannot be stored,
    /// are closed.
    pub(super) fn rights(&mut self, call: &Call<'_>, rights: &Rights, bits: u64) {
        if rights.is_empty() {
            return;
        }
        let room = (self.left().saturating_sub(HEADER as u64) / 4) as usize;
        let files = call.task.files();
        let numbers = UserPtr::<i32>::new(self.data());
        let mut count = 0;
        for file in rights.files().iter().take(room) {
            let Ok(fd) = files.install(file.clone(), 0, fd_limit(call), bits & MSG_CMSG_CLOEXEC != 0) else { break };
            if numbers.add(count).write(fd).is_err() {
                // It was installed just now; another thread may have closed it already.
                let _ = files.close(fd);
                break;
            }
            count += 1;
        }
        if count < rights.files().len() {
            self.cut();
        }
        if count > 0 {
            let length = (HEADER + 4 * count) as u64;
            if self.head(length, SCM_RIGHTS).is_ok() {
                self.used += length.next_multiple_of(8).min(self.left());
            }
        }
    }
}

//! What a program's addresses become: typed pointers, and scattered buffers that are read or written in order.
//!
//! Everything fails with `EFAULT` and nothing else. A [`Reader`] or [`Writer`] that meets a bad address after some bytes
//! reports those bytes, as read(2) and write(2) do.

use alloc::vec::Vec;
use core::marker::PhantomData;

use linux_abi::Errno;
use machine::addr::UserAddr;
use machine::frame::Frame;
pub use machine::user::Plain;

/// A user address that should hold a `T`.
#[derive(Debug)]
pub struct UserPtr<T> {
    addr: UserAddr,
    _of: PhantomData<T>,
}

impl<T> Clone for UserPtr<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for UserPtr<T> {}

impl<T: Plain> UserPtr<T> {
    /// From an argument register.
    pub const fn new(addr: u64) -> Self {
        Self { addr: UserAddr(addr), _of: PhantomData }
    }

    /// Whether it is the null pointer, which many calls read as "not wanted".
    pub const fn is_null(self) -> bool {
        self.addr.0 == 0
    }

    /// The address itself.
    pub const fn addr(self) -> u64 {
        self.addr.0
    }

    /// The pointer `count` values further on.
    #[must_use]
    pub const fn add(self, count: usize) -> Self {
        Self::new(self.addr.0.wrapping_add((count * size_of::<T>()) as u64))
    }

    /// Loads the value.
    pub fn read(self) -> Result<T, Errno> {
        machine::user::read(self.addr).map_err(|_| Errno::EFAULT)
    }

    /// Stores a value.
    pub fn write(self, value: T) -> Result<(), Errno> {
        machine::user::write(self.addr, value).map_err(|_| Errno::EFAULT)
    }

    /// Stores a value unless the pointer is null.
    pub fn write_if_wanted(self, value: T) -> Result<(), Errno> {
        if self.is_null() { Ok(()) } else { self.write(value) }
    }
}

/// Reads exactly `to.len()` bytes.
pub fn read_bytes(from: u64, to: &mut [u8]) -> Result<(), Errno> {
    machine::user::read_bytes(UserAddr(from), to).map_err(|_| Errno::EFAULT)
}

/// Writes all of `from`.
pub fn write_bytes(to: u64, from: &[u8]) -> Result<(), Errno> {
    machine::user::write_bytes(UserAddr(to), from).map_err(|_| Errno::EFAULT)
}

/// Reads `N` 64-bit words: how structures of words cross.
pub fn read_words<const N: usize>(from: u64) -> Result<[u64; N], Errno> {
    let mut words = [0; N];
    for (at, word) in words.iter_mut().enumerate() {
        *word = UserPtr::<u64>::new(from).add(at).read()?;
    }
    Ok(words)
}

/// Writes words.
pub fn write_words(to: u64, words: &[u64]) -> Result<(), Errno> {
    for (at, word) in words.iter().enumerate() {
        UserPtr::<u64>::new(to).add(at).write(*word)?;
    }
    Ok(())
}

/// Reads a NUL-terminated string of at most `max` bytes, terminator excluded; `too_long` when none is found.
pub fn read_string(from: u64, max: usize, too_long: Errno) -> Result<Vec<u8>, Errno> {
    let mut bytes = Vec::new();
    let mut chunk = [0; 256];
    loop {
        let want = chunk.len().min(max - bytes.len());
        let at = UserAddr(from).add(bytes.len());
        match machine::user::read_str(at, &mut chunk[..want]).map_err(|_| Errno::EFAULT)? {
            Some(len) => {
                bytes.extend_from_slice(&chunk[..len]);
                return Ok(bytes);
            }
            None => bytes.extend_from_slice(&chunk[..want]),
        }
        if bytes.len() >= max {
            return Err(too_long);
        }
    }
}

/// One piece of a scattered user buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Where.
    pub addr: u64,
    /// Bytes.
    pub len: usize,
}

/// Most pieces of one call (`UIO_MAXIOV`).
pub const MAX_PIECES: usize = 1024;
/// Most bytes one call transfers (`MAX_RW_COUNT`): longer requests are cut.
pub const MAX_TRANSFER: usize = 0x7fff_f000;

/// Reads a `struct iovec` array and cuts it at [`MAX_TRANSFER`]. `EINVAL` for too many pieces or a negative length.
pub fn read_pieces(array: u64, count: usize) -> Result<Vec<Piece>, Errno> {
    if count > MAX_PIECES {
        return Err(Errno::EINVAL);
    }
    let mut pieces = Vec::with_capacity(count);
    let mut left = MAX_TRANSFER;
    for at in 0..count {
        let [addr, len] = read_words::<2>(array.wrapping_add(16 * at as u64))?;
        if len > i64::MAX as u64 {
            return Err(Errno::EINVAL);
        }
        let len = usize::try_from(len).unwrap_or(usize::MAX).min(left);
        left -= len;
        pieces.push(Piece { addr, len });
    }
    Ok(pieces)
}

/// Where the bytes of a `write` come from.
pub struct Reader<'a> {
    from: From<'a>,
    left: usize,
}

enum From<'a> {
    Kernel(&'a [u8]),
    User { now: Piece, rest: &'a [Piece] },
}

impl<'a> Reader<'a> {
    /// From kernel memory.
    pub fn kernel(bytes: &'a [u8]) -> Self {
        Self { from: From::Kernel(bytes), left: bytes.len() }
    }

    /// From one user buffer.
    pub fn user(addr: u64, len: usize) -> Self {
        let len = len.min(MAX_TRANSFER);
        Self { from: From::User { now: Piece { addr, len }, rest: &[] }, left: len }
    }

    /// From scattered user buffers.
    pub fn pieces(pieces: &'a [Piece]) -> Self {
        let left = pieces.iter().map(|piece| piece.len).sum();
        Self { from: From::User { now: Piece { addr: 0, len: 0 }, rest: pieces }, left }
    }

    /// Bytes not yet read.
    pub fn remaining(&self) -> usize {
        self.left
    }

    /// Ignores everything past the next `bytes`.
    pub fn limit(&mut self, bytes: usize) {
        self.left = self.left.min(bytes);
    }

    /// Fills `to` as far as bytes remain; how many were read. `EFAULT` only when none could be.
    pub fn read(&mut self, to: &mut [u8]) -> Result<usize, Errno> {
        let mut done = 0;
        while done < to.len() && self.left > 0 {
            let got = self.step(to.len() - done, |addr, len| {
                machine::user::read_bytes(addr, &mut to[done..done + len])
            });
            match got {
                Ok(Step::User(bytes)) => done += bytes,
                Ok(Step::Kernel(bytes)) => {
                    to[done..done + bytes.len()].copy_from_slice(bytes);
                    done += bytes.len();
                }
                Err(errno) => return if done > 0 { Ok(done) } else { Err(errno) },
            }
        }
        Ok(done)
    }

    /// Copies up to `len` bytes into `frame` at `offset`; how many. `EFAULT` only when none could be.
    pub fn read_into_frame(&mut self, frame: &Frame, offset: usize, len: usize) -> Result<usize, Errno> {
        let mut done = 0;
        while done < len && self.left > 0 {
            let got = self.step(len - done, |addr, len| frame.copy_from_user(offset + done, addr, len));
            match got {
                Ok(Step::User(bytes)) => done += bytes,
                Ok(Step::Kernel(bytes)) => {
                    frame.write(offset + done, bytes);
                    done += bytes.len();
                }
                Err(errno) => return if done > 0 { Ok(done) } else { Err(errno) },
            }
        }
        Ok(done)
    }

    fn step(
        &mut self,
        want: usize,
        copy: impl FnOnce(UserAddr, usize) -> Result<(), machine::user::Fault>,
    ) -> Result<Step<'a>, Errno> {
        match &mut self.from {
            From::Kernel(bytes) => {
                let (head, tail) = bytes.split_at(want.min(self.left).min(bytes.len()));
                *bytes = tail;
                self.left -= head.len();
                Ok(Step::Kernel(head))
            }
            From::User { now, rest } => {
                let moved = user_step(now, rest, want.min(self.left), copy)?;
                self.left -= moved;
                Ok(Step::User(moved))
            }
        }
    }
}

enum Step<'a> {
    User(usize),
    Kernel(&'a [u8]),
}

/// Moves as much as the current piece allows, going on to the next when it is used up.
fn user_step(
    now: &mut Piece,
    rest: &mut &[Piece],
    want: usize,
    copy: impl FnOnce(UserAddr, usize) -> Result<(), machine::user::Fault>,
) -> Result<usize, Errno> {
    while now.len == 0 {
        let Some((next, others)) = rest.split_first() else { return Err(Errno::EFAULT) };
        *now = *next;
        *rest = others;
    }
    let len = want.min(now.len);
    let moved = match copy(UserAddr(now.addr), len) {
        Ok(()) => len,
        Err(fault) if fault.done == 0 => return Err(Errno::EFAULT),
        Err(fault) => fault.done.min(len),
    };
    now.addr = now.addr.wrapping_add(moved as u64);
    now.len -= moved;
    Ok(moved)
}

/// Where the bytes of a `read` go.
pub struct Writer<'a> {
    to: To<'a>,
    left: usize,
}

enum To<'a> {
    Kernel(&'a mut [u8]),
    User { now: Piece, rest: &'a [Piece] },
}

impl<'a> Writer<'a> {
    /// Into kernel memory.
    pub fn kernel(bytes: &'a mut [u8]) -> Self {
        let left = bytes.len();
        Self { to: To::Kernel(bytes), left }
    }

    /// Into one user buffer.
    pub fn user(addr: u64, len: usize) -> Self {
        let len = len.min(MAX_TRANSFER);
        Self { to: To::User { now: Piece { addr, len }, rest: &[] }, left: len }
    }

    /// Into scattered user buffers.
    pub fn pieces(pieces: &'a [Piece]) -> Self {
        let left = pieces.iter().map(|piece| piece.len).sum();
        Self { to: To::User { now: Piece { addr: 0, len: 0 }, rest: pieces }, left }
    }

    /// Room left.
    pub fn remaining(&self) -> usize {
        self.left
    }

    /// Takes no more than `bytes` further.
    pub fn limit(&mut self, bytes: usize) {
        self.left = self.left.min(bytes);
    }

    /// Stores as much of `from` as there is room for; how much. `EFAULT` only when nothing could be.
    pub fn write(&mut self, from: &[u8]) -> Result<usize, Errno> {
        self.put(
            from.len(),
            |at, addr, len| machine::user::write_bytes(addr, &from[at..at + len]),
            |at, to| to.copy_from_slice(&from[at..at + to.len()]),
        )
    }

    /// Stores `len` bytes of `frame` from `offset`, as far as there is room.
    pub fn write_from_frame(&mut self, frame: &Frame, offset: usize, len: usize) -> Result<usize, Errno> {
        self.put(
            len,
            |at, addr, len| frame.copy_to_user(offset + at, addr, len),
            |at, to| frame.read(offset + at, to),
        )
    }

    /// Stores `len` zeros, as far as there is room.
    pub fn zero(&mut self, len: usize) -> Result<usize, Errno> {
        self.put(len, |_, addr, len| machine::user::zero(addr, len), |_, to| to.fill(0))
    }

    fn put(
        &mut self,
        len: usize,
        mut to_user: impl FnMut(usize, UserAddr, usize) -> Result<(), machine::user::Fault>,
        mut to_kernel: impl FnMut(usize, &mut [u8]),
    ) -> Result<usize, Errno> {
        let mut done = 0;
        while done < len && self.left > 0 {
            let want = (len - done).min(self.left);
            let moved = match &mut self.to {
                To::Kernel(bytes) => {
                    let want = want.min(bytes.len());
                    let (head, tail) = core::mem::take(bytes).split_at_mut(want);
                    to_kernel(done, head);
                    *bytes = tail;
                    Ok(want)
                }
                To::User { now, rest } => user_step(now, rest, want, |addr, len| to_user(done, addr, len)),
            };
            match moved {
                Ok(bytes) => {
                    self.left -= bytes;
                    done += bytes;
                }
                Err(errno) => return if done > 0 { Ok(done) } else { Err(errno) },
            }
        }
        Ok(done)
    }
}

//! Source and destination of transfers: a program's buffers, or the kernel's own.
//!
//! [`Sink`] is filled by reads, [`Source`] is emptied by writes; both count what was moved, so that an error after the
//! first byte still reports the bytes before it. Under a spin lock a copy touches only pages that are present: it fails
//! with EFAULT, the caller unlocks, calls `fault_in` and tries again.

use linux_abi::Errno;
use machine::addr::UserAddr;
use machine::frame::Frame;
use machine::user;

use crate::trace::event::Copy::{FromUser, ToUser};
use crate::trace::usercopy;

/// One buffer of a program (`struct iovec`).
#[derive(Clone, Copy, Debug, Default)]
pub struct IoVec {
    /// User address of the first byte.
    pub addr: UserAddr,
    /// Length in bytes.
    pub len: usize,
}

/// The most bytes one call moves (`MAX_RW_COUNT`).
pub const MAX_RW_COUNT: usize = 0x7fff_f000;

struct UserBuffers<'a> {
    addr: UserAddr,
    left: usize,
    /// Bytes of the current buffer already moved.
    moved: usize,
    rest: &'a [IoVec],
}

impl UserBuffers<'_> {
    /// The current piece, at most `most` bytes.
    #[inline]
    fn piece(&mut self, most: usize) -> (UserAddr, usize) {
        while self.left == 0 {
            let Some((first, rest)) = self.rest.split_first() else { break };
            (self.addr, self.left, self.moved, self.rest) = (first.addr, first.len, 0, rest);
        }
        (self.addr, self.left.min(most))
    }

    #[inline]
    fn advance(&mut self, count: usize) {
        self.addr = self.addr.add(count);
        self.left -= count;
        self.moved += count;
    }
}

enum SinkTarget<'a> {
    User(UserBuffers<'a>),
    Kernel(&'a mut [u8]),
}

/// What a read fills.
pub struct Sink<'a> {
    target: SinkTarget<'a>,
    done: usize,
    left: usize,
}

impl<'a> Sink<'a> {
    /// One buffer of the program.
    #[inline]
    pub fn user(addr: UserAddr, len: usize) -> Self {
        let left = len.min(MAX_RW_COUNT);
        Self { target: SinkTarget::User(UserBuffers { addr, left, moved: 0, rest: &[] }), done: 0, left }
    }

    /// Several buffers of the program; their lengths were checked to add up.
    pub fn vector(buffers: &'a [IoVec]) -> Self {
        let left = total(buffers);
        Self {
            target: SinkTarget::User(UserBuffers { addr: UserAddr(0), left: 0, moved: 0, rest: buffers }),
            done: 0,
            left,
        }
    }

    /// A buffer of the kernel.
    pub fn kernel(buffer: &'a mut [u8]) -> Self {
        let left = buffer.len();
        Self { target: SinkTarget::Kernel(buffer), done: 0, left }
    }

    /// Bytes put so far.
    #[inline]
    pub fn done(&self) -> usize {
        self.done
    }

    /// Bytes that still fit.
    #[inline]
    pub fn left(&self) -> usize {
        self.left
    }

    /// Puts what fits of `bytes`; answers how many that were.
    #[inline]
    pub fn put(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        self.fill(bytes.len(), |target, at, count| match target {
            Destination::User(addr) => {
                let outcome = user::write_bytes(addr, &bytes[at..at + count]);
                usercopy(ToUser, addr, count, outcome.as_ref().err());
                outcome.map_err(|fault| fault.done)
            }
            Destination::Kernel(into) => {
                into.copy_from_slice(&bytes[at..at + count]);
                Ok(())
            }
        })
    }

    /// Puts what fits of `frame[offset..offset + length]`.
    #[inline]
    pub fn put_frame(&mut self, frame: &Frame, offset: usize, length: usize) -> Result<usize, Errno> {
        self.fill(length, |target, at, count| match target {
            Destination::User(addr) => frame.copy_to_user(offset + at, addr, count).map_err(|fault| fault.done),
            Destination::Kernel(into) => {
                frame.read(offset + at, into);
                Ok(())
            }
        })
    }

    /// Puts `count` zeros, as far as they fit.
    pub fn put_zeros(&mut self, count: usize) -> Result<usize, Errno> {
        self.fill(count, |target, _, count| match target {
            Destination::User(addr) => {
                let outcome = user::zero(addr, count);
                usercopy(ToUser, addr, count, outcome.as_ref().err());
                outcome.map_err(|fault| fault.done)
            }
            Destination::Kernel(into) => {
                into.fill(0);
                Ok(())
            }
        })
    }

    #[inline]
    fn fill(
        &mut self,
        length: usize,
        mut copy: impl FnMut(Destination<'_>, usize, usize) -> Result<(), usize>,
    ) -> Result<usize, Errno> {
        let wanted = length.min(self.left);
        let mut at = 0;
        while at < wanted {
            let (result, count) = match &mut self.target {
                SinkTarget::User(buffers) => {
                    let (addr, count) = buffers.piece(wanted - at);
                    let result = copy(Destination::User(addr), at, count);
                    buffers.advance(result.err().map_or(count, |done| done.min(count)));
                    (result, count)
                }
                SinkTarget::Kernel(buffer) => {
                    let count = wanted - at;
                    let result = copy(Destination::Kernel(&mut buffer[self.done..self.done + count]), at, count);
                    (result, count)
                }
            };
            let moved = result.err().map_or(count, |done| done.min(count));
            self.done += moved;
            self.left -= moved;
            at += moved;
            if result.is_err() {
                return Err(Errno::EFAULT);
            }
        }
        Ok(at)
    }

    /// Makes the next byte of a program's buffer present and writable; EFAULT if that cannot be.
    pub fn fault_in(&mut self) -> Result<(), Errno> {
        let SinkTarget::User(buffers) = &mut self.target else { return Ok(()) };
        let (addr, count) = buffers.piece(1);
        if count == 0 {
            return Ok(());
        }
        // A locked exchange of a word with itself is a write that changes nothing.
        let word = UserAddr(addr.0 & !3);
        user::compare_exchange_u32(word, 0, 0).map(|_| ()).map_err(|_| Errno::EFAULT)
    }
}

enum Destination<'a> {
    User(UserAddr),
    Kernel(&'a mut [u8]),
}

enum SourceOrigin<'a> {
    User(UserBuffers<'a>),
    Kernel(&'a [u8]),
}

/// What a write empties.
pub struct Source<'a> {
    origin: SourceOrigin<'a>,
    done: usize,
    left: usize,
    /// How far behind the next byte the one lies that could not be read.
    fault: usize,
}

impl<'a> Source<'a> {
    /// One buffer of the program.
    #[inline]
    pub fn user(addr: UserAddr, len: usize) -> Self {
        let left = len.min(MAX_RW_COUNT);
        Self { origin: SourceOrigin::User(UserBuffers { addr, left, moved: 0, rest: &[] }), done: 0, left, fault: 0 }
    }

    /// Several buffers of the program; their lengths were checked to add up.
    pub fn vector(buffers: &'a [IoVec]) -> Self {
        let left = total(buffers);
        Self {
            origin: SourceOrigin::User(UserBuffers { addr: UserAddr(0), left: 0, moved: 0, rest: buffers }),
            done: 0,
            left,
            fault: 0,
        }
    }

    /// A buffer of the kernel.
    pub fn kernel(buffer: &'a [u8]) -> Self {
        Self { origin: SourceOrigin::Kernel(buffer), done: 0, left: buffer.len(), fault: 0 }
    }

    /// Bytes taken so far.
    #[inline]
    pub fn done(&self) -> usize {
        self.done
    }

    /// Bytes still to be taken.
    #[inline]
    pub fn left(&self) -> usize {
        self.left
    }

    /// Does as if `count` more bytes had been taken.
    pub fn skip(&mut self, count: usize) {
        let count = count.min(self.left);
        let mut skipped = 0;
        while let SourceOrigin::User(buffers) = &mut self.origin
            && skipped < count
        {
            let (_, piece) = buffers.piece(count - skipped);
            buffers.advance(piece);
            skipped += piece;
        }
        self.done += count;
        self.left -= count;
    }

    /// Puts the last `count` bytes back, as far as they came from the current buffer; answers how many that were. What
    /// could not be read behind them is what [`Self::fault_in`] asks for.
    pub fn rewind(&mut self, count: usize) -> usize {
        let SourceOrigin::User(buffers) = &mut self.origin else { return 0 };
        let back = count.min(buffers.moved);
        buffers.addr = UserAddr(buffers.addr.0 - back as u64);
        buffers.left += back;
        buffers.moved -= back;
        self.done -= back;
        self.left += back;
        self.fault = back;
        back
    }

    /// Uncounts the last `count` bytes, which were taken but did not go anywhere. What is taken next is undefined.
    pub fn untake(&mut self, count: usize) {
        self.done -= count.min(self.done);
    }

    /// Takes bytes into `into`; answers how many there were.
    #[inline]
    pub fn take(&mut self, into: &mut [u8]) -> Result<usize, Errno> {
        self.drain(into.len(), |from, at, count| match from {
            From::User(addr) => {
                let outcome = user::read_bytes(addr, &mut into[at..at + count]);
                usercopy(FromUser, addr, count, outcome.as_ref().err());
                outcome.map_err(|fault| fault.done)
            }
            From::Kernel(bytes) => {
                into[at..at + count].copy_from_slice(bytes);
                Ok(())
            }
        })
    }

    /// Takes up to `length` bytes into `frame[offset..]`.
    #[inline]
    pub fn take_frame(&mut self, frame: &Frame, offset: usize, length: usize) -> Result<usize, Errno> {
        self.drain(length, |from, at, count| match from {
            From::User(addr) => frame.copy_from_user(offset + at, addr, count).map_err(|fault| fault.done),
            From::Kernel(bytes) => {
                frame.write(offset + at, bytes);
                Ok(())
            }
        })
    }

    #[inline]
    fn drain(
        &mut self,
        length: usize,
        mut copy: impl FnMut(From<'_>, usize, usize) -> Result<(), usize>,
    ) -> Result<usize, Errno> {
        let wanted = length.min(self.left);
        let mut at = 0;
        while at < wanted {
            let (result, count) = match &mut self.origin {
                SourceOrigin::User(buffers) => {
                    let (addr, count) = buffers.piece(wanted - at);
                    let result = copy(From::User(addr), at, count);
                    buffers.advance(result.err().map_or(count, |done| done.min(count)));
                    (result, count)
                }
                SourceOrigin::Kernel(bytes) => {
                    let count = wanted - at;
                    (copy(From::Kernel(&bytes[self.done..self.done + count]), at, count), count)
                }
            };
            let moved = result.err().map_or(count, |done| done.min(count));
            self.done += moved;
            self.left -= moved;
            at += moved;
            if result.is_err() {
                return Err(Errno::EFAULT);
            }
        }
        Ok(at)
    }

    /// Makes the next byte of a program's buffer present; EFAULT if that cannot be.
    pub fn fault_in(&mut self) -> Result<(), Errno> {
        let SourceOrigin::User(buffers) = &mut self.origin else { return Ok(()) };
        let (addr, count) = buffers.piece(1);
        if count == 0 {
            return Ok(());
        }
        let addr = addr.add(core::mem::take(&mut self.fault));
        user::read::<u8>(addr).map(|_| ()).map_err(|_| Errno::EFAULT)
    }
}

enum From<'a> {
    User(UserAddr),
    Kernel(&'a [u8]),
}

fn total(buffers: &[IoVec]) -> usize {
    buffers.iter().fold(0_usize, |sum, buffer| sum.saturating_add(buffer.len)).min(MAX_RW_COUNT)
}

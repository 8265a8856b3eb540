//! User memory: typed pointers, words and strings. Every access fails with `EFAULT`.
//!
//! Buffers of read and write are [`crate::fs::io`]'s.

use alloc::vec::Vec;
use core::marker::PhantomData;

use linux_abi::Errno;
use machine::addr::UserAddr;
pub use machine::user::Plain;

use crate::trace::event::Copy::{FromUser, ToUser};
use crate::trace::usercopy;

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

    /// The pointer `count` values further on.
    #[must_use]
    pub const fn add(self, count: usize) -> Self {
        Self::new(self.addr.0.wrapping_add((count * size_of::<T>()) as u64))
    }

    /// Loads the value.
    pub fn read(self) -> Result<T, Errno> {
        let outcome = machine::user::read(self.addr);
        usercopy(FromUser, self.addr, size_of::<T>(), outcome.as_ref().err());
        outcome.map_err(|_| Errno::EFAULT)
    }

    /// Stores a value.
    pub fn write(self, value: T) -> Result<(), Errno> {
        let outcome = machine::user::write(self.addr, value);
        usercopy(ToUser, self.addr, size_of::<T>(), outcome.as_ref().err());
        outcome.map_err(|_| Errno::EFAULT)
    }

    /// Stores a value unless the pointer is null.
    pub fn write_if_wanted(self, value: T) -> Result<(), Errno> {
        if self.is_null() { Ok(()) } else { self.write(value) }
    }
}

/// Reads exactly `to.len()` bytes.
pub fn read_bytes(from: u64, to: &mut [u8]) -> Result<(), Errno> {
    let outcome = machine::user::read_bytes(UserAddr(from), to);
    usercopy(FromUser, UserAddr(from), to.len(), outcome.as_ref().err());
    outcome.map_err(|_| Errno::EFAULT)
}

/// Writes all of `from`.
pub fn write_bytes(to: u64, from: &[u8]) -> Result<(), Errno> {
    let outcome = machine::user::write_bytes(UserAddr(to), from);
    usercopy(ToUser, UserAddr(to), from.len(), outcome.as_ref().err());
    outcome.map_err(|_| Errno::EFAULT)
}

/// Reads `N` 64-bit words: how structures of words cross.
#[inline(always)]
pub fn read_words<const N: usize>(from: u64) -> Result<[u64; N], Errno> {
    let outcome = machine::user::read_words(UserAddr(from));
    usercopy(FromUser, UserAddr(from), 8 * N, outcome.as_ref().err());
    outcome.map_err(|_| Errno::EFAULT)
}

/// [`read_words`] of many words, which `look` sees where they were copied to.
#[inline]
pub fn with_words<const N: usize, R>(from: u64, look: impl FnOnce(&[u64; N]) -> R) -> Result<R, Errno> {
    let outcome = machine::user::with_words(UserAddr(from), look);
    usercopy(FromUser, UserAddr(from), 8 * N, outcome.as_ref().err());
    outcome.map_err(|_| Errno::EFAULT)
}

/// Writes 64-bit words: EFAULT if one byte of them is not writable.
pub fn write_words<const N: usize>(to: u64, words: &[u64; N]) -> Result<(), Errno> {
    let outcome = machine::user::write_words(UserAddr(to), words);
    usercopy(ToUser, UserAddr(to), size_of_val(words), outcome.as_ref().err());
    outcome.map_err(|_| Errno::EFAULT)
}

/// Reads a NUL-terminated string of at most `max` bytes, terminator excluded; `too_long` when none is found.
pub fn read_string(from: u64, max: usize, too_long: Errno) -> Result<Vec<u8>, Errno> {
    let mut bytes = Vec::new();
    let mut chunk = [0; 256];
    loop {
        let want = chunk.len().min(max - bytes.len());
        let at = UserAddr(from).add(bytes.len());
        let outcome = machine::user::read_str(at, &mut chunk[..want]);
        usercopy(FromUser, at, want, outcome.as_ref().err());
        match outcome.map_err(|_| Errno::EFAULT)? {
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

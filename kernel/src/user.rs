//! What a program's addresses become: typed pointers, words and strings. Everything fails with `EFAULT`.
//!
//! Buffers of read and write are [`crate::fs::io`]'s.

use alloc::vec::Vec;
use core::marker::PhantomData;

use linux_abi::Errno;
use machine::addr::UserAddr;
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

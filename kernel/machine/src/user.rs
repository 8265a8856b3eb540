//! Copies between the kernel and user memory that turn a fault into an error.
//!
//! Addresses are of the space this processor runs ([`crate::space::activate`]). An address outside the user half is a fault,
//! never an access. A fault inside asks [`crate::Kernel::copy_fault`] first; only if that fails does the copy end early.
//! While this processor holds a spin lock, or in interrupt context, nothing is asked: pages not mapped are faults.

use crate::addr::UserAddr;

/// A copy that ended early.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fault {
    /// Bytes copied before it (a lower bound within 32 bytes for reads and writes of buffers; then exact to the page).
    pub done: usize,
}

/// Integers that any bytes are a value of. Sealed: structures cross as bytes.
pub trait Plain: Copy + sealed::Plain {}
mod sealed {
    pub trait Plain {}
}
macro_rules! plain {
    ($($t:ty)*) => {$( impl sealed::Plain for $t {} impl Plain for $t {} )*};
}
plain!(u8 i8 u16 i16 u32 i32 u64 i64);

/// Copy user bytes into `to`.
#[inline]
pub fn read_bytes(from: UserAddr, to: &mut [u8]) -> Result<(), Fault> {
    let _ = (from, to);
    todo!()
}

/// Copy `from` to user memory.
#[inline]
pub fn write_bytes(to: UserAddr, from: &[u8]) -> Result<(), Fault> {
    let _ = (to, from);
    todo!()
}

/// Zero `len` bytes of user memory.
pub fn zero(to: UserAddr, len: usize) -> Result<(), Fault> {
    let _ = (to, len);
    todo!()
}

/// Load one integer; any alignment.
#[inline]
pub fn read<T: Plain>(from: UserAddr) -> Result<T, Fault> {
    let _ = from;
    todo!()
}

/// Store one integer; any alignment.
#[inline]
pub fn write<T: Plain>(to: UserAddr, value: T) -> Result<(), Fault> {
    let _ = (to, value);
    todo!()
}

/// Copy a NUL-terminated string, without its NUL. `Ok(Some(len))` when the NUL was found within `to.len()` bytes, `Ok(None)`
/// when not.
pub fn read_str(from: UserAddr, to: &mut [u8]) -> Result<Option<usize>, Fault> {
    let _ = (from, to);
    todo!()
}

/// Atomically load an aligned word (a futex); a misaligned address is a fault.
pub fn load_u32(from: UserAddr) -> Result<u32, Fault> {
    let _ = from;
    todo!()
}

/// Atomically replace `old` by `new` in an aligned word; returns what was there.
pub fn compare_exchange_u32(at: UserAddr, old: u32, new: u32) -> Result<u32, Fault> {
    let _ = (at, old, new);
    todo!()
}

/// Run `body` with the copies failing instead of asking [`crate::Kernel::copy_fault`]: for a caller that wants to probe, and
/// fault pages in outside its lock.
pub fn without_faulting<R>(body: impl FnOnce() -> R) -> R {
    let _ = body;
    todo!()
}

//! Copies between the kernel and user memory that turn a fault into an error.
//!
//! Addresses are of the space this processor runs ([`crate::thread`]). An address outside the user half is a
//! fault, never an access. A fault inside asks [`crate::Kernel::copy_fault`] first; only if that fails does the copy
//! end early. While this processor holds a spin lock, or in interrupt context, nothing is asked: pages not mapped are
//! faults.

use core::mem::MaybeUninit;
use core::sync::atomic::Ordering;

use crate::addr::{USER_END, UserAddr};
use crate::x86_64::cpu::{copy, local};

/// A copy that ended early.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fault {
    /// Bytes copied before it, exactly.
    pub done: usize,
}

/// Integers that any bytes are a value of. Sealed: structures cross as bytes.
pub trait Plain: Copy + sealed::Plain {}
mod sealed {
    pub trait Plain: Copy {
        /// # Safety
        /// `from` is in the user half.
        unsafe fn load(from: u64) -> Result<Self, ()>;
        /// # Safety
        /// `to` is in the user half.
        unsafe fn store(to: u64, value: Self) -> Result<(), ()>;
    }
}
macro_rules! plain {
    ($($type:ty, $bits:ty, $load:ident, $store:ident;)*) => {$(
        impl Plain for $type {}
        impl sealed::Plain for $type {
            #[inline]
            unsafe fn load(from: u64) -> Result<Self, ()> {
                // SAFETY: the caller's.
                unsafe { copy::$load(from as *const $bits) }.map(|v| v as $type)
            }

            #[inline]
            unsafe fn store(to: u64, value: Self) -> Result<(), ()> {
                // SAFETY: the caller's.
                unsafe { copy::$store(to as *mut $bits, value as $bits) }
            }
        }
    )*};
}
plain! {
    u8, u8, load8, store8;
    i8, u8, load8, store8;
    u16, u16, load16, store16;
    i16, u16, load16, store16;
    u32, u32, load32, store32;
    i32, u32, load32, store32;
    u64, u64, load64, store64;
    i64, u64, load64, store64;
}

/// Bytes from `at` on that are in the user half, at most `len`.
#[inline]
fn within(at: UserAddr, len: usize) -> usize {
    USER_END.saturating_sub(at.0).min(len as u64) as usize
}

#[inline]
fn outcome(len: usize, left: usize) -> Result<(), Fault> {
    if left == 0 { Ok(()) } else { Err(Fault { done: len - left }) }
}

/// Copy user bytes into `to`.
#[inline]
pub fn read_bytes(from: UserAddr, to: &mut [u8]) -> Result<(), Fault> {
    let len = within(from, to.len());
    // SAFETY: `to` is `len` bytes of ours, and `from` to `from + len` is in the user half.
    let left = unsafe { copy::copy(to.as_mut_ptr(), from.0 as *const u8, len) };
    outcome(to.len(), left + (to.len() - len))
}

/// Copy `from` to user memory.
#[inline]
pub fn write_bytes(to: UserAddr, from: &[u8]) -> Result<(), Fault> {
    let len = within(to, from.len());
    // SAFETY: `from` is `len` bytes of ours, and `to` to `to + len` is in the user half.
    let left = unsafe { copy::copy(to.0 as *mut u8, from.as_ptr(), len) };
    outcome(from.len(), left + (from.len() - len))
}

/// [`read_bytes`] of words.
#[inline(always)]
pub fn read_words<const N: usize>(from: UserAddr) -> Result<[u64; N], Fault> {
    if N == 4 && from.0 <= USER_END - 32 {
        // SAFETY: checked just above. On a fault the copy below tells how far it came.
        if let Ok(words) = unsafe { copy::load_four(from.0 as *const u64) } {
            return Ok(core::array::from_fn(|at| words[at]));
        }
    }
    read_words_apart(from)
}

#[inline(never)]
fn read_words_apart<const N: usize>(from: UserAddr) -> Result<[u64; N], Fault> {
    with_words(from, |words| *words)
}

/// [`read_words`] of many words, which `look` sees where they were copied to: returned, they would be moved once more.
#[inline]
pub fn with_words<const N: usize, R>(from: UserAddr, look: impl FnOnce(&[u64; N]) -> R) -> Result<R, Fault> {
    let mut words = MaybeUninit::<[u64; N]>::uninit();
    let (want, len) = (8 * N, within(from, 8 * N));
    // SAFETY: `words` is `want` bytes of ours, and `from` to `from + len` is in the user half.
    let left = unsafe { copy::copy(words.as_mut_ptr().cast(), from.0 as *const u8, len) };
    outcome(want, left + (want - len))?;
    // SAFETY: every byte was copied, and any bytes are words.
    Ok(look(unsafe { words.assume_init_ref() }))
}

/// [`write_bytes`] of words.
#[inline]
pub fn write_words(to: UserAddr, from: &[u64]) -> Result<(), Fault> {
    // SAFETY: the same memory; every byte of a word is defined.
    let bytes = unsafe { core::slice::from_raw_parts(from.as_ptr().cast(), size_of_val(from)) };
    write_bytes(to, bytes)
}

/// Copy between user memory and the direct map; for [`crate::frame`].
///
/// # Safety
/// `kernel` is valid for `len` bytes of the given direction.
pub(crate) unsafe fn copy_raw(kernel: *mut u8, user: UserAddr, len: usize, to_user: bool) -> Result<(), Fault> {
    let inside = within(user, len);
    let user = user.0 as *mut u8;
    let (to, from) = if to_user { (user, kernel) } else { (kernel, user) };
    // SAFETY: the caller's for one side, `within` for the other.
    let left = unsafe { copy::copy(to, from, inside) };
    outcome(len, left + (len - inside))
}

/// Zero `len` bytes of user memory.
pub fn zero(to: UserAddr, len: usize) -> Result<(), Fault> {
    let inside = within(to, len);
    // SAFETY: `to` to `to + inside` is in the user half.
    let left = unsafe { copy::zero(to.0 as *mut u8, inside) };
    outcome(len, left + (len - inside))
}

/// Load one integer; any alignment.
#[inline]
pub fn read<T: Plain>(from: UserAddr) -> Result<T, Fault> {
    if from.0 > USER_END - size_of::<T>() as u64 {
        return Err(Fault { done: 0 });
    }
    // SAFETY: checked just above.
    unsafe { T::load(from.0) }.map_err(|()| Fault { done: 0 })
}

/// Store one integer; any alignment.
#[inline]
pub fn write<T: Plain>(to: UserAddr, value: T) -> Result<(), Fault> {
    if to.0 > USER_END - size_of::<T>() as u64 {
        return Err(Fault { done: 0 });
    }
    // SAFETY: checked just above.
    unsafe { T::store(to.0, value) }.map_err(|()| Fault { done: 0 })
}

/// Copy a NUL-terminated string, without its NUL. `Ok(Some(len))` when the NUL was found within `to.len()` bytes,
/// `Ok(None)` when not.
pub fn read_str(from: UserAddr, to: &mut [u8]) -> Result<Option<usize>, Fault> {
    let room = within(from, to.len());
    // SAFETY: `to` has the room, and `from` to `from + room` is in the user half.
    let result = unsafe { copy::string(to.as_mut_ptr(), from.0 as *const u8, room) };
    match usize::try_from(result) {
        Ok(len) if len < room => Ok(Some(len)),
        Ok(_) if room == to.len() => Ok(None),
        Ok(len) => Err(Fault { done: len }),
        Err(_) => Err(Fault { done: !result as usize }),
    }
}

/// Atomically load an aligned word (a futex); a misaligned address is a fault.
pub fn load_u32(from: UserAddr) -> Result<u32, Fault> {
    if !from.0.is_multiple_of(4) {
        return Err(Fault { done: 0 });
    }
    read(from)
}

/// Atomically replace `old` by `new` in an aligned word; returns what was there.
pub fn compare_exchange_u32(at: UserAddr, old: u32, new: u32) -> Result<u32, Fault> {
    if !at.0.is_multiple_of(4) || within(at, 4) < 4 {
        return Err(Fault { done: 0 });
    }
    // SAFETY: checked just above.
    unsafe { copy::compare_exchange(at.0 as *mut u32, old, new) }.map_err(|()| Fault { done: 0 })
}

/// Run `body` with the copies failing instead of asking [`crate::Kernel::copy_fault`]: for a caller that wants to
/// probe, and fault pages in outside its lock. `body` must not switch threads; the switch panics.
pub fn without_faulting<R>(body: impl FnOnce() -> R) -> R {
    let count = &local::here().no_fault;
    count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    let result = body();
    count.store(count.load(Ordering::Relaxed) - 1, Ordering::Relaxed);
    result
}

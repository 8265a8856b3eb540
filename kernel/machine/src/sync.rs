//! Locks that remember who holds them.
//!
//! A spin lock never sleeps and is never held across a switch: the processor counts the locks it holds, and
//! [`crate::Start::switch_to`] panics when there are any. Data also touched in interrupt context is locked with
//! [`SpinLock::lock_irq`] everywhere. The crash path uses [`SpinLock::try_lock`] and names the holder when it fails.

use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};
use core::panic::Location;
use core::sync::atomic::{AtomicPtr, AtomicU32};

use crate::cpu::CpuId;

/// Mutual exclusion by spinning.
pub struct SpinLock<T: ?Sized> {
    /// 0 free, else holder's processor number + 1.
    holder: AtomicU32,
    place: AtomicPtr<Location<'static>>,
    value: UnsafeCell<T>,
}

/// Who holds a lock, for dumps: a snapshot.
#[derive(Clone, Copy, Debug)]
pub struct Holder {
    /// The processor.
    pub cpu: CpuId,
    /// Where it was taken.
    pub place: &'static Location<'static>,
}

impl<T> SpinLock<T> {
    /// Unlocked.
    pub const fn new(value: T) -> Self {
        Self { holder: AtomicU32::new(0), place: AtomicPtr::new(core::ptr::null_mut()), value: UnsafeCell::new(value) }
    }

    /// The value back.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

// SAFETY: the lock hands out one `&mut T` at a time, to whichever processor holds it; so `T: Send` is what sharing needs.
unsafe impl<T: ?Sized + Send> Sync for SpinLock<T> {}

impl<T: ?Sized> SpinLock<T> {
    /// Lock, interrupts untouched. Panics when this processor holds it already (it could only spin for ever).
    #[inline]
    #[track_caller]
    pub fn lock(&self) -> SpinGuard<'_, T> {
        todo!()
    }

    /// Lock with interrupts off until the guard is dropped.
    #[inline]
    #[track_caller]
    pub fn lock_irq(&self) -> SpinGuard<'_, T> {
        todo!()
    }

    /// Lock if free.
    #[inline]
    #[track_caller]
    pub fn try_lock(&self) -> Option<SpinGuard<'_, T>> {
        todo!()
    }

    /// Whoever holds it now.
    pub fn holder(&self) -> Option<Holder> {
        let _ = (&self.holder, &self.place);
        todo!()
    }

    /// Through a unique reference no lock is needed.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }
}

/// Holds a [`SpinLock`].
pub struct SpinGuard<'a, T: ?Sized> {
    lock: &'a SpinLock<T>,
}

impl<T: ?Sized> Deref for SpinGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        let _ = self.lock;
        todo!()
    }
}

impl<T: ?Sized> DerefMut for SpinGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        todo!()
    }
}

/// Set once, read without a lock ever after.
pub struct Once<T> {
    value: UnsafeCell<Option<T>>,
    state: AtomicU32,
}

// SAFETY: the value is written by the one thread that moves `state` from empty and only read after.
unsafe impl<T: Send + Sync> Sync for Once<T> {}

impl<T> Once<T> {
    /// Empty.
    pub const fn new() -> Self {
        Self { value: UnsafeCell::new(None), state: AtomicU32::new(0) }
    }

    /// Set it; gives the value back when something was set before.
    pub fn set(&self, value: T) -> Result<(), T> {
        let _ = (&self.value, &self.state, value);
        todo!()
    }

    /// The value, once set.
    #[inline]
    pub fn get(&self) -> Option<&T> {
        todo!()
    }
}

impl<T> Default for Once<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// Spin locks this processor holds right now.
pub fn locks_held() -> u32 {
    todo!()
}

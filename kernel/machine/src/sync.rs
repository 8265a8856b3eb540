//! Spin locks that record their holder and its call site, and cells that are set once.
//!
//! A spin lock never sleeps and is never held across a switch: the processor counts the locks it holds, and
//! [`crate::Start::switch_to`] panics when there are any. Data also touched in interrupt context is locked with
//! [`SpinLock::lock_irq`] everywhere. The crash path uses [`SpinLock::try_lock`] and names the holder when it fails.

use core::cell::UnsafeCell;
use core::marker::PhantomData;
use core::mem::{MaybeUninit, offset_of};
use core::ops::{Deref, DerefMut};
use core::panic::Location;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use crate::contention;
use crate::irq::{self, IrqOff};
use crate::percpu;
use crate::processor::CpuId;
use crate::x86_64::cpu::local;

pub use crate::contention::{Waits, waits};
pub use crate::waiting::{Awaited, Holder};

/// What a processor does while it waits for a lock; the layers above register it.
pub(crate) struct WhileWaiting {
    /// Called once per wait, before it, with the lock's address and its holder.
    pub contended: fn(u64, CpuId),
    /// Called once per wait that `contended` was told of, with the lock held, with its address.
    pub taken: fn(u64),
    /// Called between two attempts. The holder may be waiting for this processor, so what it may wait for is served
    /// here.
    pub relax: fn(),
}

static WHILE_WAITING: Once<WhileWaiting> = Once::new();

/// Register it. Once, before a second processor runs.
pub(crate) fn while_waiting(what: WhileWaiting) {
    // Set by boot alone; a second value would be ignored.
    let _ = WHILE_WAITING.set(what);
}

/// Mutual exclusion by spinning.
pub struct SpinLock<T: ?Sized> {
    /// 0 free, else holder's processor number + 1.
    holder: AtomicU32,
    location: AtomicPtr<Location<'static>>,
    value: UnsafeCell<T>,
}

impl<T> SpinLock<T> {
    /// An unlocked lock around `value`; usable in a static.
    pub const fn new(value: T) -> Self {
        Self {
            holder: AtomicU32::new(0),
            location: AtomicPtr::new(core::ptr::null_mut()),
            value: UnsafeCell::new(value),
        }
    }

    /// Offset of the value.
    pub const VALUE: usize = offset_of!(Self, value);
    /// Offset of the holder's processor number + 1, 32 bits, 0 while it is free.
    pub const HOLDER: usize = offset_of!(Self, holder);
    /// Offset of the pointer to the [`Location`] that took it last.
    pub const LOCATION: usize = offset_of!(Self, location);

    /// The value back.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: Default> Default for SpinLock<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

// SAFETY: the lock hands out one `&mut T` at a time, to whichever processor holds it; so `T: Send` is what sharing
// needs.
unsafe impl<T: ?Sized + Send> Sync for SpinLock<T> {}

impl<T: ?Sized> SpinLock<T> {
    /// Lock, interrupts untouched. Panics when this processor holds it already (it could only spin for ever).
    #[inline]
    #[track_caller]
    pub fn lock(&self) -> SpinGuard<'_, T> {
        self.guard(None)
    }

    /// Lock with interrupts off until the guard is dropped.
    #[inline]
    #[track_caller]
    pub fn lock_irq(&self) -> SpinGuard<'_, T> {
        self.guard(Some(irq::off()))
    }

    #[inline]
    #[track_caller]
    fn guard(&self, irq: Option<IrqOff>) -> SpinGuard<'_, T> {
        let location = Location::caller();
        // Counted before it is taken: between the two an interrupt must not find the lock held and the count zero.
        local::lock_taken();
        let me = local::holder();
        if self.holder.compare_exchange(0, me, Ordering::Acquire, Ordering::Relaxed).is_err() {
            self.wait(me, location);
        }
        self.note_location(location);
        SpinGuard { lock: self, irq, _this_processor_only: PhantomData }
    }

    #[cold]
    #[inline(never)]
    fn wait(&self, me: u32, location: &'static Location<'static>) {
        local::here().awaits.begin(&self.holder, &self.location, location);
        let lock = (&raw const self.holder).addr() as u64;
        // A lock that is free by now has no holder to name, and its wait is not worth two events.
        let holder = self.holder.load(Ordering::Relaxed).checked_sub(1);
        let told = holder.and_then(|holder| Some((holder, WHILE_WAITING.get()?)));
        if let Some((holder, waiting)) = told {
            (waiting.contended)(lock, CpuId(holder));
        }
        let began = contention::cycles();
        self.spin(me, location);
        contention::count::<T>(location, contention::cycles().saturating_sub(began));
        local::here().awaits.end();
        if let Some((_, waiting)) = told {
            (waiting.taken)(lock);
        }
    }

    fn spin(&self, me: u32, location: &Location<'_>) {
        loop {
            let holder = self.holder.load(Ordering::Relaxed);
            if holder == me {
                local::lock_released();
                match self.holder().map(|holder| holder.location) {
                    Some(taken) => panic!("lock taken at {taken} locked again by its own processor at {location}"),
                    None => panic!("lock locked again by its own processor at {location}"),
                }
            }
            if holder == 0 && self.holder.compare_exchange(0, me, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                return;
            }
            if let Some(waiting) = WHILE_WAITING.get() {
                (waiting.relax)();
            }
            percpu::relax();
        }
    }

    /// Takes the lock if it is free; never spins.
    #[inline]
    #[track_caller]
    pub fn try_lock(&self) -> Option<SpinGuard<'_, T>> {
        let location = Location::caller();
        local::lock_taken();
        if self.holder.compare_exchange(0, local::holder(), Ordering::Acquire, Ordering::Relaxed).is_err() {
            local::lock_released();
            return None;
        }
        self.note_location(location);
        Some(SpinGuard { lock: self, irq: None, _this_processor_only: PhantomData })
    }

    /// Write down where it was taken; the performance profile leaves that to the holder's stack.
    #[inline(always)]
    fn note_location(&self, location: &'static Location<'static>) {
        #[cfg(not(feature = "performance"))]
        self.location.store(core::ptr::from_ref(location).cast_mut(), Ordering::Relaxed);
        #[cfg(feature = "performance")]
        let _ = location;
    }

    /// The current holder; `None` if it is free or the profile does not record call sites.
    pub fn holder(&self) -> Option<Holder> {
        let cpu = self.holder.load(Ordering::Relaxed).checked_sub(1)?;
        // SAFETY: only locations of callers are stored, and those are static.
        let location = unsafe { self.location.load(Ordering::Relaxed).as_ref() }?;
        Some(Holder { cpu: CpuId(cpu), location })
    }

    /// Through a unique reference no lock is needed.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }
}

/// Holds a [`SpinLock`]. Stays on the processor that locked it.
pub struct SpinGuard<'a, T: ?Sized> {
    lock: &'a SpinLock<T>,
    /// Restores the interrupt flag after the lock is released.
    irq: Option<IrqOff>,
    _this_processor_only: PhantomData<*mut ()>,
}

// SAFETY: shared access through the guard is shared access to `T`.
unsafe impl<T: ?Sized + Sync> Sync for SpinGuard<'_, T> {}

impl<T: ?Sized> Deref for SpinGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the guard holds the lock.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T: ?Sized> DerefMut for SpinGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard holds the lock, and is borrowed uniquely.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T: ?Sized> Drop for SpinGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.lock.holder.store(0, Ordering::Release);
        local::lock_released();
        drop(self.irq.take());
    }
}

/// A cell that is set once and then read without a lock.
pub struct Once<T> {
    value: UnsafeCell<MaybeUninit<T>>,
    state: AtomicU32,
}

const EMPTY: u32 = 0;
const WRITING: u32 = 1;
const SET: u32 = 2;

// SAFETY: the value is written by the one caller that moves `state` from empty, and only shared after.
unsafe impl<T: Send + Sync> Sync for Once<T> {}

impl<T> Once<T> {
    /// An unset cell; usable in a static.
    pub const fn new() -> Self {
        Self { value: UnsafeCell::new(MaybeUninit::uninit()), state: AtomicU32::new(EMPTY) }
    }

    /// Set it; gives the value back when something was set before.
    pub fn set(&self, value: T) -> Result<(), T> {
        if self.state.compare_exchange(EMPTY, WRITING, Ordering::Acquire, Ordering::Relaxed).is_err() {
            return Err(value);
        }
        // SAFETY: the exchange made this the only writer, and readers wait for SET.
        unsafe { (*self.value.get()).write(value) };
        self.state.store(SET, Ordering::Release);
        Ok(())
    }

    /// The value, once set.
    #[inline]
    pub fn get(&self) -> Option<&T> {
        if self.state.load(Ordering::Acquire) != SET {
            return None;
        }
        // SAFETY: SET is stored after the value was written; it is never written again.
        Some(unsafe { (*self.value.get()).assume_init_ref() })
    }
}

impl<T> Drop for Once<T> {
    fn drop(&mut self) {
        if *self.state.get_mut() == SET {
            // SAFETY: set, and `&mut self` excludes other references.
            unsafe { self.value.get_mut().assume_init_drop() };
        }
    }
}

impl<T> Default for Once<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// Spin locks this processor holds right now.
pub fn locks_held() -> u32 {
    local::here().locks.load(Ordering::Relaxed)
}

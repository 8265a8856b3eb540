//! Exclusive access to a value, taken and released by exchanging one word, which says who has it.
//!
//! A [`Claim`] is the part of a sleeping mutex that needs a cell. What a thread does while another has the value,
//! and how it is woken, is up to the layers above, which name their side with [`Parking`]. Unlike a spin lock it may be
//! held across a switch of threads.

use core::cell::UnsafeCell;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicU32, Ordering};

/// The word of a claim that no thread has. Any other has [`TAKEN`], and the owner's number above the four flags.
const FREE: u32 = 0;
const TAKEN: u32 = 1;
/// Taken, and threads may be waiting.
const CONTENDED: u32 = 2;
/// Taken and contended, and a thread that waits was overtaken: the owner gives it to the one that has waited longest.
const OVERTAKEN: u32 = 4;
/// Taken for the owner, who has not looked yet: it is told from an owner that waits for what it has.
const GIVEN: u32 = 8;
const OWNER_SHIFT: u32 = 4;

/// Number of the thread that has a claim, or tries to, as the layers above number threads: below 2^28.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner(pub u32);

/// How a thread comes to a claim that another may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// It has not waited yet.
    First,
    /// It was woken to take the claim. Where another thread was faster once more, that one gives it over.
    Woken,
}

/// Where threads wait for a claim.
pub trait Parking {
    /// The claim at this address was released, and threads may be waiting for it.
    fn released(address: usize);

    /// Calls `give` with the thread that has waited longest for the claim at this address, then wakes it. Without one
    /// `give` is not called. The claim may be gone once `give` returns.
    fn hand_over(address: usize, give: impl FnOnce(Owner));
}

/// A value that one thread at a time has access to.
#[derive(Debug, Default)]
pub struct Claim<T, P> {
    state: AtomicU32,
    value: UnsafeCell<T>,
    _parking: PhantomData<fn() -> P>,
}

// SAFETY: `state` leaves FREE for one thread at a time, which alone gets at the value; so sharing needs `T: Send`.
unsafe impl<T: Send, P> Sync for Claim<T, P> {}

/// Access to the value of a [`Claim`], until dropped.
#[must_use = "the claim is released where this is dropped"]
pub struct Claimed<'c, T, P: Parking> {
    claim: &'c Claim<T, P>,
    /// Shared between threads only if `T` may be.
    _value: PhantomData<*mut T>,
}

// SAFETY: shared access through this is shared access to `T`.
unsafe impl<T: Sync, P: Parking> Sync for Claimed<'_, T, P> {}

impl<T, P> Claim<T, P> {
    /// A value that no thread has claimed.
    pub const fn new(value: T) -> Self {
        Self { state: AtomicU32::new(FREE), value: UnsafeCell::new(value), _parking: PhantomData }
    }

    /// Names the claim among all claims.
    pub fn address(&self) -> usize {
        core::ptr::from_ref(&self.state).addr()
    }
}

impl<T, P: Parking> Claim<T, P> {
    /// Takes it for `owner` if it is free.
    #[inline]
    pub fn try_take(&self, owner: Owner) -> Option<Claimed<'_, T, P>> {
        let taken = owner.0 << OWNER_SHIFT | TAKEN;
        let free = self.state.compare_exchange(FREE, taken, Ordering::Acquire, Ordering::Relaxed).is_ok();
        free.then(|| Claimed { claim: self, _value: PhantomData })
    }

    /// Marks it as waited for, and takes it for `owner` if it was free or was given over to it; else says who has it.
    /// One that is taken this way stays marked, since its owner does not know whether further threads wait.
    pub fn take_contended(&self, owner: Owner, turn: Turn) -> Result<Claimed<'_, T, P>, Owner> {
        let is_ours = |word: u32| word == FREE || word & GIVEN != 0 && word >> OWNER_SHIFT == owner.0;
        let mark = |word| {
            Some(match turn {
                _ if is_ours(word) => owner.0 << OWNER_SHIFT | TAKEN | CONTENDED,
                Turn::Woken => word | CONTENDED | OVERTAKEN,
                Turn::First => word | CONTENDED,
            })
        };
        match self.state.fetch_update(Ordering::SeqCst, Ordering::SeqCst, mark) {
            Ok(word) if is_ours(word) => Ok(Claimed { claim: self, _value: PhantomData }),
            Ok(word) | Err(word) => Err(Owner(word >> OWNER_SHIFT)),
        }
    }
}

impl<T, P: Parking> Deref for Claimed<'_, T, P> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: `self` has the claim.
        unsafe { &*self.claim.value.get() }
    }
}

impl<T, P: Parking> DerefMut for Claimed<'_, T, P> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: `self` has the claim, and is borrowed uniquely.
        unsafe { &mut *self.claim.value.get() }
    }
}

impl<T, P: Parking> Drop for Claimed<'_, T, P> {
    #[inline]
    fn drop(&mut self) {
        // The claim may be freed by another thread right after the exchange: only its address is used from there on.
        let address = self.claim.address();
        if self.claim.state.load(Ordering::Relaxed) & OVERTAKEN != 0 && self.give_over(address) {
            return;
        }
        // A thread that says here that it was overtaken is woken below, and says so once more if it was.
        if self.claim.state.swap(FREE, Ordering::SeqCst) & CONTENDED != 0 {
            P::released(address);
        }
    }
}

impl<T, P: Parking> Claimed<'_, T, P> {
    /// Makes the thread that has waited longest the owner; false if none waits.
    #[cold]
    fn give_over(&self, address: usize) -> bool {
        let mut given = false;
        P::hand_over(address, |owner| {
            given = true;
            self.claim.state.store(owner.0 << OWNER_SHIFT | TAKEN | CONTENDED | GIVEN, Ordering::SeqCst);
        });
        given
    }
}

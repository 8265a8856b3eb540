//! The running thread's own registers that are not in its [`crate::arch::UserFrame`].

use super::BadState;
use crate::addr::{USER_END, UserAddr};
use crate::irq;
use crate::user::{self, Fault};
use crate::x86_64::cpu::features::{self, Feature};
use crate::x86_64::cpu::fpu;
use crate::x86_64::memory::{bases, thread};

/// Its thread pointer (FS base on x86-64).
pub fn tls() -> u64 {
    bases::user_bases().0
}

/// Set it. An address outside the user half is refused.
pub fn set_tls(base: u64) -> Result<(), BadState> {
    if !is_canonical_user(base) {
        return Err(BadState);
    }
    thread::remember_bases(base, bases::user_bases().1);
    Ok(())
}

/// The second user segment base (GS on x86-64), for `arch_prctl`.
pub fn second_base() -> u64 {
    bases::user_bases().1
}

/// Set it. An address outside the user half is refused.
pub fn set_second_base(base: u64) -> Result<(), BadState> {
    if !is_canonical_user(base) {
        return Err(BadState);
    }
    thread::remember_bases(bases::user_bases().0, base);
    Ok(())
}

pub(super) fn is_canonical_user(base: u64) -> bool {
    base < USER_END
}

/// Back to the architecture's initial FPU state and cleared bases (exec).
pub fn reset() {
    let _off = irq::off();
    if let Some(area) = thread::running_fpu_area() {
        // SAFETY: the running thread's own area; no switch can come in between.
        unsafe {
            fpu::fresh(area);
            fpu::load(area);
        }
        thread::remember_bases(0, 0);
    }
}

/// Bytes [`save_fpu`] writes.
#[inline]
pub fn fpu_size() -> usize {
    fpu::size_for_user()
}

/// Write the FPU state to user memory as a signal frame wants it (x86-64: 64-byte aligned, the XSAVE image with Linux's
/// software-reserved words, then the trailing magic), straight from the registers. How far it came is not told.
#[inline]
pub fn save_fpu(to: UserAddr) -> Result<(), Fault> {
    if thread::running_fpu_area().is_none() {
        return Ok(());
    }
    if to.0 > USER_END - fpu_size() as u64 {
        return Err(Fault { done: 0 });
    }
    // SAFETY: checked just above. The registers hold the state of the running thread, also after a switch to another
    // and back in a page fault of these stores.
    unsafe { fpu::save_to_user(to.0 as *mut u8) }.map_err(|()| Fault { done: 0 })
}

/// Load a state a program may have made up: checked, so that nothing faults. If it cannot be read, or is unsound
/// ([`BadState`]), nothing changes.
#[inline]
pub fn load_fpu(from: UserAddr) -> Result<(), BadState> {
    let area = thread::running_fpu_area().ok_or(BadState)?;
    if load_in_place(area, from) { Ok(()) } else { load_copied(area, from) }
}

/// Load a whole image from where it lies, if it is all there and the processor takes it as it is; else nothing changes.
#[inline]
fn load_in_place(area: *mut u8, from: UserAddr) -> bool {
    if !features::has(Feature::Xsave) || from.0 > USER_END - fpu::size() as u64 {
        return false;
    }
    if user::read(from.add(fpu::SOFTWARE_OFFSET)) != Ok(fpu::FP_XSTATE_MAGIC1) {
        return false;
    }
    // Off: no fault is resolved and nothing switches, so what is saved here is what the registers held.
    let _off = irq::off();
    // SAFETY: the running thread's own area, its header defined; the image is in the user half.
    unsafe {
        fpu::save_whole(area);
        let loaded = fpu::load_from_user(from.0 as *const u8).is_ok();
        if !loaded {
            fpu::load(area);
        }
        loaded
    }
}

/// Load any image, by way of the area: made sound there as far as Linux does, too.
#[cold]
fn load_copied(area: *mut u8, from: UserAddr) -> Result<(), BadState> {
    let copy = || {
        let _off = irq::off();
        // SAFETY: the running thread's own area, `size()` bytes. The registers still hold the thread's state, so on any
        // failure the area is written from them again, header first: XSAVEOPT may rely on what it finds there.
        unsafe {
            let whole = user::copy_raw(area, from, fpu::size(), false).is_ok();
            let read = whole || user::copy_raw(area, from, fpu::LEGACY, false).is_ok();
            let len = fpu::claimed_size(area);
            // An FXSAVE image may end where its memory does.
            let read = whole || read && len == fpu::LEGACY;
            if read && fpu::sanitize(area, len) {
                fpu::load(area);
                return Ok(());
            }
            fpu::clear_header(area);
            fpu::save_whole(area);
            if read { Err(true) } else { Err(false) }
        }
    };
    match copy() {
        Ok(()) => Ok(()),
        Err(true) => Err(BadState),
        Err(false) => {
            // The kernel maps what it lies on: both ends of a range shorter than a page.
            for at in [from, from.add(fpu::size() - 1)] {
                user::read::<u8>(at).map_err(|_| BadState)?;
            }
            copy().map_err(|_| BadState)
        }
    }
}

/// Bytes left on this kernel stack.
pub fn stack_left() -> usize {
    let marker = 0u8;
    let sp = (&raw const marker) as u64;
    crate::crash::stack_bounds(sp).map_or(0, |(bottom, _)| sp.saturating_sub(bottom) as usize)
}

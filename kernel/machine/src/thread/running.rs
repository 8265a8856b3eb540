//! The running thread's own registers that are not in its [`crate::arch::UserFrame`].

use super::BadState;
use crate::addr::{USER_END, UserAddr};
use crate::irq;
use crate::user::{self, Fault};
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
pub fn fpu_size() -> usize {
    fpu::size() + 4
}

/// Write the FPU state to user memory as a signal frame wants it (x86-64: 64-byte aligned, the XSAVE image with Linux's
/// software-reserved words, then the trailing magic), straight from the thread's own area.
pub fn save_fpu(to: UserAddr) -> Result<(), Fault> {
    let Some(area) = thread::running_fpu_area() else { return Ok(()) };
    let copy = || {
        // Off: a switch while the copy has a vector register in use would put that into the area.
        let _off = irq::off();
        // SAFETY: the running thread's own area, `size()` bytes; its header was defined when the thread began.
        unsafe {
            fpu::save_whole(area);
            fpu::describe(area);
            user::copy_raw(area, to, fpu::size(), true)
        }
    };
    if copy().is_err() {
        let zero_fill = |at| user::write(at, 0u8);
        touch_ends(to, fpu::size(), zero_fill)?;
        copy()?;
    }
    user::write(to.add(fpu::size()), fpu::FP_XSTATE_MAGIC2)
}

/// Load a state a program may have made up: checked, so that nothing faults. If it cannot be read, or is unsound
/// ([`BadState`]), nothing changes.
pub fn load_fpu(from: UserAddr) -> Result<(), BadState> {
    let area = thread::running_fpu_area().ok_or(BadState)?;
    let copy = || {
        let _off = irq::off();
        // SAFETY: the running thread's own area, `size()` bytes. The registers still hold the thread's state, so on any
        // failure the area is written from them again, header first: XSAVEOPT may rely on what it finds there.
        unsafe {
            let read = user::copy_raw(area, from, fpu::LEGACY, false).is_ok();
            let len = fpu::claimed_size(area);
            let rest = area.add(fpu::LEGACY);
            let read = read && user::copy_raw(rest, from.add(fpu::LEGACY), len - fpu::LEGACY, false).is_ok();
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
            touch_ends(from, fpu::size(), |at| user::read::<u8>(at).map(|_| ())).map_err(|_| BadState)?;
            copy().map_err(|_| BadState)
        }
    }
}

/// Touch both ends of a range shorter than a page, so that the kernel maps what it lies on.
fn touch_ends(at: UserAddr, len: usize, touch: impl Fn(UserAddr) -> Result<(), Fault>) -> Result<(), Fault> {
    touch(at)?;
    touch(at.add(len - 1))
}

/// Bytes left on this kernel stack.
pub fn stack_left() -> usize {
    let marker = 0u8;
    let sp = (&raw const marker) as u64;
    crate::crash::stack_bounds(sp).map_or(0, |(bottom, _)| sp.saturating_sub(bottom) as usize)
}

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
    reset_fpu();
    if thread::running_fpu_area().is_some() {
        thread::remember_bases(0, 0);
    }
}

/// Back to the architecture's initial FPU state.
pub fn reset_fpu() {
    let _off = irq::off();
    if let Some(area) = thread::running_fpu_area() {
        // SAFETY: the running thread's own area; no switch can come in between.
        unsafe {
            fpu::fresh(area);
            fpu::load(area);
        }
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

/// Load a state a program may have made up, as Linux reads it (`fpu__restore_sig`): whole if the description in it and
/// the magic behind it say so, else the FXSAVE part; states that it does not name become initial. One that cannot be
/// read, lies askew or that the processor refuses is [`BadState`]; all of the state is initial then.
#[inline]
pub fn load_fpu(from: UserAddr) -> Result<(), BadState> {
    let area = thread::running_fpu_area().ok_or(BadState)?;
    load_image(area, from).inspect_err(|_| reset_fpu())
}

#[inline]
fn load_image(area: *mut u8, from: UserAddr) -> Result<(), BadState> {
    if from.0 > USER_END - fpu::size() as u64 {
        return Err(BadState);
    }
    let states = if features::has(Feature::Xsave) { named_states(from)? } else { None };
    let Some(states) = states else { return load_legacy(area, from) };
    if fpu::saved_states() & !states != 0 {
        reset_fpu();
    }
    // SAFETY: the image is in the user half. A fault of the load is resolved; a switch to another thread and back in it
    // keeps the registers as they are, and the load begins again.
    unsafe { fpu::load_from_user(from.0 as *const u8, states) }.map_err(|()| BadState)
}

/// The states that a whole image at `from` says it holds; `None` for one of FXSAVE alone (`check_xstate_in_sigframe`).
#[inline]
fn named_states(from: UserAddr) -> Result<Option<u64>, BadState> {
    let [about, states, sizes, _] = user::read_words::<4>(from.add(fpu::SOFTWARE_OFFSET)).map_err(|_| BadState)?;
    let (with_magic, len) = (about >> 32, sizes & 0xffff_ffff);
    let has_header = len >= fpu::WITHOUT_PARTS as u64 && len <= fpu::size() as u64 && len <= with_magic;
    if about as u32 != fpu::FP_XSTATE_MAGIC1 || !has_header {
        return Ok(None);
    }
    let behind: u32 = user::read(from.add(len as usize)).map_err(|_| BadState)?;
    Ok((behind == fpu::FP_XSTATE_MAGIC2).then_some(states))
}

/// Load the FXSAVE part of an image by way of the area; the other states become initial.
#[cold]
fn load_legacy(area: *mut u8, from: UserAddr) -> Result<(), BadState> {
    let mut image = [0; fpu::LEGACY];
    if !from.0.is_multiple_of(16) {
        return Err(BadState);
    }
    user::read_bytes(from, &mut image).map_err(|_| BadState)?;
    let _off = irq::off();
    // SAFETY: the running thread's own area; no switch can come in between.
    if unsafe { fpu::load_fxsave(area, &image) } { Ok(()) } else { Err(BadState) }
}

/// Bytes left on this kernel stack.
pub fn stack_left() -> usize {
    let marker = 0u8;
    let sp = (&raw const marker) as u64;
    crate::crash::stack_bounds(sp).map_or(0, |(bottom, _)| sp.saturating_sub(bottom) as usize)
}

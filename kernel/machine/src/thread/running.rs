//! The running thread's own registers that are not in its [`crate::arch::UserFrame`].

use super::BadState;
use crate::addr::USER_END;
use crate::irq;
use crate::x86_64::{bases, fpu, thread};

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
    fpu::size()
}

/// Write the FPU state as a signal frame wants it (x86-64: the XSAVE image with the software-reserved bytes filled in, as
/// Linux does, without the trailing magic). Returns bytes written; a buffer shorter than [`fpu_size`] gets none.
pub fn save_fpu(to: &mut [u8]) -> usize {
    let _off = irq::off();
    let (Some(area), Some(to)) = (thread::running_fpu_area(), to.get_mut(..fpu::size())) else { return 0 };
    // SAFETY: the running thread's own area, `size()` bytes long; the header was defined when the thread began.
    unsafe {
        fpu::save_whole(area);
        to.copy_from_slice(core::slice::from_raw_parts(area, fpu::size()));
    }
    fpu::describe(to);
    to.len()
}

/// Load a state a program may have made up: checked, so that nothing faults; with an unsound image nothing changes.
pub fn load_fpu(from: &[u8]) -> Result<(), BadState> {
    let _off = irq::off();
    let area = thread::running_fpu_area().ok_or(BadState)?;
    // SAFETY: the running thread's own area; `import` leaves a valid image in it or does not touch it.
    unsafe {
        if !fpu::import(area, from) {
            return Err(BadState);
        }
        fpu::load(area);
    }
    Ok(())
}

/// Bytes left on this kernel stack.
pub fn stack_left() -> usize {
    let marker = 0u8;
    let sp = (&raw const marker) as u64;
    crate::crash::stack_bounds(sp).map_or(0, |(bottom, _)| sp.saturating_sub(bottom) as usize)
}

//! The machine's part of a thread, and the switch from one to another.
//!
//! Stack picture of a user thread: at the top the FPU area (64-byte aligned), below it the user registers
//! ([`UserFrame`]), below that the kernel's own frames. Of a parked thread the lowest words are what [`switch_stacks`]
//! pushed.
//!
//! A thread that has run owns one reference to itself, given up when it is dead: its stack never disappears under it.

use alloc::sync::Arc;
use core::arch::global_asm;
use core::mem::offset_of;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

use super::space::{self, UserSpace};
use super::stacks::{self, Stack};
use super::{bases, probe};
use crate::describe::Entry;
use crate::frame::OutOfFrames;
use crate::processor::CpuId;
use crate::x86_64::cpu::features::{self, Feature};
use crate::x86_64::cpu::regs::UserFrame;
use crate::x86_64::cpu::{fpu, local};

const PARKED: u32 = 0;
const RUNNING: u32 = 1;
const DEAD: u32 = 2;
/// Parked, and locked while another thread changes it.
const BUSY: u32 = 3;

const NO_CPU: u32 = u32::MAX;

/// What becomes of the thread switched from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leave {
    /// It may be resumed.
    Parked,
    /// It never runs again.
    Dead,
    /// There was none: the boot stack.
    Boot,
}

/// Everything the processor needs of a thread.
pub(crate) struct Core {
    sp: AtomicU64,
    state: AtomicU32,
    /// State after the switch in progress.
    leave: AtomicU32,
    cpu: AtomicU32,
    /// Where its FPU state was last loaded.
    fpu_cpu: AtomicU32,
    fs_base: AtomicU64,
    gs_base: AtomicU64,
    /// Owns a reference, or null.
    space: AtomicPtr<UserSpace>,
    /// Base of the FPU area; 0 for a kernel thread.
    fpu_area: u64,
    /// Top of the part of the stack that code uses.
    stack_top: u64,
    stack_bottom: u64,
    stack: core::cell::UnsafeCell<Option<Stack>>,
    /// Set once it has run: the reference it owns to itself, and how to give that up.
    itself: AtomicPtr<()>,
    release: unsafe fn(*const ()),
}

// SAFETY: the fields are atomic or never change, but `stack`: that is touched only when the thread is dropped or dead.
unsafe impl Sync for Core {}
// SAFETY: nothing in it is tied to a processor while it is not running.
unsafe impl Send for Core {}

global_asm!(
    r#"
    .section .text.entry, "ax"

    /* rdi: where to keep the old stack pointer, rsi: the new one. Below the return address, from high to low: RBP, RBX,
       R12 to R15. */
    .balign 16
    .global switch_stacks
switch_stacks:
    push rbp
    push rbx
    push r12
    push r13
    push r14
    push r15
    mov [rdi], rsp
    mov rsp, rsi
    pop r15
    pop r14
    pop r13
    pop r12
    pop rbx
    pop rbp
    ret

    /* First code of a user thread: RSP is at its user registers. */
user_begin:
    xor ebp, ebp
    call {begin}
    jmp return_to_user

    /* First code of a kernel thread: R12 is its entry. */
kernel_begin:
    xor ebp, ebp
    call {begin}
    sti
    call r12
    ud2
"#,
    begin = sym begin,
);

unsafe extern "C" {
    fn switch_stacks(old: *mut u64, new: u64);
    fn user_begin();
    fn kernel_begin();
}

/// A new thread's first words: what [`switch_stacks`] pops.
#[repr(C)]
struct Seed {
    r15_to_r13: [u64; 3],
    r12: u64,
    rbx: u64,
    rbp: u64,
    resume: u64,
}

impl Core {
    /// Its part of [`crate::describe`], for one at offset `at` of a thread. While its state is 0 it is parked, and its
    /// stack pointer at a [`Seed`].
    pub(crate) const fn fields(at: usize) -> [Entry; 7] {
        [
            Entry::number("thread.sp", at + offset_of!(Self, sp)),
            Entry::number("thread.state", at + offset_of!(Self, state)),
            Entry::number("thread.cpu", at + offset_of!(Self, cpu)),
            Entry::number("thread.frame_end", at + offset_of!(Self, fpu_area)),
            Entry::number("thread.stack_low", at + offset_of!(Self, stack_bottom)),
            Entry::number("thread.stack_high", at + offset_of!(Self, stack_top)),
            Entry::number("thread.stack_guard", stacks::GUARD as usize),
        ]
    }

    /// For a thread that runs `entry` in the kernel.
    pub(crate) fn kernel(entry: fn() -> !, release: unsafe fn(*const ())) -> Result<Self, OutOfFrames> {
        stacks::trim();
        let stack = Stack::new()?;
        let top = stack.top() - 16;
        Ok(Self::with_stack(stack, top, 0, (kernel_begin as *const () as u64, entry as usize as u64), release))
    }

    /// For a thread that begins in user mode with `frame`; FPU state and bases as given.
    pub(crate) fn user(
        frame: &UserFrame,
        inherit_fpu: bool,
        tls: u64,
        release: unsafe fn(*const ()),
    ) -> Result<Self, OutOfFrames> {
        stacks::trim();
        let stack = Stack::new()?;
        let fpu_area = (stack.top() - fpu::size() as u64) & !63;
        let frame_at = fpu_area - size_of::<UserFrame>() as u64;
        // SAFETY: both lie in the fresh stack, aligned; the area is large enough for the processor's state.
        unsafe {
            if inherit_fpu {
                fpu::clear_gaps(fpu_area as *mut u8);
                fpu::save_whole(fpu_area as *mut u8);
            } else {
                fpu::fresh(fpu_area as *mut u8);
            }
            (frame_at as *mut UserFrame).write(*frame);
        }
        let core = Self::with_stack(stack, fpu_area, fpu_area, (user_begin as *const () as u64, 0), release);
        core.fs_base.store(tls, Ordering::Relaxed);
        if inherit_fpu {
            core.gs_base.store(bases::user_bases().1, Ordering::Relaxed);
        }
        Ok(core)
    }

    fn with_stack(stack: Stack, top: u64, fpu_area: u64, start: (u64, u64), release: unsafe fn(*const ())) -> Self {
        let below = if fpu_area == 0 { top } else { top - size_of::<UserFrame>() as u64 };
        let sp = below - size_of::<Seed>() as u64;
        let seed = Seed { r15_to_r13: [0; 3], r12: start.1, rbx: 0, rbp: 0, resume: start.0 };
        // SAFETY: within the fresh stack, aligned to 8.
        unsafe { (sp as *mut Seed).write(seed) };
        Self {
            sp: AtomicU64::new(sp),
            state: AtomicU32::new(PARKED),
            leave: AtomicU32::new(PARKED),
            cpu: AtomicU32::new(0),
            fpu_cpu: AtomicU32::new(NO_CPU),
            fs_base: AtomicU64::new(0),
            gs_base: AtomicU64::new(0),
            space: AtomicPtr::new(null_mut()),
            fpu_area,
            stack_top: top,
            stack_bottom: stack.bottom(),
            stack: core::cell::UnsafeCell::new(Some(stack)),
            itself: AtomicPtr::new(null_mut()),
            release,
        }
    }

    /// Move from parked to running on `cpu`; `true` makes the caller the one who runs it.
    #[inline]
    pub(crate) fn claim(&self, cpu: CpuId) -> bool {
        if self.state.compare_exchange(PARKED, RUNNING, Ordering::Acquire, Ordering::Relaxed).is_err() {
            return false;
        }
        self.cpu.store(cpu.0, Ordering::Relaxed);
        true
    }

    /// Before its first run: take the reference it keeps to itself while it lives, which `release` gives up.
    #[inline]
    pub(crate) fn own(&self, reference: impl FnOnce() -> *const ()) {
        if self.itself.load(Ordering::Relaxed).is_null() {
            self.itself.store(reference().cast_mut(), Ordering::Relaxed);
        }
    }

    pub(crate) fn is_parked(&self) -> bool {
        self.state.load(Ordering::Acquire) == PARKED
    }

    pub(crate) fn last_cpu(&self) -> CpuId {
        CpuId(self.cpu.load(Ordering::Relaxed))
    }

    pub(crate) fn stack_bounds(&self) -> (u64, u64) {
        (self.stack_bottom, self.stack_top)
    }

    /// Saved instruction, stack and frame pointer, then RBX and R12 to R15, which the switch saved too; zeros for a
    /// thread whose stack pointer is not on its stack.
    pub(crate) fn resume_point(&self) -> ([u64; 3], [u64; 5]) {
        let sp = self.sp.load(Ordering::Acquire);
        if sp < self.stack_bottom || sp > self.stack_top - size_of::<Seed>() as u64 {
            return Default::default();
        }
        let mut seed = [0u8; size_of::<Seed>()];
        probe::read(sp, &mut seed);
        let word = |i: usize| u64::from_le_bytes(seed[i * 8..][..8].try_into().unwrap_or_default());
        let pointers = [word(6), sp + size_of::<Seed>() as u64, word(5)];
        (pointers, [word(4), word(3), word(2), word(1), word(0)])
    }

    /// Address of the user registers; `None` for a kernel thread.
    pub(crate) fn frame_address(&self) -> Option<u64> {
        (self.fpu_area != 0).then(|| self.fpu_area - size_of::<UserFrame>() as u64)
    }

    /// Exchange the address space of a thread that is running here or parked. Panics for any other.
    pub(crate) fn set_space(&self, space: Option<Arc<UserSpace>>) {
        let running = core::ptr::eq(running(local::here()), self);
        if running {
            let _off = crate::irq::off();
            // SAFETY: this running thread owns the new space from here on; the old one is dropped below.
            unsafe { space::switch_to(space.as_ref().map_or(null_mut(), |s| Arc::as_ptr(s).cast_mut())) };
        } else {
            let parked = self.state.compare_exchange(PARKED, BUSY, Ordering::Acquire, Ordering::Relaxed).is_ok();
            assert!(parked, "the address space of a thread running elsewhere cannot be exchanged");
        }
        let new = space.map_or(null_mut(), |s| Arc::into_raw(s).cast_mut());
        let old = self.space.swap(new, Ordering::Relaxed);
        if !running {
            self.state.store(PARKED, Ordering::Release);
        }
        // SAFETY: the slot owned a reference.
        unsafe { drop_space(old) };
    }
}

/// # Safety
/// `space` is null or a reference the caller owns.
unsafe fn drop_space(space: *mut UserSpace) {
    if !space.is_null() {
        // SAFETY: the caller's.
        drop(unsafe { Arc::from_raw(space) });
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        // SAFETY: the slot owned a reference.
        unsafe { drop_space(*self.space.get_mut()) };
    }
}

/// The thread that runs on a processor; null on its boot stack.
#[inline]
fn running(local: &local::Local) -> *mut Core {
    local.running.load(Ordering::Relaxed).cast()
}

/// Run the thread of `core` here. Returns when the running thread is resumed; for a dead or boot caller never.
///
/// # Safety
/// Interrupts are off; `core` was claimed for this processor and [owns itself](Core::own); `leave` is true of the
/// caller.
pub(crate) unsafe fn switch(core: *const Core, leave: Leave) {
    let local = local::here();
    let previous = running(local);
    let mut boot_sp = 0;
    let old_sp = if previous.is_null() {
        &raw mut boot_sp
    } else {
        // SAFETY: the running thread keeps itself alive.
        unsafe {
            save_user_state(&*previous, leave);
            (*previous).sp.as_ptr()
        }
    };
    local.switched_from.store(previous.cast(), Ordering::Relaxed);
    // SAFETY: the thread is ours to run and keeps itself alive; its stack is the one to use from here on.
    unsafe {
        load_user_state(local, &*core);
        switch_stacks(old_sp, (*core).sp.load(Ordering::Relaxed));
    }
    finish();
}

/// Keep what only the registers hold of the thread being left.
///
/// # Safety
/// `core` is running here.
unsafe fn save_user_state(core: &Core, leave: Leave) {
    stacks::check_canary(core.stack_bottom);
    core.leave.store(if leave == Leave::Dead { DEAD } else { PARKED }, Ordering::Relaxed);
    if core.fpu_area == 0 || leave == Leave::Dead {
        return;
    }
    // SAFETY: the area belongs to the thread whose state the registers hold.
    unsafe { fpu::save(core.fpu_area as *mut u8) };
    if features::has(Feature::FsGsBase) {
        let (fs, gs) = bases::user_bases();
        core.fs_base.store(fs, Ordering::Relaxed);
        core.gs_base.store(gs, Ordering::Relaxed);
    }
}

/// Make the processor the next thread's: bases, FPU, address space, stack for traps.
///
/// # Safety
/// `core` was claimed for this processor, interrupts are off.
unsafe fn load_user_state(local: &'static local::Local, core: &Core) {
    let this = core::ptr::from_ref(core).cast_mut();
    if core.fpu_area != 0 {
        bases::set_user_bases(core.fs_base.load(Ordering::Relaxed), core.gs_base.load(Ordering::Relaxed));
        let id = local.id.load(Ordering::Relaxed);
        let here = local.fpu_owner.load(Ordering::Relaxed).cast() == this && core.fpu_cpu.load(Ordering::Relaxed) == id;
        if !here {
            // SAFETY: the area holds the thread's saved, valid state.
            unsafe { fpu::load(core.fpu_area as *const u8) };
            local.fpu_owner.store(this.cast(), Ordering::Relaxed);
            core.fpu_cpu.store(id, Ordering::Relaxed);
        }
    }
    let space = core.space.load(Ordering::Relaxed);
    // SAFETY: the thread owns a reference to its space.
    unsafe { space::switch_to(space) };
    local.running.store(this.cast(), Ordering::Relaxed);
    local.stack_top.store(core.stack_top, Ordering::Relaxed);
    // SAFETY: this processor's segment, and the stack of the thread it is about to run.
    unsafe { local.tss.set_stack(core.stack_top) };
}

/// First thing on the new stack: the thread left is parked or dead now. Interrupts are off.
fn finish() {
    let local = local::here();
    let previous = local.switched_from.swap(null_mut(), Ordering::Relaxed).cast::<Core>();
    if previous.is_null() {
        return;
    }
    // SAFETY: it keeps itself alive until `release` below, and it cannot be resumed before the state is stored.
    let core = unsafe { &*previous };
    let leave = core.leave.load(Ordering::Relaxed);
    if leave != DEAD {
        core.state.store(leave, Ordering::Release);
        return;
    }
    // SAFETY: dead, and its stack left for good: the slot has no other users.
    drop(unsafe { (*core.stack.get()).take() });
    core.state.store(DEAD, Ordering::Release);
    let itself = core.itself.load(Ordering::Relaxed);
    // SAFETY: `itself` is the reference taken when it first ran.
    unsafe { (core.release)(itself) };
}

/// First call of a new thread.
extern "C" fn begin() {
    finish();
    local::here().work.store(1, Ordering::Relaxed);
}

/// The running user thread's FPU area, or `None` for a kernel thread.
pub(crate) fn running_fpu_area() -> Option<*mut u8> {
    // SAFETY: the running thread keeps itself alive.
    let core = unsafe { running(local::here()).as_ref() }?;
    (core.fpu_area != 0).then_some(core.fpu_area as *mut u8)
}

/// Remember new bases of the running thread, for a processor without FSGSBASE.
pub(crate) fn remember_bases(fs: u64, gs: u64) {
    let _off = crate::irq::off();
    // SAFETY: the running thread keeps itself alive.
    if let Some(core) = unsafe { running(local::here()).as_ref() } {
        core.fs_base.store(fs, Ordering::Relaxed);
        core.gs_base.store(gs, Ordering::Relaxed);
    }
    bases::set_user_bases(fs, gs);
}

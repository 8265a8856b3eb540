//! The crash stage: stacks of its own, entered without return by one processor at a time.
//!
//! [`enter`] leaves the stack it is called on and never comes back, so whatever failed there (an overflow, a lock held,
//! a half-done change) stays as it was. A second failure enters again, on the other of two stacks: the failure before
//! lives on the stack left, the one before that is past. So crashes may nest without end on bounded stacks, and what
//! the stage hands out may be handed out again each time: the code that had it before never resumes.

use core::arch::asm;
use core::cell::UnsafeCell;
use core::marker::PhantomData;
use core::mem::{MaybeUninit, offset_of};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::stacks::Stack;
use crate::frame::OutOfFrames;
use crate::percpu;
use crate::x86_64::cpu::{irq, local, regs};
use crate::x86_64::interrupts::nmi;

/// The processor that has the stage, plus 1; 0 while no processor has it.
static OWNER: AtomicU32 = AtomicU32::new(0);
static ENTRIES: AtomicU32 = AtomicU32::new(0);
/// Tops of the two stacks; 0 before [`prepare`].
static TOPS: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// Bytes of each buffer a [`Handler`] gets.
pub const BUFFER: usize = 64 * 1024;
/// Words of the table a [`Handler`] gets.
pub const WORDS: usize = 4096;

/// What a [`Handler`] works in.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Memory {
    /// What it collects.
    pub bytes: [u8; BUFFER],
    /// The same once it is packed.
    pub packed: [u8; BUFFER],
    /// What packing looks up.
    pub table: [u32; WORDS],
}

struct Buffer(UnsafeCell<Memory>);

// SAFETY: handed out only by `enter`, to the one owner; see there.
unsafe impl Sync for Buffer {}

static MEMORY: Buffer = Buffer(UnsafeCell::new(Memory { bytes: [0; BUFFER], packed: [0; BUFFER], table: [0; WORDS] }));

/// The proof that its holder is the only code that handles a crash.
#[derive(Clone, Copy)]
pub struct Stage {
    /// How many entered before: 0 for the first crash.
    pub depth: u32,
    _this_processor_only: PhantomData<*mut ()>,
}

/// What runs on the stage: it gets what went wrong, the stage, and memory that outlives any stack, which holds whatever
/// the entry before left in it.
pub type Handler<A> = fn(&A, Stage, &'static mut Memory) -> !;

/// Give the stage its stacks. Until then it runs on whatever stack it is entered from.
pub fn prepare() -> Result<(), OutOfFrames> {
    for top in &TOPS {
        let stack = Stack::new()?;
        top.store(stack.top(), Ordering::Release);
        // They live for ever.
        core::mem::forget(stack);
    }
    Ok(())
}

/// Whether this processor deals with a crash.
pub(crate) fn is_mine() -> bool {
    OWNER.load(Ordering::Acquire) == percpu::id().0 + 1
}

/// Become the one processor that deals with a crash, or learn that another one is.
pub(crate) fn claim() -> bool {
    let me = percpu::id().0 + 1;
    OWNER.compare_exchange(0, me, Ordering::AcqRel, Ordering::Acquire).map_or_else(|owner| owner == me, |_| true)
}

/// Tops of the stage's stacks.
pub(crate) fn tops() -> [u64; 2] {
    [0, 1].map(|which: usize| TOPS[which].load(Ordering::Relaxed))
}

struct Call<'a, A> {
    argument: &'a A,
    handle: Handler<A>,
    depth: u32,
}

/// Deal with a crash: `handle` runs on a stack of its own, interrupts off, and nothing on the present stack ever runs
/// again, so `argument` may lie on it. A processor that comes while another one is at it stops here, as if it had been
/// asked to.
///
/// The thread that runs cannot be switched away from any more: a lock is counted that is never released.
pub fn enter<A>(argument: &A, handle: Handler<A>) -> ! {
    irq::disable();
    local::lock_taken();
    if !claim() {
        nmi::stop(&regs::registers_here(), regs::control_here());
    }
    let depth = ENTRIES.fetch_add(1, Ordering::Relaxed);
    let call = Call { argument, handle, depth };
    let top = TOPS[depth as usize % 2].load(Ordering::Relaxed);
    if top == 0 {
        begin(&call);
    }
    // SAFETY: the stack is the stage's own: what was entered on it two entries before never runs again, and the entry
    // before, which `call` lies on, is on the other one. `begin` does not return.
    unsafe {
        asm!(
            "mov rsp, {top}",
            "xor ebp, ebp",
            "call {begin}",
            "ud2",
            top = in(reg) top,
            begin = in(reg) begin::<A> as extern "C" fn(&Call<'_, A>) -> !,
            in("rdi") &raw const call,
            options(noreturn),
        );
    }
}

extern "C" fn begin<A>(call: &Call<'_, A>) -> ! {
    // SAFETY: one processor owns the stage for good, the entry before this one never runs again (its processor is here,
    // its thread cannot be switched to, see `enter`), so this is the only reference in use.
    let memory = unsafe { &mut *MEMORY.0.get() };
    (call.handle)(call.argument, Stage { depth: call.depth, _this_processor_only: PhantomData }, memory)
}

/// A value that a crash in the middle of changing it leaves as it was before.
///
/// Two slots and which of them counts: a change fills the other one and then says so.
pub struct Committed<T> {
    slots: [UnsafeCell<MaybeUninit<T>>; 2],
    /// 0 nothing, else the slot plus 1.
    valid: AtomicU32,
}

// SAFETY: only the processor with the stage touches the slots: both methods want the stage itself.
unsafe impl<T: Copy + Send> Sync for Committed<T> {}

impl<T: Copy> Committed<T> {
    /// Where a reader of memory finds what: the number of the slot that counts plus 1, the slots, the size of one.
    pub const LAYOUT: [usize; 3] =
        [offset_of!(Self, valid), offset_of!(Self, slots), size_of::<UnsafeCell<MaybeUninit<T>>>()];

    /// A cell without a value; usable in a static.
    #[expect(clippy::new_without_default, reason = "only statics hold one, and those need `const`")]
    pub const fn new() -> Self {
        Self { slots: [const { UnsafeCell::new(MaybeUninit::uninit()) }; 2], valid: AtomicU32::new(0) }
    }

    /// Replaces the value by `value`. A crash before the end of the call leaves the former value in force.
    pub fn set(&self, _stage: &Stage, value: T) {
        let slot = if self.valid.load(Ordering::Relaxed) == 1 { 1 } else { 0 };
        // SAFETY: the slot that does not count; it has no readers, and an interrupted writer of it never resumes.
        unsafe { (*self.slots[slot].get()).write(value) };
        self.valid.store(slot as u32 + 1, Ordering::Release);
    }

    /// The value last remembered.
    pub fn get(&self, _stage: &Stage) -> Option<T> {
        let slot = (self.valid.load(Ordering::Acquire) as usize).checked_sub(1)?;
        // SAFETY: a slot counts only once it is written, and `set` writes the other one.
        Some(unsafe { (*self.slots[slot].get()).assume_init_read() })
    }
}

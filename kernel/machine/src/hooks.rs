//! The kernel as the machine calls it: the [`Kernel`] trait, and its methods as plain pointers for code that cannot be
//! generic. Both are made from one list.

use core::cell::UnsafeCell;
use core::panic::PanicInfo;

use crate::addr::FrameNumber;
use crate::note::Note;
use crate::processor::CpuId;
use crate::trap::{FatalTrap, Irq, PageFault, UserTrap};
use crate::x86_64::cpu::irq::halt_for_ever;
use crate::x86_64::cpu::regs::UserFrame;

/// Makes the trait and the table of pointers from the list of methods: those every kernel has, with what stands in for
/// each until the kernel is found, and those it may leave out, which do nothing.
macro_rules! kernel {
    (
        required: { $( $(#[$about:meta])* fn $name:ident($($arg:ident: $type:ty),*) $(-> $result:ty)? = $none:expr; )* }
        provided: { $( $(#[$about2:meta])* fn $name2:ident($($arg2:ident: $type2:ty),*); )* }
    ) => {
        /// The kernel, as the machine sees it. All methods may be called on any processor at any time after
        /// [`main`](Kernel::main) was entered, within what each one says.
        ///
        /// *Thread context*: on a thread's kernel stack, interrupts on, may switch. *Interrupt context*: interrupts
        /// off, must not switch (it panics); allocation works but takes the slow path.
        pub trait Kernel: Sized + Sync + 'static {
            /// What the kernel keeps per thread; wrapped in [`Thread`](crate::thread::Thread), which derefs to it.
            type Task: Send + Sync + 'static;

            /// Entered once, on the first processor, on the boot stack, interrupts off, one processor running. Frames
            /// may be claimed once this has told its allocator of the free memory in [`crate::boot::info`]; ends in
            /// [`Start::enter`](crate::Start::enter).
            fn main() -> !;

            /// A system call. Thread context. The result goes into `frame`. `args` are its second and third argument,
            /// which are in registers anyway: spared a load, where that counts.
            fn syscall(frame: &mut UserFrame, args: [u64; 2]);

            $( $(#[$about])* fn $name($($arg: $type),*) $(-> $result)?; )*

            $( $(#[$about2])* fn $name2($($arg2: $type2),*) {
                $( let _ = $arg2; )*
            } )*
        }

        /// One pointer per method of [`Kernel`]. The system call's comes first: `entry` calls it.
        #[repr(C)]
        pub(crate) struct Hooks {
            pub syscall: extern "C" fn(&mut UserFrame, u64, u64),
            $( pub $name: fn($($type),*) $(-> $result)?, )*
            $( pub $name2: fn($($type2),*), )*
        }

        impl Hooks {
            /// Until the kernel is found: nothing to allocate, and any trap stops the processor.
            pub(crate) const NONE: Self = Self {
                syscall: no_syscall,
                $( $name: $none, )*
                $( $name2: |$( $arg2: $type2 ),*| { $( let _ = $arg2; )* }, )*
            };

            /// Those of a kernel.
            pub(crate) fn of<K: Kernel>() -> Self {
                Self { syscall: syscall::<K>, $( $name: K::$name, )* $( $name2: K::$name2, )* }
            }
        }
    };
}

kernel! {
    required: {
        /// Entered once per further processor, interrupts off, on its idle stack; ends in
        /// [`Start::enter`](crate::Start::enter).
        fn ap_main(cpu: CpuId) -> ! = |_| halt_for_ever();

        /// An exception in user mode that is the program's doing, including unresolved page faults. Thread context.
        fn user_trap(frame: &mut UserFrame, trap: UserTrap) = |_, _| {};

        /// A page fault in user mode: map something and return `true` to retry, or `false` to get
        /// [`UserTrap::Page`]. Thread context.
        fn user_fault(fault: &PageFault) -> bool = |_| false;

        /// A page fault on a user address inside one of the copies of [`crate::user`]. `true` retries; `false` makes
        /// the copy return its error. Thread context; not called while this processor holds a spin lock (the copy fails
        /// instead).
        fn copy_fault(fault: &PageFault) -> bool = |_| false;

        /// Called on the way back to user mode when [`crate::cpu::request_work`] was called for this processor
        /// (signals, rescheduling), and always before a new user thread's first instruction. Thread context. The
        /// request is already cleared; it is called again until nothing is requested.
        fn return_work(frame: &mut UserFrame) = |_| {};

        /// This processor's one-shot timer expired. Interrupt context.
        fn timer() = || {};

        /// A device interrupt. Interrupt context.
        fn interrupt(irq: Irq) = |_| {};

        /// A kernel-mode exception, a non-maskable interrupt or a machine check. Never returns. Interrupts off, on
        /// whichever stack the exception has (double faults have their own).
        fn fatal(trap: &FatalTrap) -> ! = |_| halt_for_ever();

        /// A Rust panic.
        fn panic(info: &PanicInfo<'_>) -> ! = |_| halt_for_ever();

        /// Fill `out` with free single frames, return how many (0: out of memory). Any context.
        fn take_frames(out: &mut [FrameNumber]) -> usize = |_| 0;

        /// Single frames without references. Any context.
        fn give_frames(frames: &[FrameNumber]) = |_| {};

        /// A free block of `2^order` frames aligned to its size. Any context.
        fn take_block(order: u8) -> Option<FrameNumber> = |_| None;

        /// A block without references. Any context.
        fn give_block(first: FrameNumber, order: u8) = |_, _| {};
    }
    provided: {
        /// Another processor called [`crate::cpu::kick`], or a call was queued, while this one was in the kernel or
        /// idle. Interrupt context. The work request is already set; most kernels do nothing here.
        fn kicked();

        /// The machine did something a recorder should know. Any context; must not lock, allocate or switch.
        fn note(note: &Note);
    }
}

extern "C" fn no_syscall(_: &mut UserFrame, _: u64, _: u64) {}

extern "C" fn syscall<K: Kernel>(frame: &mut UserFrame, second: u64, third: u64) {
    K::syscall(frame, [second, third]);
}

/// Where the pointers are.
#[repr(transparent)]
pub(crate) struct SharedHooks(UnsafeCell<Hooks>);

// SAFETY: written by `set` alone, before a second processor runs.
unsafe impl Sync for SharedHooks {}

pub(crate) static HOOKS: SharedHooks = SharedHooks(UnsafeCell::new(Hooks::NONE));

/// Fill them in.
///
/// # Safety
/// One processor runs, interrupts are off, and no method is being called.
pub(crate) unsafe fn set(hooks: Hooks) {
    // SAFETY: the caller's.
    unsafe { *HOOKS.0.get() = hooks };
}

/// The kernel's methods.
#[inline]
pub(crate) fn hooks() -> &'static Hooks {
    // SAFETY: see `SharedHooks`.
    unsafe { &*HOOKS.0.get() }
}

//! Which functions of this workspace's kernel keep a promise that a dump shows broken.
//!
//! A symptom far from its cause (a sleeper that nothing woke) names a mechanism, and a mechanism has few functions. The
//! table lists them in the order in which they act, so that a reader knows where to begin. It says nothing about other
//! kernels. `cargo xtask test kernel-names` compares it with the kernel's image.

use super::blame;
use super::context::Context;
use super::evidence::{ListedFunction, Statement};
use super::quote::text;

/// Something that the kernel does for its threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// A parent that waits learns of its child's end.
    Child,
    /// A parent in vfork goes on once its child has left the memory.
    Vfork,
    /// A sleep with a deadline ends.
    Deadline,
    /// A thread with a signal to take wakes up.
    Signal,
    /// A woken thread becomes runnable.
    Woken,
    /// A runnable thread runs.
    Runnable,
    /// Another processor answers an interrupt.
    Answer,
    /// A page fault ends in a mapped page or a signal.
    Fault,
    /// A page of shared memory exists as soon as it is touched.
    Shared,
    /// A request for memory is granted while frames are free.
    Frames,
    /// An interrupt that was taken ends.
    Interrupt,
    /// Init is sent to user mode with a program.
    Program,
    /// FUTEX_WAKE wakes those that sleep on its word.
    Futex,
    /// A mutex that is given back goes to a thread that waits for it.
    Mutex,
}

/// The functions that keep each promise, in the order in which they act.
pub const KEEPERS: &[(Promise, &[&str])] = &[
    (
        Promise::Child,
        &["kernel::task::exit::notify_parent", "kernel::task::exit::tell_of_child", "kernel::task::wait::scan"],
    ),
    (
        Promise::Vfork,
        &["kernel::task::exec::become_program", "kernel::task::exit::exit_thread", "kernel::task::Task::finish_vfork"],
    ),
    (
        Promise::Deadline,
        &[
            "kernel::sched::arm_by",
            "machine::time::arm",
            "machine::time::expired",
            "kernel::sched::on_timer",
            "kernel::sched::timer::expire",
            "kernel::sched::wake",
        ],
    ),
    (Promise::Signal, &["kernel::task::signal::tell", "kernel::sched::notify", "kernel::sched::wake_from"]),
    (Promise::Woken, &["kernel::sched::wake_from", "kernel::sched::placement::enqueue", "kernel::sched::pick"]),
    (
        Promise::Runnable,
        &[
            "kernel::sched::placement::enqueue_on",
            "machine::x86_64::interrupts::ipi::interrupt",
            "machine::x86_64::interrupts::call::kicked",
            "kernel::sched::idle::run_idle",
            "kernel::sched::pick",
        ],
    ),
    (
        Promise::Answer,
        &[
            "machine::x86_64::interrupts::ipi::interrupt",
            "machine::x86_64::interrupts::call::kicked",
            "machine::x86_64::interrupts::tlb::serve",
            "machine::x86_64::interrupts::call::serve_call",
        ],
    ),
    (
        Promise::Fault,
        &[
            "kernel::trap::page_fault",
            "kernel::task::memory::resolve",
            "kernel_logic::fault::decide",
            "kernel::mm::fault::<impl kernel::mm::AddressSpace>::apply",
            "kernel::<impl machine::hooks::Kernel for kernel::upper::Kwab>::user_trap",
            "kernel::trap::user",
        ],
    ),
    (
        Promise::Shared,
        &["kernel_logic::fault::decide", "kernel::mm::fault::file_page", "kernel::mm::shared::SharedMemory::page"],
    ),
    (
        Promise::Frames,
        &[
            "kernel::mm::frames::take",
            "kernel::mm::frames::take_block",
            "machine::frame::magazine::take",
            "machine::frame::meta::claim",
            "machine::frame::meta::claim_block",
        ],
    ),
    (
        Promise::Interrupt,
        &["machine::x86_64::entry::trap::dispatch", "machine::x86_64::interrupts::apic::end_of_interrupt"],
    ),
    (
        Promise::Program,
        &[
            "kernel::boot::become_init",
            "kernel::boot::run_init",
            "kernel::boot::try_init",
            "kernel::task::exec::exec",
            "kernel::task::exec::become_program",
        ],
    ),
    (
        Promise::Futex,
        &[
            "kernel::futex::key::key",
            "kernel::futex::queue_if",
            "kernel_logic::waiters::Waiters<K,T>::push",
            "kernel::futex::wake",
            "kernel::futex::take",
            "kernel_logic::waiters::Waiters<K,T>::next",
            "kernel_logic::waiters::Waiters<K,T>::remove",
            "kernel::futex::wake_all",
        ],
    ),
    (
        Promise::Mutex,
        &[
            "machine::claim::Claim<T,P>::take_contended",
            "kernel::sync::mutex::Mutex<T>::wait",
            "<kernel::sync::mutex::Parked as machine::claim::Parking>::released",
            "<kernel::sync::mutex::Parked as machine::claim::Parking>::hand_over",
            "kernel::sync::mutex::wake_first",
            "machine::claim::Claimed<T,P>::give_over",
        ],
    ),
];

/// The functions that turn an exception into a signal and call the program's handler.
pub const HANDLER: &[&str] =
    &["kernel::trap::user", "kernel::task::signal::deliver::deliver", "kernel::task::signal::frame::push"];
/// The way of every system call to its handler and back.
pub const DOOR: &[&str] = &[
    "syscall_entry",
    "machine::x86_64::cpu::regs::UserFrame::args",
    "kernel::syscalls::dispatch",
    "kernel::syscalls::recorded",
    "machine::x86_64::cpu::regs::UserFrame::set_result",
];
/// The table of handlers by the number of the system call.
pub const TABLE: &str = "kernel::syscalls::TABLE";
/// The stubs by which exceptions and interrupts enter the kernel, one per vector.
pub const STUBS: &str = "trap_stubs";
/// Functions that wait until other processors have answered an interrupt.
pub const ASKS: &[&str] = &["machine::x86_64::interrupts::tlb::ask", "machine::x86_64::interrupts::call::call"];

/// The function that finds the files which the kernel itself makes.
pub const LOOKUP: &str = "<kernel::procfs::node::ProcNode as kernel::fs::inode::Inode>::lookup";
/// Files that every process has (proc(5)).
const OWN_FILES: &[&str] = &[
    "cmdline", "comm", "cwd", "environ", "exe", "fd", "limits", "maps", "mem", "mounts", "root", "smaps", "stat",
    "statm", "status", "task",
];

/// Whether a path names a file that the kernel makes for every process, as `/proc/self/maps`.
pub(super) fn makes(path: &[u8]) -> bool {
    let name = path.strip_prefix(b"/proc/self/").map(String::from_utf8_lossy);
    name.is_some_and(|name| OWN_FILES.contains(&name.split('/').next().unwrap_or_default()))
}

/// Every name of the kernel that rules look for or name.
pub fn names() -> impl Iterator<Item = &'static str> {
    let kept = KEEPERS.iter().flat_map(|(_, functions)| functions.iter().copied());
    kept.chain(ASKS.iter().chain(HANDLER).chain(DOOR).copied()).chain([TABLE, STUBS, LOOKUP])
}

/// The functions that keep a promise; `None` when the dump is not of this workspace's kernel.
pub(super) fn in_words(ctx: &Context<'_, '_>, promise: Promise) -> Option<Statement> {
    let (_, functions) = KEEPERS.iter().find(|(kept, _)| *kept == promise).filter(|_| is_ours(ctx))?;
    let functions = functions.iter().map(|name| ListedFunction::plain(*name)).collect();
    Statement::listing("functions responsible, in the order in which they act", functions)
}

/// Whether the dump is of this workspace's kernel: it says so, or a function on the stack does.
pub(super) fn is_ours(ctx: &Context<'_, '_>) -> bool {
    let says = |identity: &kwab_format::record::Identity<'_>| {
        text(identity.kernel_name) == "kwab" || text(identity.kernel_version).contains("kwab")
    };
    let names = || ctx.trace.iter().flat_map(blame::functions);
    ctx.case.identities.first().is_some_and(|identity| says(identity))
        || names().any(|function| function.name.starts_with("machine::x86_64::"))
}

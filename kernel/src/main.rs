//! The kernel proper: a Linux-compatible kernel built to be diagnosed.
//!
//! The machine (crate `machine`, the only crate with `unsafe`) calls up through [`Kwab`]; everything else is ordinary
//! safe code. Map: [`boot`] brings the system to its first program; [`task`] knows threads, processes and signals,
//! [`sched`] runs them, [`mm`] gives them memory, [`syscalls`] answers them; [`fs`], [`ipc`] and [`tty`] are files of
//! all kinds; [`trace`] records it all and [`crash`] dumps what dies. Imports point downwards (`ARCHITECTURE.md`); what
//! a lower layer needs of an upper one is implemented here.
#![no_std]
#![no_main]
#![allow(unreachable_pub, reason = "a binary exports nothing: `pub` says that other modules use it")]

extern crate alloc;

use alloc::sync::Arc;
use core::panic::PanicInfo;

use linux_abi::Errno;
use machine::Kernel;
use machine::addr::FrameNumber;
use machine::arch::UserFrame;
use machine::cpu::CpuId;
use machine::irq::Irq;
use machine::note::Note;
use machine::trap::{FatalTrap, PageFault, UserTrap};

use fs::file::FileOps;
use upper::Kwab;

mod boot;
mod crash;
mod fs;
mod futex;
mod inject;
mod ipc;
mod log;
mod mm;
mod options;
mod patience;
mod procfs;
mod random;
mod sched;
mod sync;
mod syscalls;
mod task;
mod time;
mod trace;
mod trap;
mod tty;
mod upper;
mod user;
mod uts;

impl task::Above for Kwab {
    type Terminal = tty::Tty;

    fn release_futexes(thread: &task::Thread, exec: bool) {
        futex::release(thread, exec);
    }

    fn renumber(old: task::Tid, new: task::Tid) {
        futex::renumber(old, new);
    }

    fn leader_ended(terminal: &Arc<tty::Tty>, session: &task::Session) {
        tty::leader_ended(terminal, session);
    }

    fn pages_in_flight(user: u32) -> u64 {
        ipc::unix::pages_in_flight(user)
    }
}

impl mm::Above for Kwab {
    type Mapped = fs::MappedFile;
    type Executable = fs::File;
}

impl fs::Observers for Kwab {
    type Fasync = task::fasync::Fasync;
    type Epoll = ipc::epoll::Epoll;
}

impl fs::Above for Kwab {
    type Fifo = ipc::pipe::Fifo;

    fn open_terminal(node: &fs::inode::DeviceNode<'_>, flags: u32) -> Result<Arc<dyn FileOps>, Errno> {
        tty::open(node, flags)
    }

    fn file_too_large() {
        task::exceed::file_too_large();
    }
}

impl sched::Deferred for Kwab {
    fn console_input() {
        tty::console_input();
    }
}

impl Kernel for Kwab {
    type Task = task::Task;

    fn main() -> ! {
        boot::main(&machine::boot::info())
    }

    fn ap_main(cpu: CpuId) -> ! {
        boot::ap_main(cpu)
    }

    #[inline]
    fn syscall(frame: &mut UserFrame, args: [u64; 2]) {
        syscalls::dispatch(frame, args);
    }

    fn user_trap(frame: &mut UserFrame, trap: UserTrap) {
        trap::user(frame, &trap);
    }

    fn user_fault(fault: &PageFault) -> bool {
        trap::page_fault(fault)
    }

    fn copy_fault(fault: &PageFault) -> bool {
        trap::page_fault(fault)
    }

    fn return_work(frame: &mut UserFrame) {
        trap::before_user(frame);
    }

    fn timer() {
        trace::flight::timer();
        let _span = trace::span::span(trace::span::Id::TimerInterrupt);
        crash::watchdog::tick(sched::on_timer());
    }

    fn interrupt(irq: Irq) {
        trace::flight::interrupt(match irq {
            Irq::Console => 1,
            Irq::Line(line) => 16 + u64::from(line),
        });
        if irq == Irq::Console {
            sched::on_console();
        }
    }

    #[inline]
    fn note(note: &Note) {
        trace::flight::machine(note);
    }

    fn fatal(trap: &FatalTrap) -> ! {
        crash::panic::on_fatal(trap)
    }

    fn panic(info: &PanicInfo<'_>) -> ! {
        crash::panic::on_panic(info)
    }

    fn take_frames(out: &mut [FrameNumber]) -> usize {
        mm::frames::take(out)
    }

    fn give_frames(frames: &[FrameNumber]) {
        mm::frames::give(frames);
    }

    fn take_block(order: u8) -> Option<FrameNumber> {
        mm::frames::take_block(order)
    }

    fn give_block(first: FrameNumber, order: u8) {
        mm::frames::give_block(first, order);
    }
}

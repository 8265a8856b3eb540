//! The kernel proper: a Linux-compatible kernel built to be diagnosed.
//!
//! The machine (crate `machine`, the only place with `unsafe`) calls up through [`Kwab`]; everything else is ordinary safe
//! code. Map: [`boot`] brings the system to its first program; [`task`] knows threads and processes, [`sched`] runs them,
//! [`signal`] interrupts them, [`mm`] gives them memory, [`syscalls`] answers them; [`fs`], [`ipc`] and [`tty`] are files of all
//! kinds; [`time`] and [`futex`] let them wait; [`debug`] watches it all.
#![no_std]
#![no_main]
#![allow(unreachable_pub, reason = "a binary has no outside: `pub` says that other modules use it")]

extern crate alloc;

use core::panic::PanicInfo;

use machine::addr::FrameNumber;
use machine::arch::UserFrame;
use machine::cpu::CpuId;
use machine::irq::Irq;
use machine::note::Note;
use machine::trap::{FatalTrap, PageFault, UserTrap};
use machine::{Kernel, Start};

mod boot;
mod debug;
mod fs;
mod futex;
mod ipc;
mod log;
mod mm;
mod options;
mod random;
mod sched;
mod signal;
mod sync;
mod syscalls;
mod task;
mod time;
mod trap;
mod tty;
mod user;

#[global_allocator]
static START: Start<Kwab> = Start::new();

/// This kernel, as the machine sees it.
struct Kwab;

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
        debug::flight::interrupt(0);
        let _span = debug::span::span(debug::span::Id::TimerInterrupt);
        sched::on_timer();
    }

    fn interrupt(irq: Irq) {
        debug::flight::interrupt(match irq {
            Irq::Console => 1,
            Irq::Line(line) => 16 + u64::from(line),
        });
        if irq == Irq::Console {
            sched::on_console();
        }
    }

    #[inline]
    fn note(note: &Note) {
        debug::flight::machine(note);
    }

    fn fatal(trap: &FatalTrap) -> ! {
        debug::panic::on_fatal(trap)
    }

    fn panic(info: &PanicInfo<'_>) -> ! {
        debug::panic::on_panic(info)
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

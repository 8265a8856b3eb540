//! The machine's bootable tests: a second kernel, as small as can be, that boots, runs the one test named by
//! `test=NAME` on its command line, prints what it sees and leaves QEMU.
//!
//! What a test prints is compared with `expected/NAME.txt`: every line there must begin a line of the output, in order.
//! Build it with `cargo build -p kernel --bin selftest --features selftest --profile kernel --target
//! x86_64-unknown-none`; `expected/LIST.txt` names the tests, the number of processors each wants, and QEMU's exit
//! status (with `-device isa-debug-exit,iobase=0xf4`).
#![no_std]
#![no_main]

extern crate alloc;

mod frames;
mod program;
mod tests;

use core::panic::PanicInfo;

use machine::addr::FrameNumber;
use machine::arch::UserFrame;
use machine::cpu::CpuId;
use machine::irq::Irq;
use machine::trap::{FatalTrap, PageFault, UserTrap};
use machine::{Kernel, Start, power};

#[global_allocator]
static START: Start<Tiny> = Start::new();

/// Print a line on the console.
macro_rules! say {
    ($($arg:tt)*) => {{
        use core::fmt::Write;
        let _ = writeln!(machine::console::Writer, $($arg)*);
    }};
}
pub(crate) use say;

/// The smallest kernel that can run programs.
struct Tiny;

impl Kernel for Tiny {
    type Task = program::Task;

    fn main() -> ! {
        let boot = machine::boot::info();
        frames::init(&boot);
        let line = core::str::from_utf8(boot.command_line).unwrap_or("");
        let name = line.split(' ').find_map(|word| word.strip_prefix("test=")).unwrap_or("");
        tests::run(name)
    }

    fn ap_main(cpu: CpuId) -> ! {
        tests::other_processor(cpu)
    }

    fn syscall(frame: &mut UserFrame, _: [u64; 2]) {
        program::syscall(frame);
    }

    fn user_trap(frame: &mut UserFrame, trap: UserTrap) {
        program::trap(frame, trap);
    }

    fn user_fault(fault: &PageFault) -> bool {
        program::fault(fault)
    }

    fn copy_fault(fault: &PageFault) -> bool {
        program::fault(fault)
    }

    fn return_work(_frame: &mut UserFrame) {
        program::yield_now();
    }

    fn timer() {
        tests::timer();
    }

    fn interrupt(_irq: Irq) {}

    fn fatal(trap: &FatalTrap) -> ! {
        tests::fatal(trap)
    }

    fn panic(info: &PanicInfo<'_>) -> ! {
        if tests::guards::PANIC_WANTED.load(core::sync::atomic::Ordering::Relaxed) {
            say!("caught {}", info.message());
            leave(1)
        }
        say!("PANIC {info}");
        leave(1)
    }

    fn take_frames(out: &mut [FrameNumber]) -> usize {
        frames::take(out)
    }

    fn give_frames(frames: &[FrameNumber]) {
        frames::give(frames);
    }

    fn take_block(order: u8) -> Option<FrameNumber> {
        frames::take_block(order)
    }

    fn give_block(first: FrameNumber, order: u8) {
        frames::give_block(first, order);
    }
}

/// End the run.
fn leave(code: u8) -> ! {
    power::debug_exit(code);
    power::off()
}

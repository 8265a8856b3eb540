//! The kernel proper: what the machine calls up for.
#![no_std]
#![no_main]

extern crate alloc;

use core::fmt::Write;
use core::panic::PanicInfo;

use machine::addr::FrameNumber;
use machine::arch::UserFrame;
use machine::boot::BootInfo;
use machine::console::Writer;
use machine::cpu::CpuId;
use machine::irq::Irq;
use machine::sync::SpinLock;
use machine::trap::{FatalTrap, PageFault, UserTrap};
use machine::{Kernel, Start};

#[global_allocator]
static START: Start<Bare> = Start::new();

struct Bare;

static NEXT: SpinLock<(u32, u32)> = SpinLock::new((0, 0));

impl Kernel for Bare {
    type Task = ();

    fn main(boot: BootInfo) -> ! {
        let _ = writeln!(Writer, "hello {:#?}", boot.free);
        let _ = writeln!(Writer, "cmdline {:?}", core::str::from_utf8(boot.command_line));
        let biggest = boot.free.iter().max_by_key(|r| r.frames()).copied().unwrap_or_default();
        *NEXT.lock() = (biggest.start.0, biggest.end.0);
        let v: alloc::vec::Vec<u32> = (0..100_000).collect();
        let _ = writeln!(Writer, "sum {}", v.iter().sum::<u32>());
        machine::power::debug_exit(0);
        machine::power::halt()
    }
    fn ap_main(_cpu: CpuId) -> ! {
        machine::power::halt()
    }
    fn syscall(_frame: &mut UserFrame) {}
    fn user_trap(_frame: &mut UserFrame, _trap: UserTrap) {}
    fn user_fault(_fault: &PageFault) -> bool {
        false
    }
    fn copy_fault(_fault: &PageFault) -> bool {
        false
    }
    fn return_work(_frame: &mut UserFrame) {}
    fn timer() {}
    fn interrupt(_irq: Irq) {}
    fn fatal(trap: &FatalTrap) -> ! {
        let _ = writeln!(Writer, "{trap:#x?}");
        machine::power::debug_exit(1);
        machine::power::halt()
    }
    fn panic(info: &PanicInfo<'_>) -> ! {
        let _ = writeln!(Writer, "{info}");
        machine::power::debug_exit(1);
        machine::power::halt()
    }
    fn take_frames(out: &mut [FrameNumber]) -> usize {
        let mut next = NEXT.lock_irq();
        let mut n = 0;
        for slot in out {
            if next.0 < next.1 {
                *slot = FrameNumber(next.0);
                next.0 += 1;
                n += 1;
            }
        }
        n
    }
    fn give_frames(_frames: &[FrameNumber]) {}
    fn take_block(order: u8) -> Option<FrameNumber> {
        let mut next = NEXT.lock_irq();
        let at = next.0.next_multiple_of(1 << order);
        next.0 = at + (1 << order);
        (next.0 <= next.1).then_some(FrameNumber(at))
    }
    fn give_block(_first: FrameNumber, _order: u8) {}
}

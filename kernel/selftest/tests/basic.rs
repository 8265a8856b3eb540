//! Boot information, the way into user mode and back, traps, the timer.

use core::sync::atomic::Ordering;

use machine::{boot, time};

use super::TIMER_COUNT;
use crate::program::{self, DATA, LAZY};
use crate::say;

/// What the loader said is plausible and consistent.
pub(super) fn boot() {
    let info = boot::info();
    let ram: usize = info.ram.iter().map(boot::FrameRange::frames).sum();
    let free: usize = info.free.iter().map(boot::FrameRange::frames).sum();
    say!("platform {} processors {}", info.platform, info.cpus);
    assert!(free < ram && ram - free < 4096, "{free} free of {ram} frames");
    let image = boot::kernel_image();
    let taken = |n| !info.free.iter().any(|r| (r.start..r.end).contains(&n));
    assert!((image.start.0..image.end.0).all(|n| taken(machine::addr::FrameNumber(n))), "the image is free memory");
    assert_eq!(boot::build_id().len(), 20);
    let wall = time::wall_at_boot() / 1_000_000_000;
    assert!((1_600_000_000..4_000_000_000).contains(&wall), "the clock says {wall}");
    say!("command line {:?}", core::str::from_utf8(info.command_line).unwrap_or("?"));
}

/// A program calls, gets its results, and every register it did not give away survives.
pub(super) fn syscall() {
    // rbx = 0x1234; call 3 (nothing); rdi = rax + rbx; call 0 (say); call 1 (yield); rdi = rbx; call 2 (exit)
    let code = [
        0x48, 0xc7, 0xc3, 0x34, 0x12, 0, 0, // mov rbx, 0x1234
        0xb8, 3, 0, 0, 0, 0x0f, 0x05, // mov eax, 3; syscall
        0x48, 0x8d, 0x3c, 0x18, // lea rdi, [rax + rbx]
        0x31, 0xc0, 0x0f, 0x05, // xor eax, eax; syscall
        0xb8, 1, 0, 0, 0, 0x0f, 0x05, // mov eax, 1; syscall
        0x48, 0x89, 0xdf, // mov rdi, rbx
        0xb8, 2, 0, 0, 0, 0x0f, 0x05, // mov eax, 2; syscall
    ];
    let space = program::space(&code);
    let thread = program::spawn("program", &space, 0);
    let watch = alloc::sync::Arc::downgrade(&thread);
    program::ready(thread);
    super::run_others(|| watch.upgrade().is_none());
}

/// Each exception a program can cause arrives under its name, and the kernel survives.
pub(super) fn traps() {
    let programs: &[(&str, &[u8])] = &[
        ("divide", &[0x31, 0xd2, 0x31, 0xc9, 0xf7, 0xf1]),
        ("breakpoint", &[0xcc]),
        ("invalid", &[0x0f, 0x0b]),
        ("privileged", &[0xf4]),
        ("null", &[0x31, 0xc0, 0x8a, 0x00]),
        ("write to code", &[0xc6, 0x05, 0xf9, 0xff, 0xff, 0xff, 0x00]),
        ("execute data", &[0xb8, (DATA & 0xff) as u8, (DATA >> 8) as u8, (DATA >> 16) as u8, 0, 0xff, 0xe0]),
        ("kernel address", &[0x48, 0xc7, 0xc0, 0, 0, 0, 0x80, 0x8a, 0x00]),
        ("not canonical", &[0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0x40, 0x8a, 0x00]),
        ("single step", &[0x9c, 0x81, 0x0c, 0x24, 0, 1, 0, 0, 0x9d, 0x90]),
        ("lazy", &[0xb8, 0, 0, 0, LAZY_TOP, 0x8a, 0x08, 0x31, 0xc0, 0x89, 0xcf, 0x0f, 0x05, 0x0f, 0x0b]),
    ];
    for (name, code) in programs {
        let thread = program::spawn(name, &program::space(code), 0);
        let watch = alloc::sync::Arc::downgrade(&thread);
        program::ready(thread);
        super::run_others(|| watch.upgrade().is_none());
    }
}

const LAZY_TOP: u8 = (LAZY.start >> 24) as u8;

/// The timer expires once, not early, and within reason not late; time agrees with itself.
pub(super) fn timer() {
    let params = time::params();
    assert!(params.hz > 100_000_000, "{} Hz", params.hz);
    for wait in [100_000, 1_000_000, 20_000_000] {
        let (seen, begin) = (TIMER_COUNT.load(Ordering::Relaxed), time::now());
        time::arm(begin + wait);
        while TIMER_COUNT.load(Ordering::Relaxed) == seen {
            machine::cpu::idle();
        }
        let took = time::now() - begin;
        assert!(took >= wait, "{took} ns instead of {wait}");
        // An emulator on a busy host may be late, never by half a second.
        assert!(took < wait + 500_000_000, "{took} ns instead of {wait}");
        say!("timer {wait} ns");
    }
    let seen = TIMER_COUNT.load(Ordering::Relaxed);
    time::arm(time::now() + 1_000_000);
    time::disarm();
    let end = time::now() + 5_000_000;
    while time::now() < end {
        core::hint::spin_loop();
    }
    assert_eq!(TIMER_COUNT.load(Ordering::Relaxed), seen, "a disarmed timer expired");
}

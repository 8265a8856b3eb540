//! Switching between kernel threads and between programs; the FPU state that goes with them.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU32, Ordering};

use machine::thread::NotParked;

use crate::program;
use crate::{START, frames, say};

static TURNS: AtomicU32 = AtomicU32::new(0);

fn worker() -> ! {
    for _ in 0..100 {
        TURNS.fetch_add(1, Ordering::Relaxed);
        program::yield_now();
    }
    program::exit()
}

/// Threads take turns, end, and leave nothing behind.
pub(super) fn switch() {
    let me = START.current().to_arc();
    assert_eq!(START.switch_to(&me), Ok(()), "to oneself");
    assert!(!me.is_parked());
    let round = |threads: usize| {
        let watches: alloc::vec::Vec<_> = (0..threads)
            .map(|_| {
                let thread = program::spawn_kernel("worker", worker);
                let watch = Arc::downgrade(&thread);
                assert!(thread.is_parked());
                program::ready(thread);
                watch
            })
            .collect();
        super::run_others(|| watches.iter().all(|w| w.upgrade().is_none()));
    };
    round(8);
    let before = frames::count();
    for _ in 0..20 {
        round(8);
    }
    say!("turns {}", TURNS.load(Ordering::Relaxed));
    assert_eq!(frames::count(), before, "frames are lost");
    round(150);
    round(1);
    say!("many threads end");
    let dead = program::spawn_kernel("worker", worker);
    program::ready(dead.clone());
    super::run_others(|| Arc::strong_count(&dead) == 1);
    assert_eq!(START.switch_to(&dead), Err(NotParked), "the dead walk");
}

/// Two programs keep different values in vector registers over many turns, one in the kernel's own copies in between.
pub(super) fn fpu() {
    // movq xmm7, rdi; movq xmm0, rdi; mov ecx/rbx = 200; loop: yield; movq rax, xmm7; cmp rax, r12; jne bad; movq rax,
    // xmm0 ...
    let code = [
        0x49, 0x89, 0xfc, // mov r12, rdi
        0x66, 0x48, 0x0f, 0x6e, 0xff, // movq xmm7, rdi
        0x66, 0x48, 0x0f, 0x6e, 0xc7, // movq xmm0, rdi
        0xbb, 200, 0, 0, 0, // mov ebx, 200
        0xb8, 1, 0, 0, 0, 0x0f, 0x05, // loop: mov eax, 1; syscall
        0x66, 0x48, 0x0f, 0x7e, 0xf8, // movq rax, xmm7
        0x4c, 0x39, 0xe0, 0x75, 0x1d, // cmp rax, r12; jne bad
        0x66, 0x48, 0x0f, 0x7e, 0xc0, // movq rax, xmm0
        0x4c, 0x39, 0xe0, 0x75, 0x13, // cmp rax, r12; jne bad
        0xff, 0xcb, 0x75, 0xe1, // dec ebx; jnz loop
        0x4c, 0x89, 0xe7, // mov rdi, r12
        0x31, 0xc0, 0x0f, 0x05, // xor eax, eax; syscall (say)
        0xb8, 2, 0, 0, 0, 0x0f, 0x05, // mov eax, 2; syscall (exit)
        0x90, // nop
        0x0f, 0x0b, // bad: ud2
    ];
    let space = program::space(&code);
    let other = program::space(&code);
    let watches =
        [("one", &space, 0x1111), ("two", &other, 0x2222), ("three", &space, 0x3333)].map(|(name, space, value)| {
            let thread = program::spawn(name, space, value);
            let watch = Arc::downgrade(&thread);
            program::ready(thread);
            watch
        });
    super::run_others(|| {
        // Page copies and zeroing use vector registers; they must put them back.
        let _ = machine::frame::Frame::alloc_zeroed();
        watches.iter().all(|w| w.upgrade().is_none())
    });
    // movq xmm0, rdi; mov eax, 4; syscall; movq rdi, xmm0; say; exit
    let exchange = [
        0x66, 0x48, 0x0f, 0x6e, 0xc7, 0xb8, 4, 0, 0, 0, 0x0f, 0x05, 0x66, 0x48, 0x0f, 0x7e, 0xc7, 0x31, 0xc0, 0x0f,
        0x05, 0xb8, 2, 0, 0, 0, 0x0f, 0x05,
    ];
    let thread = program::spawn("signal", &program::space(&exchange), 0x4444);
    let watch = Arc::downgrade(&thread);
    program::ready(thread);
    super::run_others(|| watch.upgrade().is_none());
}

//! What the hot paths cost. Under `-icount shift=0` one instruction is one nanosecond, so the figures are instruction
//! counts; the expected output names only the lines, since the figures are for reading.

use alloc::boxed::Box;
use alloc::sync::Arc;

use machine::addr::{PAGE_SIZE, PageRange, UserAddr};
use machine::frame::Frame;
use machine::space::{ForkMode, UserSpace};
use machine::sync::SpinLock;
use machine::{cpu, time, user};

use crate::program::{self, DATA, LAZY, WRITE, page};
use crate::{START, say};

/// Nanoseconds per call of `body`, without those of an empty loop.
fn measure(name: &str, mut body: impl FnMut()) {
    const ROUNDS: u64 = 1000;
    body();
    let time = |body: &mut dyn FnMut()| {
        let begin = time::cycles();
        (0..ROUNDS).for_each(|_| body());
        time::cycles() - begin
    };
    let empty = time(&mut || {
        core::hint::black_box(0);
    });
    let full = time(&mut body);
    say!("cost {name} {}", full.saturating_sub(empty) / ROUNDS);
}

/// Everything a system call, a fault, a fork may be made of.
pub(super) fn cost() {
    let lock = SpinLock::new(0);
    measure("lock", || *lock.lock() += 1);
    measure("lock_irq", || *lock.lock_irq() += 1);
    measure("now", || {
        core::hint::black_box(time::now());
    });
    measure("heap 64", || {
        core::hint::black_box(Box::new([0u64; 8]));
    });
    measure("frame", || {
        core::hint::black_box(Frame::alloc().is_ok());
    });
    measure("frame zeroed", || {
        core::hint::black_box(Frame::alloc_zeroed().is_ok());
    });
    let (one, two) = (Frame::alloc_zeroed().expect("a frame"), Frame::alloc_zeroed().expect("a frame"));
    measure("frame copy", || one.copy_page_from(&two));
    measure("frame clone", || {
        core::hint::black_box(one.clone());
    });
    measure("arm", || time::arm(u64::MAX / 4));
    time::disarm();
    measure("current", || {
        core::hint::black_box(START.current().name);
    });
    memory();
    copies();
    programs();
}

fn memory() {
    let space = UserSpace::new().expect("a root");
    let at = 0x1000_0000;
    let one = PageRange::one(page(at));
    let frame = Frame::alloc_zeroed().expect("a frame");
    let _ = space.map(page(at + 4096), frame.clone(), WRITE);
    measure("map+unmap", || {
        let _ = space.map(page(at), frame.clone(), WRITE);
        let _ = space.unmap(one);
    });
    measure("unmap nothing", || {
        let _ = space.unmap(one);
    });
    measure("lookup", || {
        core::hint::black_box(space.lookup(page(at + 4096)));
    });
    let range = PageRange::new(at, at + 256 * PAGE_SIZE as u64).expect("a range");
    space.map_run(range, WRITE, &mut |_| Some(frame.clone()));
    measure("space new+drop", || drop(UserSpace::new()));
    measure("fork of 256 pages, drop", || {
        let child = UserSpace::new().expect("a root");
        let _ = space.fork_range(&child, range, ForkMode::CopyOnWrite);
    });
    measure("protect 256 pages, both ways", || {
        for write in [false, true] {
            let _ = space.protect(range, &mut |leaf| machine::space::Prot { write, ..leaf.prot });
        }
    });
}

fn copies() {
    let space = program::space(&[0xf4]);
    START.current().set_space(Some(space.clone()));
    let mut buffer = [0; 4096];
    let at = UserAddr(DATA);
    for len in [1, 8, 16, 64, 200, 256, 1024, 4096] {
        let name = alloc::format!("read {len}");
        measure(&name, || {
            let _ = user::read_bytes(at, core::hint::black_box(&mut buffer[..len]));
        });
    }
    measure("read u32", || {
        core::hint::black_box(user::read::<u32>(at).is_ok());
    });
    let _ = user::write_bytes(at, b"/usr/bin/something\0");
    measure("string of 18", || {
        let _ = user::read_str(at, &mut buffer);
    });
    START.current().set_space(None);
}

/// Programs measure themselves: the kernel notes the time when they say something.
fn programs() {
    // ebx = 10000; loop: eax = 3; syscall; dec; jnz. Before and after: say(0).
    let calls: &[u8] = &[
        0x31, 0xff, 0x31, 0xc0, 0x0f, 0x05, 0xbb, 0x10, 0x27, 0, 0, 0xb8, 3, 0, 0, 0, 0x0f, 0x05, 0xff, 0xcb, 0x75,
        0xf5, 0x31, 0xc0, 0x0f, 0x05, 0xb8, 2, 0, 0, 0, 0x0f, 0x05,
    ];
    run("system call", calls, 10_000);
    let mut yields = [0; 33];
    yields.copy_from_slice(calls);
    yields[12] = 1;
    run("yield to the other side and back", &yields, 10_000);
    // eax/rsi = LAZY; ebx = 10000; loop: mov [rsi], al; add rsi, 4096; dec; jnz
    let faults: &[u8] = &[
        0xbe,
        0,
        0,
        0,
        (LAZY.start >> 24) as u8,
        0x31,
        0xff,
        0x31,
        0xc0,
        0x0f,
        0x05,
        0xbb,
        0x10,
        0x27,
        0,
        0,
        0x88,
        0x06,
        0x48,
        0x81,
        0xc6,
        0,
        0x10,
        0,
        0,
        0xff,
        0xcb,
        0x75,
        0xf3,
        0x31,
        0xc0,
        0x0f,
        0x05,
        0xb8,
        2,
        0,
        0,
        0,
        0x0f,
        0x05,
    ];
    run("page fault", faults, 10_000);
    let _ = cpu::id();
}

fn run(name: &'static str, code: &[u8], rounds: u64) {
    let thread = program::spawn(name, &program::space(code), 0);
    let watch = Arc::downgrade(&thread);
    program::QUIET.store(true, core::sync::atomic::Ordering::Relaxed);
    program::ready(thread);
    super::run_others(|| watch.upgrade().is_none());
    program::QUIET.store(false, core::sync::atomic::Ordering::Relaxed);
    let [begin, end] = program::MARKS.each_ref().map(|m| m.load(core::sync::atomic::Ordering::Relaxed));
    say!("cost {name} {}", (end - begin) / rounds);
}

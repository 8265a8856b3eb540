//! What a dying kernel needs: a stack overflow is caught and named, other processors stop where they are, any address
//! can be probed.

use core::sync::atomic::{AtomicU32, Ordering};

use machine::crash;
use machine::trap::{FatalKind, FatalTrap};
use machine::{cpu, irq};

use crate::{START, say};

static STUCK: AtomicU32 = AtomicU32::new(0);

/// Use up the kernel stack.
pub(super) fn overflow() {
    say!("depth {}", dig(1));
}

#[inline(never)]
fn dig(depth: u64) -> u64 {
    let mut room = [depth; 64];
    core::hint::black_box(&mut room);
    if depth == u64::MAX { 0 } else { dig(depth + 1) + room[(depth % 64) as usize] }
}

/// The stack overflow and the wild read end here.
pub(super) fn after_fatal(trap: &FatalTrap) {
    let (bottom, top) = START.current().stack();
    match trap.kind {
        FatalKind::StackOverflow { addr } => {
            say!("below its stack: {}", addr < bottom && bottom - addr < 4096);
            say!("many callers: {}", crash::backtrace(trap.registers.rip, trap.registers.rbp).count() > 20);
        }
        FatalKind::PageFault { .. } => {
            let callers = crash::backtrace(trap.registers.rip, trap.registers.rbp);
            let text = machine::boot::image_addresses();
            say!("callers in text: {}", callers.take(3).all(|ip| (text[0]..text[1]).contains(&ip)));
            say!("on its stack: {}", (bottom..top).contains(&trap.registers.rsp));
        }
        _ => {}
    }
}

/// The kernel reads where nothing is: safe code cannot, so the machine has a way to do it on purpose.
pub(super) fn fatal() {
    let guard = START.current().stack().0 - 8;
    let mut byte = [0];
    assert_eq!(crash::probe_read(guard, &mut byte), 0);
    crash::fault_on_purpose();
}

/// Processors spinning with interrupts off stop too, and tell where.
pub(super) fn stop() {
    let online = cpu::start_others();
    let others = cpu::online() & !1;
    SPIN.store(1, Ordering::SeqCst);
    (1..online).for_each(|c| cpu::kick(cpu::CpuId(c)));
    while STUCK.load(Ordering::SeqCst) < online - 1 {
        cpu::relax();
    }
    let stopped = crash::stop_others(1_000_000_000);
    say!("all stopped: {}", stopped == others);
    for id in 1..online {
        let (registers, _) = crash::stopped_registers(cpu::CpuId(id)).expect("stopped");
        let text = machine::boot::image_addresses();
        say!(
            "processor {id}: in text {}, in user {}, interrupts {}",
            (text[0]..text[1]).contains(&registers.rip),
            registers.cs & 3 != 0,
            registers.rflags >> 9 & 1
        );
        assert_eq!(START.current_of(cpu::CpuId(id)).map(|t| t.name), Some("idle"));
    }
    assert_eq!(crash::stop_others(1), others, "a second request");
}

/// Makes the others spin when they are kicked.
static SPIN: AtomicU32 = AtomicU32::new(0);

/// What other processors do when woken.
pub(super) fn work() {
    if SPIN.load(Ordering::SeqCst) == 1 {
        let _off = irq::off();
        STUCK.fetch_add(1, Ordering::SeqCst);
        loop {
            cpu::relax();
        }
    }
}

/// Any address at all: what is there is read, what is not is absent, and nothing faults.
pub(super) fn probe() {
    let mut buffer = [0; 64];
    let mut count = |at: u64| crash::probe_read(at, &mut buffer);
    let image = machine::boot::image_addresses();
    assert_eq!(count(image[0]), 64);
    assert_eq!(count(image[3] - 10), 10, "past the image");
    let (bottom, top) = START.current().stack();
    assert_eq!((count(bottom), count(bottom - 64), count(top - 64)), (64, 0, 64));
    for at in [0, 0x1000, 1 << 46, 1 << 47, 0x8000_0000_0000_0000, 0xffff_7fff_ffff_ffff, u64::MAX - 8] {
        assert_eq!(count(at), 0, "{at:#x}");
    }
    let mut step = 0xffff_8000_0000_0000u64;
    while step < 0xffff_8001_0000_0000 {
        count(step);
        step += 1 << 21;
    }
    assert_eq!(count(0xffff_8000_fee0_0000), 0, "device memory");
    assert_eq!(crash::probe_physical(0xfee0_0000, &mut [0; 4]), 0, "device memory");
    assert_eq!(crash::probe_physical(0x10_0000, &mut [0; 4]), 4);
    say!("here: {:?}", crash::stack_bounds(crash::registers_here().rsp).is_some());
    say!("left: {}", machine::thread::running::stack_left() > 8192);
}

/// Memory set aside for dumps has no other users, keeps what is written, and ends where it ends.
pub(super) fn region() {
    let region = machine::region::find().expect("the command line asks for it");
    say!("region of {} at {:#x}", region.size(), region.address().0);
    let free = machine::boot::info().free;
    let inside =
        |n: u32| (region.address().0..region.address().0 + region.size() as u64).contains(&(u64::from(n) << 12));
    assert!(!free.iter().any(|r| inside(r.start.0) || inside(r.end.0 - 1)), "the region is free memory");
    let mut back = [0; 8];
    assert_eq!(region.write(region.size() - 4, b"12345678"), 4);
    assert_eq!((region.read(region.size() - 4, &mut back), &back[..4]), (4, &b"1234"[..]));
    assert_eq!(region.write(region.size(), b"x"), 0);
    assert_eq!(region.write(usize::MAX, b"x"), 0);
}

//! Commands of `/proc/sysrq-trigger`.
//!
//! One letter, as on Linux: `c` crashes, `b` reboots, `o` switches off, `t` logs how many threads there are,
//! `p` how fast the memory for dumps is. Behind the `c` may
//! follow a name of [`WAYS`], to die in that particular way: the crash path is tested with them.

use core::sync::atomic::{AtomicU32, Ordering};

use kwab_format::SectionKind;
use kwab_format::record::{CauseKind, Reason};
use linux_abi::Errno;
use machine::time::now;
use machine::{cpu, crash, irq};

use super::parts::sabotage;
use super::{channel, panic};
use crate::log;
use crate::sched::Sleep;
use crate::sync::Mutex;
use crate::sync::wait::sleep_until;
use crate::task::{current, tree};

/// Ways to die, for `c NAME`.
const WAYS: &[(&str, fn())] = &[
    ("block", block),
    ("circle", circle),
    ("console", in_the_console_lock),
    ("double", || crash::double_fault_on_purpose()),
    ("dump", || in_the_dump(SectionKind::TASKS)),
    ("dump-cause", || in_the_dump(SectionKind::CAUSE)),
    ("fault", crash::fault_on_purpose),
    ("irqs-off", with_interrupts_off),
    ("keep", keep),
    ("lockup", lock_up),
    ("low-stack", with_little_stack_left),
    ("overflow", overflow),
    ("panic", || panic!("asked to panic")),
    ("spin", with_others_spinning),
];

/// Does what was written.
pub fn request(text: &[u8]) -> Result<(), Errno> {
    if !current().creds.with(|creds| creds.euid == 0) {
        return Err(Errno::EPERM);
    }
    match text.split_first() {
        Some((b'c', [])) => panic::die(CauseKind::SYSRQ, Reason::KERNEL_CRASH, format_args!("sysrq triggered crash")),
        Some((b'c', name)) => {
            let name = name.trim_ascii();
            let (_, way) = WAYS.iter().find(|(known, _)| known.as_bytes() == name).ok_or(Errno::EINVAL)?;
            way();
            Ok(())
        }
        Some((b'b', _)) => machine::power::reboot(),
        Some((b'p', _)) => {
            let pace = channel::pace().ok_or(Errno::ENODEV)?;
            log::info!(
                "sysrq: {} bytes: copy {} ns, channel {} ns, dump {} ns",
                pace.bytes,
                pace.copy,
                pace.channel,
                pace.dump
            );
            Ok(())
        }
        Some((b'o', _)) => machine::power::off(),
        Some((b't', _)) => {
            log::info!("sysrq: {} threads", tree::thread_count());
            Ok(())
        }
        _ => Err(Errno::EINVAL),
    }
}

/// Dies, and again while that is dumped.
fn in_the_dump(kind: SectionKind) {
    sabotage(kind);
    panic!("asked to panic, and to fault in the dump");
}

/// Never gives the processor away.
fn lock_up() {
    loop {
        cpu::relax();
    }
}

/// The same, and takes no interrupt.
fn with_interrupts_off() {
    let _off = irq::off();
    lock_up();
}

/// Sleeps where nothing wakes it.
fn block() {
    loop {
        let _ = sleep_until(u64::MAX, Sleep::Uninterruptible);
    }
}

/// Asked twice: the second thread waits for the mutex with which the first one sleeps for ever.
fn keep() {
    static KEPT: Mutex<()> = Mutex::new(());
    let _kept = KEPT.lock();
    loop {
        // What interrupts it does not make it let go.
        let _ = sleep_until(u64::MAX, Sleep::Killable);
    }
}

/// Asked twice, at a time: two threads wait for each other's mutexes.
fn circle() {
    static BEGUN: AtomicU32 = AtomicU32::new(0);
    static LEFT: Mutex<()> = Mutex::new(());
    static RIGHT: Mutex<()> = Mutex::new(());
    let number = BEGUN.fetch_add(1, Ordering::SeqCst);
    let (first, second) = if number == 0 { (&LEFT, &RIGHT) } else { (&RIGHT, &LEFT) };
    let _first = first.lock();
    BEGUN.fetch_add(2, Ordering::SeqCst);
    // Both have one: two that began, and two that went on.
    while BEGUN.load(Ordering::SeqCst) < 6 {
        let _ = sleep_until(now() + 1_000_000, Sleep::Uninterruptible);
    }
    let _second = second.lock();
}

fn in_the_console_lock() {
    machine::console::with_lock(|| panic!("asked to panic with the console locked"));
}

fn overflow() {
    // It does not come back.
    let _ = dig(1);
}

/// Uses the stack up.
#[inline(never)]
fn dig(depth: u64) -> u64 {
    let mut room = [depth; 64];
    core::hint::black_box(&mut room);
    if depth == u64::MAX { 0 } else { dig(depth + 1) + room[(depth % 64) as usize] }
}

fn with_little_stack_left() {
    let _ = dig_to_the_last_bytes();
}

/// Panics with about half a kilobyte of stack left.
#[inline(never)]
fn dig_to_the_last_bytes() -> u64 {
    let mut room = [1u64; 16];
    core::hint::black_box(&mut room);
    if machine::thread::running::stack_left() < 768 {
        panic!("asked to panic with little stack left");
    }
    dig_to_the_last_bytes() + room[3]
}

/// Every other processor spins with interrupts off when this one dies.
fn with_others_spinning() {
    static SPINNING: AtomicU32 = AtomicU32::new(0);
    let me = cpu::id();
    let others = (cpu::online() & !(1 << me.0)).count_ones();
    cpu::call(cpu::online(), &|| {
        if cpu::id() != me {
            let _off = irq::off();
            SPINNING.fetch_add(1, Ordering::SeqCst);
            loop {
                cpu::relax();
            }
        }
        while SPINNING.load(Ordering::SeqCst) < others {
            cpu::relax();
        }
        panic!("asked to panic with the others spinning");
    });
}

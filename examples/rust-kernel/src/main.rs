//! A small kernel that dies: it starts the drivers of a bus, one of which does not exist, and dumps itself.
//!
//! `cargo xtask examples` boots it in QEMU. The null pointer raises a page fault, and [`die`] writes the dump as
//! armoured lines on the serial port, between whatever else is printed there; `kwab import` takes it out of the log.
//! What a kernel of your own has to do for that is [`die`].
#![no_std]
#![no_main]

mod log;
mod machine;

use core::hint::black_box;
use core::panic::PanicInfo;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use kwab_crash::{Crash, Kernel, Piece, TrapFrame};
use kwab_format::armour::ArmourSink;
use kwab_format::record::{CauseKind, MemoryKind};
use kwab_format::{DumpId, MIN_BUFFER};

/// What a bus knows of a driver.
#[repr(C)]
pub(crate) struct Driver {
    name: [u8; 8],
    vendor: u64,
    /// Its number among those of one vendor.
    pub(crate) number: u64,
}

static DISK: Driver = Driver { name: *b"disk\0\0\0\0", vendor: 0x1af4, number: 2 };
static CLOCK: Driver = Driver { name: *b"clock\0\0\0", vendor: 0x1af4, number: 7 };

/// Starts the drivers of the bus, in the order of its slots.
pub(crate) fn run() -> ! {
    log::line(format_args!("rust-kernel {}: starting the bus", env!("CARGO_PKG_VERSION")));
    let slots: [*const Driver; 3] = [&DISK, &CLOCK, ptr::null()];
    start_bus(black_box(&slots));
    machine::power_off()
}

#[inline(never)]
fn start_bus(slots: &[*const Driver]) {
    for (slot, driver) in slots.iter().enumerate() {
        let number = start_driver(*driver);
        log::line(format_args!("slot {slot}: driver {number} started"));
    }
}

#[inline(never)]
fn start_driver(driver: *const Driver) -> u64 {
    machine::number_of(black_box(driver)) + 1
}

/// Where the log has the panic's message, behind one more byte than stand before it.
static PANICKED: AtomicUsize = AtomicUsize::new(0);
static DYING: AtomicBool = AtomicBool::new(false);

/// Dumps the kernel: names the death, hands over the memory that explains it, lets the sink print.
pub(crate) fn die(frame: &TrapFrame, cr2: u64, cr3: u64) -> ! {
    if DYING.swap(true, Relaxed) {
        // A fault while dumping: what is sealed so far has been printed.
        machine::power_off();
    }
    log::line(format_args!("dying of exception {} at {:#x}", frame.vector, frame.rip));
    let mut kept = [0; log::KEPT];
    let log = log::copy(&mut kept);
    let (kind, message) = match PANICKED.load(Relaxed).checked_sub(1) {
        Some(at) => (CauseKind::PANIC, log[at..].split(|byte| *byte == b'\n').next().unwrap_or_default()),
        None => (CauseKind::EXCEPTION, &b"exception in the kernel"[..]),
    };
    let stack = machine::stack();
    let code = frame.rip.saturating_sub(64);
    let memory = [
        Piece { kind: MemoryKind::CODE, address: code, bytes: machine::memory(code, code + 128), label: b"" },
        Piece {
            kind: MemoryKind::KERNEL_STACK,
            address: frame.rsp.max(stack.0),
            bytes: machine::memory(frame.rsp.max(stack.0), stack.1),
            label: b"boot stack",
        },
    ];
    let kernel = Kernel {
        name: b"rust-kernel",
        version: env!("CARGO_PKG_VERSION").as_bytes(),
        build_id: machine::build_id(),
        image: machine::image(),
        offset: 0,
    };
    let crash = Crash {
        kernel,
        kind,
        message,
        trap: Some((frame, cr2, cr3)),
        stack: Some(stack),
        memory: &memory,
        log,
        ..Crash::default()
    };
    let id = DumpId(1);
    let sink = ArmourSink::new(id, |line| {
        machine::print(line);
        true
    });
    // A sink that printed everything cannot lose the end.
    let _ = crash.write(sink, &mut [0; 2 * MIN_BUFFER], id);
    machine::power_off()
}

#[panic_handler]
fn panicked(info: &PanicInfo<'_>) -> ! {
    PANICKED.store(log::line(format_args!("{info}")) + 1, Relaxed);
    machine::trap()
}

//! The rings of the recorders and the death in the memory of the machine by hand, whole and damaged.

use kwab_format::record::{CauseKind, FlightKind, Reason, RegId};

use super::super::death::Trap;
use super::super::flight::Counts;
use super::*;

/// Where each part lies in the image.
const FLIGHT: usize = 0x2_0000;
const CALLS: usize = 0x2_1000;
const TEXT_RING: usize = 0x2_2000;
const CLOCK: usize = 0x2_3000;
const DEATH: usize = 0x2_4000;
const BASE: u64 = 1000;

/// The names of registers in the order in which they lie here, 8 bytes each.
const REGISTERS: [&str; 29] = [
    "regs.rax",
    "regs.rbx",
    "regs.rcx",
    "regs.rdx",
    "regs.rsi",
    "regs.rdi",
    "regs.rbp",
    "regs.rsp",
    "regs.r8",
    "regs.r9",
    "regs.r10",
    "regs.r11",
    "regs.r12",
    "regs.r13",
    "regs.r14",
    "regs.r15",
    "regs.rip",
    "regs.rflags",
    "regs.cs",
    "regs.ss",
    "regs.orig_rax",
    "control.cr0",
    "control.cr2",
    "control.cr3",
    "control.cr4",
    "control.efer",
    "control.fs_base",
    "control.gs_base",
    "control.kernel_gs_base",
];

/// What the kernel's table says of them.
pub(super) fn entries() -> Vec<(&'static str, u64)> {
    let registers = REGISTERS.iter().enumerate().map(|(at, name)| (*name, 8 * at as u64));
    let others = [
        ("flight", mapped(FLIGHT)),
        ("flight.stride", 0x400),
        ("flight.count", 4),
        ("flight.next", 0),
        ("flight.slots", 64),
        ("flight.slot", 64),
        ("flight.seal", 0),
        ("flight.words", 8),
        ("flight.tag_bits", 6),
        ("clock.base", mapped(CLOCK)),
        ("clock.mult", mapped(CLOCK) + 8),
        ("clock.shift", mapped(CLOCK) + 12),
        ("task.calls", 0xd0),
        ("calls.value", 16),
        ("calls.next", 0),
        ("calls.first", 8),
        ("calls.brief_before", 12),
        ("calls.brief_nr", 16),
        ("calls.texts", 24),
        ("calls.slots", 112),
        ("calls.count", 4),
        ("calls.slot", 128),
        ("calls.nr", 0),
        ("calls.cpu", 4),
        ("calls.entry", 8),
        ("calls.exit", 16),
        ("calls.result", 24),
        ("calls.args", 32),
        ("texts.next", 0),
        ("texts.slots", 64),
        ("texts.count", 4),
        ("texts.slot", 64),
        ("texts.kept", 48),
        ("texts.call", 0),
        ("texts.addr", 8),
        ("texts.words", 16),
        ("death", mapped(DEATH)),
        ("death.valid", 0),
        ("death.slots", 16),
        ("death.slot", 0x400),
        ("death.cpu", 0),
        ("death.kind", 4),
        ("death.reason", 6),
        ("death.trapped", 8),
        ("death.vector", 9),
        ("death.error", 16),
        ("death.fault_addr", 24),
        ("death.line", 32),
        ("death.column", 36),
        ("death.message_len", 40),
        ("death.file_len", 48),
        ("death.message", 56),
        ("death.file", 80),
        ("death.registers", 0x100),
        ("death.control", 0x100),
    ];
    others.into_iter().chain(registers).collect()
}

/// Fills them in.
pub(super) fn fill(memory: &mut [u8]) {
    words(memory, CLOCK, &[BASE, 2 | 1 << 32]);
    let cycles = u64::from(FlightKind::PAGE_FAULT.0) | 1 << 5;
    let switch = u64::from(FlightKind::CONTEXT_SWITCH.0);
    words(memory, FLIGHT, &[6 << 6]);
    let slots = [
        // Of number 4 there is only a begin.
        [0, 0, 0, 0, 0, 0],
        [5 << 6 | switch, 900, 0, 2, 0, 0],
        [2 << 6 | cycles, BASE + 70, 1 << 32 | 1, 0xdead, 0x40_1000, 6],
        [3 << 6 | switch, 800, 2 << 32 | 2, 0, 0, 0],
    ];
    for (number, slot) in slots.iter().enumerate() {
        words(memory, FLIGHT + 64 + 64 * number, slot);
    }
    // 7 calls, the first two of an owner before; one more was made that takes no slot: getpid.
    let ring = CALLS + 16;
    words(memory, ring, &[128 * 7, 2 | (128 * 7) << 32, 39, mapped(TEXT_RING)]);
    let calls = [
        [1 | 3 << 32, 1100, 1200, 5, 1, 0x5000, 5, 0, 0, 0],
        [257, 1300, 1350, (-2_i64).cast_unsigned(), 100, 0x4000, 0, 0, 0, 0],
        [0, 1400, 1360, 9, 0, 0x6000, 64, 0, 0, 0],
    ];
    for (number, call) in calls.iter().enumerate() {
        words(memory, ring + 112 + 128 * number, call);
    }
    words(memory, TEXT_RING, &[1]);
    words(memory, TEXT_RING + 64, &[5 << 32 | 4, 0x4000]);
    put(memory, TEXT_RING + 64 + 16, b"/etc");
    words(memory, place(1) + 0xd0, &[mapped(CALLS)]);
}

fn died(memory: &mut [u8]) {
    // The second slot counts.
    words(memory, DEATH, &[2]);
    let at = DEATH + 16 + 0x400;
    words(
        memory,
        at,
        &[u64::from(CauseKind::EXCEPTION.0) << 32 | u64::from(Reason::KERNEL_CRASH.0) << 48, 1 | 14 << 8],
    );
    words(memory, at + 16, &[2, 0x18, 7 | 9 << 32, 9, 4]);
    put(memory, at + 56, b"it broke\n");
    put(memory, at + 80, b"a.rs");
    let registers: Vec<u64> = (0..REGISTERS.len() as u64).collect();
    words(memory, at + 0x100, &registers);
    let set = |memory: &mut [u8], name: &str, value: u64| {
        let number = REGISTERS.iter().position(|known| *known == name).expect("a register");
        words(memory, at + 0x100 + 8 * number, &[value]);
    };
    set(memory, "regs.cs", 8);
    set(memory, "regs.rip", 0x1111);
    set(memory, "regs.rsp", mapped(STACK + 0x138));
    set(memory, "regs.rbp", mapped(STACK + 0x160));
}

#[test]
fn flight_events_are_decoded_as_the_kernel_does() {
    let ours = read(machine()).expect("a kernel of ours");
    let [ring] = ours.flight.as_slice() else { panic!("{:?}", ours.flight) };
    assert_eq!(ring.counts, Counts { total: 6, overwritten: 2, torn: 1, capacity: 4 });
    let [fault, first, sleep, second] = ring.events.as_slice() else { panic!("{:?}", ring.events) };
    assert_eq!((fault.kind, fault.stamp.ns), (Some(FlightKind::PAGE_FAULT), Some(70)));
    assert_eq!(
        (fault.pid, fault.a, fault.b, fault.c, fault.d),
        (Some(1), Some(0xdead), Some(0x40_1000), Some(6), None)
    );
    assert_eq!((first.stamp.seq, first.stamp.ns, first.a, first.b), (Some(3), Some(800), None, Some(2)));
    assert_eq!((sleep.kind, sleep.tid, sleep.a, sleep.stamp.seq), (Some(FlightKind::SLEEP), Some(2), Some(2), Some(5)));
    assert_eq!((second.a, second.b, second.c, second.d), (Some(2), Some(0), Some(2), Some(2)));
}

#[test]
fn calls_have_their_strings_and_the_one_in_progress_has_no_result() {
    let ours = read(machine()).expect("a kernel of ours");
    let calls = ours.threads[1].calls.as_ref().expect("a ring");
    assert_eq!(calls.counts, Counts { total: 5, overwritten: 2, torn: 0, capacity: 3 });
    let records: Vec<_> = calls.calls.iter().map(|call| call.record((2, 2), ours.clock.as_ref())).collect();
    let [write, open, read, getpid] = records.as_slice() else { panic!("{records:?}") };
    assert_eq!(
        (write.name, write.result, write.index, write.stamp.cpu),
        (Some(&b"write"[..]), Some(5), Some(2), Some(3))
    );
    assert_eq!((write.stamp.ns, write.duration_ns, write.arg2, write.arg3), (Some(100), Some(100), Some(5), None));
    assert_eq!((open.name, open.result, open.text1), (Some(&b"openat"[..]), Some(-2), Some(&b"/etc"[..])));
    assert_eq!((open.text0, open.texts_cut), (None, None));
    assert_eq!((read.result, read.in_progress, read.duration_ticks), (None, Some(true), None));
    assert_eq!((getpid.name, getpid.index, getpid.in_progress), (Some(&b"getpid"[..]), None, Some(false)));
    assert_eq!(ours.threads[0].calls, None);
}

#[test]
fn a_death_has_its_registers_callers_and_stack() {
    assert_eq!(read(machine()).expect("a kernel of ours").death, None);
    let mut memory = machine();
    died(&mut memory);
    let ours = read(memory).expect("a kernel of ours");
    let death = ours.death.expect("it died");
    assert_eq!((death.cpu, death.kind, death.reason), (0, CauseKind::EXCEPTION, Reason::KERNEL_CRASH));
    assert_eq!((death.message.as_slice(), &death.place), (&b"it broke\n"[..], &(b"a.rs".to_vec(), 7, 9)));
    assert_eq!(death.trap, Some(Trap { vector: 14, error: 2, addr: 0x18 }));
    assert_eq!((death.fault_addr(), death.register(RegId::R15)), (Some(0x18), 15));
    assert_eq!(death.frames, [0x1111, 0x2222, 0x3333]);
    assert_eq!((death.stack.0, death.stack.1.len()), (mapped(STACK + 0xb8), 16 << 10));
    assert!(death.code.1.is_empty(), "0x1111 is not mapped");
}

#[test]
fn a_kernel_without_recorders_in_its_table_is_read_without_them() {
    let mut memory = machine();
    for (number, (name, _)) in table().into_iter().enumerate() {
        if ["flight", "calls", "texts", "clock", "death"].iter().any(|ring| name.starts_with(ring)) {
            put(&mut memory, ENTRIES + 32 * number, b"?");
        }
    }
    let ours = read(memory).expect("a kernel of ours");
    assert_eq!(tids(&ours), [1, 2, 3, 9]);
    assert!(ours.flight.is_empty() && ours.threads.iter().all(|thread| thread.calls.is_none()));
    let [missing] = ours.missing.as_slice() else { panic!("{:?}", ours.missing) };
    assert!(missing.starts_with("the flight recorder: "), "{missing}");
}

#[test]
fn rings_that_lie_end_without_a_panic_and_within_their_size() {
    let mut whole = machine();
    died(&mut whole);
    let parts = [
        (ENTRIES, 32 * table().len()),
        (FLIGHT, 0x140),
        (CALLS, 0x200),
        (TEXT_RING, 0x140),
        (CLOCK, 16),
        (DEATH, 24),
        (DEATH + 0x410, 0x200),
    ];
    let (mut seed, mut with_events) = (0x2545_f491_4f6c_dd1d_u64, 0);
    let mut random = move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed as usize
    };
    for _ in 0..400 {
        let mut memory = whole.clone();
        for _ in 0..1 + random() % 6 {
            let (at, length) = parts[random() % parts.len()];
            memory[at + random() % length] = if random() % 3 == 0 { 0xff } else { random() as u8 };
        }
        let Some(ours) = read(memory) else { continue };
        with_events += usize::from(!ours.flight.is_empty());
        let events: usize = ours.flight.iter().map(|ring| ring.events.len()).sum();
        let calls: usize = ours.threads.iter().flat_map(|thread| &thread.calls).map(|calls| calls.calls.len()).sum();
        assert!(events <= LENGTH && calls <= 256 * ours.threads.len(), "{events} events, {calls} calls");
    }
    assert!(with_events > 200, "{with_events} had flight events");
}

//! What a program must not be able to do to the kernel: ways into ring 0, the rights of the kernel's own pages,
//! registers that the kernel uses and puts back.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use machine::addr::{PAGE_SIZE, UserAddr};
use machine::arch;
use machine::crash::{self, RawLeaf};
use machine::frame::Frame;
use machine::{boot, user};

use crate::program::{self, DATA, page};
use crate::{START, say};

/// Flags a program set when it made the last system call: what the kernel ran with.
pub(crate) static ENTRY_FLAGS: AtomicU64 = AtomicU64::new(0);

/// Segment selectors, gates and instructions that would leave 64-bit user mode: each ends in a fault of the program.
pub(super) fn segments() {
    let guards = arch::guards();
    let image = boot::image_addresses();
    assert!(
        guards.syscall.iter().all(|at| (image[0]..image[1]).contains(at)),
        "SYSCALL enters at {:#x?}",
        guards.syscall
    );
    assert_ne!(guards.syscall[0], guards.syscall[1], "compatibility mode has no entry of its own");
    assert_eq!((guards.sysenter, guards.local_table), ([0; 3], 0));
    say!("entries are the kernel's");
    let programs: &[(&str, &[u8])] = &[
        // TCG pops the operands of far and interrupt returns with the kernel's rights, which SMAP refuses: these jump.
        ("far jump to 0x23", &far_jump(0x23)),
        ("far jump to the kernel's code", &far_jump(0x10)),
        ("far jump to the task", &far_jump(0x40)),
        ("far jump to the local table", &far_jump(7)),
        // mov eax, 7; mov ds, eax
        ("segment of the local table", &[0xb8, 7, 0, 0, 0, 0x8e, 0xd8]),
        ("sysenter", &[0x0f, 0x34]),
        ("int 0x80", &[0xcd, 0x80]),
        ("int 2", &[0xcd, 2]),
        ("int1", &[0xf1]),
        // pushfq; or dword [rsp], 0x3000; popfq; in al, 0x80: I/O privilege is not a program's to take
        ("popf of iopl", &[0x9c, 0x81, 0x0c, 0x24, 0, 0x30, 0, 0, 0x9d, 0xe4, 0x80]),
    ];
    for (name, code) in programs {
        run(name, code, DATA);
    }
    returns();
    flags();
}

/// A far jump through a pointer with this selector, to the system call behind the jump.
const fn far_jump(selector: u8) -> [u8; 25] {
    [
        0xc7, 0x87, 0, 2, 0, 0, 25, 0, 0x40, 0, // mov dword [rdi + 0x200], 0x400019
        0x66, 0xc7, 0x87, 4, 2, 0, 0, selector, 0, // mov word [rdi + 0x204], selector
        0xff, 0xaf, 0, 2, 0, 0, // jmp far [rdi + 0x200]
    ]
}

/// Far and interrupt returns to a 32-bit segment end the program too: it is not resumed at the same instruction for
/// ever.
fn returns() {
    // push 0x23; push 0; retfq
    run("far return", &[0x6a, 0x23, 0x6a, 0, 0x48, 0xcb], 0);
    // push 0x2b; push 0; push 2; push 0x23; push 0; iretq
    run("interrupt return", &[0x6a, 0x2b, 0x6a, 0, 0x6a, 2, 0x6a, 0x23, 0x6a, 0, 0x48, 0xcf], 0);
}

/// Instructions that tell where the kernel's tables are or change what only the kernel may.
pub(super) fn instructions() {
    let programs: &[(&str, &[u8])] = &[
        ("sgdt", &[0x0f, 0x01, 0x44, 0x24, 0xf0]),
        ("sidt", &[0x0f, 0x01, 0x4c, 0x24, 0xf0]),
        ("sldt", &[0x0f, 0x00, 0xc0]),
        ("str", &[0x0f, 0x00, 0xc8]),
        ("smsw", &[0x0f, 0x01, 0xe0]),
        ("cli", &[0xfa]),
        ("in", &[0xe4, 0x80]),
        ("out", &[0xe6, 0x80]),
        ("clac", &[0x0f, 0x01, 0xca]),
        ("wrmsr", &[0x0f, 0x30]),
        ("read of cr4", &[0x0f, 0x20, 0xe0]),
        ("read of dr7", &[0x0f, 0x21, 0xf8]),
    ];
    for (name, code) in programs {
        run(name, code, 0);
    }
    bases();
}

/// Runs a program to its end, with a pattern at the start of its data.
fn run(name: &'static str, code: &[u8], argument: u64) {
    let space = program::space(code);
    let pattern: Vec<u8> = (1..=160).collect();
    space.frame(page(DATA)).expect("just mapped").0.write(0, &pattern);
    let thread = program::spawn(name, &space, argument);
    let watch = alloc::sync::Arc::downgrade(&thread);
    program::ready(thread);
    super::run_others(|| watch.upgrade().is_none());
}

/// A program sets its GS base to the kernel's image and its own block, and calls, traps and is interrupted with it.
fn bases() {
    let code = [
        0xf3, 0x48, 0x0f, 0xae, 0xdf, // wrgsbase rdi
        0xb8, 1, 0, 0, 0, 0x0f, 0x05, // mov eax, 1; syscall
        0xf3, 0x48, 0x0f, 0xae, 0xcf, // rdgsbase rdi
        0x31, 0xc0, 0x0f, 0x05, // xor eax, eax; syscall
        0x0f, 0x0b, // ud2
    ];
    run("gs base", &code, boot::image_addresses()[0]);
    run("gs base", &code, 0);
}

/// The flags a program chose are not the kernel's while it serves the call.
fn flags() {
    // pushfq; or dword [rsp], AC | NT | DF | ID; popfq; mov eax, 5; syscall; ud2
    let code = [0x9c, 0x81, 0x0c, 0x24, 0x00, 0x44, 0x24, 0x00, 0x9d, 0xb8, 5, 0, 0, 0, 0x0f, 0x05, 0x0f, 0x0b];
    run("flags", &code, 0);
    const DANGEROUS: u64 = 0x1_7000 | 1 << 8 | 1 << 10 | 1 << 18;
    say!("flags in the kernel {:#x}", ENTRY_FLAGS.load(Ordering::Relaxed) & DANGEROUS);
}

/// The kernel's half of the page tables: nothing is both written and executed, the image's text and constants are
/// written under no name, only its text is executed, and no address of a program is mapped.
pub(super) fn rights() {
    let guards = arch::guards();
    say!(
        "wp {} nx {} smep {} smap {} umip {}",
        guards.write_protect,
        guards.no_execute,
        guards.smep,
        guards.smap,
        guards.umip
    );
    let root = machine::addr::PhysAddr(crash::control_here().cr3);
    let [start, text_end, rodata_end, _] = boot::image_addresses();
    let first = boot::kernel_image().start.addr().0;
    let constants = first..first + (rodata_end - start);
    let text = first..first + (text_end - start);
    let (mut names, mut wrong) = (0, 0);
    let mut judge = |leaf: RawLeaf| {
        let at = leaf.entry & 0x000f_ffff_ffff_f000 & !(leaf.size - 1);
        let overlaps = |range: &core::ops::Range<u64>| at < range.end && range.start < at + leaf.size;
        let (written, executed) = (leaf.entry & 2 != 0, leaf.entry >> 63 == 0);
        names += usize::from(overlaps(&text));
        let user = leaf.entry & 4 != 0;
        let inside = text.start <= at && at + leaf.size <= text.end;
        if user || (written && (executed || overlaps(&constants))) || (executed && !inside) {
            say!("wrong: {:#x} is {:#x}, {} bytes", leaf.at, leaf.entry, leaf.size);
            wrong += 1;
        }
        true
    };
    crash::leaves(root, 0xffff_8000_0000_0000, u64::MAX, &mut judge);
    let pages = (text.end - text.start) as usize / PAGE_SIZE;
    say!("wrong leaves: {wrong}, names of a page of text: {}", names / pages);
    let mut low = 0;
    crash::leaves(root, 0, 1 << 47, &mut |_| {
        low += 1;
        true
    });
    say!("leaves in the lower half: {low}");
}

/// Vector registers survive every bulk move of the kernel, wide and narrow, to their last byte; and moves are wide only
/// where that holds for all states that are on.
pub(super) fn vectors() {
    let guards = arch::guards();
    assert_eq!(guards.enabled_states & !guards.saved_states, 0, "states are on that are not saved");
    assert_eq!(guards.wide_moves, arch::wide_moves_fit(guards.enabled_states));
    let fits = [0b11, 0b111, 0xe7, 0x27, 0x2e7].map(arch::wide_moves_fit);
    assert_eq!(fits, [false, true, false, false, false]);
    say!("states on {:#x}", guards.enabled_states & 0b111);
    say!("wide {}", guards.wide_moves);
    through_moves();
    arch::use_narrow_moves();
    say!("wide {}", arch::guards().wide_moves);
    through_moves();
}

/// Five registers are loaded, every move is done in a system call, and they are stored again.
fn through_moves() {
    let code = [
        0xc5, 0xfe, 0x6f, 0x07, // vmovdqu ymm0, [rdi]
        0xc5, 0xfe, 0x6f, 0x4f, 0x20, // vmovdqu ymm1, [rdi + 32]
        0xc5, 0xfe, 0x6f, 0x57, 0x40, // vmovdqu ymm2, [rdi + 64]
        0xc5, 0xfe, 0x6f, 0x5f, 0x60, // vmovdqu ymm3, [rdi + 96]
        0xc5, 0xfe, 0x6f, 0xa7, 0x80, 0, 0, 0, // vmovdqu ymm4, [rdi + 128]
        0xb8, 6, 0, 0, 0, 0x0f, 0x05, // mov eax, 6; syscall
        0xc5, 0xfe, 0x7f, 0x87, 0x00, 1, 0, 0, // vmovdqu [rdi + 256], ymm0
        0xc5, 0xfe, 0x7f, 0x8f, 0x20, 1, 0, 0, // ymm1
        0xc5, 0xfe, 0x7f, 0x97, 0x40, 1, 0, 0, // ymm2
        0xc5, 0xfe, 0x7f, 0x9f, 0x60, 1, 0, 0, // ymm3
        0xc5, 0xfe, 0x7f, 0xa7, 0x80, 1, 0, 0, // ymm4
        0xb8, 7, 0, 0, 0, 0x0f, 0x05, // mov eax, 7; syscall
        0x0f, 0x0b, // ud2
    ];
    run("vectors", &code, DATA);
}

/// Whether the test is to end in a panic of the heap's guards.
pub(crate) static PANIC_WANTED: AtomicBool = AtomicBool::new(false);

/// Makes a mistake that must not go unseen.
#[cfg(feature = "fortress")]
fn misuse(how: machine::heap::Misuse) {
    PANIC_WANTED.store(true, Ordering::Relaxed);
    machine::heap::misuse(how);
    PANIC_WANTED.store(false, Ordering::Relaxed);
}

/// A write behind a heap object.
#[cfg(feature = "fortress")]
pub(super) fn overrun() {
    misuse(machine::heap::Misuse::Overrun);
}

/// A write to a freed heap object.
#[cfg(feature = "fortress")]
pub(super) fn freed() {
    misuse(machine::heap::Misuse::AfterFree);
}

/// A write over the link of a free heap object.
#[cfg(feature = "fortress")]
pub(super) fn link() {
    misuse(machine::heap::Misuse::Link);
}

/// System call 5: the flags the kernel runs with.
pub(crate) fn note_flags() {
    ENTRY_FLAGS.store(crash::registers_here().rflags, Ordering::Relaxed);
}

/// System call 6: every bulk move, after the pattern the program loaded has been taken.
pub(crate) fn moves() {
    let source = alloc::vec![0x11u8; PAGE_SIZE];
    let mut target = alloc::vec![0x22u8; PAGE_SIZE];
    target.copy_from_slice(core::hint::black_box(&source));
    target.fill(core::hint::black_box(0x33));
    let (from, to) = (Frame::alloc_zeroed(), Frame::alloc_zeroed());
    let (from, to) = (from.expect("a frame"), to.expect("a frame"));
    from.write(0, &source);
    to.copy_page_from(&from);
    to.zero(0, PAGE_SIZE);
    let scratch = UserAddr(DATA + 0x400);
    assert!(user::write_bytes(scratch, &source[..0x800]).is_ok() && user::zero(scratch, 0x800).is_ok());
    assert!(user::read_bytes(scratch, &mut target[..0x800]).is_ok());
}

/// System call 7: whether the registers came back as they were.
pub(crate) fn compare() {
    let mut data = [0; 0x200];
    assert!(user::read_bytes(UserAddr(DATA), &mut data).is_ok());
    let differ = data[..160].iter().zip(&data[256..416]).filter(|(a, b)| a != b).count();
    say!("{}: {differ} bytes lost, {} loaded", START.current().name, data[..160].iter().filter(|b| **b != 0).count());
}

/// A table of the image's constants that holds an address, which boot has to move with the image.
static FUNCTIONS: [fn(bool); 1] = [image];

/// The image is where boot drew it, in steps of 2 MiB, and so are the addresses in its data.
fn image(fixed: bool) {
    const LINKED: u64 = 0xffff_ffff_8010_0000;
    const MIB: u64 = 1 << 20;
    let [start, text_end, ..] = boot::image_addresses();
    let slide = boot::image_slide();
    say!("image at {start:#x}");
    let moved = if fixed { slide == 0 } else { (32 * MIB..2016 * MIB).contains(&slide) };
    let moved = moved && start == LINKED + slide && slide.is_multiple_of(2 * MIB);
    let function = core::hint::black_box(&FUNCTIONS)[0] as usize as u64;
    let mut byte = [0];
    let shown = crash::probe_read(LINKED, &mut byte) == 1;
    say!(
        "image moved {moved}, data follows {}, shown only there {}",
        (start..text_end).contains(&function) && function == image as fn(bool) as usize as u64,
        shown == fixed
    );
}

/// The regions of the kernel's half are where boot drew them, and work there.
pub(super) fn regions() {
    let fixed = boot::info().command_line.split(|byte| *byte == b' ').any(|word| word == b"nokaslr");
    let on_stack = 0u8;
    let large: Vec<u8> = alloc::vec![7; 5 << 20];
    let (stack, span) = (core::ptr::from_ref(&on_stack) as u64, large.as_ptr() as u64);
    let moved = [boot::direct_map() != 0xffff_8000_0000_0000, stack >> 32 != 0xffff_c080, span >> 36 != 0x0fff_fc0c];
    // Each stays where it would be without chance in one boot of 65,536, or fewer; two do in none.
    let count = moved.iter().filter(|moved| **moved).count();
    say!("moved {}", if fixed { count == 0 } else { count >= 2 });
    image(fixed);
    assert!(boot::direct_map().is_multiple_of(1 << 30));
    assert!(large.iter().all(|byte| *byte == 7));
    let last = boot::info().ram.last().expect("there is RAM").end.addr().0 - 8;
    let mut word = [0; 8];
    say!("the end of memory is shown: {}", crash::probe_physical(last, &mut word) == 8);
}

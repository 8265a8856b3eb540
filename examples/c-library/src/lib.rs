//! `kwab-crash` for kernels in C: the functions and structs of `kwab.h`, which cbindgen makes of this file.
//!
//! The one call is [`kwab_write_armoured`]. Its contract is C's: pointers are null or valid, texts end with a zero,
//! lengths are true. What may be absent is a null pointer or zero.
#![no_std]

use core::ffi::{CStr, c_char, c_void};
use core::panic::PanicInfo;
use core::slice;

use kwab_crash::{Crash, Kernel, Piece, TrapFrame};
use kwab_format::DumpId;
use kwab_format::armour::ArmourSink;
use kwab_format::record::{CauseKind, MemoryKind};

/// The kernel gave up by itself (`kwab_crash.cause`).
pub const KWAB_PANIC: u16 = 1;
/// An exception in the kernel that nothing could handle.
pub const KWAB_EXCEPTION: u16 = 2;
/// A fault while delivering a fault.
pub const KWAB_DOUBLE_FAULT: u16 = 3;
/// A kernel stack ran into its guard page.
pub const KWAB_STACK_OVERFLOW: u16 = 4;

/// A kernel stack (`kwab_memory.kind`).
pub const KWAB_KERNEL_STACK: u8 = 1;
/// Machine code around the instruction pointer.
pub const KWAB_CODE: u8 = 3;
/// A kernel object.
pub const KWAB_OBJECT: u8 = 5;

/// Registers of the interrupted code, in the order in which `boot/start.S` pushes them.
#[repr(C)]
pub struct KwabTrapFrame {
    /// rax, rdx, rcx, rbx, rsi, rdi, rbp, r8 to r15.
    pub general: [u64; 15],
    /// Number of the exception.
    pub vector: u64,
    /// Its error code; 0 where the processor gives none.
    pub error_code: u64,
    /// Instruction at which it happened.
    pub rip: u64,
    /// Selector of the code segment.
    pub cs: u64,
    /// Flags of the processor.
    pub rflags: u64,
    /// Stack pointer at that instruction.
    pub rsp: u64,
    /// Selector of the stack segment.
    pub ss: u64,
}

/// A piece of memory to keep.
#[repr(C)]
pub struct KwabMemory {
    /// What it is: KWAB_KERNEL_STACK, KWAB_CODE, KWAB_OBJECT.
    pub kind: u8,
    /// The same in words, or null.
    pub label: *const c_char,
    /// Address of the first byte.
    pub address: u64,
    /// The bytes as they were.
    pub bytes: *const u8,
    /// Number of bytes.
    pub length: usize,
}

/// Everything that is known of a death.
#[repr(C)]
pub struct KwabCrash {
    /// Name of the kernel.
    pub kernel_name: *const c_char,
    /// Its release, or null.
    pub kernel_version: *const c_char,
    /// The build-id in its image, or null.
    pub build_id: *const u8,
    /// Bytes of the build-id.
    pub build_id_length: usize,
    /// First address of the image at run time.
    pub image_low: u64,
    /// Address behind the last.
    pub image_high: u64,
    /// Run-time minus link-time address of the image.
    pub image_offset: u64,
    /// What kind of death: KWAB_PANIC, KWAB_EXCEPTION, ...
    pub cause: u16,
    /// In the kernel's own words, or null.
    pub message: *const c_char,
    /// Source file that gave up, or null.
    pub file: *const c_char,
    /// Line in it.
    pub line: u32,
    /// The interrupted code, or null.
    pub frame: *const KwabTrapFrame,
    /// CR2 and CR3 at the exception.
    pub cr2: u64,
    /// Root of the page tables.
    pub cr3: u64,
    /// Lowest address of the stack in use; 0 when it is not known.
    pub stack_low: u64,
    /// Address behind its highest.
    pub stack_high: u64,
    /// Pieces of memory to keep.
    pub memory: *const KwabMemory,
    /// Number of pieces; the first 32 are kept.
    pub memory_count: usize,
    /// The end of the kernel's log, or null.
    pub log: *const u8,
    /// Bytes of it.
    pub log_length: usize,
}

/// Takes one line of the dump with its line end; says whether it got out.
pub type KwabEmit = unsafe extern "C" fn(context: *mut c_void, line: *const u8, length: usize) -> bool;

/// Pieces of memory that one dump takes.
const MOST_PIECES: usize = 32;

/// Writes a dump as armoured lines for a serial console and says whether its end got out. `id` tells dumps apart;
/// `buffer`, 4 KiB for example, is used during the call only. Nothing is allocated; the kernel's memory is only read.
///
/// # Safety
/// Every pointer is null or points at as many bytes as its length says, texts end with a zero, and `emit` may be called
/// with `context` until the function returns.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kwab_write_armoured(
    crash: &KwabCrash,
    id: u64,
    buffer: *mut u8,
    buffer_length: usize,
    emit: KwabEmit,
    context: *mut c_void,
) -> bool {
    let mut pieces = [Piece::default(); MOST_PIECES];
    // SAFETY: the caller's contract for `memory` and `memory_count`.
    let memory = unsafe { many(crash.memory, crash.memory_count) };
    for (to, piece) in pieces.iter_mut().zip(memory) {
        // SAFETY: the caller's contract for `bytes` and `length`.
        let bytes = unsafe { many(piece.bytes, piece.length) };
        // SAFETY: the caller's contract for `label`.
        let label = unsafe { text(piece.label) }.unwrap_or_default();
        *to = Piece { kind: MemoryKind(piece.kind), label, address: piece.address, bytes };
    }
    // SAFETY: the caller's contract for `frame`.
    let frame = unsafe { crash.frame.as_ref() }.map(trap_frame);
    // SAFETY: the caller's contract for the texts and slices of `crash`.
    let mut death = unsafe { described(crash) };
    death.trap = frame.as_ref().map(|frame| (frame, crash.cr2, crash.cr3));
    death.memory = pieces.get(..memory.len()).unwrap_or(&pieces);
    let buffer: &mut [u8] = match buffer.is_null() {
        true => &mut [],
        // SAFETY: the caller's contract for `buffer` and `buffer_length`.
        false => unsafe { slice::from_raw_parts_mut(buffer, buffer_length) },
    };
    let sink = ArmourSink::new(DumpId(id), |line: &[u8]| {
        // SAFETY: the caller's contract for `emit` and `context`.
        unsafe { emit(context, line.as_ptr(), line.len()) }
    });
    death.write(sink, buffer, DumpId(id)).is_ok()
}

/// The crash without its trap frame and its memory.
///
/// # Safety
/// As [`kwab_write_armoured`].
unsafe fn described(crash: &KwabCrash) -> Crash<'_> {
    // SAFETY: the caller's contract, as for every pointer below.
    let of = |pointer: *const c_char| unsafe { text(pointer) };
    // SAFETY: as above.
    let bytes = |pointer: *const u8, length| unsafe { many(pointer, length) };
    Crash {
        kernel: Kernel {
            name: of(crash.kernel_name).unwrap_or(b"kernel"),
            version: of(crash.kernel_version).unwrap_or_default(),
            build_id: bytes(crash.build_id, crash.build_id_length),
            image: (crash.image_low, crash.image_high),
            offset: crash.image_offset,
        },
        kind: CauseKind(crash.cause),
        message: of(crash.message).unwrap_or_default(),
        location: of(crash.file).map(|file| (file, crash.line)),
        stack: Some((crash.stack_low, crash.stack_high)).filter(|stack| stack.0 < stack.1),
        log: bytes(crash.log, crash.log_length),
        ..Crash::default()
    }
}

fn trap_frame(frame: &KwabTrapFrame) -> TrapFrame {
    let KwabTrapFrame { general, vector, error_code, rip, cs, rflags, rsp, ss } = *frame;
    TrapFrame { general, vector, error_code, rip, cs, rflags, rsp, ss }
}

/// # Safety
/// `pointer` is null or points at `length` values that do not change.
unsafe fn many<'a, T>(pointer: *const T, length: usize) -> &'a [T] {
    match pointer.is_null() {
        true => &[],
        // SAFETY: the caller's contract.
        false => unsafe { slice::from_raw_parts(pointer, length) },
    }
}

/// # Safety
/// `pointer` is null or points at a text that ends with a zero and does not change.
unsafe fn text<'a>(pointer: *const c_char) -> Option<&'a [u8]> {
    match pointer.is_null() {
        true => None,
        // SAFETY: the caller's contract.
        false => Some(unsafe { CStr::from_ptr(pointer) }.to_bytes()),
    }
}

/// Nothing above panics; were it to, the machine would stop here with what was printed so far.
#[panic_handler]
fn panicked(_: &PanicInfo<'_>) -> ! {
    loop {}
}

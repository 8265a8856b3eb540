/* kwab-crash for kernels in C, made by cbindgen of src/lib.rs. See docs/in-your-kernel.md. */

#ifndef KWAB_H
#define KWAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 The kernel gave up by itself (`kwab_crash.cause`).
 */
#define KWAB_PANIC 1

/*
 An exception in the kernel that nothing could handle.
 */
#define KWAB_EXCEPTION 2

/*
 A fault while delivering a fault.
 */
#define KWAB_DOUBLE_FAULT 3

/*
 A kernel stack ran into its guard page.
 */
#define KWAB_STACK_OVERFLOW 4

/*
 A kernel stack (`kwab_memory.kind`).
 */
#define KWAB_KERNEL_STACK 1

/*
 Machine code around the instruction pointer.
 */
#define KWAB_CODE 3

/*
 A kernel object.
 */
#define KWAB_OBJECT 5

/*
 Registers of the interrupted code, in the order in which `boot/start.S` pushes them.
 */
typedef struct KwabTrapFrame {
    /*
     rax, rdx, rcx, rbx, rsi, rdi, rbp, r8 to r15.
     */
    uint64_t general[15];
    /*
     Number of the exception.
     */
    uint64_t vector;
    /*
     Its error code; 0 where the processor gives none.
     */
    uint64_t error_code;
    /*
     Instruction at which it happened.
     */
    uint64_t rip;
    /*
     Selector of the code segment.
     */
    uint64_t cs;
    /*
     Flags of the processor.
     */
    uint64_t rflags;
    /*
     Stack pointer at that instruction.
     */
    uint64_t rsp;
    /*
     Selector of the stack segment.
     */
    uint64_t ss;
} KwabTrapFrame;

/*
 A piece of memory to keep.
 */
typedef struct KwabMemory {
    /*
     What it is: KWAB_KERNEL_STACK, KWAB_CODE, KWAB_OBJECT.
     */
    uint8_t kind;
    /*
     The same in words, or null.
     */
    const char *label;
    /*
     Address of the first byte.
     */
    uint64_t address;
    /*
     The bytes as they were.
     */
    const uint8_t *bytes;
    /*
     Number of bytes.
     */
    size_t length;
} KwabMemory;

/*
 Everything that is known of a death.
 */
typedef struct KwabCrash {
    /*
     Name of the kernel.
     */
    const char *kernel_name;
    /*
     Its release, or null.
     */
    const char *kernel_version;
    /*
     The build-id in its image, or null.
     */
    const uint8_t *build_id;
    /*
     Bytes of the build-id.
     */
    size_t build_id_length;
    /*
     First address of the image at run time.
     */
    uint64_t image_low;
    /*
     Address behind the last.
     */
    uint64_t image_high;
    /*
     Run-time minus link-time address of the image.
     */
    uint64_t image_offset;
    /*
     What kind of death: KWAB_PANIC, KWAB_EXCEPTION, ...
     */
    uint16_t cause;
    /*
     In the kernel's own words, or null.
     */
    const char *message;
    /*
     Source file that gave up, or null.
     */
    const char *file;
    /*
     Line in it.
     */
    uint32_t line;
    /*
     The interrupted code, or null.
     */
    const struct KwabTrapFrame *frame;
    /*
     CR2 and CR3 at the exception.
     */
    uint64_t cr2;
    /*
     Root of the page tables.
     */
    uint64_t cr3;
    /*
     Lowest address of the stack in use; 0 when it is not known.
     */
    uint64_t stack_low;
    /*
     Address behind its highest.
     */
    uint64_t stack_high;
    /*
     Pieces of memory to keep.
     */
    const struct KwabMemory *memory;
    /*
     Number of pieces; the first 32 are kept.
     */
    size_t memory_count;
    /*
     The end of the kernel's log, or null.
     */
    const uint8_t *log;
    /*
     Bytes of it.
     */
    size_t log_length;
} KwabCrash;

/*
 Takes one line of the dump with its line end; says whether it got out.
 */
typedef bool (*KwabEmit)(void *context, const uint8_t *line, size_t length);

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/*
 Writes a dump as armoured lines for a serial console and says whether its end got out. `id` tells dumps apart;
 `buffer`, 4 KiB for example, is used during the call only. Nothing is allocated; the kernel's memory is only read.

 # Safety
 Every pointer is null or points at as many bytes as its length says, texts end with a zero, and `emit` may be called
 with `context` until the function returns.
 */
bool kwab_write_armoured(const struct KwabCrash *crash,
                         uint64_t id,
                         uint8_t *buffer,
                         size_t buffer_length,
                         KwabEmit emit,
                         void *context);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* KWAB_H */

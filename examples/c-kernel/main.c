/* A kernel in C that dies: it starts the devices of a bus, calls a driver's function that was never filled in, and
   dumps itself through kwab.h. `cargo xtask examples` builds and boots it. What a kernel of your own has to do is
   `exception`. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kwab.h"

extern const uint8_t image_low[], image_high[], stack_low[], stack_high[], build_id_note[], build_id_end[];

static void out(uint16_t port, uint8_t value)
{
    __asm__ volatile("outb %0, %1" : : "a"(value), "Nd"(port));
}

static uint8_t in(uint16_t port)
{
    uint8_t value;

    __asm__ volatile("inb %1, %0" : "=a"(value) : "Nd"(port));
    return value;
}

/* The first serial port (16550). */
static bool print(void *context, const uint8_t *bytes, size_t length)
{
    (void)context;
    for (size_t at = 0; at < length; at++) {
        while (!(in(0x3f8 + 5) & 0x20))
            ;
        out(0x3f8, bytes[at]);
    }
    return true;
}

/* What was logged, for the dump. */
static uint8_t kept[1024];
static size_t written;

static void say(const char *text)
{
    size_t length = 0;

    while (text[length])
        length++;
    print(NULL, (const uint8_t *)text, length);
    for (size_t at = 0; at < length && written < sizeof kept; at++)
        kept[written++] = (uint8_t)text[at];
}

/* QEMU's isa-debug-exit; another machine halts. */
static _Noreturn void power_off(void)
{
    for (;;) {
        out(0xf4, 0);
        __asm__ volatile("hlt");
    }
}

struct device;

struct driver {
    const char *name;
    int (*start)(struct device *device);
};

struct device {
    const struct driver *driver;
    int started;
};

static int start_clock(struct device *device)
{
    say("clock: started\n");
    return device->started + 1;
}

static const struct driver clock_driver = { .name = "clock", .start = start_clock };
/* The bug: a driver without its function. */
static const struct driver disk_driver = { .name = "disk" };

static struct device bus[] = { { .driver = &clock_driver }, { .driver = &disk_driver } };

__attribute__((noinline)) static void start_device(struct device *device)
{
    device->started = device->driver->start(device) + 1;
}

__attribute__((noinline)) static void start_bus(void)
{
    for (size_t slot = 0; slot < sizeof bus / sizeof bus[0]; slot++)
        start_device(&bus[slot]);
}

void kernel_main(void)
{
    say("c-kernel 0.1.0: starting the bus\n");
    start_bus();
    power_off();
}

/* A piece of the image at `low` to `high`; what lies outside of it is left out. */
static KwabMemory piece(uint8_t kind, const char *label, uint64_t low, uint64_t high)
{
    const uint64_t from = (uint64_t)image_low, to = (uint64_t)image_high;

    low = low < from ? from : low > to ? to : low;
    high = high < low ? low : high > to ? to : high;
    return (KwabMemory){
        .kind = kind, .label = label, .address = low, .bytes = (const uint8_t *)low, .length = high - low,
    };
}

_Noreturn void exception(const KwabTrapFrame *frame, uint64_t cr2, uint64_t cr3)
{
    static uint8_t buffer[4096];
    static bool dying;

    if (dying)
        power_off();
    dying = true;
    say("dying of an exception\n");
    const KwabMemory memory[] = {
        piece(KWAB_CODE, NULL, frame->rip < 64 ? 0 : frame->rip - 64, frame->rip + 64),
        piece(KWAB_KERNEL_STACK, "boot stack", frame->rsp, (uint64_t)stack_high),
        piece(KWAB_OBJECT, "bus", (uint64_t)bus, (uint64_t)(bus + 2)),
    };
    const KwabCrash crash = {
        .kernel_name = "c-kernel",
        .kernel_version = "0.1.0",
        .build_id = build_id_note + 16,
        .build_id_length = (size_t)(build_id_end - build_id_note) - 16,
        .image_low = (uint64_t)image_low,
        .image_high = (uint64_t)image_high,
        .cause = KWAB_EXCEPTION,
        .message = "exception in the kernel",
        .frame = frame,
        .cr2 = cr2,
        .cr3 = cr3,
        .stack_low = (uint64_t)stack_low,
        .stack_high = (uint64_t)stack_high,
        .memory = memory,
        .memory_count = sizeof memory / sizeof memory[0],
        .log = kept,
        .log_length = written,
    };
    kwab_write_armoured(&crash, 1, buffer, sizeof buffer, print, NULL);
    power_off();
}

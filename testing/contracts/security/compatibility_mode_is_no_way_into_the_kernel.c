/*
 * A program that reaches for 32-bit code, call gates or the kernel's segments ends by a signal or goes on unprivileged;
 * the machine lives. (Intel SDM 3, "Protection"; arch/x86/entry/entry_64_compat.S for what Linux answers in
 * compatibility mode, where the details of the signal are the processor's.)
 */
#include "contract.h"

static unsigned char *low_code(const unsigned char *bytes, size_t length)
{
    unsigned char *code = mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    need(code != MAP_FAILED);
    memcpy(code, bytes, length);
    return code;
}

/* A far pointer. (Far returns would do, but QEMU's TCG pops their operands with the kernel's rights.) */
struct far {
    uint32_t offset;
    uint16_t selector;
} __attribute__((packed));

/* Jumps to 32-bit code with the number of a harmless call in EAX; the code ends in HLT, which no program may. */
static void in_compatibility_mode(const unsigned char *bytes, size_t length)
{
    struct far far = { (uint32_t)(uintptr_t)low_code(bytes, length), 0x23 };
    unsigned long stack = (unsigned long)low_code(bytes, length) + PAGE - 64;
    __asm__ volatile("mov %1, %%rbx\n\tmov %0, %%rsp\n\tmov $20, %%eax\n\tljmp *(%%rbx)"
                     :: "r"(stack), "r"(&far) : "rax", "rbx", "memory");
    __builtin_unreachable();
}

static int syscall_there(void *unused)
{
    (void)unused;
    in_compatibility_mode((const unsigned char *)"\x0f\x05\xf4", 3);
    return 1;
}

static int sysenter_there(void *unused)
{
    (void)unused;
    in_compatibility_mode((const unsigned char *)"\x0f\x34\xf4", 3);
    return 1;
}

static int interrupt_there(void *unused)
{
    (void)unused;
    in_compatibility_mode((const unsigned char *)"\xcd\x80\xf4", 3);
    return 1;
}

static int sysenter_here(void *unused)
{
    (void)unused;
    __asm__ volatile("mov $39, %%eax\n\tsysenter\n\thlt" ::: "rax", "rcx", "rdx", "memory");
    return 1;
}

/* A call gate to ring 0 in a local descriptor table at address 0, where the register points out of reset. */
static int gate_at_zero(void *unused)
{
    (void)unused;
    uint64_t *table = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if ((void *)table == MAP_FAILED)
        raise(SIGSEGV);
    uint64_t target = (uint64_t)low_code((const unsigned char *)"\xf4", 1);
    uint64_t gate = (target & 0xffff) | 0x10ULL << 16 | 0xecULL << 40 | (target >> 16 & 0xffff) << 48;
    __asm__ volatile("mov %0, 16(%1)\n\tmovq $0, 24(%1)" :: "r"(gate), "r"(table) : "memory");
    struct far far = { 0, 0x17 };
    __asm__ volatile("lcall *%0" :: "m"(far) : "memory");
    return 1;
}

static void show_end(const char *what, int (*body)(void *))
{
    int status = in_child(body, NULL);
    say("%s: %s", what, WIFSIGNALED(status) ? "ended by a signal" : "went on");
}

static const unsigned short *selector_to_load;

#define LOADER(name, instruction)                                                           \
    static int name(void *unused)                                                           \
    {                                                                                       \
        (void)unused;                                                                       \
        __asm__ volatile(instruction :: "r"((unsigned)*selector_to_load) : "memory");       \
        return 0;                                                                           \
    }
LOADER(load_ds, "mov %0, %%ds")
LOADER(load_es, "mov %0, %%es")
LOADER(load_ss, "mov %0, %%ss")
LOADER(load_fs, "mov %0, %%fs")
LOADER(load_gs, "mov %0, %%gs")

static int jump_far(void *unused)
{
    (void)unused;
    struct far far = { (uint32_t)(uintptr_t)low_code((const unsigned char *)"\xf4", 1), *selector_to_load };
    __asm__ volatile("ljmp *%0" :: "m"(far) : "memory");
    return 0;
}

int main(void)
{
    show_end("syscall in compatibility mode", syscall_there);
    show_end("sysenter in compatibility mode", sysenter_there);
    show_end("int 0x80 in compatibility mode", interrupt_there);
    show_end("sysenter in 64-bit mode", sysenter_here);
    show_end("a call gate at address 0", gate_at_zero);

    /* The kernel's code and data, the task state, and two entries of a local table that does not exist. */
    static const unsigned short selectors[] = { 0x10, 0x13, 0x18, 0x1b, 0x40, 0x43, 0x07, 0x0f };
    static int (*const loads[])(void *) = { load_ds, load_es, load_ss, load_fs, load_gs, jump_far };
    static const char *const names[] = { "ds", "es", "ss", "fs", "gs", "cs" };
    for (size_t i = 0; i < COUNT_OF(selectors); i++)
        for (size_t j = 0; j < COUNT_OF(loads); j++) {
            char who[32];
            selector_to_load = &selectors[i];
            snprintf(who, sizeof who, "%s = %#x", names[j], selectors[i]);
            show_status(who, in_child(loads[j], NULL));
        }
    say("the machine lives");
    return 0;
}

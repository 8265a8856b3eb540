/*
 * sigreturn(2), x86 SDM (XRSTOR, FXRSTOR), asm/sigcontext.h: an image that lies askew or is not all in user memory is
 * SIGSEGV. It is whole if its description and the magic behind it say so, and gives what it names; else its FXSAVE part
 * counts alone. Without an image the registers are initial, and the thread pointer stays.
 */
#include "../contract.h"
#include <asm/prctl.h>
#include <ucontext.h>

enum { XMM0 = 160, SOFTWARE = 464, HEADER = 512, YMM0 = 576 };
enum what {
    NOTHING, NO_IMAGE, ASKEW_16, ASKEW_8, OLD_ASKEW_8, OLD_AT_16, NO_SECOND_MAGIC, ONLY_SSE_NAMED, SIZE_OF_HEADER,
    SIZE_TOO_SMALL, SIZE_TOO_LARGE, SIZE_OVER_EXTENDED, ALL_INITIAL, IN_KERNEL, OVER_THE_END, UNMAPPED, ENDS_UNMAPPED,
    TAKEN_AWAY,
};
static enum what what;
static char *room;
static volatile int stop;

static void handler(int number, siginfo_t *info, void *raw)
{
    ucontext_t *context = raw;
    char *image = (char *)context->uc_mcontext.fpregs;
    unsigned size;
    (void)number, (void)info;
    memcpy(&size, image + SOFTWARE + 16, 4);
    memset(image + XMM0, 0x22, 16);
    memset(image + YMM0, 0x33, 16);
    char *copy = room + 64;
    memcpy(copy, image, size + 4);
    switch (what) {
    case NOTHING:
        return;
    case NO_IMAGE:
        context->uc_mcontext.fpregs = NULL;
        return;
    case ASKEW_16:
    case ASKEW_8:
    case OLD_ASKEW_8:
    case OLD_AT_16:
        copy += what == ASKEW_16 || what == OLD_AT_16 ? 16 : 8;
        memcpy(copy, image, size + 4);
        if (what == OLD_ASKEW_8 || what == OLD_AT_16)
            memset(copy + SOFTWARE, 0, 48);
        break;
    case NO_SECOND_MAGIC:
        memset(copy + size, 0, 4);
        break;
    case ONLY_SSE_NAMED:
        memset(copy + SOFTWARE + 8, 0, 8);
        copy[SOFTWARE + 8] = 3;
        break;
    case SIZE_OF_HEADER:
    case SIZE_TOO_SMALL:
    case SIZE_TOO_LARGE:
        size = what == SIZE_OF_HEADER ? 576 : what == SIZE_TOO_SMALL ? 572 : size + 64;
        memcpy(copy + SOFTWARE + 16, &size, 4);
        /* The magic where it says. */
        memcpy(copy + size, "EPXF", 4);
        break;
    case SIZE_OVER_EXTENDED:
        memset(copy + SOFTWARE + 4, 0, 4);
        break;
    case ALL_INITIAL:
        memset(copy + HEADER, 0, 8);
        break;
    case IN_KERNEL:
        copy = (char *)0xffff888000001000;
        break;
    case OVER_THE_END:
        copy = (char *)0x7fffffffefc0;
        break;
    case UNMAPPED:
        copy = room + 4 * PAGE;
        break;
    case ENDS_UNMAPPED:
        copy = room + 4 * PAGE - 576;
        memcpy(copy, image, 576);
        break;
    case TAKEN_AWAY:
        break;
    }
    context->uc_mcontext.fpregs = (fpregset_t)copy;
}

/* A signal with 0x11 in ymm0; which bytes its two halves have afterwards. */
__attribute__((noinline)) static void raise_once(unsigned char halves[2])
{
    unsigned char in[32], out[32];
    memset(in, 0x11, sizeof in);
    long result = SYS_kill;
    __asm__ volatile("vmovdqu (%[in]), %%ymm0\n syscall\n vmovdqu %%ymm0, (%[out])\n vzeroupper"
                     : "+a"(result)
                     : [in] "r"(in), [out] "r"(out), "D"((long)getpid()), "S"((long)SIGUSR1)
                     : "rcx", "r11", "xmm0", "memory");
    halves[0] = out[0];
    halves[1] = out[16];
}

static int raise_with(void *title)
{
    struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO };
    unsigned char halves[2];
    unsigned long before, after;
    room = fresh_pages(5);
    need(munmap(room + 4 * PAGE, PAGE) == 0 && sigaction(SIGUSR1, &action, NULL) == 0);
    need(syscall(SYS_arch_prctl, ARCH_GET_FS, &before) == 0);
    raise_once(halves);
    need(syscall(SYS_arch_prctl, ARCH_GET_FS, &after) == 0);
    say("%s: %02x and %02x, thread pointer %s", (char *)title, halves[0], halves[1], before == after ? "kept" : "lost");
    return 0;
}

static void try(enum what which, const char *title)
{
    what = which;
    show_status(title, in_child(raise_with, (void *)title));
}

static void *takes_away(void *unused)
{
    (void)unused;
    while (!stop) {
        mprotect(room, PAGE, PROT_NONE);
        mprotect(room, PAGE, PROT_READ | PROT_WRITE);
        mmap(room + PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    }
    return NULL;
}

/* The image lies on pages that another thread takes away: it ends by SIGSEGV or goes on, and nothing else. */
static int raced(void *unused)
{
    struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO };
    unsigned char halves[2];
    pthread_t other;
    (void)unused;
    room = fresh_pages(5);
    need(sigaction(SIGUSR1, &action, NULL) == 0 && pthread_create(&other, NULL, takes_away, NULL) == 0);
    for (int round = 0; round < 200; round++)
        raise_once(halves);
    stop = 1;
    return pthread_join(other, NULL);
}

int main(void)
{
    try(NOTHING, "as it is");
    try(NO_IMAGE, "no image");
    try(ASKEW_16, "whole, 16 bytes askew");
    try(ASKEW_8, "whole, 8 bytes askew");
    try(OLD_ASKEW_8, "old, 8 bytes askew");
    try(OLD_AT_16, "old, aligned to 16");
    try(NO_SECOND_MAGIC, "no magic behind it");
    try(ONLY_SSE_NAMED, "only x87 and SSE named");
    try(SIZE_OF_HEADER, "size without parts");
    try(SIZE_TOO_SMALL, "size without a header");
    try(SIZE_TOO_LARGE, "size larger than any");
    try(SIZE_OVER_EXTENDED, "size larger than with its magic");
    try(ALL_INITIAL, "all initial");
    try(IN_KERNEL, "in the kernel");
    try(OVER_THE_END, "over the end of user memory");
    try(UNMAPPED, "unmapped");
    try(ENDS_UNMAPPED, "its end unmapped");
    what = TAKEN_AWAY;
    int ended_otherwise = 0;
    for (int round = 0; round < 20; round++) {
        int status = in_child(raced, NULL);
        int expected = WIFSIGNALED(status) ? WTERMSIG(status) == SIGSEGV : WEXITSTATUS(status) == 0;
        ended_otherwise += !expected;
        need(!WIFEXITED(status) || WEXITSTATUS(status) != 99);
    }
    show("raced, ended otherwise", ended_otherwise);
    return 0;
}

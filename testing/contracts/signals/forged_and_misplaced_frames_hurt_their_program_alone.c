/*
 * sigreturn(2), x86 SDM (XRSTOR): floating-point images that a handler changes are restored, an unsound one is SIGSEGV;
 * a frame that has no room is SIGSEGV, and one on pages that were not touched yet, or across their border, is not.
 */
#include "../contract.h"
#include <sys/mman.h>
#include <ucontext.h>

enum { XMM0 = 160, MAGIC = 464, HEADER = 512 };
static int forge;
static char *pages;

static void handler(int number, siginfo_t *info, void *raw)
{
    ucontext_t *context = raw;
    char *image = (char *)context->uc_mcontext.fpregs;
    (void)number, (void)info;
    say("image aligned to 64 %d, named whole %d", (uintptr_t)image % 64 == 0,
        memcmp(image + MAGIC, "SXPF", 4) == 0 && (image[HEADER] & 3) == 3);
    if (forge == 1) {
        memset(image + XMM0, 0x5a, 16);
    } else if (forge == 2) {
        image[HEADER + 16] = 1;
    } else if (forge == 3) {
        image[HEADER + 7] = 0x40;
    } else if (forge == 4) {
        /* The old FXSAVE image alone, at the end of what is mapped. */
        char *end = pages + 2 * PAGE - 512;
        memcpy(end, image, 512);
        memset(end + XMM0, 0x6b, 16);
        memset(end + MAGIC, 0, 48);
        context->uc_mcontext.fpregs = (fpregset_t)end;
    } else if (forge == 5) {
        /* It says that it is whole, and is not all there. */
        char *end = pages + 2 * PAGE - 512;
        memcpy(end, image, 512);
        context->uc_mcontext.fpregs = (fpregset_t)end;
    } else if (forge == 6) {
        context->uc_mcontext.fpregs = (fpregset_t)0xffff800000000000;
    }
}

static void raise_with(const char *title, int what, char *stack_base, size_t size)
{
    pid_t child = fork();
    if (child == 0) {
        stack_t stack = { .ss_sp = stack_base, .ss_size = size };
        struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO | (stack_base ? SA_ONSTACK : 0) };
        need(!stack_base || sigaltstack(&stack, NULL) == 0);
        need(sigaction(SIGUSR1, &action, NULL) == 0);
        forge = what;
        unsigned char in[16], out[16];
        memset(in, 0x11, sizeof in);
        long result = SYS_kill;
        __asm__ volatile("movdqu (%[in]), %%xmm0\n syscall\n movdqu %%xmm0, (%[out])"
                         : "+a"(result)
                         : [in] "r"(in), [out] "r"(out), "D"((long)getpid()), "S"((long)SIGUSR1)
                         : "rcx", "r11", "xmm0", "memory");
        say("%s: xmm0 is %02x after the handler", title, out[0]);
        _exit(0);
    }
    show_status(title, reap(child));
}

int main(void)
{
    pages = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    need(pages != MAP_FAILED && mprotect(pages + 2 * PAGE, PAGE, PROT_NONE) == 0);
    raise_with("untouched", 0, NULL, 0);
    raise_with("changed", 1, NULL, 0);
    raise_with("header with reserved bytes", 2, NULL, 0);
    raise_with("state that does not exist", 3, NULL, 0);
    raise_with("old image at the end of memory", 4, NULL, 0);
    raise_with("whole image at the end of memory", 5, NULL, 0);
    raise_with("image in the kernel", 6, NULL, 0);

    char *lazy = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    need(lazy != MAP_FAILED);
    raise_with("stack of untouched pages", 1, lazy, 4 * PAGE);
    /* The image ends 64 bytes above a border. */
    raise_with("image across a border", 1, lazy, 3 * PAGE + 192);
    need(mprotect(lazy + 2 * PAGE, PAGE, PROT_NONE) == 0);
    raise_with("image into a page without rights", 0, lazy + PAGE, 2 * PAGE + 192);
    need(mprotect(lazy + 2 * PAGE, PAGE, PROT_READ) == 0);
    raise_with("image into a page to read", 0, lazy + PAGE, 2 * PAGE + 192);
    return 0;
}

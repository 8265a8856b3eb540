/*
 * sigaction(2), the frame of a handler: every byte of siginfo, ucontext and floating-point state is the program's own
 * or zero; what the processor leaves out of a saved state is not filled with what lay in kernel memory before.
 */
#include "security.h"
#include <cpuid.h>
#include <ucontext.h>

#define CHILDREN 150

static unsigned char *stack;
static volatile unsigned *strange;

static void handler(int number, siginfo_t *info, void *context)
{
    ucontext_t *user = context;
    const unsigned char *state = (void *)user->uc_mcontext.fpregs;
    unsigned length = 512, eax, ebx, ecx, edx;
    (void)number;
    if (*(const uint32_t *)(state + 464) == 0x46505853)
        length = *(const uint32_t *)(state + 480);
    for (unsigned at = 416; at < 512; at++)
        if ((at < 464 || at >= 484) && state[at])
            strange[0]++;
    /* Behind the bits that say what is there, the header is zero. */
    for (unsigned at = 528; at < 576 && length > 512; at++)
        if (state[at])
            strange[1]++;
    /* Holes between the parts of the state, and parts that are in their initial state. */
    static unsigned char used[1 << 14];
    memset(used, 0, sizeof used);
    for (int part = 2; part < 63 && length > 576; part++) {
        __cpuid_count(0xd, part, eax, ebx, ecx, edx);
        if (eax && ebx + eax <= sizeof used)
            memset(used + ebx, 1, eax);
    }
    for (unsigned at = 576; at < length && at < sizeof used; at++)
        if (!used[at] && state[at])
            strange[2]++;
    const unsigned char *bytes = (void *)info;
    for (unsigned at = 24; at < sizeof *info; at++)
        if (bytes[at])
            strange[3]++;
    if (*(const int *)(bytes + 12))
        strange[3]++;
}

/* Many at once, so that their kernel stacks lie in memory that was used before. */
static int looks(void *wait)
{
    char byte;
    raise(SIGUSR1);
    __atomic_fetch_add(&strange[4], 1, __ATOMIC_SEQ_CST);
    return read(*(int *)wait, &byte, 1);
}

static int dirties(void *unused)
{
    char *memory = fresh_pages(40000);
    memset(memory, 0xa5, 40000 * PAGE);
    return unused != NULL;
}

static int attempt(void *unused)
{
    (void)unused;
    struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_ONSTACK };
    stack = (void *)fresh_pages(8);
    stack_t alternate = { .ss_sp = stack, .ss_size = 8 * PAGE };
    need(sigaltstack(&alternate, NULL) == 0 && sigaction(SIGUSR1, &action, NULL) == 0);
    int wait[2];
    pid_t children[CHILDREN];
    need(pipe(wait) == 0);
    in_child(dirties, NULL);
    for (int child = 0; child < CHILDREN; child++)
        children[child] = spawn(looks, &wait[0]);
    while (strange[4] < CHILDREN)
        sleep_ms(1);
    for (int child = 0; child < CHILDREN; child++) {
        kill(children[child], SIGKILL);
        reap(children[child]);
    }
    show("bytes of others in the unused part of the first state", strange[0]);
    show("bytes of others in the header", strange[1]);
    show("bytes of others between the states", strange[2]);
    show("bytes of others behind siginfo", strange[3]);
    return 0;
}

int main(void)
{
    strange = shared_page();
    as_nobody(attempt, NULL);
    return 0;
}

/*
 * sigaltstack(2), getauxval(3): a signal frame that does not fit the alternate stack ends the program; it is never
 * written below. The least size is MINSIGSTKSZ whatever the processor's registers need (AT_MINSIGSTKSZ).
 */
#include "../contract.h"
#include <sys/auxv.h>
#include <sys/mman.h>

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif
#ifndef SS_AUTODISARM
#define SS_AUTODISARM (1U << 31)
#endif

#define ROOM 65536
#define FILL 0x5a

static char *room;

/* Uses next to nothing of the stack it runs on. */
static void leave(int number)
{
    _exit(number == SIGUSR1 ? 0 : 3);
}

/* Whether a frame was written below the stack is only seen from outside: the room is shared. */
static int deliver(size_t size, unsigned int flags, int catch_fault)
{
    memset(room, FILL, ROOM);
    pid_t child = fork();
    if (child == 0) {
        stack_t stack = { .ss_sp = room + ROOM - size, .ss_size = size, .ss_flags = (int)flags };
        catch_signal(SIGUSR1, leave, SA_ONSTACK);
        if (catch_fault)
            catch_signal(SIGSEGV, leave, 0);
        need(syscall(SYS_sigaltstack, &stack, NULL) == 0);
        raise(SIGUSR1);
        _exit(1);
    }
    int status = reap(child);
    for (size_t i = 0; WIFSIGNALED(status) && i < ROOM - size; i++)
        if (room[i] != FILL) {
            say("written below the stack of %zu bytes", size);
            break;
        }
    return status;
}

/* The handler runs on a stack of its own again and again. */
static volatile int depth;
static void deeper(int number)
{
    depth++;
    raise(number);
}

static int nested(void *flags)
{
    stack_t stack = { .ss_sp = room, .ss_size = ROOM, .ss_flags = (int)(long)flags };
    catch_signal(SIGUSR1, deeper, SA_ONSTACK | SA_NODEFER);
    need(sigaltstack(&stack, NULL) == 0);
    raise(SIGUSR1);
    return 1;
}

/* A handler elsewhere disarms it too. */
static void look(int number)
{
    (void)number;
    stack_t now;
    need(sigaltstack(NULL, &now) == 0);
    say("in a handler elsewhere: size %zu flags %#x", now.ss_size, (unsigned int)now.ss_flags);
}

static void disarmed(void)
{
    stack_t stack = { .ss_sp = room, .ss_size = ROOM, .ss_flags = (int)SS_AUTODISARM }, now;
    need(sigaltstack(&stack, NULL) == 0);
    catch_signal(SIGUSR2, look, 0);
    raise(SIGUSR2);
    need(sigaltstack(NULL, &now) == 0);
    say("after it: size %zu flags %#x", now.ss_size, (unsigned int)now.ss_flags);
}

/* An image of the stack in the frame is taken over by the return, as far as the call itself would take it. */
static volatile unsigned long kept;
static void change(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)info;
    ucontext_t *frame = context;
    if (kept == 1)
        frame->uc_stack.ss_flags = SS_DISABLE;
    else if (kept == 2)
        frame->uc_stack.ss_size = 100;
    else if (kept == 3)
        frame->uc_stack.ss_flags = 77;
    else
        frame->uc_stack.ss_size = ROOM / 2;
}

int main(void)
{
    room = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    need(room != MAP_FAILED);
    size_t least = getauxval(AT_MINSIGSTKSZ);
    section("sizes");
    stack_t small = { .ss_sp = room, .ss_size = 2047 };
    RESULT(syscall(SYS_sigaltstack, &small, NULL));
    int status = deliver(2048, 0, 0);
    check(status == 0 || (WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV), "2048 bytes do, or end the program");
    check(status == 0 || least > 2048, "in which case more are asked for");
    check(status == 0 || WEXITSTATUS(deliver(2048, 0, 1)) == 3, "which may handle that elsewhere");
    check(deliver(2048, SS_AUTODISARM, 0) == status, "one that disarms itself holds as much");
    if (least < 2048)
        least = 2048;
    show_status("more than the least", deliver(least + 512, 0, 0));
    show_status("more than the least that disarm themselves", deliver(least + 512, SS_AUTODISARM, 0));
    size_t fits = 2048;
    while (fits < ROOM / 2 && deliver(fits, 0, 0) != 0)
        fits += 16;
    check(fits <= least, "what the auxiliary vector says suffices");

    section("nested");
    show_status("to the end", in_child(nested, NULL));

    section("disarmed");
    disarmed();

    section("in the frame");
    for (kept = 0; kept < 4; kept++) {
        stack_t stack = { .ss_sp = room, .ss_size = ROOM }, now;
        struct sigaction action = { .sa_sigaction = change, .sa_flags = SA_SIGINFO };
        need(sigaltstack(&stack, NULL) == 0 && sigaction(SIGUSR2, &action, NULL) == 0);
        raise(SIGUSR2);
        need(sigaltstack(NULL, &now) == 0);
        say("%lu: size %zu flags %d", kept, now.ss_size, now.ss_flags);
    }
    return 0;
}

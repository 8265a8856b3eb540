/* fork(2), wait(2): every one of many children is reported exactly once, whatever the order of their ends. */
#include "../contract.h"

static int quit(void *code)
{
    for (int i = 0; i < *(int *)code % 5; i++)
        sched_yield();
    return *(int *)code;
}

int main(void)
{
    enum { CHILDREN = 64 };
    int codes[CHILDREN], seen[CHILDREN] = { 0 }, status, reaped = 0, wrong = 0;
    for (int i = 0; i < CHILDREN; i++) {
        codes[i] = i;
        spawn(quit, &codes[i]);
    }
    while (wait(&status) > 0) {
        reaped++;
        wrong += !WIFEXITED(status) || seen[WEXITSTATUS(status)]++;
    }
    show_text("ended with", errno_name(errno));
    say("reaped %d wrong %d", reaped, wrong);
    return 0;
}

/* poll(2), pipe(7): one write to a pipe wakes every poller, but only one of several blocked readers gets the byte. */
#include "../contract.h"

static int ends[2];

static int poller(void *unused)
{
    (void)unused;
    struct pollfd wait = { ends[0], POLLIN, 0 };
    return poll(&wait, 1, 3000) == 1 ? 1 : 0;
}

static int reader(void *unused)
{
    (void)unused;
    char byte;
    close(ends[1]);
    return read(ends[0], &byte, 1) == 1 ? 1 : 0;
}

int main(void)
{
    pid_t children[4];
    char byte;
    int woken = 0, fed = 0;
    need(pipe(ends) == 0);
    for (int i = 0; i < 4; i++)
        children[i] = spawn(poller, NULL);
    sleep_ms(50);
    need(write(ends[1], "x", 1) == 1);
    for (int i = 0; i < 4; i++)
        woken += WEXITSTATUS(reap(children[i]));
    need(read(ends[0], &byte, 1) == 1);
    show("pollers woken", woken);
    for (int i = 0; i < 4; i++)
        children[i] = spawn(reader, NULL);
    sleep_ms(50);
    need(write(ends[1], "xy", 2) == 2);
    close(ends[1]);
    for (int i = 0; i < 4; i++)
        fed += WEXITSTATUS(reap(children[i]));
    show("readers fed", fed);
    return 0;
}

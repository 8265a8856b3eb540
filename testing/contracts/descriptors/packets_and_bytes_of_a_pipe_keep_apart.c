/*
 * pipe(2), O_DIRECT: only what a packet has beyond a short read is thrown away. Bytes that were written without the
 * flag before a packet are not part of it, and none of them is lost.
 */
#include "../contract.h"

static int ends[2];

static void mode(int flags) { need(fcntl(ends[1], F_SETFL, O_NONBLOCK | flags) == 0); }

/* Reads until nothing is left, the first time a single byte. */
static void take_all(void)
{
    char bytes[64];
    size_t done = 0;
    for (ssize_t count; (count = read(ends[0], bytes + done, done ? sizeof bytes - done : 1)) > 0;)
        done += count;
    say("read \"%.*s\", then %s", (int)done, bytes, errno_name(errno));
}

int main(void)
{
    need(pipe2(ends, O_NONBLOCK) == 0);
    section("bytes, then a packet");
    need(write(ends[1], "abc", 3) == 3);
    mode(O_DIRECT);
    need(write(ends[1], "de", 2) == 2);
    take_all();
    section("a packet, then bytes");
    need(write(ends[1], "wxyz", 4) == 4);
    mode(0);
    need(write(ends[1], "12", 2) == 2);
    take_all();
    return 0;
}

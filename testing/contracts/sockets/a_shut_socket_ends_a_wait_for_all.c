/*
 * recv(2), shutdown(2): MSG_WAITALL returns what has come when the reader's own side, or the writer's, is shut down:
 * before the call, between two parts and while it waits; also for a length that is reached by several vectors.
 */
#include "../contract.h"
#include <sys/socket.h>
#include <sys/uio.h>

static int pair[2];

static void again(void)
{
    if (pair[0]) {
        close(pair[0]);
        close(pair[1]);
    }
    need(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
}

static int shuts_the_reader(void *how)
{
    sleep_ms(30);
    need(shutdown(pair[0], *(int *)how) == 0);
    return 0;
}

static int ends_the_writer(void *unused)
{
    (void)unused;
    sleep_ms(30);
    need(write(pair[1], "de", 2) == 2);
    sleep_ms(30);
    need(shutdown(pair[1], SHUT_WR) == 0);
    return 0;
}

int main(void)
{
    char text[16] = { 0 }, rest[16] = { 0 };
    int how = SHUT_RD;
    again();
    need(write(pair[1], "abc", 3) == 3);
    RESULT(shutdown(pair[0], SHUT_RD));
    RESULT(recv(pair[0], text, 8, MSG_WAITALL));
    show_text("text", text);
    RESULT(recv(pair[0], text, 8, MSG_WAITALL));

    for (int turn = 0; turn < 2; turn++) {
        again();
        how = turn ? SHUT_RDWR : SHUT_RD;
        pid_t child = spawn(shuts_the_reader, &how);
        RESULT(recv(pair[0], text, 8, MSG_WAITALL));
        show_status("who shuts", reap(child));
    }

    again();
    memset(text, 0, sizeof text);
    need(write(pair[1], "abc", 3) == 3);
    pid_t child = spawn(ends_the_writer, NULL);
    struct iovec parts[2] = { { text, 4 }, { rest, 4 } };
    struct msghdr message = { .msg_iov = parts, .msg_iovlen = 2 };
    RESULT(recvmsg(pair[0], &message, MSG_WAITALL));
    show_text("first", text);
    show_text("second", rest);
    show_status("writer", reap(child));
    return 0;
}

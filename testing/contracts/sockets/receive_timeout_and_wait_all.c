/*
 * socket(7), recv(2): SO_RCVTIMEO ends a wait with EAGAIN, MSG_WAITALL collects the whole length, signals
 * interrupt.
 */
#include "../contract.h"
#include <sys/socket.h>

static int pair[2];

static int slow_sender(void *unused)
{
    (void)unused;
    for (int i = 0; i < 3; i++) {
        sleep_ms(20);
        need(write(pair[1], "abcd", 4) == 4);
    }
    return 0;
}

static void note(int number) { (void)number; }

int main(void)
{
    char text[16] = { 0 };
    struct timeval limit = { 0, 40000 }, got;
    socklen_t length = sizeof got;
    need(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    RESULT(setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit));
    RESULT(getsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &got, &length));
    say("limit %lld s %ld us", (long long)got.tv_sec, (long)got.tv_usec);
    long long start = elapsed_ms();
    RESULT(recv(pair[0], text, 4, 0));
    check(elapsed_ms() - start >= 40, "waited for its limit");
    limit.tv_usec = 0;
    RESULT(setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit));
    pid_t child = spawn(slow_sender, NULL);
    RESULT(recv(pair[0], text, 12, MSG_WAITALL));
    show_text("text", text);
    show_status("sender", reap(child));
    catch_signal(SIGALRM, note, 0);
    struct itimerval soon = { .it_value = { 0, 30000 } };
    setitimer(ITIMER_REAL, &soon, NULL);
    RESULT(recv(pair[0], text, 4, 0));
    limit = (struct timeval){ 0, 2000000 };
    RESULT(setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit));
    return 0;
}

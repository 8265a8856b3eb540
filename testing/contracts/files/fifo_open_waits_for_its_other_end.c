/*
 * fifo(7): opening one end blocks for the other; nonblocking write-only is ENXIO, nonblocking read-only succeeds
 * at once.
 */
#include "../contract.h"

static int writer(void *unused)
{
    (void)unused;
    sleep_ms(50);
    int fd = open("fifo", O_WRONLY);
    return write(fd, "through the fifo", 16) != 16;
}

int main(void)
{
    scratch();
    RESULT(mkfifo("fifo", 0600));
    RESULT(mkfifo("fifo", 0600));
    OUTCOME(open("fifo", O_WRONLY | O_NONBLOCK));
    int early = open("fifo", O_RDONLY | O_NONBLOCK);
    char text[32] = { 0 };
    RESULT(read(early, text, 31));
    OUTCOME(open("fifo", O_WRONLY | O_NONBLOCK));
    close(early);
    close(early + 1);
    pid_t child = spawn(writer, NULL);
    int fd = open("fifo", O_RDONLY);
    RESULT(read(fd, text, 31));
    show_text("text", text);
    RESULT(read(fd, text, 31));
    show_status("writer", reap(child));
    close(fd);
    int both = open("fifo", O_RDWR);
    RESULT(write(both, "self", 4));
    RESULT(read(both, text, 31));
    RESULT(lseek(both, 0, SEEK_SET));
    return 0;
}

/* fifo(7), tmpfs(5): two names of one FIFO share one pipe, a renamed FIFO keeps its data, and its size is 0. */
#include "../contract.h"

int main(void)
{
    scratch();
    char text[16] = { 0 };
    need(mkfifo("one", 0600) == 0 && link("one", "two") == 0);
    int reader = open("one", O_RDONLY | O_NONBLOCK), writer = open("two", O_WRONLY | O_NONBLOCK);
    need(reader != -1 && writer != -1);
    RESULT(write(writer, "shared", 6));
    RESULT(read(reader, text, 16));
    show_text("text", text);
    RESULT(write(writer, "kept", 4));
    need(rename("one", "three") == 0 && unlink("two") == 0);
    struct stat meta;
    need(stat("three", &meta) == 0);
    say("size %d links %d", (int)meta.st_size, (int)meta.st_nlink);
    int late = open("three", O_RDONLY | O_NONBLOCK);
    RESULT(read(late, text, 16));
    close(reader);
    close(late);
    signal(SIGPIPE, SIG_IGN);
    RESULT(write(writer, "x", 1));
    RESULT(truncate("three", 0));
    RESULT(fcntl(writer, F_GETPIPE_SZ));
    return 0;
}

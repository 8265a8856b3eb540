/* pipe(7): a read takes what is there, blocks while a writer remains, and returns 0 once the last writer is gone. */
#include "../contract.h"

static int late_writer(void *ends)
{
    sleep_ms(50);
    return write(((int *)ends)[1], "late", 4) != 4;
}

int main(void)
{
    int ends[2];
    char text[16] = { 0 };
    need(pipe(ends) == 0);
    need(write(ends[1], "abc", 3) == 3 && write(ends[1], "def", 3) == 3);
    RESULT(read(ends[0], text, 2));
    RESULT(read(ends[0], text, 16));
    show_text("text", text);
    pid_t child = spawn(late_writer, ends);
    close(ends[1]);
    memset(text, 0, sizeof text);
    RESULT(read(ends[0], text, 16));
    show_text("blocked until", text);
    RESULT(read(ends[0], text, 16));
    show_status("writer", reap(child));
    RESULT(write(ends[0], text, 1));
    return 0;
}

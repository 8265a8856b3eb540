/* pipe(7): writing with no reader left raises SIGPIPE; if that is ignored or caught, write fails with EPIPE. */
#include "../contract.h"

static volatile sig_atomic_t seen;
static void note(int number) { seen = number; }

static int write_to_nobody(void *ends)
{
    return write(((int *)ends)[1], "x", 1) == 1;
}

int main(void)
{
    int ends[2];
    need(pipe(ends) == 0);
    close(ends[0]);
    show_status("default", in_child(write_to_nobody, ends));
    signal(SIGPIPE, SIG_IGN);
    RESULT(write(ends[1], "x", 1));
    catch_signal(SIGPIPE, note, 0);
    RESULT(write(ends[1], "x", 1));
    show_text("handler saw", signal_name(seen));
    RESULT(write(ends[1], "x", 0));
    return 0;
}

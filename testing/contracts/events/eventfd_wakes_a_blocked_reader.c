/* eventfd(2): a read of a zero counter sleeps until another process writes; a full counter makes the writer sleep. */
#include "../contract.h"
#include <sys/eventfd.h>

static int writer(void *fd)
{
    uint64_t value = 9;
    sleep_ms(40);
    return write(*(int *)fd, &value, 8) != 8;
}

static int reader(void *fd)
{
    uint64_t value;
    sleep_ms(40);
    return read(*(int *)fd, &value, 8) != 8;
}

int main(void)
{
    int fd = eventfd(0, 0);
    uint64_t value = 0;
    pid_t child = spawn(writer, &fd);
    RESULT(read(fd, &value, 8));
    show("value", value);
    show_status("writer", reap(child));
    value = UINT64_MAX - 1;
    RESULT(write(fd, &value, 8));
    child = spawn(reader, &fd);
    value = 5;
    RESULT(write(fd, &value, 8));
    show_status("reader", reap(child));
    RESULT(read(fd, &value, 8));
    show("value", value);
    return 0;
}

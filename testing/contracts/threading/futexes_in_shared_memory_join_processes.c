/*
 * futex(2): without the private flag a word in a shared mapping wakes waiters of other processes, wherever it is
 * mapped.
 */
#include "../contract.h"
#include <linux/futex.h>

static int fd;

static int waiter(void *unused)
{
    (void)unused;
    int *word = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    need(word != MAP_FAILED);
    while (__atomic_load_n(word, __ATOMIC_SEQ_CST) == 0)
        syscall(SYS_futex, word, FUTEX_WAIT, 0, NULL, NULL, 0);
    return *word;
}

int main(void)
{
    scratch();
    fd = open("shared", O_RDWR | O_CREAT, 0600);
    need(ftruncate(fd, PAGE) == 0);
    int *word = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    pid_t one = spawn(waiter, NULL), two = spawn(waiter, NULL);
    sleep_ms(100);
    RESULT(syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 10, NULL, NULL, 0));
    __atomic_store_n(word, 5, __ATOMIC_SEQ_CST);
    RESULT(syscall(SYS_futex, word, FUTEX_WAKE, 10, NULL, NULL, 0));
    show_status("one", reap(one));
    show_status("two", reap(two));
    return 0;
}

/*
 * shm_open(3): a named object on /dev/shm is shared by mapping, sized by ftruncate, gone by unlink but kept by
 * maps.
 */
#include "../contract.h"

static int child(void *unused)
{
    (void)unused;
    int fd = shm_open("/contract", O_RDWR, 0);
    char *memory = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    need(memory != MAP_FAILED);
    strcpy(memory, "across");
    return 0;
}

int main(void)
{
    shm_unlink("/contract");
    int fd = shm_open("/contract", O_RDWR | O_CREAT | O_EXCL, 0600);
    need(fd != -1);
    RESULT(fcntl(fd, F_GETFD));
    OUTCOME(shm_open("/contract", O_RDWR | O_CREAT | O_EXCL, 0600));
    RESULT(ftruncate(fd, PAGE));
    char *memory = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    need(memory != MAP_FAILED);
    show_status("child", in_child(child, NULL));
    show_text("memory", memory);
    RESULT(access("/dev/shm/contract", F_OK));
    RESULT(shm_unlink("/contract"));
    RESULT(shm_unlink("/contract"));
    show_text("after unlink", memory);
    OUTCOME(shm_open("/contract", O_RDWR, 0600));
    return 0;
}

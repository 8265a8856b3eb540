/*
 * fallocate(2): what a file has already takes no room a second time; what does not fit takes none.
 */
#include "../contract.h"
#include <sys/mount.h>
#include <sys/statfs.h>

#define KILO 1024L

static long free_kilobytes(void)
{
    struct statfs of;
    need(statfs("room", &of) == 0);
    return of.f_bfree * of.f_bsize / KILO;
}

int main(void)
{
    scratch();
    need(mkdir("room", 0755) == 0 && mount("none", "room", "tmpfs", 0, "size=1m") == 0);
    int one = open("room/one", O_RDWR | O_CREAT, 0600), two = open("room/two", O_RDWR | O_CREAT, 0600);
    need(one != -1 && two != -1);
    RESULT(fallocate(one, 0, 0, 640 * KILO));
    show("kilobytes free", free_kilobytes());
    RESULT(fallocate(one, 0, 0, 640 * KILO));
    RESULT(fallocate(one, 0, 320 * KILO, 640 * KILO));
    show("kilobytes free", free_kilobytes());
    RESULT(fallocate(two, 0, 0, 640 * KILO));
    show("kilobytes free", free_kilobytes());
    RESULT(lseek(two, 0, SEEK_END));
    RESULT(fallocate(one, FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE, 64 * KILO, 128 * KILO));
    RESULT(fallocate(one, 0, 0, 960 * KILO));
    show("kilobytes free", free_kilobytes());
    close(one);
    close(two);
    need(umount("room") == 0);
    return 0;
}

/*
 * mmap(2): MAP_SHARED stores reach read(2) and other maps at once, and write(2) reaches the map; MAP_PRIVATE
 * stores stay.
 */
#include "../contract.h"

int main(void)
{
    scratch();
    put_file("file", "abcdefgh", 0600);
    int fd = open("file", O_RDWR);
    char *one = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    char *two = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
    char *alone = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    need(one != MAP_FAILED && two != MAP_FAILED && alone != MAP_FAILED);
    alone[7] = 'P';
    one[0] = 'S';
    need(pwrite(fd, "W", 1, 1) == 1);
    char text[16];
    get_file("file", text, sizeof text);
    show_text("file", text);
    say("two %.8s", two);
    say("alone %.8s", alone);
    RESULT(msync(one, PAGE, MS_SYNC));
    RESULT(msync(one, PAGE, MS_SYNC | MS_ASYNC));
    RESULT(msync(one + 1, PAGE, MS_SYNC));
    RESULT(ftruncate(fd, 4));
    say("after the cut %.8s", two);
    RESULT(ftruncate(fd, 8));
    say("after growing '%c' then %d", two[3], two[4]);
    close(fd);
    need(unlink("file") == 0);
    one[2] = 'U';
    say("after unlink %.4s", two);
    RESULT(munmap(one, PAGE));
    say("after unmapping the other %.4s", two);
    RESULT(msync(one, PAGE, MS_SYNC));
    return 0;
}

/* getrandom(2): fills the whole buffer up to 256 bytes at once, differs each time, and refuses unknown flags. */
#include "../contract.h"
#include <sys/random.h>

int main(void)
{
    unsigned char one[256] = { 0 }, two[256] = { 0 };
    RESULT(getrandom(one, 256, 0));
    RESULT(getrandom(two, 256, GRND_NONBLOCK));
    show("differ", memcmp(one, two, 256) != 0);
    int counts[256] = { 0 }, different = 0;
    for (int i = 0; i < 256; i++)
        different += !counts[one[i]]++;
    show("many values", different > 100);
    RESULT(getrandom(one, 0, 0));
    RESULT(getrandom(one, 16, 0x10));
    RESULT(getrandom(one, 16, GRND_RANDOM | 4));
    RESULT(getrandom(BAD_POINTER, 16, 0));
    return 0;
}

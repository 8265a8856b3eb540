/* madvise(2): MADV_DONTFORK areas are absent in the child, MADV_WIPEONFORK areas are zero there. */
#include "../contract.h"

static char *hidden, *wiped, *plain;

static int child(void *unused)
{
    (void)unused;
    unsigned char state;
    say("hidden %s, wiped %d, plain %c", mincore(hidden, PAGE, &state) == -1 ? errno_name(errno) : "mapped", wiped[0],
        plain[0]);
    return hidden[0];
}

int main(void)
{
    hidden = fresh_pages(1), wiped = fresh_pages(1), plain = fresh_pages(1);
    hidden[0] = wiped[0] = plain[0] = 'x';
    RESULT(madvise(hidden, PAGE, MADV_DONTFORK));
    RESULT(madvise(wiped, PAGE, MADV_WIPEONFORK));
    show_status("child", in_child(child, NULL));
    say("parent keeps %c %c %c", hidden[0], wiped[0], plain[0]);
    RESULT(madvise(hidden, PAGE, MADV_DOFORK));
    show_status("child", in_child(child, NULL) & 0xff ? 1 : 0);
    char *shared = shared_page();
    RESULT(madvise(shared, PAGE, MADV_WIPEONFORK));
    return 0;
}

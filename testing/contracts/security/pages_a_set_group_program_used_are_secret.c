/*
 * credentials(7): which of its pages a set-group-id program used is not to be seen by the user who ran it, although he
 * may run the same file without its group (PR_SET_NO_NEW_PRIVS) and look at that program's memory (mincore(2)).
 */
#include "security.h"

#define GROUP 5000
#define PAGES 256

/* Which of two pages the program uses depends on a secret of its group. */
static const char table[PAGES][PAGE] __attribute__((aligned(4096))) = { [64] = { 1 }, [192] = { 1 } };

static int use(const char *secret)
{
    need(getegid() == GROUP);
    return ((const volatile char *)table[atoi(secret)])[0] - 1;
}

static int look(void)
{
    unsigned char one = 0, other = 0;
    need(getegid() == NOBODY);
    need(mincore((void *)table[64], PAGE, &one) == 0 && mincore((void *)table[192], PAGE, &other) == 0);
    check((one & 1) == (other & 1), "the two pages look the same");
    return 0;
}

static int run(void *secret)
{
    if (!secret)
        need(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    execl("./program", "program", secret ? secret : "look", NULL);
    return 98;
}

int main(int count, char **arguments)
{
    if (count > 1)
        return strcmp(arguments[1], "look") ? use(arguments[1]) : look();
    static const char *const secrets[] = { "64", "192" };
    for (size_t i = 0; i < COUNT_OF(secrets); i++) {
        scratch();
        copy_self("program", 0, GROUP, 02755);
        for (int times = 0; times < 2; times++)
            need(as_nobody(run, (void *)secrets[i]) == 0);
        need(as_nobody(run, NULL) == 0);
        scratch_clean();
    }
    return 0;
}

/*
 * getdents(2), readdir(3): while names are added, removed and renamed, a listing has each name that stays exactly once,
 * and none twice.
 * contract: timeout=60
 */
#include "../contract.h"
#include <dirent.h>

#define NAMES 20000
#define STAYS(number) ((number) % 4 == 0)

static unsigned char seen[NAMES];
static volatile int *stop;

static int changer(void *unused)
{
    char one[32], other[32];
    for (int round = 0; !*stop; round++)
        for (int at = 0; at < NAMES && !*stop; at++) {
            if (STAYS(at))
                continue;
            snprintf(one, sizeof one, "large/%05d", at);
            snprintf(other, sizeof other, "large/moved-%05d", at);
            if (round % 2 == 0)
                rename(one, other);
            else
                rename(other, one);
            if (at % 7 == 1) {
                unlink(round % 2 ? one : other);
                close(open(round % 2 ? one : other, O_CREAT | O_WRONLY, 0600));
            }
        }
    return unused != NULL;
}

int main(void)
{
    char name[32];
    scratch();
    stop = shared_page();
    need(mkdir("large", 0755) == 0);
    for (int at = 0; at < NAMES; at++) {
        snprintf(name, sizeof name, "large/%05d", at);
        int fd = open(name, O_CREAT | O_WRONLY, 0600);
        need(fd != -1);
        close(fd);
    }
    pid_t child = spawn(changer, NULL);
    long missing = 0, twice = 0;
    for (int round = 0; round < 6; round++) {
        memset(seen, 0, sizeof seen);
        DIR *directory = opendir("large");
        need(directory);
        for (struct dirent *entry; (entry = readdir(directory));)
            if (entry->d_name[0] >= '0' && entry->d_name[0] <= '9')
                twice += STAYS(atoi(entry->d_name)) && seen[atoi(entry->d_name)]++;
        closedir(directory);
        for (int at = 0; at < NAMES; at++)
            missing += STAYS(at) && !seen[at];
    }
    *stop = 1;
    show_status("changer", reap(child));
    show("missing", missing);
    show("twice", twice);
    return 0;
}

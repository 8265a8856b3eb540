/*
 * telldir(3), getdents64(2): a position told once leads back to the same entry, and rewinding lists everything
 * again.
 */
#include "../contract.h"
#include <dirent.h>

int main(void)
{
    scratch();
    char name[16];
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof name, "entry%d", i);
        put_file(name, "", 0600);
    }
    DIR *directory = opendir(".");
    long places[64];
    char names[64][24];
    int count = 0, wrong = 0;
    for (;; count++) {
        places[count] = telldir(directory);
        struct dirent *entry = readdir(directory);
        if (!entry)
            break;
        strcpy(names[count], entry->d_name);
    }
    show("entries", count);
    for (int i = count - 1; i >= 0; i -= 7) {
        seekdir(directory, places[i]);
        struct dirent *entry = readdir(directory);
        wrong += !entry || strcmp(entry->d_name, names[i]) != 0;
    }
    show("wrong places", wrong);
    rewinddir(directory);
    int again = 0;
    while (readdir(directory))
        again++;
    show("entries after rewinding", again);
    put_file("late", "", 0600);
    rewinddir(directory);
    int found = 0;
    struct dirent *entry;
    while ((entry = readdir(directory)))
        found += strcmp(entry->d_name, "late") == 0;
    show("a new name is found after rewinding", found);
    show("dirfd is a directory", fchdir(dirfd(directory)) == 0);
    closedir(directory);
    return 0;
}

/* readdir(3), POSIX: names removed while a directory is read do not make other names vanish or repeat. */
#include "../contract.h"
#include <dirent.h>

int main(void)
{
    scratch();
    char name[16];
    int seen[300] = { 0 };
    for (int i = 0; i < 300; i++) {
        snprintf(name, sizeof name, "%03d", i);
        put_file(name, "", 0600);
    }
    DIR *directory = opendir(".");
    struct dirent *entry;
    int removed = 0, twice = 0;
    while ((entry = readdir(directory))) {
        if (entry->d_name[0] == '.')
            continue;
        twice += seen[atoi(entry->d_name)]++ > 0;
        removed += unlink(entry->d_name) == 0;
    }
    closedir(directory);
    int missed = 0;
    for (int i = 0; i < 300; i++)
        missed += !seen[i];
    say("removed %d, missed %d, twice %d", removed, missed, twice);
    RESULT(chdir("/") || rmdir(scratch_path));
    return 0;
}

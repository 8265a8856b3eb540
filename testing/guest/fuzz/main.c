/*
 * Which of its parts this program is started as.
 */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int count, char **words)
{
    const char *part = count > 1 ? words[1] : "";
    if (getuid() != 0 && geteuid() == 0)
        return set_id_program();
    if (strcmp(part, "work") == 0)
        return work(count, words);
    if (strcmp(part, "tail") == 0)
        return tail();
    if (strcmp(part, "print") == 0 && count == 5) {
        plan(strtoul(words[2], NULL, 0), atoi(words[3]), words[4]);
        describe();
        return 0;
    }
    if (strcmp(part, "supervise") == 0)
        return supervise(count, words);
    fprintf(stderr, "usage: fuzz supervise SEED SECONDS PROGRAMS WORKERS [NUMBER=STEPS...]\n"
                    "       fuzz print SEED NUMBER STEPS\n");
    return 2;
}

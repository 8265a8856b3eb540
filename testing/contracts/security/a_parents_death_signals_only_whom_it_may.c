/*
 * prctl(2), PR_SET_PDEATHSIG: cleared by the execution of a set-user-ID program and by a change of ids; a dying parent
 * does not signal a child it could not signal itself.
 */
#include "security.h"

static int lives[2];

/* A process whose parent dies, which then reports what it lives to see. */
static void outlive(const char *who, int (*prepare)(void))
{
    char number[12];
    int parent_dies[2], heard = 0;
    need(pipe(parent_dies) == 0 && pipe(lives) == 0);
    pid_t parent = fork();
    if (parent == 0) {
        become_nobody();
        pid_t child = fork();
        if (child == 0) {
            close(lives[0]);
            close(parent_dies[0]);
            if (prepare && prepare())
                _exit(98);
            snprintf(number, sizeof number, "%d", lives[1]);
            execl(prepare ? "./program" : "./plain", "program", number, who, NULL);
            _exit(99);
        }
        char byte;
        need(read(parent_dies[0], &byte, 1) == 1);
        _exit(0);
    }
    close(lives[1]);
    await(lives[0]);
    tell(parent_dies[1]);
    need(reap(parent) == 0);
    char byte;
    heard = read(lives[0], &byte, 1) == 1;
    say("%s: %s", who, heard ? "lives on" : "was killed");
    close(lives[0]);
    close(parent_dies[0]);
    close(parent_dies[1]);
}

static int ask(void) { return prctl(PR_SET_PDEATHSIG, SIGKILL); }
static int nothing(void) { return 0; }

int main(int count, char **arguments)
{
    if (count > 2) {
        if (strcmp(arguments[2], "it asked itself") == 0)
            need(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
        if (strcmp(arguments[2], "it asked and became another") == 0) {
            need(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && setresuid(1000, 1000, -1) == 0);
            int number = -1;
            need(prctl(PR_GET_PDEATHSIG, &number) == 0);
            show("death signal after the change", number);
        }
        if (strcmp(arguments[2], "an ordinary program") == 0)
            need(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
        tell(atoi(arguments[1]));
        for (int tries = 0; tries < 400 && getppid() != 1; tries++)
            sleep_ms(5);
        sleep_ms(50);
        tell(atoi(arguments[1]));
        return 0;
    }
    scratch();
    copy_self("program", 0, 0, 04755);
    copy_self("plain", 0, 0, 0755);
    outlive("asked before the execution", ask);
    outlive("it asked itself", nothing);
    outlive("it asked and became another", nothing);
    outlive("an ordinary program", NULL);
    return 0;
}

/*
 * fcntl(2), F_SETOWN, F_SETSIG: the signal is sent with the ids of who named the owner, as they were then; a process he
 * may not signal gets none.
 */
#include "security.h"
#include <sys/ioctl.h>

static int opening[2];

static void aim(pid_t owner, int number)
{
    need(pipe(opening) == 0);
    RESULT(fcntl(opening[0], F_SETOWN, owner) == 0 || errno == EPERM ? 0 : -1);
    RESULT(fcntl(opening[0], F_SETSIG, number));
    RESULT(fcntl(opening[0], F_SETFL, O_ASYNC));
}

static void fire(void)
{
    need(write(opening[1], "x", 1) == 1);
    close(opening[0]);
    close(opening[1]);
    sleep_ms(20);
}

static int attempt(void *victim)
{
    pid_t pid = *(pid_t *)victim;
    aim(pid, SIGUSR1);
    fire();
    aim(pid, SIGKILL);
    fire();
    aim(pid, 0);
    fire();
    aim(-getpgid(pid), SIGTERM);
    fire();
    return 0;
}

static void group(void) { need(setpgid(0, 0) == 0); }
static void users(void) { need(setpgid(0, 0) == 0); become_nobody(); }

/* Root opens the file and sets its owner; only the write is made by a user. */
static int only_write(void *unused)
{
    (void)unused;
    fire();
    return 0;
}

static int drop_and_aim(void *victim)
{
    pid_t pid = *(pid_t *)victim;
    need(seteuid(NOBODY) == 0);
    aim(pid, SIGUSR1);
    fire();
    return 0;
}

static int after_execution(void *unused)
{
    (void)unused;
    int done[2];
    char number[12];
    need(pipe(done) == 0);
    pid_t child = fork();
    if (child == 0) {
        snprintf(number, sizeof number, "%d", done[1]);
        execl("./program", "program", number, NULL);
        _exit(99);
    }
    aim(child, SIGUSR1);
    await(done[0]);
    fire();
    show_status("the set-user-ID program", reap(child));
    return 0;
}

int main(int count, char **arguments)
{
    if (count > 1) {
        tell(atoi(arguments[1]));
        sleep_ms(200);
        return 0;
    }
    scratch();
    copy_self("program", 0, 0, 04755);
    pid_t victim = start_victim(group);
    section("root's process");
    as_nobody(attempt, &victim);
    end_victim("victim", victim);
    section("one's own");
    victim = start_victim(users);
    as_nobody(attempt, &victim);
    end_victim("victim", victim);
    section("aimed by root, fired by a user");
    victim = start_victim(group);
    aim(victim, SIGUSR1);
    as_nobody(only_write, NULL);
    close(opening[0]);
    close(opening[1]);
    end_victim("victim", victim);
    section("aimed by root without its effective user");
    victim = start_victim(group);
    in_child(drop_and_aim, &victim);
    end_victim("victim", victim);
    section("a set-user-ID program");
    as_nobody(after_execution, NULL);
    return 0;
}

/* wait(2): the status tells exit code (low 8 bits) from signal; without children the answer is ECHILD. */
#include "../contract.h"

static int quit(void *code) { return *(int *)code; }
static int die(void *number)
{
    raise(*(int *)number);
    return 99;
}

int main(void)
{
    int codes[] = { 0, 1, 255, 256, 258 };
    for (size_t i = 0; i < COUNT_OF(codes); i++)
        show_status("child", in_child(quit, &codes[i]));
    int signals[] = { SIGKILL, SIGTERM, SIGHUP, SIGUSR1, SIGALRM };
    for (size_t i = 0; i < COUNT_OF(signals); i++)
        show_status("child", in_child(die, &signals[i]));
    int quiet[] = { SIGCHLD, SIGURG, SIGWINCH, SIGCONT };
    for (size_t i = 0; i < COUNT_OF(quiet); i++)
        show_status("ignored by default", in_child(die, &quiet[i]));
    int status;
    RESULT(wait(&status));
    RESULT(waitpid(1, &status, WNOHANG));
    RESULT(waitpid(-1, &status, 0x100));
    pid_t child = spawn(quit, &codes[1]);
    RESULT(waitpid(child, BAD_POINTER, 0));
    RESULT(waitpid(child, NULL, 0));
    return 0;
}

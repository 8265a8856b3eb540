/* wait(2): WUNTRACED reports a stop once, WCONTINUED a continuation once, and SIGKILL ends a stopped child. */
#include "../contract.h"

static int sleeper(void *unused) { (void)unused; for (;;) pause(); return 0; }

int main(void)
{
    int status;
    pid_t child = spawn(sleeper, NULL);
    kill(child, SIGSTOP);
    show("stop reported", waitpid(child, &status, WUNTRACED) == child);
    show_status("child", status);
    RESULT(waitpid(child, &status, WUNTRACED | WNOHANG));
    kill(child, SIGTERM);
    sleep_ms(20);
    RESULT(waitpid(child, &status, WUNTRACED | WNOHANG));
    kill(child, SIGCONT);
    need(waitpid(child, &status, 0) == child);
    show_status("SIGTERM waited for the continuation", status);
    child = spawn(sleeper, NULL);
    kill(child, SIGSTOP);
    need(waitpid(child, &status, WUNTRACED) == child);
    kill(child, SIGCONT);
    show("continuation reported", waitpid(child, &status, WCONTINUED) == child);
    show("WIFCONTINUED", !!WIFCONTINUED(status));
    kill(child, SIGSTOP);
    need(waitpid(child, &status, WUNTRACED) == child);
    kill(child, SIGKILL);
    show_status("stopped and killed", reap(child));
    return 0;
}

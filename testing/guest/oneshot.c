/*
 * The init of a one-shot run: runs the words of /etc/kwab/argv (each ended by a NUL) in a session of its own on the
 * console, reports the status as a shell would (128 + signal), and powers off.
 */
#include "pid1.h"

static void become(char **words) {
    setsid();
    ioctl(0, TIOCSCTTY, 0);
    chdir("/root");
    setenv("HOME", "/root", 1);
    setenv("TERM", "vt100", 1);
    execvp(words[0], words);
    dprintf(2, "%s: %s\n", words[0], strerror(errno));
    _exit(errno == ENOENT ? 127 : 126);
}

int main(void) {
    pid1_prepare();
    size_t size = 0;
    char *text = pid1_read("/etc/kwab/argv", &size);
    char *words[256];
    int count = 0;
    for (size_t at = 0; text && at < size && count < 255; at += strlen(text + at) + 1) words[count++] = text + at;
    words[count] = 0;
    if (count == 0) {
        dprintf(2, "oneshot: /etc/kwab/argv is missing or empty\n");
        pid1_finish(125);
    }
    pid_t child = fork();
    if (child == -1) pid1_finish(125);
    if (child == 0) become(words);
    for (;;) {
        int status = 0;
        pid_t ended = waitpid(-1, &status, 0);
        if (ended != child) continue;
        pid1_finish(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    }
}

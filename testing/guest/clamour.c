/*
 * Makes the kernel want to write to its console: system calls that no kernel knows, then children that crash.
 *
 * clamour CALLS CRASHES
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int count, char **words) {
    if (count != 3) return 2;
    for (long left = atol(words[1]); left > 0; left--)
        if (syscall(left % 2 ? 999 : 453) != -1) return 1;
    for (long left = atol(words[2]); left > 0; left--) {
        pid_t child = fork();
        if (child == 0) {
            raise(SIGSEGV);
            _exit(0);
        }
        int status;
        if (waitpid(child, &status, 0) != child || !WIFSIGNALED(status)) return 1;
    }
    /* The kernel says what it left out when categories are switched. */
    int debug = open("/proc/sys/kernel/debug", O_WRONLY);
    if (debug < 0 || write(debug, "none", 4) != 4) return 1;
    printf("clamour is over\n");
    return 0;
}

/*
 * execve(2): thousands of arguments and long strings arrive unchanged; an empty argument list becomes one empty
 * string.
 */
#include "../contract.h"

int main(int count, char **arguments)
{
    if (count == 3001) {
        int wrong = 0;
        for (int i = 1; i < count; i++)
            wrong += atoi(arguments[i]) != i;
        say("wrong arguments %d, environment length %zu", wrong, strlen(getenv("LONG")));
        char *const none[] = { NULL };
        setenv("EMPTY_LIST", "1", 1);
        extern char **environ;
        execve("/proc/self/exe", none, environ);
        return 9;
    }
    if (getenv("EMPTY_LIST")) {
        say("count %d, the first is empty %d", count, count > 0 && arguments[0][0] == 0);
        return 0;
    }
    static char *argv[3002], numbers[3001][8], variable[100006] = "LONG=";
    memset(variable + 5, 'v', 100000);
    argv[0] = "self";
    for (int i = 1; i <= 3000; i++) {
        snprintf(numbers[i], sizeof numbers[i], "%d", i);
        argv[i] = numbers[i];
    }
    char *const environment[] = { variable, NULL };
    execve("/proc/self/exe", argv, environment);
    need(!"exec returned");
}

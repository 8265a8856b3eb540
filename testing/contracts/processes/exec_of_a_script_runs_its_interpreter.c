/* execve(2): "#!" names an interpreter and at most one argument; the script path follows, and argv[0] is lost. */
#include "../contract.h"

static const char *const scripts[][2] = {
    { "plain", "#!%s\n" }, { "one", "#!%s first\n" }, { "two", "#! %s  first second  \n" }, { "bare", "#!\n" },
    { "lost", "#!/absent/interpreter\n" },
};

int main(int count, char **arguments)
{
    if (count > 1 && strcmp(arguments[0], "test")) {
        for (int i = 1; i < count; i++)
            say("argument %d = \"%s\"", i, arguments[i]);
        return 0;
    }
    scratch();
    char self[256] = { 0 }, text[512];
    need(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
    for (size_t i = 0; i < COUNT_OF(scripts); i++) {
        snprintf(text, sizeof text, scripts[i][1], self);
        put_file(scripts[i][0], text, 0755);
        char path[64];
        snprintf(path, sizeof path, "./%s", scripts[i][0]);
        section(scripts[i][0]);
        pid_t child = fork();
        if (child == 0) {
            char *const argv[] = { "name", "tail", NULL }, *const none[] = { NULL };
            RESULT(execve(path, argv, none));
            _exit(1);
        }
        show_status(scripts[i][0], reap(child));
    }
    section("a script run by a script, and a loop");
    put_file("outer", "#!./plain outer\n", 0755);
    put_file("loop", "#!./loop\n", 0755);
    for (int i = 0; i < 2; i++)
        if (fork() == 0) {
            char *const argv[] = { "name", NULL }, *const none[] = { NULL };
            RESULT(execve(i ? "./loop" : "./outer", argv, none));
            _exit(1);
        } else
            wait(NULL);
    return 0;
}

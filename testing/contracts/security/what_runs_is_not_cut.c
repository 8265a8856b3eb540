/*
 * open(2), truncate(2), ETXTBSY: a file that is being executed is neither opened for writing nor cut, O_TRUNC with
 * O_RDONLY included; and O_TRUNC needs write permission whatever the access mode.
 */
#include "security.h"

static int attempt(void *unused)
{
    (void)unused;
    OUTCOME(open("running", O_WRONLY));
    OUTCOME(open("running", O_RDWR));
    OUTCOME(open("running", O_RDONLY | O_TRUNC));
    OUTCOME(open("running", O_WRONLY | O_TRUNC));
    OUTCOME(creat("running", 0755));
    OUTCOME(truncate("running", 0));
    OUTCOME(open("roots", O_RDONLY | O_TRUNC));
    OUTCOME(open("roots", O_RDONLY | O_CREAT | O_TRUNC, 0666));
    OUTCOME(open("roots", O_ACCMODE | O_TRUNC));
    OUTCOME(open("roots", O_PATH | O_TRUNC));
    OUTCOME(truncate("roots", 0));
    OUTCOME(open("written-only", O_RDONLY | O_TRUNC));
    struct stat meta;
    need(stat("running", &meta) == 0);
    check(meta.st_size > 4096, "the program has its length");
    need(stat("roots", &meta) == 0);
    show("length of root's file", meta.st_size);
    need(stat("written-only", &meta) == 0);
    show("length of the file that is only written", meta.st_size);
    return 0;
}

int main(int count, char **arguments)
{
    int ready[2];
    if (count > 1 && !strcmp(arguments[1], "waits")) {
        tell(1);
        for (;;)
            pause();
    }
    scratch();
    copy_self("running", NOBODY, NOBODY, 0777);
    put_file("roots", "root's", 0644);
    put_file("written-only", "text", 0622);
    need(pipe(ready) == 0);
    pid_t program = fork();
    if (program == 0) {
        dup2(ready[1], 1);
        execl("running", "running", "waits", NULL);
        _exit(99);
    }
    await(ready[0]);
    as_nobody(attempt, NULL);
    end_victim("the program", program);
    return 0;
}

/* open(2): O_CREAT, O_EXCL, O_TRUNC and O_DIRECTORY decide what happens to a name that exists or does not. */
#include "../contract.h"

int main(void)
{
    scratch();
    OUTCOME(open("absent", O_RDONLY));
    OUTCOME(open("new", O_WRONLY | O_CREAT, 0640));
    OUTCOME(open("new", O_WRONLY | O_CREAT | O_EXCL, 0640));
    put_file("full", "some text", 0600);
    struct stat meta;
    need(stat("new", &meta) == 0);
    say("mode %o", meta.st_mode & 07777);
    OUTCOME(open("full", O_WRONLY | O_TRUNC));
    need(stat("full", &meta) == 0);
    show("size after O_TRUNC", meta.st_size);
    OUTCOME(open("full", O_RDONLY | O_DIRECTORY));
    OUTCOME(open(".", O_RDONLY | O_DIRECTORY));
    OUTCOME(open(".", O_RDWR));
    OUTCOME(open(".", O_RDONLY | O_CREAT, 0600));
    OUTCOME(open("missing/name", O_RDONLY | O_CREAT, 0600));
    OUTCOME(open("full/name", O_RDONLY));
    OUTCOME(open("full/", O_RDONLY));
    OUTCOME(open("fresh/", O_RDONLY | O_CREAT, 0600));
    OUTCOME(open("", O_RDONLY));
    OUTCOME(open(BAD_POINTER, O_RDONLY));
    char name[300];
    memset(name, 'n', sizeof name);
    name[255] = 0;
    OUTCOME(open(name, O_WRONLY | O_CREAT, 0600));
    name[255] = 'n', name[256] = 0;
    OUTCOME(open(name, O_WRONLY | O_CREAT, 0600));
    return 0;
}

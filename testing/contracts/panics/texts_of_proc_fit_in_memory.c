/*
 * contract: timeout=60
 * proc(5): a user who opens /proc/self/maps hundreds of times and reads a byte of each does not fill the kernel's
 * memory: the text is kept within bounds, or he is the one who is refused or ended.
 */
#include "../contract.h"
#include <sys/resource.h>

static int attempt(void *unused)
{
    struct rlimit limit = { 4096, 4096 };
    char name[256], byte;
    int fd = -1;
    (void)unused;
    need(setresgid(65534, 65534, 65534) == 0 && setresuid(65534, 65534, 65534) == 0);
    setrlimit(RLIMIT_NOFILE, &limit);
    memset(name, 'n', 250);
    name[250] = 0;
    /* A path of nearly 4096 bytes, so that each range takes a long line. */
    for (int depth = 0; depth < 15; depth++)
        if (mkdir(name, 0700) == -1 || chdir(name) == -1)
            break;
    need((fd = open("file", O_RDWR | O_CREAT, 0600)) != -1 && ftruncate(fd, PAGE) == 0);
    for (int range = 0; range < 500; range++)
        need(mmap(NULL, PAGE, range % 2 ? PROT_READ : PROT_NONE, MAP_SHARED, fd, 0) != MAP_FAILED);
    static int opened[1000];
    for (size_t at = 0; at < COUNT_OF(opened); at++)
        opened[at] = open("/proc/self/maps", O_RDONLY);
    for (size_t at = 0; at < COUNT_OF(opened); at++)
        if (opened[at] == -1 || read(opened[at], &byte, 1) != 1)
            break;
    return 0;
}

static int removes(void *unused)
{
    (void)unused;
    execl("/bin/rm", "rm", "-rf", "tree", NULL);
    return 99;
}

int main(void)
{
    scratch();
    need(mkdir("tree", 0777) == 0 && chmod("tree", 0777) == 0 && chdir("tree") == 0);
    in_child(attempt, NULL);
    need(chdir("..") == 0);
    in_child(removes, NULL);
    say("the system goes on");
    return 0;
}

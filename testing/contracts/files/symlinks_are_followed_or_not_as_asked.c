/* symlink(7), open(2): O_NOFOLLOW and the l-calls see the link itself; a loop is ELOOP, a dangling link ENOENT. */
#include "../contract.h"

int main(void)
{
    scratch();
    put_file("target", "12345", 0600);
    RESULT(symlink("target", "link"));
    RESULT(symlink("nowhere", "dangling"));
    RESULT(symlink("loop", "loop"));
    RESULT(symlink("x", "link"));
    RESULT(symlink("", "empty"));
    struct stat meta;
    need(stat("link", &meta) == 0);
    show("stat size", meta.st_size);
    need(lstat("link", &meta) == 0);
    show("lstat size", meta.st_size);
    show("is a link", S_ISLNK(meta.st_mode));
    say("mode %o", meta.st_mode & 07777);
    OUTCOME(open("link", O_RDONLY | O_NOFOLLOW));
    OUTCOME(open("link", O_PATH | O_NOFOLLOW));
    OUTCOME(open("dangling", O_RDONLY));
    OUTCOME(open("dangling", O_WRONLY | O_CREAT | O_EXCL, 0600));
    OUTCOME(open("loop", O_RDONLY));
    RESULT(access("nowhere", F_OK));
    OUTCOME(open("dangling", O_WRONLY | O_CREAT, 0600));
    RESULT(access("nowhere", F_OK));
    RESULT(unlink("link"));
    RESULT(access("target", F_OK));
    char chain[16] = "target", next[16];
    for (int i = 0; i < 41; i++, strcpy(chain, next)) {
        snprintf(next, sizeof next, "chain%d", i);
        need(symlink(chain, next) == 0);
    }
    OUTCOME(open("chain39", O_RDONLY));
    OUTCOME(open("chain40", O_RDONLY));
    return 0;
}

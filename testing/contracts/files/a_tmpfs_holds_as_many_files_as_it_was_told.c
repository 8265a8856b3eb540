/* tmpfs(5): nr_inodes bounds the number of files, directories and links included; a removed one makes room. */
#include "../contract.h"
#include <sys/mount.h>
#include <sys/statfs.h>

int main(void)
{
    struct statfs state;
    scratch();
    need(mkdir("small", 0700) == 0);
    RESULT(mount("none", "small", "tmpfs", 0, "nr_inodes=5,size=1m"));
    RESULT(statfs("small", &state));
    say("files %ld", (long)state.f_files);
    OUTCOME(open("small/a", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    RESULT(mkdir("small/b", 0700));
    RESULT(symlink("a", "small/c"));
    RESULT(mkfifo("small/d", 0600));
    OUTCOME(open("small/e", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    RESULT(rmdir("small/b"));
    OUTCOME(open("small/e", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    OUTCOME(open("small/f", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    for (int fd = 3; fd < 8; fd++)
        close(fd);
    RESULT(umount("small"));
    return 0;
}

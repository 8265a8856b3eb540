/*
 * proc(5), protected_symlinks and protected_hardlinks, both on by default here: another user's link in a sticky
 * world-writable directory is not followed, and a file that the caller may not write is not linked to.
 */
#include "security.h"

static int attempt(void *unused)
{
    OUTCOME(open("shared/to_file", O_RDONLY));
    OUTCOME(open("shared/mine", O_RDONLY));
    OUTCOME(open("shared/owners", O_RDONLY));
    OUTCOME(open("open/to_file", O_RDONLY));
    OUTCOME(open("shared/to_dir/file", O_RDONLY));
    OUTCOME(open("shared/to_file", O_WRONLY | O_CREAT, 0644));
    OUTCOME(chdir("shared/to_dir"));
    struct stat meta;
    OUTCOME(stat("shared/to_file", &meta));
    OUTCOME(lstat("shared/to_file", &meta));
    char text[64];
    OUTCOME(readlink("shared/to_file", text, sizeof text));
    OUTCOME(truncate("shared/to_file", 0));
    section("hard links");
    OUTCOME(link("file", "open/readable"));
    OUTCOME(link("secret", "open/secret"));
    OUTCOME(link("setuid", "open/setuid"));
    OUTCOME(link("setgid", "open/setgid"));
    OUTCOME(link("writable", "open/writable"));
    OUTCOME(link("mine", "open/mine"));
    OUTCOME(link("my_setuid", "open/my_setuid"));
    OUTCOME(link("fifo", "open/fifo"));
    OUTCOME(link("shared/to_file", "open/link"));
    OUTCOME(linkat(AT_FDCWD, "shared/to_file", AT_FDCWD, "open/followed", AT_SYMLINK_FOLLOW));
    return unused != NULL;
}

static void setting(const char *name)
{
    char path[64], text[16];
    snprintf(path, sizeof path, "/proc/sys/fs/%s", name);
    need(get_file(path, text, sizeof text) > 0);
    text[strcspn(text, "\n")] = 0;
    show_text(name, text);
}

int main(void)
{
    setting("protected_symlinks");
    setting("protected_hardlinks");
    scratch();
    need(mkdir("shared", 0755) == 0 && chmod("shared", 01777) == 0 && mkdir("open", 0755) == 0
        && chmod("open", 0777) == 0);
    put_file("file", "text", 0644);
    put_file("secret", "text", 0600);
    put_file("setuid", "text", 0666);
    put_file("setgid", "text", 0666);
    put_file("writable", "text", 0666);
    put_file("mine", "text", 0600);
    put_file("my_setuid", "text", 0600);
    need(chmod("setuid", 04777) == 0 && chmod("setgid", 02777) == 0 && mkfifo("fifo", 0666) == 0);
    need(chmod("fifo", 0666) == 0 && chown("mine", NOBODY, NOBODY) == 0 && chown("my_setuid", NOBODY, NOBODY) == 0);
    need(chmod("my_setuid", 04700) == 0 && mkdir("dir", 0755) == 0);
    put_file("dir/file", "text", 0644);
    need(symlink("../file", "shared/to_file") == 0 && lchown("shared/to_file", 1000, 1000) == 0);
    need(symlink("../dir", "shared/to_dir") == 0 && lchown("shared/to_dir", 1000, 1000) == 0);
    need(symlink("../file", "shared/mine") == 0 && lchown("shared/mine", NOBODY, NOBODY) == 0);
    need(symlink("../file", "shared/owners") == 0);
    need(symlink("../file", "open/to_file") == 0 && lchown("open/to_file", 1000, 1000) == 0);
    show_status("attempt", as_nobody(attempt, NULL));
    section("root");
    OUTCOME(open("shared/to_file", O_RDONLY));
    OUTCOME(open("shared/mine", O_RDONLY));
    OUTCOME(link("setuid", "open/roots"));
    return 0;
}

/*
 * mount(2): MS_BIND shows a directory at a second place, changes are seen in both, and ".." leaves by the mount
 * point.
 */
#include "../contract.h"
#include <sys/mount.h>

int main(void)
{
    scratch();
    need(mkdir("source", 0755) == 0 && mkdir("source/sub", 0755) == 0 && mkdir("target", 0755) == 0);
    put_file("source/file", "text", 0644);
    put_file("alone", "", 0644);
    RESULT(mount("source", "target", NULL, MS_BIND, NULL));
    char text[8], path[64];
    get_file("target/file", text, sizeof text);
    show_text("seen", text);
    put_file("target/new", "new", 0644);
    get_file("source/new", text, sizeof text);
    show_text("seen back", text);
    need(chdir("target/sub/../..") == 0 && getcwd(path, sizeof path));
    show("\"..\" left by the mount point", strcmp(path, scratch_path) == 0);
    RESULT(mount(NULL, "target", NULL, MS_BIND | MS_REMOUNT | MS_RDONLY, NULL));
    OUTCOME(open("target/other", O_WRONLY | O_CREAT, 0600));
    OUTCOME(open("source/other", O_WRONLY | O_CREAT, 0600));
    RESULT(rename("target/new", "source/moved"));
    RESULT(mount("source/file", "alone", NULL, MS_BIND, NULL));
    get_file("alone", text, sizeof text);
    show_text("file over file", text);
    RESULT(unlink("alone"));
    RESULT(umount("alone"));
    RESULT(umount("target"));
    RESULT(access("target/file", F_OK));
    RESULT(mount("source", "alone", NULL, MS_BIND, NULL));
    return 0;
}

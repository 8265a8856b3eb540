/*
 * proc(5): /proc/self/fd lists every descriptor as a link to its file, pipe or socket; fdinfo tells offset and
 * flags.
 */
#include "../contract.h"
#include <dirent.h>
#include <sys/socket.h>

static void show_link(const char *what, int fd)
{
    char path[64], target[128] = { 0 };
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (readlink(path, target, sizeof target - 1) < 0) {
        say("%s: %s", what, errno_name(errno));
        return;
    }
    size_t prefix = strlen(scratch_path);
    const char *name = strncmp(target, scratch_path, prefix) ? target : target + prefix;
    say("%s: %.*s%s", what, (int)strcspn(name, "["), name, strchr(name, '[') ? "[number]" : "");
}

int main(void)
{
    scratch();
    put_file("file", "0123456789", 0600);
    int file = open("file", O_RDWR | O_APPEND), ends[2], socket_fd = socket(AF_UNIX, SOCK_STREAM, 0), gone;
    need(pipe(ends) == 0 && lseek(file, 7, SEEK_SET) == 7);
    put_file("gone", "", 0600);
    gone = open("gone", O_RDONLY);
    need(unlink("gone") == 0);
    show_link("pipe", ends[0]);
    show_link("socket", socket_fd);
    show_link("file", file);
    show_link("unlinked", gone);
    show_link("closed", 777);
    char path[64], text[256];
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", file);
    need(get_file(path, text, sizeof text) > 0);
    char *position = strstr(text, "pos:\t"), *flags = strstr(text, "flags:\t");
    need(position && flags);
    say("position %d, append %d, access %ld", atoi(position + 5), !!(strtol(flags + 7, NULL, 8) & O_APPEND),
        strtol(flags + 7, NULL, 8) & O_ACCMODE);
    DIR *directory = opendir("/proc/self/fd");
    struct dirent *entry;
    int listed = 0, wrong = 0;
    while ((entry = readdir(directory)))
        if (entry->d_name[0] != '.') {
            listed++;
            wrong += fcntl(atoi(entry->d_name), F_GETFD) == -1;
        }
    closedir(directory);
    say("at least ours %d, listed but closed %d", listed >= 6, wrong);
    snprintf(path, sizeof path, "/proc/self/fd/%d", gone);
    OUTCOME(open(path, O_RDONLY));
    return 0;
}

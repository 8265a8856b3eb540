/* proc(5): /proc/self/maps shows each mapping's rights, sharing, offset and path, ordered and without overlap. */
#include "../contract.h"

static char text[16384];

static void find(const char *what, void *address)
{
    char rights[8], path[128];
    unsigned long from, to, offset;
    need(get_file("/proc/self/maps", text, sizeof text) > 0);
    for (char *line = text; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        path[0] = 0;
        if (sscanf(line, "%lx-%lx %7s %lx %*s %*s%*[ ]%127[^\n]", &from, &to, rights, &offset, path) < 4)
            continue;
        if ((uintptr_t)address >= from && (uintptr_t)address < to) {
            char *name = strrchr(path, '/');
            say("%s: %s offset %lx pages %lu name %s", what, rights, offset, (to - from) / PAGE,
                name ? name + 1 : path);
            return;
        }
    }
    say("%s: not listed", what);
}

int main(void)
{
    scratch();
    put_file("mapped file", "x", 0600);
    int fd = open("mapped file", O_RDWR);
    need(ftruncate(fd, 8 * PAGE) == 0);
    char *file = mmap(NULL, 2 * PAGE, PROT_READ, MAP_SHARED, fd, 3 * PAGE);
    char *guard = mmap(NULL, 5 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    need(mprotect(guard + 2 * PAGE, PAGE, PROT_READ | PROT_EXEC) == 0);
    find("file", file);
    find("before", guard);
    find("middle", guard + 2 * PAGE);
    find("after", guard + 3 * PAGE);
    need(munmap(file, PAGE) == 0);
    find("file's second page", file + PAGE);
    find("file's first page", file);
    unsigned long from, to, last = 0;
    int disorder = 0, stack = strstr(text, "[stack]") != NULL, vdso = strstr(text, "[vdso]") != NULL;
    for (char *line = text; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
        if (sscanf(line, "%lx-%lx", &from, &to) == 2) {
            disorder += from < last || to <= from;
            last = to;
        }
    say("disorder %d stack %d vdso %d", disorder, stack, vdso);
    return 0;
}

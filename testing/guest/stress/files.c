/*
 * Files: create, write, truncate, append, map, link, rename and unlink over a few names, against a model of contents.
 *
 * Names point at contents in the model as they do in a directory, so links and renames share and move them.
 */
#include "stress.h"

#include <dirent.h>

enum { NAMES = 10, LARGEST = 20000, STEPS = 60 };

struct content {
    int names; /* How many names point here; 0 is free. */
    int size;
    unsigned char bytes[LARGEST];
};

static struct content contents[NAMES];
static int of_name[NAMES]; /* Index into contents, or -1. */
static char folder[64];

static const char *path_of(int name)
{
    static char paths[2][96];
    static int turn;
    turn = !turn;
    snprintf(paths[turn], sizeof paths[turn], "%s/name%d", folder, name);
    return paths[turn];
}

static struct content *content_of(int name) { return of_name[name] < 0 ? NULL : &contents[of_name[name]]; }

static void point(int name, int content)
{
    if (of_name[name] >= 0)
        contents[of_name[name]].names--;
    of_name[name] = content;
    if (content >= 0)
        contents[content].names++;
}

static void check_name(struct worker *self, int name)
{
    static unsigned char bytes[LARGEST + 1];
    struct content *content = content_of(name);
    struct stat meta;
    int fd = open(path_of(name), O_RDONLY | O_CLOEXEC);
    if (!content) {
        must_hold(self, fd == -1 && errno == ENOENT);
        return;
    }
    must_hold(self, fd != -1 && fstat(fd, &meta) == 0);
    if (meta.st_size != content->size || (int)meta.st_nlink != content->names)
        broken(self, "name%d has %lld bytes and %d links, not %d and %d", name, (long long)meta.st_size,
               (int)meta.st_nlink, content->size, content->names);
    ssize_t got = read(fd, bytes, sizeof bytes);
    if (got != content->size || memcmp(bytes, content->bytes, content->size))
        broken(self, "name%d reads back wrong (%zd of %d bytes)", name, got, content->size);
    close(fd);
}

static void create(struct worker *self, int name)
{
    int fd = open(path_of(name), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (content_of(name)) {
        must_hold(self, fd == -1 && errno == EEXIST);
        return;
    }
    must_hold(self, fd != -1);
    close(fd);
    int free = 0;
    while (contents[free].names)
        free++;
    contents[free].size = 0;
    point(name, free);
}

static void write_somewhere(struct worker *self, int name)
{
    struct content *content = content_of(name);
    if (!content)
        return;
    int at = (int)below(self, LARGEST), length = 1 + (int)below(self, 3000), append = below(self, 3) == 0;
    at = append ? content->size : at;
    if (at + length > LARGEST)
        length = LARGEST - at;
    if (length <= 0)
        return;
    if (at > content->size)
        memset(content->bytes + content->size, 0, at - content->size);
    for (int i = 0; i < length; i++)
        content->bytes[at + i] = (unsigned char)below(self, 256);
    int fd = open(path_of(name), O_WRONLY | O_CLOEXEC | (append ? O_APPEND : 0));
    must_hold(self, fd != -1);
    unsigned char *bytes = content->bytes + at;
    must_hold(self, (append ? write(fd, bytes, length) : pwrite(fd, bytes, length, at)) == length);
    close(fd);
    if (at + length > content->size)
        content->size = at + length;
}

static void cut(struct worker *self, int name)
{
    struct content *content = content_of(name);
    int size = (int)below(self, LARGEST);
    int result = truncate(path_of(name), size);
    if (!content) {
        must_hold(self, result == -1 && errno == ENOENT);
        return;
    }
    must_hold(self, result == 0);
    if (size > content->size)
        memset(content->bytes + content->size, 0, size - content->size);
    content->size = size;
}

/* Writes through a shared mapping and reads through a private one. */
static void map(struct worker *self, int name)
{
    struct content *content = content_of(name);
    if (!content || content->size == 0)
        return;
    int fd = open(path_of(name), O_RDWR | O_CLOEXEC);
    must_hold(self, fd != -1);
    unsigned char *shared = mmap(NULL, content->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    unsigned char *alone = mmap(NULL, content->size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    must_hold(self, shared != MAP_FAILED && alone != MAP_FAILED);
    close(fd);
    int at = (int)below(self, content->size);
    unsigned char value = (unsigned char)below(self, 256);
    alone[0] = (unsigned char)~content->bytes[0];
    content->bytes[at] = shared[at] = value;
    if (memcmp(shared, content->bytes, content->size))
        broken(self, "the shared map of name%d is not its content", name);
    must_hold(self, alone[0] == (unsigned char)~shared[0] || at == 0);
    must_hold(self, munmap(shared, content->size) == 0 && munmap(alone, content->size) == 0);
}

static void rename_to(struct worker *self, int from, int to)
{
    char old[96], new[96];
    snprintf(old, sizeof old, "%s", path_of(from));
    snprintf(new, sizeof new, "%s", path_of(to));
    int result = rename(old, new);
    if (!content_of(from)) {
        must_hold(self, result == -1 && errno == ENOENT);
        return;
    }
    must_hold(self, result == 0);
    if (of_name[from] == of_name[to])
        return; /* Two names of one file: rename does nothing. */
    int moved = of_name[from];
    point(to, moved);
    point(from, -1);
}

static void link_to(struct worker *self, int from, int to)
{
    char old[96], new[96];
    snprintf(old, sizeof old, "%s", path_of(from));
    snprintf(new, sizeof new, "%s", path_of(to));
    int result = link(old, new);
    if (!content_of(from))
        must_hold(self, result == -1 && errno == ENOENT);
    else if (content_of(to))
        must_hold(self, result == -1 && errno == EEXIST);
    else {
        must_hold(self, result == 0);
        point(to, of_name[from]);
    }
}

static void remove_name(struct worker *self, int name)
{
    int result = unlink(path_of(name));
    must_hold(self, content_of(name) ? result == 0 : result == -1 && errno == ENOENT);
    point(name, -1);
}

static void check_listing(struct worker *self)
{
    DIR *directory = opendir(folder);
    struct dirent *entry;
    int listed = 0, there = 0, name;
    must_hold(self, directory != NULL);
    while ((entry = readdir(directory)))
        if (sscanf(entry->d_name, "name%d", &name) == 1) {
            must_hold(self, name >= 0 && name < NAMES && content_of(name));
            listed++;
        }
    closedir(directory);
    for (name = 0; name < NAMES; name++)
        there += of_name[name] >= 0;
    if (listed != there)
        broken(self, "%d names listed, %d are there", listed, there);
}

void round_files(struct worker *self)
{
    strcpy(folder, "/tmp/stress-XXXXXX");
    must_hold(self, mkdtemp(folder) != NULL);
    for (int name = 0; name < NAMES; name++)
        of_name[name] = -1;
    memset(contents, 0, sizeof contents);
    for (int i = 0; i < STEPS; i++) {
        int name = (int)below(self, NAMES), other = (int)below(self, NAMES);
        switch (below(self, 8)) {
        case 0: case 1: create(self, name); break;
        case 2: write_somewhere(self, name); break;
        case 3: cut(self, name); break;
        case 4: map(self, name); break;
        case 5: rename_to(self, name, other); break;
        case 6: link_to(self, name, other); break;
        default: remove_name(self, name); break;
        }
        check_name(self, name);
        check_name(self, other);
        self->operations++;
    }
    check_listing(self);
    for (int name = 0; name < NAMES; name++)
        remove_name(self, name);
    must_hold(self, rmdir(folder) == 0);
}

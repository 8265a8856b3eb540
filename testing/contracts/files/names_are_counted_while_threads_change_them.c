/*
 * link(2), unlink(2), rename(2), open(2) O_TMPFILE: after threads made, moved and removed names of one file at once the
 * number of links is that of its names; a file whose last name is gone gets none again, one made without a name gets
 * one once; and directories that are moved into each other from both sides never form a circle.
 * contract: timeout=40
 */
#include "../contract.h"

#define ROUNDS 250
static pthread_barrier_t both;
static int opened;
static char opened_path[64];
static volatile long other_result;

static long links(void)
{
    struct stat meta;
    need(fstat(opened, &meta) == 0);
    return meta.st_nlink;
}

static void reopen(int flags, const char *path)
{
    if (opened > 0)
        close(opened);
    need((opened = open(path, flags, 0600)) > 0);
    snprintf(opened_path, sizeof opened_path, "/proc/self/fd/%d", opened);
}

/* Names the open file; 0 or the error. */
static int name_it(const char *name)
{
    return linkat(AT_FDCWD, opened_path, AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0 ? 0 : errno;
}

static void *beside(void *body)
{
    pthread_barrier_wait(&both);
    other_result = ((int (*)(void))body)();
    return NULL;
}

/* Runs both at once; the result of the first. */
static int race(int (*mine)(void), int (*theirs)(void))
{
    pthread_t other;
    need(pthread_create(&other, NULL, beside, (void *)theirs) == 0);
    pthread_barrier_wait(&both);
    int result = mine();
    need(pthread_join(other, NULL) == 0);
    return result;
}

static int links_b(void) { return link("a", "b") == 0 ? 0 : errno; }
static int names_b(void) { return name_it("b"); }
static int names_c(void) { return name_it("c"); }
static int unlinks_a(void) { return unlink("a") == 0 ? 0 : errno; }
static int unlinks_a_and_b(void) { return (unlink("b") == 0) + (unlink("a") == 0) + (unlink("b") == 0); }
static int renames_a(void) { return rename("a", "c") == 0 ? 0 : errno; }

static void last_name(void)
{
    long bad = 0;
    section("the last name");
    for (int round = 0; round < ROUNDS; round++) {
        reopen(O_RDWR | O_CREAT | O_EXCL, "a");
        int linked = race(round % 2 ? names_b : links_b, unlinks_a);
        bad += other_result != 0 || (linked != 0 && linked != ENOENT);
        bad += links() != (linked == 0) || (access("b", F_OK) == 0) != (linked == 0);
        unlink("b");
        bad += links() != 0 || name_it("d") != ENOENT;
    }
    show("bad", bad);
}

static void new_name(void)
{
    long bad = 0;
    section("a name that is removed while it is made");
    for (int round = 0; round < ROUNDS; round++) {
        reopen(O_RDWR | O_CREAT | O_EXCL, "a");
        race(links_b, unlinks_a_and_b);
        bad += links() != (access("b", F_OK) == 0);
        unlink("b");
        bad += links() != 0 || name_it("d") != ENOENT;
    }
    show("bad", bad);
}

static void moved_name(void)
{
    long bad = 0;
    section("a name that moves");
    for (int round = 0; round < ROUNDS; round++) {
        reopen(O_RDWR | O_CREAT | O_EXCL, "a");
        int linked = race(links_b, renames_a);
        bad += other_result != 0 || (linked != 0 && linked != ENOENT) || links() != 1 + (linked == 0);
        unlink("b");
        unlink("c");
        bad += links() != 0;
    }
    show("bad", bad);
}

static void without_name(void)
{
    long bad = 0;
    section("made without a name");
    reopen(O_RDWR | O_TMPFILE, ".");
    show("first name", name_it("b"));
    check(unlink("b") == 0 && links() == 0, "removed");
    say("named again: %s", errno_name(name_it("b")));
    reopen(O_RDWR | O_TMPFILE, ".");
    need(open("d", O_RDWR | O_CREAT, 0600) != -1);
    say("over another: %s", errno_name(name_it("d")));
    show("links", links());
    show("then", name_it("b"));
    need(unlink("d") == 0 && unlink("b") == 0);
    for (int round = 0; round < ROUNDS; round++) {
        reopen(O_RDWR | O_TMPFILE, ".");
        bad += race(names_b, names_c) != 0 || other_result != 0 || links() != 2;
        bad += unlink("b") != 0 || unlink("c") != 0 || links() != 0 || name_it("d") != ENOENT;
    }
    show("bad", bad);
}

static int moves_x_into_y(void) { return rename("x", "y/in/x") == 0 ? 0 : errno; }
static int moves_y_into_x(void) { return rename("y", "x/in/y") == 0 ? 0 : errno; }
static int swaps_x_and_y(void) { return syscall(SYS_renameat2, AT_FDCWD, "x", AT_FDCWD, "y/in", 2) == 0 ? 0 : errno; }

static void circles(void)
{
    long bad = 0;
    section("directories moved into each other");
    need(mkdir("x", 0700) == 0 && mkdir("y", 0700) == 0 && mkdir("x/in", 0700) == 0 && mkdir("y/in", 0700) == 0);
    for (int round = 0; round < ROUNDS; round++) {
        int moved = race(moves_x_into_y, moves_y_into_x);
        /* One of them; the other finds a path that is no more, or that it would be within itself. */
        bad += (moved == 0) + (other_result == 0) != 1;
        need(rename(moved == 0 ? "y/in/x" : "x/in/y", moved == 0 ? "x" : "y") == 0);
    }
    for (int round = 0; round < ROUNDS; round++) {
        int swapped = race(swaps_x_and_y, moves_y_into_x);
        bad += swapped == 0 && other_result == 0 && access("x/in/y", F_OK) != 0;
        if (access("x/in/y", F_OK) == 0)
            need(rename("x/in/y", "y") == 0);
        if (swapped == 0)
            need(syscall(SYS_renameat2, AT_FDCWD, "x", AT_FDCWD, "y/in", 2) == 0);
        struct stat x, y;
        bad += stat("x", &x) != 0 || stat("y", &y) != 0 || x.st_nlink != 3 || y.st_nlink != 3;
    }
    show("bad", bad);
}

int main(void)
{
    scratch();
    need(pthread_barrier_init(&both, NULL, 2) == 0);
    last_name();
    new_name();
    moved_name();
    without_name();
    circles();
    return 0;
}

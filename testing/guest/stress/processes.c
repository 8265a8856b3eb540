/*
 * Forks, execs and pipes: trees of processes whose private pages stay private, and byte streams that arrive in order.
 */
#include "stress.h"

#include <sys/socket.h>

enum { TREE_PAGES = 24, STAGES_MAX = 5, STREAM_MAX = 200000 };

struct branch {
    unsigned char *pages;
    int depth;
    unsigned char mark;
    volatile int *shared;
};

/* Every process of the tree writes its own mark; none may see another's, all see the shared counter. */
static int grow(struct worker *self, void *argument)
{
    struct branch mine = *(struct branch *)argument;
    pid_t children[3];
    int count = 0;
    self->random ^= (uint64_t)getpid() << 20 | 1;
    for (int page = 0; page < TREE_PAGES; page++) {
        if (mine.pages[page * PAGE] != mine.mark)
            broken(self, "page %d shows mark %d of another process, not %d", page, mine.pages[page * PAGE], mine.mark);
        if (below(self, 2))
            mine.pages[page * PAGE + 8] = (unsigned char)(mine.mark + page);
    }
    __atomic_add_fetch(mine.shared, 1, __ATOMIC_SEQ_CST);
    for (int want = mine.depth > 0 ? 1 + (int)below(self, 3) : 0; count < want; count++) {
        struct branch child = { mine.pages, mine.depth - 1, (unsigned char)below(self, 256), mine.shared };
        unsigned char keep = mine.mark;
        for (int page = 0; page < TREE_PAGES; page++)
            mine.pages[page * PAGE] = child.mark;
        children[count] = start(self, grow, &child);
        for (int page = 0; page < TREE_PAGES; page++)
            mine.pages[page * PAGE] = keep;
    }
    int descendants = 1;
    for (int i = 0; i < count; i++) {
        int status = finish(self, children[i]);
        if (!WIFEXITED(status))
            broken(self, "a child of the tree ended with status %x", status);
        descendants += WEXITSTATUS(status);
    }
    for (int page = 0; page < TREE_PAGES; page++)
        if (mine.pages[page * PAGE] != mine.mark)
            broken(self, "page %d lost its mark", page);
    return descendants;
}

static int exec_self(struct worker *self, void *code)
{
    char text[16];
    snprintf(text, sizeof text, "%d", *(int *)code);
    execl("/proc/self/exe", "stress", "exit", text, NULL);
    broken(self, "exec failed with errno %d", errno);
}

void round_forks(struct worker *self)
{
    static unsigned char *pages;
    static volatile int *shared;
    if (!pages) {
        pages = mmap(NULL, TREE_PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        must_hold(self, pages != MAP_FAILED && shared != MAP_FAILED);
    }
    struct branch root = { pages, 1 + (int)below(self, 2), (unsigned char)below(self, 256), shared };
    for (int page = 0; page < TREE_PAGES; page++)
        pages[page * PAGE] = root.mark;
    *shared = 0;
    int status = finish(self, start(self, grow, &root));
    if (!WIFEXITED(status) || WEXITSTATUS(status) != *shared)
        broken(self, "tree status %x, but %d processes counted themselves", status, *shared);
    self->operations += *shared;
    int code = (int)below(self, 256);
    status = finish(self, start(self, exec_self, &code));
    if (!WIFEXITED(status) || WEXITSTATUS(status) != code)
        broken(self, "exec of exit %d gave status %x", code, status);
    self->operations++;
}

/* The byte at a place of the stream. */
static unsigned char stream_byte(uint32_t seed, uint32_t at)
{
    return (unsigned char)((at * 2654435761u ^ seed) >> 24);
}

struct stage {
    int in, out;
    uint32_t seed, length;
};

static int forward(struct worker *self, void *argument)
{
    struct stage *stage = argument;
    unsigned char block[8192];
    ssize_t got;
    self->random ^= (uint64_t)stage->in << 33 | 1;
    while ((got = read(stage->in, block, 1 + below(self, sizeof block))) > 0)
        for (ssize_t done = 0; done < got;) {
            ssize_t wrote = write(stage->out, block + done, got - done);
            must_hold(self, wrote > 0);
            done += wrote;
        }
    must_hold(self, got == 0);
    return 0;
}

static int produce(struct worker *self, void *argument)
{
    struct stage *stage = argument;
    unsigned char block[8192];
    self->random ^= (uint64_t)stage->seed << 32 | 1;
    for (uint32_t at = 0; at < stage->length;) {
        uint32_t size = 1 + below(self, sizeof block);
        if (size > stage->length - at)
            size = stage->length - at;
        for (uint32_t i = 0; i < size; i++)
            block[i] = stream_byte(stage->seed, at + i);
        ssize_t wrote = write(stage->out, block, size);
        must_hold(self, wrote > 0);
        at += (uint32_t)wrote;
    }
    return 0;
}

static void join_ends(struct worker *self, int *ends)
{
    int result = below(self, 3) ? pipe2(ends, O_CLOEXEC) : socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends);
    must_hold(self, result == 0);
    if (below(self, 4) == 0)
        fcntl(ends[1], F_SETPIPE_SZ, 4096);
}

/* A chain of processes; the worker reads its end and checks every byte. */
void round_pipes(struct worker *self)
{
    int stages = 1 + (int)below(self, STAGES_MAX), ends[2];
    pid_t children[STAGES_MAX + 1];
    struct stage stage = { -1, -1, below(self, 1u << 31), below(self, STREAM_MAX) };
    join_ends(self, ends);
    stage.out = ends[1];
    for (int i = 0; i < stages; i++) {
        /* A fork copies every open end; a stage that kept a foreign write end would never see the end of its input. */
        int next[2] = { -1, -1 };
        if (i > 0) {
            join_ends(self, next);
            stage.in = ends[0], stage.out = next[1];
        }
        pid_t child = fork();
        must_hold(self, child != -1);
        if (child == 0) {
            close(i ? next[0] : ends[0]);
            _exit(i ? forward(self, &stage) : produce(self, &stage));
        }
        children[i] = child;
        close(stage.out);
        if (i > 0) {
            close(ends[0]);
            ends[0] = next[0];
        }
    }
    unsigned char block[5000];
    uint32_t at = 0;
    ssize_t got;
    while ((got = read(ends[0], block, 1 + below(self, sizeof block))) > 0) {
        for (ssize_t i = 0; i < got; i++, at++)
            if (block[i] != stream_byte(stage.seed, at))
                broken(self, "byte %u of %u through %d stages is wrong", at, stage.length, stages);
        self->operations++;
    }
    if (got != 0 || at != stage.length)
        broken(self, "stream ended at byte %u of %u (result %zd)", at, stage.length, got);
    close(ends[0]);
    for (int i = 0; i < stages; i++)
        must_hold(self, finish(self, children[i]) == 0);
}

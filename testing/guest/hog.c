/*
 * An unprivileged user takes all the memory it can get, in one way, while a small daemon of root and a program of
 * another user go on.
 *
 * hog KIND... : for each kind one line "KIND: took T, daemon B beats and F failures, bystander lives|died, D pages
 * lost", T being what ended the hog.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, HOG = 65001, BYSTANDER = 65002, MOST_CHILDREN = 24 };

/* What the processes tell each other. */
static struct {
    volatile long beats, failures;
    volatile int stop;
} *shared;

static void sleep_ms(long milliseconds) {
    struct timespec left = { milliseconds / 1000, milliseconds % 1000 * 1000000 };
    while (nanosleep(&left, &left) == -1 && errno == EINTR) {}
}

static char block[1 << 16];

/* ---- The kinds. Each takes until it is refused; a child does what its parent does, once more. ---- */

static void fill(int fd) {
    fcntl(fd, F_SETFL, O_NONBLOCK);
    while (write(fd, block, sizeof block) > 0) {}
}

static void pipes(void) {
    int ends[2];
    while (pipe(ends) == 0) {
        fcntl(ends[1], F_SETPIPE_SZ, 1 << 20);
        fill(ends[1]);
    }
}

static void sockets(void) {
    int ends[2];
    while (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0) {
        fill(ends[0]);
        fill(ends[1]);
    }
}

static void datagrams(void) {
    int ends[2];
    while (socketpair(AF_UNIX, SOCK_DGRAM, 0, ends) == 0)
        for (int i = 0; i < 2; i++)
            while (send(ends[i], block, 60000, MSG_DONTWAIT) > 0) {}
}

/* Packets that are little more than what is kept about them. */
static void packets(void) {
    int ends[2];
    struct rlimit most;
    getrlimit(RLIMIT_NOFILE, &most);
    most.rlim_cur = most.rlim_max;
    setrlimit(RLIMIT_NOFILE, &most);
    while (socketpair(AF_UNIX, SOCK_DGRAM, 0, ends) == 0)
        for (int i = 0; i < 2; i++)
            while (send(ends[i], block, 1, MSG_DONTWAIT) > 0) {}
}

static int pass(int through, int fd) {
    char control[CMSG_SPACE(sizeof fd)] = { 0 };
    struct iovec vector = { block, 1 };
    struct msghdr message = { .msg_iov = &vector, .msg_iovlen = 1, .msg_control = control,
        .msg_controllen = sizeof control };
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(head), &fd, sizeof fd);
    return sendmsg(through, &message, MSG_DONTWAIT);
}

/* Full sockets in each other: only the last one has a descriptor. */
static void in_flight(void) {
    int outer[2], inner[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, inner)) return;
    fill(inner[0]);
    fill(inner[1]);
    while (socketpair(AF_UNIX, SOCK_STREAM, 0, outer) == 0) {
        if (pass(outer[0], inner[0]) != 1 || pass(outer[0], inner[1]) != 1) return;
        close(inner[0]);
        close(inner[1]);
        fill(outer[0]);
        fill(outer[1]);
        memcpy(inner, outer, sizeof inner);
    }
}

/* Connections that are never accepted, full and closed: one descriptor for all. */
static void backlog(void) {
    struct sockaddr_un address = { AF_UNIX, "" };
    int length = 2 + snprintf(address.sun_path + 1, 60, "hog-%d", getpid()) + 1;
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    if (bind(listener, (void *)&address, length) || listen(listener, 4096)) return;
    for (int i = 0; i < 4000; i++) {
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0), size = 1 << 20;
        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
        if (connect(fd, (void *)&address, length)) return;
        fill(fd);
        close(fd);
    }
}

/* Connections that are never accepted and of which nothing is left but that: few descriptors for all. */
static void connections(void) {
    for (int i = 0; i < 64; i++) {
        struct sockaddr_un address = { AF_UNIX, "" };
        int length = 2 + snprintf(address.sun_path + 1, 60, "hog-%d-%d", getpid(), i) + 1;
        int listener = socket(AF_UNIX, SOCK_STREAM, 0);
        if (listener == -1 || bind(listener, (void *)&address, length) || listen(listener, 4096)) return;
        for (int fd;; close(fd)) {
            fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
            if (fd == -1) return;
            if (connect(fd, (void *)&address, length)) {
                close(fd);
                break;
            }
        }
    }
}

static void files(const char *place) {
    char name[64];
    for (int i = 0; i < 64; i++) {
        snprintf(name, sizeof name, "%s/hog-%d-%d", place, getpid(), i);
        int fd = open(name, O_CREAT | O_WRONLY, 0600);
        if (fd == -1) return;
        while (write(fd, block, sizeof block) > 0) {}
        close(fd);
    }
}

static void tmpfs(void) {
    files("/tmp");
    files("/dev/shm");
}

static void names(void) {
    char name[300];
    memset(block, 'n', sizeof block);
    snprintf(name, sizeof name, "/tmp/hog-%d", getpid());
    close(open(name, O_CREAT | O_WRONLY, 0600));
    for (long i = 0;; i++) {
        char other[300];
        int at = snprintf(other, sizeof other, "/tmp/hog-%d-%ld-", getpid(), i);
        memset(other + at, 'n', 240 - at);
        other[240] = 0;
        if (link(name, other)) return;
    }
}

static void links(void) {
    char name[64];
    memset(block, 'l', 4000);
    block[4000] = 0;
    for (long i = 0;; i++) {
        snprintf(name, sizeof name, "/tmp/hog-%d-%ld", getpid(), i);
        if (symlink(block, name)) return;
    }
}

static void memfds(void) {
    int fd;
    while ((fd = memfd_create("hog", 0)) != -1)
        for (int i = 0; i < 64; i++)
            if (write(fd, block, sizeof block) <= 0) return;
}

/* Shared memory that is not resident. */
static void shared_memory(void) {
    size_t size = 1 << 22;
    for (;;) {
        char *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED) return;
        memset(at, 1, size);
        madvise(at, size, MADV_DONTNEED);
    }
}

static void memory(void) {
    size_t size = 1 << 22;
    for (;;) {
        char *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED) return;
        memset(at, 1, size);
    }
}

static void tables(void) {
    size_t step = 1UL << 21, span = 1UL << 36;
    for (;;) {
        char *at = mmap(NULL, span, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (at == MAP_FAILED) return;
        for (size_t offset = 0; offset < span; offset += step)
            at[offset] = 1;
    }
}

static void ranges(void) {
    size_t count = 70000;
    char *at = mmap(NULL, count * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) return;
    for (size_t i = 0; i < count; i += 2)
        if (mprotect(at + i * PAGE, PAGE, PROT_NONE)) return;
}

static void timers(void) {
    struct sigevent event = { .sigev_notify = SIGEV_NONE };
    int id;
    while (syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &id) == 0) {}
}

static void signals(void) {
    union sigval value = { 0 };
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    while (sigqueue(getpid(), 40, value) == 0) {}
}

static void watches(void) {
    struct epoll_event event = { .events = EPOLLIN };
    int pipe_ends[2], set;
    if (pipe(pipe_ends)) return;
    int first = dup(pipe_ends[0]), last = first;
    for (int fd; (fd = dup(pipe_ends[0])) != -1 && fd < 900;)
        last = fd;
    while ((set = epoll_create1(0)) != -1)
        for (int fd = first; fd <= last; fd++)
            if (epoll_ctl(set, EPOLL_CTL_ADD, fd, &event)) return;
}

/* A small object for each descriptor, of every kind there is. */
static void objects(void) {
    struct rlimit most;
    getrlimit(RLIMIT_NOFILE, &most);
    most.rlim_cur = most.rlim_max;
    setrlimit(RLIMIT_NOFILE, &most);
    sigset_t some;
    sigemptyset(&some);
    sigaddset(&some, SIGUSR1);
    for (int fd = 0, i = 0; fd != -1; i++) {
        switch (i % 7) {
        case 0: fd = syscall(SYS_eventfd2, 0, 0); break;
        case 1: fd = syscall(SYS_timerfd_create, CLOCK_MONOTONIC, 0); break;
        case 2: fd = syscall(SYS_signalfd4, -1, &some, 8, 0); break;
        case 3: fd = epoll_create1(0); break;
        case 4: fd = memfd_create("object", 0); break;
        case 5: fd = syscall(SYS_pidfd_open, getpid(), 0); break;
        default: fd = socket(AF_UNIX, SOCK_DGRAM, 0); break;
        }
    }
}

static int sending;
static struct pollfd wishes[4096];

/* What a call keeps about thousands of descriptors while it sleeps. */
static void *poll_many(void *unused) {
    poll(wishes, 4000, -1);
    return unused;
}

static void *send_large(void *unused) {
    static char large[200000];
    for (;;) send(sending, large, sizeof large, 0);
    return unused;
}

static void in_threads(void *(*act)(void *)) {
    pthread_attr_t small;
    pthread_t thread;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 16384);
    for (int i = 0; i < 100 && pthread_create(&thread, &small, act, NULL) == 0; i++) {}
}

static void polls(void) {
    int ends[2];
    struct rlimit most;
    getrlimit(RLIMIT_NOFILE, &most);
    most.rlim_cur = most.rlim_max;
    setrlimit(RLIMIT_NOFILE, &most);
    if (pipe(ends)) return;
    for (int i = 0; i < 4000; i++)
        wishes[i] = (struct pollfd){ ends[0], POLLIN, 0 };
    in_threads(poll_many);
    sleep_ms(2000);
}

/* Packets that were copied and wait for room. */
static void senders(void) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_DGRAM, 0, ends)) return;
    sending = ends[0];
    in_threads(send_large);
    sleep_ms(2000);
}

/* Tables of descriptors, and processes that have little else. */
static void descriptor_tables(void) {
    struct rlimit most;
    getrlimit(RLIMIT_NOFILE, &most);
    most.rlim_cur = most.rlim_max;
    setrlimit(RLIMIT_NOFILE, &most);
    while (dup(0) != -1) {}
    for (int i = 0; i < 40; i++) {
        pid_t child = fork();
        if (child == -1) return;
        if (child == 0) {
            sleep_ms(2500);
            _exit(0);
        }
    }
    sleep_ms(2000);
}

/* Names that were looked for and are not there. */
static void lookups(void) {
    char name[300];
    struct stat what;
    memset(name, 'x', sizeof name);
    for (long i = 0; i < 30000; i++) {
        snprintf(name, sizeof name, "/tmp/missing-%d-%ld-%0200d", getpid(), i, 7);
        stat(name, &what);
    }
}

/* Listings that were begun, of one large directory. */
static void listings(void) {
    char name[300], entries[400];
    snprintf(name, sizeof name, "/tmp/hog-%d", getpid());
    if (mkdir(name, 0700) || chdir(name)) return;
    for (long i = 0; i < 400; i++) {
        snprintf(name, sizeof name, "%ld-%0240d", i, 7);
        close(open(name, O_CREAT | O_WRONLY, 0600));
    }
    for (int fd; (fd = open(".", O_RDONLY | O_DIRECTORY)) != -1;)
        if (syscall(SYS_getdents64, fd, entries, sizeof entries) <= 0) return;
}

/* Directories in directories: an inode each, and nothing else. */
static void directories(void) {
    char name[64];
    for (long i = 0;; i++) {
        snprintf(name, sizeof name, "/tmp/hog-%d-%ld", getpid(), i);
        if (mkdir(name, 0700)) return;
    }
}

/* A lock of its own on each of many files. */
static void flocks(void) {
    struct rlimit most;
    getrlimit(RLIMIT_NOFILE, &most);
    most.rlim_cur = most.rlim_max;
    setrlimit(RLIMIT_NOFILE, &most);
    for (int fd; (fd = memfd_create("lock", 0)) != -1;)
        if (flock(fd, LOCK_EX)) return;
}

static int lock_file;

static void *want_lock(void *unused) {
    struct flock whole = { .l_type = F_WRLCK };
    fcntl(lock_file, 38 /* F_OFD_SETLKW */, &whole);
    return unused;
}

/* Whole files unlocked again in every other byte, and many who wait for them. */
static void unlocks(void) {
    char name[64];
    snprintf(name, sizeof name, "/tmp/hog-%d", getpid());
    int held = open(name, O_CREAT | O_RDWR, 0600);
    lock_file = open(name, O_RDWR);
    struct flock one = { .l_type = F_WRLCK };
    if (fcntl(held, F_SETLK, &one)) return;
    in_threads(want_lock);
    for (long at = 1;; at += 2) {
        one = (struct flock){ .l_type = F_UNLCK, .l_start = at, .l_len = 1 };
        if (fcntl(held, F_SETLK, &one)) return;
    }
}

static void queues(void) {
    struct mq_attr shape = { .mq_maxmsg = 10, .mq_msgsize = 8192 };
    char name[64];
    snprintf(name, sizeof name, "hog-%d", getpid());
    for (;;) {
        int fd = syscall(SYS_mq_open, name, O_CREAT | O_RDWR | O_NONBLOCK, 0600, &shape);
        if (fd == -1) return;
        syscall(SYS_mq_unlink, name);
        while (syscall(SYS_mq_timedsend, fd, block, 8192, 1, NULL) == 0) {}
    }
}

static void locks(void) {
    for (int fd; (fd = memfd_create("locks", 0)) != -1;)
        for (int i = 0; i < 400; i++) {
            struct flock one = { .l_type = F_WRLCK, .l_start = i * 2, .l_len = 1 };
            if (fcntl(fd, F_SETLK, &one)) return;
        }
}

static void *idle(void *unused) {
    for (;;) pause();
    return unused;
}

static void threads(void) {
    pthread_attr_t small;
    pthread_t thread;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 16384);
    while (pthread_create(&thread, &small, idle, NULL) == 0) {}
}

/* Programs that do not exist, with long arguments, many at once. */
static void arguments(void) {
    static char *words[32];
    memset(block, 'a', sizeof block);
    block[sizeof block - 1] = 0;
    for (int i = 0; i < 30; i++)
        words[i] = block;
    for (int i = 0; i < 10; i++)
        execv("/bin/does-not-exist", words);
}

/* Texts of /proc that are as long as a program makes them, each begun and kept. */
static void texts(void) {
    char byte;
    int fd;
    size_t count = 20000;
    char *at = mmap(NULL, count * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    for (size_t i = 0; at != MAP_FAILED && i < count; i += 2)
        if (mprotect(at + i * PAGE, PAGE, PROT_NONE)) break;
    for (int i = 0; i < 300 && (fd = open(i % 8 ? "/proc/self/maps" : "/proc/self/smaps", O_RDONLY)) != -1; i++)
        if (read(fd, &byte, 1) != 1) return;
}

static void ptys(void) {
    int fd;
    while ((fd = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK)) != -1) {
        while (write(fd, block, 4096) > 0) {}
    }
}

static void zombies(void) {
    for (pid_t child; (child = fork()) != -1;)
        if (child == 0) _exit(0);
}

static void descriptors(void) {
    while (open("/dev/null", O_RDONLY) != -1) {}
}

/* Programs that crash, more than there is room for dumps. */
static void dumps(void) {
    for (int i = 0; i < 40; i++) {
        pid_t child = fork();
        if (child == -1) return;
        if (child == 0) raise(SIGSEGV);
        waitpid(child, NULL, 0);
    }
}

static const struct { const char *name; void (*take)(void); } kinds[] = {
    { "memory", memory }, { "pipes", pipes }, { "sockets", sockets }, { "datagrams", datagrams },
    { "packets", packets }, { "in-flight", in_flight }, { "backlog", backlog }, { "tmpfs", tmpfs }, { "names", names },
    { "links", links },
    { "memfds", memfds }, { "shared-memory", shared_memory }, { "tables", tables }, { "ranges", ranges },
    { "timers", timers },
    { "signals", signals }, { "watches", watches }, { "queues", queues }, { "locks", locks }, { "threads", threads },
    { "arguments", arguments }, { "texts", texts }, { "ptys", ptys }, { "zombies", zombies },
    { "descriptors", descriptors }, { "dumps", dumps }, { "connections", connections }, { "objects", objects },
    { "polls", polls }, { "senders", senders }, { "descriptor-tables", descriptor_tables }, { "lookups", lookups },
    { "listings", listings }, { "directories", directories }, { "flocks", flocks }, { "unlocks", unlocks },
};

/* ---- Who must go on. ---- */

static void become(uid_t uid) {
    if (setresgid(uid, uid, uid) || setresuid(uid, uid, uid)) _exit(98);
}

/* One of what a daemon does: a child, some memory, a pipe, a file. */
static int beat(void) {
    int ends[2], status;
    char *at = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return 1;
    memset(at, 1, 4 * PAGE);
    munmap(at, 4 * PAGE);
    if (pipe(ends)) return 1;
    int bad = write(ends[1], "beat", 4) != 4;
    close(ends[0]);
    close(ends[1]);
    int fd = open("/run-daemon", O_CREAT | O_TRUNC | O_WRONLY, 0600);
    bad |= fd == -1 || write(fd, block, 100) != 100;
    close(fd);
    pid_t child = fork();
    if (child == 0) _exit(0);
    return bad || child == -1 || waitpid(child, &status, 0) != child || status;
}

static pid_t daemon_of_root(void) {
    pid_t child = fork();
    if (child == 0) {
        while (!shared->stop) {
            if (beat()) shared->failures++;
            shared->beats++;
            sleep_ms(5);
        }
        _exit(0);
    }
    return child;
}

static pid_t bystander(void) {
    pid_t child = fork();
    if (child == 0) {
        become(BYSTANDER);
        static char own[1 << 20];
        size_t size = 32 * PAGE;
        char *fresh = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (fresh == MAP_FAILED) _exit(97);
        while (!shared->stop) {
            for (size_t at = 0; at < sizeof own; at += PAGE)
                own[at]++;
            /* It needs pages that it did not have before. */
            for (size_t at = 0; at < size; at += PAGE)
                fresh[at]++;
            madvise(fresh, size, MADV_DONTNEED);
            sleep_ms(5);
        }
        _exit(0);
    }
    return child;
}

/* Takes, and lets children take too, then holds what there is for a while. */
static pid_t hog(int kind) {
    pid_t child = fork();
    if (child) return child;
    setpgid(0, 0);
    become(HOG);
    struct rlimit most = { 4096, 4096 };
    setrlimit(RLIMIT_NOFILE, &most);
    for (int i = 0; i < MOST_CHILDREN; i++)
        if (fork() == 0) {
            kinds[kind].take();
            sleep_ms(600);
            _exit(0);
        }
    kinds[kind].take();
    sleep_ms(600);
    _exit(0);
}

static long free_pages(void) {
    static char text[4096];
    int fd = open("/proc/meminfo", O_RDONLY);
    ssize_t length = read(fd, text, sizeof text - 1);
    close(fd);
    if (length < 0) return 0;
    text[length] = 0;
    char *at = strstr(text, "MemFree:");
    return at ? atol(at + 8) / 4 : 0;
}

static const char *how(int status) {
    static char text[32];
    if (WIFSIGNALED(status)) snprintf(text, sizeof text, "signal %d", WTERMSIG(status));
    else snprintf(text, sizeof text, "limits");
    return text;
}

static int run(int kind) {
    int status = 0, other = 0;
    memset((void *)shared, 0, sizeof *shared);
    pid_t one = daemon_of_root(), two = bystander();
    sleep_ms(100);
    long before = free_pages();
    pid_t three = hog(kind);
    /* At most ten seconds, then whatever is left of the hog is ended. */
    for (int i = 0; i < 500 && waitpid(three, &status, WNOHANG) == 0; i++)
        sleep_ms(20);
    sleep_ms(700);
    kill(-three, SIGKILL);
    waitpid(three, NULL, 0);
    while (waitpid(-three, NULL, WNOHANG) > 0) {}
    /* 150 ms in rounds of this program: on a busy host the whole machine may stand still for a while. */
    long beats = shared->beats;
    for (int i = 0; i < 15 && shared->beats == beats; i++)
        sleep_ms(10);
    int runs = shared->beats > beats;
    if (system("rm -rf /tmp/hog-* /dev/shm/hog-* 2>/dev/null; cd /tmp && find . -name 'hog-*' -delete")) {}
    sleep_ms(100);
    long lost = before - free_pages();
    shared->stop = 1;
    int alive = waitpid(one, &other, 0) == one && other == 0;
    int lives = waitpid(two, &other, 0) == two && other == 0;
    const char *daemon = !alive ? "died" : runs ? "lives" : "stands still";
    printf("%s: ended by %s, daemon %s after %ld beats and %ld failures, bystander %s, %ld pages lost\n",
        kinds[kind].name, how(status), daemon, shared->beats, shared->failures, lives ? "lives" : "died", lost);
    fflush(stdout);
    return !(alive && runs && lives);
}

int main(int count, char **words) {
    shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) return 2;
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    int bad = 0;
    for (int i = 1; i < count; i++)
        for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++)
            if (strcmp(words[i], "all") == 0 || strcmp(words[i], kinds[kind].name) == 0) bad += run(kind);
    printf("hogs are over, %d won\n", bad);
    return bad != 0;
}

/*
 * /proc/meminfo (proc(5)): AnonPages is the memory that programs have touched, Shmem what they share and files in a
 * tmpfs, which count as Cached too, Mapped what of these is mapped, PageTables what maps it all. All of them fall back.
 * sysinfo(2) tells shared memory as well, and nr_anon_pages of /proc/vmstat is AnonPages in pages.
 */
#include "../contract.h"
#include <sys/sysinfo.h>

#define MIB (1L << 20)
/* Linux keeps parts of its counters by processor, and other programs run. */
#define NOISE (2048L)

static long number_of(const char *path, const char *name)
{
    static char text[65536];
    need(get_file(path, text, sizeof text) > 0);
    char *at = strstr(text, name);
    need(at != NULL);
    return atol(at + strlen(name));
}

static long kib(const char *name) { return number_of("/proc/meminfo", name); }

/* Whether a figure has become about `more` MiB larger than it was. */
static int grew(const char *name, long before, long more)
{
    long now = kib(name) - before;
    return now > more * 1024 - NOISE && now < more * 1024 + NOISE;
}

static char *mapped(size_t size, int flags, int fd)
{
    char *at = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, fd, 0);
    need(at != MAP_FAILED);
    return at;
}

static void touch(char *at, size_t size)
{
    for (size_t byte = 0; byte < size; byte += PAGE)
        at[byte] = 1;
}

int main(void)
{
    scratch();
    section("private memory");
    long anon = kib("AnonPages:"), pages = number_of("/proc/vmstat", "nr_anon_pages ");
    char *memory = mapped(24 * MIB, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    need(madvise(memory, 24 * MIB, MADV_NOHUGEPAGE) == 0);
    check(grew("AnonPages:", anon, 0), "a mapping alone is none");
    touch(memory, 24 * MIB);
    check(grew("AnonPages:", anon, 24), "what is touched is");
    long more = number_of("/proc/vmstat", "nr_anon_pages ") - pages;
    check(more > 22 * 256 && more < 26 * 256, "vmstat says it in pages");
    munmap(memory, 24 * MIB);
    check(grew("AnonPages:", anon, 0), "it falls back");

    section("page tables");
    long tables = kib("PageTables:");
    memory = mapped(4096 * MIB, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
    need(madvise(memory, 4096 * MIB, MADV_NOHUGEPAGE) == 0);
    for (long at = 0; at < 4096; at += 2)
        memory[at * MIB] = 1;
    check(grew("PageTables:", tables, 8), "each page far from others needs one");
    munmap(memory, 4096 * MIB);
    check(grew("PageTables:", tables, 0), "they fall back");

    section("shared memory");
    struct sysinfo info;
    need(sysinfo(&info) == 0);
    unsigned long shared = info.sharedram;
    long shmem = kib("Shmem:"), cached = kib("Cached:"), maps = kib("Mapped:");
    anon = kib("AnonPages:");
    memory = mapped(12 * MIB, MAP_SHARED | MAP_ANONYMOUS, -1);
    touch(memory, 12 * MIB);
    check(grew("Shmem:", shmem, 12), "Shmem grows by what is touched");
    check(grew("Cached:", cached, 12), "so does Cached");
    check(grew("Mapped:", maps, 12), "it is mapped");
    check(grew("AnonPages:", anon, 0), "private memory does not grow");
    need(sysinfo(&info) == 0);
    long sum = (long)((info.sharedram - shared) * info.mem_unit);
    check(sum > 10 * MIB && sum < 14 * MIB, "sysinfo says so");
    munmap(memory, 12 * MIB);
    check(grew("Shmem:", shmem, 0), "it falls back");

    section("files in memory");
    int fd = open("file", O_CREAT | O_RDWR, 0644);
    need(fd != -1);
    static char block[1 << 20];
    for (int written = 0; written < 12; written++)
        need(write(fd, block, sizeof block) == sizeof block);
    check(grew("Shmem:", shmem, 12), "Shmem grows by what is written");
    check(grew("Cached:", cached, 12), "so does Cached");
    check(grew("Mapped:", maps, 0), "it is not mapped");
    memory = mapped(12 * MIB, MAP_SHARED, fd);
    touch(memory, 12 * MIB);
    check(grew("Mapped:", maps, 12), "now it is");
    munmap(memory, 12 * MIB);
    check(grew("Mapped:", maps, 0), "no more");
    need(unlink("file") == 0);
    close(fd);
    check(grew("Shmem:", shmem, 0), "it goes with the file");

    section("a memfd");
    fd = memfd_create("memory", 0);
    need(fd != -1 && ftruncate(fd, 12 * MIB) == 0);
    check(grew("Shmem:", shmem, 0), "a hole is none");
    memory = mapped(12 * MIB, MAP_SHARED, fd);
    touch(memory, 12 * MIB);
    check(grew("Shmem:", shmem, 12), "what is touched is");
    need(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 8 * MIB) == 0);
    check(grew("Shmem:", shmem, 4), "less what is punched out");
    check(grew("Mapped:", maps, 4), "which is not mapped any more");
    munmap(memory, 12 * MIB);
    close(fd);
    check(grew("Shmem:", shmem, 0), "it falls back");
    return 0;
}

/*
 * Starts workers without privilege, and ends everything of theirs between rounds.
 */
#include "supervise.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <mqueue.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

int board_fd, watched_pids[4];
uint8_t secret[16];
char without[512];
unsigned long memory_limit;

static void limit(int which, rlim_t most)
{
    struct rlimit both = { most, most };
    setrlimit(which, &both);
}

void write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY);
    if (fd != -1 && write(fd, text, strlen(text)) == -1)
        fd = -1; /* A kernel without it needs nothing. */
    if (fd != -1)
        close(fd);
}

static void drop_everything(void)
{
    limit(RLIMIT_NPROC, 48);
    limit(RLIMIT_NOFILE, 128);
    limit(RLIMIT_FSIZE, 1 << 20);
    limit(RLIMIT_AS, memory_limit);
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_MEMLOCK, 1 << 20);
    limit(RLIMIT_CPU, 4);
    write_file("/proc/self/oom_score_adj", "900");
    if (setgroups(0, NULL) || setresgid(WORKER_ID, WORKER_ID, WORKER_ID) || setresuid(WORKER_ID, WORKER_ID, WORKER_ID))
        _exit(42);
}

/* Returns 1 if a worker started. */
int start_worker(struct slot *slot, int index, uint64_t seed, int number, const char *spec)
{
    char words[10][48];
    snprintf(words[0], 48, "%lu", (unsigned long)seed);
    snprintf(words[1], 48, "%d", number);
    snprintf(words[2], 48, "%d", index);
    for (int i = 0; i < 16; i++)
        snprintf(words[3] + 2 * i, 3, "%02x", secret[i] ^ TURN);
    for (int i = 0; i < 4; i++)
        snprintf(words[4 + i], 48, "%d", watched_pids[i]);
    int pid = fork();
    if (pid == -1)
        return 0;
    if (pid == 0) {
        setsid();
        int null = open("/dev/null", O_RDWR);
        for (int fd = 0; fd < 3; fd++)
            dup2(null, fd);
        dup2(board_fd, BOARD_FD);
        syscall(SYS_close_range, 3, BOARD_FD - 1, 0);
        drop_everything();
        if (chdir("/tmp/fuzz"))
            _exit(42);
        execl("/bin/fuzz", "fuzz", "work", words[0], words[1], spec, words[2], words[3], words[4], words[5], words[6],
              words[7], without, NULL);
        _exit(42);
    }
    *slot = (struct slot){ .pid = pid, .number = number, .since = now_ms() };
    return 1;
}

/* Number of processes of the workers' user. */
static int left(void)
{
    DIR *folder = opendir("/proc");
    int count = 0;
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        char path[300], line[128];
        int uid;
        snprintf(path, sizeof path, "/proc/%s/status", entry->d_name);
        FILE *file = entry->d_name[0] >= '1' && entry->d_name[0] <= '9' ? fopen(path, "r") : NULL;
        while (file && fgets(line, sizeof line, file))
            count += sscanf(line, "Uid: %d", &uid) == 1 && uid == WORKER_ID;
        if (file)
            fclose(file);
    }
    if (folder)
        closedir(folder);
    return count;
}

/* Kills every process of the workers' user, as that user: it may kill no other. */
void sweep(void)
{
    int others = 1;
    for (int i = 0; others && i < 500; i++) {
        int pid = fork();
        if (pid == 0) {
            setsid();
            if (setresuid(WORKER_ID, WORKER_ID, WORKER_ID) == 0)
                kill(-1, SIGKILL);
            _exit(0);
        }
        while (pid > 0 && waitpid(pid, NULL, 0) == -1 && errno == EINTR)
            ;
        others = left();
        if (others)
            usleep(20000);
    }
    if (others)
        finding("unkillable", "%d processes of the workers are still there after ten seconds of SIGKILL", others);
}

/* A folder for the workers that nothing was in before, with an attribute that only root may change. */
void fresh_folder(void)
{
    chdir("/");
    mkdir("/tmp/fuzz", 0755);
    umount2("/tmp/fuzz", MNT_DETACH);
    if (mount("tmpfs", "/tmp/fuzz", "tmpfs", 0, "size=8m,nr_inodes=2000,mode=1777"))
        perror("fuzz: /tmp/fuzz");
    if (setxattr("/tmp/fuzz", "security.fuzz", "there", 5, 0))
        perror("fuzz: attribute");
    unlink("/dev/shm/x");
    mq_unlink("/fuzz-a");
    mq_unlink("/fuzz-b");
}

/* proc(5), pthread_setname_np(3): /proc/self/task lists every thread with its own comm, and names are kept apart. */
#include "../contract.h"
#include <dirent.h>
#include <sys/prctl.h>

static pthread_barrier_t barrier;

static void *thread(void *name)
{
    prctl(PR_SET_NAME, name);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    char path[300], text[64];
    int found[3] = { 0 }, tasks = 0;
    pthread_barrier_init(&barrier, NULL, 3);
    prctl(PR_SET_NAME, "the leader");
    need(pthread_create(&threads[0], NULL, thread, "first") == 0);
    need(pthread_create(&threads[1], NULL, thread, "second") == 0);
    pthread_barrier_wait(&barrier);
    DIR *directory = opendir("/proc/self/task");
    struct dirent *entry;
    while (directory && (entry = readdir(directory))) {
        if (entry->d_name[0] == '.')
            continue;
        tasks++;
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
        get_file(path, text, sizeof text);
        found[0] += strcmp(text, "the leader\n") == 0;
        found[1] += strcmp(text, "first\n") == 0;
        found[2] += strcmp(text, "second\n") == 0;
    }
    say("tasks %d, names found %d %d %d", tasks, found[0], found[1], found[2]);
    get_file("/proc/self/comm", text, sizeof text);
    show("the process is named after its leader", strcmp(text, "the leader\n") == 0);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    RESULT(access("/proc/thread-self/comm", F_OK));
    return 0;
}

/* shmat(2), shmctl(2): segments are shared across fork, counted by attach, removed when the last one detaches. */
#include "../contract.h"
#include <sys/ipc.h>
#include <sys/shm.h>

static int child(void *memory)
{
    strcpy(memory, "from the child");
    return shmdt(memory) ? 1 : 0;
}

int main(void)
{
    int segment = shmget(IPC_PRIVATE, 3 * PAGE, IPC_CREAT | 0600);
    struct shmid_ds state;
    need(segment != -1);
    char *one = shmat(segment, NULL, 0), *two = shmat(segment, NULL, SHM_RDONLY);
    need(one != (void *)-1 && two != (void *)-1);
    show("fresh", one[0]);
    show_status("child", in_child(child, one));
    show_text("seen through both", two);
    RESULT(shmctl(segment, IPC_STAT, &state));
    say("size %zu attached %lu", state.shm_segsz, (unsigned long)state.shm_nattch);
    RESULT(shmctl(segment, IPC_RMID, NULL));
    show_text("still there", one);
    RESULT(shmdt(one));
    RESULT(shmdt(two));
    RESULT(shmdt(two));
    OUTCOME(shmat(segment, NULL, 0));
    RESULT(shmget(IPC_PRIVATE, 0, IPC_CREAT | 0600));
    RESULT(shmget(0x7331, PAGE, 0600));
    int named = shmget(0x7332, PAGE, IPC_CREAT | IPC_EXCL | 0600);
    RESULT(shmget(0x7332, PAGE, IPC_CREAT | IPC_EXCL | 0600));
    show("found by its key", shmget(0x7332, PAGE, 0600) == named);
    RESULT(shmget(0x7332, 2 * PAGE, 0600));
    RESULT(shmctl(named, IPC_RMID, NULL));
    return 0;
}

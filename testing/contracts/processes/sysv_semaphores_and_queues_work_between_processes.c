/* sysvipc(7): semaphores count and undo, message queues select by type, both vanish when removed. */
#include "../contract.h"
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>

struct note { long type; char text[16]; };
static int set, queue;

static int child(void *unused)
{
    (void)unused;
    struct sembuf take = { 0, -1, SEM_UNDO };
    struct note note = { 7, "from the child" };
    need(semop(set, &take, 1) == 0);
    return msgsnd(queue, &note, 15, 0) ? 1 : 0;
}

int main(void)
{
    set = semget(IPC_PRIVATE, 1, 0600);
    queue = msgget(IPC_PRIVATE, 0600);
    need(set != -1 && queue != -1);
    struct sembuf give = { 0, 2, 0 }, take = { 0, -3, IPC_NOWAIT };
    RESULT(semop(set, &give, 1));
    RESULT(semctl(set, 0, GETVAL));
    RESULT(semop(set, &take, 1));
    show_status("child", in_child(child, NULL));
    show("undone at exit", semctl(set, 0, GETVAL));
    struct note note = { 3, "own" };
    RESULT(msgsnd(queue, &note, 4, 0));
    RESULT(msgrcv(queue, &note, 16, 3, 0));
    RESULT(msgrcv(queue, &note, 4, 0, 0));
    RESULT(msgrcv(queue, &note, 16, 0, 0));
    say("type %ld text %s", note.type, note.text);
    RESULT(msgrcv(queue, &note, 16, 0, IPC_NOWAIT));
    RESULT(semctl(set, 0, IPC_RMID));
    RESULT(msgctl(queue, IPC_RMID, NULL));
    RESULT(semop(set, &give, 1));
    RESULT(msgsnd(queue, &note, 4, 0));
    return 0;
}

/*
 * fork(2): after fork neither side sees the other's writes, in data, heap, stack and private file pages, deep
 * trees included.
 */
#include "../contract.h"

static char data[3 * PAGE] = { 'd' };
static char *heap, *file;

static int child(void *stack)
{
    char *local = stack;
    data[0] = heap[0] = local[0] = file[0] = 'c';
    pid_t grandchild = fork();
    if (grandchild == 0) {
        say("grandchild sees %c %c %c %c", data[0], heap[0], local[0], file[0]);
        data[0] = heap[0] = local[0] = file[0] = 'g';
        _exit(0);
    }
    reap(grandchild);
    say("child sees %c %c %c %c", data[0], heap[0], local[0], file[0]);
    return 0;
}

int main(void)
{
    scratch();
    put_file("file", "file", 0600);
    char stack[64] = "stack", text[8];
    heap = malloc(100);
    heap[0] = 'h';
    file = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, open("file", O_RDONLY), 0);
    pid_t pid = spawn(child, stack);
    data[1] = heap[1] = stack[1] = file[1] = 'p';
    reap(pid);
    say("parent sees %c %c %c %c", data[0], heap[0], stack[0], file[0]);
    get_file("file", text, sizeof text);
    show_text("file", text);
    int wrong = 0;
    for (int round = 0; round < 20; round++) {
        data[PAGE] = (char)round;
        pid = fork();
        if (pid == 0) {
            data[PAGE]++;
            _exit(data[PAGE] == round + 1 ? 0 : 1);
        }
        data[PAGE] += 100;
        wrong += reap(pid) != 0 || data[PAGE] != round + 100;
    }
    show("wrong rounds", wrong);
    return 0;
}

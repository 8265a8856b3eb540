/*
 * Programs that die or hang, each by a mistake of its own: `deaths WAY`. The functions keep their names and calls.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MISTAKE __attribute__((noipa))

static volatile int zero;
static const char constant[] = "a text that nothing changes";
static void (*volatile hook)(void);

MISTAKE static int divide_shares(int all) { return all / zero; }

MISTAKE static void run_unknown_instruction(void) { __asm__ volatile("ud2"); }

MISTAKE static int read_past_end(void) {
    int fd = open("/tmp/short", O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (write(fd, "x", 1) != 1) _exit(3);
    volatile char *at = mmap(0, 8192, PROT_READ, MAP_SHARED, fd, 0);
    return at[4096];
}

MISTAKE static void write_constant(void) { *(volatile char *)constant = 'A'; }

MISTAKE __attribute__((optimize("stack-protector-all"))) static void copy_name(const char *name) {
    char copy[8];
    strcpy(copy, name);
    zero = copy[0] & 0;
}

MISTAKE static void free_twice(void) {
    void *volatile block = malloc(40);
    free(block);
    free(block);
    zero = 0;
}

MISTAKE static void fill(char *block, size_t size) { memset(block, 'A', size); }

MISTAKE static void overrun_block(void) {
    char *volatile block = malloc(24);
    fill(block, 64);
    free(block);
    zero = 0;
}

MISTAKE static int read_field(int *record) { return record[4]; }

MISTAKE static int descend(int depth) {
    volatile char pad[512];
    pad[depth & 255] = (char)depth;
    return zero ? pad[1] : descend(depth + 1) + pad[3];
}

MISTAKE static void call_hook(void) {
    hook();
    zero = 0;
}

MISTAKE static void check_state(void) {
    if (!zero) abort();
}

MISTAKE static void keep_all(void) {
    for (;;) memset(malloc(1 << 20), 1, 1 << 20);
}

static pthread_mutex_t front = PTHREAD_MUTEX_INITIALIZER, back = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;

MISTAKE static void *move_forwards(void *argument) {
    pthread_mutex_lock(&back);
    pthread_barrier_wait(&both);
    pthread_mutex_lock(&front);
    zero = 0;
    return argument;
}

MISTAKE static void *move_backwards(void *argument) {
    pthread_mutex_lock(&front);
    pthread_barrier_wait(&both);
    pthread_mutex_lock(&back);
    zero = 0;
    return argument;
}

MISTAKE static int lock_in_both_orders(void) {
    pthread_t one, other;
    pthread_barrier_init(&both, 0, 2);
    if (pthread_create(&one, 0, move_forwards, 0) || pthread_create(&other, 0, move_backwards, 0)) return 4;
    pthread_join(one, 0);
    return pthread_join(other, 0);
}

MISTAKE static int is_my_turn(int me) { return zero == me; }

MISTAKE static int wait_for_turn(int me) {
    int rounds = 0;
    while (!is_my_turn(me)) rounds++;
    return rounds;
}

int main(int argc, char **argv) {
    const char *way = argc > 1 ? argv[1] : "";
    if (!strcmp(way, "divide")) return divide_shares(argc);
    if (!strcmp(way, "illegal")) run_unknown_instruction();
    if (!strcmp(way, "past-end")) return read_past_end();
    if (!strcmp(way, "constant")) write_constant();
    if (!strcmp(way, "smash")) copy_name("a name that is much longer than it may be");
    if (!strcmp(way, "free-twice")) free_twice();
    if (!strcmp(way, "overrun")) overrun_block();
    if (!strcmp(way, "null")) return read_field((int *)(long)zero);
    if (!strcmp(way, "deep")) return descend(0);
    if (!strcmp(way, "hook")) call_hook();
    if (!strcmp(way, "abort")) check_state();
    if (!strcmp(way, "memory")) keep_all();
    if (!strcmp(way, "deadlock")) return lock_in_both_orders();
    if (!strcmp(way, "turn")) return wait_for_turn(argc);
    return 2;
}

/*
 * contract: timeout=40 link=static-pie
 * Each exec places the mappings, the stack, the program, its heap and the vDSO at random, with Linux's entropy on
 * x86-64: 28 bits for mappings and position-independent programs (vm.mmap_rnd_bits), 22 for the stack, 18 for the heap
 * (arch_randomize_brk: 1 GiB); proc(5), randomize_va_space = 2. Printed is whether each bit of that many was seen both
 * set and clear in 96 programs, which fails by chance once in 2^95.
 */
#include "contract.h"
#include <sys/auxv.h>

enum { PLACES = 5, PROGRAMS = 96 };
static char in_the_program;

static int look(int out)
{
    int on_stack;
    uint64_t at[PLACES];
    at[0] = (uint64_t)mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    at[1] = (uint64_t)&on_stack;
    at[2] = (uint64_t)&in_the_program;
    at[3] = (uint64_t)syscall(SYS_brk, 0);
    at[4] = getauxval(AT_SYSINFO_EHDR);
    return write(out, at, sizeof at) == sizeof at ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return look(atoi(argv[1]));
    static const struct { const char *name; int low, bits; } wanted[PLACES] = {
        { "mappings", 12, 28 }, { "stack", 12, 22 }, { "program", 12, 28 }, { "heap", 12, 18 }, { "vdso", 12, 9 },
    };
    uint64_t set[PLACES] = { 0 }, clear[PLACES] = { 0 }, fine[2] = { 0 };
    int ends[2];
    char number[16];
    need(pipe(ends) == 0);
    snprintf(number, sizeof number, "%d", ends[1]);
    for (int i = 0; i < PROGRAMS; i++) {
        pid_t child = vfork();
        need(child != -1);
        if (child == 0) {
            execl("/proc/self/exe", "self", number, NULL);
            _exit(98);
        }
        need(reap(child) == 0);
        uint64_t at[PLACES];
        need(read(ends[0], at, sizeof at) == sizeof at);
        for (int place = 0; place < PLACES; place++) {
            set[place] |= at[place];
            clear[place] |= ~at[place];
        }
        fine[0] |= at[1];
        fine[1] |= ~at[1];
    }
    for (int place = 0; place < PLACES; place++) {
        uint64_t mask = ((1ULL << wanted[place].bits) - 1) << wanted[place].low;
        say("%s: all of %d bits vary: %s", wanted[place].name, wanted[place].bits,
            (set[place] & clear[place] & mask) == mask ? "yes" : "no");
    }
    uint64_t mask = 0xff0;
    say("the stack pointer within its page: %s",
        (fine[0] & fine[1] & mask) == mask ? "varies in all bits" : "does not");
    return 0;
}

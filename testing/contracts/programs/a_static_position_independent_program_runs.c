/* elf(5): a static-pie program is relocated by itself wherever the kernel puts it, with working pointers in its data.
 * contract: link=static-pie
 */
#include "../contract.h"

static int answer(void) { return 42; }
static int (*const table[])(void) = { answer, answer };
static const char *const words[] = { "relocated", "pointers", "work" };
static __thread int local = 7;

int main(void)
{
    say("%s %s %s", words[0], words[1], words[2]);
    show("through a table", table[1]());
    show("thread-local", local);
    char text[4096];
    need(get_file("/proc/self/maps", text, sizeof text) > 0);
    unsigned long first = strtoul(text, NULL, 16);
    show("not at the fixed address of old programs", first >> 32 != 0);
    pid_t child = fork();
    if (child == 0)
        _exit(table[0]());
    show_status("child", reap(child));
    return 0;
}

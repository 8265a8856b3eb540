/* elf(5), ld.so(8): PT_INTERP names the loader that the kernel maps and starts; AT_BASE, AT_PHDR and AT_ENTRY guide it.
 * contract: link=dynamic
 */
#include "../contract.h"
#include <sys/auxv.h>

static __thread int local = 3;

int main(void)
{
    static char text[16384];
    show("the loader's base is known", getauxval(AT_BASE) != 0);
    show("entry is ours, not the loader's", getauxval(AT_ENTRY) != getauxval(AT_BASE));
    show("thread-local", local);
    need(get_file("/proc/self/maps", text, sizeof text) > 0);
    show("a library is mapped", strstr(text, "musl") != NULL || strstr(text, "libc.so") != NULL);
    char *heap = malloc(100000);
    memset(heap, 1, 100000);
    show("heap works", heap[99999]);
    free(heap);
    pthread_t thread;
    show("threads work", pthread_create(&thread, NULL, (void *(*)(void *))(uintptr_t)malloc, (void *)16) == 0);
    void *result;
    show("joined", pthread_join(thread, &result) == 0 && result);
    pid_t child = fork();
    if (child == 0)
        _exit(local);
    show_status("child", reap(child));
    return 0;
}

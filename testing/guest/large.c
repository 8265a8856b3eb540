/*
 * A program with 5 MiB of code, "large PAGES": executes so many of its 1280 code pages, spread evenly.
 *
 * It is linked so that pages of 2 MiB can show its code (Link::StaticHuge).
 */
#include <stdlib.h>

enum { CODE_PAGES = 1280, PAGE = 4096 };

/* A function that returns at once, at the beginning of each page. */
__asm__(".text\n"
        ".p2align 12\n"
        "code_pages:\n"
        ".rept 1280\n"
        "ret\n"
        ".p2align 12, 0xcc\n"
        ".endr\n");

extern char code_pages[];

int main(int count, char **arguments) {
    unsigned pages = count > 1 ? (unsigned)atoi(arguments[1]) : 0;
    if (pages < 1 || pages > CODE_PAGES) return 2;
    for (unsigned page = 0; page < pages; page++) {
        ((void (*)(void))(code_pages + (size_t)(page * CODE_PAGES / pages) * PAGE))();
    }
    return 0;
}

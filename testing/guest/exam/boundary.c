/*
 * A program that relies on variables without a value being zero: the first file of the link, so that its table is what
 * lies in the page in which initialised data ends.
 */
#include "exam.h"

struct visitor {
    struct visitor *next;
    volatile long visits;
};

/* Lists by the hash of a name, all empty. */
static struct visitor *volatile visitors[2 * PAGE / sizeof(struct visitor *)];

/* Where initialised data ends (ld(1)). */
extern char edata;

/* Every visitor is counted once more; there is none yet. */
void boundary(void) {
    if (PAGE - (uintptr_t)&edata % PAGE < 512) {
        puts("initialised data ends too close to the end of a page");
        exit(2);
    }
    for (unsigned hash = 0; hash < sizeof visitors / sizeof *visitors; hash++)
        for (struct visitor *visitor = visitors[hash]; visitor; visitor = visitor->next) visitor->visits++;
}

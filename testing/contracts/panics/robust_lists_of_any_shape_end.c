/*
 * get_robust_list(2): the list of a thread that ends is walked as far as it can be read and written, 2048 entries at
 * most, whatever the program made of it.
 */
#include "../contract.h"
#include <linux/futex.h>
#include <pthread.h>
#include <stddef.h>

struct entry {
    struct robust_list link;
    unsigned word;
};

#define ENTRIES 4000
static struct entry *entries;
static struct robust_list_head *head;
static unsigned tid;

static void *ends(void *unused)
{
    tid = (unsigned)syscall(SYS_gettid);
    for (int i = 0; i < ENTRIES; i++)
        if (entries[i].word == 1)
            entries[i].word = tid | FUTEX_WAITERS;
    need(syscall(SYS_set_robust_list, head, sizeof *head) == 0);
    return unused;
}

static void chain(int count)
{
    memset(entries, 0, ENTRIES * sizeof *entries);
    head->futex_offset = offsetof(struct entry, word);
    head->list_op_pending = NULL;
    head->list.next = count ? &entries[0].link : &head->list;
    for (int i = 0; i < count; i++) {
        entries[i].word = 1;
        entries[i].link.next = i + 1 < count ? &entries[i + 1].link : &head->list;
    }
}

static void run(const char *title)
{
    pthread_t thread;
    int died = 0, kept = 0, waiters = 0;
    need(pthread_create(&thread, NULL, ends, NULL) == 0);
    pthread_join(thread, NULL);
    for (int i = 0; i < ENTRIES; i++) {
        died += (entries[i].word & FUTEX_OWNER_DIED) != 0;
        waiters += entries[i].word == (FUTEX_OWNER_DIED | FUTEX_WAITERS);
        kept += (entries[i].word & FUTEX_TID_MASK) == tid;
    }
    say("%s: died %d, marks kept %d, still owned %d", title, died, waiters, kept);
}

int main(void)
{
    entries = (struct entry *)fresh_pages(ENTRIES * sizeof *entries / PAGE + 1);
    head = (struct robust_list_head *)fresh_pages(2);
    chain(5);
    run("five");
    chain(3000);
    run("three thousand");
    chain(5);
    entries[4].link.next = &entries[0].link;
    run("a circle");
    chain(5);
    entries[2].link.next = &entries[2].link;
    run("a link to itself");
    chain(5);
    entries[2].link.next = BAD_POINTER;
    head->list_op_pending = &entries[9].link;
    entries[9].word = 1;
    run("a bad link, and one pending");
    chain(5);
    head->list_op_pending = &entries[9].link;
    entries[9].word = 1;
    run("one pending");
    chain(5);
    head->list_op_pending = &entries[2].link;
    run("one pending in the list");
    chain(5);
    head->list_op_pending = BAD_POINTER;
    run("a bad one pending");
    chain(5);
    head->futex_offset += 1;
    run("words that are not aligned");
    chain(5);
    head->futex_offset = (long)BAD_POINTER;
    run("words that are not there");
    chain(5);
    for (int i = 0; i < 5; i++)
        entries[i].link.next = (struct robust_list *)((uintptr_t)entries[i].link.next | (i + 1 < 5));
    head->list.next = (struct robust_list *)((uintptr_t)head->list.next | 1);
    run("the bit of priority inheritance");
    chain(0);
    run("empty");
    chain(5);
    struct robust_list_head *whole = head;
    head = (struct robust_list_head *)((char *)head + PAGE - 8);
    head->list.next = &entries[0].link;
    need(munmap((char *)whole + PAGE, PAGE) == 0);
    run("a head that is not there whole");
    RESULT(syscall(SYS_set_robust_list, whole, sizeof *whole - 1));
    return 0;
}

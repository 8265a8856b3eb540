/*
 * The program of the demo: it reads a small list back from a file and calls the function that each entry carries.
 *
 * The mistake is an ordinary one: the loader gives the last entry no function, and the call does not check for that.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct entry {
    char name[16];
    struct entry *next;
    void (*greet)(const char *name);
};

static void greet(const char *name) { dprintf(1, "hello %s\n", name); }

static struct entry entries[3];

static void load(const char *path) {
    char text[64] = {0};
    int fd = open(path, O_RDWR | O_CREAT, 0644);
    if (write(fd, "ada bob cyd", 11) != 11) _exit(2);
    lseek(fd, 0, SEEK_SET);
    if (read(fd, text, sizeof text - 1) != 11) _exit(2);
    close(fd);
    int count = 0;
    for (char *word = strtok(text, " "); word; word = strtok(0, " "), count++) {
        strcpy(entries[count].name, word);
        entries[count].greet = count < 2 ? greet : 0;
        entries[count].next = &entries[count + 1];
    }
}

int main(void) {
    load("/tmp/people");
    for (struct entry *entry = entries; entry; entry = entry->next) entry->greet(entry->name);
    return 0;
}

/*
 * execve(2), elf(5): what the headers of a small file claim, segments that the file does not have and many of them,
 * costs neither memory that stays when the program has ended nor time in proportion to the claim.
 */
#include "security.h"
#include <elf.h>

#define MIB (1UL << 20)
#define CODE 0x40000000UL
#define DATA 0x100000000000UL
#define MOST 1000

static Elf64_Phdr segments[MOST];

static Elf64_Phdr segment(int flags, unsigned long address, unsigned long in_file, unsigned long in_memory)
{
    return (Elf64_Phdr){ .p_type = PT_LOAD, .p_flags = flags, .p_vaddr = address, .p_filesz = in_file,
                         .p_memsz = in_memory, .p_align = PAGE };
}

/* A file with `count` of `segments`, of which the first is its code, which exits. */
static void make(const char *path, int count)
{
    static const unsigned char code[] = { 0xbf, 0, 0, 0, 0, 0xb8, 60, 0, 0, 0, 0x0f, 0x05 };
    ssize_t headers = count * sizeof *segments;
    Elf64_Ehdr head = {
        .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
        .e_type = ET_EXEC,
        .e_machine = EM_X86_64,
        .e_version = EV_CURRENT,
        .e_entry = CODE + sizeof head,
        .e_phoff = sizeof head + sizeof code,
        .e_ehsize = sizeof head,
        .e_phentsize = sizeof *segments,
        .e_phnum = count,
    };
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0755);
    need(fd != -1 && write(fd, &head, sizeof head) == sizeof head && write(fd, code, sizeof code) == sizeof code);
    need(write(fd, segments, headers) == headers && close(fd) == 0);
}

static int executes(void *path)
{
    execl(path, path, NULL);
    return 1;
}

static unsigned long free_memory(void)
{
    char line[128];
    unsigned long kib = 0;
    FILE *file = fopen("/proc/meminfo", "r");
    need(file != NULL);
    while (fgets(line, sizeof line, file) && sscanf(line, "MemFree: %lu", &kib) != 1)
        ;
    need(fclose(file) == 0 && kib != 0);
    return kib * 1024;
}

/* Makes and executes `files` files, which Linux refuses in part; whether more than `most` bytes are gone afterwards. */
static void run(const char *what, int files, int count, unsigned long most)
{
    char path[32];
    for (int i = 0; i < files; i++) {
        snprintf(path, sizeof path, "file%d", i);
        make(path, count);
    }
    /* What only the first execution needs does not count. */
    as_nobody(executes, "file0");
    unsigned long before = free_memory();
    for (int i = 1; i < files; i++) {
        snprintf(path, sizeof path, "file%d", i);
        as_nobody(executes, path);
    }
    unsigned long after = free_memory();
    say("%s: memory %s", what, before > after + most ? "is gone" : "is as before");
    for (int i = 0; i < files; i++) {
        snprintf(path, sizeof path, "file%d", i);
        need(unlink(path) == 0);
    }
}

/* A writable segment as large as addresses allow; Linux refuses it for its size, which is not the question here. */
static void be_wide(void)
{
    segments[0] = segment(PF_R | PF_X, CODE, 4 * MIB, 4 * MIB);
    segments[1] = segment(PF_R | PF_W, DATA, 1UL << 45, 1UL << 45);
    make("wide", 2);
    as_nobody(executes, "wide");
    say("a writable segment of 32 TiB: ended");
    need(unlink("wide") == 0);
}

int main(void)
{
    scratch();
    need(chmod(".", 0755) == 0);
    segments[0] = segment(PF_R | PF_X, CODE, 64 * MIB, 64 * MIB);
    run("64 MiB that no file has", 8, 1, 16 * MIB);
    segments[0] = segment(PF_R | PF_X, CODE, 64 * 1024, 64 * 1024);
    for (int i = 1; i < MOST; i++)
        segments[i] = segment(PF_R | PF_W, CODE + MIB + i * PAGE, 0, PAGE);
    run("a thousand segments", 100, MOST, 2 * MIB);
    be_wide();
    return 0;
}

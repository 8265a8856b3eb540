/*
 * execve(2), elf(5): a program whose segments claim the addresses of its stack does not run: two mappings never have
 * one address. One that ends below them does.
 */
#include "security.h"
#include <elf.h>

#define USER_END 0x7ffffffff000UL
/* More than the stack is moved by. */
#define WIDE (20UL << 30)
#define RAN 42

/* A program of one segment that ends at `end`, which exits with 42. */
static void make(const char *path, unsigned long start, unsigned long end)
{
    static const unsigned char code[] = { 0xbf, RAN, 0, 0, 0, 0xb8, 60, 0, 0, 0, 0x0f, 0x05 };
    Elf64_Ehdr head = {
        .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
        .e_type = ET_EXEC,
        .e_machine = EM_X86_64,
        .e_version = EV_CURRENT,
        .e_entry = start + sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr),
        .e_phoff = sizeof(Elf64_Ehdr),
        .e_ehsize = sizeof(Elf64_Ehdr),
        .e_phentsize = sizeof(Elf64_Phdr),
        .e_phnum = 1,
    };
    Elf64_Phdr load = {
        .p_type = PT_LOAD,
        .p_flags = PF_R | PF_X,
        .p_vaddr = start,
        .p_paddr = start,
        .p_filesz = end - start,
        .p_memsz = end - start,
        .p_align = PAGE,
    };
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0755);
    need(fd != -1 && write(fd, &head, sizeof head) == sizeof head && write(fd, &load, sizeof load) == sizeof load);
    need(write(fd, code, sizeof code) == sizeof code && ftruncate(fd, end - start) == 0 && close(fd) == 0);
}

static int executes(void *path)
{
    execl(path, path, NULL);
    return 1;
}

static void run(const char *path, unsigned long start, unsigned long end)
{
    make(path, start, end);
    int status = as_nobody(executes, (void *)path);
    say("%s %s", path, WIFEXITED(status) && WEXITSTATUS(status) == RAN ? "ran" : "did not run");
    need(unlink(path) == 0);
}

int main(void)
{
    scratch();
    need(chmod(".", 0755) == 0);
    run("below", 0x10000000000, 0x10000000000 + WIDE);
    run("over", USER_END - WIDE, USER_END);
    run("around", USER_END - 2 * WIDE, USER_END - PAGE);
    return 0;
}

/*
 * proc(5) /proc/sys/vm/mmap_min_addr: without CAP_SYS_RAWIO nothing is mapped below it, whichever way: mmap(2),
 * mremap(2), a stack that grows, personality(2) MMAP_PAGE_ZERO, a program linked there.
 */
#include "security.h"
#include <elf.h>
#include <sys/personality.h>

#define ANYWHERE (MAP_PRIVATE | MAP_ANONYMOUS)
#define AT(address) hidden(address)

static void *hidden(uintptr_t address)
{
    __asm__("" : "+r"(address));
    return (void *)address;
}

static int touch_below(void *unused)
{
    (void)unused;
    char *low = mmap(AT(0x10000), PAGE, PROT_READ | PROT_WRITE, ANYWHERE | MAP_FIXED | MAP_GROWSDOWN, -1, 0);
    need(low == AT(0x10000));
    *low = 1;
    for (uintptr_t address = 0xff00; address >= 0x1000; address -= 0x1000)
        *(volatile char *)AT(address) = 1;
    return 1;
}

static int read_page_zero(void *unused)
{
    (void)unused;
    need(personality(MMAP_PAGE_ZERO) != -1);
    execl("./program", "program", "read", NULL);
    return 98;
}

static int run_low(void *unused)
{
    (void)unused;
    execl("./low", "low", NULL);
    return 98;
}

/* A program of one page at 0 that exits with 42. */
static void make_low(void)
{
    static const unsigned char code[] = { 0xbf, 42, 0, 0, 0, 0xb8, 60, 0, 0, 0, 0x0f, 0x05 };
    static char bytes[PAGE];
    Elf64_Ehdr *header = (void *)bytes;
    memcpy(header->e_ident, ELFMAG "\2\1\1", 7);
    header->e_type = ET_EXEC, header->e_machine = EM_X86_64, header->e_version = 1;
    header->e_entry = 0x200, header->e_phoff = 0x40, header->e_ehsize = sizeof *header;
    header->e_phentsize = sizeof(Elf64_Phdr), header->e_phnum = 1;
    Elf64_Phdr *load = (void *)(bytes + 0x40);
    load->p_type = PT_LOAD, load->p_flags = PF_R | PF_X, load->p_filesz = load->p_memsz = PAGE, load->p_align = PAGE;
    memcpy(bytes + 0x200, code, sizeof code);
    int fd = open("low", O_WRONLY | O_CREAT, 0755);
    need(fd != -1 && write(fd, bytes, sizeof bytes) == sizeof bytes);
    close(fd);
}

static int attempt(void *unused)
{
    (void)unused;
    OUTCOME(mmap(AT(0), PAGE, PROT_READ, ANYWHERE | MAP_FIXED, -1, 0));
    OUTCOME(mmap(AT(0), PAGE, PROT_READ, ANYWHERE | MAP_FIXED_NOREPLACE, -1, 0));
    OUTCOME(mmap(AT(0x1000), PAGE, PROT_READ, ANYWHERE | MAP_FIXED, -1, 0));
    OUTCOME(mmap(AT(0xf000), PAGE, PROT_READ, ANYWHERE | MAP_FIXED, -1, 0));
    OUTCOME(mmap(AT(0xf000), 2 * PAGE, PROT_READ, ANYWHERE | MAP_FIXED, -1, 0));
    char *at = mmap(AT(0x1000), PAGE, PROT_READ, ANYWHERE, -1, 0);
    show("a low hint is heeded", at == AT(0x1000));
    char *page = fresh_pages(4);
    OUTCOME(mremap(page, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, AT(0)));
    OUTCOME(mremap(page, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, AT(0x1000)));
    OUTCOME(mremap(page, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, AT(0xf000)));
    OUTCOME(mremap(page, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED | 4, AT(0)));
    char *shared = shared_page();
    OUTCOME(mremap(shared, 0, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, AT(0)));
    OUTCOME(mremap(page, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, AT(0x10000)));
    show_status("a stack that grows", in_child(touch_below, NULL));
    show_status("MMAP_PAGE_ZERO", in_child(read_page_zero, NULL));
    int status = in_child(run_low, NULL);
    show("the program at 0 ran", WIFEXITED(status) && WEXITSTATUS(status) == 42);
    return 0;
}

int main(int count, char **arguments)
{
    (void)arguments;
    if (count > 1)
        return *(volatile char *)AT(0) != 0;
    scratch();
    copy_self("program", 0, 0, 0755);
    make_low();
    show_status("attempt", as_nobody(attempt, NULL));
    return 0;
}

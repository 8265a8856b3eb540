/*
 * elf(5), execve(2): fixed and position-independent static programs run; foreign machines, missing interpreters
 * and torn headers fail.
 */
#include "../contract.h"
#include <elf.h>

/* A one-segment program whose code is exit(42); writable, for Linux zeroes the tail of an interpreter's last page. */
static void write_program(const char *path, int type, int machine, const char *interpreter)
{
    struct { Elf64_Ehdr header; Elf64_Phdr segments[2]; char interpreter[32]; unsigned char code[16]; } image = {
        .header = { .e_type = type, .e_machine = machine, .e_version = 1, .e_ehsize = sizeof(Elf64_Ehdr),
                    .e_phentsize = sizeof(Elf64_Phdr), .e_phnum = interpreter ? 2 : 1 },
        .code = { 0xbf, 42, 0, 0, 0, 0xb8, 60, 0, 0, 0, 0x0f, 0x05 },
    };
    uint64_t base = type == ET_EXEC ? 0x400000 : 0;
    memcpy(image.header.e_ident, "\177ELF\2\1\1", 7);
    image.header.e_phoff = sizeof(Elf64_Ehdr);
    image.header.e_entry = base + ((char *)image.code - (char *)&image);
    image.segments[0] = (Elf64_Phdr){ PT_LOAD, PF_R | PF_W | PF_X, 0, base, base, sizeof image, sizeof image, 4096 };
    if (interpreter) {
        strcpy(image.interpreter, interpreter);
        uint64_t at = image.interpreter - (char *)&image;
        image.segments[1] = (Elf64_Phdr){ PT_INTERP, PF_R, at, base + at, base + at, strlen(interpreter) + 1,
                                          strlen(interpreter) + 1, 1 };
    }
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0755);
    need(fd != -1 && write(fd, &image, sizeof image) == sizeof image);
    close(fd);
}

static void run(const char *path)
{
    pid_t child = fork();
    if (child == 0) {
        char *const argv[] = { "x", NULL }, *const none[] = { NULL };
        execve(path, argv, none);
        say("%s: %s", path, errno_name(errno));
        _exit(1);
    }
    show_status(path, reap(child));
}

int main(void)
{
    scratch();
    write_program("fixed", ET_EXEC, EM_X86_64, NULL);
    write_program("moving", ET_DYN, EM_X86_64, NULL);
    write_program("relocatable", ET_REL, EM_X86_64, NULL);
    write_program("foreign", ET_EXEC, EM_AARCH64, NULL);
    write_program("interpreted", ET_DYN, EM_X86_64, "./moving");
    write_program("interpreterless", ET_EXEC, EM_X86_64, "/absent/ld.so");
    put_file("torn", "\177ELF\2\1\1", 0755);
    const char *const all[] = { "fixed", "moving", "relocatable", "foreign", "interpreted", "interpreterless", "torn" };
    for (size_t i = 0; i < COUNT_OF(all); i++)
        run(all[i]);
    return 0;
}

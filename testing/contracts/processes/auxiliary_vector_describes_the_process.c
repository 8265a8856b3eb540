/* getauxval(3): the kernel hands over page size, ids, program headers, random bytes and the program's name. */
#include "../contract.h"
#include <elf.h>
#include <sys/auxv.h>

int main(void)
{
    show("AT_PAGESZ", getauxval(AT_PAGESZ));
    show("AT_CLKTCK", getauxval(AT_CLKTCK));
    show("AT_UID", getauxval(AT_UID));
    show("AT_EUID", getauxval(AT_EUID));
    show("AT_SECURE", getauxval(AT_SECURE));
    show("AT_PHENT", getauxval(AT_PHENT));
    show_text("AT_PLATFORM", (char *)getauxval(AT_PLATFORM));
    const Elf64_Phdr *headers = (void *)getauxval(AT_PHDR);
    int loads = 0;
    for (unsigned long i = 0; i < getauxval(AT_PHNUM); i++)
        loads += headers[i].p_type == PT_LOAD;
    show("AT_PHDR leads to loadable segments", loads > 0);
    const unsigned char *random = (void *)getauxval(AT_RANDOM);
    int different = 0;
    for (int i = 1; i < 16; i++)
        different |= random[i] != random[0];
    show("AT_RANDOM varies", different);
    show("AT_ENTRY set", getauxval(AT_ENTRY) != 0);
    show("AT_BASE of a static program", getauxval(AT_BASE));
    const char *name = (char *)getauxval(AT_EXECFN);
    show("AT_EXECFN is a path that opens", name && access(name, X_OK) == 0);
    const char *vdso = (char *)getauxval(AT_SYSINFO_EHDR);
    show("AT_SYSINFO_EHDR has an ELF", vdso && memcmp(vdso, "\177ELF", 4) == 0);
    return 0;
}

/*
 * The vDSO is an ELF library with a dynamic section, a SysV hash table and version definitions; its functions have
 * the version LINUX_2.6 and are found by name and version (vdso(7); System V ABI, "Symbol Versioning" of the LSB).
 */
#include "contract.h"
#include <elf.h>
#include <sys/auxv.h>

static const Elf64_Sym *symbols;
static const char *strings;
static const Elf64_Word *hash;
static const Elf64_Half *versions;
static const Elf64_Verdef *definitions;
static Elf64_Xword definition_count;

static unsigned long elf_hash(const char *name)
{
    unsigned long value = 0;
    for (; *name; name++) {
        value = (value << 4) + (unsigned char)*name;
        unsigned long high = value & 0xf0000000;
        value = (value ^ (high >> 24)) & ~high;
    }
    return value;
}

/* The index of a version that is not the library itself, or 0. */
static int version_index(const char *name)
{
    const Elf64_Verdef *at = definitions;
    for (Elf64_Xword i = 0; at && i < definition_count; i++) {
        const Elf64_Verdaux *aux = (const void *)((const char *)at + at->vd_aux);
        if (!(at->vd_flags & VER_FLG_BASE) && at->vd_hash == elf_hash(name) && !strcmp(strings + aux->vda_name, name))
            return at->vd_ndx & 0x7fff;
        if (at->vd_next == 0)
            break;
        at = (const void *)((const char *)at + at->vd_next);
    }
    return 0;
}

static void look_up(const char *name, int version)
{
    Elf64_Word buckets = hash[0];
    for (Elf64_Word i = hash[2 + elf_hash(name) % buckets]; i != STN_UNDEF; i = hash[2 + buckets + i]) {
        const Elf64_Sym *symbol = &symbols[i];
        if (strcmp(strings + symbol->st_name, name))
            continue;
        say("%s: function %d, global %d, defined %d, version matches %d", name,
            ELF64_ST_TYPE(symbol->st_info) == STT_FUNC, ELF64_ST_BIND(symbol->st_info) == STB_GLOBAL,
                symbol->st_shndx != SHN_UNDEF,
            versions && version && (versions[i] & 0x7fff) == version);
        return;
    }
    say("%s: not found by hash", name);
}

int main(void)
{
    const char *image = (const char *)getauxval(AT_SYSINFO_EHDR);
    need(image && !memcmp(image, ELFMAG, SELFMAG));
    const Elf64_Ehdr *header = (const void *)image;
    const Elf64_Phdr *segment = (const void *)(image + header->e_phoff);
    const Elf64_Dyn *dynamic = NULL;
    const char *base = NULL;
    for (int i = 0; i < header->e_phnum; i++) {
        if (segment[i].p_type == PT_LOAD && !base)
            base = image + segment[i].p_offset - segment[i].p_vaddr;
        if (segment[i].p_type == PT_DYNAMIC)
            dynamic = (const void *)(image + segment[i].p_offset);
    }
    need(base && dynamic);
    Elf64_Xword soname = 0;
    for (; dynamic->d_tag != DT_NULL; dynamic++) {
        const void *value = base + dynamic->d_un.d_ptr;
        switch (dynamic->d_tag) {
        case DT_SYMTAB: symbols = value; break;
        case DT_STRTAB: strings = value; break;
        case DT_HASH: hash = value; break;
        case DT_VERSYM: versions = value; break;
        case DT_VERDEF: definitions = value; break;
        case DT_VERDEFNUM: definition_count = dynamic->d_un.d_val; break;
        case DT_SONAME: soname = dynamic->d_un.d_val; break;
        }
    }
    check(symbols && strings && hash, "symbols, strings and a hash table");
    check(versions && definitions, "symbol versions and version definitions");
    show_text("soname", strings + soname);
    show("definitions", definition_count);
    int version = version_index("LINUX_2.6");
    check(version != 0, "LINUX_2.6 is defined");
    check(version_index("LINUX_2.5") == 0, "LINUX_2.5 is not");
    look_up("__vdso_clock_gettime", version);
    look_up("__vdso_gettimeofday", version);
    look_up("__vdso_time", version);
    look_up("__vdso_getcpu", version);
    return 0;
}

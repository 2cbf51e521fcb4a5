/* gcn_load.c - reading a code object as ROCr's loader does, and stricter.
 *
 * Segments are copied to their addresses in one block, symbols are read through
 * the section headers, a descriptor's entry has to lie in executable bytes.
 * Each offset and size is checked before it is used; the file may be anything.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/gcn/gcn_file.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

enum { MACHINE = 224, OS_HSA = 64, MAX_HEADERS = 4096, NOTE_METADATA = 32 };

typedef struct file {
    const uint8_t *p;
    size_t n;
    Elf64_Ehdr eh;
    br_status *st;
} file;

static br_code
bad(const file *f, const char *why)
{
    return br_fail(f->st, BR_E_FORMAT, "%s", why);
}

static bool
inside(const file *f, uint64_t at, uint64_t bytes)
{
    return at <= f->n && bytes <= f->n - at;
}

/* The i-th header of a table whose bounds are known to be right. */
static Elf64_Shdr
section(const file *f, unsigned i)
{
    Elf64_Shdr h;

    memcpy(&h, f->p + f->eh.e_shoff + i * sizeof h, sizeof h);
    return h;
}

static Elf64_Phdr
segment(const file *f, unsigned i)
{
    Elf64_Phdr h;

    memcpy(&h, f->p + f->eh.e_phoff + i * sizeof h, sizeof h);
    return h;
}

static br_code
identity(file *f, br_gcn_co *co)
{
    if (f->n < sizeof f->eh)
        return bad(f, "no ELF file");
    memcpy(&f->eh, f->p, sizeof f->eh);
    if (memcmp(f->eh.e_ident,
               "\x7f"
               "ELF\2\1\1",
               7) != 0)
        return bad(f, "no ELF file of 64 bits");
    if (f->eh.e_machine != MACHINE || f->eh.e_ident[7] != OS_HSA ||
        f->eh.e_type != ET_DYN)
        return bad(f, "no code object of an AMD GPU (amdhsa, linked)");
    if (f->eh.e_ident[8] < 2 || f->eh.e_ident[8] > 4)
        return bad(f, "a code object of another version than 4 to 6");
    for (size_t i = 0; (co->isa.cpu = br_gcn_cpu_at(i)); i++)
        if (co->isa.cpu->mach == (f->eh.e_flags & 0xff))
            break;
    if (!co->isa.cpu)
        return br_fail(f->st, BR_E_UNSUPPORTED,
                       "a code object for processor 0x%x, which is not known",
                       f->eh.e_flags & 0xff);
    if (f->eh.e_phentsize != sizeof(Elf64_Phdr) ||
        f->eh.e_shentsize != sizeof(Elf64_Shdr) ||
        f->eh.e_phnum > MAX_HEADERS || f->eh.e_shnum > MAX_HEADERS ||
        !inside(f, f->eh.e_phoff, f->eh.e_phnum * sizeof(Elf64_Phdr)) ||
        !inside(f, f->eh.e_shoff, f->eh.e_shnum * sizeof(Elf64_Shdr)))
        return bad(f, "headers outside the file");
    return BR_OK;
}

static br_code
segments(file *f, br_gcn_co *co)
{
    uint64_t last = 0;

    for (unsigned i = 0; i < f->eh.e_phnum; i++) {
        Elf64_Phdr h = segment(f, i);

        if (h.p_type != PT_LOAD)
            continue;
        if (h.p_vaddr < last || h.p_vaddr > BR_GCN_MAX_IMAGE ||
            h.p_memsz > BR_GCN_MAX_IMAGE - h.p_vaddr)
            return bad(f, "segments out of order or too large");
        if (h.p_filesz > h.p_memsz || !inside(f, h.p_offset, h.p_filesz))
            return bad(f, "a segment outside the file");
        last = h.p_vaddr + h.p_memsz;
    }
    co->bytes = last;
    co->image = br_arena_zero(&co->arena, 1, (size_t)last + 1);
    if (!co->image)
        return br_fail(f->st, BR_E_OOM, "no memory for a code object");
    for (unsigned i = 0; i < f->eh.e_phnum; i++) {
        Elf64_Phdr h = segment(f, i);

        if (h.p_type == PT_LOAD)
            memcpy(co->image + h.p_vaddr, f->p + h.p_offset, h.p_filesz);
    }
    return BR_OK;
}

static br_code
note(file *f, const Elf64_Shdr *h, br_gcn_co *co)
{
    uint64_t at = h->sh_offset, end = at + h->sh_size;
    uint32_t w[3];

    while (end - at >= sizeof w) {
        uint64_t name, desc;

        memcpy(w, f->p + at, sizeof w);
        at += sizeof w;
        name = ((uint64_t)w[0] + 3) & ~3ull;
        desc = ((uint64_t)w[1] + 3) & ~3ull;
        if (name > end - at || w[1] > end - at - name)
            return bad(f, "a note outside its section");
        if (w[2] == NOTE_METADATA && w[0] == 7 &&
            memcmp(f->p + at, "AMDGPU", 7) == 0) {
            const char *p = br_arena_dup(&co->arena, f->p + at + name, w[1]);

            if (!p)
                return br_fail(f->st, BR_E_OOM, "no memory for metadata");
            co->note = (br_text){p, w[1]};
        }
        at += BR_MIN(name + desc, end - at);
    }
    return BR_OK;
}

/* One symbol of the file; *to stays as it is where it is of no use. */
static br_code
symbol(file *f, br_gcn_co *co, const Elf64_Sym *s, br_text names, size_t *n)
{
    const char *name = names.p + s->st_name;
    br_gcn_symbol *to = &co->sym[*n];
    size_t len;

    if (s->st_shndx == SHN_UNDEF || s->st_shndx >= SHN_LORESERVE)
        return BR_OK;
    if (s->st_name >= names.n || !memchr(name, 0, names.n - s->st_name))
        return bad(f, "a symbol's name outside its table");
    if (s->st_value > co->bytes || s->st_size > co->bytes - s->st_value)
        return br_fail(f->st, BR_E_FORMAT, "%.60s: outside the segments", name);
    to->name = br_arena_str(&co->arena, name, strlen(name));
    if (!to->name)
        return br_fail(f->st, BR_E_OOM, "no memory for symbols");
    to->at = s->st_value;
    to->bytes = s->st_size;
    to->place =
        ELF64_ST_TYPE(s->st_info) == STT_FUNC ? BR_GCN_TEXT : BR_GCN_DATA;
    len = strlen(name);
    if (to->place == BR_GCN_DATA && len > 3 &&
        strcmp(name + len - 3, ".kd") == 0) {
        if (s->st_size != BR_GCN_KD_BYTES || s->st_value % 64)
            return br_fail(f->st, BR_E_FORMAT,
                           "%.60s: a descriptor has 64 bytes, at 64", name);
        to->entry = 1;
    }
    (*n)++;
    return BR_OK;
}

static br_code
symbols(file *f, br_gcn_co *co)
{
    Elf64_Shdr str, sym = {0};
    br_text names;
    size_t n;

    for (unsigned i = 0; i < f->eh.e_shnum; i++) {
        Elf64_Shdr h = section(f, i);

        if (h.sh_type != SHT_NOBITS && h.sh_type != SHT_NULL &&
            !inside(f, h.sh_offset, h.sh_size))
            return bad(f, "a section outside the file");
        if (h.sh_type == SHT_NOTE)
            BR_TRY(note(f, &h, co));
        if (h.sh_type == SHT_RELA && h.sh_size)
            return br_fail(f->st, BR_E_UNSUPPORTED,
                           "a code object with relocations");
        if (h.sh_type == SHT_PROGBITS && h.sh_flags & SHF_EXECINSTR) {
            co->text_at = h.sh_addr;
            co->text_bytes = h.sh_size;
        }
        if (h.sh_type == SHT_DYNSYM)
            sym = h;
    }
    if (co->text_at > co->bytes || co->text_bytes > co->bytes - co->text_at ||
        co->text_at % 4)
        return bad(f, "code outside the segments");
    if (sym.sh_type != SHT_DYNSYM || sym.sh_link >= f->eh.e_shnum)
        return bad(f, "no dynamic symbols");
    str = section(f, sym.sh_link);
    if (str.sh_type != SHT_STRTAB)
        return bad(f, "no names of symbols");
    names = (br_text){(const char *)f->p + str.sh_offset, str.sh_size};
    n = sym.sh_size / sizeof(Elf64_Sym);
    if (n > BR_GCN_MAX_SYMBOLS)
        return br_fail(f->st, BR_E_LIMIT, "%zu symbols", n);
    co->sym = br_arena_new(&co->arena, br_gcn_symbol, n + 1);
    if (!co->sym)
        return br_fail(f->st, BR_E_OOM, "no memory for symbols");
    for (size_t i = 0; i < n; i++) {
        Elf64_Sym s;

        memcpy(&s, f->p + sym.sh_offset + i * sizeof s, sizeof s);
        BR_TRY(symbol(f, co, &s, names, &co->n_sym));
    }
    return BR_OK;
}

static int
by_address(const void *a, const void *b)
{
    const br_gcn_symbol *x = a, *y = b;

    return (x->at > y->at) - (x->at < y->at);
}

static br_code
descriptors(file *f, br_gcn_co *co)
{
    for (size_t i = 0; i < co->n_sym; i++) {
        const br_gcn_symbol *s = &co->sym[i];
        uint64_t way, entry;

        if (!s->entry)
            continue;
        memcpy(&way, co->image + s->at + 16, 8);
        entry = s->at + way - co->text_at;
        if (entry >= co->text_bytes || entry % 4)
            return br_fail(f->st, BR_E_FORMAT,
                           "%.60s: its entry is no address of code", s->name);
        if (!(co->image[s->at + 57] & 4))
            co->isa.wave64 = true;
    }
    return BR_OK;
}

br_code
br_gcn_load(br_gcn_co *co, const void *bytes, size_t n, br_status *st)
{
    file f = {.p = bytes, .n = n, .st = st};

    memset(co, 0, sizeof *co);
    br_arena_init(&co->arena, 2u * BR_GCN_MAX_IMAGE);
    BR_TRY(identity(&f, co));
    BR_TRY(segments(&f, co));
    BR_TRY(symbols(&f, co));
    if (co->n_sym)
        qsort(co->sym, co->n_sym, sizeof *co->sym, by_address);
    return descriptors(&f, co);
}

void
br_gcn_unload(br_gcn_co *co)
{
    br_arena_fini(&co->arena);
    memset(co, 0, sizeof *co);
}

const br_gcn_symbol *
br_gcn_kernel_find(const br_gcn_co *co, const char *name)
{
    size_t n = strlen(name);

    for (size_t i = 0; i < co->n_sym; i++)
        if (co->sym[i].entry && strlen(co->sym[i].name) == n + 3 &&
            memcmp(co->sym[i].name, name, n) == 0)
            return &co->sym[i];
    return NULL;
}

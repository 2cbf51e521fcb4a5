/* gcn_elf.c - AMD code objects: ELF64, amdhsa, version 5, without a linker.
 *
 *   file      0 ELF and program headers, .note .dynsym .gnu.hash .hash .dynstr
 *             .rodata
 *             .text      on a page of its own address: file offset + 0x1000
 *             .dynamic   file offset + 0x2000
 *             section names, section headers (the loader reads symbols there)
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/gcn/gcn_file.h"

#include <elf.h>
#include <string.h>

enum {
    MACHINE = 224, /* EM_AMDGPU */
    OS_HSA = 64,
    ABI_V5 = 3,
    NOTE_METADATA = 32,
    PAGE = 0x1000,
    GNU_SHIFT = 26, /* of the filter's second bit */
};

enum {
    S_NULL,
    S_NOTE,
    S_SYM,
    S_GNU,
    S_HASH,
    S_STR,
    S_RO,
    S_TEXT,
    S_DYN,
    S_NAMES,
    S_N
};

static const char section_names[] = "\0.note\0.dynsym\0.gnu.hash\0.hash\0"
                                    ".dynstr\0.rodata\0.text\0.dynamic\0"
                                    ".shstrtab";

typedef struct elf {
    const br_gcn_pieces *p;
    br_str body[S_N];
    Elf64_Shdr sh[S_N];
} elf;

static void
put(elf *e, int section, const void *p, size_t n)
{
    br_str_put(&e->body[section], p, n);
}

static void
put32(elf *e, int section, uint64_t v)
{
    uint32_t w = (uint32_t)v;

    put(e, section, &w, sizeof w);
}

static int
section_of(const br_gcn_symbol *s)
{
    return s->place == BR_GCN_TEXT ? S_TEXT : S_RO;
}

/* ---- symbols ---------------------------------------------------------- */

static uint32_t
gnu_hash(const char *name)
{
    uint32_t h = 5381;

    for (; *name; name++)
        h = h * 33 + (uint8_t)*name;
    return h;
}

/* Both tables have one bucket: all symbols hang in it, in order. */
static void
hashes(elf *e, const uint32_t *h, uint64_t n)
{
    uint64_t filter = 0;

    for (uint64_t i = 0; i < n; i++)
        filter |= 1ull << h[i] % 64 | 1ull << (h[i] >> GNU_SHIFT) % 64;
    put32(e, S_GNU, 1); /* buckets */
    put32(e, S_GNU, 1); /* the first symbol in it */
    put32(e, S_GNU, 1); /* words of the filter */
    put32(e, S_GNU, GNU_SHIFT);
    put(e, S_GNU, &filter, sizeof filter);
    put32(e, S_GNU, n ? 1 : 0);
    for (uint64_t i = 0; i < n; i++)
        put32(e, S_GNU, (h[i] & ~1u) | (i + 1 == n));
    put32(e, S_HASH, 1);
    put32(e, S_HASH, n + 1);
    put32(e, S_HASH, n ? 1 : 0);
    put32(e, S_HASH, 0);
    for (uint64_t i = 1; i <= n; i++)
        put32(e, S_HASH, i < n ? i + 1 : 0);
}

static br_code
symbols(elf *e, br_status *st)
{
    uint32_t *h = br_try_calloc(e->p->n_sym + 1, sizeof *h);
    uint64_t n = 0;
    Elf64_Sym s = {0};

    if (!h)
        return br_fail(st, BR_E_OOM, "no memory for a code object");
    put(e, S_SYM, &s, sizeof s);
    br_str_putc(&e->body[S_STR], 0);
    for (size_t i = 0; i < e->p->n_sym; i++) {
        const br_gcn_symbol *from = &e->p->sym[i];

        if (from->local || from->place == BR_GCN_NOWHERE)
            continue;
        h[n++] = gnu_hash(from->name);
        s = (Elf64_Sym){
            .st_name = (Elf64_Word)e->body[S_STR].n,
            .st_info = ELF64_ST_INFO(
                STB_GLOBAL, section_of(from) == S_TEXT ? STT_FUNC : STT_OBJECT),
            .st_other = STV_PROTECTED,
            .st_shndx = (Elf64_Half)section_of(from),
            .st_value = from->at,
            .st_size = from->bytes};
        put(e, S_SYM, &s, sizeof s);
        put(e, S_STR, from->name, strlen(from->name) + 1);
    }
    hashes(e, h, n);
    br_free(h);
    return BR_OK;
}

/* ---- places ----------------------------------------------------------- */

/* Where each section goes; addresses run with file offsets. */
static uint64_t
place(elf *e, uint64_t at)
{
    static const struct {
        uint32_t type, align, link, info;
        uint64_t flags, entry, shift;
    } how[S_N] = {
        [S_NOTE] = {SHT_NOTE, 4, 0, 0, SHF_ALLOC, 0, 0},
        [S_SYM] = {SHT_DYNSYM, 8, S_STR, 1, SHF_ALLOC, 24, 0},
        [S_GNU] = {SHT_GNU_HASH, 8, S_SYM, 0, SHF_ALLOC, 0, 0},
        [S_HASH] = {SHT_HASH, 4, S_SYM, 0, SHF_ALLOC, 4, 0},
        [S_STR] = {SHT_STRTAB, 1, 0, 0, SHF_ALLOC, 0, 0},
        [S_RO] = {SHT_PROGBITS, 64, 0, 0, SHF_ALLOC, 0, 0},
        [S_TEXT] = {SHT_PROGBITS, 256, 0, 0, SHF_ALLOC | SHF_EXECINSTR, 0,
                    PAGE},
        [S_DYN] = {SHT_DYNAMIC, 8, S_STR, 0, SHF_ALLOC | SHF_WRITE, 16,
                   2 * PAGE},
        [S_NAMES] = {SHT_STRTAB, 1, 0, 0, 0, 0, 0},
    };
    const char *name = section_names;

    for (int s = 1; s < S_N; s++) {
        Elf64_Shdr *h = &e->sh[s];

        name += strlen(name) + 1;
        at = (at + how[s].align - 1) & ~(uint64_t)(how[s].align - 1);
        h->sh_name = (Elf64_Word)(name - section_names);
        h->sh_type = how[s].type;
        h->sh_flags = how[s].flags;
        h->sh_addr = how[s].flags & SHF_ALLOC ? at + how[s].shift : 0;
        h->sh_offset = at;
        h->sh_size = e->body[s].n;
        h->sh_link = how[s].link;
        h->sh_info = how[s].info;
        h->sh_addralign = how[s].align;
        h->sh_entsize = how[s].entry;
        at += e->body[s].n;
    }
    return (at + 7) & ~(uint64_t)7;
}

static uint64_t
address_of(const elf *e, const br_gcn_symbol *s)
{
    return e->sh[section_of(s)].sh_addr + s->at;
}

/* Symbols, descriptors, references and the dynamic section, once addresses are
 * known. */
static void
resolve(elf *e)
{
    Elf64_Sym *sym = (Elf64_Sym *)(void *)e->body[S_SYM].at;
    const Elf64_Dyn d[] = {
        {DT_SYMTAB, {e->sh[S_SYM].sh_addr}},
        {DT_SYMENT, {sizeof *sym}},
        {DT_STRTAB, {e->sh[S_STR].sh_addr}},
        {DT_STRSZ, {e->body[S_STR].n}},
        {DT_GNU_HASH, {e->sh[S_GNU].sh_addr}},
        {DT_HASH, {e->sh[S_HASH].sh_addr}},
        {DT_NULL, {0}},
    };

    for (size_t i = 1; i < e->body[S_SYM].n / sizeof *sym; i++)
        sym[i].st_value += e->sh[sym[i].st_shndx].sh_addr;
    for (size_t i = 0; i < e->p->n_sym; i++) {
        const br_gcn_symbol *s = &e->p->sym[i];
        uint64_t way;

        if (!s->entry)
            continue;
        way = address_of(e, &e->p->sym[s->entry - 1]) - address_of(e, s);
        memcpy(e->body[S_RO].at + s->at + 16, &way, 8);
    }
    for (size_t i = 0; i < e->p->n_reloc; i++) {
        const br_gcn_reloc *r = &e->p->reloc[i];
        uint64_t v = address_of(e, &e->p->sym[r->symbol]) + (uint64_t)r->add -
                     (e->sh[S_TEXT].sh_addr + r->at);
        uint32_t w = (uint32_t)(r->high ? v >> 32 : v);

        memcpy(e->body[S_TEXT].at + r->at, &w, 4);
    }
    memcpy(e->body[S_DYN].at, d, sizeof d);
}

static Elf64_Phdr
segment(const elf *e, uint32_t type, uint32_t flags, int from, int to)
{
    const Elf64_Shdr *a = &e->sh[from], *b = &e->sh[to];
    bool load = type == PT_LOAD;
    Elf64_Phdr p = {.p_type = type, .p_flags = flags};

    p.p_offset = from ? a->sh_offset : 0;
    p.p_vaddr = p.p_paddr = from ? a->sh_addr : 0;
    p.p_filesz = p.p_memsz = b->sh_offset + b->sh_size - p.p_offset;
    p.p_align = load ? PAGE : a->sh_addralign ? a->sh_addralign : 8;
    return p;
}

static void
headers(const elf *e, uint64_t sections, br_str *out)
{
    const Elf64_Phdr ph[] = {
        segment(e, PT_LOAD, PF_R, S_NULL, S_RO),
        segment(e, PT_LOAD, PF_R | PF_X, S_TEXT, S_TEXT),
        segment(e, PT_LOAD, PF_R | PF_W, S_DYN, S_DYN),
        segment(e, PT_DYNAMIC, PF_R | PF_W, S_DYN, S_DYN),
        segment(e, PT_NOTE, PF_R, S_NOTE, S_NOTE),
    };
    const Elf64_Ehdr eh = {
        .e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT,
                    OS_HSA, ABI_V5},
        .e_type = ET_DYN,
        .e_machine = MACHINE,
        .e_version = EV_CURRENT,
        .e_phoff = sizeof eh,
        .e_shoff = sections,
        .e_flags = e->p->cpu->mach,
        .e_ehsize = sizeof eh,
        .e_phentsize = sizeof *ph,
        .e_phnum = BR_COUNT(ph),
        .e_shentsize = sizeof *e->sh,
        .e_shnum = S_N,
        .e_shstrndx = S_NAMES,
    };

    br_str_put(out, (const char *)&eh, sizeof eh);
    br_str_put(out, (const char *)ph, sizeof ph);
}

static br_code
bodies(elf *e, br_status *st)
{
    const br_gcn_pieces *p = e->p;
    Elf64_Dyn dyn[7] = {0};

    if (p->note.n) {
        put32(e, S_NOTE, 7);
        put32(e, S_NOTE, p->note.n);
        put32(e, S_NOTE, NOTE_METADATA);
        put(e, S_NOTE, "AMDGPU\0", 8);
        put(e, S_NOTE, p->note.p, p->note.n);
        while (e->body[S_NOTE].n % 4 && !e->body[S_NOTE].oom)
            br_str_putc(&e->body[S_NOTE], 0);
    }
    BR_TRY(symbols(e, st));
    put(e, S_TEXT, p->text.p, p->text.n);
    put(e, S_RO, p->data.p, p->data.n);
    put(e, S_DYN, dyn, sizeof dyn);
    put(e, S_NAMES, section_names, sizeof section_names);
    for (int s = 1; s < S_N; s++)
        if (e->body[s].oom)
            return br_fail(st, BR_E_OOM, "no memory for a code object");
    return BR_OK;
}

br_code
br_gcn_link(br_str *out, const br_gcn_pieces *p, br_status *st)
{
    elf e = {.p = p};
    size_t begin = out->n;
    br_code code;

    if (p->n_sym > BR_GCN_MAX_SYMBOLS || p->text.n > BR_GCN_MAX_IMAGE / 2 ||
        p->data.n > BR_GCN_MAX_IMAGE / 4 || p->note.n > BR_GCN_MAX_NOTE)
        return br_fail(st, BR_E_LIMIT, "a code object too large");
    code = bodies(&e, st);
    if (code == BR_OK) {
        uint64_t end = place(&e, sizeof(Elf64_Ehdr) + 5 * sizeof(Elf64_Phdr));

        resolve(&e);
        headers(&e, end, out);
        for (int s = 1; s < S_N && !out->oom; s++) {
            while (out->n - begin < e.sh[s].sh_offset && !out->oom)
                br_str_putc(out, 0);
            br_str_put(out, br_str_z(&e.body[s]), e.body[s].n);
        }
        while (out->n - begin < end && !out->oom)
            br_str_putc(out, 0);
        br_str_put(out, (const char *)e.sh, sizeof e.sh);
        if (out->oom)
            code = br_fail(st, BR_E_OOM, "no memory for a code object");
    }
    for (int s = 1; s < S_N; s++)
        br_str_fini(&e.body[s]);
    return code;
}

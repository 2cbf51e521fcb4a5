/* gcn_object.c - AMD code objects: ELF64, amdhsa, version 5, without a linker.
 *
 *   file      0 ELF and program headers, .note .dynsym .hash .dynstr .rodata
 *             .text      on a page of its own address: file offset + 0x1000
 *             .dynamic   file offset + 0x2000
 *             section names, section headers (the loader reads symbols there)
 *
 * A kernel `k` is two symbols: `k` (its code) and `k.kd` (64 bytes in .rodata
 * that packets point at). Behind the last instruction 256 bytes and more are
 * s_code_end, for the hardware fetches ahead.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/gcn/gcn.h"

#include <elf.h>
#include <string.h>

enum {
    MACHINE = 224, /* EM_AMDGPU */
    OS_HSA = 64,
    ABI_V5 = 3,
    NOTE_METADATA = 32,
    CODE_ALIGN = 256,
    PAD_WORDS = 96,
    PAGE = 0x1000,
    MAX_GROUP = 65536, /* bytes of LDS */
    MAX_THREADS = 1024,
};

/* ---- the descriptor --------------------------------------------------- */

static void
put32(uint8_t *p, uint32_t v)
{
    for (int k = 0; k < 4; k++)
        p[k] = (uint8_t)(v >> 8 * k);
}

static unsigned
user_sgprs(const br_gcn_isa *isa, const br_gcn_kernel *k)
{
    unsigned n = k->kernarg_bytes ? 2 : 0;
    bool pads = strcmp(isa->cpu->name, "gfx1100") == 0 ||
                strcmp(isa->cpu->name, "gfx1102") == 0;

    /* These two start wave32 code with wrong SGPRs when fewer than 16 are
     * initialised; with three work-group ids 13 user SGPRs make 16. */
    return pads && !isa->wave64 ? 13 : n;
}

static uint32_t
rsrc1(const br_gcn_isa *isa, const br_gcn_kernel *k)
{
    unsigned granule = isa->wave64 ? 4 : 8, n = BR_MAX(k->vgprs, 1u);
    uint32_t v = (n + granule - 1) / granule - 1;

    v |= 3u << 16 | 3u << 18; /* denormals are kept */
    v |= 1u << 30;            /* loads return in order */
    if (isa->cpu->gen == 11)
        v |= 1u << 21 | 1u << 23; /* DX10_CLAMP, IEEE_MODE */
    return v;
}

br_code
br_gcn_descriptor(uint8_t kd[BR_GCN_KD_BYTES], const br_gcn_isa *isa,
                  const br_gcn_kernel *k, int64_t entry_minus_kd, br_status *st)
{
    uint32_t rsrc2;

    if (k->vgprs > 256 || k->sgprs > 106)
        return br_fail(st, BR_E_LIMIT,
                       "%s: %u VGPRs, %u SGPRs; 256 and 106 are there", k->name,
                       k->vgprs, k->sgprs);
    if (k->lds_bytes > MAX_GROUP || k->max_threads > MAX_THREADS ||
        !k->max_threads || k->ids < 1 || k->ids > 3)
        return br_fail(st, BR_E_LIMIT,
                       "%s: %u bytes of LDS, %u threads, %u dimensions",
                       k->name, k->lds_bytes, k->max_threads, k->ids);
    rsrc2 = (k->scratch_bytes != 0) | user_sgprs(isa, k) << 1 | 7u << 7 |
            (k->ids - 1u) << 11;
    memset(kd, 0, BR_GCN_KD_BYTES);
    put32(kd, k->lds_bytes);
    put32(kd + 4, k->scratch_bytes);
    put32(kd + 8, k->kernarg_bytes);
    put32(kd + 16, (uint32_t)entry_minus_kd);
    put32(kd + 20, (uint32_t)((uint64_t)entry_minus_kd >> 32));
    put32(kd + 48, rsrc1(isa, k));
    put32(kd + 52, rsrc2);
    /* bit 3: kernarg pointer, bit 10: wave32 */
    put32(kd + 56, (k->kernarg_bytes ? 8u : 0) | (isa->wave64 ? 0 : 1u << 10));
    return BR_OK;
}

/* ---- metadata: MessagePack -------------------------------------------- */

static void
mp_map(br_str *o, unsigned n)
{
    br_str_putc(o, (char)(0x80 | n));
}

static void
mp_text(br_str *o, const char *z)
{
    size_t n = strlen(z);

    if (n < 32) {
        br_str_putc(o, (char)(0xa0 | n));
    } else {
        br_str_putc(o, (char)0xda); /* two bytes of length */
        br_str_putc(o, (char)(n >> 8));
        br_str_putc(o, (char)n);
    }
    br_str_put(o, z, n);
}

static void
mp_array(br_str *o, size_t n)
{
    br_str_putc(o, (char)0xdc);
    br_str_putc(o, (char)(n >> 8));
    br_str_putc(o, (char)n);
}

static void
mp_uint(br_str *o, uint32_t v)
{
    br_str_putc(o, (char)0xce);
    for (int k = 24; k >= 0; k -= 8)
        br_str_putc(o, (char)(v >> k));
}

static void
mp_pair(br_str *o, const char *key, uint32_t v)
{
    mp_text(o, key);
    mp_uint(o, v);
}

static void
mp_kernel(br_str *o, const br_gcn_isa *isa, const br_gcn_kernel *k)
{
    br_str kd = {0};

    br_str_printf(&kd, "%s.kd", k->name);
    mp_map(o, 11);
    mp_text(o, ".name");
    mp_text(o, k->name);
    mp_text(o, ".symbol");
    mp_text(o, kd.at ? kd.at : "");
    mp_pair(o, ".kernarg_segment_size", k->kernarg_bytes);
    mp_pair(o, ".kernarg_segment_align", 16);
    mp_pair(o, ".group_segment_fixed_size", k->lds_bytes);
    mp_pair(o, ".private_segment_fixed_size", k->scratch_bytes);
    mp_pair(o, ".sgpr_count", k->sgprs);
    mp_pair(o, ".vgpr_count", k->vgprs);
    mp_pair(o, ".max_flat_workgroup_size", k->max_threads);
    mp_pair(o, ".wavefront_size", isa->wave64 ? 64 : 32);
    mp_text(o, ".args");
    mp_array(o, 0);
    o->oom = o->oom || kd.oom;
    br_str_fini(&kd);
}

static void
metadata(br_str *o, const br_gcn_isa *isa, const br_gcn_kernel *k, size_t n)
{
    br_str target = {0};

    br_str_printf(&target, "amdgcn-amd-amdhsa--%s", isa->cpu->name);
    mp_map(o, 3);
    mp_text(o, "amdhsa.version");
    mp_array(o, 2);
    mp_uint(o, 1);
    mp_uint(o, 2);
    mp_text(o, "amdhsa.target");
    mp_text(o, target.at ? target.at : "");
    mp_text(o, "amdhsa.kernels");
    mp_array(o, n);
    for (size_t i = 0; i < n; i++)
        mp_kernel(o, isa, &k[i]);
    o->oom = o->oom || target.oom;
    br_str_fini(&target);
}

/* ---- ELF -------------------------------------------------------------- */

enum {
    S_NULL,
    S_NOTE,
    S_SYM,
    S_HASH,
    S_STR,
    S_RO,
    S_TEXT,
    S_DYN,
    S_NAMES,
    S_N
};

static const char section_names[] =
    "\0.note\0.dynsym\0.hash\0.dynstr\0.rodata\0.text\0.dynamic\0.shstrtab";

typedef struct elf {
    br_str body[S_N];
    Elf64_Shdr sh[S_N];
} elf;

static void
symbol(elf *e, const char *name, unsigned section, uint64_t at, uint64_t size)
{
    unsigned type = section == S_TEXT ? STT_FUNC : STT_OBJECT;
    Elf64_Sym s = {.st_name = (Elf64_Word)e->body[S_STR].n,
                   .st_info = ELF64_ST_INFO(STB_GLOBAL, type),
                   .st_other = STV_PROTECTED,
                   .st_shndx = (Elf64_Half)section,
                   .st_value = at,
                   .st_size = size};

    br_str_put(&e->body[S_SYM], (const char *)&s, sizeof s);
    br_str_puts(&e->body[S_STR], name);
    br_str_putc(&e->body[S_STR], 0);
}

/* Symbols and their places relative to .text and .rodata; one bucket. */
static void
symbols(elf *e, const br_gcn_kernel *k, size_t n)
{
    uint32_t w[2] = {1, (uint32_t)(2 * n + 1)};
    uint32_t zero = 0, chain;
    uint64_t at = 0;
    br_str kd = {0};
    Elf64_Sym none = {0};

    br_str_put(&e->body[S_SYM], (const char *)&none, sizeof none);
    br_str_putc(&e->body[S_STR], 0);
    for (size_t i = 0; i < n; i++) {
        symbol(e, k[i].name, S_TEXT, at, k[i].words * 4);
        br_str_clear(&kd);
        br_str_printf(&kd, "%s.kd", k[i].name);
        symbol(e, kd.at ? kd.at : "", S_RO, i * BR_GCN_KD_BYTES,
               BR_GCN_KD_BYTES);
        at += (k[i].words * 4 + PAD_WORDS * 4 + CODE_ALIGN - 1) &
              ~(uint64_t)(CODE_ALIGN - 1);
    }
    br_str_put(&e->body[S_HASH], (const char *)w, sizeof w);
    chain = 1; /* all symbols hang in the one bucket, in order */
    br_str_put(&e->body[S_HASH], (const char *)&chain, 4);
    br_str_put(&e->body[S_HASH], (const char *)&zero, 4);
    for (chain = 2; chain <= 2 * n + 1; chain++) {
        uint32_t next = chain <= 2 * n ? chain : 0;

        br_str_put(&e->body[S_HASH], (const char *)&next, 4);
    }
    e->body[S_STR].oom = e->body[S_STR].oom || kd.oom;
    br_str_fini(&kd);
}

static void
text(elf *e, const br_gcn_kernel *k, size_t n)
{
    const uint32_t end = 0xbf9f0000; /* s_code_end */
    br_str *t = &e->body[S_TEXT];

    for (size_t i = 0; i < n; i++) {
        br_str_put(t, (const char *)k[i].code, k[i].words * 4);
        for (unsigned p = 0; (p < PAD_WORDS || t->n % CODE_ALIGN) && !t->oom;
             p++)
            br_str_put(t, (const char *)&end, 4);
        if (t->oom)
            return;
    }
}

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

/* Symbols and the dynamic section, once addresses are known. */
static void
resolve(elf *e)
{
    Elf64_Sym *sym = (Elf64_Sym *)(void *)e->body[S_SYM].at;
    Elf64_Dyn *dyn = (Elf64_Dyn *)(void *)e->body[S_DYN].at;
    const Elf64_Dyn d[] = {
        {DT_SYMTAB, {e->sh[S_SYM].sh_addr}}, {DT_SYMENT, {sizeof *sym}},
        {DT_STRTAB, {e->sh[S_STR].sh_addr}}, {DT_STRSZ, {e->body[S_STR].n}},
        {DT_HASH, {e->sh[S_HASH].sh_addr}},  {DT_NULL, {0}},
    };

    for (size_t i = 1; i < e->body[S_SYM].n / sizeof *sym; i++)
        sym[i].st_value += e->sh[sym[i].st_shndx].sh_addr;
    memcpy(dyn, d, sizeof d);
}

static br_code
descriptors(elf *e, const br_gcn_isa *isa, const br_gcn_kernel *k, size_t n,
            br_status *st)
{
    const Elf64_Sym *sym = (const Elf64_Sym *)(const void *)e->body[S_SYM].at;

    for (size_t i = 0; i < n; i++)
        BR_TRY(br_gcn_descriptor(
            (uint8_t *)e->body[S_RO].at + i * BR_GCN_KD_BYTES, isa, &k[i],
            (int64_t)(sym[2 * i + 1].st_value - sym[2 * i + 2].st_value), st));
    return BR_OK;
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
headers(const elf *e, const br_gcn_isa *isa, uint64_t sections, br_str *out)
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
        .e_flags = isa->cpu->mach,
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

static void
bodies(elf *e, const br_gcn_isa *isa, const br_gcn_kernel *k, size_t n)
{
    br_str note = {0};
    uint32_t head[3] = {7, 0, NOTE_METADATA};
    Elf64_Dyn dyn[6] = {0};
    static const uint8_t zero[BR_GCN_KD_BYTES];

    metadata(&note, isa, k, n);
    head[1] = (uint32_t)note.n;
    br_str_put(&e->body[S_NOTE], (const char *)head, sizeof head);
    br_str_put(&e->body[S_NOTE], "AMDGPU\0", 8);
    br_str_put(&e->body[S_NOTE], note.at ? note.at : "", note.n);
    while (e->body[S_NOTE].n % 4 && !e->body[S_NOTE].oom)
        br_str_putc(&e->body[S_NOTE], 0);
    e->body[S_NOTE].oom = e->body[S_NOTE].oom || note.oom;
    br_str_fini(&note);
    symbols(e, k, n);
    text(e, k, n);
    for (size_t i = 0; i < n; i++)
        br_str_put(&e->body[S_RO], (const char *)zero, sizeof zero);
    br_str_put(&e->body[S_DYN], (const char *)dyn, sizeof dyn);
    br_str_put(&e->body[S_NAMES], section_names, sizeof section_names);
}

static br_code
check(const br_gcn_kernel *k, size_t n, br_status *st)
{
    if (n == 0 || n > BR_GCN_MAX_KERNELS)
        return br_fail(st, BR_E_LIMIT,
                       "%zu kernels, 1 to %d go into a code "
                       "object",
                       n, BR_GCN_MAX_KERNELS);
    for (size_t i = 0; i < n; i++)
        if (!k[i].words || k[i].words > BR_GCN_MAX_CODE ||
            strlen(k[i].name) > 1000)
            return br_fail(st, BR_E_LIMIT, "%.40s: %zu words of code",
                           k[i].name, k[i].words);
    return BR_OK;
}

br_code
br_gcn_object(br_str *out, const br_gcn_isa *isa, const br_gcn_kernel *k,
              size_t n, br_status *st)
{
    elf e = {0};
    uint64_t sections;
    size_t begin = out->n;
    br_code code = BR_OK;
    bool oom = false;

    BR_TRY(check(k, n, st));
    bodies(&e, isa, k, n);
    for (int s = 1; s < S_N; s++)
        oom = oom || e.body[s].oom;
    if (!oom) {
        sections = place(&e, sizeof(Elf64_Ehdr) + 5 * sizeof(Elf64_Phdr));
        resolve(&e);
        code = descriptors(&e, isa, k, n, st);
        headers(&e, isa, sections, out);
        for (int s = 1; s < S_N && !out->oom; s++) {
            while (out->n - begin < e.sh[s].sh_offset && !out->oom)
                br_str_putc(out, 0);
            br_str_put(out, e.body[s].at, e.body[s].n);
        }
        while (out->n - begin < sections && !out->oom)
            br_str_putc(out, 0);
        br_str_put(out, (const char *)e.sh, sizeof e.sh);
    }
    for (int s = 1; s < S_N; s++)
        br_str_fini(&e.body[s]);
    if (code == BR_OK && (oom || out->oom))
        code = br_fail(st, BR_E_OOM, "no memory for a code object");
    return code;
}

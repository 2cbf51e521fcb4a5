/* test_gcn_object.c - code objects: what a loader checks, what LLVM reads.
 * SPDX-License-Identifier: Apache-2.0 */
#include "t.h"

#include "cg/gcn/gcn.h"
#include "drv/amd/aql.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

static uint32_t code[4];

/* The empty kernel: one instruction, from its text. */
static br_gcn_kernel
empty(const br_gcn_isa *isa)
{
    br_gcn_kernel k = {.name = "empty_kernel",
                       .code = code,
                       .words = 1,
                       .vgprs = 1,
                       .sgprs = 1,
                       .max_threads = 1024,
                       .ids = 1};
    br_gcn_inst in;

    ck_assert_int_eq(br_gcn_parse(isa, "s_endpgm", 8, &in, NULL), BR_OK);
    ck_assert_uint_eq(in.w[0], 0xbfb00000);
    code[0] = in.w[0];
    return k;
}

static uint32_t
u32(const void *p)
{
    uint32_t v;

    memcpy(&v, p, 4);
    return v;
}

/* The rules of ROCr's loader: identity, segments in order inside the file,
 * symbols through section headers, each .kd with 64 bytes inside a segment,
 * its entry on 256 bytes in an executable one. */
static void
loads(const br_str *o, const br_gcn_isa *isa)
{
    const Elf64_Ehdr *eh = (const void *)o->at;
    const Elf64_Phdr *ph = (const void *)(o->at + eh->e_phoff);
    const Elf64_Shdr *sh = (const void *)(o->at + eh->e_shoff);
    const Elf64_Sym *sym = NULL;
    const char *names = NULL;
    uint64_t last = 0;
    unsigned found = 0;

    ck_assert(memcmp(eh->e_ident,
                     "\x7f"
                     "ELF\2\1\1\x40\3",
                     9) == 0);
    ck_assert_uint_eq(eh->e_type, ET_DYN);
    ck_assert_uint_eq(eh->e_machine, 224);
    ck_assert_uint_eq(eh->e_flags & 0xff, isa->cpu->mach);
    ck_assert_uint_eq(eh->e_shoff + eh->e_shnum * sizeof *sh, o->n);
    for (int i = 0; i < eh->e_phnum; i++) {
        ck_assert_uint_le(ph[i].p_offset + ph[i].p_filesz, o->n);
        if (ph[i].p_type != PT_LOAD)
            continue;
        ck_assert_uint_ge(ph[i].p_vaddr, last);
        ck_assert_uint_eq((ph[i].p_vaddr - ph[i].p_offset) % 4096, 0);
        last = ph[i].p_vaddr + ph[i].p_memsz;
    }
    for (int i = 0; i < eh->e_shnum; i++)
        if (sh[i].sh_type == SHT_DYNSYM) {
            sym = (const void *)(o->at + sh[i].sh_offset);
            names = o->at + sh[sh[i].sh_link].sh_offset;
            found = (unsigned)(sh[i].sh_size / sizeof *sym);
        }
    ck_assert_uint_eq(found % 2, 1);
    for (unsigned i = 2; i < found; i += 2) {
        const char *kd = o->at + sym[i].st_value; /* .rodata is at its offset */
        uint64_t entry = sym[i].st_value + u32(kd + 16);

        ck_assert(strstr(names + sym[i].st_name, ".kd") != NULL);
        ck_assert_uint_eq(sym[i].st_size, 64);
        ck_assert_uint_eq(sym[i].st_value % 64, 0);
        ck_assert_uint_eq(entry % 256, 0);
        ck_assert_uint_eq(entry, sym[i - 1].st_value);
        ck_assert(ph[1].p_flags & PF_X && entry >= ph[1].p_vaddr &&
                  entry + 256 < ph[1].p_vaddr + ph[1].p_memsz);
    }
}

TEST(gcn_object_of_the_empty_kernel_keeps_the_loaders_rules)
{
    const br_gcn_cpu *cpu;

    for (size_t c = 0; (cpu = br_gcn_cpu_at(c)); c++)
        for (int wave64 = 0; wave64 < 2; wave64++) {
            br_gcn_isa isa = {cpu, wave64};
            br_gcn_kernel k[2] = {empty(&isa), empty(&isa)};
            br_str o = {0};

            k[1].name = "second";
            k[1].words = 2;
            k[1].kernarg_bytes = 24;
            code[1] = code[0];
            ck_assert_int_eq(br_gcn_object(&o, &isa, k, 2, NULL), BR_OK);
            loads(&o, &isa);
            br_str_fini(&o);
        }
}

TEST(gcn_descriptor_bits)
{
    static const struct {
        const char *cpu;
        uint32_t rsrc1, rsrc2;
    } want[] = {
        {"gfx1100", 0x40af0000, 0x0000039a}, /* 13 user SGPRs: the padding */
        {"gfx1151", 0x40af0000, 0x00000380},
        {"gfx1201", 0x400f0000, 0x00000380},
    };

    for (size_t i = 0; i < BR_COUNT(want); i++) {
        br_gcn_isa isa = {br_gcn_cpu_find(want[i].cpu), false};
        br_gcn_kernel k = empty(&isa);
        uint8_t kd[64];

        ck_assert_int_eq(br_gcn_descriptor(kd, &isa, &k, 4096, NULL), BR_OK);
        ck_assert_uint_eq(u32(kd + 16), 4096);
        ck_assert_uint_eq(u32(kd + 48), want[i].rsrc1);
        ck_assert_uint_eq(u32(kd + 52), want[i].rsrc2);
        ck_assert_uint_eq(u32(kd + 56), 1 << 10);
        k.vgprs = 25;
        k.lds_bytes = 65537;
        ck_assert_int_ne(br_gcn_descriptor(kd, &isa, &k, 0, NULL), BR_OK);
        k.lds_bytes = 512;
        ck_assert_int_eq(br_gcn_descriptor(kd, &isa, &k, 0, NULL), BR_OK);
        ck_assert_uint_eq(u32(kd + 48) & 63, 3); /* 4 times 8 registers */
        k.vgprs = 257;
        ck_assert_int_ne(br_gcn_descriptor(kd, &isa, &k, 0, NULL), BR_OK);
    }
}

static br_code
make(void *arg, br_status *st)
{
    const br_gcn_isa *isa = arg;
    br_gcn_kernel k = empty(isa);
    br_str o = {0};
    br_code c = br_gcn_object(&o, isa, &k, 1, st);

    br_str_fini(&o);
    return c;
}

TEST(gcn_object_survives_lack_of_memory)
{
    br_gcn_isa isa = {br_gcn_cpu_find("gfx1201"), false};

    t_each_oom(make, &isa);
}

TEST(gcn_object_is_read_by_llvm)
{
    br_gcn_isa isa = {br_gcn_cpu_find("gfx1201"), false};
    br_gcn_kernel k = empty(&isa);
    const char *path = t_printf("%s/e.co", t_tmpdir());
    br_str o = {0};
    t_proc r;

    if (!t_have_program("llvm-readelf-19"))
        t_skip("no llvm-readelf-19 here");
    ck_assert_int_eq(br_gcn_object(&o, &isa, &k, 1, NULL), BR_OK);
    t_write(path, o.at, o.n);
    br_str_fini(&o);
    t_exec(&r, (const char *[]){"llvm-readelf-19", "--all", path, NULL}, NULL,
           0);
    ck_assert_str_eq(r.err, "");
    ck_assert(strstr(r.out, "AMDGPU Metadata"));
    ck_assert(strstr(r.out, ".symbol:         empty_kernel.kd") ||
              strstr(r.out, "empty_kernel.kd"));
    ck_assert(strstr(r.out, "amdgcn-amd-amdhsa--gfx1201"));
    ck_assert(strstr(r.out, "0x4E, gfx1201"));
    ck_assert(!strstr(r.out, "Invalid AMDGPU Metadata"));
}

/* One work-group of one lane; the code object is in memory at `base`. */
TEST(gcn_empty_kernel_is_dispatched_by_a_packet_built_field_by_field)
{
    static const uint8_t want[64] = {
        0x02, 0x15, 1,    0, 1, 0, 1, 0, 1, 0, 0,    0, 1, 0, 0, 0,
        1,    0,    0,    0, 1, 0, 0, 0, 0, 0, 0,    0, 0, 0, 0, 0,
        0x80, 0x03, 0x10, 0, 0, 0, 0, 0, 0, 0, 0,    0, 0, 0, 0, 0,
        0,    0,    0,    0, 0, 0, 0, 0, 0, 0, 0x20, 0, 0, 0, 0, 0};
    br_aql_packet p;
    br_aql_launch l = {.groups = {1, 1, 1},
                       .group = {1, 1, 1},
                       .kernel = 0x100380,
                       .completion = 0x200000};
    uint16_t header = br_aql_header(BR_AQL_DISPATCH, true, BR_AQL_SCOPE_SYSTEM,
                                    BR_AQL_SCOPE_SYSTEM);

    memset(&p, 0xaa, sizeof p);
    ck_assert_int_eq(br_aql_fill(&p, &l, NULL), BR_OK);
    ck_assert_uint_eq(p.header, BR_AQL_INVALID);
    br_aql_publish(&p, header);
    ck_assert(memcmp(&p, want, sizeof want) == 0);
    l.groups[1] = 3;
    l.group[0] = 32;
    ck_assert_int_eq(br_aql_fill(&p, &l, NULL), BR_OK);
    ck_assert_uint_eq(p.setup, 2);
    ck_assert_uint_eq(p.grid[0], 32);
    ck_assert_uint_eq(p.grid[1], 3);
    l.group[1] = 64; /* 2,048 work-items */
    ck_assert_int_eq(br_aql_fill(&p, &l, NULL), BR_E_LIMIT);
    l.group[1] = 1;
    l.groups[0] = 1u << 27; /* times 32 does not fit 32 bits */
    ck_assert_int_eq(br_aql_fill(&p, &l, NULL), BR_E_LIMIT);
    l.groups[0] = 1;
    l.kernel = 0x100384;
    ck_assert_int_eq(br_aql_fill(&p, &l, NULL), BR_E_LIMIT);
}

/* test_gcn_fields.c - our code objects beside clang-19's, field by field: all
 * kernels of tests/data/gcn/kernels.cu, by both compilers. A field that differs in
 * any of them is explained in src/cg/gcn/README-ISA.md, and each that is explained
 * there differs. SPDX-License-Identifier: Apache-2.0 */
#include "t.h"

#include "cg/gcn/gcn_file.h"
#include "cg/gcn/gcn_kernel.h"
#include "cg/kir_pass.h"
#include "cg/ptx/ptx.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

T_ONE_THREAD();

/* Refused: of 64 lanes. */
enum { KERNELS = 52, REFUSED = 5, MAX_FIELDS = 64 };

typedef struct object {
    const char *file;
    size_t n;
    br_gcn_co co;
    br_str yaml; /* of the metadata */
} object;

/* Names of fields that differ, each once. */
typedef struct fields {
    const char *at[MAX_FIELDS];
    size_t n, compared;
} fields;

static void
differs(fields *f, const char *name)
{
    for (size_t i = 0; i < f->n; i++)
        if (strcmp(f->at[i], name) == 0)
            return;
    ck_assert_uint_lt(f->n, MAX_FIELDS);
    f->at[f->n++] = t_printf("%s", name);
}

static void
number(fields *f, const char *name, uint64_t ours, uint64_t theirs)
{
    f->compared++;
    if (ours != theirs)
        differs(f, name);
}

/* ---- both compilers ------------------------------------------------------- */

static void
open_object(object *o, const char *path)
{
    br_status st = {0};

    o->file = t_read(path, &o->n);
    t_ok(br_gcn_load(&o->co, o->file, o->n, &st), &st);
    t_ok(br_gcn_yaml_write(&o->yaml, o->co.note, &st), &st);
}

static void
close_object(object *o)
{
    br_gcn_unload(&o->co);
    br_str_fini(&o->yaml);
}

/* What is not refused of the kernels, for waves of 64 lanes, into a file. */
static void
compile_wave64(const char *ptx, const char *cpu, const char *to)
{
    br_gcn_isa isa = {br_gcn_cpu_find(cpu), true};
    br_gcn_compiled c[KERNELS];
    br_gcn_kernel k[KERNELS];
    size_t bytes, n = 0;
    const char *text = t_read(ptx, &bytes);
    br_status st = {0};
    br_str out = {0};
    br_kir *m;

    t_ok(br_ptx_parse(&m, text, bytes, NULL, &st), &st);
    t_ok(br_kir_optimise(m, NULL, &st), &st);
    for (uint32_t f = 0; f < m->fns.n; f++)
        if (m->fns.at[f].entry && n < KERNELS &&
            br_gcn_compile(&c[n], &isa, m, f, &st) == BR_OK) {
            k[n] = c[n].k;
            n++;
        }
    t_ok(br_gcn_object(&out, &isa, k, n, &st), &st);
    t_write(to, out.at, out.n);
    while (n > 0)
        br_gcn_compiled_fini(&c[--n]);
    br_str_fini(&out);
    br_kir_free(m);
}

static void
compile_both(object *ours, object *theirs, const char *cpu, bool wave64)
{
    const char *cu = t_repo("tests/data/gcn/kernels.cu");
    const char *ptx = t_repo("tests/data/gcn/kernels.ptx");
    const char *a = t_printf("%s/ours.co", t_tmpdir());
    const char *b = t_printf("%s/theirs.co", t_tmpdir());
    t_proc r;

    if (wave64) {
        compile_wave64(ptx, cpu, a);
    } else {
        t_run(&r, "kernel", "compile", ptx, "--target", cpu, "-o", a);
        ck_assert_msg(r.exit == 0, "%s", r.err);
    }
    t_exec(&r,
           (const char *[]){
               "clang-19", "-x", "hip", "-std=c++17", "--cuda-device-only",
               "--no-gpu-bundle-output", "-nogpuinc", "-nogpulib",
               t_printf("--offload-arch=%s", cpu), "-mcode-object-version=5",
               "-mcumode", "-O3",
               wave64 ? "-mwavefrontsize64" : "-mno-wavefrontsize64", "-c",
               "-o", b, cu, NULL},
           NULL, 0);
    ck_assert_msg(r.exit == 0, "%s", r.err);
    open_object(ours, a);
    open_object(theirs, b);
}

/* ---- the file ------------------------------------------------------------- */

static const Elf64_Ehdr *
header(const object *o)
{
    return (const void *)o->file;
}

/* The n-th segment of a type, or one of zeros. */
static const Elf64_Phdr *
segment(const object *o, uint32_t type, unsigned n)
{
    static const Elf64_Phdr none;
    const Elf64_Phdr *p = (const void *)(o->file + header(o)->e_phoff);

    for (int i = 0; i < header(o)->e_phnum; i++)
        if (p[i].p_type == type && n-- == 0)
            return &p[i];
    return &none;
}

static const Elf64_Shdr *
section(const object *o, const char *name)
{
    const Elf64_Shdr *s = (const void *)(o->file + header(o)->e_shoff);
    const char *names = o->file + s[header(o)->e_shstrndx].sh_offset;

    for (int i = 0; i < header(o)->e_shnum; i++)
        if (strcmp(names + s[i].sh_name, name) == 0)
            return &s[i];
    ck_abort_msg("no section %s", name);
}

static void
file_header(fields *f, const object *a, const object *b)
{
    const Elf64_Ehdr *x = header(a), *y = header(b);

    number(f, "e_ident", memcmp(x->e_ident, y->e_ident, EI_NIDENT) != 0, 0);
#define H(name) number(f, #name, x->name, y->name)
    H(e_type);
    H(e_machine);
    H(e_version);
    H(e_entry);
    H(e_phoff);
    H(e_flags);
    H(e_ehsize);
    H(e_phentsize);
    H(e_shentsize);
    H(e_phnum);
    H(e_shnum);
#undef H
}

static void
segments(fields *f, const object *a, const object *b)
{
    static const struct {
        uint32_t type;
        const char *name;
        unsigned n;
    } want[] = {{PT_LOAD, "PT_LOAD", 3},
                {PT_DYNAMIC, "PT_DYNAMIC", 1},
                {PT_NOTE, "PT_NOTE", 1}};

    for (size_t i = 0; i < BR_COUNT(want); i++)
        for (unsigned n = 0; n < want[i].n; n++) {
            const Elf64_Phdr *x = segment(a, want[i].type, n);
            const Elf64_Phdr *y = segment(b, want[i].type, n);

            number(f, t_printf("%s p_flags", want[i].name), x->p_flags,
                   y->p_flags);
            number(f, t_printf("%s p_align", want[i].name), x->p_align,
                   y->p_align);
            number(f, t_printf("%s p_paddr", want[i].name),
                   x->p_paddr - x->p_vaddr, y->p_paddr - y->p_vaddr);
        }
    number(f, "PT_PHDR", segment(a, PT_PHDR, 0)->p_type,
           segment(b, PT_PHDR, 0)->p_type);
    number(f, "PT_GNU_RELRO", segment(a, PT_GNU_RELRO, 0)->p_type,
           segment(b, PT_GNU_RELRO, 0)->p_type);
    number(f, "PT_GNU_STACK", segment(a, PT_GNU_STACK, 0)->p_type,
           segment(b, PT_GNU_STACK, 0)->p_type);
}

static void
sections(fields *f, const object *a, const object *b)
{
    static const char *const names[] = {".note", ".dynsym", ".gnu.hash",
                                        ".hash", ".dynstr", ".rodata",
                                        ".text", ".dynamic"};

    for (size_t i = 0; i < BR_COUNT(names); i++) {
        const Elf64_Shdr *x = section(a, names[i]), *y = section(b, names[i]);

        number(f, t_printf("%s sh_type", names[i]), x->sh_type, y->sh_type);
        number(f, t_printf("%s sh_flags", names[i]), x->sh_flags, y->sh_flags);
        number(f, t_printf("%s sh_entsize", names[i]), x->sh_entsize,
               y->sh_entsize);
        number(f, t_printf("%s sh_addralign", names[i]), x->sh_addralign,
               y->sh_addralign);
    }
}

static uint64_t
dynamic_tags(const object *o)
{
    const Elf64_Shdr *s = section(o, ".dynamic");
    const Elf64_Dyn *d = (const void *)(o->file + s->sh_offset);
    uint64_t tags = 0;

    for (; d->d_tag != DT_NULL; d++)
        tags |= 1ull << (d->d_tag == DT_GNU_HASH ? 63 : d->d_tag % 63);
    return tags;
}

/* ---- symbols --------------------------------------------------------------- */

static const Elf64_Sym *
symbol(const object *o, const char *name)
{
    const Elf64_Shdr *t = section(o, ".dynsym");
    const Elf64_Sym *s = (const void *)(o->file + t->sh_offset);
    const char *names = o->file + section(o, ".dynstr")->sh_offset;

    for (size_t i = 0; i < t->sh_size / sizeof *s; i++)
        if (strcmp(names + s[i].st_name, name) == 0)
            return &s[i];
    ck_abort_msg("no symbol %s", name);
}

static void
symbols(fields *f, const object *a, const object *b, const char *kernel)
{
    for (int kd = 0; kd < 2; kd++) {
        const char *name = kd ? t_printf("%s.kd", kernel) : kernel;
        const Elf64_Sym *x = symbol(a, name), *y = symbol(b, name);

        number(f, "st_info", x->st_info, y->st_info);
        number(f, "st_other", x->st_other, y->st_other);
        number(f, "section of a symbol", x->st_shndx, y->st_shndx);
        number(f, kd ? "st_size of .kd" : "st_size of code", x->st_size,
               y->st_size);
        number(f, "st_value's alignment", x->st_value % (kd ? 64 : 256),
               y->st_value % (kd ? 64 : 256));
    }
}

/* ---- descriptors ----------------------------------------------------------- */

/* Lines of both texts by turns; the word before the last is the field. */
static void
lines(fields *f, const char *ours, const char *theirs)
{
    while (*ours && *theirs) {
        size_t n = strcspn(ours, "\n"), m = strcspn(theirs, "\n");
        const char *dot = ours + strspn(ours, "\t");

        f->compared++;
        if (n != m || memcmp(ours, theirs, n) != 0)
            differs(f, t_printf("%.*s", (int)strcspn(dot, " "), dot));
        ours += n + (ours[n] != 0);
        theirs += m + (theirs[m] != 0);
    }
    ck_assert(!*ours && !*theirs);
}

static void
descriptors(fields *f, const object *a, const object *b, const char *kernel)
{
    uint8_t x[BR_GCN_KD_BYTES], y[BR_GCN_KD_BYTES];
    br_str s = {0}, t = {0};
    br_status st = {0};
    uint32_t rsrc1;

    memcpy(x, a->co.image + br_gcn_kernel_find(&a->co, kernel)->at, sizeof x);
    memcpy(y, b->co.image + br_gcn_kernel_find(&b->co, kernel)->at, sizeof y);
    memcpy(&rsrc1, y + 48, 4);
    number(f, "compute_pgm_rsrc1[9:6]", 0, rsrc1 & 0x3c0);
    rsrc1 &= ~0x3c0u;
    memcpy(y + 48, &rsrc1, 4);
    t_ok(br_gcn_kd_text(&s, &a->co.isa, x, &st), &st);
    t_ok(br_gcn_kd_text(&t, &b->co.isa, y, &st), &st);
    lines(f, br_str_z(&s), br_str_z(&t));
    br_str_fini(&s);
    br_str_fini(&t);
}

/* ---- metadata -------------------------------------------------------------- */

/* The part of a kernel: an item of a list that is not within another. */
static br_text
metadata(const object *o, const char *kernel)
{
    const char *y = o->yaml.at, *begin = NULL, *end, *top;
    const char *p = strstr(y, t_printf(" %s.kd\n", kernel));

    ck_assert_ptr_nonnull(p);
    for (const char *q = y; (q = strstr(q, "\n  - ")) && q < p; q++)
        begin = q;
    ck_assert_ptr_nonnull(begin);
    end = strstr(p, "\n  - ");
    top = strstr(p, "\namdhsa.");
    if (!end || (top && top < end))
        end = top;
    return (br_text){begin, end ? (size_t)(end - begin) : strlen(begin)};
}

/* The value behind a key, up to the line's end, nth of them; n 0: none. */
static br_text
value(br_text t, const char *key, unsigned nth)
{
    const char *k = t_printf("%s:", key), *p = t.p, *end = t.p + t.n;

    while ((p = memmem(p, (size_t)(end - p), k, strlen(k)))) {
        bool whole = p == t.p || p[-1] == ' ' || p[-1] == '\n';

        p += strlen(k);
        if (whole && nth-- == 0) {
            p += strspn(p, " ");
            return (br_text){p, strcspn(p, "\n")};
        }
    }
    return (br_text){"", 0};
}

static void
kernels_metadata(fields *f, const object *a, const object *b,
                 const char *kernel)
{
    static const char *const keys[] = {".name",
                                       ".symbol",
                                       ".group_segment_fixed_size",
                                       ".sgpr_count",
                                       ".vgpr_count",
                                       ".private_segment_fixed_size",
                                       ".wavefront_size",
                                       ".kernarg_segment_size",
                                       ".kernarg_segment_align",
                                       ".max_flat_workgroup_size",
                                       ".sgpr_spill_count",
                                       ".vgpr_spill_count",
                                       ".uniform_work_group_size",
                                       ".uses_dynamic_stack",
                                       ".workgroup_processor_mode"};
    static const char *const of_args[] = {".offset", ".size", ".value_kind",
                                          ".address_space"};
    br_text x = metadata(a, kernel), y = metadata(b, kernel);

    for (size_t i = 0; i < BR_COUNT(keys); i++)
        number(f, keys[i],
               !br_text_eq(value(x, keys[i], 0), value(y, keys[i], 0)), 0);
    for (size_t i = 0; i < BR_COUNT(of_args); i++)
        for (unsigned n = 0; n < 3; n++)
            number(
                f, t_printf(".args %s", of_args[i]),
                !br_text_eq(value(x, of_args[i], n), value(y, of_args[i], n)),
                0);
}

/* ---- all ------------------------------------------------------------------- */

static void
compare(fields *f, const char *cpu, bool wave64)
{
    object a = {0}, b = {0};
    unsigned kernels = 0;
    const char *version = "amdhsa.version:\n  - 1\n  - 2\n";

    compile_both(&a, &b, cpu, wave64);
    file_header(f, &a, &b);
    segments(f, &a, &b);
    sections(f, &a, &b);
    number(f, "dynamic tags", dynamic_tags(&a), dynamic_tags(&b));
    number(f, "note",
           memcmp(a.file + section(&a, ".note")->sh_offset + 8,
                  b.file + section(&b, ".note")->sh_offset + 8, 12),
           0);
    for (size_t i = 0; i < a.co.n_sym; i++) {
        const char *name = a.co.sym[i].name;

        if (!br_gcn_kernel_find(&a.co, name))
            continue;
        kernels++;
        symbols(f, &a, &b, name);
        descriptors(f, &a, &b, name);
        kernels_metadata(f, &a, &b, name);
    }
    ck_assert_uint_eq(kernels, wave64 ? KERNELS - REFUSED : KERNELS);
    number(
        f, "amdhsa.target",
        !br_text_eq(value((br_text){a.yaml.at, a.yaml.n}, "amdhsa.target", 0),
                    value((br_text){b.yaml.at, b.yaml.n}, "amdhsa.target", 0)),
        0);
    number(f, "amdhsa.version",
           !strstr(a.yaml.at, version) != !strstr(b.yaml.at, version), 0);
    number(f, "order of the metadata's keys",
           strstr(a.yaml.at, "\n  - .name") != NULL,
           strstr(b.yaml.at, "\n  - .name") != NULL);
    close_object(&a);
    close_object(&b);
}

TEST_WITHIN(gcn_fields_that_differ_from_clangs_are_explained, 120)
{
    const char *readme = t_read(t_repo("src/cg/gcn/README-ISA.md"), NULL);
    const char *p = strstr(readme, "## Beside clang-19's code objects"), *end;
    unsigned rows = 0;
    fields f = {0};

    if (!t_have_program("clang-19") || !t_have_program("ld.lld-19"))
        t_skip("clang-19 and ld.lld-19 are not here");
    ck_assert_ptr_nonnull(p);
    end = strstr(p + 3, "\n## ");
    compare(&f, "gfx1100", false);
    compare(&f, "gfx1201", false);
    compare(&f, "gfx1100", true);
    compare(&f, "gfx1201", true);
    for (size_t i = 0; i < f.n; i++) {
        const char *at = strstr(p, t_printf("| `%s` |", f.at[i]));

        ck_assert_msg(at && at < end, "%s differs, and nobody says why",
                      f.at[i]);
    }
    while ((p = strstr(p, "\n| `")) && p < end) {
        size_t i = 0;

        for (p += 4; i < f.n && (strncmp(p, f.at[i], strlen(f.at[i])) != 0 ||
                                 p[strlen(f.at[i])] != '`');
             i++)
            ;
        ck_assert_msg(i < f.n, "%.*s does not differ", (int)strcspn(p, "`"), p);
        rows++;
    }
    ck_assert_uint_eq(rows, f.n);
    ck_assert_uint_ge(f.compared, (4ul * KERNELS - 2 * REFUSED) * 60);
}

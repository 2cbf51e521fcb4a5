/* test_sim_mutants.c - how much of what a compiler can leave out the simulated
 * GPU's checks catch.
 *
 * Of each kernel in turn one wait, barrier or fence goes, one wait lets one more
 * be open, one access reaches one scope less far. A mutant is caught when a seed
 * of the order of waves gives a finding, a fault or another result.
 *
 *     make mutants        all kernels; prints what survives
 * SPDX-License-Identifier: Apache-2.0 */
#include "t.h"

#include "gcn_corpus.h"
#include "ptx_kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

T_ONE_THREAD();

#define S_NOP 0xbf800000u
enum { SEEDS = 4, MAX_CHANGES = 8, BLOCKS = 4, LANES = 128 };

typedef struct change {
    size_t at;
    uint32_t word;
} change;

/* What is changed of a kernel at a time. */
typedef struct mutant {
    change c[MAX_CHANGES];
    unsigned n;
    const char *how;
} mutant;

typedef struct kernel {
    br_gcn_isa isa;
    br_gcn_compiled k;
    const char *name;
    corpus_run usual;
    uint32_t blocks[3], threads[3];
} kernel;

typedef struct score {
    unsigned kernels, all, caught, by_finding;
    br_str missed, unclean; /* lines */
} score;

/* ---- one mutant ----------------------------------------------------------- */

static void
try(score *s, const kernel *k, const mutant *m)
{
    uint32_t *words = malloc(k->k.words.n * sizeof *words);
    corpus_run *r = calloc(1, sizeof *r);
    bool caught = false, found = false;

    memcpy(words, k->k.words.at, k->k.words.n * sizeof *words);
    for (unsigned i = 0; i < m->n; i++)
        words[m->c[i].at] = m->c[i].word;
    for (uint64_t seed = 1; seed <= SEEDS && !caught; seed++) {
        br_code c;

        r->seed = seed;
        r->check = true;
        r->max_steps = 20 * k->usual.steps + 10000;
        c = corpus_run_words(r, &k->isa, &k->k, words, k->blocks, k->threads);
        found = r->findings != 0;
        caught = c != BR_OK || found || !corpus_same(r, &k->usual);
    }
    s->all++;
    s->caught += caught;
    s->by_finding += found;
    if (!caught) {
        br_gcn_inst in;
        br_str text = {0};

        if (br_gcn_decode(&k->isa, k->k.words.at + m->c[0].at,
                          k->k.words.n - m->c[0].at, &in))
            br_gcn_print(&k->isa, &in, &text);
        br_str_printf(&s->missed, "%s %s 0x%zx %s: %s\n", k->isa.cpu->name,
                      k->name, m->c[0].at * 4, br_str_z(&text), m->how);
        br_str_fini(&text);
    }
    free(words);
    free(r);
}

/* ---- which there are ------------------------------------------------------ */

static void
dropped(mutant *m, size_t at, const br_gcn_inst *in)
{
    for (unsigned w = 0; w < in->words && m->n < MAX_CHANGES; w++)
        m->c[m->n++] = (change){at + w, S_NOP};
    m->how = "dropped";
}

/* A field of a wait that lets one more be open. */
static void
weaker(score *s, const kernel *k, size_t at, const br_gcn_inst *in)
{
    static const struct {
        const char *name;
        unsigned lo, bits;
    } fields[] = {{"s_waitcnt", 10, 6},          {"s_waitcnt", 4, 6},
                  {"s_waitcnt_vscnt", 0, 6},     {"s_wait_loadcnt", 0, 6},
                  {"s_wait_storecnt", 0, 6},     {"s_wait_dscnt", 0, 6},
                  {"s_wait_kmcnt", 0, 5},        {"s_wait_loadcnt_dscnt", 8, 6},
                  {"s_wait_loadcnt_dscnt", 0, 6}};

    for (size_t f = 0; f < BR_COUNT(fields); f++) {
        uint32_t most = (1u << fields[f].bits) - 1, v;
        mutant m = {.n = 1,
                    .how = fields[f].lo
                               ? t_printf("one more, bit %u", fields[f].lo)
                               : "one more"};

        if (strcmp(in->row->name, fields[f].name) != 0)
            continue;
        v = k->k.words.at[at] >> fields[f].lo & most;
        if (v + 1 >= most)
            continue;
        m.c[0] = (change){at, k->k.words.at[at] + (1u << fields[f].lo)};
        try(s, k, &m);
    }
}

/* A field of an encoded instruction, one less. */
static void
lowered(score *s, const kernel *k, size_t at, const br_gcn_inst *in,
        br_gcn_field field)
{
    uint32_t v = br_gcn_get(in, field);
    br_gcn_inst less = *in;
    mutant m = {.how = "one scope less"};

    if (!v)
        return;
    br_gcn_set(&less, field, v - 1);
    for (unsigned n = 0; n < in->words; n++)
        m.c[m.n++] = (change){at + n, less.w[n]};
    try(s, k, &m);
}

static bool
is_fence(const br_gcn_inst *in)
{
    static const char *const names[] = {"buffer_gl0_inv", "buffer_gl1_inv",
                                        "global_inv", "global_wb"};

    for (size_t k = 0; k < BR_COUNT(names); k++)
        if (strcmp(in->row->name, names[k]) == 0)
            return true;
    return false;
}

static void
mutate(score *s, const kernel *k)
{
    br_gcn_inst in, next;

    for (size_t at = 0; at < k->k.words.n; at += in.words) {
        mutant m = {.n = 0};
        const char *name;
        bool scoped, load;

        ck_assert(
            br_gcn_decode(&k->isa, k->k.words.at + at, k->k.words.n - at, &in));
        name = in.row->name;
        load = strstr(name, "_load_") != NULL;
        scoped = br_gcn_formats[in.row->fmt].f[BR_GF_scope].end != 0;
        if (strncmp(name, "s_wait", 6) == 0 || is_fence(&in) ||
            strcmp(name, "s_barrier") == 0 ||
            strcmp(name, "s_barrier_signal") == 0) {
            dropped(&m, at, &in);
            if (strcmp(name, "s_barrier_signal") == 0 &&
                br_gcn_decode(&k->isa, k->k.words.at + at + in.words,
                              k->k.words.n - at - in.words, &next))
                dropped(&m, at + in.words, &next);
            try(s, k, &m);
        }
        if (strncmp(name, "s_wait", 6) == 0)
            weaker(s, k, at, &in);
        else if (scoped)
            lowered(s, k, at, &in, BR_GF_scope);
        else if (load && in.row->fmt == BR_FMT_GLOBAL)
            lowered(s, k, at, &in, BR_GF_glc);
    }
}

/* ---- kernels -------------------------------------------------------------- */

static void
judge(score *s, const char *cpu, const br_kir *m, const char *name)
{
    kernel k = {.isa = {.cpu = br_gcn_cpu_find(cpu)},
                .name = name,
                .usual = {.check = true, .seed = 99, .max_steps = 10000000},
                .blocks = {BLOCKS, 1, 1},
                .threads = {LANES, 1, 1}};
    br_status st = {0};
    uint32_t fn = br_kir_find_fn(m, br_text_z(name));
    br_code c;

    ck_assert_uint_ne(fn, BR_KNONE);
    t_ok(br_gcn_compile(&k.k, &k.isa, m, fn, &st), &st);
    c = corpus_run_words(&k.usual, &k.isa, &k.k, k.k.words.at, k.blocks,
                         k.threads);
    if (c != BR_OK || k.usual.findings)
        br_str_printf(&s->unclean, "%s %s: %s %s\n", cpu, name, k.usual.st.msg,
                      k.usual.finding);
    else
        mutate(s, &k);
    s->kernels++;
    br_gcn_compiled_fini(&k.k);
}

static void
report(score *s, unsigned least)
{
    if (getenv("BRASS_TEST_LONG"))
        printf(
            "%u mutants of %u kernels, %u caught (%.1f %%; %u by a finding)\n"
            "%s",
            s->all, s->kernels, s->caught, 100.0 * s->caught / s->all,
            s->by_finding, br_str_z(&s->missed));
    ck_assert_msg(!s->unclean.n, "%s", br_str_z(&s->unclean));
    ck_assert_msg(s->caught * 100 >= s->all * least, "%u of %u caught\n%s",
                  s->caught, s->all, br_str_z(&s->missed));
    br_str_fini(&s->missed);
}

/* Zeros take one branch, gather one word and end loops at once. */
TEST(corpus_runs_on_random_words)
{
    static corpus_run r;
    br_gcn_isa isa = {.cpu = br_gcn_cpu_find("gfx1201")};
    br_kir *m = ptx_load(t_read(t_repo("tests/data/gcn/kernels.ptx"), NULL));
    br_status st = {0};
    br_gcn_compiled k;
    unsigned words = 0;

    t_ok(br_gcn_compile(&k, &isa, m, br_kir_find_fn(m, br_text_z("k_copy")),
                        &st),
         &st);
    t_ok(corpus_run_words(&r, &isa, &k, k.words.at, (uint32_t[]){8, 1, 1},
                          (uint32_t[]){LANES, 1, 1}),
         &r.st);
    for (size_t at = 0; at < CORPUS_IN; at += 4)
        words += (r.in[at] | r.in[at + 1] | r.in[at + 2] | r.in[at + 3]) != 0;
    ck_assert_uint_gt(words, CORPUS_IN / 4 * 9 / 10);
    ck_assert_int_eq(memcmp(r.in, r.out, 8ul * 8 * LANES), 0);
    br_gcn_compiled_fini(&k);
    br_kir_free(m);
}

TEST_WITHIN(sim_checks_catch_mutants, 600)
{
    static const char *const cpus[] = {"gfx1100", "gfx1201"};
    static const char *const some[] = {"k_reduce", "k_last_block", "k_chain",
                                       "k_in_place"};
    bool all = getenv("BRASS_TEST_LONG") != NULL;
    br_kir *m = ptx_load(t_read(t_repo("tests/data/gcn/kernels.ptx"), NULL));
    br_status st = {0};
    score s = {0};

    t_ok(br_kir_optimise(m, NULL, &st), &st);
    for (int c = 0; c < 2; c++) {
        for (uint32_t f = 0; all && f < m->fns.n; f++)
            if (m->fns.at[f].entry)
                judge(&s, cpus[c], m,
                      t_printf("%.*s", (int)m->fns.at[f].name.n,
                               m->fns.at[f].name.p));
        for (size_t k = 0; !all && k < (t_sanitized() ? 1 : BR_COUNT(some));
             k++)
            judge(&s, cpus[c], m, some[k]);
    }
    br_kir_free(m);
    report(&s, 95);
}

/* test_cpu_tight.c - a model in BF16 whose weights are kept in twelve bits, and
 * one whose weights do not fit them: the reference tier's bits, from a file that
 * was kept as well.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/cpu/cpu_int.h"
#include "logits_kit.h"
#include "run/shape.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "t.h"

T_THREADS_OF("bf16_in_twelve_bits_has_the_bits_of_ref");

enum { TOKENS = 90, VOCAB = 256 }; /* more rows than go together */

static br_str
shape(void)
{
    br_status st = {0};
    br_str doc = {0};

    t_ok(br_shape_model(&doc, "shape:llama-512:BF16", true, &st), &st);
    return doc;
}

/* Every size there is, but no NaN and nothing that sums to one. */
static void
scatter(br_str *doc, const char *name)
{
    br_status st = {0};
    const br_gguf_tensor *t = NULL;
    uint64_t rng = 3;
    br_model *m;
    uint8_t *at;

    t_ok(br_model_open_mem(&m, doc->at, doc->n, &st), &st);
    for (size_t i = 0; i < br_gguf_n_tensors(m->gguf) && !t; i++) {
        t = br_gguf_tensor_at(m->gguf, i);
        t = strlen(name) == t->name.n && memcmp(t->name.p, name, t->name.n) == 0
                ? t
                : NULL;
    }
    ck_assert_ptr_nonnull(t);
    ck_assert_int_eq(t->type, BR_Q_BF16);
    at = (uint8_t *)doc->at + (t->data - (const uint8_t *)doc->at);
    for (uint64_t i = 0; i < t->bytes; i += 2) {
        uint64_t r = t_rand(&rng) >> 16;

        at[i] = (uint8_t)r;
        at[i + 1] = (uint8_t)((r >> 8 & 0x80) | (r >> 16) % 0x3d);
    }
    br_model_close(m);
}

/* Logits of all tokens but the last, in one chunk, and of that one alone. */
static void
feed(br_oracle *o, float *l)
{
    br_status st = {0};
    int32_t tokens[TOKENS];

    for (int32_t i = 0; i < TOKENS; i++)
        tokens[i] = (i * 37 + i / 7) % VOCAB;
    t_ok(br_oracle_feed(o, 0, 0, tokens, TOKENS - 1, 0, l, &st), &st);
    t_ok(br_oracle_feed(o, 0, TOKENS - 1, tokens + TOKENS - 1, 1, 0,
                        l + (size_t)(TOKENS - 1) * VOCAB, &st),
         &st);
}

typedef struct seen {
    uint32_t tight;
    bool loose, kept;
    float l[TOKENS * VOCAB];
} seen;

static void
look(const char *file, br_oracle_config config, seen *s)
{
    br_status st = {0};
    br_oracle o;
    br_model *m;

    config.n_ctx = TOKENS + 6;
    config.max_rows = TOKENS;
    memset(s, 0, sizeof *s);
    t_ok(br_model_open(&m, file, &st), &st);
    t_ok(br_oracle_open(&o, m, &config, &st), &st);
    for (uint32_t v = 0; o.cpu && v < o.cpu->v.g->n_values; v++)
        s->tight += o.cpu->mat[v].t && o.cpu->mat[v].m.tight;
    if (o.cpu) {
        s->loose = o.cpu->loose;
        s->kept = br_cpu_was_kept(o.cpu);
    }
    feed(&o, s->l);
    br_oracle_close(&o);
    br_model_close(m);
}

/* Three times: packed, kept, exact or not. */
static void
check(br_str *doc, bool fits)
{
    br_cpu_pool *two = lk_pool(2);
    const char *folder = t_printf("%s/cache", t_tmpdir());
    const char *file = t_printf("%s/m.gguf", t_tmpdir());
    seen *want = t_keep(malloc(sizeof *want));
    seen *got = t_keep(malloc(sizeof *got));
    br_oracle_config config = {
        .pool = two, .exact = true, .cache = {folder, 0, 1 << 30}};

    ck_assert_int_eq(mkdir(folder, 0700), 0);
    t_write(file, doc->at, doc->n);
    look(file, (br_oracle_config){.act = BR_REF_QUANTISED}, want);
    for (int start = 0; start < 3; start++) {
        look(file, config, got);
        ck_assert_int_eq(got->tight > 0, fits);
        ck_assert_int_eq(got->loose, !fits);
        ck_assert_int_eq(got->kept, start > 0);
        ck_assert_mem_eq(got->l, want->l, sizeof want->l);
    }
    config.exact = false; /* the bits of twelve are those of no file, too */
    look(file, config, want);
    ck_assert(want->kept);
    config.cache.folder = NULL;
    look(file, config, got);
    ck_assert(!got->kept);
    ck_assert_mem_eq(got->l, want->l, sizeof want->l);
    br_cpu_pool_free(two);
    br_str_fini(doc);
}

static bool
has_twelve_bits(void)
{
    return br_isa_best() == BR_ISA_AVX512 || br_isa_best() == BR_ISA_AMX;
}

TEST_WITHIN(bf16_in_twelve_bits_has_the_bits_of_ref, 60)
{
    br_str doc = shape();

    if (!has_twelve_bits()) {
        br_str_fini(&doc);
        t_skip("only AVX-512 has twelve bits");
    }
    check(&doc, true);
}

TEST_WITHIN(bf16_that_does_not_fit_twelve_bits_stays_as_it_is, 60)
{
    br_str doc = shape();

    if (!has_twelve_bits()) {
        br_str_fini(&doc);
        t_skip("only AVX-512 has twelve bits");
    }
    scatter(&doc, "blk.0.ffn_down.weight");
    check(&doc, false);
}

/* A pack that is too large where it has to be loose is not kept. */
TEST_WITHIN(loose_weights_beyond_the_limit_are_not_kept, 60)
{
    br_cpu_pool *two = lk_pool(2);
    br_str doc = shape();
    const char *folder = t_printf("%s/cache", t_tmpdir());
    const char *file = t_printf("%s/m.gguf", t_tmpdir());
    seen *got = t_keep(malloc(sizeof *got));
    br_oracle_config config = {.pool = two, .cache = {folder, 0, 1 << 30}};

    ck_assert_int_eq(mkdir(folder, 0700), 0);
    scatter(&doc, "blk.0.attn_q.weight");
    t_write(file, doc.at, doc.n);
    config.cache.most = doc.n * 9 / 10;
    look(file, config, got);
    ck_assert(!got->kept);
    look(file, config, got);
    ck_assert(!got->kept);
    br_cpu_pool_free(two);
    br_str_fini(&doc);
}

/* The file of the folder, or a name that is none. */
static const char *
only_pack(const char *folder)
{
    DIR *d = opendir(folder);
    const char *found = "";

    ck_assert_ptr_nonnull(d);
    for (struct dirent *e; (e = readdir(d));)
        if (strstr(e->d_name, ".pack"))
            found = t_printf("%s/%s", folder, e->d_name);
    closedir(d);
    return found;
}

/* A damaged place in a kept file leads nowhere outside of it; what it says is not
 * checked otherwise, no more than numbers are. */
TEST_WITHIN(kept_places_that_lead_elsewhere_are_not_followed, 60)
{
    /* Of the first matrix's first panel, from its first spare on: that is far away,
     * and all groups have one; or where pieces' begin is. */
    static const uint8_t heads[2][26] = {
        {255, 255, 255, 255, 0, 0, 1, 0, 1, 0, 1, 0,   1,
         0,   1,   0,   1,   0, 1, 0, 1, 0, 0, 0, 255, 255},
        {0,   0,   0,   0,   240, 255, 240, 255, 240, 255, 240, 255, 240,
         255, 240, 255, 240, 255, 240, 255, 240, 255, 0,   0,   1,   0}};
    br_cpu_pool *one = lk_pool(1);
    br_str doc = shape();
    const char *folder = t_printf("%s/cache", t_tmpdir());
    const char *file = t_printf("%s/m.gguf", t_tmpdir());
    seen *got = t_keep(malloc(sizeof *got));
    br_oracle_config config = {.pool = one, .cache = {folder, 0, 1 << 30}};
    const char *pack;
    char *text;
    size_t n;

    if (!has_twelve_bits()) {
        br_str_fini(&doc);
        br_cpu_pool_free(one);
        t_skip("only AVX-512 has twelve bits");
    }
    ck_assert_int_eq(mkdir(folder, 0700), 0);
    t_write(file, doc.at, doc.n);
    look(file, config, got);
    pack = only_pack(folder);
    text = t_read(pack, &n);
    for (size_t i = 0; i < BR_COUNT(heads); i++) {
        char *bad = t_keep(malloc(n));

        memcpy(bad, text, n);
        memcpy(bad + 4096 + 16, heads[i], sizeof heads[i]);
        t_write(pack, bad, n);
        look(file, config, got);
        ck_assert(got->kept);
    }
    br_cpu_pool_free(one);
    br_str_fini(&doc);
}

typedef struct opening {
    const char *file;
    br_oracle_config config;
} opening;

static br_code
open_once(void *arg, br_status *st)
{
    const opening *o = arg;
    br_oracle oracle;
    br_model *m;
    br_code code;

    BR_TRY(br_model_open(&m, o->file, st));
    code = br_oracle_open(&oracle, m, &o->config, st);
    if (code == BR_OK)
        br_oracle_close(&oracle);
    br_model_close(m);
    return code;
}

/* Packed twice, the second time into another file; kept or not. */
TEST_WITHIN(packing_what_does_not_fit_survives_any_lack_of_memory, 120)
{
    br_str doc = shape();
    const char *folder = t_printf("%s/cache", t_tmpdir());
    opening o = {t_printf("%s/m.gguf", t_tmpdir()),
                 {.pool = lk_pool(1), .n_ctx = 16, .max_rows = 1}};
    bool failed = true;

    ck_assert_int_eq(mkdir(folder, 0700), 0);
    scatter(&doc, "blk.0.ffn_down.weight");
    t_write(o.file, doc.at, doc.n);
    t_each_oom(open_once, &o);
    /* What keeps them may fail, and nothing else does. */
    o.config.cache.folder = folder;
    o.config.cache.most = 1 << 30;
    for (size_t n = 1, live = t_mem_blocks(); failed; n++) {
        br_status st = {0};
        br_code code;

        t_mem_fail_at(n);
        code = open_once(&o, &st);
        failed = t_mem_failed();
        t_mem_fail_at(0);
        ck_assert_uint_eq(t_mem_blocks(), live);
        ck_assert_msg(code == BR_OK || (failed && code == BR_E_OOM), "%zu: %s",
                      n, st.msg);
        (void)unlink(only_pack(folder));
    }
    br_cpu_pool_free((br_cpu_pool *)o.config.pool);
    br_str_fini(&doc);
}

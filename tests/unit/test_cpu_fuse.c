/* test_cpu_fuse.c - a step of one row on the CPU tier, where phases take in what
 * stands around them, beside the same rows where none does.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/cpu/cpu_int.h"
#include "logits_kit.h"
#include "run/shape.h"

#include <stdlib.h>

#include "t.h"

/* How many phases of a model are done elsewhere, products with a form of their
 * own, and attentions that turn heads. */
typedef struct fused {
    uint32_t inside, products, attention;
} fused;

/* The phase before p, dense, that makes its binding i; NULL: none such. */
static const cpu_phase *
before(const br_cpu *c, const cpu_phase *p, int i)
{
    for (const cpu_phase *q = p; q-- > c->phases.at;)
        if (q->kind == &cpu_rows && q->n->n_out == 1 && q->rows &&
            q->n->bind[q->n->n_in].value == p->n->bind[i].value)
            return q->gather + q->scatter ? NULL : q;
    return NULL;
}

/* How many of norm by head, ROPE, TEMP_SCALE stand before p's binding i. */
static uint32_t
chain_before(const br_cpu *c, const cpu_phase *p, int i, int64_t dim)
{
    static const br_ir_op order[] = {BR_IR_TEMP_SCALE, BR_IR_ROPE,
                                     BR_IR_RMS_NORM};
    uint32_t n = 0;

    for (size_t k = 0; k < BR_COUNT(order); k++) {
        const cpu_phase *q = before(c, p, i);

        if (!q || q->n->op != order[k] ||
            (order[k] == BR_IR_RMS_NORM &&
             br_ir_i(q->n, BR_IA_width, q->in[0].cols) != dim))
            continue;
        p = q;
        i = 0;
        n++;
    }
    return n;
}

static uint32_t
chain_of(const cpu_chain *k)
{
    return (k->norm != NULL) + (k->turn != NULL) + (k->heat != NULL);
}

/* KV_WRITE and attention with rows that lie together: then it makes its heads,
 * all of what is before them, wherever values came to lie. */
static bool
could_make_heads(const cpu_phase *p)
{
    return p->kind == &cpu_attention && p[-1].rows == cpu_rows_kv &&
           p[-1].gather + p->gather == 0 && p->in[2].v;
}

static void
makes_all_heads(const br_cpu *c, const cpu_phase *p, const char *name)
{
    int64_t k = br_ir_i(p->n, BR_IA_head_dim, 0);
    int64_t v = br_ir_i(p->n, BR_IA_head_v, 0);

    ck_assert_msg((p->keep != NULL) == could_make_heads(p), "%s: phase %zu",
                  name, (size_t)(p - c->phases.at));
    if (!p->keep)
        return;
    ck_assert_uint_eq(chain_of(&p->chains[0]), chain_before(c, p, 0, k));
    ck_assert_uint_eq(chain_of(&p->chains[1]), chain_before(c, p - 1, 0, k));
    ck_assert_uint_eq(chain_of(&p->chains[2]), chain_before(c, p - 1, 1, v));
}

static fused
fused_of(const lk_case *c)
{
    br_cpu_pool *two = lk_pool(2);
    br_oracle_config config = {.pool = two, .kv = BR_Q_F16};
    fused f = {0};
    lk_run r;

    t_ok(lk_open(&r, c, &config), &r.st);
    for (size_t i = 0; i < r.o.cpu->phases.n; i++) {
        const cpu_phase *p = &r.o.cpu->phases.at[i];

        f.inside += p->inside;
        f.products += p->kind == &cpu_multiply && p->n_forms == 1;
        f.attention += p->keep != NULL;
        if (i > 0)
            makes_all_heads(r.o.cpu, p, c->name);
    }
    lk_close(&r);
    br_cpu_pool_free(two);
    return f;
}

/* In a step of one row products take in what stands around them: a layer's two
 * norms, its row's form four times, two sums, GLU, and attention ROPE of queries
 * and keys and what keeps them, and norms of heads where a model has them. Of the
 * last layer queries are multiplied apart, by a form of their own, so that norm is
 * for two. And the head's form. */
TEST(a_step_of_one_row_has_few_phases)
{
    static const br_arch_id arch[] = {BR_ARCH_LLAMA, BR_ARCH_QWEN3};

    for (size_t i = 0; i < BR_COUNT(arch); i++) {
        size_t at = lk_of_arch(arch[i], 0);
        lk_case c;
        fused f;

        if (at == lk_count())
            continue; /* the first is always there */
        c = lk_get(at);
        f = fused_of(&c);
        ck_assert_uint_eq(f.attention, 2);
        ck_assert_uint_eq(f.inside, (i == 0 ? 12 : 14) * f.attention + 1);
        ck_assert_uint_eq(f.products, 4 * f.attention + 2);
    }
    lk_end();
}

TEST_WITHIN(attention_makes_its_heads_wherever_values_lie, 60)
{
    for (size_t i = 0; i < lk_count(); i++) {
        lk_case c = lk_get(i);

        if (!t_sanitized() || !lk_skips(&c, i))
            (void)fused_of(&c);
    }
    lk_end();
}

/* A model of random weights, of one layer; br_str_fini(doc) when it is closed. */
static lk_case
shape_of(const char *spec, br_str *doc)
{
    br_status st = {0};
    lk_case c = {.name = spec, .n_tokens = 4, .n_vocab = 256};

    t_ok(br_shape_model(doc, spec, true, &st), &st);
    c.file = doc->at;
    c.file_n = doc->n;
    return c;
}

/* That of a small one, for two threads. */
typedef struct small {
    br_cpu_pool *two;
    br_str doc;
    lk_case c;
    lk_run r;
} small;

static br_cpu *
small_open(small *m)
{
    br_oracle_config config = {.pool = lk_pool(2)};

    *m = (small){.two = config.pool};
    m->c = shape_of("shape:llama-256:Q8_0", &m->doc);
    t_ok(lk_open(&m->r, &m->c, &config), &m->r.st);
    return m->r.o.cpu;
}

static void
small_close(small *m)
{
    lk_close(&m->r);
    br_cpu_pool_free(m->two);
    br_str_fini(&m->doc);
}

/* As if phases were new. */
static void
fuse_again(br_cpu *c)
{
    br_status st = {0};

    for (size_t i = 0; i < c->phases.n; i++) {
        cpu_phase *p = &c->phases.at[i];

        p->inside = p->norms = p->glu = false;
        p->n_forms = 0;
        p->add = p->into = NULL;
        p->keep = NULL;
    }
    t_ok(cpu_fuse(c, &st), &st);
}

/* Moves *y by which p writes to where the row x ends, and a number before: does
 * p take in what stands around it where they do not meet, only? */
static void
may_not_meet(br_cpu *c, const cpu_phase *p, float **y, const ref_view *x)
{
    float *was = *y;

    *y = x->f + x->cols;
    fuse_again(c);
    ck_assert(p->keep || (p->n_forms && p->into));
    *y -= 1;
    fuse_again(c);
    ck_assert(!p->keep && !(p->n_forms && p->into));
    *y = was;
    fuse_again(c);
}

/* A worker may yet read the row before the norm, and heads before they are
 * turned, while another writes what it has made of them. Values rest, so that
 * those never meet in a graph; here they are made to. */
TEST(what_is_written_where_others_read_is_not_taken_in)
{
    small m;
    br_cpu *c = small_open(&m);
    uint32_t n = 0;

    for (size_t i = 0; i < c->phases.n; i++) {
        cpu_phase *p = &c->phases.at[i];
        const ref_view *x = &p[-(ptrdiff_t)p->n_forms - 1].in[0];

        if (p->norms && p->glu) {
            may_not_meet(c, p, &p[1].out[0].f, x);
            n++;
        }
        for (int k = 0; p->keep && k < 3; k++) {
            may_not_meet(c, p, &p->out[0].f, p->chains[k].x);
            n++;
        }
    }
    ck_assert_uint_eq(n, 4); /* of the layer */
    small_close(&m);
}

/* Nor where a phase between writes: OLMo 2 norms all keys at once, in a phase of
 * its own, when tiles of attention have yet to read queries. */
TEST(what_is_written_between_is_not_where_others_read)
{
    size_t at = lk_of_arch(BR_ARCH_OLMO2, 0);
    br_cpu_pool *two = lk_pool(2);
    br_oracle_config config = {.pool = two};
    uint32_t n = 0;
    lk_case c;
    lk_run r;

    if (at == lk_count())
        t_skip("no model of OLMo 2 here");
    c = lk_get(at);
    t_ok(lk_open(&r, &c, &config), &r.st);
    for (size_t i = 3; i < r.o.cpu->phases.n; i++) {
        cpu_phase *p = &r.o.cpu->phases.at[i];

        if (p->kind != &cpu_attention)
            continue;
        ck_assert(p[-3].rows == cpu_rows_norm && !p[-3].inside);
        may_not_meet(r.o.cpu, p, &p[-3].out[0].f, p->chains[0].x);
        n++;
    }
    ck_assert_uint_eq(n, 2);
    lk_close(&r);
    br_cpu_pool_free(two);
    lk_end();
}

/* Makes the next form after p another one's, so that who reads it there reads
 * what p's phase was the last to make. */
static void
form_is_shared(br_cpu *c, const cpu_phase *p)
{
    cpu_phase *q = &c->phases.at[p - c->phases.at];
    const cpu_phase *end = c->phases.at + c->phases.n;
    uint8_t *was;

    do
        q++;
    while (q < end && (q->kind != &cpu_quantise || q->act != p->part[0].act));
    if (q == end)
        return;
    was = q->act;
    q->act = NULL;
    fuse_again(c);
    ck_assert_uint_eq(p->n_forms, 0);
    ck_assert(!p[-1].inside);
    q->act = was;
    fuse_again(c);
    ck_assert_uint_eq(p->n_forms, 1);
}

TEST(a_form_that_others_read_is_made_for_all)
{
    small m;
    br_cpu *c = small_open(&m);
    uint32_t n = 0;

    for (size_t i = 0; i < c->phases.n; i++)
        if (c->phases.at[i].n_forms == 1) {
            form_is_shared(c, &c->phases.at[i]);
            n++;
        }
    ck_assert_uint_gt(n, 4);
    small_close(&m);
}

static void
see_nothing(void *ctx, uint32_t node, const float *row, int64_t cols,
            uint32_t n_rows)
{
    (void)node, (void)row, (void)cols, (void)n_rows;
    ++*(uint32_t *)ctx;
}

/* Rows one by one, of the case and then past a block's border, two of which want
 * no logits; watched: with somebody who sees every value, so then nothing is
 * taken in. */
enum { BEFORE = BR_CPU_BLOCK - 6, AFTER = 12 };

static float *
rows_alone(lk_run *r, const lk_case *c, bool watched)
{
    size_t all = (size_t)(c->n_tokens + AFTER) * c->n_vocab;
    float *l = t_keep(calloc(all, sizeof *l));
    int32_t tokens[BEFORE + AFTER];
    uint32_t seen = 0;

    for (uint32_t i = 0; i < BEFORE + AFTER; i++)
        tokens[i] = (int32_t)((i * 37 + i / 7) % c->n_vocab);
    br_oracle_reset(&r->o, 0);
    br_oracle_reset(&r->o, 1);
    br_cpu_watch(r->o.cpu, watched ? &(br_watch){see_nothing, &seen} : NULL);
    t_ok(br_oracle_feed(&r->o, 1, 0, tokens, BEFORE - 2, 0, NULL, &r->st),
         &r->st);
    t_ok(br_oracle_feed(&r->o, 1, BEFORE - 2, tokens + BEFORE - 2, 2, 1, NULL,
                        &r->st),
         &r->st);
    t_ok(br_oracle_feed(&r->o, 0, 0, c->tokens, c->n_tokens, 1, l, &r->st),
         &r->st);
    t_ok(br_oracle_feed(&r->o, 1, BEFORE, tokens + BEFORE, AFTER, 1,
                        l + (size_t)c->n_tokens * c->n_vocab, &r->st),
         &r->st);
    br_cpu_watch(r->o.cpu, NULL);
    ck_assert((seen > c->n_tokens) == watched);
    return l;
}

static void
same_when_watched(lk_case *c, br_cpu_pool *pool, br_qtype kv)
{
    br_oracle_config config = {
        .pool = pool, .kv = kv, .n_ctx = BEFORE + AFTER, .n_slots = 2};
    float *alone, *watched;
    lk_run r;

    if (lk_open(&r, c, &config) != BR_OK) {
        config.kv = BR_Q_F16; /* heads of no whole blocks */
        t_ok(lk_open(&r, c, &config), &r.st);
    }
    alone = rows_alone(&r, c, false);
    watched = rows_alone(&r, c, true);
    c->n_tokens += AFTER;
    lk_same(c, alone, watched, "watched");
    c->n_tokens -= AFTER;
    lk_close(&r);
}

TEST_WITHIN(a_row_alone_has_the_bits_of_a_watched_one, 120)
{
    static const br_qtype kv[] = {BR_Q_F16, BR_Q_Q8_0, BR_Q_F32};
    br_cpu_pool *pool[] = {lk_pool(7), lk_pool(1), lk_pool(2)};

    for (size_t i = 0; i < lk_count(); i++) {
        lk_case c = lk_get(i);

        if (!t_sanitized() || !lk_skips(&c, i))
            same_when_watched(&c, pool[i / 3 % 3], kv[i % 3]);
    }
    for (size_t k = 0; k < BR_COUNT(pool); k++)
        br_cpu_pool_free(pool[k]);
    lk_end();
}

/* Of several heads of keys each has several of queries; of eight, four go
 * through a tile together for one thread, two for two. No model of the other
 * tests has them. */
TEST_WITHIN(a_row_alone_has_all_its_heads, 60)
{
    static const char *const shapes[] = {
        "shape:llama-256:Q8_0", "shape:qwen3-512:Q8_0",
        "shape:qwen3moe-256:Q4_0", "shape:llama-512:BF16",
        "shape:llama-3.2-1b:Q8_0"};
    static const br_qtype kv[] = {BR_Q_F16, BR_Q_F32, BR_Q_Q8_0, BR_Q_Q8_0,
                                  BR_Q_F16};
    br_cpu_pool *pool[] = {lk_pool(1), lk_pool(2)};

    for (size_t i = 0; i < (t_sanitized() ? 3 : BR_COUNT(shapes)); i++) {
        br_str doc = {0};
        lk_case c = shape_of(shapes[i], &doc);

        for (size_t k = t_tsan() ? 1 : 0; k < BR_COUNT(pool); k++)
            same_when_watched(&c, pool[k], kv[i]);
        br_str_fini(&doc);
    }
    for (size_t k = 0; k < BR_COUNT(pool); k++)
        br_cpu_pool_free(pool[k]);
}

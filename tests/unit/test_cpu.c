/* test_cpu.c - the CPU tier beside the reference tier, and beside itself.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/thread.h"
#include "drv/cpu/cpu_int.h"
#include "logits_kit.h"
#include "run/tier_diff.h"

#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "t.h"

/* ---- the pool ----------------------------------------------------------- */

enum { PHASES = 400, MOST_TILES = 37, SHORT = 20 };

typedef struct counted {
    _Atomic uint32_t done[PHASES];
    uint32_t tiles[PHASES];
    _Atomic uint32_t early; /* tiles that ran before a phase was over */
    br_cpu_pool *pool;
    const char *soon; /* what a tile names: SOON bytes, or NULL */
    uint32_t slow;    /* whose tiles are long, of long_tile */
} counted;

enum { SOON = 8 << 10 };

static uint32_t
count_begin(void *ctx, uint32_t phase)
{
    counted *c = ctx;

    if (phase > 0 && c->done[phase - 1] != c->tiles[phase - 1])
        c->early++;
    return c->tiles[phase];
}

static void
count_tile(void *ctx, uint32_t phase, uint32_t tile, uint32_t worker)
{
    counted *c = ctx;

    if (c->soon)
        br_cpu_pool_soon(c->pool, worker, c->soon, SOON);
    if (tile >= c->tiles[phase] ||
        (phase > 0 && c->done[phase - 1] != c->tiles[phase - 1]))
        c->early++;
    c->done[phase]++;
}

TEST_WITHIN(a_pool_runs_every_tile_once_and_in_order, 60)
{
    static const uint32_t threads[] = {1, 2, 7};

    for (size_t k = 0; k < BR_COUNT(threads); k++) {
        uint64_t seed = k;
        br_status st = {0};
        br_cpu_pool *p;

        t_ok(br_cpu_pool_new(&p, threads[k], &st), &st);
        ck_assert_uint_eq(br_cpu_pool_threads(p), threads[k]);
        for (int run = 0; run < 20; run++) {
            static const char weights[SOON];
            counted c = {.pool = p, .soon = run % 2 ? weights : NULL};
            br_cpu_job job = {.ctx = &c,
                              .n_phases = PHASES,
                              .begin = count_begin,
                              .tile = count_tile};

            for (int i = 0; i < PHASES; i++)
                c.tiles[i] = (uint32_t)(t_rand(&seed) % MOST_TILES);
            br_cpu_pool_run(p, &job);
            ck_assert_uint_eq(c.early, 0);
            for (int i = 0; i < PHASES; i++)
                if (c.done[i] != c.tiles[i])
                    ck_abort_msg("phase %d: %u of %u tiles", i, c.done[i],
                                 c.tiles[i]);
        }
        br_cpu_pool_free(p);
    }
}

/* Each thread has a tile, and one's is long, for which the other one waits. */
static void
long_tile(void *ctx, uint32_t phase, uint32_t tile, uint32_t worker)
{
    counted *c = ctx;
    int64_t t0;

    count_tile(ctx, phase, tile, worker);
    while (c->done[phase] < 2)
        br_thread_yield();
    for (t0 = br_now_ns(); worker == c->slow && br_now_ns() - t0 < 20000;)
        ;
}

/* Whoever waits reads what it has named, but nothing of an earlier job's, whose
 * memory is gone, and nothing when the job is over: TSan sees who still does. */
TEST(what_is_named_is_read_in_its_job_alone)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t n = (SOON + page - 1) / page * page;
    char *m =
        mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON, -1, 0);
    br_cpu_pool *p = lk_pool(2);

    ck_assert(m != MAP_FAILED);
    for (int run = 0; run < 200; run++) {
        counted c = {
            .pool = p, .tiles = {2, 2}, .soon = m, .slow = run % 2 == 0};
        br_cpu_job job = {
            .ctx = &c, .n_phases = 2, .begin = count_begin, .tile = long_tile};

        br_cpu_pool_run(p, &job);
        memset(m, run, n);
        ck_assert_int_eq(mprotect(m, n, PROT_NONE), 0);
        c = (counted){.pool = p, .tiles = {2, 2}};
        br_cpu_pool_run(p, &job);
        ck_assert_int_eq(mprotect(m, n, PROT_READ | PROT_WRITE), 0);
    }
    br_cpu_pool_free(p);
    munmap(m, n);
}

/* ---- logits ------------------------------------------------------------- */

/* Logits of all tokens of a case. */
static float *
logits_of(const lk_case *c, br_oracle_config config, uint32_t chunk)
{
    lk_run r;
    float *l;

    t_ok(lk_open(&r, c, &config), &r.st);
    l = lk_logits(&r, c, c->n_tokens, chunk);
    lk_close(&r);
    return l;
}

TEST_WITHIN(exact_logits_are_those_of_the_reference_tier, 120)
{
    br_cpu_pool *two = lk_pool(2);

    for (size_t i = 0; i < lk_count(); i++) {
        lk_case c = lk_get(i);
        const float *want;

        if (t_sanitized() && lk_skips(&c, i))
            continue;
        want = logits_of(&c, (br_oracle_config){.act = BR_REF_QUANTISED}, 0);

        lk_same(
            &c,
            logits_of(&c, (br_oracle_config){.pool = two, .exact = true}, 0),
            want, "cpu");
    }
    br_cpu_pool_free(two);
    lk_end();
}

/* What rounds keys and values rounds them alike on both tiers. */
TEST_WITHIN(rounded_keys_are_those_of_the_reference_tier, 120)
{
    br_cpu_pool *two = lk_pool(2);

    for (size_t i = 0; i < lk_count(); i++) {
        lk_case c = lk_get(i);
        br_oracle_config ref = {.act = BR_REF_QUANTISED,
                                .kv = i % 3 ? BR_Q_Q8_0 : BR_Q_F16};
        br_oracle_config cpu = {.pool = two, .exact = true, .kv = ref.kv};

        if (!lk_skips(&c, i))
            lk_same(&c, logits_of(&c, cpu, 0), logits_of(&c, ref, 0),
                    br_qinfo_of(ref.kv)->name);
    }
    br_cpu_pool_free(two);
    lk_end();
}

TEST(blocks_of_keys_need_heads_of_whole_ones)
{
    lk_case c = lk_get(lk_find("gpt-oss"));
    br_oracle_config config = {.kv = BR_Q_Q8_0};
    uint32_t n_pages[BR_MAX_KV_GROUPS] = {0}, below;
    float *coarse = logits_of(&c, config, 0);
    br_ir_node *nodes;
    br_state *s;
    br_ir g;
    lk_run r;

    t_ok(lk_open(&r, &c, &config), &r.st);
    config.kv = BR_Q_F32;
    ck_assert(memcmp(coarse, logits_of(&c, config, 0),
                     (size_t)c.n_vocab * sizeof *coarse) != 0);
    g = *r.o.graph[BR_IR_PREFILL];
    nodes = t_keep(malloc(g.n_nodes * sizeof *nodes));
    memcpy(nodes, g.nodes, g.n_nodes * sizeof *nodes);
    g.nodes = nodes;
    for (uint32_t i = 0; i < g.n_nodes; i++) {
        br_ir_node *n = &nodes[i];

        below = n->attrs & ((1u << BR_IA_head_dim) - 1);
        if (n->op == BR_IR_FLASH_ATTN_BATCHED)
            n->attr[__builtin_popcount(below)].i = 80;
    }
    ck_assert_int_eq(br_state_new(&s, &g, BR_Q_Q8_0, 1, n_pages, &r.st),
                     BR_E_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(r.st.msg, "heads have 80 and"));
    lk_close(&r);
    lk_end();
}

/* A vector of keys is a line, not parts of two; a large pool is of huge pages. */
TEST(pools_begin_with_a_line_or_a_huge_page)
{
    static const uint32_t sizes[] = {0, 16, 48, 80, 1 << 14};
    const uintptr_t huge = 2 << 20;
    lk_case c = lk_get(lk_find("llama-q-Q8_0"));
    br_oracle_config config = {.kv = BR_Q_F16};
    uint32_t n_pages[BR_MAX_KV_GROUPS];
    br_state *s;
    lk_run r;

    t_ok(lk_open(&r, &c, &config), &r.st);
    for (size_t i = 0; i < BR_COUNT(sizes); i++) {
        for (int g = 0; g < BR_MAX_KV_GROUPS; g++)
            n_pages[g] = sizes[i];
        t_ok(br_state_new(&s, r.o.graph[BR_IR_PREFILL], BR_Q_F16, 1, n_pages,
                          &r.st),
             &r.st);
        for (uint32_t g = 0; g < s->plan.n_groups; g++) {
            bool large = sizes[i] * br_state_page_bytes(s, g) >= huge;

            ck_assert_uint_eq((uintptr_t)s->pool[g] % (large ? huge : 64), 0);
            ck_assert(large || sizes[i] < 1 << 14);
        }
        br_state_free(s);
    }
    lk_close(&r);
    lk_end();
}

/* Blocks of a long past are shared by threads, and folded in order. */
TEST_WITHIN(a_long_past_has_the_same_bits_for_any_threads, 120)
{
    enum { PAST = 600, N = 4 };
    static const char *const names[] = {"phi3-long", "gpt-oss"};
    br_cpu_pool *pool[3] = {NULL, lk_pool(1), lk_pool(7)};
    int32_t tokens[PAST + N];

    for (size_t k = 0; k < (t_tsan() ? 1 : BR_COUNT(names)); k++) {
        lk_case c = lk_get(lk_find(names[k]));
        float *l[3];

        for (int i = 0; i < PAST + N; i++)
            tokens[i] = (int32_t)((uint32_t)(i * 37 + i / 7) % c.n_vocab);
        for (int i = 0; i < 3; i++) {
            br_oracle_config config = {.act = BR_REF_QUANTISED,
                                       .pool = pool[i],
                                       .exact = true,
                                       .n_ctx = PAST + N};
            lk_run r;

            l[i] = t_keep(calloc((N + 1) * (size_t)c.n_vocab, sizeof *l[i]));
            t_ok(lk_open(&r, &c, &config), &r.st);
            t_ok(br_oracle_feed(&r.o, 0, 0, tokens, PAST, 0, NULL, &r.st),
                 &r.st);
            t_ok(br_oracle_feed(&r.o, 0, PAST, tokens + PAST, N, i == 2 ? 3 : 1,
                                l[i], &r.st),
                 &r.st);
            if (pool[i])
                ck_assert(r.o.cpu->split.any == (i == 2));
            lk_close(&r);
            ck_assert_msg(
                memcmp(l[i], l[0], N * (size_t)c.n_vocab * sizeof *l[i]) == 0,
                "%s, %d", names[k], i);
        }
    }
    br_cpu_pool_free(pool[1]);
    br_cpu_pool_free(pool[2]);
    lk_end();
}

/* So it is with products in BF16, whatever goes through keys together. */
TEST_WITHIN(a_long_past_in_bf16_has_the_same_bits_for_any_threads, 120)
{
    enum { PAST = 600, N = 4 };
    br_cpu_pool *pool[2] = {lk_pool(1), lk_pool(7)};
    lk_case c = lk_get(lk_find("llama-q-Q8_0"));
    int32_t tokens[PAST + N];
    float *l[2];

    for (int i = 0; i < PAST + N; i++)
        tokens[i] = (int32_t)((uint32_t)(i * 37 + i / 7) % c.n_vocab);
    for (int i = 0; i < 2; i++) {
        br_oracle_config config = {
            .pool = pool[i], .kv = BR_Q_F16, .n_ctx = PAST + N};
        int cut = i ? 73 : PAST - 1;
        lk_run r;

        l[i] = t_keep(calloc((N + 1) * (size_t)c.n_vocab, sizeof *l[i]));
        t_ok(lk_open(&r, &c, &config), &r.st);
        t_ok(br_oracle_feed(&r.o, 0, 0, tokens, PAST, (uint32_t)cut, NULL,
                            &r.st),
             &r.st);
        t_ok(br_oracle_feed(&r.o, 0, PAST, tokens + PAST, N, i ? 3 : 1, l[i],
                            &r.st),
             &r.st);
        ck_assert(r.o.cpu->split.any == (i == 1));
        lk_close(&r);
    }
    ck_assert_mem_eq(l[1], l[0], N * (size_t)c.n_vocab * sizeof *l[0]);
    br_cpu_pool_free(pool[0]);
    br_cpu_pool_free(pool[1]);
    lk_end();
}

/* Of an exact tier, or beside weights in floats, never. */
TEST(attention_is_in_bf16_beside_integers_only)
{
    static const struct {
        const char *name;
        bool exact, pairs;
    } way[] = {{"llama-q-Q8_0", false, true},
               {"llama-q-Q4_K", false, true},
               {"llama-q-Q8_0", true, false},
               {"qwen3moe", false, false}};
    br_cpu_pool *one = lk_pool(1);

    for (size_t i = 0; i < BR_COUNT(way); i++) {
        lk_case c = lk_get(lk_find(way[i].name));
        br_oracle_config config = {
            .pool = one, .kv = BR_Q_F16, .exact = way[i].exact};
        const br_cpu_ops *ops;
        lk_run r;

        t_ok(lk_open(&r, &c, &config), &r.st);
        ops = r.o.cpu->ops;
        ck_assert(r.o.cpu->attend ==
                  (way[i].pairs && br_isa_pairs_pay(r.o.cpu->isa)
                       ? ops->attend_pairs
                       : ops->attend));
        lk_close(&r);
    }
    br_cpu_pool_free(one);
    lk_end();
}

/* However many threads there are and however the prompt was cut. */
TEST_WITHIN(threads_and_chunks_change_no_bit, 120)
{
    static const struct {
        uint32_t threads, chunk;
    } way[] = {{1, 0}, {2, 1}, {7, 7}, {2, 16}, {7, 0}};
    br_cpu_pool *pool[8] = {NULL};

    for (size_t k = 0; k < BR_COUNT(way); k++)
        if (!pool[way[k].threads])
            pool[way[k].threads] = lk_pool(way[k].threads);
    for (size_t i = 0; i < lk_count(); i++) {
        lk_case c = lk_get(i);
        const float *first = NULL;

        if (lk_skips(&c, i))
            continue;

        for (size_t k = 0; k < BR_COUNT(way); k += t_tsan() ? 2 : 1) {
            br_oracle_config config = {.pool = pool[way[k].threads],
                                       .kv = BR_Q_F16};
            const float *l = logits_of(&c, config, way[k].chunk);

            first = first ? first : l;
            lk_same(&c, l, first,
                    t_printf("%u threads, chunks of %u", way[k].threads,
                             way[k].chunk));
        }
    }
    for (size_t k = 0; k < BR_COUNT(pool); k++)
        br_cpu_pool_free(pool[k]);
    lk_end();
}

/* Sixteen sequences in a step, at different positions, in slots and pages in
 * disorder: each gets the logits it gets alone. */
TEST_WITHIN(company_changes_no_bit, 120)
{
    br_cpu_pool *two = lk_pool(2);

    for (size_t i = 0; i < lk_count(); i++) {
        lk_case c = lk_get(i);
        br_oracle_config config = {.pool = two, .kv = BR_Q_F16, .n_slots = 16};
        uint32_t at[16] = {0}, left = 16;
        const float *alone;
        float *got;
        lk_run r;

        if (lk_skips(&c, i))
            continue;
        t_ok(lk_open(&r, &c, &config), &r.st);
        alone = lk_logits(&r, &c, c.n_tokens, 0);
        got = t_keep(calloc(64u * c.n_vocab, sizeof *got));
        br_oracle_reset(&r.o, 0);
        while (left > 0) {
            int32_t slot[64], pos[64], tok[64], want[64];
            br_step s = {0, slot, pos, tok, want, NULL, false, NULL};
            uint32_t row = 0;

            left = 0;
            for (uint32_t k = 0; k < 16; k++) {
                for (uint32_t j = 0; j <= k % 4 && at[k] < SHORT; j++) {
                    slot[s.n_rows] = (int32_t)(15 - k);
                    pos[s.n_rows] = (int32_t)at[k];
                    want[s.n_rows] = (at[k] + k) % 3 != 0;
                    tok[s.n_rows++] = c.tokens[at[k]++];
                }
                left += at[k] < SHORT;
            }
            t_ok(br_oracle_step(&r.o, &s, BR_IR_PREFILL, got, &r.st), &r.st);
            for (uint32_t t = 0; t < s.n_rows; t++)
                if (want[t])
                    ck_assert_msg(memcmp(got + (size_t)row++ * c.n_vocab,
                                         alone + (size_t)pos[t] * c.n_vocab,
                                         c.n_vocab * sizeof *got) == 0,
                                  "%s: slot %d, position %d", c.name, slot[t],
                                  pos[t]);
        }
        lk_close(&r);
    }
    br_cpu_pool_free(two);
    lk_end();
}

/* Products of a step of SHORT rows, of which the last one wants logits. */
static uint64_t
products_of(lk_run *r, const lk_case *c, bool hidden, float *logits)
{
    int32_t slot[SHORT] = {0}, pos[SHORT], want[SHORT] = {0};
    br_step s = {SHORT, slot, pos, c->tokens, want, NULL, hidden, NULL};
    const br_cpu_work *w = br_cpu_work_of(r->o.cpu);
    br_cpu_work was = *w;
    uint64_t n = 0;

    for (uint32_t t = 0; t < SHORT; t++)
        pos[t] = (int32_t)t;
    want[SHORT - 1] = 1;
    br_oracle_reset(&r->o, 0);
    t_ok(br_oracle_step(&r->o, &s, BR_IR_PREFILL, logits, &r->st), &r->st);
    for (int f = 0; f < BR_FORM_COUNT; f++)
        n += w->products[f] - was.products[f];
    return n;
}

/* Rows that want no logits end at the last layer's keys and values, unless
 * somebody asks what the head would read of them. */
TEST(rows_without_logits_are_not_multiplied_to_the_end)
{
    br_cpu_pool *two = lk_pool(2);
    lk_case c = lk_get(lk_of_arch(BR_ARCH_LLAMA, 0));
    br_oracle_config config = {.pool = two, .kv = BR_Q_F16};
    float *few = t_keep(calloc(c.n_vocab, sizeof *few));
    float *all = t_keep(calloc(c.n_vocab, sizeof *all));
    const br_layer_hp *hp;
    uint64_t n, ff, keys;
    lk_run r;

    t_ok(lk_open(&r, &c, &config), &r.st);
    n = products_of(&r, &c, true, all) - products_of(&r, &c, false, few);
    hp = &r.model->hp.layer[r.model->hp.n_layer - 1];
    ff = (uint64_t)(3 * hp->n_ff + hp->n_head * (hp->head_k + hp->head_v)) *
         (uint64_t)r.model->hp.n_embd;
    keys = (uint64_t)(hp->n_head * (hp->head_k + hp->head_v)) * SHORT *
           (SHORT - 1) / 2;
    ck_assert_uint_eq(n, (SHORT - 1) * ff + keys);
    ck_assert_mem_eq(few, all, c.n_vocab * sizeof *few);
    lk_close(&r);
    br_cpu_pool_free(two);
    lk_end();
}

/* What F16 keys and BF16 products cost: cpu.h names the bound. */
TEST_WITHIN(fast_logits_are_near_those_of_the_reference_tier, 120)
{
    br_cpu_pool *two = lk_pool(2);

    for (size_t i = 0; i < lk_count(); i++) {
        lk_case c = lk_get(i);
        br_oracle_config ref = {.act = BR_REF_QUANTISED};
        br_oracle_config fast = {.pool = two, .kv = BR_Q_F16};
        lk_error e;

        if (t_sanitized() && lk_skips(&c, i))
            continue;
        e = lk_compare(logits_of(&c, fast, 0), logits_of(&c, ref, 0),
                       c.n_tokens, c.n_vocab);

        ck_assert_msg(e.median < 1e-3, "%s: median NMSE %g", c.name, e.median);
    }
    br_cpu_pool_free(two);
    lk_end();
}

/* ---- the loop ------------------------------------------------------------ */

TEST(a_step_allocates_nothing)
{
    br_cpu_pool *two = lk_pool(2);
    lk_case c = lk_get(lk_find("gpt-oss"));
    br_oracle_config config = {.pool = two, .kv = BR_Q_F16};
    float *l = t_keep(calloc(64u * c.n_vocab, sizeof *l));
    size_t before;
    lk_run r;

    t_ok(lk_open(&r, &c, &config), &r.st);
    before = t_mem_count();
    t_ok(br_oracle_feed(&r.o, 0, 0, c.tokens, 24, 0, l, &r.st), &r.st);
    t_ok(br_oracle_feed(&r.o, 0, 24, c.tokens + 24, 24, 1, l, &r.st), &r.st);
    ck_assert_uint_eq(t_mem_count(), before);
    lk_close(&r);
    br_cpu_pool_free(two);
    lk_end();
}

typedef struct opening {
    lk_case c;
    br_cpu_pool *pool;
} opening;

static br_code
open_once(void *arg, br_status *st)
{
    opening *o = arg;
    br_oracle_config config = {.pool = o->pool, .n_ctx = 16, .max_rows = 1};
    lk_run r;
    br_code code = lk_open(&r, &o->c, &config);

    if (code != BR_OK)
        return br_fail(st, code, "%s", r.st.msg);
    lk_close(&r);
    return BR_OK;
}

TEST_WITHIN(opening_the_cpu_tier_survives_any_lack_of_memory, 120)
{
    opening o = {lk_get(lk_find("gpt-oss")), lk_pool(2)};

    t_each_oom(open_once, &o);
    br_cpu_pool_free(o.pool);
    lk_end();
}

TEST(a_step_that_the_cpu_tier_cannot_take_is_refused)
{
    br_cpu_pool *p = lk_pool(1);
    lk_case c = lk_get(lk_find("gpt-oss"));
    br_oracle_config config = {.pool = p, .max_rows = 2, .max_want = 1};
    int32_t slot[3] = {0}, pos[3] = {0, 1, 2}, tok[3] = {0};
    br_step s = {2, slot, pos, tok, NULL, NULL, false, NULL};
    float *l = t_keep(calloc(4u * c.n_vocab, sizeof *l));
    lk_run r;

    t_ok(lk_open(&r, &c, &config), &r.st);
    ck_assert_int_eq(br_oracle_step(&r.o, &s, BR_IR_PREFILL, l, &r.st),
                     BR_E_LIMIT);
    ck_assert_ptr_nonnull(strstr(r.st.msg, "2 rows want logits"));
    r.st = (br_status){0};
    s.n_rows = 3;
    ck_assert_int_eq(br_oracle_step(&r.o, &s, BR_IR_PREFILL, NULL, &r.st),
                     BR_E_LIMIT);
    r.st = (br_status){0};
    s.n_rows = 1;
    tok[0] = (int32_t)c.n_vocab;
    ck_assert_int_eq(br_oracle_step(&r.o, &s, BR_IR_PREFILL, NULL, &r.st),
                     BR_E_FORMAT);
    lk_close(&r);
    br_cpu_pool_free(p);
    lk_end();
}

/* ---- validate ------------------------------------------------------------ */

static br_cpu_ops real, faulty;
static int norms; /* so far; a step has a norm more than two a layer */
static int norms_of_a_step;

/* A unit in the last place, in the fourth norm of a step: two a layer. */
static void
norm_with_a_fault(const float *x, const float *w, float *y, size_t n, float eps)
{
    real.norm(x, w, y, n, eps);
    if (++norms % norms_of_a_step == 4)
        y[5] = nextafterf(y[5], INFINITY);
}

TEST(validate_names_the_layer_of_a_fault_of_one_ulp)
{
    br_cpu_pool *one = lk_pool(1);
    lk_case c = lk_get(lk_find("gpt-oss"));
    br_oracle_config ref = {.act = BR_REF_QUANTISED};
    br_oracle_config cpu = {.pool = one, .exact = true};
    lk_run a, b;
    br_diff d;

    t_ok(lk_open(&a, &c, &ref), &a.st);
    t_ok(lk_open(&b, &c, &cpu), &b.st);
    t_ok(br_validate(&d, &a.o, &b.o, c.tokens, 1, 0, &a.st), &a.st);
    ck_assert_ptr_null(d.first);
    ck_assert_uint_eq(d.layers.n, (size_t)a.model->hp.n_layer + 2);
    br_diff_fini(&d);

    faulty = real = *b.o.cpu->ops;
    faulty.norm = norm_with_a_fault;
    b.o.cpu->ops = &faulty;
    norms_of_a_step = 2 * (int)a.model->hp.n_layer + 1;
    t_ok(br_validate(&d, &a.o, &b.o, c.tokens, 1, 0, &a.st), &a.st);
    ck_assert_ptr_nonnull(d.first);
    ck_assert_int_eq(d.first->layer, 1);
    ck_assert_int_eq(a.o.graph[BR_IR_PREFILL]->nodes[d.node].op,
                     BR_IR_RMS_NORM);
    ck_assert_int_eq(a.o.graph[BR_IR_PREFILL]->nodes[d.node].layer, 1);
    ck_assert_uint_eq(d.col, 5);
    ck_assert(d.got == nextafterf(d.want, INFINITY));
    br_diff_fini(&d);
    lk_close(&a);
    lk_close(&b);
    br_cpu_pool_free(one);
    lk_end();
}

TEST(cli_validate_compares_tiers)
{
    const char *model = "models/demo.gguf";
    t_proc r;

    t_run(&r, "validate", model, "-p", "Hello!", "--arith", "exact");
    ck_assert_msg(r.exit == 0, "%s", r.err);
    ck_assert_ptr_nonnull(strstr(r.out, "\nlayer 6    the same bits\nlogits"));
    ck_assert_ptr_nonnull(strstr(r.out, "\ncpu agrees with ref: "));
    t_run(&r, "validate", model, "-p", "Hello!", "--json");
    ck_assert_msg(r.exit == 0, "%s", r.err);
    ck_assert_ptr_nonnull(strstr(r.out, "\"tier\": \"cpu\", \"ok\": true"));
    t_run(&r, "validate", model, "-p", "x", "--tiers", "ref");
    ck_assert_int_eq(r.exit, 2);
    t_run(&r, "validate", model, "-p", "x", "--tiers", "ref,vulkan");
    ck_assert_int_eq(r.exit, 5);
    t_run(&r, "validate", model);
    ck_assert_int_eq(r.exit, 2);
}

/* ---- packed weights that are kept ---------------------------------------- */

/* The only *.pack of the folder. */
static char *
pack_in(const char *folder)
{
    DIR *d = opendir(folder);
    char *found = NULL;

    ck_assert_ptr_nonnull(d);
    for (struct dirent *e; (e = readdir(d));) {
        if (!strstr(e->d_name, ".pack"))
            continue;
        ck_assert_msg(!found, "two files: %s", e->d_name);
        found = t_printf("%s/%s", folder, e->d_name);
    }
    closedir(d);
    return found;
}

/* Opens the model file, asks for logits, ends; were the weights kept? */
static bool
start(const lk_case *c, const char *file, br_oracle_config config, float *l)
{
    br_status st = {0};
    br_oracle o;
    br_model *m;
    bool kept;

    t_ok(br_model_open(&m, file, &st), &st);
    t_ok(br_oracle_open(&o, m, &config, &st), &st);
    kept = br_cpu_was_kept(o.cpu);
    t_ok(br_oracle_feed(&o, 0, 0, c->tokens, 4, 0, l, &st), &st);
    br_oracle_close(&o);
    br_model_close(m);
    return kept;
}

TEST(packed_weights_are_kept_until_the_model_changes)
{
    br_cpu_pool *two = lk_pool(2);
    lk_case c = lk_get(0);
    const char *folder = t_printf("%s/cache", t_tmpdir());
    const char *file = t_printf("%s/m.gguf", t_tmpdir());
    size_t bytes = 4 * (size_t)c.n_vocab * sizeof(float), n;
    float *want = t_keep(malloc(bytes)), *got = t_keep(malloc(bytes));
    br_oracle_config config = {.pool = two,
                               .cache = {folder, 1 << 30, 1 << 30}};
    char *pack, *text;

    ck_assert_int_eq(mkdir(folder, 0700), 0);
    t_write(file, c.file, c.file_n);
    ck_assert(!start(&c, file, config, want));
    ck_assert_msg(!pack_in(folder), "too small to be kept");

    config.cache.from = 0;
    ck_assert(!start(&c, file, config, got));
    ck_assert(start(&c, file, config, got));
    ck_assert_mem_eq(got, want, bytes);

    pack = pack_in(folder);
    text = t_read(pack, &n);
    t_write(pack, text, n - 1); /* cut off */
    ck_assert(!start(&c, file, config, got));
    ck_assert_mem_eq(got, want, bytes);
    text[9] ^= 1; /* of another key */
    t_write(pack, text, n);
    ck_assert(!start(&c, file, config, got));
    ck_assert_mem_eq(got, want, bytes);
    ck_assert(start(&c, file, config, got)); /* written over, both times */

    t_write(file, c.file, c.file_n); /* a later time */
    ck_assert(!start(&c, file, config, got));
    ck_assert(start(&c, file, config, got));
    ck_assert_mem_eq(got, want, bytes);

    config.cache.folder = "/nowhere"; /* no reason not to run */
    ck_assert(!start(&c, file, config, got));
    ck_assert_mem_eq(got, want, bytes);
    br_cpu_pool_free(two);
    lk_end();
}

/* A file name of the folder that is not dots; "" for none. */
static char *
only_file(const char *folder)
{
    DIR *d = opendir(folder);
    char *found = t_printf("%s", "");

    ck_assert_ptr_nonnull(d);
    for (struct dirent *e; (e = readdir(d));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) {
            ck_assert_msg(!*found, "two files: %s, %s", found, e->d_name);
            found = t_printf("%s/%s", folder, e->d_name);
        }
    closedir(d);
    return found;
}

TEST(packed_weights_go_with_their_model_and_at_the_limit)
{
    br_cpu_pool *two = lk_pool(2);
    lk_case c = lk_get(0);
    const char *folder = t_printf("%s/cache", t_tmpdir());
    const char *a = t_printf("%s/a.gguf", t_tmpdir());
    const char *b = t_printf("%s/b.gguf", t_tmpdir());
    size_t bytes = 4 * (size_t)c.n_vocab * sizeof(float), n;
    float *l = t_keep(malloc(bytes));
    br_oracle_config config = {.pool = two, .cache = {folder, 0, 1 << 30}};
    char *pack, *text;

    ck_assert_int_eq(mkdir(folder, 0700), 0);
    t_write(a, c.file, c.file_n);
    t_write(b, c.file, c.file_n);
    ck_assert(!start(&c, a, config, l));
    pack = only_file(folder);
    text = t_read(pack, &n);

    t_write(pack, text, n);
    ck_assert(start(&c, a, config, l));
    text[56] ^= 1; /* another boot's */
    text[92] = 0;  /* and may not be whole */
    t_write(pack, text, n);
    ck_assert(!start(&c, a, config, l));
    text[92] = 1; /* but this one is */
    t_write(pack, text, n);
    ck_assert(start(&c, a, config, l));

    config.cache.most = n + n / 2; /* room for one */
    t_write(t_printf("%s/.brass-999999999-0.tmp", folder), "x", 1);
    ck_assert(!start(&c, b, config, l));
    ck_assert_str_ne(only_file(folder), pack);
    ck_assert(start(&c, b, config, l));
    ck_assert(!start(&c, a, config, l));
    ck_assert_str_eq(only_file(folder), pack);

    config.cache.most = 1 << 30;
    ck_assert_int_eq(unlink(a), 0);
    ck_assert(!start(&c, b, config, l));
    ck_assert_str_ne(only_file(folder), pack);
    ck_assert_int_eq(unlink(only_file(folder)), 0);
    config.cache.most = n - 1;
    ck_assert(!start(&c, b, config, l));
    ck_assert_str_eq(only_file(folder), "");
    br_cpu_pool_free(two);
    lk_end();
}

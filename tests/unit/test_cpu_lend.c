/* test_cpu_lend.c - attention of one row whose threads are not as fast: what a
 * slow one lends has the bits that it would have made.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/cpu/cpu_int.h"
#include "logits_kit.h"
#include "run/shape.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "t.h"

/* Ten blocks, the last one of a few keys; they take longer than all that is asked of
 * them (11 of 12 s under TSan), so what is asked of as many threads is one test. */
enum { PAST = 9 * BR_CPU_BLOCK + 20, VOCAB = 256 };

typedef struct deep {
    br_cpu_pool *pool;
    br_str doc;
    lk_run r;
    float first[VOCAB]; /* logits of the next token: nothing lent */
} deep;

/* The token at PAST, by threads that take so long for a block, in turn; how many
 * tiles lent. */
static uint64_t
step_of(deep *d, double pace0, double pace1, float *logits)
{
    br_cpu *c = d->r.o.cpu;
    const uint64_t was = c->n_lent;
    const int32_t token = 77;

    for (uint32_t i = 0; i < c->n_threads; i++)
        c->worker[i].pace = i % 2 ? pace1 : pace0;
    memset(logits, 0xff, VOCAB * sizeof *logits);
    /* The blocks that are kept: none of them is of the step before. */
    memset(c->kept_blocks, 0xff, 64 << 10);
    t_ok(br_oracle_feed(&d->r.o, 0, PAST, &token, 1, 1, logits, &d->r.st),
         &d->r.st);
    return c->n_lent - was;
}

static void
deep_open(deep *d, uint32_t threads, int kv)
{
    br_oracle_config config = {
        .pool = lk_pool(threads), .kv = kv, .n_ctx = PAST + 16};
    const char *shape = "shape:llama-3.2-1b:Q8_0"; /* eight heads of keys */
    lk_case c = {.name = shape, .n_tokens = 4, .n_vocab = VOCAB};
    int32_t *tokens = t_keep(calloc(PAST, sizeof *tokens));
    br_status st = {0};

    *d = (deep){.pool = config.pool};
    t_ok(br_shape_model(&d->doc, shape, true, &st), &st);
    c.file = d->doc.at;
    c.file_n = d->doc.n;
    t_ok(lk_open(&d->r, &c, &config), &d->r.st);
    for (int32_t i = 0; i < PAST; i++)
        tokens[i] = (i * 37 + i / 7) % VOCAB;
    t_ok(br_oracle_feed(&d->r.o, 0, 0, tokens, PAST, 0, NULL, &d->r.st),
         &d->r.st);
    ck_assert_uint_eq(d->r.o.cpu->n_lent, 0); /* many rows lend nothing */
    ck_assert_uint_eq(step_of(d, 1000, 1000, d->first), 0);
}

static void
deep_close(deep *d)
{
    lk_close(&d->r);
    br_cpu_pool_free(d->pool);
    br_str_fini(&d->doc);
}

/* How many tiles a thread was measured by, whose pace was so long that they took
 * no time beside it. */
static long
measured(double pace, double was)
{
    return lround(log(pace / was) / log(7. / 8));
}

/* Of ten blocks five are kept: a thread that is fast again is known by them. */
static void
tile_that_lends_is_measured(deep *d)
{
    const cpu_worker *w = d->r.o.cpu->worker;
    float logits[VOCAB];

    ck_assert_uint_eq(step_of(d, 9e11, 9e15, logits), 1);
    ck_assert_int_eq(measured(w[0].pace, 9e11) + measured(w[1].pace, 9e15), 2);
}

TEST_WITHIN(blocks_that_a_slow_thread_lends_have_its_bits, 60)
{
    /* ns a block; how many tiles lend: of ten blocks one and a half, at least */
    static const struct {
        double pace[2];
        uint64_t lent;
    } rows[] = {{{1000, 1500}, 1}, {{1500, 1000}, 1}, {{1000, 9e9}, 1},
                {{2000, 1000}, 1}, {{1300, 1000}, 0}, {{0, 1000}, 0},
                {{1000, 0}, 0}};
    float logits[VOCAB];
    deep d;

    deep_open(&d, 2, BR_Q_F16);
    if (d.r.o.cpu->split.n_tiles != 2) {
        deep_close(&d);
        t_skip("no pairs of BF16 here: a thread has tiles enough");
    }
    for (size_t i = 0; i < BR_COUNT(rows); i++) {
        uint64_t lent = step_of(&d, rows[i].pace[0], rows[i].pace[1], logits);

        ck_assert_msg(lent == rows[i].lent, "row %zu: %" PRIu64 " lent", i,
                      lent);
        ck_assert_msg(memcmp(logits, d.first, sizeof logits) == 0,
                      "row %zu: other bits", i);
    }
    tile_that_lends_is_measured(&d);
    deep_close(&d);
}

/* Nothing can be lent where a past is in spans, so their paces are not asked. */
static void
spans_have_no_pace(deep *d)
{
    const cpu_worker *w = d->r.o.cpu->worker;
    float logits[VOCAB];

    ck_assert(d->r.o.cpu->split.any);
    ck_assert_uint_eq(step_of(d, 1000, 3000, logits), 0);
    for (uint32_t i = 0; i < 8; i++)
        ck_assert(w[i].pace == (i % 2 ? 3000 : 1000));
}

/* Eight threads would have spans of a past of F32 each, for which there is no room:
 * undivided, a head each, they may lend. */
TEST_WITHIN(what_is_lent_of_a_past_that_is_not_divided_has_its_bits, 60)
{
    float logits[VOCAB];
    size_t per_block;
    br_cpu *c;
    deep d;

    deep_open(&d, 8, BR_Q_F32);
    c = d.r.o.cpu;
    per_block = 32 * (64 + 2); /* heads, and what is kept of each */
    spans_have_no_pace(&d);
    ck_assert(c->split.any && c->split.span < 10);
    c->most_kept = 9 * per_block; /* of ten */
    ck_assert_uint_eq(step_of(&d, 1000, 1000, d.first), 0);
    ck_assert(!c->split.any && c->split.span < 10);
    ck_assert_uint_eq(c->split.n_tiles, 8);
    ck_assert_uint_eq(step_of(&d, 1000, 3000, logits), 4);
    ck_assert(memcmp(logits, d.first, sizeof logits) == 0);
    ck_assert_uint_eq(step_of(&d, 1000, 9e9, logits), 4);
    ck_assert(memcmp(logits, d.first, sizeof logits) == 0);
    c->most_kept = 5 * per_block; /* five are lent, and one kept */
    ck_assert_uint_eq(step_of(&d, 1000, 9e9, logits), 0);
    ck_assert(memcmp(logits, d.first, sizeof logits) == 0);
    deep_close(&d);
}

/* A thread's pace is a mean of the last ones, and begins with the first. */
TEST(a_pace_follows_what_blocks_take)
{
    cpu_worker w = {.pace = 0};

    cpu_lend_pace(&w, 5000, 5); /* what a tile of ten keeps when it lends */
    ck_assert(w.pace == 1000);
    for (int i = 0; i < 40; i++)
        cpu_lend_pace(&w, 32 * 2000, 32);
    ck_assert(w.pace > 1980 && w.pace < 2000);
}

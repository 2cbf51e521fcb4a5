/* test_cpu_tune.c - the CPU tier's knobs: none changes a bit, each is read, and a
 * job has the threads it asks for.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/thread.h"
#include "drv/cpu/cpu_int.h"
#include "logits_kit.h"
#include "run/shape.h"

#include <stdlib.h>
#include <string.h>

#include "t.h"

/* Nine blocks of keys and some; a prompt of many rows; a few sequences. */
enum { PAST = 8 * BR_CPU_BLOCK + 20, MANY = 70, FEW = 6, VOCAB = 256 };
enum { THREADS = 3, ROWS = 1 + MANY + FEW };

typedef struct seen {
    float one[VOCAB], many[VOCAB], few[FEW * VOCAB];
} seen;

typedef struct tuned {
    br_cpu_pool *pool;
    br_str doc;
    lk_run r;
} tuned;

static void
step(tuned *t, uint32_t n, const int32_t *slot, const int32_t *position,
     const int32_t *want, float *out)
{
    int32_t token[MANY];
    br_step s = {.n_rows = n,
                 .slot = slot,
                 .position = position,
                 .token = token,
                 .want = want};

    for (uint32_t i = 0; i < n; i++)
        token[i] = (int32_t)(7 * i + 5 * (uint32_t)position[i]) % VOCAB;
    t_ok(br_oracle_step(&t->r.o, &s, BR_IR_PREFILL, out, &t->r.st), &t->r.st);
}

/* One row at PAST of slot 0, MANY of slot 1, one of each of FEW slots. */
static void
look(tuned *t, seen *s)
{
    int32_t slot[MANY], position[MANY], want[MANY] = {0};

    memset(s, 0xff, sizeof *s);
    memset(t->r.o.cpu->kept_blocks, 0xff, 64 << 10);
    br_kv_cut(t->r.o.kv, 0, PAST);
    slot[0] = 0;
    position[0] = PAST;
    step(t, 1, slot, position, NULL, s->one);
    br_oracle_reset(&t->r.o, 1);
    for (int i = 0; i < MANY; i++) {
        slot[i] = 1;
        position[i] = i;
    }
    want[MANY - 1] = 1;
    step(t, MANY, slot, position, want, s->many);
    for (int i = 0; i < FEW; i++) {
        br_oracle_reset(&t->r.o, 1 + (uint32_t)i);
        slot[i] = 1 + i;
        position[i] = 0;
    }
    step(t, FEW, slot, position, NULL, s->few);
}

static void
tuned_open(tuned *t, const char *shape)
{
    br_oracle_config config = {.pool = lk_pool(THREADS),
                               .kv = BR_Q_F16,
                               .n_ctx = PAST + 16,
                               .n_slots = 1 + FEW,
                               .max_rows = 512};
    lk_case c = {.name = shape, .n_tokens = 4, .n_vocab = VOCAB};
    int32_t *tokens = t_keep(calloc(PAST, sizeof *tokens));
    br_status st = {0};

    *t = (tuned){.pool = config.pool};
    t_ok(br_shape_model(&t->doc, shape, true, &st), &st);
    c.file = t->doc.at;
    c.file_n = t->doc.n;
    t_ok(lk_open(&t->r, &c, &config), &t->r.st);
    for (int32_t i = 0; i < PAST; i++)
        tokens[i] = (i * 37 + i / 7) % VOCAB;
    t_ok(br_oracle_feed(&t->r.o, 0, 0, tokens, PAST, 0, NULL, &t->r.st),
         &t->r.st);
}

static void
tuned_close(tuned *t)
{
    lk_close(&t->r);
    br_cpu_pool_free(t->pool);
    br_str_fini(&t->doc);
}

static void
every_value(const char *shape)
{
    seen *want = t_keep(malloc(sizeof *want));
    seen *got = t_keep(malloc(sizeof *got));
    br_cpu_tune t, def;
    tuned on;
    uint32_t tries[BR_CPU_TRIES], n, all = 0;

    tuned_open(&on, shape);
    br_cpu_tune_default(&def, THREADS);
    ck_assert_mem_eq(br_cpu_tune_of(on.r.o.cpu), &def, sizeof def);
    look(&on, want);
    for (br_cpu_knob k = 0; k < BR_CPU_KNOBS; k++) {
        n = br_cpu_knob_tries(k, THREADS, def.at[k], tries);
        ck_assert_uint_gt(n, 0);
        for (uint32_t i = 0; i < n; i++, all++) {
            t = def;
            t.at[k] = tries[i];
            br_cpu_set_tune(on.r.o.cpu, &t);
            look(&on, got);
            ck_assert_msg(memcmp(want, got, sizeof *got) == 0,
                          "%s: %s of %u: other bits", shape,
                          br_cpu_knob_name(k), tries[i]);
        }
    }
    ck_assert_uint_gt(all, 2 * BR_CPU_KNOBS);
    br_cpu_set_tune(on.r.o.cpu, &def);
    tuned_close(&on);
}

TEST_WITHIN(no_value_of_a_knob_changes_a_bit, 120)
{
    every_value("shape:llama-3.2-1b:Q8_0"); /* eight heads of keys */
    every_value("shape:llama-512:Q4_K_M");
    every_value("shape:qwen3moe-256:BF16"); /* experts */
}

/* Every knob of a product's tiles moves them, and those of kernels are in the
 * matrices. */
static uint32_t
tiles_of(br_cpu *c, uint32_t rows)
{
    static const int32_t none[MANY];
    br_step s = {.n_rows = rows, .slot = none, .position = none, .token = none};
    uint32_t tiles = 0;

    c->step = &s;
    c->n_want = c->few = c->alone = 0;
    for (size_t i = 0; i < c->phases.n; i++)
        if (c->phases.at[i].kind == &cpu_multiply && !c->phases.at[i].want)
            tiles += cpu_multiply.tiles(c, &c->phases.at[i]) + 1;
    return tiles;
}

TEST_WITHIN(knobs_are_read, 60)
{
    static const struct {
        br_cpu_knob k;
        uint32_t rows, value;
    } rows[] = {{BR_CPU_KNOB_share, 2, 8},
                {BR_CPU_KNOB_few_bytes, 2, 98304},
                {BR_CPU_KNOB_many_panels, 40, 2},
                {BR_CPU_KNOB_many_bytes, 40, 65536},
                {BR_CPU_KNOB_many_tiles, 40, 16}};
    br_cpu_tune t, def;
    const br_mat *m = NULL;
    br_cpu *c;
    tuned on;

    tuned_open(&on, "shape:llama-3.2-1b:Q8_0");
    c = on.r.o.cpu;
    br_cpu_tune_default(&def, THREADS);
    for (size_t i = 0; i < BR_COUNT(rows); i++) {
        uint32_t was = tiles_of(c, rows[i].rows);

        t = def;
        t.at[rows[i].k] = rows[i].value;
        br_cpu_set_tune(c, &t);
        ck_assert_msg(tiles_of(c, rows[i].rows) != was, "%s",
                      br_cpu_knob_name(rows[i].k));
        br_cpu_set_tune(c, &def);
        ck_assert_uint_eq(tiles_of(c, rows[i].rows), was);
    }
    t.at[BR_CPU_KNOB_ahead] = 3072;
    t.at[BR_CPU_KNOB_pages] = 32768;
    t.at[BR_CPU_KNOB_near_bytes] = 65536;
    t.at[BR_CPU_KNOB_rows_bytes] = 131072;
    t.at[BR_CPU_KNOB_threads] = 2;
    br_cpu_set_tune(c, &t);
    for (uint32_t v = 0; !m; v++)
        m = c->mat[v].t ? &c->mat[v].m : NULL;
    ck_assert_uint_eq(m->ahead, 3072);
    ck_assert_uint_eq(m->pages, 32768);
    ck_assert_uint_eq(m->near_bytes, 65536);
    ck_assert_uint_eq(m->rows_bytes, 131072);
    look(&on, t_keep(malloc(sizeof(seen))));
    ck_assert_uint_eq(c->n_threads, 2); /* its last step has few rows */
    tuned_close(&on);
}

/* Names are what the database has: each of its own, and known. */
TEST(knobs_take_what_they_try)
{
    br_cpu_tune def;
    uint32_t tries[BR_CPU_TRIES];

    br_cpu_tune_default(&def, 8);
    for (br_cpu_knob k = 0; k < BR_CPU_KNOBS; k++) {
        uint32_t n = br_cpu_knob_tries(k, 8, def.at[k], tries);

        ck_assert_uint_le(n, BR_CPU_TRIES);
        ck_assert_int_eq((int)br_cpu_knob_find(br_text_z(br_cpu_knob_name(k))),
                         (int)k);
        ck_assert(br_cpu_knob_takes(k, 8, def.at[k]));
        ck_assert(!br_cpu_knob_takes(k, 8, UINT32_MAX));
        ck_assert(!br_cpu_knob_takes(k, 8, (1ull << 32) + def.at[k]));
        for (uint32_t i = 0; i < n; i++) {
            ck_assert_uint_ne(tries[i], def.at[k]);
            ck_assert(br_cpu_knob_takes(k, 8, tries[i]));
        }
    }
    ck_assert_int_eq((int)br_cpu_knob_find(br_text_z("")), BR_CPU_KNOBS);
    ck_assert_uint_eq(br_cpu_knob_tries(BR_CPU_KNOB_threads, 1, 1, tries), 0);
    ck_assert_uint_eq(br_cpu_knob_tries(BR_CPU_KNOB_threads, 2, 2, tries), 1);
    ck_assert(!br_cpu_knob_takes(BR_CPU_KNOB_threads, 8, 0));
    ck_assert(!br_cpu_knob_takes(BR_CPU_KNOB_threads, 8, 9));
    ck_assert(br_cpu_knob_takes(BR_CPU_KNOB_threads, 8, 5));
}

/* ---- threads of a job ---------------------------------------------------- */

typedef struct crowd {
    _Atomic uint64_t who; /* a bit each */
    _Atomic uint32_t tiles;
} crowd;

enum { CROWD = 4, TILES = 200 };

static uint32_t
crowd_begin(void *ctx, uint32_t phase)
{
    (void)ctx, (void)phase;
    return TILES;
}

static void
crowd_tile(void *ctx, uint32_t phase, uint32_t tile, uint32_t worker)
{
    crowd *c = ctx;

    (void)phase, (void)tile;
    atomic_fetch_or(&c->who, (uint64_t)1 << worker);
    atomic_fetch_add(&c->tiles, 1);
    br_sleep_ns(20000);
}

TEST_WITHIN(a_job_has_the_threads_it_asks_for, 60)
{
    static const uint32_t asked[] = {0, 2, 1, 3, 1, 0, 4, 9};
    br_cpu_pool *p = lk_pool(CROWD);

    for (size_t i = 0; i < BR_COUNT(asked); i++) {
        uint32_t n = asked[i] && asked[i] < CROWD ? asked[i] : CROWD;
        crowd c = {0};
        br_cpu_job job = {.ctx = &c,
                          .n_phases = 2,
                          .begin = crowd_begin,
                          .tile = crowd_tile,
                          .threads = asked[i],
                          .looks = i % 2};

        /* One that has not heard yet may still come: not again and again. */
        for (int tries = 0; tries < 100; tries++) {
            atomic_store(&c.who, 0);
            atomic_store(&c.tiles, 0);
            br_cpu_pool_run(p, &job);
            ck_assert_uint_eq(c.tiles, 2 * TILES);
            if (c.who == ((uint64_t)1 << n) - 1)
                break;
        }
        ck_assert_msg(c.who == ((uint64_t)1 << n) - 1, "%u asked: %llx",
                      asked[i], (unsigned long long)c.who);
        ck_assert_uint_eq(br_cpu_pool_threads(p), CROWD);
    }
    br_cpu_pool_free(p);
}

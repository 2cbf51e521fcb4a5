/* test_tune.c - the search of brass tune, on a clock and a machine of the tests'
 * own; the command on a real one.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "run/tune_search.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "t.h"

enum { MS = 1000000, LOOK_MS = 20, PROMPT_KIND = 3 };

/* A machine: a look takes 20 ms (a prompt's 200) times what its values cost,
 * times noise, times the level of memory, which changes within seconds. */
typedef struct machine {
    /* in steps of a kind, `knob` of `value` costs so much */
    struct {
        int kind;
        br_cpu_knob knob;
        uint32_t value;
        double cost;
    } cost[8];
    double noise;
    bool levels;
    int64_t now, stop_at; /* 0: never */
    uint64_t seed;
    br_cpu_knob wrong; /* a value that is not the default changes bits */
    uint32_t looks, default_looks;
    /* After so much time the defaults have become fast in answers. */
    int64_t defaults_fast_at;
} machine;

static double
random_of(machine *m)
{
    return (double)(t_rand(&m->seed) >> 11) / (double)(1ull << 53);
}

static double
noise_of(machine *m)
{
    double x = 1;

    for (int i = 0; i < 4; i++)
        x += m->noise * (random_of(m) - .5);
    /* now and then a neighbour has the core */
    return m->noise > 0 && random_of(m) < .05 ? 2 * x : x;
}

static br_code
look(void *ctx, int kind, const br_cpu_tune *t, double *seconds, uint64_t *bits,
     br_status *st)
{
    machine *m = ctx;
    double ms = kind == PROMPT_KIND ? 10 * LOOK_MS : LOOK_MS;
    br_cpu_tune def;

    (void)st;
    br_cpu_tune_default(&def, 8);
    m->looks++;
    for (size_t i = 0; i < BR_COUNT(m->cost); i++)
        if (m->cost[i].cost > 0 && m->cost[i].kind == kind &&
            t->at[m->cost[i].knob] == m->cost[i].value)
            ms *= m->cost[i].cost;
    if (memcmp(t, &def, sizeof def) == 0) {
        m->default_looks++;
        if (kind == 0 && m->defaults_fast_at && m->now > m->defaults_fast_at)
            ms *= .5;
    }
    ms *= noise_of(m);
    if (m->levels && m->now / (3 * (int64_t)MS * 1000) % 2)
        ms *= 1.8;
    m->now += (int64_t)(ms * MS);
    *seconds = ms * 1e-3;
    *bits = 77 + (uint64_t)kind;
    if (m->wrong < BR_CPU_KNOBS && t->at[m->wrong] != def.at[m->wrong])
        *bits += 1;
    return BR_OK;
}

static int64_t
now(void *ctx)
{
    return ((machine *)ctx)->now;
}

static bool
stopped(void *ctx)
{
    const machine *m = ctx;

    return m->stop_at && m->now >= m->stop_at;
}

static br_code
search(machine *m, double minutes, br_tune_result *r, br_status *st)
{
    const br_tune_meter meter = {
        .ctx = m, .kinds = 15, .look = look, .now_ns = now, .stopped = stopped};
    const br_tune_config c = {.isa = BR_ISA_AVX512,
                              .n_threads = 8,
                              .budget_ns = (int64_t)(minutes * 60e9)};

    return br_tune_search(r, &meter, &c, st);
}

static br_tune_result
found(machine *m, double minutes)
{
    br_tune_result r;
    br_status st = {0};

    t_ok(search(m, minutes, &r, &st), &st);
    return r;
}

/* Of two planted values, on a machine with neighbours whose memory has two levels:
 * a look that meets them may miss one, now and then. */
TEST(search_finds_planted_values)
{
    uint32_t looks = 0, panels = 0;

    for (uint64_t seed = 0; seed < 40; seed++) {
        machine m = {.seed = seed,
                     .noise = .05,
                     .levels = true,
                     .wrong = BR_CPU_KNOBS,
                     .cost = {{0, BR_CPU_KNOB_looks, 20000, .9},
                              {1, BR_CPU_KNOB_looks, 20000, .9},
                              {PROMPT_KIND, BR_CPU_KNOB_many_panels, 4, .8},
                              {2, BR_CPU_KNOB_share, 8, 1.3}}};
        br_tune_result r = found(&m, 10);
        bool first = r.best.at[BR_CPU_KNOB_looks] == 20000;
        bool second = r.best.at[BR_CPU_KNOB_many_panels] == 4;

        looks += first;
        panels += second;
        ck_assert_uint_eq(r.n_kept, (uint32_t)first + second);
        ck_assert_uint_eq(r.left, 0);
        ck_assert(!r.dropped && !r.stopped);
        if (first)
            ck_assert(fabs(r.ratio[0] - .9) < .05);
        if (second)
            ck_assert(fabs(r.ratio[PROMPT_KIND] - .8) < .05);
        ck_assert(r.ratio[2] == 0); /* nothing that it reads has changed */
    }
    printf("planted: %u and %u of 40 found\n", looks, panels);
    ck_assert_uint_ge(looks, 36);
    ck_assert_uint_ge(panels, 36);
}

TEST(search_keeps_the_defaults_where_all_is_noise)
{
    static const double noises[] = {0, .02, .1, .4};

    for (uint64_t seed = 0; seed < 60; seed++) {
        machine m = {.seed = 1000 + seed,
                     .noise = noises[seed % 4],
                     .levels = true,
                     .wrong = BR_CPU_KNOBS};
        br_tune_result r = found(&m, 10);

        ck_assert_msg(r.n_kept == 0, "seed %d: %u kept", (int)seed, r.n_kept);
        ck_assert_mem_eq(&r.best, &r.def, sizeof r.def);
        ck_assert_uint_gt(r.tried, 30);
    }
}

/* Half a percent is not worth a line in the database, however certain. */
TEST(search_does_not_take_less_than_a_hundredth)
{
    machine m = {.wrong = BR_CPU_KNOBS,
                 .cost = {{0, BR_CPU_KNOB_looks, 1000, .995},
                          {0, BR_CPU_KNOB_share, 12, .98}}};
    br_tune_result r = found(&m, 10);

    ck_assert_uint_eq(r.n_kept, 1);
    ck_assert_uint_eq(r.best.at[BR_CPU_KNOB_share], 12);
}

TEST(search_does_not_pay_one_step_by_another)
{
    machine m = {.noise = .02,
                 .wrong = BR_CPU_KNOBS,
                 .cost = {{0, BR_CPU_KNOB_threads, 4, .7},
                          {2, BR_CPU_KNOB_threads, 4, 1.2},
                          {1, BR_CPU_KNOB_spans, 8, .8}}};
    br_tune_result r = found(&m, 10);

    ck_assert_uint_eq(r.best.at[BR_CPU_KNOB_threads], 8);
    ck_assert_uint_eq(r.best.at[BR_CPU_KNOB_spans], 8); /* it stands */
    ck_assert_uint_eq(r.n_kept, 1);
}

/* Of several that are faster the fastest. */
TEST(search_goes_on_from_what_it_has_kept)
{
    machine m = {.noise = .02,
                 .wrong = BR_CPU_KNOBS,
                 .cost = {{PROMPT_KIND, BR_CPU_KNOB_many_panels, 2, .9},
                          {PROMPT_KIND, BR_CPU_KNOB_many_panels, 4, .7},
                          {PROMPT_KIND, BR_CPU_KNOB_many_panels, 16, .8}}};
    br_tune_result r = found(&m, 10);

    ck_assert_uint_eq(r.n_kept, 1);
    ck_assert_uint_eq(r.best.at[BR_CPU_KNOB_many_panels], 4);
}

TEST(search_drops_what_does_not_stand_beside_the_defaults)
{
    machine m = {.noise = .02,
                 .wrong = BR_CPU_KNOBS,
                 .cost = {{0, BR_CPU_KNOB_looks, 1000, .9},
                          {PROMPT_KIND, BR_CPU_KNOB_many_tiles, 4, .9}},
                 .defaults_fast_at = 60 * (int64_t)1000 * MS};
    br_tune_result r = found(&m, 10);

    ck_assert(m.now > m.defaults_fast_at);
    ck_assert_uint_eq(r.dropped, 1);
    ck_assert_uint_eq(r.n_kept, 1);
    ck_assert_uint_eq(r.best.at[BR_CPU_KNOB_looks], 4000);
    ck_assert_uint_eq(r.best.at[BR_CPU_KNOB_many_tiles], 4);
    ck_assert(r.ratio[0] == 0 && fabs(r.ratio[PROMPT_KIND] - .9) < .05);
}

TEST(search_keeps_to_its_minutes)
{
    static const double minutes[] = {.01, .1, .3, 1};

    for (size_t i = 0; i < BR_COUNT(minutes); i++) {
        machine m = {.noise = .05,
                     .wrong = BR_CPU_KNOBS,
                     .cost = {{0, BR_CPU_KNOB_ahead, 8192, .8}}};
        br_tune_result r = found(&m, minutes[i]);

        /* and a pair that had begun; of the first looks, one of each kind */
        ck_assert(m.now <= (int64_t)(minutes[i] * 60e9) + 1000 * (int64_t)MS);
        ck_assert_uint_gt(r.left, 0);
        ck_assert(!r.stopped);
    }
}

/* A value whose look was cut off was not tried: were it counted, the last one's
 * would leave nothing over, and brass tune would say that all was looked at. */
TEST(search_that_is_stopped_at_the_last_value_leaves_it)
{
    machine m = {.wrong = BR_CPU_KNOBS};
    br_tune_result all = found(&m, 10), cut;
    /* two pairs of prompts before its end */
    machine again = {.wrong = BR_CPU_KNOBS,
                     .stop_at = m.now - 4 * 10 * LOOK_MS * (int64_t)MS};

    ck_assert(all.left == 0 && !all.stopped);
    cut = found(&again, 10);
    ck_assert(cut.stopped);
    ck_assert_uint_eq(cut.left, 1);
    ck_assert_uint_eq(cut.tried, all.tried - 1);
}

TEST(search_that_is_stopped_keeps_what_it_has)
{
    machine m = {.noise = .02,
                 .wrong = BR_CPU_KNOBS,
                 .cost = {{0, BR_CPU_KNOB_ahead, 8192, .8}},
                 .stop_at = 25 * (int64_t)1000 * MS};
    br_tune_result r = found(&m, 10);

    ck_assert(r.stopped);
    ck_assert_uint_gt(r.left, 0);
    ck_assert_uint_eq(r.n_kept, 1);
    ck_assert_uint_eq(r.best.at[BR_CPU_KNOB_ahead], 8192);
    ck_assert(m.now <= m.stop_at + 1000 * (int64_t)MS);
}

TEST(search_names_a_value_that_changes_bits)
{
    for (br_cpu_knob k = 0; k < BR_CPU_KNOBS; k++) {
        machine m = {.noise = .05, .wrong = k};
        br_tune_result r;
        br_status st = {0};

        ck_assert_int_eq(search(&m, 10, &r, &st), BR_E_REJECTED);
        ck_assert_msg(strncmp(st.msg, br_cpu_knob_name(k),
                              strlen(br_cpu_knob_name(k))) == 0,
                      "%s", st.msg);
        ck_assert_ptr_nonnull(strstr(st.msg, " changes the logits"));
    }
}

/* Threads that the user asked for are not searched, nor what this instruction
 * set does not read. */
static br_tune_row seen[400];
static size_t n_seen;

static void
see(void *ctx, const br_tune_row *row)
{
    (void)ctx;
    ck_assert_uint_lt(n_seen, BR_COUNT(seen));
    seen[n_seen++] = *row;
}

static bool
saw(br_cpu_knob k)
{
    for (size_t i = 0; i < n_seen; i++)
        if (seen[i].knob == k)
            return true;
    return false;
}

TEST(search_leaves_out_what_is_not_there)
{
    machine m = {.wrong = BR_CPU_KNOBS};
    const br_tune_meter meter = {
        .ctx = &m, .kinds = 5, .look = look, .now_ns = now};
    const br_tune_config c = {.isa = BR_ISA_AVX2,
                              .n_threads = 8,
                              .keep_threads = true,
                              .budget_ns = INT64_MAX / 4,
                              .told = see};
    br_tune_result r;
    br_status st = {0};

    t_ok(br_tune_search(&r, &meter, &c, &st), &st);
    ck_assert(!saw(BR_CPU_KNOB_threads));
    ck_assert(!saw(BR_CPU_KNOB_ahead)); /* of AVX-512 */
    ck_assert(!saw(BR_CPU_KNOB_spans)); /* of deep steps, that it has not */
    ck_assert(saw(BR_CPU_KNOB_looks));
    for (size_t i = 0; i < n_seen; i++) {
        ck_assert(seen[i].kind == 0 || seen[i].kind == 2);
        ck_assert_uint_le(seen[i].pairs, 12);
        ck_assert_int_eq(seen[i].verdict, BR_TUNE_EQUAL);
    }
}

/* ---- the command --------------------------------------------------------- */

static const br_json *
run_json(br_arena *a, t_proc *r)
{
    br_status st = {0};
    br_json *doc;

    ck_assert_msg(r->exit == 0, "%s", r->err);
    t_ok(br_json_parse(&doc, a, r->out, r->n_out, 0, &st), &st);
    return doc;
}

static uint32_t
lines_of(const char *text)
{
    uint32_t n = 0;

    for (; *text; text++)
        n += *text == '\n';
    return n;
}

/* Three seconds are enough for dozens of looks where a processor is at rest,
 * and for two where it is not and the build is TSan's. */
TEST_WITHIN(tune_looks_at_a_model_and_writes_down_what_it_saw, 240)
{
    static const char *const minutes[] = {"0.05", "0.3", "1"};
    const char *dir = t_tmpdir(), *tsv;
    const br_json *doc = NULL, *looks = NULL;
    br_arena a;
    t_proc r;

    setenv("XDG_CACHE_HOME", dir, 1);
    br_arena_init(&a, 0);
    for (size_t i = 0; i < BR_COUNT(minutes) && (!looks || looks->n <= 3);
         i++) {
        tsv = t_printf("%s/looks%zu.tsv", dir, i);
        t_run(&r, "tune", "shape:toy:Q8_0", "--minutes", minutes[i], "-t", "2",
              "--tsv", tsv, "--json");
        doc = run_json(&a, &r);
        looks = br_json_get(doc, "looks");
    }
    ck_assert_str_eq(br_json_get(doc, "tier")->s, "cpu");
    ck_assert_int_eq(br_json_get(doc, "threads")->i, 2);
    ck_assert_uint_gt(looks->n, 3);
    ck_assert_int_gt(br_json_get(doc, "tried")->i, 0);
    ck_assert_uint_eq(lines_of(t_read(tsv, NULL)), looks->n + 1);
    ck_assert_int_eq(strncmp(t_read(tsv, NULL), "time\tprocessor\tisa\t", 19),
                     0);
    for (const br_json *l = looks->child; l; l = l->next)
        ck_assert(!br_json_is(br_json_get(l, "knob"), "threads"));
    br_arena_fini(&a);
    /* appended, without another head */
    t_run(&r, "tune", t_repo("models/demo.gguf"), "--minutes", "0.02", "--tsv",
          tsv);
    ck_assert_msg(r.exit == 0, "%s", r.err);
    ck_assert_ptr_nonnull(strstr(r.out, "every step had the bits"));
    ck_assert_ptr_null(strstr(t_read(tsv, NULL) + 1, "time\tprocessor"));
}

/* Ctrl-C: what was looked at is told, and there in the TSV. It comes once a look
 * is there: before, while the model is opened, it ends the process. The search of
 * the model takes minutes, one of the toy six seconds where no sanitizer slows it
 * down. */
TEST_WITHIN(tune_ends_when_it_is_interrupted, 120)
{
    const char *dir = t_tmpdir(), *tsv = t_printf("%s/looks.tsv", dir);
    const char *argv[] = {
        "sh",
        "-c",
        "\"$0\" tune \"$1\" --minutes 10 --tsv \"$2\" & p=$!\n"
        "while kill -0 $p && [ $(cat \"$2\" 2>&- | wc -l) -lt 2 ]\n"
        "do sleep .05; done\n"
        "kill -INT $p; wait $p",
        t_brass(),
        t_sanitized() ? "shape:toy:Q8_0" : "shape:smollm2-135m:Q8_0",
        tsv,
        NULL};
    t_proc r;

    setenv("XDG_CACHE_HOME", dir, 1);
    t_exec(&r, argv, NULL, 0);
    ck_assert_msg(r.exit == 0, "%d: %s", r.exit, r.err);
    ck_assert_ptr_nonnull(strstr(r.out, " left when it was stopped; "));
    ck_assert_uint_gt(lines_of(t_read(tsv, NULL)), 1);
}

TEST_WITHIN(tune_says_what_it_cannot, 60)
{
    static const char *const tiers[] = {"cuda", "ref", "amd"};
    t_proc r;

    for (size_t i = 0; i < BR_COUNT(tiers); i++) {
        t_run(&r, "tune", "shape:toy:Q8_0", "--tier", tiers[i]);
        ck_assert_int_eq(r.exit, 5);
        ck_assert_str_eq(r.out, "");
        ck_assert_msg(strncmp(r.err, "brass tune: tier ", 17) == 0, "%s",
                      r.err);
        ck_assert_ptr_nonnull(strstr(r.err, "cannot be tuned"));
    }
    t_run(&r, "tune", "shape:toy:Q8_0", "--minutes", "0");
    ck_assert_int_eq(r.exit, 2);
    t_run(&r, "tune");
    ck_assert_int_eq(r.exit, 2);
    t_run(&r, "tune", "no-such-model.gguf");
    ck_assert_int_eq(r.exit, 3);
    t_run(&r, "tune", "shape:toy:Q8_0", "--minutes", "0.01", "--tsv",
          "/nowhere/x.tsv");
    ck_assert_int_eq(r.exit, 1);
    ck_assert_str_eq(r.err, "brass tune: /nowhere/x.tsv: cannot open: No such "
                            "file or directory\n");
    t_run(&r, "tune", t_repo("models/demo.gguf"), "--minutes", "0.01", "--tsv",
          "/dev/full");
    ck_assert_int_eq(r.exit, 1);
    ck_assert_str_eq(r.err, "brass tune: /dev/full: not all looks could be "
                            "written\n");
}

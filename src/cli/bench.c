/* bench.c - brass bench: how fast a model runs here, and how near to what the
 * machine could do.
 *
 *   check    logits of a few tokens against the reference tier: no number
 *            without it
 *   fill     every sequence gets `depth` tokens
 *   warm up  a prompt's first step, a token
 *   probe    read bandwidth over the model's own weights, multiply rate
 *   measure  pp: a prompt of each sequence; tg: a token of each, again and again
 *   probe    again: a machine may change its mind within seconds; of tg on the
 *            processor after each repetition, too
 *
 * On the processor a tg at a depth goes in turn with one at the least depth asked
 * for, in slots of its own, for what depth costs: each repetition with its
 * neighbour, between reads of memory that were alike.
 *
 * The floor of a step is the larger of two times: its bytes (weights, keys and
 * values) at the probed bandwidth, and its products at the probed rate.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/bench.h"
#include "base/json.h"
#include "base/thread.h"
#include "cli/catalogue.h"
#include "cli/progress.h"
#include "cli/tiers.h"
#include "drv/cpu/cpu_probe.h"
#include "run/shape.h"
#include "run/tuned.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_LIST = 32,
    MAX_BATCH = 256,
    CHUNK = 512,       /* tokens of a prompt in one step */
    WIDE_CHUNK = 2048, /* on a device */
    PROBES = 8,        /* at most, until a number is believed */
};

typedef struct list {
    uint32_t at[MAX_LIST], n;
} list;

typedef struct bench {
    br_cli *cli;
    br_str file; /* a shape's */
    br_model *m;
    br_nd_where gpu;   /* or tier cpu */
    br_cpu_pool *pool; /* tier cpu */
    br_oracle o;
    uint32_t p, n, repeat, chunk;
    list batch, depth;
    double read_gb_s, gops[BR_FORM_COUNT]; /* best seen around the test */
    float *logits;
    int32_t drawn[MAX_BATCH]; /* by the latest step, where the tier draws */
    bool more;                /* another step of the same rows comes */
    void *saved;              /* states of all slots at the depth */
    uint32_t slot;            /* the first of those that are measured */
    bool tuned;               /* by what brass tune found */
} bench;

typedef struct outcome {
    const char *kind; /* "pp" "tg" */
    uint32_t tokens, batch, depth, steps;
    int64_t ns[1000]; /* of each repetition */
    /* Of tier cpu's tg, each: its bytes at what memory read just before and
     * just after it, the mean, as a share of its time. 0: not known. */
    double beside[1000];
    br_cpu_work work; /* of one repetition */
    br_nd_stats host; /* the same: what a GPU asked of the host */
    br_cun_costs cuda;
    struct outcome *than; /* of the least depth, in turn with it; or NULL */
    double ratio[1000];   /* its time to that one's, where reads were alike */
    uint32_t n_ratios;
} outcome;

/* ---- options ------------------------------------------------------------- */

static br_code
get_list(br_cli *cli, br_opt_id id, const char *flag, int64_t lo, int64_t hi,
         list *out, br_status *st)
{
    const char *at = br_opt_str(cli, id);

    for (;; at++) {
        size_t n = strcspn(at, ",");
        int64_t v;

        if (!br_json_to_i64((br_text){at, n}, &v) || v < lo || v > hi)
            return br_fail(st, BR_E_USAGE,
                           "%s: '%.*s' is not a number of %lld to %lld", flag,
                           (int)BR_MIN(n, (size_t)32), at, (long long)lo,
                           (long long)hi);
        if (out->n == MAX_LIST)
            return br_fail(st, BR_E_LIMIT, "%s: more than %d numbers", flag,
                           MAX_LIST);
        out->at[out->n++] = (uint32_t)v;
        at += n;
        if (!*at)
            return BR_OK;
    }
}

static uint32_t
most(const list *l)
{
    uint32_t m = 0;

    for (uint32_t i = 0; i < l->n; i++)
        m = BR_MAX(m, l->at[i]);
    return m;
}

static uint32_t
least(const list *l)
{
    uint32_t m = l->at[0];

    for (uint32_t i = 1; i < l->n; i++)
        m = BR_MIN(m, l->at[i]);
    return m;
}

/* Are there depths to be compared in turn? */
static bool
in_turn(const bench *b)
{
    return !b->gpu.tier && b->n > 0 && most(&b->depth) > least(&b->depth);
}

static br_code
get_options(bench *b, br_status *st)
{
    const char *tier = br_cli_tier(b->cli, BR_OPT_on_tier);

    b->gpu = br_cli_where(b->cli, tier);
    if (tier && strcmp(tier, "cpu") != 0 && !b->gpu.tier)
        return br_fail(st, BR_E_NO_DEVICE,
                       "tier %s cannot be measured in this build; amd, cpu "
                       "and cuda can",
                       tier);
    b->chunk = b->gpu.tier ? WIDE_CHUNK : CHUNK;
    b->p = (uint32_t)br_opt_int(b->cli, BR_OPT_bench_p);
    b->n = (uint32_t)br_opt_int(b->cli, BR_OPT_bench_n);
    b->repeat = (uint32_t)br_opt_int(b->cli, BR_OPT_repeat);
    if (b->p + b->n == 0)
        return br_fail(st, BR_E_USAGE, "-p 0 and -n 0: nothing to measure");
    BR_TRY(get_list(b->cli, BR_OPT_batches, "-b", 1, MAX_BATCH, &b->batch, st));
    return get_list(b->cli, BR_OPT_depths, "-d", 0, 1 << 20, &b->depth, st);
}

br_code
br_bench_open(br_cli *cli, const char *name, br_str *file, br_model **m,
              br_status *st)
{
    if (!br_shape_is(name)) {
        br_str path = {0};
        br_code code = br_cli_model(cli, name, &path, st);

        if (code == BR_OK)
            code = br_progress_model(cli, m, path.at, NULL, st);
        br_str_fini(&path);
        return code;
    }
    BR_TRY(br_shape_model(file, name, false, st));
    return br_model_open_mem(m, file->at, file->n, st);
}

/* What brass tune found, if it was here. */
static void
tune(bench *b)
{
    br_str folder = {0};
    br_cpu_tune t;

    if (br_opt_bool(b->cli, BR_OPT_tuned) && br_cli_cache(b->cli, &folder) &&
        br_tuned_here(folder.at, b->m, b->o.cpu,
                      (uint32_t)br_opt_int(b->cli, BR_OPT_threads), &t) > 0) {
        b->tuned = true;
        br_cpu_set_tune(b->o.cpu, &t);
        b->chunk = BR_MIN(b->chunk, t.at[BR_CPU_KNOB_chunk]);
    }
    br_str_fini(&folder);
}

/* Of a slot beside its pages; tier cuda has none such. */
static size_t
slot_bytes(const bench *b)
{
    return b->o.state ? br_slot_bytes(b->o.state) : 0;
}

static bool
draws(const bench *b)
{
    return b->gpu.tier && br_cun_draws(b->o.cun);
}

/* br_cun_ahead's. */
static bool
goes_on(void *arg)
{
    return ((const bench *)arg)->more;
}

static br_code
open_all(bench *b, br_status *st)
{
    uint32_t rows = most(&b->batch), n_slots = rows * (in_turn(b) ? 2 : 1);
    bool exact = br_opt_enum(b->cli, BR_OPT_arith) == 1;
    br_progress p;
    br_oracle_config c = {
        .n_ctx = most(&b->depth) + BR_MAX(b->p, b->n) + BR_PAGE_TOKENS,
        .n_slots = n_slots,
        .max_rows = BR_MAX(b->chunk, rows),
        .max_want = BR_MAX(rows, BR_BENCH_CHECKED),
        .gpu = b->gpu,
        .gpu_memory = (uint64_t)br_opt_int(b->cli, BR_OPT_gpu_memory),
        .gpu_dense = (enum br_cun_dense)br_opt_enum(b->cli, BR_OPT_gpu_dense),
        .gpu_timeout_s = (uint32_t)br_opt_int(b->cli, BR_OPT_gpu_timeout),
        .exact = exact,
        .kv = br_cli_kv(b->cli, !exact),
        .progress = br_progress_advance,
        .ctx = &p};
    br_code code;

    BR_TRY(br_bench_open(b->cli, b->cli->args[0], &b->file, &b->m, st));
    if (!b->gpu.tier)
        BR_TRY(br_cpu_pool_new(
            &b->pool, (uint32_t)br_opt_int(b->cli, BR_OPT_threads), st));
    c.pool = b->pool;
    br_progress_begin(&p, b->cli, "packing weights", 0);
    code = br_oracle_open(&b->o, b->m, &c, st);
    br_progress_end(&p);
    BR_TRY(code);
    if (b->o.cpu)
        tune(b);
    if (draws(b))
        br_cun_ahead(b->o.cun, goes_on, b);
    b->logits = br_try_calloc((size_t)c.max_want * (size_t)b->m->hp.n_vocab,
                              sizeof *b->logits);
    b->saved = br_try_calloc(n_slots, slot_bytes(b) + 1);
    return b->logits && b->saved ? BR_OK
                                 : br_fail(st, BR_E_OOM, "out of memory");
}

/* ---- what the machine can do --------------------------------------------- */

typedef struct probe {
    bench *b;
    const uint8_t *p;
    size_t each;
} probe;

static uint32_t
probe_tiles(void *ctx, uint32_t phase)
{
    probe *k = ctx;

    (void)phase;
    return br_cpu_pool_threads(k->b->pool);
}

static void
probe_tile(void *ctx, uint32_t phase, uint32_t tile, uint32_t worker)
{
    probe *k = ctx;

    (void)phase, (void)worker;
    (void)br_probe_read(k->p + tile * k->each, k->each);
}

/* The packed weights once, by all threads: GB/s. */
static double
probe_packed(bench *b)
{
    probe k = {.b = b};
    br_cpu_job job = {
        .ctx = &k, .n_phases = 1, .begin = probe_tiles, .tile = probe_tile};
    int64_t t0;
    double gb_s;
    size_t n;

    k.p = br_cpu_weights(b->o.cpu, &n);
    k.each = n / br_cpu_pool_threads(b->pool) / 256 * 256;
    if (k.each == 0)
        return 0;
    t0 = br_now_ns();
    br_cpu_pool_run(b->pool, &job);
    gb_s = (double)(k.each * br_cpu_pool_threads(b->pool)) /
           (double)(br_now_ns() - t0);
    b->read_gb_s = BR_MAX(b->read_gb_s, gb_s);
    return gb_s;
}

/* Reads the packed weights with all threads, three times; on a device, copies
 * memory. */
static void
probe_read(bench *b)
{
    if (b->gpu.tier) {
        b->read_gb_s = BR_MAX(b->read_gb_s, br_cun_probe(b->o.cun));
        return;
    }
    for (int i = 0; i < 3; i++)
        (void)probe_packed(b);
}

static uint32_t
threads(const bench *b)
{
    return b->pool ? br_cpu_pool_threads(b->pool) : 1;
}

/* By one thread at a time: what all cores do together is no more. */
static void
probe_multiply(bench *b)
{
    uint32_t n = BR_MIN(threads(b), (uint32_t)br_cpu_count());

    for (int f = 0; f < BR_FORM_COUNT && !b->gpu.tier; f++)
        b->gops[f] = n * br_probe_mul(br_cpu_isa(b->o.cpu), (br_form)f);
}

/* Seconds that the work takes at least. */
static double
floor_s(const bench *b, const br_cpu_work *w)
{
    double bytes = (double)(w->weight_bytes + w->kv_bytes) * 1e-9;
    double read = bytes / b->read_gb_s;
    double count = 0;

    for (int f = 0; f < BR_FORM_COUNT && !b->gpu.tier; f++)
        count += 2e-9 * (double)w->products[f] / b->gops[f];
    return BR_MAX(read, count);
}

/* ---- measuring ----------------------------------------------------------- */

/* Rows of a slot; want: the last one's logits. */
static br_code
step(bench *b, uint32_t slot, uint32_t from, uint32_t n, bool want,
     br_status *st)
{
    int32_t slots[WIDE_CHUNK], positions[WIDE_CHUNK], tokens[WIDE_CHUNK],
        wants[WIDE_CHUNK] = {0};
    br_step s = {.n_rows = n,
                 .slot = slots,
                 .position = positions,
                 .token = tokens,
                 .want = wants};

    for (uint32_t i = 0; i < n; i++) {
        slots[i] = (int32_t)(b->slot + slot);
        positions[i] = (int32_t)(from + i);
        tokens[i] = br_bench_token(b->m, slot, from + i);
        wants[i] = want && i + 1 == n;
    }
    return br_oracle_step(&b->o, &s, BR_IR_PREFILL, want ? b->logits : NULL,
                          st);
}

/* A token of each of n slots, step i of so many; tier cuda draws it where the logits
 * are. The next one is of what was drawn, as in an answer; but for experts, whom tokens
 * choose: those of weights that are drawn themselves soon ask for the same few. */
static br_code
tokens(bench *b, const outcome *o, uint32_t i, uint32_t of, br_status *st)
{
    const uint32_t from = o->depth + i, n = o->batch;
    const bool own = i > 0 && draws(b) && b->m->hp.n_expert == 0;
    br_cun_pick best[MAX_BATCH] = {0};
    int32_t slots[MAX_BATCH], positions[MAX_BATCH], tokens[MAX_BATCH];
    br_step s = {
        .n_rows = n, .slot = slots, .position = positions, .token = tokens};

    for (uint32_t r = 0; r < n; r++) {
        slots[r] = (int32_t)(b->slot + r);
        positions[r] = (int32_t)from;
        best[r].position = from + 1;
        tokens[r] = own && b->drawn[r] >= 0 ? b->drawn[r]
                                            : br_bench_token(b->m, r, from);
    }
    b->more = i + 1 < of && b->m->hp.n_expert == 0;
    if (draws(b))
        return br_oracle_draw(&b->o, &s, best, n, b->drawn, st);
    return br_oracle_step(&b->o, &s, BR_IR_DECODE,
                          b->gpu.tier ? NULL : b->logits, st);
}

static br_code
prompt(bench *b, uint32_t slot, uint32_t from, uint32_t n, bool want,
       uint32_t *steps, br_status *st)
{
    for (uint32_t at = 0; at < n; at += b->chunk, ++*steps) {
        uint32_t rows = BR_MIN(b->chunk, n - at);

        BR_TRY(step(b, slot, from + at, rows, want && at + rows == n, st));
    }
    return BR_OK;
}

static br_code
fill(bench *b, uint32_t batch, uint32_t depth, br_status *st)
{
    size_t bytes = slot_bytes(b);
    uint32_t steps = 0;

    for (uint32_t s = 0; s < batch; s++) {
        br_oracle_reset(&b->o, b->slot + s);
        BR_TRY(prompt(b, s, 0, depth, false, &steps, st));
        if (bytes)
            br_slot_save(b->o.state, b->slot + s,
                         (char *)b->saved + (b->slot + s) * bytes);
    }
    return BR_OK;
}

static void
rewind_all(bench *b, uint32_t batch, uint32_t depth)
{
    size_t bytes = slot_bytes(b);

    for (uint32_t s = b->slot; s < b->slot + batch; s++) {
        br_kv_cut(b->o.kv, s, depth);
        if (bytes)
            br_slot_restore(b->o.state, s, (char *)b->saved + s * bytes);
    }
}

static br_code
once(bench *b, outcome *o, br_status *st)
{
    o->steps = 0;
    /* What it is to go on from is there. */
    br_check(br_kv_count(b->o.kv, b->slot) * BR_PAGE_TOKENS >= o->depth);
    if (o->kind[0] == 'p') {
        for (uint32_t s = 0; s < o->batch; s++)
            BR_TRY(prompt(b, s, o->depth, o->tokens, true, &o->steps, st));
        return BR_OK;
    }
    for (uint32_t i = 0; i < o->tokens; i++, o->steps++)
        BR_TRY(tokens(b, o, i, o->tokens, st));
    return BR_OK;
}

/* What rows need is touched for the first time by some that are not measured:
 * else that is 4 to 15 % of a prompt. Of tokens one is enough, as pages come by
 * sheets of 256 tokens (drv/state.h): the first of a sheet takes 10 ms longer in
 * a model of 1B, which is .04 ms of each but was 1.2 ms of eight. */
static br_code
warm_up(bench *b, const outcome *o, br_status *st)
{
    uint32_t steps = 0;

    if (o->kind[0] == 'p')
        BR_TRY(prompt(b, 0, o->depth, BR_MIN(o->tokens, b->chunk), true, &steps,
                      st));
    else
        BR_TRY(tokens(b, o, 0, 1, st));
    rewind_all(b, o->batch, o->depth);
    return BR_OK;
}

/* Those that are compared with come after the others. */
static br_code
warm_up_beside(bench *b, const outcome *o, br_status *st)
{
    br_code code;

    b->slot = o->batch;
    code = warm_up(b, o->than, st);
    b->slot = 0;
    return code;
}

static int
ascending(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

static br_cpu_work
work_of(const bench *b)
{
    br_cpu_work w = {0};

    if (!b->gpu.tier)
        return *br_cpu_work_of(b->o.cpu);
    br_cun_work(b->o.cun, &w.weight_bytes, &w.kv_bytes);
    return w;
}

static br_nd_stats
host_of(const bench *b)
{
    return b->o.cun && br_cun_dev(b->o.cun) ? br_cun_stats(b->o.cun)
                                            : (br_nd_stats){0};
}

static br_cun_costs
cuda_of(const bench *b)
{
    return b->o.cun && !br_cun_dev(b->o.cun) ? br_cun_costs_of(b->o.cun)
                                             : (br_cun_costs){0};
}

/* Repetition r, between two reads of memory: one may be of another level than
 * the next, and the best of all says nothing about either. */
static void
compare_reads(bench *b, outcome *o, uint32_t r, double *read)
{
    double was = *read;

    *read = probe_packed(b);
    if (was > 0 && *read > 0)
        o->beside[r] = (double)(o->work.weight_bytes + o->work.kv_bytes) /
                       ((was + *read) / 2) / (double)o->ns[r];
}

static int
ascending_shares(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

br_code
br_bench_believe(double s, double least_s, br_status *st)
{
    if (least_s <= 1.1 * s)
        return BR_OK;
    return br_fail(st, BR_E_REJECTED,
                   "%.3f s, but reading and multiplying alone take %.3f s "
                   "here: not believed",
                   s, least_s);
}

/* Repetition r. */
static br_code
repeat(bench *b, outcome *o, uint32_t r, br_status *st)
{
    br_cpu_work before = work_of(b);
    br_nd_stats was = host_of(b);
    br_cun_costs cuda = cuda_of(b);
    int64_t t0 = br_now_ns();

    BR_TRY(once(b, o, st));
    o->ns[r] = br_now_ns() - t0;
    o->work = work_of(b);
    o->work.weight_bytes -= before.weight_bytes;
    o->work.kv_bytes -= before.kv_bytes;
    o->host = host_of(b);
    o->cuda = cuda_of(b);
    o->cuda.steps -= cuda.steps;
    o->cuda.submit_ns -= cuda.submit_ns;
    o->cuda.stayed -= cuda.stayed;
    o->cuda.entered -= cuda.entered;
    o->cuda.ahead -= cuda.ahead;
    o->cuda.vain -= cuda.vain;
    o->cuda.device_ns -= cuda.device_ns;
    o->host.steps -= was.steps;
    o->host.launches -= was.launches;
    o->host.submits -= was.submits;
    o->host.ioctls -= was.ioctls;
    for (int f = 0; f < BR_FORM_COUNT; f++)
        o->work.products[f] -= before.products[f];
    rewind_all(b, o->batch, o->depth);
    return BR_OK;
}

/* The same at the least depth. read: after o's repetition, then what comes next;
 * before: before it. */
static br_code
repeat_beside(bench *b, outcome *o, uint32_t r, double before, double *read,
              br_status *st)
{
    double between = *read, low, high;
    br_code code;

    b->slot = o->batch;
    code = repeat(b, o->than, r, st);
    b->slot = 0;
    if (code != BR_OK)
        return code;
    compare_reads(b, o->than, r, read);
    low = BR_MIN(BR_MIN(before, between), *read);
    high = BR_MAX(BR_MAX(before, between), *read);
    if (high <= 1.1 * low)
        o->ratio[o->n_ratios++] = (double)o->ns[r] / (double)o->than->ns[r];
    return BR_OK;
}

static br_code
measure(bench *b, outcome *o, br_status *st)
{
    bool reads = !b->gpu.tier && o->kind[0] == 't';
    double fastest, read;

    BR_TRY(o->than ? warm_up_beside(b, o, st) : BR_OK);
    BR_TRY(warm_up(b, o, st));
    b->read_gb_s = 0;
    probe_read(b);
    probe_multiply(b);
    read = reads ? probe_packed(b) : 0;
    for (uint32_t r = 0; r < b->repeat; r++) {
        double before = read;

        BR_TRY(repeat(b, o, r, st));
        if (reads)
            compare_reads(b, o, r, &read);
        if (o->than)
            BR_TRY(repeat_beside(b, o, r, before, &read, st));
    }
    qsort(o->ns, b->repeat, sizeof *o->ns, ascending);
    qsort(o->beside, b->repeat, sizeof *o->beside, ascending_shares);
    qsort(o->ratio, o->n_ratios, sizeof *o->ratio, ascending_shares);
    fastest = (double)o->ns[0] * 1e-9;
    probe_read(b);
    /* Memory may have been faster in between than in either probe. */
    for (int i = 0; i < PROBES && floor_s(b, &o->work) > 1.02 * fastest; i++)
        probe_read(b);
    return br_bench_believe(fastest, floor_s(b, &o->work), st) == BR_OK
               ? BR_OK
               : br_prefix(st, "%s%u", o->kind, o->tokens);
}

/* ---- telling ------------------------------------------------------------- */

static double
rate(const outcome *o, int64_t ns)
{
    return (double)o->tokens * o->batch / ((double)ns * 1e-9);
}

/* The rate of the form that most products have. */
static double
busiest(const bench *b, const outcome *o)
{
    int most_of = 0;

    for (int f = 1; f < BR_FORM_COUNT; f++)
        if (o->work.products[f] > o->work.products[most_of])
            most_of = f;
    return b->gops[most_of];
}

static const char *
machine(const bench *b)
{
    return b->gpu.tier ? br_cun_device(b->o.cun)
                       : br_isa_name(br_cpu_isa(b->o.cpu));
}

/* How many times the bytes of the least depth it reads. */
static double
more_bytes(const outcome *o)
{
    const br_cpu_work *w = &o->work, *v = &o->than->work;

    return (double)(w->weight_bytes + w->kv_bytes) /
           (double)(v->weight_bytes + v->kv_bytes);
}

/* What depth costs, and what its bytes explain. */
static void
print_depth(br_json_writer *w, const outcome *o)
{
    br_json_w_key(w, "than");
    br_json_w_obj(w);
    br_json_w_key_u64(w, "depth", o->than->depth);
    br_json_w_key_u64(w, "pairs", o->n_ratios);
    if (o->n_ratios > 0)
        br_json_w_key_f64(w, "times", o->ratio[o->n_ratios / 2]);
    br_json_w_key_f64(w, "bytes", more_bytes(o));
    br_json_w_obj_end(w);
}

/* What the CUDA tier asks of the host, and where the device's memory went. */
static void
print_cuda(br_json_writer *w, const br_cun_costs *c)
{
    br_json_w_key_u64(w, "steps", c->steps);
    br_json_w_key_f64(w, "submit_us",
                      (double)c->submit_ns * 1e-3 / (double)c->steps);
    br_json_w_key(w, "resident");
    br_json_w_obj(w);
    br_json_w_key_u64(w, "steps", c->stayed);
    br_json_w_key_u64(w, "launches", c->entered);
    br_json_w_key_u64(w, "ahead", c->ahead);
    br_json_w_key_u64(w, "vain", c->vain);
    br_json_w_key_f64(
        w, "device_us",
        c->stayed ? (double)c->device_ns * 1e-3 / (double)c->stayed : 0);
    br_json_w_obj_end(w);
    br_json_w_key(w, "load");
    br_json_w_obj(w);
    br_json_w_key_u64(w, "bytes", c->load_bytes);
    br_json_w_key_f64(w, "gb_s",
                      (double)c->load_bytes / (double)(c->load_ns + 1));
    br_json_w_obj_end(w);
    br_json_w_key(w, "memory");
    br_json_w_obj(w);
    br_json_w_key_u64(w, "weights", c->weights);
    br_json_w_key_u64(w, "weight_allocations", c->weight_allocations);
    br_json_w_key_u64(w, "dense", c->dense);
    br_json_w_key_u64(w, "experts", c->experts);
    br_json_w_key_u64(w, "for_experts", c->left);
    br_json_w_key_u64(w, "host", c->host);
    br_json_w_key_u64(w, "host_ops", c->host_ops);
    br_json_w_key_u64(w, "pages", c->pages);
    br_json_w_key_u64(w, "states", c->states);
    br_json_w_key_u64(w, "rest", c->rest);
    br_json_w_key_u64(w, "graphs", c->graphs);
    br_json_w_key_u64(w, "row", c->row);
    br_json_w_obj_end(w);
}

static int
print_json(const bench *b, const outcome *o)
{
    int64_t mid = o->ns[b->repeat / 2];
    double s = (double)mid * 1e-9;
    double bytes = (double)(o->work.weight_bytes + o->work.kv_bytes);
    char test[32];
    br_str doc = {0};
    br_json_writer w;
    int code;

    snprintf(test, sizeof test, "%s%u", o->kind, o->tokens);
    br_json_w_begin(&w, &doc, 0);
    br_json_w_obj(&w);
    br_json_w_key_strz(&w, "test", test);
    br_json_w_key_u64(&w, "batch", o->batch);
    br_json_w_key_u64(&w, "depth", o->depth);
    br_json_w_key_strz(&w, "tier", b->gpu.tier ? b->gpu.tier : "cpu");
    br_json_w_key_u64(&w, "threads", threads(b));
    br_json_w_key_f64(&w, "tok_s", rate(o, mid));
    br_json_w_key_f64(&w, "min", rate(o, o->ns[b->repeat - 1]));
    br_json_w_key_f64(&w, "max", rate(o, o->ns[0]));
    br_json_w_key_f64(&w, "ms_step", s * 1e3 / o->steps);
    br_json_w_key_f64(&w, "gb_s", bytes * 1e-9 / s);
    br_json_w_key_f64(&w, "pct_floor", 100 * floor_s(b, &o->work) / s);
    br_json_w_key_f64(&w, "read_gb_s", b->read_gb_s);
    if (o->beside[b->repeat / 2] > 0)
        br_json_w_key_f64(&w, "pct_reads_beside",
                          100 * o->beside[b->repeat / 2]);
    if (o->than)
        print_depth(&w, o);
    br_json_w_key_f64(&w, "mul_gops", busiest(b, o));
    br_json_w_key_strz(&w, "isa", machine(b));
    if (b->tuned)
        br_bench_values(&w, "tuned", br_cpu_tune_of(b->o.cpu), threads(b));
    br_json_w_key(&w, "correct");
    br_json_w_bool(&w, true);
    br_json_w_key(&w, "execution");
    br_json_w_obj(&w);
    br_json_w_key_strz(&w, "mode", "packets");
    br_json_w_key_u64(&w, "ops_on_tier", b->o.graph[BR_IR_PREFILL]->n_nodes);
    br_json_w_key_u64(&w, "ops_elsewhere", 0);
    if (o->host.steps) {
        br_json_w_key_u64(&w, "steps", o->host.steps);
        br_json_w_key_u64(&w, "launches", o->host.launches);
        br_json_w_key_u64(&w, "submits", o->host.submits);
        br_json_w_key_u64(&w, "ioctls", o->host.ioctls);
    }
    if (o->cuda.steps)
        print_cuda(&w, &o->cuda);
    br_json_w_key(&w, "clamped");
    br_json_w_bool(&w, false);
    br_json_w_obj_end(&w);
    br_json_w_obj_end(&w);
    code = br_cli_json_out(b->cli, &doc);
    br_str_fini(&doc);
    return code;
}

static void
print_row(const bench *b, const outcome *o)
{
    int64_t mid = o->ns[b->repeat / 2];
    double s = (double)mid * 1e-9;
    double bytes = (double)(o->work.weight_bytes + o->work.kv_bytes);

    fprintf(b->cli->out,
            "%s%-5u %5u %6u  %8.1f %8.1f %8.1f  %8.2f  %6.1f %5.0f %%  "
            "%6.1f %6.0f\n",
            o->kind, o->tokens, o->batch, o->depth, rate(o, mid),
            rate(o, o->ns[b->repeat - 1]), rate(o, o->ns[0]),
            s * 1e3 / o->steps, bytes * 1e-9 / s,
            100 * floor_s(b, &o->work) / s, b->read_gb_s, busiest(b, o));
    if (o->than && o->n_ratios > 0)
        fprintf(
            b->cli->out,
            "        in turn with depth %u: %.2f times the time, %.2f times "
            "the bytes (%u of %u pairs)\n",
            o->than->depth, o->ratio[o->n_ratios / 2], more_bytes(o),
            o->n_ratios, b->repeat);
    fflush(b->cli->out);
}

static int
run_test(bench *b, const char *kind, uint32_t tokens, uint32_t batch,
         uint32_t depth, br_status *st)
{
    outcome o = {
        .kind = kind, .tokens = tokens, .batch = batch, .depth = depth};
    outcome than = o;

    if (tokens == 0)
        return 0;
    if (kind[0] == 't' && in_turn(b) && depth > least(&b->depth)) {
        than.depth = least(&b->depth);
        o.than = &than;
    }
    if (measure(b, &o, st) != BR_OK)
        return 1;
    if (br_opt_bool(b->cli, BR_OPT_json))
        return print_json(b, &o);
    print_row(b, &o);
    return 0;
}

/* And the slots that are compared with. */
static br_code
fill_all(bench *b, uint32_t batch, uint32_t depth, br_status *st)
{
    br_code code = BR_OK;

    if (in_turn(b)) {
        b->slot = batch;
        code = fill(b, batch, least(&b->depth), st);
        b->slot = 0;
    }
    return code == BR_OK ? fill(b, batch, depth, st) : code;
}

static int
run_all(bench *b, br_status *st)
{
    int code = 0;

    if (b->tuned && !br_opt_bool(b->cli, BR_OPT_json))
        br_bench_say_values(b->cli->out, "tuned", br_cpu_tune_of(b->o.cpu),
                            threads(b));
    if (!br_opt_bool(b->cli, BR_OPT_json))
        fprintf(b->cli->out,
                "%s, %s tier, %u threads, %s, %.0f MB of weights; logits "
                "agree with the ref tier\n"
                "test    batch  depth     tok/s      min      max   ms/step"
                "    GB/s   floor    read   GOPS\n",
                b->cli->args[0], b->gpu.tier ? b->gpu.tier : "cpu", threads(b),
                machine(b),
                1e-6 * (double)(b->gpu.tier ? br_cun_weight_bytes(b->o.cun)
                                            : br_cpu_weight_bytes(b->o.cpu)));
    for (uint32_t i = 0; i < b->batch.n && code == 0; i++)
        for (uint32_t k = 0; k < b->depth.n && code == 0; k++) {
            uint32_t batch = b->batch.at[i], depth = b->depth.at[k];

            if (fill_all(b, batch, depth, st) != BR_OK)
                return 1;
            code = run_test(b, "pp", b->p, batch, depth, st);
            if (code == 0)
                code = run_test(b, "tg", b->n, batch, depth, st);
        }
    return code;
}

int
br_cmd_bench(br_cli *cli)
{
    bench b = {.cli = cli};
    br_status st = {0};
    int code;

    if (get_options(&b, &st) == BR_OK && open_all(&b, &st) == BR_OK &&
        br_bench_check(&b.o, b.m, b.logits, &st) == BR_OK)
        code = run_all(&b, &st);
    else
        code = 1;
    br_free(b.logits);
    br_free(b.saved);
    br_oracle_close(&b.o);
    br_cpu_pool_free(b.pool);
    br_model_close(b.m);
    br_str_fini(&b.file);
    if (st.code != BR_OK)
        code = br_cli_fail(cli, &st);
    return st.code == BR_E_REJECTED ? 1 : code; /* a number, not a program */
}

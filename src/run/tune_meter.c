/* tune_meter.c - see tune_meter.h.
 *
 *   slot 0   deep          pages made up
 *   slot 1   prompt        emptied before each look
 *   slot 2   answer, and the first of the batch; the others follow
 *
 * A look begins where the one before began: what it has added is cut off, a
 * state that is no pages is brought back. So every look has the same steps, and
 * its logits the same bits. One step goes before those that are timed, as threads
 * that were not in use have to wake, and tables to come back to a cache.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/tune_meter.h"

#include "base/hash.h"
#include "base/rng.h"
#include "base/thread.h"

#include <string.h>

enum {
    BATCH = 8,
    DEEP = 4096,
    NEAR = 16, /* tokens of a past that is not deep */
    PROMPT = 512,
    PROMPT_LEAST = 64,
    MOST_STEPS = 32, /* of a look, and one before them */
    DEEP_SLOT = 0,
    PROMPT_SLOT,
    ANSWER_SLOT,
    SLOTS = ANSWER_SLOT + BATCH,
};

/* What a look shall take at least, and a prompt's at most. */
static const double look_s = .02, prompt_s = .25;

struct br_tune_model {
    const br_model *m;
    br_oracle o;
    br_tune_model_config c;
    int kinds;
    uint32_t steps[BR_TUNE_KINDS], prompt;
    float *logits;
    char *saved; /* [SLOTS] states */
};

typedef struct past {
    uint32_t slot, n; /* sequences, from that slot on */
    uint32_t tokens;
} past;

static past
past_of(int kind)
{
    switch (1 << kind) {
    case BR_CPU_AT_DEEP: return (past){DEEP_SLOT, 1, DEEP};
    case BR_CPU_AT_FEW: return (past){ANSWER_SLOT, BATCH, NEAR};
    case BR_CPU_AT_MANY: return (past){PROMPT_SLOT, 1, 0};
    default: return (past){ANSWER_SLOT, 1, NEAR};
    }
}

static int32_t
token_at(const br_tune_model *t, uint32_t slot, uint32_t position)
{
    br_rng r;

    br_rng_init(&r, slot, position);
    return (int32_t)br_rng_below(&r, (uint32_t)t->m->hp.n_vocab);
}

/* n rows: one of each slot from `slot` on, or one after another of that slot, of
 * which the last wants logits, if any does. */
typedef struct rows {
    uint32_t slot, from, n;
    bool each, want;
} rows;

static br_code
step(br_tune_model *t, rows k, br_status *st)
{
    int32_t slots[PROMPT], positions[PROMPT], tokens[PROMPT], want[PROMPT];
    br_step s = {.n_rows = k.n,
                 .slot = slots,
                 .position = positions,
                 .token = tokens,
                 .want = want};

    for (uint32_t i = 0; i < k.n; i++) {
        uint32_t slot = k.each ? k.slot + i : k.slot;
        uint32_t p = k.each ? k.from : k.from + i;

        slots[i] = (int32_t)slot;
        positions[i] = (int32_t)p;
        tokens[i] = token_at(t, slot, p);
        want[i] = k.want && (k.each || i + 1 == k.n);
    }
    return br_oracle_step(&t->o, &s, k.each ? BR_IR_DECODE : BR_IR_PREFILL,
                          k.want ? t->logits : NULL, st);
}

/* n tokens from the slot's beginning on, so many in a step. */
static br_code
prompt(br_tune_model *t, rows k, uint32_t chunk, br_status *st)
{
    bool want = k.want;

    for (uint32_t end = k.from + k.n; k.from < end; k.from += k.n) {
        k.n = BR_MIN(chunk, end - k.from);
        k.want = want && k.from + k.n == end;
        BR_TRY(step(t, k, st));
    }
    return BR_OK;
}

static char *
saved_of(const br_tune_model *t, uint32_t slot)
{
    return t->saved + slot * br_slot_bytes(t->o.state);
}

/* ---- what is there before ------------------------------------------------ */

/* Numbers of F16 between 1/8 and 1/4, either sign. */
static void
make_up(br_rng *r, uint16_t *h, size_t n)
{
    for (size_t i = 0; i < n; i++)
        h[i] = (uint16_t)((br_rng_below(r, 1 << 16) & 0x83ff) | 0x3000);
}

/* Pages of the deep slot: 4096 tokens of a model of 8B would be a minute of
 * products. */
static br_code
fill_deep(br_tune_model *t, br_status *st)
{
    br_state *s = t->o.state;
    br_rng r;

    br_rng_init(&r, 1, 2);
    BR_TRY(br_kv_grow(t->o.kv, DEEP_SLOT, DEEP, st));
    for (uint32_t g = 0; g < s->plan.n_groups; g++) {
        size_t bytes = br_state_page_bytes(s, g);
        uint16_t *page = br_try_alloc(bytes);

        if (!page)
            return br_fail(st, BR_E_OOM, "out of memory");
        make_up(&r, page, bytes / 2);
        for (uint32_t i = 0; i < br_kv_count(t->o.kv, DEEP_SLOT); i++) {
            uint32_t at = br_kv_page(t->o.kv, DEEP_SLOT, g, i);

            make_up(&r, page, BR_MIN(bytes / 2, 64));
            if (at != UINT32_MAX)
                br_cpu_page(t->o.cpu, s, g, at, page, true);
        }
        br_free(page);
    }
    return BR_OK;
}

static br_code
fill(br_tune_model *t, br_status *st)
{
    for (uint32_t i = 0; i < BATCH; i++)
        BR_TRY(prompt(t, (rows){ANSWER_SLOT + i, 0, NEAR, false, false}, PROMPT,
                      st));
    if (t->kinds & BR_CPU_AT_DEEP)
        BR_TRY(fill_deep(t, st));
    for (uint32_t i = 0; i < SLOTS; i++)
        br_slot_save(t->o.state, i, saved_of(t, i));
    return BR_OK;
}

/* ---- looks --------------------------------------------------------------- */

static void
rewind_to(br_tune_model *t, past a)
{
    for (uint32_t i = a.slot; i < a.slot + a.n; i++) {
        if (a.tokens > 0)
            br_kv_cut(t->o.kv, i, a.tokens);
        else
            br_oracle_reset(&t->o, i);
        br_slot_restore(t->o.state, i, saved_of(t, i));
    }
}

/* Steps of a token of each of the sequences, after one that is not counted. */
static br_code
tokens(br_tune_model *t, past a, uint32_t n, int64_t *ns, br_status *st)
{
    int64_t begun;
    rows k = {a.slot, a.tokens, a.n, true, true};

    BR_TRY(step(t, k, st));
    begun = br_now_ns();
    while (n-- > 0) {
        k.from++;
        BR_TRY(step(t, k, st));
    }
    *ns = br_now_ns() - begun;
    return BR_OK;
}

static br_code
look(void *ctx, int kind, const br_cpu_tune *tune, double *seconds,
     uint64_t *bits, br_status *st)
{
    static const br_hash_key key = {1, 2};
    br_tune_model *t = ctx;
    past a = past_of(kind);
    int64_t ns;

    br_cpu_set_tune(t->o.cpu, tune);
    rewind_to(t, a);
    if (1 << kind == BR_CPU_AT_MANY) {
        int64_t begun = br_now_ns();

        BR_TRY(prompt(t, (rows){a.slot, 0, t->prompt, false, true},
                      tune->at[BR_CPU_KNOB_chunk], st));
        ns = br_now_ns() - begun;
    } else
        BR_TRY(tokens(t, a, t->steps[kind], &ns, st));
    *seconds = (double)ns * 1e-9;
    *bits = br_siphash13(key, t->logits,
                         a.n * (size_t)t->m->hp.n_vocab * sizeof(float));
    return BR_OK;
}

/* How many steps a look has, and how long a prompt: the machine says. */
static br_code
size_looks(br_tune_model *t, br_status *st)
{
    br_cpu_tune def = *br_cpu_tune_of(t->o.cpu);
    double s = 0;
    uint64_t bits;

    for (int k = 0; k < BR_TUNE_KINDS; k++) {
        t->steps[k] = 1;
        t->prompt = PROMPT_LEAST;
        if (!(t->kinds & 1 << k))
            continue;
        for (int twice = 0; twice < 2; twice++) /* once to touch memory */
            BR_TRY(look(t, k, &def, &s, &bits, st));
        t->steps[k] =
            (uint32_t)BR_MAX(BR_MIN(look_s / s + 1, (double)MOST_STEPS), 1.);
    }
    /* the last one was a prompt's */
    while (t->prompt < PROMPT && 2 * s < prompt_s) {
        t->prompt *= 2;
        s *= 2;
    }
    return BR_OK;
}

static int64_t
now(void *ctx)
{
    (void)ctx;
    return br_now_ns();
}

static bool
stopped(void *ctx)
{
    const br_tune_model *t = ctx;

    return br_is_told(t->c.stop);
}

/* ---- opening ------------------------------------------------------------- */

static br_code
open_all(br_tune_model *t, br_status *st)
{
    br_oracle_config c = {.n_ctx = DEEP + 2 * MOST_STEPS,
                          .n_slots = SLOTS,
                          .n_tokens = DEEP + PROMPT + 256 * SLOTS,
                          .max_rows = PROMPT,
                          .max_want = BATCH,
                          .pool = t->c.pool,
                          .kv = BR_Q_F16,
                          .cache = t->c.cache,
                          .progress = t->c.progress,
                          .ctx = t->c.ctx};

    BR_TRY(br_oracle_open(&t->o, t->m, &c, st));
    t->kinds = BR_CPU_AT_ONE | BR_CPU_AT_FEW | BR_CPU_AT_MANY;
    if (t->o.state->plan.n_groups > 0) /* there are keys and values */
        t->kinds |= BR_CPU_AT_DEEP;
    t->logits =
        br_try_calloc((size_t)BATCH * (size_t)t->m->hp.n_vocab, sizeof(float));
    t->saved = br_try_calloc(SLOTS, br_slot_bytes(t->o.state) + 1);
    if (!t->logits || !t->saved)
        return br_fail(st, BR_E_OOM, "out of memory");
    BR_TRY(fill(t, st));
    return size_looks(t, st);
}

br_code
br_tune_model_open(br_tune_model **out, const br_model *m,
                   const br_tune_model_config *c, br_status *st)
{
    br_tune_model *t = br_try_calloc(1, sizeof *t);
    br_code code;

    *out = NULL;
    if (!t)
        return br_fail(st, BR_E_OOM, "out of memory");
    t->m = m;
    t->c = *c;
    code = open_all(t, st);
    if (code != BR_OK) {
        br_tune_model_close(t);
        return code;
    }
    *out = t;
    return BR_OK;
}

void
br_tune_model_close(br_tune_model *t)
{
    if (!t)
        return;
    br_free(t->logits);
    br_free(t->saved);
    br_oracle_close(&t->o);
    br_free(t);
}

br_tune_meter
br_tune_model_meter(br_tune_model *t)
{
    return (br_tune_meter){.ctx = t,
                           .kinds = t->kinds,
                           .look = look,
                           .now_ns = now,
                           .stopped = stopped};
}

br_isa
br_tune_model_isa(const br_tune_model *t)
{
    return br_cpu_isa(t->o.cpu);
}

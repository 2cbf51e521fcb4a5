/* bench_check.c - is what brass bench measures right? No number without it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/rng.h"
#include "cli/bench.h"
#include "run/tier_diff.h"

#include <string.h>

typedef struct under_check {
    br_oracle *o;
    const br_model *m;
    float *logits;
} under_check;

int32_t
br_bench_token(const br_model *m, uint32_t slot, uint32_t position)
{
    br_rng r;

    br_rng_init(&r, slot, position);
    return (int32_t)br_rng_below(&r, (uint32_t)m->hp.n_vocab);
}

/* The reference tier's logits of the first tokens. */
static br_code
ask_ref(const under_check *b, const int32_t *tokens, float *want, br_status *st)
{
    br_oracle_config c = {.act = BR_REF_QUANTISED,
                          .n_ctx = b->o->c.n_ctx,
                          .max_rows = BR_BENCH_CHECKED,
                          .kv = b->o->c.gpu.tier ? b->o->c.kv : BR_Q_F32};
    br_oracle ref;
    br_code code;

    BR_TRY(br_oracle_open(&ref, b->m, &c, st));
    code = br_oracle_feed(&ref, 0, 0, tokens, BR_BENCH_CHECKED, 0, want, st);
    br_oracle_close(&ref);
    return code;
}

/* This tier's, with a state that rounds no keys. */
static br_code
ask_cpu(const under_check *b, const int32_t *tokens, br_status *st)
{
    br_state *mine = b->o->state;
    uint32_t n_pages[BR_MAX_KV_GROUPS];
    br_code code;

    for (uint32_t g = 0; g < BR_MAX_KV_GROUPS; g++)
        n_pages[g] = 1 + br_kv_free_pages(b->o->kv, g);
    BR_TRY(br_state_new(&b->o->state, b->o->graph[BR_IR_PREFILL], BR_Q_F32, 1,
                        n_pages, st));
    code =
        br_oracle_feed(b->o, 0, 0, tokens, BR_BENCH_CHECKED, 0, b->logits, st);
    br_oracle_reset(b->o, 0);
    br_state_free(b->o->state);
    b->o->state = mine;
    return code;
}

/* Fast on a device is what validate takes: where weights are integers, a
 * rounding of activations that falls the other way goes on through the layers
 * (1e-3 in 16 of them). Else the reference tier's bits, where no BF16 rounds
 * otherwise; so much for a state in F32. What is measured is near them, too, and a
 * prompt has the bits of single tokens. */
static br_code
compare(const under_check *b, const int32_t *tokens, float *want, br_status *st)
{
    size_t n = BR_BENCH_CHECKED * (size_t)b->m->hp.n_vocab;
    double e;

    BR_TRY(ask_ref(b, tokens, want, st));
    BR_TRY(b->o->c.gpu.tier ? br_oracle_feed(b->o, 0, 0, tokens,
                                             BR_BENCH_CHECKED, 0, b->logits, st)
                            : ask_cpu(b, tokens, st));
    e = br_nmse(b->logits, want, n);
    br_oracle_reset(b->o, 0);
    if ((b->o->c.gpu.tier ? b->o->c.exact : br_cpu_is_exact(b->o->cpu))
            ? memcmp(b->logits, want, n * sizeof *want)
            : !(e <= (b->o->c.gpu.tier ? 1e-2 : 1e-3)))
        return br_fail(st, BR_E_REJECTED,
                       "check: NMSE %g against the reference tier", e);
    BR_TRY(
        br_oracle_feed(b->o, 0, 0, tokens, BR_BENCH_CHECKED, 0, b->logits, st));
    br_oracle_reset(b->o, 0);
    e = br_nmse(b->logits, want, n);
    if (!(e <= 1e-2))
        return br_fail(st, BR_E_REJECTED,
                       "check: NMSE %g with the state that is measured", e);
    BR_TRY(br_oracle_feed(b->o, 0, 0, tokens, BR_BENCH_CHECKED, 1, want, st));
    br_oracle_reset(b->o, 0);
    if (memcmp(want, b->logits, n * sizeof *want) != 0)
        return br_fail(st, BR_E_REJECTED,
                       "check: a prompt and single tokens differ");
    return BR_OK;
}

br_code
br_bench_check(br_oracle *o, const br_model *m, float *logits, br_status *st)
{
    under_check c = {o, m, logits};
    float *want =
        br_try_calloc(BR_BENCH_CHECKED * (size_t)m->hp.n_vocab, sizeof *want);
    int32_t tokens[BR_BENCH_CHECKED];
    br_code code;

    for (uint32_t i = 0; i < BR_BENCH_CHECKED; i++)
        tokens[i] = br_bench_token(m, 0, i);
    code = want ? compare(&c, tokens, want, st)
                : br_fail(st, BR_E_OOM, "out of memory");
    br_free(want);
    return code;
}

/* lm_ref.c - see lm_ref.h.
 *
 * Rows before the last are fed in chunks that want no logits; the last one is
 * a step of its own, so that one row of logits is all that is ever kept.
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/lm_ref.h"

#include "run/oracle.h"

enum { CHUNK = 64 };

struct br_lm_ref {
    br_oracle o;
    br_lm lm;
    br_state_plan plan;
    bool rewinds;     /* the state of a slot is pages alone */
    uint32_t *n_held; /* [n_slots] */
};

static br_code
feed(void *ctx, uint32_t slot, uint32_t from, const int32_t *tokens, uint32_t n,
     float *logits, br_status *st)
{
    br_lm_ref *r = ctx;
    int32_t slots[CHUNK], positions[CHUNK], want[CHUNK] = {0};
    uint32_t rows = logits ? n - 1 : n;
    br_step step = {.n_rows = rows,
                    .slot = slots,
                    .position = positions,
                    .token = tokens,
                    .want = want};

    br_check(n > 0 && n <= CHUNK && r->n_held[slot] == from);
    for (uint32_t i = 0; i < n; i++) {
        slots[i] = (int32_t)slot;
        positions[i] = (int32_t)(from + i);
    }
    if (rows)
        BR_TRY(br_oracle_step(&r->o, &step, BR_IR_PREFILL, NULL, st));
    if (logits) {
        want[0] = 1;
        step = (br_step){.n_rows = 1,
                         .slot = slots,
                         .position = positions + rows,
                         .token = tokens + rows,
                         .want = want};
        BR_TRY(br_oracle_step(&r->o, &step, BR_IR_DECODE, logits, st));
    }
    r->n_held[slot] = from + n;
    return BR_OK;
}

static uint32_t
keep(void *ctx, uint32_t slot, uint32_t n)
{
    br_lm_ref *r = ctx;

    if (n >= r->n_held[slot])
        return r->n_held[slot];
    if (n > 0 && r->rewinds)
        br_kv_cut(r->o.kv, slot, n);
    else
        br_oracle_reset(&r->o, slot);
    r->n_held[slot] = r->rewinds ? n : 0;
    return r->n_held[slot];
}

static br_code
step(void *ctx, const br_step *s, float *logits, br_status *st)
{
    br_lm_ref *r = ctx;
    bool all = true;

    for (uint32_t t = 0; s->want && t < s->n_rows; t++)
        all = all && s->want[t];
    return br_ref_step(r->o.ref[all ? BR_IR_DECODE : BR_IR_PREFILL], r->o.state,
                       s, logits, st);
}

static void
reset(void *ctx, uint32_t slot)
{
    br_lm_ref *r = ctx;

    br_ref_slot_reset(r->o.state, slot);
}

static void
save(void *ctx, uint32_t slot, float *out)
{
    br_lm_ref *r = ctx;

    br_ref_slot_save(r->o.state, slot, out);
}

static void
restore(void *ctx, uint32_t slot, const float *from)
{
    br_lm_ref *r = ctx;

    br_ref_slot_restore(r->o.state, slot, from);
}

static br_code
find_plan(br_lm_ref *r, br_status *st)
{
    BR_TRY(br_state_plan_of(&r->plan, r->o.graph[BR_IR_DECODE], st));
    r->rewinds = r->plan.slot_elems == 0;
    return BR_OK;
}

static void
fill_in(br_lm_ref *r, const br_model *m, const br_oracle_config *c)
{
    r->lm = (br_lm){.ctx = r,
                    .n_vocab = (int32_t)m->hp.n_vocab,
                    .n_ctx = c->n_ctx,
                    .n_slots = c->n_slots,
                    .chunk = CHUNK,
                    .tier = "ref",
                    .feed = feed,
                    .keep = keep,
                    .plan = &r->plan,
                    .step = step,
                    .reset = reset,
                    .save = save,
                    .restore = restore};
    for (uint32_t g = 0; g < r->plan.n_groups; g++)
        r->lm.n_pages[g] = br_kv_free_pages(r->o.kv, g);
}

br_code
br_lm_ref_open(br_lm_ref **out, const br_model *m, uint32_t n_ctx,
               uint32_t n_slots, br_status *st)
{
    br_lm_ref *r = br_try_calloc(1, sizeof *r);
    br_oracle_config c = {.act = BR_REF_QUANTISED,
                          .n_ctx = n_ctx,
                          .n_slots = n_slots,
                          .max_rows = CHUNK};
    br_code code;

    *out = NULL;
    if (r)
        r->n_held = br_try_calloc(n_slots, sizeof *r->n_held);
    if (!r || !r->n_held) {
        br_lm_ref_close(r);
        return br_fail(st, BR_E_OOM, "model: out of memory");
    }
    if (n_ctx == 0)
        c.n_ctx = m->hp.n_ctx > 0 && m->hp.n_ctx < BR_LM_REF_CTX
                      ? (uint32_t)m->hp.n_ctx
                      : BR_LM_REF_CTX;
    code = br_oracle_open(&r->o, m, &c, st);
    if (code == BR_OK)
        code = find_plan(r, st);
    if (code != BR_OK) {
        br_lm_ref_close(r);
        return code;
    }
    fill_in(r, m, &c);
    *out = r;
    return BR_OK;
}

void
br_lm_ref_close(br_lm_ref *r)
{
    if (!r)
        return;
    br_oracle_close(&r->o);
    br_state_plan_fini(&r->plan);
    br_free(r->n_held);
    br_free(r);
}

const br_lm *
br_lm_ref_lm(const br_lm_ref *r)
{
    return &r->lm;
}

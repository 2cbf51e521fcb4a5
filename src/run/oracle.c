/* oracle.c - a model in the reference tier, ready to be asked.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/oracle.h"
#include "mega/lower.h"

#include <string.h>

/* The stage's graph as a program, if that is wanted, proven. */
static br_code
lower(br_oracle *o, int s, br_ref_config *rc, br_ir **graph, br_status *st)
{
    br_step_config c = {.workers = o->c.workers,
                        .rows = s == BR_IR_DECODE ? 1 : o->c.max_rows,
                        .tile = o->c.tile};

    *graph = o->graph[s];
    if (o->c.workers == 0)
        return BR_OK;
    BR_TRY(br_mega_lower_graph(&o->program[s], o->graph[s], &c, st));
    BR_TRY(br_mega_accept(o->program[s], st));
    rc->program = o->program[s];
    *graph = o->program[s]->graph;
    return BR_OK;
}

static br_code
open_ref(br_oracle *o, const uint32_t *n_pages, br_status *st)
{
    br_ref_config rc = {
        .act = o->c.act, .max_rows = o->c.max_rows, .order = o->c.order};

    for (int s = 0; s < BR_IR_STAGE_COUNT; s++) {
        br_ir *g;

        BR_TRY(br_ir_of_model(&o->graph[s], o->model, (br_ir_stage)s,
                              o->c.n_ctx, st));
        if (o->c.fused) {
            BR_TRY(br_ir_fuse(&g, o->graph[s], st));
            br_ir_free(o->graph[s]);
            o->graph[s] = g;
        }
        BR_TRY(lower(o, s, &rc, &g, st));
        BR_TRY(br_ref_prepare(&o->ref[s], o->model, g, &rc, st));
    }
    return br_state_new(&o->state, o->graph[BR_IR_PREFILL],
                        o->c.kv | BR_KV_WIDE, o->c.n_slots, n_pages, st);
}

/* One graph for all steps. */
static br_code
open_cpu(br_oracle *o, const uint32_t *n_pages, br_status *st)
{
    br_cpu_config cc = {.pool = o->c.pool,
                        .exact = o->c.exact,
                        .isa = -1,
                        .max_rows = o->c.max_rows,
                        .max_want = o->c.max_want,
                        .cache = o->c.cache,
                        .progress = o->c.progress,
                        .stop = o->c.stop,
                        .ctx = o->c.ctx};

    BR_TRY(br_ir_of_model(&o->graph[BR_IR_PREFILL], o->model, BR_IR_PREFILL,
                          o->c.n_ctx, st));
    BR_TRY(br_cpu_prepare(&o->cpu, o->model, o->graph[BR_IR_PREFILL], &cc, st));
    return br_state_new(&o->state, o->graph[BR_IR_PREFILL], o->c.kv,
                        o->c.n_slots, n_pages, st);
}

static br_code
open_gpu(br_oracle *o, const uint32_t *n_pages, br_status *st)
{
    br_cun_config c = {.exact = o->c.exact,
                       .n_slots = o->c.n_slots,
                       .n_ctx = o->c.n_ctx,
                       .max_rows = o->c.max_rows,
                       .max_want = o->c.max_want,
                       .memory = o->c.gpu_memory,
                       .dense = o->c.gpu_dense,
                       .timeout_s = o->c.gpu_timeout_s,
                       .progress = o->c.progress,
                       .stop = o->c.stop,
                       .ctx = o->c.ctx};

    if (o->c.kv != (o->c.exact ? BR_Q_F32 : BR_Q_F16))
        return br_fail(st, BR_E_UNSUPPORTED,
                       "tier %s keeps keys and values as F16, with exact "
                       "arithmetic as F32",
                       o->c.gpu.tier);
    memcpy(c.n_pages, n_pages, sizeof c.n_pages);
    BR_TRY(br_ir_of_model(&o->graph[BR_IR_PREFILL], o->model, BR_IR_PREFILL,
                          o->c.n_ctx, st));
    if (strcmp(o->c.gpu.tier, "cuda") != 0)
        BR_TRY(br_nd_amd_open(&c.dev, &o->c.gpu, st));
    return br_cun_open(&o->cun, o->model, o->graph[BR_IR_PREFILL], &c, st);
}

static br_code
open_all(br_oracle *o, br_status *st)
{
    br_kv_config kc = {.n_slots = o->c.n_slots, .max_tokens = o->c.n_ctx};
    br_state_plan plan;
    br_code code;

    for (int g = 0; g < BR_MAX_KV_GROUPS; g++)
        kc.n_pages[g] = o->c.n_tokens
                            ? o->c.n_tokens / BR_PAGE_TOKENS + 2 * o->c.n_slots
                            : (o->c.n_ctx / BR_PAGE_TOKENS + 2) * o->c.n_slots;
    if (o->c.gpu.tier)
        BR_TRY(open_gpu(o, kc.n_pages, st));
    else if (o->c.pool)
        BR_TRY(open_cpu(o, kc.n_pages, st));
    else
        BR_TRY(open_ref(o, kc.n_pages, st));
    BR_TRY(br_state_plan_of(&plan, o->graph[BR_IR_PREFILL], st));
    code = br_kv_new(&o->kv, &plan, &kc, st);
    br_state_plan_fini(&plan);
    return code;
}

br_code
br_oracle_open(br_oracle *o, const br_model *m, const br_oracle_config *c,
               br_status *st)
{
    br_code code;

    *o = (br_oracle){.model = m, .c = *c};
    if (o->c.n_ctx == 0)
        o->c.n_ctx = 256;
    if (o->c.n_slots == 0)
        o->c.n_slots = 1;
    if (o->c.max_rows == 0)
        o->c.max_rows = 64;
    if (o->c.max_want == 0)
        o->c.max_want = o->c.max_rows;
    code = open_all(o, st);
    if (code != BR_OK)
        br_oracle_close(o);
    return code;
}

void
br_oracle_close(br_oracle *o)
{
    br_cpu_free(o->cpu);
    br_cun_close(o->cun);
    for (int s = 0; s < BR_IR_STAGE_COUNT; s++) {
        br_ref_free(o->ref[s]);
        br_mega_free(o->program[s]);
        br_ir_free(o->graph[s]);
    }
    br_state_free(o->state);
    br_kv_free(o->kv);
    *o = (br_oracle){0};
}

void
br_oracle_reset(br_oracle *o, uint32_t slot)
{
    br_kv_cut(o->kv, slot, 0);
    if (o->cun)
        br_cun_slot_reset(o->cun, slot);
    if (o->state)
        br_slot_reset(o->state, slot);
}

br_code
br_oracle_run(br_oracle *o, const br_step *step, br_ir_stage stage,
              float *logits, br_status *st)
{
    if (o->cun)
        return br_cun_step(o->cun, step, logits, st);
    return o->cpu ? br_cpu_step(o->cpu, o->state, step, logits, st)
                  : br_ref_step(o->ref[stage], o->state, step, logits, st);
}

const float *
br_oracle_hidden(const br_oracle *o, br_ir_stage stage, br_status *st)
{
    if (o->cun)
        return br_cun_hidden(o->cun, st);
    return o->cpu ? br_cpu_hidden(o->cpu) : br_ref_hidden(o->ref[stage]);
}

static br_code
with_pages(br_oracle *o, br_step *step, br_status *st)
{
    for (uint32_t t = 0; t < step->n_rows; t++) {
        if (step->slot[t] < 0 || (uint32_t)step->slot[t] >= o->c.n_slots)
            return br_fail(st, BR_E_FORMAT, "row %u: no slot %d", t,
                           step->slot[t]);
        BR_TRY(br_kv_grow(o->kv, (uint32_t)step->slot[t],
                          (uint32_t)step->position[t] + 1, st));
    }
    step->pages = br_kv_tables(o->kv);
    return BR_OK;
}

br_code
br_oracle_step(br_oracle *o, br_step *step, br_ir_stage stage, float *logits,
               br_status *st)
{
    BR_TRY(with_pages(o, step, st));
    return br_oracle_run(o, step, stage, logits, st);
}

br_code
br_oracle_draw(br_oracle *o, br_step *step, const br_cun_pick *p, uint32_t n,
               int32_t *out, br_status *st)
{
    BR_TRY(with_pages(o, step, st));
    return br_cun_next(o->cun, step, p, n, out, st);
}

br_code
br_oracle_feed(br_oracle *o, uint32_t slot, uint32_t from,
               const int32_t *tokens, uint32_t n, uint32_t chunk, float *logits,
               br_status *st)
{
    int32_t slots[1024], positions[1024];
    uint32_t most = BR_MIN(o->c.max_rows, 1024u);

    chunk = chunk == 0 || chunk > most ? most : chunk;
    for (uint32_t at = 0; at < n; at += chunk) {
        uint32_t rows = BR_MIN(chunk, n - at);
        br_step step = {.n_rows = rows,
                        .slot = slots,
                        .position = positions,
                        .token = tokens + at};

        for (uint32_t i = 0; i < rows; i++) {
            slots[i] = (int32_t)slot;
            positions[i] = (int32_t)(from + at + i);
        }
        BR_TRY(br_oracle_step(
            o, &step, rows == 1 ? BR_IR_DECODE : BR_IR_PREFILL,
            logits ? logits + (size_t)at * (size_t)o->model->hp.n_vocab : NULL,
            st));
    }
    return BR_OK;
}

void
br_oracle_watch(br_oracle *o, const br_watch *w)
{
    if (o->cun)
        br_cun_watch(o->cun, w);
    else if (o->cpu)
        br_cpu_watch(o->cpu, w);
    else
        br_ref_watch(o->ref[BR_IR_PREFILL], w);
}

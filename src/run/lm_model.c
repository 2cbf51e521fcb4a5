/* lm_model.c - see lm_model.h.
 *
 * Prompts are fed in chunks; of the last one, the last row wants logits, so that
 * one row of them is all that is ever kept.
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/lm_model.h"

#include "base/log.h"
#include "base/thread.h"
#include "drv/state_touch.h"
#include "model/quant.h"
#include "run/lm_cuda.h"
#include "run/oracle.h"
#include "run/sample.h"
#include "run/tuned.h"

#include <string.h>

_Static_assert((int)BR_LM_NO_NUMBER == (int)BR_CUN_NO_NUMBER &&
                   (int)BR_LM_NO_TOKEN == (int)BR_CUN_NONE,
               "one word for each");

enum {
    REF_CHUNK = 64,
    CPU_CHUNK = 512,   /* weights are read once for so many rows */
    CUDA_CHUNK = 2048, /* and so many fill a device's multiprocessors */
};

struct br_lm_model {
    br_oracle o;
    br_cpu_pool *pool; /* NULL: the reference tier */
    br_lm_cuda *cuda;  /* then nothing else but lm is in use */
    br_lm lm;
    br_state_plan plan;
    bool rewinds; /* the state of a slot is pages alone */
    const _Atomic bool *until;
    br_ir_stage stage;  /* of the latest step */
    uint32_t *n_held;   /* [n_slots] */
    br_cun_pick *picks; /* [max_want]; tier cuda */
    br_touch *touch;    /* of the pages; NULL: of few, or on a device */
    int32_t *never;
};

static void
until(void *ctx, const _Atomic bool *flag)
{
    ((br_lm_model *)ctx)->until = flag;
}

static uint32_t
keep(void *ctx, uint32_t slot, uint32_t n)
{
    br_lm_model *r = ctx;

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
feed(void *ctx, uint32_t slot, uint32_t from, const int32_t *tokens, uint32_t n,
     float *logits, br_status *st)
{
    br_lm_model *r = ctx;
    int32_t slots[CUDA_CHUNK], positions[CUDA_CHUNK], want[CUDA_CHUNK] = {0};
    br_step step = {.n_rows = n,
                    .slot = slots,
                    .position = positions,
                    .token = tokens,
                    .want = want,
                    .cancel = r->until};
    br_code code;

    br_check(n > 0 && n <= r->lm.chunk && r->n_held[slot] == from);
    for (uint32_t i = 0; i < n; i++) {
        slots[i] = (int32_t)slot;
        positions[i] = (int32_t)(from + i);
    }
    want[n - 1] = logits != NULL;
    code = br_oracle_step(&r->o, &step, n > 1 ? BR_IR_PREFILL : BR_IR_DECODE,
                          logits, st);
    if (code == BR_OK || code == BR_E_CANCELLED)
        r->n_held[slot] = from + n;
    if (code == BR_E_CANCELLED) /* some of it was written */
        (void)keep(r, slot, from);
    return code;
}

static br_ir_stage
stage_of(const br_step *s)
{
    bool all = true;

    for (uint32_t t = 0; s->want && t < s->n_rows; t++)
        all = all && s->want[t] && (!t || s->slot[t] != s->slot[t - 1]);
    return all ? BR_IR_DECODE : BR_IR_PREFILL;
}

static br_code
step(void *ctx, const br_step *s, float *logits, br_status *st)
{
    br_lm_model *r = ctx;

    r->stage = stage_of(s);
    return br_oracle_run(&r->o, s, r->stage, logits, st);
}

static br_code
draw(void *ctx, const br_step *s, const br_sample_params *const *p,
     const uint32_t *position, uint32_t n, int32_t *out, br_status *st)
{
    br_lm_model *r = ctx;

    r->stage = stage_of(s);
    for (uint32_t i = 0; i < n; i++)
        r->picks[i] = (br_cun_pick){.seed = p[i]->seed,
                                    .temperature = p[i]->temperature,
                                    .top_k = p[i]->top_k,
                                    .top_p = p[i]->top_p,
                                    .min_p = p[i]->min_p,
                                    .position = position[i]};
    return br_cun_next(r->o.cun, s, r->picks, n, out, st);
}

static void
meanwhile(void *ctx, void (*fn)(void *arg), void *arg)
{
    br_cun_meanwhile(((br_lm_model *)ctx)->o.cun, fn, arg);
}

static void
ahead(void *ctx, bool (*fn)(void *arg), void *arg)
{
    br_cun_ahead(((br_lm_model *)ctx)->o.cun, fn, arg);
}

static const float *
hidden(void *ctx, br_status *st)
{
    const br_lm_model *r = ctx;

    return br_oracle_hidden(&r->o, r->stage, st);
}

static void
reset(void *ctx, uint32_t slot)
{
    br_lm_model *r = ctx;

    if (r->o.cun)
        br_cun_slot_reset(r->o.cun, slot);
    if (r->o.state)
        br_slot_reset(r->o.state, slot);
}

static void
save(void *ctx, uint32_t slot, float *out)
{
    br_lm_model *r = ctx;

    if (r->o.cun)
        br_cun_slot_save(r->o.cun, slot, out);
    if (r->o.state)
        br_slot_save(r->o.state, slot, out);
}

static void
restore(void *ctx, uint32_t slot, const float *from)
{
    br_lm_model *r = ctx;

    if (r->o.cun)
        br_cun_slot_restore(r->o.cun, slot, from);
    if (r->o.state)
        br_slot_restore(r->o.state, slot, from);
}

static void
page(void *ctx, uint32_t group, uint32_t i, void *bytes, bool in)
{
    const br_lm_model *r = ctx;
    size_t n = r->lm.page_bytes[group];
    uint8_t *at = r->o.state->pool[group] + i * n;

    if (r->o.cpu)
        br_cpu_page(r->o.cpu, r->o.state, group, i, bytes, in);
    else
        memcpy(in ? at : bytes, in ? bytes : at, n);
}

static void
stats(void *ctx, br_nd_stats *out)
{
    const br_lm_model *r = ctx;

    *out = br_cun_stats(r->o.cun);
}

static void
gpu_so_far(void *ctx, br_lm_gpu *out)
{
    const br_lm_model *r = ctx;
    const br_cun_costs c = br_cun_costs_of(r->o.cun);

    *out = (br_lm_gpu){.resident = c.stayed,
                       .entered = c.entered,
                       .exited = c.exited,
                       .ahead = c.ahead,
                       .vain = c.vain,
                       .device_ns = c.device_ns,
                       .submit_ns = c.submit_ns};
}

static br_code
find_plan(br_lm_model *r, br_status *st)
{
    BR_TRY(br_state_plan_of(&r->plan, r->o.graph[BR_IR_PREFILL], st));
    r->rewinds = r->plan.slot_elems == 0;
    return BR_OK;
}

static void
fill_in(br_lm_model *r, const br_model *m, const br_oracle_config *c)
{
    const br_nd_dev *gpu = r->o.cun ? br_cun_dev(r->o.cun) : NULL;

    r->lm = (br_lm){.ctx = r,
                    .n_vocab = (int32_t)m->hp.n_vocab,
                    .n_ctx = c->n_ctx,
                    .n_slots = c->n_slots,
                    .chunk = c->max_rows,
                    .max_want = c->max_want,
                    .tier = gpu        ? gpu->tier
                            : r->o.cun ? "cuda"
                            : r->pool  ? "cpu"
                                       : "ref",
                    .feed = feed,
                    .until = until,
                    .keep = keep,
                    .plan = &r->plan,
                    .step = step,
                    .draw = r->o.cun && br_cun_draws(r->o.cun) ? draw : NULL,
                    .meanwhile =
                        r->o.cun && br_cun_draws(r->o.cun) ? meanwhile : NULL,
                    .n_embd = (uint32_t)m->hp.n_embd,
                    .reset = reset,
                    .save = save,
                    .restore = restore,
                    .stats = gpu ? stats : NULL,
                    .gpu = r->o.cun && !gpu ? gpu_so_far : NULL,
                    .page = r->o.state ? page : NULL};
    r->lm.ahead = r->lm.meanwhile && r->rewinds ? ahead : NULL;
    /* A ranker's head is not here. Who says nothing gets the mean. */
    r->lm.hidden = m->hp.pooling > BR_POOLING_LAST ? NULL : hidden;
    r->lm.pooling = m->hp.pooling ? (br_pooling)m->hp.pooling : BR_POOLING_MEAN;
    for (uint32_t g = 0; g < r->plan.n_groups; g++) {
        r->lm.n_pages[g] = br_kv_free_pages(r->o.kv, g);
        r->lm.page_bytes[g] =
            r->o.state ? br_state_page_bytes(r->o.state, g)
                       : br_kv_bytes(r->o.c.kv, r->plan.group[g].page_elems);
    }
}

uint32_t
br_lm_ctx(const br_model *m, const br_lm_config *c)
{
    if (c->n_ctx)
        return c->n_ctx;
    return m->hp.n_ctx > 0 && m->hp.n_ctx < BR_LM_CTX ? (uint32_t)m->hp.n_ctx
                                                      : BR_LM_CTX;
}

/* Of prompts whose tokens' logprobs are asked for: as many at once as have 16
 * MB of logits, which are computed as quickly as those of longer chunks. */
static uint32_t
scored_rows(const br_model *m)
{
    return (uint32_t)BR_MAX((4 << 20) / m->hp.n_vocab, 16);
}

/* A token of a prompt costs the decode megakernel what a token of an answer does,
 * the way of many rows a fiftieth; one of an answer costs that .3 (1B) to 2 ms
 * (8B) more, .4 to 2 times what the megakernel takes. So it is for prompts that are not
 * longer than their answers may be, and for short ones (0034). */
static bool
mostly_reads(uint32_t prompt, uint32_t answer)
{
    enum { SHORT = 64, ANSWER = 512 };

    return prompt > BR_MAX(answer ? answer : ANSWER, SHORT);
}

bool
br_lm_model_outgrown(const br_lm_model *r, uint32_t prompt, uint32_t answer)
{
    return r->cuda && mostly_reads(prompt, answer);
}

/* One sequence goes through the decode megakernel where that takes the model;
 * whoever names slots wants steps of many rows. */
static br_code
open_mega(br_lm_model *r, const br_model *m, const br_lm_config *c, bool *done,
          br_status *st)
{
    const bool may = !c->exact && !c->kv && !c->n_slots;
    const bool reads = may && mostly_reads(c->prompt, c->answer);
    br_status why = {0};
    br_code code;

    *done = may && !reads;
    if (reads)
        br_log(BR_EV_cuda_many_rows, "%u tokens are read", c->prompt);
    if (!*done)
        return BR_OK;
    code = br_lm_cuda_open(&r->cuda, &r->lm, m, c, &why);
    if (code == BR_E_UNSUPPORTED || code == BR_E_LIMIT) {
        br_log(BR_EV_cuda_many_rows, "%s", why.msg);
        *done = false;
        return BR_OK;
    }
    return code == BR_OK ? BR_OK : br_fail(st, code, "%s", why.msg);
}

static int
kv_of(const br_lm_config *c, bool ref)
{
    int t = c->kv ? br_qtype_find(br_text_z(c->kv))
                  : (ref || c->exact ? BR_Q_F32 : BR_Q_F16);

    br_assert(t == BR_Q_F32 || t == BR_Q_F16 || t == BR_Q_Q8_0);
    return t;
}

/* For who serves many: no step waits for memory. At most a quarter of what is
 * free, for pages that may never be used. */
static br_code
touch_pages(br_lm_model *r, br_status *st)
{
    uint64_t total, left;

    if (!r->o.state)
        return BR_OK;
    br_os_memory(&total, &left);
    return br_touch_begin(&r->touch, r->o.state, left / 4, st);
}

/* What brass tune found, if it was here. */
static void
tune(br_lm_model *r, const br_model *m, const br_lm_config *c)
{
    br_cpu_tune t;
    int n = br_tuned_here(c->cache, m, r->o.cpu, c->threads, &t);

    if (n <= 0)
        return;
    br_cpu_set_tune(r->o.cpu, &t);
    r->lm.chunk = BR_MIN(r->lm.chunk, t.at[BR_CPU_KNOB_chunk]);
    /* a row for each slot whatever is fastest */
    r->lm.chunk = BR_MAX(r->lm.chunk, r->lm.n_slots);
    br_log(BR_EV_tuned_used, "%d of them, in %s", n, c->cache);
}

/* No more than a context has, but a row for each slot. */
static br_code
set_rows(br_oracle_config *oc, const char *tier, uint32_t most, br_status *st)
{
    oc->max_rows = BR_MAX(BR_MIN(most, oc->n_ctx), oc->n_slots);
    if (oc->n_slots <= most)
        return BR_OK;
    return br_fail(st, BR_E_LIMIT,
                   "tier %s makes at most %u answers at once; --slots says %u",
                   tier, most, oc->n_slots);
}

static br_code
open_tier(br_lm_model *r, const br_model *m, const br_lm_config *c,
          br_status *st)
{
    bool cpu = !c->tier || strcmp(c->tier, "cpu") == 0, mega = false;
    bool cuda = c->tier && strcmp(c->tier, "cuda") == 0;
    bool gpu = c->tier && br_nd_tier(br_text_z(c->tier));
    br_oracle_config oc = {
        .act = BR_REF_QUANTISED,
        .n_ctx = br_lm_ctx(m, c),
        .n_slots = BR_MAX(c->n_slots, 1u),
        .exact = c->exact,
        .gpu_memory = c->gpu_memory,
        .gpu_dense = (enum br_cun_dense)c->gpu_dense,
        .gpu_timeout_s = c->gpu_timeout_s,
        .kv = kv_of(c, !cpu && !gpu),
        .cache = {c->cache, BR_LM_CACHE_FROM, c->cache_bytes},
        .progress = c->progress,
        .stop = c->stop,
        .ctx = c->ctx};

    if (gpu)
        oc.gpu = (br_nd_where){c->tier, c->sim, c->sim_opts, c->mode};
    if (cuda)
        BR_TRY(open_mega(r, m, c, &mega, st));
    if (mega)
        return BR_OK;
    if (!cpu && !gpu && strcmp(c->tier, "ref") != 0)
        return br_fail(
            st, BR_E_NO_DEVICE,
            "tier %s runs no models in this build; here are: amd cpu cuda ref",
            c->tier);
    BR_TRY(set_rows(&oc, cpu ? "cpu" : c->tier,
                    cuda         ? CUDA_CHUNK
                    : cpu || gpu ? CPU_CHUNK
                                 : REF_CHUNK,
                    st));
    oc.max_want = BR_MIN(oc.n_slots + scored_rows(m), oc.max_rows);
    r->n_held = br_try_calloc(oc.n_slots, sizeof *r->n_held);
    r->picks = br_try_calloc(oc.max_want, sizeof *r->picks);
    if (!r->n_held || !r->picks)
        return br_fail(st, BR_E_OOM, "model: out of memory");
    if (cpu)
        BR_TRY(br_cpu_pool_new(&r->pool, c->threads, st));
    oc.pool = r->pool;
    BR_TRY(br_oracle_open(&r->o, m, &oc, st));
    BR_TRY(find_plan(r, st));
    fill_in(r, m, &r->o.c);
    if (cpu && c->cache && !c->untuned)
        tune(r, m, c);
    return c->n_slots ? touch_pages(r, st) : BR_OK;
}

/* Gemma 4 would end images and sounds that nobody began. */
static br_code
read_never(br_lm_model *r, const br_model *m, br_status *st)
{
    static const char key[] = "tokenizer.ggml.suppress_tokens";
    const br_gguf_kv *kv = br_gguf_find(m->gguf, key);
    int64_t id;

    if (!kv || kv->n == 0)
        return BR_OK;
    if (kv->type != BR_GGUF_ARR || kv->n > (uint64_t)m->hp.n_vocab)
        return br_fail(st, BR_E_FORMAT, "%s: no list of tokens", key);
    r->never = br_try_calloc(kv->n, sizeof *r->never);
    if (!r->never)
        return br_fail(st, BR_E_OOM, "model: out of memory");
    for (uint64_t i = 0; i < kv->n; i++) {
        if (!br_gguf_i64(kv, i, &id) || id < 0 || id >= (int64_t)m->hp.n_vocab)
            return br_fail(st, BR_E_FORMAT, "%s[%llu]: there is no such token",
                           key, (unsigned long long)i);
        r->never[i] = (int32_t)id;
    }
    r->lm.never = r->never;
    r->lm.n_never = kv->n;
    r->lm.pick = NULL;
    r->lm.draw = NULL;
    return BR_OK;
}

br_code
br_lm_model_open(br_lm_model **out, const br_model *m, const br_lm_config *c,
                 br_status *st)
{
    br_lm_model *r = br_try_calloc(1, sizeof *r);
    br_code code;

    *out = NULL;
    if (!r)
        return br_fail(st, BR_E_OOM, "model: out of memory");
    code = open_tier(r, m, c, st);
    if (code == BR_OK)
        code = read_never(r, m, st);
    if (code != BR_OK) {
        br_lm_model_close(r);
        return code;
    }
    *out = r;
    return BR_OK;
}

void
br_lm_model_close(br_lm_model *r)
{
    if (!r)
        return;
    br_touch_end(r->touch);
    br_lm_cuda_close(r->cuda);
    br_oracle_close(&r->o);
    br_cpu_pool_free(r->pool);
    br_state_plan_fini(&r->plan);
    br_free(r->n_held);
    br_free(r->picks);
    br_free(r->never);
    br_free(r);
}

const br_lm *
br_lm_model_lm(const br_lm_model *r)
{
    return &r->lm;
}

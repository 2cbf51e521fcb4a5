/* lm_cuda.c - see lm_cuda.h.
 *
 * A token of a prompt is a launch (0.65 ms each for a model of 1B in BF16): the
 * megakernel has one row so far. Rewinding is free: a position's keys are
 * written anew before they are read. So while the most likely token is taken
 * again and again, the kernel stays and runs a few steps ahead of who asks:
 * what nobody wanted is left behind. A token whose logits nobody asks for is a step
 * that is launched with the draw, if one comes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/lm_cuda.h"

#include "drv/cuda/cuda_load.h"
#include "run/sample.h"

enum {
    CHUNK = 64, /* tokens between two looks at Ctrl-C */
    ROOM = 64   /* more than a launch that stays runs ahead */
};

struct br_lm_cuda {
    br_cuda cu;
    br_cu_decode d;
    int32_t n_vocab;
    uint32_t n_ctx, n_held;
    int32_t drawn; /* the device's next step begins with it; -1: no token */
    int32_t fed;   /* the token before */
    bool greedy;   /* how it was drawn */
    bool owed;     /* the step of the token fed last is not launched yet */
};

/* Whichever thread it is today. */
static br_code
use(br_lm_cuda *r, br_status *st)
{
    return br_cuda_hung(&r->cu) ? br_cuda_overdue(&r->cu, 0, st)
                                : BR_CU(&r->cu, st, cuCtxSetCurrent(r->cu.ctx));
}

/* Whoever asks for anything but a draw needs that step by itself. */
static br_code
settle(br_lm_cuda *r, br_status *st)
{
    if (!r->owed)
        return BR_OK;
    BR_TRY(br_cu_decode_run(&r->d, BR_CU_MEGA, 1, st));
    r->owed = false;
    return br_cu_decode_wait(&r->d, st);
}

/* Ends the launch that stays. */
static br_code
leave(br_lm_cuda *r, br_status *st)
{
    if (!r->d.resident)
        return BR_OK;
    r->drawn = -1;
    return br_cu_decode_leave(&r->d, st);
}

/* The device's own token is fed back, and nobody looks at logits: the launch
 * that stays does it, or has. */
static br_code
follow(br_lm_cuda *r, uint32_t from, br_status *st)
{
    if (!r->d.resident)
        BR_TRY(br_cu_decode_enter(&r->d, st));
    r->fed = r->drawn;
    r->n_held = from + 1;
    return BR_OK;
}

static br_code
feed(void *ctx, uint32_t slot, uint32_t from, const int32_t *tokens, uint32_t n,
     float *logits, br_status *st)
{
    br_lm_cuda *r = ctx;
    br_cu_decode *d = &r->d;

    br_check(slot == 0 && n > 0 && r->n_held == from && n <= r->n_ctx - from);
    for (uint32_t i = 0; i < n; i++)
        if (tokens[i] < 0 || tokens[i] >= r->n_vocab)
            return br_fail(st, BR_E_FORMAT, "token %d is not in 0..%d",
                           tokens[i], r->n_vocab - 1);
    BR_TRY(use(r, st));
    BR_TRY(settle(r, st));
    /* Steps ahead have to have positions, too. */
    if (n == 1 && !logits && r->greedy && tokens[0] == r->drawn &&
        from + ROOM <= r->n_ctx)
        return follow(r, from, st);
    BR_TRY(leave(r, st));
    for (uint32_t i = 0; i < n; i++) {
        if (tokens[i] != r->drawn)
            br_cu_decode_seek(d, (uint32_t)tokens[i], from + i);
        r->drawn = -1;
        if (n > 1 || logits)
            BR_TRY(br_cu_decode_run(d, BR_CU_MEGA, 1, st));
    }
    r->owed = n == 1 && !logits;
    if (!r->owed)
        BR_TRY(br_cu_decode_wait(d, st));
    r->fed = tokens[n - 1];
    r->n_held = from + n;
    if (!logits)
        return BR_OK;
    return br_cuda_get(d->cu, logits, d->logits,
                       (size_t)r->n_vocab * sizeof *logits, st);
}

static br_code
pick(void *ctx, const br_sample_params *p, uint64_t position, int32_t *out,
     br_status *st)
{
    br_lm_cuda *r = ctx;
    const br_cu_pick how = {.seed = p->seed,
                            .temperature = p->temperature,
                            .top_k = p->top_k,
                            .top_p = p->top_p,
                            .min_p = p->min_p};
    uint32_t token;

    br_check(r->n_held > 0 && position == r->n_held);
    BR_TRY(use(r, st));
    r->greedy = p->temperature <= 0;
    if (r->d.resident && !r->greedy) { /* its logits are of a later step */
        BR_TRY(leave(r, st));
        br_cu_decode_seek(&r->d, (uint32_t)r->fed, r->n_held - 1);
        BR_TRY(br_cu_decode_run(&r->d, BR_CU_MEGA, 1, st));
    }
    if (r->d.resident) {
        BR_TRY(br_cu_decode_next(&r->d, BR_CU_AHEAD, &token, st));
    } else {
        const uint32_t epoch = r->d.epoch;
        br_code code = r->owed ? br_cu_decode_run_pick(&r->d, &how, st)
                               : br_cu_decode_pick(&r->d, &how, st);

        r->owed = r->owed && r->d.epoch == epoch;
        BR_TRY(code);
        BR_TRY(br_cu_decode_picked(&r->d, &token, st));
    }
    *out = r->drawn = (int32_t)token;
    return BR_OK;
}

static uint32_t
keep(void *ctx, uint32_t slot, uint32_t n)
{
    br_lm_cuda *r = ctx;

    br_check(slot == 0);
    r->drawn = -1;
    if (n < r->n_held)
        r->owed = false;
    return r->n_held = BR_MIN(n, r->n_held);
}

static br_code
open_it(br_lm_cuda *r, const br_model *m, const br_lm_config *c, br_status *st)
{
    br_cu_shape s;

    br_check(!c->exact && c->n_slots <= 1);
    r->drawn = -1;
    r->n_vocab = (int32_t)m->hp.n_vocab;
    r->n_ctx = br_lm_ctx(m, c);
    BR_TRY(br_cu_shape_of(&s, m, st));
    BR_TRY(br_cuda_open(&r->cu, 0, st));
    r->cu.timeout_s = c->gpu_timeout_s;
    r->cu.limit = c->gpu_memory; /* nothing of it can be elsewhere */
    BR_TRY(br_cu_decode_new(&r->d, &r->cu, &s, r->n_ctx, NULL, st));
    return br_cu_load(&r->d, m, c->progress, c->ctx, st);
}

br_code
br_lm_cuda_open(br_lm_cuda **out, br_lm *lm, const br_model *m,
                const br_lm_config *c, br_status *st)
{
    br_lm_cuda *r = br_try_calloc(1, sizeof *r);
    br_code code;

    *out = NULL;
    if (!r)
        return br_fail(st, BR_E_OOM, "model: out of memory");
    code = open_it(r, m, c, st);
    if (code != BR_OK) {
        br_lm_cuda_close(r);
        return code;
    }
    *lm = (br_lm){.ctx = r,
                  .n_vocab = r->n_vocab,
                  .n_ctx = r->n_ctx,
                  .n_slots = 1,
                  .chunk = CHUNK,
                  .tier = "cuda",
                  .feed = feed,
                  .pick = pick,
                  .keep = keep};
    *out = r;
    return BR_OK;
}

void
br_lm_cuda_close(br_lm_cuda *r)
{
    if (!r)
        return;
    br_status st = {0};
    if (r->d.cu) {
        (void)!use(r, &st);
        (void)leave(r, &st); /* a device that does not answer is left so */
        br_cu_decode_free(&r->d);
    }
    br_cuda_close(&r->cu);
    br_free(r);
}

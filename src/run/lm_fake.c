/* lm_fake.c - see lm_fake.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/lm_fake.h"

#include "base/thread.h"
#include "run/sample.h"

#include <string.h>

enum { WANTED = 20 }; /* the logit of what is wanted; others have 0 */

struct br_lm_fake {
    br_lm_fake_config c;
    br_lm lm;
    br_state_plan plan;
    uint64_t *page[2]; /* [n_pages][BR_PAGE_TOKENS] */
    uint64_t *state;   /* [n_slots] */
    float *hidden;     /* [chunk][BR_LM_FAKE_EMBD] */
    float *logits;     /* [n_vocab], of a draw */
    br_sampler *sampler;
    struct { /* in a draw, before the step takes its time */
        void (*fn)(void *arg);
        void *arg;
    } meanwhile;
    struct { /* in a draw, behind that */
        bool (*fn)(void *arg);
        void *arg;
    } ahead;
};

/* splitmix64 */
uint64_t
br_lm_fake_mix(uint64_t before, int32_t token)
{
    uint64_t z = before + 0x9e3779b97f4a7c15u * ((uint64_t)token + 1);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

int32_t
br_lm_fake_wants(const br_lm_fake *f, uint64_t h)
{
    uint64_t n = (uint64_t)(f->c.n_common - f->c.first_common);

    return f->c.first_common + (int32_t)((h >> 8) % n);
}

int32_t
br_lm_fake_next(const br_lm_fake *f, const int32_t *tokens, uint32_t n)
{
    uint64_t h = 0;

    for (uint32_t i = 0; i < n; i++)
        h = br_lm_fake_mix(h, tokens[i]);
    return br_lm_fake_wants(f, h);
}

static uint64_t *
number_at(const br_lm_fake *f, const br_step *s, uint32_t t, uint32_t group,
          int32_t position)
{
    uint32_t slot = (uint32_t)s->slot[t], n = f->plan.n_groups;
    uint32_t page =
        s->pages[slot * n + group][(uint32_t)position / BR_PAGE_TOKENS];

    br_check(page < f->lm.n_pages[group] && "a page of the pool");
    return &f->page[group][(size_t)page * BR_PAGE_TOKENS +
                           (uint32_t)position % BR_PAGE_TOKENS];
}

/* A row's number: all that attention would read has to agree with it. */
static uint64_t
row(br_lm_fake *f, const br_step *s, uint32_t t)
{
    uint32_t slot = (uint32_t)s->slot[t];
    int32_t p = s->position[t];
    uint64_t before = p ? *number_at(f, s, t, 0, p - 1) : 0, h;

    for (uint32_t g = 1; p && g < f->plan.n_groups; g++) {
        int32_t far = (int32_t)BR_MIN((uint32_t)p, f->c.window - 1);

        before ^= *number_at(f, s, t, g, p - 1) ^ *number_at(f, s, t, 0, p - 1);
        before ^=
            *number_at(f, s, t, g, p - far) ^ *number_at(f, s, t, 0, p - far);
    }
    if (p && f->c.recurrent)
        before ^= f->state[slot] ^ *number_at(f, s, t, 0, p - 1);
    h = br_lm_fake_mix(before, s->token[t]);
    for (uint32_t g = 0; g < f->plan.n_groups; g++)
        *number_at(f, s, t, g, p) = h;
    f->state[slot] = h;
    return h;
}

/* Row t as the model's hidden numbers. */
static void
show(br_lm_fake *f, const br_step *s, uint32_t t)
{
    float *x = f->hidden + (size_t)t * BR_LM_FAKE_EMBD;

    x[0] = 1;
    x[1] = (float)s->token[t];
    x[2] = (float)s->position[t];
}

/* All rows; who wants logits gets what it wants next, one after the other. */
static br_code
rows(br_lm_fake *f, const br_step *s, float *logits, int32_t *wants,
     br_status *st)
{
    br_check(s->n_rows <= f->c.chunk);
    for (uint32_t t = 0; t < s->n_rows; t++) {
        int32_t id = br_lm_fake_wants(f, row(f, s, t));

        show(f, s, t);
        if (f->c.fail_token && s->token[t] == (int32_t)f->c.fail_token)
            return br_fail(st, BR_E_INTERNAL, "token %d: as told", s->token[t]);
        if (s->want && !s->want[t])
            continue;
        if (wants)
            *wants++ = id;
        if (!logits)
            continue;
        memset(logits, 0, (size_t)f->c.n_vocab * sizeof *logits);
        logits[id] = WANTED;
        logits += f->c.n_vocab;
    }
    return BR_OK;
}

static int64_t
end_of(const br_lm_fake *f, const br_step *s)
{
    return br_now_ns() + f->c.step_ns + f->c.row_ns * (int64_t)s->n_rows;
}

static void
take_until(const br_lm_fake *f, int64_t end)
{
    if (f->c.step_ns + f->c.row_ns > 0 && br_now_ns() < end)
        br_sleep_ns(end - br_now_ns());
}

static br_code
step(void *ctx, const br_step *s, float *logits, br_status *st)
{
    br_lm_fake *f = ctx;
    int64_t end = end_of(f, s);

    BR_TRY(rows(f, s, logits, NULL, st));
    take_until(f, end);
    return BR_OK;
}

static void
meanwhile(void *ctx, void (*fn)(void *arg), void *arg)
{
    br_lm_fake *f = ctx;

    f->meanwhile.fn = fn;
    f->meanwhile.arg = arg;
}

static void
ahead(void *ctx, bool (*fn)(void *arg), void *arg)
{
    br_lm_fake *f = ctx;

    f->ahead.fn = fn;
    f->ahead.arg = arg;
}

/* As the sampler draws from what step says. */
static br_code
draw(void *ctx, const br_step *s, const br_sample_params *const *p,
     const uint32_t *position, uint32_t n, int32_t *out, br_status *st)
{
    br_lm_fake *f = ctx;
    int64_t end = end_of(f, s);

    BR_TRY(rows(f, s, NULL, out, st));
    if (f->meanwhile.fn)
        f->meanwhile.fn(f->meanwhile.arg);
    if (f->ahead.fn)
        (void)f->ahead.fn(f->ahead.arg); /* it goes on with nothing */
    for (uint32_t i = 0; i < n; i++) {
        memset(f->logits, 0, (size_t)f->c.n_vocab * sizeof *f->logits);
        f->logits[out[i]] = WANTED;
        br_sampler_restart(f->sampler, p[i]);
        BR_TRY(
            br_sampler_pick(f->sampler, f->logits, position[i], &out[i], st));
    }
    take_until(f, end);
    return BR_OK;
}

static const float *
hidden(void *ctx, br_status *st)
{
    (void)st;
    return ((br_lm_fake *)ctx)->hidden;
}

static void
reset(void *ctx, uint32_t slot)
{
    ((br_lm_fake *)ctx)->state[slot] = 0;
}

static void
save(void *ctx, uint32_t slot, float *out)
{
    memcpy(out, &((br_lm_fake *)ctx)->state[slot], sizeof(uint64_t));
}

static void
restore(void *ctx, uint32_t slot, const float *from)
{
    memcpy(&((br_lm_fake *)ctx)->state[slot], from, sizeof(uint64_t));
}

static void
page(void *ctx, uint32_t group, uint32_t i, void *bytes, bool in)
{
    br_lm_fake *f = ctx;
    uint64_t *at = f->page[group] + (size_t)i * BR_PAGE_TOKENS;

    memcpy(in ? (void *)at : bytes, in ? bytes : (void *)at,
           f->lm.page_bytes[group]);
}

static void
defaults(br_lm_fake_config *c)
{
    c->n_vocab = c->n_vocab ? c->n_vocab : 256;
    c->n_common = c->n_common ? c->n_common : c->n_vocab;
    c->n_ctx = c->n_ctx ? c->n_ctx : 1024;
    c->n_slots = c->n_slots ? c->n_slots : 8;
    c->chunk = c->chunk ? c->chunk : 512;
    if (c->n_pages == 0)
        c->n_pages = (c->n_ctx / BR_PAGE_TOKENS + 2) * c->n_slots;
}

br_code
br_lm_fake_open(br_lm_fake **out, const br_lm_fake_config *c, br_status *st)
{
    br_lm_fake *f = br_try_calloc(1, sizeof *f);
    const br_sample_params greedy = br_sample_defaults();
    bool ok = f != NULL;

    *out = NULL;
    if (!f)
        return br_fail(st, BR_E_OOM, "fake model: out of memory");
    f->c = *c;
    defaults(&f->c);
    f->plan.n_groups = f->c.window ? 2 : 1;
    f->plan.group[1].window = f->c.window;
    f->plan.slot_elems = f->c.recurrent ? 2 : 0;
    f->state = br_try_calloc(f->c.n_slots, sizeof *f->state);
    for (uint32_t g = 0; g < f->plan.n_groups; g++) {
        f->page[g] =
            br_try_calloc(f->c.n_pages, BR_PAGE_TOKENS * sizeof(uint64_t));
        f->lm.n_pages[g] = f->c.n_pages;
        f->lm.page_bytes[g] = BR_PAGE_TOKENS * sizeof(uint64_t);
        ok = ok && f->page[g];
    }
    f->hidden = br_try_calloc(f->c.chunk, BR_LM_FAKE_EMBD * sizeof *f->hidden);
    f->logits = br_try_calloc((size_t)f->c.n_vocab, sizeof *f->logits);
    ok = ok &&
         br_sampler_new(&f->sampler, f->c.n_vocab, 1, &greedy, st) == BR_OK;
    if (!ok || !f->state || !f->hidden || !f->logits) {
        br_lm_fake_close(f);
        return br_fail(st, BR_E_OOM, "fake model: out of memory");
    }
    f->lm.ctx = f;
    f->lm.n_vocab = f->c.n_vocab;
    f->lm.n_ctx = f->c.n_ctx;
    f->lm.n_slots = f->c.n_slots;
    f->lm.chunk = f->lm.max_want = f->c.chunk;
    f->lm.tier = "fake";
    f->lm.plan = &f->plan;
    f->lm.step = step;
    f->lm.draw = f->c.logits_only ? NULL : draw;
    f->lm.meanwhile = f->c.logits_only ? NULL : meanwhile;
    f->lm.ahead = f->c.logits_only ? NULL : ahead;
    f->lm.hidden = f->c.pooling ? hidden : NULL;
    f->lm.n_embd = BR_LM_FAKE_EMBD;
    f->lm.pooling = f->c.pooling;
    f->lm.reset = reset;
    f->lm.save = save;
    f->lm.restore = restore;
    f->lm.page = page;
    *out = f;
    return BR_OK;
}

void
br_lm_fake_close(br_lm_fake *f)
{
    if (!f)
        return;
    br_free(f->page[0]);
    br_free(f->page[1]);
    br_free(f->state);
    br_free(f->hidden);
    br_free(f->logits);
    br_sampler_free(f->sampler);
    br_free(f);
}

const br_lm *
br_lm_fake_lm(const br_lm_fake *f)
{
    return &f->lm;
}

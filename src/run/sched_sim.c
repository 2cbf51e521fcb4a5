/* sched_sim.c - see sched_sim.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/sched_sim.h"

#include "base/rng.h"
#include "run/lm_fake.h"
#include "run/sched.h"

#include <string.h>

enum {
    TENANTS = 6,
    REQUESTS = 48,
    CTX = 512,
    VOCAB = 32,
    TEXTS = 4,      /* beginnings that prompts share */
    STEPS = 20000,  /* of a world */
    DRAIN = 200000, /* in which all must end once nothing arrives */
    NOTES = 64,     /* half seconds remembered */
};
#define NONE BR_SCHED_NONE

typedef struct sim_req {
    bool live, held;
    uint32_t tenant, n_prompt, n_tokens, n_max;
    uint64_t order, number; /* number: of the fake model, over all tokens */
    int32_t tokens[CTX];
} sim_req;

/* What the reference knows of a tenant. */
typedef struct sim_tenant {
    br_quota q;
    bool owed;
    uint64_t service;
} sim_tenant;

/* Tokens decoded in one half second. */
typedef struct note {
    int64_t bucket;
    uint32_t decode[TENANTS];
} note;

/* The reference's view of a moment. */
typedef struct view {
    br_sched_req_info i[REQUESTS];
    uint32_t running[TENANTS], queued[TENANTS];
    uint64_t share[TENANTS];
    bool startable[TENANTS];
} view;

typedef struct sim {
    br_rng rng;
    br_lm_fake *fake;
    const br_lm *lm;
    br_sched *s;
    sim_tenant t[TENANTS];
    sim_req r[REQUESTS];
    int32_t text[TEXTS][CTX];
    float logits[64 * VOCAB];
    float states[16][2];
    note note[NOTES];
    uint64_t order, vtime;
    int64_t now;
    br_sim_report *report;
    br_status *st;
    bool bad;
} sim;

static void
wrong(sim *m, const char *what, uint32_t a, uint32_t b)
{
    if (!m->bad)
        (void)br_fail(m->st, BR_E_INTERNAL, "seed %llu, step %llu: %s (%u, %u)",
                      (unsigned long long)m->report->seed,
                      (unsigned long long)m->report->step, what, a, b);
    m->bad = true;
}

static uint32_t
below(sim *m, uint32_t n)
{
    return br_rng_below(&m->rng, n);
}

/* ---- the reference ------------------------------------------------------- */

/* Tokens decoded within the window. */
static uint64_t
window(const sim *m, uint32_t tenant)
{
    int64_t bucket = m->now / (BR_SCHED_BUCKET_MS * INT64_C(1000000));
    uint64_t n = 0;

    for (uint32_t i = 0; i < NOTES; i++)
        if (m->note[i].bucket > bucket - BR_SCHED_BUCKETS)
            n += m->note[i].decode[tenant];
    return n;
}

/* The share: largest of the three over the weight, in 2^-20 rounded down as
 * the scheduler does, since ties are part of its order. */
static view
look(const sim *m)
{
    view v = {0};
    uint32_t pages[TENANTS] = {0};

    for (uint32_t h = 0; h < REQUESTS; h++) {
        uint32_t t = m->r[h].tenant;

        if (!m->r[h].live)
            continue;
        v.i[h] = br_sched_req(m->s, h);
        v.running[t] += v.i[h].running;
        v.queued[t] += v.i[h].queued;
        pages[t] += v.i[h].running ? v.i[h].n_charged : 0;
    }
    for (uint32_t t = 0; t < TENANTS; t++) {
        const br_quota *q = &m->t[t].q;
        uint64_t decoded = window(m, t);
        uint64_t allowed = (uint64_t)q->decode_tokens_per_s * 5;
        uint64_t a = ((uint64_t)v.running[t] << 20) / q->max_slots;
        uint64_t b = ((uint64_t)pages[t] << 20) / q->max_kv_pages;
        uint64_t most = BR_MAX(a, BR_MAX(b, (decoded << 20) / allowed));

        v.share[t] = q->qos == BR_QOS_BATCH ? most * 4 : most;
        v.startable[t] = v.running[t] < q->max_slots && decoded < allowed;
    }
    return v;
}

/* -1: a comes first. Numbers, least first. */
static int
compare(const uint64_t *a, const uint64_t *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (a[i] != b[i])
            return a[i] < b[i] ? -1 : 1;
    return 0;
}

static uint32_t
best_start(const sim *m, const view *v)
{
    uint32_t best = NONE;
    uint64_t best_key[4] = {0};

    for (uint32_t h = 0; h < REQUESTS; h++) {
        const sim_req *r = &m->r[h];
        const sim_tenant *t = &m->t[r->tenant];
        uint64_t key[4] = {!t->owed, t->q.qos, v->share[r->tenant], r->order};

        if (!r->live || !v->i[h].queued || v->i[h].blocked ||
            !v->startable[r->tenant])
            continue;
        if (best == NONE || compare(key, best_key, 4) < 0) {
            best = h;
            memcpy(best_key, key, sizeof key);
        }
    }
    return best;
}

static uint32_t
best_victim(const sim *m, const view *v, int than, uint32_t only)
{
    uint32_t best = NONE;
    uint64_t best_key[3] = {0};

    for (uint32_t h = 0; h < REQUESTS; h++) {
        const sim_req *r = &m->r[h];
        const sim_tenant *t = &m->t[r->tenant];
        uint64_t key[3] = {UINT64_MAX - t->q.qos,
                           UINT64_MAX - v->share[r->tenant],
                           UINT64_MAX - r->order};

        if (!r->live || !v->i[h].running || (int)t->q.qos <= than ||
            (only != NONE ? r->tenant != only : t->owed))
            continue;
        if (best == NONE || compare(key, best_key, 3) < 0) {
            best = h;
            memcpy(best_key, key, sizeof key);
        }
    }
    return best;
}

static void
watch(void *ctx, br_choice what, uint32_t h, int than, uint32_t tenant)
{
    sim *m = ctx;
    view v = look(m);
    uint32_t want = what == BR_CHOICE_START ? best_start(m, &v)
                                            : best_victim(m, &v, than, tenant);

    m->report->choices++;
    if (h != want)
        wrong(m,
              what == BR_CHOICE_START ? "another request should start"
                                      : "another one should lose its slot",
              h, want);
}

/* Owed: waits, may start, and is LAG behind the least service of those that
 * ran at any moment yet; until it has caught up. */
static void
find_owed(sim *m)
{
    const uint64_t lag = BR_SCHED_LAG * UINT64_C(256);
    uint64_t least = UINT64_MAX;
    view v = look(m);

    for (uint32_t t = 0; t < TENANTS; t++)
        if (v.running[t])
            least = BR_MIN(least, m->t[t].service);
    if (least != UINT64_MAX && least > m->vtime)
        m->vtime = least;
    for (uint32_t t = 0; t < TENANTS; t++) {
        sim_tenant *k = &m->t[t];

        if (v.queued[t] + v.running[t] == 0)
            continue;
        if (k->service >= m->vtime)
            k->owed = false;
        else if (v.queued[t] && v.startable[t] && k->service + lag < m->vtime)
            k->owed = true;
        if (k->service + 4 * lag < m->vtime)
            k->service = m->vtime - 4 * lag;
    }
}

/* As activate() says: idling earns nothing. */
static void
wake_tenant(sim *m, uint32_t t)
{
    sim_tenant *k = &m->t[t];
    view v = look(m);

    if (v.queued[t] + v.running[t])
        return;
    k->owed = false;
    k->service = BR_MAX(k->service, m->vtime);
    k->service = BR_MIN(k->service, m->vtime + BR_SCHED_LAG * UINT64_C(256));
}

/* ---- what happens -------------------------------------------------------- */

static br_quota
some_quota(sim *m, uint32_t tenant, uint32_t pages, uint32_t slots)
{
    br_quota q = br_quota_defaults();

    q.max_slots = 1 + below(m, slots + 2);
    q.max_kv_pages = pages / 4 + below(m, pages);
    q.reserved_kv_pages = below(m, 3) ? 0 : below(m, pages / 16 + 1);
    q.decode_tokens_per_s = below(m, 4) ? 100000 : 1 + below(m, 400);
    q.prefill_tokens_per_s = below(m, 4) ? 1000000 : 50 + below(m, 4000);
    q.qos = (br_qos)(tenant % BR_QOS_COUNT);
    q.isolation_group = below(m, 2);
    return q;
}

static void
set_tenant(sim *m, uint32_t t)
{
    br_sched_info i = br_sched_info_of(m->s);
    br_quota q = some_quota(m, t, i.n_pages, m->lm->n_slots);
    br_status st = {0};

    if (m->t[t].q.max_slots) { /* these stay, or requests become impossible */
        q.isolation_group = m->t[t].q.isolation_group;
        q.reserved_kv_pages = m->t[t].q.reserved_kv_pages;
        q.max_kv_pages = BR_MAX(q.max_kv_pages, m->t[t].q.max_kv_pages);
        q.max_slots = BR_MAX(q.max_slots, m->t[t].q.max_slots);
    }
    if (br_sched_tenant_set(m->s, t, &q, &st) == BR_OK)
        m->t[t].q = q;
    else
        wrong(m, "a reservation that fits is refused", t, q.reserved_kv_pages);
}

static void
arrive(sim *m)
{
    uint32_t h = below(m, REQUESTS), t = below(m, TENANTS), most, same;
    sim_req *r = &m->r[h];

    if (r->live)
        return;
    most = br_sched_most_tokens(m->s, t);
    if (most < 4)
        return;
    wake_tenant(m, t);
    r->tenant = t;
    r->n_prompt = 1 + below(m, below(m, 4) ? most / 4 : most - 1);
    r->n_max = r->n_prompt + 1 + below(m, most - r->n_prompt);
    r->n_tokens = r->n_prompt;
    r->held = false;
    r->live = true;
    r->order = ++m->order;
    r->number = 0;
    same = below(m, r->n_prompt + 1);
    memcpy(r->tokens, m->text[below(m, TEXTS)], same * sizeof *r->tokens);
    for (uint32_t i = same; i < r->n_prompt; i++)
        r->tokens[i] = (int32_t)below(m, VOCAB);
    for (uint32_t i = 0; i < r->n_prompt; i++)
        r->number = br_lm_fake_mix(r->number, r->tokens[i]);
    br_sched_add(m->s, h, t, r->tokens, r->n_prompt, r->n_max);
    m->report->requests++;
}

/* A request that is held loses its place in a queue, and perhaps its slot. */
static void
set_held(sim *m, uint32_t h, bool held)
{
    br_sched_req_info i = br_sched_req(m->s, h);

    if (!held && !i.queued && !i.running)
        wake_tenant(m, m->r[h].tenant);
    m->r[h].held = held;
    br_sched_hold(m->s, h, held);
}

static void
end(sim *m, uint32_t h)
{
    br_sched_remove(m->s, h);
    m->r[h].live = false;
}

static void
disturb(sim *m, uint32_t load)
{
    uint32_t h = below(m, REQUESTS);

    if (below(m, 100) < load)
        arrive(m);
    if (!m->r[h].live)
        return;
    if (below(m, 400) == 0) {
        end(m, h);
        m->report->cancelled++;
    } else if (below(m, 300) == 0) {
        set_held(m, h, !m->r[h].held);
    } else if (below(m, 2000) == 0) {
        set_tenant(m, below(m, TENANTS));
    } else if (m->r[h].held && below(m, 2)) {
        m->report->parked += br_sched_park(m->s, h);
    }
}

static void
take_note(sim *m, uint32_t h, uint32_t decode, uint32_t prefill)
{
    int64_t bucket = m->now / (BR_SCHED_BUCKET_MS * INT64_C(1000000));
    note *k = &m->note[bucket % NOTES];
    uint32_t t = m->r[h].tenant;

    if (k->bucket != bucket)
        *k = (note){.bucket = bucket};
    k->decode[t] += decode;
    m->t[t].service += ((uint64_t)decode + prefill) *
                       (m->t[t].q.qos == BR_QOS_BATCH ? 1024 : 256);
}

/* Who decodes is in the step, and nobody twice, and not what is held. */
static void
check_rows(sim *m, const br_plan *p)
{
    uint32_t decoding = 0;

    for (uint32_t h = 0; h < REQUESTS; h++) {
        br_sched_req_info i = br_sched_req(m->s, h);

        decoding +=
            m->r[h].live && i.running && !i.held && i.n_tokens == i.n_fed + 1;
    }
    if (decoding != p->n_decode)
        wrong(m, "not all who decode are in the step", decoding, p->n_decode);
    for (uint32_t i = 0; i < p->step.n_rows; i++) {
        uint32_t h = p->row_handle[i];

        if (m->r[h].held)
            wrong(m, "a held request has rows", h, i);
        if (p->step.token[i] != m->r[h].tokens[p->step.position[i]])
            wrong(m, "a row has another token", h, i);
    }
    if (p->step.n_rows > m->lm->chunk)
        wrong(m, "too many rows", p->step.n_rows, m->lm->chunk);
}

static void
take_tokens(sim *m, const br_plan *p)
{
    const float *logits = m->logits;

    for (uint32_t i = 0; i < p->step.n_rows && !m->bad; i++) {
        uint32_t h = p->row_handle[i];
        sim_req *r = &m->r[h];
        int32_t id = 0;

        if (!p->step.want[i])
            continue;
        while (id < VOCAB && logits[id] <= 0)
            id++;
        logits += VOCAB;
        if (id != br_lm_fake_wants(m->fake, r->number)) {
            wrong(m, "a token differs from the one it gets alone", h,
                  r->n_tokens);
            return;
        }
        m->report->tokens++;
        r->tokens[r->n_tokens++] = id;
        r->number = br_lm_fake_mix(r->number, id);
        br_sched_append(m->s, h);
        if (r->n_tokens == r->n_max || below(m, 100) == 0)
            end(m, h);
    }
}

static void
run_step(sim *m)
{
    const br_plan *p;
    br_status st = {0};
    int64_t ns;

    find_owed(m);
    p = br_sched_plan(m->s, m->now);
    m->report->preempted += p->n_preempted;
    for (uint32_t i = 0; i < p->n_begin; i++) {
        /* It may have lost the slot again in the same plan. */
        if (p->begin[i].state == NONE)
            m->lm->reset(m->lm->ctx, p->begin[i].slot);
        else
            m->lm->restore(m->lm->ctx, p->begin[i].slot,
                           m->states[p->begin[i].state]);
    }
    check_rows(m, p);
    ns = 1000000 + 20000 * (int64_t)p->step.n_rows + below(m, 1000000);
    if (p->step.n_rows &&
        m->lm->step(m->lm->ctx, &p->step, m->logits, &st) != BR_OK)
        wrong(m, "the step fails", p->step.n_rows, 0);
    for (uint32_t i = 0, n; i < p->step.n_rows; i += n) {
        uint32_t h = p->row_handle[i];

        for (n = 1; i + n < p->step.n_rows && p->row_handle[i + n] == h;)
            n++;
        if (n == 1 && p->step.want[i])
            take_note(m, h, 1, 0);
        else
            take_note(m, h, p->step.want[i + n - 1] != 0, n);
    }
    m->report->rows += p->step.n_rows;
    br_sched_stepped(m->s, m->now + ns, ns);
    for (uint32_t i = 0; i < p->n_save; i++)
        m->lm->save(m->lm->ctx, p->save[i].slot, m->states[p->save[i].state]);
    m->now += ns;
    take_tokens(m, p);
    br_sched_audit(m->s);
}

/* ---- a world ------------------------------------------------------------- */

static br_code
make_world(sim *m, uint64_t seed, br_status *st)
{
    br_lm_fake_config fc = {.n_vocab = VOCAB, .n_ctx = CTX};
    br_sched_config c = {.n_requests = REQUESTS, .n_ctx = CTX};

    br_rng_init(&m->rng, seed, 1);
    fc.n_slots = 1 + below(m, 12);
    fc.chunk = fc.n_slots + below(m, 50);
    fc.window = below(m, 3) ? 0 : 17 + below(m, 60);
    fc.recurrent = below(m, 3) == 0;
    fc.n_pages = 16 + below(m, 33 * fc.n_slots);
    if (fc.window)
        fc.n_pages =
            BR_MAX(fc.n_pages, fc.n_slots * ((fc.window + fc.chunk) / 16 + 2));
    BR_TRY(br_lm_fake_open(&m->fake, &fc, st));
    m->lm = br_lm_fake_lm(m->fake);
    c.n_slots = fc.n_slots;
    c.max_rows = fc.chunk;
    c.plan = m->lm->plan;
    memcpy(c.n_pages, m->lm->n_pages, sizeof c.n_pages);
    c.prefix_percent = below(m, 60);
    c.n_states = 1 + below(m, 16);
    c.watch = (br_sched_watch){watch, m};
    BR_TRY(br_sched_new(&m->s, &c, st));
    for (uint32_t t = 0; t < TEXTS; t++)
        for (uint32_t i = 0; i < CTX; i++)
            m->text[t][i] = (int32_t)below(m, VOCAB);
    for (uint32_t t = 0; t < TENANTS; t++)
        set_tenant(m, t);
    return BR_OK;
}

/* Nothing arrives any more: all must end. */
static void
drain(sim *m)
{
    uint32_t live = 1;

    for (uint32_t h = 0; h < REQUESTS; h++)
        if (m->r[h].live)
            set_held(m, h, false);
    for (uint32_t i = 0; live && !m->bad; i++, m->report->step++) {
        run_step(m);
        live = 0;
        for (uint32_t h = 0; h < REQUESTS; h++)
            live += m->r[h].live;
        if (i == DRAIN)
            wrong(m, "requests never end", live, 0);
    }
}

static br_code
world(uint64_t seed, uint64_t n_steps, br_sim_report *out, br_status *st)
{
    sim *m = br_try_calloc(1, sizeof *m);
    uint32_t load;

    if (!m)
        return br_fail(st, BR_E_OOM, "simulation: out of memory");
    m->report = out;
    m->st = st;
    out->seed = seed;
    out->step = 0;
    if (make_world(m, seed, st) != BR_OK)
        m->bad = true;
    load = 1 + below(m, 60);
    for (; out->step < n_steps && !m->bad; out->step++) {
        disturb(m, load);
        run_step(m);
    }
    if (!m->bad)
        drain(m);
    out->steps += out->step;
    out->worlds++;
    if (m->s)
        out->hit_tokens += br_sched_info_of(m->s).hit_tokens;
    br_sched_free(m->s);
    br_lm_fake_close(m->fake);
    br_free(m);
    return st->code;
}

br_code
br_sched_sim(uint64_t seed, uint64_t n_steps, br_sim_report *out,
             void (*progress)(void *ctx, const br_sim_report *r), void *ctx,
             br_status *st)
{
    *out = (br_sim_report){0};
    while (out->steps < n_steps) {
        BR_TRY(world(seed++, BR_MIN(n_steps - out->steps, STEPS), out, st));
        if (progress)
            progress(ctx, out);
    }
    return BR_OK;
}

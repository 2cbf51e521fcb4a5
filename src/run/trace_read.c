/* trace_read.c - reading traces: bytes from anywhere. See trace.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/trace.h"

#include <string.h>

typedef struct cursor {
    const uint8_t *p, *end;
    bool bad;
} cursor;

static uint32_t
get_u32(cursor *c)
{
    uint32_t v = 0;

    if (c->end - c->p < 4) {
        c->bad = true;
        return 0;
    }
    for (int i = 0; i < 4; i++)
        v |= (uint32_t)*c->p++ << (8 * i);
    return v;
}

static uint64_t
get_u64(cursor *c)
{
    uint64_t low = get_u32(c);

    return low | (uint64_t)get_u32(c) << 32;
}

static float
get_f32(cursor *c)
{
    uint32_t v = get_u32(c);
    float f;

    memcpy(&f, &v, sizeof f);
    return f;
}

/* ---- a request: in the order of trace.c ---------------------------------- */

/* n numbers in the arena; NULL and bad: too few bytes or no memory. */
static int32_t *
get_ids(cursor *c, br_arena *a, uint32_t n)
{
    int32_t *ids;

    if ((size_t)(c->end - c->p) / 4 < n ||
        !(ids = br_arena_get(a, (size_t)n * sizeof *ids + 1))) {
        c->bad = true;
        return NULL;
    }
    for (uint32_t i = 0; i < n; i++)
        ids[i] = (int32_t)get_u32(c);
    return ids;
}

static int64_t
get_ns(cursor *c)
{
    int64_t ns = (int64_t)get_u64(c);

    if (ns > BR_TRACE_MAX_NS || ns < -BR_TRACE_MAX_NS) {
        c->bad = true;
        return 0;
    }
    return ns;
}

static void
get_sample(cursor *c, br_arena *a, br_sample_params *p)
{
    br_logit_bias *bias = NULL;
    uint32_t n_bias, n_breakers;

    p->seed = get_u64(c);
    p->temperature = get_f32(c);
    p->top_k = (int32_t)get_u32(c);
    p->top_p = get_f32(c);
    p->min_p = get_f32(c);
    p->typical = get_f32(c);
    p->penalty_last_n = (int32_t)get_u32(c);
    p->repeat = get_f32(c);
    p->presence = get_f32(c);
    p->frequency = get_f32(c);
    p->dry_multiplier = get_f32(c);
    p->dry_base = get_f32(c);
    p->dry_allowed = (int32_t)get_u32(c);
    p->dry_last_n = (int32_t)get_u32(c);
    p->n_logprobs = (int32_t)get_u32(c);
    n_bias = get_u32(c);
    n_breakers = get_u32(c);
    if (n_bias > BR_SAMPLE_MAX_BIAS || n_breakers > BR_SAMPLE_MAX_BREAKERS ||
        !(bias = br_arena_new(a, br_logit_bias, n_bias + 1u))) {
        c->bad = true;
        return;
    }
    for (uint32_t i = 0; i < n_bias; i++) {
        bias[i].id = (int32_t)get_u32(c);
        bias[i].add = get_f32(c);
    }
    p->bias = bias;
    p->n_bias = n_bias;
    p->dry_breakers = get_ids(c, a, n_breakers);
    p->n_dry_breakers = n_breakers;
}

static void
get_stops(cursor *c, br_arena *a, br_request_desc *d)
{
    uint32_t n = get_u32(c);
    const char **stop =
        n <= BR_GEN_MAX_STOPS ? br_arena_new(a, const char *, n + 1u) : NULL;

    c->bad = c->bad || !stop;
    for (uint32_t i = 0; i < n && !c->bad; i++) {
        uint32_t bytes = get_u32(c);

        if (bytes > BR_GEN_MAX_STOP_BYTES || bytes > c->end - c->p)
            c->bad = true;
        else
            stop[i] = br_arena_str(a, (const char *)c->p, bytes);
        if (c->bad || !stop[i] || strlen(stop[i]) != bytes)
            c->bad = true;
        else
            c->p += bytes;
    }
    d->stop = stop;
    d->n_stop = n;
}

static void
get_desc(cursor *c, br_arena *a, br_trace_rec *rec)
{
    br_request_desc *d = &rec->desc;
    uint32_t flags;

    *d = br_request_defaults();
    rec->id = get_u64(c);
    d->tenant = get_u32(c);
    d->session = get_u64(c);
    d->max_tokens = (int64_t)get_u64(c);
    flags = get_u32(c);
    d->ignore_eog = flags & BR_TRACE_IGNORE_EOG;
    d->show_special = flags & BR_TRACE_SHOW_SPECIAL;
    rec->apart = flags & (BR_TRACE_HOOKED | BR_TRACE_EMBED | BR_TRACE_GOES_ON);
    get_sample(c, a, &d->sample);
    d->sample.logprobs = flags & BR_TRACE_LOGPROBS;
    d->n_stop_tokens = get_u32(c);
    if (d->n_stop_tokens > BR_ENGINE_MAX_STOP_TOKENS)
        c->bad = true;
    else
        d->stop_tokens = get_ids(c, a, (uint32_t)d->n_stop_tokens);
    d->n_tokens = get_u32(c);
    d->tokens = get_ids(c, a, (uint32_t)d->n_tokens);
    if (!c->bad)
        get_stops(c, a, d);
}

/* ---- reading ------------------------------------------------------------- */

br_code
br_trace_read(br_trace_reader *r, const void *p, size_t n, br_status *st)
{
    cursor c = {p, (const uint8_t *)p + n, false};
    uint32_t bytes;

    if (n < 8 || memcmp(p, BR_TRACE_MAGIC, 8) != 0)
        return br_fail(st, BR_E_FORMAT, "no trace: it begins otherwise");
    c.p += 8;
    bytes = get_u32(&c);
    if (c.bad || bytes >= BR_TRACE_MAX_MODEL || bytes > c.end - c.p)
        return br_fail(st, BR_E_FORMAT, "trace: malformed head");
    memcpy(r->model, c.p, bytes);
    r->model[bytes] = 0;
    r->p = c.p + bytes;
    r->end = c.end;
    return BR_OK;
}

br_code
br_trace_next(br_trace_reader *r, br_arena *a, br_trace_rec *rec, bool *more,
              br_status *st)
{
    cursor c = {r->p, r->end, false};
    uint32_t n = get_u32(&c), kind = get_u32(&c);

    *rec = (br_trace_rec){.t_ns = get_ns(&c)};
    *more = false;
    if (c.bad && r->end - r->p < 16)
        return BR_OK; /* rec->kind is CUT */
    if (c.bad || n < 16 || n > BR_TRACE_MAX_RECORD)
        return br_fail(st, BR_E_FORMAT, "trace: malformed record");
    if (n > r->end - r->p)
        return BR_OK;
    if (kind == 0 || kind >= BR_TRACE_KINDS)
        return br_fail(st, BR_E_FORMAT, "trace: there is no record %u", kind);
    c.end = r->p + n;
    r->p = c.end;
    rec->kind = (br_trace_kind)kind;
    if (rec->kind == BR_TRACE_SUBMIT) {
        rec->t_ns = get_ns(&c);
        get_desc(&c, a, rec);
    } else {
        rec->event.id = get_u64(&c);
        rec->event.a = get_u32(&c);
        rec->event.b = get_u32(&c);
        rec->event.ns = get_ns(&c);
    }
    if (c.bad)
        return br_fail(st, BR_E_FORMAT, "trace: malformed record of kind %u",
                       kind);
    *more = rec->kind != BR_TRACE_LOST;
    return BR_OK;
}

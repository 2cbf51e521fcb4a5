/* cpu_seq.c - what looks at a slot's past: pages, attention, states.
 *
 * Attention: a tile is a head of keys and a few rows, with all heads of queries
 * that read it. States: a tile is some columns or a head, for all rows, those
 * of a slot one after the other.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/cpu/cpu_int.h"

#include <math.h>
#include <string.h>

/* ---- pages -------------------------------------------------------------- */

static uint8_t *
page_of(const br_cpu *c, const br_state_place *at, size_t t)
{
    const br_state *s = c->state;

    return br_state_page(s, c->step, at->group, c->step->slot[t],
                         c->step->position[t]) +
           at->at * br_kv_elem_bytes(s->kv);
}

/* One number of x beneath the other, 16 apart: keys as vectors of tokens. */
static void
put_across(const float *x, uint8_t *to, size_t n, int kv)
{
    float *f = (float *)(void *)to;
    uint16_t *h = (uint16_t *)(void *)to;

    if (kv == BR_Q_F16)
        for (size_t i = 0; i < n; i++)
            h[i * BR_PAGE_TOKENS] = br_f32_to_f16(x[i]);
    else
        for (size_t i = 0; i < n; i++)
            f[i * BR_PAGE_TOKENS] = x[i];
}

/* A row after the other, those of a head together: [heads][16 tokens][]. */
static void
put_along(const br_cpu *c, const float *x, uint8_t *to, size_t n, size_t token)
{
    if (c->state->kv == BR_Q_F16)
        c->ops->to_f16(x, (uint16_t *)(void *)to + token * n, n);
    else
        memcpy((float *)(void *)to + token * n, x, n * sizeof *x);
}

/* k [v] position *kv_k [*kv_v] */
void
cpu_rows_kv(br_cpu *c, const cpu_phase *p, uint32_t t0, uint32_t t1,
            cpu_worker *w)
{
    size_t size = br_kv_elem_bytes(c->state->kv);
    bool has_v = p->in[1].v != NULL;
    const ref_view *x = &p->in[has_v ? 1 : 0];
    size_t head = (size_t)x->cols / p->pieces;

    (void)w;
    for (size_t t = t0; t < t1; t++) {
        size_t token = (size_t)(c->step->position[t] % BR_PAGE_TOKENS);
        uint8_t *to = page_of(c, p->in[has_v ? 4 : 3].place, t);

        for (size_t h = 0; h < p->pieces; h++)
            put_along(c, ref_row(x, t) + h * head,
                      to + h * head * BR_PAGE_TOKENS * size, head, token);
        if (has_v)
            put_across(ref_row(&p->in[0], t),
                       page_of(c, p->in[3].place, t) + token * size,
                       (size_t)p->in[0].cols, c->state->kv);
    }
}

/* ---- attention ---------------------------------------------------------- */

/* First key that a row at `pos` sees. */
static int32_t
first_seen(const br_ir_node *n, int32_t pos)
{
    int64_t window = br_ir_i(n, BR_IA_window, 0);

    return window > 0 && pos >= window ? (int32_t)(pos - window + 1) : 0;
}

/* Cuts the rows into groups that go through keys together: rows of a slot that
 * follow each other, as many as have BR_CPU_LINES lines, but few enough for
 * every thread to get some. Returns how many. */
static uint32_t
group_rows(br_cpu *c, cpu_phase *p, uint32_t per)
{
    uint32_t most = BR_MAX(BR_CPU_LINES / per, 1u);
    uint32_t fair = (p->n_rows + 2 * c->n_threads - 1) / (2 * c->n_threads);
    uint32_t n = 0;

    most = BR_MIN(most, BR_MAX(fair, 1u));
    for (uint32_t t = 0; t < p->n_rows; t++)
        if (t == 0 || t - c->group[n - 1] >= most ||
            c->step->slot[t] != c->step->slot[t - 1])
            c->group[n++] = t;
    c->group[n] = p->n_rows;
    p->per = n;
    return n;
}

static void
check_pages(const br_state *s, const br_cpu_att *a, uint32_t group, int32_t lo,
            int32_t pos)
{
    for (int32_t b = lo / BR_PAGE_TOKENS; b <= pos / BR_PAGE_TOKENS; b++)
        br_check(a->pages[b] < s->n_pages[group] && "pages are the pool's");
}

static uint32_t
attention_tiles(br_cpu *c, cpu_phase *p)
{
    uint64_t kv = (uint64_t)br_ir_i(p->n, BR_IA_kv_heads, 1), keys = 0;
    uint64_t heads = (uint64_t)br_ir_i(p->n, BR_IA_heads, 1);
    uint64_t k = (uint64_t)br_ir_i(p->n, BR_IA_head_dim, 0);
    uint64_t v = (uint64_t)br_ir_i(p->n, BR_IA_head_v, 0);

    p->n_rows = c->step->n_rows;
    for (uint32_t t = 0; t < p->n_rows; t++) {
        int32_t pos = c->step->position[t];

        keys += (uint64_t)(pos - first_seen(p->n, pos) + 1);
        /* Rows of a prompt that follow each other read what they share once. */
        if (t + 1 == p->n_rows || c->step->slot[t + 1] != c->step->slot[t])
            c->work.kv_bytes += (uint64_t)(pos - first_seen(p->n, pos) + 1) *
                                kv * (p->in[2].v ? k + v : k) *
                                br_kv_elem_bytes(c->state->kv);
    }
    c->work.products[BR_FORM_F32] += keys * heads * (k + v);
    return (uint32_t)kv * group_rows(c, p, (uint32_t)(heads / kv));
}

/* The lines of a head of keys that are in rows t0..t1 - 1. */
static void
attention_rows(br_cpu *c, const cpu_phase *p, br_cpu_att *a, uint32_t g,
               const uint32_t *t)
{
    uint32_t per = (uint32_t)(br_ir_i(p->n, BR_IA_heads, 1) /
                              br_ir_i(p->n, BR_IA_kv_heads, 1));

    for (uint32_t i = 0, n = (t[1] - t[0]) * per; i < n; i++) {
        uint32_t row = t[0] + i / per, h = g * per + i % per;
        int32_t pos = c->step->position[row];

        a->line[a->n++] =
            (br_cpu_line){.q = ref_row(&p->in[0], row) + h * a->head_k,
                          .y = ref_row(&p->out[0], row) + h * a->head_v,
                          .sink = p->in[4].v ? p->in[4].f + h : NULL,
                          .lo = first_seen(p->n, pos),
                          .pos = pos};
        if (a->n == BR_CPU_LINES || i + 1 == n) {
            c->ops->attend(a);
            a->n = 0;
        }
    }
}

/* q kv_k [kv_v] position [sinks] */
static void
attention_tile(br_cpu *c, const cpu_phase *p, uint32_t tile, cpu_worker *w)
{
    const br_ir_node *n = p->n;
    const br_state *s = c->state;
    const br_state_place *pk = p->in[1].place, *pv = p->in[2].place;
    const uint32_t *t = c->group + tile % p->per;
    uint32_t g = tile / p->per;
    size_t size = br_kv_elem_bytes(s->kv);
    br_cpu_att a = {
        .pages = c->step->pages[(uint32_t)c->step->slot[*t] * s->plan.n_groups +
                                pk->group],
        .pool = s->pool[pk->group],
        .page_bytes = s->plan.group[pk->group].page_elems * size,
        .f16 = s->kv == BR_Q_F16,
        .has_v = pv != NULL,
        .head_k = (uint32_t)br_ir_i(n, BR_IA_head_dim, 0),
        .head_v = (uint32_t)br_ir_i(n, BR_IA_head_v, 0),
        .scale = (float)br_ir_f(n, BR_IA_scale, 1),
        .cap = (float)br_ir_f(n, BR_IA_cap, 0),
        .s = w->att};

    a.k_at = (pk->at + (size_t)g * a.head_k * BR_PAGE_TOKENS) * size;
    a.v_at = pv ? (pv->at + (size_t)g * a.head_v * BR_PAGE_TOKENS) * size : 0;
    for (uint32_t r = t[0]; r < t[1]; r++)
        check_pages(s, &a, pk->group, first_seen(n, c->step->position[r]),
                    c->step->position[r]);
    attention_rows(c, p, &a, g, t);
}

const cpu_kind cpu_attention = {attention_tiles, attention_tile};

/* ---- states ------------------------------------------------------------- */

static float *
slot_state(const br_cpu *c, const ref_view *v, size_t t)
{
    return c->state->slots +
           (uint64_t)c->step->slot[t] * c->state->plan.slot_elems +
           v->place->at;
}

static uint32_t
conv_tiles(br_cpu *c, cpu_phase *p)
{
    uint32_t n = (uint32_t)p->in[0].cols;
    uint32_t tiles = BR_MIN(n / 256 + 1, 4 * c->n_threads);

    p->n_rows = c->step->n_rows;
    p->per = ((n + tiles - 1) / tiles + 15) / 16 * 16;
    return p->n_rows ? (n + p->per - 1) / p->per : 0;
}

/* x w [b] *state -> y. The state is the last kernel - 1 rows of x. */
static void
conv_tile(br_cpu *c, const cpu_phase *p, uint32_t tile, cpu_worker *w)
{
    int64_t k = br_ir_i(p->n, BR_IA_kernel, 1), n = p->in[0].cols;
    int64_t i0 = (int64_t)tile * p->per, i1 = BR_MIN(i0 + p->per, n);
    size_t cols = (size_t)(i1 - i0);
    const float *weight = p->in[1].f;

    (void)w;
    for (size_t t = 0; t < p->n_rows; t++) {
        float *s = slot_state(c, &p->in[3], t);
        const float *x = ref_row(&p->in[0], t);
        float *y = ref_row(&p->out[0], t);

        for (int64_t i = i0; i < i1; i++) {
            float a = 0;

            for (int64_t j = 0; j < k - 1; j++)
                a = fmaf(weight[i * k + j], s[j * n + i], a);
            a = fmaf(weight[i * k + k - 1], x[i], a);
            y[i] = p->in[2].v ? a + p->in[2].f[i] : a;
        }
        if (br_ir_has(p->n, BR_IA_act))
            c->ops->act((int)br_ir_i(p->n, BR_IA_act, 0), y + i0, NULL, y + i0,
                        cols);
        for (int64_t j = 0; j < k - 2; j++)
            memcpy(s + j * n + i0, s + (j + 1) * n + i0, cols * sizeof *s);
        memcpy(s + (k - 2) * n + i0, x + i0, cols * sizeof *s);
    }
}

const cpu_kind cpu_conv = {conv_tiles, conv_tile};

static uint32_t
head_tiles(br_cpu *c, cpu_phase *p)
{
    p->n_rows = c->step->n_rows;
    return p->n_rows ? (uint32_t)br_ir_i(p->n, BR_IA_heads, 1) : 0;
}

/* qkv alpha beta a dt_b *state -> y; q and k of unit length are in temp. */
static void
delta_tile(br_cpu *c, const cpu_phase *p, uint32_t h, cpu_worker *w)
{
    const br_ir_node *nd = p->n;
    size_t hv = (size_t)br_ir_i(nd, BR_IA_heads, 1);
    size_t hk = (size_t)br_ir_i(nd, BR_IA_kv_heads, 1);
    size_t n = (size_t)br_ir_i(nd, BR_IA_head_dim, 1);
    size_t from = br_ir_i(nd, BR_IA_tile, 0) ? h % hk : h / (hv / hk);

    for (size_t t = 0; t < p->n_rows; t++) {
        float dt = ref_row(&p->in[1], t)[h] + p->in[4].f[h];
        const float *qk = p->temp + 2 * hk * n * t;

        c->ops->delta(&(br_cpu_delta){
            .s = slot_state(c, &p->in[5], t) + h * n * n,
            .q = qk + from * n,
            .k = qk + (hk + from) * n,
            .v = ref_row(&p->in[0], t) + (2 * hk + h) * n,
            .decay = br_ref_exp(br_ref_softplus(dt) * p->in[3].f[h]),
            .beta = br_ref_sigmoid(ref_row(&p->in[2], t)[h]),
            .d = w->wide,
            .y = ref_row(&p->out[0], t) + h * n,
            .n = n});
    }
}

const cpu_kind cpu_delta = {head_tiles, delta_tile};

/* xbc dt a dt_b [d] *state -> y. x: [heads][head_dim], b and c: [groups][n]. */
static void
scan_tile(br_cpu *c, const cpu_phase *p, uint32_t h, cpu_worker *w)
{
    const br_ir_node *nd = p->n;
    size_t heads = (size_t)br_ir_i(nd, BR_IA_heads, 1);
    size_t dim = (size_t)br_ir_i(nd, BR_IA_head_dim, 1);
    size_t n = (size_t)br_ir_i(nd, BR_IA_width, 1);
    size_t groups = (size_t)br_ir_i(nd, BR_IA_groups, 1);
    size_t g = h / (heads / groups);

    (void)w;
    for (size_t t = 0; t < p->n_rows; t++) {
        const float *x = ref_row(&p->in[0], t) + h * dim;
        const float *b = ref_row(&p->in[0], t) + heads * dim + g * n;
        float *s = slot_state(c, &p->in[5], t) + h * dim * n;
        float dt = br_ref_softplus(ref_row(&p->in[1], t)[h] + p->in[3].f[h]);
        float decay = br_ref_exp(dt * p->in[2].f[h]);

        for (size_t i = 0; i < dim; i++, s += n) {
            float y;

            c->ops->scan(s, b, x[i] * dt, decay, n);
            y = c->ops->dot(s, b + groups * n, n);
            if (p->in[4].v)
                y = fmaf(x[i], p->in[4].f[h], y);
            ref_row(&p->out[0], t)[h * dim + i] = y;
        }
    }
}

const cpu_kind cpu_scan = {head_tiles, scan_tile};

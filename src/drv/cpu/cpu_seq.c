/* cpu_seq.c - what looks at a slot's past: pages, attention, states.
 *
 * Attention: a tile is a head of keys and a group of rows, with all heads of
 * queries that read it; or some heads that lie beside each other. Where few
 * such tiles have much to read (one row, and a long past), a tile is a span of
 * their blocks, and a phase of its own folds what the blocks came to, in order:
 *
 *   head 0   b0 b1 b2 | b3 b4 b5 | b6 b7     tiles, by any thread
 *   kept     (max, sum, acc) of b0 .. b7      then: the fold
 *
 * Tiles that are not cut so may lend blocks to each other (cpu_lend.c).
 *
 * States: a tile is some columns or a head, for all rows, those of a slot one
 * after the other.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/cpu/cpu_int.h"

#include "model/quant.h"

#include <math.h>
#include <string.h>

/* Tiles of attention for a thread, at least, if there are blocks, are the knob
 * `spans`: four. With eight, eight heads of keys for two threads were cut in two,
 * and the fold of what their blocks came to was .2 to .4 ms of a step at depth
 * 8192. */

/* As many are left if heads go together. */
enum { TILES = 2 };

/* ---- pages -------------------------------------------------------------- */

/* Where a page keeps head h, n numbers of a token. */
static uint8_t *
piece_in(const br_state *s, const br_state_place *at, uint32_t page, size_t h,
         size_t n)
{
    n *= BR_PAGE_TOKENS;
    return s->pool[at->group] + br_kv_piece(br_state_page_bytes(s, at->group),
                                            page,
                                            br_kv_bytes(s->kv, at->at + h * n),
                                            br_kv_bytes(s->kv, n));
}

/* A head's Q8_0 blocks: bytes `by` apart, scales after those of 16 tokens. */
static void
put_q8(const float *x, uint8_t *to, size_t n, size_t token, bool across)
{
    size_t by = across ? BR_PAGE_TOKENS : 1, at = across ? token : token * n;
    uint8_t *scales = to + BR_PAGE_TOKENS * n;
    uint8_t q[2 + 32];

    for (size_t b = 0; b < n / 32; b++) {
        br_check(br_quant(BR_Q_Q8_0, x + 32 * b, q, 32, NULL));
        memcpy(scales + 2 * (across ? b * by + token : at / 32 + b), q, 2);
        for (size_t i = 0; i < 32; i++)
            to[at + (32 * b + i) * by] = q[2 + i];
    }
}

/* Converted by vectors, as many at a time as they like. */
static void
put_f16(const br_cpu *c, const float *x, uint16_t *h, size_t n, size_t by)
{
    uint16_t some[64];

    for (size_t from = 0, to; from < n; from = to) {
        to = BR_MIN(from + BR_COUNT(some), n);
        c->ops->to_f16(x + from, some, to - from);
        for (size_t i = from; i < to; i++)
            h[i * by] = some[i - from];
    }
}

/* A head's row: one number beneath the other, 16 apart (keys as vectors of
 * tokens), or as it is. */
static void
put(const br_cpu *c, const float *x, uint8_t *to, size_t n, size_t token,
    bool across)
{
    size_t by = across ? BR_PAGE_TOKENS : 1, at = across ? token : token * n;
    float *f = (float *)(void *)to + at;
    uint16_t *h = (uint16_t *)(void *)to + at;

    if (c->state->kv == BR_Q_Q8_0)
        put_q8(x, to, n, token, across);
    else if (c->state->kv == BR_Q_F16 && !across)
        c->ops->to_f16(x, h, n);
    else if (c->state->kv == BR_Q_F16)
        put_f16(c, x, h, n, by);
    else
        for (size_t i = 0; i < n; i++)
            f[i * by] = x[i];
}

/* Where row t's page keeps head h of keys (0) or values (1). */
static uint8_t *
kept_head(const br_cpu *c, const cpu_phase *p, int i, size_t t, size_t h)
{
    const br_state_place *at = p->in[3 + i].place;

    return piece_in(c->state, at,
                    br_state_page_number(c->state, c->step, at->group,
                                         c->step->slot[t],
                                         c->step->position[t]),
                    h, (size_t)p->in[i].cols / p->pieces);
}

void
cpu_keep_head(br_cpu *c, const cpu_phase *p, int i, size_t t, size_t h,
              const float *x)
{
    put(c, x, kept_head(c, p, i, t, h), (size_t)p->in[i].cols / p->pieces,
        (size_t)(c->step->position[t] % BR_PAGE_TOKENS), p->in[1].v && i == 0);
}

/* One row: 34 lines a head of 64 wide that nobody has touched since the token
 * before, and a store waits for each: attention's tile of 20 tokens spent half
 * its 8 us on them. */
void
cpu_call_heads(const br_cpu *c, const cpu_phase *p, uint32_t worker)
{
    const cpu_phase *kv = p->keep;
    size_t n = kv->pieces, to = n * (worker + 1) / c->n_threads;

    /* a worker of a step before with more threads has none */
    for (size_t h = n * worker / c->n_threads; h < BR_MIN(to, n); h++)
        for (int i = 0; i < 2; i++) {
            const uint8_t *x = kept_head(c, kv, i, 0, h);
            size_t bytes = br_kv_bytes(c->state->kv, (size_t)kv->in[i].cols /
                                                         n * BR_PAGE_TOKENS);

            for (size_t at = 0; at < bytes; at += 64)
                __builtin_prefetch(x + at, 1, 2);
        }
}

/* k [v] position *kv_k [*kv_v] */
void
cpu_rows_kv(br_cpu *c, const cpu_phase *p, uint32_t t0, uint32_t t1,
            cpu_worker *w)
{
    int n = p->in[1].v ? 2 : 1;

    (void)w;
    for (size_t t = t0; t < t1; t++)
        for (int i = 0; i < n; i++) {
            size_t head = (size_t)p->in[i].cols / p->pieces;

            for (size_t h = 0; h < p->pieces; h++)
                cpu_keep_head(c, p, i, t, h, ref_row(&p->in[i], t) + h * head);
        }
}

/* What writes to pages knows where their pieces are. */
void
br_cpu_page(const br_cpu *c, br_state *s, uint32_t group, uint32_t page,
            void *bytes, bool in)
{
    for (size_t i = 0; i < c->phases.n; i++) {
        const cpu_phase *p = &c->phases.at[i];

        if (p->rows != cpu_rows_kv)
            continue;
        for (int j = 0; j < (p->in[1].v ? 2 : 1); j++) {
            const br_state_place *at = p->in[3 + j].place;
            size_t head = (size_t)p->in[j].cols / p->pieces;

            for (size_t h = 0; at->group == group && h < p->pieces; h++) {
                size_t n = head * BR_PAGE_TOKENS;
                uint8_t *own = piece_in(s, at, page, h, head);
                uint8_t *flat =
                    (uint8_t *)bytes + br_kv_bytes(s->kv, at->at + h * n);

                memcpy(in ? own : flat, in ? flat : own, br_kv_bytes(s->kv, n));
            }
        }
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

/* Does row i of the phase come after the one before, in its slot? */
static bool
follows(const br_cpu *c, const cpu_phase *p, uint32_t i)
{
    uint32_t t = cpu_row_at(c, p, i);

    return cpu_row_at(c, p, i - 1) + 1 == t &&
           c->step->slot[t] == c->step->slot[t - 1];
}

static int32_t
position_of(const br_cpu *c, const cpu_phase *p, uint32_t i)
{
    return c->step->position[cpu_row_at(c, p, i)];
}

/* Cuts the rows into groups that go through keys together: rows of a slot that
 * follow each other, as many as have c->att_lines lines, but few enough for
 * every thread to get some. Returns how many. */
static uint32_t
group_rows(br_cpu *c, cpu_phase *p, uint32_t per)
{
    uint32_t most = BR_MAX(c->att_lines / per, 1u);
    uint32_t fair = (p->n_rows + 2 * c->n_threads - 1) / (2 * c->n_threads);
    uint32_t n = 0;

    most = BR_MIN(most, BR_MAX(fair, 1u));
    for (uint32_t i = 0; i < p->n_rows; i++)
        if (i == 0 || i - c->group[n - 1] >= most || !follows(c, p, i))
            c->group[n++] = i;
    c->group[n] = p->n_rows;
    c->split.n_groups = n;
    return n;
}

/* Blocks that group i goes through: from *first on. */
static uint32_t
blocks_of(const br_cpu *c, const cpu_phase *p, uint32_t i, int32_t *first)
{
    int32_t lo = first_seen(p->n, position_of(c, p, c->group[i]));

    *first = lo / BR_CPU_BLOCK;
    return (uint32_t)(position_of(c, p, c->group[i + 1] - 1) / BR_CPU_BLOCK -
                      *first + 1);
}

/* Does c->attend multiply in BF16? */
static bool
in_pairs(const br_cpu *c, const cpu_phase *p)
{
    return c->attend == c->ops->attend_pairs && p->in[2].v &&
           br_cpu_att_pairs(c->state->kv,
                            (uint32_t)br_ir_i(p->n, BR_IA_head_dim, 0),
                            (uint32_t)br_ir_i(p->n, BR_IA_head_v, 0));
}

/* Cuts the groups' blocks into spans, so that there are several tiles for every
 * thread. A group with one span is folded at once and keeps nothing. One row in
 * pairs reads streams that go on from head to head: its heads stay whole where all
 * threads have as many of them. Returns how many spans there are. */
static uint32_t
split_groups(br_cpu *c, const cpu_phase *p, uint32_t kv, uint32_t heads)
{
    size_t at = 0, blocks = 0;
    uint32_t n = 0, spans = 0;
    cpu_split *s = &c->split;
    int32_t first;

    for (uint32_t i = 0; i < s->n_groups; i++)
        blocks += blocks_of(c, p, i, &first);
    s->span = UINT32_MAX;
    if (c->n_threads > 1 &&
        !(p->n_rows == 1 && kv % c->n_threads == 0 && in_pairs(c, p)))
        s->span = (uint32_t)(blocks * kv /
                             (c->tune.at[BR_CPU_KNOB_spans] * c->n_threads)) +
                  1;
    s->any = false;
    for (uint32_t i = 0; i < s->n_groups; i++, n += spans) {
        size_t of = blocks_of(c, p, i, &first);
        size_t room = of * heads * (c->group[i + 1] - c->group[i]) *
                      ((size_t)br_ir_i(p->n, BR_IA_head_v, 0) + 2);

        spans = (uint32_t)((of + s->span - 1) / s->span);
        if (at + room > c->most_kept)
            spans = 1;
        s->first[i] = n;
        s->at[i] = at;
        at += spans > 1 ? room : 0;
        s->any = s->any || spans > 1;
    }
    s->first[s->n_groups] = n;
    return n;
}

static void
check_pages(const br_state *s, const br_cpu_att *a, uint32_t group, int32_t lo,
            int32_t pos)
{
    for (int32_t b = lo / BR_PAGE_TOKENS; b <= pos / BR_PAGE_TOKENS; b++)
        br_check(a->pages[b] < s->n_pages[group] && "pages are the pool's");
}

/* How many heads of keys go through the rows together, as there are tiles enough:
 * of 256 tokens what two heads have is a piece twice as long in memory. One row in
 * pairs reads two streams that go on for all of its heads, and a tile for each
 * thread is enough: they take as long as each other. */
static uint32_t
heads_together(const br_cpu *c, const cpu_phase *p, uint32_t kv, uint32_t per)
{
    uint32_t rows = 0, n = 1;
    bool one = p->per == 1 && in_pairs(c, p);

    for (uint32_t i = 0; i < c->split.n_groups; i++)
        rows = BR_MAX(rows, c->group[i + 1] - c->group[i]);
    while (kv % (2 * n) == 0 && 2 * n * rows * per <= c->att_lines &&
           br_cpu_att_fit(2 * n, rows * per)) {
        uint32_t tiles = kv / (2 * n) * p->per;

        if (tiles < TILES * c->n_threads &&
            !(one && rows == 1 && tiles % c->n_threads == 0))
            break;
        n *= 2;
    }
    return n;
}

/* Those of one row lend, each a group of heads; kept: numbers of a block. */
static uint32_t
lend(br_cpu *c, const cpu_phase *p, uint32_t tiles, size_t kept)
{
    int32_t first;

    return cpu_lend(c, tiles,
                    c->alone && p->per == 1 ? blocks_of(c, p, 0, &first) : 0,
                    kept);
}

static uint32_t
attention_tiles(br_cpu *c, cpu_phase *p)
{
    uint64_t kv = (uint64_t)br_ir_i(p->n, BR_IA_kv_heads, 1), keys = 0;
    uint64_t heads = (uint64_t)br_ir_i(p->n, BR_IA_heads, 1);
    uint64_t k = (uint64_t)br_ir_i(p->n, BR_IA_head_dim, 0);
    uint64_t v = (uint64_t)br_ir_i(p->n, BR_IA_head_v, 0);

    p->n_rows = cpu_rows_in(c, p);
    for (uint32_t i = 0; i < p->n_rows; i++) {
        int32_t pos = position_of(c, p, i);

        keys += (uint64_t)(pos - first_seen(p->n, pos) + 1);
        /* Rows of a prompt that follow each other read what they share once. */
        if (i + 1 == p->n_rows || !follows(c, p, i + 1))
            c->work.kv_bytes +=
                (uint64_t)(pos - first_seen(p->n, pos) + 1) *
                br_kv_bytes(c->state->kv, kv * (p->in[2].v ? k + v : k));
    }
    c->work.products[in_pairs(c, p) ? BR_FORM_BF16 : BR_FORM_F32] +=
        keys * heads * (k + v);
    group_rows(c, p, (uint32_t)(heads / kv));
    p->per = split_groups(c, p, (uint32_t)kv, (uint32_t)heads);
    c->split.heads = heads_together(c, p, (uint32_t)kv, (uint32_t)(heads / kv));
    return lend(c, p, (uint32_t)kv / c->split.heads * p->per,
                (size_t)(heads * (v + 2)));
}

/* The lines of heads of keys from g on that are in rows t[0]..t[1] - 1 of the
 * phase. q: of one row, their queries; NULL: they are where they should. */
static void
attention_rows(br_cpu *c, const cpu_phase *p, br_cpu_att *a, uint32_t g,
               const uint32_t *t, const float *q,
               void (*fn)(const br_cpu_att *a))
{
    uint32_t per = (uint32_t)(br_ir_i(p->n, BR_IA_heads, 1) /
                              br_ir_i(p->n, BR_IA_kv_heads, 1));
    uint32_t of_head = (t[1] - t[0]) * per, n = of_head * BR_MAX(a->heads, 1u);
    size_t kept = (size_t)a->n_kept * (a->head_v + 2);

    if (a->kept)
        a->kept += g * of_head * kept;

    for (uint32_t i = 0; i < n; i++) {
        uint32_t row = cpu_row_at(c, p, t[0] + i % of_head / per);
        uint32_t h = (g + i / of_head) * per + i % per;
        int32_t pos = c->step->position[row];

        a->line[a->n++] =
            (br_cpu_line){.q = q ? q + i * a->head_k
                                 : ref_row(&p->in[0], row) + h * a->head_k,
                          .y = ref_row(&p->out[0], row) + h * a->head_v,
                          .sink = p->in[4].v ? p->in[4].f + h : NULL,
                          .lo = first_seen(p->n, pos),
                          .pos = pos};
        if (a->n == c->att_lines || i + 1 == n) {
            fn(a);
            if (a->kept)
                a->kept += a->n * kept;
            a->n = 0;
        }
    }
}

/* All of it but for the lines and the pages of their head of keys. */
static br_cpu_att
attention_of(br_cpu *c, const cpu_phase *p, uint32_t group, cpu_worker *w)
{
    const br_ir_node *n = p->n;
    const cpu_split *s = &c->split;
    br_cpu_att a = {.kv = c->state->kv,
                    .has_v = p->in[2].place != NULL,
                    .sheets = true,
                    .once = c->tune.at[BR_CPU_KNOB_once] != 0,
                    .head_k = (uint32_t)br_ir_i(n, BR_IA_head_dim, 0),
                    .head_v = (uint32_t)br_ir_i(n, BR_IA_head_v, 0),
                    .scale = (float)br_ir_f(n, BR_IA_scale, 1),
                    .cap = (float)br_ir_f(n, BR_IA_cap, 0),
                    .s = w->att};

    a.n_kept = blocks_of(c, p, group, &a.kept_from);
    a.b0 = a.kept_from;
    a.b1 = a.kept_from + (int32_t)a.n_kept;
    if (s->first[group + 1] - s->first[group] > 1)
        a.kept = c->kept_blocks + s->at[group];
    return a;
}

/* q kv_k [kv_v] position [sinks] */
static void
attention_tile(br_cpu *c, const cpu_phase *p, uint32_t tile, cpu_worker *w)
{
    const br_state *s = c->state;
    const cpu_split *split = &c->split;
    const br_state_place *pk = p->in[1].place, *pv = p->in[2].place;
    uint32_t of = cpu_lend_tile(c, tile);
    uint32_t g = of / p->per * split->heads, i = of % p->per, group = 0;
    uint32_t slot;
    const uint32_t *t;
    const float *q = NULL;
    int64_t begun = split->paced && tile < split->n_tiles ? br_now_ns() : 0;
    br_cpu_att a;
    bool last;

    while (split->first[group + 1] <= i)
        group++;
    t = c->group + group;
    a = attention_of(c, p, group, w);
    a.heads = split->heads;
    if (a.kept) { /* in spans, of several tiles */
        a.b0 += (int32_t)((i - split->first[group]) * split->span);
        a.b1 = BR_MIN(a.b1, a.b0 + (int32_t)split->span);
    }
    last = cpu_lend_part(c, tile, &a) && i + 1 == split->first[group + 1];
    if (c->alone && p->keep)
        q = cpu_fuse_heads(c, p, (cpu_heads){g, g + split->heads}, last, w);
    slot = (uint32_t)c->step->slot[cpu_row_at(c, p, *t)];
    a.pages = c->step->pages[slot * s->plan.n_groups + pk->group];
    a.pool = s->pool[pk->group];
    a.page_bytes = br_state_page_bytes(s, pk->group);
    a.k_at = br_kv_bytes(s->kv, pk->at + (size_t)g * a.head_k * BR_PAGE_TOKENS);
    a.v_at =
        pv ? br_kv_bytes(s->kv, pv->at + (size_t)g * a.head_v * BR_PAGE_TOKENS)
           : 0;
    for (uint32_t r = t[0]; r < t[1]; r++)
        check_pages(s, &a, pk->group, first_seen(p->n, position_of(c, p, r)),
                    position_of(c, p, r));
    attention_rows(c, p, &a, g, t, q, c->attend);
    if (begun)
        cpu_lend_pace(w, br_now_ns() - begun, (uint32_t)(a.b1 - a.b0));
}

const cpu_kind cpu_attention = {attention_tiles, attention_tile};

/* Of the phase before. */
static uint32_t
fold_tiles(br_cpu *c, cpu_phase *p)
{
    uint32_t kv = (uint32_t)br_ir_i(p->n, BR_IA_kv_heads, 1);

    return c->split.any ? kv * c->split.n_groups : c->split.n_lent;
}

static void
fold_tile(br_cpu *c, const cpu_phase *p, uint32_t tile, cpu_worker *w)
{
    const cpu_split *s = &c->split;
    uint32_t group = s->any ? tile % s->n_groups : 0, g = tile / s->n_groups;
    br_cpu_att a = attention_of(c, p, group, w);

    if (!s->any) { /* what a tile lent, and it */
        (void)cpu_lend_part(c, s->lent[tile].tile, &a);
        a.heads = s->heads;
        g = s->lent[tile].tile * s->heads;
    }
    if (a.kept)
        attention_rows(c, p, &a, g, c->group + group, NULL, c->ops->fold);
}

const cpu_kind cpu_fold = {fold_tiles, fold_tile};

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

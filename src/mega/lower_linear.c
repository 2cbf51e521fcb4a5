/* lower_linear.c - cuts y = x @ W.T into tiles of columns (and of rows).
 *
 *            N columns
 *        +---+---+---+--+   one task per tile, all on one counter; a reader
 *   M    |t0 |t2 |t4 |t6|   waits for all of them. One row: GEMV_TILE, more:
 *   rows +---+---+---+--+   GEMM_TILE. The last tile of a row is ragged.
 *        |t1 |t3 |t5 |t7|
 *        +---+---+---+--+
 *
 * Width, house style: tiling[role], else tiling.gemm (several rows), else
 * tiling.gemv says N_tile. Otherwise all linears that read one tensor share
 * the workers, one tile each: with q, k and v of 4096 + 1024 + 1024 columns on
 * 132 workers, 47 columns, rounded up to whole columns per warp
 * (threads_per_block / 32): 48, so 130 tasks keep every worker busy and pay
 * for synchronisation once. A base_width takes the place of that share.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "mega/lower_internal.h"

#include <string.h>

enum { /* facts of the reference's own tiling */
       AMK_WIDTH = 32,
       AMK_MIN_WIDTH = 16,
       AMK_MAX_TILES = 64,
};

static int64_t
ceil_div(int64_t a, int64_t b)
{
    return (a - 1) / b + 1; /* a >= 1 */
}

/* The entry of tiling for a key; NULL: none. */
static br_cfg_tiling *
entry(br_lower *l, const char *key)
{
    for (size_t i = 0; i < l->cfg.n_tilings; i++)
        if (strcmp(l->cfg.tilings[i].op, key) == 0) {
            l->cfg.tilings[i].used = true;
            return &l->cfg.tilings[i];
        }
    return NULL;
}

/* What the config says of this node, the most special entry first. */
static br_cfg_tiling
wish(br_lower *l, const br_net_node *d, bool rows)
{
    br_cfg_tiling *from[3] = {d->role[0] ? entry(l, d->role) : NULL,
                              rows ? entry(l, "gemm") : NULL, entry(l, "gemv")};
    br_cfg_tiling w = {0};

    for (size_t i = 0; i < BR_COUNT(from); i++) {
        if (!from[i])
            continue;
        w.n_tile = w.n_tile ? w.n_tile : from[i]->n_tile;
        w.m_tile = w.m_tile ? w.m_tile : from[i]->m_tile;
        w.base_width = w.base_width ? w.base_width : from[i]->base_width;
    }
    return w;
}

static int64_t
amk_width(br_lower *l, int64_t n)
{
    const br_cfg_tiling *t = entry(l, "gemv");
    int64_t base = t && t->base_width ? t->base_width : AMK_WIDTH;
    int64_t w = t && t->n_tile ? t->n_tile : BR_MAX(base, AMK_MIN_WIDTH);

    w = BR_MIN(w, n);
    return ceil_div(n, w) > AMK_MAX_TILES ? ceil_div(n, AMK_MAX_TILES) : w;
}

/* all: columns of all linears that read the same tensor. */
static int64_t
house_width(const br_lower *l, const br_cfg_tiling *w, int64_t n, int64_t all)
{
    int64_t warps = l->cfg.threads_per_block / 32;
    int64_t width = w->base_width ? w->base_width : ceil_div(all, l->workers);

    if (w->n_tile)
        return BR_MIN(w->n_tile, n);
    return BR_MIN(ceil_div(width, warps) * warps, n);
}

/* Columns that the workers divide among them: of all linears that read the
 * same tensor. In a group tile i of each linear goes to one worker, so there
 * each is divided by itself. */
static int64_t
share(const br_lower *l, const br_net_node *d)
{
    if (l->group_of[d - l->net->nodes.at] != BR_NET_NONE)
        return l->net->tensors.at[d->out].shape[1];
    return l->tensors[d->in[0]].columns;
}

br_low_cut
br_low_cut_of(br_lower *l, const br_net_node *d)
{
    const br_net_tensor *w = &l->net->tensors.at[d->weight];
    const br_net_tensor *x = &l->net->tensors.at[d->in[0]];
    br_low_cut c = {
        .rows = x->shape[0], .columns = w->shape[0], .k = w->shape[1]};
    br_cfg_tiling t = {0};

    if (l->amk) {
        c.n_tile = amk_width(l, c.columns);
    } else {
        t = wish(l, d, c.rows > 1);
        c.n_tile = house_width(l, &t, c.columns, share(l, d));
    }
    c.m_tile = t.m_tile ? BR_MIN(t.m_tile, c.rows) : c.rows;
    c.n_tiles = ceil_div(c.columns, c.n_tile);
    c.m_tiles = ceil_div(c.rows, c.m_tile);
    return c;
}

/* Bytes of one column of W (a row of it in memory), scales included. */
static int64_t
column_bytes(const br_lower *l, const br_net_tensor *w)
{
    int64_t k = w->shape[1];

    if (w->quant)
        return (k * l->net->quant_bits + 7) / 8 +
               2 * ceil_div(k, l->net->quant_group);
    return k * BR_MAX(1, br_mega_dtype_bits(w->dtype) / 8);
}

static void
put_int(br_low_task *t, br_mega_param p, int64_t v)
{
    t->params[t->n_params++] = (br_mega_pv){.p = p, .i = v};
}

/* Parameters and cost of the tile at (n_off, m_off). */
static void
set_tile(br_lower *l, br_low_task *t, const br_low_cut *c,
         const br_net_tensor *w, int64_t n_off, int64_t m_off)
{
    int64_t columns = BR_MIN(c->n_tile, c->columns - n_off);
    int64_t rows = BR_MIN(c->m_tile, c->rows - m_off);

    t->n_params = 0;
    if (c->rows > 1)
        put_int(t, BR_MP_M_tile, rows);
    put_int(t, BR_MP_K, c->k);
    put_int(t, BR_MP_N_tile, columns);
    put_int(t, BR_MP_n_off, n_off);
    if (c->m_tiles > 1)
        put_int(t, BR_MP_m_off, m_off);
    if (w->quant) {
        put_int(t, BR_MP_qdtype,
                l->net->quant_bits == 4 ? BR_MDT_I4 : BR_MDT_I8);
        put_int(t, BR_MP_group, l->net->quant_group);
    }
    /* A GEMV's M_tile is its prefetch depth, as the device reads it. */
    if (c->rows == 1 && !l->amk && l->cfg.pipelining_depth > 0 &&
        !l->recipe.open)
        put_int(t, BR_MP_M_tile, l->cfg.pipelining_depth);
    t->est_bytes = br_low_mul(l, column_bytes(l, w), columns, 1, 1);
    t->est_flops = br_low_mul(l, 2 * c->k, columns, rows, 1);
}

static int64_t
linear_counter(br_lower *l, const br_net_node *d, const br_low_cut *c)
{
    int64_t n = c->n_tiles * c->m_tiles;

    if (l->shared_counter >= 0)
        return l->shared_counter;
    if (c->rows > 1)
        br_low_text(l, "%s (%lld tiles, M=%lld)", d->name, (long long)n,
                    (long long)c->m_tile);
    else
        br_low_text(l, "%s (%lld tiles)", d->name, (long long)n);
    return br_low_counter(l, br_str_z(&l->text));
}

/* Said before gigabytes of tasks are made. */
static bool
fits(br_lower *l, const br_low_cut *c)
{
    if (c->n_tiles * c->m_tiles <=
        BR_MEGA_MAX_TASKS - (int64_t)l->b.prog->n_tasks)
        return true;
    br_low_fail(l, br_fail(l->st, BR_E_LIMIT, "program: more than %d tasks",
                           BR_MEGA_MAX_TASKS));
    return false;
}

void
br_low_linear(br_lower *l, const br_net_node *d)
{
    const br_net_tensor *w = &l->net->tensors.at[d->weight];
    br_low_cut c = br_low_cut_of(l, d);
    br_low_task t = {.op = c.rows > 1 ? BR_MOP_GEMM_TILE : BR_MOP_GEMV_TILE};
    int64_t i = 0;

    if (!fits(l, &c))
        return;
    t.out = br_low_output(l, d->out);
    t.counter = linear_counter(l, d, &c);
    br_low_wait(l, &t, d->in[0]);
    t.in[t.n_in++] = l->tensors[d->in[0]].buffer;
    if (w->quant) {
        br_low_quant_weight(l, d->weight, &t.in[1], &t.in[2]);
        t.n_in = 3;
    } else {
        t.in[t.n_in++] = br_low_weight(l, d->weight);
        if (d->bias != BR_NET_NONE)
            t.in[t.n_in++] = br_low_weight(l, d->bias);
    }
    for (int64_t n = 0; n < c.columns && br_low_ok(l); n += c.n_tile)
        for (int64_t m = 0; m < c.rows && br_low_ok(l); m += c.m_tile, i++) {
            set_tile(l, &t, &c, w, n, m);
            br_low_text(l, "%s[t%lld]", d->name, (long long)i);
            br_low_emit(l, &t);
        }
    br_low_ready(l, d->out, t.counter, c.n_tiles * c.m_tiles);
}

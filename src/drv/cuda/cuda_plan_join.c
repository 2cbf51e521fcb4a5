/* cuda_plan_join.c - nodes that one launch does.
 *
 *   turn    heads' norms, rope of queries and keys, keys and values to their
 *           pages: up to five launches a layer are one
 *   glu     two products of one input and silu(gate) * up, as the f16s that the
 *           next product reads: no row of the two wide values is written
 *   few     rows: attention turns its row's heads first; pieces of a product
 *           are added by who reads them, not by a meeting of its blocks
 *   lean    rows that only products of tiles read, which have them as f16, are
 *           not written as f32
 *
 * They do what the nodes do one by one, to the bit (glu: but for numbers that
 * f16 has fewer bits for, 2^-14 of its factor and less). Whoever watches nodes gets
 * them one by one.
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/cuda/cuda_plan_int.h"

#include <math.h>
#include <string.h>

/* ---- turn ---------------------------------------------------------------- */

typedef struct turned { /* queries, keys */
    const br_ir_node *norm[2], *rope[2], *write;
    uint32_t end; /* the node after them */
} turned;

static bool
reads(const br_ir_node *n, const br_ir_bind *b)
{
    return memcmp(&n->bind[0], b, sizeof *b) == 0 && br_bind_together(b);
}

/* A norm of heads or none, then rope, at node *at. */
static bool
one_rope(const br_ir *g, uint32_t *at, const br_ir_node **norm,
         const br_ir_node **rope)
{
    *norm = NULL;
    if (*at < g->n_nodes && g->nodes[*at].op == BR_IR_RMS_NORM)
        *norm = &g->nodes[(*at)++];
    if (*at >= g->n_nodes || g->nodes[*at].op != BR_IR_ROPE)
        return false;
    *rope = &g->nodes[(*at)++];
    return !*norm || (reads(*rope, &(*norm)->bind[(*norm)->n_in]) &&
                      br_bind_together(&(*norm)->bind[0]) &&
                      br_ir_i(*norm, BR_IA_width, 0) ==
                          br_ir_i(*rope, BR_IA_head_dim, 1));
}

static bool
same_rope(const br_ir_node *a, const br_ir_node *b)
{
    return br_ir_i(a, BR_IA_head_dim, 1) == br_ir_i(b, BR_IA_head_dim, 1) &&
           br_ir_i(a, BR_IA_n_rot, 0) == br_ir_i(b, BR_IA_n_rot, 0) &&
           br_ir_i(a, BR_IA_kind, 0) == br_ir_i(b, BR_IA_kind, 0) &&
           memcmp(&a->bind[2], &b->bind[2], sizeof a->bind[2]) == 0 &&
           br_ir_f(a, BR_IA_scale, 1) == br_ir_f(b, BR_IA_scale, 1);
}

/* The output is read by nobody but those nodes, and has all rows. */
static bool
within(const cun_planner *p, const br_ir_node *n, uint32_t end)
{
    const br_ir_bind *out = &n->bind[n->n_in];
    const br_value_mem *v = &p->x->v.at[out->value];

    return br_bind_together(out) && !v->want && v->last < (int64_t)end;
}

static bool
find_turn(const cun_planner *p, turned *t)
{
    const br_ir *g = p->x->v.g;
    uint32_t at = p->node;

    if (!one_rope(g, &at, &t->norm[0], &t->rope[0]) ||
        !one_rope(g, &at, &t->norm[1], &t->rope[1]) || at >= g->n_nodes ||
        g->nodes[at].op != BR_IR_KV_WRITE_BATCHED)
        return false;
    t->write = &g->nodes[at++];
    t->end = at;
    for (int i = 0; i < 2; i++)
        if ((t->norm[i] && !within(p, t->norm[i], at)) ||
            !br_bind_together(&t->rope[i]->bind[0]) ||
            !br_bind_together(&t->rope[i]->bind[t->rope[i]->n_in]))
            return false;
    return within(p, t->rope[1], at) &&
           reads(t->write, &t->rope[1]->bind[t->rope[1]->n_in]) &&
           t->write->bind[1].value != BR_IR_NONE &&
           br_bind_together(&t->write->bind[1]) &&
           !p->x->v.at[t->rope[0]->bind[t->rope[0]->n_in].value].want &&
           same_rope(t->rope[0], t->rope[1]) &&
           (!t->norm[0] || !t->norm[1] ||
            br_ir_f(t->norm[0], BR_IA_eps, 0) ==
                br_ir_f(t->norm[1], BR_IA_eps, 0));
}

/* Binding i of a node of the pattern, as rows. */
static br_code
rows_of(const cun_planner *p, const br_ir_node *n, int i,
        struct br_nd_rows *out)
{
    cun_planner q = *p;

    q.n = n;
    BR_TRY(cun_view(&q, i));
    *out = i < n->n_in ? q.in[i] : q.out[i - n->n_in];
    return BR_OK;
}

static br_code
turn_args(cun_planner *p, const turned *t, struct br_nd_args *a)
{
    const br_ir_node *n = t->rope[0];
    cun_planner q = *p;

    *a = (struct br_nd_args){.head_k = (uint32_t)br_ir_i(n, BR_IA_head_dim, 1),
                             .n_rot = (uint32_t)br_ir_i(n, BR_IA_n_rot, 0),
                             .neighbours =
                                 br_ir_i(n, BR_IA_kind, 0) == BR_ROPE_NORM,
                             .scale = (float)br_ir_f(n, BR_IA_scale, 1)};
    q.n = t->write;
    a->k = cun_cache(&q, 3);
    a->v = cun_cache(&q, 4);
    BR_TRY(rows_of(p, t->write, 1, &a->c));
    BR_TRY(rows_of(p, n, n->n_in, &a->y));
    BR_TRY(rows_of(p, n, 2, &a->w3));
    for (int i = 0; i < 2; i++) {
        const br_ir_node *first = t->norm[i] ? t->norm[i] : t->rope[i];

        BR_TRY(rows_of(p, first, 0, i ? &a->b : &a->x));
        if (!t->norm[i])
            continue;
        a->op |= 1u << i;
        a->eps = (float)br_ir_f(t->norm[i], BR_IA_eps, 0);
        if (t->norm[i]->bind[1].value != BR_IR_NONE)
            BR_TRY(rows_of(p, t->norm[i], 1, i ? &a->w2 : &a->w));
    }
    a->heads = a->x.cols / a->head_k;
    a->count = a->b.cols / a->head_k;
    return BR_OK;
}

/* Sines and cosines for a, by a launch ahead of it, unless the turn before had
 * the same. */
static br_code
angles_of(cun_planner *p, struct br_nd_args *a)
{
    struct cun_angles *k = &p->angles;
    struct br_nd_args make = {.w = a->w3, .n_rot = a->n_rot, .scale = a->scale};
    uint64_t z;

    if (k->w != a->w3.p || k->z.cols != a->n_rot || k->scale != a->scale) {
        BR_TRY(cun_alloc(p->x, &z, 4ull * a->n_rot * p->x->c.max_rows, p->st));
        *k = (struct cun_angles){a->w3.p, cun_rows_at(z, a->n_rot, a->n_rot),
                                 a->scale};
        make.z = k->z;
        BR_TRY(cun_add(p, CUN_angles, CUN_NUMBERS, a->n_rot / 2, &make));
        p->x->launches.at[p->x->launches.n - 1].joint = true;
    }
    a->z = k->z;
    return BR_OK;
}

br_code
cun_turn(cun_planner *p)
{
    struct br_nd_args a;
    turned t;

    if (p->x->plain || !find_turn(p, &t))
        return BR_OK;
    BR_TRY(turn_args(p, &t, &a));
    if (a.head_k % 32 != 0 || a.head_k > BR_ND_TURN_MOST ||
        a.n_rot != a.head_k || a.x.cols % a.head_k != 0 ||
        a.b.cols % a.head_k != 0 || a.c.cols != a.b.cols || !a.k.pool ||
        !a.v.pool || !cun_apart(p->x, &a.y, &a.x) ||
        !cun_apart(p->x, &a.y, &a.b) || !cun_apart(p->x, &a.y, &a.c))
        return BR_OK;
    BR_TRY(angles_of(p, &a));
    BR_TRY(cun_add(p, CUN_turn, CUN_NUMBERS, (a.heads + 2 * a.count) * 16, &a));
    p->x->launches.at[p->x->launches.n - 1].joint = true;
    p->turned = t.end;
    return BR_OK;
}

/* ---- glu ------------------------------------------------------------------- */

/* The GLU after two products, one of which is the gate. */
typedef struct paired {
    const br_ir_node *n;
    uint32_t at, gate; /* 0 or 1, of the two */
    struct br_nd_rows in[2], out;
} paired;

/* Who reads the node's output is a product of tiles. */
static bool
fed_to_tiles(const cun_planner *p, const br_ir_node *n, uint32_t at)
{
    const br_ir *g = p->x->v.g;
    const br_ir_bind *out = &n->bind[n->n_in];

    for (int64_t i = at + 1; i <= p->x->v.at[out->value].last; i++) {
        const br_ir_node *m = &g->nodes[i];

        for (int b = 0; b < m->n_in + m->n_out; b++)
            if (m->bind[b].value == out->value &&
                (b > 0 || !cun_takes(p, m, out)))
                return false;
    }
    return out->value != p->x->v.hidden && br_bind_together(out);
}

static bool
finds_glu(const cun_planner *p, paired *f)
{
    const br_ir *g = p->x->v.g;
    const br_ir_node *two = &g->nodes[p->node];

    f->at = p->node + 2;
    if (f->at >= g->n_nodes || g->nodes[f->at].op != BR_IR_GLU)
        return false;
    f->n = &g->nodes[f->at];
    f->gate = memcmp(&f->n->bind[0], &two[0].bind[two[0].n_in],
                     sizeof f->n->bind[0]) == 0
                  ? 0
                  : 1;
    for (uint32_t i = 0; i < 2; i++) {
        const br_ir_bind *out = &two[i].bind[two[i].n_in];
        const br_value_mem *v = &p->x->v.at[out->value];

        if (memcmp(&f->n->bind[i ^ f->gate], out, sizeof *out) != 0 ||
            v->last != (int64_t)f->at || v->want != p->want ||
            out->value == p->x->v.hidden ||
            (two[i].op == BR_IR_MATMUL && two[i].bind[2].value != BR_IR_NONE))
            return false;
    }
    return cun_act_of(f->n) == BR_ND_SILU &&
           p->x->v.at[f->n->bind[f->n->n_in].value].want == p->want &&
           fed_to_tiles(p, f->n, f->at);
}

/* Rows of both products and of the GLU are as wide, and can be f16. */
static br_code
fits_glu(const cun_planner *p, paired *f, bool *fits)
{
    cun_planner q = *p;
    struct br_nd_args a;

    q.n = f->n;
    q.node = f->at;
    for (int i = 0; i < f->n->n_in + f->n->n_out; i++)
        BR_TRY(cun_view(&q, i));
    a = (struct br_nd_args){.x = q.in[0], .b = q.in[1], .y = q.out[0]};
    f->in[0] = q.in[0];
    f->in[1] = q.in[1];
    f->out = q.out[0];
    *fits = f->out.cols % (BR_ND_TILE_ROWS / 2) == 0 &&
            f->in[0].cols == f->out.cols && f->in[1].cols == f->out.cols &&
            f->in[0].stride == f->in[1].stride &&
            cun_can_row16(&q, &f->n->bind[f->n->n_in], &a);
    return BR_OK;
}

cun_launch *
cun_maker(br_cun *x)
{
    for (size_t i = x->launches.n; i-- > 0;) {
        cun_launch *l = &x->launches.at[i];

        if ((l->grid == CUN_ROW || l->grid == CUN_QUERIES) &&
            (uintptr_t)l->a.xq == x->xq)
            return l->grid == CUN_ROW && !l->lone ? l : NULL;
    }
    return NULL;
}

static br_code
room_for_glu(br_cun *x, uint32_t cols, br_status *st)
{
    const uint64_t numbers = (uint64_t)x->glu_cols * x->padded;

    br_check(cols <= x->glu_cols && "the widest was counted");
    if (x->glu)
        return BR_OK;
    BR_TRY(cun_alloc(x, &x->glu, numbers * 2, st));
    BR_TRY(cun_zero(x, x->glu, numbers / 2, st));
    BR_TRY(cun_alloc(x, &x->glu_d, x->padded * 4ull, st));
    return cun_zero(x, x->glu_d, x->padded, st);
}

br_code
cun_glu(cun_planner *p, uint32_t *w, bool *done)
{
    br_cun *x = p->x;
    struct br_nd_args a;
    struct br_nd_mat m;
    cun_launch *made;
    bool fits = false;
    float most;
    paired f;

    if (finds_glu(p, &f))
        BR_TRY(fits_glu(p, &f, &fits));
    if (!fits)
        return BR_OK;
    BR_TRY(cun_as_tiles(p, p->in[0]));
    made = cun_maker(x);
    if (!made)
        return BR_OK;
    BR_TRY(room_for_glu(x, f.out.cols, p->st));
    if (f.gate) {
        const uint32_t up = w[0];

        w[0] = w[1];
        w[1] = up;
    }
    BR_TRY(cun_pair(x, w, &m, &most, p->st));
    made->a.state = (void *)(uintptr_t)x->glu_d;
    made->a.cap = most;
    a = cun_tile_args(p, &m, (uint32_t[2]){0}, p->in[0], f.in, 2);
    a.pitch = 8;
    p->done = f.at;
    p->paired = f.at;
    *done = true;
    if (isfinite(most) && most > 0) { /* else one by one */
        struct br_nd_args one = a;

        one.z.p = (void *)(uintptr_t)x->glu;
        one.state = (void *)(uintptr_t)x->glu_d;
        BR_TRY(cun_add(p, CUN_tiles_8, CUN_PRODUCT, a.count, &one));
        x->launches.at[x->launches.n - 1].joint = true;
        p->turned = f.at + 1;
    }
    return cun_add(p, CUN_tiles_8, CUN_PRODUCT, a.count, &a);
}

/* ---- lean ------------------------------------------------------------------ */

/* Do rows v begin inside rows y? */
static bool
meets(const br_cun *x, const struct br_nd_rows *v, const struct br_nd_rows *y)
{
    return v->p && v->p >= y->p &&
           v->p < y->p + (size_t)y->stride * x->c.max_rows;
}

static bool
reads_rows(const br_cun *x, const cun_launch *l, const struct br_nd_rows *y)
{
    const struct br_nd_args *a = &l->a;

    if (l->grid == CUN_PRODUCT)
        return false; /* xq */
    return meets(x, &a->x, y) || meets(x, &a->b, y) || meets(x, &a->c, y) ||
           meets(x, &a->w, y) || meets(x, &a->w2, y) || meets(x, &a->w3, y) ||
           (l->fn == CUN_runs && meets(x, &a->y, y));
}

static bool
has_f16(const cun_launch *l)
{
    return l->a.xq && l->a.y.p &&
           (l->grid == CUN_QUERIES ||
            (l->grid == CUN_ROW &&
             (l->fn < CUN_row16_copy || l->fn > CUN_row16_copy_long)));
}

void
cun_lean(br_cun *x)
{
    for (size_t i = 0; i < x->launches.n; i++) {
        cun_launch *l = &x->launches.at[i];
        const br_ir_node *n = &x->v.g->nodes[l->node];
        const uint32_t value = n->n_out ? n->bind[n->n_in].value : BR_IR_NONE;
        int64_t last;

        if (!has_f16(l) || value == BR_IR_NONE || value == x->v.hidden)
            continue;
        last = x->v.at[value].last;
        l->lean = true;
        for (size_t k = i + 1; k < x->launches.n; k++)
            if ((int64_t)x->launches.at[k].node <= last &&
                reads_rows(x, &x->launches.at[k], &l->a.y))
                l->lean = false;
    }
}

/* ---- few ------------------------------------------------------------------- */

/* The launch after `at` of a step that nobody watches, but for angles. */
static size_t
next_of(const br_cun *x, size_t at)
{
    for (at++; at < x->launches.n; at++)
        if (!x->launches.at[at].lone && x->launches.at[at].fn != CUN_angles)
            break;
    return at;
}

bool
cun_gone_by(const br_cun *x, uint32_t node, uint32_t end)
{
    const br_ir_node *n = &x->v.g->nodes[node];
    const uint32_t value = n->bind[n->n_in].value;

    return value != x->v.hidden && value != x->v.logits &&
           x->v.at[value].last < (int64_t)end;
}

/* Attention l writes nothing that turn t reads and another block of it may: a block's
 * own queries at most. What t reads is dead by the graph, and may be l's output. */
static bool
writes_aside(const br_cun *x, const cun_launch *t, const cun_launch *l)
{
    const struct br_nd_rows *y = &l->a.y, *kv[] = {&t->a.b, &t->a.c};

    for (size_t i = 0; i < BR_COUNT(kv); i++)
        if (kv[i]->p && (kv[i]->p == y->p || !cun_apart(x, y, kv[i])))
            return false;
    return cun_apart(x, y, &t->a.x);
}

/* Attention l can do turn t: a block has all heads of a KV head. */
static bool
can_turn(const br_cun *x, const cun_launch *t, const cun_launch *l)
{
    return (l->lean || writes_aside(x, t, l)) &&
           (l->fn == CUN_flash_64 || l->fn == CUN_flash_128) &&
           l->a.x.p == t->a.y.p && l->a.head_k == t->a.head_k &&
           l->a.per_kv <= 8 && t->a.heads == l->a.per_kv * t->a.count &&
           t->want == l->want;
}

/* Is r a row's norm that can add the pieces it reads? */
static bool
row_adds(const cun_launch *l, const cun_launch *r)
{
    return (r->fn == CUN_row16_add_short ||
            (r->fn == CUN_row16_add && r->x <= BR_ND_ROW_THREADS / 2)) &&
           !l->a.part[0].p && r->a.x.p != r->a.b.p &&
           (r->a.x.p == l->a.y.p || r->a.b.p == l->a.y.p);
}

/* Who reads the product's outputs is `next` alone, which adds; r: that, or the
 * attention that may do it. */
static bool
is_apart(const br_cun *x, const cun_launch *l, const cun_launch *next,
         const cun_launch *r)
{
    if (l->a.segs < 2 || l->a.pitch || l->want != r->want)
        return false;
    if (next == r)
        return row_adds(l, r) && cun_gone_by(x, l->node, r->node);
    if (next->a.x.p != l->a.y.p || next->a.b.p != l->a.part[0].p ||
        next->a.c.p != l->a.part[1].p)
        return false;
    for (uint32_t i = 0; i < CUN_PARTS; i++)
        if (!cun_gone_by(x, l->node + i, r->node))
            return false;
    return true;
}

/* The product before (or after) launch `at` of a step of few rows, if it is one of
 * the two next to it among products. */
static const cun_launch *
product_by(const br_cun *x, size_t at, bool before)
{
    while (before ? at-- > 0 : ++at < x->launches.n) {
        const cun_launch *l = &x->launches.at[at];

        if (l->grid == CUN_PRODUCT && !l->lone)
            return l;
    }
    return NULL;
}

bool
cun_at_once(const br_cun *x, const cun_launch *l)
{
    return l->a.segs * l->x <= (uint32_t)x->cu.n_sm;
}

/* More 64s of columns of a block than are on their way when it begins. */
static bool
is_long(const cun_launch *l)
{
    return l->a.m.block >= 8;
}

/* A product with no more blocks than there are multiprocessors should have one on
 * each; but blocks are placed while those of the launch ahead end, two where two
 * fit. So the longest of those next to each other take more than half of a
 * multiprocessor's memory, and none of their neighbours (which begin beside them): those
 * take more than half of its registers. H200, ms a step at 1, 16, 64 rows, before what
 * follows .76 .85 1.33 (1B BF16): down by registers .73 .84, with q k v by memory
 * .72 .83. */
static void
spread(br_cun *x)
{
    const cun_launch *by[2];

    for (size_t i = 0; i < x->launches.n; i++) {
        cun_launch *l = &x->launches.at[i];

        if (l->grid != CUN_PRODUCT || l->lone || !is_long(l) ||
            !cun_at_once(x, l))
            continue;
        by[0] = product_by(x, i, true);
        by[1] = product_by(x, i, false);
        l->spread = true;
        for (int k = 0; k < 2; k++)
            if (by[k] && cun_at_once(x, by[k]) &&
                (by[k]->a.m.block > l->a.m.block || (k == 0 && by[k]->spread)))
                l->spread = false;
    }
    for (size_t i = 0; i < x->launches.n; i++) {
        cun_launch *l = &x->launches.at[i];

        if (l->grid != CUN_PRODUCT || l->lone || l->spread ||
            !cun_at_once(x, l))
            continue;
        by[0] = product_by(x, i, true);
        by[1] = product_by(x, i, false);
        const bool beside =
            (by[0] && by[0]->spread) || (by[1] && by[1]->spread);
        l->single = beside && is_long(l);
        l->spread = !beside;
    }
}

void
cun_joins(br_cun *x)
{
    spread(x);
    for (size_t i = next_of(x, (size_t)-1); i < x->launches.n;
         i = next_of(x, i)) {
        cun_launch *l = &x->launches.at[i];
        const size_t at = next_of(x, i), then = next_of(x, at);
        cun_launch *next = &x->launches.at[at], *r = next;

        if (at >= x->launches.n)
            return;
        if (l->fn == CUN_turn && can_turn(x, l, next)) {
            l->turns = true;
            next->turn = (uint32_t)i + 1;
        }
        if (l->grid != CUN_PRODUCT)
            continue;
        if (next->fn == CUN_turn && then < x->launches.n &&
            can_turn(x, next, &x->launches.at[then])) {
            r = &x->launches.at[then];
            l->calls = (uint32_t)then + 1;
        }
        l->apart = is_apart(x, l, next, r);
        if (l->apart)
            next->of = r->of = (uint32_t)i + 1;
    }
}

bool
cun_is_apart(const br_cun *x, const cun_launch *l, uint32_t rows)
{
    return l->apart && rows <= BR_ND_APART && !x->watch.seen;
}

static struct br_nd_pieces
pieces_of(const br_cun *x, const cun_launch *l, uint32_t rows)
{
    const cun_launch *p = l->of ? &x->launches.at[l->of - 1] : NULL;

    if (!p || !cun_is_apart(x, p, rows))
        return (struct br_nd_pieces){0};
    return (struct br_nd_pieces){.sums = p->a.sums,
                                 .xd = p->a.xd,
                                 .d = p->a.m.d,
                                 .pitch = p->a.m.sub * 8,
                                 .segs = p->a.segs,
                                 .at = {0, p->a.part_end[0] * BR_ND_TILE_ROWS,
                                        p->a.part_end[1] * BR_ND_TILE_ROWS}};
}

/* More pairs of row and KV head than blocks of few queries run at once. */
static bool
too_many(const br_cun *x, uint32_t rows, uint32_t kv_heads)
{
    return rows * kv_heads > 2 * (uint32_t)x->cu.n_sm;
}

bool
cun_stays(const br_cun *x, const cun_launch *l, uint32_t rows)
{
    enum { QUERIES = 8 };

    return x->alone && l->a.per_kv <= QUERIES && too_many(x, rows, l->x);
}

/* While the product before attention ends, the memory has nothing to do for 2 us: it
 * brings what attention by blocks that stay asks for first, if that is there already. */
void
cun_call_pages(const br_cun *x, cun_launch *l, uint32_t rows)
{
    enum { PAGES = 4 /* of a row */ };
    const cun_launch *reader = &x->launches.at[l->calls - 1];

    if (!cun_stays(x, reader, rows) || reader->a.window)
        return;
    l->a.s = reader->a.s;
    l->a.k = reader->a.k;
    l->a.v = reader->a.v;
    l->a.calls = PAGES;
}

enum cun_fn
cun_stay(const br_cun *x, cun_launch *l, br_cuda_launch *how)
{
    const uint32_t head = l->a.head_k;
    const uint32_t sums = BR_ND_STAY_SUMS(head, l->a.per_kv) +
                          BR_ND_STAY_QUERIES(head, l->a.per_kv);

    l->a.count = l->x;
    l->a.segs = (BR_ND_STAY_SHARED - sums) / BR_ND_STAY_STAGE(head) /
                BR_ND_STAY_FEED * BR_ND_STAY_FEED;
    how->gx = (uint32_t)x->cu.n_sm;
    how->gy = 1;
    how->shared = l->a.segs * BR_ND_STAY_STAGE(head) + sums;
    return head == 64 ? CUN_flash_stay_64 : CUN_flash_stay_128;
}

/* As many as fit half of the multiprocessors, as clusters of four and eight that fill
 * all wait for each other (H200, 8B with 2 rows of 512: 3.98 ms a step by four, 4.26
 * by eight, 4.07 by one); pairs of heads of 128 do not (8 rows: 4.14, not 4.18), but
 * those of 64, whose blocks share a multiprocessor with a product's, do. */
uint32_t
cun_shares(const br_cun *x, const cun_launch *l, uint32_t rows)
{
    const uint32_t sms = (uint32_t)x->cu.n_sm, blocks = rows * l->x;
    uint32_t n = BR_ND_FAR_BLOCKS;

    if (!l->turn || !cun_turns(x, &x->launches.at[l->turn - 1], rows))
        return 1;
    while (n > 1 && n * blocks > sms / 2)
        n /= 2;
    return n == 1 && l->a.head_k > 64 && 2 * blocks <= sms ? 2 : n;
}

/* Blocks of keys that a block of attention of few queries has in shared memory:
 * so that two such fit a multiprocessor, or where one is enough. Of heads of 64
 * no more: beside a product's block of 16 rows it may still begin early (1B, 16
 * rows: 1.03 ms, not 1.11). */
void
cun_few(const br_cun *x, cun_launch *l, br_cuda_launch *how)
{
    const bool alone = how->gx * how->gy <= (uint32_t)x->cu.n_sm;
    uint32_t stage = BR_ND_FLASH_FEW_STAGE(l->a.head_k);

    if (cun_shares(x, l, how->gy) > 1)
        stage = BR_ND_FLASH_FAR_STAGE(l->a.head_k, l->a.per_kv);
    l->a.count = l->a.head_k == 64 || alone ? 6 : 3;
    l->a.count = BR_MIN(l->a.count, BR_ND_STAY_SHARED / stage);
    how->shared = stage * l->a.count;
}

/* Attention turns the heads of rows each of a slot of its own; blocks that stay those
 * of 64 alone: of 128 they have no registers for it (H200, 8B at 64 rows: 6.35 ms a
 * step by 96 of them, not 5.34). */
bool
cun_turns(const br_cun *x, const cun_launch *turn, uint32_t rows)
{
    return turn->turns && x->alone && !x->watch.seen &&
           (turn->a.head_k == 64 || !too_many(x, rows, turn->a.count));
}

bool
cun_join(const br_cun *x, const cun_launch *l, uint32_t rows, enum cun_fn *fn,
         struct br_nd_joined *j)
{
    const cun_launch *turn = l->turn ? &x->launches.at[l->turn - 1] : NULL;
    const bool turns = turn && cun_turns(x, turn, rows);

    *j = (struct br_nd_joined){.a = l->a, .in = pieces_of(x, l, rows)};
    if (turns && *fn == CUN_flash_stay_64) {
        j->turn = turn->a;
        *fn = CUN_flash_stay_turn_64;
        return true;
    }
    if (turns && (*fn == CUN_flash_few_64 || *fn == CUN_flash_few_128)) {
        j->turn = turn->a;
        *fn += (cun_shares(x, l, rows) > 1 ? CUN_flash_far_64
                                           : CUN_flash_turn_64) -
               CUN_flash_few_64;
        return true;
    }
    if (l->fn == CUN_turn && (l->a.head_k == 64 || l->a.head_k == 128)) {
        *fn = l->a.head_k == 64 ? CUN_turn_64 : CUN_turn_128;
        return true;
    }
    if ((l->fn != CUN_row16_add && l->fn != CUN_row16_add_short) || !j->in.segs)
        return false;
    if (l->a.x.p == x->launches.at[l->of - 1].a.y.p)
        j->a.x = l->a.b; /* x + b either way round */
    *fn += CUN_row16_pieces - CUN_row16_add;
    return true;
}

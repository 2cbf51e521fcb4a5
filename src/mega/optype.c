/* optype.c - one rule per opcode: dtypes, shapes, bounds, footprint.
 *
 * A rule takes an op with its operands' shapes and says whether the op, run on
 * any worker, reads and writes inside its operands and knows the number
 * formats it meets; and which part of each it touches. It is the truth that
 * the check, the page allocator and the lowering share. In words: docs/mega.md,
 * "What each opcode requires".
 *
 * Where the reference computes more than a rule allows (broadcasting a row of
 * weights over another's output, adding integers to a bool), no program of its
 * lowering does, and a device kernel would run off a buffer: refused.
 *
 * The rules run for every task of a program: they format text only once they
 * have failed.
 * SPDX-License-Identifier: Apache-2.0 */
#include "mega/footprint.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "mega/dtype.h"
#include "mega/step.h"

typedef br_op_call call;
typedef const br_op_val val;

BR_PRINTF(2, 3)
static bool
bad(call *c, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(c->why, sizeof c->why, fmt, ap);
    va_end(ap);
    return false;
}
#define LL(x) ((long long)(x))

static bool
has(const call *c, br_mega_param p)
{
    return c->mask >> p & 1;
}

static int64_t
int_or(const call *c, br_mega_param p, int64_t def)
{
    return has(c, p) ? c->i[p] : def;
}

static bool
is_float(int dt)
{
    return dt <= BR_MDT_F8E5M2 || dt == BR_DT_F64;
}

/* A number that arithmetic makes sense for; I4 is packed, BOOL is no number. */
static bool
is_number(int dt)
{
    return dt != BR_MDT_I4 && dt != BR_MDT_BOOL && dt < BR_MDT_BLOCK;
}

/* ---- what the rules have in common -------------------------------------- */

static bool
dtype_is(call *c, val *v, const char *what, bool fine, const char *want)
{
    if (fine)
        return true;
    return bad(c, "%s has dtype %s, needs %s", what, br_dt_name(v->dtype),
               want);
}

static bool
floats(call *c, val *v, const char *what)
{
    return is_float(v->dtype) || dtype_is(c, v, what, false, "a float dtype");
}

static bool
numbers(call *c, val *v, const char *what)
{
    return is_number(v->dtype) ||
           dtype_is(c, v, what, false, "a float or whole integer dtype");
}

static bool
same_shape(val *a, val *b)
{
    if (a->rank != b->rank)
        return false;
    for (uint32_t i = 0; i < a->rank; i++)
        if (a->shape[i] != b->shape[i])
            return false;
    return true;
}

/* As numpy aligns them: trailing dimensions equal, or 1 in a; leading ones
 * that b lacks are 1. */
static bool
broadcasts(val *a, val *b)
{
    if (same_shape(a, b))
        return true;
    for (uint32_t i = 1; i <= a->rank; i++) {
        int64_t d = a->shape[a->rank - i];

        if (d != 1 && (i > b->rank || d != b->shape[b->rank - i]))
            return false;
    }
    return true;
}

static bool
fits(call *c, uint32_t k, const char *what)
{
    return broadcasts(c->in[k], c->out) ||
           bad(c, "%s of %lld elements does not broadcast to the output's %lld",
               what, LL(c->in[k]->numel), LL(c->out->numel));
}

static bool
positive(call *c, br_mega_param p)
{
    return c->i[p] > 0 || bad(c, "%s=%lld must be positive",
                              br_mega_param_name(p), LL(c->i[p]));
}

static bool
not_negative(call *c, br_mega_param p)
{
    return c->i[p] >= 0 || bad(c, "%s=%lld must not be negative",
                               br_mega_param_name(p), LL(c->i[p]));
}

static bool
equal(call *c, br_mega_param p, int64_t want, const char *what)
{
    return c->i[p] == want ||
           bad(c, "%s=%lld but %s is %lld", br_mega_param_name(p), LL(c->i[p]),
               what, LL(want));
}

/* ---- moves and element-wise ops ----------------------------------------- */

static bool
rule_NOP(call *c)
{
    (void)c;
    return true;
}

static bool
rule_COPY(call *c)
{
    return dtype_is(c, c->in[0], "the input",
                    c->in[0]->dtype != BR_MDT_I4 &&
                        c->in[0]->dtype < BR_MDT_BLOCK,
                    "anything but packed I4 and blocks") &&
           fits(c, 0, "the input");
}

/* out[i] = table[ids[i]]. The ids are data: that they lie in the table is the
 * worker's to check. hidden is the length of a row, of the table's or (the
 * lowering's way of giving a row another shape) of the output's. */
static bool
rule_EMBED(call *c)
{
    val *ids = c->in[0], *table = c->in[1];
    int64_t n = table->rank ? table->shape[0] : 1, row = table->numel / n;
    int64_t h = c->i[BR_MP_hidden], want;

    if (!dtype_is(c, ids, "ids",
                  ids->dtype == BR_MDT_I32 || ids->dtype == BR_MDT_I8 ||
                      ids->dtype == BR_MDT_U8,
                  "I32, I8 or U8") ||
        !numbers(c, table, "the table") || !numbers(c, c->out, "the output"))
        return false;
    if (table->rank == 0)
        return bad(c, "the table has no rows: its shape is []");
    if (__builtin_mul_overflow(ids->numel, row, &want) || want != c->out->numel)
        return bad(c, "%lld ids x rows of %lld do not make %lld elements",
                   LL(ids->numel), LL(row), LL(c->out->numel));
    return h == row || h == c->out->last ||
           bad(c,
               "hidden=%lld is neither the table's row (%lld) nor the "
               "output's (%lld)",
               LL(h), LL(row), LL(c->out->last));
}

static bool
binary(call *c, bool (*dtype)(call *, val *, const char *))
{
    return dtype(c, c->in[0], "input 0") && fits(c, 0, "input 0") &&
           (c->n_in < 2 ||
            (dtype(c, c->in[1], "input 1") && fits(c, 1, "input 1"))) &&
           dtype(c, c->out, "the output");
}

static bool
rule_SILU_MUL(call *c)
{
    return binary(c, floats);
}

static bool
rule_GELU(call *c)
{
    return binary(c, floats);
}

static bool
rule_ADD(call *c)
{
    return binary(c, numbers);
}

static bool
rule_MUL(call *c)
{
    return binary(c, numbers);
}

static bool
rule_ALLREDUCE_SHARD(call *c)
{
    for (uint32_t k = 0; k < c->n_in; k++)
        if (!numbers(c, c->in[k], "a shard") || !fits(c, k, "a shard"))
            return false;
        else if (c->in[k]->numel != c->out->numel)
            return bad(c, "shard %u holds %lld elements, the output %lld", k,
                       LL(c->in[k]->numel), LL(c->out->numel));
    return numbers(c, c->out, "the output");
}

/* ---- rows --------------------------------------------------------------- */

static bool
norm(call *c)
{
    val *x = c->in[0];

    if (!floats(c, x, "x") || !floats(c, c->out, "the output"))
        return false;
    if (x->rank == 0)
        return bad(c, "x has shape []: no row to normalise");
    if (!same_shape(x, c->out))
        return bad(c, "x and the output have different shapes");
    if (!equal(c, BR_MP_hidden, x->last, "a row of x"))
        return false;
    for (uint32_t k = 1; k < c->n_in; k++) {
        const char *what = k == 1 ? "the weight" : "the bias";

        if (!floats(c, c->in[k], what))
            return false;
        if (c->in[k]->numel != x->last || c->in[k]->last != x->last)
            return bad(c, "%s has %lld elements for rows of %lld", what,
                       LL(c->in[k]->numel), LL(x->last));
    }
    return c->f[BR_MP_eps - BR_MP_eps] >= 0.0 ||
           bad(c, "eps=%g must not be negative", c->f[BR_MP_eps - BR_MP_eps]);
}

static bool
rule_RMSNORM(call *c)
{
    return norm(c);
}

static bool
rule_LAYERNORM(call *c)
{
    return norm(c);
}

static bool
rule_SOFTMAX(call *c)
{
    int64_t rank = c->out->rank, dim = int_or(c, BR_MP_dim, -1);

    if (!floats(c, c->in[0], "the input") || !floats(c, c->out, "the output"))
        return false;
    if (!same_shape(c->in[0], c->out))
        return bad(c, "input and output have different shapes");
    return (dim >= -rank && dim < rank) ||
           bad(c, "dim=%lld of a tensor of rank %lld", LL(dim), LL(rank));
}

static bool
rule_SAMPLE_ARGMAX(call *c)
{
    val *x = c->in[0];

    if (!floats(c, x, "the input") ||
        !dtype_is(c, c->out, "the output", c->out->dtype == BR_MDT_I32, "I32"))
        return false;
    if (x->rank == 0 || x->numel / x->last != c->out->numel)
        return bad(c, "%lld rows give %lld indices, the output holds %lld",
                   LL(x->numel / x->last), LL(x->numel / x->last),
                   LL(c->out->numel));
    return true;
}

/* ---- matrices ----------------------------------------------------------- */

enum { QD_I8 = BR_MDT_I8, QD_I4 = BR_MDT_I4 };

/* The weight of a tile: [N, K] of floats, or integers with scales [N, groups].
 * I4 has the shape of its values, or as U8 that of its bytes. */
static bool
tile_weight(call *c)
{
    val *w = c->in[1], *s = c->n_in > 2 ? c->in[2] : NULL;
    int64_t k = c->i[BR_MP_K], q = int_or(c, BR_MP_qdtype, -1), group;

    if (w->rank != 2)
        return bad(c, "the weight has rank %u, needs 2: [N, K]", w->rank);
    if (q != QD_I8 && q != QD_I4) {
        if (!floats(c, w, "the weight (without qdtype 6 or 7)"))
            return false;
        if (k != w->last)
            return equal(c, BR_MP_K, w->last, "a row of the weight");
        if (s && (!is_float(s->dtype) || s->rows != 1))
            return bad(c,
                       "the bias needs a float dtype and one row, has %s "
                       "and %lld",
                       br_dt_name(s->dtype), LL(s->rows));
        return true;
    }
    if (!s)
        return bad(c, "a weight of integers (qdtype=%lld) without scales",
                   LL(q));
    if (q == QD_I4 ? w->dtype != BR_MDT_I4 && w->dtype != BR_MDT_U8
                   : w->dtype != BR_MDT_I8)
        return bad(c, "qdtype=%lld for a weight of dtype %s", LL(q),
                   br_dt_name(w->dtype));
    if (w->last != (w->dtype == BR_MDT_U8 ? k / 2 + k % 2 : k))
        return bad(c, "K=%lld but a row of the weight holds %lld", LL(k),
                   LL(w->last));
    group = int_or(c, BR_MP_group, k);
    if (group <= 0)
        return bad(c, "group=%lld must be positive", LL(group));
    if (!floats(c, s, "the scales"))
        return false;
    if (s->rank != 2 || s->shape[0] != w->shape[0] ||
        s->shape[1] != (k - 1) / group + 1)
        return bad(c, "K=%lld in groups of %lld needs scales [%lld, %lld]",
                   LL(k), LL(group), LL(w->shape[0]), LL((k - 1) / group + 1));
    return true;
}

/* Columns n_off:+N_tile of the output are rows of the weight. */
static bool
tile(call *c)
{
    val *x = c->in[0], *w = c->in[1], *o = c->out;
    int64_t k = c->i[BR_MP_K], n0 = c->i[BR_MP_n_off];
    int64_t n1 = n0 + c->i[BR_MP_N_tile];

    if (!floats(c, x, "x") || !floats(c, o, "the output") ||
        !positive(c, BR_MP_K) || !positive(c, BR_MP_N_tile) ||
        !not_negative(c, BR_MP_n_off) || !tile_weight(c))
        return false;
    if (x->rank < 1 || x->rank > 3 || o->rank < 1 || o->rank > 3)
        return bad(c, "x has rank %u and the output %u, both need 1 to 3",
                   x->rank, o->rank);
    if (x->last != k)
        return equal(c, BR_MP_K, x->last, "a row of x");
    if (x->rows != o->rows)
        return bad(c, "x has %lld rows, the output %lld", LL(x->rows),
                   LL(o->rows));
    if (n1 > o->last)
        return bad(c, "tile columns [%lld,%lld) outside the output's %lld",
                   LL(n0), LL(n1), LL(o->last));
    if (n1 > w->shape[0])
        return bad(c, "tile columns [%lld,%lld) outside the weight's %lld rows",
                   LL(n0), LL(n1), LL(w->shape[0]));
    c->w = (br_mega_rect){0, o->rows, n0, n1};
    c->r[1] = (br_mega_rect){n0, n1, 0, w->cols};
    c->partial = 1u << 1;
    if (c->n_in > 2) {
        bool bias = is_float(w->dtype);

        if (bias && n1 > c->in[2]->cols)
            return bad(c, "tile columns [%lld,%lld) outside the bias's %lld",
                       LL(n0), LL(n1), LL(c->in[2]->cols));
        c->r[2] = bias ? (br_mega_rect){0, 1, n0, n1}
                       : (br_mega_rect){n0, n1, 0, c->in[2]->cols};
        c->partial |= 1u << 2;
    }
    if (n0 != 0 || n1 != o->cols)
        c->partial |= BR_OP_PART_OUT;
    return true;
}

static bool
rule_GEMV_TILE(call *c)
{
    return tile(c);
}

/* Rows m_off:+M_tile; all rows when m_off is absent, as the reference. */
static bool
rule_GEMM_TILE(call *c)
{
    int64_t m0, m1;

    if (!positive(c, BR_MP_M_tile) || !tile(c))
        return false;
    if (!has(c, BR_MP_m_off))
        return true;
    m0 = c->i[BR_MP_m_off];
    m1 = m0 + c->i[BR_MP_M_tile];
    if (m0 < 0 || m1 > c->out->rows)
        return bad(c, "tile rows [%lld,%lld) outside the output's %lld", LL(m0),
                   LL(m1), LL(c->out->rows));
    c->w.r0 = m0;
    c->w.r1 = m1;
    if (m0 != 0 || m1 != c->out->rows) {
        c->r[0] = (br_mega_rect){m0, m1, 0, c->in[0]->cols};
        c->partial |= BR_OP_PART_OUT | 1;
    }
    return true;
}

/* Integers one per element, and a scale (and zero point) per group of a row. */
static bool
rule_DEQUANT(call *c)
{
    val *q = c->in[0];
    int64_t code = c->i[BR_MP_qdtype], group = c->i[BR_MP_group], n;

    if (code != QD_I8 && code != QD_I4)
        return bad(c, "qdtype=%lld must be 6 (I8) or 7 (I4)", LL(code));
    if (!dtype_is(c, q, "the input",
                  q->dtype == BR_MDT_I8 || q->dtype == BR_MDT_U8 ||
                      (q->dtype == BR_MDT_I4 && code == QD_I4),
                  code == QD_I4 ? "I4, I8 or U8" : "I8 or U8") ||
        !floats(c, c->out, "the output") || !positive(c, BR_MP_group))
        return false;
    if (q->numel != c->out->numel || q->last != c->out->last)
        return bad(c, "input and output have different shapes");
    if (q->rank == 0 || q->last % group != 0)
        return bad(c, "rows of %lld are no whole groups of %lld", LL(q->last),
                   LL(group));
    n = q->numel / group;
    for (uint32_t k = 1; k < c->n_in; k++) {
        if (!numbers(c, c->in[k], k == 1 ? "the scales" : "the zeros"))
            return false;
        if (c->in[k]->numel != n)
            return bad(c, "%s hold %lld values for %lld groups",
                       k == 1 ? "the scales" : "the zeros", LL(c->in[k]->numel),
                       LL(n));
    }
    return floats(c, c->in[1], "the scales");
}

/* ---- positions, caches, attention --------------------------------------- */

static bool
rule_ROPE(call *c)
{
    val *x = c->in[0], *pos = c->in[1];
    double theta = c->f[BR_MP_theta - BR_MP_eps];
    int64_t d = c->i[BR_MP_head_dim];

    if (!floats(c, x, "x") || !floats(c, c->out, "the output") ||
        !dtype_is(c, pos, "positions", pos->dtype == BR_MDT_I32, "I32") ||
        !positive(c, BR_MP_head_dim))
        return false;
    if (x->rank != 2 && x->rank != 3)
        return bad(c, "x has rank %u, needs 2 or 3: [.., heads, head_dim]",
                   x->rank);
    if (!same_shape(x, c->out))
        return bad(c, "x and the output have different shapes");
    if (d % 2 != 0 || d != x->last)
        return bad(c, "head_dim=%lld must be even and a row of x (%lld)", LL(d),
                   LL(x->last));
    if (x->rank == 3 && pos->numel != x->shape[0])
        return bad(c, "%lld positions for %lld rows", LL(pos->numel),
                   LL(x->shape[0])); /* rank 2: the first is for all heads */
    return theta > 0.0 || bad(c, "theta=%g must be positive", theta);
}

/* A cache is [slots, ..] or, of a batch, [B, slots, heads, head_dim]. Slots
 * s0:s1 of it, as a rectangle of the view. */
static br_mega_rect
slots(val *cache, int64_t s0, int64_t s1)
{
    int64_t n;

    if (cache->rank == 4) {
        n = cache->cols / cache->shape[1];
        return (br_mega_rect){0, cache->rows, s0 * n, s1 * n};
    }
    n = cache->rows / cache->shape[0];
    return (br_mega_rect){s0 * n, s1 * n, 0, cache->cols};
}

/* Input 1 is the cache that output 0 writes: it names the place. */
static bool
rule_KV_APPEND(call *c)
{
    val *rows = c->in[0], *cache = c->out;
    int64_t pos = c->i[BR_MP_pos], n, slot, have;

    if (!floats(c, rows, "the new rows") || !floats(c, cache, "the cache"))
        return false;
    if (c->in[1] != c->out)
        return bad(c, "input 1 and the output must be the same cache");
    if (cache->rank < 2 || rows->rank == 0)
        return bad(c, "a cache of rank %u and new rows of rank %u", cache->rank,
                   rows->rank);
    if (cache->rank == 4) {
        have = cache->shape[1];
        slot = cache->numel / have; /* of the whole batch */
        n = 1;
    } else {
        have = cache->shape[0];
        slot = cache->numel / have;
        n = rows->shape[0];
    }
    if (rows->numel % slot != 0 || rows->numel / slot != n)
        return bad(c, "%lld new elements are not %lld slots of %lld",
                   LL(rows->numel), LL(n), LL(slot));
    if (pos < 0 || n > have || pos > have - n)
        return bad(c, "slots [%lld,%lld) outside the cache's %lld", LL(pos),
                   LL(pos + n), LL(have));
    c->unread = 1u << 1;
    c->w = slots(cache, pos, pos + n);
    if (n != have)
        c->partial = BR_OP_PART_OUT;
    return true;
}

static bool
window(call *c, uint32_t k, int64_t batch)
{
    val *kv = c->in[k];
    int64_t s0 = c->i[BR_MP_kv_start], s1 = s0 + c->i[BR_MP_kv_len];
    const int64_t *dim = kv->shape + (batch ? 1 : 0);
    const char *what = k == 1 ? "the key cache" : "the value cache";

    if (!floats(c, kv, what))
        return false;
    if (kv->rank != (batch ? 4u : 3u))
        return bad(c, "%s has rank %u, needs %u", what, kv->rank,
                   batch ? 4u : 3u);
    if ((batch && kv->shape[0] != batch) || dim[1] != c->i[BR_MP_n_kv_heads] ||
        dim[2] != c->i[BR_MP_head_dim])
        return bad(c,
                   "a slot of %s is [%lld, %lld], the op has %lld heads of "
                   "%lld%s",
                   what, LL(dim[1]), LL(dim[2]), LL(c->i[BR_MP_n_kv_heads]),
                   LL(c->i[BR_MP_head_dim]),
                   batch ? ", or the batch differs" : "");
    if (s1 > dim[0])
        return bad(c, "slots [%lld,%lld) outside %s's %lld", LL(s0), LL(s1),
                   what, LL(dim[0]));
    c->r[k] = slots(kv, s0, s1);
    c->partial |= 1u << k;
    return true;
}

/* Queries [heads, head_dim], or [B, heads, head_dim] over caches of a batch.
 * With PARTIAL the output is [heads, head_dim + 2] = acc | max | sum, and an
 * empty window is fine. */
static bool
rule_ATTENTION_TILE(call *c)
{
    val *q = c->in[0];
    int64_t h = c->i[BR_MP_n_heads], d = c->i[BR_MP_head_dim];
    int64_t batch = q->rank == 3 ? q->shape[0] : 0, want;
    bool part = int_or(c, BR_MP_flags, 0) & BR_MEGA_FLAG_PARTIAL;

    if (!floats(c, q, "q") || !floats(c, c->out, "the output") ||
        !positive(c, BR_MP_head_dim) || !positive(c, BR_MP_n_heads) ||
        !positive(c, BR_MP_n_kv_heads) || !not_negative(c, BR_MP_kv_start) ||
        !not_negative(c, BR_MP_kv_len) || (!part && !positive(c, BR_MP_kv_len)))
        return false;
    if (h % c->i[BR_MP_n_kv_heads] != 0)
        return bad(c, "n_heads=%lld is no multiple of n_kv_heads=%lld", LL(h),
                   LL(c->i[BR_MP_n_kv_heads]));
    if ((q->rank != 2 && q->rank != 3) || q->shape[q->rank - 2] != h ||
        q->last != d)
        return bad(c, "q needs shape [%lld, %lld] or a batch of it", LL(h),
                   LL(d));
    if (part && batch)
        return bad(c, "a partial attention (flags bit 1) over a batch");
    if (!window(c, 1, batch) || !window(c, 2, batch))
        return false;
    want = part ? h * (d + 2) : q->numel;
    return c->out->numel == want ||
           bad(c, "the output holds %lld elements, the op makes %lld",
               LL(c->out->numel), LL(want));
}

static bool
rule_ATTENTION_COMBINE(call *c)
{
    int64_t d, h;

    if (!has(c, BR_MP_head_dim))
        return bad(c, "missing param 'head_dim'");
    d = c->i[BR_MP_head_dim];
    if (!positive(c, BR_MP_head_dim) || !floats(c, c->out, "the output"))
        return false;
    h = int_or(c, BR_MP_n_heads, c->in[0]->numel / (d + 2));
    if (h <= 0)
        return bad(c, "n_heads=%lld must be positive", LL(h));
    for (uint32_t k = 0; k < c->n_in; k++)
        if (!floats(c, c->in[k], "a part"))
            return false;
        else if (c->in[k]->numel != h * (d + 2))
            return bad(c,
                       "input %u holds %lld elements, %lld heads of "
                       "%lld + 2 are %lld",
                       k, LL(c->in[k]->numel), LL(h), LL(d), LL(h * (d + 2)));
    return c->out->numel == h * d ||
           bad(c, "the output holds %lld elements, the op makes %lld",
               LL(c->out->numel), LL(h * d));
}

/* Its steps are ops of their own: check_recipe.c. */
static bool
rule_FUSED(call *c)
{
    (void)c;
    return true;
}

/* ---- the door ----------------------------------------------------------- */

bool
br_op_check(br_op_call *c)
{
    c->partial = 0;
    c->unread = 0;
    if (br_mega_is_step(c->op))
        return br_step_rule(c);
    if (c->out && (c->out->dtype == BR_MDT_I4 || c->out->dtype >= BR_MDT_BLOCK))
        return bad(c, "the output has dtype %s, which no op writes",
                   br_dt_name(c->out->dtype));
    switch ((br_mega_op)c->op) {
#define X(name, code, lo, hi, out, req, doc) \
    case BR_MOP_##name:                      \
        return rule_##name(c);
#include "mega/minst.def"
#undef X
#define X(name, code, in, out, attrs, doc) case BR_MOP_STEP_##name:
#include "ir/ops.def"
#undef X
    case BR_MOP_LIMIT: break;
    }
    return bad(c, "opcode %d is not known", c->op);
}

void
br_op_val_of(br_op_val *v, const br_mega_buffer *b)
{
    const int64_t *s = b->shape;

    *v = (br_op_val){.shape = s,
                     .numel = br_mega_numel(b),
                     .rank = b->rank,
                     .dtype = b->dtype,
                     .kind = b->kind};
    v->ok = b->rank <= BR_MEGA_MAX_RANK && v->numel > 0 &&
            br_mega_dtype_bytes(b->dtype, v->numel) >= 0;
    v->rows = 1;
    v->last = 1;
    if (v->ok && b->rank > 0) {
        v->last = s[b->rank - 1];
        v->rows = b->rank == 4 ? s[0] : b->rank == 1 ? 1 : v->numel / v->last;
    }
    v->cols = v->ok ? v->numel / v->rows : 0;
}

bool
br_op_elementwise(int op)
{
    return op == BR_MOP_COPY || op == BR_MOP_ADD || op == BR_MOP_MUL ||
           op == BR_MOP_GELU || op == BR_MOP_SILU_MUL ||
           op == BR_MOP_ALLREDUCE_SHARD;
}

bool
br_op_in_place(const br_op_call *c, uint32_t k)
{
    return br_op_elementwise(c->op) && c->in[k]->numel == c->out->numel &&
           same_shape(c->in[k], c->out) &&
           br_mega_dtype_bits(c->in[k]->dtype) ==
               br_mega_dtype_bits(c->out->dtype);
}

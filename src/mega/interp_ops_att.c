/* interp_ops_att.c - rotary positions, the KV cache, attention.
 *
 * Shapes: q [B, heads, hd], caches [B, max_seq, kv_heads, hd]; with B = 1 the
 * first dimension may be absent. Query head h reads kv head h / (heads /
 * kv_heads). A partial (split-KV) result is a row per head: acc [hd] | m | l,
 * the sum of exp(s - m) * v, the largest score, the sum of exp(s - m).
 * SPDX-License-Identifier: Apache-2.0 */
#include "mega/interp_int.h"

#include <math.h>
#include <string.h>

/* ---- ROPE ------------------------------------------------------------- */

typedef struct rope {
    const float *x;
    float *y;
    int64_t heads, half;
    float theta;
} rope;

/* Frequencies are f32, as upstream: 1 / theta^(i / half), then pos times that,
 * then cos and sin of the f32 angle. */
static void
rope_rows(const rope *r, int64_t first, float pos)
{
    int64_t hd = r->half * 2;

    for (int64_t i = 0; i < r->half; i++) {
        float e = (float)i / (float)r->half;
        float freq = 1.0f / (float)pow((double)r->theta, (double)e);
        float angle = pos * freq;
        float co = (float)cos((double)angle), si = (float)sin((double)angle);

        for (int64_t h = first; h < first + r->heads; h++) {
            const float *x = r->x + h * hd;
            float *y = r->y + h * hd;

            y[i] = x[i] * co - x[i + r->half] * si;
            y[i + r->half] = x[i + r->half] * co + x[i] * si;
        }
    }
}

/* x [heads, hd] at the first position, or x [S, heads, hd] at S of them; the
 * first half of a head rotates against the second. */
br_code
br_vmop_ROPE(br_vm_call *c)
{
    const br_vmt *t = c->in[0];
    int64_t hd, rows = t->rank == 3 ? t->shape[0] : 1, pos;
    rope r;

    BR_TRY(br_vm_int(c, BR_MP_head_dim, &hd));
    BR_TRY(br_vm_real(c, BR_MP_theta, &r.theta));
    if (t->rank < 2 || t->rank > 3 || t->row != hd || hd <= 0 || hd % 2 ||
        t->numel != c->out[0]->numel)
        return br_vm_fail(c, BR_E_FORMAT,
                          "%s does not hold heads of head_dim %lld, or not as "
                          "many as the output",
                          br_vm_operand(c, 0), (long long)hd);
    if (t->rank == 3 ? c->in[1]->numel != rows : c->in[1]->numel < 1)
        return br_vm_fail(c, BR_E_FORMAT, "%s: %lld positions for %lld rows",
                          br_vm_operand(c, 1), (long long)c->in[1]->numel,
                          (long long)rows);
    BR_TRY(br_vm_work(c, br_vm_mul(rows, hd)));
    BR_TRY(br_vm_work(c, t->numel));
    r.heads = t->shape[t->rank - 2];
    r.half = hd / 2;
    r.x = br_vm_all(c, 0);
    r.y = r.x ? br_vm_scratch(c, t->numel) : NULL;
    if (!r.y)
        return c->st->code;
    for (int64_t s = 0; s < rows; s++) {
        BR_TRY(br_vm_index(c, 1, s, &pos));
        rope_rows(&r, s * r.heads, (float)pos);
    }
    return br_vm_store(c, 0, t->numel, r.y);
}

/* ---- the cache -------------------------------------------------------- */

/* new [B, rows * row] -> cache [B, max_seq, row], slots pos .. pos + rows; a
 * cache of rank below 4 is [max_seq, row]. Input 1 is the cache as well and
 * names the place: nothing of it is read. */
br_code
br_vmop_KV_APPEND(br_vm_call *c)
{
    const br_vmt *t = c->in[0], *to = c->out[0];
    int64_t batch = to->rank == 4 ? to->shape[0] : 1;
    int64_t seq = to->rank < 2 ? 0 : to->shape[to->rank == 4], pos, rows, row;

    BR_TRY(br_vm_int(c, BR_MP_pos, &pos));
    if (c->in[1] != to)
        return br_vm_fail(c, BR_E_FORMAT, "%s is not the cache that it writes",
                          br_vm_operand(c, 1));
    row = to->numel && seq ? to->numel / batch / seq : 0;
    rows = row ? t->numel / batch / row : 0;
    if (rows < 1 || t->numel != rows * batch * row)
        return br_vm_fail(c, BR_E_FORMAT,
                          "%s: %lld elements are no rows of %lld for %lld "
                          "sequences",
                          br_vm_operand(c, 0), (long long)t->numel,
                          (long long)row, (long long)batch);
    if (pos < 0 || rows > seq || pos > seq - rows)
        return br_vm_fail(c, BR_E_FORMAT, "pos %lld + %lld rows exceed %lld",
                          (long long)pos, (long long)rows, (long long)seq);
    for (int64_t b = 0; b < batch; b++)
        BR_TRY(br_vm_move(c, 0, b * rows * row, (b * seq + pos) * row,
                          rows * row));
    return BR_OK;
}

/* ---- attention -------------------------------------------------------- */

typedef struct att {
    int64_t batch, hd, heads, kv_heads;
    int64_t seq[2]; /* slots of the two caches */
    int64_t start, len;
    float scale;
    bool partial;
    int64_t out_row; /* floats per head of the result */
    float *score;    /* [len] */
    float *buf;      /* [hd]: a key or value when not f32 */
} att;

static br_code
att_params(br_vm_call *c, att *a)
{
    int64_t flags;

    BR_TRY(br_vm_int(c, BR_MP_head_dim, &a->hd));
    BR_TRY(br_vm_int(c, BR_MP_kv_start, &a->start));
    BR_TRY(br_vm_int(c, BR_MP_kv_len, &a->len));
    BR_TRY(br_vm_int(c, BR_MP_n_heads, &a->heads));
    BR_TRY(br_vm_int(c, BR_MP_n_kv_heads, &a->kv_heads));
    BR_TRY(br_vm_real(c, BR_MP_scale, &a->scale));
    BR_TRY(br_vm_int_or(c, BR_MP_flags, 0, &flags));
    a->partial = flags & BR_MEGA_FLAG_PARTIAL;
    a->out_row = a->partial ? a->hd + 2 : a->hd;
    if (a->hd <= 0 || a->kv_heads <= 0 || a->heads <= 0 ||
        a->heads % a->kv_heads)
        return br_vm_fail(c, BR_E_FORMAT, "%lld heads of %lld on %lld kv heads",
                          (long long)a->heads, (long long)a->hd,
                          (long long)a->kv_heads);
    return BR_OK;
}

/* Cache k (0: keys, 1: values) is [slots, kv_heads, hd] or a batch of that,
 * and holds the window. */
static br_code
att_cache(br_vm_call *c, att *a, uint32_t k)
{
    const br_vmt *t = c->in[k + 1];
    const int64_t *dim = t->shape + (t->rank == 4);
    int64_t batch = t->rank == 4 ? t->shape[0] : 1;

    if (t->rank < 3 || dim[1] != a->kv_heads || dim[2] != a->hd ||
        (k > 0 && batch != a->batch))
        return br_vm_fail(c, BR_E_FORMAT, "%s is not of %lld heads of %lld",
                          br_vm_operand(c, k + 1), (long long)a->kv_heads,
                          (long long)a->hd);
    if (a->start < 0 || a->len < 0 || a->len > dim[0] ||
        a->start > dim[0] - a->len)
        return br_vm_fail(c, BR_E_FORMAT,
                          "keys %lld + %lld exceed the %lld of %s",
                          (long long)a->start, (long long)a->len,
                          (long long)dim[0], br_vm_operand(c, k + 1));
    a->batch = batch;
    a->seq[k] = dim[0];
    return BR_OK;
}

static br_code
att_shapes(br_vm_call *c, att *a)
{
    int64_t rows;

    BR_TRY(att_cache(c, a, 0));
    BR_TRY(att_cache(c, a, 1));
    rows = br_vm_mul(a->batch, a->heads);
    if (c->in[0]->numel != br_vm_mul(rows, a->hd) ||
        c->out[0]->numel != br_vm_mul(rows, a->out_row))
        return br_vm_fail(c, BR_E_FORMAT,
                          "%lld heads of %lld do not fit %s or %s",
                          (long long)rows, (long long)a->hd,
                          br_vm_operand(c, 0), br_vm_operand(c, 100));
    return br_vm_work(c, br_vm_mul(rows * 2, br_vm_mul(a->len + 1, a->hd)));
}

/* Row of cache input `in` for key j, head h of the kv heads, sequence b. */
static const float *
cache_row(br_vm_call *c, const att *a, uint32_t in, const int64_t bhj[3])
{
    int64_t slot = bhj[0] * a->seq[in - 1] + a->start + bhj[2];
    int64_t at = slot * a->kv_heads + bhj[1];

    return br_vm_f32(c, in, at * a->hd, a->hd, a->buf);
}

/* One query head over its window. out: a->out_row floats. */
static br_code
att_head(br_vm_call *c, const att *a, const float *q, int64_t bhj[3],
         float *out)
{
    float max = -INFINITY, sum, p;
    const float *kv;

    memset(out, 0, (size_t)a->out_row * sizeof *out);
    for (bhj[2] = 0; bhj[2] < a->len; bhj[2]++) {
        kv = cache_row(c, a, 1, bhj);
        if (!kv)
            return c->st->code;
        a->score[bhj[2]] = c->vm->dot(q, kv, (size_t)a->hd) * a->scale;
        max = a->score[bhj[2]] > max ? a->score[bhj[2]] : max;
    }
    for (int64_t j = 0; j < a->len; j++)
        a->score[j] = (float)exp((double)(a->score[j] - max));
    sum = br_vm_sum(a->score, a->len);
    for (bhj[2] = 0; bhj[2] < a->len; bhj[2]++) {
        kv = cache_row(c, a, 2, bhj);
        if (!kv)
            return c->st->code;
        p = a->partial ? a->score[bhj[2]] : a->score[bhj[2]] / sum;
        for (int64_t d = 0; d < a->hd; d++)
            out[d] = fmaf(p, kv[d], out[d]);
    }
    if (a->partial) {
        out[a->hd] = max;
        out[a->hd + 1] = sum;
    }
    return BR_OK;
}

/* q [B, heads, hd], k and v caches -> out [B, heads * hd], or with flags bit 1
 * partials [B, heads, hd + 2]. No keys: zeros, or (0, -inf, 0). Flags bit 0
 * (causal) has no effect on one query; a fourth input is not read. */
br_code
br_vmop_ATTENTION_TILE(br_vm_call *c)
{
    const float *q;
    float *y;
    att a = {.hd = 0};

    BR_TRY(att_params(c, &a));
    BR_TRY(att_shapes(c, &a));
    q = br_vm_all(c, 0);
    a.score = q ? br_vm_scratch(c, a.len) : NULL;
    a.buf = a.score ? br_vm_scratch(c, a.hd) : NULL;
    y = a.buf ? br_vm_scratch(c, c->out[0]->numel) : NULL;
    if (!y)
        return c->st->code;
    for (int64_t r = 0; r < a.batch * a.heads; r++) {
        int64_t h = r % a.heads / (a.heads / a.kv_heads);

        BR_TRY(att_head(c, &a, q + r * a.hd, (int64_t[]){r / a.heads, h, 0},
                        y + r * a.out_row));
    }
    return br_vm_store(c, 0, c->out[0]->numel, y);
}

/* head_dim from the parameter, or from the sizes: a partial has two floats
 * more per head than the result. */
static br_code
combine_shape(br_vm_call *c, int64_t *heads, int64_t *hd)
{
    int64_t part = c->in[0]->numel, whole = c->out[0]->numel;

    *heads = (part - whole) / 2;
    *hd = *heads > 0 ? whole / *heads : 0;
    BR_TRY(br_vm_int_or(c, BR_MP_head_dim, *hd, hd));
    for (uint32_t k = 0; k < c->n_in; k++)
        if (*heads <= 0 || *hd <= 0 || br_vm_mul(*heads, *hd) != whole ||
            c->in[k]->numel != br_vm_mul(*heads, *hd + 2))
            return br_vm_fail(c, BR_E_FORMAT,
                              "%s is no partial of the result's %lld elements "
                              "at head_dim %lld",
                              br_vm_operand(c, k), (long long)whole,
                              (long long)*hd);
    return br_vm_work(c, br_vm_mul(part, c->n_in));
}

/* One head of all partials: weights exp(m_p - m), a partial without keys
 * (l = 0) weighs nothing. */
static void
combine_head(const float *const *part, uint32_t n, int64_t hd, float *out)
{
    float m = -INFINITY, l = 0, w;

    memset(out, 0, (size_t)hd * sizeof *out);
    for (uint32_t p = 0; p < n; p++)
        m = part[p][hd] > m ? part[p][hd] : m;
    for (uint32_t p = 0; p < n; p++) {
        w = part[p][hd + 1] > 0 ? (float)exp((double)(part[p][hd] - m)) : 0;
        l = fmaf(part[p][hd + 1], w, l);
        for (int64_t d = 0; d < hd; d++)
            out[d] = fmaf(part[p][d], w, out[d]);
    }
    l = l < 1e-20f ? 1e-20f : l; /* a NaN stays one */
    for (int64_t d = 0; d < hd; d++)
        out[d] /= l;
}

/* 2..8 partials [heads, hd + 2] -> out [heads * hd], partials ascending. */
br_code
br_vmop_ATTENTION_COMBINE(br_vm_call *c)
{
    const float *part[BR_MEGA_MAX_INPUTS], *at[BR_MEGA_MAX_INPUTS];
    int64_t heads, hd;
    float *y;

    BR_TRY(combine_shape(c, &heads, &hd));
    for (uint32_t k = 0; k < c->n_in; k++) {
        part[k] = br_vm_all(c, k);
        if (!part[k])
            return c->st->code;
    }
    y = br_vm_scratch(c, c->out[0]->numel);
    if (!y)
        return c->st->code;
    for (int64_t h = 0; h < heads; h++) {
        for (uint32_t k = 0; k < c->n_in; k++)
            at[k] = part[k] + h * (hd + 2);
        combine_head(at, c->n_in, hd, y + h * hd);
    }
    return br_vm_store(c, 0, c->out[0]->numel, y);
}

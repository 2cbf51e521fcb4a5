/* interp_ops.c - moves, element-wise ops, norms, softmax, argmax, all-reduce.
 *
 * Arithmetic is f32 with one rounding per operation, as written; no
 * contraction. Transcendental functions are evaluated in double by the C
 * library and rounded once: its double results are good to an ulp of double,
 * so the f32 is the correctly rounded one but for about one argument in 2^28.
 * (Exact mode will bring polynomials of our own; decided in the house plan.)
 * SPDX-License-Identifier: Apache-2.0 */
#include "mega/interp_int.h"

#include <math.h>
#include <string.h>

/* ---- shapes ----------------------------------------------------------- */

static br_code
same_numel(br_vm_call *c, uint32_t k)
{
    if (c->in[k]->numel == c->out[0]->numel)
        return BR_OK;
    return br_vm_fail(c, BR_E_FORMAT, "%s has %lld elements, the output %lld",
                      br_vm_operand(c, k), (long long)c->in[k]->numel,
                      (long long)c->out[0]->numel);
}

/* How an input lies under the output: the step of each dimension, 0 where it
 * is repeated. Dimensions align from the last one, as numpy does; one of 1
 * repeats, and leading ones of 1 may be there or not. */
typedef struct spread {
    int64_t step[BR_MEGA_MAX_RANK];
    bool flat; /* the same elements in the same order */
} spread;

static br_code
spread_of(br_vm_call *c, uint32_t k, spread *s)
{
    const br_vmt *in = c->in[k], *out = c->out[0];
    int64_t step = 1;

    memset(s, 0, sizeof *s);
    for (int i = 1; i <= in->rank; i++) {
        int64_t n = in->shape[in->rank - i];

        if (i <= out->rank && n == out->shape[out->rank - i])
            s->step[out->rank - i] = step;
        else if (n != 1)
            return br_vm_fail(c, BR_E_FORMAT,
                              "%s does not spread over the output's shape",
                              br_vm_operand(c, k));
        step *= n;
    }
    s->flat = in->numel == out->numel;
    return BR_OK;
}

static int64_t
spread_at(const spread *s, const br_vmt *out, int64_t i)
{
    int64_t at = 0;

    if (s->flat)
        return i;
    for (int d = out->rank - 1; d >= 0; d--) {
        at += i % out->shape[d] * s->step[d];
        i /= out->shape[d];
    }
    return at;
}

/* ---- moves ------------------------------------------------------------ */

br_code
br_vmop_NOP(br_vm_call *c)
{
    (void)c;
    return BR_OK;
}

/* out = x, cast. x [..] spreads over out [..]. */
br_code
br_vmop_COPY(br_vm_call *c)
{
    spread s;

    BR_TRY(spread_of(c, 0, &s));
    if (s.flat)
        return br_vm_move(c, 0, 0, 0, c->out[0]->numel);
    for (int64_t i = 0; i < c->out[0]->numel; i++)
        BR_TRY(br_vm_move(c, 0, spread_at(&s, c->out[0], i), i, 1));
    return BR_OK;
}

/* out[i] = table[ids[i]]: ids [..n], table [V, ..row], out n * row elements.
 * hidden is a row of the table or of the output: the lowering also uses EMBED
 * to give a row another shape. */
br_code
br_vmop_EMBED(br_vm_call *c)
{
    const br_vmt *ids = c->in[0], *table = c->in[1], *out = c->out[0];
    int64_t rows = table->rank ? table->shape[0] : 0, row, id, hidden;

    BR_TRY(br_vm_int(c, BR_MP_hidden, &hidden));
    if (rows == 0)
        return br_vm_fail(c, BR_E_FORMAT, "%s has no rows",
                          br_vm_operand(c, 1));
    row = table->numel / rows;
    if (hidden != row && hidden != out->row)
        return br_vm_fail(c, BR_E_FORMAT,
                          "hidden %lld is neither the row of %s (%lld) nor of "
                          "%s (%lld)",
                          (long long)hidden, br_vm_operand(c, 1),
                          (long long)row, br_vm_operand(c, 100),
                          (long long)out->row);
    if (br_vm_mul(ids->numel, row) != out->numel)
        return br_vm_fail(c, BR_E_FORMAT,
                          "%lld rows of %lld elements do not fill %s of %lld",
                          (long long)ids->numel, (long long)row,
                          br_vm_operand(c, 100), (long long)out->numel);
    BR_TRY(br_vm_work(c, ids->numel));
    for (int64_t i = 0; i < ids->numel; i++) {
        BR_TRY(br_vm_index(c, 0, i, &id));
        if (id < 0 || id >= rows)
            return br_vm_fail(c, BR_E_FORMAT,
                              "%s: element %lld is %lld, outside the %lld rows "
                              "of %s",
                              br_vm_operand(c, 0), (long long)i, (long long)id,
                              (long long)rows, br_vm_operand(c, 1));
        BR_TRY(br_vm_move(c, 1, id * row, i * row, row));
    }
    return BR_OK;
}

/* ---- element-wise ----------------------------------------------------- */

/* b is 0 where there is one input */
typedef float (*binary)(float a, float b);

static br_code
zip(br_vm_call *c, binary f)
{
    const br_vmt *out = c->out[0];
    const float *a, *b = NULL;
    bool two = c->n_in > 1;
    spread sa, sb;
    float *y;

    BR_TRY(spread_of(c, 0, &sa));
    if (two)
        BR_TRY(spread_of(c, 1, &sb));
    BR_TRY(br_vm_work(c, out->numel));
    a = br_vm_all(c, 0);
    if (a && two)
        b = br_vm_all(c, 1);
    y = c->st->code ? NULL : br_vm_scratch(c, out->numel);
    if (!y)
        return c->st->code;
    for (int64_t i = 0; i < out->numel; i++)
        y[i] = f(a[spread_at(&sa, out, i)],
                 two ? b[spread_at(&sb, out, i)] : 0.0f);
    return br_vm_store(c, 0, out->numel, y);
}

static float
add(float a, float b)
{
    return a + b;
}

static float
mul(float a, float b)
{
    return a * b;
}

/* silu(a) * b; silu(a) = a / (1 + exp(-a)) rounded to f32 first */
static float
silu_mul(float a, float b)
{
    return (float)((double)a / (1 + exp(-(double)a))) * b;
}

br_code
br_vmop_ADD(br_vm_call *c)
{
    return zip(c, add);
}

br_code
br_vmop_SILU_MUL(br_vm_call *c)
{
    return zip(c, silu_mul);
}

/* x/2 * (1 + erf(x / sqrt 2)): in double, rounded once */
static float
gelu(float x, float unused)
{
    (void)unused;
    return (float)(0.5 * (double)x *
                   (1 + erf((double)x * 0.70710678118654752440)));
}

br_code
br_vmop_GELU(br_vm_call *c)
{
    return zip(c, gelu);
}

/* a * b, or a * scale (1 when absent). */
br_code
br_vmop_MUL(br_vm_call *c)
{
    int64_t n = c->out[0]->numel;
    const float *a;
    float scale, *y;
    spread s;

    if (c->n_in == 2)
        return zip(c, mul);
    BR_TRY(br_vm_real_or(c, BR_MP_scale, 1.0f, &scale));
    BR_TRY(spread_of(c, 0, &s));
    BR_TRY(br_vm_work(c, n));
    a = br_vm_all(c, 0);
    y = a ? br_vm_scratch(c, n) : NULL;
    if (!y)
        return c->st->code;
    for (int64_t i = 0; i < n; i++)
        y[i] = a[spread_at(&s, c->out[0], i)] * scale;
    return br_vm_store(c, 0, n, y);
}

/* out = in[0] + in[1] + ..., ascending. All of one count. */
br_code
br_vmop_ALLREDUCE_SHARD(br_vm_call *c)
{
    int64_t n = c->out[0]->numel;
    float *y = br_vm_scratch(c, n);

    if (!y)
        return c->st->code;
    for (uint32_t k = 0; k < c->n_in; k++) {
        const float *x;

        BR_TRY(same_numel(c, k));
        BR_TRY(br_vm_work(c, n));
        x = br_vm_all(c, k);
        if (!x)
            return c->st->code;
        for (int64_t i = 0; i < n; i++)
            y[i] = k ? y[i] + x[i] : x[i];
    }
    return br_vm_store(c, 0, n, y);
}

/* ---- norms ------------------------------------------------------------ */

/* x [.., hidden], w [hidden], out as x. */
static br_code
norm_shapes(br_vm_call *c)
{
    int64_t hidden;

    BR_TRY(br_vm_int(c, BR_MP_hidden, &hidden));
    BR_TRY(same_numel(c, 0));
    if (c->in[0]->row != hidden)
        return br_vm_fail(c, BR_E_FORMAT, "%s has rows of %lld, hidden is %lld",
                          br_vm_operand(c, 0), (long long)c->in[0]->row,
                          (long long)hidden);
    for (uint32_t k = 1; k < c->n_in; k++)
        if (c->in[k]->numel != hidden)
            return br_vm_fail(c, BR_E_FORMAT,
                              "%s has %lld elements, hidden is %lld",
                              br_vm_operand(c, k), (long long)c->in[k]->numel,
                              (long long)hidden);
    return br_vm_work(c, c->in[0]->numel);
}

/* y = x * r * w with r = 1 / sqrt(mean(x^2) + eps) of the row */
br_code
br_vmop_RMSNORM(br_vm_call *c)
{
    int64_t n = c->in[0]->row, rows = c->in[0]->rows;
    const float *x, *w;
    float eps, *y;

    BR_TRY(br_vm_real(c, BR_MP_eps, &eps));
    BR_TRY(norm_shapes(c));
    x = br_vm_all(c, 0);
    w = x ? br_vm_all(c, 1) : NULL;
    y = w ? br_vm_scratch(c, c->in[0]->numel) : NULL;
    if (!y)
        return c->st->code;
    for (int64_t r = 0; n && r < rows; r++) {
        const float *xr = x + r * n;
        float mean = c->vm->dot(xr, xr, (size_t)n) / (float)n;
        float s = (float)(1 / sqrt((double)(mean + eps)));

        for (int64_t i = 0; i < n; i++)
            y[r * n + i] = xr[i] * s * w[i];
    }
    return br_vm_store(c, 0, c->in[0]->numel, y);
}

/* One row of LAYERNORM: d holds x - mean; bias may be NULL. */
static void
layer_row(const float *x, const float *w, const float *bias, int64_t n,
          float eps, float *y)
{
    float mean = br_vm_sum(x, n) / (float)n, var, s;

    for (int64_t i = 0; i < n; i++)
        y[i] = x[i] - mean;
    var = br_vm_dot(y, y, (size_t)n) / (float)n;
    s = (float)(1 / sqrt((double)(var + eps)));
    for (int64_t i = 0; i < n; i++)
        y[i] = bias ? y[i] * s * w[i] + bias[i] : y[i] * s * w[i];
}

/* y = (x - mean) * r * w [+ b] with r = 1 / sqrt(mean((x - mean)^2) + eps) */
br_code
br_vmop_LAYERNORM(br_vm_call *c)
{
    int64_t n = c->in[0]->row, rows = c->in[0]->rows;
    const float *x, *w, *b = NULL;
    float eps, *y;

    BR_TRY(br_vm_real(c, BR_MP_eps, &eps));
    BR_TRY(norm_shapes(c));
    x = br_vm_all(c, 0);
    w = x ? br_vm_all(c, 1) : NULL;
    if (w && c->n_in > 2)
        b = br_vm_all(c, 2);
    y = c->st->code ? NULL : br_vm_scratch(c, c->in[0]->numel);
    if (!y)
        return c->st->code;
    for (int64_t r = 0; n && r < rows; r++)
        layer_row(x + r * n, w, b, n, eps, y + r * n);
    return br_vm_store(c, 0, c->in[0]->numel, y);
}

/* ---- softmax and argmax ----------------------------------------------- */

/* y[i * step] = exp(x - max) / sum over n elements; line is scratch of n */
static void
softmax_line(const float *x, int64_t n, int64_t step, float *line, float *y)
{
    float max = -INFINITY, sum;

    for (int64_t i = 0; i < n; i++)
        max = x[i * step] > max ? x[i * step] : max;
    for (int64_t i = 0; i < n; i++)
        line[i] = (float)exp((double)(x[i * step] - max));
    sum = br_vm_sum(line, n);
    for (int64_t i = 0; i < n; i++)
        y[i * step] = line[i] / sum;
}

/* Over dimension dim (default the last, negative from the end): x seen as
 * [outer, n, inner]. */
br_code
br_vmop_SOFTMAX(br_vm_call *c)
{
    const br_vmt *t = c->in[0];
    int64_t dim, n = 1, inner = 1, rank = BR_MAX(t->rank, 1);
    const float *x;
    float *y, *line;

    BR_TRY(br_vm_int_or(c, BR_MP_dim, -1, &dim));
    BR_TRY(same_numel(c, 0));
    if (dim < -rank || dim >= rank)
        return br_vm_fail(c, BR_E_FORMAT, "dim %lld of a tensor of rank %d",
                          (long long)dim, (int)t->rank);
    dim += dim < 0 ? rank : 0;
    for (int64_t i = dim + 1; i < t->rank; i++)
        inner *= t->shape[i];
    n = t->rank ? t->shape[dim] : 1;
    BR_TRY(br_vm_work(c, t->numel));
    x = br_vm_all(c, 0);
    y = x ? br_vm_scratch(c, t->numel) : NULL;
    line = y ? br_vm_scratch(c, n) : NULL;
    if (!line)
        return c->st->code;
    for (int64_t at = 0; at < t->numel; at += n * inner)
        for (int64_t i = 0; i < inner; i++)
            softmax_line(x + at + i, n, inner, line, y + at + i);
    return br_vm_store(c, 0, t->numel, y);
}

/* Lowest index of the largest; a NaN counts as larger than all, as upstream. */
static int64_t
argmax(const float *x, int64_t n)
{
    int64_t best = 0;

    for (int64_t i = 1; i < n; i++)
        if (x[i] > x[best] || (isnan(x[i]) && !isnan(x[best])))
            best = i;
    return best;
}

/* logits [.., V] -> out [..] */
br_code
br_vmop_SAMPLE_ARGMAX(br_vm_call *c)
{
    const br_vmt *t = c->in[0];
    const float *x;
    double v;

    if (t->row == 0 || t->rows != c->out[0]->numel)
        return br_vm_fail(
            c, BR_E_FORMAT, "%lld rows of %lld logits for %lld tokens",
            (long long)t->rows, (long long)t->row, (long long)c->out[0]->numel);
    BR_TRY(br_vm_work(c, t->numel));
    x = br_vm_all(c, 0);
    if (!x)
        return c->st->code;
    for (int64_t r = 0; r < t->rows; r++) {
        v = (double)argmax(x + r * t->row, t->row);
        BR_TRY(br_vm_store_f64(c, r, 1, &v));
    }
    return BR_OK;
}

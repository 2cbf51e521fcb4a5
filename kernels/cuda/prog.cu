/* prog.cu - a task program in one launch, by the device contract of amk/abi.h.
 *
 *   worker = block    wait for counters | run the task | signal
 *
 * An op computes what docs/opcodes.md says, so its bits are the reference
 * VM's: dot products in 16 lanes, sums likewise, one rounding each. Functions
 * come from doubles (brass_math.h) as there. The host has proved that a task
 * stays inside its operands; what no proof can know (a row's number, a value
 * that an integer does not hold) is looked at here and ends the launch.
 *
 * Obvious before fast: the programs of models have kernels of their own
 * (nodes.cu, mega_decode.cu). Compiled with -ffp-contract=off.
 * SPDX-License-Identifier: Apache-2.0 */
#include "device.cuh"
#include "prog_table.h"

#include "../../include/cuda/brass_math.h"

enum { PG_THREADS = BR_PG_WARPS * 32 };

typedef const amk_buffer_t buf;

/* A function of its own: inlined everywhere the kernel is 1.8 MB of PTX, and
 * a driver compiles it for half a minute. */
#define PG_FN static __device__ __attribute__((noinline))

/* An op at work. */
struct pg {
    const amk_program_t *p;
    const struct br_pg_run *r;
    const amk_instruction_t *t;
    buf *in[AMK_MAX_INPUTS], *out;
    u64 *place; /* results wait here where the output is an input, too */
};

/* ---- numbers as buffers hold them ------------------------------------------- */

struct pg_mini { /* src/mega/dtype.c */
    i32 mbits, bias;
    u32 sign, max, over, nan;
};

BR_DEV struct pg_mini
pg_mini_of(i32 dtype)
{
    switch (dtype) {
    case AMK_F16: return {10, 15, 0x8000, 0x7bff, 0x7c00, 0x7e00};
    case AMK_BF16: return {7, 127, 0x8000, 0x7f7f, 0x7f80, 0x7fc0};
    case AMK_F8E4M3: return {3, 7, 0x80, 0x7e, 0x7f, 0x7f};
    default: return {2, 15, 0x80, 0x7b, 0x7c, 0x7e};
    }
}

PG_FN double
pg_decode(const struct pg_mini f, u32 bits)
{
    const u32 a = bits & ~f.sign, m = a & ((1u << f.mbits) - 1);
    const i32 e = (i32)(a >> f.mbits);
    double v;

    if (a > f.max)
        v = a == f.over && f.over != f.nan ? BR_INF : BR_NAN;
    else if (e == 0)
        v = br_ldexp((double)m, 1 - f.bias - f.mbits);
    else
        v = br_ldexp((double)(m | 1u << f.mbits), e - f.bias - f.mbits);
    return bits & f.sign ? -v : v;
}

PG_FN u32
pg_encode(const struct pg_mini f, double v)
{
    const u32 sign = br_bits(v) >> 63 ? f.sign : 0;
    const double a = __builtin_fabs(v);
    const i32 e = (i32)(br_bits(a) >> 52) - 1023; /* of its first bit */
    const i32 q = (e > 1 - f.bias ? e : 1 - f.bias) - f.mbits;
    u32 bits;

    if (br_isnan(v))
        return sign | f.nan;
    if (a == 0)
        return sign;
    if (e > f.bias + 1)
        return sign | f.over;
    bits = ((u32)(q + f.mbits + f.bias - 1) << f.mbits) +
           (u32)__builtin_rint(br_ldexp(a, -q));
    return sign | (bits > f.max ? f.over : bits);
}

BR_DEV i64
pg_row(buf *b)
{
    return b->rank ? b->shape[b->rank - 1] : 1;
}
/* Rows of I4 begin on a byte. */
PG_FN u8 *
pg_nibbles(buf *b, i64 i, u32 *shift)
{
    const i64 row = pg_row(b), c = i % row;

    *shift = (u32)(c & 1) * 4;
    return (u8 *)b->ptr + i / row * ((row + 1) / 2) + c / 2;
}

PG_FN double
pg_get(buf *b, i64 i)
{
    u32 shift;

    switch (b->dtype) {
    case AMK_F32: return (double)((const float *)b->ptr)[i];
    case AMK_F16:
    case AMK_BF16:
        return pg_decode(pg_mini_of(b->dtype), ((const u16 *)b->ptr)[i]);
    case AMK_F8E4M3:
    case AMK_F8E5M2:
        return pg_decode(pg_mini_of(b->dtype), ((const u8 *)b->ptr)[i]);
    case AMK_I32: return (double)((const i32 *)b->ptr)[i];
    case AMK_I8: return (double)((const signed char *)b->ptr)[i];
    case AMK_I4: {
        const u8 *p = pg_nibbles(b, i, &shift);
        return (double)((i32)(*p >> shift & 15) - 8);
    }
    case AMK_U8: return (double)((const u8 *)b->ptr)[i];
    case AMK_BOOL: return ((const u8 *)b->ptr)[i] != 0 ? 1.0 : 0.0;
    default: return ((const double *)b->ptr)[i];
    }
}
BR_DEV float
pg_f32(buf *b, i64 i)
{
    if (b->dtype == AMK_F32)
        return ((const float *)b->ptr)[i];
    if (b->dtype == AMK_BF16)
        return as_f32((u32)((const u16 *)b->ptr)[i] << 16);
    return (float)pg_get(b, i);
}

/* False: an integer that the dtype does not hold. */
PG_FN bool
pg_put(buf *b, i64 i, double v)
{
    u32 shift;

    switch (b->dtype) {
    case AMK_F32: ((float *)b->ptr)[i] = (float)v; return true;
    case AMK_F16:
    case AMK_BF16:
        ((u16 *)b->ptr)[i] = (u16)pg_encode(pg_mini_of(b->dtype), v);
        return true;
    case AMK_F8E4M3:
    case AMK_F8E5M2:
        ((u8 *)b->ptr)[i] = (u8)pg_encode(pg_mini_of(b->dtype), v);
        return true;
    case AMK_BOOL: ((u8 *)b->ptr)[i] = v != 0; return true;
    case BR_PG_F64: ((double *)b->ptr)[i] = v; return true;
    default: break;
    }
    v = __builtin_trunc(v);
    switch (b->dtype) {
    case AMK_I32:
        if (!(v >= -2147483648.0 && v <= 2147483647.0))
            return false;
        ((i32 *)b->ptr)[i] = (i32)v;
        return true;
    case AMK_I8:
        if (!(v >= -128 && v <= 127))
            return false;
        ((signed char *)b->ptr)[i] = (signed char)(i32)v;
        return true;
    case AMK_U8:
        if (!(v >= 0 && v <= 255))
            return false;
        ((u8 *)b->ptr)[i] = (u8)(i32)v;
        return true;
    default: /* I4: one thread at a time */
        if (!(v >= -8 && v <= 7))
            return false;
        u8 *p = pg_nibbles(b, i, &shift);
        *p = (u8)((*p & 0xf0 >> shift) | ((i32)v + 8) << shift);
        return true;
    }
}

BR_DEV u32
pg_width(i32 dtype)
{
    switch (dtype) {
    case AMK_F32:
    case AMK_I32: return 4;
    case AMK_F16:
    case AMK_BF16: return 2;
    case BR_PG_F64: return 8;
    default: return 1;
    }
}
PG_FN u64
pg_bits(buf *b, i64 i)
{
    switch (pg_width(b->dtype)) {
    case 8: return ((const u64 *)b->ptr)[i];
    case 4: return ((const u32 *)b->ptr)[i];
    case 2: return ((const u16 *)b->ptr)[i];
    default: return ((const u8 *)b->ptr)[i];
    }
}
PG_FN void
pg_put_bits(buf *b, i64 i, u64 v)
{
    switch (pg_width(b->dtype)) {
    case 8: ((u64 *)b->ptr)[i] = v; break;
    case 4: ((u32 *)b->ptr)[i] = (u32)v; break;
    case 2: ((u16 *)b->ptr)[i] = (u16)v; break;
    default: ((u8 *)b->ptr)[i] = (u8)v; break;
    }
}

/* ---- results ------------------------------------------------------------------ */

BR_DEV void
pg_bad(u64 *at, i64 element)
{
    red_max64(at, ~(u64)element);
}
PG_FN void
pg_store(const struct pg *c, i64 i, double v)
{
    if (!pg_put(c->out, i, v))
        pg_bad(&c->r->bad[bid()].fit, i);
}
/* Element i of the output is v. */
PG_FN void
pg_emit(const struct pg *c, i64 i, double v)
{
    if (c->place)
        c->place[i] = br_bits(v);
    else
        pg_store(c, i, v);
}
/* Are elements of this input moved as they are? I4 shares bytes. */
BR_DEV bool
pg_same(const struct pg *c, u32 k)
{
    return c->in[k]->dtype == c->out->dtype && c->out->dtype != AMK_I4;
}
PG_FN void
pg_move(const struct pg *c, u32 k, i64 from, i64 to)
{
    const bool same = pg_same(c, k);

    if (c->place)
        c->place[to] = same ? pg_bits(c->in[k], from)
                            : br_bits(pg_get(c->in[k], from));
    else if (same)
        pg_put_bits(c->out, to, pg_bits(c->in[k], from));
    else
        pg_store(c, to, pg_get(c->in[k], from));
}
/* All threads: elements from..to wait in place; raw: as bits of the dtype. */
PG_FN void
pg_flush(const struct pg *c, i64 from, i64 to, bool raw)
{
    const u32 step = c->out->dtype == AMK_I4 ? 1 : PG_THREADS;

    bar(0, PG_THREADS);
    if (!c->place)
        return;
    for (i64 i = from + tid(); i < to && tid() < step; i += step)
        if (raw)
            pg_put_bits(c->out, i, c->place[i]);
        else
            pg_store(c, i, br_from(c->place[i]));
}

/* ---- sums ----------------------------------------------------------------------- */

BR_DEV float
pg_join(float v)
{
    v = v + shfl_xor_f(v, 8);
    v = v + shfl_xor_f(v, 4);
    v = v + shfl_xor_f(v, 2);
    return v + shfl_xor_f(v, 1);
}
/* By 16 lanes; the other 16 of the warp have a sum of their own. */
PG_FN float
pg_dot(buf *a, i64 at, buf *b, i64 bt, i64 n)
{
    float sum = 0;

    for (i64 k = tid() & 15; k < n; k += 16)
        sum = fma_rn(pg_f32(a, at + k), pg_f32(b, bt + k), sum);
    return pg_join(sum);
}

/* e^x by way of a double, rounded once. */
PG_FN float
pg_exp(float x)
{
    return (float)br_exp((double)x);
}

/* ---- moves ------------------------------------------------------------------------ */

/* Element of an input that lies under element i of the output, dimensions of 1
 * repeated. */
PG_FN i64
pg_under(buf *in, buf *out, i64 i)
{
    i64 at = 0, step = 1;

    if (in->numel == out->numel)
        return i;
    for (i32 d = 1; d <= in->rank; d++) {
        const i64 n = in->shape[in->rank - d];
        const i64 of = d <= out->rank ? out->shape[out->rank - d] : 1;

        if (n == of)
            at += i % of * step;
        i /= of;
        step *= n;
    }
    return at;
}

/* I4 is moved by one thread: elements share bytes. */
BR_DEV u32
pg_movers(const struct pg *c)
{
    return c->out->dtype == AMK_I4 && !c->place ? 1 : PG_THREADS;
}

PG_FN void
pg_copy(const struct pg *c)
{
    const u32 step = pg_movers(c);

    for (i64 i = tid(); i < c->out->numel && tid() < step; i += step)
        pg_move(c, 0, pg_under(c->in[0], c->out, i), i);
    pg_flush(c, 0, c->out->numel, pg_same(c, 0));
}

/* An integer of any dtype; false: it is none. */
PG_FN bool
pg_index(buf *b, i64 i, i64 *out)
{
    const double v = pg_get(b, i);

    if (!(__builtin_fabs(v) <= 9007199254740992.0) || v != __builtin_rint(v))
        return false;
    *out = (i64)v;
    return true;
}

PG_FN void
pg_embed(const struct pg *c)
{
    const i64 rows = c->in[1]->shape[0], row = c->in[1]->numel / rows;
    const u32 step = pg_movers(c);

    for (i64 i = tid(); i < c->out->numel && tid() < step; i += step) {
        i64 id;

        if (!pg_index(c->in[0], i / row, &id) || id < 0 || id >= rows)
            pg_bad(&c->r->bad[bid()].value, i / row);
        else
            pg_move(c, 1, id * row + i % row, i);
    }
    pg_flush(c, 0, c->out->numel, pg_same(c, 1));
}

PG_FN void
pg_append(const struct pg *c)
{
    const i64 batch = c->out->rank == 4 ? c->out->shape[0] : 1;
    const i64 seq = c->out->shape[c->out->rank == 4];
    const i64 row = c->out->numel / batch / seq, n = c->in[0]->numel / batch;
    const u32 step = pg_movers(c);

    for (i64 i = tid(); i < n * batch && tid() < step; i += step)
        pg_move(c, 0, i, (i / n * seq + c->t->params.pos) * row + i % n);
    for (i64 b = 0; b < batch; b++) {
        const i64 at = (b * seq + c->t->params.pos) * row;
        pg_flush(c, at, at + n, pg_same(c, 0));
    }
}

/* ---- one by one ------------------------------------------------------------------- */

BR_DEV float
pg_one(const struct pg *c, float a, float b)
{
    const double x = (double)a;

    switch (c->t->op) {
    case AMK_OP_ADD: return a + b;
    case AMK_OP_MUL: return a * (c->t->n_inputs > 1 ? b : c->t->params.scale);
    case AMK_OP_SILU_MUL: return (float)(x / (1 + br_exp(-x))) * b;
    default: /* GELU */
        return (float)(0.5 * x * (1 + br_erf(x * 0.70710678118654752440)));
    }
}
PG_FN void
pg_zip(const struct pg *c)
{
    const bool two = c->t->n_inputs > 1;

    for (i64 i = tid(); i < c->out->numel; i += PG_THREADS) {
        const float a = pg_f32(c->in[0], pg_under(c->in[0], c->out, i));
        const float b =
            two ? pg_f32(c->in[1], pg_under(c->in[1], c->out, i)) : 0.0f;

        pg_emit(c, i, (double)pg_one(c, a, b));
    }
    pg_flush(c, 0, c->out->numel, false);
}

PG_FN void
pg_all_reduce(const struct pg *c)
{
    for (i64 i = tid(); i < c->out->numel; i += PG_THREADS) {
        float sum = pg_f32(c->in[0], i);

        for (i32 k = 1; k < c->t->n_inputs; k++)
            sum = sum + pg_f32(c->in[k], i);
        pg_emit(c, i, (double)sum);
    }
    pg_flush(c, 0, c->out->numel, false);
}

PG_FN void
pg_dequant(const struct pg *c)
{
    const i64 row = pg_row(c->in[0]), group = c->t->params.group;

    for (i64 i = tid(); i < c->out->numel; i += PG_THREADS) {
        const i64 g = i / row * (row / group) + i % row / group;
        float q = pg_f32(c->in[0], i);

        if (c->t->n_inputs > 2)
            q = q - pg_f32(c->in[2], g);
        pg_emit(c, i, (double)(q * pg_f32(c->in[1], g)));
    }
    pg_flush(c, 0, c->out->numel, false);
}

/* ---- rows --------------------------------------------------------------------------- */

BR_DEV u32
pg_lane(void)
{
    return tid() & 31;
}
/* A warp's share of n rows. */
#define PG_WARP_EACH(r, n) \
    for (i64 r = tid() >> 5; r < (n); r += BR_PG_WARPS)

PG_FN void
pg_norm(const struct pg *c)
{
    const i64 n = pg_row(c->in[0]), rows = n ? c->in[0]->numel / n : 0;
    const bool layer = c->t->op == AMK_OP_LAYERNORM;

    PG_WARP_EACH (r, rows) {
        buf *x = c->in[0];
        float mean = 0, sum = 0, s;

        if (layer) {
            for (i64 k = tid() & 15; k < n; k += 16)
                mean = mean + pg_f32(x, r * n + k);
            mean = pg_join(mean) / (float)n;
        }
        for (i64 k = tid() & 15; k < n; k += 16) {
            const float d =
                layer ? pg_f32(x, r * n + k) - mean : pg_f32(x, r * n + k);
            sum = fma_rn(d, d, sum);
        }
        sum = pg_join(sum) / (float)n + c->t->params.eps;
        s = (float)(1 / __nvvm_sqrt_rn_d((double)sum));
        for (i64 k = pg_lane(); k < n; k += 32) {
            float y = pg_f32(x, r * n + k);

            y = (layer ? y - mean : y) * s * pg_f32(c->in[1], k);
            if (c->t->n_inputs > 2)
                y = y + pg_f32(c->in[2], k);
            pg_emit(c, r * n + k, (double)y);
        }
    }
    pg_flush(c, 0, c->out->numel, false);
}

BR_DEV float
pg_most(float v)
{
    for (u32 m = 16; m; m >>= 1) {
        const float o = shfl_xor_f(v, m);
        v = o > v ? o : v;
    }
    return v;
}

PG_FN void
pg_softmax(const struct pg *c)
{
    buf *x = c->in[0];
    const i32 dim = c->t->params.dim + (c->t->params.dim < 0 ? x->rank : 0);
    const i64 n = x->rank ? x->shape[dim] : 1;
    i64 inner = 1;

    for (i32 d = dim + 1; d < x->rank; d++)
        inner *= x->shape[d];
    PG_WARP_EACH (r, n ? x->numel / n : 0) {
        const i64 at = r / inner * n * inner + r % inner;
        float top = -as_f32(0x7f800000), sum = 0;

        for (i64 i = pg_lane(); i < n; i += 32) {
            const float v = pg_f32(x, at + i * inner);
            top = v > top ? v : top;
        }
        top = pg_most(top);
        for (i64 i = tid() & 15; i < n; i += 16)
            sum = sum + pg_exp(pg_f32(x, at + i * inner) - top);
        sum = pg_join(sum);
        for (i64 i = pg_lane(); i < n; i += 32)
            pg_emit(c, at + i * inner,
                    (double)(pg_exp(pg_f32(x, at + i * inner) - top) / sum));
    }
    pg_flush(c, 0, x->numel, false);
}

/* The lowest of the largest; a NaN is larger than all. */
BR_DEV bool
pg_above(float a, i64 i, float b, i64 j)
{
    const bool na = a != a, nb = b != b;

    if (na != nb)
        return na;
    return a > b || ((a == b || na) && i < j);
}
PG_FN void
pg_argmax(const struct pg *c)
{
    const i64 n = pg_row(c->in[0]);

    PG_WARP_EACH (r, c->in[0]->numel / n) {
        i64 best = pg_lane() < n ? pg_lane() : 0;
        float v = pg_f32(c->in[0], r * n + best);

        for (i64 i = best + 32; i < n; i += 32) {
            const float o = pg_f32(c->in[0], r * n + i);
            if (pg_above(o, i, v, best))
                v = o, best = i;
        }
        for (u32 m = 16; m; m >>= 1) {
            const float o = shfl_xor_f(v, m);
            const i64 low = (i64)shfl_xor((u32)best, m);
            const i64 i = low | (i64)shfl_xor((u32)(best >> 32), m) << 32;
            if (pg_above(o, i, v, best))
                v = o, best = i;
        }
        if (pg_lane() == 0)
            pg_emit(c, r, (double)best);
    }
    pg_flush(c, 0, c->out->numel, false);
}

/* ---- products ------------------------------------------------------------------------- */

BR_DEV float
pg_weight(const struct pg *c, i64 n, i64 k, bool scaled)
{
    const amk_params_t *a = &c->t->params;
    buf *w = c->in[1];
    float q;

    if (scaled && a->qdtype == AMK_I4) {
        const u8 *row = (const u8 *)w->ptr + n * (((i64)a->K + 1) / 2);
        q = (float)((i32)(row[k / 2] >> (k & 1) * 4 & 15) - 8);
    } else {
        q = pg_f32(w, n * a->K + k);
    }
    if (!scaled)
        return q;
    return q * pg_f32(c->in[2], n * (((i64)a->K + a->group - 1) / a->group) +
                                    k / a->group);
}

/* 16 lanes an output. */
PG_FN void
pg_product(const struct pg *c)
{
    const amk_params_t *a = &c->t->params;
    const bool three = c->t->n_inputs > 2;
    const bool scaled =
        three && (a->qdtype == AMK_I4 || a->qdtype == AMK_I8);
    const i64 all = (i64)a->M_tile * a->N_tile, wide = pg_row(c->out);

    for (i64 i = tid() >> 5; i * 2 < all; i += BR_PG_WARPS) {
        const i64 o = i * 2 + (pg_lane() >> 4), at = o < all ? o : all - 1;
        const i64 m = a->m_off + at / a->N_tile, n = a->n_off + at % a->N_tile;
        float sum = 0;

        for (i64 k = tid() & 15; k < a->K; k += 16)
            sum = fma_rn(pg_f32(c->in[0], m * a->K + k),
                         pg_weight(c, n, k, scaled), sum);
        sum = pg_join(sum);
        if (three && !scaled)
            sum = sum + pg_f32(c->in[2], n);
        if ((tid() & 15) == 0 && o < all)
            pg_emit(c, m * wide + n, (double)sum);
    }
    bar(0, PG_THREADS);
    for (i64 m = a->m_off; c->place && m < (i64)a->m_off + a->M_tile; m++)
        pg_flush(c, m * wide + a->n_off, m * wide + a->n_off + a->N_tile,
                 false);
}

/* ---- positions, attention ---------------------------------------------------------------- */

PG_FN void
pg_rope(const struct pg *c)
{
    buf *x = c->in[0];
    const i64 hd = c->t->params.head_dim, half = hd / 2;
    const i64 heads = x->shape[x->rank - 2];

    for (i64 i = tid(); i < x->numel / 2; i += PG_THREADS) {
        const i64 j = i % half, h = i / half, at = h * hd + j;
        const float e = (float)j / (float)half;
        i64 pos;

        if (!pg_index(c->in[1], h / heads, &pos)) {
            pg_bad(&c->r->bad[bid()].value, h / heads);
            continue;
        }
        const float freq =
            1.0f / (float)br_pow((double)c->t->params.theta, (double)e);
        const double angle = (double)((float)pos * freq);
        const float co = (float)br_cos(angle), si = (float)br_sin(angle);
        const float u = pg_f32(x, at), v = pg_f32(x, at + half);
        pg_emit(c, at, (double)(u * co - v * si));
        pg_emit(c, at + half, (double)(v * co + u * si));
    }
    pg_flush(c, 0, x->numel, false);
}

/* A warp a query head: scores, then a column a lane. */
PG_FN void
pg_head(const struct pg *c, i64 r, float *e)
{
    const amk_params_t *a = &c->t->params;
    const bool partial = a->flags & AMK_FLAG_PARTIAL;
    const i64 hd = a->head_dim, len = a->kv_len;
    const i64 b = r / a->n_heads,
              g = r % a->n_heads / (a->n_heads / a->n_kv_heads);
    const i64 wide = partial ? hd + 2 : hd, row = (i64)a->n_kv_heads * hd;
    buf *k = c->in[1], *v = c->in[2];
    const i64 k0 =
        (b * k->shape[k->rank == 4] + a->kv_start) * row + g * hd;
    const i64 v0 =
        (b * v->shape[v->rank == 4] + a->kv_start) * row + g * hd;
    float top = -as_f32(0x7f800000), sum = 0;

    for (i64 j = 0; j < len; j += 2) {
        const i64 i = j + (pg_lane() >> 4), at = i < len ? i : len - 1;
        const float s =
            pg_dot(c->in[0], r * hd, k, k0 + at * row, hd) * a->scale;

        if ((tid() & 15) == 0 && i < len)
            e[i] = s;
        top = s > top ? s : top;
    }
    top = pg_most(top);
    warp_sync();
    for (i64 j = pg_lane(); j < len; j += 32)
        e[j] = pg_exp(e[j] - top);
    warp_sync();
    for (i64 j = tid() & 15; j < len; j += 16)
        sum = sum + e[j];
    sum = pg_join(sum);
    for (i64 d = pg_lane(); d < hd; d += 32) {
        float out = 0;

        for (i64 j = 0; j < len; j++)
            out = fma_rn(partial ? e[j] : e[j] / sum,
                         pg_f32(v, v0 + j * row + d), out);
        pg_emit(c, r * wide + d, (double)out);
    }
    if (partial && pg_lane() < 2)
        pg_emit(c, r * wide + hd + pg_lane(),
                (double)(pg_lane() ? sum : top));
    warp_sync(); /* e is the next head's */
}
PG_FN void
pg_attention(const struct pg *c)
{
    float *lines = (float *)((u8 *)c->p->scratch +
                             c->p->scratch_bytes / c->p->num_sms * bid() +
                             c->r->place);

    PG_WARP_EACH (r, c->in[0]->numel / c->t->params.head_dim)
        pg_head(c, r, lines + (tid() >> 5) * c->r->line);
    pg_flush(c, 0, c->out->numel, false);
}

PG_FN void
pg_combine(const struct pg *c)
{
    const i64 heads = (c->in[0]->numel - c->out->numel) / 2;
    const i64 hd = c->out->numel / heads;

    for (i64 i = tid(); i < c->out->numel; i += PG_THREADS) {
        const i64 at = i / hd * (hd + 2);
        float m = -as_f32(0x7f800000), l = 0, out = 0;

        for (i32 p = 0; p < c->t->n_inputs; p++) {
            const float o = pg_f32(c->in[p], at + hd);
            m = o > m ? o : m;
        }
        for (i32 p = 0; p < c->t->n_inputs; p++) {
            const float lp = pg_f32(c->in[p], at + hd + 1);
            const float w =
                lp > 0 ? pg_exp(pg_f32(c->in[p], at + hd) - m) : 0.0f;

            l = fma_rn(lp, w, l);
            out = fma_rn(pg_f32(c->in[p], at + i % hd), w, out);
        }
        l = l < 1e-20f ? 1e-20f : l;
        pg_emit(c, i, (double)(out / l));
    }
    pg_flush(c, 0, c->out->numel, false);
}

/* ---- a task --------------------------------------------------------------------------------- */

/* False: no such code. */
BR_DEV bool
pg_op(const struct pg *c)
{
    switch (c->t->op) {
    case AMK_OP_NOP: return true;
    case AMK_OP_COPY: pg_copy(c); return true;
    case AMK_OP_EMBED: pg_embed(c); return true;
    case AMK_OP_RMSNORM:
    case AMK_OP_LAYERNORM: pg_norm(c); return true;
    case AMK_OP_GEMV_TILE:
    case AMK_OP_GEMM_TILE: pg_product(c); return true;
    case AMK_OP_ATTENTION_TILE: pg_attention(c); return true;
    case AMK_OP_ROPE: pg_rope(c); return true;
    case AMK_OP_SILU_MUL:
    case AMK_OP_GELU:
    case AMK_OP_ADD:
    case AMK_OP_MUL: pg_zip(c); return true;
    case AMK_OP_DEQUANT: pg_dequant(c); return true;
    case AMK_OP_SOFTMAX: pg_softmax(c); return true;
    case AMK_OP_ALLREDUCE_SHARD: pg_all_reduce(c); return true;
    case AMK_OP_KV_APPEND: pg_append(c); return true;
    case AMK_OP_SAMPLE_ARGMAX: pg_argmax(c); return true;
    case AMK_OP_ATTENTION_COMBINE: pg_combine(c); return true;
    default: return false;
    }
}

/* All threads, to the same answer: 0, or what abort_flag is to be. */
PG_FN i32
pg_instruction(const amk_program_t *p, const struct br_pg_run *r, i32 at)
{
    const amk_instruction_t *t = &p->instructions[at];
    struct pg c = {p, r, t};
    struct br_pg_bad *bad = &r->bad[bid()];

    for (i32 k = 0; k < t->n_inputs; k++)
        c.in[k] = &p->buffers[t->inputs[k]];
    c.out = t->n_outputs ? &p->buffers[t->outputs[0]] : nullptr;
    for (i32 k = 0; k < t->n_inputs; k++)
        if (c.in[k] == c.out && !(t->op == AMK_OP_KV_APPEND && k == 1))
            c.place = (u64 *)((u8 *)p->scratch +
                              p->scratch_bytes / p->num_sms * bid());
    if (!pg_op(&c))
        return -(t->op + 1);
    bar(0, PG_THREADS);
    /* Atomics of this block, which the barrier has ordered; read where they
     * were added. */
    if (!ld_relaxed64(&bad->value) && !ld_relaxed64(&bad->fit))
        return 0;
    if (tid() == 0)
        bad->instruction = at;
    return -(t->op + 1);
}

BR_DEV i32
pg_task(const amk_program_t *p, const struct br_pg_run *r, i32 at)
{
    const amk_instruction_t *t = &p->instructions[at];
    i32 rc = 0;

    if (t->op != AMK_OP_FUSED)
        return pg_instruction(p, r, at);
    for (i32 i = 0; i < t->params.N && !rc; i++)
        rc = pg_instruction(p, r, t->params.K + i);
    return rc;
}

/* One thread: until every count is there. False: leave. */
BR_DEV bool
pg_wait(const amk_program_t *p, const struct br_pg_run *r, i32 at)
{
    const amk_instruction_t *t = &p->instructions[at];

    for (i32 k = 0; k < t->n_waits; k++)
        for (u32 looks = 0; ld_relaxed32(&p->counters[t->wait_counter[k]]) <
                            (u32)t->wait_threshold[k];) {
            if (ld_relaxed32((const u32 *)p->abort_flag))
                return false;
            if (++looks < r->patience)
                continue;
            r->bad[bid()].instruction = at;
            r->bad[bid()].wait = k + 1;
            fence_gpu();
            *(volatile i32 *)p->abort_flag = BR_PG_STUCK;
            return false;
        }
    fence_gpu(); /* acquire: with the signals' fences */
    return !ld_relaxed32((const u32 *)p->abort_flag);
}

extern "C" __global__ void __launch_bounds__(PG_THREADS, 1)
br_prog(const amk_program_t p, const struct br_pg_run r)
{
    volatile i32 *go = (volatile i32 *)dyn_shared();

    for (i32 i = 0; i < p.sm_queue_len[bid()]; i++) {
        const i32 at = p.sm_queue[bid()][i];
        i32 rc;

        if (tid() == 0) {
            *go = pg_wait(&p, &r, at);
            if (*go)
                r.order[add_relaxed32(r.begun, 1)] = at;
        }
        bar(0, PG_THREADS);
        if (!*go)
            return;
        rc = pg_task(&p, &r, at);
        bar(0, PG_THREADS);
        if (tid() == 0) {
            fence_gpu(); /* release: what the whole block has stored */
            if (rc)
                *(volatile i32 *)p.abort_flag = rc;
            else
                red_relaxed_add(&p.counters[p.instructions[at].out_counter],
                                1);
        }
        if (rc)
            return;
    }
}

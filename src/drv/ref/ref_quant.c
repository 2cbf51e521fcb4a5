/* ref_quant.c - dot products of integer weights with integer activations.
 *
 *   block of x    d = amax / 127, q = nearest even of x / d (0: d < 2^-126)
 *   block of y    r = (dw d) * sum(scale * sum(qw q))         sums exact
 *                 with minimums: r = fma(-(dmin d), sum(min * sum(q)), r)
 *   row           chain[block mod 4] += r, blocks ascending
 *                 (chain 0 + chain 1) + (chain 2 + chain 3)
 *
 * A block has 256 numbers beside K-quants and IQ4_XS, else 32.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/ref/ref_int.h"
#include "model/qint.h"

#include <float.h>
#include <math.h>

/* A scale below the normal numbers would not keep |q| to 127: such a block
 * counts as zeros, and so does a number that is none. */
float
ref_quantise(const float *x, int8_t *q, size_t n)
{
    float top = 0, d;

    for (size_t i = 0; i < n; i++)
        top = fabsf(x[i]) > top ? fabsf(x[i]) : top;
    d = top / 127.0f;
    for (size_t i = 0; i < n; i++) {
        float v = d < FLT_MIN ? 0 : rintf(x[i] / d);

        q[i] = (int8_t)(v >= -127 && v <= 127 ? v : 0);
    }
    return d;
}

float
ref_block_dot(const br_qint *w, const int8_t *q, float d)
{
    int32_t sum = 0, low = 0;
    float r;

    for (int j = 0; j < w->n / w->sub; j++) {
        int32_t s = 0, a = 0;

        for (int i = j * w->sub; i < (j + 1) * w->sub; i++) {
            s += (int32_t)w->q[i] * q[i];
            a += q[i];
        }
        sum += w->scale[j] * s;
        low += w->has_min ? w->min[j] * a : 0;
    }
    r = (w->d * d) * (float)sum;
    return w->has_min ? fmaf(-(w->dmin * d), (float)low, r) : r;
}

void
ref_matmul_quantised(ref_call *c, const ref_mat *m, const ref_view *x,
                     size_t t0, size_t n_rows, const ref_view *y)
{
    const br_qinfo *info = br_qinfo_of(m->t->type);
    uint64_t blocks = m->n_in / info->elems;
    const uint8_t *w =
        m->t->data + (m->slice * m->n_out + m->from) * blocks * info->bytes;
    ref_scratch *s = c->s;

    for (size_t t = 0; t < n_rows; t++)
        for (uint64_t b = 0; b < blocks; b++)
            s->xd[t * blocks + b] = ref_quantise(
                ref_row(x, t0 + t) + b * info->elems,
                s->xq + t * m->n_in + b * info->elems, info->elems);
    for (uint64_t n = m->from; n < m->to; n++) {
        for (uint64_t b = 0; b < blocks; b++, w += info->bytes)
            br_qint_block(m->t->type, w, &s->blocks[b]);
        for (size_t t = 0; t < n_rows; t++) {
            float chain[4] = {0};

            for (uint64_t b = 0; b < blocks; b++)
                chain[b % 4] =
                    chain[b % 4] +
                    ref_block_dot(&s->blocks[b],
                                  s->xq + t * m->n_in + b * info->elems,
                                  s->xd[t * blocks + b]);
            ref_row(y, t0 + t)[n] =
                (chain[0] + chain[1]) + (chain[2] + chain[3]);
        }
    }
}

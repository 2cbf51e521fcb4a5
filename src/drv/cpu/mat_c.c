/* mat_c.c - the kernels in plain C: every format, any machine.
 *
 * What the fast kernels do in registers stands here in arrays, in the same
 * order: integers of a block are exact whatever the order, then
 *
 *   r = (dw d) float(sum);  r = fma(-(dmin d), float(low), r);  chain[c] += r
 *
 * Formats that are kept as in the file (rare codebooks, two and three bits)
 * have only these kernels.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/cpu/mat_floats.h"
#include "drv/ref/ref_int.h"
#include "model/qint.h"
#include "model/quant_int.h"

#include <math.h>

enum { P = BR_MAT_PANEL };

typedef struct sums {
    float chain[MAT_CHAINS][MAT_MAX_ROWS][P];
} sums;

static void
finish(const mat_tile *t, const sums *s)
{
    for (int r = 0; r < t->n_rows; r++)
        for (int o = 0; o < P; o++)
            t->out[r][o] = (s->chain[0][r][o] + s->chain[1][r][o]) +
                           (s->chain[2][r][o] + s->chain[3][r][o]);
}

/* ---- weights of a step --------------------------------------------------- */

static void
unpack(const mat_format *f, const uint8_t *p, int8_t w[32 / 4][4 * P])
{
    const int8_t *level = f->level == MAT_IQ4   ? br_iq4_levels
                          : f->level == MAT_FP4 ? br_fp4_levels
                                                : NULL;

    if (f->low == 8) {
        memcpy(w, p, 32 * P);
        return;
    }
    for (int g = 0; g < 8; g++)
        for (int i = 0; i < 4 * P; i++) {
            int v = p[64 * (g / 2) + i] >> g % 2 * 4 & 15;

            if (f->high == 1)
                v |= (p[256 + i] >> g & 1) << 4;
            else if (f->high == 2)
                v |= (p[256 + 64 * (g / 4) + i] >> 2 * (g % 4) & 3) << 4;
            w[g][i] = (int8_t)(level ? level[v] : v - f->off);
        }
}

/* Adds the products of groups g0..g1 to 16 sums. */
static void
dot_groups(int8_t w[32 / 4][4 * P], const int8_t *q, int g0, int g1,
           int32_t *sum)
{
    for (int g = g0; g < g1; g++)
        for (int o = 0; o < P; o++)
            for (int i = 0; i < 4; i++)
                sum[o] += w[g][4 * o + i] * q[4 * g + i];
}

static void
unpack_scales(const mat_format *f, const uint8_t *p, int16_t s[16][P],
              int16_t min[8][P])
{
    for (int o = 0; o < P; o++)
        for (int j = 0; j < 256 / f->sub; j++) {
            int at = 4 * o + j % 4, hi = j / 4 * 4, top = p[128 + at];

            if (f->sub == 16) {
                s[j][o] = (int8_t)p[64 * (j / 4) + at];
                continue;
            }
            s[j][o] = (int16_t)((p[at] >> hi & 15) | (top >> hi / 2 & 3) << 4);
            min[j][o] = (int16_t)((p[64 + at] >> hi & 15) |
                                  (top >> (4 + hi / 2) & 3) << 4);
        }
}

static float
head_scale(const mat_format *f, const uint8_t *head, int at)
{
    return f->level == MAT_FP4 ? br_e8m0_half(head[at])
                               : br_half_at(head + 2 * at);
}

/* ---- integer formats ----------------------------------------------------- */

static void
flat(const mat_tile *t, const mat_format *f)
{
    const uint8_t *head = t->panel, *p = head;
    sums s = {0};
    int8_t w[8][4 * P];

    for (uint32_t b = 0; b < t->m->n_in / 32; b++, p += mat_step_bytes(f)) {
        int c = (int)(b % 4);

        if (c == 0) {
            head = p;
            p += mat_head_bytes(f);
        }
        unpack(f, p, w);
        for (int r = 0; r < t->n_rows; r++) {
            act_view a = act_at(BR_FORM_Q32, t->m->n_in, t->row[r]);
            int32_t sum[P] = {0};

            dot_groups(w, a.q + 32 * b, 0, 8, sum);
            for (int o = 0; o < P; o++) {
                float d = head_scale(f, head, P * c + o) * a.d[b];
                float y = d * (float)sum[o];

                if (f->min) {
                    float m = br_half_at(head + 128 + 2 * (P * c + o));

                    y = fmaf(m * a.d[b], (float)-a.nsum[b], y);
                }
                s.chain[c][r][o] += y;
            }
        }
    }
    finish(t, &s);
}

static void
k_block(const mat_tile *t, const mat_format *f, uint32_t b,
        const uint8_t *block, int32_t sum[MAT_MAX_ROWS][P],
        int32_t low[MAT_MAX_ROWS][P])
{
    int8_t w[8][4 * P];
    int16_t scale[16][P], min[8][P];
    const uint8_t *step = block + mat_scale_bytes(f);

    unpack_scales(f, block, scale, min);
    for (int j = 0; j < 8; j++, step += mat_step_bytes(f)) {
        unpack(f, step, w);
        for (int r = 0; r < t->n_rows; r++) {
            act_view a = act_at(BR_FORM_Q256, t->m->n_in, t->row[r]);

            for (int g = 0; g < 8; g += f->sub / 4) {
                int32_t dot[P] = {0};
                int i = (32 * j + 4 * g) / f->sub;

                dot_groups(w, a.q + 256 * b + 32 * j, g, g + f->sub / 4, dot);
                for (int o = 0; o < P; o++)
                    sum[r][o] += scale[i][o] * dot[o];
            }
            for (int o = 0; f->min && o < P; o++)
                low[r][o] += min[j][o] * a.sum32[8 * b + j];
        }
    }
}

static void
k_quant(const mat_tile *t, const mat_format *f)
{
    const uint8_t *head = t->panel, *p = head;
    sums s = {0};

    for (uint32_t b = 0; b < t->m->n_in / 256; b++, p += mat_block_bytes(f)) {
        int c = (int)(b % 4);
        int32_t sum[MAT_MAX_ROWS][P] = {0}, low[MAT_MAX_ROWS][P] = {0};

        if (c == 0) {
            head = p;
            p += mat_head_bytes(f);
        }
        k_block(t, f, b, p, sum, low);
        for (int r = 0; r < t->n_rows; r++) {
            float d = act_at(BR_FORM_Q256, t->m->n_in, t->row[r]).d[b];

            for (int o = 0; o < P; o++) {
                float y =
                    (br_half_at(head + 2 * (P * c + o)) * d) * (float)sum[r][o];

                if (f->min)
                    y = fmaf(-(br_half_at(head + 128 + 2 * (P * c + o)) * d),
                             (float)low[r][o], y);
                s.chain[c][r][o] += y;
            }
        }
    }
    finish(t, &s);
}

/* ---- floats -------------------------------------------------------------- */

static MAT_INLINE void
float_piece(const mat_tile *t, int type, uint32_t piece, int panels,
            two_lanes *sum)
{
    const uint8_t *p = piece_weights(t, type, piece);
    float w[2 * P];

    (void)panels;
    memset(sum, 0, (size_t)t->n_rows * sizeof *sum);
    for (uint32_t i = 0; i < mat_lines(t->m->n_in);
         i++, p += mat_line_bytes(type)) {
        br_dequant(type, p, w, 2 * P);
        for (int r = 0; r < t->n_rows; r++) {
            const float *x = piece_row(t, piece, r);

            for (int l = 0; l < 2; l++)
                for (int o = 0; o < P; o++)
                    sum[r][l][o] =
                        fmaf(x[2 * i + l],
                             type == BR_Q_BF16 ? w[2 * o + l] : w[P * l + o],
                             sum[r][l][o]);
        }
    }
}

static float
add_lanes(float *lane)
{
    for (int half = 8; half > 0; half /= 2)
        for (int l = 0; l < half; l++)
            lane[l] = lane[l] + lane[l + half];
    return lane[0];
}

/* ---- as in the file ------------------------------------------------------ */

static void
raw_integers(const mat_tile *t)
{
    const br_qinfo *q = br_qinfo_of(t->m->type);
    uint32_t blocks = t->m->n_in / q->elems;
    const uint8_t *p = t->panel;
    br_qint w;

    for (int o = 0; o < P; o++) {
        float chain[MAT_MAX_ROWS][MAT_CHAINS] = {0};

        for (uint32_t b = 0; b < blocks; b++, p += q->bytes) {
            br_qint_block(t->m->type, p, &w);
            for (int r = 0; r < t->n_rows; r++) {
                act_view a = act_at(t->m->form, t->m->n_in, t->row[r]);

                chain[r][b % 4] +=
                    ref_block_dot(&w, a.q + b * q->elems, a.d[b]);
            }
        }
        for (int r = 0; r < t->n_rows; r++)
            t->out[r][o] =
                (chain[r][0] + chain[r][1]) + (chain[r][2] + chain[r][3]);
    }
}

/* n weights from k on. */
static void
add_products(const float *w, const mat_tile *t, int r, uint32_t k, uint32_t n,
             float *lane)
{
    for (uint32_t piece = 0; piece < 8; piece++) {
        const float *x = piece_row(t, piece, r);

        for (uint32_t i = mat_lane(piece); i < n; i += i % 2 ? 15 : 1)
            lane[i % 16] =
                fmaf(x[(k + i) / 16 * 2 + i % 2], w[i], lane[i % 16]);
    }
}

static void
raw_floats(const mat_tile *t)
{
    const br_qinfo *q = br_qinfo_of(t->m->type);
    const uint8_t *p = t->panel;
    float w[256];

    br_check(q->elems <= BR_COUNT(w));
    for (int o = 0; o < P; o++) {
        float lane[MAT_MAX_ROWS][16] = {0};

        for (uint32_t k = 0; k < t->m->n_in; k += q->elems, p += q->bytes) {
            br_dequant(t->m->type, p, w, q->elems);
            for (int r = 0; r < t->n_rows; r++)
                add_products(w, t, r, k, q->elems, lane[r]);
        }
        for (int r = 0; r < t->n_rows; r++)
            t->out[r][o] = add_lanes(lane[r]);
    }
}

void
mat_c(const mat_tile *t)
{
    const mat_format *f = mat_format_of(t->m->type);

    switch (f->class) {
    case MAT_FLAT: flat(t, f); return;
    case MAT_K: k_quant(t, f); return;
    case MAT_FLOAT: floats(t, t->m->type, 1); return;
    case MAT_RAW: break;
    }
    if (br_qint_has(t->m->type))
        raw_integers(t);
    else
        raw_floats(t);
}

/* ---- activations --------------------------------------------------------- */

static int32_t
sum_of(const int8_t *q, int n)
{
    int32_t s = 0;

    for (int i = 0; i < n; i++)
        s += q[i];
    return s;
}

/* n k, a multiple of 4. */
static void
put_npair(const int8_t *q, int n, int16_t *pair)
{
    pair[0] = pair[1] = 0;
    for (int k = 0; k < n; k += 4) {
        pair[0] = (int16_t)(pair[0] - (q[k] + q[k + 1]));
        pair[1] = (int16_t)(pair[1] - (q[k + 2] + q[k + 3]));
    }
}

static void
act_q32(const float *x, uint32_t n_in, uint8_t *row)
{
    act_view a = act_at(BR_FORM_Q32, n_in, row);

    for (uint32_t b = 0; b < a.n; b++) {
        a.d[b] = ref_quantise(x + 32 * b, a.q + 32 * b, 32);
        put_npair(a.q + 32 * b, 32, a.npair + 2 * b);
        a.nsum[b] = -sum_of(a.q + 32 * b, 32);
    }
}

static void
act_q256(const float *x, uint32_t n_in, uint8_t *row)
{
    act_view a = act_at(BR_FORM_Q256, n_in, row);

    for (uint32_t b = 0; b < a.n; b++) {
        int8_t *q = a.q + 256 * b;

        a.d[b] = ref_quantise(x + 256 * b, q, 256);
        for (uint32_t j = 0; j < 16; j++) {
            put_npair(q + 16 * j, 16, a.npair + 2 * (16 * b + j));
            a.sum16[16 * b + j] = (int16_t)sum_of(q + 16 * j, 16);
        }
        for (uint32_t j = 0; j < 8; j++)
            a.sum32[8 * b + j] = (int16_t)sum_of(q + 32 * j, 32);
    }
}

static void
act_f32(const float *x, uint32_t n_in, float *row)
{
    for (uint32_t i = 0; i < 8; i++)
        for (uint32_t k = mat_lane(i); k < (n_in + 15) / 16 * 16; k += 16) {
            *row++ = k < n_in ? x[k] : 0;
            *row++ = k + 1 < n_in ? x[k + 1] : 0;
        }
}

void
mat_c_act(br_form form, const float *x, uint32_t n_in, uint8_t *row)
{
    switch (form) {
    case BR_FORM_Q32: act_q32(x, n_in, row); return;
    case BR_FORM_Q256: act_q256(x, n_in, row); return;
    case BR_FORM_F32: act_f32(x, n_in, (float *)(void *)row); return;
    case BR_FORM_BF16:
    case BR_FORM_COUNT: break;
    }
    br_unreachable("no such form of activations");
}

/* ---- the machine's bound --------------------------------------------------*/

/* As plain C goes, integers or not: four sums at once. */
uint64_t
mat_c_ops(br_form form, uint32_t rounds)
{
    float a[4] = {0}, v = 1.0f;

    (void)form;
    for (uint32_t i = 0; i < rounds; i++) {
        __asm__ volatile("" : "+m"(v));
        for (int j = 0; j < 4; j++)
            a[j] += v * v;
    }
    __asm__ volatile("" : "+m"(a));
    return (uint64_t)rounds * 8;
}

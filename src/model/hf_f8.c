/* hf_f8.c - weights of eight bits in a folder: F8_E4M3 or F8_E5M2, times a scale.
 *
 *   NAME.weight             [rows][cols] of codes
 *   NAME.weight_scale_inv   [rows / a][cols / b] rounded up, where config.json says
 *                           weight_block_size [a, b]; in spite of its name a factor
 *   NAME.weight_scale       one number, or one a row
 *   NAME.input_scale        of activations, which nobody rounds here: not used
 *
 * A matrix has a scale where config.json's quantization_config says fp8, else may.
 *
 * In memory a number keeps its eight bits (qtype.def, F8_*): rows are cut into blocks of
 * 64 with a scale each. No GGUF file can: there it becomes BF16.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/encode_int.h"
#include "model/hf_int.h"
#include "model/quant.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { BLOCK = 64, CODES = 4 /* after the scale */ };

bool
br_hf_is_f8(const br_st_tensor *t)
{
    return t->dtype == BR_ST_F8_E4M3 || t->dtype == BR_ST_F8_E5M2;
}

br_hf_f8 *
br_hf_f8_of(br_hf *h, const br_st_tensor *t)
{
    return &h->f8[t - br_st_tensor_at(h->files, 0)];
}

/* Numbers of a scale's tensor. */
static uint64_t
count(const br_st_tensor *t)
{
    uint64_t n = 1;

    for (uint32_t d = 0; d < t->n_dims; d++)
        n *= t->dim[d];
    return n;
}

static uint64_t
parts(uint64_t n, uint64_t each)
{
    return n / each + (n % each != 0);
}

/* How far each number of the scale s reaches. */
static br_code
fit(br_hf *h, const br_st_tensor *t, const br_st_tensor *s, br_hf_f8 *f)
{
    const uint64_t rows = t->dim[0], cols = t->dim[1], n = count(s);
    const int type = br_st_dtype_qtype(s->dtype);
    bool fits = n == 1;

    *f = (br_hf_f8){s, rows, cols, 1};
    if (n > 1 && n == rows && (s->n_dims == 1 || s->dim[s->n_dims - 1] == 1)) {
        f->rows = 1;
        fits = true;
    } else if (n > 1 && h->f8_rows && s->n_dims == 2) {
        *f = (br_hf_f8){s, h->f8_rows, h->f8_cols, parts(cols, h->f8_cols)};
        fits = s->dim[0] == parts(rows, f->rows) && s->dim[1] == f->per_row;
    }
    if (!fits || (type != BR_Q_F32 && type != BR_Q_BF16 && type != BR_Q_F16))
        return br_fail(h->st, BR_E_FORMAT,
                       "tensor '%.*s': not scales of a matrix of %llu x %llu",
                       (int)s->name.n, s->name.p, (unsigned long long)rows,
                       (unsigned long long)cols);
    return BR_OK;
}

br_code
br_hf_f8_describe(br_hf *h, const br_st_tensor *t, br_gguf_w_info *info)
{
    static const char *const ends[] = {"_scale_inv", "_scale"};
    const bool e4m3 = t->dtype == BR_ST_F8_E4M3;
    br_hf_f8 *f = br_hf_f8_of(h, t);
    char name[BR_ST_MAX_NAME_BYTES + 16];
    const br_st_tensor *s = NULL;

    if (t->n_dims != 2 || t->bytes == 0)
        return br_fail(
            h->st, BR_E_UNSUPPORTED,
            "tensor '%.*s': dtype %s of %u dimensions; matrices of it are "
            "read",
            (int)t->name.n, t->name.p, br_st_dtype_name(t->dtype), t->n_dims);
    for (size_t i = 0; i < BR_COUNT(ends) && !s; i++) {
        snprintf(name, sizeof name, "%.*s%s", (int)t->name.n, t->name.p,
                 ends[i]);
        s = br_hf_take(h, name);
    }
    if (!s && h->f8_scaled)
        return br_fail(h->st, BR_E_FORMAT,
                       "tensor '%.*s': %s without %.*s_scale_inv or _scale; "
                       "config.json: 'quantization_config' says that there "
                       "are scales",
                       (int)t->name.n, t->name.p, br_st_dtype_name(t->dtype),
                       (int)t->name.n, t->name.p);
    if (s)
        BR_TRY(fit(h, t, s, f));
    snprintf(name, sizeof name, "%.*s", (int)t->name.n, t->name.p);
    if (t->name.n > 6 && strcmp(name + t->name.n - 6, "weight") == 0) {
        snprintf(name + t->name.n - 6, 16, "input_scale");
        (void)br_hf_take(h, name);
    }
    info->n_dims = 2;
    info->dim[0] = t->dim[1];
    info->dim[1] = t->dim[0];
    info->type = BR_Q_BF16;
    if (h->inside && t->dim[1] % BLOCK == 0 &&
        (!s || f->cols % BLOCK == 0 || f->cols == t->dim[1]))
        info->type = e4m3 ? BR_Q_F8_E4M3 : BR_Q_F8_E5M2;
    return BR_OK;
}

/* The scale of row r from column c on. */
static br_code
scale_at(br_hf *h, const br_hf_f8 *f, uint64_t r, uint64_t c, float *out)
{
    uint64_t at, each;

    *out = 1;
    if (!f->scale)
        return BR_OK;
    at = r / f->rows * f->per_row + (f->per_row > 1 ? c / f->cols : 0);
    each = br_st_dtype_bits(f->scale->dtype) / 8;
    br_dequant(br_st_dtype_qtype(f->scale->dtype), f->scale->data + at * each,
               out, 1);
    /* nor what it makes of the largest code, 57344 */
    return isfinite(*out * 0x1p17f)
               ? BR_OK
               : br_fail(h->st, BR_E_FORMAT,
                         "tensor '%.*s': a scale is no number or too large",
                         (int)f->scale->name.n, f->scale->name.p);
}

/* A row as blocks of eight bits. */
static br_code
put_blocks(br_hf *h, const br_hf_f8 *f, const br_st_tensor *t, uint64_t r)
{
    const uint64_t cols = t->dim[1];
    const uint8_t *from = t->data + r * cols;
    uint8_t block[CODES + BLOCK];
    float scale;

    for (uint64_t c = 0; c < cols; c += BLOCK) {
        bool ok;

        BR_TRY(scale_at(h, f, r, c, &scale));
        ok = br_quant(BR_Q_F32, &scale, block, 1, NULL);
        br_check(ok && "F32 has an encoder");
        memcpy(block + CODES, from + c, BLOCK);
        BR_TRY(br_hf_put(h, block, sizeof block));
    }
    return BR_OK;
}

/* A row as BF16. */
static br_code
put_wide(br_hf *h, const br_hf_f8 *f, const br_st_tensor *t, uint64_t r)
{
    const uint64_t cols = t->dim[1];
    const uint8_t *from = t->data + r * cols;
    uint8_t two[2];
    float scale = 1;

    for (uint64_t c = 0; c < cols; c++) {
        const float x = t->dtype == BR_ST_F8_E4M3 ? br_f8e4m3_to_f32(from[c])
                                                  : br_f8e5m2_to_f32(from[c]);

        if (c == 0 || (f->per_row > 1 && c % f->cols == 0))
            BR_TRY(scale_at(h, f, r, c, &scale));
        br_put_le16(two, br_f64_to_bf16((double)x * (double)scale));
        BR_TRY(br_hf_put(h, two, sizeof two));
    }
    return BR_OK;
}

br_code
br_hf_f8_put(br_hf *h, const br_hf_plan *p, const br_st_tensor *t,
             const uint8_t *from, uint64_t bytes)
{
    const uint64_t cols = t->dim[1], first = (uint64_t)(from - t->data) / cols;
    const br_hf_f8 *f = br_hf_f8_of(h, t);

    for (uint64_t i = 0; i < bytes; i++) {
        const uint8_t a = from[i] & 0x7f;

        if (t->dtype == BR_ST_F8_E4M3 ? a == 0x7f : a >= 0x7c)
            return br_fail(h->st, BR_E_FORMAT,
                           "tensor '%.*s': a weight is no number",
                           (int)t->name.n, t->name.p);
    }
    for (uint64_t r = first; r < first + bytes / cols; r++)
        BR_TRY(p->info.type == BR_Q_BF16 ? put_wide(h, f, t, r)
                                         : put_blocks(h, f, t, r));
    return BR_OK;
}

/* hf_write.c - the bytes of the tensors, in the order of the plan.
 *
 * Rows of q and k, where they are permuted, for each head:
 *
 *   theirs   a0 a1 a2 ... | b0 b1 b2 ...      a_i turns with b_i
 *   ours     a0 b0 a1 b1 a2 b2 ...            neighbours turn
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/hf_int.h"
#include "model/quant.h"

#include <stdatomic.h>
#include <string.h>

enum { PART = 4 << 20 }; /* bytes at a time */

static void
tell(br_hf *h, uint64_t bytes)
{
    h->done += bytes;
    if (h->desc && h->desc->progress)
        h->desc->progress(h->desc->ctx, h->done, h->total);
}

br_code
br_hf_put(br_hf *h, const void *p, size_t n)
{
    const _Atomic bool *stop = h->desc ? h->desc->stop : NULL;

    if (stop && atomic_load_explicit(stop, memory_order_relaxed))
        return br_fail(h->st, BR_E_CANCELLED,
                       "stopped while its weights were read");
    return br_gguf_w_data(h->w, p, n, h->st);
}

/* Numbers of one format, written in another: only F16, BF16 to F32. */
static br_code
put_wide(br_hf *h, int from, const uint8_t *p, uint64_t n, float plus)
{
    float x[1024];
    uint8_t le[sizeof x];

    while (n > 0) {
        size_t part = (size_t)BR_MIN(n, (uint64_t)BR_COUNT(x));
        uint64_t bytes = 0;
        bool ok = br_qtype_bytes(from, part, &bytes);

        br_check(ok && "floats");
        br_dequant(from, p, x, part);
        for (size_t i = 0; plus != 0 && i < part; i++)
            x[i] += plus;
        ok = br_quant(BR_Q_F32, x, le, part, NULL);
        br_check(ok && "F32 has an encoder");
        BR_TRY(br_hf_put(h, le, part * 4));
        p += bytes;
        n -= part;
    }
    return BR_OK;
}

static br_code
put(br_hf *h, const br_hf_plan *p, const br_st_tensor *t, const uint8_t *from,
    uint64_t bytes)
{
    int type = br_st_dtype_qtype(t->dtype);

    if (br_hf_is_f8(t))
        return br_hf_f8_put(h, p, t, from, bytes);
    if (type != p->info.type || p->plus1)
        return put_wide(h, type, from, bytes * 8 / br_st_dtype_bits(t->dtype),
                        p->plus1 ? 1 : 0);
    for (uint64_t at = 0; at < bytes; at += PART) {
        size_t n = (size_t)BR_MIN(bytes - at, (uint64_t)PART);

        BR_TRY(br_hf_put(h, from + at, n));
        if (n == PART)
            tell(h, 0);
    }
    return BR_OK;
}

static br_code
put_permuted(br_hf *h, const br_hf_plan *p, const br_st_tensor *t)
{
    uint64_t row = t->bytes / t->dim[0], half = t->dim[0] / p->heads / 2;

    for (uint64_t head = 0; head < p->heads; head++)
        for (uint64_t i = 0; i < half; i++) {
            const uint8_t *a = t->data + (head * 2 * half + i) * row;

            BR_TRY(put(h, p, t, a, row));
            BR_TRY(put(h, p, t, a + half * row, row));
        }
    return BR_OK;
}

/* One of each `step` numbers of every row. */
static br_code
put_columns(br_hf *h, const br_hf_plan *p)
{
    const br_st_tensor *t = p->src[0];
    uint64_t size = br_st_dtype_bits(t->dtype) / 8;

    for (uint64_t i = p->first; i < t->bytes / size; i += p->step)
        BR_TRY(
            put_wide(h, br_st_dtype_qtype(t->dtype), t->data + i * size, 1, 0));
    return BR_OK;
}

/* Rows of blocks of 32. A byte of theirs holds two neighbours, low first; one
 * of ours a number of the first half and one of the second:
 *
 *   theirs   1.0  3.2  5.4 ...          ours   16.0  17.1  18.2 ...           */
static br_code
put_packed(br_hf *h, const br_hf_plan *p)
{
    const br_st_tensor *t = p->src[0];
    uint64_t rows = t->dim[0] * t->dim[1], n = t->dim[2];

    for (uint64_t r = p->first; r < rows; r += p->step)
        for (uint64_t b = 0; b < n; b++) {
            const uint8_t *from = t->data + 16 * (r * n + b);
            uint8_t to[17];

            to[0] = p->src[1]->data[r * n + b];
            for (int j = 0; j < 16; j++) {
                int low = (from[j / 2] >> (4 * (j % 2))) & 15;
                int high = (from[8 + j / 2] >> (4 * (j % 2))) & 15;

                to[1 + j] = (uint8_t)(low | high << 4);
            }
            BR_TRY(br_hf_put(h, to, sizeof to));
        }
    return BR_OK;
}

/* 32 rows at a time: what they take of a column lies in a line or two of the
 * cache. */
static br_code
put_turned(br_hf *h, const br_hf_plan *p)
{
    enum { ROWS = 32 };
    const br_st_tensor *t = p->src[0];
    uint64_t in = t->dim[1], out = t->dim[2], rows = out / p->step;
    uint64_t size = br_st_dtype_bits(t->dtype) / 8;
    uint8_t *tile = br_try_calloc(in, ROWS * size);
    br_code code = BR_OK;

    if (!tile)
        return br_fail(h->st, BR_E_OOM, "out of memory to turn a tensor");
    for (uint64_t at = 0; code == BR_OK && at < t->dim[0] * rows;) {
        uint64_t e = at / rows, r = at % rows;
        uint64_t n = BR_MIN(rows - r, (uint64_t)ROWS);
        const uint8_t *from =
            t->data + (e * in * out + p->first + r * p->step) * size;

        for (uint64_t i = 0; i < in; i++, from += out * size)
            for (uint64_t k = 0; k < n; k++)
                memcpy(tile + (k * in + i) * size, from + k * p->step * size,
                       size);
        code = br_hf_put(h, tile, n * in * size);
        at += n;
    }
    br_free(tile);
    return code;
}

static br_code
put_plan(br_hf *h, const br_hf_plan *p)
{
    uint8_t le[4];

    if (p->step) {
        BR_TRY(p->turned       ? put_turned(h, p)
               : p->n_src == 2 ? put_packed(h, p)
                               : put_columns(h, p));
        for (uint32_t i = 0; i < p->n_src; i++)
            tell(h, p->src[i]->bytes);
        return BR_OK;
    }

    for (uint32_t i = 0; p->own && i < p->info.dim[0]; i++) {
        bool ok = br_quant(BR_Q_F32, &p->own[i], le, 1, NULL);

        br_check(ok && "F32 has an encoder");
        BR_TRY(br_hf_put(h, le, 4));
    }
    for (uint32_t i = 0; i < p->n_src; i++) {
        const br_st_tensor *t = p->src[i];

        BR_TRY(p->heads ? put_permuted(h, p, t)
                        : put(h, p, t, t->data, t->bytes));
        tell(h, t->bytes);
    }
    return BR_OK;
}

/* general.file_type of the format that most bytes of matrices have. */
static uint32_t
file_type(const br_hf *h)
{
    uint64_t bytes[4] = {0}; /* F32 F16 BF16 MXFP4 */

    for (size_t i = 0; i < h->plans.n; i++) {
        const br_hf_plan *p = &h->plans.at[i];
        int k = p->info.type == BR_Q_F32     ? 0
                : p->info.type == BR_Q_F16   ? 1
                : p->info.type == BR_Q_MXFP4 ? 3
                                             : 2;

        if (p->info.n_dims > 1)
            bytes[k] += p->src[0]->bytes * p->n_src;
    }
    if (bytes[3] > 0)
        return 38;
    if (bytes[2] > bytes[0] && bytes[2] > bytes[1])
        return 32;
    return bytes[1] > bytes[0] ? 1 : 0;
}

br_code
br_hf_declare(br_hf *h)
{
    br_gguf_w_u32(h->w, "general.file_type", file_type(h));
    br_gguf_w_u32(h->w, "general.quantization_version", 2);
    for (size_t i = 0; i < h->plans.n; i++) {
        const br_hf_plan *p = &h->plans.at[i];
        uint64_t n = 1, bytes = 0;
        bool ok = true;

        for (uint32_t d = 0; d < p->info.n_dims; d++)
            ok = ok && !__builtin_mul_overflow(n, p->info.dim[d], &n);
        if (!ok || !br_qtype_bytes(p->info.type, n, &bytes))
            return br_fail(h->st, BR_E_FORMAT, "tensor '%.*s' is too large",
                           (int)p->info.name.n, p->info.name.p);
        h->stats->weights += n;
        h->stats->bytes += bytes;
        h->stats->tensors++;
        for (uint32_t k = 0; k < p->n_src; k++)
            h->total += p->src[k]->bytes;
        br_gguf_w_tensor(h->w, &p->info);
    }
    return BR_OK;
}

br_code
br_hf_data(br_hf *h)
{
    for (size_t i = 0; i < h->plans.n; i++)
        BR_TRY(put_plan(h, &h->plans.at[i]));
    return BR_OK;
}

/* dtype.c - conversions between the dtypes of a task program.
 *
 * Cost: some 20 ns a store (base/mini.c). Loads of F16 and BF16, which weights are made of,
 * are bit moves.
 * SPDX-License-Identifier: Apache-2.0 */
#include "mega/dtype.h"

#include <math.h>
#include <string.h>

bool
br_dt_is_float(int dt)
{
    return dt == BR_MDT_F32 || dt == BR_MDT_F16 || dt == BR_MDT_BF16 ||
           dt == BR_MDT_F8E4M3 || dt == BR_MDT_F8E5M2 || dt == BR_DT_F64;
}

/* bits of an element */
static int
width(int dt)
{
    static const uint8_t bits[BR_DT_COUNT] = {
        [BR_MDT_F32] = 32,   [BR_MDT_F16] = 16,   [BR_MDT_BF16] = 16,
        [BR_MDT_F8E4M3] = 8, [BR_MDT_F8E5M2] = 8, [BR_MDT_I32] = 32,
        [BR_MDT_I8] = 8,     [BR_MDT_I4] = 4,     [BR_MDT_U8] = 8,
        [BR_MDT_BOOL] = 8,   [BR_DT_F64] = 64,
    };

    br_check((unsigned)dt < BR_DT_COUNT && "dtype in range");
    return bits[dt];
}

const char *
br_dt_name(int dt)
{
    static const char *const names[BR_DT_COUNT] = {
        [BR_MDT_F32] = "F32",       [BR_MDT_F16] = "F16",
        [BR_MDT_BF16] = "BF16",     [BR_MDT_F8E4M3] = "F8E4M3",
        [BR_MDT_F8E5M2] = "F8E5M2", [BR_MDT_I32] = "I32",
        [BR_MDT_I8] = "I8",         [BR_MDT_I4] = "I4",
        [BR_MDT_U8] = "U8",         [BR_MDT_BOOL] = "BOOL",
        [BR_DT_F64] = "F64",
    };

    return (unsigned)dt < BR_DT_COUNT ? names[dt] : br_mega_dtype_name(dt);
}

int64_t
br_dt_row_bytes(int dt, int64_t n)
{
    int w = width(dt);

    return w == 4 ? n / 2 + n % 2 : n * (w / 8);
}

#define GET(type)                                                  \
    do {                                                           \
        type got;                                                  \
        memcpy(&got, p + i * (int64_t)sizeof(type), sizeof(type)); \
        x = (double)got;                                           \
    } while (0)

double
br_dt_get(int dt, const void *row, int64_t i)
{
    const unsigned char *p = row;
    uint16_t h;
    double x = 0;

    switch (dt) {
    case BR_MDT_F32: GET(float); break;
    case BR_MDT_F16:
        memcpy(&h, p + 2 * i, 2);
        x = (double)br_f16_to_f32(h);
        break;
    case BR_MDT_BF16:
        memcpy(&h, p + 2 * i, 2);
        x = (double)br_bf16_to_f32(h);
        break;
    case BR_MDT_F8E4M3: x = (double)br_f8e4m3_to_f32(p[i]); break;
    case BR_MDT_F8E5M2: x = (double)br_f8e5m2_to_f32(p[i]); break;
    case BR_MDT_I32: GET(int32_t); break;
    case BR_MDT_I8: GET(int8_t); break;
    case BR_MDT_I4: x = (p[i / 2] >> (i & 1) * 4 & 15) - 8; break;
    case BR_MDT_U8: x = p[i]; break;
    case BR_MDT_BOOL: x = p[i] != 0; break;
    case BR_DT_F64: GET(double); break;
    default: br_unreachable("dtype in range");
    }
    return x;
}

/* v rounded, when it lies in [lo, hi]. NaN lies nowhere. */
static bool
to_int(double v, double lo, double hi, int32_t *out)
{
    double r = rint(v);

    if (!(r >= lo && r <= hi))
        return false;
    *out = (int32_t)r;
    return true;
}

static bool
put_int(int dt, unsigned char *p, int64_t i, double v)
{
    int32_t n;

    switch (dt) {
    case BR_MDT_I32:
        if (!to_int(v, INT32_MIN, INT32_MAX, &n))
            return false;
        memcpy(p + 4 * i, &n, 4);
        return true;
    case BR_MDT_I8:
        if (!to_int(v, INT8_MIN, INT8_MAX, &n))
            return false;
        break;
    case BR_MDT_U8:
        if (!to_int(v, 0, UINT8_MAX, &n))
            return false;
        break;
    default:
        br_assert(dt == BR_MDT_I4 && "an integer dtype");
        if (!to_int(v, -8, 7, &n))
            return false;
        p[i / 2] = (unsigned char)((p[i / 2] & (i & 1 ? 0x0f : 0xf0)) |
                                   (n + 8) << (i & 1) * 4);
        return true;
    }
    p[i] = (unsigned char)n;
    return true;
}

bool
br_dt_put(int dt, void *row, int64_t i, double v)
{
    unsigned char *p = row;
    uint16_t h;
    float f;

    switch (dt) {
    case BR_MDT_F32:
        f = (float)v;
        memcpy(p + 4 * i, &f, 4);
        return true;
    case BR_MDT_F16:
        h = br_f64_to_f16(v);
        memcpy(p + 2 * i, &h, 2);
        return true;
    case BR_MDT_BF16:
        h = br_f64_to_bf16(v);
        memcpy(p + 2 * i, &h, 2);
        return true;
    case BR_MDT_F8E4M3: p[i] = br_f64_to_f8e4m3(v); return true;
    case BR_MDT_F8E5M2: p[i] = br_f64_to_f8e5m2(v); return true;
    case BR_MDT_BOOL: p[i] = v != 0; return true;
    case BR_DT_F64: memcpy(p + 8 * i, &v, 8); return true;
    default: return put_int(dt, p, i, v);
    }
}

void
br_dt_get_f32(int dt, const void *row, int64_t i, int64_t n, float *out)
{
    const unsigned char *p = row;
    uint16_t h;

    switch (dt) {
    case BR_MDT_F32:
        if (n)
            memcpy(out, p + 4 * i, (size_t)n * 4);
        break;
    case BR_MDT_BF16:
        for (int64_t k = 0; k < n; k++) {
            memcpy(&h, p + 2 * (i + k), 2);
            out[k] = br_bf16_to_f32(h);
        }
        break;
    case BR_MDT_F16:
        for (int64_t k = 0; k < n; k++) {
            memcpy(&h, p + 2 * (i + k), 2);
            out[k] = br_f16_to_f32(h);
        }
        break;
    default:
        for (int64_t k = 0; k < n; k++)
            out[k] = (float)br_dt_get(dt, row, i + k);
    }
}

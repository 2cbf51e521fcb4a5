/* gguf_value.c - numbers and texts out of GGUF metadata, of any width.
 *
 * Writers disagree on the type of a key (u32, i32, u64; a scalar or one value
 * for each layer), so readers ask for what they need and get it where the
 * value fits.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/gguf_int.h"

#include <string.h>

static const struct {
    const char *name;
    uint32_t bytes;
} types[BR_GGUF_TYPE_COUNT] = {
    [BR_GGUF_U8] = {"u8", 1},   [BR_GGUF_I8] = {"i8", 1},
    [BR_GGUF_U16] = {"u16", 2}, [BR_GGUF_I16] = {"i16", 2},
    [BR_GGUF_U32] = {"u32", 4}, [BR_GGUF_I32] = {"i32", 4},
    [BR_GGUF_F32] = {"f32", 4}, [BR_GGUF_BOOL] = {"bool", 1},
    [BR_GGUF_STR] = {"str", 0}, [BR_GGUF_ARR] = {"array", 0},
    [BR_GGUF_U64] = {"u64", 8}, [BR_GGUF_I64] = {"i64", 8},
    [BR_GGUF_F64] = {"f64", 8},
};

const char *
br_gguf_type_name(br_gguf_type t)
{
    return (unsigned)t < BR_GGUF_TYPE_COUNT ? types[t].name : "unknown";
}

uint32_t
br_gguf_type_bytes(br_gguf_type t)
{
    br_assert((unsigned)t < BR_GGUF_TYPE_COUNT);
    return types[t].bytes;
}

static uint64_t
load(const uint8_t *p, uint32_t bytes)
{
    uint64_t v = 0;

    for (uint32_t i = 0; i < bytes; i++)
        v |= (uint64_t)p[i] << (8 * i);
    return v;
}

uint32_t
br_gguf_le32(const uint8_t *p)
{
    return (uint32_t)load(p, 4);
}

uint64_t
br_gguf_le64(const uint8_t *p)
{
    return load(p, 8);
}

bool
br_gguf_i64(const br_gguf_kv *kv, uint64_t i, int64_t *out)
{
    uint64_t v;

    if (!kv || i >= kv->n || types[kv->elem].bytes == 0)
        return false;
    v = load(kv->data + i * types[kv->elem].bytes, types[kv->elem].bytes);
    switch (kv->elem) {
    case BR_GGUF_U64:
        if (v > INT64_MAX)
            return false;
        *out = (int64_t)v;
        return true;
    case BR_GGUF_U8:
    case BR_GGUF_U16:
    case BR_GGUF_U32:
    case BR_GGUF_BOOL:
    case BR_GGUF_I64: *out = (int64_t)v; return true;
    case BR_GGUF_I8: *out = (int8_t)v; return true;
    case BR_GGUF_I16: *out = (int16_t)v; return true;
    case BR_GGUF_I32: *out = (int32_t)v; return true;
    case BR_GGUF_F32:
    case BR_GGUF_F64:
    case BR_GGUF_STR:
    case BR_GGUF_ARR:
    case BR_GGUF_TYPE_COUNT: break;
    }
    return false;
}

bool
br_gguf_f64(const br_gguf_kv *kv, uint64_t i, double *out)
{
    uint64_t v;
    int64_t n;
    float f;

    if (!kv || i >= kv->n)
        return false;
    if (kv->elem == BR_GGUF_F32) {
        uint32_t w = br_gguf_le32(kv->data + i * 4);

        memcpy(&f, &w, sizeof f);
        *out = (double)f;
        return true;
    }
    if (kv->elem == BR_GGUF_F64) {
        v = br_gguf_le64(kv->data + i * 8);
        memcpy(out, &v, sizeof *out);
        return true;
    }
    if (!br_gguf_i64(kv, i, &n))
        return false;
    *out = (double)n;
    return true;
}

bool
br_gguf_str(const br_gguf_kv *kv, uint64_t i, br_text *out)
{
    const uint8_t *p;

    if (!kv || i >= kv->n || kv->elem != BR_GGUF_STR)
        return false;
    p = kv->data + (kv->str_off ? kv->str_off[i] : 0);
    *out = (br_text){(const char *)p + 8, (size_t)br_gguf_le64(p)};
    return true;
}

bool
br_gguf_i64_layer(const br_gguf_kv *kv, uint64_t il, int64_t *out)
{
    return kv && br_gguf_i64(kv, kv->type == BR_GGUF_ARR ? il : 0, out);
}

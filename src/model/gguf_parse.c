/* gguf_parse.c - the header of one GGUF file, every number of it doubted.
 *
 *   "GGUF" version n_tensors n_kv
 *   n_kv times       key | type | value
 *                    string: u64 length, bytes
 *                    array:  u32 element type, u64 count, elements
 *   n_tensors times  name | u32 n_dims | u64 dim[n_dims] | u32 type | u64 offset
 *   padding to general.alignment
 *   data; offsets count from here
 *
 * A count is compared with the bytes that are left before anything of that
 * size is allocated, so memory stays in proportion to the file: at most 8
 * bytes for each byte of header (a tensor is 32 bytes on disk at least and
 * 120 here with its name's place in the index, 88 more for that).
 *
 * The order of tensor data is free, but no two tensors share a byte. The
 * weights themselves are not touched.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/gguf_int.h"
#include "model/quant.h"

#include <stdlib.h>
#include <string.h>

enum {
    MIN_KV_BYTES = 8 + 1 + 4 + 1,      /* a key of one letter, a bool */
    MIN_TENSOR_BYTES = 8 + 1 + 4 + 12, /* a name of one letter, no dims */
};

typedef struct cursor {
    const uint8_t *at, *end;
    br_status *st;
} cursor;

static size_t
left(const cursor *c)
{
    return (size_t)(c->end - c->at);
}

/* ---- pieces ------------------------------------------------------------- */

static br_code
take(cursor *c, size_t n, const char *what, const uint8_t **out)
{
    *out = c->at;
    if (n > left(c))
        return br_fail(c->st, BR_E_FORMAT,
                       "%s of %zu bytes, but the file ends after %zu", what, n,
                       left(c));
    c->at += n;
    return BR_OK;
}

static br_code
take_u32(cursor *c, const char *what, uint32_t *out)
{
    const uint8_t *p;

    BR_TRY(take(c, 4, what, &p));
    *out = br_gguf_le32(p);
    return BR_OK;
}

static br_code
take_u64(cursor *c, const char *what, uint64_t *out)
{
    const uint8_t *p;

    BR_TRY(take(c, 8, what, &p));
    *out = br_gguf_le64(p);
    return BR_OK;
}

/* A length and so many bytes; limit 0: as many as the file has. */
static br_code
take_text(cursor *c, const char *what, uint64_t limit, br_text *out)
{
    const uint8_t *p;
    uint64_t n;

    BR_TRY(take_u64(c, what, &n));
    if (n > left(c))
        return br_fail(c->st, BR_E_FORMAT,
                       "%s: length %llu, but the file ends after %zu bytes",
                       what, (unsigned long long)n, left(c));
    if (limit && n > limit)
        return br_fail(c->st, BR_E_LIMIT, "%s: length %llu, the limit is %llu",
                       what, (unsigned long long)n, (unsigned long long)limit);
    BR_TRY(take(c, (size_t)n, what, &p));
    *out = (br_text){(const char *)p, (size_t)n};
    return BR_OK;
}

/* ---- metadata ----------------------------------------------------------- */

static br_code
check_bools(const br_gguf_kv *kv, br_status *st)
{
    for (uint64_t i = 0; i < kv->n; i++)
        if (kv->data[i] > 1)
            return br_fail(st, BR_E_FORMAT,
                           "value %llu: a bool of %d; it is 0 or 1",
                           (unsigned long long)i, kv->data[i]);
    return BR_OK;
}

static br_code
read_strings(cursor *c, br_gguf_kv *kv, br_arena *a)
{
    uint64_t *off;
    br_text t;

    if (kv->n > left(c) / 8)
        return br_fail(c->st, BR_E_FORMAT,
                       "%llu strings, but the file ends after %zu bytes",
                       (unsigned long long)kv->n, left(c));
    off = br_arena_get(a, BR_MAX((size_t)kv->n, (size_t)1) * sizeof *off);
    if (!off)
        return br_fail(c->st, BR_E_OOM, "out of memory for %llu strings",
                       (unsigned long long)kv->n);
    kv->str_off = off;
    for (uint64_t i = 0; i < kv->n; i++) {
        off[i] = (uint64_t)(c->at - kv->data);
        if (take_text(c, "string", 0, &t) != BR_OK) {
            br_prefix(c->st, "element %llu", (unsigned long long)i);
            return BR_E_FORMAT;
        }
    }
    return BR_OK;
}

/* n values of one type; a count is compared with the file before use. */
static br_code
read_values(cursor *c, br_gguf_kv *kv, br_gguf_type type, br_arena *a)
{
    size_t size = br_gguf_type_bytes(type);
    const uint8_t *p;

    kv->data = c->at;
    if (type == BR_GGUF_STR)
        return read_strings(c, kv, a);
    if (kv->n > left(c) / size)
        return br_fail(
            c->st, BR_E_FORMAT,
            "%llu values of type %s, but the file ends after %zu bytes",
            (unsigned long long)kv->n, br_gguf_type_name(type), left(c));
    BR_TRY(take(c, (size_t)kv->n * size, "values", &p));
    return type == BR_GGUF_BOOL ? check_bools(kv, c->st) : BR_OK;
}

static br_code
read_array(cursor *c, br_gguf_kv *kv, br_arena *a)
{
    uint32_t elem;

    BR_TRY(take_u32(c, "element type", &elem));
    if (elem == BR_GGUF_ARR)
        return br_fail(c->st, BR_E_UNSUPPORTED, "an array of arrays");
    if (elem >= BR_GGUF_TYPE_COUNT)
        return br_fail(c->st, BR_E_FORMAT, "no element type has the code %u",
                       elem);
    kv->elem = (br_gguf_type)elem;
    BR_TRY(take_u64(c, "array count", &kv->n));
    if (kv->n > BR_GGUF_MAX_ARRAY)
        return br_fail(c->st, BR_E_LIMIT,
                       "an array of %llu elements, the limit is %d",
                       (unsigned long long)kv->n, BR_GGUF_MAX_ARRAY);
    return read_values(c, kv, kv->elem, a);
}

static br_code
read_value(cursor *c, br_gguf_kv *kv, br_arena *a)
{
    uint32_t type;
    br_text t;

    BR_TRY(take_u32(c, "type", &type));
    if (type >= BR_GGUF_TYPE_COUNT)
        return br_fail(c->st, BR_E_FORMAT, "no value type has the code %u",
                       type);
    kv->type = kv->elem = (br_gguf_type)type;
    if (type == BR_GGUF_ARR)
        return read_array(c, kv, a);
    kv->n = 1;
    kv->data = c->at;
    if (type == BR_GGUF_STR)
        return take_text(c, "string", 0, &t);
    return read_values(c, kv, kv->type, a);
}

static br_code
read_kv(cursor *c, br_gguf_part *part, size_t i, br_arena *a)
{
    br_gguf_kv *kv = &part->kv[i];
    br_map_value *at;
    br_code code;
    bool fresh;

    code = take_text(c, "name", BR_GGUF_MAX_KEY_BYTES, &kv->key);
    if (code == BR_OK && kv->key.n == 0)
        code = br_fail(c->st, BR_E_FORMAT, "an empty name");
    if (code != BR_OK) {
        br_prefix(c->st, "key %zu", i);
        return code;
    }
    code = read_value(c, kv, a);
    if (code == BR_OK) {
        at = br_map_put(&part->keys, kv->key, &fresh);
        if (!at)
            return br_fail(c->st, BR_E_OOM, "out of memory for keys");
        if (!fresh)
            code = br_fail(c->st, BR_E_FORMAT, "the same key as key %llu",
                           (unsigned long long)at->u);
        else
            at->u = i;
    }
    if (code != BR_OK)
        br_prefix(c->st, "key %zu '%.*s'", i, (int)BR_MIN(kv->key.n, 100u),
                  kv->key.p);
    return code;
}

/* ---- tensors ------------------------------------------------------------ */

/* Dimensions, row and total against the number format; file: of one, which has no
 * formats of the program's own. */
static br_code
measure(br_gguf_tensor *t, bool file, br_status *st)
{
    const br_qinfo *q = br_qinfo_of(t->type);
    uint64_t n = 1;

    if (!q->name || (file && (q->flags & BR_QF_INSIDE)))
        return br_fail(st, BR_E_FORMAT,
                       "no tensor type has the code %d (or it was removed)",
                       t->type);
    for (uint32_t d = 0; d < t->n_dims; d++) {
        if (t->dim[d] == 0 || t->dim[d] > INT64_MAX)
            return br_fail(st, BR_E_FORMAT, "dimension %u is %llu", d,
                           (unsigned long long)t->dim[d]);
        if (__builtin_mul_overflow(n, t->dim[d], &n) || n > INT64_MAX)
            return br_fail(st, BR_E_FORMAT,
                           "the number of elements does not fit 63 bits");
    }
    if (t->dim[0] % q->elems != 0)
        return br_fail(st, BR_E_FORMAT,
                       "a row of %llu is not a multiple of %u, the block of %s",
                       (unsigned long long)t->dim[0], q->elems, q->name);
    if (!br_qtype_bytes(t->type, n, &t->bytes) || t->bytes > INT64_MAX)
        return br_fail(st, BR_E_FORMAT,
                       "the number of bytes does not fit 63 bits");
    return BR_OK;
}

/* Leaves the offset in *off; where the data begins is known at the end. */
static br_code
read_tensor_at(cursor *c, br_gguf_tensor *t, bool file, uint64_t *off)
{
    uint32_t type;

    BR_TRY(take_u32(c, "number of dimensions", &t->n_dims));
    if (t->n_dims > BR_GGUF_MAX_DIMS)
        return br_fail(c->st, BR_E_LIMIT, "%u dimensions, the limit is %d",
                       t->n_dims, BR_GGUF_MAX_DIMS);
    for (uint32_t d = 0; d < BR_GGUF_MAX_DIMS; d++)
        t->dim[d] = 1;
    for (uint32_t d = 0; d < t->n_dims; d++)
        BR_TRY(take_u64(c, "dimension", &t->dim[d]));
    BR_TRY(take_u32(c, "type", &type));
    t->type = type <= INT32_MAX ? (int)type : -1;
    if (t->type < 0)
        return br_fail(c->st, BR_E_FORMAT, "no tensor type has the code %u",
                       type);
    BR_TRY(take_u64(c, "offset", off));
    return measure(t, file, c->st);
}

static br_code
read_tensor(cursor *c, br_gguf_part *part, size_t i, uint64_t *off)
{
    br_gguf_tensor *t = &part->tensor[i];
    br_code code = take_text(c, "name", BR_GGUF_MAX_NAME_BYTES, &t->name);

    if (code == BR_OK && t->name.n == 0)
        code = br_fail(c->st, BR_E_FORMAT, "an empty name");
    if (code != BR_OK) {
        br_prefix(c->st, "tensor %zu", i);
        return code;
    }
    code = read_tensor_at(c, t, part->map.n > 0, off);
    if (code != BR_OK)
        br_prefix(c->st, "tensor '%.*s'", (int)t->name.n, t->name.p);
    return code;
}

/* Turns offsets into addresses: aligned, and inside the file. */
static br_code
place_tensors(br_gguf_part *part, uint64_t data, const uint64_t *off,
              br_status *st)
{
    for (size_t i = 0; i < part->n_tensors; i++) {
        br_gguf_tensor *t = &part->tensor[i];
        uint64_t room = part->n > data ? part->n - data : 0;

        if (off[i] % part->alignment != 0)
            return br_fail(st, BR_E_FORMAT,
                           "tensor '%.*s': offset %llu is not a multiple of "
                           "the alignment %u",
                           (int)t->name.n, t->name.p,
                           (unsigned long long)off[i], part->alignment);
        if (off[i] > room || t->bytes > room - off[i])
            return br_fail(
                st, BR_E_FORMAT,
                "tensor '%.*s': %llu bytes at offset %llu, but the file has "
                "%llu bytes of data: not all of it is here",
                (int)t->name.n, t->name.p, (unsigned long long)t->bytes,
                (unsigned long long)off[i], (unsigned long long)room);
        t->data = part->p + data + off[i];
    }
    return BR_OK;
}

static int
by_data(const void *a, const void *b)
{
    const br_gguf_tensor *x = *(br_gguf_tensor *const *)a;
    const br_gguf_tensor *y = *(br_gguf_tensor *const *)b;

    return x->data < y->data ? -1 : x->data > y->data;
}

static br_code
check_overlap(br_gguf_part *part, br_gguf_tensor **order, br_status *st)
{
    bool sorted = true;

    for (size_t i = 0; i < part->n_tensors; i++) {
        order[i] = &part->tensor[i];
        sorted = sorted && (i == 0 || by_data(&order[i - 1], &order[i]) <= 0);
    }
    if (!sorted)
        qsort(order, part->n_tensors, sizeof *order, by_data);
    for (size_t i = 1; i < part->n_tensors; i++) {
        const br_gguf_tensor *x = order[i - 1], *y = order[i];

        if (x->bytes > (uint64_t)(y->data - x->data))
            return br_fail(st, BR_E_FORMAT,
                           "tensors '%.*s' and '%.*s' share bytes of the file",
                           (int)x->name.n, x->name.p, (int)y->name.n,
                           y->name.p);
    }
    return BR_OK;
}

/* ---- the file ----------------------------------------------------------- */

static br_code
read_counts(cursor *c, br_gguf_part *part)
{
    uint64_t n_tensors, n_kv;
    const uint8_t *magic;

    if (left(c) == 0)
        return br_fail(c->st, BR_E_FORMAT, "no GGUF file: it is empty");
    if (left(c) < 4)
        return br_fail(c->st, BR_E_FORMAT, "no GGUF file: it has %zu bytes",
                       left(c));
    BR_TRY(take(c, 4, "magic", &magic));
    if (memcmp(magic, "GGUF", 4) != 0)
        return br_fail(c->st, BR_E_FORMAT,
                       "no GGUF file: it begins with %02x %02x %02x %02x",
                       magic[0], magic[1], magic[2], magic[3]);
    BR_TRY(take_u32(c, "version", &part->version));
    if (part->version != 0 && (part->version & 0xffff) == 0)
        return br_fail(c->st, BR_E_VERSION, "a big-endian file");
    if (part->version < 2 || part->version > 3)
        return br_fail(c->st, BR_E_VERSION,
                       "version %u; this reads versions 2 and 3",
                       part->version);
    BR_TRY(take_u64(c, "tensor count", &n_tensors));
    BR_TRY(take_u64(c, "key count", &n_kv));
    if (n_tensors > BR_GGUF_MAX_TENSORS)
        return br_fail(c->st, BR_E_LIMIT, "%llu tensors, the limit is %d",
                       (unsigned long long)n_tensors, BR_GGUF_MAX_TENSORS);
    if (n_kv > BR_GGUF_MAX_KEYS)
        return br_fail(c->st, BR_E_LIMIT, "%llu keys, the limit is %d",
                       (unsigned long long)n_kv, BR_GGUF_MAX_KEYS);
    if (n_kv > left(c) / MIN_KV_BYTES ||
        n_tensors > (left(c) - n_kv * MIN_KV_BYTES) / MIN_TENSOR_BYTES)
        return br_fail(c->st, BR_E_FORMAT,
                       "%llu keys and %llu tensors, but the file ends after "
                       "%zu bytes",
                       (unsigned long long)n_kv, (unsigned long long)n_tensors,
                       left(c));
    part->n_kv = (size_t)n_kv;
    part->n_tensors = (size_t)n_tensors;
    return BR_OK;
}

static br_code
find_alignment(br_gguf_part *part, br_status *st)
{
    const br_gguf_kv *kv = br_gguf_part_find(part, "general.alignment");
    int64_t v;

    part->alignment = BR_GGUF_DEFAULT_ALIGNMENT;
    if (!kv)
        return BR_OK;
    if (kv->type == BR_GGUF_ARR || !br_gguf_i64(kv, 0, &v))
        return br_fail(st, BR_E_FORMAT,
                       "key 'general.alignment': type %s, not an integer",
                       br_gguf_type_name(kv->type));
    if (v <= 0 || (v & (v - 1)) != 0)
        return br_fail(st, BR_E_FORMAT,
                       "key 'general.alignment': %lld is not a power of two",
                       (long long)v);
    if (v > BR_GGUF_MAX_ALIGNMENT)
        return br_fail(st, BR_E_LIMIT,
                       "key 'general.alignment': %lld, the limit is %d",
                       (long long)v, BR_GGUF_MAX_ALIGNMENT);
    part->alignment = (uint32_t)v;
    return BR_OK;
}

static br_code
read_tensors(cursor *c, br_gguf_part *part, void *scratch)
{
    uint64_t *off = scratch, data;

    for (size_t i = 0; i < part->n_tensors; i++)
        BR_TRY(read_tensor(c, part, i, &off[i]));
    data = (uint64_t)(c->at - part->p) + part->alignment - 1;
    data -= data % part->alignment;
    BR_TRY(place_tensors(part, data, off, c->st));
    return check_overlap(part, scratch, c->st);
}

br_code
br_gguf_parse(br_gguf_part *part, br_arena *a, br_status *st)
{
    cursor c = {part->p, part->p + part->n, st};
    void *scratch;
    br_code code;

    BR_TRY(read_counts(&c, part));
    part->kv = br_arena_new(a, br_gguf_kv, part->n_kv + 1);
    part->tensor = br_arena_new(a, br_gguf_tensor, part->n_tensors + 1);
    if (!part->kv || !part->tensor || !br_map_reserve(&part->keys, part->n_kv))
        return br_fail(st, BR_E_OOM, "out of memory for the header");
    for (size_t i = 0; i < part->n_kv; i++)
        BR_TRY(read_kv(&c, part, i, a));
    BR_TRY(find_alignment(part, st));
    /* Offsets while they are read, then the order of the data. */
    _Static_assert(sizeof(uint64_t) >= sizeof(br_gguf_tensor *), "one scratch");
    scratch = br_try_calloc(part->n_tensors + 1, sizeof(uint64_t));
    if (!scratch)
        return br_fail(st, BR_E_OOM, "out of memory for the header");
    code = read_tensors(&c, part, scratch);
    br_free(scratch);
    return code;
}

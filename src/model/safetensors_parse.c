/* safetensors_parse.c - the header of one safetensors file, every number of it
 * doubted.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "model/safetensors_int.h"

#include <stdlib.h>
#include <string.h>

typedef struct header {
    br_st *s;
    br_json_reader r;
    size_t first; /* tensor of this file */
    const uint8_t *data;
    uint64_t data_bytes;
    uint32_t file;
    br_status *st;
} header;

/* ---- pieces ------------------------------------------------------------- */

/* The reader has said what was wrong with the text, else this says it. */
static br_code
expected(header *h, br_json_tok tok, const char *what)
{
    if (tok == BR_JSON_ERROR && h->st && h->st->code != BR_OK)
        return h->st->code;
    return br_fail(h->st, BR_E_FORMAT, "%s expected", what);
}

static br_code
read_u64(header *h, br_json_tok tok, const char *what, uint64_t *out)
{
    int64_t v;

    if (tok != BR_JSON_INT)
        return expected(h, tok, what);
    if (!br_json_to_i64(h->r.text, &v) || v < 0)
        return br_fail(h->st, BR_E_FORMAT, "%s: %.*s is out of range", what,
                       (int)BR_MIN(h->r.text.n, (size_t)30), h->r.text.p);
    *out = (uint64_t)v;
    return BR_OK;
}

static br_code
read_dtype(header *h, br_st_tensor *t)
{
    br_json_tok tok = br_json_next(&h->r);

    if (tok != BR_JSON_STRING)
        return expected(h, tok, "dtype: a string");
    for (int d = 0; d < BR_ST_DTYPE_COUNT; d++)
        if (br_text_is(h->r.text, br_st_dtype_name((br_st_dtype)d))) {
            t->dtype = (br_st_dtype)d;
            return BR_OK;
        }
    return br_fail(h->st, BR_E_UNSUPPORTED, "dtype '%.*s' is not known",
                   (int)BR_MIN(h->r.text.n, (size_t)30), h->r.text.p);
}

static br_code
read_shape(header *h, br_st_tensor *t)
{
    br_json_tok tok = br_json_next(&h->r);

    if (tok != BR_JSON_ARR_OPEN)
        return expected(h, tok, "shape: a list");
    t->n_dims = 0;
    while ((tok = br_json_next(&h->r)) != BR_JSON_ARR_CLOSE) {
        if (t->n_dims == BR_ST_MAX_DIMS)
            return br_fail(h->st, BR_E_LIMIT, "shape: more than %d dimensions",
                           BR_ST_MAX_DIMS);
        BR_TRY(read_u64(h, tok, "shape: a dimension", &t->dim[t->n_dims]));
        t->n_dims++;
    }
    return BR_OK;
}

static br_code
read_offsets(header *h, uint64_t *out)
{
    br_json_tok tok = br_json_next(&h->r);

    if (tok != BR_JSON_ARR_OPEN)
        return expected(h, tok, "data_offsets: a list");
    for (int i = 0; i < 2; i++)
        BR_TRY(read_u64(h, br_json_next(&h->r), "data_offsets: a number",
                        &out[i]));
    tok = br_json_next(&h->r);
    return tok == BR_JSON_ARR_CLOSE
               ? BR_OK
               : expected(h, tok, "data_offsets: two numbers");
}

/* ---- one tensor --------------------------------------------------------- */

static br_code
check_tensor(header *h, br_st_tensor *t, const uint64_t *off)
{
    uint64_t bits = br_st_dtype_bits(t->dtype);

    for (uint32_t d = 0; d < t->n_dims; d++)
        if (__builtin_mul_overflow(bits, t->dim[d], &bits))
            return br_fail(h->st, BR_E_FORMAT, "shape: too many elements");
    if (off[0] > off[1] || off[1] > h->data_bytes)
        return br_fail(h->st, BR_E_FORMAT,
                       "data_offsets: %llu to %llu, but the file has %llu "
                       "bytes of data",
                       (unsigned long long)off[0], (unsigned long long)off[1],
                       (unsigned long long)h->data_bytes);
    if (off[1] - off[0] != bits / 8)
        return br_fail(h->st, BR_E_FORMAT,
                       "data_offsets: %llu bytes, but the shape has %llu of %s",
                       (unsigned long long)(off[1] - off[0]),
                       (unsigned long long)(bits / 8),
                       br_st_dtype_name(t->dtype));
    t->bytes = off[1] - off[0];
    t->data = h->data + off[0];
    return BR_OK;
}

enum { HAS_DTYPE = 1, HAS_SHAPE = 2, HAS_OFFSETS = 4, HAS_ALL = 7 };

static br_code
read_member(header *h, br_st_tensor *t, uint64_t *off, int *has)
{
    br_text key = h->r.text;
    int one = br_text_is(key, "dtype")          ? HAS_DTYPE
              : br_text_is(key, "shape")        ? HAS_SHAPE
              : br_text_is(key, "data_offsets") ? HAS_OFFSETS
                                                : 0;

    if (one == 0)
        return br_fail(h->st, BR_E_FORMAT, "'%.*s' is not known",
                       (int)BR_MIN(key.n, (size_t)40), key.p);
    if (*has & one)
        return br_fail(h->st, BR_E_FORMAT, "'%.*s' twice", (int)key.n, key.p);
    *has |= one;
    if (one == HAS_DTYPE)
        return read_dtype(h, t);
    return one == HAS_SHAPE ? read_shape(h, t) : read_offsets(h, off);
}

static br_code
read_tensor(header *h, br_st_tensor *t)
{
    br_json_tok tok = br_json_next(&h->r);
    uint64_t off[2] = {0, 0};
    int has = 0;

    if (tok != BR_JSON_OBJ_OPEN)
        return expected(h, tok, "an object");
    while ((tok = br_json_next(&h->r)) == BR_JSON_KEY)
        BR_TRY(read_member(h, t, off, &has));
    if (tok != BR_JSON_OBJ_CLOSE)
        return expected(h, tok, "a key");
    if (has != HAS_ALL)
        return br_fail(h->st, BR_E_FORMAT,
                       "dtype, shape or data_offsets is missing");
    return check_tensor(h, t, off);
}

static br_code
add_tensor(header *h)
{
    br_st_tensor t = {.file = h->file};
    br_map_value *at;
    br_code code;
    bool fresh;

    if (h->r.text.n == 0 || h->r.text.n > BR_ST_MAX_NAME_BYTES)
        return br_fail(h->st, BR_E_LIMIT,
                       "a tensor's name of %zu bytes, the limit is %d",
                       h->r.text.n, BR_ST_MAX_NAME_BYTES);
    if (h->s->tensors.n == BR_ST_MAX_TENSORS)
        return br_fail(h->st, BR_E_LIMIT, "more than %d tensors",
                       BR_ST_MAX_TENSORS);
    t.name.n = h->r.text.n;
    t.name.p = br_arena_str(&h->s->arena, h->r.text.p, h->r.text.n);
    if (!t.name.p)
        return br_fail(h->st, BR_E_OOM, "out of memory for names");
    code = read_tensor(h, &t);
    if (code != BR_OK) {
        br_prefix(h->st, "tensor '%.*s'", (int)BR_MIN(t.name.n, (size_t)100),
                  t.name.p);
        return code;
    }
    at = br_map_put(&h->s->names, t.name, &fresh);
    if (!at || !br_vec_push(&h->s->tensors, t))
        return br_fail(h->st, BR_E_OOM, "out of memory for tensors");
    if (!fresh)
        return br_fail(h->st, BR_E_FORMAT, "tensor '%.*s' is there twice",
                       (int)BR_MIN(t.name.n, (size_t)100), t.name.p);
    at->u = h->s->tensors.n - 1;
    return BR_OK;
}

/* ---- the file ----------------------------------------------------------- */

static br_code
read_metadata(header *h)
{
    br_json_tok tok = br_json_next(&h->r);

    if (tok != BR_JSON_OBJ_OPEN)
        return expected(h, tok, "__metadata__: an object");
    while ((tok = br_json_next(&h->r)) == BR_JSON_KEY) {
        tok = br_json_next(&h->r);
        if (tok != BR_JSON_STRING)
            return expected(h, tok, "__metadata__: a string");
    }
    return tok == BR_JSON_OBJ_CLOSE ? BR_OK : expected(h, tok, "a key");
}

static br_code
read_header(header *h)
{
    br_json_tok tok = br_json_next(&h->r);

    if (tok != BR_JSON_OBJ_OPEN)
        return expected(h, tok, "header: an object");
    while ((tok = br_json_next(&h->r)) == BR_JSON_KEY)
        BR_TRY(br_text_is(h->r.text, "__metadata__") ? read_metadata(h)
                                                     : add_tensor(h));
    if (tok != BR_JSON_OBJ_CLOSE)
        return expected(h, tok, "header: a key");
    tok = br_json_next(&h->r);
    return tok == BR_JSON_END ? BR_OK : expected(h, tok, "header: an end");
}

static int
by_data(const void *a, const void *b)
{
    const br_st_tensor *x = *(br_st_tensor *const *)a;
    const br_st_tensor *y = *(br_st_tensor *const *)b;

    if (x->data != y->data)
        return x->data < y->data ? -1 : 1;
    return x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

/* The data is one tensor after the other, from its first byte to its last. */
static br_code
check_cover(header *h, br_st_tensor **order)
{
    size_t n = h->s->tensors.n - h->first;
    const uint8_t *at = h->data;

    for (size_t i = 0; i < n; i++)
        order[i] = &h->s->tensors.at[h->first + i];
    qsort(order, n, sizeof *order, by_data);
    for (size_t i = 0; i < n; i++) {
        const br_st_tensor *t = order[i];

        if (t->data != at)
            return br_fail(h->st, BR_E_FORMAT,
                           "tensor '%.*s' begins at byte %zu of the data, %s",
                           (int)BR_MIN(t->name.n, (size_t)100), t->name.p,
                           (size_t)(t->data - h->data),
                           t->data < at ? "inside another one"
                                        : "after bytes that belong to none");
        at += t->bytes;
    }
    if (at != h->data + h->data_bytes)
        return br_fail(h->st, BR_E_FORMAT,
                       "%llu bytes of data, but the tensors end at %zu",
                       (unsigned long long)h->data_bytes,
                       (size_t)(at - h->data));
    return BR_OK;
}

static br_code
check_order(header *h)
{
    size_t n = h->s->tensors.n - h->first;
    br_st_tensor **order = br_try_calloc(n + 1, sizeof(br_st_tensor *));
    br_code code;

    if (!order)
        return br_fail(h->st, BR_E_OOM, "out of memory for tensors");
    code = check_cover(h, order);
    br_free(order);
    return code;
}

br_code
br_st_parse(br_st *s, const uint8_t *p, size_t n, uint32_t file, br_status *st)
{
    header h = {.s = s, .first = s->tensors.n, .file = file, .st = st};
    uint64_t size = 0;
    br_code code;

    for (int i = 0; i < 8 && n >= 8; i++)
        size |= (uint64_t)p[i] << 8 * i;
    if (n < 8)
        return br_fail(st, BR_E_FORMAT, "%zu bytes, no safetensors file", n);
    if (size > n - 8)
        return br_fail(st, BR_E_FORMAT,
                       "a header of %llu bytes, but the file ends after %zu",
                       (unsigned long long)size, n - 8);
    if (size > BR_ST_MAX_HEADER)
        return br_fail(st, BR_E_LIMIT,
                       "a header of %llu bytes, the limit is %d",
                       (unsigned long long)size, BR_ST_MAX_HEADER);
    h.data = p + 8 + size;
    h.data_bytes = n - 8 - size;
    br_json_open(&h.r, (const char *)p + 8, (size_t)size, 0, st);
    code = read_header(&h);
    br_json_close(&h.r);
    return code == BR_OK ? check_order(&h) : code;
}

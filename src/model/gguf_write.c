/* gguf_write.c - see gguf_write.h.
 *
 * Values are kept as the bytes they will be on disk. The header is written at
 * once; after that the writer only knows which tensor is due and how many of
 * its bytes are missing.
 *
 * general.alignment is followed when it was set (a copied file keeps its own).
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/gguf_write.h"

#include "base/map.h"
#include "model/gguf_int.h"
#include "model/quant.h"

#include <string.h>

typedef struct entry {
    br_text key;
    br_gguf_type type;
    br_text value; /* element type and count included */
    bool removed;
} entry;

typedef struct item {
    br_gguf_w_info info;
    uint64_t bytes, offset;
} item;

struct br_gguf_writer {
    br_arena arena; /* keys, values, names */
    br_map keys, names;
    BR_VEC(entry) kv;
    BR_VEC(item) tensors;
    br_status failed; /* the first failure of a setter */
    uint32_t alignment;
    bool open;
    br_out out;
    br_str *mem;      /* instead of out */
    size_t at;        /* tensor that is due */
    uint64_t missing; /* bytes of it */
};

br_gguf_writer *
br_gguf_w_new(void)
{
    br_gguf_writer *w = br_try_calloc(1, sizeof *w);

    if (!w)
        return NULL;
    br_arena_init(&w->arena, 0);
    w->alignment = BR_GGUF_DEFAULT_ALIGNMENT;
    return w;
}

void
br_gguf_w_free(br_gguf_writer *w)
{
    if (!w)
        return;
    if (w->open && !w->mem)
        br_out_drop(&w->out);
    br_map_fini(&w->keys);
    br_map_fini(&w->names);
    br_vec_fini(&w->kv);
    br_vec_fini(&w->tensors);
    br_arena_fini(&w->arena);
    br_free(w);
}

static void
oom(br_gguf_writer *w)
{
    br_fail(&w->failed, BR_E_OOM, "out of memory for the header");
}

/* ---- little endian ------------------------------------------------------ */

static void
put_le(br_str *s, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++)
        br_str_putc(s, (char)(v >> 8 * i & 255));
}

static void
put_text(br_str *s, br_text t)
{
    put_le(s, t.n, 8);
    br_str_put(s, t.p, t.n);
}

/* ---- metadata ----------------------------------------------------------- */

static entry *
entry_of(br_gguf_writer *w, br_text key)
{
    bool fresh;
    br_map_value *at;
    char *copy;

    at = br_map_get(&w->keys, key);
    if (at)
        return &w->kv.at[at->u];
    if (key.n == 0 || key.n > BR_GGUF_MAX_KEY_BYTES) {
        br_fail(&w->failed, BR_E_LIMIT, "a key of %zu bytes", key.n);
        return NULL;
    }
    copy = br_arena_str(&w->arena, key.p, key.n);
    if (!copy || !br_vec_push(&w->kv, ((entry){.key = {copy, key.n}}))) {
        oom(w);
        return NULL;
    }
    at = br_map_put(&w->keys, w->kv.at[w->kv.n - 1].key, &fresh);
    if (!at) {
        w->kv.n--;
        oom(w);
        return NULL;
    }
    at->u = w->kv.n - 1;
    return &w->kv.at[at->u];
}

/* Takes the bytes of a value, moved into the arena. */
static void
set(br_gguf_writer *w, br_text key, br_gguf_type type, br_str *value)
{
    entry *e = entry_of(w, key);
    char *copy =
        e && !value->oom
            ? br_arena_str(&w->arena, value->n ? value->at : "", value->n)
            : NULL;

    if (e && copy)
        *e = (entry){e->key, type, {copy, value->n}, false};
    else if (e)
        oom(w);
    br_str_fini(value);
}

static void
set_number(br_gguf_writer *w, const char *key, br_gguf_type type, uint64_t v)
{
    br_str s = {0};

    put_le(&s, v, (int)br_gguf_type_bytes(type));
    set(w, br_text_z(key), type, &s);
}

void
br_gguf_w_u32(br_gguf_writer *w, const char *key, uint32_t v)
{
    set_number(w, key, BR_GGUF_U32, v);
}

void
br_gguf_w_u64(br_gguf_writer *w, const char *key, uint64_t v)
{
    set_number(w, key, BR_GGUF_U64, v);
}

void
br_gguf_w_f32(br_gguf_writer *w, const char *key, float v)
{
    uint32_t u;

    memcpy(&u, &v, sizeof u);
    set_number(w, key, BR_GGUF_F32, u);
}

void
br_gguf_w_bool(br_gguf_writer *w, const char *key, bool v)
{
    set_number(w, key, BR_GGUF_BOOL, v);
}

void
br_gguf_w_str(br_gguf_writer *w, const char *key, br_text v)
{
    br_str s = {0};

    put_text(&s, v);
    set(w, br_text_z(key), BR_GGUF_STR, &s);
}

void
br_gguf_w_array(br_gguf_writer *w, const char *key, br_gguf_type elem,
                const void *v, size_t n)
{
    size_t size = br_gguf_type_bytes(elem);
    const uint8_t *p = v;
    br_str s = {0};

    br_check(size > 0 && "texts go through br_gguf_w_strs");
    put_le(&s, elem, 4);
    put_le(&s, n, 8);
    for (size_t i = 0; i < n && !s.oom; i++, p += size) {
        uint64_t u = 0;

        memcpy(&u, p, size); /* little endian here as in the file */
        put_le(&s, u, (int)size);
    }
    set(w, br_text_z(key), BR_GGUF_ARR, &s);
}

void
br_gguf_w_strs(br_gguf_writer *w, const char *key, const br_text *v, size_t n)
{
    br_str s = {0};

    put_le(&s, BR_GGUF_STR, 4);
    put_le(&s, n, 8);
    for (size_t i = 0; i < n && !s.oom; i++)
        put_text(&s, v[i]);
    set(w, br_text_z(key), BR_GGUF_ARR, &s);
}

void
br_gguf_w_copy(br_gguf_writer *w, const br_gguf_kv *kv)
{
    const uint8_t *end = kv->data;
    br_str s = {0};
    br_text t;

    if (kv->type == BR_GGUF_ARR) {
        put_le(&s, kv->elem, 4);
        put_le(&s, kv->n, 8);
    }
    if (kv->elem != BR_GGUF_STR)
        end += kv->n * br_gguf_type_bytes(kv->elem);
    else if (br_gguf_str(kv, kv->n - 1, &t)) /* texts follow each other */
        end = (const uint8_t *)t.p + t.n;
    br_str_put(&s, (const char *)kv->data, (size_t)(end - kv->data));
    set(w, kv->key, kv->type, &s);
}

void
br_gguf_w_remove(br_gguf_writer *w, const char *key)
{
    const br_map_value *at = br_map_get(&w->keys, br_text_z(key));

    if (at)
        w->kv.at[at->u].removed = true;
}

/* ---- tensors ------------------------------------------------------------ */

static br_code
check_info(const br_gguf_w_info *t, uint64_t *bytes, br_status *st)
{
    const br_qinfo *q = br_qinfo_of(t->type);
    uint64_t n = 1;

    if (t->name.n == 0 || t->name.n > BR_GGUF_MAX_NAME_BYTES)
        return br_fail(st, BR_E_LIMIT, "a name of %zu bytes, the limit is %d",
                       t->name.n, BR_GGUF_MAX_NAME_BYTES);
    if (!q->name || t->n_dims > BR_GGUF_MAX_DIMS)
        return br_fail(st, BR_E_FORMAT, "type %d, %u dimensions", t->type,
                       t->n_dims);
    for (uint32_t d = 0; d < t->n_dims; d++)
        if (t->dim[d] == 0 || __builtin_mul_overflow(n, t->dim[d], &n) ||
            n > INT64_MAX)
            return br_fail(st, BR_E_FORMAT, "dimension %u is %llu", d,
                           (unsigned long long)t->dim[d]);
    if ((t->n_dims ? t->dim[0] : 1) % q->elems != 0 ||
        !br_qtype_bytes(t->type, n, bytes) || *bytes > INT64_MAX)
        return br_fail(st, BR_E_FORMAT,
                       "a row of %llu is not a multiple of %u, the block of %s",
                       (unsigned long long)t->dim[0], q->elems, q->name);
    return BR_OK;
}

void
br_gguf_w_tensor(br_gguf_writer *w, const br_gguf_w_info *t)
{
    item i = {.info = *t};
    br_map_value *at;
    bool fresh;

    br_assert(!w->open && "the table is written at begin");
    if (check_info(t, &i.bytes, &w->failed) != BR_OK) {
        br_prefix(&w->failed, "tensor '%.*s'", (int)BR_MIN(t->name.n, 80u),
                  t->name.p);
        return;
    }
    i.info.name.p = br_arena_str(&w->arena, t->name.p, t->name.n);
    at = i.info.name.p ? br_map_put(&w->names, i.info.name, &fresh) : NULL;
    if (!at || !br_vec_push(&w->tensors, i)) {
        oom(w);
        return;
    }
    if (!fresh)
        br_fail(&w->failed, BR_E_FORMAT, "tensor '%s' twice", i.info.name.p);
}

/* ---- layout ------------------------------------------------------------- */

static uint64_t
padded(const br_gguf_writer *w, uint64_t n)
{
    uint64_t over = n % w->alignment;

    return over ? n + w->alignment - over : n;
}

/* Gives every tensor its offset. */
static void
lay_out(br_gguf_writer *w)
{
    uint64_t at = 0;

    for (size_t i = 0; i < w->tensors.n; i++) {
        w->tensors.at[i].offset = at;
        at = padded(w, at + w->tensors.at[i].bytes);
    }
}

static br_code
read_alignment(br_gguf_writer *w)
{
    const br_map_value *at = br_map_get(&w->keys, BR_TEXT("general.alignment"));
    const entry *e = at ? &w->kv.at[at->u] : NULL;
    uint32_t v;

    w->alignment = BR_GGUF_DEFAULT_ALIGNMENT;
    if (!e || e->removed)
        return BR_OK;
    v = e->type == BR_GGUF_U32 ? br_gguf_le32((const uint8_t *)e->value.p) : 0;
    if (v == 0 || (v & (v - 1)) != 0 || v > BR_GGUF_MAX_ALIGNMENT)
        return br_fail(&w->failed, BR_E_FORMAT,
                       "general.alignment is not a u32 and power of two");
    w->alignment = v;
    return BR_OK;
}

static void
put_header(const br_gguf_writer *w, br_str *s)
{
    size_t n_kv = 0;

    for (size_t i = 0; i < w->kv.n; i++)
        n_kv += !w->kv.at[i].removed;
    br_str_puts(s, "GGUF");
    put_le(s, 3, 4);
    put_le(s, w->tensors.n, 8);
    put_le(s, n_kv, 8);
    for (size_t i = 0; i < w->kv.n; i++) {
        const entry *e = &w->kv.at[i];

        if (e->removed)
            continue;
        put_text(s, e->key);
        put_le(s, e->type, 4);
        br_str_put(s, e->value.p, e->value.n);
    }
    for (size_t i = 0; i < w->tensors.n; i++) {
        const item *t = &w->tensors.at[i];

        put_text(s, t->info.name);
        put_le(s, t->info.n_dims, 4);
        for (uint32_t d = 0; d < t->info.n_dims; d++)
            put_le(s, t->info.dim[d], 8);
        put_le(s, (uint64_t)t->info.type, 4);
        put_le(s, t->offset, 8);
    }
    while (s->n % w->alignment != 0 && !s->oom)
        br_str_putc(s, 0);
}

/* ---- writing ------------------------------------------------------------ */

static br_code
put(br_gguf_writer *w, const void *p, size_t n, br_status *st)
{
    if (!w->mem)
        return br_out_put(&w->out, p, n, st);
    br_str_put(w->mem, p, n);
    return w->mem->oom ? br_fail(st, BR_E_OOM, "out of memory for the file")
                       : BR_OK;
}

static br_code
pad(br_gguf_writer *w, uint64_t n, br_status *st)
{
    static const char zeros[256];

    while (n > 0) {
        size_t part = (size_t)BR_MIN(n, (uint64_t)sizeof zeros);

        BR_TRY(put(w, zeros, part, st));
        n -= part;
    }
    return BR_OK;
}

/* Formats that no file has. */
static br_code
check_formats(const br_gguf_writer *w, br_status *st)
{
    for (size_t i = 0; i < w->tensors.n; i++) {
        const br_qinfo *q = br_qinfo_of(w->tensors.at[i].info.type);

        if (q->flags & BR_QF_INSIDE)
            return br_fail(st, BR_E_UNSUPPORTED, "files have no format %s",
                           q->name);
    }
    return BR_OK;
}

static br_code
build_header(br_gguf_writer *w, br_str *head, br_status *st)
{
    br_assert(!w->open && "begin once");
    if (w->failed.code == BR_OK)
        (void)read_alignment(w);
    if (w->failed.code != BR_OK)
        return br_fail(st, w->failed.code, "%s", w->failed.msg);
    lay_out(w);
    put_header(w, head);
    w->at = 0;
    w->missing = w->tensors.n ? w->tensors.at[0].bytes : 0;
    return head->oom ? br_fail(st, BR_E_OOM, "out of memory for the header")
                     : BR_OK;
}

static br_code
begin(br_gguf_writer *w, const char *path, br_status *st)
{
    br_str head = {0};
    br_code code = path ? check_formats(w, st) : BR_OK;

    if (code == BR_OK)
        code = build_header(w, &head, st);
    if (code == BR_OK && path)
        code = br_out_begin(&w->out, path, st);
    if (code == BR_OK) {
        w->open = true;
        code = put(w, head.at, head.n, st);
    }
    br_str_fini(&head);
    return code;
}

br_code
br_gguf_w_begin(br_gguf_writer *w, const char *path, br_status *st)
{
    br_code code = begin(w, path, st);

    if (code != BR_OK && st && strncmp(st->msg, path, strlen(path)) != 0)
        br_prefix(st, "%s", path);
    return code;
}

br_code
br_gguf_w_begin_mem(br_gguf_writer *w, br_str *out, br_status *st)
{
    w->mem = out;
    return begin(w, NULL, st);
}

br_code
br_gguf_w_data(br_gguf_writer *w, const void *data, size_t n, br_status *st)
{
    const char *p = data;

    br_check(w->open && "data comes after begin");
    while (n > 0) {
        size_t part = (size_t)BR_MIN((uint64_t)n, w->missing);
        const item *t = &w->tensors.at[w->at];

        br_check(w->at < w->tensors.n && "no more data than the table says");
        BR_TRY(put(w, p, part, st));
        p += part;
        n -= part;
        w->missing -= part;
        if (w->missing > 0)
            break;
        BR_TRY(pad(w, padded(w, t->bytes) - t->bytes, st));
        w->at++;
        w->missing = w->at < w->tensors.n ? w->tensors.at[w->at].bytes : 0;
    }
    return BR_OK;
}

br_code
br_gguf_w_check(br_gguf_writer *w,
                br_code (*check)(const void *file, size_t n, br_status *st),
                br_status *st)
{
    br_code code = BR_OK;
    uint8_t *p;
    size_t n;

    br_check(w->open && w->at == w->tensors.n && "all data was given");
    if (w->mem)
        return BR_OK;
    BR_TRY(br_out_look(&w->out, &p, &n, st));
    if (!p)
        return BR_OK;
    code = check(p, n, st);
    br_file_unmap(p, n);
    return code == BR_OK ? code : br_prefix(st, "%s", w->out.path.at);
}

br_code
br_gguf_w_end(br_gguf_writer *w, br_status *st)
{
    br_check(w->open && w->at == w->tensors.n && "all data was given");
    w->open = false;
    return w->mem ? BR_OK : br_out_end(&w->out, st);
}

/* bind.c - tensors of a program from and to files.
 *
 * The manifest is an outsider's: nothing is read that its entry and the
 * program do not agree on, and no file larger than the buffer could take.
 * SPDX-License-Identifier: Apache-2.0 */
#include "mega/bind.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "mega/dtype.h"
#include "model/gguf.h"
#include "model/quant.h"

typedef struct binder {
    br_mega_store *s;
    const br_mega_prog *p;
    const char *dir;
    bool *seen; /* a buffer's id has come */
} binder;

/* ---- in --------------------------------------------------------------- */

/* Relative, without ".." and without a NUL: it stays inside. */
static bool
stays_inside(const br_json *path)
{
    const char *s = path->s, *end;

    if (path->n == 0 || strlen(s) != path->n || *s == '/')
        return false;
    for (; *s; s = *end ? end + 1 : end) {
        end = s + strcspn(s, "/");
        if (end - s == 2 && s[0] == '.' && s[1] == '.')
            return false;
    }
    return true;
}

/* Absent: the buffer's. */
static br_code
read_shape(const br_json *v, const br_mega_buffer *b, br_mega_value *out,
           int64_t dim[BR_MEGA_MAX_RANK], br_status *st)
{
    out->shape = b->shape;
    out->rank = b->rank;
    if (!v)
        return BR_OK;
    if (v->kind != BR_J_ARR || v->n > BR_MEGA_MAX_RANK)
        return br_fail(st, BR_E_FORMAT, "shape is no list of at most %d sizes",
                       BR_MEGA_MAX_RANK);
    out->shape = dim;
    out->rank = 0;
    for (const br_json *d = v->child; d; d = d->next) {
        if (d->kind != BR_J_INT || d->i < 0)
            return br_fail(st, BR_E_FORMAT, "shape: a size is %s",
                           d->kind == BR_J_INT
                               ? "negative"
                               : br_json_kind_name((br_json_kind)d->kind));
        dim[out->rank++] = d->i;
    }
    return BR_OK;
}

static br_code
read_dtype(const br_json *v, br_mega_value *out, br_status *st)
{
    out->dtype = v && v->kind == BR_J_STR
                     ? br_mega_dtype_find((br_text){v->s, v->n})
                     : -1;
    return out->dtype >= 0
               ? BR_OK
               : br_fail(st, BR_E_FORMAT, "dtype is missing or unknown");
}

static br_code
bind_file(binder *b, int64_t id, const br_json *file, br_mega_value *v,
          br_status *st)
{
    int64_t want = br_mega_value_bytes(v);
    br_str path = {0};
    br_code code;
    char *data = NULL;

    if (file->kind != BR_J_STR || !stays_inside(file))
        return br_fail(st, BR_E_FORMAT, "file is not a path inside the folder");
    if (want < 0)
        return br_fail(st, BR_E_FORMAT, "the shape is not possible");
    br_str_printf(&path, "%s/%s", b->dir, file->s);
    if (path.oom) {
        br_str_fini(&path);
        return br_fail(st, BR_E_OOM, "no memory for a path");
    }
    code = br_file_read_disk(path.at, (size_t)want, &data, &v->nbytes, st);
    br_str_fini(&path);
    v->data = data;
    if (code == BR_OK)
        code = b->s->bind(b->s, id, v, st);
    br_free(data);
    return code;
}

static br_code
bind_entry(binder *b, const br_json *e, int64_t id, br_status *st)
{
    const br_mega_buffer *buf = &b->p->buffers[id];
    const br_json *file = br_json_get(e, "file");
    int64_t dim[BR_MEGA_MAX_RANK];
    br_mega_value v = {.data = NULL};

    if (b->seen[id])
        return br_fail(st, BR_E_FORMAT, "it comes twice");
    b->seen[id] = true;
    if (!file)
        return br_fail(st, BR_E_FORMAT, "missing 'file'");
    if (file->kind == BR_J_NULL && buf->kind == BR_MBK_KV_CACHE)
        return BR_OK;
    BR_TRY(read_dtype(br_json_get(e, "dtype"), &v, st));
    BR_TRY(read_shape(br_json_get(e, "shape"), buf, &v, dim, st));
    BR_TRY(b->s->bindable(b->s, id, &v, st));
    return bind_file(b, id, file, &v, st);
}

static br_code
bind_list(binder *b, const br_json *doc, br_status *st)
{
    const br_json *list = br_json_get(doc, "buffers"), *e, *id;
    size_t i = 0;

    if (!list || list->kind != BR_J_ARR)
        return br_fail(st, BR_E_FORMAT, "no list 'buffers'");
    for (e = list->child; e; e = e->next, i++) {
        id = br_json_get(e, "id");
        if (!id || id->kind != BR_J_INT || id->i < 0 ||
            (uint64_t)id->i >= b->p->n_buffers)
            return br_fail(st, BR_E_FORMAT,
                           "buffers[%zu]: id is missing or no buffer of the "
                           "program",
                           i);
        if (bind_entry(b, e, id->i, st) != BR_OK)
            return br_prefix(st, "buffers[%zu] (id %lld)", i, (long long)id->i);
    }
    return BR_OK;
}

static br_code
all_bound(const binder *b, br_status *st)
{
    for (size_t i = 0; i < b->p->n_buffers; i++) {
        const br_mega_buffer *buf = &b->p->buffers[i];

        if (br_mega_kind_readonly(buf->kind) && !b->s->bound(b->s, (int64_t)i))
            return br_fail(st, BR_E_NOT_FOUND,
                           "no entry for buffer #%zu ('%.80s'), %s%s%.120s", i,
                           buf->name ? buf->name : "",
                           br_mega_kind_name(buf->kind),
                           buf->source ? " of source " : "",
                           buf->source ? buf->source : "");
    }
    return BR_OK;
}

static br_code
bind_text(binder *b, const char *text, size_t n, br_status *st)
{
    br_arena arena;
    br_json *doc;
    br_code code;

    br_arena_init(&arena, 0); /* the text is bounded, and so is its tree */
    code = br_json_parse(&doc, &arena, text, n, 0, st);
    if (code == BR_OK)
        code = bind_list(b, doc, st);
    if (code == BR_OK)
        code = all_bound(b, st);
    br_arena_fini(&arena);
    return code;
}

br_code
br_mega_bind_dir(br_mega_store *s, const char *dir, br_status *st)
{
    binder b = {.s = s, .p = s->prog, .dir = dir};
    br_str path = {0};
    br_code code = BR_OK;
    char *text;
    size_t n;

    br_str_printf(&path, "%s/manifest.json", dir);
    b.seen = br_try_calloc(s->prog->n_buffers + 1, sizeof *b.seen);
    if (path.oom || !b.seen)
        code = br_fail(st, BR_E_OOM, "no memory to bind");
    if (code == BR_OK)
        code = br_file_read_disk(path.at, BR_BIND_MAX_MANIFEST_BYTES, &text, &n,
                                 st);
    if (code == BR_OK) {
        code = bind_text(&b, text, n, st);
        if (code != BR_OK)
            br_prefix(st, "%s", path.at);
        br_free(text);
    }
    br_free(b.seen);
    br_str_fini(&path);
    return code;
}

/* ---- a model's weights -------------------------------------------------- */

/* As floats: whatever the file's format, those are its values. */
static br_code
bind_tensor(br_mega_store *s, int64_t id, const br_gguf_tensor *t,
            br_status *st)
{
    int64_t shape[BR_GGUF_MAX_DIMS];
    br_mega_value v = {.shape = shape, .rank = t->n_dims, .dtype = BR_MDT_F32};
    uint64_t n = 1;
    float *f;
    br_code code;

    for (uint32_t d = 0; d < t->n_dims; d++) {
        shape[d] = (int64_t)t->dim[t->n_dims - 1 - d];
        n *= t->dim[d]; /* as br_gguf_open has checked */
    }
    if (br_qinfo_of(t->type)->flags & BR_QF_INT)
        return br_fail(st, BR_E_UNSUPPORTED, "%s is no format of weights",
                       br_qinfo_of(t->type)->name);
    BR_TRY(s->bindable(s, id, &v, st));
    f = br_try_calloc(n, sizeof *f);
    if (!f)
        return br_fail(st, BR_E_OOM, "no memory for its floats");
    br_dequant(t->type, t->data, f, n);
    v.data = f;
    v.nbytes = n * sizeof *f;
    code = s->bind(s, id, &v, st);
    br_free(f);
    return code;
}

br_code
br_mega_bind_model(br_mega_store *s, const struct br_gguf *g, br_status *st)
{
    for (size_t i = 0; i < s->prog->n_buffers; i++) {
        const br_mega_buffer *b = &s->prog->buffers[i];
        const br_gguf_tensor *t;

        if (b->kind != BR_MBK_WEIGHT || !b->source ||
            !(t = br_gguf_tensor_find(g, b->source)))
            continue;
        if (bind_tensor(s, (int64_t)i, t, st) != BR_OK)
            return br_prefix(st, "tensor '%.120s' for buffer #%zu", b->source,
                             i);
    }
    return BR_OK;
}

/* ---- out -------------------------------------------------------------- */

static br_code
write_buffer(const br_mega_store *s, size_t i, const char *dir, br_status *st)
{
    br_mega_value v = s->get(s, (int64_t)i);
    br_str path = {0};
    br_code code;

    br_str_printf(&path, "%s/%zu.bin", dir, i);
    code = path.oom ? br_fail(st, BR_E_OOM, "no memory for a path")
                    : br_file_write(path.at, v.data, v.nbytes, st);
    br_str_fini(&path);
    return code;
}

static void
put_entry(br_json_writer *w, const br_mega_store *s, size_t i)
{
    br_mega_value v = s->get(s, (int64_t)i);
    char file[32];

    snprintf(file, sizeof file, "%zu.bin", i);
    br_json_w_obj(w);
    br_json_w_key_u64(w, "id", i);
    br_json_w_key_strz(w, "dtype", br_mega_dtype_name(v.dtype));
    br_json_w_key(w, "shape");
    br_json_w_arr(w);
    for (uint32_t d = 0; d < v.rank; d++)
        br_json_w_i64(w, v.shape[d]);
    br_json_w_arr_end(w);
    br_json_w_key_strz(w, "file", file);
    br_json_w_obj_end(w);
}

static void
put_manifest(const br_mega_store *s, const br_mega_runner *r, br_str *out)
{
    br_json_writer w;

    br_json_w_begin(&w, out, 0);
    br_json_w_obj(&w);
    br_json_w_key(&w, "buffers");
    br_json_w_arr(&w);
    for (size_t i = 0; i < s->prog->n_buffers; i++)
        if (br_mega_is_result(&s->prog->buffers[i]))
            put_entry(&w, s, i);
    br_json_w_arr_end(&w);
    br_json_w_key(&w, "exec_order");
    br_json_w_arr(&w);
    for (size_t i = 0; i < r->n_order; i++)
        br_json_w_u64(&w, r->order[i]);
    br_json_w_arr_end(&w);
    br_json_w_key_u64(&w, "sweeps", r->sweeps);
    br_json_w_obj_end(&w);
    br_str_putc(out, '\n');
}

br_code
br_mega_write_dir(const br_mega_store *s, const br_mega_runner *r,
                  const char *dir, br_status *st)
{
    br_str text = {0}, path = {0};
    br_code code;

    if (mkdir(dir, 0777) != 0 && errno != EEXIST)
        return br_fail(st, BR_E_IO, "%s: cannot make the folder: %s", dir,
                       strerror(errno));
    for (size_t i = 0; i < s->prog->n_buffers; i++)
        if (br_mega_is_result(&s->prog->buffers[i]))
            BR_TRY(write_buffer(s, i, dir, st));
    put_manifest(s, r, &text);
    br_str_printf(&path, "%s/manifest.json", dir);
    code = text.oom || path.oom
               ? br_fail(st, BR_E_OOM, "no memory for the manifest")
               : br_file_write(path.at, text.at, text.n, st);
    br_str_fini(&text);
    br_str_fini(&path);
    return code;
}

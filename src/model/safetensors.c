/* safetensors.c - see safetensors.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "model/quant.h"
#include "model/safetensors_int.h"

#include <string.h>
#include <sys/stat.h>

/* ---- dtypes ------------------------------------------------------------- */

#define BR_Q_NONE (-1)
static const struct {
    const char *name;
    uint32_t bits;
    int qtype;
} dtypes[BR_ST_DTYPE_COUNT] = {
#define D(name, bits, gguf) {#name, bits, BR_Q_##gguf},
#include "model/st_dtype.def"
#undef D
};

const char *
br_st_dtype_name(br_st_dtype d)
{
    br_assert((unsigned)d < BR_ST_DTYPE_COUNT);
    return dtypes[d].name;
}

uint32_t
br_st_dtype_bits(br_st_dtype d)
{
    br_assert((unsigned)d < BR_ST_DTYPE_COUNT);
    return dtypes[d].bits;
}

int
br_st_dtype_qtype(br_st_dtype d)
{
    br_assert((unsigned)d < BR_ST_DTYPE_COUNT);
    return dtypes[d].qtype;
}

/* ---- files -------------------------------------------------------------- */

void
br_st_close(br_st *s)
{
    if (!s)
        return;
    for (uint32_t i = 0; i < s->n_files; i++)
        br_file_map_close(&s->files[i]);
    br_free(s->files);
    br_map_fini(&s->names);
    br_vec_fini(&s->tensors);
    br_arena_fini(&s->arena);
    br_free(s);
}

static br_code
add_file(br_st *s, const char *path, br_status *st)
{
    br_file_map *m = &s->files[s->n_files];
    br_code code;

    s->named = true;
    BR_TRY(br_file_map_open(m, path, st));
    s->n_files++;
    code = br_st_parse(s, m->p, m->n, s->n_files - 1, st);
    if (code != BR_OK)
        br_prefix(st, "%s", path);
    else
        s->named = false;
    return code;
}

static br_code
room_for_files(br_st *s, size_t n, br_status *st)
{
    s->files = br_try_calloc(n, sizeof *s->files);
    return s->files ? BR_OK : br_fail(st, BR_E_OOM, "out of memory for files");
}

/* ---- the index of a set ------------------------------------------------- */

/* "model.safetensors.index.json" -> {"weight_map": {tensor: file}} */
typedef struct set_index {
    br_arena arena;
    const br_json *map;
    br_map files; /* name -> number */
} set_index;

/* A name that stays in its folder. */
static bool
plain_name(const br_json *v)
{
    return v->n > 0 && v->s[0] != '.' && strlen(v->s) == v->n &&
           !strchr(v->s, '/') && !strchr(v->s, '\\');
}

static br_code
number_files(set_index *x, br_status *st)
{
    for (const br_json *v = x->map->child; v; v = v->next) {
        br_map_value *at;
        bool fresh;

        if (v->kind != BR_J_STR || !plain_name(v))
            return br_fail(st, BR_E_FORMAT,
                           "weight_map: '%.80s': not the name of a file in "
                           "this folder",
                           v->key);
        at = br_map_put(&x->files, (br_text){v->s, v->n}, &fresh);
        if (!at)
            return br_fail(st, BR_E_OOM, "out of memory for the index");
        if (fresh)
            at->u = x->files.n_live - 1;
        if (x->files.n_live > BR_ST_MAX_FILES)
            return br_fail(st, BR_E_LIMIT, "weight_map: more than %d files",
                           BR_ST_MAX_FILES);
    }
    if (x->files.n_live == 0)
        return br_fail(st, BR_E_FORMAT, "weight_map: empty");
    return BR_OK;
}

static br_code
read_index(set_index *x, const char *text, size_t n, br_status *st)
{
    br_json *doc;

    br_arena_init(&x->arena, (size_t)1 << 32);
    BR_TRY(br_json_parse(&doc, &x->arena, text, n, BR_JSON_LAX, st));
    x->map = doc->kind == BR_J_OBJ ? br_json_get(doc, "weight_map") : NULL;
    if (!x->map || x->map->kind != BR_J_OBJ)
        return br_fail(st, BR_E_FORMAT, "no object 'weight_map'");
    return number_files(x, st);
}

static br_code
open_listed(br_st *s, const set_index *x, br_text folder, br_status *st)
{
    br_str path = {0};
    br_map_entry *e;
    br_code code = room_for_files(s, x->files.n_live, st);

    for (size_t i = 0; code == BR_OK && (e = br_map_next(&x->files, &i));) {
        br_str_clear(&path);
        br_str_put(&path, folder.p, folder.n);
        br_str_put(&path, e->key.text.p, e->key.text.n);
        code = path.oom ? br_fail(st, BR_E_OOM, "out of memory for a path")
                        : add_file(s, path.at, st);
    }
    br_str_fini(&path);
    return code;
}

/* Every tensor that the index lists is in the file that it names. */
static br_code
check_listed(const br_st *s, const set_index *x, br_status *st)
{
    for (const br_json *v = x->map->child; v; v = v->next) {
        const br_st_tensor *t =
            br_st_tensor_find(s, (br_text){v->key, v->key_n});
        const br_map_value *file = br_map_get(&x->files, (br_text){v->s, v->n});

        if (!t || t->file != file->u)
            return br_fail(st, BR_E_FORMAT, "tensor '%.80s' is not in %.80s",
                           v->key, v->s);
    }
    return BR_OK;
}

static br_code
open_index(br_st *s, const char *path, br_status *st)
{
    const char *slash = strrchr(path, '/');
    br_text folder = {path, slash ? (size_t)(slash + 1 - path) : 0};
    set_index x = {0};
    char *text;
    size_t n;
    br_code code;

    s->named = true;
    BR_TRY(br_file_read_disk(path, BR_ST_MAX_INDEX, &text, &n, st));
    s->named = false;
    code = read_index(&x, text, n, st);
    if (code == BR_OK)
        code = open_listed(s, &x, folder, st);
    if (code == BR_OK)
        code = check_listed(s, &x, st);
    if (code != BR_OK && !s->named)
        br_prefix(st, "%s", path);
    s->named = true;
    br_map_fini(&x.files);
    br_arena_fini(&x.arena);
    br_free(text);
    return code;
}

/* ---- opening ------------------------------------------------------------ */

static br_code
make(br_st **out, br_status *st)
{
    *out = br_try_calloc(1, sizeof **out);
    if (!*out)
        return br_fail(st, BR_E_OOM, "out of memory");
    br_arena_init(&(*out)->arena, 0);
    return BR_OK;
}

static bool
is_file(br_str *path, const char *folder, const char *name)
{
    struct stat info;

    br_str_clear(path);
    br_str_printf(path, "%s/%s", folder, name);
    return !path->oom && stat(path->at, &info) == 0 && S_ISREG(info.st_mode);
}

static br_code
open_folder(br_st *s, const char *folder, br_status *st)
{
    br_str path = {0};
    br_code code;

    if (is_file(&path, folder, "model.safetensors.index.json")) {
        code = open_index(s, path.at, st);
    } else if (!path.oom && is_file(&path, folder, "model.safetensors")) {
        code = room_for_files(s, 1, st);
        if (code == BR_OK)
            code = add_file(s, path.at, st);
    } else if (path.oom) {
        code = br_fail(st, BR_E_OOM, "out of memory for a path");
    } else {
        code = br_fail(st, BR_E_NOT_FOUND,
                       "neither model.safetensors nor "
                       "model.safetensors.index.json is in this folder");
    }
    br_str_fini(&path);
    return code;
}

static bool
ends(const char *z, const char *with)
{
    size_t n = strlen(z), k = strlen(with);

    return n >= k && strcmp(z + n - k, with) == 0;
}

br_code
br_st_open(br_st **out, const char *path, br_status *st)
{
    struct stat info;
    br_code code;
    br_st *s;

    BR_TRY(make(out, st));
    s = *out;
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode)) {
        code = open_folder(s, path, st);
    } else if (ends(path, ".json")) {
        code = open_index(s, path, st);
    } else {
        code = room_for_files(s, 1, st);
        if (code == BR_OK)
            code = add_file(s, path, st);
    }
    if (code == BR_OK)
        return BR_OK;
    if (!s->named)
        br_prefix(st, "%s", path);
    br_st_close(s);
    *out = NULL;
    return code;
}

br_code
br_st_open_mem(br_st **out, const void *p, size_t n, br_status *st)
{
    br_code code;

    BR_TRY(make(out, st));
    code = br_st_parse(*out, p, n, 0, st);
    if (code == BR_OK)
        return BR_OK;
    br_st_close(*out);
    *out = NULL;
    return code;
}

/* ---- looking ------------------------------------------------------------ */

size_t
br_st_n_tensors(const br_st *s)
{
    return s->tensors.n;
}

const br_st_tensor *
br_st_tensor_at(const br_st *s, size_t i)
{
    br_check(i < s->tensors.n);
    return &s->tensors.at[i];
}

const br_st_tensor *
br_st_tensor_find(const br_st *s, br_text name)
{
    const br_map_value *at = br_map_get(&s->names, name);

    return at ? &s->tensors.at[at->u] : NULL;
}

uint32_t
br_st_n_files(const br_st *s)
{
    return BR_MAX(s->n_files, 1u);
}

bool
br_st_reads(const br_st *s, const char *path)
{
    for (uint32_t i = 0; i < s->n_files; i++)
        if (br_file_map_is(&s->files[i], path))
            return true;
    return false;
}

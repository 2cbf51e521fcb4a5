/* gguf.c - GGUF files opened, alone or as a set; keys and tensors by name.
 *
 *   m-00001-of-00003.gguf   metadata, tensors     --.
 *   m-00002-of-00003.gguf   split.*,  tensors     --+--> one table of tensors
 *   m-00003-of-00003.gguf   split.*,  tensors     --'
 *
 * split.no counts from 0, the number in a name from 1. Each file is parsed
 * with its own alignment; names are unique in the whole set.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/gguf_int.h"

#include "base/hash.h"
#include "model/hf.h"
#include "model/safetensors.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct br_gguf {
    br_arena arena;
    br_gguf_part *part; /* n_parts of them */
    uint32_t n_parts;
    const br_gguf_tensor **tensor;
    size_t n_tensors;
    br_map names; /* tensor name -> index in tensor */
    bool named;   /* the failure names its file already */
    br_str own;   /* the bytes, where they came from a folder */
};

/* ---- making and freeing ------------------------------------------------- */

static void
free_parts(br_gguf *g)
{
    for (uint32_t i = 0; i < g->n_parts; i++) {
        br_map_fini(&g->part[i].keys);
        br_file_map_close(&g->part[i].map);
    }
    br_free(g->part);
    g->part = NULL;
    g->n_parts = 0;
}

void
br_gguf_close(br_gguf *g)
{
    if (!g)
        return;
    free_parts(g);
    br_map_fini(&g->names);
    br_free(g->tensor);
    br_str_fini(&g->own);
    br_arena_fini(&g->arena);
    br_free(g);
}

bool
br_gguf_stamp(const br_gguf *g, uint8_t out[BR_BLAKE2B_BYTES])
{
    br_str s = {0};
    bool ok = true;

    for (uint32_t i = 0; i < g->n_parts; i++) {
        const br_file_map *m = &g->part[i].map;

        br_str_printf(&s, "%llu %llu %zu %lld\n", (unsigned long long)m->device,
                      (unsigned long long)m->inode, m->n,
                      (long long)m->written_ns);
        ok = ok && m->n > 0;
    }
    ok = ok && !s.oom && s.n > 0;
    if (ok)
        br_blake2b(s.at, s.n, out);
    br_str_fini(&s);
    return ok;
}

void
br_gguf_sample(const br_gguf *g, br_sha256 *h)
{
    enum { PARTS = 256, PART = 4096 };

    for (uint32_t i = 0; i < g->n_parts; i++) {
        const br_gguf_part *part = &g->part[i];

        for (size_t k = 0; k < PARTS; k++) {
            const size_t at = part->n / PARTS * k;

            br_sha256_add(h, part->p + at, BR_MIN(part->n - at, (size_t)PART));
        }
    }
}

const char *
br_gguf_path(const br_gguf *g)
{
    return g->n_parts > 0 ? g->part[0].path : NULL;
}

void
br_gguf_forget(const br_gguf *g)
{
    for (uint32_t i = 0; i < g->n_parts; i++)
        br_file_map_forget(&g->part[i].map);
}

static br_code
make(br_gguf **out, br_status *st)
{
    br_gguf *g = br_try_calloc(1, sizeof *g);

    *out = NULL;
    if (!g)
        return br_fail(st, BR_E_OOM, "out of memory");
    br_arena_init(&g->arena, 0);
    *out = g;
    return BR_OK;
}

static br_code
more_parts(br_gguf *g, uint32_t n, br_status *st)
{
    br_gguf_part *p = br_try_realloc(g->part, n * sizeof *p);

    if (!p)
        return br_fail(st, BR_E_OOM, "out of memory for %u files", n);
    memset(p + g->n_parts, 0, (n - g->n_parts) * sizeof *p);
    g->part = p;
    return BR_OK;
}

static br_code
index_tensors(br_gguf *g, br_status *st)
{
    size_t n = 0;

    for (uint32_t k = 0; k < g->n_parts; k++)
        n += g->part[k].n_tensors;
    g->tensor = br_try_calloc(n + 1, sizeof *g->tensor);
    if (!g->tensor || !br_map_reserve(&g->names, n))
        return br_fail(st, BR_E_OOM, "out of memory for %zu tensors", n);
    for (uint32_t k = 0; k < g->n_parts; k++)
        for (size_t i = 0; i < g->part[k].n_tensors; i++) {
            br_gguf_tensor *t = &g->part[k].tensor[i];
            br_map_value *at;
            bool fresh;

            t->split = k;
            at = br_map_put(&g->names, t->name, &fresh);
            if (!at)
                return br_fail(st, BR_E_OOM, "out of memory for tensors");
            if (!fresh)
                return br_fail(st, BR_E_FORMAT,
                               "tensor '%.*s' is there twice (tensors %llu "
                               "and %zu)",
                               (int)t->name.n, t->name.p,
                               (unsigned long long)at->u, g->n_tensors);
            at->u = g->n_tensors;
            g->tensor[g->n_tensors++] = t;
        }
    return BR_OK;
}

/* ---- sets of files ------------------------------------------------------ */

/* An optional key of a set; absent is `def`. */
static br_code
split_key(const br_gguf_part *part, const char *key, int64_t def, int64_t *out,
          br_status *st)
{
    const br_gguf_kv *kv = br_gguf_part_find(part, key);

    *out = def;
    if (kv && (kv->type == BR_GGUF_ARR || !br_gguf_i64(kv, 0, out) || *out < 0))
        return br_fail(st, BR_E_FORMAT, "key '%s' is no count", key);
    return BR_OK;
}

static br_code
split_count(const br_gguf_part *part, uint32_t *out, br_status *st)
{
    int64_t n;

    BR_TRY(split_key(part, "split.count", 1, &n, st));
    if (n > BR_GGUF_MAX_SPLITS)
        return br_fail(st, BR_E_LIMIT,
                       "key 'split.count': %lld files, the limit is %d",
                       (long long)n, BR_GGUF_MAX_SPLITS);
    *out = (uint32_t)BR_MAX(n, 1); /* writers of single files say 0 or 1 */
    return BR_OK;
}

/* The bytes of "-00002-of-00003.gguf" at the end of a path of file `no` of
 * `count`; 0: the path does not end like that. */
static size_t
split_suffix(const char *path, int64_t no, uint32_t count)
{
    char want[64];
    size_t n = strlen(path), k;

    snprintf(want, sizeof want, "-%05lld-of-%05u.gguf", (long long)no + 1,
             count);
    k = strlen(want);
    return n >= k && memcmp(path + n - k, want, k) == 0 ? k : 0;
}

static br_code
open_part(br_gguf *g, const char *path, br_status *st)
{
    br_gguf_part *part = &g->part[g->n_parts];
    br_code code;

    g->named = true;
    code = br_file_map_open(&part->map, path, st);
    BR_TRY(code);
    g->n_parts++;
    part->p = part->map.p;
    part->n = part->map.n;
    part->path = br_arena_str(&g->arena, path, strlen(path));
    code = part->path ? br_gguf_parse(part, &g->arena, st)
                      : br_fail(st, BR_E_OOM, "out of memory");
    if (code != BR_OK)
        br_prefix(st, "%s", path);
    else
        g->named = false;
    return code;
}

static br_code
open_file_of_set(br_gguf *g, const char *path, uint32_t count, br_status *st)
{
    uint32_t i = g->n_parts, n;
    const br_gguf_part *part = &g->part[i];
    int64_t no;
    br_code code;

    BR_TRY(open_part(g, path, st));
    code = split_count(part, &n, st);
    if (code == BR_OK)
        code = split_key(part, "split.no", 0, &no, st);
    if (code == BR_OK && (no != i || n != count))
        code = br_fail(st, BR_E_FORMAT,
                       "its keys say file %lld of %u, its name %u of %u",
                       (long long)no + 1, n, i + 1, count);
    if (code != BR_OK)
        br_prefix(st, "%s", path);
    g->named = code != BR_OK;
    return code;
}

static br_code
check_total(const br_gguf *g, br_status *st)
{
    size_t have = 0;
    int64_t want;

    for (uint32_t i = 0; i < g->n_parts; i++)
        have += g->part[i].n_tensors;
    BR_TRY(split_key(&g->part[0], "split.tensors.count", (int64_t)have, &want,
                     st));
    if ((uint64_t)want != have)
        return br_fail(st, BR_E_FORMAT,
                       "split.tensors.count is %lld, the files have %zu",
                       (long long)want, have);
    return BR_OK;
}

/* g holds the one file that was named: opens its whole set from the first. */
static br_code
open_set(br_gguf *g, const char *path, uint32_t count, br_status *st)
{
    br_str name = {0};
    br_code code;
    size_t suffix;
    int64_t no;

    BR_TRY(split_key(&g->part[0], "split.no", 0, &no, st));
    suffix = split_suffix(path, no, count);
    if (suffix == 0)
        return br_fail(st, BR_E_FORMAT,
                       "its keys say file %lld of %u, but its name does not "
                       "end in -%05lld-of-%05u.gguf",
                       (long long)no + 1, count, (long long)no + 1, count);
    free_parts(g);
    br_arena_reset(&g->arena);
    code = more_parts(g, count, st);
    for (uint32_t i = 0; code == BR_OK && i < count; i++) {
        br_str_clear(&name);
        br_str_put(&name, path, strlen(path) - suffix);
        br_str_printf(&name, "-%05u-of-%05u.gguf", i + 1, count);
        code = name.oom ? br_fail(st, BR_E_OOM, "out of memory")
                        : open_file_of_set(g, name.at, count, st);
    }
    br_str_fini(&name);
    return code == BR_OK ? check_total(g, st) : code;
}

/* ---- opening ------------------------------------------------------------ */

static br_code
open_path(br_gguf *g, const char *path, br_status *st)
{
    uint32_t count = 1;
    br_code code;

    BR_TRY(more_parts(g, 1, st));
    BR_TRY(open_part(g, path, st));
    code = split_count(&g->part[0], &count, st);
    if (code == BR_OK && count > 1)
        code = open_set(g, path, count, st);
    if (code == BR_OK)
        code = index_tensors(g, st);
    return code;
}

static br_code
open_bytes(br_gguf *g, const void *p, size_t n, br_status *st)
{
    uint32_t count;

    BR_TRY(more_parts(g, 1, st));
    g->n_parts = 1;
    g->part[0].p = p;
    g->part[0].n = n;
    BR_TRY(br_gguf_parse(&g->part[0], &g->arena, st));
    BR_TRY(split_count(&g->part[0], &count, st));
    if (count > 1)
        return br_fail(st, BR_E_UNSUPPORTED,
                       "one file of %u: a set has to be opened by its path",
                       count);
    return index_tensors(g, st);
}

static bool
is_folder(const char *path)
{
    struct stat s;

    return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

/* Of Hugging Face: as a file in memory. */
static br_code
open_folder(br_gguf *g, const char *path, const br_hf_desc *d, br_status *st)
{
    br_str config = {0};
    bool has;

    g->named = true; /* whatever is wrong */
    br_str_printf(&config, "%s/config.json", path);
    if (config.oom) {
        br_str_fini(&config);
        return br_fail(st, BR_E_OOM, "out of memory");
    }
    has = access(config.at, F_OK) == 0;
    br_str_fini(&config);
    if (!has)
        return br_fail(st, BR_E_FORMAT,
                       "%s: a folder without config.json is no model", path);
    BR_TRY(br_hf_load(path, &g->own, d, st));
    if (open_bytes(g, g->own.at, g->own.n, st) == BR_OK)
        return BR_OK;
    return br_prefix(st, "%s", path);
}

br_code
br_gguf_open(br_gguf **out, const char *path, br_status *st)
{
    return br_gguf_open_told(out, path, NULL, st);
}

/* Who names a part of a Hugging Face folder means the folder. */
static br_code
whole_folder(br_gguf *g, const char *path, br_code code, br_status *st)
{
    const size_t n = strlen(path);

    if (code != BR_E_FORMAT || n < 12 ||
        strcmp(path + n - 12, ".safetensors") != 0 ||
        !strstr(st->msg, "no GGUF file: "))
        return code;
    *st = (br_status){0};
    g->named = false;
    return br_fail(st, code,
                   "no GGUF file, but a part of a folder: name the folder");
}

br_code
br_gguf_open_told(br_gguf **out, const char *path, const br_hf_desc *d,
                  br_status *st)
{
    br_gguf *g;
    br_code code;

    BR_TRY(make(out, st));
    g = *out;
    code =
        is_folder(path) ? open_folder(g, path, d, st) : open_path(g, path, st);
    if (code == BR_OK)
        return BR_OK;
    code = whole_folder(g, path, code, st);
    if (!g->named)
        br_prefix(st, "%s", path);
    br_gguf_close(g);
    *out = NULL;
    return code;
}

br_code
br_gguf_open_mem(br_gguf **out, const void *p, size_t n, br_status *st)
{
    br_code code;

    BR_TRY(make(out, st));
    code = open_bytes(*out, p, n, st);
    if (code == BR_OK)
        return BR_OK;
    br_gguf_close(*out);
    *out = NULL;
    return code;
}

/* ---- looking ------------------------------------------------------------ */

const br_gguf_kv *
br_gguf_part_find(const br_gguf_part *part, const char *key)
{
    const br_map_value *at = br_map_get(&part->keys, br_text_z(key));

    return at ? &part->kv[at->u] : NULL;
}

size_t
br_gguf_n_kv(const br_gguf *g)
{
    return g->part[0].n_kv;
}

const br_gguf_kv *
br_gguf_kv_at(const br_gguf *g, size_t i)
{
    br_check(i < g->part[0].n_kv);
    return &g->part[0].kv[i];
}

const br_gguf_kv *
br_gguf_find(const br_gguf *g, const char *key)
{
    return br_gguf_part_find(&g->part[0], key);
}

size_t
br_gguf_n_tensors(const br_gguf *g)
{
    return g->n_tensors;
}

const br_gguf_tensor *
br_gguf_tensor_at(const br_gguf *g, size_t i)
{
    br_check(i < g->n_tensors);
    return g->tensor[i];
}

const br_gguf_tensor *
br_gguf_tensor_find(const br_gguf *g, const char *name)
{
    const br_map_value *at = br_map_get(&g->names, br_text_z(name));

    return at ? g->tensor[at->u] : NULL;
}

uint64_t
br_gguf_bytes(const br_gguf *g)
{
    uint64_t n = 0;

    for (uint32_t i = 0; i < g->n_parts; i++)
        n += g->part[i].n;
    return n;
}

static uint64_t
folder_bytes(const br_st *s)
{
    uint64_t n = 0;

    for (size_t i = 0; i < br_st_n_tensors(s); i++)
        n += br_st_tensor_at(s, i)->bytes;
    return n;
}

br_code
br_gguf_bytes_at(const char *path, uint64_t *bytes, br_status *st)
{
    br_gguf *g;
    br_st *s;

    *bytes = 0;
    if (is_folder(path)) {
        BR_TRY(br_st_open(&s, path, st));
        *bytes = folder_bytes(s);
        br_st_close(s);
        return BR_OK;
    }
    BR_TRY(br_gguf_open(&g, path, st));
    *bytes = br_gguf_bytes(g);
    br_gguf_close(g);
    return BR_OK;
}

uint32_t
br_gguf_version(const br_gguf *g)
{
    return g->part[0].version;
}

uint32_t
br_gguf_alignment(const br_gguf *g)
{
    return g->part[0].alignment;
}

uint32_t
br_gguf_n_splits(const br_gguf *g)
{
    return g->n_parts;
}

bool
br_gguf_reads(const br_gguf *g, const char *path)
{
    for (uint32_t i = 0; i < g->n_parts; i++)
        if (g->part[i].map.p && br_file_map_is(&g->part[i].map, path))
            return true;
    return false;
}

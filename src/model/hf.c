/* hf.c - see hf.h: the order of things.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/hf.h"

#include "model/hf_int.h"

#include <string.h>

br_code
br_hf_json(br_hf *h, const char *name, bool need, const br_json **out)
{
    br_str path = {0};
    br_status none = {0};
    br_json *doc;
    char *text;
    size_t n;
    br_code code;

    *out = NULL;
    br_str_printf(&path, "%s/%s", h->folder, name);
    code = path.oom
               ? br_fail(&none, BR_E_OOM, "out of memory")
               : br_file_read_disk(path.at, BR_HF_MAX_CONFIG, &text, &n, &none);
    br_str_fini(&path);
    if (code == BR_E_NOT_FOUND && !need)
        return BR_OK;
    if (code != BR_OK)
        return br_fail(h->st, code, "%s", none.msg);
    code = br_json_parse(&doc, &h->arena, text, n, BR_JSON_LAX, h->st);
    br_free(text);
    if (code != BR_OK) {
        br_prefix(h->st, "%s", name);
        return code;
    }
    *out = doc;
    return BR_OK;
}

const char *
br_hf_key(br_hf *h, const char *key)
{
    size_t a = strlen(h->arch->arch), n = strlen(key);
    char *full = br_arena_get(&h->arena, a + n + 2);

    if (!full) {
        br_fail(h->st, BR_E_OOM, "out of memory");
        return NULL;
    }
    memcpy(full, h->arch->arch, a);
    full[a] = '.';
    memcpy(full + a + 1, key, n + 1);
    return full;
}

/* All at once: growing would need twice the memory. */
static br_code
begin_mem(br_hf *h, br_str *out)
{
    const uint64_t header = 64 << 20; /* at most about: a vocabulary */
    size_t n;

    if (__builtin_add_overflow(h->stats->bytes,
                               header + h->stats->tensors * 1024, &n))
        return br_fail(h->st, BR_E_LIMIT,
                       "more weights than there are addresses");
    out->at = br_try_alloc(n);
    out->cap = out->at ? n : 0;
    if (!out->at)
        return br_fail(h->st, BR_E_OOM, "no memory for %zu MB of weights",
                       n >> 20);
    return br_gguf_w_begin_mem(h->w, out, h->st);
}

/* To a file, or into memory. */
static br_code
convert(br_hf *h, const char *path, br_str *out)
{
    h->inside = out != NULL;
    BR_TRY(br_hf_config(h));
    BR_TRY(br_st_open(&h->files, h->folder, h->st));
    if (path && br_st_reads(h->files, path))
        return br_fail(h->st, BR_E_USAGE, "%s: is a file that is read", path);
    BR_TRY(br_hf_plan_all(h));
    BR_TRY(br_hf_vocab(h));
    BR_TRY(br_hf_declare(h));
    BR_TRY(out ? begin_mem(h, out) : br_gguf_w_begin(h->w, path, h->st));
    BR_TRY(br_hf_data(h));
    if (h->desc && h->desc->check)
        BR_TRY(br_gguf_w_check(h->w, h->desc->check, h->st));
    return br_gguf_w_end(h->w, h->st);
}

static br_code
convert_to(const char *folder, const char *path, br_str *out,
           const br_hf_desc *d, br_hf_stats *stats, br_status *st)
{
    br_status own = {0};
    br_hf h = {
        .folder = folder, .desc = d, .stats = stats, .st = st ? st : &own};
    br_code code;

    *stats = (br_hf_stats){0};
    br_arena_init(&h.arena, 0);
    h.w = br_gguf_w_new();
    code =
        h.w ? convert(&h, path, out) : br_fail(h.st, BR_E_OOM, "out of memory");
    /* messages about a part of the folder name the part */
    if (code != BR_OK && !strstr(h.st->msg, folder) &&
        !(path && strstr(h.st->msg, path)))
        br_prefix(h.st, "%s", folder);
    br_gguf_w_free(h.w);
    br_st_close(h.files);
    br_vec_fini(&h.plans);
    br_arena_fini(&h.arena);
    return code;
}

br_code
br_hf_convert(const char *folder, const char *path, const br_hf_desc *d,
              br_hf_stats *stats, br_status *st)
{
    return convert_to(folder, path, NULL, d, stats, st);
}

br_code
br_hf_load(const char *folder, br_str *out, const br_hf_desc *d, br_status *st)
{
    br_hf_stats stats;
    br_code code = convert_to(folder, NULL, out, d, &stats, st);

    if (code != BR_OK)
        br_str_fini(out);
    return code;
}

/* tuned.c - see tuned.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/tuned.h"

#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "base/thread.h"

#include <stdio.h>
#include <string.h>

/* A tree takes up to 24 bytes for each of the text. */
enum { TREE_BYTES = 24 * BR_TUNED_MAX_BYTES + (1 << 16) };

static const char version_key[] = "brass_tuned";

void
br_tuned_path(br_str *out, const char *folder)
{
    br_str_puts(out, folder);
    br_str_puts(out, "/tuned.json");
}

/* ---- whose entry --------------------------------------------------------- */

static int
most_of(const uint64_t *bytes)
{
    int most = 0;

    for (int t = 1; t < BR_Q_LIMIT; t++)
        if (bytes[t] > bytes[most])
            most = t;
    return most;
}

/* Tensors in any order: their digests' sum. */
static void
digest_model(br_tuned_key *k, const br_model *m)
{
    const br_hash_key fixed = {0x6272617373, 0x74756e6564};
    uint64_t sum[2] = {0}, bytes[BR_Q_LIMIT] = {0};
    size_t n = br_gguf_n_tensors(m->gguf);
    const br_hparams *hp = &m->hp;

    for (size_t i = 0; i < n; i++) {
        const br_gguf_tensor *t = br_gguf_tensor_at(m->gguf, i);
        uint64_t of[3 + BR_GGUF_MAX_DIMS] = {(uint64_t)t->type, t->n_dims};

        memcpy(of + 2, t->dim, sizeof t->dim);
        of[2 + BR_GGUF_MAX_DIMS] = br_siphash(fixed, t->name.p, t->name.n);
        sum[0] += br_siphash(fixed, of, sizeof of);
        of[0] += 1000;
        sum[1] += br_siphash(fixed, of, sizeof of);
        bytes[t->type] += t->bytes;
    }
    br_hex(sum, sizeof sum, k->model);
    snprintf(k->shape, sizeof k->shape, "%s %lld x %lld, %s", m->arch->name,
             (long long)hp->n_layer, (long long)hp->n_embd,
             br_qinfo_of(most_of(bytes))->name);
}

void
br_tuned_key_of(br_tuned_key *k, const br_model *m, br_isa isa,
                uint32_t threads)
{
    *k = (br_tuned_key){.isa = br_isa_name(isa),
                        .processors = (uint32_t)br_cpu_count(),
                        .threads = threads};
    br_cpu_name(k->processor);
    digest_model(k, m);
}

static bool
is_number(const br_json *v, uint64_t n)
{
    return v && v->kind == BR_J_INT && v->i >= 0 && (uint64_t)v->i == n;
}

static bool
is_of(const br_json *e, const br_tuned_key *k)
{
    return e->kind == BR_J_OBJ &&
           br_json_is(br_json_get(e, "processor"), k->processor) &&
           br_json_is(br_json_get(e, "isa"), k->isa) &&
           is_number(br_json_get(e, "processors"), k->processors) &&
           is_number(br_json_get(e, "threads"), k->threads) &&
           br_json_is(br_json_get(e, "model"), k->model);
}

/* ---- reading ------------------------------------------------------------- */

/* The list of entries of the file. NOT_FOUND: there is no file. */
static br_code
read_all(const char *path, br_arena *a, const br_json **entries, br_status *st)
{
    const br_json *list;
    br_json *doc;
    char *text = NULL;
    size_t n;
    br_code code;

    *entries = NULL;
    BR_TRY(br_file_read(path, BR_TUNED_MAX_BYTES, &text, &n, st));
    code = br_json_parse(&doc, a, text, n, 0, st);
    br_free(text); /* strings of the tree are in the arena */
    if (code != BR_OK)
        return br_prefix(st, "%s", path);
    if (doc->kind != BR_J_OBJ || !br_json_get(doc, version_key))
        return br_fail(st, BR_E_FORMAT, "%s: no database of tuned values",
                       path);
    if (!is_number(br_json_get(doc, version_key), BR_TUNED_VERSION))
        return br_fail(st, BR_E_VERSION, "%s: %s is not %d", path, version_key,
                       BR_TUNED_VERSION);
    list = br_json_get(doc, "entries");
    if (!list || list->kind != BR_J_ARR)
        return br_fail(st, BR_E_FORMAT, "%s: entries is no array", path);
    *entries = list;
    return BR_OK;
}

/* The values that are understood; the first that is not is told. */
static int
take_values(const br_json *values, const char *path, uint32_t n_threads,
            br_cpu_tune *t)
{
    const br_json *bad = NULL;
    uint32_t n_bad = 0;
    int n = 0;

    for (const br_json *v = values->child; v; v = v->next) {
        br_cpu_knob k = br_cpu_knob_find((br_text){v->key, v->key_n});

        if (k < BR_CPU_KNOBS && v->kind == BR_J_INT && v->i >= 0 &&
            br_cpu_knob_takes(k, n_threads, (uint64_t)v->i)) {
            t->at[k] = (uint32_t)v->i;
            n++;
        } else if (n_bad++ == 0)
            bad = v;
    }
    if (bad)
        br_log(
            BR_EV_tuned_ignored,
            "%s: '%.40s' is not known here or has no such value; %u left out",
            path, bad->key, n_bad);
    return n;
}

int
br_tuned_find(const char *path, const br_tuned_key *k, uint32_t n_threads,
              br_cpu_tune *t)
{
    br_status st = {0};
    const br_json *list;
    br_arena a;
    br_code code;
    int n = -1;

    if (!path)
        return -1;
    br_arena_init(&a, TREE_BYTES);
    code = read_all(path, &a, &list, &st);
    if (code != BR_OK && code != BR_E_NOT_FOUND)
        br_log(BR_EV_tuned_ignored, "%s", st.msg);
    for (const br_json *e = list ? list->child : NULL; e; e = e->next) {
        const br_json *values = is_of(e, k) ? br_json_get(e, "values") : NULL;

        if (!values || values->kind != BR_J_OBJ)
            continue;
        n = take_values(values, path, n_threads, t);
        break;
    }
    br_arena_fini(&a);
    return n;
}

int
br_tuned_here(const char *folder, const br_model *m, const br_cpu *c,
              uint32_t threads, br_cpu_tune *t)
{
    br_str path = {0};
    br_tuned_key k;
    int n;

    br_tuned_path(&path, folder);
    br_tuned_key_of(&k, m, br_cpu_isa(c), threads);
    *t = *br_cpu_tune_of(c);
    n = br_tuned_find(path.oom ? NULL : path.at, &k, t->at[BR_CPU_KNOB_threads],
                      t);
    br_str_fini(&path);
    return n;
}

/* ---- writing ------------------------------------------------------------- */

static void
write_entry(br_json_writer *w, const br_tuned_key *k, const br_cpu_tune *t,
            const br_cpu_tune *def, const char *when)
{
    br_json_w_obj(w);
    br_json_w_key_strz(w, "processor", k->processor);
    br_json_w_key_strz(w, "isa", k->isa);
    br_json_w_key_u64(w, "processors", k->processors);
    br_json_w_key_u64(w, "threads", k->threads);
    br_json_w_key_strz(w, "model", k->model);
    br_json_w_key_strz(w, "shape", k->shape);
    br_json_w_key_strz(w, "when", when);
    br_json_w_key(w, "values");
    br_json_w_obj(w);
    for (br_cpu_knob i = 0; i < BR_CPU_KNOBS; i++)
        if (t->at[i] != def->at[i])
            br_json_w_key_u64(w, br_cpu_knob_name(i), t->at[i]);
    br_json_w_obj_end(w);
    br_json_w_obj_end(w);
}

/* The newest entry comes last, so the oldest are the first. */
static void
write_others(br_json_writer *w, const br_json *list, const br_tuned_key *k)
{
    uint32_t n = 0, skip;

    for (const br_json *e = list ? list->child : NULL; e; e = e->next)
        n += !is_of(e, k);
    skip = n >= BR_TUNED_MAX_ENTRIES ? n - BR_TUNED_MAX_ENTRIES + 1 : 0;
    for (const br_json *e = list ? list->child : NULL; e; e = e->next) {
        if (is_of(e, k))
            continue;
        if (skip > 0)
            skip--;
        else
            br_json_w_tree(w, e);
    }
}

br_code
br_tuned_put(const char *path, const br_tuned_key *k, const br_cpu_tune *t,
             const br_cpu_tune *def, const char *when, br_status *st)
{
    br_status none = {0};
    br_str doc = {0};
    br_json_writer w;
    const br_json *list;
    br_arena a;
    br_code code;

    br_arena_init(&a, TREE_BYTES);
    code = read_all(path, &a, &list, &none);
    if (code != BR_OK && code != BR_E_NOT_FOUND) {
        br_arena_fini(&a);
        return br_fail(st, code, "%s; remove it to begin a new one", none.msg);
    }
    br_json_w_begin(&w, &doc, 1);
    br_json_w_obj(&w);
    br_json_w_key_u64(&w, version_key, BR_TUNED_VERSION);
    br_json_w_key(&w, "entries");
    br_json_w_arr(&w);
    write_others(&w, list, k);
    write_entry(&w, k, t, def, when);
    br_json_w_arr_end(&w);
    br_json_w_obj_end(&w);
    br_str_putc(&doc, '\n');
    br_arena_fini(&a);
    code = doc.oom ? br_fail(st, BR_E_OOM, "out of memory")
                   : br_file_write(path, doc.at, doc.n, st);
    br_str_fini(&doc);
    return code;
}

/* adversarial.c - other orders, the same bits?
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "mega/store.h"

typedef struct kept { /* a buffer's value, with memory of its own */
    br_mega_value v;
    int64_t shape[BR_MEGA_MAX_RANK];
} kept;

static void
drop(kept *k, size_t n)
{
    union {
        const void *c;
        void *p;
    } data;

    for (size_t i = 0; k && i < n; i++) {
        data.c = k[i].v.data;
        br_free(data.p);
    }
    br_free(k);
}

/* Copies of results, or only of caches; [n_buffers]. */
static br_code
keep(const br_mega_store *s, bool caches_only, kept **out, br_status *st)
{
    const br_mega_prog *p = s->prog;
    kept *all = br_try_calloc(p->n_buffers + 1, sizeof *all);
    bool ok = all != NULL;

    for (size_t i = 0; ok && i < p->n_buffers; i++) {
        const br_mega_buffer *b = &p->buffers[i];
        br_mega_value v;
        void *data;

        if (!br_mega_is_result(b) ||
            (caches_only && b->kind != BR_MBK_KV_CACHE))
            continue;
        v = s->get(s, (int64_t)i);
        ok = (data = br_try_alloc(v.nbytes + 1)) != NULL;
        if (!ok)
            break;
        memcpy(data, v.data, v.nbytes);
        memcpy(all[i].shape, v.shape, v.rank * sizeof *v.shape);
        all[i].v = v;
        all[i].v.data = data;
        all[i].v.shape = all[i].shape;
    }
    *out = all;
    if (ok)
        return BR_OK;
    drop(all, p->n_buffers);
    *out = NULL;
    return br_fail(st, BR_E_OOM, "no memory to compare runs");
}

static br_code
restore(br_mega_store *s, const kept *caches, br_status *st)
{
    for (size_t i = 0; i < s->prog->n_buffers; i++)
        if (caches[i].v.data)
            BR_TRY(s->bind(s, (int64_t)i, &caches[i].v, st));
    return BR_OK;
}

static br_code
compare(const br_mega_store *s, const kept *want, const char *order,
        br_status *st)
{
    for (size_t i = 0; i < s->prog->n_buffers; i++) {
        const char *name = s->prog->buffers[i].name;
        br_mega_value v;
        size_t k = 0;

        if (!want[i].v.data)
            continue;
        v = s->get(s, (int64_t)i);
        while (k < v.nbytes && k < want[i].v.nbytes &&
               ((const char *)v.data)[k] == ((const char *)want[i].v.data)[k])
            k++;
        if (k < v.nbytes || k < want[i].v.nbytes)
            return br_fail(st, BR_E_INTERNAL,
                           "buffer #%zu ('%.80s') differs at byte %zu when "
                           "tasks run in %s",
                           i, name ? name : "", k, order);
    }
    return BR_OK;
}

static br_code
one_order(br_mega_store *s, br_mega_walk *w, int n, uint64_t seed,
          const kept *want, br_status *st)
{
    char name[48] = "reverse order";

    if (n)
        snprintf(name, sizeof name, "the random order of seed %llu",
                 (unsigned long long)(seed + (unsigned)n));
    br_mega_walk_by(w, n ? BR_MEGA_ORDER_RANDOM : BR_MEGA_ORDER_REVERSE,
                    seed + (unsigned)n);
    if (s->run(s, br_mega_walk_runner(w), st) != BR_OK)
        return br_prefix(st, "in %s", name);
    return compare(s, want, name, st);
}

br_code
br_mega_adversarial(br_mega_store *s, br_mega_walk *w, int orders,
                    br_mega_order order, uint64_t seed, br_status *st)
{
    kept *before = NULL, *after = NULL;
    br_code code = keep(s, true, &before, st);

    br_mega_walk_by(w, order, seed);
    if (code == BR_OK)
        code = s->run(s, br_mega_walk_runner(w), st);
    if (code == BR_OK)
        code = keep(s, false, &after, st);
    for (int n = 0; n < orders && code == BR_OK; n++) {
        code = restore(s, before, st);
        if (code == BR_OK)
            code = one_order(s, w, n, seed, after, st);
    }
    br_mega_walk_by(w, order, seed);
    if (code == BR_OK)
        code = restore(s, before, st);
    if (code == BR_OK)
        code = s->run(s, br_mega_walk_runner(w), st);
    drop(before, s->prog->n_buffers);
    drop(after, s->prog->n_buffers);
    return code;
}

/* mem_sim.c - see mem_sim.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/mem_sim.h"

#include "base/rng.h"
#include "run/prefix.h"

#include <stdlib.h>
#include <string.h>

enum { SLOTS = 8, PAGES = 64, TOKENS = 40 * BR_PAGE_TOKENS, OPS = 4000 };

typedef struct world {
    br_rng rng;
    br_state_plan plan;
    br_kv *kv;
    br_prefixes *p;
    uint32_t n_slots, n_pages, n_states;
    uint32_t leaf[SLOTS], n[SLOTS]; /* stands on; tokens it has pages for */
    int32_t tokens[SLOTS][TOKENS];
    br_mem_report *report;
} world;

static uint32_t
below(world *w, uint32_t n)
{
    return br_rng_below(&w->rng, n);
}

static void
fill(world *w, uint32_t slot)
{
    uint32_t seed = below(w, 3), same = below(w, TOKENS);

    for (uint32_t i = 0; i < TOKENS; i++)
        w->tokens[slot][i] =
            i < same ? (int32_t)(i * 7 + seed) : (int32_t)below(w, 50);
}

static void
take(world *w, uint32_t s)
{
    uint32_t n = BR_MIN(w->n[s] + 1 + below(w, 60), (uint32_t)TOKENS);

    if (br_kv_grow(w->kv, s, n, NULL) == BR_OK) {
        w->n[s] = n;
        w->report->taken++;
    } else {
        w->report->full++;
        w->report->evicted += br_prefix_evict(w->p);
    }
}

static void
give_back(world *w, uint32_t s)
{
    br_prefix_leave(w->p, w->leaf[s]);
    br_kv_cut(w->kv, s, 0);
    w->leaf[s] = BR_PREFIX_NONE;
    w->n[s] = 0;
    fill(w, s);
}

static void
begin(world *w, uint32_t s)
{
    uint32_t block;

    give_back(w, s);
    block = br_prefix_find(w->p, s % 2, w->tokens[s], TOKENS);
    if (block == BR_PREFIX_NONE)
        return;
    br_prefix_attach(w->p, block, s);
    w->leaf[s] = block;
    w->n[s] = br_prefix_depth(w->p, block) * BR_PAGE_TOKENS;
    w->report->shared++;
}

static void
add(world *w, uint32_t s)
{
    uint32_t depth = br_prefix_depth(w->p, w->leaf[s]), block;

    if ((depth + 1) * BR_PAGE_TOKENS > w->n[s] ||
        br_prefix_add(w->p, s % 2, w->leaf[s],
                      w->tokens[s] + depth * BR_PAGE_TOKENS, s,
                      &block) == BR_PREFIX_FULL)
        return;
    br_prefix_stand(w->p, block);
    br_prefix_leave(w->p, w->leaf[s]);
    w->leaf[s] = block;
    w->report->added++;
    if (below(w, 2) && w->n_states)
        w->report->states +=
            br_prefix_keep_state(w->p, block) != BR_PREFIX_NONE;
}

static void
one(world *w)
{
    uint32_t s = below(w, w->n_slots);

    switch (below(w, 7)) {
    case 0:
    case 1: take(w, s); break;
    case 2: begin(w, s); break;
    case 3:
    case 4: add(w, s); break;
    case 5:
        br_kv_pass(w->kv, s, w->n[s]);
        w->report->passed++;
        break;
    default:
        if (below(w, 4) == 0)
            give_back(w, s);
        else
            w->report->evicted += br_prefix_evict(w->p);
        break;
    }
    w->report->ops++;
}

/* Pages that slots and tree name, counted one by one, are those not free. */
static bool
adds_up(const world *w)
{
    for (uint32_t g = 0; g < w->plan.n_groups; g++) {
        bool named[PAGES] = {false};
        uint32_t n = br_prefix_mark(w->p, g, named);

        for (uint32_t s = 0; s < w->n_slots; s++)
            for (uint32_t i = 0; i < br_kv_count(w->kv, s); i++) {
                uint32_t page = br_kv_page(w->kv, s, g, i);

                if (page != UINT32_MAX && !named[page]) {
                    named[page] = true;
                    n++;
                }
            }
        if (n + br_kv_free_pages(w->kv, g) != w->n_pages)
            return false;
    }
    return true;
}

static br_code
make(world *w, br_status *st)
{
    br_kv_config kc = {.n_slots = w->n_slots, .max_tokens = TOKENS};
    br_prefix_config pc = {.n_blocks = 1 + w->n_pages / 2,
                           .n_states = w->n_states,
                           .recurrent = w->n_states > 0};

    kc.n_pages[0] = kc.n_pages[1] = w->n_pages;
    BR_TRY(br_kv_new(&w->kv, &w->plan, &kc, st));
    return br_prefix_new(&w->p, w->kv, &w->plan, &pc, st);
}

static void
drop(world *w)
{
    br_prefix_free(w->p);
    br_kv_free(w->kv);
    w->p = NULL;
    w->kv = NULL;
}

/* Fails the k-th call and counts what is not given back. */
typedef struct failing {
    int64_t left, live;
} failing;

static void *
failing_mem(void *ctx, void *p, size_t size)
{
    failing *f = ctx;

    if (size == 0) {
        f->live -= p != NULL;
        free(p);
        return NULL;
    }
    if (--f->left < 0)
        return NULL;
    f->live += p == NULL;
    return realloc(p, size);
}

static br_code
make_failing(world *w, br_status *st)
{
    for (int64_t k = 0;; k++) {
        failing f = {.left = k};
        br_code code;

        br_mem_hook(failing_mem, &f);
        code = make(w, NULL);
        drop(w);
        br_mem_hook(NULL, NULL);
        if (f.live)
            return br_fail(st, BR_E_INTERNAL,
                           "%lld blocks leak when call %lld fails",
                           (long long)f.live, (long long)k);
        if (code == BR_OK)
            return BR_OK;
        if (code != BR_E_OOM)
            return br_fail(st, BR_E_INTERNAL, "call %lld fails as %s",
                           (long long)k, br_code_name(code));
        w->report->oom++;
    }
}

static br_code
live(world *w, uint64_t seed, uint64_t n, br_status *st)
{
    for (uint32_t s = 0; s < w->n_slots; s++) {
        w->leaf[s] = BR_PREFIX_NONE;
        w->n[s] = 0;
        fill(w, s);
    }
    for (uint64_t i = 0; i < n; i++) {
        one(w);
        br_prefix_audit(w->p);
        if (!adds_up(w))
            return br_fail(st, BR_E_INTERNAL,
                           "seed %llu, operation %llu: pages do not add up",
                           (unsigned long long)seed, (unsigned long long)i);
    }
    for (uint32_t s = 0; s < w->n_slots; s++)
        give_back(w, s);
    while (br_prefix_evict(w->p))
        ;
    for (uint32_t g = 0; g < w->plan.n_groups; g++)
        if (br_kv_free_pages(w->kv, g) != w->n_pages)
            return br_fail(st, BR_E_INTERNAL, "seed %llu: pages leak",
                           (unsigned long long)seed);
    return BR_OK;
}

static br_code
run_world(world *w, uint64_t seed, uint64_t n, bool fail_memory, br_status *st)
{
    br_code code;

    br_rng_init(&w->rng, seed, 3);
    w->plan.n_groups = 1 + below(w, 2);
    w->plan.group[1].window = 20 + below(w, 60);
    w->n_slots = 1 + below(w, SLOTS);
    w->n_pages = 4 + below(w, PAGES - 3);
    w->n_states = below(w, 3);
    if (fail_memory && seed % 8 == 0)
        BR_TRY(make_failing(w, st));
    code = make(w, st);
    if (code == BR_OK)
        code = live(w, seed, n, st);
    drop(w);
    return code;
}

br_code
br_mem_sim(uint64_t seed, uint64_t n, bool fail_memory, br_mem_report *out,
           br_status *st)
{
    *out = (br_mem_report){0};
    for (; out->ops < n; seed++) {
        world *w = br_try_calloc(1, sizeof *w);
        br_code code;

        if (!w)
            return br_fail(st, BR_E_OOM, "simulation: out of memory");
        w->report = out;
        code = run_world(w, seed, BR_MIN(n - out->ops, OPS), fail_memory, st);
        br_free(w);
        BR_TRY(code);
        out->worlds++;
    }
    return BR_OK;
}

/* kv.c - free lists, page lists and reference counts.
 *
 * Pages lie sixteen by sixteen in sheets (drv/state.h). A slot goes on where its
 * last page ends if that one is free, else it begins a sheet that nobody uses, and
 * only then what others have left of theirs: so what it reads later lies
 * together, whoever grew at the same time.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/kv.h"

#include "drv/state.h"

#include <string.h>

#define NO_PAGE UINT32_MAX

/* How much of a sheet is free. */
enum { NONE, SOME, ALL, STATES };

typedef struct stack {
    uint32_t *sheet;
    uint32_t n;
} stack;

typedef struct pool {
    uint32_t *refs;      /* [n_pages] */
    uint32_t *left;      /* [sheets]: free pages of it */
    uint32_t *place;     /* [sheets]: in the stack of its state */
    stack state[STATES]; /* each sheet is in one of them */
    uint32_t n_free, n_pages;
    int64_t window;
} pool;

struct br_kv {
    br_arena arena;
    uint32_t n_slots, n_groups, max_pages;
    pool pool[BR_MAX_KV_GROUPS];
    uint32_t **list; /* [slot * n_groups + group][max_pages] */
    uint32_t *n;     /* [slot]: pages listed, of every group */
    uint32_t *low;   /* [slot * n_groups + group]: first not given back */
};

static uint32_t
pages_of(const pool *p, uint32_t sheet)
{
    return BR_MIN(p->n_pages - sheet * BR_SHEET, (uint32_t)BR_SHEET);
}

static int
state_of(const pool *p, uint32_t sheet)
{
    return p->left[sheet] == 0                   ? NONE
           : p->left[sheet] < pages_of(p, sheet) ? SOME
                                                 : ALL;
}

static void
push(pool *p, int state, uint32_t sheet)
{
    p->place[sheet] = p->state[state].n;
    p->state[state].sheet[p->state[state].n++] = sheet;
}

/* One more free page of its sheet, or one less. */
static void
count(pool *p, uint32_t page, bool more)
{
    uint32_t sheet = page / BR_SHEET;
    int from = state_of(p, sheet);
    stack *s = &p->state[from];

    p->left[sheet] += more ? 1 : -1u;
    p->n_free += more ? 1 : -1u;
    if (state_of(p, sheet) == from)
        return;
    s->sheet[p->place[sheet]] = s->sheet[--s->n];
    p->place[s->sheet[p->place[sheet]]] = p->place[sheet];
    push(p, state_of(p, sheet), sheet);
}

/* A free page, best the one after `last`; NO_PAGE: there is none. */
static uint32_t
take(pool *p, uint32_t last)
{
    const stack *all = &p->state[ALL], *some = &p->state[SOME];
    uint32_t page;

    if (p->n_free == 0)
        return NO_PAGE;
    page = last + 1;
    if (last == NO_PAGE || page % BR_SHEET == 0 || page >= p->n_pages ||
        p->refs[page]) {
        page = BR_SHEET *
               (all->n ? all->sheet[all->n - 1] : some->sheet[some->n - 1]);
        while (p->refs[page])
            page++;
    }
    p->refs[page] = 1;
    count(p, page, false);
    return page;
}

static bool
init_pool(br_arena *arena, pool *p, uint32_t n_pages)
{
    uint32_t sheets = (n_pages + BR_SHEET - 1) / BR_SHEET;
    bool ok = true;

    p->n_pages = p->n_free = n_pages;
    p->refs = br_arena_new(arena, uint32_t, n_pages + 1);
    p->left = br_arena_new(arena, uint32_t, sheets + 1);
    p->place = br_arena_new(arena, uint32_t, sheets + 1);
    for (int i = 0; i < STATES; i++) {
        p->state[i].sheet = br_arena_new(arena, uint32_t, sheets + 1);
        ok = ok && p->state[i].sheet;
    }
    if (!ok || !p->refs || !p->left || !p->place)
        return false;
    while (sheets--) { /* page 0 is handed out first */
        p->left[sheets] = pages_of(p, sheets);
        push(p, ALL, sheets);
    }
    return true;
}

static br_code
init(br_kv *kv, const br_kv_config *c, br_status *st)
{
    size_t lists = (size_t)kv->n_slots * kv->n_groups;

    kv->list = br_arena_new(&kv->arena, uint32_t *, lists + 1);
    kv->n = br_arena_new(&kv->arena, uint32_t, kv->n_slots + 1);
    kv->low = br_arena_new(&kv->arena, uint32_t, lists + 1);
    if (!kv->list || !kv->n || !kv->low)
        return br_fail(st, BR_E_OOM, "pages: out of memory");
    for (size_t i = 0; i < lists; i++) {
        kv->list[i] = br_arena_new(&kv->arena, uint32_t, kv->max_pages);
        if (!kv->list[i])
            return br_fail(st, BR_E_OOM, "pages: out of memory");
        memset(kv->list[i], 0xff, kv->max_pages * sizeof(uint32_t));
    }
    for (uint32_t g = 0; g < kv->n_groups; g++) {
        if (!init_pool(&kv->arena, &kv->pool[g], c->n_pages[g]))
            return br_fail(st, BR_E_OOM, "pages: out of memory");
    }
    return BR_OK;
}

br_code
br_kv_new(br_kv **out, const br_state_plan *plan, const br_kv_config *c,
          br_status *st)
{
    br_kv *kv = br_try_calloc(1, sizeof *kv);
    br_code code;

    *out = NULL;
    if (!kv)
        return br_fail(st, BR_E_OOM, "pages: out of memory");
    br_arena_init(&kv->arena, 0);
    kv->n_slots = c->n_slots;
    kv->n_groups = plan->n_groups;
    kv->max_pages = (c->max_tokens + BR_PAGE_TOKENS - 1) / BR_PAGE_TOKENS + 1;
    for (uint32_t g = 0; g < kv->n_groups; g++)
        kv->pool[g].window = plan->group[g].window;
    code = init(kv, c, st);
    if (code != BR_OK) {
        br_kv_free(kv);
        return code;
    }
    *out = kv;
    return BR_OK;
}

void
br_kv_free(br_kv *kv)
{
    if (!kv)
        return;
    br_arena_fini(&kv->arena);
    br_free(kv);
}

static uint32_t *
list_of(const br_kv *kv, uint32_t slot, uint32_t g)
{
    return kv->list[slot * kv->n_groups + g];
}

static void
drop(br_kv *kv, uint32_t g, uint32_t *page)
{
    pool *p = &kv->pool[g];

    if (*page == NO_PAGE)
        return;
    br_check(p->refs[*page] > 0 && "a page is given back once");
    if (--p->refs[*page] == 0)
        count(p, *page, true);
    *page = NO_PAGE;
}

br_code
br_kv_grow(br_kv *kv, uint32_t slot, uint32_t n_tokens, br_status *st)
{
    uint32_t want = (n_tokens + BR_PAGE_TOKENS - 1) / BR_PAGE_TOKENS;

    br_check(slot < kv->n_slots);
    if (want >= kv->max_pages)
        return br_fail(st, BR_E_LIMIT, "slot %u: %u tokens, at most %u", slot,
                       n_tokens, (kv->max_pages - 1) * BR_PAGE_TOKENS);
    if (want <= kv->n[slot])
        return BR_OK;
    for (uint32_t g = 0; g < kv->n_groups; g++)
        if (kv->pool[g].n_free < want - kv->n[slot])
            return br_fail(st, BR_E_LIMIT,
                           "slot %u: needs %u pages, %u are free", slot,
                           want - kv->n[slot], kv->pool[g].n_free);
    for (uint32_t g = 0; g < kv->n_groups; g++)
        for (uint32_t i = kv->n[slot]; i < want; i++) {
            uint32_t *list = list_of(kv, slot, g);

            list[i] = take(&kv->pool[g], i ? list[i - 1] : NO_PAGE);
        }
    kv->n[slot] = want;
    return BR_OK;
}

void
br_kv_cut(br_kv *kv, uint32_t slot, uint32_t n_tokens)
{
    uint32_t keep = (n_tokens + BR_PAGE_TOKENS - 1) / BR_PAGE_TOKENS;

    br_check(slot < kv->n_slots);
    for (uint32_t g = 0; g < kv->n_groups; g++) {
        for (uint32_t i = keep; i < kv->n[slot]; i++)
            drop(kv, g, &list_of(kv, slot, g)[i]);
        kv->low[slot * kv->n_groups + g] =
            BR_MIN(kv->low[slot * kv->n_groups + g], keep);
    }
    kv->n[slot] = BR_MIN(kv->n[slot], keep);
}

void
br_kv_pass(br_kv *kv, uint32_t slot, uint32_t position)
{
    for (uint32_t g = 0; g < kv->n_groups; g++) {
        int64_t first = (int64_t)position - kv->pool[g].window + 1;
        uint32_t *low = &kv->low[slot * kv->n_groups + g], end;

        if (kv->pool[g].window == 0 || first <= 0)
            continue;
        end = BR_MIN((uint32_t)(first / BR_PAGE_TOKENS), kv->n[slot]);
        for (; *low < end; (*low)++)
            drop(kv, g, &list_of(kv, slot, g)[*low]);
    }
}

uint32_t
br_kv_share(br_kv *kv, uint32_t from, uint32_t to, uint32_t n_tokens)
{
    uint32_t n = BR_MIN(n_tokens / BR_PAGE_TOKENS, kv->n[from]);

    br_check(kv->n[to] == 0 && "an empty slot");
    for (uint32_t g = 0; g < kv->n_groups; g++) {
        for (uint32_t i = 0; i < n; i++) {
            uint32_t page = list_of(kv, from, g)[i];

            list_of(kv, to, g)[i] = page;
            if (page != NO_PAGE)
                kv->pool[g].refs[page]++;
        }
        kv->low[to * kv->n_groups + g] = 0;
    }
    kv->n[to] = n;
    return n * BR_PAGE_TOKENS;
}

uint32_t
br_kv_count(const br_kv *kv, uint32_t slot)
{
    return kv->n[slot];
}

uint32_t
br_kv_page(const br_kv *kv, uint32_t slot, uint32_t group, uint32_t i)
{
    br_check(i < kv->n[slot]);
    return list_of(kv, slot, group)[i];
}

void
br_kv_hold(br_kv *kv, uint32_t group, uint32_t page)
{
    if (page == NO_PAGE)
        return;
    br_check(kv->pool[group].refs[page] > 0 && "a page in use");
    kv->pool[group].refs[page]++;
}

void
br_kv_drop(br_kv *kv, uint32_t group, uint32_t page)
{
    drop(kv, group, &page);
}

void
br_kv_attach(br_kv *kv, uint32_t slot, uint32_t i, const uint32_t *pages)
{
    br_check(i < kv->max_pages);
    for (uint32_t g = 0; g < kv->n_groups; g++) {
        br_kv_hold(kv, g, pages[g]);
        list_of(kv, slot, g)[i] = pages[g];
    }
    kv->n[slot] = BR_MAX(kv->n[slot], i + 1);
}

uint32_t
br_kv_take(br_kv *kv, uint32_t group)
{
    return take(&kv->pool[group], NO_PAGE);
}

uint32_t
br_kv_free_pages(const br_kv *kv, uint32_t group)
{
    return kv->pool[group].n_free;
}

const uint32_t *const *
br_kv_tables(const br_kv *kv)
{
    return (const uint32_t *const *)kv->list;
}

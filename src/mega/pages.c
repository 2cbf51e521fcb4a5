/* pages.c - the page table of a program: policies, binding, offsets.
 *
 *   none         no table
 *   linear       page k holds the k-th activation to be written
 *   graph_color  pages_order.c -> pages_bound.c -> pages_pack.c
 *
 * A page is as large as its largest buffer, lives from the first write to the
 * last use of what it holds (topological places), and lies in the memory of
 * its buffers: registers, shared memory, or else GLOBAL_SCRATCH, also for
 * buffers that the file puts in HBM. Pages are numbered by first use; the map
 * lists buffers in ascending order.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "mega/pages_int.h"

#include <stdlib.h>
#include <string.h>

static const char *const policy_names[BR_MPP_COUNT] = {
    [BR_MPP_NONE] = "none",
    [BR_MPP_LINEAR] = "linear",
    [BR_MPP_GRAPH_COLOR] = "graph_color",
};

int
br_mega_page_policy_find(br_text name)
{
    for (int i = 0; i < BR_MPP_COUNT; i++)
        if (br_text_is(name, policy_names[i]))
            return i;
    return -1;
}

static br_code
oom(br_status *st)
{
    return br_fail(st, BR_E_OOM, "pages: no memory");
}

static uint8_t
page_space(const br_mega_buffer *b)
{
    return b->space == BR_MSP_HBM ? BR_MSP_GLOBAL_SCRATCH : b->space;
}

static int
by_buffer(const void *a, const void *b)
{
    const br_mega_bind *x = a, *y = b;

    return (x->buffer > y->buffer) - (x->buffer < y->buffer);
}

/* The table, once it is known which page each item has. */
static br_code
write_table(br_mega_prog *p, const br_pg_order *o, const uint32_t *page_of,
            uint32_t n_pages, br_status *st)
{
    br_mega_page *pages = br_arena_new(&p->arena, br_mega_page, n_pages + 1);
    br_mega_bind *binds = br_arena_new(&p->arena, br_mega_bind, o->n + 1);

    if (!pages || !binds)
        return oom(st);
    for (uint32_t i = 0; i < n_pages; i++)
        pages[i] = (br_mega_page){.id = i, .live_start = INT64_MAX};
    for (uint32_t i = 0; i < o->n; i++) {
        const br_pg_item *it = &o->item[i];
        br_mega_page *g = &pages[page_of[i]];
        g->space = page_space(&p->buffers[it->buffer]);
        g->nbytes = BR_MAX(g->nbytes, it->size);
        g->live_start = BR_MIN(g->live_start, (int64_t)it->first);
        g->live_end = BR_MAX(g->live_end, (int64_t)it->last);
        binds[i] = (br_mega_bind){it->buffer, page_of[i]};
    }
    if (o->n)
        qsort(binds, o->n, sizeof *binds, by_buffer);
    p->pages = pages;
    p->binds = binds;
    p->n_pages = n_pages;
    p->n_binds = o->n;
    p->has_pages = true;
    return BR_OK;
}

static int64_t
table_bytes(const br_pg_order *o, const uint32_t *page_of, uint32_t n_pages,
            int64_t *size)
{
    int64_t sum = 0;

    memset(size, 0, n_pages * sizeof *size);
    for (uint32_t i = 0; i < o->n; i++)
        size[page_of[i]] = BR_MAX(size[page_of[i]], o->item[i].size);
    for (uint32_t i = 0; i < n_pages; i++)
        sum += size[i];
    return sum;
}

/* Items that follow on their page in the very task that ends the one before:
 * the order admits that only for reuse in place. */
static br_code
count_in_place(const br_pg_order *o, const uint32_t *page_of, uint32_t n_pages,
               br_arena *a, int64_t *out, br_status *st)
{
    uint32_t *last = br_arena_get(a, (n_pages + 1) * sizeof *last);

    *out = 0;
    if (!last)
        return oom(st);
    memset(last, 0xff, (n_pages + 1) * sizeof *last);
    for (uint32_t b = 0; b < o->n; b++) {
        uint32_t a0 = last[page_of[b]];
        *out += a0 != BR_PG_NONE && o->item[a0].last == o->item[b].first;
        last[page_of[b]] = b;
    }
    return BR_OK;
}

static br_code
assign(const br_pg_order *o, const br_mega_pages_opt *opt,
       br_mega_pages_report *r, uint32_t *page_of, br_arena *a, br_status *st)
{
    uint32_t n_pages = o->n;
    int64_t *size = br_arena_new(a, int64_t, o->n + 1);

    if (!size)
        return oom(st);
    r->n_buffers = o->n;
    for (uint32_t i = 0; i < o->n; i++) {
        page_of[i] = i;
        if (__builtin_add_overflow(r->separate_bytes, o->item[i].size,
                                   &r->separate_bytes))
            return br_fail(st, BR_E_LIMIT, "pages: over 2^63 bytes in all");
    }
    if (opt->policy == BR_MPP_GRAPH_COLOR) {
        BR_TRY(br_pg_bound(o, r, NULL, a, st));
        BR_TRY(br_pg_pack(o, r->bound_bytes, page_of, &n_pages, a, st));
    }
    r->n_pages = n_pages;
    r->bytes = table_bytes(o, page_of, n_pages, size);
    return count_in_place(o, page_of, n_pages, a, &r->n_in_place, st);
}

br_code
br_mega_pages_allocate_opt(br_mega_prog *p, const br_mega_pages_opt *opt,
                           br_mega_pages_report *r, br_status *st)
{
    br_mega_pages_report report = {0};
    br_pg_order o;
    br_arena a;
    uint32_t *page_of;
    br_code rc;

    br_assert(opt->policy < BR_MPP_COUNT);
    br_assert((opt->align & (opt->align - 1)) == 0 && "a power of two");
    br_arena_init(&a, 0);
    rc = br_pg_order_build(&o, p, opt, &a, st);
    page_of = rc == BR_OK ? br_arena_new(&a, uint32_t, o.n + 1) : NULL;
    if (rc == BR_OK && !page_of)
        rc = oom(st);
    if (rc == BR_OK)
        rc = assign(&o, opt, &report, page_of, &a, st);
    if (rc == BR_OK && opt->policy == BR_MPP_NONE) {
        p->has_pages = false;
        p->n_pages = p->n_binds = 0;
        report.n_pages = 0;
    } else if (rc == BR_OK) {
        rc = write_table(p, &o, page_of, (uint32_t)report.n_pages, st);
    }
    if (rc == BR_OK && r)
        *r = report;
    br_arena_fini(&a);
    return rc;
}

br_code
br_mega_pages_allocate(br_mega_prog *p, br_mega_page_policy policy,
                       br_mega_pages_report *r, br_status *st)
{
    return br_mega_pages_allocate_opt(p, &(br_mega_pages_opt){.policy = policy},
                                      r, st);
}

br_code
br_mega_pages_offsets(const br_mega_prog *p, uint32_t align, int64_t *offset,
                      int64_t *total, br_status *st)
{
    int64_t *at = br_try_calloc(p->n_pages + 1, sizeof *at), sum = 0;
    int64_t step = align ? align : BR_MEGA_PAGE_ALIGN;
    br_code rc = BR_OK;

    if (!at)
        return oom(st);
    for (size_t b = 0; b < p->n_buffers; b++)
        offset[b] = -1;
    for (size_t i = 0; i < p->n_pages && rc == BR_OK; i++) {
        int64_t n = p->pages[i].nbytes;
        at[i] = sum;
        if (n < 0 || __builtin_add_overflow(sum, n, &sum) ||
            __builtin_add_overflow(sum, step - 1, &sum))
            rc = br_fail(st, BR_E_REJECTED, "pages[%zu].nbytes: %lld", i,
                         (long long)n);
        sum -= sum % step;
    }
    for (size_t i = 0; i < p->n_binds && rc == BR_OK; i++) {
        br_mega_bind x = p->binds[i];
        int64_t need = (uint64_t)x.buffer < p->n_buffers
                           ? br_pg_bytes(&p->buffers[x.buffer])
                           : -1;
        if (need < 0 || (uint64_t)x.page >= p->n_pages ||
            need > p->pages[x.page].nbytes)
            rc = br_fail(st, BR_E_REJECTED,
                         "buffer_to_page: buffer %lld does not fit page %lld",
                         (long long)x.buffer, (long long)x.page);
        else
            offset[x.buffer] = at[x.page];
    }
    *total = sum;
    br_free(at);
    return rc;
}

/* ring.c - see ring.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/ring.h"

#define PADDING UINT32_MAX

/* Stands before every record. span: of head and bytes, to the next one. */
typedef struct rec_head {
    uint32_t n; /* bytes; PADDING: skip */
    uint32_t span;
} rec_head;

br_code
br_ring_init(br_ring *r, uint32_t size, br_status *st)
{
    br_check(size >= 1024 && (size & (size - 1)) == 0);
    *r = (br_ring){.size = size, .at = br_try_alloc(size)};
    return r->at ? BR_OK : br_fail(st, BR_E_OOM, "ring: out of memory");
}

void
br_ring_fini(br_ring *r)
{
    br_free(r->at);
    r->at = NULL;
}

static rec_head *
head_at(const br_ring *r, uint64_t pos)
{
    return (rec_head *)(void *)(r->at + (pos & (r->size - 1)));
}

static bool
has_room(br_ring *r, uint64_t need)
{
    if (r->put + need - r->seen_tail <= r->size)
        return true;
    /* partner: the release in br_ring_pop */
    r->seen_tail = atomic_load_explicit(&r->tail, memory_order_acquire);
    return r->put + need - r->seen_tail <= r->size;
}

uint64_t
br_ring_span(uint32_t n)
{
    return sizeof(rec_head) + (((uint64_t)n + 7) & ~UINT64_C(7));
}

bool
br_ring_has(br_ring *r, uint64_t n)
{
    return n <= r->size / 4 && has_room(r, 2 * n); /* with padding */
}

void *
br_ring_put(br_ring *r, uint32_t n)
{
    uint64_t span = br_ring_span(n);
    uint64_t left = r->size - (r->put & (r->size - 1));
    uint64_t skip = span > left ? left : 0;
    rec_head *h;

    br_check(span <= r->size / 4);
    if (!has_room(r, span + skip))
        return NULL;
    if (skip)
        *head_at(r, r->put) = (rec_head){PADDING, (uint32_t)skip};
    h = head_at(r, r->put + skip);
    *h = (rec_head){n, (uint32_t)span};
    r->put += skip + span;
    return h + 1;
}

bool
br_ring_publish(br_ring *r)
{
    if (atomic_load_explicit(&r->head, memory_order_relaxed) == r->put)
        return false;
    /* partners: br_ring_peek; br_ring_empty, whose caller may then sleep and
     * has said so before it looked, hence seq_cst */
    atomic_store_explicit(&r->head, r->put, memory_order_seq_cst);
    return true;
}

const void *
br_ring_peek(br_ring *r, uint32_t *n)
{
    uint64_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
    const rec_head *h;

    if (tail == atomic_load_explicit(&r->head, memory_order_acquire))
        return NULL;
    h = head_at(r, tail);
    if (h->n == PADDING) {
        tail += h->span;
        atomic_store_explicit(&r->tail, tail, memory_order_release);
        h = head_at(r, tail);
    }
    *n = h->n;
    return h + 1;
}

void
br_ring_pop(br_ring *r)
{
    uint64_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);

    atomic_store_explicit(&r->tail, tail + head_at(r, tail)->span,
                          memory_order_release);
}

bool
br_ring_empty(const br_ring *r)
{
    return atomic_load_explicit(&r->tail, memory_order_acquire) ==
           atomic_load_explicit(&r->head, memory_order_seq_cst);
}

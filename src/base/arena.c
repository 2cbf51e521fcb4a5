/* arena.c - memory that is freed all at once.
 *
 *   head -> [chunk | used used ... at ... end] -> older chunk -> ...
 *
 * Chunks double from 16 KiB to 4 MiB, so a program of 100,000 tasks costs some
 * twenty calls of the heap. A request larger than a chunk gets its own.
 * Invariant: used <= limit whenever limit is set; at is 16-aligned.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "base/thread.h"

#include <string.h>

#define ALIGN     16u
#define CHUNK_MIN (16u << 10)
#define CHUNK_MAX (4u << 20)
#define HUGE_PAGE ((size_t)2 << 20)

struct br_chunk {
    struct br_chunk *next;
    size_t size; /* of the whole block, this header included */
};
#define HEADER ((sizeof(struct br_chunk) + ALIGN - 1) & ~(size_t)(ALIGN - 1))

void
br_arena_init(br_arena *a, size_t limit_bytes)
{
    *a = (br_arena){.limit = limit_bytes};
}

void
br_arena_fini(br_arena *a)
{
    struct br_chunk *c = a->head;

    while (c) {
        struct br_chunk *next = c->next;
        br_free(c);
        c = next;
    }
    *a = (br_arena){.limit = a->limit};
}

void
br_arena_reset(br_arena *a)
{
    struct br_chunk *keep = a->head, *c;

    if (!keep)
        return;
    c = keep->next;
    while (c) {
        struct br_chunk *next = c->next;
        br_free(c);
        c = next;
    }
    keep->next = NULL;
    a->at = (char *)keep + HEADER;
    a->end = (char *)keep + keep->size;
    a->used = 0;
}

static bool
add_chunk(br_arena *a, size_t need)
{
    size_t size = a->head ? a->head->size * 2 : CHUNK_MIN;
    struct br_chunk *c;

    size = BR_MIN(size, (size_t)CHUNK_MAX);
    if (need > SIZE_MAX - HEADER)
        return false;
    size = BR_MAX(size, need + HEADER);
    c = br_try_alloc(size);
    if (!c)
        return false;
    c->next = a->head;
    c->size = size;
    a->head = c;
    a->at = (char *)c + HEADER;
    a->end = (char *)c + size;
    return true;
}

void *
br_arena_get(br_arena *a, size_t size)
{
    char *p;

    if (size > SIZE_MAX - ALIGN)
        return NULL;
    size = (size + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    if (a->limit && (size > a->limit || a->used > a->limit - size))
        return NULL;
    if (size > (size_t)(a->end - a->at) && !add_chunk(a, size))
        return NULL;
    p = a->at;
    a->at += size;
    a->used += size;
    return p;
}

/* In whole huge pages: those that nobody uses stay out of memory. */
static void *
zero_pages(br_arena *a, size_t bytes)
{
    char *p;

    if (bytes > SIZE_MAX - 2 * HUGE_PAGE)
        return NULL;
    bytes = (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    p = br_arena_get(a, bytes + HUGE_PAGE);
    if (!p)
        return NULL;
    p += (HUGE_PAGE - (uintptr_t)p % HUGE_PAGE) % HUGE_PAGE;
    br_os_zero(p, bytes);
    return p;
}

void *
br_arena_zero(br_arena *a, size_t n, size_t size)
{
    size_t bytes;
    void *p;

    if (br_mul_overflows(n, size, &bytes))
        return NULL;
    if (bytes >= CHUNK_MAX)
        return zero_pages(a, bytes);
    p = br_arena_get(a, bytes);
    if (p)
        memset(p, 0, bytes);
    return p;
}

void *
br_arena_dup(br_arena *a, const void *src, size_t size)
{
    void *p = br_arena_get(a, size);

    if (p && size)
        memcpy(p, src, size);
    return p;
}

char *
br_arena_str(br_arena *a, const char *s, size_t n)
{
    char *p = n < SIZE_MAX ? br_arena_get(a, n + 1) : NULL;

    if (p) {
        if (n)
            memcpy(p, s, n);
        p[n] = 0;
    }
    return p;
}

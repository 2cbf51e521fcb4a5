/* mem.c - the one door to the heap.
 *
 * All of Brass allocates here, so that a test can fail the n-th allocation and
 * see that the failure comes back as a status, and so that "the steady loop
 * allocates nothing" can be asserted by a counter.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "base/thread.h"

#include <stdlib.h>
#include <string.h>

static void *
libc_realloc(void *ctx, void *p, size_t size)
{
    (void)ctx;
    if (size == 0) {
        free(p);
        return NULL;
    }
    return realloc(p, size);
}

static br_mem_fn hook = libc_realloc;
static void *hook_ctx;

void
br_mem_hook(br_mem_fn fn, void *ctx)
{
    hook = fn ? fn : libc_realloc;
    hook_ctx = fn ? ctx : NULL;
}

bool
br_mul_overflows(size_t a, size_t b, size_t *out)
{
    return __builtin_mul_overflow(a, b, out);
}

void *
br_try_alloc(size_t size)
{
    return hook(hook_ctx, NULL, size ? size : 1);
}

static void *
try_many(size_t n, size_t size, size_t *bytes)
{
    return br_mul_overflows(n, size, bytes) ? NULL : br_try_alloc(*bytes);
}

void *
br_try_calloc(size_t n, size_t size)
{
    size_t bytes;
    void *p = try_many(n, size, &bytes);

    return p ? memset(p, 0, bytes) : NULL;
}

void *
br_try_pages(size_t n, size_t size)
{
    size_t bytes;
    void *p = try_many(n, size, &bytes);

    if (p)
        br_os_zero(p, bytes);
    return p;
}

void *
br_try_realloc(void *p, size_t size)
{
    return hook(hook_ctx, p, size ? size : 1);
}

void *
br_alloc(size_t size)
{
    void *p = br_try_alloc(size);

    br_check(p && "out of memory");
    return p;
}

void
br_free(void *p)
{
    if (p)
        hook(hook_ctx, p, 0);
}

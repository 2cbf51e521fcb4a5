/* t_mem.c - the allocator that tests run on: counts, fails on demand, checks.
 *
 *   plain build:   | size, mark | payload ... | guard |      junk in payload
 *   ASan build:    | payload ... |      ASan does guards, junk and stacks
 *
 * Counters are relaxed atomics on purpose: a lock here would order the threads
 * of the code under test and so hide its races from TSan.
 * SPDX-License-Identifier: Apache-2.0 */
#include "t.h"

#include <malloc.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#    define ASAN 1
#elif defined(__has_feature)
#    if __has_feature(address_sanitizer)
#        define ASAN 1
#    endif
#endif
#ifndef ASAN
#    define ASAN 0
#endif

size_t
__sanitizer_get_current_allocated_bytes(void); /* its header: not gcc's */

enum { HEAD = 16, TAIL = 8 };
#define ALIVE 0xa110ca7edb10c000u
#define DEAD  0xdeadb10cdeadb10cu
#define GUARD 0x5afe60a2d5afe60au

static atomic_size_t blocks, bytes, most, count, fail_at;
static atomic_bool failed;
static size_t at_start; /* of malloc */
static bool returned;   /* the test, without failing */

/* LSan asks at exit. A failed test was left in the middle of its work: what it
 * had not freed is no news and would bury the assertion's message. */
int __lsan_is_turned_off(void);
int
__lsan_is_turned_off(void)
{
    return !returned;
}

#define RELAXED   memory_order_relaxed
#define add(c, n) atomic_fetch_add_explicit(&(c), (n), RELAXED)
#define sub(c, n) atomic_fetch_sub_explicit(&(c), (n), RELAXED)
#define get(c)    atomic_load_explicit(&(c), RELAXED)
#define set(c, v) atomic_store_explicit(&(c), (v), RELAXED)

static size_t
size_of(void *p)
{
    uint64_t mark, guard;
    size_t n;

    if (ASAN)
        return malloc_usable_size(p); /* ASan: exactly what was asked for */
    memcpy(&n, (char *)p - HEAD, sizeof n);
    memcpy(&mark, (char *)p - 8, sizeof mark);
    if (mark == DEAD)
        br_panic_at(__FILE__, __LINE__, "block freed twice");
    if (mark != ALIVE)
        br_panic_at(__FILE__, __LINE__, "not a block, or written before it");
    memcpy(&guard, (char *)p + n, sizeof guard);
    if (guard != GUARD)
        br_panic_at(__FILE__, __LINE__, "block written past its end");
    return n;
}

static void *
make(size_t n)
{
    uint64_t mark = ALIVE, guard = GUARD;
    size_t whole;
    char *p;

    if (__builtin_add_overflow(n, (size_t)(HEAD + TAIL), &whole))
        return NULL;
    p = malloc(ASAN ? n : whole);
    if (!p)
        return NULL;
    add(blocks, 1);
    if (add(bytes, n) + n > get(most))
        set(most, get(bytes)); /* exact with one thread */
    if (ASAN)
        return p;
    memcpy(p, &n, sizeof n);
    memcpy(p + 8, &mark, sizeof mark);
    memset(p + HEAD, 0xa5, n);
    memcpy(p + HEAD + n, &guard, sizeof guard);
    return p + HEAD;
}

static void
drop(void *p)
{
    uint64_t mark = DEAD;
    size_t n = size_of(p);

    sub(blocks, 1);
    sub(bytes, n);
    if (ASAN) {
        free(p);
        return;
    }
    memset(p, 0x5a, n);
    memcpy((char *)p - 8, &mark, sizeof mark);
    free((char *)p - HEAD);
}

static void *
hook(void *ctx, void *p, size_t n)
{
    size_t old, nth;
    void *q;

    (void)ctx;
    if (n == 0) {
        drop(p);
        return NULL;
    }
    nth = add(count, 1) + 1;
    if (nth == get(fail_at)) {
        set(failed, true);
        return NULL;
    }
    q = make(n);
    if (q && p) { /* always moves: whoever kept the old pointer is found */
        old = size_of(p);
        memcpy(q, p, BR_MIN(old, n));
        drop(p);
    }
    return q;
}

size_t
t_mem_blocks(void)
{
    return get(blocks);
}

size_t
t_mem_bytes(void)
{
    return get(bytes);
}

size_t
t_mem_most(void)
{
    size_t n = get(most);

    set(most, get(bytes));
    return n;
}

size_t
t_mem_count(void)
{
    return get(count);
}

void
t_mem_fail_at(size_t n)
{
    set(failed, false);
    set(fail_at, n ? get(count) + n : 0);
}

bool
t_mem_failed(void)
{
    return get(failed);
}

/* Bytes of malloc, without what lives until the test ends. */
static size_t
of_malloc(void)
{
#if ASAN
    return __sanitizer_get_current_allocated_bytes() - t_kept_bytes();
#else
    return 0;
#endif
}

void
t_mem_start(void)
{
    at_start = of_malloc();
    set(blocks, 0);
    set(bytes, 0);
    set(count, 0);
    t_mem_fail_at(0);
    br_mem_hook(hook, NULL);
}

void
t_mem_end(void)
{
    size_t n = t_mem_blocks();

    br_mem_hook(NULL, NULL);
    returned = n == 0;
    if (n)
        ck_abort_msg("leaked %zu block%s, %zu bytes (SAN=address says where)",
                     n, n == 1 ? "" : "s", t_mem_bytes());
}

/* LSan, at exit, reads all that a test has: 64 MB of the program's own, and every
 * page of its zeros, which are none yet, 0.4 s of processor time in a test of 0.02.
 * It has nothing to find where as many bytes are live as before. */
bool
t_mem_as_before(void)
{
    return ASAN && of_malloc() == at_start;
}

/* Every n up to 512, then steps of n/128: a loader with 100,000 allocations
 * is still tried at about 1,200 places. Under TSan, which looks for threads that
 * meet where others have given up and not for what is lost, up to 32, then of n/4. */
void
t_each_oom(t_oom_fn fn, void *arg)
{
    const size_t all = t_tsan() ? 32 : 512, part = t_tsan() ? 4 : 128;
    size_t live = t_mem_blocks(), n;

    for (n = 1;; n += 1 + (n > all ? n / part : 0)) {
        br_status st = {0};
        br_code code;

        t_mem_fail_at(n);
        code = fn(arg, &st);
        if (t_mem_blocks() != live)
            ck_abort_msg("%zu blocks leaked when allocation %zu %s",
                         t_mem_blocks() - live, n,
                         t_mem_failed() ? "failed" : "was not reached");
        if (!t_mem_failed()) {
            t_mem_fail_at(0);
            if (code != BR_OK)
                ck_abort_msg("with all its memory: %s: %s", br_code_name(code),
                             st.msg);
            ck_assert_msg(n > 1, "it never allocates: nothing was tested");
            return;
        }
        if (code != BR_E_OOM || st.code != BR_E_OOM)
            ck_abort_msg("allocation %zu failed, but it returned %s, status %s"
                         " (%s)",
                         n, br_code_name(code), br_code_name(st.code), st.msg);
    }
}

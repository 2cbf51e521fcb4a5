/* state_touch.c - see state_touch.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/state_touch.h"

#include "base/thread.h"

#include <stdatomic.h>

/* At once: a huge page, so that who waits for the map of our memory, or for the
 * end, does not wait long (0.2 ms, 4.5 ms where the host has none at hand). */
enum { PIECE = 2 << 20 };

struct br_touch {
    const br_state *s;
    uint64_t most;
    _Atomic uint64_t done;
    _Atomic bool stop;
    br_thread thread;
};

/* False: enough, or no more is to be had. */
static bool
touch(br_touch *t, uint8_t *p, size_t n)
{
    for (size_t at = 0; at < n;) {
        /* Up to where the next huge page begins. */
        size_t piece =
            BR_MIN(PIECE - (uintptr_t)(p + at) % PIECE, (size_t)(n - at));

        if (atomic_load_explicit(&t->stop, memory_order_relaxed) ||
            atomic_load_explicit(&t->done, memory_order_relaxed) + piece >
                t->most ||
            !br_os_touch(p + at, piece))
            return false;
        atomic_fetch_add_explicit(&t->done, piece, memory_order_relaxed);
        at += piece;
    }
    return true;
}

static void
run(void *arg)
{
    br_touch *t = arg;
    const br_state *s = t->s;
    bool more = true;

    br_os_thread_later();
    for (uint32_t sheet = 0; more; sheet++) {
        more = false;
        for (uint32_t g = 0; g < s->plan.n_groups; g++) {
            size_t bytes = BR_SHEET * br_state_page_bytes(s, g);

            if (sheet * (uint64_t)BR_SHEET >= s->n_pages[g])
                continue;
            if (!touch(t, s->pool[g] + sheet * bytes, bytes))
                return;
            more = true;
        }
    }
}

br_code
br_touch_begin(br_touch **out, const br_state *s, uint64_t most, br_status *st)
{
    br_touch *t = br_try_calloc(1, sizeof *t);
    br_code code;

    *out = NULL;
    if (!t)
        return br_fail(st, BR_E_OOM, "pages: out of memory");
    t->s = s;
    t->most = most;
    code = br_thread_start(&t->thread, "brass-pages", run, t, st);
    if (code == BR_OK)
        *out = t;
    else
        br_free(t);
    return code;
}

uint64_t
br_touch_done(const br_touch *t)
{
    return atomic_load_explicit(&t->done, memory_order_relaxed);
}

void
br_touch_end(br_touch *t)
{
    if (!t)
        return;
    atomic_store_explicit(&t->stop, true, memory_order_relaxed);
    br_thread_join(&t->thread);
    br_free(t);
}

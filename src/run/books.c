/* books.c - see books.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/books.h"

#include "base/log.h"
#include "base/thread.h"

#include <string.h>

#define EVERY_NS INT64_C(1000000000)

struct br_books {
    br_engine *e;
    br_tstore *store;
    br_thread thread;
    bool started;
    br_event wake;
    atomic_bool stop;
    int64_t version;               /* of the tenants the engine has */
    br_ledger was[BR_MAX_TENANTS]; /* as the file has them */
    br_ledger_delta delta[BR_MAX_TENANTS];
};

static bool
tell_engine(void *ctx, const br_tenant *t)
{
    br_books *b = ctx;
    br_status st = {0};

    if (br_engine_tenant_set(b->e, t->id, &t->quota, &st) != BR_OK)
        br_log(BR_EV_tenant_refused, "%s: %s", t->name, st.msg);
    return true;
}

static br_code
take_changes(br_books *b, br_status *st)
{
    int64_t version;

    BR_TRY(br_tstore_version(b->store, &version, st));
    if (version == b->version)
        return BR_OK;
    BR_TRY(br_tstore_each(b->store, tell_engine, b, st));
    b->version = version;
    return BR_OK;
}

static br_code
write_ledgers(br_books *b, br_status *st)
{
    size_t n = 0;

    for (uint32_t id = 0; id < BR_MAX_TENANTS; id++) {
        br_ledger l;

        if (!br_engine_ledger(b->e, id, &l) ||
            memcmp(&l, &b->was[id], sizeof l) == 0)
            continue;
        b->delta[n++] = (br_ledger_delta){id, l, b->was[id]};
    }
    if (n)
        BR_TRY(br_tstore_add(b->store, b->delta, n, st));
    for (size_t i = 0; i < n; i++)
        b->was[b->delta[i].tenant] = b->delta[i].is;
    return BR_OK;
}

static bool
stops(void *arg)
{
    return atomic_load_explicit(&((br_books *)arg)->stop, memory_order_acquire);
}

static void
keep(void *arg)
{
    static br_log_limit limit = {.every_ns = INT64_C(60000000000), .burst = 1};
    br_books *b = arg;
    bool over;

    do {
        br_status st = {0};

        over = br_event_await(&b->wake, stops, b, 0, EVERY_NS);
        if (take_changes(b, &st) != BR_OK || write_ledgers(b, &st) != BR_OK)
            br_log_limited(&limit, BR_EV_books_failed, "%s", st.msg);
    } while (!over);
}

static br_code
start(br_books *b, const char *path, bool *lost, br_status *st)
{
    BR_TRY(br_tstore_open(&b->store, path, st));
    BR_TRY(br_tstore_begin_run(b->store, lost, st));
    BR_TRY(take_changes(b, st));
    BR_TRY(br_thread_start(&b->thread, "books", keep, b, st));
    b->started = true;
    return BR_OK;
}

br_code
br_books_open(br_books **out, br_engine *e, const char *path, bool *lost,
              br_status *st)
{
    br_books *b = br_try_calloc(1, sizeof *b);
    br_code code;

    *out = NULL;
    if (!b)
        return br_fail(st, BR_E_OOM, "books: out of memory");
    b->e = e;
    b->version = -1;
    code = start(b, path, lost, st);
    if (code != BR_OK)
        br_books_close(b);
    else
        *out = b;
    return code;
}

void
br_books_close(br_books *b)
{
    if (!b)
        return;
    if (b->started) {
        /* partner: stops() */
        atomic_store_explicit(&b->stop, true, memory_order_release);
        br_event_signal(&b->wake);
        br_thread_join(&b->thread);
        if (br_tstore_end_run(b->store, NULL) != BR_OK)
            br_log(BR_EV_books_failed, "the end of this run is not noted");
    }
    br_tstore_close(b->store);
    br_free(b);
}

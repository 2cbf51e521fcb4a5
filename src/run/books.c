/* books.c - see books.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/books.h"

#include "base/log.h"
#include "base/thread.h"

#include <string.h>

#define EVERY_NS INT64_C(1000000000)

typedef struct kept {
    br_engine *e;
    const char *model;
    br_prices prices;
    int64_t version;               /* of the tenants the engine has */
    br_ledger was[BR_MAX_TENANTS]; /* as the file has them */
    struct kept *next;
} kept;

typedef BR_VEC(br_logged) rows;

struct br_books {
    br_mutex lock; /* of store, engines and delta */
    br_tstore *store;
    kept *engines;
    br_thread thread;
    bool started;
    br_event wake;
    atomic_bool stop;
    br_ledger_delta delta[BR_MAX_TENANTS];
    br_mutex log_lock; /* of waiting, and of nothing that takes time */
    rows waiting;
    rows logged;    /* being written, or written again; under lock */
    size_t n_delta; /* of them are to be written, or written again */
};

static bool
tell_engine(void *ctx, const br_tenant *t)
{
    const kept *k = ctx;
    br_quota q = br_quota_on(&t->quota, k->model);
    br_status st = {0};

    if (br_engine_tenant_set(k->e, t->id, &q, &st) != BR_OK)
        br_log(BR_EV_tenant_refused, "%s: %s", t->name, st.msg);
    return true;
}

/* Who changes a tenant tells the engine, too (http/admin.c): what was read before the
 * change may be told after it. So all are read again where there was one. */
static br_code
take_changes(br_books *b, kept *k, br_status *st)
{
    enum { TIMES = 8 }; /* then a second later */
    int64_t version;

    BR_TRY(br_tstore_version(b->store, &version, st));
    for (int i = 0; i < TIMES && version != k->version; i++) {
        BR_TRY(br_tstore_each(b->store, tell_engine, k, st));
        k->version = version;
        BR_TRY(br_tstore_version(b->store, &version, st));
    }
    return BR_OK;
}

/* A batch that failed may have been counted, so the same one comes again. */
static br_code
write_batch(br_books *b, br_status *st)
{
    if (b->n_delta)
        BR_TRY(br_tstore_add(b->store, b->delta, b->n_delta, st));
    b->n_delta = 0;
    return BR_OK;
}

static br_code
write_ledgers(br_books *b, kept *k, br_status *st)
{
    BR_TRY(write_batch(b, st));
    for (uint32_t id = 0; id < BR_MAX_TENANTS; id++) {
        br_ledger l;

        if (!br_engine_ledger(k->e, id, &l) ||
            memcmp(&l, &k->was[id], sizeof l) == 0)
            continue;
        b->delta[b->n_delta++] =
            (br_ledger_delta){id, l, k->was[id], k->prices};
        k->was[id] = l;
    }
    return write_batch(b, st);
}

void
br_books_log(br_books *b, const br_logged *r)
{
    static br_log_limit limit = {.every_ns = INT64_C(60000000000), .burst = 1};
    bool room;

    br_mutex_lock(&b->log_lock);
    room = b->waiting.n < BR_BOOKS_WAITING && br_vec_push(&b->waiting, *r);
    br_mutex_unlock(&b->log_lock);
    if (!room)
        br_log_limited(&limit, BR_EV_log_full, "%s", r->id);
}

/* With the lock held. */
static br_code
write_log(br_books *b, br_status *st)
{
    if (!b->logged.n) {
        rows none = b->logged;

        br_mutex_lock(&b->log_lock);
        b->logged = b->waiting;
        b->waiting = none;
        br_mutex_unlock(&b->log_lock);
    }
    if (b->logged.n)
        BR_TRY(br_tstore_log(b->store, b->logged.at, b->logged.n, st));
    b->logged.n = 0;
    return BR_OK;
}

static void
tell_failed(const br_status *st)
{
    static br_log_limit limit = {.every_ns = INT64_C(60000000000), .burst = 1};

    br_log_limited(&limit, BR_EV_books_failed, "%s", st->msg);
}

/* With the lock held. */
static void
keep_one(br_books *b, kept *k)
{
    br_status st = {0};

    if (take_changes(b, k, &st) != BR_OK || write_ledgers(b, k, &st) != BR_OK)
        tell_failed(&st);
}

static bool
stops(void *arg)
{
    return atomic_load_explicit(&((br_books *)arg)->stop, memory_order_acquire);
}

static void
keep(void *arg)
{
    br_books *b = arg;
    bool over;

    do {
        br_status st = {0};

        over = br_event_await(&b->wake, stops, b, 0, EVERY_NS);
        br_mutex_lock(&b->lock);
        for (kept *k = b->engines; k; k = k->next)
            keep_one(b, k);
        if (write_log(b, &st) != BR_OK)
            tell_failed(&st);
        br_mutex_unlock(&b->lock);
    } while (!over);
}

br_code
br_books_add(br_books *b, br_engine *e, const char *model,
             const br_prices *prices, br_status *st)
{
    kept *k = br_try_calloc(1, sizeof *k);
    br_code code;

    if (!k)
        return br_fail(st, BR_E_OOM, "books: out of memory");
    k->e = e;
    k->model = model;
    if (prices)
        k->prices = *prices;
    k->version = -1;
    br_mutex_lock(&b->lock);
    code = take_changes(b, k, st);
    if (code == BR_OK) {
        k->next = b->engines;
        b->engines = k;
    }
    br_mutex_unlock(&b->lock);
    if (code != BR_OK)
        br_free(k);
    return code;
}

void
br_books_drop(br_books *b, br_engine *e)
{
    if (!b)
        return;
    br_mutex_lock(&b->lock);
    for (kept **at = &b->engines, *k; (k = *at); at = &k->next)
        if (k->e == e) {
            keep_one(b, k);
            *at = k->next;
            br_free(k);
            break;
        }
    br_mutex_unlock(&b->lock);
}

static br_code
start(br_books *b, const char *path, const _Atomic bool *stop, bool *lost,
      br_status *st)
{
    BR_TRY(br_tstore_open_until(&b->store, path, stop, st));
    BR_TRY(br_tstore_begin_run(b->store, lost, st));
    if (*lost)
        br_log(BR_EV_books_lost,
               "%s: a server before did not end well, the last second of its "
               "counters is missing",
               br_tstore_name(b->store));
    BR_TRY(br_thread_start(&b->thread, "books", keep, b, st));
    b->started = true;
    return BR_OK;
}

br_code
br_books_open(br_books **out, const char *path, const _Atomic bool *stop,
              bool *lost, br_status *st)
{
    br_books *b = br_try_calloc(1, sizeof *b);
    br_code code;

    *out = NULL;
    if (!b)
        return br_fail(st, BR_E_OOM, "books: out of memory");
    b->lock = (br_mutex)BR_MUTEX;
    b->log_lock = (br_mutex)BR_MUTEX;
    code = start(b, path, stop, lost, st);
    if (code != BR_OK)
        br_books_close(b);
    else
        *out = b;
    return code;
}

void
br_books_close(br_books *b)
{
    kept *next;

    if (!b)
        return;
    if (b->started) {
        /* partner: stops() */
        atomic_store_explicit(&b->stop, true, memory_order_release);
        br_event_signal(&b->wake);
        br_thread_join(&b->thread);
        if (write_batch(b, NULL) != BR_OK || write_log(b, NULL) != BR_OK)
            br_log(BR_EV_books_failed, "the last counters are lost");
        if (br_tstore_end_run(b->store, NULL) != BR_OK)
            br_log(BR_EV_books_failed, "the end of this run is not noted");
    }
    for (kept *k = b->engines; k; k = next) {
        next = k->next;
        br_free(k);
    }
    br_vec_fini(&b->waiting);
    br_vec_fini(&b->logged);
    br_tstore_close(b->store);
    br_free(b);
}

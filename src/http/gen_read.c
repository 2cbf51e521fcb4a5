/* gen_read.c - long prompts become tokens in a thread of their own, so that the
 * loop's goes on with everybody's streams: 100,000 tokens take it 0.1 s.
 *
 *   loop    br_gen_read --> todo          br_reader_collect --> br_gen_was_read
 *                            |                 ^
 *   reader                   `--> tokens --> done
 *
 * A request is on one of the two lists, or in the reader's hands, from
 * br_gen_read to br_gen_was_read, whatever its client does meanwhile.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "http/gen.h"

static bool
has_more(void *arg)
{
    br_reader *r = arg;
    bool more;

    br_mutex_lock(&r->lock);
    more = r->todo || r->stop;
    br_mutex_unlock(&r->lock);
    return more;
}

static void
append(br_gen *g, br_gen ***end)
{
    g->next_read = NULL;
    **end = g;
    *end = &g->next_read;
}

/* NULL: it is time to stop. */
static br_gen *
take(br_reader *r)
{
    br_gen *g;

    (void)br_event_await(&r->more, has_more, r, 0, -1);
    br_mutex_lock(&r->lock);
    g = r->todo;
    if (g && !(r->todo = g->next_read))
        r->todo_end = &r->todo;
    br_mutex_unlock(&r->lock);
    return g;
}

static void
read_prompts(br_gen *g, br_tok_work *w)
{
    size_t n = BR_MAX(g->ask.prompts.n, (size_t)1);

    for (size_t i = 0; i < n && g->read_st.code == BR_OK; i++)
        if (atomic_load_explicit(&g->unwanted, memory_order_relaxed) ||
            br_gen_encode(g, i, w, &g->read[i], &g->read_st) != BR_OK)
            return;
}

static void
run(void *arg)
{
    br_http *h = arg;
    br_reader *r = &h->reader;
    br_gen *g;

    while ((g = take(r))) {
        read_prompts(g, r->work);
        br_mutex_lock(&r->lock);
        append(g, &r->done_end);
        br_mutex_unlock(&r->lock);
        br_http_loop_wake(h->loop);
    }
}

br_code
br_gen_read(br_gen *g, br_status *st)
{
    br_reader *r = &g->h->reader;

    g->read =
        br_try_calloc(BR_MAX(g->ask.prompts.n, (size_t)1), sizeof *g->read);
    if (!g->read)
        return br_fail(st, BR_E_OOM, "out of memory");
    g->reading = true;
    g->c->job = g;
    br_mutex_lock(&r->lock);
    append(g, &r->todo_end);
    br_mutex_unlock(&r->lock);
    br_event_signal(&r->more);
    return BR_OK;
}

void
br_reader_collect(br_http *h)
{
    br_reader *r = &h->reader;
    br_gen *g, *next;

    br_mutex_lock(&r->lock);
    g = r->done;
    r->done = NULL;
    r->done_end = &r->done;
    br_mutex_unlock(&r->lock);
    for (; g; g = next) {
        next = g->next_read;
        br_gen_was_read(g);
    }
}

br_code
br_reader_start(br_http *h, br_status *st)
{
    br_reader *r = &h->reader;

    r->lock = (br_mutex)BR_MUTEX;
    r->todo_end = &r->todo;
    r->done_end = &r->done;
    r->work = br_tok_work_new();
    if (!r->work)
        return br_fail(st, BR_E_OOM, "http: out of memory");
    BR_TRY(br_thread_start(&r->thread, "reader", run, h, st));
    r->started = true;
    return BR_OK;
}

void
br_reader_stop(br_http *h)
{
    br_reader *r = &h->reader;

    if (r->started) {
        br_mutex_lock(&r->lock);
        r->stop = true;
        br_mutex_unlock(&r->lock);
        br_event_signal(&r->more);
        br_thread_join(&r->thread);
        r->started = false;
        br_reader_collect(h);
    }
    br_tok_work_free(r->work);
    r->work = NULL;
}

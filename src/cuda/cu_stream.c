/* cu_stream.c - streams and events.
 *
 * A stream is a queue and a thread that works it off, made when the first op
 * comes. Stream structs are never freed but used again, and their numbers go
 * on, so that a wait for (stream, number) means the same for ever.
 *
 * The null stream's rule: its ops wait for all that was issued to blocking
 * streams, and theirs wait for what was issued to it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cuda/cu_graph.h"
#include "cuda/cuda_int.h"

#include <string.h>

/* cudaStreamPerThread; of before a reset if the number is another. */
static _Thread_local struct CUstream_st *my_stream;
static _Thread_local uint64_t my_resets;

/* ---- ops ---------------------------------------------------------------- */

/* The payload starts at the next multiple of 16 after the op. */
#define OP_BYTES ((sizeof(bc_op) + 15) & ~(size_t)15)

void *
bc_op_new(size_t payload, cudaError_t (*run)(void *))
{
    bc_op *o = br_try_calloc(1, OP_BYTES + payload);

    if (!o)
        return NULL;
    o->run = run;
    return (char *)o + OP_BYTES;
}

bc_op *
bc_op_of(void *payload)
{
    return (bc_op *)(void *)((char *)payload - OP_BYTES);
}

void
bc_op_free(void *payload)
{
    bc_op *o = bc_op_of(payload);

    if (o->drop)
        o->drop(payload);
    br_vec_fini(&o->waits);
    br_free(o);
}

/* ---- a stream's thread -------------------------------------------------- */

bool
bc_done(const bc_wait *w)
{
    return !w->s || w->s->done >= w->seq;
}

static bool
may_run(const bc_op *o)
{
    for (size_t k = 0; k < o->waits.n; k++)
        if (!bc_done(&o->waits.at[k]))
            return false;
    return true;
}

static bool
ready(const struct CUstream_st *s)
{
    return s->head && !s->busy && may_run(s->head);
}

bool
bc_is_next(const struct CUstream_st *s, const void *payload)
{
    return ready(s) &&
           (const char *)payload == (const char *)s->head + OP_BYTES;
}

/* The first op, which is ready. The lock is let go of while it runs. */
static void
run_first(struct CUstream_st *s)
{
    bc_op *o = s->head;
    cudaError_t e = cudaSuccess;
    bool run = o->always || bc_rt.sticky == cudaSuccess;

    s->head = o->next;
    if (!s->head)
        s->tail = &s->head;
    s->busy = true;
    bc_unlock();
    if (run)
        e = o->run((char *)o + OP_BYTES);
    bc_lock();
    if (e != cudaSuccess && bc_rt.sticky == cudaSuccess)
        bc_rt.sticky = e;
    s->done = o->seq;
    s->busy = false;
    pthread_cond_broadcast(&bc_rt.moved);
    bc_op_free((char *)o + OP_BYTES);
}

static void
work(void *arg)
{
    struct CUstream_st *s = arg;

    bc_lock();
    while (s->head || !bc_rt.quit)
        if (ready(s))
            run_first(s);
        else
            pthread_cond_wait(&bc_rt.moved, &bc_rt.lock.m);
    bc_unlock();
}

/* Everything is done, and no handle is good any more. The lock is let go of
 * while the threads end. */
void
bc_streams_end(void)
{
    struct CUstream_st *null = &bc_rt.null, *s;
    struct CUevent_st *e;

    bc_rt.quit = true;
    pthread_cond_broadcast(&bc_rt.moved);
    bc_unlock();
    for (s = bc_rt.streams; s; s = s->next)
        if (s->started)
            br_thread_join(&s->thread);
    if (null->started)
        br_thread_join(&null->thread);
    bc_lock();
    while ((s = bc_rt.streams)) {
        bc_rt.streams = s->next;
        br_vec_fini(&s->deps);
        br_free(s);
    }
    while ((e = bc_rt.events)) {
        bc_rt.events = e->next;
        br_vec_fini(&e->deps);
        br_free(e);
    }
    *null = (struct CUstream_st){.used = true, .blocking = true};
    bc_rt.quit = false;
    bc_rt.resets++;
}

bool
bc_wait_for(bc_op *o, struct CUstream_st *s, uint64_t seq)
{
    bc_wait w = {s, seq};

    return bc_done(&w) || br_vec_push(&o->waits, w);
}

/* What the null stream's rule adds. */
static bool
null_rule(struct CUstream_st *s, bc_op *o)
{
    if (s == &bc_rt.null) {
        for (struct CUstream_st *k = bc_rt.streams; k; k = k->next)
            if (k->blocking && !bc_wait_for(o, k, k->issued))
                return false;
        return true;
    }
    return !s->blocking || bc_wait_for(o, &bc_rt.null, bc_rt.null.issued);
}

cudaError_t
bc_issue(struct CUstream_st *s, void *payload)
{
    cudaError_t e = bc_graph_implicit(s);

    if (e != cudaSuccess) {
        bc_op_free(payload);
        return e;
    }
    return s->capture ? bc_graph_capture(s, payload) : bc_queue(s, payload);
}

cudaError_t
bc_queue(struct CUstream_st *s, void *payload)
{
    bc_op *o = bc_op_of(payload);
    br_status st = {0};

    if (!s->tail)
        s->tail = &s->head;
    if (!null_rule(s, o)) {
        bc_op_free(payload);
        return cudaErrorMemoryAllocation;
    }
    if (!s->started &&
        br_thread_start(&s->thread, "cuda-stream", work, s, &st) != BR_OK) {
        bc_op_free(payload);
        return cudaErrorOperatingSystem;
    }
    s->started = true;
    o->seq = ++s->issued;
    o->next = NULL;
    *s->tail = o;
    s->tail = &o->next;
    pthread_cond_broadcast(&bc_rt.moved);
    return cudaSuccess;
}

/* ---- waiting ------------------------------------------------------------ */

/* Who waits lends a hand: a copy of 4 bytes takes as long as it takes, not two
 * changes of threads more. Host functions are called by the stream's thread. */
static cudaError_t call_host(void *payload);

cudaError_t
bc_wait_seq(struct CUstream_st *s, uint64_t seq)
{
    cudaError_t e;

    while (s->done < seq)
        if (ready(s) && s->head->run != call_host)
            run_first(s);
        else
            pthread_cond_wait(&bc_rt.moved, &bc_rt.lock.m);
    e = bc_rt.sticky;
    bc_flush_printf();
    return e;
}

cudaError_t
bc_stream_sync(cudaStream_t h)
{
    struct CUstream_st *s = bc_stream_of(h);
    cudaError_t e;

    if (!s)
        return cudaErrorInvalidResourceHandle;
    e = bc_graph_implicit(s);
    if (e != cudaSuccess)
        return e;
    if (s->capture)
        return bc_graph_spoil(s->capture, cudaErrorStreamCaptureUnsupported);
    /* The null stream is done when what it would wait for is. */
    for (struct CUstream_st *k = bc_rt.streams; k && s == &bc_rt.null;
         k = k->next)
        if (k->blocking)
            bc_wait_seq(k, k->issued);
    return bc_wait_seq(s, s->issued);
}

cudaError_t
bc_wait_all(void)
{
    for (struct CUstream_st *k = bc_rt.streams; k; k = k->next)
        bc_wait_seq(k, k->issued);
    return bc_wait_seq(&bc_rt.null, bc_rt.null.issued);
}

/* ---- streams ------------------------------------------------------------ */

static uint64_t made = 2; /* the legacy stream's number is 1, 2 is nobody's */

static struct CUstream_st *
stream_get(unsigned flags, int priority)
{
    struct CUstream_st *s = bc_rt.streams;

    while (s && (s->used || s->done != s->issued))
        s = s->next;
    if (!s) {
        s = br_try_calloc(1, sizeof *s);
        if (!s)
            return NULL;
        s->next = bc_rt.streams;
        bc_rt.streams = s;
    }
    s->used = true;
    s->id = ++made;
    s->flags = flags;
    s->blocking = !(flags & cudaStreamNonBlocking);
    s->priority = priority;
    return s;
}

struct CUstream_st *
bc_stream_of(cudaStream_t h)
{
    struct CUstream_st *s = bc_rt.streams;

    if (h == cudaStreamPerThread || (!h && (bc_rt.per_thread || bc_own_null))) {
        if (!my_stream || my_resets != bc_rt.resets)
            my_stream = stream_get(0, 0);
        my_resets = bc_rt.resets;
        return my_stream;
    }
    if (!h || h == cudaStreamLegacy)
        return &bc_rt.null;
    while (s && s != h)
        s = s->next;
    return s && s->used ? s : NULL;
}

cudaError_t
bc_stream_new(cudaStream_t *out, unsigned flags, int priority)
{
    if (!out || flags > cudaStreamNonBlocking)
        return cudaErrorInvalidValue;
    *out = stream_get(flags, BR_MAX(BR_MIN(priority, 0), -5));
    return *out ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t
bc_stream_end(cudaStream_t h)
{
    struct CUstream_st *s = bc_stream_of(h);

    if (!s || s == &bc_rt.null || h == cudaStreamPerThread)
        return cudaErrorInvalidResourceHandle;
    if (s->capture)
        bc_graph_drop(s);
    s->used = false; /* its work goes on */
    return cudaSuccess;
}

cudaError_t
bc_stream_query(cudaStream_t h)
{
    struct CUstream_st *s = bc_stream_of(h);
    cudaError_t e;

    if (!s)
        return cudaErrorInvalidResourceHandle;
    e = bc_graph_implicit(s);
    if (e != cudaSuccess)
        return e;
    if (s->capture)
        return bc_graph_spoil(s->capture, cudaErrorStreamCaptureUnsupported);
    if (bc_rt.sticky)
        return bc_rt.sticky;
    for (struct CUstream_st *k = bc_rt.streams; k && s == &bc_rt.null;
         k = k->next)
        if (k->blocking && k->done != k->issued)
            return cudaErrorNotReady;
    return s->done == s->issued ? cudaSuccess : cudaErrorNotReady;
}

/* ---- host functions ----------------------------------------------------- */

typedef struct host_call {
    cudaHostNodeParams host; /* its function, NULL: a callback */
    cudaStreamCallback_t callback;
    cudaStream_t s;
} host_call;

static cudaError_t
call_host(void *payload)
{
    const host_call *h = payload;
    cudaError_t e;

    if (h->host.fn) {
        h->host.fn(h->host.userData);
        return cudaSuccess;
    }
    bc_lock();
    e = bc_rt.sticky;
    bc_unlock();
    h->callback(h->s, e, h->host.userData);
    return cudaSuccess;
}

static cudaError_t
issue_host(host_call h)
{
    struct CUstream_st *s = bc_stream_of(h.s);
    host_call *p;

    if (!s)
        return cudaErrorInvalidResourceHandle;
    if (!h.host.fn && !h.callback)
        return cudaErrorInvalidValue;
    p = bc_op_new(sizeof h, call_host);
    if (!p)
        return cudaErrorMemoryAllocation;
    *p = h;
    bc_op_of(p)->always = h.callback != NULL;
    bc_op_of(p)->type = cudaGraphNodeTypeHost;
    return bc_issue(s, p);
}

void *
bc_host_op(cudaHostFn_t fn, void *user)
{
    host_call *p = bc_op_new(sizeof *p, call_host);

    if (p) {
        p->host = (cudaHostNodeParams){fn, user};
        bc_op_of(p)->type = cudaGraphNodeTypeHost;
    }
    return p;
}

const cudaHostNodeParams *
bc_host_params(const void *payload)
{
    const host_call *h = payload;
    const bc_op *o = (const void *)((const char *)payload - OP_BYTES);

    return o->run == call_host && h->host.fn ? &h->host : NULL;
}

cudaError_t
bc_host_fn(cudaStream_t s, cudaHostFn_t fn, void *user)
{
    return issue_host((host_call){.host = {fn, user}, .s = s});
}

cudaError_t
bc_callback(cudaStream_t s, cudaStreamCallback_t fn, void *user)
{
    return issue_host(
        (host_call){.callback = fn, .s = s, .host = {.userData = user}});
}

/* ---- events ------------------------------------------------------------- */

struct CUevent_st *
bc_event_of(cudaEvent_t h)
{
    struct CUevent_st *e = bc_rt.events;

    while (e && e != h)
        e = e->next;
    return e && e->used ? e : NULL;
}

cudaError_t
bc_event_new(cudaEvent_t *out, unsigned flags)
{
    struct CUevent_st *e = bc_rt.events;

    if (!out || flags > 7 || (flags & 6) == cudaEventInterprocess)
        return cudaErrorInvalidValue;
    while (e && (e->used || !bc_done(&e->at)))
        e = e->next;
    if (!e) {
        e = br_try_calloc(1, sizeof *e);
        if (!e)
            return cudaErrorMemoryAllocation;
        e->next = bc_rt.events;
        bc_rt.events = e;
    }
    e->used = true;
    e->recorded = false;
    e->graph = NULL;
    e->flags = flags;
    e->timing = !(flags & cudaEventDisableTiming);
    e->at = (bc_wait){0};
    *out = e;
    return cudaSuccess;
}

cudaError_t
bc_event_end(cudaEvent_t h)
{
    struct CUevent_st *e = bc_event_of(h);

    if (!e)
        return cudaErrorInvalidResourceHandle;
    e->used = false;
    return cudaSuccess;
}

typedef struct mark {
    struct CUevent_st *e;
    uint64_t record;
} mark;

static cudaError_t
do_mark(void *payload)
{
    const mark *m = payload;

    bc_lock();
    if (m->e->record == m->record)
        m->e->ns = br_now_ns();
    bc_unlock();
    return cudaSuccess;
}

cudaError_t
bc_event_record(cudaEvent_t h, cudaStream_t hs)
{
    struct CUevent_st *e = bc_event_of(h);
    struct CUstream_st *s = bc_stream_of(hs);
    cudaError_t code;
    mark *m;

    if (!e || !s)
        return cudaErrorInvalidResourceHandle;
    if (s->capture)
        return bc_graph_mark(s, e);
    m = bc_op_new(sizeof *m, do_mark);
    if (!m)
        return cudaErrorMemoryAllocation;
    m->e = e;
    m->record = ++e->record;
    bc_op_of(m)->always = true;
    code = bc_issue(s, m);
    if (code != cudaSuccess)
        return code;
    e->graph = NULL;
    e->recorded = true;
    e->at = (bc_wait){s, s->issued};
    return cudaSuccess;
}

static cudaError_t
do_nothing(void *payload)
{
    (void)payload;
    return cudaSuccess;
}

cudaError_t
bc_stream_wait_event(cudaStream_t hs, cudaEvent_t h)
{
    struct CUevent_st *e = bc_event_of(h);
    struct CUstream_st *s = bc_stream_of(hs);
    void *p;

    if (!e || !s)
        return cudaErrorInvalidResourceHandle;
    if (e->graph || s->capture)
        return bc_graph_join(s, e);
    if (!e->recorded)
        return cudaSuccess;
    p = bc_op_new(0, do_nothing);
    if (!p || !bc_wait_for(bc_op_of(p), e->at.s, e->at.seq)) {
        if (p)
            bc_op_free(p);
        return cudaErrorMemoryAllocation;
    }
    return bc_issue(s, p);
}

cudaError_t
bc_event_sync(cudaEvent_t h)
{
    struct CUevent_st *e = bc_event_of(h);

    if (!e)
        return cudaErrorInvalidResourceHandle;
    if (e->graph)
        return bc_graph_spoil(e->graph, cudaErrorCapturedEvent);
    return e->at.s ? bc_wait_seq(e->at.s, e->at.seq) : cudaSuccess;
}

cudaError_t
bc_event_query(cudaEvent_t h)
{
    struct CUevent_st *e = bc_event_of(h);

    if (!e)
        return cudaErrorInvalidResourceHandle;
    if (e->graph)
        return bc_graph_spoil(e->graph, cudaErrorCapturedEvent);
    if (bc_rt.sticky)
        return bc_rt.sticky;
    return bc_done(&e->at) ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t
bc_event_elapsed(float *ms, cudaEvent_t ha, cudaEvent_t hb)
{
    struct CUevent_st *a = bc_event_of(ha), *b = bc_event_of(hb);

    if (!a || !b || !a->timing || !b->timing || !a->recorded || !b->recorded)
        return cudaErrorInvalidResourceHandle;
    if (!ms)
        return cudaErrorInvalidValue;
    if (bc_rt.sticky)
        return bc_rt.sticky;
    if (!bc_done(&a->at) || !bc_done(&b->at))
        return cudaErrorNotReady;
    *ms = (float)((double)(b->ns - a->ns) / 1e6);
    return cudaSuccess;
}

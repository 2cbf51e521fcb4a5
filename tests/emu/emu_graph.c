/* emu_graph.c - what device the emulated driver has; streams, and graphs: launches with
 * their parameters, one after another, and loops, which go round until a kernel says that
 * it is over.
 *
 * All streams are one queue: what is given to any is done before what is given to
 * another after it. While something hangs, a stream that was given nothing since, and
 * whose part of the queue is done, is idle; a capture takes launches alone. What can
 * be launched of a graph takes GRAPH bytes of the device's memory.
 * SPDX-License-Identifier: Apache-2.0 */
#include "emu_core.h"

#include <stdio.h>
#include <unistd.h>

enum { UNSUPPORTED = 900, INVALIDATED = 901, IMPLICIT = 906, NOT_READY = 600 };

enum { GRAPH = 1 << 20 };
static size_t n_graphs; /* that can be launched */

struct noted {
    struct noted *next;
    void *fn;
    struct graph *body; /* of a loop, or NULL: a launch */
    uint32_t *on;       /* the loop's */
    int together;       /* all blocks at once */
    struct shape s;
    unsigned char params[];
};
struct graph {
    struct noted *first, **end;
    uint32_t on, first_on; /* of its loop, if it has one */
    int loops;
};

int
emu_note(struct graph *g, void *fn, const struct shape *s, void **params,
         int together)
{
    const size_t n = emu_size(fn);
    struct noted *k = calloc(1, sizeof *k + n);

    if (!n || !k)
        return free(k), 801;
    k->fn = fn;
    k->s = *s;
    k->together = together;
    memcpy(k->params, params[0], n);
    *g->end = k;
    g->end = &k->next;
    return 0;
}

int
emu_run_graph(struct graph *g)
{
    int rc = 0;

    g->on = g->first_on;
    for (struct noted *k = g->first; k && !rc; k = k->next)
        if (k->body)
            while (*k->on && !rc)
                rc = emu_run_graph(k->body);
        else
            rc = emu_launch_blocks(k->fn, &k->s, (void *[]){k->params},
                                   k->together);
    return rc;
}

/* A kernel's. */
void
cudaGraphSetConditional(unsigned long long handle, unsigned value)
{
    *(uint32_t *)(uintptr_t)handle = value;
}

/* ---- what streams are given ---------------------------------------------- */

/* Copies from pinned memory, and graphs: made as late as the driver may make them, so
 * that who changes that memory too early has the change copied, or read. */
enum { LATER = 256 };
static struct later {
    uint64_t to;
    const void *from;
    size_t n;
    struct graph *graph; /* or NULL: a copy */
} later[LATER];
static uint64_t n_late, n_made; /* since the library was opened */

/* The cooperative launch, or graph with a loop, that runs on a thread of its own. */
static struct cooperative {
    pthread_t thread;
    struct stream *in;
    struct shape s;
    void *fn, *param;
    struct graph *graph;
    int is_on, rc, over;
} coop;

static void *
run_cooperative(void *p)
{
    (void)p;
    emu_beside = 1;
    coop.rc = coop.graph ? emu_run_graph(coop.graph)
                         : emu_launch_together(coop.fn, &coop.s, &coop.param);
    __atomic_store_n(&coop.over, 1, __ATOMIC_RELEASE);
    return NULL;
}
static int
run_beside(struct stream *in, struct graph *g)
{
    int is_on;

    coop.in = in;
    coop.graph = g;
    __atomic_store_n(&coop.over, 0, __ATOMIC_RELEASE);
    is_on = pthread_create(&coop.thread, NULL, run_cooperative, NULL) == 0;
    __atomic_store_n(&coop.is_on, is_on, __ATOMIC_RELEASE);
    return is_on ? 0 : 2;
}
int
emu_launch_beside(struct stream *to, void *fn, const struct shape *s,
                  void **params)
{
    coop.fn = fn;
    coop.s = *s;
    coop.param = malloc(emu_size(fn));
    if (!coop.param)
        return 2;
    memcpy(coop.param, params[0], emu_size(fn));
    return run_beside(to, NULL);
}
/* Whoever asks need not have the lock. */
static int
runs_beside(void)
{
    return __atomic_load_n(&coop.is_on, __ATOMIC_ACQUIRE) &&
           !__atomic_load_n(&coop.over, __ATOMIC_ACQUIRE);
}
int
emu_rc(void)
{
    return emu_lost ? emu_lost : coop.rc;
}
void
emu_begin_anew(void)
{
    emu_lost = coop.rc = 0;
}
static void
would_wait(void)
{
    if (!emu_hung())
        return;
    fprintf(stderr, "emulated device: this call would wait for ever\n");
    abort();
}

/* What is asked of the device after it, waits for it, unless it hangs. */
static void
settle(void)
{
    while (runs_beside()) {
        if (emu_hung())
            return;
        usleep(20);
    }
    if (!coop.is_on)
        return;
    pthread_join(coop.thread, NULL);
    free(coop.param);
    coop.param = NULL;
    __atomic_store_n(&coop.is_on, 0, __ATOMIC_RELEASE);
}

/* As much of it as a device does that may hang. */
static void
make_some(uint64_t n)
{
    if (emu_hung())
        return;
    settle();
    while (n_made < n && !emu_hung()) {
        const struct later *l = &later[n_made % LATER];

        if (!l->graph)
            memcpy((void *)(uintptr_t)l->to, l->from, l->n);
        else if (!coop.rc)
            coop.rc = emu_run_graph(l->graph);
        n_made += !emu_hung();
    }
}
static void
make_until(uint64_t n)
{
    would_wait();
    make_some(n);
    would_wait();
}
void
emu_make_all(void)
{
    make_until(n_late);
}
int
emu_into(struct stream *s, int behind_all, int *rc)
{
    *rc = emu_no_context();
    if (!*rc && s->captured) {
        s->broken = 1;
        *rc = UNSUPPORTED;
    }
    if (*rc || emu_idle())
        return !*rc;
    if (behind_all || n_late - n_made == LATER)
        make_some(n_late);
    s->stuck = emu_hung();
    return !s->stuck;
}
static int
make_later(struct stream *s, struct later what)
{
    later[n_late++ % LATER] = what;
    s->last = n_late;
    return 0;
}
int
emu_copy_later(struct stream *s, uint64_t to, const void *from, size_t n)
{
    return make_later(s, (struct later){to, from, n, NULL});
}
static int
is_busy(const struct stream *s)
{
    return s->stuck || s->last > n_made || (runs_beside() && coop.in == s);
}

/* ---- captures, graphs --------------------------------------------------- */

static struct graph *
new_graph(void)
{
    struct graph *g = calloc(1, sizeof *g);

    if (g)
        g->end = &g->first;
    return g;
}
static int
begin_capture(struct stream *s, struct graph *g, int mode)
{
    ONE_AT_A_TIME;
    if (s->captured || !g || mode != 1 /* of the thread */)
        return !g ? 2 : 401;
    s->captured = g;
    s->broken = 0;
    s->by = pthread_self();
    return 0;
}
/* Long enough for what other threads ask meanwhile. */
E(cuStreamBeginCapture_v2)(struct stream *s, int m)
{
    const int rc = s->captured ? 401 : begin_capture(s, new_graph(), m);

    usleep(1000);
    return rc;
}
E(cuStreamBeginCaptureToGraph)
(struct stream *s, void *g, void *const *after, const void *edges, size_t n,
 int m)
{
    return IGNORE(after, edges), n ? 801 : begin_capture(s, g, m);
}
E(cuStreamEndCapture)(struct stream *s, void **g)
{
    ONE_AT_A_TIME;
    const int broken = s->broken || !s->captured;

    *g = broken ? NULL : s->captured;
    s->captured = NULL;
    return broken ? INVALIDATED : 0;
}
E(cuGraphGetNodes)(struct graph *g, void **nodes, size_t *n)
{
    size_t i = 0;

    for (struct noted *k = g->first; k && i < *n; k = k->next)
        nodes[i++] = k;
    return *n = i, 0;
}
E(cuGraphConditionalHandleCreate)
(uint64_t *h, struct graph *g, void *ctx, unsigned first, unsigned flags)
{
    IGNORE(ctx);
    if (flags != 1 || emu_idle())
        return 801;
    g->first_on = first;
    *h = (uint64_t)(uintptr_t)&g->on;
    return 0;
}
struct node_params { /* of a loop, as cuda.h has it */
    int type, reserved[3];
    uint64_t handle;
    int kind;
    unsigned size;
    void **body;
};
/* After all that is there. */
E(cuGraphAddNode_v2)
(void **node, struct graph *g, void *const *after, const void *edges, size_t n,
 struct node_params *p)
{
    struct noted *k = calloc(1, sizeof *k);
    struct graph *body = new_graph();

    IGNORE(edges);
    if (!k || !body || p->type != 13 || p->kind != 1 || p->size != 1 ||
        p->handle != (uint64_t)(uintptr_t)&g->on || n != 1 ||
        after[0] != g->first)
        return free(k), free(body), 801;
    k->body = body;
    k->on = &g->on;
    *g->end = k;
    g->end = &k->next;
    g->loops = 1;
    *node = k;
    p->body = (void **)&k->body;
    return 0;
}
E(cuGraphInstantiateWithFlags)(void **e, void *g, unsigned long long f)
{
    ONE_AT_A_TIME;
    n_graphs++;
    return IGNORE(f), *e = g, 0;
}
static unsigned n_launched;
/* For tests: calls that launched a graph. */
unsigned
emu_graph_launches(void)
{
    ONE_AT_A_TIME;
    return n_launched;
}
/* BR_EMU_NO_LOOP: there is no memory for the launch of a graph with a loop. */
E(cuGraphLaunch)(struct graph *g, struct stream *s)
{
    ONE_AT_A_TIME;
    int rc;

    if (!s->captured && !emu_idle())
        emu_look_for_loss(g->first ? g->first->fn : "");
    if (!emu_into(s, g->loops, &rc) || emu_idle() || emu_lost)
        return rc ? rc : emu_lost;
    n_launched++;
    if (!g->loops)
        return coop.rc ? coop.rc : make_later(s, (struct later){.graph = g});
    return getenv("BR_EMU_NO_LOOP") ? 2 : run_beside(s, g);
}
static void
free_graph(struct graph *g)
{
    for (struct noted *k = g->first, *next; k; k = next) {
        next = k->next;
        if (k->body)
            free_graph(k->body);
        free(k);
    }
    free(g);
}
E(cuGraphExecDestroy)(struct graph *g)
{
    ONE_AT_A_TIME;
    emu_make_all();
    n_graphs--;
    return free_graph(g), 0;
}
E(cuGraphDestroy)(void *g)
{
    return IGNORE(g), 0; /* the same memory as what is made of it */
}

size_t
emu_graph_bytes(void)
{
    return n_graphs * GRAPH;
}

/* ---- streams, events ----------------------------------------------------- */

/* What the context's legacy stream is asked for waits for all streams but those
 * apart: beside the capture of one that is not, both fail; and so do, in a thread that
 * captures, such calls and those for memory. */
enum { STREAMS = 64 };
static struct stream streams[STREAMS];
static int n_streams;

int
emu_barred(int legacy)
{
    int rc = emu_no_context();

    for (int i = 0; i < n_streams; i++) {
        struct stream *s = &streams[i];
        const int mine = pthread_equal(s->by, pthread_self());

        if (!s->captured || !(mine || (legacy && !s->apart)))
            continue;
        s->broken = 1;
        rc = mine ? UNSUPPORTED : IMPLICIT;
    }
    return rc;
}
E(cuStreamCreate)(void **s, unsigned f)
{
    ONE_AT_A_TIME;
    int i = 0;

    while (i < n_streams && streams[i].is_there)
        i++;
    if (i == STREAMS)
        return 2;
    n_streams += i == n_streams;
    streams[i] = (struct stream){.is_there = 1, .apart = f == 1};
    return *s = &streams[i], 0;
}
E(cuStreamDestroy_v2)(struct stream *s)
{
    ONE_AT_A_TIME;
    s->is_there = 0;
    return s->captured ? UNSUPPORTED : 0;
}
static int
query(struct stream *s)
{
    ONE_AT_A_TIME;
    if (s->captured)
        return s->broken = 1, UNSUPPORTED;
    if (!emu_hung() && runs_beside())
        return NOT_READY;
    make_some(n_late);
    return emu_hung() && is_busy(s) ? NOT_READY : emu_rc();
}
E(cuStreamQuery)(struct stream *s)
{
    const int rc = !emu_hung() && runs_beside() ? NOT_READY : query(s);

    if (rc == NOT_READY)
        usleep(100); /* the processor is for the kernel */
    return rc;
}
E(cuStreamSynchronize)(struct stream *s)
{
    ONE_AT_A_TIME;
    if (s->captured)
        return s->broken = 1, UNSUPPORTED;
    emu_make_all();
    return emu_rc();
}
E(cuEventCreate)(void **e, unsigned f)
{
    return IGNORE(f), *e = calloc(1, sizeof n_late), *e ? 0 : 2;
}
E(cuEventDestroy_v2)(void *e)
{
    return free(e), 0;
}
E(cuEventRecord)(void *e, struct stream *s)
{
    ONE_AT_A_TIME;
    int rc;

    (void)emu_into(s, 0, &rc);
    if (!rc)
        *(uint64_t *)e = n_late;
    return rc;
}
E(cuEventQuery)(void *e)
{
    ONE_AT_A_TIME;
    make_some(*(uint64_t *)e);
    return emu_hung() ? NOT_READY : emu_rc();
}
E(cuEventSynchronize)(void *e)
{
    ONE_AT_A_TIME;
    return make_until(*(uint64_t *)e), 0;
}
E(cuEventElapsedTime)(float *ms, void *a, void *b)
{
    return IGNORE(a, b), *ms = 0, 0;
}

/* ---- what device it is ---- */
uint64_t
emu_from_env(const char *name, uint64_t otherwise)
{
    const char *s = getenv(name);

    return s ? strtoull(s, NULL, 10) : otherwise;
}

int
emu_major(void)
{
    return (int)emu_from_env("BR_EMU_MAJOR", 9); /* sm_90 */
}
int
emu_n_sm(void)
{
    return (int)emu_from_env("BR_EMU_SM", 7);
}
E(cuDeviceGetAttribute)(int *v, int a, int d)
{
    IGNORE(d);
    *v = a == 75   ? emu_major()
         : a == 76 ? 0
         : a == 16 ? emu_n_sm()
         : a == 97 ? EMU_SHARED
                   : 0;
    return 0;
}

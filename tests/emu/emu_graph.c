/* emu_graph.c - graphs of the emulated driver: launches with their parameters, one
 * after another, and loops, which go round until a kernel says that it is over.
 *
 * What can be launched of one takes GRAPH bytes of the device's memory.
 * SPDX-License-Identifier: Apache-2.0 */
#include "emu_core.h"

#include <unistd.h>

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
    enum { INVALIDATED = 901 };
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
/* BR_EMU_NO_LOOP: there is no memory for the launch of a graph with a loop. */
E(cuGraphLaunch)(struct graph *g, void *s)
{
    ONE_AT_A_TIME;
    IGNORE(s);
    if (emu_no_context())
        return emu_no_context();
    if (emu_idle())
        return 0;
    emu_look_for_loss(g->first ? g->first->fn : "");
    if (emu_lost || emu_hung())
        return emu_lost;
    if (!g->loops)
        return emu_later(g);
    emu_make_all();
    return getenv("BR_EMU_NO_LOOP") ? 2 : emu_run_beside(g);
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

/* cost_work.c - bytes and flops of every task, from its op and its buffers.
 *
 * What a program file says in est_bytes and est_flops may only add to that: a
 * file with wrong hints cannot get below the floor. Weights count as the part
 * that the op reads (its footprint), an embedding as the rows it gathers.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "mega/cost_internal.h"
#include "mega/step.h"

static double
bytes_of(const br_mega_buffer *b, double elems)
{
    return elems * br_mega_dtype_bits(b->dtype) / 8.0;
}

static double
numel(const br_mega_buffer *b)
{
    int64_t n = br_mega_numel(b);

    return n > 0 ? (double)n : 0;
}

static double
read_elems(const br_mega_prog *p, const br_mega_task *t, uint32_t k,
           const br_mega_buffer *b)
{
    br_mega_rect r;

    if (t->op == BR_MOP_EMBED && k == 1 && t->n_out == 1)
        return numel(&p->buffers[t->out[0]]);
    if (br_mega_footprint(p, t, k, false, &r))
        return (double)(r.r1 - r.r0) * (double)(r.c1 - r.c0);
    /* KV_APPEND names its cache and does not read it. */
    return t->op == BR_MOP_KV_APPEND && k == 1 ? 0 : numel(b);
}

static double
own_flops(const br_mega_prog *p, const br_mega_task *t)
{
    double k, n, rows = 1;

    switch (t->op) {
    case BR_MOP_GEMV_TILE:
    case BR_MOP_GEMM_TILE:
        k = (double)br_mega_get_i_or(t, BR_MP_K, 0);
        n = (double)br_mega_get_i_or(t, BR_MP_N_tile, 0);
        if (t->op == BR_MOP_GEMM_TILE)
            rows = (double)br_mega_get_i_or(t, BR_MP_M_tile, 1);
        return k > 0 && n > 0 && rows > 0 ? 2 * k * n * rows : 0;
    case BR_MOP_ATTENTION_TILE:
        k = (double)br_mega_get_i_or(t, BR_MP_kv_len, 0);
        n = t->n_in ? numel(&p->buffers[t->in[0]]) : 0;
        return k > 0 ? 4 * k * n : 0;
    default: return 0;
    }
}

static void
work_of(const br_mega_prog *p, const br_mega_task *t, br_cost_work *w)
{
    double hint = (double)BR_MAX(t->est_bytes, 0);
    const br_ir_node *node = br_step_node(p, t);
    int64_t at = br_mega_get_i_or(t, BR_MP_n_off, -1);
    int64_t n = br_mega_get_i_or(t, BR_MP_N_tile, 0);
    br_step_cut cut;

    *w = (br_cost_work){0};
    /* The program may be none that the check accepts. */
    if (node && br_step_cut_of(node, &cut) && at >= 0 && n > 0 &&
        at < cut.cols && n <= cut.cols - at) {
        br_step_work s = br_step_work_of(p->graph, node, at, at + n, p->rows);

        w->weight = s.weight;
        w->state = s.state;
        w->local = s.local;
        w->flops = s.flops;
        return;
    }
    for (uint32_t k = 0; k < t->n_in; k++) {
        const br_mega_buffer *b = &p->buffers[t->in[k]];
        double bytes = bytes_of(b, read_elems(p, t, k, b));

        if (b->kind == BR_MBK_WEIGHT || b->kind == BR_MBK_CONST)
            w->weight += bytes;
        else if (b->kind == BR_MBK_KV_CACHE)
            w->state += bytes;
        else
            w->local += bytes;
    }
    for (uint32_t k = 0; k < t->n_out; k++) {
        const br_mega_buffer *b = &p->buffers[t->out[k]];
        br_mega_rect r;
        double bytes = 0;

        if (br_mega_footprint(p, t, k, true, &r))
            bytes = bytes_of(b, (double)(r.r1 - r.r0) * (double)(r.c1 - r.c0));
        if (b->kind == BR_MBK_KV_CACHE)
            w->state += bytes;
        else
            w->local += bytes;
    }
    if (hint > w->weight + w->state)
        w->state = hint - w->weight;
    w->flops = (double)BR_MAX(t->est_flops, 0);
    w->flops = BR_MAX(w->flops, own_flops(p, t));
}

/* ---- what may be fetched ahead ------------------------------------------- */

/* A worker fetches the weights of its queue in order into a ring of `window`
 * bytes. A byte may come once there is room for it: once the task that holds
 * the byte one window before it has ended; and not before the task is within
 * `depth` places of the one that is due.
 *
 *   bytes of the queue  |  task 4   |   task 5    | task 6 |
 *                            ^-- window --^ this byte of 5 waits for 4's end
 *
 * So the weights of a task fall into pieces, each waiting for one end. Of a
 * task larger than the window only a window's worth is fetched ahead. */
typedef struct ring {
    br_cost_sim *s;
    uint32_t n;        /* pieces so far, all workers */
    const uint32_t *q; /* of the worker */
    double *filled;    /* place -> bytes up to and with it */
} ring;

static void
add_piece(ring *r, uint32_t task, int64_t after, double bytes)
{
    if (bytes <= 0)
        return;
    r->s->last_piece[task] = r->n;
    r->s->pieces[r->n++] =
        (br_cost_piece){.task = task, .after = after, .bytes = bytes};
}

/* Pieces of the task at place i; *full is the first place whose bytes are
 * still in the ring when the next byte comes. */
static void
cut_task(ring *r, uint32_t i, uint32_t *full)
{
    br_cost_work *w = &r->s->work[r->q[i]];
    double from = i ? r->filled[i - 1] : 0, to;
    int64_t near = (int64_t)i - r->s->depth - 1;

    to = from + (r->s->depth > 0 ? BR_MIN(w->weight, r->s->window) : 0);
    w->late = w->weight - (to - from) + w->state;
    r->filled[i] = to;
    while (from < to) {
        double room;

        /* Bytes from `from` on fit while place *full has not ended. */
        while (*full < i && r->filled[*full] + r->s->window <= from)
            ++*full;
        room = *full < i ? r->filled[*full] + r->s->window : to;
        add_piece(r, r->q[i], BR_MAX((int64_t)*full - 1, near),
                  BR_MIN(room, to) - from);
        from = BR_MIN(room, to);
    }
}

br_code
br_cost_work_of(br_cost_sim *s)
{
    size_t n = (size_t)s->n_tasks + 1;
    ring r = {.s = s};

    s->work = br_arena_new(s->a, br_cost_work, n);
    s->pieces = br_arena_new(s->a, br_cost_piece, 2 * n);
    s->piece_off = br_arena_new(s->a, uint32_t, (size_t)s->n_workers + 1);
    s->last_piece = br_arena_new(s->a, uint32_t, n);
    r.filled = br_arena_new(s->a, double, n);
    if (!s->work || !s->pieces || !s->piece_off || !s->last_piece || !r.filled)
        return br_fail(s->st, BR_E_OOM, "cost: out of memory");
    for (uint32_t i = 0; i < s->n_tasks; i++) {
        work_of(s->p, &s->p->tasks[i], &s->work[i]);
        s->last_piece[i] = BR_COST_NONE;
    }
    for (uint32_t w = 0; w < s->n_workers; w++) {
        uint32_t full = 0, len = s->queue_off[w + 1] - s->queue_off[w];

        r.q = s->queue + s->queue_off[w];
        for (uint32_t i = 0; i < len; i++)
            cut_task(&r, i, &full);
        s->piece_off[w + 1] = r.n;
    }
    return BR_OK;
}

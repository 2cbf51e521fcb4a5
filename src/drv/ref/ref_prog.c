/* ref_prog.c - runs a task program: its tiles, in any order that counters
 * allow.
 *
 *   counter reaches its producers -> each task that waits for it needs one
 *   less -> ready -> drawn -> run -> its counter + 1
 *
 * The sound check has proven that every such order ends, and that the page
 * table lets buffers share memory. A page of n bytes is n bytes for each row.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/rng.h"
#include "drv/ref/ref_int.h"
#include "mega/pages.h"

#include <string.h>

typedef struct ref_order {
    br_mega_graph graph;
    ref_tile *tile;  /* of each task */
    uint32_t *waits; /* counters it waits for, */
    uint32_t *need;  /* and how many of them are not there yet */
    uint32_t *count; /* of each counter */
    uint32_t *ready; /* tasks */
    uint32_t n_ready;
    br_rng rng;
} ref_order;

br_code
ref_place_pages(br_ref *r, br_status *st)
{
    const br_mega_prog *p = r->prog;
    int64_t *at = ref_get(r, p->n_buffers + 1, sizeof *at), total;
    float *base;

    if (!at)
        return ref_no_memory(st);
    BR_TRY(br_mega_pages_offsets(p, 0, at, &total, st));
    base = ref_get(r, (size_t)total + 1, r->c.max_rows);
    if (!base)
        return ref_no_memory(st);
    for (uint32_t v = 0; v < r->v.g->n_values; v++)
        if (at[v] >= 0)
            r->v.at[v].p = base + (size_t)at[v] / sizeof(float) * r->c.max_rows;
    return BR_OK;
}

static br_code
make_tiles(br_ref *r, br_status *st)
{
    const br_mega_prog *p = r->prog;

    for (size_t t = 0; t < p->n_tasks; t++) {
        const br_mega_task *task = &p->tasks[t];
        int64_t at = br_mega_get_i_or(task, BR_MP_n_off, 0);

        if (task->op != BR_MOP_NOP && !br_mega_is_step(task->op))
            return br_fail(st, BR_E_UNSUPPORTED,
                           "tasks[%zu]: %s is no tile of the graph", t,
                           br_mega_op_name(task->op));
        r->order->tile[t] =
            (ref_tile){br_step_node(p, task), at,
                       at + br_mega_get_i_or(task, BR_MP_N_tile, 0)};
    }
    return BR_OK;
}

br_code
ref_prepare_program(br_ref *r, br_status *st)
{
    const br_mega_prog *p = r->prog;
    ref_order *o = r->order = ref_get(r, 1, sizeof *o);

    if (!o)
        return ref_no_memory(st);
    BR_TRY(br_mega_graph_build(&o->graph, p, &r->arena, st));
    o->tile = ref_get(r, p->n_tasks + 1, sizeof *o->tile);
    o->waits = ref_get(r, p->n_tasks + 1, sizeof *o->waits);
    o->need = ref_get(r, p->n_tasks + 1, sizeof *o->need);
    o->count = ref_get(r, p->n_counters + 1, sizeof *o->count);
    o->ready = ref_get(r, p->n_tasks + 1, sizeof *o->ready);
    if (!o->tile || !o->waits || !o->need || !o->count || !o->ready)
        return ref_no_memory(st);
    for (uint32_t i = 0; i < o->graph.wait_off[p->n_counters]; i++)
        o->waits[o->graph.waiter[i]]++;
    br_rng_init(&o->rng, r->c.order, 0);
    return make_tiles(r, st);
}

/* One more of a counter's producers is through. */
static void
count_up(ref_order *o, int64_t counter)
{
    const br_mega_graph *g = &o->graph;

    if (++o->count[counter] < g->prod_off[counter + 1] - g->prod_off[counter])
        return;
    for (uint32_t i = g->wait_off[counter]; i < g->wait_off[counter + 1]; i++)
        if (--o->need[g->waiter[i]] == 0)
            o->ready[o->n_ready++] = g->waiter[i];
}

static void
run_task(br_ref *r, br_state *s, const br_step *step, uint32_t t)
{
    if (r->order->tile[t].n)
        ref_run(r, s, step, &r->order->tile[t]);
}

void
ref_run_program(br_ref *r, br_state *s, const br_step *step)
{
    const br_mega_prog *p = r->prog;
    ref_order *o = r->order;
    uint32_t ran = 0;

    if (r->c.order == 0) { /* the list is topological, or it was reordered */
        for (uint32_t i = 0; i < p->n_tasks; i++)
            run_task(r, s, step, o->graph.topo[i]);
        return;
    }
    memcpy(o->need, o->waits, p->n_tasks * sizeof *o->need);
    memset(o->count, 0, p->n_counters * sizeof *o->count);
    o->n_ready = 0;
    for (uint32_t t = 0; t < p->n_tasks; t++)
        if (o->need[t] == 0)
            o->ready[o->n_ready++] = t;
    for (; o->n_ready; ran++) {
        uint32_t i = br_rng_below(&o->rng, o->n_ready), t = o->ready[i];

        o->ready[i] = o->ready[--o->n_ready];
        run_task(r, s, step, t);
        count_up(o, p->tasks[t].out_counter);
    }
    br_check(ran == p->n_tasks && "a checked program ends");
}

/* ---- the executor (drv.h) ----------------------------------------------- */

typedef struct ref_exec {
    br_exec exec;
    uint32_t n;
    br_ref *ref[]; /* of each program */
} ref_exec;

static void
close_exec(br_exec *x)
{
    ref_exec *e = (ref_exec *)x;

    for (uint32_t i = 0; e && i < e->n; i++)
        br_ref_free(e->ref[i]);
    br_free(e);
}

static br_code
open_exec(br_exec **out, const br_model *m, const br_exec_config *c,
          br_status *st)
{
    ref_exec *e = br_try_calloc(1, sizeof *e + c->n_programs * sizeof *e->ref);
    br_code code = e ? BR_OK : ref_no_memory(st);

    *out = NULL;
    for (uint32_t i = 0; i < c->n_programs && code == BR_OK; i++) {
        const br_mega_prog *p = c->programs[i];
        br_ref_config rc = {c->quantised ? BR_REF_QUANTISED : BR_REF_F32,
                            p->rows, p, 0};

        e->exec.ops = &br_ref_exec;
        e->n = i + 1;
        code = br_ref_prepare(&e->ref[i], m, p->graph, &rc, st);
    }
    if (code == BR_OK)
        *out = &e->exec;
    else
        close_exec(e ? &e->exec : NULL);
    return code;
}

static br_state *
state_of(const br_exec_state *s)
{
    union {
        const br_exec_state *from;
        br_state *to;
    } cast = {s};

    return cast.to;
}

static br_code
step_exec(br_exec *x, uint32_t i, br_exec_state *s, const br_step *step,
          float *logits, br_status *st)
{
    ref_exec *e = (ref_exec *)x;

    br_assert(i < e->n && "one of the programs");
    return br_ref_step(e->ref[i], state_of(s), step, logits, st);
}

static br_code
new_state(br_exec *x, br_exec_state **out, uint32_t n_slots,
          const uint32_t *n_pages, br_status *st)
{
    ref_exec *e = (ref_exec *)x;
    br_state *s = NULL;
    br_code code =
        br_state_new(&s, e->ref[0]->v.g, BR_Q_F32, n_slots, n_pages, st);

    *out = (br_exec_state *)s;
    return code;
}

static void
free_state(br_exec *x, br_exec_state *s)
{
    (void)x;
    br_state_free(state_of(s));
}

static void
reset_slot(br_exec *x, br_exec_state *s, uint32_t slot)
{
    (void)x;
    br_slot_reset(state_of(s), slot);
}

static size_t
slot_bytes(const br_exec *x, const br_exec_state *s)
{
    (void)x;
    return br_slot_bytes(state_of(s));
}

static void
save_slot(br_exec *x, const br_exec_state *s, uint32_t slot, void *out)
{
    (void)x;
    br_slot_save(state_of(s), slot, out);
}

static void
restore_slot(br_exec *x, br_exec_state *s, uint32_t slot, const void *from)
{
    (void)x;
    br_slot_restore(state_of(s), slot, from);
}

const br_exec_ops br_ref_exec = {
    .name = "ref",
    .open = open_exec,
    .close = close_exec,
    .step = step_exec,
    .state_new = new_state,
    .state_free = free_state,
    .slot_reset = reset_slot,
    .slot_bytes = slot_bytes,
    .slot_save = save_slot,
    .slot_restore = restore_slot,
};

/* ref_prog.c - runs a task program: its tiles, in any order that counters
 * allow (mega/walk.h).
 *
 * The sound check has proven that every such order ends, and that the page
 * table lets buffers share memory. A page of n bytes is n bytes for each row.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/ref/ref_int.h"
#include "mega/pages.h"

#include <string.h>

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
        r->tile[t] = (ref_tile){br_step_node(p, task), at,
                                at + br_mega_get_i_or(task, BR_MP_N_tile, 0)};
    }
    return BR_OK;
}

br_code
ref_prepare_program(br_ref *r, br_status *st)
{
    r->tile = ref_get(r, r->prog->n_tasks + 1, sizeof *r->tile);
    if (!r->tile)
        return ref_no_memory(st);
    BR_TRY(br_mega_walk_new(&r->walk, r->prog, st));
    r->runner = br_mega_walk_runner(r->walk);
    return make_tiles(r, st);
}

static br_code
fire(void *ctx, uint32_t worker, uint32_t task, br_status *st)
{
    const ref_round *x = ctx;

    (void)st;
    if (x->r->tile[task].n)
        ref_run(x, &x->r->worker[worker], &x->r->tile[task]);
    return BR_OK;
}

br_code
ref_run_program(ref_round *x, br_status *st)
{
    br_ref *r = x->r;

    if (r->c.order)
        br_mega_walk_by(r->walk, BR_MEGA_ORDER_RANDOM,
                        r->c.order + r->n_steps++);
    return r->runner->run(r->runner, fire, x, st);
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
        br_ref_config rc = {.act = c->quantised ? BR_REF_QUANTISED : BR_REF_F32,
                            .program = p};

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

/* ref.c - runs a graph node by node. Where its values live: drv/values.h;
 * matrices are dequantised row by row.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/ref/ref_int.h"

#include "base/thread.h"
#include "model/qint.h"

#include <string.h>

/* ---- preparing ---------------------------------------------------------- */

void *
ref_get(br_ref *r, size_t n, size_t size)
{
    return br_arena_zero(&r->arena, n, size);
}

br_code
ref_no_memory(br_status *st)
{
    return br_fail(st, BR_E_OOM, "reference tier: out of memory");
}

static br_code
get_scratch(br_ref *r, ref_worker *w, br_status *st)
{
    size_t n = (size_t)r->v.widest, apart = (size_t)r->v.apart;
    ref_scratch *s = &w->scratch;
    bool ok;

    s->row = ref_get(r, n, sizeof(float));
    s->att = ref_get(r, 256, sizeof(float));
    ok = s->row && s->att;
    for (size_t i = 0; i < BR_COUNT(s->wide); i++)
        ok = (s->wide[i] = ref_get(r, n, sizeof(float))) && ok;
    if (r->c.act == BR_REF_QUANTISED) {
        size_t k = 256;

        for (uint32_t v = 0; v < r->v.g->n_values; v++)
            if (r->v.at[v].t)
                k = BR_MAX(k, (size_t)r->v.at[v].t->dim[0]);
        s->blocks = ref_get(r, k / 32 + 1, sizeof *s->blocks);
        s->xq = ref_get(r, k * r->c.max_rows, 1);
        s->xd = ref_get(r, (k / 32 + 1) * r->c.max_rows, sizeof(float));
        ok = ok && s->blocks && s->xq && s->xd;
    }
    for (int i = 0; i < BR_IR_MAX_BINDINGS; i++)
        ok =
            (w->gather[i] = ref_get(r, apart * r->c.max_rows, sizeof(float))) &&
            ok;
    return ok ? BR_OK : ref_no_memory(st);
}

static br_code
check_ops(const br_ir *g, br_status *st)
{
    for (uint32_t i = 0; i < g->n_nodes; i++)
        switch ((br_ir_op)g->nodes[i].op) {
        case BR_IR_SAMPLE:
        case BR_IR_STREAM_OUT:
        case BR_IR_LOAD_REQUEST_STATE:
        case BR_IR_STORE_REQUEST_STATE:
        case BR_IR_VERIFY_K:
            return br_fail(st, BR_E_UNSUPPORTED,
                           "nodes[%u]: the reference tier has no %s", i,
                           br_ir_opinfo_of(g->nodes[i].op)->name);
        default: break;
        }
    return BR_OK;
}

static br_code
prepare(br_ref *r, const br_model *m, const br_ir *g, br_status *st)
{
    br_values_config c = {.max_rows = r->c.max_rows, .apart = r->prog};

    BR_TRY(check_ops(g, st));
    BR_TRY(br_values_bind(&r->v, &r->arena, m, g, st));
    if (r->prog)
        BR_TRY(ref_place_pages(r, st));
    BR_TRY(br_values_place(&r->v, &r->arena, &c, st));
    r->worker = ref_get(r, r->c.workers, sizeof *r->worker);
    if (!r->worker)
        return ref_no_memory(st);
    for (uint32_t i = 0; i < r->c.workers; i++)
        BR_TRY(get_scratch(r, &r->worker[i], st));
    return r->prog ? ref_prepare_program(r, st) : BR_OK;
}

br_code
br_ref_prepare(br_ref **out, const br_model *m, const br_ir *g,
               const br_ref_config *c, br_status *st)
{
    br_ref *r = br_try_calloc(1, sizeof *r);
    br_code code;

    *out = NULL;
    if (!r)
        return ref_no_memory(st);
    br_arena_init(&r->arena, (size_t)c->max_bytes);
    r->c = *c;
    r->c.workers = BR_MAX(c->workers, 1u);
    r->prog = c->program;
    if (r->prog)
        r->c.max_rows = r->prog->rows;
    br_assert(r->c.max_rows > 0 && (!r->prog || r->prog->graph == g));
    code = prepare(r, m, g, st);
    if (code != BR_OK) {
        br_ref_free(r);
        return code;
    }
    *out = r;
    return BR_OK;
}

void
br_ref_free(br_ref *r)
{
    if (!r)
        return;
    br_values_fini(&r->v);
    br_mega_walk_free(r->walk);
    br_arena_fini(&r->arena);
    br_free(r);
}

void
br_ref_watch(br_ref *r, const br_watch *w)
{
    r->watch = w ? *w : (br_watch){0};
}

void
br_ref_run_by(br_ref *r, br_mega_runner *runner)
{
    br_assert(r->prog && runner->workers <= r->c.workers && "as prepared");
    r->runner = runner;
}

const float *
br_ref_hidden(const br_ref *r)
{
    return br_values_hidden(&r->v);
}

int64_t
br_ref_n_vocab(const br_ref *r)
{
    return r->v.at[r->v.logits].cols;
}

/* ---- running ------------------------------------------------------------ */

/* Columns that stand apart, into or out of the dense copy: runs that hold the
 * columns s. */
static void
move_columns(const br_ref *r, const br_ir_bind *b, float *dense, size_t rows,
             bool in, br_step_span s)
{
    const br_value_mem *v = &r->v.at[b->value];
    size_t cols = (size_t)b->width * b->count;

    for (size_t t = 0; t < rows; t++)
        for (uint32_t k = (uint32_t)(s.from / b->width);
             k < (s.to + b->width - 1) / b->width; k++) {
            float *far =
                v->p + t * (size_t)v->cols + b->off + (size_t)k * b->stride;
            float *near = dense + t * cols + (size_t)k * b->width;

            memcpy(in ? near : far, in ? far : near, b->width * sizeof(float));
        }
}

static void
make_view(const br_ref *r, const br_ir_bind *b, float *gather, ref_view *out)
{
    const br_ir_value *x;
    const br_value_mem *v;

    *out = (ref_view){0};
    if (b->value == BR_IR_NONE)
        return;
    x = &r->v.g->values[b->value];
    v = &r->v.at[b->value];
    out->v = x;
    out->cols = (int64_t)b->width * b->count;
    out->t = v->t;
    out->f = v->p;
    if (x->kind == BR_IK_STATE) {
        out->place = &r->v.plan.place[b->value];
    } else if (x->kind != BR_IK_MODEL) {
        out->stride = (size_t)(br_bind_together(b) ? v->cols : out->cols);
        out->f = br_bind_together(b) ? (v->p ? v->p + b->off : NULL) : gather;
    } else if (x->rank == 1) {
        out->cols = x->dim[0];
    }
}

void
ref_run(const ref_round *x, ref_worker *w, const ref_tile *tile)
{
    const br_ref *r = x->r;
    const br_step *step = x->step;
    const br_ir_node *n = tile->n;
    ref_call c = {.n = n,
                  .c0 = tile->c0,
                  .c1 = tile->c1,
                  .step = step,
                  .state = x->s,
                  .act = r->c.act,
                  .s = &w->scratch,
                  .worker = (uint32_t)(w - r->worker)};

    for (int i = 0; i < n->n_in + n->n_out; i++) {
        const br_ir_bind *b = &n->bind[i];
        bool in = i < n->n_in;

        make_view(r, b, w->gather[i], in ? &c.in[i] : &c.out[i - n->n_in]);
        if (in && b->value != BR_IR_NONE && r->v.at[b->value].p &&
            r->v.g->values[b->value].kind == BR_IK_TEMP && !br_bind_together(b))
            move_columns(r, b, w->gather[i], step->n_rows, true,
                         br_step_columns(n, i, c.c0, c.c1));
    }
    if (r->c.bodies)
        r->c.bodies->op(r->c.bodies->ctx, &c);
    else
        ref_op(&c);
    for (int i = n->n_in; i < n->n_in + n->n_out; i++)
        if (!br_bind_together(&n->bind[i]))
            move_columns(r, &n->bind[i], w->gather[i], step->n_rows, false,
                         br_step_columns(n, i, c.c0, c.c1));
}

static br_code
check_step(const br_ref *r, const br_state *s, const br_step *step,
           br_status *st)
{
    if (!br_state_plan_same(&r->v.plan, &s->plan))
        return br_fail(st, BR_E_FORMAT, "step: the state is of another model");
    if (step->n_rows > r->c.max_rows)
        return br_fail(st, BR_E_LIMIT, "step: %u rows, prepared for %u",
                       step->n_rows, r->c.max_rows);
    return br_step_check(step, r->v.m->hp.n_vocab, s->n_slots, s->plan.n_groups,
                         st);
}

br_code
br_ref_step(br_ref *r, br_state *s, const br_step *step, float *logits,
            br_status *st)
{
    const br_value_mem *v = &r->v.at[r->v.logits];
    ref_round x = {r, s, step};

    BR_TRY(check_step(r, s, step, st));
    for (uint32_t i = 0; !r->prog && i < r->v.g->n_nodes; i++) {
        ref_tile all = {&r->v.g->nodes[i], 0, 0};
        br_step_cut cut;

        if (br_is_told(step->cancel))
            return br_fail(st, BR_E_CANCELLED, "the step was cancelled");
        if (br_step_cut_of(all.n, &cut)) {
            all.c1 = cut.cols;
            ref_run(&x, r->worker, &all);
            if (r->watch.seen && all.n->n_out > 0)
                r->watch.seen(
                    r->watch.ctx, i, r->v.at[all.n->bind[all.n->n_in].value].p,
                    r->v.at[all.n->bind[all.n->n_in].value].cols, step->n_rows);
        }
    }
    if (r->prog)
        BR_TRY(ref_run_program(&x, st));
    for (uint32_t t = 0; logits && t < step->n_rows; t++)
        if (!step->want || step->want[t]) {
            memcpy(logits, v->p + (size_t)t * (size_t)v->cols,
                   (size_t)v->cols * sizeof *logits);
            logits += v->cols;
        }
    return BR_OK;
}

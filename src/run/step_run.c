/* step_run.c - see step_run.h.
 *
 * Caches are kept as tensors between steps and copied into pages for each: slow
 * and plain, page i of every group is the i-th.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/step_run.h"

#include <string.h>

#include "drv/cpu/cpu_task.h"
#include "mega/dtype.h"
#include "mega/step.h"

/* A buffer's tensor: n rows of cols numbers of 4 bytes. */
typedef struct held {
    void *data;
    int64_t n, cols;
    int64_t shape[BR_MEGA_MAX_RANK]; /* as it is got */
    uint32_t rank;
    bool bound;
} held;

struct br_step_run {
    br_mega_store store;
    const br_mega_prog *p;
    br_ref *ref;
    br_cpu_tasks *tasks; /* NULL: the ref tier's own */
    br_state_plan plan;
    held *at; /* [n_buffers] */
    uint64_t max_bytes;
    uint32_t *pages; /* 0, 1, 2 ...: of every group */
};

static const br_step_run *
run_of(const br_mega_store *s)
{
    return (const br_step_run *)s;
}

static bool
is_pages(const br_step_run *r, int64_t b)
{
    return r->p->buffers[b].kind == BR_MBK_KV_CACHE &&
           r->p->graph->values[b].dim[0] == BR_DIM_POS;
}

static br_code
bad(const br_step_run *r, int64_t b, const char *why, br_status *st)
{
    return br_fail(st, BR_E_FORMAT, "buffer #%lld ('%.80s') %s", (long long)b,
                   r->p->buffers[b].name, why);
}

/* ---- in and out --------------------------------------------------------- */

/* Rows that a tensor of this shape is for the buffer; -1: it is none. */
static int64_t
rows_of(const br_step_run *r, int64_t b, const br_mega_value *v)
{
    int64_t cols = r->at[b].cols, all = 1, n;

    for (uint32_t d = 0; d < v->rank; d++)
        if (v->shape[d] < 0 || __builtin_mul_overflow(all, v->shape[d], &all))
            return -1;
    if (r->p->buffers[b].kind == BR_MBK_IO_INPUT)
        return v->rank <= 2 && (v->rank < 2 || v->shape[1] == 1) ? all : -1;
    if (!is_pages(r, b))
        return all == cols ? 1 : -1;
    n = v->rank ? v->shape[0] : 1;
    if (all == cols && n != 0) /* a position, as the program has it */
        return 1;
    return all == n * cols ? n : -1;
}

static br_code
bindable(const br_mega_store *s, int64_t b, const br_mega_value *v,
         br_status *st)
{
    const br_step_run *r = run_of(s);
    int64_t n;

    switch (r->p->buffers[b].kind) {
    case BR_MBK_WEIGHT: return bad(r, b, "is a weight: the model has it", st);
    case BR_MBK_CONST: return bad(r, b, "is the program's own", st);
    case BR_MBK_ACTIVATION:
    case BR_MBK_IO_OUTPUT: return bad(r, b, "is for the program to make", st);
    default: break;
    }
    n = rows_of(r, b, v);
    if (n < 0)
        return bad(r, b, "has another shape", st);
    if (r->p->buffers[b].kind == BR_MBK_IO_INPUT && (n < 1 || n > r->p->rows))
        return br_fail(st, BR_E_FORMAT,
                       "buffer #%lld ('%.80s'): %lld rows; the program takes 1 "
                       "to %u",
                       (long long)b, r->p->buffers[b].name, (long long)n,
                       r->p->rows);
    if (n > INT32_MAX ||
        (r->max_bytes && (uint64_t)n > r->max_bytes / 4 / r->at[b].cols))
        return br_fail(st, BR_E_LIMIT,
                       "buffer #%lld ('%.80s'): %lld positions, more than "
                       "memory holds",
                       (long long)b, r->p->buffers[b].name, (long long)n);
    return BR_OK;
}

/* Memory for n rows; what is beyond those there are is zeros. */
static br_code
hold(held *h, int64_t n, br_status *st)
{
    size_t row = (size_t)h->cols * 4, keep = (size_t)BR_MIN(n, h->n) * row;
    void *data = br_try_calloc((size_t)n + 1, row);

    if (!data)
        return br_fail(st, BR_E_OOM, "no memory for a buffer");
    if (keep)
        memcpy(data, h->data, keep);
    br_free(h->data);
    h->data = data;
    h->n = n;
    return BR_OK;
}

static br_code
bind(br_mega_store *s, int64_t b, const br_mega_value *v, br_status *st)
{
    br_step_run *r = (br_step_run *)s;
    int dt = r->p->buffers[b].dtype;
    int64_t row = v->rank ? v->shape[v->rank - 1] : 1, bytes, n;
    held *h = &r->at[b];

    BR_TRY(bindable(s, b, v, st));
    if ((int64_t)v->nbytes != br_mega_value_bytes(v))
        return br_fail(st, BR_E_FORMAT,
                       "buffer #%lld ('%.80s'): %zu bytes where %lld are "
                       "expected",
                       (long long)b, r->p->buffers[b].name, v->nbytes,
                       (long long)br_mega_value_bytes(v));
    n = rows_of(r, b, v);
    bytes = br_dt_row_bytes(v->dtype, row);
    BR_TRY(hold(h, n, st));
    for (int64_t i = 0; i < n * h->cols; i++) {
        double x = br_dt_get(v->dtype, (const char *)v->data + i / row * bytes,
                             i % row);

        if (!br_dt_put(dt, h->data, i, x))
            return br_fail(st, BR_E_FORMAT,
                           "buffer #%lld ('%.80s'): element %lld, %g, does not "
                           "fit %s",
                           (long long)b, r->p->buffers[b].name, (long long)i, x,
                           br_mega_dtype_name(dt));
    }
    h->bound = true;
    return BR_OK;
}

static bool
bound(const br_mega_store *s, int64_t b)
{
    const br_step_run *r = run_of(s);

    return r->p->buffers[b].kind != BR_MBK_IO_INPUT || r->at[b].bound;
}

static br_mega_value
get(const br_mega_store *s, int64_t b)
{
    const br_step_run *r = run_of(s);
    held *h = &r->at[b];

    if (r->p->buffers[b].kind == BR_MBK_IO_OUTPUT || is_pages(r, b)) {
        h->rank = 2;
        h->shape[0] = h->n;
        h->shape[1] = h->cols;
    }
    return (br_mega_value){h->data, h->shape, (size_t)(h->n * h->cols) * 4,
                           h->rank, r->p->buffers[b].dtype};
}

/* ---- a step ------------------------------------------------------------- */

static const held *
named(const br_step_run *r, const char *name)
{
    for (size_t b = 0; b < r->p->n_buffers; b++)
        if (r->p->buffers[b].kind == BR_MBK_IO_INPUT &&
            strcmp(r->p->buffers[b].name, name) == 0)
            return &r->at[b];
    return NULL;
}

/* The rows as they are bound; positions ascend. */
static br_code
read_rows(const br_step_run *r, br_step *step, br_status *st)
{
    const held *token = named(r, "step.token"), *want = named(r, "step.want");
    const held *position = named(r, "step.position");

    if (!token || !position)
        return br_fail(st, BR_E_REJECTED,
                       "the program has no step.token or no step.position");
    if (position->n != token->n || (want && want->n != token->n))
        return br_fail(st, BR_E_FORMAT,
                       "step.token, step.position and step.want differ in "
                       "their number of rows");
    step->n_rows = (uint32_t)token->n;
    step->token = token->data;
    step->position = position->data;
    step->want = want ? want->data : NULL;
    for (uint32_t t = 0; t < step->n_rows; t++)
        if (step->position[t] < 0 ||
            (t && step->position[t] <= step->position[t - 1]))
            return br_fail(st, BR_E_FORMAT,
                           "step.position[%u]: %d; positions are 0 or more and "
                           "ascend",
                           t, step->position[t]);
    return BR_OK;
}

/* Positions that there are after the step. */
static br_code
count_positions(const br_step_run *r, const br_step *step, int64_t *out,
                br_status *st)
{
    int64_t n = (int64_t)step->position[step->n_rows - 1] + 1;
    uint64_t bytes = 0;

    for (size_t b = 0; b < r->p->n_buffers; b++) {
        const held *h = &r->at[b];

        if (!is_pages(r, (int64_t)b))
            continue;
        if (h->n && h->n < step->position[0])
            return br_fail(st, BR_E_FORMAT,
                           "buffer #%zu ('%.80s') holds %lld positions, and "
                           "the step begins at %d",
                           b, r->p->buffers[b].name, (long long)h->n,
                           step->position[0]);
        n = BR_MAX(n, h->n);
        bytes += (uint64_t)h->cols * 4;
    }
    if (r->max_bytes && bytes && (uint64_t)n > r->max_bytes / bytes)
        return br_fail(st, BR_E_LIMIT,
                       "%lld positions are more than memory holds",
                       (long long)n);
    *out = n;
    return BR_OK;
}

/* Between a tensor and the pages and pieces of the state. */
static void
move_state(const br_step_run *r, const br_state *s, int64_t b, bool in)
{
    const br_state_place *at = &r->plan.place[b];
    const held *h = &r->at[b];
    bool paged = at->group != BR_IR_NONE;
    /* Numbers of a row that stand together: 16 rows of them, then the next. */
    size_t run = paged && r->tasks ? br_cpu_tasks_run(r->tasks, (uint32_t)b)
                                   : (size_t)h->cols;

    for (int64_t i = 0; i < h->n; i++) {
        float *p = s->slots + at->at, *own = (float *)h->data + i * h->cols;

        if (paged)
            p = (float *)(void *)s->pool[at->group] +
                (uint64_t)(i / BR_PAGE_TOKENS) *
                    r->plan.group[at->group].page_elems +
                at->at + (uint64_t)(i % BR_PAGE_TOKENS) * run;
        for (size_t c = 0; c < (size_t)h->cols; c += run) {
            float *far = p + c * BR_PAGE_TOKENS;

            memcpy(in ? far : own + c, in ? own + c : far, run * sizeof *far);
        }
    }
}

static br_code
step_in(br_step_run *r, br_state *s, br_step *step, br_status *st)
{
    const uint32_t *pages[BR_MAX_KV_GROUPS];
    int64_t wanted = 0, logits = -1;
    int32_t *slots = br_try_calloc(step->n_rows + 1u, sizeof *slots);
    br_code code;

    if (!slots)
        return br_fail(st, BR_E_OOM, "no memory for the step");
    for (int g = 0; g < BR_MAX_KV_GROUPS; g++)
        pages[g] = r->pages;
    step->slot = slots;
    step->pages = pages;
    for (uint32_t t = 0; t < step->n_rows; t++)
        wanted += !step->want || step->want[t];
    for (size_t b = 0; b < r->p->n_buffers; b++)
        if (r->p->buffers[b].kind == BR_MBK_IO_OUTPUT)
            logits = (int64_t)b;
    code = hold(&r->at[logits], wanted, st);
    if (code == BR_OK)
        code = br_ref_step(r->ref, s, step, r->at[logits].data, st);
    br_free(slots);
    return code;
}

static br_code
run(br_mega_store *store, br_mega_runner *runner, br_status *st)
{
    br_step_run *r = (br_step_run *)store;
    const br_mega_prog *p = r->p;
    uint32_t n_pages[BR_MAX_KV_GROUPS];
    br_step step = {0};
    br_state *s;
    int64_t n = 0;
    br_code code;

    BR_TRY(read_rows(r, &step, st));
    BR_TRY(count_positions(r, &step, &n, st));
    for (int g = 0; g < BR_MAX_KV_GROUPS; g++)
        n_pages[g] = (uint32_t)((n - 1) / BR_PAGE_TOKENS + 1);
    br_free(r->pages);
    r->pages = br_try_calloc(n_pages[0], sizeof *r->pages);
    if (!r->pages)
        return br_fail(st, BR_E_OOM, "no memory for pages");
    for (uint32_t i = 0; i < n_pages[0]; i++)
        r->pages[i] = i;
    BR_TRY(br_state_new(&s, p->graph, BR_Q_F32, 1, n_pages, st));
    for (size_t b = 0; b < p->n_buffers; b++)
        if (p->buffers[b].kind == BR_MBK_KV_CACHE)
            move_state(r, s, (int64_t)b, true);
    br_ref_run_by(r->ref, runner);
    code = step_in(r, s, &step, st);
    for (size_t b = 0; b < p->n_buffers && code == BR_OK; b++) {
        if (p->buffers[b].kind != BR_MBK_KV_CACHE)
            continue;
        code = is_pages(r, (int64_t)b) ? hold(&r->at[b], n, st) : BR_OK;
        if (code == BR_OK)
            move_state(r, s, (int64_t)b, false);
    }
    br_state_free(s);
    return code;
}

/* ---- life --------------------------------------------------------------- */

/* Buffer v is value v of the graph; what is written out are logits. */
static br_code
check_buffers(const br_mega_prog *p, br_status *st)
{
    if (p->n_buffers != p->graph->n_values)
        return br_fail(st, BR_E_REJECTED,
                       "%zu buffers for %u values of the graph", p->n_buffers,
                       p->graph->n_values);
    for (size_t b = 0; b < p->n_buffers; b++)
        if (p->buffers[b].kind == BR_MBK_IO_OUTPUT &&
            strcmp(p->buffers[b].name, "step.logits") != 0)
            return br_fail(st, BR_E_REJECTED,
                           "buffer #%zu ('%.80s') is IO_OUTPUT, and a step has "
                           "step.logits only",
                           b, p->buffers[b].name);
    return BR_OK;
}

static br_code
make(br_step_run *r, const br_model *m, const br_step_run_config *c,
     br_status *st)
{
    const br_ir *g = r->p->graph;
    br_ref_config rc = {.act = c->exact ? BR_REF_QUANTISED : BR_REF_F32,
                        .program = r->p,
                        .workers = c->workers,
                        .max_bytes = c->max_bytes};

    BR_TRY(check_buffers(r->p, st));
    BR_TRY(br_state_plan_of(&r->plan, g, st));
    if (c->pool) {
        BR_TRY(br_cpu_tasks_new(&r->tasks, m, g, c->pool, r->p->rows, c->exact,
                                st));
        rc.bodies = br_cpu_tasks_bodies(r->tasks);
    }
    BR_TRY(br_ref_prepare(&r->ref, m, g, &rc, st));
    r->at = br_try_calloc(r->p->n_buffers + 1, sizeof *r->at);
    if (!r->at)
        return br_fail(st, BR_E_OOM, "no memory for buffers");
    for (size_t b = 0; b < r->p->n_buffers; b++) {
        const br_mega_buffer *x = &r->p->buffers[b];
        held *h = &r->at[b];

        h->cols = br_ir_cols(&g->values[b]);
        h->rank = x->rank;
        if (x->rank)
            memcpy(h->shape, x->shape, x->rank * sizeof *x->shape);
        if (x->kind == BR_MBK_KV_CACHE)
            BR_TRY(hold(h, is_pages(r, (int64_t)b) ? 0 : 1, st));
    }
    return BR_OK;
}

br_code
br_step_run_new(br_step_run **out, const br_mega_prog *p, const br_model *m,
                const br_step_run_config *c, br_status *st)
{
    br_step_run *r = br_try_calloc(1, sizeof *r);
    br_code code;

    *out = NULL;
    if (!r)
        return br_fail(st, BR_E_OOM, "no memory to run the program");
    r->store = (br_mega_store){p, bindable, bind, bound, get, run};
    r->p = p;
    r->max_bytes = c->max_bytes;
    code = make(r, m, c, st);
    if (code != BR_OK) {
        br_step_run_free(r);
        return code;
    }
    *out = r;
    return BR_OK;
}

void
br_step_run_free(br_step_run *r)
{
    if (!r)
        return;
    for (size_t b = 0; r->at && b < r->p->n_buffers; b++)
        br_free(r->at[b].data);
    br_free(r->at);
    br_free(r->pages);
    br_ref_free(r->ref);
    br_cpu_tasks_free(r->tasks);
    br_state_plan_fini(&r->plan);
    br_free(r);
}

br_mega_store *
br_step_run_store(br_step_run *r)
{
    return &r->store;
}

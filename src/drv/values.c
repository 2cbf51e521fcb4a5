/* values.c - see values.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/values.h"

#include "base/map.h"
#include "model/quant.h"

#include <stdlib.h>
#include <string.h>

typedef struct binder {
    br_values *v;
    br_arena *arena;
    const br_values_config *c;
} binder;

static br_code
no_memory(br_status *st)
{
    return br_fail(st, BR_E_OOM, "values of the graph: out of memory");
}

bool
br_bind_together(const br_ir_bind *b)
{
    return b->count == 1 || b->stride == b->width;
}

/* No more than the row of ops.def says: `w` and whatever ends in _w. */
bool
br_bind_is_matrix(const br_ir_node *n, int i)
{
    br_ir_role role;

    if (i >= n->n_in || !br_ir_role_at(n->op, false, i, &role))
        return false;
    switch (n->op) {
    case BR_IR_MATMUL:
    case BR_IR_MATMUL_WMMA_F16:
    case BR_IR_MATMUL_WMMA_Q4K:
    case BR_IR_LM_HEAD:
    case BR_IR_HEAD_MATMUL: return br_text_is(role.name, "w");
    case BR_IR_EMBED: return br_text_is(role.name, "table");
    default: break;
    }
    return role.name.n > 2 &&
           memcmp(role.name.p + role.name.n - 2, "_w", 2) == 0;
}

/* The tensor of a model value: its logical name leads to a row of weight.def.
 * Constants that the graph carries have none. */
static const br_gguf_tensor *
tensor_of(const br_values *r, const br_map *names, uint32_t v)
{
    const br_ir_value *x = &r->g->values[v];
    br_text name = br_ir_value_name(r->g, v);
    const char *end = memchr(name.p, '[', name.n);
    const br_map_value *e;

    if (end)
        name.n = (size_t)(end - name.p);
    for (e = br_map_get(names, name); e;) {
        for (uint64_t w = e->u; w < BR_W_COUNT; w++) {
            const br_gguf_tensor *t;

            if (!br_text_is(name, br_weight_logical((br_weight)w)) ||
                br_weight_layered((br_weight)w) != (x->layer >= 0) ||
                x->layer >= r->m->hp.n_layer)
                continue;
            t = br_model_tensor(r->m, (br_weight)w, x->layer);
            if (t)
                return t;
        }
        break;
    }
    return NULL;
}

/* ---- graphs that come from elsewhere ------------------------------------ */

/* A graph is verified against itself; that it is of this model, and that what
 * executors take from the step is what its nodes say, is seen here. */
static br_code
refuse(const br_values *r, uint32_t v, const char *why, br_status *st)
{
    br_text name = br_ir_value_name(r->g, v);

    return br_fail(st, BR_E_REJECTED, "%s: %.*s: %s", r->g->name, (int)name.n,
                   name.p, why);
}

/* Dimensions of 1 say nothing of where numbers lie. */
static bool
same_shape(const br_ir_value *x, const br_gguf_tensor *t)
{
    int r = x->rank - 1;

    for (uint32_t d = 0; d < t->n_dims; d++) {
        if (t->dim[d] == 1)
            continue;
        while (r >= 0 && x->dim[r] == 1)
            r--;
        if (r < 0 || (uint64_t)x->dim[r--] != t->dim[d])
            return false;
    }
    while (r >= 0 && x->dim[r] == 1)
        r--;
    return r < 0;
}

static br_code
check_tensor(const br_values *r, uint32_t v, br_status *st)
{
    const br_ir_value *x = &r->g->values[v];
    const br_gguf_tensor *t = r->at[v].t;
    br_text name = br_ir_value_name(r->g, v);

    if (x->dtype != (int)t->type || !same_shape(x, t))
        return br_fail(st, BR_E_FORMAT,
                       "%.*s: the model's is %s of another format or shape "
                       "than the graph's: made of another model",
                       (int)name.n, name.p, br_qinfo_of(t->type)->name);
    if (br_qinfo_of(t->type)->flags & BR_QF_INT)
        return refuse(r, v, "integers are no weights", st);
    return BR_OK;
}

static br_code
check_input(const br_values *r, uint32_t v, br_status *st)
{
    const br_ir_value *x = &r->g->values[v];
    br_text name = br_ir_value_name(r->g, v);

    if (x->dtype != BR_Q_I32 || br_ir_cols(x) != 1 ||
        !(br_text_is(name, "step.token") || br_text_is(name, "step.position") ||
          br_text_is(name, "step.want")))
        return refuse(r, v, "a step has no such input", st);
    return BR_OK;
}

/* The ids of experts are what a router has picked of no more than there are. */
static bool
ids_fit(const br_ir *g, const br_ir_bind *ids, int64_t experts)
{
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        const br_ir_node *n = &g->nodes[i];

        if (n->op == BR_IR_MOE_GATE_TOPK &&
            memcmp(&n->bind[n->n_in + 1], ids, sizeof *ids) == 0)
            return (int64_t)n->bind[n->n_in].width * n->bind[n->n_in].count <=
                   experts;
    }
    return false;
}

static br_code
check_node(const br_values *r, const br_ir_node *n, br_status *st)
{
    const br_ir *g = r->g;

    for (int b = 0; b < n->n_in; b++) {
        uint32_t v = n->bind[b].value;
        br_ir_role role;
        char name[40] = "step.";

        if (v == BR_IR_NONE || !br_ir_role_at(n->op, false, b, &role))
            continue;
        memcpy(name + 5, role.name.p, BR_MIN(role.name.n, sizeof name - 6));
        if ((br_text_is(role.name, "token") ||
             br_text_is(role.name, "position") ||
             br_text_is(role.name, "want")) &&
            !br_text_is(br_ir_value_name(g, v), name))
            return refuse(r, v, "an executor takes it from the step", st);
        if (br_text_is(role.name, "ids") &&
            !ids_fit(g, &n->bind[b], g->values[n->bind[1].value].dim[0]))
            return refuse(r, v, "no router of so many experts writes it", st);
    }
    if (n->op == BR_IR_EMBED &&
        g->values[n->bind[1].value].dim[0] < r->m->hp.n_vocab)
        return refuse(r, n->bind[1].value, "has not a row for each token", st);
    return BR_OK;
}

/* Lives are known. */
static br_code
check_graph(const br_values *r, br_status *st)
{
    const br_ir *g = r->g;

    for (uint32_t v = 0; v < g->n_values; v++) {
        int kind = g->values[v].kind;

        if (r->at[v].t)
            BR_TRY(check_tensor(r, v, st));
        if ((kind == BR_IK_STEP || kind == BR_IK_REQUEST) && !r->at[v].made)
            BR_TRY(check_input(r, v, st));
    }
    if (!r->at[r->logits].made || g->values[r->logits].dtype != BR_Q_F32)
        return refuse(r, r->logits, "no node writes floats there", st);
    for (uint32_t i = 0; i < g->n_nodes; i++)
        BR_TRY(check_node(r, &g->nodes[i], st));
    return BR_OK;
}

static br_code
load_vector(br_arena *arena, br_value_mem *v, br_status *st)
{
    const br_gguf_tensor *t = v->t;
    uint64_t n = 1;

    for (uint32_t i = 0; i < t->n_dims; i++)
        n *= t->dim[i];
    v->p = br_arena_new(arena, float, n);
    if (!v->p)
        return no_memory(st);
    br_dequant(t->type, t->data, v->p, n);
    return BR_OK;
}

static br_code
load_vectors(br_values *r, br_arena *arena, br_status *st)
{
    const br_ir *g = r->g;

    for (uint32_t i = 0; i < g->n_nodes; i++)
        for (int k = 0; k < g->nodes[i].n_in; k++) {
            uint32_t v = g->nodes[i].bind[k].value;

            if (v != BR_IR_NONE && r->at[v].t && !r->at[v].p &&
                !br_bind_is_matrix(&g->nodes[i], k))
                BR_TRY(load_vector(arena, &r->at[v], st));
        }
    return BR_OK;
}

static br_code
bind_model(br_values *r, br_status *st)
{
    const br_ir *g = r->g;
    br_map names = {0};
    br_code code = BR_OK;

    for (int w = BR_W_COUNT - 1; w >= 0 && code == BR_OK; w--) {
        br_map_value *e = br_map_put(
            &names, br_text_z(br_weight_logical((br_weight)w)), NULL);

        if (e)
            e->u = (uint64_t)w; /* the first row of this name */
        else
            code = no_memory(st);
    }
    for (uint32_t v = 0; v < g->n_values && code == BR_OK; v++) {
        br_value_mem *x = &r->at[v];

        if (g->values[v].kind != BR_IK_MODEL)
            continue;
        if (g->values[v].data != BR_IR_NONE) {
            union {
                const float *c;
                float *p;
            } data = {g->data + g->values[v].data};

            x->p = data.p;
            continue;
        }
        x->t = tensor_of(r, &names, v);
        if (!x->t)
            code = br_fail(
                st, BR_E_NOT_FOUND, "%.*s: the model has no such weight",
                (int)br_ir_value_name(g, v).n, br_ir_value_name(g, v).p);
    }
    br_map_fini(&names);
    return code;
}

/* When each value is first and last touched, and which come of LM_HEAD. */
static void
find_lives(br_values *r)
{
    const br_ir *g = r->g;

    for (uint32_t v = 0; v < g->n_values; v++)
        r->at[v].first = r->at[v].last = -1;
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        const br_ir_node *n = &g->nodes[i];
        bool want = n->op == BR_IR_LM_HEAD;

        if (want)
            r->hidden = n->bind[0].value;
        for (int b = 0; b < n->n_in + n->n_out; b++) {
            br_value_mem *v;

            if (n->bind[b].value == BR_IR_NONE)
                continue;
            v = &r->at[n->bind[b].value];
            if (v->first < 0)
                v->first = i;
            v->last = i;
            if (b >= n->n_in) {
                v->want = want;
                v->made = true;
            }
            want = want || v->want;
        }
    }
    if (r->hidden != BR_IR_NONE)
        r->at[r->hidden].last = g->n_nodes;
}

/* Memory of values one after another, whose lives do not meet. Of those whose rows want
 * logits only there are fewer rows, so they never share with others. */
typedef struct buffer {
    size_t cols, rows;
    bool *taken; /* [n_nodes + 1]; NULL: by one value for good */
    float *p;
} buffer;

/* What wants memory, from node to node. */
typedef struct tenant {
    size_t cols, rows;
    uint32_t from, to;
    size_t nth;   /* among all */
    uint32_t *id; /* 1 + its buffer */
} tenant;

typedef struct placer {
    const binder *b;
    BR_VEC(buffer) all;
    BR_VEC(tenant) tenants;
    uint32_t *of; /* [n_values] 1 + its buffer */
    uint32_t (*aside)[BR_VALUES_ASIDE];
} placer;

static bool
is_free(const buffer *b, const tenant *t)
{
    for (uint32_t i = t->from; i <= t->to; i++)
        if (b->taken[i])
            return false;
    return true;
}

/* Which of two free buffers (the second may be NULL) is it? The narrowest that is wide
 * enough: 512 narrow rows in a wide one's memory cost 16 MB three times. If none is, the
 * widest, which grows. */
static bool
is_better(const buffer *a, const buffer *b, size_t cols)
{
    if (!b)
        return true;
    return b->cols >= cols ? a->cols >= cols && a->cols < b->cols
                           : a->cols > b->cols;
}

/* A buffer that is free as long as the tenant lives, or a new one. */
static bool
settle(placer *l, const tenant *t)
{
    const uint32_t n = l->b->v->g->n_nodes;
    buffer *best = NULL;

    for (size_t i = 0; i < l->all.n && !l->b->c->apart; i++) {
        buffer *b = &l->all.at[i];

        if (b->rows == t->rows && is_better(b, best, t->cols) && is_free(b, t))
            best = b;
    }
    if (!best) {
        bool *taken = NULL;

        if (!l->b->c->apart)
            taken = br_try_calloc(n + 1, sizeof *taken);
        if ((!taken && !l->b->c->apart) ||
            !br_vec_push(&l->all, ((buffer){t->cols, t->rows, taken, NULL}))) {
            br_free(taken);
            return false;
        }
        best = &l->all.at[l->all.n - 1];
    }
    best->cols = BR_MAX(best->cols, t->cols);
    for (uint32_t i = t->from; best->taken && i <= t->to; i++)
        best->taken[i] = true;
    *t->id = (uint32_t)(best - l->all.at) + 1;
    return true;
}

/* All numbers of a row of value id. */
static bool
whole(const br_values *r, const br_ir_bind *b, int64_t cols)
{
    return b->value != BR_IR_NONE && br_bind_together(b) && b->off == 0 &&
           (int64_t)b->width * b->count == cols && r->at[b->value].cols == cols;
}

/* Does node i make value id number by number out of two that are as wide? Then it may
 * write one of them, if nobody reads that after it. */
static bool
in_place(const br_values *r, uint32_t i, uint32_t id)
{
    const br_ir_node *n = &r->g->nodes[i];
    const int64_t cols = r->at[id].cols;

    return (n->op == BR_IR_GLU || n->op == BR_IR_MOE_SWIGLU) &&
           n->bind[n->n_in].value == id && whole(r, &n->bind[n->n_in], cols) &&
           whole(r, &n->bind[0], cols) && whole(r, &n->bind[1], cols);
}

/* Memory of a value: from its first node to its last one, or for good. */
static bool
count_value(placer *l, uint32_t id)
{
    const br_values_config *c = l->b->c;
    const br_values *r = l->b->v;
    const br_value_mem *v = &r->at[id];
    const uint32_t n = r->g->n_nodes;
    const bool temp = r->g->values[id].kind == BR_IK_TEMP;
    const uint32_t last = (uint32_t)BR_MIN(v->last, (int64_t)n);
    const uint32_t rests = c->rest && last < n ? c->rest[last] : 0;
    tenant t = {.cols = (size_t)v->cols,
                .rows = v->want && c->max_want ? c->max_want : c->max_rows,
                .from = (uint32_t)v->first,
                .to = temp ? BR_MIN(last + rests, n) : n,
                .nth = l->tenants.n,
                .id = &l->of[id]};

    if (!v->made || v->p || (id == r->logits && c->max_want))
        return true;
    if (c->tight && t.from < t.to && in_place(r, t.from, id))
        t.from++;
    return br_vec_push(&l->tenants, t);
}

/* What nodes want while they run. */
static bool
count_aside(placer *l, uint32_t i)
{
    const br_values_config *c = l->b->c;
    size_t cols[BR_VALUES_ASIDE] = {0};

    c->aside(c->ctx, i, cols);
    for (int k = 0; k < BR_VALUES_ASIDE; k++) {
        const tenant t = {.cols = cols[k],
                          .rows = c->max_rows,
                          .from = i,
                          .to = i,
                          .nth = l->tenants.n,
                          .id = &l->aside[i][k]};

        if (cols[k] && !br_vec_push(&l->tenants, t))
            return false;
    }
    return true;
}

static int
by_time(const void *a, const void *b)
{
    const tenant *x = a, *y = b;

    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    return x->nth < y->nth ? -1 : 1;
}

/* The wider first: none has to grow then. */
static int
by_width(const void *a, const void *b)
{
    const tenant *x = a, *y = b;

    if (x->cols != y->cols)
        return x->cols < y->cols ? 1 : -1;
    return by_time(a, b);
}

static bool
share(placer *l)
{
    const br_ir *g = l->b->v->g;

    for (uint32_t v = 0; v < g->n_values; v++)
        if (!count_value(l, v))
            return false;
    for (uint32_t i = 0; l->aside && i < g->n_nodes; i++)
        if (!count_aside(l, i))
            return false;
    if (l->tenants.n)
        qsort(l->tenants.at, l->tenants.n, sizeof *l->tenants.at,
              l->b->c->tight ? by_width : by_time);
    for (size_t i = 0; i < l->tenants.n; i++)
        if (!settle(l, &l->tenants.at[i]))
            return false;
    return true;
}

/* Memory of a buffer, on a cache line. */
static float *
memory(const binder *b, const buffer *of)
{
    char *p;

    if (b->c->place)
        return b->c->place(b->c->ctx, of->cols, of->rows);
    p = br_arena_zero(b->arena, of->cols * of->rows + 16, sizeof(float));
    return p ? (float *)(void *)(p + (64 - (uintptr_t)p % 64) % 64) : NULL;
}

static br_code
place_nodes(placer *l, br_status *st)
{
    br_values *r = l->b->v;
    const br_ir *g = r->g;

    if (!share(l))
        return no_memory(st);
    for (size_t i = 0; i < l->all.n; i++)
        if (!(l->all.at[i].p = memory(l->b, &l->all.at[i])))
            return no_memory(st);
    for (uint32_t v = 0; v < g->n_values; v++)
        if (l->of[v])
            r->at[v].p = l->all.at[l->of[v] - 1].p;
    for (uint32_t i = 0; r->aside && i < g->n_nodes; i++)
        for (int k = 0; k < BR_VALUES_ASIDE; k++)
            if (l->aside[i][k])
                r->aside[i][k] = l->all.at[l->aside[i][k] - 1].p;
    return BR_OK;
}

static br_code
find_widths(br_values *r, br_status *st)
{
    const br_ir *g = r->g;

    r->logits = BR_IR_NONE;
    r->widest = 512;
    for (uint32_t v = 0; v < g->n_values; v++) {
        const br_ir_value *x = &g->values[v];

        r->at[v].cols = br_ir_cols(x);
        if (x->kind == BR_IK_TEMP || x->kind == BR_IK_STEP)
            r->widest = BR_MAX(r->widest, r->at[v].cols);
        if (x->kind == BR_IK_MODEL) /* rows, and two halves of experts */
            for (int i = 0; i < x->rank; i++)
                if (i > 0 || x->rank < 3)
                    r->widest = BR_MAX(r->widest, x->dim[i]);
        if (br_text_is(br_ir_value_name(g, v), "step.logits"))
            r->logits = v;
    }
    if (r->logits == BR_IR_NONE)
        return br_fail(st, BR_E_REJECTED, "%s: writes no step.logits", g->name);
    for (uint32_t i = 0; i < g->n_nodes; i++)
        for (int b = 0; b < BR_IR_MAX_BINDINGS; b++) {
            const br_ir_bind *x = &g->nodes[i].bind[b];

            if (x->value != BR_IR_NONE && !br_bind_together(x))
                r->apart = BR_MAX(r->apart, (int64_t)x->width * x->count);
        }
    return BR_OK;
}

br_code
br_values_bind(br_values *v, br_arena *arena, const br_model *m, const br_ir *g,
               br_status *st)
{
    *v = (br_values){.m = m, .g = g, .apart = 1, .hidden = BR_IR_NONE};
    v->at = br_arena_new(arena, br_value_mem, g->n_values + 1);
    if (!v->at)
        return no_memory(st);
    BR_TRY(br_state_plan_of(&v->plan, g, st));
    BR_TRY(find_widths(v, st));
    BR_TRY(bind_model(v, st));
    find_lives(v);
    BR_TRY(check_graph(v, st));
    return load_vectors(v, arena, st);
}

br_code
br_values_place(br_values *v, br_arena *arena, const br_values_config *c,
                br_status *st)
{
    const binder b = {v, arena, c};
    placer l = {.b = &b};
    br_code code = BR_OK;

    l.of = br_try_calloc(v->g->n_values + 1, sizeof *l.of);
    if (c->aside) {
        l.aside = br_try_calloc(v->g->n_nodes + 1, sizeof *l.aside);
        v->aside = br_arena_zero(arena, v->g->n_nodes + 1, sizeof *v->aside);
    }
    if (!l.of || (c->aside && (!l.aside || !v->aside)))
        code = no_memory(st);
    if (code == BR_OK)
        code = place_nodes(&l, st);
    for (size_t i = 0; i < l.all.n; i++)
        br_free(l.all.at[i].taken);
    br_vec_fini(&l.all);
    br_vec_fini(&l.tenants);
    br_free(l.of);
    br_free(l.aside);
    return code;
}

const float *
br_values_hidden(const br_values *v)
{
    return v->hidden == BR_IR_NONE ? NULL : v->at[v->hidden].p;
}

void
br_values_fini(br_values *v)
{
    br_state_plan_fini(&v->plan);
}

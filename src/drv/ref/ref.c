/* ref.c - runs a graph node by node.
 *
 *   value      memory
 *   t. step.   a buffer of max_rows rows, shared by values whose lives do not
 *              overlap
 *   model.     matrices stay in the file and are dequantised row by row;
 *              vectors are dequantised once
 *   state.     pages and slot pieces of br_ref_state
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/map.h"
#include "drv/ref/ref_int.h"
#include "model/qint.h"

#include <string.h>

/* ---- preparing ---------------------------------------------------------- */

static bool
together(const br_ir_bind *b)
{
    return b->count == 1 || b->stride == b->width;
}

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

/* Bindings that are matrices: read row by row, never whole. */
static bool
is_matrix(const br_ir_node *n, int i)
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
tensor_of(const br_ref *r, const br_map *names, uint32_t v)
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

static br_code
load_vector(br_ref *r, ref_value *v, const br_gguf_tensor *t, br_status *st)
{
    uint64_t n = 1;

    for (uint32_t i = 0; i < t->n_dims; i++)
        n *= t->dim[i];
    v->p = ref_get(r, n, sizeof(float));
    if (!v->p)
        return ref_no_memory(st);
    br_dequant(t->type, t->data, v->p, n);
    return BR_OK;
}

static br_code
bind_model(br_ref *r, br_status *st)
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
            code = ref_no_memory(st);
    }
    for (uint32_t v = 0; v < g->n_values && code == BR_OK; v++) {
        ref_value *x = &r->value[v];

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
    for (uint32_t i = 0; i < g->n_nodes && code == BR_OK; i++)
        for (int b = 0; b < g->nodes[i].n_in && code == BR_OK; b++) {
            uint32_t v = g->nodes[i].bind[b].value;

            if (v != BR_IR_NONE && r->value[v].t && !r->value[v].p &&
                !is_matrix(&g->nodes[i], b))
                code = load_vector(r, &r->value[v], r->value[v].t, st);
        }
    return code;
}

static void
find_lives(br_ref *r)
{
    const br_ir *g = r->g;

    for (uint32_t v = 0; v < g->n_values; v++)
        r->value[v].first = r->value[v].last = -1;
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        const br_ir_node *n = &g->nodes[i];

        for (int b = 0; b < n->n_in + n->n_out; b++) {
            ref_value *v;

            if (n->bind[b].value == BR_IR_NONE)
                continue;
            v = &r->value[n->bind[b].value];
            if (v->first < 0)
                v->first = i;
            v->last = i;
        }
    }
}

typedef struct free_buffer {
    float *p;
    int64_t cols;
} free_buffer;

/* Buffers of values that are dead serve those that come: first fit. */
static br_code
place_temps(br_ref *r, br_status *st)
{
    const br_ir *g = r->g;
    BR_VEC(free_buffer) list = {0};
    bool ok = true;

    for (uint32_t i = 0; i < g->n_nodes && ok; i++) {
        const br_ir_node *n = &g->nodes[i];

        for (int b = n->n_in; b < n->n_in + n->n_out && ok; b++) {
            ref_value *v = &r->value[n->bind[b].value];

            for (size_t k = 0; !v->p && k < list.n; k++)
                if (list.at[k].cols >= v->cols) {
                    v->p = list.at[k].p;
                    v->cols = list.at[k].cols; /* what it may hold */
                    list.at[k] = list.at[--list.n];
                }
            if (!v->p)
                v->p =
                    ref_get(r, (size_t)v->cols * r->c.max_rows, sizeof(float));
            ok = v->p != NULL;
        }
        for (int b = 0; b < n->n_in + n->n_out && ok && !r->prog; b++) {
            uint32_t id = n->bind[b].value;
            ref_value *v = id == BR_IR_NONE ? NULL : &r->value[id];
            bool twice = false;

            for (int a = 0; a < b; a++)
                twice = twice || n->bind[a].value == id;
            if (v && !twice && g->values[id].kind == BR_IK_TEMP &&
                v->last == (int64_t)i)
                ok = br_vec_push(&list, ((free_buffer){v->p, v->cols}));
        }
    }
    br_vec_fini(&list);
    for (uint32_t v = 0; v < g->n_values; v++)
        r->value[v].cols = br_ir_cols(&g->values[v]);
    return ok ? BR_OK : ref_no_memory(st);
}

static br_code
find_widths(br_ref *r, br_status *st)
{
    const br_ir *g = r->g;

    r->logits = BR_IR_NONE;
    r->widest = 512;
    for (uint32_t v = 0; v < g->n_values; v++) {
        const br_ir_value *x = &g->values[v];

        r->value[v].cols = br_ir_cols(x);
        if (x->kind == BR_IK_TEMP || x->kind == BR_IK_STEP)
            r->widest = BR_MAX(r->widest, r->value[v].cols);
        if (x->kind == BR_IK_MODEL) /* rows, and two halves of experts */
            for (int i = 0; i < x->rank; i++)
                if (i > 0 || x->rank < 3)
                    r->widest = BR_MAX(r->widest, x->dim[i]);
        if (br_text_is(br_ir_value_name(g, v), "step.logits"))
            r->logits = v;
    }
    if (r->logits == BR_IR_NONE)
        return br_fail(st, BR_E_REJECTED, "%s: writes no step.logits", g->name);
    return BR_OK;
}

static br_code
get_scratch(br_ref *r, br_status *st)
{
    size_t n = (size_t)r->widest, apart = 1;
    ref_scratch *s = &r->scratch;
    bool ok;

    for (uint32_t i = 0; i < r->g->n_nodes; i++)
        for (int b = 0; b < BR_IR_MAX_BINDINGS; b++) {
            const br_ir_bind *x = &r->g->nodes[i].bind[b];

            if (x->value != BR_IR_NONE && !together(x))
                apart = BR_MAX(apart, (size_t)x->width * x->count);
        }
    s->row = ref_get(r, n, sizeof(float));
    s->att = ref_get(r, 256, sizeof(float));
    ok = s->row && s->att;
    for (size_t i = 0; i < BR_COUNT(s->wide); i++)
        ok = (s->wide[i] = ref_get(r, n, sizeof(float))) && ok;
    if (r->c.act == BR_REF_QUANTISED) {
        size_t k = 256;

        for (uint32_t v = 0; v < r->g->n_values; v++)
            if (r->value[v].t)
                k = BR_MAX(k, (size_t)r->value[v].t->dim[0]);
        s->blocks = ref_get(r, k / 32 + 1, sizeof *s->blocks);
        s->xq = ref_get(r, k * r->c.max_rows, 1);
        s->xd = ref_get(r, (k / 32 + 1) * r->c.max_rows, sizeof(float));
        ok = ok && s->blocks && s->xq && s->xd;
    }
    for (int i = 0; i < BR_IR_MAX_BINDINGS; i++)
        ok =
            (r->gather[i] = ref_get(r, apart * r->c.max_rows, sizeof(float))) &&
            ok;
    return ok ? BR_OK : ref_no_memory(st);
}

static br_code
check_ops(const br_ref *r, br_status *st)
{
    for (uint32_t i = 0; i < r->g->n_nodes; i++)
        switch ((br_ir_op)r->g->nodes[i].op) {
        case BR_IR_SAMPLE:
        case BR_IR_STREAM_OUT:
        case BR_IR_LOAD_REQUEST_STATE:
        case BR_IR_STORE_REQUEST_STATE:
        case BR_IR_VERIFY_K:
            return br_fail(st, BR_E_UNSUPPORTED,
                           "nodes[%u]: the reference tier has no %s", i,
                           br_ir_opinfo_of(r->g->nodes[i].op)->name);
        default: break;
        }
    return BR_OK;
}

static br_code
prepare(br_ref *r, br_status *st)
{
    BR_TRY(check_ops(r, st));
    r->value = ref_get(r, r->g->n_values + 1, sizeof *r->value);
    if (!r->value)
        return ref_no_memory(st);
    BR_TRY(br_state_plan_of(&r->plan, r->g, st));
    BR_TRY(find_widths(r, st));
    BR_TRY(bind_model(r, st));
    find_lives(r);
    if (r->prog)
        BR_TRY(ref_place_pages(r, st));
    BR_TRY(place_temps(r, st));
    BR_TRY(get_scratch(r, st));
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
    br_arena_init(&r->arena, 0);
    r->m = m;
    r->g = g;
    r->c = *c;
    r->prog = c->program;
    if (r->prog)
        r->c.max_rows = r->prog->rows;
    br_assert(r->c.max_rows > 0 && (!r->prog || r->prog->graph == g));
    code = prepare(r, st);
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
    br_state_plan_fini(&r->plan);
    br_arena_fini(&r->arena);
    br_free(r);
}

void
br_ref_watch(br_ref *r, const br_watch *w)
{
    r->watch = w ? *w : (br_watch){0};
}

int64_t
br_ref_n_vocab(const br_ref *r)
{
    return r->value[r->logits].cols;
}

/* ---- running ------------------------------------------------------------ */

/* Columns that stand apart, into or out of the dense copy: runs that hold the
 * columns s. */
static void
move_columns(const br_ref *r, const br_ir_bind *b, float *dense, size_t rows,
             bool in, br_step_span s)
{
    const ref_value *v = &r->value[b->value];
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
make_view(br_ref *r, const br_ir_bind *b, ref_view *out, int i)
{
    const br_ir_value *x;
    const ref_value *v;

    *out = (ref_view){0};
    if (b->value == BR_IR_NONE)
        return;
    x = &r->g->values[b->value];
    v = &r->value[b->value];
    out->v = x;
    out->cols = (int64_t)b->width * b->count;
    out->t = v->t;
    out->f = v->p;
    if (x->kind == BR_IK_STATE) {
        out->place = &r->plan.place[b->value];
    } else if (x->kind != BR_IK_MODEL) {
        out->stride = (size_t)(together(b) ? v->cols : out->cols);
        out->f = together(b) ? (v->p ? v->p + b->off : NULL) : r->gather[i];
    } else if (x->rank == 1) {
        out->cols = x->dim[0];
    }
}

void
ref_run(br_ref *r, br_ref_state *s, const br_step *step, const ref_tile *tile)
{
    const br_ir_node *n = tile->n;
    ref_call c = {.n = n,
                  .c0 = tile->c0,
                  .c1 = tile->c1,
                  .step = step,
                  .state = s,
                  .act = r->c.act,
                  .s = &r->scratch};

    for (int i = 0; i < n->n_in + n->n_out; i++) {
        const br_ir_bind *b = &n->bind[i];
        bool in = i < n->n_in;

        make_view(r, b, in ? &c.in[i] : &c.out[i - n->n_in], i);
        if (in && b->value != BR_IR_NONE && r->value[b->value].p &&
            r->g->values[b->value].kind == BR_IK_TEMP && !together(b))
            move_columns(r, b, r->gather[i], step->n_rows, true,
                         br_step_columns(n, i, c.c0, c.c1));
    }
    ref_op(&c);
    for (int i = n->n_in; i < n->n_in + n->n_out; i++)
        if (!together(&n->bind[i]))
            move_columns(r, &n->bind[i], r->gather[i], step->n_rows, false,
                         br_step_columns(n, i, c.c0, c.c1));
}

static br_code
check_step(const br_ref *r, const br_ref_state *s, const br_step *step,
           br_status *st)
{
    if (!br_state_plan_same(&r->plan, &s->plan))
        return br_fail(st, BR_E_FORMAT, "step: the state is of another model");
    if (step->n_rows > r->c.max_rows)
        return br_fail(st, BR_E_LIMIT, "step: %u rows, prepared for %u",
                       step->n_rows, r->c.max_rows);
    return br_step_check(step, r->m->hp.n_vocab, s->n_slots, s->plan.n_groups,
                         st);
}

br_code
br_ref_step(br_ref *r, br_ref_state *s, const br_step *step, float *logits,
            br_status *st)
{
    const ref_value *v = &r->value[r->logits];

    BR_TRY(check_step(r, s, step, st));
    for (uint32_t i = 0; !r->prog && i < r->g->n_nodes; i++) {
        ref_tile all = {&r->g->nodes[i], 0, 0};
        br_step_cut cut;

        if (br_step_cut_of(all.n, &cut)) {
            all.c1 = cut.cols;
            ref_run(r, s, step, &all);
            if (r->watch.seen && all.n->n_out > 0)
                r->watch.seen(r->watch.ctx, i,
                              r->value[all.n->bind[all.n->n_in].value].p,
                              r->value[all.n->bind[all.n->n_in].value].cols,
                              step->n_rows);
        }
    }
    if (r->prog)
        ref_run_program(r, s, step);
    for (uint32_t t = 0; logits && t < step->n_rows; t++)
        if (!step->want || step->want[t]) {
            memcpy(logits, v->p + (size_t)t * (size_t)v->cols,
                   (size_t)v->cols * sizeof *logits);
            logits += v->cols;
        }
    return BR_OK;
}

/* ---- states ------------------------------------------------------------- */

static br_code
state_init(br_ref_state *s, const br_ir *g, const uint32_t *n_pages,
           br_status *st)
{
    BR_TRY(br_state_plan_of(&s->plan, g, st));
    for (uint32_t i = 0; i < s->plan.n_groups; i++) {
        s->n_pages[i] = n_pages[i];
        s->pool[i] = br_try_calloc((size_t)n_pages[i] + 1,
                                   s->plan.group[i].page_elems * sizeof(float));
        if (!s->pool[i])
            return ref_no_memory(st);
    }
    s->slots = br_try_calloc((size_t)s->n_slots + 1,
                             s->plan.slot_elems * sizeof(float) + 4);
    return s->slots ? BR_OK : ref_no_memory(st);
}

br_code
br_ref_state_new(br_ref_state **out, const br_ir *g, uint32_t n_slots,
                 const uint32_t *n_pages, br_status *st)
{
    br_ref_state *s = br_try_calloc(1, sizeof *s);
    br_code code;

    *out = NULL;
    if (!s)
        return ref_no_memory(st);
    s->n_slots = n_slots;
    code = state_init(s, g, n_pages, st);
    if (code != BR_OK) {
        br_ref_state_free(s);
        return code;
    }
    *out = s;
    return BR_OK;
}

void
br_ref_state_free(br_ref_state *s)
{
    if (!s)
        return;
    for (uint32_t i = 0; i < s->plan.n_groups; i++)
        br_free(s->pool[i]);
    br_free(s->slots);
    br_state_plan_fini(&s->plan);
    br_free(s);
}

static float *
slot_at(const br_ref_state *s, uint32_t slot)
{
    br_check(slot < s->n_slots && "slots are the state's");
    return s->slots + (uint64_t)slot * s->plan.slot_elems;
}

size_t
br_ref_slot_bytes(const br_ref_state *s)
{
    return s->plan.slot_elems * sizeof(float);
}

void
br_ref_slot_reset(br_ref_state *s, uint32_t slot)
{
    memset(slot_at(s, slot), 0, br_ref_slot_bytes(s));
}

void
br_ref_slot_save(const br_ref_state *s, uint32_t slot, void *out)
{
    memcpy(out, slot_at(s, slot), br_ref_slot_bytes(s));
}

void
br_ref_slot_restore(br_ref_state *s, uint32_t slot, const void *from)
{
    memcpy(slot_at(s, slot), from, br_ref_slot_bytes(s));
}

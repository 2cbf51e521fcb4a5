/* cpu_plan.c - from nodes to phases.
 *
 * Most opcodes take rows one by one: a phase each. What multiplies by matrices
 * first brings rows into the form its weights want; a form that is still there
 * from the node before is not made again, and MATMULs of one x that follow
 * each other share a phase:
 *
 *   q k v        quantise | multiply q, k, v
 *   experts      quantise | plan | multiply | [biases]
 *   shared one   quantise | multiply gate, up, router | act | quantise |
 *                multiply down | join
 *
 * Bindings that stand apart are gathered by the rows that use them, or by a
 * phase of their own before what does not take rows one by one.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/cpu/cpu_int.h"

#include <string.h>

enum { LOOSE_BYTES = 512 << 10 };

typedef struct planner {
    br_cpu *c;
    br_status *st;
    br_ir_bind have[BR_FORM_COUNT]; /* what the buffer of each form holds */
    bool has[BR_FORM_COUNT], has_late[BR_FORM_COUNT];
    bool *late; /* [n_nodes]: see find_late() */
    uint8_t *act[BR_FORM_COUNT];
    size_t act_bytes[BR_FORM_COUNT];
} planner;

static br_code
no_memory(br_status *st)
{
    return br_fail(st, BR_E_OOM, "cpu tier: out of memory");
}

/* ---- views -------------------------------------------------------------- */

static void
view(br_cpu *c, const br_ir_bind *b, ref_view *out, int i)
{
    const br_value_mem *v;
    const br_ir_value *x;

    *out = (ref_view){0};
    if (b->value == BR_IR_NONE)
        return;
    x = &c->v.g->values[b->value];
    v = &c->v.at[b->value];
    out->v = x;
    out->cols = (int64_t)b->width * b->count;
    out->t = v->t;
    out->f = v->p;
    if (x->kind == BR_IK_STATE) {
        out->place = &c->v.plan.place[b->value];
    } else if (x->kind != BR_IK_MODEL) {
        bool apart = !br_bind_together(b);

        out->stride = (size_t)(apart ? out->cols : v->cols);
        out->f = apart ? c->gather[i] : v->p ? v->p + b->off : NULL;
    } else if (x->rank == 1) {
        out->cols = x->dim[0];
    }
}

static cpu_phase *
add(planner *p, const br_ir_node *n, const cpu_kind *kind)
{
    br_cpu *c = p->c;
    cpu_phase *o;

    if (!br_vec_push(&c->phases, ((cpu_phase){.kind = kind, .n = n}))) {
        no_memory(p->st);
        return NULL;
    }
    o = &c->phases.at[c->phases.n - 1];
    o->late = p->late[n - c->v.g->nodes];
    for (int i = 0; i < n->n_in + n->n_out; i++) {
        const br_ir_bind *b = &n->bind[i];

        view(c, b, i < n->n_in ? &o->in[i] : &o->out[i - n->n_in], i);
        o->want = o->want || (b->value != BR_IR_NONE && c->v.at[b->value].want);
    }
    return o;
}

/* Bindings that are gathered before (inputs) or scattered after (outputs). */
static uint8_t
apart(const br_cpu *c, const br_ir_node *n, bool in)
{
    uint8_t bits = 0;

    for (int i = in ? 0 : n->n_in; i < n->n_in + (in ? 0 : n->n_out); i++) {
        const br_ir_bind *b = &n->bind[i];
        uint8_t kind;

        if (b->value == BR_IR_NONE || br_bind_together(b))
            continue;
        kind = c->v.g->values[b->value].kind;
        if (kind == BR_IK_TEMP || kind == BR_IK_STEP)
            bits = (uint8_t)(bits | 1u << i);
    }
    return bits;
}

static cpu_phase *
add_rows(planner *p, const br_ir_node *n, cpu_rows_fn *fn)
{
    cpu_phase *o = add(p, n, &cpu_rows);

    if (o)
        o->rows = fn;
    return o;
}

/* Before and after what does not gather by itself. */
static bool
move_in(planner *p, const br_ir_node *n)
{
    uint8_t bits = apart(p->c, n, true);
    cpu_phase *o = bits ? add_rows(p, n, cpu_rows_nothing) : NULL;

    if (o)
        o->gather = bits;
    return !bits || o;
}

static bool
move_out(planner *p, const br_ir_node *n)
{
    uint8_t bits = apart(p->c, n, false);
    cpu_phase *o = bits ? add_rows(p, n, cpu_rows_nothing) : NULL;

    if (o)
        o->scatter = bits;
    return !bits || o;
}

/* ---- matrices ----------------------------------------------------------- */

cpu_mat *
cpu_matrix(br_cpu *c, const br_ir_node *n, int in, br_status *st)
{
    uint32_t v = n->bind[in].value;
    const br_ir_value *x = &c->v.g->values[v];
    cpu_mat *m = &c->mat[v];
    br_mat_desc d = {.type = c->v.at[v].t->type,
                     .n_in = (uint64_t)x->dim[x->rank - 1],
                     .n_out = (uint64_t)(x->rank > 1 ? x->dim[x->rank - 2] : 1),
                     .isa = c->isa,
                     .exact = c->c.exact,
                     .loose = c->loose};

    if (m->t)
        return m;
    if (br_mat_plan(&m->m, &d, st) != BR_OK) {
        (void)br_prefix(st, "%.*s", (int)br_ir_value_name(c->v.g, v).n,
                        br_ir_value_name(c->v.g, v).p);
        return NULL;
    }
    m->slices = x->rank > 2 ? (uint64_t)x->dim[0] : 1;
    m->t = c->v.at[v].t;
    m->at = c->packed_bytes;
    c->packed_bytes += m->slices * m->m.bytes;
    return m;
}

static cpu_mat *
matrix(planner *p, const br_ir_node *n, int in)
{
    return cpu_matrix(p->c, n, in, p->st);
}

/* Rows of in[0], cut into pieces of the matrix's width, in its form. temp: the
 * rows are memory of a phase before, [max_rows][pieces * n_in]. */
static const uint8_t *
quantise(planner *p, const br_ir_node *n, const cpu_mat *m, uint32_t pieces,
         float *temp)
{
    br_form form = m->m.form;
    const br_ir_bind *b = &n->bind[0];
    bool late = p->late[n - p->c->v.g->nodes];
    cpu_phase *o;

    if (!temp && p->has[form] && p->has_late[form] == late &&
        n->op != BR_IR_LM_HEAD && pieces == 1 &&
        memcmp(&p->have[form], b, sizeof *b) == 0)
        return p->act[form];
    o = add_rows(p, n, NULL);
    if (!o)
        return NULL;
    o->kind = &cpu_quantise;
    o->gather = temp ? 0 : apart(p->c, n, true) & 1;
    o->act = p->act[form];
    o->form = (int)form;
    o->n_in = m->m.n_in;
    o->pieces = pieces;
    o->pick = n->op == BR_IR_LM_HEAD;
    o->temp = temp;
    p->has[form] = !temp && !o->pick && pieces == 1;
    p->has_late[form] = late;
    p->have[form] = *b;
    return p->act[form];
}

static void
add_part(cpu_phase *o, const cpu_mat *m, const uint8_t *act, float *y,
         size_t stride)
{
    br_assert(o->n_parts < CPU_MAX_PARTS);
    o->part[o->n_parts++] = (cpu_part){
        .m = m, .act = act, .o1 = m->m.n_out, .y = y, .stride = stride};
}

/* The MATMULs from node i on that read one x: how many, at most as many as a
 * phase has parts. */
static uint32_t
same_x(const planner *p, uint32_t i)
{
    const br_ir *g = p->c->v.g;
    uint32_t n = 1;

    if (g->nodes[i].op != BR_IR_MATMUL ||
        !br_bind_together(&g->nodes[i].bind[3]))
        return 1;
    while (n < CPU_MAX_PARTS && i + n < g->n_nodes &&
           g->nodes[i + n].op == BR_IR_MATMUL && p->late[i + n] == p->late[i] &&
           br_bind_together(&g->nodes[i + n].bind[3]) &&
           memcmp(&g->nodes[i].bind[0], &g->nodes[i + n].bind[0],
                  sizeof(br_ir_bind)) == 0)
        n++;
    return n;
}

static uint32_t
plan_matmul(planner *p, uint32_t i)
{
    const br_ir_node *n = &p->c->v.g->nodes[i];
    uint32_t count = same_x(p, i);
    const uint8_t *act[CPU_MAX_PARTS];
    const cpu_mat *m[CPU_MAX_PARTS];
    cpu_phase *o;

    for (uint32_t k = 0; k < count; k++) {
        m[k] = matrix(p, n + k, 1);
        act[k] = m[k] ? quantise(p, n + k, m[k], 1, NULL) : NULL;
        if (!act[k])
            return 0;
    }
    o = add(p, n, &cpu_multiply);
    for (uint32_t k = 0; o && k < count; k++) {
        ref_view y, b;

        view(p->c, &n[k].bind[n[k].n_in], &y, n[k].n_in);
        add_part(o, m[k], act[k], y.f, y.stride);
        o->want = o->want || n->op == BR_IR_LM_HEAD;
        if (n->op == BR_IR_MATMUL && n[k].bind[2].value != BR_IR_NONE) {
            view(p->c, &n[k].bind[2], &b, 2);
            o->part[k].bias = b.f;
        }
    }
    for (uint32_t k = 0; o && k < count; k++)
        if (!move_out(p, n + k))
            return 0;
    return o ? count : 0;
}

static bool
plan_heads(planner *p, const br_ir_node *n)
{
    const cpu_mat *m = matrix(p, n, 1);
    const uint8_t *act =
        m ? quantise(p, n, m, (uint32_t)br_ir_i(n, BR_IA_heads, 1), NULL)
          : NULL;
    cpu_phase *o = act ? add(p, n, &cpu_multiply) : NULL;

    if (!o)
        return false;
    o->by_head = true;
    o->pieces = (uint32_t)br_ir_i(n, BR_IA_heads, 1);
    add_part(o, m, act, o->out[0].f, o->out[0].stride);
    return move_out(p, n);
}

/* ---- experts ------------------------------------------------------------ */

static bool
plan_route(planner *p, const br_ir_node *n)
{
    const cpu_mat *m = matrix(p, n, 1);
    const uint8_t *act = m ? quantise(p, n, m, 1, NULL) : NULL;
    cpu_phase *o = act ? add(p, n, &cpu_multiply) : NULL;

    if (!o)
        return false;
    add_part(o, m, act, o->out[0].f, o->out[0].stride);
    return move_out(p, n) && add_rows(p, n, cpu_rows_pick);
}

/* Products by experts go to memory [max_rows * k][width]. */
static float *
pairs(planner *p, const br_ir_node *n, int64_t width)
{
    size_t rows = (size_t)br_ir_i(n, BR_IA_k, 1) * p->c->c.max_rows;
    float *y = br_arena_new(&p->c->arena, float, rows *(size_t)width + 1);

    if (!y)
        no_memory(p->st);
    return y;
}

static bool
plan_gate_up(planner *p, const br_ir_node *n)
{
    int64_t k = br_ir_i(n, BR_IA_k, 1);
    const cpu_mat *gate = matrix(p, n, 1);
    const cpu_mat *up = n->bind[2].value == BR_IR_NONE ? gate : matrix(p, n, 2);
    const uint8_t *a = gate && up ? quantise(p, n, gate, 1, NULL) : NULL;
    const uint8_t *b = a ? quantise(p, n, up, 1, NULL) : NULL;
    cpu_phase *o = b ? add(p, n, &cpu_moe_plan) : NULL;
    size_t ff;

    if (!o)
        return false;
    ff = (size_t)(o->out[0].cols / k);
    if (o->out[0].stride != ff * (size_t)k ||
        o->out[1].stride != ff * (size_t)k) {
        br_fail(p->st, BR_E_UNSUPPORTED,
                "%s: products of experts that stand apart",
                br_ir_opinfo_of(n->op)->name);
        return false;
    }
    o = add(p, n, &cpu_multiply);
    if (!o)
        return false;
    o->by_expert = true;
    add_part(o, gate, a, o->out[0].f, ff);
    add_part(o, up, b, o->out[1].f, ff);
    if (gate == up) { /* one matrix, gate above up */
        o->part[0].o1 = (uint32_t)ff;
        o->part[1].o0 = (uint32_t)ff;
    }
    if (n->bind[3].value == BR_IR_NONE && n->bind[4].value == BR_IR_NONE)
        return true;
    return add_rows(p, n, cpu_rows_bias) != NULL;
}

static bool
plan_down(planner *p, const br_ir_node *n)
{
    const cpu_mat *m = matrix(p, n, 1);
    uint32_t k = (uint32_t)br_ir_i(n, BR_IA_k, 1);
    const uint8_t *act = m ? quantise(p, n, m, k, NULL) : NULL;
    float *y = act ? pairs(p, n, m->m.n_out) : NULL;
    cpu_phase *o = y ? add(p, n, &cpu_moe_plan) : NULL;

    o = o ? add(p, n, &cpu_multiply) : NULL;
    if (!o)
        return false;
    o->by_expert = o->pairs = true;
    add_part(o, m, act, y, m->m.n_out);
    o = add_rows(p, n, cpu_rows_join);
    if (!o)
        return false;
    o->temp = y;
    o->gather = apart(p->c, n, true);
    o->scatter = apart(p->c, n, false);
    return true;
}

/* x gate_w up_w down_w [router_w] residual -> y. temp of a row:
 *     gate [ff] up [ff] down [n] router [1]                                 */
static bool
plan_shared(planner *p, const br_ir_node *n)
{
    const cpu_mat *m[4] = {matrix(p, n, 1), matrix(p, n, 2), matrix(p, n, 3)};
    bool router = n->bind[4].value != BR_IR_NONE;
    const uint8_t *act[4];
    size_t ff, wide, rows = p->c->c.max_rows;
    float *t;
    cpu_phase *o;

    m[3] = router ? matrix(p, n, 4) : m[0];
    if (!m[0] || !m[1] || !m[2] || !m[3])
        return false;
    ff = m[0]->m.n_out;
    wide = 2 * ff + m[2]->m.n_out + 1;
    t = br_arena_new(&p->c->arena, float, rows *(wide + ff));
    for (int i = 0; i < 4; i++)
        act[i] = i == 2 ? NULL : quantise(p, n, m[i], 1, NULL);
    if (!t || !act[0] || !act[1] || !act[3])
        return t ? false : (no_memory(p->st), false);
    o = add(p, n, &cpu_multiply);
    if (!o)
        return false;
    add_part(o, m[0], act[0], t, wide);
    add_part(o, m[1], act[1], t + ff, wide);
    if (router)
        add_part(o, m[3], act[3], t + wide - 1, wide);
    o = add_rows(p, n, cpu_rows_glu); /* to t + rows * wide, [rows][ff] */
    if (!o)
        return false;
    o->temp = t;
    o->n_in = (uint32_t)ff;
    o->pieces = (uint32_t)wide;
    o->act = (uint8_t *)(t + rows * wide);
    act[2] = quantise(p, n, m[2], 1, t + rows * wide);
    o = act[2] ? add(p, n, &cpu_multiply) : NULL;
    if (!o)
        return false;
    add_part(o, m[2], act[2], t + 2 * ff, wide);
    o = add_rows(p, n, cpu_rows_shared);
    if (!o)
        return false;
    o->temp = t + 2 * ff;
    o->pieces = (uint32_t)wide;
    o->gather = apart(p->c, n, true);
    o->scatter = apart(p->c, n, false);
    return true;
}

/* ---- the rest ----------------------------------------------------------- */

static bool
plan_whole(planner *p, const br_ir_node *n, const cpu_kind *kind)
{
    return move_in(p, n) && add(p, n, kind) && move_out(p, n);
}

static bool
plan_delta(planner *p, const br_ir_node *n)
{
    size_t keys = (size_t)(2 * br_ir_i(n, BR_IA_kv_heads, 1) *
                           br_ir_i(n, BR_IA_head_dim, 1));
    size_t first = p->c->phases.n;
    float *t = br_arena_new(&p->c->arena, float, keys * p->c->c.max_rows);

    if (!t)
        return no_memory(p->st), false;
    if (!move_in(p, n) || !add_rows(p, n, cpu_rows_l2) ||
        !add(p, n, &cpu_delta) || !move_out(p, n))
        return false;
    for (; first < p->c->phases.n; first++)
        p->c->phases.at[first].temp = t;
    return true;
}

static bool
plan_rope(planner *p, const br_ir_node *n, cpu_phase *o)
{
    br_cpu *c = p->c;
    const float *freq = o->in[2].f;
    float scale = (float)br_ir_f(n, BR_IA_scale, 1);
    int64_t pairs = br_ir_i(n, BR_IA_n_rot, 0) / 2;
    cpu_table t = {.freq = freq, .scale = scale, .n = pairs};
    size_t size = (size_t)pairs * c->c.max_rows + 1, i;

    for (i = 0; i < c->tables.n; i++)
        if (c->tables.at[i].freq == freq && c->tables.at[i].scale == scale &&
            c->tables.at[i].n == pairs)
            break;
    /* An index for now: the list may yet move. */
    o->per = (uint32_t)i;
    if (i < c->tables.n)
        return true;
    t.cos = br_arena_new(&c->arena, float, size);
    t.sin = br_arena_new(&c->arena, float, size);
    if (t.cos && t.sin && br_vec_push(&c->tables, t))
        return true;
    return no_memory(p->st), false;
}

/* Values (or keys that are values, too) lie by heads: how many, says who reads
 * them. */
static bool
plan_kv(planner *p, const br_ir_node *n, cpu_phase *o)
{
    const br_ir *g = p->c->v.g;
    int in = n->bind[1].value == BR_IR_NONE ? 1 : 2;
    uint32_t state = n->bind[2 + in].value, heads = 0;

    for (uint32_t i = 0; i < g->n_nodes; i++) {
        const br_ir_node *r = &g->nodes[i];

        if ((r->op != BR_IR_FLASH_ATTN && r->op != BR_IR_FLASH_ATTN_BATCHED) ||
            r->bind[in].value != state)
            continue;
        o->pieces = (uint32_t)br_ir_i(r, BR_IA_kv_heads, 1);
        if (heads && heads != o->pieces) {
            br_fail(p->st, BR_E_UNSUPPORTED,
                    "%s: two ways to read its keys and values",
                    br_ir_opinfo_of(n->op)->name);
            return false;
        }
        heads = o->pieces;
    }
    o->pieces = BR_MAX(heads, 1u);
    return true;
}

static bool
plan_rows(planner *p, const br_ir_node *n)
{
    cpu_phase *o = add_rows(p, n, cpu_rows_of(n));

    if (!o)
        return false;
    o->gather = apart(p->c, n, true);
    o->scatter = apart(p->c, n, false);
    if (n->op == BR_IR_KV_WRITE_BATCHED)
        return plan_kv(p, n, o);
    return n->op != BR_IR_ROPE || plan_rope(p, n, o);
}

/* How many nodes it has planned; 0: failed. */
static uint32_t
plan_node(planner *p, uint32_t i)
{
    const br_ir_node *n = &p->c->v.g->nodes[i];

    switch ((br_ir_op)n->op) {
    case BR_IR_MATMUL:
    case BR_IR_MATMUL_WMMA_F16:
    case BR_IR_MATMUL_WMMA_Q4K:
    case BR_IR_LM_HEAD: return plan_matmul(p, i);
    case BR_IR_HEAD_MATMUL: return plan_heads(p, n);
    case BR_IR_MOE_GATE_TOPK: return plan_route(p, n);
    case BR_IR_MOE_GATE_UP: return plan_gate_up(p, n);
    case BR_IR_MOE_DOWN_ACC: return plan_down(p, n);
    case BR_IR_SHARED_EXPERT: return plan_shared(p, n);
    case BR_IR_FLASH_ATTN:
    case BR_IR_FLASH_ATTN_BATCHED:
        return move_in(p, n) && add(p, n, &cpu_attention) &&
               add(p, n, &cpu_fold) && move_out(p, n);
    case BR_IR_SSM_CONV1D: return plan_whole(p, n, &cpu_conv);
    case BR_IR_SSM_SCAN: return plan_whole(p, n, &cpu_scan);
    case BR_IR_SSM_DELTA_NET: return plan_delta(p, n);
    case BR_IR_BARRIER: return 1; /* every phase is one */
    default: break;
    }
    if (cpu_rows_of(n))
        return plan_rows(p, n);
    br_fail(p->st, BR_E_UNSUPPORTED, "nodes[%u]: the cpu tier has no %s", i,
            br_ir_opinfo_of(n->op)->name);
    return 0;
}

/* ---- late nodes ---------------------------------------------------------- */

/* Does a row need none of the others' (keys and values are written before), and
 * is nothing changed but what it writes? */
static bool
may_be_late(const br_ir_node *n)
{
    switch ((br_ir_op)n->op) {
    case BR_IR_MATMUL:
    case BR_IR_MATMUL_WMMA_F16:
    case BR_IR_MATMUL_WMMA_Q4K:
    case BR_IR_RMS_NORM:
    case BR_IR_RESIDUAL_RMS_NORM:
    case BR_IR_SSM_GATED_NORM:
    case BR_IR_ADD:
    case BR_IR_MUL:
    case BR_IR_SCALE:
    case BR_IR_SOFTCAP:
    case BR_IR_COPY:
    case BR_IR_ACT:
    case BR_IR_GLU:
    case BR_IR_ROPE:
    case BR_IR_FLASH_ATTN:
    case BR_IR_FLASH_ATTN_BATCHED: return true;
    default: return false;
    }
}

/* Behind the last layer's keys and values nothing goes from row to row, and
 * LM_HEAD reads rows that want logits: of a prompt the last one, if any. So
 * nodes whose values only LM_HEAD or such nodes read need no others: 6 % of a
 * prompt of 512 in 16 layers. */
static br_code
find_late(planner *p)
{
    const br_ir *g = p->c->v.g;
    bool *asked = br_try_calloc(g->n_values + 1, sizeof *asked); /* all rows */

    p->late = br_try_calloc(g->n_nodes + 1, sizeof *p->late);
    for (uint32_t i = g->n_nodes; asked && p->late && i-- > 0;) {
        const br_ir_node *n = &g->nodes[i];
        bool late = may_be_late(n), head = n->op == BR_IR_LM_HEAD;

        for (int b = n->n_in; b < n->n_in + n->n_out; b++) {
            uint32_t v = n->bind[b].value;

            late = late && v != BR_IR_NONE && !asked[v] &&
                   !p->c->v.at[v].want && g->values[v].kind == BR_IK_TEMP;
        }
        p->late[i] = late;
        for (int b = 0; b < n->n_in; b++)
            if (n->bind[b].value != BR_IR_NONE && !late && !head)
                asked[n->bind[b].value] = true;
    }
    br_free(asked);
    return asked && p->late ? BR_OK : no_memory(p->st);
}

/* ---- memory ------------------------------------------------------------- */

/* Rows of activations in every form any matrix wants; experts see k rows for
 * each. */
static br_code
get_act(planner *p)
{
    br_cpu *c = p->c;
    size_t most[BR_FORM_COUNT] = {0};

    for (uint32_t i = 0; i < c->v.g->n_nodes; i++) {
        const br_ir_node *n = &c->v.g->nodes[i];
        int64_t times = n->op == BR_IR_HEAD_MATMUL ? br_ir_i(n, BR_IA_heads, 1)
                        : n->op == BR_IR_MOE_DOWN_ACC ? br_ir_i(n, BR_IA_k, 1)
                                                      : 1;

        for (int b = 0; b < n->n_in; b++) {
            const cpu_mat *m;
            size_t bytes;

            if (n->bind[b].value == BR_IR_NONE || !br_bind_is_matrix(n, b) ||
                n->op == BR_IR_EMBED)
                continue;
            m = matrix(p, n, b);
            if (!m)
                return p->st->code;
            bytes = br_act_bytes(m->m.form, m->m.n_in) * (size_t)times;
            most[m->m.form] = BR_MAX(most[m->m.form], bytes);
        }
    }
    for (int f = 0; f < BR_FORM_COUNT; f++) {
        uint8_t *a = br_arena_zero(&c->arena, most[f] * c->c.max_rows + 64, 1);

        if (!a)
            return no_memory(p->st);
        p->act[f] = a + (64 - (uintptr_t)a % 64) % 64;
        for (uint32_t i = 0; i < c->n_threads; i++) {
            a = br_arena_zero(&c->arena, most[f] + 128, 1);
            if (!a)
                return no_memory(p->st);
            c->worker[i].act[f] = a + (64 - (uintptr_t)a % 64) % 64;
        }
    }
    return BR_OK;
}

br_code
cpu_moe_new(cpu_moe *m, br_arena *a, size_t pairs, size_t experts,
            br_status *st)
{
    m->expert = br_arena_new(a, uint32_t, experts + 1);
    m->start = br_arena_new(a, uint32_t, experts + 2);
    m->count = br_arena_new(a, uint32_t, experts + 1);
    m->row = br_arena_new(a, uint32_t, pairs + 1);
    m->pair = br_arena_new(a, uint32_t, pairs + 1);
    return m->expert && m->start && m->count && m->row && m->pair
               ? BR_OK
               : no_memory(st);
}

static br_code
get_moe(br_cpu *c, br_status *st)
{
    size_t pairs = 0, experts = 0;

    for (uint32_t i = 0; i < c->v.g->n_nodes; i++) {
        const br_ir_node *n = &c->v.g->nodes[i];

        if (n->op != BR_IR_MOE_GATE_UP && n->op != BR_IR_MOE_DOWN_ACC)
            continue;
        pairs = BR_MAX(pairs, (size_t)br_ir_i(n, BR_IA_k, 1) * c->c.max_rows);
        experts =
            BR_MAX(experts, (size_t)c->v.g->values[n->bind[1].value].dim[0]);
    }
    return cpu_moe_new(&c->moe, &c->arena, pairs, experts, st);
}

/* Numbers that begin with a line: a vector of them is one, not a part of two. */
static float *
whole_lines(br_arena *a, size_t n)
{
    float *x = br_arena_new(a, float, n + 16);

    return x ? x + (64 - (uintptr_t)x % 64) / sizeof *x % 16 : NULL;
}

static br_code
get_workers(br_cpu *c, br_status *st)
{
    size_t n = (size_t)c->v.widest, att = 0;
    bool ok;

    for (uint32_t i = 0; i < c->v.g->n_nodes; i++) {
        const br_ir_node *nd = &c->v.g->nodes[i];
        size_t k = (size_t)br_ir_i(nd, BR_IA_head_dim, 0);

        att = BR_MAX(
            att, br_cpu_att_floats(k, (size_t)br_ir_i(nd, BR_IA_head_v, 0)));
    }

    c->worker = br_arena_new(&c->arena, cpu_worker, c->n_threads);
    ok = c->worker != NULL;
    for (uint32_t i = 0; ok && i < c->n_threads; i++) {
        cpu_worker *w = &c->worker[i];

        w->att = whole_lines(&c->arena, att);
        w->wide = whole_lines(&c->arena, n);
        w->ref.row = br_arena_new(&c->arena, float, n);
        ok = w->att && w->wide && w->ref.row;
        for (size_t k = 0; ok && k < BR_COUNT(w->ref.wide); k++)
            ok = (w->ref.wide[k] = br_arena_new(&c->arena, float, n)) != NULL;
    }
    for (int i = 0; ok && i < BR_IR_MAX_BINDINGS; i++)
        ok =
            (c->gather[i] = br_arena_new(
                 &c->arena, float, (size_t)c->v.apart * c->c.max_rows)) != NULL;
    c->want = ok ? br_arena_new(&c->arena, uint32_t, c->c.max_rows) : NULL;
    c->group = ok ? br_arena_new(&c->arena, uint32_t, c->c.max_rows + 1) : NULL;
    c->split.first =
        ok ? br_arena_new(&c->arena, uint32_t, c->c.max_rows + 1) : NULL;
    c->split.at = ok ? br_arena_new(&c->arena, size_t, c->c.max_rows) : NULL;
    c->split.lent = ok ? br_arena_new(&c->arena, cpu_lent, c->n_threads) : NULL;
    c->most_kept = CPU_KEPT;
    /* Not touched before it is used. */
    c->kept_blocks =
        att ? br_arena_get(&c->arena, CPU_KEPT * sizeof(float)) : NULL;
    return c->want && c->group && c->split.first && c->split.at &&
                   c->split.lent && (!att || c->kept_blocks)
               ? BR_OK
               : no_memory(st);
}

/* Where panels of twelve bits are as they were, for a tile of many rows: half of
 * a second cache, two of the widest at least. */
static br_code
get_loose(br_cpu *c, br_status *st)
{
    size_t most = 0;

    for (uint32_t v = 0; v < c->v.g->n_values; v++)
        if (c->mat[v].t)
            most = BR_MAX(most, br_mat_loose_bytes(&c->mat[v].m));
    if (most == 0)
        return BR_OK;
    c->loose_bytes = BR_MAX(most, LOOSE_BYTES);
    for (uint32_t i = 0; i < c->n_threads; i++) {
        c->worker[i].loose =
            (uint8_t *)whole_lines(&c->arena, c->loose_bytes / sizeof(float));
        if (!c->worker[i].loose)
            return no_memory(st);
    }
    return BR_OK;
}

static br_code
plan_nodes(planner *p)
{
    br_cpu *c = p->c;
    const br_ir *g = c->v.g;

    /* tables come first; there may be none */
    if (g->n_nodes > 0 && !add(p, &g->nodes[0], &cpu_tables))
        return p->st->code;
    for (uint32_t i = 0, n; i < g->n_nodes; i += n) {
        size_t before = c->phases.n;

        n = plan_node(p, i);
        if (n == 0)
            return p->st->code;
        if (c->phases.n > before) {
            c->phases.at[c->phases.n - 1].n = &g->nodes[i];
            c->phases.at[c->phases.n - 1].n_done = n;
        }
    }
    for (size_t i = 0; i < c->phases.n; i++)
        if (c->phases.at[i].n->op == BR_IR_ROPE)
            c->phases.at[i].table = &c->tables.at[c->phases.at[i].per];
    return BR_OK;
}

br_code
cpu_plan(br_cpu *c, br_status *st)
{
    br_status mine = {0};
    planner p = {.c = c, .st = st ? st : &mine};
    br_code code;

    c->mat = br_arena_new(&c->arena, cpu_mat, c->v.g->n_values + 1);
    if (!c->mat)
        return no_memory(st);
    BR_TRY(get_workers(c, st));
    BR_TRY(get_moe(c, st));
    BR_TRY(get_act(&p));
    code = find_late(&p);
    if (code == BR_OK)
        code = plan_nodes(&p);
    br_free(p.late);
    return code == BR_OK ? get_loose(c, st) : code;
}

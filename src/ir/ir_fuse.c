/* ir_fuse.c - nodes that a tier likes to compute in one go become one node.
 *
 *   RMS_NORM, 3 MATMULs of it         RMS_NORM_FUSED_QKV
 *   RMS_NORM, 2 MATMULs of it         RMS_NORM_FUSED_MLP_GATE_UP
 *   RMS_NORM, ROPE, KV_WRITE_BATCHED  RMS_NORM_FUSED_ROPE_KV_WRITE
 *   MOE_DOWN_ACC, ADD                 MOE_DOWN_ACC with its residual
 *   ADD, RMS_NORM of the sum          RESIDUAL_RMS_NORM
 *
 * Why       a node is a wait for everybody; a norm that each projection does
 *           for itself costs less than one.
 * Requires  a verified graph. What is between two parts is read by them alone
 *           (of a sum, the sum stays).
 * Changes   never a bit of what comes out: a fused opcode is its parts
 *           (arithmetic.md), and a part moves only to where its inputs are.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "ir/ir_int.h"

#include <string.h>

typedef struct use { /* a binding that reads a value */
    uint32_t node;
    int bind;
} use;

/* A node of the new graph: what it is, and whose attributes it has. */
typedef struct made {
    br_ir_node_desc d;
    struct {
        const br_ir_node *of;
        uint32_t mask;
    } attrs[3];
    bool gone; /* part of another */
} made;

typedef struct fuser {
    const br_ir *g;
    br_arena a;
    made *node; /* [n_nodes], at the place of the last part */
    use *use;
    uint32_t *use_off; /* value -> its uses, by node */
    uint32_t *value;   /* old value -> new */
    br_ir_builder *b;
} fuser;

static br_code
no_memory(br_status *st)
{
    return br_fail(st, BR_E_OOM, "fusing: out of memory");
}

/* ---- reading ------------------------------------------------------------ */

static bool
find_uses(fuser *f)
{
    const br_ir *g = f->g;
    uint32_t *off = br_arena_new(&f->a, uint32_t, g->n_values + 2), n = 0;

    if (!off)
        return false;
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < g->n_nodes; i++)
            for (int b = 0; b < g->nodes[i].n_in; b++) {
                uint32_t v = g->nodes[i].bind[b].value;

                if (v != BR_IR_NONE && pass == 0)
                    off[v + 2]++;
                else if (v != BR_IR_NONE)
                    f->use[off[v + 1]++] = (use){i, b};
            }
        for (uint32_t v = 0; pass == 0 && v < g->n_values; v++)
            n = off[v + 2] += off[v + 1];
        if (pass == 0)
            f->use = br_arena_new(&f->a, use, n + 1);
        if (!f->use)
            return false;
    }
    f->use_off = off;
    return true;
}

static uint32_t
n_uses(const fuser *f, uint32_t v)
{
    return f->use_off[v + 1] - f->use_off[v];
}

static bool
whole(const fuser *f, const br_ir_bind *b)
{
    return b->value != BR_IR_NONE && b->off == 0 &&
           (b->count == 1 || b->stride == b->width) &&
           (int64_t)b->width * b->count == br_ir_cols(&f->g->values[b->value]);
}

static bool
rows(const fuser *f, const br_ir_bind *b)
{
    return b->value != BR_IR_NONE && f->g->values[b->value].kind != BR_IK_MODEL;
}

/* Is use k of what the node writes first its input `bind`, whole, by an
 * opcode that is still on its own? */
static const br_ir_node *
reader(const fuser *f, const br_ir_node *n, uint32_t k, int op, int bind)
{
    const br_ir_bind *y = &n->bind[n->n_in];
    const use *u = &f->use[f->use_off[y->value] + k];
    const br_ir_node *r = &f->g->nodes[u->node];

    return whole(f, y) && f->g->values[y->value].kind == BR_IK_TEMP &&
                   r->op == op && u->bind == bind && whole(f, &r->bind[bind]) &&
                   !f->node[u->node].gone && (int)f->node[u->node].d.op == op
               ? r
               : NULL;
}

/* The only one that reads it. */
static const br_ir_node *
sole(const fuser *f, const br_ir_node *n, int op, int bind)
{
    uint32_t v = n->bind[n->n_in].value;

    return n_uses(f, v) == 1 ? reader(f, n, 0, op, bind) : NULL;
}

static made *
made_of(fuser *f, const br_ir_node *n)
{
    return &f->node[n - f->g->nodes];
}

/* ---- patterns ----------------------------------------------------------- */

static void
projections(fuser *f, const br_ir_node *norm)
{
    const br_ir_node *m[3];
    uint32_t n = n_uses(f, norm->bind[2].value);
    br_ir_node_desc d = {.n_in = 2, .layer = norm->layer};
    made *at;

    if (n < 2 || n > 3 || norm->bind[1].value == BR_IR_NONE)
        return;
    for (uint32_t k = 0; k < n; k++) {
        m[k] = reader(f, norm, k, BR_IR_MATMUL, 0);
        if (!m[k] || m[k]->bind[2].value != BR_IR_NONE)
            return;
    }
    d.op = n == 3 ? BR_IR_RMS_NORM_FUSED_QKV : BR_IR_RMS_NORM_FUSED_MLP_GATE_UP;
    d.in[0] = norm->bind[0];
    d.in[1] = norm->bind[1];
    for (uint32_t k = 0; k < n; k++) {
        d.in[d.n_in++] = m[k]->bind[1];
        d.out[d.n_out++] = m[k]->bind[3];
        made_of(f, m[k])->gone = k > 0; /* all are there by the first */
    }
    made_of(f, norm)->gone = true;
    at = made_of(f, m[0]);
    *at = (made){.d = d, .attrs = {{norm, UINT32_MAX}}};
}

static void
norm_rope_write(fuser *f, const br_ir_node *norm)
{
    const br_ir_node *r = sole(f, norm, BR_IR_ROPE, 0);
    const br_ir_node *w = r ? sole(f, r, BR_IR_KV_WRITE_BATCHED, 0) : NULL;
    made *at;

    if (!w || norm->bind[1].value == BR_IR_NONE ||
        w->bind[1].value == BR_IR_NONE ||
        br_ir_i(norm, BR_IA_width, 0) != br_ir_i(r, BR_IA_head_dim, 1))
        return;
    made_of(f, norm)->gone = made_of(f, r)->gone = true;
    at = made_of(f, w);
    *at = (made){
        .d = {.op = BR_IR_RMS_NORM_FUSED_ROPE_KV_WRITE,
              .layer = norm->layer,
              .n_in = 7,
              .in = {norm->bind[0], norm->bind[1], r->bind[2], w->bind[1],
                     w->bind[2], w->bind[3], w->bind[4]}},
        .attrs = {{norm, 1u << BR_IA_eps}, {r, UINT32_MAX}, {w, UINT32_MAX}}};
}

static void
down_and_add(fuser *f, const br_ir_node *down)
{
    const br_ir_node *add = sole(f, down, BR_IR_ADD, 0);
    made *at;

    if (!add || down->bind[6].value != BR_IR_NONE || !rows(f, &add->bind[1]))
        return;
    made_of(f, down)->gone = true;
    at = made_of(f, add);
    *at = (made){.d = {.op = BR_IR_MOE_DOWN_ACC,
                       .layer = down->layer,
                       .n_in = 7,
                       .n_out = 1,
                       .out = {add->bind[2]}},
                 .attrs = {{down, UINT32_MAX}}};
    memcpy(at->d.in, down->bind, 6 * sizeof *at->d.in);
    at->d.in[6] = add->bind[1];
}

static void
add_and_norm(fuser *f, const br_ir_node *add)
{
    const br_ir_node *norm = NULL;
    made *at = made_of(f, add);

    for (uint32_t k = 0; !norm && k < n_uses(f, add->bind[2].value); k++)
        norm = reader(f, add, k, BR_IR_RMS_NORM, 0);
    if (!norm || norm->bind[1].value == BR_IR_NONE || !rows(f, &add->bind[1]))
        return;
    made_of(f, norm)->gone = true;
    *at = (made){.d = {.op = BR_IR_RESIDUAL_RMS_NORM,
                       .layer = add->layer,
                       .n_in = 3,
                       .n_out = 2,
                       .in = {add->bind[0], add->bind[1], norm->bind[1]},
                       .out = {add->bind[2], norm->bind[2]}},
                 .attrs = {{norm, UINT32_MAX}}};
}

/* ---- writing ------------------------------------------------------------ */

static br_ir_bind
moved(fuser *f, br_ir_bind b)
{
    const br_ir_value *v;
    br_ir_desc d = {.rank = 0};

    if (b.value == BR_IR_NONE)
        return b;
    v = &f->g->values[b.value];
    if (f->value[b.value] == BR_IR_NONE) {
        d.name = f->g->strings + v->name;
        d.dtype = v->dtype;
        d.rank = v->rank;
        d.layer = v->layer;
        d.data = v->data == BR_IR_NONE ? NULL : f->g->data + v->data;
        memcpy(d.dim, v->dim, sizeof d.dim);
        f->value[b.value] = br_ir_add_value(f->b, &d);
    }
    b.value = f->value[b.value];
    return b;
}

static void
write_node(fuser *f, const made *m)
{
    br_ir_node_desc d = m->d;
    uint32_t done = 0;

    for (int i = 0; i < d.n_in; i++)
        d.in[i] = moved(f, d.in[i]);
    for (int i = 0; i < d.n_out; i++)
        d.out[i] = moved(f, d.out[i]);
    (void)br_ir_add_node(f->b, &d);
    for (size_t k = 0; k < BR_COUNT(m->attrs) && m->attrs[k].of; k++)
        for (int a = 0; a < BR_IA_COUNT; a++) {
            const br_ir_node *n = m->attrs[k].of;

            if (!br_ir_has(n, (br_ir_attr)a) ||
                !(m->attrs[k].mask & ~done & 1u << a))
                continue;
            done |= 1u << a;
            if (br_ir_attr_type(a) == 'I')
                br_ir_set_i(f->b, (br_ir_attr)a, br_ir_i(n, (br_ir_attr)a, 0));
            else
                br_ir_set_f(f->b, (br_ir_attr)a,
                            (float)br_ir_f(n, (br_ir_attr)a, 0));
        }
}

static void
as_they_are(fuser *f)
{
    for (uint32_t i = 0; i < f->g->n_nodes; i++) {
        const br_ir_node *n = &f->g->nodes[i];
        made *m = &f->node[i];

        *m = (made){.d = {.op = (br_ir_op)n->op,
                          .layer = n->layer,
                          .n_in = n->n_in,
                          .n_out = n->n_out},
                    .attrs = {{n, UINT32_MAX}}};
        memcpy(m->d.in, n->bind, n->n_in * sizeof *m->d.in);
        memcpy(m->d.out, n->bind + n->n_in, n->n_out * sizeof *m->d.out);
    }
}

static void
each(fuser *f, int op, void (*pattern)(fuser *, const br_ir_node *))
{
    for (uint32_t i = 0; i < f->g->n_nodes; i++)
        if (f->g->nodes[i].op == op && !f->node[i].gone &&
            (int)f->node[i].d.op == op)
            pattern(f, &f->g->nodes[i]);
}

static br_code
fuse(fuser *f, br_ir **out, br_status *st)
{
    const br_ir *g = f->g;

    f->node = br_arena_new(&f->a, made, g->n_nodes + 1);
    f->value = br_arena_new(&f->a, uint32_t, g->n_values + 1);
    f->b = br_ir_builder_new(g->name, g->stage);
    if (!f->node || !f->value || !f->b || !find_uses(f))
        return no_memory(st);
    memset(f->value, 0xff, (g->n_values + 1) * sizeof *f->value);
    as_they_are(f);
    each(f, BR_IR_RMS_NORM, norm_rope_write);
    each(f, BR_IR_RMS_NORM, projections);
    each(f, BR_IR_MOE_DOWN_ACC, down_and_add);
    each(f, BR_IR_ADD, add_and_norm);
    /* What the step brings, also where no node asks for it. */
    for (uint32_t v = 0; v < g->n_values; v++)
        if (g->values[v].kind == BR_IK_STEP)
            (void)moved(f, (br_ir_bind){.value = v});
    for (uint32_t i = 0; i < g->n_nodes; i++)
        if (!f->node[i].gone)
            write_node(f, &f->node[i]);
    return br_ir_freeze(f->b, out, st);
}

br_code
br_ir_fuse(br_ir **out, const br_ir *g, br_status *st)
{
    fuser f = {.g = g};
    br_code code;

    *out = NULL;
    br_arena_init(&f.a, 0);
    code = fuse(&f, out, st);
    br_ir_builder_free(f.b);
    br_arena_fini(&f.a);
    return code;
}

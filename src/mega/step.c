/* step.c - tiles of graph nodes: what they touch, what they cost, and when a
 * task that computes one is legal.
 *
 * All of it is read from step.def and from the node's bindings; the node has
 * been verified (ir_verify.c), so widths agree and columns lie in their values.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "mega/step.h"
#include "model/quant.h"

#include <stdio.h>
#include <string.h>

enum cols_of { NONE, OUT, RANK, SIDE, KV };
enum grain_of { ALL = -5, HEAD, HEAD_V, HEAD_DIM, WIDTH };

static const struct step_row {
    const char *part; /* a letter for each binding; NULL: no task */
    int8_t cols, grain;
} rows[BR_IR_OP_LIMIT] = {
#define S(op, cols, grain, part) [BR_IR_##op] = {part, cols, grain},
#include "mega/step.def"
#undef S
};

static int64_t
width(const br_ir_bind *b)
{
    return b->value == BR_IR_NONE ? 0 : (int64_t)b->width * b->count;
}

static bool
together(const br_ir_bind *b)
{
    return b->count == 1 || b->stride == b->width;
}

/* ---- tiles -------------------------------------------------------------- */

static int
keys(const br_ir_node *n)
{
    return n->op == BR_IR_KV_WRITE_BATCHED ? 3 : 5;
}

static int64_t
cols_of(const br_ir_node *n)
{
    const br_ir_bind *out = &n->bind[n->n_in];
    int64_t cols = 0;

    switch ((enum cols_of)rows[n->op].cols) {
    case NONE: break;
    case OUT: return width(out);
    case RANK: return width(out) / br_ir_i(n, BR_IA_k, 1);
    case KV: return width(&n->bind[keys(n)]);
    case SIDE:
        for (int i = 0; i < n->n_out; i++)
            cols += width(&out[i]);
        break;
    }
    return cols;
}

static int64_t
grain_of(const br_ir_node *n, int64_t cols)
{
    const br_ir_bind *values = &n->bind[keys(n) + 1];
    int64_t grain = rows[n->op].grain;

    switch (rows[n->op].grain) {
    case ALL: return cols;
    case HEAD: grain = cols / br_ir_i(n, BR_IA_heads, 1); break;
    case HEAD_V: grain = br_ir_i(n, BR_IA_head_v, cols); break;
    case HEAD_DIM: grain = br_ir_i(n, BR_IA_head_dim, cols); break;
    case WIDTH: grain = br_ir_i(n, BR_IA_width, cols); break;
    default: break;
    }
    if (rows[n->op].cols == KV && width(values) && width(values) != cols)
        return cols;
    for (int b = 0; b < n->n_in + n->n_out; b++) {
        const br_ir_bind *x = &n->bind[b];

        if (x->value == BR_IR_NONE || together(x))
            continue;
        if (rows[n->op].part[b] != 's')
            return cols;
        /* Whole runs only, so that they stay a rectangle. */
        if (b >= n->n_in && grain % x->width)
            grain = x->width % grain ? cols : x->width;
    }
    return grain;
}

bool
br_step_cut_of(const br_ir_node *n, br_step_cut *c)
{
    *c = (br_step_cut){0, 0};
    if (n->op >= BR_IR_OP_LIMIT || !rows[n->op].part)
        return false;
    c->cols = cols_of(n);
    c->grain = grain_of(n, c->cols);
    return true;
}

static br_step_span
part_of(int64_t c0, int64_t c1, int64_t cols, int64_t of, int64_t whole)
{
    return (br_step_span){c0 * of / cols * whole,
                          (c1 * of + cols - 1) / cols * whole};
}

br_step_span
br_step_columns(const br_ir_node *n, int b, int64_t c0, int64_t c1)
{
    int64_t cols = cols_of(n), w = width(&n->bind[b]), at = 0, heads;

    switch (rows[n->op].part[b]) {
    case 's': return part_of(c0, c1, cols, w, 1);
    case 'h':
        heads = br_ir_i(n, BR_IA_kv_heads, 1);
        return part_of(c0, c1, cols, heads, w / heads);
    case 'p':
        for (int i = n->n_in; i < b; i++)
            at += width(&n->bind[i]);
        return (br_step_span){BR_MIN(BR_MAX(c0 - at, 0), w),
                              BR_MAX(BR_MIN(c1 - at, w), 0)};
    default: return (br_step_span){0, w};
    }
}

int
br_step_parts(const br_ir_node *n)
{
    return (int)strlen(rows[n->op].part);
}

bool
br_step_is_side(const br_ir_node *n)
{
    return rows[n->op].cols == SIDE;
}

int64_t
br_step_inner(const br_ir_node *n, int b)
{
    const br_ir_bind *x = &n->bind[b];

    if (x->value == BR_IR_NONE)
        return 0;
    if (!together(x))
        return x->stride;
    return rows[n->op].part && rows[n->op].part[b] == 'e' ? cols_of(n) : 0;
}

void
br_step_operands_of(const br_ir_node *n, br_step_operands *o)
{
    br_ir_role role;

    *o = (br_step_operands){0, 0, {0}, {0}};
    for (int b = 0; b < n->n_in + n->n_out; b++) {
        if (n->bind[b].value == BR_IR_NONE)
            continue;
        if (b < n->n_in)
            o->in[o->n_in++] = (uint8_t)b;
        else
            o->out[o->n_out++] = (uint8_t)b;
    }
    for (int b = 0; b < n->n_in; b++)
        if (n->bind[b].value != BR_IR_NONE &&
            br_ir_role_at(n->op, false, b, &role) && role.inplace)
            o->out[o->n_out++] = (uint8_t)b;
}

const br_ir_node *
br_step_node(const br_mega_prog *p, const br_mega_task *t)
{
    int64_t i;

    if (!p->graph || !br_mega_is_step(t->op) ||
        !br_mega_get_i(t, BR_MP_node, &i) || i < 0 || i >= p->graph->n_nodes ||
        p->graph->nodes[i].op + BR_MOP_STEP != t->op)
        return NULL;
    return &p->graph->nodes[i];
}

/* ---- rectangles --------------------------------------------------------- */

/* Columns [a, b) of a row, in the matrix that the buffer is. Exact, or the
 * rows that hold them. */
static bool
run_rect(const br_op_val *v, int64_t a, int64_t b, br_mega_rect *r)
{
    int64_t s = v->cols;

    *r = (br_mega_rect){a / s, (b + s - 1) / s, 0, s};
    if (a >= b) {
        *r = (br_mega_rect){0, 0, 0, 0};
        return true;
    }
    if (r->r1 - r->r0 == 1) {
        r->c0 = a % s;
        r->c1 = (b - 1) % s + 1;
        return true;
    }
    return a % s == 0 && b % s == 0;
}

static bool
rect_of(const br_ir_node *n, int b, const br_op_val *v, int64_t c0, int64_t c1,
        br_mega_rect *r)
{
    const br_ir_bind *x = &n->bind[b];
    br_step_span s = br_step_columns(n, b, c0, c1);
    int64_t cols = cols_of(n), from = x->off, w = x->width, i0, i1;

    if (rows[n->op].part[b] == 'e' && v->cols == cols && from == 0 &&
        width(x) == v->numel) {
        *r = (br_mega_rect){0, v->rows, c0, c1};
        return true;
    }
    if (together(x))
        return run_rect(v, from + s.from, from + s.to, r) &&
               (rows[n->op].part[b] != 'e' || cols == c1 - c0 ||
                width(x) == cols);
    i0 = s.from / w;
    i1 = (s.to + w - 1) / w;
    if ((int64_t)x->stride == v->cols && from % v->cols + w <= v->cols) {
        *r = (br_mega_rect){from / v->cols + i0, from / v->cols + i1,
                            from % v->cols, from % v->cols + w};
        return s.from % w == 0 && s.to % w == 0;
    }
    (void)run_rect(v, from + i0 * x->stride, from + (i1 - 1) * x->stride + w,
                   r);
    return i1 - i0 == 1 && s.from == i0 * w && s.to == i1 * w;
}

/* ---- the rule ----------------------------------------------------------- */

#define LL(x) ((long long)(x))

static bool
bad(br_op_call *c, const char *why)
{
    snprintf(c->why, sizeof c->why, "%s", why);
    return false;
}

static bool
bad_operands(br_op_call *c, const br_ir_node *n, bool write)
{
    br_step_operands o;
    br_str s = {0};

    br_step_operands_of(n, &o);
    for (uint32_t k = 0; k < (write ? o.n_out : o.n_in); k++)
        br_str_printf(&s, "%s%u", k ? ", " : "",
                      n->bind[write ? o.out[k] : o.in[k]].value);
    snprintf(c->why, sizeof c->why, "node %lld has the %s [%.120s]",
             LL(c->i[BR_MP_node]), write ? "outputs" : "inputs", br_str_z(&s));
    br_str_fini(&s);
    return false;
}

static bool
operands_match(br_op_call *c, const br_ir_node *n, const br_step_operands *o)
{
    const br_mega_task *t = c->task;
    bool ok = t->n_in == o->n_in;

    for (uint32_t k = 0; ok && k < o->n_in; k++)
        ok = t->in[k] == n->bind[o->in[k]].value;
    if (!ok)
        return bad_operands(c, n, false);
    ok = t->n_out == o->n_out;
    for (uint32_t k = 0; ok && k < o->n_out; k++)
        ok = t->out[k] == n->bind[o->out[k]].value;
    return ok || bad_operands(c, n, true);
}

static bool
tile_fine(br_op_call *c, const br_step_cut *cut, int64_t c0, int64_t c1)
{
    if (c0 >= 0 && c1 > c0 && c1 <= cut->cols && c0 % cut->grain == 0 &&
        (c1 % cut->grain == 0 || c1 == cut->cols))
        return true;
    snprintf(c->why, sizeof c->why,
             "columns [%lld,%lld) are no whole grains of %lld within %lld",
             LL(c0), LL(c1), LL(cut->grain), LL(cut->cols));
    return false;
}

/* Weights are only read, and by whoever likes: their part is left whole. */
static void
read_rects(br_op_call *c, const br_ir_node *n, const br_step_operands *o,
           int64_t c0, int64_t c1)
{
    bool kv = rows[n->op].cols == KV; /* names the place, reads nothing */

    for (uint32_t k = 0; k < o->n_in; k++) {
        if (c->in[k]->kind == BR_MBK_WEIGHT || c->in[k]->kind == BR_MBK_CONST)
            continue;
        (void)rect_of(n, o->in[k], c->in[k], c0, c1, &c->r[k]);
        c->partial |= 1u << k;
        if (kv && o->in[k] >= keys(n))
            c->unread |= 1u << k;
    }
}

bool
br_step_rule(br_op_call *c)
{
    int64_t id = c->i[BR_MP_node], c0 = c->i[BR_MP_n_off];
    int64_t c1 = c0 + c->i[BR_MP_N_tile];
    const br_ir_node *n;
    br_step_operands o;
    br_step_cut cut;

    if (!c->graph)
        return bad(c, "the program carries no graph in meta.extensions");
    if (id < 0 || id >= c->graph->n_nodes)
        return bad(c, "node is not one of the graph's");
    n = &c->graph->nodes[id];
    if (n->op + BR_MOP_STEP != c->op)
        return bad(c, "the graph's node has another opcode");
    if (!br_step_cut_of(n, &cut))
        return bad(c, "no task computes this opcode");
    br_step_operands_of(n, &o);
    if (!operands_match(c, n, &o) || !tile_fine(c, &cut, c0, c1))
        return false;
    read_rects(c, n, &o, c0, c1);
    for (uint32_t k = 0; k < o.n_out; k++)
        if (!rect_of(n, o.out[k], c->outs[k], c0, c1, &c->ws[k]))
            return bad(c, "what the tile writes is no rectangle");
    return true;
}

/* ---- the program's side of a value -------------------------------------- */

int
br_step_kind(const br_ir *g, uint32_t v)
{
    switch ((br_ir_kind)g->values[v].kind) {
    case BR_IK_MODEL:
        return g->values[v].data == BR_IR_NONE ? BR_MBK_WEIGHT : BR_MBK_CONST;
    case BR_IK_STATE: return BR_MBK_KV_CACHE;
    case BR_IK_TEMP: return BR_MBK_ACTIVATION;
    case BR_IK_REQUEST:
    case BR_IK_STEP:
    case BR_IK_COUNT: break;
    }
    for (uint32_t i = 0; i < g->n_nodes; i++)
        for (int b = 0; b < g->nodes[i].n_out; b++)
            if (g->nodes[i].bind[g->nodes[i].n_in + b].value == v)
                return BR_MBK_IO_OUTPUT;
    return BR_MBK_IO_INPUT;
}

const char *
br_step_mirrors(const br_ir *g, uint32_t v, const br_mega_buffer *b)
{
    const br_ir_value *x = &g->values[v];
    int64_t n = br_ir_cols(x) * (x->dim[0] > 0 ? x->dim[0] : 1);

    if (!br_text_eq(br_ir_value_name(g, v), (br_text){b->name, b->name_n}))
        return "has another name";
    if (b->dtype != br_mega_dtype_of_qtype(x->dtype))
        return "has another dtype";
    if (b->kind != br_step_kind(g, v))
        return "has another kind";
    return br_mega_numel(b) == n ? NULL : "has another number of elements";
}

/* ---- work --------------------------------------------------------------- */

enum { CONTEXT = 256 }; /* positions that an estimate assumes */

static double
value_bytes(const br_ir_value *v, double elems)
{
    const br_qinfo *q = br_qinfo_of(v->dtype);

    return elems * q->bytes / q->elems;
}

/* Elements of a weight that a tile reads: of experts at most those picked. */
static double
weight_elems(const br_ir_node *n, const br_ir_value *v, double share,
             double step_rows)
{
    double all = (double)br_ir_cols(v) * (double)v->dim[0], picked;

    if (n->op == BR_IR_EMBED)
        return (double)br_ir_cols(v) * share * step_rows;
    if (v->rank < 3 || !br_ir_has(n, BR_IA_k))
        return all * share;
    picked = step_rows * (double)br_ir_i(n, BR_IA_k, 1) / (double)v->dim[0];
    return all * share * BR_MIN(picked, 1.0);
}

/* Multiplications and additions of one row of the step. */
static double
row_flops(const br_ir_node *n, const br_ir_value *v, double share)
{
    double all = (double)br_ir_cols(v) * (double)v->dim[0];

    if (v->rank == 3 && br_ir_has(n, BR_IA_k))
        all *= (double)br_ir_i(n, BR_IA_k, 1) / (double)v->dim[0];
    return n->op == BR_IR_EMBED || v->rank < 2 ? 0 : 2 * all * share;
}

br_step_work
br_step_work_of(const br_ir *g, const br_ir_node *n, int64_t c0, int64_t c1,
                int64_t step_rows)
{
    double share = (double)(c1 - c0) / (double)cols_of(n);
    double t = (double)step_rows;
    br_step_work w = {0, 0, 0, 0};

    for (int b = 0; b < n->n_in + n->n_out; b++) {
        const br_ir_value *v = &g->values[n->bind[b].value];
        br_step_span s;
        double cols;

        if (n->bind[b].value == BR_IR_NONE)
            continue;
        s = br_step_columns(n, b, c0, c1);
        cols = (double)(s.to - s.from);
        if (v->kind == BR_IK_MODEL) {
            w.weight += value_bytes(v, weight_elems(n, v, share, t));
            w.flops += t * row_flops(n, v, share);
        } else if (v->kind != BR_IK_STATE) {
            w.local += 4 * cols * t;
            w.flops += cols * t;
        } else if (v->dim[0] == BR_DIM_S) { /* read and written back */
            w.state += 8 * cols;
            w.flops += 4 * cols * t;
        } else if (rows[n->op].cols == KV) {
            w.state += 4 * cols * t;
        } else { /* every head of the tile asks every position */
            double ask = (double)br_ir_i(n, BR_IA_heads, 1) /
                         (double)br_ir_i(n, BR_IA_kv_heads, 1);

            w.state += 4 * cols * CONTEXT;
            w.flops += 2 * cols * CONTEXT * ask * t;
        }
    }
    return w;
}

/* ---- the graph in a file ------------------------------------------------ */

static br_code
read_lines(const br_json *lines, br_str *text, br_status *st)
{
    for (const br_json *l = lines->child; l; l = l->next) {
        if (l->kind != BR_J_STR || memchr(l->s, '\n', l->n))
            return br_fail(st, BR_E_FORMAT,
                           "meta.extensions.step.graph: holds something that "
                           "is no line of text");
        br_str_put(text, l->s, l->n);
        br_str_putc(text, '\n');
    }
    return text->oom ? br_fail(st, BR_E_OOM, "graph: out of memory") : BR_OK;
}

br_code
br_step_read_graph(br_mega_prog *p, br_status *st)
{
    const br_json *j =
        p->meta->kind == BR_J_OBJ ? br_json_get(p->meta, "extensions") : NULL;
    const br_json *graph, *max;
    br_str text = {0};
    br_code code;

    j = j && j->kind == BR_J_OBJ ? br_json_get(j, "step") : NULL;
    if (!j)
        return BR_OK;
    graph = j->kind == BR_J_OBJ ? br_json_get(j, "graph") : NULL;
    max = j->kind == BR_J_OBJ ? br_json_get(j, "rows") : NULL;
    if (!graph || graph->kind != BR_J_ARR || !max || max->kind != BR_J_INT ||
        max->i < 1 || max->i > BR_STEP_MAX_ROWS)
        return br_fail(st, BR_E_FORMAT,
                       "meta.extensions.step: has to hold rows, 1..%d, and "
                       "graph, a list of lines",
                       BR_STEP_MAX_ROWS);
    p->rows = (uint32_t)max->i;
    code = read_lines(graph, &text, st);
    if (code == BR_OK) {
        code = br_ir_parse(&p->graph, text.at ? text.at : "", text.n, st);
        if (code != BR_OK)
            (void)br_prefix(st, "meta.extensions.step.graph");
    }
    br_str_fini(&text);
    return code;
}

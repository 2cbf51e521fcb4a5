/* ir_verify.c - what a graph must be before anything runs it.
 *
 *   R1  opcode known, bindings as many as its row names, none but optional
 *       ones left out
 *   R2  every binding names a value, columns inside it
 *   R3  required attributes there, in their ranges (ir_shape.c)
 *   R4  values: named, kind by the name, rank and dimensions sane, constants
 *       inside the data
 *   R5  a role gets a value of its class: rows, integers, matrix, vector,
 *       state; model values are never written
 *   R6  widths agree (ir_shape.c)
 *   R7  what is read was written before, every column of it
 *   R8  no column is written twice
 *   R9  a state changed in place is not touched again before a BARRIER
 *   R10 no two values of one name
 *
 * Requires nothing: a mapped file's numbers may be anything. Cost: O(bindings)
 * and a bit per column of values that several nodes write.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/map.h"
#include "ir/ir_shape.h"
#include "model/quant.h"

#include <string.h>

typedef struct written { /* of one value */
    uint64_t *bits;      /* columns written, where writers share it */
    bool all, dirty;
} written;

typedef struct verifier {
    const br_ir *g;
    br_status *st;
    br_arena arena;
    written *w; /* [n_values] */
} verifier;

static br_code
bad(const br_ir_ctx *c, const char *role, const char *rule)
{
    return br_ir_bad(c, role, rule);
}

br_code
br_ir_bad(const br_ir_ctx *c, const char *role, const char *rule)
{
    const char *op = br_ir_opinfo_of(c->n->op)->name;

    return br_fail(c->st, BR_E_REJECTED, "nodes[%u] %s%s%s: %s", c->index,
                   op ? op : "?", role ? " " : "", role ? role : "", rule);
}

/* ---- values (R4, R10) --------------------------------------------------- */

static br_code
bad_value(const verifier *v, uint32_t i, const char *rule)
{
    return br_fail(v->st, BR_E_REJECTED, "values[%u]: %s", i, rule);
}

static br_code
check_dims(const verifier *v, uint32_t i)
{
    const br_ir_value *x = &v->g->values[i];
    int64_t n = 1;

    if (x->rank < 1 || x->rank > BR_IR_MAX_RANK)
        return bad_value(v, i, "rank has to be 1..4");
    for (int d = 0; d < x->rank; d++) {
        int64_t k = x->dim[d];
        bool symbol = d == 0 && k < 0 && k >= BR_DIM_S;

        if (symbol)
            continue;
        if (k < 1 || k > 1 << 30 || __builtin_mul_overflow(n, k, &n) ||
            n > (int64_t)1 << 40)
            return bad_value(v, i, "a dimension is out of range");
    }
    if (br_ir_cols(x) > UINT32_MAX / 2 && x->kind != BR_IK_MODEL)
        return bad_value(v, i, "too wide");
    return BR_OK;
}

static br_code
check_value(const verifier *v, uint32_t i)
{
    const br_ir_value *x = &v->g->values[i];
    const br_qinfo *q = br_qinfo_of(x->dtype);

    if (x->name_n == 0 || x->name_n > BR_IR_MAX_NAME_BYTES ||
        (uint64_t)x->name + x->name_n >= v->g->n_strings ||
        v->g->strings[x->name + x->name_n] != 0 ||
        memchr(v->g->strings + x->name, 0, x->name_n))
        return bad_value(v, i, "has no name");
    if (br_ir_kind_of(br_ir_value_name(v->g, i)) != x->kind)
        return bad_value(v, i, "its kind is not what its name says");
    BR_TRY(check_dims(v, i));
    if (!q->name)
        return bad_value(v, i, "no such number format");
    if (x->kind != BR_IK_MODEL && x->dtype != BR_Q_F32 && x->dtype != BR_Q_I32)
        return bad_value(v, i, "only weights may be other than F32 and I32");
    if (x->kind == BR_IK_MODEL && x->dim[0] < 0)
        return bad_value(v, i, "a weight's shape is numbers");
    if (x->kind == BR_IK_MODEL && x->dim[x->rank - 1] % q->elems)
        return bad_value(v, i, "rows are not whole blocks of the format");
    if (x->kind == BR_IK_STATE && x->dim[0] != BR_DIM_POS &&
        x->dim[0] != BR_DIM_S)
        return bad_value(v, i,
                         "a state's first dimension is positions or "
                         "slots");
    if (x->kind == BR_IK_TEMP && (x->dim[0] != BR_DIM_T || x->rank != 2))
        return bad_value(v, i, "rows of a step are T by columns");
    if (x->data == BR_IR_NONE)
        return BR_OK;
    if (x->kind != BR_IK_MODEL || x->dtype != BR_Q_F32 ||
        (uint64_t)x->data + (uint64_t)(br_ir_cols(x) * x->dim[0]) >
            v->g->n_data)
        return bad_value(v, i, "a constant's numbers are not in the graph");
    return BR_OK;
}

static br_code
check_names(verifier *v)
{
    br_map names = {0};
    br_code code = BR_OK;

    for (uint32_t i = 0; i < v->g->n_values && code == BR_OK; i++) {
        bool fresh = false;

        if (!br_map_put(&names, br_ir_value_name(v->g, i), &fresh))
            code = br_fail(v->st, BR_E_OOM, "names: out of memory");
        else if (!fresh)
            code = bad_value(v, i, "two values have this name");
    }
    br_map_fini(&names);
    return code;
}

/* ---- bindings (R1, R2, R5) ---------------------------------------------- */

typedef enum role_class {
    ROWS,   /* f32, T rows */
    INTS,   /* i32, T rows */
    MATRIX, /* of the model, read row by row */
    VECTOR, /* of the model */
    EITHER, /* rows or vector */
    STATE,
} role_class;

static role_class
class_of(const br_ir_node *n, br_text role, bool inplace, bool out)
{
    static const char *const ints[] = {"token", "position", "want",
                                       "slot",  "ids",      "accepted"};
    static const char *const vectors[] = {
        "w",        "freq",     "sinks",  "a",    "dt_b",   "d",
        "router_b", "choice_b", "gate_b", "up_b", "down_b", "down_s"};

    if (inplace || br_text_is(role, "kv_k") || br_text_is(role, "kv_v"))
        return STATE;
    for (size_t i = 0; i < BR_COUNT(ints); i++)
        if (br_text_is(role, ints[i]))
            return INTS;
    if (out)
        return ROWS;
    if (br_text_is(role, "table") ||
        (role.n > 2 && memcmp(role.p + role.n - 2, "_w", 2) == 0))
        return MATRIX;
    switch (n->op) {
    case BR_IR_MATMUL:
    case BR_IR_MATMUL_WMMA_F16:
    case BR_IR_MATMUL_WMMA_Q4K:
    case BR_IR_LM_HEAD:
    case BR_IR_HEAD_MATMUL:
        return br_text_is(role, "x")   ? ROWS
               : br_text_is(role, "w") ? MATRIX
                                       : VECTOR;
    case BR_IR_ADD:
    case BR_IR_MUL: return br_text_is(role, "b") ? EITHER : ROWS;
    case BR_IR_SSM_CONV1D:
        if (br_text_is(role, "b"))
            return VECTOR;
        break;
    default: break;
    }
    for (size_t i = 0; i < BR_COUNT(vectors); i++)
        if (br_text_is(role, vectors[i]))
            return VECTOR;
    return ROWS;
}

static const char *
class_rule(role_class k, const br_ir_value *x)
{
    bool rows = x->kind != BR_IK_MODEL && x->kind != BR_IK_STATE &&
                x->dim[0] == BR_DIM_T;
    bool num = x->kind == BR_IK_MODEL && x->dtype != BR_Q_I32;

    switch (k) {
    case ROWS:
        return rows && x->dtype == BR_Q_F32 ? NULL : "has to be F32 rows";
    case INTS:
        return rows && x->dtype == BR_Q_I32 ? NULL : "has to be I32 rows";
    case MATRIX:
        return num && x->rank >= 2 && x->data == BR_IR_NONE
                   ? NULL
                   : "has to be a matrix of the model";
    case VECTOR: return num ? NULL : "has to be a weight";
    case EITHER:
        return (rows && x->dtype == BR_Q_F32) || num
                   ? NULL
                   : "has to be F32 rows or a weight";
    case STATE: return x->kind == BR_IK_STATE ? NULL : "has to be a state";
    }
    br_unreachable("class");
}

static br_code
check_bind(const verifier *v, const br_ir_ctx *c, int i)
{
    const br_ir_bind *b = &c->n->bind[i];
    bool out = i >= c->n->n_in;
    br_ir_role role = {{"", 0}, false, false};
    const br_ir_value *x;
    char name[32];
    const char *rule;
    uint64_t end;

    (void)br_ir_role_at(c->n->op, out, out ? i - c->n->n_in : i, &role);
    memcpy(name, role.name.p, role.name.n);
    name[role.name.n] = 0;
    if (b->value == BR_IR_NONE)
        return role.optional ? BR_OK : bad(c, name, "is not bound");
    if (b->value >= v->g->n_values)
        return bad(c, name, "binds a value that is not there");
    x = &v->g->values[b->value];
    end = (uint64_t)b->off + (uint64_t)(b->count - 1) * b->stride + b->width;
    if (b->width < 1 || b->count < 1 || (b->count > 1 && b->stride < b->width))
        return bad(c, name, "binds columns that are none");
    if (end > (uint64_t)br_ir_cols(x))
        return bad(c, name, "binds columns that the value has not");
    if (out && (x->kind == BR_IK_MODEL || x->kind == BR_IK_STATE))
        return bad(c, name, "writes what is only read, or changed in place");
    rule = class_rule(class_of(c->n, role.name, role.inplace, out), x);
    if (rule)
        return bad(c, name, rule);
    if ((x->kind == BR_IK_MODEL || x->kind == BR_IK_STATE) &&
        (b->off || (int64_t)b->width * b->count != br_ir_cols(x)))
        return bad(c, name, "weights and states are bound whole");
    return BR_OK;
}

static int
roles(int op, bool out)
{
    br_ir_role r;
    int n = 0;

    while (br_ir_role_at(op, out, n, &r))
        n++;
    return n;
}

static br_code
check_node(const verifier *v, const br_ir_ctx *c)
{
    const br_ir_opinfo *info = br_ir_opinfo_of(c->n->op);
    uint32_t missing;

    if (!info->name)
        return bad(c, NULL, "no such opcode");
    if (c->n->n_in + c->n->n_out > BR_IR_MAX_BINDINGS)
        return bad(c, NULL, "more than 8 bindings");
    if (c->n->n_in != roles(c->n->op, false) ||
        c->n->n_out != roles(c->n->op, true))
        return bad(c, NULL, "has not the bindings that its opcode names");
    for (int i = 0; i < c->n->n_in + c->n->n_out; i++)
        BR_TRY(check_bind(v, c, i));
    if (c->n->attrs >> BR_IA_COUNT ||
        __builtin_popcount(c->n->attrs) > BR_IR_MAX_ATTRS)
        return bad(c, NULL, "has attributes that there are not");
    missing = info->attrs & ~c->n->attrs;
    if (missing)
        return bad(c, br_ir_attr_name(__builtin_ctz(missing)),
                   "there has to be this attribute");
    return br_ir_check_shape(c);
}

/* ---- order (R7, R8, R9) ------------------------------------------------- */

static bool
bit(const written *w, uint64_t i)
{
    return w->bits && (w->bits[i / 64] >> (i % 64) & 1);
}

/* 0: no column was written before; 1: all; -1: out of memory; 2: some. */
static int
columns(const written *w, const br_ir_bind *b)
{
    bool any = false, all = true;

    if (w->all)
        return 1;
    for (uint32_t k = 0; k < b->count; k++)
        for (uint32_t j = 0; j < b->width; j++) {
            bool is = bit(w, b->off + (uint64_t)k * b->stride + j);

            any = any || is;
            all = all && is;
        }
    return all ? 1 : any ? 2 : 0;
}

static br_code
mark(verifier *v, const br_ir_ctx *c, const br_ir_bind *b)
{
    uint64_t cols = (uint64_t)br_ir_cols(&v->g->values[b->value]);
    written *w = &v->w[b->value];

    if (columns(w, b) != 0)
        return bad(c, NULL, "writes columns that were written before");
    if ((uint64_t)b->width * b->count == cols) {
        w->all = true;
        return BR_OK;
    }
    if (!w->bits)
        w->bits = br_arena_new(&v->arena, uint64_t, cols / 64 + 1);
    if (!w->bits)
        return br_fail(v->st, BR_E_OOM, "columns: out of memory");
    for (uint32_t k = 0; k < b->count; k++)
        for (uint32_t j = 0; j < b->width; j++) {
            uint64_t i = b->off + (uint64_t)k * b->stride + j;

            w->bits[i / 64] |= (uint64_t)1 << (i % 64);
        }
    return BR_OK;
}

static br_code
touch(verifier *v, const br_ir_ctx *c, int i)
{
    const br_ir_bind *b = &c->n->bind[i];
    const br_ir_value *x;
    written *w;
    br_ir_role role;

    if (b->value == BR_IR_NONE)
        return BR_OK;
    x = &v->g->values[b->value];
    w = &v->w[b->value];
    (void)br_ir_role_at(c->n->op, false, i, &role);
    if (x->kind == BR_IK_TEMP && columns(w, b) != 1)
        return bad(c, NULL, "reads columns that nothing has written");
    if (x->kind != BR_IK_STATE)
        return BR_OK;
    if (c->n->op == BR_IR_BARRIER) {
        w->dirty = false;
        return BR_OK;
    }
    if (w->dirty)
        return bad(c, NULL, "touches a state changed since the last BARRIER");
    w->dirty = role.inplace;
    return BR_OK;
}

static br_code
check_order(verifier *v, const br_ir_ctx *c)
{
    for (int i = 0; i < c->n->n_in; i++)
        BR_TRY(touch(v, c, i));
    for (int i = c->n->n_in; i < c->n->n_in + c->n->n_out; i++)
        BR_TRY(mark(v, c, &c->n->bind[i]));
    return BR_OK;
}

static br_code
verify(verifier *v)
{
    const br_ir *g = v->g;

    if (g->n_nodes > BR_IR_MAX_NODES || g->n_values > BR_IR_MAX_VALUES)
        return br_fail(v->st, BR_E_LIMIT, "graph: too large");
    for (uint32_t i = 0; i < g->n_values; i++)
        BR_TRY(check_value(v, i));
    BR_TRY(check_names(v));
    v->w = br_arena_new(&v->arena, written, g->n_values + 1);
    if (!v->w)
        return br_fail(v->st, BR_E_OOM, "values: out of memory");
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        br_ir_ctx c = {g, &g->nodes[i], i, v->st};

        BR_TRY(check_node(v, &c));
        BR_TRY(check_order(v, &c));
    }
    return BR_OK;
}

br_code
br_ir_verify(const br_ir *g, br_status *st)
{
    verifier v = {.g = g, .st = st};
    br_code code;

    br_arena_init(&v.arena, 1 << 30);
    code = verify(&v);
    br_arena_fini(&v.arena);
    return code;
}

/* ir_build.c - a graph in the making, and the block that it ends as.
 *
 * Errors are sticky: a verb adds ten nodes and looks once. Values and nodes
 * grow in vectors; freezing copies them into one block (ir_int.h), verifies
 * it, and shuts the builder.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/map.h"
#include "ir/ir_int.h"

#include <string.h>

struct br_ir_builder {
    br_arena arena; /* names, as keys of the map */
    br_map names;
    BR_VEC(br_ir_value) values;
    BR_VEC(br_ir_node) nodes;
    BR_VEC(float) data;
    br_str strings;
    br_ir_stage stage;
    bool frozen;
    br_status st;
};

br_ir_builder *
br_ir_builder_new(const char *name, br_ir_stage stage)
{
    br_ir_builder *b = br_try_calloc(1, sizeof *b);

    if (!b)
        return NULL;
    br_arena_init(&b->arena, 0);
    b->stage = stage;
    br_str_put(&b->strings, name, strlen(name) + 1);
    return b;
}

void
br_ir_builder_free(br_ir_builder *b)
{
    if (!b)
        return;
    br_map_fini(&b->names);
    br_vec_fini(&b->values);
    br_vec_fini(&b->nodes);
    br_vec_fini(&b->data);
    br_str_fini(&b->strings);
    br_arena_fini(&b->arena);
    br_free(b);
}

const br_status *
br_ir_builder_status(const br_ir_builder *b)
{
    return &b->st;
}

void
br_ir_builder_fail(br_ir_builder *b, br_code code, const char *msg)
{
    (void)br_fail(&b->st, code, "%s", msg);
}

static bool
ready(br_ir_builder *b, const char *what)
{
    if (b->st.code != BR_OK)
        return false;
    if (b->frozen)
        (void)br_fail(&b->st, BR_E_REJECTED,
                      "%s: the graph is frozen and takes no more", what);
    return !b->frozen;
}

static void
no_memory(br_ir_builder *b)
{
    (void)br_fail(&b->st, BR_E_OOM, "graph: out of memory");
}

static bool
desc_ok(br_ir_builder *b, const br_ir_desc *d)
{
    size_t n = d->name ? strlen(d->name) : 0;

    if (n == 0)
        (void)br_fail(&b->st, BR_E_REJECTED, "a value has no name");
    else if (n > BR_IR_MAX_NAME_BYTES)
        (void)br_fail(&b->st, BR_E_LIMIT, "%.40s...: names have 1..%d bytes",
                      d->name, BR_IR_MAX_NAME_BYTES);
    else if (br_ir_kind_of(br_text_z(d->name)) == BR_IK_COUNT)
        (void)br_fail(&b->st, BR_E_REJECTED,
                      "%s: names begin with model. state. request. step. or t.",
                      d->name);
    else if (d->rank < 1 || d->rank > BR_IR_MAX_RANK)
        (void)br_fail(&b->st, BR_E_REJECTED, "%s: rank %d is not 1..%d",
                      d->name, d->rank, BR_IR_MAX_RANK);
    else if (b->values.n >= BR_IR_MAX_VALUES)
        (void)br_fail(&b->st, BR_E_LIMIT, "more than %d values",
                      BR_IR_MAX_VALUES);
    else
        return true;
    return false;
}

static uint32_t
add_data(br_ir_builder *b, const br_ir_desc *d)
{
    size_t n = 1, at = b->data.n;

    for (int i = 0; i < d->rank; i++)
        n *= (size_t)d->dim[i];
    if (!br_vec_reserve(&b->data, at + n)) {
        no_memory(b);
        return BR_IR_NONE;
    }
    memcpy(b->data.at + at, d->data, n * sizeof(float));
    b->data.n += n;
    return (uint32_t)at;
}

uint32_t
br_ir_add_value(br_ir_builder *b, const br_ir_desc *d)
{
    br_ir_value v = {.layer = d->layer, .dtype = d->dtype, .data = BR_IR_NONE};
    br_map_value *slot;
    bool fresh;
    char *key;

    if (!ready(b, "add value") || !desc_ok(b, d))
        return BR_IR_NONE;
    v.name_n = (uint32_t)strlen(d->name);
    key = br_arena_str(&b->arena, d->name, v.name_n);
    slot = key ? br_map_put(&b->names, (br_text){key, v.name_n}, &fresh) : NULL;
    if (!slot) {
        no_memory(b);
        return BR_IR_NONE;
    }
    if (!fresh) {
        (void)br_fail(&b->st, BR_E_REJECTED, "%s: two values have this name",
                      d->name);
        return BR_IR_NONE;
    }
    slot->u = b->values.n;
    v.kind = (uint8_t)br_ir_kind_of(br_text_z(d->name));
    v.rank = (uint8_t)d->rank;
    for (int i = 0; i < BR_IR_MAX_RANK; i++)
        v.dim[i] = i < d->rank ? d->dim[i] : 1;
    v.name = (uint32_t)b->strings.n;
    br_str_put(&b->strings, d->name, v.name_n + 1);
    if (d->data)
        v.data = add_data(b, d);
    if (b->strings.oom || !br_vec_push(&b->values, v))
        no_memory(b);
    return b->st.code == BR_OK ? (uint32_t)(b->values.n - 1) : BR_IR_NONE;
}

uint32_t
br_ir_find_value(const br_ir_builder *b, const char *name)
{
    const br_map_value *v = br_map_get(&b->names, br_text_z(name));

    return v ? (uint32_t)v->u : BR_IR_NONE;
}

const br_ir_value *
br_ir_built_value(const br_ir_builder *b, uint32_t v)
{
    return v < b->values.n ? &b->values.at[v] : NULL;
}

br_ir_bind
br_ir_cut(uint32_t v, int64_t off, int64_t width)
{
    return (br_ir_bind){v, (uint32_t)off, (uint32_t)width, (uint32_t)width, 1};
}

br_ir_bind
br_ir_all(const br_ir_builder *b, uint32_t v)
{
    return v < b->values.n ? br_ir_cut(v, 0, br_ir_cols(&b->values.at[v]))
                           : br_ir_none();
}

br_ir_bind
br_ir_none(void)
{
    return (br_ir_bind){BR_IR_NONE, 0, 0, 0, 0};
}

uint32_t
br_ir_add_node(br_ir_builder *b, const br_ir_node_desc *d)
{
    br_ir_node n = {.op = (uint16_t)d->op, .layer = d->layer};

    if (!ready(b, "add node"))
        return BR_IR_NONE;
    if (d->n_in < 0 || d->n_out < 0 ||
        d->n_in + d->n_out > BR_IR_MAX_BINDINGS) {
        (void)br_fail(&b->st, BR_E_REJECTED, "%s: %d bindings, at most %d",
                      br_ir_opinfo_of(d->op)->name, d->n_in + d->n_out,
                      BR_IR_MAX_BINDINGS);
        return BR_IR_NONE;
    }
    n.n_in = (uint8_t)d->n_in;
    n.n_out = (uint8_t)d->n_out;
    for (int i = 0; i < BR_IR_MAX_BINDINGS; i++)
        n.bind[i] = br_ir_none();
    memcpy(n.bind, d->in, (size_t)d->n_in * sizeof n.bind[0]);
    memcpy(n.bind + d->n_in, d->out, (size_t)d->n_out * sizeof n.bind[0]);
    if (b->nodes.n >= BR_IR_MAX_NODES)
        (void)br_fail(&b->st, BR_E_LIMIT, "more than %d nodes",
                      BR_IR_MAX_NODES);
    else if (!br_vec_push(&b->nodes, n))
        no_memory(b);
    return (uint32_t)(b->nodes.n - 1);
}

/* Room for attribute a in the node added last; NULL: no room, or no node. */
static br_ir_node *
attr_slot(br_ir_builder *b, br_ir_attr a, int *slot)
{
    br_ir_node *n;
    int have;

    if (!ready(b, "set attribute"))
        return NULL;
    br_assert(b->nodes.n > 0);
    n = &b->nodes.at[b->nodes.n - 1];
    *slot = __builtin_popcount(n->attrs & ((1u << a) - 1));
    if (n->attrs >> a & 1)
        return n;
    have = __builtin_popcount(n->attrs);
    if (have == BR_IR_MAX_ATTRS) {
        (void)br_fail(&b->st, BR_E_REJECTED, "%s: at most %d attributes",
                      br_ir_opinfo_of(n->op)->name, BR_IR_MAX_ATTRS);
        return NULL;
    }
    memmove(n->attr + *slot + 1, n->attr + *slot,
            (size_t)(have - *slot) * sizeof n->attr[0]);
    n->attrs |= 1u << a;
    return n;
}

void
br_ir_set_i(br_ir_builder *b, br_ir_attr a, int64_t v)
{
    int slot;
    br_ir_node *n = attr_slot(b, a, &slot);

    br_assert(br_ir_attr_type(a) == 'I');
    if (n)
        n->attr[slot].i = v;
}

void
br_ir_set_f(br_ir_builder *b, br_ir_attr a, float v)
{
    int slot;
    br_ir_node *n = attr_slot(b, a, &slot);

    br_assert(br_ir_attr_type(a) == 'F');
    if (n)
        n->attr[slot].f = (double)v;
}

/* ---- freezing ----------------------------------------------------------- */

static uint64_t
up8(uint64_t n)
{
    return (n + 7) & ~(uint64_t)7;
}

void
br_ir_view(br_ir *g, const void *block)
{
    const br_ir_head *h = block;
    const char *p = block;

    g->block = block;
    g->block_bytes = h->total;
    g->stage = (br_ir_stage)h->stage;
    g->n_values = h->n_values;
    g->n_nodes = h->n_nodes;
    g->n_data = h->n_data;
    g->n_strings = h->n_strings;
    g->values = (const void *)(p + h->values_at);
    g->nodes = (const void *)(p + h->nodes_at);
    g->data = (const void *)(p + h->data_at);
    g->strings = p + h->strings_at;
    g->name = g->strings + h->name;
}

static void *
pack(br_ir_builder *b, br_ir_head *h)
{
    char *p;

    *h = (br_ir_head){.version = BR_IR_VERSION,
                      .stage = b->stage,
                      .n_values = (uint32_t)b->values.n,
                      .n_nodes = (uint32_t)b->nodes.n,
                      .n_data = (uint32_t)b->data.n,
                      .n_strings = (uint32_t)b->strings.n,
                      .value_bytes = sizeof(br_ir_value),
                      .node_bytes = sizeof(br_ir_node)};
    memcpy(h->magic, BR_IR_MAGIC, 4);
    h->values_at = sizeof *h;
    h->nodes_at = h->values_at + b->values.n * sizeof(br_ir_value);
    h->data_at = h->nodes_at + b->nodes.n * sizeof(br_ir_node);
    h->strings_at = up8(h->data_at + b->data.n * sizeof(float));
    h->total = up8(h->strings_at + b->strings.n);
    p = br_try_calloc(1, h->total);
    if (!p)
        return NULL;
    memcpy(p, h, sizeof *h);
    if (b->values.n)
        memcpy(p + h->values_at, b->values.at,
               b->values.n * sizeof(br_ir_value));
    if (b->nodes.n)
        memcpy(p + h->nodes_at, b->nodes.at, b->nodes.n * sizeof(br_ir_node));
    if (b->data.n)
        memcpy(p + h->data_at, b->data.at, b->data.n * sizeof(float));
    memcpy(p + h->strings_at, b->strings.at, b->strings.n);
    return p;
}

br_code
br_ir_freeze(br_ir_builder *b, br_ir **out, br_status *st)
{
    br_ir_head h;
    br_ir *g;
    void *block;
    br_code code;

    *out = NULL;
    (void)ready(b, "freeze");
    if (b->strings.oom)
        no_memory(b);
    if (b->st.code != BR_OK) {
        code = br_fail(st, b->st.code, "%s", b->st.msg);
        return code;
    }
    block = pack(b, &h);
    g = block ? br_try_calloc(1, sizeof *g) : NULL;
    if (!g) {
        br_free(block);
        return br_fail(st, BR_E_OOM, "graph: out of memory");
    }
    b->frozen = true;
    br_ir_view(g, block);
    g->owned = true;
    code = br_ir_verify(g, st);
    if (code != BR_OK) {
        br_ir_free(g);
        return code;
    }
    *out = g;
    return BR_OK;
}

void
br_ir_free(br_ir *g)
{
    union {
        const void *c;
        void *p;
    } block;

    if (!g)
        return;
    block.c = g->block;
    if (g->owned)
        br_free(block.p);
    br_free(g);
}

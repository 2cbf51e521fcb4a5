/* net.c - builds a network node by node and infers every shape on the way.
 *
 * Invariants once br_net_add_node has returned OK: inputs are older than the
 * node, the output tensor is new (a cache: new as well, one append makes it),
 * dimensions are in 1..2^31-1 and no tensor has more than 2^40 elements, so
 * products of two dimensions and a dtype fit 64 bits.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "mega/net_internal.h"

#include <stdio.h>
#include <string.h>

/* A graph of 2^17 nodes with all names as long as allowed stays below it. */
#define ARENA_LIMIT ((size_t)1 << 30)

/* clang-format off */
static const struct op_info {
    const char *text;
    int8_t lo, hi;
    bool weight, bias;
    uint8_t attrs;
} ops[] = {
#define N(name, text, lo, hi, w, b, attrs) {text, lo, hi, w, b, attrs},
#include "mega/net_op.def"
#undef N
};
/* clang-format on */

const char *
br_net_op_text(br_net_op op)
{
    return ops[op].text;
}

int
br_net_op_find(br_text name)
{
    for (size_t i = 0; i < BR_COUNT(ops); i++)
        if (br_text_is(name, ops[i].text))
            return (int)i;
    return -1;
}

unsigned
br_net_op_attrs(br_net_op op)
{
    return ops[op].attrs;
}

/* ---- life ---------------------------------------------------------------- */

static br_code
no_memory(br_status *st)
{
    return br_fail(st, BR_E_OOM, "graph: out of memory");
}

br_code
br_mega_net_open(br_mega_net **out, const br_net_open *o, br_status *st)
{
    br_mega_net *n;

    *out = NULL;
    if (o->batch < 1 || o->batch > BR_NET_MAX_BATCH)
        return br_fail(st, BR_E_FORMAT, "graph: batch %lld is not in 1..%d",
                       (long long)o->batch, BR_NET_MAX_BATCH);
    if (o->max_seq < 1 || o->max_seq > INT32_MAX)
        return br_fail(st, BR_E_FORMAT, "graph: max_seq %lld is not in 1..%d",
                       (long long)o->max_seq, INT32_MAX);
    if (o->pos < 0 || o->pos >= o->max_seq)
        return br_fail(st, BR_E_FORMAT,
                       "graph: pos %lld is not in 0..%lld, the places of the "
                       "cache (max_seq)",
                       (long long)o->pos, (long long)o->max_seq - 1);
    n = br_try_calloc(1, sizeof *n);
    if (!n)
        return no_memory(st);
    br_arena_init(&n->arena, ARENA_LIMIT);
    n->batch = o->batch;
    n->pos = o->pos;
    n->max_seq = o->max_seq;
    n->n_layers = o->n_layers;
    n->dtype = o->dtype;
    n->source = br_arena_str(&n->arena, o->source, strlen(o->source));
    if (!n->source) {
        br_mega_net_free(n);
        return no_memory(st);
    }
    *out = n;
    return BR_OK;
}

void
br_mega_net_free(br_mega_net *n)
{
    if (!n)
        return;
    br_vec_fini(&n->tensors);
    br_vec_fini(&n->nodes);
    br_free(n->index);
    br_arena_fini(&n->arena);
    br_free(n);
}

/* ---- names --------------------------------------------------------------- */

static size_t
hash(const char *s)
{
    uint64_t h = 0xcbf29ce484222325u;

    for (; *s; s++)
        h = (h ^ (uint8_t)*s) * 0x100000001b3u;
    return (size_t)(h ^ h >> 29);
}

/* The slot where the name is, or where it would go. */
static size_t
slot_of(const br_mega_net *n, const char *name)
{
    size_t i = hash(name) & (n->index_n - 1);

    while (n->index[i] != BR_NET_NONE &&
           strcmp(n->tensors.at[n->index[i]].name, name) != 0)
        i = (i + 1) & (n->index_n - 1);
    return i;
}

int32_t
br_net_find(const br_mega_net *n, const char *name)
{
    return n->index_n ? n->index[slot_of(n, name)] : BR_NET_NONE;
}

static bool
grow_index(br_mega_net *n)
{
    size_t want = n->index_n ? n->index_n * 2 : 64;
    int32_t *p;

    if ((n->tensors.n + 1) * 2 <= n->index_n)
        return true;
    p = br_try_alloc(want * sizeof *p);
    if (!p)
        return false;
    br_free(n->index);
    n->index = p;
    n->index_n = want;
    for (size_t i = 0; i < want; i++)
        p[i] = BR_NET_NONE;
    for (size_t i = 0; i < n->tensors.n; i++)
        p[slot_of(n, n->tensors.at[i].name)] = (int32_t)i;
    return true;
}

static br_code
check_name(const char *name, br_status *st)
{
    size_t len = strlen(name);

    if (len == 0)
        return br_fail(st, BR_E_FORMAT, "a name is empty");
    if (len > BR_NET_MAX_NAME)
        return br_fail(st, BR_E_LIMIT,
                       "name '%.32s...' is longer than %d bytes", name,
                       BR_NET_MAX_NAME);
    return BR_OK;
}

static br_code
check_shape(const br_net_tensor *t, br_status *st)
{
    int64_t numel = 1;

    if (t->rank < 1 || t->rank > BR_MEGA_MAX_RANK)
        return br_fail(st, BR_E_FORMAT, "tensor '%s': rank %u is not in 1..%d",
                       t->name, t->rank, BR_MEGA_MAX_RANK);
    for (uint32_t i = 0; i < t->rank; i++) {
        if (t->shape[i] < 1 || t->shape[i] > INT32_MAX)
            return br_fail(st, BR_E_FORMAT,
                           "tensor '%s': dimension %lld is not in 1..%d",
                           t->name, (long long)t->shape[i], INT32_MAX);
        if (__builtin_mul_overflow(numel, t->shape[i], &numel) ||
            numel > BR_NET_MAX_NUMEL)
            return br_fail(st, BR_E_LIMIT,
                           "tensor '%s': more than 2^40 elements", t->name);
    }
    return BR_OK;
}

br_code
br_net_add_tensor(br_mega_net *n, const br_net_tensor *t, int32_t *id,
                  br_status *st)
{
    br_net_tensor d = *t;

    BR_TRY(check_name(t->name, st));
    BR_TRY(check_shape(t, st));
    if (br_net_find(n, t->name) != BR_NET_NONE)
        return br_fail(st, BR_E_FORMAT, "tensor '%s': there are two of them",
                       t->name);
    if (n->tensors.n >= BR_NET_MAX_TENSORS)
        return br_fail(st, BR_E_LIMIT, "graph: more than %d tensors",
                       BR_NET_MAX_TENSORS);
    d.name = br_arena_str(&n->arena, t->name, strlen(t->name));
    if (!d.name || !grow_index(n) ||
        !br_vec_reserve(&n->tensors, n->tensors.n + 1))
        return no_memory(st);
    d.producer = BR_NET_NONE;
    d.uses = d.other_uses = 0;
    n->index[slot_of(n, d.name)] = (int32_t)n->tensors.n;
    n->tensors.at[n->tensors.n++] = d;
    *id = (int32_t)n->tensors.n - 1;
    return BR_OK;
}

/* ---- shapes -------------------------------------------------------------- */

/* "[2, 3]"; four dimensions of ten digits fit. */
static void
shape_text(char buf[64], const br_net_tensor *t)
{
    int n = 0;

    for (uint32_t i = 0; i < t->rank; i++)
        n += snprintf(buf + n, 64 - (size_t)n, "%s%lld", i ? ", " : "[",
                      (long long)t->shape[i]);
    snprintf(buf + n, 64 - (size_t)n, "]");
}

static br_code
misfit(const br_net_node *d, const br_net_tensor *t, const char *rule,
       br_status *st)
{
    char buf[64];

    shape_text(buf, t);
    return br_fail(st, BR_E_FORMAT, "'%s' %s: %s (node '%s', %s)", t->name, buf,
                   rule, d->name, ops[d->op].text);
}

static bool
same_shape(const br_net_tensor *a, const br_net_tensor *b)
{
    return a->rank == b->rank &&
           memcmp(a->shape, b->shape, a->rank * sizeof a->shape[0]) == 0;
}

static int64_t
last(const br_net_tensor *t)
{
    return t->shape[t->rank - 1];
}

static void
set_shape2(br_net_tensor *o, int64_t rows, int64_t columns)
{
    o->rank = 2;
    o->shape[0] = rows;
    o->shape[1] = columns;
}

void
br_net_heads_shape(const br_mega_net *n, bool is_query, int64_t heads,
                   int64_t head_dim, br_net_tensor *o)
{
    uint32_t i = 0;

    if (n->batch > 1 || !is_query)
        o->shape[i++] = n->batch;
    o->shape[i++] = heads;
    o->shape[i++] = head_dim;
    o->rank = i;
    o->headed = true;
}

/* Both counts in range, and the product small enough for an int32. */
static br_code
check_heads(const br_net_node *d, int64_t heads, br_status *st)
{
    if (heads < 1 || d->head_dim < 1 || heads > INT32_MAX / d->head_dim)
        return br_fail(st, BR_E_FORMAT,
                       "node '%s': %lld heads of %lld is not a shape", d->name,
                       (long long)heads, (long long)d->head_dim);
    return BR_OK;
}

/* x as heads: already cut so, or flat and cut by this node. */
static br_code
infer_heads(const br_mega_net *n, const br_net_node *d, const br_net_tensor *x,
            br_net_tensor *o, br_status *st)
{
    BR_TRY(check_heads(d, d->n_heads, st));
    br_net_heads_shape(n, d->is_query, d->n_heads, d->head_dim, o);
    if (x->headed ? same_shape(x, o)
                  : x->rank == 2 && x->shape[0] == n->batch &&
                        x->shape[1] == d->n_heads * d->head_dim)
        return BR_OK;
    return misfit(d, x, "is neither these heads nor [batch, heads * head_dim]",
                  st);
}

static br_code
infer_rope(const br_mega_net *n, const br_net_node *d, const br_net_tensor *x,
           br_net_tensor *o, br_status *st)
{
    const br_net_tensor *pos = &n->tensors.at[d->in[1]];

    if (!(d->theta > 0))
        return br_fail(st, BR_E_FORMAT, "node '%s': theta %g is not positive",
                       d->name, d->theta);
    if (d->head_dim % 2)
        return br_fail(st, BR_E_FORMAT,
                       "node '%s': head_dim %lld is odd, and rope turns pairs",
                       d->name, (long long)d->head_dim);
    if (pos->dtype != BR_MDT_I32 || pos->rank != 1 || pos->shape[0] != n->batch)
        return misfit(d, pos, "is not a position (I32) per sequence", st);
    return infer_heads(n, d, x, o, st);
}

static br_code
infer_append(const br_mega_net *n, const br_net_node *d, const br_net_tensor *x,
             br_net_tensor *o, br_status *st)
{
    uint32_t i = 0;
    br_net_tensor heads = {0};

    BR_TRY(check_heads(d, d->n_kv_heads, st));
    br_net_heads_shape(n, false, d->n_kv_heads, d->head_dim, &heads);
    if (x->headed ? !same_shape(x, &heads)
                  : x->rank != 2 || x->shape[0] != n->batch ||
                        x->shape[1] != d->n_kv_heads * d->head_dim)
        return misfit(d, x, "is no row of this cache", st);
    if (n->batch > 1)
        o->shape[i++] = n->batch;
    o->shape[i++] = n->max_seq;
    o->shape[i++] = d->n_kv_heads;
    o->shape[i++] = d->head_dim;
    o->rank = i;
    o->kind = BR_MBK_KV_CACHE;
    o->headed = false;
    return BR_OK;
}

static br_code
infer_attention(const br_mega_net *n, const br_net_node *d,
                const br_net_tensor *q, br_net_tensor *o, br_status *st)
{
    br_net_tensor heads = {0};

    BR_TRY(check_heads(d, d->n_heads, st));
    BR_TRY(check_heads(d, d->n_kv_heads, st));
    if (d->n_heads % d->n_kv_heads)
        return br_fail(
            st, BR_E_FORMAT, "node '%s': %lld heads do not share %lld evenly",
            d->name, (long long)d->n_heads, (long long)d->n_kv_heads);
    br_net_heads_shape(n, true, d->n_heads, d->head_dim, &heads);
    if (!q->headed || !same_shape(q, &heads))
        return misfit(d, q, "is not cut into these heads", st);
    for (int i = 1; i <= 2; i++) {
        const br_net_tensor *c = &n->tensors.at[d->in[i]];

        if (c->kind != BR_MBK_KV_CACHE ||
            c->shape[c->rank - 1] != d->head_dim ||
            c->shape[c->rank - 2] != d->n_kv_heads)
            return misfit(d, c, "is not a cache of these heads", st);
    }
    set_shape2(o, n->batch, d->n_heads * d->head_dim);
    o->headed = false;
    return BR_OK;
}

static br_code
infer_embed(const br_mega_net *n, const br_net_node *d, const br_net_tensor *x,
            br_net_tensor *o, br_status *st)
{
    const br_net_tensor *w = &n->tensors.at[d->weight];

    if (x->dtype != BR_MDT_I32 || x->rank != 1)
        return misfit(d, x, "is no list of ids (I32)", st);
    if (w->rank != 2)
        return misfit(d, w, "is no table", st);
    set_shape2(o, x->shape[0], w->shape[1]);
    return BR_OK;
}

static br_code
infer_linear(const br_mega_net *n, const br_net_node *d, const br_net_tensor *x,
             br_net_tensor *o, br_status *st)
{
    const br_net_tensor *w = &n->tensors.at[d->weight];

    if (x->rank != 2 || x->headed)
        return misfit(d, x, "is not flat", st);
    if (w->rank != 2 || w->shape[1] != x->shape[1])
        return misfit(d, w, "does not have as many columns as the input", st);
    set_shape2(o, x->shape[0], w->shape[0]);
    if (d->bias != BR_NET_NONE) {
        const br_net_tensor *b = &n->tensors.at[d->bias];

        if (b->rank != 1 || b->shape[0] != w->shape[0])
            return misfit(d, b, "is not a bias per row of the weight", st);
    }
    return BR_OK;
}

static br_code
infer_norm(const br_mega_net *n, const br_net_node *d, const br_net_tensor *x,
           br_status *st)
{
    const br_net_tensor *w = &n->tensors.at[d->weight];
    const br_net_tensor *b =
        d->bias == BR_NET_NONE ? w : &n->tensors.at[d->bias];

    if (!(d->eps >= 0))
        return br_fail(st, BR_E_FORMAT, "node '%s': eps %g is negative",
                       d->name, d->eps);
    if (w->rank != 1 || w->shape[0] != last(x))
        return misfit(d, w, "is not as long as a row of the input", st);
    if (b->rank != 1 || b->shape[0] != last(x))
        return misfit(d, b, "is not as long as a row of the input", st);
    return BR_OK;
}

static br_code
infer(const br_mega_net *n, const br_net_node *d, br_net_tensor *o,
      br_status *st)
{
    const br_net_tensor *x = &n->tensors.at[d->in[0]];

    *o = (br_net_tensor){.kind = BR_MBK_ACTIVATION,
                         .dtype = (uint8_t)n->dtype,
                         .headed = x->headed,
                         .rank = x->rank};
    memcpy(o->shape, x->shape, sizeof o->shape);
    switch (d->op) {
    case BR_NET_EMBED: return infer_embed(n, d, x, o, st);
    case BR_NET_RMSNORM:
    case BR_NET_LAYERNORM: return infer_norm(n, d, x, st);
    case BR_NET_LINEAR: return infer_linear(n, d, x, o, st);
    case BR_NET_HEADS: return infer_heads(n, d, x, o, st);
    case BR_NET_ROPE: return infer_rope(n, d, x, o, st);
    case BR_NET_KV_APPEND: return infer_append(n, d, x, o, st);
    case BR_NET_ATTENTION: return infer_attention(n, d, x, o, st);
    case BR_NET_SWIGLU:
    case BR_NET_ADD:
    case BR_NET_MUL:
        if (d->n_in == 2 && !same_shape(x, &n->tensors.at[d->in[1]]))
            return misfit(d, &n->tensors.at[d->in[1]],
                          "does not have the shape of the other input", st);
        return BR_OK;
    case BR_NET_ARGMAX:
        if (x->rank != 2)
            return misfit(d, x, "is not [batch, columns]", st);
        o->rank = 1;
        o->dtype = BR_MDT_I32;
        return BR_OK;
    case BR_NET_GELU:
    case BR_NET_SOFTMAX:
    case BR_NET_COPY: return BR_OK;
    case BR_NET_OP_COUNT: break;
    }
    br_unreachable("every operation infers a shape");
}

/* ---- nodes --------------------------------------------------------------- */

static bool
is_id(const br_mega_net *n, int32_t id)
{
    return id >= 0 && (size_t)id < n->tensors.n;
}

static br_code
check_inputs(const br_mega_net *n, const br_net_node *d, br_status *st)
{
    const struct op_info *op = &ops[d->op];

    if (d->n_in < op->lo || d->n_in > op->hi)
        return br_fail(st, BR_E_FORMAT, "node '%s': %s takes %d..%d inputs",
                       d->name, op->text, op->lo, op->hi);
    for (int i = 0; i < d->n_in; i++) {
        const br_net_tensor *t;

        br_assert(is_id(n, d->in[i]) && "inputs are tensors of this net");
        t = &n->tensors.at[d->in[i]];
        if (t->kind == BR_MBK_WEIGHT)
            return misfit(d, t, "a weight cannot be an input", st);
        if ((t->kind == BR_MBK_KV_CACHE) !=
            (d->op == BR_NET_ATTENTION && i > 0))
            return misfit(d, t, "caches are read by attention alone", st);
        if (t->dtype == BR_MDT_I32 && !(d->op == BR_NET_EMBED) &&
            !(d->op == BR_NET_ROPE && i == 1))
            return misfit(d, t, "integers cannot be computed with", st);
    }
    if ((d->weight != BR_NET_NONE) != op->weight)
        return br_fail(st, BR_E_FORMAT, "node '%s': %s %s", d->name, op->text,
                       op->weight ? "needs a weight" : "takes no weight");
    if (d->bias != BR_NET_NONE && !op->bias)
        return br_fail(st, BR_E_FORMAT, "node '%s': %s takes no bias", d->name,
                       op->text);
    br_assert(d->weight == BR_NET_NONE || is_id(n, d->weight));
    br_assert(d->bias == BR_NET_NONE || is_id(n, d->bias));
    return BR_OK;
}

static void
count_use(br_mega_net *n, int32_t t, bool linear_weight)
{
    if (t == BR_NET_NONE)
        return;
    n->tensors.at[t].uses++;
    n->tensors.at[t].other_uses += !linear_weight;
}

br_code
br_net_add_node(br_mega_net *n, const br_net_node *node, const char *out_name,
                int32_t *out, br_status *st)
{
    br_net_node d = *node;
    br_net_tensor o;

    BR_TRY(check_name(d.name, st));
    BR_TRY(check_inputs(n, &d, st));
    BR_TRY(infer(n, &d, &o, st));
    if (n->nodes.n >= BR_NET_MAX_NODES)
        return br_fail(st, BR_E_LIMIT, "graph: more than %d nodes",
                       BR_NET_MAX_NODES);
    o.name = out_name;
    if (!br_vec_reserve(&n->nodes, n->nodes.n + 1))
        return no_memory(st);
    d.name = br_arena_str(&n->arena, d.name, strlen(d.name));
    d.role = br_arena_str(&n->arena, d.role, strlen(d.role));
    if (!d.name || !d.role)
        return no_memory(st);
    BR_TRY(br_net_add_tensor(n, &o, &d.out, st));
    n->tensors.at[d.out].producer = (int32_t)n->nodes.n;
    for (int i = 0; i < d.n_in; i++)
        count_use(n, d.in[i], false);
    count_use(n, d.weight, d.op == BR_NET_LINEAR);
    count_use(n, d.bias, false);
    n->nodes.at[n->nodes.n++] = d;
    *out = d.out;
    return BR_OK;
}

br_code
br_net_set_output(br_mega_net *n, int32_t t, br_status *st)
{
    br_net_tensor *x = &n->tensors.at[t];

    if (x->kind != BR_MBK_ACTIVATION)
        return br_fail(st, BR_E_FORMAT,
                       "output '%s': no node computes it, or it is named twice",
                       x->name);
    x->kind = BR_MBK_IO_OUTPUT;
    return BR_OK;
}

br_code
br_net_quantise(br_mega_net *n, int bits, int64_t group, br_status *st)
{
    if (bits != 4 && bits != 8)
        return br_fail(st, BR_E_FORMAT, "quant: %d bits; 4 and 8 are known",
                       bits);
    if (group < 1 || group > INT32_MAX)
        return br_fail(st, BR_E_FORMAT, "quant: group %lld is not in 1..%d",
                       (long long)group, INT32_MAX);
    n->quant_bits = bits;
    n->quant_group = group;
    for (size_t i = 0; i < n->tensors.n; i++) {
        br_net_tensor *t = &n->tensors.at[i];

        t->quant = t->kind == BR_MBK_WEIGHT && t->uses > 0 &&
                   t->other_uses == 0 && !t->keep_float;
    }
    for (size_t i = 0; i < n->nodes.n; i++) {
        const br_net_node *d = &n->nodes.at[i];

        if (d->op == BR_NET_LINEAR && d->bias != BR_NET_NONE &&
            n->tensors.at[d->weight].quant)
            return br_fail(st, BR_E_UNSUPPORTED,
                           "node '%s': a linear with integer weights takes no "
                           "bias (no opcode has both)",
                           d->name);
    }
    return BR_OK;
}

br_code
br_net_finish(const br_mega_net *n, br_status *st)
{
    for (size_t i = 0; i < n->tensors.n; i++)
        if (n->tensors.at[i].kind == BR_MBK_IO_OUTPUT)
            return BR_OK;
    return br_fail(st, BR_E_FORMAT, "graph: it has no output");
}

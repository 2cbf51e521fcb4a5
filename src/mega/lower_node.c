/* lower_node.c - one function per operation of a network.
 *
 * Each makes, in this order: the output buffer, its counter, the weight buffer
 * if this is its first use, the tasks. The order is part of the reference's
 * bytes. Costs (est_*) are the reference's too: bytes from memory, where
 * weights dominate, and flops.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "mega/lower_internal.h"

#include <string.h>

static int64_t
numel(const br_net_tensor *t)
{
    int64_t n = 1;

    for (uint32_t i = 0; i < t->rank; i++)
        n *= t->shape[i];
    return n; /* <= 2^40 */
}

static int64_t
dtype_bytes(const br_lower *l)
{
    return BR_MAX(1, br_mega_dtype_bits((int)l->net->dtype) / 8);
}

static const br_net_tensor *
tensor(const br_lower *l, int32_t id)
{
    return &l->net->tensors.at[id];
}

static void
put(br_low_task *t, br_mega_pv v)
{
    t->params[t->n_params++] = v;
}

static void
read_tensor(br_lower *l, br_low_task *t, int32_t id)
{
    t->in[t->n_in++] = l->tensors[id].buffer;
    br_low_wait(l, t, id);
}

/* The rest of an operation that is one task on one counter: emit and note. */
static void
finish(br_lower *l, br_low_task *t, const br_net_node *d)
{
    t->label = d->name;
    br_low_emit(l, t);
    br_low_ready(l, d->out, t->counter, 1);
}

static void
start(br_lower *l, br_low_task *t, br_mega_op op, const br_net_node *d)
{
    *t = (br_low_task){.op = op};
    t->out = br_low_output(l, d->out);
    t->counter = br_low_counter(l, d->name);
}

static void
embed(br_lower *l, const br_net_node *d)
{
    const br_net_tensor *o = tensor(l, d->out);
    br_low_task t;

    start(l, &t, BR_MOP_EMBED, d);
    read_tensor(l, &t, d->in[0]);
    t.in[t.n_in++] = br_low_weight(l, d->weight);
    put(&t, BR_PV_I(hidden, o->shape[1]));
    t.est_bytes = br_low_mul(l, numel(o), dtype_bytes(l), 1, 1);
    finish(l, &t, d);
}

static void
norm(br_lower *l, const br_net_node *d)
{
    const br_net_tensor *o = tensor(l, d->out);
    br_low_task t;

    start(l, &t, d->op == BR_NET_RMSNORM ? BR_MOP_RMSNORM : BR_MOP_LAYERNORM,
          d);
    read_tensor(l, &t, d->in[0]);
    t.in[t.n_in++] = br_low_weight(l, d->weight);
    if (d->bias != BR_NET_NONE)
        t.in[t.n_in++] = br_low_weight(l, d->bias);
    put(&t, BR_PV_F(eps, d->eps));
    put(&t, BR_PV_I(hidden, o->shape[o->rank - 1]));
    t.est_bytes = br_low_mul(l, numel(o), dtype_bytes(l), 1, 1);
    t.est_flops = br_low_mul(l, 4, numel(o), 1, 1);
    finish(l, &t, d);
}

static void
elementwise(br_lower *l, const br_net_node *d, br_mega_op op, int64_t flops)
{
    int64_t n = numel(tensor(l, d->in[0]));
    br_low_task t;

    start(l, &t, op, d);
    for (int i = 0; i < d->n_in; i++)
        read_tensor(l, &t, d->in[i]);
    if (d->op == BR_NET_MUL && d->n_in == 1)
        put(&t, BR_PV_F(scale, d->scale));
    t.est_bytes = br_low_mul(l, n, dtype_bytes(l), 1, 1);
    t.est_flops = br_low_mul(l, flops, n, 1, 1);
    finish(l, &t, d);
}

/* Flat to heads: a gather of rows 0..batch-1, because no opcode reshapes but
 * EMBED views its result as the output's shape. name: of the new buffer. */
static int64_t
cut_heads(br_lower *l, const br_net_node *d, const char *name, br_low_task *t)
{
    br_net_tensor shape = {0};
    br_low_buffer b = {.kind = BR_MBK_ACTIVATION, .dtype = l->net->dtype};

    br_net_heads_shape(l->net, d->is_query, d->n_heads, d->head_dim, &shape);
    b.name = name;
    b.rank = shape.rank;
    memcpy(b.shape, shape.shape, sizeof b.shape);
    *t = (br_low_task){.op = BR_MOP_EMBED, .out = br_low_buffer_add(l, &b)};
    return t->out;
}

static void
heads(br_lower *l, const br_net_node *d)
{
    br_low_task t;

    if (tensor(l, d->in[0])->headed) { /* nothing to cut */
        elementwise(l, d, BR_MOP_COPY, 0);
        return;
    }
    start(l, &t, BR_MOP_EMBED, d);
    t.in[t.n_in++] = l->reshape_ids;
    read_tensor(l, &t, d->in[0]);
    put(&t, BR_PV_I(hidden, d->head_dim));
    finish(l, &t, d);
}

static void
rope(br_lower *l, const br_net_node *d)
{
    const br_net_tensor *o = tensor(l, d->out);
    br_low_tensor cut = l->tensors[d->in[0]];
    br_low_task t;

    if (!tensor(l, d->in[0])->headed) {
        const char *name = br_low_text(l, "%s.hs", o->name);

        cut.buffer = cut_heads(l, d, name, &t);
        name = br_low_text(l, "%s.reshape", d->name);
        t.counter = br_low_counter(l, name);
        t.in[t.n_in++] = l->reshape_ids;
        read_tensor(l, &t, d->in[0]);
        put(&t, BR_PV_I(hidden, d->head_dim));
        t.label = NULL; /* the text above */
        br_low_emit(l, &t);
        cut.counter = t.counter;
        cut.threshold = 1;
    }
    start(l, &t, BR_MOP_ROPE, d);
    t.in[t.n_in++] = cut.buffer;
    t.in[t.n_in++] = l->tensors[d->in[1]].buffer;
    if (cut.counter >= 0 && !l->recipe.open)
        t.waits[t.n_waits++] = (br_mega_wait){cut.counter, cut.threshold};
    else
        br_low_wait(l, &t, d->in[0]);
    put(&t, BR_PV_I(head_dim, d->head_dim));
    put(&t, BR_PV_F(theta, d->theta));
    t.est_flops = br_low_mul(l, 6, d->n_heads, d->head_dim, 1);
    finish(l, &t, d);
}

static void
kv_append(br_lower *l, const br_net_node *d)
{
    br_low_task t;

    start(l, &t, BR_MOP_KV_APPEND, d);
    read_tensor(l, &t, d->in[0]);
    t.in[t.n_in++] = t.out;
    put(&t, BR_PV_I(pos, l->net->pos));
    t.est_bytes = br_low_mul(l, l->net->batch, d->n_kv_heads, d->head_dim,
                             dtype_bytes(l));
    finish(l, &t, d);
}

/* ---- attention ----------------------------------------------------------- */

enum { AMK_MIN_KEYS = 16 }; /* of a shard, in the reference */

static int64_t
ceil_div(int64_t a, int64_t b)
{
    return (a - 1) / b + 1;
}

static int64_t
amk_shards(const br_lower *l, int64_t keys, int64_t parts, int64_t *per_shard)
{
    int64_t p = BR_MIN(BR_CFG_MAX_SHARDS, l->workers);

    p = BR_MIN(p, BR_MIN(parts, ceil_div(keys, AMK_MIN_KEYS)));
    if (parts <= 1 || l->net->batch > 1)
        p = 1;
    *per_shard = ceil_div(keys, p);
    return ceil_div(keys, *per_shard);
}

/* House: shards begin at multiples of kv_block; there are as many as
 * n_partitions allows (8 when only kv_block is given). */
int64_t
br_low_shards(const br_lower *l, const br_net_node *d, int64_t *per_shard)
{
    int64_t keys = l->net->pos + 1, block = 0, parts = 0, blocks;

    (void)d;
    for (size_t i = 0; i < l->cfg.n_tilings; i++)
        if (strcmp(l->cfg.tilings[i].op, "attention") == 0) {
            block = l->cfg.tilings[i].kv_block;
            parts = l->cfg.tilings[i].n_partitions;
        }
    if (l->amk)
        return amk_shards(l, keys, parts, per_shard);
    *per_shard = keys;
    if (!block && parts <= 1)
        return 1;
    parts = parts ? parts : BR_CFG_MAX_SHARDS;
    blocks = block ? ceil_div(keys, block) : keys;
    *per_shard = ceil_div(blocks, BR_MIN(parts, blocks)) * (block ? block : 1);
    return ceil_div(keys, *per_shard);
}

static void
attention_params(br_low_task *t, const br_net_node *d, int64_t start_at,
                 int64_t keys)
{
    put(t, BR_PV_I(head_dim, d->head_dim));
    put(t, BR_PV_I(kv_start, start_at));
    put(t, BR_PV_I(kv_len, keys));
    put(t, BR_PV_F(scale, d->scale));
    put(t, BR_PV_I(n_heads, d->n_heads));
    put(t, BR_PV_I(n_kv_heads, d->n_kv_heads));
}

/* What attention over some keys costs, for one sequence. */
static void
attention_cost(br_lower *l, br_low_task *t, const br_net_node *d, int64_t keys,
               int64_t batch)
{
    int64_t kv = br_low_mul(l, 2 * batch, keys, d->n_kv_heads, d->head_dim);
    int64_t q = br_low_mul(l, 4 * batch, d->n_heads, d->head_dim, keys);

    t->est_bytes = br_low_mul(l, kv, dtype_bytes(l), 1, 1);
    t->est_flops = q;
}

static void
whole_attention(br_lower *l, const br_net_node *d)
{
    br_low_task t;

    start(l, &t, BR_MOP_ATTENTION_TILE, d);
    for (int i = 0; i < 3; i++)
        read_tensor(l, &t, d->in[i]);
    attention_params(&t, d, 0, l->net->pos + 1);
    attention_cost(l, &t, d, l->net->pos + 1, l->net->batch);
    finish(l, &t, d);
}

/* One shard: keys first..first+keys-1 into a partial [n_heads, head_dim + 2],
 * the accumulator, maximum and sum of each head. */
static void
shard(br_lower *l, const br_net_node *d, int64_t p, int64_t first, int64_t keys,
      br_low_task *combine)
{
    const char *out = tensor(l, d->out)->name;
    br_low_buffer b = {.kind = BR_MBK_ACTIVATION,
                       /* a sum of exponentials deserves f32 */
                       .dtype = l->amk ? l->net->dtype : BR_MDT_F32,
                       .rank = 2,
                       .shape = {d->n_heads, d->head_dim + 2}};
    br_low_task t = {.op = BR_MOP_ATTENTION_TILE};

    b.name = br_low_text(l, "%s.part%lld", out, (long long)p);
    t.out = br_low_buffer_add(l, &b);
    t.counter =
        br_low_counter(l, br_low_text(l, "%s.s%lld", d->name, (long long)p));
    for (int i = 0; i < 3; i++)
        read_tensor(l, &t, d->in[i]);
    attention_params(&t, d, first, keys);
    put(&t, BR_PV_I(flags, BR_MEGA_FLAG_PARTIAL));
    attention_cost(l, &t, d, keys, 1);
    t.fixed_sm = l->amk;
    t.sm = p % l->workers;
    br_low_emit(l, &t); /* label: the counter's note */
    combine->in[combine->n_in++] = t.out;
    combine->waits[combine->n_waits++] = (br_mega_wait){t.counter, 1};
}

static void
split_attention(br_lower *l, const br_net_node *d, int64_t n, int64_t per_shard)
{
    br_low_task c = {.op = BR_MOP_ATTENTION_COMBINE};
    int64_t keys = l->net->pos + 1;
    int64_t part_bytes = l->amk ? dtype_bytes(l) : 4;

    for (int64_t p = 0; p < n && br_low_ok(l); p++)
        shard(l, d, p, p * per_shard, BR_MIN(per_shard, keys - p * per_shard),
              &c);
    c.out = br_low_output(l, d->out);
    c.counter = br_low_counter(l, d->name);
    put(&c, BR_PV_I(head_dim, d->head_dim));
    put(&c, BR_PV_I(n_heads, d->n_heads));
    put(&c, BR_PV_I(n_kv_heads, d->n_kv_heads));
    c.est_bytes = br_low_mul(l, n, d->n_heads, d->head_dim + 2, part_bytes);
    c.est_flops = br_low_mul(l, n, d->n_heads, d->head_dim, 1);
    br_low_text(l, "%s.comb", d->name);
    br_low_emit(l, &c);
    br_low_ready(l, d->out, c.counter, 1);
    l->stats.split_attentions++;
}

static void
attention(br_lower *l, const br_net_node *d)
{
    int64_t per_shard, n = br_low_shards(l, d, &per_shard);

    if (n == 1) {
        whole_attention(l, d);
        return;
    }
    if (l->net->batch > 1) {
        br_low_fail(l, br_fail(l->st, BR_E_FORMAT,
                               "config.tiling.attention: %lld keys of '%s' "
                               "would be split, and split attention takes one "
                               "sequence (batch %lld)",
                               (long long)l->net->pos + 1, d->name,
                               (long long)l->net->batch));
        return;
    }
    split_attention(l, d, n, per_shard);
}

void
br_low_node(br_lower *l, const br_net_node *d)
{
    if (!br_low_ok(l))
        return;
    switch (d->op) {
    case BR_NET_EMBED: embed(l, d); return;
    case BR_NET_RMSNORM:
    case BR_NET_LAYERNORM: norm(l, d); return;
    case BR_NET_LINEAR: br_low_linear(l, d); return;
    case BR_NET_HEADS: heads(l, d); return;
    case BR_NET_ROPE: rope(l, d); return;
    case BR_NET_KV_APPEND: kv_append(l, d); return;
    case BR_NET_ATTENTION: attention(l, d); return;
    case BR_NET_SWIGLU: elementwise(l, d, BR_MOP_SILU_MUL, 3); return;
    case BR_NET_GELU: elementwise(l, d, BR_MOP_GELU, 8); return;
    case BR_NET_ADD: elementwise(l, d, BR_MOP_ADD, 1); return;
    case BR_NET_MUL: elementwise(l, d, BR_MOP_MUL, 1); return;
    case BR_NET_SOFTMAX: elementwise(l, d, BR_MOP_SOFTMAX, 5); return;
    case BR_NET_ARGMAX: elementwise(l, d, BR_MOP_SAMPLE_ARGMAX, 1); return;
    case BR_NET_COPY: elementwise(l, d, BR_MOP_COPY, 0); return;
    case BR_NET_OP_COUNT: break;
    }
    br_unreachable("every operation has a lowering");
}

/* net_model.c - the network of a decoder of the Llama family, from its shape.
 *
 *   h --norm--> q,k,v --rope--> append k,v --> attention --> o --+--> h'
 *   h' --norm--> gate,up --> swiglu --> down --+--> h''          |
 *
 * Tensor and node names are those of the reference's own importer, because
 * programs carry them (docs/schedule.md). With norms on q and k the heads are
 * cut before the norm, else by the rope.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "mega/net_internal.h"

#include <math.h>
#include <stdio.h>

/* clang-format off */
static const br_mega_shape shapes[] = {
#define S(name_, h, nh, kv, hd, inter, v, layers, eps, theta, seq, tied_, qkn, \
          keys, src)                                                           \
    {.name = name_, .hidden = h, .n_heads = nh, .n_kv_heads = kv,              \
     .head_dim = hd, .intermediate = inter, .vocab = v, .n_layers = layers,    \
     .rms_eps = eps, .rope_theta = theta, .max_seq = seq, .tied = tied_,       \
     .qk_norm = qkn, .hf_keys = keys, .source = src},
#include "mega/shapes.def"
#undef S
};
/* clang-format on */

enum { MAX_LAYERS = 4096, NAME = 96 };

size_t
br_mega_shape_count(void)
{
    return BR_COUNT(shapes);
}

const br_mega_shape *
br_mega_shape_at(size_t i)
{
    br_assert(i < BR_COUNT(shapes) && "index below br_mega_shape_count");
    return &shapes[i];
}

const br_mega_shape *
br_mega_shape_find(br_text name)
{
    for (size_t i = 0; i < BR_COUNT(shapes); i++)
        if (br_text_is(name, shapes[i].name))
            return &shapes[i];
    return NULL;
}

/* Keys of the weights of a layer; [0] as the toy model, [1] as Hugging Face.
 * The part after the last dot but "weight" is the role, except for norms. */
typedef enum key_id {
    K_INPUT_NORM,
    K_POST_NORM,
    K_Q,
    K_K,
    K_V,
    K_O,
    K_GATE,
    K_UP,
    K_DOWN,
    K_Q_NORM,
    K_K_NORM,
} key_id;

static const struct {
    const char *role, *text[2];
} keys[] = {
    [K_INPUT_NORM] = {"input_norm", {"input_norm", "input_layernorm.weight"}},
    [K_POST_NORM] = {"post_norm",
                     {"post_norm", "post_attention_layernorm.weight"}},
    [K_Q] = {"q_proj", {"attn.q_proj.weight", "self_attn.q_proj.weight"}},
    [K_K] = {"k_proj", {"attn.k_proj.weight", "self_attn.k_proj.weight"}},
    [K_V] = {"v_proj", {"attn.v_proj.weight", "self_attn.v_proj.weight"}},
    [K_O] = {"o_proj", {"attn.o_proj.weight", "self_attn.o_proj.weight"}},
    [K_GATE] = {"gate_proj", {"mlp.gate_proj.weight", "mlp.gate_proj.weight"}},
    [K_UP] = {"up_proj", {"mlp.up_proj.weight", "mlp.up_proj.weight"}},
    [K_DOWN] = {"down_proj", {"mlp.down_proj.weight", "mlp.down_proj.weight"}},
    [K_Q_NORM] = {"q_norm", {"attn.q_norm", "self_attn.q_norm.weight"}},
    [K_K_NORM] = {"k_norm", {"attn.k_norm", "self_attn.k_norm.weight"}},
};

typedef struct model {
    br_mega_net *net;
    const br_mega_shape *s;
    br_status *st;
    br_code code; /* the first failure; later calls do nothing */
    int layer;
    int32_t pos;
} model;

/* A weight, made on first use. */
static int32_t
weight(model *m, const char *key, int64_t rows, int64_t columns)
{
    br_net_tensor t = {.name = key, .kind = BR_MBK_WEIGHT};
    int32_t id = br_net_find(m->net, key);

    t.dtype = (uint8_t)m->net->dtype;
    if (m->code != BR_OK || id != BR_NET_NONE)
        return id;
    if (rows > 0)
        t.shape[t.rank++] = rows;
    t.shape[t.rank++] = columns;
    m->code = br_net_add_tensor(m->net, &t, &id, m->st);
    return id;
}

static int32_t
layer_weight(model *m, key_id k, int64_t rows, int64_t columns)
{
    char key[NAME];

    snprintf(key, sizeof key, "%slayers.%d.%s", m->s->hf_keys ? "model." : "",
             m->layer, keys[k].text[m->s->hf_keys]);
    return weight(m, key, rows, columns);
}

/* Adds a node; in layers its names get "L<layer>." before them. */
static int32_t
node(model *m, br_net_node d, const char *name, const char *out)
{
    char full_name[NAME], full_out[NAME];
    int32_t id = BR_NET_NONE;

    if (m->code != BR_OK)
        return BR_NET_NONE;
    if (m->layer >= 0) {
        snprintf(full_name, sizeof full_name, "L%d.%s", m->layer, name);
        snprintf(full_out, sizeof full_out, "L%d.%s", m->layer, out);
    } else {
        snprintf(full_name, sizeof full_name, "%s", name);
        snprintf(full_out, sizeof full_out, "%s", out);
    }
    d.name = full_name;
    if (!d.role)
        d.role = "";
    d.bias = BR_NET_NONE;
    m->code = br_net_add_node(m->net, &d, full_out, &id, m->st);
    return id;
}

static int32_t
linear(model *m, key_id k, int32_t x, int64_t rows, int64_t columns,
       const char *out)
{
    int32_t w = layer_weight(m, k, rows, columns);

    return node(m,
                (br_net_node){.op = BR_NET_LINEAR,
                              .role = keys[k].role,
                              .in = {x},
                              .n_in = 1,
                              .weight = w},
                keys[k].role, out);
}

static int32_t
norm(model *m, key_id k, int32_t x, int64_t columns, const char *out)
{
    int32_t w = layer_weight(m, k, 0, columns);

    return node(m,
                (br_net_node){.op = BR_NET_RMSNORM,
                              .role = keys[k].role,
                              .in = {x},
                              .n_in = 1,
                              .weight = w,
                              .eps = m->s->rms_eps},
                keys[k].role, out);
}

/* q or k: heads, their norm where the family has one, rope. */
static int32_t
turned(model *m, int32_t x, bool is_query)
{
    const br_mega_shape *s = m->s;
    br_net_node d = {.op = BR_NET_HEADS,
                     .in = {x},
                     .n_in = 1,
                     .weight = BR_NET_NONE,
                     .n_heads = is_query ? s->n_heads : s->n_kv_heads,
                     .head_dim = s->head_dim,
                     .is_query = is_query};

    if (s->qk_norm) {
        x = node(m, d, is_query ? "q_heads" : "k_heads",
                 is_query ? "qh" : "kh");
        x = norm(m, is_query ? K_Q_NORM : K_K_NORM, x, s->head_dim,
                 is_query ? "qn" : "kn");
    }
    d.op = BR_NET_ROPE;
    d.in[0] = x;
    d.in[1] = m->pos;
    d.n_in = 2;
    d.theta = s->rope_theta;
    return node(m, d, is_query ? "rope_q" : "rope_k", is_query ? "qr" : "kr");
}

static int32_t
append(model *m, int32_t x, const char *name, const char *out)
{
    return node(m,
                (br_net_node){.op = BR_NET_KV_APPEND,
                              .in = {x},
                              .n_in = 1,
                              .weight = BR_NET_NONE,
                              .n_kv_heads = m->s->n_kv_heads,
                              .head_dim = m->s->head_dim},
                name, out);
}

static int32_t
two(model *m, br_net_op op, int32_t a, int32_t b, const char *name,
    const char *out)
{
    return node(
        m,
        (br_net_node){.op = op, .in = {a, b}, .n_in = 2, .weight = BR_NET_NONE},
        name, out);
}

static int32_t
attention_block(model *m, int32_t h)
{
    const br_mega_shape *s = m->s;
    int64_t qd = s->n_heads * s->head_dim, kd = s->n_kv_heads * s->head_dim;
    br_net_node d = {.op = BR_NET_ATTENTION,
                     .n_in = 3,
                     .weight = BR_NET_NONE,
                     .n_heads = s->n_heads,
                     .n_kv_heads = s->n_kv_heads,
                     .head_dim = s->head_dim,
                     .scale = pow((double)s->head_dim, -0.5)};
    int32_t an = norm(m, K_INPUT_NORM, h, s->hidden, "an");
    int32_t q = linear(m, K_Q, an, qd, s->hidden, "q");
    int32_t k = linear(m, K_K, an, kd, s->hidden, "k");
    int32_t v = linear(m, K_V, an, kd, s->hidden, "v");
    int32_t o;

    d.in[0] = turned(m, q, true);
    k = turned(m, k, false);
    d.in[1] = append(m, k, "k_append", "kcache");
    d.in[2] = append(m, v, "v_append", "vcache");
    o = node(m, d, "attention", "attn");
    o = linear(m, K_O, o, s->hidden, qd, "o");
    return two(m, BR_NET_ADD, h, o, "attn_residual", "h_attn");
}

static int32_t
mlp_block(model *m, int32_t h)
{
    const br_mega_shape *s = m->s;
    int32_t mn = norm(m, K_POST_NORM, h, s->hidden, "mn");
    int32_t g = linear(m, K_GATE, mn, s->intermediate, s->hidden, "gate");
    int32_t u = linear(m, K_UP, mn, s->intermediate, s->hidden, "up");
    int32_t a = two(m, BR_NET_SWIGLU, g, u, "swiglu", "act");
    int32_t d = linear(m, K_DOWN, a, s->hidden, s->intermediate, "d");

    return two(m, BR_NET_ADD, h, d, "mlp_residual", "h_mlp");
}

static int32_t
input(model *m, const char *name)
{
    br_net_tensor t = {.name = name,
                       .kind = BR_MBK_IO_INPUT,
                       .dtype = BR_MDT_I32,
                       .rank = 1,
                       .shape = {m->net->batch}};
    int32_t id = BR_NET_NONE;

    if (m->code == BR_OK)
        m->code = br_net_add_tensor(m->net, &t, &id, m->st);
    return id;
}

static br_code
check_shape(const br_mega_shape *s, br_status *st)
{
    const struct {
        const char *name;
        int64_t v, max;
    } dims[] = {
        {"hidden", s->hidden, 1 << 24},
        {"n_heads", s->n_heads, 1 << 16},
        {"n_kv_heads", s->n_kv_heads, 1 << 16},
        {"head_dim", s->head_dim, 1 << 14},
        {"intermediate", s->intermediate, 1 << 26},
        {"vocab", s->vocab, 1 << 28},
        {"n_layers", s->n_layers, MAX_LAYERS},
    };

    for (size_t i = 0; i < BR_COUNT(dims); i++)
        if (dims[i].v < 1 || dims[i].v > dims[i].max)
            return br_fail(st, BR_E_FORMAT, "shape: %s %lld is not in 1..%lld",
                           dims[i].name, (long long)dims[i].v,
                           (long long)dims[i].max);
    return BR_OK;
}

static void
build(model *m)
{
    const br_mega_shape *s = m->s;
    const char *table =
        s->hf_keys ? "model.embed_tokens.weight" : "embed.weight";
    int32_t ids = input(m, "token_id"), h;
    int32_t w;

    m->layer = -1;
    m->pos = input(m, "pos");
    w = weight(m, table, s->vocab, s->hidden);
    h = node(
        m,
        (br_net_node){.op = BR_NET_EMBED, .in = {ids}, .n_in = 1, .weight = w},
        "embed", "h0");
    for (m->layer = 0; m->layer < s->n_layers && m->code == BR_OK; m->layer++) {
        h = attention_block(m, h);
        h = mlp_block(m, h);
    }
    m->layer = -1;
    w = weight(m, s->hf_keys ? "model.norm.weight" : "final_norm", 0,
               s->hidden);
    h = node(m,
             (br_net_node){.op = BR_NET_RMSNORM,
                           .role = "final_norm",
                           .in = {h},
                           .n_in = 1,
                           .weight = w,
                           .eps = s->rms_eps},
             "final_norm", "hf");
    w = weight(m, s->tied ? table : "lm_head.weight", s->vocab, s->hidden);
    h = node(m,
             (br_net_node){.op = BR_NET_LINEAR,
                           .role = "lm_head",
                           .in = {h},
                           .n_in = 1,
                           .weight = w},
             "lm_head", "logits");
    if (m->code == BR_OK)
        m->code = br_net_set_output(m->net, h, m->st);
}

br_code
br_mega_net_model(br_mega_net **out, const br_mega_shape *shape,
                  const br_mega_step *step, br_status *st)
{
    br_net_open o = {.source = shape->source ? shape->source : "model",
                     .batch = step->batch ? step->batch : 1,
                     .pos = step->pos,
                     .max_seq = shape->max_seq,
                     .n_layers = shape->n_layers,
                     .dtype = step->dtype};
    model m = {.s = shape, .st = st};

    *out = NULL;
    BR_TRY(check_shape(shape, st));
    BR_TRY(br_mega_net_open(&m.net, &o, st));
    build(&m);
    if (m.code == BR_OK && step->quant_bits)
        m.code =
            br_net_quantise(m.net, step->quant_bits, step->quant_group, st);
    if (m.code != BR_OK) {
        br_mega_net_free(m.net);
        return m.code;
    }
    *out = m.net;
    return BR_OK;
}

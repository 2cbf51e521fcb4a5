/* verbs_att.c - attention over the pages of a slot, plain and latent.
 *
 *   x -- q,k,v -- norms -- rope --> KV_WRITE, BARRIER, FLASH_ATTN --> output
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "ir/verbs.h"

#include <stdio.h>

/* Nearest f32 of a / sqrt(x), by Newton in double: no libm. */
static float
rsqrt_of(double x)
{
    double r = x > 1 ? x : 1;

    for (int i = 0; i < 64; i++)
        r = 0.5 * (r + x / r);
    return (float)(1 / r);
}

static float
att_scale(const br_verbs *v)
{
    const br_hparams *hp = v->hp;

    if (v->flags & BR_AF_ONE_SCALE)
        return 1;
    if (hp->att_scale > 0)
        return hp->att_scale;
    /* Two sizes of Gemma are trained with the width per head instead. */
    if ((v->m->arch_id == BR_ARCH_GEMMA2 && hp->n_layer == 46) ||
        (v->m->arch_id == BR_ARCH_GEMMA3 && hp->n_layer == 62))
        return rsqrt_of((double)(hp->n_embd / v->y->n_head));
    return rsqrt_of((double)v->y->head_k);
}

typedef struct qkv {
    br_ir_bind q, k, v, gate;
} qkv;

static br_ir_bind
bias(br_verbs *v, br_weight w, int64_t n)
{
    return v->flags & BR_AF_BIAS_QKV ? br_verb_weight(v, w, BR_DIMS(n))
                                     : br_verb_weight_maybe(v, w, BR_DIMS(n));
}

static br_ir_bind
project(br_verbs *v, const char *name, br_ir_bind x, br_weight w, br_weight b,
        int64_t n)
{
    br_ir_bind wb = br_verb_weight(v, w, BR_DIMS(n, v->hp->n_embd));

    return br_verb_matmul(v, name, x, wb, bias(v, b, n));
}

/* Heads of [q | gate] come apart. */
static void
split_gate(br_verbs *v, qkv *o, br_ir_bind both)
{
    uint32_t d = (uint32_t)v->y->head_k, h = (uint32_t)v->y->n_head;

    o->q = (br_ir_bind){both.value, both.off, d, 2 * d, h};
    o->gate = (br_ir_bind){both.value, both.off + d, d, 2 * d, h};
}

static qkv
qkv_of(br_verbs *v, br_ir_bind x, bool own)
{
    const br_layer_hp *y = v->y;
    bool gated = v->flags & BR_AF_Q_GATE;
    int64_t nq = (int64_t)y->n_head * y->head_k * (gated ? 2 : 1);
    int64_t nk = (int64_t)y->n_kv * y->head_k;
    int64_t nv = (int64_t)y->n_kv * y->head_v;
    qkv o = {br_ir_none(), br_ir_none(), br_ir_none(), br_ir_none()};

    if (br_verb_instead(v, BR_W_QKV, BR_W_Q)) {
        br_ir_bind all =
            project(v, "qkv", x, BR_W_QKV, BR_W_QKV_B, nq + nk + nv);

        o.q = br_ir_cut(all.value, 0, nq);
        o.k = br_ir_cut(all.value, nq, nk);
        o.v = br_ir_cut(all.value, nq + nk, nv);
    } else {
        o.q = project(v, "q", x, BR_W_Q, BR_W_Q_B, nq);
        if (own) {
            o.k = project(v, "k", x, BR_W_K, BR_W_K_B, nk);
            o.v = v->flags & BR_AF_V_NORM && !br_verb_has(v, BR_W_V)
                      ? o.k
                      : project(v, "v", x, BR_W_V, BR_W_V_B, nv);
        }
    }
    if (gated)
        split_gate(v, &o, o.q);
    return o;
}

static br_ir_bind
head_norm(br_verbs *v, const char *name, br_ir_bind x, br_weight w)
{
    int64_t d = v->y->head_k;
    br_ir_bind g;

    if (v->flags & BR_AF_QK_WHOLE) {
        d = br_bind_cols(x);
        g = br_verb_weight(v, w, BR_DIMS(d));
    } else if (v->flags & BR_AF_QK_NORM) {
        g = br_verb_weight(v, w, BR_DIMS(d));
    } else {
        if (!(v->flags & BR_AF_QK_MAYBE) || !br_verb_has(v, w))
            return x;
        g = br_verb_weight(v, w, BR_DIMS(d));
    }
    return br_verb_norm(v, name, x, g, d);
}

typedef struct kv_state {
    br_ir_bind k, v;
} kv_state;

/* The pages of the layer that owns the keys; made by that layer. */
static kv_state
kv_of(br_verbs *v, int owner, int64_t nk, int64_t nv)
{
    kv_state s = {br_ir_none(), br_ir_none()};

    if (owner == v->layer) {
        s.k = br_verb_state(v, "state.kv_k", BR_DIMS(BR_DIM_POS, nk));
        if (nv)
            s.v = br_verb_state(v, "state.kv_v", BR_DIMS(BR_DIM_POS, nv));
        return s;
    }
    char name[64];
    snprintf(name, sizeof name, "state.kv_k[%d]", owner);
    s.k = br_ir_all(v->b, br_ir_find_value(v->b, name));
    snprintf(name, sizeof name, "state.kv_v[%d]", owner);
    s.v = br_ir_all(v->b, br_ir_find_value(v->b, name));
    if (br_verb_none(s.k) || br_bind_cols(s.k) != nk || br_bind_cols(s.v) != nv)
        br_ir_builder_fail(v->b, BR_E_FORMAT,
                           "layers that share keys have heads that differ");
    return s;
}

static void
kv_write(br_verbs *v, br_ir_bind k, br_ir_bind val, kv_state s)
{
    BR_NODE(v, KV_WRITE_BATCHED, 5, 0, .in = {k, val, v->position, s.k, s.v});
    br_ir_set_i(v->b, BR_IA_window, v->y->window);
    BR_NODE(v, BARRIER, 2, 0, .in = {s.k, s.v});
}

typedef struct att_desc {
    int64_t heads, kv_heads, head_k, head_v;
    float scale;
    br_ir_bind sinks;
} att_desc;

static br_ir_bind
attend(br_verbs *v, br_ir_bind q, kv_state s, const att_desc *a)
{
    br_ir_bind y = br_verb_temp(v, "att", a->heads * a->head_v);
    br_ir_node_desc d = {.op = v->stage == BR_IR_DECODE
                                   ? BR_IR_FLASH_ATTN
                                   : BR_IR_FLASH_ATTN_BATCHED,
                         .layer = v->layer,
                         .n_in = 5,
                         .n_out = 1,
                         .in = {q, s.k, s.v, v->position, a->sinks},
                         .out = {y}};

    br_verb_node(v, &d);
    br_ir_set_i(v->b, BR_IA_heads, a->heads);
    br_ir_set_i(v->b, BR_IA_kv_heads, a->kv_heads);
    br_ir_set_i(v->b, BR_IA_head_dim, a->head_k);
    br_ir_set_i(v->b, BR_IA_head_v, a->head_v);
    br_ir_set_f(v->b, BR_IA_scale, a->scale);
    br_ir_set_i(v->b, BR_IA_window, v->y->window);
    if (v->hp->att_cap > 0)
        br_ir_set_f(v->b, BR_IA_cap, v->hp->att_cap);
    return y;
}

static br_ir_bind
temperature(br_verbs *v, br_ir_bind q)
{
    br_ir_bind y;

    if (v->hp->att_temp_scale == 0)
        return q;
    if (v->hp->att_temp_len == 0) {
        br_ir_builder_fail(v->b, BR_E_FORMAT,
                           "rope.scaling.original_context_length: the "
                           "attention's temperature needs it");
        return q;
    }
    y = br_verb_temp(v, "q_temp", br_bind_cols(q));
    BR_NODE(v, TEMP_SCALE, 2, 1, .in = {q, v->position}, .out = {y});
    br_ir_set_f(v->b, BR_IA_scale, v->hp->att_temp_scale);
    br_ir_set_i(v->b, BR_IA_field, v->hp->att_temp_len);
    return y;
}

static br_ir_bind
output(br_verbs *v, br_ir_bind y)
{
    br_ir_bind w =
        br_verb_weight(v, BR_W_O, BR_DIMS(v->hp->n_embd, br_bind_cols(y)));
    br_ir_bind b =
        v->flags & BR_AF_BIAS_ALL
            ? br_verb_weight(v, BR_W_O_B, BR_DIMS(v->hp->n_embd))
            : br_verb_weight_maybe(v, BR_W_O_B, BR_DIMS(v->hp->n_embd));

    return br_verb_matmul(v, "att_out", y, w, b);
}

br_ir_bind
br_verb_attention(br_verbs *v, br_ir_bind x)
{
    const br_layer_hp *y = v->y;
    bool own = y->kv_layer == v->layer;
    qkv p = qkv_of(v, x, own);
    att_desc a = {y->n_head, y->n_kv,      y->head_k,
                  y->head_v, att_scale(v), br_ir_none()};
    kv_state s = kv_of(v, y->kv_layer, (int64_t)y->n_kv * y->head_k,
                       (int64_t)y->n_kv * y->head_v);
    br_ir_bind o;

    p.q = head_norm(v, "q_norm", p.q, BR_W_Q_NORM);
    p.q = br_verb_rope(v, "q_rope", p.q, y->head_k);
    p.q = temperature(v, p.q);
    if (own) {
        if (v->flags & BR_AF_V_NORM)
            p.v = br_verb_norm(v, "v_norm", p.v, br_ir_none(), y->head_v);
        p.k = head_norm(v, "k_norm", p.k, BR_W_K_NORM);
        p.k = br_verb_rope(v, "k_rope", p.k, y->head_k);
        kv_write(v, p.k, p.v, s);
    }
    if (v->flags & BR_AF_SINKS)
        a.sinks = br_verb_weight(v, BR_W_SINKS, BR_DIMS(y->n_head));
    o = attend(v, p.q, s, &a);
    if (!br_verb_none(p.gate))
        o = br_verb_mul(v, "att_gated", o,
                        br_verb_act(v, "att_gate", p.gate, BR_ACT_SIGMOID));
    return output(v, o);
}

/* ---- latent attention --------------------------------------------------- */

/* Keys and values of all heads are one vector of kv_lora columns; what would
 * expand it per head is folded into the query before and the output after, so
 * that the cache holds kv_lora + n_rot columns per token and no values. */
static br_ir_bind
mla_query(br_verbs *v, br_ir_bind x, int64_t nope)
{
    const br_hparams *hp = v->hp;
    int64_t h = v->y->n_head, n = h * hp->head_k_mla;

    (void)nope;
    if (hp->q_lora > 0) {
        br_ir_bind a = br_verb_matmul(
            v, "q_a", x,
            br_verb_weight(v, BR_W_Q_LORA_A, BR_DIMS(hp->q_lora, hp->n_embd)),
            br_ir_none());

        a = br_verb_norm(
            v, "q_a_norm", a,
            br_verb_weight(v, BR_W_Q_LORA_NORM, BR_DIMS(hp->q_lora)),
            hp->q_lora);
        return br_verb_matmul(
            v, "q", a, br_verb_weight(v, BR_W_Q_LORA_B, BR_DIMS(n, hp->q_lora)),
            br_ir_none());
    }
    return br_verb_matmul(v, "q", x,
                          br_verb_weight(v, BR_W_Q, BR_DIMS(n, hp->n_embd)),
                          br_ir_none());
}

static void
copy(br_verbs *v, br_ir_bind x, br_ir_bind y)
{
    BR_NODE(v, COPY, 1, 1, .in = {x}, .out = {y});
}

static br_ir_bind
by_head(br_verbs *v, const char *name, br_ir_bind x, br_weight w, int64_t n_out)
{
    int64_t h = v->y->n_head, n_in = br_bind_cols(x) / h;
    br_ir_bind y = br_verb_temp(v, name, h * n_out);

    BR_NODE(v, HEAD_MATMUL, 2, 1,
            .in = {x, br_verb_weight(v, w, BR_DIMS(h, n_out, n_in))},
            .out = {y});
    br_ir_set_i(v->b, BR_IA_heads, h);
    return y;
}

static bool
mla_sane(br_verbs *v)
{
    const br_hparams *hp = v->hp;

    if (hp->kv_lora > 0 && hp->head_k_mla > v->y->n_rot && hp->head_v_mla > 0)
        return true;
    br_ir_builder_fail(v->b, BR_E_FORMAT,
                       "latent attention needs attention.kv_lora_rank, "
                       "key_length_mla and value_length_mla");
    return false;
}

br_ir_bind
br_verb_mla(br_verbs *v, br_ir_bind x)
{
    const br_hparams *hp = v->hp;
    int64_t h = v->y->n_head, rot = v->y->n_rot, lora = hp->kv_lora;
    int64_t hk = hp->head_k_mla, nope = hk - rot, wide = lora + rot;
    br_ir_bind q, c, kn, kr, qa, qr, key, qq, o;
    kv_state s;
    att_desc a = {h, 1, wide, lora, 0, br_ir_none()};

    if (!mla_sane(v))
        return x;
    q = mla_query(v, x, nope);
    c = br_verb_matmul(
        v, "kv_a", x,
        br_verb_weight(v, BR_W_KV_LORA_A, BR_DIMS(wide, hp->n_embd)),
        br_ir_none());
    kn =
        br_verb_norm(v, "kv_norm", br_ir_cut(c.value, 0, lora),
                     br_verb_weight(v, BR_W_KV_LORA_NORM, BR_DIMS(lora)), lora);
    kr = br_verb_rope(v, "k_rope", br_ir_cut(c.value, lora, rot), rot);
    qr = br_verb_rope(v, "q_rope",
                      (br_ir_bind){q.value, (uint32_t)nope, (uint32_t)rot,
                                   (uint32_t)hk, (uint32_t)h},
                      rot);
    qa = by_head(
        v, "q_latent",
        (br_ir_bind){q.value, 0, (uint32_t)nope, (uint32_t)hk, (uint32_t)h},
        BR_W_K_LORA_B, lora);
    key = br_verb_temp(v, "key", wide);
    copy(v, kn, br_ir_cut(key.value, 0, lora));
    copy(v, kr, br_ir_cut(key.value, lora, rot));
    qq = br_verb_temp(v, "query", h * wide);
    copy(
        v, qa,
        (br_ir_bind){qq.value, 0, (uint32_t)lora, (uint32_t)wide, (uint32_t)h});
    copy(v, qr,
         (br_ir_bind){qq.value, (uint32_t)lora, (uint32_t)rot, (uint32_t)wide,
                      (uint32_t)h});
    s = kv_of(v, v->layer, wide, 0);
    kv_write(v, key, br_ir_none(), s);
    a.scale = br_rope_mla_scale(hp) * rsqrt_of((double)hk);
    o = attend(v, temperature(v, qq), s, &a);
    return output(v, by_head(v, "att_v", o, BR_W_V_LORA_B, hp->head_v_mla));
}

/* verbs_ffn.c - feed-forward networks, dense and of experts.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "ir/verbs.h"

static br_ir_bind
linear(br_verbs *v, const char *name, br_ir_bind x, br_weight w, int64_t n)
{
    return br_verb_matmul(v, name, x,
                          br_verb_weight(v, w, BR_DIMS(n, br_bind_cols(x))),
                          br_ir_none());
}

br_ir_bind
br_verb_dense(br_verbs *v, br_ir_bind x)
{
    int64_t ff = v->y->n_ff;
    br_ir_bind gate, up;

    if (ff < 1) {
        br_ir_builder_fail(v->b, BR_E_FORMAT,
                           "feed_forward_length: a dense layer needs it");
        return x;
    }
    if (v->flags & BR_AF_GATE_UP) {
        br_ir_bind both = linear(v, "gate_up", x, BR_W_UP, 2 * ff);

        gate = br_ir_cut(both.value, 0, ff);
        up = br_ir_cut(both.value, ff, ff);
    } else {
        gate = linear(v, "gate", x, BR_W_GATE, ff);
        up = linear(v, "up", x, BR_W_UP, ff);
    }
    return linear(v, "ffn_out", br_verb_glu(v, "ffn_act", gate, up), BR_W_DOWN,
                  v->hp->n_embd);
}

/* ---- experts ------------------------------------------------------------ */

typedef struct routed {
    br_ir_bind ids, weights;
} routed;

static br_ir_bind
maybe(br_verbs *v, br_weight w, int rank, const int64_t *dim)
{
    return v->flags & BR_AF_BIAS_ALL ? br_verb_weight(v, w, rank, dim)
                                     : br_verb_weight_maybe(v, w, rank, dim);
}

static routed
route(br_verbs *v, br_ir_bind x)
{
    const br_hparams *hp = v->hp;
    int64_t e = hp->n_expert, k = hp->n_used;
    br_ir_bind logits = br_verb_temp(v, "router", e);
    routed r = {br_verb_temp_i32(v, "expert_ids", k),
                br_verb_temp(v, "expert_weights", k)};
    br_ir_bind w = br_verb_weight(v, BR_W_ROUTER, BR_DIMS(e, hp->n_embd));
    br_ir_bind b = maybe(v, BR_W_ROUTER_B, BR_DIMS(e));
    br_ir_bind c = br_verb_weight_maybe(v, BR_W_PROBS_B, BR_DIMS(e));

    BR_NODE(v, MOE_GATE_TOPK, 4, 3, .in = {x, w, b, c},
            .out = {logits, r.ids, r.weights});
    br_ir_set_i(v->b, BR_IA_k, k);
    br_ir_set_i(v->b, BR_IA_gating, hp->expert_gating);
    br_ir_set_i(v->b, BR_IA_norm_w, hp->expert_norm);
    if (hp->expert_scale != 0)
        br_ir_set_f(v->b, BR_IA_scale, hp->expert_scale);
    if (hp->expert_groups > 1) {
        br_ir_set_i(v->b, BR_IA_groups, hp->expert_groups);
        br_ir_set_i(v->b, BR_IA_groups_used, hp->expert_groups_used);
    }
    return r;
}

static int64_t
expert_width(const br_verbs *v)
{
    return v->hp->n_ff_exp > 0 ? v->hp->n_ff_exp : v->y->n_ff;
}

br_ir_bind
br_verb_moe(br_verbs *v, br_ir_bind x, br_ir_bind router_x)
{
    const br_hparams *hp = v->hp;
    int64_t e = hp->n_expert, n = hp->n_embd, ff = expert_width(v);
    routed r = route(v, router_x);
    br_ir_bind gate_w, up_w = br_ir_none();
    br_ir_bind gate_b = maybe(v, BR_W_GATE_EXPS_B, BR_DIMS(e, ff));
    br_ir_bind up_b = maybe(v, BR_W_UP_EXPS_B, BR_DIMS(e, ff));
    br_ir_bind gate = br_verb_temp(v, "expert_gate", hp->n_used * ff);
    br_ir_bind up = br_verb_temp(v, "expert_up", hp->n_used * ff);
    br_ir_bind act = br_verb_temp(v, "expert_act", hp->n_used * ff);
    br_ir_bind y = br_verb_temp(v, "experts", n);

    if (br_verb_instead(v, BR_W_GATE_UP_EXPS, BR_W_GATE_EXPS)) {
        gate_w = br_verb_weight(v, BR_W_GATE_UP_EXPS, BR_DIMS(e, 2 * ff, n));
    } else {
        gate_w = br_verb_weight(v, BR_W_GATE_EXPS, BR_DIMS(e, ff, n));
        up_w = br_verb_weight(v, BR_W_UP_EXPS, BR_DIMS(e, ff, n));
    }
    BR_NODE(v, MOE_GATE_UP, 6, 2, .in = {x, gate_w, up_w, gate_b, up_b, r.ids},
            .out = {gate, up});
    br_ir_set_i(v->b, BR_IA_k, hp->n_used);
    BR_NODE(v, MOE_SWIGLU, 2, 1, .in = {gate, up}, .out = {act});
    br_ir_set_i(v->b, BR_IA_act, v->m->arch->act);
    BR_NODE(v, MOE_DOWN_ACC, 7, 1,
            .in = {act, br_verb_weight(v, BR_W_DOWN_EXPS, BR_DIMS(e, n, ff)),
                   r.ids, r.weights, maybe(v, BR_W_DOWN_EXPS_B, BR_DIMS(e, n)),
                   br_verb_weight_maybe(v, BR_W_DOWN_EXPS_S, BR_DIMS(e)),
                   br_ir_none()},
            .out = {y});
    br_ir_set_i(v->b, BR_IA_k, hp->n_used);
    return y;
}

/* y plus the expert that every row passes, where the model has one. In parts:
 * as one SHARED_EXPERT nobody could share the work. */
br_ir_bind
br_verb_shared(br_verbs *v, br_ir_bind x, br_ir_bind y)
{
    const br_hparams *hp = v->hp;
    int64_t ff = hp->n_ff_shexp, n = hp->n_embd;
    br_ir_bind router, gate, up, o;

    if (ff == 0 && hp->n_shexp > 0)
        ff = hp->n_shexp * expert_width(v);
    if (ff == 0)
        return y;
    router = br_verb_weight_maybe(v, BR_W_SH_ROUTER, BR_DIMS(1, n));
    gate = linear(v, "shared_gate", x, BR_W_SH_GATE, ff);
    up = linear(v, "shared_up", x, BR_W_SH_UP, ff);
    o = linear(v, "shared_out", br_verb_glu(v, "shared_act", gate, up),
               BR_W_SH_DOWN, n);
    if (!br_verb_none(router))
        o = br_verb_mul(v, "shared_gated", o,
                        br_verb_act(v, "shared_share",
                                    br_verb_matmul(v, "shared_router", x,
                                                   router, br_ir_none()),
                                    BR_ACT_SIGMOID));
    return br_verb_add(v, "with_shared", y, o);
}

/* arch_graph.c - a model's graph, strung together from verbs.
 *
 *   embed -> layer, layer, ... -> norm -> LM_HEAD -> step.logits
 *
 *   layer   x -- norm -- mixer -- [norm] -- (+) -- norm -- FFN -- [norm] -- (+)
 *           '-------------------------------' '----------------------------'
 *
 * Everything that differs between architectures is in arch.def and the
 * hyper-parameters; the few ifs here are its flags.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "ir/verbs.h"

#include <stdio.h>

static br_ir_bind
step_value(br_verbs *v, const char *name, int dtype, int64_t cols)
{
    br_ir_desc d = {.name = name,
                    .dtype = dtype,
                    .rank = 2,
                    .dim = {BR_DIM_T, cols},
                    .layer = -1};

    return br_ir_all(v->b, br_ir_add_value(v->b, &d));
}

static float
sqrt_of(double x)
{
    double r = x > 1 ? x : 1;

    for (int i = 0; i < 64; i++)
        r = 0.5 * (r + x / r);
    return (float)r;
}

static br_ir_bind
lookup(br_verbs *v, const char *name, br_weight w, int64_t cols)
{
    br_ir_bind y = br_verb_temp(v, name, cols);

    BR_NODE(
        v, EMBED, 2, 1,
        .in = {v->token, br_verb_weight(v, w, BR_DIMS(v->hp->n_vocab, cols))},
        .out = {y});
    return y;
}

/* Embeddings that each layer adds in its own way: a table row per token plus a
 * projection of the token's embedding, one piece per layer. */
static br_ir_bind
layer_embeddings(br_verbs *v, br_ir_bind x)
{
    const br_hparams *hp = v->hp;
    int64_t n = hp->n_ple * hp->n_layer;
    br_ir_bind e, p;

    if (!(v->flags & BR_AF_PLE) || hp->n_ple == 0)
        return br_ir_none();
    e = br_verb_scale(v, "ple_token", lookup(v, "ple_row", BR_W_PLE_EMBED, n),
                      sqrt_of((double)hp->n_ple));
    p = br_verb_matmul(v, "ple_proj", x,
                       br_verb_weight(v, BR_W_PLE_PROJ, BR_DIMS(n, hp->n_embd)),
                       br_ir_none());
    p = br_verb_scale(v, "ple_scaled", p, 1 / sqrt_of((double)hp->n_embd));
    p = br_verb_norm(v, "ple_norm", p,
                     br_verb_weight(v, BR_W_PLE_NORM, BR_DIMS(hp->n_ple)),
                     hp->n_ple);
    return br_verb_scale(v, "ple", br_verb_add(v, "ple_sum", p, e),
                         1 / sqrt_of(2));
}

static br_ir_bind
embed(br_verbs *v)
{
    const br_hparams *hp = v->hp;
    br_ir_bind x = lookup(v, "embed", BR_W_EMBED, hp->n_embd);

    if (v->flags & BR_AF_EMB_SQRT)
        x = br_verb_scale(v, "embed_scaled", x, sqrt_of((double)hp->n_embd));
    if (hp->emb_scale != 0)
        x = br_verb_scale(v, "embed_scaled", x, hp->emb_scale);
    v->ple = layer_embeddings(v, x);
    return x;
}

/* ---- a layer ------------------------------------------------------------ */

static br_ir_bind
norm_by(br_verbs *v, const char *name, br_ir_bind x, br_weight w)
{
    int64_t n = v->hp->n_embd;

    return br_verb_norm(v, name, x, br_verb_weight(v, w, BR_DIMS(n)), n);
}

static br_ir_bind
mix(br_verbs *v, br_ir_bind x)
{
    br_ir_bind y;

    switch (v->y->mixer) {
    case BR_MIX_NONE: return x;
    case BR_MIX_ATTN: return br_verb_attention(v, x);
    case BR_MIX_MLA: return br_verb_mla(v, x);
    case BR_MIX_DELTA: return br_verb_delta(v, x);
    case BR_MIX_CONV: return br_verb_conv(v, x);
    case BR_MIX_MAMBA2:
        y = br_verb_mamba2(v, x);
        if (!(v->flags & BR_AF_PARALLEL))
            return y;
        return br_verb_add(v, "mixed", br_verb_attention(v, x), y);
    }
    br_unreachable("mixer");
}

/* Gemma 4: a dense FFN and experts side by side, each with norms of its own;
 * the router sees the residual stream. */
static br_ir_bind
dense_and_moe(br_verbs *v, br_ir_bind x)
{
    int64_t n = v->hp->n_embd;
    br_ir_bind d, e, r;

    d = br_verb_dense(v, norm_by(v, "ffn_norm", x, BR_W_FFN_NORM));
    d = norm_by(v, "ffn_post_1", d, BR_W_FFN_POST_1);
    r = br_verb_norm(v, "router_norm", x, br_ir_none(), n);
    r = br_verb_scale(v, "router_scaled", r, 1 / sqrt_of((double)n));
    r = br_verb_mul(v, "router_x", r,
                    br_verb_weight(v, BR_W_ROUTER_SCALE, BR_DIMS(n)));
    e = br_verb_moe(v, norm_by(v, "expert_norm", x, BR_W_FFN_PRE_2), r);
    e = norm_by(v, "ffn_post_2", e, BR_W_FFN_POST_2);
    return br_verb_add(v, "ffn_both", d, e);
}

static br_ir_bind
feed_forward(br_verbs *v, br_ir_bind x)
{
    br_weight norm = v->flags & BR_AF_FFN_PAN ? BR_W_ATT_POST : BR_W_FFN_NORM;
    br_ir_bind y;

    if (v->y->moe && v->flags & BR_AF_PLE)
        return dense_and_moe(v, x);
    if (norm == BR_W_FFN_NORM && !br_verb_has(v, norm) &&
        br_verb_has(v, BR_W_FFN_NORM_BARE))
        norm = BR_W_FFN_NORM_BARE;
    if (!(v->flags & BR_AF_NO_PRE))
        x = norm_by(v, "ffn_norm", x, norm);
    if (!v->y->moe)
        return br_verb_dense(v, x);
    y = br_verb_moe(v, x, x);
    return br_verb_shared(v, x, y);
}

static br_ir_bind
joined(br_verbs *v, const char *name, br_ir_bind y, br_ir_bind x)
{
    char scaled[64];

    if (v->hp->res_scale != 0) {
        snprintf(scaled, sizeof scaled, "%s_part", name);
        y = br_verb_scale(v, scaled, y, v->hp->res_scale);
    }
    return br_verb_add(v, name, y, x);
}

static br_ir_bind
layer_extras(br_verbs *v, br_ir_bind x)
{
    const br_hparams *hp = v->hp;

    if (!br_verb_none(v->ple)) {
        br_ir_bind mine =
            br_ir_cut(v->ple.value, v->layer * hp->n_ple, hp->n_ple);
        br_ir_bind g = br_verb_matmul(
            v, "ple_gate", x,
            br_verb_weight(v, BR_W_PLE_GATE, BR_DIMS(hp->n_ple, hp->n_embd)),
            br_ir_none());

        g = br_verb_glu(v, "ple_act", g, mine);
        g = br_verb_matmul(
            v, "ple_out", g,
            br_verb_weight(v, BR_W_PLE_OUT, BR_DIMS(hp->n_embd, hp->n_ple)),
            br_ir_none());
        x = br_verb_add(v, "ple_added",
                        norm_by(v, "ple_post", g, BR_W_PLE_POST), x);
    }
    if (br_verb_has(v, BR_W_LAYER_SCALE))
        x = br_verb_mul(v, "layer_scaled", x,
                        br_verb_weight(v, BR_W_LAYER_SCALE, BR_DIMS(1)));
    return x;
}

static br_ir_bind
layer(br_verbs *v, br_ir_bind x)
{
    bool post = v->flags & BR_AF_POST;
    br_ir_bind y = x;

    if (!(v->flags & BR_AF_NO_PRE))
        y = norm_by(v, "att_norm", x, BR_W_ATT_NORM);
    y = mix(v, y);
    if (post)
        y = norm_by(v, "att_post", y, BR_W_ATT_POST);
    x = joined(v, "after_att", y, x);
    if (v->flags & BR_AF_NO_FFN)
        return x;
    y = feed_forward(v, x);
    if (post)
        y = norm_by(v, "ffn_post", y, BR_W_FFN_POST);
    x = joined(v, "after_ffn", y, x);
    return layer_extras(v, x);
}

/* ---- the end ------------------------------------------------------------ */

static void
head(br_verbs *v, br_ir_bind x)
{
    const br_hparams *hp = v->hp;
    br_weight norm = v->flags & BR_AF_EMB_NORM ? BR_W_EMB_NORM : BR_W_OUT_NORM;
    br_weight table = br_verb_has(v, BR_W_OUT) ? BR_W_OUT : BR_W_EMBED;
    br_ir_bind out = step_value(v, "step.logits", BR_Q_F32, hp->n_vocab), y;
    bool scaled = hp->logit_scale != 0, capped = hp->logit_cap > 0;

    x = norm_by(v, "out_norm", x, norm);
    y = scaled || capped ? br_verb_temp(v, "logits", hp->n_vocab) : out;
    BR_NODE(v, LM_HEAD, 3, 1,
            .in = {x,
                   br_verb_weight(v, table, BR_DIMS(hp->n_vocab, hp->n_embd)),
                   v->want},
            .out = {y});
    if (scaled) {
        br_ir_bind s =
            capped ? br_verb_temp(v, "logits_scaled", hp->n_vocab) : out;

        BR_NODE(v, SCALE, 1, 1, .in = {y}, .out = {s});
        br_ir_set_f(v->b, BR_IA_scale, 1 / hp->logit_scale);
        y = s;
    }
    if (capped) {
        BR_NODE(v, SOFTCAP, 1, 1, .in = {y}, .out = {out});
        br_ir_set_f(v->b, BR_IA_scale, hp->logit_cap);
    }
}

br_code
br_ir_of_model(br_ir **out, const br_model *m, br_ir_stage stage, int64_t n_ctx,
               br_status *st)
{
    char name[64];
    br_verbs v = {.m = m,
                  .hp = &m->hp,
                  .flags = m->arch->flags,
                  .layer = -1,
                  .stage = stage,
                  .n_ctx = n_ctx,
                  .freq = {BR_IR_NONE, BR_IR_NONE},
                  .ple = br_ir_none()};
    br_ir_bind x;
    br_code code;

    *out = NULL;
    snprintf(name, sizeof name, "%s-%s", m->arch->name,
             stage == BR_IR_DECODE ? "decode" : "prefill");
    v.b = br_ir_builder_new(name, stage);
    if (!v.b)
        return br_fail(st, BR_E_OOM, "graph: out of memory");
    v.token = step_value(&v, "step.token", BR_Q_I32, 1);
    v.position = step_value(&v, "step.position", BR_Q_I32, 1);
    v.want = step_value(&v, "step.want", BR_Q_I32, 1);
    x = embed(&v);
    for (v.layer = 0; v.layer < m->hp.n_layer; v.layer++) {
        v.y = &m->hp.layer[v.layer];
        x = layer(&v, x);
    }
    v.layer = -1;
    head(&v, x);
    code = br_ir_freeze(v.b, out, st);
    br_ir_builder_free(v.b);
    return code;
}

/* verbs_ssm.c - mixers with a state per slot instead of pages per token.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "ir/verbs.h"

static bool
sane(br_verbs *v, bool ok, const char *what)
{
    if (!ok)
        br_ir_builder_fail(v->b, BR_E_FORMAT, what);
    return ok;
}

static br_ir_bind
conv1d(br_verbs *v, br_ir_bind x, br_ir_bind w, br_ir_bind b, int64_t kernel)
{
    int64_t n = br_bind_cols(x);
    br_ir_bind y = br_verb_temp(v, "conv", n);
    br_ir_bind s =
        br_verb_state(v, "state.conv", BR_DIMS(BR_DIM_S, kernel - 1, n));

    BR_NODE(v, SSM_CONV1D, 4, 1, .in = {x, w, b, s}, .out = {y});
    br_ir_set_i(v->b, BR_IA_kernel, kernel);
    return y;
}

static br_ir_bind
out(br_verbs *v, br_ir_bind y, br_weight w)
{
    return br_verb_matmul(
        v, "mix_out", y,
        br_verb_weight(v, w, BR_DIMS(v->hp->n_embd, br_bind_cols(y))),
        br_ir_none());
}

/* ---- short convolution (LFM2) ------------------------------------------- */

br_ir_bind
br_verb_conv(br_verbs *v, br_ir_bind x)
{
    int64_t n = v->hp->n_embd, k = v->hp->conv_len;
    br_ir_bind bcx, bx, y;

    if (!sane(v, k >= 2, "shortconv.l_cache: has to be 2 or more"))
        return x;
    bcx = br_verb_matmul(v, "bcx", x,
                         br_verb_weight(v, BR_W_CONV_IN, BR_DIMS(3 * n, n)),
                         br_ir_none());
    bx = br_verb_mul(v, "bx", br_ir_cut(bcx.value, 0, n),
                     br_ir_cut(bcx.value, 2 * n, n));
    y = conv1d(v, bx, br_verb_weight(v, BR_W_CONV_W, BR_DIMS(n, k)),
               br_ir_none(), k);
    y = br_verb_mul(v, "cy", br_ir_cut(bcx.value, n, n), y);
    return out(v, y, BR_W_CONV_OUT);
}

/* ---- gated delta-net ---------------------------------------------------- */

typedef struct delta_ab {
    br_ir_bind alpha, beta;
} delta_ab;

/* Two matrices, or one whose columns are [beta | alpha] per head of keys. */
static delta_ab
alpha_beta(br_verbs *v, br_ir_bind x)
{
    int64_t hv = v->hp->ssm_heads, hk = v->hp->ssm_groups, n = v->hp->n_embd;
    uint32_t r = (uint32_t)(hv / hk);
    delta_ab o;

    if (br_verb_instead(v, BR_W_SSM_BA, BR_W_SSM_ALPHA)) {
        br_ir_bind ba = br_verb_matmul(
            v, "ba", x, br_verb_weight(v, BR_W_SSM_BA, BR_DIMS(2 * hv, n)),
            br_ir_none());

        o.beta = (br_ir_bind){ba.value, 0, r, 2 * r, (uint32_t)hk};
        o.alpha = (br_ir_bind){ba.value, r, r, 2 * r, (uint32_t)hk};
        return o;
    }
    o.alpha = br_verb_matmul(v, "alpha", x,
                             br_verb_weight(v, BR_W_SSM_ALPHA, BR_DIMS(hv, n)),
                             br_ir_none());
    o.beta = br_verb_matmul(v, "beta", x,
                            br_verb_weight(v, BR_W_SSM_BETA, BR_DIMS(hv, n)),
                            br_ir_none());
    return o;
}

static br_ir_bind
gated_norm(br_verbs *v, br_ir_bind y, br_ir_bind z, br_ir_bind w, int kind)
{
    br_ir_bind o = br_verb_temp(v, "gated", br_bind_cols(y));
    int64_t width = br_bind_cols(y);

    if (kind == 0)
        width = v->hp->ssm_state;
    else if (v->hp->ssm_groups > 0)
        width /= v->hp->ssm_groups;
    BR_NODE(v, SSM_GATED_NORM, 3, 1, .in = {y, z, w}, .out = {o});
    br_ir_set_f(v->b, BR_IA_eps, v->hp->eps);
    br_ir_set_i(v->b, BR_IA_width, width);
    br_ir_set_i(v->b, BR_IA_kind, kind);
    return o;
}

br_ir_bind
br_verb_delta(br_verbs *v, br_ir_bind x)
{
    const br_hparams *hp = v->hp;
    int64_t hv = hp->ssm_heads, hk = hp->ssm_groups, s = hp->ssm_state;
    int64_t n = 2 * hk * s + hv * s, k = hp->ssm_conv;
    br_ir_bind q, z, y, a, dt, st;
    delta_ab ab;

    if (!sane(v,
              hk > 0 && hv > 0 && hv % hk == 0 && s > 0 && k >= 2 &&
                  hp->ssm_inner == hv * s,
              "ssm: inner_size has to be time_step_rank * state_size, "
              "time_step_rank a multiple of group_count, conv_kernel 2 or "
              "more"))
        return x;
    q = br_verb_matmul(v, "qkv", x,
                       br_verb_weight(v, BR_W_QKV, BR_DIMS(n, hp->n_embd)),
                       br_ir_none());
    z = br_verb_matmul(
        v, "z", x,
        br_verb_weight(v, BR_W_ATT_GATE, BR_DIMS(hv * s, hp->n_embd)),
        br_ir_none());
    ab = alpha_beta(v, x);
    q = conv1d(v, q, br_verb_weight(v, BR_W_SSM_CONV, BR_DIMS(n, k)),
               br_ir_none(), k);
    br_ir_set_i(v->b, BR_IA_act, BR_ACT_SILU);
    a = br_verb_weight(v, BR_W_SSM_A, BR_DIMS(hv));
    dt = br_verb_weight(v, BR_W_SSM_DT_B, BR_DIMS(hv));
    st = br_verb_state(v, "state.ssm", BR_DIMS(BR_DIM_S, hv, s, s));
    y = br_verb_temp(v, "delta", hv * s);
    BR_NODE(v, SSM_DELTA_NET, 6, 1, .in = {q, ab.alpha, ab.beta, a, dt, st},
            .out = {y});
    br_ir_set_i(v->b, BR_IA_heads, hv);
    br_ir_set_i(v->b, BR_IA_kv_heads, hk);
    br_ir_set_i(v->b, BR_IA_head_dim, s);
    br_ir_set_f(v->b, BR_IA_eps, hp->eps);
    br_ir_set_i(v->b, BR_IA_tile, (v->flags & BR_AF_K_TILE) != 0);
    y = gated_norm(v, y, z, br_verb_weight(v, BR_W_SSM_NORM, BR_DIMS(s)), 0);
    return out(v, y, BR_W_SSM_OUT);
}

/* ---- Mamba-2 ------------------------------------------------------------ */

static br_ir_bind
scan(br_verbs *v, br_ir_bind xbc, br_ir_bind dt)
{
    const br_hparams *hp = v->hp;
    int64_t h = hp->ssm_heads, d = hp->ssm_inner / h, s = hp->ssm_state;
    br_ir_bind a = br_verb_weight(v, BR_W_SSM_A, BR_DIMS(h));
    br_ir_bind b = br_verb_weight(v, BR_W_SSM_DT_B, BR_DIMS(h));
    br_ir_bind skip = br_verb_weight(v, BR_W_SSM_D, BR_DIMS(h));
    br_ir_bind st = br_verb_state(v, "state.ssm", BR_DIMS(BR_DIM_S, h, d, s));
    br_ir_bind y = br_verb_temp(v, "scan", hp->ssm_inner);

    BR_NODE(v, SSM_SCAN, 6, 1, .in = {xbc, dt, a, b, skip, st}, .out = {y});
    br_ir_set_i(v->b, BR_IA_heads, h);
    br_ir_set_i(v->b, BR_IA_head_dim, d);
    br_ir_set_i(v->b, BR_IA_groups, hp->ssm_groups);
    br_ir_set_i(v->b, BR_IA_width, s);
    return y;
}

br_ir_bind
br_verb_mamba2(br_verbs *v, br_ir_bind x)
{
    const br_hparams *hp = v->hp;
    int64_t in = hp->ssm_inner, h = hp->ssm_heads, g = hp->ssm_groups;
    int64_t n = in + 2 * g * hp->ssm_state, k = hp->ssm_conv;
    br_ir_bind all, z, xbc, y;

    if (!sane(v,
              h > 0 && g > 0 && in > 0 && in % h == 0 && h % g == 0 &&
                  hp->ssm_state > 0 && k >= 2,
              "ssm: inner_size has to be a multiple of time_step_rank, that "
              "of group_count, conv_kernel 2 or more"))
        return x;
    all = br_verb_matmul(
        v, "zxbcdt", x,
        br_verb_weight(v, BR_W_SSM_IN, BR_DIMS(in + n + h, hp->n_embd)),
        br_ir_none());
    z = br_ir_cut(all.value, 0, in);
    xbc = conv1d(v, br_ir_cut(all.value, in, n),
                 br_verb_weight(v, BR_W_SSM_CONV, BR_DIMS(n, k)),
                 br_verb_weight_maybe(v, BR_W_SSM_CONV_B, BR_DIMS(n)), k);
    br_ir_set_i(v->b, BR_IA_act, BR_ACT_SILU);
    y = scan(v, xbc, br_ir_cut(all.value, in + n, h));
    if (br_verb_has(v, BR_W_SSM_NORM))
        y = gated_norm(v, y, z, br_verb_weight(v, BR_W_SSM_NORM, BR_DIMS(in)),
                       1);
    else
        y = br_verb_glu(v, "gated", z, y);
    return out(v, y, BR_W_SSM_OUT);
}

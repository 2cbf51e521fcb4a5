/* verbs_rope.c - rotary positions: the angle that each pair turns per token.
 *
 *   freq[i] = base^(-2i/n) / factor[i]      i < n/2
 *   linear  freq / s
 *   YaRN    freq * ((1 - mix) / s + mix), mix falls from 1 (pairs that turn
 *           more than beta_fast times in the original context) to 0; where it
 *           begins and ends is rounded to whole pairs, but for a key of ours
 *
 * The table is a constant of the graph, computed here once with IEEE operations
 * of our own (no libm), so that every machine and tier turns by the same bits.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "ir/verbs.h"

#include "base/bits.h"

#include <stdio.h>
#include <string.h>

/* ---- exp and log in double, to about 1e-16, from IEEE operations only --- */

static const double ln2 = 0x1.62e42fefa39efp-1;

static double
log_of(double x)
{
    uint64_t u = br_f64_bits(x);
    double s, z, sum = 0;
    int e;

    br_assert(x > 0);
    e = (int)(u >> 52) - 1022;
    x = br_f64_of((u & 0xfffffffffffffULL) | 1022ULL << 52); /* 0.5 .. 1 */
    s = (x - 1) / (x + 1);
    z = s * s;
    for (int k = 79; k >= 1; k -= 2) /* |s| <= 1/3 */
        sum = sum * z + 1.0 / k;
    return 2 * s * sum + e * ln2;
}

static double
exp_of(double x)
{
    double k = (double)(int64_t)(x / ln2), r = x - k * ln2, sum = 1;

    br_assert(k > -1000 && k < 1000);
    for (int i = 24; i >= 1; i--)
        sum = 1 + sum * r / i;
    return sum * br_f64_of((uint64_t)(1023 + (int64_t)k) << 52);
}

static double
sane(double x, double lo, double hi)
{
    return x < lo ? lo : x > hi ? hi : x;
}

static double
whole(double x, bool up) /* floor or ceil */
{
    double t = (double)(int64_t)x;

    if (up)
        return t < x ? t + 1 : t;
    return t > x ? t - 1 : t;
}

/* ---- frequencies -------------------------------------------------------- */

/* The pair, as a real number, that turns `turns` times in the original
 * context. */
static double
pair_of(const br_hparams *hp, double n, double base, double turns)
{
    const double tau = 6.283185307179586476925;

    return n * log_of((double)hp->rope_orig_ctx / (turns * tau)) /
           (2 * log_of(base));
}

static double
yarn_mix(const br_hparams *hp, double n, double base, double i)
{
    double lo = pair_of(hp, n, base, (double)hp->yarn_fast);
    double hi = pair_of(hp, n, base, (double)hp->yarn_slow);

    if (!hp->yarn_exact) {
        lo = whole(lo, false);
        hi = whole(hi, true);
    }
    lo = lo < 0 ? 0 : lo;
    hi = hi > n - 1 ? n - 1 : hi;
    return (1 - sane((i - lo) / (hi - lo > 0.001 ? hi - lo : 0.001), 0, 1)) *
           (double)hp->yarn_ext;
}

static double
scaled(const br_hparams *hp, double n, double base, double i)
{
    double mix;

    switch (hp->scaling) {
    case BR_SCALING_NONE: return 1;
    case BR_SCALING_LINEAR: return 1 / (double)hp->rope_factor;
    case BR_SCALING_YARN:
        mix = yarn_mix(hp, n, base, i);
        return (1 - mix) / (double)hp->rope_factor + mix;
    }
    br_unreachable("scaling");
}

/* A tensor of divisors, which the file may lack. False: it is no such thing. */
static bool
divisors(br_verbs *v, br_weight w, int64_t n, const br_gguf_tensor **out)
{
    const br_gguf_tensor *t = *out = br_model_tensor(v->m, w, 0);
    char msg[120], name[64];

    if (!t ||
        (t->n_dims == 1 && t->dim[0] == (uint64_t)n && t->type == BR_Q_F32))
        return true;
    br_weight_name(w, 0, name, sizeof name);
    snprintf(msg, sizeof msg, "%s: has to be %lld F32 numbers", name,
             (long long)n);
    br_ir_builder_fail(v->b, BR_E_FORMAT, msg);
    return false;
}

/* Infinity is one: what it divides does not turn. */
static bool
above_zero(br_verbs *v, const br_gguf_tensor *t, int64_t n, const float *x)
{
    char msg[120];

    for (int64_t i = 0; t && i < n; i++) {
        if (x[i] > 0)
            continue;
        snprintf(msg, sizeof msg, "%.*s: number %lld is %g, has to be above 0",
                 (int)BR_MIN(t->name.n, (size_t)60), t->name.p, (long long)i,
                 (double)x[i]);
        br_ir_builder_fail(v->b, BR_E_FORMAT, msg);
        return false;
    }
    return true;
}

/* The divisors of the frequencies; false: an error. Of the two kinds of a
 * LONGROPE model the context picks one, and both have to be right. */
static bool
factors(br_verbs *v, bool win, int64_t n, float *out)
{
    const br_gguf_tensor *t, *brief;
    bool two = (v->flags & BR_AF_LONGROPE) != 0;

    for (int64_t i = 0; i < n; i++)
        out[i] = 1;
    if (win)
        return true;
    if (!divisors(v, two ? BR_W_ROPE_LONG : BR_W_ROPE_FREQS, n, &t) ||
        (two && !divisors(v, BR_W_ROPE_SHORT, n, &brief)))
        return false;
    if (two && !t != !brief) {
        br_ir_builder_fail(v->b, BR_E_FORMAT,
                           t ? "rope_factors_short.weight: missing, while "
                               "rope_factors_long.weight is there"
                             : "rope_factors_long.weight: missing, while "
                               "rope_factors_short.weight is there");
        return false;
    }
    if (two && v->n_ctx <= v->hp->rope_orig_ctx)
        t = brief;
    if (t)
        memcpy(out, t->data, (size_t)n * sizeof *out);
    return above_zero(v, t, n, out);
}

/* Scaling is for what sees the whole context, where there are both. */
static bool
plain_window(const br_verbs *v)
{
    return v->m->arch->window != BR_WINDOW_EVEN &&
           v->m->arch->window != BR_WINDOW_ALL;
}

static uint32_t
freq_value(br_verbs *v, bool win, int64_t n_rot)
{
    double base = (double)(win ? v->hp->rope_base_swa : v->hp->rope_base);
    br_hparams plain = *v->hp;
    float *f = br_try_calloc((size_t)n_rot, sizeof *f);
    br_ir_desc d = {.name = win ? "model.rope.freq_window" : "model.rope.freq",
                    .dtype = BR_Q_F32,
                    .rank = 1,
                    .dim = {n_rot / 2},
                    .layer = -1,
                    .data = f};
    uint32_t id = BR_IR_NONE;

    if (win && plain_window(v))
        plain.scaling = BR_SCALING_NONE;
    if (!f) {
        br_ir_builder_fail(v->b, BR_E_OOM, "rope: out of memory");
    } else if (factors(v, win, n_rot / 2, f)) {
        for (int64_t i = 0; i < n_rot / 2; i++) {
            double x = exp_of(-2 * (double)i / (double)n_rot * log_of(base));

            f[i] = (float)(x / (double)f[i] *
                           scaled(&plain, (double)n_rot, base, (double)i));
        }
        id = br_ir_add_value(v->b, &d);
    }
    br_free(f);
    return id;
}

/* ---- the verb ----------------------------------------------------------- */

/* YaRN also stretches q and k, by 1 + 0.1 ln s, unless the file's multiplier
 * says that training has seen to it (then latent attention never stretches:
 * its scale does, below). */
static double
stretch(const br_hparams *hp, bool mla)
{
    double ln, m = 1;

    if (hp->scaling == BR_SCALING_YARN && hp->rope_factor > 1 &&
        hp->yarn_ext != 0) {
        ln = log_of((double)hp->rope_factor);
        if (hp->yarn_log_mul == 0)
            m = 1 + 0.1 * ln;
        else if (!mla)
            m = (1 + 0.1 * ln) / (1 + 0.1 * (double)hp->yarn_log_mul * ln);
    }
    return m * (double)hp->rope_att_factor;
}

float
br_rope_mla_scale(const br_hparams *hp)
{
    double m = stretch(hp, true);

    if (hp->scaling == BR_SCALING_YARN && hp->rope_factor > 1)
        m *= 1 +
             0.1 * (double)hp->yarn_log_mul * log_of((double)hp->rope_factor);
    return (float)(m * m);
}

br_ir_bind
br_verb_rope(br_verbs *v, const char *name, br_ir_bind x, int64_t head)
{
    bool win = v->y->window > 0;
    br_ir_bind y;

    if (v->m->arch->rope == BR_ROPE_NONE)
        return x;
    if (v->freq[win] == BR_IR_NONE)
        v->freq[win] = freq_value(v, win, v->y->n_rot);
    y = br_verb_temp(v, name, br_bind_cols(x));
    BR_NODE(v, ROPE, 3, 1,
            .in = {x, v->position, br_ir_all(v->b, v->freq[win])}, .out = {y});
    br_ir_set_i(v->b, BR_IA_heads, br_bind_cols(x) / head);
    br_ir_set_i(v->b, BR_IA_head_dim, head);
    br_ir_set_i(v->b, BR_IA_n_rot, v->y->n_rot);
    br_ir_set_i(v->b, BR_IA_kind, v->m->arch->rope);
    br_ir_set_f(v->b, BR_IA_scale,
                win && plain_window(v)
                    ? 1
                    : (float)stretch(v->hp, v->m->arch->mixer == BR_MIX_MLA));
    return y;
}

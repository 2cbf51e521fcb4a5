/* hf_config.c - config.json to the metadata of a GGUF file.
 *
 * Rotations: "linear" and "yarn" become keys; "llama3" becomes a factor for
 * each frequency, in rope_freqs.weight:
 *
 *   wave length     short ------------ high ------ low -------------- long
 *   factor            1                1 ... between ... factor    factor
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/hf_int.h"
#include "model/model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- members ------------------------------------------------------------ */

/* A member that is there and not null. */
static const br_json *
member(const br_json *obj, const char *name)
{
    const br_json *v =
        obj && obj->kind == BR_J_OBJ ? br_json_get(obj, name) : NULL;

    return v && v->kind != BR_J_NULL ? v : NULL;
}

static br_code
get_int(br_hf *h, const br_json *obj, const char *name, int64_t *out)
{
    const br_json *v = member(obj, name);

    if (!v)
        return br_fail(h->st, BR_E_FORMAT, "config.json: no '%s'", name);
    if (v->kind != BR_J_INT || v->i < 0 || v->i > UINT32_MAX)
        return br_fail(h->st, BR_E_FORMAT,
                       "config.json: '%s' is no number from 0 to 4294967295",
                       name);
    *out = v->i;
    return BR_OK;
}

static br_code
get_f64(br_hf *h, const br_json *obj, const char *name, double *out)
{
    const br_json *v = member(obj, name);

    if (!v)
        return br_fail(h->st, BR_E_FORMAT, "config.json: no '%s'", name);
    if (v->kind != BR_J_INT && v->kind != BR_J_FLOAT)
        return br_fail(h->st, BR_E_FORMAT, "config.json: '%s' is no number",
                       name);
    *out = v->kind == BR_J_INT ? (double)v->i : v->f;
    if (!isfinite(*out) || fabs(*out) > 1e30)
        return br_fail(h->st, BR_E_FORMAT, "config.json: '%s' is out of range",
                       name);
    return BR_OK;
}

static br_code
set_u32(br_hf *h, const char *key, int64_t v)
{
    const char *full = br_hf_key(h, key);

    if (!full)
        return BR_E_OOM;
    br_gguf_w_u32(h->w, full, (uint32_t)v);
    return BR_OK;
}

static br_code
set_f32(br_hf *h, const char *key, double v)
{
    const char *full = br_hf_key(h, key);

    if (!full)
        return BR_E_OOM;
    br_gguf_w_f32(h->w, full, (float)v);
    return BR_OK;
}

static br_code
set_str(br_hf *h, const char *key, const char *v)
{
    const char *full = br_hf_key(h, key);

    if (!full)
        return BR_E_OOM;
    br_gguf_w_str(h->w, full, br_text_z(v));
    return BR_OK;
}

/* ---- the table ---------------------------------------------------------- */

static const br_arch *
target(const br_hf *h)
{
    int id = br_arch_find(br_text_z(h->arch->arch));

    br_check(id >= 0 && "hf_arch.def names rows of arch.def");
    return br_arch_of((br_arch_id)id);
}

typedef struct row {
    const char *name, *other, *key;
    bool number, need;
} row;

static const row rows[] = {
#define REQ                       true
#define OPT                       false
#define I(name, other, key, need) {name, other, key, false, need},
#define F(name, other, key, need) {name, other, key, true, need},
#include "model/hf_config.def"
#undef REQ
#undef OPT
#undef I
#undef F
};

/* null is no cap; where nothing is said, readers take the caps of these. */
static bool
capless(const br_hf *h, const row *r)
{
    return target(h)->flags & BR_AF_CAPS && strstr(r->key, "softcapping") &&
           br_json_get(h->config, r->name);
}

static br_code
set_row(br_hf *h, const row *r)
{
    const char *name = r->name;
    int64_t i = 0;
    double f = 0;

    if (!member(h->config, name) && r->other && member(h->config, r->other))
        name = r->other;
    if (!member(h->config, name) && !r->need)
        return capless(h, r) ? set_f32(h, r->key, 0) : BR_OK;
    if (r->number) {
        BR_TRY(get_f64(h, h->config, name, &f));
        return set_f32(h, r->key, f);
    }
    BR_TRY(get_int(h, h->config, name, &i));
    return set_u32(h, r->key, i);
}

/* ---- what is refused ---------------------------------------------------- */

static br_code
refuse(br_hf *h, const char *what)
{
    return br_fail(h->st, BR_E_UNSUPPORTED, "config.json: %s", what);
}

static br_code
check_experts(br_hf *h)
{
    const br_json *only = member(h->config, "mlp_only_layers");
    const br_json *step = member(h->config, "decoder_sparse_step");

    if (only && (only->kind != BR_J_ARR || only->n > 0))
        return refuse(h, "'mlp_only_layers': models whose layers differ are "
                         "not read");
    if (step && (step->kind != BR_J_INT || step->i != 1))
        return refuse(h, "'decoder_sparse_step': models whose layers differ "
                         "are not read");
    return BR_OK;
}

/* Members that say another model than this class here. */
static br_code
check_same_model(br_hf *h)
{
    const br_json *causal = member(h->config, "is_causal");
    const br_json *both = member(h->config, "use_bidirectional_attention");
    double limit = 7;

    if ((causal && causal->kind == BR_J_BOOL && !causal->b) ||
        (both && (both->kind != BR_J_BOOL || both->b)))
        return refuse(h, "'is_causal', 'use_bidirectional_attention': tokens "
                         "that see later ones are not computed here");
    if (h->arch->flags & BR_HF_MXFP4 && member(h->config, "swiglu_limit"))
        BR_TRY(get_f64(h, h->config, "swiglu_limit", &limit));
    return limit == 7 ? BR_OK : refuse(h, "'swiglu_limit' is not 7");
}

/* Which layers see a window only is not in every file of GGUF: where it is
 * not, they have to be those of the architecture's row. */
static br_code
check_layers(br_hf *h)
{
    const br_json *kinds = member(h->config, "layer_types");
    const br_json *each = member(h->config, "sliding_window_pattern");
    const br_arch *a = target(h);
    int64_t i = 0;

    h->no_window = each && a->window == BR_WINDOW_SIXTH &&
                   each->kind == BR_J_INT && each->i == 1;
    if (each && a->window == BR_WINDOW_SIXTH && !h->no_window &&
        (each->kind != BR_J_INT || each->i != 6))
        return refuse(h, "'sliding_window_pattern' is not 6 or 1");
    if (!kinds || kinds->kind != BR_J_ARR)
        return BR_OK;
    for (const br_json *k = kinds->child; k; k = k->next, i++) {
        bool window = h->arch->flags & BR_HF_SWA && !h->no_window &&
                      br_arch_windowed(a, i);
        const char *want = window ? "sliding_attention" : "full_attention";

        if (k->kind != BR_J_STR || strcmp(k->s, want) != 0)
            return br_fail(h->st, BR_E_UNSUPPORTED,
                           "config.json: 'layer_types': layer %lld is no %s",
                           (long long)i, want);
    }
    return BR_OK;
}

static bool
is_mxfp4(const br_json *quant)
{
    const br_json *how = member(quant, "quant_method");

    return how && how->kind == BR_J_STR && strcmp(how->s, "mxfp4") == 0;
}

/* Weights of eight bits, as a matrix has them, or in blocks with a scale each. */
static br_code
read_fp8(br_hf *h, const br_json *quant, bool *is)
{
    const br_json *how = member(quant, "quant_method");
    const br_json *block = member(quant, "weight_block_size");
    uint64_t *const to[] = {&h->f8_rows, &h->f8_cols};

    *is = how && how->kind == BR_J_STR && strcmp(how->s, "fp8") == 0;
    h->f8_scaled = *is;
    if (!*is || !block)
        return BR_OK;
    if (block->kind != BR_J_ARR || block->n != 2)
        return refuse(h, "'weight_block_size' is not two numbers");
    for (size_t i = 0; i < 2; i++) {
        const br_json *x = i ? block->child->next : block->child;

        if (x->kind != BR_J_INT || x->i < 1 || x->i > 1 << 20)
            return refuse(h, "'weight_block_size' is not two numbers");
        *to[i] = (uint64_t)x->i;
    }
    return BR_OK;
}

static br_code
check_plain(br_hf *h)
{
    static const char *const names[] = {"hidden_activation", "hidden_act"};
    bool gelu = h->arch->flags & BR_HF_GELU;
    const br_json *act = member(h->config, names[!gelu]);
    const br_json *packed = member(h->config, "quantization_config");
    bool fp8 = false;

    if (!act)
        act = member(h->config, names[gelu]);
    if (packed)
        BR_TRY(read_fp8(h, packed, &fp8));
    if (packed && !fp8 && !(h->arch->flags & BR_HF_MXFP4 && is_mxfp4(packed)))
        return refuse(h, "'quantization_config': the weights are packed "
                         "already; convert the model they were made of");
    if (act && (act->kind != BR_J_STR ||
                strcmp(act->s, gelu ? "gelu_pytorch_tanh" : "silu") != 0))
        return refuse(h, gelu ? "'hidden_activation' is not "
                                "'gelu_pytorch_tanh'"
                              : "'hidden_act' is not 'silu'");
    BR_TRY(check_layers(h));
    BR_TRY(check_same_model(h));
    return h->arch->flags & BR_HF_EXPERTS ? check_experts(h) : BR_OK;
}

/* ---- heads, context ------------------------------------------------------ */

/* Only where it is not the usual one, 1 / sqrt(head_dim). */
static br_code
set_scale(br_hf *h)
{
    double x;

    if (!member(h->config, "query_pre_attn_scalar"))
        return BR_OK;
    BR_TRY(get_f64(h, h->config, "query_pre_attn_scalar", &x));
    if (!(x > 0))
        return refuse(h, "'query_pre_attn_scalar' is not above 0");
    return x == (double)h->head_dim
               ? BR_OK
               : set_f32(h, "attention.scale", 1 / sqrt(x));
}

static br_code
set_heads(br_hf *h)
{
    int64_t width = 0;

    BR_TRY(get_int(h, h->config, "num_hidden_layers", &h->n_layer));
    BR_TRY(get_int(h, h->config, "num_attention_heads", &h->n_head));
    BR_TRY(get_int(h, h->config, "hidden_size", &width));
    h->n_kv = h->n_head;
    if (member(h->config, "num_key_value_heads"))
        BR_TRY(get_int(h, h->config, "num_key_value_heads", &h->n_kv));
    if (h->n_layer < 1 || h->n_layer > 1024 || h->n_head < 1 || h->n_kv < 1)
        return br_fail(h->st, BR_E_FORMAT,
                       "config.json: %lld layers, %lld heads, %lld of keys and "
                       "values",
                       (long long)h->n_layer, (long long)h->n_head,
                       (long long)h->n_kv);
    h->head_dim = width / h->n_head;
    if (member(h->config, "head_dim"))
        BR_TRY(get_int(h, h->config, "head_dim", &h->head_dim));
    if (h->head_dim < 2 || h->head_dim > 65536 || h->head_dim % 2)
        return br_fail(h->st, BR_E_FORMAT, "config.json: heads of %lld numbers",
                       (long long)h->head_dim);
    BR_TRY(set_scale(h));
    BR_TRY(set_u32(h, "attention.head_count_kv", h->n_kv));
    BR_TRY(set_u32(h, "attention.key_length", h->head_dim));
    return set_u32(h, "attention.value_length", h->head_dim);
}

/* A window that holds makes tokens beyond it unseen: inside it the model is
 * the one with full attention, so the context ends there. */
static br_code
set_context(br_hf *h)
{
    const br_json *use = member(h->config, "use_sliding_window");
    bool holds = use ? use->kind == BR_J_BOOL && use->b
                     : (h->arch->flags & BR_HF_WINDOW) != 0;
    int64_t context, window = 0;

    BR_TRY(get_int(h, h->config, "max_position_embeddings", &context));
    if (h->no_window)
        return set_u32(h, "context_length", context);
    if (h->arch->flags & BR_HF_SWA) {
        BR_TRY(get_int(h, h->config, "sliding_window", &window));
        BR_TRY(set_u32(h, "attention.sliding_window", window));
        return set_u32(h, "context_length", context);
    }
    if (holds && member(h->config, "sliding_window"))
        BR_TRY(get_int(h, h->config, "sliding_window", &window));
    if (window > 0 && window < context)
        h->stats->window = context = window;
    return set_u32(h, "context_length", context);
}

static br_code
set_experts(br_hf *h)
{
    const char *name =
        member(h->config, "num_experts") ? "num_experts" : "num_local_experts";
    const br_json *norm = member(h->config, "norm_topk_prob");
    const char *key;

    if (!(h->arch->flags & BR_HF_EXPERTS))
        return BR_OK;
    BR_TRY(get_int(h, h->config, name, &h->n_expert));
    if (h->arch->flags & BR_HF_MXFP4) {
        int64_t ff;

        BR_TRY(get_int(h, h->config, "intermediate_size", &ff));
        BR_TRY(set_u32(h, "expert_feed_forward_length", ff));
    }
    if (h->n_expert < 1 || h->n_expert > 4096)
        return br_fail(h->st, BR_E_FORMAT, "config.json: '%s' is %lld", name,
                       (long long)h->n_expert);
    if (!(h->arch->flags & BR_HF_NORM_SAID))
        return BR_OK;
    if (norm && norm->kind != BR_J_BOOL)
        return br_fail(h->st, BR_E_FORMAT,
                       "config.json: 'norm_topk_prob' is neither true nor "
                       "false");
    key = br_hf_key(h, "expert_weights_norm");
    if (!key)
        return BR_E_OOM;
    br_gguf_w_bool(h->w, key, norm && norm->b);
    return BR_OK;
}

/* ---- rotation ----------------------------------------------------------- */

static br_code
llama3_factors(br_hf *h, const br_json *rope, double base, int64_t n_rot)
{
    double factor, low, high, context;
    float *f;

    BR_TRY(get_f64(h, rope, "factor", &factor));
    BR_TRY(get_f64(h, rope, "low_freq_factor", &low));
    BR_TRY(get_f64(h, rope, "high_freq_factor", &high));
    BR_TRY(get_f64(h, rope, "original_max_position_embeddings", &context));
    if (!(factor > 0) || !(low > 0) || !(high > low) || !(context > 0))
        return refuse(h, "'rope_scaling': factors that make no scale");
    f = br_arena_new(&h->arena, float, (size_t)n_rot / 2);
    if (!f)
        return br_fail(h->st, BR_E_OOM, "out of memory");
    for (int64_t i = 0; i < n_rot / 2; i++) {
        double freq = pow(base, -2.0 * (double)i / (double)n_rot);
        double wave = 2 * 3.14159265358979323846 / freq;
        double s = (context / wave - low) / (high - low);

        s = s < 0 ? 0 : s > 1 ? 1 : s;
        f[i] = (float)(1 / ((1 - s) / factor + s));
    }
    h->rope[0] = (br_hf_factors){"rope_freqs.weight", f, (uint32_t)(n_rot / 2)};
    return BR_OK;
}

static br_code
read_factors(br_hf *h, const br_json *rope, const char *name, int64_t n,
             br_hf_factors *out)
{
    const br_json *list = member(rope, name);
    float *f = br_arena_new(&h->arena, float, (size_t)n);
    size_t i = 0;

    if (!f)
        return br_fail(h->st, BR_E_OOM, "out of memory");
    if (!list || list->kind != BR_J_ARR || list->n != (uint64_t)n)
        return br_fail(h->st, BR_E_FORMAT,
                       "config.json: 'rope_scaling': '%s' is no list of %lld "
                       "numbers",
                       name, (long long)n);
    for (const br_json *v = list->child; v; v = v->next) {
        double x = v->kind == BR_J_INT ? (double)v->i : v->f;

        if ((v->kind != BR_J_INT && v->kind != BR_J_FLOAT) || !(x > 0) ||
            x > 1e30)
            return br_fail(h->st, BR_E_FORMAT,
                           "config.json: 'rope_scaling': '%s'[%zu] is no "
                           "number above 0",
                           name, i);
        f[i++] = (float)x;
    }
    out->f = f;
    out->n = (uint32_t)n;
    return BR_OK;
}

/* Two sets of factors, for contexts up to the original one and beyond it;
 * q and k are stretched for the full context in both. */
static br_code
set_longrope(br_hf *h, const br_json *rope, int64_t n_rot)
{
    const char *name = "original_max_position_embeddings";
    int64_t context, original;
    double stretch = 1;

    BR_TRY(get_int(h, h->config, "max_position_embeddings", &context));
    BR_TRY(get_int(h, member(h->config, name) ? h->config : rope, name,
                   &original));
    if (original < 2)
        return refuse(h, "'original_max_position_embeddings' is below 2");
    if (context > original)
        stretch = sqrt(1 + log((double)context / (double)original) /
                               log((double)original));
    if (member(rope, "attention_factor"))
        BR_TRY(get_f64(h, rope, "attention_factor", &stretch));
    BR_TRY(set_u32(h, "rope.scaling.original_context_length", original));
    BR_TRY(set_f32(h, "rope.scaling.attn_factor", stretch));
    h->rope[0].name = "rope_factors_long.weight";
    h->rope[1].name = "rope_factors_short.weight";
    BR_TRY(read_factors(h, rope, "long_factor", n_rot / 2, &h->rope[0]));
    return read_factors(h, rope, "short_factor", n_rot / 2, &h->rope[1]);
}

/* What transformers stretches q and k by where nothing else is said. */
static double
yarn_stretch(double factor, double mul)
{
    return factor > 1 ? 1 + 0.1 * mul * log(factor) : 1;
}

/* They mean the whole stretch, a GGUF file what comes on top of the usual one. */
static br_code
set_yarn_stretch(br_hf *h, const br_json *rope, double factor)
{
    double whole, a = 0, b = 0;

    if (member(rope, "attention_factor")) {
        BR_TRY(get_f64(h, rope, "attention_factor", &whole));
    } else {
        if (member(rope, "mscale"))
            BR_TRY(get_f64(h, rope, "mscale", &a));
        if (member(rope, "mscale_all_dim"))
            BR_TRY(get_f64(h, rope, "mscale_all_dim", &b));
        if (!(a > 0) || !(b > 0))
            return BR_OK;
        whole = yarn_stretch(factor, a) / yarn_stretch(factor, b);
    }
    return set_f32(h, "rope.scaling.attn_factor",
                   whole / yarn_stretch(factor, 1));
}

/* gpt-oss; whoever has no key for it rounds, which others round as well. */
static br_code
set_yarn_exact(br_hf *h, const br_json *rope)
{
    const br_json *rounds = member(rope, "truncate");
    const char *key = br_hf_key(h, "rope.scaling.brass_yarn_exact");

    if (!key)
        return BR_E_OOM;
    if (rounds && rounds->kind == BR_J_BOOL && !rounds->b)
        br_gguf_w_bool(h->w, key, true);
    return BR_OK;
}

static br_code
set_yarn(br_hf *h, const br_json *rope)
{
    static const struct {
        const char *name, *key;
    } numbers[] = {{"beta_fast", "rope.scaling.yarn_beta_fast"},
                   {"beta_slow", "rope.scaling.yarn_beta_slow"}};
    int64_t context;
    double v;

    if (member(rope, "original_max_position_embeddings"))
        BR_TRY(get_int(h, rope, "original_max_position_embeddings", &context));
    else
        BR_TRY(get_int(h, h->config, "max_position_embeddings", &context));
    BR_TRY(get_f64(h, rope, "factor", &v));
    BR_TRY(set_str(h, "rope.scaling.type", "yarn"));
    BR_TRY(set_f32(h, "rope.scaling.factor", v));
    BR_TRY(set_u32(h, "rope.scaling.original_context_length", context));
    BR_TRY(set_yarn_stretch(h, rope, v));
    BR_TRY(set_yarn_exact(h, rope));
    for (size_t i = 0; i < BR_COUNT(numbers); i++) {
        if (!member(rope, numbers[i].name))
            continue;
        BR_TRY(get_f64(h, rope, numbers[i].name, &v));
        BR_TRY(set_f32(h, numbers[i].key, v));
    }
    return BR_OK;
}

static br_code
set_scaling(br_hf *h, const br_json *rope, double base, int64_t n_rot)
{
    const br_json *type = member(rope, "rope_type");
    double factor;

    if (!type)
        type = member(rope, "type");
    if (!type)
        return BR_OK;
    if (type->kind != BR_J_STR)
        return refuse(h, "'rope_scaling': 'rope_type' is no text");
    if (strcmp(type->s, "default") == 0)
        return BR_OK;
    if (strcmp(type->s, "llama3") == 0)
        return llama3_factors(h, rope, base, n_rot);
    if (strcmp(type->s, "yarn") == 0)
        return set_yarn(h, rope);
    if (strcmp(type->s, "longrope") == 0 || strcmp(type->s, "su") == 0)
        return set_longrope(h, rope, n_rot);
    if (strcmp(type->s, "linear") != 0)
        return br_fail(h->st, BR_E_UNSUPPORTED,
                       "config.json: 'rope_scaling': '%.40s' is not read",
                       type->s);
    BR_TRY(get_f64(h, rope, "factor", &factor));
    BR_TRY(set_str(h, "rope.scaling.type", "linear"));
    return set_f32(h, "rope.scaling.factor", factor);
}

static br_code
set_rope(br_hf *h)
{
    const br_json *rope = member(h->config, "rope_parameters");
    double base = 10000, part = 1;
    int64_t n_rot;

    if (!rope)
        rope = member(h->config, "rope_scaling");
    if (rope && rope->kind != BR_J_OBJ)
        return refuse(h, "'rope_scaling' is no object");
    if (h->arch->flags & BR_HF_SWA && member(rope, "full_attention")) {
        if (member(member(rope, "sliding_attention"), "rope_theta")) {
            BR_TRY(get_f64(h, member(rope, "sliding_attention"), "rope_theta",
                           &base));
            BR_TRY(set_f32(h, "rope.freq_base_swa", base));
        }
        rope = member(rope, "full_attention");
    }
    if (member(h->config, "rope_theta"))
        BR_TRY(get_f64(h, h->config, "rope_theta", &base));
    else if (member(rope, "rope_theta"))
        BR_TRY(get_f64(h, rope, "rope_theta", &base));
    if (member(h->config, "partial_rotary_factor"))
        BR_TRY(get_f64(h, h->config, "partial_rotary_factor", &part));
    else if (member(rope, "partial_rotary_factor"))
        BR_TRY(get_f64(h, rope, "partial_rotary_factor", &part));
    if (!(base > 1) || !(part > 0) || part > 1)
        return refuse(h, "'rope_theta' or 'partial_rotary_factor' is out of "
                         "range");
    n_rot = (int64_t)((double)h->head_dim * part);
    BR_TRY(set_f32(h, "rope.freq_base", base));
    BR_TRY(set_u32(h, "rope.dimension_count", n_rot));
    return set_scaling(h, rope, base, n_rot);
}

/* ---- the file ----------------------------------------------------------- */

static void
add_text(br_status *st, const char *z)
{
    size_t n = strlen(st->msg);

    snprintf(st->msg + n, sizeof st->msg - n, " %s", z);
}

static br_code
find_arch(br_hf *h)
{
    static const br_hf_arch known[] = {
#define PERMUTE               BR_HF_PERMUTE
#define POST                  BR_HF_POST
#define EXPERTS               BR_HF_EXPERTS
#define WINDOW                BR_HF_WINDOW
#define NO_PRE                BR_HF_NO_PRE
#define PLUS1                 BR_HF_PLUS1
#define GELU                  BR_HF_GELU
#define SWA                   BR_HF_SWA
#define MXFP4                 BR_HF_MXFP4
#define NORM_SAID             BR_HF_NORM_SAID
#define H(class, arch, flags) {class, arch, flags},
#include "model/hf_arch.def"
#undef PERMUTE
#undef POST
#undef EXPERTS
#undef WINDOW
#undef NO_PRE
#undef PLUS1
#undef GELU
#undef SWA
#undef MXFP4
#undef NORM_SAID
#undef H
    };
    const br_json *list = member(h->config, "architectures");
    const br_json *name =
        list && list->kind == BR_J_ARR ? br_json_at(list, 0) : NULL;

    if (!name || name->kind != BR_J_STR)
        return br_fail(h->st, BR_E_FORMAT, "config.json: no 'architectures'");
    for (size_t i = 0; i < BR_COUNT(known); i++)
        if (strcmp(known[i].class_name, name->s) == 0) {
            h->arch = &known[i];
            return BR_OK;
        }
    br_fail(h->st, BR_E_UNSUPPORTED,
            "config.json: '%.60s' is not read; those that are:", name->s);
    for (size_t i = 0; i < BR_COUNT(known); i++)
        add_text(h->st, known[i].class_name);
    return BR_E_UNSUPPORTED;
}

/* The last part of the folder's path. */
static br_text
folder_name(const char *path)
{
    size_t n = strlen(path), from;

    while (n > 1 && path[n - 1] == '/')
        n--;
    for (from = n; from > 0 && path[from - 1] != '/'; from--)
        ;
    return (br_text){path + from, n - from};
}

br_code
br_hf_config(br_hf *h)
{
    BR_TRY(br_hf_json(h, "config.json", true, &h->config));
    if (h->config->kind != BR_J_OBJ)
        return br_fail(h->st, BR_E_FORMAT, "config.json: no object");
    BR_TRY(find_arch(h));
    BR_TRY(check_plain(h));
    h->stats->arch = h->arch->arch;
    br_gguf_w_str(h->w, "general.architecture", br_text_z(h->arch->arch));
    br_gguf_w_str(h->w, "general.type", BR_TEXT("model"));
    br_gguf_w_str(h->w, "general.name", folder_name(h->folder));
    for (size_t i = 0; i < BR_COUNT(rows); i++)
        BR_TRY(set_row(h, &rows[i]));
    BR_TRY(set_heads(h));
    BR_TRY(set_context(h));
    BR_TRY(set_experts(h));
    return set_rope(h);
}

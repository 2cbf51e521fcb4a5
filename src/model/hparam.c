/* hparam.c - a model's hyper-parameters, from metadata to one row per layer.
 *
 * Files write many numbers either once or once per layer, and leave out what
 * follows from others. Here that ends: after br_hparams_read every layer has
 * its own heads, widths, window and mixer, and nobody asks the file again.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/model_int.h"

#include <stdio.h>
#include <string.h>

static const br_gguf_kv *
find(const br_model *m, const char *key)
{
    char full[160];

    snprintf(full, sizeof full, "%s.%s", m->arch->name, key);
    return br_gguf_find(m->gguf, full);
}

typedef struct field {
    const char *key;
    bool required;
    double lo, hi;
} field;

static br_code
bad(const br_model *m, const field *f, br_status *st)
{
    return br_fail(st, BR_E_FORMAT, "%s.%s: has to be a number of %.15g..%.15g",
                   m->arch->name, f->key, f->lo, f->hi);
}

static br_code
missing(const br_model *m, const field *f, br_status *st)
{
    return br_fail(st, BR_E_FORMAT, "%s.%s: there has to be this key",
                   m->arch->name, f->key);
}

/* A number of which graphs have one, from a file that has one for each layer. */
static br_code
check_one(const br_model *m, const field *f, const br_gguf_kv *kv,
          br_status *st)
{
    double first = 0, v = 0;

    (void)br_gguf_f64(kv, 0, &first);
    for (uint64_t i = 1; kv->type == BR_GGUF_ARR && i < kv->n; i++)
        if (!br_gguf_f64(kv, i, &v) || v != first)
            return br_fail(st, BR_E_UNSUPPORTED,
                           "%s.%s: layers that differ in it are not computed "
                           "here",
                           m->arch->name, f->key);
    return BR_OK;
}

static br_code
read_int(const br_model *m, const field *f, int64_t *out, br_status *st)
{
    const br_gguf_kv *kv = find(m, f->key);
    int64_t v;

    if (!kv)
        return f->required ? missing(m, f, st) : BR_OK;
    if (!br_gguf_i64(kv, 0, &v) || (double)v < f->lo || (double)v > f->hi)
        return bad(m, f, st);
    *out = v;
    return check_one(m, f, kv, st);
}

static br_code
read_float(const br_model *m, const field *f, float *out, br_status *st)
{
    const br_gguf_kv *kv = find(m, f->key);
    double v;

    if (!kv)
        return f->required ? missing(m, f, st) : BR_OK;
    if (!br_gguf_f64(kv, 0, &v) || !(v >= f->lo && v <= f->hi))
        return bad(m, f, st);
    *out = (float)v;
    return check_one(m, f, kv, st);
}

/* A number for all layers, or a list with one each. */
static br_code
read_layers(const br_model *m, const field *f, size_t offset, br_status *st)
{
    const br_gguf_kv *kv = find(m, f->key);

    if (!kv)
        return BR_OK;
    if (kv->type == BR_GGUF_ARR && kv->n < (uint64_t)m->hp.n_layer)
        return br_fail(st, BR_E_FORMAT,
                       "%s.%s: has %llu values for %lld layers", m->arch->name,
                       f->key, (unsigned long long)kv->n,
                       (long long)m->hp.n_layer);
    for (int64_t l = 0; l < m->hp.n_layer; l++) {
        int64_t v;

        if (!br_gguf_i64_layer(kv, (uint64_t)l, &v) || (double)v < f->lo ||
            (double)v > f->hi)
            return bad(m, f, st);
        *(int32_t *)(void *)((char *)&m->hp.layer[l] + offset) = (int32_t)v;
    }
    return BR_OK;
}

/* clang-format off */
static br_code
read_scalars(br_model *m, br_status *st)
{
    enum { OPT, REQ };
    br_hparams *hp = &m->hp;

#define I(fd, ky, need, def, lo, hi)                                     \
    hp->fd = (def);                                                      \
    BR_TRY(read_int(m, &(field){ky, (need) == REQ, (lo), (hi)}, &hp->fd, st));
#define F(fd, ky, need, def, lo, hi)                                     \
    hp->fd = (float)(def);                                               \
    BR_TRY(read_float(m, &(field){ky, (need) == REQ, (lo), (hi)}, &hp->fd, st));
#define L(fd, ky, need, def, lo, hi)
#include "model/hparam.def"
#undef I
#undef F
#undef L
    return BR_OK;
}

static br_code
read_lists(br_model *m, br_status *st)
{
#define I(fd, ky, need, def, lo, hi)
#define F(fd, ky, need, def, lo, hi)
#define L(fd, ky, need, def, lo, hi)                                     \
    for (int64_t l = 0; l < m->hp.n_layer; l++)                          \
        m->hp.layer[l].fd = (def);                                       \
    BR_TRY(read_layers(m, &(field){ky, false, (lo), (hi)},               \
                       offsetof(br_layer_hp, fd), st));
#include "model/hparam.def"
#undef I
#undef F
#undef L
    return BR_OK;
}
/* clang-format on */

static br_code
read_scaling(br_model *m, br_status *st)
{
    const br_gguf_kv *kv = find(m, "rope.scaling.type");
    const field old = {"rope.scale_linear", false, 0, 1e6};
    br_text t;

    if (!find(m, "rope.scaling.factor")) /* files of 2023 call it so */
        BR_TRY(read_float(m, &old, &m->hp.rope_factor, st));
    m->hp.scaling = m->hp.rope_factor > 0 ? BR_SCALING_LINEAR : BR_SCALING_NONE;
    if (!kv)
        return BR_OK;
    if (!br_gguf_str(kv, 0, &t))
        return br_fail(st, BR_E_FORMAT, "%s.rope.scaling.type: has to be text",
                       m->arch->name);
    if (br_text_is(t, "none") || br_text_is(t, "longrope"))
        m->hp.scaling = BR_SCALING_NONE;
    else if (br_text_is(t, "yarn"))
        m->hp.scaling = BR_SCALING_YARN;
    else if (!br_text_is(t, "linear"))
        return br_fail(st, BR_E_UNSUPPORTED,
                       "%s.rope.scaling.type: '%.*s' is none of none, linear, "
                       "yarn, longrope",
                       m->arch->name, (int)BR_MIN(t.n, 32), t.p);
    if (m->hp.scaling != BR_SCALING_NONE && m->hp.rope_factor <= 0)
        m->hp.scaling = BR_SCALING_NONE;
    if (m->hp.scaling == BR_SCALING_YARN && m->hp.rope_orig_ctx == 0)
        m->hp.rope_orig_ctx = m->hp.n_ctx;
    if (m->hp.scaling == BR_SCALING_YARN && m->hp.rope_orig_ctx == 0)
        return br_fail(st, BR_E_FORMAT,
                       "%s.rope.scaling.original_context_length: YaRN needs it",
                       m->arch->name);
    return BR_OK;
}

/* Of so many layers the last sees all; 0: they are alike, or the file says. */
static int64_t
window_period(const br_arch *a)
{
    switch (a->window) {
    case BR_WINDOW_NO:
    case BR_WINDOW_ALL:
    case BR_WINDOW_KEY: return 0;
    case BR_WINDOW_EVEN: return 2;
    case BR_WINDOW_SIXTH: return 6;
    case BR_WINDOW_FOURTH: return 4;
    }
    br_unreachable("a kind of window");
}

bool
br_arch_windowed(const br_arch *a, int64_t layer)
{
    int64_t period = window_period(a);

    return a->window == BR_WINDOW_ALL ||
           (period > 0 && layer % period < period - 1);
}

/* A list in the file goes before the architecture's habit, and so does a number
 * there, a period: 0 means that all layers see a window. */
static br_code
find_windows(br_model *m, br_status *st)
{
    const char *key = "attention.sliding_window_pattern";
    const br_gguf_kv *kv = find(m, key);
    br_hparams *hp = &m->hp;
    bool needs =
        m->arch->window == BR_WINDOW_EVEN || m->arch->window == BR_WINDOW_KEY;
    bool none = m->arch->window == BR_WINDOW_NO || (!needs && hp->window == 0);
    bool list =
        m->arch->window == BR_WINDOW_KEY || (kv && kv->type == BR_GGUF_ARR);

    if (!kv && m->arch->window == BR_WINDOW_KEY)
        return missing(m, &(field){.key = key}, st);
    for (int64_t l = 0; l < hp->n_layer; l++) {
        int32_t p = hp->layer[l].is_window;
        bool is = list ? p != 0
                  : kv ? p == 0 || l % p < p - 1
                       : br_arch_windowed(m->arch, l);

        hp->layer[l].is_window = is && !none;
    }
    return BR_OK;
}

static bool
recurrent(const br_model *m, int64_t l)
{
    const br_layer_hp *hp = &m->hp.layer[l];

    switch (m->arch->which) {
    case BR_WHICH_NO: return false;
    case BR_WHICH_EVERY:
        return hp->is_recurrent >= 0 ? hp->is_recurrent != 0
                                     : (l + 1) % m->hp.full_every != 0;
    case BR_WHICH_NOKV: return hp->n_kv == 0;
    case BR_WHICH_ALL: return true;
    }
    return false;
}

/* Whose keys and values a layer without its own reads: the last layer of its
 * kind (windowed or full) that has some. Only gemma4 has such layers. */
static int32_t
kv_layer_of(const br_model *m, int64_t l)
{
    const br_layer_hp *y = m->hp.layer;
    int64_t own = m->hp.n_layer - m->hp.shared_kv;

    if (l < own)
        return (int32_t)l;
    for (int64_t k = own - 1; k >= 0; k--)
        if (y[k].is_window == y[l].is_window)
            return (int32_t)k;
    return -1;
}

static br_code
layer_heads(br_model *m, int64_t l, br_status *st)
{
    br_hparams *hp = &m->hp;
    br_layer_hp *y = &hp->layer[l];
    bool win = y->is_window != 0;

    if (y->n_kv < 0)
        y->n_kv = y->n_head;
    y->head_k = (int32_t)hp->head_k;
    if (y->head_k == 0 && y->n_head > 0)
        y->head_k = (int32_t)(hp->n_embd / y->n_head);
    y->head_v = (int32_t)(hp->head_v ? hp->head_v : y->head_k);
    y->n_rot = (int32_t)(hp->n_rot ? hp->n_rot : y->head_k);
    if (win) {
        y->head_k = (int32_t)(hp->head_k_swa ? hp->head_k_swa : y->head_k);
        y->head_v = (int32_t)(hp->head_v_swa ? hp->head_v_swa : y->head_v);
        if (hp->n_rot_swa)
            y->n_rot = (int32_t)hp->n_rot_swa;
        y->window = (int32_t)hp->window;
    }
    if (y->mixer != BR_MIX_ATTN && y->mixer != BR_MIX_MLA &&
        !(m->arch->flags & BR_AF_PARALLEL))
        return BR_OK;
    if (y->n_head < 1 || y->n_kv < 1 || y->n_head % y->n_kv != 0)
        return br_fail(st, BR_E_FORMAT,
                       "layer %lld: %d heads cannot share %d heads of keys",
                       (long long)l, y->n_head, y->n_kv);
    if (y->head_k < 1 || y->head_v < 1 || y->n_rot > y->head_k || y->n_rot % 2)
        return br_fail(st, BR_E_FORMAT,
                       "layer %lld: heads of %d columns, %d of them turning",
                       (long long)l, y->head_k, y->n_rot);
    if (win && y->window < 1)
        return br_fail(st, BR_E_FORMAT,
                       "%s.attention.sliding_window: layer %lld needs it",
                       m->arch->name, (long long)l);
    return BR_OK;
}

static br_code
check_experts(const br_model *m, br_status *st)
{
    const br_hparams *hp = &m->hp;

    if (hp->n_expert > 0 && (hp->n_used < 1 || hp->n_used > hp->n_expert))
        return br_fail(
            st, BR_E_FORMAT, "%s.expert_used_count: %lld of %lld experts",
            m->arch->name, (long long)hp->n_used, (long long)hp->n_expert);
    if (hp->expert_groups > 1 &&
        (hp->n_expert % hp->expert_groups || hp->expert_groups_used < 1 ||
         hp->expert_groups_used > hp->expert_groups))
        return br_fail(st, BR_E_FORMAT,
                       "%s.expert_group_count: %lld experts in %lld groups, "
                       "%lld used",
                       m->arch->name, (long long)hp->n_expert,
                       (long long)hp->expert_groups,
                       (long long)hp->expert_groups_used);
    return BR_OK;
}

/* What a key says that no graph does: without it every number is another. */
static br_code
check_unheard(const br_model *m, br_status *st)
{
    const char *key = "attention.causal", *what = "tokens that see later ones";
    const br_gguf_kv *kv = find(m, key);
    int64_t v = 1;

    if (!kv && m->arch_id == BR_ARCH_GRANITE) {
        key = "rope.scaling.finetuned"; /* what Granite's files mean by it */
        what = "positions without a rotation";
        kv = find(m, key);
    }
    if (kv && (!br_gguf_i64(kv, 0, &v) || v == 0))
        return br_fail(st, BR_E_UNSUPPORTED,
                       "%s.%s: it is not true: %s are not computed here",
                       m->arch->name, key, what);
    return BR_OK;
}

/* DeepSeek's files of before V3 have no such key, and no bias in the choice of
 * experts; GLM-4.7-Flash, whose files come without the key, too, has one. */
static int64_t
usual_gating(const br_model *m)
{
    char bias[64];

    snprintf(bias, sizeof bias, "blk.%lld.exp_probs_b.bias",
             (long long)m->hp.n_dense);
    return m->arch->mixer == BR_MIX_MLA && br_gguf_tensor_find(m->gguf, bias)
               ? BR_GATE_SIGMOID
               : m->arch->gate;
}

static void
defaults(br_model *m)
{
    br_hparams *hp = &m->hp;

    if (m->arch->flags & BR_AF_CAPS) {
        if (!find(m, "attn_logit_softcapping"))
            hp->att_cap = 50;
        if (!find(m, "final_logit_softcapping"))
            hp->logit_cap = 30;
        if (hp->window == 0)
            hp->window = 4096;
    }
    if (hp->rope_base_swa == 0)
        hp->rope_base_swa =
            m->arch_id == BR_ARCH_GEMMA3 ? 10000 : hp->rope_base;
    if (hp->expert_gating == BR_GATE_UNSAID)
        hp->expert_gating = usual_gating(m);
    if (hp->expert_norm < 0)
        hp->expert_norm = (m->arch->flags & BR_AF_NORM_W) != 0;
    if (hp->rope_orig_ctx == 0)
        hp->rope_orig_ctx = hp->n_ctx;
    if (hp->att_temp_len == 0)
        hp->att_temp_len = hp->rope_orig_ctx;
    if (m->arch->mixer == BR_MIX_MLA) /* its files have a tenth of it */
        hp->yarn_log_mul /= 0.1f;
}

br_code
br_hparams_read(br_model *m, br_status *st)
{
    br_hparams *hp = &m->hp;

    BR_TRY(read_scalars(m, st));
    BR_TRY(check_unheard(m, st));
    if (hp->n_nextn >= hp->n_layer)
        return br_fail(
            st, BR_E_FORMAT, "%s.nextn_predict_layers: %lld of %lld layers",
            m->arch->name, (long long)hp->n_nextn, (long long)hp->n_layer);
    hp->n_layer -= hp->n_nextn; /* layers that only draft are not run */
    hp->layer = br_arena_new(&m->arena, br_layer_hp, (size_t)hp->n_layer);
    if (!hp->layer)
        return br_fail(st, BR_E_OOM, "layers: out of memory");
    BR_TRY(read_lists(m, st));
    BR_TRY(read_scaling(m, st));
    defaults(m);
    BR_TRY(find_windows(m, st));
    BR_TRY(check_experts(m, st));
    if (hp->shared_kv >= hp->n_layer)
        return br_fail(st, BR_E_FORMAT,
                       "%s.attention.shared_kv_layers: %lld of %lld layers",
                       m->arch->name, (long long)hp->shared_kv,
                       (long long)hp->n_layer);
    for (int64_t l = 0; l < hp->n_layer; l++) {
        br_layer_hp *y = &hp->layer[l];

        y->mixer = recurrent(m, l) ? m->arch->recur : m->arch->mixer;
        y->moe = hp->n_expert > 0 && l >= hp->n_dense;
        BR_TRY(layer_heads(m, l, st));
        y->kv_layer = kv_layer_of(m, l);
        if (y->kv_layer < 0)
            return br_fail(st, BR_E_FORMAT,
                           "layer %lld: no layer whose keys it could share",
                           (long long)l);
    }
    return BR_OK;
}

/* shape.c - see shape.h.
 *
 * The tensors are those that the architecture's verbs ask for; opening the
 * file checks every one. Random numbers are made once, 1 << 16 of them per
 * format, and cut at another block for each row.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/shape.h"

#include "base/json.h"
#include "base/rng.h"
#include "mega/net.h"
#include "model/gguf_write.h"
#include "model/model.h"
#include "model/qmix.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    POOL_ELEMS = 1 << 16,
    MAX_TENSORS = 16384,
    SMALL_ELEMS = 1 << 22 /* of all experts' gates */
};

typedef struct shape {
    const char *name, *arch;
    int64_t hidden, heads, kv, hd, inter, vocab, layers;
    double eps, theta;
    bool tied;
    int64_t window, experts, used;
} shape;

static const shape more[] = {
#define S(...) M(__VA_ARGS__, 0, 0)
#define M(name_, arch_, h, nh, kv_, hd_, in, v, l, eps_, theta_, tied_, win, \
          all, k)                                                            \
    {name_, arch_, h, nh, kv_, hd_, in, v, l, eps_, theta_, tied_, win, all, k},
#include "run/shape.def"
#undef M
#undef S
};

typedef struct maker {
    shape s;
    const br_qmix *mix; /* or */
    int type;           /* of all matrices */
    br_gguf_writer *w;
    BR_VEC(br_gguf_w_info) list;
    BR_VEC(char *) names;
    uint8_t *pool[BR_Q_LIMIT]; /* POOL_ELEMS numbers of a format */
    br_rng rng;
    bool oom;
} maker;

bool
br_shape_is(const char *spec)
{
    return strncmp(spec, "shape:", 6) == 0;
}

const char *
br_shape_name(size_t i)
{
    size_t n = br_mega_shape_count();

    if (i < n)
        return br_mega_shape_at(i)->name;
    return i - n < BR_COUNT(more) ? more[i - n].name : NULL;
}

/* ---- the spec ------------------------------------------------------------ */

static bool
find_shape(shape *s, br_text name)
{
    const br_mega_shape *m = br_mega_shape_find(name);

    if (m)
        *s = (shape){m->name,
                     m->qk_norm ? "qwen3" : "llama",
                     m->hidden,
                     m->n_heads,
                     m->n_kv_heads,
                     m->head_dim,
                     m->intermediate,
                     m->vocab,
                     m->n_layers,
                     m->rms_eps,
                     m->rope_theta,
                     m->tied,
                     0,
                     0,
                     0};
    for (size_t i = 0; !m && i < BR_COUNT(more); i++)
        if (br_text_is(name, more[i].name)) {
            *s = more[i];
            return true;
        }
    return m != NULL;
}

static br_code
no_shape(br_text name, br_status *st)
{
    br_str all = {0};
    br_code code;

    for (size_t i = 0; br_shape_name(i); i++)
        br_str_printf(&all, " %s", br_shape_name(i));
    code = br_fail(st, BR_E_USAGE, "shape '%.*s' is not one of:%s",
                   (int)BR_MIN(name.n, (size_t)40), name.p, br_str_z(&all));
    br_str_fini(&all);
    return code;
}

static br_code
no_format(br_text name, br_status *st)
{
    br_str all = {0};
    br_code code;

    for (int t = 0; t < BR_Q_LIMIT; t++) {
        const br_qinfo *q = br_qinfo_of(t);

        if (q->name && q->flags & BR_QF_ENC)
            br_str_printf(&all, " %s", q->name);
    }
    for (size_t i = 0; br_qmix_at(i); i++)
        if (br_qtype_find(br_text_z(br_qmix_name(br_qmix_at(i)))) < 0)
            br_str_printf(&all, " %s", br_qmix_name(br_qmix_at(i)));
    code = br_fail(st, BR_E_USAGE, "format '%.*s' is not one of:%s",
                   (int)BR_MIN(name.n, (size_t)40), name.p, br_str_z(&all));
    br_str_fini(&all);
    return code;
}

static br_code
read_spec(maker *m, const char *spec, br_status *st)
{
    const char *at = spec + 6;
    br_text part[3] = {{0}};
    int n = 0;
    int64_t seed = 1;

    for (;; at++) {
        size_t len = strcspn(at, ":");

        if (n == 3)
            return br_fail(st, BR_E_USAGE,
                           "%s: expected shape:NAME:FORMAT[:SEED]", spec);
        part[n++] = (br_text){at, len};
        at += len;
        if (!*at)
            break;
    }
    if (!find_shape(&m->s, part[0]))
        return no_shape(part[0], st);
    if (n < 2)
        return br_fail(st, BR_E_USAGE, "%s: expected shape:NAME:FORMAT[:SEED]",
                       spec);
    m->type = br_qtype_find(part[1]);
    m->mix = br_qmix_find(part[1]);
    if (m->type >= 0 && !(br_qinfo_of(m->type)->flags & BR_QF_ENC))
        m->type = -1;
    if (m->type < 0 && !m->mix)
        return no_format(part[1], st);
    if (n == 3 && (!br_json_to_i64(part[2], &seed) || seed < 0))
        return br_fail(st, BR_E_USAGE,
                       "%s: the seed is a whole number from 0 to %lld", spec,
                       (long long)INT64_MAX);
    br_rng_init(&m->rng, (uint64_t)seed, 0);
    return BR_OK;
}

/* ---- what the file says -------------------------------------------------- */

static void
key(maker *m, const char *what, double v, bool real)
{
    char name[128];

    snprintf(name, sizeof name, "%s.%s", m->s.arch, what);
    if (real)
        br_gguf_w_f32(m->w, name, (float)v);
    else
        br_gguf_w_u32(m->w, name, (uint32_t)v);
}

static void
keys(maker *m)
{
    const shape *s = &m->s;

    br_gguf_w_str(m->w, "general.architecture", br_text_z(s->arch));
    br_gguf_w_str(m->w, "general.name", br_text_z(s->name));
    key(m, "block_count", (double)s->layers, false);
    key(m, "embedding_length", (double)s->hidden, false);
    key(m, "context_length", 1 << 20, false);
    key(m, "feed_forward_length", (double)s->inter, false);
    key(m, "attention.head_count", (double)s->heads, false);
    key(m, "attention.head_count_kv", (double)s->kv, false);
    key(m, "attention.key_length", (double)s->hd, false);
    key(m, "attention.value_length", (double)s->hd, false);
    key(m, "attention.layer_norm_rms_epsilon", s->eps, true);
    key(m, "rope.freq_base", s->theta, true);
    if (s->experts) {
        key(m, "expert_count", (double)s->experts, false);
        key(m, "expert_used_count", (double)s->used, false);
        key(m, "expert_feed_forward_length", (double)s->inter, false);
    }
    if (s->window)
        key(m, "attention.sliding_window", (double)s->window, false);
}

/* of: experts that have one each; 0: it is nobody's. */
static void
tensor_of(maker *m, int64_t layer, br_weight w, int64_t in, int64_t out,
          int64_t of)
{
    char text[BR_GGUF_MAX_NAME_BYTES + 1];
    br_gguf_tensor t = {.type = BR_Q_F32,
                        .n_dims = of    ? 3
                                  : out ? 2
                                        : 1,
                        .dim = {(uint64_t)in, out ? (uint64_t)out : 1,
                                of ? (uint64_t)of : 1, 1}};
    br_qmix_model q = {m->s.layers, m->s.tied};
    br_gguf_w_info info;
    char *name;
    bool fell;

    br_weight_name(w, layer, text, sizeof text);
    name = br_try_alloc(strlen(text) + 1);
    if (!name || !br_vec_push(&m->names, name)) {
        br_free(name);
        m->oom = true;
        return;
    }
    memcpy(name, text, strlen(text) + 1);
    t.name = br_text_z(name);
    info = (br_gguf_w_info){.name = t.name, .n_dims = t.n_dims};
    memcpy(info.dim, t.dim, sizeof info.dim);
    info.type = out == 0 || w == BR_W_ROUTER ? BR_Q_F32
                : m->mix ? br_qmix_type(m->mix, &q, &t, &fell)
                         : m->type;
    if (!m->mix && (uint64_t)in % br_qinfo_of(info.type)->elems != 0)
        info.type = BR_Q_F16;
    br_gguf_w_tensor(m->w, &info);
    m->oom = m->oom || !br_vec_push(&m->list, info);
}

static void
tensor(maker *m, int64_t layer, br_weight w, int64_t in, int64_t out)
{
    tensor_of(m, layer, w, in, out, 0);
}

static void
ffn(maker *m, int64_t l)
{
    const shape *s = &m->s;

    if (s->experts)
        tensor(m, l, BR_W_ROUTER, s->hidden, s->experts);
    tensor_of(m, l, s->experts ? BR_W_GATE_EXPS : BR_W_GATE, s->hidden,
              s->inter, s->experts);
    tensor_of(m, l, s->experts ? BR_W_UP_EXPS : BR_W_UP, s->hidden, s->inter,
              s->experts);
    tensor_of(m, l, s->experts ? BR_W_DOWN_EXPS : BR_W_DOWN, s->inter,
              s->hidden, s->experts);
}

static void
tensors(maker *m)
{
    const shape *s = &m->s;
    int64_t q = s->heads * s->hd, kv = s->kv * s->hd;
    int arch = br_arch_find(br_text_z(s->arch));
    uint32_t flags = br_arch_of((br_arch_id)arch)->flags;

    tensor(m, 0, BR_W_EMBED, s->hidden, s->vocab);
    tensor(m, 0, BR_W_OUT_NORM, s->hidden, 0);
    if (!s->tied)
        tensor(m, 0, BR_W_OUT, s->hidden, s->vocab);
    for (int64_t l = 0; l < s->layers; l++) {
        tensor(m, l, BR_W_ATT_NORM, s->hidden, 0);
        tensor(m, l, BR_W_Q, s->hidden, q);
        tensor(m, l, BR_W_K, s->hidden, kv);
        tensor(m, l, BR_W_V, s->hidden, kv);
        tensor(m, l, BR_W_O, q, s->hidden);
        if (flags & BR_AF_QK_NORM) {
            tensor(m, l, BR_W_Q_NORM, s->hd, 0);
            tensor(m, l, BR_W_K_NORM, s->hd, 0);
        }
        tensor(m, l, BR_W_FFN_NORM, s->hidden, 0);
        ffn(m, l);
        if (flags & BR_AF_POST) {
            tensor(m, l, BR_W_ATT_POST, s->hidden, 0);
            tensor(m, l, BR_W_FFN_POST, s->hidden, 0);
        }
    }
}

/* ---- weights ------------------------------------------------------------- */

/* Sum of twelve: near enough to normal. */
static float
normal(br_rng *r)
{
    float sum = -6;

    for (int i = 0; i < 12; i++)
        sum += br_rng_f32(r);
    return sum;
}

static br_code
make_pool(maker *m, int type, br_status *st)
{
    uint64_t bytes = 0;
    float *x;

    if (m->pool[type])
        return BR_OK;
    (void)br_qtype_bytes(type, POOL_ELEMS, &bytes);
    m->pool[type] = br_try_alloc(bytes);
    x = br_try_alloc(POOL_ELEMS * sizeof *x);
    if (!m->pool[type] || !x) {
        br_free(x);
        return br_fail(st, BR_E_OOM, "shape: out of memory");
    }
    for (size_t i = 0; i < POOL_ELEMS; i++)
        x[i] = normal(&m->rng) * 0.02f;
    br_check(br_quant(type, x, m->pool[type], POOL_ELEMS, NULL));
    br_free(x);
    return BR_OK;
}

static br_code
fill(maker *m, br_str *out, const br_gguf_w_info *t, br_status *st)
{
    const br_qinfo *q = br_qinfo_of(t->type);
    uint64_t blocks = t->dim[0] / q->elems, all = POOL_ELEMS / q->elems;
    const float one = 1;

    (void)out;
    if (t->n_dims == 1) { /* norms */
        for (uint64_t i = 0; i < t->dim[0]; i++)
            BR_TRY(br_gguf_w_data(m->w, &one, sizeof one, st));
        return BR_OK;
    }
    BR_TRY(make_pool(m, t->type, st));
    for (uint64_t row = 0; row < t->dim[1] * t->dim[2]; row++) {
        uint64_t at = br_rng_below_u64(&m->rng, all);

        for (uint64_t left = blocks; left > 0;) {
            uint64_t n = BR_MIN(left, all - at);

            BR_TRY(br_gguf_w_data(m->w, m->pool[t->type] + at * q->bytes,
                                  n * q->bytes, st));
            left -= n;
            at = 0;
        }
    }
    return BR_OK;
}

/* All at once: growing would need twice the memory. */
static br_code
reserve(const maker *m, br_str *out, br_status *st)
{
    size_t sum = 1 << 20;

    for (size_t i = 0; i < m->list.n; i++) {
        const br_gguf_w_info *t = &m->list.at[i];
        uint64_t bytes = 0;

        if (!br_qtype_bytes(t->type, t->dim[0] * t->dim[1] * t->dim[2],
                            &bytes) ||
            __builtin_add_overflow(sum, bytes + 1024, &sum))
            return br_fail(st, BR_E_LIMIT, "shape: too large");
    }
    out->at = br_try_alloc(sum);
    out->cap = out->at ? sum : 0;
    return out->at ? BR_OK
                   : br_fail(st, BR_E_OOM, "shape: no memory for %zu MB",
                             sum >> 20);
}

static br_code
make(maker *m, br_str *out, br_status *st)
{
    keys(m);
    tensors(m);
    if (m->oom)
        return br_fail(st, BR_E_OOM, "shape: out of memory");
    BR_TRY(reserve(m, out, st));
    BR_TRY(br_gguf_w_begin_mem(m->w, out, st));
    for (size_t i = 0; i < m->list.n; i++)
        BR_TRY(fill(m, out, &m->list.at[i], st));
    return br_gguf_w_end(m->w, st);
}

br_code
br_shape_model(br_str *out, const char *spec, bool small, br_status *st)
{
    maker m = {.w = NULL};
    br_code code = read_spec(&m, spec, st);

    if (code != BR_OK)
        return code;
    if (small) {
        m.s.layers = 1;
        m.s.vocab = 256;
        if (m.s.experts * m.s.inter * m.s.hidden > SMALL_ELEMS)
            m.s.experts = m.s.used;
    }
    m.w = br_gguf_w_new();
    code =
        m.w ? make(&m, out, st) : br_fail(st, BR_E_OOM, "shape: out of memory");
    br_gguf_w_free(m.w);
    for (size_t i = 0; i < m.names.n; i++)
        br_free(m.names.at[i]);
    for (size_t i = 0; i < BR_COUNT(m.pool); i++)
        br_free(m.pool[i]);
    br_vec_fini(&m.names);
    br_vec_fini(&m.list);
    if (code != BR_OK) {
        br_str_fini(out);
        *out = (br_str){0};
    }
    return code;
}

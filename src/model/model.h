/* model.h - a model file as numbers and tensors with names of their own.
 *
 *   GGUF --> architecture (a row of arch.def) --> hyper-parameters per layer
 *                                             --> tensors by id and layer
 *
 * Opening reads the header only; no page of a weight is touched. What shape a
 * tensor must have is decided by who asks for it, the graph builder of `ir`:
 * it knows what it multiplies with what.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_MODEL_H
#define BR_MODEL_H

#include "model/gguf.h"
#include "model/quant.h"

/* ---- tables --------------------------------------------------------------- */

typedef enum br_arch_id {
#define A(state, id, name, rope, act, mix, recur, which, window, gate, flags) \
    BR_ARCH_##id,
#include "model/arch.def"
#undef A
    BR_ARCH_COUNT
} br_arch_id;

typedef enum br_rope_kind {
    BR_ROPE_NONE,
    BR_ROPE_NORM,
    BR_ROPE_NEOX,
} br_rope_kind;
typedef enum br_act {
    BR_ACT_SILU,
    BR_ACT_GELU, /* tanh form */
    BR_ACT_OAI,
    BR_ACT_SIGMOID,
    BR_ACT_COUNT
} br_act;
typedef enum br_mixer {
    BR_MIX_NONE,
    BR_MIX_ATTN,
    BR_MIX_MLA,
    BR_MIX_DELTA,
    BR_MIX_CONV,
    BR_MIX_MAMBA2,
} br_mixer;
typedef enum br_which {
    BR_WHICH_NO,
    BR_WHICH_EVERY,
    BR_WHICH_NOKV,
    BR_WHICH_ALL,
} br_which;
typedef enum br_window {
    BR_WINDOW_NO,
    BR_WINDOW_EVEN,
    BR_WINDOW_SIXTH,
    BR_WINDOW_FOURTH,
    BR_WINDOW_ALL,
    BR_WINDOW_KEY,
} br_window;
typedef enum br_gating { /* codes as in files, less one for PICKED */
                         BR_GATE_UNSAID,
                         BR_GATE_SOFTMAX,
                         BR_GATE_SIGMOID,
                         BR_GATE_PICKED,
} br_gating;

enum { /* bits of br_arch.flags; what each means: arch.def */
       BR_AF_NORM_W = 1 << 0,
       BR_AF_QK_NORM = 1 << 1,
       BR_AF_QK_MAYBE = 1 << 2,
       BR_AF_QK_WHOLE = 1 << 3,
       BR_AF_V_NORM = 1 << 4,
       BR_AF_POST = 1 << 5,
       BR_AF_NO_PRE = 1 << 6,
       BR_AF_FFN_PAN = 1 << 7,
       BR_AF_GATE_UP = 1 << 8,
       BR_AF_BIAS_QKV = 1 << 9,
       BR_AF_BIAS_ALL = 1 << 10,
       BR_AF_SINKS = 1 << 11,
       BR_AF_Q_GATE = 1 << 12,
       BR_AF_K_TILE = 1 << 13,
       BR_AF_EMB_SQRT = 1 << 14,
       BR_AF_PLE = 1 << 15,
       BR_AF_PARALLEL = 1 << 16,
       BR_AF_ONE_SCALE = 1 << 17,
       BR_AF_NO_FFN = 1 << 18,
       BR_AF_LONGROPE = 1 << 19,
       BR_AF_EMB_NORM = 1 << 20,
       BR_AF_CAPS = 1 << 21,
};

typedef struct br_arch { /* a row of arch.def */
    const char *name;
    br_rope_kind rope;
    br_act act;
    br_mixer mixer, recur;
    br_which which;
    br_window window;
    br_gating gate;
    uint32_t flags;
    bool verified; /* the tests have golden logits of it */
} br_arch;

const br_arch *br_arch_of(br_arch_id id);
int br_arch_find(br_text name); /* -1: none */
/* Whether this layer sees a window only; false where files say which do. */
bool br_arch_windowed(const br_arch *a, int64_t layer);

typedef enum br_weight { /* ids of weight.def */
#define G(id, stem, logical) BR_W_##id,
#define B(id, stem, logical) BR_W_##id,
#include "model/weight.def"
#undef G
#undef B
                         BR_W_COUNT
} br_weight;

const char *br_weight_stem(br_weight w);
const char *br_weight_logical(br_weight w);
bool br_weight_layered(br_weight w);

/* ---- hyper-parameters ------------------------------------------------------ */

typedef struct br_layer_hp {
    int32_t n_head, n_kv, n_ff;
    int32_t head_k, head_v;          /* width of a head of q and k, of v */
    int32_t n_rot;                   /* columns of a head that turn */
    int32_t window;                  /* tokens seen; 0: all */
    int32_t is_window, is_recurrent; /* as the file or the row says */
    int32_t kv_layer; /* whose keys and values it reads: mostly its own */
    br_mixer mixer;
    bool moe;
} br_layer_hp;

typedef enum br_rope_scaling {
    BR_SCALING_NONE, /* also linear with no factor */
    BR_SCALING_LINEAR,
    BR_SCALING_YARN,
} br_rope_scaling;

typedef struct br_hparams {
#define REQ
#define I(field, key, need, def, lo, hi) int64_t field;
#define F(field, key, need, def, lo, hi) float field;
#define L(field, key, need, def, lo, hi)
#include "model/hparam.def"
#undef I
#undef F
#undef L
#undef REQ
    int64_t n_vocab; /* rows of the embedding table */
    br_rope_scaling scaling;
    br_layer_hp *layer; /* [n_layer] */
} br_hparams;

/* ---- the model ------------------------------------------------------------- */

typedef struct br_model {
    br_arena arena;
    br_gguf *gguf;
    const br_arch *arch;
    br_arch_id arch_id;
    br_hparams hp;
    const br_gguf_tensor **global;  /* [BR_W_COUNT], NULL: not in the file */
    const br_gguf_tensor **layered; /* [n_layer * BR_W_COUNT] */
    size_t n_unused; /* tensors of the file that weight.def does not know */
    const char *first_unused;
} br_model;

br_code br_model_open(br_model **out, const char *path,
                      br_status *st) BR_MUST_USE;
struct br_hf_desc; /* see br_gguf_open_told */
br_code br_model_open_told(br_model **out, const char *path,
                           const struct br_hf_desc *d,
                           br_status *st) BR_MUST_USE;
/* Over a GGUF in memory, which must outlive the model. */
br_code br_model_open_mem(br_model **out, const void *p, size_t n,
                          br_status *st) BR_MUST_USE;
void br_model_close(br_model *m);

/* NULL: the file has no such tensor. Layer is ignored where there is none. */
const br_gguf_tensor *br_model_tensor(const br_model *m, br_weight w,
                                      int64_t layer);
/* "blk.3.attn_q.weight", for messages. */
void br_weight_name(br_weight w, int64_t layer, char *out, size_t size);

#endif

/* verbs.h - what an architecture's layers are made of.
 *
 * A verb takes bindings (columns of values), adds nodes, and returns the
 * binding of its result. Which verbs a layer uses is said by the model's row
 * of arch.def; no verb knows a model's name.
 *
 * A failure (a tensor that is missing or of another shape) sticks to the
 * builder; verbs go on with bindings of nothing until the end.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_IR_VERBS_H
#define BR_IR_VERBS_H

#include "ir/ir.h"
#include "model/model.h"

typedef struct br_verbs {
    br_ir_builder *b;
    const br_model *m;
    const br_hparams *hp;
    const br_layer_hp *y; /* of the layer at hand */
    uint32_t flags;       /* of the architecture */
    int layer;            /* -1: outside of layers */
    br_ir_stage stage;
    int64_t n_ctx;
    br_ir_bind token, position, want;
    uint32_t freq[2]; /* of full and of windowed layers; NONE: no rope yet */
    br_ir_bind ple;   /* embeddings of each layer's own */
} br_verbs;

/* ---- verbs_base.c: values, weights, small nodes ------------------------- */

/* A tensor's value, of this shape (outermost first; ones do not count). The
 * second returns none when the file has no such tensor. */
br_ir_bind br_verb_weight(br_verbs *v, br_weight w, int rank,
                          const int64_t *dim);
br_ir_bind br_verb_weight_maybe(br_verbs *v, br_weight w, int rank,
                                const int64_t *dim);
#define BR_DIMS(...)                                                       \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]) \
    {                                                                      \
        __VA_ARGS__                                                        \
    }
bool br_verb_has(const br_verbs *v, br_weight w);
/* Is `other` there in place of w? Neither: an error that names both. */
bool br_verb_instead(br_verbs *v, br_weight other, br_weight w);
bool br_verb_none(br_ir_bind x);

/* A fresh row of `cols` f32 columns, "t.name[layer]". */
br_ir_bind br_verb_temp(br_verbs *v, const char *name, int64_t cols);
br_ir_bind br_verb_temp_i32(br_verbs *v, const char *name, int64_t cols);
br_ir_bind br_verb_state(br_verbs *v, const char *name, int rank,
                         const int64_t *dim);
int64_t br_bind_cols(br_ir_bind x);

void br_verb_node(br_verbs *v, const br_ir_node_desc *d);
#define BR_NODE(v, o, ni, no, ...)                            \
    br_verb_node((v), &(br_ir_node_desc){.op = BR_IR_##o,     \
                                         .layer = (v)->layer, \
                                         .n_in = (ni),        \
                                         .n_out = (no),       \
                                         __VA_ARGS__})

br_ir_bind br_verb_norm(br_verbs *v, const char *name, br_ir_bind x,
                        br_ir_bind w, int64_t width);
br_ir_bind br_verb_matmul(br_verbs *v, const char *name, br_ir_bind x,
                          br_ir_bind w, br_ir_bind bias);
br_ir_bind br_verb_add(br_verbs *v, const char *name, br_ir_bind a,
                       br_ir_bind b);
br_ir_bind br_verb_mul(br_verbs *v, const char *name, br_ir_bind a,
                       br_ir_bind b);
br_ir_bind br_verb_scale(br_verbs *v, const char *name, br_ir_bind x,
                         float scale);
br_ir_bind br_verb_act(br_verbs *v, const char *name, br_ir_bind x, br_act act);
br_ir_bind br_verb_glu(br_verbs *v, const char *name, br_ir_bind gate,
                       br_ir_bind up);

/* ---- verbs_rope.c ------------------------------------------------------- */

/* Turns heads of `head` columns; those of x may stand apart. */
br_ir_bind br_verb_rope(br_verbs *v, const char *name, br_ir_bind x,
                        int64_t head);
/* What YaRN multiplies the attention's scale with, of MLA. */
float br_rope_mla_scale(const br_hparams *hp);

/* ---- mixers and FFNs: rows x[T, n_embd] in, y[T, n_embd] out ------------ */

br_ir_bind br_verb_attention(br_verbs *v, br_ir_bind x); /* verbs_att.c */
br_ir_bind br_verb_mla(br_verbs *v, br_ir_bind x);
br_ir_bind br_verb_delta(br_verbs *v, br_ir_bind x); /* verbs_ssm.c */
br_ir_bind br_verb_mamba2(br_verbs *v, br_ir_bind x);
br_ir_bind br_verb_conv(br_verbs *v, br_ir_bind x);
br_ir_bind br_verb_dense(br_verbs *v, br_ir_bind x); /* verbs_ffn.c */
br_ir_bind br_verb_moe(br_verbs *v, br_ir_bind x, br_ir_bind router_x);
br_ir_bind br_verb_shared(br_verbs *v, br_ir_bind x, br_ir_bind y);

#endif

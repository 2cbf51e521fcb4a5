/* net.h - a network: what is to be computed, before anybody decides where and
 * when. The input of the lowering.
 *
 *   shape record --br_mega_net_model--.
 *                                      +--> net --br_mega_lower--> program
 *   graph file ---br_mega_net_parse---'
 *
 * A net is a list of nodes on named tensors. Nodes stand in an order in which
 * every tensor is made before it is read, each tensor is made once, and every
 * shape is known and checked when its node is added: what br_mega_net_* gives
 * back is whole, so the lowering has nothing to doubt. One net describes one
 * step: `batch` sequences, one token each, all at position `pos`.
 *
 * Tensors of rank 2 are flat, [batch, columns]. Heads are [n, head_dim] for
 * the query of one sequence, else [batch, n, head_dim]; caches are [max_seq,
 * n_kv, head_dim], for more sequences [batch, max_seq, n_kv, head_dim].
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_MEGA_NET_H
#define BR_MEGA_NET_H

#include "mega/mega.h"

typedef enum br_net_op {
#define N(name, text, lo, hi, w, b, attrs) BR_NET_##name,
#include "mega/net_op.def"
#undef N
    BR_NET_OP_COUNT
} br_net_op;

enum {
    BR_NET_NONE = -1,
    BR_NET_MAX_NODES = 1 << 17,
    BR_NET_MAX_TENSORS = 1 << 19,
    BR_NET_MAX_NAME = 1024, /* bytes of a name or key */
    BR_NET_MAX_BATCH = 1 << 16,
    BR_NET_MAX_FILE_BYTES = 64 << 20,
};
#define BR_NET_MAX_NUMEL ((int64_t)1 << 40)

typedef struct br_net_tensor {
    const char *name; /* of a weight: its key */
    int64_t shape[BR_MEGA_MAX_RANK];
    uint32_t rank;
    uint8_t kind, dtype;      /* br_mega_kind, br_mega_dtype */
    bool headed;              /* cut into heads, see above */
    bool quant;               /* a weight held as integers and scales */
    bool keep_float;          /* a weight the file says not to quantise */
    int32_t producer;         /* node, or BR_NET_NONE */
    int32_t uses, other_uses; /* by nodes; by nodes that are not linear */
} br_net_tensor;

typedef struct br_net_node {
    br_net_op op;
    const char *name; /* the label its tasks get */
    const char *role; /* "q_proj", ...; "" when it has none */
    int32_t in[3], n_in;
    int32_t out, weight, bias; /* BR_NET_NONE when absent */
    double eps, theta, scale;
    int64_t n_heads, n_kv_heads, head_dim;
    bool is_query; /* of HEADS and ROPE: heads of the query, not of the key */
} br_net_node;

typedef struct br_mega_net {
    br_arena arena; /* owns all below */
    const char *source;
    int64_t batch, pos, max_seq;
    int64_t n_layers; /* BR_NET_NONE: not said */
    br_mega_dtype dtype;
    int quant_bits; /* 0: none; 4 or 8 */
    int64_t quant_group;
    BR_VEC(br_net_tensor) tensors;
    BR_VEC(br_net_node) nodes;
    int32_t *index; /* hash of names -> tensor */
    size_t index_n; /* a power of two */
} br_mega_net;

void br_mega_net_free(br_mega_net *n);
const char *br_net_op_text(br_net_op op);
int br_net_op_find(br_text name); /* -1: none */

/* ---- from a shape (net_model.c) ------------------------------------------ */

/* A decoder of the Llama family, as a row of shapes.def or a file says. */
typedef struct br_mega_shape {
    const char *name; /* of the row; NULL for a shape of the caller's */
    int64_t hidden, n_heads, n_kv_heads, head_dim, intermediate, vocab;
    int64_t n_layers, max_seq;
    double rms_eps, rope_theta;
    bool tied;    /* the head is the embedding table */
    bool qk_norm; /* RMS norms on the heads of q and k, as Qwen3 */
    bool hf_keys; /* "model.layers.0.self_attn...", else "layers.0.attn..." */
    const char *source; /* what meta.model says */
} br_mega_shape;

size_t br_mega_shape_count(void);
const br_mega_shape *br_mega_shape_at(size_t i);
const br_mega_shape *br_mega_shape_find(br_text name); /* NULL: none */

typedef struct br_mega_step { /* zero is: one sequence, position 0, F32 */
    int64_t batch;            /* 0 means 1 */
    int64_t pos;
    br_mega_dtype dtype;
    int quant_bits; /* 0, 4 or 8: weights of linears as integers */
    int64_t quant_group;
} br_mega_step;

br_code br_mega_net_model(br_mega_net **out, const br_mega_shape *shape,
                          const br_mega_step *step, br_status *st) BR_MUST_USE;

/* ---- from and to a graph file (net_json.c; the format: docs/graph.md) ---- */

br_code br_mega_net_parse(br_mega_net **out, const char *text, size_t n,
                          br_status *st) BR_MUST_USE;
/* Parsing what this writes gives an equal net. */
void br_mega_net_write(const br_mega_net *n, br_str *out);

/* ---- building one by hand (net.c) ---------------------------------------- */

typedef struct br_net_open {
    const char *source;
    int64_t batch, pos, max_seq, n_layers;
    br_mega_dtype dtype;
} br_net_open;

br_code br_mega_net_open(br_mega_net **out, const br_net_open *o,
                         br_status *st) BR_MUST_USE;
/* Adds an IO_INPUT or a WEIGHT; its name and shape are copied. */
br_code br_net_add_tensor(br_mega_net *n, const br_net_tensor *t, int32_t *id,
                          br_status *st) BR_MUST_USE;
/* Adds a node and makes the tensor `out_name`: its shape follows from the
 * inputs. Fails with FORMAT, naming the node, when they do not fit. */
br_code br_net_add_node(br_mega_net *n, const br_net_node *node,
                        const char *out_name, int32_t *out,
                        br_status *st) BR_MUST_USE;
int32_t br_net_find(const br_mega_net *n, const char *name);
/* Marks a tensor of a node as a result of the step. */
br_code br_net_set_output(br_mega_net *n, int32_t t, br_status *st) BR_MUST_USE;
/* Every weight that only linears read becomes integers of 4 or 8 bits with a
 * scale per `group` columns. */
br_code br_net_quantise(br_mega_net *n, int bits, int64_t group,
                        br_status *st) BR_MUST_USE;
/* The net makes something and all it makes is sized. */
br_code br_net_finish(const br_mega_net *n, br_status *st) BR_MUST_USE;

#endif

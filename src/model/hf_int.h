/* hf_int.h - what the parts of the converter share.
 *
 *   hf.c          the order of things
 *   hf_config.c   config.json to metadata, factors of the rotation
 *   hf_plan.c     which tensor becomes which
 *   hf_write.c    their bytes
 *   hf_f8.c       weights of eight bits under scales
 *   hf_vocab.c    tokenizer and chat template
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_HF_INT_H
#define BR_HF_INT_H

#include "base/json.h"
#include "model/gguf_write.h"
#include "model/hf.h"
#include "model/safetensors.h"

enum { /* flags of hf_arch.def */
       BR_HF_PERMUTE = 1,
       BR_HF_POST = 2,
       BR_HF_EXPERTS = 4,
       BR_HF_WINDOW = 8,
       BR_HF_NO_PRE = 16,
       BR_HF_PLUS1 = 32,
       BR_HF_GELU = 64,
       BR_HF_SWA = 128,
       BR_HF_MXFP4 = 256,
       BR_HF_NORM_SAID = 512,
};

typedef struct br_hf_arch {
    const char *class_name, *arch;
    uint32_t flags;
} br_hf_arch;

/* One tensor of the output. */
typedef struct br_hf_plan {
    br_gguf_w_info info;
    const br_st_tensor **src; /* n_src of one shape; experts: more than one */
    uint32_t n_src;
    uint32_t heads;   /* rows are permuted within so many heads; 0: are not */
    const float *own; /* instead of src: numbers of our own */
    bool plus1;       /* one is added to each number */
    /* Rows first, first + step ...; of packed experts. step 0: all. With two
     * sources those are MXFP4's blocks and scales. */
    uint32_t first, step;
    bool
        turned; /* theirs: [expert][column][row]; ours: [expert][row][column] */
} br_hf_plan;

/* What multiplies a matrix of eight bits: number (r / rows) * per_row + c / cols. */
typedef struct br_hf_f8 {
    const br_st_tensor *scale; /* NULL: nothing does */
    uint64_t rows, cols, per_row;
} br_hf_f8;

/* Divisors of frequencies, as the files of GGUF carry them. */
typedef struct br_hf_factors {
    const char *name;
    const float *f; /* NULL: none */
    uint32_t n;
} br_hf_factors;

typedef struct br_hf {
    const char *folder;
    const br_hf_desc *desc;
    br_hf_stats *stats;
    br_status *st;
    br_arena arena;
    br_st *files;
    const br_json *config;
    const br_hf_arch *arch;
    br_gguf_writer *w;
    int64_t n_layer, n_head, n_kv, head_dim, n_expert;
    bool no_window;  /* of an architecture whose layers have one, elsewhere */
    uint64_t n_rows; /* of the embedding table */
    br_hf_factors rope[2];
    BR_VEC(br_hf_plan) plans;
    bool *used;   /* one for each tensor of files */
    br_hf_f8 *f8; /* likewise */
    uint64_t f8_rows,
        f8_cols;    /* of a block that has a scale; 0: config.json is silent */
    bool f8_scaled; /* it says that matrices of eight bits have scales */
    bool inside;    /* for this program alone: weights may stay F8 */
    uint64_t done, total;
} br_hf;

/* Parses folder/name into the arena; *out NULL where there is no such file and
 * `need` is false. */
br_code br_hf_json(br_hf *h, const char *name, bool need, const br_json **out);
/* "ARCH.key" in the arena, or NULL and a failure. */
const char *br_hf_key(br_hf *h, const char *key);

br_code br_hf_config(br_hf *h);
br_code br_hf_plan_all(br_hf *h);
br_code br_hf_vocab(br_hf *h); /* after the plan: n_rows */
br_code br_hf_declare(br_hf *h);
const br_st_tensor *br_hf_take(br_hf *h,
                               const char *name); /* and is used then */
bool br_hf_is_f8(const br_st_tensor *t);
br_hf_f8 *br_hf_f8_of(br_hf *h, const br_st_tensor *t);
/* n bytes of tensor data, unless it was stopped. */
br_code br_hf_put(br_hf *h, const void *p, size_t n);
br_code br_hf_f8_describe(br_hf *h, const br_st_tensor *t,
                          br_gguf_w_info *info);
/* Whole rows, `bytes` of codes. */
br_code br_hf_f8_put(br_hf *h, const br_hf_plan *p, const br_st_tensor *t,
                     const uint8_t *from, uint64_t bytes);
br_code br_hf_data(br_hf *h);

#endif

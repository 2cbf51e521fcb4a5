/* cuda_decode.h - what the checks and the timings of the decode megakernel share.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_CUDA_DECODE_H
#define BENCH_CUDA_DECODE_H

#include "../kernels/cuda/mega_table.h"
#include "drv/cuda/decode.h"
#include "kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct weights { /* row-major on the device, per layer */
    uint64_t qkv[64], out[64], gate[64], up[64], down[64], head;
    uint64_t cache, h, x, y, act, score; /* of the obvious kernels */
};

struct bench {
    br_cuda cu;
    br_cu_decode d;
    struct weights w;
    void *mod;
    br_status st;
    const void *image;
    const char *depths;
    uint64_t seed, turn, seed_f32; /* of weights, from a shape's first on */
    bool profile, quick;
    bool plain, both; /* BF16 with 16 bits a weight; after 12 */
    uint32_t repeat;  /* times that a step is to give the same bits */
    uint32_t stay;    /* tokens of a launch that stays, and nothing else */
};

#define OK(b, call)                                      \
    do {                                                 \
        if ((call) != BR_OK) {                           \
            fprintf(stderr, "bench: %s\n", (b)->st.msg); \
            exit(br_code_exit((b)->st.code));            \
        }                                                \
    } while (0)
#define CU(b, call) OK(b, BR_CU(&(b)->cu, &(b)->st, call))

#define TOKEN       17u
#define STEPS       3u

/* Logits: noise, noise with holes, with ties, one far above. */
void make_logits(float *x, uint32_t n, uint32_t kind);
extern const br_cu_pick
    draws[]; /* how tokens are drawn; the first four timed */

/* cuda_decode_times.c */
void
time_decode(struct bench *b); /* draws, launches that stay, steps, submits */
void
time_steps(struct bench *b); /* at several positions; of each pair of depths */
void profile_decode(struct bench *b, uint32_t pos);

#endif

/* rand.h - cuRAND inside: a call becomes a job, a stream does it.
 *
 *   curandGenerateX -> rand_job -> bc_op of the generator's stream -> rand_fill
 *
 * The engine belongs to the jobs, which run one after the other; a setting
 * travels with the next job as a new beginning.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_CUDA_RAND_H
#define BR_CUDA_RAND_H

#include "cuda/cuda_int.h"

#include "cuda/brass_rand.h"
#include "cuda/curand.h"

enum {
    RAND_LANES = 4096, /* XORWOW and MRG32k3a: result n is lane n mod 4096's */
    RAND_PHILOX = 65536, /* subsequences that take turns by four numbers */
    RAND_MT = 624,       /* words of MT19937 */
    RAND_MAX_DIM = 20000 /* of Sobol */
};

typedef struct rand_start {
    uint64_t seed, offset;
    unsigned dims;
} rand_start;
typedef struct rand_engine {
    curandRngType_t type;
    unsigned at; /* the next lane or word */
    unsigned dims;
    uint64_t index; /* the next point's; the next number's of Philox */
    union {
        struct curandStateXORWOW xorwow[RAND_LANES];
        struct curandStateMRG32k3a mrg[RAND_LANES];
        struct curandStatePhilox4_32_10 philox;
        uint32_t mt[RAND_MT];
    };
    uint64_t (*directions)[64]; /* one row for each dimension */
} rand_engine;

typedef enum rand_kind {
    RAND_BITS,
    RAND_BITS64,
    RAND_UNIFORM,
    RAND_NORMAL,
    RAND_LOG_NORMAL,
    RAND_POISSON
} rand_kind;
typedef struct rand_job {
    rand_engine *e;
    const rand_start *start; /* NULL: goes on */
    rand_kind kind;
    bool wide; /* double */
    void *out;
    size_t n;
    double a, b; /* mean and deviation; lambda */
} rand_job;

/* Whether there was memory. */
bool rand_fill(const rand_job *j);
/* The first dims dimensions; row k, bit j: what bit j of Gray code's index adds
 * to the point, 2^63 for a half. */
void rand_sobol(unsigned dims, uint64_t (*rows)[64]);

#endif

/* quant.h - number formats of weights: blocks of integers and scales.
 *
 * One row of qtype.def per format. Dequantisation is exact to the bit with the
 * public definition of each format; quantisation writes the same bytes as
 * ggml where ggml's algorithm is deterministic.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_QUANT_H
#define BR_QUANT_H

#include "base/half.h"

typedef enum br_qtype { /* codes as in GGUF files, but of INSIDE */
#define Q(name, code, elems, bytes, flags) BR_Q_##name = code,
#include "model/qtype.def"
#undef Q
                        BR_Q_LIMIT = 64
} br_qtype;

enum {
    BR_QF_FLOAT = 1,
    BR_QF_INT = 2,
    BR_QF_QUANT = 4,
    BR_QF_ENC = 8,
    BR_QF_INSIDE = 16
};

typedef struct br_qinfo { /* name NULL: no such type */
    const char *name;
    uint32_t elems, bytes; /* of one block */
    uint32_t flags; /* FLOAT INT QUANT; ENC: we can quantise to it; INSIDE:
                              it is no format of files */
} br_qinfo;

const br_qinfo *br_qinfo_of(int type); /* never NULL */
int br_qtype_find(br_text name);       /* case-insensitive; -1: none */
/* Bytes of n elements; 0 with BR_E_FORMAT semantics when n is not a multiple
 * of the block or the product overflows: check ok. */
bool br_qtype_bytes(int type, uint64_t n, uint64_t *out);

/* n elements, a multiple of the block. src needs no alignment. */
void br_dequant(int type, const void *src, float *dst, size_t n);
/* One row of n; imatrix (n importances) may be NULL. False: type has no
 * encoder here. */
bool br_quant(int type, const float *src, void *dst, size_t n,
              const float *imatrix);

#endif

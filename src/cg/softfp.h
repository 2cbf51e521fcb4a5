/* softfp.h - floating point by integers: any format, any rounding, any machine.
 *
 * Kernels name a rounding and a treatment of subnormals in each instruction, in
 * six formats; the processor has some of that, and changes it by a mode. Here
 * every operation is exact first (128 bits and a sticky one) and rounded once.
 * Slow, 20 to 60 ns an operation, and the oracle for what is fast.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_SOFTFP_H
#define BR_SOFTFP_H

#include "base/base.h"

typedef enum br_sf_fmt {
    BR_SF_F16,
    BR_SF_BF16,
    BR_SF_F32,
    BR_SF_F64,
    BR_SF_TF32, /* in the bits of an f32 */
    BR_SF_E4M3, /* no infinity; 0x7f is the NaN */
    BR_SF_E5M2
} br_sf_fmt;

/* As in kmod.def; 0 means RN. */
typedef enum br_sf_round {
    BR_SF_RN = 1,
    BR_SF_RZ,
    BR_SF_RM,
    BR_SF_RP,
    BR_SF_RNA /* nearest, ties away from zero */
} br_sf_round;

/* fmt: of arguments and result. ftz: subnormals are zeros, in and out. A NaN
 * result is the one that NVIDIA's processors make. */
typedef struct br_sf {
    br_sf_fmt fmt;
    br_sf_round round;
    bool ftz;
} br_sf;

uint64_t br_sf_add(br_sf s, uint64_t a, uint64_t b);
uint64_t br_sf_mul(br_sf s, uint64_t a, uint64_t b);
uint64_t br_sf_fma(br_sf s, uint64_t a, uint64_t b, uint64_t c);
uint64_t br_sf_div(br_sf s, uint64_t a, uint64_t b);
uint64_t br_sf_sqrt(br_sf s, uint64_t a);
/* From s.fmt to another; finite: too large becomes the largest number. */
uint64_t br_sf_cvt(br_sf s, br_sf_fmt to, bool finite, uint64_t a);
uint64_t br_sf_rint(br_sf s, uint64_t a); /* to a whole number, same format */
/* To an integer of so many bits, saturating; a NaN becomes 0, or the top bit
 * alone where the integer has 64 bits or the format is F64. */
uint64_t br_sf_to_int(br_sf s, uint64_t a, unsigned bits, bool is_signed);
uint64_t br_sf_from_int(br_sf s, uint64_t v, bool is_signed);
/* -1 0 1, or 2 where one is a NaN. */
int br_sf_cmp(br_sf s, uint64_t a, uint64_t b);

bool br_sf_is_nan(br_sf_fmt f, uint64_t a);
bool br_sf_is_zero(br_sf s, uint64_t a);   /* with ftz a subnormal is */
uint64_t br_sf_flush(br_sf s, uint64_t a); /* a, or zero with its sign */
uint64_t br_sf_nan(br_sf_fmt f);
uint64_t br_sf_sign_bit(br_sf_fmt f);
uint64_t br_sf_one(br_sf_fmt f);

/* Functions that hardware only approximates, nearest to the true value up to
 * an error of 2^-50; of f32 and f16 formats. approx.c */
typedef enum br_sf_fn {
    BR_SF_EX2,
    BR_SF_LG2,
    BR_SF_SIN,
    BR_SF_COS,
    BR_SF_TANH,
    BR_SF_RSQRT
} br_sf_fn;
uint64_t br_sf_approx(br_sf s, br_sf_fn fn, uint64_t a);
/* The same bits for f32, sooner. */
uint32_t br_sf_approx_f32(br_sf_fn fn, bool ftz, uint32_t a);

#endif

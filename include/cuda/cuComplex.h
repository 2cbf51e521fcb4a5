/* cuComplex.h - complex numbers of C programs, as pairs.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CUCOMPLEX_H
#define BRASS_CUCOMPLEX_H
#define CU_COMPLEX_H_ /* as programs ask for it */
#include "brass_push.h"

#include <math.h>

#include "vector_functions.h"

typedef float2 cuFloatComplex;
typedef double2 cuDoubleComplex;
typedef cuFloatComplex cuComplex;

#define BRASS_CX static __host__ __device__ __forceinline__
/* C: the type; T: of its parts; F(name): a function's name with this type's
 * letters; M(name): of the maths of T. A quotient and a modulus are scaled, so
 * that no square overflows. */
#define BRASS_COMPLEX(C, T, make, F, M)                                 \
    BRASS_CX C make(T r, T i)                                           \
    {                                                                   \
        C z;                                                            \
        z.x = r;                                                        \
        z.y = i;                                                        \
        return z;                                                       \
    }                                                                   \
    BRASS_CX T F(real)(C z)                                             \
    {                                                                   \
        return z.x;                                                     \
    }                                                                   \
    BRASS_CX T F(imag)(C z)                                             \
    {                                                                   \
        return z.y;                                                     \
    }                                                                   \
    BRASS_CX C F(onj)(C z)                                              \
    {                                                                   \
        return make(z.x, -z.y);                                         \
    }                                                                   \
    BRASS_CX C F(add)(C a, C b)                                         \
    {                                                                   \
        return make(a.x + b.x, a.y + b.y);                              \
    }                                                                   \
    BRASS_CX C F(sub)(C a, C b)                                         \
    {                                                                   \
        return make(a.x - b.x, a.y - b.y);                              \
    }                                                                   \
    BRASS_CX C F(mul)(C a, C b)                                         \
    {                                                                   \
        return make(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);      \
    }                                                                   \
    BRASS_CX C F(fma)(C a, C b, C c)                                    \
    {                                                                   \
        return F(add)(F(mul)(a, b), c);                                 \
    }                                                                   \
    BRASS_CX T F(abs)(C z)                                              \
    {                                                                   \
        T a = M(fabs)(z.x), b = M(fabs)(z.y), big = a > b ? a : b;      \
        T small = a > b ? b : a, q;                                     \
                                                                        \
        if (big == 0 || big - big != 0) /* none, or infinite, or NaN */ \
            return a + b;                                               \
        q = small / big;                                                \
        return big * M(sqrt)(1 + q * q);                                \
    }                                                                   \
    BRASS_CX C F(div)(C a, C b)                                         \
    {                                                                   \
        T s = M(fabs)(b.x) + M(fabs)(b.y);                              \
        T br = b.x / s, bi = b.y / s, ar = a.x / s, ai = a.y / s;       \
        T d = br * br + bi * bi;                                        \
                                                                        \
        return make((ar * br + ai * bi) / d, (ai * br - ar * bi) / d);  \
    }
#define BRASS_CX_F(name) BRASS_CX_F_##name
#define BRASS_CX_D(name) BRASS_CX_D_##name
#define BRASS_CX_F_real  cuCrealf
#define BRASS_CX_F_imag  cuCimagf
#define BRASS_CX_F_onj   cuConjf
#define BRASS_CX_F_add   cuCaddf
#define BRASS_CX_F_sub   cuCsubf
#define BRASS_CX_F_mul   cuCmulf
#define BRASS_CX_F_fma   cuCfmaf
#define BRASS_CX_F_abs   cuCabsf
#define BRASS_CX_F_div   cuCdivf
#define BRASS_CX_D_real  cuCreal
#define BRASS_CX_D_imag  cuCimag
#define BRASS_CX_D_onj   cuConj
#define BRASS_CX_D_add   cuCadd
#define BRASS_CX_D_sub   cuCsub
#define BRASS_CX_D_mul   cuCmul
#define BRASS_CX_D_fma   cuCfma
#define BRASS_CX_D_abs   cuCabs
#define BRASS_CX_D_div   cuCdiv
#define BRASS_CX_MF(m)   m##f
#define BRASS_CX_MD(m)   m

BRASS_COMPLEX(cuFloatComplex, float, make_cuFloatComplex, BRASS_CX_F,
              BRASS_CX_MF)
BRASS_COMPLEX(cuDoubleComplex, double, make_cuDoubleComplex, BRASS_CX_D,
              BRASS_CX_MD)

BRASS_CX cuComplex
make_cuComplex(float r, float i)
{
    return make_cuFloatComplex(r, i);
}
BRASS_CX cuDoubleComplex
cuComplexFloatToDouble(cuFloatComplex z)
{
    return make_cuDoubleComplex(z.x, z.y);
}
BRASS_CX cuFloatComplex
cuComplexDoubleToFloat(cuDoubleComplex z)
{
    return make_cuFloatComplex((float)z.x, (float)z.y);
}

#include "brass_pop.h"
#endif

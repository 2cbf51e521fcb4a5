/* brass_dpx.h - the smaller or larger of sums and of three numbers, of 32 bits and
 * of two halves; relu: at least 0.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_DPX_H
#define BRASS_DPX_H

#define BR_HD static __host__ __device__ __forceinline__
template <class T>
BR_HD T
brass_larger(T a, T b)
{
    return a > b ? a : b;
}
template <class T>
BR_HD T
brass_smaller(T a, T b)
{
    return a < b ? a : b;
}
/* f of each half of three words, as numbers of type T. */
template <class T, class F>
BR_HD unsigned
brass_halves(unsigned a, unsigned b, unsigned c, F f)
{
    unsigned lo = (unsigned short)f((T)a, (T)b, (T)c);
    unsigned hi = (unsigned short)f((T)(a >> 16), (T)(b >> 16), (T)(c >> 16));

    return lo | hi << 16;
}

/* T: of a number; W: as it is passed, of 32 bits; H: of a half. */
#define BR_DPX3(name, s, W, H, expr)                                    \
    BR_HD W name##_##s##32(W a, W b, W c)                               \
    {                                                                   \
        typedef W T;                                                    \
        return expr;                                                    \
    }                                                                   \
    BR_HD unsigned name##_##s##16x2(unsigned x, unsigned y, unsigned z) \
    {                                                                   \
        return brass_halves<H>(x, y, z, [](H a, H b, H c) {             \
            typedef H T;                                                \
            return (H)(expr);                                           \
        });                                                             \
    }
#define BR_RELU(name, expr)                                                 \
    BR_HD int name##_s32_relu(int a, int b, int c)                          \
    {                                                                       \
        typedef int T;                                                      \
        return brass_larger<int>(expr, 0);                                  \
    }                                                                       \
    BR_HD unsigned name##_s16x2_relu(unsigned x, unsigned y, unsigned z)    \
    {                                                                       \
        return brass_halves<short>(x, y, z, [](short a, short b, short c) { \
            typedef short T;                                                \
            return brass_larger<short>((short)(expr), 0);                   \
        });                                                                 \
    }
#define BR_DPX(name, expr)                           \
    BR_DPX3(name, s, int, short, expr)               \
    BR_DPX3(name, u, unsigned, unsigned short, expr) \
    BR_RELU(name, expr)

BR_DPX(__viaddmax, brass_larger<T>((T)((unsigned)a + (unsigned)b), c))
BR_DPX(__viaddmin, brass_smaller<T>((T)((unsigned)a + (unsigned)b), c))
BR_DPX(__vimax3, brass_larger<T>(brass_larger<T>(a, b), c))
BR_DPX(__vimin3, brass_smaller<T>(brass_smaller<T>(a, b), c))
#undef BR_DPX
#undef BR_DPX3
#undef BR_RELU

BR_HD int
__vimax_s32_relu(int a, int b)
{
    return brass_larger(brass_larger(a, b), 0);
}
BR_HD int
__vimin_s32_relu(int a, int b)
{
    return brass_larger(brass_smaller(a, b), 0);
}
BR_HD unsigned
__vimax_s16x2_relu(unsigned a, unsigned b)
{
    return __vimax3_s16x2(a, b, 0);
}
BR_HD unsigned
__vimin_s16x2_relu(unsigned a, unsigned b)
{
    return __vimax3_s16x2(__vimin3_s16x2(a, b, b), 0, 0);
}

/* And which it was: whether a. */
#define BR_WHICH(s, T, H)                                               \
    BR_HD T __vibmax_##s##32(T a, T b, bool *pred)                      \
    {                                                                   \
        *pred = a >= b;                                                 \
        return *pred ? a : b;                                           \
    }                                                                   \
    BR_HD T __vibmin_##s##32(T a, T b, bool *pred)                      \
    {                                                                   \
        *pred = a <= b;                                                 \
        return *pred ? a : b;                                           \
    }                                                                   \
    BR_HD unsigned __vibmax_##s##16x2(unsigned a, unsigned b, bool *hi, \
                                      bool *lo)                         \
    {                                                                   \
        *hi = (H)(a >> 16) >= (H)(b >> 16);                             \
        *lo = (H)a >= (H)b;                                             \
        return __vimax3_##s##16x2(a, b, b);                             \
    }                                                                   \
    BR_HD unsigned __vibmin_##s##16x2(unsigned a, unsigned b, bool *hi, \
                                      bool *lo)                         \
    {                                                                   \
        *hi = (H)(a >> 16) <= (H)(b >> 16);                             \
        *lo = (H)a <= (H)b;                                             \
        return __vimin3_##s##16x2(a, b, b);                             \
    }
BR_WHICH(s, int, short)
BR_WHICH(u, unsigned, unsigned short)
#undef BR_WHICH
#undef BR_HD
#endif

/* brass_libdevice.h - the functions that clang's CUDA headers call.
 *
 * They are declared there as __nv_NAME; SDKs bring them as bitcode, and here
 * they are inline functions. Only what is used gets into the PTX. Left out are
 * the Bessel functions j and y.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_LIBDEVICE_H
#define BRASS_LIBDEVICE_H
#include "brass_math.h"

#define BR_NV __device__ inline __attribute__((always_inline))

/* f of each lane of two words, signs and zeros of its type. */
template <class T, class F>
BR_FN unsigned
br_lanes(unsigned a, unsigned b, F f)
{
    const int w = 8 * sizeof(T);
    unsigned r = 0;

    for (int k = 0; k < 32; k += w)
        r |= ((unsigned)f((int)(T)(a >> k), (int)(T)(b >> k)) &
              (0xffffffffu >> (32 - w)))
             << k;
    return r;
}
template <class T>
BR_FN unsigned
br_lane_sum(unsigned a, unsigned b)
{
    unsigned r = 0;

    for (int k = 0; k < 32; k += 8 * (int)sizeof(T)) {
        int d = (int)(T)(a >> k) - (int)(T)(b >> k);

        r += (unsigned)(d < 0 ? -d : d);
    }
    return r;
}

extern "C" {

/* ---- integers ---------------------------------------------------------- */

BR_NV int
__nv_abs(int a)
{
    return a < 0 ? -a : a;
}
BR_NV long long
__nv_llabs(long long a)
{
    return a < 0 ? -a : a;
}
BR_NV int
__nv_brev(int a)
{
    return (int)__builtin_bitreverse32((unsigned)a);
}
BR_NV long long
__nv_brevll(long long a)
{
    return (long long)__builtin_bitreverse64((unsigned long long)a);
}
BR_NV int
__nv_clz(int a)
{
    return a ? __builtin_clz((unsigned)a) : 32;
}
BR_NV int
__nv_clzll(long long a)
{
    return a ? __builtin_clzll((unsigned long long)a) : 64;
}
BR_NV int
__nv_popc(unsigned int a)
{
    return __builtin_popcount((unsigned)a);
}
BR_NV int
__nv_popcll(unsigned long long a)
{
    return __builtin_popcountll((unsigned long long)a);
}
BR_NV int
__nv_ffs(int a)
{
    return __builtin_ffs(a);
}
BR_NV int
__nv_ffsll(long long a)
{
    return __builtin_ffsll(a);
}
BR_NV int
__nv_byte_perm(int a, int b, int c)
{
    return (int)__nvvm_prmt((unsigned)a, (unsigned)b, (unsigned)c);
}
BR_NV int
__nv_mul24(int a, int b)
{
    return (a << 8 >> 8) * (b << 8 >> 8);
}
BR_NV unsigned int
__nv_umul24(unsigned int a, unsigned int b)
{
    return (a & 0xffffff) * (b & 0xffffff);
}
BR_NV int
__nv_mulhi(int a, int b)
{
    return (int)((long long)a * b >> 32);
}
BR_NV unsigned int
__nv_umulhi(unsigned int a, unsigned int b)
{
    return (unsigned)((unsigned long long)a * b >> 32);
}
BR_NV long long
__nv_mul64hi(long long a, long long b)
{
    return (long long)((__int128)a * b >> 64);
}
BR_NV unsigned long long
__nv_umul64hi(unsigned long long a, unsigned long long b)
{
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}
BR_NV int
__nv_hadd(int a, int b)
{
    return (int)(((long long)a + b) >> 1);
}
BR_NV int
__nv_rhadd(int a, int b)
{
    return (int)(((long long)a + b + 1) >> 1);
}
BR_NV int
__nv_uhadd(unsigned int a, unsigned int b)
{
    return (unsigned)(((unsigned long long)a + b) >> 1);
}
BR_NV unsigned int
__nv_urhadd(unsigned int a, unsigned int b)
{
    return (unsigned)(((unsigned long long)a + b + 1) >> 1);
}
BR_NV int
__nv_sad(int a, int b, int c)
{
    return (
        int)((a < b ? (unsigned)b - (unsigned)a : (unsigned)a - (unsigned)b) +
             (unsigned)c);
}
BR_NV unsigned int
__nv_usad(unsigned int a, unsigned int b, unsigned int c)
{
    return (a < b ? b - a : a - b) + c;
}
BR_NV int
__nv_max(int a, int b)
{
    return a > b ? a : b;
}
BR_NV int
__nv_min(int a, int b)
{
    return a < b ? a : b;
}
BR_NV unsigned int
__nv_umax(unsigned int a, unsigned int b)
{
    return a > b ? a : b;
}
BR_NV unsigned int
__nv_umin(unsigned int a, unsigned int b)
{
    return a < b ? a : b;
}
BR_NV long long
__nv_llmax(long long a, long long b)
{
    return a > b ? a : b;
}
BR_NV long long
__nv_llmin(long long a, long long b)
{
    return a < b ? a : b;
}
BR_NV unsigned long long
__nv_ullmax(unsigned long long a, unsigned long long b)
{
    return a > b ? a : b;
}
BR_NV unsigned long long
__nv_ullmin(unsigned long long a, unsigned long long b)
{
    return a < b ? a : b;
}

/* ---- bits of floats ---------------------------------------------------- */

BR_NV int
__nv_float_as_int(float a)
{
    return __builtin_bit_cast(int, a);
}
BR_NV unsigned int
__nv_float_as_uint(float a)
{
    return __builtin_bit_cast(unsigned, a);
}
BR_NV float
__nv_int_as_float(int a)
{
    return __builtin_bit_cast(float, a);
}
BR_NV float
__nv_uint_as_float(unsigned int a)
{
    return __builtin_bit_cast(float, a);
}
BR_NV unsigned long long
__nv_double_as_longlong(double a)
{
    return __builtin_bit_cast(long long, a);
}
BR_NV double
__nv_longlong_as_double(long long a)
{
    return __builtin_bit_cast(double, a);
}
BR_NV int
__nv_double2hiint(double a)
{
    return (int)(br_bits(a) >> 32);
}
BR_NV int
__nv_double2loint(double a)
{
    return (int)br_bits(a);
}
BR_NV double
__nv_hiloint2double(int a, int b)
{
    return br_from((unsigned long long)(unsigned)a << 32 | (unsigned)b);
}
BR_NV int
__nv_isnand(double a)
{
    return br_isnan(a);
}
BR_NV int
__nv_isnanf(float a)
{
    return (__builtin_bit_cast(unsigned, a) << 1) > 0xff000000u;
}
BR_NV int
__nv_isinfd(double a)
{
    return br_isinf(a);
}
BR_NV int
__nv_isinff(float a)
{
    return __builtin_fabsf(a) == __builtin_inff();
}
BR_NV int
__nv_isfinited(double a)
{
    return __builtin_fabs(a) < BR_INF;
}
BR_NV int
__nv_finitef(float a)
{
    return __builtin_fabsf(a) < __builtin_inff();
}
BR_NV int
__nv_signbitd(double a)
{
    return (int)(br_bits(a) >> 63);
}
BR_NV int
__nv_signbitf(float a)
{
    return __builtin_bit_cast(int, a) < 0;
}

/* ---- one operation, its rounding said ---------------------------------- */

BR_NV float
__nv_fadd_rn(float a, float b)
{
    return __nvvm_add_rn_f(a, b);
}
BR_NV float
__nv_fsub_rn(float a, float b)
{
    return __nvvm_add_rn_f(a, -b);
}
BR_NV float
__nv_fmul_rn(float a, float b)
{
    return __nvvm_mul_rn_f(a, b);
}
BR_NV float
__nv_fdiv_rn(float a, float b)
{
    return __nvvm_div_rn_f(a, b);
}
BR_NV float
__nv_frcp_rn(float a)
{
    return __nvvm_rcp_rn_f(a);
}
BR_NV float
__nv_fsqrt_rn(float a)
{
    return __nvvm_sqrt_rn_f(a);
}
BR_NV double
__nv_dadd_rn(double a, double b)
{
    return __nvvm_add_rn_d(a, b);
}
BR_NV double
__nv_dsub_rn(double a, double b)
{
    return __nvvm_add_rn_d(a, -b);
}
BR_NV double
__nv_dmul_rn(double a, double b)
{
    return __nvvm_mul_rn_d(a, b);
}
BR_NV double
__nv_ddiv_rn(double a, double b)
{
    return __nvvm_div_rn_d(a, b);
}
BR_NV double
__nv_drcp_rn(double a)
{
    return __nvvm_rcp_rn_d(a);
}
BR_NV double
__nv_dsqrt_rn(double a)
{
    return __nvvm_sqrt_rn_d(a);
}
BR_NV double
__nv_fma_rn(double a, double b, double c)
{
    return __nvvm_fma_rn_d(a, b, c);
}
BR_NV float
__nv_fmaf_rn(float a, float b, float c)
{
    return __nvvm_fma_rn_f(a, b, c);
}
BR_NV float
__nv_fmaf_ieee_rn(float a, float b, float c)
{
    return __nvvm_fma_rn_f(a, b, c);
}
BR_NV int
__nv_float2int_rn(float a)
{
    return (int)__nvvm_f2i_rn(a);
}
BR_NV unsigned int
__nv_float2uint_rn(float a)
{
    return (unsigned int)__nvvm_f2ui_rn(a);
}
BR_NV long long
__nv_float2ll_rn(float a)
{
    return (long long)__nvvm_f2ll_rn(a);
}
BR_NV unsigned long long
__nv_float2ull_rn(float a)
{
    return (unsigned long long)__nvvm_f2ull_rn(a);
}
BR_NV int
__nv_double2int_rn(double a)
{
    return (int)__nvvm_d2i_rn(a);
}
BR_NV unsigned int
__nv_double2uint_rn(double a)
{
    return (unsigned int)__nvvm_d2ui_rn(a);
}
BR_NV long long
__nv_double2ll_rn(double a)
{
    return (long long)__nvvm_d2ll_rn(a);
}
BR_NV unsigned long long
__nv_double2ull_rn(double a)
{
    return (unsigned long long)__nvvm_d2ull_rn(a);
}
BR_NV float
__nv_int2float_rn(int a)
{
    return __nvvm_i2f_rn(a);
}
BR_NV double
__nv_int2double_rn(int a)
{
    return __nvvm_i2d_rn(a);
}
BR_NV float
__nv_uint2float_rn(unsigned int a)
{
    return __nvvm_ui2f_rn(a);
}
BR_NV double
__nv_uint2double_rn(unsigned int a)
{
    return __nvvm_ui2d_rn(a);
}
BR_NV float
__nv_ll2float_rn(long long a)
{
    return __nvvm_ll2f_rn(a);
}
BR_NV double
__nv_ll2double_rn(long long a)
{
    return __nvvm_ll2d_rn(a);
}
BR_NV float
__nv_ull2float_rn(unsigned long long a)
{
    return __nvvm_ull2f_rn(a);
}
BR_NV double
__nv_ull2double_rn(unsigned long long a)
{
    return __nvvm_ull2d_rn(a);
}
BR_NV float
__nv_double2float_rn(double a)
{
    return __nvvm_d2f_rn(a);
}
BR_NV float
__nv_fadd_rz(float a, float b)
{
    return __nvvm_add_rz_f(a, b);
}
BR_NV float
__nv_fsub_rz(float a, float b)
{
    return __nvvm_add_rz_f(a, -b);
}
BR_NV float
__nv_fmul_rz(float a, float b)
{
    return __nvvm_mul_rz_f(a, b);
}
BR_NV float
__nv_fdiv_rz(float a, float b)
{
    return __nvvm_div_rz_f(a, b);
}
BR_NV float
__nv_frcp_rz(float a)
{
    return __nvvm_rcp_rz_f(a);
}
BR_NV float
__nv_fsqrt_rz(float a)
{
    return __nvvm_sqrt_rz_f(a);
}
BR_NV double
__nv_dadd_rz(double a, double b)
{
    return __nvvm_add_rz_d(a, b);
}
BR_NV double
__nv_dsub_rz(double a, double b)
{
    return __nvvm_add_rz_d(a, -b);
}
BR_NV double
__nv_dmul_rz(double a, double b)
{
    return __nvvm_mul_rz_d(a, b);
}
BR_NV double
__nv_ddiv_rz(double a, double b)
{
    return __nvvm_div_rz_d(a, b);
}
BR_NV double
__nv_drcp_rz(double a)
{
    return __nvvm_rcp_rz_d(a);
}
BR_NV double
__nv_dsqrt_rz(double a)
{
    return __nvvm_sqrt_rz_d(a);
}
BR_NV double
__nv_fma_rz(double a, double b, double c)
{
    return __nvvm_fma_rz_d(a, b, c);
}
BR_NV float
__nv_fmaf_rz(float a, float b, float c)
{
    return __nvvm_fma_rz_f(a, b, c);
}
BR_NV float
__nv_fmaf_ieee_rz(float a, float b, float c)
{
    return __nvvm_fma_rz_f(a, b, c);
}
BR_NV int
__nv_float2int_rz(float a)
{
    return (int)__nvvm_f2i_rz(a);
}
BR_NV unsigned int
__nv_float2uint_rz(float a)
{
    return (unsigned int)__nvvm_f2ui_rz(a);
}
BR_NV long long
__nv_float2ll_rz(float a)
{
    return (long long)__nvvm_f2ll_rz(a);
}
BR_NV unsigned long long
__nv_float2ull_rz(float a)
{
    return (unsigned long long)__nvvm_f2ull_rz(a);
}
BR_NV int
__nv_double2int_rz(double a)
{
    return (int)__nvvm_d2i_rz(a);
}
BR_NV unsigned int
__nv_double2uint_rz(double a)
{
    return (unsigned int)__nvvm_d2ui_rz(a);
}
BR_NV long long
__nv_double2ll_rz(double a)
{
    return (long long)__nvvm_d2ll_rz(a);
}
BR_NV unsigned long long
__nv_double2ull_rz(double a)
{
    return (unsigned long long)__nvvm_d2ull_rz(a);
}
BR_NV float
__nv_int2float_rz(int a)
{
    return __nvvm_i2f_rz(a);
}
BR_NV float
__nv_uint2float_rz(unsigned int a)
{
    return __nvvm_ui2f_rz(a);
}
BR_NV float
__nv_ll2float_rz(long long a)
{
    return __nvvm_ll2f_rz(a);
}
BR_NV double
__nv_ll2double_rz(long long a)
{
    return __nvvm_ll2d_rz(a);
}
BR_NV float
__nv_ull2float_rz(unsigned long long a)
{
    return __nvvm_ull2f_rz(a);
}
BR_NV double
__nv_ull2double_rz(unsigned long long a)
{
    return __nvvm_ull2d_rz(a);
}
BR_NV float
__nv_double2float_rz(double a)
{
    return __nvvm_d2f_rz(a);
}
BR_NV float
__nv_fadd_rd(float a, float b)
{
    return __nvvm_add_rm_f(a, b);
}
BR_NV float
__nv_fsub_rd(float a, float b)
{
    return __nvvm_add_rm_f(a, -b);
}
BR_NV float
__nv_fmul_rd(float a, float b)
{
    return __nvvm_mul_rm_f(a, b);
}
BR_NV float
__nv_fdiv_rd(float a, float b)
{
    return __nvvm_div_rm_f(a, b);
}
BR_NV float
__nv_frcp_rd(float a)
{
    return __nvvm_rcp_rm_f(a);
}
BR_NV float
__nv_fsqrt_rd(float a)
{
    return __nvvm_sqrt_rm_f(a);
}
BR_NV double
__nv_dadd_rd(double a, double b)
{
    return __nvvm_add_rm_d(a, b);
}
BR_NV double
__nv_dsub_rd(double a, double b)
{
    return __nvvm_add_rm_d(a, -b);
}
BR_NV double
__nv_dmul_rd(double a, double b)
{
    return __nvvm_mul_rm_d(a, b);
}
BR_NV double
__nv_ddiv_rd(double a, double b)
{
    return __nvvm_div_rm_d(a, b);
}
BR_NV double
__nv_drcp_rd(double a)
{
    return __nvvm_rcp_rm_d(a);
}
BR_NV double
__nv_dsqrt_rd(double a)
{
    return __nvvm_sqrt_rm_d(a);
}
BR_NV double
__nv_fma_rd(double a, double b, double c)
{
    return __nvvm_fma_rm_d(a, b, c);
}
BR_NV float
__nv_fmaf_rd(float a, float b, float c)
{
    return __nvvm_fma_rm_f(a, b, c);
}
BR_NV float
__nv_fmaf_ieee_rd(float a, float b, float c)
{
    return __nvvm_fma_rm_f(a, b, c);
}
BR_NV int
__nv_float2int_rd(float a)
{
    return (int)__nvvm_f2i_rm(a);
}
BR_NV unsigned int
__nv_float2uint_rd(float a)
{
    return (unsigned int)__nvvm_f2ui_rm(a);
}
BR_NV long long
__nv_float2ll_rd(float a)
{
    return (long long)__nvvm_f2ll_rm(a);
}
BR_NV unsigned long long
__nv_float2ull_rd(float a)
{
    return (unsigned long long)__nvvm_f2ull_rm(a);
}
BR_NV int
__nv_double2int_rd(double a)
{
    return (int)__nvvm_d2i_rm(a);
}
BR_NV unsigned int
__nv_double2uint_rd(double a)
{
    return (unsigned int)__nvvm_d2ui_rm(a);
}
BR_NV long long
__nv_double2ll_rd(double a)
{
    return (long long)__nvvm_d2ll_rm(a);
}
BR_NV unsigned long long
__nv_double2ull_rd(double a)
{
    return (unsigned long long)__nvvm_d2ull_rm(a);
}
BR_NV float
__nv_int2float_rd(int a)
{
    return __nvvm_i2f_rm(a);
}
BR_NV float
__nv_uint2float_rd(unsigned int a)
{
    return __nvvm_ui2f_rm(a);
}
BR_NV float
__nv_ll2float_rd(long long a)
{
    return __nvvm_ll2f_rm(a);
}
BR_NV double
__nv_ll2double_rd(long long a)
{
    return __nvvm_ll2d_rm(a);
}
BR_NV float
__nv_ull2float_rd(unsigned long long a)
{
    return __nvvm_ull2f_rm(a);
}
BR_NV double
__nv_ull2double_rd(unsigned long long a)
{
    return __nvvm_ull2d_rm(a);
}
BR_NV float
__nv_double2float_rd(double a)
{
    return __nvvm_d2f_rm(a);
}
BR_NV float
__nv_fadd_ru(float a, float b)
{
    return __nvvm_add_rp_f(a, b);
}
BR_NV float
__nv_fsub_ru(float a, float b)
{
    return __nvvm_add_rp_f(a, -b);
}
BR_NV float
__nv_fmul_ru(float a, float b)
{
    return __nvvm_mul_rp_f(a, b);
}
BR_NV float
__nv_fdiv_ru(float a, float b)
{
    return __nvvm_div_rp_f(a, b);
}
BR_NV float
__nv_frcp_ru(float a)
{
    return __nvvm_rcp_rp_f(a);
}
BR_NV float
__nv_fsqrt_ru(float a)
{
    return __nvvm_sqrt_rp_f(a);
}
BR_NV double
__nv_dadd_ru(double a, double b)
{
    return __nvvm_add_rp_d(a, b);
}
BR_NV double
__nv_dsub_ru(double a, double b)
{
    return __nvvm_add_rp_d(a, -b);
}
BR_NV double
__nv_dmul_ru(double a, double b)
{
    return __nvvm_mul_rp_d(a, b);
}
BR_NV double
__nv_ddiv_ru(double a, double b)
{
    return __nvvm_div_rp_d(a, b);
}
BR_NV double
__nv_drcp_ru(double a)
{
    return __nvvm_rcp_rp_d(a);
}
BR_NV double
__nv_dsqrt_ru(double a)
{
    return __nvvm_sqrt_rp_d(a);
}
BR_NV double
__nv_fma_ru(double a, double b, double c)
{
    return __nvvm_fma_rp_d(a, b, c);
}
BR_NV float
__nv_fmaf_ru(float a, float b, float c)
{
    return __nvvm_fma_rp_f(a, b, c);
}
BR_NV float
__nv_fmaf_ieee_ru(float a, float b, float c)
{
    return __nvvm_fma_rp_f(a, b, c);
}
BR_NV int
__nv_float2int_ru(float a)
{
    return (int)__nvvm_f2i_rp(a);
}
BR_NV unsigned int
__nv_float2uint_ru(float a)
{
    return (unsigned int)__nvvm_f2ui_rp(a);
}
BR_NV long long
__nv_float2ll_ru(float a)
{
    return (long long)__nvvm_f2ll_rp(a);
}
BR_NV unsigned long long
__nv_float2ull_ru(float a)
{
    return (unsigned long long)__nvvm_f2ull_rp(a);
}
BR_NV int
__nv_double2int_ru(double a)
{
    return (int)__nvvm_d2i_rp(a);
}
BR_NV unsigned int
__nv_double2uint_ru(double a)
{
    return (unsigned int)__nvvm_d2ui_rp(a);
}
BR_NV long long
__nv_double2ll_ru(double a)
{
    return (long long)__nvvm_d2ll_rp(a);
}
BR_NV unsigned long long
__nv_double2ull_ru(double a)
{
    return (unsigned long long)__nvvm_d2ull_rp(a);
}
BR_NV float
__nv_int2float_ru(int a)
{
    return __nvvm_i2f_rp(a);
}
BR_NV float
__nv_uint2float_ru(unsigned int a)
{
    return __nvvm_ui2f_rp(a);
}
BR_NV float
__nv_ll2float_ru(long long a)
{
    return __nvvm_ll2f_rp(a);
}
BR_NV double
__nv_ll2double_ru(long long a)
{
    return __nvvm_ll2d_rp(a);
}
BR_NV float
__nv_ull2float_ru(unsigned long long a)
{
    return __nvvm_ull2f_rp(a);
}
BR_NV double
__nv_ull2double_ru(unsigned long long a)
{
    return __nvvm_ull2d_rp(a);
}
BR_NV float
__nv_double2float_ru(double a)
{
    return __nvvm_d2f_rp(a);
}
BR_NV float
__nv_frsqrt_rn(float a)
{
    return (float)(1 / __nvvm_sqrt_rn_d(a));
}

/* ---- fast ones --------------------------------------------------------- */

BR_NV float
__nv_fast_cosf(float a)
{
    return __nvvm_cos_approx_f(a);
}
BR_NV float
__nv_fast_sinf(float a)
{
    return __nvvm_sin_approx_f(a);
}
BR_NV float
__nv_fast_tanf(float a)
{
    return __nvvm_div_approx_f(__nvvm_sin_approx_f(a), __nvvm_cos_approx_f(a));
}
BR_NV float
__nv_fast_expf(float a)
{
    return __nvvm_ex2_approx_f(a * 1.44269504f);
}
BR_NV float
__nv_fast_exp10f(float a)
{
    return __nvvm_ex2_approx_f(a * 3.32192809f);
}
BR_NV float
__nv_fast_log2f(float a)
{
    return __nvvm_lg2_approx_f(a);
}
BR_NV float
__nv_fast_logf(float a)
{
    return __nvvm_lg2_approx_f(a) * 0.693147181f;
}
BR_NV float
__nv_fast_log10f(float a)
{
    return __nvvm_lg2_approx_f(a) * 0.301029996f;
}
BR_NV float
__nv_fast_powf(float a, float b)
{
    return __nvvm_ex2_approx_f(b * __nvvm_lg2_approx_f(a));
}
BR_NV float
__nv_fast_fdividef(float a, float b)
{
    return __nvvm_div_approx_f(a, b);
}
BR_NV void
__nv_fast_sincosf(float a, float *b, float *c)
{
    *b = __nvvm_sin_approx_f(a);
    *c = __nvvm_cos_approx_f(a);
}
BR_NV float
__nv_saturatef(float a)
{
    return __nvvm_saturate_f(a);
}

/* ---- floats and doubles ------------------------------------------------ */

BR_NV double
__nv_fabs(double a)
{
    return __builtin_fabs(a);
}
BR_NV float
__nv_fabsf(float a)
{
    return __builtin_fabsf(a);
}
BR_NV double
__nv_ceil(double a)
{
    return __builtin_ceil(a);
}
BR_NV float
__nv_ceilf(float a)
{
    return __builtin_ceilf(a);
}
BR_NV double
__nv_floor(double a)
{
    return __builtin_floor(a);
}
BR_NV float
__nv_floorf(float a)
{
    return __builtin_floorf(a);
}
BR_NV double
__nv_trunc(double a)
{
    return __builtin_trunc(a);
}
BR_NV float
__nv_truncf(float a)
{
    return __builtin_truncf(a);
}
BR_NV double
__nv_rint(double a)
{
    return __builtin_rint(a);
}
BR_NV float
__nv_rintf(float a)
{
    return __builtin_rintf(a);
}
BR_NV double
__nv_nearbyint(double a)
{
    return __builtin_rint(a);
}
BR_NV float
__nv_nearbyintf(float a)
{
    return __builtin_rintf(a);
}
BR_NV double
__nv_fmax(double a, double b)
{
    return __builtin_fmax(a, b);
}
BR_NV float
__nv_fmaxf(float a, float b)
{
    return __builtin_fmaxf(a, b);
}
BR_NV double
__nv_fmin(double a, double b)
{
    return __builtin_fmin(a, b);
}
BR_NV float
__nv_fminf(float a, float b)
{
    return __builtin_fminf(a, b);
}
BR_NV double
__nv_copysign(double a, double b)
{
    return __builtin_copysign(a, b);
}
BR_NV float
__nv_copysignf(float a, float b)
{
    return __builtin_copysignf(a, b);
}
BR_NV double
__nv_sqrt(double a)
{
    return __nvvm_sqrt_rn_d(a);
}
BR_NV float
__nv_sqrtf(float a)
{
    return __nvvm_sqrt_rn_f(a);
}
BR_NV double
__nv_fma(double a, double b, double c)
{
    return __nvvm_fma_rn_d(a, b, c);
}
BR_NV float
__nv_fmaf(float a, float b, float c)
{
    return __nvvm_fma_rn_f(a, b, c);
}
BR_NV float
__nv_rsqrtf(float a)
{
    return __nvvm_rsqrt_approx_f(a);
}
BR_NV double
__nv_rsqrt(double a)
{
    return 1 / __nvvm_sqrt_rn_d(a);
}
BR_NV double
__nv_exp(double a)
{
    return br_exp(a);
}
BR_NV float
__nv_expf(float a)
{
    return (float)(br_exp(a));
}
BR_NV double
__nv_exp2(double a)
{
    return br_exp2(a);
}
BR_NV float
__nv_exp2f(float a)
{
    return (float)(br_exp2(a));
}
BR_NV double
__nv_exp10(double a)
{
    return br_exp10(a);
}
BR_NV float
__nv_exp10f(float a)
{
    return (float)(br_exp10(a));
}
BR_NV double
__nv_expm1(double a)
{
    return br_expm1(a);
}
BR_NV float
__nv_expm1f(float a)
{
    return (float)(br_expm1(a));
}
BR_NV double
__nv_log(double a)
{
    return br_log(a);
}
BR_NV float
__nv_logf(float a)
{
    return (float)(br_log(a));
}
BR_NV double
__nv_log2(double a)
{
    return br_log2(a);
}
BR_NV float
__nv_log2f(float a)
{
    return (float)(br_log2(a));
}
BR_NV double
__nv_log10(double a)
{
    return br_log10(a);
}
BR_NV float
__nv_log10f(float a)
{
    return (float)(br_log10(a));
}
BR_NV double
__nv_log1p(double a)
{
    return br_log1p(a);
}
BR_NV float
__nv_log1pf(float a)
{
    return (float)(br_log1p(a));
}
BR_NV double
__nv_sinh(double a)
{
    return br_sinh(a);
}
BR_NV float
__nv_sinhf(float a)
{
    return (float)(br_sinh(a));
}
BR_NV double
__nv_cosh(double a)
{
    return br_cosh(a);
}
BR_NV float
__nv_coshf(float a)
{
    return (float)(br_cosh(a));
}
BR_NV double
__nv_tanh(double a)
{
    return br_tanh(a);
}
BR_NV float
__nv_tanhf(float a)
{
    return (float)(br_tanh(a));
}
BR_NV double
__nv_asin(double a)
{
    return br_asin(a);
}
BR_NV float
__nv_asinf(float a)
{
    return (float)(br_asin(a));
}
BR_NV double
__nv_acos(double a)
{
    return br_acos(a);
}
BR_NV float
__nv_acosf(float a)
{
    return (float)(br_acos(a));
}
BR_NV double
__nv_atan(double a)
{
    return br_atan(a);
}
BR_NV float
__nv_atanf(float a)
{
    return (float)(br_atan(a));
}
BR_NV double
__nv_asinh(double a)
{
    return br_asinh(a);
}
BR_NV float
__nv_asinhf(float a)
{
    return (float)(br_asinh(a));
}
BR_NV double
__nv_acosh(double a)
{
    return br_acosh(a);
}
BR_NV float
__nv_acoshf(float a)
{
    return (float)(br_acosh(a));
}
BR_NV double
__nv_atanh(double a)
{
    return br_atanh(a);
}
BR_NV float
__nv_atanhf(float a)
{
    return (float)(br_atanh(a));
}
BR_NV double
__nv_sin(double a)
{
    return br_sin(a);
}
BR_NV float
__nv_sinf(float a)
{
    return (float)(br_sin(a));
}
BR_NV double
__nv_cos(double a)
{
    return br_cos(a);
}
BR_NV float
__nv_cosf(float a)
{
    return (float)(br_cos(a));
}
BR_NV double
__nv_tan(double a)
{
    return br_tan(a);
}
BR_NV float
__nv_tanf(float a)
{
    return (float)(br_tan(a));
}
BR_NV double
__nv_sinpi(double a)
{
    return br_sinpi(a);
}
BR_NV float
__nv_sinpif(float a)
{
    return (float)(br_sinpi(a));
}
BR_NV double
__nv_cospi(double a)
{
    return br_cospi(a);
}
BR_NV float
__nv_cospif(float a)
{
    return (float)(br_cospi(a));
}
BR_NV double
__nv_cbrt(double a)
{
    return br_cbrt(a);
}
BR_NV float
__nv_cbrtf(float a)
{
    return (float)(br_cbrt(a));
}
BR_NV double
__nv_erf(double a)
{
    return br_erf(a);
}
BR_NV float
__nv_erff(float a)
{
    return (float)(br_erf(a));
}
BR_NV double
__nv_erfc(double a)
{
    return br_erfc(a);
}
BR_NV float
__nv_erfcf(float a)
{
    return (float)(br_erfc(a));
}
BR_NV double
__nv_erfcx(double a)
{
    return br_erfcx(a);
}
BR_NV float
__nv_erfcxf(float a)
{
    return (float)(br_erfcx(a));
}
BR_NV double
__nv_erfinv(double a)
{
    return br_erfinv(a);
}
BR_NV float
__nv_erfinvf(float a)
{
    return (float)(br_erfinv(a));
}
BR_NV double
__nv_erfcinv(double a)
{
    return br_erfcinv(a);
}
BR_NV float
__nv_erfcinvf(float a)
{
    return (float)(br_erfcinv(a));
}
BR_NV double
__nv_tgamma(double a)
{
    return br_tgamma(a);
}
BR_NV float
__nv_tgammaf(float a)
{
    return (float)(br_tgamma(a));
}
BR_NV double
__nv_lgamma(double a)
{
    return br_lgamma(a);
}
BR_NV float
__nv_lgammaf(float a)
{
    return (float)(br_lgamma(a));
}
BR_NV double
__nv_pow(double a, double b)
{
    return br_pow(a, b);
}
BR_NV float
__nv_powf(float a, float b)
{
    return (float)(br_pow(a, b));
}
BR_NV double
__nv_atan2(double a, double b)
{
    return br_atan2(a, b);
}
BR_NV float
__nv_atan2f(float a, float b)
{
    return (float)(br_atan2(a, b));
}
BR_NV double
__nv_fmod(double a, double b)
{
    return br_fmod(a, b);
}
BR_NV float
__nv_fmodf(float a, float b)
{
    return (float)(br_fmod(a, b));
}
BR_NV double
__nv_hypot(double a, double b)
{
    return br_hypot(a, b);
}
BR_NV float
__nv_hypotf(float a, float b)
{
    return (float)(br_hypot(a, b));
}
BR_NV double
__nv_powi(double a, int b)
{
    return br_powi(a, b);
}
BR_NV float
__nv_powif(float a, int b)
{
    return (float)(br_powi(a, b));
}
BR_NV double
__nv_round(double a)
{
    return br_round(a);
}
BR_NV float
__nv_roundf(float a)
{
    return (float)(br_round(a));
}
BR_NV double
__nv_rcbrt(double a)
{
    return 1 / br_cbrt(a);
}
BR_NV float
__nv_rcbrtf(float a)
{
    return (float)(1 / br_cbrt(a));
}
BR_NV double
__nv_rhypot(double a, double b)
{
    return 1 / br_hypot(a, b);
}
BR_NV float
__nv_rhypotf(float a, float b)
{
    return (float)(1 / br_hypot(a, b));
}
BR_NV double
__nv_normcdf(double a)
{
    return br_erfc(a * -0.70710678118654752) / 2;
}
BR_NV float
__nv_normcdff(float a)
{
    return (float)(br_erfc(a * -0.70710678118654752) / 2);
}
BR_NV double
__nv_normcdfinv(double a)
{
    return -1.4142135623730951 * br_erfcinv(2 * (double)a);
}
BR_NV float
__nv_normcdfinvf(float a)
{
    return (float)(-1.4142135623730951 * br_erfcinv(2 * (double)a));
}
BR_NV double
__nv_fdim(double a, double b)
{
    return a > b ? a - b : a == a && b == b ? 0 : a + b;
}
BR_NV float
__nv_fdimf(float a, float b)
{
    return a > b ? a - b : a == a && b == b ? 0 : a + b;
}
BR_NV double
__nv_ldexp(double a, int b)
{
    return br_ldexp(a, b);
}
BR_NV float
__nv_ldexpf(float a, int b)
{
    return (float)(br_ldexp(a, b));
}
BR_NV double
__nv_scalbn(double a, int b)
{
    return br_ldexp(a, b);
}
BR_NV float
__nv_scalbnf(float a, int b)
{
    return (float)(br_ldexp(a, b));
}
BR_NV void
__nv_sincos(double a, double *b, double *c)
{
    double s, t;
    br_sincos(a, &s, &t);
    *b = (double)s;
    *c = (double)t;
}
BR_NV void
__nv_sincospi(double a, double *b, double *c)
{
    double s, t;
    br_sincospi(a, &s, &t);
    *b = (double)s;
    *c = (double)t;
}
BR_NV double
__nv_frexp(double a, int *b)
{
    return (double)br_frexp(a, b);
}
BR_NV double
__nv_modf(double a, double *b)
{
    double t = __builtin_trunc(a);
    *b = t;
    return __builtin_copysign(a == t ? 0 : a - t, a);
}
BR_NV double
__nv_remquo(double a, double b, int *c)
{
    return (double)br_remquo(a, b, c);
}
BR_NV double
__nv_remainder(double a, double b)
{
    int q;
    return (double)br_remquo(a, b, &q);
}
BR_NV int
__nv_ilogb(double a)
{
    int e;
    if (a == 0 || a != a)
        return -2147483647 - 1;
    if (__builtin_fabs(a) == BR_INF)
        return 2147483647;
    br_frexp(a, &e);
    return e - 1;
}
BR_NV double
__nv_logb(double a)
{
    int e;
    if (a == 0)
        return (double)-BR_INF;
    if (!(__builtin_fabs(a) < BR_INF))
        return a * a;
    br_frexp(a, &e);
    return e - 1;
}
BR_NV long long
__nv_llrint(double a)
{
    return (long long)__builtin_rint(a);
}
BR_NV long long
__nv_llround(double a)
{
    return (long long)br_round(a);
}
BR_NV double
__nv_norm3d(double a, double b, double c)
{
    double v[3] = {a, b, c};
    return (double)br_norm(v, 3);
}
BR_NV double
__nv_norm4d(double a, double b, double c, double d)
{
    double v[4] = {a, b, c, d};
    return (double)br_norm(v, 4);
}
BR_NV double
__nv_rnorm3d(double a, double b, double c)
{
    double v[3] = {a, b, c};
    return (double)(1 / br_norm(v, 3));
}
BR_NV double
__nv_rnorm4d(double a, double b, double c, double d)
{
    double v[4] = {a, b, c, d};
    return (double)(1 / br_norm(v, 4));
}
BR_NV double
__nv_cyl_bessel_i0(double a)
{
    return (double)br_bessel_i(a, 1, 0);
}
BR_NV double
__nv_cyl_bessel_i1(double a)
{
    return (double)br_bessel_i(a, (double)a / 2, 1);
}
BR_NV void
__nv_sincosf(float a, float *b, float *c)
{
    double s, t;
    br_sincos(a, &s, &t);
    *b = (float)s;
    *c = (float)t;
}
BR_NV void
__nv_sincospif(float a, float *b, float *c)
{
    double s, t;
    br_sincospi(a, &s, &t);
    *b = (float)s;
    *c = (float)t;
}
BR_NV float
__nv_frexpf(float a, int *b)
{
    return (float)br_frexp(a, b);
}
BR_NV float
__nv_modff(float a, float *b)
{
    float t = __builtin_truncf(a);
    *b = t;
    return __builtin_copysignf(a == t ? 0 : a - t, a);
}
BR_NV float
__nv_remquof(float a, float b, int *c)
{
    return (float)br_remquo(a, b, c);
}
BR_NV float
__nv_remainderf(float a, float b)
{
    int q;
    return (float)br_remquo(a, b, &q);
}
BR_NV int
__nv_ilogbf(float a)
{
    int e;
    if (a == 0 || a != a)
        return -2147483647 - 1;
    if (__builtin_fabs(a) == BR_INF)
        return 2147483647;
    br_frexp(a, &e);
    return e - 1;
}
BR_NV float
__nv_logbf(float a)
{
    int e;
    if (a == 0)
        return (float)-BR_INF;
    if (!(__builtin_fabs(a) < BR_INF))
        return a * a;
    br_frexp(a, &e);
    return e - 1;
}
BR_NV long long
__nv_llrintf(float a)
{
    return (long long)__builtin_rintf(a);
}
BR_NV long long
__nv_llroundf(float a)
{
    return (long long)br_round(a);
}
BR_NV float
__nv_norm3df(float a, float b, float c)
{
    double v[3] = {a, b, c};
    return (float)br_norm(v, 3);
}
BR_NV float
__nv_norm4df(float a, float b, float c, float d)
{
    double v[4] = {a, b, c, d};
    return (float)br_norm(v, 4);
}
BR_NV float
__nv_rnorm3df(float a, float b, float c)
{
    double v[3] = {a, b, c};
    return (float)(1 / br_norm(v, 3));
}
BR_NV float
__nv_rnorm4df(float a, float b, float c, float d)
{
    double v[4] = {a, b, c, d};
    return (float)(1 / br_norm(v, 4));
}
BR_NV float
__nv_cyl_bessel_i0f(float a)
{
    return (float)br_bessel_i(a, 1, 0);
}
BR_NV float
__nv_cyl_bessel_i1f(float a)
{
    return (float)br_bessel_i(a, (double)a / 2, 1);
}
BR_NV double
__nv_nextafter(double a, double b)
{
    return br_nextafter(a, b);
}
BR_NV float
__nv_nextafterf(float a, float b)
{
    unsigned u = __builtin_bit_cast(unsigned, a);
    if (a != a || b != b)
        return a + b;
    if (a == b)
        return b;
    if (a == 0)
        return __builtin_copysignf(0x1p-149f, b);
    return __builtin_bit_cast(float, (a < b) == (a > 0) ? u + 1 : u - 1);
}
BR_NV double
__nv_norm(int a, const double *b)
{
    double s = 0;
    for (int k = 0; k < a; k++)
        s = br_hypot(s, b[k]);
    return s;
}
BR_NV float
__nv_normf(int a, const float *b)
{
    double s = 0;
    for (int k = 0; k < a; k++)
        s += (double)b[k] * b[k];
    return (float)__nvvm_sqrt_rn_d(s);
}
BR_NV double
__nv_rnorm(int a, const double *b)
{
    double s = 0;
    for (int k = 0; k < a; k++)
        s = br_hypot(s, b[k]);
    return 1 / s;
}
BR_NV float
__nv_rnormf(int a, const float *b)
{
    double s = 0;
    for (int k = 0; k < a; k++)
        s += (double)b[k] * b[k];
    return (float)(1 / __nvvm_sqrt_rn_d(s));
}

/* ---- two halves, four bytes -------------------------------------------- */

BR_NV int
__nv_vadd2(int a, int b)
{
    return (int)br_lanes<unsigned short>((unsigned)a, (unsigned)b,
                                         [](int x, int y) { return x + y; });
}
BR_NV int
__nv_vsub2(int a, int b)
{
    return (int)br_lanes<unsigned short>((unsigned)a, (unsigned)b,
                                         [](int x, int y) { return x - y; });
}
BR_NV int
__nv_vneg2(int a)
{
    return (int)br_lanes<unsigned short>((unsigned)a, 0u,
                                         [](int x, int y) { return -x; });
}
BR_NV int
__nv_vabs2(int a)
{
    return (int)br_lanes<short>((unsigned)a, 0u,
                                [](int x, int y) { return x < 0 ? -x : x; });
}
BR_NV int
__nv_vabsss2(int a)
{
    return (int)br_lanes<short>((unsigned)a, 0u, [](int x, int y) {
        return x < 0 ? (x == -32768 ? 32767 : -x) : x;
    });
}
BR_NV int
__nv_vnegss2(int a)
{
    return (int)br_lanes<short>(
        (unsigned)a, 0u, [](int x, int y) { return x == -32768 ? 32767 : -x; });
}
BR_NV int
__nv_vaddss2(int a, int b)
{
    return (int)br_lanes<short>((unsigned)a, (unsigned)b, [](int x, int y) {
        return x + y > 32767 ? 32767 : x + y < -32768 ? -32768 : x + y;
    });
}
BR_NV int
__nv_vsubss2(int a, int b)
{
    return (int)br_lanes<short>((unsigned)a, (unsigned)b, [](int x, int y) {
        return x - y > 32767 ? 32767 : x - y < -32768 ? -32768 : x - y;
    });
}
BR_NV int
__nv_vaddus2(int a, int b)
{
    return (int)br_lanes<unsigned short>(
        (unsigned)a, (unsigned)b,
        [](int x, int y) { return x + y > 65535 ? 65535 : x + y; });
}
BR_NV int
__nv_vsubus2(int a, int b)
{
    return (int)br_lanes<unsigned short>(
        (unsigned)a, (unsigned)b,
        [](int x, int y) { return x < y ? 0 : x - y; });
}
BR_NV int
__nv_vavgs2(int a, int b)
{
    return (int)br_lanes<short>((unsigned)a, (unsigned)b, [](int x, int y) {
        return (x + y + (x + y >= 0)) >> 1;
    });
}
BR_NV int
__nv_vavgu2(int a, int b)
{
    return (int)br_lanes<unsigned short>(
        (unsigned)a, (unsigned)b,
        [](int x, int y) { return (x + y + 1) >> 1; });
}
BR_NV int
__nv_vhaddu2(int a, int b)
{
    return (int)br_lanes<unsigned short>(
        (unsigned)a, (unsigned)b, [](int x, int y) { return (x + y) >> 1; });
}
BR_NV int
__nv_vabsdiffu2(int a, int b)
{
    return (int)br_lanes<unsigned short>(
        (unsigned)a, (unsigned)b,
        [](int x, int y) { return x < y ? y - x : x - y; });
}
BR_NV int
__nv_vabsdiffs2(int a, int b)
{
    return (int)br_lanes<short>((unsigned)a, (unsigned)b, [](int x, int y) {
        return x < y ? y - x : x - y;
    });
}
BR_NV int
__nv_vmaxs2(int a, int b)
{
    return (int)br_lanes<short>((unsigned)a, (unsigned)b,
                                [](int x, int y) { return x > y ? x : y; });
}
BR_NV int
__nv_vmaxu2(int a, int b)
{
    return (int)br_lanes<unsigned short>(
        (unsigned)a, (unsigned)b, [](int x, int y) { return x > y ? x : y; });
}
BR_NV int
__nv_vmins2(int a, int b)
{
    return (int)br_lanes<short>((unsigned)a, (unsigned)b,
                                [](int x, int y) { return x < y ? x : y; });
}
BR_NV int
__nv_vminu2(int a, int b)
{
    return (int)br_lanes<unsigned short>(
        (unsigned)a, (unsigned)b, [](int x, int y) { return x < y ? x : y; });
}
BR_NV int
__nv_vcmpeq2(int a, int b)
{
    return (int)br_lanes<unsigned short>(
        (unsigned)a, (unsigned)b, [](int x, int y) { return x == y ? -1 : 0; });
}
BR_NV int
__nv_vseteq2(int a, int b)
{
    return (int)br_lanes<unsigned short>((unsigned)a, (unsigned)b,
                                         [](int x, int y) { return x == y; });
}
BR_NV int
__nv_vcmpne2(int a, int b)
{
    return (int)br_lanes<unsigned short>(
        (unsigned)a, (unsigned)b, [](int x, int y) { return x != y ? -1 : 0; });
}
BR_NV int
__nv_vsetne2(int a, int b)
{
    return (int)br_lanes<unsigned short>((unsigned)a, (unsigned)b,
                                         [](int x, int y) { return x != y; });
}
BR_NV int
__nv_vcmpges2(int a, int b)
{
    return (int)br_lanes<short>((unsigned)a, (unsigned)b,
                                [](int x, int y) { return x >= y ? -1 : 0; });
}
BR_NV int
__nv_vsetges2(int a, int b)
{
    return (int)br_lanes<short>((unsigned)a, (unsigned)b,
                                [](int x, int y) { return x >= y; });
}
BR_NV int
__nv_vcmpgeu2(int a, int b)
{
    return (int)br_lanes<unsigned short>(
        (unsigned)a, (unsigned)b, [](int x, int y) { return x >= y ? -1 : 0; });
}
BR_NV int
__nv_vsetgeu2(int a, int b)
{
    return (int)br_lanes<unsigned short>((unsigned)a, (unsigned)b,
                                         [](int x, int y) { return x >= y; });
}
BR_NV int
__nv_vcmpgts2(int a, int b)
{
    return (int)br_lanes<short>((unsigned)a, (unsigned)b,
                                [](int x, int y) { return x > y ? -1 : 0; });
}
BR_NV int
__nv_vsetgts2(int a, int b)
{
    return (int)br_lanes<short>((unsigned)a, (unsigned)b,
                                [](int x, int y) { return x > y; });
}
BR_NV int
__nv_vcmpgtu2(int a, int b)
{
    return (int)br_lanes<unsigned short>(
        (unsigned)a, (unsigned)b, [](int x, int y) { return x > y ? -1 : 0; });
}
BR_NV int
__nv_vsetgtu2(int a, int b)
{
    return (int)br_lanes<unsigned short>((unsigned)a, (unsigned)b,
                                         [](int x, int y) { return x > y; });
}
BR_NV int
__nv_vcmples2(int a, int b)
{
    return (int)br_lanes<short>((unsigned)a, (unsigned)b,
                                [](int x, int y) { return x <= y ? -1 : 0; });
}
BR_NV int
__nv_vsetles2(int a, int b)
{
    return (int)br_lanes<short>((unsigned)a, (unsigned)b,
                                [](int x, int y) { return x <= y; });
}
BR_NV int
__nv_vcmpleu2(int a, int b)
{
    return (int)br_lanes<unsigned short>(
        (unsigned)a, (unsigned)b, [](int x, int y) { return x <= y ? -1 : 0; });
}
BR_NV int
__nv_vsetleu2(int a, int b)
{
    return (int)br_lanes<unsigned short>((unsigned)a, (unsigned)b,
                                         [](int x, int y) { return x <= y; });
}
BR_NV int
__nv_vcmplts2(int a, int b)
{
    return (int)br_lanes<short>((unsigned)a, (unsigned)b,
                                [](int x, int y) { return x < y ? -1 : 0; });
}
BR_NV int
__nv_vsetlts2(int a, int b)
{
    return (int)br_lanes<short>((unsigned)a, (unsigned)b,
                                [](int x, int y) { return x < y; });
}
BR_NV int
__nv_vcmpltu2(int a, int b)
{
    return (int)br_lanes<unsigned short>(
        (unsigned)a, (unsigned)b, [](int x, int y) { return x < y ? -1 : 0; });
}
BR_NV int
__nv_vsetltu2(int a, int b)
{
    return (int)br_lanes<unsigned short>((unsigned)a, (unsigned)b,
                                         [](int x, int y) { return x < y; });
}
BR_NV int
__nv_vsads2(unsigned int a, unsigned int b)
{
    return (int)br_lane_sum<short>(a, b);
}
BR_NV int
__nv_vsadu2(unsigned int a, unsigned int b)
{
    return (int)br_lane_sum<unsigned short>(a, b);
}
BR_NV int
__nv_vadd4(int a, int b)
{
    return (int)br_lanes<unsigned char>((unsigned)a, (unsigned)b,
                                        [](int x, int y) { return x + y; });
}
BR_NV int
__nv_vsub4(int a, int b)
{
    return (int)br_lanes<unsigned char>((unsigned)a, (unsigned)b,
                                        [](int x, int y) { return x - y; });
}
BR_NV int
__nv_vneg4(int a)
{
    return (int)br_lanes<unsigned char>((unsigned)a, 0u,
                                        [](int x, int y) { return -x; });
}
BR_NV int
__nv_vabs4(int a)
{
    return (int)br_lanes<signed char>(
        (unsigned)a, 0u, [](int x, int y) { return x < 0 ? -x : x; });
}
BR_NV int
__nv_vabsss4(int a)
{
    return (int)br_lanes<signed char>((unsigned)a, 0u, [](int x, int y) {
        return x < 0 ? (x == -128 ? 127 : -x) : x;
    });
}
BR_NV int
__nv_vnegss4(int a)
{
    return (int)br_lanes<signed char>(
        (unsigned)a, 0u, [](int x, int y) { return x == -128 ? 127 : -x; });
}
BR_NV int
__nv_vaddss4(int a, int b)
{
    return (int)br_lanes<signed char>(
        (unsigned)a, (unsigned)b, [](int x, int y) {
            return x + y > 127 ? 127 : x + y < -128 ? -128 : x + y;
        });
}
BR_NV int
__nv_vsubss4(int a, int b)
{
    return (int)br_lanes<signed char>(
        (unsigned)a, (unsigned)b, [](int x, int y) {
            return x - y > 127 ? 127 : x - y < -128 ? -128 : x - y;
        });
}
BR_NV int
__nv_vaddus4(int a, int b)
{
    return (int)br_lanes<unsigned char>(
        (unsigned)a, (unsigned)b,
        [](int x, int y) { return x + y > 255 ? 255 : x + y; });
}
BR_NV int
__nv_vsubus4(int a, int b)
{
    return (int)br_lanes<unsigned char>(
        (unsigned)a, (unsigned)b,
        [](int x, int y) { return x < y ? 0 : x - y; });
}
BR_NV int
__nv_vavgs4(int a, int b)
{
    return (int)br_lanes<signed char>(
        (unsigned)a, (unsigned)b,
        [](int x, int y) { return (x + y + (x + y >= 0)) >> 1; });
}
BR_NV int
__nv_vavgu4(int a, int b)
{
    return (int)br_lanes<unsigned char>(
        (unsigned)a, (unsigned)b,
        [](int x, int y) { return (x + y + 1) >> 1; });
}
BR_NV int
__nv_vhaddu4(int a, int b)
{
    return (int)br_lanes<unsigned char>(
        (unsigned)a, (unsigned)b, [](int x, int y) { return (x + y) >> 1; });
}
BR_NV int
__nv_vabsdiffu4(int a, int b)
{
    return (int)br_lanes<unsigned char>(
        (unsigned)a, (unsigned)b,
        [](int x, int y) { return x < y ? y - x : x - y; });
}
BR_NV int
__nv_vabsdiffs4(int a, int b)
{
    return (int)br_lanes<signed char>(
        (unsigned)a, (unsigned)b,
        [](int x, int y) { return x < y ? y - x : x - y; });
}
BR_NV int
__nv_vmaxs4(int a, int b)
{
    return (int)br_lanes<signed char>(
        (unsigned)a, (unsigned)b, [](int x, int y) { return x > y ? x : y; });
}
BR_NV int
__nv_vmaxu4(int a, int b)
{
    return (int)br_lanes<unsigned char>(
        (unsigned)a, (unsigned)b, [](int x, int y) { return x > y ? x : y; });
}
BR_NV int
__nv_vmins4(int a, int b)
{
    return (int)br_lanes<signed char>(
        (unsigned)a, (unsigned)b, [](int x, int y) { return x < y ? x : y; });
}
BR_NV int
__nv_vminu4(int a, int b)
{
    return (int)br_lanes<unsigned char>(
        (unsigned)a, (unsigned)b, [](int x, int y) { return x < y ? x : y; });
}
BR_NV int
__nv_vcmpeq4(int a, int b)
{
    return (int)br_lanes<unsigned char>(
        (unsigned)a, (unsigned)b, [](int x, int y) { return x == y ? -1 : 0; });
}
BR_NV int
__nv_vseteq4(int a, int b)
{
    return (int)br_lanes<unsigned char>((unsigned)a, (unsigned)b,
                                        [](int x, int y) { return x == y; });
}
BR_NV int
__nv_vcmpne4(int a, int b)
{
    return (int)br_lanes<unsigned char>(
        (unsigned)a, (unsigned)b, [](int x, int y) { return x != y ? -1 : 0; });
}
BR_NV int
__nv_vsetne4(int a, int b)
{
    return (int)br_lanes<unsigned char>((unsigned)a, (unsigned)b,
                                        [](int x, int y) { return x != y; });
}
BR_NV int
__nv_vcmpges4(int a, int b)
{
    return (int)br_lanes<signed char>(
        (unsigned)a, (unsigned)b, [](int x, int y) { return x >= y ? -1 : 0; });
}
BR_NV int
__nv_vsetges4(int a, int b)
{
    return (int)br_lanes<signed char>((unsigned)a, (unsigned)b,
                                      [](int x, int y) { return x >= y; });
}
BR_NV int
__nv_vcmpgeu4(int a, int b)
{
    return (int)br_lanes<unsigned char>(
        (unsigned)a, (unsigned)b, [](int x, int y) { return x >= y ? -1 : 0; });
}
BR_NV int
__nv_vsetgeu4(int a, int b)
{
    return (int)br_lanes<unsigned char>((unsigned)a, (unsigned)b,
                                        [](int x, int y) { return x >= y; });
}
BR_NV int
__nv_vcmpgts4(int a, int b)
{
    return (int)br_lanes<signed char>(
        (unsigned)a, (unsigned)b, [](int x, int y) { return x > y ? -1 : 0; });
}
BR_NV int
__nv_vsetgts4(int a, int b)
{
    return (int)br_lanes<signed char>((unsigned)a, (unsigned)b,
                                      [](int x, int y) { return x > y; });
}
BR_NV int
__nv_vcmpgtu4(int a, int b)
{
    return (int)br_lanes<unsigned char>(
        (unsigned)a, (unsigned)b, [](int x, int y) { return x > y ? -1 : 0; });
}
BR_NV int
__nv_vsetgtu4(int a, int b)
{
    return (int)br_lanes<unsigned char>((unsigned)a, (unsigned)b,
                                        [](int x, int y) { return x > y; });
}
BR_NV int
__nv_vcmples4(int a, int b)
{
    return (int)br_lanes<signed char>(
        (unsigned)a, (unsigned)b, [](int x, int y) { return x <= y ? -1 : 0; });
}
BR_NV int
__nv_vsetles4(int a, int b)
{
    return (int)br_lanes<signed char>((unsigned)a, (unsigned)b,
                                      [](int x, int y) { return x <= y; });
}
BR_NV int
__nv_vcmpleu4(int a, int b)
{
    return (int)br_lanes<unsigned char>(
        (unsigned)a, (unsigned)b, [](int x, int y) { return x <= y ? -1 : 0; });
}
BR_NV int
__nv_vsetleu4(int a, int b)
{
    return (int)br_lanes<unsigned char>((unsigned)a, (unsigned)b,
                                        [](int x, int y) { return x <= y; });
}
BR_NV int
__nv_vcmplts4(int a, int b)
{
    return (int)br_lanes<signed char>(
        (unsigned)a, (unsigned)b, [](int x, int y) { return x < y ? -1 : 0; });
}
BR_NV int
__nv_vsetlts4(int a, int b)
{
    return (int)br_lanes<signed char>((unsigned)a, (unsigned)b,
                                      [](int x, int y) { return x < y; });
}
BR_NV int
__nv_vcmpltu4(int a, int b)
{
    return (int)br_lanes<unsigned char>(
        (unsigned)a, (unsigned)b, [](int x, int y) { return x < y ? -1 : 0; });
}
BR_NV int
__nv_vsetltu4(int a, int b)
{
    return (int)br_lanes<unsigned char>((unsigned)a, (unsigned)b,
                                        [](int x, int y) { return x < y; });
}
BR_NV int
__nv_vsads4(unsigned int a, unsigned int b)
{
    return (int)br_lane_sum<signed char>(a, b);
}
BR_NV int
__nv_vsadu4(unsigned int a, unsigned int b)
{
    return (int)br_lane_sum<unsigned char>(a, b);
}
}

#endif

/* bits.cu - fields of bits at known places, bits that are counted, and integers
 * that become doubles and back, at their edges, by whole warps and by one lane.
 * SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include <limits.h>
#include <stdint.h>
#include <string.h>

enum { N = 256 };

template <int POS, int LEN> __device__ void fields(uint64_t a, uint64_t *r)
{
    uint32_t u, s, w = (uint32_t)(a ^ a >> 32);
    uint64_t q, t;

    asm("bfe.u32 %0, %1, %2, %3;" : "=r"(u) : "r"(w), "n"(POS), "n"(LEN));
    asm("bfe.s32 %0, %1, %2, %3;" : "=r"(s) : "r"(w), "n"(POS), "n"(LEN));
    asm("bfe.u64 %0, %1, %2, %3;" : "=l"(q) : "l"(a), "n"(POS), "n"(LEN));
    asm("bfe.s64 %0, %1, %2, %3;" : "=l"(t) : "l"(a), "n"(POS), "n"(LEN));
    r[0] = u | (uint64_t)s << 32;
    r[1] = q;
    r[2] = t;
}

/* As PTX has it. */
static uint64_t field(uint64_t a, int bits, bool is_signed, int pos, int len)
{
    int top = pos + len > bits ? bits - 1 : pos + len - 1;
    uint64_t r = 0, sign;

    if (!len)
        return 0;
    sign = is_signed && (a >> top & 1);
    for (int k = 0; k < bits; k++)
        r |= (k < len && pos + k < bits ? a >> (pos + k) & 1 : sign) << k;
    return r;
}

#define FIELDS(X)                                                       \
    X(0, 8) X(8, 8) X(24, 8) X(0, 32) X(5, 9) X(31, 1) X(16, 32) X(0, 0) \
    X(7, 0) X(32, 8) X(40, 3) X(63, 1) X(60, 30) X(0, 64) X(100, 4)      \
    X(255, 255) X(1, 255)

__global__ void all_fields(const uint64_t *in, uint64_t *out)
{
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x), n = 0;

#define GO(pos, len) fields<pos, len>(in[i], out + (size_t)(n++ * N + i) * 3);
    FIELDS(GO)
#undef GO
}

static void check_fields(const uint64_t *in, const uint64_t *out)
{
    int n = 0;

#define LOOK(pos, len)                                                      \
    for (int i = 0; i < N; i++) {                                           \
        const uint64_t *r = out + (size_t)(n * N + i) * 3;                  \
        uint32_t w = (uint32_t)(in[i] ^ in[i] >> 32);                       \
        EXPECT(r[0] == (field(w, 32, false, pos, len) |                     \
                        field(w, 32, true, pos, len) << 32));               \
        EXPECT(r[1] == field(in[i], 64, false, pos, len));                  \
        EXPECT(r[2] == field(in[i], 64, true, pos, len));                   \
    }                                                                       \
    n++;
    FIELDS(LOOK)
#undef LOOK
}

typedef struct numbers {
    double s32, u32, s64, u64, s16, u8;
    int32_t bits, bits64, trunc, low, up, near, one;
    uint32_t u_trunc, u_up;
} numbers;

__global__ void convert(const uint64_t *in, const double *d, const float *f,
                        numbers *out)
{
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    uint64_t a = in[i];
    numbers r;

    r.s32 = (double)(int32_t)a;
    r.u32 = (double)(uint32_t)a;
    r.s64 = (double)(int64_t)a;
    r.u64 = (double)a;
    r.s16 = (double)(int16_t)a;
    r.u8 = (double)(uint8_t)a;
    r.bits = __popc((unsigned)a);
    r.bits64 = __popcll(a);
    r.trunc = __double2int_rz(d[i]);
    r.low = __double2int_rd(d[i]);
    r.up = __double2int_ru(d[i]);
    r.near = __double2int_rn(d[i]);
    r.one = __double2int_rz(d[blockIdx.x]) + __popc((unsigned)in[blockIdx.x]);
    r.u_trunc = __float2uint_rz(f[i]);
    r.u_up = __float2uint_ru(f[i]);
    out[i] = r;
}

static int32_t to_int(double d, double rounded)
{
    return d != d           ? INT_MIN
           : rounded > 0x1p31 - 1 ? INT_MAX
           : rounded < -0x1p31    ? INT_MIN
                                  : (int32_t)rounded;
}

static uint32_t to_unsigned(float f, float rounded)
{
    return !(rounded > 0)     ? 0
           : rounded >= 0x1p32f ? UINT_MAX
                                : (uint32_t)rounded;
}

static void check_numbers(const uint64_t *in, const double *d, const float *f,
                          const numbers *r)
{
    for (int i = 0; i < N; i++, r++) {
        uint64_t a = in[i];

        EXPECT(r->s32 == (int32_t)a && r->u32 == (uint32_t)a);
        EXPECT(r->s64 == (double)(int64_t)a && r->u64 == (double)a);
        EXPECT(r->s16 == (int16_t)a && r->u8 == (uint8_t)a);
        EXPECT(r->bits == __builtin_popcount((unsigned)a) &&
               r->bits64 == __builtin_popcountll(a));
        EXPECT(r->trunc == to_int(d[i], trunc(d[i])));
        EXPECT(r->low == to_int(d[i], floor(d[i])));
        EXPECT(r->up == to_int(d[i], ceil(d[i])));
        EXPECT(r->near == to_int(d[i], rint(d[i])));
        EXPECT(r->one == (int)(to_int(d[i / 64], trunc(d[i / 64])) +
                               __builtin_popcount((unsigned)in[i / 64])));
        EXPECT(r->u_trunc == to_unsigned(f[i], truncf(f[i])));
        EXPECT(r->u_up == to_unsigned(f[i], ceilf(f[i])));
    }
}

/* Constants, which the compiler would take for casts: what is out of range then is
 * anything, and integers are rounded to nearest. */
__global__ void constants(int32_t *s, uint32_t *u, int64_t *l, uint64_t *v, float *f, double *d,
                          int near)
{
    s[0] = __float2int_rz(1e10f);
    s[1] = __float2int_rz(-1e10f);
    s[2] = __float2int_rz(NAN);
    s[3] = __double2int_rz(-1e300);
    u[0] = __float2uint_rz(-1.f);
    u[1] = __double2uint_rz(1e300);
    l[0] = __float2ll_rz(1e30f);
    l[1] = __double2ll_rz(-1e30);
    v[0] = __float2ull_rz(1e30f);
    v[1] = __double2ull_rz(-7.);
    f[0] = __int2float_rz(near);
    f[1] = __uint2float_rz((unsigned)near);
    f[2] = __ll2float_rz(-(long long)near);
    f[3] = __ull2float_rz(~0ull);
    d[0] = __ll2double_rz((1ll << 53) + 3 * (near & 1));
    d[1] = __ull2double_rz(~0ull);
}

static void check_constants()
{
    Dev<int32_t> s(4);
    Dev<uint32_t> u(2);
    Dev<int64_t> l(2);
    Dev<uint64_t> v(2);
    Dev<float> f(4);
    Dev<double> d(2);

    constants<<<1, 1>>>(s, u, l, v, f, d, 16777219);
    CHECK(cudaDeviceSynchronize());
    EXPECT(s.get() == (std::vector<int32_t>{INT_MAX, INT_MIN, 0, INT_MIN}));
    EXPECT(u.get() == (std::vector<uint32_t>{0, UINT_MAX}));
    EXPECT(l.get() == (std::vector<int64_t>{INT64_MAX, INT64_MIN}));
    EXPECT(v.get() == (std::vector<uint64_t>{UINT64_MAX, 0}));
    EXPECT(f.get() == (std::vector<float>{16777218.f, 16777218.f, -16777218.f, 0x1.fffffep63f}));
    EXPECT(d.get() == (std::vector<double>{0x1.0000000000001p53, 0x1.fffffffffffffp63}));
}

int main()
{
    static const double edges[] = {0,           -0.0,        0.5,
                                   -0.5,        1.5,         2.5,
                                   0x1p31,      0x1p31 - 1,  0x1p31 - 0.5,
                                   -0x1p31,     -0x1p31 - 1, -0x1p31 - 0.5,
                                   0x1p32,      0x1p32 - 1,  4294967040.0,
                                   2147483520.0, 0x1p63,     1e300,
                                   -1e300,      NAN,         -NAN,
                                   INFINITY,    -INFINITY,   1e-310};
    static const uint64_t words[] = {0,
                                     1,
                                     ~0ull,
                                     1ull << 63,
                                     (1ull << 63) - 1,
                                     0x80000000,
                                     0x7fffffff,
                                     0xffffffff,
                                     (1ull << 53) + 1,
                                     (1ull << 54) + 3,
                                     0xfffffffffffffbff,
                                     0xfffffffffffffc00,
                                     0x8000000000000401};
    std::vector<uint64_t> in(N);
    std::vector<double> d(N);
    std::vector<float> f(N);
    uint64_t x = 88172645463325252ull;

    for (int i = 0; i < N; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        in[i] = i < (int)(sizeof words / 8) ? words[i] : x >> x % 60;
        d[i] = i < (int)(sizeof edges / 8) ? edges[i]
                                           : (double)(int64_t)x / 3e9 * 0.7;
        f[i] = (float)(i < (int)(sizeof edges / 8) ? edges[i] : fabs(d[i]));
    }
    Dev<uint64_t> in_d(in), fields_d((size_t)17 * N * 3);
    Dev<double> d_d(d);
    Dev<float> f_d(f);
    Dev<numbers> r(N);

    all_fields<<<N / 64, 64>>>(in_d, fields_d);
    convert<<<N / 64, 64>>>(in_d, d_d, f_d, r);
    CHECK(cudaDeviceSynchronize());
    check_fields(in.data(), fields_d.get().data());
    check_numbers(in.data(), d.data(), f.data(), r.get().data());
    check_constants();
    return done();
}

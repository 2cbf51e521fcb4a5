/* emu_tensor.h - the tensor core of emu.h, which includes it: a warp's fragments
 * and four warps' tiles, by the tables of PTX's manual.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_EMU_TENSOR_H
#define BR_EMU_TENSOR_H

BR_DEV u32
transposed(u32 v)
{
    const auto all = emu_share(&v, 1);
    const u32 g = tid() % 32 / 4, c = tid() % 4, by = g % 2 * 16;
    const u32 lo = all[2 * c * 4 + g / 2][0],
              hi = all[2 * c * 4 + 4 + g / 2][0];

    return (lo >> by & 0xffff) | (hi >> by & 0xffff) << 16;
}

/* Each lane's numbers are turned into floats once, not by all who read them. */
template <float LO(u32), float HI(u32)>
BR_DEV void
emu_mma(float c[4], u32x4 a, u32x2 b)
{
    const u32 v[6] = {a.x, a.y, a.z, a.w, b.x, b.y}, l = tid() % 32;
    const u32 row = l / 4 * 4, col = l % 4 * 2 * 4;
    u32 mine[12];
    double s[4] = {(double)c[0], (double)c[1], (double)c[2], (double)c[3]};

    for (u32 i = 0; i < 6; i++) {
        mine[2 * i] = as_u32(LO(v[i]));
        mine[2 * i + 1] = as_u32(HI(v[i]));
    }
    const auto all = emu_share(mine, 12);
    for (u32 k = 0; k < 16; k++) {
        const u32 lane = k % 8 / 2, at = k / 8 * 4 + k % 2;
        const u32 bt = 8 + k / 8 * 2 + k % 2;
        const double x = (double)as_f32(all[row + lane][at]);
        const double y = (double)as_f32(all[row + lane][at + 2]);
        const double p = (double)as_f32(all[col + lane][bt]);
        const double q = (double)as_f32(all[col + 4 + lane][bt]);

        s[0] += x * p, s[1] += x * q, s[2] += y * p, s[3] += y * q;
    }
    emu_share(nullptr, 0); /* nobody writes all[] while another reads it */
    for (u32 i = 0; i < 4; i++)
        c[i] = (float)s[i];
}
BR_DEV void
mma_bf16(float c[4], u32x4 a, u32x2 b)
{
    emu_mma<bf16_lo, bf16_hi>(c, a, b);
}
BR_DEV void
mma_f16(float c[4], u32x4 a, u32x2 b)
{
    emu_mma<f16_lo, f16_hi>(c, a, b);
}
BR_DEV void
mma_bf16_zero(float c[4], u32x4 a, u32x2 b)
{
    c[0] = c[1] = c[2] = c[3] = 0.0f;
    mma_bf16(c, a, b);
}
/* 32 numbers of eight bits as 16: no product of two is too large for that. */
typedef signed char emu_s8 __attribute__((vector_size(32)));
typedef unsigned char emu_u8 __attribute__((vector_size(32)));
typedef short emu_s16 __attribute__((vector_size(64)));
typedef int emu_s32 __attribute__((vector_size(64)));

BR_DEV i32
emu_dot(const emu_s16 &a, const emu_s16 &b)
{
    const emu_s32 two = (emu_s32)(a * b);
    const emu_s32 both = (two << 16 >> 16) + (two >> 16);
    i32 s = 0;

    for (u32 i = 0; i < 16; i++)
        s += both[i];
    return s;
}
/* Four lanes' two words each. */
template <bool SIGNED>
BR_DEV void
emu_bytes(emu_s16 &to, const u32 (*lane)[EMU_WORDS], u32 first, u32 step)
{
    u32 w[8];
    emu_s8 s;
    emu_u8 u;

    for (u32 i = 0; i < 8; i++)
        w[i] = lane[i % 4][first + i / 4 * step];
    memcpy(&s, w, sizeof s);
    memcpy(&u, w, sizeof u);
    to = SIGNED ? __builtin_convertvector(s, emu_s16)
                : __builtin_convertvector(u, emu_s16);
}
template <bool SIGNED>
BR_DEV void
emu_mma_32(i32 c[4], u32x4 a, u32x2 b)
{
    const u32 v[6] = {a.x, a.y, a.z, a.w, b.x, b.y}, l = tid() % 32;
    const auto all = emu_share(v, 6);
    emu_s16 x[2], y[2];

    for (u32 i = 0; i < 2; i++) {
        emu_bytes<SIGNED>(x[i], &all[l / 4 * 4], i, 2);
        emu_bytes<true>(y[i], &all[(l % 4 * 2 + i) * 4], 4, 1);
    }
    emu_share(nullptr, 0);
    for (u32 i = 0; i < 4; i++)
        c[i] += emu_dot(x[i / 2], y[i % 2]);
}
BR_DEV void
mma_s8(i32 c[4], u32x4 a, u32x2 b)
{
    c[0] = c[1] = c[2] = c[3] = 0;
    emu_mma_32<true>(c, a, b);
}
BR_DEV void
mma_s8_32(i32 c[4], u32x4 a, u32x2 b)
{
    emu_mma_32<true>(c, a, b);
}
BR_DEV void
mma_u8_32(i32 c[4], u32x4 a, u32x2 b)
{
    emu_mma_32<false>(c, a, b);
}

BR_DEV i32
sum_of_bytes(u32 v, i32 c)
{
    for (u32 i = 0; i < 4; i++)
        c += (signed char)(v >> 8 * i);
    return c;
}
BR_DEV u32
bf16_of_bytes(u32 v, u32 sel)
{
    const u32 p = prmt(v, 0x43434343, sel);

    return pack_bf16(bf16_lo(p) - 128.0f, bf16_hi(p) - 128.0f);
}

/* ---- four warps together ------------------------------------------------ */

BR_DEV u64
wg_tile(u32 shared)
{
    if (shared % 1024 && shared % 1024 >= 128)
        abort();
    return shared >> 4;
}
BR_DEV void
wg_begin(void)
{
}
BR_DEV void
wg_commit(void)
{
}
template <u32 N>
BR_DEV void
wg_wait(void)
{
    warp_sync(); /* no lane goes on before all have read */
}
/* Number k of row r of a tile; a descriptor has 16 bytes as its unit. */
BR_DEV float
emu_tile(u64 d, u32 r, u32 k)
{
    const u32 at = (u32)d * 16, c = at % 128 / 16 + k / 8;
    u16 h;

    memcpy(&h,
           dyn_shared() + (at & ~1023u) + r / 8 * 1024 + r % 8 * 128 +
               (c ^ r % 8) * 16 + k % 8 * 2,
           2);
    return emu_f16(h);
}
/* Numbers 0 to 15 of a row, as doubles. */
BR_DEV void
emu_tile_row(u64 d, u32 r, double (&out)[16])
{
    for (u32 half = 0; half < 16; half += 8) {
        const u32 at = (u32)d * 16, c = at % 128 / 16 + half / 8;
        u16 h[8];

        memcpy(h,
               dyn_shared() + (at & ~1023u) + r / 8 * 1024 + r % 8 * 128 +
                   (c ^ r % 8) * 16,
               16);
        for (u32 k = 0; k < 8; k++)
            out[half + k] = (double)emu_f16(h[k]);
    }
}
/* Two rows, two columns of a lane's sums. */
BR_DEV void
emu_add_4(float *d, const double (&x)[2][16], const double (&y)[2][16],
          bool more)
{
    double s[4] = {0, 0, 0, 0};

    for (u32 j = 0; j < 4 && more; j++)
        s[j] = (double)d[j];
    for (u32 k = 0; k < 16; k++) {
        s[0] += x[0][k] * y[0][k], s[1] += x[0][k] * y[1][k];
        s[2] += x[1][k] * y[0][k], s[3] += x[1][k] * y[1][k];
    }
    for (u32 j = 0; j < 4; j++)
        d[j] = (float)s[j];
}
template <u32 HALF>
BR_DEV void
wg_mma(float (&d)[HALF], u64 a, u64 b, bool more)
{
    const u32 l = tid() % 32, w = tid() / 32 % 4;
    double x[2][16], y[2][16];

    for (u32 h = 0; h < 2; h++)
        emu_tile_row(a, w * 16 + l / 4 + h * 8, x[h]);
    for (u32 i = 0; i < HALF; i += 4) {
        for (u32 j = 0; j < 2; j++)
            emu_tile_row(b, i * 2 + l % 4 * 2 + j, y[j]);
        emu_add_4(d + i, x, y, more);
    }
}
BR_DEV u64
wg_tile_by_rows(u32 shared)
{
    return wg_tile(shared);
}
/* A's rows of this lane's sums, from all lanes' registers. */
BR_DEV void
emu_rows_of(u32x4 a, double (&x)[2][16])
{
    const u32 v[4] = {a.x, a.y, a.z, a.w}, l = tid() % 32;
    u32 mine[8];

    for (u32 i = 0; i < 4; i++) {
        mine[2 * i] = as_u32(f16_lo(v[i]));
        mine[2 * i + 1] = as_u32(f16_hi(v[i]));
    }
    const auto all = emu_share(mine, 8);
    for (u32 k = 0; k < 32; k++) {
        const u32 h = k / 16, e = k % 16;
        x[h][e] = (double)as_f32(
            all[l / 4 * 4 + e % 8 / 2][(h + e / 8 * 2) * 2 + e % 2]);
    }
}
template <u32 HALF, bool BY_ROWS>
BR_DEV void
emu_mma_r(float (&d)[HALF], u32x4 a, u64 b, bool more)
{
    const u32 l = tid() % 32;
    double x[2][16], y[2][16];

    emu_rows_of(a, x);
    for (u32 i = 0; i < HALF; i += 4) {
        for (u32 j = 0; j < 2; j++) {
            const u32 n = i * 2 + l % 4 * 2 + j;
            if (!BY_ROWS)
                emu_tile_row(b, n, y[j]);
            for (u32 k = 0; k < 16 && BY_ROWS; k++)
                y[j][k] = (double)emu_tile(b, k, n);
        }
        emu_add_4(d + i, x, y, more);
    }
}
template <bool BY_ROWS>
BR_DEV void
wg_mma64(float (&d)[32], u32x4 a, u64 b, bool more)
{
    emu_mma_r<32, BY_ROWS>(d, a, b, more);
}
template <u32 HALF>
BR_DEV void
wg_mma_r(float (&d)[HALF], u32x4 a, u64 b, bool more)
{
    emu_mma_r<HALF, false>(d, a, b, more);
}
template <bool TRANS>
BR_DEV u32x4
emu_ldmatrix(u32 a)
{
    const auto all = emu_share(&a, 1);
    const u32 l = tid() % 32;
    u32 r[4];

    if (a % 16)
        abort();
    for (u32 i = 0; i < 4; i++) {
        u16 h[2];
        for (u32 j = 0; j < 2; j++) {
            const u32 row = TRANS ? l % 4 * 2 + j : l / 4;
            const u32 col = TRANS ? l / 4 : l % 4 * 2 + j;
            memcpy(&h[j], dyn_shared() + all[i * 8 + row][0] + col * 2, 2);
        }
        r[i] = h[0] | (u32)h[1] << 16;
    }
    return {r[0], r[1], r[2], r[3]};
}
BR_DEV u32x4
ldmatrix(u32 a)
{
    return emu_ldmatrix<false>(a);
}
BR_DEV u32x4
ldmatrix_t(u32 a)
{
    return emu_ldmatrix<true>(a);
}

#endif

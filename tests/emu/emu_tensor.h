/* emu_tensor.h - the tensor core of emu.h, which includes it: a warp's fragments
 * and four warps' tiles, by the tables of PTX's manual.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_EMU_TENSOR_H
#define BR_EMU_TENSOR_H

BR_DEV u32
transposed(u32 v)
{
    u32(*all)[8] = emu_share(&v, 1);
    const u32 g = tid() % 32 / 4, c = tid() % 4, by = g % 2 * 16;
    const u32 lo = all[2 * c * 4 + g / 2][0],
              hi = all[2 * c * 4 + 4 + g / 2][0];

    return (lo >> by & 0xffff) | (hi >> by & 0xffff) << 16;
}

template <float LO(u32), float HI(u32)>
BR_DEV void
emu_mma(float c[4], u32x4 a, u32x2 b)
{
    const u32 v[6] = {a.x, a.y, a.z, a.w, b.x, b.y}, l = tid() % 32;
    u32(*all)[8] = emu_share(v, 6);
    float r[4];

    for (u32 i = 0; i < 4; i++) {
        const u32 row = l / 4, col = l % 4 * 2 + (i & 1);
        double s = (double)c[i];
        for (u32 k = 0; k < 16; k++) {
            u32 pa = all[row * 4 + k % 8 / 2][(i >> 1) + k / 8 * 2];
            u32 pb = all[col * 4 + k % 8 / 2][4 + k / 8];
            s += (double)(k & 1 ? HI(pa) : LO(pa)) *
                 (double)(k & 1 ? HI(pb) : LO(pb));
        }
        r[i] = (float)s;
    }
    emu_share(nullptr, 0); /* nobody writes all[] while another reads it */
    memcpy(c, r, sizeof r);
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
BR_DEV void
mma_s8(i32 c[4], u32x4 a, u32x2 b)
{
    const u32 v[6] = {a.x, a.y, a.z, a.w, b.x, b.y}, l = tid() % 32;
    u32(*all)[8] = emu_share(v, 6);
    i32 r[4];

    for (u32 i = 0; i < 4; i++) {
        const u32 row = l / 4, col = l % 4 * 2 + (i & 1);
        i32 s = 0;
        for (u32 k = 0; k < 32; k++) {
            u32 pa = all[row * 4 + k % 16 / 4][(i >> 1) + k / 16 * 2];
            u32 pb = all[col * 4 + k % 16 / 4][4 + k / 16];
            s += (i32)(signed char)(pa >> k % 4 * 8) *
                 (i32)(signed char)(pb >> k % 4 * 8);
        }
        r[i] = s;
    }
    emu_share(nullptr, 0);
    memcpy(c, r, sizeof r);
}

template <bool SIGNED>
BR_DEV void
emu_mma_32(i32 c[4], u32x4 a, u32x2 b)
{
    const u32 v[6] = {a.x, a.y, a.z, a.w, b.x, b.y}, l = tid() % 32;
    u32(*all)[8] = emu_share(v, 6);
    i32 r[4];

    for (u32 i = 0; i < 4; i++) {
        const u32 row = l / 4, col = l % 4 * 2 + (i & 1);
        i32 s = c[i];
        for (u32 k = 0; k < 32; k++) {
            const u32 pa =
                all[row * 4 + k % 16 / 4][(i >> 1) + k / 16 * 2] >> k % 4 * 8 &
                255;
            const u32 pb = all[col * 4 + k % 16 / 4][4 + k / 16] >> k % 4 * 8;
            s += (SIGNED ? (i32)(signed char)pa : (i32)pa) *
                 (i32)(signed char)pb;
        }
        r[i] = s;
    }
    emu_share(nullptr, 0);
    memcpy(c, r, sizeof r);
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
template <u32 HALF>
BR_DEV void
wg_mma(float (&d)[HALF], u64 a, u64 b, bool more)
{
    const u32 l = tid() % 32, w = tid() / 32 % 4;
    float x[2][16], y[16];

    for (u32 k = 0; k < 32; k++)
        x[k / 16][k % 16] = emu_tile(a, w * 16 + l / 4 + k / 16 * 8, k % 16);
    for (u32 i = 0; i < HALF; i++) {
        const u32 at = i / 4 * 4 + i % 4 / 2 + i % 2 * 2; /* a column's two */
        double s = more ? (double)d[at] : 0.0;
        for (u32 k = 0; k < 16 && i % 2 == 0; k++)
            y[k] = emu_tile(b, at / 4 * 8 + l % 4 * 2 + at % 2, k);
        for (u32 k = 0; k < 16; k++)
            s += (double)x[at / 2 % 2][k] * (double)y[k];
        d[at] = (float)s;
    }
}
BR_DEV u64
wg_tile_by_rows(u32 shared)
{
    return wg_tile(shared);
}
/* A's rows of this lane's sums, from all lanes' registers. */
BR_DEV void
emu_rows_of(u32x4 a, float (&x)[2][16])
{
    const u32 v[4] = {a.x, a.y, a.z, a.w}, l = tid() % 32;
    u32(*all)[8] = emu_share(v, 4);

    for (u32 k = 0; k < 32; k++) {
        const u32 h = k / 16, e = k % 16,
                  p = all[l / 4 * 4 + e % 8 / 2][h + e / 8 * 2];
        x[h][e] = e % 2 ? f16_hi(p) : f16_lo(p);
    }
}
template <u32 HALF, bool BY_ROWS>
BR_DEV void
emu_mma_r(float (&d)[HALF], u32x4 a, u64 b, bool more)
{
    const u32 l = tid() % 32;
    float x[2][16];

    emu_rows_of(a, x);
    for (u32 i = 0; i < HALF; i++) {
        const u32 n = i / 4 * 8 + l % 4 * 2 + i % 2;
        double s = more ? (double)d[i] : 0.0;
        for (u32 k = 0; k < 16; k++)
            s += (double)x[i / 2 % 2][k] *
                 (double)(BY_ROWS ? emu_tile(b, k, n) : emu_tile(b, n, k));
        d[i] = (float)s;
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
    u32(*all)[8] = emu_share(&a, 1);
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

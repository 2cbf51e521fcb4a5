/* kernels.cu - kernels by which the AMD back-end and its simulator are judged:
 * mutants of their waits and fences, instructions beside clang's, speed.
 *
 *     make ptx-gcn     makes kernels.ptx of it
 *
 * All are k(in, out, work): 4 blocks of 128; in 1024 rows of three u64, out and
 * work 64 KiB of zeros. Results do not depend on the order of blocks.
 * SPDX-License-Identifier: Apache-2.0 */
#include "both.cuh"

#define ARGS const u64 *in, u64 *out, u32 *work

/* ---- memory alone --------------------------------------------------------- */

KERNEL k_copy(ARGS) { out[gid()] = in[gid()]; }
KERNEL
k_saxpy(ARGS)
{
    const float *x = (const float *)in, *y = x + 1024;
    ((float *)out)[gid()] = 2.5f * x[gid()] + y[gid()];
}
KERNEL
k_gather(ARGS)
{
    const u32 *x = (const u32 *)in;
    u32 at = x[gid()] & 1023;
    out[gid()] = x[x[at] & 1023] + at;
}
KERNEL
k_four(ARGS)
{
    const u32 *x = (const u32 *)in + gid() * 8;
    u32 a = x[0], b = x[2], c = x[5], d = x[7];
    out[gid()] = (a * b ^ c) + d;
}
KERNEL
k_sum(ARGS)
{
    const u32 *x = (const u32 *)in;
    u32 s = 0;
    for (u32 k = 0; k < 40; k++)
        s += x[(gid() + k * 37) & 2047] * k;
    out[gid()] = s;
}
KERNEL
k_vector(ARGS)
{
    const u32x4 *x = (const u32x4 *)in + gid();
    u32x4 a = x[0], b = x[512];
    ((u32x4 *)out)[gid()] = a + b * 3;
}
KERNEL
k_bytes(ARGS)
{
    const u8 *x = (const u8 *)in + gid() * 5;
    u32 s = 0;
    for (u32 k = 0; k < 5; k++)
        s = s * 31 + x[k];
    ((u16 *)out)[gid()] = (u16)s;
}
KERNEL
k_gemv(ARGS)
{
    const float *m = (const float *)in;
    float s = 0;
    for (u32 k = 0; k < 64; k++)
        s += (float)(((const u32 *)m)[(gid() * 4 + k) & 4095] & 255) *
             (float)(((const u32 *)m)[k] & 15);
    ((float *)out)[gid()] = s;
}
KERNEL
k_dot8(ARGS) /* eight-bit weights with a scale */
{
    const signed char *q = (const signed char *)in;
    u32 row = gid() & 127;
    float sum = 0;
    for (u32 b = 0; b < 4; b++) {
        int s = 0;
        for (u32 k = 0; k < 32; k++)
            s += q[(row * 128 + b * 32 + k) & 16383] * q[b * 32 + k];
        sum += (float)s * (float)(1 + b);
    }
    ((float *)out)[gid()] = sum;
}
KERNEL
k_local(ARGS) /* an array that lanes index */
{
    u32 a[16], s = 0;
    for (u32 k = 0; k < 16; k++)
        a[k] = (u32)in[(gid() + k) & 1023];
    for (u32 k = 0; k < 16; k++)
        s = s * 3 + a[(u32)(in[gid()] >> k) & 15];
    out[gid()] = s;
}

/* ---- arithmetic ----------------------------------------------------------- */

KERNEL
k_divide(ARGS)
{
    u64 a = in[3 * gid()], b = in[3 * gid() + 1] | 1;
    u32 c = (u32)a, d = (u32)b;
    out[gid()] = c / d + c % (d >> 20 | 1) + a / b;
}
KERNEL
k_floats(ARGS)
{
    const u32 *x = (const u32 *)in;
    float a = (float)(x[gid()] & 1023) + 1, b = (float)(x[gid() + 512] & 255);
    float c = a / (b + 1), d = __builtin_sqrtf(a);
    ((float *)out)[gid()] = c * d + __builtin_floorf(b / 3) - d / a;
}
KERNEL
k_rotate(ARGS)
{
    u64 v = in[gid()];
    for (u32 k = 0; k < 12; k++) {
        v = (v << 13 | v >> 51) ^ in[(gid() + k) & 1023];
        v = v * 0x9e3779b97f4a7c15ull + k;
    }
    out[gid()] = v;
}
KERNEL
k_bits(ARGS)
{
    u32 v = (u32)in[gid()], w = (u32)(in[gid()] >> 32);
    u32 r = (u32)__builtin_popcount(v) + (u32)__builtin_clz(w | 1) * 64;
    r ^= (v >> 7 & 63) | (w & 0xff00) << 8;
    r += (v << 3) + w;
    out[gid()] = r * (v & w) + (v ^ w ^ r);
}
KERNEL
k_collatz(ARGS)
{
    u32 v = ((u32)in[gid()] & 255) + 1, n = 0;
    while (v != 1 && n < 200) {
        v = v & 1 ? 3 * v + 1 : v >> 1;
        n++;
    }
    out[gid()] = n;
}
KERNEL
k_mandel(ARGS)
{
    float cx = (float)(gid() & 31) / 16 - 1.5f, cy = (float)(gid() >> 5) / 8 - 1;
    float x = 0, y = 0;
    u32 n = 0;
    for (; n < 64 && x * x + y * y < 4; n++) {
        float t = x * x - y * y + cx;
        y = 2 * x * y + cy;
        x = t;
    }
    out[gid()] = n;
}
KERNEL
k_branches(ARGS)
{
    u32 v = (u32)in[gid()], r = 0;
#pragma unroll 1
    for (u32 k = 0; k < 6; k++, v >>= 3) {
        if ((v & 7) == 0)
            r += (u32)in[k];
        else if ((v & 7) < 3)
            r ^= v;
        else if (v & 1)
            break;
        else
            r = r * 5 + k;
    }
    out[gid()] = r;
}
NO_INLINE u32
mixed(u32 a, u32 b)
{
    return a < 2 ? b : mixed(a / 2, b * 3 + a) ^ a;
}
KERNEL k_calls(ARGS) { out[gid()] = mixed((u32)in[gid()] & 31, gid()); }
KERNEL
k_poly(ARGS)
{
    const float *x = (const float *)in;
    float v = (float)(((const u32 *)x)[gid()] & 255) / 256, r = 0;
    for (u32 k = 0; k < 16; k++)
        r = r * v + (float)(k + 1);
    ((float *)out)[gid()] = r;
}

KERNEL
k_minmax(ARGS)
{
    u64 a = in[gid()], b = in[gid() + 512];
    long long c = (long long)a, d = (long long)b;
    out[gid()] = (a < b ? a : b) + (u64)(c > d ? c : d);
}
KERNEL
k_distance(ARGS)
{
    const u32 *x = (const u32 *)in;
    float s = 0;
    for (u32 k = 0; k < 12; k++) {
        float d = (float)(x[gid() * 12 + k] & 63) - (float)(x[k] & 63);
        s += d * d;
    }
    ((float *)out)[gid()] = s;
}

/* ---- lanes ---------------------------------------------------------------- */

KERNEL
k_lanes(ARGS)
{
    u32 v = (u32)in[gid()], lane = tid() & 31;
    for (u32 d = 16; d; d >>= 1)
        v += from_lane(v, (lane + d) & 31);
    out[gid()] = v;
}
KERNEL
k_votes(ARGS)
{
    u32 v = (u32)in[gid()], r = 0;
    for (u32 k = 0; k < 8; k++)
        r += (u32)__builtin_popcount(votes(v >> k & 1)) << k;
    out[gid()] = r;
}

/* ---- memory of the block -------------------------------------------------- */

KERNEL
k_reverse(ARGS)
{
    SHARED u32 s[LANES];
    s[tid()] = (u32)in[gid()];
    sync();
    out[gid()] = s[LANES - 1 - tid()];
}
KERNEL
k_reduce(ARGS)
{
    SHARED u32 s[LANES];
    s[tid()] = (u32)in[gid()];
    sync();
    if (tid() < 64)
        s[tid()] += s[tid() + 64];
    sync();
    if (tid() < 32) {
        u32 v = s[tid()] + s[tid() + 32];
        for (u32 d = 16; d; d >>= 1)
            v += from_lane(v, tid() ^ d);
        if (tid() == 0)
            out[bid()] = v;
    }
}
KERNEL
k_scan(ARGS)
{
    SHARED u32 s[2][LANES];
    u32 from = 0;
    s[0][tid()] = (u32)in[gid()] & 65535;
    sync();
    for (u32 d = 1; d < LANES; d *= 2, from ^= 1) {
        u32 v = s[from][tid()], w = s[from][(tid() - d) & 127];
        s[from ^ 1][tid()] = tid() < d ? v : v + w;
        sync();
    }
    out[gid() ^ 64] = s[from][tid() ^ 64];
}
KERNEL
k_transpose(ARGS)
{
    SHARED u32 s[16][17];
    u32 x = tid() & 15, y = tid() >> 4;
    for (u32 k = 0; k < 16; k += 8)
        s[y + k][x] = (u32)in[bid() * 256 + (y + k) * 16 + x];
    sync();
    for (u32 k = 0; k < 16; k += 8)
        out[bid() * 256 + (y + k) * 16 + x] = s[x][y + k];
}
KERNEL
k_histogram(ARGS)
{
    SHARED u32 s[64];
    if (tid() < 64)
        s[tid()] = 0;
    sync();
    for (u32 k = 0; k < 4; k++)
        add_shared(&s[in[(gid() * 4 + k) & 1023] & 63], 1);
    sync();
    if (tid() < 64)
        add(&work[tid()], s[tid()]);
}
KERNEL
k_warps(ARGS)
{
    SHARED u32 s[LANES / 32];
    u32 v = (u32)in[gid()], lane = tid() & 31;
    for (u32 d = 16; d; d >>= 1)
        v += from_lane(v, lane ^ d);
    if (lane == 0)
        s[tid() / 32] = v;
    sync();
    v = 0;
    for (u32 k = 0; k < LANES / 32; k++)
        v += s[k];
    out[gid()] = v;
}
KERNEL
k_matmul(ARGS) /* 64 x 64 of tiles 8 x 16, 8 deep */
{
    SHARED float a[8][8], b[8][16];
    const u32 *x = (const u32 *)in;
    u32 c = tid() & 15, r = tid() >> 4;
    float s = 0;
    for (u32 k = 0; k < 64; k += 8) {
        if (tid() < 64)
            a[tid() >> 3][tid() & 7] =
                (float)(x[(bid() * 8 + (tid() >> 3)) * 64 + k + (tid() & 7)] &
                        7);
        b[r][c] = (float)(x[2048 + (k + r) * 16 + c] & 7);
        sync();
        for (u32 i = 0; i < 8; i++)
            s += a[r][i] * b[i][c];
        sync();
    }
    ((float *)out)[gid()] = s;
}
KERNEL
k_softmax(ARGS) /* but for the exponential */
{
    SHARED float s[2][LANES / 32];
    float v = (float)((u32)in[gid()] & 255) / 16, m = v, sum;
    for (u32 d = 16; d; d >>= 1) {
        float o = lane_f(m, (tid() & 31) ^ d);
        m = o > m ? o : m;
    }
    if ((tid() & 31) == 0)
        s[0][tid() / 32] = m;
    sync();
    for (u32 k = 0; k < LANES / 32; k++)
        m = s[0][k] > m ? s[0][k] : m;
    v = 1 / (1 + (m - v) * (m - v));
    sum = v;
    for (u32 d = 16; d; d >>= 1)
        sum += lane_f(sum, (tid() & 31) ^ d);
    if ((tid() & 31) == 0)
        s[1][tid() / 32] = sum;
    sync();
    sum = 0;
    for (u32 k = 0; k < LANES / 32; k++)
        sum += s[1][k];
    ((float *)out)[gid()] = v / sum;
}
KERNEL
k_stencil(ARGS)
{
    SHARED u32 s[2][LANES + 2];
    u32 at = tid() + 1;
    s[0][at] = s[1][at] = (u32)in[gid()] & 4095;
    if (tid() < 2)
        s[0][tid() * (LANES + 1)] = s[1][tid() * (LANES + 1)] = 0;
    sync();
    for (u32 k = 0; k < 10; k++) {
        u32 f = k & 1;
        s[f ^ 1][at] = (s[f][at - 1] + 2 * s[f][at] + s[f][at + 1]) / 4;
        sync();
    }
    out[gid() ^ 32] = s[0][(tid() ^ 32) + 1];
}
KERNEL
k_sort(ARGS) /* eight rounds of neighbours that change places */
{
    SHARED u32 s[LANES + 1];
    s[tid()] = (u32)in[gid()];
    if (tid() == 0)
        s[LANES] = ~0u;
    sync();
    for (u32 k = 0; k < 8; k++) {
        u32 at = 2 * tid() + (k & 1);
        if (tid() < LANES / 2) {
            u32 a = s[at], b = s[at + 1];
            s[at] = a < b ? a : b;
            s[at + 1] = a < b ? b : a;
        }
        sync();
    }
    out[gid() ^ 64] = s[tid() ^ 64];
}
KERNEL
k_pipeline(ARGS) /* the next tile comes while this one is used */
{
    SHARED u32 s[2][LANES];
    u32 r = 0, next = (u32)in[tid()];
    for (u32 k = 0; k < 8; k++) {
        s[k & 1][tid()] = next;
        sync();
        if (k < 7)
            next = (u32)in[(k + 1) * 128 + tid()];
        r = r * 3 + s[k & 1][(tid() * 5 + 7) & 127];
    }
    out[gid()] = r;
}

KERNEL
k_convolve(ARGS)
{
    SHARED float s[LANES + 8];
    const u32 *x = (const u32 *)in;
    float sum = 0;
    s[tid()] = (float)(x[gid()] & 15);
    if (tid() < 8)
        s[LANES + tid()] = (float)(x[gid() + LANES] & 15);
    sync();
    for (u32 k = 0; k < 9; k++)
        sum += s[tid() + k] * (float)(k + 1);
    ((float *)out)[gid()] = sum;
}
KERNEL
k_table(ARGS)
{
    SHARED u8 t[256];
    const u8 *x = (const u8 *)in;
    u32 s = 0;
    t[tid()] = x[tid() * 3];
    t[tid() + LANES] = x[tid() * 5 + 1];
    sync();
    for (u32 k = 0; k < 8; k++)
        s = s * 5 + t[x[gid() * 8 + k]];
    out[gid()] = s;
}
KERNEL
k_columns(ARGS) /* sums down columns: each block one of 64 rows */
{
    SHARED u32 s[LANES];
    u32 v = 0;
    for (u32 k = 0; k < 8; k++)
        v += (u32)in[(bid() * 8 + k) * 32 + (tid() & 31)] * (tid() / 32 + 1);
    s[tid()] = v;
    sync();
    if (tid() < 32)
        out[bid() * 32 + tid()] = s[tid()] + s[tid() + 32] + s[tid() + 64];
}
KERNEL
k_rounds(ARGS) /* a state of the block, stirred */
{
    SHARED u32 s[LANES];
    u32 v = (u32)in[gid()];
    for (u32 k = 0; k < 6; k++) {
        s[tid()] = v;
        sync();
        v = s[(tid() + 17 * k + 33) & 127] * 5 + k;
        sync();
    }
    out[gid()] = v;
}
KERNEL
k_many(ARGS) /* values under way at once */
{
    const u32 *x = (const u32 *)in;
    u32 v[12], s = 0;
    for (u32 k = 0; k < 12; k++)
        v[k] = x[(gid() * 3 + k * 71) & 4095];
    for (u32 k = 0; k < 12; k++)
        s = s * 3 + v[k];
    out[gid()] = s;
}

/* ---- memory that others write --------------------------------------------- */

KERNEL
k_exchange(ARGS) /* within a block, through memory */
{
    u32 *w = work + bid() * LANES;
    w[tid()] = (u32)in[gid()];
    sync();
    out[gid()] = w[(tid() * 7 + 3) & 127];
}
KERNEL
k_in_place(ARGS)
{
    u32 *w = work + bid() * LANES;
    w[tid()] = (u32)in[gid()] & 4095;
    sync();
    for (u32 k = 0; k < 6; k++) {
        u32 v = w[tid()] + w[(tid() + 33) & 127];
        sync();
        w[tid()] = v;
        sync();
    }
    out[gid() ^ 32] = w[tid() ^ 32];
}
KERNEL
k_last_block(ARGS)
{
    SHARED u32 last;
    work[64 + gid()] = (u32)in[gid()];
    sync();
    if (tid() == 0)
        last = add_acq_rel(work, 1) == BLOCKS - 1;
    sync();
    if (last) {
        u32 s = 0;
        for (u32 b = 0; b < BLOCKS; b++)
            s = s * 7 + work[64 + b * LANES + tid()];
        out[tid()] = s;
    }
}
KERNEL
k_chain(ARGS) /* each block goes on with what the one before left */
{
    u32 *data = work + 1024, v = (u32)in[gid()];
    if (bid()) {
        if (tid() == 0)
            while (!get(&work[bid() - 1], true))
                ;
        sync();
        v += data[(bid() - 1) * LANES + (tid() ^ 33)];
    }
    out[gid()] = v;
    data[gid()] = v;
    sync();
    if (tid() == 0)
        put(&work[bid()], 1, true);
}
KERNEL
k_relaxed(ARGS) /* the same with fences of their own */
{
    u32 *data = work + 1024, v = (u32)in[gid()];
    if (bid()) {
        if (tid() == 0) {
            while (!get(&work[bid() - 1], false))
                ;
            fence();
        }
        sync();
        v = v * 3 + data[(bid() - 1) * LANES + (tid() ^ 37)];
    }
    out[gid()] = v;
    data[gid()] = v;
    sync();
    if (tid() == 0) {
        fence();
        put(&work[bid()], 1, false);
    }
}
KERNEL
k_lock(ARGS)
{
    u32 v = (u32)in[gid()] & 255;
    if ((tid() & 31) == 0) {
        while (swap(work, 1))
            ;
        work[8] += v;
        work[9] = work[9] < v ? v : work[9];
        put(work, 0, true);
    }
}
KERNEL
k_grid(ARGS) /* a barrier of all blocks, twice */
{
    u32 *data = work + 1024, v = (u32)in[gid()];
    for (u32 k = 1; k <= 2; k++) {
        data[k * 512 + gid()] = v;
        sync();
        if (tid() == 0) {
            add_release(work, 1);
            while (get(work, true) < k * BLOCKS)
                ;
        }
        sync();
        v = v * 5 + data[k * 512 + ((gid() + 131 * k) & 511)];
    }
    out[gid()] = v;
}
KERNEL
k_tickets(ARGS) /* a wave takes what is next */
{
    for (;;) {
        u32 n = 0;
        if ((tid() & 31) == 0)
            n = add(work, 1);
        n = from_lane(n, 0);
        if (n >= 40)
            break;
        out[n * 32 + (tid() & 31)] =
            in[(n * 32 + (tid() & 31)) & 1023] * (n + 1);
    }
}
KERNEL
k_ring(ARGS) /* waves of block 0 give, those of block 1 take */
{
    u32 wave = tid() / 32, lane = tid() & 31, s = 0;
    u32 *w = work + wave * 1024, *slot = w + 64;
    if (bid() > 1)
        return;
    for (u32 n = 0; n < 7; n++) {
        u32 *p = slot + n % 3 * 32;
        if (bid() == 0) {
            if (lane == 0)
                while (get(&w[1], true) + 3 <= n)
                    ;
            meet();
            p[lane] = (u32)in[(n * 100 + tid()) & 1023];
            meet();
            if (lane == 0)
                put(&w[0], n + 1, true);
        } else {
            if (lane == 0)
                while (get(&w[0], true) <= n)
                    ;
            meet();
            s = s * 3 + p[lane ^ 1];
            meet();
            if (lane == 0)
                put(&w[1], n + 1, true);
        }
    }
    out[gid()] = s;
}
KERNEL
k_look_back(ARGS) /* sums of the blocks before, one pass */
{
    SHARED u32 s[LANES / 32];
    u32 v = (u32)in[gid()] & 255, lane = tid() & 31, before = 0;
    for (u32 d = 16; d; d >>= 1)
        v += from_lane(v, lane ^ d);
    if (lane == 0)
        s[tid() / 32] = v;
    sync();
    if (tid() == 0) {
        work[64 + bid()] = s[0] + s[1] + s[2] + s[3];
        put(&work[bid()], 1, true);
    }
    if (lane == 0)
        for (u32 b = bid(); b-- > 0;) {
            while (!get(&work[b], true))
                ;
            before += work[64 + b];
        }
    out[gid()] = v + from_lane(before, 0);
}
KERNEL
k_pairs(ARGS) /* wave a tells wave b of another block, both ways */
{
    u32 wave = gid() / 32, lane = tid() & 31;
    u32 v = (u32)in[gid()];
    work[256 + gid()] = v;
    meet();
    if (lane == 0)
        put(&work[wave], 1, true);
    if (lane == 0)
        while (!get(&work[wave ^ 4], true))
            ;
    meet();
    out[gid()] = work[256 + (gid() ^ 128)] + v;
}
KERNEL
k_stages(ARGS) /* waves hand a sum on, through memory */
{
    u32 *w = work, wave = gid() / 32, lane = tid() & 31;
    u32 v = (u32)in[gid()];
    if (wave) {
        if (lane == 0)
            while (!get(&w[wave - 1], true))
                ;
        meet();
        v += w[256 + gid() - 32];
    }
    out[gid()] = v;
    w[256 + gid()] = v;
    meet();
    if (lane == 0)
        put(&w[wave], 1, true);
}
KERNEL
k_tree(ARGS) /* sums that go up a tree of waves */
{
    u32 wave = gid() / 32, lane = gid() & 31, v = (u32)in[gid()] & 1023;
    u32 *data = work + 256, *came = work;
    for (u32 d = 16; d; d >>= 1)
        v += from_lane(v, lane ^ d);
    for (u32 n = 16, at = wave;; n /= 2, at /= 2) {
        u32 was = 0;
        if (n == 1) {
            if (lane == 0)
                out[0] = v;
            break;
        }
        if (lane == 0) {
            data[n * 2 + at] = v;
            was = add_acq_rel(&came[n + at / 2], 1);
        }
        was = from_lane(was, 0);
        if (was == 0)
            break;
        v += data[n * 2 + (at ^ 1)];
    }
}

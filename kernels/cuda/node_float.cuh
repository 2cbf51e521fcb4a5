/* node_float.cuh - products of matrices of floats: a part of nodes.cu. 16 threads an
 * output, lane = k mod 16, each a chain of fma, then the tree 8 4 2 1.
 *
 * A thread's chain is a fma every four cycles, but what it multiplies is a read of
 * the memory away: 600 cycles. So 16 of its weights and a column of each row are on
 * their way while those before them are multiplied, and rows go by shared memory.
 * SPDX-License-Identifier: Apache-2.0 */

template <u32 KIND>
BR_DEV float
weight(const void *p, u64 i)
{
    if (KIND == BR_ND_F32)
        return ((const float *)p)[i];
    if (KIND == BR_ND_F16)
        return f16_lo(((const u16 *)p)[i]);
    return as_f32((u32)((const u16 *)p)[i] << 16);
}

#ifdef BR_PORTABLE
template <u32 KIND>
BR_DEV void
mul_float(PART)
{
    const u32 l = tid() & 15, o = bid() * (THREADS / 16) + (tid() >> 4);
    const u32 n = o < a.m.n_out ? o : a.m.n_out - 1;
    const u32 t0 = first_row(OF_PART), end = end_row(OF_PART), K = a.m.n_in;
    const u64 at = weight_row(OF_PART, n) * K;
    const float *x[TILE];
    float sum[TILE];

    EACH (r) {
        x[r] = row(a.x, input_row(a, t0 + r));
        sum[r] = 0.0f;
    }
#pragma unroll 4
    for (u32 k = l; k < K; k += 16) {
        const float w = weight<KIND>(a.m.q, at + k);
        EACH (r)
            sum[r] = fma_rn(x[r][k], w, sum[r]);
    }
    EACH (r) {
        sum[r] = lanes16(sum[r]);
        if (l == 0 && o < a.m.n_out)
            row(a.y, t0 + r)[n] = sum[r];
    }
}
#else
enum { DEEP = 16, DEEP_COLS = DEEP * 16 };
static_assert(DEEP_COLS == THREADS, "a thread brings a column");

template <u32 KIND>
BR_DEV void
bring_weights(PART, u64 at, u32 from, float (&w)[DEEP])
{
#pragma unroll
    for (u32 j = 0; j < DEEP; j++) {
        const u32 k = from + j * 16 + (tid() & 15);
        w[j] = k < a.m.n_in ? weight<KIND>(a.m.q, at + k) : 0.0f;
    }
}

template <u32 KIND>
BR_DEV void
mul_float(PART)
{
    __shared__ float part[TILE][DEEP_COLS];
    const u32 l = tid() & 15, o = bid() * (THREADS / 16) + (tid() >> 4);
    const u32 n = o < a.m.n_out ? o : a.m.n_out - 1;
    const u32 t0 = first_row(OF_PART), end = end_row(OF_PART), K = a.m.n_in;
    float sum[TILE], next[TILE], w[DEEP], ahead[DEEP];

    grid_go();
    if (a.e.ids) /* who is asked, the launch ahead says */
        grid_wait();
    const u64 at = weight_row(OF_PART, n) * K;
    bring_weights<KIND>(OF_PART, at, 0, ahead);
    grid_wait();
    EACH (r) {
        sum[r] = 0.0f;
        next[r] = tid() < K ? row(a.x, input_row(a, t0 + r))[tid()] : 0.0f;
    }
#pragma unroll 1
    for (u32 from = 0; from < K; from += DEEP_COLS) {
        const u32 m = K - from, to = from + DEEP_COLS + tid();

        bar(0, THREADS);
        EACH (r)
            part[r][tid()] = next[r];
        bar(0, THREADS);
#pragma unroll
        for (u32 j = 0; j < DEEP; j++)
            w[j] = ahead[j];
        bring_weights<KIND>(OF_PART, at, from + DEEP_COLS, ahead);
        EACH (r)
            next[r] = to < K ? row(a.x, input_row(a, t0 + r))[to] : 0.0f;
        if (m >= DEEP_COLS) {
            EACH (r) {
#pragma unroll
                for (u32 j = 0; j < DEEP; j++)
                    sum[r] = fma_rn(part[r][j * 16 + l], w[j], sum[r]);
            }
            continue;
        }
        EACH (r) {
#pragma unroll
            for (u32 j = 0; j < DEEP; j++)
                if (j * 16 + l < m)
                    sum[r] = fma_rn(part[r][j * 16 + l], w[j], sum[r]);
        }
    }
    EACH (r) {
        sum[r] = lanes16(sum[r]);
        if (l == 0 && o < a.m.n_out)
            row(a.y, t0 + r)[n] = sum[r];
    }
}
#endif

/* node_rows.cuh - rows that products of tiles (node_tiles.cuh) read, made by what
 * stands before those: a norm, a sum and its norm, a GLU, or nothing.
 *
 *   block    a row; its threads meet once, for the sum of squares and for the largest
 *            number, which says the factor that the row's f16 have
 *
 * SPDX-License-Identifier: Apache-2.0 */

/* What a row's threads have of it; once they have met, all of it in each. One meeting
 * for all three: a second one took .4 us of a norm of few rows. */
struct row_sums {
    float sum;    /* of squares, before it is scaled */
    u32 top;      /* the largest number, as bits */
    float square; /* of squares of such numbers */
};
BR_DEV struct row_sums
lanes_of(struct row_sums v)
{
    for (u32 m = 16; m; m >>= 1) {
        v.sum = v.sum + shfl_xor_f(v.sum, m);
        v.top = max_u32(v.top, shfl_xor(v.top, m));
        v.square = v.square + shfl_xor_f(v.square, m);
    }
    return v;
}
BR_DEV struct row_sums
row_meets(struct row_sums v)
{
    __shared__ u32 each[3][BR_ND_ROW_THREADS / 32];
    const u32 lane = tid() & 31, w = tid() >> 5;
    const bool in = lane < block_dim() / 32;

    v = lanes_of(v);
    if (lane == 0) {
        each[0][w] = as_u32(v.sum);
        each[1][w] = v.top;
        each[2][w] = as_u32(v.square);
    }
    bar(0, block_dim());
    return lanes_of({as_f32(in ? each[0][lane] : 0), in ? each[1][lane] : 0,
                     as_f32(in ? each[2][lane] : 0)});
}

/* silu(gate) * up, to 1e-6. */
BR_DEV float
fast_glu(float gate, float up)
{
    return gate * rcp(1.0f + ex2(gate * -LOG2E)) * up;
}

BR_DEV void
store4(float *p, const float *x)
{
    *(u32x4 *)p = {as_u32(x[0]), as_u32(x[1]), as_u32(x[2]), as_u32(x[3])};
}

/* Columns 4 c .. of row t: as f32, unless nobody reads that, and as f16. */
BR_DEV void
put_row16(const struct br_nd_args &a, u32 t, u32 c, const float *v, float inv)
{
    if (a.y.p)
        store4(row(a.y, t) + c * 4, v);
    *(u32x2 *)(a.xq + tile_at16(a.lows, t, c / 2) + c % 2 * 8) = {
        pack_f16(v[0] * inv, v[1] * inv), pack_f16(v[2] * inv, v[3] * inv)};
}

/* A block a row: what a product is about to read, as f16, and how it comes
 * about; y, unless NULL, has the same as f32. A thread has EACH runs of four
 * columns: one, two, or many of a long row (long code takes longer to fetch than to
 * run, where rows are few).
 *
 *   COPY   x; where `scatter` is set, of the rows that want logits; w: the factors
 *          that the rows' own f16 have, else one of the largest number
 *   GLU    silu(x) * b
 *   SCALE  norm of x
 *   ADD    norm of x + b, which goes to z
 *
 * state: a product follows that makes silu(gate) * up of the row. None of those
 * is larger than the row's squares times `cap`, the largest product of the
 * norms of a gate's row and its up's; so their factor is known before they are. */
template <u32 OP, u32 EACH_>
BR_DEV void
row16(const struct br_nd_args &a)
{
    enum { TWO = OP == BR_ND_GLU || OP == BR_ND_ADD };
    enum { NORM = OP == BR_ND_SCALE || OP == BR_ND_ADD };
    enum { AT_ONCE = EACH_ <= 2 }; /* all of a row is asked for */
    const u32 t = bid(), K = a.x.cols;
    float v[EACH_][4], w[EACH_][4], b[EACH_][4], none;
    struct row_sums s = {};

    grid_go();
#pragma unroll
    for (u32 e = 0; e < EACH_; e++) {
        const u32 k = (e * block_dim() + tid()) * 4;
        for (u32 i = 0; i < 4; i++)
            w[e][i] = 1.0f;
        if (NORM && a.w.p && k < K) /* while the launch ahead ends */
            load4(w[e], a.w.p + k);
    }
    grid_wait();
    const u32 from = a.scatter ? (u32)a.s.want[t] : t;
    const float *x = row(a.x, from);
#pragma unroll
    for (u32 e = 0; e < EACH_ && AT_ONCE; e++) {
        const u32 k = (e * block_dim() + tid()) * 4;
        if (k < K)
            load4(v[e], x + k);
        if (TWO && k < K)
            load4(b[e], row(a.b, t) + k);
    }
#pragma unroll
    for (u32 e = 0; e < EACH_; e++) {
        const u32 k = (e * block_dim() + tid()) * 4;
        if (k >= K)
            break;
        if (!AT_ONCE)
            load4(v[e], x + k);
        if (!AT_ONCE && TWO)
            load4(b[e], row(a.b, t) + k);
#pragma unroll
        for (u32 i = 0; i < 4; i++) {
            if (TWO)
                v[e][i] = OP == BR_ND_GLU ? fast_glu(v[e][i], b[e][i])
                                          : v[e][i] + b[e][i];
            const float u = NORM ? v[e][i] * w[e][i] : v[e][i];
            s.top = max_u32(s.top, bits_of(u));
            s.square = fma_rn(u, u, s.square);
            if (NORM)
                s.sum = fma_rn(v[e][i], v[e][i], s.sum);
        }
        if (OP == BR_ND_ADD)
            store4(row(a.z, t) + k, v[e]);
    }
    s = row_meets(s);
    const float by =
        NORM ? 1.0f / sqrt_rn(s.sum / (float)K + a.eps) : 1.0f;
    float d, inv;
    row_scale(bits_of(as_f32(s.top) * by), &d, &inv);
    if (OP == BR_ND_COPY && a.w.p) {
        d = a.w.p[from];
        inv = as_f32((254u << 23) - as_u32(d)); /* a power of two */
    }
    if (tid() == 0)
        a.xd[t] = d;
    if (tid() == 0 && a.state)
        row_scale(bits_of(s.square * by * by * a.cap), &a.state[t], &none);
#pragma unroll
    for (u32 e = 0; e < EACH_; e++) {
        const u32 c = e * block_dim() + tid(); /* of 8 bytes */
        if (c * 4 >= K)
            break;
#pragma unroll
        for (u32 i = 0; i < 4 && NORM; i++)
            v[e][i] = v[e][i] * by * w[e][i];
        put_row16(a, t, c, v[e], inv);
    }
}
#define ROW16_AS(name, OP, EACH)                                         \
    KERNEL __launch_bounds__(BR_ND_ROW_THREADS) br_nd_row16_##name(ARGS) \
    {                                                                    \
        row16<OP, EACH>(a);                                              \
    }
#define ROW16(name, OP)         \
    ROW16_AS(name, OP, 2)       \
    ROW16_AS(name##_short, OP, 1) \
    ROW16_AS(name##_long, OP, BR_ND_ROW_MOST / BR_ND_ROW_THREADS / 4)
ROW16(copy, BR_ND_COPY)
ROW16(glu, BR_ND_GLU)
ROW16(norm, BR_ND_SCALE)
ROW16(add, BR_ND_ADD)

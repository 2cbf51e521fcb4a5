/* node_states.cuh - opcodes with a state per slot: a part of nodes.cu.
 *
 * A slot's rows are taken one after the other, in the order of the step, by
 * whoever takes its first one: a block for each row begins, and leaves where an
 * earlier row has its slot. The step form defines the bits.
 * SPDX-License-Identifier: Apache-2.0 */

BR_DEV bool
slot_is_new(const struct br_nd_args &a, u32 t)
{
    for (u32 u = 0; u < t; u++)
        if (a.s.slot[u] == a.s.slot[t])
            return false;
    return true;
}
#define EACH_OF_SLOT(u, t)                   \
    for (u32 u = (t); u < a.n_rows; u++)     \
        if (a.s.slot[u] == a.s.slot[t])
BR_DEV float *
slot_state(const struct br_nd_args &a, u32 t)
{
    return a.state + (u64)a.s.slot[t] * a.slot_elems + a.k.first;
}

/* x, w: [cols][kernel], b: a bias or none. The state: the last kernel - 1 rows
 * of x. A thread a column. */
KERNEL
br_nd_conv(ARGS)
{
    const u32 i = bid() * THREADS + tid(), n = a.x.cols, k = a.width;

    if (i >= n || !slot_is_new(a, bid_y()))
        return;
    float *s = slot_state(a, bid_y());
    EACH_OF_SLOT (u, bid_y()) {
        const float x = row(a.x, u)[i];
        float y = 0.0f;

        for (u32 j = 0; j + 1 < k; j++)
            y = fma_rn(a.w.p[i * k + j], s[j * n + i], y);
        y = fma_rn(a.w.p[i * k + k - 1], x, y);
        if (a.b.p)
            y = y + a.b.p[i];
        for (u32 j = 0; j + 2 < k; j++)
            s[j * n + i] = s[(j + 1) * n + i];
        if (k > 1)
            s[(k - 2) * n + i] = x;
        row(a.y, u)[i] = a.op ? ex_act(a.act, y) : y;
    }
}

/* The gated delta rule, a block a head; a thread a column of the state
 * [key][value]. x: q k v, b: alpha, c: beta; w: a, w2: dt_b. */
KERNEL
br_nd_delta(ARGS)
{
    float *q = (float *)dyn_shared(), *k = q + a.head_k;
    const u32 h = bid(), n = a.head_k, hk = a.per_kv;
    const u32 from = a.neighbours ? h % hk : h / (a.heads / hk);
    const float scale = 1.0f / sqrt_rn((float)n);

    if (!slot_is_new(a, bid_y()))
        return;
    float *s = slot_state(a, bid_y()) + (u64)h * n * n;
    EACH_OF_SLOT (u, bid_y()) {
        const float *x = row(a.x, u), *v = x + (u64)(2 * hk + h) * n;
        const float dt = row(a.b, u)[h] + a.w2.p[h];
        const float decay = ex_exp(ex_softplus(dt) * a.w.p[h]);
        const float beta = ex_act(BR_ND_SIGMOID, row(a.c, u)[h]);
        const u32 warp = tid() >> 5;

        bar(0, THREADS); /* q and k have been read */
        if (warp < 2) {
            const float *in = x + (u64)(warp ? hk + from : from) * n;
            float len = 0.0f;

            for (u32 i = tid() & 15; i < n; i += 16)
                len = fma_rn(in[i], in[i], len);
            len = sqrt_rn(lanes16(len));
            len = len > a.eps ? len : a.eps;
            for (u32 i = tid() & 31; i < n; i += 32)
                (warp ? k : q)[i] = warp ? in[i] / len : in[i] / len * scale;
        }
        bar(0, THREADS);
        for (u32 j = tid(); j < n; j += THREADS) {
            float d = 0.0f, y = 0.0f;

            for (u32 i = 0; i < n; i++) {
                const float e = s[(u64)i * n + j] * decay;
                s[(u64)i * n + j] = e;
                d = fma_rn(e, k[i], d);
            }
            d = beta * (v[j] - d);
            for (u32 i = 0; i < n; i++) {
                const float e = fma_rn(k[i], d, s[(u64)i * n + j]);
                s[(u64)i * n + j] = e;
                y = fma_rn(e, q[i], y);
            }
            row(a.y, u)[h * n + j] = y;
        }
    }
}

/* Mamba-2's scan, 16 threads a row of the state. x: [heads][head_k], then b
 * and c: [groups][width]; b: dt; w: a, w2: dt_b, w3: d or none. */
KERNEL
br_nd_scan(ARGS)
{
    const u32 all = a.heads * a.head_k, n = a.width;
    const u32 at = bid() * (THREADS / 16) + (tid() >> 4);
    const u32 o = at < all ? at : all - 1, h = o / a.head_k;
    const u32 g = h / (a.heads / a.e.groups);

    if (!slot_is_new(a, bid_y()))
        return;
    float *s = slot_state(a, bid_y()) + (u64)o * n;
    EACH_OF_SLOT (u, bid_y()) {
        const float *x = row(a.x, u), *b = x + all + (u64)g * n;
        const float *c = x + all + (u64)a.e.groups * n + (u64)g * n;
        const float dt = ex_softplus(row(a.b, u)[h] + a.w2.p[h]);
        const float decay = ex_exp(dt * a.w.p[h]), xd = x[o] * dt;
        float y = 0.0f;

        for (u32 j = tid() & 15; at < all && j < n; j += 16) {
            const float e = fma_rn(b[j], xd, s[j] * decay);
            s[j] = e;
            y = fma_rn(e, c[j], y);
        }
        y = lanes16(y);
        if (a.w3.p)
            y = fma_rn(x[o], a.w3.p[h], y);
        if ((tid() & 15) == 0 && at < all)
            row(a.y, u)[o] = y;
    }
}

/* A norm of x times silu(z), which is b; op: z first, then the norm, whose w
 * has all columns. */
KERNEL
br_nd_gated(ARGS)
{
    __shared__ float factor;
    const u32 t = bid_y(), n = a.width, from = bid() * n;
    const float *x = row(a.x, t) + from, *z = row(a.b, t) + from;
    float sum = 0.0f;

    if (tid() < 32) {
        for (u32 i = tid() & 15; i < n; i += 16) {
            const float v = a.op ? ex_act(BR_ND_SILU, z[i]) * x[i] : x[i];
            sum = fma_rn(v, v, sum);
        }
        sum = lanes16(sum);
        if (tid() == 0)
            factor = 1.0f / sqrt_rn(sum / (float)n + a.eps);
    }
    bar(0, THREADS);
    for (u32 i = tid(); i < n; i += THREADS) {
        float v = (a.op ? ex_act(BR_ND_SILU, z[i]) * x[i] : x[i]) * factor;

        if (a.w.p)
            v = v * a.w.p[a.op ? from + i : i];
        row(a.y, t)[from + i] = a.op ? v : v * ex_act(BR_ND_SILU, z[i]);
    }
}

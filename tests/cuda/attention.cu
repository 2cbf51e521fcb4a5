/* attention.cu - causal attention by tiles with a running softmax, and its
 * gradient, against plain sums on the host and finite differences.
 * SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

enum { HEAD = 16, KEYS = 8 };

/* A thread has a query; keys and values come through shared memory. */
__global__ void
forward(const float *q, const float *k, const float *v, float *o, float *lse,
        int t)
{
    extern __shared__ float tile[];
    float *ks = tile, *vs = tile + KEYS * HEAD;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float m = -INFINITY, sum = 0, acc[HEAD] = {}, mine[HEAD];

    for (int d = 0; d < HEAD; d++)
        mine[d] = i < t ? q[i * HEAD + d] : 0;
    for (int from = 0; from < t; from += KEYS) {
        for (int e = threadIdx.x; e < KEYS * HEAD; e += blockDim.x) {
            bool in = from * HEAD + e < t * HEAD;

            ks[e] = in ? k[from * HEAD + e] : 0;
            vs[e] = in ? v[from * HEAD + e] : 0;
        }
        __syncthreads();
        for (int j = 0; j < KEYS && from + j <= i && i < t; j++) {
            float s = 0, more, scale;

            for (int d = 0; d < HEAD; d++)
                s += mine[d] * ks[j * HEAD + d];
            s *= rsqrtf(HEAD);
            more = fmaxf(m, s);
            scale = expf(m - more);
            sum = sum * scale + expf(s - more);
            for (int d = 0; d < HEAD; d++)
                acc[d] = acc[d] * scale + expf(s - more) * vs[j * HEAD + d];
            m = more;
        }
        __syncthreads();
    }
    if (i >= t)
        return;
    for (int d = 0; d < HEAD; d++)
        o[i * HEAD + d] = acc[d] / sum;
    lse[i] = m + logf(sum);
}

/* Sums into the gradients of keys and values go by atomics. */
__global__ void
backward(const float *q, const float *k, const float *v, const float *o,
         const float *lse, const float *go, float *gq, float *gk, float *gv,
         int t)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float dot = 0;

    if (i >= t)
        return;
    for (int d = 0; d < HEAD; d++)
        dot += go[i * HEAD + d] * o[i * HEAD + d];
    for (int j = 0; j <= i; j++) {
        float s = 0, dp = 0, p, ds;

        for (int d = 0; d < HEAD; d++) {
            s += q[i * HEAD + d] * k[j * HEAD + d];
            dp += go[i * HEAD + d] * v[j * HEAD + d];
        }
        p = expf(s * rsqrtf(HEAD) - lse[i]);
        ds = p * (dp - dot) * rsqrtf(HEAD);
        for (int d = 0; d < HEAD; d++) {
            gq[i * HEAD + d] += ds * k[j * HEAD + d];
            atomicAdd(&gk[j * HEAD + d], ds * q[i * HEAD + d]);
            atomicAdd(&gv[j * HEAD + d], p * go[i * HEAD + d]);
        }
    }
}

typedef std::vector<float> vec;

static double
loss(const vec &q, const vec &k, const vec &v, const vec &go, int t,
     std::vector<double> *out)
{
    double total = 0;

    for (int i = 0; i < t; i++) {
        std::vector<double> p(i + 1);
        double sum = 0;

        for (int j = 0; j <= i; j++) {
            double s = 0;

            for (int d = 0; d < HEAD; d++)
                s += (double)q[i * HEAD + d] * k[j * HEAD + d];
            sum += p[j] = exp(s / sqrt((double)HEAD));
        }
        for (int d = 0; d < HEAD; d++) {
            double o = 0;

            for (int j = 0; j <= i; j++)
                o += p[j] / sum * v[j * HEAD + d];
            if (out)
                out->push_back(o);
            total += o * go[i * HEAD + d];
        }
    }
    return total;
}

int
main()
{
    const int t = 29, n = t * HEAD;
    vec in[4] = {vec(n), vec(n), vec(n), vec(n)}; /* q k v, gradient of o */
    std::vector<double> want;

    for (vec &x : in)
        for (float &f : x)
            f = rnd() * 2 - 1;
    Dev<float> q(in[0]), k(in[1]), v(in[2]), go(in[3]), o(n), lse(t);
    Dev<float> gq(vec(n, 0.0f)), gk(vec(n, 0.0f)), gv(vec(n, 0.0f));

    forward<<<2, 16, 2 * KEYS * HEAD * sizeof(float)>>>(q, k, v, o, lse, t);
    backward<<<1, 32>>>(q, k, v, o, lse, go, gq, gk, gv, t);
    loss(in[0], in[1], in[2], in[3], t, &want);
    vec got = o.get(), grad[3] = {gq.get(), gk.get(), gv.get()};
    for (int i = 0; i < n; i++)
        EXPECT(near(got[i], want[i], 1e-5));
    for (int s = 0; s < 3; s++)
        for (int i = 3; i < n; i += 61) {
            float was = in[s][i];
            double up, down;

            in[s][i] = was + 0.01f;
            up = loss(in[0], in[1], in[2], in[3], t, NULL);
            in[s][i] = was - 0.01f;
            down = loss(in[0], in[1], in[2], in[3], t, NULL);
            in[s][i] = was;
            EXPECT(fabs(grad[s][i] - (up - down) / 0.02) < 1e-3);
        }
    return done();
}

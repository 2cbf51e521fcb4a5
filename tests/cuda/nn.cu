/* nn.cu - kernels of transformers, forward and backward: softmax, layer norm,
 * GELU, attention as written and in tiles, cross entropy, AdamW.
 * SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda.h> /* both APIs in one program */
#include <float.h>
namespace cg = cooperative_groups;
typedef std::vector<float> vec;

static vec random_vec(size_t n)
{
    vec v(n);
    for (float &x : v)
        x = 2 * rnd() - 1;
    return v;
}
static void same(const vec &a, const vec &b, double tol = 1e-5)
{
    for (size_t i = 0; i < b.size(); i++)
        EXPECT(near(a[i], b[i], tol));
}

__global__ void softmax(const float *in, float *out, int c)
{
    extern __shared__ float s[];
    int t = threadIdx.x, lane = t % 32, w = t / 32;
    const float *x = in + blockIdx.x * c;
    float m = -INFINITY, sum = 0;

    for (int i = t; i < c; i += blockDim.x)
        m = fmaxf(m, x[i]);
    for (int o = 16; o; o /= 2)
        m = fmaxf(m, __shfl_xor_sync(~0u, m, o));
    if (lane == 0)
        s[w] = m;
    __syncthreads();
    for (int i = 0; i < blockDim.x / 32; i++)
        m = fmaxf(m, s[i]);
    __syncthreads();
    for (int i = t; i < c; i += blockDim.x)
        sum += expf(x[i] - m);
    for (int o = 16; o; o /= 2)
        sum += __shfl_xor_sync(~0u, sum, o);
    if (lane == 0)
        s[w] = sum;
    __syncthreads();
    sum = 0;
    for (int i = 0; i < blockDim.x / 32; i++)
        sum += s[i];
    for (int i = t; i < c; i += blockDim.x)
        out[blockIdx.x * c + i] = expf(x[i] - m) / sum;
}

__global__ void layernorm(const float *x, const float *g, const float *b,
                          float *out, float *mean, float *rstd, int n, int c)
{
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
    int row = blockIdx.x * warp.meta_group_size() + warp.meta_group_rank();

    if (row >= n)
        return;
    x += row * c;
    float s = 0, q = 0;
    for (int i = warp.thread_rank(); i < c; i += warp.size())
        s += x[i];
    float m = cg::reduce(warp, s, cg::plus<float>()) / c;
    for (int i = warp.thread_rank(); i < c; i += warp.size())
        q += (x[i] - m) * (x[i] - m);
    float r = rsqrtf(cg::reduce(warp, q, cg::plus<float>()) / c + 1e-5f);
    if (warp.thread_rank() == 0) {
        mean[row] = m;
        rstd[row] = r;
    }
    for (int i = warp.thread_rank(); i < c; i += warp.size())
        __stcs(out + row * c + i, (__ldcs(x + i) - m) * r * g[i] + b[i]);
}
__global__ void layernorm_back(const float *x, const float *g,
                               const float *mean, const float *rstd,
                               const float *dout, float *dx, float *dg,
                               float *db, int c)
{
    int row = blockIdx.x, lane = threadIdx.x;
    float a = 0, b = 0;

    for (int i = lane; i < c; i += 32) {
        float n = (x[row * c + i] - mean[row]) * rstd[row];
        float d = g[i] * dout[row * c + i];
        a += d;
        b += d * n;
    }
    for (int o = 16; o; o /= 2) {
        a += __shfl_xor_sync(~0u, a, o);
        b += __shfl_xor_sync(~0u, b, o);
    }
    for (int i = lane; i < c; i += 32) {
        float n = (x[row * c + i] - mean[row]) * rstd[row];
        atomicAdd(&db[i], dout[row * c + i]);
        atomicAdd(&dg[i], n * dout[row * c + i]);
        dx[row * c + i] =
            (g[i] * dout[row * c + i] - a / c - n * b / c) * rstd[row];
    }
}

#define GELU sqrtf(2.0f / (float)M_PI)
__global__ void gelu(const float *in, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n) {
        float x = in[i], cube = 0.044715f * x * x * x;
        out[i] = 0.5f * x * (1.0f + tanhf(GELU * (x + cube)));
    }
}
__global__ void gelu_back(const float *in, const float *dout, float *dx, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n) {
        float x = in[i], t = tanhf(GELU * (x + 0.044715f * x * x * x));
        float c = coshf(GELU * (x + 0.044715f * x * x * x));
        dx[i] = (0.5f * (1 + t) + x * 0.5f / (c * c) * GELU *
                                      (1 + 3 * 0.044715f * x * x)) *
                dout[i];
    }
}

/* One block a row of queries; K and V in tiles, the softmax online. */
template <int D, int T>
__global__ void flash(const float *q, const float *k, const float *v, float *o,
                      int n, bool causal)
{
    __shared__ float ks[T][D], vs[T][D + 1], p[T][T];
    int t = threadIdx.x, row = blockIdx.x * T + t;
    float acc[D] = {0}, m = -FLT_MAX, l = 0, qr[D];

    for (int i = 0; i < D; i++)
        qr[i] = q[row * D + i];
    for (int base = 0; base < n; base += T) {
        for (int i = 0; i < D; i++) {
            ks[t][i] = k[(base + t) * D + i];
            vs[t][i] = v[(base + t) * D + i];
        }
        __syncthreads();
        float most = m;
        for (int j = 0; j < T; j++) {
            float s = 0;
            for (int i = 0; i < D; i++)
                s += qr[i] * ks[j][i];
            s = causal && base + j > row ? -FLT_MAX : s * rsqrtf((float)D);
            p[t][j] = s;
            most = fmaxf(most, s);
        }
        float scale = __expf(m - most);
        l *= scale;
        for (int i = 0; i < D; i++)
            acc[i] *= scale;
        for (int j = 0; j < T; j++) {
            float e = expf(p[t][j] - most);
            l += e;
            for (int i = 0; i < D; i++)
                acc[i] += e * vs[j][i];
        }
        m = most;
        __syncthreads();
    }
    for (int i = 0; i < D; i++)
        o[row * D + i] = acc[i] / l;
}

__global__ void cross_entropy(float *losses, const float *probs,
                              const int *targets, int n, int v)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n)
        losses[i] = -logf(probs[i * v + targets[i]]);
}
__global__ void cross_entropy_back(float *dlogits, const float *probs,
                                   const int *targets, int n, int v)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n * v)
        dlogits[i] += (probs[i] - (i % v == targets[i / v] ? 1.0f : 0.0f)) / n;
}

__global__ void encoder(float4 *out, const int *ids, const float4 *wte,
                        const float4 *wpe, int t, int c4)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, row = i / c4, c = i % c4;
    float4 a = wte[ids[row] * c4 + c], b = __ldg(&wpe[row % t * c4 + c]);

    out[i] = make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

struct Adam {
    float rate, beta1, beta2, eps, decay;
    int step;
};
__global__ void adamw(float *w, const float *g, float *m, float *v, Adam a,
                      int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i >= n)
        return;
    m[i] = a.beta1 * m[i] + (1 - a.beta1) * g[i];
    v[i] = a.beta2 * v[i] + (1 - a.beta2) * g[i] * g[i];
    float mh = m[i] / (1 - powf(a.beta1, a.step));
    float vh = v[i] / (1 - powf(a.beta2, (float)a.step));
    w[i] -= a.rate * (mh / (sqrtf(vh) + a.eps) + a.decay * w[i]);
}

static void rows()
{
    const int n = 6, c = 70;
    vec x = random_vec(n * c), g = random_vec(c), b = random_vec(c), want(n * c);
    Dev<float> dx(x), out(n * c), dg(g), db(b), mean(n), rstd(n);
    softmax<<<n, 64, 2 * sizeof(float)>>>(dx, out, c);
    for (int r = 0; r < n; r++) {
        double s = 0;
        for (int i = 0; i < c; i++)
            s += exp((double)x[r * c + i]);
        for (int i = 0; i < c; i++)
            want[r * c + i] = (float)(exp((double)x[r * c + i]) / s);
    }
    same(out.get(), want, 1e-6);
    layernorm<<<2, 96>>>(dx, dg, db, out, mean, rstd, n, c);
    vec dout = random_vec(n * c), wdx(n * c), wdg(c, 0), wdb(c, 0);
    for (int r = 0; r < n; r++) {
        double m = 0, v = 0, a = 0, q = 0;
        for (int i = 0; i < c; i++)
            m += x[r * c + i] / (double)c;
        for (int i = 0; i < c; i++)
            v += (x[r * c + i] - m) * (x[r * c + i] - m) / c;
        double rs = 1 / sqrt(v + 1e-5);
        for (int i = 0; i < c; i++) {
            double k = (x[r * c + i] - m) * rs;
            want[r * c + i] = (float)(k * g[i] + b[i]);
            a += g[i] * dout[r * c + i] / c;
            q += g[i] * dout[r * c + i] * k / c;
            wdg[i] += (float)(k * dout[r * c + i]);
            wdb[i] += dout[r * c + i];
        }
        for (int i = 0; i < c; i++)
            wdx[r * c + i] =
                (float)((g[i] * dout[r * c + i] - a -
                         (x[r * c + i] - m) * rs * q) * rs);
    }
    same(out.get(), want);
    Dev<float> ddout(dout), ddx(n * c), ddg(vec(c, 0)), ddb(vec(c, 0));
    layernorm_back<<<n, 32>>>(dx, dg, mean, rstd, ddout, ddx, ddg, ddb, c);
    same(ddx.get(), wdx, 1e-4);
    same(ddg.get(), wdg, 1e-4);
    same(ddb.get(), wdb, 1e-4);
}

static void attention()
{
    const int n = 32, D = 8, T = 16;
    vec q = random_vec(n * D), k = random_vec(n * D), v = random_vec(n * D);
    Dev<float> dq(q), dk(k), dv(v), o(n * D);
    for (int causal = 0; causal < 2; causal++) {
        vec want(n * D);
        for (int r = 0; r < n; r++) {
            std::vector<double> s(n);
            double sum = 0;
            for (int j = 0; j < n; j++) {
                for (int i = 0; i < D; i++)
                    s[j] += q[r * D + i] * k[j * D + i];
                s[j] = causal && j > r ? 0 : exp(s[j] / sqrt((double)D));
                sum += s[j];
            }
            for (int i = 0; i < D; i++) {
                double a = 0;
                for (int j = 0; j < n; j++)
                    a += s[j] * v[j * D + i];
                want[r * D + i] = (float)(a / sum);
            }
        }
        flash<D, T><<<n / T, T>>>(dq, dk, dv, o, n, causal);
        same(o.get(), want);
    }
}

static void losses()
{
    const int n = 5, v = 11;
    vec p = random_vec(n * v);
    std::vector<int> t = {1, 10, 3, 0, 7};
    for (float &x : p)
        x = x * x + 0.01f;
    Dev<float> dp(p), l(n), dl(vec(n * v, 1));
    Dev<int> dt(t);
    cross_entropy<<<1, 32>>>(l, dp, dt, n, v);
    cross_entropy_back<<<2, 32>>>(dl, dp, dt, n, v);
    vec a = l.get(), b = dl.get();
    for (int i = 0; i < n; i++)
        EXPECT(near(a[i], -log((double)p[i * v + t[i]]), 1e-6));
    for (int i = 0; i < n * v; i++)
        EXPECT(near(b[i], 1 + (p[i] - (i % v == t[i / v])) / n, 1e-6));

    vec wte = random_vec(16 * 8), wpe = random_vec(4 * 8);
    std::vector<int> ids = {3, 15, 0, 7, 7, 1, 2, 9};
    Dev<float> de(wte), dq(wpe), out(8 * 8);
    Dev<int> di(ids);
    encoder<<<2, 8>>>((float4 *)out.p, di, (float4 *)de.p, (float4 *)dq.p, 4,
                      2);
    vec e = out.get();
    for (int i = 0; i < 64; i++)
        EXPECT(e[i] == wte[ids[i / 8] * 8 + i % 8] + wpe[i / 8 % 4 * 8 + i % 8]);
}

static void steps()
{
    const int n = 100;
    vec x = random_vec(n), d = random_vec(n), zero(n, 0);
    for (float &v : x)
        v *= 4;
    Dev<float> dx(x), dd(d), out(n), back(n), m(zero), v(zero);
    gelu<<<4, 32>>>(dx, out, n);
    gelu_back<<<4, 32>>>(dx, dd, back, n);
    vec a = out.get(), b = back.get();
    auto f = [](double t) {
        return 0.5 * t *
               (1 + tanh(sqrt(2 / M_PI) * (t + 0.044715 * t * t * t)));
    };
    for (int i = 0; i < n; i++) {
        EXPECT(near(a[i], f(x[i]), 1e-6));
        EXPECT(near(b[i], d[i] * (f(x[i] + 1e-5) - f(x[i] - 1e-5)) / 2e-5,
                    1e-4));
    }
    Adam adam = {0.1f, 0.9f, 0.999f, 1e-8f, 0.01f, 1};
    adamw<<<4, 32>>>(dx, dd, m, v, adam, n);
    vec w = dx.get();
    for (int i = 0; i < n; i++) /* the first step goes by the sign alone */
        EXPECT(near(w[i], x[i] - 0.1 * ((d[i] > 0 ? 1 : -1) + 0.01 * x[i]),
                    1e-4));
}

int main()
{
    rows();
    attention();
    losses();
    steps();
    return done();
}

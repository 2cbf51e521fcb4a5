/* gpt2.cu - one layer of GPT-2, forward and backward, trained: embeddings,
 * norms, attention of two heads, GELU, the head's softmax. The gradient is held
 * against differences of the loss, and the loss has to fall.
 * SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

enum { B = 2, T = 8, C = 16, NH = 2, HS = C / NH, V = 12, ROWS = B * T };

/* Parameters, one after another. */
enum {
    WTE = 0,
    WPE = WTE + V * C,
    G1 = WPE + T * C,
    B1 = G1 + C,
    QKVW = B1 + C,
    QKVB = QKVW + 3 * C * C,
    PW = QKVB + 3 * C,
    PB = PW + C * C,
    G2 = PB + C,
    B2 = G2 + C,
    FW = B2 + C,
    FB = FW + 4 * C * C,
    OW = FB + 4 * C,
    OB = OW + 4 * C * C,
    GF = OB + C,
    BF = GF + C,
    PARAMS = BF + C
};
struct Acts { /* of the forward pass; a second one holds gradients */
    float *x0, *n1, *qkv, *att, *mix, *proj, *x1, *n2, *fc, *act, *out, *x2,
        *nf, *logits, *probs;
};

__global__ void
embed(const int *ids, const float *p, float *x)
{
    int r = blockIdx.x, c = threadIdx.x;

    x[r * C + c] = p[WTE + ids[r] * C + c] + p[WPE + r % T * C + c];
}
__global__ void
embed_back(const int *ids, float *g, const float *gx)
{
    int r = blockIdx.x, c = threadIdx.x;

    atomicAdd(&g[WTE + ids[r] * C + c], gx[r * C + c]);
    atomicAdd(&g[WPE + r % T * C + c], gx[r * C + c]);
}
__device__ float
all(float v)
{
    for (int by = 16; by; by /= 2)
        v += __shfl_xor_sync(0xffffffff, v, by);
    return v;
}
/* A warp a row; C is no more than a warp. */
__global__ void
norm(const float *x, const float *g, const float *b, float *y)
{
    int c = threadIdx.x;
    float v = c < C ? x[blockIdx.x * C + c] : 0, mean = all(v) / C;
    float d = c < C ? v - mean : 0, rstd = rsqrtf(all(d * d) / C + 1e-5f);

    if (c < C)
        y[blockIdx.x * C + c] = d * rstd * g[c] + b[c];
}
__global__ void
norm_back(const float *x, const float *g, const float *gy, float *gx, float *gg,
          float *gb)
{
    int c = threadIdx.x, at = blockIdx.x * C + c;
    float v = c < C ? x[at] : 0, mean = all(v) / C;
    float d = c < C ? v - mean : 0, rstd = rsqrtf(all(d * d) / C + 1e-5f);
    float n = d * rstd, gn = c < C ? gy[at] * g[c] : 0;
    float m1 = all(gn) / C, m2 = all(gn * n) / C;

    if (c < C) {
        gx[at] += rstd * (gn - m1 - n * m2);
        atomicAdd(&gg[c], gy[at] * n);
        atomicAdd(&gb[c], gy[at]);
    }
}
/* y[r][o] = b[o] + sum of w[o][i] x[r][i] */
__global__ void
linear(const float *x, const float *w, const float *b, float *y, int in,
       int outs)
{
    int o = blockIdx.y * blockDim.x + threadIdx.x, r = blockIdx.x;
    float sum = b && o < outs ? b[o] : 0;

    if (o >= outs)
        return;
    for (int i = 0; i < in; i++)
        sum += w[o * in + i] * x[r * in + i];
    y[r * outs + o] = sum;
}
__global__ void
linear_back(const float *x, const float *w, const float *gy, float *gx,
            float *gw, float *gb, int in, int outs)
{
    int r = blockIdx.x;

    for (int i = threadIdx.x; i < in; i += blockDim.x) {
        float sum = 0;

        for (int o = 0; o < outs; o++) {
            sum += w[o * in + i] * gy[r * outs + o];
            atomicAdd(&gw[o * in + i], x[r * in + i] * gy[r * outs + o]);
        }
        gx[r * in + i] += sum;
    }
    for (int o = threadIdx.x; gb && o < outs; o += blockDim.x)
        atomicAdd(&gb[o], gy[r * outs + o]);
}
/* A thread a query and head: causal softmax, then the mixture of values. */
__global__ void
attend(const float *qkv, float *att, float *mix)
{
    int b = blockIdx.x, h = blockIdx.y, t = threadIdx.x;
    const float *q = qkv + (b * T + t) * 3 * C + h * HS;
    float *a = att + ((b * NH + h) * T + t) * T, sum = 0, most = -INFINITY;

    for (int j = 0; j < T; j++) {
        const float *k = qkv + (b * T + j) * 3 * C + C + h * HS;
        float s = 0;

        for (int d = 0; d < HS; d++)
            s += q[d] * k[d];
        a[j] = j <= t ? s * rsqrtf(HS) : -INFINITY;
        most = fmaxf(most, a[j]);
    }
    for (int j = 0; j < T; j++)
        sum += a[j] = expf(a[j] - most);
    for (int d = 0; d < HS; d++) {
        float o = 0;

        for (int j = 0; j <= t; j++)
            o += a[j] / sum * qkv[(b * T + j) * 3 * C + 2 * C + h * HS + d];
        mix[(b * T + t) * C + h * HS + d] = o;
    }
    for (int j = 0; j < T; j++)
        a[j] /= sum;
}
__global__ void
attend_back(const float *qkv, const float *att, const float *gmix, float *gqkv)
{
    int b = blockIdx.x, h = blockIdx.y, t = threadIdx.x;
    const float *a = att + ((b * NH + h) * T + t) * T;
    const float *go = gmix + (b * T + t) * C + h * HS;
    int me = (b * T + t) * 3 * C + h * HS;
    float ga[T], dot = 0;

    for (int j = 0; j <= t; j++) {
        int at = (b * T + j) * 3 * C + h * HS;

        ga[j] = 0;
        for (int d = 0; d < HS; d++) {
            ga[j] += go[d] * qkv[at + 2 * C + d];
            atomicAdd(&gqkv[at + 2 * C + d], a[j] * go[d]);
        }
        dot += a[j] * ga[j];
    }
    for (int j = 0; j <= t; j++) {
        int at = (b * T + j) * 3 * C + h * HS;
        float gs = a[j] * (ga[j] - dot) * rsqrtf(HS);

        for (int d = 0; d < HS; d++) {
            atomicAdd(&gqkv[me + d], gs * qkv[at + C + d]);
            atomicAdd(&gqkv[at + C + d], gs * qkv[me + d]);
        }
    }
}
__global__ void
gelu(const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = x[i], u = 0.7978845608f * (v + 0.044715f * v * v * v);

    y[i] = 0.5f * v * (1 + tanhf(u));
}
__global__ void
gelu_back(const float *x, const float *gy, float *gx)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = x[i], t = tanhf(0.7978845608f * (v + 0.044715f * v * v * v));
    float du = 0.7978845608f * (1 + 3 * 0.044715f * v * v);

    gx[i] += gy[i] * (0.5f * (1 + t) + 0.5f * v * (1 - t * t) * du);
}
__global__ void
add(const float *a, const float *b, float *y)
{
    y[blockIdx.x * C + threadIdx.x] =
        a[blockIdx.x * C + threadIdx.x] + b[blockIdx.x * C + threadIdx.x];
}
__global__ void
classify(const float *logits, const int *want, float *probs, float *glogits,
         float *loss)
{
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    const float *l = logits + r * V;
    float most = -INFINITY, sum = 0;

    if (r >= ROWS)
        return;
    for (int v = 0; v < V; v++)
        most = fmaxf(most, l[v]);
    for (int v = 0; v < V; v++)
        sum += probs[r * V + v] = expf(l[v] - most);
    for (int v = 0; v < V; v++) {
        probs[r * V + v] /= sum;
        glogits[r * V + v] = (probs[r * V + v] - (v == want[r])) / ROWS;
    }
    atomicAdd(loss, -logf(probs[r * V + want[r]]) / ROWS);
}
__global__ void
step(float *p, const float *g, float *m, float *v, float rate, int t)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i >= PARAMS)
        return;
    m[i] = 0.9f * m[i] + 0.1f * g[i];
    v[i] = 0.99f * v[i] + 0.01f * g[i] * g[i];
    p[i] -= rate * (m[i] / (1 - powf(0.9f, t))) /
            (sqrtf(v[i] / (1 - powf(0.99f, t))) + 1e-8f);
}

static Acts
carve(float *p)
{
    Acts a;
    float **at[] = {&a.x0,   &a.n1, &a.qkv, &a.att,    &a.mix,
                    &a.proj, &a.x1, &a.n2,  &a.fc,     &a.act,
                    &a.out,  &a.x2, &a.nf,  &a.logits, &a.probs};
    const int n[] = {C,     C,     3 * C, NH * T, C, C, C, C,
                     4 * C, 4 * C, C,     C,      C, V, V};

    for (int k = 0; k < 15; k++) {
        *at[k] = p;
        p += ROWS * n[k];
    }
    return a;
}
static float
forward(const float *p, const int *ids, const int *want, Acts a, Acts g,
        float *loss)
{
    float l;

    embed<<<ROWS, C>>>(ids, p, a.x0);
    norm<<<ROWS, 32>>>(a.x0, p + G1, p + B1, a.n1);
    linear<<<dim3(ROWS, 3), C>>>(a.n1, p + QKVW, p + QKVB, a.qkv, C, 3 * C);
    attend<<<dim3(B, NH), T>>>(a.qkv, a.att, a.mix);
    linear<<<ROWS, C>>>(a.mix, p + PW, p + PB, a.proj, C, C);
    add<<<ROWS, C>>>(a.x0, a.proj, a.x1);
    norm<<<ROWS, 32>>>(a.x1, p + G2, p + B2, a.n2);
    linear<<<dim3(ROWS, 4), C>>>(a.n2, p + FW, p + FB, a.fc, C, 4 * C);
    gelu<<<ROWS, 4 * C>>>(a.fc, a.act);
    linear<<<ROWS, C>>>(a.act, p + OW, p + OB, a.out, 4 * C, C);
    add<<<ROWS, C>>>(a.x1, a.out, a.x2);
    norm<<<ROWS, 32>>>(a.x2, p + GF, p + BF, a.nf);
    linear<<<ROWS, 32>>>(a.nf, p + WTE, NULL, a.logits, C, V);
    CHECK(cudaMemsetAsync(loss, 0, sizeof l));
    classify<<<1, 32>>>(a.logits, want, a.probs, g.logits, loss);
    CHECK(cudaMemcpy(&l, loss, sizeof l, cudaMemcpyDeviceToHost));
    return l;
}
/* Where two ways meet, their gradients are added to what is there. */
static void
backward(const float *p, float *gp, const int *ids, Acts a, Acts g)
{
    linear_back<<<ROWS, 32>>>(a.nf, p + WTE, g.logits, g.nf, gp + WTE, NULL, C,
                              V);
    norm_back<<<ROWS, 32>>>(a.x2, p + GF, g.nf, g.x2, gp + GF, gp + BF);
    linear_back<<<ROWS, 32>>>(a.act, p + OW, g.x2, g.act, gp + OW, gp + OB,
                              4 * C, C);
    gelu_back<<<ROWS, 4 * C>>>(a.fc, g.act, g.fc);
    linear_back<<<ROWS, 32>>>(a.n2, p + FW, g.fc, g.n2, gp + FW, gp + FB, C,
                              4 * C);
    add<<<ROWS, C>>>(g.x1, g.x2, g.x1);
    norm_back<<<ROWS, 32>>>(a.x1, p + G2, g.n2, g.x1, gp + G2, gp + B2);
    linear_back<<<ROWS, 32>>>(a.mix, p + PW, g.x1, g.mix, gp + PW, gp + PB, C,
                              C);
    attend_back<<<dim3(B, NH), T>>>(a.qkv, a.att, g.mix, g.qkv);
    linear_back<<<ROWS, 32>>>(a.n1, p + QKVW, g.qkv, g.n1, gp + QKVW, gp + QKVB,
                              C, 3 * C);
    add<<<ROWS, C>>>(g.x0, g.x1, g.x0);
    norm_back<<<ROWS, 32>>>(a.x0, p + G1, g.n1, g.x0, gp + G1, gp + B1);
    embed_back<<<ROWS, C>>>(ids, gp, g.x0);
}

int
main()
{
    const size_t acts = ROWS * (22 * C + NH * T + 2 * V);
    std::vector<float> p(PARAMS), grad;
    std::vector<int> ids(ROWS), want(ROWS);
    const int probes[] = {WTE + 5,    WPE + 9, G1 + 3,   QKVW + 40,
                          QKVW + 700, PW + 77, FW + 500, OB + 7};

    for (float &f : p)
        f = (rnd() - 0.5f) * 0.6f;
    for (int k : {G1, G2, GF})
        for (int c = 0; c < C; c++)
            p[k + c] = 1;
    for (int i = 0; i < ROWS; i++) {
        ids[i] = (i * 5 + i / T) % V;
        want[i] = (ids[i] * 7 + 3) % V;
    }
    Dev<float> dp(p), dg(PARAMS), m(std::vector<float>(PARAMS, 0.0f)),
        v(std::vector<float>(PARAMS, 0.0f)), da(acts), dga(acts), loss(1);
    Dev<int> di(ids), dw(want);
    Acts a = carve(da), g = carve(dga);
    float first = 0, l = 0;

    for (int t = 1; t <= 6; t++) {
        CHECK(cudaMemset(dg, 0, PARAMS * sizeof(float)));
        CHECK(cudaMemset(dga, 0, acts * sizeof(float)));
        l = forward(dp, di, dw, a, g, loss);
        backward(dp, dg, di, a, g);
        if (t == 1) {
            first = l;
            grad = dg.get();
            for (int k : probes) {
                float e = 4e-3f, x[2] = {p[k] + e, p[k] - e}, two[2];

                for (int s = 0; s < 2; s++) {
                    CHECK(cudaMemcpy(dp + k, &x[s], 4, cudaMemcpyHostToDevice));
                    two[s] = forward(dp, di, dw, a, g, loss);
                }
                CHECK(cudaMemcpy(dp + k, &p[k], 4, cudaMemcpyHostToDevice));
                EXPECT(fabs(grad[k] - (two[0] - two[1]) / (2 * e)) <
                       2e-3 + 0.02 * fabs(grad[k]));
            }
        }
        step<<<(PARAMS + 127) / 128, 128>>>(dp, dg, m, v, 0.03f, t);
    }
    EXPECT(first > 1.5f && l < 0.8f * first);
    return done();
}

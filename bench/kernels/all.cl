/* all.cl - five.cu and more.cu in OpenCL C, for `make bench-pocl`.
 * SPDX-License-Identifier: Apache-2.0 */
#define THREADS 256
#define TILE 16
#define BARRIER barrier(CLK_LOCAL_MEM_FENCE)

kernel void
vadd(global const float *a, global const float *b, global float *c, int n)
{
    int i = get_global_id(0);

    if (i < n)
        c[i] = a[i] + b[i];
}

kernel void
saxpy(global const float *x, global float *y, float a, int n)
{
    int i = get_global_id(0);

    if (i < n)
        y[i] = a * x[i] + y[i];
}

kernel void
sgemm(global const float *a, global const float *b, global float *c, int n)
{
    local float as[TILE][TILE], bs[TILE][TILE];
    int tx = get_local_id(0), ty = get_local_id(1);
    int row = get_group_id(1) * TILE + ty, col = get_group_id(0) * TILE + tx;
    float sum = 0;

    for (int t = 0; t < n; t += TILE) {
        as[ty][tx] = a[row * n + t + tx];
        bs[ty][tx] = b[(t + ty) * n + col];
        BARRIER;
        for (int k = 0; k < TILE; k++)
            sum += as[ty][k] * bs[k][tx];
        BARRIER;
    }
    c[row * n + col] = sum;
}

kernel void
softmax(global const float *x, global float *y, int cols)
{
    local float s[THREADS];
    global const float *in = x + (size_t)get_group_id(0) * cols;
    global float *out = y + (size_t)get_group_id(0) * cols;
    float m = -1e30f, sum = 0;
    int t = get_local_id(0);

    for (int i = t; i < cols; i += THREADS)
        m = fmax(m, in[i]);
    BARRIER;
    s[t] = m;
    for (int h = THREADS / 2; h; h /= 2) {
        BARRIER;
        if (t < h)
            s[t] = fmax(s[t], s[t + h]);
    }
    BARRIER;
    m = s[0];
    for (int i = t; i < cols; i += THREADS) {
        float e = native_exp(in[i] - m);

        out[i] = e;
        sum += e;
    }
    BARRIER;
    s[t] = sum;
    for (int h = THREADS / 2; h; h /= 2) {
        BARRIER;
        if (t < h)
            s[t] = s[t] + s[t + h];
    }
    BARRIER;
    sum = 1 / s[0];
    for (int i = t; i < cols; i += THREADS)
        out[i] *= sum;
}

kernel void
nbody(global const float4 *p, global float4 *acc, int n)
{
    local float4 s[THREADS];
    int i = get_global_id(0);
    float4 me = p[i];
    float ax = 0, ay = 0, az = 0;

    for (int t = 0; t < n; t += THREADS) {
        s[get_local_id(0)] = p[t + get_local_id(0)];
        BARRIER;
        for (int k = 0; k < THREADS; k++) {
            float dx = s[k].x - me.x, dy = s[k].y - me.y, dz = s[k].z - me.z;
            float d = dx * dx + dy * dy + dz * dz + 0.01f;
            float r = native_rsqrt(d), f = s[k].w * r * r * r;

            ax += dx * f;
            ay += dy * f;
            az += dz * f;
        }
        BARRIER;
    }
    acc[i] = (float4)(ax, ay, az, 0);
}

kernel void
transpose(global const float *in, global float *out, int n)
{
    local float s[TILE][TILE + 1];
    int x = get_group_id(0) * TILE + get_local_id(0);
    int y = get_group_id(1) * TILE + get_local_id(1);

    s[get_local_id(1)][get_local_id(0)] = in[y * n + x];
    BARRIER;
    x = get_group_id(1) * TILE + get_local_id(0);
    y = get_group_id(0) * TILE + get_local_id(1);
    out[y * n + x] = s[get_local_id(0)][get_local_id(1)];
}

kernel void
reduce(global const float *in, global float *out)
{
    local float s[THREADS];
    int t = get_local_id(0), i = get_group_id(0) * THREADS * 2 + t;

    s[t] = in[i] + in[i + THREADS];
    for (int h = THREADS / 2; h; h /= 2) {
        BARRIER;
        if (t < h)
            s[t] += s[t + h];
    }
    if (t == 0)
        out[get_group_id(0)] = s[0];
}

kernel void
scan(global const float *in, global float *out)
{
    local float s[2][THREADS];
    int t = get_local_id(0), i = get_group_id(0) * THREADS + t, at = 0;

    s[0][t] = in[i];
    BARRIER;
    for (int d = 1; d < THREADS; d *= 2) {
        s[!at][t] = t >= d ? s[at][t] + s[at][t - d] : s[at][t];
        at = !at;
        BARRIER;
    }
    out[i] = s[at][t];
}

kernel void
blelloch(global const float *in, global float *out)
{
    local float s[2 * THREADS];
    int t = get_local_id(0), base = get_group_id(0) * THREADS * 2, by = 1;

    s[2 * t] = in[base + 2 * t];
    s[2 * t + 1] = in[base + 2 * t + 1];
    for (int d = THREADS; d; d /= 2) {
        BARRIER;
        if (t < d)
            s[by * (2 * t + 2) - 1] += s[by * (2 * t + 1) - 1];
        by *= 2;
    }
    if (t == 0)
        s[2 * THREADS - 1] = 0;
    for (int d = 1; d < 2 * THREADS; d *= 2) {
        by /= 2;
        BARRIER;
        if (t < d) {
            float x = s[by * (2 * t + 1) - 1];

            s[by * (2 * t + 1) - 1] = s[by * (2 * t + 2) - 1];
            s[by * (2 * t + 2) - 1] += x;
        }
    }
    BARRIER;
    out[base + 2 * t] = s[2 * t];
    out[base + 2 * t + 1] = s[2 * t + 1];
}

kernel void
histogram(global const float *in, global int *out)
{
    local int s[256];
    int t = get_local_id(0), base = get_group_id(0) * THREADS * 16;

    s[t] = 0;
    BARRIER;
    for (int k = 0; k < 16; k++)
        atomic_inc(&s[(int)(in[base + k * THREADS + t] * 255) & 255]);
    BARRIER;
    out[get_group_id(0) * 256 + t] = s[t];
}

kernel void
bitonic(global const float *in, global float *out)
{
    local float s[2 * THREADS];
    int t = get_local_id(0), base = get_group_id(0) * THREADS * 2;

    s[t] = in[base + t];
    s[t + THREADS] = in[base + t + THREADS];
    for (int size = 2; size <= 2 * THREADS; size *= 2)
        for (int d = size / 2; d; d /= 2) {
            int a = 2 * t - (t & (d - 1)), b = a + d;
            bool up = (a & size) == 0;
            float x, y;

            BARRIER;
            x = s[a];
            y = s[b];
            if ((x > y) == up) {
                s[a] = y;
                s[b] = x;
            }
        }
    BARRIER;
    out[base + t] = s[t];
    out[base + t + THREADS] = s[t + THREADS];
}

kernel void
stencil(global const float *in, global float *out, int n)
{
    local float s[THREADS + 8];
    int t = get_local_id(0), i = get_global_id(0);
    float sum = 0;

    s[t + 4] = in[i];
    if (t < 4) {
        s[t] = i < 4 ? 0 : in[i - 4];
        s[t + THREADS + 4] = i + THREADS < n ? in[i + THREADS] : 0;
    }
    BARRIER;
    for (int k = 0; k < 9; k++)
        sum += s[t + k];
    out[i] = sum;
}

/* ---- what more.cu does by shuffles ---------------------------------------- */

/* The sum of the 32 that t is one of. */
static float
row_sum(local float *s, int t, float v)
{
    int first = t & ~31;

    BARRIER;
    s[t] = v;
    for (int d = 16; d; d /= 2) {
        BARRIER;
        if ((t & 31) < d)
            s[t] += s[t + d];
    }
    BARRIER;
    return s[first];
}

kernel void
warpsum(global const float *in, global float *out)
{
    local float s[THREADS], sums[THREADS / 32];
    int t = get_local_id(0), i = get_group_id(0) * THREADS * 2 + t;
    float v = row_sum(s, t, in[i] + in[i + THREADS]);

    if (t % 32 == 0)
        sums[t / 32] = v;
    BARRIER;
    if (t == 0) {
        v = 0;
        for (int k = 0; k < THREADS / 32; k++)
            v += sums[k];
        out[get_group_id(0)] = v;
    }
}

kernel void
warpscan(global const float *in, global float *out)
{
    local float s[2][THREADS];
    int t = get_local_id(0), i = get_global_id(0), at = 0;

    s[0][t] = in[i];
    BARRIER;
    for (int d = 1; d < 32; d *= 2) {
        s[!at][t] = (t & 31) >= d ? s[at][t] + s[at][t - d] : s[at][t];
        at = !at;
        BARRIER;
    }
    out[i] = s[at][t];
}

kernel void
warpnorm(global const float *in, global float *out)
{
    local float s[THREADS];
    int t = get_local_id(0), i = get_global_id(0);
    float v = in[i], d = v - row_sum(s, t, v) / 32;

    out[i] = d * native_rsqrt(row_sum(s, t, d * d) / 32 + 1e-5f);
}

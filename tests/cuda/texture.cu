/* texture.cu - arrays, texture objects and references, surfaces.
 *
 * What a filter gives is compared with the same mixture in double on the host.
 * SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include <string.h>

enum { W = 9, H = 6, D = 4 };

texture<float, 2, cudaReadModeElementType> ref_plane;
static texture<unsigned char, 1, cudaReadModeNormalizedFloat> ref_bytes;
texture<int2, 1> ref_pairs;
surface<void, 2> ref_out;

__global__ void
objects(cudaTextureObject_t t, const float2 *at, float *r, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n)
        r[i] = tex2D<float>(t, at[i].x, at[i].y);
}
__global__ void
references(float *plane, float *bytes, int *pairs, int n)
{
    int i = threadIdx.x;

    if (i < n) {
        plane[i] = tex2D(ref_plane, i % W + 0.5f, i / W + 0.5f);
        bytes[i] = tex1Dfetch(ref_bytes, i);
        pairs[i] = tex1Dfetch(ref_pairs, i).x * 3 + tex1Dfetch(ref_pairs, i).y;
    }
}
__global__ void
volume(cudaTextureObject_t t, float *r)
{
    r[threadIdx.x] =
        tex3D<float>(t, threadIdx.x % W + 0.25f, 2.75f, threadIdx.x / W + 0.5f);
}
__global__ void
layers(cudaTextureObject_t t, float4 *r)
{
    float4 v;

    tex2DLayered(&v, t, threadIdx.x % W + 0.5f, threadIdx.x / W + 0.5f, 2);
    r[threadIdx.x] = v;
}
__global__ void
gathers(cudaTextureObject_t t, float4 *r)
{
    *r = tex2Dgather<float4>(t, 3.0f, 2.0f, 0);
}
__global__ void
turn(cudaSurfaceObject_t in)
{
    int x = threadIdx.x, y = threadIdx.y;
    uchar4 v = surf2Dread<uchar4>(in, x * 4, y);

    v.w = (unsigned char)(x + y);
    surf2Dwrite(make_uchar4(v.w, v.z, v.y, v.x), ref_out, x * 4, y);
    surf2Dwrite(make_uchar4(1, 2, 3, 4), ref_out, W * 4, y,
                cudaBoundaryModeZero); /* nowhere */
}
__global__ void
beyond(cudaSurfaceObject_t s)
{
    surf2Dwrite(1, s, W * 4, 0);
}

/* ---- the same on the host ------------------------------------------------ */

static std::vector<float>
plane_of(int planes)
{
    std::vector<float> v((size_t)W * H * planes);

    for (float &f : v)
        f = rnd();
    return v;
}

static double
texel(const std::vector<float> &v, int x, int y, cudaTextureAddressMode mode)
{
    int at[2] = {x, y}, n[2] = {W, H};

    for (int k = 0; k < 2; k++) {
        int i = at[k], m = n[k];

        if (mode == cudaAddressModeClamp)
            i = i < 0 ? 0 : i >= m ? m - 1 : i;
        if (mode == cudaAddressModeWrap)
            i = ((i % m) + m) % m;
        if (mode == cudaAddressModeMirror) {
            i = ((i % (2 * m)) + 2 * m) % (2 * m);
            i = i < m ? i : 2 * m - 1 - i;
        }
        if (i < 0 || i >= m)
            return 0.75; /* the border's colour */
        at[k] = i;
    }
    return v[(size_t)at[1] * W + at[0]];
}

static double
sample(const std::vector<float> &v, double x, double y,
       const cudaTextureDesc &d)
{
    cudaTextureAddressMode m = d.addressMode[0];

    if (d.normalizedCoords) {
        x *= W;
        y *= H;
    }
    if (d.filterMode == cudaFilterModePoint)
        return texel(v, (int)floor(x), (int)floor(y), m);
    x -= 0.5;
    y -= 0.5;
    int i = (int)floor(x), j = (int)floor(y);
    double a = x - i, b = y - j;

    return (1 - a) * (1 - b) * texel(v, i, j, m) +
           a * (1 - b) * texel(v, i + 1, j, m) +
           (1 - a) * b * texel(v, i, j + 1, m) +
           a * b * texel(v, i + 1, j + 1, m);
}

/* ---- tests ---------------------------------------------------------------- */

static void
modes()
{
    const int n = 300;
    std::vector<float> v = plane_of(1);
    std::vector<float2> at(n);
    cudaChannelFormatDesc f = cudaCreateChannelDesc<float>();
    cudaResourceDesc r = {};
    cudaArray_t a;
    Dev<float> out(n);

    CHECK(cudaMallocArray(&a, &f, W, H));
    CHECK(cudaMemcpy2DToArray(a, 0, 0, v.data(), W * 4, W * 4, H,
                              cudaMemcpyHostToDevice));
    r.resType = cudaResourceTypeArray;
    r.res.array.array = a;
    for (int k = 0; k < 12; k++) {
        cudaTextureDesc d = {};
        cudaTextureObject_t t;
        bool norm = k % 2 == 1;

        d.addressMode[0] = d.addressMode[1] = k < 4   ? cudaAddressModeClamp
                                              : k < 8 ? cudaAddressModeBorder
                                              : k % 4 < 2
                                                  ? cudaAddressModeWrap
                                                  : cudaAddressModeMirror;
        if (k >= 8)
            norm = true;
        d.filterMode = (k >> (k < 8 ? 1 : 0)) % 2 ? cudaFilterModeLinear
                                                  : cudaFilterModePoint;
        d.normalizedCoords = norm;
        for (float &c : d.borderColor)
            c = 0.75f;
        for (float2 &p : at) {
            p.x = (rnd() * 3 - 1) * (norm ? 1 : W);
            p.y = (rnd() * 3 - 1) * (norm ? 1 : H);
        }
        Dev<float2> where(at);

        CHECK(cudaCreateTextureObject(&t, &r, &d, NULL));
        objects<<<3, 128>>>(t, where, out, n);
        std::vector<float> got = out.get();
        int bad = 0;

        /* A weight is off by 1/512 at most, so a value by little more. */
        for (int i = 0; i < n; i++)
            bad += fabs(got[i] - sample(v, at[i].x, at[i].y, d)) > 0.005;
        EXPECT(bad == 0);
        cudaDeviceProp p;
        int wide;
        CHECK(cudaGetDeviceProperties(&p, 0));
        CHECK(cudaDeviceGetAttribute(&wide, cudaDevAttrMaxTexture2DWidth, 0));
        EXPECT(p.maxTexture2D[0] >= W && wide == p.maxTexture2D[0]);
        EXPECT(p.maxTexture1DLinear > 0 && p.maxTexture3D[2] > 0);
        cudaResourceDesc made;
        cudaTextureDesc how;
        CHECK(cudaGetTextureObjectResourceDesc(&made, t));
        CHECK(cudaGetTextureObjectTextureDesc(&how, t));
        EXPECT(made.resType == r.resType && made.res.array.array == a);
        EXPECT(how.filterMode == d.filterMode &&
               how.addressMode[0] == d.addressMode[0]);
        EXPECT(cudaGetSurfaceObjectResourceDesc(&made, t) ==
               cudaErrorInvalidResourceHandle);
        cudaGetLastError();
        CHECK(cudaDestroyTextureObject(t));
        EXPECT(cudaGetTextureObjectResourceDesc(&made, t) != cudaSuccess);
        cudaGetLastError();
    }
    CHECK(cudaFreeArray(a));
}

static void
bound()
{
    std::vector<float> v = plane_of(1);
    std::vector<unsigned char> b(W * H);
    std::vector<int2> p(W * H);
    Dev<float> plane(W * H), bytes(W * H + 3);
    Dev<int> pairs(W * H);
    cudaArray *a;
    size_t off = 1;

    for (int i = 0; i < W * H; i++) {
        b[i] = (unsigned char)(i * 5);
        p[i] = make_int2(i, -i);
    }
    Dev<unsigned char> db(b);
    Dev<int2> dp(p);

    CHECK(cudaMallocArray(&a, &ref_plane.channelDesc, W, H));
    CHECK(cudaMemcpyToArray(a, 0, 0, v.data(), W * H * 4,
                            cudaMemcpyHostToDevice));
    ref_plane.filterMode = cudaFilterModePoint;
    CHECK(cudaBindTextureToArray(ref_plane, a));
    CHECK(cudaBindTexture(&off, ref_bytes, db, W * H));
    CHECK(cudaBindTexture(NULL, ref_pairs, dp));
    EXPECT(off == 0);
    references<<<1, 64>>>(plane, bytes, pairs, W * H);
    std::vector<float> gp = plane.get(), gb = bytes.get();
    std::vector<int> gi = pairs.get();

    EXPECT(memcmp(gp.data(), v.data(), W * H * 4) == 0);
    for (int i = 0; i < W * H; i++) {
        EXPECT(near(gb[i], b[i] / 255.0, 1e-6));
        EXPECT(gi[i] == 2 * i);
    }
    CHECK(cudaUnbindTexture(ref_plane));
    references<<<1, 64>>>(plane, bytes, pairs, 4);
    EXPECT(plane.get()[3] == 0);
    CHECK(cudaFreeArray(a));
    EXPECT(cudaBindTextureToArray(ref_plane, a) != cudaSuccess);
    cudaGetLastError();
}

static void
shapes()
{
    std::vector<float> v = plane_of(D);
    cudaChannelFormatDesc f1 = cudaCreateChannelDesc<float>();
    cudaChannelFormatDesc f4 = cudaCreateChannelDesc<uchar4>();
    cudaMemcpy3DParms c = {};
    cudaResourceDesc r = {};
    cudaTextureDesc d = {};
    cudaTextureObject_t t;
    cudaArray_t a;
    Dev<float> out(W * D);
    Dev<float4> quads(W * H);
    cudaExtent x = make_cudaExtent(W, H, D);

    CHECK(cudaMalloc3DArray(&a, &f1, x));
    c.srcPtr = make_cudaPitchedPtr(v.data(), W * 4, W, H);
    c.dstArray = a;
    c.extent = x;
    c.kind = cudaMemcpyHostToDevice;
    CHECK(cudaMemcpy3D(&c));
    r.resType = cudaResourceTypeArray;
    r.res.array.array = a;
    d.filterMode = cudaFilterModeLinear;
    for (cudaTextureAddressMode &m : d.addressMode)
        m = cudaAddressModeClamp;
    CHECK(cudaCreateTextureObject(&t, &r, &d, NULL));
    volume<<<1, W * D>>>(t, out);
    std::vector<float> got = out.get();
    for (int i = 0; i < W * D; i++) {
        std::vector<float> one(v.begin() + i / W * W * H,
                               v.begin() + (i / W + 1) * W * H);

        EXPECT(fabs(got[i] - sample(one, i % W + 0.25, 2.75, d)) < 0.005);
    }
    CHECK(cudaDestroyTextureObject(t));
    CHECK(cudaFreeArray(a));

    std::vector<uchar4> q(W * H * D);
    for (size_t i = 0; i < q.size(); i++)
        q[i] = make_uchar4((unsigned char)i, (unsigned char)(i * 3), 7, 255);
    CHECK(cudaMalloc3DArray(&a, &f4, x, cudaArrayLayered));
    c.srcPtr = make_cudaPitchedPtr(q.data(), W * 4, W, H);
    c.dstArray = a;
    CHECK(cudaMemcpy3D(&c));
    r.res.array.array = a;
    d.readMode = cudaReadModeNormalizedFloat;
    d.filterMode = cudaFilterModePoint;
    CHECK(cudaCreateTextureObject(&t, &r, &d, NULL));
    layers<<<1, W * H>>>(t, quads);
    std::vector<float4> gq = quads.get();
    for (int i = 0; i < W * H; i++) {
        const uchar4 &w = q[2 * W * H + i];

        EXPECT(near(gq[i].x, w.x / 255.0, 1e-6) &&
               near(gq[i].y, w.y / 255.0, 1e-6) && gq[i].w == 1.0f);
    }
    CHECK(cudaDestroyTextureObject(t));
    CHECK(cudaFreeArray(a));
}

/* Memory with a pitch, and four neighbours at once. */
static void
pitched()
{
    std::vector<float> v = plane_of(1);
    cudaResourceDesc r = {};
    cudaTextureDesc d = {};
    cudaTextureObject_t t;
    Dev<float4> four(1);
    float *p;
    size_t pitch;

    CHECK(cudaMallocPitch(&p, &pitch, W * 4, H));
    CHECK(cudaMemcpy2D(p, pitch, v.data(), W * 4, W * 4, H,
                       cudaMemcpyHostToDevice));
    r.resType = cudaResourceTypePitch2D;
    r.res.pitch2D.devPtr = p;
    r.res.pitch2D.desc = cudaCreateChannelDesc<float>();
    r.res.pitch2D.width = W;
    r.res.pitch2D.height = H;
    r.res.pitch2D.pitchInBytes = pitch;
    CHECK(cudaCreateTextureObject(&t, &r, &d, NULL));
    gathers<<<1, 1>>>(t, four);
    float4 g = four.get()[0];
    EXPECT(g.w == v[1 * W + 2] && g.z == v[1 * W + 3] && g.x == v[2 * W + 2] &&
           g.y == v[2 * W + 3]);
    CHECK(cudaDestroyTextureObject(t));
    EXPECT(cudaDestroyTextureObject(t) == cudaErrorInvalidResourceHandle);
    r.res.pitch2D.height = 1 << 20; /* more than there is */
    EXPECT(cudaCreateTextureObject(&t, &r, &d, NULL) == cudaErrorInvalidValue);
    r.res.pitch2D.height = H;
    r.res.pitch2D.desc = cudaCreateChannelDesc<int>();
    d.filterMode = cudaFilterModeLinear;
    EXPECT(cudaCreateTextureObject(&t, &r, &d, NULL) == cudaErrorInvalidValue);
    cudaGetLastError();
    CHECK(cudaFree(p));
}

static void
surfaces()
{
    cudaChannelFormatDesc f = cudaCreateChannelDesc<uchar4>(), g;
    cudaResourceDesc r = {};
    cudaSurfaceObject_t s;
    cudaArray_t in, out;
    std::vector<uchar4> v(W * H), got(W * H);
    cudaExtent x;

    for (int i = 0; i < W * H; i++)
        v[i] = make_uchar4(1, 2, (unsigned char)i, 0);
    CHECK(cudaMallocArray(&in, &f, W, H, cudaArraySurfaceLoadStore));
    CHECK(cudaMallocArray(&out, &f, W, H, cudaArraySurfaceLoadStore));
    CHECK(cudaArrayGetInfo(&g, &x, NULL, in));
    EXPECT(x.width == W && x.height == H && g.w == 8 &&
           g.f == cudaChannelFormatKindUnsigned);
    CHECK(cudaMemcpy2DToArray(in, 0, 0, v.data(), W * 4, W * 4, H,
                              cudaMemcpyHostToDevice));
    r.resType = cudaResourceTypeArray;
    r.res.array.array = in;
    CHECK(cudaCreateSurfaceObject(&s, &r));
    CHECK(cudaBindSurfaceToArray(ref_out, out));
    turn<<<1, dim3(W, H)>>>(s);
    CHECK(cudaMemcpy2DFromArray(got.data(), W * 4, out, 0, 0, W * 4, H,
                                cudaMemcpyDeviceToHost));
    for (int i = 0; i < W * H; i++)
        EXPECT(got[i].x == i % W + i / W && got[i].y == i && got[i].w == 1);
    EXPECT(cudaMemcpy2DFromArray(got.data(), W * 4, out, 4, 0, W * 4, H,
                                 cudaMemcpyDeviceToHost) ==
           cudaErrorInvalidValue);
    cudaGetLastError();
    beyond<<<1, 1>>>(s);
    EXPECT(cudaDeviceSynchronize() == cudaErrorLaunchFailure);
    CHECK(cudaDeviceReset());
}

int
main()
{
    modes();
    bound();
    shapes();
    pitched();
    surfaces();
    return done();
}

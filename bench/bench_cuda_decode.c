/* bench_cuda_decode.c - checks and times the decode megakernel on a GPU.
 *
 *   bench-cuda-decode [SHAPE...] [--image mega.cubin] [--quick]
 *                     [--depths A/B/C,D/E/F...] [--profile] [--repeat N]
 *   bench-cuda-decode --stay N SHAPE [--image mega.cubin]
 *
 * Random weights of a real shape. For each shape: one step against the obvious
 * kernels of setup.cu (relative error of the logits), packets against mega
 * (bits), mega against itself (bits, 20 times), draws against the host's, then milliseconds per token at
 * several positions. Nothing is timed that was not checked first. --depths: the
 * same with so many chunks under way (shallow/deep). Exit 0, 1 when a check
 * fails, 5 without a device.
 * SPDX-License-Identifier: Apache-2.0 */
#include "../kernels/cuda/mega_table.h"
#include "base/half.h"
#include "base/rng.h"
#include "drv/cuda/decode.h"
#include "kit.h"
#include "run/sample.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const br_cu_shape shapes[] = {
    {"tiny", BR_CU_BF16, 2, 512, 8, 2, 64, 1024, 600, 1e4f, 1e-5f, false, true,
     true, NULL},
    {"tiny-128", BR_CU_BF16, 2, 512, 4, 2, 128, 512, 600, 1e6f, 1e-6f, true,
     false, false, NULL},
    {"tiny-q8_0", BR_CU_Q8_0, 1, 512, 16, 2, 64, 512, 600, 1e4f, 1e-5f, true,
     false, true, NULL},
    {"tiny-128-q8_0", BR_CU_Q8_0, 2, 512, 4, 1, 128, 1536, 600, 1e6f, 1e-6f,
     true, false, false, NULL},
    /* a step's copies fit in the slots: the next step's pages come early */
    {"tiny-ahead", BR_CU_BF16, 1, 512, 8, 1, 64, 512, 64, 1e4f, 1e-5f, false,
     true, true, NULL},
    {"tiny-q4_k", BR_CU_Q4_K, 1, 512, 16, 2, 64, 512, 600, 1e4f, 1e-5f, false,
     false, true, NULL},
    {"tiny-128-q4_k", BR_CU_Q4_K, 2, 512, 4, 1, 128, 1536, 600, 1e6f, 1e-6f,
     true, false, false, NULL},
    {"llama-3.2-1b", BR_CU_BF16, 16, 2048, 32, 8, 64, 8192, 128256, 5e5f, 1e-5f,
     false, true, true, NULL},
    {"qwen3-8b", BR_CU_BF16, 36, 4096, 32, 8, 128, 12288, 151936, 1e6f, 1e-6f,
     true, false, false, NULL},
    {"llama-3.2-1b-q8_0", BR_CU_Q8_0, 16, 2048, 32, 8, 64, 8192, 128256, 5e5f,
     1e-5f, false, false, true, NULL},
    {"qwen3-8b-q8_0", BR_CU_Q8_0, 36, 4096, 32, 8, 128, 12288, 151936, 1e6f,
     1e-6f, true, false, false, NULL},
    {"llama-3.2-1b-q4_k", BR_CU_Q4_K, 16, 2048, 32, 8, 64, 8192, 128256, 5e5f,
     1e-5f, false, false, true, NULL},
    {"qwen3-8b-q4_k", BR_CU_Q4_K, 36, 4096, 32, 8, 128, 12288, 151936, 1e6f,
     1e-6f, true, false, false, NULL},
};

struct weights { /* row-major on the device, per layer */
    uint64_t qkv[64], out[64], gate[64], up[64], down[64], head;
    uint64_t cache, h, x, y, act, score; /* of the obvious kernels */
};

struct bench {
    br_cuda cu;
    br_cu_decode d;
    struct weights w;
    void *mod;
    br_status st;
    const void *image;
    const char *depths;
    bool profile, quick;
    uint32_t repeat; /* times that a step is to give the same bits */
    uint32_t stay;   /* tokens of a launch that stays, and nothing else */
};

#define OK(b, call)                                      \
    do {                                                 \
        if ((call) != BR_OK) {                           \
            fprintf(stderr, "bench: %s\n", (b)->st.msg); \
            exit(br_code_exit((b)->st.code));            \
        }                                                \
    } while (0)
#define CU(b, call) OK(b, BR_CU(&(b)->cu, &(b)->st, call))

static void
run(struct bench *b, const char *name, uint32_t grid, uint32_t block,
    void **params)
{
    void *fn;

    CU(b, cuModuleGetFunction(&fn, b->d.setup_mod, name));
    CU(b, cuLaunchKernel(fn, grid, 1, 1, block, 1, 1, 0, b->cu.stream, params,
                         NULL));
}

static uint64_t
fill(struct bench *b, uint64_t p, uint64_t n, double scale)
{
    static uint64_t seed = 1;
    uint64_t pairs = n / 2;
    float s = (float)scale;
    void *params[] = {&p, &pairs, &seed, &s};

    if (!p)
        OK(b, br_cuda_alloc(&b->cu, &p, n * 2, &b->st));
    params[0] = &p;
    seed++;
    run(b, "br_fill_bf16", 1024, 256, params);
    return p;
}

/* A matrix of the shape's format, as a model file has it. */
static uint64_t
fill_matrix(struct bench *b, uint64_t rows, uint64_t cols)
{
    double scale = 1.0 / sqrt((double)cols);
    const bool q8 = b->d.shape.format == BR_CU_Q8_0;
    static uint64_t turn;
    uint64_t p = 0, blocks = rows * cols / (q8 ? 32 : 256), seed = ++turn << 32;
    float s = (float)scale;
    void *params[] = {&p, &blocks, &seed, &s};

    if (b->d.shape.format == BR_CU_BF16)
        return fill(b, 0, rows * cols, scale);
    OK(b,
       br_cuda_alloc(&b->cu, &p,
                     br_cu_row_bytes(b->d.shape.format, cols) * rows, &b->st));
    run(b, q8 ? "br_fill_q8_0" : "br_fill_q4_k", 1024, 256, params);
    return p;
}

static void
fill_f32(struct bench *b, uint64_t p, uint64_t n, float mean, float scale)
{
    static uint64_t seed;
    void *params[] = {&p, &n, &seed, &mean, &scale};

    seed++;
    run(b, "br_fill_f32", 256, 256, params);
}

static void
make_weights(struct bench *b)
{
    const br_cu_shape *s = &b->d.shape;
    const uint64_t H = s->hidden, I = s->inter, Q = br_cu_rows(s, BR_CU_QKV);
    const uint64_t A = (uint64_t)s->n_heads * s->head_dim;
    struct weights *w = &b->w;

    fill(b, b->d.embed, s->vocab * H, 1.0);
    for (uint32_t l = 0; l < s->n_layers; l++) {
        w->qkv[l] = fill_matrix(b, Q, H);
        w->out[l] = fill_matrix(b, H, A);
        w->gate[l] = fill_matrix(b, I, H);
        w->up[l] = fill_matrix(b, I, H);
        w->down[l] = fill_matrix(b, H, I);
        OK(b, br_cu_decode_put(&b->d, l, BR_CU_QKV, w->qkv[l], 0, &b->st));
        OK(b, br_cu_decode_put(&b->d, l, BR_CU_OUT, w->out[l], 0, &b->st));
        OK(b,
           br_cu_decode_put(&b->d, l, BR_CU_GLU, w->gate[l], w->up[l], &b->st));
        OK(b, br_cu_decode_put(&b->d, l, BR_CU_DOWN, w->down[l], 0, &b->st));
    }
    w->head = s->tied ? b->d.embed : fill_matrix(b, s->vocab, H);
    OK(b, br_cu_decode_put(&b->d, 0, BR_CU_HEAD, w->head, 0, &b->st));
    fill_f32(b, b->d.norms, (s->n_layers * 2 + 1) * H, 1.0f, 0.1f);
    if (s->qk_norm)
        fill_f32(b, b->d.qk_norms, s->n_layers * 2ull * s->head_dim, 1.0f,
                 0.1f);
    fill(b, b->d.kv,
         (uint64_t)b->d.max_pos * s->n_layers * 2 * s->n_kv * s->head_dim, 0.5);
    CU(b, cuStreamSynchronize(b->cu.stream));
}

/* y (+)= W x with x in w.x; packed weights meet x rounded to 8 bits. */
static void
matvec(struct bench *b, uint32_t rows, uint64_t y, uint64_t W, uint32_t K,
       uint32_t add)
{
    static const char *const by_format[] = {
        "br_naive_matvec", "br_naive_matvec_q8_0", "br_naive_matvec_q4_k"};

    if (b->d.shape.format != BR_CU_BF16)
        run(b, "br_naive_round_q8", 8, 256, (void *[]){&b->w.x, &K});
    run(b, by_format[b->d.shape.format], rows, 256,
        (void *[]){&y, &W, &b->w.x, &K, &add});
}

/* The obvious step at `pos`: fills a plain cache, runs it, copies the cache's
 * first pos positions into the pages, leaves the cache to the caller. */
static void
naive_step(struct bench *b, uint32_t token, uint32_t pos, float *logits)
{
    const br_cu_shape *s = &b->d.shape;
    struct weights *w = &b->w;
    uint32_t H = s->hidden, hd = s->head_dim, KV = s->n_kv, NH = s->n_heads;
    uint32_t max_pos = b->d.max_pos, Q = br_cu_rows(s, BR_CU_QKV), L, zero = 0;
    uint32_t round = s->format == BR_CU_BF16, one = 1, A = NH * hd,
             n = s->n_layers, heads = NH + KV;
    uint32_t inter_pos = s->interleaved_rope, I = s->inter, at = pos;
    float eps = s->eps, scale = 1.0f / sqrtf((float)hd);
    br_cuda *cu = &b->cu;
    uint64_t kvp, norm, qkn, rows = (uint64_t)BR_MAX(s->vocab, Q) + 2 * I;

    w->cache = fill(b, 0, (uint64_t)n * 2 * KV * max_pos * hd, 0.5);
    OK(b, br_cuda_alloc(cu, &w->h, H * 4, &b->st));
    OK(b, br_cuda_alloc(cu, &w->x, BR_MAX(I, A) * 4ull + H * 4, &b->st));
    OK(b, br_cuda_alloc(cu, &w->y, rows * 4, &b->st));
    OK(b, br_cuda_alloc(cu, &w->score, (uint64_t)NH * max_pos * 4, &b->st));
    run(b, "br_naive_to_pages", 1024, 256,
        (void *[]){&b->d.kv, &b->d.pages, &w->cache, &n, &KV, &hd, &at,
                   &max_pos});
    run(b, "br_naive_embed", 1, 256,
        (void *[]){&w->h, &b->d.embed, &token, &H});
    for (L = 0; L < n; L++) {
        norm = b->d.norms + (uint64_t)L * 2 * H * 4;
        qkn = s->qk_norm ? b->d.qk_norms + (uint64_t)L * 2 * hd * 4 : 0;
        kvp = w->y + (uint64_t)A * 4;
        run(b, "br_naive_norm", 1, 256,
            (void *[]){&w->x, &w->h, &norm, &H, &eps, &round});
        matvec(b, Q, w->y, w->qkv[L], H, zero);
        run(b, "br_naive_rope", heads, 256,
            (void *[]){&w->y, &qkn, &b->d.rope, &NH, &hd, &pos, &inter_pos,
                       &eps});
        run(b, "br_naive_append", 16, 256,
            (void *[]){&w->cache, &kvp, &L, &KV, &hd, &pos, &max_pos});
        run(b, "br_naive_attn", NH, 256,
            (void *[]){&w->x, &w->score, &w->y, &w->cache, &L, &NH, &KV, &hd,
                       &pos, &max_pos, &scale});
        matvec(b, H, w->h, w->out[L], A, one);
        norm += H * 4ull;
        run(b, "br_naive_norm", 1, 256,
            (void *[]){&w->x, &w->h, &norm, &H, &eps, &round});
        kvp = w->y + (uint64_t)I * 4;
        matvec(b, I, w->y, w->gate[L], H, zero);
        matvec(b, I, kvp, w->up[L], H, zero);
        run(b, "br_naive_glu", 64, 256, (void *[]){&w->x, &w->y, &kvp, &I});
        matvec(b, H, w->h, w->down[L], I, one);
    }
    norm = b->d.norms + (uint64_t)n * 2 * H * 4;
    run(b, "br_naive_norm", 1, 256,
        (void *[]){&w->x, &w->h, &norm, &H, &eps, &round});
    matvec(b, s->vocab, w->y, w->head, H, zero);
    CU(b, cuStreamSynchronize(cu->stream));
    CU(b, cuMemcpyDtoH(logits, w->y, s->vocab * 4ull));
    br_cuda_free(cu, w->h);
    br_cuda_free(cu, w->x);
    br_cuda_free(cu, w->y);
    br_cuda_free(cu, w->score);
}

#define TOKEN 17u
#define STEPS 3u

static uint32_t
fast_steps(struct bench *b, enum br_cu_mode mode, uint32_t steps, uint32_t pos,
           float *logits)
{
    uint32_t next = 0;

    CU(b, cuMemsetD32(b->d.logits, 0x7fc00000u, b->d.shape.vocab));
    br_cu_decode_seek(&b->d, TOKEN, pos);
    OK(b, br_cu_decode_run(&b->d, mode, steps, &b->st));
    OK(b, br_cu_decode_tokens(&b->d, &next, 1, &b->st));
    CU(b, cuMemcpyDtoH(logits, b->d.logits, b->d.shape.vocab * 4ull));
    return next;
}

static double
nmse(const float *a, const float *ref, uint32_t n)
{
    double e = 0, s = 0;

    for (uint32_t i = 0; i < n; i++) {
        double d = (double)a[i] - (double)ref[i];
        e += d * d;
        s += (double)ref[i] * (double)ref[i];
    }
    return s > 0 && isfinite(e) ? e / s : (double)INFINITY;
}

/* Keys and values of position pos in layer 0 as the obvious kernels have them
 * (cache) against those in the pages: NMSE. */
static double
row_error(struct bench *b, uint64_t cache, uint32_t pos)
{
    const br_cu_shape *s = &b->d.shape;
    const uint32_t hd = s->head_dim, n = s->n_kv * 2 * hd;
    const uint64_t page = (uint64_t)(pos / BR_MK_PAGE) * s->n_layers * s->n_kv;
    float *got = br_alloc(n * sizeof *got), *want = br_alloc(n * sizeof *want);
    uint16_t row[2][256];
    double e;

    for (uint32_t i = 0; i < n / hd; i++) { /* [kv head][key, value] */
        uint64_t at = ((page * 2 + i) * BR_MK_PAGE + pos % BR_MK_PAGE) * hd;
        uint64_t plain = (i % 2 * s->n_kv + i / 2) * (uint64_t)b->d.max_pos;
        CU(b, cuMemcpyDtoH(row[0], b->d.kv + at * 2, hd * 2));
        CU(b, cuMemcpyDtoH(row[1], cache + (plain + pos) * hd * 2, hd * 2));
        for (uint32_t d = 0; d < hd; d++) {
            got[i * hd + d] = br_bf16_to_f32(row[0][BR_MK_COLUMN(d, pos)]);
            want[i * hd + d] = br_bf16_to_f32(row[1][d]);
        }
    }
    e = nmse(got, want, n);
    br_free(got);
    br_free(want);
    return e;
}

static uint32_t
argmax(const float *x, uint32_t n)
{
    uint32_t best = 0;

    for (uint32_t i = 1; i < n; i++)
        if (x[i] > x[best])
            best = i;
    return best;
}

/* Of the bits: two builds that give the same print the same. */
static unsigned long long
hash(const float *x, uint32_t n)
{
    unsigned long long h = 0xcbf29ce484222325u;

    for (size_t i = 0; i < n * sizeof *x; i++)
        h = (h ^ ((const unsigned char *)x)[i]) * 0x100000001b3u;
    return h;
}

/* Steps of one launch and one step a launch: keys written a step ago, and two,
 * and over the border of a block. */
static bool
several_steps(struct bench *b, uint32_t pos, float *one, float *many)
{
    const uint32_t n = b->d.shape.vocab;

    fast_steps(b, BR_CU_MEGA, STEPS, pos, many);
    br_cu_decode_seek(&b->d, TOKEN, pos);
    for (uint32_t i = 0; i < STEPS; i++)
        OK(b, br_cu_decode_run(&b->d, BR_CU_MEGA, 1, &b->st));
    CU(b, cuStreamSynchronize(b->cu.stream));
    CU(b, cuMemcpyDtoH(one, b->d.logits, n * 4ull));
    return memcmp(one, many, n * 4ull) == 0;
}

static int
check(struct bench *b, uint32_t pos)
{
    const uint32_t n = b->d.shape.vocab;
    const uint32_t repeats = b->repeat ? b->repeat : b->quick ? 1 : 20;
    float *ref = br_alloc(n * 4ull), *pk = br_alloc(n * 4ull),
          *mg = br_alloc(n * 4ull), *again = br_alloc(n * 4ull);
    /* 8 bits of an activation: what one engine rounds up and the other down
     * grows with the layers (measured 7e-4 after 16, 1.8e-3 after 36) */
    const double most = b->d.shape.format == BR_CU_BF16 ? 5e-4 : 4e-3;
    uint32_t tp, tm, same = 0;
    double e;
    bool equal;
    int bad = 0;

    naive_step(b, TOKEN, pos, ref);
    tp = fast_steps(b, BR_CU_PACKETS, 1, pos, pk);
    tm = fast_steps(b, BR_CU_MEGA, 1, pos, mg);
    for (uint32_t i = 0; i < repeats; i++) {
        fast_steps(b, BR_CU_MEGA, 1, pos, again);
        same += memcmp(again, mg, n * 4ull) == 0;
    }
    e = nmse(mg, ref, n);
    bad |= !(row_error(b, b->w.cache, pos) < 1e-3);
    br_cuda_free(&b->cu, b->w.cache);
    bad |= !(e < most) || same != repeats;
    equal = memcmp(pk, mg, n * 4ull) == 0;
    bad |= tp != tm || tm != argmax(mg, n);
    if (!b->quick || pos % BR_MK_KV_BLOCK == 254)
        equal &= several_steps(b, pos, pk, again);
    bad |= !equal;
    printf("check %-14s pos %5u  nmse %.2e  bits %016llx  argmax %u/%u  "
           "packets==mega %s  repeat %u/%u  %s\n",
           b->d.shape.name, pos, e, hash(mg, n), tm, argmax(ref, n),
           equal ? "yes" : "NO", same, repeats, bad ? "BAD" : "ok");
    fflush(stdout);
    br_free(ref);
    br_free(pk);
    br_free(mg);
    br_free(again);
    return bad;
}

/* The launch that stays gives the tokens of one of as many steps, and is left
 * in the midst of it. */
static int
check_resident(struct bench *b)
{
    enum { N = 40 };
    const uint32_t n = b->quick ? 4 : N;
    uint32_t want[N], got[N], one;
    bool same;

    br_cu_decode_seek(&b->d, TOKEN, 5);
    OK(b, br_cu_decode_run(&b->d, BR_CU_MEGA, n, &b->st));
    OK(b, br_cu_decode_tokens(&b->d, want, n, &b->st));
    br_cu_decode_seek(&b->d, TOKEN, 5);
    OK(b, br_cu_decode_enter(&b->d, &b->st));
    for (uint32_t i = 0; i < n; i++)
        OK(b, br_cu_decode_next(&b->d, &got[i], &b->st));
    OK(b, br_cu_decode_leave(&b->d, &b->st));
    same = memcmp(want, got, n * sizeof *want) == 0;
    br_cu_decode_seek(&b->d, TOKEN, 5);
    OK(b, br_cu_decode_run(&b->d, BR_CU_MEGA, 1, &b->st));
    OK(b, br_cu_decode_tokens(&b->d, &one, 1, &b->st));
    same &= one == want[0];
    printf("check %-14s resident==mega %s  %s\n", b->d.shape.name,
           same ? "yes" : "NO", same ? "ok" : "BAD");
    return !same;
}

/* A step that is cut at its first border, resumed, and left: what comes in its
 * place. Then one that is given up after a layer. */
static uint32_t
cut_step(struct bench *b, uint32_t token, uint32_t pos, double *leave_us)
{
    br_status st = {0};
    uint32_t got = 0;
    bool many = b->d.shape.n_layers > 1;

    br_cu_decode_seek(&b->d, token, pos);
    b->d.host->cancel = 1;
    OK(b, br_cu_decode_enter(&b->d, &b->st));
    OK(b, br_cu_decode_cancel(&b->d, &b->st));
    if ((b->d.phase != 0) != many ||
        (many && br_cu_decode_next(&b->d, &got, &st) != BR_E_CANCELLED)) {
        OK(b, br_cu_decode_leave(&b->d, &b->st));
        return 0; /* no best token of these weights */
    }
    OK(b, br_cu_decode_resume(&b->d, &b->st));
    OK(b, br_cu_decode_next(&b->d, &got, &b->st));
    int64_t t0 = br_now_ns();
    OK(b, br_cu_decode_leave(&b->d, &b->st)); /* somewhere in a later step */
    *leave_us = (double)(br_now_ns() - t0) * 1e-3;
    br_cu_decode_seek(&b->d, TOKEN + 1, pos + 2);
    b->d.host->cancel = 1;
    OK(b, br_cu_decode_enter(&b->d, &b->st));
    OK(b, br_cu_decode_leave(&b->d, &b->st));
    return got;
}

/* The tokens are those of steps that nobody cut, and so are keys and values: the
 * logits after them have the same bits. */
static int
check_cancel(struct bench *b)
{
    enum { N = 8, AT = 5 };
    const size_t n = b->d.shape.vocab * 4ull;
    uint32_t want[N + 1], token = TOKEN, same = 0;
    float *whole = br_alloc(n), *cut = br_alloc(n);
    double us = 0, most = 0;
    bool equal;

    fast_steps(b, BR_CU_MEGA, N + 1, AT, whole);
    OK(b, br_cu_decode_tokens(&b->d, want, N + 1, &b->st));
    for (uint32_t i = 0; i < N; i++) {
        token = cut_step(b, token, AT + i, &us);
        most = BR_MAX(most, us);
        same += token == want[i];
    }
    br_cu_decode_seek(&b->d, token, AT + N);
    OK(b, br_cu_decode_run(&b->d, BR_CU_MEGA, 1, &b->st));
    OK(b, br_cu_decode_wait(&b->d, &b->st));
    CU(b, cuMemcpyDtoH(cut, b->d.logits, n));
    equal = same == N && memcmp(whole, cut, n) == 0;
    printf("check %-14s steps cut at a layer==mega %s, leave %.0f us at most  "
           "%s\n",
           b->d.shape.name, equal ? "yes" : "NO", most, equal ? "ok" : "BAD");
    br_free(whole);
    br_free(cut);
    return !equal;
}

/* Logits: noise, noise with holes, with ties, one far above. */
static void
make_logits(float *x, uint32_t n, uint32_t kind)
{
    br_rng r;

    br_rng_init(&r, 7, kind);
    for (uint32_t i = 0; i < n; i++) {
        float v = (br_rng_f32(&r) + br_rng_f32(&r) + br_rng_f32(&r)) * 8.0f;
        x[i] = kind == 2                 ? floorf(v * 2) / 2
               : kind == 1 && i % 7 != 3 ? -INFINITY
                                         : v - 12.0f;
    }
    if (kind == 3)
        x[n / 3] = 40.0f;
}

static const br_cu_pick knobs[] = {
    {1, 0.0f, 1.0f, 0.0f, 0},     {2, 1.0f, 1.0f, 0.0f, 0},
    {3, 0.8f, 0.95f, 0.05f, 40},  {4, 0.7f, 0.9f, 0.0f, 0},
    {5, 2.0f, 1.0f, 0.1f, 0},     {6, 1.5f, 1.0f, 0.0f, 3},
    {7, 1.0f, 1.0f, 0.0f, 1},     {8, 0.01f, 0.5f, 0.0f, 1 << 30},
    {9, 1.0f, 0.0f, 0.0f, 0},     {1ull << 63 | 5, 100.0f, 0.999f, 0.0f, 100},
    {11, 3.0f, 0.3f, 1.0f, 50000}};

/* The device's draw, or its error, is the host's. */
static bool
same_pick(struct bench *b, const float *x, const br_cu_pick *k, uint32_t pos)
{
    br_sample_params p = br_sample_defaults();
    br_status host = {0}, dev = {0};
    br_sampler *s;
    uint32_t got = 0;
    int32_t want = 0;
    br_code hc, dc;

    p.seed = k->seed, p.temperature = k->temperature, p.top_k = k->top_k;
    p.top_p = k->top_p, p.min_p = k->min_p;
    OK(b, br_sampler_new(&s, (int32_t)b->d.shape.vocab, 1, &p, &b->st));
    hc = br_sampler_pick(s, x, pos, &want, &host);
    br_sampler_free(s);
    CU(b, cuMemcpyHtoD(b->d.logits, x, b->d.shape.vocab * 4ull));
    br_cu_decode_seek(&b->d, TOKEN, pos);
    OK(b, br_cu_decode_pick(&b->d, k, &b->st));
    dc = br_cu_decode_picked(&b->d, &got, &dev);
    return hc == dc && strcmp(host.msg, dev.msg) == 0 &&
           (hc != BR_OK || got == (uint32_t)want);
}

static int
check_picks(struct bench *b)
{
    const uint32_t n = b->d.shape.vocab;
    float *x = br_alloc(n * 4ull);
    uint32_t same = 0, all = 0;

    for (uint32_t kind = 0; kind < 4; kind += b->quick ? 2 : 1) {
        make_logits(x, n, kind);
        for (size_t i = 0; i < BR_COUNT(knobs); i++, all++)
            same += same_pick(b, x, &knobs[i], 100 * kind + (uint32_t)i);
    }
    x[n - 1] = NAN;
    same += same_pick(b, x, &knobs[2], 0), all++;
    for (uint32_t i = 0; i < n; i++)
        x[i] = -INFINITY;
    same += same_pick(b, x, &knobs[2], 0), all++;
    printf("draws %-14s %u of %u are the host's  %s\n", b->d.shape.name, same,
           all, same == all ? "ok" : "BAD");
    br_free(x);
    return same != all;
}

static int
by_value(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;

    return (x > y) - (x < y);
}

static float
time_run(struct bench *b, enum br_cu_mode mode, uint32_t pos, uint32_t steps)
{
    float ms[9];
    const size_t n = b->quick ? 5 : BR_COUNT(ms);
    void *e0, *e1;

    CU(b, cuEventCreate(&e0, 0));
    CU(b, cuEventCreate(&e1, 0));
    for (size_t i = 0; i < n; i++) {
        br_cu_decode_seek(&b->d, TOKEN, pos);
        CU(b, cuEventRecord(e0, b->cu.stream));
        OK(b, br_cu_decode_run(&b->d, mode, steps, &b->st));
        CU(b, cuEventRecord(e1, b->cu.stream));
        CU(b, cuEventSynchronize(e1));
        CU(b, cuEventElapsedTime(&ms[i], e0, e1));
    }
    qsort(ms, n, sizeof *ms, by_value);
    return ms[n / 2] / (float)steps;
}

static const uint32_t at[] = {128, 1536, 8192};

/* Milliseconds a token for each pair of depths. */
static void
times_of_depths(struct bench *b)
{
    const char *p = b->depths;

    while (*p) {
        char *end;
        uint32_t v[3];
        v[0] = v[1] = (uint32_t)strtoul(p, &end, 10);
        v[2] = 12;
        for (int i = 1; i < 3 && *end == '/'; i++)
            v[i] = (uint32_t)strtoul(end + 1, &end, 10);
        if (!v[0] || !v[1] || !v[2] || (*end && *end != ',')) {
            fprintf(stderr, "bench: --depths %s: A/B/C,D/E/F wanted\n",
                    b->depths);
            exit(2);
        }
        CU(b,
           cuMemcpyHtoD(b->d.args + offsetof(struct br_mk_args, depth), v, 12));
        printf("depths %-18s %2u/%2u/%2u", b->d.shape.name, v[0], v[1], v[2]);
        for (size_t i = 0; i < BR_COUNT(at); i += b->quick ? 2 : 1)
            printf(" %.4f", (double)time_run(b, BR_CU_MEGA, at[i], 32));
        printf(" ms/token\n");
        fflush(stdout);
        p = end + (*end == ',');
    }
}

static void
times(struct bench *b)
{
    const br_cu_shape *s = &b->d.shape;
    double bytes = (double)b->d.plan.stream_bytes;

    for (size_t i = 0; i < BR_COUNT(at); i++) {
        float ms, one, pk;
        if (at[i] + 128 > b->d.max_pos)
            continue;
        ms = time_run(b, BR_CU_MEGA, at[i], b->quick ? 32 : 64);
        if (b->quick) {
            printf("time  %-18s pos %5u  mega %.4f ms/token\n", s->name, at[i],
                   (double)ms);
            continue;
        }
        one = time_run(b, BR_CU_MEGA, at[i], 1);
        pk = time_run(b, BR_CU_PACKETS, at[i], 4);
        printf("time  %-14s pos %5u  mega %.4f ms/token (%.0f GB/s of "
               "weights)  one step a launch %.4f  packets %.4f\n",
               s->name, at[i], (double)ms, bytes / (double)ms / 1e6,
               (double)one, (double)pk);
        fflush(stdout);
    }
}

/* A token of the launch that stays, as the host sees it; and what it costs to
 * leave it (in the midst of what runs ahead), run a step, and enter it again,
 * beside the two steps in it. */
static void
time_resident(struct bench *b, uint32_t steps)
{
    enum { TURNS = 50 };
    uint32_t token;
    double ms, turn;
    int64_t t0;

    br_cu_decode_seek(&b->d, TOKEN, 128);
    OK(b, br_cu_decode_enter(&b->d, &b->st));
    OK(b, br_cu_decode_next(&b->d, &token, &b->st));
    t0 = br_now_ns();
    for (uint32_t i = 0; i < steps; i++)
        OK(b, br_cu_decode_next(&b->d, &token, &b->st));
    ms = (double)(br_now_ns() - t0) / 1e6 / steps;
    t0 = br_now_ns();
    for (int i = 0; i < TURNS; i++) {
        OK(b, br_cu_decode_leave(&b->d, &b->st));
        br_cu_decode_seek(&b->d, TOKEN, 128);
        OK(b, br_cu_decode_run(&b->d, BR_CU_MEGA, 1, &b->st));
        OK(b, br_cu_decode_tokens(&b->d, &token, 1, &b->st));
        OK(b, br_cu_decode_enter(&b->d, &b->st));
        OK(b, br_cu_decode_next(&b->d, &token, &b->st));
    }
    turn = (double)(br_now_ns() - t0) / 1e6 / TURNS;
    OK(b, br_cu_decode_leave(&b->d, &b->st));
    printf("stays %-14s %u tokens in a launch: %.4f ms each; leave, step, "
           "enter: %.0f us beside 2 steps\n",
           b->d.shape.name, steps, ms, (turn - 2 * ms) * 1e3);
}

/* What the calling thread computes to hand a step over, and a draw behind it;
 * and from there being a token and a position to the next token being here,
 * beside the time of a launch of one step on the device. Medians. */
static void
time_submit(struct bench *b)
{
    enum { N = 31, AT = 128 };
    const br_cu_pick how = {.temperature = 0.8f, .top_k = 40, .top_p = 0.95f};
    const double step = (double)time_run(b, BR_CU_MEGA, AT, 1) * 1e3;
    int64_t run[N], both[N], token[N], t0;
    uint32_t got;

    for (int i = 0; i < N; i++) {
        br_cu_decode_seek(&b->d, TOKEN, AT);
        t0 = br_now_ns();
        OK(b, br_cu_decode_run(&b->d, BR_CU_MEGA, 1, &b->st));
        run[i] = br_now_ns() - t0;
        OK(b, br_cu_decode_pick(&b->d, &how, &b->st));
        both[i] = br_now_ns() - t0;
        OK(b, br_cu_decode_picked(&b->d, &got, &b->st));
        t0 = br_now_ns();
        br_cu_decode_seek(&b->d, TOKEN, AT);
        OK(b, br_cu_decode_enter(&b->d, &b->st));
        OK(b, br_cu_decode_next(&b->d, &got, &b->st));
        token[i] = br_now_ns() - t0;
        OK(b, br_cu_decode_leave(&b->d, &b->st));
    }
    printf("submit %-18s a step %.1f us, with its draw %.1f, of the launch "
           "that stays 0; its first token after %.1f us beside a step's "
           "%.1f\n",
           b->d.shape.name, kit_quantile_ms(run, N, 0.5) * 1e3,
           kit_quantile_ms(both, N, 0.5) * 1e3,
           kit_quantile_ms(token, N, 0.5) * 1e3 - step, step);
}

/* N tokens from position 0 on in a launch that stays; the last ones are those of
 * launches of one step, and of the obvious kernels. */
static int
stay(struct bench *b)
{
    enum { LAST = 64 };
    const uint32_t n = b->stay;
    uint32_t *got = br_alloc((n + 1) * sizeof *got), want[LAST];
    const uint64_t before = b->d.launches;
    const int64_t t0 = br_now_ns();
    uint32_t same = 0;

    got[0] = TOKEN;
    br_cu_decode_seek(&b->d, TOKEN, 0);
    OK(b, br_cu_decode_enter(&b->d, &b->st));
    for (uint32_t i = 0; i < n; i++)
        OK(b, br_cu_decode_next(&b->d, &got[i + 1], &b->st));
    const double ms = (double)(br_now_ns() - t0) / 1e6 / n;
    const uint64_t launches = b->d.launches - before;
    OK(b, br_cu_decode_leave(&b->d, &b->st));
    for (uint32_t i = 0; i < LAST; i++) {
        const uint32_t pos = n - LAST + i;
        br_cu_decode_seek(&b->d, got[pos], pos);
        OK(b, br_cu_decode_run(&b->d, BR_CU_MEGA, 1, &b->st));
        OK(b, br_cu_decode_tokens(&b->d, &want[i], 1, &b->st));
        same += want[i] == got[pos + 1];
    }
    printf("stay  %-14s %u tokens, launches: %llu, %.4f ms each, the last %u "
           "again: %u the same  %s\n",
           b->d.shape.name, n, (unsigned long long)launches, ms, LAST, same,
           same == LAST ? "ok" : "BAD");
    fflush(stdout);
    br_free(got);
    return same != LAST;
}

/* Microseconds of a draw, launch included. */
static void
time_picks(struct bench *b)
{
    float *x = br_alloc(b->d.shape.vocab * 4ull);
    void *e0, *e1;

    make_logits(x, b->d.shape.vocab, 0);
    CU(b, cuMemcpyHtoD(b->d.logits, x, b->d.shape.vocab * 4ull));
    br_free(x);
    CU(b, cuEventCreate(&e0, 0));
    CU(b, cuEventCreate(&e1, 0));
    printf("draw  %-14s", b->d.shape.name);
    for (size_t i = 0; i < 4; i++) {
        float ms;
        CU(b, cuEventRecord(e0, b->cu.stream));
        for (int k = 0; k < 50; k++)
            OK(b, br_cu_decode_pick(&b->d, &knobs[i], &b->st));
        CU(b, cuEventRecord(e1, b->cu.stream));
        CU(b, cuEventSynchronize(e1));
        CU(b, cuEventElapsedTime(&ms, e0, e1));
        printf("  T %g k %d p %g: %.1f us", (double)knobs[i].temperature,
               knobs[i].top_k, (double)knobs[i].top_p, (double)ms * 20);
    }
    printf("\n");
}

/* The clock under this load, measured: 1980 without the tensor cores. */
#define MHZ 1790.0

/* A layer on one time line, the mean of the layers but the first: when the
 * first, the mean and the last worker with tiles of a phase (ATTN: all) passed
 * its stamps. Clocks are set equal where TOKEN ends, which all do together. */
static void
timeline(struct bench *b, const unsigned long long *c)
{
    static const char *op_name[] = {"qkv", "attn", "out", "glu", "down"};
    const uint32_t W = b->d.plan.n_workers, N = b->d.plan.n_inst;
    const uint32_t L = b->d.shape.n_layers;

    for (uint32_t op = 0; op < 5; op++) {
        printf("line  %-6s", op_name[op]);
        for (uint32_t k = 0; k < 4; k++) {
            double lo = 0, mean = 0, hi = 0;
            for (uint32_t l = 1; l < L; l++) {
                double first = 1e9, last = -1e9, sum = 0, n = 0, zero = 1e9;
                for (uint32_t w = 0; w < W; w++) {
                    const unsigned long long *t = c + (size_t)w * N * 4;
                    const struct br_mk_inst *in =
                        &b->d.plan.inst[w * N + l * 5 + op];
                    double end = (double)t[(size_t)(N - 1) * 4 + 3];
                    double stamp = (double)t[(l * 5 + op) * 4 + k] - end;
                    zero = BR_MIN(zero, (double)t[l * 5 * 4] - end);
                    if (!in->n_tiles && op != BR_MK_ATTN)
                        continue;
                    if (t[(l * 5 + op) * 4 + k] < t[l * 5 * 4])
                        continue; /* no task: the stamp is an old one */
                    first = BR_MIN(first, stamp), last = BR_MAX(last, stamp);
                    sum += stamp, n += 1;
                }
                lo += (first - zero) / MHZ / (L - 1);
                mean += (sum / n - zero) / MHZ / (L - 1);
                hi += (last - zero) / MHZ / (L - 1);
            }
            printf("  %6.2f %6.2f %6.2f |", lo, mean, hi);
        }
        printf("\n");
    }
}

/* Mean microseconds of the parts of each kind of phase over all workers that
 * have work in it; needs an image built with -DBR_MK_PROFILE. */
static void
profile(struct bench *b, uint32_t pos)
{
    static const char *op_name[] = {"qkv",  "attn", "out",  "glu",
                                    "down", "head", "token"};
    const uint32_t W = b->d.plan.n_workers, N = b->d.plan.n_inst;
    const uint32_t tasks =
        br_cu_tasks(&b->d.shape) * (pos / BR_MK_KV_BLOCK + 1);
    size_t n = (size_t)W * N * 4;
    unsigned long long *c = br_alloc(n * 8);
    double sum[7][5] = {{0}}, step = 0;

    br_cu_decode_seek(&b->d, TOKEN, pos);
    OK(b, br_cu_decode_run(&b->d, BR_CU_MEGA, 5, &b->st));
    CU(b, cuStreamSynchronize(b->cu.stream));
    CU(b, cuMemcpyDtoH(c, b->d.profile, n * 8));
    for (uint32_t w = 0; w < W; w++) {
        for (uint32_t i = 0; i < N; i++) {
            const struct br_mk_inst *in = &b->d.plan.inst[w * N + i];
            const unsigned long long *t = c + ((size_t)w * N + i) * 4;
            double us = 1.0 / MHZ;
            if (!in->n_tiles && (in->op != BR_MK_ATTN || in->tile0 >= tasks) &&
                in->op != BR_MK_TOKEN)
                continue;
            sum[in->op][4] += 1;
            sum[in->op][3] += (double)(t[3] - t[0]) * us;
            if (in->op == BR_MK_TOKEN)
                continue;
            sum[in->op][0] += (double)(t[1] - t[0]) * us;
            sum[in->op][1] += (double)(t[2] - t[1]) * us;
            sum[in->op][2] += (double)(t[3] - t[2]) * us;
        }
        step += (double)(c[((size_t)w * N + N - 1) * 4 + 3] -
                         c[(size_t)w * N * 4]) /
                MHZ / W;
    }
    for (int i = 0; i < 7; i++)
        printf("prof  %-6s wait+input %6.2f  product %6.2f  publish %6.2f  "
               "whole %6.2f us\n",
               op_name[i], sum[i][0] / sum[i][4], sum[i][1] / sum[i][4],
               sum[i][2] / sum[i][4], sum[i][3] / sum[i][4]);
    printf("prof  pos %u, step %.2f us\n", pos, step);
    timeline(b, c);
    br_free(c);
}

static void
free_weights(struct bench *b)
{
    for (uint32_t l = 0; l < b->d.shape.n_layers; l++) {
        br_cuda_free(&b->cu, b->w.qkv[l]);
        br_cuda_free(&b->cu, b->w.out[l]);
        br_cuda_free(&b->cu, b->w.gate[l]);
        br_cuda_free(&b->cu, b->w.up[l]);
        br_cuda_free(&b->cu, b->w.down[l]);
    }
    if (!b->d.shape.tied)
        br_cuda_free(&b->cu, b->w.head);
    b->w = (struct weights){0};
}

static int
bench_shape(struct bench *b, const br_cu_shape *s)
{
    /* first, inside, end and start of a block of 256; many blocks */
    static const uint32_t seen[] = {0, 5, 127, 254, 256, 1000};
    bool big = s->n_layers > 2;
    int bad = 0;

    OK(b, br_cu_decode_new(&b->d, &b->cu, s, (b->stay ? b->stay : 8192) + 256,
                           b->image, &b->st));
    printf("shape %-14s %u layers, %.1f MB of weights a step, %u registers, "
           "%u bytes local, %u phases\n",
           s->name, s->n_layers, (double)b->d.plan.stream_bytes / 1e6,
           b->d.regs, b->d.local_bytes, b->d.plan.n_inst);
    make_weights(b);
    if (b->stay)
        bad = stay(b) || check(b, b->stay - 1);
    for (size_t i = 0; i < BR_COUNT(seen) && !b->stay; i++)
        if (!b->quick || i == 3 || i == 5)
            bad |= check(b, seen[i]);
    if (!b->stay && (!b->quick || s == shapes)) {
        bad |= check_picks(b);
        bad |= check_resident(b);
    }
    if (!b->stay)
        bad |= check_cancel(b);
    big &= !b->stay;
    if (big && !bad && !b->quick) {
        time_picks(b);
        time_resident(b, 1000);
    }
    if (big && !bad && b->depths)
        times_of_depths(b);
    else if (big && !bad)
        times(b), time_submit(b);
    if (b->profile)
        profile(b, 128), profile(b, 1536), profile(b, 8192);
    free_weights(b);
    br_cu_decode_free(&b->d);
    return bad;
}

int
main(int argc, char **argv)
{
    static struct bench b;
    char *image = NULL;
    bool named = false;
    size_t n;
    int bad = 0;

    OK(&b, br_cuda_open(&b.cu, 0, &b.st));
    printf("device %s, sm_%d%d, %d multiprocessors, driver %d.%d\n",
           b.cu.device_name, b.cu.major, b.cu.minor, b.cu.n_sm,
           b.cu.driver / 1000, b.cu.driver % 1000 / 10);
    for (int i = 1; i < argc; i++) {
        b.profile |= !strcmp(argv[i], "--profile");
        b.quick |= !strcmp(argv[i], "--quick");
    }
    for (int i = 1; i + 1 < argc; i++) {
        if (!strcmp(argv[i], "--depths"))
            b.depths = argv[i + 1];
        if (!strcmp(argv[i], "--stay"))
            b.stay = (uint32_t)strtoul(argv[i + 1], NULL, 10);
        if (!strcmp(argv[i], "--repeat"))
            b.repeat = (uint32_t)strtoul(argv[i + 1], NULL, 10);
    }
    for (int i = 1; i + 1 < argc; i++)
        if (!strcmp(argv[i], "--image")) {
            OK(&b, br_file_read(argv[i + 1], 64u << 20, &image, &n, &b.st));
            b.image = image;
        }
    for (size_t k = 0; k < BR_COUNT(shapes); k++)
        for (int i = 1; i < argc; i++)
            named |= !strcmp(argv[i], shapes[k].name);
    for (size_t k = 0; k < BR_COUNT(shapes); k++) {
        bool wanted = !named;
        for (int i = 1; i < argc; i++)
            wanted |= !strcmp(argv[i], shapes[k].name);
        if (wanted)
            bad |= bench_shape(&b, &shapes[k]);
        if (bad)
            break;
    }
    br_cuda_close(&b.cu);
    br_free(image);
    return bad;
}

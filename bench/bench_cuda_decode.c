/* bench_cuda_decode.c - checks and times the decode megakernel on a GPU.
 *
 *   bench-cuda-decode [SHAPE...] [--image mega.cubin] [--quick]
 *                     [--depths A/B/C,D/E/F...] [--profile] [--repeat N]
 *                     [--plain | --both]
 *   bench-cuda-decode --stay N SHAPE [--image mega.cubin]
 *
 * Random weights of a real shape. For each shape: one step against the obvious
 * kernels of setup.cu (relative error of the logits), packets against mega
 * (bits), mega against itself (bits, 20 times), draws against the host's, then
 * milliseconds per token at several positions. Nothing is timed that was not
 * checked first. --depths: the same with so many chunks under way
 * (shallow/deep). --plain: BF16 with 16 bits a weight in the streams; --both: each
 * such shape with 12, then with 16. Exit 0, 1 when a check fails, 5 without a device.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/half.h"
#include "base/rng.h"
#include "cuda_decode.h"
#include "run/sample.h"
#include "run/tier_diff.h"

#include <math.h>

static const br_cu_shape shapes[] = {
    {"tiny", BR_CU_BF16, 2, 512, 8, 2, 64, 1024, 600, 1e4f, 1e-5f, false, true,
     true, NULL, false},
    {"tiny-128", BR_CU_BF16, 2, 512, 4, 2, 128, 512, 600, 1e6f, 1e-6f, true,
     false, false, NULL, false},
    {"tiny-q8_0", BR_CU_Q8_0, 1, 512, 16, 2, 64, 512, 600, 1e4f, 1e-5f, true,
     false, true, NULL, false},
    {"tiny-128-q8_0", BR_CU_Q8_0, 2, 512, 4, 1, 128, 1536, 600, 1e6f, 1e-6f,
     true, false, false, NULL, false},
    /* a step's copies fit in the slots: the next step's pages come early */
    {"tiny-ahead", BR_CU_BF16, 1, 512, 8, 1, 64, 512, 64, 1e4f, 1e-5f, false,
     true, true, NULL, false},
    {"tiny-q4_k", BR_CU_Q4_K, 1, 512, 16, 2, 64, 512, 600, 1e4f, 1e-5f, false,
     false, true, NULL, false},
    {"tiny-128-q4_k", BR_CU_Q4_K, 2, 512, 4, 1, 128, 1536, 600, 1e6f, 1e-6f,
     true, false, false, NULL, false},
    {"llama-3.2-1b", BR_CU_BF16, 16, 2048, 32, 8, 64, 8192, 128256, 5e5f, 1e-5f,
     false, true, true, NULL, false},
    {"qwen3-8b", BR_CU_BF16, 36, 4096, 32, 8, 128, 12288, 151936, 1e6f, 1e-6f,
     true, false, false, NULL, false},
    {"llama-3.2-1b-q8_0", BR_CU_Q8_0, 16, 2048, 32, 8, 64, 8192, 128256, 5e5f,
     1e-5f, false, false, true, NULL, false},
    {"qwen3-8b-q8_0", BR_CU_Q8_0, 36, 4096, 32, 8, 128, 12288, 151936, 1e6f,
     1e-6f, true, false, false, NULL, false},
    {"llama-3.2-1b-q4_k", BR_CU_Q4_K, 16, 2048, 32, 8, 64, 8192, 128256, 5e5f,
     1e-5f, false, false, true, NULL, false},
    {"qwen3-8b-q4_k", BR_CU_Q4_K, 36, 4096, 32, 8, 128, 12288, 151936, 1e6f,
     1e-6f, true, false, false, NULL, false},
};

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
    uint64_t pairs = n / 2;
    float s = (float)scale;
    void *params[] = {&p, &pairs, &b->seed, &s};

    if (!p)
        OK(b, br_cuda_alloc(&b->cu, &p, n * 2, &b->st));
    params[0] = &p;
    b->seed++;
    run(b, "br_fill_bf16", 1024, 256, params);
    return p;
}

/* A matrix of the shape's format, as a model file has it. */
static uint64_t
fill_matrix(struct bench *b, uint64_t rows, uint64_t cols)
{
    double scale = 1.0 / sqrt((double)cols);
    const bool q8 = b->d.shape.format == BR_CU_Q8_0;
    uint64_t p = 0, blocks = rows * cols / (q8 ? 32 : 256),
             seed = ++b->turn << 32;
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
    void *params[] = {&p, &n, &b->seed_f32, &mean, &scale};

    b->seed_f32++;
    run(b, "br_fill_f32", 256, 256, params);
}

static void
make_weights(struct bench *b)
{
    const br_cu_shape *s = &b->d.shape;
    const uint64_t H = s->hidden, I = s->inter, Q = br_cu_rows(s, BR_CU_QKV);
    const uint64_t A = (uint64_t)s->n_heads * s->head_dim;
    struct weights *w = &b->w;

    b->seed = 1, b->turn = b->seed_f32 = 0;
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
    e = br_nmse(got, want, n);
    br_free(got);
    br_free(want);
    return e;
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
    e = br_nmse(mg, ref, n);
    bad |= !(row_error(b, b->w.cache, pos) < 1e-3);
    br_cuda_free(&b->cu, b->w.cache);
    bad |= !(e < most) || same != repeats;
    equal = memcmp(pk, mg, n * 4ull) == 0;
    bad |= tp != tm || tm != br_argmax(mg, n);
    if (!b->quick || pos % BR_MK_KV_BLOCK == 254)
        equal &= several_steps(b, pos, pk, again);
    bad |= !equal;
    printf("check %-14s pos %5u  nmse %.2e  bits %016llx  argmax %u/%u  "
           "packets==mega %s  repeat %u/%u  %s\n",
           b->d.shape.name, pos, e, hash(mg, n), tm, br_argmax(ref, n),
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
        OK(b, br_cu_decode_next(&b->d, BR_CU_AHEAD, &got[i], &b->st));
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
        (many &&
         br_cu_decode_next(&b->d, BR_CU_AHEAD, &got, &st) != BR_E_CANCELLED)) {
        OK(b, br_cu_decode_leave(&b->d, &b->st));
        return 0; /* no best token of these weights */
    }
    OK(b, br_cu_decode_resume(&b->d, &b->st));
    OK(b, br_cu_decode_next(&b->d, BR_CU_AHEAD, &got, &b->st));
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
    enum { MOST = 8, AT = 5 };
    const uint32_t N = b->quick && b->d.shape.n_layers < 3 ? 3 : MOST;
    const size_t n = b->d.shape.vocab * 4ull;
    uint32_t want[MOST + 1], token = TOKEN, same = 0;
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

/* ---- steps of the ring ----------------------------------------------------- */

/* Two sequences, one over a block's border, the other over a page's. */
enum { RING_STEPS = 3, RING_BLOCK = 8, RING_POS = 255 + 512, RING_POS2 = 14 };

static void
seek_one(struct bench *b, uint32_t which, uint32_t token, uint32_t i)
{
    if (which)
        br_cu_decode_seek_in(&b->d, RING_BLOCK, token, RING_POS2 + i);
    else
        br_cu_decode_seek(&b->d, token, RING_POS + i);
}

/* A step of one, a step of the other ..: each waits for what the host says. */
static void
ring_in_turn(struct bench *b, uint32_t got[2][RING_STEPS])
{
    for (uint32_t i = 0; i < RING_STEPS; i++)
        for (uint32_t k = 0; k < 2; k++) {
            seek_one(b, k, i ? got[k][i - 1] : TOKEN + k, i);
            if (!b->d.resident)
                OK(b, br_cu_decode_enter(&b->d, &b->st));
            OK(b, br_cu_decode_next(&b->d, 0, &got[k][i], &b->st));
        }
}

/* The same, all of them said before, and what follows. */
static void
ring_ahead(struct bench *b, uint32_t want[2][RING_STEPS],
           uint32_t got[2][RING_STEPS], uint32_t *more)
{
    for (uint32_t i = 0; i < RING_STEPS; i++)
        for (uint32_t k = 0; k < 2; k++) {
            seek_one(b, k, i ? want[k][i - 1] : TOKEN + k, i);
            br_cu_decode_post(&b->d);
        }
    for (uint32_t i = 0; i < RING_STEPS; i++)
        for (uint32_t k = 0; k < 2; k++)
            OK(b, br_cu_decode_next(&b->d, 0, &got[k][i], &b->st));
    OK(b, br_cu_decode_next(&b->d, 0, more, &b->st));
}

/* Two sequences in turn in one launch give the tokens and the logits of each one
 * alone; a launch that has waited long enough is entered again. */
static int
check_ring(struct bench *b)
{
    const size_t n = b->d.shape.vocab * 4ull;
    float *ring[2] = {br_alloc(n), br_alloc(n)}, *alone = br_alloc(n);
    uint32_t got[2][RING_STEPS], again[2][RING_STEPS], token;
    uint32_t more, after[RING_STEPS + 1];
    const uint64_t before = b->d.launches;
    const uint32_t patience = b->d.patience;
    uint64_t launches;
    bool same = true;

    for (uint32_t e = b->d.epoch - BR_MK_RING_STEPS; e != b->d.epoch; e++) {
        unsigned long long *old = b->d.host->ring[e % BR_MK_RING_STEPS];
        old[0] = (uint64_t)e << 32 | 3; /* of steps long ago */
        old[1] = (uint64_t)e << 32 | BR_MK_PLACE(5, 0);
    }
    b->d.patience = UINT32_MAX; /* whatever else the machine does */
    ring_in_turn(b, got);
    ring_ahead(b, got, again, &more);
    launches = b->d.launches - before;
    OK(b, br_cu_decode_leave(&b->d, &b->st));
    CU(b, cuMemcpyDtoH(ring[1], b->d.logits, n));
    b->d.patience = 1;
    seek_one(b, 0, TOKEN, 0);
    OK(b, br_cu_decode_enter(&b->d, &b->st));
    for (uint32_t i = 0; i < RING_STEPS; i++) {
        OK(b, br_cu_decode_next(&b->d, 0, &token, &b->st));
        OK(b, br_cu_decode_wait(&b->d, &b->st)); /* it ends by itself */
        same &= token == got[0][i];
    }
    OK(b, br_cu_decode_leave(&b->d, &b->st));
    CU(b, cuMemcpyDtoH(ring[0], b->d.logits, n));
    b->d.patience = patience;
    seek_one(b, 1, TOKEN + 1, 0); /* left, and a step before it has ended */
    OK(b, br_cu_decode_enter(&b->d, &b->st));
    OK(b, br_cu_decode_next(&b->d, 0, &token, &b->st));
    OK(b, br_cu_decode_leave(&b->d, &b->st));
    for (uint32_t i = 0; i < RING_STEPS; i++) {
        seek_one(b, 1, i ? got[1][i - 1] : TOKEN + 1, i);
        OK(b, br_cu_decode_run(&b->d, BR_CU_MEGA, 1, &b->st));
        OK(b, br_cu_decode_tokens(&b->d, &token, 1, &b->st));
        same &= token == got[1][i];
    }
    same &= memcmp(got, again, sizeof got) == 0;
    for (uint32_t k = 0; k < 2; k++) {
        const uint32_t steps = RING_STEPS + k;
        seek_one(b, k, TOKEN + k, 0);
        OK(b, br_cu_decode_run(&b->d, BR_CU_MEGA, steps, &b->st));
        OK(b, br_cu_decode_tokens(&b->d, after, steps, &b->st));
        CU(b, cuMemcpyDtoH(alone, b->d.logits, n));
        same &= memcmp(after, got[k], sizeof got[k]) == 0;
        same &= memcmp(ring[k], alone, n) == 0;
        same &= !k || after[RING_STEPS] == more;
    }
    printf("check %-14s two sequences in turn==alone %s, launches %llu  %s\n",
           b->d.shape.name, same ? "yes" : "NO", (unsigned long long)launches,
           same && launches == 1 ? "ok" : "BAD");
    br_free(ring[0]);
    br_free(ring[1]);
    br_free(alone);
    return !(same && launches == 1);
}

/* More steps that begin where the host says, and more draws, than it may be ahead of
 * the device, handed over at once: the tokens of steps one by one. */
static int
check_queue(struct bench *b)
{
    enum { N = BR_MK_RING_STEPS + 6 };
    uint32_t token[2][N], drawn = 0;
    bool same;

    for (int k = 0; k < 2; k++)
        for (uint32_t i = 0; i < N; i++) {
            br_cu_decode_seek(&b->d, TOKEN + i % 32, i);
            OK(b, br_cu_decode_run(&b->d, BR_CU_MEGA, 1, &b->st));
            if (k == 0)
                OK(b, br_cu_decode_tokens(&b->d, &token[0][i], 1, &b->st));
        }
    OK(b, br_cu_decode_wait(&b->d, &b->st));
    for (uint32_t i = 0; i < N; i++) {
        const uint32_t at = (b->d.epoch - N + i - 1) % BR_MK_TOKENS;
        CU(b, cuMemcpyDtoH(&token[1][i], b->d.tokens + at * 4ull, 4));
    }
    for (uint32_t i = 0; i < N; i++)
        OK(b, br_cu_decode_pick(&b->d, &draws[0], &b->st));
    OK(b, br_cu_decode_picked(&b->d, &drawn, &b->st));
    same = memcmp(token[0], token[1], sizeof token[0]) == 0 &&
           drawn == token[0][N - 1];
    printf("check %-14s told ahead==one by one %s  %s\n", b->d.shape.name,
           same ? "yes" : "NO", same ? "ok" : "BAD");
    return !same;
}

/* Steps, each with its draw in one launch, that begin elsewhere or follow the token that
 * was drawn, all under way at once or one by one: the tokens of a step, then a draw. */
static int
check_both(struct bench *b)
{
    enum { N = 4, EVERY = 3 }; /* it is long when emulated */
    uint32_t token[2][N];
    bool same;

    for (int k = 0; k < 2; k++)
        for (uint32_t i = 0; i < N; i++) {
            const br_cu_pick *p = &draws[i % 4];

            if (i % EVERY == 0)
                br_cu_decode_seek(&b->d, TOKEN + i % 32, i);
            if (k) {
                OK(b, br_cu_decode_run_pick(&b->d, p, &b->st));
            } else {
                OK(b, br_cu_decode_run(&b->d, BR_CU_MEGA, 1, &b->st));
                OK(b, br_cu_decode_wait(&b->d, &b->st));
                OK(b, br_cu_decode_pick(&b->d, p, &b->st));
            }
            if (k == 0 || i + 1 == N)
                OK(b, br_cu_decode_picked(&b->d, &token[k][i], &b->st));
        }
    same = token[0][N - 1] == token[1][N - 1];
    for (uint32_t i = 0; i < N; i++) { /* the same, one by one */
        if (i % EVERY == 0)
            br_cu_decode_seek(&b->d, TOKEN + i % 32, i);
        OK(b, br_cu_decode_run_pick(&b->d, &draws[i % 4], &b->st));
        OK(b, br_cu_decode_picked(&b->d, &token[1][i], &b->st));
    }
    same = same && memcmp(token[0], token[1], sizeof token[0]) == 0;
    printf("check %-14s step and draw in one==one by one %s  %s\n",
           b->d.shape.name, same ? "yes" : "NO", same ? "ok" : "BAD");
    return !same;
}

void
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

const br_cu_pick draws[] = {
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
        for (size_t i = 0; i < BR_COUNT(draws); i++, all++)
            same += same_pick(b, x, &draws[i], 100 * kind + (uint32_t)i);
    }
    x[n - 1] = NAN;
    same += same_pick(b, x, &draws[2], 0), all++;
    for (uint32_t i = 0; i < n; i++)
        x[i] = -INFINITY;
    same += same_pick(b, x, &draws[2], 0), all++;
    printf("draws %-14s %u of %u are the host's  %s\n", b->d.shape.name, same,
           all, same == all ? "ok" : "BAD");
    br_free(x);
    return same != all;
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
        OK(b, br_cu_decode_next(&b->d, BR_CU_AHEAD, &got[i + 1], &b->st));
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
    br_cu_odd odd;
    int bad = 0;

    OK(b, br_cu_decode_new(&b->d, &b->cu, s, (b->stay ? b->stay : 8192) + 256,
                           b->image, &b->st));
    printf("shape %-14s %u layers, %.1f MB of weights a step, %u registers, "
           "%u bytes local, %u phases\n",
           s->name, s->n_layers, (double)b->d.plan.stream_bytes / 1e6,
           b->d.regs, b->d.local_bytes, b->d.plan.n_inst);
    make_weights(b);
    OK(b, br_cu_decode_odd(&b->d, &odd, &b->st));
    if (odd.weights)
        printf(
            "lists %-14s %u weights, %u groups, %u chunks with too many  %s\n",
            s->name, odd.weights, odd.groups, odd.chunks,
            odd.chunks ? "BAD" : "ok");
    bad |= odd.chunks != 0;
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
        bad |= check_cancel(b) || check_ring(b);
    /* 140 steps, each of one launch: long when emulated, so one shape of one layer;
     * how many multiprocessors a step is spread over is nothing to the queue */
    if (!b->stay && (!b->quick || strcmp(s->name, "tiny-q8_0") == 0))
        bad |= check_queue(b) | check_both(b);
    big &= !b->stay;
    if (big && !bad && !b->depths)
        time_decode(b);
    if (big && !bad)
        time_steps(b);
    if (b->profile)
        profile_decode(b, 128), profile_decode(b, 1536),
            profile_decode(b, 8192);
    free_weights(b);
    br_cu_decode_free(&b->d);
    return bad;
}

/* The shape in the forms that are asked for. */
static int
bench_forms(struct bench *b, const br_cu_shape *s)
{
    br_cu_shape plain = *s;
    char name[32];
    int bad = 0;

    if (!b->plain || s->format != BR_CU_BF16)
        bad = bench_shape(b, s);
    snprintf(name, sizeof name, "%s-16", s->name);
    plain.name = name;
    plain.plain = true;
    if ((b->plain || b->both) && s->format == BR_CU_BF16)
        bad |= bench_shape(b, &plain);
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
        b.plain |= !strcmp(argv[i], "--plain");
        b.both |= !strcmp(argv[i], "--both");
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
            bad |= bench_forms(&b, &shapes[k]);
        if (bad)
            break;
    }
    br_cuda_close(&b.cu);
    br_free(image);
    return bad;
}

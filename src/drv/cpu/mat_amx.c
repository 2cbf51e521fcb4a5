/* mat_amx.c - matrices of integers by AMX's tiles, beside AVX-512's kernels.
 *
 * tdpbssd multiplies 16 rows of activations with 16 outputs, four k to a lane:
 * a step of a panel is its right factor as it lies there, once weights have
 * their signs and eight bits. The sums are the contract's integers, so the bits
 * are everybody's. They go through memory to the vector unit, which scales
 * them, and that bounds it: a block of 32 takes the tiles 16 cycles (half of
 * their k stays empty) and the vectors 4 instructions for each of 16 rows, 32
 * cycles with two pipes. vpdpbusd takes 64 for its products alone.
 *
 * A span of a panel is unpacked once for all rows of a tile. Handfuls of less
 * than FEW rows, and floats, are left to mat_avx512.c: tdpbf16ps adds in an
 * order that one row alone would have to follow.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/cpu/mat_int.h"

#ifdef __AVX512VNNI__
#    include "drv/cpu/mat_avx512.h"

enum {
    HAND = 16, /* rows of a tile register */
    FEW = 5,
    GROUPS = MAT_MAX_ROWS / HAND,
    FOURS = 4, /* groups of four blocks in a span of flat blocks */
    BLOCK_BYTES = 32 * BR_MAT_PANEL, /* unpacked */
    STEPS = 8,                       /* of 32 k in a K block */
};

/* ---- tiles ---------------------------------------------------------------
 *
 * 0 sums, 1 activations of whole handfuls; 3 sums, 4 activations of the last,
 * shorter one; 2 weights. */

typedef struct tile_config {
    uint8_t palette, start, none[14];
    uint16_t bytes[16]; /* of a row */
    uint8_t rows[16];
} tile_config;
_Static_assert(sizeof(tile_config) == 64, "as the instruction reads it");

#    define TILE(text, p, stride) \
        __asm__ volatile(text ::"r"(p), "r"((size_t)(stride)) : "memory")
#    define TILES(text) __asm__ volatile(text)

static void
configure(const mat_format *f, int rest)
{
    tile_config c = {.palette = 1};
    uint16_t k = (uint16_t)f->sub;

    c.rows[0] = c.rows[1] = HAND;
    c.rows[3] = c.rows[4] = (uint8_t)(rest ? rest : HAND);
    c.rows[2] = (uint8_t)(k / 4);
    c.bytes[0] = c.bytes[2] = c.bytes[3] = 64;
    c.bytes[1] = c.bytes[4] = k;
    __asm__ volatile("ldtilecfg %0" ::"m"(c));
}

/* sum = rows a, a + stride .. times w, over the k that the tiles have. */
static MAT_INLINE void
product(bool whole, const uint8_t *a, size_t stride, const uint8_t *w,
        int32_t *sum)
{
    TILE("tileloadd (%0,%1,1), %%tmm2", w, 64);
    if (whole) {
        TILES("tilezero %tmm0");
        TILE("tileloadd (%0,%1,1), %%tmm1", a, stride);
        TILES("tdpbssd %tmm2, %tmm1, %tmm0");
        TILE("tilestored %%tmm0, (%0,%1,1)", sum, 64);
    } else {
        TILES("tilezero %tmm3");
        TILE("tileloadd (%0,%1,1), %%tmm4", a, stride);
        TILES("tdpbssd %tmm2, %tmm4, %tmm3");
        TILE("tilestored %%tmm3, (%0,%1,1)", sum, 64);
    }
}

/* ---- a handful of rows --------------------------------------------------- */

typedef struct hand {
    const uint8_t *const *row;
    __m512 (*chain)[HAND]; /* sums of each chain */
    int n;
    bool even; /* rows are `stride` apart */
    size_t stride, d, sum;
} hand;

typedef struct sums {
    __m512 of[GROUPS][MAT_CHAINS][HAND];
} sums;

static MAT_INLINE hand
hand_at(const mat_tile *t, const mat_format *f, int r0, int n, sums *s)
{
    act_view a = act_at(t->m->form, t->m->n_in, t->row[r0]);
    const void *sum = f->class == MAT_FLAT ? (const void *)a.nsum : a.sum32;
    hand h = {.row = t->row + r0,
              .chain = s->of[r0 / HAND],
              .n = n,
              .even = true,
              .stride = (size_t)(t->row[r0 + 1] - t->row[r0]),
              .d = (size_t)((const uint8_t *)a.d - t->row[r0]),
              .sum = (size_t)((const uint8_t *)sum - t->row[r0])};

    for (int r = 2; r < n; r++)
        h.even &= h.row[r] == h.row[r - 1] + h.stride;
    return h;
}

/* The product of bytes at.. of the hand's rows, brought together first where
 * they are anywhere (experts). */
static MAT_INLINE void
multiply(const hand *h, const mat_format *f, size_t at, const uint8_t *w,
         int32_t *sum)
{
    _Alignas(64) uint8_t near[HAND * 32];
    const uint8_t *a = h->row[0] + at;
    size_t stride = h->stride;

    if (!h->even) {
        for (int r = 0; r < h->n; r++)
            memcpy(near + r * f->sub, h->row[r] + at, (size_t)f->sub);
        a = near;
        stride = (size_t)f->sub;
    }
    product(h->n == HAND, a, stride, w, sum);
}

/* Bytes of 32 k of the panel, with signs. */
static MAT_INLINE void
unpack_step(const mat_format *f, const uint8_t *p, uint8_t *w)
{
    __m512i off = _mm512_set1_epi8((char)f->off);

    MAT_UNROLL
    for (int g = 0; g < 8; g++) {
        __m512i v = load_number(f, p, g);

        _mm512_store_si512(w + 64 * g, f->off ? _mm512_sub_epi8(v, off) : v);
    }
}

static MAT_INLINE __m512
spread_float(const uint8_t *p)
{
    return _mm512_castsi512_ps(splat4(p));
}

/* What lies behind a span is called for while that is multiplied, a little with
 * every product: 34 lines at once hold up everything else for a fifth of the
 * time. */
typedef struct ahead {
    const uint8_t *p;
    size_t each;
} ahead;

static MAT_INLINE ahead
ahead_of(const span *k, int products)
{
    return (ahead){k->head + k->bytes,
                   (k->bytes / 64 / (size_t)products + 1) * 64};
}

static MAT_INLINE void
call(ahead *a)
{
    for (size_t i = 0; i < a->each; i += 64)
        _mm_prefetch((const void *)(a->p + i), _MM_HINT_T1);
    a->p += a->each;
}

/* ---- blocks of 32: a span of up to FOURS x 4 of them --------------------- */

typedef struct flat_span {
    span k;
    ahead next;
    size_t four; /* bytes of four blocks and their head */
    _Alignas(64) uint8_t w[FOURS * MAT_CHAINS][BLOCK_BYTES];
    _Alignas(64) int32_t sum[FOURS][HAND * BR_MAT_PANEL];
} flat_span;

static MAT_INLINE const uint8_t *
flat_weights(const mat_format *f, const flat_span *s, uint32_t i)
{
    return s->k.head + i / MAT_CHAINS * s->four + mat_head_bytes(f) +
           i % MAT_CHAINS * mat_step_bytes(f);
}

/* Scales n rows of the sums of one chain's blocks, and adds them to it. */
static MAT_INLINE void
flat_rows(const mat_format *f, const flat_span *s, const hand *h, int c, int r0,
          int n)
{
    __m512 acc[HAND];
    int blocks = ((int)(s->k.b1 - s->k.b0) - c + MAT_CHAINS - 1) / MAT_CHAINS;

    MAT_UNROLL
    for (int r = 0; r < n; r++)
        acc[r] = h->chain[c][r0 + r];
    for (int i = 0; i < blocks; i++) {
        const uint8_t *head =
            s->k.head + (size_t)i * s->four + (size_t)c * mat_scale_step(f);
        size_t b = s->k.b0 + (size_t)(MAT_CHAINS * i + c);
        __m512 d = f->level == MAT_FP4 ? mx_scales(head) : halves(head);
        __m512 m = f->min ? halves(head + 128) : d;

        MAT_UNROLL
        for (int r = 0; r < n; r++) {
            const uint8_t *row = h->row[r0 + r];
            __m512 dx = spread_float(row + h->d + 4 * b);
            __m512 y = _mm512_mul_ps(
                _mm512_mul_ps(d, dx),
                _mm512_cvtepi32_ps(load(s->sum[i] + 16 * (r0 + r))));

            if (f->min)
                y = _mm512_fnmadd_ps(
                    _mm512_mul_ps(m, dx),
                    _mm512_cvtepi32_ps(splat4(row + h->sum + 4 * b)), y);
            acc[r] = _mm512_add_ps(acc[r], y);
        }
    }
    MAT_UNROLL
    for (int r = 0; r < n; r++)
        h->chain[c][r0 + r] = acc[r];
}

/* The products of one chain's blocks, as they leave the tiles. Nothing is read
 * again between them: each store of a tile is a barrier to the compiler. */
static MAT_INLINE void
flat_products(const mat_format *f, flat_span *s, const hand *h, int c)
{
    int n = ((int)(s->k.b1 - s->k.b0) - c + MAT_CHAINS - 1) / MAT_CHAINS;
    size_t at = 32 * (size_t)(s->k.b0 + (uint32_t)c), stride = h->stride;
    const uint8_t *a = h->row[0] + at;
    const uint8_t *w = f->low == 8 ? flat_weights(f, s, (uint32_t)c) : s->w[c];
    size_t to_next = f->low == 8 ? s->four : MAT_CHAINS * BLOCK_BYTES;
    int32_t *sum = s->sum[0];
    ahead next = s->next;

    if (h->even && h->n == HAND)
        for (int i = 0; i < n; i++) {
            product(true, a, stride, w, sum);
            call(&next);
            a += 32 * MAT_CHAINS;
            w += to_next;
            sum += HAND * BR_MAT_PANEL;
        }
    else
        for (int i = 0; i < n; i++, call(&next))
            multiply(h, f, at + (size_t)i * 32 * MAT_CHAINS,
                     w + (size_t)i * to_next, sum + i * HAND * BR_MAT_PANEL);
    s->next = next;
}

static MAT_INLINE void
flat_chain(const mat_format *f, const flat_span *s, const hand *h, int c)
{
    int r = 0;

    if (h->n == HAND) {
        flat_rows(f, s, h, c, 0, HAND);
        return;
    }
    for (; h->n - r >= 4; r += 4)
        flat_rows(f, s, h, c, r, 4);
    for (; r < h->n; r++)
        flat_rows(f, s, h, c, r, 1);
}

/* ---- blocks of 256: one at a time ---------------------------------------- */

typedef struct k_span {
    mat_place at;
    ahead next;
    int chain;
    _Alignas(64) uint8_t w[STEPS][BLOCK_BYTES];
    _Alignas(64) int32_t sum[2 * STEPS][HAND * BR_MAT_PANEL];
} k_span;

static MAT_INLINE void
k_rows(const mat_format *f, const k_span *s, const hand *h, int r0, int n)
{
    __m512 dw = halves(s->at.head), dm = f->min ? halves(s->at.head + 128) : dw;
    size_t to_d = h->d + 4 * (size_t)s->at.b;
    size_t to_sum = h->sum + 16 * (size_t)s->at.b;
    __m512i scale[16], min[4];
    scales k;

    load_scales(f, s->at.block, &k);
    MAT_UNROLL
    for (int i = 0; i < 256 / f->sub; i++)
        scale[i] = spread(f, k.s[i / 4], i % 4);
    MAT_UNROLL
    for (int i = 0; i < 4; i++)
        min[i] = f->min ? spread_pair(f, k.low[i / 2], 2 * (i % 2)) : scale[0];
    for (int r = r0; r < r0 + n; r++) {
        __m512 d = spread_float(h->row[r] + to_d), y;
        __m512i sum = _mm512_setzero_si512(), low = sum;

        MAT_UNROLL
        for (int i = 0; i < 256 / f->sub; i++)
            sum = _mm512_add_epi32(
                sum, _mm512_mullo_epi32(load(s->sum[i] + 16 * r), scale[i]));
        y = _mm512_mul_ps(_mm512_mul_ps(dw, d), _mm512_cvtepi32_ps(sum));
        MAT_UNROLL
        for (int i = 0; i < 4; i++)
            low = f->min ? dot2(low, min[i], h->row[r] + to_sum + 4 * i) : low;
        if (f->min)
            y = _mm512_fnmadd_ps(_mm512_mul_ps(dm, d), _mm512_cvtepi32_ps(low),
                                 y);
        h->chain[s->chain][r] = _mm512_add_ps(h->chain[s->chain][r], y);
    }
}

static MAT_INLINE void
k_hand(const mat_format *f, k_span *s, const hand *h)
{
    for (int i = 0; i < 256 / f->sub; i++, call(&s->next))
        multiply(h, f, 256 * (size_t)s->at.b + (size_t)(i * f->sub),
                 s->w[0] + i * f->sub * BR_MAT_PANEL, s->sum[i]);
    k_rows(f, s, h, 0, h->n);
}

/* ---- a panel ------------------------------------------------------------- */

typedef struct hands {
    hand at[GROUPS];
    int n;
} hands;

static MAT_INLINE void
flat_panel(const mat_tile *t, const mat_format *f, const hands *x)
{
    uint32_t n_blocks = t->m->n_in / 32;
    flat_span p;

    p.k = (span){.head = t->panel};
    p.four = mat_head_bytes(f) + MAT_CHAINS * mat_block_bytes(f);
    for (; p.k.b0 < n_blocks; p.k.b0 = p.k.b1, p.k.head += p.k.bytes) {
        p.k.b1 = BR_MIN(p.k.b0 + FOURS * MAT_CHAINS, n_blocks);
        p.k.bytes = (p.k.b1 - p.k.b0 + MAT_CHAINS - 1) / MAT_CHAINS * p.four;
        p.next = ahead_of(&p.k, (int)(p.k.b1 - p.k.b0) * x->n);
        for (uint32_t i = 0; f->low != 8 && i < p.k.b1 - p.k.b0; i++)
            unpack_step(f, flat_weights(f, &p, i), p.w[i]);
        for (int i = 0; i < x->n; i++)
            for (int c = 0; c < MAT_CHAINS; c++) {
                flat_products(f, &p, &x->at[i], c);
                flat_chain(f, &p, &x->at[i], c);
            }
    }
}

static MAT_INLINE void
k_panel(const mat_tile *t, const mat_format *f, const hands *x)
{
    const uint8_t *head = t->panel, *block = head + mat_head_bytes(f);
    k_span p;

    for (uint32_t b = 0; b < t->m->n_in / 256; b++) {
        span k = {.head = block, .bytes = mat_block_bytes(f)};

        p.chain = (int)(b % MAT_CHAINS);
        p.at = (mat_place){head + p.chain * mat_scale_step(f), block, b};
        for (int j = 0; j < STEPS; j++)
            unpack_step(
                f, block + mat_scale_bytes(f) + (size_t)j * mat_step_bytes(f),
                p.w[j]);
        p.next = ahead_of(&k, 256 / f->sub * x->n);
        for (int i = 0; i < x->n; i++)
            k_hand(f, &p, &x->at[i]);
        block += k.bytes;
        if (p.chain == MAT_CHAINS - 1) {
            head = block;
            block += mat_head_bytes(f);
        }
    }
}

static MAT_INLINE void
blocks(const mat_tile *t, int type)
{
    const mat_format *f = mat_format_of(type);
    hands x = {.n = 0};
    sums s;

    for (int r = 0; r < t->n_rows; r += HAND) {
        int n = BR_MIN(t->n_rows - r, HAND);

        x.at[x.n++] = hand_at(t, f, r, n, &s);
    }
    clear_sums(&s.of[0][0][0], x.n * MAT_CHAINS * HAND);
    configure(f, t->n_rows % HAND);
    if (f->class == MAT_K)
        k_panel(t, f, &x);
    else
        flat_panel(t, f, &x);
    __asm__ volatile("tilerelease");
    store_sums(t, 0, &s.of[0][0][0], HAND, HAND);
}

/* ---- which --------------------------------------------------------------- */

/* Rows r0.. to mat_avx512.c. */
static void
leave(const mat_tile *t, int r0)
{
    mat_tile u = {
        .m = t->m, .panel = t->panel, .n_panels = 1, .n_rows = t->n_rows - r0};

    memcpy(u.row, t->row + r0, (size_t)(u.n_rows + 7) / 8 * 8 * sizeof *u.row);
    memcpy(u.out, t->out + r0, (size_t)u.n_rows * sizeof *u.out);
    mat_avx512(&u);
}

static MAT_TILE void
tile(const mat_tile *t, int type)
{
    int rest = t->n_rows % HAND;
    mat_tile most;

    if (mat_format_of(type)->class == MAT_FLOAT || t->n_rows < FEW) {
        mat_avx512(t);
    } else if (rest == 0 || rest >= FEW) {
        blocks(t, type);
    } else {
        most = *t;
        most.n_rows -= rest;
        blocks(&most, type);
        leave(t, most.n_rows);
    }
}

#    define MAT_TILES mat_amx
#    define MAT_REST  mat_avx512
#    include "drv/cpu/mat_tiles.h"

/* ---- the machine's bound ------------------------------------------------- */

/* Full tiles, 64 k; four sums hide the latency. Integers are the only form. */
uint64_t
mat_amx_ops(br_form form, uint32_t rounds)
{
    tile_config c = {.palette = 1};

    if (form == BR_FORM_F32 || form == BR_FORM_BF16)
        return mat_avx512_ops(form, rounds);
    for (int i = 0; i < 8; i++) {
        c.rows[i] = 16;
        c.bytes[i] = 64;
    }
    __asm__ volatile("ldtilecfg %0" ::"m"(c));
    for (uint32_t i = 0; i < rounds; i += 16) {
        TILES("tdpbssd %tmm5, %tmm4, %tmm0");
        TILES("tdpbssd %tmm7, %tmm6, %tmm1");
        TILES("tdpbssd %tmm5, %tmm6, %tmm2");
        TILES("tdpbssd %tmm7, %tmm4, %tmm3");
    }
    __asm__ volatile("tilerelease");
    return (uint64_t)((rounds + 15) / 16) * 4 * 16 * 16 * 64 * 2;
}

#endif

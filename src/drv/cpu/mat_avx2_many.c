/* mat_avx2_many.c - AVX2 for tiles of many rows.
 *
 *   for lots of 16 steps (512 k) of the panel
 *       unpack: bytes, scales as 16 bits, heads as f32          18 KB
 *       for four rows at a time: products; chains stay in memory
 *
 * so that nibbles are cut and scales spread once for up to 64 rows, not for
 * every four. Eight bits have nothing to unpack and stay with mat_avx2.c.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/cpu/mat_int.h"

#ifdef __AVX2__
#    include "drv/cpu/mat_avx2.h"

enum { LOT = 16 };

/* Blocks of a panel, unpacked. w: as Q8_0's steps. */
typedef struct lot {
    __m256i w[LOT][8][2];
    __m256i scale[LOT][2][2]; /* of a step's parts */
    __m256i min[LOT / 8][4][2];
    __m256 d[LOT][2], dmin[LOT][2]; /* of blocks */
} lot;

typedef __m256 chains[MAT_CHAINS][2];

/* ---- unpacking ----------------------------------------------------------- */

static MAT_INLINE mat_place
place_of(const mat_format *f, const uint8_t *panel, uint32_t b)
{
    uint64_t size = mat_block_bytes(f);
    const uint8_t *head =
        panel + b / MAT_CHAINS * (mat_head_bytes(f) + MAT_CHAINS * size);

    return (mat_place){head + b % MAT_CHAINS * mat_scale_step(f),
                       head + mat_head_bytes(f) + b % MAT_CHAINS * size, b};
}

static MAT_INLINE void
unpack_scales(const mat_format *f, const uint8_t *p, lot *l, uint32_t b)
{
    scales k;

    load_scales(f, p, &k);
    for (int j = 0; j < 8; j++)
        for (int h = 0; h < 2; h++) {
            __m256i *to = &l->scale[8 * b + (uint32_t)j][0][h];

            if (f->sub == 16) {
                to[0] = spread_signed(k.s[j / 2][h], 2 * (j % 2));
                to[2] = spread_signed(k.s[j / 2][h], 2 * (j % 2) + 1);
            } else {
                to[0] = to[2] = spread(k.s[j / 4][h], j % 4, j % 4);
            }
        }
    for (int j = 0; f->min && j < 4; j++)
        for (int h = 0; h < 2; h++)
            l->min[b][j][h] =
                spread(k.min[j / 2][h], 2 * (j % 2), 2 * (j % 2) + 1);
}

static MAT_INLINE void
unpack(const mat_format *f, const uint8_t *panel, uint32_t b0, uint32_t n,
       lot *l)
{
    for (uint32_t b = 0; b < n; b++) {
        mat_place at = place_of(f, panel, b0 + b);
        uint32_t steps = f->class == MAT_K ? 8 : 1;

        for (int h = 0; h < 2; h++) {
            l->d[b][h] = f->level == MAT_FP4 ? mx_scales(at.head + 8 * h)
                                             : halves(at.head + 16 * h);
            if (f->min)
                l->dmin[b][h] = halves(at.head + 128 + 16 * h);
        }
        if (f->class == MAT_K)
            unpack_scales(f, at.block, l, b);
        for (uint32_t k = 0; k < steps; k++) {
            MAT_UNROLL
            for (int g = 0; g < 8; g++)
                load_group(
                    f, at.block + mat_scale_bytes(f) + k * mat_step_bytes(f), g,
                    l->w[steps * b + k][g]);
        }
    }
}

/* ---- products ------------------------------------------------------------ */

static MAT_INLINE void
many_flat(const mat_format *f, lot *l, uint32_t b, int n, const act_view *a,
          uint32_t at, __m256i sum[TILE_ROWS][2])
{
    __m256i one = _mm256_set1_epi16(1), ones[2][2] = {{one, one}, {one, one}};
    tile_rows x;

    MAT_UNROLL
    for (int r = 0; r < n; r++) {
        x.q[r] = a[r].q + 32 * at;
        x.npair[r] = a[r].npair + 2 * at;
        sum[r][0] = sum[r][1] = _mm256_setzero_si256();
    }
    narrow_step(f, true, (const uint8_t *)l->w[b], n, &x, ones, sum);
}

static MAT_INLINE void
lot_mins(const lot *l, uint32_t b, int n, const act_view *a, uint32_t at,
         __m256i low[TILE_ROWS][2])
{
    MAT_UNROLL
    for (int i = 0; i < 4 * n; i++) {
        int j = i / n, r = i % n;
        __m256i s = splat4(a[r].sum32 + 8 * at + 2 * j);

        MAT_UNROLL
        for (int h = 0; h < 2; h++)
            low[r][h] = _mm256_add_epi32(low[r][h],
                                         _mm256_madd_epi16(l->min[b][j][h], s));
    }
}

static MAT_INLINE void
many_k(const mat_format *f, lot *l, uint32_t b, int n, const act_view *a,
       uint32_t at, __m256i sum[TILE_ROWS][2], __m256i low[TILE_ROWS][2])
{
    const uint8_t *p = (const uint8_t *)l->w[8 * b];
    tile_rows x;

    MAT_UNROLL
    for (int r = 0; r < n; r++)
        sum[r][0] = sum[r][1] = low[r][0] = low[r][1] = _mm256_setzero_si256();
    if (f->min)
        lot_mins(l, b, n, a, at, low);
    for (uint32_t j = 0; j < 8; j++, p += 512) {
        MAT_UNROLL
        for (int r = 0; r < n; r++) {
            x.q[r] = a[r].q + 256 * at + 32 * j;
            x.npair[r] = a[r].npair + 32 * at + 4 * j;
        }
        narrow_step(f, true, p, n, &x, l->scale[8 * b + j], sum);
    }
}

/* Block b of the lot, `at` of the rows, to a chain of each row. */
static MAT_INLINE void
many_block(const mat_format *f, lot *l, uint32_t b, int n, const act_view *a,
           uint32_t at, chains *chain)
{
    __m256i sum[TILE_ROWS][2], low[TILE_ROWS][2];

    if (f->class == MAT_K)
        many_k(f, l, b, n, a, at, sum, low);
    else
        many_flat(f, l, b, n, a, at, sum);
    MAT_UNROLL
    for (int i = 0; i < 2 * n; i++) {
        int h = i % 2, r = i / 2;
        __m256 d = _mm256_set1_ps(a[r].d[at]);
        __m256 y = _mm256_mul_ps(_mm256_mul_ps(l->d[b][h], d),
                                 _mm256_cvtepi32_ps(sum[r][h]));
        __m256 *to = &chain[r][at % MAT_CHAINS][h];

        if (f->min)
            y = _mm256_fnmadd_ps(_mm256_mul_ps(l->dmin[b][h], d),
                                 f->class == MAT_K
                                     ? _mm256_cvtepi32_ps(low[r][h])
                                     : _mm256_set1_ps((float)a[r].nsum[at]),
                                 y);
        *to = _mm256_add_ps(*to, y);
    }
}

static MAT_INLINE void
many_rows(const mat_tile *t, const mat_format *f, lot *l, uint32_t b0,
          uint32_t n_blocks, int r0, int n, chains *chain)
{
    act_view a[TILE_ROWS];

    MAT_UNROLL
    for (int r = 0; r < n; r++)
        a[r] = act_at(f->class == MAT_K ? BR_FORM_Q256 : BR_FORM_Q32,
                      t->m->n_in, t->row[r0 + r]);
    for (uint32_t b = 0; b < n_blocks; b++)
        many_block(f, l, b, n, a, b0 + b, chain + r0);
}

static MAT_INLINE void
many(const mat_tile *t, int type)
{
    const mat_format *f = mat_format_of(type);
    uint32_t n_blocks = t->m->n_in / (f->class == MAT_K ? 256 : 32);
    uint32_t per = f->class == MAT_K ? LOT / 8 : LOT;
    chains chain[MAT_MAX_ROWS];
    lot l;

    memset(chain, 0, (size_t)t->n_rows * sizeof chain[0]);
    for (uint32_t b = 0; b < n_blocks; b += per) {
        uint32_t n = BR_MIN(per, n_blocks - b);
        int r = 0;

        unpack(f, t->panel, b, n, &l);
        for (; t->n_rows - r >= TILE_ROWS; r += TILE_ROWS)
            many_rows(t, f, &l, b, n, r, TILE_ROWS, chain);
        for (; r < t->n_rows; r++)
            many_rows(t, f, &l, b, n, r, 1, chain);
    }
    for (int r = 0; r < t->n_rows; r++)
        for (int h = 0; h < 2; h++)
            _mm256_storeu_ps(
                t->out[r] + 8 * h,
                _mm256_add_ps(_mm256_add_ps(chain[r][0][h], chain[r][1][h]),
                              _mm256_add_ps(chain[r][2][h], chain[r][3][h])));
}

/* Of the formats that come here; the others' functions are empty. */
static MAT_TILE void
tile(const mat_tile *t, int type)
{
    const mat_format *f = mat_format_of(type);

    if (f->class != MAT_FLOAT && !is_wide(f))
        many(t, type);
}

#    define MAT_TILES   mat_avx2_many
#    define MAT_REST(t) br_unreachable("a format of blocks")
#    include "drv/cpu/mat_tiles.h"

#endif

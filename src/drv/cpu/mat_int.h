/* mat_int.h - packed matrices as the kernels see them.
 *
 * A panel holds 16 outputs. Integer formats (mat_format.def) keep k in groups
 * of four, because that is what one lane of vpdpbusd, vpmaddubsw or sdot eats:
 *
 *   panel   group of 4 blocks | group of 4 blocks | ... (the last one shorter)
 *   group   d[4][16] f16 (or e8) | dmin[4][16] f16 | block 0 | .. | block 3
 *   block   scales of sub-blocks (K-quants) | step | step | ...
 *   step    32 k of 16 outputs: low bits, then high bits
 *
 *   8 bits  byte 64 g + 4 o + i is k = 4 g + i of output o      8 x 64 bytes
 *   4 bits  byte 64 c + 4 o + i: group g = 2 c in its low half, 2 c + 1 in its
 *           high half                                           4 x 64
 *   + 1     bit g of byte 4 o + i                               1 x 64
 *   + 2     bits 2 (g mod 4).. of byte 64 (g / 4) + 4 o + i     2 x 64
 *
 * Four blocks are the four chains of the contract. Everything but the heads of
 * a last short group starts at a multiple of 64 bytes.
 *
 * Floats: eight pieces, each two of the contract's 16 lanes (k mod 16), in the
 * order in which lanes meet; in each, a line for every 16 k: 16 outputs of its
 * first lane, then of its second; BF16: both lanes of an output side by side.
 * The tail of k is -0, which no sum notices. Activations in f32 and BF16 lie
 * the same way: piece, line, lane. Other formats: 16 rows as in the file.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_MAT_INT_H
#define BR_MAT_INT_H

#include "drv/cpu/cpu_mat.h"

/* Kernels are written once for all formats and numbers of rows; inlined into
 * a function of one of each, constants fold and loops over registers unroll.
 * That is a minute of compiling a file where a sanitizer looks at each copy:
 * there is one, which looks at what it is for. For TSan it is one function, for
 * each call hands it registers as memory, which it watches; for UBSan that would
 * take a minute again, so for it they are functions as they stand here. */
#ifdef BR_ONE_COPY
#    define MAT_INLINE inline
#else
#    define MAT_INLINE inline __attribute__((always_inline))
#endif
#if defined BR_ONE_COPY || defined BR_ONE_TILE
#    define MAT_TILE   __attribute__((noinline))
#    define MAT_UNROLL /* below -O2 gcc ignores it, with a warning */
#else
#    define MAT_TILE MAT_INLINE
#    ifdef __clang__ /* plain unroll would not wait for the count: 0029 */
#        define MAT_UNROLL _Pragma("clang loop unroll(full)")
#    else
#        define MAT_UNROLL _Pragma("GCC unroll 64")
#    endif
#endif

enum { MAT_MAX_ROWS = 64, MAT_PANELS = 2, MAT_CHAINS = 4 };

/* From so many rows on a line lasts longer than it takes to come: ahead() of
 * mat_avx512.c. */
enum { MAT_SLOW_ROWS = 3 };

typedef enum mat_class {
    MAT_FLAT,  /* blocks of 32, one scale */
    MAT_K,     /* blocks of 256, sub-blocks with integer scales */
    MAT_FLOAT, /* F32 F16 BF16 */
    MAT_RAW,   /* as in the file */
} mat_class;

typedef enum mat_level { MAT_PLAIN, MAT_IQ4, MAT_FP4 } mat_level;

/* One row of mat_format.def. Weight = stored number - off (through a table of
 * levels where there is one). */
typedef struct mat_format {
    mat_class class;
    int low, high; /* bits of a weight */
    int off;
    bool min;
    int sub; /* k of a sub-block; 32 beside MAT_FLAT */
    mat_level level;
} mat_format;

#define F(name, class, low, high, off, min, sub, level) \
    static const mat_format mat_format_##name = {       \
        (class), (low), (high), (off), (min), (sub), (level)};
#include "drv/cpu/mat_format.def"
#undef F
static const mat_format mat_format_raw = {.class = MAT_RAW};

/* Here, so that a kernel for one type folds it away. */
static MAT_INLINE const mat_format *
mat_format_of(int type)
{
    switch (type) {
#define F(name, ...) \
case BR_Q_##name:    \
    return &mat_format_##name;
#include "drv/cpu/mat_format.def"
#undef F
    default: return &mat_format_raw;
    }
}

/* Bytes of 32 k of 16 outputs; of the scales before a K block; of a head. */
static inline uint32_t
mat_step_bytes(const mat_format *f)
{
    return (uint32_t)(f->low + f->high) * 64;
}

static inline uint32_t
mat_scale_bytes(const mat_format *f)
{
    return f->class != MAT_K ? 0 : f->sub == 16 ? 256 : 192;
}

static inline uint32_t
mat_head_bytes(const mat_format *f)
{
    return f->level == MAT_FP4 ? 64 : f->min ? 256 : 128;
}

/* From one block's 16 scales to the next's. */
static inline uint32_t
mat_scale_step(const mat_format *f)
{
    return f->level == MAT_FP4 ? 16 : 32;
}

static inline uint32_t
mat_block_bytes(const mat_format *f)
{
    return mat_scale_bytes(f) + (f->class == MAT_K ? 8 : 1) * mat_step_bytes(f);
}

/* A row of activations in integers. n: blocks of it (of 32, or 256).
 *
 *   Q32    q | d[n] | npair[n] | nsum[n]
 *   Q256   q | d[n] | npair[16 n] | sum32[8 n] | sum16[16 n]
 *
 * nsum: minus the sum of a block. npair: minus the sums of q whose k mod 4 is
 * 0 or 1 (low half), 2 or 3 (high half), of a block of 32 or of 16 k: what the
 * 16-bit lanes of AVX2 start from to take an offset off. sum32, sum16: sums of
 * 32 and of 16 k. */
typedef struct act_view {
    uint32_t n;
    int8_t *q;
    float *d;
    int16_t *npair;
    int32_t *nsum;
    int16_t *sum32, *sum16;
} act_view;

static inline act_view
act_at(br_form form, uint32_t n_in, const uint8_t *row)
{
    act_view v = {0};
    uint8_t *p = (uint8_t *)(uintptr_t)row;

    v.q = (int8_t *)p;
    if (form == BR_FORM_Q32) {
        v.n = n_in / 32;
        v.d = (float *)(void *)(p + n_in);
        v.npair = (int16_t *)(void *)(v.d + v.n);
        v.nsum = (int32_t *)(void *)(v.npair + 2 * v.n);
    } else {
        v.n = n_in / 256;
        v.d = (float *)(void *)(p + n_in);
        v.npair = (int16_t *)(void *)(v.d + v.n);
        v.sum32 = v.npair + 32 * v.n;
        v.sum16 = v.sum32 + 8 * v.n;
    }
    return v;
}

/* The first lane of a piece: 8-4-2-1 is 0 with 8, 4 with 12, those two.. */
static MAT_INLINE uint32_t
mat_lane(uint32_t piece)
{
    return (piece & 1) << 3 | (piece & 2) << 1 | (piece & 4) >> 1;
}

/* Lines of a piece. */
static MAT_INLINE uint32_t
mat_lines(uint32_t n_in)
{
    return (n_in + 15) / 16;
}

/* Bytes of a line of a piece of a panel. */
static MAT_INLINE uint32_t
mat_line_bytes(int type)
{
    return type == BR_Q_F32 ? 128 : 64;
}

/* What a kernel computes: a panel, or at most mat_isa.panels neighbours, times
 * at most MAT_MAX_ROWS rows. Up to a multiple of eight the last row stands
 * again, for kernels that take three as four. */
typedef struct mat_tile {
    const br_mat *m;
    const uint8_t *panel;
    int n_panels, n_rows;
    ptrdiff_t soon; /* from each row to one that comes next; 0: none does */
    const uint8_t *row[MAT_MAX_ROWS];
    float *out[MAT_MAX_ROWS]; /* 16 numbers a panel */
} mat_tile;

/* Where a kernel stands in a panel: block b of the rows, too. */
typedef struct mat_place {
    const uint8_t *head, *block; /* the block's scales; its weights */
    uint32_t b;
} mat_place;

typedef void mat_kernel(const mat_tile *t);

/* An instruction set; NULLs: no kernels in this build. ops multiplies as fast
 * as it can and returns how many operations that were. */
typedef struct mat_isa {
    const char *name;
    int panels; /* that a tile may have */
    mat_kernel *tile;
    void (*act)(br_form form, const float *x, uint32_t n_in, uint8_t *row);
    uint64_t (*ops)(br_form form, uint32_t rounds);
    /* Of tight panels (mat_tight.h; NULLs: it has none). Four lines into a
     * group; false: it needs a spare, and `spare` is it. */
    bool (*tighten)(const uint8_t *lines, const uint8_t *high, uint8_t *group,
                    uint8_t *spare);
    /* A panel as one that is not tight. */
    void (*loosen)(const br_mat *m, const uint8_t *panel, uint8_t *to);
} mat_isa;

extern const mat_isa mat_isas[BR_ISA_COUNT];

/* mat_c.c: every format. What the others have no kernel for, they hand down. */
void mat_c(const mat_tile *t);
void mat_c_act(br_form form, const float *x, uint32_t n_in, uint8_t *row);
uint64_t mat_c_ops(br_form form, uint32_t rounds);
void mat_avx2(const mat_tile *t);
void mat_avx2_act(br_form form, const float *x, uint32_t n_in, uint8_t *row);
uint64_t mat_avx2_ops(br_form form, uint32_t rounds);
void mat_avx512(const mat_tile *t);
void mat_avx512_act(br_form form, const float *x, uint32_t n_in, uint8_t *row);
uint64_t mat_avx512_ops(br_form form, uint32_t rounds);
bool mat_avx512_tighten(const uint8_t *lines, const uint8_t *high,
                        uint8_t *group, uint8_t *spare);
void mat_avx512_loosen(const br_mat *m, const uint8_t *panel, uint8_t *to);
void mat_amx(const mat_tile *t);
uint64_t mat_amx_ops(br_form form, uint32_t rounds);
void mat_neon(const mat_tile *t);
void mat_neon_act(br_form form, const float *x, uint32_t n_in, uint8_t *row);
uint64_t mat_neon_ops(br_form form, uint32_t rounds);

#endif

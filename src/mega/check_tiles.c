/* check_tiles.c - tiles in any order, on any counters: do they make a whole?
 *
 *   in order     each tile begins where the last one ended, on one counter, so
 *                they grow one run of columns; most buffers are written so
 *   otherwise    a bit for each cell of the coarsest grid on which all of them
 *                lie: no bit is set twice, and the areas sum up to the buffer
 *
 * If they do, no two of them meet, and a reader that comes after them all finds
 * all of it written: the buffer is simple (check_sound.h). If not, or if the
 * grid is fine for so few tiles, or a reader does not come after them all,
 * check_region.c says more. 100,000 tiles of one buffer in random order take 9
 * ms instead of 190; 64 at a time, on counters of their own, 17 instead of 45.
 *
 * Cost      40 bytes a tile that is out of order, at most 64 cells each, and a
 *           question for each tile and reader: EACH for each task in the mean.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "mega/check_sound.h"

enum { CELLS_EACH = 64, CELLS = 4096, EACH = 8 };

bool
br_snd_tile(br_snd *s, uint32_t id, uint32_t b, const br_mega_rect *r)
{
    br_wsum *w = &s->ws[b];
    br_tile t = {*r, id, w->tile};
    bool high =
        r->r0 == 0 && r->r1 == s->val[b].rows && s->ctr[id] == w->counter;

    if (high && w->lo == w->hi) {
        w->lo = r->c0;
        w->hi = r->c1;
    } else if (high && r->c0 == w->hi) {
        w->hi = r->c1;
    } else if (high && r->c1 == w->lo) {
        w->lo = r->c0;
    } else {
        if (!br_vec_push(&s->tiles, t))
            return br_snd_no_memory(s);
        w->tile = (uint32_t)s->tiles.n;
    }
    return true;
}

static int64_t
gcd(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

typedef struct grid {
    int64_t row, col;   /* extent of a cell */
    int64_t rows, cols; /* in cells */
    int64_t left;       /* of the buffer's elements, not covered yet */
    uint32_t n;         /* tiles */
    uint64_t *bit;      /* of each cell, row by row */
} grid;

/* Takes a tile into account; false: more is covered than there is. */
static bool
measure(grid *g, const br_mega_rect *r)
{
    int64_t area = (r->r1 - r->r0) * (r->c1 - r->c0);

    g->row = gcd(gcd(r->r0, r->r1), g->row);
    g->col = gcd(gcd(r->c0, r->c1), g->col);
    g->left -= area;
    g->n++;
    return g->left >= 0;
}

/* False when a cell is covered already. */
static bool
cover(grid *g, const br_mega_rect *r)
{
    for (int64_t i = r->r0 / g->row; i < r->r1 / g->row; i++) {
        uint64_t at = (uint64_t)(i * g->cols + r->c0 / g->col);
        uint64_t end = (uint64_t)(i * g->cols + r->c1 / g->col);

        while (at < end) {
            uint64_t n = BR_MIN(end - at, 64 - at % 64);
            uint64_t run = (n == 64 ? 0 : 1ull << n) - 1;

            if (g->bit[at / 64] >> at % 64 & run)
                return false;
            g->bit[at / 64] |= run << at % 64;
            at += n;
        }
    }
    return true;
}

/* Every tile of the buffer, until one is not taken. */
static bool
each_tile(const br_snd *s, uint32_t b, grid *g,
          bool (*take)(grid *, const br_mega_rect *))
{
    const br_wsum *w = &s->ws[b];
    br_mega_rect run = {0, s->val[b].rows, w->lo, w->hi};

    if (w->lo < w->hi && !take(g, &run))
        return false;
    for (uint32_t at = w->tile; at; at = s->tiles.at[at - 1].next)
        if (!take(g, &s->tiles.at[at - 1].rect))
            return false;
    return true;
}

bool
br_snd_covered(br_snd *s, uint32_t b)
{
    const br_op_val *v = &s->val[b];
    grid g = {.row = v->rows, .col = v->cols, .left = v->numel};
    int64_t most;
    size_t words;

    if (!s->ws[b].tile)
        return s->ws[b].lo == 0 && s->ws[b].hi == v->cols;
    if (!each_tile(s, b, &g, measure) || g.left != 0)
        return false;
    most = (int64_t)g.n * CELLS_EACH + CELLS;
    g.rows = v->rows / g.row;
    g.cols = v->cols / g.col;
    if (g.rows > most / g.cols)
        return false;
    words = (size_t)(g.rows * g.cols) / 64 + 1;
    br_arena_reset(&s->region);
    g.bit = br_arena_get(&s->region, words * sizeof *g.bit);
    if (!g.bit) {
        br_snd_no_memory(s);
        return false;
    }
    memset(g.bit, 0, words * sizeof *g.bit);
    return each_tile(s, b, &g, cover);
}

bool
br_snd_after_tiles(br_snd *s, uint32_t t, uint32_t b)
{
    br_wsum *w = &s->ws[b];

    if (w->reader && br_snd_same_waits(s, w->reader - 1, t))
        return true;
    if (br_hb_quick(&s->hb, w->counter, t) != BR_YES)
        return false;
    for (uint32_t at = w->tile; at; at = s->tiles.at[at - 1].next)
        if (s->asked++ / EACH > s->n ||
            br_hb_quick(&s->hb, s->ctr[s->tiles.at[at - 1].task], t) != BR_YES)
            return false;
    w->reader = t + 1;
    return true;
}

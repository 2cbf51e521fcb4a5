/* cuda_fit.c - does a model fit on the device? Asked before anything is taken, of a
 * model that is laid out twice: a first time to count (br_cun.counts).
 *
 *   rest       values, scratch, pages, states, vectors
 *   matrices   one allocation; of experts that are tiles their rows' factors
 *   later      a piece of a matrix on its way; pieces of products, f16 of a GLU,
 *              sines; with a limit also what draws tokens
 *   experts    have what is left, op by op (cuda_experts.c)
 *
 * What comes later is counted from above: of neighbours that may become one product,
 * both alone and all together. Nothing that br_cuda_alloc gives goes beyond a limit
 * (cuda_api.c); this says so early and in full.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/cuda/cuda_plan_int.h"

#include <stdio.h>

/* Blocks of a grid in its second dimension, so many at most; x is 2^31 - 1. */
enum { MOST_BLOCKS = 65535 };

static uint32_t
tiles_of(uint64_t rows)
{
    return (uint32_t)((rows + BR_ND_TILE_ROWS - 1) / BR_ND_TILE_ROWS);
}

static uint64_t
most_rows(const br_cun *x, uint32_t v)
{
    enum { IMMA = 32, OTHERS = 8 /* at least, of a block */ };
    const int type = x->v.at[v].t->type;

    if (cun_tiled(x, v) || cun_asked_as_tiles(x, v))
        return (uint64_t)MOST_BLOCKS * BR_ND_TILE_ROWS;
    if (cun_form_of(type) != BR_ND_F32 && cun_form_of(type) != BR_ND_TILES)
        return (uint64_t)MOST_BLOCKS * IMMA;
    return (uint64_t)INT32_MAX * OTHERS;
}

br_code
cun_check_rows(const br_cun *x, br_status *st)
{
    const br_ir *g = x->v.g;

    for (uint32_t i = 0; i < g->n_nodes && !x->dev; i++)
        for (int b = 0; b < g->nodes[i].n_in; b++) {
            const uint32_t v = g->nodes[i].bind[b].value;
            const br_gguf_tensor *t = v == BR_IR_NONE ? NULL : x->v.at[v].t;

            if (t && br_bind_is_matrix(&g->nodes[i], b) &&
                t->dim[1] > most_rows(x, v))
                return br_fail(
                    st, BR_E_LIMIT,
                    "%.*s: %llu rows; tier %s takes up to %llu of its format",
                    (int)t->name.n, t->name.p, (unsigned long long)t->dim[1],
                    cun_tier(x), (unsigned long long)most_rows(x, v));
        }
    return BR_OK;
}

/* ---- counting ----------------------------------------------------------- */

/* A matrix of so many tiles of rows: pieces of its columns. */
static void
count_pieces(br_cun *x, uint32_t tiles, uint32_t n_in)
{
    const uint32_t each = cun_piece_of(tiles, n_in / 64);
    const uint64_t pieces = (n_in / 64 + each - 1) / each;
    const uint64_t blocks = BR_MAX(tiles, (uint32_t)CUN_FULL);

    if (pieces < 2)
        return;
    x->n_met = BR_MAX(x->n_met, blocks);
    x->n_sums = BR_MAX(x->n_sums, blocks * pieces);
}

static void
count_matrix(br_cun *x, uint32_t v, cun_need *need)
{
    const br_gguf_tensor *t = x->v.at[v].t;

    need->matrices += cun_matrix_bytes(x, v);
    if (cun_asked_as_tiles(x, v)) {
        const uint64_t bytes = cun_experts_bytes(x, v);

        *(x->v.g->values[v].rank < 3 ? &need->matrices : &need->experts) +=
            bytes;
    }
    if (cun_tiled(x, v) || cun_asked_as_tiles(x, v)) {
        const bool far = cun_asked_as_tiles(x, v) && t->n_dims > 2; /* may be */

        need->way =
            BR_MAX(need->way,
                   cun_way_of(t) + (far ? cun_experts_bytes(x, v) / t->dim[2]
                                        : 0)); /* one, as tiles */
    }
    if (cun_tiled(x, v))
        count_pieces(x, tiles_of(t->dim[1]), (uint32_t)t->dim[0]);
}

/* Products of one input after each other, which may become one; two of them a GLU. */
static void
count_neighbours(br_cun *x, uint32_t i, uint64_t *glu)
{
    const br_ir *g = x->v.g;
    const br_ir_node *first = &g->nodes[i];
    uint32_t tiles = 0;

    for (uint32_t k = i; k < g->n_nodes && k < i + CUN_PARTS; k++) {
        const br_ir_node *n = &g->nodes[k];
        const uint32_t v = n->bind[1].value;

        if (n->op != BR_IR_MATMUL || !cun_tiled(x, v) ||
            n->bind[0].value != first->bind[0].value)
            return;
        tiles += tiles_of(x->v.at[v].t->dim[1]);
        count_pieces(x, tiles, (uint32_t)x->v.at[v].t->dim[0]);
        if (k == i + 1) {
            const uint64_t rows = x->v.at[v].t->dim[1];

            count_pieces(x, tiles_of(2 * rows), (uint32_t)x->v.at[v].t->dim[0]);
            *glu = BR_MAX(*glu, rows);
        }
    }
}

static uint64_t
later(br_cun *x)
{
    const br_ir *g = x->v.g;
    const uint64_t piece = BR_ND_TILE_ROWS * BR_ND_TILE_TOKENS * 4;
    const br_ir_node *turned = NULL;
    uint64_t glu = 0, sines = 0;

    for (uint32_t i = 0; i < g->n_nodes; i++) {
        const br_ir_node *n = &g->nodes[i];

        count_neighbours(x, i, &glu);
        if (n->op != BR_IR_ROPE)
            continue;
        if (!turned || turned->bind[2].value != n->bind[2].value ||
            br_ir_f(turned, BR_IA_scale, 1) != br_ir_f(n, BR_IA_scale, 1))
            sines +=
                4ull * (uint64_t)br_ir_i(n, BR_IA_n_rot, 0) * x->c.max_rows;
        turned = n;
    }
    x->glu_cols = (uint32_t)glu;
    x->costs.row += sines / x->c.max_rows + glu * 2 + 4;
    return sines + (glu * 2 + 4) * x->padded + x->n_sums * piece +
           x->n_met * 4 + 8 + 2 * glu * sizeof(float); /* squares of its rows */
}

static br_code
count_all(br_cun *x, cun_need *need, br_status *st)
{
    const br_ir *g = x->v.g;
    bool *seen = br_try_calloc(g->n_values + 1, sizeof *seen);

    if (!seen)
        return br_fail(st, BR_E_OOM, "weights: out of memory");
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        const br_ir_node *n = &g->nodes[i];

        for (int b = 0; b < n->n_in; b++) {
            const uint32_t v = n->bind[b].value;

            if (v == BR_IR_NONE || seen[v] || !x->v.at[v].t ||
                !br_bind_is_matrix(n, b) ||
                (n->op == BR_IR_EMBED && !cun_has_rows(x, v)))
                continue;
            seen[v] = true;
            count_matrix(x, v, need);
        }
    }
    br_free(seen);
    if (!x->plain)
        need->later = later(x) + need->way;
    if (!x->plain && x->c.memory)
        need->later += cun_pick_bytes(x);
    return BR_OK;
}

/* ---- does it fit? ------------------------------------------------------- */

br_code
cun_fit(br_cun *x, br_status *st)
{
    /* Graphs, code, stacks: what the driver takes beside what it is asked for. */
    const uint64_t reserve = 512u << 20;
    const br_cun_costs *c = &x->costs;
    br_cuda_need need;
    char more[96] = "";
    cun_need n = {0};

    BR_TRY(count_all(x, &n, st));
    if (x->dev)
        return BR_OK;
    if (x->c.plan)
        *x->c.plan = br_cun_costs_of(x);
    if (n.experts)
        snprintf(more, sizeof more,
                 "; %.1f MB of experts can stay in the host's memory",
                 br_mb(n.experts));
    need = (br_cuda_need){n.matrices, c->pages, c->states,
                          c->rest - c->pages - c->states + n.later};
    BR_TRY(br_cuda_fits(&x->cu, &need, x->counts ? 0 : c->rest, more, &x->left,
                        st));
    x->left -= x->cu.limit ? 0 : BR_MIN(x->left, reserve);
    return x->counts ? BR_OK : cun_pile_up(x, CUN_MATRICES, n.matrices, st);
}

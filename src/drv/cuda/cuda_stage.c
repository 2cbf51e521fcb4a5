/* cuda_stage.c - a step's block as the host makes it, and its way to the device.
 *
 * Page tables stay on the device, a slot's at a place of its own; a step brings
 * what changed since the slot's last one: most bring nothing, a sixteenth of
 * decoding rows a page. The lists are compared with those of before, 64 slots of
 * 512 positions in 1 us.
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/cuda/cuda_nodes_int.h"

#include "model/quant.h"

#include <string.h>

/* ---- tables ------------------------------------------------------------- */

br_code
cun_open_tables(br_cun *x, br_status *st)
{
    const size_t n = (size_t)x->c.n_slots * x->v.plan.n_groups * x->table_n;

    x->listed = br_try_alloc((n + 1) * sizeof *x->listed);
    if (!x->listed ||
        !br_vec_reserve(&x->fresh, (size_t)x->c.n_slots * x->v.plan.n_groups))
        return br_fail(st, BR_E_OOM, "tier %s: out of memory", cun_tier(x));
    cun_forget_tables(x);
    return cun_zero(x, x->block + x->at.tables, n, st);
}

void
cun_forget_tables(br_cun *x)
{
    memset(x->listed, 0xff,
           ((size_t)x->c.n_slots * x->v.plan.n_groups * x->table_n) *
               sizeof *x->listed);
}

/* A list's entries from the first that differs from before to the last one. A
 * page that the slot has given back (behind a window) is not looked at: 0. */
static void
stage_list(br_cun *x, uint32_t list, uint32_t group, const uint32_t *pages,
           uint32_t n)
{
    const size_t first = (size_t)list * x->table_n;
    uint32_t *was = x->listed + first;
    uint32_t *table = (uint32_t *)(void *)(x->stage + x->at.tables) + first;
    uint32_t from = 0;

    if (memcmp(was, pages, n * sizeof *pages) == 0)
        return;
    while (was[from] == pages[from])
        from++;
    while (was[n - 1] == pages[n - 1])
        n--;
    for (uint32_t i = from; i < n; i++) {
        was[i] = pages[i];
        table[i] = pages[i] < x->c.n_pages[group] ? pages[i] : 0;
    }
    x->fresh.at[x->fresh.n++] = (cun_fresh){(uint32_t)first + from, n - from};
    x->n_fresh += n - from;
}

/* The slots' page lists, each once, as far as their last position. */
static void
stage_tables(br_cun *x, const br_step *step)
{
    const uint32_t groups = x->v.plan.n_groups;

    x->fresh.n = 0;
    x->n_fresh = 0;
    for (uint32_t t = 0; t < step->n_rows; t++)
        x->last[step->slot[t]] = -1;
    for (uint32_t t = 0; t < step->n_rows; t++)
        x->last[step->slot[t]] =
            BR_MAX(x->last[step->slot[t]], step->position[t]);
    for (uint32_t t = 0; t < step->n_rows; t++) {
        const uint32_t slot = (uint32_t)step->slot[t];
        const uint32_t pages = (uint32_t)x->last[slot] / BR_PAGE_TOKENS + 1;

        for (uint32_t g = 0; x->last[slot] == step->position[t] && g < groups;
             g++)
            stage_list(x, slot * groups + g, g, step->pages[slot * groups + g],
                       pages);
    }
}

/* Rows of a slot at consecutive positions, of which attention reads keys once;
 * the last rows of a prompt, which see most, first. */
static void
stage_tiles(br_cun *x, const br_step *step)
{
    struct br_nd_tile *tile = (void *)(x->stage + x->at.tile);
    uint32_t end = step->n_rows, n = 0;

    x->least_tile = UINT32_MAX;
    x->most_tile = 0;
    for (uint32_t t = 0; t < end; t++)
        x->first[step->slot[t]] = INT32_MAX;
    for (uint32_t t = 0; t < end; t++)
        x->first[step->slot[t]] =
            BR_MIN(x->first[step->slot[t]], step->position[t]);
    x->alone = true; /* a slot has no position twice */
    for (uint32_t t = 0; t < end; t++)
        x->alone = x->alone && x->first[step->slot[t]] == step->position[t];
    while (end > 0) {
        uint32_t t = end - 1;

        while (t > 0 && end - t < x->tile_rows &&
               step->slot[t - 1] == step->slot[t] &&
               step->position[t - 1] + 1 == step->position[t])
            t--;
        tile[n++] =
            (struct br_nd_tile){t, end - t, (uint32_t)x->first[step->slot[t]]};
        x->least_tile = BR_MIN(x->least_tile, end - t);
        x->most_tile = BR_MAX(x->most_tile, end - t);
        end = t;
    }
    x->n_tiles = n;
    memset(tile + n, 0, (step->n_rows - n) * sizeof *tile);
}

void
cun_stage(br_cun *x, const br_step *step)
{
    stage_tiles(x, step);
    stage_tables(x, step);
}

/* ---- its way ------------------------------------------------------------ */

/* The tokens' rows of a table. */
static br_code
send_rows(br_cun *x, const cun_embed *e, const br_step *step, br_status *st)
{
    const br_qinfo *q = br_qinfo_of(e->t->type);
    const size_t bytes = e->cols / q->elems * q->bytes;
    float *out = (void *)(x->stage + e->rows);

    for (uint32_t t = 0; t < step->n_rows; t++)
        br_dequant(e->t->type, e->t->data + (size_t)step->token[t] * bytes,
                   out + (size_t)t * e->cols, e->cols);
    return cun_send(x, x->block + e->rows, out,
                    (size_t)step->n_rows * e->cols * 4, st);
}

br_code
cun_send_tables(br_cun *x, br_status *st)
{
    for (size_t i = 0; i < x->fresh.n; i++) {
        const cun_fresh *f = &x->fresh.at[i];
        const size_t at = x->at.tables + f->at * sizeof(uint32_t);

        BR_TRY(cun_send(x, x->block + at, x->stage + at,
                        f->n * sizeof(uint32_t), st));
    }
    return BR_OK;
}

/* Of each row: br_stay's part, where the step comes from the host's memory. */
static void
stage_rows(br_cun *x, const br_step *step)
{
    const uint32_t rows = step->n_rows, groups = x->v.plan.n_groups;
    int32_t *want = (void *)(x->stage + x->at.want);
    uint32_t *at = (void *)(x->stage + x->at.at);

    memcpy(x->stage + x->at.slot, step->slot, rows * 4ull);
    memcpy(x->stage + x->at.position, step->position, rows * 4ull);
    memcpy(x->stage + x->at.token, step->token, rows * 4ull);
    for (uint32_t t = 0; t < rows; t++)
        if (!step->want || step->want[t])
            *want++ = (int32_t)t;
    for (uint32_t t = 0; t < rows; t++)
        for (uint32_t g = 0; g < groups; g++)
            *at++ = ((uint32_t)step->slot[t] * groups + g) * x->table_n;
}

br_code
cun_send_step(br_cun *x, const br_step *step, br_status *st)
{
    stage_rows(x, step);
    BR_TRY(cun_send(x, x->block, x->stage, x->at.tables, st));
    BR_TRY(cun_send_tables(x, st));
    for (uint32_t i = 0; i < x->n_embeds; i++)
        BR_TRY(send_rows(x, &x->embed[i], step, st));
    return BR_OK;
}

/* bench_cuda_chunks.c - the CUDA tier's bits on a GPU, however a prompt is cut.
 *
 *   bench-cuda-chunks N [--dense] SHAPE...
 *
 * For each shape of random weights: logits of N tokens in chunks of N, 1, 7, 33
 * and 130 must have the same bits, and so must steps of 1 to 64 rows, each of a slot
 * of its own somewhere in those tokens (--dense: by matrices of 12 bits a weight, where N
 * tokens at once, beyond 64, go by tiles); of a small shape also their NMSE against
 * the reference tier. Exit 0, 1 when bits differ, 5 without a device.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kit.h"
#include "run/lm_model.h"
#include "run/oracle.h"
#include "run/shape.h"
#include "run/tier_diff.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static float *
logits_of(const br_model *m, const br_oracle_config *c, const int32_t *tokens,
          uint32_t n, uint32_t chunk, br_oracle *o)
{
    const size_t vocab = (size_t)m->hp.n_vocab;
    float *out = calloc(n * vocab, sizeof *out);
    br_status st = {0};

    if (!out)
        exit(4);
    if (c)
        must(br_oracle_open(o, m, c, &st), &st);
    else
        br_oracle_reset(o, 0);
    must(br_oracle_feed(o, 0, 0, tokens, n, chunk, out, &st), &st);
    return out;
}

enum { SLOTS = 64, PAGE = 16 };

/* A step of rows from slot `from` on, the slot's number k at position at[k] of the
 * same tokens; true: they have the logits of `all`. */
static bool
rows_agree(const br_lm *lm, const int32_t *tokens, const int32_t *at,
           const uint32_t *const *tables, int32_t from, uint32_t rows,
           const float *all)
{
    const size_t vocab = (size_t)lm->n_vocab;
    float *got = calloc(rows * vocab, sizeof *got);
    int32_t slot[SLOTS], token[SLOTS];
    br_step s = {rows, slot, at + from, token, NULL, tables, false, NULL};
    br_status st = {0};
    bool same = true;

    if (!got)
        exit(4);
    for (uint32_t i = 0; i < rows; i++) {
        slot[i] = from + (int32_t)i;
        token[i] = tokens[at[slot[i]]];
    }
    must(lm->step(lm->ctx, &s, got, &st), &st);
    for (uint32_t i = 0; i < rows; i++)
        same =
            same && memcmp(got + i * vocab, all + (size_t)at[slot[i]] * vocab,
                           vocab * sizeof *got) == 0;
    free(got);
    return same;
}

/* Slots that hold more and more of the tokens, and a row more of each. */
static int
slots_alike(const br_model *m, const int32_t *tokens, uint32_t n,
            const float *all)
{
    static const uint32_t rows[] = {1, 2, 5, 9, 16, 33, 64};
    const uint32_t pages = n / PAGE + 1;
    const br_lm_config c = {
        .tier = "cuda", .n_ctx = pages * PAGE, .n_slots = SLOTS};
    const uint32_t *tables[SLOTS * BR_MAX_KV_GROUPS];
    uint32_t *page = calloc(SLOTS * (size_t)pages, sizeof *page);
    int32_t *slot = calloc(n, sizeof *slot), *pos = calloc(n, sizeof *pos);
    int32_t *none = calloc(n, sizeof *none), at[SLOTS];
    br_status st = {0};
    br_lm_model *r;
    int bad = 0;

    if (!page || !slot || !pos || !none)
        exit(4);
    must(br_lm_model_open(&r, m, &c, &st), &st);
    const br_lm *lm = br_lm_model_lm(r);
    for (uint32_t i = 0; i < SLOTS * pages; i++)
        page[i] = i;
    for (uint32_t i = 0; i < SLOTS * lm->plan->n_groups; i++)
        tables[i] = page + i / lm->plan->n_groups * pages;
    for (uint32_t i = 0; i < SLOTS; i++) {
        at[i] = (int32_t)((n - 1) * (i + 1) / SLOTS);
        for (int32_t k = 0; k < at[i]; k++)
            slot[k] = (int32_t)i, pos[k] = k;
        const br_step s = {(uint32_t)at[i], slot,  pos, tokens, none,
                           tables,          false, NULL};
        if (at[i] > 0)
            must(lm->step(lm->ctx, &s, NULL, &st), &st);
    }
    for (size_t k = 0; k < BR_COUNT(rows); k++)
        for (int32_t from = 0; from + (int32_t)rows[k] <= SLOTS; from += 21)
            if (!rows_agree(lm, tokens, at, tables, from, rows[k], all))
                bad = 1,
                printf(" %u rows from slot %d on differ;", rows[k], from);
    br_lm_model_close(r);
    free(page);
    free(slot);
    free(pos);
    free(none);
    return bad;
}

static int
shape(const char *spec, uint32_t n, bool dense)
{
    static const uint32_t chunks[] = {1, 7, 33, 130};
    const br_oracle_config rc = {.act = BR_REF_QUANTISED, .n_ctx = n + 16};
    const br_oracle_config cc = {.gpu = {.tier = "cuda"},
                                 .kv = BR_Q_F16,
                                 .gpu_dense =
                                     dense ? BR_CUN_DENSE_YES : BR_CUN_DENSE_NO,
                                 .n_ctx = n + 16,
                                 .max_rows = n,
                                 .max_want = n};
    int32_t *tokens = calloc(n, sizeof *tokens);
    br_status st = {0};
    br_str doc = {0};
    br_model *m;
    br_oracle o, ref;
    int bad = 0;

    must(br_shape_model(&doc, spec, true, &st), &st);
    must(br_model_open_mem(&m, doc.at, doc.n, &st), &st);
    const size_t vocab = (size_t)m->hp.n_vocab;
    if (!tokens)
        exit(4);
    for (uint32_t i = 0; i < n; i++)
        tokens[i] = (int32_t)(i * 37 % vocab);
    float *all = logits_of(m, &cc, tokens, n, 0, &o);
    if (dense && br_cun_costs_of(o.cun).dense == 0)
        bad = 1, printf("no matrix is dense;");
    printf("%-26s", spec);
    for (size_t k = 0; k < BR_COUNT(chunks); k++) {
        float *got = logits_of(m, NULL, tokens, n, chunks[k], &o);
        size_t first = 0;

        while (first < n * vocab && memcmp(got + first, all + first, 4) == 0)
            first++;
        if (first < n * vocab)
            bad = 1, printf(" chunks of %u differ from token %zu on;",
                            chunks[k], first / vocab);
        free(got);
    }
    br_oracle_close(&o);
    bad |= slots_alike(m, tokens, n, all);
    printf(bad ? "\n"
               : " the same bits in chunks of 1, 7, 33, 130, %u and rows "
                 "of 64 slots",
           n);
    if (vocab <= 4096 && !bad) {
        float *want = logits_of(m, &rc, tokens, n, 0, &ref);

        printf(", NMSE %.3g\n", br_nmse(all, want, n * vocab));
        br_oracle_close(&ref);
        free(want);
    } else if (!bad) {
        printf("\n");
    }
    fflush(stdout);
    free(all);
    free(tokens);
    br_model_close(m);
    br_str_fini(&doc);
    return bad;
}

int
main(int argc, char **argv)
{
    const int n = argc > 1 ? atoi(argv[1]) : 0;
    const bool dense = argc > 2 && strcmp(argv[2], "--dense") == 0;
    int bad = 0;

    if (n <= 0 || argc < 3 + dense) {
        fprintf(stderr, "bench-cuda-chunks N [--dense] SHAPE...\n");
        return 2;
    }
    for (int i = 2 + dense; i < argc; i++)
        bad |= shape(argv[i], (uint32_t)n, dense);
    return bad;
}

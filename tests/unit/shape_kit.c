/* shape_kit.c - see shape_kit.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "shape_kit.h"

#include "run/shape.h"

#include "tok_kit.h"

#include <stdlib.h>

#include "t.h"

shaped
open_shape_file(const char *spec)
{
    br_status st = {0};
    shaped on = {0};

    t_ok(br_shape_model(&on.doc, spec, true, &st), &st);
    t_ok(br_model_open_mem(&on.m, on.doc.at, on.doc.n, &st), &st);
    return on;
}

shaped
open_shape(const char *spec, const br_lm_config *c)
{
    shaped on = open_shape_file(spec);
    br_status st = {0};

    t_ok(br_lm_model_open(&on.r, on.m, c, &st), &st);
    on.lm = br_lm_model_lm(on.r);
    return on;
}

void
close_shape(shaped *on)
{
    br_lm_model_close(on->r);
    br_model_close(on->m);
    br_str_fini(&on->doc);
}

br_tok *
shape_words(void)
{
    tk_vocab *v = t_keep(calloc(1, sizeof *v));

    v->model = "llama";
    v->scores = true;
    tk_add(v, "<unk>", BR_TOK_UNKNOWN, 0);
    for (int i = 1; i < 256; i++)
        tk_add(v, t_printf("\xe2\x96\x81w%d", i), BR_TOK_NORMAL, 0);
    return tk_open(v, NULL);
}

void
feed_slot(const br_lm *lm, const uint32_t *const *tables, uint32_t slot,
          uint32_t from, uint32_t n, int32_t *fed)
{
    int32_t *slots = t_keep(calloc(3 * (size_t)n + 1, sizeof *slots));
    int32_t *position = slots + n, *want = position + n;
    const br_step s = {n,    slots,  position, fed + from,
                       want, tables, false,    NULL};
    br_status st = {0};

    for (uint32_t i = 0; i < n; i++) {
        slots[i] = (int32_t)slot;
        position[i] = (int32_t)(from + i);
        fed[from + i] = (position[i] * 37 + (int32_t)slot) % lm->n_vocab;
    }
    t_ok(lm->step(lm->ctx, &s, NULL, &st), &st);
}

void
same_as_a_prompt(const br_lm *lm, const uint32_t *const *tables, uint32_t slot,
                 uint32_t spare, const int32_t *fed, uint32_t n)
{
    const size_t row = (size_t)lm->n_vocab;
    float *logits = t_keep(calloc(2 * row, sizeof *logits));
    int32_t *slots = t_keep(calloc(3 * (size_t)n, sizeof *slots));
    int32_t *position = slots + n, *want = position + n;
    br_step s = {n, slots, position, fed, want, tables, false, NULL};
    br_status st = {0};

    for (uint32_t i = 0; i < n; i++) {
        slots[i] = (int32_t)spare;
        position[i] = (int32_t)i;
        want[i] = i + 1 == n;
    }
    t_ok(lm->step(lm->ctx, &s, logits, &st), &st);
    slots[0] = (int32_t)slot;
    position[0] = (int32_t)n - 1;
    want[0] = 1;
    s.n_rows = 1;
    s.token = &fed[n - 1];
    t_ok(lm->step(lm->ctx, &s, logits + row, &st), &st);
    ck_assert_mem_eq(logits, logits + row, row * sizeof *logits);
}

br_sample_params
way_to_draw(uint32_t i)
{
    static const float temperature[] = {0, 0.9f, 1.3f};
    br_sample_params p = br_sample_defaults();

    p.seed = 11 + i;
    p.temperature = temperature[i];
    p.top_k = i == 2 ? 20 : 0;
    p.top_p = i == 1 ? 0.9f : 1;
    return p;
}

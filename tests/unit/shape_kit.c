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

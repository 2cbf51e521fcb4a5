/* shape_kit.c - see shape_kit.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "shape_kit.h"

#include "run/shape.h"

#include "t.h"

shaped
open_shape(const char *spec, const br_lm_config *c)
{
    br_status st = {0};
    shaped on = {0};

    t_ok(br_shape_model(&on.doc, spec, true, &st), &st);
    t_ok(br_model_open_mem(&on.m, on.doc.at, on.doc.n, &st), &st);
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

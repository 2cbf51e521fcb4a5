/* builder.h - adds buffers, counters and tasks to a program being made.
 *
 * Failure is sticky, as in br_str: after the first one every add does nothing
 * and returns 0, so a pass adds a whole node and asks once, at its end. All
 * that is handed in is copied into the program's arena, except params, which
 * br_mega_params has already put there.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_MEGA_BUILDER_H
#define BR_MEGA_BUILDER_H

#include "mega/mega.h"

typedef struct br_mega_builder {
    br_mega_prog *prog; /* owned until br_mega_builder_take */
    size_t cap_buffers, cap_counters, cap_tasks;
    br_status *st;
    br_code code; /* the first failure */
} br_mega_builder;

br_code br_mega_builder_open(br_mega_builder *b, br_status *st) BR_MUST_USE;
void br_mega_builder_close(br_mega_builder *b); /* frees what is not taken */
br_mega_prog *br_mega_builder_take(br_mega_builder *b);

/* Each returns the new id, which is its index. */
int64_t br_mega_add_buffer(br_mega_builder *b, const br_mega_buffer *buf);
int64_t br_mega_add_counter(br_mega_builder *b, br_text note);
int64_t br_mega_add_task(br_mega_builder *b, const br_mega_task *task);

/* One scalar of a task. */
typedef struct br_mega_pv {
    br_mega_param p;
    bool real; /* the value is f, else i */
    int64_t i;
    double f;
} br_mega_pv;
#define BR_PV_I(name, v) ((br_mega_pv){.p = BR_MP_##name, .i = (v)})
#define BR_PV_F(name, v) \
    ((br_mega_pv){.p = BR_MP_##name, .real = true, .f = (v)})

/* An object of n scalars in the given order, tagged; never NULL unless the
 * builder has failed. */
br_json *br_mega_params(br_mega_builder *b, const br_mega_pv *v, size_t n);
/* Appends a member to params made above and tags it. */
void br_mega_params_put(br_mega_builder *b, br_json *params, br_mega_param p,
                        br_json *v);

#endif

/* jinja_lib.h - what the files of Jinja's functions share: one signature for
 * filters and methods, and access to arguments by place or name.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_JINJA_LIB_H
#define BR_JINJA_LIB_H

#include "model/jinja_ast.h"

/* b: what stands before the "|" or the "." */
typedef br_code jj_lib_fn(jj_run *r, const jj_val *b, const jj_args *a,
                          jj_val *out);
#define LIB_FN(name)                                                  \
    br_code jj_f_##name(jj_run *r, const jj_val *b, const jj_args *a, \
                        jj_val *out)
#define F(name, fn)       jj_lib_fn jj_f_##fn;
#define M(kind, name, fn) jj_lib_fn jj_f_##fn;
#include "model/jinja.def"
#undef F
#undef M

const jj_val *jj_arg(const jj_args *a, size_t i, const char *name); /* NULL */
int64_t jj_arg_int(const jj_args *a, size_t i, const char *name, int64_t def);
bool jj_arg_true(const jj_args *a, size_t i, const char *name);
br_code jj_arg_text(jj_run *r, const jj_args *a, size_t i, const char *name,
                    br_text *out);

#endif

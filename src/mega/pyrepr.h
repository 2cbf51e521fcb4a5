/* pyrepr.h - JSON values as Python prints them, for texts that must match.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_MEGA_PYREPR_H
#define BR_MEGA_PYREPR_H

#include "base/json.h"

void br_py_repr(br_str *out, const br_json *v); /* 'x' 1.0 True None [1, 2] */
void br_py_str(br_str *out, const br_json *v);  /* the same; strings bare */
void br_py_repr_text(br_str *out, br_text t);

#endif

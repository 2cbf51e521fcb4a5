/* vec.c - the one growth policy of all growing arrays: double, start at 8.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include <string.h>

typedef BR_VEC(char) any_vec;

bool
br_vec_grow(void *vec, size_t elem, size_t need)
{
    any_vec v;
    size_t cap, bytes;
    char *p;

    /* Through memcpy: the caller's struct is another type to the compiler. */
    memcpy(&v, vec, sizeof v);
    cap = BR_MAX(v.cap * 2, (size_t)8);
    cap = BR_MAX(cap, need);
    if (br_mul_overflows(cap, elem, &bytes))
        return false;
    p = br_try_realloc(v.at, bytes);
    if (!p)
        return false;
    v.at = p;
    v.cap = cap;
    memcpy(vec, &v, sizeof v);
    return true;
}

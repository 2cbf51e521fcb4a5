/* st_make.h - safetensors files for tests.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef ST_MAKE_H
#define ST_MAKE_H

#include "base/base.h"

typedef struct st_make {
    br_str head, data;
} st_make;

/* dims: last is contiguous; bytes of the product of dims times the dtype's. */
void st_add(st_make *m, const char *name, const char *dtype,
            const uint64_t *dims, int n_dims, const void *p, size_t bytes);
/* The file; lives until the test ends. Empties m. */
br_text st_file(st_make *m);
/* One file of this header and so many bytes of data. */
br_text st_raw(const char *head, size_t data_bytes);

#endif

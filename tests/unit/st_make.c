/* st_make.c - see st_make.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "st_make.h"

#include "t.h"

#include <stdlib.h>
#include <string.h>

void
st_add(st_make *m, const char *name, const char *dtype, const uint64_t *dims,
       int n_dims, const void *p, size_t bytes)
{
    br_str_printf(&m->head, "%s\"%s\": {\"dtype\": \"%s\", \"shape\": [",
                  m->head.n ? ", "
                            : "{\"__metadata__\": {\"format\": \"pt\"}, ",
                  name, dtype);
    for (int d = 0; d < n_dims; d++)
        br_str_printf(&m->head, "%s%llu", d ? ", " : "",
                      (unsigned long long)dims[d]);
    br_str_printf(&m->head, "], \"data_offsets\": [%zu, %zu]}", m->data.n,
                  m->data.n + bytes);
    br_str_put(&m->data, p, bytes);
}

static br_text
join(const char *head, size_t n_head, const char *data, size_t n_data)
{
    char *p = t_keep(malloc(8 + n_head + n_data + 1));

    for (int i = 0; i < 8; i++)
        p[i] = (char)(n_head >> 8 * i);
    memcpy(p + 8, head, n_head);
    if (n_data && data)
        memcpy(p + 8 + n_head, data, n_data);
    else
        memset(p + 8 + n_head, 0x5a, n_data);
    return (br_text){p, 8 + n_head + n_data};
}

br_text
st_file(st_make *m)
{
    br_text t;

    br_str_puts(&m->head, "}");
    t = join(m->head.at, m->head.n, m->data.at, m->data.n);
    br_str_fini(&m->head);
    br_str_fini(&m->data);
    return t;
}

br_text
st_raw(const char *head, size_t data_bytes)
{
    return join(head, strlen(head), NULL, data_bytes);
}

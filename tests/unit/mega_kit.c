/* mega_kit.c - see mega_kit.h. SPDX-License-Identifier: Apache-2.0 */
#include "mega_kit.h"

#include <stdlib.h>
#include <string.h>

#include "mega/dtype.h"
#include "t.h"

int
kit_buf(kit *k, int kind, int dtype, const char *shape)
{
    br_str_printf(&k->buffers,
                  "%s{\"id\": %d, \"name\": \"b%d\", \"kind\": \"%s\", "
                  "\"dtype\": \"%s\", \"shape\": [%s], \"space\": \"HBM\", "
                  "\"source\": null}",
                  k->n_buffers ? ", " : "", k->n_buffers, k->n_buffers,
                  br_mega_kind_name(kind), br_mega_dtype_name(dtype), shape);
    return k->n_buffers++;
}

int
kit_task(kit *k, const char *op, const char *in, const char *out,
         const char *params, const char *waits)
{
    const char *sep = "";

    br_str_printf(&k->tasks,
                  "%s{\"id\": %d, \"op\": \"%s\", \"inputs\": [%s], "
                  "\"outputs\": [%s], \"out_counter\": %d, \"params\": {%s}, "
                  "\"waits\": [",
                  k->n_tasks ? ", " : "", k->n_tasks, op, in, out, k->n_tasks,
                  params);
    while (*waits) {
        char *end;
        long c = strtol(waits, &end, 10), t;

        ck_assert_msg(end[0] == '>' && end[1] == '=', "waits: %s", waits);
        t = strtol(end + 2, &end, 10);
        br_str_printf(&k->tasks, "%s{\"counter\": %ld, \"threshold\": %ld}",
                      sep, c, t);
        sep = ", ";
        waits = end + strspn(end, ", ");
    }
    br_str_puts(&k->tasks, "]}");
    return k->n_tasks++;
}

const char *
kit_text(kit *k)
{
    br_str counters = {0};
    const char *text;

    for (int i = 0; i < k->n_tasks; i++)
        br_str_printf(&counters, "%s{\"id\": %d, \"init\": 0, \"note\": \"\"}",
                      i ? ", " : "", i);
    text = t_printf("{\"ir_version\": \"0.2.0\", \"abi_version\": \"0.2\", "
                    "\"meta\": {}, \"target\": null, \"buffers\": [%s], "
                    "\"counters\": [%s], \"tasks\": [%s], \"pages\": %s, "
                    "\"config\": null}",
                    br_str_z(&k->buffers), br_str_z(&counters),
                    br_str_z(&k->tasks), k->pages ? k->pages : "null");
    br_str_fini(&counters);
    return text;
}

static br_code
load(kit *k)
{
    const char *text = kit_text(k);

    t_ok(br_mega_load(&k->p, text, strlen(text), &k->st), &k->st);
    return br_mega_vm_new(&k->vm, k->p, &k->desc, &k->st);
}

void
kit_load(kit *k)
{
    t_ok(load(k), &k->st);
}

br_code
kit_refused(kit *k)
{
    br_code code = load(k);

    ck_assert_int_ne(code, BR_OK);
    ck_assert_ptr_null(k->vm);
    return code;
}

/* Where element i of a row-padded tensor lies. */
static void *
row_of(const br_mega_value *v, const void *data, size_t i, int64_t *col)
{
    int64_t n = v->rank ? v->shape[v->rank - 1] : 1;
    union {
        const void *c;
        char *d;
    } p = {data};

    *col = (int64_t)i % n;
    return p.d + (int64_t)i / n * br_dt_row_bytes(v->dtype, n);
}

void
kit_bind(kit *k, int buffer, const double *x, size_t n)
{
    br_mega_value v = br_mega_vm_get(k->vm, buffer);
    void *data = t_keep(calloc(v.nbytes + 1, 1));
    int64_t col;

    ck_assert_uint_eq(n, kit_numel(k, buffer));
    for (size_t i = 0; i < n; i++) {
        void *row = row_of(&v, data, i, &col);

        ck_assert(br_dt_put(v.dtype, row, col, x[i]));
    }
    v.data = data;
    t_ok(br_mega_vm_bind(k->vm, buffer, &v, &k->st), &k->st);
}

br_code
kit_run(kit *k)
{
    k->st = (br_status){0};
    return br_mega_vm_run(k->vm, BR_MEGA_ORDER_SWEEP, 0, &k->st);
}

double
kit_get(kit *k, int buffer, size_t i)
{
    br_mega_value v = br_mega_vm_get(k->vm, buffer);
    const void *row;
    int64_t col;

    ck_assert_uint_lt(i, kit_numel(k, buffer));
    row = row_of(&v, v.data, i, &col);
    return br_dt_get(v.dtype, row, col);
}

size_t
kit_numel(kit *k, int buffer)
{
    return (size_t)br_mega_numel(&k->p->buffers[buffer]);
}

void
kit_end(kit *k)
{
    br_mega_vm_free(k->vm);
    br_mega_free(k->p);
    br_str_fini(&k->buffers);
    br_str_fini(&k->tasks);
}

/* test_interp_vectors.c - the reference VM on the recorded numeric programs:
 * outputs, intermediates, order and sweeps; then the same in other orders, and
 * by threads.
 * SPDX-License-Identifier: Apache-2.0 */
#include "t.h"

#include <math.h>
#include <string.h>

#include "drv/cpu/cpu_walk.h"
#include "mega/dtype.h"
#include "mega/interp.h"

typedef struct vectors {
    const char *dir;
    br_arena arena;
    br_json *manifest;
} vectors;

static void
open_vectors(vectors *v)
{
    br_status st = {0};
    char *text;
    size_t n;

    v->dir = t_vectors("amk");
    if (!v->dir)
        t_skip("no ../shared/vectors/amk here");
    text = t_read(t_printf("%s/manifest.json", v->dir), &n);
    br_arena_init(&v->arena, 0);
    t_ok(br_json_parse(&v->manifest, &v->arena, text, n, BR_JSON_LAX, &st),
         &st);
}

static const br_json *
need(const br_json *obj, const char *key)
{
    const br_json *v = br_json_get(obj, key);

    ck_assert_msg(v != NULL, "manifest: no %s", key);
    return v;
}

static uint32_t
shape_of(const br_json *v, int64_t shape[4])
{
    uint32_t rank = 0;

    for (const br_json *d = v->child; d; d = d->next) {
        ck_assert_uint_lt(rank, 4);
        shape[rank++] = d->i;
    }
    return rank;
}

static int
dtype_of(const br_json *v)
{
    return strcmp(v->s, "f32") == 0   ? BR_MDT_F32
           : strcmp(v->s, "i32") == 0 ? BR_MDT_I32
           : strcmp(v->s, "i8") == 0  ? BR_MDT_I8
           : strcmp(v->s, "u8") == 0  ? BR_MDT_U8
                                      : -1;
}

static void
bind_all(const vectors *v, br_mega_vm *vm, const br_json *list)
{
    for (const br_json *e = list->child; e; e = e->next) {
        const br_json *shape = br_json_get(e, "storage_shape");
        const br_json *file = need(e, "file");
        br_status st = {0};
        br_mega_value val;
        int64_t dim[4];
        size_t n;

        if (file->kind == BR_J_NULL)
            continue;
        val.data = t_read(t_printf("%s/%s", v->dir, file->s), &n);
        val.nbytes = n;
        val.shape = dim;
        val.rank = shape_of(shape ? shape : need(e, "shape"), dim);
        val.dtype = dtype_of(need(e, "file_dtype"));
        t_ok(br_mega_vm_bind(vm, need(e, "buffer")->i, &val, &st), &st);
    }
}

static double
number(const br_json *v)
{
    return v->kind == BR_J_INT ? (double)v->i : v->f;
}

static double
element(const br_mega_value *v, size_t i)
{
    int64_t row = v->rank ? v->shape[v->rank - 1] : 1;
    int64_t r = (int64_t)i / row;

    return br_dt_get(v->dtype,
                     (const char *)v->data + r * br_dt_row_bytes(v->dtype, row),
                     (int64_t)i % row);
}

/* Worst |got - want| beyond the tolerance, over the tolerance. */
static void
compare(const vectors *v, const char *id, br_mega_vm *vm, const br_json *list,
        const br_json *tol)
{
    double rtol = number(need(tol, "rtol")), atol = number(need(tol, "atol"));

    for (const br_json *e = list->child; e; e = e->next) {
        int64_t buffer = need(e, "buffer")->i;
        br_mega_value got = br_mega_vm_get(vm, buffer);
        int dt = dtype_of(need(e, "file_dtype"));
        size_t n, w = (size_t)br_dt_row_bytes(dt, 1);
        const char *want =
            t_read(t_printf("%s/%s", v->dir, need(e, "file")->s), &n);

        ck_assert_int_eq(br_mega_vm_written(vm, buffer), true);
        for (size_t i = 0; i < n / w; i++) {
            double a = element(&got, i), b = br_dt_get(dt, want, (int64_t)i);

            if (!(a == b || fabs(a - b) <= atol + rtol * fabs(b)))
                ck_abort_msg("%s: buffer %d element %zu: %.9g, want %.9g", id,
                             (int)buffer, i, a, b);
        }
    }
}

/* The index of the largest output, exactly. */
static void
compare_argmax(const char *id, br_mega_vm *vm, const br_json *list)
{
    for (const br_json *e = list->child; e; e = e->next) {
        const br_json *checks = br_json_get(e, "checks");
        const br_json *want = checks ? br_json_get(checks, "argmax") : NULL;
        br_mega_value got = br_mega_vm_get(vm, need(e, "buffer")->i);
        size_t row = got.rank ? (size_t)got.shape[got.rank - 1] : 1, r = 0;

        if (!want)
            continue;
        for (const br_json *w = want->kind == BR_J_ARR ? want->child : want; w;
             w = want->kind == BR_J_ARR ? w->next : NULL, r++) {
            size_t best = 0;

            for (size_t i = 1; i < row; i++)
                if (element(&got, r * row + i) > element(&got, r * row + best))
                    best = i;
            ck_assert_msg((int64_t)best == w->i, "%s: argmax %zu, want %d", id,
                          best, (int)w->i);
        }
    }
}

/* By n threads: bit for bit what `ref` holds, every buffer of it. */
static void
run_threads(const vectors *v, const br_json *e, const br_mega_prog *p,
            const br_mega_vm *ref, uint32_t n)
{
    const br_json *num = br_json_get(e, "numeric");
    br_mega_vm_desc d = {.workers = n};
    br_status st = {0};
    br_cpu_walk *w;
    br_cpu_pool *pool;
    br_mega_vm *vm;

    t_ok(br_mega_vm_new(&vm, p, &d, &st), &st);
    t_ok(br_cpu_pool_new(&pool, n, &st), &st);
    t_ok(br_cpu_walk_new(&w, p, pool, &st), &st);
    bind_all(v, vm, need(num, "inputs"));
    bind_all(v, vm, need(num, "weights"));
    bind_all(v, vm, need(num, "kv_in"));
    t_ok(br_mega_vm_run_by(vm, br_cpu_walk_runner(w), &st), &st);
    ck_assert_uint_eq(br_cpu_walk_runner(w)->n_order, p->n_tasks);
    for (size_t b = 0; b < p->n_buffers; b++) {
        br_mega_value got = br_mega_vm_get(vm, (int64_t)b);
        br_mega_value want = br_mega_vm_get(ref, (int64_t)b);

        ck_assert_uint_eq(got.nbytes, want.nbytes);
        ck_assert_msg(memcmp(got.data, want.data, got.nbytes) == 0,
                      "%s: buffer %zu by %u threads", need(e, "id")->s, b, n);
    }
    br_cpu_walk_free(w);
    br_cpu_pool_free(pool);
    br_mega_vm_free(vm);
}

static void
run_vector(const vectors *v, const br_json *e)
{
    const br_json *num = br_json_get(e, "numeric"), *order, *o;
    const char *id = need(e, "id")->s;
    br_status st = {0};
    br_mega_prog *p;
    br_mega_vm *vm;
    const uint32_t *got;
    size_t n;

    t_ok(br_mega_load_file(&p, t_printf("%s/%s", v->dir, need(e, "file")->s),
                           &st),
         &st);
    t_ok(br_mega_vm_new(&vm, p, NULL, &st), &st);
    bind_all(v, vm, need(num, "inputs"));
    bind_all(v, vm, need(num, "weights"));
    bind_all(v, vm, need(num, "kv_in"));
    if (br_mega_vm_adversarial(vm, 6, BR_MEGA_ORDER_SWEEP, 0, &st) != BR_OK)
        ck_abort_msg("%s: %s", id, st.msg);
    compare(v, id, vm, need(num, "outputs"), need(num, "tolerance"));
    compare(v, id, vm, need(num, "intermediates"), need(num, "tolerance"));
    compare_argmax(id, vm, need(num, "outputs"));
    got = br_mega_vm_order(vm, &n);
    order = need(num, "exec_order");
    ck_assert_uint_eq(n, order->n);
    for (o = order->child; o; o = o->next)
        ck_assert_msg(*got++ == o->i, "%s: order", id);
    ck_assert_msg((int64_t)br_mega_vm_sweeps(vm) == need(num, "sweeps")->i,
                  "%s: sweeps", id);
    for (uint32_t k = 1; k < 8; k += 2)
        run_threads(v, e, p, vm, k);
    br_mega_vm_free(vm);
    br_mega_free(p);
}

TEST_WITHIN(interp_reproduces_every_numeric_vector, 120)
{
    vectors v;
    size_t n = 0;

    open_vectors(&v);
    for (const br_json *e = need(v.manifest, "valid")->child; e; e = e->next)
        if (br_json_get(e, "numeric")) {
            run_vector(&v, e);
            n++;
        }
    ck_assert_uint_ge(n, 39);
    br_arena_fini(&v.arena);
}

/* test_interp_vectors.c - the reference VM on the recorded numeric programs:
 * outputs, intermediates, order and sweeps; then the same in other orders, and
 * by threads.
 * SPDX-License-Identifier: Apache-2.0 */
#include "t.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "drv/cpu/cpu_ops.h"
#include "drv/cpu/cpu_walk.h"
#include "drv/cuda/cuda_prog.h"
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

/* What entry e records, within the tolerance. */
static void
compare_one(const vectors *v, const char *id, const br_mega_value *got,
            const br_json *e, const br_json *tol)
{
    double rtol = number(need(tol, "rtol")), atol = number(need(tol, "atol"));
    int dt = dtype_of(need(e, "file_dtype"));
    size_t n, w = (size_t)br_dt_row_bytes(dt, 1);
    const char *want =
        t_read(t_printf("%s/%s", v->dir, need(e, "file")->s), &n);

    ck_assert_int_eq((int64_t)got->nbytes,
                     (int64_t)(n / w) * br_dt_row_bytes(got->dtype, 1));
    for (size_t i = 0; i < n / w; i++) {
        double a = element(got, i), b = br_dt_get(dt, want, (int64_t)i);

        if (!(a == b || fabs(a - b) <= atol + rtol * fabs(b)))
            ck_abort_msg("%s: buffer %d element %zu: %.9g, want %.9g", id,
                         (int)need(e, "buffer")->i, i, a, b);
    }
}

static void
compare(const vectors *v, const char *id, br_mega_vm *vm, const br_json *list,
        const br_json *tol)
{
    for (const br_json *e = list->child; e; e = e->next) {
        br_mega_value got = br_mega_vm_get(vm, need(e, "buffer")->i);

        ck_assert_int_eq(br_mega_vm_written(vm, need(e, "buffer")->i), true);
        compare_one(v, id, &got, e, tol);
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
    br_mega_vm_desc d = {.workers = n,
                         .dot = br_cpu_ops_of(br_isa_best())->dot};
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

/* ---- the same in one launch on the CUDA tier ----------------------------- */

/* Every buffer has the reference VM's bits but for what comes of GELU: its
 * tail, 1 + erf, is the library's own rounding. */
static void
run_device(const vectors *v, const br_json *e)
{
    const br_json *num = br_json_get(e, "numeric");
    const char *id = need(e, "id")->s;
    br_mega_vm_desc d = {0};
    br_status st = {0};
    br_cuda_prog *x;
    br_mega_prog *p;
    br_mega_vm *vm, *ref;

    t_ok(br_mega_load_file(&p, t_printf("%s/%s", v->dir, need(e, "file")->s),
                           &st),
         &st);
    t_ok(br_mega_accept(p, &st), &st);
    t_ok(br_cuda_prog_new(&x, p, &st), &st);
    br_cuda_prog_desc(x, &d);
    t_ok(br_mega_vm_new(&vm, p, &d, &st), &st);
    t_ok(br_mega_vm_new(&ref, p, NULL, &st), &st);
    for (int i = 0; i < 2; i++) {
        bind_all(v, i ? ref : vm, need(num, "inputs"));
        bind_all(v, i ? ref : vm, need(num, "weights"));
        bind_all(v, i ? ref : vm, need(num, "kv_in"));
    }
    if (br_mega_vm_run_by(vm, br_cuda_prog_runner(x), &st) != BR_OK)
        ck_abort_msg("%s: %s", id, st.msg);
    t_ok(br_mega_vm_run(ref, BR_MEGA_ORDER_SWEEP, 0, &st), &st);
    ck_assert_uint_eq(br_cuda_prog_runner(x)->n_order, p->n_tasks);
    compare(v, id, vm, need(num, "outputs"), need(num, "tolerance"));
    compare(v, id, vm, need(num, "intermediates"), need(num, "tolerance"));
    compare_argmax(id, vm, need(num, "outputs"));
    for (size_t b = 0; b < p->n_buffers && !strstr(id, "gelu"); b++) {
        br_mega_value got = br_mega_vm_get(vm, (int64_t)b);
        br_mega_value want = br_mega_vm_get(ref, (int64_t)b);

        ck_assert_msg(memcmp(got.data, want.data, got.nbytes) == 0,
                      "%s: buffer %zu", id, b);
    }
    br_mega_vm_free(ref);
    br_mega_vm_free(vm);
    br_cuda_prog_free(x);
    br_mega_free(p);
}

TEST_WITHIN(cuda_reproduces_every_numeric_vector, 120)
{
    vectors v;
    size_t n = 0;

    t_emulate_cuda();
    open_vectors(&v);
    for (const br_json *e = need(v.manifest, "valid")->child; e; e = e->next)
        if (br_json_get(e, "numeric")) {
            run_device(&v, e);
            n++;
        }
    ck_assert_uint_ge(n, 39);
    br_arena_fini(&v.arena);
    t_emulate_end();
}

/* ---- the same from the shell, by the CPU tier ---------------------------- */

static void
print_entries(br_str *man, const br_json *list)
{
    for (const br_json *e = list->child; e; e = e->next) {
        const br_json *shape = br_json_get(e, "storage_shape");

        if (need(e, "file")->kind == BR_J_NULL)
            continue;
        shape = shape ? shape : need(e, "shape");
        br_str_printf(man,
                      "%s{\"id\":%d,\"dtype\":\"%s\",\"file\":\"%s\","
                      "\"shape\":[",
                      strchr(man->at, '}') ? "," : "",
                      (int)need(e, "buffer")->i,
                      br_mega_dtype_name(dtype_of(need(e, "file_dtype"))),
                      need(e, "file")->s);
        for (const br_json *d = shape->child; d; d = d->next)
            br_str_printf(man, "%s%d", d == shape->child ? "" : ",", (int)d->i);
        br_str_puts(man, "]}");
    }
}

static void
run_command(const vectors *v, const br_json *e)
{
    const br_json *num = br_json_get(e, "numeric"), *o;
    const char *dir = t_tmpdir(), *file;
    br_status st = {0};
    br_str man = {0};
    br_mega_prog *p;
    t_proc r;

    file = t_printf("%s/%s", v->dir, need(e, "file")->s);
    br_str_puts(&man, "{\"buffers\":[");
    print_entries(&man, need(num, "inputs"));
    print_entries(&man, need(num, "weights"));
    print_entries(&man, need(num, "kv_in"));
    br_str_puts(&man, "]}");
    t_write(t_printf("%s/manifest.json", dir), man.at, man.n);
    br_str_fini(&man);
    t_exec(&r,
           (const char *[]){t_brass(), "prog", "run", file, "--bind", dir, "-o",
                            t_printf("%s/out", dir), "--tier", "cpu", "-t", "3",
                            NULL},
           NULL, 0);
    ck_assert_msg(r.exit == 0 && !*r.err, "%s: %s", file, r.err);
    t_ok(br_mega_load_file(&p, file, &st), &st);
    for (o = need(num, "outputs")->child; o; o = o->next) {
        int64_t b = need(o, "buffer")->i;
        br_mega_value got = {.shape = p->buffers[b].shape,
                             .rank = p->buffers[b].rank,
                             .dtype = p->buffers[b].dtype};

        got.data = t_read(t_printf("%s/out/%d.bin", dir, (int)b), &got.nbytes);
        compare_one(v, need(e, "id")->s, &got, o, need(num, "tolerance"));
    }
    br_mega_free(p);
}

TEST_WITHIN(prog_run_on_cpu_reproduces_every_numeric_vector, 120)
{
    vectors v;
    size_t n = 0;

    open_vectors(&v);
    ck_assert_int_eq(
        symlink(t_printf("%s/blobs", v.dir), t_printf("%s/blobs", t_tmpdir())),
        0);
    for (const br_json *e = need(v.manifest, "valid")->child; e; e = e->next)
        if (br_json_get(e, "numeric") && n++ % (t_sanitized() ? 6 : 1) == 0)
            run_command(&v, e);
    ck_assert_uint_ge(n, 39);
    br_arena_fini(&v.arena);
}

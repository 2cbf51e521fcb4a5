/* cuda_api.c - opens libcuda.so.1 and turns its results into our errors.
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/cuda/cuda_api.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static br_code
load_symbols(br_cuda *cu, br_status *st)
{
    static const struct {
        const char *symbol;
        size_t at;
        bool optional;
    } rows[] = {
#define F(name, symbol, args) {symbol, offsetof(br_cuda, name), false},
#define O(name, symbol, args) {symbol, offsetof(br_cuda, name), true},
#include "drv/cuda/cuda_api.def"
#undef F
#undef O
    };

    for (size_t i = 0; i < BR_COUNT(rows); i++) {
        void *p = dlsym(cu->lib, rows[i].symbol);
        if (!p && !rows[i].optional)
            return br_fail(st, BR_E_NO_DEVICE,
                           "libcuda.so.1 has no %s: the driver is too old "
                           "(12.0 or newer is needed)",
                           rows[i].symbol);
        memcpy((char *)cu + rows[i].at, &p, sizeof p);
    }
    return BR_OK;
}

br_code
br_cuda_check(const br_cuda *cu, int rc, const char *what, br_status *st)
{
    const char *name = "unknown error", *text = "";
    br_code code = rc == BR_CU_OOM              ? BR_E_OOM
                   : rc == BR_CU_LAUNCH_TIMEOUT ? BR_E_TIMEOUT
                                                : BR_E_IO;
    size_t n = strcspn(what, "(");

    if (rc == 0)
        return BR_OK;
    cu->cuGetErrorName(rc, &name);
    cu->cuGetErrorString(rc, &text);
    return br_fail(st, code, "%.*s: %s (%s)", (int)n, what,
                   name ? name : "unknown error", text ? text : "");
}

/* ---- whose device it is ------------------------------------------------- */

enum { DEVICES = 64 /* of one machine */ };

/* Devices that this process has, by their place on the bus. */
static struct device {
    char bus[32];
    br_os_lock lock;
    uint32_t users; /* 0: the place is free */
    uint32_t say;   /* of them: br_cuda_says */
    uint32_t captures;
    bool hung;
    const void *last;
    uint64_t hands;
} devices[DEVICES];
static br_mutex devices_lock = BR_MUTEX;

static br_code
join_device(br_cuda *cu, const char *bus, br_status *st)
{
    struct device *d = devices, *end = devices + DEVICES;
    char name[40];

    while (d < end && !((d->users || d->hung) && strcmp(d->bus, bus) == 0))
        d++;
    if (d < end && d->hung)
        return br_fail(st, BR_E_TIMEOUT,
                       "%s does not answer: this process has to be started "
                       "anew",
                       cu->device_name);
    for (struct device *f = devices; d == end && f < end; f++)
        d = f->users || f->hung ? d : f;
    if (d == end)
        return br_fail(st, BR_E_LIMIT, "more than %d devices", DEVICES);
    if (!d->users) {
        snprintf(name, sizeof name, "gpu-%s", bus);
        if (br_os_lock_device(&d->lock, name, st) != BR_OK)
            return br_prefix(st, "%s", cu->device_name);
        memcpy(d->bus, bus, strlen(bus) + 1);
    }
    d->users++;
    cu->held = (uint32_t)(d - devices) + 1;
    return BR_OK;
}

/* No more of them begin, as somebody comes or goes. */
static void
await_captures(const br_cuda *cu)
{
    const struct device *d = &devices[cu->held - 1];
    uint32_t n;

    do {
        br_mutex_lock(&devices_lock);
        n = d->captures;
        br_mutex_unlock(&devices_lock);
        if (n)
            br_sleep_ns(20000); /* some take 100 us */
    } while (n);
}

static br_code
lock_device(br_cuda *cu, br_status *st)
{
    char bus[32] = "";
    br_code code;

    BR_TRY(
        BR_CU(cu, st, cuDeviceGetPCIBusId(bus, (int)sizeof bus - 1, cu->dev)));
    br_mutex_lock(&devices_lock);
    code = join_device(cu, bus, st);
    br_mutex_unlock(&devices_lock);
    if (code == BR_OK)
        await_captures(cu);
    return code;
}

static void
leave_device(const br_cuda *cu)
{
    struct device *d;

    if (!cu->held)
        return;
    d = &devices[cu->held - 1];
    br_mutex_lock(&devices_lock);
    d->say -= cu->says ? 1 : 0;
    d->last = d->last == cu ? NULL : d->last;
    if (--d->users == 0 && !d->hung)
        br_os_lock_drop(&d->lock);
    br_mutex_unlock(&devices_lock);
}

static void
give_up_device(const br_cuda *cu)
{
    br_mutex_lock(&devices_lock);
    __atomic_store_n(&devices[cu->held - 1].hung, true, __ATOMIC_RELAXED);
    br_mutex_unlock(&devices_lock);
}

/* Whoever found it so: what one of them waits for, the calls of all wait for. */
bool
br_cuda_hung(br_cuda *cu)
{
    if (!cu->hung && cu->held)
        cu->hung =
            __atomic_load_n(&devices[cu->held - 1].hung, __ATOMIC_RELAXED);
    return cu->hung;
}

/* A kernel that waits in vain gives up by itself within seconds; this is for what no
 * kernel sees. A chunk of 2048 tokens takes 8B 0.06 s. */
enum { TIMEOUT_S = 60 };

br_code
br_cuda_why(const br_cuda *cu, const unsigned *hung, br_code code,
            br_status *st)
{
    if (code == BR_OK || !__atomic_load_n(hung, __ATOMIC_ACQUIRE))
        return code;
    if (st)
        *st = (br_status){0};
    return br_fail(st, BR_E_TIMEOUT,
                   "%s: a multiprocessor waited for seconds for another: the "
                   "model has to be loaded anew",
                   cu->device_name);
}

br_code
br_cuda_overdue(br_cuda *cu, int64_t waited_ns, br_status *st)
{
    const uint32_t s = cu->timeout_s ? cu->timeout_s : TIMEOUT_S;

    if (!br_cuda_hung(cu) && waited_ns < (int64_t)s * 1000000000)
        return BR_OK;
    cu->hung = true;
    if (cu->held)
        give_up_device(cu);
    return br_fail(
        st, BR_E_TIMEOUT,
        "%s: what it runs has not ended in %u s (--gpu-timeout): this "
        "process has to be started anew",
        cu->device_name, s);
}

static br_code
wait_for(br_cuda *cu, int (*query)(void *what), const char *name, void *what,
         br_status *st)
{
    const int64_t since = br_now_ns();
    int64_t waited = 0; /* before the driver was asked */
    int rc;

    while ((rc = query(what)) == BR_CU_NOT_READY) {
        BR_TRY(br_cuda_overdue(cu, waited, st));
        br_cpu_relax();
        waited = br_now_ns() - since;
    }
    return br_cuda_check(cu, rc, name, st);
}

br_code
br_cuda_wait(br_cuda *cu, br_status *st)
{
    return wait_for(cu, cu->cuStreamQuery, "cuStreamQuery", cu->stream, st);
}

br_code
br_cuda_wait_event(br_cuda *cu, void *event, br_status *st)
{
    return wait_for(cu, cu->cuEventQuery, "cuEventQuery", event, st);
}

static bool
alone_locked(const br_cuda *cu)
{
    const struct device *d = &devices[cu->held - 1];

    return d->users - d->say == (cu->says ? 0 : 1);
}

bool
br_cuda_alone(const br_cuda *cu, uint64_t *hands)
{
    const struct device *d = &devices[cu->held - 1];
    bool alone;

    br_mutex_lock(&devices_lock);
    alone = alone_locked(cu);
    *hands = d->users == 1 ? 0 : d->hands;
    br_mutex_unlock(&devices_lock);
    return alone;
}

bool
br_cuda_may_capture(const br_cuda *cu)
{
    struct device *d = &devices[cu->held - 1];
    bool may;

    br_mutex_lock(&devices_lock);
    may = alone_locked(cu);
    d->captures += may ? 1 : 0;
    br_mutex_unlock(&devices_lock);
    return may;
}

void
br_cuda_captured(const br_cuda *cu)
{
    br_mutex_lock(&devices_lock);
    devices[cu->held - 1].captures--;
    br_mutex_unlock(&devices_lock);
}

static void
say_locked(br_cuda *cu)
{
    struct device *d = &devices[cu->held - 1];

    d->hands += d->last != cu;
    d->last = cu;
}

void
br_cuda_say(br_cuda *cu)
{
    br_mutex_lock(&devices_lock);
    say_locked(cu);
    br_mutex_unlock(&devices_lock);
}

void
br_cuda_says(br_cuda *cu, bool on)
{
    struct device *d = &devices[cu->held - 1];

    br_mutex_lock(&devices_lock);
    d->say += (on ? 1 : 0) - (cu->says ? 1 : 0);
    cu->says = on;
    say_locked(cu);
    br_mutex_unlock(&devices_lock);
    if (!on)
        await_captures(cu);
}

static br_code
open_device(br_cuda *cu, int ordinal, br_status *st)
{
    int n = 0;

    BR_TRY(BR_CU(cu, st, cuInit(0)));
    BR_TRY(BR_CU(cu, st, cuDriverGetVersion(&cu->driver)));
    BR_TRY(BR_CU(cu, st, cuDeviceGetCount(&n)));
    if (ordinal < 0 || ordinal >= n)
        return br_fail(st, BR_E_NO_DEVICE,
                       "no CUDA device %d: the driver lists %d", ordinal, n);
    BR_TRY(BR_CU(cu, st, cuDeviceGet(&cu->dev, ordinal)));
    BR_TRY(BR_CU(cu, st,
                 cuDeviceGetName(cu->device_name,
                                 (int)sizeof cu->device_name - 1, cu->dev)));
    BR_TRY(lock_device(cu, st));
    BR_TRY(BR_CU(cu, st,
                 cuDeviceGetAttribute(&cu->major, BR_CU_ATTR_MAJOR, cu->dev)));
    BR_TRY(BR_CU(cu, st,
                 cuDeviceGetAttribute(&cu->minor, BR_CU_ATTR_MINOR, cu->dev)));
    BR_TRY(BR_CU(
        cu, st, cuDeviceGetAttribute(&cu->n_sm, BR_CU_ATTR_SM_COUNT, cu->dev)));
    BR_TRY(BR_CU(cu, st,
                 cuDeviceGetAttribute(&cu->shared_optin,
                                      BR_CU_ATTR_SHARED_OPTIN, cu->dev)));
    BR_TRY(BR_CU(cu, st, cuDeviceTotalMem(&cu->total_bytes, cu->dev)));
    BR_TRY(BR_CU(cu, st, cuDevicePrimaryCtxRetain(&cu->ctx, cu->dev)));
    BR_TRY(BR_CU(cu, st, cuCtxSetCurrent(cu->ctx)));
    /* In order with cuMemcpyHtoD (cuda_prog.c, the benches): from pageable memory it
     * returns before the last bytes are there, and a non-blocking stream does not wait. */
    BR_TRY(BR_CU(cu, st, cuStreamCreate(&cu->stream, 0)));
    return BR_CU(cu, st, cuStreamCreate(&cu->recorder, BR_CU_STREAM_APART));
}

br_code
br_cuda_open(br_cuda *cu, int ordinal, br_status *st)
{
    br_code rc;

    *cu = (br_cuda){0};
    cu->lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!cu->lib)
        return br_fail(st, BR_E_NO_DEVICE,
                       "libcuda.so.1 is not here: no NVIDIA driver");
    rc = load_symbols(cu, st);
    if (rc == BR_OK)
        rc = open_device(cu, ordinal, st);
    if (rc != BR_OK)
        br_cuda_close(cu);
    return rc;
}

void
br_cuda_close(br_cuda *cu)
{
    const bool hung = br_cuda_hung(cu);

    if (cu->stream && !hung)
        cu->cuStreamDestroy(cu->stream);
    if (cu->recorder && !hung)
        cu->cuStreamDestroy(cu->recorder);
    if (cu->ctx && !hung)
        cu->cuDevicePrimaryCtxRelease(cu->dev);
    if (cu->lib && !hung)
        dlclose(cu->lib);
    br_vec_fini(&cu->pieces);
    leave_device(cu);
    *cu = (br_cuda){0};
}

br_code
br_cuda_alloc(br_cuda *cu, uint64_t *p, size_t bytes, br_status *st)
{
    size_t free_bytes = 0, total = 0;
    int rc;

    *p = 0;
    if (cu->limit && (cu->used > cu->limit || bytes > cu->limit - cu->used))
        return br_fail(st, BR_E_OOM,
                       "%s: %.1f MB wanted beside %.1f, %.1f MB are given "
                       "(--gpu-memory)",
                       cu->device_name, br_mb(bytes), br_mb(cu->used),
                       br_mb(cu->limit));
    if (!br_vec_push(&cu->pieces, ((br_cuda_piece){0, bytes})))
        return br_fail(st, BR_E_OOM, "%s: out of memory", cu->device_name);
    rc = cu->cuMemAlloc(p, bytes ? bytes : 1);
    if (rc == 0) {
        cu->pieces.at[cu->pieces.n - 1].at = *p;
        cu->used += bytes;
        return BR_OK;
    }
    cu->pieces.n--;
    *p = 0;
    if (rc == BR_CU_OOM) {
        cu->cuMemGetInfo(&free_bytes, &total);
        return br_fail(
            st, BR_E_OOM, "%s: %zu MB wanted, %zu of %zu MB are free",
            cu->device_name, bytes >> 20, free_bytes >> 20, total >> 20);
    }
    return br_cuda_check(cu, rc, "cuMemAlloc", st);
}

br_code
br_cuda_fits(br_cuda *cu, const br_cuda_need *n, uint64_t had, const char *more,
             uint64_t *left, br_status *st)
{
    const uint64_t all = n->weights + n->pages + n->states + n->rest;
    uint64_t given = cu->limit;
    size_t is_free, total;

    if (!given) {
        BR_TRY(BR_CU(cu, st, cuMemGetInfo(&is_free, &total)));
        given = is_free + had;
    }
    *left = given - BR_MIN(given, all);
    if (all <= given)
        return BR_OK;
    return br_fail(st, BR_E_OOM,
                   "%.1f MB are needed, %.1f MB are %s: weights %.1f, pages "
                   "%.1f, states %.1f, values and scratch %.1f%s; fewer slots "
                   "or a shorter context take less",
                   br_mb(all), br_mb(given),
                   cu->limit ? "given (--gpu-memory)" : "free on the device",
                   br_mb(n->weights), br_mb(n->pages), br_mb(n->states),
                   br_mb(n->rest), more);
}

void
br_cuda_free(br_cuda *cu, uint64_t p)
{
    if (!p)
        return;
    /* The driver would wait for it, too, and without an end; and for another model's
     * kernel that hangs, whatever our own stream says. */
    (void)!br_cuda_wait(cu, NULL);
    if (br_cuda_hung(cu))
        return;
    for (size_t i = cu->pieces.n; i-- > 0;)
        if (cu->pieces.at[i].at == p) {
            cu->used -= cu->pieces.at[i].bytes;
            cu->pieces.at[i] = cu->pieces.at[--cu->pieces.n];
            break;
        }
    cu->cuMemFree(p);
}

br_code
br_cuda_put(br_cuda *cu, uint64_t to, const void *from, size_t bytes,
            br_status *st)
{
    BR_TRY(br_cuda_wait(cu, st)); /* else the copy may, without an end */
    BR_TRY(BR_CU(cu, st, cuMemcpyHtoDAsync(to, from, bytes, cu->stream)));
    return br_cuda_wait(cu, st);
}

br_code
br_cuda_get(br_cuda *cu, void *to, uint64_t from, size_t bytes, br_status *st)
{
    BR_TRY(br_cuda_wait(cu, st));
    BR_TRY(BR_CU(cu, st, cuMemcpyDtoHAsync(to, from, bytes, cu->stream)));
    return br_cuda_wait(cu, st);
}

br_code
br_cuda_fill(br_cuda *cu, uint64_t to, uint32_t with, size_t numbers,
             br_status *st)
{
    return BR_CU(cu, st, cuMemsetD32Async(to, with, numbers, cu->stream));
}

br_code
br_cuda_record(br_cuda *cu, void *into, br_status *st)
{
    br_code code =
        into ? BR_CU(cu, st,
                     cuStreamBeginCaptureToGraph(cu->recorder, into, NULL, NULL,
                                                 0, BR_CU_CAPTURE_THREAD))
             : BR_CU(cu, st,
                     cuStreamBeginCapture(cu->recorder, BR_CU_CAPTURE_THREAD));

    br_assert(!cu->running);
    if (code != BR_OK)
        return code;
    cu->running = cu->stream;
    cu->stream = cu->recorder;
    return BR_OK;
}

br_code
br_cuda_recorded(br_cuda *cu, br_code code, void **graph, br_status *st)
{
    void *made = NULL;
    br_code end = BR_CU(cu, code == BR_OK ? st : NULL,
                        cuStreamEndCapture(cu->recorder, &made));

    cu->stream = cu->running;
    cu->running = NULL;
    code = code == BR_OK ? end : code;
    if (graph && made && code != BR_OK)
        cu->cuGraphDestroy(made);
    if (graph)
        *graph = code == BR_OK ? made : NULL;
    return code;
}

br_code
br_cuda_graph(br_cuda *cu, void **exec, void *graph, br_status *st)
{
    size_t before = 0, after = 0, total;
    br_code code = BR_CU(cu, st, cuMemGetInfo(&before, &total));

    if (code == BR_OK)
        code = BR_CU(cu, st, cuGraphInstantiate(exec, graph, 0));
    if (code == BR_OK)
        code = BR_CU(cu, st, cuMemGetInfo(&after, &total));
    cu->cuGraphDestroy(graph);
    if (code == BR_OK && before > after)
        cu->graphs += before - after;
    return code;
}

br_code
br_cuda_module(br_cuda *cu, void **mod, const char *name, const void *image,
               br_status *st)
{
    char log[2048] = "";
    int opts[] = {BR_CU_JIT_ERROR_LOG, BR_CU_JIT_ERROR_LOG_BYTES};
    void *values[] = {log, (void *)(uintptr_t)sizeof log};
    int rc = cu->cuModuleLoadDataEx(mod, image, 2, opts, values);

    if (rc == 0)
        return BR_OK;
    rc = (int)br_cuda_check(cu, rc, "cuModuleLoadDataEx", st);
    br_prefix(st, "%s%s%.200s", name, log[0] ? ": " : "", log);
    return (br_code)rc;
}

br_code
br_cuda_all_shared(br_cuda *cu, void *fn, br_status *st)
{
    enum { PERCENT = 100 };

    return BR_CU(cu, st, cuFuncSetAttribute(fn, BR_CU_FUNC_CARVEOUT, PERCENT));
}

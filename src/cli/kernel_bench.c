/* kernel_bench.c - brass kernel bench: how long a kernel takes, and how long
 * the same work takes in C.
 *
 *   kernel   c.f32 a.f32 -> 0.41 ms      times are of runs in turn, the
 *   C        the same    -> 0.29 ms      shortest counts: others' work on the
 *   ratio    1.41                        machine only ever adds
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/kernel.h"

#include "base/thread.h"

#include <dlfcn.h>
#include <math.h>
#include <string.h>

enum {
    BENCH_NS = 200000000,
    BENCH_MIN_LOOKS = 5,
    BENCH_MAX_ARGS = 64,
    LOOK_NS = 20000,
    MAX_RUNS_PER_LOOK = 1 << 16,
};
#define BENCH_TOLERANCE 1e-3f

typedef void (*c_kernel)(void *const *args);

typedef struct bench {
    br_kjob j;
    br_klaunch l;
    void *lib;
    c_kernel fn;
    void *args[BENCH_MAX_ARGS];
    uint64_t host[BENCH_MAX_ARGS]; /* of buffers: where they are here */
    bool own;                      /* the thread's clock, else everybody's */
    double ms, c_ms;
} bench;

static br_code
open_lib(bench *b, const char *path, br_status *st)
{
    const br_kfn *f = &b->j.m->fns.at[b->l.fn];
    char name[256];
    size_t buf = 0, n = 0;
    const char *const *args;
    union { /* POSIX: a data pointer may be one to a function */
        void *data;
        c_kernel fn;
    } u;

    b->lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!b->lib)
        return br_fail(st, BR_E_NOT_FOUND, "%s", dlerror());
    snprintf(name, sizeof name, "%.*s", (int)BR_MIN(f->name.n, (size_t)200),
             f->name.p);
    u.data = dlsym(b->lib, name);
    if (!u.data)
        return br_fail(st, BR_E_NOT_FOUND, "%s has no function %s", path, name);
    b->fn = u.fn;
    n = br_opt_list(b->j.cli, BR_OPT_arg, &args);
    if (n > BENCH_MAX_ARGS)
        return br_fail(st, BR_E_USAGE, "--against: at most %d parameters",
                       BENCH_MAX_ARGS);
    for (size_t k = 0; k < n; k++) {
        b->args[k] = b->j.params + f->params.at[k].offset;
        if (strncmp(args[k], "buf:", 4) && strncmp(args[k], "rand:", 5))
            continue;
        b->host[k] = (uint64_t)(uintptr_t)b->j.buffers.at[buf++].bytes;
        b->args[k] = &b->host[k];
    }
    return BR_OK;
}

/* What buffer k holds: kept where there is something to compare. */
static br_code
compare(const br_kregion *g, const float *ours, br_status *st)
{
    const float *theirs = (const float *)(const void *)g->host;
    float most = 0, off = 0;
    size_t at = 0;

    for (size_t k = 0; k < g->bytes / 4; k++) {
        float d = fabsf(ours[k] - theirs[k]);

        most = fmaxf(most, fabsf(theirs[k]));
        if (d > off || isnan(d)) {
            off = isnan(d) ? INFINITY : d;
            at = k;
        }
    }
    if (off <= BENCH_TOLERANCE * most)
        return BR_OK;
    return br_fail(st, BR_E_FAULT,
                   "%s: kernel and C differ: float %zu is %g and %g", g->name,
                   at, (double)ours[at], (double)theirs[at]);
}

static br_code
agree(bench *b, br_status *st)
{
    size_t n = b->j.regions.n;
    char **was = br_try_calloc(n + 1, sizeof *was);
    br_code code = was ? BR_OK : br_fail(st, BR_E_OOM, "out of memory");

    for (size_t k = 0; code == BR_OK && k < n; k++) {
        was[k] = br_try_alloc((size_t)b->j.regions.at[k].bytes + 1);
        if (was[k])
            memcpy(was[k], b->j.regions.at[k].host, b->j.regions.at[k].bytes);
        else
            code = br_fail(st, BR_E_OOM, "out of memory");
    }
    if (code == BR_OK)
        code = b->j.on->launch(b->j.code, &b->l, st);
    for (size_t k = 0; code == BR_OK && k < n; k++) /* ours for what it was */
        for (uint64_t i = 0; i < b->j.regions.at[k].bytes; i++) {
            char t = was[k][i];

            was[k][i] = (char)b->j.regions.at[k].host[i];
            b->j.regions.at[k].host[i] = (uint8_t)t;
        }
    if (code == BR_OK)
        b->fn(b->args);
    for (size_t k = 0; code == BR_OK && k < n; k++)
        code = compare(&b->j.regions.at[k], (const float *)(const void *)was[k],
                       st);
    for (size_t k = 0; was && k < n; k++)
        br_free(was[k]);
    br_free(was);
    return code;
}

/* Of one thread its own time: what else runs on the machine does not count. */
static int64_t
now_ns(const bench *b)
{
    return b->own ? br_thread_ns() : br_now_ns();
}

static br_code
runs_of(bench *b, bool ours, int n, double *ms, br_status *st)
{
    int64_t t0 = now_ns(b);

    for (int k = 0; k < n; k++)
        if (ours)
            BR_TRY(b->j.on->launch(b->j.code, &b->l, st));
        else
            b->fn(b->args);
    *ms = (double)(now_ns(b) - t0) / 1e6 / n;
    return BR_OK;
}

/* So many runs between two looks at the clock that its grain of some tens of
 * nanoseconds is nothing beside them: a C kernel of 256 floats takes 20 ns. */
static br_code
runs_per_look(bench *b, bool ours, int *n, br_status *st)
{
    double ms = 0;

    for (*n = 1; *n < MAX_RUNS_PER_LOOK; *n *= 2) {
        BR_TRY(runs_of(b, ours, *n, &ms, st));
        if (ms * *n * 1e6 >= LOOK_NS)
            break;
    }
    return BR_OK;
}

static br_code
measure(bench *b, br_status *st)
{
    int64_t end = br_now_ns() + BENCH_NS * (b->fn ? 2 : 1);
    int ours, theirs = 0;
    double ms;

    b->own = b->l.threads == 1 && br_thread_ns_is_fine();
    BR_TRY(runs_per_look(b, true, &ours, st));
    if (b->fn)
        BR_TRY(runs_per_look(b, false, &theirs, st));
    b->ms = b->c_ms = INFINITY;
    for (int n = 0; n < BENCH_MIN_LOOKS || br_now_ns() < end; n++) {
        BR_TRY(runs_of(b, true, ours, &ms, st));
        b->ms = fmin(b->ms, ms);
        if (!b->fn)
            continue;
        BR_TRY(runs_of(b, false, theirs, &ms, st));
        b->c_ms = fmin(b->c_ms, ms);
    }
    return BR_OK;
}

static br_code
bench_run(bench *b, br_status *st)
{
    const char *lib = br_opt_str(b->j.cli, BR_OPT_against);

    BR_TRY(br_kjob_open(&b->j, &b->l, st));
    b->l.threads = br_opt_given(b->j.cli, BR_OPT_threads)
                       ? (unsigned)br_opt_int(b->j.cli, BR_OPT_threads)
                       : 1;
    if (lib) {
        BR_TRY(open_lib(b, lib, st));
        BR_TRY(agree(b, st));
    }
    return measure(b, st);
}

static int
report(const bench *b)
{
    br_cli *cli = b->j.cli;
    const br_kfn *f = &b->j.m->fns.at[b->l.fn];
    double ratio = b->ms / b->c_ms, most = br_opt_f64(cli, BR_OPT_max_ratio);
    int n = (int)BR_MIN(f->name.n, (size_t)80);

    if (br_opt_bool(cli, BR_OPT_json) && b->fn)
        fprintf(cli->out,
                "{\"kernel\":\"%.*s\",\"ms\":%.6f,\"against_ms\":%.6f,"
                "\"ratio\":%.3f}\n",
                n, f->name.p, b->ms, b->c_ms, ratio);
    else if (br_opt_bool(cli, BR_OPT_json))
        fprintf(cli->out, "{\"kernel\":\"%.*s\",\"ms\":%.6f}\n", n, f->name.p,
                b->ms);
    else if (b->fn)
        fprintf(cli->out, "%-12.*s %12.6f ms   C %12.6f ms   ratio %6.2f\n", n,
                f->name.p, b->ms, b->c_ms, ratio);
    else
        fprintf(cli->out, "%-12.*s %12.6f ms\n", n, f->name.p, b->ms);
    if (!b->fn || !br_opt_given(cli, BR_OPT_max_ratio) || ratio <= most)
        return 0;
    fprintf(cli->err, "%.*s takes %.2f times as long, over --max-ratio %g\n", n,
            f->name.p, ratio, most);
    return 1;
}

int
br_cmd_kernel_bench(br_cli *cli)
{
    const char *on = br_opt_str(cli, BR_OPT_on_timed);
    bench b = {.j = {.cli = cli, .on = br_ktarget_find(on), .optimise = true}};
    br_status st = {0};
    int code;

    if (br_opt_given(cli, BR_OPT_max_ratio) &&
        !br_opt_given(cli, BR_OPT_against))
        return br_cli_usage(cli, "--max-ratio needs --against LIB.so");
    if (!b.j.on || !b.j.on->launch) {
        br_fail(&st, BR_E_NO_DEVICE,
                "%s is not available; here are: interp x86-64", on);
        return br_cli_fail(cli, &st);
    }
    if (bench_run(&b, &st) != BR_OK)
        code = br_cli_fail(cli, &st);
    else
        code = report(&b);
    br_kjob_fini(&b.j);
    if (b.lib)
        dlclose(b.lib);
    return code;
}

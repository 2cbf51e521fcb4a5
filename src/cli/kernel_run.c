/* kernel_run.c - brass kernel run: a kernel of a file, on buffers from files.
 *
 *   --arg buf:x.bin --arg buf:y.bin:out=4096 --arg u32:1024 --arg rand:4096
 *
 * Arguments fill the parameter block in order, each in its parameter's place. A
 * buffer's address is made up: 4 GiB from one to the next, so that nothing that
 * runs past one lands in another.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/kernel.h"

#include "base/json.h"
#include "base/rng.h"
#include "drv/cuda/cuda_target.h"
#include "drv/sim/sim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_BUFFERS = 256, BUFFER_MAX_BYTES = 1 << 30, ALIGN = 256 };
#define BUFFER_AT(n) (((uint64_t)(n) + 1) << 32)

static br_code
bad_arg(const char *arg, const char *why, br_status *st)
{
    return br_fail(st, BR_E_USAGE, "--arg %.100s: %s", arg, why);
}

/* "4096" of out=4096. */
static bool
count(const char *s, uint64_t *n)
{
    char *end;

    errno = 0;
    *n = strtoull(s, &end, 0);
    return *s >= '0' && *s <= '9' && *end == 0 && errno == 0;
}

/* n zeros from a multiple of ALIGN on, as cudaMalloc has it: of a vector at other
 * places every access is in two lines of the cache. */
static bool
zeros(br_kbuffer *b, uint64_t n)
{
    b->base = br_try_calloc((size_t)n + ALIGN, 1);
    if (b->base)
        b->bytes = b->base + (-(uintptr_t)b->base & (ALIGN - 1));
    return b->base != NULL;
}

static br_code
add_buffer(br_kjob *j, const char *arg, br_kbuffer b, uint64_t n, br_status *st)
{
    br_kregion g = {.addr = BUFFER_AT(j->buffers.n),
                    .bytes = n,
                    .host = (uint8_t *)b.bytes,
                    .read_only = b.write == NULL,
                    .name = arg};

    if (j->buffers.n == MAX_BUFFERS || !br_vec_push(&j->buffers, b)) {
        br_free(b.base);
        return bad_arg(arg, "too many buffers", st);
    }
    if (!br_vec_push(&j->regions, g))
        return br_fail(st, BR_E_OOM, "out of memory");
    return BR_OK;
}

/* The path of "buf:PATH:inout" or "buf:PATH:out=N", kept for later. */
static char *
path_of(const char *arg, const char *tail, const char *add)
{
    size_t n = tail ? (size_t)(tail - arg) : strlen(arg);
    char *s = br_try_alloc(n + strlen(add) + 1);

    if (s) {
        memcpy(s, arg, n);
        memcpy(s + n, add, strlen(add) + 1);
    }
    return s;
}

static br_code
random_arg(br_kjob *j, const char *arg, br_status *st)
{
    br_kbuffer b = {.write = ""};
    uint64_t n = 0;
    br_rng r;

    if (!count(arg + 5, &n) || n > BUFFER_MAX_BYTES || n % 4)
        return bad_arg(arg, "rand:BYTES is a multiple of 4 up to 1 GiB", st);
    if (!zeros(&b, n))
        return br_fail(st, BR_E_OOM, "out of memory");
    br_rng_init(&r, j->buffers.n + 1, 0);
    for (uint64_t k = 0; k < n; k += 4) {
        float f = br_rng_f32(&r);

        memcpy(b.bytes + k, &f, 4);
    }
    return add_buffer(j, arg, b, n, st);
}

static br_code
buffer_arg(br_kjob *j, const char *arg, br_status *st)
{
    const char *path = arg + 4, *tail = strrchr(path, ':');
    bool out = tail && strncmp(tail, ":out=", 5) == 0;
    bool inout = tail && strcmp(tail, ":inout") == 0;
    char *in, *to = NULL;
    br_kbuffer b = {0};
    uint64_t n = 0;
    br_code code = BR_OK;

    in = path_of(path, out || inout ? tail : NULL, "");
    if (out || inout)
        to = path_of(path, tail, inout ? ".out" : "");
    if (!in || ((out || inout) && !to)) {
        code = br_fail(st, BR_E_OOM, "out of memory");
    } else if (out) {
        if (!count(tail + 5, &n) || n > BUFFER_MAX_BYTES)
            code = bad_arg(arg, "out=BYTES is a number up to 1 GiB", st);
        else if (!zeros(&b, n))
            code = br_fail(st, BR_E_OOM, "out of memory");
    } else {
        size_t size;

        code = br_file_read(in, BUFFER_MAX_BYTES, &b.bytes, &size, st);
        b.base = b.bytes;
        n = size;
    }
    br_free(in);
    if (code != BR_OK) {
        br_free(to);
        return code;
    }
    b.write = to;
    code = add_buffer(j, arg, b, n, st);
    if (code != BR_OK)
        br_free(to);
    return code;
}

static br_code
raw_arg(const char *arg, const br_kparam *p, uint8_t *at, br_status *st)
{
    const char *hex = arg + 4;

    if (strlen(hex) != 2 * (size_t)p->bytes)
        return br_fail(st, BR_E_USAGE,
                       "--arg %.100s: the parameter has %u bytes, two digits "
                       "each",
                       arg, p->bytes);
    for (uint32_t k = 0; k < p->bytes; k++) {
        int hi = br_hex_digit(hex[2 * k]), lo = br_hex_digit(hex[2 * k + 1]);

        if (hi < 0 || lo < 0)
            return bad_arg(arg, "not hexadecimal", st);
        at[k] = (uint8_t)(hi << 4 | lo);
    }
    return BR_OK;
}

static br_code
number_arg(const char *arg, const br_kparam *p, uint8_t *at, br_status *st)
{
    const char *v = arg + 4;
    unsigned bytes = arg[1] == '6' ? 8 : 4;
    bool minus = *v == '-';
    uint64_t u = 0;
    double d;
    float f;

    if (p->bytes != bytes)
        return br_fail(st, BR_E_USAGE,
                       "--arg %.100s: the parameter %.*s has %u bytes", arg,
                       (int)p->name.n, p->name.p, p->bytes);
    if (arg[0] == 'f') {
        if (!br_f64_read(br_text_z(v), &d))
            return bad_arg(arg, "not a number", st);
        f = (float)d;
        memcpy(&u, bytes == 8 ? (void *)&d : (void *)&f, bytes);
    } else {
        uint64_t most = arg[0] == 's' ? (1ull << (bytes * 8 - 1)) - 1 + minus
                        : bytes == 8  ? UINT64_MAX
                                      : UINT32_MAX;

        if ((minus && arg[0] == 'u') || !count(v + minus, &u) || u > most)
            return bad_arg(arg, "not a number of this type", st);
        u = minus ? 0 - u : u;
    }
    memcpy(at, &u, bytes);
    return BR_OK;
}

br_code
br_kernel_number(const char *arg, const br_kparam *p, uint8_t *at,
                 br_status *st)
{
    static const char *const numbers[] = {
        "u32:", "s32:", "f32:", "u64:", "s64:", "f64:"};

    if (strncmp(arg, "raw:", 4) == 0)
        return raw_arg(arg, p, at, st);
    for (size_t k = 0; k < BR_COUNT(numbers); k++)
        if (strncmp(arg, numbers[k], 4) == 0)
            return number_arg(arg, p, at, st);
    return bad_arg(arg, "buf: rand: u32: s32: f32: u64: s64: f64: or raw:", st);
}

static br_code
argument(br_kjob *j, const char *arg, const br_kparam *p, br_status *st)
{
    uint8_t *at = j->params + p->offset;

    if (strncmp(arg, "buf:", 4) == 0 || strncmp(arg, "rand:", 5) == 0) {
        uint64_t addr = BUFFER_AT(j->buffers.n);

        if (p->bytes != 8)
            return bad_arg(arg, "the parameter is no pointer of 64 bits", st);
        BR_TRY(arg[0] == 'b' ? buffer_arg(j, arg, st) : random_arg(j, arg, st));
        if (!br_vec_push(&j->places, p->offset))
            return br_fail(st, BR_E_OOM, "out of memory");
        memcpy(at, &addr, 8);
        return BR_OK;
    }
    return br_kernel_number(arg, p, at, st);
}

br_code
br_kjob_args(br_kjob *j, const br_kfn *f, br_status *st)
{
    const char *const *args;
    size_t n = br_opt_list(j->cli, BR_OPT_arg, &args);

    if (n != f->params.n)
        return br_fail(st, BR_E_USAGE,
                       "the kernel %.*s has %zu parameters, and there are %zu "
                       "--arg",
                       (int)f->name.n, f->name.p, f->params.n, n);
    j->params = br_try_calloc(f->param_bytes + 1u, 1);
    if (!j->params)
        return br_fail(st, BR_E_OOM, "out of memory");
    for (size_t k = 0; k < n; k++)
        BR_TRY(argument(j, args[k], &f->params.at[k], st));
    return BR_OK;
}

/* "64,4" */
static br_code
three(const char *what, const char *text, uint32_t out[3], br_status *st)
{
    out[0] = out[1] = out[2] = 1;
    for (int k = 0; k < 3; k++) {
        char *end;
        unsigned long v = strtoul(text, &end, 10);

        if (end == text || *text == '-' || v == 0 || v > INT32_MAX)
            break;
        out[k] = (uint32_t)v;
        if (*end == 0)
            return BR_OK;
        if (*end != ',')
            break;
        text = end + 1;
    }
    return br_fail(st, BR_E_USAGE, "--%s: X, X,Y or X,Y,Z, each from 1", what);
}

br_code
br_kjob_shape(br_cli *cli, uint32_t grid[3], uint32_t block[3], br_status *st)
{
    BR_TRY(three("grid", br_opt_str(cli, BR_OPT_grid), grid, st));
    return three("block", br_opt_str(cli, BR_OPT_block), block, st);
}

static void
print_text(void *arg, const char *text, size_t n)
{
    br_kjob *j = arg;
    FILE *to = br_opt_bool(j->cli, BR_OPT_json) ? j->cli->err : j->cli->out;

    fwrite(text, 1, n, to);
}

static void
print_finding(void *arg, const char *text)
{
    br_kjob *j = arg;

    fprintf(j->cli->err, "%s\n", text);
}

/* The file's code runs unless --on names something else. */
static void
take_code(br_kjob *j)
{
    const br_ktarget *own = br_ktarget_find("x86-64");

    if (j->any)
        j->on = own;
    if (j->on == own)
        return;
    own->free(j->code);
    j->code = NULL;
}

br_code
br_kernel_target(const br_ktarget **out, br_ktarget *own, const char *name,
                 br_status *st)
{
    *out = br_sim_target(own, name) || br_cuda_target(own, name)
               ? own
               : br_ktarget_find(name);
    if (*out && (*out)->launch)
        return BR_OK;
    *out = NULL;
    return br_fail(st, BR_E_NO_DEVICE,
                   "%s is not available; here are: interp x86-64 gfx1100 "
                   "gfx1151 gfx1200 gfx1201 cuda",
                   name);
}

br_code
br_kjob_open(br_kjob *j, br_klaunch *l, br_status *st)
{
    br_cli *cli = j->cli;

    BR_TRY(br_kernel_load_text(cli, &j->m, &j->code, &j->ptx, st));
    if (j->code) /* of a .zrt, which has been through the passes */
        take_code(j);
    else if (j->optimise)
        BR_TRY(br_kir_optimise(j->m, NULL, st));
    BR_TRY(br_kernel_entry(cli, j->m, &l->fn, st));
    BR_TRY(br_kjob_shape(cli, l->grid, l->block, st));
    BR_TRY(br_kjob_args(j, &j->m->fns.at[l->fn], st));
    BR_TRY(br_kimage_new(&j->image, j->m, st));
    l->image = j->image;
    l->shared_bytes = (uint32_t)br_opt_int(cli, BR_OPT_shared);
    l->params = j->params;
    l->regions = j->regions.at;
    l->n_regions = j->regions.n;
    l->places = j->places.at;
    l->file = cli->args[0];
    l->ptx = j->ptx;
    l->print = print_text;
    l->finding = print_finding;
    l->arg = j;
    return j->code ? BR_OK : j->on->compile(&j->code, j->m, st);
}

static br_code
launch(br_kjob *j, br_klaunch *l, br_status *st)
{
    BR_TRY(br_kjob_open(j, l, st));
    BR_TRY(j->on->launch(j->code, l, st));
    return br_kjob_write(j, st);
}

br_code
br_kjob_write(const br_kjob *j, br_status *st)
{
    for (size_t k = 0; k < j->buffers.n; k++)
        if (j->buffers.at[k].write && *j->buffers.at[k].write)
            BR_TRY(br_file_write(j->buffers.at[k].write, j->buffers.at[k].bytes,
                                 j->regions.at[k].bytes, st));
    return BR_OK;
}

void
br_kjob_fini(br_kjob *j)
{
    for (size_t k = 0; k < j->buffers.n; k++) {
        union { /* ours, and const only for who reads it */
            const char *c;
            char *p;
        } u = {j->buffers.at[k].write};

        br_free(j->buffers.at[k].base);
        if (u.c && *u.c)
            br_free(u.p);
    }
    br_vec_fini(&j->buffers);
    br_vec_fini(&j->regions);
    br_vec_fini(&j->places);
    br_free(j->params);
    br_free(j->ptx);
    if (j->on)
        j->on->free(j->code);
    br_kimage_free(j->image);
    br_kir_free(j->m);
}

int
br_cmd_kernel_run(br_cli *cli)
{
    const char *on = br_opt_str(cli, BR_OPT_on);
    br_kjob j = {.cli = cli, .any = !br_opt_given(cli, BR_OPT_on)};
    br_klaunch l = {.check = br_opt_bool(cli, BR_OPT_check)};
    br_status st = {0};
    br_ktarget own;
    int code = 0;

    if (br_kernel_target(&j.on, &own, on, &st) != BR_OK)
        return br_cli_fail(cli, &st);
    if (launch(&j, &l, &st) != BR_OK)
        code = br_cli_fail(cli, &st);
    else if (br_opt_bool(cli, BR_OPT_json))
        fprintf(cli->out, "{\"instructions\":%llu,\"findings\":%llu}\n",
                (unsigned long long)l.steps, (unsigned long long)l.findings);
    if (l.findings) {
        fprintf(cli->err, "%llu findings\n", (unsigned long long)l.findings);
        code = code ? code : br_code_exit(BR_E_REJECTED);
    }
    br_kjob_fini(&j);
    return code;
}

/* test_gcn_approx.c - what AMD code makes of PTX's approximations, against the true
 * values: 2^20 floats of every size and sign for each, evenly over their bits. The
 * simulator's own instructions give the nearest value to the true one, so this is what
 * our code adds; docs/kernels.md has the bounds.
 *
 *     APPROX=1 .../brass-test -k '*:gcn_approx*'      prints what was reached
 * SPDX-License-Identifier: Apache-2.0 */
#include "ptx_kit.h"

#include "drv/sim/sim.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    GROUP = 256,
    COUNT = 1 << 20,
    SPREAD = 4093
}; /* a prime: 2^32 / COUNT */

static double
inverse(double x)
{
    return 1 / x;
}

static double
inverse_root(double x)
{
    return 1 / sqrt(x);
}

/* Off by steps of the format, or an absolute error that may grow with |x|, or a part
 * of the true value; of arguments up to limit. */
static const struct {
    const char *op;
    double (*truth)(double);
    double ulp, abs, grows, rel, limit;
} rows[] = {
    {"rcp.approx.f32", inverse, 1, 0, 0, 0, INFINITY},
    {"sqrt.approx.f32", sqrt, 1, 0, 0, 0, INFINITY},
    {"rsqrt.approx.f32", inverse_root, 1, 0, 0, 0, INFINITY},
    {"ex2.approx.f32", exp2, 1, 0, 0, 0, INFINITY},
    {"lg2.approx.f32", log2, 1, 0, 0, 0, INFINITY},
    {"sin.approx.f32", sin, 0, 0x1p-21, 0x1p-23, 0, 0x1p16},
    {"cos.approx.f32", cos, 0, 0x1p-21, 0x1p-23, 0, 0x1p16},
    {"tanh.approx.f32", tanh, 0, 0, 0, 0x1p-13, INFINITY},
};

static br_kir *
module_of(void)
{
    br_str s = {0};
    br_kir *m;

    br_str_puts(&s, ".version 8.0\n.target sm_80\n.address_size 64\n");
    for (size_t k = 0; k < BR_COUNT(rows); k++)
        br_str_printf(&s,
                      ".entry k_%zu(.param .u64 out) {\n"
                      ".reg .b32 %%r<5>; .reg .f32 %%f<3>; .reg .b64 %%d<3>;\n"
                      "ld.param.u64 %%d1, [out];\n"
                      "mov.u32 %%r1, %%tid.x; mov.u32 %%r2, %%ctaid.x;\n"
                      "mad.lo.u32 %%r1, %%r2, %d, %%r1;\n"
                      "mul.lo.u32 %%r3, %%r1, %d; mov.b32 %%f1, %%r3;\n"
                      "%s %%f2, %%f1;\n"
                      "mul.wide.u32 %%d2, %%r1, 4; add.u64 %%d1, %%d1, %%d2;\n"
                      "st.global.f32 [%%d1], %%f2; ret; }\n",
                      k, GROUP, SPREAD, rows[k].op);
    m = ptx_load(br_str_z(&s));
    br_str_fini(&s);
    return m;
}

static void
launch(const br_ktarget *t, br_kcode *code, const br_kir *m, br_kimage *im,
       size_t k, float *out)
{
    uint64_t at = 0x200000000;
    br_kregion region = {at, COUNT * sizeof *out, (uint8_t *)out, false, "out"};
    br_klaunch l = {.grid = {COUNT / GROUP, 1, 1},
                    .block = {GROUP, 1, 1},
                    .params = (const uint8_t *)&at,
                    .regions = &region,
                    .n_regions = 1,
                    .image = im};
    char name[16];
    br_status st = {0};

    snprintf(name, sizeof name, "k_%zu", k);
    l.fn = br_kir_find_fn(m, br_text_z(name));
    t_ok(t->launch(code, &l, &st), &st);
}

/* A step of the format at y. */
static double
step(double y)
{
    float f = (float)fabs(y);

    return f < 0x1p-126f ? 0x1p-149 : (double)f - (double)nextafterf(f, 0);
}

/* One value within the row's bounds; what is undefined has to be so in both. */
static double
off_by(size_t k, float x, float got)
{
    double y = rows[k].truth((double)x), e = fabs((double)got - y);

    if (!(fabs((double)x) <= rows[k].limit) && isfinite(x))
        return 0;
    if (isnan(y) || isnan(got))
        return isnan(y) && isnan(got) ? 0 : INFINITY;
    if ((double)got == y || (double)(float)y == (double)got)
        return 0;
    if (rows[k].ulp != 0)
        return e / step(y) / rows[k].ulp;
    if (rows[k].rel != 0)
        return e / fabs(y) / rows[k].rel;
    return e / (rows[k].abs + rows[k].grows * fabs((double)x));
}

static void
compare(const char *cpu, size_t k, const float *out)
{
    double worst = 0;
    float at = 0;

    for (uint32_t i = 0; i < COUNT; i++) {
        uint32_t bits = i * SPREAD;
        double off;
        float x;

        memcpy(&x, &bits, sizeof x);
        off = off_by(k, x, out[i]);
        if (off > worst) {
            worst = off;
            at = x;
        }
    }
    if (getenv("APPROX"))
        printf("%s %s: %.3f of its bound, at %a\n", cpu, rows[k].op, worst,
               (double)at);
    ck_assert_msg(worst <= 1, "%s %s: %g of its bound, at %a", cpu, rows[k].op,
                  worst, (double)at);
}

TEST_WITHIN(gcn_approximations_keep_their_bounds, 120)
{
    static const char *const cpus[] = {"gfx1100", "gfx1201"};
    float *out;
    br_kir *m;
    br_status st = {0};
    br_kimage *im;

    t_not_for_tsan("gcn_random_kernels_run_as_interpreted");
    out = t_keep(malloc(COUNT * sizeof *out));
    m = module_of();
    t_ok(br_kimage_new(&im, m, &st), &st);
    for (size_t c = 0; c < BR_COUNT(cpus); c++) {
        br_ktarget t;
        br_kcode *code;

        ck_assert(br_sim_target(&t, cpus[c]));
        t_ok(t.compile(&code, m, &st), &st);
        for (size_t k = 0; k < BR_COUNT(rows); k++) {
            launch(&t, code, m, im, k, out);
            compare(cpus[c], k, out);
        }
        t.free(code);
    }
    br_kimage_free(im);
    br_kir_free(m);
}

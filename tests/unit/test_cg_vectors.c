/* test_cg_vectors.c - PTX instructions against what an NVIDIA H200 computed.
 *
 * Bit by bit, but for what only approximates: those have a bound each. A NaN of
 * arithmetic is as good as another. Kernels run as the front-end made them, and
 * again after the passes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "ptx_kit.h"

#include "cg/softfp.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

T_THREADS_OF("gfx1100_instructions_are_those_of_a_gpu");

/* How far an approximation may be off, of what it is compared with: ulp steps
 * of the format, or an absolute error, or a relative one. Hardware's documented
 * error, as we are within half an ulp of the true value. Where hardware gives
 * noise (sin of 10^6) nothing is compared: limit is the largest argument. */
typedef struct bound {
    const char *op; /* the beginning of the instruction */
    double ulp, abs, rel, limit;
} bound;
static const bound bounds[] = {
    {"div.approx.", 2, 0, 0, 0},
    {"div.full.", 2, 0, 0, 0},
    {"rcp.approx.ftz.f64", 0, 1e-310, 0x1p-20, 0},
    {"rcp.approx.", 1, 0, 0, 0},
    {"sqrt.approx.", 1, 0, 0, 0},
    {"rsqrt.approx.ftz.f64", 0, 0, 0x1p-20, 0},
    {"rsqrt.approx.f64", 2, 0, 0, 0},
    {"rsqrt.approx.", 2, 0, 0, 0},
    {"ex2.approx.f32", 2, 0, 0, 0},
    {"ex2.approx.ftz.f32", 2, 0, 0, 0},
    {"ex2.approx.f16", 0, 0x1p-24, 0x1p-9, 0},
    {"ex2.approx.ftz.bf16", 0, 0, 0x1p-7, 0},
    {"lg2.approx.", 2, 0x1p-22, 0, 0},
    {"sin.approx.", 0, 0x1p-20, 0, 3.1415927},
    {"cos.approx.", 0, 0x1p-20, 0, 3.1415927},
    {"tanh.approx.f32", 0, 0, 0x1p-10, 0},
    {"tanh.approx.f16", 0, 0x1p-10, 0x1p-10, 0},
    {"tanh.approx.bf16", 0, 0, 0x1p-7, 0},
};

static int
format(const char *dst)
{
    static const char *const names[] = {"f16", "bf16", "f32", "f64"};

    for (int k = 0; k < 4; k++)
        if (strncmp(dst, names[k], strlen(names[k])) == 0)
            return k; /* as br_sf_fmt has them */
    return -1;
}

static double
as_f64(int fmt, uint64_t bits)
{
    br_sf s = {(br_sf_fmt)fmt, BR_SF_RN, false};
    double d;

    bits = br_sf_cvt(s, BR_SF_F64, false, bits);
    memcpy(&d, &bits, sizeof d);
    return d;
}

static bool
near(const bound *b, int fmt, uint64_t got, uint64_t want, double arg)
{
    double x = as_f64(fmt, got), y = as_f64(fmt, want);
    double ulp = (double)(got > want ? got - want : want - got);

    if (b->limit != 0 && !(fabs(arg) <= b->limit))
        return true;
    if (b->ulp != 0 && ulp <= b->ulp)
        return true;
    return fabs(x - y) <= b->abs || fabs(x - y) <= b->rel * fabs(y);
}

/* One value, or one of the two halves of a pair. */
static bool
same(const ptx_case *c, const bound *b, uint64_t got, uint64_t want, double arg)
{
    int fmt = format(c->dst);
    bool nan_got, nan_want;

    if (got == want)
        return true;
    if (fmt < 0)
        return false;
    if (strstr(c->dst, "x2")) {
        ptx_case one = *c;

        *strstr(one.dst, "x2") = 0;
        return same(&one, b, got & 0xffff, want & 0xffff, arg) &&
               same(&one, b, got >> 16, want >> 16, arg);
    }
    nan_got = br_sf_is_nan((br_sf_fmt)fmt, got);
    nan_want = br_sf_is_nan((br_sf_fmt)fmt, want);
    if (nan_got || nan_want)
        return nan_got && nan_want;
    return b && near(b, fmt, got, want, arg);
}

static const bound *
bound_of(const char *what)
{
    for (size_t k = 0; k < BR_COUNT(bounds); k++)
        if (strncmp(what, bounds[k].op, strlen(bounds[k].op)) == 0)
            return &bounds[k];
    return NULL;
}

/* How far to go: a sanitizer run takes one case of `part`. TSan has only the
 * queue of the simulated GPU to look at, a thread that is the same for every
 * case, and takes a tenth of those. */
static int
stride(const ptx_set *s, int step, int part)
{
    if (!t_sanitized())
        return step;
    if (!strstr(t_conf(), "thread"))
        return part * step;
    if (!s->on || strncmp(s->on->name, "gfx", 3) != 0)
        t_skip("one thread: nothing for TSan to see");
    return 10 * part * step;
}

/* Each step-th case. */
static void
sweep(const ptx_set *s, int step)
{
    uint64_t *got = t_keep(calloc(PTX_ROWS, 8));
    const int every = stride(s, step, 7);

    for (int n = 0; n < s->n; n += every) {
        const ptx_case *c = &s->cases[n];
        const bound *b = bound_of(c->what);
        const char *err = ptx_run_case(s, s->m, n, got);
        int src = format(c->src);

        ck_assert_msg(!*err, "%d %s: %s", n, c->what, err);
        for (int r = 0; r < PTX_ROWS; r++) {
            uint64_t want = s->out[(size_t)n * PTX_ROWS + (size_t)r];

            if (got[r] != want &&
                !same(c, b, got[r], want,
                      src == BR_SF_F32 ? as_f64(src, (uint32_t)s->in[3 * r])
                                       : 0))
                ck_abort_msg("%d %s row %d (0x%llx 0x%llx 0x%llx): 0x%llx, an "
                             "H200 says 0x%llx",
                             n, c->what, r, (unsigned long long)s->in[3 * r],
                             (unsigned long long)s->in[3 * r + 1],
                             (unsigned long long)s->in[3 * r + 2],
                             (unsigned long long)got[r],
                             (unsigned long long)want);
        }
    }
}

TEST_WITHIN(cg_instructions_are_those_of_a_gpu, 60)
{
    ptx_set s;
    br_status st = {0};

    ptx_vectors(&s, "sweep");
    ck_assert_int_eq(s.n, 895);
    sweep(&s, 1);
    t_ok(br_kir_optimise(s.m, NULL, &st), &st);
    sweep(&s, 4);
    br_kir_free(s.m);
}

/* Two f32 in a u64. The tensor cores' sums: of products of numbers below two
 * in magnitude, in an order of their own, cut instead of rounded. */
static bool
near_mma(uint64_t got, uint64_t want, bool tf32)
{
    for (int half = 0; half < 64; half += 32) {
        uint64_t a = got >> half & 0xffffffff, b = want >> half & 0xffffffff;
        double x = as_f64(BR_SF_F32, a), y = as_f64(BR_SF_F32, b);
        double most = fabs(y) > 1 ? fabs(y) : 1;

        if (br_sf_is_nan(BR_SF_F32, a) && br_sf_is_nan(BR_SF_F32, b))
            continue;
        if (!(x == y || fabs(x - y) <= (tf32 ? 1e-3 : 1e-4) * most))
            return false;
    }
    return true;
}

static void
warps(const ptx_set *s)
{
    static const ptx_case pair = {.dst = "f16x2"}; /* NaNs of a processor */
    uint64_t *got = t_keep(calloc(PTX_ROWS, 8));
    const int every = stride(s, 1, 5);

    for (int n = 0; n < s->n; n += every) {
        const char *what = s->cases[n].what;
        const char *err = ptx_run_case(s, s->m, n, got);
        bool mma = strstr(what, "approximate") != NULL;

        ck_assert_msg(!*err, "%d %s: %s", n, what, err);
        for (int r = 0; r < PTX_ROWS; r++) {
            uint64_t want = s->out[(size_t)n * PTX_ROWS + (size_t)r];

            if (got[r] != want &&
                !(s->on && strstr(what, "f16x2") &&
                  same(&pair, NULL, got[r], want, 0)) &&
                !(mma && near_mma(got[r], want, strstr(what, "tf32") != NULL)))
                ck_abort_msg("%d %s row %d: 0x%llx, an H200 says 0x%llx", n,
                             what, r, (unsigned long long)got[r],
                             (unsigned long long)want);
        }
    }
}

TEST_WITHIN(cg_warps_and_blocks_are_those_of_a_gpu, 60)
{
    ptx_set s;
    br_status st = {0};

    ptx_vectors(&s, "warp");
    ck_assert_int_eq(s.n, 127);
    warps(&s);
    t_ok(br_kir_optimise(s.m, NULL, &st), &st);
    warps(&s);
    br_kir_free(s.m);
}

static void
x86(const char *name, const char *set, void (*run)(const ptx_set *s))
{
    ptx_set s;
    br_status st = {0};

    ptx_vectors(&s, set);
    t_ok(br_kir_optimise(s.m, NULL, &st), &st);
    ptx_target(&s, name);
    run(&s);
    ptx_fini(&s);
}

static void
every(const ptx_set *s)
{
    sweep(s, 1);
}

TEST_WITHIN(x86_instructions_are_those_of_a_gpu, 180)
{
    x86("x86-64", "sweep", every);
}

TEST_WITHIN(x86_warps_and_blocks_are_those_of_a_gpu, 180)
{
    x86("x86-64", "warp", warps);
}

TEST_WITHIN(x86_avx2_instructions_are_those_of_a_gpu, 180)
{
    x86("x86-64-avx2", "sweep", every);
}

TEST_WITHIN(x86_avx2_warps_and_blocks_are_those_of_a_gpu, 180)
{
    x86("x86-64-avx2", "warp", warps);
}

/* On the simulated processor, some cases with its checks. */
static void
gfx(const char *name, const char *set, void (*run)(const ptx_set *s))
{
    ptx_set s;
    br_status st = {0};

    ptx_vectors(&s, set);
    t_ok(br_kir_optimise(s.m, NULL, &st), &st);
    ptx_target(&s, name);
    run(&s);
    ptx_fini(&s);
}

static void
all(const ptx_set *s)
{
    ptx_set checked = *s;

    sweep(s, 1);
    checked.check = true;
    sweep(&checked, 11);
}

static void
all_warps(const ptx_set *s)
{
    ptx_set checked = *s;

    warps(s);
    checked.check = true;
    warps(&checked);
}

TEST_WITHIN(gfx1100_instructions_are_those_of_a_gpu, 60)
{
    gfx("gfx1100", "sweep", all);
    gfx("gfx1100", "warp", all_warps);
}

TEST_WITHIN(gfx1201_instructions_are_those_of_a_gpu, 60)
{
    gfx("gfx1201", "sweep", all);
    gfx("gfx1201", "warp", all_warps);
}

/* In waves of 64 lanes a sample, and all of it with BRASS_ALL_WAVE64. */
static void
some(const ptx_set *s)
{
    const bool whole = getenv("BRASS_ALL_WAVE64") != NULL;
    ptx_set checked = *s;

    sweep(s, whole ? 1 : 5);
    checked.check = true;
    sweep(&checked, whole ? 1 : 53);
}

TEST_WITHIN(gfx1100_wave64_instructions_are_those_of_a_gpu, 300)
{
    gfx("gfx1100-wave64", "sweep", some);
    gfx("gfx1100-wave64", "warp", all_warps);
}

TEST_WITHIN(gfx1201_wave64_instructions_are_those_of_a_gpu, 300)
{
    gfx("gfx1201-wave64", "sweep", some);
    gfx("gfx1201-wave64", "warp", all_warps);
}

TEST(cg_vectors_print_and_parse_to_the_same_text)
{
    static const char *const names[] = {"sweep", "warp"};

    for (size_t k = 0; k < BR_COUNT(names); k++) {
        br_str a = {0}, b = {0};
        br_status st = {0};
        br_kir *again;
        ptx_set s;

        ptx_vectors(&s, names[k]);
        br_kir_print(s.m, &a);
        t_ok(br_kir_parse(&again, a.at, a.n, &st), &st);
        br_kir_print(again, &b);
        ck_assert_str_eq(a.at, b.at);
        br_kir_free(again);
        br_kir_free(s.m);
        br_str_fini(&a);
        br_str_fini(&b);
    }
}

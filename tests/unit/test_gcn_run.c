/* test_gcn_run.c - kernels compiled for AMD processors, on the simulated one:
 * the same numbers as recorded on an NVIDIA H200.
 * SPDX-License-Identifier: Apache-2.0 */
#include "ptx_kit.h"
#include "ptx_random.h"

#include "drv/sim/sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct runner {
    ptx_set s;
    br_ktarget on;
    int run, wrong, beyond;
    br_str wrongs;
} runner;

static bool
is_nan(const ptx_case *c, uint64_t v)
{
    if (strcmp(c->dst, "f32") == 0)
        return (v & 0x7fffffff) > 0x7f800000;
    if (strcmp(c->dst, "f64") == 0)
        return (v & ~(1ull << 63)) > 0x7ff0000000000000;
    if (strcmp(c->dst, "bf16") == 0)
        return (v & 0x7fff) > 0x7f80;
    return strcmp(c->dst, "f16") == 0 && (v & 0x7fff) > 0x7c00;
}

/* A NaN in either half of a pair. */
static bool
is_pair(const ptx_case *c)
{
    return strstr(c->dst, "16x2") && strchr(c->dst, 'f');
}

static bool
same(const ptx_case *c, uint64_t a, uint64_t b)
{
    ptx_case half = *c;

    if (a == b || (is_nan(c, a) && is_nan(c, b)))
        return true;
    if (!is_pair(c))
        return false;
    *strchr(half.dst, 'x') = 0;
    for (int k = 0; k < 32; k += 16) {
        uint64_t x = a >> k & 0xffff, y = b >> k & 0xffff;

        if (x != y && !(is_nan(&half, x) && is_nan(&half, y)))
            return false;
    }
    return true;
}

/* The simulated processor keeps denormals and rounds to the nearest; quotients
 * that overflow are NaNs there (v_div_fixup). */
static bool
is_beyond(const ptx_case *c)
{
    static const char *const parts[] = {".ftz", ".rz", ".rm", ".rp",
                                        "div.rn.f"};

    for (size_t k = 0; k < BR_COUNT(parts); k++)
        if (strstr(c->what, parts[k]))
            return true;
    return !*c->dst && strstr(c->what, "f16x2"); /* NaNs of no named type */
}

/* Compared by the interpreter's own test, within ULPs. */
static bool
is_approximate(const ptx_case *c)
{
    return strstr(c->what, "approx") || strstr(c->what, "div.full") ||
           strncmp(c->what, "ex2", 3) == 0 || strncmp(c->what, "lg2", 3) == 0;
}

static void
one(runner *r, int n, bool named)
{
    const ptx_case *c = &r->s.cases[n];
    const uint64_t *want = r->s.out + (size_t)n * PTX_ROWS;
    uint64_t out[PTX_ROWS];
    const char *err;
    int bad = 0, first = 0;

    if (is_approximate(c) || is_beyond(c)) {
        r->beyond++;
        return;
    }
    err = ptx_run_case(&r->s, r->s.m, n, out);
    if (strstr(err, "has no code for this yet"))
        return;
    r->run++;
    for (int i = 0; !*err && i < PTX_ROWS; i++)
        if (named ? !same(c, out[i], want[i]) : out[i] != want[i])
            first = bad++ ? first : i;
    if (!*err && !bad)
        return;
    r->wrong++;
    br_str_printf(&r->wrongs, "k_%d %s %s: %d wrong, row %d %llx for %llx %s\n",
                  n, c->what, c->dst, bad, first,
                  (unsigned long long)out[first],
                  (unsigned long long)want[first], err);
}

static void
run(runner *r, const char *set, const char *cpu, int every)
{
    br_status st = {0};

    ptx_vectors(&r->s, set);
    ck_assert(br_sim_target(&r->on, cpu));
    t_ok(r->on.compile(&r->s.code, r->s.m, &st), &st);
    r->s.on = &r->on;
    for (int n = 0; n < r->s.n; n += every)
        one(r, n, strcmp(set, "sweep") == 0);
    if (getenv("GCN_SHOW"))
        printf("%s%s %s: %d run, %d wrong, %d beyond it\n",
               br_str_z(&r->wrongs), set, cpu, r->run, r->wrong, r->beyond);
    ck_assert_msg(r->wrong == 0, "%s", br_str_z(&r->wrongs));
    br_str_fini(&r->wrongs);
    ptx_fini(&r->s);
}

/* What the simulated processor does another way, see is_beyond, and barriers
 * that a part of a warp reaches. */
static void
tame(char *text)
{
    static const char *const names[][2] = {{".rz.f", ".rn.f"},
                                           {".rm.f", ".rn.f"},
                                           {".rp.f", ".rn.f"},
                                           {"div.rn.f", "add.rn.f"},
                                           {"add.ftz.f32", "add.rn.f32 "},
                                           {"bar.sync 0;", "           "}};

    for (size_t k = 0; k < BR_COUNT(names); k++)
        for (char *p = text; (p = strstr(p, names[k][0]));)
            memcpy(p, names[k][1], strlen(names[k][1]));
}

/* Loops and branches that lanes take at random, with the interpreter's memory
 * in the end. */
TEST(gcn_random_kernels_run_as_interpreted)
{
    static const char *const cpus[] = {"gfx1100", "gfx1201"};
    uint64_t n = t_sanitized() ? 6 : 60;
    int ran = 0;

    for (uint64_t seed = 1; seed <= n; seed++) {
        br_str s = {0};
        br_status st = {0};
        const char *err;
        br_ktarget t;
        br_kir *m;

        ptx_random(&s, seed);
        tame(s.at);
        m = ptx_load(s.at);
        if (seed % 2)
            t_ok(br_kir_optimise(m, NULL, &st), &st);
        ck_assert(br_sim_target(&t, cpus[seed % 3 == 0]));
        err = pr_compare(m, &t);
        if (err && getenv("GCN_SHOW"))
            printf("seed %d: %.200s\n", (int)seed, err);
        if (!err || !strstr(err, "has no code for this yet")) {
            ck_assert_msg(!err, "seed %d: %s\n%s", (int)seed, err, s.at);
            ran++;
        }
        br_kir_free(m);
        br_str_fini(&s);
    }
    ck_assert_int_gt(ran, 0);
}

TEST(gcn_vectors_run_as_recorded_on_gfx1100)
{
    runner r = {0};

    run(&r, "sweep", "gfx1100", t_sanitized() ? 29 : 1);
    ck_assert_int_gt(r.run, t_sanitized() ? 5 : 350);
}

TEST(gcn_vectors_run_as_recorded_on_gfx1201)
{
    runner r = {0};

    run(&r, "sweep", "gfx1201", t_sanitized() ? 31 : 1);
    ck_assert_int_gt(r.run, t_sanitized() ? 5 : 350);
}

TEST(gcn_warps_run_as_recorded)
{
    runner r = {0};

    run(&r, "warp", "gfx1100", t_sanitized() ? 9 : 1);
    r = (runner){0};
    run(&r, "warp", "gfx1201", t_sanitized() ? 9 : 1);
}

/* A count that lanes take out of a loop they leave one by one, through a phi. */
TEST(gcn_counts_of_a_loop_are_each_lanes_own)
{
    static const char *const on[] = {"x86-64", "gfx1100", "gfx1201"};
    static const char text[] =
        ".version 8.0\n.target sm_80\n.address_size 64\n"
        ".entry k(.param .u64 in, .param .u64 out) {\n"
        ".reg .b32 %r<9>; .reg .b64 %d<9>; .reg .pred %p<4>;\n"
        "ld.param.u64 %d1, [out]; ld.param.u64 %d3, [in];\n"
        "mov.u32 %r1, %tid.x; mul.wide.u32 %d2, %r1, 4;\n"
        "add.u64 %d1, %d1, %d2; mov.u32 %r2, 100;\n"
        "ld.global.u32 %r5, [%d3]; setp.eq.u32 %p2, %r5, 12345; @%p2 bra D;\n"
        "L: sub.u32 %r2, %r2, 1; add.u32 %r3, %r2, %r1;\n"
        "setp.gt.s32 %p1, %r3, 80; @%p1 bra L;\n"
        "D: st.global.u32 [%d1], %r2; ret; }\n";
    br_kir *m = ptx_load(text);

    for (size_t k = 0; k < BR_COUNT(on); k++) {
        br_ktarget sim;
        const br_ktarget *t =
            br_sim_target(&sim, on[k]) ? &sim : br_ktarget_find(on[k]);
        const char *err = pr_compare(m, t);

        ck_assert_msg(!err || strstr(err, "needs a processor"), "%s: %s", on[k],
                      err);
    }
    br_kir_free(m);
}

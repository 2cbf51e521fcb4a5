/* test_gcn_run.c - kernels compiled for AMD processors, on the simulated one:
 * the same numbers as recorded on an NVIDIA H200.
 * SPDX-License-Identifier: Apache-2.0 */
#include "ptx_kit.h"

#include "cg/gcn/gcn_kernel.h"
#include "drv/sim/sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CODE_AT    0x100000000000ull
#define KERNARG_AT 0x10000ull

typedef struct runner {
    ptx_set s;
    br_gcn_isa isa;
    bool check;
    int compiled, right, wrong, beyond;
    br_str wrongs;
} runner;

static void
note(void *arg, const char *text)
{
    br_str *s = arg;

    if (s->n < 300)
        br_str_printf(s, "%s; ", text);
}

/* The kernel's block of arguments: the two pointers, then what it asks for. */
static br_code
dispatch(runner *r, const br_gcn_compiled *k, uint64_t *out, br_str *found,
         br_status *st)
{
    uint64_t params[8] = {0x100000000, 0x200000000};
    uint32_t blocks[3] = {8, 1, 1};
    uint16_t group[3] = {128, 1, 1};
    br_kregion in = {params[0], sizeof r->s.in, (uint8_t *)r->s.in, true, "in"};
    br_kregion to = {params[1], PTX_ROWS * 8, (uint8_t *)out, false, "out"};
    br_kregion args = {KERNARG_AT, sizeof params, (uint8_t *)params, true,
                       "arguments"};
    br_sim sim = {.cpu = r->isa.cpu,
                  .check = r->check,
                  .max_steps = 1 << 24,
                  .finding = note,
                  .arg = found};
    br_aql_launch l = {.groups = {8, 1, 1},
                       .group = {128, 1, 1},
                       .kernarg = KERNARG_AT,
                       .group_bytes = k->k.lds_bytes};
    br_aql_packet p;
    br_gcn_co co = {0};
    br_str o = {0};
    br_code c;

    memcpy(params + 2, blocks, sizeof blocks);
    memcpy((char *)(params + 2) + 12, group, sizeof group);
    t_ok(br_gcn_object(&o, &r->isa, &k->k, 1, st), st);
    t_ok(br_gcn_load(&co, o.at, o.n, st), st);
    br_str_fini(&o);
    t_ok(br_sim_map(&sim, &in, st), st);
    t_ok(br_sim_map(&sim, &to, st), st);
    t_ok(br_sim_map(&sim, &args, st), st);
    t_ok(br_sim_load(&sim, &co, CODE_AT, st), st);
    l.kernel = CODE_AT + br_gcn_kernel_find(&co, k->k.name)->at;
    t_ok(br_aql_fill(&p, &l, st), st);
    c = br_sim_dispatch(&sim, &p, st);
    if (c == BR_OK && sim.findings)
        c = br_fail(st, BR_E_FAULT, "%.300s", br_str_z(found));
    br_sim_fini(&sim);
    br_gcn_unload(&co);
    return c;
}

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
    return false;
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
    uint64_t *out = calloc(PTX_ROWS, 8);
    const uint64_t *want = r->s.out + (size_t)n * PTX_ROWS;
    char name[16];
    br_gcn_compiled k;
    br_str found = {0};
    br_status st = {0};
    br_code code;
    int bad = 0, first = -1;

    if (is_approximate(c) || is_beyond(c)) {
        r->beyond++;
        free(out);
        return;
    }

    snprintf(name, sizeof name, "k_%d", n);
    code = br_gcn_compile(&k, &r->isa, r->s.m,
                          br_kir_find_fn(r->s.m, br_text_z(name)), &st);
    if (code == BR_OK) {
        r->compiled++;
        code = dispatch(r, &k, out, &found, &st);
        for (int i = 0; code == BR_OK && i < PTX_ROWS; i++)
            if (named ? !same(c, out[i], want[i]) : out[i] != want[i])
                first = bad++ ? first : i;
        if (code != BR_OK || bad) {
            r->wrong++;
            br_str_printf(
                &r->wrongs, "%s %s %s: %d wrong, row %d %llx for %llx %s\n",
                name, c->what, c->dst, bad, first,
                first < 0 ? 0ull : (unsigned long long)out[first],
                first < 0 ? 0ull : (unsigned long long)want[first], st.msg);
        } else {
            r->right++;
        }
        br_gcn_compiled_fini(&k);
    }
    br_str_fini(&found);
    free(out);
}

static void
run(runner *r, const char *set, const char *cpu, int every)
{
    const char *show = getenv("GCN_SHOW");

    r->isa = (br_gcn_isa){br_gcn_cpu_find(cpu), false};
    ptx_vectors(&r->s, set);
    for (int n = 0; n < r->s.n; n += every)
        one(r, n, strcmp(set, "sweep") == 0);
    if (show)
        printf("%s%s %s: %d run, %d right, %d not run\n", br_str_z(&r->wrongs),
               set, cpu, r->compiled, r->right, r->beyond);
    ck_assert_msg(r->wrong == 0, "%s", br_str_z(&r->wrongs));
    br_str_fini(&r->wrongs);
    ptx_fini(&r->s);
}

TEST(gcn_vectors_run_as_recorded_on_gfx1100)
{
    runner r = {.check = false};

    run(&r, "sweep", "gfx1100", t_sanitized() ? 29 : 1);
    ck_assert_int_gt(r.right, t_sanitized() ? 5 : 350);
}

TEST(gcn_vectors_run_as_recorded_on_gfx1201)
{
    runner r = {.check = false};

    run(&r, "sweep", "gfx1201", t_sanitized() ? 31 : 1);
    ck_assert_int_gt(r.right, t_sanitized() ? 5 : 350);
}

TEST(gcn_warps_run_as_recorded)
{
    runner r = {.check = false};

    run(&r, "warp", "gfx1100", t_sanitized() ? 9 : 1);
    r = (runner){.check = false};
    run(&r, "warp", "gfx1201", t_sanitized() ? 9 : 1);
}

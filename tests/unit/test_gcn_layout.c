/* test_gcn_layout.c - code in which branches do not reach: each comes to its node
 * all the same, by islands, and a kernel of that size does what the interpreter
 * does.
 * SPDX-License-Identifier: Apache-2.0 */
#include "ptx_kit.h"
#include "ptx_random.h"

#include "base/rng.h"
#include "cg/gcn/gcn_kernel.h"
#include "drv/sim/sim.h"

#include <stdlib.h>
#include <string.h>

/* ---- any graph --------------------------------------------------------- */

/* Nodes begin with a mark, s_nop and their number, and end in what branches. */
typedef struct graph {
    gcn_code c;
    br_gcn_isa isa;
    uint32_t *yes, *no; /* of each node: where it goes with SCC 0, with 1 */
} graph;

static void
graph_make(graph *g, uint32_t nodes, uint32_t most, uint64_t seed)
{
    br_rng r;

    br_rng_init(&r, seed, 0);
    memset(g, 0, sizeof *g);
    g->isa.cpu = br_gcn_cpu_find("gfx1201");
    g->c.isa = &g->isa;
    g->c.n = nodes;
    g->c.node = br_try_calloc(nodes, sizeof *g->c.node);
    g->yes = t_keep(calloc(2 * nodes, sizeof *g->yes));
    g->no = g->yes + nodes;
    for (uint32_t n = 0; n < nodes; n++) {
        gcn_node *x = &g->c.node[n];
        uint64_t words = br_rng_below(&r, most), kind = br_rng_below(&r, 3);

        gcn_push(&g->c, x, "s_nop", n, 1);
        for (uint64_t w = 0; w < words; w++)
            gcn_push(&g->c, x, "s_sleep", 1, 1);
        g->yes[n] = g->no[n] = n + 1;
        if (kind != 1) { /* s_cbranch, or both */
            g->yes[n] = (uint32_t)br_rng_below(&r, nodes);
            gcn_push(&g->c, x, "s_cbranch_scc0", 0, 1);
            x->code.at[x->code.n - 1].target = (int32_t)g->yes[n];
        }
        if (kind != 0 || n + 1 == nodes) {
            g->no[n] = (uint32_t)br_rng_below(&r, nodes);
            g->yes[n] = kind == 1 ? g->no[n] : g->yes[n];
            gcn_push(&g->c, x, "s_branch", 0, 1);
            x->code.at[x->code.n - 1].target = (int32_t)g->no[n];
        }
    }
    ck_assert(!g->c.oom);
}

/* The node that code comes to from a word on; hops counts its branches. */
static uint32_t
comes_to(const graph *g, const gcn_words *w, size_t at, bool scc, int *hops)
{
    *hops = 0;
    for (int steps = 0; steps < 1 << 20; steps++) {
        br_gcn_inst in;
        bool taken;

        if (at >= w->n)
            ck_abort_msg("past the end");
        if (br_gcn_decode(&g->isa, &w->at[at], 1, &in) != 1)
            ck_abort_msg("no instruction at %zu", at);
        at++;
        if (gcn_is(&in, "s_nop"))
            return br_gcn_get(&in, BR_GF_simm16);
        taken = gcn_is(&in, "s_branch") ||
                (gcn_is(&in, "s_cbranch_scc0") && !scc) ||
                (gcn_is(&in, "s_cbranch_scc1") && scc);
        if (taken)
            at += (size_t)(int16_t)br_gcn_get(&in, BR_GF_simm16);
        *hops += taken;
    }
    ck_abort_msg("no end");
    return 0;
}

TEST(gcn_far_branches_come_to_their_nodes)
{
    static const struct {
        uint32_t nodes, most;
    } sizes[] = {{40, 30}, {700, 100}, {700, 500}, {3000, 120}};
    int longest = 0;

    t_not_for_tsan(NULL);
    for (size_t k = 0; k < (t_sanitized() ? 3 : BR_COUNT(sizes)); k++) {
        graph g;
        gcn_words w = {0};
        br_status st = {0};

        graph_make(&g, sizes[k].nodes, sizes[k].most, k);
        t_ok(gcn_layout(&g.c, &w, &st), &st);
        for (size_t at = 0; at < w.n; at++) {
            br_gcn_inst in;
            uint32_t n;
            int hops;

            if (br_gcn_decode(&g.isa, &w.at[at], 1, &in) != 1)
                ck_abort_msg("no instruction at %zu", at);
            if (!gcn_is(&in, "s_nop"))
                continue;
            n = br_gcn_get(&in, BR_GF_simm16);
            ck_assert_uint_eq(comes_to(&g, &w, at + 1, false, &hops), g.yes[n]);
            longest = BR_MAX(longest, hops);
            ck_assert_uint_eq(comes_to(&g, &w, at + 1, true, &hops), g.no[n]);
            longest = BR_MAX(longest, hops);
        }
        br_free(w.at);
        gcn_code_fini(&g.c);
    }
    ck_assert_int_ge(longest, 5); /* the last two are of 170,000 words */
}

/* ---- a kernel ---------------------------------------------------------- */

/* Lanes part around more code than a branch reaches, in a loop of all of it. */
static void
body(br_str *s, int n, int first)
{
    for (int k = 0; k < n; k++)
        br_str_printf(
            s, "mad.lo.u32 %%r2, %%r2, %d, %d; xor.b32 %%r2, %%r2, %d;\n",
            0x10001 + 2 * (first + k), 0x2001 + first + k, 0x333 * (k + 100));
}

TEST(gcn_kernels_longer_than_a_branch_run_as_interpreted)
{
    static const char *const cpus[] = {"gfx1100", "gfx1201"};
    br_str s = {0};
    br_kir *m;

    t_not_for_tsan("gcn_random_kernels_run_as_interpreted");
    br_str_puts(&s, ".version 8.0\n.target sm_80\n.address_size 64\n"
                    ".entry k(.param .u64 in, .param .u64 out) {\n"
                    ".reg .b32 %r<9>; .reg .b64 %d<9>; .reg .pred %p<4>;\n"
                    "ld.param.u64 %d1, [out]; mov.u32 %r1, %tid.x;\n"
                    "mul.wide.u32 %d2, %r1, 4; add.u64 %d1, %d1, %d2;\n"
                    "mov.u32 %r2, %r1; mov.u32 %r3, 0;\n"
                    "L: and.b32 %r4, %r2, 4; setp.eq.u32 %p1, %r4, 0;\n"
                    "@%p1 bra B;\n");
    body(&s, 5500, 0);
    br_str_puts(&s, "bra C;\nB:\n");
    body(&s, 5500, 7777);
    br_str_puts(&s, "C: add.u32 %r3, %r3, 1; setp.lt.u32 %p2, %r3, 3;\n"
                    "@%p2 bra L;\nst.global.u32 [%d1], %r2; ret; }\n");
    m = ptx_load(s.at);
    for (size_t k = 0; k < BR_COUNT(cpus); k++) {
        br_gcn_isa isa = {.cpu = br_gcn_cpu_find(cpus[k])};
        br_gcn_compiled c;
        br_status st = {0};
        const char *err;
        br_ktarget t;

        t_ok(br_gcn_compile(&c, &isa, m, 0, &st), &st);
        ck_assert_uint_gt(c.words.n, 2 * INT16_MAX);
        br_gcn_compiled_fini(&c);
        ck_assert(br_sim_target(&t, cpus[k]));
        err = pr_compare(m, &t);
        ck_assert_msg(!err, "%s: %s", cpus[k], err);
    }
    br_kir_free(m);
    br_str_fini(&s);
}

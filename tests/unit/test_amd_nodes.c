/* test_amd_nodes.c - tiers amd-t1 and amd-t2 on the simulated GPU: the bits of
 * the reference tier, and what the host has to do for a token.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/oracle.h"
#include "run/shape.h"

#include <stdlib.h>
#include <string.h>

#include "drv/sim/sim_gpu.h"
#include "t.h"

static const int32_t tokens[] = {3, 1, 7, 9, 2, 5};
enum { N = BR_COUNT(tokens) };

typedef struct made {
    br_str doc;
    br_model *m;
    float *want; /* of ref, exact */
    size_t bytes;
} made;

static made
make(const char *spec)
{
    br_oracle_config rc = {.act = BR_REF_QUANTISED, .n_ctx = 32};
    br_status st = {0};
    br_oracle o;
    made a = {0};

    t_ok(br_shape_model(&a.doc, spec, true, &st), &st);
    t_ok(br_model_open_mem(&a.m, a.doc.at, a.doc.n, &st), &st);
    a.bytes = N * sizeof *a.want * (size_t)a.m->hp.n_vocab;
    a.want = t_keep(calloc(1, a.bytes));
    t_ok(br_oracle_open(&o, a.m, &rc, &st), &st);
    t_ok(br_oracle_feed(&o, 0, 0, tokens, N, 0, a.want, &st), &st);
    br_oracle_close(&o);
    return a;
}

static void
unmake(made *a)
{
    br_model_close(a->m);
    br_str_fini(&a->doc);
}

/* Four rows, then one at a time: every bit is the reference tier's; a step is
 * one submission (resident: all of them are) and no call of the kernel. */
static void
same_bits(const made *a, br_nd_where where)
{
    br_oracle_config c = {
        .gpu = where, .exact = true, .n_ctx = 32, .max_rows = 4};
    const bool mega = where.mode, stays = mega && where.mode[0] == 'r';
    const size_t vocab = (size_t)a->m->hp.n_vocab;
    float *got = t_keep(calloc(1, a->bytes));
    br_status st = {0};
    br_nd_stats was, now;
    br_oracle o;

    t_ok(br_oracle_open(&o, a->m, &c, &st), &st);
    ck_assert_str_eq(br_cun_device(o.cun), t_printf("simulated %s", where.sim));
    t_ok(br_oracle_feed(&o, 0, 0, tokens, 4, 4, got, &st), &st);
    now = br_cun_stats(o.cun);
    ck_assert(now.steps == 1 && now.submits == 1);
    for (uint32_t i = 4; i < N; i++) {
        was = now;
        t_ok(br_oracle_feed(&o, 0, i, tokens + i, 1, 1, got + i * vocab, &st),
             &st);
        now = br_cun_stats(o.cun);
        ck_assert_uint_eq(now.submits, was.submits + !stays);
        ck_assert_uint_eq(now.launches - was.launches > 1, !mega);
    }
    ck_assert_uint_eq(now.recorded, was.recorded); /* the same packets */
    ck_assert_uint_eq(now.by_hand > 0, !mega); /* positions, of all models */
    /* TSan's steps may take the 2 s after which the kernel is asked for faults. */
    if (!strstr(t_conf(), "thread"))
        ck_assert_uint_eq(now.ioctls, 0);
    for (uint32_t i = 0; i < N; i++)
        ck_assert_msg(memcmp(got + i * vocab, a->want + i * vocab,
                             vocab * sizeof *got) == 0,
                      "%s %s %s: token %u", where.tier, where.sim,
                      mega ? where.mode : "", i);
    br_oracle_close(&o);
}

TEST_WITHIN(amd_tiers_have_the_reference_bits, 120)
{
    made a = make("shape:toy:Q8_0");

    same_bits(&a, (br_nd_where){"amd-t1", "gfx1100", "kernel=6.6", NULL});
    same_bits(&a, (br_nd_where){"amd-t2", "gfx1201", NULL, NULL});
    if (!strstr(t_conf(), "thread")) { /* the same threads again */
        same_bits(&a, (br_nd_where){.tier = "amd", .sim = "gfx1201"});
        same_bits(&a, (br_nd_where){"amd-t1", "gfx1151", "bar=small", NULL});
    }
    unmake(&a);
}

/* Blocks of 256: what toy has no columns for. */
TEST_WITHIN(amd_tiers_take_sub_blocks_by_hand, 300)
{
    made a;

    if (strstr(t_conf(), "thread") || t_sanitized())
        t_skip("the threads are those of amd_tiers_have_the_reference_bits");
    a = make("shape:llama-512:Q4_K");
    same_bits(&a, (br_nd_where){.tier = "amd", .sim = "gfx1201"});
    same_bits(&a, (br_nd_where){.tier = "amd", .sim = "gfx1100"});
    unmake(&a);
}

TEST_WITHIN(amd_tiers_take_every_kind_of_weights, 120)
{
    static const char *const specs[] = {"shape:toy:F32", "shape:toy:F16",
                                        "shape:toy:BF16", "shape:toy:Q4_K"};

    t_not_for_tsan("amd_tiers_have_the_reference_bits");
    for (size_t i = 0; i < BR_COUNT(specs); i++) {
        made a = make(specs[i]);

        same_bits(&a, (br_nd_where){"amd", i % 2 ? "gfx1100" : "gfx1201", NULL,
                                    NULL});
        unmake(&a);
    }
}

/* One kernel for a step. */
TEST_WITHIN(amd_mega_modes_have_the_reference_bits, 120)
{
    made a = make("shape:toy:Q8_0");

    if (!strstr(t_conf(), "thread")) /* the threads are resident mode's */
        same_bits(&a, (br_nd_where){"amd-t1", "gfx1100", NULL, "mega"});
    same_bits(&a, (br_nd_where){"amd-t2", "gfx1201", NULL, "mega"});
    unmake(&a);
}

/* One kernel for all steps, which ends with the model. */
TEST_WITHIN(amd_resident_mode_has_the_reference_bits, 120)
{
    made a = make("shape:toy:Q8_0");

    same_bits(&a, (br_nd_where){"amd-t1", "gfx1201", NULL, "resident"});
    if (!strstr(t_conf(), "thread")) /* the same threads again */
        same_bits(&a,
                  (br_nd_where){"amd-t1", "gfx1100", "bar=small", "resident"});
    unmake(&a);
}

/* Nodes one by one: the kernel that stays was started with as much local memory
 * as the first needs, and a later one needs more. */
TEST_WITHIN(resident_mode_grows_with_its_nodes, 120)
{
    t_proc r;

    if (strstr(t_conf(), "thread"))
        t_skip("the threads are those of "
               "amd_resident_mode_has_the_reference_bits");
    t_run(&r, "validate", "models/demo.gguf", "-p", "A", "--tiers",
          "ref,amd-t1", "--sim", "gfx1201", "--mode", "resident", "--arith",
          "exact");
    ck_assert_msg(r.exit == 0 && strstr(r.out, "amd-t1 agrees with ref"),
                  "%s%s", r.out, r.err);
}

/* With every check of waves on, nothing is found. */
TEST_WITHIN(amd_kernels_pass_the_simulators_checks, 120)
{
    made a;

    if (strstr(t_conf(), "thread"))
        t_skip("the threads are those of amd_tiers_have_the_reference_bits");
    a = make("shape:toy:Q4_0");
    same_bits(&a, (br_nd_where){"amd-t1", "gfx1201", "check=1,seed=3", NULL});
    unmake(&a);
}

TEST(simulated_gpus_are_as_asked)
{
    static const struct {
        const char *tier, *sim, *opts, *says, *mode;
    } rows[] = {
        {"amd-t2", "gfx1201", "kernel=6.11", "gfx1201", NULL},
        {"amd-t2", "gfx1201", "userq=0", "gfx1201", NULL},
        {"amd", "gfx9", NULL, "no simulated GPU is called 'gfx9'", NULL},
        {"amd-t2", "gfx1201", NULL, "user queues", "resident"},
        {"amd", "gfx1201", NULL, "no mode lazy", "lazy"},
        {"amd", "gfx1201", "kernel", "'kernel'", NULL},
        {"amd", "gfx1201", "kernel=six", "'kernel=six'", NULL},
        {"amd", "gfx1201", "userq=9", "'userq=9'", NULL},
        {"amd", "gfx1201", "bar=small,ecc=1", "'ecc=1'", NULL},
        {"amd", "gfx1201", "seed=18446744073709551616", "'seed=184", NULL},
    };
    br_simgpu_opts o = {0};
    br_status st = {0};

    for (size_t i = 0; i < BR_COUNT(rows); i++) {
        br_nd_dev *d;

        st = (br_status){0};
        ck_assert(br_nd_amd_open(&d,
                                 &(br_nd_where){rows[i].tier, rows[i].sim,
                                                rows[i].opts, rows[i].mode},
                                 &st) != BR_OK);
        ck_assert_msg(strstr(st.msg, rows[i].says), "%s", st.msg);
    }
    st = (br_status){0};
    t_ok(br_simgpu_read(&o,
                        "kernel=6.15,bar=small,userq=2,check=1,"
                        "seed=18446744073709551615",
                        &st),
         &st);
    ck_assert(!o.lax && o.no_userq && o.small_bar && o.check);
    ck_assert_uint_eq(o.userq_slots, 2);
    ck_assert_uint_eq(o.seed, UINT64_MAX);
}

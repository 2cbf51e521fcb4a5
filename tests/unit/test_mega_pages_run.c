/* test_mega_pages_run.c - page tables on real memory and for real models.
 * SPDX-License-Identifier: Apache-2.0 */
#include "unit/prog_make.h"

#include "mega/interp.h"
#include "mega/pages.h"
#include "unit/lower_make.h"

T_ONE_THREAD();

/* ---- on real memory ---------------------------------------------------- */

/* The check has its own proof of page tables. */
static void
accepted(const br_mega_prog *p, bool strict, const char *what)
{
    for (int mode = BR_MEGA_SOUND; mode <= (strict ? BR_MEGA_COMPAT_0_2 : 0);
         mode++) {
        br_mega_report r = {0};
        br_status st = {0};
        t_ok(br_mega_check(p, (br_mega_mode)mode, &r, &st), &st);
        ck_assert_msg(r.ok, "%s: %s", what, r.errors.n ? r.errors.at[0] : "?");
        br_mega_report_fini(&r);
    }
}

static void
run_on(const br_mega_prog *p, int orders, float *out, size_t room)
{
    br_mega_vm *vm = NULL;
    br_status st = {0};
    float x[MK_GRAIN];
    size_t n = 0;

    for (int i = 0; i < MK_GRAIN; i++)
        x[i] = (float)(i - 30) / 16.0f;
    t_ok(br_mega_vm_new(&vm, p, NULL, &st), &st);
    t_ok(br_mega_vm_bind(vm, 0,
                         &(br_mega_value){.data = x,
                                          .shape = p->buffers[0].shape,
                                          .nbytes = sizeof x,
                                          .rank = 2,
                                          .dtype = BR_MDT_F32},
                         &st),
         &st);
    t_ok(br_mega_vm_adversarial(vm, orders, BR_MEGA_ORDER_SWEEP, 1, &st), &st);
    for (size_t b = 0; b < p->n_buffers; b++) {
        br_mega_value v = br_mega_vm_get(vm, (int64_t)b);
        if (p->buffers[b].kind != BR_MBK_IO_OUTPUT)
            continue;
        ck_assert_uint_le(n + MK_GRAIN, room);
        memcpy(out + n, v.data, MK_GRAIN * sizeof *out);
        n += MK_GRAIN;
    }
    ck_assert_uint_gt(n, 0);
    br_mega_vm_free(vm);
}

TEST(pages_under_the_vm_change_no_bit_in_any_order)
{
    enum { ROOM = 64 * MK_GRAIN };
    float *want = calloc(ROOM, sizeof *want), *got = calloc(ROOM, sizeof *got);
    uint64_t r = 21;

    for (int i = 0; i < 40; i++) {
        mk m = mk_random(&r, (mk_shape){.n = 5 + mk_below(&r, 40),
                                        .window = 1 + mk_below(&r, 6),
                                        .sizes = 1,
                                        .outputs = true});
        br_mega_pages_report rep;
        br_status st = {0};
        run_on(m.p, 1, want, ROOM);
        t_ok(br_mega_pages_allocate_opt(
                 m.p,
                 &(br_mega_pages_opt){.policy = BR_MPP_GRAPH_COLOR,
                                      .strict = i % 3 == 0},
                 &rep, &st),
             &st);
        accepted(m.p, i % 3 == 0, "random program");
        run_on(m.p, 12, got, ROOM);
        ck_assert_mem_eq(want, got, ROOM * sizeof *want);
        br_mega_free(m.p);
    }
    free(want);
    free(got);
}

/* The VM would notice: two live buffers put on one page by force. */
TEST(pages_under_the_vm_notice_a_wrong_table)
{
    mk m = mk_new(5, 4, 4);
    br_mega_vm *vm = NULL;
    br_status st = {0};
    float x[MK_GRAIN] = {1};

    mk_buf(&m, "x", BR_MBK_IO_INPUT, MK_GRAIN);
    for (int i = 0; i < 3; i++) {
        mk_buf(&m, "a", i < 2 ? BR_MBK_ACTIVATION : BR_MBK_IO_OUTPUT, MK_GRAIN);
        mk_ctr(&m);
    }
    mk_task(&m, BR_MOP_GELU, 0, MK(0), MK(1), MK_NONE);
    mk_task(&m, BR_MOP_COPY, 1, MK(0), MK(2), MK_NONE);
    mk_task(&m, BR_MOP_ADD, 2, MK(1, 2), MK(3), MK(0, 1, 1, 1));
    t_ok(br_mega_pages_allocate(m.p, BR_MPP_LINEAR, NULL, &st), &st);
    m.p->binds[1].page = 0;
    t_ok(br_mega_vm_new(&vm, m.p, NULL, &st), &st);
    t_ok(br_mega_vm_bind(vm, 0,
                         &(br_mega_value){.data = x,
                                          .shape = m.p->buffers[0].shape,
                                          .nbytes = sizeof x,
                                          .rank = 2,
                                          .dtype = BR_MDT_F32},
                         &st),
         &st);
    ck_assert_int_ne(br_mega_vm_run(vm, BR_MEGA_ORDER_SWEEP, 0, &st), BR_OK);
    br_mega_vm_free(vm);
    br_mega_free(m.p);
}

/* ---- vectors ----------------------------------------------------------- */

/* v045 has what the reference's author takes for a linear table. */
TEST(pages_linear_equals_the_vector)
{
    const char *dir = t_vectors("amk/valid");
    br_mega_prog *p = NULL;
    br_mega_pages_opt opt = {.policy = BR_MPP_LINEAR, .align = 64};
    br_status st = {0};
    br_str out = {0};
    size_t n;
    char *text;

    if (!dir)
        t_skip("no ../shared/vectors here");
    text = t_read(t_printf("%s/v045_pages_linear.json", dir), &n);
    t_ok(br_mega_load(&p, text, n, &st), &st);
    p->has_pages = false;
    t_ok(br_mega_pages_allocate_opt(p, &opt, NULL, &st), &st);
    t_ok(br_mega_save(p, &out, &st), &st);
    ck_assert_str_eq(br_str_z(&out), text);
    br_str_fini(&out);
    br_mega_free(p);
}

static void
optimal(br_mega_prog *p, const char *what)
{
    for (int strict = 0; strict < 2; strict++) {
        br_mega_pages_opt opt = {.policy = BR_MPP_GRAPH_COLOR,
                                 .strict = strict};
        br_mega_pages_report rep;
        br_status st = {0};
        t_ok(br_mega_pages_allocate_opt(p, &opt, &rep, &st), &st);
        ck_assert(rep.exact);
        ck_assert_msg(rep.bytes == rep.bound_bytes,
                      "%s: %lld bytes, bound %lld", what, (long long)rep.bytes,
                      (long long)rep.bound_bytes);
        accepted(p, strict, what);
    }
}

/* No page table for these programs can be smaller. */
TEST(pages_of_the_lowered_vectors_meet_the_bound)
{
    const char *dir = t_vectors("amk/valid");
    char **names;
    int n = 0;

    if (!dir)
        t_skip("no ../shared/vectors here");
    names = t_ls(dir, ".json");
    for (size_t i = 0; names[i]; i++) {
        br_mega_prog *p = NULL;
        br_status st = {0};
        t_ok(br_mega_load_file(&p, t_printf("%s/%s", dir, names[i]), &st), &st);
        if (strstr(names[i], "llama") || strstr(names[i], "_sm_")) {
            optimal(p, names[i]);
            n++;
        }
        br_mega_free(p);
    }
    ck_assert_int_gt(n, 20);
}

TEST(pages_of_real_model_shapes_meet_the_bound)
{
    const br_json *m = lm_manifest(), *e;
    br_status st = {0};
    int n = 0;

    if (!m)
        t_skip("no ../shared/vectors here");
    for (e = br_json_get(m, "lower_digests")->child; e; e = e->next) {
        br_mega_prog *p = lm_spec(br_json_get(e, "lower_spec"), &st);
        ck_assert_msg(p != NULL, "%s", st.msg);
        optimal(p, br_json_get(e, "id")->s);
        br_mega_free(p);
        n++;
    }
    ck_assert_int_gt(n, 8);
    lm_manifest_done();
}

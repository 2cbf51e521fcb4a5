/* test_mega_abi.c - device tables, and typed access to a program's values.
 * SPDX-License-Identifier: Apache-2.0 */
#include "t.h"

#include "mega/abi_export.h"

#include <stdlib.h>
#include <string.h>

/* ---- tables ------------------------------------------------------------- */

typedef struct abi_case {
    const char *dir, *stem;
    const uint32_t *sm_of;
    uint32_t n_sms;
    int32_t depth;
} abi_case;

static br_mega_prog *
load_text(const char *text)
{
    br_status st = {0};
    br_mega_prog *p;

    t_ok(br_mega_load(&p, text, strlen(text), &st), &st);
    return p;
}

/* The tables of a program, byte by byte what the reference's loader packs. */
static void
check_tables(const abi_case *c, const char *queues)
{
    br_status st = {0};
    br_str got = {0};
    br_mega_prog *p;
    br_mega_abi t;
    size_t n;
    char *want;
    const char *stem = t_printf("%s/%s", c->dir, c->stem);

    t_ok(br_mega_load_file(&p, t_printf("%s.json", stem), &st), &st);
    t_ok(br_mega_abi_export(&t, p, c->sm_of, c->n_sms, c->depth, &st), &st);
    want = t_read(t_printf("%s.instr.bin", stem), &n);
    ck_assert_uint_eq(n, (size_t)t.program.n_instructions * 224);
    ck_assert_mem_eq(t.program.instructions, want, n);
    want = t_read(t_printf("%s.buf.bin", stem), &n);
    ck_assert_uint_eq(n, (size_t)t.program.n_buffers * 96);
    ck_assert_mem_eq(t.program.buffers, want, n);
    ck_assert_int_eq(t.program.n_counters, (int)p->n_counters);
    ck_assert_int_eq(t.program.num_sms, (int)c->n_sms);
    for (uint32_t s = 0; s < c->n_sms; s++) {
        br_str_puts(&got, s ? "|" : "");
        for (int i = 0; i < t.program.sm_queue_len[s]; i++)
            br_str_printf(&got, "%s%d", i ? " " : "", t.program.sm_queue[s][i]);
    }
    ck_assert_str_eq(br_str_z(&got), queues);
    br_str_fini(&got);
    br_mega_abi_fini(&t);
    br_mega_free(p);
}

TEST(mega_abi_packs_what_the_reference_packs)
{
    static const uint32_t dag3[] = {0, 1, 2, 3};
    static const uint32_t llama[] = {0, 1, 2, 3, 4, 5, 5, 6, 6, 6, 7,
                                     5, 7, 6, 0, 1, 5, 6, 0, 6, 6, 6};
    abi_case a = {t_repo("tests/data/amk/abi"), "v004_dag3", dag3, 8, 0};
    abi_case b = {a.dir, "v062_llama1_ntile64_h100", llama, 8, 2};

    check_tables(&a, "0|1|2|3||||");
    check_tables(&b, "0 14 18|1 15|2|3|4|5 6 11 16|7 8 9 13 17 19 20 21|"
                     "10 12");
}

static uint32_t *
read_sm_of(const br_json *list)
{
    uint32_t *sm = t_keep(malloc(list->n * sizeof *sm));
    size_t i = 0;

    for (const br_json *v = list->child; v; v = v->next)
        sm[i++] = (uint32_t)v->i;
    return sm;
}

TEST(mega_abi_packs_the_shared_vectors)
{
    const char *root = t_vectors("amk"), *bar;
    br_status st = {0};
    br_arena a;
    br_json *m;
    size_t n;
    char *text;

    if (!root)
        t_skip("no ../shared/vectors here");
    text = t_read(t_printf("%s/manifest.json", root), &n);
    br_arena_init(&a, 0);
    t_ok(br_json_parse(&m, &a, text, n, 0, &st), &st);
    m = br_json_get(m, "abi")->child;
    ck_assert_ptr_nonnull(m);
    for (; m; m = m->next) {
        const char *id = br_json_get(m, "id")->s;
        const char *depth = "pipelining_depth_injected_into_GEMV_M_tile";
        abi_case c = {t_printf("%s/abi", root), id + 2,
                      read_sm_of(br_json_get(m, "sm_of")),
                      (uint32_t)br_json_get(m, "grid")->i,
                      (int32_t)br_json_get(m, depth)->i};
        br_str want = {0};

        bar = "";
        for (const br_json *q = br_json_get(m, "queues")->child; q;
             q = q->next, bar = "|") {
            br_str_puts(&want, bar);
            for (const br_json *v = q->child; v; v = v->next)
                br_str_printf(&want, "%s%lld", v == q->child ? "" : " ",
                              (long long)v->i);
        }
        check_tables(&c, br_str_z(&want));
        br_str_fini(&want);
    }
    br_arena_fini(&a);
}

#define T0   "\"id\":0,\"op\":\"NOP\","
#define TAIL "\"out_counter\":0}]}"
#define C0   "\"counters\":[{\"id\":0}],"
#define B0(s)                                                  \
    "\"buffers\":[{\"id\":0,\"name\":\"\",\"kind\":\"CONST\"," \
    "\"dtype\":\"F32\",\"shape\":" s ",\"space\":\"HBM\"}],"
#define NOIO "\"inputs\":[],\"outputs\":[],"

TEST(mega_abi_refuses_what_no_record_holds)
{
    static const struct {
        const char *text, *error;
    } rows[] = {
        {"{" C0 "\"tasks\":[{" T0 NOIO "\"sm\":1.5," TAIL,
         "the program holds values of the wrong type"},
        {"{" C0 "\"tasks\":[{\"id\":1,\"op\":\"NOP\"," NOIO TAIL,
         "tasks[0]: id 1 is not its place"},
        {"{\"tasks\":[{" T0 NOIO TAIL, "tasks[0]: no counter 0"},
        {"{\"counters\":[{\"id\":0,\"init\":5}],\"tasks\":[{" T0 NOIO TAIL,
         "counters[0]: id 0, init 5; a counter is its place and starts at 0"},
        {"{" C0 "\"tasks\":[{" T0 "\"inputs\":[3],\"outputs\":[]," TAIL,
         "tasks[0].inputs[0]: no buffer 3"},
        {"{" C0 "\"tasks\":[{" T0 "\"inputs\":[],\"outputs\":[-1]," TAIL,
         "tasks[0].outputs[0]: no buffer -1"},
        {"{" C0 "\"tasks\":[{" T0
         "\"inputs\":[0,0,0,0,0,0,0,0,0],\"outputs\":[]," TAIL,
         "tasks[0]: 9 inputs, the record holds 8"},
        {"{" C0 "\"tasks\":[{" T0 "\"inputs\":[],\"outputs\":[0,0,0,0,0]," TAIL,
         "tasks[0]: 5 outputs, the record holds 4"},
        {"{" C0 "\"tasks\":[{" T0 NOIO
         "\"waits\":[{\"counter\":0,\"threshold\":0}]," TAIL,
         "tasks[0].waits[0]: threshold 0"},
        {"{" C0 "\"tasks\":[{" T0 NOIO
         "\"waits\":[{\"counter\":0,\"threshold\":2147483648}]," TAIL,
         "tasks[0].waits[0]: threshold 2147483648"},
        {"{" C0 "\"tasks\":[{" T0 NOIO
         "\"waits\":[{\"counter\":4,\"threshold\":1}]," TAIL,
         "tasks[0]: no counter 4"},
        {"{" C0 "\"tasks\":[{" T0 NOIO
         "\"waits\":[{\"counter\":0,\"threshold\":1}]," TAIL,
         "tasks: the waits form a cycle"},
        {"{" C0 "\"tasks\":[{" T0 NOIO "\"params\":{\"K\":2147483648}," TAIL,
         "tasks[0].params.K: not an int32"},
        {"{" C0 "\"tasks\":[{" T0 NOIO "\"params\":{\"K\":true}," TAIL,
         "tasks[0].params.K: not an int32"},
        {"{" C0 "\"tasks\":[{" T0 NOIO "\"params\":{\"eps\":\"1\"}," TAIL,
         "tasks[0].params.eps: not a number"},
        {"{" B0("[1,2,3,4,5]") C0 "\"tasks\":[{" T0 NOIO TAIL,
         "buffers[0]: rank 5, the record holds 4"},
        {"{" B0("[-1]") C0 "\"tasks\":[{" T0 NOIO TAIL,
         "buffers[0].shape: no size"},
        {"{" B0("[4294967296,4294967296]") C0 "\"tasks\":[{" T0 NOIO TAIL,
         "buffers[0].shape: no size"},
        {"{" B0("[0,4294967296,4294967296,4294967296]") C0
         "\"tasks\":[{" T0 NOIO TAIL,
         "buffers[0].shape: strides beyond 64 bits"},
    };
    static const uint32_t zero[1];
    br_mega_abi t;

    for (size_t i = 0; i < BR_COUNT(rows); i++) {
        br_status st = {0};
        br_mega_prog *p = load_text(rows[i].text);

        ck_assert_msg(br_mega_abi_export(&t, p, zero, 1, 0, &st) ==
                          BR_E_REJECTED,
                      "%s", rows[i].error);
        ck_assert_str_eq(st.msg, rows[i].error);
        br_mega_free(p);
    }
}

TEST(mega_abi_refuses_a_worker_that_is_not_there)
{
    br_mega_prog *p = load_text("{" C0 "\"tasks\":[{" T0 NOIO TAIL);
    br_status st = {0};
    br_mega_abi t;

    ck_assert_int_eq(br_mega_abi_export(&t, p, &(uint32_t){2}, 2, 0, &st),
                     BR_E_REJECTED);
    ck_assert_str_eq(st.msg, "tasks[0]: worker 2 of 2");
    br_mega_free(p);
}

TEST(mega_abi_exports_the_empty_program)
{
    br_mega_prog *p = load_text("{}");
    br_status st = {0};
    br_mega_abi t;

    t_ok(br_mega_abi_export(&t, p, NULL, 0, 0, &st), &st);
    ck_assert_int_eq(t.program.n_instructions, 0);
    br_mega_abi_fini(&t);
    br_mega_free(p);
}

static br_code
export_once(void *arg, br_status *st)
{
    br_mega_abi t;
    const uint32_t sm[4] = {0, 1, 0, 1};
    br_code code = br_mega_abi_export(&t, arg, sm, 2, 1, st);

    if (code == BR_OK)
        br_mega_abi_fini(&t);
    return code;
}

TEST(mega_abi_survives_every_failed_allocation)
{
    br_mega_prog *p =
        load_text(t_read(t_repo("tests/data/amk/abi/v004_dag3.json"), NULL));

    t_each_oom(export_once, p);
    br_mega_free(p);
}

/* ---- codes -------------------------------------------------------------- */

TEST(mega_codes_and_names_go_both_ways)
{
    int n = 0;

    for (int op = -1; op <= BR_MOP_LIMIT; op++) {
        const br_mega_opinfo *info = br_mega_opinfo_of(op);

        if (!info->name)
            continue;
        n++;
        ck_assert_int_eq(br_mega_op_find(br_text_z(info->name)), op);
        ck_assert_str_eq(br_mega_op_name(op), info->name);
        for (int k = 0; k < info->n_req; k++)
            ck_assert(info->req_mask >> info->req[k] & 1);
        ck_assert_int_eq(__builtin_popcount(info->req_mask), info->n_req);
    }
    ck_assert_int_eq(n, 20 + 39); /* the graph's */
    for (int i = 0; i < BR_MDT_COUNT; i++)
        ck_assert_int_eq(br_mega_dtype_find(br_text_z(br_mega_dtype_name(i))),
                         i);
    for (int i = 0; i < BR_MSP_COUNT; i++)
        ck_assert_int_eq(br_mega_space_find(br_text_z(br_mega_space_name(i))),
                         i);
    for (int i = 0; i < BR_MBK_COUNT; i++)
        ck_assert_int_eq(br_mega_kind_find(br_text_z(br_mega_kind_name(i))), i);
    for (int i = 0; i < BR_MP_COUNT; i++)
        ck_assert_int_eq(br_mega_param_find(br_text_z(br_mega_param_name(i))),
                         i);
    ck_assert_int_eq(br_mega_op_find(BR_TEXT("GEMV")), -1);
    ck_assert_int_eq(br_mega_dtype_find(BR_TEXT("")), -1);
    ck_assert_str_eq(br_mega_op_name(31), "?");
    ck_assert_str_eq(br_mega_dtype_name(-1), "?");
    ck_assert_int_eq(br_mega_param_type(BR_MP_K), 'I');
    ck_assert_int_eq(br_mega_param_type(BR_MP_theta), 'F');
    ck_assert_int_eq(br_mega_param_type(BR_MP_recipe), 'R');
    ck_assert_int_eq(br_mega_param_type(BR_MP_COUNT), '?');
}

TEST(mega_sizes_do_not_overflow)
{
    static const int64_t big[] = {INT64_MAX, 2, 0}, neg[] = {0, -1};
    br_mega_buffer b = {
        .dtype = BR_MDT_I4, .shape = (int64_t[]){3, 5}, .rank = 2};

    ck_assert_int_eq(br_mega_numel(&b), 15);
    ck_assert_int_eq(br_mega_nbytes(&b), 8); /* two in a byte, rounded up */
    b.rank = 0;
    ck_assert_int_eq(br_mega_numel(&b), 1);
    b.shape = big;
    b.rank = 2;
    ck_assert_int_eq(br_mega_numel(&b), -1);
    ck_assert_int_eq(br_mega_nbytes(&b), -1);
    b.rank = 3;
    ck_assert_int_eq(br_mega_numel(&b), 0);
    b.shape = neg;
    b.rank = 2;
    ck_assert_int_eq(br_mega_numel(&b), -1);
    ck_assert_int_eq(br_mega_dtype_bytes(BR_MDT_F32, INT64_MAX / 8), -1);
    ck_assert_int_eq(br_mega_dtype_bytes(BR_MDT_BOOL, INT64_MAX), -1);
    ck_assert_int_eq(br_mega_dtype_bytes(BR_MDT_F32, -1), -1);
    ck_assert_int_eq(br_mega_dtype_bytes(BR_MDT_I4, 7), 4);
    ck_assert_int_eq(br_mega_dtype_bytes(BR_MDT_F32, 0), 0);
}

TEST(mega_access_takes_only_its_type)
{
    br_mega_prog *p = load_text(
        "{" C0 "\"tasks\":[{" T0 NOIO
        "\"params\":{\"K\":4,\"N\":4.0,\"M\":true,\"eps\":2,\"scale\":true,"
        "\"theta\":100000000000000000000,\"dim\":\"1\"}," TAIL);
    const br_mega_task *t = p->tasks;
    int64_t i = -7;
    double f;

    ck_assert(br_mega_get_i(t, BR_MP_K, &i) && i == 4);
    ck_assert(!br_mega_get_i(t, BR_MP_N, &i));
    ck_assert(!br_mega_get_i(t, BR_MP_M, &i));
    ck_assert(!br_mega_get_i(t, BR_MP_dim, &i));
    ck_assert(!br_mega_get_i(t, BR_MP_group, &i));
    ck_assert_int_eq(br_mega_get_i_or(t, BR_MP_N, 3), 3);
    ck_assert_int_eq(br_mega_get_i_or(t, BR_MP_K, 3), 4);
    ck_assert(br_mega_get_f(t, BR_MP_eps, &f) && f == 2);
    ck_assert(br_mega_get_f(t, BR_MP_scale, &f) && f == 1);
    ck_assert(br_mega_get_f(t, BR_MP_theta, &f) && f == 1e20);
    ck_assert(!br_mega_get_f(t, BR_MP_dim, &f));
    br_mega_free(p);
}

TEST(mega_access_adds_up_weights)
{
    br_status st = {0};
    br_mega_prog *p;

    t_ok(br_mega_load_file(
             &p, t_repo("tests/data/amk/valid/v061_llama1_ntile16.json"), &st),
         &st);
    ck_assert_int_gt(br_mega_weight_bytes(p), 0);
    br_mega_free(p);
}

/* ---- the header by itself ---------------------------------------------- */

TEST(mega_abi_header_stands_alone)
{
    static const char *const compilers[][4] = {
        {"cc", "-std=c11", "-xc", "-Wundef"},
        {"c++", "-std=c++11", "-xc++", "-Wundef"},
        {"clang", "-std=c11", "-xc", "-Wundef"},
    };
    int tried = 0;

    for (size_t i = 0; i < BR_COUNT(compilers); i++) {
        const char *const *c = compilers[i];
        const char *argv[] = {c[0],
                              c[1],
                              c[2],
                              c[3],
                              "-Wall",
                              "-Wextra",
                              "-Wpedantic",
                              "-Werror",
                              "-fsyntax-only",
                              t_repo("include/amk/abi.h"),
                              NULL};
        t_proc r;

        if (!t_have_program(c[0]))
            continue;
        t_exec(&r, argv, NULL, 0);
        ck_assert_msg(r.exit == 0, "%s: %s", c[0], r.err);
        tried++;
    }
    if (!tried)
        t_skip("no compiler here");
}

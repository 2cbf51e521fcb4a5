/* test_mega_interp.c - the VM around the ops: order, waiting, binding, what
 * was never written, pages, limits.
 * SPDX-License-Identifier: Apache-2.0 */
#include "mega_kit.h"
#include "t.h"

#include <string.h>

#include "mega/interp_int.h"

enum {
    IN = BR_MBK_IO_INPUT,
    OUT = BR_MBK_IO_OUTPUT,
    ACT = BR_MBK_ACTIVATION,
    WEIGHT = BR_MBK_WEIGHT,
    KV = BR_MBK_KV_CACHE,
    F32 = BR_MDT_F32
};
#define V(...)                     \
    (const double[]){__VA_ARGS__}, \
        sizeof((const double[]){__VA_ARGS__}) / sizeof(double)

static const char *
id(int a)
{
    return t_printf("%d", a);
}

static const char *
ids(int a, int b)
{
    return t_printf("%d, %d", a, b);
}

static void
says(const kit *k, const char *text)
{
    ck_assert_msg(strstr(k->st.msg, text) != NULL, "says: %s", k->st.msg);
}

static void
order_is(kit *k, const char *want)
{
    br_str got = {0};
    size_t n;
    const uint32_t *o = br_mega_vm_order(k->vm, &n);

    for (size_t i = 0; i < n; i++)
        br_str_printf(&got, "%s%u", i ? " " : "", o[i]);
    ck_assert_str_eq(br_str_z(&got), want);
    br_str_fini(&got);
}

/* ---- order ------------------------------------------------------------ */

/* 0 and 2 wait for 3; 4 waits for 0: sweeps are 1 3 | 0 2 4. */
TEST(vm_order_is_that_of_sweeps)
{
    kit k = {0};

    kit_task(&k, "NOP", "", "", "", "3>=1");
    kit_task(&k, "NOP", "", "", "", "");
    kit_task(&k, "NOP", "", "", "", "3>=1, 1>=1");
    kit_task(&k, "NOP", "", "", "", "");
    kit_task(&k, "NOP", "", "", "", "0>=1, 0>=1");
    kit_load(&k);
    t_ok(kit_run(&k), &k.st);
    order_is(&k, "1 3 0 2 4");
    ck_assert_uint_eq(br_mega_vm_sweeps(k.vm), 2);
    t_ok(br_mega_vm_run(k.vm, BR_MEGA_ORDER_REVERSE, 0, &k.st), &k.st);
    order_is(&k, "3 1 2 0 4");
    kit_end(&k);
}

/* The heap against sweeps done the plain way, on random graphs. */
TEST(vm_order_equals_plain_sweeping)
{
    uint64_t s = 7;

    for (int round = 0; round < 60; round++) {
        enum { N = 40 };
        kit k = {0};
        int waits[N][3], n_waits[N], at = 0;
        bool done[N] = {false};
        uint32_t order[N], perm[N];
        size_t sweeps = 0;
        const uint32_t *got;
        size_t n;

        for (uint32_t i = 0; i < N; i++) { /* a random topological order */
            uint32_t j = (uint32_t)(t_rand(&s) % (i + 1));

            perm[i] = perm[j];
            perm[j] = i;
        }
        for (int i = 0; i < N; i++)
            n_waits[i] = 0;
        for (int i = 1; i < N; i++)
            for (int w = (int)(t_rand(&s) % 4); w > 0; w--) {
                int t = (int)perm[i];

                waits[t][n_waits[t]++] = (int)perm[t_rand(&s) % (unsigned)i];
            }
        for (int i = 0; i < N; i++) {
            br_str w = {0};

            for (int j = 0; j < n_waits[i]; j++)
                br_str_printf(&w, "%s%d>=1", j ? ", " : "", waits[i][j]);
            kit_task(&k, "NOP", "", "", "", br_str_z(&w));
            br_str_fini(&w);
        }
        kit_load(&k);
        t_ok(kit_run(&k), &k.st);
        for (; at < N; sweeps++)
            for (int i = 0; i < N; i++) {
                bool ready = !done[i];

                for (int j = 0; j < n_waits[i]; j++)
                    ready = ready && done[waits[i][j]];
                if (ready) {
                    done[i] = true;
                    order[at++] = (uint32_t)i;
                }
            }
        got = br_mega_vm_order(k.vm, &n);
        ck_assert_uint_eq(n, N);
        ck_assert_mem_eq(got, order, sizeof order);
        ck_assert_uint_eq(br_mega_vm_sweeps(k.vm), sweeps);
        kit_end(&k);
    }
}

TEST(vm_random_orders_differ_by_seed_and_repeat)
{
    kit k = {0};
    uint32_t first[12];
    size_t n;

    for (int i = 0; i < 12; i++)
        kit_task(&k, "NOP", "", "", "", "");
    kit_load(&k);
    t_ok(br_mega_vm_run(k.vm, BR_MEGA_ORDER_RANDOM, 1, &k.st), &k.st);
    memcpy(first, br_mega_vm_order(k.vm, &n), sizeof first);
    ck_assert_uint_eq(n, 12);
    t_ok(br_mega_vm_run(k.vm, BR_MEGA_ORDER_RANDOM, 2, &k.st), &k.st);
    ck_assert_mem_ne(first, br_mega_vm_order(k.vm, &n), sizeof first);
    t_ok(br_mega_vm_run(k.vm, BR_MEGA_ORDER_RANDOM, 1, &k.st), &k.st);
    ck_assert_mem_eq(first, br_mega_vm_order(k.vm, &n), sizeof first);
    kit_end(&k);
}

TEST(vm_stuck_program_names_who_waits)
{
    kit k = {0};

    kit_task(&k, "NOP", "", "", "", "");
    kit_task(&k, "NOP", "", "", "", "2>=1");
    kit_task(&k, "NOP", "", "", "", "1>=1, 0>=1");
    kit_task(&k, "NOP", "", "", "", "0>=2");
    kit_load(&k);
    ck_assert_int_eq(kit_run(&k), BR_E_REJECTED);
    ck_assert_str_eq(k.st.msg,
                     "stuck: 3 of 4 tasks wait for ever: task 1 (counter 2 is "
                     "0, needs 1), task 2 (counter 1 is 0, needs 1), task 3 "
                     "(counter 0 is 1, needs 2)");
    kit_end(&k);
}

/* ---- never written ---------------------------------------------------- */

TEST(vm_finds_uninitialised_reads)
{
    kit k = {0};
    int a = kit_buf(&k, ACT, F32, "2"), y = kit_buf(&k, OUT, F32, "2");

    kit_task(&k, "COPY", id(a), id(y), "", "");
    kit_load(&k);
    ck_assert_int_eq(kit_run(&k), BR_E_REJECTED);
    ck_assert_str_eq(k.st.msg,
                     "task 0 (COPY): uninitialised read: input 0 (buffer #0 "
                     "'b0'): nobody has written element 0");
    kit_end(&k);
}

/* The half that no tile covers is found, and only that. */
TEST(vm_finds_a_partly_written_buffer)
{
    kit k = {0};
    int x = kit_buf(&k, IN, F32, "1, 1"), w = kit_buf(&k, WEIGHT, F32, "70, 1");
    int a = kit_buf(&k, ACT, F32, "1, 70"), y = kit_buf(&k, OUT, F32, "1, 70");
    double w70[70] = {0};

    kit_task(&k, "GEMV_TILE", ids(x, w), id(a),
             "\"K\": 1, \"N_tile\": 66, \"n_off\": 0", "");
    kit_task(&k, "COPY", id(a), id(y), "", "0>=1");
    kit_load(&k);
    kit_bind(&k, x, V(1));
    kit_bind(&k, w, w70, 70);
    ck_assert_int_eq(kit_run(&k), BR_E_REJECTED);
    says(&k, "task 1 (COPY): uninitialised read: input 0 (buffer #2 'b2'): "
             "nobody has written element 66");
    kit_end(&k);
}

/* Rows 0 and 1 of x are two tiles; row 1 is read before it is there. */
TEST(vm_finds_an_unwritten_part)
{
    static const char *const par =
        "\"K\": 3, \"N_tile\": 3, \"n_off\": 0, \"M_tile\": 1, \"m_off\": ";
    kit k = {0};
    int x = kit_buf(&k, IN, F32, "2, 3"), w = kit_buf(&k, WEIGHT, F32, "3, 3");
    int a = kit_buf(&k, ACT, F32, "2, 3"), y = kit_buf(&k, OUT, F32, "2, 3");

    kit_task(&k, "GEMM_TILE", ids(x, w), id(a), t_printf("%s0", par), "");
    kit_task(&k, "GEMM_TILE", ids(a, w), id(y), t_printf("%s0", par), "0>=1");
    kit_task(&k, "GEMM_TILE", ids(a, w), id(y), t_printf("%s1", par), "0>=1");
    kit_load(&k);
    kit_bind(&k, x, V(1, 2, 3, 4, 5, 6));
    kit_bind(&k, w, V(1, 2, 3, 4, 5, 6, 7, 8, 9));
    ck_assert_int_eq(kit_run(&k), BR_E_REJECTED);
    says(&k, "task 2 (GEMM_TILE): uninitialised read: input 0 (buffer #2 "
             "'b2'): nobody has written element 3");
    kit_end(&k);
}

/* A race that list order hides: the reader waits for nobody. */
TEST(vm_other_orders_reveal_a_missing_wait)
{
    kit k = {0};
    int x = kit_buf(&k, IN, F32, "2"), a = kit_buf(&k, ACT, F32, "2");
    int y = kit_buf(&k, OUT, F32, "2");

    kit_task(&k, "COPY", id(x), id(a), "", "");
    kit_task(&k, "COPY", id(a), id(y), "", "");
    kit_load(&k);
    kit_bind(&k, x, V(1, 2));
    t_ok(kit_run(&k), &k.st);
    ck_assert_int_eq(
        br_mega_vm_adversarial(k.vm, 1, BR_MEGA_ORDER_SWEEP, 0, &k.st),
        BR_E_REJECTED);
    says(&k, "in reverse order: task 1 (COPY): uninitialised read");
    kit_end(&k);
}

/* Two writers of one output without an order: bits differ. */
TEST(vm_adversarial_compares_bits)
{
    kit k = {0};
    int x = kit_buf(&k, IN, F32, "2"), y = kit_buf(&k, OUT, F32, "2");

    kit_task(&k, "MUL", id(x), id(y), "\"scale\": 2", "");
    kit_task(&k, "MUL", id(x), id(y), "\"scale\": 3", "");
    kit_load(&k);
    kit_bind(&k, x, V(0, 1));
    ck_assert_int_eq(
        br_mega_vm_adversarial(k.vm, 4, BR_MEGA_ORDER_SWEEP, 0, &k.st),
        BR_E_INTERNAL);
    ck_assert_str_eq(k.st.msg, "buffer #1 ('b1') differs at byte 6 when tasks "
                               "run in reverse order");
    kit_end(&k);
}

TEST(vm_output_must_be_written)
{
    kit k = {0};

    kit_buf(&k, OUT, F32, "2");
    kit_load(&k);
    ck_assert_int_eq(kit_run(&k), BR_E_REJECTED);
    says(&k, "IO_OUTPUT buffer #0 ('b0'): nobody has written element 0");
    kit_end(&k);
}

TEST(vm_refuses_to_write_what_is_read_only)
{
    kit k = {0};
    int x = kit_buf(&k, IN, F32, "1"), w = kit_buf(&k, WEIGHT, F32, "1");

    kit_task(&k, "COPY", id(x), id(w), "", "");
    kit_load(&k);
    kit_bind(&k, x, V(1));
    kit_bind(&k, w, V(2));
    ck_assert_int_eq(kit_run(&k), BR_E_REJECTED);
    says(&k, "writes output 0 (buffer #1 'b1'), which is WEIGHT");
    kit_end(&k);
}

/* ---- pages ------------------------------------------------------------ */

static void
page_program(kit *k, const char *reader, const char *other)
{
    int x = kit_buf(k, IN, F32, "2"), a = kit_buf(k, ACT, F32, "2");
    int b = kit_buf(k, ACT, BR_MDT_F16, "4"), y = kit_buf(k, OUT, F32, "2");
    int z = kit_buf(k, OUT, F32, "2");

    (void)a;
    kit_task(k, "COPY", id(x), id(a), "", "");
    kit_task(k, "COPY", id(a), id(y), "", reader);
    kit_task(k, "GEMV_TILE",
             t_printf("%d, %d", x, kit_buf(k, WEIGHT, F32, "4, 2")), id(b),
             "\"K\": 2, \"N_tile\": 1, \"n_off\": 2", other);
    kit_task(k, "COPY", id(x), id(z), "", "");
    k->pages = "{\"buffer_to_page\": {\"1\": 0, \"2\": 0}, \"pages\": "
               "[{\"id\": 0, \"space\": \"HBM\", \"nbytes\": 8, "
               "\"live_start\": 0, \"live_end\": 1}]}";
    kit_load(k);
    kit_bind(k, x, V(1, 2));
    kit_bind(k, 5, V(1, 2, 3, 4, 5, 6, 7, 8));
}

/* Element 2 of the F16 buffer lies over bytes 4 and 5: half of float 1. */
TEST(vm_finds_what_a_page_clobbered)
{
    kit k = {0};

    page_program(&k, "2>=1", "0>=1");
    ck_assert_int_eq(kit_run(&k), BR_E_REJECTED);
    says(&k, "task 1 (COPY): uninitialised read: input 0 (buffer #1 'b1'): "
             "element 1 was overwritten by buffer #2 on the same page");
    kit_end(&k);
    k = (kit){0};
    page_program(&k, "0>=1", "0>=1"); /* by luck in list order */
    t_ok(kit_run(&k), &k.st);
    ck_assert_int_eq(
        br_mega_vm_adversarial(k.vm, 1, BR_MEGA_ORDER_SWEEP, 0, &k.st),
        BR_E_REJECTED);
    says(&k, "in reverse order: task 1 (COPY): uninitialised read");
    kit_end(&k);
    k = (kit){0};
    page_program(&k, "0>=1", "1>=1");
    t_ok(br_mega_vm_adversarial(k.vm, 5, BR_MEGA_ORDER_SWEEP, 0, &k.st), &k.st);
    ck_assert_double_eq(kit_get(&k, 3, 1), 2);
    kit_end(&k);
}

/* In place through a page: each element is read before it is overwritten. */
TEST(vm_runs_in_place_pages)
{
    kit k = {0};
    int x = kit_buf(&k, IN, F32, "2"), a = kit_buf(&k, ACT, F32, "2");
    int b = kit_buf(&k, ACT, F32, "2"), y = kit_buf(&k, OUT, F32, "2");

    kit_task(&k, "COPY", id(x), id(a), "", "");
    kit_task(&k, "MUL", id(a), id(b), "\"scale\": 3", "0>=1");
    kit_task(&k, "COPY", id(b), id(y), "", "1>=1");
    k.pages = "{\"buffer_to_page\": {\"1\": 0, \"2\": 0}, \"pages\": "
              "[{\"id\": 0, \"space\": \"SMEM\", \"nbytes\": 8}]}";
    kit_load(&k);
    kit_bind(&k, x, V(1, 2));
    t_ok(kit_run(&k), &k.st);
    ck_assert_double_eq(kit_get(&k, y, 1), 6);
    kit_end(&k);
}

TEST(vm_refuses_pages_that_do_not_fit)
{
    static const char *const bad[][2] = {
        {"\"0\": 0}, \"pages\": [{\"id\": 0, \"space\": \"HBM\", "
         "\"nbytes\": 7}]",
         "needs 8 bytes, page 0 has 7"},
        {"\"0\": 1}, \"pages\": [{\"id\": 0, \"space\": \"HBM\", "
         "\"nbytes\": 8}]",
         "no page 1"},
        {"\"3\": 0}, \"pages\": [{\"id\": 0, \"space\": \"HBM\", "
         "\"nbytes\": 8}]",
         "no buffer 3"},
        {"\"0\": 0}, \"pages\": [{\"id\": 0, \"space\": \"HBM\", "
         "\"nbytes\": -8}]",
         "page 0 has -8"},
    };

    for (size_t i = 0; i < BR_COUNT(bad); i++) {
        kit k = {0};

        kit_buf(&k, ACT, F32, "2");
        k.pages = t_printf("{\"buffer_to_page\": {%s}", bad[i][0]);
        kit_refused(&k);
        says(&k, bad[i][1]);
        kit_end(&k);
    }
}

/* ---- binding ---------------------------------------------------------- */

static br_code
bind(kit *k, int buffer, int dtype, const int64_t *shape, uint32_t rank,
     const void *data, size_t n)
{
    br_mega_value v = {data, shape, n, rank, dtype};

    k->st = (br_status){0};
    return br_mega_vm_bind(k->vm, buffer, &v, &k->st);
}

TEST(vm_bind_converts_and_checks)
{
    kit k = {0};
    int h = kit_buf(&k, IN, BR_MDT_F16, "1, 2");
    int q = kit_buf(&k, WEIGHT, BR_MDT_I4, "2, 3");
    int a = kit_buf(&k, ACT, F32, "1");
    static const float x[] = {1.00048828125f, 70000.0f}, big[] = {8};
    static const unsigned char nib[] = {0x21, 0xf3, 0x54, 0x06};

    kit_load(&k);
    t_ok(bind(&k, h, F32, (int64_t[]){2}, 1, x, 8), &k.st);
    ck_assert_double_eq(kit_get(&k, h, 0), 1);
    ck_assert_double_eq(kit_get(&k, h, 1), (double)__builtin_inf());
    ck_assert_int_eq(bind(&k, h, F32, (int64_t[]){2, 2}, 2, x, 8), BR_E_FORMAT);
    says(&k, "another shape");
    ck_assert_int_eq(bind(&k, h, F32, (int64_t[]){2}, 1, x, 7), BR_E_FORMAT);
    says(&k, "7 bytes where 8 are expected");
    ck_assert_int_eq(bind(&k, h, F32, (int64_t[]){2}, 1, x, 9), BR_E_FORMAT);
    says(&k, "9 bytes where 8 are expected");
    ck_assert_int_eq(bind(&k, a, F32, (int64_t[]){1}, 1, x, 4), BR_E_FORMAT);
    says(&k, "is ACTIVATION: the program makes it");
    ck_assert_int_eq(bind(&k, 9, F32, (int64_t[]){1}, 1, x, 4), BR_E_FORMAT);
    says(&k, "no buffer #9");
    /* I4 from its bytes, and from values */
    t_ok(bind(&k, q, BR_MDT_U8, (int64_t[]){2, 2}, 2, nib, 4), &k.st);
    ck_assert_double_eq(kit_get(&k, q, 0), 1 - 8);
    ck_assert_double_eq(kit_get(&k, q, 1), 2 - 8);
    ck_assert_double_eq(kit_get(&k, q, 2), 3 - 8);
    ck_assert_double_eq(kit_get(&k, q, 3), 4 - 8);
    ck_assert_double_eq(kit_get(&k, q, 5), 6 - 8);
    kit_bind(&k, q, V(-8, 7, 0, 1, 2, 3));
    ck_assert_double_eq(kit_get(&k, q, 1), 7);
    ck_assert_int_eq(bind(&k, q, F32, (int64_t[]){2, 3}, 2,
                          (const float[]){0, 1, 2, 3, 4, big[0]}, 24),
                     BR_E_FORMAT);
    says(&k, "element 5, 8, does not fit I4");
    kit_end(&k);
}

TEST(vm_needs_weights_and_inputs)
{
    kit k = {0};

    kit_buf(&k, KV, F32, "2");
    kit_buf(&k, BR_MBK_CONST, F32, "2");
    kit_load(&k);
    ck_assert_int_eq(kit_run(&k), BR_E_NOT_FOUND);
    says(&k, "buffer #1 ('b1'), CONST, is not bound");
    kit_end(&k);
}

/* Caches keep their rows from run to run; absent ones begin as zeros. Here
 * the cache counts up by x, so a run too many would show. */
TEST(vm_caches_live_from_run_to_run)
{
    kit k = {0};
    int x = kit_buf(&k, IN, F32, "1, 2"), c = kit_buf(&k, KV, F32, "1, 2");
    int y = kit_buf(&k, OUT, F32, "1, 2");

    kit_task(&k, "ADD", ids(x, c), id(y), "", "");
    kit_task(&k, "KV_APPEND", ids(y, c), id(c), "\"pos\": 0", "0>=1");
    kit_load(&k);
    kit_bind(&k, x, V(1, 2));
    t_ok(kit_run(&k), &k.st);
    ck_assert_double_eq(kit_get(&k, y, 1), 2);
    t_ok(br_mega_vm_adversarial(k.vm, 3, BR_MEGA_ORDER_SWEEP, 0, &k.st), &k.st);
    ck_assert_double_eq(kit_get(&k, y, 1), 4);
    kit_bind(&k, x, V(5, 5));
    t_ok(kit_run(&k), &k.st);
    ck_assert_double_eq(kit_get(&k, y, 1), 9);
    ck_assert_double_eq(kit_get(&k, c, 0), 7);
    kit_end(&k);
}

/* ---- limits ----------------------------------------------------------- */

TEST(vm_keeps_its_limits)
{
    kit k = {.desc = {.max_bytes = 4096}};
    kit w = {.desc = {.max_work = 100}}, sum = {.desc = {.max_bytes = 4096}};
    int x, y;

    kit_buf(&k, ACT, F32, "1000000");
    ck_assert_int_eq(kit_refused(&k), BR_E_LIMIT);
    says(&k, "more than the 4096 bytes allowed");
    kit_end(&k);
    kit_buf(&sum, ACT, BR_MDT_U8, "3000");
    kit_buf(&sum, ACT, BR_MDT_U8, "3000");
    ck_assert_int_eq(kit_refused(&sum), BR_E_LIMIT);
    kit_end(&sum);
    x = kit_buf(&w, IN, F32, "64");
    y = kit_buf(&w, OUT, F32, "64");
    kit_task(&w, "COPY", id(x), id(y), "", "");
    kit_task(&w, "COPY", id(x), id(y), "", "0>=1");
    kit_load(&w);
    kit_bind(&w, x, (const double[64]){0}, 64);
    ck_assert_int_eq(kit_run(&w), BR_E_LIMIT);
    says(&w, "task 1 (COPY): the run takes more than 100 steps");
    kit_end(&w);
}

TEST(vm_refuses_impossible_shapes)
{
    static const char *const bad[] = {
        "-1",
        "2, -1",
        "9223372036854775807",
        "4294967296, 4294967296",
        "0, 4294967296, 4294967296, 4294967296",
    };

    for (size_t i = 0; i < BR_COUNT(bad); i++) {
        kit k = {0};

        kit_buf(&k, ACT, F32, bad[i]);
        ck_assert_int_eq(kit_refused(&k), BR_E_FORMAT);
        says(&k, "impossible shape");
        kit_end(&k);
    }
}

static const char *
replace(const char *text, const char *from, const char *to)
{
    const char *at = strstr(text, from);

    ck_assert_msg(at != NULL, "no %s", from);
    return t_printf("%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
}

/* Ids that are no indices, types that are none, unchecked and yet refused. */
TEST(vm_refuses_what_makes_no_sense)
{
    static const char *const bad[][3] = {
        {"{\"id\": 1, \"name\"", "{\"id\": 2, \"name\"", "buffers[1] has id 2"},
        {"{\"id\": 1, \"op\"", "{\"id\": 0, \"op\"", "tasks[1] has id 0"},
        {"{\"id\": 1, \"init\"", "{\"id\": 7, \"init\"",
         "counters[1]: id 7, init 0"},
        {"\"init\": 0", "\"init\": -1", "counters[0]: id 0, init -1"},
        {"\"inputs\": [0]", "\"inputs\": [2]", "task 0: no buffer 2"},
        {"\"outputs\": [1]", "\"outputs\": [-1]", "task 0: no buffer -1"},
        {"\"out_counter\": 0", "\"out_counter\": 2", "task 0: no counter 2"},
        {"\"counter\": 0", "\"counter\": -3", "task 1: no counter -3"},
        {"\"inputs\": [0]", "\"inputs\": [0,0,0,0,0,0,0,0,0]", "9 inputs"},
        {"\"shape\": [2]", "\"shape\": [2,1,1,1,1]", "rank 5, at most 4"},
        {"\"shape\": [2]", "\"shape\": [2.5]", "wrong type"},
    };
    kit k = {0};
    int x = kit_buf(&k, IN, F32, "2"), y = kit_buf(&k, OUT, F32, "2");
    const char *text;

    kit_task(&k, "COPY", id(x), id(y), "", "");
    kit_task(&k, "NOP", "", "", "", "0>=1");
    text = kit_text(&k);
    for (size_t i = 0; i < BR_COUNT(bad); i++) {
        const char *s = replace(text, bad[i][0], bad[i][1]);
        br_status st = {0};
        br_mega_prog *p;
        br_mega_vm *vm;

        t_ok(br_mega_load(&p, s, strlen(s), &st), &st);
        ck_assert_int_eq(br_mega_vm_new(&vm, p, NULL, &st), BR_E_FORMAT);
        ck_assert_msg(strstr(st.msg, bad[i][2]) != NULL, "says: %s", st.msg);
        br_mega_free(p);
    }
    kit_end(&k);
}

/* A counter that begins above 0, as the reference takes it; no checked
 * program has one. */
TEST(vm_counters_begin_at_init)
{
    kit k = {0};
    const char *s;

    kit_task(&k, "NOP", "", "", "", "1>=1");
    kit_task(&k, "NOP", "", "", "", "");
    s = replace(kit_text(&k), "{\"id\": 1, \"init\": 0",
                "{\"id\": 1, \"init\": 1");
    t_ok(br_mega_load(&k.p, s, strlen(s), &k.st), &k.st);
    t_ok(br_mega_vm_new(&k.vm, k.p, NULL, &k.st), &k.st);
    t_ok(kit_run(&k), &k.st);
    order_is(&k, "0 1");
    kit_end(&k);
}

/* The last line of defence, below the checks that ops make themselves. */
TEST(vm_accessors_check_every_range)
{
    static const int64_t bad[][2] = {
        {-1, 1}, {0, 5}, {4, 1}, {3, 2}, {INT64_MAX, 2}, {0, -1}, {5, 0},
    };
    float data[4] = {0}, buf[8];
    br_vmt t = {.numel = 4,
                .row = 4,
                .rows = 1,
                .row_bytes = 16,
                .name = "t",
                .data = (unsigned char *)data,
                .kind = ACT};
    br_mega_task task = {.id = 0, .op = BR_MOP_COPY};
    br_status st = {0};
    br_vm_call c = {.task = &task, .n_in = 1, .n_out = 1, .st = &st};

    c.in[0] = &t;
    c.out[0] = &t;
    ck_assert_ptr_nonnull(br_vm_f32(&c, 0, 1, 3, buf));
    ck_assert_ptr_nonnull(br_vm_f32(&c, 0, 4, 0, buf));
    for (size_t i = 0; i < BR_COUNT(bad); i++) {
        st = (br_status){0};
        ck_assert_ptr_null(br_vm_f32(&c, 0, bad[i][0], bad[i][1], buf));
        st = (br_status){0};
        ck_assert_int_eq(br_vm_store(&c, bad[i][0], bad[i][1], buf),
                         BR_E_FORMAT);
        st = (br_status){0};
        ck_assert_int_eq(br_vm_move(&c, 0, 0, bad[i][0], bad[i][1]),
                         BR_E_FORMAT);
        st = (br_status){0};
        ck_assert_int_eq(br_vm_move(&c, 0, bad[i][0], 0, bad[i][1]),
                         BR_E_FORMAT);
    }
}

static br_code
run_with_oom(void *arg, br_status *st)
{
    const char *text = arg;
    static const float x[2] = {1, 2}, w[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    br_mega_value vx = {x, (int64_t[]){2}, 8, 1, F32};
    br_mega_value vw = {w, (int64_t[]){4, 2}, 32, 2, F32};
    br_mega_prog *p = NULL;
    br_mega_vm *vm = NULL;
    br_code code = br_mega_load(&p, text, strlen(text), st);

    if (code == BR_OK)
        code = br_mega_vm_new(&vm, p, NULL, st);
    if (code == BR_OK)
        code = br_mega_vm_bind(vm, 0, &vx, st);
    if (code == BR_OK)
        code = br_mega_vm_bind(vm, 5, &vw, st);
    if (code == BR_OK)
        code = br_mega_vm_adversarial(vm, 2, BR_MEGA_ORDER_SWEEP, 0, st);
    br_mega_vm_free(vm);
    br_mega_free(p);
    return code;
}

TEST(vm_survives_every_failed_allocation)
{
    kit k = {0};
    const char *text;

    page_program(&k, "0>=1", "1>=1");
    kit_task(&k, "FUSED", id(0), id(3),
             "\"recipe\": {\"steps\": [{\"op\": 1, \"args\": [{\"in\": 0}], "
             "\"out\": 0, \"out_dtype\": \"int8\"}, {\"op\": 1, \"args\": "
             "[{\"s\": 0}], \"out\": \"final\"}]}",
             "1>=1");
    text = kit_text(&k);
    t_each_oom(run_with_oom, t_printf("%s", text));
    kit_end(&k);
}

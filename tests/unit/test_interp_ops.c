/* test_interp_ops.c - every opcode on numbers small enough to do by hand.
 * SPDX-License-Identifier: Apache-2.0 */
#include "mega_kit.h"
#include "t.h"

#include <math.h>
#include <string.h>

#include "mega/interp_int.h"

enum { IN = BR_MBK_IO_INPUT, OUT = BR_MBK_IO_OUTPUT, F32 = BR_MDT_F32 };

/* One task: inputs x[0..n), one output; runs it. */
typedef struct one {
    kit k;
    int in[8], n, out;
} one;

typedef struct arg {
    int dtype;
    const char *shape;
    const double *v;
    size_t n;
} arg;

#define V(...)                     \
    (const double[]){__VA_ARGS__}, \
        sizeof((const double[]){__VA_ARGS__}) / sizeof(double)

static void
setup(one *o, const char *op, const char *params, const arg *args, int n,
      arg out)
{
    br_str ids = {0};

    memset(o, 0, sizeof *o);
    for (int i = 0; i < n; i++) {
        o->in[i] = kit_buf(&o->k, IN, args[i].dtype, args[i].shape);
        br_str_printf(&ids, "%s%d", i ? ", " : "", o->in[i]);
    }
    o->n = n;
    o->out = kit_buf(&o->k, OUT, out.dtype, out.shape);
    kit_task(&o->k, op, br_str_z(&ids), t_printf("%d", o->out), params, "");
    br_str_fini(&ids);
    kit_load(&o->k);
    for (int i = 0; i < n; i++)
        kit_bind(&o->k, o->in[i], args[i].v, args[i].n);
}

/* Runs and compares with out.v, exactly when tol is 0. */
static void
expect(const char *op, const char *params, const arg *args, int n, arg out,
       double tol)
{
    one o;

    setup(&o, op, params, args, n, out);
    t_ok(kit_run(&o.k), &o.k.st);
    ck_assert_uint_eq(kit_numel(&o.k, o.out), out.n);
    for (size_t i = 0; i < out.n; i++) {
        double got = kit_get(&o.k, o.out, i);

        ck_assert_msg(got == out.v[i] || fabs(got - out.v[i]) <= tol,
                      "%s: element %zu: %.9g, want %.9g", op, i, got, out.v[i]);
    }
    kit_end(&o.k);
}

/* Runs and wants an error that contains `says`. */
static void
refuse(const char *op, const char *params, const arg *args, int n, arg out,
       const char *says)
{
    one o;

    setup(&o, op, params, args, n, out);
    ck_assert_msg(kit_run(&o.k) != BR_OK, "%s %s: accepted", op, params);
    ck_assert_msg(strstr(o.k.st.msg, says) != NULL, "%s: says: %s", op,
                  o.k.st.msg);
    ck_assert_msg(strncmp(o.k.st.msg, "task 0 (", 8) == 0, "%s", o.k.st.msg);
    kit_end(&o.k);
}
#define ARGS(...) \
    (const arg[]){__VA_ARGS__}, (int)BR_COUNT(((const arg[]){__VA_ARGS__}))
#define OUT32(shape) ((arg){F32, shape, NULL, 0})

TEST(op_copy_moves_and_casts)
{
    expect("COPY", "", ARGS({F32, "2, 2", V(1, -2, 0.5, 3e38)}),
           (arg){F32, "2, 2", V(1, -2, 0.5, (double)3e38f)}, 1e31);
    /* float to integer: towards zero, as the reference's cast */
    expect("COPY", "", ARGS({F32, "4", V(1.75, -1.75, 2.5, -0.5)}),
           (arg){BR_MDT_I32, "4", V(1, -1, 2, 0)}, 0);
    expect("COPY", "", ARGS({BR_MDT_I32, "2", V(16777217, -2147483647)}),
           (arg){BR_MDT_I32, "2", V(16777217, -2147483647)}, 0);
    /* from I32 to F16 in one rounding: 4099 lies between 4096 and 4100 */
    expect("COPY", "", ARGS({BR_MDT_I32, "2", V(4099, 70000)}),
           (arg){BR_MDT_F16, "2", V(4100, (double)INFINITY)}, 0);
    expect("COPY", "", ARGS({F32, "3", V(1.00390625, 1.01171875, -1)}),
           (arg){BR_MDT_BF16, "3", V(1, 1.015625, -1)}, 0);
    expect("COPY", "", ARGS({F32, "3", V(0, 0.5, -3)}),
           (arg){BR_MDT_BOOL, "3", V(0, 1, 1)}, 0);
    expect("COPY", "", ARGS({F32, "3", V(7, 8, 9)}),
           (arg){F32, "2, 3", V(7, 8, 9, 7, 8, 9)}, 0);
    expect("COPY", "", ARGS({BR_MDT_I4, "2, 3", V(-8, 7, 1, 2, -3, 4)}),
           (arg){BR_MDT_I4, "2, 3", V(-8, 7, 1, 2, -3, 4)}, 0);
    refuse("COPY", "", ARGS({F32, "1", V(128)}), (arg){BR_MDT_I8, "1", NULL, 0},
           "128 does not fit I8");
    refuse("COPY", "", ARGS({F32, "1", V((double)NAN)}),
           (arg){BR_MDT_I32, "1", NULL, 0}, "does not fit I32");
    refuse("COPY", "", ARGS({F32, "2", V(1, 2)}), OUT32("3"), "spread");
}

TEST(op_embed_gathers_rows)
{
    static const double table[] = {1, 2, 3, 4, 5, 6};

    expect("EMBED", "\"hidden\": 2",
           ARGS({BR_MDT_I32, "3", V(2, 0, 2)}, {F32, "3, 2", table, 6}),
           (arg){F32, "3, 2", V(5, 6, 1, 2, 5, 6)}, 0);
    /* a reshape: hidden is the row of the output */
    expect("EMBED", "\"hidden\": 3",
           ARGS({BR_MDT_I32, "1", V(0)}, {F32, "1, 6", table, 6}),
           (arg){F32, "1, 2, 3", V(1, 2, 3, 4, 5, 6)}, 0);
    refuse("EMBED", "\"hidden\": 2",
           ARGS({BR_MDT_I32, "1", V(3)}, {F32, "3, 2", table, 6}),
           OUT32("1, 2"),
           "task 0 (EMBED): input 0 (buffer #0 'b0'): element 0 is 3, outside "
           "the 3 rows of input 1 (buffer #1 'b1')");
    refuse("EMBED", "\"hidden\": 2",
           ARGS({BR_MDT_I32, "1", V(-1)}, {F32, "3, 2", table, 6}),
           OUT32("1, 2"), "element 0 is -1, outside");
    refuse("EMBED", "\"hidden\": 2",
           ARGS({F32, "1", V(0.5)}, {F32, "3, 2", table, 6}), OUT32("1, 2"),
           "no integer: 0.5");
    refuse("EMBED", "\"hidden\": 4",
           ARGS({BR_MDT_I32, "1", V(0)}, {F32, "3, 2", table, 6}),
           OUT32("1, 2"), "hidden 4");
    refuse("EMBED", "", ARGS({BR_MDT_I32, "1", V(0)}, {F32, "3, 2", table, 6}),
           OUT32("1, 2"), "missing param 'hidden'");
    refuse("EMBED", "\"hidden\": 2",
           ARGS({BR_MDT_I32, "2", V(0, 1)}, {F32, "3, 2", table, 6}),
           OUT32("1, 2"), "do not fill");
}

TEST(op_rmsnorm)
{
    /* rows (3, 4): mean square 12.5; eps 12.5 makes the root 5 */
    expect("RMSNORM", "\"eps\": 12.5, \"hidden\": 2",
           ARGS({F32, "2, 2", V(3, 4, 0, 5)}, {F32, "2", V(1, 10)}),
           (arg){F32, "2, 2", V(0.6, 8, 0, 10)}, 1e-6);
    refuse("RMSNORM", "\"eps\": 1, \"hidden\": 3",
           ARGS({F32, "1, 2", V(3, 4)}, {F32, "2", V(1, 1)}), OUT32("1, 2"),
           "has rows of 2, hidden is 3");
    refuse("RMSNORM", "\"eps\": 1, \"hidden\": 2",
           ARGS({F32, "1, 2", V(3, 4)}, {F32, "3", V(1, 1, 1)}), OUT32("1, 2"),
           "has 3 elements, hidden is 2");
    refuse("RMSNORM", "\"eps\": \"x\", \"hidden\": 2",
           ARGS({F32, "1, 2", V(3, 4)}, {F32, "2", V(1, 1)}), OUT32("1, 2"),
           "param 'eps' is not a real number");
    refuse("RMSNORM", "\"eps\": 1, \"hidden\": 2", ARGS({F32, "1, 2", V(3, 4)}),
           OUT32("1, 2"), "1 inputs and 1 outputs, expected 2..2 and 1");
}

TEST(op_layernorm_with_and_without_bias)
{
    /* (1, 3): mean 2, variance 1, eps 3: half of (-1, 1) */
    expect("LAYERNORM", "\"eps\": 3, \"hidden\": 2",
           ARGS({F32, "1, 2", V(1, 3)}, {F32, "2", V(2, 4)}),
           (arg){F32, "1, 2", V(-1, 2)}, 0);
    expect("LAYERNORM", "\"eps\": 3, \"hidden\": 2",
           ARGS({F32, "1, 2", V(1, 3)}, {F32, "2", V(2, 4)},
                {F32, "2", V(10, 20)}),
           (arg){F32, "1, 2", V(9, 22)}, 0);
}

TEST(op_gemv_writes_its_columns_only)
{
    static const double w[] = {1, 0, 0, 1, 1, 1, 2, 3};
    kit k = {0};
    int x = kit_buf(&k, IN, F32, "1, 2"), m = kit_buf(&k, IN, F32, "4, 2");
    int b = kit_buf(&k, IN, F32, "4");
    int y = kit_buf(&k, BR_MBK_ACTIVATION, F32, "1, 4");

    kit_task(&k, "GEMV_TILE", t_printf("%d, %d, %d", x, m, b),
             t_printf("%d", y), "\"K\": 2, \"N_tile\": 2, \"n_off\": 1", "");
    kit_load(&k);
    kit_bind(&k, x, V(5, 7));
    kit_bind(&k, m, w, 8);
    kit_bind(&k, b, V(100, 200, 300, 400));
    t_ok(kit_run(&k), &k.st);
    ck_assert_double_eq(kit_get(&k, y, 1), 207);
    ck_assert_double_eq(kit_get(&k, y, 2), 312);
    ck_assert_int_eq(br_mega_vm_written(k.vm, y), false);
    kit_end(&k);
}

TEST(op_gemv_bounds)
{
    static const char *const bad[][2] = {
        {"\"K\": 2, \"N_tile\": 2, \"n_off\": 3", "columns 3..4"},
        {"\"K\": 2, \"N_tile\": 2, \"n_off\": -1", "columns -1..0"},
        {"\"K\": 2, \"N_tile\": 0, \"n_off\": 0", "columns 0..-1"},
        {"\"K\": 2, \"N_tile\": 2147483647, \"n_off\": 2147483647", "columns"},
        {"\"K\": 3, \"N_tile\": 1, \"n_off\": 0", "K is 3"},
        {"\"K\": -2, \"N_tile\": 1, \"n_off\": 0", "K is -2"},
        {"\"K\": 2147483648, \"N_tile\": 1, \"n_off\": 0", "not an int32"},
        {"\"K\": true, \"N_tile\": 1, \"n_off\": 0", "not an int32"},
        {"\"N_tile\": 1, \"n_off\": 0", "missing param 'K'"},
    };

    for (size_t i = 0; i < BR_COUNT(bad); i++)
        refuse("GEMV_TILE", bad[i][0],
               ARGS({F32, "1, 2", V(5, 7)},
                    {F32, "4, 2", V(1, 2, 3, 4, 5, 6, 7, 8)}),
               OUT32("1, 4"), bad[i][1]);
    refuse(
        "GEMV_TILE", "\"K\": 2, \"N_tile\": 4, \"n_off\": 0",
        ARGS({F32, "1, 2", V(5, 7)}, {F32, "4, 2", V(1, 2, 3, 4, 5, 6, 7, 8)}),
        OUT32("1, 3"), "columns 0..3");
    refuse("GEMV_TILE", "\"K\": 2, \"N_tile\": 4, \"n_off\": 0",
           ARGS({F32, "2, 2", V(5, 7, 1, 1)},
                {F32, "4, 2", V(1, 2, 3, 4, 5, 6, 7, 8)}),
           OUT32("1, 4"), "2 rows into the 1");
}

TEST(op_gemm_rows)
{
    static const double w[] = {1, 0, 0, 1};

    expect("GEMM_TILE", "\"M_tile\": 2, \"K\": 2, \"N_tile\": 2, \"n_off\": 0",
           ARGS({F32, "2, 2", V(1, 2, 3, 4)}, {F32, "2, 2", w, 4}),
           (arg){F32, "2, 2", V(1, 2, 3, 4)}, 0);
    /* M_tile without m_off: all rows, as the reference */
    expect("GEMM_TILE", "\"M_tile\": 1, \"K\": 2, \"N_tile\": 2, \"n_off\": 0",
           ARGS({F32, "2, 2", V(1, 2, 3, 4)}, {F32, "2, 2", w, 4}),
           (arg){F32, "2, 2", V(1, 2, 3, 4)}, 0);
    refuse("GEMM_TILE",
           "\"M_tile\": 1, \"K\": 2, \"N_tile\": 2, \"n_off\": 0, \"m_off\": 2",
           ARGS({F32, "2, 2", V(1, 2, 3, 4)}, {F32, "2, 2", w, 4}),
           OUT32("2, 2"), "rows 2..2");
    /* m_off: one row of two, so the output stays unwritten in part */
    refuse("GEMM_TILE",
           "\"M_tile\": 3, \"K\": 2, \"N_tile\": 2, \"n_off\": 0, \"m_off\": 0",
           ARGS({F32, "2, 2", V(1, 2, 3, 4)}, {F32, "2, 2", w, 4}),
           OUT32("2, 2"), "rows 0..2");
}

TEST(op_gemm_m_off_leaves_other_rows)
{
    kit k = {0};
    int x = kit_buf(&k, IN, F32, "2, 2"), w = kit_buf(&k, IN, F32, "2, 2");
    int y = kit_buf(&k, OUT, F32, "2, 2");
    const char *in = t_printf("%d, %d", x, w), *out = t_printf("%d", y);
    const char *par = "\"M_tile\": 1, \"K\": 2, \"N_tile\": 2, \"n_off\": 0, "
                      "\"m_off\": ";

    kit_task(&k, "GEMM_TILE", in, out, t_printf("%s1", par), "");
    kit_load(&k);
    kit_bind(&k, x, V(1, 2, 3, 4));
    kit_bind(&k, w, V(0, 1, 1, 0));
    ck_assert_int_eq(kit_run(&k), BR_E_REJECTED);
    ck_assert_str_eq(
        k.st.msg, "IO_OUTPUT buffer #2 ('b2'): nobody has written element 0");
    ck_assert_double_eq(kit_get(&k, y, 2), 4);
    ck_assert_double_eq(kit_get(&k, y, 3), 3);
    kit_end(&k);
}

TEST(op_gemv_quantised)
{
    /* int8: groups of 2 with scales 0.5 and 2 */
    expect("GEMV_TILE",
           "\"K\": 3, \"N_tile\": 1, \"n_off\": 0, \"qdtype\": 6, \"group\": 2",
           ARGS({F32, "1, 3", V(1, 1, 1)}, {BR_MDT_I8, "1, 3", V(-128, 2, 3)},
                {BR_MDT_F16, "1, 2", V(0.5, 2)}),
           (arg){F32, "1, 1", V(-57)}, 0);
    /* int4: odd columns, so the last byte of a row is half used */
    expect("GEMV_TILE",
           "\"K\": 3, \"N_tile\": 2, \"n_off\": 0, \"qdtype\": 7, \"group\": 2",
           ARGS({F32, "1, 3", V(1, 10, 100)},
                {BR_MDT_I4, "2, 3", V(-8, 7, 1, 2, 3, -4)},
                {F32, "2, 2", V(1, 1, 1, 2)}),
           (arg){F32, "1, 2", V(162, 32 - 800)}, 0);
    /* the same from bytes: nibbles are q + 8 */
    expect("GEMV_TILE",
           "\"K\": 3, \"N_tile\": 2, \"n_off\": 0, \"qdtype\": 7, \"group\": 2",
           ARGS({F32, "1, 3", V(1, 10, 100)},
                {BR_MDT_U8, "2, 2", V(0xf0, 0x09, 0xba, 0x04)},
                {F32, "2, 2", V(1, 1, 1, 2)}),
           (arg){F32, "1, 2", V(162, 32 - 800)}, 0);
    refuse("GEMV_TILE",
           "\"K\": 3, \"N_tile\": 1, \"n_off\": 0, \"qdtype\": 6, \"group\": 2",
           ARGS({F32, "1, 3", V(1, 1, 1)}, {BR_MDT_I8, "1, 3", V(1, 2, 3)},
                {BR_MDT_F16, "1, 3", V(0.5, 2, 1)}),
           OUT32("1, 1"), "is [1, 3], not [1, 2]");
    refuse("GEMV_TILE",
           "\"K\": 3, \"N_tile\": 1, \"n_off\": 0, \"qdtype\": 7, \"group\": 2",
           ARGS({F32, "1, 3", V(1, 1, 1)}, {BR_MDT_I8, "1, 3", V(1, 2, 3)},
                {BR_MDT_F16, "1, 2", V(0.5, 2)}),
           OUT32("1, 1"), "is I8, qdtype says I4");
    refuse("GEMV_TILE",
           "\"K\": 3, \"N_tile\": 1, \"n_off\": 0, \"qdtype\": 6, \"group\": 0",
           ARGS({F32, "1, 3", V(1, 1, 1)}, {BR_MDT_I8, "1, 3", V(1, 2, 3)},
                {BR_MDT_F16, "1, 2", V(0.5, 2)}),
           OUT32("1, 1"), "group is 0");
}

TEST(op_dequant)
{
    expect(
        "DEQUANT", "\"qdtype\": 6, \"group\": 2",
        ARGS({BR_MDT_I8, "1, 4", V(-127, 2, 3, 4)}, {F32, "1, 2", V(0.5, 2)}),
        (arg){F32, "1, 4", V(-63.5, 1, 6, 8)}, 0);
    expect("DEQUANT", "\"qdtype\": 7, \"group\": 2",
           ARGS({BR_MDT_I4, "2, 2", V(-8, 7, 3, -4)}, {F32, "2, 1", V(0.5, 2)},
                {F32, "2, 1", V(1, -1)}),
           (arg){F32, "2, 2", V(-4.5, 3, 8, -6)}, 0);
    refuse("DEQUANT", "\"qdtype\": 6, \"group\": 3",
           ARGS({BR_MDT_I8, "1, 4", V(1, 2, 3, 4)}, {F32, "1, 2", V(1, 2)}),
           OUT32("1, 4"), "group 3, rows of 4");
    refuse("DEQUANT", "\"qdtype\": 6, \"group\": 2",
           ARGS({BR_MDT_I8, "1, 4", V(1, 2, 3, 4)}, {F32, "1, 1", V(1)}),
           OUT32("1, 4"), "1 elements, not 2");
}

TEST(op_rope_turns_halves)
{
    double c = cos(1), s = sin(1), c2 = cos(0.01), s2 = sin(0.01);

    /* head_dim 4, theta 10^4: frequencies 1 and 0.01 */
    expect("ROPE", "\"head_dim\": 4, \"theta\": 10000",
           ARGS({F32, "1, 4", V(1, 2, 3, 4)}, {BR_MDT_I32, "1", V(1)}),
           (arg){F32, "1, 4",
                 V(c - 3 * s, 2 * c2 - 4 * s2, 3 * c + s, 4 * c2 + 2 * s2)},
           1e-6);
    /* a position per row; heads of a row share it */
    expect("ROPE", "\"head_dim\": 2, \"theta\": 10000",
           ARGS({F32, "2, 2, 2", V(1, 0, 0, 1, 1, 0, 0, 1)},
                {BR_MDT_I32, "2", V(0, 1)}),
           (arg){F32, "2, 2, 2", V(1, 0, 0, 1, c, s, -s, c)}, 1e-7);
    refuse("ROPE", "\"head_dim\": 3, \"theta\": 10000",
           ARGS({F32, "1, 3", V(1, 2, 3)}, {BR_MDT_I32, "1", V(1)}),
           OUT32("1, 3"), "heads of head_dim 3");
    refuse("ROPE", "\"head_dim\": 2, \"theta\": 10000",
           ARGS({F32, "2, 1, 2", V(1, 2, 3, 4)}, {BR_MDT_I32, "1", V(1)}),
           OUT32("2, 1, 2"), "1 positions for 2 rows");
}

TEST(op_elementwise)
{
    double e = exp(1);

    expect("SILU_MUL", "",
           ARGS({F32, "3", V(0, 1, -1)}, {F32, "3", V(5, 2, 3)}),
           (arg){F32, "3", V(0, 2 * e / (e + 1), -3 / (e + 1))}, 1e-6);
    expect("GELU", "", ARGS({F32, "3", V(0, 1, -1)}),
           (arg){F32, "3", V(0, 0.8413447460685429, -0.15865525393145707)},
           1e-7);
    expect("ADD", "", ARGS({F32, "2", V(1, 2)}, {F32, "2", V(10, 20)}),
           (arg){F32, "2", V(11, 22)}, 0);
    /* in f32: 2^24 + 1 is not there */
    expect("ADD", "", ARGS({F32, "1", V(16777216)}, {F32, "1", V(1)}),
           (arg){F32, "1", V(16777216)}, 0);
    expect("ADD", "", ARGS({F32, "2, 2", V(1, 2, 3, 4)}, {F32, "2", V(10, 20)}),
           (arg){F32, "2, 2", V(11, 22, 13, 24)}, 0);
    expect("ADD", "",
           ARGS({F32, "2, 1", V(1, 2)}, {F32, "1, 3", V(10, 20, 30)}),
           (arg){F32, "2, 3", V(11, 21, 31, 12, 22, 32)}, 0);
    expect("MUL", "", ARGS({F32, "2", V(3, 4)}, {F32, "2", V(10, 0.5)}),
           (arg){F32, "2", V(30, 2)}, 0);
    expect("MUL", "\"scale\": 0.25", ARGS({F32, "2", V(3, 4)}),
           (arg){F32, "2", V(0.75, 1)}, 0);
    expect("MUL", "\"scale\": 3", ARGS({F32, "1", V(3)}),
           (arg){BR_MDT_I8, "1", V(9)}, 0);
    expect("MUL", "", ARGS({F32, "1", V(3)}), (arg){F32, "1", V(3)}, 0);
    refuse("ADD", "", ARGS({F32, "2", V(1, 2)}, {F32, "3", V(1, 2, 3)}),
           OUT32("2"), "input 1 (buffer #1 'b1') does not spread");
    refuse("ADD", "",
           ARGS({F32, "2, 3", V(1, 2, 3, 4, 5, 6)},
                {F32, "2, 3", V(1, 2, 3, 4, 5, 6)}),
           OUT32("3, 2"), "does not spread");
}

TEST(op_softmax_over_each_dimension)
{
    double e = exp(1), a = 1 / (1 + e), b = e / (1 + e);

    expect("SOFTMAX", "", ARGS({F32, "2, 2", V(0, 1, 5, 5)}),
           (arg){F32, "2, 2", V(a, b, 0.5, 0.5)}, 1e-7);
    expect("SOFTMAX", "\"dim\": 0", ARGS({F32, "2, 2", V(0, 5, 1, 5)}),
           (arg){F32, "2, 2", V(a, 0.5, b, 0.5)}, 1e-7);
    expect("SOFTMAX", "\"dim\": -2", ARGS({F32, "2, 2", V(0, 5, 1, 5)}),
           (arg){F32, "2, 2", V(a, 0.5, b, 0.5)}, 1e-7);
    expect("SOFTMAX", "\"dim\": 1", ARGS({F32, "1, 2, 2", V(1000, 0, 1001, 0)}),
           (arg){F32, "1, 2, 2", V(a, 0.5, b, 0.5)}, 1e-7);
    refuse("SOFTMAX", "\"dim\": 2", ARGS({F32, "2, 2", V(0, 5, 1, 5)}),
           OUT32("2, 2"), "dim 2 of a tensor of rank 2");
    refuse("SOFTMAX", "\"dim\": -3", ARGS({F32, "2, 2", V(0, 5, 1, 5)}),
           OUT32("2, 2"), "dim -3");
}

TEST(op_allreduce_sums_in_order)
{
    expect("ALLREDUCE_SHARD", "", ARGS({F32, "2", V(1, 2)}),
           (arg){F32, "2", V(1, 2)}, 0);
    /* (2^24 + 1) + 1 loses both ones; 1 + 1 first would not */
    expect("ALLREDUCE_SHARD", "",
           ARGS({F32, "1", V(16777216)}, {F32, "1", V(1)}, {F32, "1", V(1)}),
           (arg){F32, "1", V(16777216)}, 0);
    refuse("ALLREDUCE_SHARD", "", ARGS({F32, "2", V(1, 2)}, {F32, "1", V(1)}),
           OUT32("2"), "has 1 elements, the output 2");
}

TEST(op_argmax_takes_the_lowest_of_ties)
{
    expect("SAMPLE_ARGMAX", "",
           ARGS({F32, "3, 3", V(1, 3, 3, -1, -2, -3, 0, (double)NAN, 9)}),
           (arg){BR_MDT_I32, "3", V(1, 0, 1)}, 0);
    refuse("SAMPLE_ARGMAX", "", ARGS({F32, "2, 2", V(1, 2, 3, 4)}),
           (arg){BR_MDT_I32, "1", NULL, 0}, "2 rows of 2 logits for 1 tokens");
}

static void
append(const char *rows, const char *cache, const char *pos, const double *x,
       const double *want, size_t n_want)
{
    const char *says = want ? "" : n_want ? "exceed" : "";

    kit k = {0};
    int a = kit_buf(&k, IN, F32, rows);
    int c = kit_buf(&k, BR_MBK_KV_CACHE, F32, cache);

    kit_task(&k, "KV_APPEND", t_printf("%d, %d", a, c), t_printf("%d", c),
             t_printf("\"pos\": %s", pos), "");
    kit_load(&k);
    kit_bind(&k, a, x, kit_numel(&k, a));
    if (want) {
        t_ok(kit_run(&k), &k.st);
        for (size_t i = 0; i < n_want; i++)
            ck_assert_double_eq(kit_get(&k, c, i), want[i]);
    } else {
        ck_assert_int_eq(kit_run(&k), BR_E_FORMAT);
        ck_assert_msg(strstr(k.st.msg, says) != NULL, "says: %s", k.st.msg);
    }
    kit_end(&k);
}

TEST(op_kv_append)
{
    static const double x[] = {1, 2, 3, 4, 5, 6, 7, 8};

    append("1, 1, 2", "3, 1, 2", "2", x, V(0, 0, 0, 0, 1, 2));
    append("1, 2", "3, 1, 2", "0", x, V(1, 2, 0, 0, 0, 0));
    append("2, 1, 2", "3, 1, 2", "1", x, V(0, 0, 1, 2, 3, 4));
    append("2, 2", "2, 2, 1, 2", "1", x, V(0, 0, 1, 2, 0, 0, 3, 4));
    append("1, 1, 2", "3, 1, 2", "3", x, NULL, 1);
    append("1, 1, 2", "3, 1, 2", "-1", x, NULL, 1);
    append("2, 1, 2", "3, 1, 2", "2", x, NULL, 1);
    append("2, 2", "2, 2, 1, 2", "2", x, NULL, 1); /* not the next sequence */
    append("1, 3", "3, 1, 2", "0", x, NULL, 0);
    append("1, 2", "6", "0", x, NULL, 0);
    append("1, 2", "3, 0", "0", x, NULL, 0);
}

TEST(op_kv_append_names_one_cache)
{
    kit k = {0};
    int a = kit_buf(&k, IN, F32, "1, 2");
    int c = kit_buf(&k, BR_MBK_KV_CACHE, F32, "3, 2");
    int d = kit_buf(&k, BR_MBK_KV_CACHE, F32, "3, 2");

    kit_task(&k, "KV_APPEND", t_printf("%d, %d", a, c), t_printf("%d", d),
             "\"pos\": 0", "");
    kit_load(&k);
    kit_bind(&k, a, V(1, 2));
    ck_assert_int_eq(kit_run(&k), BR_E_FORMAT);
    ck_assert_ptr_nonnull(strstr(k.st.msg, "is not the cache that it writes"));
    kit_end(&k);
}

#define ATT(start, len, more)                                    \
    "\"head_dim\": 2, \"kv_start\": " start ", \"kv_len\": " len \
    ", \"scale\": 1, \"n_heads\": 2, \"n_kv_heads\": 1" more

TEST(op_attention_over_a_window)
{
    /* key 0 is out of the window; head 0 sees scores 1 and 0 */
    static const double k[] = {9, 9, 1, 0, 0, 1};
    static const double v[] = {99, 99, 10, 20, 30, 40};
    double e = exp(1), p = e / (1 + e), r = 1 / (1 + e);

    expect("ATTENTION_TILE", ATT("1", "2", ""),
           ARGS({F32, "2, 2", V(1, 0, 0, 0)}, {F32, "3, 1, 2", k, 6},
                {F32, "3, 1, 2", v, 6}),
           (arg){F32, "1, 4", V(10 * p + 30 * r, 20 * p + 40 * r, 20, 30)},
           1e-5);
    expect("ATTENTION_TILE", ATT("1", "2", ", \"flags\": 2"),
           ARGS({F32, "2, 2", V(1, 0, 0, 0)}, {F32, "3, 1, 2", k, 6},
                {F32, "3, 1, 2", v, 6}),
           (arg){F32, "2, 4",
                 V(10 + 30 / e, 20 + 40 / e, 1, 1 + 1 / e, 40, 60, 0, 2)},
           1e-5);
    expect("ATTENTION_TILE", ATT("1", "0", ", \"flags\": 2"),
           ARGS({F32, "2, 2", V(1, 0, 0, 0)}, {F32, "3, 1, 2", k, 6},
                {F32, "3, 1, 2", v, 6}),
           (arg){F32, "2, 4",
                 V(0, 0, -(double)INFINITY, 0, 0, 0, -(double)INFINITY, 0)},
           0);
    refuse("ATTENTION_TILE", ATT("1", "3", ""),
           ARGS({F32, "2, 2", V(1, 0, 0, 0)}, {F32, "3, 1, 2", k, 6},
                {F32, "3, 1, 2", v, 6}),
           OUT32("1, 4"), "keys 1 + 3 exceed the 3");
    refuse("ATTENTION_TILE", ATT("-1", "2", ""),
           ARGS({F32, "2, 2", V(1, 0, 0, 0)}, {F32, "3, 1, 2", k, 6},
                {F32, "3, 1, 2", v, 6}),
           OUT32("1, 4"), "keys -1 + 2");
    refuse("ATTENTION_TILE", ATT("0", "1", ", \"flags\": 2"),
           ARGS({F32, "2, 2", V(1, 0, 0, 0)}, {F32, "3, 1, 2", k, 6},
                {F32, "3, 1, 2", v, 6}),
           OUT32("1, 4"), "do not fit");
}

/* The caches of keys and values need not be of one length. */
TEST(op_attention_caches_of_two_lengths)
{
    expect("ATTENTION_TILE",
           "\"head_dim\": 1, \"kv_start\": 1, \"kv_len\": 1, \"scale\": 1, "
           "\"n_heads\": 1, \"n_kv_heads\": 1",
           ARGS({F32, "2, 1, 1", V(1, 2)}, {F32, "2, 2, 1, 1", V(0, 1, 0, 1)},
                {F32, "2, 3, 1, 1", V(91, 5, 92, 93, 6, 94)}),
           (arg){F32, "2, 1", V(5, 6)}, 0);
    refuse("ATTENTION_TILE",
           "\"head_dim\": 1, \"kv_start\": 1, \"kv_len\": 1, \"scale\": 1, "
           "\"n_heads\": 1, \"n_kv_heads\": 1",
           ARGS({F32, "1, 1", V(1)}, {F32, "2, 1, 1", V(0, 1)},
                {F32, "1, 1, 1", V(5)}),
           OUT32("1, 1"), "keys 1 + 1 exceed the 1 of input 2");
    refuse("ATTENTION_TILE",
           "\"head_dim\": 1, \"kv_start\": 0, \"kv_len\": 1, \"scale\": 1, "
           "\"n_heads\": 1, \"n_kv_heads\": 1",
           ARGS({F32, "2, 1, 1", V(1, 2)}, {F32, "2, 2, 1, 1", V(0, 1, 0, 1)},
                {F32, "1, 2, 1, 1", V(5, 6)}),
           OUT32("2, 1"), "input 2 (buffer #2 'b2') is not of 1 heads");
}

TEST(op_attention_groups_and_batches)
{
    /* 2 sequences, 2 heads on 2 kv heads of 1: one key each, so out = v */
    expect("ATTENTION_TILE",
           "\"head_dim\": 1, \"kv_start\": 1, \"kv_len\": 1, \"scale\": 1, "
           "\"n_heads\": 4, \"n_kv_heads\": 2",
           ARGS({F32, "2, 4, 1", V(1, 2, 3, 4, 5, 6, 7, 8)},
                {F32, "2, 2, 2, 1", V(0, 0, 1, 1, 0, 0, 1, 1)},
                {F32, "2, 2, 2, 1", V(91, 92, 1, 2, 93, 94, 3, 4)}),
           (arg){F32, "2, 4", V(1, 1, 2, 2, 3, 3, 4, 4)}, 0);
    refuse("ATTENTION_TILE",
           "\"head_dim\": 1, \"kv_start\": 0, \"kv_len\": 1, \"scale\": 1, "
           "\"n_heads\": 3, \"n_kv_heads\": 2",
           ARGS({F32, "3, 1", V(1, 2, 3)}, {F32, "1, 2, 1", V(0, 0)},
                {F32, "1, 2, 1", V(0, 0)}),
           OUT32("1, 3"), "3 heads of 1 on 2 kv heads");
}

TEST(op_combine_merges_partials)
{
    double e = exp(1), inf = (double)INFINITY;

    /* maxima 1 and 0: the second weighs exp(-1) */
    expect("ATTENTION_COMBINE", "\"head_dim\": 1",
           ARGS({F32, "1, 3", V(10, 1, 2)}, {F32, "1, 3", V(30, 0, 1)}),
           (arg){F32, "1, 1", V((10 + 30 / e) / (2 + 1 / e))}, 1e-6);
    /* a part without keys weighs nothing; head_dim from the sizes */
    expect("ATTENTION_COMBINE", "",
           ARGS({F32, "2, 3", V(10, 1, 2, 7, 0, 7)},
                {F32, "2, 3", V(0, -inf, 0, 0, -inf, 0)}),
           (arg){F32, "1, 2", V(5, 1)}, 0);
    expect("ATTENTION_COMBINE", "\"head_dim\": 1",
           ARGS({F32, "1, 3", V(0, -inf, 0)}, {F32, "1, 3", V(0, -inf, 0)}),
           (arg){F32, "1, 1", V(0)}, 0);
    refuse("ATTENTION_COMBINE", "\"head_dim\": 2",
           ARGS({F32, "1, 3", V(10, 1, 2)}, {F32, "1, 3", V(30, 0, 1)}),
           OUT32("1, 1"), "is no partial");
}

#define STEP(op, args, out) \
    "{\"op\": " op ", \"args\": [" args "], \"out\": " out
#define RECIPE(steps) "\"recipe\": {\"steps\": [" steps "]}"

TEST(op_fused_runs_its_recipe)
{
    /* (a + b) in int8 scratch, then times 0.5 */
    expect("FUSED",
           RECIPE(STEP("11", "{\"in\": 0}, {\"in\": 1}",
                       "0") ", \"out_dtype\": \"int8\", \"out_shape\": "
                            "[2]}, " STEP("12", "{\"s\": 0}",
                                          "\"final\"") ", \"params\": "
                                                       "{\"scale\": 0.5}}"),
           ARGS({F32, "2", V(1.25, -3)}, {F32, "2", V(2.5, -4)}),
           (arg){F32, "2", V(1.5, -3.5)}, 0);
    /* scratch takes shape and dtype of the first argument; -1 is the output;
     * float64 keeps what f32 would round */
    expect("FUSED",
           RECIPE(STEP("1", "{\"in\": 0}", "3") "}, " STEP(
               "1", "{\"s\": 3}",
               "3") ", \"out_dtype\": \"float64\"}, " STEP("1", "{\"s\": 3}",
                                                           "-1") "}"),
           ARGS({BR_MDT_I32, "1", V(16777217)}),
           (arg){BR_MDT_I32, "1", V(16777217)}, 0);
    /* a scratch written again is the new one */
    expect(
        "FUSED",
        RECIPE(STEP("1", "{\"in\": 0}", "0") "}, " STEP(
            "11", "{\"s\": 0}, {\"in\": 0}",
            "0") "}, " STEP("11", "{\"s\": 0}, {\"in\": 0}", "\"final\"") "}"),
        ARGS({F32, "1", V(5)}), (arg){F32, "1", V(15)}, 0);
}

TEST(op_fused_refuses_bad_recipes)
{
    static const char *const bad[][2] = {
        {"", "missing"},
        {"\"recipe\": []", "no list of steps"},
        {RECIPE(""), "no list of steps"},
        {RECIPE("1"), "step 0): not an object"},
        {RECIPE(STEP("19", "{\"in\": 0}", "\"final\"") "}"), "nest"},
        {RECIPE(STEP("20", "{\"in\": 0}", "\"final\"") "}"), "opcode"},
        {RECIPE(STEP("\"ADD\"", "{\"in\": 0}", "\"final\"") "}"), "opcode"},
        {RECIPE(STEP("1", "{\"in\": 1}", "\"final\"") "}"), "arg 0"},
        {RECIPE(STEP("1", "{\"in\": -1}", "\"final\"") "}"), "arg 0"},
        {RECIPE(STEP("1", "{\"s\": 0}", "\"final\"") "}"), "arg 0"},
        {RECIPE(STEP("1", "{\"x\": 0}", "\"final\"") "}"), "arg 0"},
        {RECIPE(STEP("1", "{\"in\": 0, \"s\": 0}", "\"final\"") "}"), "arg 0"},
        {RECIPE(STEP("1", "{\"in\": 0}", "\"last\"") "}"), "out is not"},
        {RECIPE(STEP("1", "{\"in\": 0}", "-2") "}"), "out is not"},
        {RECIPE(STEP("1", "{\"in\": 0}", "0") "}"), "never writes its final"},
        {RECIPE(STEP("1", "{\"in\": 0}", "0") ", \"out_dtype\": \"float8\"}"),
         "out_dtype"},
        {RECIPE(STEP("1", "{\"in\": 0}", "0") ", \"out_shape\": [-1]}"),
         "not possible"},
        {RECIPE(STEP("1", "{\"in\": 0}",
                     "0") ", \"out_shape\": [1000000000, 1000000000]}"),
         "not possible"},
        {RECIPE(
             STEP("1", "{\"in\": 0}", "0") ", \"out_shape\": [1, 1, 1, 1, 1]}"),
         "out_shape"},
        {RECIPE(STEP("11", "{\"in\": 0}", "\"final\"") "}"), "expected 2..2"},
        {RECIPE(STEP("12", "{\"in\": 0}", "\"final\"") ", \"params\": [1]}"),
         "params is not"},
        {RECIPE(STEP("0", "", "0") "}"), "without args"},
    };

    for (size_t i = 0; i < BR_COUNT(bad); i++)
        refuse("FUSED", bad[i][0], ARGS({F32, "2", V(1, 2)}), OUT32("2"),
               i ? bad[i][1] : "recipe.steps");
}

/* The order of additions is part of the contract: lanes by index mod 16,
 * joined 8-4-2-1, and fused in the dot product. */
TEST(op_sums_keep_their_order)
{
    uint64_t seed = 3;
    float a[100], b[100], dot[16], sum[16];

    for (int n = 0; n <= 100; n++) {
        for (int i = 0; i < n; i++) {
            a[i] = (float)((double)(int64_t)t_rand(&seed) / 1e18);
            b[i] = (float)((double)(int64_t)t_rand(&seed) / 1e18);
        }
        memset(dot, 0, sizeof dot);
        memset(sum, 0, sizeof sum);
        for (int i = 0; i < n; i++) {
            dot[i % 16] = fmaf(a[i], b[i], dot[i % 16]);
            sum[i % 16] += a[i];
        }
        for (int w = 8; w; w /= 2)
            for (int i = 0; i < w; i++) {
                dot[i] += dot[i + w];
                sum[i] += sum[i + w];
            }
        dot[1] = br_vm_dot(a, b, n);
        sum[1] = br_vm_sum(a, n);
        ck_assert_mem_eq(dot, dot + 1, 4);
        ck_assert_mem_eq(sum, sum + 1, 4);
    }
}

TEST(op_documents_name_every_opcode)
{
    const char *text = t_read(t_repo("docs/opcodes.md"), NULL);

#define X(name, code, lo, hi, out, req, doc) \
    ck_assert_ptr_nonnull(strstr(text, "| " #name " (" #code ") |"));
#include "mega/minst.def"
#undef X
}

/* test_requant.c - models into other formats: which tensor gets what, and that
 * each row is what the encoder makes of it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "t.h"

#include "model/gguf_write.h"
#include "model/quant.h"
#include "model/requant.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- a small model ------------------------------------------------------ */

enum { LAYERS = 2, WIDTH = 256, ROWS = 8, EXPERTS = 2 };

typedef struct made {
    br_gguf_writer *w;
    br_str data;
    uint64_t seed;
} made;

static void
add(made *m, const char *name, int type, const uint64_t *dim, uint32_t n_dims)
{
    br_gguf_w_info info = {br_text_z(name), type, n_dims, {0}};
    size_t n = 1;
    uint64_t bytes;
    float *x;
    char *p;

    for (uint32_t d = 0; d < n_dims; d++)
        n *= (size_t)(info.dim[d] = dim[d]);
    x = malloc(n * sizeof *x);
    for (size_t i = 0; i < n; i++)
        x[i] = (float)(int32_t)t_rand(&m->seed) * 0x1p-31f;
    ck_assert(br_qtype_bytes(type, n, &bytes));
    p = malloc(bytes);
    for (size_t i = 0; i < n; i += dim[0]) /* row by row */
        ck_assert(br_quant(type, x + i, p + bytes * i / n, dim[0], NULL));
    br_str_put(&m->data, p, bytes);
    br_gguf_w_tensor(m->w, &info);
    free(x);
    free(p);
}

/* type: of the matrices. */
static char *
make_model(int type)
{
    char *path = t_printf("%s/in-%d.gguf", t_tmpdir(), type);
    const uint64_t mat[] = {WIDTH, ROWS}, odd[] = {48, ROWS};
    const uint64_t exps[] = {WIDTH, ROWS, EXPERTS}, head[] = {WIDTH, 12};
    made m = {.w = br_gguf_w_new(), .seed = 5};
    br_status st = {0};

    br_gguf_w_str(m.w, "general.architecture", BR_TEXT("llama"));
    add(&m, "token_embd.weight", type, head, 2);
    add(&m, "output.weight", type, head, 2);
    add(&m, "output_norm.weight", BR_Q_F16, mat, 1);
    for (int i = 0; i < LAYERS; i++) {
        add(&m, t_printf("blk.%d.attn_q.weight", i), type, mat, 2);
        add(&m, t_printf("blk.%d.attn_v.weight", i), type, mat, 2);
        add(&m, t_printf("blk.%d.attn_q.bias", i), BR_Q_F32, mat, 1);
        add(&m, t_printf("blk.%d.ffn_down.weight", i), BR_Q_F32, odd, 2);
        add(&m, t_printf("blk.%d.ffn_up_exps.weight", i), type, exps, 3);
        add(&m, t_printf("blk.%d.ffn_gate_inp.weight", i), BR_Q_F32, mat, 2);
    }
    t_ok(br_gguf_w_begin(m.w, path, &st), &st);
    t_ok(br_gguf_w_data(m.w, m.data.at, m.data.n, &st), &st);
    t_ok(br_gguf_w_end(m.w, &st), &st);
    br_gguf_w_free(m.w);
    br_str_fini(&m.data);
    return path;
}

static br_gguf *
open_ok(const char *path)
{
    br_status st = {0};
    br_gguf *g;

    t_ok(br_gguf_open(&g, path, &st), &st);
    return g;
}

static br_requant_stats
convert(const char *in, const char *out, const char *mix, int threads,
        const br_imatrix *im)
{
    br_requant_desc d = {br_qmix_find(br_text_z(mix)), im, threads, NULL, NULL};
    br_requant_stats stats;
    br_status st = {0};
    br_gguf *g = open_ok(in);

    ck_assert_ptr_nonnull(d.mix);
    t_ok(br_requant(g, out, &d, &stats, &st), &st);
    br_gguf_close(g);
    return stats;
}

/* ---- which tensor gets what --------------------------------------------- */

static const char *
type_in(const char *mix, const char *name, int64_t layers, uint64_t row)
{
    br_qmix_model q = {layers, false};
    br_gguf_tensor t = {.name = br_text_z(name),
                        .type = BR_Q_F16,
                        .n_dims = 2,
                        .dim = {row, 64, 1, 1}};
    bool fell;

    return br_qinfo_of(
               br_qmix_type(br_qmix_find(br_text_z(mix)), &q, &t, &fell))
        ->name;
}

TEST(qmix_gives_each_tensor_its_format)
{
    char layers[17] = {0};

    ck_assert_str_eq(type_in("Q4_K_M", "blk.3.attn_q.weight", 16, 256), "Q4_K");
    ck_assert_str_eq(type_in("q4_k_m", "output.weight", 16, 256), "Q6_K");
    ck_assert_str_eq(type_in("Q4_K_M", "token_embd.weight", 16, 256), "Q4_K");
    ck_assert_str_eq(type_in("Q4_K_M", "blk.0.attn_norm.weight", 16, 256),
                     "F16");
    ck_assert_str_eq(type_in("Q4_K_M", "blk.0.ffn_gate_inp.weight", 16, 256),
                     "F16");
    ck_assert_str_eq(type_in("Q4_0", "blk.0.attn_v.weight", 16, 256), "Q4_0");
    ck_assert_str_eq(type_in("MXFP4_MOE", "blk.0.ffn_up_exps.weight", 2, 256),
                     "MXFP4");
    ck_assert_str_eq(type_in("MXFP4_MOE", "blk.0.attn_q.weight", 2, 256),
                     "Q8_0");
    for (int i = 0; i < 16; i++) {
        const char *t =
            type_in("Q4_K_M", t_printf("blk.%d.ffn_down.weight", i), 16, 256);

        layers[i] = t[1];
    }
    ck_assert_str_eq(layers, "6644644644644666");
    for (int i = 0; i < 16; i++) {
        const char *t =
            type_in("Q4_K_S", t_printf("blk.%d.ffn_down.weight", i), 16, 256);

        layers[i] = t[1];
    }
    ck_assert_str_eq(layers, "5544444444444444");
}

TEST(qmix_falls_back_where_rows_do_not_fit)
{
    ck_assert_str_eq(type_in("Q4_K_M", "blk.1.attn_q.weight", 9, 320), "Q5_0");
    ck_assert_str_eq(type_in("Q5_K_M", "blk.1.attn_q.weight", 9, 320), "Q5_1");
    ck_assert_str_eq(type_in("Q6_K", "blk.1.attn_q.weight", 9, 320), "Q8_0");
    ck_assert_str_eq(type_in("Q4_K_M", "blk.1.attn_q.weight", 9, 48), "F16");
    ck_assert_str_eq(type_in("MXFP4_MOE", "blk.1.x_exps.weight", 9, 48), "F16");
    ck_assert_str_eq(type_in("BF16", "blk.1.attn_q.weight", 9, 3), "BF16");
}

TEST(qmix_names)
{
    ck_assert_ptr_null(br_qmix_find(BR_TEXT("Q4")));
    ck_assert_ptr_null(br_qmix_find(BR_TEXT("")));
    ck_assert_str_eq(br_qmix_code_name(15), "Q4_K_M");
    ck_assert_ptr_null(br_qmix_code_name(-1));
    for (size_t i = 0; br_qmix_at(i); i++) {
        const char *name = br_qmix_name(br_qmix_at(i));

        ck_assert_ptr_eq(br_qmix_find(br_text_z(name)), br_qmix_at(i));
        ck_assert_str_eq(br_qmix_code_name(br_qmix_code(br_qmix_at(i))), name);
    }
}

/* ---- what is written ---------------------------------------------------- */

/* Every row of `after` is what the encoder makes of that of `before`. */
static void
expect_rows(const br_gguf *before, const br_gguf *after)
{
    ck_assert_uint_eq(br_gguf_n_tensors(before), br_gguf_n_tensors(after));
    for (size_t i = 0; i < br_gguf_n_tensors(before); i++) {
        const br_gguf_tensor *a = br_gguf_tensor_at(before, i);
        const br_gguf_tensor *b = br_gguf_tensor_at(after, i);
        uint64_t in, out, rows = a->dim[1] * a->dim[2];
        float x[WIDTH];
        uint8_t want[4 * WIDTH];

        ck_assert(br_text_eq(a->name, b->name));
        ck_assert(br_qtype_bytes(a->type, a->dim[0], &in));
        ck_assert(br_qtype_bytes(b->type, b->dim[0], &out));
        for (uint64_t r = 0; r < rows; r++) {
            br_dequant(a->type, a->data + r * in, x, a->dim[0]);
            ck_assert(br_quant(b->type, x, want, a->dim[0], NULL));
            if (memcmp(want, b->data + r * out, out) != 0)
                ck_abort_msg("%.*s row %d differs", (int)a->name.n, a->name.p,
                             (int)r);
        }
    }
}

static const char *
type_of(const br_gguf *g, const char *name)
{
    const br_gguf_tensor *t = br_gguf_tensor_find(g, name);

    ck_assert_ptr_nonnull(t);
    return br_qinfo_of(t->type)->name;
}

TEST(requant_writes_what_the_encoders_make)
{
    char *in = make_model(BR_Q_BF16);
    char *out = t_printf("%s/out.gguf", t_tmpdir());

    for (size_t i = 0; br_qmix_at(i); i++) {
        br_requant_stats s =
            convert(in, out, br_qmix_name(br_qmix_at(i)), 2, NULL);
        br_gguf *before = open_ok(in), *after = open_ok(out);
        int64_t code;

        expect_rows(before, after);
        ck_assert_str_eq(type_of(after, "output_norm.weight"), "F32");
        ck_assert_str_eq(type_of(after, "blk.1.attn_q.bias"), "F32");
        ck_assert_str_eq(type_of(after, "blk.1.ffn_gate_inp.weight"), "F32");
        ck_assert(
            br_gguf_i64(br_gguf_find(after, "general.file_type"), 0, &code));
        ck_assert_int_eq(code, br_qmix_code(br_qmix_at(i)));
        ck_assert_uint_eq(s.tensors, 15);
        ck_assert_uint_eq(s.again + s.weighed, 0);
        br_gguf_close(before);
        br_gguf_close(after);
    }
}

TEST(requant_counts_what_it_did)
{
    char *in = make_model(BR_Q_Q8_0);
    char *out = t_printf("%s/out.gguf", t_tmpdir());
    br_requant_stats s = convert(in, out, "Q4_K_M", 2, NULL);

    /* 2 + 2 * (q, v, up) were blocks; down falls back to F16; one norm */
    ck_assert_uint_eq(s.again, 8);
    ck_assert_uint_eq(s.fell_back, 2);
    ck_assert_uint_eq(s.encoded, 11);
    ck_assert(s.bytes_out < s.bytes_in);
}

TEST(requant_gives_the_same_file_for_any_number_of_threads)
{
    char *in = make_model(BR_Q_F32);
    char *one = t_printf("%s/1.gguf", t_tmpdir());
    char *many = t_printf("%s/n.gguf", t_tmpdir());
    size_t n, m;
    char *a, *b;

    convert(in, one, "Q5_K_M", 1, NULL);
    a = t_read(one, &n);
    for (int threads = 2; threads < 80; threads += 7) {
        convert(in, many, "Q5_K_M", threads, NULL);
        b = t_read(many, &m);
        ck_assert_uint_eq(n, m);
        ck_assert_mem_eq(a, b, n);
    }
}

/* ---- importances -------------------------------------------------------- */

/* Entry for blk.0.ffn_up_exps (or `name`): sums and counts as given. */
static char *
make_imatrix(const char *name, uint64_t columns, const float *counts, float sum)
{
    char *path = t_printf("%s/im.gguf", t_tmpdir());
    br_gguf_writer *w = br_gguf_w_new();
    char *sums_name = t_printf("%s.in_sum2", name);
    char *counts_name = t_printf("%s.counts", name);
    br_status st = {0};
    float *sums = t_keep(calloc(columns * EXPERTS, sizeof *sums));

    for (size_t i = 0; i < columns * EXPERTS; i++)
        sums[i] = (float)(1 + i % 7) * sum;
    br_gguf_w_str(w, "general.type", BR_TEXT("imatrix"));
    br_gguf_w_tensor(
        w, &(br_gguf_w_info){
               br_text_z(sums_name), BR_Q_F32, 2, {columns, EXPERTS}});
    br_gguf_w_tensor(w, &(br_gguf_w_info){
                            br_text_z(counts_name), BR_Q_F32, 2, {1, EXPERTS}});
    t_ok(br_gguf_w_begin(w, path, &st), &st);
    t_ok(br_gguf_w_data(w, sums, columns * EXPERTS * 4, &st), &st);
    t_ok(br_gguf_w_data(w, counts, EXPERTS * 4, &st), &st);
    t_ok(br_gguf_w_end(w, &st), &st);
    br_gguf_w_free(w);
    return path;
}

TEST(requant_uses_importances_of_each_expert)
{
    const float counts[EXPERTS] = {2, 0};
    const char *name = "blk.0.ffn_up_exps.weight";
    char *in = make_model(BR_Q_F32);
    char *out = t_printf("%s/out.gguf", t_tmpdir());
    br_status st = {0};
    br_imatrix *im;
    br_requant_stats s;
    br_gguf *before, *after;
    float w[2][WIDTH], x[WIDTH];
    uint8_t want[WIDTH];
    const br_gguf_tensor *t;

    t_ok(br_imatrix_open(&im, make_imatrix(name, WIDTH, counts, 1), &st), &st);
    s = convert(in, out, "Q4_0", 3, im);
    ck_assert_uint_eq(s.weighed, 1);
    before = open_ok(in);
    after = open_ok(out);
    for (int i = 0; i < WIDTH; i++) {
        w[0][i] = (float)(1 + i % 7) / 2;
        w[1][i] = 1; /* never used: all alike */
    }
    t = br_gguf_tensor_find(after, name);
    for (int r = 0; r < ROWS * EXPERTS; r++) {
        br_dequant(BR_Q_F32,
                   br_gguf_tensor_find(before, name)->data + r * WIDTH * 4, x,
                   WIDTH);
        ck_assert(br_quant(BR_Q_Q4_0, x, want, WIDTH, w[r / ROWS]));
        ck_assert_mem_eq(want, t->data + r * (WIDTH / 32 * 18),
                         WIDTH / 32 * 18);
    }
    br_gguf_close(before);
    br_gguf_close(after);
    br_imatrix_close(im);
}

static const char *
imatrix_error(const char *path)
{
    br_requant_desc d = {.mix = br_qmix_find(BR_TEXT("Q4_0")), .threads = 1};
    br_requant_stats stats;
    br_status st = {0};
    br_imatrix *im = NULL;
    br_gguf *g = open_ok(make_model(BR_Q_F32));

    if (br_imatrix_open(&im, path, &st) == BR_OK) {
        d.imatrix = im;
        ck_assert_int_ne(
            br_requant(g, t_printf("%s/out", t_tmpdir()), &d, &stats, &st),
            BR_OK);
    }
    br_imatrix_close(im);
    br_gguf_close(g);
    return t_printf("%s", st.msg);
}

TEST(imatrix_refuses_what_does_not_fit)
{
    const float ok[EXPERTS] = {1, 1}, bad[EXPERTS] = {1, -1};
    const char *name = "blk.0.ffn_up_exps.weight";

    ck_assert_str_eq(imatrix_error(make_imatrix(name, 128, ok, 1)),
                     "importances of 'blk.0.ffn_up_exps.weight': the model has "
                     "256 columns and 2 matrices, they have other numbers");
    ck_assert_str_eq(imatrix_error(make_imatrix("output.weight", 256, ok, 1)),
                     "importances of 'output.weight': the model has 256 "
                     "columns and 1 matrices, they have other numbers");
    ck_assert_str_eq(imatrix_error(make_imatrix(name, 256, bad, 1)),
                     "'blk.0.ffn_up_exps.weight': importance 256 is 5 / -1, "
                     "which is no importance");
    ck_assert_str_eq(imatrix_error(make_imatrix(name, 256, ok, NAN)),
                     "'blk.0.ffn_up_exps.weight': importance 0 is nan / 1, "
                     "which is no importance");
    ck_assert_ptr_nonnull(
        strstr(imatrix_error(t_repo("tests/data/gguf/ok_base.gguf")),
               "key 'general.type' is not 'imatrix'"));
}

/* ---- what is refused ---------------------------------------------------- */

static const char *
error_for_weight(float v, const char *mix)
{
    char *in = make_model(BR_Q_F32);
    char *out = t_printf("%s/out.gguf", t_tmpdir());
    br_requant_desc d = {.mix = br_qmix_find(br_text_z(mix)), .threads = 2};
    br_requant_stats stats;
    br_status st = {0};
    const br_gguf_tensor *t;
    size_t n, at;
    char *bytes = t_read(in, &n);
    br_gguf *g;

    t_ok(br_gguf_open_mem(&g, bytes, n, &st), &st);
    t = br_gguf_tensor_find(g, "blk.1.attn_q.weight");
    at = (size_t)((const char *)t->data - bytes);
    memcpy(bytes + at + (3 * WIDTH + 70) * 4, &v, 4);
    ck_assert_int_eq(br_requant(g, out, &d, &stats, &st), BR_E_FORMAT);
    br_gguf_close(g);
    ck_assert_ptr_null(t_ls(t_tmpdir(), ".tmp")[0]);
    return t_printf("%s", st.msg);
}

TEST(requant_names_the_weight_that_it_cannot_write)
{
    ck_assert_str_eq(error_for_weight(NAN, "Q8_0"),
                     "tensor 'blk.1.attn_q.weight': row 3, column 70 is nan, "
                     "no number");
    ck_assert_str_eq(error_for_weight(-INFINITY, "BF16"),
                     "tensor 'blk.1.attn_q.weight': row 3, column 70 is -inf, "
                     "no number");
    ck_assert_str_eq(error_for_weight(1e5f, "F16"),
                     "tensor 'blk.1.attn_q.weight': row 3, column 70 is "
                     "100000, too large for the format: out of range");
    ck_assert_ptr_nonnull(strstr(error_for_weight(1e8f, "Q4_0"),
                                 "column 70 is 1e+08, too large"));
    ck_assert_ptr_nonnull(strstr(error_for_weight(1e25f, "Q6_K"),
                                 "column 70 is 1e+25, too large"));
}

TEST(requant_does_not_write_over_its_input)
{
    char *in = make_model(BR_Q_F16);
    char *same = t_printf("%s/./in-%d.gguf", t_tmpdir(), BR_Q_F16);
    br_requant_desc d = {.mix = br_qmix_find(BR_TEXT("Q8_0"))};
    br_requant_stats stats;
    br_status st = {0};
    br_gguf *g = open_ok(in);
    size_t n, m;

    t_read(in, &n);
    ck_assert_int_eq(br_requant(g, same, &d, &stats, &st), BR_E_USAGE);
    ck_assert_str_eq(st.msg, t_printf("%s: is the file that is read", same));
    br_gguf_close(g);
    t_read(in, &m);
    ck_assert_uint_eq(n, m);
}

static br_code
convert_once(void *arg, br_status *st)
{
    br_requant_desc d = {.mix = br_qmix_find(BR_TEXT("Q4_K_M")), .threads = 2};
    char **paths = arg;
    br_requant_stats stats;
    br_imatrix *im = NULL;
    br_gguf *g;
    br_code code = br_gguf_open(&g, paths[0], st);

    if (code == BR_OK)
        code = br_imatrix_open(&im, paths[1], st);
    d.imatrix = im;
    if (code == BR_OK)
        code = br_requant(g, paths[2], &d, &stats, st);
    br_imatrix_close(im);
    br_gguf_close(g);
    return code;
}

TEST(requant_runs_out_of_memory_cleanly)
{
    const float counts[EXPERTS] = {1, 1};
    char *paths[3] = {
        make_model(BR_Q_F32),
        make_imatrix("blk.0.ffn_up_exps.weight", WIDTH, counts, 1),
        t_printf("%s/out.gguf", t_tmpdir())};

    t_each_oom(convert_once, paths);
}

/* ---- the command -------------------------------------------------------- */

TEST(requant_command_end_to_end)
{
    char *in = make_model(BR_Q_BF16);
    char *out = t_printf("%s/out.gguf", t_tmpdir());
    t_proc r;

    t_run(&r, "model", "quantize", in, out, "q4_k_m");
    ck_assert_int_eq(r.exit, 0);
    ck_assert_ptr_nonnull(strstr(r.out, "11 of 15 tensors encoded"));
    ck_assert_str_eq(r.err, "");
    t_run(&r, "quantize", in, out, "Q8_0", "--json");
    ck_assert_int_eq(r.exit, 0);
    ck_assert_ptr_nonnull(strstr(r.out, "\"encoded\": 11"));
    t_run(&r, "model", "info", out, "--json");
    ck_assert_ptr_nonnull(strstr(r.out, "\"mixture\": \"Q8_0\""));
    t_run(&r, "quantize", in, out, "Q9");
    ck_assert_int_eq(r.exit, 2);
    ck_assert_ptr_nonnull(strstr(r.err, "'Q9': not known; there are F32 F16"));
    t_run(&r, "quantize", in, in, "Q8_0");
    ck_assert_int_eq(r.exit, 2);
    t_run(&r, "quantize", "no/such", out, "Q8_0");
    ck_assert_int_eq(r.exit, 3);
}

/* And nothing else: what it says of it goes elsewhere. */
TEST(cli_quantize_writes_to_standard_output)
{
    static const char *const outs[] = {"-", "/dev/stdout"};
    const char *in = t_repo("models/demo.gguf");
    char *file;
    char *out = t_printf("%s/out.gguf", t_tmpdir());
    size_t n;
    t_proc r;

    t_run(&r, "quantize", in, out, "Q4_0");
    ck_assert_int_eq(r.exit, 0);
    file = t_read(out, &n);
    for (size_t i = 0; i < BR_COUNT(outs); i++) {
        t_run(&r, "quantize", in, outs[i], "Q4_0");
        ck_assert_int_eq(r.exit, 0);
        ck_assert_uint_eq(r.n_out, n);
        ck_assert_mem_eq(r.out, file, n);
        ck_assert_ptr_nonnull(strstr(r.err, "tensors encoded"));
        t_run(&r, "quantize", in, outs[i], "Q4_0", "--json");
        ck_assert_int_eq(r.exit, 2);
    }
}

TEST(model_info_is_stable)
{
    const char *file = "tests/data/gguf/ok_model.gguf";
    t_proc r;

    t_run(&r, "model", "info", file, "--tensors", "--keys");
    ck_assert_int_eq(r.exit, 0);
    t_golden("tests/golden/model/info.txt", r.out);
    t_run(&r, "model", "info", file, "--tensors", "--keys", "--json");
    ck_assert_int_eq(r.exit, 0);
    t_golden("tests/golden/model/info.json", r.out);
    t_run(&r, "model", "info", "tests/data/gguf/ok_all_types.gguf", "--keys");
    ck_assert_int_eq(r.exit, 0);
    t_golden("tests/golden/model/info_keys.txt", r.out);
    t_run(&r, "model", "info", "tests/data/gguf/key_dup.gguf");
    ck_assert_int_eq(r.exit, 3);
    ck_assert_str_eq(r.err, "brass model info: tests/data/gguf/key_dup.gguf: "
                            "key 7 'llama.block_count': the same key as key "
                            "2\n");
}

/* test_safetensors.c - safetensors files and folders.
 * SPDX-License-Identifier: Apache-2.0 */
#include "t.h"

#include "model/quant.h"
#include "model/safetensors.h"
#include "st_make.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- one file ----------------------------------------------------------- */

static br_text
three_tensors(void)
{
    const uint64_t shape[2] = {2, 3}, none[1] = {0};
    const uint16_t halves[6] = {0x3f80, 0x4000, 0, 0, 0, 0x4040};
    const float one = 1.5f;
    st_make m = {0};

    st_add(&m, "a.weight", "BF16", shape, 2, halves, sizeof halves);
    st_add(&m, "empty", "F32", none, 1, "", 0);
    st_add(&m, "scalar", "F32", NULL, 0, &one, 4);
    return st_file(&m);
}

TEST(safetensors_reads_a_file)
{
    br_text file = three_tensors();
    br_status st = {0};
    const br_st_tensor *t;
    br_st *s;
    float f;

    t_ok(br_st_open_mem(&s, file.p, file.n, &st), &st);
    ck_assert_uint_eq(br_st_n_tensors(s), 3);
    ck_assert_uint_eq(br_st_n_files(s), 1);
    t = br_st_tensor_find(s, BR_TEXT("a.weight"));
    ck_assert_uint_eq(t->n_dims, 2);
    ck_assert_uint_eq(t->dim[0], 2);
    ck_assert_uint_eq(t->dim[1], 3);
    ck_assert_int_eq(br_st_dtype_qtype(t->dtype), BR_Q_BF16);
    br_dequant(BR_Q_BF16, t->data + 10, &f, 1);
    ck_assert(f == 3);
    t = br_st_tensor_at(s, 2);
    ck_assert(br_text_is(t->name, "scalar"));
    ck_assert_uint_eq(t->n_dims, 0);
    ck_assert_uint_eq(t->bytes, 4);
    ck_assert_uint_eq(br_st_tensor_find(s, BR_TEXT("empty"))->bytes, 0);
    ck_assert_ptr_null(br_st_tensor_find(s, BR_TEXT("none")));
    br_st_close(s);
}

TEST(safetensors_no_prefix_of_a_file_opens)
{
    br_text file = three_tensors();
    size_t silent = 0;

    for (size_t n = 0; n < file.n; n++) {
        char *cut = malloc(n ? n : 1);
        br_status st = {0};
        br_st *s;

        memcpy(cut, file.p, n);
        ck_assert_msg(br_st_open_mem(&s, cut, n, &st) != BR_OK, "%zu bytes", n);
        silent += st.msg[0] == 0;
        free(cut);
    }
    ck_assert_uint_eq(silent, 0);
}

TEST(safetensors_trailing_blanks_of_a_header)
{
    br_text file = st_raw("{\"a\":{\"data_offsets\":[0,2],\"shape\":[1],"
                          "\"dtype\":\"F16\"}}     ",
                          2);
    br_status st = {0};
    br_st *s;

    t_ok(br_st_open_mem(&s, file.p, file.n, &st), &st);
    br_st_close(s);
}

/* ---- what is refused ---------------------------------------------------- */

static const char *
refusal(const char *head, size_t data_bytes)
{
    br_text file = st_raw(head, data_bytes);
    br_status st = {0};
    br_st *s;

    ck_assert_msg(br_st_open_mem(&s, file.p, file.n, &st) != BR_OK, "%s", head);
    ck_assert_ptr_null(s);
    return t_printf("%s", st.msg);
}

#define T(dtype, shape, from, to)                                          \
    "{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":[" from \
    "," to "]}"

TEST(safetensors_errors_name_place_and_rule)
{
    ck_assert_str_eq(refusal("[]", 0), "header: an object expected");
    ck_assert_str_eq(refusal("{\"a\":1}", 0), "tensor 'a': an object expected");
    ck_assert_str_eq(refusal("{\"a\":" T("F31", "[1]", "0", "4") "}", 4),
                     "tensor 'a': dtype 'F31' is not known");
    ck_assert_str_eq(refusal("{\"a\":" T("F32", "[2]", "0", "4") "}", 4),
                     "tensor 'a': data_offsets: 4 bytes, but the shape has 8 "
                     "of F32");
    ck_assert_str_eq(refusal("{\"a\":" T("F32", "[1]", "4", "8") "}", 7),
                     "tensor 'a': data_offsets: 4 to 8, but the file has 7 "
                     "bytes of data");
    ck_assert_str_eq(refusal("{\"a\":" T("F32", "[1]", "4", "0") "}", 7),
                     "tensor 'a': data_offsets: 4 to 0, but the file has 7 "
                     "bytes of data");
    ck_assert_str_eq(refusal("{\"a\":" T("F32", "[-1]", "0", "4") "}", 4),
                     "tensor 'a': shape: a dimension: -1 is out of range");
    ck_assert_str_eq(refusal("{\"a\":" T("F32", "[1.0]", "0", "4") "}", 4),
                     "tensor 'a': shape: a dimension expected");
    ck_assert_str_eq(
        refusal("{\"a\":" T("U8", "[4294967296,4294967296]", "0", "0") "}", 0),
        "tensor 'a': shape: too many elements");
    ck_assert_str_eq(
        refusal("{\"a\":" T("U8", "[1,1,1,1,1,1,1,1,1]", "0", "1") "}", 1),
        "tensor 'a': shape: more than 8 dimensions");
    ck_assert_str_eq(refusal("{\"a\":{\"dtype\":\"U8\",\"shape\":[0]}}", 0),
                     "tensor 'a': dtype, shape or data_offsets is missing");
    ck_assert_str_eq(refusal("{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\"}}", 0),
                     "tensor 'a': 'dtype' twice");
    ck_assert_str_eq(refusal("{\"a\":{\"type\":\"U8\"}}", 0),
                     "tensor 'a': 'type' is not known");
    ck_assert_str_eq(refusal("{\"__metadata__\":{\"a\":1}}", 0),
                     "__metadata__: a string expected");
    ck_assert_str_eq(refusal("{\"__metadata__\":[]}", 0),
                     "__metadata__: an object expected");
    ck_assert_str_eq(refusal("{\"\":1}", 0),
                     "a tensor's name of 0 bytes, the limit is 1024");
    ck_assert_str_eq(refusal("{\"a\":" T("U8", "[1]", "0", "1") ",\"a\":" T(
                                 "U8", "[1]", "1", "2") "}",
                             2),
                     "tensor 'a' is there twice");
    ck_assert_ptr_nonnull(strstr(refusal("{\"a\":", 0), "line 1 column"));
    ck_assert_ptr_nonnull(strstr(refusal("{} x", 0), "line 1 column"));
}

TEST(safetensors_data_is_covered_exactly_once)
{
    ck_assert_str_eq(refusal("{\"a\":" T("U8", "[4]", "0", "4") ",\"b\":" T(
                                 "U8", "[4]", "3", "7") "}",
                             7),
                     "tensor 'b' begins at byte 3 of the data, inside another "
                     "one");
    ck_assert_str_eq(refusal("{\"a\":" T("U8", "[4]", "4", "8") ",\"b\":" T(
                                 "U8", "[3]", "0", "3") "}",
                             8),
                     "tensor 'a' begins at byte 4 of the data, after bytes "
                     "that belong to none");
    ck_assert_str_eq(refusal("{\"a\":" T("U8", "[4]", "0", "4") "}", 5),
                     "5 bytes of data, but the tensors end at 4");
}

TEST(safetensors_header_lengths)
{
    const uint8_t huge[8] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f};
    br_status st = {0};
    br_st *s;

    ck_assert_int_eq(br_st_open_mem(&s, huge, 8, &st), BR_E_FORMAT);
    ck_assert_str_eq(st.msg, "a header of 9223372036854775807 bytes, but the "
                             "file ends after 0");
    st = (br_status){0};
    ck_assert_int_eq(br_st_open_mem(&s, huge, 7, &st), BR_E_FORMAT);
    ck_assert_str_eq(st.msg, "7 bytes, no safetensors file");
    ck_assert_int_eq(br_st_open_mem(&s, NULL, 0, NULL), BR_E_FORMAT);
}

/* ---- folders ------------------------------------------------------------ */

static void
put(const char *dir, const char *name, br_text t)
{
    t_write(t_printf("%s/%s", dir, name), t.p, t.n);
}

static const char *
make_set(const char *map)
{
    const char *dir = t_tmpdir();
    const uint64_t four[1] = {4};
    st_make m = {0};

    st_add(&m, "a", "U8", four, 1, "aaaa", 4);
    put(dir, "m-1.safetensors", st_file(&m));
    st_add(&m, "b", "I8", four, 1, "bbbb", 4);
    st_add(&m, "c", "I8", four, 1, "cccc", 4);
    put(dir, "m-2.safetensors", st_file(&m));
    put(dir, "model.safetensors.index.json",
        br_text_z(t_printf("{\"metadata\": {\"total_size\": 12}, "
                           "\"weight_map\": {%s}}",
                           map)));
    return dir;
}

#define MAP                                                    \
    "\"b\": \"m-2.safetensors\", \"a\": \"m-1.safetensors\", " \
    "\"c\": \"m-2.safetensors\""

TEST(safetensors_set_by_its_index)
{
    const char *dir = make_set(MAP);
    const char *paths[2] = {dir,
                            t_printf("%s/model.safetensors.index.json", dir)};

    for (int i = 0; i < 2; i++) {
        br_status st = {0};
        br_st *s;

        t_ok(br_st_open(&s, paths[i], &st), &st);
        ck_assert_uint_eq(br_st_n_files(s), 2);
        ck_assert_uint_eq(br_st_n_tensors(s), 3);
        ck_assert_mem_eq(br_st_tensor_find(s, BR_TEXT("c"))->data, "cccc", 4);
        ck_assert(br_st_reads(s, t_printf("%s/m-1.safetensors", dir)));
        ck_assert(!br_st_reads(s, paths[1]));
        br_st_close(s);
    }
}

TEST(safetensors_folder_with_one_file)
{
    const char *dir = t_tmpdir();
    br_status st = {0};
    br_st *s;

    put(dir, "model.safetensors", three_tensors());
    t_ok(br_st_open(&s, dir, &st), &st);
    ck_assert_uint_eq(br_st_n_tensors(s), 3);
    br_st_close(s);
    t_ok(br_st_open(&s, t_printf("%s/model.safetensors", dir), &st), &st);
    br_st_close(s);
}

static const char *
set_error(const char *path)
{
    br_status st = {0};
    br_st *s;

    ck_assert_int_ne(br_st_open(&s, path, &st), BR_OK);
    ck_assert_ptr_null(s);
    ck_assert_msg(strncmp(st.msg, path, strlen(path)) == 0, "%s", st.msg);
    return t_printf("%s", st.msg + strlen(path));
}

TEST(safetensors_set_that_does_not_fit_together)
{
    const char *index = "/model.safetensors.index.json";
    const char *dir = make_set("\"a\": \"m-2.safetensors\"");

    ck_assert_str_eq(set_error(dir), t_printf("%s: tensor 'a' is not in "
                                              "m-2.safetensors",
                                              index));
    make_set("\"x\": \"m-2.safetensors\"");
    ck_assert_str_eq(set_error(dir), t_printf("%s: tensor 'x' is not in "
                                              "m-2.safetensors",
                                              index));
    make_set("\"x\": \"../m-2.safetensors\"");
    ck_assert_str_eq(set_error(dir),
                     t_printf("%s: weight_map: 'x': not the name of a file in "
                              "this folder",
                              index));
    make_set("\"x\": 1");
    ck_assert_ptr_nonnull(strstr(set_error(dir), "not the name"));
    make_set("\"x\": \"gone.safetensors\"");
    ck_assert_str_eq(set_error(dir), "/gone.safetensors: cannot map: No such "
                                     "file or directory");
    make_set("");
    ck_assert_str_eq(set_error(dir), t_printf("%s: weight_map: empty", index));
    put(dir, "model.safetensors.index.json", BR_TEXT("[]"));
    ck_assert_str_eq(set_error(dir),
                     t_printf("%s: no object 'weight_map'", index));
    make_set(MAP);
    put(dir, "m-2.safetensors", BR_TEXT("short"));
    ck_assert_str_eq(set_error(dir),
                     "/m-2.safetensors: 5 bytes, no safetensors file");
    unlink(t_printf("%s/model.safetensors.index.json", dir));
    ck_assert_str_eq(set_error(dir),
                     ": neither model.safetensors nor "
                     "model.safetensors.index.json is in this folder");
    ck_assert_str_eq(set_error("no/such"),
                     ": cannot map: No such file or directory");
    ck_assert_str_eq(set_error("no/such.json"),
                     ": cannot open: No such file or directory");
}

static br_code
open_path(void *arg, br_status *st)
{
    br_st *s;
    br_code code = br_st_open(&s, arg, st);

    br_st_close(s);
    return code;
}

TEST(safetensors_runs_out_of_memory_cleanly)
{
    const char *dir = make_set(MAP);

    t_each_oom(open_path, (void *)(uintptr_t)dir);
    t_each_oom(open_path, t_printf("%s/m-2.safetensors", dir));
}

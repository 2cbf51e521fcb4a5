/* test_gguf_write.c - GGUF files written, and read again.
 * SPDX-License-Identifier: Apache-2.0 */
#include "t.h"

#include "base/hash.h"
#include "model/gguf_write.h"
#include "model/quant.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

T_ONE_THREAD();

static void
copy_table(br_gguf_writer *w, const br_gguf *g)
{
    for (size_t i = 0; i < br_gguf_n_kv(g); i++)
        br_gguf_w_copy(w, br_gguf_kv_at(g, i));
    for (size_t i = 0; i < br_gguf_n_tensors(g); i++) {
        const br_gguf_tensor *t = br_gguf_tensor_at(g, i);
        br_gguf_w_info info = {t->name, t->type, t->n_dims, {0}};

        memcpy(info.dim, t->dim, sizeof info.dim);
        br_gguf_w_tensor(w, &info);
    }
}

/* Data in portions of `portion` bytes that know nothing of tensors. */
static br_code
copy_data(br_gguf_writer *w, const br_gguf *g, size_t portion, br_status *st)
{
    for (size_t i = 0; i < br_gguf_n_tensors(g); i++) {
        const br_gguf_tensor *t = br_gguf_tensor_at(g, i);

        for (size_t at = 0; at < t->bytes; at += portion)
            BR_TRY(br_gguf_w_data(w, t->data + at,
                                  BR_MIN(portion, (size_t)t->bytes - at), st));
    }
    return br_gguf_w_end(w, st);
}

static void
rewrite(const char *path, size_t portion, br_str *out)
{
    br_gguf_writer *w = br_gguf_w_new();
    br_status st = {0};
    br_gguf *g;

    t_ok(br_gguf_open(&g, path, &st), &st);
    copy_table(w, g);
    t_ok(br_gguf_w_begin_mem(w, out, &st), &st);
    t_ok(copy_data(w, g, portion, &st), &st);
    br_gguf_w_free(w);
    br_gguf_close(g);
}

/* The files of the vectors come from another writer, in this layout. */
static void
expect_copy(const char *path, size_t portion)
{
    size_t n;
    char *want = t_read(path, &n);
    br_str got = {0};

    rewrite(path, portion, &got);
    ck_assert_uint_eq(got.n, n);
    for (size_t i = 0; i < n; i++)
        if (got.at[i] != want[i])
            ck_abort_msg("%s: byte %zu differs", path, i);
    br_str_fini(&got);
}

TEST(gguf_written_again_is_the_same_file)
{
    expect_copy(t_repo("tests/data/gguf/ok_base.gguf"), 1 << 20);
    expect_copy(t_repo("tests/data/gguf/ok_base.gguf"), 7);
    expect_copy(t_repo("tests/data/gguf/ok_align64.gguf"), 1);
    expect_copy(t_repo("tests/data/gguf/ok_all_types.gguf"), 64);
    expect_copy(t_repo("tests/data/gguf/ok_model.gguf"), 1000);
}

TEST(gguf_vectors_written_again_are_the_same_files)
{
    const char *dir = t_vectors("logits");
    char **names;

    if (!dir)
        t_skip("no ../shared/vectors here");
    names = t_ls(dir, ".gguf");
    for (int i = 0; names[i]; i++)
        expect_copy(t_printf("%s/%s", dir, names[i]), 4099);
}

/* ---- setters ------------------------------------------------------------ */

static void
set_all(br_gguf_writer *w)
{
    const int32_t ints[2] = {-1, 7};
    const float floats[3] = {0.5f, -1, 2};
    const br_text texts[3] = {BR_TEXT("a"), BR_TEXT(""), BR_TEXT("\xff\n")};

    br_gguf_w_u32(w, "u32", 4000000000u);
    br_gguf_w_u64(w, "gone", 1);
    br_gguf_w_u64(w, "u64", 1ull << 40);
    br_gguf_w_f32(w, "f32", 0.1f);
    br_gguf_w_str(w, "again", BR_TEXT("first"));
    br_gguf_w_bool(w, "bool", true);
    br_gguf_w_array(w, "ints", BR_GGUF_I32, ints, 2);
    br_gguf_w_array(w, "floats", BR_GGUF_F32, floats, 3);
    br_gguf_w_array(w, "empty", BR_GGUF_U8, NULL, 0);
    br_gguf_w_strs(w, "texts", texts, 3);
    br_gguf_w_strs(w, "no texts", NULL, 0);
    br_gguf_w_remove(w, "gone");
    br_gguf_w_remove(w, "never there");
    br_gguf_w_u32(w, "again", 2);
    br_gguf_w_tensor(w, &(br_gguf_w_info){BR_TEXT("t"), BR_Q_F32, 1, {3}});
    br_gguf_w_tensor(w, &(br_gguf_w_info){BR_TEXT("s"), BR_Q_I8, 0, {0}});
}

static br_code
write_all_kinds(void *arg, br_status *st)
{
    br_gguf_writer *w = br_gguf_w_new();
    const float data[3] = {1, 2, 3};
    br_code code;

    if (!w)
        return br_fail(st, BR_E_OOM, "out of memory");
    set_all(w);
    code = arg ? br_gguf_w_begin_mem(w, arg, st)
               : br_gguf_w_begin(w, t_printf("%s/x.gguf", t_tmpdir()), st);
    if (code == BR_OK)
        code = br_gguf_w_data(w, data, sizeof data, st);
    if (code == BR_OK)
        code = br_gguf_w_data(w, "\x2a", 1, st);
    if (code == BR_OK)
        code = br_gguf_w_end(w, st);
    br_gguf_w_free(w);
    return code;
}

TEST(gguf_writer_sets_every_kind)
{
    br_status st = {0};
    br_str out = {0};
    br_gguf *g;
    int64_t v;
    double d;
    br_text t;

    t_ok(write_all_kinds(&out, &st), &st);
    t_ok(br_gguf_open_mem(&g, out.at, out.n, &st), &st);
    ck_assert_uint_eq(br_gguf_n_kv(g), 10);
    ck_assert(br_gguf_i64(br_gguf_find(g, "u32"), 0, &v) && v == 4000000000ll);
    ck_assert(br_gguf_i64(br_gguf_find(g, "u64"), 0, &v) && v == 1ll << 40);
    ck_assert(br_gguf_f64(br_gguf_find(g, "f32"), 0, &d));
    ck_assert((float)d == 0.1f);
    ck_assert(br_gguf_i64(br_gguf_find(g, "bool"), 0, &v) && v == 1);
    ck_assert(br_gguf_i64(br_gguf_find(g, "ints"), 0, &v) && v == -1);
    ck_assert(br_gguf_f64(br_gguf_find(g, "floats"), 2, &d) && d == 2);
    ck_assert_uint_eq(br_gguf_find(g, "empty")->n, 0);
    ck_assert_uint_eq(br_gguf_find(g, "no texts")->n, 0);
    ck_assert(br_gguf_str(br_gguf_find(g, "texts"), 2, &t));
    ck_assert(br_text_is(t, "\xff\n"));
    ck_assert_ptr_null(br_gguf_find(g, "gone"));
    /* set again: the new value in the old place */
    ck_assert(br_text_is(br_gguf_kv_at(g, 3)->key, "again"));
    ck_assert(br_gguf_i64(br_gguf_find(g, "again"), 0, &v) && v == 2);
    ck_assert_uint_eq(br_gguf_tensor_find(g, "s")->data[0], 42);
    br_gguf_close(g);
    br_str_fini(&out);
}

TEST(gguf_writer_runs_out_of_memory_cleanly)
{
    t_each_oom(write_all_kinds, NULL);
}

TEST(gguf_writer_follows_the_alignment)
{
    br_gguf_writer *w = br_gguf_w_new();
    br_status st = {0};
    br_str out = {0};
    br_gguf *g;

    br_gguf_w_u32(w, "general.alignment", 512);
    br_gguf_w_tensor(w, &(br_gguf_w_info){BR_TEXT("a"), BR_Q_I8, 1, {3}});
    br_gguf_w_tensor(w, &(br_gguf_w_info){BR_TEXT("b"), BR_Q_I8, 1, {3}});
    t_ok(br_gguf_w_begin_mem(w, &out, &st), &st);
    t_ok(br_gguf_w_data(w, "abcdef", 6, &st), &st);
    t_ok(br_gguf_w_end(w, &st), &st);
    br_gguf_w_free(w);
    t_ok(br_gguf_open_mem(&g, out.at, out.n, &st), &st);
    ck_assert_uint_eq(out.n, 3 * 512);
    ck_assert_uint_eq(
        (size_t)(br_gguf_tensor_at(g, 1)->data - (const uint8_t *)out.at),
        2 * 512);
    ck_assert_mem_eq(br_gguf_tensor_at(g, 1)->data, "def", 3);
    br_gguf_close(g);
    br_str_fini(&out);
}

/* ---- what is refused ---------------------------------------------------- */

static void
expect_refusal(void (*set)(br_gguf_writer *w), const char *message)
{
    br_gguf_writer *w = br_gguf_w_new();
    br_status st = {0};
    br_str out = {0};

    set(w);
    ck_assert_int_ne(br_gguf_w_begin_mem(w, &out, &st), BR_OK);
    ck_assert_str_eq(st.msg, message);
    br_gguf_w_free(w);
    br_str_fini(&out);
}

static void
set_twice(br_gguf_writer *w)
{
    br_gguf_w_tensor(w, &(br_gguf_w_info){BR_TEXT("a"), BR_Q_I8, 1, {3}});
    br_gguf_w_tensor(w, &(br_gguf_w_info){BR_TEXT("a"), BR_Q_I8, 1, {3}});
}

static void
set_row(br_gguf_writer *w)
{
    br_gguf_w_tensor(w, &(br_gguf_w_info){BR_TEXT("a"), BR_Q_Q8_0, 1, {33}});
    br_gguf_w_u32(w, "", 1); /* the first failure is the one told */
}

static void
set_zero(br_gguf_writer *w)
{
    br_gguf_w_tensor(w, &(br_gguf_w_info){BR_TEXT("a"), BR_Q_I8, 2, {33, 0}});
}

static void
set_alignment(br_gguf_writer *w)
{
    br_gguf_w_u32(w, "general.alignment", 24);
}

static void
set_long_name(br_gguf_writer *w)
{
    static char name[65];

    memset(name, 'x', sizeof name);
    br_gguf_w_tensor(w, &(br_gguf_w_info){{name, 65}, BR_Q_I8, 1, {1}});
}

#define X65 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

TEST(gguf_writer_refuses_what_the_reader_would)
{
    expect_refusal(set_twice, "tensor 'a' twice");
    expect_refusal(set_row, "tensor 'a': a row of 33 is not a multiple of 32, "
                            "the block of Q8_0");
    expect_refusal(set_zero, "tensor 'a': dimension 1 is 0");
    expect_refusal(set_alignment,
                   "general.alignment is not a u32 and power of two");
    expect_refusal(
        set_long_name,
        t_printf("tensor '%s': a name of 65 bytes, the limit is 64", X65));
}

TEST(gguf_writer_that_is_not_ended_leaves_the_old_file)
{
    const char *dir = t_tmpdir();
    char *path = t_printf("%s/m.gguf", dir);
    br_gguf_writer *w = br_gguf_w_new();
    br_status st = {0};

    t_write(path, "old", 3);
    set_all(w);
    t_ok(br_gguf_w_begin(w, path, &st), &st);
    t_ok(br_gguf_w_data(w, "12345", 5, &st), &st);
    br_gguf_w_free(w);
    ck_assert_str_eq(t_read(path, NULL), "old");
    ck_assert_ptr_null(t_ls(dir, ".tmp")[0]);
    w = br_gguf_w_new();
    ck_assert_int_eq(br_gguf_w_begin(w, "no/such/dir/x", &st), BR_E_NOT_FOUND);
    ck_assert_str_eq(st.msg, "no/such/dir/x: cannot create a file beside: No "
                             "such file or directory");
    br_gguf_w_free(w);
}

/* ---- split sets --------------------------------------------------------- */

static char *
split_path(const char *dir, int no, int of)
{
    return t_printf("%s/m-%05d-of-%05d.gguf", dir, no, of);
}

/* File `no` of `of` with tensors t<no> and u<no>; keys may lie. */
static void
write_split(const char *path, int no, int key_no, int of, int total)
{
    br_gguf_writer *w = br_gguf_w_new();
    char *name[2] = {t_printf("t%d", no), t_printf("u%d", no)};
    br_status st = {0};
    uint8_t data[2][40];

    if (key_no == 0)
        br_gguf_w_str(w, "general.name", BR_TEXT("set"));
    br_gguf_w_u32(w, "split.no", (uint32_t)key_no);
    br_gguf_w_u32(w, "split.count", (uint32_t)of);
    if (total >= 0)
        br_gguf_w_u32(w, "split.tensors.count", (uint32_t)total);
    for (int i = 0; i < 2; i++) {
        br_gguf_w_tensor(
            w, &(br_gguf_w_info){br_text_z(name[i]), BR_Q_I8, 1, {40}});
        memset(data[i], no * 2 + i, 40);
    }
    t_ok(br_gguf_w_begin(w, path, &st), &st);
    t_ok(br_gguf_w_data(w, data, sizeof data, &st), &st);
    t_ok(br_gguf_w_end(w, &st), &st);
    br_gguf_w_free(w);
}

static const char *
write_set(int total)
{
    const char *dir = t_tmpdir();

    for (int i = 1; i <= 3; i++)
        write_split(split_path(dir, i, 3), i, i - 1, 3, total);
    return dir;
}

TEST(gguf_set_opens_by_any_of_its_files)
{
    const char *dir = write_set(6);

    for (int i = 1; i <= 3; i++) {
        br_status st = {0};
        br_gguf *g;
        br_text t;

        t_ok(br_gguf_open(&g, split_path(dir, i, 3), &st), &st);
        ck_assert_uint_eq(br_gguf_n_splits(g), 3);
        ck_assert_uint_eq(br_gguf_n_tensors(g), 6);
        ck_assert(br_gguf_str(br_gguf_find(g, "general.name"), 0, &t));
        ck_assert_uint_eq(br_gguf_tensor_find(g, "u3")->data[39], 7);
        ck_assert_uint_eq(br_gguf_tensor_find(g, "t2")->split, 1);
        br_gguf_close(g);
    }
}

static void
sample(const char *path, uint8_t out[BR_SHA256_BYTES])
{
    br_status st = {0};
    br_sha256 h;
    br_gguf *g;

    t_ok(br_gguf_open(&g, path, &st), &st);
    br_sha256_begin(&h);
    br_gguf_sample(g, &h);
    br_sha256_end(&h, out);
    br_gguf_close(g);
}

/* What a set is, and what it takes, is not its first file's alone. */
TEST(gguf_set_is_all_of_its_files)
{
    const char *dir = write_set(6), *last = split_path(dir, 3, 3);
    uint8_t before[BR_SHA256_BYTES], after[BR_SHA256_BYTES];
    uint64_t all, sum = 0;
    br_status st = {0};
    size_t n = 0;
    char *bytes = NULL;

    for (int i = 1; i <= 3; i++) {
        br_free(bytes);
        t_ok(br_file_read(split_path(dir, i, 3), 1 << 20, &bytes, &n, &st),
             &st);
        sum += n;
    }
    t_ok(br_gguf_bytes_at(last, &all, &st), &st);
    ck_assert_uint_eq(all, sum);
    sample(split_path(dir, 1, 3), before);
    bytes[n - 40] ^= 1;
    t_write(last, bytes, n);
    sample(split_path(dir, 1, 3), after);
    ck_assert_mem_ne(before, after, sizeof before);
    br_free(bytes);
}

static const char *
open_error(const char *path)
{
    br_status st = {0};
    br_gguf *g;

    ck_assert_int_ne(br_gguf_open(&g, path, &st), BR_OK);
    ck_assert_msg(strncmp(st.msg, path, strlen(path)) == 0 ||
                      strstr(st.msg, ".gguf: "),
                  "%s", st.msg);
    return t_printf("%s", strstr(st.msg, ".gguf: ") + 7);
}

TEST(gguf_set_that_does_not_fit_together)
{
    const char *dir = write_set(7);
    size_t n;
    char *bytes;
    br_status st = {0};
    br_gguf *g;

    ck_assert_str_eq(open_error(split_path(dir, 1, 3)),
                     "split.tensors.count is 7, the files have 6");
    dir = write_set(-1);
    unlink(split_path(dir, 2, 3));
    ck_assert_str_eq(open_error(split_path(dir, 3, 3)),
                     "cannot map: No such file or directory");
    write_split(split_path(dir, 2, 3), 2, 2, 3, -1);
    ck_assert_str_eq(open_error(split_path(dir, 1, 3)),
                     "its keys say file 3 of 3, its name 2 of 3");
    write_split(split_path(dir, 2, 3), 1, 1, 3, -1);
    ck_assert_str_eq(open_error(split_path(dir, 1, 3)),
                     "tensor 't1' is there twice (tensors 0 and 2)");
    write_split(t_printf("%s/other.gguf", dir), 1, 0, 3, -1);
    ck_assert_str_eq(open_error(t_printf("%s/other.gguf", dir)),
                     "its keys say file 1 of 3, but its name does not end in "
                     "-00001-of-00003.gguf");
    write_split(split_path(dir, 1, 2000), 1, 0, 2000, -1);
    ck_assert_str_eq(open_error(split_path(dir, 1, 2000)),
                     "key 'split.count': 2000 files, the limit is 1024");
    bytes = t_read(split_path(dir, 1, 3), &n);
    ck_assert_int_eq(br_gguf_open_mem(&g, bytes, n, &st), BR_E_UNSUPPORTED);
    ck_assert_str_eq(st.msg,
                     "one file of 3: a set has to be opened by its path");
}

static br_code
open_set(void *arg, br_status *st)
{
    br_gguf *g;
    br_code code = br_gguf_open(&g, arg, st);

    br_gguf_close(g);
    return code;
}

TEST(gguf_set_runs_out_of_memory_cleanly)
{
    t_each_oom(open_set, split_path(write_set(6), 2, 3));
}

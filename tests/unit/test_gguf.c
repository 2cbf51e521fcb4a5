/* test_gguf.c - GGUF files: what opens, what is refused and what it says.
 *
 * tests/data/gguf are the structural cases of the shared vectors, each with
 * its verdict in cases.json; the vectors add models and the same again.
 * SPDX-License-Identifier: Apache-2.0 */
#include "t.h"

#include "base/json.h"
#include "model/gguf.h"
#include "model/quant.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

T_ONE_THREAD();

/* ---- helpers ------------------------------------------------------------ */

/* A copy in a block of exactly n bytes, so that ASan sees a read past it. */
static void *
exact(const void *p, size_t n)
{
    void *copy = malloc(n ? n : 1);

    ck_assert_ptr_nonnull(copy);
    memcpy(copy, p, n);
    return copy;
}

static br_gguf *
open_data(const char *name)
{
    br_status st = {0};
    br_gguf *g;

    t_ok(br_gguf_open(&g, t_repo(t_printf("tests/data/gguf/%s", name)), &st),
         &st);
    return g;
}

static const char *
member(const br_json *row, const char *key)
{
    const br_json *v = br_json_get(row, key);

    ck_assert_msg(v && v->kind == BR_J_STR, "cases.json: no %s", key);
    return v->s;
}

static const br_json *
read_cases(br_arena *a, const char *dir)
{
    br_status st = {0};
    br_json *doc;
    size_t n;
    char *text = t_read(t_printf("%s/cases.json", dir), &n);

    t_ok(br_json_parse(&doc, a, text, n, 0, &st), &st);
    doc = (br_json *)(uintptr_t)br_json_get(doc, "cases");
    ck_assert_ptr_nonnull(doc);
    return doc;
}

/* Reads every value and the ends of every tensor: they are good for what the
 * table states. */
static uint64_t
walk(const br_gguf *g)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < br_gguf_n_kv(g); i++) {
        const br_gguf_kv *kv = br_gguf_kv_at(g, i);

        for (uint64_t k = 0; k < kv->n; k++) {
            int64_t v = 0;
            double d = 0;
            br_text t = {NULL, 0};

            sum += br_gguf_i64(kv, k, &v) + br_gguf_f64(kv, k, &d);
            if (br_gguf_str(kv, k, &t) && t.n)
                sum += (uint8_t)t.p[0] + (uint8_t)t.p[t.n - 1];
            sum += (uint64_t)v + (d > 0);
        }
    }
    for (size_t i = 0; i < br_gguf_n_tensors(g); i++) {
        const br_gguf_tensor *t = br_gguf_tensor_at(g, i);

        sum += t->data[0] + t->data[t->bytes - 1];
    }
    return sum;
}

/* ---- the cases ---------------------------------------------------------- */

static void
run_case(const char *dir, const br_json *row)
{
    const char *file = member(row, "file"), *expect = member(row, "expect");
    char *path = t_printf("%s/%s", dir, file);
    br_status st = {0}, st_mem = {0};
    br_gguf *g, *mem;
    br_code code, code_mem;
    size_t n, before, most;
    char *bytes = t_read(path, &n);

    bytes = exact(bytes, n);
    (void)t_mem_most();
    before = t_mem_bytes();
    code = br_gguf_open(&g, path, &st);
    most = t_mem_most() - before;
    ck_assert_msg(most <= 16 * n + (64 << 10),
                  "%s: %zu bytes of memory for %zu", file, most, n);
    code_mem = br_gguf_open_mem(&mem, bytes, n, &st_mem);
    ck_assert_msg(code == code_mem, "%s: by path %s, by bytes %s", file,
                  br_code_name(code), br_code_name(code_mem));
    if (code != BR_OK) {
        ck_assert_ptr_null(g);
        ck_assert_ptr_null(mem);
        ck_assert_str_eq(st.msg, t_printf("%s: %s", path, st_mem.msg));
        ck_assert_msg(strlen(st_mem.msg) > 8, "%s: '%s'", file, st_mem.msg);
        ck_assert_msg(br_code_exit(code) == 3 || code == BR_E_UNSUPPORTED,
                      "%s: %s", file, br_code_name(code));
    } else {
        walk(g);
        walk(mem);
    }
    if (strcmp(expect, "accept") == 0)
        ck_assert_msg(code == BR_OK, "%s: %s", file, st.msg);
    if (strcmp(expect, "reject") == 0 &&
        strcmp(member(row, "level"), "structure") == 0)
        ck_assert_msg(code != BR_OK, "%s opened: %s", file,
                      member(row, "rule"));
    br_gguf_close(g);
    br_gguf_close(mem);
    free(bytes);
}

static int
run_cases(const char *dir)
{
    br_arena a;
    const br_json *rows;
    int n = 0;

    br_arena_init(&a, 0);
    rows = read_cases(&a, dir);
    for (const br_json *row = rows->child; row; row = row->next, n++)
        run_case(dir, row);
    br_arena_fini(&a);
    return n;
}

TEST(gguf_refuses_what_is_malformed)
{
    ck_assert_int_ge(run_cases(t_repo("tests/data/gguf")), 84);
}

TEST(gguf_vectors_all_get_their_verdict)
{
    const char *dir = t_vectors("gguf_bad");

    if (!dir)
        t_skip("no ../shared/vectors here");
    ck_assert_int_ge(run_cases(dir), 106);
}

TEST(gguf_every_model_of_the_vectors_opens)
{
    const char *dir = t_vectors("logits");
    char **names;
    int n = 0;

    if (!dir)
        t_skip("no ../shared/vectors here");
    names = t_ls(dir, ".gguf");
    for (; names[n]; n++) {
        br_status st = {0};
        br_gguf *g;

        t_ok(br_gguf_open(&g, t_printf("%s/%s", dir, names[n]), &st), &st);
        ck_assert_ptr_nonnull(br_gguf_tensor_find(g, "token_embd.weight"));
        walk(g);
        br_gguf_close(g);
    }
    ck_assert_int_ge(n, 40);
}

static const char *
message_of(const char *name)
{
    char *bytes, *msg;
    br_status st = {0};
    br_gguf *g;
    size_t n;

    bytes = t_read(t_repo(t_printf("tests/data/gguf/%s", name)), &n);
    ck_assert_int_ne(br_gguf_open_mem(&g, bytes, n, &st), BR_OK);
    msg = t_printf("%s", st.msg);
    return msg;
}

TEST(gguf_errors_name_place_and_rule)
{
    ck_assert_str_eq(message_of("magic_lower.gguf"),
                     "no GGUF file: it begins with 67 67 75 66");
    ck_assert_str_eq(message_of("version_4.gguf"),
                     "version 4; this reads versions 2 and 3");
    ck_assert_str_eq(message_of("trunc_empty.gguf"),
                     "no GGUF file: it is empty");
    ck_assert_ptr_nonnull(
        strstr(message_of("trunc_data-1.gguf"), ": not all of it is here"));
    ck_assert_str_eq(message_of("align_18.gguf"),
                     "key 'general.alignment': 24 is not a power of two");
    ck_assert_str_eq(message_of("align_type.gguf"),
                     "key 'general.alignment': type str, not an integer");
    ck_assert_str_eq(message_of("key_dup.gguf"),
                     "key 7 'llama.block_count': the same key as key 2");
    ck_assert_str_eq(message_of("tname_dup.gguf"),
                     "tensor 'a.weight' is there twice (tensors 0 and 1)");
    ck_assert_str_eq(message_of("off_overlap.gguf"),
                     "tensors 'a.weight' and 'b.weight' share bytes of the "
                     "file");
    ck_assert_str_eq(message_of("block_8_16.gguf"),
                     "tensor 'c.weight': a row of 16 is not a multiple of 32, "
                     "the block of Q8_0");
    ck_assert_str_eq(message_of("off_misaligned_1.gguf"),
                     "tensor 'b.weight': offset 1 is not a multiple of the "
                     "alignment 32");
}

/* ---- every prefix, every byte ------------------------------------------- */

TEST(gguf_no_prefix_of_a_file_opens)
{
    size_t n;
    char *bytes = t_read(t_repo("tests/data/gguf/ok_base.gguf"), &n);
    size_t opened = 0, silent = 0;

    for (size_t k = 0; k < n; k++) {
        char *cut = exact(bytes, k);
        br_status st = {0};
        br_gguf *g;

        if (br_gguf_open_mem(&g, cut, k, &st) == BR_OK) {
            opened++;
            walk(g);
        }
        silent += st.code != BR_OK && st.msg[0] == 0;
        br_gguf_close(g);
        free(cut);
    }
    /* the last tensor's padding may be missing */
    ck_assert_uint_le(opened, 32);
    ck_assert_uint_eq(silent, 0);
}

TEST(gguf_no_byte_makes_it_read_outside)
{
    static const uint8_t values[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
    size_t n;
    char *bytes = t_read(t_repo("tests/data/gguf/ok_base.gguf"), &n);
    uint8_t *copy = exact(bytes, n);
    size_t opened = 0;

    for (size_t k = 0; k < 512; k++)
        for (size_t v = 0; v < BR_COUNT(values); v++) {
            uint8_t old = copy[k];
            br_gguf *g;

            copy[k] = values[v];
            if (br_gguf_open_mem(&g, copy, n, NULL) == BR_OK) {
                walk(g);
                opened++;
            }
            br_gguf_close(g);
            copy[k] = old;
        }
    ck_assert_uint_gt(opened, 100);
    free(copy);
}

/* ---- values ------------------------------------------------------------- */

TEST(gguf_values_of_every_type)
{
    br_gguf *g = open_data("ok_all_types.gguf");
    int ints = 0, floats = 0, texts = 0;

    for (size_t i = 0; i < br_gguf_n_kv(g); i++) {
        const br_gguf_kv *kv = br_gguf_kv_at(g, i);
        int64_t v;
        double d;
        br_text t;

        ints += br_gguf_i64(kv, 0, &v);
        floats += br_gguf_f64(kv, 0, &d) && !br_gguf_i64(kv, 0, &v);
        texts += br_gguf_str(kv, 0, &t);
        ck_assert(!br_gguf_i64(kv, kv->n, &v));
        ck_assert(!br_gguf_f64(kv, kv->n, &d));
        ck_assert(!br_gguf_str(kv, kv->n, &t));
    }
    ck_assert_int_ge(ints, 9);
    ck_assert_int_ge(floats, 2);
    ck_assert_int_ge(texts, 2);
    br_gguf_close(g);
}

TEST(gguf_finds_keys_and_tensors_by_name)
{
    br_gguf *g = open_data("ok_base.gguf");
    const br_gguf_kv *kv = br_gguf_find(g, "x.sarr");
    const br_gguf_tensor *t = br_gguf_tensor_find(g, "c.weight");
    int64_t v;
    double d;
    br_text s;

    ck_assert(br_gguf_str(kv, 0, &s) && br_text_is(s, "ab"));
    ck_assert(br_gguf_str(kv, 1, &s) && br_text_is(s, "c"));
    kv = br_gguf_find(g, "x.arr");
    ck_assert(br_gguf_i64(kv, 2, &v) && v == 3);
    ck_assert(br_gguf_i64_layer(kv, 1, &v) && v == 2);
    ck_assert(!br_gguf_i64_layer(kv, 3, &v));
    kv = br_gguf_find(g, "llama.block_count");
    ck_assert(br_gguf_i64_layer(kv, 99, &v) && v == 1);
    ck_assert(br_gguf_f64(br_gguf_find(g, "x.f"), 0, &d));
    ck_assert_double_eq(d, 0.5);
    ck_assert_ptr_null(br_gguf_find(g, "x"));
    ck_assert_ptr_null(br_gguf_tensor_find(g, "c.weigh"));
    ck_assert(!br_gguf_i64(NULL, 0, &v));
    ck_assert_int_eq(t->type, BR_Q_Q8_0);
    ck_assert_uint_eq(t->dim[0], 32);
    ck_assert_uint_eq(t->dim[1], 4);
    ck_assert_uint_eq(t->dim[2], 1);
    ck_assert_uint_eq(t->bytes, 4 * 34);
    ck_assert_uint_eq(br_gguf_version(g), 3);
    ck_assert_uint_eq(br_gguf_bytes(g), 960);
    ck_assert_uint_eq(br_gguf_alignment(g), 32);
    ck_assert_uint_eq(br_gguf_n_splits(g), 1);
    br_gguf_close(g);
}

/* ---- memory ------------------------------------------------------------- */

static br_code
open_and_close(void *arg, br_status *st)
{
    br_gguf *g;
    br_code code = br_gguf_open(&g, arg, st);

    br_gguf_close(g);
    return code;
}

TEST(gguf_runs_out_of_memory_cleanly)
{
    t_each_oom(open_and_close,
               (void *)(uintptr_t)t_repo("tests/data/gguf/ok_base.gguf"));
}

/* A file of holes: what is in the page cache afterwards was read by us. */
TEST(gguf_opening_touches_no_weight)
{
    enum { MIB = 64 };
    const size_t size = (size_t)MIB << 20;
    char *path = t_printf("%s/hole.gguf", t_tmpdir());
    size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = size / page, in = 0;
    unsigned char *there = t_keep(calloc(pages, 1));
    br_status st = {0};
    br_gguf *g;
    uint8_t head[256] = "GGUF\3\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
    uint8_t *at = head + 24;
    uint64_t name = 1, dims[2] = {1 << 20, 15}, off = 0;
    uint32_t two = 2, f32 = 0;
    int fd;
    void *map;

    memcpy(at, &name, 8), at += 8;
    *at++ = 'w';
    memcpy(at, &two, 4), at += 4;
    memcpy(at, dims, 16), at += 16;
    memcpy(at, &f32, 4), at += 4;
    memcpy(at, &off, 8);
    t_write(path, head, sizeof head);
    ck_assert_int_eq(truncate(path, (off_t)size), 0);
    t_ok(br_gguf_open(&g, path, &st), &st);
    ck_assert_uint_eq(br_gguf_tensor_at(g, 0)->bytes, 15u << 22);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    map = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
    ck_assert(map != MAP_FAILED);
    ck_assert_int_eq(mincore(map, size, there), 0);
    for (size_t i = 0; i < pages; i++)
        in += there[i] & 1;
    munmap(map, size);
    close(fd);
    br_gguf_close(g);
    /* one fault reads ahead up to 128 KiB */
    ck_assert_uint_le(in * page, 1 << 20);
}

/* ---- paths -------------------------------------------------------------- */

TEST(gguf_part_of_a_folder_is_told_to_be_one)
{
    static const char *const bytes[] = {"", "\x08", "\x08\x01\0\0\0\0\0\0{}"};
    static const size_t n[] = {0, 1, 10};
    const char *path =
        t_printf("%s/model-00001-of-00002.safetensors", t_tmpdir());

    for (size_t i = 0; i < BR_COUNT(n); i++) {
        br_status st = {0};
        br_gguf *g;

        t_write(path, bytes[i], n[i]);
        ck_assert_int_eq(br_gguf_open(&g, path, &st), BR_E_FORMAT);
        ck_assert_str_eq(st.msg,
                         t_printf("%s: no GGUF file, but a part of a folder: "
                                  "name the folder",
                                  path));
    }
}

TEST(gguf_paths_that_are_no_files)
{
    br_status st = {0};
    br_gguf *g;

    ck_assert_int_eq(br_gguf_open(&g, "no/such/file.gguf", &st),
                     BR_E_NOT_FOUND);
    ck_assert_str_eq(st.msg, "no/such/file.gguf: cannot map: No such file or "
                             "directory");
    st = (br_status){0};
    ck_assert_int_eq(br_gguf_open(&g, t_tmpdir(), &st), BR_E_FORMAT);
    ck_assert_int_eq(br_gguf_open(&g, "/dev/null", NULL), BR_E_FORMAT);
    ck_assert_ptr_null(g);
    st = (br_status){0};
    ck_assert_int_eq(mkfifo(t_printf("%s/pipe", t_tmpdir()), 0600), 0);
    ck_assert_int_eq(br_gguf_open(&g, t_printf("%s/pipe", t_tmpdir()), &st),
                     BR_E_FORMAT);
    ck_assert_ptr_nonnull(strstr(st.msg, "a pipe or device, not a file"));
}

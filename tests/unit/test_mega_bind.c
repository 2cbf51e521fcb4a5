/* test_mega_bind.c - folders of tensors: what is read, what is refused.
 * SPDX-License-Identifier: Apache-2.0 */
#include "mega_kit.h"
#include "t.h"

#include <string.h>
#include <sys/stat.h>

#include "mega/bind.h"
#include "mega/interp.h"

enum { F32 = BR_MDT_F32 };

/* y = x + w, and a cache that takes x. */
static void
program(kit *k)
{
    int x = kit_buf(k, BR_MBK_IO_INPUT, F32, "1, 2");
    int w = kit_buf(k, BR_MBK_WEIGHT, BR_MDT_F16, "2");
    int c = kit_buf(k, BR_MBK_KV_CACHE, F32, "2, 2");
    int y = kit_buf(k, BR_MBK_IO_OUTPUT, BR_MDT_BF16, "1, 2");

    kit_task(k, "ADD", t_printf("%d, %d", x, w), t_printf("%d", y), "", "");
    kit_task(k, "KV_APPEND", t_printf("%d, %d", x, c), t_printf("%d", c),
             "\"pos\": 1", "");
    kit_load(k);
}

static const char *
folder(const char *manifest)
{
    static const float x[] = {1, 2}, w[] = {0.5f, 1.00048828125f};
    static const float c[] = {5, 6, 7, 8};
    const char *dir = t_tmpdir();

    t_write(t_printf("%s/x.bin", dir), x, sizeof x);
    t_write(t_printf("%s/w.bin", dir), w, sizeof w);
    t_write(t_printf("%s/c.bin", dir), c, sizeof c);
    t_write(t_printf("%s/manifest.json", dir), manifest, strlen(manifest));
    return dir;
}

#define XW                                                       \
    "{\"id\": 0, \"dtype\": \"F32\", \"shape\": [2], \"file\": " \
    "\"x.bin\"}, {\"id\": 1, \"dtype\": \"F32\", \"file\": \"w.bin\"}"

TEST(bind_reads_and_writes_folders)
{
    static const uint16_t y[] = {0x3fc0, 0x4040}; /* 1.5 and 3 in BF16 */
    const char *dir = folder("{\"buffers\": [" XW "]}"), *out, *text;
    float c[4];
    kit k = {0};
    size_t n;

    program(&k);
    out = t_printf("%s/out", dir);
    t_ok(br_mega_bind_dir(br_mega_vm_store(k.vm), dir, &k.st), &k.st);
    t_ok(kit_run(&k), &k.st);
    t_ok(br_mega_write_dir(br_mega_vm_store(k.vm), br_mega_vm_runner(k.vm), out,
                           &k.st),
         &k.st);
    text = t_read(t_printf("%s/3.bin", out), &n);
    ck_assert_uint_eq(n, sizeof y);
    ck_assert_mem_eq(text, y, n);
    text = t_read(t_printf("%s/2.bin", out), &n);
    ck_assert_uint_eq(n, sizeof c);
    memcpy(c, text, n);
    ck_assert(c[0] == 0.0f && c[1] == 0.0f && c[2] == 1.0f && c[3] == 2.0f);
    text = t_read(t_printf("%s/manifest.json", out), &n);
    ck_assert_str_eq(text,
                     "{\"buffers\": [{\"id\": 2, \"dtype\": \"F32\", "
                     "\"shape\": [2, 2], \"file\": \"2.bin\"}, {\"id\": 3, "
                     "\"dtype\": \"BF16\", \"shape\": [1, 2], \"file\": "
                     "\"3.bin\"}], \"exec_order\": [0, 1], \"sweeps\": 1}\n");
    /* and again over what is there */
    t_ok(br_mega_write_dir(br_mega_vm_store(k.vm), br_mega_vm_runner(k.vm), out,
                           &k.st),
         &k.st);
    kit_end(&k);
}

TEST(bind_takes_a_cache)
{
    kit k = {0};
    const char *dir = folder("{\"buffers\": [" XW ", {\"id\": 2, \"dtype\": "
                             "\"F32\", \"shape\": [2, 2], \"file\": "
                             "\"./c.bin\"}]}");

    program(&k);
    t_ok(br_mega_bind_dir(br_mega_vm_store(k.vm), dir, &k.st), &k.st);
    ck_assert_double_eq(kit_get(&k, 2, 3), 8);
    kit_end(&k);
    k = (kit){0};
    folder("{\"buffers\": [" XW ", {\"id\": 2, \"file\": null}]}");
    program(&k);
    t_ok(br_mega_bind_dir(br_mega_vm_store(k.vm), dir, &k.st), &k.st);
    ck_assert_double_eq(kit_get(&k, 2, 3), 0);
    kit_end(&k);
}

TEST(bind_refuses)
{
#define ENTRY(rest) "{\"buffers\": [{\"id\": 0, " rest "}]}"
#define X_AT(path) \
    ENTRY("\"dtype\": \"F32\", \"shape\": [2], \"file\": \"" path "\"")
    static const struct {
        const char *manifest;
        br_code code;
        const char *says;
    } bad[] = {
        {"{\"buffers\": [", BR_E_FORMAT, "line 1"},
        {"[]", BR_E_FORMAT, "no list 'buffers'"},
        {"{\"buffers\": [{\"id\": 4}]}", BR_E_FORMAT, "buffers[0]: id"},
        {"{\"buffers\": [{\"id\": \"0\"}]}", BR_E_FORMAT, "buffers[0]: id"},
        {"{\"buffers\": [{\"id\": -1}]}", BR_E_FORMAT, "buffers[0]: id"},
        {"{\"buffers\": [7]}", BR_E_FORMAT, "buffers[0]: id"},
        {"{\"buffers\": []}", BR_E_NOT_FOUND,
         "no entry for buffer #0 ('b0'), IO_INPUT"},
        {ENTRY("\"dtype\": \"F32\", \"file\": \"x.bin\""), BR_E_NOT_FOUND,
         "no entry for buffer #1 ('b1'), WEIGHT"},
        {"{\"buffers\": [" XW ", " XW "]}", BR_E_FORMAT,
         "buffers[2] (id 0): it comes twice"},
        {X_AT("../x.bin"), BR_E_FORMAT, "inside the folder"},
        {X_AT("a/../../x.bin"), BR_E_FORMAT, "inside the folder"},
        {X_AT("a/.."), BR_E_FORMAT, "inside the folder"},
        {X_AT("/etc/passwd"), BR_E_FORMAT, "inside the folder"},
        {X_AT(""), BR_E_FORMAT, "inside the folder"},
        {X_AT("x.bin\\u0000.txt"), BR_E_FORMAT, "inside the folder"},
        {X_AT("nothing.bin"), BR_E_NOT_FOUND, "nothing.bin"},
        {X_AT("c.bin"), BR_E_LIMIT, "16 bytes, the limit is 8"},
        {ENTRY("\"dtype\": \"F32\", \"file\": null"), BR_E_FORMAT, "inside"},
        {ENTRY("\"dtype\": \"F32\""), BR_E_FORMAT, "missing 'file'"},
        {ENTRY("\"dtype\": \"f32\", \"file\": \"x.bin\""), BR_E_FORMAT,
         "dtype"},
        {ENTRY("\"file\": \"x.bin\""), BR_E_FORMAT, "dtype"},
        {ENTRY("\"dtype\": \"F32\", \"shape\": [3], \"file\": \"x.bin\""),
         BR_E_FORMAT, "another shape"},
        {ENTRY("\"dtype\": \"F32\", \"shape\": [-2], \"file\": \"x.bin\""),
         BR_E_FORMAT, "negative"},
        {ENTRY("\"dtype\": \"F32\", \"shape\": [2.0], \"file\": \"x.bin\""),
         BR_E_FORMAT, "shape"},
        {ENTRY("\"dtype\": \"F32\", \"shape\": 2, \"file\": \"x.bin\""),
         BR_E_FORMAT, "shape"},
        {ENTRY("\"dtype\": \"F16\", \"shape\": [2], \"file\": \"x.bin\""),
         BR_E_LIMIT, "8 bytes, the limit is 4"},
        {ENTRY("\"dtype\": \"I32\", \"shape\": [1, 1, 2], \"file\": "
               "\"short.bin\""),
         BR_E_FORMAT, "7 bytes where 8 are expected"},
        {"{\"buffers\": [{\"id\": 3, \"dtype\": \"F32\", \"file\": "
         "\"x.bin\"}]}",
         BR_E_FORMAT, "is IO_OUTPUT: the program makes it"},
    };
    kit k = {0};

    program(&k);
    for (size_t i = 0; i < BR_COUNT(bad); i++) {
        const char *dir = folder(bad[i].manifest);
        br_code code;

        t_write(t_printf("%s/short.bin", dir), "1234567", 7);
        k.st = (br_status){0};
        code = br_mega_bind_dir(br_mega_vm_store(k.vm), dir, &k.st);
        ck_assert_msg(code == bad[i].code, "%s: %s: %s", bad[i].manifest,
                      br_code_name(code), k.st.msg);
        ck_assert_msg(strstr(k.st.msg, bad[i].says) != NULL, "%s: says: %s",
                      bad[i].manifest, k.st.msg);
        ck_assert_msg(strstr(k.st.msg, "manifest.json") != NULL, "says: %s",
                      k.st.msg);
    }
    kit_end(&k);
}

typedef struct oom {
    const char *text, *dir, *out;
} oom;

static br_code
whole_run(void *arg, br_status *st)
{
    const oom *o = arg;
    br_mega_prog *p = NULL;
    br_mega_vm *vm = NULL;
    br_code code = br_mega_load(&p, o->text, strlen(o->text), st);

    if (code == BR_OK)
        code = br_mega_vm_new(&vm, p, NULL, st);
    if (code == BR_OK)
        code = br_mega_bind_dir(br_mega_vm_store(vm), o->dir, st);
    if (code == BR_OK)
        code = br_mega_vm_run(vm, BR_MEGA_ORDER_SWEEP, 0, st);
    if (code == BR_OK)
        code = br_mega_write_dir(br_mega_vm_store(vm), br_mega_vm_runner(vm),
                                 o->out, st);
    br_mega_vm_free(vm);
    br_mega_free(p);
    return code;
}

TEST(bind_survives_every_failed_allocation)
{
    const char *dir = folder("{\"buffers\": [" XW "]}");
    oom o = {.dir = dir, .out = t_printf("%s/out", dir)};
    kit k = {0};

    program(&k);
    o.text = kit_text(&k);
    t_each_oom(whole_run, &o);
    kit_end(&k);
}

TEST(bind_says_why_it_cannot_write)
{
    const char *dir = folder("{\"buffers\": [" XW "]}");
    kit k = {0};

    program(&k);
    t_ok(br_mega_bind_dir(br_mega_vm_store(k.vm), dir, &k.st), &k.st);
    t_ok(kit_run(&k), &k.st);
    ck_assert_int_eq(br_mega_write_dir(br_mega_vm_store(k.vm),
                                       br_mega_vm_runner(k.vm),
                                       t_printf("%s/no/out", dir), &k.st),
                     BR_E_IO);
    ck_assert_ptr_nonnull(strstr(k.st.msg, "cannot make the folder"));
    kit_end(&k);
}

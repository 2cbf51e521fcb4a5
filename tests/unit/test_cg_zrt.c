/* test_cg_zrt.c - .zrt files and the cache of compiled modules.
 * SPDX-License-Identifier: Apache-2.0 */
#include "ptx_kit.h"

#include "cg/kcache.h"
#include "cg/x86/x86_pack.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

T_ONE_THREAD();

/* A module that has been through the passes, and its code. */
static br_kir *
compiled(const char *ptx, br_kcode **code)
{
    br_kir *m = ptx_load(ptx);
    br_status st = {0};

    t_ok(br_kir_optimise(m, NULL, &st), &st);
    if (br_ktarget_find("x86-64")->compile(code, m, &st) == BR_E_NO_DEVICE) {
        br_kir_free(m);
        t_skip("%s", st.msg);
    }
    ck_assert_msg(st.code == BR_OK, "%s", st.msg);
    return m;
}

static void
drop(br_kir *m, br_kcode *code)
{
    br_ktarget_find("x86-64")->free(code);
    br_kir_free(m);
}

static void
pack(br_str *out, const br_kcode *code)
{
    br_str blob = {0}, lines = {0};
    br_zrt z = {.name = BR_TEXT("all")};
    br_status st = {0};

    t_ok(br_x86_pack(&z, &blob, &lines, code, &st), &st);
    z.code = (br_text){blob.at, blob.n};
    z.debug = (br_text){lines.at, lines.n};
    t_ok(br_zrt_write(out, &z, &st), &st);
    br_zrt_fini(&z);
    br_str_fini(&blob);
    br_str_fini(&lines);
}

static br_code
unpack(const void *p, size_t n, br_kir **m, br_kcode **code, br_status *st)
{
    br_zrt z;
    br_code c = br_zrt_read(&z, p, n, st);

    if (c == BR_OK)
        c = br_x86_unpack(m, code, &z, st);
    br_zrt_fini(&z);
    return c;
}

static const char *
file_of(const char *name)
{
    return t_read(t_repo(t_printf("tests/data/ptx/%s", name)), NULL);
}

/* What comes back is the same module, with its lines, and writes the same. */
TEST(zrt_gives_the_module_back)
{
    static const char *const names[] = {"blocks.clang.ptx", "blocks.nvcc.ptx",
                                        "instructions.ptx"};

    for (size_t k = 0; k < BR_COUNT(names); k++) {
        br_str file = {0}, again = {0}, was = {0}, is = {0};
        br_kcode *code, *code2;
        br_status st = {0};
        br_kir *m = compiled(file_of(names[k]), &code), *m2;

        pack(&file, code);
        t_ok(unpack(file.at, file.n, &m2, &code2, &st), &st);
        br_kir_print(m, &was);
        br_kir_print(m2, &is);
        ck_assert_str_eq(br_str_z(&is), br_str_z(&was));
        pack(&again, code2);
        ck_assert_uint_eq(again.n, file.n);
        ck_assert(memcmp(again.at, file.at, file.n) == 0);
        drop(m2, code2);
        drop(m, code);
        br_str_fini(&file);
        br_str_fini(&again);
        br_str_fini(&was);
        br_str_fini(&is);
    }
}

/* Whatever byte is lost or changed, the file is refused: by its sum. Without
 * it, what is taken can be written again. */
TEST(zrt_refuses_what_was_damaged)
{
    br_str file = {0};
    br_kcode *code, *code2;
    br_kir *m = compiled(file_of("blocks.clang.ptx"), &code), *m2;
    size_t taken = 0, refused = 0;
    uint64_t seed = 7;

    pack(&file, code);
    for (size_t n = 0; n < file.n; n += n < 100 || n > file.n - 40 ? 1 : 977) {
        char was = file.at[n];

        refused += unpack(file.at, n, &m2, &code2, NULL) != BR_OK;
        file.at[n] ^= 0x10;
        refused += unpack(file.at, file.n, &m2, &code2, NULL) != BR_OK;
        file.at[n] = was;
        taken += 2;
    }
    /* Cut before the sum, or before the lines, it is a file without them. */
    ck_assert_msg(taken - refused <= 2, "%zu of %zu taken", taken - refused,
                  taken);
    for (int k = 0; k < 300; k++) {
        size_t n = file.n - 16, at = t_rand(&seed) % n;
        char was = file.at[at];
        br_str out = {0};

        file.at[at] = (char)t_rand(&seed);
        if (unpack(file.at, n, &m2, &code2, NULL) == BR_OK) {
            pack(&out, code2);
            drop(m2, code2);
        }
        br_str_fini(&out);
        file.at[at] = was;
    }
    drop(m, code);
    br_str_fini(&file);
}

TEST(zrt_names_the_rule)
{
    static const struct {
        unsigned at, v;
        const char *says;
    } rows[] = {
        {0, 'T', "magic"},    {4, 2, "abi version 2"},
        {6, 9, "target 0x9"}, {11, 0x7f, "longer than the file"},
        {15, 1, "entry"},     {24, 33, "32 lanes"},
        {42, 9, "64 KiB"},    {58, 9, "name"},
    };
    br_zrt z = {
        .target = BR_ZRT_X86, .code = BR_TEXT("code"), .name = BR_TEXT("k")};
    br_str file = {0};
    br_status st = {0};

    t_ok(br_zrt_write(&file, &z, &st), &st);
    for (size_t k = 0; k < BR_COUNT(rows); k++) {
        char was = file.at[rows[k].at];

        st = (br_status){0};
        file.at[rows[k].at] = (char)rows[k].v;
        ck_assert_int_ne(br_zrt_read(&z, file.at, file.n, &st), BR_OK);
        ck_assert_msg(strstr(st.msg, rows[k].says), "%s", st.msg);
        br_zrt_fini(&z);
        file.at[rows[k].at] = was;
    }
    memcpy(file.at, "TRZ", 4);
    st = (br_status){0};
    ck_assert_int_eq(br_zrt_read(&z, file.at, file.n, &st), BR_E_FORMAT);
    ck_assert_msg(strstr(st.msg, "wrong way round"), "%s", st.msg);
    br_str_fini(&file);
}

static br_code
take(void *arg, br_status *st)
{
    const br_str *file = arg;
    br_kcode *code;
    br_kir *m;
    br_code c = unpack(file->at, file->n, &m, &code, st);

    if (c == BR_OK)
        drop(m, code);
    return c;
}

TEST(zrt_reads_without_memory)
{
    static const char ptx[] = ".version 8.0\n.target sm_80\n.address_size 64\n"
                              ".const .u32 c = 3;\n.global .u64 at = c;\n"
                              ".entry k(.param .u64 p) { .reg .b64 %d; .reg "
                              ".b32 %r;\nld.param.u64 %d,[p]; ld.const.u32 "
                              "%r,[c]; st.global.u32 [%d],%r; foo; ret; }\n";
    br_str file = {0};
    br_kcode *code;
    br_kir *m = compiled(ptx, &code);

    pack(&file, code);
    t_each_oom(take, &file);
    drop(m, code);
    br_str_fini(&file);
}

/* ---- the command line ----------------------------------------------------- */

static const char scale[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".const .u32 factor = 3;\n"
    ".func (.param .u32 o) twice(.param .u32 x)\n{\n.reg .b32 %r;\n"
    "ld.param.u32 %r,[x];\nadd.u32 %r,%r,%r;\nst.param.u32 [o],%r;\nret;\n}\n"
    ".entry other(.param .u64 p)\n{\nret;\n}\n"
    ".entry scale(.param .u64 p, .param .u32 n)\n{\n.reg .b32 %r<9>;\n"
    ".reg .b64 %d<5>;\nld.param.u64 %d0,[p];\nmov.u32 %r1,%tid.x;\n"
    "mul.wide.u32 %d1,%r1,4;\nadd.u64 %d1,%d1,%d0;\nld.const.u32 "
    "%r5,[factor];\n"
    "ld.param.u32 %r4,[n];\nmul.lo.u32 %r4,%r4,%r5;\n"
    "{\n.param .u32 a;\n.param .u32 b;\nst.param.u32 [a],%r4;\n"
    "call (b),twice,(a);\nld.param.u32 %r4,[b];\n}\n"
    "st.global.u32 [%d1],%r4;\nret;\n}\n";

static uint32_t
run_scale(const char *file, const char *out, const char *slot)
{
    t_proc r;
    uint32_t v;

    t_run(&r, "kernel", "run", file, "--block", "40", "--arg",
          t_printf("buf:%s:out=160", out), "--arg", "u32:5", "--slot", slot);
    ck_assert_msg(r.exit == 0, "%s", r.err);
    memcpy(&v, t_read(out, NULL) + 156, 4);
    return v;
}

TEST(zrt_runs_and_is_patched)
{
    const char *dir = t_tmpdir(), *ptx = t_printf("%s/x.ptx", dir);
    const char *zrt = t_printf("%s/x.zrt", dir), *out = t_printf("%s/o", dir);
    t_proc r;

    t_write(ptx, scale, sizeof scale - 1);
    t_run(&r, "kernel", "compile", ptx, "-o", zrt);
    if (r.exit == 5)
        t_skip("%s", r.err);
    ck_assert_msg(r.exit == 2 && strstr(r.err, "holds 2 kernels"), "%s", r.err);
    t_run(&r, "kernel", "compile", ptx, "--entry", "scale", "-o", zrt,
          "--debug-info");
    ck_assert_msg(r.exit == 0, "%s", r.err);
    ck_assert_uint_eq(run_scale(zrt, out, "factor=u32:3"), 30);
    ck_assert_uint_eq(run_scale(zrt, out, "factor=u32:7"), 70);
    t_run(&r, "kernel", "inspect", zrt, "--json");
    ck_assert_msg(r.exit == 0, "%s", r.err);
    ck_assert_msg(
        strstr(r.out, "\"gpu_target\": \"x86-64\", \"name\": \"scale\"") &&
            strstr(r.out, "\"buffers\": 1, \"push_const_bytes\": 4, "
                          "\"subgroup_size\": 32") &&
            strstr(r.out, "\"slots\": [{\"name\": \"factor\"") &&
            strstr(r.out, "\"kernels\": [{\"name\": \"scale\""),
        "%s", r.out);
    /* A fault names the line that the file kept. */
    t_run(&r, "kernel", "run", zrt, "--block", "40", "--arg",
          t_printf("buf:%s:out=16", out), "--arg", "u32:5");
    ck_assert_msg(r.exit == 1 && strstr(r.err, "line 35"), "%s", r.err);
    t_run(&r, "kernel", "run", zrt, "--arg", "raw:0000000000000000", "--arg",
          "u32:1", "--slot", "nothing=u32:3");
    ck_assert_msg(r.exit == 3 && strstr(r.err, "no such slot"), "%s", r.err);
    t_run(&r, "kernel", "compile", ptx, "--entry", "scale", "-o", zrt,
          "--target", "kir");
    ck_assert_int_eq(r.exit, 2);
}

TEST(zrt_holds_code_for_amd)
{
    const char *dir = t_tmpdir(), *ptx = t_printf("%s/x.ptx", dir);
    const char *zrt = t_printf("%s/x.zrt", dir), *co = t_printf("%s/x.co", dir);
    t_proc r;

    t_write(ptx, scale, sizeof scale - 1);
    t_run(&r, "kernel", "compile", ptx, "--entry", "scale", "--target",
          "gfx1201", "-o", zrt);
    ck_assert_msg(r.exit == 0, "%s", r.err);
    t_run(&r, "kernel", "inspect", zrt);
    ck_assert_msg(strstr(r.out, "zrt      gfx1201, scale") &&
                      strstr(r.out, " vgprs, "),
                  "%s%s", r.out, r.err);
    t_run(&r, "kernel", "inspect", zrt, "-o", co);
    ck_assert_msg(r.exit == 0, "%s", r.err);
    t_run(&r, "gcn", "disasm", co);
    ck_assert_msg(r.exit == 0 && strstr(r.out, "s_endpgm"), "%s", r.err);
    t_run(&r, "kernel", "run", zrt, "--arg", "u64:0", "--arg", "u32:0");
    ck_assert_msg(r.exit == 1 && strstr(r.err, "code for gfx1201"), "%s",
                  r.err);
}

/* ---- the cache ------------------------------------------------------------ */

static bool
found(const br_kcache *c, const char *key)
{
    br_kcode *code;
    br_kir *m;
    bool ok = br_kcache_find(c, key, &m, &code);

    if (ok)
        drop(m, code);
    return ok;
}

TEST(kernel_cache_keeps_what_is_whole)
{
    const char *folder = t_printf("%s/a/kernels", t_tmpdir()), *path;
    br_kcache c = {folder, 1 << 20};
    char key[2][BR_KCACHE_KEY], *bytes;
    br_kcode *code;
    br_kir *m = compiled(scale, &code);
    size_t n, keep;

    ck_assert(br_kcache_key(key[0], scale, sizeof scale));
    ck_assert(br_kcache_key(key[1], scale, sizeof scale - 1));
    ck_assert_str_ne(key[0], key[1]);
    ck_assert(!found(&c, key[0]));
    br_kcache_keep(&c, key[0], code);
    ck_assert(found(&c, key[0]));
    ck_assert(!found(&c, key[1]));
    path = t_printf("%s/%s.zrt", folder, key[0]);
    bytes = t_read(path, &n);
    for (size_t k = 0; k < 20; k++) { /* damaged, or cut short */
        size_t at = n * k / 20;

        bytes[at] ^= 1;
        t_write(path, bytes, n);
        ck_assert(!found(&c, key[0]));
        bytes[at] ^= 1;
        t_write(path, bytes, at);
        ck_assert(!found(&c, key[0]));
    }
    br_kcache_keep(&c, key[0], code);
    ck_assert(found(&c, key[0]));
    /* Another module's file under this name. */
    ck_assert_int_eq(rename(path, t_printf("%s/%s.zrt", folder, key[1])), 0);
    ck_assert(!found(&c, key[1]));
    /* Files that others may write are nobody's. */
    br_kcache_keep(&c, key[0], code);
    ck_assert_int_eq(chmod(path, 0666), 0);
    ck_assert(!found(&c, key[0]));
    ck_assert_int_eq(chmod(path, 0600), 0);
    ck_assert(found(&c, key[0]));
    ck_assert_int_eq(chmod(folder, 0777), 0);
    ck_assert(!found(&c, key[0]));
    ck_assert_int_eq(chmod(folder, 0700), 0);
    /* A place for two: the one that was used longest ago goes. */
    keep = n;
    c.most = 2 * keep + keep / 2;
    br_kcache_keep(&c, key[1], code);
    usleep(20000);
    ck_assert(found(&c, key[0]));
    br_kcache_keep(&c, "00", code);
    ck_assert(found(&c, key[0]));
    ck_assert(!found(&c, key[1]));
    ck_assert_uint_eq(br_folder_trim(folder, ".zrt", 0, NULL, NULL).files, 0);
    drop(m, code);
}

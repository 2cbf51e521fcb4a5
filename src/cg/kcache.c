/* kcache.c - compiled modules on disk.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/kcache.h"

#include "base/hash.h"
#include "cg/x86/x86_int.h"
#include "cg/x86/x86_pack.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool
br_kcache_key(char key[BR_KCACHE_KEY], const void *ptx, size_t n)
{
    char needs[] = " avx2 fma f16c";
    uint8_t sum[BR_BLAKE2B_BYTES];
    char all[200];
    size_t at = BR_BLAKE2B_BYTES;

    key[0] = 0;
    if (strcmp(br_x86_build, "unknown") == 0)
        return false;
    if (x86_has_zmm())
        memcpy(needs, " avx512", sizeof " avx512");
    br_blake2b(ptx, n, (uint8_t *)all);
    br_check(at + strlen(br_x86_build) + sizeof needs <= sizeof all);
    memcpy(all + at, br_x86_build, strlen(br_x86_build));
    at += strlen(br_x86_build);
    memcpy(all + at, needs, sizeof needs);
    br_blake2b(all, at + sizeof needs, sum);
    br_hex(sum, sizeof sum, key);
    return true;
}

/* Ours, and nobody else may write it. */
static bool
is_ours(const char *path)
{
    struct stat s;

    return stat(path, &s) == 0 && s.st_uid == geteuid() &&
           !(s.st_mode & (S_IWGRP | S_IWOTH));
}

static bool
name_file(const br_kcache *c, const char *key, br_str *path)
{
    if (!c->folder || !c->most || !is_ours(c->folder))
        return false;
    br_str_printf(path, "%s/%s.zrt", c->folder, key);
    return !path->oom;
}

bool
br_kcache_find(const br_kcache *c, const char *key, br_kir **m, br_kcode **code)
{
    br_str path = {0};
    char *bytes = NULL;
    br_zrt z;
    size_t n = 0;
    bool ok =
        name_file(c, key, &path) && is_ours(path.at) &&
        br_file_read(path.at, BR_ZRT_MAX_BYTES, &bytes, &n, NULL) == BR_OK;

    *m = NULL;
    *code = NULL;
    if (ok) {
        ok = br_zrt_read(&z, bytes, n, NULL) == BR_OK && z.summed &&
             z.target == BR_ZRT_X86 && br_text_is(z.name, key) &&
             br_x86_unpack(m, code, &z, NULL) == BR_OK;
        br_zrt_fini(&z);
    }
    if (ok)
        (void)utimensat(AT_FDCWD, path.at, NULL, 0); /* used now */
    br_free(bytes);
    br_str_fini(&path);
    return ok;
}

/* No sync: what a crash of the machine leaves has not its sum. */
static void
write_file(const char *path, const br_str *file)
{
    br_out o;
    uint8_t *p;

    if (br_out_begin(&o, path, NULL) != BR_OK)
        return;
    if (br_out_map(&o, file->n, &p, NULL) != BR_OK) {
        br_out_drop(&o);
        return;
    }
    memcpy(p, file->at, file->n);
    (void)!br_out_end(&o, NULL);
    br_file_unmap(p, file->n);
}

void
br_kcache_keep(const br_kcache *c, const char *key, const br_kcode *code)
{
    br_str path = {0}, file = {0}, blob = {0}, lines = {0};
    br_zrt z = {.name = br_text_z(key)};
    bool ok = false;

    if (c->folder && c->most) {
        br_str_puts(&path, c->folder);
        (void)br_folder_make(&path);
        br_str_clear(&path);
        ok = name_file(c, key, &path) &&
             br_x86_pack(&z, &blob, &lines, code, NULL) == BR_OK;
    }
    z.code = (br_text){blob.at, blob.n};
    z.debug = (br_text){lines.at, lines.n};
    if (ok && br_zrt_write(&file, &z, NULL) == BR_OK && file.n <= c->most) {
        (void)br_folder_trim(c->folder, ".zrt", c->most - file.n, NULL, NULL);
        write_file(path.at, &file);
    }
    br_zrt_fini(&z);
    br_str_fini(&lines);
    br_str_fini(&blob);
    br_str_fini(&file);
    br_str_fini(&path);
}

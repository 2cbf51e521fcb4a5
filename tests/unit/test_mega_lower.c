/* test_mega_lower.c - the lowering: the reference's bytes, and the effect of
 * every field of a config. The rest: test_mega_net.c, test_mega_assign.c.
 * SPDX-License-Identifier: Apache-2.0 */
#include "t.h"

#include <string.h>

#include "base/hash.h"
#include "lower_make.h"
#include "mega/assign.h"
#include "mega/lower.h"

/* ---- the reference's bytes ------------------------------------------------- */

static void
vector_is_byte_exact(const char *dir, const br_json *entry)
{
    br_status st = {0};
    const br_json *file = br_json_get(entry, "file");
    br_mega_prog *p = lm_spec(br_json_get(entry, "lower_spec"), &st);
    br_str got = {0};
    char *want;
    size_t n;

    if (!p)
        ck_abort_msg("%s: %s", file->s, st.msg);
    want = t_read(t_printf("%s/%s", dir, file->s), &n);
    t_ok(br_mega_save(p, &got, &st), &st);
    if (got.n != n || memcmp(got.at, want, n) != 0)
        ck_abort_msg("%s: bytes differ", file->s);
    br_str_fini(&got);
    br_mega_free(p);
}

TEST(lower_amk_reproduces_every_vector)
{
    const char *dir = t_vectors("amk");
    const br_json *m = lm_manifest();
    int n = 0;

    if (!m)
        t_skip("no ../shared/vectors here");
    for (const br_json *e = br_json_get(m, "valid")->child; e; e = e->next) {
        if (!br_json_get(e, "lower_spec"))
            continue;
        vector_is_byte_exact(dir, e);
        n++;
    }
    ck_assert_int_ge(n, 10);
    lm_manifest_done();
}

TEST(lower_amk_reproduces_every_digest)
{
    const br_json *m = lm_manifest();
    int n = 0;

    if (!m)
        t_skip("no ../shared/vectors here");
    for (const br_json *e = br_json_get(m, "lower_digests")->child; e;
         e = e->next, n++) {
        const br_json *want =
            br_json_get(br_json_get(e, "expected"), "sha256_to_json");
        br_status st = {0};
        br_mega_prog *p = lm_spec(br_json_get(e, "lower_spec"), &st);
        char hex[BR_SHA256_HEX];
        br_str got = {0};

        if (!p)
            ck_abort_msg("%s: %s", br_json_get(e, "id")->s, st.msg);
        t_ok(br_mega_save(p, &got, &st), &st);
        br_sha256_hex(got.at, got.n, hex);
        if (strcmp(hex, want->s) != 0)
            ck_abort_msg("%s: %s, not %s", br_json_get(e, "id")->s, hex,
                         want->s);
        br_str_fini(&got);
        br_mega_free(p);
    }
    ck_assert_int_ge(n, 5);
    lm_manifest_done();
}

/* test_mega_load_vectors.c - load and save against the shared manifest: which
 * texts load, and the digest of what the reference writes for each.
 * SPDX-License-Identifier: Apache-2.0 */
#include "t.h"

#include "base/hash.h"
#include "prog_text.h"

#include <stdlib.h>
#include <string.h>

T_ONE_THREAD();

static br_json *
manifest(br_arena *a, const char **root)
{
    br_status st = {0};
    br_json *m;
    size_t n;
    char *text;

    *root = t_vectors("amk");
    if (!*root)
        t_skip("no ../shared/vectors here");
    text = t_read(t_printf("%s/manifest.json", *root), &n);
    br_arena_init(a, 0);
    t_ok(br_json_parse(&m, a, text, n, 0, &st), &st);
    return m;
}

static const br_json *
at(const br_json *v, const char *path)
{
    char *s = t_printf("%s", path), *save, *key;

    for (key = strtok_r(s, ".", &save); key; key = strtok_r(NULL, ".", &save))
        v = br_json_get(v, key);
    return v;
}

/* Saves into hex; -1 when the text does not load. Returns the misfits. */
static int
digest(const char *text, size_t n, char hex[65], br_status *st)
{
    br_mega_prog *p;
    br_str out = {0};
    int misfits;

    if (br_mega_load(&p, text, n, st) != BR_OK)
        return -1;
    t_ok(br_mega_save(p, &out, st), st);
    br_sha256_hex(out.at, out.n, hex);
    br_str_fini(&out);
    misfits = (int)p->n_misfits;
    br_mega_free(p);
    return misfits;
}

/* "line 3 column 7: ..", "tasks[3].waits[0]: ..", "ir_version: .." */
static bool
names_a_place(const char *msg)
{
    static const char *const places[] = {
        "line ",       "buffers",      "counters",      "tasks",
        "pages",       "target",       "config",        "meta",
        "ir_version:", "abi_version:", "task program:",
    };

    for (size_t i = 0; i < BR_COUNT(places); i++)
        if (strncmp(msg, places[i], strlen(places[i])) == 0)
            return strchr(msg, ':') != NULL;
    return false;
}

static void
check_file(const br_json *e, const char *root)
{
    const char *id = at(e, "id")->s;
    size_t n;
    char hex[65];
    char *text = t_read(t_printf("%s/%s", root, at(e, "file")->s), &n);
    br_status st = {0};
    bool loads = at(e, "verdict.load.ok")->b;
    int misfits = digest(text, n, hex, &st);

    if (!loads) {
        ck_assert_msg(misfits < 0, "%s loads", id);
        ck_assert_msg(names_a_place(st.msg), "%s: %s", id, st.msg);
        return;
    }
    ck_assert_msg(misfits >= 0, "%s: %s", id, st.msg);
    ck_assert_msg(strcmp(hex, at(e, "verdict.canonical_sha256")->s) == 0,
                  "%s: other bytes", id);
    /* What only the type lets pass must not look like an ordinary value. */
    if (strstr(id, "_type_") && at(e, "expect") &&
        strncmp(at(e, "expect")->s, "either", 6) == 0)
        ck_assert_msg(misfits > 0, "%s: no misfit", id);
}

TEST(mega_load_judges_every_shared_file_as_the_reference)
{
    static const char *const groups[] = {"valid", "invalid", "gaps"};
    const char *root;
    br_arena a;
    br_json *m = manifest(&a, &root);
    int n = 0;

    for (size_t g = 0; g < BR_COUNT(groups); g++)
        for (const br_json *e = at(m, groups[g])->child; e; e = e->next, n++)
            check_file(e, root);
    ck_assert_int_ge(n, 269);
    br_arena_fini(&a);
}

/* ---- the families too big to store -------------------------------------- */

#define TARGET_KEYS                                                            \
    "\"target\":{\"name\":\"rtx5090\",\"sm_arch\":120,\"num_sms\":82,"         \
    "\"smem_bytes_per_sm\":102400,\"smem_bytes_per_block_optin\":101376,"      \
    "\"regs_per_sm\":65536,\"max_threads_per_sm\":2048,"                       \
    "\"max_regs_per_thread\":255,\"l2_bytes\":67108864,"                       \
    "\"hbm_bytes\":25769803776,\"hbm_bandwidth_gbs\":896.0,"                   \
    "\"fp16_tflops\":210.0,\"clock_ghz\":1.597,\"supports_cooperative\":true," \
    "\"wddm_tdr\":true,\"measured_bw_gbs\":731.0,\"note\":"

/* The note of the reference's target is taken from a program it wrote. */
static br_text
target_note(void)
{
    br_status st = {0};
    br_mega_prog *p;
    br_json_writer w;
    br_str s = {0};
    br_text t;

    t_ok(br_mega_load_file(&p, t_repo("tests/data/amk/valid/v001_nop.json"),
                           &st),
         &st);
    br_json_w_begin(&w, &s, 0);
    br_json_w_tree(&w, p->target[BR_MT_note]);
    t = br_text_z(t_printf("%s", s.at));
    br_str_fini(&s);
    br_mega_free(p);
    return t;
}

TEST(mega_load_writes_the_generated_families)
{
    const char *root;
    br_arena a;
    br_json *m = manifest(&a, &root);
    int done = 0;

    for (const br_json *e = at(m, "generated")->child; e; e = e->next) {
        const char *family = at(e, "family")->s;
        int n = (int)at(e, "n")->i;
        bool fanin = strcmp(family, "gemv_fanin") == 0;
        br_status st = {0};
        br_str s = {0};
        char hex[65];

        br_str_printf(&s, "{\"meta\":{\"model\":\"%s\",\"gpu\":\"rtx5090\"},",
                      fanin ? "fanin" : "ring");
        br_str_printf(&s, "%s%s},", TARGET_KEYS, target_note().p);
        pt_family(&s, family, n);
        br_str_puts(&s, "}");
        ck_assert_int_eq(digest(s.at, s.n, hex, &st), 0);
        if (strcmp(hex, at(e, "sha256_to_json")->s) != 0)
            ck_abort_msg("%s: other bytes", at(e, "id")->s);
        br_str_fini(&s);
        done++;
    }
    ck_assert_int_ge(done, 6);
    br_arena_fini(&a);
}

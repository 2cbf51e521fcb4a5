/* test_cg_x86_random.c - random kernels: machine code gives the interpreter's
 * memory. `make fuzz F=x86` makes more of them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "ptx_kit.h"
#include "ptx_random.h"

TEST(x86_random_kernels_are_as_interpreted)
{
    const br_ktarget *t = br_ktarget_find("x86-64");
    int n = t_sanitized() ? 30 : 300;

    for (uint64_t seed = 1; seed <= (uint64_t)n; seed++) {
        br_str s = {0};
        br_status st = {0};
        const char *err;
        br_kir *m;

        ptx_random(&s, seed);
        m = ptx_load(s.at);
        ck_assert_msg(m->notes.n == 0, "seed %d: %.*s", (int)seed,
                      (int)m->notes.at[0].text.n, m->notes.at[0].text.p);
        if (seed % 2)
            t_ok(br_kir_optimise(m, NULL, &st), &st);
        err = pr_compare(m, t);
        if (err && strstr(err, "needs a processor"))
            t_skip("%s", err);
        ck_assert_msg(!err, "seed %d: %s\n%s", (int)seed, err, s.at);
        br_kir_free(m);
        br_str_fini(&s);
    }
}

/* fuzz_x86.c - any number as a random kernel: machine code gives the memory that
 * the interpreter gives, and the passes change none of it. No parser: the bytes are the seed.
 * SPDX-License-Identifier: Apache-2.0 */
#define PR_MORE
#define PR_APPROX
#include "../unit/ptx_random.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The passes leave what the kernel computes by itself. */
static void
optimise(br_kir *m, uint64_t seed, const char *text)
{
    static uint8_t want[PR_OUT], got[PR_OUT];
    const br_ktarget *interp = br_ktarget_find("interp");
    br_status st = {0};
    br_code code;

    pr_shape = 1 + seed % 97;
    code = pr_run(interp, m, want, &st);
    br_check(br_kir_optimise(m, NULL, &st) == BR_OK);
    if (code == BR_OK && !pr_meets(text) &&
        (pr_run(interp, m, got, &st) != BR_OK ||
         memcmp(want, got, PR_OUT) != 0)) {
        fprintf(stderr, "%s\n%s", st.msg, text);
        br_panic_at(__FILE__, __LINE__, "passes change what is computed");
    }
    pr_shape = 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t seed = size;
    br_status st = {0};
    br_str s = {0};
    const char *err;
    br_kir *m;

    for (size_t k = 0; k < size && k < 64; k++)
        seed = seed * 1099511628211u + data[k];
    if (size % 3 == 1)
        ptx_line(&s, seed);
    else if (size % 3 == 2)
        ptx_plane(&s, seed);
    else
        ptx_random(&s, seed);
    br_check(br_ptx_parse(&m, s.at, s.n, NULL, &st) == BR_OK);
    if (seed % 2)
        optimise(m, seed, s.at);
    err = pr_compare(m, br_ktarget_find("x86-64"));
    if (!err && seed & 4)
        err = pr_compare(m, br_ktarget_find("x86-64-avx2"));
    if (err && !strstr(err, "needs a processor")) {
        fprintf(stderr, "%s\n%s", err, s.at);
        br_panic_at(__FILE__, __LINE__,
                    "machine code and interpreter do not agree");
    }
    br_kir_free(m);
    br_str_fini(&s);
    return 0;
}

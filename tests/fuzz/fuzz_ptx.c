/* fuzz_ptx.c - PTX, its passes, and a launch of its first kernel.
 *
 * What is read prints and parses to the same text; it runs with all checks for
 * a bounded time, on a buffer that its pointers may or may not hit.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/kinterp.h"
#include "cg/ptx/ptx.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void
ignore(void *arg, const char *text)
{
    (void)arg;
    (void)text;
}

static void
launch(const br_kir *m)
{
    static uint8_t buf[256], params[4096];
    uint64_t at = 0x100000000;
    br_kregion g = {at, sizeof buf, buf, false, "buf"};
    br_klaunch l = {.grid = {2, 1, 1},
                    .block = {6, 1, 1},
                    .params = params,
                    .regions = &g,
                    .n_regions = 1,
                    .check = true,
                    .finding = ignore,
                    .max_steps = 300};
    br_kimage *im;

    while (l.fn < m->fns.n &&
           (!m->fns.at[l.fn].entry || m->fns.at[l.fn].external))
        l.fn++;
    if (l.fn == m->fns.n || m->fns.at[l.fn].param_bytes > sizeof params)
        return;
    /* Variables of half a gigabyte are legal and not worth the time. */
    for (size_t k = 0; k < m->vars.n; k++)
        if (m->vars.at[k].bytes > 1 << 20)
            return;
    if (m->fns.at[l.fn].vals.n > 4000 || br_kimage_new(&im, m, NULL) != BR_OK)
        return;
    memset(buf, 0, sizeof buf);
    for (size_t k = 0; k + 8 <= sizeof params; k += 8)
        memcpy(params + k, &at, 8);
    l.image = im;
    if (br_kinterp_run(&l, NULL) != BR_OK)
        l.findings = 0;
    br_kimage_free(im);
}

static void
round_trip(br_kir *m)
{
    br_str a = {0}, b = {0};
    br_kir *again;

    br_kir_print(m, &a);
    if (br_kir_parse(&again, a.at, a.n, NULL) != BR_OK)
        abort();
    br_kir_print(again, &b);
    if (a.n != b.n || memcmp(a.at, b.at, a.n) != 0)
        abort();
    br_kir_free(again);
    br_str_fini(&a);
    br_str_fini(&b);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    char *copy = br_try_alloc(n + 1);
    br_kir *m;

    if (!copy)
        return 0;
    memcpy(copy, p, n);
    if (br_ptx_parse(&m, copy, n, NULL, NULL) == BR_OK) {
        round_trip(m);
        if (br_kir_optimise(m, NULL, NULL) != BR_OK)
            abort();
        round_trip(m);
        launch(m);
        br_kir_free(m);
    }
    br_free(copy);
    return 0;
}

/* fuzz_kir.c - kernel IR as text, and the passes over it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/kir.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    br_str a = {0}, b = {0};
    char *copy = br_try_alloc(n + 1);
    br_kir *m, *again;

    if (!copy)
        return 0;
    memcpy(copy, p, n);
    if (br_kir_parse(&m, copy, n, NULL) == BR_OK) {
        br_kir_print(m, &a);
        if (br_kir_parse(&again, a.at, a.n, NULL) != BR_OK)
            abort();
        br_kir_print(again, &b);
        if (a.n != b.n || memcmp(a.at, b.at, a.n) != 0)
            abort();
        if (br_kir_optimise(m, NULL, NULL) != BR_OK)
            abort();
        br_kir_free(again);
        br_kir_free(m);
        br_str_fini(&a);
        br_str_fini(&b);
    }
    br_free(copy);
    return 0;
}

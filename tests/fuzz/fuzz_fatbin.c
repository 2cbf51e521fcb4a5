/* fuzz_fatbin.c - fat binaries: never a byte beyond what is there.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cuda/cuda_int.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    uint8_t *copy = br_try_alloc(n);
    char *owned = NULL;
    br_text t;

    if (!n || !copy) {
        br_free(copy);
        return 0;
    }
    memcpy(copy, p, n);
    if (br_fatbin_ptx(copy, n, &t, &owned, NULL) == BR_OK) {
        volatile char sum = 0;

        for (size_t k = 0; k < t.n; k++)
            sum = (char)(sum + t.p[k]);
    }
    br_free(owned);
    br_free(copy);
    return 0;
}

/* fuzz_ptx_join.c - files of PTX, with a NUL between them, as one.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cuda/ptx_join.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    enum { FILES = 8 };
    br_text files[FILES];
    char *copy[FILES] = {NULL};
    size_t k = 0;
    br_str s = {0};
    br_status st = {0};

    for (size_t at = 0; at < n && k < FILES; k++) {
        const uint8_t *end = memchr(p + at, 0, n - at);
        size_t len = end ? (size_t)(end - p) - at : n - at;

        copy[k] = br_alloc(len ? len : 1); /* each ends where it ends */
        memcpy(copy[k], p + at, len);
        files[k] = (br_text){copy[k], len};
        at += len + 1;
    }
    if (br_ptx_join(files, k, &s, &st) == BR_OK)
        br_check(!s.oom);
    br_str_fini(&s);
    while (k--)
        br_free(copy[k]);
    return 0;
}

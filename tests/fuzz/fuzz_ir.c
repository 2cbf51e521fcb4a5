/* fuzz_ir.c - graphs as text and as bytes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "ir/ir.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void
text_round_trip(const char *p, size_t n)
{
    br_str a = {0}, b = {0};
    br_ir *g, *again;

    if (br_ir_parse(&g, p, n, NULL) != BR_OK)
        return;
    br_ir_print(g, &a);
    if (br_ir_parse(&again, a.at, a.n, NULL) != BR_OK)
        abort();
    br_ir_print(again, &b);
    if (a.n != b.n || memcmp(a.at, b.at, a.n) != 0)
        abort();
    br_str_fini(&a);
    br_str_fini(&b);
    br_ir_free(g);
    br_ir_free(again);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    void *copy = br_try_alloc(n + 8);
    br_ir *g;

    if (!copy)
        return 0;
    memcpy(copy, p, n);
    if (n >= 4 && memcmp(p, "BRIR", 4) == 0) {
        if (br_ir_map(&g, copy, n, NULL) == BR_OK) {
            br_str text = {0};

            br_ir_print(g, &text);
            br_str_fini(&text);
            br_ir_free(g);
        }
    } else {
        text_round_trip(copy, n);
    }
    br_free(copy);
    return 0;
}

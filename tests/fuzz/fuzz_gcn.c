/* fuzz_gcn.c - AMD machine code: words to text to words, lines to words.
 *
 * First byte: the processor, then lines of assembly up to a NUL, then words.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/gcn/gcn.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void
words(const br_gcn_isa *isa, const uint8_t *p, size_t n)
{
    br_gcn_inst in, back;
    uint32_t w[BR_GCN_MAX_WORDS];

    for (size_t at = 0; at + 4 <= n; at += 4) {
        size_t take = BR_MIN(n - at, sizeof w);
        br_str text = {0};

        memset(w, 0, sizeof w);
        memcpy(w, p + at, take);
        if (br_gcn_decode(isa, w, take / 4, &in)) {
            br_gcn_print(isa, &in, &text);
            if (br_gcn_parse(isa, text.at, text.n, &back, NULL) != BR_OK)
                abort();
            br_str_fini(&text);
        }
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    br_gcn_isa isa;
    const uint8_t *nul;
    size_t n_text;
    br_gcn_inst in;

    if (n < 2)
        return 0;
    isa.cpu = br_gcn_cpu_at(p[0] % 9);
    isa.wave64 = p[0] & 128;
    nul = memchr(p + 1, 0, n - 1);
    n_text = nul ? (size_t)(nul - p - 1) : n - 1;
    for (const char *l = (const char *)p + 1, *end = l + n_text; l < end;) {
        const char *e = memchr(l, '\n', (size_t)(end - l));

        e = e ? e : end;
        if (br_gcn_parse(&isa, l, (size_t)(e - l), &in, NULL) == BR_OK)
            words(&isa, (const uint8_t *)in.w, in.words * 4u);
        l = e + 1;
    }
    if (nul)
        words(&isa, nul + 1, (size_t)(p + n - nul - 1));
    return 0;
}

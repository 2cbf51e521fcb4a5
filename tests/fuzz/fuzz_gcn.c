/* fuzz_gcn.c - AMD machine code: words to text to words, lines to words.
 *
 * First byte: the processor, and 128 for 64 lanes. With 64: records of 22 bytes,
 * the number of a row and words, whose format and opcode are set to the row's: what
 * changes is an operand. Else lines of assembly up to a NUL, then words.
 *
 * What is an instruction prints, and what is printed is one again: of the same
 * words, but for literals, and of the same text. A mask of ds_swizzle_b32 says
 * what lanes get, for which there are several words (bits set, bits turned), with
 * LLVM as well, and a small literal of a double is written as a constant: it holds
 * for what is written of them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/gcn/isa.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

/* A double's literal of 1 to 64 is its upper half, and LLVM's text of it, 0x2, is
 * read as the constant 2. */
static bool
is_ambiguous(const br_gcn_inst *in)
{
    uint32_t lit = in->ext == BR_EXT_LIT ? in->w[in->words - 1] : 0;

    return (lit >= 1 && lit <= 64) ||
           strcmp(in->row->name, "ds_swizzle_b32") == 0;
}

/* Text, then the words of the text, then their text. */
static void
there_and_back(const br_gcn_isa *isa, const br_gcn_inst *in, bool written)
{
    bool exact = written || !is_ambiguous(in);
    br_gcn_inst back, again;
    br_str text = {0}, other = {0};

    br_gcn_print(isa, in, &text);
    if (br_gcn_parse(isa, text.at, text.n, &back, NULL) != BR_OK)
        abort();
    /* A literal may be a constant that needs no word, or of 16 bits; v_nop says
     * nothing of its format. */
    if (exact && in->ext != BR_EXT_LIT && in->row->o[0].kind != BR_GK_END &&
        (back.words != in->words || memcmp(back.w, in->w, in->words * 4u) != 0))
        abort();
    if (!br_gcn_decode(isa, back.w, back.words, &again) ||
        again.words != back.words)
        abort();
    br_gcn_print(isa, &again, &other);
    if (!exact)
        there_and_back(isa, &again, true);
    else if (text.n != other.n || memcmp(text.at, other.at, text.n) != 0)
        abort();
    br_str_fini(&text);
    br_str_fini(&other);
}

static void
words(const br_gcn_isa *isa, const uint8_t *p, size_t n)
{
    br_gcn_inst in;
    uint32_t w[BR_GCN_MAX_WORDS];

    for (size_t at = 0; at + 4 <= n; at += 4) {
        size_t take = BR_MIN(n - at, sizeof w);

        memset(w, 0, sizeof w);
        memcpy(w, p + at, take);
        if (br_gcn_decode(isa, w, take / 4, &in))
            there_and_back(isa, &in, false);
    }
}

/* Sets what makes the words an instruction of a row. */
static void
make(const br_gcn_row *row, uint32_t w[BR_GCN_MAX_WORDS])
{
    const br_gcn_format *f = &br_gcn_formats[row->fmt];

    w[0] = (w[0] & ~f->mask) | f->value;
    for (unsigned b = f->op_lo; b < f->op_end; b++) {
        uint32_t bit = row->op >> (b - f->op_lo) & 1;

        w[b / 32] = (w[b / 32] & ~(1u << b % 32)) | bit << b % 32;
    }
}

static void
records(const br_gcn_isa *isa, const uint8_t *p, size_t n)
{
    enum { RECORD = 2 + BR_GCN_MAX_WORDS * 4 };
    size_t n_rows;
    const br_gcn_row *rows = br_gcn_rows(isa->cpu, &n_rows);

    for (; n >= RECORD; p += RECORD, n -= RECORD) {
        const br_gcn_row *row = &rows[(p[0] | p[1] << 8) % n_rows];
        uint32_t w[BR_GCN_MAX_WORDS];
        br_gcn_inst in;

        memcpy(w, p + 2, sizeof w);
        if (!br_gcn_row_here(isa->cpu, row))
            continue;
        make(row, w);
        if (br_gcn_decode(isa, w, BR_GCN_MAX_WORDS, &in))
            there_and_back(isa, &in, false);
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
    isa.cpu = br_gcn_cpu_at((p[0] & 63) % 9);
    isa.wave64 = p[0] & 128;
    if (p[0] & 64) {
        records(&isa, p + 1, n - 1);
        return 0;
    }
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

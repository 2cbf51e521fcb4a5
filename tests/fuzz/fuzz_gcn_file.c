/* fuzz_gcn_file.c - assembly files, ELF code objects, metadata.
 *
 * First byte 0x7f: a code object, loaded and disassembled. 0x80 and above:
 * MessagePack behind it. Else the processor, and behind it a file of assembly:
 * what it makes has to load, and to disassemble to what makes the same code.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/gcn/gcn_file.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void
same_code(const br_gcn_co *a, const br_str *text)
{
    br_str o = {0};
    br_gcn_co b;

    if (br_gcn_assemble(&o, a->isa.cpu, text->at, text->n, NULL) != BR_OK ||
        br_gcn_load(&b, o.at, o.n, NULL) != BR_OK)
        abort();
    if (a->text_bytes != b.text_bytes || a->note.n != b.note.n ||
        memcmp(a->image + a->text_at, b.image + b.text_at, a->text_bytes) != 0)
        abort();
    br_gcn_unload(&b);
    br_str_fini(&o);
}

static void
object(const void *p, size_t n, bool ours)
{
    br_gcn_co co;
    br_str text = {0};
    br_code c = br_gcn_load(&co, p, n, NULL);

    if (ours && c != BR_OK)
        abort();
    if (c == BR_OK && co.text_bytes < 1 << 16) {
        c = br_gcn_disassemble(&text, &co, NULL);
        if (ours && c == BR_OK)
            same_code(&co, &text);
    }
    br_str_fini(&text);
    br_gcn_unload(&co);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    br_str o = {0};
    br_status st = {0};

    if (n < 1 || n > 1 << 16)
        return 0;
    if (*p == 0x7f) {
        object(p, n, false);
    } else if (*p >= 0x80) {
        (void)!br_gcn_yaml_write(&o, (br_text){(const char *)p + 1, n - 1},
                                 &st);
    } else if (br_gcn_assemble(&o, br_gcn_cpu_at(*p % 9), (const char *)p + 1,
                               n - 1, &st) == BR_OK) {
        object(o.at, o.n, true);
    }
    br_str_fini(&o);
    return 0;
}

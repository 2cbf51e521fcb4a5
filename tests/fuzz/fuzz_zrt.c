/* fuzz_zrt.c - .zrt files: any bytes, or one of ours with some bytes changed.
 *
 * A first byte of 'Z': the file. Else which of two modules is written as a file,
 * with lines or without, and behind it changes: place of three bytes, value. Its
 * sum goes first. What is taken is written again.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/ptx/ptx.h"
#include "cg/x86/x86_pack.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

enum { SUM_PART = 16 };

static const char *const modules[] = {
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".const .u32 scale = 3;\n.global .u64 at = scale;\n"
    ".const .b8 zeros[9];\n.shared .b8 sh[64];\n"
    ".func twice(.param .u32 x)\n{ .reg .b32 %r; ld.param.u32 %r,[x];\n"
    "add.u32 %r,%r,%r; foo.bar %r; ret; }\n"
    ".entry unused(.param .u64 p) { ret; }\n"
    ".entry k(.param .u64 p, .param .u32 n)\n{\n.reg .b32 %r<9>; .reg .b64 "
    "%d<5>; .reg .pred %p; .local .b8 l[16];\n"
    "ld.param.u64 %d0,[p]; ld.param.u32 %r0,[n]; mov.u32 %r1,%tid.x;\n"
    "mov.u32 %r6,%ctaid.x; add.u32 %r1,%r1,%r6;\n"
    "L: setp.ge.u32 %p,%r1,%r0; @%p ret; mul.wide.u32 %d1,%r1,4;\n"
    "add.u64 %d1,%d1,%d0; ld.const.u32 %r5,[scale]; ld.global.u32 %r4,[%d1];\n"
    "mul.lo.u32 %r4,%r4,%r5; st.global.u32 [%d1],%r4; bar.sync 0;\n"
    "{ .param .u32 a; st.param.u32 [a],%r4; call twice,(a); }\n"
    "atom.global.add.u32 %r2,[%d0],%r4; add.u32 %r1,%r1,32; bra L; }\n",
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".entry k() { ret; }\n",
};

/* As compile -o X.zrt makes it, without its sum. */
static void
ours(br_str *out, unsigned which, bool lines)
{
    const br_ktarget *t = br_ktarget_find("x86-64");
    br_kcode *code;
    br_kir *m;

    if (br_ptx_parse(&m, modules[which], strlen(modules[which]),
                     &(br_ptx_opts){0}, NULL) != BR_OK ||
        br_kir_optimise(m, NULL, NULL) != BR_OK)
        abort();
    if (t->compile(&code, m, NULL) == BR_OK) { /* else no AVX2 here */
        if (br_ktarget_zrt(t, code, m, br_kir_find_fn(m, br_text_z("k")), lines,
                           out, NULL) != BR_OK)
            abort();
        t->free(code);
        out->n -= SUM_PART;
    }
    br_kir_free(m);
}

static void
read_it(const void *p, size_t n)
{
    br_kcode *code;
    br_kir *m;
    br_zrt z, again = {0};
    br_str text = {0}, lines = {0}, file = {0};

    if (br_zrt_read(&z, p, n, NULL) == BR_OK && z.target == BR_ZRT_X86 &&
        br_x86_unpack(&m, &code, &z, NULL) == BR_OK) {
        if (br_x86_pack(&again, &text, &lines, code, NULL) != BR_OK)
            abort();
        again.code = (br_text){text.at, text.n};
        again.debug = (br_text){lines.at, lines.n};
        again.name = z.name;
        if (br_zrt_write(&file, &again, NULL) != BR_OK)
            abort();
        br_ktarget_find("x86-64")->free(code);
        br_kir_free(m);
        br_zrt_fini(&z);
        if (br_zrt_read(&z, file.at, file.n, NULL) != BR_OK || !z.summed)
            abort();
    }
    br_zrt_fini(&again);
    br_zrt_fini(&z);
    br_str_fini(&text);
    br_str_fini(&lines);
    br_str_fini(&file);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    br_str file = {0};

    if (n == 0 || n > 1 << 16)
        return 0;
    if (*p == 'Z') {
        br_str_put(&file, (const char *)p, n); /* its bounds are seen */
    } else {
        ours(&file, *p & 1, *p & 2);
        for (size_t k = 1; file.n && k + 3 < n; k += 4) {
            size_t at = p[k] | (size_t)p[k + 1] << 8 | (size_t)p[k + 2] << 16;

            file.at[at % file.n] = (char)p[k + 3];
        }
    }
    read_it(file.at, file.n);
    br_str_fini(&file);
    return 0;
}

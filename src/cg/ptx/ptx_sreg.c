/* ptx_sreg.c - special registers by name: %tid.x, %clock64, all four words of %tid.
 *
 * Those that are another here, or a number, are in ptx_sreg.def.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/ptx/ptx_int.h"

#include <string.h>

static const struct {
    const char *text;
    uint8_t kind; /* O_SREG, O_INT */
    uint32_t is;
} others[] = {
#define X(text, kind, is) {text, kind, is},
#include "cg/ptx/ptx_sreg.def"
#undef X
};

/* Whether a name is that of a text and, behind it, a part. */
static bool
named(br_text name, char part, const char *text)
{
    size_t n = name.n + (part ? 2 : 0);

    return strlen(text) == n && memcmp(text, name.p, name.n) == 0 &&
           (!part || (text[name.n] == '.' && text[name.n + 1] == part));
}

/* Of a word of 32 or 64 bits, or a predicate; part: 0, or x y z w. */
static bool
one(const px_parser *p, br_text name, char part, px_opnd *o)
{
    for (uint32_t k = 0; k < BR_KS_COUNT; k++)
        if (named(name, part, br_ksreg_text[k])) {
            *o = (px_opnd){.kind = O_SREG, .a = k};
            return true;
        }
    for (size_t k = 0; k < BR_COUNT(others); k++)
        if (named(name, part, others[k].text)) {
            *o = (px_opnd){.kind = others[k].kind};
            if (o->kind == O_SREG)
                o->a = others[k].is;
            else
                o->imm = others[k].is;
            return true;
        }
    if (!named(name, part, "is_explicit_cluster"))
        return false;
    *o = (px_opnd){.kind = O_INT, .imm = p->cluster != 0};
    return true;
}

br_code
px_special(px_parser *p, br_text word, px_opnd *o, bool *is)
{
    br_text name = {word.p + 1, word.n - 1};
    px_opnd part[4];
    uint32_t n = 0;

    *is = word.n > 1 && word.p[0] == '%';
    if (!*is || one(p, name, 0, o))
        return BR_OK;
    while (n < 4 && one(p, name, "xyzw"[n], &part[n]))
        n++;
    *is = n == 4;
    if (!*is)
        return BR_OK;
    *o = (px_opnd){.kind = O_VEC, .a = (uint32_t)p->ops.n, .b = n};
    for (uint32_t k = 0; k < n; k++)
        if (!br_vec_push(&p->ops, part[k]))
            return px_oom(p);
    return BR_OK;
}

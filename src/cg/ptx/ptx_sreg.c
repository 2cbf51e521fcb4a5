/* ptx_sreg.c - special registers by name: %tid.x, %clock64, all four words of %tid.
 *
 * Those that are another here, or a number, are in ptx_sreg.def. Some are addresses of
 * memory that NVIDIA's driver has ready for cooperative groups: here they are variables of
 * the module, made where somebody asks.
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

/* What a driver has ready: in two words the address of a grid's barrier (how many bytes
 * there are, and the barrier, which is 0 when nobody waits), and shared memory for the
 * barriers of tiles of several warps, which needs nothing in it. */
static const struct {
    const char *text, *var;
    uint8_t space, shift, first; /* bits of the address; the first byte */
    uint32_t bytes;
} hidden[] = {
    {"envreg1", "%grid_workspace", BR_KM_SPACE_GLOBAL, 32, 8, 8},
    {"envreg2", "%grid_workspace", BR_KM_SPACE_GLOBAL, 0, 8, 8},
    {"reserved_smem_offset_1", "%reserved_smem", BR_KM_SPACE_SHARED, 0, 0, 288},
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

static br_code
memory(px_parser *p, size_t k, px_opnd *o)
{
    const br_text name = br_text_z(hidden[k].var);
    uint32_t var = br_kir_find_var(p->m, name);
    br_kvar *v;
    uint8_t *init;

    if (var == BR_KNONE) {
        var = br_kir_var(p->m, name);
        if (p->m->oom)
            return px_oom(p);
        v = &p->m->vars.at[var];
        v->space = hidden[k].space;
        v->align = 16;
        v->bytes = hidden[k].bytes;
        if (hidden[k].first) {
            init = br_arena_zero(&p->m->arena, v->bytes, 1);
            if (!init)
                return px_oom(p);
            init[0] = hidden[k].first;
            v->init = init;
        }
    }
    *o = (px_opnd){
        .kind = O_VAR, .a = (uint32_t)p->syms.n, .b = hidden[k].shift};
    return px_declare(p, name, S_VAR, var, 0, NULL);
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
    for (size_t k = 0; k < BR_COUNT(hidden); k++)
        if (named(name, 0, hidden[k].text))
            return memory(p, k, o);
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

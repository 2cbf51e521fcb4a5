/* ptx_op.c - opcodes: "ld.global.nc.v4.f32" into root, modifiers, types.
 *
 * The order of modifiers means nothing, that of types does. A spelling is taken
 * apart once and remembered: a file of 20 MB has some 300 of them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/ptx/ptx_int.h"

#include <string.h>

const px_root px_roots[] = {
#define X(root, how, dst, flow, kop, mods) \
    {#root, px_l_##how, dst, F_##flow, BR_K_##kop, mods},
#include "cg/ptx/ptx.def"
#undef X
    {NULL, NULL, 0, 0, 0, NULL},
};

static const char *const mod_names[PM_COUNT] = {
#define X(name, text) text,
#include "cg/ptx/ptx_mod.def"
#undef X
};
_Static_assert(PM_COUNT <= 192, "px_opcode.mods has 192 bits");

/* What may stand in an opcode and changes no result: caching, hints, the
 * default of an order. */
static const char *const ignored[] = {
    "ca",    "cg",          "cs",         "lu",          "cv",         "wb",
    "wt",    "nc",          "weak",       "unified",     "L1",         "L2",
    "write", "evict_first", "evict_last", "shared::cta", "noComplete",
};

/* Modifiers of a class, as in the column mods of ptx.def. */
static const struct {
    char letter;
    const char *words;
} classes[] = {
    {'r', " rn rz rm rp rna rni rzi rmi rpi "},
    {'z', " ftz noftz "},
    {'s', " sat satfinite "},
    {'u', " relu "},
    {'n', " NaN xorsign abs "},
    {'a', " approx full "},
    {'c', " eq ne lt le gt ge equ neu ltu leu gtu geu num nan lo ls hi hs and "
          "or xor popc "},
    {'m', " lo hi wide "},
    {'k', " cc "},
    {'p', " global shared const local param "},
    {'T', " to "},
    {'v', " v2 v4 v8 "},
    {'o', " volatile relaxed acquire release acq_rel sc mmio cta gpu sys "
          "cluster gl "},
    {'w', " clamp wrap shiftamt l r "},
    {'x', " f4e b4e rc8 ecl ecr rc16 "},
    {'f', " finite infinite number notanumber normal subnormal "},
    {'t', " add min max and or xor exch cas inc dec "},
    {'N', " noftz "},
    {'2', " f32x2 "},
    {'A', " async mbarrier::complete_tx::bytes "},
    {'g', " sync aligned up down bfly idx any all uni ballot arrive red warp "},
    {'M', " m8n8 m8n8k4 m8n8k16 m16n8k4 m16n8k8 m16n8k16 m16n8k32 row col "
          "trans x1 x2 x4 "},
    {'4',
     " s4 u4 b1 m8n8k32 m16n8k64 m8n8k128 m16n8k128 m16n8k256 xor and popc "},
    {'W', " load store mma a b c d m16n16k16 m32n8k16 m8n32k16 m8n8k4 m16n16k8 "
          "row col "},
    {'P', " pack "},
    {'C', " cta "},
    {'L', " cluster wait relaxed acquire release "},
    {'B', " and or "},
    {'V', " po shr7 shr15 "},
};

static bool
takes(const px_root *r, br_text part)
{
    for (const char *c = r->mods; *c; c++) {
        if (*c == '+')
            return true;
        for (size_t k = 0; k < BR_COUNT(classes); k++) {
            const char *at = classes[k].words;

            if (classes[k].letter != *c)
                continue;
            while ((at = strstr(at + 1, " ")) && at[1])
                if (strncmp(at + 1, part.p, part.n) == 0 &&
                    at[1 + part.n] == ' ')
                    return true;
            if (strncmp(classes[k].words + 1, part.p, part.n) == 0 &&
                classes[k].words[1 + part.n] == ' ')
                return true;
        }
    }
    return false;
}

unsigned
px_type(br_text t)
{
    for (unsigned k = 1; k < BR_KT_COUNT; k++)
        if (br_text_is(t, br_ktinfo_of[k].text))
            return k;
    return 0;
}

static bool
hint(br_text part)
{
    if (part.n > 4 && part.p[0] == 'L' && memcmp(part.p + 2, "::", 2) == 0)
        return true;
    for (size_t k = 0; k < BR_COUNT(ignored); k++)
        if (br_text_is(part, ignored[k]))
            return true;
    return false;
}

static void
set(px_opcode *o, unsigned mod)
{
    o->mods[mod >> 6] |= 1ull << (mod & 63);
}

static void
take(px_opcode *o, br_text part)
{
    unsigned k = px_type(part);

    /* A block is a cluster of its own. */
    if (o->root && strchr(o->root->mods, 'p') &&
        (br_text_is(part, "shared::cta") ||
         br_text_is(part, "shared::cluster")))
        part = br_text_z("shared");
    if (br_text_is(part, "b128")) { /* two of .b64 side by side */
        if (o->root && takes(o->root, br_text_z("v2")) && !px_has(o, PM_V2) &&
            !px_has(o, PM_V4) && !px_has(o, PM_V8)) {
            set(o, PM_V2);
            set(o, PM_B128);
            k = BR_KT_B64;
        }
    }
    if (br_text_is(part, "f32x2") && o->root && takes(o->root, part)) {
        set(o, PM_F32X2);
        k = BR_KT_F32;
    }
    if (br_text_is(part, "e4m3x2") || br_text_is(part, "e5m2x2"))
        k = part.p[1] == '4' ? BR_KT_E4M3 : BR_KT_E5M2;
    if (k) {
        if (o->n_types == BR_COUNT(o->types))
            o->bad = part;
        else
            o->types[o->n_types++] = (uint8_t)k;
        return;
    }
    for (k = 0; k < PM_COUNT && !br_text_is(part, mod_names[k]); k++)
        ;
    if (k < PM_COUNT && o->root && takes(o->root, part))
        set(o, k);
    else if (!hint(part) && !o->bad.n)
        o->bad = part;
}

br_code
px_opcode_of(px_parser *p, br_text text, uint32_t *out)
{
    px_opcode o = {.text = text};
    br_map_value *at;
    bool fresh;
    br_text left = text;

    at = br_map_put(&p->opcodes_by_text, text, &fresh);
    if (!at)
        return px_oom(p);
    if (!fresh) {
        *out = (uint32_t)at->u;
        return BR_OK;
    }
    for (bool first = true; left.n; first = false) {
        const char *dot = memchr(left.p, '.', left.n);
        size_t n = dot ? (size_t)(dot - left.p) : left.n;
        br_text part = {left.p, n};

        left =
            dot ? (br_text){dot + 1, left.n - n - 1} : (br_text){left.p + n, 0};
        if (!first) {
            take(&o, part);
            continue;
        }
        for (const px_root *r = px_roots; r->name && !o.root; r++)
            if (br_text_is(part, r->name))
                o.root = r;
        if (!o.root)
            o.bad = part;
    }
    at->u = p->opcodes.n;
    *out = (uint32_t)at->u;
    return br_vec_push(&p->opcodes, o) ? BR_OK : px_oom(p);
}

/* gcn_lib.c - the library: operations as functions in PTX, made as they are
 * asked for from the rows of gcn_lib.def; matrix products from their shape.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/embed.h"
#include "cg/gcn/gcn_lower.h"

#include <stdio.h>
#include <string.h>

BR_EMBED("br_host_ptx", "kernels/host/host.ptx");
extern const char br_host_ptx[], br_host_ptx_end[];

br_text
gm_host_text(void)
{
    return (br_text){br_host_ptx, (size_t)(br_host_ptx_end - br_host_ptx)};
}

typedef struct lib_row {
    uint8_t op;
    const char *types;
    uint16_t field;
    uint8_t value;
    const char *text;
} lib_row;

static const lib_row rows[] = {
#define LIB(op, types, field, value, text) \
    {BR_K_##op, types, field, value, text},
#include "cg/gcn/gcn_lib.def"
#undef LIB
};

/* What a letter behind $ says of the modifiers. */
static const struct {
    char letter;
    uint16_t field;
} letters[] = {{'r', BR_KF_RND},
               {'z', BR_KF_FTZ},
               {'s', BR_KF_SAT},
               {'n', BR_KF_NAN},
               {'l', BR_KF_RELU}};

/* ---- which row --------------------------------------------------------- */

static bool
type_in(const char *list, const br_kins *i)
{
    const char *t = br_ktinfo_of[i->type].text,
               *u = br_ktinfo_of[i->type2].text;
    bool two = strchr(list, '/');
    char want[24];
    size_t n;

    if (!*list)
        return true;
    snprintf(want, sizeof want, "%s%s%s", t, two ? "/" : "", two ? u : "");
    n = strlen(want);
    for (const char *p = list; *p; p += strcspn(p, " "), p += *p == ' ')
        if (strncmp(p, want, n) == 0 && (p[n] == ' ' || p[n] == 0))
            return true;
    return false;
}

static uint32_t
field_bits(uint16_t field)
{
    return ((1u << (field & 0xff)) - 1) << (field >> 8);
}

/* Whether the text names every modifier that the row does not ask for. */
static bool
fits(const lib_row *r, const br_kins *i)
{
    uint32_t left = i->mods;

    if (r->op != i->op || !type_in(r->types, i) ||
        (r->field && br_kmod(i->mods, r->field) != r->value))
        return false;
    if (r->field)
        left &= ~field_bits(r->field);
    if (strstr(r->text, "$i"))
        return true;
    for (size_t k = 0; k < BR_COUNT(letters); k++)
        for (const char *p = r->text; (p = strchr(p, '$')); p++)
            if (p[1] == letters[k].letter)
                left &= ~field_bits(letters[k].field);
    return left == 0;
}

/* ---- its text ---------------------------------------------------------- */

void
gm_mod_text(const br_kins *i, uint16_t field, br_str *out)
{
    for (const br_kminfo *m = br_kminfo_of; m->letter; m++)
        if (m->field == field && m->value == br_kmod(i->mods, field) &&
            strchr(br_kopinfo_of[i->op].groups, m->letter))
            br_str_printf(out, ".%s", m->text);
}

/* The operation as PTX writes it, for an element. */
static void
whole(const br_kins *i, br_str *out)
{
    static const uint16_t fields[] = {BR_KF_RND, BR_KF_APPROX, BR_KF_FTZ,
                                      BR_KF_NAN, BR_KF_XABS,   BR_KF_SAT,
                                      BR_KF_RELU};

    br_str_puts(out, br_kopinfo_of[i->op].text);
    for (size_t k = 0; k < BR_COUNT(fields); k++)
        if (br_kmod(i->mods, fields[k]))
            gm_mod_text(i, fields[k], out);
    if (br_kmod(i->mods, BR_KF_XABS))
        br_str_puts(out, ".abs");
    br_str_printf(out, ".%s", br_ktinfo_of[br_ktinfo_of[i->type].elem].text);
}

static void
range_end(const br_kins *i, bool high, br_str *out)
{
    unsigned bits = br_ktinfo_of[i->type].bytes * 8u;
    bool s = br_ktinfo_of[i->type].kind == 'S';

    if (!high && !s)
        br_str_putc(out, '0');
    else if (!high)
        br_str_printf(out, "-%llu", 1ull << (bits - 1));
    else
        br_str_printf(out, "%llu",
                      (s           ? 1ull << (bits - 1)
                       : bits < 64 ? 1ull << bits
                                   : 0ull) -
                          1);
}

static const char *
variable(const br_kins *i, const char *p, br_str *out)
{
    switch (*p) {
    case 't': br_str_puts(out, br_ktinfo_of[i->type].text); break;
    case 'u': br_str_puts(out, br_ktinfo_of[i->type2].text); break;
    case 'T':
        br_str_puts(out, br_ktinfo_of[br_ktinfo_of[i->type].elem].text);
        break;
    case 'i': whole(i, out); break;
    case 'h': range_end(i, true, out); return p + 2;
    case 'l':
        if (p[1] == 'o') {
            range_end(i, false, out);
            return p + 2;
        }
        break;
    default: break;
    }
    if (strncmp(p, "shared", 6) == 0) {
        br_str_puts(out, "brass_barrier_word");
        return p + 6;
    }
    for (size_t k = 0; k < BR_COUNT(letters); k++)
        if (*p == letters[k].letter)
            gm_mod_text(i, letters[k].field, out);
    return p + 1;
}

static void
expand(const br_kins *i, const char *text, br_str *out)
{
    for (const char *p = text; *p;)
        if (*p == '$')
            p = variable(i, p + 1, out);
        else
            br_str_putc(out, *p++);
}

static const char *
reg_type(const br_kfn *f, uint32_t v)
{
    static const char *const of[] = {".b32", ".b16", ".b32", ".b64"};

    return of[f->vals.at[v].cls];
}

/* many: d0 d1 ... and a0 a1 ..., else d e and a b c f. */
void
gm_lib_header(const br_kfn *f, const br_kins *i, bool many, br_str *out)
{
    br_str_puts(out, ".version 8.0\n.target sm_90\n.address_size 64\n"
                     ".shared .align 4 .b8 brass_barrier_word[4];\n"
                     ".shared .align 4 .b8 brass_barriers[64];\n.func ");
    for (unsigned k = 0; k < i->n_res; k++) {
        br_str_printf(out, "%s.reg %s %c", k ? ", " : "(",
                      reg_type(f, i->res + k), many ? 'd' : "de"[k]);
        if (many)
            br_str_printf(out, "%u", k);
    }
    br_str_puts(out, i->n_res ? ") f_(" : "f_(");
    for (unsigned k = 0; k < i->n_arg; k++) {
        br_str_printf(out, "%s.reg %s %c", k ? ", " : "",
                      reg_type(f, br_kargs(f, i)[k]), many ? 'a' : "abcf"[k]);
        if (many)
            br_str_printf(out, "%u", k);
    }
    br_str_puts(out, ") {\n.reg .b16 h<24>; .reg .b32 r<24>; .reg .b64 q<24>; "
                     ".reg .pred p<12>;\n");
}

/* ---- matrices ---------------------------------------------------------- */

/* Element e of a word as a number to multiply by: to r8 (A) or r9 (B). */
static void
element(unsigned type, unsigned e, const char *from, const char *to, br_str *o)
{
    if (type == BR_KT_F16)
        br_str_printf(o,
                      "shr.u32 r10,%s,%u; cvt.u16.u32 h0,r10; cvt.f32.f16 "
                      "%s,h0; ",
                      from, 16 * e, to);
    else if (type == BR_KT_BF16 && e == 0)
        br_str_printf(o, "shl.b32 %s,%s,16; ", to, from);
    else
        br_str_printf(o, "and.b32 %s,%s,0x%x; ", to, from,
                      type == BR_KT_TF32 ? 0xffffe000u : 0xffff0000u);
}

/* One word of A's row times one of B's column into a sum. */
static void
multiply(const br_kins *i, const char *type_a, const char *type_b, unsigned sum,
         br_str *o)
{
    unsigned n = i->type2 == BR_KT_TF32 ? 1 : 2;

    if (i->type == BR_KT_S32) {
        br_str_printf(o, "dp4a.%s.%s r%u,r4,r5,r%u; ", type_a, type_b, sum,
                      sum);
        return;
    }
    for (unsigned e = 0; e < n; e++) {
        element(i->type2, e, "r4", "r8", o);
        element(i->type2, e, "r5", "r9", o);
        br_str_printf(o, "fma.rn.f32 r%u,r8,r9,r%u; ", sum, sum);
    }
}

/* Sums of halves are f32 until the end, when each is rounded once. */
static void
product_begin(unsigned first, unsigned sums, bool half, br_str *o)
{
    char from[16], to[16];

    for (unsigned d = 0; d < sums; d++) {
        snprintf(from, sizeof from, "a%u", first + (half ? d / 2 : d));
        snprintf(to, sizeof to, "r%u", 12 + d);
        if (half)
            element(BR_KT_F16, d & 1, from, to, o);
        else
            br_str_printf(o, "mov.b32 %s,%s; ", to, from);
    }
}

static void
product_end(unsigned sums, bool half, br_str *o)
{
    for (unsigned d = 0; d < sums; d += 2)
        if (half)
            br_str_printf(o,
                          "cvt.rn.f16.f32 h0,r%u; cvt.rn.f16.f32 h1,r%u; "
                          "cvt.u32.u16 r4,h0; cvt.u32.u16 r5,h1; "
                          "shl.b32 r5,r5,16; or.b32 d%u,r4,r5; ",
                          12 + d, 13 + d, d / 2);
        else
            br_str_printf(o, "mov.b32 d%u,r%u; mov.b32 d%u,r%u; ", d, 12 + d,
                          d + 1, 13 + d);
}

/* Saturation is of the whole sum: what is added to comes last. */
static void
product_saturated(unsigned first, unsigned sums, br_str *o)
{
    for (unsigned d = 0; d < sums; d++)
        br_str_printf(o, "add.sat.s32 d%u,r%u,a%u; ", d, 12 + d, first + d);
}

/* m16n8: lane 4 g + t has rows g and g + 8 of A, column g of B, and of D rows g
 * and g + 8, columns 2 t and 2 t + 1, of halves two to a word. Words of K come
 * from the four lanes that have them. m8n8, of bytes, is its first half. */
static bool
product(const br_kfn *f, const br_kins *i, br_str *o)
{
    unsigned k = i->imm & 255, n = i->imm >> 8 & 255, m = i->imm >> 16 & 255;
    unsigned tb = i->imm >> 24 & 255, bits, na, nb, nd;
    bool half = i->type == BR_KT_F16X2 && i->type2 == BR_KT_F16;
    const bool sat = br_kmod(i->mods, BR_KF_SAT) == BR_KM_SAT_SATFINITE;
    const unsigned eights = m / 8; /* rows of a lane */

    bits = i->type2 == BR_KT_TF32 ? 32 : br_ktinfo_of[i->type2].bytes * 8u;
    na = m * k * bits / 1024;
    nb = 8 * k * bits / 1024;
    nd = half ? 2 : 2 * eights;
    if ((m != 16 && (m != 8 || bits != 8)) || n != 8 || !nb || i->n_res != nd ||
        i->n_arg != na + nb + nd ||
        (i->type != BR_KT_F32 && i->type != BR_KT_S32 && !half) ||
        (i->type == BR_KT_S32) != (bits == 8) ||
        (sat ? bits != 8 : i->mods != 0) || (i->type == BR_KT_F32 && bits < 16))
        return false;
    gm_lib_header(f, i, true, o);
    br_str_puts(o, "mov.u32 r0,%laneid; and.b32 r1,r0,28; and.b32 r2,r0,3; "
                   "shl.b32 r2,r2,3;\n");
    if (sat)
        br_str_puts(o, "mov.b32 r12,0; mov.b32 r13,0; mov.b32 r14,0; "
                       "mov.b32 r15,0; ");
    else
        product_begin(na + nb, 2 * eights, half, o);
    for (unsigned w = 0; w < nb; w++)
        for (unsigned t = 0; t < 4; t++)
            for (unsigned col = 0; col < 2; col++) {
                br_str_printf(o,
                              "\nadd.u32 r6,r2,%u; shfl.sync.idx.b32 "
                              "r5,a%u,r6,31,-1; ",
                              4 * col + t, na + w);
                for (unsigned row = 0; row < eights; row++) {
                    br_str_printf(o,
                                  "add.u32 r7,r1,%u; shfl.sync.idx.b32 "
                                  "r4,a%u,r7,31,-1; ",
                                  t, eights * w + row);
                    multiply(i,
                             br_ktinfo_of[i->type2].kind == 'S' ? "s32" : "u32",
                             br_ktinfo_of[tb].kind == 'S' ? "s32" : "u32",
                             12 + 2 * row + col, o);
                }
            }
    if (sat)
        product_saturated(na + nb, 2 * eights, o);
    else
        product_end(2 * eights, half, o);
    return true;
}

/* Rows of 8x8 matrices of 16 bits: row r of matrix k begins where lane 8 k + r
 * says; lane 4 x + y has elements 2 y and 2 y + 1 of row x (trans: column). */
static bool
rows_of_matrices(const br_kfn *f, const br_kins *i, br_str *o)
{
    bool load = i->op == BR_K_LDMATRIX;
    bool trans = br_kmod(i->mods, BR_KF_SUB) == BR_KM_TRANS_TRANS;
    unsigned n = load ? i->n_res : i->n_arg - 1u;
    const char *space =
        br_kmod(i->mods, BR_KF_SPACE) == BR_KM_SPACE_SHARED ? ".shared" : "";

    gm_lib_header(f, i, true, o);
    br_str_printf(o,
                  "add.u64 q9,a0,%lld; mov.b64 {r0,r1},q9; mov.u32 "
                  "r2,%%laneid; shr.u32 r3,r2,2; and.b32 r4,r2,3; ",
                  (long long)i->imm);
    for (unsigned k = 0; k < n; k++)
        for (unsigned half = 0; half < (trans ? 2 : 1); half++) {
            if (trans)
                br_str_printf(o,
                              "shl.b32 r5,r4,1; add.u32 r5,r5,%u; shl.b32 "
                              "r6,r3,1; ",
                              8 * k + half);
            else
                br_str_printf(o, "add.u32 r5,r3,%u; shl.b32 r6,r4,2; ", 8 * k);
            br_str_puts(o, "shfl.sync.idx.b32 r7,r0,r5,31,-1; "
                           "shfl.sync.idx.b32 r8,r1,r5,31,-1; mov.b64 "
                           "q0,{r7,r8}; cvt.u64.u32 q1,r6; add.u64 "
                           "q0,q0,q1;\n");
            if (!trans && load)
                br_str_printf(o, "ld%s.b32 d%u,[q0]; ", space, k);
            else if (!trans)
                br_str_printf(o, "st%s.b32 [q0],a%u; ", space, k + 1);
            else if (load && !half)
                br_str_printf(o, "ld%s.u16 r9,[q0]; ", space);
            else if (load)
                br_str_printf(o,
                              "ld%s.u16 r10,[q0]; shl.b32 r10,r10,16; "
                              "or.b32 d%u,r9,r10; ",
                              space, k);
            else
                br_str_printf(o, "shr.u32 r9,a%u,%u; st%s.u16 [q0],r9; ", k + 1,
                              16 * half, space);
        }
    return true;
}

/* Bytes from global to shared memory, at once; what is behind those that are
 * read is zero. */
static bool
copied(const br_kfn *f, const br_kins *i, br_str *o)
{
    if (i->imm != 4 && i->imm != 8 && i->imm != 16)
        return false;
    gm_lib_header(f, i, true, o);
    for (unsigned at = 0; at < i->imm; at += 4)
        br_str_printf(o,
                      "mov.b32 r%u,0; setp.ge.u32 p%u,a2,%u; @p%u "
                      "ld.global.b32 r%u,[a1+%u];\n",
                      at / 4, at / 4, at + 4, at / 4, at / 4, at);
    for (unsigned at = 0; at < i->imm; at += 4)
        br_str_printf(o, "st.shared.b32 [a0+%u],r%u; ", at, at / 4);
    return true;
}

/* Where a half of 16 bits lies: q8, its word, r0, the bits below it, r4, a mask of
 * the others; r5, what is in the word. */
static void
find_half(const br_kins *i, br_str *o)
{
    br_str_printf(o,
                  "add.u64 q9,a,%lld; and.b64 q8,q9,-4; cvt.u32.u64 r0,q9; "
                  "and.b32 r0,r0,2; shl.b32 r0,r0,3; mov.b32 r3,65535; "
                  "shl.b32 r3,r3,r0; not.b32 r4,r3; ld.relaxed.gpu",
                  (long long)i->imm);
    gm_mod_text(i, BR_KF_SPACE, o);
    br_str_puts(o, ".b32 r5,[q8];\n");
}

/* NULL: of floats it is not there. */
static const char *
fold_text(const br_kins *i)
{
    switch (br_kmod(i->mods, BR_KF_SUB)) {
    case BR_KM_ATOM_ADD: return "add.rn";
    case BR_KM_ATOM_MIN: return "min";
    case BR_KM_ATOM_MAX: return "max";
    default: return NULL;
    }
}

/* The same of a half. */
static bool
summed_half(const br_kfn *f, const br_kins *i, const char *where, br_str *o)
{
    const char *t = br_ktinfo_of[i->type].text;

    gm_lib_header(f, i, false, o);
    find_half(i, o);
    br_str_printf(
        o,
        "L: shr.u32 r6,r5,r0; cvt.u16.u32 h0,r6; %s.%s h1,h0,b; "
        "cvt.u32.u16 r7,h1; shl.b32 r7,r7,r0; and.b32 r6,r5,r4; "
        "or.b32 r7,r7,r6; atom%s.cas.b32 r8,[q8],r5,r7; "
        "setp.ne.u32 p1,r8,r5; mov.b32 r5,r8; @p1 bra L; mov.b16 d,h0;",
        fold_text(i), t, where);
    return true;
}

/* Sums, minima and maxima of floats in memory that no instruction makes: try until
 * nobody else came between. */
static bool
summed(const br_kfn *f, const br_kins *i, br_str *o)
{
    unsigned bytes = br_ktinfo_of[i->type].bytes;
    const char *b = bytes == 8 ? "b64" : "b32", r = bytes == 8 ? 'q' : 'r';
    br_str where = {0};

    if (!fold_text(i) || bytes < 2 || br_ktinfo_of[i->type].kind != 'F')
        return false;
    gm_mod_text(i, BR_KF_SEM, &where);
    gm_mod_text(i, BR_KF_SCOPE, &where);
    gm_mod_text(i, BR_KF_SPACE, &where);
    if (bytes == 2) {
        bool ok = summed_half(f, i, br_str_z(&where), o);

        br_str_fini(&where);
        return ok;
    }
    gm_lib_header(f, i, false, o);
    br_str_printf(o, "add.u64 q9,a,%lld; ld.relaxed.gpu", (long long)i->imm);
    gm_mod_text(i, BR_KF_SPACE, o);
    br_str_printf(o,
                  ".%s %c1,[q9];\nL: %s.%s %c2,%c1,b; atom%s.cas.%s "
                  "%c3,[q9],%c1,%c2; setp.ne.%s p0,%c3,%c1; mov.%s "
                  "%c1,%c3; @p0 bra L; mov.%s d,%c3;",
                  b, r, fold_text(i), br_ktinfo_of[i->type].text, r, r,
                  br_str_z(&where), b, r, r, r, b, r, r, b, r, r, b, r);
    br_str_fini(&where);
    return true;
}

/* Compare and swap of 16 bits, by the word that they are in. */
static bool
swapped(const br_kfn *f, const br_kins *i, br_str *o)
{
    br_str where = {0};

    if (br_ktinfo_of[i->type].bytes != 2)
        return false;
    gm_mod_text(i, BR_KF_SEM, &where);
    gm_mod_text(i, BR_KF_SCOPE, &where);
    gm_mod_text(i, BR_KF_SPACE, &where);
    gm_lib_header(f, i, false, o);
    find_half(i, o);
    br_str_printf(
        o,
        "cvt.u32.u16 r1,b; shl.b32 r1,r1,r0; cvt.u32.u16 r2,c; "
        "shl.b32 r2,r2,r0;\nL: and.b32 r6,r5,r3; setp.ne.u32 p0,r6,r1; "
        "@p0 bra E; and.b32 r7,r5,r4; or.b32 r7,r7,r2; "
        "atom%s.cas.b32 r8,[q8],r5,r7; setp.ne.u32 p1,r8,r5; "
        "mov.b32 r5,r8; @p1 bra L;\nE: and.b32 r6,r5,r3; "
        "shr.u32 r6,r6,r0; cvt.u16.u32 d,r6;",
        br_str_z(&where));
    br_str_fini(&where);
    return true;
}

static bool
made(const br_kfn *f, const br_kins *i, br_str *o)
{
    switch (i->op) {
    case BR_K_MMA: return product(f, i, o);
    case BR_K_LDMATRIX:
    case BR_K_STMATRIX: return rows_of_matrices(f, i, o);
    case BR_K_CPASYNC: return copied(f, i, o);
    case BR_K_ATOM: return summed(f, i, o);
    case BR_K_CAS: return swapped(f, i, o);
    default: return gm_lib_barrier(f, i, o);
    }
}

bool
gm_lib_text(const br_kfn *f, const br_kins *i, br_str *out)
{
    bool there = made(f, i, out);

    for (size_t k = 0; !there && k < BR_COUNT(rows); k++)
        if (fits(&rows[k], i)) {
            gm_lib_header(f, i, false, out);
            expand(i, rows[k].text, out);
            there = true;
        }
    br_str_puts(out, "\nret;\n}\n");
    return there;
}

/* x86_asm.c - the encoder: a row of x86.def and operands become bytes.
 *
 *   legacy  [66 F2 F3] [REX] opcode ModRM [SIB] [disp] [imm]
 *   VEX     C5 RvvvvLpp | C4 RXBmmmmm WvvvvLpp, then the same
 *
 * REX, VEX and ModRM are made from where the operands are: the letters of the
 * row say which is reg, rm, vvvv. SPDX-License-Identifier: Apache-2.0 */
#include "cg/x86/x86_asm.h"

#include "cg/x86/x86_row.h"

#include <string.h>

#define LEG 0
#define VEX 1
const br_x86_row br_x86_rows[BR_X_COUNT] = {
#define X(name, text, enc, pp, map, w, opcode, ext, ops) \
    {text, ops, enc, pp, map, w, opcode, ext},
#include "cg/x86/x86.def"
#undef X
};

const char *
br_x86_ops(br_x86_op op)
{
    return br_x86_rows[op].ops;
}

const char *
br_x86_name(br_x86_op op)
{
    return br_x86_rows[op].text;
}

void
br_x86_fini(br_x86_asm *a)
{
    br_vec_fini(&a->code);
    br_vec_fini(&a->labels);
    br_vec_fini(&a->fixes);
}

void
br_x86_bytes(br_x86_asm *a, const void *p, size_t n)
{
    if (!br_vec_reserve(&a->code, a->code.n + n)) {
        a->oom = true;
        return;
    }
    memcpy(a->code.at + a->code.n, p, n);
    a->code.n += n;
}

uint32_t
br_x86_label(br_x86_asm *a)
{
    if (!br_vec_push(&a->labels, UINT32_MAX)) {
        a->oom = true;
        return 0;
    }
    return (uint32_t)a->labels.n - 1;
}

void
br_x86_bind(br_x86_asm *a, uint32_t label)
{
    if (label < a->labels.n)
        a->labels.at[label] = (uint32_t)a->code.n;
}

void
br_x86_patch(br_x86_asm *a)
{
    for (size_t k = 0; k < a->fixes.n && !a->oom; k++) {
        const br_x86_fix *f = &a->fixes.at[k];
        uint32_t d = a->labels.at[f->label] - f->end;

        br_check(a->labels.at[f->label] != UINT32_MAX);
        memcpy(a->code.at + f->at, &d, 4);
    }
    a->fixes.n = 0;
}

/* ---- operands into fields ------------------------------------------------ */

typedef struct parts {
    unsigned reg, vvvv, is4, low; /* low: in the opcode's bits */
    const br_x86_arg *rm;
    int64_t imm;
    unsigned imm_bytes;
    uint32_t label; /* of a jump */
    bool wide, y, byte, jump;
} parts;

static parts
sort_out(const br_x86_row *row, const br_x86_arg *args)
{
    parts p = {.reg = row->ext >= 0 ? (unsigned)row->ext : 0};

    for (const char *s = row->ops; *s; args++) {
        char what = s[0], where = s[1];

        p.wide |= what == 'q';
        p.y |= what == 'y';
        p.byte |= what == 'b' && args->kind == BR_X_REG;
        switch (where) {
        case 'r': p.reg = args->reg; break;
        case 'v': p.vvvv = args->reg; break;
        case 's':
            p.imm = args->reg << 4;
            p.imm_bytes = 1;
            break;
        case 'o': p.low = args->reg; break;
        case '.':
            p.jump = what == 'j';
            p.label = (uint32_t)args->disp;
            p.imm = args->imm;
            p.imm_bytes = what == 'i' ? 1 : what == 'L' ? 8 : 4;
            break;
        default: p.rm = args; break;
        }
        s += 2;
        s += *s && *s != ' ';
        s += *s == ' ';
    }
    return p;
}

/* ---- ModRM --------------------------------------------------------------- */

typedef struct out {
    uint8_t at[24];
    unsigned n;
    unsigned fix; /* where a displacement to a label is, or 0 */
} out;

static void
put(out *o, unsigned byte)
{
    o->at[o->n++] = (uint8_t)byte;
}

static void
put_disp(out *o, int32_t v, unsigned bytes)
{
    memcpy(o->at + o->n, &v, bytes);
    o->n += bytes;
}

static void
modrm(out *o, unsigned reg, const br_x86_arg *m)
{
    unsigned r = (reg & 7) << 3, base = m->reg & 7, mod;

    if (m->kind == BR_X_REG) {
        put(o, 0xc0 | r | base);
        return;
    }
    if (m->reg == BR_X_AT_LABEL) {
        put(o, r | 5);
        o->fix = o->n;
        put_disp(o, 0, 4);
        return;
    }
    mod = m->disp == 0 && base != 5           ? 0
          : m->disp >= -128 && m->disp <= 127 ? 1
                                              : 2;
    if (m->scale || base == 4) {
        unsigned s = m->scale == 8 ? 3 : m->scale == 4 ? 2 : m->scale == 2;

        put(o, mod << 6 | r | 4);
        put(o, s << 6 | (m->scale ? m->index & 7u : 4u) << 3 | base);
    } else {
        put(o, mod << 6 | r | base);
    }
    if (mod)
        put_disp(o, m->disp, mod == 1 ? 1 : 4);
}

/* ---- prefixes ------------------------------------------------------------ */

static void
vex(out *o, const br_x86_row *row, const parts *p, unsigned x, unsigned b)
{
    unsigned r = p->reg >> 3, last;

    last = (~p->vvvv & 15) << 3 | (unsigned)p->y << 2 | row->pp;
    if (!x && !b && !row->w && row->map == 1) {
        put(o, 0xc5);
        put(o, !r << 7 | last);
        return;
    }
    put(o, 0xc4);
    put(o,
        (unsigned)!r << 7 | (unsigned)!x << 6 | (unsigned)!b << 5 | row->map);
    put(o, (unsigned)row->w << 7 | last);
}

static void
legacy(out *o, const br_x86_row *row, const parts *p, unsigned x, unsigned b)
{
    static const uint8_t prefix[] = {0, 0x66, 0xf3, 0xf2};
    unsigned rex = (unsigned)p->wide << 3 | (p->reg >> 3) << 2 | x << 1 | b;

    if (row->pp)
        put(o, prefix[row->pp]);
    if (rex || p->byte) /* without one, byte registers 4 to 7 are others */
        put(o, 0x40 | rex);
    if (row->map)
        put(o, 0x0f);
}

void
br_x86_put(br_x86_asm *a, br_x86_op op, const br_x86_arg *args)
{
    const br_x86_row *row = &br_x86_rows[op];
    parts p = sort_out(row, args);
    unsigned x = 0, b = p.low >> 3;
    out o = {.n = 0};

    if (p.rm && !(p.rm->kind == BR_X_MEM && p.rm->reg == BR_X_AT_LABEL)) {
        b = p.rm->reg >> 3;
        x = p.rm->kind == BR_X_MEM && p.rm->scale ? p.rm->index >> 3 : 0;
    }
    if (row->enc == VEX)
        vex(&o, row, &p, x, b);
    else
        legacy(&o, row, &p, x, b);
    put(&o, row->opcode | (p.low & 7));
    if (p.rm)
        modrm(&o, p.reg, p.rm);
    if (p.jump)
        o.fix = o.n;
    memcpy(o.at + o.n, &p.imm, 8);
    o.n += p.imm_bytes;
    if (o.fix) {
        br_x86_fix f = {(uint32_t)a->code.n + o.fix, (uint32_t)a->code.n + o.n,
                        p.jump ? p.label : (uint32_t)p.rm->disp};

        if (!br_vec_push(&a->fixes, f))
            a->oom = true;
    }
    br_x86_bytes(a, o.at, o.n);
}

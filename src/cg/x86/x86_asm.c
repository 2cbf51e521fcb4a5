/* x86_asm.c - the encoder: a row of x86.def and operands become bytes.
 *
 *   legacy  [66 F2 F3] [REX] opcode ModRM [SIB] [disp] [imm]
 *   VEX     C5 RvvvvLpp | C4 RXBmmmmm WvvvvLpp, then the same
 *   EVEX    62 RXBR'0mmm Wvvvv1pp zL'LbV'aaa, then the same, but a displacement
 *           of 8 bits counts in sizes of the operand
 *
 * REX, VEX and ModRM are made from where the operands are: the letters of the
 * row say which is reg, rm, vvvv. SPDX-License-Identifier: Apache-2.0 */
#include "cg/x86/x86_asm.h"

#include "cg/x86/x86_row.h"

#include <string.h>

#define LEG BR_X_LEG
#define VEX BR_X_VEX
#define VX1 BR_X_VX1
#define EVX BR_X_EVX
const br_x86_row br_x86_rows[BR_X_COUNT] = {
#define X(name, text, enc, pp, map, w, opcode, ext, ops) \
    {text, ops, enc, pp, map, w, opcode, ext},
#include "cg/x86/x86.def"
#undef X
};

const char *
br_x86_next(const char *s)
{
    s += 2;
    s += *s && *s != ' ';
    return s + (*s == ' ');
}

unsigned
br_x86_length(const br_x86_row *row)
{
    unsigned l = row->enc == VX1;

    for (const char *s = row->ops; *s; s = br_x86_next(s))
        l = BR_MAX(l, s[0] == 'z' ? 2u : s[0] == 'y' ? 1u : 0u);
    return l;
}

unsigned
br_x86_unit(const char *op)
{
    switch (op[2] && op[2] != ' ' ? op[2] : op[0]) {
    case 'z': return 64;
    case 'y': return 32;
    case 'x':
    case 'o': return 16;
    case 'q':
    case '8':
    case 'Q': return 8;
    case 'd':
    case '4':
    case 'D': return 4;
    case 'w':
    case '2': return 2;
    default: return 1;
    }
}

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
    uint32_t label;      /* of a jump */
    unsigned mask, unit; /* unit: of an EVEX displacement, or 1 */
    bool wide, byte, jump, zero, spread;
} parts;

static parts
sort_out(const br_x86_row *row, const br_x86_arg *args)
{
    parts p = {.reg = row->ext >= 0 ? (unsigned)row->ext : 0, .unit = 1};

    for (const char *s = row->ops; *s; s = br_x86_next(s), args++) {
        char what = s[0], where = s[1];

        p.wide |= what == 'q';
        p.byte |= what == 'b' && args->kind == BR_X_REG;
        switch (where) {
        case 'r': p.reg = args->reg; break;
        case 'v': p.vvvv = args->reg; break;
        case 's':
            p.imm = args->reg << 4;
            p.imm_bytes = 1;
            break;
        case 'o': p.low = args->reg; break;
        case 'a':
        case 'z':
            p.mask = args->reg;
            p.zero = where == 'z';
            break;
        case '.':
            p.jump = what == 'j';
            p.label = (uint32_t)args->disp;
            p.imm = args->imm;
            p.imm_bytes = what == 'i' ? 1 : what == 'L' ? 8 : 4;
            break;
        default:
            p.rm = args;
            p.spread = s[2] == 'D' || s[2] == 'Q';
            if (row->enc == EVX)
                p.unit = br_x86_unit(s);
        }
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
modrm(out *o, unsigned reg, const br_x86_arg *m, unsigned unit)
{
    int32_t disp = m->disp;
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
    if (disp % (int32_t)unit == 0)
        disp /= (int32_t)unit;
    else
        unit = 0; /* it takes 32 bits */
    mod = disp == 0 && base != 5                ? 0
          : unit && disp >= -128 && disp <= 127 ? 1
                                                : 2;
    if (m->scale || base == 4) {
        unsigned s = m->scale == 8 ? 3 : m->scale == 4 ? 2 : m->scale == 2;

        put(o, mod << 6 | r | 4);
        put(o, s << 6 | (m->scale ? m->index & 7u : 4u) << 3 | base);
    } else {
        put(o, mod << 6 | r | base);
    }
    if (mod)
        put_disp(o, mod == 1 ? disp : m->disp, mod == 1 ? 1 : 4);
}

/* ---- prefixes ------------------------------------------------------------ */

static void
vex(out *o, const br_x86_row *row, const parts *p, unsigned x, unsigned b)
{
    unsigned r = p->reg >> 3, last;

    br_assert((p->reg | p->vvvv) < 16 && "what EVEX alone can say");
    br_assert(!p->rm || p->rm->kind == BR_X_MEM || p->rm->reg < 16);
    last = (~p->vvvv & 15) << 3 | br_x86_length(row) << 2 | row->pp;
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

/* x, b: bit 3 of index and base; of a register b and x are its bits 3 and 4. */
static void
evex(out *o, const br_x86_row *row, const parts *p, unsigned x, unsigned b)
{
    bool indexed = p->rm->kind == BR_X_MEM && p->rm->scale;
    unsigned high = (p->vvvv | (indexed ? p->rm->index : 0u)) >> 4;

    put(o, 0x62);
    put(o, (~p->reg & 8) << 4 | (unsigned)!x << 6 | (unsigned)!b << 5 |
               (~p->reg & 16) | row->map);
    put(o, (unsigned)row->w << 7 | (~p->vvvv & 15) << 3 | 4 | row->pp);
    put(o, (unsigned)p->zero << 7 | br_x86_length(row) << 5 |
               (unsigned)p->spread << 4 | (unsigned)!high << 3 | p->mask);
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
        b = p.rm->reg >> 3 & 1;
        x = p.rm->kind == BR_X_REG ? p.rm->reg >> 4
            : p.rm->scale          ? p.rm->index >> 3 & 1
                                   : 0;
    }
    if (row->enc == EVX)
        evex(&o, row, &p, x, b);
    else if (row->enc != LEG)
        vex(&o, row, &p, x, b);
    else
        legacy(&o, row, &p, x, b);
    put(&o, row->opcode | (p.low & 7));
    if (p.rm)
        modrm(&o, p.reg, p.rm, p.unit);
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

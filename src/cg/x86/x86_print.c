/* x86_print.c - bytes that x86_asm.c made as text, in Intel's syntax.
 *
 * Prefixes and opcode find the row; a row's operands say what to read. Several
 * rows may share an opcode: register or memory form, digit, W, and L tell.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/x86/x86_row.h"

#include <string.h>

typedef struct code {
    const uint8_t *p;
    size_t n, at;
    unsigned enc, pp, map, w, l, r, x, b, vvvv, opcode, modrm;
    unsigned high, mask; /* EVEX: V', aaa */
    bool rex, spread, zero;
} code;

static unsigned
next(code *c)
{
    return c->at < c->n ? c->p[c->at++] : 0;
}

static int64_t
number(code *c, unsigned bytes)
{
    int64_t v = 0;

    if (c->n - c->at < bytes) {
        c->at = c->n;
        return 0;
    }
    memcpy(&v, c->p + c->at, bytes);
    c->at += bytes;
    return bytes == 1 ? (int8_t)v : bytes == 4 ? (int32_t)v : v;
}

static void
read_vex(code *c, unsigned first)
{
    unsigned a = next(c), last = first == 0xc5 ? a : next(c);

    c->enc = BR_X_VEX;
    c->map = 1;
    c->r = !(a & 0x80);
    if (first == 0xc4) {
        c->x = !(a & 0x40);
        c->b = !(a & 0x20);
        c->map = a & 31;
        c->w = last >> 7;
    }
    c->vvvv = ~last >> 3 & 15;
    c->l = last >> 2 & 1;
    c->pp = last & 3;
    c->opcode = next(c);
}

static void
read_evex(code *c)
{
    unsigned a = next(c), b = next(c), last = next(c);

    c->enc = BR_X_EVX;
    c->r = (a & 0x80 ? 0u : 1u) | (a & 0x10 ? 0u : 2u);
    c->x = !(a & 0x40);
    c->b = !(a & 0x20);
    c->map = a & 7;
    c->w = b >> 7;
    c->pp = b & 3;
    c->zero = last >> 7;
    c->l = last >> 5 & 3;
    c->spread = last >> 4 & 1;
    c->high = !(last & 8);
    c->vvvv = (~b >> 3 & 15) | c->high << 4;
    c->mask = last & 7;
    c->opcode = next(c);
}

static void
read_legacy(code *c, unsigned byte)
{
    if (byte == 0x66 || byte == 0xf3 || byte == 0xf2) {
        c->pp = byte == 0x66 ? 1 : byte == 0xf3 ? 2 : 3;
        byte = next(c);
    }
    if (byte >> 4 == 4) {
        c->rex = true;
        c->w = byte >> 3 & 1;
        c->r = byte >> 2 & 1;
        c->x = byte >> 1 & 1;
        c->b = byte & 1;
        byte = next(c);
    }
    if (byte == 0x0f) {
        c->map = 1;
        byte = next(c);
    }
    c->opcode = byte;
}

/* The mask, and whether memory is one element for all. */
static bool
evex_fits(const br_x86_row *r, const code *c)
{
    bool mask = false, zero = false, spread = false;

    for (const char *s = r->ops; *s; s = br_x86_next(s)) {
        mask |= s[1] == 'a' || s[1] == 'z';
        zero |= s[1] == 'z';
        spread |= s[2] == 'D' || s[2] == 'Q';
    }
    return mask == (c->mask != 0) && zero == c->zero && spread == c->spread;
}

/* Whether a row's operands can be these: sizes, register or memory. */
static bool
fits(const br_x86_row *r, const code *c)
{
    unsigned enc = r->enc == BR_X_VX1 ? BR_X_VEX : r->enc;
    bool low;

    if (enc != c->enc || r->pp != c->pp || r->map != c->map ||
        (r->opcode ^ c->opcode) & 0xf8)
        return false;
    low = strchr(r->ops, 'o') && !strchr(r->ops, 'm');
    if (r->opcode != (c->opcode & (low ? 0xf8u : 0xffu)))
        return false;
    if (strpbrk(r->ops, "mMRrG") && r->ext >= 0 &&
        r->ext != (int)(c->modrm >> 3 & 7))
        return false;
    if (strchr(r->ops, 'R') && c->modrm >> 6 != 3)
        return false;
    if (strpbrk(r->ops, "MG") && c->modrm >> 6 == 3)
        return false;
    if (r->enc != BR_X_LEG)
        return br_x86_length(r) == c->l && r->w == c->w &&
               (r->enc != BR_X_EVX || evex_fits(r, c));
    return strchr(r->ops, 'p') || (strchr(r->ops, 'q') != NULL) == c->w;
}

static void
reg(br_str *s, char what, unsigned n, bool rex)
{
    static const char *const q[] = {"ax", "cx", "dx", "bx",
                                    "sp", "bp", "si", "di"};
    static const char *const low[] = {"al", "cl", "dl", "bl",
                                      "ah", "ch", "dh", "bh"};

    if (what == 'z' || what == 'y' || what == 'x')
        br_str_printf(s, "%cmm%u", what, n);
    else if (what == 'k')
        br_str_printf(s, "k%u", n & 7);
    else if (n >= 8)
        br_str_printf(s, "r%u%s", n,
                      what == 'd'   ? "d"
                      : what == 'b' ? "b"
                      : what == 'w' ? "w"
                                    : "");
    else if (what == 'b' && n >= 4 && rex)
        br_str_printf(s, "%sl", q[n]);
    else if (what == 'b')
        br_str_puts(s, low[n]);
    else
        br_str_printf(s, "%s%s",
                      what == 'd'   ? "e"
                      : what == 'w' ? ""
                                    : "r",
                      q[n]);
}

static const char *
size_text(char what, char bytes)
{
    switch (bytes ? bytes : what) {
    case 'z': return "zmmword ptr ";
    case 'y': return "ymmword ptr ";
    case 'x':
    case 'o': return "xmmword ptr ";
    case 'q':
    case 'p':
    case 'Q':
    case '8': return "qword ptr ";
    case 'd':
    case 'D':
    case '4': return "dword ptr ";
    case '2':
    case 'w': return "word ptr ";
    case '1':
    case 'b': return "byte ptr ";
    default: return "";
    }
}

static void
memory(code *c, const char *op, br_str *s)
{
    unsigned mod = c->modrm >> 6, base = (c->modrm & 7) | c->b << 3, sib;
    int64_t disp = 0;
    unsigned unit = c->enc == BR_X_EVX ? br_x86_unit(op) : 1;

    if (op[1] == 'G') /* 8 elements */
        br_str_puts(s, size_text(op[2] == '4' ? 'y' : 'z', 0));
    else
        br_str_puts(s, size_text(op[0], op[2] && op[2] != ' ' ? op[2] : 0));
    br_str_putc(s, '[');
    if (mod == 0 && (c->modrm & 7) == 5) {
        br_str_puts(s, "rip");
        disp = number(c, 4);
    } else if ((c->modrm & 7) == 4) {
        unsigned index;

        sib = next(c);
        base = (sib & 7) | c->b << 3;
        index = (sib >> 3 & 7) | c->x << 3;
        reg(s, 'q', base, true);
        if (op[1] == 'G' || index != 4) {
            br_str_puts(s, " + ");
            if (sib >> 6)
                br_str_printf(s, "%u*", 1u << (sib >> 6));
            reg(s, op[1] == 'G' ? 'z' : 'q',
                op[1] == 'G' ? index | c->high << 4 : index, true);
        }
    } else {
        reg(s, 'q', base, true);
    }
    if (mod)
        disp = mod == 1 ? number(c, 1) * unit : number(c, 4);
    if (disp)
        br_str_printf(s, disp < 0 ? " - %lld" : " + %lld",
                      (long long)(disp < 0 ? -disp : disp));
    br_str_putc(s, ']');
    if (c->spread)
        br_str_printf(s, "{1to%u}", (16u << c->l) / unit);
}

static void
operand(code *c, const char *op, uint64_t at, br_str *s)
{
    switch (op[1]) {
    case 'r': reg(s, op[0], (c->modrm >> 3 & 7) | c->r << 3, c->rex); break;
    case 'v': reg(s, op[0], c->vvvv, true); break;
    case 'o': reg(s, op[0], (c->opcode & 7) | c->b << 3, c->rex); break;
    case 's': reg(s, op[0], (unsigned)(number(c, 1) & 0xff) >> 4, true); break;
    case '.':
        if (op[0] == 'j') {
            int64_t d = number(c, 4);

            br_str_printf(s, "0x%llx",
                          (unsigned long long)(at + c->at + (uint64_t)d));
        } else {
            br_str_printf(s, "%lld",
                          (long long)number(c, op[0] == 'i'   ? 1
                                               : op[0] == 'L' ? 8
                                                              : 4));
        }
        break;
    default:
        if (c->modrm >> 6 == 3)
            reg(s, op[0],
                (c->modrm & 7) | c->b << 3 |
                    (c->enc == BR_X_EVX ? c->x << 4 : 0),
                c->rex);
        else
            memory(c, op, s);
    }
}

size_t
br_x86_text(const uint8_t *p, size_t n, uint64_t at, br_str *out)
{
    code c = {.p = p, .n = n};
    const br_x86_row *row = NULL;
    unsigned byte = next(&c);

    if (byte == 0xc4 || byte == 0xc5)
        read_vex(&c, byte);
    else if (byte == 0x62)
        read_evex(&c);
    else
        read_legacy(&c, byte);
    c.modrm = c.at < n ? p[c.at] : 0;
    for (unsigned k = 0; k < BR_X_COUNT && !row; k++)
        if (fits(&br_x86_rows[k], &c))
            row = &br_x86_rows[k];
    if (!row)
        return 0;
    br_str_puts(out, row->text);
    if (strpbrk(row->ops, "mMRG") || strchr(row->ops, 'r'))
        c.at++;
    for (const char *s = row->ops; *s; s = br_x86_next(s)) {
        if (s[1] == 'a' || s[1] == 'z')
            continue; /* stands behind the first */
        br_str_puts(out, s == row->ops ? " " : ", ");
        operand(&c, s, at, out);
        if (s == row->ops && c.mask)
            br_str_printf(out, c.zero ? " {k%u} {z}" : " {k%u}", c.mask);
    }
    return c.at <= n ? c.at : 0;
}

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
    bool rex;
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

    c->enc = c->map = 1;
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

/* Whether a row's operands can be these: sizes, register or memory. */
static bool
fits(const br_x86_row *r, const code *c)
{
    bool q = strchr(r->ops, 'q') != NULL, y = strchr(r->ops, 'y') != NULL;
    bool low = strchr(r->ops, 'o') && !strchr(r->ops, 'm');
    unsigned mask = low ? 0xf8 : 0xff;

    if (r->enc != c->enc || r->pp != c->pp || r->map != c->map ||
        r->opcode != (c->opcode & mask))
        return false;
    if (strpbrk(r->ops, "mMRr") && r->ext >= 0 &&
        r->ext != (int)(c->modrm >> 3 & 7))
        return false;
    if (strchr(r->ops, 'R') && c->modrm >> 6 != 3)
        return false;
    if (strpbrk(r->ops, "M") && c->modrm >> 6 == 3)
        return false;
    if (r->enc)
        return y == c->l && r->w == c->w;
    return strchr(r->ops, 'p') || q == c->w;
}

static void
reg(br_str *s, char what, unsigned n, bool rex)
{
    static const char *const q[] = {"ax", "cx", "dx", "bx",
                                    "sp", "bp", "si", "di"};
    static const char *const low[] = {"al", "cl", "dl", "bl",
                                      "ah", "ch", "dh", "bh"};

    if (what == 'y' || what == 'x')
        br_str_printf(s, "%cmm%u", what, n);
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
    case 'y': return "ymmword ptr ";
    case 'x':
    case 'o': return "xmmword ptr ";
    case 'q':
    case 'p':
    case '8': return "qword ptr ";
    case 'd':
    case '4': return "dword ptr ";
    case 'w': return "word ptr ";
    case 'b': return "byte ptr ";
    default: return "";
    }
}

static void
memory(code *c, const char *op, br_str *s)
{
    unsigned mod = c->modrm >> 6, base = (c->modrm & 7) | c->b << 3, sib;
    int64_t disp = 0;
    bool any = true;

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
        if (index != 4) {
            br_str_puts(s, " + ");
            if (sib >> 6)
                br_str_printf(s, "%u*", 1u << (sib >> 6));
            reg(s, 'q', index, true);
        }
    } else {
        reg(s, 'q', base, true);
    }
    if (mod)
        disp = number(c, mod == 1 ? 1 : 4);
    if (disp && any)
        br_str_printf(s, disp < 0 ? " - %lld" : " + %lld",
                      (long long)(disp < 0 ? -disp : disp));
    br_str_putc(s, ']');
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
            reg(s, op[0], (c->modrm & 7) | c->b << 3, c->rex);
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
    else
        read_legacy(&c, byte);
    c.modrm = c.at < n ? p[c.at] : 0;
    for (unsigned k = 0; k < BR_X_COUNT && !row; k++)
        if (fits(&br_x86_rows[k], &c))
            row = &br_x86_rows[k];
    if (!row)
        return 0;
    br_str_puts(out, row->text);
    if (strpbrk(row->ops, "mMR") || strchr(row->ops, 'r'))
        c.at++;
    for (const char *s = row->ops; *s;) {
        br_str_puts(out, s == row->ops ? " " : ", ");
        operand(&c, s, at, out);
        s += 2;
        s += *s && *s != ' ';
        s += *s == ' ';
    }
    return c.at <= n ? c.at : 0;
}

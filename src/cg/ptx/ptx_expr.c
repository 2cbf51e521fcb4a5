/* ptx_expr.c - constant expressions: 4*2, (1<<4)|3, -(x ? 1 : 2), 1.5/2.
 *
 *   ?:  ||  &&  |  ^  &  == !=  < <= > >=  << >>  + -  * / %    weakest first
 *   ! ~ - + (.s64) (.u64)                                       before one
 *
 * Whole numbers are of 64 bits. A literal is signed unless it ends in U or does
 * not fit; of two operands both are unsigned if one is. ~ and % are unsigned, a
 * shift is as its first operand, a comparison is 0 or 1. Sums wrap. Doubles have
 * + - * /, comparisons and ?: among themselves; 0f... is a word of 32 bits that
 * only a sign may stand before.
 *
 * Everything is evaluated, also what ?: && || do not take: a division by zero
 * there is an error, too.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/ptx/ptx_int.h"

#include <string.h>

enum {
    TERNARY,
    OR,
    AND,
    BIT_OR,
    BIT_XOR,
    BIT_AND,
    EQUAL,
    ORDER,
    SHIFT,
    PLUS,
    TIMES,
    ONE /* closer than all of them */
};

typedef struct oper {
    char text[3];
    uint8_t level;
} oper;

/* A text comes before those that it begins with. */
static const oper opers[] = {
    {"||", OR},     {"&&", AND},   {"<<", SHIFT}, {">>", SHIFT}, {"<=", ORDER},
    {">=", ORDER},  {"==", EQUAL}, {"!=", EQUAL}, {"|", BIT_OR}, {"^", BIT_XOR},
    {"&", BIT_AND}, {"<", ORDER},  {">", ORDER},  {"+", PLUS},   {"-", PLUS},
    {"*", TIMES},   {"/", TIMES},  {"%", TIMES},
};

typedef struct val {
    px_opnd o;
    bool is_unsigned;
} val;

static br_code expr(px_parser *p, unsigned least, val *v);

/* The operator that stands here, or NULL. A '%' is a letter of words: "% 3",
 * "%3" and "%(" are words that begin with it. */
static const oper *
oper_here(const px_parser *p)
{
    char second = p->p < p->end ? *p->p : 0;
    char first = p->tok == 'w' && p->word.p[0] == '%' ? '%' : p->tok;

    if (p->tok == '"')
        return NULL;
    for (size_t k = 0; k < BR_COUNT(opers); k++)
        if (opers[k].text[0] == first &&
            (opers[k].text[1] == 0 || opers[k].text[1] == second))
            return &opers[k];
    return NULL;
}

static br_code
skip_oper(px_parser *p, const oper *o)
{
    if (p->tok == 'w') /* the rest of the word comes again */
        p->p = p->word.p + 1;
    if (o->text[1])
        BR_TRY(px_next(p));
    return px_next(p);
}

/* ---- values -------------------------------------------------------------- */

static val
whole(uint64_t n, bool is_unsigned)
{
    return (val){{.kind = O_INT, .imm = n}, is_unsigned};
}

static double
double_of(const val *v)
{
    double d;

    memcpy(&d, &v->o.imm, sizeof d);
    return d;
}

static val
of_double(double d)
{
    val v = {{.kind = O_F64}, false};

    memcpy(&v.o.imm, &d, sizeof d);
    return v;
}

static br_code
no_such(px_parser *p, const char *what)
{
    return px_fail(p, "'%s' of numbers that it is not for", what);
}

static br_code
unary(px_parser *p, char sign, val *v)
{
    const char text[] = {sign, 0};

    if (sign == '!' && v->o.kind == O_INT)
        *v = whole(v->o.imm == 0, false);
    else if (sign == '~' && v->o.kind == O_INT)
        *v = whole(~v->o.imm, true);
    else if (sign == '!' || sign == '~')
        return no_such(p, text);
    else if (sign == '-' && v->o.kind == O_INT)
        v->o.imm = 0 - v->o.imm;
    else if (sign == '-')
        v->o.imm ^= v->o.kind == O_F32 ? 0x80000000u : UINT64_C(1) << 63;
    return BR_OK;
}

static br_code
binary_doubles(px_parser *p, const oper *o, val *a, const val *b)
{
    const double x = double_of(a), y = double_of(b);

    switch (o->text[0]) {
    case '+': *a = of_double(x + y); return BR_OK;
    case '-': *a = of_double(x - y); return BR_OK;
    case '*': *a = of_double(x * y); return BR_OK;
    case '/':
        if (y == 0)
            return px_fail(p, "a division by zero");
        *a = of_double(x / y);
        return BR_OK;
    case '=': *a = whole(x == y, false); return BR_OK;
    case '!': *a = whole(x != y, false); return BR_OK;
    case '<':
    case '>':
        if (o->level == ORDER) {
            bool eq = o->text[1] && x == y;

            *a = whole(eq || (o->text[0] == '<' ? x < y : x > y), false);
            return BR_OK;
        }
        break;
    default: break;
    }
    return no_such(p, o->text);
}

static uint64_t
shift(const val *a, uint64_t by, bool left)
{
    bool minus = !a->is_unsigned && (int64_t)a->o.imm < 0;

    if (by > 63)
        return minus && !left ? UINT64_MAX : 0;
    if (left)
        return a->o.imm << by;
    return minus ? ~(~a->o.imm >> by) : a->o.imm >> by;
}

static bool
is_less(uint64_t x, uint64_t y, bool is_unsigned)
{
    return is_unsigned ? x < y : (int64_t)x < (int64_t)y;
}

static br_code
quotient(px_parser *p, const oper *o, uint64_t x, uint64_t y, val *out)
{
    bool is_unsigned = out->is_unsigned;

    if (y == 0)
        return px_fail(p, "a division by zero");
    if (o->text[0] == '%')
        *out = whole(x % y, true);
    else if (is_unsigned)
        *out = whole(x / y, true);
    else if (y == UINT64_MAX) /* by -1: also of the least number */
        *out = whole(0 - x, false);
    else
        *out = whole((uint64_t)((int64_t)x / (int64_t)y), false);
    return BR_OK;
}

static br_code
binary(px_parser *p, const oper *o, val *a, const val *b)
{
    const bool both = a->is_unsigned || b->is_unsigned;
    const uint64_t x = a->o.imm, y = b->o.imm;
    const bool twice = o->text[1];

    if (a->o.kind == O_F64 && b->o.kind == O_F64)
        return binary_doubles(p, o, a, b);
    if (a->o.kind != O_INT || b->o.kind != O_INT)
        return no_such(p, o->text);
    switch (o->text[0]) {
    case '+': *a = whole(x + y, both); break;
    case '-': *a = whole(x - y, both); break;
    case '*': *a = whole(x * y, both); break;
    case '/':
    case '%': a->is_unsigned = both; return quotient(p, o, x, y, a);
    case '^': *a = whole(x ^ y, both); break;
    case '=': *a = whole(x == y, false); break;
    case '!': *a = whole(x != y, false); break;
    case '&': *a = twice ? whole(x && y, false) : whole(x & y, both); break;
    case '|': *a = twice ? whole(x || y, false) : whole(x | y, both); break;
    case '<':
    case '>':
        if (o->level != ORDER)
            a->o.imm = shift(a, y, o->text[0] == '<');
        else if (o->text[0] == '<')
            *a = whole(twice ? !is_less(y, x, both) : is_less(x, y, both),
                       false);
        else
            *a = whole(twice ? !is_less(x, y, both) : is_less(y, x, both),
                       false);
        break;
    default: br_unreachable("a row of opers");
    }
    return BR_OK;
}

/* ---- grammar ------------------------------------------------------------- */

static br_code
literal(px_parser *p, val *v)
{
    const char *percent = memchr(p->word.p, '%', p->word.n);
    char last;

    if (percent && percent != p->word.p) { /* 8%3 */
        p->word.n = (size_t)(percent - p->word.p);
        p->p = percent;
    }
    if (px_is(p, "WARP_SZ")) {
        *v = whole(32, false);
        return px_next(p);
    }
    if (!px_number(p->word, &v->o))
        return px_fail(p, "'%.*s' is no number",
                       (int)BR_MIN(p->word.n, (size_t)40), p->word.p);
    last = p->word.p[p->word.n - 1];
    v->is_unsigned = v->o.kind == O_INT &&
                     (last == 'U' || last == 'u' || v->o.imm > INT64_MAX);
    return px_next(p);
}

/* (.s64) and (.u64) before a number; or what stands in parentheses. */
static br_code
parentheses(px_parser *p, val *v)
{
    bool is_unsigned;

    BR_TRY(px_next(p));
    is_unsigned = px_is(p, ".u64");
    if (!is_unsigned && !px_is(p, ".s64")) {
        BR_TRY(expr(p, TERNARY, v));
        return px_expect(p, ')');
    }
    BR_TRY(px_next(p));
    BR_TRY(px_expect(p, ')'));
    BR_TRY(expr(p, ONE, v));
    if (v->o.kind != O_INT)
        return no_such(p, is_unsigned ? "(.u64)" : "(.s64)");
    v->is_unsigned = is_unsigned;
    return BR_OK;
}

/* What binds closer than all operators between two. */
static br_code
primary(px_parser *p, val *v)
{
    char sign = p->tok;

    *v = (val){0};
    if (sign == '(')
        return parentheses(p, v);
    if (sign == '-' || sign == '+' || sign == '~' || sign == '!') {
        BR_TRY(px_next(p));
        BR_TRY(expr(p, ONE, v));
        return unary(p, sign, v);
    }
    if (!px_is_number(p))
        return px_fail(p, "a number has to stand here");
    return literal(p, v);
}

/* a ? b : c, from the question mark on. */
static br_code
choice(px_parser *p, val *v)
{
    const bool first = v->o.imm != 0;
    val b, c;

    if (v->o.kind != O_INT)
        return no_such(p, "?:");
    BR_TRY(px_next(p));
    BR_TRY(expr(p, TERNARY, &b));
    BR_TRY(px_expect(p, ':'));
    BR_TRY(expr(p, TERNARY, &c));
    if (b.o.kind != c.o.kind || b.o.kind == O_F32)
        return no_such(p, "?:");
    *v = first ? b : c;
    v->is_unsigned = b.is_unsigned || c.is_unsigned;
    return BR_OK;
}

/* Of operators of level `least` and closer ones. */
static br_code
expr(px_parser *p, unsigned least, val *v)
{
    const oper *o;
    val b;

    if (++p->depth > BR_PTX_MAX_DEPTH)
        return px_fail(p, "operands nested over %d deep", BR_PTX_MAX_DEPTH);
    BR_TRY(primary(p, v));
    while ((o = oper_here(p)) != NULL && o->level >= least) {
        BR_TRY(skip_oper(p, o));
        BR_TRY(expr(p, o->level + 1u, &b));
        BR_TRY(binary(p, o, v, &b));
    }
    if (least == TERNARY && p->tok == '?')
        BR_TRY(choice(p, v));
    p->depth--;
    return BR_OK;
}

static bool
is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool
px_is_number(const px_parser *p)
{
    return p->tok == 'w' &&
           (is_digit(p->word.p[p->word.n > 1 && p->word.p[0] == '.']) ||
            (p->word.n >= 7 && memcmp(p->word.p, "WARP_SZ", 7) == 0 &&
             (p->word.n == 7 || p->word.p[7] == '%')));
}

br_code
px_constant(px_parser *p, px_opnd *out)
{
    val v;

    BR_TRY(expr(p, TERNARY, &v));
    *out = v.o;
    return BR_OK;
}

br_code
px_sum(px_parser *p, uint64_t *sum)
{
    while (p->tok == '+' || p->tok == '-') {
        bool minus = p->tok == '-';
        val v;

        BR_TRY(px_next(p));
        BR_TRY(expr(p, TIMES, &v));
        if (v.o.kind != O_INT)
            return px_fail(p, "a whole number has to follow the sign");
        *sum += minus ? 0 - v.o.imm : v.o.imm;
    }
    return BR_OK;
}

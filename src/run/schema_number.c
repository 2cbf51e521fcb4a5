/* schema_number.c - numbers of a schema, see schema.c.
 *
 * All are whole numbers N of a unit, 10^-scale: {"minimum":0.5,"multipleOf":0.25}
 * are the N of 0.01 from 50 on that 25 divides. Digit after digit, what matters of
 * those that came is only what they leave when divided by the step: a rule for
 * each remainder and number of digits to come ("12" may be followed by what "37"
 * may be followed by). Remainders that the digits to come cannot tell apart are
 * one, so multiples of 10, 25 or 1000 take a rule a digit, and of 7 seven.
 *
 *   {"type":"integer","multipleOf":25,"minimum":0,"maximum":99}
 *   "0" | ("2" "5" | "5" "0" | "7" "5")
 *
 * Fractions end where the rest would be zeros, or have them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/schema_int.h"

#include <stdio.h>
#include <string.h>

enum {
    INT_DIGITS = 15,  /* of whole numbers */
    REAL_DIGITS = 18, /* before and behind the point */
    FRACTION = 6,     /* digits of it, where nothing asks for more */
    MAX_FRACTION = 9,
    MAX_STATES = 2048, /* rules of one number */
};

/* Of 10^-scale: beyond all that is made, and twice it is no overflow. */
#define FAR INT64_C(4000000000000000000)

typedef struct state {
    uint64_t rest;
    uint32_t digits, rule;
} state;

typedef struct grid {
    maker *k;
    uint32_t scale; /* digits behind the point */
    uint64_t step;  /* what divides them all */
    BR_VEC(state) known;
    bool failed; /* too many, or no memory */
} grid;

static uint64_t
ten(uint32_t n)
{
    uint64_t v = 1;

    while (n--)
        v *= 10;
    return v;
}

/* ---- decimals ------------------------------------------------------------ */

typedef struct decimal { /* digits * 10^exponent */
    bool minus;
    uint64_t digits;
    int32_t exponent;
} decimal;

/* "-12.5e+20", of at most 19 digits. */
static decimal
read_decimal(const char *s)
{
    decimal d = {.minus = *s == '-'};
    bool behind = false;

    for (s += d.minus; *s && *s != 'e'; s++) {
        if (*s == '.') {
            behind = true;
            continue;
        }
        d.digits = d.digits * 10 + (uint64_t)(*s - '0');
        d.exponent -= behind;
    }
    if (*s == 'e') {
        bool minus = s[1] == '-';
        int32_t e = 0;

        for (s += 1 + (s[1] == '-' || s[1] == '+'); *s; s++)
            e = e * 10 + (*s - '0');
        d.exponent += minus ? -e : e;
    }
    while (d.digits && d.digits % 10 == 0) {
        d.digits /= 10;
        d.exponent++;
    }
    return d;
}

static bool
decimal_of(json *v, decimal *out)
{
    char text[32];

    if (v->kind == BR_J_INT)
        snprintf(text, sizeof text, "%lld", (long long)v->i);
    else if (v->kind == BR_J_FLOAT)
        (void)br_f64_repr(text, v->f);
    else if (v->kind == BR_J_BIGINT) /* over 2^63: far beyond, either way */
        snprintf(text, sizeof text, "%s1e30", v->s[0] == '-' ? "-" : "");
    else
        return false;
    *out = read_decimal(text);
    return true;
}

/* In units of 10^-scale, rounded up or down; FAR at most. */
static int64_t
in_units(decimal d, uint32_t scale, bool up)
{
    int32_t e = d.exponent + (int32_t)scale;
    uint64_t v = d.digits;
    bool cut = false;

    for (; e > 0 && v && v < (uint64_t)FAR; e--)
        v = v > (uint64_t)FAR / 10 ? (uint64_t)FAR : v * 10;
    for (; e < 0 && v; e++) {
        cut |= v % 10 != 0;
        v /= 10;
    }
    cut |= e < 0 && d.digits;
    v = BR_MIN(v, (uint64_t)FAR) + (cut && up != d.minus);
    return d.minus ? -(int64_t)v : (int64_t)v;
}

/* Digits behind the point. */
static uint32_t
scale_of(decimal d)
{
    return d.digits && d.exponent < 0 ? (uint32_t)-d.exponent : 0;
}

/* Digits before it; 0: it is below 1. */
static uint32_t
before_point(decimal d)
{
    int32_t n = d.exponent;

    for (uint64_t v = d.digits; v; v /= 10)
        n++;
    return d.digits ? (uint32_t)BR_MAX(n, 0) : 0;
}

/* ---- remainders ---------------------------------------------------------- */

static uint64_t
gcd(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t c = a % b;

        a = b;
        b = c;
    }
    return a;
}

/* n digits, from `from` on, that make a multiple behind some that left rest:
 * the first. */
static uint64_t
first_from(const grid *g, uint64_t rest, uint32_t n, uint64_t from)
{
    uint64_t r = rest;

    while (n--)
        r = r * 10 % g->step; /* a step is below 10^18 */
    r = (r + from % g->step) % g->step;
    return from + (r ? g->step - r : 0);
}

/* What is left of the remainder's meaning when any n digits may come. */
static uint64_t
same_for(const grid *g, uint64_t rest, uint32_t n)
{
    return rest % (g->step / gcd(g->step, ten(n)));
}

/* ---- digits -------------------------------------------------------------- */

static void put(grid *g, br_str *to, uint64_t a, uint64_t b, uint32_t n,
                uint64_t rest);

static void put_any(grid *g, br_str *to, uint32_t n, uint64_t rest);

/* The first of n digits, and the rest of them: from a to b. */
static void
put_digits(grid *g, br_str *to, uint64_t a, uint64_t b, uint32_t n,
           uint64_t rest)
{
    uint64_t unit = ten(n - 1), low = a / unit, high = b / unit;
    bool done[10] = {false};
    const char *bar = "(";

    for (uint64_t d = low; d <= high; d++) {
        uint64_t from = d == low ? a % unit : 0;
        uint64_t to_ = d == high ? b % unit : unit - 1;
        uint64_t r = (rest * 10 + d) % g->step;
        bool any = from == 0 && to_ == unit - 1;

        if (done[d] || first_from(g, r, n - 1, from) > to_)
            continue;
        br_str_printf(to, "%s[%u", bar, (unsigned)d);
        bar = "| ";
        r = any ? same_for(g, r, n - 1) : r;
        for (uint64_t e = d + 1; any && e < high + (b % unit == unit - 1); e++)
            if (same_for(g, (rest * 10 + e) % g->step, n - 1) == r) {
                br_str_printf(to, "%u", (unsigned)e);
                done[e] = true;
            }
        br_str_puts(to, "] ");
        put(g, to, from, to_, n - 1, r);
    }
    br_str_puts(to, ") ");
}

/* n digits, the point before the last `scale` of them, from a to b; some are
 * multiples. */
static void
put(grid *g, br_str *to, uint64_t a, uint64_t b, uint32_t n, uint64_t rest)
{
    bool any = a == 0 && b == ten(n) - 1;
    bool may_end = n <= g->scale && a == 0 && first_from(g, rest, n, 0) == 0;
    const char *point = n == g->scale ? "\".\" " : "";

    if (n == 0)
        return;
    if (any && g->step == 1 && n > g->scale) {
        br_str_printf(to, "[0-9]{%u} ", n - g->scale);
        n = g->scale;
        if (n == 0)
            return;
        point = "\".\" ";
    }
    if (any && g->step == 1) {
        br_str_printf(to, "(%s[0-9]{1,%u})? ", point, n);
        return;
    }
    br_str_printf(to, "(%s", point);
    if (any)
        put_any(g, to, n, rest);
    else
        put_digits(g, to, a, b, n, rest);
    br_str_puts(to, may_end ? ")? " : ") ");
}

/* Any n digits behind `rest`: a rule, which others may share. */
static void
put_any(grid *g, br_str *to, uint32_t n, uint64_t rest)
{
    br_str text = {0};
    uint32_t rule;

    for (size_t i = 0; i < g->known.n; i++)
        if (g->known.at[i].rest == rest && g->known.at[i].digits == n) {
            br_str_printf(to, "%sr%u ", g->k->prefix, g->known.at[i].rule);
            return;
        }
    rule = g->k->n_rules++;
    g->failed |= g->known.n == MAX_STATES ||
                 g->k->rules->n > BR_GRAMMAR_MAX_TEXT ||
                 !br_vec_push(&g->known, ((state){rest, n, rule}));
    br_str_printf(to, "%sr%u ", g->k->prefix, rule);
    if (g->failed)
        return;
    put_digits(g, &text, 0, ten(n) - 1, n, rest);
    br_schema_put_rule(g->k, rule, "", &text);
}

/* The multiples from lo to hi (units, both from 0 on), sign before. */
static void
put_part(grid *g, br_str *to, const char *sign, uint64_t lo, uint64_t hi,
         const char **bar)
{
    uint64_t least = 0;

    for (uint32_t n = g->scale + 1; n <= REAL_DIGITS; n++) {
        uint64_t a = BR_MAX(lo, least), b = BR_MIN(hi, ten(n) - 1);

        least = ten(n);
        if (a > b || first_from(g, 0, n, a) > b)
            continue;
        br_str_printf(to, "%s%s", *bar, sign);
        *bar = "| ";
        put(g, to, a, b, n, 0);
    }
}

/* ---- a number ------------------------------------------------------------ */

static br_code
read_keyword(maker *k, json *s, const char *key, decimal *out, bool *given)
{
    json *v = br_json_get(s, key);

    *given = v != NULL;
    if (v && !decimal_of(v, out))
        return br_schema_refuse(k, key, "must be a number");
    return BR_OK;
}

/* Formats of OpenAPI and of Rust's schemars. Those of 64 bits hold all that is
 * made anyway, or half of it. */
static const struct {
    const char *name;
    int64_t lo, hi;
} widths[] = {
    {"int8", -128, 127},
    {"int16", -32768, 32767},
    {"int32", INT32_MIN, INT32_MAX},
    {"uint8", 0, 255},
    {"uint16", 0, 65535},
    {"uint32", 0, UINT32_MAX},
    {"uint64", 0, INT64_MAX},
    {"uint", 0, INT64_MAX},
};

/* Of whole numbers: does "format" bound them? */
bool
br_schema_width(json *s, int64_t *lo, int64_t *hi)
{
    json *v = br_json_get(s, "format");

    for (size_t i = 0; v && v->kind == BR_J_STR && i < BR_COUNT(widths); i++)
        if (br_json_is(v, widths[i].name)) {
            *lo = widths[i].lo;
            *hi = widths[i].hi;
            return true;
        }
    return false;
}

/* Bounds that lie between two units are rounded to what they allow. */
static br_code
read_bounds(maker *k, json *s, uint32_t scale, int64_t most, int64_t *lo,
            int64_t *hi)
{
    decimal d;
    bool given;

    *lo = -most;
    *hi = most;
    BR_TRY(read_keyword(k, s, "minimum", &d, &given));
    if (given)
        *lo = BR_MAX(*lo, in_units(d, scale, true));
    BR_TRY(read_keyword(k, s, "exclusiveMinimum", &d, &given));
    if (given)
        *lo = BR_MAX(*lo, in_units(d, scale, false) + 1);
    BR_TRY(read_keyword(k, s, "maximum", &d, &given));
    if (given)
        *hi = BR_MIN(*hi, in_units(d, scale, false));
    BR_TRY(read_keyword(k, s, "exclusiveMaximum", &d, &given));
    if (given)
        *hi = BR_MIN(*hi, in_units(d, scale, true) - 1);
    return BR_OK;
}

/* The unit that all of it can be said in, and the step of that. */
static br_code
read_step(maker *k, json *s, bool real, grid *g)
{
    /* the first two say how far from 0 it is where they are above that */
    static const char *const keys[] = {"minimum", "exclusiveMinimum", "maximum",
                                       "exclusiveMaximum"};
    uint32_t before = 0; /* so many digits at least */
    decimal d;
    bool given;
    int64_t step;

    g->step = 1;
    BR_TRY(read_keyword(k, s, "multipleOf", &d, &given));
    if (given) {
        g->scale = real ? BR_MAX(scale_of(d), 1u) : scale_of(d);
        if (d.minus || !d.digits)
            return br_schema_refuse(k, "multipleOf", "must be above 0");
        step = g->scale > MAX_FRACTION ? FAR : in_units(d, g->scale, false);
        if (step > (int64_t)ten(INT_DIGITS))
            return br_schema_refuse(k, "multipleOf",
                                    "of over 15 digits, or 9 behind the point");
        g->step = (uint64_t)step;
        if (!real && g->scale) { /* whole ones among them */
            g->step /= gcd(g->step, ten(g->scale));
            g->scale = 0;
        }
        return BR_OK;
    }
    g->scale = real ? FRACTION : 0;
    for (size_t i = 0; real && i < BR_COUNT(keys); i++) {
        BR_TRY(read_keyword(k, s, keys[i], &d, &given));
        if (given)
            g->scale = BR_MAX(g->scale, BR_MIN(scale_of(d), MAX_FRACTION));
        if (given && d.minus == (i >= 2))
            before = BR_MAX(before, before_point(d));
    }
    while (g->scale > 1 && before + g->scale > REAL_DIGITS)
        g->scale--;
    return BR_OK;
}

br_code
br_schema_number(maker *k, json *s, bool real, br_str *to)
{
    grid g = {.k = k};
    const char *bar = "";
    const int64_t usual = (int64_t)ten(INT_DIGITS) - 1;
    size_t was;
    int64_t lo = 0, hi = 0, least, most;

    BR_TRY(read_step(k, s, real, &g));
    BR_TRY(read_bounds(k, s, g.scale, (int64_t)ten(REAL_DIGITS) - 1, &lo, &hi));
    if (!real && lo <= usual && hi >= -usual) { /* or all are longer */
        lo = BR_MAX(lo, -usual);
        hi = BR_MIN(hi, usual);
    }
    if (!real && br_schema_width(s, &least, &most)) {
        lo = BR_MAX(lo, least);
        hi = BR_MIN(hi, most);
    }
    br_str_putc(to, '(');
    was = to->n;
    if (lo < 0) /* there is no -0 */
        put_part(&g, to, "\"-\" ", (uint64_t)BR_MAX(-hi, 1), (uint64_t)-lo,
                 &bar);
    if (hi >= 0)
        put_part(&g, to, "", (uint64_t)BR_MAX(lo, 0), (uint64_t)hi, &bar);
    br_str_puts(to, ") ");
    br_vec_fini(&g.known);
    if (g.failed)
        return br_schema_refuse(k, "multipleOf",
                                "cannot be enforced: it takes over 2048 rules");
    return to->n > was + 2 || to->oom
               ? BR_OK
               : br_schema_refuse(k, "minimum",
                                  "no number of at most 18 digits is left");
}

/* schema_scalar.c - texts and numbers of a schema, see schema.c.
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/schema_int.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const formats[] = {
#define X(name, text)
#define NAMED(name, text) name,
#include "run/schema_rule.def"
#undef X
#undef NAMED
};

/* ---- texts --------------------------------------------------------------- */

static br_code
formatted(maker *k, json *v, br_str *to)
{
    for (size_t i = 0; v->kind == BR_J_STR && i < BR_COUNT(formats); i++)
        if (strcmp(formats[i], v->s) == 0) {
            br_str_printf(to, "\"\\\"\" %s \"\\\"\"", v->s);
            return BR_OK;
        }
    return br_schema_refuse(k, "format", "this format cannot be enforced");
}

br_code
br_schema_string(maker *k, json *s, br_str *to)
{
    json *pattern = br_json_get(s, "pattern"), *form = br_json_get(s, "format");
    int64_t min = 0, max = -1;
    br_str text = {0};

    BR_TRY(br_schema_count(k, s, "minLength", &min));
    BR_TRY(br_schema_count(k, s, "maxLength", &max));
    if ((pattern != NULL) + (form != NULL) + (min > 0 || max >= 0) > 1)
        return br_schema_refuse(
            k, pattern ? "pattern" : "format",
            "cannot be enforced beside other limits of the text");
    if (form)
        return formatted(k, form, to);
    if (pattern) {
        br_status st = {0};

        if (pattern->kind != BR_J_STR)
            return br_schema_refuse(k, "pattern", "must be a string");
        if (br_pattern_grammar((br_text){pattern->s, pattern->n}, &text, &st) !=
            BR_OK) {
            br_str_fini(&text);
            return br_schema_refuse(k, "pattern", st.msg);
        }
    } else if (min == 0 && max < 0) {
        br_str_puts(to, "string");
        return BR_OK;
    } else if (max >= 0 && max < min) {
        return br_schema_refuse(k, "maxLength", "is below minLength");
    } else if (max < 0) {
        br_str_printf(&text, "char{%lld,}", (long long)min);
    } else {
        br_str_printf(&text, "char{%lld,%lld}", (long long)min, (long long)max);
    }
    /* A rule of its own: what is allowed within is found once. */
    br_str_printf(k->rules, "%sr%u ::= \"\\\"\" %s \"\\\"\"\n", k->prefix,
                  k->n_rules, br_str_z(&text));
    k->rules->oom |= text.oom;
    br_str_fini(&text);
    br_str_printf(to, "%sr%u", k->prefix, k->n_rules++);
    return BR_OK;
}

/* ---- numbers ------------------------------------------------------------- */

/* Of n digits, from a to b; a <= b. */
static void
digits(br_str *to, const char *a, const char *b, size_t n)
{
    static const char none[] = "000000000000000", all[] = "999999999999999";

    if (n == 0)
        return;
    if (*a == *b) {
        br_str_printf(to, "\"%c\" ", *a);
        digits(to, a + 1, b + 1, n - 1);
        return;
    }
    if (memcmp(a, none, n) == 0 && memcmp(b, all, n) == 0) {
        br_str_printf(to, "[0-9]{%zu} ", n);
        return;
    }
    br_str_printf(to, "(\"%c\" ", *a);
    digits(to, a + 1, all, n - 1);
    if (*a + 1 < *b)
        br_str_printf(to, "| [%c-%c] [0-9]{%zu} ", *a + 1, *b - 1, n - 1);
    br_str_printf(to, "| \"%c\" ", *b);
    digits(to, none, b + 1, n - 1);
    br_str_puts(to, ") ");
}

/* Whole numbers from lo to hi, both from 0 on, as alternatives. */
static void
naturals(br_str *to, int64_t lo, int64_t hi)
{
    int64_t from = 1, least = 0; /* of so many digits */
    const char *bar = "";

    for (size_t n = 1; n <= 15; n++, least = from) {
        int64_t end = from * 10 - 1, a = BR_MAX(lo, least), b = BR_MIN(hi, end);
        char x[24], y[24];

        from = end + 1;
        if (a > b)
            continue;
        br_str_puts(to, bar);
        bar = "| ";
        snprintf(x, sizeof x, "%lld", (long long)a);
        snprintf(y, sizeof y, "%lld", (long long)b);
        digits(to, x, y, n);
    }
}

typedef struct bounds {
    int64_t lo, hi;
    bool above, below; /* lo, hi themselves are not allowed */
    bool any;          /* some bound was given */
} bounds;

/* From lo to hi, 0 <= lo, with sign before; parts after the point if real. */
static void
part(br_str *to, const char *sign, bounds b, bool real, const char **bar)
{
    if (!real) {
        b.lo += b.above;
        b.hi -= b.below;
        b.above = b.below = false;
    }
    if (b.lo > b.hi || (b.lo == b.hi && (b.above || b.below)))
        return;
    br_str_printf(to, "%s%s(", *bar, sign);
    *bar = " | ";
    if (!real) {
        naturals(to, b.lo, b.hi);
    } else {
        if (b.above) { /* lo.000001 and so on, if not more than hi */
            br_str_puts(to, "(");
            naturals(to, b.lo, b.lo);
            br_str_puts(to, ") \".\" [0-9]{0,5} [1-9] ");
        }
        if (b.lo + b.above < b.hi) {
            br_str_puts(to, b.above ? "| (" : "(");
            naturals(to, b.lo + b.above, b.hi - 1);
            br_str_puts(to, ") frac? ");
        }
        if (!b.below) {
            br_str_puts(to, b.lo < b.hi || b.above ? "| (" : "(");
            naturals(to, b.hi, b.hi);
            br_str_puts(to, ") (\".\" \"0\"{1,6})? ");
        }
    }
    br_str_puts(to, ")");
}

static br_code
bound(maker *k, json *s, const char *key, bool real, int64_t *out, bool *given)
{
    int64_t most = real ? INT64_C(1000000000) : INT64_C(999999999999999);
    json *v = br_json_get(s, key);

    *given = v != NULL;
    if (!v)
        return BR_OK;
    if (v->kind == BR_J_FLOAT && v->f == floor(v->f) && fabs(v->f) < 1e15)
        *out = (int64_t)v->f;
    else if (v->kind == BR_J_INT)
        *out = v->i;
    else
        return br_schema_refuse(k, key,
                                "only whole numbers can be enforced as bounds");
    if (*out > most || *out < -most)
        return br_schema_refuse(k, key,
                                real ? "over 1e9" : "of over 15 digits");
    return BR_OK;
}

static br_code
bounds_of(maker *k, json *s, bool real, bounds *b)
{
    int64_t most = real ? INT64_C(1000000000) : INT64_C(999999999999999);
    bool lo, hi;
    int64_t x = -most, y = most;

    *b = (bounds){.lo = -most, .hi = most};
    BR_TRY(bound(k, s, "minimum", real, &b->lo, &lo));
    BR_TRY(bound(k, s, "maximum", real, &b->hi, &hi));
    BR_TRY(bound(k, s, "exclusiveMinimum", real, &x, &b->above));
    BR_TRY(bound(k, s, "exclusiveMaximum", real, &y, &b->below));
    b->any = lo || hi || b->above || b->below;
    b->above = b->above && x >= b->lo;
    b->below = b->below && y <= b->hi;
    b->lo = b->above ? x : b->lo;
    b->hi = b->below ? y : b->hi;
    return BR_OK;
}

br_code
br_schema_number(maker *k, json *s, bool real, br_str *to)
{
    json *step = br_json_get(s, "multipleOf");
    const char *bar = "";
    size_t was;
    bounds b, mirror;

    BR_TRY(bounds_of(k, s, real, &b));
    if (step && (real || step->kind != BR_J_INT || step->i != 1))
        return br_schema_refuse(k, "multipleOf", "cannot be enforced");
    if (!b.any) {
        br_str_puts(to, real ? "number" : "integer");
        return BR_OK;
    }
    was = to->n;
    br_str_putc(to, '(');
    mirror = (bounds){-b.hi, -b.lo, b.below, b.above, true};
    if (b.lo < 0) {
        if (mirror.lo < 0) {
            mirror.lo = !real; /* whole numbers: no -0 */
            mirror.above = false;
        }
        part(to, "\"-\" ", mirror, real, &bar);
    }
    if (b.hi >= 0) {
        if (b.lo < 0) {
            b.lo = 0;
            b.above = false;
        }
        part(to, "", b, real, &bar);
    }
    br_str_putc(to, ')');
    return to->n > was + 2 || to->oom
               ? BR_OK
               : br_schema_refuse(k, "minimum", "no number is left");
}

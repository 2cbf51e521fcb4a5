/* schema_text.c - texts of a schema, see schema.c.
 *
 * A keyword alone is a rule; several, or a pattern that begins with (?=...) or
 * (?!...), are enforced together (schema_both.c).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/schema_int.h"

#include <stdio.h>
#include <string.h>

static const char *const formats[] = {
#define X(name, text)
#define NAMED(name, text) name,
#include "run/schema_rule.def"
#undef X
#undef NAMED
};

typedef struct parts {
    br_schema_part at[BR_SCHEMA_PARTS];
    uint32_t n;
    int64_t min, max; /* characters */
} parts;

static void
fini(parts *p)
{
    while (p->n)
        br_str_fini(&p->at[--p->n].text);
}

static br_schema_part *
add(maker *k, parts *p, const char *keyword)
{
    if (p->n == BR_SCHEMA_PARTS) {
        (void)br_schema_refuse(k, keyword, "over 8 limits of one text");
        return NULL;
    }
    p->at[p->n] = (br_schema_part){.keyword = keyword};
    return &p->at[p->n++];
}

/* ---- keywords ------------------------------------------------------------- */

/* zod's names for what the pattern beside them says. */
static bool
is_pattern_name(json *v)
{
    static const char *const names[] = {"starts_with", "ends_with", "includes",
                                        "lowercase", "uppercase"};

    for (size_t i = 0; v->kind == BR_J_STR && i < BR_COUNT(names); i++)
        if (br_json_is(v, names[i]))
            return true;
    return false;
}

/* An encoding is the format of that name. */
static br_code
formatted(maker *k, json *v, const char *keyword, parts *p)
{
    br_schema_part *part;
    bool any = strcmp(keyword, "format") == 0;

    for (size_t i = 0; i < BR_COUNT(formats); i++)
        if (br_json_is(v, formats[i]) &&
            (any || strncmp(v->s, "base64", 6) == 0)) {
            part = add(k, p, keyword);
            if (!part)
                return BR_E_UNSUPPORTED;
            br_str_puts(&part->text, v->s);
            return BR_OK;
        }
    return br_schema_refuse(k, keyword,
                            any ? "this format cannot be enforced"
                                : "this encoding cannot be enforced");
}

static br_code
length(maker *k, int64_t min, int64_t max, parts *p)
{
    br_schema_part *part = add(k, p, max < 0 ? "minLength" : "maxLength");

    if (!part)
        return BR_E_UNSUPPORTED;
    if (max >= 0 && max < min)
        return br_schema_refuse(k, "maxLength", "is below minLength");
    if (max < 0)
        br_str_printf(&part->text, "char{%lld,}", (long long)min);
    else
        br_str_printf(&part->text, "char{%lld,%lld}", (long long)min,
                      (long long)max);
    return BR_OK;
}

static br_code
translated(maker *k, br_text t, bool never, parts *p)
{
    br_schema_part *part = add(k, p, "pattern");
    br_status st = {0};

    if (!part)
        return BR_E_UNSUPPORTED;
    part->never = never;
    if (br_pattern_grammar(t, &part->text, &st) == BR_OK)
        return BR_OK;
    return st.code == BR_E_OOM ? br_schema_oom(k)
                               : br_schema_refuse(k, "pattern", st.msg);
}

/* "^" and a piece of a pattern. */
static br_code
piece(maker *k, br_text t, bool never, parts *p)
{
    br_str text = {0};
    br_code code;

    br_str_putc(&text, '^');
    br_str_put(&text, t.p, t.n);
    k->rules->oom |= text.oom;
    code = translated(k, (br_text){br_str_z(&text), text.n}, never, p);
    br_str_fini(&text);
    return code;
}

/* Where the ( that was opened before p closes, or, from the outermost, the end;
 * bar: a | was there that is in no other (. */
static const char *
close_of(const char *p, const char *end, bool *bar)
{
    bool class = false;
    int depth = 0;

    *bar = false;
    for (; p < end; p++) {
        if (*p == '\\' && p + 1 < end)
            p++;
        else if (class || *p == '[')
            class = *p != ']';
        else if (*p == '(')
            depth++;
        else if (*p == ')' && depth-- == 0)
            return p;
        else if (*p == '|' && depth == 0)
            *bar = true;
    }
    return end;
}

/* It is a pattern that others may stand around: it closes what it opens. */
static bool
is_whole(json *v)
{
    bool bar;

    return v->kind == BR_J_STR && strlen(v->s) == v->n &&
           close_of(v->s, v->s + v->n, &bar) == v->s + v->n;
}

/* A pattern as what stands behind ^. */
static void
from_begin(br_str *to, json *v)
{
    const char *end = v->s + v->n;
    bool bar, begins = v->n && *v->s == '^';

    (void)close_of(v->s, end, &bar);
    if (begins && !bar)
        br_str_put(to, v->s + 1, v->n - 1);
    else
        br_str_printf(to, bar ? "(?:.|[\\n\\r])*(?:%s)" : "(?:.|[\\n\\r])*%s",
                      v->s);
}

br_code
br_schema_patterns(maker *k, json *a, json *b, br_json **out)
{
    br_str text = {0};

    if (!is_whole(a) || !is_whole(b))
        return br_schema_refuse(k, "pattern", "cannot be enforced twice");
    br_str_puts(&text, "^(?=");
    from_begin(&text, b);
    br_str_puts(&text, ")");
    from_begin(&text, a);
    *out = text.oom
               ? NULL
               : br_json_new_str(&k->arena, (br_text){br_str_z(&text), text.n});
    br_str_fini(&text);
    return *out ? BR_OK : br_schema_oom(k);
}

/* What begins with ^(?=a) or ^(?!a) says of the same text that it begins, or
 * does not begin, with a. */
static br_code
pattern(maker *k, json *v, parts *p)
{
    const char *at, *end, *close;
    bool bar, never, any = false;

    if (v->kind != BR_J_STR)
        return br_schema_refuse(k, "pattern", "must be a string");
    at = v->s;
    end = at + v->n;
    while (end - at > 4 && (*at == '^' || any) &&
           memcmp(at + !any, "(?", 2) == 0 && strchr("=!", at[!any + 2])) {
        at += !any + 3;
        any = true;
        never = at[-1] == '!';
        at += *at == '^'; /* where it stands anyway */
        close = close_of(at, end, &bar);
        if (close == end || bar)
            return br_schema_refuse(k, "pattern", "this (? cannot be enforced");
        BR_TRY(piece(k, (br_text){at, (size_t)(close - at)}, never, p));
        at = close + 1;
    }
    if (!any)
        return translated(k, (br_text){v->s, v->n}, false, p);
    (void)close_of(at, end, &bar);
    if (bar)
        return br_schema_refuse(k, "pattern",
                                "(? before one of several cannot be enforced");
    return piece(k, (br_text){at, (size_t)(end - at)}, false, p);
}

/* ---- a text --------------------------------------------------------------- */

/* Each text in one spelling, without \u and \/: else what must not match could
 * come as another. */
static br_code
one_spelling(maker *k, parts *p)
{
    br_schema_part *part;
    bool need = false;

    for (uint32_t i = 0; i < p->n; i++)
        need |= p->at[i].never;
    if (!need)
        return BR_OK;
    part = add(k, p, "pattern");
    if (!part)
        return BR_E_UNSUPPORTED;
    br_str_puts(&part->text, "spelled*");
    return BR_OK;
}

/* What is said of the length is kept to anyway, if need be by shorter ones of the
 * same format: counting takes a rule for each pair of a place in it and a length. */
static bool
keeps_length(maker *k, parts *p)
{
    static const char *const shorter[] = {"email", "uri", "hostname"};
    br_schema_part *last = p->n ? &p->at[p->n - 1] : NULL;
    br_str was;

    if (!last || br_schema_fits(k, p->at, p->n, p->min, p->max))
        return last != NULL;
    for (size_t i = 0; i < BR_COUNT(shorter); i++) {
        if (strcmp(last->keyword, "format") != 0 ||
            strcmp(br_str_z(&last->text), shorter[i]) != 0)
            continue;
        was = last->text;
        last->text = (br_str){0};
        br_str_printf(&last->text, "%s-short", shorter[i]);
        if (br_schema_fits(k, p->at, p->n, p->min, p->max)) {
            br_str_fini(&was);
            return true;
        }
        br_str_fini(&last->text);
        last->text = was;
        break;
    }
    return false;
}

static br_code
collect(maker *k, json *s, parts *p)
{
    json *like = br_json_get(s, "pattern"), *form = br_json_get(s, "format");
    json *code = br_json_get(s, "contentEncoding");

    p->max = -1;
    BR_TRY(br_schema_count(k, s, "minLength", &p->min));
    BR_TRY(br_schema_count(k, s, "maxLength", &p->max));
    if (like)
        BR_TRY(pattern(k, like, p));
    if (form && !(like && is_pattern_name(form)))
        BR_TRY(formatted(k, form, "format", p));
    if (code)
        BR_TRY(formatted(k, code, "contentEncoding", p));
    if ((p->min > 0 || p->max >= 0) && !keeps_length(k, p))
        BR_TRY(length(k, p->min, p->max, p));
    return one_spelling(k, p);
}

static br_code
text_of(maker *k, json *s, parts *p, br_str *to)
{
    br_str text = {0};
    br_code code = collect(k, s, p);

    if (code != BR_OK)
        return code;
    if (p->n == 0) {
        br_str_puts(to, "string");
        return BR_OK;
    }
    if (p->n == 1) /* which is no (?!, behind which a rest always comes */
        br_str_puts(&text, br_str_z(&p->at[0].text));
    else
        code = br_schema_both(k, p->at, p->n, &text);
    /* A rule of its own: what is allowed within is found once. */
    if (code == BR_OK) {
        br_str_printf(k->rules, "%sr%u ::= \"\\\"\" %s \"\\\"\"\n", k->prefix,
                      k->n_rules, br_str_z(&text));
        br_str_printf(to, "%sr%u", k->prefix, k->n_rules++);
    }
    k->rules->oom |= text.oom;
    br_str_fini(&text);
    return code;
}

br_code
br_schema_string(maker *k, json *s, br_str *to)
{
    parts p = {0};
    br_code code = text_of(k, s, &p, to);

    for (uint32_t i = 0; i < p.n; i++)
        k->rules->oom |= p.at[i].text.oom;
    fini(&p);
    return code;
}

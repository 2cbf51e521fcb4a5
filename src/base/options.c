/* options.c - flags, environment and defaults into typed values.
 *
 * Every text goes through one function, parse_text, whoever wrote it: a flag,
 * a variable or the table. A failure names that writer ("--seed", "-n",
 * "BRASS_SEED"), shows the text and states the rule.
 *
 * Tables have tens of rows, so all searches are linear.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/options.h"

#include "base/json.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NONE   SIZE_MAX
#define HINT   100 /* bytes of a "did you mean" */
#define QUOTED 60  /* bytes of the user's text that a message repeats */

br_code
br_options_init(br_options *o, const br_option *rows, size_t n_rows,
                const char *env_prefix, br_status *st)
{
    *o = (br_options){.rows = rows, .n_rows = n_rows};
    o->env_prefix = env_prefix;
    br_arena_init(&o->arena, 0);
    o->values = br_arena_new(&o->arena, br_option_value, n_rows);
    o->taken = br_arena_new(&o->arena, bool, n_rows);
    if (!o->values || !o->taken) {
        br_arena_fini(&o->arena);
        return br_fail(st, BR_E_OOM, "options: out of memory");
    }
    for (size_t i = 0; i < n_rows; i++)
        o->taken[i] = rows[i].global;
    return BR_OK;
}

void
br_options_fini(br_options *o)
{
    for (size_t i = 0; o->values && i < o->n_rows; i++)
        br_vec_fini(&o->values[i].list);
    br_vec_fini(&o->args);
    br_arena_fini(&o->arena);
    o->values = NULL;
}

void
br_options_take(br_options *o, size_t row)
{
    br_assert(row < o->n_rows);
    o->taken[row] = true;
}

/* ---- text to value ------------------------------------------------------ */

static bool
parse_bool(const char *text, bool *out)
{
    static const struct {
        const char *text;
        bool value;
    } words[] = {{"yes", true}, {"true", true},   {"on", true},   {"1", true},
                 {"no", false}, {"false", false}, {"off", false}, {"0", false}};

    for (size_t i = 0; i < BR_COUNT(words); i++) {
        if (strcmp(text, words[i].text) == 0) {
            *out = words[i].value;
            return true;
        }
    }
    return false;
}

/* The exponent of a suffix of bytes: k 10, m 20, g 30, t 40; -1: none such */
static int
suffix_shift(const char *s)
{
    static const char letters[] = "kmgt";
    const char *at = *s ? strchr(letters, *s | 0x20) : NULL;

    if (*s == 0)
        return 0;
    if (!at || s[1] != 0)
        return -1;
    return 10 * (int)(at - letters + 1);
}

/* Returns NULL, or what is wrong with the text as a predicate. over: it is a
 * number, of more bits than these. */
static const char *
parse_int(const char *text, bool bytes, int64_t *out, bool *over)
{
    const char *p = text + (text[0] == '-');
    int base = p[0] == '0' && (p[1] | 0x20) == 'x' ? 16 : 10;
    int64_t v = 0;
    int shift = 0;
    bool any = false;

    p += base == 16 ? 2 : 0;
    for (int d; (d = br_hex_digit(*p)) >= 0 && d < base; p++) {
        *over |= __builtin_mul_overflow(v, base, &v) ||
                 __builtin_sub_overflow(v, d, &v); /* negative: has the most */
        any = true;
    }
    shift = bytes ? suffix_shift(p) : *p ? -1 : 0;
    if (!any || shift < 0)
        return bytes ? "is not a number of bytes (such as 4096, 64k, 2m, 1g)"
                     : "is not an integer";
    *over |= __builtin_mul_overflow(v, (int64_t)1 << shift, &v);
    if (text[0] != '-')
        *over |= __builtin_sub_overflow(0, v, &v);
    *out = v;
    return NULL;
}

static br_code
parse_ranged_int(const br_option *r, const char *who, const char *text,
                 int64_t *out, br_status *st)
{
    bool over = false;
    const char *wrong = parse_int(text, r->type == BR_OPTION_BYTES, out, &over);

    if (wrong)
        return br_fail(st, BR_E_USAGE, "%s: '%.*s' %s", who, QUOTED, text,
                       wrong);
    if (!over && *out >= r->lo && *out <= r->hi)
        return BR_OK;
    if (!over && r->hi == INT64_MAX)
        return br_fail(st, BR_E_USAGE, "%s: %.*s is less than %lld", who,
                       QUOTED, text, (long long)r->lo);
    return br_fail(st, BR_E_USAGE, "%s: %.*s is not in %lld..%lld", who, QUOTED,
                   text, (long long)r->lo, (long long)r->hi);
}

static br_code
parse_float(const br_option *r, const char *who, const char *text, double *out,
            br_status *st)
{
    if (!br_f64_read(br_text_z(text), out) || !isfinite(*out))
        return br_fail(st, BR_E_USAGE, "%s: '%.*s' is not a finite number", who,
                       QUOTED, text);
    if (*out < r->flo || *out > r->fhi)
        return br_fail(st, BR_E_USAGE, "%s: %.*s is not in %g..%g", who, QUOTED,
                       text, r->flo, r->fhi);
    return BR_OK;
}

static br_code
parse_enum(const br_option *r, const char *who, const char *text, int64_t *out,
           br_status *st)
{
    char hint[HINT];
    br_suggest near;
    int64_t place = 0;

    br_suggest_begin(&near, br_text_z(text));
    for (const char *p = r->choices; *p; place++) {
        br_text choice = {p, strcspn(p, "|")};

        if (br_text_is(choice, text)) {
            *out = place;
            return BR_OK;
        }
        br_suggest_offer(&near, choice);
        p += choice.n + (p[choice.n] == '|');
    }
    br_suggest_text(&near, "", hint, sizeof hint);
    return br_fail(st, BR_E_USAGE, "%s: '%.*s' is not one of %s%s", who, QUOTED,
                   text, r->choices, hint);
}

static br_code
list_add(br_option_value *v, const char *text, br_status *st)
{
    if (!br_vec_push(&v->list, text))
        return br_fail(st, BR_E_OOM, "options: out of memory");
    return BR_OK;
}

static br_code
parse_text(const br_option *r, const char *who, const char *text,
           br_option_value *v, br_status *st)
{
    v->s = text;
    switch (r->type) {
    case BR_OPTION_BOOL:
        if (!parse_bool(text, &v->b))
            return br_fail(st, BR_E_USAGE, "%s: '%.*s' is not yes or no", who,
                           QUOTED, text);
        return BR_OK;
    case BR_OPTION_INT:
    case BR_OPTION_BYTES: return parse_ranged_int(r, who, text, &v->i, st);
    case BR_OPTION_FLOAT: return parse_float(r, who, text, &v->f, st);
    case BR_OPTION_STR: return BR_OK;
    case BR_OPTION_PATH:
        if (!*text)
            return br_fail(st, BR_E_USAGE, "%s: empty file name", who);
        return BR_OK;
    case BR_OPTION_ENUM: return parse_enum(r, who, text, &v->i, st);
    case BR_OPTION_LIST: return list_add(v, text, st);
    }
    br_unreachable("every option type is handled above");
}

/* ---- argv --------------------------------------------------------------- */

typedef struct scan {
    br_options *o;
    char *const *argv;
    int n, at; /* at: the next argument to read */
    br_status *st;
} scan;

static size_t
find_long(const br_options *o, br_text name)
{
    for (size_t i = 0; i < o->n_rows; i++)
        if (o->taken[i] && br_text_is(name, o->rows[i].name))
            return i;
    return NONE;
}

static size_t
find_letter(const br_options *o, char letter)
{
    for (size_t i = 0; i < o->n_rows; i++)
        if (o->taken[i] && letter && o->rows[i].letter == letter)
            return i;
    return NONE;
}

static br_code
set_flag(scan *s, size_t row, const char *who, const char *text)
{
    br_option_value *v = &s->o->values[row];
    const br_option *r = &s->o->rows[row];

    BR_TRY(parse_text(r, who, text, v, s->st));
    v->from = BR_FROM_FLAG;
    s->o->stopped |= r->last;
    return BR_OK;
}

/* True for text that is exactly a flag of this command. Such a text is not
 * swallowed as another flag's value: "-o --json" is a forgotten file name. */
static bool
is_flag(const br_options *o, const char *text)
{
    if (text[0] != '-' || text[1] == 0)
        return false;
    if (text[1] == '-')
        return find_long(o, (br_text){text + 2, strcspn(text + 2, "=")}) !=
               NONE;
    return text[2] == 0 && find_letter(o, text[1]) != NONE;
}

static br_code
set_from_next(scan *s, size_t row, const char *who)
{
    const br_option *r = &s->o->rows[row];
    const char *text = s->at < s->n ? s->argv[s->at] : NULL;

    if (!text)
        return br_fail(s->st, BR_E_USAGE, "%s needs a value: %s", who,
                       r->value);
    if (is_flag(s->o, text))
        return br_fail(s->st, BR_E_USAGE,
                       "%s needs a value: %s, but '%.*s' follows (if that is "
                       "the value: --%s=%.*s)",
                       who, r->value, QUOTED, text, r->name, QUOTED, text);
    s->at++;
    return set_flag(s, row, who, text);
}

static br_code
unknown_long(scan *s, br_text name)
{
    char hint[HINT];
    br_suggest near;

    br_suggest_begin(&near, name);
    for (size_t i = 0; i < s->o->n_rows; i++)
        if (s->o->taken[i])
            br_suggest_offer(&near, br_text_z(s->o->rows[i].name));
    br_suggest_text(&near, "--", hint, sizeof hint);
    return br_fail(s->st, BR_E_USAGE, "unknown option '--%.*s'%s",
                   (int)BR_MIN(name.n, (size_t)QUOTED), name.p, hint);
}

static br_code
read_long(scan *s, const char *arg)
{
    br_text name = {arg + 2, strcspn(arg + 2, "=")};
    const char *value = name.p[name.n] ? name.p + name.n + 1 : NULL;
    size_t row = find_long(s->o, name);
    bool negated = false;
    char who[80];

    if (row == NONE && name.n > 3 && memcmp(name.p, "no-", 3) == 0) {
        row = find_long(s->o, (br_text){name.p + 3, name.n - 3});
        negated = row != NONE && s->o->rows[row].type == BR_OPTION_BOOL;
        row = negated ? row : NONE;
    }
    if (row == NONE)
        return unknown_long(s, name);
    snprintf(who, sizeof who, "--%.*s", (int)BR_MIN(name.n, sizeof who - 3),
             name.p);
    if (negated && value)
        return br_fail(s->st, BR_E_USAGE, "%s takes no value", who);
    if (s->o->rows[row].type == BR_OPTION_BOOL)
        return set_flag(s, row, who, negated ? "no" : value ? value : "yes");
    return value ? set_flag(s, row, who, value) : set_from_next(s, row, who);
}

/* "-json" is one letter after another; somebody may have meant --json. */
static br_code
unknown_letter(scan *s, const char *arg, const char *at)
{
    char hint[HINT] = "";

    if (arg[2] && find_long(s->o, br_text_z(arg + 1)) != NONE)
        snprintf(hint, sizeof hint, "; did you mean '-%s'?", arg);
    if (!arg[2])
        return br_fail(s->st, BR_E_USAGE, "unknown option '%s'", arg);
    return br_fail(s->st, BR_E_USAGE, "unknown option '-%c' in '%.*s'%s", *at,
                   QUOTED, arg, hint);
}

static br_code
read_letters(scan *s, const char *arg)
{
    for (const char *p = arg + 1; *p && !s->o->stopped; p++) {
        size_t row = find_letter(s->o, *p);
        char who[3] = {'-', *p, 0};

        if (row == NONE)
            return unknown_letter(s, arg, p);
        if (s->o->rows[row].type == BR_OPTION_BOOL) {
            BR_TRY(set_flag(s, row, who, "yes"));
            continue;
        }
        return p[1] ? set_flag(s, row, who, p + 1) : set_from_next(s, row, who);
    }
    return BR_OK;
}

br_code
br_options_argv(br_options *o, int n, char *const *argv, int *at,
                bool only_leading, br_status *st)
{
    scan s = {.o = o, .argv = argv, .n = n, .at = *at, .st = st};
    bool options = true;
    br_code code = BR_OK;

    while (s.at < s.n && code == BR_OK && !o->stopped) {
        const char *arg = s.argv[s.at];
        bool dashed = options && arg[0] == '-' && arg[1];

        if (only_leading && !dashed)
            break;
        s.at++;
        if (dashed && strcmp(arg, "--") == 0) {
            options = false;
        } else if (dashed) {
            code = arg[1] == '-' ? read_long(&s, arg) : read_letters(&s, arg);
        } else if (!br_vec_push(&o->args, arg)) {
            code = br_fail(st, BR_E_OOM, "options: out of memory");
        }
    }
    *at = s.at;
    return code;
}

/* ---- environment -------------------------------------------------------- */

void
br_option_env_name(const br_option *r, const char *prefix, char *out,
                   size_t out_size)
{
    snprintf(out, out_size, "%s%s", prefix, r->name);
    for (char *p = out + BR_MIN(strlen(prefix), out_size - 1); *p; p++) {
        if (*p == '-')
            *p = '_';
        else if (*p >= 'a' && *p <= 'z')
            *p = (char)(*p - 'a' + 'A');
    }
}

static const char *
env_find(char *const *env, const char *name)
{
    size_t n = strlen(name);

    for (; *env; env++)
        if (strncmp(*env, name, n) == 0 && (*env)[n] == '=')
            return *env + n + 1;
    return NULL;
}

static br_code
split_list(br_options *o, br_option_value *v, const char *text, br_status *st)
{
    for (const char *p = text; *p;) {
        size_t n = strcspn(p, ";");
        const char *piece = br_arena_str(&o->arena, p, n);

        if (!piece)
            return br_fail(st, BR_E_OOM, "options: out of memory");
        if (n)
            BR_TRY(list_add(v, piece, st));
        p += n + (p[n] == ';');
    }
    v->s = text;
    return BR_OK;
}

br_code
br_options_env(br_options *o, char *const *env, br_status *st)
{
    for (size_t i = 0; i < o->n_rows; i++) {
        br_option_value *v = &o->values[i];
        char name[80];
        const char *text;

        /* `last` rows are switches such as --help: no variable asks for it */
        if (!o->taken[i] || o->rows[i].last || v->from != BR_FROM_NOWHERE)
            continue;
        br_option_env_name(&o->rows[i], o->env_prefix, name, sizeof name);
        text = env_find(env, name);
        if (!text || !*text)
            continue;
        if (o->rows[i].type == BR_OPTION_LIST)
            BR_TRY(split_list(o, v, text, st));
        else
            BR_TRY(parse_text(&o->rows[i], name, text, v, st));
        v->from = BR_FROM_ENV;
    }
    return BR_OK;
}

br_code
br_options_defaults(br_options *o, br_status *st)
{
    for (size_t i = 0; i < o->n_rows; i++) {
        br_option_value *v = &o->values[i];

        if (v->from != BR_FROM_NOWHERE || !o->rows[i].def)
            continue;
        BR_TRY(parse_text(&o->rows[i], o->rows[i].name, o->rows[i].def, v, st));
        v->from = BR_FROM_DEFAULT;
    }
    return BR_OK;
}

/* "BRASS_LOG_LEVEL" to "log-level"; cut where the longest name would be. */
static br_text
option_of_var(br_text var, size_t prefix, char out[QUOTED])
{
    size_t n = BR_MIN(var.n - prefix, (size_t)QUOTED);

    for (size_t i = 0; i < n; i++) {
        char c = var.p[prefix + i];

        out[i] = c == '_' ? '-' : c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
    }
    return (br_text){out, n};
}

bool
br_options_env_typo(const br_options *o, char *const *env, size_t *at,
                    char *out, size_t out_size)
{
    size_t prefix = strlen(o->env_prefix);

    while (env[*at]) {
        br_text var = {env[*at], strcspn(env[*at], "=")};
        char name[QUOTED], hint[HINT];
        br_suggest near;

        ++*at;
        if (strncmp(var.p, o->env_prefix, prefix) != 0 || var.n < prefix)
            continue;
        br_suggest_begin(&near, option_of_var(var, prefix, name));
        for (size_t i = 0; i < o->n_rows; i++)
            if (!o->rows[i].last)
                br_suggest_offer(&near, br_text_z(o->rows[i].name));
        if (near.distance == 0)
            continue;
        br_suggest_text(&near, o->env_prefix, hint, sizeof hint);
        for (char *p = strchr(hint, '\''); p && *p; p++)
            *p = *p == '-' ? '_' : *p >= 'a' && *p <= 'z' ? *p - 32 : *p;
        snprintf(out, out_size, "%.*s is no variable of this program%s",
                 (int)BR_MIN(var.n, (size_t)QUOTED), var.p, hint);
        return true;
    }
    return false;
}

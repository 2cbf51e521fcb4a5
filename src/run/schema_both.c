/* schema_both.c - texts that several keywords speak of, see schema.c.
 *
 *   {"pattern":"^[a-z]+$","maxLength":3}
 *
 *   (lower case, any number) and (3 characters)  ->  r1 ::= [a-z] r2
 *                                                    r2 ::= | [a-z] r3
 *                                                    r3 ::= | [a-z]
 *
 * Each keyword is a grammar whose configurations (gmatch.c) are a deterministic
 * automaton. They are run side by side, character after character, from where all
 * begin; a pair (or more) of configurations is a rule of what is made. What must
 * not match, as (?!...), is run as well and must not be at an end. Characters
 * that no grammar tells apart are taken together: each of ASCII alone, above it
 * the ranges between those that the grammars' texts name.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/grammar_int.h"
#include "run/schema_int.h"

#include "model/unicode.h"

#include <stdlib.h>
#include <string.h>

enum {
    MAX_JOINT = 2048, /* rules of one text */
    MAX_CUTS = 1024,
    SLOTS = 2 * MAX_JOINT,
    ROUNDS = 64, /* to find what leads nowhere */
    /* Bytes read and places of grammars that they lead to, of a whole schema: the
     * format of an URI takes 665,000 (13 ms), and nobody is served meanwhile. */
    MAX_STEPS = 1 << 24,
};

#define NOWHERE UINT32_MAX
enum { FAR = 1 << 30 };

typedef struct joint {
    uint32_t conf[BR_SCHEMA_PARTS];
    bool ends, live;
    uint32_t rule;
} joint;

typedef struct both {
    maker *k;
    uint32_t n;
    br_grammar *g[BR_SCHEMA_PARTS];
    bool never[BR_SCHEMA_PARTS];
    gwords cuts; /* first characters of ranges, and the end */
    BR_VEC(joint) at;
    gwords next; /* [at.n][cuts.n - 1] */
    uint32_t slots[SLOTS];
    const char *failed;
} both;

/* ---- ranges of characters ------------------------------------------------- */

static int
ascending(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

static const char no_memory[] = "out of memory";

static void
cut(both *x, uint32_t c)
{
    if (x->cuts.n >= MAX_CUTS)
        x->failed = "names too many characters";
    else if (!br_vec_push(&x->cuts, c))
        x->failed = no_memory;
}

/* Before and behind each character above ASCII that a grammar's text names, as
 * it is or as \x, \u or \U. */
static void
cut_text(both *x, const br_str *text)
{
    const uint8_t *p = (const uint8_t *)text->at, *end = p + text->n;

    while (p < end) {
        uint32_t c = *p;
        int digits = 0;

        if (c == '\\' && p + 1 < end) {
            p++;
            digits = *p == 'x' ? 2 : *p == 'u' ? 4 : *p == 'U' ? 8 : 0;
            c = 0;
            for (p++; digits && p < end; p++, digits--)
                c = c << 4 |
                    (uint32_t)(*p <= '9' ? *p - '0' : (*p | 0x20) - 'a' + 10);
        } else {
            p += c < 0x80 ? 1 : br_utf8_next(p, end, &c);
        }
        if (c >= 0x80 && c < 0x110000) {
            cut(x, c);
            cut(x, c + 1);
        }
    }
}

static void
sort_cuts(both *x)
{
    size_t n = 0;

    for (uint32_t c = 0; c <= 0x80; c++)
        cut(x, c);
    cut(x, 0xD800); /* halves of characters are none */
    cut(x, 0xE000);
    cut(x, 0x110000);
    if (x->failed)
        return;
    qsort(x->cuts.at, x->cuts.n, sizeof *x->cuts.at, ascending);
    for (size_t i = 0; i < x->cuts.n; i++)
        if (n == 0 || x->cuts.at[i] != x->cuts.at[n - 1])
            x->cuts.at[n++] = x->cuts.at[i];
    x->cuts.n = n;
}

/* ---- side by side --------------------------------------------------------- */

static uint32_t
find(both *x, const joint *j)
{
    uint32_t hash = 0x9E3779B9, i;

    for (uint32_t p = 0; p < x->n; p++)
        hash = (hash ^ j->conf[p]) * 0x85EBCA6B;
    for (i = (hash >> 16) % SLOTS; x->slots[i]; i = (i + 1) % SLOTS)
        if (memcmp(x->at.at[x->slots[i] - 1].conf, j->conf, sizeof j->conf) ==
            0)
            return x->slots[i] - 1;
    if (x->at.n == MAX_JOINT)
        x->failed = "cannot be enforced together: it takes over 2048 rules";
    else if (!br_vec_push(&x->at, *j))
        x->failed = no_memory;
    if (x->failed)
        return NOWHERE;
    x->slots[i] = (uint32_t)x->at.n;
    return (uint32_t)x->at.n - 1;
}

static void
look(const both *x, joint *j)
{
    j->ends = true;
    for (uint32_t p = 0; p < x->n; p++)
        j->ends = j->ends && br_conf_ends(x->g[p], j->conf[p]) != x->never[p];
    j->live = j->ends;
}

static const char too_much[] =
    "cannot be enforced together: it takes too much work";

static void
stop(both *x, const br_grammar *g)
{
    x->failed = g->failed == BR_E_OOM ? no_memory : too_much;
}

static uint32_t
step(both *x, uint32_t from, uint32_t c)
{
    joint j = x->at.at[from];
    char bytes[4];
    size_t n = br_utf8_put(bytes, c);

    for (uint32_t p = 0; p < x->n; p++) {
        for (size_t i = 0; i < n; i++) {
            j.conf[p] = br_conf_next(x->g[p], j.conf[p], (uint8_t)bytes[i]);
            x->k->n_steps += 1 + x->g[p]->spent;
        }
        if (!j.conf[p])
            stop(x, x->g[p]);
        if (!j.conf[p] || (j.conf[p] == BR_CONF_DEAD && !x->never[p]))
            return NOWHERE;
    }
    look(x, &j);
    if (x->k->n_steps > MAX_STEPS)
        x->failed = too_much;
    return x->failed ? NOWHERE : find(x, &j);
}

static void
explore(both *x)
{
    joint first = {0};

    for (uint32_t p = 0; p < x->n; p++) {
        first.conf[p] = br_conf_first(x->g[p]);
        if (!first.conf[p])
            stop(x, x->g[p]);
    }
    look(x, &first);
    (void)find(x, &first);
    for (uint32_t i = 0; i < x->at.n && !x->failed; i++)
        for (size_t c = 0; c + 1 < x->cuts.n && !x->failed; c++) {
            uint32_t ch = x->cuts.at[c];

            if (!br_vec_push(&x->next, ch == 0xD800 ? NOWHERE : step(x, i, ch)))
                x->failed = no_memory;
        }
}

/* Live are those from which an end is in reach. */
static void
find_live(both *x)
{
    size_t n = x->cuts.n - 1;
    bool more = true;

    for (int round = 0; more && !x->failed; round++) {
        more = false;
        if (round == ROUNDS)
            x->failed = too_much;
        for (size_t i = x->at.n; i-- > 0;)
            for (size_t c = 0; c < n && !x->at.at[i].live; c++) {
                uint32_t to = x->next.at[i * n + c];

                x->at.at[i].live = to != NOWHERE && x->at.at[to].live;
                more |= x->at.at[i].live;
            }
    }
}

/* ---- as rules ------------------------------------------------------------- */

static void
put_range(br_str *to, uint32_t lo, uint32_t hi)
{
    br_str_printf(to, lo < 0x80 ? "\\x%02x" : "\\U%08x", lo);
    if (hi > lo)
        br_str_printf(to, hi < 0x80 ? "-\\x%02x" : "-\\U%08x", hi);
}

static uint32_t
leads_to(const both *x, uint32_t from, size_t c)
{
    uint32_t to = x->next.at[from * (x->cuts.n - 1) + c];

    return to != NOWHERE && x->at.at[to].live ? to : NOWHERE;
}

static bool
is_last(const both *x, uint32_t i)
{
    for (size_t c = 0; c + 1 < x->cuts.n; c++)
        if (leads_to(x, i, c) != NOWHERE)
            return false;
    return true;
}

/* All characters that lead from `from` where the c-th range does, once: those of
 * ranges before it have been told. */
static bool
put_class(const both *x, br_str *to, uint32_t from, size_t c)
{
    uint32_t want = leads_to(x, from, c);
    size_t n = x->cuts.n - 1;

    if (want == NOWHERE)
        return false;
    for (size_t i = 0; i < c; i++)
        if (leads_to(x, from, i) == want)
            return false;
    br_str_puts(to, "[");
    for (size_t i = c, end; i < n; i = end) {
        end = i + 1;
        if (leads_to(x, from, i) != want)
            continue;
        while (end < n && leads_to(x, from, end) == want)
            end++;
        put_range(to, x->cuts.at[i], x->cuts.at[end] - 1);
    }
    br_str_puts(to, "] ");
    return true;
}

static void
put_joint(both *x, uint32_t i)
{
    br_str text = {0};
    const char *bar = x->at.at[i].ends ? "| " : "";

    for (size_t c = 0; c + 1 < x->cuts.n; c++) {
        size_t was = text.n;

        br_str_puts(&text, bar);
        if (!put_class(x, &text, i, c)) {
            if (!text.oom)
                text.n = was;
            continue;
        }
        bar = "| ";
        if (!is_last(x, leads_to(x, i, c)))
            br_str_printf(&text, "%sr%u ", x->k->prefix,
                          x->at.at[leads_to(x, i, c)].rule);
    }
    br_schema_put_rule(x->k, x->at.at[i].rule, "", &text);
}

static void
put_all(both *x, br_str *to)
{
    for (uint32_t i = 0; i < x->at.n; i++)
        if (x->at.at[i].live && !is_last(x, i))
            x->at.at[i].rule = x->k->n_rules++;
    for (uint32_t i = 0; i < x->at.n; i++)
        if (x->at.at[i].live && !is_last(x, i))
            put_joint(x, i);
    if (!x->at.at[0].live)
        x->failed = "no text is left";
    else if (!is_last(x, 0))
        br_str_printf(to, "%sr%u", x->k->prefix, x->at.at[0].rule);
}

/* ---- all of it ------------------------------------------------------------ */

static br_code
add(both *x, br_schema_part *part)
{
    br_str text = {0};
    br_status st = {0};
    br_code code;

    br_str_printf(&text, "root ::= %s\n", br_str_z(&part->text));
    br_schema_common(&text);
    x->k->rules->oom |= text.oom || part->text.oom; /* a part says less */
    code = br_grammar_new(&x->g[x->n], (br_text){br_str_z(&text), text.n}, NULL,
                          &st);
    x->never[x->n] = part->never;
    x->n += code == BR_OK;
    if (code == BR_OK)
        cut_text(x, &text);
    br_str_fini(&text);
    if (code == BR_E_OOM)
        return br_schema_oom(x->k);
    return code == BR_OK ? BR_OK
                         : br_schema_refuse(x->k, part->keyword, st.msg);
}

static both *
begin(maker *k, br_schema_part *parts, uint32_t n, br_code *code)
{
    both *x = br_try_calloc(1, sizeof *x);

    *code = x ? BR_OK : br_schema_oom(k);
    if (!x)
        return NULL;
    x->k = k;
    for (uint32_t i = 0; i < n && *code == BR_OK; i++)
        *code = add(x, &parts[i]);
    if (*code == BR_OK) {
        sort_cuts(x);
        if (!x->failed)
            explore(x);
        if (!x->failed)
            find_live(x);
    }
    return x;
}

static void
end(both *x)
{
    for (uint32_t i = 0; x && i < x->n; i++)
        br_grammar_free(x->g[i]);
    if (!x)
        return;
    br_vec_fini(&x->cuts);
    br_vec_fini(&x->at);
    br_vec_fini(&x->next);
    br_free(x);
}

/* The most characters from here to an end, or FAR: no end of them. rule: what is
 * known of it, + 2; 1: on the way to here. */
static uint32_t
longest(both *x, uint32_t i)
{
    uint32_t most = 0;

    if (x->at.at[i].rule == 1)
        return FAR;
    if (x->at.at[i].rule)
        return x->at.at[i].rule - 2;
    x->at.at[i].rule = 1;
    for (size_t c = 0; c + 1 < x->cuts.n && most < FAR; c++) {
        uint32_t to = leads_to(x, i, c);

        if (to != NOWHERE)
            most = BR_MAX(most, BR_MIN(longest(x, to) + 1, (uint32_t)FAR));
    }
    x->at.at[i].rule = most + 2;
    return most;
}

static span
span_of(maker *k, br_schema_part *parts, uint32_t n)
{
    maker quiet = *k;
    br_status st = {0};
    br_code code;
    span s = {0};
    both *x;

    quiet.st = &st;
    x = begin(&quiet, parts, n, &code);
    if (x && code == BR_OK && !x->failed && x->at.at[0].live)
        s = (span){
            .known = true, .empty = x->at.at[0].ends, .longest = longest(x, 0)};
    k->n_steps = quiet.n_steps;
    k->rules->oom |= st.code == BR_E_OOM || (x && x->failed == no_memory);
    end(x);
    return s;
}

/* That of a format alone, which many properties may have. */
static span
met(maker *k, br_schema_part *part)
{
    const char *text = br_str_z(&part->text);
    span s;

    for (uint32_t i = 0; i < BR_MIN(k->n_spans, (uint32_t)BR_SCHEMA_SPANS); i++)
        if (strcmp(k->spans[i].text, text) == 0)
            return k->spans[i];
    s = span_of(k, part, 1);
    s.text = br_arena_str(&k->arena, text, strlen(text));
    if (s.text)
        k->spans[k->n_spans++ % BR_SCHEMA_SPANS] = s;
    return s;
}

bool
br_schema_fits(maker *k, br_schema_part *parts, uint32_t n, int64_t min,
               int64_t max)
{
    span s = n == 1 && !parts[0].never ? met(k, parts) : span_of(k, parts, n);

    /* An escape is one character of several: so only "not empty" is known. */
    return s.known && min <= 1 && (min < 1 || !s.empty) &&
           (max < 0 || s.longest <= max);
}

br_code
br_schema_both(maker *k, br_schema_part *parts, uint32_t n, br_str *to)
{
    br_code code;
    both *x = begin(k, parts, n, &code);

    if (code == BR_OK && !x->failed)
        put_all(x, to);
    if (code == BR_OK && x->failed == no_memory)
        code = br_schema_oom(k);
    if (code == BR_OK && x->failed)
        code = br_schema_refuse(k, parts[0].keyword, x->failed);
    end(x);
    return code;
}

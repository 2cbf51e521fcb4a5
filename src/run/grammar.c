/* grammar.c - the text of a grammar to states over bytes, see grammar.h.
 *
 *   text --parse--> a tree for each rule --emit--> states, from the end
 *   states --> which rules can end, which call themselves first
 *
 * A rule that is small and calls no large one is copied to where it is used;
 * the others are called, each with states of its own. What a rule of the
 * second kind allows inside is found once and holds wherever it is called
 * (gmatch.c), so a string's characters belong into the string's rule, not into
 * one called for each of them.
 *
 * Of alternatives, those that are texts become a tree over their bytes: a byte
 * of ten thousand of them leads to one state, not to as many as go on so.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/grammar_int.h"

#include "base/map.h"
#include "model/unicode.h"

#include <stdlib.h>
#include <string.h>

enum {
    MAX_INLINE = 16, /* leaves of a rule that is copied */
    MAX_NEST = 256,  /* rules in rules, when those are looked for */
    MAX_RANGES = 1024,
    /* Parts of trees written out: what repeats nothing makes no states. */
    MAX_EMITS = 8 * BR_GRAMMAR_MAX_STATES,
};

typedef enum kind {
    K_TEXT,
    K_TEXTS, /* one of them, which are sorted */
    K_CLASS,
    K_SEQ,
    K_ALT,
    K_REPEAT,
    K_RULE
} kind;

typedef struct range {
    uint32_t lo, hi;
} range;

typedef struct node {
    kind kind;
    struct node *next, *prev, *child, *last;
    union {
        br_text text;
        struct {
            br_text *texts;
            size_t n_texts;
        };
        struct {
            range *ranges;
            size_t n_ranges;
        };
        struct {
            uint32_t min, max; /* UINT32_MAX: no end */
        };
        uint32_t rule;
    };
} node;

typedef struct rule {
    br_text name;
    size_t at; /* first seen */
    node *body;
    uint32_t start;  /* state + 1; 0: not emitted yet */
    uint32_t leaves; /* UINT32_MAX: called; 0: not known; */
    bool open;
} rule;

typedef struct parser {
    const char *begin, *p, *end;
    br_arena arena;
    br_map names;
    BR_VEC(rule) rules;
    BR_VEC(range) ranges;
    br_str bytes; /* of a text */
    gwords todo;  /* rules called whose states do not exist yet */
    uint32_t n_emits;
    br_grammar *g;
    br_status *st;
    br_code code;
} parser;

/* ---- failing ------------------------------------------------------------- */

static br_code
oom(br_status *st)
{
    return br_fail(st, BR_E_OOM, "grammar: out of memory");
}

static br_code
bad(parser *x, const char *at, const char *what)
{
    int line = 1, column = 1;

    for (const char *p = x->begin; p < at; p++, column++)
        if (*p == '\n') {
            line++;
            column = 0;
        }
    return br_fail(x->st, BR_E_FORMAT, "grammar: line %d column %d: %s", line,
                   column, what);
}

/* ---- words --------------------------------------------------------------- */

static void
space(parser *x)
{
    while (x->p < x->end && strchr(" \t\r\n#", *x->p)) {
        if (*x->p == '#')
            while (x->p < x->end && *x->p != '\n')
                x->p++;
        else
            x->p++;
    }
}

static bool
is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == '-' || (c >= '0' && c <= '9');
}

static br_text
name_at(const parser *x)
{
    br_text t = {x->p, 0};

    while (x->p + t.n < x->end && is_name(x->p[t.n]))
        t.n++;
    return t;
}

/* A name and ::=, the beginning of another rule. */
static bool
at_rule(parser *x)
{
    const char *was = x->p;
    br_text name = name_at(x);
    bool yes;

    x->p += name.n;
    space(x);
    yes = name.n && x->end - x->p >= 3 && memcmp(x->p, "::=", 3) == 0;
    x->p = was;
    return yes;
}

static bool
take(parser *x, char c)
{
    if (x->p == x->end || *x->p != c)
        return false;
    x->p++;
    return true;
}

static br_code
hex(parser *x, int digits, uint32_t *out)
{
    static const char all[] = "0123456789abcdefABCDEF";

    *out = 0;
    for (int i = 0; i < digits; i++) {
        const char *at =
            x->p < x->end ? memchr(all, *x->p, sizeof all - 1) : NULL;
        uint32_t v = at ? (uint32_t)(at - all) : 0;

        if (!at)
            return bad(x, x->p, "a hexadecimal digit is missing");
        *out = *out << 4 | (v > 15 ? v - 6 : v);
        x->p++;
    }
    return BR_OK;
}

/* One character of a text or a class, escaped or not. */
static br_code
character(parser *x, uint32_t *out)
{
    static const char plain[] = "\\\"[]-^/";
    const char *at = x->p;
    char c;

    if (x->p == x->end)
        return bad(x, at, "the grammar ends within");
    if (*x->p != '\\') {
        x->p +=
            br_utf8_next((const uint8_t *)x->p, (const uint8_t *)x->end, out);
        return BR_OK;
    }
    if (++x->p == x->end)
        return bad(x, at, "the grammar ends within");
    c = *x->p++;
    if (c == 'x' || c == 'u' || c == 'U') {
        BR_TRY(hex(x, c == 'x' ? 2 : c == 'u' ? 4 : 8, out));
        if (*out > 0x10FFFF || (*out >= 0xD800 && *out < 0xE000))
            return bad(x, at, "no character has this number");
        return BR_OK;
    }
    *out = c == 'n'   ? '\n'
           : c == 'r' ? '\r'
           : c == 't' ? '\t'
                      : (uint32_t)(uint8_t)c;
    if (!strchr("nrt", c) && !(c && strchr(plain, c)))
        return bad(x, at, "no such escape");
    return BR_OK;
}

/* ---- trees --------------------------------------------------------------- */

static br_code
add(parser *x, node *parent, kind k, node **out)
{
    node *n = br_arena_new(&x->arena, node, 1);

    *out = n;
    if (!n)
        return oom(x->st);
    n->kind = k;
    if (parent) {
        *(parent->last ? &parent->last->next : &parent->child) = n;
        n->prev = parent->last;
        parent->last = n;
    }
    return BR_OK;
}

static br_code
rule_of(parser *x, br_text name, uint32_t *out)
{
    bool fresh;
    br_map_value *v;

    if (x->rules.n == BR_GRAMMAR_MAX_RULES)
        return br_fail(x->st, BR_E_LIMIT, "grammar: over %d rules",
                       BR_GRAMMAR_MAX_RULES);
    v = br_map_put(&x->names, name, &fresh);
    if (!v ||
        (fresh &&
         !br_vec_push(&x->rules, ((rule){.name = name,
                                         .at = (size_t)(name.p - x->begin)}))))
        return oom(x->st);
    if (fresh)
        v->u = x->rules.n - 1;
    *out = (uint32_t)v->u;
    return BR_OK;
}

static br_code
text(parser *x, node *parent)
{
    node *n;

    BR_TRY(add(x, parent, K_TEXT, &n));
    x->p++;
    br_str_clear(&x->bytes);
    while (!take(x, '"')) {
        char utf8[4];
        uint32_t c;

        BR_TRY(character(x, &c));
        br_str_put(&x->bytes, utf8, br_utf8_put(utf8, c));
    }
    n->text.n = x->bytes.n;
    n->text.p = br_arena_str(&x->arena, br_str_z(&x->bytes), x->bytes.n);
    return n->text.p && !x->bytes.oom ? BR_OK : oom(x->st);
}

static int
by_lo(const void *a, const void *b)
{
    const range *x = a, *y = b;

    return x->lo < y->lo ? -1 : x->lo > y->lo;
}

/* Surrogates are no characters. */
static void
put_range(node *n, uint32_t lo, uint32_t hi)
{
    if (lo < 0xD800 || hi > 0xDFFF)
        n->ranges[n->n_ranges++] = (range){lo, hi};
}

/* Sorted, apart, and turned round where the class began with ^. */
static br_code
keep_ranges(parser *x, node *n, bool inverse)
{
    uint32_t from = 0;

    if (x->ranges.n)
        qsort(x->ranges.at, x->ranges.n, sizeof *x->ranges.at, by_lo);
    n->ranges = br_arena_new(&x->arena, range, x->ranges.n + 1);
    if (!n->ranges)
        return oom(x->st);
    for (size_t i = 0; i < x->ranges.n; i++) {
        const range *r = &x->ranges.at[i];
        range *last = n->n_ranges ? &n->ranges[n->n_ranges - 1] : NULL;

        if (inverse && r->lo > from)
            put_range(n, from, r->lo - 1);
        else if (!inverse && last && r->lo <= last->hi + 1)
            last->hi = BR_MAX(last->hi, r->hi);
        else if (!inverse)
            put_range(n, r->lo, r->hi);
        from = BR_MAX(from, r->hi + 1);
    }
    if (inverse && from <= 0x10FFFF)
        put_range(n, from, 0x10FFFF);
    return BR_OK;
}

static br_code
class_of(parser *x, node *parent)
{
    const char *at = x->p++;
    bool inverse = take(x, '^');
    node *n;

    BR_TRY(add(x, parent, K_CLASS, &n));
    x->ranges.n = 0;
    while (!take(x, ']')) {
        range r;

        if (x->ranges.n == MAX_RANGES)
            return bad(x, at, "a class of over 1024 ranges");
        BR_TRY(character(x, &r.lo));
        r.hi = r.lo;
        if (x->end - x->p >= 2 && *x->p == '-' && x->p[1] != ']') {
            x->p++;
            BR_TRY(character(x, &r.hi));
        }
        if (r.hi < r.lo)
            return bad(x, at, "a range that ends before it begins");
        if (!br_vec_push(&x->ranges, r))
            return oom(x->st);
    }
    BR_TRY(keep_ranges(x, n, inverse));
    return n->n_ranges ? BR_OK : bad(x, at, "a class of no characters");
}

static br_code
number(parser *x, uint32_t *out)
{
    const char *at = x->p;

    *out = 0;
    while (x->p < x->end && *x->p >= '0' && *x->p <= '9') {
        *out = *out * 10 + (uint32_t)(*x->p++ - '0');
        if (*out > BR_GRAMMAR_MAX_REPEAT)
            return br_fail(x->st, BR_E_LIMIT,
                           "grammar: a repetition of over %d",
                           BR_GRAMMAR_MAX_REPEAT);
    }
    return x->p > at ? BR_OK : bad(x, at, "a number is missing");
}

/* {2} {2,} {2,4} {,4} * + ? behind an item, which goes below a new node. */
static br_code
repeat(parser *x, node *item, bool *found)
{
    const char *at = x->p;
    uint32_t min = 0, max = UINT32_MAX;
    node *copy;

    *found = true;
    if (take(x, '*'))
        ;
    else if (take(x, '+'))
        min = 1;
    else if (take(x, '?'))
        max = 1;
    else if (take(x, '{')) {
        if (x->p < x->end && *x->p != ',')
            BR_TRY(number(x, &min));
        if (!take(x, ','))
            max = min;
        else if (x->p < x->end && *x->p != '}')
            BR_TRY(number(x, &max));
        if (!take(x, '}') || max < min)
            return bad(x, at, "not a repetition");
    } else {
        *found = false;
        return BR_OK;
    }
    BR_TRY(add(x, NULL, item->kind, &copy));
    *copy = *item;
    copy->next = copy->prev = NULL;
    *item = (node){.kind = K_REPEAT,
                   .next = item->next,
                   .prev = item->prev,
                   .child = copy};
    item->min = min;
    item->max = max;
    return BR_OK;
}

static br_code alternatives(parser *x, node *parent, int depth);

static br_code
item(parser *x, node *parent, int depth)
{
    const char *at = x->p;
    br_text name = name_at(x);
    node *n;

    if (*at == '"')
        return text(x, parent);
    if (*at == '[')
        return class_of(x, parent);
    if (take(x, '.')) {
        BR_TRY(add(x, parent, K_CLASS, &n));
        x->ranges.n = 0;
        return keep_ranges(x, n, true);
    }
    if (take(x, '(')) {
        BR_TRY(alternatives(x, parent, depth + 1));
        return take(x, ')') ? BR_OK : bad(x, at, "( without )");
    }
    if (!name.n)
        return bad(x, at, "neither a text, a class, a rule nor (");
    x->p += name.n;
    BR_TRY(add(x, parent, K_RULE, &n));
    return rule_of(x, name, &n->rule);
}

static br_code
sequence(parser *x, node *parent, int depth)
{
    node *seq;

    BR_TRY(add(x, parent, K_SEQ, &seq));
    for (space(x); x->p < x->end && *x->p != '|' && *x->p != ')'; space(x)) {
        bool more = true;

        if (at_rule(x))
            break;
        BR_TRY(item(x, seq, depth));
        for (int i = 0; more; i++) {
            if (i == 8)
                return bad(x, x->p, "repetitions of repetitions");
            BR_TRY(repeat(x, seq->last, &more));
        }
    }
    return BR_OK;
}

static int
by_bytes(const void *a_, const void *b_)
{
    const br_text *a = a_, *b = b_;
    size_t n = BR_MIN(a->n, b->n);
    int d = n ? memcmp(a->p, b->p, n) : 0;

    return d ? d : (a->n > b->n) - (a->n < b->n);
}

static bool
is_text(const node *n)
{
    return n->kind == K_SEQ && n->child && n->child == n->last &&
           n->child->kind == K_TEXT;
}

/* The alternatives that are texts, in one node, behind the others. */
static br_code
join_texts(parser *x, node *alt)
{
    br_text *texts;
    size_t n = 0;
    node *all;

    for (const node *c = alt->child; c; c = c->next)
        n += is_text(c);
    if (n < 2)
        return BR_OK;
    texts = br_arena_new(&x->arena, br_text, n);
    if (!texts)
        return oom(x->st);
    n = 0;
    for (node *c = alt->child; c; c = c->next) {
        if (!is_text(c))
            continue;
        texts[n++] = c->child->text;
        *(c->prev ? &c->prev->next : &alt->child) = c->next;
        *(c->next ? &c->next->prev : &alt->last) = c->prev;
    }
    qsort(texts, n, sizeof *texts, by_bytes);
    BR_TRY(add(x, alt, K_TEXTS, &all));
    all->texts = texts;
    all->n_texts = n;
    return BR_OK;
}

static br_code
alternatives(parser *x, node *parent, int depth)
{
    node *alt;

    if (depth > BR_GRAMMAR_MAX_DEPTH)
        return br_fail(x->st, BR_E_LIMIT, "grammar: over %d ( in each other",
                       BR_GRAMMAR_MAX_DEPTH);
    BR_TRY(add(x, parent, K_ALT, &alt));
    do
        BR_TRY(sequence(x, alt, depth));
    while (take(x, '|'));
    return join_texts(x, alt);
}

static br_code
parse(parser *x)
{
    for (space(x); x->p < x->end; space(x)) {
        const char *at = x->p;
        node top = {0};
        br_text name;
        uint32_t i;

        if (!at_rule(x))
            return bad(x, at, "a rule begins NAME ::=");
        name = name_at(x);
        BR_TRY(rule_of(x, name, &i));
        if (x->rules.at[i].body)
            return bad(x, at, "a rule of this name was before");
        x->p += name.n;
        space(x);
        x->p += 3;
        BR_TRY(alternatives(x, &top, 0));
        x->rules.at[i].body = top.child;
        if (x->p < x->end && *x->p == ')')
            return bad(x, x->p, ") without (");
    }
    for (size_t i = 0; i < x->rules.n; i++)
        if (!x->rules.at[i].body)
            return bad(x, x->begin + x->rules.at[i].at,
                       "there is no such rule");
    return BR_OK;
}

/* ---- which rules are copied ---------------------------------------------- */

static uint32_t leaves_of(parser *x, uint32_t rule_i, int depth);

/* UINT32_MAX: has no end, or calls one that is called. */
static uint32_t
count(parser *x, const node *n, int depth)
{
    uint64_t sum = 0;

    switch (n->kind) {
    case K_TEXT:
    case K_CLASS: return 1;
    case K_TEXTS: return (uint32_t)BR_MIN(n->n_texts, UINT32_MAX);
    case K_RULE: return leaves_of(x, n->rule, depth + 1);
    case K_REPEAT:
        sum = count(x, n->child, depth);
        return n->max == UINT32_MAX
                   ? UINT32_MAX
                   : (uint32_t)BR_MIN(sum * n->max + 1, UINT32_MAX);
    case K_SEQ:
    case K_ALT:
        for (const node *c = n->child; c; c = c->next)
            sum += count(x, c, depth);
        return (uint32_t)BR_MIN(sum, UINT32_MAX);
    }
    br_unreachable("no such kind");
}

static uint32_t
leaves_of(parser *x, uint32_t rule_i, int depth)
{
    rule *r = &x->rules.at[rule_i];
    uint32_t n;

    if (r->leaves)
        return r->leaves;
    if (r->open || depth > MAX_NEST)
        return UINT32_MAX;
    r->open = true;
    n = count(x, r->body, depth) + 1; /* so that chains of rules have an end */
    r->open = false;
    r->leaves = n > MAX_INLINE || n == 0 ? UINT32_MAX : n;
    return r->leaves;
}

/* ---- states -------------------------------------------------------------- */

/* The state's number; what fails is in x->code. */
static uint32_t
state(parser *x, gstate s)
{
    if (x->code == BR_OK && x->g->states.n >= BR_GRAMMAR_MAX_STATES)
        x->code = br_fail(x->st, BR_E_LIMIT,
                          "grammar: over %d states: it is too large, or "
                          "repeats something large too often",
                          BR_GRAMMAR_MAX_STATES);
    if (x->code == BR_OK && !br_vec_push(&x->g->states, s))
        x->code = oom(x->st);
    return x->code == BR_OK ? (uint32_t)x->g->states.n - 1 : 0;
}

static uint32_t
byte_state(parser *x, uint8_t lo, uint8_t hi, uint32_t next)
{
    return state(x, (gstate){G_BYTE, lo, hi, next, 0});
}

static uint32_t
split(parser *x, uint32_t a, uint32_t b)
{
    return state(x, (gstate){G_SPLIT, 0, 0, a, b});
}

/* Characters lo..hi whose UTF-8 has the same length n, and the same bytes from
 * the k-th on free: byte k of both, then the rest. */
static uint32_t
utf8_range(parser *x, const char *lo, const char *hi, size_t n, uint32_t next)
{
    uint32_t s, low, high, mid = UINT32_MAX;
    uint8_t a = (uint8_t)lo[0], b = (uint8_t)hi[0];
    char least[4], most[4];

    if (n == 1)
        return byte_state(x, a, b, next);
    memset(least, 0x80, sizeof least);
    memset(most, 0xBF, sizeof most);
    if (a == b)
        return byte_state(x, a, a, utf8_range(x, lo + 1, hi + 1, n - 1, next));
    if (memcmp(lo + 1, least, n - 1) == 0 && memcmp(hi + 1, most, n - 1) == 0)
        return byte_state(x, a, b, utf8_range(x, least, most, n - 1, next));
    low = byte_state(x, a, a, utf8_range(x, lo + 1, most, n - 1, next));
    high = byte_state(x, b, b, utf8_range(x, least, hi + 1, n - 1, next));
    s = split(x, low, high);
    if (a + 1 < b) {
        mid = byte_state(x, (uint8_t)(a + 1), (uint8_t)(b - 1),
                         utf8_range(x, least, most, n - 1, next));
        s = split(x, mid, s);
    }
    return s;
}

/* A range cut where UTF-8 gets longer, and at the surrogates. */
static uint32_t
char_range(parser *x, range r, uint32_t next)
{
    static const range parts[] = {{0, 0x7F},
                                  {0x80, 0x7FF},
                                  {0x800, 0xD7FF},
                                  {0xE000, 0xFFFF},
                                  {0x10000, 0x10FFFF}};
    uint32_t s = UINT32_MAX;

    for (size_t i = 0; i < BR_COUNT(parts); i++) {
        uint32_t lo = BR_MAX(r.lo, parts[i].lo), hi = BR_MIN(r.hi, parts[i].hi);
        char a[4], b[4];
        uint32_t one;

        if (lo > hi)
            continue;
        br_utf8_put(a, lo);
        one = utf8_range(x, a, b, br_utf8_put(b, hi), next);
        s = s == UINT32_MAX ? one : split(x, one, s);
    }
    return s;
}

static uint32_t emit(parser *x, const node *n, uint32_t next);

static uint32_t
emit_class(parser *x, const node *n, uint32_t next)
{
    uint32_t s = UINT32_MAX;

    for (size_t i = 0; i < n->n_ranges; i++) {
        uint32_t one = char_range(x, n->ranges[i], next);

        s = s == UINT32_MAX ? one : split(x, one, s);
    }
    return s;
}

/* Texts that are alike up to byte `from`. */
static uint32_t
emit_texts(parser *x, const br_text *t, size_t n, size_t from, uint32_t next)
{
    const br_text *last = &t[n - 1];
    uint32_t s = UINT32_MAX;
    size_t same = from, i = 0, j;

    while (same < t->n && same < last->n && t->p[same] == last->p[same])
        same++;
    for (; i < n && t[i].n == same; i++)
        s = next;
    for (; i < n && x->code == BR_OK; i = j) {
        uint8_t c = (uint8_t)t[i].p[same];
        uint32_t one;

        for (j = i + 1; j < n && (uint8_t)t[j].p[same] == c;)
            j++;
        one = byte_state(x, c, c, emit_texts(x, t + i, j - i, same + 1, next));
        s = s == UINT32_MAX ? one : split(x, s, one);
    }
    for (; same > from; same--)
        s = byte_state(x, (uint8_t)t->p[same - 1], (uint8_t)t->p[same - 1], s);
    return s;
}

static uint32_t
emit_repeat(parser *x, const node *n, uint32_t next)
{
    uint32_t s = next;

    if (n->max == UINT32_MAX) {
        s = split(x, 0, next);
        if (x->code == BR_OK) {
            uint32_t body = emit(x, n->child, s);

            x->g->states.at[s].a = body;
        }
    } else {
        for (uint32_t i = n->min; i < n->max && x->code == BR_OK; i++)
            s = split(x, emit(x, n->child, s), next);
    }
    for (uint32_t i = 0; i < n->min && x->code == BR_OK; i++)
        s = emit(x, n->child, s);
    return s;
}

static uint32_t
emit_rule(parser *x, uint32_t i, uint32_t next)
{
    if (leaves_of(x, i, 0) != UINT32_MAX)
        return emit(x, x->rules.at[i].body, next);
    if (!br_vec_push(&x->todo, i))
        x->code = oom(x->st);
    return state(x, (gstate){G_CALL, 0, 0, i, next}); /* a: see link */
}

static uint32_t
emit(parser *x, const node *n, uint32_t next)
{
    uint32_t s = UINT32_MAX;

    if (x->code == BR_OK && ++x->n_emits > MAX_EMITS)
        x->code = br_fail(x->st, BR_E_LIMIT,
                          "grammar: it repeats something too often");
    if (x->code != BR_OK)
        return 0;
    switch (n->kind) {
    case K_TEXT:
        for (size_t i = n->text.n; i-- > 0;)
            next = byte_state(x, (uint8_t)n->text.p[i], (uint8_t)n->text.p[i],
                              next);
        return next;
    case K_TEXTS: return emit_texts(x, n->texts, n->n_texts, 0, next);
    case K_CLASS: return emit_class(x, n, next);
    case K_SEQ:
        for (const node *c = n->last; c; c = c->prev)
            next = emit(x, c, next);
        return next;
    case K_ALT:
        for (const node *c = n->child; c; c = c->next) {
            uint32_t one = emit(x, c, next);

            s = s == UINT32_MAX ? one : split(x, s, one);
        }
        return s;
    case K_REPEAT: return emit_repeat(x, n, next);
    case K_RULE: return emit_rule(x, n->rule, next);
    }
    br_unreachable("no such kind");
}

/* States of the root and of all that is called; then calls know where to. */
static br_code
emit_all(parser *x)
{
    br_grammar *g = x->g;
    br_map_value *root = br_map_get(&x->names, BR_TEXT("root"));

    if (!root)
        return br_fail(x->st, BR_E_FORMAT, "grammar: there is no rule root");
    if (!br_vec_push(&x->todo, (uint32_t)root->u))
        return oom(x->st);
    while (x->todo.n && x->code == BR_OK) {
        rule *r = &x->rules.at[x->todo.at[--x->todo.n]];

        if (!r->start)
            r->start = emit(x, r->body, state(x, (gstate){.kind = G_RET})) + 1;
    }
    BR_TRY(x->code);
    for (size_t i = 0; i < g->states.n; i++)
        if (g->states.at[i].kind == G_CALL)
            g->states.at[i].a = x->rules.at[g->states.at[i].a].start - 1;
    g->root = x->rules.at[root->u].start - 1;
    return BR_OK;
}

/* Bytes that begin or end no range are like their neighbours. */
static void
classify(br_grammar *g)
{
    bool begins[257] = {true};

    for (size_t i = 0; i < g->states.n; i++) {
        const gstate *s = &g->states.at[i];

        if (s->kind == G_BYTE)
            begins[s->lo] = begins[s->hi + 1] = true;
    }
    for (int b = 0; b < 256; b++) {
        if (begins[b])
            g->byte_of[g->n_classes++] = (uint8_t)b;
        g->class_of[b] = (uint8_t)(g->n_classes - 1);
    }
}

/* ---- life ---------------------------------------------------------------- */

static br_code
check_rules(parser *x)
{
    grules rs = {.n = (uint32_t)x->rules.n};

    rs.at = br_arena_new(&x->arena, struct grule, rs.n);
    if (!rs.at)
        return oom(x->st);
    for (uint32_t i = 0; i < rs.n; i++) {
        rs.at[i].name = x->rules.at[i].name;
        rs.at[i].start = x->rules.at[i].start;
    }
    return br_grammar_check(x->g, &rs, &x->arena, x->st);
}

static br_code
build(br_grammar *g, br_text text, br_status *st)
{
    parser x = {
        .begin = text.p, .p = text.p, .end = text.p + text.n, .g = g, .st = st};
    br_code code;

    br_arena_init(&x.arena, 0);
    code = parse(&x);
    if (code == BR_OK)
        code = emit_all(&x);
    if (code == BR_OK)
        code = check_rules(&x);
    classify(g);
    br_arena_fini(&x.arena);
    br_map_fini(&x.names);
    br_vec_fini(&x.rules);
    br_vec_fini(&x.ranges);
    br_vec_fini(&x.todo);
    br_str_fini(&x.bytes);
    return code;
}

br_code
br_grammar_new(br_grammar **out, br_text text, const br_vocab *v, br_status *st)
{
    br_grammar *g;
    br_code code;
    size_t n = 1;

    *out = NULL;
    if (text.n > BR_GRAMMAR_MAX_TEXT)
        return br_fail(st, BR_E_LIMIT, "grammar: %zu bytes, at most %d", text.n,
                       BR_GRAMMAR_MAX_TEXT);
    if (v)
        (void)br_tok_eog(v->tok, &n);
    if (!n)
        return br_fail(st, BR_E_UNSUPPORTED,
                       "grammar: the model has no token that ends an answer");
    g = br_try_calloc(1, sizeof *g);
    if (!g)
        return oom(st);
    g->refs = 1;
    g->v = v;
    code = build(g, text, st);
    if (code != BR_OK)
        br_grammar_free(g);
    else
        *out = g;
    return code;
}

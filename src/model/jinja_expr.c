/* jinja_expr.c - expressions of templates to trees, by recursive descent.
 *
 *   expr   := or [if or [else expr]]
 *   or     := and ("or" and)*        and := not ("and" not)*
 *   not    := "not" not | compare
 *   compare:= sum ((== != < <= > >= in "not in") sum)*
 *   sum    := cat ((+ -) cat)*       cat := product (~ product)*
 *   product:= power ((* / // %) power)*
 *   power  := unary ("**" unary)*    unary := (- +) unary | postfix
 *   postfix:= primary (.name | [..] | (..) | "|" filter | "is" test)*
 *
 * Depth is counted, so a template of brackets cannot overflow the stack.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/jinja_parse.h"

#include <stdlib.h>
#include <string.h>

/* ---- small things ------------------------------------------------------- */

br_code
jp_fail(jj_parser *p, const char *what)
{
    return br_fail(p->st, BR_E_FORMAT, "line %u: %s", p->p->line, what);
}

br_code
jp_oom(jj_parser *p)
{
    return br_fail(p->st, BR_E_OOM, "template");
}

br_code
jp_deeper(jj_parser *p)
{
    if (++p->depth > BR_JINJA_MAX_DEPTH)
        return br_fail(p->st, BR_E_LIMIT, "line %u: nested deeper than %d",
                       p->p->line, BR_JINJA_MAX_DEPTH);
    return BR_OK;
}

bool
jp_is_op(const jj_parser *p, const char *s)
{
    return p->p->kind == JT_OP && br_text_is(p->p->text, s);
}

bool
jp_is_name(const jj_parser *p, const char *s)
{
    return p->p->kind == JT_NAME && br_text_is(p->p->text, s);
}

bool
jp_take_op(jj_parser *p, const char *s)
{
    if (!jp_is_op(p, s))
        return false;
    p->p++;
    return true;
}

bool
jp_take_name(jj_parser *p, const char *s)
{
    if (!jp_is_name(p, s))
        return false;
    p->p++;
    return true;
}

br_code
jp_need_op(jj_parser *p, const char *s)
{
    if (jp_take_op(p, s))
        return BR_OK;
    if (p->p->kind == JT_TAG_CLOSE || p->p->kind == JT_OUT_CLOSE ||
        p->p->kind == JT_END)
        return br_fail(p->st, BR_E_FORMAT,
                       "line %u: expected '%s' before the end of the tag",
                       p->p->line, s);
    return br_fail(p->st, BR_E_FORMAT, "line %u: expected '%s', got '%.*s'",
                   p->p->line, s, (int)BR_MIN(p->p->text.n, (size_t)40),
                   p->p->text.p);
}

br_code
jp_need_name(jj_parser *p, br_text *out)
{
    if (p->p->kind != JT_NAME)
        return jp_fail(p, "expected a name");
    *out = p->p->text;
    p->p++;
    return BR_OK;
}

br_code
jp_node(jj_parser *p, jj_node **out, jj_kind kind)
{
    *out = br_arena_new(&p->t->arena, jj_node, 1);
    if (!*out)
        return jp_oom(p);
    (*out)->kind = (uint8_t)kind;
    (*out)->line = p->p->line;
    return BR_OK;
}

br_code
jp_set_kids(jj_parser *p, jj_node *n, jj_node *const *kid, size_t n_kid)
{
    n->n_kid = (uint32_t)n_kid;
    n->kid = br_arena_new(&p->t->arena, jj_node *, n_kid + 1);
    if (!n->kid)
        return jp_oom(p);
    if (n_kid)
        memcpy(n->kid, kid, n_kid * sizeof *kid);
    return BR_OK;
}

/* A node with up to four kids, in one go. */
br_code
jp_make(jj_parser *p, jj_node **out, jj_kind kind, size_t n,
        jj_node *const *kid)
{
    jj_node *x;

    BR_TRY(jp_node(p, &x, kind));
    BR_TRY(jp_set_kids(p, x, kid, n));
    *out = x;
    return BR_OK;
}

/* ---- primaries ---------------------------------------------------------- */

br_code
jp_constant(jj_parser *p, jj_node **out, jj_val v)
{
    BR_TRY(jp_node(p, out, JN_CONST));
    (*out)->value = v;
    return BR_OK;
}

static br_code
number(jj_parser *p, jj_node **out)
{
    char digits[64];
    size_t n = 0;
    const jj_token *t = p->p;
    br_text text;
    int64_t i;
    double f;

    for (size_t k = 0; k < t->text.n && n < sizeof digits; k++)
        if (t->text.p[k] != '_')
            digits[n++] = t->text.p[k];
    text = (br_text){digits, n};
    if (n == sizeof digits)
        return jp_fail(p, "a number of too many digits");
    if (t->kind == JT_FLOAT) {
        if (!br_json_to_f64(text, &f))
            return jp_fail(p, "not a number");
        BR_TRY(jp_constant(p, out, jj_float(f)));
    } else {
        while (text.n > 1 && text.p[0] == '0')
            text.p++, text.n--;
        if (!br_json_to_i64(text, &i))
            return jp_fail(p, "an integer that does not fit 64 bits");
        BR_TRY(jp_constant(p, out, jj_int(i)));
    }
    p->p++;
    return BR_OK;
}

/* "a" 'b' side by side are one string. */
static br_code
string(jj_parser *p, jj_node **out)
{
    br_text t = p->p->text;

    BR_TRY(jp_node(p, out, JN_CONST));
    p->p++;
    while (p->p->kind == JT_STR) {
        char *s = br_arena_get(&p->t->arena, t.n + p->p->text.n + 1);
        if (!s)
            return jp_oom(p);
        memcpy(s, t.p, t.n);
        memcpy(s + t.n, p->p->text.p, p->p->text.n);
        t = (br_text){s, t.n + p->p->text.n};
        p->p++;
    }
    (*out)->value = jj_str(t);
    return BR_OK;
}

/* Up to the closing bracket; a trailing comma is fine. */
static br_code
items(jj_parser *p, const char *close, jj_nodes *list, bool pairs)
{
    jj_node *x;

    while (!jp_is_op(p, close)) {
        BR_TRY(jp_expr(p, &x));
        if (!br_vec_push(list, x))
            return jp_oom(p);
        if (pairs) {
            BR_TRY(jp_need_op(p, ":"));
            BR_TRY(jp_expr(p, &x));
            if (!br_vec_push(list, x))
                return jp_oom(p);
        }
        if (!jp_take_op(p, ","))
            break;
    }
    return jp_need_op(p, close);
}

static br_code
bracketed(jj_parser *p, jj_node **out, jj_kind kind, const char *close)
{
    jj_nodes list = {0};
    br_code rc;

    p->p++;
    rc = items(p, close, &list, kind == JN_DICT);
    if (rc == BR_OK)
        rc = jp_make(p, out, kind, list.n, list.at);
    br_vec_fini(&list);
    return rc;
}

/* ( ): grouping, or a tuple when there is a comma or nothing. */
static br_code
paren(jj_parser *p, jj_node **out)
{
    jj_nodes list = {0};
    const jj_token *start = ++p->p;
    br_code rc = items(p, ")", &list, false);
    bool tuple = list.n != 1;

    if (rc == BR_OK && list.n == 1 && p->p[-2].kind == JT_OP &&
        br_text_is(p->p[-2].text, ",") && p->p - 2 > start)
        tuple = true;
    if (rc == BR_OK && tuple)
        rc = jp_make(p, out, JN_TUPLE, list.n, list.at);
    else if (rc == BR_OK)
        *out = list.at[0];
    br_vec_fini(&list);
    return rc;
}

static br_code
primary(jj_parser *p, jj_node **out)
{
    static const struct {
        const char *name;
        int v; /* 0 false, 1 true, 2 none */
    } words[] = {{"true", 1},  {"True", 1}, {"false", 0},
                 {"False", 0}, {"none", 2}, {"None", 2}};

    switch (p->p->kind) {
    case JT_STR: return string(p, out);
    case JT_INT:
    case JT_FLOAT: return number(p, out);
    case JT_OP:
        if (jp_is_op(p, "("))
            return paren(p, out);
        if (jp_is_op(p, "["))
            return bracketed(p, out, JN_LIST, "]");
        if (jp_is_op(p, "{"))
            return bracketed(p, out, JN_DICT, "}");
        break;
    case JT_NAME:
        for (size_t i = 0; i < BR_COUNT(words); i++)
            if (jp_take_name(p, words[i].name))
                return jp_constant(p, out,
                                   words[i].v == 2 ? jj_none()
                                                   : jj_bool(words[i].v == 1));
        if (jp_is_name(p, "varargs"))
            p->rest |= JM_VARARGS;
        if (jp_is_name(p, "kwargs"))
            p->rest |= JM_KWARGS;
        BR_TRY(jp_node(p, out, JN_NAME));
        return jp_need_name(p, &(*out)->text);
    default: break;
    }
    return jp_fail(p, "expected an expression");
}

/* ---- postfix ------------------------------------------------------------ */

typedef struct call_args {
    jj_nodes pos, kw;
    jj_texts key;
    jj_node *rest[2]; /* after * and ** */
} call_args;

/* One argument; named ones come after the others, ** last. */
static br_code
argument(jj_parser *p, call_args *a)
{
    bool named = p->p->kind == JT_NAME && p->p[1].kind == JT_OP &&
                 br_text_is(p->p[1].text, "=");
    bool dict = !named && jp_take_op(p, "**");
    jj_node *x;

    if (a->rest[1])
        return jp_fail(p, "an argument after '**'");
    if (dict || (!named && jp_take_op(p, "*"))) {
        if (a->rest[dict])
            return jp_fail(p, "more than one '*' in a call");
        return jp_expr(p, &a->rest[dict]);
    }
    if (named) {
        if (!br_vec_push(&a->key, p->p->text))
            return jp_oom(p);
        p->p += 2;
    } else if (a->key.n || a->rest[0]) {
        return jp_fail(p, "a positional argument after a named one or '*'");
    }
    BR_TRY(jp_expr(p, &x));
    return (named ? br_vec_push(&a->kw, x) : br_vec_push(&a->pos, x))
               ? BR_OK
               : jp_oom(p);
}

/* Arguments after "(" up to ")". */
static br_code
arguments(jj_parser *p, call_args *a)
{
    while (!jp_is_op(p, ")")) {
        BR_TRY(argument(p, a));
        if (!jp_take_op(p, ","))
            break;
    }
    return jp_need_op(p, ")");
}

/* Turns base (and "(..)" if it comes) into a call-like node. */
static br_code
call_like(jj_parser *p, jj_node *n, jj_node *base, bool has_args)
{
    call_args a = {0};
    br_code rc = BR_OK;

    if (!br_vec_push(&a.pos, base))
        rc = jp_oom(p);
    if (rc == BR_OK && has_args)
        rc = arguments(p, &a);
    n->n_pos = (uint16_t)(a.pos.n - 1);
    n->n_key = (uint16_t)a.kw.n;
    n->op =
        (uint8_t)((a.rest[0] ? JM_VARARGS : 0) | (a.rest[1] ? JM_KWARGS : 0));
    if (rc == BR_OK && (a.pos.n > 1000 || a.kw.n > 1000))
        rc = jp_fail(p, "more than 1000 arguments");
    for (size_t i = 0; rc == BR_OK && i < a.kw.n; i++)
        if (!br_vec_push(&a.pos, a.kw.at[i]))
            rc = jp_oom(p);
    for (size_t i = 0; rc == BR_OK && i < BR_COUNT(a.rest); i++)
        if (a.rest[i] && !br_vec_push(&a.pos, a.rest[i]))
            rc = jp_oom(p);
    if (rc == BR_OK)
        rc = jp_set_kids(p, n, a.pos.at, a.pos.n);
    if (rc == BR_OK && a.key.n) {
        n->key =
            br_arena_dup(&p->t->arena, a.key.at, a.key.n * sizeof *a.key.at);
        if (!n->key)
            rc = jp_oom(p);
    }
    br_vec_fini(&a.pos);
    br_vec_fini(&a.kw);
    br_vec_fini(&a.key);
    return rc;
}

br_code
jp_filter(jj_parser *p, jj_node **base)
{
    jj_node *n;
    br_text name;

    BR_TRY(jp_node(p, &n, JN_FILTER));
    BR_TRY(jp_need_name(p, &name));
    n->text = name;
    n->row = (int16_t)jj_filter_find(name);
    if (n->row < 0)
        return br_fail(p->st, BR_E_FORMAT, "line %u: no such filter '%.*s'",
                       n->line, (int)BR_MIN(name.n, (size_t)60), name.p);
    BR_TRY(call_like(p, n, *base, jp_take_op(p, "(")));
    *base = n;
    return BR_OK;
}

/* Does a test's one argument follow without brackets? (x is divisibleby 3) */
static bool
bare_argument(const jj_parser *p)
{
    static const char *const not_it[] = {"else", "or", "and", "is",
                                         "if",   "in", "not"};

    if (p->p->kind == JT_STR || p->p->kind == JT_INT || p->p->kind == JT_FLOAT)
        return true;
    if (p->p->kind == JT_OP)
        return jp_is_op(p, "[") || jp_is_op(p, "{");
    if (p->p->kind != JT_NAME)
        return false;
    for (size_t i = 0; i < BR_COUNT(not_it); i++)
        if (jp_is_name(p, not_it[i]))
            return false;
    return true;
}

static br_code
test(jj_parser *p, jj_node **base)
{
    jj_node *n, *arg;
    br_text name;

    BR_TRY(jp_node(p, &n, JN_TEST));
    n->negate = jp_take_name(p, "not");
    BR_TRY(jp_need_name(p, &name));
    n->text = name;
    n->row = (int16_t)jj_test_find(name);
    if (n->row < 0)
        return br_fail(p->st, BR_E_FORMAT, "line %u: no such test '%.*s'",
                       n->line, (int)BR_MIN(name.n, (size_t)60), name.p);
    if (jp_take_op(p, "(")) {
        BR_TRY(call_like(p, n, *base, true));
    } else if (bare_argument(p)) {
        BR_TRY(primary(p, &arg));
        n->n_pos = 1;
        BR_TRY(jp_set_kids(p, n, (jj_node *[]){*base, arg}, 2));
    } else {
        BR_TRY(call_like(p, n, *base, false));
    }
    *base = n;
    return BR_OK;
}

/* [i] or [a:b:c] */
static br_code
subscript(jj_parser *p, jj_node **base)
{
    jj_node *part[4] = {*base, NULL, NULL, NULL};
    size_t k = 1;
    bool slice = false;

    if (!jp_is_op(p, ":"))
        BR_TRY(jp_expr(p, &part[1]));
    while (k < 3 && jp_take_op(p, ":")) {
        slice = true;
        k++;
        if (!jp_is_op(p, ":") && !jp_is_op(p, "]"))
            BR_TRY(jp_expr(p, &part[k]));
    }
    BR_TRY(jp_need_op(p, "]"));
    return jp_make(p, base, slice ? JN_SLICE : JN_ITEM, slice ? 4 : 2, part);
}

static br_code
attribute(jj_parser *p, jj_node **base)
{
    jj_node *n;

    BR_TRY(jp_make(p, &n, JN_ATTR, 1, base));
    if (p->p->kind == JT_INT) { /* x.0 is x[0] */
        jj_node *i;
        BR_TRY(number(p, &i));
        return jp_make(p, base, JN_ITEM, 2, (jj_node *[]){*base, i});
    }
    BR_TRY(jp_need_name(p, &n->text));
    *base = n;
    return BR_OK;
}

br_code
jp_postfix(jj_parser *p, jj_node **out, bool filters)
{
    jj_node *n;
    int chain = 0;

    BR_TRY(primary(p, out));
    for (;; chain++) {
        if (chain > 1000)
            return jp_fail(p, "more than 1000 suffixes on one value");
        if (jp_take_op(p, ".")) {
            BR_TRY(attribute(p, out));
        } else if (jp_take_op(p, "[")) {
            BR_TRY(subscript(p, out));
        } else if (jp_take_op(p, "(")) {
            BR_TRY(jp_node(p, &n, JN_CALL));
            BR_TRY(call_like(p, n, *out, true));
            *out = n;
        } else if (filters && jp_take_op(p, "|")) {
            BR_TRY(jp_filter(p, out));
        } else if (filters && jp_take_name(p, "is")) {
            BR_TRY(test(p, out));
        } else {
            return BR_OK;
        }
    }
}

/* ---- operators, loosest last -------------------------------------------- */

static br_code
binary(jj_parser *p, jj_node **out, int op, jj_node *b)
{
    BR_TRY(jp_make(p, out, JN_BIN, 2, (jj_node *[]){*out, b}));
    (*out)->op = (uint8_t)op;
    return BR_OK;
}

/* Filters and tests bind to a whole unary: -1|abs is (-1)|abs. */
static br_code
suffixes(jj_parser *p, jj_node **out)
{
    for (int i = 0; i < 1000; i++) {
        if (jp_take_op(p, "|"))
            BR_TRY(jp_filter(p, out));
        else if (jp_take_name(p, "is"))
            BR_TRY(test(p, out));
        else
            return BR_OK;
    }
    return jp_fail(p, "more than 1000 filters on one value");
}

/* Without filters: those of -x|abs belong to the whole -x. */
static br_code
signed_value(jj_parser *p, jj_node **out)
{
    bool neg = jp_is_op(p, "-");
    jj_node *x;

    BR_TRY(jp_deeper(p));
    if (neg || jp_is_op(p, "+")) {
        p->p++;
        BR_TRY(signed_value(p, &x));
        BR_TRY(jp_make(p, out, neg ? JN_NEG : JN_POS, 1, &x));
    } else {
        BR_TRY(jp_postfix(p, out, false));
    }
    p->depth--;
    return BR_OK;
}

static br_code
unary(jj_parser *p, jj_node **out)
{
    BR_TRY(signed_value(p, out));
    return suffixes(p, out);
}

/* Unlike Python's: -2**2 is 4, and 2**3**2 is 64. */
static br_code
power(jj_parser *p, jj_node **out)
{
    jj_node *b;

    BR_TRY(unary(p, out));
    while (jp_take_op(p, "**")) {
        BR_TRY(unary(p, &b));
        BR_TRY(binary(p, out, JO_POW, b));
    }
    return BR_OK;
}

struct level {
    const char *op;
    int code;
};

static br_code
product(jj_parser *p, jj_node **out)
{
    static const struct level ops[] = {
        {"*", JO_MUL}, {"/", JO_DIV}, {"//", JO_FLOOR}, {"%", JO_MOD}};
    jj_node *b;

    BR_TRY(power(p, out));
    for (size_t i = 0; i < BR_COUNT(ops); i++)
        if (jp_take_op(p, ops[i].op)) {
            BR_TRY(power(p, &b));
            BR_TRY(binary(p, out, ops[i].code, b));
            i = (size_t)-1;
        }
    return BR_OK;
}

static br_code
cat(jj_parser *p, jj_node **out)
{
    jj_node *b;

    BR_TRY(product(p, out));
    while (jp_take_op(p, "~")) {
        BR_TRY(product(p, &b));
        BR_TRY(binary(p, out, JO_CAT, b));
    }
    return BR_OK;
}

static br_code
sum(jj_parser *p, jj_node **out)
{
    jj_node *b;

    BR_TRY(cat(p, out));
    while (jp_is_op(p, "+") || jp_is_op(p, "-")) {
        int op = jp_is_op(p, "+") ? JO_ADD : JO_SUB;
        p->p++;
        BR_TRY(cat(p, &b));
        BR_TRY(binary(p, out, op, b));
    }
    return BR_OK;
}

static int
compare_op(jj_parser *p)
{
    static const struct level ops[] = {{"==", JO_EQ}, {"!=", JO_NE},
                                       {"<", JO_LT},  {"<=", JO_LE},
                                       {">", JO_GT},  {">=", JO_GE}};

    for (size_t i = 0; i < BR_COUNT(ops); i++)
        if (jp_take_op(p, ops[i].op))
            return ops[i].code;
    if (jp_take_name(p, "in"))
        return JO_IN;
    if (jp_is_name(p, "not") && p->p[1].kind == JT_NAME &&
        br_text_is(p->p[1].text, "in")) {
        p->p += 2;
        return JO_NOT_IN;
    }
    return -1;
}

/* a < b < c is a < b and b < c: a CMP node for each pair, joined. */
static br_code
compare(jj_parser *p, jj_node **out)
{
    jj_node *left, *right, *pair;
    int op;

    BR_TRY(sum(p, &left));
    *out = left;
    for (int n = 0; (op = compare_op(p)) >= 0; n++) {
        BR_TRY(sum(p, &right));
        BR_TRY(jp_make(p, &pair, JN_CMP, 2, (jj_node *[]){left, right}));
        pair->op = (uint8_t)op;
        if (n == 0)
            *out = pair;
        else
            BR_TRY(jp_make(p, out, JN_AND, 2, (jj_node *[]){*out, pair}));
        left = right;
        if (n > 1000)
            return jp_fail(p, "more than 1000 comparisons in a row");
    }
    return BR_OK;
}

static br_code
negation(jj_parser *p, jj_node **out)
{
    jj_node *x;

    if (!jp_take_name(p, "not"))
        return compare(p, out);
    BR_TRY(jp_deeper(p));
    BR_TRY(negation(p, &x));
    p->depth--;
    return jp_make(p, out, JN_NOT, 1, &x);
}

br_code
jp_logic(jj_parser *p, jj_node **out, const char *word)
{
    const bool both = word[0] == 'a';
    jj_node *b;

    BR_TRY(both ? negation(p, out) : jp_logic(p, out, "and"));
    while (jp_take_name(p, word)) {
        BR_TRY(both ? negation(p, &b) : jp_logic(p, &b, "and"));
        BR_TRY(
            jp_make(p, out, both ? JN_AND : JN_OR, 2, (jj_node *[]){*out, b}));
    }
    return BR_OK;
}

br_code
jp_expr(jj_parser *p, jj_node **out)
{
    BR_TRY(jp_deeper(p));
    BR_TRY(jp_logic(p, out, "or"));
    while (jp_take_name(p, "if")) {
        jj_node *part[3] = {*out, NULL, NULL};
        BR_TRY(jp_logic(p, &part[1], "or"));
        if (jp_take_name(p, "else"))
            BR_TRY(jp_expr(p, &part[2]));
        BR_TRY(jp_make(p, out, JN_COND, 3, part));
    }
    p->depth--;
    return BR_OK;
}

/* expr [, expr]*: a tuple when there is a comma */
br_code
jp_expr_or_tuple(jj_parser *p, jj_node **out)
{
    jj_nodes list = {0};
    jj_node *x;
    br_code rc = jp_expr(p, out);

    if (rc != BR_OK || !jp_is_op(p, ","))
        return rc;
    if (!br_vec_push(&list, *out))
        rc = jp_oom(p);
    while (rc == BR_OK && jp_take_op(p, ",") && p->p->kind != JT_TAG_CLOSE &&
           p->p->kind != JT_OUT_CLOSE) {
        rc = jp_expr(p, &x);
        if (rc == BR_OK && !br_vec_push(&list, x))
            rc = jp_oom(p);
    }
    if (rc == BR_OK)
        rc = jp_make(p, out, JN_TUPLE, list.n, list.at);
    br_vec_fini(&list);
    return rc;
}

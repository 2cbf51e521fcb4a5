/* jinja_parse.c - tokens to a tree, by recursive descent.
 *
 *   body   := (TEXT | {{ expr }} | {% statement %})*
 *   expr   := or [if or [else expr]]
 *   or     := and ("or" and)*        and := not ("and" not)*
 *   not    := "not" not | compare
 *   compare:= sum ((== != < <= > >= in "not in") sum)*
 *   sum    := cat ((+ -) cat)*       cat := product (~ product)*
 *   product:= unary ((* / // %) unary)*
 *   unary  := (- +) unary | power    power := postfix [** unary]
 *   postfix:= primary (.name | [..] | (..) | "|" filter | "is" test)*
 *
 * Depth is counted, so a template of brackets cannot overflow the stack.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/jinja_ast.h"

#include <stdlib.h>
#include <string.h>

struct parser {
    br_jinja *t;
    br_status *st;
    const jj_token *p;
    int depth;
};

typedef BR_VEC(jj_node *) nodes;
typedef BR_VEC(br_text) texts;

static br_code expr(struct parser *p, jj_node **out);
static br_code unary(struct parser *p, jj_node **out);
static br_code body(struct parser *p, jj_node **out, const char *const *ends);

/* ---- small things ------------------------------------------------------- */

static br_code
fail(struct parser *p, const char *what)
{
    return br_fail(p->st, BR_E_FORMAT, "line %u: %s", p->p->line, what);
}

static br_code
oom(struct parser *p)
{
    return br_fail(p->st, BR_E_OOM, "template");
}

static br_code
deeper(struct parser *p)
{
    if (++p->depth > BR_JINJA_MAX_DEPTH)
        return br_fail(p->st, BR_E_LIMIT, "line %u: nested deeper than %d",
                       p->p->line, BR_JINJA_MAX_DEPTH);
    return BR_OK;
}

static bool
is_op(const struct parser *p, const char *s)
{
    return p->p->kind == JT_OP && br_text_is(p->p->text, s);
}

static bool
is_name(const struct parser *p, const char *s)
{
    return p->p->kind == JT_NAME && br_text_is(p->p->text, s);
}

static bool
take_op(struct parser *p, const char *s)
{
    if (!is_op(p, s))
        return false;
    p->p++;
    return true;
}

static bool
take_name(struct parser *p, const char *s)
{
    if (!is_name(p, s))
        return false;
    p->p++;
    return true;
}

static br_code
need_op(struct parser *p, const char *s)
{
    if (take_op(p, s))
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

static br_code
need_name(struct parser *p, br_text *out)
{
    if (p->p->kind != JT_NAME)
        return fail(p, "expected a name");
    *out = p->p->text;
    p->p++;
    return BR_OK;
}

static br_code
node(struct parser *p, jj_node **out, jj_kind kind)
{
    *out = br_arena_new(&p->t->arena, jj_node, 1);
    if (!*out)
        return oom(p);
    (*out)->kind = (uint8_t)kind;
    (*out)->line = p->p->line;
    return BR_OK;
}

static br_code
set_kids(struct parser *p, jj_node *n, jj_node *const *kid, size_t n_kid)
{
    n->n_kid = (uint32_t)n_kid;
    n->kid = br_arena_new(&p->t->arena, jj_node *, n_kid + 1);
    if (!n->kid)
        return oom(p);
    if (n_kid)
        memcpy(n->kid, kid, n_kid * sizeof *kid);
    return BR_OK;
}

/* A node with up to four kids, in one go. */
static br_code
make(struct parser *p, jj_node **out, jj_kind kind, size_t n,
     jj_node *const *kid)
{
    jj_node *x;

    BR_TRY(node(p, &x, kind));
    BR_TRY(set_kids(p, x, kid, n));
    *out = x;
    return BR_OK;
}

/* ---- primaries ---------------------------------------------------------- */

static br_code
constant(struct parser *p, jj_node **out, jj_val v)
{
    BR_TRY(node(p, out, JN_CONST));
    (*out)->value = v;
    return BR_OK;
}

static br_code
number(struct parser *p, jj_node **out)
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
        return fail(p, "a number of too many digits");
    if (t->kind == JT_FLOAT) {
        if (!br_json_to_f64(text, &f))
            return fail(p, "not a number");
        BR_TRY(constant(p, out, jj_float(f)));
    } else {
        while (text.n > 1 && text.p[0] == '0')
            text.p++, text.n--;
        if (!br_json_to_i64(text, &i))
            return fail(p, "an integer that does not fit 64 bits");
        BR_TRY(constant(p, out, jj_int(i)));
    }
    p->p++;
    return BR_OK;
}

/* "a" 'b' side by side are one string. */
static br_code
string(struct parser *p, jj_node **out)
{
    br_text t = p->p->text;

    BR_TRY(node(p, out, JN_CONST));
    p->p++;
    while (p->p->kind == JT_STR) {
        char *s = br_arena_get(&p->t->arena, t.n + p->p->text.n + 1);
        if (!s)
            return oom(p);
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
items(struct parser *p, const char *close, nodes *list, bool pairs)
{
    jj_node *x;

    while (!is_op(p, close)) {
        BR_TRY(expr(p, &x));
        if (!br_vec_push(list, x))
            return oom(p);
        if (pairs) {
            BR_TRY(need_op(p, ":"));
            BR_TRY(expr(p, &x));
            if (!br_vec_push(list, x))
                return oom(p);
        }
        if (!take_op(p, ","))
            break;
    }
    return need_op(p, close);
}

static br_code
bracketed(struct parser *p, jj_node **out, jj_kind kind, const char *close)
{
    nodes list = {0};
    br_code rc;

    p->p++;
    rc = items(p, close, &list, kind == JN_DICT);
    if (rc == BR_OK)
        rc = make(p, out, kind, list.n, list.at);
    br_vec_fini(&list);
    return rc;
}

/* ( ): grouping, or a tuple when there is a comma or nothing. */
static br_code
paren(struct parser *p, jj_node **out)
{
    nodes list = {0};
    const jj_token *start = ++p->p;
    br_code rc = items(p, ")", &list, false);
    bool tuple = list.n != 1;

    if (rc == BR_OK && list.n == 1 && p->p[-2].kind == JT_OP &&
        br_text_is(p->p[-2].text, ",") && p->p - 2 > start)
        tuple = true;
    if (rc == BR_OK && tuple)
        rc = make(p, out, JN_TUPLE, list.n, list.at);
    else if (rc == BR_OK)
        *out = list.at[0];
    br_vec_fini(&list);
    return rc;
}

static br_code
primary(struct parser *p, jj_node **out)
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
        if (is_op(p, "("))
            return paren(p, out);
        if (is_op(p, "["))
            return bracketed(p, out, JN_LIST, "]");
        if (is_op(p, "{"))
            return bracketed(p, out, JN_DICT, "}");
        break;
    case JT_NAME:
        for (size_t i = 0; i < BR_COUNT(words); i++)
            if (take_name(p, words[i].name))
                return constant(p, out,
                                words[i].v == 2 ? jj_none()
                                                : jj_bool(words[i].v == 1));
        BR_TRY(node(p, out, JN_NAME));
        return need_name(p, &(*out)->text);
    default: break;
    }
    return fail(p, "expected an expression");
}

/* ---- postfix ------------------------------------------------------------ */

/* Arguments after "(" up to ")"; keywords come last. */
static br_code
arguments(struct parser *p, nodes *pos, nodes *kw, texts *key)
{
    jj_node *x;

    while (!is_op(p, ")")) {
        bool named = p->p->kind == JT_NAME && p->p[1].kind == JT_OP &&
                     br_text_is(p->p[1].text, "=");
        if (named) {
            if (!br_vec_push(key, p->p->text))
                return oom(p);
            p->p += 2;
        } else if (key->n) {
            return fail(p, "a positional argument after a named one");
        }
        BR_TRY(expr(p, &x));
        if (!(named ? br_vec_push(kw, x) : br_vec_push(pos, x)))
            return oom(p);
        if (!take_op(p, ","))
            break;
    }
    return need_op(p, ")");
}

/* Turns base (and "(..)" if it comes) into a call-like node. */
static br_code
call_like(struct parser *p, jj_node *n, jj_node *base, bool has_args)
{
    nodes pos = {0}, kw = {0};
    texts key = {0};
    br_code rc = BR_OK;

    if (!br_vec_push(&pos, base))
        rc = oom(p);
    if (rc == BR_OK && has_args)
        rc = arguments(p, &pos, &kw, &key);
    n->n_pos = (uint16_t)(pos.n - 1);
    n->n_key = (uint16_t)kw.n;
    if (rc == BR_OK && (pos.n > 1000 || kw.n > 1000))
        rc = fail(p, "more than 1000 arguments");
    for (size_t i = 0; rc == BR_OK && i < kw.n; i++)
        if (!br_vec_push(&pos, kw.at[i]))
            rc = oom(p);
    if (rc == BR_OK)
        rc = set_kids(p, n, pos.at, pos.n);
    if (rc == BR_OK && key.n) {
        n->key = br_arena_dup(&p->t->arena, key.at, key.n * sizeof *key.at);
        if (!n->key)
            rc = oom(p);
    }
    br_vec_fini(&pos);
    br_vec_fini(&kw);
    br_vec_fini(&key);
    return rc;
}

static br_code
filter(struct parser *p, jj_node **base)
{
    jj_node *n;
    br_text name;

    BR_TRY(node(p, &n, JN_FILTER));
    BR_TRY(need_name(p, &name));
    n->text = name;
    n->row = (int16_t)jj_filter_find(name);
    if (n->row < 0)
        return br_fail(p->st, BR_E_FORMAT, "line %u: no such filter '%.*s'",
                       n->line, (int)BR_MIN(name.n, (size_t)60), name.p);
    BR_TRY(call_like(p, n, *base, take_op(p, "(")));
    *base = n;
    return BR_OK;
}

/* Does a test's one argument follow without brackets? (x is divisibleby 3) */
static bool
bare_argument(const struct parser *p)
{
    static const char *const not_it[] = {"else", "or", "and", "is",
                                         "if",   "in", "not"};

    if (p->p->kind == JT_STR || p->p->kind == JT_INT || p->p->kind == JT_FLOAT)
        return true;
    if (p->p->kind == JT_OP)
        return is_op(p, "[") || is_op(p, "{");
    if (p->p->kind != JT_NAME)
        return false;
    for (size_t i = 0; i < BR_COUNT(not_it); i++)
        if (is_name(p, not_it[i]))
            return false;
    return true;
}

static br_code
test(struct parser *p, jj_node **base)
{
    jj_node *n, *arg;
    br_text name;

    BR_TRY(node(p, &n, JN_TEST));
    n->negate = take_name(p, "not");
    BR_TRY(need_name(p, &name));
    n->text = name;
    n->row = (int16_t)jj_test_find(name);
    if (n->row < 0)
        return br_fail(p->st, BR_E_FORMAT, "line %u: no such test '%.*s'",
                       n->line, (int)BR_MIN(name.n, (size_t)60), name.p);
    if (take_op(p, "(")) {
        BR_TRY(call_like(p, n, *base, true));
    } else if (bare_argument(p)) {
        BR_TRY(primary(p, &arg));
        n->n_pos = 1;
        BR_TRY(set_kids(p, n, (jj_node *[]){*base, arg}, 2));
    } else {
        BR_TRY(call_like(p, n, *base, false));
    }
    *base = n;
    return BR_OK;
}

/* [i] or [a:b:c] */
static br_code
subscript(struct parser *p, jj_node **base)
{
    jj_node *part[4] = {*base, NULL, NULL, NULL};
    size_t k = 1;
    bool slice = false;

    if (!is_op(p, ":"))
        BR_TRY(expr(p, &part[1]));
    while (k < 3 && take_op(p, ":")) {
        slice = true;
        k++;
        if (!is_op(p, ":") && !is_op(p, "]"))
            BR_TRY(expr(p, &part[k]));
    }
    BR_TRY(need_op(p, "]"));
    return make(p, base, slice ? JN_SLICE : JN_ITEM, slice ? 4 : 2, part);
}

static br_code
attribute(struct parser *p, jj_node **base)
{
    jj_node *n;

    BR_TRY(make(p, &n, JN_ATTR, 1, base));
    if (p->p->kind == JT_INT) { /* x.0 is x[0] */
        jj_node *i;
        BR_TRY(number(p, &i));
        return make(p, base, JN_ITEM, 2, (jj_node *[]){*base, i});
    }
    BR_TRY(need_name(p, &n->text));
    *base = n;
    return BR_OK;
}

static br_code
postfix(struct parser *p, jj_node **out, bool filters)
{
    jj_node *n;
    int chain = 0;

    BR_TRY(primary(p, out));
    for (;; chain++) {
        if (chain > 1000)
            return fail(p, "more than 1000 suffixes on one value");
        if (take_op(p, ".")) {
            BR_TRY(attribute(p, out));
        } else if (take_op(p, "[")) {
            BR_TRY(subscript(p, out));
        } else if (take_op(p, "(")) {
            BR_TRY(node(p, &n, JN_CALL));
            BR_TRY(call_like(p, n, *out, true));
            *out = n;
        } else if (filters && take_op(p, "|")) {
            BR_TRY(filter(p, out));
        } else if (filters && take_name(p, "is")) {
            BR_TRY(test(p, out));
        } else {
            return BR_OK;
        }
    }
}

/* ---- operators, loosest last -------------------------------------------- */

static br_code
binary(struct parser *p, jj_node **out, int op, jj_node *b)
{
    BR_TRY(make(p, out, JN_BIN, 2, (jj_node *[]){*out, b}));
    (*out)->op = (uint8_t)op;
    return BR_OK;
}

/* Filters and tests bind to a whole unary: -1|abs is (-1)|abs. */
static br_code
suffixes(struct parser *p, jj_node **out)
{
    for (int i = 0; i < 1000; i++) {
        if (take_op(p, "|"))
            BR_TRY(filter(p, out));
        else if (take_name(p, "is"))
            BR_TRY(test(p, out));
        else
            return BR_OK;
    }
    return fail(p, "more than 1000 filters on one value");
}

static br_code
power(struct parser *p, jj_node **out)
{
    jj_node *b;

    BR_TRY(postfix(p, out, false));
    if (take_op(p, "**")) {
        BR_TRY(unary(p, &b));
        BR_TRY(binary(p, out, JO_POW, b));
    }
    return BR_OK;
}

/* Without filters: those of -x|abs belong to the whole -x. */
static br_code
signed_power(struct parser *p, jj_node **out)
{
    bool neg = is_op(p, "-");
    jj_node *x;

    BR_TRY(deeper(p));
    if (neg || is_op(p, "+")) {
        p->p++;
        BR_TRY(signed_power(p, &x));
        BR_TRY(make(p, out, neg ? JN_NEG : JN_POS, 1, &x));
    } else {
        BR_TRY(power(p, out));
    }
    p->depth--;
    return BR_OK;
}

static br_code
unary(struct parser *p, jj_node **out)
{
    BR_TRY(signed_power(p, out));
    return suffixes(p, out);
}

struct level {
    const char *op;
    int code;
};

static br_code
product(struct parser *p, jj_node **out)
{
    static const struct level ops[] = {
        {"*", JO_MUL}, {"/", JO_DIV}, {"//", JO_FLOOR}, {"%", JO_MOD}};
    jj_node *b;

    BR_TRY(unary(p, out));
    for (size_t i = 0; i < BR_COUNT(ops); i++)
        if (take_op(p, ops[i].op)) {
            BR_TRY(unary(p, &b));
            BR_TRY(binary(p, out, ops[i].code, b));
            i = (size_t)-1;
        }
    return BR_OK;
}

static br_code
cat(struct parser *p, jj_node **out)
{
    jj_node *b;

    BR_TRY(product(p, out));
    while (take_op(p, "~")) {
        BR_TRY(product(p, &b));
        BR_TRY(binary(p, out, JO_CAT, b));
    }
    return BR_OK;
}

static br_code
sum(struct parser *p, jj_node **out)
{
    jj_node *b;

    BR_TRY(cat(p, out));
    while (is_op(p, "+") || is_op(p, "-")) {
        int op = is_op(p, "+") ? JO_ADD : JO_SUB;
        p->p++;
        BR_TRY(cat(p, &b));
        BR_TRY(binary(p, out, op, b));
    }
    return BR_OK;
}

static int
compare_op(struct parser *p)
{
    static const struct level ops[] = {{"==", JO_EQ}, {"!=", JO_NE},
                                       {"<", JO_LT},  {"<=", JO_LE},
                                       {">", JO_GT},  {">=", JO_GE}};

    for (size_t i = 0; i < BR_COUNT(ops); i++)
        if (take_op(p, ops[i].op))
            return ops[i].code;
    if (take_name(p, "in"))
        return JO_IN;
    if (is_name(p, "not") && p->p[1].kind == JT_NAME &&
        br_text_is(p->p[1].text, "in")) {
        p->p += 2;
        return JO_NOT_IN;
    }
    return -1;
}

/* a < b < c is a < b and b < c: a CMP node for each pair, joined. */
static br_code
compare(struct parser *p, jj_node **out)
{
    jj_node *left, *right, *pair;
    int op;

    BR_TRY(sum(p, &left));
    *out = left;
    for (int n = 0; (op = compare_op(p)) >= 0; n++) {
        BR_TRY(sum(p, &right));
        BR_TRY(make(p, &pair, JN_CMP, 2, (jj_node *[]){left, right}));
        pair->op = (uint8_t)op;
        if (n == 0)
            *out = pair;
        else
            BR_TRY(make(p, out, JN_AND, 2, (jj_node *[]){*out, pair}));
        left = right;
        if (n > 1000)
            return fail(p, "more than 1000 comparisons in a row");
    }
    return BR_OK;
}

static br_code
negation(struct parser *p, jj_node **out)
{
    jj_node *x;

    if (!take_name(p, "not"))
        return compare(p, out);
    BR_TRY(deeper(p));
    BR_TRY(negation(p, &x));
    p->depth--;
    return make(p, out, JN_NOT, 1, &x);
}

static br_code
logic(struct parser *p, jj_node **out, const char *word)
{
    const bool both = word[0] == 'a';
    jj_node *b;

    BR_TRY(both ? negation(p, out) : logic(p, out, "and"));
    while (take_name(p, word)) {
        BR_TRY(both ? negation(p, &b) : logic(p, &b, "and"));
        BR_TRY(make(p, out, both ? JN_AND : JN_OR, 2, (jj_node *[]){*out, b}));
    }
    return BR_OK;
}

static br_code
expr(struct parser *p, jj_node **out)
{
    BR_TRY(deeper(p));
    BR_TRY(logic(p, out, "or"));
    while (take_name(p, "if")) {
        jj_node *part[3] = {*out, NULL, NULL};
        BR_TRY(logic(p, &part[1], "or"));
        if (take_name(p, "else"))
            BR_TRY(expr(p, &part[2]));
        BR_TRY(make(p, out, JN_COND, 3, part));
    }
    p->depth--;
    return BR_OK;
}

/* expr [, expr]*: a tuple when there is a comma */
static br_code
expr_or_tuple(struct parser *p, jj_node **out)
{
    nodes list = {0};
    jj_node *x;
    br_code rc = expr(p, out);

    if (rc != BR_OK || !is_op(p, ","))
        return rc;
    if (!br_vec_push(&list, *out))
        rc = oom(p);
    while (rc == BR_OK && take_op(p, ",") && p->p->kind != JT_TAG_CLOSE &&
           p->p->kind != JT_OUT_CLOSE) {
        rc = expr(p, &x);
        if (rc == BR_OK && !br_vec_push(&list, x))
            rc = oom(p);
    }
    if (rc == BR_OK)
        rc = make(p, out, JN_TUPLE, list.n, list.at);
    br_vec_fini(&list);
    return rc;
}

/* ---- statements --------------------------------------------------------- */

static br_code
close_tag(struct parser *p)
{
    if (p->p->kind != JT_TAG_CLOSE)
        return fail(p, "expected the end of the tag");
    p->p++;
    return BR_OK;
}

/* "endfor %}" after "{%" was taken by body() */
static br_code
end_word(struct parser *p, const char *word)
{
    if (!take_name(p, word))
        return br_fail(p->st, BR_E_FORMAT, "line %u: expected '%s'", p->p->line,
                       word);
    return close_tag(p);
}

static br_code
if_tag(struct parser *p, jj_node **out)
{
    static const char *const ends[] = {"elif", "else", "endif", NULL};
    static const char *const last[] = {"endif", NULL};
    jj_node *part[3] = {NULL, NULL, NULL};

    BR_TRY(deeper(p));
    BR_TRY(expr_or_tuple(p, &part[0]));
    BR_TRY(close_tag(p));
    BR_TRY(body(p, &part[1], ends));
    if (take_name(p, "elif")) {
        BR_TRY(if_tag(p, &part[2]));
    } else if (take_name(p, "else")) {
        BR_TRY(close_tag(p));
        BR_TRY(body(p, &part[2], last));
        BR_TRY(end_word(p, "endif"));
    } else {
        BR_TRY(end_word(p, "endif"));
    }
    p->depth--;
    return make(p, out, JN_IF, 3, part);
}

/* a name, or names in a tuple: what a for assigns to */
static br_code
target(struct parser *p, jj_node **out)
{
    nodes list = {0};
    jj_node *x;
    bool paren_open = take_op(p, "("), comma = false;
    br_code rc = BR_OK;

    do {
        if (list.n && (is_op(p, ")") || is_name(p, "in")))
            break;
        rc = node(p, &x, JN_NAME);
        if (rc == BR_OK)
            rc = need_name(p, &x->text);
        if (rc == BR_OK && !br_vec_push(&list, x))
            rc = oom(p);
        comma = is_op(p, ",");
    } while (rc == BR_OK && take_op(p, ","));
    if (rc == BR_OK && paren_open)
        rc = need_op(p, ")");
    if (rc == BR_OK && list.n == 1 && !comma)
        *out = list.at[0];
    else if (rc == BR_OK)
        rc = make(p, out, JN_TUPLE, list.n, list.at);
    br_vec_fini(&list);
    return rc;
}

static br_code
for_tag(struct parser *p, jj_node **out)
{
    static const char *const ends[] = {"else", "endfor", NULL};
    static const char *const last[] = {"endfor", NULL};
    jj_node *part[5] = {NULL, NULL, NULL, NULL, NULL};

    BR_TRY(target(p, &part[0]));
    if (!take_name(p, "in"))
        return fail(p, "expected 'in'");
    BR_TRY(logic(p, &part[1], "or")); /* "if" here is the loop's filter */
    if (take_name(p, "if"))
        BR_TRY(expr(p, &part[2]));
    if (is_name(p, "recursive"))
        return fail(p, "recursive loops are not supported");
    BR_TRY(close_tag(p));
    BR_TRY(body(p, &part[3], ends));
    if (take_name(p, "else")) {
        BR_TRY(close_tag(p));
        BR_TRY(body(p, &part[4], last));
    }
    BR_TRY(end_word(p, "endfor"));
    return make(p, out, JN_FOR, 5, part);
}

/* {% set a = e %}, {% set a, b = e %}, {% set ns.a = e %}, {% set a %}..  */
static br_code
set_tag(struct parser *p, jj_node **out)
{
    static const char *const ends[] = {"endset", NULL};
    jj_node *part[3] = {NULL, NULL, NULL};

    if (p->p->kind == JT_NAME && p->p[1].kind == JT_OP &&
        (br_text_is(p->p[1].text, ".") || br_text_is(p->p[1].text, "[")))
        BR_TRY(postfix(p, &part[0], false));
    else
        BR_TRY(target(p, &part[0]));
    if (take_op(p, "=")) {
        BR_TRY(expr_or_tuple(p, &part[1]));
        BR_TRY(close_tag(p));
        return make(p, out, JN_SET, 2, part);
    }
    if (take_op(p, "|")) {
        BR_TRY(constant(p, &part[2], jj_none())); /* base: put in later */
        do
            BR_TRY(filter(p, &part[2]));
        while (take_op(p, "|"));
    }
    BR_TRY(close_tag(p));
    BR_TRY(body(p, &part[1], ends));
    BR_TRY(end_word(p, "endset"));
    return make(p, out, JN_SET_BLOCK, 3, part);
}

/* (a, b=1): names and their defaults */
static br_code
parameters(struct parser *p, nodes *names, nodes *defaults)
{
    jj_node *x, *d;

    BR_TRY(need_op(p, "("));
    while (!is_op(p, ")")) {
        BR_TRY(node(p, &x, JN_NAME));
        BR_TRY(need_name(p, &x->text));
        d = NULL;
        if (take_op(p, "="))
            BR_TRY(expr(p, &d));
        if (!br_vec_push(names, x) || !br_vec_push(defaults, d))
            return oom(p);
        if (!take_op(p, ","))
            break;
    }
    return need_op(p, ")");
}

static br_code
macro_body(struct parser *p, jj_node *n, const char *end)
{
    const char *const ends[] = {end, NULL};
    nodes names = {0}, defaults = {0};
    jj_node *b = NULL;
    br_code rc = BR_OK;

    if (is_op(p, "("))
        rc = parameters(p, &names, &defaults);
    n->n_pos = (uint16_t)names.n;
    if (rc == BR_OK && names.n > 1000)
        rc = fail(p, "more than 1000 parameters");
    for (size_t i = 0; rc == BR_OK && i < n->n_pos; i++)
        if (!br_vec_push(&names, defaults.at[i]))
            rc = oom(p);
    if (rc == BR_OK && n->kind == JN_CALL_BLOCK)
        rc = expr(p, &n->kid[0]);
    if (rc == BR_OK)
        rc = close_tag(p);
    if (rc == BR_OK)
        rc = body(p, &b, ends);
    if (rc == BR_OK)
        rc = end_word(p, end);
    if (rc == BR_OK && !br_vec_push(&names, b))
        rc = oom(p);
    if (rc == BR_OK)
        rc = set_kids(p, n, names.at, names.n);
    br_vec_fini(&names);
    br_vec_fini(&defaults);
    return rc;
}

static br_code
macro_tag(struct parser *p, jj_node **out)
{
    BR_TRY(node(p, out, JN_MACRO));
    BR_TRY(need_name(p, &(*out)->text));
    return macro_body(p, *out, "endmacro");
}

/* {% call(a) f(x) %}..{% endcall %}: the body becomes the macro `caller` */
static br_code
call_tag(struct parser *p, jj_node **out)
{
    jj_node *m, *fn[1] = {NULL};

    BR_TRY(node(p, &m, JN_CALL_BLOCK));
    m->kid = fn;
    m->text = BR_TEXT("caller");
    BR_TRY(macro_body(p, m, "endcall"));
    m->kind = JN_MACRO;
    if (fn[0]->kind != JN_CALL)
        return fail(p, "'call' needs a call");
    return make(p, out, JN_CALL_BLOCK, 2, (jj_node *[]){fn[0], m});
}

static br_code
filter_tag(struct parser *p, jj_node **out)
{
    static const char *const ends[] = {"endfilter", NULL};
    jj_node *part[2];

    BR_TRY(constant(p, &part[0], jj_none()));
    do
        BR_TRY(filter(p, &part[0]));
    while (take_op(p, "|"));
    BR_TRY(close_tag(p));
    BR_TRY(body(p, &part[1], ends));
    BR_TRY(end_word(p, "endfilter"));
    return make(p, out, JN_FILTER_BLOCK, 2, part);
}

/* {% generation %} marks what the assistant says, for training: its body. */
static br_code
plain_block(struct parser *p, jj_node **out, const char *end)
{
    const char *const ends[] = {end, NULL};

    BR_TRY(close_tag(p));
    BR_TRY(body(p, out, ends));
    return end_word(p, end);
}

static br_code
statement(struct parser *p, jj_node **out)
{
    bool stop = is_name(p, "break");

    if (take_name(p, "if"))
        return if_tag(p, out);
    if (take_name(p, "for"))
        return for_tag(p, out);
    if (take_name(p, "set"))
        return set_tag(p, out);
    if (take_name(p, "macro"))
        return macro_tag(p, out);
    if (take_name(p, "call"))
        return call_tag(p, out);
    if (take_name(p, "filter"))
        return filter_tag(p, out);
    if (take_name(p, "generation"))
        return plain_block(p, out, "endgeneration");
    if (stop || is_name(p, "continue")) {
        p->p++;
        BR_TRY(node(p, out, stop ? JN_BREAK : JN_CONTINUE));
        return close_tag(p);
    }
    return br_fail(p->st, BR_E_FORMAT, "line %u: no such tag '%.*s'",
                   p->p->line, (int)BR_MIN(p->p->text.n, (size_t)40),
                   p->p->text.p);
}

static bool
at_end(const struct parser *p, const char *const *ends)
{
    for (; ends && *ends; ends++)
        if (is_name(p, *ends))
            return true;
    return false;
}

/* Up to a tag that is in ends (its "{%" taken), or to the end of all. */
static br_code
pieces(struct parser *p, nodes *list, const char *const *ends)
{
    for (;;) {
        jj_node *n = NULL;
        switch (p->p->kind) {
        case JT_END:
            return ends ? br_fail(p->st, BR_E_FORMAT,
                                  "line %u: the template ends without '%s'",
                                  p->p->line, ends[0])
                        : BR_OK;
        case JT_TEXT:
            BR_TRY(node(p, &n, JN_TEXT));
            n->text = p->p->text;
            p->p++;
            break;
        case JT_OUT_OPEN:
            p->p++;
            BR_TRY(expr_or_tuple(p, &n));
            BR_TRY(make(p, &n, JN_OUT, 1, &n));
            if (p->p->kind != JT_OUT_CLOSE)
                return fail(p, "expected '}}'");
            p->p++;
            break;
        default: /* JT_TAG_OPEN: nothing else can stand here */
            p->p++;
            if (at_end(p, ends))
                return BR_OK;
            BR_TRY(statement(p, &n));
            break;
        }
        if (!br_vec_push(list, n))
            return oom(p);
    }
}

static br_code
body(struct parser *p, jj_node **out, const char *const *ends)
{
    nodes list = {0};
    br_code rc = deeper(p);

    if (rc == BR_OK)
        rc = pieces(p, &list, ends);
    if (rc == BR_OK)
        rc = make(p, out, JN_BODY, list.n, list.at);
    br_vec_fini(&list);
    p->depth--;
    return rc;
}

br_code
jj_parse(br_jinja *t, const jj_tokens *toks, br_status *st)
{
    struct parser p = {.t = t, .st = st, .p = toks->at};

    return body(&p, &t->root, NULL);
}

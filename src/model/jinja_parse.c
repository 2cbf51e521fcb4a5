/* jinja_parse.c - tokens to the tree of a template.
 *
 *   body   := (TEXT | {{ expr }} | {% statement %})*
 *
 * Expressions: jinja_expr.c.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/jinja_parse.h"

#include <string.h>

static br_code body(jj_parser *p, jj_node **out, const char *const *ends);

/* ---- statements --------------------------------------------------------- */

static br_code
close_tag(jj_parser *p)
{
    if (p->p->kind != JT_TAG_CLOSE)
        return jp_fail(p, "expected the end of the tag");
    p->p++;
    return BR_OK;
}

/* "endfor %}" after "{%" was taken by body() */
static br_code
end_word(jj_parser *p, const char *word)
{
    if (!jp_take_name(p, word))
        return br_fail(p->st, BR_E_FORMAT, "line %u: expected '%s'", p->p->line,
                       word);
    return close_tag(p);
}

static br_code
if_tag(jj_parser *p, jj_node **out)
{
    static const char *const ends[] = {"elif", "else", "endif", NULL};
    static const char *const last[] = {"endif", NULL};
    jj_node *part[3] = {NULL, NULL, NULL};

    BR_TRY(jp_deeper(p));
    BR_TRY(jp_expr_or_tuple(p, &part[0]));
    BR_TRY(close_tag(p));
    BR_TRY(body(p, &part[1], ends));
    if (jp_take_name(p, "elif")) {
        BR_TRY(if_tag(p, &part[2]));
    } else if (jp_take_name(p, "else")) {
        BR_TRY(close_tag(p));
        BR_TRY(body(p, &part[2], last));
        BR_TRY(end_word(p, "endif"));
    } else {
        BR_TRY(end_word(p, "endif"));
    }
    p->depth--;
    return jp_make(p, out, JN_IF, 3, part);
}

/* a name, or names in a tuple: what a for assigns to; a tuple may hold more */
static br_code
target(jj_parser *p, jj_node **out)
{
    jj_nodes list = {0};
    jj_node *x;
    bool paren_open = jp_take_op(p, "("), comma = false;
    br_code rc = jp_deeper(p);

    do {
        if (rc != BR_OK ||
            (list.n && (jp_is_op(p, ")") || jp_is_name(p, "in"))))
            break;
        if (jp_is_op(p, "("))
            rc = target(p, &x);
        else if ((rc = jp_node(p, &x, JN_NAME)) == BR_OK)
            rc = jp_need_name(p, &x->text);
        if (rc == BR_OK && !br_vec_push(&list, x))
            rc = jp_oom(p);
        comma = jp_is_op(p, ",");
    } while (rc == BR_OK && jp_take_op(p, ","));
    if (rc == BR_OK && paren_open)
        rc = jp_need_op(p, ")");
    if (rc == BR_OK && list.n == 1 && !comma)
        *out = list.at[0];
    else if (rc == BR_OK)
        rc = jp_make(p, out, JN_TUPLE, list.n, list.at);
    br_vec_fini(&list);
    p->depth--;
    return rc;
}

static br_code
for_tag(jj_parser *p, jj_node **out)
{
    static const char *const ends[] = {"else", "endfor", NULL};
    static const char *const last[] = {"endfor", NULL};
    jj_node *part[5] = {NULL, NULL, NULL, NULL, NULL};
    bool recursive;

    BR_TRY(target(p, &part[0]));
    if (!jp_take_name(p, "in"))
        return jp_fail(p, "expected 'in'");
    BR_TRY(jp_logic(p, &part[1], "or")); /* "if" here is the loop's filter */
    if (jp_take_name(p, "if"))
        BR_TRY(jp_expr(p, &part[2]));
    recursive = jp_take_name(p, "recursive");
    BR_TRY(close_tag(p));
    BR_TRY(body(p, &part[3], ends));
    if (jp_take_name(p, "else")) {
        BR_TRY(close_tag(p));
        BR_TRY(body(p, &part[4], last));
    }
    BR_TRY(end_word(p, "endfor"));
    BR_TRY(jp_make(p, out, JN_FOR, 5, part));
    (*out)->op = recursive;
    return BR_OK;
}

/* {% set a = e %}, {% set a, b = e %}, {% set ns.a = e %}, {% set a %}..  */
static br_code
set_tag(jj_parser *p, jj_node **out)
{
    static const char *const ends[] = {"endset", NULL};
    jj_node *part[3] = {NULL, NULL, NULL};

    if (p->p->kind == JT_NAME && p->p[1].kind == JT_OP &&
        (br_text_is(p->p[1].text, ".") || br_text_is(p->p[1].text, "[")))
        BR_TRY(jp_postfix(p, &part[0], false));
    else
        BR_TRY(target(p, &part[0]));
    if (jp_take_op(p, "=")) {
        BR_TRY(jp_expr_or_tuple(p, &part[1]));
        BR_TRY(close_tag(p));
        return jp_make(p, out, JN_SET, 2, part);
    }
    if (jp_take_op(p, "|")) {
        BR_TRY(jp_constant(p, &part[2], jj_none())); /* base: put in later */
        do
            BR_TRY(jp_filter(p, &part[2]));
        while (jp_take_op(p, "|"));
    }
    BR_TRY(close_tag(p));
    BR_TRY(body(p, &part[1], ends));
    BR_TRY(end_word(p, "endset"));
    return jp_make(p, out, JN_SET_BLOCK, 3, part);
}

/* (a, b=1): names and their defaults */
static br_code
parameters(jj_parser *p, jj_nodes *names, jj_nodes *defaults)
{
    jj_node *x, *d;

    BR_TRY(jp_need_op(p, "("));
    while (!jp_is_op(p, ")")) {
        BR_TRY(jp_node(p, &x, JN_NAME));
        BR_TRY(jp_need_name(p, &x->text));
        d = NULL;
        if (jp_take_op(p, "="))
            BR_TRY(jp_expr(p, &d));
        if (!br_vec_push(names, x) || !br_vec_push(defaults, d))
            return jp_oom(p);
        if (!jp_take_op(p, ","))
            break;
    }
    return jp_need_op(p, ")");
}

static br_code
macro_body(jj_parser *p, jj_node *n, const char *end)
{
    const char *const ends[] = {end, NULL};
    jj_nodes names = {0}, defaults = {0};
    uint8_t outer = p->rest;
    jj_node *b = NULL;
    br_code rc = BR_OK;

    if (jp_is_op(p, "("))
        rc = parameters(p, &names, &defaults);
    n->n_pos = (uint16_t)names.n;
    if (rc == BR_OK && names.n > 1000)
        rc = jp_fail(p, "more than 1000 parameters");
    for (size_t i = 0; rc == BR_OK && i < n->n_pos; i++)
        if (!br_vec_push(&names, defaults.at[i]))
            rc = jp_oom(p);
    if (rc == BR_OK && n->kind == JN_CALL_BLOCK)
        rc = jp_expr(p, &n->kid[0]);
    if (rc == BR_OK)
        rc = close_tag(p);
    p->rest = 0;
    if (rc == BR_OK)
        rc = body(p, &b, ends);
    n->op = p->rest;
    p->rest |= outer; /* what a macro names, the one around it names, too */
    if (rc == BR_OK)
        rc = end_word(p, end);
    if (rc == BR_OK && !br_vec_push(&names, b))
        rc = jp_oom(p);
    if (rc == BR_OK)
        rc = jp_set_kids(p, n, names.at, names.n);
    br_vec_fini(&names);
    br_vec_fini(&defaults);
    return rc;
}

static br_code
macro_tag(jj_parser *p, jj_node **out)
{
    BR_TRY(jp_node(p, out, JN_MACRO));
    BR_TRY(jp_need_name(p, &(*out)->text));
    return macro_body(p, *out, "endmacro");
}

/* {% call(a) f(x) %}..{% endcall %}: the body becomes the macro `caller` */
static br_code
call_tag(jj_parser *p, jj_node **out)
{
    jj_node *m, *fn[1] = {NULL};

    BR_TRY(jp_node(p, &m, JN_CALL_BLOCK));
    m->kid = fn;
    m->text = BR_TEXT("caller");
    BR_TRY(macro_body(p, m, "endcall"));
    m->kind = JN_MACRO;
    if (fn[0]->kind != JN_CALL)
        return jp_fail(p, "'call' needs a call");
    return jp_make(p, out, JN_CALL_BLOCK, 2, (jj_node *[]){fn[0], m});
}

static br_code
filter_tag(jj_parser *p, jj_node **out)
{
    static const char *const ends[] = {"endfilter", NULL};
    jj_node *part[2];

    BR_TRY(jp_constant(p, &part[0], jj_none()));
    do
        BR_TRY(jp_filter(p, &part[0]));
    while (jp_take_op(p, "|"));
    BR_TRY(close_tag(p));
    BR_TRY(body(p, &part[1], ends));
    BR_TRY(end_word(p, "endfilter"));
    return jp_make(p, out, JN_FILTER_BLOCK, 2, part);
}

/* {% generation %} marks what the assistant says, for training: its body. */
static br_code
plain_block(jj_parser *p, jj_node **out, const char *end)
{
    const char *const ends[] = {end, NULL};

    BR_TRY(close_tag(p));
    BR_TRY(body(p, out, ends));
    return end_word(p, end);
}

/* {% with a = 1, b = 2 %}: names for its body alone */
static br_code
with_tag(jj_parser *p, jj_node **out)
{
    jj_nodes list = {0};
    jj_node *x = NULL;
    br_code rc = BR_OK;

    while (rc == BR_OK && p->p->kind != JT_TAG_CLOSE) {
        if (list.n)
            rc = jp_need_op(p, ",");
        if (rc == BR_OK)
            rc = target(p, &x);
        if (rc == BR_OK && !br_vec_push(&list, x))
            rc = jp_oom(p);
        if (rc == BR_OK)
            rc = jp_need_op(p, "=");
        if (rc == BR_OK)
            rc = jp_expr(p, &x);
        if (rc == BR_OK && !br_vec_push(&list, x))
            rc = jp_oom(p);
    }
    if (rc == BR_OK)
        rc = plain_block(p, &x, "endwith");
    if (rc == BR_OK && !br_vec_push(&list, x))
        rc = jp_oom(p);
    if (rc == BR_OK)
        rc = jp_make(p, out, JN_WITH, list.n, list.at);
    br_vec_fini(&list);
    return rc;
}

static br_code
statement(jj_parser *p, jj_node **out)
{
    bool stop = jp_is_name(p, "break");

    if (jp_take_name(p, "if"))
        return if_tag(p, out);
    if (jp_take_name(p, "for"))
        return for_tag(p, out);
    if (jp_take_name(p, "set"))
        return set_tag(p, out);
    if (jp_take_name(p, "with"))
        return with_tag(p, out);
    if (jp_take_name(p, "macro"))
        return macro_tag(p, out);
    if (jp_take_name(p, "call"))
        return call_tag(p, out);
    if (jp_take_name(p, "filter"))
        return filter_tag(p, out);
    if (jp_take_name(p, "generation"))
        return plain_block(p, out, "endgeneration");
    if (stop || jp_is_name(p, "continue")) {
        p->p++;
        BR_TRY(jp_node(p, out, stop ? JN_BREAK : JN_CONTINUE));
        return close_tag(p);
    }
    return br_fail(p->st, BR_E_FORMAT, "line %u: no such tag '%.*s'",
                   p->p->line, (int)BR_MIN(p->p->text.n, (size_t)40),
                   p->p->text.p);
}

static bool
at_end(const jj_parser *p, const char *const *ends)
{
    for (; ends && *ends; ends++)
        if (jp_is_name(p, *ends))
            return true;
    return false;
}

/* Of several that may come next, the one that has to come stands last. */
static br_code
unclosed(const jj_parser *p, const char *const *ends)
{
    while (ends[1])
        ends++;
    return br_fail(p->st, BR_E_FORMAT,
                   "line %u: the template ends without '%s'", p->p->line,
                   *ends);
}

/* Up to a tag that is in ends (its "{%" taken), or to the end of all. */
static br_code
pieces(jj_parser *p, jj_nodes *list, const char *const *ends)
{
    for (;;) {
        jj_node *n = NULL;
        switch (p->p->kind) {
        case JT_END: return ends ? unclosed(p, ends) : BR_OK;
        case JT_TEXT:
            BR_TRY(jp_node(p, &n, JN_TEXT));
            n->text = p->p->text;
            p->p++;
            break;
        case JT_OUT_OPEN:
            p->p++;
            BR_TRY(jp_expr_or_tuple(p, &n));
            BR_TRY(jp_make(p, &n, JN_OUT, 1, &n));
            if (p->p->kind != JT_OUT_CLOSE)
                return jp_fail(p, "expected '}}'");
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
            return jp_oom(p);
    }
}

static br_code
body(jj_parser *p, jj_node **out, const char *const *ends)
{
    jj_nodes list = {0};
    br_code rc = jp_deeper(p);

    if (rc == BR_OK)
        rc = pieces(p, &list, ends);
    if (rc == BR_OK)
        rc = jp_make(p, out, JN_BODY, list.n, list.at);
    br_vec_fini(&list);
    p->depth--;
    return rc;
}

br_code
jj_parse(br_jinja *t, const jj_tokens *toks, br_status *st)
{
    jj_parser p = {.t = t, .st = st, .p = toks->at};

    return body(&p, &t->root, NULL);
}

/* jinja_eval.c - walks the tree of a template and writes its text.
 *
 * Scopes: the bodies of loops, macros, set and filter blocks are scopes of their
 * own; if is not.
 * A macro sees the scope in which it was defined, as it is when called. What a
 * loop sets is gone after the iteration; namespace() objects are the way out.
 *
 * Every node costs a step, every nesting counts against the stack, every value
 * comes from an arena with a limit: a hostile template ends with an error.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/jinja_ast.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static br_code eval(jj_run *r, jj_scope *sc, const jj_node *n, jj_val *out);
static br_code exec(jj_run *r, jj_scope *sc, const jj_node *n, br_str *out);
static br_code run_loop(jj_run *r, jj_scope *sc, const jj_node *n,
                        const jj_val *over, int depth, br_str *out);

br_code
jj_err(jj_run *r, const char *fmt, ...)
{
    char text[400];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return br_fail(r->st, BR_E_FORMAT, "line %u: %s", r->line, text);
}

br_code
jj_oom(jj_run *r)
{
    if (r->arena.limit && r->arena.used > r->arena.limit / 2)
        return br_fail(r->st, BR_E_LIMIT,
                       "line %u: the template's values need more than %d bytes",
                       r->line, BR_JINJA_MAX_MEMORY_BYTES);
    return br_fail(r->st, BR_E_OOM, "rendering a template");
}

br_code
jj_within(jj_run *r)
{
    if (r->too_deep)
        return br_fail(r->st, BR_E_LIMIT,
                       "line %u: values nested deeper than %d are compared",
                       r->line, BR_JINJA_MAX_DEPTH);
    if (r->steps > BR_JINJA_MAX_STEPS)
        return br_fail(r->st, BR_E_LIMIT,
                       "line %u: the template runs for more than %d steps",
                       r->line, BR_JINJA_MAX_STEPS);
    return BR_OK;
}

static br_code
step(jj_run *r, const jj_node *n)
{
    r->line = n->line;
    r->steps++;
    return jj_within(r);
}

/* ---- scopes -------------------------------------------------------------- */

static jj_val *
find(jj_scope *sc, br_text name)
{
    for (; sc; sc = sc->parent)
        for (size_t i = 0; i < sc->n; i++)
            if (br_text_eq(sc->name[i], name))
                return &sc->val[i];
    return NULL;
}

static br_code
define(jj_run *r, jj_scope *sc, br_text name, jj_val v)
{
    for (size_t i = 0; i < sc->n; i++)
        if (br_text_eq(sc->name[i], name)) {
            sc->val[i] = v;
            return BR_OK;
        }
    if (sc->n == sc->cap) {
        size_t cap = sc->cap ? sc->cap * 2 : 8;
        br_text *names = br_arena_get(&r->arena, cap * sizeof *names);
        jj_val *vals = br_arena_get(&r->arena, cap * sizeof *vals);
        if (!names || !vals)
            return jj_oom(r);
        if (sc->n) {
            memcpy(names, sc->name, sc->n * sizeof *names);
            memcpy(vals, sc->val, sc->n * sizeof *vals);
        }
        sc->name = names;
        sc->val = vals;
        sc->cap = cap;
    }
    sc->name[sc->n] = name;
    sc->val[sc->n++] = v;
    return BR_OK;
}

static jj_scope *
child_scope(jj_run *r, jj_scope *parent)
{
    jj_scope *sc = br_arena_new(&r->arena, jj_scope, 1);

    if (sc)
        sc->parent = parent;
    return sc;
}

/* a = v, (a, b) = v, ns.a = v */
static br_code
assign(jj_run *r, jj_scope *sc, const jj_node *to, jj_val v)
{
    jj_list *l;
    jj_val obj;

    if (to->kind == JN_NAME)
        return define(r, sc, to->text, v);
    if (to->kind == JN_ATTR) {
        BR_TRY(eval(r, sc, to->kid[0], &obj));
        if (obj.type != JV_NS)
            return jj_err(r, "only members of a namespace() can be set");
        return jj_dict_set(r, obj.dict, jj_str(to->text), v);
    }
    if (to->kind != JN_TUPLE)
        return jj_err(r, "cannot assign to this");
    BR_TRY(jj_iterate(r, &v, &l));
    if (l->n != to->n_kid)
        return jj_err(r, "%zu values for %u names", l->n, to->n_kid);
    for (size_t i = 0; i < l->n; i++)
        BR_TRY(assign(r, sc, to->kid[i], l->at[i]));
    return BR_OK;
}

/* ---- calls -------------------------------------------------------------- */

static br_code
done(jj_run *r, br_str *s, jj_val *out)
{
    return s->oom ? jj_oom(r)
                  : jj_str_copy(r, (br_text){br_str_z(s), s->n}, out);
}

/* The text that a body writes, as a value. */
static br_code
capture(jj_run *r, jj_scope *sc, const jj_node *body, jj_val *out)
{
    br_str s = {0};
    br_code rc = exec(r, sc, body, &s);

    if (rc == BR_OK)
        rc = done(r, &s, out);
    br_str_fini(&s);
    return rc;
}

/* The same of a block: what it sets is gone behind it. */
static br_code
capture_block(jj_run *r, jj_scope *sc, const jj_node *body, jj_val *out)
{
    jj_scope *inner = child_scope(r, sc);

    return inner ? capture(r, inner, body, out) : jj_oom(r);
}

static br_code
bind(jj_run *r, jj_scope *sc, const jj_node *m, const jj_args *a)
{
    bool more = (m->op & JM_VARARGS) != 0, any = (m->op & JM_KWARGS) != 0;
    jj_val varargs, kwargs;

    if (a->n_pos > m->n_pos && !more)
        return jj_err(r, "macro '%.*s' takes %u arguments, got %zu",
                      (int)m->text.n, m->text.p, m->n_pos, a->n_pos);
    BR_TRY(jj_list_new(r, JV_TUPLE, &varargs));
    BR_TRY(jj_dict_new(r, JV_DICT, &kwargs));
    for (size_t k = 0; k < a->n_kw; k++) {
        size_t i = BR_MIN(a->n_pos, m->n_pos);
        while (i < m->n_pos && !br_text_eq(a->key[k], m->kid[i]->text))
            i++;
        if (i == m->n_pos && !any)
            return jj_err(r, "macro '%.*s' has no parameter '%.*s' left",
                          (int)m->text.n, m->text.p, (int)a->key[k].n,
                          a->key[k].p);
        if (i == m->n_pos)
            BR_TRY(jj_dict_set(r, kwargs.dict, jj_str(a->key[k]), a->kw[k]));
    }
    for (size_t i = m->n_pos; i < a->n_pos; i++)
        BR_TRY(jj_push(r, varargs.list, a->pos[i]));
    if (more)
        BR_TRY(define(r, sc, BR_TEXT("varargs"), varargs));
    if (any)
        BR_TRY(define(r, sc, BR_TEXT("kwargs"), kwargs));
    for (size_t i = 0; i < m->n_pos; i++) {
        br_text name = m->kid[i]->text;
        const jj_node *def = m->kid[m->n_pos + i];
        jj_val v = jj_undef(name);
        bool given = i < a->n_pos;
        if (given)
            v = a->pos[i];
        for (size_t k = 0; !given && k < a->n_kw; k++)
            if (br_text_eq(a->key[k], name)) {
                v = a->kw[k];
                given = true;
            }
        if (!given && def)
            BR_TRY(eval(r, sc, def, &v));
        BR_TRY(define(r, sc, name, v));
    }
    return BR_OK;
}

static br_code
call_deeper(jj_run *r)
{
    if (++r->calls > BR_JINJA_MAX_CALLS)
        return br_fail(r->st, BR_E_LIMIT,
                       "line %u: macros call each other, or loops themselves, "
                       "more than %d deep",
                       r->line, BR_JINJA_MAX_CALLS);
    return BR_OK;
}

static br_code
call_macro(jj_run *r, const jj_macro *m, const jj_args *a, jj_val *out)
{
    jj_scope *sc = child_scope(r, m->scope);
    uint32_t line = r->line;
    br_code rc;

    if (!sc)
        return jj_oom(r);
    BR_TRY(call_deeper(r));
    rc = bind(r, sc, m->node, a);
    if (rc == BR_OK)
        rc = capture(r, sc, m->node->kid[m->node->n_kid - 1], out);
    r->breaking = r->continuing = false;
    r->calls--;
    r->line = line;
    return rc;
}

/* loop(x): the whole for again, one deeper, over x. Gives its text. */
static br_code
call_loop(jj_run *r, const jj_loop *l, const jj_args *a, jj_val *out)
{
    uint32_t line = r->line;
    br_str s = {0};
    br_code rc;

    if (!l->node->op)
        return jj_err(r, "only the loop of a 'recursive' for can be called");
    if (a->n_pos != 1 || a->n_kw)
        return jj_err(r, "'loop' takes what to loop over");
    BR_TRY(call_deeper(r));
    rc = run_loop(r, l->scope, l->node, &a->pos[0], l->depth + 1, &s);
    if (rc == BR_OK)
        rc = done(r, &s, out);
    br_str_fini(&s);
    r->calls--;
    r->line = line;
    return rc;
}

br_code
jj_call(jj_run *r, const jj_val *fn, const jj_args *a, jj_val *out)
{
    switch ((jj_type)fn->type) {
    case JV_MACRO: return call_macro(r, fn->macro, a, out);
    case JV_LOOP: return call_loop(r, fn->loop, a, out);
    case JV_RING: return jj_ring_call(r, fn->ring, a, out);
    case JV_FN: return jj_global_call(r, (int)fn->i, a, out);
    case JV_METHOD:
        return jj_method_call(r, fn->method->row, &fn->method->self, a, out);
    case JV_UNDEF: return jj_err(r, "'%.*s' is undefined", (int)fn->n, fn->s);
    default: return jj_err(r, "%s cannot be called", jj_type_name(fn));
    }
}

/* Adds what * and ** stand before: rest, as many of them as op says. */
static br_code
spread(jj_run *r, const jj_node *n, const jj_val *rest, jj_args *a)
{
    jj_list none = {0}, *l = &none;
    jj_dict no = {0}, *d = &no;
    jj_val *v;
    br_text *key;

    if (n->op & JM_VARARGS)
        BR_TRY(jj_iterate(r, rest++, &l));
    if (n->op & JM_KWARGS) {
        if (rest->type != JV_DICT)
            return jj_err(r, "'**' needs a dict, not %s", jj_type_name(rest));
        d = rest->dict;
    }
    r->steps += l->n + d->n;
    v = br_arena_new(&r->arena, jj_val, a->n_pos + l->n + a->n_kw + d->n + 1);
    key = br_arena_new(&r->arena, br_text, a->n_kw + d->n + 1);
    if (!v || !key)
        return jj_oom(r);
    for (size_t i = 0; i < a->n_pos + l->n; i++)
        v[i] = i < a->n_pos ? a->pos[i] : l->at[i - a->n_pos];
    a->pos = v;
    v += a->n_pos += l->n;
    for (size_t i = 0; i < a->n_kw + d->n; i++) {
        const jj_val *name = i < a->n_kw ? NULL : &d->key[i - a->n_kw];

        if (name && name->type != JV_STR)
            return jj_err(r, "'**': a key that is %s", jj_type_name(name));
        key[i] = name ? jj_text(name) : a->key[i];
        v[i] = name ? d->val[i - a->n_kw] : a->kw[i];
    }
    a->key = key;
    a->kw = v;
    a->n_kw += d->n;
    return BR_OK;
}

/* Evaluates the arguments of a call-like node; the base is kid[0]. */
static br_code
eval_args(jj_run *r, jj_scope *sc, const jj_node *n, jj_args *a)
{
    jj_val *v = br_arena_new(&r->arena, jj_val, n->n_kid);

    if (!v)
        return jj_oom(r);
    for (uint32_t i = 1; i < n->n_kid; i++)
        BR_TRY(eval(r, sc, n->kid[i], &v[i]));
    *a = (jj_args){.pos = v + 1,
                   .n_pos = n->n_pos,
                   .key = n->key,
                   .kw = v + 1 + n->n_pos,
                   .n_kw = n->n_key};
    r->line = n->line;
    return n->op ? spread(r, n, a->kw + a->n_kw, a) : BR_OK;
}

/* ---- expressions -------------------------------------------------------- */

static br_code
eval_name(jj_run *r, jj_scope *sc, const jj_node *n, jj_val *out)
{
    const jj_val *v = find(sc, n->text);
    int row;

    (void)r;
    if (v) {
        *out = *v;
        return BR_OK;
    }
    row = jj_global_find(n->text);
    *out = row >= 0 ? (jj_val){.type = JV_FN, .i = row} : jj_undef(n->text);
    return BR_OK;
}

static br_code
eval_seq(jj_run *r, jj_scope *sc, const jj_node *n, jj_val *out)
{
    jj_val v, k;

    if (n->kind == JN_DICT) {
        BR_TRY(jj_dict_new(r, JV_DICT, out));
        for (uint32_t i = 0; i + 1 < n->n_kid; i += 2) {
            BR_TRY(eval(r, sc, n->kid[i], &k));
            BR_TRY(eval(r, sc, n->kid[i + 1], &v));
            BR_TRY(jj_dict_set(r, out->dict, k, v));
        }
        return BR_OK;
    }
    BR_TRY(jj_list_new(r, n->kind == JN_TUPLE ? JV_TUPLE : JV_LIST, out));
    for (uint32_t i = 0; i < n->n_kid; i++) {
        BR_TRY(eval(r, sc, n->kid[i], &v));
        BR_TRY(jj_push(r, out->list, v));
    }
    return BR_OK;
}

static br_code
eval_cmp(jj_run *r, jj_scope *sc, const jj_node *n, jj_val *out)
{
    jj_val a, b;
    bool yes = false;
    int c = 0;

    BR_TRY(eval(r, sc, n->kid[0], &a));
    BR_TRY(eval(r, sc, n->kid[1], &b));
    r->line = n->line;
    if (n->op == JO_EQ || n->op == JO_NE) {
        yes = jj_equal(r, &a, &b) == (n->op == JO_EQ);
    } else if (n->op == JO_IN || n->op == JO_NOT_IN) {
        BR_TRY(jj_contains(r, &b, &a, &yes));
        yes = yes == (n->op == JO_IN);
    } else {
        BR_TRY(jj_compare(r, &a, &b, &c));
        yes = n->op == JO_LT   ? c < 0
              : n->op == JO_LE ? c <= 0
              : n->op == JO_GT ? c > 0
                               : c >= 0;
    }
    *out = jj_bool(yes);
    return BR_OK;
}

/* A bound of a slice, clipped to [low, high] as Python does. */
static br_code
bound(jj_run *r, jj_scope *sc, const jj_node *n, int64_t len, int64_t def,
      int64_t low, int64_t high, int64_t *out)
{
    jj_val v;

    *out = def;
    if (!n)
        return BR_OK;
    BR_TRY(eval(r, sc, n, &v));
    if (v.type == JV_NONE)
        return BR_OK;
    if (v.type != JV_INT)
        return jj_err(r, "a slice needs integers, not %s", jj_type_name(&v));
    *out = BR_MIN(BR_MAX(v.i < 0 ? v.i + len : v.i, low), high);
    return BR_OK;
}

static br_code
eval_slice(jj_run *r, jj_scope *sc, const jj_node *n, jj_val *out)
{
    int64_t len, from, to, by = 1;
    jj_val base, v;
    jj_list *l;

    BR_TRY(eval(r, sc, n->kid[0], &base));
    if (n->kid[3]) {
        BR_TRY(eval(r, sc, n->kid[3], &v));
        if (v.type == JV_INT)
            by = v.i;
        if (by == 0)
            return jj_err(r, "a slice with step 0");
    }
    if (base.type == JV_UNDEF)
        return jj_err(r, "'%.*s' is undefined", (int)base.n, base.s);
    BR_TRY(jj_iterate(r, &base, &l));
    len = (int64_t)l->n;
    BR_TRY(bound(r, sc, n->kid[1], len, by > 0 ? 0 : len - 1, by > 0 ? 0 : -1,
                 by > 0 ? len : len - 1, &from));
    BR_TRY(bound(r, sc, n->kid[2], len, by > 0 ? len : -1, by > 0 ? 0 : -1,
                 by > 0 ? len : len - 1, &to));
    if (base.type == JV_STR && by == 1) {
        *out = jj_str(jj_utf8_sub(jj_text(&base), (size_t)from,
                                  (size_t)BR_MAX(from, to)));
        return BR_OK;
    }
    BR_TRY(jj_list_new(r, base.type == JV_TUPLE ? JV_TUPLE : JV_LIST, out));
    for (int64_t i = from; by > 0 ? i < to : i > to; i += by)
        BR_TRY(jj_push(r, out->list, l->at[i]));
    if (base.type == JV_STR) {
        br_str s = {0};
        br_code rc;
        for (size_t i = 0; i < out->list->n; i++)
            jj_put_str(&s, &out->list->at[i]);
        rc = s.oom ? jj_oom(r)
                   : jj_str_copy(r, (br_text){br_str_z(&s), s.n}, out);
        br_str_fini(&s);
        return rc;
    }
    return BR_OK;
}

static br_code
eval_unary(jj_run *r, jj_scope *sc, const jj_node *n, jj_val *out)
{
    jj_val zero = jj_int(0), v;

    BR_TRY(eval(r, sc, n->kid[0], &v));
    if (n->kind == JN_NOT) {
        *out = jj_bool(!jj_truth(&v));
        return BR_OK;
    }
    if (v.type == JV_FLOAT && n->kind == JN_NEG) {
        *out = jj_float(-v.f);
        return BR_OK;
    }
    return jj_binary(r, n->kind == JN_NEG ? JO_SUB : JO_ADD, &zero, &v, out);
}

/* and, or give the operand that decided, as Python does */
static br_code
eval_logic(jj_run *r, jj_scope *sc, const jj_node *n, jj_val *out)
{
    BR_TRY(eval(r, sc, n->kid[0], out));
    if (jj_truth(out) == (n->kind == JN_OR))
        return BR_OK;
    return eval(r, sc, n->kid[1], out);
}

static br_code
eval_test(jj_run *r, jj_scope *sc, const jj_node *n, jj_val *out)
{
    jj_val base;
    jj_args a;
    bool yes;

    BR_TRY(eval(r, sc, n->kid[0], &base));
    BR_TRY(eval_args(r, sc, n, &a));
    BR_TRY(jj_test_call(r, n->row, &base, &a, &yes));
    *out = jj_bool(yes != n->negate);
    return BR_OK;
}

static br_code
eval_deep(jj_run *r, jj_scope *sc, const jj_node *n, jj_val *out)
{
    jj_val a, b;
    jj_args args;

    switch ((jj_kind)n->kind) {
    case JN_CONST: *out = n->value; return BR_OK;
    case JN_NAME: return eval_name(r, sc, n, out);
    case JN_LIST:
    case JN_TUPLE:
    case JN_DICT: return eval_seq(r, sc, n, out);
    case JN_BIN:
        BR_TRY(eval(r, sc, n->kid[0], &a));
        BR_TRY(eval(r, sc, n->kid[1], &b));
        r->line = n->line;
        return jj_binary(r, n->op, &a, &b, out);
    case JN_NEG:
    case JN_POS:
    case JN_NOT: return eval_unary(r, sc, n, out);
    case JN_AND:
    case JN_OR: return eval_logic(r, sc, n, out);
    case JN_CMP: return eval_cmp(r, sc, n, out);
    case JN_COND:
        BR_TRY(eval(r, sc, n->kid[1], &a));
        if (jj_truth(&a))
            return eval(r, sc, n->kid[0], out);
        *out = jj_undef(BR_TEXT("else"));
        return n->kid[2] ? eval(r, sc, n->kid[2], out) : BR_OK;
    case JN_ATTR:
        BR_TRY(eval(r, sc, n->kid[0], &a));
        r->line = n->line;
        return jj_get_attr(r, &a, n->text, out);
    case JN_ITEM:
        BR_TRY(eval(r, sc, n->kid[0], &a));
        BR_TRY(eval(r, sc, n->kid[1], &b));
        r->line = n->line;
        return jj_get_item(r, &a, &b, out);
    case JN_SLICE: return eval_slice(r, sc, n, out);
    case JN_CALL:
        BR_TRY(eval(r, sc, n->kid[0], &a));
        BR_TRY(eval_args(r, sc, n, &args));
        return jj_call(r, &a, &args, out);
    case JN_FILTER:
        BR_TRY(eval(r, sc, n->kid[0], &a));
        BR_TRY(eval_args(r, sc, n, &args));
        return jj_filter_call(r, n->row, &a, &args, out);
    case JN_TEST: return eval_test(r, sc, n, out);
    default: br_unreachable("a statement is no expression");
    }
}

static br_code
eval(jj_run *r, jj_scope *sc, const jj_node *n, jj_val *out)
{
    br_code rc;

    BR_TRY(step(r, n));
    if (++r->depth > BR_JINJA_MAX_DEPTH * 8)
        return br_fail(r->st, BR_E_LIMIT, "line %u: nested too deep", r->line);
    rc = eval_deep(r, sc, n, out);
    r->depth--;
    return rc;
}

/* ---- statements --------------------------------------------------------- */

/* What a for runs over, less what its filter drops. */
static br_code
loop_items(jj_run *r, jj_scope *sc, const jj_node *n, const jj_val *over,
           jj_list **out)
{
    jj_val keep, kept;
    jj_scope *inner;
    jj_list *all;

    r->line = n->line;
    BR_TRY(jj_iterate(r, over, &all));
    *out = all;
    BR_TRY(jj_list_new(r, JV_LIST, &kept));
    for (size_t i = 0; i < all->n; i++) {
        if (n->kid[2]) {
            if (!(inner = child_scope(r, sc)))
                return jj_oom(r);
            BR_TRY(assign(r, inner, n->kid[0], all->at[i]));
            BR_TRY(eval(r, inner, n->kid[2], &keep));
            if (!jj_truth(&keep))
                continue;
        }
        BR_TRY(jj_push(r, kept.list, all->at[i]));
    }
    *out = kept.list; /* a copy: the body may append to what it runs over */
    return BR_OK;
}

static br_code
run_loop(jj_run *r, jj_scope *sc, const jj_node *n, const jj_val *over,
         int depth, br_str *out)
{
    jj_loop *loop = br_arena_new(&r->arena, jj_loop, 1);
    bool any = false; /* as Jinja2 has it: got to the end of its body once */
    jj_list *items;

    if (!loop)
        return jj_oom(r);
    BR_TRY(loop_items(r, sc, n, over, &items));
    *loop = (jj_loop){.items = items, .depth = depth, .node = n, .scope = sc};
    for (loop->i = 0; loop->i < items->n; loop->i++) {
        jj_scope *inner = child_scope(r, sc);
        if (!inner)
            return jj_oom(r);
        BR_TRY(define(r, inner, BR_TEXT("loop"),
                      (jj_val){.type = JV_LOOP, .loop = loop}));
        BR_TRY(assign(r, inner, n->kid[0], items->at[loop->i]));
        BR_TRY(exec(r, inner, n->kid[3], out));
        any |= !r->continuing && !r->breaking;
        r->continuing = false;
        if (r->breaking)
            break;
    }
    r->breaking = false;
    return any || !n->kid[4] ? BR_OK : exec(r, sc, n->kid[4], out);
}

/* Values are those of the scope around: with a = 1, b = a sees the outer a. */
static br_code
exec_with(jj_run *r, jj_scope *sc, const jj_node *n, br_str *out)
{
    jj_scope *inner = child_scope(r, sc);
    uint32_t i = 0;
    jj_val v;

    if (!inner)
        return jj_oom(r);
    for (; i + 1 < n->n_kid; i += 2) {
        BR_TRY(eval(r, sc, n->kid[i + 1], &v));
        BR_TRY(assign(r, inner, n->kid[i], v));
    }
    return exec(r, inner, n->kid[i], out);
}

/* The filters of {% filter %} and {% set x | f %}: innermost first. */
static br_code
chain(jj_run *r, jj_scope *sc, const jj_node *n, jj_val base, jj_val *out)
{
    jj_args a;

    if (n->kind == JN_CONST) {
        *out = base;
        return BR_OK;
    }
    BR_TRY(chain(r, sc, n->kid[0], base, &base));
    BR_TRY(eval_args(r, sc, n, &a));
    return jj_filter_call(r, n->row, &base, &a, out);
}

static br_code
put(jj_run *r, br_str *out, const jj_val *v)
{
    jj_put_str(out, v);
    if (out->oom)
        return jj_oom(r);
    if (out->n > BR_JINJA_MAX_OUTPUT_BYTES)
        return br_fail(r->st, BR_E_LIMIT,
                       "line %u: the text is longer than %d bytes", r->line,
                       BR_JINJA_MAX_OUTPUT_BYTES);
    return BR_OK;
}

static br_code
exec_macro(jj_run *r, jj_scope *sc, const jj_node *n, jj_val *out)
{
    jj_macro *m = br_arena_new(&r->arena, jj_macro, 1);

    if (!m)
        return jj_oom(r);
    *m = (jj_macro){n, sc};
    *out = (jj_val){.type = JV_MACRO, .macro = m};
    return BR_OK;
}

static br_code
exec_call_block(jj_run *r, jj_scope *sc, const jj_node *n, br_str *out)
{
    jj_scope *inner = child_scope(r, sc);
    jj_val caller, v;

    if (!inner)
        return jj_oom(r);
    BR_TRY(exec_macro(r, sc, n->kid[1], &caller));
    BR_TRY(define(r, inner, BR_TEXT("caller"), caller));
    BR_TRY(eval(r, inner, n->kid[0]->kid[0], &v));
    if (v.type == JV_MACRO) { /* the macro sees `caller` */
        jj_macro *m = br_arena_dup(&r->arena, v.macro, sizeof *m);
        jj_scope *seen = child_scope(r, v.macro->scope);
        jj_args a;
        if (!m || !seen)
            return jj_oom(r);
        BR_TRY(define(r, seen, BR_TEXT("caller"), caller));
        m->scope = seen;
        BR_TRY(eval_args(r, sc, n->kid[0], &a));
        BR_TRY(call_macro(r, m, &a, &v));
        return put(r, out, &v);
    }
    return jj_err(r, "'call' needs a macro");
}

static br_code
exec_deep(jj_run *r, jj_scope *sc, const jj_node *n, br_str *out)
{
    jj_val v;

    switch ((jj_kind)n->kind) {
    case JN_TEXT: v = jj_str(n->text); return put(r, out, &v);
    case JN_OUT: BR_TRY(eval(r, sc, n->kid[0], &v)); return put(r, out, &v);
    case JN_BODY:
        for (uint32_t i = 0; i < n->n_kid; i++) {
            BR_TRY(exec(r, sc, n->kid[i], out));
            if (r->breaking || r->continuing)
                break;
        }
        return BR_OK;
    case JN_IF:
        BR_TRY(eval(r, sc, n->kid[0], &v));
        if (jj_truth(&v))
            return exec(r, sc, n->kid[1], out);
        return n->kid[2] ? exec(r, sc, n->kid[2], out) : BR_OK;
    case JN_FOR:
        BR_TRY(eval(r, sc, n->kid[1], &v));
        return run_loop(r, sc, n, &v, 1, out);
    case JN_WITH: return exec_with(r, sc, n, out);
    case JN_SET:
        BR_TRY(eval(r, sc, n->kid[1], &v));
        return assign(r, sc, n->kid[0], v);
    case JN_SET_BLOCK:
        BR_TRY(capture_block(r, sc, n->kid[1], &v));
        if (n->kid[2])
            BR_TRY(chain(r, sc, n->kid[2], v, &v));
        return assign(r, sc, n->kid[0], v);
    case JN_FILTER_BLOCK:
        BR_TRY(capture_block(r, sc, n->kid[1], &v));
        BR_TRY(chain(r, sc, n->kid[0], v, &v));
        return put(r, out, &v);
    case JN_MACRO:
        BR_TRY(exec_macro(r, sc, n, &v));
        return define(r, sc, n->text, v);
    case JN_CALL_BLOCK: return exec_call_block(r, sc, n, out);
    case JN_BREAK: r->breaking = true; return BR_OK;
    case JN_CONTINUE: r->continuing = true; return BR_OK;
    default: br_unreachable("an expression is no statement");
    }
}

static br_code
exec(jj_run *r, jj_scope *sc, const jj_node *n, br_str *out)
{
    br_code rc;

    BR_TRY(step(r, n));
    if (++r->depth > BR_JINJA_MAX_DEPTH * 8)
        return br_fail(r->st, BR_E_LIMIT, "line %u: nested too deep", r->line);
    rc = exec_deep(r, sc, n, out);
    r->depth--;
    return rc;
}

/* ---- the door ----------------------------------------------------------- */

br_code
br_jinja_compile(br_jinja **out, const char *source, size_t n, br_status *st)
{
    br_jinja *t;
    jj_tokens toks;
    br_code rc;

    *out = NULL;
    if (n > BR_JINJA_MAX_SOURCE_BYTES)
        return br_fail(st, BR_E_LIMIT, "a template of %zu bytes: up to %d", n,
                       BR_JINJA_MAX_SOURCE_BYTES);
    t = br_try_calloc(1, sizeof *t);
    if (!t)
        return br_fail(st, BR_E_OOM, "template");
    br_arena_init(&t->arena, BR_JINJA_MAX_MEMORY_BYTES);
    rc = jj_lex(&toks, &t->arena, (br_text){source, n}, st);
    if (rc == BR_OK)
        rc = jj_parse(t, &toks, st);
    if (rc != BR_OK) {
        br_jinja_free(t);
        return rc;
    }
    *out = t;
    return BR_OK;
}

void
br_jinja_free(br_jinja *t)
{
    if (!t)
        return;
    br_arena_fini(&t->arena);
    br_free(t);
}

br_code
br_jinja_render(const br_jinja *t, const br_json *context, int64_t now,
                br_str *out, br_status *st)
{
    jj_run r = {.st = st, .now = now};
    jj_scope *globals, *top;
    jj_val v;
    br_code rc = BR_OK;

    if (!context || context->kind != BR_J_OBJ)
        return br_fail(st, BR_E_FORMAT, "the context must be an object");
    br_arena_init(&r.arena, BR_JINJA_MAX_MEMORY_BYTES);
    globals = child_scope(&r, NULL);
    top = globals ? child_scope(&r, globals) : NULL;
    if (!top)
        rc = jj_oom(&r);
    for (const br_json *c = context->child; rc == BR_OK && c; c = c->next) {
        rc = jj_from_json(&r, c, &v);
        if (rc == BR_OK)
            rc = define(&r, globals, (br_text){c->key, c->key_n}, v);
    }
    if (rc == BR_OK)
        rc = exec(&r, top, t->root, out);
    if (rc == BR_OK)
        rc = jj_within(&r);
    br_arena_fini(&r.arena);
    return rc;
}

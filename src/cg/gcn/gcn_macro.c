/* gcn_macro.c - macros and conditions of assembly, as LLVM has them.
 *
 *     .macro NAME a, b=0          \a \b in its lines; \@ counts the macros used
 *     .endm                       before this one: a label that is there once
 *         NAME 1, 2               arguments: between commas, without spaces
 *     .if A == B                  == != < > <= >=, or a number that is not 0;
 *     .else                       .amdgcn.gfx_generation_number is 11 or 12,
 *     .endif                      so that one text serves both
 *
 * A macro's lines with the arguments in them are kept until the end, for labels
 * point into them; an error in them has the place where the macro is used.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/gcn/gcn_asm.h"

#include <ctype.h>
#include <string.h>

enum {
    MAX_MACROS = 256,
    MAX_ARGS = 16,
};

static br_text
trimmed(const char *p, const char *end)
{
    while (p < end && isspace((unsigned char)*p))
        p++;
    while (end > p && isspace((unsigned char)end[-1]))
        end--;
    return (br_text){p, (size_t)(end - p)};
}

/* The piece up to a comma outside parentheses; moves *p behind it. */
static br_text
argument(const char **p, const char *end)
{
    const char *q = *p, *begin = q;
    int open = 0;

    for (; q < end && (*q != ',' || open > 0); q++)
        open += (*q == '(') - (*q == ')');
    *p = q < end ? q + 1 : q;
    return trimmed(begin, q);
}

/* ---- macros --------------------------------------------------------------- */

static const br_gcn_macro *
find(const br_gcn_asm *a, br_text name)
{
    for (size_t k = 0; k < a->macros.n; k++)
        if (br_text_eq(a->macros.at[k].name, name))
            return &a->macros.at[k];
    return NULL;
}

/* The lines of .macro go to .endm. */
static br_code
define(br_gcn_asm *a)
{
    const char *begin;
    br_gcn_macro m = {.name = br_gcn_asm_name(a)};

    br_gcn_eat(&a->scan, ",");
    m.params = trimmed(a->scan.p, a->scan.end);
    if (!m.name.n)
        return br_gcn_asm_fail(a, a->scan.p, "the name of a macro is expected");
    if (find(a, m.name))
        return br_gcn_asm_fail(a, m.name.p, "a macro twice");
    if (a->macros.n >= MAX_MACROS)
        return br_gcn_asm_fail(a, m.name.p, "more than %d macros", MAX_MACROS);
    begin = a->next;
    while (br_gcn_asm_line(a)) {
        br_text t = br_gcn_asm_name(a);

        if (br_text_is(t, ".macro"))
            return br_gcn_asm_fail(a, t.p, "a macro in a macro");
        if (!br_text_is(t, ".endm") && !br_text_is(t, ".endmacro"))
            continue;
        m.body = (br_text){begin, (size_t)(a->line - begin)};
        return br_vec_push(&a->macros, m)
                   ? BR_OK
                   : br_fail(a->st, BR_E_OOM, "no memory for macros");
    }
    return br_gcn_asm_fail(a, a->line, ".endm is missing");
}

typedef struct bound {
    br_text name, value;
} bound;

/* The parameters, with what stands for them in the line at the scan's place. */
static br_code
bind(br_gcn_asm *a, const br_gcn_macro *m, bound *b, size_t *n)
{
    const char *p = m->params.p, *end = p + m->params.n;
    const char *q = a->scan.p;

    for (*n = 0; p < end; (*n)++) {
        br_text t = argument(&p, end);
        const char *eq = t.n ? memchr(t.p, '=', t.n) : NULL;

        if (*n == MAX_ARGS)
            return br_gcn_asm_fail(a, a->line, "%.*s: more than %d parameters",
                                   (int)m->name.n, m->name.p, MAX_ARGS);
        b[*n].name = eq ? trimmed(t.p, eq) : t;
        b[*n].value = eq ? trimmed(eq + 1, t.p + t.n) : (br_text){t.p, 0};
        if (q < a->scan.end) {
            t = argument(&q, a->scan.end);
            if (t.n && (memchr(t.p, ' ', t.n) || memchr(t.p, '\t', t.n)))
                return br_gcn_asm_fail(a, t.p, "an argument with a space");
            b[*n].value = t.n ? t : b[*n].value;
        } else if (!eq) {
            return br_gcn_asm_fail(a, a->scan.end, "%.*s: \\%.*s is missing",
                                   (int)BR_MIN(m->name.n, 60u), m->name.p,
                                   (int)BR_MIN(t.n, 60u), t.p);
        }
    }
    q = trimmed(q, a->scan.end).p;
    if (q < a->scan.end)
        return br_gcn_asm_fail(a, q, "nothing is expected here");
    return BR_OK;
}

/* The macro's lines with arguments in the place of \NAME. */
static void
expand(br_str *out, const br_gcn_macro *m, const bound *b, size_t n,
       uint32_t use)
{
    const char *p = m->body.p, *end = p + m->body.n;

    while (p < end && !out->oom && out->n <= BR_GCN_MAX_MACRO_TEXT) {
        const char *q = memchr(p, '\\', (size_t)(end - p));
        size_t k = 0, len = 0;

        br_str_put(out, p, (size_t)((q ? q : end) - p));
        if (!q)
            return;
        p = q + 1;
        if (p < end && *p == '@') {
            br_str_printf(out, "%u", use);
            p++;
            continue;
        }
        while (p + len < end &&
               (isalnum((unsigned char)p[len]) || p[len] == '_'))
            len++;
        while (k < n && !br_text_eq(b[k].name, (br_text){p, len}))
            k++;
        if (k == n) { /* none of ours: whoever reads the line refuses it */
            br_str_putc(out, '\\');
            continue;
        }
        br_str_put(out, b[k].value.p, b[k].value.n);
        p += len;
    }
}

static br_code
use(br_gcn_asm *a, const br_gcn_macro *m)
{
    bound b[MAX_ARGS];
    br_str text = {0};
    char *kept;
    size_t n;

    BR_TRY(bind(a, m, b, &n));
    if (a->depth == BR_GCN_MAX_NEST)
        return br_gcn_asm_fail(a, m->name.p, "macros within %d macros",
                               BR_GCN_MAX_NEST);
    expand(&text, m, b, n, a->uses++);
    kept = text.oom ? NULL : br_arena_str(&a->texts, br_str_z(&text), text.n);
    n = text.n;
    br_str_fini(&text);
    if (!kept)
        return a->texts.used + n > BR_GCN_MAX_MACRO_TEXT
                   ? br_gcn_asm_fail(a, a->line, "macros of more than %d bytes",
                                     BR_GCN_MAX_MACRO_TEXT)
                   : br_fail(a->st, BR_E_OOM, "no memory for macros");
    a->from[a->depth++] = (br_gcn_source){m->name, a->next, a->end, a->n_ifs};
    a->next = kept;
    a->end = kept + n;
    return BR_OK;
}

/* ---- conditions ------------------------------------------------------------ */

enum {
    TAKEN = 1,
    HAD_ELSE = 2,
    OFF = 4
}; /* OFF: a condition around it is off */

static bool
skips(const br_gcn_asm *a)
{
    return a->n_ifs && !(a->ifs[a->n_ifs - 1] == TAKEN ||
                         a->ifs[a->n_ifs - 1] == (TAKEN | HAD_ELSE));
}

static br_code
condition(br_gcn_asm *a, bool *is)
{
    static const char *const ops[] = {"==", "!=", "<=", ">=", "<", ">"};
    int64_t x, y = 0;
    size_t k = 0;

    BR_TRY(br_gcn_asm_value(a, &x));
    while (k < BR_COUNT(ops) && !br_gcn_eat(&a->scan, ops[k]))
        k++;
    if (k < BR_COUNT(ops))
        BR_TRY(br_gcn_asm_value(a, &y));
    *is = k == 0   ? x == y
          : k == 2 ? x <= y
          : k == 3 ? x >= y
          : k == 4 ? x < y
          : k == 5 ? x > y
                   : x != y;
    return BR_OK;
}

static br_code
begin_if(br_gcn_asm *a, const char *p)
{
    const bool off = skips(a);
    bool is = false;

    if (a->n_ifs == BR_GCN_MAX_IFS)
        return br_gcn_asm_fail(a, p, ".if within %d others", BR_GCN_MAX_IFS);
    if (off)
        a->scan.p = a->scan.end;
    else
        BR_TRY(condition(a, &is));
    a->ifs[a->n_ifs++] = off ? OFF : is ? TAKEN : 0;
    return BR_OK;
}

static br_code
end_if(br_gcn_asm *a, const char *p, bool end)
{
    uint8_t *i;

    if (a->n_ifs == (a->depth ? a->from[a->depth - 1].n_ifs : 0))
        return br_gcn_asm_fail(a, p, "no .if is before it");
    i = &a->ifs[a->n_ifs - 1];
    if (end)
        a->n_ifs--;
    else if (*i & HAD_ELSE)
        return br_gcn_asm_fail(a, p, ".else twice");
    else
        *i = (uint8_t)((*i ^ TAKEN) | HAD_ELSE);
    return BR_OK;
}

br_code
br_gcn_asm_before(br_gcn_asm *a, bool *done)
{
    const char *p = a->scan.p;
    br_text name = br_gcn_asm_name(a);
    const br_gcn_macro *m;

    *done = true;
    if (br_text_is(name, ".if"))
        BR_TRY(begin_if(a, p));
    else if (br_text_is(name, ".else") || br_text_is(name, ".endif"))
        BR_TRY(end_if(a, p, name.n == 6));
    else if (skips(a))
        return BR_OK;
    else if (br_text_is(name, ".macro"))
        return define(a);
    else if (name.n && (m = find(a, name)) != NULL)
        return use(a, m);
    else {
        *done = false;
        a->scan.p = p;
        return BR_OK;
    }
    br_gcn_space(&a->scan);
    if (a->scan.p != a->scan.end)
        return br_gcn_asm_fail(a, a->scan.p, "nothing is expected here");
    return BR_OK;
}

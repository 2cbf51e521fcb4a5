/* toolcall.c - see toolcall.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/toolcall.h"

#include "model/unicode.h"
#include "run/schema_int.h"

#include <stdio.h>
#include <string.h>

static const br_tool_syntax rows[] = {
#define X(...) {__VA_ARGS__},
#include "run/toolcall.def"
#undef X
};

enum { MAX_OPEN = 64 }; /* characters of a mark */

/* Rules of free text, which may break off anywhere, and of values, which end. */
enum { FREE = 'f', RAW = 'v' };

const br_tool_syntax *
br_tool_syntax_of(br_text t)
{
    for (size_t i = 0; i < BR_COUNT(rows); i++)
        if (memmem(t.p, t.n, rows[i].needle, strlen(rows[i].needle)) &&
            (!rows[i].and ||
             memmem(t.p, t.n, rows[i].and, strlen(rows[i].and))))
            return rows[i].open ? &rows[i] : NULL;
    return NULL;
}

bool
br_tool_syntax_has(const br_tool_syntax *s, br_text token)
{
    const char *const parts[] = {s->open, s->once, s->first,  s->mid,
                                 s->last, s->sep,  s->close,  s->key,
                                 s->val,  s->end,  s->before, s->answer};

    for (size_t i = 0; i < BR_COUNT(parts); i++)
        if (parts[i] && token.n > 1 &&
            memmem(parts[i], strlen(parts[i]), token.p, token.n))
            return true;
    return false;
}

/* ---- the grammar --------------------------------------------------------- */

static void
quote(br_str *out, const char *z)
{
    br_grammar_quote(out, br_text_z(z ? z : ""));
    br_str_putc(out, ' ');
}

/* Where a character leads when the first `at` of the mark have been read. */
static size_t
after(const uint32_t *open, size_t n, size_t at, uint32_t c)
{
    for (size_t k = BR_MIN(at + 1, n); k > 0; k--) {
        size_t i = 0;

        if (open[k - 1] != c)
            continue;
        while (i + 1 < k && open[i] == open[at - (k - 1) + i])
            i++;
        if (i + 1 == k)
            return k;
    }
    return 0;
}

/* Any text in which `mark` does not stand; with it, `then`, unless NULL. Rule
 * X-N: the first N characters of the mark have just been read. */
static void
put_free_text(char x, const char *mark, const char *then, br_str *out)
{
    const uint8_t *p = (const uint8_t *)mark, *end = p + strlen(mark);
    uint32_t open[MAX_OPEN];
    size_t n = 0;

    while (p < end && n < MAX_OPEN)
        p += br_utf8_next(p, end, &open[n++]);
    for (size_t at = 0; at < n; at++) {
        br_str_printf(out, "%c-%zu ::= %s[^", x, at,
                      x == FREE ? "\"\" | " : "");
        for (size_t i = 0; i < n; i++)
            if (after(open, n, at, open[i]))
                br_str_printf(out, "\\U%08x", open[i]);
        br_str_printf(out, "] %c-0", x);
        for (size_t i = 0; i < n; i++) {
            size_t to = after(open, n, at, open[i]), k = 0;

            while (open[k] != open[i])
                k++;
            if (!to || k != i) /* each character once */
                continue;
            if (to < n)
                br_str_printf(out, " | \"\\U%08x\" %c-%zu", open[i], x, to);
            else if (then)
                br_str_printf(out, " | \"\\U%08x\" %s", open[i], then);
        }
        br_str_puts(out, "\n");
    }
}

/* ---- arguments ----------------------------------------------------------- */

static const br_json *
property(const br_tool *t, br_text key)
{
    const br_json *all =
        t->schema ? br_json_get(t->schema, "properties") : NULL;

    if (!all || all->kind != BR_J_OBJ)
        return NULL;
    for (const br_json *p = all->child; p; p = p->next)
        if (br_text_eq(key, (br_text){p->key, p->key_n}))
            return p;
    return NULL;
}

static bool
is_word(const br_json *v, const char *word)
{
    return v && v->kind == BR_J_STR && strcmp(v->s, word) == 0;
}

static bool
are_texts(const br_json *list)
{
    if (!list || list->kind != BR_J_ARR || !list->n)
        return false;
    for (const br_json *v = list->child; v; v = v->next)
        if (v->kind != BR_J_STR)
            return false;
    return true;
}

static bool
is_text(const br_json *p)
{
    const br_json *type = br_json_get(p, "type");

    return type ? is_word(type, "string") : are_texts(br_json_get(p, "enum"));
}

bool
br_tool_is_text(const br_tool *t, br_text key)
{
    const br_json *p = property(t, key);

    return !p || is_text(p);
}

/* What this server cannot hold an answer to, or NULL. */
static const char *
odd_keyword(const br_json *schema, const char *const *known, size_t n)
{
    for (const br_json *m = schema->child; m; m = m->next) {
        size_t i = 0;

        while (i < n && strcmp(known[i], m->key) != 0)
            i++;
        if (i == n)
            return m->key;
    }
    return NULL;
}

/* A text as it stands: one of the list, or any that ends. */
static const char *
put_text_value(const br_tool_syntax *s, const br_json *p, br_str *out)
{
    static const char *const known[] = {"type",    "title",    "description",
                                        "default", "examples", "enum"};
    const br_json *list = br_json_get(p, "enum");
    const char *odd = NULL;

    if (!are_texts(list)) {
        br_str_puts(out, "v-0");
        return odd_keyword(p, known, BR_COUNT(known));
    }
    for (const br_json *v = list->child; v; v = v->next) {
        br_str_puts(out, v == list->child ? "(" : "| ");
        quote(out, v->s);
        if (memmem(v->s, v->n, s->end, strlen(s->end)) || strlen(v->s) != v->n)
            odd = "enum";
    }
    br_str_puts(out, ") ");
    quote(out, s->end);
    if (odd)
        return odd;
    return odd_keyword(p, known, BR_COUNT(known));
}

/* The schema of one argument, which may refer to what stands beside them. */
static br_code
put_json_value(const br_tool *t, const br_json *p, const char *prefix,
               br_schema_spent *spent, br_str *rules, br_status *why)
{
    const br_json *beside[] = {br_json_get(t->schema, "$defs"),
                               br_json_get(t->schema, "definitions")};
    br_json copy = *p, defs[2];

    for (size_t i = 0; p->kind == BR_J_OBJ && i < BR_COUNT(beside); i++) {
        if (!beside[i])
            continue;
        defs[i] = *beside[i];
        defs[i].next = copy.child;
        copy.child = &defs[i];
        copy.n++;
    }
    return br_schema_rules(&copy, prefix, spent, rules, why);
}

typedef struct keyed {
    const br_tool_syntax *s;
    const br_tool *t;
    size_t i;    /* which tool */
    br_map need; /* its arguments that must be there; 1: it is listed */
    br_schema_spent *spent;
    const char *about; /* the first argument that cannot be enforced */
    char why[240];
    br_str rules, root;
} keyed;

static void
doubt(keyed *k, const char *about, const char *why)
{
    if (k->about)
        return;
    k->about = about;
    snprintf(k->why, sizeof k->why, "%.239s", why);
}

static br_code
put_argument(keyed *k, const br_json *p, size_t j)
{
    static const char ok[] = "abcdefghijklmnopqrstuvwxyz-_."
                             "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    br_map_value *must = br_map_get(&k->need, (br_text){p->key, p->key_n});
    br_status st = {0};
    br_str text = {0};
    char prefix[48];
    br_code code = BR_OK;

    if (must)
        must->u = 1;
    if (!p->key_n || p->key_n > BR_TOOL_MAX_NAME ||
        strspn(p->key, ok) != p->key_n) {
        doubt(k, p->key, "this model cannot write such a name");
        return BR_OK;
    }
    snprintf(prefix, sizeof prefix, "t%zu-%zu-", k->i, j);
    quote(&text, k->s->key);
    quote(&text, p->key);
    quote(&text, k->s->val);
    if (is_text(p)) {
        const char *odd = put_text_value(k->s, p, &text);

        if (odd)
            doubt(k, p->key, odd);
    } else {
        size_t before = k->rules.n;

        code = put_json_value(k->t, p, prefix, k->spent, &k->rules, &st);
        if (code != BR_OK && code != BR_E_OOM) {
            doubt(k, p->key, st.msg);
            k->rules.n = before;
            br_str_printf(&k->rules, "%sroot ::= value\n", prefix);
            code = BR_OK;
        }
        br_str_printf(&text, "%sroot ", prefix);
        quote(&text, k->s->end);
    }
    br_str_printf(&k->root, must ? "%sx " : "%sx? ", prefix);
    br_str_printf(&k->rules, "%sx ::= %s\n", prefix, br_str_z(&text));
    k->rules.oom |= text.oom;
    br_str_fini(&text);
    return code;
}

static br_code
read_required(keyed *k, const br_json *list)
{
    for (const br_json *r = list && list->kind == BR_J_ARR ? list->child : NULL;
         r; r = r->next)
        if (r->kind != BR_J_STR)
            doubt(k, "required", "it names what properties does not");
        else if (!br_map_put(&k->need, (br_text){r->s, r->n}, NULL))
            return BR_E_OOM;
    return BR_OK;
}

/* Members in the schema's order; where it names none, any texts. */
static br_code
put_members(keyed *k)
{
    static const char *const known[] = {
        "type",  "properties",  "required", "additionalProperties", "title",
        "$defs", "definitions", "$schema",  "description"};
    const br_json *s = k->t->schema, *props, *more;
    br_map_entry *e;
    size_t j = 0;

    if (!s || s->kind != BR_J_OBJ) {
        br_str_puts(&k->root, "any*");
        return BR_OK;
    }
    props = br_json_get(s, "properties");
    more = br_json_get(s, "additionalProperties");
    BR_TRY(read_required(k, br_json_get(s, "required")));
    if (!is_word(br_json_get(s, "type"), "object"))
        doubt(k, "type", "the schema is not one of an object");
    if (odd_keyword(s, known, BR_COUNT(known)))
        doubt(k, odd_keyword(s, known, BR_COUNT(known)), "not enforced here");
    for (const br_json *p = props && props->kind == BR_J_OBJ ? props->child
                                                             : NULL;
         p; p = p->next)
        BR_TRY(put_argument(k, p, j++));
    for (size_t i = 0; (e = br_map_next(&k->need, &i));)
        if (!e->value.u)
            doubt(k, "required", "it names what properties does not");
    if (!j && !(more && more->kind == BR_J_BOOL && !more->b))
        br_str_puts(&k->root, "any*");
    else if (!k->root.n)
        br_str_puts(&k->root, "\"\"");
    return BR_OK;
}

/* (key NAME val VALUE end)* */
static br_code
put_keyed(const br_tool_syntax *s, const br_tool *t, size_t i,
          br_schema_spent *spent, br_str *out, br_status *st)
{
    keyed k = {.s = s, .t = t, .i = i, .spent = spent};
    br_code code = put_members(&k);

    if (code == BR_OK && t->strict && k.about)
        code = br_fail(st, BR_E_UNSUPPORTED, "tool '%s': '%.60s': %s", t->name,
                       k.about, k.why);
    else if (code != BR_OK)
        (void)br_fail(st, code, "tools: out of memory");
    br_str_printf(out, "t%zu-root ::= %s\n", i, br_str_z(&k.root));
    br_str_put(out, br_str_z(&k.rules), k.rules.n);
    out->oom |= k.root.oom || k.rules.oom;
    br_str_fini(&k.root);
    br_str_fini(&k.rules);
    br_map_fini(&k.need);
    return code;
}

/* Its arguments: by the schema if that can be enforced. */
static br_code
put_arguments(const br_tool *t, size_t i, br_schema_spent *spent, br_str *out,
              br_status *st)
{
    char prefix[24];
    const br_json *type = t->schema ? br_json_get(t->schema, "type") : NULL;
    bool object = type && type->kind == BR_J_STR && !strcmp(type->s, "object");
    br_status why = {0};
    br_str rules = {0};
    br_code code = BR_E_UNSUPPORTED;

    snprintf(prefix, sizeof prefix, "t%zu-", i);
    if (object)
        code = br_schema_rules(t->schema, prefix, spent, &rules, &why);
    else
        (void)br_fail(&why, code, "the schema is not one of an object");
    if (code == BR_OK)
        br_str_put(out, br_str_z(&rules), rules.n);
    else if (code != BR_E_OOM && (!t->strict || !t->schema))
        br_str_printf(out, "%sroot ::= object\n", prefix);
    else
        (void)br_fail(st, code, "tool '%s': %s", t->name, why.msg);
    out->oom |= rules.oom;
    br_str_fini(&rules);
    return st->code;
}

/* What comes before calls, and instead of them. */
static void
put_root(const br_tool_syntax *s, bool must, br_str *out)
{
    if (s->before) {
        put_free_text(FREE, s->text, NULL, out);
        br_str_printf(out, "root ::= (%s)* (%s%s open calls)\n", s->before,
                      must ? "" : s->answer, must ? "" : " |");
    } else if (must) {
        br_str_puts(out, "root ::= open calls\n");
    } else {
        put_free_text(FREE, s->open, "calls", out);
        br_str_puts(out, "root ::= f-0\n");
        return; /* has read it */
    }
    br_str_puts(out, "open ::= ");
    quote(out, s->open);
    br_str_puts(out, "\n");
}

static void
put_calls(const br_tool_syntax *s, const br_tool *tools, size_t n, bool several,
          br_str *out)
{
    br_str_puts(out, "calls ::= ");
    quote(out, s->once);
    br_str_puts(out, "call ");
    if (several && s->sep) {
        br_str_puts(out, "(");
        quote(out, s->sep);
        br_str_puts(out, "call)* ");
    }
    quote(out, s->close);
    br_str_puts(out, "\ncall ::= ");
    quote(out, s->first);
    br_str_puts(out, "(");
    for (size_t i = 0; i < n; i++) {
        br_str_puts(out, i ? "| " : "");
        quote(out, tools[i].name);
        if (s->numbered)
            br_str_puts(out, "\":\" [0-9]{1,3} ");
        quote(out, s->mid);
        br_str_printf(out, "t%zu-root ", i);
    }
    br_str_puts(out, ") ");
    quote(out, s->last);
    br_str_puts(out, "\n");
}

br_code
br_tool_grammar(const br_tool_syntax *s, const br_tool *tools, size_t n,
                br_tool_choice choice, bool several, br_str *out, br_status *st)
{
    br_schema_spent spent = {0};

    put_root(s, choice == BR_TOOL_REQUIRED, out);
    put_calls(s, tools, n, several, out);
    if (s->key) {
        put_free_text(RAW, s->end, "\"\"", out);
        br_str_puts(out, "any ::= ");
        quote(out, s->key);
        br_str_puts(out, "[a-zA-Z0-9_.-]{1,64} ");
        quote(out, s->val);
        br_str_puts(out, "v-0\n");
    }
    /* br_grammar_new says that it is too long */
    for (size_t i = 0; i < n && out->n <= BR_GRAMMAR_MAX_TEXT; i++)
        BR_TRY(s->key ? put_keyed(s, &tools[i], i, &spent, out, st)
                      : put_arguments(&tools[i], i, &spent, out, st));
    br_schema_common(out);
    return out->oom ? br_fail(st, BR_E_OOM, "tools: out of memory") : BR_OK;
}

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

enum { MAX_OPEN = 64 }; /* characters of OPEN */

const br_tool_syntax *
br_tool_syntax_of(br_text t)
{
    for (size_t i = 0; i < BR_COUNT(rows); i++)
        if (memmem(t.p, t.n, rows[i].needle, strlen(rows[i].needle)) &&
            memmem(t.p, t.n, rows[i].and, strlen(rows[i].and)))
            return rows[i].open ? &rows[i] : NULL;
    return NULL;
}

bool
br_tool_syntax_has(const br_tool_syntax *s, br_text token)
{
    const char *const parts[] = {s->open, s->once, s->first, s->mid,
                                 s->last, s->sep,  s->close};

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
    br_grammar_quote(out, br_text_z(z));
    br_str_putc(out, ' ');
}

/* Where a character leads when the first `at` of OPEN have been read. */
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

/* Any text in which OPEN does not stand; with it, the calls. Rule f-N: the
 * first N characters of OPEN have just been read. */
static void
put_free_text(const br_tool_syntax *s, br_str *out)
{
    const uint8_t *p = (const uint8_t *)s->open, *end = p + strlen(s->open);
    uint32_t open[MAX_OPEN];
    size_t n = 0;

    while (p < end && n < MAX_OPEN)
        p += br_utf8_next(p, end, &open[n++]);
    br_str_puts(out, "root ::= f-0\n");
    for (size_t at = 0; at < n; at++) {
        br_str_printf(out, "f-%zu ::= \"\" | [^", at);
        for (size_t i = 0; i < n; i++)
            if (after(open, n, at, open[i]))
                br_str_printf(out, "\\U%08x", open[i]);
        br_str_puts(out, "] f-0");
        for (size_t i = 0; i < n; i++) {
            size_t to = after(open, n, at, open[i]), k = 0;

            while (open[k] != open[i])
                k++;
            if (to && k == i) /* each character once */
                br_str_printf(out,
                              to == n ? " | \"\\U%08x\" calls"
                                      : " | \"\\U%08x\" f-%zu",
                              open[i], to);
        }
        br_str_puts(out, "\n");
    }
}

/* Its arguments: by the schema if that can be enforced. */
static br_code
put_arguments(const br_tool *t, size_t i, br_str *out, br_status *st)
{
    char prefix[24];
    const br_json *type = t->schema ? br_json_get(t->schema, "type") : NULL;
    bool object = type && type->kind == BR_J_STR && !strcmp(type->s, "object");
    br_status why = {0};
    br_str rules = {0};
    br_code code = BR_E_UNSUPPORTED;

    snprintf(prefix, sizeof prefix, "t%zu-", i);
    if (object)
        code = br_schema_rules(t->schema, prefix, &rules, &why);
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

br_code
br_tool_grammar(const br_tool_syntax *s, const br_tool *tools, size_t n,
                br_tool_choice choice, bool several, br_str *out, br_status *st)
{
    if (choice == BR_TOOL_AUTO)
        put_free_text(s, out);
    else {
        br_str_puts(out, "root ::= ");
        quote(out, s->open);
        br_str_puts(out, "calls\n");
    }
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
        quote(out, s->mid);
        br_str_printf(out, "t%zu-root ", i);
    }
    br_str_puts(out, ") ");
    quote(out, s->last);
    br_str_puts(out, "\n");
    for (size_t i = 0; i < n; i++)
        BR_TRY(put_arguments(&tools[i], i, out, st));
    br_schema_common(out);
    return out->oom ? br_fail(st, BR_E_OOM, "tools: out of memory") : BR_OK;
}

/* ---- the reader ---------------------------------------------------------- */

enum { TEXT, ONCE, FIRST, NAME, ARGS, LAST, NEXT, DONE };

static void
drop(br_tool_reader *r, size_t n)
{
    r->held.n -= n;
    memmove(r->held.at, r->held.at + n, r->held.n);
}

/* 1: it was there and is gone; 0: not all of it is there yet; -1: it is not */
static int
literal(br_tool_reader *r, const char *z)
{
    size_t n = strlen(z), have = BR_MIN(n, r->held.n);

    if (memcmp(r->held.at, z, have) != 0)
        return -1;
    if (have < n)
        return 0;
    drop(r, n);
    return 1;
}

/* How much of the end may be the beginning of OPEN. */
static size_t
undecided(const br_tool_reader *r)
{
    size_t n = BR_MIN(strlen(r->s->open) - 1, r->held.n);

    while (n && memcmp(r->held.at + r->held.n - n, r->s->open, n) != 0)
        n--;
    return n;
}

static int
read_text(br_tool_reader *r, bool last, br_tool_fn fn, void *ctx)
{
    const char *at =
        memmem(r->held.at, r->held.n, r->s->open, strlen(r->s->open));
    size_t n = at     ? (size_t)(at - r->held.at)
               : last ? r->held.n
                      : r->held.n - undecided(r);

    if (n)
        fn(ctx, BR_TOOL_TEXT, (br_text){r->held.at, n});
    drop(r, n);
    return at ? literal(r, r->s->open) : 0;
}

static int
read_name(br_tool_reader *r, br_tool_fn fn, void *ctx)
{
    const char *at =
        memmem(r->held.at, r->held.n, r->s->mid, strlen(r->s->mid));

    if (!at)
        return r->held.n > BR_TOOL_MAX_NAME + strlen(r->s->mid) ? -1 : 0;
    fn(ctx, BR_TOOL_BEGIN, (br_text){r->held.at, (size_t)(at - r->held.at)});
    r->n_calls++;
    r->depth = 0;
    r->quoted = r->escaped = false;
    drop(r, (size_t)(at - r->held.at) + strlen(r->s->mid));
    return 1;
}

/* Whether the object ends at this byte. */
static bool
closes(br_tool_reader *r, char c)
{
    if (r->quoted) {
        r->quoted = r->escaped || c != '"';
        r->escaped = !r->escaped && c == '\\';
        return false;
    }
    r->quoted = c == '"';
    r->depth += c == '{' || c == '[';
    if (c == '}' || c == ']')
        return --r->depth == 0;
    return false;
}

static int
read_args(br_tool_reader *r, br_tool_fn fn, void *ctx)
{
    size_t n = 0;
    bool over = false;

    if (r->held.n && r->depth == 0 && r->held.at[0] != '{')
        return -1;
    while (n < r->held.n && !over)
        over = closes(r, r->held.at[n++]);
    if (n)
        fn(ctx, BR_TOOL_ARGS, (br_text){r->held.at, n});
    drop(r, n);
    if (over)
        fn(ctx, BR_TOOL_END, (br_text){0});
    return over;
}

/* Behind a call: the next one, or what closes them. */
static int
read_next(br_tool_reader *r)
{
    const br_tool_syntax *s = r->s;
    char next[128];
    int more = -1, end;

    if (s->sep) {
        snprintf(next, sizeof next, "%s%s", s->sep, s->first);
        more = literal(r, next);
    }
    if (more == 1) {
        r->stage = FIRST; /* + 1 = NAME */
        return 1;
    }
    end = *s->close ? literal(r, s->close) : more == 0 ? 0 : 1;
    return end == 1 ? 1 : more == 0 || end == 0 ? 0 : -1;
}

bool
br_tool_read(br_tool_reader *r, br_text piece, bool last, br_tool_fn fn,
             void *ctx)
{
    int moved = 1;

    br_str_put(&r->held, piece.p, piece.n);
    if (r->held.oom)
        return false;
    while (moved > 0 && (r->held.n || r->stage == ONCE || r->stage == FIRST)) {
        (void)br_str_z(&r->held);
        switch (r->stage) {
        case TEXT: moved = read_text(r, last, fn, ctx); break;
        case ONCE: moved = literal(r, r->s->once); break;
        case FIRST: moved = literal(r, r->s->first); break;
        case NAME: moved = read_name(r, fn, ctx); break;
        case ARGS: moved = read_args(r, fn, ctx); break;
        case LAST: moved = literal(r, r->s->last); break;
        case NEXT: moved = read_next(r); break;
        default: moved = -1; break;
        }
        if (moved > 0)
            r->stage++;
    }
    return moved >= 0;
}

void
br_tool_reader_fini(br_tool_reader *r)
{
    br_str_fini(&r->held);
}

/* toolread.c - calls of tools in an answer, see toolcall.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/toolcall.h"

#include <stdio.h>
#include <string.h>

enum { TEXT, ONCE, FIRST, NAME, ARGS, KEYS, KEY, VALUE, LAST, NEXT, DONE };

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
    size_t n = z ? strlen(z) : 0, have = BR_MIN(n, r->held.n);

    if (have && memcmp(r->held.at, z, have) != 0)
        return -1;
    if (have < n)
        return 0;
    drop(r, n);
    return 1;
}

/* How much of the end may be the beginning of z. */
static size_t
undecided(const br_tool_reader *r, const char *z)
{
    size_t n = BR_MIN(strlen(z) - 1, r->held.n);

    while (n && memcmp(r->held.at + r->held.n - n, z, n) != 0)
        n--;
    return n;
}

/* Whether the answer was ended by a stop string in the midst of the mark whose
 * first n bytes are held: the mark goes on as that string does. */
static bool
stopped_in(const br_tool_reader *r, const char *mark, size_t n)
{
    size_t rest = strlen(mark + n);

    return n && r->stop.n &&
           memcmp(mark + n, r->stop.p, BR_MIN(rest, r->stop.n)) == 0;
}

static int
read_text(br_tool_reader *r, bool last, br_tool_fn fn, void *ctx)
{
    const char *at =
        memmem(r->held.at, r->held.n, r->s->open, strlen(r->s->open));
    size_t begun = at ? 0 : undecided(r, r->s->open), n;

    if (last && !stopped_in(r, r->s->open, begun))
        begun = 0;
    n = at ? (size_t)(at - r->held.at) : r->held.n - begun;

    if (n)
        fn(ctx, BR_TOOL_TEXT, (br_text){r->held.at, n});
    drop(r, n);
    return at ? literal(r, r->s->open) : 0;
}

/* How many bytes of "name:12" are the name; 0: that is none. */
static size_t
take_number(br_tool_reader *r, size_t n)
{
    const char *colon = memrchr(r->held.at, ':', n);
    size_t at = colon ? (size_t)(colon - r->held.at) : 0;

    r->number = 0;
    for (size_t i = at + 1; at && i < n; i++) {
        uint32_t digit = (uint32_t)(r->held.at[i] - '0');

        if (digit > 9 || i > at + 3)
            return 0;
        r->number = r->number * 10 + digit;
    }
    return at;
}

static int
read_name(br_tool_reader *r, br_tool_fn fn, void *ctx)
{
    const char *at =
        memmem(r->held.at, r->held.n, r->s->mid, strlen(r->s->mid));
    size_t n = at ? (size_t)(at - r->held.at) : 0;
    br_text name = {r->held.at, n};

    if (!at)
        return r->held.n > BR_TOOL_MAX_NAME + strlen(r->s->mid) + 4 ? -1 : 0;
    if (r->s->numbered)
        name.n = take_number(r, n);
    if (!name.n || n > BR_TOOL_MAX_NAME + 4)
        return -1;
    r->at = NULL;
    for (size_t i = 0; i < r->n_tools; i++)
        if (br_text_is(name, r->tools[i].name))
            r->at = &r->tools[i];
    fn(ctx, BR_TOOL_BEGIN, name);
    r->n_calls++;
    r->depth = r->n_keys = 0;
    r->quoted = r->escaped = false;
    drop(r, n + strlen(r->s->mid));
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

/* ---- arguments by their keys --------------------------------------------- */

static void
say(br_tool_fn fn, void *ctx, const char *z)
{
    fn(ctx, BR_TOOL_ARGS, br_text_z(z));
}

/* As the inside of a JSON string, or as one. */
static bool
say_text(br_text t, bool quotes, br_tool_fn fn, void *ctx)
{
    br_str s = {0};
    br_json_writer w;
    bool ok;

    br_json_w_begin(&w, &s, 0);
    w.utf8 = true;
    br_json_w_str(&w, t);
    ok = !s.oom && s.n >= 2;
    if (ok)
        fn(ctx, BR_TOOL_ARGS,
           quotes ? (br_text){s.at, s.n} : (br_text){s.at + 1, s.n - 2});
    br_str_fini(&s);
    return ok;
}

/* Another key, or the end of the call. */
static int
read_keys(br_tool_reader *r, br_tool_fn fn, void *ctx)
{
    int key = literal(r, r->s->key), last;

    if (key == 1) {
        say(fn, ctx, r->n_keys++ ? "," : "{");
        r->stage = KEY - 1;
        return 1;
    }
    last = literal(r, r->s->last);
    if (last == 1) {
        say(fn, ctx, r->n_keys ? "}" : "{}");
        fn(ctx, BR_TOOL_END, (br_text){0});
        r->stage = NEXT - 1;
        return 1;
    }
    return key == 0 || last == 0 ? 0 : -1;
}

static int
read_key(br_tool_reader *r, br_tool_fn fn, void *ctx)
{
    const char *at =
        memmem(r->held.at, r->held.n, r->s->val, strlen(r->s->val));
    br_text key = {r->held.at, at ? (size_t)(at - r->held.at) : 0};

    if (!at)
        return r->held.n > BR_TOOL_MAX_NAME + strlen(r->s->val) ? -1 : 0;
    if (key.n > BR_TOOL_MAX_NAME || !say_text(key, true, fn, ctx))
        return -1;
    r->raw = !r->at || br_tool_is_text(r->at, key);
    r->quoted = r->escaped = false;
    say(fn, ctx, r->raw ? ":\"" : ":");
    drop(r, key.n + strlen(r->s->val));
    return 1;
}

/* Where `end` begins, outside of quotes if the value is JSON; *over: it is all
 * there. Bytes before are the value's. */
static size_t
value_end(br_tool_reader *r, bool *over)
{
    size_t n = strlen(r->s->end), i = 0;

    *over = false;
    for (; i < r->held.n; i++) {
        size_t have = BR_MIN(n, r->held.n - i);
        char c = r->held.at[i];

        if (!r->quoted && memcmp(r->held.at + i, r->s->end, have) == 0) {
            *over = have == n;
            break;
        }
        if (r->raw)
            continue;
        if (r->quoted) {
            r->quoted = r->escaped || c != '"';
            r->escaped = !r->escaped && c == '\\';
        } else {
            r->quoted = c == '"';
        }
    }
    return i;
}

static int
read_value(br_tool_reader *r, br_tool_fn fn, void *ctx)
{
    bool over;
    size_t n = value_end(r, &over);
    br_text t = {r->held.at, n};

    if (n && r->raw && !say_text(t, false, fn, ctx))
        return -1;
    if (n && !r->raw)
        fn(ctx, BR_TOOL_ARGS, t);
    drop(r, n + (over ? strlen(r->s->end) : 0));
    if (!over)
        return 0;
    if (r->raw)
        say(fn, ctx, "\"");
    r->stage = KEYS - 1;
    return 1;
}

/* ---- the whole ----------------------------------------------------------- */

/* Behind a call: the next one, or what closes them. */
static int
read_next(br_tool_reader *r)
{
    const br_tool_syntax *s = r->s;
    char next[128];
    int more = -1, end;

    if (s->sep) {
        snprintf(next, sizeof next, "%s%s", s->sep, s->first ? s->first : "");
        more = literal(r, next);
    }
    if (more == 1) {
        r->stage = FIRST; /* + 1 = NAME */
        return 1;
    }
    end = s->close ? literal(r, s->close) : more == 0 ? 0 : 1;
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
        case ARGS:
            moved = r->s->key ? 1 : read_args(r, fn, ctx);
            if (moved > 0 && !r->s->key)
                r->stage = LAST - 1;
            break;
        case KEYS: moved = read_keys(r, fn, ctx); break;
        case KEY: moved = read_key(r, fn, ctx); break;
        case VALUE: moved = read_value(r, fn, ctx); break;
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

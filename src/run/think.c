/* think.c - see think.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/think.h"

#include <string.h>

enum {
    START = 1,
    THOUGHT = 2,
    TEXT = 4,
    NOTHING = 8, /* between parts; dropped */
    PASS = 16,   /* only as what follows: TEXT, and the mark is part of it */
    ANY = 15,
};

struct br_think {
    const char *needle, *and, *mark;
    uint8_t to, from;
    bool control;
    const char *close;
};

static const br_think rows[] = {
#define X(...) {__VA_ARGS__},
#include "run/think.def"
#undef X
};

static const br_think *
next_row(const br_think *t, const br_think *r)
{
    r++;
    return r < rows + BR_COUNT(rows) && strcmp(r->needle, t->needle) == 0
               ? r
               : NULL;
}

const br_think *
br_think_of(br_text t)
{
    for (size_t i = 0; i < BR_COUNT(rows); i++)
        if (memmem(t.p, t.n, rows[i].needle, strlen(rows[i].needle)) &&
            memmem(t.p, t.n, rows[i].and, strlen(rows[i].and)))
            return &rows[i];
    return NULL;
}

bool
br_think_is_control(const br_think *t)
{
    return t->control;
}

static const br_think *
row_to(const br_think *t, uint8_t to)
{
    while (t->to != to)
        t++; /* each family has both */
    return t;
}

const char *
br_think_begin(const br_think *t)
{
    return row_to(t, THOUGHT)->mark;
}

const char *
br_think_end(const br_think *t)
{
    return row_to(t, TEXT)->mark;
}

const char *
br_think_close(const br_think *t)
{
    const br_think *r = row_to(t, TEXT);

    return r->close ? r->close : r->mark;
}

bool
br_think_always(const br_think *t)
{
    return t->from == ANY;
}

static bool
is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

bool
br_think_open(const br_think *t, br_text prompt)
{
    br_text mark = br_text_z(br_think_begin(t));

    while (prompt.n && is_space(prompt.p[prompt.n - 1]))
        prompt.n--;
    return prompt.n >= mark.n &&
           memcmp(prompt.p + prompt.n - mark.n, mark.p, mark.n) == 0;
}

/* ---- the reader ---------------------------------------------------------- */

void
br_think_begin_in(br_think_reader *r, const br_think *t, bool open)
{
    *r =
        (br_think_reader){.t = t, .mode = open ? THOUGHT : START, .trim = open};
}

bool
br_think_now(const br_think_reader *r)
{
    return r->mode == THOUGHT;
}

/* The mark that stands at i; *maybe: one may, of which the end has not come. */
static const br_think *
mark_at(const br_think_reader *r, size_t i, bool *maybe)
{
    size_t left = r->held.n - i;

    for (const br_think *m = r->t; m; m = next_row(r->t, m)) {
        size_t n = strlen(m->mark), have = BR_MIN(n, left);

        if (!(m->from & r->mode) || memcmp(r->held.at + i, m->mark, have) != 0)
            continue;
        if (have == n)
            return m;
        *maybe = true;
    }
    return NULL;
}

/* The first n bytes of what is held are no part of a mark. */
static void
give(br_think_reader *r, size_t n, br_think_fn fn, void *ctx)
{
    br_text t = {r->held.at, n};

    while (r->trim && t.n && is_space(t.p[0])) {
        t.p++;
        t.n--;
    }
    if (!t.n || r->mode == NOTHING)
        return;
    r->trim = false;
    if (r->mode == START)
        r->mode = TEXT;
    fn(ctx, r->mode == THOUGHT, t);
}

static void
drop(br_think_reader *r, size_t n)
{
    r->held.n -= n;
    memmove(r->held.at, r->held.at + n, r->held.n);
}

/* One mark and what is before it; false: none is there. */
static bool
step(br_think_reader *r, bool last, br_think_fn fn, void *ctx)
{
    const br_think *m = NULL;
    bool maybe = false;
    size_t n = 0, end;

    for (; n < r->held.n && !m && !maybe; n++) {
        m = mark_at(r, n, &maybe);
        if (!m && !maybe && r->mode == START && !is_space(r->held.at[n]))
            r->mode = TEXT; /* a mark of a beginning comes too late now */
    }
    n -= m || maybe;
    if (maybe && last)
        n = r->held.n;
    end = n; /* white space before a mark, or at the end, means nothing */
    if (r->mode == THOUGHT || (r->mode == START && (m || !last)))
        while (end && is_space(r->held.at[end - 1]))
            end--;
    give(r, end, fn, ctx);
    drop(r, m ? n : end);
    if (!m)
        return false;
    r->trim = m->to == THOUGHT || r->mode == THOUGHT;
    r->mode = m->to == PASS ? TEXT : m->to;
    if (m->to == PASS)
        fn(ctx, false, br_text_z(m->mark));
    drop(r, strlen(m->mark));
    return true;
}

bool
br_think_read(br_think_reader *r, br_text piece, bool last, br_think_fn fn,
              void *ctx)
{
    if (!r->t) {
        if (piece.n)
            fn(ctx, false, piece);
        return true;
    }
    br_str_put(&r->held, piece.p, piece.n);
    if (r->held.oom)
        return false;
    while (r->held.n && step(r, last, fn, ctx))
        ;
    return true;
}

void
br_think_reader_fini(br_think_reader *r)
{
    br_str_fini(&r->held);
}

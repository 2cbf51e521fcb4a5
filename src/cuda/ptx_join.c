/* ptx_join.c - several files of PTX become one: what a device linker does.
 *
 *   a.ptx: .extern .func f;  k { call f }      .extern .func f;  ...
 *   b.ptx: .visible .func f { ... mine ... }   .visible .func f { ... mine$L1 }
 *          .func mine { ... }                  .func mine$L1 { ... }
 *
 * A file is cut into statements of its top level; each has a name, a linkage and
 * either defines or declares. Then come: the first file's head, declarations,
 * variables, functions. What no linkage makes visible to others gets the number
 * of its file; of several weak definitions the first stays, unless there is a
 * strong one; two strong ones are an error, and so is a variable that nobody
 * defines. A function that nobody defines may be one of the runtime's.
 *
 * Statements are not understood any further: br_ptx_parse reads the result.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cuda/ptx_join.h"

#include "base/map.h"

#include <string.h>

enum { LOCAL, VISIBLE, EXTERN, WEAK };
enum { HEAD, FUNCTION, VARIABLE, OTHER };

typedef struct stmt {
    br_text text, name;
    uint32_t file;
    uint8_t kind, linkage;
    bool defines, shared;
} stmt;

typedef struct join {
    const char *p, *end; /* what is left of the file */
    uint32_t file;
    BR_VEC(stmt) all;
    br_map *local;  /* of each file: names that get its number */
    br_map defined; /* to the statement that defines, counted from 1 */
    br_str *out;
    br_status *st;
} join;

/* ---- words -------------------------------------------------------------- */

static bool
in_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || c == '_' || c == '$' || c == '%' ||
           c == '.';
}

/* To the end of a blank, comment or string that begins at p; p: there is none. */
static const char *
skip(const char *p, const char *end)
{
    const char *q = p;

    if (*p == ' ' || (*p >= '\t' && *p <= '\r'))
        return p + 1;
    if (*p == '"') {
        q = memchr(p + 1, '"', (size_t)(end - p - 1));
        return q ? q + 1 : end;
    }
    if (end - p < 2 || *p != '/')
        return p;
    if (p[1] == '/') {
        q = memchr(p, '\n', (size_t)(end - p));
        return q ? q : end;
    }
    if (p[1] == '*') {
        for (q = p + 2; end - q >= 2 && (q[0] != '*' || q[1] != '/'); q++) {
        }
        return end - q >= 2 ? q + 2 : end;
    }
    return p;
}

/* The next word, or a single character. */
static br_text
token(join *j)
{
    const char *p;

    while (j->p < j->end && (p = skip(j->p, j->end)) != j->p)
        j->p = p;
    p = j->p;
    while (j->p < j->end && in_word(*j->p))
        j->p++;
    j->p += j->p == p && p < j->end;
    return (br_text){p, (size_t)(j->p - p)};
}

/* ---- statements --------------------------------------------------------- */

static void
directive(stmt *s, br_text w)
{
    if (br_text_is(w, ".visible"))
        s->linkage = VISIBLE;
    else if (br_text_is(w, ".extern"))
        s->linkage = EXTERN;
    else if (br_text_is(w, ".weak") || br_text_is(w, ".common"))
        s->linkage = WEAK;
    else if (br_text_is(w, ".func") || br_text_is(w, ".entry"))
        s->kind = FUNCTION;
    else if (br_text_is(w, ".shared"))
        s->kind = VARIABLE, s->shared = true;
    else if (br_text_is(w, ".global") || br_text_is(w, ".const"))
        s->kind = VARIABLE;
}

/* From the first word on to the statement's end; whether it was there. */
static bool
statement(join *j, stmt *s, br_text w)
{
    unsigned braces = 0, others = 0;

    for (; w.n; w = token(j)) {
        char c = *w.p;

        others += c == '(' || c == '[';
        others -= (c == ')' || c == ']') && others;
        if (c == '{') {
            braces++;
            s->defines = true;
        } else if (c == '}') {
            braces -= braces > 0;
            if (!braces && s->kind != VARIABLE)
                return true;
        } else if (c == ';' && !braces) {
            return true;
        } else if (!braces && !others && !s->name.n && c == '.') {
            directive(s, w);
        } else if (!braces && !others && !s->name.n && s->kind != OTHER &&
                   in_word(c) && (c < '0' || c > '9')) {
            s->name = w;
        }
    }
    return false;
}

static br_code
cut(join *j, br_text text)
{
    static const char *const lines[] = {".version", ".target", ".address_size",
                                        ".file", ".loc"};

    j->p = text.p;
    j->end = text.p + text.n;
    for (br_text w; (w = token(j)).n;) {
        stmt s = {.kind = OTHER, .file = j->file};
        const char *eol = memchr(w.p, '\n', (size_t)(j->end - w.p));

        for (size_t k = 0; k < BR_COUNT(lines); k++)
            if (br_text_is(w, lines[k]))
                s.kind = HEAD;
        if (s.kind == HEAD)
            j->p = eol ? eol : j->end;
        else if (!statement(j, &s, w))
            return br_fail(j->st, BR_E_FORMAT,
                           "file %u of a program for the device: '%.*s' has "
                           "no end",
                           j->file + 1, (int)BR_MIN(w.n, (size_t)40), w.p);
        if (s.kind == VARIABLE)
            s.defines = s.linkage != EXTERN;
        s.text = (br_text){w.p, (size_t)(j->p - w.p)};
        if (!br_vec_push(&j->all, s))
            return br_fail(j->st, BR_E_OOM, "out of memory");
    }
    return BR_OK;
}

/* ---- names -------------------------------------------------------------- */

static br_code
resolve(join *j, size_t at)
{
    const stmt *s = &j->all.at[at], *before;
    br_map_value *v;
    bool fresh;

    if (!s->name.n)
        return BR_OK;
    if (!s->defines && s->linkage != LOCAL)
        return BR_OK;
    v = br_map_put(s->linkage == LOCAL ? &j->local[s->file] : &j->defined,
                   s->name, &fresh);
    if (!v)
        return br_fail(j->st, BR_E_OOM, "out of memory");
    if (s->linkage == LOCAL)
        return BR_OK;
    before = fresh ? NULL : &j->all.at[v->u - 1];
    if (before && before->linkage == VISIBLE && s->linkage == VISIBLE)
        return br_fail(j->st, BR_E_FORMAT,
                       "'%.*s' is defined in files %u and %u",
                       (int)BR_MIN(s->name.n, (size_t)80), s->name.p,
                       before->file + 1, s->file + 1);
    if (!before || (before->linkage == WEAK && s->linkage == VISIBLE))
        v->u = at + 1;
    return BR_OK;
}

/* ---- the result --------------------------------------------------------- */

static void
emit(join *j, const stmt *s)
{
    const char *end = s->text.p + s->text.n;

    for (const char *p = s->text.p, *q; p < end; p = q) {
        q = skip(p, end);
        if (q - p > 1 && *p == '/') { /* a comment */
            br_str_putc(j->out, ' ');
            continue;
        }
        while (q < end && (q == p || in_word(*p)) && in_word(*q))
            q++;
        q += q == p; /* a single character */
        br_str_put(j->out, p, (size_t)(q - p));
        if (br_map_get(&j->local[s->file], (br_text){p, (size_t)(q - p)}))
            br_str_printf(j->out, "$L%u", s->file);
    }
    br_str_put(j->out, "\n", 1);
}

/* Whether a statement belongs into the part of the result that is written. */
enum { HEADS, DECLARATIONS, VARIABLES, FUNCTIONS };
static bool
belongs(const join *j, size_t at, int part)
{
    const stmt *s = &j->all.at[at];
    const br_map_value *v;

    if (s->kind == HEAD || s->kind == OTHER)
        return part == HEADS && s->file == 0 && s->kind == HEAD;
    if (!s->defines)
        return part == DECLARATIONS;
    if (part != (s->kind == VARIABLE ? VARIABLES : FUNCTIONS))
        return false;
    v = s->linkage == LOCAL ? NULL : br_map_get(&j->defined, s->name);
    return !v || v->u == at + 1;
}

static br_code
write(join *j)
{
    for (int part = HEADS; part <= FUNCTIONS; part++)
        for (size_t k = 0; k < j->all.n; k++) {
            const stmt *s = &j->all.at[k];

            if (!belongs(j, k, part))
                continue;
            if (part == DECLARATIONS && s->kind == VARIABLE && !s->shared &&
                !br_map_get(&j->defined, s->name))
                return br_fail(j->st, BR_E_FORMAT,
                               "no file defines the variable '%.*s'",
                               (int)BR_MIN(s->name.n, (size_t)80), s->name.p);
            emit(j, s);
        }
    return j->out->oom ? br_fail(j->st, BR_E_OOM, "out of memory") : BR_OK;
}

br_code
br_ptx_join(const br_text *files, size_t n, br_str *out, br_status *st)
{
    join j = {.out = out, .st = st};
    br_code code = BR_OK;

    if (n > BR_PTX_MAX_FILES)
        return br_fail(st, BR_E_LIMIT, "%zu files of PTX, over %d", n,
                       BR_PTX_MAX_FILES);
    j.local = br_try_calloc(BR_MAX(n, (size_t)1), sizeof *j.local);
    if (!j.local)
        return br_fail(st, BR_E_OOM, "out of memory");
    for (; j.file < n && code == BR_OK; j.file++)
        code = cut(&j, files[j.file]);
    for (size_t k = 0; k < j.all.n && code == BR_OK; k++)
        code = resolve(&j, k);
    if (code == BR_OK)
        code = write(&j);
    for (size_t k = 0; k < n; k++)
        br_map_fini(&j.local[k]);
    br_free(j.local);
    br_map_fini(&j.defined);
    br_vec_fini(&j.all);
    return code;
}

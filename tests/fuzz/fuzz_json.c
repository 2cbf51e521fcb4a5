/* fuzz_json.c - any bytes as a JSON document.
 *
 * Tree, pull reader and skip must give one verdict and one message, but where
 * a strict tree refuses a number that is Infinity. What parses is written in
 * four layouts that all read back to the same tree, and is built again by
 * hand. Memory keeps the bound that json.h states.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include <math.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
must_equal(const br_str *a, const br_str *b)
{
    br_check(!a->oom && !b->oom && a->n == b->n);
    br_check(a->n == 0 || memcmp(a->at, b->at, a->n) == 0);
}

static void
put_tree(br_str *out, const br_json *v, int indent, bool compact, bool utf8)
{
    br_json_writer w;

    br_str_clear(out);
    br_json_w_begin(&w, out, indent);
    w.compact = compact;
    w.utf8 = utf8;
    br_json_w_tree(&w, v);
    br_check(!w.replaced && "what was read is text");
}

/* ---- the reader alone ------------------------------------------------- */

/* Whether it is Infinity. */
static bool
check_number(br_json_tok tok, br_text t)
{
    double v, w;
    char b[32];
    int64_t i;

    if (tok != BR_JSON_INT && tok != BR_JSON_FLOAT)
        return false;
    br_check(br_json_to_f64(t, &v) && "a number token is a number");
    if (isfinite(v)) {
        br_check(br_json_to_f64((br_text){b, br_f64_repr(b, v)}, &w));
        br_check(memcmp(&v, &w, sizeof v) == 0 && "repr reads back");
    }
    if (br_json_to_i64(t, &i))
        br_check(tok == BR_JSON_INT && (double)i == v);
    return tok == BR_JSON_FLOAT && isinf(v);
}

static br_code
pull(br_text doc, int flags, bool *beyond, br_status *st)
{
    br_json_reader r;
    br_json_tok tok;
    int line, column, depth = 0;

    br_json_open(&r, doc.p, doc.n, flags, st);
    while ((tok = br_json_next(&r)) > BR_JSON_END) {
        depth += tok == BR_JSON_OBJ_OPEN || tok == BR_JSON_ARR_OPEN;
        depth -= tok == BR_JSON_OBJ_CLOSE || tok == BR_JSON_ARR_CLOSE;
        br_check(depth == r.depth && depth <= BR_JSON_MAX_DEPTH);
        br_check(r.begin <= r.at && r.at < r.p && r.p <= r.end);
        *beyond |= check_number(tok, r.text);
    }
    br_check(tok == BR_JSON_ERROR || (depth == 0 && r.at == r.end));
    br_json_where(&r, &line, &column);
    br_check(line >= 1 && column >= 1 && (size_t)line + column <= doc.n + 2);
    br_json_close(&r);
    return tok == BR_JSON_END ? BR_OK : st->code;
}

static br_code
skip(br_text doc, int flags, br_status *st)
{
    br_json_reader r;
    br_code code;

    br_json_open(&r, doc.p, doc.n, flags, st);
    code = br_json_skip(&r);
    if (code == BR_OK && br_json_next(&r) != BR_JSON_END)
        code = st->code;
    br_json_close(&r);
    return code;
}

/* ---- trees ------------------------------------------------------------ */

/* The same tree by the builders; not deeper than the reader allows. */
static br_json *
rebuild(br_arena *a, const br_json *v)
{
    const br_json *c;
    br_json *w;

    if (v->kind == BR_J_INT)
        return br_json_new_i64(a, v->i);
    if (v->kind == BR_J_FLOAT)
        return br_json_new_f64(a, v->f);
    if (v->kind == BR_J_STR)
        return br_json_new_str(a, (br_text){v->s, v->n});
    w = br_json_new(a, (br_json_kind)v->kind);
    if (v->kind == BR_J_BOOL)
        w->b = v->b;
    if (v->kind == BR_J_BIGINT) {
        w->s = v->s;
        w->n = v->n;
    }
    if (v->kind != BR_J_ARR && v->kind != BR_J_OBJ)
        return w;
    for (c = v->child; c; c = c->next)
        if (v->kind == BR_J_ARR) {
            br_check(br_json_append(w, rebuild(a, c)));
        } else { /* a key with a NUL inside cannot be put: keep its place */
            br_check(br_json_put(a, w, c->key, rebuild(a, c)));
            w->last->key = c->key;
            w->last->key_n = c->key_n;
        }
    return w;
}

static void
check_links(const br_json *v)
{
    const br_json *c, *last = NULL;
    uint32_t n = 0;

    br_check(br_json_kind_name((br_json_kind)v->kind)[0]);
    if (v->kind != BR_J_ARR && v->kind != BR_J_OBJ)
        return;
    for (c = v->child; c; last = c, c = c->next, n++) {
        if (v->kind == BR_J_OBJ && n < 40 && strlen(c->key) == c->key_n)
            br_check(br_json_get(v, c->key) == c && "keys are unique");
        else if (v->kind == BR_J_ARR && n < 40)
            br_check(br_json_at(v, n) == c);
        check_links(c);
    }
    br_check(v->last == last && v->n == n);
}

static void
check_tree(const br_json *v)
{
    static const struct {
        int indent;
        bool compact, utf8;
    } layouts[] = {
        {2, false, false},
        {0, false, true},
        {0, true, false},
        {1, true, true},
    };
    br_str first = {0}, text = {0}, again = {0};
    br_arena a;
    br_json *w;

    check_links(v);
    put_tree(&first, v, 2, false, false);
    for (size_t i = 0; i < BR_COUNT(layouts); i++) {
        br_arena_init(&a, 0);
        put_tree(&text, v, layouts[i].indent, layouts[i].compact,
                 layouts[i].utf8);
        br_check(br_json_parse(&w, &a, text.at, text.n, BR_JSON_LAX, NULL) ==
                 BR_OK);
        put_tree(&again, w, 2, false, false);
        must_equal(&first, &again);
        br_arena_fini(&a);
    }
    br_arena_init(&a, 0);
    put_tree(&again, rebuild(&a, v), 2, false, false);
    must_equal(&first, &again);
    br_arena_fini(&a);
    br_str_fini(&first);
    br_str_fini(&text);
    br_str_fini(&again);
}

static br_code
one(br_text doc, int flags)
{
    br_status st[3] = {0};
    br_code code;
    br_arena a;
    bool beyond = false;
    br_json *v;

    /* json.h promises this is enough; [[[[ unclosed takes twice as much. */
    br_arena_init(&a, 24 * (doc.n + BR_JSON_MAX_DEPTH) + 256);
    code = br_json_parse(&v, &a, doc.p, doc.n, flags, &st[0]);
    st[1].code = pull(doc, flags, &beyond, &st[1]);
    br_check(skip(doc, flags, &st[2]) == st[1].code);
    br_check(strcmp(st[1].msg, st[2].msg) == 0);
    if (beyond && !(flags & BR_JSON_LAX))
        br_check(code == BR_E_FORMAT && strstr(st[0].msg, "beyond 1.8e308"));
    else
        br_check(code == st[1].code && strcmp(st[0].msg, st[1].msg) == 0);
    br_check((code == BR_OK) == (v != NULL));
    br_check((code == BR_OK) == (st[0].msg[0] == 0));
    if (v)
        check_tree(v);
    br_arena_fini(&a);
    return code;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    br_text doc = {(const char *)data, size};
    br_code strict = one(doc, 0), lax = one(doc, BR_JSON_LAX);

    br_check((strict != BR_OK || lax == BR_OK) && "lax only adds");
    return 0;
}

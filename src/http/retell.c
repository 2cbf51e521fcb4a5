/* retell.c - see retell.h. What was streamed: wire_responses.c.
 * SPDX-License-Identifier: Apache-2.0 */
#include "http/retell.h"

#include "base/json.h"

#include <stdio.h>
#include <string.h>

#define PUT(out, lit) br_str_put((out), lit, sizeof(lit) - 1)

enum { TREE_BYTES = 256 << 20 }; /* of an answer of ours */

typedef struct teller {
    br_str *out;
    const br_json *root;
    br_arena mem;
    uint32_t n;     /* the next event's number */
    uint32_t index; /* of the item */
    const char *cut, *cut_end;
} teller;

/* A part of an item that is told in pieces. */
typedef struct told {
    const char *type; /* of its events */
    const br_json *item, *part;
    br_text text;
    const br_json *logprobs; /* NULL: it has none */
} told;

static bool
open_teller(teller *t, br_text answer, br_str *out)
{
    br_json *root;

    *t = (teller){.out = out};
    br_arena_init(&t->mem, TREE_BYTES);
    if (br_json_parse(&root, &t->mem, answer.p, answer.n, 0, NULL) != BR_OK ||
        root->kind != BR_J_OBJ) {
        br_arena_fini(&t->mem);
        return false;
    }
    t->root = root;
    return true;
}

static br_json_writer
writer(br_str *out)
{
    br_json_writer w;

    br_json_w_begin(&w, out, 0);
    w.compact = w.utf8 = true;
    return w;
}

static void
put_tree(teller *t, const br_json *v)
{
    br_json_writer w = writer(t->out);

    br_json_w_tree(&w, v);
}

static void
put_text(teller *t, br_text text)
{
    br_json_writer w = writer(t->out);

    br_json_w_str(&w, text.p ? text : BR_TEXT(""));
}

static void
event(teller *t, const char *type)
{
    br_str_printf(t->out,
                  "event: response.%s\ndata: {\"type\":\"response.%s\","
                  "\"sequence_number\":%u,",
                  type, type, t->n++);
}

/* ---- as it was when it began --------------------------------------------- */

typedef struct begun {
    const char *key, *was;
} begun;

static const begun response_begun[] = {{"error", "null"},
                                       {"incomplete_details", "null"},
                                       {"output", "[]"},
                                       {"usage", "null"}};
static const begun item_begun[] = {
    {"status", "\"in_progress\""}, {"content", "[]"}, {"arguments", "\"\""}};
static const begun part_begun[] = {{"text", "\"\""}, {"logprobs", "[]"}};

/* An object, but members that are named in `was` as they are there. */
static void
put_begun(teller *t, const br_json *obj, const begun *was, size_t n)
{
    br_json_writer w = writer(t->out);

    br_json_w_obj(&w);
    for (const br_json *m = obj->child; m; m = m->next) {
        const begun *b = was;

        while (b < was + n && !br_json_key_is(m, b->key))
            b++;
        br_json_w_key_n(&w, (br_text){m->key, m->key_n});
        if (b < was + n)
            br_json_w_raw(&w, br_text_z(b->was));
        else
            br_json_w_tree(&w, m);
    }
    br_json_w_obj_end(&w);
}

static void
put_response_begun(teller *t)
{
    const br_json *later = br_json_get(t->root, "background");
    begun was[BR_COUNT(response_begun) + 1];

    memcpy(was, response_begun, sizeof response_begun);
    was[BR_COUNT(response_begun)] =
        (begun){"status", later && later->kind == BR_J_BOOL && later->b
                              ? "\"queued\""
                              : "\"in_progress\""};
    put_begun(t, t->root, was, BR_COUNT(was));
}

bool
br_retell_begin(br_text answer, br_str *out)
{
    static const char *const types[BR_RETELL_BEGINNING] = {"created",
                                                           "in_progress"};
    teller t;

    if (!open_teller(&t, answer, out))
        return false;
    for (size_t i = 0; i < BR_COUNT(types); i++) {
        event(&t, types[i]);
        PUT(out, "\"response\":");
        put_response_begun(&t);
        PUT(out, "}\n\n");
    }
    br_arena_fini(&t.mem);
    return !out->oom;
}

/* ---- pieces -------------------------------------------------------------- */

static bool
number(teller *t, size_t *out)
{
    const char *at = t->cut;

    *out = 0;
    for (; t->cut < t->cut_end && *t->cut >= '0' && *t->cut <= '9'; t->cut++) {
        if (*out > UINT32_MAX)
            return false;
        *out = *out * 10 + (size_t)(*t->cut - '0');
    }
    return t->cut > at;
}

static bool
is_inside(br_text text, size_t at)
{
    return at < text.n && ((uint8_t)text.p[at] & 0xc0) == 0x80;
}

/* The next piece of `rest`: all of it where no cut says other. */
static void
next_cut(teller *t, br_text rest, size_t *bytes, size_t *rows)
{
    bool is = number(t, bytes);

    *rows = 0;
    if (is && t->cut < t->cut_end && *t->cut == ':') {
        t->cut++;
        is = number(t, rows);
    }
    is = is && t->cut < t->cut_end && *t->cut++ == ',';
    if (is && *bytes <= rest.n && !is_inside(rest, *bytes))
        return;
    t->cut = t->cut_end;
    *bytes = rest.n;
    *rows = SIZE_MAX;
}

static void
place(teller *t, const told *p)
{
    PUT(t->out, "\"item_id\":");
    put_text(t, br_json_get_word(p->item, "id"));
    br_str_printf(t->out, ",\"output_index\":%u,", t->index);
    if (p->part)
        PUT(t->out, "\"content_index\":0,");
}

static const br_json *
put_rows(teller *t, const br_json *row, size_t n)
{
    PUT(t->out, "\"logprobs\":[");
    for (size_t i = 0; row && i < n; i++, row = row->next) {
        if (i)
            PUT(t->out, ",");
        put_tree(t, row);
    }
    PUT(t->out, "],");
    return row;
}

static void
tell_pieces(teller *t, const told *p)
{
    const br_json *row = p->logprobs ? p->logprobs->child : NULL;
    br_text rest = p->text;
    char type[64];

    (void)snprintf(type, sizeof type, "%s.delta", p->type);
    while (rest.n) {
        size_t bytes, rows;

        next_cut(t, rest, &bytes, &rows);
        event(t, type);
        place(t, p);
        if (p->logprobs)
            row = put_rows(t, row, rows);
        PUT(t->out, "\"delta\":");
        put_text(t, (br_text){rest.p, bytes});
        PUT(t->out, "}\n\n");
        rest.p += bytes;
        rest.n -= bytes;
    }
}

static void
tell_done(teller *t, const told *p)
{
    char type[64];

    (void)snprintf(type, sizeof type, "%s.done", p->type);
    event(t, type);
    place(t, p);
    if (!p->part) {
        PUT(t->out, "\"name\":");
        put_text(t, br_json_get_word(p->item, "name"));
        PUT(t->out, ",\"arguments\":");
    } else {
        if (p->logprobs)
            (void)put_rows(t, p->logprobs->child, SIZE_MAX);
        PUT(t->out, "\"text\":");
    }
    put_text(t, p->text);
    PUT(t->out, "}\n\n");
}

/* ---- items --------------------------------------------------------------- */

static void
part_event(teller *t, const char *type, const told *p, bool is_begun)
{
    event(t, type);
    place(t, p);
    PUT(t->out, "\"part\":");
    if (is_begun)
        put_begun(t, p->part, part_begun, BR_COUNT(part_begun));
    else
        put_tree(t, p->part);
    PUT(t->out, "}\n\n");
}

static void
item_event(teller *t, const char *type, const br_json *item, bool is_begun)
{
    event(t, type);
    br_str_printf(t->out, "\"output_index\":%u,\"item\":", t->index);
    if (is_begun)
        put_begun(t, item, item_begun, BR_COUNT(item_begun));
    else
        put_tree(t, item);
    PUT(t->out, "}\n\n");
}

static told
look_at(const br_json *item)
{
    const br_json *content = br_json_get(item, "content");
    told p = {.item = item};

    if (content && content->kind == BR_J_ARR && content->child &&
        content->child->kind == BR_J_OBJ)
        p.part = content->child;
    if (!p.part) {
        p.type = "function_call_arguments";
        p.text = br_json_get_text(item, "arguments");
        return p;
    }
    p.text = br_json_get_text(p.part, "text");
    p.type = br_text_is(br_json_get_word(item, "type"), "reasoning")
                 ? "reasoning_text"
                 : "output_text";
    p.logprobs = br_json_get(p.part, "logprobs");
    if (p.logprobs && p.logprobs->kind != BR_J_ARR)
        p.logprobs = NULL;
    return p;
}

static void
tell_item(teller *t, const br_json *item)
{
    told p = look_at(item);

    item_event(t, "output_item.added", item, true);
    if (p.part)
        part_event(t, "content_part.added", &p, true);
    tell_pieces(t, &p);
    tell_done(t, &p);
    if (p.part)
        part_event(t, "content_part.done", &p, false);
    item_event(t, "output_item.done", item, false);
}

/* Not below what is told already. */
static void
skip_to_failure(teller *t)
{
    const char *mark = memchr(t->cut, '#', (size_t)(t->cut_end - t->cut));
    size_t n;

    if (!mark)
        return;
    t->cut = mark + 1;
    if (number(t, &n) && n <= UINT32_MAX)
        t->n = BR_MAX(t->n, (uint32_t)n);
}

bool
br_retell_rest(br_text answer, br_text cuts, br_str *out, bool *fails)
{
    const br_json *list;
    br_text status;
    teller t;

    if (!open_teller(&t, answer, out))
        return false;
    t.n = BR_RETELL_BEGINNING;
    t.cut = cuts.n ? cuts.p : "";
    t.cut_end = t.cut + cuts.n;
    list = br_json_get(t.root, "output");
    for (const br_json *i = list && list->kind == BR_J_ARR ? list->child : NULL;
         i; i = i->next, t.index++)
        if (i->kind == BR_J_OBJ)
            tell_item(&t, i);
    status = br_json_get_word(t.root, "status");
    *fails =
        !br_text_is(status, "completed") && !br_text_is(status, "incomplete");
    skip_to_failure(&t);
    event(&t, *fails                            ? "failed"
              : br_text_is(status, "completed") ? "completed"
                                                : "incomplete");
    PUT(out, "\"response\":");
    put_tree(&t, t.root);
    PUT(out, "}\n\n");
    br_arena_fini(&t.mem);
    return !out->oom;
}

/* conversation.c - talks that have a name (run/talks.h).
 *
 *   POST /v1/conversations       --> a row: its items are the input, what it is
 *                                    called is the answer
 *   POST /v1/responses that says --> its items come before the input; when the
 *   "conversation"                   answer has ended both are added to it
 *
 * All its items are one text: a talk has as many bytes as a body may. It is kept
 * for as long as a response, since it was added to last. Changes are done to
 * what is there when they are written, so two servers may add at one time.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "http/gen.h"

#include "base/log.h"
#include "base/thread.h"

#include <stdio.h>
#include <string.h>

#define PUT(out, lit) br_str_put((out), lit, sizeof(lit) - 1)

enum {
    PAGE = 20, /* items of an answer, where nothing is said */
    MOST_PAGE = 100,
};

/* ---- rows ---------------------------------------------------------------- */

static br_code
get(br_http *h, uint32_t tenant, br_text id, br_turn_kept *t, br_status *st)
{
    char z[BR_TALK_ID] = "";

    if (!h->talks)
        return br_fail(st, BR_E_NOT_FOUND,
                       "this server keeps no conversations (brass serve "
                       "--responses FILE)");
    if (id.n < sizeof z && id.n > 5 && memcmp(id.p, "conv_", 5) == 0) {
        memcpy(z, id.p, id.n);
        if (br_talks_get(h->talks, tenant, z, t, st) == BR_OK)
            return BR_OK;
        if (st->code != BR_E_NOT_FOUND)
            return st->code;
        *st = (br_status){0}; /* that speaks of a response */
    }
    return br_fail(st, BR_E_NOT_FOUND, "no conversation '%.*s' is kept",
                   (int)BR_MIN(id.n, (size_t)80), id.p);
}

/* What a failure to change a row means to clients. */
static br_code
changed(br_code code, br_status *st)
{
    if (code == BR_OK || code == BR_E_USAGE)
        return code;
    *st = (br_status){0};
    return br_fail(st, BR_E_BUSY, "conversations cannot be changed just now");
}

/* Whether it has room for so many bytes of items. */
static br_code
check_room(const br_http *h, size_t n, br_status *st)
{
    return n <= h->config.limits.body_bytes
               ? BR_OK
               : br_fail(st, BR_E_USAGE, "the conversation has over %zu bytes",
                         h->config.limits.body_bytes);
}

/* A new one. items: without brackets. */
static br_code
put(br_http *h, br_turn_kept *t, br_str *items, br_status *st)
{
    br_str list = {0};
    bool kept;

    BR_TRY(check_room(h, items->n, st));
    PUT(&list, "[");
    br_str_put(&list, br_str_z(items), items->n);
    PUT(&list, "]");
    t->input = (br_text){br_str_z(&list), list.n};
    t->output = BR_TEXT("[]");
    t->created_ms = br_wall_ns() / 1000000;
    kept = !list.oom && !items->oom && br_talks_put(h->talks, t);
    br_str_fini(&list);
    return changed(kept ? BR_OK : BR_E_BUSY, st);
}

/* list: with brackets. */
static br_code
add(br_http *h, const br_turn_kept *t, const br_str *list, br_status *st)
{
    BR_TRY(check_room(h, t->input.n + list->n, st));
    if (list->oom)
        return changed(BR_E_OOM, st);
    return changed(br_talks_add(h->talks, t->tenant, t->id,
                                (br_text){list->at, list->n}, st),
                   st);
}

/* Of what was read before. */
static br_code
parse(br_text text, br_arena *a, br_json **out, br_status *st)
{
    br_arena_init(a, BR_MIN((size_t)BR_ASK_MAX_TREE,
                            text.n * BR_ASK_TREE_FACTOR + 65536));
    return br_json_parse(out, a, text.p, text.n, 0, st);
}

/* "[a,b]" behind what is there. */
static void
add_list(br_str *items, br_text list)
{
    if (list.n <= 2)
        return;
    if (items->n)
        PUT(items, ",");
    br_str_put(items, list.p + 1, list.n - 2);
}

/* ---- items --------------------------------------------------------------- */

static void
put_id(const char *prefix, br_json_writer *w)
{
    char id[40];
    uint8_t r[12];
    size_t n;

    br_os_random(r, sizeof r);
    n = (size_t)snprintf(id, sizeof id, "%s", prefix);
    br_hex(r, sizeof r, id + n);
    br_json_w_key_strz(w, "id", id);
}

/* A text as the list of parts that it stands for. */
static void
put_content(const br_json *v, bool assistant, br_json_writer *w)
{
    br_json_w_key(w, "content");
    if (v->kind != BR_J_STR) {
        br_json_w_tree(w, v);
        return;
    }
    br_json_w_arr(w);
    br_json_w_obj(w);
    br_json_w_key_strz(w, "type", assistant ? "output_text" : "input_text");
    br_json_w_key(w, "text");
    br_json_w_str(w, (br_text){v->s, v->n});
    if (assistant) {
        br_json_w_key(w, "annotations");
        br_json_w_arr(w);
        br_json_w_arr_end(w);
    }
    br_json_w_obj_end(w);
    br_json_w_arr_end(w);
}

/* With what such an item has when it is told: a type, an id, a status. */
static void
put_item(const br_json *v, br_json_writer *w)
{
    const br_json *role = br_json_get(v, "role"),
                  *type = br_json_get(v, "type");
    bool message = !type || br_ask_is_type(v, "message");

    br_json_w_obj(w);
    if (!type)
        br_json_w_key_strz(w, "type", "message");
    if (!br_json_get(v, "id"))
        put_id(message ? "msg_" : "item_", w);
    if (!br_json_get(v, "status"))
        br_json_w_key_strz(w, "status", "completed");
    for (const br_json *m = v->child; m; m = m->next)
        if (message && br_json_key_is(m, "content"))
            put_content(m, role && br_json_is(role, "assistant"), w);
        else {
            br_json_w_key_n(w, (br_text){m->key, m->key_n});
            br_json_w_tree(w, m);
        }
    br_json_w_obj_end(w);
}

void
br_items_tell(const br_json *list, br_str *out)
{
    for (const br_json *v = list->child; v; v = v->next) {
        br_json_writer w;

        if (out->n && out->at[out->n - 1] != '[')
            PUT(out, ",");
        br_json_w_begin(&w, out, 0);
        w.compact = w.utf8 = true;
        put_item(v, &w);
    }
}

/* Whether a response could begin with them: else each would fail later. */
static br_code
check_items(br_http *h, const br_json *list, br_status *st)
{
    static const char in[] = "input"; /* so a response calls them */
    char why[sizeof st->msg];
    br_json_writer w;
    br_str body = {0};
    br_code code = BR_OK;
    br_ask a;

    if (list->kind != BR_J_ARR)
        return br_fail(st, BR_E_USAGE, "items: must be a list");
    if (!list->n)
        return BR_OK;
    br_json_w_begin(&w, &body, 0);
    br_json_w_obj(&w);
    br_json_w_key(&w, "input");
    br_json_w_tree(&w, list);
    br_json_w_obj_end(&w);
    if (body.oom)
        code = br_fail(st, BR_E_OOM, "out of memory");
    else {
        code = br_ask_read(&a, BR_API_RESPONSES, &h->config.sample,
                           (br_text){body.at, body.n}, st);
        br_ask_fini(&a);
    }
    br_str_fini(&body);
    if (code == BR_OK || strncmp(st->msg, in, sizeof in - 1) != 0)
        return code == BR_OK ? code : br_prefix(st, "items");
    (void)snprintf(why, sizeof why, "items%.400s", st->msg + sizeof in - 1);
    *st = (br_status){0};
    return br_fail(st, code, "%s", why);
}

/* ---- with a response ----------------------------------------------------- */

br_code
br_conversation_items(br_http *h, uint32_t tenant, const char *id, br_str *out,
                      br_status *st)
{
    br_turn_kept t;

    BR_TRY(get(h, tenant, br_text_z(id), &t, st));
    add_list(out, t.input);
    return out->oom ? br_fail(st, BR_E_OOM, "out of memory") : BR_OK;
}

void
br_conversation_add(br_gen *g)
{
    static br_log_limit limit = {.every_ns = INT64_C(60000000000), .burst = 1};
    br_str items = {0}, output = {0}, all = {0};
    br_turn_kept t;
    br_status st = {0};
    br_code code =
        get(g->h, g->tenant, br_text_z(br_str_z(&g->ask.talk)), &t, &st);

    if (code == BR_OK) {
        add_list(&items, (br_text){br_str_z(&g->ask.items), g->ask.items.n});
        br_responses_whole(g, true, NULL, &output, &all);
        add_list(&items, (br_text){br_str_z(&output), output.n});
        items.oom |= output.oom;
        br_str_clear(&output);
        br_str_printf(&output, "[%s]", br_str_z(&items));
        output.oom |= items.oom;
        code = add(g->h, &t, &output, &st);
    }
    if (code != BR_OK && code != BR_E_NOT_FOUND) /* deleted meanwhile */
        br_log_limited(&limit, BR_EV_talks_full, "%s: %s", g->id, st.msg);
    br_str_fini(&items);
    br_str_fini(&output);
    br_str_fini(&all);
}

/* ---- /v1/conversations --------------------------------------------------- */

/* The conversation's id in the path, up to the next slash. */
static br_text
id_of(const br_http_conn *c)
{
    static const char before[] = "/v1/conversations/";
    br_text is = {c->in.path.p + sizeof before - 1,
                  c->in.path.n - (sizeof before - 1)};
    const char *slash = memchr(is.p, '/', is.n);

    is.n = slash ? (size_t)(slash - is.p) : is.n;
    return is;
}

/* What is wrong with a field begins with its name. */
static void
refuse(br_http *h, br_http_conn *c, const br_status *st)
{
    int status =
        st->code == BR_E_NOT_FOUND ? 404
        : st->code == BR_E_BUSY || st->code == BR_E_OOM || st->code == BR_E_IO
            ? 503
            : 400;
    size_t n = strcspn(st->msg, ":.[ ");
    char param[64];

    (void)snprintf(param, sizeof param, "%.*s", (int)n, st->msg);
    br_reply_error(h, c, status,
                   status == 400 && st->msg[n] != ' ' ? param : NULL, st->msg);
}

/* What was made, or what st says is wrong; out is empty afterwards. */
static void
answer(br_http *h, br_http_conn *c, br_str *out, const br_status *st)
{
    if (st->code == BR_OK) {
        br_reply_json(h, c, out);
        return;
    }
    br_str_fini(out);
    refuse(h, c, st);
}

static bool
load(br_http *h, br_http_conn *c, br_turn_kept *t)
{
    br_status st = {0};

    if (get(h, c->tenant, id_of(c), t, &st) == BR_OK)
        return true;
    if (st.code != BR_E_NOT_FOUND)
        snprintf(st.msg, sizeof st.msg,
                 "conversations cannot be read just now");
    refuse(h, c, &st);
    return false;
}

static void
put_object(const char *id, int64_t created, const br_json *metadata,
           br_str *out)
{
    br_json_writer w;

    br_json_w_begin(&w, out, 0);
    w.compact = w.utf8 = true;
    br_json_w_obj(&w);
    br_json_w_key_strz(&w, "id", id);
    br_json_w_key_strz(&w, "object", "conversation");
    br_json_w_key_i64(&w, "created_at", created);
    br_json_w_key(&w, "metadata");
    if (metadata && metadata->kind == BR_J_OBJ)
        br_json_w_tree(&w, metadata);
    else {
        br_json_w_obj(&w);
        br_json_w_obj_end(&w);
    }
    br_json_w_obj_end(&w);
}

/* Of a body that is empty or has no others. */
static br_code
known_members(const br_json *root, const char *a, const char *b, br_status *st)
{
    for (const br_json *m = root->child; m; m = m->next)
        if (!br_json_key_is(m, a) && !br_json_key_is(m, b))
            return br_fail(st, BR_E_USAGE,
                           "%.60s: this server does not know the field",
                           m->key);
        else if (br_json_key_is(m, "metadata") && m->kind != BR_J_OBJ &&
                 m->kind != BR_J_NULL)
            return br_fail(st, BR_E_USAGE, "metadata: must be an object");
    return BR_OK;
}

void
br_on_conversations(br_http *h, br_http_conn *c)
{
    br_turn_kept t = {.tenant = c->tenant};
    const br_json *root, *items;
    br_str list = {0}, out = {0};
    br_status st = {0};
    br_code code;
    br_arena a;
    uint8_t r[12];

    if (!h->talks) {
        br_reply_error(h, c, 404, NULL,
                       "this server keeps no conversations (brass serve "
                       "--responses FILE)");
        return;
    }
    if (!c->in.body.n)
        br_str_puts(&c->in.body, "{}");
    if (!br_body_object(h, c, &a, &root))
        return;
    items = br_json_get(root, "items");
    code = known_members(root, "items", "metadata", &st);
    if (code == BR_OK && items && items->kind != BR_J_NULL) {
        code = check_items(h, items, &st);
        if (code == BR_OK)
            br_items_tell(items, &list);
    }
    br_os_random(r, sizeof r);
    memcpy(t.id, "conv_", 5);
    br_hex(r, sizeof r, t.id + 5);
    put_object(t.id, br_wall_ns() / 1000000000, br_json_get(root, "metadata"),
               &out);
    t.answer = (br_text){br_str_z(&out), out.n};
    if (code == BR_OK)
        code = put(h, &t, &list, &st);
    br_arena_fini(&a);
    br_str_fini(&list);
    answer(h, c, &out, &st);
}

void
br_on_conversation(br_http *h, br_http_conn *c)
{
    br_str out = {0};
    br_turn_kept t;

    if (!load(h, c, &t))
        return;
    br_str_put(&out, t.answer.p, t.answer.n);
    br_reply_json(h, c, &out);
}

/* Its metadata, all of them. */
void
br_on_conversation_set(br_http *h, br_http_conn *c)
{
    br_json *was = NULL;
    const br_json *root, *created;
    br_str out = {0};
    br_status st = {0};
    br_turn_kept t;
    br_code code;
    br_arena a, b;

    if (!load(h, c, &t) || !br_body_object(h, c, &a, &root))
        return;
    code = parse(t.answer, &b, &was, &st);
    if (code == BR_OK)
        code = known_members(root, "metadata", "", &st);
    if (code == BR_OK) {
        created = br_json_get(was, "created_at");
        put_object(t.id, created && created->kind == BR_J_INT ? created->i : 0,
                   br_json_get(root, "metadata"), &out);
        code = changed(out.oom ? BR_E_OOM
                               : br_talks_name(h->talks, t.tenant, t.id,
                                               (br_text){out.at, out.n}, &st),
                       &st);
    }
    br_arena_fini(&a);
    br_arena_fini(&b);
    answer(h, c, &out, &st);
}

void
br_on_conversation_drop(br_http *h, br_http_conn *c)
{
    br_status st = {0};
    br_str out = {0};
    br_turn_kept t;

    if (!load(h, c, &t))
        return;
    if (br_talks_drop(h->talks, c->tenant, t.id, &st) != BR_OK) {
        refuse(h, c, &st);
        return;
    }
    br_str_printf(
        &out,
        "{\"id\":\"%s\",\"object\":\"conversation.deleted\",\"deleted\":true}",
        t.id);
    br_reply_json(h, c, &out);
}

/* ---- /v1/conversations/{id}/items ---------------------------------------- */

static bool
has_id(const br_json *v, br_text id)
{
    const br_json *is = br_json_get(v, "id");

    return is && is->kind == BR_J_STR && is->n == id.n &&
           memcmp(is->s, id.p, id.n) == 0;
}

typedef struct rows {
    const br_json **at;
    int64_t n;
} rows;

/* The items of a list as an array, for those that are told backwards. */
static br_code
rows_of(br_text list, br_arena *a, rows *r, br_status *st)
{
    br_json *root;

    *r = (rows){0};
    BR_TRY(parse(list, a, &root, st));
    if (root->kind != BR_J_ARR) /* the file may be anybody's */
        return br_fail(st, BR_E_IO, "what is kept is no list of items");
    r->at = br_arena_new(a, const br_json *, root->n + 1);
    if (!r->at)
        return br_fail(st, BR_E_OOM, "out of memory");
    for (const br_json *v = root->child; v; v = v->next)
        r->at[r->n++] = v;
    return BR_OK;
}

/* Items `from` up to `to`, backwards where those are. */
static void
put_page(const rows *r, int64_t from, int64_t to, bool more, br_str *out)
{
    int step = from <= to ? 1 : -1;
    const char *first = "", *last = "";
    br_json_writer w;

    br_json_w_begin(&w, out, 0);
    w.compact = w.utf8 = true;
    br_json_w_obj(&w);
    br_json_w_key_strz(&w, "object", "list");
    br_json_w_key(&w, "data");
    br_json_w_arr(&w);
    for (int64_t i = from; i != to; i += step) {
        const br_json *id = br_json_get(r->at[i], "id");

        br_json_w_tree(&w, r->at[i]);
        last = id && id->kind == BR_J_STR ? id->s : "";
        first = i == from ? last : first;
    }
    br_json_w_arr_end(&w);
    br_json_w_key_strz(&w, "first_id", first);
    br_json_w_key_strz(&w, "last_id", last);
    br_json_w_key(&w, "has_more");
    br_json_w_bool(&w, more);
    br_json_w_obj_end(&w);
}

static br_code
page(const br_http_conn *c, const rows *r, br_str *out, br_status *st)
{
    br_text limit = br_query_of(c, "limit"), order = br_query_of(c, "order"),
            after = br_query_of(c, "after");
    bool up = order.n && br_text_is(order, "asc");
    int64_t most = PAGE, from = up ? 0 : r->n - 1, left;

    if (limit.n &&
        (!br_json_to_i64(limit, &most) || most < 1 || most > MOST_PAGE))
        return br_fail(st, BR_E_USAGE, "limit: must be a number from 1 to %d",
                       MOST_PAGE);
    if (order.n && !up && !br_text_is(order, "desc"))
        return br_fail(st, BR_E_USAGE, "order: must be asc or desc");
    if (after.n) {
        int64_t i = 0;

        while (i < r->n && !has_id(r->at[i], after))
            i++;
        if (i == r->n)
            return br_fail(st, BR_E_USAGE, "after: no item has that id");
        from = up ? i + 1 : i - 1;
    }
    left = up ? r->n - from : from + 1;
    most = BR_MIN(most, left);
    put_page(r, from, up ? from + most : from - most, left > most, out);
    return BR_OK;
}

void
br_items_page(br_http *h, br_http_conn *c, br_text items)
{
    br_status st = {0};
    br_str out = {0};
    br_code code;
    br_arena a;
    rows r;

    code = rows_of(items, &a, &r, &st);
    if (code == BR_OK)
        code = page(c, &r, &out, &st);
    br_arena_fini(&a);
    answer(h, c, &out, &st);
}

void
br_on_conversation_items(br_http *h, br_http_conn *c)
{
    br_turn_kept t;

    if (load(h, c, &t))
        br_items_page(h, c, t.input);
}

void
br_on_conversation_add(br_http *h, br_http_conn *c)
{
    br_str more = {0}, out = {0};
    const br_json *root, *list;
    br_status st = {0};
    br_turn_kept t;
    br_code code;
    br_arena a, b;
    rows r;

    if (!load(h, c, &t) || !br_body_object(h, c, &a, &root))
        return;
    list = br_json_get(root, "items");
    code = known_members(root, "items", "", &st);
    if (code == BR_OK)
        code = list && list->kind == BR_J_ARR && list->n
                   ? check_items(h, list, &st)
                   : br_fail(&st, BR_E_USAGE, "items: missing or empty");
    if (code == BR_OK) {
        PUT(&more, "[");
        br_items_tell(list, &more);
        PUT(&more, "]");
        code = add(h, &t, &more, &st);
    }
    br_arena_fini(&a);
    if (code == BR_OK) {
        code = rows_of((br_text){br_str_z(&more), more.n}, &b, &r, &st);
        if (code == BR_OK)
            put_page(&r, 0, r.n, false, &out);
        br_arena_fini(&b);
    }
    br_str_fini(&more);
    answer(h, c, &out, &st);
}

/* One of them, told or taken out. */
static void
one_item(br_http *h, br_http_conn *c, bool drop)
{
    const char *slash = memrchr(c->in.path.p, '/', c->in.path.n);
    br_text id = {slash + 1, c->in.path.n - (size_t)(slash + 1 - c->in.path.p)};
    br_str out = {0};
    br_status st = {0};
    br_turn_kept t;
    br_code code;
    br_arena a;
    bool found = false;
    rows r;

    if (!load(h, c, &t))
        return;
    code = rows_of(t.input, &a, &r, &st);
    for (int64_t i = 0; i < r.n && !found; i++) {
        br_json_writer w;

        if (!has_id(r.at[i], id))
            continue;
        found = true;
        br_json_w_begin(&w, &out, 0);
        w.compact = w.utf8 = true;
        br_json_w_tree(&w, r.at[i]);
    }
    br_arena_fini(&a);
    if (code == BR_OK && !found)
        code =
            br_fail(&st, BR_E_NOT_FOUND, "the conversation has no such item");
    if (code == BR_OK && drop) {
        br_str_clear(&out);
        br_str_put(&out, t.answer.p, t.answer.n);
        code = changed(br_talks_cut(h->talks, t.tenant, t.id, id, &st), &st);
    }
    answer(h, c, &out, &st);
}

void
br_on_conversation_item(br_http *h, br_http_conn *c)
{
    one_item(h, c, false);
}

void
br_on_conversation_item_drop(br_http *h, br_http_conn *c)
{
    one_item(h, c, true);
}

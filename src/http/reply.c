/* reply.c - answers that are one JSON document, errors above all.
 * SPDX-License-Identifier: Apache-2.0 */
#include "http/gen.h"

#include <stdio.h>
#include <string.h>

/* What the APIs call it. retry: worth trying again later. */
static const struct kind {
    int status;
    const char *openai, *anthropic;
    bool retry;
} kinds[] = {
#define X(status, openai, anthropic, retry) {status, openai, anthropic, retry},
#include "http/error_kind.def"
#undef X
};

static const struct kind *
kind_of(int status)
{
    size_t i = 0;

    while (i + 1 < BR_COUNT(kinds) && kinds[i].status != status)
        i++;
    return &kinds[i];
}

bool
br_is_anthropic(const br_http_conn *c)
{
    return c->in.path.n >= 12 && memcmp(c->in.path.p, "/v1/messages", 12) == 0;
}

static void
put_pair(br_json_writer *w, const char *key, const char *value)
{
    br_json_w_key(w, key);
    if (value)
        br_json_w_strz(w, value);
    else
        br_json_w_null(w);
}

void
br_error_json(br_str *out, bool anthropic, const br_error *e)
{
    const struct kind *k = kind_of(e->status);
    br_json_writer w;

    br_json_w_begin(&w, out, 0);
    w.compact = true;
    br_json_w_obj(&w);
    if (anthropic)
        put_pair(&w, "type", "error");
    br_json_w_key(&w, "error");
    br_json_w_obj(&w);
    put_pair(&w, "type", anthropic ? k->anthropic : k->openai);
    put_pair(&w, "message", e->msg);
    if (!anthropic) {
        put_pair(&w, "param", e->param);
        put_pair(&w, "code", e->code);
    }
    br_json_w_obj_end(&w);
    br_json_w_obj_end(&w);
}

void
br_reply_fail(br_http *h, br_http_conn *c, const br_error *e)
{
    char more[40] = "";
    br_str s = {0};

    if (kind_of(e->status)->retry) {
        uint32_t ms = h->model ? br_engine_retry_ms(h->model->m.engine) : 1000;

        snprintf(more, sizeof more, "Retry-After: %u\r\n", (ms + 999) / 1000);
    } else if (e->status == 401) { /* RFC 9110, 15.5.2 */
        snprintf(more, sizeof more, "WWW-Authenticate: Bearer\r\n");
    }
    br_error_json(&s, br_is_anthropic(c), e);
    br_http_answer(c, e->status, "application/json", more,
                   (br_text){br_str_z(&s), s.n});
    br_str_fini(&s);
    br_metrics_answer(&h->metrics, e->status);
}

void
br_reply_error(br_http *h, br_http_conn *c, int status, const char *param,
               const char *msg)
{
    br_reply_fail(h, c, &(br_error){status, msg, param, NULL});
}

void
br_reply_status(br_http *h, br_http_conn *c, const br_status *st,
                const char *param)
{
    br_error e = {br_code_http(st->code), st->msg, param, NULL};

    if (st->code == BR_E_LIMIT) { /* in these APIs a bad request */
        e.status = 400;
        e.code = "context_length_exceeded";
    } else if (st->code == BR_E_NOT_FOUND) {
        e.code = "model_not_found";
    }
    br_reply_fail(h, c, &e);
}

void
br_reply_json(br_http *h, br_http_conn *c, br_str *out)
{
    if (out->oom) {
        br_reply_error(h, c, 503, NULL, "out of memory");
    } else {
        br_http_answer(c, 200, "application/json", NULL,
                       (br_text){br_str_z(out), out->n});
        br_metrics_answer(&h->metrics, 200);
    }
    br_str_fini(out);
}

void
br_reply_list(br_json_writer *w, br_str *out)
{
    br_json_w_begin(w, out, 0);
    w->compact = true;
    br_json_w_obj(w);
    br_json_w_key_strz(w, "object", "list");
    br_json_w_key(w, "data");
    br_json_w_arr(w);
}

void
br_reply_list_end(br_http *h, br_http_conn *c, br_json_writer *w, br_str *out)
{
    br_json_w_arr_end(w);
    br_json_w_obj_end(w);
    br_reply_json(h, c, out);
}

bool
br_body_object(br_http *h, br_http_conn *c, br_arena *a, const br_json **out)
{
    const br_str *body = &c->in.body;
    br_status st = {0};
    br_json *root = NULL;

    br_arena_init(a, BR_MIN((size_t)BR_ASK_MAX_TREE,
                            body->n * BR_ASK_TREE_FACTOR + 65536));
    if (br_json_parse(&root, a, body->n ? body->at : "", body->n, 0, &st) !=
        BR_OK)
        br_reply_status(h, c, &st, NULL);
    else if (root->kind != BR_J_OBJ)
        br_reply_error(h, c, 400, NULL, "the body is not a JSON object");
    else {
        *out = root;
        return true;
    }
    br_arena_fini(a);
    return false;
}

br_text
br_query_of(const br_http_conn *c, const char *name)
{
    const char *at = c->in.query.p, *end = at + c->in.query.n;
    size_t n = strlen(name);

    while (at < end) {
        const char *amp = memchr(at, '&', (size_t)(end - at));
        const char *to = amp ? amp : end;

        if ((size_t)(to - at) > n && memcmp(at, name, n) == 0 && at[n] == '=')
            return (br_text){at + n + 1, (size_t)(to - at) - n - 1};
        at = to + 1;
    }
    return (br_text){0};
}

/* ---- small pieces -------------------------------------------------------- */

void
br_put_json(br_str *out, br_text t)
{
    br_json_writer w;

    br_json_w_begin(&w, out, 0);
    w.utf8 = true;
    br_json_w_str(&w, t);
}

void
br_put_jsonz(br_str *out, const char *z)
{
    br_put_json(out, br_text_z(z));
}

void
br_put_u64(br_str *out, uint64_t v)
{
    char b[20], *p = b + sizeof b;

    do
        *--p = (char)('0' + v % 10);
    while (v /= 10);
    br_str_put(out, p, (size_t)(b + sizeof b - p));
}

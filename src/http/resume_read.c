/* resume_read.c - see resume.h. The file may be anybody's: nothing in it is
 * believed.
 * SPDX-License-Identifier: Apache-2.0 */
#include "http/resume.h"

#include "base/log.h"

#include <string.h>

static const struct kind {
    const char *path;
    const br_wire *wire;
} kinds[] = {
    {"/v1/chat/completions", &br_wire_chat},
    {"/v1/completions", &br_wire_text},
    {"/v1/messages", &br_wire_messages},
    {"/v1/responses", &br_wire_responses},
};

const char *
br_resume_path(const br_wire *wire)
{
    size_t k = 0;

    while (kinds[k].wire != wire)
        k++;
    return kinds[k].path;
}

static bool
number_of(const br_json *root, const char *key, int64_t most, int64_t *out)
{
    const br_json *v = br_json_get(root, key);

    *out = v && v->kind == BR_J_INT ? v->i : -1;
    return *out >= 0 && *out <= most;
}

/* It is written into answers as it is. */
static bool
is_id(const char *id)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";

    return id && id[0] && strlen(id) < sizeof((br_gen *)0)->id &&
           !id[strspn(id, letters)];
}

static bool
are_tokens(const br_json *v)
{
    if (!v || v->kind != BR_J_ARR)
        return false;
    for (const br_json *c = v->child; c; c = c->next) {
        if (c->kind != BR_J_ARR)
            return false;
        for (const br_json *t = c->child; t; t = t->next)
            if (t->kind != BR_J_INT || t->i < 0 || t->i > INT32_MAX)
                return false;
    }
    return true;
}

static bool
are_counts(const br_json *v)
{
    if (v && v->kind != BR_J_ARR)
        return false;
    for (const br_json *n = v ? v->child : NULL; n; n = n->next)
        if (n->kind != BR_J_INT || n->i < 0 || n->i > INT32_MAX)
            return false;
    return true;
}

static bool
is_turn(const br_wire *wire, const br_json *v)
{
    const br_json *items = v ? br_json_get(v, "items") : NULL;

    if (!v)
        return true;
    if (wire != &br_wire_responses || !items || items->kind != BR_J_ARR)
        return false;
    for (const br_json *i = items->child; i; i = i->next)
        if (i->kind != BR_J_OBJ)
            return false;
    return true;
}

static br_code
read_line(br_resumed *r, br_text line, br_status *st)
{
    br_json *root;
    const char *path;
    int64_t tenant, high, low;

    br_arena_init(&r->mem, 0);
    r->line.p = br_arena_str(&r->mem, line.p, line.n);
    r->line.n = line.n;
    if (!r->line.p)
        return br_fail(st, BR_E_OOM, "out of memory");
    BR_TRY(br_json_parse(&root, &r->mem, r->line.p, line.n, 0, st));
    if (root->kind != BR_J_OBJ)
        return br_fail(st, BR_E_FORMAT, "no object");
    path = br_json_get_word(root, "path").p;
    for (size_t i = 0; path && i < BR_COUNT(kinds); i++)
        if (strcmp(path, kinds[i].path) == 0)
            r->wire = kinds[i].wire;
    r->id = br_json_get_word(root, "id").p;
    r->model = br_json_get_word(root, "model").p;
    r->choices = br_json_get(root, "choices");
    r->counted = br_json_get(root, "counted");
    r->turn = br_json_get(root, "turn");
    r->body = br_json_get_text(root, "body");
    r->cuts = br_json_get_text(root, "cuts");
    if (!r->wire || !is_id(r->id) || !r->model || !r->body.p ||
        !are_tokens(r->choices) || !are_counts(r->counted) ||
        !is_turn(r->wire, r->turn) ||
        !number_of(root, "tenant", BR_MAX_TENANTS - 1, &tenant) ||
        !number_of(root, "created", INT64_MAX, &r->created) ||
        !number_of(root, "seed_high", UINT32_MAX, &high) ||
        !number_of(root, "seed_low", UINT32_MAX, &low))
        return br_fail(st, BR_E_FORMAT, "no request of brass");
    r->tenant = (uint32_t)tenant;
    r->seed = (uint64_t)high << 32 | (uint64_t)low;
    return BR_OK;
}

static void
free_one(br_resumed *r)
{
    br_str_fini(&r->answer);
    br_arena_fini(&r->mem);
    br_free(r);
}

void
br_resumed_free(br_resumed *list)
{
    for (br_resumed *next; list; list = next) {
        next = list->next;
        free_one(list);
    }
}

br_resumed *
br_resume_read(const char *text, size_t n, const char *name)
{
    br_resumed *first = NULL, **end = &first;
    const char *at = text;

    for (unsigned i = 1; at < text + n; i++) {
        const char *nl = memchr(at, '\n', (size_t)(text + n - at));
        br_text line = {at, (size_t)((nl ? nl : text + n) - at)};
        br_resumed *r = br_try_calloc(1, sizeof *r);
        br_status st = {0};

        if (r && read_line(r, line, &st) == BR_OK) {
            *end = r;
            end = &r->next;
        } else {
            br_log(BR_EV_resume_failed, "%s: line %u: %s", name, i,
                   r ? st.msg : "out of memory");
            if (r)
                free_one(r);
        }
        at += line.n + 1;
    }
    return first;
}

/* talks_list.c - see talks_list.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/talks_list.h"

#include "base/json.h"

#include <string.h>

enum {
    TREE_FACTOR = 16, /* bytes of a tree for one of its text */
    TREE_LEAST = 65536,
};

static br_code
none(br_status *st)
{
    return br_fail(st, BR_E_FORMAT, "responses: a row is no list of items");
}

br_code
br_talks_list_add(br_str *list, br_text items, br_status *st)
{
    br_text in;

    if (list->n < 2 || list->at[0] != '[' || list->at[list->n - 1] != ']' ||
        items.n < 2)
        return none(st);
    in = (br_text){items.p + 1, items.n - 2};
    if (!in.n || memmem(list->at, list->n, in.p, in.n))
        return BR_OK;
    list->n--;
    if (list->n > 1)
        br_str_putc(list, ',');
    br_str_put(list, in.p, in.n);
    br_str_putc(list, ']');
    return list->oom ? br_fail(st, BR_E_OOM, "out of memory") : BR_OK;
}

static bool
has_id(const br_json *v, br_text id)
{
    const br_json *is = v->kind == BR_J_OBJ ? br_json_get(v, "id") : NULL;

    return is && is->kind == BR_J_STR && is->n == id.n &&
           memcmp(is->s, id.p, id.n) == 0;
}

static void
put_others(const br_json *root, br_text id, br_str *out)
{
    br_json_writer w;

    br_json_w_begin(&w, out, 0);
    w.compact = w.utf8 = true;
    br_json_w_arr(&w);
    for (const br_json *v = root->child; v; v = v->next)
        if (!has_id(v, id))
            br_json_w_tree(&w, v);
    br_json_w_arr_end(&w);
}

br_code
br_talks_list_cut(br_str *list, br_text id, br_status *st)
{
    br_json *root = NULL;
    br_str out = {0};
    br_arena a;
    br_code code;

    br_arena_init(&a, list->n * TREE_FACTOR + TREE_LEAST);
    code = br_json_parse(&root, &a, br_str_z(list), list->n, 0, st);
    if (code == BR_OK && root->kind != BR_J_ARR)
        code = none(st);
    if (code == BR_OK) {
        put_others(root, id, &out);
        if (out.oom)
            code = br_fail(st, BR_E_OOM, "out of memory");
    }
    br_arena_fini(&a);
    if (code != BR_OK) {
        br_str_fini(&out);
        return code;
    }
    br_str_fini(list);
    *list = out;
    return BR_OK;
}

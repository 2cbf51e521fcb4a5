/* catalogue.c - see catalogue.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/catalogue.h"

#include "base/embed.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/thread.h"

#include <string.h>

/* models/catalogue.json as it stands in the repository */
BR_EMBED("br_catalogue_text", "models/catalogue.json");
extern const char br_catalogue_text[];

/* ---- reading ------------------------------------------------------------- */

static bool
is_hex(const char *s, size_t n)
{
    return strlen(s) == n && strspn(s, "0123456789abcdef") == n;
}

static br_code
get_text(const br_json *row, const char *key, const char **out, br_status *st)
{
    const br_json *v = br_json_get(row, key);

    if (!v || v->kind != BR_J_STR || v->n == 0 || strlen(v->s) != v->n)
        return br_fail(st, BR_E_FORMAT, "%s: expected a text", key);
    *out = v->s;
    return BR_OK;
}

/* What a file is checked against, where it is told. */
static br_code
get_check(const br_json *j, const char **sha256, uint64_t *bytes, br_status *st)
{
    const br_json *n = br_json_get(j, "bytes");

    if (br_json_get(j, "sha256")) {
        BR_TRY(get_text(j, "sha256", sha256, st));
        if (!is_hex(*sha256, BR_SHA256_HEX - 1))
            return br_fail(st, BR_E_FORMAT,
                           "sha256: expected 64 of 0123456789abcdef");
    }
    if (n && (n->kind != BR_J_INT || n->i <= 0))
        return br_fail(st, BR_E_FORMAT, "bytes: expected a number above 0");
    *bytes = n ? (uint64_t)n->i : 0;
    return BR_OK;
}

static br_code
get_parts(br_catalogue *c, const br_json *j, br_catalogue_row *row,
          br_status *st)
{
    const br_json *list = br_json_get(j, "parts");
    uint32_t count = br_set_of(br_url_name(row->url), NULL), i = 0;
    struct br_catalogue_part *part;

    if (count && row->sha256)
        return br_fail(st, BR_E_FORMAT,
                       "sha256: of a set each of parts has its own");
    if (!list)
        return BR_OK;
    if (list->kind != BR_J_ARR || list->n != count || !count)
        return br_fail(st, BR_E_FORMAT,
                       "parts: expected a list as long as the set of the url, "
                       "%u",
                       count);
    part = br_arena_new(&c->arena, struct br_catalogue_part, count);
    if (!part)
        return br_fail(st, BR_E_OOM, "out of memory");
    row->parts = part;
    row->bytes = 0;
    for (const br_json *p = list->child; p; p = p->next, i++) {
        if (p->kind != BR_J_OBJ)
            return br_fail(st, BR_E_FORMAT, "parts[%u]: expected an object", i);
        if (get_check(p, &part[i].sha256, &part[i].bytes, st) != BR_OK)
            return br_prefix(st, "parts[%u]", i);
        if (__builtin_add_overflow(row->bytes, part[i].bytes, &row->bytes))
            return br_fail(st, BR_E_FORMAT, "parts: too many bytes");
    }
    return BR_OK;
}

static br_code
get_row(br_catalogue *c, const br_json *j, br_catalogue_row *row, br_status *st)
{
    *row = (br_catalogue_row){0};
    if (j->kind != BR_J_OBJ)
        return br_fail(st, BR_E_FORMAT, "expected an object");
    BR_TRY(get_text(j, "name", &row->name, st));
    BR_TRY(get_text(j, "quant", &row->quant, st));
    BR_TRY(get_text(j, "url", &row->url, st));
    if (!br_store_plain(row->name) || !br_store_plain(row->quant))
        return br_fail(st, BR_E_FORMAT,
                       "name and quant: letters, digits and ._- only, at most "
                       "%d",
                       BR_CATALOGUE_MAX_NAME);
    if (strncmp(row->url, "https://", 8) != 0 &&
        strncmp(row->url, "http://", 7) != 0)
        return br_fail(st, BR_E_FORMAT, "url: expected https:// or http://");
    BR_TRY(get_check(j, &row->sha256, &row->bytes, st));
    return get_parts(c, j, row, st);
}

static br_code
put_row(br_catalogue *c, br_catalogue_row row, br_status *st)
{
    for (size_t i = 0; i < c->rows.n; i++)
        if (strcmp(c->rows.at[i].name, row.name) == 0 &&
            strcmp(c->rows.at[i].quant, row.quant) == 0) {
            c->rows.at[i] = row;
            return BR_OK;
        }
    if (c->rows.n == BR_CATALOGUE_MAX_ROWS)
        return br_fail(st, BR_E_LIMIT, "over %d models", BR_CATALOGUE_MAX_ROWS);
    return br_vec_push(&c->rows, row) ? BR_OK
                                      : br_fail(st, BR_E_OOM, "out of memory");
}

br_code
br_catalogue_parse(br_catalogue *c, const char *text, size_t n, br_status *st)
{
    const br_json *list;
    br_json *doc;
    int i = 0;

    BR_TRY(br_json_parse(&doc, &c->arena, text, n, 0, st));
    list = doc->kind == BR_J_OBJ ? br_json_get(doc, "models") : NULL;
    if (!list || list->kind != BR_J_ARR)
        return br_fail(st, BR_E_FORMAT, "models: expected a list");
    for (const br_json *j = list->child; j; j = j->next, i++) {
        br_catalogue_row row;

        if (get_row(c, j, &row, st) != BR_OK)
            return br_prefix(st, "models[%d]", i);
        BR_TRY(put_row(c, row, st));
    }
    return BR_OK;
}

static br_code
load_user(br_catalogue *c, const br_cli *cli, br_status *st)
{
    br_status none = {0};
    br_str path = {0};
    char *text = NULL;
    size_t n;
    br_code code;

    if (!br_cli_folder(cli, "XDG_CONFIG_HOME", ".config", &path))
        return BR_OK;
    br_str_puts(&path, "/catalogue.json");
    code = path.oom ? br_fail(&none, BR_E_OOM, "out of memory")
                    : br_file_read(path.at, BR_CATALOGUE_MAX_BYTES, &text, &n,
                                   &none);
    if (code == BR_E_NOT_FOUND)
        code = BR_OK;
    else if (code != BR_OK)
        br_fail(st, code, "%s", none.msg);
    else if ((code = br_catalogue_parse(c, text, n, st)) != BR_OK)
        (void)br_prefix(st, "%s", path.at);
    br_free(text);
    br_str_fini(&path);
    return code;
}

br_code
br_catalogue_load(br_catalogue *c, const br_cli *cli, br_status *st)
{
    br_code code;

    *c = (br_catalogue){0};
    br_arena_init(&c->arena, 32 * (size_t)BR_CATALOGUE_MAX_BYTES);
    code =
        br_catalogue_parse(c, br_catalogue_text, strlen(br_catalogue_text), st);
    if (code == BR_OK)
        code = load_user(c, cli, st);
    if (code != BR_OK)
        br_catalogue_free(c);
    return code;
}

void
br_catalogue_free(br_catalogue *c)
{
    br_vec_fini(&c->rows);
    br_arena_fini(&c->arena);
}

/* ---- looking up ---------------------------------------------------------- */

/* Weights, and a tenth for keys, values and activations of a middling context,
 * and what the process itself takes. */
bool
br_model_fits(uint64_t bytes, uint64_t memory)
{
    return bytes + bytes / 10 + (256u << 20) <= memory;
}

const br_catalogue_row *
br_catalogue_find(const br_catalogue *c, const char *name)
{
    const br_catalogue_row *found = NULL;
    size_t n = strcspn(name, ":");
    uint64_t memory, left;

    br_os_memory(&memory, &left);
    for (size_t i = 0; i < c->rows.n; i++) {
        const br_catalogue_row *r = &c->rows.at[i];
        size_t m = strlen(r->name);

        if (strncmp(r->name, name, m) != 0)
            continue;
        if ((name[m] == ':' || name[m] == '-') &&
            strcmp(name + m + 1, r->quant) == 0)
            return r;
        if (m == n && !name[n] &&
            (!found || (!br_model_fits(found->bytes, memory) &&
                        br_model_fits(r->bytes, memory))))
            found = r;
    }
    return found;
}

void
br_catalogue_hint(const br_catalogue *c, const char *name, char hint[100])
{
    br_suggest s;

    br_suggest_begin(&s, br_text_z(name));
    for (size_t i = 0; i < c->rows.n; i++)
        br_suggest_offer(&s, br_text_z(c->rows.at[i].name));
    br_suggest_text(&s, "", hint, 100);
}

void
br_catalogue_file(const br_catalogue_row *row, br_str *out)
{
    uint32_t count = br_set_of(br_url_name(row->url), NULL);

    br_str_printf(out, "%s-%s", row->name, row->quant);
    if (count)
        br_str_printf(out, "-00001-of-%05u", count);
    br_str_puts(out, ".gguf");
}

/* ---- names of files ------------------------------------------------------ */

br_text
br_url_name(const char *url)
{
    size_t n = strcspn(url, "?#");
    const char *slash = memrchr(url, '/', n);
    const char *name = slash ? slash + 1 : url;

    return (br_text){name, n - (size_t)(name - url)};
}

uint32_t
br_set_of(br_text name, uint32_t *no)
{
    uint32_t k[2] = {0, 0};
    const char *p;

    if (name.n <= BR_SET_SUFFIX)
        return 0;
    p = name.p + name.n - BR_SET_SUFFIX;
    if (*p != '-' || memcmp(p + 6, "-of-", 4) != 0 ||
        memcmp(p + 15, ".gguf", 5) != 0)
        return 0;
    for (int i = 0; i < 5; i++)
        for (int j = 0; j < 2; j++) {
            uint32_t digit = (uint32_t)p[1 + i + 9 * j] - '0';

            if (digit > 9)
                return 0;
            k[j] = 10 * k[j] + digit;
        }
    if (no)
        *no = k[0];
    return k[0] >= 1 && k[0] <= k[1] ? k[1] : 0;
}

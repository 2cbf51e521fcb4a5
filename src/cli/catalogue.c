/* catalogue.c - see catalogue.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/catalogue.h"

#include "base/hash.h"
#include "base/json.h"
#include "base/thread.h"

#include <string.h>

/* models/catalogue.json as it stands in the repository */
__asm__(".pushsection .rodata\n"
        ".hidden br_catalogue_text\n"
        ".globl br_catalogue_text\n"
        "br_catalogue_text:\n"
        ".incbin \"models/catalogue.json\"\n"
        ".byte 0\n"
        ".popsection\n");
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

static br_code
get_row(const br_json *j, br_catalogue_row *row, br_status *st)
{
    const br_json *bytes = br_json_get(j, "bytes");

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
    if (br_json_get(j, "sha256")) {
        BR_TRY(get_text(j, "sha256", &row->sha256, st));
        if (!is_hex(row->sha256, BR_SHA256_HEX - 1))
            return br_fail(st, BR_E_FORMAT,
                           "sha256: expected 64 of 0123456789abcdef");
    }
    if (bytes && (bytes->kind != BR_J_INT || bytes->i <= 0))
        return br_fail(st, BR_E_FORMAT, "bytes: expected a number above 0");
    row->bytes = bytes ? (uint64_t)bytes->i : 0;
    return BR_OK;
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

        if (get_row(j, &row, st) != BR_OK)
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
    br_str_printf(out, "%s-%s.gguf", row->name, row->quant);
}

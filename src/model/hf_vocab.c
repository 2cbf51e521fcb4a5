/* hf_vocab.c - tokenizer and chat template of a Hugging Face folder.
 *
 * Roles that tokenizer_config.json does not name are taken from the ids in
 * generation_config.json or config.json. A model without an end of text would
 * never stop, so that is an error.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/hf_int.h"
#include "model/tok_int.h"
#include "model/tok_write.h"

#include <stdio.h>
#include <string.h>

#define PREFIX "tokenizer.ggml."

/* ---- roles -------------------------------------------------------------- */

/* A number, or the i-th of a list of them; an id of a token, -1: none. */
static int64_t
id_at(const br_hf *h, const br_json *from, const char *name, uint64_t i)
{
    const br_json *v = from ? br_json_get(from, name) : NULL;

    if (v && v->kind == BR_J_ARR)
        v = br_json_at(v, i);
    else if (i > 0)
        v = NULL;
    if (!v || v->kind != BR_J_INT || v->i < 0 || (uint64_t)v->i >= h->n_rows)
        return -1;
    return v->i;
}

static int64_t
id_of(const br_hf *h, const br_json *from, const char *name)
{
    return id_at(h, from, name, 0);
}

/* What ends an answer beside EOS, where no name of a token says it (<|user|> of
 * GLM-4). A file has two places; what names put there, names say again. */
static br_code
keep_ends(br_hf *h, br_tok *t)
{
    static const br_tok_role places[] = {BR_TOK_EOT, BR_TOK_EOM};
    const char *name = "eos_token_id";
    const br_json *from;
    size_t n = 0;

    BR_TRY(br_hf_json(h, "generation_config.json", false, &from));
    if (id_of(h, from, name) < 0)
        from = h->config;
    for (uint64_t i = 0; i < 64 && n < BR_COUNT(places); i++) {
        int64_t id = id_at(h, from, name, i);

        if (id >= (int64_t)br_tok_count(t) || id < 0 ||
            br_tok_is_eog(t, (int32_t)id) ||
            (i == 0 && br_tok_role_id(t, BR_TOK_EOS) == BR_TOK_NONE))
            continue;
        t->role[places[n++]] = (int32_t)id;
    }
    return BR_OK;
}

static br_code
set_roles(br_hf *h, const br_tok *t)
{
    static const struct {
        br_tok_role role;
        const char *name, *key;
        bool need;
    } roles[] = {
        {BR_TOK_BOS, "bos_token_id", PREFIX "bos_token_id", false},
        {BR_TOK_EOS, "eos_token_id", PREFIX "eos_token_id", true},
        {BR_TOK_PAD, "pad_token_id", PREFIX "padding_token_id", false},
    };
    const br_json *generation;

    BR_TRY(br_hf_json(h, "generation_config.json", false, &generation));
    for (size_t i = 0; i < BR_COUNT(roles); i++) {
        int64_t id;

        if (br_tok_role_id(t, roles[i].role) != BR_TOK_NONE)
            continue;
        id = id_of(h, generation, roles[i].name);
        if (id < 0)
            id = id_of(h, h->config, roles[i].name);
        if (id >= 0)
            br_gguf_w_u32(h->w, roles[i].key, (uint32_t)id);
        else if (roles[i].need)
            return br_fail(h->st, BR_E_FORMAT,
                           "no '%s' in tokenizer_config.json, "
                           "generation_config.json or config.json",
                           roles[i].name);
    }
    return BR_OK;
}

/* ---- templates ---------------------------------------------------------- */

/* [{"name": "default", "template": ".."}, ...] */
static br_code
set_named(br_hf *h, const br_json *list)
{
    br_text *names = br_arena_new(&h->arena, br_text, list->n + 1);
    size_t n = 0;

    if (!names)
        return br_fail(h->st, BR_E_OOM, "out of memory");
    for (const br_json *v = list->child; v; v = v->next) {
        const br_json *name = br_json_get(v, "name");
        const br_json *text = br_json_get(v, "template");
        char key[128];

        if (!name || name->kind != BR_J_STR || name->n > 64 || !text ||
            text->kind != BR_J_STR)
            return br_fail(h->st, BR_E_FORMAT,
                           "tokenizer_config.json: chat_template: a list of "
                           "{name, template}");
        if (strcmp(name->s, "default") == 0) {
            br_gguf_w_str(h->w, "tokenizer.chat_template",
                          (br_text){text->s, text->n});
            continue;
        }
        snprintf(key, sizeof key, "tokenizer.chat_template.%s", name->s);
        br_gguf_w_str(h->w, key, (br_text){text->s, text->n});
        names[n++] = (br_text){name->s, name->n};
    }
    if (n)
        br_gguf_w_strs(h->w, "tokenizer.chat_templates", names, n);
    return BR_OK;
}

static br_code
set_template(br_hf *h)
{
    const br_json *config, *v;
    br_str path = {0};
    br_status none = {0};
    char *text;
    size_t n;
    br_code code;

    br_str_printf(&path, "%s/chat_template.jinja", h->folder);
    if (path.oom)
        return br_fail(h->st, BR_E_OOM, "out of memory");
    code = br_file_read_disk(path.at, BR_HF_MAX_CONFIG, &text, &n, &none);
    br_str_fini(&path);
    if (code == BR_OK) {
        br_gguf_w_str(h->w, "tokenizer.chat_template", (br_text){text, n});
        br_free(text);
        return BR_OK;
    }
    if (code != BR_E_NOT_FOUND)
        return br_fail(h->st, code, "%s", none.msg);
    BR_TRY(br_hf_json(h, "tokenizer_config.json", false, &config));
    v = config && config->kind == BR_J_OBJ
            ? br_json_get(config, "chat_template")
            : NULL;
    if (v && v->kind == BR_J_STR)
        br_gguf_w_str(h->w, "tokenizer.chat_template", (br_text){v->s, v->n});
    else if (v && v->kind == BR_J_ARR)
        return set_named(h, v);
    return BR_OK;
}

br_code
br_hf_vocab(br_hf *h)
{
    br_tok *t;
    br_code code;

    BR_TRY(br_tok_open(&t, h->folder, NULL, h->st));
    code = keep_ends(h, t);
    if (code == BR_OK)
        code = br_tok_write(t, h->n_rows, h->w, h->st);
    h->stats->padded = (uint32_t)(h->n_rows - (uint64_t)br_tok_count(t));
    if (code == BR_OK)
        code = set_roles(h, t);
    br_tok_free(t);
    return code == BR_OK ? set_template(h) : code;
}

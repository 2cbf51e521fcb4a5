/* template.c - brass template: what a chat template makes of a conversation.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "cli/catalogue.h"
#include "model/gguf.h"
#include "model/jinja.h"

#include <string.h>
#include <time.h>

struct job {
    br_arena arena;
    br_str path; /* of the model */
    br_gguf *gguf;
    char *file, *context_file;
    const char *name; /* of the file that the template is in */
    br_text source;
    br_json *context;
    br_jinja *t;
    br_str out;
    int64_t now;
};

/* The piece of a special token, as variable `name`, unless it is there. */
static br_code
add_token(struct job *j, const char *name, const char *given, const char *key,
          br_status *st)
{
    const br_gguf_kv *id, *tokens;
    br_text piece = {0};
    br_json *v;
    int64_t i;

    if (br_json_get(j->context, name))
        return BR_OK;
    if (given)
        piece = br_text_z(given);
    else if (!j->gguf || !(id = br_gguf_find(j->gguf, key)) ||
             !br_gguf_i64(id, 0, &i) || i < 0 ||
             !(tokens = br_gguf_find(j->gguf, "tokenizer.ggml.tokens")) ||
             !br_gguf_str(tokens, (uint64_t)i, &piece))
        return BR_OK;
    v = br_json_new_str(&j->arena, piece);
    if (!v || !br_json_put(&j->arena, j->context, name, v))
        return br_fail(st, BR_E_OOM, "context");
    return BR_OK;
}

static br_code
load_source(struct job *j, const br_cli *cli, br_status *st)
{
    const char *file = br_opt_str(cli, BR_OPT_template_file);
    const br_gguf_kv *kv;
    size_t n;

    j->name = file ? file : cli->n_args ? cli->args[0] : "";
    if (file && cli->n_args)
        return br_fail(st, BR_E_USAGE, "a model or --file, not both");
    if (!file && !cli->n_args)
        return br_fail(st, BR_E_USAGE, "expected a MODEL or --file T.jinja");
    if (file) {
        BR_TRY(br_file_read(file, BR_JINJA_MAX_SOURCE_BYTES, &j->file, &n, st));
        j->source = (br_text){j->file, n};
        return BR_OK;
    }
    BR_TRY(br_cli_model(cli, cli->args[0], &j->path, st));
    BR_TRY(br_gguf_open(&j->gguf, j->path.at, st));
    kv = br_gguf_find(j->gguf, "tokenizer.chat_template");
    if (!kv || !br_gguf_str(kv, 0, &j->source))
        return br_fail(st, BR_E_NOT_FOUND, "%s has no chat template",
                       j->path.at);
    return BR_OK;
}

static br_code
load_context(struct job *j, const br_cli *cli, br_status *st)
{
    const char *path = br_opt_str(cli, BR_OPT_context);
    size_t n;

    if (!path)
        return br_fail(st, BR_E_USAGE, "--context FILE.json is missing");
    BR_TRY(br_file_read(path, 64u << 20, &j->context_file, &n, st));
    if (br_json_parse(&j->context, &j->arena, j->context_file, n, 0, st) !=
        BR_OK)
        return br_prefix(st, "%s", path);
    if (j->context->kind != BR_J_OBJ)
        return br_fail(st, BR_E_FORMAT, "%s: expected an object", path);
    BR_TRY(add_token(j, "bos_token", br_opt_str(cli, BR_OPT_bos_piece),
                     "tokenizer.ggml.bos_token_id", st));
    return add_token(j, "eos_token", br_opt_str(cli, BR_OPT_eos_piece),
                     "tokenizer.ggml.eos_token_id", st);
}

static br_code
render(struct job *j, const br_cli *cli, br_status *st)
{
    const char *now = br_opt_str(cli, BR_OPT_now);

    j->now = (int64_t)time(NULL);
    if (now && !br_cli_time(now, &j->now))
        return br_fail(st, BR_E_USAGE,
                       "--now '%s': expected 2026-01-15T12:00:00", now);
    BR_TRY(load_source(j, cli, st));
    BR_TRY(load_context(j, cli, st));
    if (br_jinja_compile(&j->t, j->source.p, j->source.n, st) != BR_OK ||
        br_jinja_render(j->t, j->context, j->now, &j->out, st) != BR_OK)
        return st->code == BR_E_REJECTED ? st->code /* its own words */
                                         : br_prefix(st, "%s", j->name);
    return BR_OK;
}

int
br_cmd_template(br_cli *cli)
{
    struct job j = {0};
    br_status st = {0};
    int ret = 0;

    br_arena_init(&j.arena, 0);
    if (render(&j, cli, &st) == BR_OK)
        fwrite(br_str_z(&j.out), 1, j.out.n, cli->out);
    else
        ret = br_cli_fail(cli, &st);
    br_str_fini(&j.out);
    br_jinja_free(j.t);
    br_gguf_close(j.gguf);
    br_str_fini(&j.path);
    br_free(j.file);
    br_free(j.context_file);
    br_arena_fini(&j.arena);
    return ret;
}

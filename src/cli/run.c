/* run.c - brass run: one prompt, one answer.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "cli/interrupt.h"
#include "cli/talk.h"
#include "drv/nodes/node_dev.h"
#include "run/grammar.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

typedef struct result {
    br_cli *cli;
    br_str text; /* with --json */
    br_tok_ids ids;
    BR_VEC(float) logprobs;
    bool oom;
    char last; /* byte printed */
} result;

static bool
on_text(void *ctx, br_text piece)
{
    result *r = ctx;

    br_interrupt_ends(false); /* there is a line to end */
    r->last = piece.p[piece.n - 1];
    br_talk_print(r->cli->out, piece);
    return !ferror(r->cli->out);
}

static bool
keep_text(void *ctx, br_text piece)
{
    result *r = ctx;

    br_str_put(&r->text, piece.p, piece.n);
    return !r->text.oom;
}

static bool
keep_token(void *ctx, const br_gen_token *t)
{
    result *r = ctx;

    r->oom |= !br_vec_push(&r->ids, t->id) ||
              !br_vec_push(&r->logprobs, t->logprobs[0].logprob);
    return !r->oom;
}

/* ---- the prompt ---------------------------------------------------------- */

static br_code
encode(br_talk *t, br_text text, br_status *st)
{
    const char *system = br_opt_str(t->cli, BR_OPT_system);

    if (!t->chat)
        return br_tok_encode(t->tok, t->work, text, BR_TOK_ADD_SPECIAL,
                             &t->prompt, st);
    if (system)
        BR_TRY(br_chat_system(t->chat, br_text_z(system), st));
    BR_TRY(br_chat_add(t->chat, "user", text, st));
    return br_chat_prompt(t->chat, t->work, &t->prompt, st);
}

static br_code
get_prompt(br_talk *t, br_status *st)
{
    const char *path = br_opt_str(t->cli, BR_OPT_prompt_file);
    const char *given = t->cli->n_args > 1 ? t->cli->args[1]
                                           : br_opt_str(t->cli, BR_OPT_prompt);
    char *read = NULL;
    br_text text;
    br_code code;

    if (path)
        BR_TRY(br_file_read(path, BR_TOK_MAX_TEXT, &read, &text.n, st));
    text = path ? (br_text){read, text.n} : br_text_z(given);
    code = encode(t, text, st);
    br_free(read);
    return code;
}

/* ---- the form of the answer ---------------------------------------------- */

typedef struct form {
    br_vocab *vocab;
    br_grammar *grammar;
    br_matcher *matcher;
} form;

static br_code
schema_text(br_text file, br_str *text, br_status *st)
{
    br_arena a;
    br_json *tree;
    br_code code;

    br_arena_init(&a, 0);
    code = br_json_parse(&tree, &a, file.p, file.n, 0, st);
    if (code == BR_OK)
        code = br_schema_grammar(tree, text, st);
    br_arena_fini(&a);
    return code;
}

/* By --grammar, if that is given. No grammar begins with a brace. */
static br_code
get_form(br_talk *t, form *f, br_status *st)
{
    const char *path = br_opt_str(t->cli, BR_OPT_answer_grammar);
    br_str text = {0};
    char *file;
    br_code code;
    size_t n;

    if (!path)
        return BR_OK;
    BR_TRY(br_file_read(path, BR_GRAMMAR_MAX_TEXT, &file, &n, st));
    if (file[strspn(file, " \t\r\n")] == '{')
        code = schema_text((br_text){file, n}, &text, st);
    else
        br_str_put(&text, file, n), code = BR_OK;
    if (code == BR_OK)
        code = br_vocab_new(&f->vocab, t->tok, NULL, st);
    if (code == BR_OK)
        code = br_grammar_new(&f->grammar, (br_text){br_str_z(&text), text.n},
                              f->vocab, st);
    if (code == BR_OK)
        code = br_matcher_new(&f->matcher, f->grammar, st);
    if (code == BR_OK)
        t->params.hook = br_matcher_hook(f->matcher);
    br_str_fini(&text);
    br_free(file);
    return code == BR_OK ? code : br_prefix(st, "%s", path);
}

static void
form_fini(form *f)
{
    br_matcher_free(f->matcher);
    br_grammar_free(f->grammar);
    br_vocab_free(f->vocab);
}

/* ---- the result ---------------------------------------------------------- */

static void
put_numbers(br_json_writer *w, const br_talk *t)
{
    const br_gen_stats *s = &t->stats;
    const br_lm *lm = br_lm_model_lm(t->lm);

    br_json_w_key_strz(w, "end", br_gen_end_name(s->end));
    br_json_w_key_u64(w, "seed", t->params.sample.seed);
    br_json_w_key_strz(w, "tier", lm->tier);
    if (lm->stats) {
        br_nd_stats n;

        lm->stats(lm->ctx, &n);
        br_json_w_key_u64(w, "steps", n.steps);
        br_json_w_key_u64(w, "launches", n.launches);
        br_json_w_key_u64(w, "submits", n.submits);
        br_json_w_key_u64(w, "ioctls", n.ioctls);
    }
    br_json_w_key_u64(w, "prompt_tokens", s->n_prompt);
    br_json_w_key_u64(w, "output_tokens", s->n_out);
    br_json_w_key_f64(w, "prefill_tok_s", br_gen_prefill_rate(s));
    br_json_w_key_f64(w, "decode_tok_s", br_gen_decode_rate(s));
    br_json_w_key_f64(w, "first_token_s", (double)s->first_ns * 1e-9);
}

static int
print_json(const br_talk *t, result *r)
{
    br_str doc = {0};
    br_json_writer w;
    int code;

    br_json_w_begin(&w, &doc, 0);
    br_json_w_obj(&w);
    br_json_w_key(&w, "text");
    br_json_w_str(&w, (br_text){br_str_z(&r->text), r->text.n});
    br_json_w_key(&w, "tokens");
    br_json_w_arr(&w);
    for (size_t i = 0; i < r->ids.n; i++)
        br_json_w_i64(&w, r->ids.at[i]);
    br_json_w_arr_end(&w);
    br_json_w_key(&w, "logprobs");
    br_json_w_arr(&w);
    for (size_t i = 0; i < r->logprobs.n; i++)
        br_json_w_f64(&w, (double)r->logprobs.at[i]);
    br_json_w_arr_end(&w);
    put_numbers(&w, t);
    br_json_w_obj_end(&w);
    code = br_cli_json_out(t->cli, &doc);
    br_str_fini(&doc);
    return code;
}

/* A model that was taught conversations takes a short text for a whole one. */
static void
say_why_empty(const br_talk *t)
{
    if (t->stats.n_out == 0 && t->stats.end == BR_GEN_EOG)
        fprintf(t->cli->err, "brass run: the model ends this text at once%s\n",
                t->chat ? "" : "; --chat asks for an answer to it");
}

static int
answer(br_talk *t, result *r)
{
    bool json = br_opt_bool(t->cli, BR_OPT_json);
    br_status st = {0};
    br_code code;

    t->once = true;
    t->params.ctx = r;
    t->params.text = json ? keep_text : on_text;
    t->params.token = json ? keep_token : NULL;
    t->params.sample.logprobs = json;
    code = br_talk_answer(t, &st);
    if (!json && r->last && r->last != '\n')
        fputc('\n', t->cli->out);
    if (code == BR_OK && (r->oom || r->text.oom))
        code = br_fail(&st, BR_E_OOM, "out of memory");
    if (code == BR_OK && t->stats.end == BR_GEN_CANCELLED) {
        br_fail(&st, BR_E_CANCELLED, "stopped after %u tokens", t->stats.n_out);
        (void)!br_cli_fail(t->cli, &st);
        return BR_EXIT_SIGNAL(SIGINT);
    }
    if (code != BR_OK)
        return br_cli_fail(t->cli, &st);
    if (json)
        return print_json(t, r);
    fflush(t->cli->out);
    say_why_empty(t);
    br_talk_numbers(t);
    return 0;
}

int
br_cmd_run(br_cli *cli)
{
    int n = br_opt_given(cli, BR_OPT_prompt) +
            br_opt_given(cli, BR_OPT_prompt_file) + (cli->n_args > 1);
    bool chat = br_opt_bool(cli, BR_OPT_chat);
    result r = {.cli = cli};
    br_status st = {0};
    form f = {0};
    br_talk t;
    int code;

    if (n == 0 && cli->n_args == 1) /* one that was meant as TEXT, maybe */
        return br_cli_usage(cli,
                            "no TEXT, no --prompt and no --file; '%.60s' is "
                            "MODEL",
                            cli->args[0]);
    if (n != 1)
        return br_cli_usage(cli, n ? "TEXT, --prompt, --file: only one of them"
                                   : "no TEXT, no --prompt and no --file");
    if (br_opt_given(cli, BR_OPT_system) && !chat)
        return br_cli_usage(cli, "--system is for --chat");
    if (br_talk_open(&t, cli, chat, &st) != BR_OK)
        return br_cli_fail(cli, &st);
    /* What is wrong with a prompt is said before weights are made ready. */
    code = get_form(&t, &f, &st) == BR_OK && get_prompt(&t, &st) == BR_OK &&
                   br_talk_load(&t, &st) == BR_OK
               ? answer(&t, &r)
               : br_cli_fail(cli, &st);
    form_fini(&f);
    br_str_fini(&r.text);
    br_vec_fini(&r.ids);
    br_vec_fini(&r.logprobs);
    br_talk_close(&t);
    return code;
}

/* traces.c - brass trace and brass replay: what a server did, and again.
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/trace_replay.h"

#include "base/json.h"
#include "cli/cli.h"
#include "run/lm_model.h"

#include <inttypes.h>

static void
say_cut(const br_cli *cli, bool cut)
{
    if (cut)
        (void)fprintf(cli->err,
                      "brass: %s: cut short: its end is missing; what is whole "
                      "was read\n",
                      cli->args[0]);
}

int
br_cmd_trace(br_cli *cli)
{
    const char *path = cli->args[0];
    br_file_map m;
    br_str doc = {0};
    br_status st = {0};
    br_code code = br_file_map_open(&m, path, &st);
    bool cut = false;
    int end;

    if (code != BR_OK)
        return br_cli_fail(cli, &st);
    code = br_trace_timeline(m.p, m.n, &doc, &cut, &st);
    if (code != BR_OK)
        (void)br_prefix(&st, "%s", path);
    else
        say_cut(cli, cut);
    end = code == BR_OK ? br_cli_json_out(cli, &doc) : br_cli_fail(cli, &st);
    br_str_fini(&doc);
    br_file_map_close(&m);
    return end;
}

static int
print(br_cli *cli, const br_replay_report *r)
{
    br_str doc = {0};
    br_json_writer w;

    say_cut(cli, r->cut);
    if (!br_opt_bool(cli, BR_OPT_json)) {
        (void)fprintf(cli->out,
                      "%u requests, %" PRIu64 " tokens: %u the same, %u "
                      "differ, %u skipped\n",
                      r->requests, r->tokens, r->same,
                      r->requests - r->same - r->skipped, r->skipped);
        if (r->differs)
            (void)fprintf(cli->out,
                          "request %" PRIx64 " differs from its token %u on\n",
                          r->differs, r->at);
        return r->differs ? 4 : 0;
    }
    br_json_w_begin(&w, &doc, 0);
    br_json_w_obj(&w);
    br_json_w_key_u64(&w, "requests", r->requests);
    br_json_w_key_u64(&w, "same", r->same);
    br_json_w_key_u64(&w, "skipped", r->skipped);
    br_json_w_key_u64(&w, "tokens", r->tokens);
    br_json_w_key(&w, "cut");
    br_json_w_bool(&w, r->cut);
    br_json_w_obj_end(&w);
    return br_cli_json_out(cli, &doc) ? 1 : r->differs ? 4 : 0;
}

/* model: of the command line, or NULL: of the trace. */
static br_code
again(const br_file_map *trace, const char *path, const char *name,
      br_replay_report *out, br_status *st)
{
    br_trace_reader head;
    br_model *model = NULL;
    br_tok *tok = NULL;
    br_lm_model *lm = NULL;
    br_code code;

    if (br_trace_read(&head, trace->p, trace->n, st) != BR_OK)
        return br_prefix(st, "%s", path);
    code = br_model_open(&model, name ? name : head.model, st);
    if (code == BR_OK)
        code = br_tok_from_gguf(&tok, model->gguf, NULL, st);
    if (code == BR_OK)
        code = br_lm_model_open(&lm, model, &(br_lm_config){.n_slots = 8}, st);
    if (code == BR_OK) {
        code = br_replay(
            trace->p, trace->n,
            &(br_engine_config){.lm = br_lm_model_lm(lm), .tok = tok}, out, st);
        if (code != BR_OK)
            (void)br_prefix(st, "%s", path);
    }
    br_lm_model_close(lm);
    br_tok_free(tok);
    br_model_close(model);
    return code;
}

int
br_cmd_replay(br_cli *cli)
{
    br_file_map m;
    br_replay_report r;
    br_status st = {0};
    br_code code = br_file_map_open(&m, cli->args[0], &st);

    if (code != BR_OK)
        return br_cli_fail(cli, &st);
    code =
        again(&m, cli->args[0], cli->n_args > 1 ? cli->args[1] : NULL, &r, &st);
    br_file_map_close(&m);
    return code == BR_OK ? print(cli, &r) : br_cli_fail(cli, &st);
}

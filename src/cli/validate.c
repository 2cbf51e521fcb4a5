/* validate.c - brass validate: do tiers agree, and if not, from where on.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/tier_diff.h"

#include "base/json.h"
#include "cli/catalogue.h"
#include "cli/progress.h"
#include "cli/tiers.h"
#include "model/tokenizer.h"

#include <string.h>

enum { MAX_TIERS = 8, MAX_NAME = 40 };

/* What F16 keys and rounded activations cost: drv/cpu/cpu.h. */
#define FAST_BOUND 1e-2

typedef struct validation {
    br_cli *cli;
    br_model *m;
    br_cpu_pool *pool;
    br_tok_ids tokens;
    char name[MAX_TIERS + 1][MAX_NAME];
    br_text tier[MAX_TIERS]; /* of these */
    uint32_t n_tiers;
    bool exact;
} validation;

static br_code
get_tiers(validation *v, br_status *st)
{
    const char *at = br_opt_str(v->cli, BR_OPT_tiers);

    for (;; at++) {
        br_text t = {at, strcspn(at, ",")};

        char *name = v->name[v->n_tiers];

        if (v->n_tiers == MAX_TIERS)
            return br_fail(st, BR_E_LIMIT, "--tiers: more than %d", MAX_TIERS);
        snprintf(name, MAX_NAME, "%.*s", (int)BR_MIN(t.n, (size_t)MAX_NAME),
                 t.p);
        BR_TRY(br_cli_tier_check(name, st));
        v->tier[v->n_tiers++] = br_text_z(name);
        at += t.n;
        if (!*at)
            break;
    }
    return v->n_tiers > 1
               ? BR_OK
               : br_fail(st, BR_E_USAGE, "--tiers: two at least, as ref,cpu");
}

static br_code
get_tokens(validation *v, br_status *st)
{
    br_text text = br_text_z(br_opt_str(v->cli, BR_OPT_text_of));
    br_tok_work *work = br_tok_work_new();
    br_tok *t = NULL;
    br_code code = work ? br_tok_from_gguf(&t, v->m->gguf, NULL, st)
                        : br_fail(st, BR_E_OOM, "out of memory");

    if (code == BR_OK)
        code = br_tok_encode(t, work, text, BR_TOK_ADD_SPECIAL, &v->tokens, st);
    br_tok_free(t);
    br_tok_work_free(work);
    if (code == BR_OK && v->tokens.n == 0)
        code = br_fail(st, BR_E_USAGE, "--prompt: the text has no tokens");
    if (code == BR_OK && v->tokens.n > BR_VALIDATE_TOKENS)
        code = br_fail(st, BR_E_LIMIT, "--prompt: %zu tokens; at most %d",
                       v->tokens.n, BR_VALIDATE_TOKENS);
    return code;
}

static br_code
open_tier(validation *v, br_text tier, br_oracle *o, br_status *st)
{
    uint32_t n = (uint32_t)v->tokens.n;
    br_oracle_config c = {.act = BR_REF_QUANTISED,
                          .n_ctx = n,
                          .max_rows = n,
                          .exact = v->exact,
                          .gpu_timeout_s =
                              (uint32_t)br_opt_int(v->cli, BR_OPT_gpu_timeout),
                          .kv = br_cli_kv(v->cli, false)};

    if (br_text_is(tier, "cpu"))
        c.pool = v->pool;
    c.gpu = br_cli_where(v->cli, tier.p);
    if (c.pool || c.gpu.tier)
        c.kv = br_cli_kv(v->cli, !v->exact);
    return br_oracle_open(o, v->m, &c, st);
}

/* ---- telling ------------------------------------------------------------- */

static void
put_first(br_json_writer *w, const br_diff *d, const br_ir *g)
{
    const br_ir_node *n = &g->nodes[d->node];
    br_text name = br_ir_value_name(g, n->bind[n->n_in].value);

    br_json_w_key(w, "first");
    br_json_w_obj(w);
    br_json_w_key(w, "layer");
    br_json_w_i64(w, d->first->layer);
    br_json_w_key_u64(w, "node", d->node);
    br_json_w_key_strz(w, "op", br_ir_opinfo_of(n->op)->name);
    br_json_w_key(w, "value");
    br_json_w_str(w, name);
    br_json_w_key_u64(w, "row", d->row);
    br_json_w_key_u64(w, "column", d->col);
    br_json_w_key_f64(w, "want", (double)d->want);
    br_json_w_key_f64(w, "got", (double)d->got);
    br_json_w_obj_end(w);
}

static void
put_tier(br_json_writer *w, br_text tier, const br_diff *d, const br_ir *g)
{
    br_json_w_obj(w);
    br_json_w_key(w, "tier");
    br_json_w_str(w, tier);
    br_json_w_key(w, "ok");
    br_json_w_bool(w, d->first == NULL);
    br_json_w_key(w, "layers");
    br_json_w_arr(w);
    for (size_t i = 0; i < d->layers.n; i++) {
        br_json_w_obj(w);
        br_json_w_key(w, "layer");
        br_json_w_i64(w, d->layers.at[i].layer);
        br_json_w_key_f64(w, "nmse", d->layers.at[i].nmse);
        br_json_w_key(w, "equal");
        br_json_w_bool(w, d->layers.at[i].equal);
        br_json_w_obj_end(w);
    }
    br_json_w_arr_end(w);
    if (d->first)
        put_first(w, d, g);
    br_json_w_obj_end(w);
}

static void
print_tier(const validation *v, br_text tier, const br_diff *d, const br_ir *g)
{
    FILE *f = v->cli->out;
    int32_t end = (int32_t)v->m->hp.n_layer;

    for (size_t i = 0; i < d->layers.n; i++) {
        const br_layer_diff *l = &d->layers.at[i];

        if (l->layer < 0)
            fputs("embedding", f);
        else if (l->layer == end)
            fputs("logits   ", f);
        else
            fprintf(f, "layer %-3d", l->layer);
        if (l->equal)
            fputs("  the same bits\n", f);
        else
            fprintf(f, "  NMSE %.3g%s\n", l->nmse,
                    l == d->first ? "  <-- the first" : "");
    }
    if (d->first) {
        const br_ir_node *n = &g->nodes[d->node];
        br_text name = br_ir_value_name(g, n->bind[n->n_in].value);

        fprintf(f,
                "%.*s differs from %.*s in %s%d: nodes[%u] %s writes %.*s, row "
                "%u, column %u: %.9g, not %.9g\n",
                (int)tier.n, tier.p, (int)v->tier[0].n, v->tier[0].p,
                d->first->layer == end ? "the head, after layer " : "layer ",
                d->first->layer == end ? end - 1 : d->first->layer, d->node,
                br_ir_opinfo_of(n->op)->name, (int)name.n, name.p, d->row,
                d->col, (double)d->got, (double)d->want);
    } else {
        fprintf(f, "%.*s agrees with %.*s: %zu tokens, %s\n", (int)tier.n,
                tier.p, (int)v->tier[0].n, v->tier[0].p, v->tokens.n,
                v->exact ? "to the bit" : "every layer within NMSE 0.01");
    }
}

/* ---- running ------------------------------------------------------------- */

/* Adds what it finds to the document, or prints it. *differs: some layer. */
static br_code
compare(validation *v, br_oracle *want, br_text tier, br_json_writer *w,
        bool *differs, br_status *st)
{
    br_oracle got;
    br_diff d;
    br_code code;

    BR_TRY(open_tier(v, tier, &got, st));
    code = br_validate(&d, want, &got, v->tokens.at, (uint32_t)v->tokens.n,
                       v->exact ? 0 : FAST_BOUND, st);
    if (code == BR_OK) {
        *differs = *differs || d.first;
        if (w)
            put_tier(w, tier, &d, want->graph[BR_IR_PREFILL]);
        else
            print_tier(v, tier, &d, want->graph[BR_IR_PREFILL]);
        br_diff_fini(&d);
    }
    br_oracle_close(&got);
    return code;
}

static int
run(validation *v, br_status *st)
{
    bool json = br_opt_bool(v->cli, BR_OPT_json), differs = false;
    br_str doc = {0};
    br_json_writer w;
    br_oracle want;
    br_code code;
    int ret = 1;

    if (open_tier(v, v->tier[0], &want, st) != BR_OK)
        return 1;
    br_json_w_begin(&w, &doc, 0);
    br_json_w_obj(&w);
    br_json_w_key(&w, "reference");
    br_json_w_str(&w, v->tier[0]);
    br_json_w_key_strz(&w, "arith", v->exact ? "exact" : "fast");
    br_json_w_key_u64(&w, "tokens", v->tokens.n);
    br_json_w_key(&w, "tiers");
    br_json_w_arr(&w);
    code = BR_OK;
    for (uint32_t i = 1; i < v->n_tiers && code == BR_OK; i++)
        code = compare(v, &want, v->tier[i], json ? &w : NULL, &differs, st);
    br_json_w_arr_end(&w);
    br_json_w_key(&w, "ok");
    br_json_w_bool(&w, !differs);
    br_json_w_obj_end(&w);
    if (code == BR_OK)
        ret = json ? br_cli_json_out(v->cli, &doc) : 0;
    br_str_fini(&doc);
    br_oracle_close(&want);
    return ret ? ret : differs ? br_code_exit(BR_E_REJECTED) : 0;
}

int
br_cmd_validate(br_cli *cli)
{
    validation v = {.cli = cli, .exact = br_opt_enum(cli, BR_OPT_arith) == 1};
    br_status st = {0};
    br_str path = {0};
    int ret = 1;

    if (!br_opt_given(cli, BR_OPT_text_of))
        return br_cli_usage(cli, "no --prompt");
    if (get_tiers(&v, &st) == BR_OK &&
        br_cli_model(cli, cli->args[0], &path, &st) == BR_OK &&
        br_progress_model(cli, &v.m, path.at, NULL, &st) == BR_OK &&
        get_tokens(&v, &st) == BR_OK &&
        br_cpu_pool_new(&v.pool, (uint32_t)br_opt_int(cli, BR_OPT_threads),
                        &st) == BR_OK)
        ret = run(&v, &st);
    br_cpu_pool_free(v.pool);
    br_vec_fini(&v.tokens);
    br_str_fini(&path);
    br_model_close(v.m);
    return st.code != BR_OK ? br_cli_fail(cli, &st) : ret;
}

/* logits.c - brass logits: what a model says after each token of a list.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "base/thread.h"
#include "cli/catalogue.h"
#include "cli/progress.h"
#include "cli/tiers.h"
#include "model/tokenizer.h"
#include "run/lm_model.h"
#include "run/oracle.h"

#include <string.h>
#include <unistd.h>

enum {
    MAX_TOKENS = 1 << 20,
    MAX_FILE_BYTES = 16 << 20,
};

typedef BR_VEC(int32_t) token_list;

static bool
gap(char c)
{
    return c == ',' || c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

static br_code
read_tokens(const char *text, size_t n, token_list *out, br_status *st)
{
    size_t i = 0;

    for (;;) {
        size_t from;
        int64_t v;

        while (i < n && gap(text[i]))
            i++;
        if (i == n)
            break;
        from = i;
        while (i < n && !gap(text[i]))
            i++;
        if (!br_json_to_i64((br_text){text + from, i - from}, &v) || v < 0 ||
            v > INT32_MAX)
            return br_fail(st, BR_E_USAGE, "tokens: '%.*s' is not a token id",
                           (int)BR_MIN(i - from, (size_t)32), text + from);
        if (out->n == MAX_TOKENS)
            return br_fail(st, BR_E_LIMIT, "tokens: more than %d", MAX_TOKENS);
        if (!br_vec_push(out, (int32_t)v))
            return br_fail(st, BR_E_OOM, "tokens: out of memory");
    }
    return out->n ? BR_OK : br_fail(st, BR_E_USAGE, "tokens: there are none");
}

static br_code
read_file(const char *path, token_list *out, br_status *st)
{
    char *text;
    size_t n;
    br_code code;

    BR_TRY(br_file_read(path, MAX_FILE_BYTES, &text, &n, st));
    code = read_tokens(text, n, out, st);
    br_free(text);
    return code == BR_OK ? code : br_prefix(st, "%s", path);
}

static br_code
encode(const br_model *m, const char *text, token_list *out, br_status *st)
{
    br_tok_work *work = br_tok_work_new();
    br_tok_ids ids = {0};
    br_tok *t = NULL;
    br_code code = work ? br_tok_from_gguf(&t, m->gguf, NULL, st)
                        : br_fail(st, BR_E_OOM, "out of memory");

    if (code == BR_OK)
        code = br_tok_encode(t, work, br_text_z(text), BR_TOK_ADD_SPECIAL, &ids,
                             st);
    for (size_t i = 0; code == BR_OK && i < ids.n; i++)
        if (!br_vec_push(out, ids.at[i]))
            code = br_fail(st, BR_E_OOM, "out of memory");
    if (code == BR_OK && out->n == 0)
        code = br_fail(st, BR_E_USAGE, "--prompt: the text has no tokens");
    br_vec_fini(&ids);
    br_tok_free(t);
    br_tok_work_free(work);
    return code;
}

static br_code
get_tokens(br_cli *cli, const br_model *m, token_list *out, br_status *st)
{
    const char *path = br_opt_str(cli, BR_OPT_tokens_file);
    const char *list = br_opt_str(cli, BR_OPT_tokens);

    if (list)
        return read_tokens(list, strlen(list), out, st);
    if (path)
        return read_file(path, out, st);
    return encode(m, br_opt_str(cli, BR_OPT_text_of), out, st);
}

static br_code
check_tokens(const br_model *m, const token_list *t, br_status *st)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->at[i] >= m->hp.n_vocab)
            return br_fail(st, BR_E_FORMAT,
                           "tokens[%zu]: token %d is not in 0..%lld", i,
                           t->at[i], (long long)m->hp.n_vocab - 1);
    return BR_OK;
}

/* In pieces, so that somebody who waits sees how far it is. */
static br_code
feed(br_cli *cli, br_oracle *o, const token_list *t, uint32_t chunk,
     float *logits, br_status *st)
{
    uint32_t n = (uint32_t)t->n;
    size_t n_vocab = (size_t)o->model->hp.n_vocab;
    br_code code = BR_OK;
    br_progress p;

    br_progress_begin(&p, cli, "tokens", n);
    for (uint32_t i = 0; code == BR_OK && i < n; i += chunk) {
        uint32_t k = BR_MIN(chunk, n - i);

        code = br_oracle_feed(o, 0, i, t->at + i, k, chunk,
                              logits + i * n_vocab, st);
        br_progress_at(&p, i + k, br_now_ns());
    }
    br_progress_end(&p);
    return code;
}

static bool
on_cpu(const br_cli *cli)
{
    const char *tier = br_opt_str(cli, BR_OPT_tier);

    return tier && strcmp(tier, "cpu") == 0;
}

static br_code
compute(br_cli *cli, const br_model *m, const token_list *t, br_cpu_pool *pool,
        br_status *st)
{
    uint32_t n = (uint32_t)t->n;
    int64_t ctx = br_opt_given(cli, BR_OPT_ctx) ? br_opt_int(cli, BR_OPT_ctx)
                                                : BR_MAX(n, 256u);
    uint32_t chunk = (uint32_t)br_opt_int(cli, BR_OPT_chunk);
    bool exact = br_opt_enum(cli, BR_OPT_arith) == 1;
    br_nd_where gpu = br_cli_where(cli, br_cli_tier(cli, BR_OPT_tier));
    br_oracle_config c = {
        .act = exact || br_opt_enum(cli, BR_OPT_act) == 1 ? BR_REF_QUANTISED
                                                          : BR_REF_F32,
        .n_ctx = (uint32_t)ctx,
        .max_rows = BR_MIN(chunk, n),
        .pool = pool,
        .gpu = gpu,
        .gpu_memory = (uint64_t)br_opt_int(cli, BR_OPT_gpu_memory),
        .gpu_dense = (enum br_cun_dense)br_opt_enum(cli, BR_OPT_gpu_dense),
        .gpu_timeout_s = (uint32_t)br_opt_int(cli, BR_OPT_gpu_timeout),
        .exact = exact,
        .kv = br_cli_kv(cli, (pool || gpu.tier) && !exact)};
    size_t bytes;
    float *logits;
    br_oracle o;
    br_code code;

    if (br_opt_given(cli, BR_OPT_workers))
        c.workers = (uint32_t)br_opt_int(cli, BR_OPT_workers);
    if (ctx < n)
        return br_fail(st, BR_E_USAGE, "--ctx: %u tokens do not fit", n);
    if (br_mul_overflows(n, (size_t)m->hp.n_vocab * sizeof(float), &bytes) ||
        !(logits = br_try_alloc(bytes)))
        return br_fail(st, BR_E_OOM, "logits: out of memory");
    code = check_tokens(m, t, st);
    if (code == BR_OK)
        code = br_oracle_open(&o, m, &c, st);
    if (code == BR_OK) {
        code = feed(cli, &o, t, chunk, logits, st);
        br_oracle_close(&o);
    }
    if (code != BR_OK)
        (void)br_prefix(st, "%s", cli->args[0]);
    else
        code = br_cli_write(cli, br_opt_str(cli, BR_OPT_output), logits, bytes,
                            st);
    br_free(logits);
    return code;
}

static br_code
check_options(br_cli *cli, br_status *st)
{
    const char *out = br_opt_str(cli, BR_OPT_output);
    int fd = fileno(cli->out);

    if (br_opt_given(cli, BR_OPT_tokens) +
            br_opt_given(cli, BR_OPT_tokens_file) +
            br_opt_given(cli, BR_OPT_text_of) !=
        1)
        return br_fail(st, BR_E_USAGE,
                       "expected one of --tokens, --tokens-file and --prompt");
    if (!out && fd >= 0 && isatty(fd))
        return br_fail(st, BR_E_USAGE,
                       "logits are no text for a terminal; --output FILE");
    if (on_cpu(cli) || br_opt_enum(cli, BR_OPT_arith) == 1) {
        if (br_opt_given(cli, BR_OPT_act) && br_opt_enum(cli, BR_OPT_act) == 0)
            return br_fail(st, BR_E_USAGE,
                           "--act f32 is for the ref tier's own arithmetic");
    }
    return br_cli_tier_check(br_opt_str(cli, BR_OPT_tier), st);
}

int
br_cmd_logits(br_cli *cli)
{
    br_status st = {0};
    token_list t = {0};
    br_model *m = NULL;
    br_cpu_pool *pool = NULL;
    br_str path = {0};
    br_code code = check_options(cli, &st);

    if (code == BR_E_USAGE)
        return br_cli_usage(cli, "%s", st.msg);
    if (code == BR_OK)
        code = br_cli_model(cli, cli->args[0], &path, &st);
    if (code == BR_OK)
        code = br_progress_model(cli, &m, path.at, NULL, &st);
    if (code == BR_OK)
        code = get_tokens(cli, m, &t, &st);
    if (code == BR_OK && on_cpu(cli))
        code = br_cpu_pool_new(&pool, (uint32_t)br_opt_int(cli, BR_OPT_threads),
                               &st);
    if (code == BR_OK)
        code = compute(cli, m, &t, pool, &st);
    br_cpu_pool_free(pool);
    br_model_close(m);
    br_vec_fini(&t);
    br_str_fini(&path);
    return code == BR_OK ? 0 : br_cli_fail(cli, &st);
}

/* talk.c - see talk.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/talk.h"

#include "base/json.h"
#include "base/thread.h"
#include "cli/catalogue.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "cli/tiers.h"
#include "run/textout.h"

#include <string.h>
#include <unistd.h>

#define DIM   "\033[2m"
#define PLAIN "\033[0m"

/* ---- options ------------------------------------------------------------- */

/* "1.1,0,0.5" into v[0..n); what is left out stays as it is. */
static br_code
numbers(const char *flag, const char *text, double *v, size_t n, br_status *st)
{
    for (size_t i = 0; text; i++) {
        size_t len = strcspn(text, ",");

        if (i == n)
            return br_fail(st, BR_E_USAGE, "%s: over %zu numbers", flag, n);
        if (len && !br_json_to_f64((br_text){text, len}, &v[i]))
            return br_fail(st, BR_E_USAGE, "%s: '%.*s' is not a number", flag,
                           (int)BR_MIN(len, (size_t)40), text);
        text = text[len] ? text + len + 1 : NULL;
    }
    return BR_OK;
}

static br_code
whole(const char *flag, double v, int32_t *out, br_status *st)
{
    if (!(v >= -1 && v <= INT32_MAX) || v != (double)(int32_t)v)
        return br_fail(st, BR_E_USAGE, "%s: %g is not a number of tokens", flag,
                       v);
    *out = (int32_t)v;
    return BR_OK;
}

static br_code
get_penalties(br_talk *t, br_status *st)
{
    br_sample_params *p = &t->params.sample;
    double r[4] = {(double)p->repeat, 0, 0, p->penalty_last_n};
    double d[4] = {0, (double)p->dry_base, p->dry_allowed, p->dry_last_n};

    BR_TRY(
        numbers("--penalties", br_opt_str(t->cli, BR_OPT_penalties), r, 4, st));
    BR_TRY(numbers("--dry", br_opt_str(t->cli, BR_OPT_dry), d, 4, st));
    p->repeat = (float)r[0];
    p->presence = (float)r[1];
    p->frequency = (float)r[2];
    p->dry_multiplier = (float)d[0];
    p->dry_base = (float)d[1];
    BR_TRY(whole("--penalties", r[3], &p->penalty_last_n, st));
    BR_TRY(whole("--dry", d[2], &p->dry_allowed, st));
    return whole("--dry", d[3], &p->dry_last_n, st);
}

static br_code
one_bias(const char *text, br_logit_bias *b, br_status *st)
{
    size_t n = strcspn(text, "=");
    bool never = text[n] && strcmp(text + n + 1, "-inf") == 0;
    double add = 0;
    int64_t id;

    if (!text[n] || !br_json_to_i64((br_text){text, n}, &id) || id < 0 ||
        id > INT32_MAX ||
        (!never && !br_json_to_f64(br_text_z(text + n + 1), &add)))
        return br_fail(st, BR_E_USAGE, "--logit-bias: '%.60s' is not ID=X",
                       text);
    *b = (br_logit_bias){(int32_t)id, never ? -__builtin_inff() : (float)add};
    return BR_OK;
}

static br_code
get_bias(br_talk *t, br_status *st)
{
    const char *const *list;
    size_t n = br_opt_list(t->cli, BR_OPT_logit_bias, &list);

    for (size_t i = 0; i < n; i++) {
        br_logit_bias b;

        BR_TRY(one_bias(list[i], &b, st));
        if (!br_vec_push(&t->bias, b))
            return br_fail(st, BR_E_OOM, "out of memory");
    }
    t->params.sample.bias = t->bias.at;
    t->params.sample.n_bias = t->bias.n;
    return BR_OK;
}

static br_code
get_params(br_talk *t, br_status *st)
{
    const br_cli *cli = t->cli;
    br_sample_params *p = &t->params.sample;

    t->params = br_gen_defaults();
    p->temperature = (float)br_opt_f64(cli, BR_OPT_temp);
    p->top_k = (int32_t)br_opt_int(cli, BR_OPT_top_k);
    p->top_p = (float)br_opt_f64(cli, BR_OPT_top_p);
    p->min_p = (float)br_opt_f64(cli, BR_OPT_min_p);
    p->typical = (float)br_opt_f64(cli, BR_OPT_typical);
    if (br_opt_given(cli, BR_OPT_draw_seed)) {
        p->seed = (uint64_t)br_opt_int(cli, BR_OPT_draw_seed);
    } else {
        br_os_random(&p->seed, sizeof p->seed);
        p->seed >>= 32; /* short enough to be typed again */
    }
    if (br_opt_given(cli, BR_OPT_max_tokens))
        t->params.max_tokens = br_opt_int(cli, BR_OPT_max_tokens);
    t->params.n_stop = br_opt_list(cli, BR_OPT_stop, &t->params.stop);
    BR_TRY(br_stops_check(t->params.stop, t->params.n_stop, st));
    BR_TRY(get_penalties(t, st));
    BR_TRY(get_bias(t, st));
    return br_sample_params_check(p, 0, st);
}

/* ---- opening ------------------------------------------------------------- */

/* Messages of a file that is not there begin with its name. */
static br_code
named(const br_talk *t, br_code code, br_status *st)
{
    if (code != BR_OK && strncmp(st->msg, t->path.at, t->path.n) != 0 &&
        strncmp(st->msg, "--", 2) != 0)
        (void)br_prefix(st, "%s", t->path.at);
    return code;
}

static uint32_t
answer_of(const br_talk *t)
{
    return (uint32_t)BR_MAX(t->params.max_tokens, 0);
}

static void
close_lm(br_talk *t)
{
    br_session_free(t->session);
    br_lm_model_close(t->lm);
    t->session = NULL;
    t->lm = NULL;
}

static br_code
open_lm(br_talk *t, br_status *st)
{
    br_str cache = {0};
    br_lm_config c = br_cli_lm_config(t->cli, &cache);
    br_code code;

    if (br_opt_given(t->cli, BR_OPT_max_ctx))
        c.n_ctx = (uint32_t)br_opt_int(t->cli, BR_OPT_max_ctx);
    c.prompt = (uint32_t)BR_MIN(t->prompt.n, UINT32_MAX);
    c.answer = answer_of(t);
    c.stop = t->stop;
    code = br_progress_lm(t->cli, &t->lm, t->model, &c, st);
    br_str_fini(&cache);
    return code;
}

br_code
br_talk_load(br_talk *t, br_status *st)
{
    br_code code;

    close_lm(t);
    code = open_lm(t, st);
    if (code == BR_OK)
        code =
            br_session_new(&t->session, br_lm_model_lm(t->lm), t->tok, 0, st);
    return named(t, code, st);
}

br_code
br_talk_reload(br_talk *t, br_status *st)
{
    struct sigaction before;
    bool held;
    br_code code;

    t->stop = br_interrupted();
    br_interrupt_begin(&before, NULL);
    held = br_cli_hold_interrupts(false); /* one that waits comes now */
    code = br_talk_load(t, st);
    (void)br_cli_hold_interrupts(held);
    br_interrupt_end(&before);
    /* relaxed: as interrupt.c has it */
    if (code == BR_E_CANCELLED ||
        (code == BR_OK &&
         atomic_load_explicit(t->stop, memory_order_relaxed))) {
        *st = (br_status){0};
        code = br_fail(st, BR_E_CANCELLED, "stopped%s",
                       t->session ? "" : "; the next message loads the model");
    }
    t->stop = NULL;
    return code;
}

static br_code
open_model(br_talk *t, bool chat, br_status *st)
{
    BR_TRY(br_progress_model(t->cli, &t->model, t->path.at, NULL, st));
    BR_TRY(br_cli_ctx_check(t->cli, t->model, st));
    BR_TRY(br_sample_params_check(&t->params.sample,
                                  (int32_t)t->model->hp.n_vocab, st));
    BR_TRY(br_tok_from_gguf(&t->tok, t->model->gguf, NULL, st));
    return chat ? br_chat_new(&t->chat, t->model->gguf, t->tok, st) : BR_OK;
}

br_code
br_talk_open(br_talk *t, br_cli *cli, bool chat, br_status *st)
{
    br_code code;

    *t = (br_talk){.cli = cli};
    code = get_params(t, st);
    if (code == BR_OK)
        code =
            br_cli_model(cli, cli->n_args ? cli->args[0] : NULL, &t->path, st);
    if (code == BR_OK) {
        t->work = br_tok_work_new();
        code = named(t,
                     t->work ? open_model(t, chat, st)
                             : br_fail(st, BR_E_OOM, "out of memory"),
                     st);
    }
    if (code != BR_OK)
        br_talk_close(t);
    return code;
}

bool
br_talk_outgrown(const br_talk *t)
{
    const size_t n = t->prompt.n;

    if (!t->session)
        return true;
    return br_lm_model_outgrown(
        t->lm, (uint32_t)(n - br_session_known(t->session, t->prompt.at, n)),
        answer_of(t));
}

void
br_talk_close(br_talk *t)
{
    close_lm(t);
    br_chat_free(t->chat);
    br_tok_work_free(t->work);
    br_tok_free(t->tok);
    br_model_close(t->model);
    br_vec_fini(&t->bias);
    br_vec_fini(&t->prompt);
    br_str_fini(&t->path);
    *t = (br_talk){0};
}

/* ---- answering ----------------------------------------------------------- */

/* The answer follows on the same screen: the line is gone before it. */
static void
show_prompt(void *progress, uint64_t done, uint64_t total)
{
    br_progress_advance(progress, done, total);
    if (done == total)
        br_progress_end(progress);
}

/* A prompt that has no room may have some: 4096 tokens are what nobody asked for
 * gets, not what the model was made for. */
static br_code
more_room(const br_talk *t, br_code code, br_status *st)
{
    const int64_t has = br_lm_model_lm(t->lm)->n_ctx, most = t->model->hp.n_ctx;
    char said[sizeof st->msg];

    if (code != BR_E_LIMIT || (int64_t)t->prompt.n < has || most <= has)
        return code;
    memcpy(said, st->msg, sizeof said);
    *st = (br_status){0};
    return br_fail(st, code, "%s; --ctx N gives more, to this model up to %lld",
                   said, (long long)most);
}

br_code
br_talk_answer(br_talk *t, br_status *st)
{
    struct sigaction before;
    br_progress p;
    bool held;
    br_code code;

    t->params.cancel = br_interrupted();
    br_progress_begin(&p, t->cli, "reading the prompt", 0);
    t->params.progress = p.terminal ? show_prompt : NULL;
    t->params.progress_ctx = &p;
    br_interrupt_begin(&before, NULL);
    br_interrupt_ends(t->once);
    held = br_cli_hold_interrupts(false); /* one that waits comes now */
    code = br_session_generate(t->session, t->prompt.at, t->prompt.n,
                               &t->params, &t->stats, st);
    (void)br_cli_hold_interrupts(held);
    br_interrupt_end(&before);
    br_progress_end(&p);
    return more_room(t, code, st);
}

/* C0, DEL and C1 (in UTF-8: C2 80..9F) are shown, newline and tab obeyed. */
void
br_talk_print(FILE *f, br_text piece)
{
    int fd = fileno(f);
    bool terminal = fd >= 0 && isatty(fd);

    if (!terminal)
        fwrite(piece.p, 1, piece.n, f);
    for (size_t i = 0; terminal && i < piece.n; i++) {
        uint8_t c = (uint8_t)piece.p[i];
        bool c1 =
            c == 0xC2 && i + 1 < piece.n && (uint8_t)piece.p[i + 1] < 0xA0;

        if (c1)
            c = (uint8_t)piece.p[++i];
        if (c1 || c == 0x7F || (c < 0x20 && c != '\n' && c != '\t'))
            fprintf(f, "\\x%02x", c);
        else
            fputc(c, f);
    }
    fflush(f);
}

void
br_talk_numbers(const br_talk *t)
{
    const br_gen_stats *s = &t->stats;
    FILE *f = t->cli->err;
    int fd = fileno(f);
    bool styled = br_cli_styled(t->cli, f);

    if (fd < 0 || !isatty(fd))
        return;
    fprintf(f, "%s%u tokens, %.1f tok/s, first after %.2f s", styled ? DIM : "",
            s->n_out, br_gen_decode_rate(s), (double)s->first_ns * 1e-9);
    if (s->end == BR_GEN_CONTEXT)
        fprintf(f, "; cut: the context of %u tokens is full",
                br_lm_model_lm(t->lm)->n_ctx);
    else if (s->end == BR_GEN_LENGTH)
        fputs("; cut at --max-tokens", f);
    else if (s->end == BR_GEN_CANCELLED)
        fputs("; stopped", f);
    fputs(styled ? PLAIN "\n" : "\n", f);
}

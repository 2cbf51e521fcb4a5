/* serve.c - brass serve: a model behind the APIs of http/http.h.
 *
 *   main thread:  listen, tell where, run the loop until a signal
 *   loader:       open the model, start the engine, br_http_ready
 *
 * So /health answers (503) while a large model is read.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"
#include "base/thread.h"
#include "cli/catalogue.h"
#include "http/http.h"
#include "run/books.h"
#include "run/lm_model.h"
#include "run/trace.h"

#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { NAME = 128 };

typedef struct server {
    br_cli *cli;
    br_http_config config;
    br_http *http;
    br_thread loader;
    br_model *model;
    br_tok *tok;
    br_chat *chat;
    br_lm_model *lm;
    br_engine *engine;
    br_trace *trace;
    br_str path; /* of the model */
    char name[NAME];
    br_books *books;
    br_status st; /* the loader's, until it is joined */
} server;

/* ---- options ------------------------------------------------------------- */

static void
get_sampling(server *s)
{
    br_sample_params *p = &s->config.sample;

    p->temperature = (float)br_opt_f64(s->cli, BR_OPT_temp);
    p->top_k = (int32_t)br_opt_int(s->cli, BR_OPT_top_k);
    p->top_p = (float)br_opt_f64(s->cli, BR_OPT_top_p);
    p->min_p = (float)br_opt_f64(s->cli, BR_OPT_min_p);
}

/* "models/demo.gguf" is called demo. */
static void
get_name(server *s)
{
    const char *path = s->path.at, *slash = strrchr(path, '/');
    const char *name = br_opt_str(s->cli, BR_OPT_model_name);
    size_t n;

    if (!name)
        name = slash && slash[1] ? slash + 1 : path;
    n = BR_MIN(strlen(name), sizeof s->name - 1);
    if (!br_opt_given(s->cli, BR_OPT_model_name) && n > 5 &&
        strcmp(name + strlen(name) - 5, ".gguf") == 0)
        n = BR_MIN(strlen(name) - 5, sizeof s->name - 1);
    memcpy(s->name, name, n);
    s->name[n] = 0;
}

static br_code
get_options(server *s, br_status *st)
{
    const char *tier = br_opt_str(s->cli, BR_OPT_on_tier);

    if (tier && strcmp(tier, "ref") != 0 && strcmp(tier, "cpu") != 0)
        return br_fail(st, BR_E_NO_DEVICE,
                       "tier %s serves no models in this build; here are: cpu "
                       "ref",
                       tier);
    s->config = br_http_config_default();
    s->config.host = br_opt_str(s->cli, BR_OPT_host);
    s->config.port = (uint16_t)br_opt_int(s->cli, BR_OPT_port);
    s->config.unix_path = br_opt_str(s->cli, BR_OPT_unix_path);
    if (s->config.unix_path && !br_opt_given(s->cli, BR_OPT_host) &&
        !br_opt_given(s->cli, BR_OPT_port))
        s->config.host = NULL;
    if (br_opt_given(s->cli, BR_OPT_db))
        s->config.db = br_opt_str(s->cli, BR_OPT_db);
    s->config.admin = br_opt_str(s->cli, BR_OPT_admin_key);
    s->config.insecure = br_opt_bool(s->cli, BR_OPT_insecure);
    s->config.drain_ns = br_opt_int(s->cli, BR_OPT_drain) * 1000000000;
    s->config.limits.conns = (uint32_t)br_opt_int(s->cli, BR_OPT_max_conns);
    get_sampling(s);
    BR_TRY(br_cli_model(s->cli, s->cli->n_args ? s->cli->args[0] : NULL,
                        &s->path, st));
    get_name(s);
    return BR_OK;
}

/* ---- the model ----------------------------------------------------------- */

static br_code
open_template(server *s, const char *path, br_status *st)
{
    enum { MOST = 1 << 20 };
    char *text;
    br_code code;
    size_t n;

    BR_TRY(br_file_read(path, MOST, &text, &n, st));
    code = br_chat_from_template(&s->chat, (br_text){text, n}, s->tok, st);
    br_free(text);
    return code == BR_OK ? code : br_prefix(st, "%s", path);
}

static br_code
load_model(server *s, br_status *st)
{
    br_engine_config e = {0};
    br_lm_config c = {.tier = br_opt_str(s->cli, BR_OPT_on_tier),
                      .threads = (uint32_t)br_opt_int(s->cli, BR_OPT_threads),
                      .exact = br_opt_enum(s->cli, BR_OPT_arith) == 1,
                      .n_ctx = (uint32_t)br_opt_int(s->cli, BR_OPT_max_ctx),
                      .n_slots = (uint32_t)br_opt_int(s->cli, BR_OPT_slots)};
    const char *template = br_opt_str(s->cli, BR_OPT_chat_template);
    br_status none = {0};
    br_str cache = {0};
    br_code code;
    bool lost = false;

    BR_TRY(br_model_open(&s->model, s->path.at, st));
    BR_TRY(br_tok_from_gguf(&s->tok, s->model->gguf, NULL, st));
    /* Without a template texts can be continued, chats not held. */
    if (template)
        BR_TRY(open_template(s, template, st));
    else if (br_chat_new(&s->chat, s->model->gguf, s->tok, &none) != BR_OK &&
             none.code != BR_E_UNSUPPORTED)
        return br_fail(st, none.code, "%s", none.msg);
    c.cache = br_cli_cache(s->cli, &cache);
    code = br_lm_model_open(&s->lm, s->model, &c, st);
    br_str_fini(&cache);
    BR_TRY(code);
    e.lm = br_lm_model_lm(s->lm);
    e.tok = s->tok;
    if (br_opt_given(s->cli, BR_OPT_trace_file))
        BR_TRY(br_trace_open(&s->trace, br_opt_str(s->cli, BR_OPT_trace_file),
                             s->path.at, st));
    e.trace = s->trace;
    BR_TRY(br_engine_new(&s->engine, &e, st));
    if (s->config.db)
        BR_TRY(br_books_open(&s->books, s->engine, s->config.db, &lost, st));
    if (lost)
        br_log(BR_EV_http_lost, "%s", s->config.db);
    return BR_OK;
}

static void
load(void *arg)
{
    server *s = arg;
    br_http_model m = {.name = s->name};

    if (load_model(s, &s->st) != BR_OK) {
        if (strncmp(s->st.msg, s->path.at, s->path.n) != 0)
            (void)br_prefix(&s->st, "%s", s->path.at);
        br_http_stop(s->http);
        return;
    }
    m.engine = s->engine;
    m.tok = s->tok;
    m.chat = s->chat;
    m.n_ctx = br_lm_model_lm(s->lm)->n_ctx;
    m.tier = br_lm_model_lm(s->lm)->tier;
    br_http_ready(s->http, &m);
}

/* ---- life ---------------------------------------------------------------- */

static br_http *signalled; /* whom a signal stops */

static void
on_signal(int sig)
{
    (void)sig;
    br_http_stop(signalled);
}

static void
catch_signals(br_http *h)
{
    struct sigaction act = {.sa_handler = h ? on_signal : SIG_DFL};

    signalled = h;
    sigemptyset(&act.sa_mask);
    sigaction(SIGTERM, &act, NULL);
    sigaction(SIGINT, &act, NULL);
}

/* A connection is a file. */
static void
allow_files(void)
{
    struct rlimit r;

    if (getrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_cur < r.rlim_max) {
        r.rlim_cur = r.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &r);
    }
}

static void
tell(const server *s)
{
    FILE *f = s->cli->out;

    fprintf(f, "serving %s on", s->name);
    if (s->config.host)
        fprintf(f,
                strchr(s->config.host, ':') ? " http://[%s]:%u"
                                            : " http://%s:%u",
                s->config.host, br_http_port(s->http));
    if (s->config.unix_path)
        fprintf(f, " unix:%s", s->config.unix_path);
    fputs(isatty(fileno(f)) ? "   Ctrl-C ends\n" : "\n", f);
    fflush(f);
}

static void
close_all(server *s)
{
    br_status st = {0};

    br_http_free(s->http);
    br_books_close(s->books);
    br_engine_free(s->engine);
    if (br_trace_close(s->trace, &st) != BR_OK)
        br_log(BR_EV_http_failed, "%s", st.msg);
    br_lm_model_close(s->lm);
    br_chat_free(s->chat);
    br_tok_free(s->tok);
    br_model_close(s->model);
    br_str_fini(&s->path);
}

static br_code
serve(server *s, br_status *st)
{
    BR_TRY(get_options(s, st));
    allow_files();
    BR_TRY(br_http_new(&s->http, &s->config, st));
    BR_TRY(br_thread_start(&s->loader, "load", load, s, st));
    catch_signals(s->http);
    tell(s);
    br_http_run(s->http);
    br_thread_join(&s->loader);
    catch_signals(NULL);
    if (s->st.code != BR_OK)
        *st = s->st;
    return s->st.code;
}

int
br_cmd_serve(br_cli *cli)
{
    server s = {.cli = cli};
    br_status st = {0};
    br_code code = serve(&s, &st);

    close_all(&s);
    return code == BR_OK ? 0 : br_cli_fail(cli, &st);
}

/* serve.c - brass serve: models behind the APIs of http/http.h.
 *
 *   main thread:  listen, tell where, run the loop until a signal
 *   loader:       serve_models.c
 *
 * So /health answers (503) while a large model is read.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve.h"

#include "cli/catalogue.h"
#include "cli/tiers.h"
#include "run/shape.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

typedef br_serve_model served;
typedef br_serve_order order;
typedef br_serve server;

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

/* "models/demo.gguf" is called demo, the folder "Qwen3/" Qwen3. */
static void
get_name(const server *s, served *m)
{
    const char *name = br_opt_str(s->cli, BR_OPT_model_name);
    size_t n;

    if (name) {
        n = strlen(name);
    } else {
        size_t end = m->path.n;

        while (end > 1 && m->path.at[end - 1] == '/')
            end--;
        for (n = 0; n < end && m->path.at[end - n - 1] != '/';)
            n++;
        name = m->path.at + end - n;
        if (n > 5 && memcmp(name + n - 5, ".gguf", 5) == 0)
            n -= 5;
    }
    n = BR_MIN(n, sizeof m->name - 1);
    memcpy(m->name, name, n);
    m->name[n] = 0;
}

static void
free_listed(served *m)
{
    for (served *next; m; m = next) {
        next = m->next;
        br_str_fini(&m->path);
        br_free(m);
    }
}

/* A file, or the name of one; of one that is in the list already there is one. */
static br_code
want(const server *s, served **list, const char *arg, br_status *st)
{
    served *m = br_try_calloc(1, sizeof *m), **end = list;
    br_code code = m ? br_cli_model(s->cli, arg, &m->path, st)
                     : br_fail(st, BR_E_OOM, "out of memory");
    uint32_t n = 0;

    while (code == BR_OK && *end && strcmp((*end)->path.at, m->path.at) != 0) {
        end = &(*end)->next;
        n++;
    }
    if (code != BR_OK || *end) {
        free_listed(m);
        return code;
    }
    *end = m;
    get_name(s, m);
    m->wanted = true;
    if (n == BR_SERVE_MODELS)
        return br_fail(st, BR_E_LIMIT, "more than %d models", BR_SERVE_MODELS);
    for (const served *o = *list; o != m; o = o->next)
        if (strcmp(o->name, m->name) == 0)
            return br_fail(st, BR_E_USAGE, "%s and %s: both are called '%s'",
                           o->path.at, m->path.at, m->name);
    return BR_OK;
}

/* What has the name of one that comes answers until that is loaded. */
static void
await_namesake(server *s, const served *m)
{
    for (served *o = s->models; o; o = o->next)
        if (o != m && o->engine && !o->leaves && strcmp(o->name, m->name) == 0)
            o->wanted = true;
}

static void
adopt(server *s, served *listed)
{
    for (served *m = s->models; m; m = m->next) {
        m->wanted = false;
        br_str_clear(&m->error);
    }
    for (served *m = listed, *next; m; m = next) {
        served **at = &s->models;

        next = m->next;
        m->next = NULL;
        /* the admin may have given the file another name, until now */
        while (*at && (strcmp((*at)->path.at, m->path.at) != 0 ||
                       strcmp((*at)->name, m->name) != 0))
            at = &(*at)->next;
        if (*at) {
            (*at)->wanted = true;
            free_listed(m);
        } else {
            *at = m;
        }
        if (!(*at)->engine || (*at)->leaves)
            await_namesake(s, *at);
    }
}

/* A list with a mistake changes nothing: whoever saves one meanwhile would take
 * models from those who ask. */
br_code
br_serve_list(server *s, const char *path, br_status *st)
{
    enum { MOST = 1 << 16 };
    char *text, *line, *rest = NULL;
    served *listed = NULL;
    br_code code = BR_OK;
    size_t n;

    BR_TRY(br_file_read(path, MOST, &text, &n, st));
    for (line = strtok_r(text, "\r\n", &rest); line && code == BR_OK;
         line = strtok_r(NULL, "\r\n", &rest))
        if (line[0] != '#')
            code = want(s, &listed, line, st);
    br_free(text);
    if (code == BR_OK && !listed)
        code = br_fail(st, BR_E_USAGE, "it names no model");
    if (code != BR_OK) {
        free_listed(listed);
        return br_prefix(st, "%s", path);
    }
    br_mutex_lock(&s->lock);
    adopt(s, listed);
    br_mutex_unlock(&s->lock);
    return BR_OK;
}

/* Said before anybody is told where to ask. */
static br_code
are_there(const server *s, br_status *st)
{
    for (const served *m = s->models; m; m = m->next)
        if (!br_shape_is(m->path.at) && access(m->path.at, F_OK) != 0)
            return br_fail(st, BR_E_NOT_FOUND, "%s: %s", m->path.at,
                           strerror(errno));
    return BR_OK;
}

static br_code
get_models(server *s, br_status *st)
{
    const char *list = br_opt_str(s->cli, BR_OPT_models_file);
    const char *name = br_opt_str(s->cli, BR_OPT_model_name);
    int n = s->cli->n_args;

    if (name && (!name[0] || strlen(name) >= BR_SERVE_NAME))
        return br_fail(st, BR_E_USAGE, "--name: 1 to %d bytes",
                       BR_SERVE_NAME - 1);
    if (list && n)
        return br_fail(st, BR_E_USAGE, "--model-list FILE or models, not both");
    if (n > 1 && (br_opt_given(s->cli, BR_OPT_model_name) ||
                  br_opt_given(s->cli, BR_OPT_trace_file)))
        return br_fail(st, BR_E_USAGE,
                       "--name and --trace are for one model alone");
    if (br_opt_given(s->cli, BR_OPT_trace_file) &&
        (list || br_opt_int(s->cli, BR_OPT_unload_idle)))
        return br_fail(st, BR_E_USAGE,
                       "--trace is for one model that stays: not with "
                       "--model-list or --unload-idle");
    if (list)
        BR_TRY(br_serve_list(s, list, st));
    for (int i = 0; !list && i < BR_MAX(n, 1); i++)
        BR_TRY(want(s, &s->models, n ? s->cli->args[i] : NULL, st));
    return are_there(s, st);
}

br_code
br_serve_prices(const server *s, const char *name, br_prices *out,
                br_status *st)
{
    const char *const *list;
    size_t n = br_opt_list(s->cli, BR_OPT_price, &list);

    for (size_t i = 0; i < n; i++) {
        const char *is = strrchr(list[i], '=');
        br_text of = {list[i], is ? (size_t)(is - list[i]) : 0};
        br_prices p;

        if (!of.n)
            return br_fail(st, BR_E_USAGE, "--price %s: as MODEL=150/15/600",
                           list[i]);
        if (br_prices_read(&p, is + 1, st) != BR_OK)
            return br_prefix(st, "--price");
        if (name && br_text_is(of, name))
            *out = p;
    }
    return BR_OK;
}

/* A price of no model would be noticed when the bill is written. */
static br_code
check_prices(const server *s, br_status *st)
{
    const char *const *list;
    size_t n = br_opt_list(s->cli, BR_OPT_price, &list);

    BR_TRY(br_serve_prices(s, NULL, NULL, st));
    if (br_opt_str(s->cli, BR_OPT_models_file) || s->config.admin)
        return BR_OK; /* others may come */
    for (size_t i = 0; i < n; i++) {
        br_text of = {list[i], (size_t)(strrchr(list[i], '=') - list[i])};
        const served *m = s->models;

        while (m && !br_text_is(of, m->name))
            m = m->next;
        if (!m)
            return br_fail(st, BR_E_USAGE, "--price: no model is called '%.*s'",
                           (int)BR_MIN(of.n, (size_t)80), of.p);
    }
    return BR_OK;
}

/* Sessions go there when the server ends, which is too late to hear that they
 * cannot. */
static br_code
get_keep(server *s, br_status *st)
{
    const char *folder = br_opt_str(s->cli, BR_OPT_keep);
    br_str path = {0};
    struct stat is;
    int why;

    if (!folder)
        return BR_OK;
    br_str_puts(&path, folder);
    why = br_folder_make(&path);
    br_str_fini(&path);
    if (stat(folder, &is) != 0) /* not why it is not there: why it cannot be */
        return br_fail(st, BR_E_IO, "--keep: %s: %s", folder, strerror(why));
    if (!S_ISDIR(is.st_mode))
        return br_fail(st, BR_E_USAGE, "--keep: %s: not a folder", folder);
    if (access(folder, W_OK | X_OK) != 0)
        return br_fail(st, BR_E_IO, "--keep: %s: %s", folder, strerror(errno));
    br_str_printf(&s->resume, "%s/requests.json", folder);
    s->config.resume = br_str_z(&s->resume);
    return s->resume.oom ? br_fail(st, BR_E_OOM, "out of memory") : BR_OK;
}

static br_code
get_options(server *s, br_status *st)
{
    BR_TRY(br_cli_tier_check(br_cli_tier_said(s->cli, BR_OPT_on_tier), st));
    s->config = br_http_config_default();
    s->config.host = br_opt_str(s->cli, BR_OPT_host);
    s->config.port = (uint16_t)br_opt_int(s->cli, BR_OPT_port);
    s->config.unix_path = br_opt_str(s->cli, BR_OPT_unix_path);
    if (s->config.unix_path && !br_opt_given(s->cli, BR_OPT_host) &&
        !br_opt_given(s->cli, BR_OPT_port))
        s->config.host = NULL;
    s->config.db = br_opt_str(s->cli, BR_OPT_serve_db);
    s->config.talks =
        (br_talks_config){.path = br_opt_str(s->cli, BR_OPT_responses),
                          .days = br_opt_int(s->cli, BR_OPT_responses_days),
                          .most = br_opt_int(s->cli, BR_OPT_responses_most)};
    s->config.tls_cert = br_opt_str(s->cli, BR_OPT_tls_cert);
    s->config.tls_key = br_opt_str(s->cli, BR_OPT_tls_key);
    s->config.admin = br_opt_str(s->cli, BR_OPT_admin_key);
    s->config.keys = br_opt_str(s->cli, BR_OPT_api_keys);
    s->config.insecure = br_opt_bool(s->cli, BR_OPT_insecure);
    s->config.leave_ns = br_opt_int(s->cli, BR_OPT_drain_delay) * 1000000000;
    s->config.idle_ns = br_opt_int(s->cli, BR_OPT_unload_idle) * 1000000000;
    s->config.drain_ns = br_opt_int(s->cli, BR_OPT_drain) * 1000000000;
    s->config.limits.conns = (uint32_t)br_opt_int(s->cli, BR_OPT_max_conns);
    s->memory = (uint64_t)br_opt_int(s->cli, BR_OPT_memory);
    get_sampling(s);
    BR_TRY(get_models(s, st));
    BR_TRY(check_prices(s, st));
    return get_keep(s, st);
}

/* ---- life ---------------------------------------------------------------- */

static server *signalled; /* whom a signal is for */
static bool rereads;      /* at SIGHUP; else it ends, as its terminal did */

static void
on_signal(int sig)
{
    if (sig != SIGHUP || !rereads) {
        br_http_stop(signalled->http);
        return;
    }
    atomic_store_explicit(&signalled->again, true, memory_order_release);
    br_event_signal(&signalled->wake);
}

static void
catch_signals(server *s)
{
    struct sigaction act = {.sa_handler = s ? on_signal : SIG_DFL,
                            .sa_flags = SA_RESTART}; /* the log goes on */
    struct sigaction was;

    signalled = s ? s : signalled; /* one may be on its way to the handler */
    rereads |= s && br_opt_str(s->cli, BR_OPT_models_file);
    sigemptyset(&act.sa_mask);
    sigaction(SIGTERM, &act, NULL);
    sigaction(SIGINT, &act, NULL);
    /* nohup's stays ignored */
    if (rereads ||
        (sigaction(SIGHUP, NULL, &was) == 0 && was.sa_handler != SIG_IGN))
        sigaction(SIGHUP, &act, NULL);
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

void
br_serve_tell(const server *s, bool there)
{
    FILE *f = s->cli->out;

    fputs(there ? "serving" : "loading", f);
    for (const served *m = s->models; m; m = m->next)
        fprintf(f, "%s %s", m == s->models ? "" : ",", m->name);
    fputs(" on", f);
    if (s->config.host)
        fprintf(f,
                strchr(s->config.host, ':') ? " http%s://[%s]:%u"
                                            : " http%s://%s:%u",
                s->config.tls_cert ? "s" : "", s->config.host,
                br_http_port(s->http));
    if (s->config.unix_path)
        fprintf(f, " unix:%s", s->config.unix_path);
    fputs(there && isatty(fileno(f)) ? "   Ctrl-C ends\n" : "\n", f);
    if (fflush(f) && errno == EPIPE) /* who read the first line, and no more */
        clearerr(f);
}

static void
close_all(server *s)
{
    br_http_free(s->http);
    br_serve_free_models(s);
    br_books_close(s->books);
    br_str_fini(&s->resume);
}

static br_code
serve(server *s, br_status *st)
{
    s->turns.lock = (br_mutex)BR_MUTEX;
    s->lock = (br_mutex)BR_MUTEX;
    BR_TRY(get_options(s, st));
    br_serve_hooks(s);
    allow_files();
    BR_TRY(br_http_new(&s->http, &s->config, st));
    catch_signals(s); /* who reads "loading" may end it at once */
    br_serve_tell(s, false);
    signal(SIGPIPE, SIG_IGN);
    if (br_thread_start(&s->loader, "load", br_serve_load, s, st) != BR_OK) {
        catch_signals(NULL);
        return st->code;
    }
    br_http_run(s->http);
    /* Nobody is served any more: one signal more ends it at once, whatever the
     * loader is at. It looks at `stop` while it reads a folder and packs
     * weights. */
    catch_signals(NULL);
    atomic_store_explicit(&s->stop, true, memory_order_release);
    br_event_signal(&s->wake);
    br_thread_join(&s->loader);
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
    if (code == BR_OK) {
        code = s.untraced.code;
        st = s.untraced;
    }
    return code == BR_OK ? 0 : br_cli_fail(cli, &st);
}

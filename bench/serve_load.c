/* serve_load.c - see serve_load.h. SPDX-License-Identifier: Apache-2.0 */
#include "serve_load.h"

#include "base/rng.h"
#include "base/thread.h"
#include "http/http.h"
#include "kit.h"
#include "model/gguf_write.h"
#include "run/books.h"
#include "run/lm_model.h"
#include "run/shape.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef BR_HAVE_SQLITE
#    include <sqlite3.h>
#endif

/* These tokens of the demo's tokenizer are a printable letter each, from '!':
 * every token has a text, and its text says which one it is. */
enum { FIRST_LETTER = 6, LETTERS = 94 };

void
load_die(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    fprintf(stderr, "%s: ", program_invocation_short_name);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
    exit(1);
}

/* ---- the server ---------------------------------------------------------- */

static br_http *serving; /* in the child */

static void
on_term(int sig)
{
    (void)sig;
    br_http_stop(serving);
}

/* A model of shape: has none. Each token is a word, so each has a text. */
static void
make_words(const char *path, int32_t n)
{
    br_gguf_writer *w = br_gguf_w_new();
    br_text *words = calloc((size_t)n, sizeof *words);
    float *scores = calloc((size_t)n, sizeof *scores);
    int32_t *types = calloc((size_t)n, sizeof *types);
    br_status st = {0};

    if (!w || !words || !scores || !types)
        load_die("out of memory");
    for (int32_t i = 0; i < n; i++) {
        char text[24];

        snprintf(text, sizeof text, "\xe2\x96\x81w%d", i);
        words[i] = br_text_z(strdup(text));
        types[i] = 1; /* normal: the unknown one has a text, too */
    }
    br_gguf_w_str(w, "tokenizer.ggml.model", BR_TEXT("llama"));
    br_gguf_w_strs(w, "tokenizer.ggml.tokens", words, (size_t)n);
    br_gguf_w_array(w, "tokenizer.ggml.scores", BR_GGUF_F32, scores, (size_t)n);
    br_gguf_w_array(w, "tokenizer.ggml.token_type", BR_GGUF_I32, types,
                    (size_t)n);
    br_gguf_w_u32(w, "tokenizer.ggml.unknown_token_id", 0);
    must(br_gguf_w_begin(w, path, &st), &st);
    must(br_gguf_w_end(w, &st), &st);
    br_gguf_w_free(w);
    for (int32_t i = 0; i < n; i++)
        free((void *)(uintptr_t)words[i].p);
    free(words);
    free(scores);
    free(types);
}

static const br_lm *
open_file(const load_spec *spec, br_status *st)
{
    br_lm_config c = {
        .tier = spec->tier, .n_ctx = spec->n_ctx, .n_slots = spec->n_slots};
    static br_str file; /* of a shape; until the process ends */
    br_lm_model *lm;
    br_model *m;

    if (br_shape_is(spec->model)) {
        must(br_shape_model(&file, spec->model, false, st), st);
        must(br_model_open_mem(&m, file.at, file.n, st), st);
    } else
        must(br_model_open(&m, spec->model, st), st);
    must(br_lm_model_open(&lm, m, &c, st), st);
    return br_lm_model_lm(lm);
}

static void
open_words(br_tok **tok, const br_lm *lm)
{
    char path[] = "/tmp/brass-words-XXXXXX";
    int fd = mkstemp(path);
    br_status st = {0};

    if (fd < 0)
        load_die("%s: no such file can be made", path);
    close(fd);
    make_words(path, lm->n_vocab);
    must(br_tok_open(tok, path, NULL, &st), &st);
    unlink(path);
}

/* And what its tokens are. */
static const br_lm *
open_model(const load_spec *spec, br_tok **tok, br_status *st)
{
    bool shape = spec->model && br_shape_is(spec->model);
    br_lm_fake_config fc = spec->fake;
    const br_lm *lm = spec->model ? open_file(spec, st) : NULL;
    br_lm_fake *fake;

    if (shape)
        open_words(tok, lm);
    else
        must(br_tok_open(tok, spec->model ? spec->model : "models/demo.gguf",
                         NULL, st),
             st);
    if (lm)
        return lm;
    fc.n_vocab = br_tok_count(*tok);
    fc.first_common = FIRST_LETTER;
    fc.n_common = FIRST_LETTER + LETTERS;
    must(br_lm_fake_open(&fake, &fc, st), st);
    return br_lm_fake_lm(fake);
}

static void
log_done(void *ctx, const br_logged *r)
{
    br_books_log(ctx, r);
}

void
load_before_others(int by)
{
    struct sched_param p;

    if (sched_getscheduler(0) != SCHED_FIFO || sched_getparam(0, &p) != 0)
        return;
    p.sched_priority += by;
    if (sched_setscheduler(0, SCHED_FIFO, &p) != 0)
        load_die("no priority of %d", p.sched_priority);
}

/* All of it: libraries' and what the kernel was asked for, too. */
static void
watch_heap(void *arg)
{
    load_heap *heap = arg;

    for (;; br_sleep_ns(20000000)) {
        struct mallinfo2 m = mallinfo2();

        atomic_store(&heap->all, m.uordblks + m.hblkhd);
#ifdef BR_HAVE_SQLITE
        atomic_store(&heap->sqlite, (uint64_t)sqlite3_memory_used());
#endif
    }
}

/* The child. What it has opened ends with it. */
static void
serve(const load_spec *spec, const char *db, int tell, load_heap *heap)
{
    static br_thread watcher;
    br_http_config c = br_http_config_default();
    br_engine_config e = {.queue_depth = spec->queue, .hold_ns = 5000000000};
    br_http_model m = {.name = "bench",
                       .tier = spec->tier ? spec->tier : "cpu"};
    br_status st = {0};
    br_books *books = NULL;
    br_tok *tok;
    char admin[80];
    bool lost;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* whatever ends the clients */
    if (heap)
        must(br_thread_start(&watcher, "heap", watch_heap, heap, &st), &st);
    br_os_thread_name("http");
    signal(SIGINT, SIG_IGN);
    c.port = 0;
    c.db = db;
    if (db) {
        snprintf(admin, sizeof admin, "%.*sadmin",
                 (int)(strrchr(db, '/') + 1 - db), db);
        c.admin = admin;
    }
    c.limits.write_ns = 5000000000;
    e.lm = open_model(spec, &tok, &st);
    e.tok = m.tok = tok;
    m.n_ctx = e.lm->n_ctx;
    must(br_engine_new(&m.engine, &e, &st), &st);
    if (db)
        must(br_books_open(&books, db, NULL, &lost, &st), &st);
    if (db)
        must(br_books_add(books, m.engine, "fake", NULL, &st), &st);
    if (db) { /* the log of requests, as brass serve has it */
        c.done = log_done;
        c.ctx = books;
    }
    must(br_http_new(&serving, &c, &st), &st);
    signal(SIGTERM, on_term);
    must(br_http_ready(serving, &m, &st), &st);
    c.port = br_http_port(serving);
    if (write(tell, &c.port, sizeof c.port) != sizeof c.port)
        load_die("nobody to serve");
    load_before_others(1);
    br_http_run(serving);
    br_http_free(serving);
    br_books_close(books);
    br_engine_free(m.engine);
}

static void
put_admin(const load_server *s)
{
    char path[64];
    FILE *f;

    snprintf(path, sizeof path, "%s/admin", s->folder);
    f = fopen(path, "w");
    if (!f || fputs(LOAD_ADMIN, f) < 0 || fclose(f) != 0)
        load_die("no file in %s", s->folder);
}

static void
make_tenants(load_server *s, const load_spec *spec, char *db, size_t size)
{
    br_tstore *store;
    br_status st = {0};
    char name[20];
    uint32_t id;

    snprintf(s->folder, sizeof s->folder, "/tmp/brass-load-XXXXXX");
    if (!mkdtemp(s->folder))
        load_die("no folder in /tmp");
    snprintf(db, size, "%s/tenants.db", s->folder);
    must(br_tstore_open(&store, db, &st), &st);
    put_admin(s);
    for (uint32_t i = 0; i < spec->n_tenants; i++) {
        snprintf(name, sizeof name, "tenant%u", i);
        must(
            br_tstore_create(store, name, &spec->quota[i], &id, s->key[i], &st),
            &st);
    }
    br_tstore_close(store);
}

/* Clients measure tokens by the texts they bring; nobody sees those without. */
static void
forbid(load_server *s, const char *model)
{
    enum { MOST = 256 };
    br_status st = {0};
    br_tok *tok;
    int n = 0;

    must(br_tok_open(&tok, model, NULL, &st), &st);
    for (int32_t id = 0; id < br_tok_count(tok) && n < MOST; id++)
        if (br_tok_is_special(tok, id))
            br_str_printf(&s->never, "%s\"%d\":-100",
                          n++ ? "," : ",\"logit_bias\":{", id);
    br_str_puts(&s->never, n ? "}" : "");
    br_tok_free(tok);
}

static bool
has_thread(const load_server *s, const char *name)
{
    load_times t;
    bool has = false;

    load_times_open(&t, s);
    for (uint32_t i = 0; i < t.n; i++)
        has = has || strcmp(t.name[i], name) == 0;
    load_times_close(&t);
    return has;
}

void
load_serve(load_server *s, const load_spec *spec)
{
    struct rlimit r;
    char db[64];
    int ends[2];

    *s = (load_server){.fake = !spec->model};
    if (getrlimit(RLIMIT_NOFILE, &r) == 0) {
        r.rlim_cur = r.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &r);
    }
    if (spec->n_tenants)
        make_tenants(s, spec, db, sizeof db);
    if (spec->model && !br_shape_is(spec->model))
        forbid(s, spec->model);
    if (spec->heap)
        s->heap = mmap(NULL, sizeof *s->heap, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    fflush(stdout);
    if (s->heap == MAP_FAILED || pipe(ends) != 0 || (s->pid = fork()) < 0)
        load_die("no process");
    if (s->pid == 0) {
        close(ends[0]);
        serve(spec, spec->n_tenants ? db : NULL, ends[1], s->heap);
        exit(0);
    }
    close(ends[1]);
    if (read(ends[0], &s->port, sizeof s->port) != sizeof s->port)
        load_die("the server did not start");
    close(ends[0]);
    while (load_state(s, "out_tokens") < 0)
        br_sleep_ns(1000000);
    while (has_thread(s, "brass-pages")) /* as who has been up for seconds */
        br_sleep_ns(10000000);
}

void
load_end(load_server *s)
{
    static const char *const parts[] = {"tenants.db", "tenants.db-wal",
                                        "tenants.db-shm", "tenants.db-run",
                                        "admin"};
    char path[64];
    int status;

    br_str_fini(&s->never);
    kill(s->pid, SIGTERM);
    if (waitpid(s->pid, &status, 0) != s->pid || status != 0)
        load_die("the server ended with status %d", status);
    for (size_t i = 0; s->folder[0] && i < BR_COUNT(parts); i++) {
        snprintf(path, sizeof path, "%s/%s", s->folder, parts[i]);
        (void)unlink(path);
    }
    if (s->folder[0])
        (void)rmdir(s->folder);
}

double
load_rss_kb(const load_server *s)
{
    char path[64], text[256];
    long pages;

    snprintf(path, sizeof path, "/proc/%d/statm", s->pid);
    if (!br_os_read(path, text, sizeof text) ||
        sscanf(text, "%*s %ld", &pages) != 1)
        load_die("the server is gone");
    return (double)pages * (double)sysconf(_SC_PAGESIZE) / 1024;
}

double
load_heap_kb(const load_server *s, double *sqlite)
{
    *sqlite = (double)atomic_load(&s->heap->sqlite) / 1024;
    return (double)atomic_load(&s->heap->all) / 1024;
}

double
load_cpu(const load_server *s, const char *thread, bool user)
{
    char path[96], text[512], want[32];
    double sum = 0;
    struct dirent *d;
    DIR *dir;

    snprintf(path, sizeof path, "/proc/%d/task", s->pid);
    snprintf(want, sizeof want, "(%s)", thread);
    dir = opendir(path);
    while (dir && (d = readdir(dir))) {
        unsigned long u, k;
        const char *at;

        snprintf(path, sizeof path, "/proc/%d/task/%.16s/stat", s->pid,
                 d->d_name);
        if (d->d_name[0] == '.' || !br_os_read(path, text, sizeof text) ||
            !(at = strstr(text, want)) ||
            sscanf(at + strlen(want),
                   " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &u,
                   &k) != 2)
            continue;
        sum += (double)(user ? u : k) / (double)sysconf(_SC_CLK_TCK);
    }
    if (dir)
        closedir(dir);
    return sum;
}

static void
watch_thread(load_times *t, const char *task)
{
    char path[128], *name = t->name[t->n];
    int fd;

    snprintf(path, sizeof path, "%s/comm", task);
    if (t->n == LOAD_THREADS || !br_os_read(path, name, sizeof t->name[0]))
        return;
    name[strcspn(name, "\n")] = 0;
    snprintf(path, sizeof path, "%s/schedstat", task);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0)
        t->fd[t->n++] = fd;
}

void
load_times_open(load_times *t, const load_server *s)
{
    char path[96];
    struct dirent *d;
    DIR *dir;

    *t = (load_times){0};
    watch_thread(t, "/proc/thread-self");
    if (t->n)
        strcpy(t->name[0], "client");
    snprintf(path, sizeof path, "/proc/%d/task", s->pid);
    dir = opendir(path);
    while (dir && (d = readdir(dir))) {
        snprintf(path, sizeof path, "/proc/%d/task/%.16s", s->pid, d->d_name);
        if (d->d_name[0] != '.')
            watch_thread(t, path);
    }
    if (dir)
        closedir(dir);
}

void
load_times_close(load_times *t)
{
    while (t->n)
        close(t->fd[--t->n]);
}

void
load_times_read(load_times *t)
{
    char text[64];

    for (uint32_t i = 0; i < t->n; i++) {
        ssize_t k = pread(t->fd[i], text, sizeof text - 1, 0);
        char *end;

        text[BR_MAX(k, 0)] = 0;
        t->ran[i] = strtoll(text, &end, 10);
        t->waited[i] = strtoll(end, NULL, 10);
    }
}

int64_t
load_times_ran(const load_times *t, const char *name)
{
    int64_t sum = 0;

    for (uint32_t i = 0; i < t->n; i++)
        sum += strncmp(t->name[i], name, strlen(name)) == 0 ? t->ran[i] : 0;
    return sum;
}

int64_t
load_times_waited(const load_times *t)
{
    int64_t sum = 0;

    for (uint32_t i = 0; i < t->n; i++)
        sum += t->waited[i];
    return sum;
}

/* ---- asking -------------------------------------------------------------- */

static int
dial(const load_server *s, bool slow)
{
    int little = 4096;
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons(s->port),
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (slow)
        (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &little, sizeof little);
    if (connect(fd, (struct sockaddr *)(void *)&a, sizeof a) != 0)
        load_die("the server does not listen");
    return fd;
}

static void
say(int fd, const char *p, size_t n)
{
    while (n) {
        ssize_t k = send(fd, p, n, MSG_NOSIGNAL);

        if (k <= 0) /* it has closed: what it said tells why */
            return;
        p += k;
        n -= (size_t)k;
    }
}

void
load_get(const load_server *s, const char *path, const char *key, br_str *out)
{
    char buf[4096];
    int fd = dial(s, false);
    ssize_t k;

    k = snprintf(buf, sizeof buf,
                 "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                 "x-api-key: %s\r\n\r\n",
                 path, key);
    say(fd, buf, (size_t)k);
    while ((k = recv(fd, buf, sizeof buf, 0)) > 0)
        br_str_put(out, buf, (size_t)k);
    close(fd);
}

/* The number behind key, and behind the first `then` after it, in what path
 * answers; -1: there is none. */
static double
number_of(const load_server *s, const char *path, const char *key, char then)
{
    br_str got = {0};
    const char *at;
    double v = -1;

    load_get(s, path, s->key[0], &got);
    at = strstr(br_str_z(&got), key);
    if (at && (at = strchr(at, then)) != NULL)
        v = strtod(at + 1, NULL);
    br_str_fini(&got);
    return v;
}

double
load_state(const load_server *s, const char *name)
{
    char key[64];

    snprintf(key, sizeof key, "\"%s\":", name);
    return number_of(s, "/state", key, ':');
}

double
load_metric(const load_server *s, const char *name)
{
    char key[80];

    snprintf(key, sizeof key, "\nbrass_%s{", name);
    return number_of(s, "/metrics", key, '}');
}

int
load_say(const load_server *s, const char *p, size_t n)
{
    char buf[4096];
    int fd = dial(s, false), status = 0;
    ssize_t k, all = 0;

    say(fd, p, n);
    (void)shutdown(fd, SHUT_WR);
    while ((k = recv(fd, buf, sizeof buf - 1, 0)) > 0) {
        buf[k] = 0;
        if (all == 0 && strncmp(buf, "HTTP/1.1 ", 9) == 0)
            status = atoi(buf + 9);
        all += k;
    }
    close(fd);
    return status;
}

void
load_init(load *l, const load_server *to)
{
    *l = (load){.to = to, .ep = epoll_create1(EPOLL_CLOEXEC)};
    l->s = br_alloc(LOAD_STREAMS * sizeof *l->s);
    load_before_others(2);
    (void)br_os_thread_soon(); /* what it sees is when tokens came */
    for (int i = 0; i < LOAD_STREAMS; i++)
        l->s[i].fd = -1;
}

void
load_fini(load *l)
{
    load_before_others(-2);
    for (int i = 0; i < LOAD_STREAMS; i++)
        if (l->s[i].fd >= 0)
            close(l->s[i].fd);
    close(l->ep);
    br_free(l->s);
}

/* Streams of one seed ask for the same. */
static void
put_request(const load *l, stream *s, br_str *out)
{
    br_str body = {0};
    br_rng g;

    br_rng_init(&g, s->ask.seed, 1);
    br_str_puts(&body, "{\"prompt\":[");
    s->next = 0;
    for (uint32_t i = 0; i < s->ask.n_prompt; i++) {
        int32_t token = 256 + (int32_t)br_rng_below(&g, 1500);

        if (i == 0 && s->ask.first)
            token = s->ask.first;
        br_str_printf(&body, i ? ",%d" : "%d", token);
        s->next = br_lm_fake_mix(s->next, token);
    }
    br_str_printf(&body,
                  "],\"max_tokens\":%u,\"stream\":true,\"temperature\":0,"
                  "\"ignore_eos\":true%.*s}",
                  s->ask.n_out, (int)l->to->never.n, l->to->never.at);
    br_str_puts(out, "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n");
    if (l->to->key[0][0])
        br_str_printf(out, "Authorization: Bearer %s\r\n",
                      l->to->key[s->ask.tenant]);
    br_str_printf(out, "%sContent-Length: %zu\r\n\r\n",
                  s->ask.more ? s->ask.more : "", body.n);
    br_str_put(out, body.at, body.n);
    br_str_fini(&body);
}

void
load_wake(load *l, stream *s)
{
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = s};

    epoll_ctl(l->ep, EPOLL_CTL_ADD, s->fd, &e);
}

stream *
load_begin(load *l, const load_ask *a)
{
    br_str request = {0};
    stream *s = l->s;

    while (s < l->s + LOAD_STREAMS && s->fd >= 0)
        s++;
    if (s == l->s + LOAD_STREAMS)
        load_die("more than %d streams", LOAD_STREAMS);
    *s = (stream){.ask = *a, .hash = 1469598103934665603u};
    put_request(l, s, &request);
    s->fd = dial(l->to, a->slow);
    s->begun_ns = br_now_ns();
    say(s->fd, request.at, request.n);
    br_str_fini(&request);
    l->n_open++;
    if (!a->slow)
        load_wake(l, s);
    return s;
}

/* ---- what comes back ----------------------------------------------------- */

void
load_hang_up(load *l, stream *s)
{
    close(s->fd);
    s->fd = -1;
    l->n_open--;
}

/* Answers to the same prompt are the same answer. */
static void
compare(load *l, const stream *s)
{
    size_t i = (s->ask.seed * 0x9e3779b97f4a7c15u) >> 52;
    struct load_text *t;

    for (;; i = (i + 1) % BR_COUNT(l->text)) {
        t = &l->text[i];
        if (t->n_out == 0 ||
            (t->seed == s->ask.seed && t->n_out == s->ask.n_out &&
             t->n_prompt == s->ask.n_prompt))
            break;
    }
    if (t->n_out && t->hash != s->hash)
        load_die("prompt %llu: two answers", (unsigned long long)s->ask.seed);
    *t =
        (struct load_text){s->ask.seed, s->hash, s->ask.n_prompt, s->ask.n_out};
}

static void
end_stream(load *l, stream *s)
{
    if (s->done && !s->failed && s->status == 200) {
        if (l->to->fake && s->n_out != s->ask.n_out)
            load_die("%u tokens of %u came", s->n_out, s->ask.n_out);
        if (!l->to->fake)
            compare(l, s);
    } else if (!s->ask.may_fail)
        load_die("an answer is cut off after %u tokens, status %d", s->n_out,
                 s->status);
    load_hang_up(l, s);
    l->n_over++;
    if (l->over)
        l->over(l, s);
}

static void
take_token(load *l, stream *s, const char *text)
{
    int64_t gap = s->n_out ? l->now - s->last_ns : 0;
    char c = text[0] == '\\' ? text[1] : text[0];
    char want = (char)('!' + (s->next >> 8) % LETTERS);

    if (text[0] == '"') /* the chunk that says why it ended */
        return;
    if (l->to->fake && c != want)
        load_die("token %u is '%c', not '%c'", s->n_out, c, want);
    s->next = br_lm_fake_mix(s->next, FIRST_LETTER + c - '!');
    for (; *text && *text != '"'; text += 1 + (*text == '\\'))
        s->hash = (s->hash ^ (uint8_t)*text) * 1099511628211u;
    if (s->n_out++ == 0)
        s->first_ns = l->now;
    s->last_ns = l->now;
    l->n_tokens++;
    if (l->token)
        l->token(l, s, gap);
}

/* One line of head, chunk lengths and events alike: they are told apart by how
 * they begin. */
static void
take_line(load *l, stream *s)
{
    static const char text[] = "\"text\":\"";
    const char *at;

    if (strncmp(s->line, "HTTP/1.1 ", 9) == 0)
        s->status = atoi(s->line + 9);
    else if (strcmp(s->line, "event: preempted") == 0)
        s->n_preempted++;
    else if (strcmp(s->line, "data: [DONE]") == 0)
        s->done = true;
    else if (strncmp(s->line, "data: {\"error\"", 14) == 0)
        s->failed = true;
    else if (strncmp(s->line, "data: {", 7) == 0 &&
             (at = strstr(s->line, text)))
        take_token(l, s, at + sizeof text - 1);
}

static bool
is_over(const stream *s)
{
    return s->done || (s->status && s->status != 200);
}

static void
read_stream(load *l, stream *s)
{
    char buf[16384];
    ssize_t n = recv(s->fd, buf, sizeof buf, MSG_DONTWAIT);

    for (ssize_t i = 0; i < n && !is_over(s); i++) {
        if (buf[i] != '\n') {
            if (s->n_line == LOAD_LINE - 1)
                load_die("a line without an end");
            s->line[s->n_line++] = buf[i];
            continue;
        }
        s->n_line -= s->n_line && s->line[s->n_line - 1] == '\r';
        s->line[s->n_line] = 0;
        s->n_line = 0;
        take_line(l, s);
    }
    if (n == 0 || is_over(s))
        end_stream(l, s);
}

void
load_run(load *l, int64_t ns)
{
    int64_t end = br_now_ns() + ns, heard = br_now_ns();

    while (l->n_open && (ns < 0 || br_now_ns() < end)) {
        struct epoll_event e[256];
        int64_t before = br_now_ns();
        int n = epoll_wait(l->ep, e, 256, 50);

        l->now = br_now_ns();
        if (n > 0 || l->now - before > 5000000000) /* all were stopped */
            heard = l->now;
        if (l->now - heard > 30000000000)
            load_die("%u streams hang", l->n_open);
        for (int i = 0; i < n; i++)
            if (((stream *)e[i].data.ptr)->fd >= 0)
                read_stream(l, e[i].data.ptr);
        if (l->nap_ns && n < (int)BR_COUNT(e))
            br_sleep_ns(l->nap_ns);
    }
}

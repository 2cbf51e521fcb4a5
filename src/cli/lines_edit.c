/* lines_edit.c - line editing by libedit; empty without it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/lines.h"

#if defined BR_HAVE_LIBEDIT

#    include <errno.h>
#    include <fcntl.h>
#    include <histedit.h>
#    include <langinfo.h>
#    include <locale.h>
#    include <poll.h>
#    include <signal.h>
#    include <string.h>
#    include <unistd.h>
#    include <wchar.h>

struct br_editor {
    EditLine *el;
    History *history;
    br_str path;
    const char *prompt;
    bool more;
};

static volatile sig_atomic_t pressed, told_to_end;
static sigset_t outside; /* signals while we wait: these are let in */
/* The terminal once more, never waiting: Ctrl-C throws away what was typed, so
 * what poll saw may be gone when we read, and SIGINT is blocked then. */
static int keys = STDIN_FILENO;

static void
on_signal(int sig)
{
    if (sig == SIGINT)
        pressed = 1;
    else
        told_to_end = sig;
}

/* A character of the terminal; -1 when a signal came. libedit's own reader
 * begins anew after a signal, so that nobody would hear of it before the next
 * key. They are blocked but while we wait: none falls between looking and
 * waiting. */
static int
get_char(EditLine *el, wchar_t *out)
{
    struct pollfd in = {.fd = keys, .events = POLLIN};
    mbstate_t state = {0};

    (void)el;
    for (;;) {
        ssize_t n = 0;
        char c;

        if (ppoll(&in, 1, NULL, &outside) > 0)
            n = read(keys, &c, 1);
        else
            n = -1;
        if (told_to_end || (n <= 0 && pressed))
            return -1;
        if (n < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (n <= 0)
            return n == 0 ? 0 : -1;
        switch (mbrtowc(out, &c, 1, &state)) {
        case (size_t)-2: break; /* more bytes are to come */
        case (size_t)-1: memset(&state, 0, sizeof state); break;
        default: return 1;
        }
    }
}

static char *
prompt_of(EditLine *el)
{
    static char text[16]; /* one editor, one thread */
    br_editor *e;

    el_get(el, EL_CLIENTDATA, &e);
    snprintf(text, sizeof text, "%s", e->more ? ". " : e->prompt);
    return text;
}

/* Where no locale is set, or one that is not installed, letters beyond ASCII
 * would be lost, key by key. What is said is UTF-8 anyway. */
static void
read_letters(void)
{
    setlocale(LC_CTYPE, "");
    if (strcmp(nl_langinfo(CODESET), "ANSI_X3.4-1968") == 0) /* ASCII */
        setlocale(LC_CTYPE, "C.UTF-8");
}

br_editor *
br_editor_open(br_cli *cli, const char *prompt, const char *kept)
{
    br_editor *e = br_try_calloc(1, sizeof *e);
    const char *name;
    HistEvent ev;

    if (!e)
        return NULL;
    read_letters();
    name = ttyname(STDIN_FILENO);
    keys = name ? open(name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC) : -1;
    if (keys < 0)
        keys = STDIN_FILENO;
    e->prompt = prompt;
    e->history = history_init();
    e->el = el_init("brass", stdin, cli->out, cli->err);
    if (kept)
        br_str_puts(&e->path, kept);
    if (!e->history || !e->el || e->path.oom) {
        br_editor_close(e);
        return NULL;
    }
    el_set(e->el, EL_CLIENTDATA, e);
    el_set(e->el, EL_PROMPT, prompt_of);
    el_set(e->el, EL_EDITOR, "emacs");
    el_set(e->el, EL_GETCFN, get_char);
    history(e->history, &ev, H_SETSIZE, BR_LINES_HISTORY);
    history(e->history, &ev, H_SETUNIQUE, 1);
    el_set(e->el, EL_HIST, history, e->history);
    if (e->path.n)
        history(e->history, &ev, H_LOAD, e->path.at);
    return e;
}

/* What was said to a model is nobody else's affair. */
static void
save_history(br_editor *e)
{
    HistEvent ev;
    int fd = open(e->path.at, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    if (fd < 0)
        return;
    close(fd);
    history(e->history, &ev, H_SAVE, e->path.at);
}

void
br_editor_close(br_editor *e)
{
    if (!e)
        return;
    if (e->el && e->history && e->path.n)
        save_history(e);
    if (e->el)
        el_end(e->el);
    if (keys != STDIN_FILENO)
        close(keys);
    keys = STDIN_FILENO;
    if (e->history)
        history_end(e->history);
    br_str_fini(&e->path);
    br_free(e);
}

/* Ctrl-C throws the line away and asks again. Of SIGTERM and SIGHUP one would
 * die with the terminal set up for editing: they end the talk instead. */
const char *
br_editor_get(br_editor *e, bool more, int *n)
{
    static const int caught[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction act = {.sa_handler = on_signal}, old[BR_COUNT(caught)];
    const char *line;
    sigset_t block, before;

    e->more = more;
    sigemptyset(&act.sa_mask);
    sigemptyset(&block);
    for (size_t i = 0; i < BR_COUNT(caught); i++)
        sigaddset(&block, caught[i]);
    sigprocmask(SIG_BLOCK, &block, &before);
    outside = before;
    for (size_t i = 0; i < BR_COUNT(caught); i++) {
        sigdelset(&outside, caught[i]);
        sigaction(caught[i], NULL, &old[i]);
        if (old[i].sa_handler != SIG_IGN || caught[i] == SIGINT)
            sigaction(caught[i], &act, NULL);
    }
    do {
        pressed = 0;
        told_to_end = 0;
        /* Before the prompt, not after it as el_gets would: what is typed in
         * between would be read by the rules of lines, and a Ctrl-D lost. */
        el_set(e->el, EL_PREP_TERM, 1);
        line = el_gets(e->el, n);
        if (pressed || told_to_end)
            el_reset(e->el);
        if (pressed)
            fputs("^C\n", stdout);
    } while (pressed && !told_to_end);
    for (size_t i = 0; i < BR_COUNT(caught); i++)
        sigaction(caught[i], &old[i], NULL);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return line && *n > 0 ? line : NULL;
}

int
br_editor_signal(const br_editor *e)
{
    (void)e;
    return told_to_end;
}

void
br_editor_remember(br_editor *e, const char *line)
{
    HistEvent ev;

    history(e->history, &ev, H_ENTER, line);
}

#endif

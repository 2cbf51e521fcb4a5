/* chat_repl.c - brass chat: a talk, line by line.
 *
 *   line --"/"--> a command
 *        --else-> message -> template -> tokens -> session -> answer
 *
 * The conversation is the chat's list of messages; the session finds out by
 * itself how much of it the model has read already. A message whose answer
 * failed is taken back, so that the talk can go on.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "cli/interrupt.h"
#include "cli/lines.h"
#include "cli/talk.h"

#include <string.h>
#include <unistd.h>

typedef struct repl {
    br_cli *cli;
    br_talk talk;
    br_lines *lines;
    br_str reply;
    char last;
    bool quit, lost;
} repl;

typedef struct command {
    const char *name, *args, *what;
    br_code (*run)(repl *r, br_text arg, br_status *st);
} command;

static bool
on_text(void *ctx, br_text piece)
{
    repl *r = ctx;

    br_str_put(&r->reply, piece.p, piece.n);
    r->last = piece.p[piece.n - 1];
    br_talk_print(r->cli->out, piece);
    return !ferror(r->cli->out) && !r->reply.oom;
}

/* ---- commands ------------------------------------------------------------ */

static br_code cmd_help(repl *r, br_text arg, br_status *st);

static br_code
cmd_system(repl *r, br_text arg, br_status *st)
{
    BR_TRY(br_chat_system(r->talk.chat, arg, st));
    fprintf(r->cli->out, arg.n ? "(The talk begins with that now.)\n"
                               : "(No system message.)\n");
    return BR_OK;
}

static br_code
cmd_reset(repl *r, br_text arg, br_status *st)
{
    br_chat *c = r->talk.chat;
    bool system = br_chat_count(c) && strcmp(br_chat_role(c, 0), "system") == 0;

    (void)arg;
    (void)st;
    br_chat_cut(c, system);
    fprintf(r->cli->out, "(All forgotten%s.)\n",
            system ? " but the system message" : "");
    return BR_OK;
}

static br_code
cmd_save(repl *r, br_text arg, br_status *st)
{
    const br_chat *c = r->talk.chat;
    br_str doc = {0}, path = {0};
    br_json_writer w;
    br_code code;

    if (arg.n == 0)
        return br_fail(st, BR_E_USAGE, "/save FILE: no file is named");
    br_json_w_begin(&w, &doc, 2);
    w.utf8 = true;
    br_json_w_obj(&w);
    br_json_w_key(&w, "messages");
    br_json_w_arr(&w);
    for (size_t i = 0; i < br_chat_count(c); i++) {
        br_json_w_obj(&w);
        br_json_w_key_strz(&w, "role", br_chat_role(c, i));
        br_json_w_key(&w, "content");
        br_json_w_str(&w, br_chat_content(c, i));
        br_json_w_obj_end(&w);
    }
    br_json_w_arr_end(&w);
    br_json_w_obj_end(&w);
    br_str_putc(&doc, '\n');
    br_str_put(&path, arg.p, arg.n);
    if (doc.oom || path.oom)
        code = br_fail(st, BR_E_OOM, "out of memory");
    else if (access(path.at, F_OK) == 0)
        code = br_fail(st, BR_E_USAGE, "%s is there already", path.at);
    else
        code = br_file_write(path.at, doc.at, doc.n, st);
    if (code == BR_OK)
        fprintf(r->cli->out, "(%zu messages are in %s.)\n", br_chat_count(c),
                path.at);
    br_str_fini(&doc);
    br_str_fini(&path);
    return code;
}

static br_code
cmd_quit(repl *r, br_text arg, br_status *st)
{
    (void)arg;
    (void)st;
    r->quit = true;
    return BR_OK;
}

static const command commands[] = {
    {"/help", "", "this list", cmd_help},
    {"/system", " TEXT", "who the model is; without TEXT: nobody", cmd_system},
    {"/reset", "", "forget the talk, keep the system message", cmd_reset},
    {"/save", " FILE", "write the talk as JSON", cmd_save},
    {"/quit", "", "end; so does Ctrl-D", cmd_quit},
};

static br_code
cmd_help(repl *r, br_text arg, br_status *st)
{
    (void)arg;
    (void)st;
    for (size_t i = 0; i < BR_COUNT(commands); i++) {
        const command *c = &commands[i];

        fprintf(r->cli->out, "%s%-*s %s\n", c->name, 14 - (int)strlen(c->name),
                c->args, c->what);
    }
    fputs("Ctrl-C ends an answer. A line that ends in \\ goes on.\n",
          r->cli->out);
    return BR_OK;
}

static br_text
trim(br_text t)
{
    while (t.n && (*t.p == ' ' || *t.p == '\t')) {
        t.p++;
        t.n--;
    }
    while (t.n && (t.p[t.n - 1] == ' ' || t.p[t.n - 1] == '\t'))
        t.n--;
    return t;
}

static br_code
obey(repl *r, br_text line, br_status *st)
{
    const char *space = memchr(line.p, ' ', line.n);
    br_text word = {line.p, space ? (size_t)(space - line.p) : line.n};
    br_text arg = trim((br_text){line.p + word.n, line.n - word.n});
    br_suggest s;
    char hint[60];

    br_suggest_begin(&s, word);
    for (size_t i = 0; i < BR_COUNT(commands); i++) {
        if (br_text_is(word, commands[i].name))
            return commands[i].run(r, arg, st);
        br_suggest_offer(&s, br_text_z(commands[i].name));
    }
    br_suggest_text(&s, "", hint, sizeof hint);
    return br_fail(st, BR_E_USAGE, "there is no %.*s%s%s",
                   (int)BR_MIN(word.n, (size_t)40), word.p, hint,
                   *hint ? "" : "; /help lists what there is");
}

/* ---- messages ------------------------------------------------------------ */

static br_code
reply(repl *r, br_status *st)
{
    br_talk *t = &r->talk;
    br_code code;

    t->prompt.n = 0;
    br_str_clear(&r->reply);
    r->last = 0;
    BR_TRY(br_chat_prompt(t->chat, t->work, &t->prompt, st));
    if (br_talk_outgrown(t)) {
        code = br_talk_reload(t, st);
        r->lost = code != BR_OK && code != BR_E_CANCELLED;
        BR_TRY(code);
    }
    code = br_talk_answer(t, st);
    if (r->last && r->last != '\n')
        fputc('\n', r->cli->out);
    fflush(r->cli->out);
    if (code == BR_E_LIMIT)
        return br_fail(st, code, "%s", st->msg);
    BR_TRY(code);
    br_talk_numbers(t);
    return br_chat_add(t->chat, "assistant",
                       (br_text){br_str_z(&r->reply), r->reply.n}, st);
}

static br_code
say(repl *r, br_text line, br_status *st)
{
    size_t before = br_chat_count(r->talk.chat);
    br_code code;

    BR_TRY(br_chat_add(r->talk.chat, "user", line, st));
    code = reply(r, st);
    if (code != BR_OK)
        br_chat_cut(r->talk.chat, before);
    return code;
}

/* ---- the talk ------------------------------------------------------------ */

/* Is there more than a system message, which /reset keeps? */
static bool
began(const repl *r)
{
    const br_chat *c = r->talk.chat;
    size_t n = br_chat_count(c);

    return n > 1 || (n == 1 && strcmp(br_chat_role(c, 0), "system") != 0);
}

/* False: what happened ends the talk. Mistakes in a line do not. */
static bool
goes_on(repl *r, const br_status *st)
{
    if (r->lost)
        return false; /* nobody is there to answer */
    switch (st->code) {
    case BR_OK: return true;
    case BR_E_USAGE:
    case BR_E_NOT_FOUND:
    case BR_E_IO:
    case BR_E_LIMIT:
    case BR_E_REJECTED:
    case BR_E_CANCELLED:
        fprintf(r->cli->err, "brass chat: %s%s\n", st->msg,
                st->code == BR_E_LIMIT && began(r)
                    ? "; /reset begins a new talk"
                    : "");
        return true;
    default: return false;
    }
}

static int
talk(repl *r)
{
    br_status st = {0};
    br_str line = {0};
    int code = 0;

    /* But for lines and answers, which let it in: a Ctrl-C after Enter ends
     * the answer, however early it comes. */
    (void)br_cli_hold_interrupts(true);
    while (!r->quit && !ferror(r->cli->out) && br_lines_next(r->lines, &line)) {
        br_text t = trim((br_text){br_str_z(&line), line.n});

        st = (br_status){0};
        if (line.oom)
            br_fail(&st, BR_E_OOM, "out of memory");
        else if (t.n && *t.p == '/')
            (void)obey(r, t, &st);
        else if (t.n)
            (void)say(r, t, &st);
        fflush(r->cli->out);
        if (!goes_on(r, &st)) {
            code = br_cli_fail(r->cli, &st);
            break;
        }
    }
    (void)br_cli_hold_interrupts(false);
    br_str_fini(&line);
    if (code == 0 && br_lines_signal(r->lines))
        code = BR_EXIT_SIGNAL(br_lines_signal(r->lines));
    return code;
}

static br_code
begin(repl *r, br_status *st)
{
    const char *system = br_opt_str(r->cli, BR_OPT_system);

    BR_TRY(br_talk_open(&r->talk, r->cli, true, st));
    BR_TRY(br_talk_load(&r->talk, st));
    r->talk.params.ctx = r;
    r->talk.params.text = on_text;
    if (system)
        BR_TRY(br_chat_system(r->talk.chat, br_text_z(system), st));
    return br_lines_open(&r->lines, r->cli, "> ", st);
}

int
br_cmd_chat(br_cli *cli)
{
    repl r = {.cli = cli};
    br_status st = {0};
    int code;

    if (begin(&r, &st) != BR_OK) {
        code = br_cli_fail(cli, &st);
    } else {
        if (br_lines_terminal(r.lines))
            fprintf(cli->out,
                    "%s on tier %s. /help lists commands, Ctrl-D "
                    "ends.\n",
                    r.talk.path.at, br_lm_model_lm(r.talk.lm)->tier);
        code = talk(&r);
    }
    br_lines_close(r.lines);
    br_str_fini(&r.reply);
    br_talk_close(&r.talk);
    return code;
}

/* lines.c - see lines.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/lines.h"

#include <unistd.h>

struct br_lines {
    br_cli *cli;
    const char *prompt;
    bool terminal;
    br_editor *editor; /* NULL: lines as they come */
};

br_code
br_lines_open(br_lines **out, br_cli *cli, const char *prompt, br_status *st)
{
    br_lines *l = br_try_calloc(1, sizeof *l);
    int fd = fileno(cli->out);

    *out = l;
    if (!l)
        return br_fail(st, BR_E_OOM, "out of memory");
    l->cli = cli;
    l->prompt = prompt;
    l->terminal = isatty(STDIN_FILENO) && fd >= 0 && isatty(fd);
    if (l->terminal) {
        br_str history = {0};

        /* Without a place for it the talk goes on. */
        bool keep =
            br_cli_folder(cli, "XDG_STATE_HOME", ".local/state", &history);

        (void)br_folder_make(&history);
        br_str_puts(&history, "/history");
        l->editor = br_editor_open(cli, prompt,
                                   keep && !history.oom ? history.at : NULL);
        br_str_fini(&history);
    }
    return BR_OK;
}

void
br_lines_close(br_lines *l)
{
    if (!l)
        return;
    br_editor_close(l->editor);
    br_free(l);
}

bool
br_lines_terminal(const br_lines *l)
{
    return l->terminal;
}

int
br_lines_signal(const br_lines *l)
{
    return l->editor ? br_editor_signal(l->editor) : 0;
}

static bool
plain_piece(br_lines *l, bool more, br_str *line)
{
    bool held = br_cli_hold_interrupts(false);
    size_t dropped = 0, before = line->n;
    int c;

    if (l->terminal) {
        fputs(more ? ". " : l->prompt, l->cli->out);
        fflush(l->cli->out);
    }
    while ((c = getc(stdin)) != EOF && c != '\n') {
        if (line->n < BR_LINES_MAX_BYTES)
            br_str_putc(line, (char)c);
        else
            dropped++;
    }
    (void)br_cli_hold_interrupts(held);
    /* as scripts of Windows end a line */
    if (c == '\n' && line->n > before && line->at[line->n - 1] == '\r')
        line->at[--line->n] = 0;
    if (dropped)
        fprintf(l->cli->err, "brass chat: a line of over %d bytes is cut\n",
                BR_LINES_MAX_BYTES);
    return c != EOF || line->n > 0;
}

static bool
edited_piece(br_lines *l, bool more, br_str *line)
{
    int n;
    const char *text = br_editor_get(l->editor, more, &n);

    if (!text)
        return false;
    while (n > 0 && text[n - 1] == '\n')
        n--;
    br_str_put(line, text, (size_t)n);
    return true;
}

bool
br_lines_next(br_lines *l, br_str *line)
{
    bool more = false;

    br_str_clear(line);
    for (;;) {
        bool got = l->editor ? edited_piece(l, more, line)
                             : plain_piece(l, more, line);

        if (!got && l->terminal)
            fputc('\n', l->cli->out);
        if (!got)
            return false;
        if (line->n == 0 || line->at[line->n - 1] != '\\')
            break;
        line->at[line->n - 1] = '\n';
        more = true;
    }
    if (l->editor && line->n && !line->oom)
        br_editor_remember(l->editor, line->at);
    return true;
}

/* options_text.c - help screens and man pages out of the table of options.
 *
 *   -o, --output FILE    the text of the row, wrapped at column 80 and
 *                        indented to the column where it began
 *
 * The flags get a column as wide as the widest of them, at most FLAGS_MAX; a
 * wider one stands on a line of its own.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/options.h"

#include <stdio.h>
#include <string.h>

#define FLAGS_MAX   28
#define MAN_COLUMNS 60 /* lint wants 80 at most, escapes and all */

/* A switch that is on by default is shown as what turns it off. */
static const char *
no_of(const br_option *r)
{
    bool on = r->type == BR_OPTION_BOOL && r->def && strcmp(r->def, "yes") == 0;

    return on ? "no-" : "";
}

/* "-o, --output FILE" */
static int
flags_of(const br_option *r, char *out, size_t size)
{
    char letter[8] = "    ";

    if (r->letter)
        snprintf(letter, sizeof letter, "-%c, ", r->letter);
    return snprintf(out, size, "%s--%s%s%s%s", letter, no_of(r), r->name,
                    r->value ? " " : "", r->value ? r->value : "");
}

static void
wrap(br_str *out, const char *text, int at, int indent, int columns)
{
    bool begun = false;

    while (*text) {
        size_t skip = strspn(text, " ");
        int n = (int)strcspn(text + skip, " ");

        text += skip;
        if (n == 0)
            break;
        if (begun && at + 1 + n >= columns) {
            br_str_printf(out, "\n%*s", indent, "");
            at = indent;
            begun = false;
        }
        if (begun)
            br_str_putc(out, ' ');
        br_str_put(out, text, (size_t)n);
        at += n + begun;
        begun = true;
        text += n;
    }
    br_str_putc(out, '\n');
}

void
br_text_wrap(br_str *out, const char *text, int at, int indent)
{
    wrap(out, text, at, indent, BR_OPTION_COLUMNS);
}

static void
help_row(const br_option *r, int column, const char *env_prefix, br_str *out)
{
    char flags[120], env[80];
    int n = flags_of(r, flags, sizeof flags);
    br_str text = {0};

    br_str_printf(out, "  %s", flags);
    if (n + 2 > column - 2)
        br_str_printf(out, "\n%*s", column, "");
    else
        br_str_printf(out, "%*s", column - n - 2, "");
    br_str_puts(&text, r->help);
    if (r->def && r->type != BR_OPTION_BOOL)
        br_str_printf(&text, " [%s]", r->def);
    if (env_prefix && !r->last) {
        br_option_env_name(r, env_prefix, env, sizeof env);
        br_str_printf(&text, " (%s)", env);
    }
    br_text_wrap(out, br_str_z(&text), column, column);
    out->oom |= text.oom;
    br_str_fini(&text);
}

static int
flags_column(const br_options *o, bool globals_too)
{
    int column = 0;

    for (size_t i = 0; i < o->n_rows; i++) {
        char flags[120];
        int n = flags_of(&o->rows[i], flags, sizeof flags);

        if (o->taken[i] &&
            (globals_too || (!o->rows[i].global && !o->rows[i].rare)))
            column = BR_MAX(column, BR_MIN(n, FLAGS_MAX));
    }
    return column + 4;
}

/* All rows that are global, or all taken ones that are not. */
static void
help_rows(const br_options *o, bool global, int column, const char *title,
          const char *env_prefix, br_str *out)
{
    for (size_t i = 0; i < o->n_rows; i++) {
        if (!o->taken[i] || o->rows[i].global != global ||
            (o->rows[i].rare && !env_prefix))
            continue;
        br_str_puts(out, title);
        title = "";
        help_row(&o->rows[i], column, env_prefix, out);
    }
}

/* "also: --mode, --log-level, -h, --help": what they take, the long help says */
static void
global_line(const br_options *o, br_str *out)
{
    const char *sep = "also: ";
    br_str line = {0};

    for (size_t i = 0; i < o->n_rows; i++) {
        const br_option *r = &o->rows[i];

        if (!r->global && !(o->taken[i] && r->rare))
            continue;
        br_str_puts(&line, sep);
        if (r->letter)
            br_str_printf(&line, "-%c, ", r->letter);
        br_str_printf(&line, "--%s%s", no_of(r), r->name);
        sep = ", ";
    }
    br_str_putc(out, '\n');
    br_text_wrap(out, br_str_z(&line), 0, 0);
    out->oom |= line.oom;
    br_str_fini(&line);
}

void
br_options_help(const br_options *o, bool longer, br_str *out)
{
    int column = flags_column(o, longer);

    help_rows(o, false, column, "\n", longer ? o->env_prefix : NULL, out);
    if (longer)
        help_rows(o, true, column, "\nevery command takes:\n", o->env_prefix,
                  out);
    else
        global_line(o, out);
}

/* ---- man ---------------------------------------------------------------- */

/* Text for troff: backslashes and hyphens escaped, no request at the start of
 * a line. */
void
br_man_text(br_str *out, const char *text)
{
    if (*text == '.' || *text == '\'')
        br_str_puts(out, "\\&");
    for (; *text; text++) {
        if (*text == '\\')
            br_str_puts(out, "\\e");
        else if (*text == '-')
            br_str_puts(out, "\\-");
        else
            br_str_putc(out, *text);
    }
}

void
br_man_lines(br_str *out, const char *text)
{
    br_str wrapped = {0};
    const char *p;

    wrap(&wrapped, text, 0, 0, MAN_COLUMNS);
    for (p = br_str_z(&wrapped); *p;) {
        size_t n = strcspn(p, "\n");
        br_str one = {0};

        br_str_put(&one, p, n);
        br_man_text(out, br_str_z(&one));
        br_str_putc(out, '\n');
        out->oom |= one.oom;
        br_str_fini(&one);
        p += n + (p[n] == '\n');
    }
    out->oom |= wrapped.oom;
    br_str_fini(&wrapped);
}

static void
man_row(const br_option *r, const char *prefix, br_str *out)
{
    br_str text = {0};
    char env[80];

    br_option_env_name(r, prefix, env, sizeof env);
    br_str_puts(out, ".TP\n.B ");
    if (r->letter)
        br_str_printf(out, "\\-%c, ", r->letter);
    br_str_puts(out, "\\-\\-");
    br_man_text(out, no_of(r));
    br_man_text(out, r->name);
    if (r->value) {
        br_str_puts(out, " \\fI");
        br_man_text(out, r->value);
        br_str_puts(out, "\\fP");
    }
    br_str_putc(out, '\n');
    br_str_printf(&text, "%s.", r->help);
    if (r->def && r->type != BR_OPTION_BOOL)
        br_str_printf(&text, " Default: %s.", r->def);
    if (!r->last)
        br_str_printf(&text, " Variable: %s.", env);
    br_man_lines(out, br_str_z(&text));
    out->oom |= text.oom;
    br_str_fini(&text);
}

void
br_options_man(const br_options *o, bool global, br_str *out)
{
    for (size_t i = 0; i < o->n_rows; i++)
        if (o->taken[i] && o->rows[i].global == global)
            man_row(&o->rows[i], o->env_prefix, out);
}

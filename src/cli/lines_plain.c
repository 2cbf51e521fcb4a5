/* lines_plain.c - no line editing: for builds without libedit.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/lines.h"

#if !defined BR_HAVE_LIBEDIT

br_editor *
br_editor_open(br_cli *cli, const char *prompt, const char *history)
{
    (void)cli;
    (void)prompt;
    (void)history;
    return NULL;
}

void
br_editor_close(br_editor *e)
{
    (void)e;
}

const char *
br_editor_get(br_editor *e, bool more, int *n)
{
    (void)e;
    (void)more;
    *n = 0;
    return NULL;
}

int
br_editor_signal(const br_editor *e)
{
    (void)e;
    return 0;
}

void
br_editor_remember(br_editor *e, const char *line)
{
    (void)e;
    (void)line;
}

#endif

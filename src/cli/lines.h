/* lines.h - lines that somebody types.
 *
 * At a terminal with libedit (where the build found it): editing and a history
 * that is kept in STATE/brass/history, readable by its owner alone. Elsewhere
 * lines come as they are. A line that ends in a backslash goes on.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_LINES_H
#define BR_LINES_H

#include "cli/cli.h"

enum {
    BR_LINES_MAX_BYTES = 1 << 20, /* of one line; the rest is dropped */
    BR_LINES_HISTORY = 1000,
};

typedef struct br_lines br_lines;

br_code br_lines_open(br_lines **out, br_cli *cli, const char *prompt,
                      br_status *st) BR_MUST_USE;
void br_lines_close(br_lines *l);
bool br_lines_terminal(const br_lines *l);
/* Without its newline. False at the end of the input. */
bool br_lines_next(br_lines *l, br_str *line);
/* The signal that ended it, if one did: the terminal is as it was before. */
int br_lines_signal(const br_lines *l);

/* ---- editing: lines_edit.c with libedit, else lines_plain.c --------------- */

typedef struct br_editor br_editor;
/* NULL: none in this build, or out of memory. history NULL: not kept. */
br_editor *br_editor_open(br_cli *cli, const char *prompt, const char *history);
void br_editor_close(br_editor *e);
/* The line with its newline, good until the next call; NULL: end of input. */
const char *br_editor_get(br_editor *e, bool more, int *n);
int br_editor_signal(const br_editor *e); /* as br_lines_signal */
void br_editor_remember(br_editor *e, const char *line);

#endif

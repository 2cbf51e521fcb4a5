/* interrupt.h - what Ctrl-C means while a command is at work.
 *
 * By itself it ends the process, and so does SIGTERM: nothing that is being
 * written has a name by then. A command that has something to say first asks
 * for a flag instead, which its loop looks at; one at a time has it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_INTERRUPT_H
#define BR_INTERRUPT_H

#include "cli/cli.h"

#include <signal.h>
#include <stdatomic.h>

/* Exit code of a command that ended because of the signal: br_cli_main returns
 * it, and the program then dies of the signal, so that a script's loop ends,
 * too. */
#define BR_EXIT_SIGNAL(sig) (128 + (sig))

/* From now on Ctrl-C sets the flag, and a second one ends the process. says: a
 * line for the terminal then, where what has begun may take seconds; or NULL. */
void br_interrupt_begin(struct sigaction *before, const char *says);
void br_interrupt_end(const struct sigaction *before);
/* Until the next begin. */
const atomic_bool *br_interrupted(void);
/* Between begin and end: whether the first ends the process, too. */
void br_interrupt_ends(bool at_once);

#endif

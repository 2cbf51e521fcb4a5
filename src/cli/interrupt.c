/* interrupt.c - see interrupt.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/interrupt.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static atomic_bool interrupted, at_once;
static const char *line; /* set before the handler is */

static void
on_interrupt(int sig)
{
    int err = errno;

    /* relaxed: flags of one process's signals and loops, which guard nothing */
    if (atomic_load_explicit(&at_once, memory_order_relaxed) ||
        atomic_exchange_explicit(&interrupted, true, memory_order_relaxed)) {
        signal(sig, SIG_DFL);
        raise(sig);
    } else if (line && isatty(STDERR_FILENO)) {
        (void)!write(STDERR_FILENO, line, strlen(line));
    }
    errno = err;
}

void
br_interrupt_begin(struct sigaction *before, const char *says)
{
    /* Restarted: else a piece being written to the terminal fails with EINTR,
     * and the talk ends as if nobody could read it. */
    struct sigaction act = {.sa_handler = on_interrupt, .sa_flags = SA_RESTART};

    atomic_store_explicit(&interrupted, false, memory_order_relaxed);
    atomic_store_explicit(&at_once, false, memory_order_relaxed);
    line = says;
    sigemptyset(&act.sa_mask);
    sigaction(SIGINT, &act, before);
}

void
br_interrupt_end(const struct sigaction *before)
{
    sigaction(SIGINT, before, NULL);
}

const atomic_bool *
br_interrupted(void)
{
    return &interrupted;
}

void
br_interrupt_ends(bool now)
{
    atomic_store_explicit(&at_once, now, memory_order_relaxed);
}

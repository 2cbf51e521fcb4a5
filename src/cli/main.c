/* main.c - the brass command. All of it is in br_cli_main, so that a test can
 * run it in its own process.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/interrupt.h"

#include <signal.h>
#include <unistd.h>

int
main(int argc, char **argv)
{
    int code;

    /* `brass ... | head` ends like any other tool, without a word, even where
     * whoever started us ignores the signal. Commands with sockets of their
     * own ignore it. */
    signal(SIGPIPE, SIG_DFL);
    code = br_cli_main(argc, argv, environ, stdout, stderr);
    if (code > BR_EXIT_SIGNAL(0)) { /* whoever started us sees why */
        signal(code - BR_EXIT_SIGNAL(0), SIG_DFL);
        raise(code - BR_EXIT_SIGNAL(0));
    }
    return code;
}

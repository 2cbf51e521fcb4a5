/* main.c - the brass command. All of it is in br_cli_main, so that a test can
 * run it in its own process.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"

#include <signal.h>
#include <unistd.h>

int
main(int argc, char **argv)
{
    /* A closed pipe is an error of a write, which br_cli_main reports. */
    signal(SIGPIPE, SIG_IGN);
    return br_cli_main(argc, argv, environ, stdout, stderr);
}

/* main.c - the brass command: finds the subcommand and hands over.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

int
main(int argc, char **argv)
{
    (void)argv;
    fprintf(stderr, "usage: brass COMMAND\n");
    return argc > 1 ? 2 : 2;
}

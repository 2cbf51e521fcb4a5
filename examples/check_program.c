/* check_program.c - is a task program safe to run? Prints the verdict and why.
 *
 *     cc check_program.c $(pkg-config --cflags --libs brass) -o check
 *     ./check mlp.json
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <brass/brass.h>

#include <stdio.h>

static void
print_report(const br_report *r)
{
    size_t i;

    for (i = 0; i < br_report_errors(r); i++)
        printf("error: %s\n", br_report_error(r, i));
    for (i = 0; i < br_report_warnings(r); i++)
        printf("warning: %s\n", br_report_warning(r, i));
    printf("%s\n", br_report_ok(r) ? "accepted" : "refused");
}

/* A refused program is stuck somewhere, or reads what nobody wrote yet: the
 * dry run shows an order in which it happens, when it finds one. */
static void
print_walk(const br_program *p)
{
    br_walk *w = br_program_walk(p, 16, NULL);
    size_t i;

    if (!w)
        return;
    printf("dry run: %lu tasks ran, %lu are stuck\n",
           (unsigned long)br_walk_tasks(w), (unsigned long)br_walk_stuck(w));
    for (i = 0; i < br_walk_violations(w); i++)
        printf("dry run: %s\n", br_walk_violation(w, i));
    br_walk_free(w);
}

int
main(int argc, char **argv)
{
    br_error *e = br_error_new();
    br_program *p;
    br_report *r;
    int code = 1;

    if (argc != 2) {
        fprintf(stderr, "usage: %s PROGRAM.json\n", argv[0]);
        return 2;
    }
    p = br_program_load_file(argv[1], e);
    if (!p) {
        fprintf(stderr, "%s\n", br_error_text(e));
        br_error_free(e);
        return 3;
    }
    r = br_program_check(p, BRASS_CHECK_SOUND, e);
    if (r) {
        print_report(r);
        print_walk(p);
        code = br_report_ok(r) ? 0 : 4;
    } else {
        fprintf(stderr, "%s\n", br_error_text(e));
    }
    br_report_free(r);
    br_program_free(p);
    br_error_free(e);
    return code;
}

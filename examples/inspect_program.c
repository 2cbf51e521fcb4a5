/* inspect_program.c - what is in a task program: how many tasks of each
 * operation, and what they share.
 *
 *     cc inspect_program.c $(pkg-config --cflags --libs brass) -o inspect
 *     ./inspect mlp.json
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <brass/brass.h>

#include <stdio.h>
#include <string.h>

enum { MAX_OPS = 64 };

static void
print_operations(const br_program *p)
{
    const char *names[MAX_OPS];
    size_t counts[MAX_OPS] = {0}, n = 0;
    size_t i, k;

    for (i = 0; i < br_program_tasks(p); i++) {
        const char *op = br_program_task_op(p, i);

        for (k = 0; k < n && strcmp(names[k], op) != 0; k++)
            ;
        if (k == MAX_OPS)
            continue;
        if (k == n)
            names[n++] = op;
        counts[k]++;
    }
    for (k = 0; k < n; k++)
        printf("  %-18s %6lu\n", names[k], (unsigned long)counts[k]);
}

int
main(int argc, char **argv)
{
    br_error *e = br_error_new();
    br_program *p;
    size_t bytes = 0;
    char *text;

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
    printf("%s: %lu tasks, %lu counters, %lu buffers, %lu bytes of weights\n",
           argv[1], (unsigned long)br_program_tasks(p),
           (unsigned long)br_program_counters(p),
           (unsigned long)br_program_buffers(p),
           (unsigned long)br_program_weight_bytes(p));
    print_operations(p);

    text = br_program_save(p, &bytes, e);
    if (text)
        printf("canonical text: %lu bytes\n", (unsigned long)bytes);
    br_string_free(text);
    br_program_free(p);
    br_error_free(e);
    return text ? 0 : 1;
}

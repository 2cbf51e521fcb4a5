/* replay.c - main() of a fuzzer without libFuzzer: feeds it the files named,
 * or those of the folders named, once each. For coverage, and for a compiler
 * that has no libFuzzer.
 * SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int n_files;

static void
feed(const char *path)
{
    FILE *f = fopen(path, "rb");
    uint8_t *p = NULL;
    long n = -1;

    if (f && fseek(f, 0, SEEK_END) == 0 && (n = ftell(f)) >= 0)
        p = malloc((size_t)n + 1);
    if (p)
        rewind(f);
    if (!p || fread(p, 1, (size_t)n, f) != (size_t)n) {
        perror(path);
        exit(1);
    }
    fclose(f);
    /* A block of exactly n bytes, so that a sanitizer sees a read past it. */
    if (n > 0)
        p = realloc(p, (size_t)n);
    LLVMFuzzerTestOneInput(p, (size_t)n);
    free(p);
    n_files++;
}

int
main(int argc, char **argv)
{
    char path[4096];

    for (int i = 1; i < argc; i++) {
        DIR *d = opendir(argv[i]);
        struct dirent *e;

        if (!d)
            feed(argv[i]);
        while (d && (e = readdir(d))) {
            if (e->d_name[0] == '.')
                continue;
            snprintf(path, sizeof path, "%s/%s", argv[i], e->d_name);
            feed(path);
        }
        if (d)
            closedir(d);
    }
    fprintf(stderr, "%d inputs\n", n_files);
    return n_files ? 0 : 1;
}

/* gen_unicode.c - writes src/model/unicode_table.def from the Unicode data.
 *
 *     cc -o build/gen_unicode tools/gen_unicode.c
 *     build/gen_unicode /usr/share/unicode >src/model/unicode_table.def
 *
 * The folder is that of Debian's package unicode-data. What comes out:
 *
 *   class   two stages: block of 128 code points -> row of 128 classes
 *   lower   runs of simple lower-case mappings (from, to, step, delta)
 *   decomp  canonical decompositions, one step, as (code, first, second);
 *           those that composition must not undo have bit 31 of `second` set
 *   ccc     runs of one non-zero combining class
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CODES = 0x110000, BLOCK = 128, BLOCKS = CODES / BLOCK };

static uint8_t class_of[CODES], ccc_of[CODES];
static uint32_t lower_of[CODES], first_of[CODES], second_of[CODES];
static uint8_t row_of[BLOCKS];
static bool excluded[CODES];

static void
die(const char *what)
{
    fprintf(stderr, "gen_unicode: %s\n", what);
    exit(1);
}

static FILE *
open_in(const char *dir, const char *name)
{
    char path[512];
    FILE *f;

    snprintf(path, sizeof path, "%s/%s", dir, name);
    f = fopen(path, "r");
    if (!f)
        die(path);
    return f;
}

/* Numbers as in unicode.h: Cn 0, other C 1, Lu Ll Lt Lm Lo 2..6, M 7, N 8,
 * P 9, S 10, Z 11. */
static uint8_t
class_number(const char *cat)
{
    switch (cat[0]) {
    case 'L':
        switch (cat[1]) {
        case 'u': return 2;
        case 'l': return 3;
        case 't': return 4;
        case 'm': return 5;
        default: return 6;
        }
    case 'M': return 7;
    case 'N': return 8;
    case 'P': return 9;
    case 'S': return 10;
    case 'Z': return 11;
    default: return 1;
    }
}

static void
decomposition(uint32_t code, const char *text)
{
    unsigned a = 0, b = 0;

    if (!*text || *text == '<')
        return;
    if (sscanf(text, "%x %x", &a, &b) < 1)
        die("a decomposition that is no numbers");
    first_of[code] = a;
    second_of[code] = b;
}

static void
data_line(char *line, uint32_t *range_from)
{
    char *field[16] = {0};
    uint32_t code, at;
    int n = 0;

    for (char *p = line; p && n < 16; n++) {
        field[n] = p;
        p = strchr(p, ';');
        if (p)
            *p++ = 0;
    }
    if (n < 15)
        die("a line of UnicodeData.txt has too few fields");
    code = (uint32_t)strtoul(field[0], NULL, 16);
    if (code >= CODES)
        die("a code point that is too large");
    at = code;
    if (strstr(field[1], ", First>"))
        *range_from = code;
    else if (strstr(field[1], ", Last>"))
        at = *range_from;
    for (; at <= code; at++)
        class_of[at] = class_number(field[2]);
    ccc_of[code] = (uint8_t)strtoul(field[3], NULL, 10);
    decomposition(code, field[5]);
    if (*field[13])
        lower_of[code] = (uint32_t)strtoul(field[13], NULL, 16);
}

static void
read_data(const char *dir)
{
    FILE *f = open_in(dir, "UnicodeData.txt");
    char line[1024];
    uint32_t from = 0;

    while (fgets(line, sizeof line, f))
        data_line(line, &from);
    fclose(f);
}

/* Lines "0009..000D ; White_Space # ..." of a property file. */
static void
read_property(const char *dir, const char *name, const char *property,
              void (*each)(uint32_t code))
{
    FILE *f = open_in(dir, name);
    char line[1024], word[64];
    unsigned from, to;

    while (fgets(line, sizeof line, f)) {
        if (sscanf(line, "%x..%x ; %63s", &from, &to, word) != 3) {
            if (sscanf(line, "%x ; %63s", &from, word) != 2)
                continue;
            to = from;
        }
        if (strcmp(word, property) != 0)
            continue;
        if (from > to || to >= CODES)
            die("a range that is none");
        for (uint32_t c = from; c <= to; c++)
            each(c);
    }
    fclose(f);
}

static void
is_space(uint32_t code)
{
    class_of[code] |= 0x10;
}

static void
is_excluded(uint32_t code)
{
    excluded[code] = true;
}

static void
write_classes(void)
{
    static uint8_t rows[256][BLOCK];
    int n = 0, k;

    for (int b = 0; b < BLOCKS; b++) {
        for (k = 0; k < n; k++)
            if (memcmp(rows[k], class_of + b * BLOCK, BLOCK) == 0)
                break;
        if (k == 256)
            die("more than 256 different blocks");
        if (k == n)
            memcpy(rows[n++], class_of + b * BLOCK, BLOCK);
        row_of[b] = (uint8_t)k;
    }
    printf("#ifdef UNICODE_BLOCKS\n");
    for (int b = 0; b < BLOCKS; b++)
        printf("%d,%s", row_of[b], b % 32 == 31 ? "\n" : "");
    printf("#endif\n#ifdef UNICODE_ROWS\n");
    for (int r = 0; r < n; r++) {
        printf("{");
        for (k = 0; k < BLOCK; k++)
            printf("%d%s", rows[r][k],
                   k == BLOCK - 1 ? "},\n" : (k % 32 == 31 ? ",\n" : ","));
    }
    printf("#endif\n");
}

static void
write_lower(void)
{
    uint32_t c = 0;

    printf("#ifdef UNICODE_LOWER\n");
    while (c < CODES) {
        uint32_t to = c, step = 0, at;

        if (!lower_of[c]) {
            c++;
            continue;
        }
        for (step = 1; step <= 2; step++) {
            for (to = c; to + step < CODES && lower_of[to + step] &&
                         lower_of[to + step] - lower_of[c] == to + step - c &&
                         (step == 1 || !lower_of[to + 1]);)
                to += step;
            if (to > c)
                break;
        }
        if (to == c)
            step = 1;
        printf("{0x%X,0x%X,%d,%d},\n", (unsigned)c, (unsigned)to, (int)step,
               (int)lower_of[c] - (int)c);
        for (at = c; at <= to; at += step)
            lower_of[at] = 0;
        c++;
    }
    printf("#endif\n");
}

static void
write_decompositions(void)
{
    printf("#ifdef UNICODE_DECOMP\n");
    for (uint32_t c = 0; c < CODES; c++)
        if (first_of[c])
            printf("{0x%X,0x%X,0x%X},\n", (unsigned)c, (unsigned)first_of[c],
                   (unsigned)(second_of[c] | (excluded[c] ? 1u << 31 : 0)));
    printf("#endif\n#ifdef UNICODE_CCC\n");
    for (uint32_t c = 0, to; c < CODES; c = to + 1) {
        to = c;
        if (!ccc_of[c])
            continue;
        while (to + 1 < CODES && ccc_of[to + 1] == ccc_of[c])
            to++;
        printf("{0x%X,0x%X,%d},\n", (unsigned)c, (unsigned)to, ccc_of[c]);
    }
    printf("#endif\n");
}

int
main(int argc, char **argv)
{
    if (argc != 2)
        die("usage: gen_unicode FOLDER");
    read_data(argv[1]);
    read_property(argv[1], "PropList.txt", "White_Space", is_space);
    read_property(argv[1], "DerivedNormalizationProps.txt",
                  "Full_Composition_Exclusion", is_excluded);
    printf("/* unicode_table.def - made by tools/gen_unicode.c from Unicode "
           "15.0; do not edit.\n * SPDX-License-Identifier: Apache-2.0 */\n");
    write_classes();
    write_lower();
    write_decompositions();
    return 0;
}

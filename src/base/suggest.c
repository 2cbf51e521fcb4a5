/* suggest.c - "did you mean": the nearest name by edit distance.
 *
 * Distance of restricted Damerau-Levenshtein: --jsno is one swap from --json.
 * A name is near when a third of its letters or fewer differ, when what was
 * typed is its beginning, or when it is that of what was typed (--temperature:
 * --temp). Of three letters the first has to be right: gpu is not meant for cpu.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/options.h"

#include <stdio.h>
#include <string.h>

#define LONGEST 64 /* a longer word gets no suggestion */
#define FAR     1000
#define STEM    4 /* letters of a name that others are made of */
#define SHORT   3 /* letters of which one more makes another word */

int
br_edit_distance(br_text a, br_text b)
{
    /* Three rows of the table: before last, last, this. */
    int rows[3][LONGEST + 1];
    int *old = rows[0], *last = rows[1], *now = rows[2];

    if (a.n > LONGEST || b.n > LONGEST)
        return FAR;
    memset(rows, 0, sizeof rows);
    for (size_t j = 0; j <= b.n; j++)
        last[j] = (int)j;
    for (size_t i = 1; i <= a.n; i++) {
        int *spare = old;

        now[0] = (int)i;
        for (size_t j = 1; j <= b.n; j++) {
            int cost = a.p[i - 1] != b.p[j - 1];
            int d = BR_MIN(last[j] + 1, now[j - 1] + 1);

            d = BR_MIN(d, last[j - 1] + cost);
            if (i > 1 && j > 1 && a.p[i - 1] == b.p[j - 2] &&
                a.p[i - 2] == b.p[j - 1])
                d = BR_MIN(d, old[j - 2] + 1);
            now[j] = d;
        }
        old = last;
        last = now;
        now = spare;
    }
    return last[b.n];
}

void
br_suggest_begin(br_suggest *s, br_text want)
{
    *s = (br_suggest){.want = want, .distance = FAR};
}

/* Whole begins with part, which has at least so many letters. */
static bool
begins(br_text whole, br_text part, size_t least)
{
    return part.n >= least && whole.n > part.n &&
           memcmp(whole.p, part.p, part.n) == 0;
}

void
br_suggest_offer(br_suggest *s, br_text name)
{
    int d = br_edit_distance(s->want, name);
    size_t longer = BR_MAX(s->want.n, name.n);
    int limit = (int)(BR_MIN(longer, (size_t)LONGEST) / 3);

    if (longer <= SHORT && s->want.n && name.n && s->want.p[0] != name.p[0])
        return;
    if (begins(name, s->want, 2) || begins(s->want, name, STEM))
        limit = d = 1;
    if (d > limit || d >= s->distance)
        return;
    s->distance = d;
    s->best = name;
}

void
br_suggest_text(const br_suggest *s, const char *prefix, char *out,
                size_t out_size)
{
    out[0] = 0;
    if (s->best.p)
        snprintf(out, out_size, "; did you mean '%s%.*s'?", prefix,
                 (int)s->best.n, s->best.p);
}

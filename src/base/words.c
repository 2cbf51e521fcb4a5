/* words.c - see words.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/words.h"

#include <string.h>

enum { SHOWN = 60 }; /* bytes of a word in a message */

bool
br_words_line(br_words *r)
{
    const char *nl;

    if (r->p == r->end)
        return false;
    nl = memchr(r->p, '\n', (size_t)(r->end - r->p));
    r->w = r->p;
    r->w_end = nl ? nl : r->end;
    r->p = nl ? nl + 1 : r->end;
    r->line++;
    return true;
}

static bool
is_gap(const br_words *r)
{
    return *r->w && strchr(r->gaps, *r->w);
}

br_text
br_words_next(br_words *r)
{
    const char *from;

    while (r->w < r->w_end && is_gap(r))
        r->w++;
    from = r->w;
    while (r->w < r->w_end && !is_gap(r))
        r->w++;
    return (br_text){from, (size_t)(r->w - from)};
}

br_code
br_words_wrong(const br_words *r, const char *rule, br_text word, br_status *st)
{
    return br_fail(st, BR_E_FORMAT, "line %u: %s%s%.*s%s", r->line, rule,
                   word.n ? ": '" : "", (int)BR_MIN(word.n, (size_t)SHOWN),
                   word.p ? word.p : "", word.n ? "'" : "");
}

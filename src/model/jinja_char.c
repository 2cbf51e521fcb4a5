/* jinja_char.c - characters of a text, and the caller's marks between them, which
 * are none (jinja.h).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/jinja_ast.h"

#include <string.h>

bool
jj_is_mark(br_text t, size_t at)
{
    return t.n - at >= BR_JINJA_MARK_BYTES &&
           (!memcmp(t.p + at, BR_JINJA_MARK, BR_JINJA_MARK_BYTES) ||
            !memcmp(t.p + at, BR_JINJA_ENDS, BR_JINJA_MARK_BYTES));
}

static bool
is_ends(br_text t, size_t at)
{
    return jj_is_mark(t, at) && t.p[at + 2] == BR_JINJA_ENDS[2];
}

/* Bytes of the character at `at`, with the marks before it, and those behind it
 * that end something; else whoever cuts a text between a mark and its spelling
 * makes a token of it. */
size_t
jj_char_bytes(br_text t, size_t at)
{
    size_t i = at;

    while (i < t.n && jj_is_mark(t, i))
        i += BR_JINJA_MARK_BYTES;
    if (i < t.n) {
        unsigned char c = (unsigned char)t.p[i];

        i += c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
    }
    while (i < t.n && (is_ends(t, i) || (jj_is_mark(t, i) &&
                                         is_ends(t, i + BR_JINJA_MARK_BYTES))))
        i += BR_JINJA_MARK_BYTES;
    return BR_MIN(i, t.n) - at;
}

size_t
jj_utf8_len(br_text t)
{
    size_t n = 0;

    for (size_t i = 0; i < t.n; i++)
        n += ((unsigned char)t.p[i] & 0xc0) != 0x80 && !jj_is_mark(t, i);
    return n;
}

br_text
jj_utf8_sub(br_text t, size_t from, size_t to)
{
    size_t i = 0, k = 0, start;

    for (; k < from && i < t.n; k++)
        i += jj_char_bytes(t, i);
    start = i;
    for (; k < to && i < t.n; k++)
        i += jj_char_bytes(t, i);
    return (br_text){t.p + start, i - start};
}

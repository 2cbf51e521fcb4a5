/* textout.c - see textout.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/textout.h"

#include "model/unicode.h"

#include <string.h>

enum { FIRST_TEXT = 4 << 10 };

br_code
br_stops_check(const char *const *stop, size_t n, br_status *st)
{
    if (n > BR_GEN_MAX_STOPS)
        return br_fail(st, BR_E_LIMIT, "stop: %zu strings, at most %d", n,
                       BR_GEN_MAX_STOPS);
    for (size_t i = 0; i < n; i++) {
        br_text t;

        if (!stop || !stop[i])
            return br_fail(st, BR_E_USAGE, "stop: string %zu is missing", i);
        t = br_text_z(stop[i]);
        if (t.n == 0)
            return br_fail(st, BR_E_USAGE, "stop: string %zu is empty", i);
        if (t.n > BR_GEN_MAX_STOP_BYTES)
            return br_fail(st, BR_E_LIMIT, "stop: string %zu: over %d bytes", i,
                           BR_GEN_MAX_STOP_BYTES);
        if (!br_utf8_valid(t))
            return br_fail(st, BR_E_USAGE, "stop: string %zu is not UTF-8", i);
    }
    return BR_OK;
}

bool
br_textout_init(br_textout *t, const br_tok *tok, const char *const *stop,
                size_t n_stop, bool show_special)
{
    *t = (br_textout){.stop = stop, .n_stop = n_stop};
    for (size_t i = 0; i < n_stop; i++)
        t->longest = BR_MAX(t->longest, strlen(stop[i]));
    br_tok_stream_begin(&t->stream, tok, show_special);
    return br_vec_grow(&t->text, 1, FIRST_TEXT + t->longest);
}

void
br_textout_fini(br_textout *t)
{
    br_str_fini(&t->text);
}

static void
drop_taken(br_textout *t)
{
    if (t->taken == 0)
        return;
    memmove(t->text.at, t->text.at + t->taken, t->text.n - t->taken);
    t->text.n -= t->taken;
    t->taken = 0;
}

bool
br_textout_put(br_textout *t, int32_t id)
{
    drop_taken(t);
    /* Rows of logits past the vocabulary have no text. */
    if (id < br_tok_count(t->stream.tok))
        br_tok_stream_put(&t->stream, id, &t->text);
    return !t->text.oom;
}

bool
br_textout_end(br_textout *t)
{
    drop_taken(t);
    br_tok_stream_end(&t->stream, &t->text);
    return !t->text.oom;
}

/* The stop string that begins first; of two at one place, the earlier row. */
static size_t
stopped(const br_textout *t, size_t *at)
{
    size_t which = SIZE_MAX;

    for (size_t i = 0; i < t->n_stop; i++) {
        const char *z = t->stop[i];
        const char *p = memmem(t->text.at, t->text.n, z, strlen(z));

        if (p && (which == SIZE_MAX || (size_t)(p - t->text.at) < *at)) {
            *at = (size_t)(p - t->text.at);
            which = i;
        }
    }
    return which;
}

/* Bytes at the end that may be the beginning of a stop string. */
static size_t
undecided(const br_textout *t)
{
    size_t most = BR_MIN(t->text.n, t->longest ? t->longest - 1 : 0);

    for (size_t n = most; n > 0; n--) {
        const char *tail = t->text.at + t->text.n - n;

        for (size_t i = 0; i < t->n_stop; i++)
            if (strlen(t->stop[i]) > n && memcmp(tail, t->stop[i], n) == 0)
                return n;
    }
    return 0;
}

br_text
br_textout_take(br_textout *t, bool last, size_t *which)
{
    size_t at = 0;

    drop_taken(t);
    *which = SIZE_MAX;
    if (t->text.n == 0)
        return BR_TEXT("");
    *which = t->n_stop ? stopped(t, &at) : SIZE_MAX;
    if (*which != SIZE_MAX)
        t->text.n = at;
    else
        at = t->text.n - (last ? 0 : undecided(t));
    t->taken = at;
    return (br_text){t->text.at, at};
}

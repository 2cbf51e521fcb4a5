/* tok_decode.c - ids to text: all at once, or while they are made.
 *
 *   stream:  E4 | B8 AD | 61      ids of single bytes
 *            ..   中      a       what comes out, and when
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/tok_int.h"
#include "model/unicode.h"

#include <string.h>

/* ---- all at once ------------------------------------------------------- */

/* The clean-up that BERT-like tokenizers want: their makers defined it as
 * replacements in this order, each from left to right. */
static const struct {
    const char *from, *to;
} clean[] = {
    {" .", "."},   {" ?", "?"},     {" !", "!"},
    {" ,", ","},   {" ' ", "'"},    {" 'm", "'m"},
    {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"},
};

/* In place: what is put is never longer. Returns the new length. */
static size_t
replace_all(char *s, size_t n, const char *from, const char *to)
{
    size_t n_from = strlen(from), n_to = strlen(to), done = 0;
    char *out = s, *hit;

    while ((hit = memmem(s + done, n - done, from, n_from))) {
        size_t keep = (size_t)(hit - s) - done;

        memmove(out, s + done, keep);
        memcpy(out + keep, to, n_to);
        out += keep + n_to;
        done += keep + n_from;
    }
    memmove(out, s + done, n - done);
    return (size_t)(out - s) + n - done;
}

static bool
hidden(const br_tok *t, int32_t id, bool show)
{
    return !show && br_tok_is_special(t, id);
}

br_code
br_tok_decode(const br_tok *t, const int32_t *ids, size_t n, int flags,
              br_str *out, br_status *st)
{
    size_t from = out->n, i = 0;
    bool strip = t->space_prefix && !t->space_suffix && t->kind != BR_TOK_BPE;

    for (size_t k = 0; k < n; k++)
        if (ids[k] < 0 || (uint32_t)ids[k] >= t->n)
            return br_fail(st, BR_E_FORMAT,
                           "ids[%zu]: %d is not below the %u tokens", k, ids[k],
                           t->n);
    if ((flags & BR_TOK_STRIP_SPECIAL) && t->add_bos && n &&
        ids[0] == t->role[BR_TOK_BOS]) {
        strip = false;
        i++;
        for (uint32_t k = 0; k < t->n_lead && i < n && ids[i] == t->lead[k];
             k++)
            i++;
    }
    if ((flags & BR_TOK_STRIP_SPECIAL) && t->add_eos && n > i &&
        ids[n - 1] == t->role[BR_TOK_EOS])
        n--;
    for (; i < n; i++) {
        br_text x = hidden(t, ids[i], flags & BR_TOK_SHOW_SPECIAL)
                        ? BR_TEXT("")
                        : t->bytes[ids[i]];

        if (strip && x.n && *x.p == ' ')
            x.p++, x.n--;
        strip = false;
        br_str_put(out, x.p, x.n);
    }
    if (out->oom)
        return br_fail(st, BR_E_OOM, "tokenizer: out of memory for the text");
    if (t->clean_spaces && !(flags & BR_TOK_KEEP_SPACES) && out->n > from) {
        n = out->n - from;
        for (size_t k = 0; k < BR_COUNT(clean); k++)
            n = replace_all(out->at + from, n, clean[k].from, clean[k].to);
        out->n = from + n;
        out->at[out->n] = 0;
    }
    return BR_OK;
}

/* ---- while it is made -------------------------------------------------- */

void
br_tok_stream_begin(br_tok_stream *s, const br_tok *t, bool show_special)
{
    *s = (br_tok_stream){.tok = t, .show_special = show_special};
}

/* What the bytes held are: 1 a character, 0 the beginning of one, -1 neither,
 * and *bad says how many of them can be no part of a character (Unicode 3.9,
 * table 3-8: the longest that could have begun one). */
static int
judge(const uint8_t *p, size_t n, size_t *bad)
{
    size_t claims = br_utf8_claims(*p);
    uint8_t lo = 0x80, hi = 0xBF;

    if (*p < 0x80)
        return 1;
    *bad = 1;
    if (*p < 0xC2 || *p > 0xF4)
        return -1;
    if (*p == 0xE0)
        lo = 0xA0;
    else if (*p == 0xED)
        hi = 0x9F;
    else if (*p == 0xF0)
        lo = 0x90;
    else if (*p == 0xF4)
        hi = 0x8F;
    for (size_t i = 1; i < BR_MIN(n, claims); i++, lo = 0x80, hi = 0xBF)
        if (p[i] < lo || p[i] > hi) {
            *bad = i;
            return -1;
        }
    return n >= claims;
}

void
br_tok_stream_bytes(br_tok_stream *s, br_text bytes, br_str *out)
{
    size_t bad = 0, run = 0;

    for (size_t i = 0; i < bytes.n; i++) {
        while (!s->n && i + run < bytes.n && (uint8_t)bytes.p[i + run] < 0x80)
            run++;
        if (run) {
            br_str_put(out, bytes.p + i, run);
            i += run - 1;
            run = 0;
            continue;
        }
        s->held[s->n++] = (uint8_t)bytes.p[i];
        for (int j; s->n && (j = judge(s->held, s->n, &bad)) != 0;) {
            if (j > 0) {
                br_str_put(out, (const char *)s->held, s->n);
                s->n = 0;
                break;
            }
            br_str_put(out, "\xEF\xBF\xBD", 3);
            s->n -= (uint8_t)bad;
            memmove(s->held, s->held + bad, s->n);
        }
    }
}

void
br_tok_stream_put(br_tok_stream *s, int32_t id, br_str *out)
{
    if (!hidden(s->tok, id, s->show_special))
        br_tok_stream_bytes(s, br_tok_bytes(s->tok, id), out);
}

void
br_tok_stream_end(br_tok_stream *s, br_str *out)
{
    if (s->n)
        br_str_put(out, "\xEF\xBF\xBD", 3);
    s->n = 0;
}

/* tok_wpm.c - WordPiece, as BERT has it: longest match, word by word.
 *
 *   "Héllo, 世界"  --lower, no accents, marks and ideographs apart-->
 *   ▁hello ▁, ▁世 ▁界  --longest token first, the rest of the word after-->
 *
 * A word of which some part is no token is one [UNK].
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/tok_int.h"
#include "model/unicode.h"

#include <string.h>

/* One word with its blank before it, in w->text2. */
static bool
flush_word(const br_tok *t, br_tok_work *w)
{
    const uint8_t *p = (const uint8_t *)w->text2.at, *end;
    size_t from = w->ids->n, n, best_n;
    br_tok_walk k;

    if (w->text2.n <= BR_TOK_BLANK_BYTES)
        return true;
    if (t->word_chars) {
        size_t chars = 0;

        for (size_t i = BR_TOK_BLANK_BYTES; i < w->text2.n; i++)
            chars += ((uint8_t)w->text2.at[i] & 0xC0) != 0x80;
        if (chars > t->word_chars)
            return br_tok_push(w, t->role[BR_TOK_UNK]);
    }
    for (end = p + w->text2.n; p < end; p += best_n) {
        int32_t id, best = BR_TOK_NONE;

        br_walk_begin(&k, t, &t->words, p, end);
        while ((id = br_walk_next(&k, &n)) >= 0) {
            best = id;
            best_n = n;
        }
        if (best < 0) {
            w->ids->n = from;
            return br_tok_push(w, t->role[BR_TOK_UNK]);
        }
        if (!br_tok_push(w, best))
            return false;
    }
    return true;
}

static void
begin_word(br_tok_work *w)
{
    br_str_clear(&w->text2);
    br_str_put(&w->text2, BR_TOK_BLANK, BR_TOK_BLANK_BYTES);
}

static bool
stands_alone(uint32_t c, uint32_t cls)
{
    /* As the reference has it: extension E begins at 2B920 there. */
    if (br_unicode_is_han(c))
        return !(c >= 0x2B820 && c < 0x2B920) && !(c >= 0x2CEB0 && c < 0x2F800);
    return cls == BR_UC_P || (c < 0x7F && cls == BR_UC_S);
}

bool
br_tok_wpm(const br_tok *t, br_tok_work *w, br_text piece)
{
    const uint8_t *p = (const uint8_t *)piece.p, *end = p + piece.n;
    uint32_t c, cls;
    char b[4];

    begin_word(w);
    while (p < end) {
        bool alone;

        p += br_utf8_next(p, end, &c);
        if (t->strip_accents)
            c = br_unicode_base(c);
        cls = br_unicode_class(c);
        if (cls & BR_UC_SPACE) {
            if (!flush_word(t, w))
                return false;
            begin_word(w);
            continue;
        }
        if (c == 0 || c == BR_REPLACEMENT || cls == BR_UC_OTHER ||
            (t->strip_accents && cls == BR_UC_M))
            continue;
        alone = stands_alone(c, cls);
        if (alone) {
            if (!flush_word(t, w))
                return false;
            begin_word(w);
        }
        br_str_put(&w->text2, b,
                   br_utf8_put(b, t->lower ? br_unicode_lower(c) : c));
        if (alone) {
            if (!flush_word(t, w))
                return false;
            begin_word(w);
        }
        if (w->text2.oom) {
            w->code = BR_E_OOM;
            return false;
        }
    }
    return flush_word(t, w);
}

/* tok_ugm.c - Unigram, as T5 has it: the likeliest way to spell the text.
 *
 *   normalise   the charsmap replaces prefixes: a trie in a double array, each
 *               node 32 bits (base 10..30, leaf 8, check 0..7; bit 9 shifts
 *               base by 8), then texts that end in NUL. Spaces become U+2581.
 *   Viterbi     best[i] = best score of the first i bytes and its last token
 *
 * The charsmap is walked once at load, so that no index in it can lead out of
 * it later.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/tok_int.h"
#include "model/unicode.h"

#include <float.h>
#include <string.h>

static uint32_t
node(const br_tok *t, size_t i)
{
    const uint8_t *p = t->charsmap + 4 * i;

    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
           (uint32_t)p[3] << 24;
}

static uint32_t
base_of(uint32_t node)
{
    return node >> 10 << (node & 1u << 9 ? 8 : 0);
}

br_code
br_tok_set_charsmap(br_tok *t, const uint8_t *p, size_t n, br_status *st)
{
    uint32_t blob;

    if (n == 0)
        return BR_OK;
    if (n > BR_TOK_MAX_CHARSMAP)
        return br_fail(st, BR_E_LIMIT, "charsmap: %zu bytes are more than %d",
                       n, BR_TOK_MAX_CHARSMAP);
    if (n < 8)
        return br_fail(st, BR_E_FORMAT, "charsmap: %zu bytes are too few", n);
    blob = (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
           (uint32_t)p[3] << 24;
    if (blob % 4 || blob < 4 || blob > n - 5)
        return br_fail(st, BR_E_FORMAT,
                       "charsmap: a trie of %u bytes in %zu bytes", blob, n);
    if (p[n - 1] != 0)
        return br_fail(st, BR_E_FORMAT, "charsmap: its last text has no end");
    t->charsmap = br_arena_dup(&t->arena, p + 4, n - 4);
    if (!t->charsmap)
        return br_tok_oom(st);
    t->map_nodes = blob / 4;
    t->map_text_at = blob;
    t->map_bytes = n - 4;
    return BR_OK;
}

/* The longest prefix of [p, end) that the map replaces: its bytes, or 0. A
 * node outside the array ends the walk, as a node that does not match does. */
static size_t
replaced(const br_tok *t, const uint8_t *p, const uint8_t *end, br_text *by)
{
    size_t longest = 0;
    uint32_t i;

    if (!t->map_nodes)
        return 0;
    i = base_of(node(t, 0));
    for (const uint8_t *q = p; q < end && *q; q++) {
        uint32_t v;
        bool leaf;

        i ^= *q;
        if (i >= t->map_nodes)
            break;
        v = node(t, i);
        if ((v & (1u << 31 | 0xFF)) != *q)
            break;
        leaf = v >> 8 & 1;
        i ^= base_of(v);
        if (leaf && i < t->map_nodes) {
            size_t at = t->map_text_at + (node(t, i) & ~(1u << 31));

            if (at >= t->map_bytes)
                break;
            *by = br_text_z((const char *)t->charsmap + at);
            longest = (size_t)(q - p) + 1;
        }
    }
    return longest;
}

/* One step of normalisation: what stands for the next bytes of the text. */
static size_t
step(const br_tok *t, const uint8_t *p, const uint8_t *end, br_text *by)
{
    br_tok_walk k;
    int32_t id;
    size_t n, longest = 0;
    uint32_t c;

    br_walk_begin(&k, t, &t->special, p, end);
    while ((id = br_walk_next(&k, &n)) >= 0)
        if (t->type[id] == BR_TOK_USER)
            longest = n;
    if (longest == 0)
        longest = replaced(t, p, end, by);
    else
        *by = (br_text){(const char *)p, longest};
    if (longest)
        return longest;
    n = br_utf8_next(p, end, &c);
    *by = n == 1 && *p >= 0x80 ? BR_TEXT("\xEF\xBF\xBD")
                               : (br_text){(const char *)p, n};
    return n;
}

static bool
normalise(const br_tok *t, br_tok_work *w, br_text piece)
{
    const uint8_t *p = (const uint8_t *)piece.p, *end = p + piece.n;
    br_text space = t->blanks ? BR_TEXT(BR_TOK_BLANK) : BR_TEXT(" "), by;
    bool prepend = t->space_prefix && !t->space_suffix;
    bool prepended = false, inside = false;

    br_str_clear(&w->text);
    while (p < end) {
        p += step(t, p, end, &by);
        for (size_t i = 0; i < by.n; i++) {
            if (by.p[i] == ' ') {
                inside = false;
                if (!t->squeeze_spaces)
                    br_str_put(&w->text, space.p, space.n);
                continue;
            }
            if (!inside && ((prepend && !prepended) || t->squeeze_spaces)) {
                br_str_put(&w->text, space.p, space.n);
                prepended = true;
            }
            inside = true;
            br_str_putc(&w->text, by.p[i]);
        }
    }
    if (t->space_suffix && t->space_prefix)
        br_str_put(&w->text, space.p, space.n);
    if (w->text.oom)
        w->code = BR_E_OOM;
    return !w->text.oom;
}

static void
improve(br_tok_best *b, double score, uint32_t from, int32_t id)
{
    if (score > b->score)
        *b = (br_tok_best){score, from, id};
}

/* All ways that go on from byte `at`. */
static void
extend(const br_tok *t, br_tok_work *w, uint32_t at, size_t n_char)
{
    const uint8_t *p = (const uint8_t *)w->text.at;
    br_tok_best *best = w->best.at;
    double score = best[at].score;
    br_tok_walk k;
    int32_t id;
    size_t n;
    bool whole_char = false;

    br_walk_begin(&k, t, &t->words, p + at, p + w->text.n);
    while ((id = br_walk_next(&k, &n)) >= 0) {
        whole_char = whole_char || n == n_char;
        improve(&best[at + n],
                score + (t->type[id] == BR_TOK_USER ? 0 : (double)t->score[id]),
                at, id);
    }
    if (!whole_char)
        improve(&best[at + n_char], score + (double)t->unk_score, at,
                t->role[BR_TOK_UNK]);
}

bool
br_tok_ugm(const br_tok *t, br_tok_work *w, br_text piece)
{
    size_t first = w->ids->n, n;
    int32_t unk = t->role[BR_TOK_UNK], before = BR_TOK_NONE;

    if (!normalise(t, w, piece))
        return false;
    n = w->text.n;
    if (n == 0)
        return true;
    if (n > UINT32_MAX / 2 || !br_vec_reserve(&w->best, n + 1)) {
        w->code = BR_E_OOM;
        return false;
    }
    for (size_t i = 0; i <= n; i++)
        w->best.at[i] = (br_tok_best){i ? -DBL_MAX : 0, 0, unk};
    for (size_t at = 0; at < n;) {
        size_t k = br_utf8_claims((uint8_t)w->text.at[at]);

        k = BR_MIN(k, n - at);
        extend(t, w, (uint32_t)at, k);
        at += k;
    }
    for (size_t at = n; at > 0; at = w->best.at[at].from) {
        int32_t id = w->best.at[at].id;

        if ((id != unk || before != unk) && !br_tok_push(w, id))
            return false;
        before = id;
    }
    for (size_t i = first, k = w->ids->n; i + 1 < k; i++) {
        int32_t id = w->ids->at[i];

        w->ids->at[i] = w->ids->at[--k];
        w->ids->at[k] = id;
    }
    return true;
}

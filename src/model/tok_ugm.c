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

enum { NODE_LEAF = 1 << 8, NODE_TEXT = (int)(1u << 31) };

/* The node that `byte` leads to from node `at`; 0, which nothing leads to, when
 * there is none. An index outside the array is no node. */
static uint32_t
child(const br_tok *t, uint32_t at, uint8_t byte)
{
    uint32_t to = base_of(node(t, at)) ^ byte;

    /* From the second level on a base is relative to its node. */
    to ^= at;
    if (to >= t->map_nodes ||
        (node(t, to) & ((uint32_t)NODE_TEXT | 0xFF)) != byte)
        return 0;
    return to;
}

/* What stands for the text that ends in this leaf. */
static bool
text_of_leaf(const br_tok *t, uint32_t leaf, br_text *by)
{
    uint32_t at = leaf ^ base_of(node(t, leaf));
    size_t from;

    if (at >= t->map_nodes)
        return false;
    from = t->map_text_at + (node(t, at) & ~(uint32_t)NODE_TEXT);
    if (from >= t->map_bytes)
        return false;
    *by = br_text_z((const char *)t->charsmap + from);
    return true;
}

/* The longest prefix of [p, end) that the map replaces: its bytes, or 0. */
static size_t
replaced(const br_tok *t, const uint8_t *p, const uint8_t *end, br_text *by)
{
    uint32_t at = 0, leaf = 0;
    size_t n = 0, n_leaf = 0;

    if (!t->map_nodes)
        return 0;
    while (p + n < end && p[n] && (at = child(t, at, p[n]))) {
        n++;
        if (node(t, at) & NODE_LEAF) {
            leaf = at;
            n_leaf = n;
        }
    }
    return n_leaf && text_of_leaf(t, leaf, by) ? n_leaf : 0;
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

/* A blank is due before the next word: before the first one, if the model wants
 * one there, and where spaces are squeezed after each run of them. */
static bool
normalise(const br_tok *t, br_tok_work *w, br_text piece)
{
    const uint8_t *p = (const uint8_t *)piece.p, *end = p + piece.n;
    br_text blank = t->blanks ? BR_TEXT(BR_TOK_BLANK) : BR_TEXT(" "), by;
    bool due = t->squeeze_spaces || (t->space_prefix && !t->space_suffix);

    br_str_clear(&w->text);
    while (p < end)
        for (p += step(t, p, end, &by); by.n;) {
            const char *space = memchr(by.p, ' ', by.n);
            size_t n = space ? (size_t)(space - by.p) : by.n;

            if (n && due)
                br_str_put(&w->text, blank.p, blank.n);
            due = due && n == 0;
            br_str_put(&w->text, by.p, n);
            if (space && !t->squeeze_spaces)
                br_str_put(&w->text, blank.p, blank.n);
            due = due || (space && t->squeeze_spaces);
            n += space != NULL;
            by = (br_text){by.p + n, by.n - n};
        }
    if (t->space_suffix && t->space_prefix)
        br_str_put(&w->text, blank.p, blank.n);
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

/* The best way, last token first, is turned round link by link; then `from` of
 * a place says where its token ends, and the one that ends there is in the
 * place it goes to. Returns where the first token ends. */
static uint32_t
turn_round(br_tok_best *best, uint32_t n)
{
    uint32_t at = n, ends = 0;

    while (at > 0) {
        uint32_t begins = best[at].from;

        best[at].from = ends; /* of the token after this one; 0: it is last */
        ends = at;
        at = begins;
    }
    return ends;
}

bool
br_tok_ugm(const br_tok *t, br_tok_work *w, br_text piece)
{
    int32_t unk = t->role[BR_TOK_UNK];
    bool after_unk = false;
    size_t n;

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
    for (size_t at = 0, k; at < n; at += k) {
        k = BR_MIN(br_utf8_claims((uint8_t)w->text.at[at]), n - at);
        extend(t, w, (uint32_t)at, k);
    }
    for (uint32_t at = turn_round(w->best.at, (uint32_t)n); at > 0;
         at = w->best.at[at].from) {
        int32_t id = w->best.at[at].id;

        if ((id != unk || !after_unk) && !br_tok_push(w, id))
            return false;
        after_unk = id == unk;
    }
    return true;
}

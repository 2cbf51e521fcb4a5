/* tok_make.c - from what a file says to a tokenizer that cannot fail.
 *
 *   room -> texts, types, scores -> index_all -> merges -> finish
 *
 * Refused here: a spelling that two tokens share, a merge of or into something
 * that is no token, a score that is no number, a vocabulary that has no token
 * for some byte and none for the unknown, a role that is out of range.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/options.h" /* br_suggest */
#include "model/tok_int.h"
#include "model/unicode.h"

#include <float.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>

br_code
br_tok_oom(br_status *st)
{
    return br_fail(st, BR_E_OOM, "tokenizer: out of memory");
}

br_code
br_tok_new(br_tok **out, br_status *st)
{
    static _Atomic uint64_t serial;
    br_tok *t = br_try_calloc(1, sizeof *t);

    if (!t)
        return br_tok_oom(st);
    /* only the number matters, nothing is published with it */
    t->serial = 1 + atomic_fetch_add_explicit(&serial, 1, memory_order_relaxed);
    br_arena_init(&t->arena, (size_t)BR_TOK_MAX_VOCAB_BYTES * 8);
    for (size_t i = 0; i < BR_TOK_ROLE_COUNT; i++)
        t->role[i] = BR_TOK_NONE;
    for (size_t i = 0; i < 256; i++)
        t->byte_id[i] = BR_TOK_NONE;
    *out = t;
    return BR_OK;
}

void
br_tok_free(br_tok *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->n_pass; i++)
        br_tok_regex_free(t->pass[i].regex);
    br_arena_fini(&t->arena);
    br_free(t);
}

br_code
br_tok_room(br_tok *t, uint64_t n, br_status *st)
{
    if (n == 0)
        return br_fail(st, BR_E_FORMAT, "tokenizer: it has no tokens");
    if (n > BR_TOK_MAX_TOKENS)
        return br_fail(st, BR_E_LIMIT,
                       "tokenizer: %llu tokens are more than %d",
                       (unsigned long long)n, BR_TOK_MAX_TOKENS);
    t->n = (uint32_t)n;
    t->text = br_arena_new(&t->arena, br_text, n);
    t->bytes = br_arena_new(&t->arena, br_text, n);
    t->type = br_arena_new(&t->arena, uint8_t, n);
    t->strip = br_arena_new(&t->arena, uint8_t, n);
    t->score = br_arena_new(&t->arena, float, n);
    t->prio = br_arena_new(&t->arena, uint32_t, n);
    if (!t->text || !t->bytes || !t->type || !t->strip || !t->score || !t->prio)
        return br_tok_oom(st);
    memset(t->type, BR_TOK_NORMAL, n);
    return BR_OK;
}

br_code
br_tok_set_pre(br_tok *t, br_text name, br_status *st)
{
    const br_pre *pre = br_pre_find(name);
    br_suggest near;
    char hint[96];

    if (!pre) {
        br_suggest_begin(&near, name);
        for (size_t i = 0; br_tok_pre_at(i); i++)
            br_suggest_offer(&near, br_text_z(br_tok_pre_at(i)));
        br_suggest_text(&near, "", hint, sizeof hint);
        return br_fail(st, BR_E_FORMAT,
                       "tokenizer.ggml.pre: the pre-tokenizer '%.*s' is not "
                       "known%s",
                       (int)BR_MIN(name.n, 60), name.p, hint);
    }
    memcpy(t->pre_name, name.p, name.n);
    for (size_t i = 0; pre->passes[i]; i++)
        t->pass[t->n_pass++].scan = pre->passes[i];
    t->ignore_merges = pre->flags & BR_PRE_MERGED;
    t->add_bos = pre->flags & BR_PRE_BOS;
    t->clean_spaces = !(pre->flags & BR_PRE_DIRTY);
    t->add_sep = pre->flags & BR_PRE_SEP;
    if (pre->flags & BR_PRE_NO_BOS)
        t->role[BR_TOK_BOS] = BR_TOK_NONE;
    if (pre->flags & BR_PRE_BLANK) {
        t->kind = BR_TOK_MPE;
        t->blanks = true;
    }
    return BR_OK;
}

/* ---- spellings --------------------------------------------------------- */

uint32_t
br_gpt2_letter(uint8_t b)
{
    if ((b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b != 0xAD))
        return b;
    if (b <= 0x20)
        return 0x100u + b;
    return b == 0xAD ? 0x143 : 0x121u + (b - 0x7Fu); /* 7F..A0 */
}

int
br_gpt2_byte(uint32_t c)
{
    if (c < 0x100)
        return br_gpt2_letter((uint8_t)c) == c ? (int)c : -1;
    if (c <= 0x120)
        return (int)(c - 0x100);
    if (c <= 0x142)
        return (int)(c - 0x121 + 0x7F);
    return c == 0x143 ? 0xAD : -1;
}

/* "<0x0A>": 10. Anything else: -1. */
static int
byte_of(br_text x)
{
    if (x.n != 6 || memcmp(x.p, "<0x", 3) != 0 || x.p[5] != '>' ||
        br_hex_digit(x.p[3]) < 0 || br_hex_digit(x.p[4]) < 0)
        return -1;
    return br_hex_digit(x.p[3]) * 16 + br_hex_digit(x.p[4]);
}

/* GPT-2's letters back to bytes; letters that stand for none stay. */
static size_t
from_letters(br_text x, char *to)
{
    const uint8_t *p = (const uint8_t *)x.p, *end = p + x.n;
    size_t n = 0;
    uint32_t c;

    while (p < end) {
        size_t k = br_utf8_next(p, end, &c);
        int b = br_gpt2_byte(c);

        if (b >= 0) {
            to[n++] = (char)b;
        } else {
            memcpy(to + n, p, k);
            n += k;
        }
        p += k;
    }
    return n;
}

static size_t
from_blanks(br_text x, char *to)
{
    size_t n = 0;

    for (size_t i = 0; i < x.n;) {
        if (x.n - i >= BR_TOK_BLANK_BYTES &&
            memcmp(x.p + i, BR_TOK_BLANK, BR_TOK_BLANK_BYTES) == 0) {
            to[n++] = ' ';
            i += BR_TOK_BLANK_BYTES;
        } else {
            to[n++] = x.p[i++];
        }
    }
    return n;
}

/* What a token stands for. Only normal tokens are encoded in some way. */
static br_code
set_bytes(br_tok *t, uint32_t id, br_status *st)
{
    br_text x = t->text[id];
    char *to;
    int b;

    switch ((br_tok_type)t->type[id]) {
    case BR_TOK_UNKNOWN:
    case BR_TOK_CONTROL:
    case BR_TOK_USER: t->bytes[id] = x; return BR_OK;
    case BR_TOK_UNDEFINED:
    case BR_TOK_UNUSED: t->bytes[id] = (br_text){"", 0}; return BR_OK;
    case BR_TOK_BYTE:
        b = byte_of(x);
        if (b < 0)
            return br_fail(st, BR_E_FORMAT,
                           "tokenizer.ggml.tokens[%u]: '%.*s' is typed as a "
                           "byte, which is spelled <0x00> to <0xFF>",
                           id, (int)BR_MIN(x.n, 40), x.p);
        to = br_arena_get(&t->arena, 1);
        if (!to)
            return br_tok_oom(st);
        *to = (char)b;
        t->bytes[id] = (br_text){to, 1};
        return BR_OK;
    case BR_TOK_NORMAL:
    case BR_TOK_TYPE_COUNT: break;
    }
    to = br_arena_get(&t->arena, x.n + 1);
    if (!to)
        return br_tok_oom(st);
    t->bytes[id].p = to;
    t->bytes[id].n =
        t->kind == BR_TOK_BPE ? from_letters(x, to) : from_blanks(x, to);
    return BR_OK;
}

br_code
br_tok_index_all(br_tok *t, br_status *st)
{
    uint32_t owner;

    if (!br_index_room(&t->index, &t->arena, t->n))
        return br_tok_oom(st);
    for (uint32_t i = 0; i < t->n; i++) {
        br_text x = t->text[i];

        if (x.n > BR_TOK_MAX_TOKEN_BYTES)
            return br_fail(st, BR_E_LIMIT,
                           "tokenizer.ggml.tokens[%u]: %zu bytes are more "
                           "than %d",
                           i, x.n, BR_TOK_MAX_TOKEN_BYTES);
        if (x.n && !br_index_add(t, i, &owner))
            return br_fail(st, BR_E_FORMAT,
                           "tokenizer.ggml.tokens[%u]: '%.*s' is token %u "
                           "already",
                           i, (int)BR_MIN(x.n, 40), x.p, owner);
        t->max_bytes = (uint32_t)BR_MAX(t->max_bytes, x.n);
    }
    return BR_OK;
}

static br_code
bad_merge(br_status *st, uint64_t rank, br_text x)
{
    return br_fail(st, BR_E_FORMAT,
                   "tokenizer.ggml.merges[%llu]: '%.*s' is no token",
                   (unsigned long long)rank, (int)BR_MIN(x.n, 40), x.p);
}

br_code
br_tok_add_merge(br_tok *t, uint64_t rank, br_text left, br_text right,
                 br_status *st)
{
    char both[BR_TOK_MAX_TOKEN_BYTES + 1];
    int32_t a = br_index_find(t, left.p, left.n);
    int32_t b = br_index_find(t, right.p, right.n), made;

    if (a < 0)
        return bad_merge(st, rank, left);
    if (b < 0)
        return bad_merge(st, rank, right);
    if (left.n + right.n > sizeof both)
        return bad_merge(st, rank, left);
    memcpy(both, left.p, left.n);
    memcpy(both + left.n, right.p, right.n);
    made = br_index_find(t, both, left.n + right.n);
    if (made < 0)
        return bad_merge(st, rank, (br_text){both, left.n + right.n});
    /* a pair that comes twice keeps its first rank */
    br_pairs_add(&t->pairs, (br_tok_pair){(uint32_t)a, (uint32_t)b,
                                          (uint32_t)rank, (uint32_t)made});
    return BR_OK;
}

/* ---- roles ------------------------------------------------------------- */

struct name {
    const char *text;
    int role; /* or -1 */
    bool end;
};

static const struct name names[] = {
#define BR_TOK_NONE_ROLE   -1
#define ROLE_EOT           BR_TOK_EOT
#define ROLE_EOM           BR_TOK_EOM
#define ROLE_NONE          -1
#define ROLE_FIM_PRE       BR_TOK_FIM_PRE
#define ROLE_FIM_SUF       BR_TOK_FIM_SUF
#define ROLE_FIM_MID       BR_TOK_FIM_MID
#define ROLE_FIM_PAD       BR_TOK_FIM_PAD
#define ROLE_FIM_REP       BR_TOK_FIM_REP
#define ROLE_FIM_SEP       BR_TOK_FIM_SEP
#define X(text, role, end) {text, ROLE_##role, end},
#include "model/tok_name.def"
#undef X
};

static int32_t
find_z(const br_tok *t, const char *z)
{
    return br_index_find(t, z, strlen(z));
}

static int
by_id(const int32_t *a, size_t n, int32_t id)
{
    for (size_t i = 0; i < n; i++)
        if (a[i] == id)
            return (int)i;
    return -1;
}

static void
add_end(br_tok *t, int32_t id)
{
    size_t i = t->n_eog;

    if (id < 0 || by_id(t->eog, t->n_eog, id) >= 0)
        return;
    for (; i > 0 && t->eog[i - 1] > id; i--)
        t->eog[i] = t->eog[i - 1];
    t->eog[i] = id;
    t->n_eog++;
}

static void
drop_end(br_tok *t, int32_t id)
{
    int i = by_id(t->eog, t->n_eog, id);

    if (i < 0)
        return;
    t->n_eog--;
    memmove(t->eog + i, t->eog + i + 1,
            (t->n_eog - (size_t)i) * sizeof *t->eog);
}

/* Some names end a generation only where others are missing. */
static void
ends_that_do_not(br_tok *t)
{
    int32_t end = find_z(t, "<|end|>"), close = find_z(t, "</s>");
    bool call = find_z(t, "<|call|>") >= 0 || find_z(t, "<|calls|>") >= 0;

    if (call && end >= 0 &&
        (find_z(t, "<|return|>") >= 0 || find_z(t, "<|flush|>") >= 0)) {
        drop_end(t, end);
        if (t->role[BR_TOK_EOT] == end)
            t->role[BR_TOK_EOT] = BR_TOK_NONE;
    }
    if (find_z(t, "<|tool_response>") >= 0 && close >= 0 &&
        t->role[BR_TOK_EOS] != close) {
        drop_end(t, close);
        t->type[close] = BR_TOK_NORMAL;
    }
}

static br_code
find_roles(br_tok *t, br_status *st)
{
    t->eog =
        br_arena_new(&t->arena, int32_t, BR_COUNT(names) + BR_TOK_ROLE_COUNT);
    if (!t->eog)
        return br_tok_oom(st);
    for (size_t i = 0; i < BR_COUNT(names); i++) {
        int32_t id = find_z(t, names[i].text);
        int role = names[i].role;

        if (id < 0)
            continue;
        t->type[id] = BR_TOK_CONTROL;
        if (role >= 0 && t->role[role] < 0)
            t->role[role] = id;
        if (names[i].end)
            add_end(t, id);
    }
    add_end(t, t->role[BR_TOK_EOS]);
    add_end(t, t->role[BR_TOK_EOT]);
    add_end(t, t->role[BR_TOK_EOM]);
    add_end(t, t->role[BR_TOK_FIM_PAD]);
    add_end(t, t->role[BR_TOK_FIM_REP]);
    add_end(t, t->role[BR_TOK_FIM_SEP]);
    ends_that_do_not(t);
    return BR_OK;
}

static br_code
check_added(const br_tok *t, br_status *st)
{
    const struct {
        bool adds;
        br_tok_role role;
        const char *what;
    } want[] = {{t->add_bos, BR_TOK_BOS, "BOS"},
                {t->add_eos, BR_TOK_EOS, "EOS"},
                {t->add_sep, BR_TOK_SEP, "SEP"}};

    for (size_t i = 0; i < BR_COUNT(want); i++)
        if (want[i].adds && t->role[want[i].role] < 0)
            return br_fail(st, BR_E_FORMAT,
                           "tokenizer: it adds %s, and does not say which "
                           "token that is",
                           want[i].what);
    return BR_OK;
}

/* ---- what the kinds need ----------------------------------------------- */

/* Floats in the order of their bits, the highest first. -0 is 0. */
static uint32_t
priority(float score)
{
    uint32_t u;
    float f = score == 0 ? 0 : score;

    memcpy(&u, &f, sizeof u);
    u = u >> 31 ? ~u : u | 1u << 31;
    return ~u < UINT32_MAX - 1 ? ~u : UINT32_MAX - 1;
}

static br_code
set_priorities(br_tok *t, br_status *st)
{
    for (uint32_t i = 0; i < t->n; i++) {
        bool merges = t->type[i] == BR_TOK_NORMAL || t->type[i] == BR_TOK_USER;

        if (isnan(t->score[i]))
            return br_fail(st, BR_E_FORMAT,
                           "tokenizer.ggml.scores[%u]: it is not a number", i);
        t->prio[i] = merges ? priority(t->score[i]) : UINT32_MAX;
    }
    return BR_OK;
}

/* May words begin at every blank? Only if no token that a merge makes goes
 * from something else on to a blank, nor one for the unknown. */
static void
find_split(br_tok *t)
{
    t->split_at_blank =
        !t->fuse_unk ||
        br_index_find(t, BR_TOK_BLANK, BR_TOK_BLANK_BYTES) != BR_TOK_NONE;
    for (uint32_t i = 0; i < t->n && t->split_at_blank; i++) {
        br_text x = t->text[i];
        bool other = false;

        if (t->prio[i] == UINT32_MAX)
            continue;
        for (size_t k = 0; k < x.n; k++) {
            if (x.n - k >= BR_TOK_BLANK_BYTES &&
                memcmp(x.p + k, BR_TOK_BLANK, BR_TOK_BLANK_BYTES) == 0) {
                if (other)
                    t->split_at_blank = false;
                k += BR_TOK_BLANK_BYTES - 1;
            } else {
                other = true;
            }
        }
    }
}

/* Can valid UTF-8 hold this byte? */
static bool
in_utf8(unsigned b)
{
    return b < 0xC0 || (b > 0xC1 && b < 0xF5);
}

static br_code
find_bytes(br_tok *t, br_status *st)
{
    bool letters = t->kind == BR_TOK_BPE;

    for (unsigned b = 0; b < 256; b++) {
        static const char digit[] = "0123456789ABCDEF";
        const char spelled[6] = {'<',           '0',           'x',
                                 digit[b >> 4], digit[b & 15], '>'};
        char one[4];
        size_t n = br_utf8_put(one, letters ? br_gpt2_letter((uint8_t)b) : b);

        t->byte_id[b] =
            letters ? br_index_find(t, one, n) : br_index_find(t, spelled, 6);
        if (t->byte_id[b] < 0 && !letters && b < 0x80)
            t->byte_id[b] = br_index_find(t, one, 1);
        if (t->byte_id[b] < 0 && letters)
            t->byte_id[b] = t->role[BR_TOK_UNK];
        if (t->byte_id[b] < 0 && t->role[BR_TOK_UNK] < 0 &&
            (in_utf8(b) || t->kind == BR_TOK_SPM))
            return br_fail(st, BR_E_FORMAT,
                           "tokenizer: no token stands for the byte 0x%02X, "
                           "and none for the unknown",
                           b);
    }
    return BR_OK;
}

static bool
wants_special(const br_tok *t, uint32_t id)
{
    return t->type[id] == BR_TOK_CONTROL || t->type[id] == BR_TOK_UNKNOWN ||
           t->type[id] == BR_TOK_USER;
}

static bool
wants_word(const br_tok *t, uint32_t id)
{
    if (t->kind == BR_TOK_WPM)
        return t->type[id] == BR_TOK_NORMAL || t->type[id] == BR_TOK_USER;
    return t->type[id] == BR_TOK_NORMAL || t->type[id] == BR_TOK_USER ||
           t->type[id] == BR_TOK_UNUSED;
}

/* Unknown characters cost ten more than the unlikeliest token. */
static br_code
set_ugm(br_tok *t, br_status *st)
{
    float least = FLT_MAX;

    for (uint32_t i = 0; i < t->n; i++) {
        if (!isfinite(t->score[i]))
            return br_fail(st, BR_E_FORMAT,
                           "tokenizer.ggml.scores[%u]: it is not finite", i);
        if (t->type[i] == BR_TOK_NORMAL)
            least = BR_MIN(least, t->score[i]);
    }
    t->unk_score = least - 10.0F;
    return BR_OK;
}

static br_code
finish_kind(br_tok *t, br_status *st)
{
    if (t->kind != BR_TOK_UGM)
        BR_TRY(set_priorities(t, st));
    switch (t->kind) {
    case BR_TOK_BPE: return find_bytes(t, st);
    case BR_TOK_SPM:
    case BR_TOK_MPE: find_split(t); return find_bytes(t, st);
    case BR_TOK_UGM: BR_TRY(set_ugm(t, st)); break;
    case BR_TOK_WPM: break;
    }
    if (t->role[BR_TOK_UNK] < 0)
        return br_fail(st, BR_E_FORMAT,
                       "tokenizer: no token stands for the unknown");
    if (!br_sorted_make(&t->words, t, &t->arena, wants_word))
        return br_tok_oom(st);
    return BR_OK;
}

br_code
br_tok_finish(br_tok *t, br_status *st)
{
    for (size_t i = 0; i < BR_TOK_ROLE_COUNT; i++)
        br_assert(t->role[i] < (int32_t)t->n && "loaders check roles");
    BR_TRY(find_roles(t, st));
    BR_TRY(check_added(t, st));
    for (uint32_t i = 0; i < t->n; i++)
        BR_TRY(set_bytes(t, i, st));
    BR_TRY(finish_kind(t, st));
    if (!br_sorted_make(&t->special, t, &t->arena, wants_special))
        return br_tok_oom(st);
    t->special_any = t->special.n > 0;
    for (uint32_t i = 0; i < t->special.n; i++)
        t->user_any = t->user_any || t->type[t->special.id[i]] == BR_TOK_USER;
    return BR_OK;
}

/* ---- questions --------------------------------------------------------- */

static bool
in_range(const br_tok *t, int32_t id)
{
    return id >= 0 && (uint32_t)id < t->n;
}

br_tok_kind
br_tok_kind_of(const br_tok *t)
{
    return t->kind;
}

const char *
br_tok_kind_name(br_tok_kind k)
{
    switch (k) {
    case BR_TOK_BPE: return "byte-level BPE";
    case BR_TOK_SPM: return "SentencePiece";
    case BR_TOK_MPE: return "SentencePiece by merges";
    case BR_TOK_WPM: return "WordPiece";
    case BR_TOK_UGM: return "Unigram";
    }
    br_unreachable("all kinds are above");
}

const char *
br_tok_pre_name(const br_tok *t)
{
    return t->pre_name;
}

uint32_t
br_tok_longest(const br_tok *t)
{
    return t->max_bytes;
}

int32_t
br_tok_count(const br_tok *t)
{
    return (int32_t)t->n;
}

br_text
br_tok_text(const br_tok *t, int32_t id)
{
    return in_range(t, id) ? t->text[id] : BR_TEXT("");
}

br_text
br_tok_bytes(const br_tok *t, int32_t id)
{
    return in_range(t, id) ? t->bytes[id] : BR_TEXT("");
}

br_tok_type
br_tok_type_of(const br_tok *t, int32_t id)
{
    return in_range(t, id) ? (br_tok_type)t->type[id] : BR_TOK_UNDEFINED;
}

bool
br_tok_is_special(const br_tok *t, int32_t id)
{
    return in_range(t, id) &&
           (t->type[id] == BR_TOK_CONTROL || t->type[id] == BR_TOK_UNKNOWN);
}

bool
br_tok_is_eog(const br_tok *t, int32_t id)
{
    return by_id(t->eog, t->n_eog, id) >= 0;
}

const int32_t *
br_tok_eog(const br_tok *t, size_t *n)
{
    *n = t->n_eog;
    return t->eog;
}

int32_t
br_tok_find(const br_tok *t, br_text text)
{
    return br_index_find(t, text.p, text.n);
}

int32_t
br_tok_role_id(const br_tok *t, br_tok_role role)
{
    return t->role[role];
}

bool
br_tok_adds_bos(const br_tok *t)
{
    return t->add_bos;
}

bool
br_tok_adds_eos(const br_tok *t)
{
    return t->add_eos || t->add_sep;
}

/* tok_pre.c - scanners that cut text into words, one per pass of pre.def.
 *
 *   "it's 2024!\n"   gpt2     it|'s| 2024|!|\n
 *                    llama3   it|'s| |202|4|!\n
 *
 * A pass is what a regular expression would be, written by hand: no look-ahead
 * machinery, no backtracking beyond one run of letters, every character read
 * at most three times. tests/unit/test_tok_pre.c holds each scanner against
 * PCRE2 on its pattern.
 *
 * The text is valid UTF-8 by the time it gets here. White space is \s whatever
 * its category, also inside the sets.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/tok_int.h"
#include "model/unicode.h"

#include <string.h>

/* Sets of characters: bit 1 << class, and W in place of the class. */
enum {
    L = 1 << BR_UC_LU | 1 << BR_UC_LL | 1 << BR_UC_LT | 1 << BR_UC_LM |
        1 << BR_UC_LO,
    M = 1 << BR_UC_M,
    N = 1 << BR_UC_N,
    P = 1 << BR_UC_P,
    S = 1 << BR_UC_S,
    W = 1 << BR_UC_COUNT,
    LM = L | M,
    PS = ~(P | S), /* as what is not punctuation */
    UPPER = 1 << BR_UC_LU | 1 << BR_UC_LT | 1 << BR_UC_LM | 1 << BR_UC_LO | M,
    LOWER_CASE = 1 << BR_UC_LL | 1 << BR_UC_LM | 1 << BR_UC_LO | M,
};

/* LOWER is a word of both tables; what follows keeps them apart. */
enum { CONTR_NO, CONTR_LOWER, CONTR_ANY, CONTR_AFTER };
enum { LEAD_SPACE, LEAD_NOT_LN, LEAD_NOT_LPS, LEAD_NO, LEAD_BLANK };
enum { SPLIT_NO, SPLIT_CASE, SPLIT_NEAR, SPLIT_HAN };
enum { TRAIL_NONE, TRAIL_NL, TRAIL_SLASH };
enum { NOT = 1 << 30, MANY = 255, END = 1000, EXACT3 = 1003 };

typedef uint32_t range[2];

struct br_pre_pass {
    bool is_run;
    /* WORDS */
    uint8_t contractions, lead, split, trail;
    bool space_digits, newlines, ascii;
    uint32_t letters, no_punct;
    uint32_t digits; /* RUN: most */
    /* RUN */
    uint32_t set;
    const range *ranges;
    const char *ascii_set;
};

/* What DeepSeek's first pattern spells out: letters of cased scripts. */
static const range ds_letter_ranges[] = {
    {'A', 'Z'},
    {'a', 'z'},
    {0xB5, 0xB5},
    {0xC0, 0xD6},
    {0xD8, 0xF6},
    {0xF8, 0x1BA},
    {0x1BC, 0x1BF},
    {0x1C4, 0x293},
    {0x295, 0x2AF},
    {0x370, 0x373},
    {0x376, 0x377},
    {0x37B, 0x37D},
    {0x37F, 0x37F},
    {0x386, 0x386},
    {0x388, 0x38A},
    {0x38C, 0x38C},
    {0x38E, 0x3A1},
    {0x3A3, 0x3F5},
    {0x3F7, 0x481},
    {0x48A, 0x52F},
    {0x531, 0x556},
    {0x10A0, 0x10C5},
    {0x13A0, 0x13F5},
    {0x13F8, 0x13FD},
    {0x1C90, 0x1CBA},
    {0x1CBD, 0x1CBF},
    {0x1D00, 0x1D2B},
    {0x1D6B, 0x1D77},
    {0x1D79, 0x1D9A},
    {0x1E00, 0x1F15},
    {0x1F18, 0x1F1D},
    {0x1F20, 0x1F45},
    {0x1F48, 0x1F4D},
    {0x1F50, 0x1F57},
    {0x1F59, 0x1F59},
    {0x1F5B, 0x1F5B},
    {0x1F5D, 0x1F5D},
    {0x1F5F, 0x1F7D},
    {0x1F80, 0x1FB4},
    {0x1FB6, 0x1FBC},
    {0x1FBE, 0x1FBE},
    {0x1FC2, 0x1FC4},
    {0x1FC6, 0x1FCC},
    {0x1FD0, 0x1FD3},
    {0x1FD6, 0x1FDB},
    {0x1FE0, 0x1FEC},
    {0x1FF2, 0x1FF4},
    {0x1FF6, 0x1FFC},
    {0x2102, 0x2102},
    {0x2107, 0x2107},
    {0x210A, 0x2113},
    {0x2115, 0x2115},
    {0x2119, 0x211D},
    {0x2124, 0x2124},
    {0x2126, 0x2126},
    {0x2128, 0x2128},
    {0x212A, 0x212D},
    {0x212F, 0x2134},
    {0x2139, 0x2139},
    {0x213C, 0x213F},
    {0x2145, 0x2149},
    {0x214E, 0x214E},
    {0x2183, 0x2184},
    {0x2C00, 0x2C7B},
    {0x2C7E, 0x2CE4},
    {0x2CEB, 0x2CEE},
    {0x2CF2, 0x2CF3},
    {0xA640, 0xA66D},
    {0xA680, 0xA69B},
    {0xA722, 0xA76F},
    {0xA771, 0xA787},
    {0xA78B, 0xA78E},
    {0xAB70, 0xABBF},
    {0xFB00, 0xFB06},
    {0xFB13, 0xFB17},
    {0xFF21, 0xFF3A},
    {0xFF41, 0xFF5A},
    {0x10400, 0x1044F},
    {0x104B0, 0x104D3},
    {0x104D8, 0x104FB},
    {0x10C80, 0x10CB2},
    {0x10CC0, 0x10CF2},
    {0x118A0, 0x118DF},
    {0x1E900, 0x1E943},
    {0, 0},
};
static const range ds_mark_ranges[] = {
    {'!', '/'},       {':', '~'},       {0xFF01, 0xFF0F}, {0xFF1A, 0xFF5E},
    {0x2018, 0x201F}, {0x3000, 0x3002}, {0, 0},
};
static const range wide_ranges[] = {{0x800, 0x9FA5}, {0xAC00, 0xD7FF}, {0, 0}};
static const range kana_ranges[] = {
    {0x3040, 0x309F}, {0x30A0, 0x30FF}, {0x4E00, 0x9FA5}, {0, 0}};
static const range stop_ranges[] = {
    {0x60C, 0x60C},   {0x6D4, 0x6D4},   {0x964, 0x964}, {0x2026, 0x2026},
    {0x3001, 0x3002}, {0xFF0C, 0xFF0C}, {0, 0},
};

/* clang-format off */
#define WORDS(nm, contr, ld, lett, spl, dig, sd, nopunct, tr, nl, asc) \
    static const br_pre_pass pass_##nm = {                             \
        .contractions = CONTR_##contr, .lead = LEAD_##ld,              \
        .letters = lett, .split = SPLIT_##spl, .digits = dig,          \
        .space_digits = sd, .no_punct = (uint32_t)(nopunct),           \
        .trail = TRAIL_##tr, .newlines = nl, .ascii = asc};
#define RUN(nm, ld, st, rng, asc, most)                        \
    static const br_pre_pass pass_##nm = {                     \
        .is_run = true, .lead = LEAD_##ld, .set = (uint32_t)(st), \
        .ranges = rng, .ascii_set = asc, .digits = most};
#include "model/pre.def"
#undef WORDS
#undef RUN

#define P1(a)                &pass_##a
#define P2(a, b)             P1(a), P1(b)
#define P3(a, b, c)          P2(a, b), P1(c)
#define P4(a, b, c, d)       P3(a, b, c), P1(d)
#define P5(a, b, c, d, e)    P4(a, b, c, d), P1(e)
#define P6(a, b, c, d, e, f) P5(a, b, c, d, e), P1(f)

static const br_pre pres[] = {
#define MERGED BR_PRE_MERGED
#define BOS    BR_PRE_BOS
#define DIRTY  BR_PRE_DIRTY
#define NO_BOS BR_PRE_NO_BOS
#define SEP    BR_PRE_SEP
#define BLANK  BR_PRE_BLANK
#define PRE(name, flags, passes) {name, flags, {passes}},
#include "model/pre.def"
#undef PRE
#undef MERGED
#undef BOS
#undef DIRTY
#undef NO_BOS
#undef SEP
#undef BLANK
};
static const struct regex {
    const br_pre_pass *pass;
    const char *text;
} regexes[] = {
#define REGEX(pass, text) {&pass_##pass, text},
#include "model/pre.def"
#undef REGEX
};
/* clang-format on */

const br_pre *
br_pre_find(br_text name)
{
    for (size_t i = 0; i < BR_COUNT(pres); i++)
        if (br_text_is(name, pres[i].name))
            return &pres[i];
    return NULL;
}

const char *
br_tok_pre_at(size_t i)
{
    return i < BR_COUNT(pres) ? pres[i].name : NULL;
}

const br_pre_pass *
br_pre_of_regex(br_text regex)
{
    for (size_t i = 0; i < BR_COUNT(regexes); i++)
        if (br_text_is(regex, regexes[i].text))
            return regexes[i].pass;
    return NULL;
}

const br_pre_pass *
br_pre_gpt2(void)
{
    return &pass_gpt2;
}

const br_pre_pass *
br_pre_digits(bool one_by_one)
{
    return one_by_one ? &pass_number : &pass_numbers;
}

const br_pre_pass *
br_pre_near(const br_pre_pass *p)
{
    if (p == &pass_o200k)
        return &pass_o200k_near;
    return p == &pass_tekken ? &pass_tekken_near : p;
}

/* ---- characters -------------------------------------------------------- */

typedef const uint8_t *at;

/* The character at p: its set (0 at the end) and its bytes. */
static inline uint32_t
look(at p, at end, size_t *n)
{
    uint32_t c, cls;

    if (p >= end) {
        *n = 0;
        return 0;
    }
    if (*p < 0x80) {
        *n = 1;
        cls = br_ascii_class[*p];
    } else {
        *n = br_utf8_next(p, end, &c);
        cls = br_unicode_class(c);
    }
    return cls & BR_UC_SPACE ? W : 1u << cls;
}

static inline bool
is_nl(at p, at end)
{
    return p < end && (*p == '\r' || *p == '\n');
}

static inline at
run_of(at p, at end, uint32_t set)
{
    size_t n;

    while (look(p, end, &n) & set)
        p += n;
    return p;
}

static bool
han_at(at p, at end)
{
    uint32_t c;

    if (p >= end || *p < 0xE3) /* U+3000 on */
        return false;
    br_utf8_next(p, end, &c);
    return br_unicode_is_han(c);
}

/* ---- WORDS ------------------------------------------------------------- */

/* 's 't 'm 'd 're 've 'll; p where none is. A letter that stands alone needs no
 * second: its partner is 0. */
static at
contraction(at p, at end, bool any_case)
{
    static const uint8_t partner['z' - 'a' + 1] = {
        ['l' - 'a'] = 'l', ['r' - 'a'] = 'e', ['v' - 'a'] = 'e'};
    static const uint32_t known = 1u << ('d' - 'a') | 1u << ('l' - 'a') |
                                  1u << ('m' - 'a') | 1u << ('r' - 'a') |
                                  1u << ('s' - 'a') | 1u << ('t' - 'a') |
                                  1u << ('v' - 'a');
    uint8_t fold = any_case ? 0x20 : 0;
    size_t left = (size_t)(end - p);
    uint32_t k;

    if (left < 2 || *p != '\'' || p[1] >= 0x80)
        return p;
    k = (p[1] | fold) - (uint32_t)'a';
    if (k > 'z' - 'a' || !(known >> k & 1))
        return p;
    if (!partner[k])
        return p + 2;
    return left > 2 && p[2] < 0x80 && (p[2] | fold) == partner[k] ? p + 3 : p;
}

/* Is the character upper, lower or both, to a pass that splits by case? */
static inline void
case_of(const br_pre_pass *s, uint8_t first, uint32_t set, bool *up, bool *low)
{
    if (s->split == SPLIT_CASE) {
        *up = set & UPPER;
        *low = set & LOWER_CASE;
    } else {
        *up = (set & L) && !(first >= 'a' && first <= 'z');
        *low = (set & L) && !(first >= 'A' && first <= 'Z');
    }
}

/* upper* lower+ | upper+ lower*, as a backtracking matcher would find it: when
 * no lower follows the run of uppers, the first form gives back characters
 * until the last one that is both; then the second form takes the run. */
static at
cased(const br_pre_pass *s, at p, at end, bool *second_form)
{
    at q = p, both_end = NULL;
    uint32_t set;
    bool up, low;
    size_t n;

    *second_form = false;
    for (; (set = look(q, end, &n)); q += n) {
        case_of(s, *q, set, &up, &low);
        if (!up)
            break;
        if (low)
            both_end = q + n;
    }
    if (set) {
        case_of(s, *q, set, &up, &low);
        if (low) {
            for (; (set = look(q, end, &n)); q += n) {
                case_of(s, *q, set, &up, &low);
                if (!low)
                    break;
            }
            return q;
        }
    }
    *second_form = !both_end;
    return both_end ? both_end : q;
}

static at
han_free(at p, at end)
{
    size_t n;

    while ((look(p, end, &n) & L) && !han_at(p, end))
        p += n;
    return p;
}

/* The letters themselves; p where there are none. */
static inline at
letters_from(const br_pre_pass *s, at p, at end, bool *second_form)
{
    switch (s->split) {
    case SPLIT_CASE:
    case SPLIT_NEAR: return cased(s, p, end, second_form);
    case SPLIT_HAN: return han_free(p, end);
    default: return run_of(p, end, s->letters);
    }
}

static at
letters(const br_pre_pass *s, at p, at end, uint32_t set, size_t n)
{
    at q = p, bare;
    bool lead, second = false, bare_second = false;

    if (s->lead == LEAD_SPACE)
        lead = *p == ' ';
    else if (s->lead == LEAD_NOT_LN)
        lead = !(set & (L | N)) && !is_nl(p, end);
    else
        lead = !(set & (L | P | S)) && !is_nl(p, end);
    if (lead) {
        q = letters_from(s, p + n, end, &second);
        if (q == p + n)
            q = p;
    }
    /* A mark may lead letters or be one: the first form is tried with and
     * without a lead before the second. */
    if (q == p || (second && (set & M))) {
        bare = letters_from(s, p, end, &bare_second);
        if (q == p || (bare > p && !bare_second))
            q = bare;
    }
    if (q > p && s->contractions == CONTR_AFTER)
        q = contraction(q, end, true);
    return q;
}

static at
digits(const br_pre_pass *s, at p, at end)
{
    at q = p + (s->space_digits && *p == ' ');
    at from = q;
    size_t n;

    for (uint32_t k = 0; k < s->digits && (look(q, end, &n) & N);) {
        q += n;
        k += s->digits != MANY;
    }
    return q > from ? q : p;
}

static at
marks(const br_pre_pass *s, at p, at end)
{
    at from = p + (*p == ' '), q = from;
    size_t n;
    uint32_t set;

    while ((set = look(q, end, &n)) && !(set & s->no_punct))
        q += n;
    if (q == from)
        return p;
    if (s->trail != TRAIL_NONE)
        while (is_nl(q, end) ||
               (s->trail == TRAIL_SLASH && q < end && *q == '/'))
            q++;
    return q;
}

/* \s*[\r\n]+ | \s+(?!\S) | \s+
 *
 * The run of white space is found first. Of it stays, looking back from its
 * end: what goes up to the last line end, where that ends a word; else, before
 * other text, all but the last character, which leads that text. */
static at
blanks(const br_pre_pass *s, at p, at end)
{
    at stop = run_of(p, end, W), q = stop;

    if (s->newlines) {
        while (q > p && !is_nl(q - 1, stop))
            q--;
        if (q > p)
            return q;
    }
    if (stop == end)
        return stop;
    for (q = stop - 1; (*q & 0xC0) == 0x80;)
        q--;
    return q > p ? q : stop;
}

static at
ascii_word(at p, at end)
{
    at q = p + 1;

    if (*p >= 0x80 || !(1u << (br_ascii_class[*p] & 0x0F) & (P | S)))
        return p;
    while (q < end && ((*q | 0x20) >= 'a' && (*q | 0x20) <= 'z'))
        q++;
    return q > p + 1 ? q : p;
}

/* End of the match that begins at p; p when none does. */
static at
word_at(const br_pre_pass *s, at p, at end)
{
    size_t n;
    uint32_t set = look(p, end, &n);
    at q = p;

    if (s->split == SPLIT_HAN && han_at(p, end)) {
        while (han_at(q, end))
            q += br_utf8_claims(*q);
        return q;
    }
    if (*p == '\'' &&
        (s->contractions == CONTR_LOWER || s->contractions == CONTR_ANY))
        q = contraction(p, end, s->contractions == CONTR_ANY);
    if (q == p && s->ascii)
        q = ascii_word(p, end);
    if (q == p)
        q = letters(s, p, end, set, n);
    if (q == p && s->digits)
        q = digits(s, p, end);
    if (q == p)
        q = marks(s, p, end);
    if (q == p && (set & W))
        q = blanks(s, p, end);
    return q;
}

/* ---- RUN --------------------------------------------------------------- */

static bool
in_run(const br_pre_pass *s, at p, at end, size_t *n)
{
    uint32_t set = look(p, end, n), c;
    bool in = set & s->set;

    if (*n == 0)
        return false;
    if (*n == 1)
        in = in || (*p && strchr(s->ascii_set, *p));
    if (s->ranges && (!(set & W) || *n == 1)) {
        br_utf8_next(p, end, &c);
        for (const range *r = s->ranges; (*r)[1] && c >= (*r)[0]; r++)
            in = in || c <= (*r)[1];
    }
    return s->set & NOT ? !in && !(set & W) : in;
}

static at
run_at(const br_pre_pass *s, at p, at end)
{
    uint32_t most = s->digits == EXACT3 ? 3 : s->digits, k = 0;
    size_t n;
    uint32_t set = look(p, end, &n);
    at q = p, from;

    if ((s->lead == LEAD_BLANK && (set & W)) ||
        (s->lead == LEAD_SPACE && *p == ' '))
        q += n;
    for (from = q; k < most && in_run(s, q, end, &n); q += n)
        k += most < MANY;
    if (q == from || (s->digits == EXACT3 && k < 3))
        return p;
    return q;
}

/* ---- passes ------------------------------------------------------------ */

static void
find(const br_pre_pass *s, at p, at end, at *from, at *to)
{
    size_t n;

    while (p < end) {
        at q;

        if (s->digits == END) {
            q = run_of(p, end, s->set);
            if (q > p && q < end) {
                p = q;
                continue;
            }
        } else {
            q = s->is_run ? run_at(s, p, end) : word_at(s, p, end);
        }
        if (q > p) {
            *from = p;
            *to = q;
            return;
        }
        look(p, end, &n);
        p += n;
    }
    *from = *to = end;
}

struct split {
    const br_tok *t;
    br_word_fn fn;
    void *ctx;
    br_code code;
    br_tok_match *match[BR_TOK_MAX_PASSES];
};

/* The next match of pass i in [p, end); from == to == end: none. */
static bool
next(struct split *s, size_t i, at p, at end, at *from, at *to)
{
    const br_tok_pass *ps = &s->t->pass[i];
    int found;

    if (ps->scan) {
        find(ps->scan, p, end, from, to);
        return true;
    }
    found = br_tok_regex_find(ps->regex, s->match[i], p, end, from, to);
    if (found == 0)
        *from = *to = end;
    if (found < 0)
        s->code = BR_E_LIMIT;
    return found >= 0;
}

/* As deep as there are passes. */
static bool
pass(struct split *s, size_t i, at p, at end)
{
    const br_tok_pass *ps = &s->t->pass[i];
    at from, to;

    if (p == end)
        return true;
    if (i == s->t->n_pass)
        return s->fn(s->ctx, p, (size_t)(end - p));
    for (; p < end; p = to) {
        if (!next(s, i, p, end, &from, &to))
            return false;
        if (!ps->drop_gaps && !pass(s, i + 1, p, from))
            return false;
        if (!ps->drop_matches && !pass(s, i + 1, from, to))
            return false;
    }
    return true;
}

bool
br_pre_split(const br_tok *t, br_text text, br_word_fn fn, void *ctx,
             br_code *code)
{
    struct split s = {.t = t, .fn = fn, .ctx = ctx};
    at p = (at)text.p;
    bool done;

    for (size_t i = 0; i < t->n_pass; i++)
        if (t->pass[i].regex &&
            !(s.match[i] = br_tok_match_new(t->pass[i].regex)))
            s.code = BR_E_OOM;
    done = s.code == BR_OK && pass(&s, 0, p, p + text.n);
    *code = s.code;
    for (size_t i = 0; i < t->n_pass; i++)
        br_tok_match_free(s.match[i]);
    return done;
}

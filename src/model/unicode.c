/* unicode.c - look-ups in the Unicode table, UTF-8, normalisation form C.
 *
 *   class:  code point -> blocks[c / 128] -> rows[..][c % 128]
 *   lower:  binary search in 180 runs; decompositions in 2,061 rows
 *
 * Composition has no table of its own: the decompositions are walked, which
 * only a mark after a base makes necessary.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/unicode.h"

#include <string.h>

enum { BLOCK = 128 };

/* clang-format off */
static const uint8_t blocks[BR_UNICODE_END / BLOCK] = {
#define UNICODE_BLOCKS
#include "model/unicode_table.def"
#undef UNICODE_BLOCKS
};
static const uint8_t rows[][BLOCK] = {
#define UNICODE_ROWS
#include "model/unicode_table.def"
#undef UNICODE_ROWS
};
static const struct lower {
    uint32_t from, to;
    int32_t step, delta;
} lowers[] = {
#define UNICODE_LOWER
#include "model/unicode_table.def"
#undef UNICODE_LOWER
};
static const struct decomp { uint32_t code, first, second; } decomps[] = {
#define UNICODE_DECOMP
#include "model/unicode_table.def"
#undef UNICODE_DECOMP
};
static const struct ccc { uint32_t from, to; uint32_t ccc; } cccs[] = {
#define UNICODE_CCC
#include "model/unicode_table.def"
#undef UNICODE_CCC
};
/* clang-format on */

enum { /* Hangul syllables are computed (Unicode 3.12) */
       S_BASE = 0xAC00,
       L_BASE = 0x1100,
       V_BASE = 0x1161,
       T_BASE = 0x11A7,
       L_COUNT = 19,
       V_COUNT = 21,
       T_COUNT = 28,
       N_COUNT = V_COUNT * T_COUNT,
       S_COUNT = L_COUNT * N_COUNT,
};
#define EXCLUDED (1u << 31)

const uint8_t *const br_ascii_class = rows[0]; /* of block 0: the first */

uint8_t
br_unicode_class(uint32_t c)
{
    if (c >= BR_UNICODE_END)
        return BR_UC_NONE;
    return rows[blocks[c / BLOCK]][c % BLOCK];
}

uint32_t
br_unicode_lower(uint32_t c)
{
    size_t lo = 0, hi = BR_COUNT(lowers);

    if (c < 128)
        return c >= 'A' && c <= 'Z' ? c + 32 : c;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        const struct lower *r = &lowers[mid];

        if (c < r->from)
            hi = mid;
        else if (c > r->to)
            lo = mid + 1;
        else
            return (c - r->from) % (uint32_t)r->step ? c : c + r->delta;
    }
    return c;
}

/* The table has only the other way: the first that c is the lower case of. The
 * few letters that are not the lower case of their upper case are rows here. */
uint32_t
br_unicode_upper(uint32_t c)
{
    /* clang-format off */
    static const uint16_t one_way[][2] = {
        {0xB5, 0x39C}, {0xDF, 0xDF}, {0x131, 0x49}, {0x17F, 0x53},
        {0x1C5, 0x1C4},
        {0x1C8, 0x1C7}, {0x1CB, 0x1CA}, {0x1F2, 0x1F1}, {0x345, 0x399},
        {0x3C2, 0x3A3}, {0x3D0, 0x392}, {0x3D1, 0x398}, {0x3D5, 0x3A6},
        {0x3D6, 0x3A0}, {0x3F0, 0x39A}, {0x3F1, 0x3A1}, {0x3F5, 0x395},
        {0x1C80, 0x412}, {0x1C81, 0x414}, {0x1C82, 0x41E}, {0x1C83, 0x421},
        {0x1C84, 0x422}, {0x1C85, 0x422}, {0x1C86, 0x42A}, {0x1C87, 0x462},
        {0x1C88, 0xA64A}, {0x1E9B, 0x1E60}, {0x1FBE, 0x399},
    };
    /* clang-format on */

    if (c < 128)
        return c >= 'a' && c <= 'z' ? c - 32 : c;
    for (size_t i = 0; i < BR_COUNT(one_way); i++)
        if (one_way[i][0] == c)
            return one_way[i][1];
    for (size_t i = 0; i < BR_COUNT(lowers); i++) {
        const struct lower *r = &lowers[i];
        uint32_t up = c - (uint32_t)r->delta;

        if (up >= r->from && up <= r->to &&
            (up - r->from) % (uint32_t)r->step == 0)
            return up;
    }
    return c;
}

static const struct decomp *
decomp_of(uint32_t c)
{
    size_t lo = 0, hi = BR_COUNT(decomps);

    while (lo < hi) {
        size_t mid = (lo + hi) / 2;

        if (decomps[mid].code == c)
            return &decomps[mid];
        if (decomps[mid].code < c)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

uint32_t
br_unicode_base(uint32_t c)
{
    const struct decomp *d;

    if (c >= S_BASE && c < S_BASE + S_COUNT)
        return L_BASE + (c - S_BASE) / N_COUNT;
    while (c >= 0xC0 && (d = decomp_of(c)))
        c = d->first;
    return c;
}

static uint32_t
ccc_of(uint32_t c)
{
    size_t lo = 0, hi = BR_COUNT(cccs);

    if (c < 0x300)
        return 0;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;

        if (c < cccs[mid].from)
            hi = mid;
        else if (c > cccs[mid].to)
            lo = mid + 1;
        else
            return cccs[mid].ccc;
    }
    return 0;
}

bool
br_unicode_is_han(uint32_t c)
{
    static const uint32_t from_to[][2] = {
        {0x3400, 0x4DBF},   {0x4E00, 0x9FFF},   {0xF900, 0xFAFF},
        {0x20000, 0x2A6DF}, {0x2A700, 0x2EBEF}, {0x2F800, 0x2FA1F},
    };

    if (c < from_to[0][0])
        return false;
    for (size_t i = 0; i < BR_COUNT(from_to); i++)
        if (c >= from_to[i][0] && c <= from_to[i][1])
            return true;
    return false;
}

/* ---- UTF-8 ------------------------------------------------------------- */

size_t
br_utf8_claims(uint8_t first)
{
    return first < 0xC0 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
}

size_t
br_utf8_next(const uint8_t *p, const uint8_t *end, uint32_t *c)
{
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    size_t n = br_utf8_claims(*p);
    uint32_t v = *p;

    if (v < 0x80) {
        *c = v;
        return 1;
    }
    *c = BR_REPLACEMENT;
    if (n == 1 || v > 0xF4 || (size_t)(end - p) < n)
        return 1;
    v &= 0x7Fu >> n;
    for (size_t i = 1; i < n; i++) {
        if ((p[i] & 0xC0) != 0x80)
            return 1;
        v = v << 6 | (p[i] & 0x3F);
    }
    if (v < least[n] || v >= BR_UNICODE_END || (v >= 0xD800 && v < 0xE000))
        return 1;
    *c = v;
    return n;
}

size_t
br_utf8_put(char out[4], uint32_t c)
{
    br_assert(c < BR_UNICODE_END && "a code point");
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xC0 | c >> 6);
        out[1] = (char)(0x80 | (c & 0x3F));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (char)(0xE0 | c >> 12);
        out[1] = (char)(0x80 | (c >> 6 & 0x3F));
        out[2] = (char)(0x80 | (c & 0x3F));
        return 3;
    }
    out[0] = (char)(0xF0 | c >> 18);
    out[1] = (char)(0x80 | (c >> 12 & 0x3F));
    out[2] = (char)(0x80 | (c >> 6 & 0x3F));
    out[3] = (char)(0x80 | (c & 0x3F));
    return 4;
}

bool
br_utf8_valid(br_text t)
{
    const uint8_t *p = (const uint8_t *)t.p, *end = p + t.n;
    uint32_t c;

    while (p < end) {
        uint64_t eight;
        size_t n;

        if (end - p >= 8 &&
            (memcpy(&eight, p, 8), !(eight & 0x8080808080808080u))) {
            p += 8;
            continue;
        }
        n = *p < 0x80 ? 1 : br_utf8_next(p, end, &c);
        if (n == 1 && *p >= 0x80)
            return false;
        p += n;
    }
    return true;
}

/* ---- normalisation form C ---------------------------------------------- */

/* Decomposes into `to` (at most 4 code points, the longest there is). */
static size_t
decompose(uint32_t c, uint32_t *to)
{
    const struct decomp *d;
    uint32_t s = c - S_BASE;
    size_t n;

    if (s < S_COUNT) {
        to[0] = L_BASE + s / N_COUNT;
        to[1] = V_BASE + s % N_COUNT / T_COUNT;
        to[2] = T_BASE + s % T_COUNT;
        return to[2] == T_BASE ? 2 : 3;
    }
    d = c < 0xC0 ? NULL : decomp_of(c);
    if (!d) {
        *to = c;
        return 1;
    }
    n = decompose(d->first, to); /* the tables nest three deep */
    if (d->second & ~EXCLUDED)
        to[n++] = d->second & ~EXCLUDED;
    return n;
}

static uint32_t
compose(uint32_t a, uint32_t b)
{
    if (a - L_BASE < L_COUNT && b - V_BASE < V_COUNT)
        return S_BASE + ((a - L_BASE) * V_COUNT + (b - V_BASE)) * T_COUNT;
    if (a - S_BASE < S_COUNT && (a - S_BASE) % T_COUNT == 0 && b > T_BASE &&
        b < T_BASE + T_COUNT)
        return a + (b - T_BASE);
    if ((br_unicode_class(b) & 0x0F) != BR_UC_M)
        return 0; /* so the walk is rare */
    for (size_t i = 0; i < BR_COUNT(decomps); i++)
        if (decomps[i].first == a && decomps[i].second == b)
            return decomps[i].code;
    return 0;
}

enum { RUN_MAX = 64 }; /* marks after one base that are put in order */

static void
put(br_str *out, uint32_t c)
{
    char b[4];

    br_str_put(out, b, br_utf8_put(b, c));
}

/* Orders the marks of one base with its followers, composes, writes. */
static void
flush_run(br_str *out, uint32_t *run, size_t n)
{
    size_t kept = n ? 1 : 0;
    uint32_t last = 0;

    for (size_t i = 1; i < n; i++) /* stable insertion by combining class */
        for (size_t k = i;
             k > 0 && ccc_of(run[k]) && ccc_of(run[k - 1]) > ccc_of(run[k]);
             k--) {
            uint32_t t = run[k];

            run[k] = run[k - 1];
            run[k - 1] = t;
        }
    for (size_t i = 1; i < n; i++) {
        uint32_t ccc = ccc_of(run[i]);
        bool blocked = kept > 1 && (last == 0 || last >= ccc);
        uint32_t c = blocked || ccc_of(run[0]) ? 0 : compose(run[0], run[i]);

        if (c) {
            run[0] = c;
        } else {
            run[kept++] = run[i];
            last = ccc;
        }
    }
    for (size_t i = 0; i < kept; i++)
        put(out, run[i]);
}

/* Could c join what stands before it? */
static bool
joins(uint32_t before, uint32_t c)
{
    return ccc_of(c) || compose(before, c);
}

void
br_unicode_nfc(br_str *out, br_text text)
{
    const uint8_t *p = (const uint8_t *)text.p, *end = p + text.n;
    uint32_t run[RUN_MAX + 4], c, part[4];
    size_t n = 0;

    while (p < end) {
        size_t parts;

        p += br_utf8_next(p, end, &c);
        parts = decompose(c, part);
        for (size_t i = 0; i < parts; i++) {
            uint32_t base = n == 1 ? run[0] : 0;

            if (n && (n == RUN_MAX || !joins(base, part[i]))) {
                flush_run(out, run, n);
                n = 0;
            }
            run[n++] = part[i];
            if (n == 2 && !ccc_of(run[1])) { /* Hangul, and a few others */
                run[0] = compose(run[0], run[1]);
                n = 1;
            }
        }
    }
    flush_run(out, run, n);
}

/* Below U+0300 nothing changes; above, only what is known to be safe and is
 * frequent: kana, ideographs and syllables that stand for themselves. */
bool
br_unicode_is_nfc(br_text text)
{
    const uint8_t *p = (const uint8_t *)text.p, *end = p + text.n;
    uint32_t c;

    while (p < end) {
        if (*p < 0x80) {
            p++;
            continue;
        }
        p += br_utf8_next(p, end, &c);
        if (c == BR_REPLACEMENT)
            return false;
        if (c < 0x300 || (c >= 0x3400 && c < 0xF900 && c < 0xD800) ||
            (c >= 0x2010 && c < 0x2126))
            continue;
        return false;
    }
    return true;
}

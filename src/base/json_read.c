/* json_read.c - a pull reader: one call, one token.
 *
 *   state    after            what may come      and the state then
 *   START    nothing          value              DONE
 *   ELEM     [                value, ]           COMMA
 *   MEMBER   {                "key":, }          VALUE
 *   VALUE    "key":           value              COMMA
 *   COMMA    a value inside   , value            COMMA
 *            a container      , "key":           VALUE
 *                             ] or }             COMMA of the outer, or DONE
 *
 * The state says what the grammar allows next; a bit per level says whether
 * the container is an object, so the depth limit bounds all memory except the
 * scratch for a string with escapes. Nothing is copied without an escape.
 *
 * Cost: program files are half indentation, so blanks and string bodies are
 * passed 16 bytes at a time; bench/bench_json.c has the numbers.
 *
 * Text must be UTF-8 as RFC 3629 has it (no surrogates, no overlong forms);
 * only \u escapes can make a lone surrogate, and only in lax mode.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#ifdef __SSE2__
#    include <emmintrin.h>
#endif

enum state {
    START,
    VALUE,
    ELEM,
    MEMBER,
    COMMA,
    DONE,   /* only blanks may follow */
    FAILED, /* every call says BR_JSON_ERROR */
};

/* ---- sixteen bytes at a time ------------------------------------------ */

#ifdef __SSE2__
/* How many of the 16 bytes at p, from the first, are blanks. */
static inline unsigned
blanks16(const char *p)
{
    __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
    __m128i m =
        _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8(' ')),
                                  _mm_cmpeq_epi8(v, _mm_set1_epi8('\n'))),
                     _mm_or_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8('\t')),
                                  _mm_cmpeq_epi8(v, _mm_set1_epi8('\r'))));

    return (unsigned)__builtin_ctz(~(unsigned)_mm_movemask_epi8(m));
}

/* How many are printable ASCII other than quote and backslash. The compare is
 * signed, so one covers control characters and bytes from 0x80 up. */
static inline unsigned
plain16(const char *p)
{
    __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
    __m128i m =
        _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8('"')),
                                  _mm_cmpeq_epi8(v, _mm_set1_epi8('\\'))),
                     _mm_cmplt_epi8(v, _mm_set1_epi8(0x20)));

    return (unsigned)__builtin_ctz((unsigned)_mm_movemask_epi8(m) | 0x10000u);
}
#else
/* The same by eight bytes in one integer. Nothing depends on byte order: the
 * integer only answers "all eight?", a loop finds the place. */
#    define EACH(byte) (UINT64_C(0x0101010101010101) * (byte))

static inline uint64_t
eight(const char *p)
{
    uint64_t x;

    memcpy(&x, p, sizeof x);
    return x;
}

static inline unsigned
blanks16(const char *p)
{
    unsigned i = eight(p) == EACH(' ') ? 8 : 0;

    while (i < 16 &&
           (p[i] == ' ' || p[i] == '\n' || p[i] == '\t' || p[i] == '\r'))
        i++;
    return i;
}

/* Each term has a byte's top bit set where the byte is, in turn: from 0x80
 * up, below 0x20, a quote, a backslash. A borrow can only come from a byte
 * that was already found, so "none" is exact. */
static inline bool
plain8(const char *p)
{
    uint64_t x = eight(p);
    uint64_t m = x | (x - EACH(0x20)) | ((x ^ EACH('"')) - EACH(1)) |
                 ((x ^ EACH('\\')) - EACH(1));

    return (m & EACH(0x80)) == 0;
}

static inline unsigned
plain16(const char *p)
{
    unsigned i = plain8(p) ? 8 : 0;

    while (i < 16 && (signed char)p[i] >= 0x20 && p[i] != '"' && p[i] != '\\')
        i++;
    return i;
}
#endif

static const char *
blank_run(const char *p, const char *end)
{
    while (end - p >= 16) {
        unsigned n = blanks16(p);

        p += n;
        if (n < 16)
            return p;
    }
    while (p < end && (*p == ' ' || *p == '\n' || *p == '\t' || *p == '\r'))
        p++;
    return p;
}

static inline const char *
skip_blanks(const char *p, const char *end)
{
    return p < end && (unsigned char)*p > ' ' ? p : blank_run(p, end);
}

/* The first byte that is not a plain string byte, or end. */
static inline const char *
plain_run(const char *p, const char *end)
{
    while (end - p >= 16) {
        unsigned n = plain16(p);

        p += n;
        if (n < 16)
            return p;
    }
    while (p < end && (signed char)*p >= 0x20 && *p != '"' && *p != '\\')
        p++;
    return p;
}

/* 0 at the end: no token contains a raw NUL, so it never matches. */
static inline unsigned char
peek(const char *p, const char *end)
{
    return p < end ? (unsigned char)*p : 0;
}

static inline bool
is_digit(unsigned char c)
{
    return (unsigned)c - '0' < 10;
}

static inline const char *
digits(const char *p, const char *end)
{
    while (is_digit(peek(p, end)))
        p++;
    return p;
}

/* ---- errors ----------------------------------------------------------- */

void
br_json_where(const br_json_reader *r, int *line, int *column)
{
    const char *p;
    int l = 1, c = 1; /* texts of 2^31 lines exist; they stop counting */

    for (p = r->begin; p < r->at; p++) {
        if (*p == '\n') {
            l += l < INT_MAX;
            c = 1;
        } else if (((unsigned char)*p & 0xC0) != 0x80) {
            c += c < INT_MAX;
        }
    }
    *line = l;
    *column = c;
}

BR_PRINTF(4, 5)
static br_json_tok
fail(br_json_reader *r, const char *at, br_code code, const char *fmt, ...)
{
    char what[200];
    int line, column;
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    r->at = at;
    r->state = FAILED;
    br_json_where(r, &line, &column);
    br_fail(r->st, code, "line %d column %d: %s", line, column, what);
    return BR_JSON_ERROR;
}

/* Bytes of the UTF-8 character at p, 0 when there is none. RFC 3629: the
 * second byte's range rules out overlong forms, surrogates and > U+10FFFF. */
static int
utf8_len(const char *s, const char *end)
{
    const unsigned char *p = (const unsigned char *)s;
    unsigned lo = 0x80, hi = 0xBF;
    int n, i;

    if (s >= end || p[0] < 0x80)
        return s < end;
    if (p[0] < 0xC2 || p[0] > 0xF4)
        return 0;
    n = p[0] < 0xE0 ? 2 : p[0] < 0xF0 ? 3 : 4;
    switch (p[0]) {
    case 0xE0: lo = 0xA0; break;
    case 0xED: hi = 0x9F; break;
    case 0xF0: lo = 0x90; break;
    case 0xF4: hi = 0x8F; break;
    default: break;
    }
    if (end - s < n || p[1] < lo || p[1] > hi)
        return 0;
    for (i = 2; i < n; i++)
        if ((p[i] & 0xC0) != 0x80)
            return 0;
    return n;
}

/* Names the character at p for a message. */
static const char *
found(char out[32], const char *p, const char *end)
{
    int n = utf8_len(p, end);
    unsigned char c = peek(p, end);
    unsigned cp;

    if (p >= end)
        return "the end of the text";
    if (n == 1 && c > ' ' && c < 0x7F) {
        snprintf(out, 32, "'%c'", c);
    } else if (n > 1) {
        cp = c & (0x7Fu >> n);
        while (--n > 0)
            cp = cp << 6 | ((unsigned char)*++p & 0x3F);
        snprintf(out, 32, "U+%04X", cp);
    } else {
        snprintf(out, 32, "byte 0x%02X", c);
    }
    return out;
}

static br_json_tok
expected(br_json_reader *r, const char *at, const char *what)
{
    char buf[32];

    return fail(r, at, BR_E_FORMAT, "expected %s, found %s", what,
                found(buf, at, r->end));
}

/* ---- strings ---------------------------------------------------------- */

static int
hex4(const char *p, const char *end)
{
    int i, v = 0;

    if (end - p < 4)
        return -1;
    for (i = 0; i < 4; i++) {
        unsigned char c = (unsigned char)p[i];

        if (is_digit(c))
            v = v * 16 + (c - '0');
        else if ((c | 32) >= 'a' && (c | 32) <= 'f')
            v = v * 16 + ((c | 32) - 'a' + 10);
        else
            return -1;
    }
    return v;
}

/* A surrogate takes the three-byte form: WTF-8. */
static void
put_code_point(br_str *s, unsigned cp)
{
    char b[4];

    if (cp < 0x80) {
        br_str_putc(s, (char)cp);
    } else if (cp < 0x800) {
        b[0] = (char)(0xC0 | cp >> 6);
        b[1] = (char)(0x80 | (cp & 0x3F));
        br_str_put(s, b, 2);
    } else if (cp < 0x10000) {
        b[0] = (char)(0xE0 | cp >> 12);
        b[1] = (char)(0x80 | (cp >> 6 & 0x3F));
        b[2] = (char)(0x80 | (cp & 0x3F));
        br_str_put(s, b, 3);
    } else {
        b[0] = (char)(0xF0 | cp >> 18);
        b[1] = (char)(0x80 | (cp >> 12 & 0x3F));
        b[2] = (char)(0x80 | (cp >> 6 & 0x3F));
        b[3] = (char)(0x80 | (cp & 0x3F));
        br_str_put(s, b, 4);
    }
}

/* Decodes \uXXXX at p (the backslash), with the second half of a pair when
 * it follows. Returns the byte after it, NULL after an error. */
static const char *
unicode_escape(br_json_reader *r, const char *p)
{
    int hi = hex4(p + 2, r->end), lo = -1;
    unsigned cp;

    if (hi < 0) {
        fail(r, p, BR_E_FORMAT, "\\u needs four hexadecimal digits");
        return NULL;
    }
    cp = (unsigned)hi;
    if (hi >= 0xD800 && hi < 0xDC00 && peek(p + 6, r->end) == '\\' &&
        peek(p + 7, r->end) == 'u')
        lo = hex4(p + 8, r->end);
    if (lo >= 0xDC00 && lo < 0xE000) {
        cp = 0x10000 + ((cp - 0xD800) << 10) + ((unsigned)lo - 0xDC00);
    } else if (hi >= 0xD800 && hi < 0xE000 && !(r->flags & BR_JSON_LAX)) {
        fail(r, p, BR_E_FORMAT,
             "\\u%04x is half of a surrogate pair without the other half", hi);
        return NULL;
    }
    put_code_point(&r->scratch, cp);
    return p + (cp >= 0x10000 ? 12 : 6);
}

/* Decodes the escape at p into scratch. Returns the byte after it, or NULL. */
static const char *
escape(br_json_reader *r, const char *p)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    unsigned char c = peek(p + 1, r->end);
    const char *hit;
    char buf[32];

    if (c == 'u')
        return unicode_escape(r, p);
    hit = c ? strchr(from, c) : NULL;
    if (!hit) {
        fail(r, p, BR_E_FORMAT,
             "expected an escape (\\\" \\\\ \\/ \\b \\f \\n "
             "\\r \\t \\uXXXX), found a backslash and %s",
             found(buf, p + 1, r->end));
        return NULL;
    }
    br_str_putc(&r->scratch, to[hit - from]);
    return p + 2;
}

/* The part of a string after its plain beginning: open is the opening quote,
 * p the first byte that needs a look. */
static br_json_tok
string_rest(br_json_reader *r, const char *open, const char *p, br_json_tok tok)
{
    const char *from = open + 1; /* first byte not yet in scratch */
    bool copied = false;

    br_str_clear(&r->scratch);
    for (;; p = plain_run(p, r->end)) {
        unsigned char c = peek(p, r->end);

        if (p >= r->end) {
            return fail(r, open, BR_E_FORMAT, "string without closing quote");
        } else if (c == '"') {
            break;
        } else if (c == '\\') {
            br_str_put(&r->scratch, from, (size_t)(p - from));
            copied = true;
            p = escape(r, p);
            if (!p)
                return BR_JSON_ERROR;
            from = p;
        } else if (c < 0x20) {
            return fail(r, p, BR_E_FORMAT,
                        "control character 0x%02X in a string: write \\u%04x",
                        c, c);
        } else {
            int n = utf8_len(p, r->end);

            if (n == 0)
                return fail(r, p, BR_E_FORMAT, "byte 0x%02X is not UTF-8", c);
            p += n;
        }
    }
    r->text = (br_text){from, (size_t)(p - from)};
    if (copied) {
        br_str_put(&r->scratch, from, (size_t)(p - from));
        r->text = (br_text){r->scratch.at, r->scratch.n};
    }
    if (r->scratch.oom)
        return fail(r, open, BR_E_OOM, "out of memory for a string");
    r->p = p + 1;
    return tok;
}

static inline br_json_tok
string(br_json_reader *r, const char *p, br_json_tok tok)
{
    const char *q = plain_run(p + 1, r->end);

    if (peek(q, r->end) != '"')
        return string_rest(r, p, q, tok);
    r->text = (br_text){p + 1, (size_t)(q - p - 1)};
    r->p = q + 1;
    return tok;
}

/* ---- values ----------------------------------------------------------- */

static inline bool
in_object(const br_json_reader *r)
{
    unsigned d = (unsigned)r->depth - 1;

    return r->is_obj[d / 64] >> (d % 64) & 1;
}

static inline br_json_tok
open_container(br_json_reader *r, const char *p, bool obj)
{
    unsigned d = (unsigned)r->depth;

    if (d >= BR_JSON_MAX_DEPTH)
        return fail(r, p, BR_E_LIMIT,
                    "arrays and objects nest deeper than %d levels",
                    BR_JSON_MAX_DEPTH);
    r->is_obj[d / 64] &= ~(UINT64_C(1) << (d % 64));
    r->is_obj[d / 64] |= (uint64_t)obj << (d % 64);
    r->depth++;
    r->p = p + 1;
    r->state = obj ? MEMBER : ELEM;
    return obj ? BR_JSON_OBJ_OPEN : BR_JSON_ARR_OPEN;
}

static inline br_json_tok
close_container(br_json_reader *r, const char *p)
{
    bool obj = in_object(r);

    r->depth--;
    r->p = p + 1;
    r->state = r->depth ? COMMA : DONE;
    return obj ? BR_JSON_OBJ_CLOSE : BR_JSON_ARR_CLOSE;
}

/* No value begins at p. Words get a hint: True, None, undefined and, in
 * strict mode, NaN are what people write. */
static br_json_tok
no_value(br_json_reader *r, const char *p, const char *what)
{
    const char *q = p;

    while (q < r->end && q - p < 20 && (*q | 32) >= 'a' && (*q | 32) <= 'z')
        q++;
    if (q == p)
        return expected(r, p, what);
    return fail(r, p, BR_E_FORMAT,
                "expected %s, found '%.*s' (the words of JSON are true, false "
                "and null)",
                what, (int)(q - p), p);
}

static br_json_tok
word(br_json_reader *r, const char *p, br_text t, br_json_tok tok,
     const char *what)
{
    if ((size_t)(r->end - p) < t.n || memcmp(p, t.p, t.n) != 0)
        return no_value(r, p, what);
    r->text = (br_text){p, t.n};
    r->p = p + t.n;
    return tok;
}

/* NaN, Infinity, -Infinity: Python's, not JSON's. */
static br_json_tok
lax_word(br_json_reader *r, const char *p, br_text t, const char *what)
{
    if (!(r->flags & BR_JSON_LAX))
        return no_value(r, p, what);
    return word(r, p, t, BR_JSON_FLOAT, what);
}

static inline br_json_tok
number(br_json_reader *r, const char *from)
{
    const char *end = r->end, *p = from + (*from == '-');
    br_json_tok tok = BR_JSON_INT;
    unsigned char c = peek(p, end);

    if (!is_digit(c))
        return c == 'I' && (r->flags & BR_JSON_LAX)
                   ? word(r, from, BR_TEXT("-Infinity"), BR_JSON_FLOAT,
                          "a number or -Infinity")
                   : expected(r, p, "a digit after '-'");
    p++;
    if (c != '0')
        p = digits(p, end);
    else if (is_digit(peek(p, end)))
        return fail(r, from, BR_E_FORMAT, "a number has no leading zeros");
    if (peek(p, end) == '.') {
        if (!is_digit(peek(++p, end)))
            return expected(r, p, "a digit after '.'");
        p = digits(p, end);
        tok = BR_JSON_FLOAT;
    }
    if ((peek(p, end) | 32) == 'e') {
        p++;
        if (peek(p, end) == '+' || peek(p, end) == '-')
            p++;
        if (!is_digit(peek(p, end)))
            return expected(r, p, "a digit in the exponent");
        p = digits(p, end);
        tok = BR_JSON_FLOAT;
    }
    r->text = (br_text){from, (size_t)(p - from)};
    r->p = p;
    return tok;
}

static inline br_json_tok
value(br_json_reader *r, const char *p, const char *what)
{
    r->at = p;
    r->state = r->depth ? COMMA : DONE;
    switch (peek(p, r->end)) {
    case '"': return string(r, p, BR_JSON_STRING);
    case '{': return open_container(r, p, true);
    case '[': return open_container(r, p, false);
    case '-':
    case '0':
    case '1':
    case '2':
    case '3':
    case '4':
    case '5':
    case '6':
    case '7':
    case '8':
    case '9': return number(r, p);
    case 't': return word(r, p, BR_TEXT("true"), BR_JSON_TRUE, what);
    case 'f': return word(r, p, BR_TEXT("false"), BR_JSON_FALSE, what);
    case 'n': return word(r, p, BR_TEXT("null"), BR_JSON_NULL, what);
    case 'N': return lax_word(r, p, BR_TEXT("NaN"), what);
    case 'I': return lax_word(r, p, BR_TEXT("Infinity"), what);
    default: return no_value(r, p, what);
    }
}

/* A key and its colon. */
static inline br_json_tok
key(br_json_reader *r, const char *p, const char *what)
{
    const char *q;

    r->at = p;
    if (peek(p, r->end) != '"')
        return expected(r, p, what);
    if (string(r, p, BR_JSON_KEY) == BR_JSON_ERROR)
        return BR_JSON_ERROR;
    q = skip_blanks(r->p, r->end);
    if (peek(q, r->end) != ':')
        return expected(r, q, "':' after the key");
    r->p = q + 1;
    r->state = VALUE;
    return BR_JSON_KEY;
}

/* Inside a container, after a value: the end of it or one more. */
static inline br_json_tok
more(br_json_reader *r, const char *p)
{
    bool obj = in_object(r);
    unsigned char c = peek(p, r->end);

    r->at = p;
    if (c == (obj ? '}' : ']'))
        return close_container(r, p);
    if (c != ',')
        return expected(r, p, obj ? "',' or '}'" : "',' or ']'");
    p = skip_blanks(p + 1, r->end);
    return obj ? key(r, p, "a key in double quotes after ','")
               : value(r, p, "a value after ','");
}

br_json_tok
br_json_next(br_json_reader *r)
{
    const char *p = skip_blanks(r->p, r->end);

    switch ((enum state)r->state) {
    case COMMA: return more(r, p);
    case VALUE: return value(r, p, "a value after ':'");
    case ELEM:
        r->at = p;
        return peek(p, r->end) == ']' ? close_container(r, p)
                                      : value(r, p, "a value or ']'");
    case MEMBER:
        r->at = p;
        return peek(p, r->end) == '}'
                   ? close_container(r, p)
                   : key(r, p, "a key in double quotes or '}'");
    case START:
        if (r->end - p >= 3 && memcmp(p, "\xEF\xBB\xBF", 3) == 0)
            return fail(r, p, BR_E_FORMAT,
                        "expected a value, found a byte-order mark");
        return value(r, p, "a value");
    case DONE:
        r->at = p;
        return p >= r->end ? BR_JSON_END
                           : expected(r, p, "nothing after the document");
    case FAILED: return BR_JSON_ERROR;
    }
    br_unreachable("every state returns");
}

void
br_json_open(br_json_reader *r, const char *p, size_t n, int flags,
             br_status *st)
{
    /* An empty input may have no address; pointers are compared below. */
    if (!p) {
        br_assert(n == 0 && "bytes need an address");
        p = "";
    }
    *r = (br_json_reader){.begin = p,
                          .p = p,
                          .end = p + n,
                          .at = p,
                          .flags = flags,
                          .state = START,
                          .st = st};
}

void
br_json_close(br_json_reader *r)
{
    br_str_fini(&r->scratch);
    r->text = (br_text){0};
}

br_code
br_json_skip(br_json_reader *r)
{
    int depth = r->depth;
    br_json_tok tok = br_json_next(r);

    if (tok == BR_JSON_KEY || tok == BR_JSON_OBJ_CLOSE ||
        tok == BR_JSON_ARR_CLOSE || tok == BR_JSON_END)
        return br_fail(r->st, BR_E_INTERNAL, "no value to skip here");
    while (tok != BR_JSON_ERROR && r->depth > depth)
        tok = br_json_next(r);
    return tok == BR_JSON_ERROR ? (r->st ? r->st->code : BR_E_FORMAT) : BR_OK;
}

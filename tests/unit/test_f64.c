/* test_f64.c - numbers and their texts, against tables from Python and against
 * the definition.
 *
 * tests/data/json/f64_repr.txt: bits and repr(); f64_read.txt: bits of
 * float(text) and text, most of them on or beside the point halfway between
 * two doubles.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/bits.h"
#include "base/json.h"
#include "t.h"

#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

T_ONE_THREAD();

static uint64_t
bits_of(double v)
{
    uint64_t b;

    memcpy(&b, &v, sizeof b);
    return b;
}

static double
with_bits(uint64_t b)
{
    double v;

    memcpy(&v, &b, sizeof v);
    return v;
}

static const char *
repr(double v)
{
    char out[32];
    size_t n = br_f64_repr(out, v);

    ck_assert_uint_eq(strlen(out), n);
    return t_printf("%s", out);
}

/* Calls fn(bits, text) for each line of a table; returns how many. */
static int
each_row(const char *path, void (*fn)(uint64_t bits, char *text))
{
    char *p = t_read(t_repo(path), NULL), *line = NULL;
    int n = 0;

    while ((line = strsep(&p, "\n")) && *line) {
        char *end;
        uint64_t bits = strtoull(line, &end, 16);

        ck_assert_int_eq(end - line, 16);
        fn(bits, end + 1);
        n++;
    }
    return n;
}

/* ---- integers ------------------------------------------------------------ */

TEST(f64_to_i64_takes_what_fits)
{
    static const struct {
        const char *text;
        bool ok;
        int64_t want;
    } rows[] = {
        {"0", true, 0},
        {"-0", true, 0},
        {"7", true, 7},
        {"-1200", true, -1200},
        {"9223372036854775807", true, INT64_MAX},
        {"-9223372036854775808", true, INT64_MIN},
        {"9223372036854775808", false, 0},
        {"-9223372036854775809", false, 0},
        {"92233720368547758070", false, 0},
        {"18446744073709551617", false, 0},
        {"", false, 0},
        {"-", false, 0},
        {"+1", false, 0},
        {"01", false, 0},
        {"-01", false, 0},
        {"1.0", false, 0},
        {"1e2", false, 0},
        {" 1", false, 0},
        {"1 ", false, 0},
        {"12a", false, 0},
    };

    for (size_t i = 0; i < BR_COUNT(rows); i++) {
        int64_t v = 0;

        ck_assert_int_eq(br_json_to_i64(br_text_z(rows[i].text), &v),
                         rows[i].ok);
        ck_assert_int_eq(v, rows[i].want);
    }
}

/* ---- reading ------------------------------------------------------------- */

static void
reads(uint64_t bits, char *text)
{
    size_t n = strlen(text);
    char *slice = t_keep(malloc(n)); /* no NUL: the text is a slice */
    double v = 0;

    memcpy(slice, text, n);
    if (!br_json_to_f64((br_text){slice, n}, &v) || bits_of(v) != bits)
        ck_abort_msg("%s: %016" PRIx64 ", not %016" PRIx64, text, bits_of(v),
                     bits);
}

TEST(f64_reads_as_python_does)
{
    ck_assert_int_gt(each_row("tests/data/json/f64_read.txt", reads), 200);
    ck_assert_int_gt(each_row("tests/data/json/f64_repr.txt", reads), 400);
}

TEST(f64_refuses_what_is_no_number)
{
    static const char *const bad[] = {
        "",      "-",    ".",   "1.",  ".5",   "1.e5",     "1e",      "1e+",
        "01",    "-01",  "00",  "+1",  " 1",   "1 ",       "1x",      "0x10",
        "1,5",   "1e5.", "inf", "nan", "-NaN", "infinity", "Infinit", "--1",
        "1e--5", "e5",   "-e5", "1_0", "1f",   "NaN ",     "1.5.5",   "0.-5",
    };
    double v;

    for (size_t i = 0; i < BR_COUNT(bad); i++)
        if (br_json_to_f64(br_text_z(bad[i]), &v))
            ck_abort_msg("took '%s'", bad[i]);
    ck_assert(!br_json_to_f64((br_text){"1\0", 2}, &v));
    ck_assert(br_json_to_f64(BR_TEXT("NaN"), &v) && isnan(v));
    ck_assert(br_json_to_f64(BR_TEXT("Infinity"), &v) && isinf(v) && v > 0);
    ck_assert(br_json_to_f64(BR_TEXT("-Infinity"), &v) && isinf(v) && v < 0);
}

/* Random decimals against the C library (the tests run in the "C" locale). */
TEST(f64_reads_as_strtod_does)
{
    uint64_t seed = 7;

    for (int i = 0; i < 200000; i++) {
        uint64_t w = t_rand(&seed) >> (t_rand(&seed) % 64);
        int e = (int)(t_rand(&seed) % 700) - 360, digits;
        char text[80];
        double v;

        if (i % 2) /* near 1, where products are exact and ties are */
            e = e % 30;
        digits = snprintf(text, sizeof text, "%" PRIu64, w);
        if (i % 3 == 0)
            digits += snprintf(text + digits, 40, ".%0*" PRIu64, i % 25 + 1,
                               t_rand(&seed) >> (t_rand(&seed) % 64));
        snprintf(text + digits, 12, "e%d", e);
        if (!br_json_to_f64(br_text_z(text), &v) ||
            bits_of(v) != bits_of(strtod(text, NULL)))
            ck_abort_msg("%s: %.17g", text, v);
    }
}

/* ---- writing ------------------------------------------------------------- */

static void
writes(uint64_t bits, char *text)
{
    char out[32];
    size_t n = br_f64_repr(out, with_bits(bits));

    if (n != strlen(text) || memcmp(out, text, n + 1) != 0)
        ck_abort_msg("%016" PRIx64 ": %s, not %s", bits, out, text);
}

/* What people write, and hexadecimal: as strtod() of the "C" locale. */
TEST(f64_read_is_strtod_without_spaces)
{
    static const char *const texts[] = {
        "1.5", "+3.", ".5", "-.5e2", "007", "2e3", "1e400", "-1e-400", "inf",
        "-Infinity", "+INF", "nan", "-NaN", "0x1.8p3", "0X.8P-1", "-0x1p-1074",
        "0x1.fffffffffffff8p0", "0x1.fffffffffffff7p0", "0x10", "0x1p99999999",
        "0x1p-99999999999999999999", "0x0p0", "-0x0.0p+0", "0x1p-1075",
        "0x1.8p-1075", "0x.000000000000000000000000001p100", "0x3p-1075",
        "0x123456789abcdef01.8p-60", "0x1.00000000000008000001p0",
        "0x1.0000000000000800000p0", "0xfffffffffffff800p0",
        "0xfffffffffffffc00p0", "0x1p-1076", "0x1.1p-1076",
        /* none */
        "", "+", "-", ".", "e5", "1e", "1e+", "1.5x", " 1", "1 ", "0x", "0x.p1",
        "0x1p", "0x1p+", "0x1q", "0x1.2.3", "1,5", "infi", "nano", "--1", "+-1",
        "0b1", "1_0"};
    double v, want;
    char *end;

    for (size_t i = 0; i < BR_COUNT(texts); i++) {
        const char *t = texts[i];
        bool ok = br_f64_read(br_text_z(t), &v);

        want = strtod(t, &end);
        ck_assert_msg(ok == (*t > ' ' && *end == 0), "'%s' %d", t, ok);
        ck_assert_msg(!ok || bits_of(v) == bits_of(want), "%s: %a, not %a", t,
                      v, want);
    }
}

TEST(f64_hexadecimal_is_the_c_librarys)
{
    uint64_t seed = 11;

    for (int i = 0; i < 200000; i++) {
        uint64_t u = t_rand(&seed), w = t_rand(&seed);
        char text[40], out[32];
        double v, back;
        size_t n;

        if (i % 3 == 0)
            u &= ~0ull << (w % 53); /* few digits */
        if (i % 4 == 0)
            u &= ~(0x7ffull << 52); /* subnormal */
        v = br_f64_of(u);
        snprintf(text, sizeof text, "%a", v);
        n = br_f64_hex(out, v);
        if (isfinite(v) && (n != strlen(text) || memcmp(out, text, n) != 0))
            ck_abort_msg("%s, not %s", out, text);
        ck_assert(br_f64_read((br_text){out, n}, &back));
        ck_assert(isnan(v) ? isnan(back) : bits_of(back) == u);
        /* More digits than fit, at any place. */
        snprintf(text, sizeof text, "0x%" PRIx64 ".%" PRIx64 "p%d", u, w,
                 (int)(w % 2400) - 1300);
        ck_assert(br_f64_read(br_text_z(text), &back));
        ck_assert_msg(bits_of(back) == bits_of(strtod(text, NULL)), "%s: %a",
                      text, back);
    }
}

/* In a program that has another point. */
TEST(f64_asks_no_locale)
{
    static const char source[] = "LC_NUMERIC\ndecimal_point \",\"\n"
                                 "thousands_sep \".\"\ngrouping 3;3\n"
                                 "END LC_NUMERIC\n";
    const char *dir = t_tmpdir(), *src = t_printf("%s/src", dir);
    const char *to = t_printf("%s/comma", dir);
    char out[40] = "";
    double v = 0;
    t_proc r;

    if (!t_have_program("localedef"))
        t_skip("no localedef");
    t_write(src, source, strlen(source));
    t_exec(&r, (const char *[]){"localedef", "-c", "-i", src, to, NULL}, NULL,
           0);
    ck_assert_int_eq(setenv("LOCPATH", dir, 1), 0);
    if (!setlocale(LC_ALL, "comma"))
        t_skip("a locale could not be made");
    snprintf(out, sizeof out, "%.1f", 1.5);
    ck_assert_str_eq(out, "1,5");
    ck_assert(br_f64_read(BR_TEXT("1.5"), &v) && v == 1.5);
    ck_assert(br_f64_read(BR_TEXT("0x1.8p0"), &v) && v == 1.5);
    ck_assert(!br_f64_read(BR_TEXT("1,5"), &v));
    ck_assert(br_f64_round(2.675, 2) == 2.67 &&
              br_f64_round(-0.125, 2) == -.12);
    out[br_f64_hex(out, 1.5)] = 0;
    ck_assert_str_eq(out, "0x1.8p+0");
    (void)setlocale(LC_ALL, "C");
}

TEST(f64_repr_is_pythons)
{
    ck_assert_int_gt(each_row("tests/data/json/f64_repr.txt", writes), 400);
    ck_assert_str_eq(repr((double)NAN), "nan");
    ck_assert_str_eq(repr(-(double)NAN), "nan");
    ck_assert_str_eq(repr((double)INFINITY), "inf");
    ck_assert_str_eq(repr(-(double)INFINITY), "-inf");
    /* the longest there is: 24 characters */
    ck_assert_str_eq(repr(-1.7976931348623157e308), "-1.7976931348623157e+308");
}

/* Significant digits of a repr, without zeros at either end. */
static int
digits_in(const char *text)
{
    const char *p;
    int n = 0, kept = 0;

    for (p = text; *p && *p != 'e'; p++) {
        if (*p < '0' || *p > '9' || (n == 0 && *p == '0'))
            continue;
        n++;
        if (*p != '0')
            kept = n;
    }
    return kept;
}

/* By definition: it reads back equal, and no decimal with one digit less
 * does. The two candidates with fewer digits are the neighbours of v on that
 * coarser grid: what %e rounds to, and the next one either way. */
TEST(f64_repr_is_the_shortest_that_reads_back)
{
    uint64_t seed = 3;

    for (int i = 0; i < 50000; i++) {
        uint64_t bits = t_rand(&seed) >> 1;
        char out[32], less[40];
        int digits, exp10;
        double v;

        if (i % 4 == 0)
            bits &= UINT64_C(0x7FF0000000000000); /* powers of two */
        if (i % 4 == 1)
            bits = bits_of((double)(t_rand(&seed) % 100000) / 64);
        v = with_bits(bits);
        if (!isfinite(v) || v == 0)
            continue;
        br_f64_repr(out, v);
        if (strtod(out, NULL) != v)
            ck_abort_msg("%s does not read back", out);
        digits = digits_in(out);
        if (digits == 1)
            continue;
        snprintf(less, sizeof less, "%.*e", digits - 2, v);
        exp10 = (int)strtol(strchr(less, 'e') + 1, NULL, 10);
        for (int step = -1; step <= 1; step++) {
            double grid = pow(10, digits - 2);
            int64_t whole =
                (int64_t)llround(strtod(less, NULL) / pow(10, exp10) * grid);
            char other[40];

            snprintf(other, sizeof other, "%" PRId64 "e%d", whole + step,
                     exp10 - (digits - 2));
            if (strtod(other, NULL) == v)
                ck_abort_msg("%s is shorter than %s", other, out);
        }
    }
}

TEST(f64_texts_come_back_bit_for_bit)
{
    uint64_t seed = 11;

    for (int i = 0; i < 300000; i++) {
        uint64_t bits = t_rand(&seed);
        char out[32];
        double v;
        size_t n;

        if (!isfinite(with_bits(bits)))
            continue;
        n = br_f64_repr(out, with_bits(bits));
        if (n > 24 || !br_json_to_f64((br_text){out, n}, &v) ||
            bits_of(v) != bits)
            ck_abort_msg("%016" PRIx64 ": %s", bits, out);
    }
}

/* ---- the table of powers ------------------------------------------------- */

typedef struct wide {
    uint32_t limb[48];
} wide;

static void
wide_mul(wide *w, uint32_t by)
{
    uint64_t carry = 0;

    for (size_t i = 0; i < BR_COUNT(w->limb); i++) {
        carry += (uint64_t)w->limb[i] * by;
        w->limb[i] = (uint32_t)carry;
        carry >>= 32;
    }
    ck_assert_uint_eq(carry, 0);
}

static int
wide_bits(const wide *w)
{
    int i = BR_COUNT(w->limb) - 1;

    while (i > 0 && w->limb[i] == 0)
        i--;
    return 32 * i + (w->limb[i] ? 32 - __builtin_clz(w->limb[i]) : 0);
}

static wide
wide_from(uint64_t hi, uint64_t lo, unsigned add)
{
    wide w = {0};

    w.limb[0] = (uint32_t)lo;
    w.limb[1] = (uint32_t)(lo >> 32);
    w.limb[2] = (uint32_t)hi;
    w.limb[3] = (uint32_t)(hi >> 32);
    for (int i = 0; add; i++)
        add = ++w.limb[i] == 0;
    return w;
}

/* Upwards a row is the top 128 bits of 5^q. Downwards it is the largest T with
 * T * 5^-q <= 2^s: so one more takes the product past a power of two. */
TEST(f64_powers_of_ten_are_exact)
{
    static const uint64_t rows[][2] = {
#define X(hi, lo) {hi, lo},
#include "base/pow10.def"
#undef X
    };
    enum { FIRST = -342 };
    wide up = {{1}};

    ck_assert_uint_eq(BR_COUNT(rows), 667);
    for (int q = 0; q + 342 < (int)BR_COUNT(rows); q++) {
        const uint64_t *row = rows[q - FIRST];
        int n = wide_bits(&up);

        for (int i = 0; i < 128; i++) {
            int at = n - 128 + i; /* bit i of the row, from the lowest */
            bool want = at >= 0 && (up.limb[at / 32] >> (at % 32) & 1);

            if ((row[i < 64] >> (i % 64) & 1) != want)
                ck_abort_msg("10^%d, bit %d", q, i);
        }
        wide_mul(&up, 5);
    }
    for (int q = 1; q <= -FIRST; q++) {
        const uint64_t *row = rows[-q - FIRST];
        wide at = wide_from(row[0], row[1], 0);
        wide past = wide_from(row[0], row[1], 1);

        for (int i = 0; i < q; i++) {
            wide_mul(&at, 5);
            wide_mul(&past, 5);
        }
        if (!(row[0] >> 63) || wide_bits(&at) + 1 != wide_bits(&past))
            ck_abort_msg("10^-%d", q);
    }
}

/* test_tok_pre.c - where the pre-tokenizers cut.
 * SPDX-License-Identifier: Apache-2.0 */
#include "t.h"

#include "model/tok_int.h"
#include "model/unicode.h"

#include <stdlib.h>
#include <string.h>

T_ONE_THREAD();

static bool
note(void *ctx, const uint8_t *p, size_t n)
{
    br_str *s = ctx;

    if (s->n)
        br_str_putc(s, '|');
    for (size_t i = 0; i < n; i++) {
        if (p[i] == '\n')
            br_str_puts(s, "\\n");
        else if (p[i] == '\r')
            br_str_puts(s, "\\r");
        else if (p[i] == '\t')
            br_str_puts(s, "\\t");
        else
            br_str_putc(s, (char)p[i]);
    }
    return true;
}

static const char *
cut(const br_tok *t, br_text text)
{
    br_str s = {0};
    br_code code;
    const char *kept;

    ck_assert(br_pre_split(t, text, note, &s, &code));
    ck_assert_int_eq(code, BR_OK);
    kept = t_printf("%s", br_str_z(&s));
    br_str_fini(&s);
    return kept;
}

static br_tok *
bare(void)
{
    br_status st = {0};
    br_tok *t;

    t_ok(br_tok_new(&t, &st), &st);
    return t;
}

static const char *const texts[] = {
    "It's 12345 o'clock, I'LL say!",
    "  two  spaces\tand\n\n  lines \r\n",
    "caf\xC3\xA9 na\xC3\xAFve \xC3\x89TAT \xC3\x89tat HTMLParser iPhone",
    "\xE4\xB8\xAD\xE6\x96\x87\xE3\x82\xAB\xE3\x83\x8A 2024\xE5\xB9\xB4 "
    "\xED\x95\x9C\xEA\xB5\xAD\xEC\x96\xB4",
    "a_b.c();//x\n\n#!/bin/sh $5.00 <|end|>",
    "e\xCC\x81u\xCC\x88 \xE0\xA4\xB9\xE0\xA4\xBF "
    "\xD9\xA1\xD9\xA2\xD9\xA3\xD9\xA4",
    "\xF0\x9F\x98\x80\xF0\x9F\x91\x8D\xF0\x9F\x8F\xBD ok \xC2\xA0"
    "\xE3\x80\x80x\xE2\x80\xA6",
    "x=-1.5e10;y:=!z&&w||v",
};

/* Every name of pre.def on a few texts; names that cut alike share a block. */
TEST(tok_pre_cuts_as_before)
{
    br_str all = {0}, names = {0};
    const char *last = NULL;

    for (size_t i = 0;; i++) {
        const char *name = br_tok_pre_at(i);
        br_str s = {0};
        br_tok *t = bare();
        br_status st = {0};

        if (name) {
            t_ok(br_tok_set_pre(t, br_text_z(name), &st), &st);
            for (size_t k = 0; k < BR_COUNT(texts); k++)
                br_str_printf(&s, "%s\n", cut(t, br_text_z(texts[k])));
        }
        if (last && (!name || strcmp(last, br_str_z(&s)) != 0)) {
            br_str_printf(&all, "%s\n%s\n", br_str_z(&names), last);
            br_str_clear(&names);
        }
        br_str_printf(&names, "%s%s", names.n ? " " : "", name ? name : "");
        last = t_printf("%s", br_str_z(&s));
        br_str_fini(&s);
        br_tok_free(t);
        if (!name)
            break;
    }
    t_golden("tests/golden/model/pre.txt", br_str_z(&all));
    br_str_fini(&all);
    br_str_fini(&names);
}

/* Pieces that are likely to meet badly: every class, both cases, blanks. */
static const char *const bits[] = {
    "a",
    "b",
    "Z",
    "HT",
    "xyz",
    " ",
    "  ",
    "\n",
    "\r\n",
    "\t",
    "1",
    "23",
    "4567",
    "'s",
    "'",
    "'LL",
    "'re",
    "!",
    "?!",
    "/",
    "$",
    "_",
    "\xC3\xA9",
    "\xC3\x89",
    "\xC7\x85",
    "\xCA\xB0",
    "\xE4\xB8\xAD",
    "\xE3\x81\x82",
    "\xCC\x81",
    "\xE0\xA4\xBF",
    "\xC2\xA0",
    "\xE3\x80\x80",
    "\xE2\x82\xAC",
    "\xD9\xA3",
    "\xE2\x85\xA7",
    "\xE2\x80\xA6",
    "\xF0\x9F\x98\x80",
    "\xC2\xAD",
    "\x01",
    "\xED\x95\x9C",
};

static const char *const patterns[] = {
#define REGEX(pass, text) text,
#include "model/pre.def"
#undef REGEX
};

TEST(tok_pre_scanners_cut_as_their_patterns)
{
    uint64_t seed = 4;
    br_status st = {0};

    for (size_t k = 0; k < BR_COUNT(patterns); k++) {
        br_text text = br_text_z(patterns[k]);
        br_tok *a = bare(), *b = bare();

        a->pass[0].scan = br_pre_of_regex(text);
        ck_assert_ptr_nonnull(a->pass[0].scan);
        a->n_pass = b->n_pass = 1;
        if (br_tok_regex_new(&b->pass[0].regex, text, &st) ==
            BR_E_UNSUPPORTED) {
            b->n_pass = 0;
            br_tok_free(a);
            br_tok_free(b);
            t_skip("built without PCRE2");
        }
        t_ok(st.code, &st);
        for (int round = 0; round < 500; round++) {
            br_str s = {0};
            const char *x, *y;

            for (uint64_t n = 1 + t_rand(&seed) % 9; n; n--)
                br_str_puts(&s, bits[t_rand(&seed) % BR_COUNT(bits)]);
            x = cut(a, (br_text){s.at, s.n});
            y = cut(b, (br_text){s.at, s.n});
            if (strcmp(x, y) != 0)
                ck_abort_msg("%s\n scanner %s\n pattern %s", patterns[k], x, y);
            br_str_fini(&s);
        }
        br_tok_free(a);
        br_tok_free(b);
    }
}

static bool
count(void *ctx, const uint8_t *p, size_t n)
{
    (void)p;
    *(size_t *)ctx += n;
    return true;
}

/* A scanner that looks ahead from every character would take hours here. */
TEST_WITHIN(tok_pre_every_scanner_is_linear_and_loses_nothing, 80)
{
    enum { N = 100000 };
    static const char *const fills[] = {
        " ", "a", "A", "1", "\n", "!", "'", "\xC3\x89", "\xCC\x81", "\t "};
    char *text = t_keep(malloc(N));

    for (size_t i = 0; br_tok_pre_at(i); i++) {
        br_tok *t = bare();
        br_status st = {0};

        t_ok(br_tok_set_pre(t, br_text_z(br_tok_pre_at(i)), &st), &st);
        for (size_t k = 0; k < BR_COUNT(fills); k++) {
            size_t n = strlen(fills[k]), sum = 0;
            br_code code;

            for (size_t at = 0; at + n < N; at += n)
                memcpy(text + at, fills[k], n);
            text[N - 1] = 'x';
            text[N - 2] = text[N - 3] = ' ';
            ck_assert(br_pre_split(t, (br_text){text, N}, count, &sum, &code));
            ck_assert_uint_eq(sum, N);
        }
        br_tok_free(t);
    }
}

/* ---- the Unicode table ------------------------------------------------- */

TEST(unicode_table_is_what_its_generator_writes)
{
    t_proc p;
    const char *exe = t_printf("%s/gen", t_tmpdir()), *table;

    if (!t_have_program("cc"))
        t_skip("no cc here");
    t_exec(&p,
           (const char *[]){"test", "-f", "/usr/share/unicode/UnicodeData.txt",
                            NULL},
           NULL, 0);
    if (p.exit != 0)
        t_skip("no package unicode-data here");
    t_exec(
        &p,
        (const char *[]){"cc", "-o", exe, t_repo("tools/gen_unicode.c"), NULL},
        NULL, 0);
    ck_assert_msg(p.exit == 0, "%s", p.err);
    t_exec(&p, (const char *[]){exe, "/usr/share/unicode", NULL}, NULL, 0);
    ck_assert_int_eq(p.exit, 0);
    table = t_read(t_repo("src/model/unicode_table.def"), NULL);
    ck_assert_msg(strcmp(p.out, table) == 0,
                  "src/model/unicode_table.def is not what it would write");
}

TEST(unicode_classes_and_cases)
{
    static const struct {
        uint32_t c, cls, lower, base;
    } want[] = {
        {'A', BR_UC_LU, 'a', 'A'},
        {' ', BR_UC_Z | BR_UC_SPACE, ' ', ' '},
        {'\n', BR_UC_OTHER | BR_UC_SPACE, '\n', '\n'},
        {0x85, BR_UC_OTHER | BR_UC_SPACE, 0x85, 0x85},
        {0xE9, BR_UC_LL, 0xE9, 'e'},
        {0x1EA4, BR_UC_LU, 0x1EA5, 'A'},
        {0x130, BR_UC_LU, 'i', 'I'},
        {0x1C5, BR_UC_LT, 0x1C6, 0x1C5},
        {0x301, BR_UC_M, 0x301, 0x301},
        {0xAC01, BR_UC_LO, 0xAC01, 0x1100},
        {0x4E2D, BR_UC_LO, 0x4E2D, 0x4E2D},
        {0x10400, BR_UC_LU, 0x10428, 0x10400},
        {0x1F600, BR_UC_S, 0x1F600, 0x1F600},
        {0x378, BR_UC_NONE, 0x378, 0x378},
        {0x110000, BR_UC_NONE, 0x110000, 0x110000},
    };

    for (size_t i = 0; i < BR_COUNT(want); i++) {
        ck_assert_uint_eq(br_unicode_class(want[i].c), want[i].cls);
        ck_assert_uint_eq(br_unicode_lower(want[i].c), want[i].lower);
        ck_assert_uint_eq(br_unicode_base(want[i].c), want[i].base);
    }
}

/* Of what is the lower case of some letter, the upper case leads back. */
TEST(unicode_upper_case)
{
    static const uint32_t want[][2] = {
        {'a', 'A'},         {'A', 'A'},           {0xE9, 0xC9},
        {0xDF, 0xDF},       {0xB5, 0x39C},        {0xFF, 0x178},
        {0x131, 'I'},       {0x17F, 'S'},         {0x1C6, 0x1C4},
        {0x1C5, 0x1C4},     {0x3C2, 0x3A3},       {0x43F, 0x41F},
        {0x10428, 0x10400}, {0x110000, 0x110000},
    };

    for (size_t i = 0; i < BR_COUNT(want); i++)
        ck_assert_uint_eq(br_unicode_upper(want[i][0]), want[i][1]);
    for (uint32_t c = 0; c < BR_UNICODE_END; c++) {
        uint32_t low = br_unicode_lower(c);
        if (low != c)
            ck_assert_uint_eq(br_unicode_lower(br_unicode_upper(low)), low);
    }
}

static const char *
nfc(const char *z)
{
    br_str s = {0};
    const char *kept;

    br_unicode_nfc(&s, br_text_z(z));
    kept = t_printf("%s", br_str_z(&s));
    br_str_fini(&s);
    return kept;
}

TEST(unicode_nfc)
{
    ck_assert_str_eq(nfc("e\xCC\x81"), "\xC3\xA9");
    ck_assert_str_eq(nfc("\xC3\xA9"), "\xC3\xA9");
    /* marks are put in order: dot below before circumflex */
    ck_assert_str_eq(nfc("a\xCC\x82\xCC\xA3"), "\xE1\xBA\xAD");
    ck_assert_str_eq(nfc("\xE1\x84\x80\xE1\x85\xA1\xE1\x86\xA8"),
                     "\xEA\xB0\x81");
    ck_assert_str_eq(nfc("\xE2\x84\xAB"), "\xC3\x85"); /* Angstrom */
    ck_assert_str_eq(nfc("\xE0\xA5\x98"), "\xE0\xA4\x95\xE0\xA4\xBC");
    ck_assert_str_eq(nfc("x\xFF"), "x\xEF\xBF\xBD");
    ck_assert(br_unicode_is_nfc(BR_TEXT("plain \xC3\xA9\xE4\xB8\xAD")));
    ck_assert(!br_unicode_is_nfc(BR_TEXT("e\xCC\x81")));
}

/* Unicode's own test: what must come out, for 19,000 strings. */
TEST_WITHIN(unicode_nfc_passes_the_normalization_test, 60)
{
    t_proc p;
    size_t n = 0, bad = 0;
    char *line, *rest = NULL;

    if (!t_have_program("bzip2"))
        t_skip("no bzip2 here");
    t_exec(&p,
           (const char *[]){"bzip2", "-dc",
                            "/usr/share/unicode/NormalizationTest.txt.bz2",
                            NULL},
           NULL, 0);
    if (p.exit != 0)
        t_skip("no package unicode-data here");
    for (line = strtok_r(p.out, "\n", &rest); line;
         line = strtok_r(NULL, "\n", &rest)) {
        br_str col[2] = {{0}, {0}}, out = {0};
        char *q = line, b[4];

        if (*line == '#' || *line == '@')
            continue;
        for (int k = 0; k < 2; k++, q++)
            while (*q && *q != ';') {
                br_str_put(&col[k], b,
                           br_utf8_put(b, (uint32_t)strtoul(q, &q, 16)));
                q += *q == ' ';
            }
        br_unicode_nfc(&out, (br_text){col[0].at, col[0].n});
        n++;
        bad += out.n != col[1].n ||
               memcmp(br_str_z(&out), br_str_z(&col[1]), out.n) != 0;
        bad += br_unicode_is_nfc((br_text){col[0].at, col[0].n}) &&
               !br_text_eq((br_text){col[0].at, col[0].n},
                           (br_text){col[1].at, col[1].n});
        br_str_fini(&col[0]);
        br_str_fini(&col[1]);
        br_str_fini(&out);
    }
    ck_assert_uint_gt(n, 18000);
    ck_assert_msg(bad == 0, "%zu of %zu wrong", bad, n);
}

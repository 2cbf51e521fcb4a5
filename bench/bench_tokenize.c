/* bench_tokenize.c - how fast text becomes ids, kind and hostile text.
 *
 *   bench_tokenize [MODEL [TEXT]]   a GGUF file or tokenizer.json, a text file;
 *                                   without: a made-up vocabulary of 150,000
 *                                   tokens and 10 MB of a made-up language
 *
 * The language: 60,000 words of one to five syllables, drawn by Zipf's law,
 * capitals, numbers and marks between them, and three words in a hundred that
 * are in no vocabulary. One core, and the time that it spent here, so that a
 * busy machine tells the truth too; the best of three runs, each with an empty
 * word cache. Prints the machine.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "base/map.h"
#include "base/rng.h"
#include "kit.h"
#include "model/tokenizer.h"
#include "model/unicode.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VOCAB = 150000, WORDS = 60000, TEXT_BYTES = 10 << 20, REPEATS = 3 };

static void
die(const char *what)
{
    fprintf(stderr, "bench_tokenize: %s\n", what);
    exit(1);
}

/* ---- a language -------------------------------------------------------- */

static char words[WORDS][32];

static void
make_word(br_rng *r, char *to)
{
    static const char *const on[] = {
        "b", "c", "d", "f", "g",  "h",  "l",  "m",  "n", "p",  "r",
        "s", "t", "v", "w", "st", "tr", "ch", "th", "",  "pl", "qu"};
    static const char *const in[] = {"a", "e", "i", "o", "u", "ea", "ou", "é"};
    static const char *const off[] = {"", "", "n", "r", "s", "t", "ng", "l"};
    uint32_t syllables =
        1 + br_rng_below(r, 2) + br_rng_below(r, 2) + br_rng_below(r, 3) / 2;
    char *p = to;

    for (uint32_t i = 0; i < syllables; i++)
        p += snprintf(p, (size_t)(to + 32 - p), "%s%s%s",
                      on[br_rng_below(r, BR_COUNT(on))],
                      in[br_rng_below(r, BR_COUNT(in))],
                      off[br_rng_below(r, BR_COUNT(off))]);
}

static const char *
zipf_word(br_rng *r)
{
    return words[(size_t)exp(br_rng_f64(r) * log(WORDS)) - 1];
}

static void
make_text(br_str *s)
{
    br_rng r;
    char fresh[32];

    br_rng_init(&r, 7, 0);
    while (s->n < TEXT_BYTES) {
        uint32_t k = br_rng_below(&r, 100);
        const char *w = zipf_word(&r);

        if (k < 3)
            make_word(&r, fresh), w = fresh;
        br_str_puts(s, k > 3 && k < 10 ? ", " : k > 9 && k < 14 ? ". " : " ");
        if (k == 14)
            br_str_printf(s, "%u", br_rng_below(&r, 100000));
        else if (k > 9 && k < 20 && w[0] >= 'a')
            br_str_putc(s, (char)(w[0] - 32)), br_str_puts(s, w + 1);
        else
            br_str_puts(s, w);
        if (k == 99)
            br_str_puts(s, ".\n\n");
    }
}

/* ---- a vocabulary ------------------------------------------------------ */

struct make {
    br_map ids; /* spelling -> id */
    br_json_writer merges;
    br_str merges_text;
    br_arena arena;
    uint32_t n;
};

static void
add_token(struct make *m, br_text x)
{
    bool fresh;
    br_map_value *v;

    x.p = br_arena_str(&m->arena, x.p, x.n);
    v = br_map_put(&m->ids, x, &fresh);
    if (!v)
        die("out of memory");
    if (fresh)
        v->u = m->n++;
}

/* The token of [p, p + n), made of its halves, and theirs before it. */
static void
add_tree(struct make *m, const char *p, size_t n)
{
    br_text x = {p, n};
    size_t half = n / 2;

    if (br_map_get(&m->ids, x) || m->n >= VOCAB)
        return;
    while (((uint8_t)p[half] & 0xC0) == 0x80)
        half--;
    if (half == 0)
        for (half = 1; ((uint8_t)p[half] & 0xC0) == 0x80;)
            half++;
    if (half == n)
        return; /* a letter: a byte has one already */
    add_tree(m, p, half);
    add_tree(m, p + half, n - half);
    if (!br_map_get(&m->ids, (br_text){p, half}) ||
        !br_map_get(&m->ids, (br_text){p + half, n - half}) || m->n >= VOCAB)
        return;
    br_json_w_arr(&m->merges);
    br_json_w_str(&m->merges, (br_text){p, half});
    br_json_w_str(&m->merges, (br_text){p + half, n - half});
    br_json_w_arr_end(&m->merges);
    add_token(m, x);
}

static uint32_t
letter_of(unsigned b) /* GPT-2's letter of a byte */
{
    uint32_t extra = 0;

    for (unsigned i = 0; i <= b; i++) {
        bool own = (i > 0x20 && i < 0x7F) || (i > 0xA0 && i != 0xAD);

        if (i == b)
            return own ? b : 256 + extra;
        extra += !own;
    }
    return 0;
}

static void
spell(br_str *to, const char *p)
{
    char b[4];

    for (; *p; p++)
        br_str_put(to, b, br_utf8_put(b, letter_of((uint8_t)*p)));
}

static void
make_json(br_str *json)
{
    struct make m = {0};
    br_json_writer w;
    br_str x = {0};
    br_map_entry *e;
    br_rng r;
    char more[64];

    br_arena_init(&m.arena, 0);
    br_json_w_begin(&m.merges, &m.merges_text, 0);
    m.merges.compact = m.merges.utf8 = true;
    br_json_w_arr(&m.merges);
    for (unsigned b = 0; b < 256; b++) {
        char c[4];

        add_token(&m, (br_text){c, br_utf8_put(c, letter_of(b))});
    }
    br_rng_init(&r, 11, 0);
    for (size_t i = 0; m.n < VOCAB; i++) {
        br_str_clear(&x);
        snprintf(more, sizeof more, " %s", words[i % WORDS]);
        if (i >= WORDS) /* the vocabulary of some other language */
            make_word(&r, more + 1), more[0] = ' ';
        spell(&x, more);
        add_tree(&m, x.at, x.n);
    }
    br_json_w_arr_end(&m.merges);
    br_json_w_begin(&w, json, 0);
    w.compact = w.utf8 = true;
    br_json_w_obj(&w);
    br_json_w_key(&w, "pre_tokenizer");
    br_json_w_raw(
        &w,
        BR_TEXT("{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\","
                "\"pattern\":{\"Regex\":\"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^"
                "\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}| ?[^\\\\s"
                "\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+"
                "(?!\\\\S)|\\\\s+\"},\"behavior\":\"Isolated\"},"
                "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,"
                "\"use_regex\":false}]}"));
    br_json_w_key(&w, "model");
    br_json_w_obj(&w);
    br_json_w_key(&w, "type");
    br_json_w_strz(&w, "BPE");
    br_json_w_key(&w, "vocab");
    br_json_w_obj(&w);
    for (size_t i = 0; (e = br_map_next(&m.ids, &i));) {
        br_json_w_key_n(&w, e->key.text);
        br_json_w_u64(&w, e->value.u);
    }
    br_json_w_obj_end(&w);
    br_json_w_key(&w, "merges");
    br_json_w_raw(&w, (br_text){m.merges_text.at, m.merges_text.n});
    br_json_w_obj_end(&w);
    br_json_w_obj_end(&w);
    br_str_fini(&x);
    br_str_fini(&m.merges_text);
    br_map_fini(&m.ids);
    br_arena_fini(&m.arena);
    if (json->oom)
        die("out of memory");
}

/* ---- runs -------------------------------------------------------------- */

static bool
run(const br_tok *t, const char *what, br_text text, double least)
{
    br_tok_ids ids = {0};
    br_status st = {0};
    br_str back = {0};
    double best = 1e30, rate;
    bool same;

    for (int i = 0; i < REPEATS; i++) {
        br_tok_work *w = br_tok_work_new();
        double t0 = kit_cpu_ms();

        ids.n = 0;
        if (!w || br_tok_encode(t, w, text, 0, &ids, &st) != BR_OK)
            die(w ? st.msg : "out of memory");
        best = fmin(best, kit_cpu_ms() - t0);
        br_tok_work_free(w);
    }
    if (br_tok_decode(t, ids.at, ids.n, 0, &back, &st) != BR_OK)
        die(st.msg);
    same = br_text_eq(text, (br_text){br_str_z(&back), back.n});
    rate = (double)text.n / best / 1e3;
    printf("%-22s %5.1f MB %9zu ids %8.1f MB/s  goal %4.0f %s%s\n", what,
           (double)text.n / 1e6, ids.n, rate, least,
           rate >= least ? "ok" : "MISSED",
           same                  ? ""
           : br_utf8_valid(text) ? ", text differs"
                                 : ", not UTF-8");
    br_vec_fini(&ids);
    br_str_fini(&back);
    return rate >= least;
}

static br_tok *
load(int argc, char **argv)
{
    br_status st = {0};
    br_str json = {0};
    br_tok *t;
    double t0;

    if (argc > 1) {
        t0 = kit_cpu_ms();
        if (br_tok_open(&t, argv[1], NULL, &st) != BR_OK)
            die(st.msg);
    } else {
        make_json(&json);
        t0 = kit_cpu_ms();
        if (br_tok_from_json(&t, (br_text){json.at, json.n}, BR_TEXT(""),
                             &st) != BR_OK)
            die(st.msg);
    }
    printf("vocabulary: %d tokens, %s, loaded in %.0f ms\n", br_tok_count(t),
           br_tok_kind_name(br_tok_kind_of(t)), kit_cpu_ms() - t0);
    br_str_fini(&json);
    return t;
}

int
main(int argc, char **argv)
{
    static char buffer[TEXT_BYTES];
    br_str text = {0};
    br_status st = {0};
    br_text big = {buffer, sizeof buffer};
    br_tok *t;
    char cpu[200];
    br_rng r;
    bool ok;

    br_rng_init(&r, 1, 0);
    for (size_t i = 0; i < WORDS; i++)
        make_word(&r, words[i]);
    kit_cpu(cpu, sizeof cpu);
    printf("machine: one core of %s\n", cpu);
    t = load(argc, argv);
    if (argc > 2 &&
        br_file_read(argv[2], BR_TOK_MAX_TEXT, &text.at, &text.n, &st) != BR_OK)
        die(st.msg);
    if (argc <= 2)
        make_text(&text);
    ok = run(t, "ordinary text", (br_text){text.at, text.n}, 20);
    for (size_t i = 0; i < big.n; i++)
        buffer[i] = (char)('a' + br_rng_below(&r, 26));
    ok &= run(t, "one word, random", big, 2);
    memset(buffer, 'a', big.n);
    ok &= run(t, "one word, one letter", big, 2);
    memset(buffer, ' ', big.n);
    ok &= run(t, "spaces", big, 2);
    for (size_t i = 0; i < big.n; i++)
        buffer[i] = (char)br_rng_u32(&r);
    ok &= run(t, "random bytes", big, 2);
    for (size_t i = 0; i < big.n; i++)
        buffer[i] = (char)(' ' + br_rng_below(&r, 95));
    ok &= run(t, "random ASCII", big, 2);
    br_str_fini(&text);
    br_tok_free(t);
    return ok ? 0 : 1;
}

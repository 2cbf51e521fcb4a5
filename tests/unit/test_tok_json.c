/* test_tok_json.c - tokenizers from tokenizer.json.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tok_kit.h"

#include "base/json.h"
#include "model/gguf_write.h"
#include "model/tok_write.h"

#include <stdlib.h>
#include <string.h>

T_ONE_THREAD();

#define BYTES_PRE                                                           \
    "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false," \
    "\"use_regex\":true}"

/* "letters": all of GPT-2's letters as members of a vocabulary, ids 0..255. */
static const char *
letters(void)
{
    tk_vocab *v = t_keep(calloc(1, sizeof *v));
    br_str s = {0};
    br_json_writer w;
    const char *kept;

    tk_add_letters(v);
    for (size_t i = 0; i < v->n; i++) {
        br_str one = {0};

        br_json_w_begin(&w, &one, 0);
        br_json_w_str(&w, v->text[i]);
        br_str_printf(&s, "%s%s:%zu", i ? "," : "", br_str_z(&one), i);
        br_str_fini(&one);
    }
    kept = t_printf("%s", br_str_z(&s));
    br_str_fini(&s);
    return kept;
}

static br_code
load(br_tok **t, const char *json, const char *config, br_status *st)
{
    return br_tok_from_json(t, br_text_z(json), br_text_z(config), st);
}

static br_tok *
open_json(const char *json, const char *config)
{
    br_status st = {0};
    br_tok *t;

    t_ok(load(&t, json, config, &st), &st);
    return t;
}

/* A byte-level vocabulary with two merges, and members of the document. */
static const char *
bpe(const char *members)
{
    return t_printf("{%s,\"model\":{\"vocab\":{%s,\"ab\":256,\"abc\":257},"
                    "\"merges\":[\"a b\",[\"ab\",\"c\"]],\"type\":\"BPE\"}}",
                    members, letters());
}

TEST(tok_json_byte_level)
{
    br_tok *t = open_json(
        bpe(BYTES_PRE ",\"added_tokens\":[{\"id\":258,\"content\":\"<e>\","
                      "\"special\":true},{\"id\":260,\"content\":\"<u>\","
                      "\"special\":false,\"rstrip\":true}]"),
        "{\"eos_token\":{\"content\":\"<e>\"},\"bos_token\":null,"
        "\"clean_up_tokenization_spaces\":false}");

    ck_assert_int_eq(br_tok_kind_of(t), BR_TOK_BPE);
    ck_assert_int_eq(br_tok_count(t), 261);
    ck_assert_str_eq(tk_ids(t, "abc ab<e>", 0), "257 32 256 60 101 62");
    ck_assert_str_eq(tk_ids(t, "abc<e>", BR_TOK_PARSE_SPECIAL), "257 258");
    ck_assert_str_eq(tk_ids(t, "ab<u>  ab", 0), "256 260 256");
    ck_assert_str_eq(tk_text(t, "257 32 256 259", 0), "abc ab");
    ck_assert_int_eq(br_tok_role_id(t, BR_TOK_EOS), 258);
    ck_assert(br_tok_is_eog(t, 258));
    br_tok_free(t);
}

TEST(tok_json_template_says_what_stands_around)
{
    br_tok *t = open_json(
        bpe(BYTES_PRE
            ",\"added_tokens\":[{\"id\":258,\"content\":\"<s>\",\"special\":"
            "true}],\"post_processor\":{\"type\":\"Sequence\",\"processors\":["
            "{\"type\":\"ByteLevel\"},{\"type\":\"TemplateProcessing\","
            "\"single\":[{\"SpecialToken\":{\"id\":\"<s>\",\"type_id\":0}},"
            "{\"Sequence\":{\"id\":\"A\",\"type_id\":0}}]}]}"),
        "");

    ck_assert_str_eq(tk_ids(t, "ab", BR_TOK_ADD_SPECIAL), "258 256");
    ck_assert(br_tok_adds_bos(t) && !br_tok_adds_eos(t));
    br_tok_free(t);
}

/* GLM-4's [gMASK] <sop>. What is decoded begins behind both. */
TEST(tok_json_several_tokens_stand_before_a_text)
{
    br_tok *t = open_json(
        bpe(BYTES_PRE
            ",\"added_tokens\":[{\"id\":258,\"content\":\"[gMASK]\","
            "\"special\":true},{\"id\":259,\"content\":\"<sop>\","
            "\"special\":false}],\"post_processor\":{\"type\":"
            "\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":"
            "\"[gMASK]\"}},{\"SpecialToken\":{\"id\":\"<sop>\"}},"
            "{\"Sequence\":{\"id\":\"A\"}}]}"),
        "");
    const int32_t ids[] = {258, 259, 256};
    br_status st = {0};
    br_str s = {0};

    ck_assert_str_eq(tk_ids(t, "ab", BR_TOK_ADD_SPECIAL), "258 259 256");
    ck_assert_str_eq(tk_ids(t, "ab", 0), "256");
    t_ok(br_tok_decode(t, ids, 3, BR_TOK_STRIP_SPECIAL | BR_TOK_SHOW_SPECIAL,
                       &s, &st),
         &st);
    ck_assert_str_eq(br_str_z(&s), "ab");
    br_str_fini(&s);
    br_tok_free(t);
}

/* <s> is a word of the vocabulary, <u> is nowhere else, <e> is in both. */
TEST(tok_json_tokens_of_the_config_are_tokens)
{
    const char *config =
        "{\"eos_token\":\"<e>\",\"added_tokens_decoder\":{"
        "\"258\":{\"content\":\"<e>\",\"special\":true},"
        "\"260\":{\"content\":\"<u>\",\"special\":true,\"rstrip\":true},"
        "\"300\":{\"content\":\"abc\",\"special\":false}}}";
    const char *json = bpe(BYTES_PRE ",\"added_tokens\":[{\"id\":258,"
                                     "\"content\":\"<e>\",\"special\":true}]");
    br_status st = {0};
    br_tok *t = open_json(json, "{\"eos_token\":\"<e>\"}");

    ck_assert_int_eq(br_tok_count(t), 259);
    ck_assert_str_eq(tk_ids(t, "xabc", BR_TOK_PARSE_SPECIAL), "120 257");
    br_tok_free(t);
    t = open_json(json, config);
    ck_assert_int_eq(br_tok_count(t), 261);
    ck_assert_str_eq(tk_ids(t, "<u> x<e>", BR_TOK_PARSE_SPECIAL),
                     "260 120 258");
    ck_assert_int_eq(br_tok_type_of(t, 260), BR_TOK_CONTROL);
    ck_assert_int_eq(br_tok_type_of(t, 257), BR_TOK_USER);
    br_tok_free(t);
    ck_assert_int_ne(load(&t, json,
                          "{\"added_tokens_decoder\":{\"3\":{\"content\":"
                          "\"<v>\"}}}",
                          &st),
                     BR_OK);
    ck_assert_ptr_nonnull(strstr(st.msg, "id 3 is '<v>' and '"));
    st = (br_status){0};
    ck_assert_int_ne(
        load(&t, json, "{\"added_tokens_decoder\":{\"x\":{}}}", &st), BR_OK);
    ck_assert_ptr_nonnull(
        strstr(st.msg, "tokenizer_config.json: added_tokens_decoder: 'x' is no "
                       "id of a token with a content"));
}

/* Some classes make their own post-processor, whatever the folder's is. */
TEST(tok_json_class_says_what_stands_around)
{
    static const struct {
        const char *config, *ids;
    } rows[] = {
        {"\"LlamaTokenizerFast\",\"add_bos_token\":true", "258 256"},
        {"\"LlamaTokenizer\",\"add_bos_token\":true,\"add_eos_token\":true",
         "258 256 259"},
        {"\"LlamaTokenizerFast\"", "256"},
        {"\"Qwen2Tokenizer\",\"add_bos_token\":true", "256"},
    };

    for (size_t i = 0; i < BR_COUNT(rows); i++) {
        br_tok *t = open_json(
            bpe(BYTES_PRE ",\"added_tokens\":[{\"id\":258,\"content\":\"<s>\","
                          "\"special\":true},{\"id\":259,\"content\":\"</s>\","
                          "\"special\":true}],\"post_processor\":{\"type\":"
                          "\"ByteLevel\"}"),
            t_printf("{\"bos_token\":\"<s>\",\"eos_token\":\"</s>\","
                     "\"tokenizer_class\":%s}",
                     rows[i].config));

        ck_assert_str_eq(tk_ids(t, "ab", BR_TOK_ADD_SPECIAL), rows[i].ids);
        br_tok_free(t);
    }
}

#define SPLIT(re, how)                                                    \
    "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{"       \
    "\"type\":\"Split\",\"pattern\":{\"Regex\":\"" re "\"},\"behavior\":" \
    "\"" how "\"},{\"type\":\"ByteLevel\",\"use_regex\":false,"           \
    "\"add_prefix_space\":false}]}"

TEST(tok_json_unknown_patterns_go_to_pcre2)
{
    br_status st = {0};
    br_tok *t;

    if (load(&t, bpe(SPLIT("(?=b)|x", "Isolated")), "", &st) ==
        BR_E_UNSUPPORTED)
        t_skip("built without PCRE2");
    t_ok(st.code, &st);
    ck_assert_str_eq(tk_ids(t, "abcxab", 0), "257 120 256"); /* empty: no cut */
    br_tok_free(t);
    t = open_json(bpe(SPLIT("b", "Isolated")), "");
    ck_assert_str_eq(tk_ids(t, "ab\xC3\xA9", 0), "97 98 195 169");
    br_tok_free(t);
    t = open_json(bpe(SPLIT("x+", "Removed")), "");
    ck_assert_str_eq(tk_ids(t, "abxxab", 0), "256 256");
    br_tok_free(t);
    t = open_json(bpe(SPLIT("\\\\p{Lu}\\\\p{M}*", "Isolated")), "");
    ck_assert_str_eq(tk_text(t, tk_ids(t, "a\xC3\x89\xCC\x81z", 0), 0),
                     "a\xC3\x89\xCC\x81z");
    br_tok_free(t);
    ck_assert_int_eq(load(&t, bpe(SPLIT("(", "Isolated")), "", &st),
                     BR_E_FORMAT);
    ck_assert_ptr_nonnull(strstr(st.msg, "missing closing parenthesis"));
}

TEST(tok_json_patterns_that_never_end_give_up)
{
    br_status st = {0};
    br_tok *t;
    br_tok_work *w = br_tok_work_new();
    br_tok_ids ids = {0};
    char text[64];

    ck_assert_ptr_nonnull(w);
    if (load(&t, bpe(SPLIT("(a+)+$|(a|a)*b(a|aa)+$", "Isolated")), "", &st) !=
        BR_OK) {
        br_tok_work_free(w);
        t_skip("built without PCRE2");
    }
    memset(text, 'a', sizeof text);
    text[63] = '!';
    ck_assert_int_eq(
        br_tok_encode(t, w, (br_text){text, sizeof text}, 0, &ids, &st),
        BR_E_LIMIT);
    ck_assert_uint_eq(ids.n, 0);
    br_tok_work_free(w);
    br_tok_free(t);
}

/* The pattern of Llama 3 as scanner, and the same pattern in other words,
 * which only PCRE2 knows. */
TEST(tok_json_scanner_and_pcre2_cut_alike)
{
    static const char *const cls[] = {"a",        "b",        "abc",
                                      " ",        "  ",       "\n",
                                      "\r\n",     "\t",       "1",
                                      "23",       "4567",     "'s",
                                      "'",        "'LL",      "!",
                                      "?!",       "\xC3\xA9", "\xE4\xB8\xAD",
                                      "\xCC\x81", "\xC2\xA0", "\xE2\x82\xAC",
                                      "\xD9\xA3", "\xC7\x85", "/"};
    const char *other =
        "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|"
        "\\\\p{N}{1,3}| ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*"
        "[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+";
    const char *head = "\"pre_tokenizer\":{\"type\":\"Sequence\","
                       "\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":{"
                       "\"Regex\":\"";
#define BEHIND                                                              \
    "\"},\"behavior\":\"Isolated\"},{\"type\":\"ByteLevel\",\"use_regex\":" \
    "false,\"add_prefix_space\":false}]}"
    const char *vocab = letters();
    br_status st = {0};
    br_tok *t[2];
    uint64_t seed = 9;

    /* merges over everything: a word's ids show where it was cut */
    for (int i = 0; i < 2; i++) {
        const char *json = t_printf(
            "{%s%s%s,\"model\":{\"type\":\"BPE\",\"vocab\":{%s,\"aa\":256,"
            "\"\xC4\xA0\xC4\xA0\":257,\"11\":258,\"!!\":259,\"\xC4\x8A\xC4\x8A"
            "\":260,\"\xC4\xA0"
            "a\":261,\"'s\":262},\"merges\":[\"a a\","
            "\"\xC4\xA0 \xC4\xA0\",\"1 1\",\"! !\",\"\xC4\x8A \xC4\x8A\","
            "\"\xC4\xA0 a\",\"' s\"]}}",
            head, other, i ? "|x{0,0}y" BEHIND : BEHIND, vocab);

        if (load(&t[i], json, "", &st) == BR_E_UNSUPPORTED) {
            br_tok_free(t[0]);
            t_skip("built without PCRE2");
        }
        t_ok(st.code, &st);
    }
    for (int round = 0; round < 60; round++) {
        br_str s = {0};

        for (uint64_t k = 1 + t_rand(&seed) % 12; k; k--)
            br_str_puts(&s, cls[t_rand(&seed) % BR_COUNT(cls)]);
        ck_assert_str_eq(tk_ids_n(t[0], (br_text){s.at, s.n}, 0),
                         tk_ids_n(t[1], (br_text){s.at, s.n}, 0));
        br_str_fini(&s);
    }
    br_tok_free(t[0]);
    br_tok_free(t[1]);
}

TEST(tok_json_nfc_is_applied)
{
    br_tok *t =
        open_json(bpe(BYTES_PRE ",\"normalizer\":{\"type\":\"NFC\"}"), "");

    ck_assert_str_eq(tk_text(t,
                             tk_ids(t,
                                    "e\xCC\x81"
                                    "ab",
                                    0),
                             0),
                     "\xC3\xA9"
                     "ab");
    br_tok_free(t);
}

static const char *
llama(const char *members)
{
    br_str s = {0};
    const char *kept;

    br_str_printf(&s,
                  "{%s,\"model\":{\"type\":\"BPE\",\"byte_fallback\":true,"
                  "\"unk_token\":\"<unk>\",\"vocab\":{\"<unk>\":0",
                  members);
    for (unsigned b = 0; b < 256; b++)
        br_str_printf(&s, ",\"<0x%02X>\":%u", b, b + 1);
    br_str_puts(&s, ",\"\xE2\x96\x81\":257,\"a\":258,\"\xE2\x96\x81"
                    "a\":259,"
                    "\"aa\":260,\"\xE2\x96\x81\xE2\x96\x81\":261},"
                    "\"merges\":[\"\xE2\x96\x81 \xE2\x96\x81\","
                    "\"\xE2\x96\x81 a\",\"a a\"]}}");
    kept = t_printf("%s", br_str_z(&s));
    br_str_fini(&s);
    return kept;
}

TEST(tok_json_sentencepiece_by_merges)
{
    br_tok *t = open_json(
        llama("\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{"
              "\"type\":\"Prepend\",\"prepend\":\"\xE2\x96\x81\"},{\"type\":"
              "\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":"
              "\"\xE2\x96\x81\"}]}"),
        "");

    ck_assert_int_eq(br_tok_kind_of(t), BR_TOK_MPE);
    ck_assert_str_eq(tk_ids(t, "a aaa", 0), "259 259 260");
    ck_assert_str_eq(tk_ids(t, "b\n", 0), "257 99 11");
    ck_assert_str_eq(tk_text(t, "259 259 260 99", 0), "a aaab");
    br_tok_free(t);
    t = open_json(llama("\"pre_tokenizer\":{\"type\":\"Metaspace\","
                        "\"replacement\":\"\xE2\x96\x81\",\"prepend_scheme\":"
                        "\"first\"},\"added_tokens\":[{\"id\":262,\"content\":"
                        "\"<s>\",\"special\":true}]"),
                  "");
    ck_assert_str_eq(tk_ids(t, "a<s>a", BR_TOK_PARSE_SPECIAL), "259 262 258");
    br_tok_free(t);
}

/* As a Metaspace does it, which says what begins a word, too. */
TEST(tok_json_blank_before_a_text_that_has_none)
{
    static const struct {
        const char *more, *text, *ids;
    } rows[] = {
        {",\"split\":false", "a", "259"},
        {",\"split\":false", " a", "259"},
        {",\"split\":false",
         "\xE2\x96\x81"
         "a",
         "259"},
        {",\"split\":false", "  a", "261 258"},
        {",\"split\":false", "a  ", "259 261"},
        {"", "  a", "257 259"},
        {"", "a   aa", "259 257 257 259 258"},
        {",\"split\":true", "   ", "257 257 257"},
    };

    for (size_t i = 0; i < BR_COUNT(rows); i++) {
        const char *json = llama(t_printf(
            "\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":"
            "\"\xE2\x96\x81\",\"prepend_scheme\":\"always\"%s}",
            rows[i].more));
        br_tok *t = open_json(json, "");

        ck_assert_str_eq(tk_ids(t, rows[i].text, 0), rows[i].ids);
        br_tok_free(t);
    }
}

/* Without tokens for bytes; with_blank: U+2581 is a token. */
static br_tok *
open_few(bool fuse, bool with_blank)
{
    return open_json(
        t_printf("{\"normalizer\":{\"type\":\"Replace\",\"pattern\":{"
                 "\"String\":\" \"},\"content\":\"\xE2\x96\x81\"},\"model\":{"
                 "\"type\":\"BPE\",\"unk_token\":\"<unk>\",\"byte_fallback\":"
                 "false,\"fuse_unk\":%s,\"vocab\":{\"<unk>\":0,\"%s\":1,"
                 "\"a\":2,\"b\":3,\"ab\":4},\"merges\":[\"a b\"]}}",
                 fuse ? "true" : "false", with_blank ? "\xE2\x96\x81" : "-"),
        "");
}

/* t as br_hf_convert writes it, and read back. */
static br_tok *
of_gguf(const br_tok *t)
{
    const char *path = t_printf("%s/t.gguf", t_tmpdir());
    br_gguf_writer *w = br_gguf_w_new();
    br_status st = {0};
    br_gguf *g;
    br_tok *back;

    br_gguf_w_str(w, "general.architecture", BR_TEXT("llama"));
    t_ok(br_tok_write(t, br_tok_count(t), w, &st), &st);
    t_ok(br_gguf_w_begin(w, path, &st), &st);
    t_ok(br_gguf_w_end(w, &st), &st);
    br_gguf_w_free(w);
    t_ok(br_gguf_open(&g, path, &st), &st);
    t_ok(br_tok_from_gguf(&back, g, NULL, &st), &st);
    br_gguf_close(g);
    return back;
}

TEST(tok_json_unknown_letters_side_by_side_are_one_token)
{
    enum { LETTERS = 9000 }; /* more than one window */
    br_str many = {0};
    static const char mixed[] = "a\xC3\xA4\xC3\xB6zab \xC3\xB6!";
    br_tok *t = open_few(true, true), *file = of_gguf(t);

    ck_assert_str_eq(tk_ids(t, mixed, 0), "2 0 4 1 0");
    ck_assert_str_eq(tk_ids(file, mixed, 0), "2 0 4 1 0");
    br_tok_free(file);
    ck_assert_str_eq(tk_ids(t, "z", 0), "0");
    ck_assert_str_eq(tk_ids(t, "zz zz", 0), "0 1 0");
    for (int i = 0; i < LETTERS; i++)
        br_str_puts(&many, "\xC3\xA4");
    ck_assert_str_eq(tk_ids(t, br_str_z(&many), 0), "0");
    br_str_puts(&many, "ab");
    ck_assert_str_eq(tk_ids(t, br_str_z(&many), 0), "0 4");
    br_tok_free(t);
    t = open_few(true, false);
    ck_assert_str_eq(tk_ids(t, "zz zz a", 0), "0 2");
    br_tok_free(t);
    t = open_few(false, true);
    ck_assert_str_eq(tk_ids(t, "azzb", 0), "2 0 0 3");
    br_tok_free(t);
    br_str_fini(&many);
}

static bool
is_pair(const char *whole, const char *l, const char *r)
{
    return !strncmp(whole, l, strlen(l)) && !strcmp(whole + strlen(l), r);
}

/* A vocabulary of up to 16 pieces of a, b and U+2581, grown from pairs. whole: as
 * SentencePiece has it, where all pairs that make a piece are merges, side by
 * side; else some, in any order. */
static const char *
grown(uint64_t *rng, bool whole)
{
    const char *piece[16] = {"\xE2\x96\x81", "a", "b"};
    int n = 3, merges = 0;
    br_str vocab = {0}, list = {0};
    const char *json;

    for (; n < 16; n++)
        piece[n] = t_printf("%s%s", piece[t_rand(rng) % (unsigned)n],
                            piece[t_rand(rng) % (unsigned)n]);
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < i; k++) /* one of each */
            if (!strcmp(piece[i], piece[k]))
                piece[i] = t_printf("-%d", i);
        br_str_printf(&vocab, ",\"%s\":%d", piece[i], i + 1);
        for (int l = 0; l < n * n; l++)
            if (is_pair(piece[i], piece[l / n], piece[l % n]) &&
                (whole || t_rand(rng) % 3))
                br_str_printf(&list, "%s\"%s %s\"", merges++ ? "," : "",
                              piece[l / n], piece[l % n]);
    }
    json =
        t_printf("{\"normalizer\":{\"type\":\"Replace\",\"pattern\":{"
                 "\"String\":\" \"},\"content\":\"\xE2\x96\x81\"},\"model\":{"
                 "\"type\":\"BPE\",\"unk_token\":\"?\",\"vocab\":{\"?\":0%s},"
                 "\"merges\":[%s]}}",
                 br_str_z(&vocab), br_str_z(&list));
    br_str_fini(&vocab);
    br_str_fini(&list);
    return json;
}

/* Scores are of pieces, merges of pairs. */
TEST(tok_json_merges_that_scores_do_not_say_are_kept)
{
    uint64_t rng = 7;
    int kept = 0;

    for (int i = 0; i < 40; i++) {
        br_tok *t = open_json(grown(&rng, i % 2), ""), *file = of_gguf(t);
        char text[601] = "";

        for (size_t c = 0; c < sizeof text - 1; c++)
            text[c] = "aabb "[t_rand(&rng) % 5];
        ck_assert_str_eq(tk_ids(file, text, 0), tk_ids(t, text, 0));
        kept += br_tok_kind_of(file) == BR_TOK_MPE;
        if (i % 2)
            ck_assert_int_eq(br_tok_kind_of(file), BR_TOK_SPM);
        br_tok_free(file);
        br_tok_free(t);
    }
    ck_assert_int_ge(kept, 10);
}

TEST(tok_json_wordpiece)
{
    br_tok *t = open_json(
        "{\"normalizer\":{\"type\":\"BertNormalizer\",\"lowercase\":true},"
        "\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},"
        "\"added_tokens\":[{\"id\":0,\"content\":\"[UNK]\",\"special\":true},"
        "{\"id\":1,\"content\":\"[CLS]\",\"special\":true},"
        "{\"id\":2,\"content\":\"[SEP]\",\"special\":true}],"
        "\"post_processor\":{\"type\":\"BertProcessing\",\"sep\":[\"[SEP]\",2],"
        "\"cls\":[\"[CLS]\",1]},"
        "\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"[UNK]\","
        "\"continuing_subword_prefix\":\"##\",\"max_input_chars_per_word\":6,"
        "\"vocab\":{\"[UNK]\":0,\"[CLS]\":1,\"[SEP]\":2,\"un\":3,\"##aff\":4,"
        "\"##able\":5,\"##un\":6}}}",
        "");

    ck_assert_str_eq(tk_ids(t, "UNaff", BR_TOK_ADD_SPECIAL), "1 3 4 2");
    ck_assert_str_eq(tk_ids(t, "ununun un", 0), "3 6 6 3");
    ck_assert_str_eq(tk_ids(t, "unununun", 0), "0"); /* over six letters */
    br_tok_free(t);
}

/* A charsmap of one rule, U+FF21 -> "A": three nodes, a leaf, text. */
static void
put_u32(uint8_t *p, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(v >> (8 * i));
}

static const char *
charsmap64(void)
{
    static const char digit[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    enum { NODES = 2048 };
    static uint8_t map[4 + 4 * NODES + 4];
    br_str s = {0};
    const char *kept;
    uint32_t root = 256, a = 512, b = 1024, c = 1536;

    put_u32(map, 4 * NODES);
    put_u32(map + 4, root << 10);
    put_u32(map + 4 + 4 * (root ^ 0xEF), ((root ^ 0xEF) ^ a) << 10 | 0xEF);
    put_u32(map + 4 + 4 * (a ^ 0xBC), ((a ^ 0xBC) ^ b) << 10 | 0xBC);
    put_u32(map + 4 + 4 * (b ^ 0xA1), ((b ^ 0xA1) ^ c) << 10 | 1u << 8 | 0xA1);
    put_u32(map + 4 + 4 * c, 1u << 31 | 0);
    map[4 + 4 * NODES] = 'A';
    for (size_t i = 0; i < sizeof map; i += 3) {
        uint32_t v = (uint32_t)map[i] << 16;

        v |= i + 1 < sizeof map ? (uint32_t)map[i + 1] << 8 : 0;
        v |= i + 2 < sizeof map ? map[i + 2] : 0;
        for (int k = 18; k >= 0; k -= 6)
            br_str_putc(&s, digit[v >> k & 63]);
    }
    kept = t_printf("%s", br_str_z(&s));
    br_str_fini(&s);
    return kept;
}

TEST(tok_json_unigram_with_a_charsmap)
{
    br_tok *t = open_json(
        t_printf("{\"normalizer\":{\"type\":\"Precompiled\","
                 "\"precompiled_charsmap\":\"%s\"},\"pre_tokenizer\":{"
                 "\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":"
                 "\"WhitespaceSplit\"},{\"type\":\"Metaspace\",\"replacement\":"
                 "\"\xE2\x96\x81\",\"add_prefix_space\":true}]},"
                 "\"model\":{\"unk_id\":0,\"vocab\":[[\"<unk>\",0],"
                 "[\"\xE2\x96\x81\",-2],[\"A\",-3.5],[\"\xE2\x96\x81"
                 "A\","
                 "-4]]}}",
                 charsmap64()),
        "");

    ck_assert_int_eq(br_tok_kind_of(t), BR_TOK_UGM);
    ck_assert_str_eq(tk_ids(t, "\xEF\xBC\xA1", 0), "3");
    ck_assert_str_eq(tk_ids(t,
                            "A  \xEF\xBC\xA1"
                            "A",
                            0),
                     "3 3 2");
    ck_assert_str_eq(tk_ids(t, "\xEF\xBC\xA2", 0), "1 0");
    br_tok_free(t);
}

TEST(tok_json_what_is_not_supported_is_refused_by_name)
{
    static const struct {
        const char *members, *why;
    } bad[] = {
        {BYTES_PRE ",\"normalizer\":{\"type\":\"NFKC\"}", "'NFKC'"},
        {SPLIT("x", "MergedWithNext"), "'MergedWithNext'"},
        {"\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{"
         "\"type\":\"Whitespace\"},{\"type\":\"ByteLevel\"}]}",
         "'Whitespace'"},
        {BYTES_PRE ",\"post_processor\":{\"type\":\"Magic\"}", "'Magic'"},
        {BYTES_PRE ",\"added_tokens\":[{\"id\":5000000,\"content\":\"x\"}]",
         "added_tokens[0]"},
        {BYTES_PRE ",\"added_tokens\":[{\"id\":4000000,\"content\":\"<x>\"}]",
         "the largest id is 4000000, of 259 tokens"},
        {BYTES_PRE ",\"added_tokens\":[{\"id\":3,\"content\":\"<x>\"}]",
         "id 3 is '<x>' and '"},
        {BYTES_PRE ",\"added_tokens\":7", "added_tokens: it is no array"},
        {BYTES_PRE ",\"pre_tokenizer\":{\"type\":\"Sequence\"}",
         "without its pretokenizers"},
    };

    for (size_t i = 0; i < BR_COUNT(bad); i++) {
        br_status st = {0};
        br_tok *t;

        ck_assert_int_ne(load(&t, bpe(bad[i].members), "", &st), BR_OK);
        ck_assert_msg(strstr(st.msg, bad[i].why) != NULL, "'%s' has no '%s'",
                      st.msg, bad[i].why);
    }
}

TEST(tok_json_members_that_make_another_bpe_are_refused)
{
    static const struct {
        const char *member, *why;
    } rows[] = {
        {"\"continuing_subword_prefix\":\"##\"",
         "model.continuing_subword_prefix of a BPE is not supported"},
        {"\"end_of_word_suffix\":\"</w>\"",
         "model.end_of_word_suffix of a BPE is not supported"},
        {"\"dropout\":0.1", "model.dropout is not supported"},
        {"\"continuing_subword_prefix\":\"\",\"end_of_word_suffix\":null,"
         "\"dropout\":0.0",
         ""},
        {"\"continuing_subword_prefix\":null,\"dropout\":null", ""},
    };

    for (size_t i = 0; i < BR_COUNT(rows); i++) {
        br_status st = {0};
        br_tok *t = NULL;
        const char *json =
            t_printf("{%s,\"model\":{\"type\":\"BPE\",%s,\"vocab\":{%s,"
                     "\"ab\":256},\"merges\":[\"a b\"]}}",
                     BYTES_PRE, rows[i].member, letters());

        ck_assert_int_eq(load(&t, json, "", &st) == BR_OK, !*rows[i].why);
        ck_assert_str_eq(st.msg, rows[i].why);
        br_tok_free(t);
    }
}

TEST(tok_json_malformed_is_refused_with_its_place)
{
    static const struct {
        const char *json, *why;
    } bad[] = {
        {"[]", "it is no object"},
        {"{}", "no model"},
        {"{\"model\":{\"type\":\"WordLevel\"}}", "'WordLevel'"},
        {"{\"model\":[]}", "model: it is no object"},
        {"{\"model\":{\"vocab\":{\"a\":-1}}}", "line 1 column 24: model.vocab"},
        {"{\"model\":{\"vocab\":{\"a\":\"b\"}}}", "model.vocab: an id"},
        {"{\"model\":{\"vocab\":[[\"a\"]]}}", "[\"piece\", score]"},
        {"{\"model\":{\"vocab\":7}}", "no object and no array"},
        {"{\"model\":{\"merges\":[7]}}", "an element is two texts"},
        {"{\"model\":{\"merges\":[\"ab\"]}}", "\"left right\""},
        {"{\"model\":{\"merges\":[[\"a\",\"b\",\"c\"]]}}", "two texts"},
        {"{\"model\":{}", "line 1"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{},\"merges\":[]}}",
         "it has no tokens"},
        {"{\"model\":{\"type\":\"Unigram\",\"vocab\":{\"a\":1}}}",
         "it is an array"},
    };

    for (size_t i = 0; i < BR_COUNT(bad); i++) {
        br_status st = {0};
        br_tok *t;

        ck_assert_int_ne(load(&t, bad[i].json, "", &st), BR_OK);
        ck_assert_msg(strstr(st.msg, bad[i].why) != NULL, "'%s' has no '%s'",
                      st.msg, bad[i].why);
    }
}

TEST(tok_json_says_in_which_file_the_mistake_is)
{
    static const struct {
        const char *json, *config, *why;
    } bad[] = {
        {"{\"model\":{", "", "tokenizer.json: line 1 column 11: "},
        {"", "", "tokenizer.json: line 1 column 1: "},
        {"{}", "{\"a\":", "tokenizer_config.json: line 1 column 6: "},
        {"{}", "[]", "tokenizer_config.json: it is no object"},
    };

    for (size_t i = 0; i < BR_COUNT(bad); i++) {
        br_status st = {0};
        br_tok *t;

        ck_assert_int_ne(load(&t, bad[i].json, bad[i].config, &st), BR_OK);
        ck_assert_msg(strncmp(st.msg, bad[i].why, strlen(bad[i].why)) == 0,
                      "'%s' does not begin with '%s'", st.msg, bad[i].why);
    }
}

/* ---- a real vocabulary both ways --------------------------------------- */

static void
write_array(br_json_writer *w, const br_gguf_kv *kv, bool numbered)
{
    br_text x;

    for (uint64_t i = 0; i < kv->n; i++) {
        ck_assert(br_gguf_str(kv, i, &x));
        if (numbered) {
            br_json_w_key_n(w, x);
            br_json_w_u64(w, i);
        } else {
            br_json_w_str(w, x);
        }
    }
}

TEST(tok_json_of_gpt2_gives_the_ids_of_its_gguf)
{
    const char *dir = t_vectors("tokenizer");
    const char *path = t_printf("%s/ggml-vocab-gpt-2.gguf", dir ? dir : "");
    br_status st = {0};
    br_str json = {0};
    br_json_writer w;
    br_tok *a, *b;
    br_gguf *g;
    const char *text;

    if (!dir)
        t_skip("no ../shared/vectors here");
    t_ok(br_gguf_open(&g, path, &st), &st);
    t_ok(br_tok_from_gguf(&a, g, NULL, &st), &st);
    br_json_w_begin(&w, &json, 0);
    br_json_w_obj(&w);
    br_json_w_key(&w, "model");
    br_json_w_obj(&w);
    br_json_w_key(&w, "vocab");
    br_json_w_obj(&w);
    write_array(&w, br_gguf_find(g, "tokenizer.ggml.tokens"), true);
    br_json_w_obj_end(&w);
    br_json_w_key(&w, "merges");
    br_json_w_arr(&w);
    write_array(&w, br_gguf_find(g, "tokenizer.ggml.merges"), false);
    br_json_w_arr_end(&w);
    br_json_w_obj_end(&w);
    br_json_w_key(&w, "pre_tokenizer");
    br_json_w_raw(&w, BR_TEXT("{\"type\":\"ByteLevel\","
                              "\"add_prefix_space\":false}"));
    br_json_w_obj_end(&w);
    br_gguf_close(g);
    b = open_json(br_str_z(&json), "");
    br_str_fini(&json);
    text = t_read(t_printf("%s.inp", path), NULL);
    ck_assert_str_eq(tk_ids(a, text, 0), tk_ids(b, text, 0));
    br_tok_free(a);
    br_tok_free(b);
}

/* ---- folders and memory ------------------------------------------------ */

TEST(tok_open_takes_folders_files_and_names_what_is_wrong)
{
    const char *dir = t_tmpdir(), *json = bpe(BYTES_PRE);
    const char *config = "{\"eos_token\":\"abc\"}";
    br_status st = {0};
    br_tok *t;

    ck_assert_int_eq(br_tok_open(&t, dir, NULL, &st), BR_E_NOT_FOUND);
    t_write(t_printf("%s/tokenizer.json", dir), json, strlen(json));
    st = (br_status){0};
    t_ok(br_tok_open(&t, dir, NULL, &st), &st);
    ck_assert_int_eq(br_tok_role_id(t, BR_TOK_EOS), BR_TOK_NONE);
    br_tok_free(t);
    t_write(t_printf("%s/tokenizer_config.json", dir), config, strlen(config));
    t_ok(br_tok_open(&t, t_printf("%s/tokenizer.json", dir), NULL, &st), &st);
    ck_assert_int_eq(br_tok_role_id(t, BR_TOK_EOS), 257);
    br_tok_free(t);
    ck_assert_int_eq(br_tok_open(&t, dir, "gpt-2", &st), BR_E_USAGE);
    t_write(t_printf("%s/tokenizer.json", dir), "{", 1);
    st = (br_status){0};
    ck_assert_int_eq(br_tok_open(&t, dir, NULL, &st), BR_E_FORMAT);
    ck_assert_ptr_nonnull(strstr(st.msg, dir));
}

struct doc {
    const char *json, *config;
};

static br_code
load_once(void *arg, br_status *st)
{
    const struct doc *d = arg;
    br_tok *t;
    br_code code = load(&t, d->json, d->config, st);

    br_tok_free(t);
    return code;
}

TEST(tok_json_runs_out_of_memory_cleanly)
{
    struct doc d = {bpe(BYTES_PRE ",\"added_tokens\":[{\"id\":258,\"content\":"
                                  "\"<e>\",\"special\":true}]"),
                    "{\"eos_token\":\"<e>\",\"added_tokens_decoder\":{"
                    "\"259\":{\"content\":\"<u>\"}}}"};

    t_each_oom(load_once, &d);
    d.json = llama("\"pre_tokenizer\":{\"type\":\"Metaspace\"}");
    d.config = "";
    t_each_oom(load_once, &d);
}

TEST(tok_json_patterns_run_out_of_memory_cleanly)
{
    struct doc d = {bpe(SPLIT("x+y", "Isolated")), ""};
    br_status st = {0};
    br_tok *t;

    if (load(&t, d.json, "", &st) == BR_E_UNSUPPORTED)
        t_skip("built without PCRE2");
    br_tok_free(t);
    t_each_oom(load_once, &d);
}

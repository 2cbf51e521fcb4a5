/* fuzz_tokenize.c - any text on small vocabularies of every kind.
 *
 * The first byte picks the vocabulary and the flags, the rest is the text. In
 * byte-level BPE what comes back from the ids of valid UTF-8 is the text; ids
 * are below the vocabulary's size everywhere; a stream is valid UTF-8.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "model/tok_int.h"
#include "model/unicode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void
must(bool c)
{
    if (!c)
        abort();
}

#define BYTE_LEVEL(re)                                                       \
    "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":" \
    "\"Split\",\"pattern\":{\"Regex\":\"" re "\"},\"behavior\":\"Isolated\"" \
    "},{\"type\":\"ByteLevel\",\"use_regex\":false,\"add_prefix_space\":"    \
    "false}]},"
#define MERGES                                                           \
    "\"merges\":[\"a b\",\"b a\",\"ab a\",\"a a\",\"aa aa\",\"\xC4\xA0 " \
    "\xC4\xA0\",\"\xC4\xA0 a\",\"aa b\"]"

static void
letters(br_str *s)
{
    for (uint32_t b = 0; b < 256; b++) {
        char c[5] = {0};

        br_utf8_put(c, br_gpt2_letter((uint8_t)b));
        br_str_printf(s, "\"%s%s\":%u,", b == '"' || b == '\\' ? "\\" : "", c,
                      b);
    }
    br_str_puts(s, "\"ab\":256,\"ba\":257,\"aba\":258,\"aa\":259,\"aaaa\":260,"
                   "\"\xC4\xA0\xC4\xA0\":261,\"\xC4\xA0"
                   "a\":262,"
                   "\"aab\":263},");
}

static br_tok *
make(int kind)
{
    static const char byte_level[] =
        "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":"
        "false},";
    static const char *const pre[] = {
        BYTE_LEVEL("\\\\p{N}{1,3}"),
        BYTE_LEVEL("[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?[\\\\p{Lu}\\\\p{Lt}\\\\p{Lm}"
                   "\\\\p{Lo}\\\\p{M}]*[\\\\p{Ll}\\\\p{Lm}\\\\p{Lo}\\\\p{M}]+"
                   "|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?[\\\\p{Lu}\\\\p{Lt}"
                   "\\\\p{Lm}\\\\p{Lo}\\\\p{M}]+[\\\\p{Ll}\\\\p{Lm}\\\\p{Lo}"
                   "\\\\p{M}]*|\\\\p{N}| ?[^\\\\s\\\\p{L}\\\\p{N}]+"
                   "[\\\\r\\\\n/]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|"
                   "\\\\s+"),
        byte_level,
    };
    br_status st = {0};
    br_str s = {0};
    br_tok *t;

    br_str_puts(&s, "{\"added_tokens\":[{\"id\":300,\"content\":\"<s>\","
                    "\"special\":true},{\"id\":301,\"content\":\"<s><u>\","
                    "\"special\":false,\"lstrip\":true}],");
    if (kind < 3) {
        br_str_printf(&s, "%s\"model\":{\"type\":\"BPE\",\"vocab\":{",
                      pre[kind]);
        letters(&s);
        br_str_puts(&s, MERGES "}}");
    } else if (kind == 3) {
        br_str_puts(&s, "\"normalizer\":{\"type\":\"Replace\",\"pattern\":{"
                        "\"String\":\" \"},\"content\":\"\xE2\x96\x81\"},"
                        "\"model\":{\"type\":\"BPE\",\"vocab\":{");
        for (unsigned b = 0; b < 256; b++)
            br_str_printf(&s, "\"<0x%02X>\":%u,", b, b);
        br_str_puts(&s, "\"a\":256,\"b\":257,\"ab\":258,\"\xE2\x96\x81\":259,"
                        "\"\xE2\x96\x81"
                        "a\":260},\"merges\":[\"a b\","
                        "\"\xE2\x96\x81 a\"]}}");
    } else if (kind == 4) {
        br_str_puts(&s, "\"normalizer\":{\"type\":\"BertNormalizer\"},"
                        "\"model\":{\"type\":\"WordPiece\",\"unk_token\":"
                        "\"u\",\"vocab\":{\"u\":0,\"a\":1,\"##a\":2,\"##b\":3,"
                        "\"ab\":4,\"!\":5,\"e\":6}}}");
    } else {
        br_str_puts(&s, "\"pre_tokenizer\":{\"type\":\"Metaspace\"},"
                        "\"model\":{\"unk_id\":0,\"vocab\":[[\"u\",0],"
                        "[\"a\",-1.5],[\"b\",-2],[\"ab\",-2.75],"
                        "[\"\xE2\x96\x81\",-2],[\"\xC3\xA9\",-4]]}}");
    }
    if (br_tok_from_json(&t, (br_text){s.at, s.n}, BR_TEXT(""), &st) != BR_OK) {
        fprintf(stderr, "fuzz_tokenize: %s\n", st.msg);
        abort();
    }
    br_str_fini(&s);
    return t;
}

static void
check_stream(const br_tok *t, const br_tok_ids *ids)
{
    br_tok_stream stream;
    br_str s = {0};

    br_tok_stream_begin(&stream, t, true);
    for (size_t i = 0; i < ids->n; i++) {
        br_tok_stream_put(&stream, ids->at[i], &s);
        must(br_utf8_valid((br_text){br_str_z(&s), s.n}));
    }
    br_tok_stream_end(&stream, &s);
    must(br_utf8_valid((br_text){br_str_z(&s), s.n}));
    br_str_fini(&s);
}

static void
check(const br_tok *t, br_tok_work *w, br_text text, int flags)
{
    br_tok_ids ids = {0};
    br_status st = {0};
    br_str s = {0};
    bool strips = text.n && memmem(text.p, text.n, "<s><u>", 6);

    must(br_tok_encode(t, w, text, flags, &ids, &st) == BR_OK);
    for (size_t i = 0; i < ids.n; i++)
        must(ids.at[i] >= 0 && ids.at[i] < br_tok_count(t));
    must(br_tok_decode(t, ids.at, ids.n, BR_TOK_SHOW_SPECIAL, &s, &st) ==
         BR_OK);
    if (br_tok_kind_of(t) == BR_TOK_BPE && br_utf8_valid(text) && !strips)
        must(s.n == text.n && memcmp(br_str_z(&s), text.p, s.n) == 0);
    if (ids.n < 300)
        check_stream(t, &ids);
    br_str_fini(&s);
    br_vec_fini(&ids);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static br_tok *toks[6];
    static br_tok_work *work;
    int kind = size ? data[0] % 6 : 0, flags = size ? data[0] / 6 % 4 : 0;
    br_text text = {(const char *)data + 1, size ? size - 1 : 0};
    br_str many = {0};

    if (!work) {
        work = br_tok_work_new();
        must(work != NULL);
    }
    if (!toks[kind])
        toks[kind] = make(kind);
    if (size && data[0] >= 240) { /* longer than a window */
        while (text.n && many.n < 9000)
            br_str_put(&many, text.p, text.n);
        text = (br_text){br_str_z(&many), many.n};
    }
    check(toks[kind], work, text, flags);
    br_str_fini(&many);
    return 0;
}

/* test_tokenizer.c - tokenizers on small vocabularies.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tok_kit.h"

#include "base/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

T_ONE_THREAD();

enum { SPECIAL = BR_TOK_PARSE_SPECIAL, BOTH = SPECIAL | BR_TOK_ADD_SPECIAL };

TEST(tok_small_models_give_the_recorded_ids)
{
    br_arena a;
    br_json *cases;
    br_status st = {0};
    size_t n, k = 0;
    const char *text = t_read(t_repo("tests/data/tok/cases.json"), &n);

    br_arena_init(&a, 0);
    t_ok(br_json_parse(&cases, &a, text, n, 0, &st), &st);
    for (const br_json *c = cases->child; c; c = c->next, k++) {
        br_tok *t = tk_data(br_json_get(c, "vocab")->s);
        br_str want = {0};

        for (const br_json *x = br_json_get(c, "ids")->child; x; x = x->next)
            br_str_printf(&want, "%s%d", want.n ? " " : "", (int)x->i);
        ck_assert_str_eq(tk_ids(t, br_json_get(c, "text")->s, BOTH),
                         br_str_z(&want));
        br_str_fini(&want);
        br_tok_free(t);
    }
    ck_assert_uint_ge(k, 9);
    br_arena_fini(&a);
}

/* ---- special tokens ---------------------------------------------------- */

TEST(tok_text_does_not_pose_as_a_control_token)
{
    br_tok *t = tk_data("bpe.gguf");

    ck_assert_str_eq(tk_ids(t, "<|im_end|>", SPECIAL), "314");
    ck_assert_ptr_null(strstr(tk_ids(t, "<|im_end|>", 0), "314"));
    ck_assert_str_eq(tk_text(t, tk_ids(t, "<|im_end|>", 0), 0), "<|im_end|>");
    /* a user-defined token is found in any text */
    ck_assert_str_eq(tk_ids(t, "<think>", 0), "316");
    br_tok_free(t);
}

TEST(tok_the_longest_special_token_wins_and_the_leftmost_before_it)
{
    tk_vocab *v = t_keep(calloc(1, sizeof *v));
    br_tok *t;

    v->model = "gpt2";
    v->pre = "gpt-2";
    tk_add_letters(v);
    tk_merge(v, "a b");
    tk_add(v, "ab", BR_TOK_NORMAL, 0);        /* 256 */
    tk_add(v, "<s>", BR_TOK_CONTROL, 0);      /* 257 */
    tk_add(v, "<s><s>", BR_TOK_CONTROL, 0);   /* 258 */
    tk_add(v, "s><t", BR_TOK_CONTROL, 0);     /* 259 */
    tk_add(v, "<s><s><u", BR_TOK_CONTROL, 0); /* 260 */
    t = tk_open(v, NULL);
    ck_assert_str_eq(tk_ids(t, "ab<s>ab", SPECIAL), "256 257 256");
    ck_assert_str_eq(tk_ids(t, "<s><s><s>", SPECIAL), "258 257");
    ck_assert_str_eq(tk_ids(t, "<s><t", SPECIAL), "257 60 116");
    ck_assert_str_eq(tk_ids(t, "<s><s><v", SPECIAL), "258 60 118");
    ck_assert_str_eq(tk_ids(t, "", SPECIAL), "");
    br_tok_free(t);
}

static void
phi(br_gguf_writer *w)
{
    br_gguf_w_str(w, "general.name", BR_TEXT("Phi-3 mini"));
}

TEST(tok_phi3_control_tokens_swallow_the_blanks_after_them)
{
    tk_vocab *v = t_keep(calloc(1, sizeof *v));
    br_tok *t;

    v->model = "llama";
    v->scores = true;
    tk_add(v, "<unk>", BR_TOK_UNKNOWN, 0);
    tk_add(v, "<s>", BR_TOK_CONTROL, 0);
    tk_add(v, "</s>", BR_TOK_CONTROL, 0);
    tk_add_bytes(v);
    tk_add(v, "\xE2\x96\x81", BR_TOK_NORMAL, -1); /* 259 */
    tk_add(v, "a", BR_TOK_NORMAL, -1);            /* 260 */
    tk_add(v, "<|user|>", BR_TOK_CONTROL, 0);     /* 261 */
    t = tk_open(v, phi);
    ck_assert_str_eq(tk_ids(t, "<|user|> \n a", BOTH), "1 261 259 260");
    br_tok_free(t);
    t = tk_open(v, NULL);
    ck_assert_str_eq(tk_ids(t, "<|user|> a", BOTH), "1 261 259 259 260");
    br_tok_free(t);
}

/* ---- questions --------------------------------------------------------- */

TEST(tok_knows_roles_ends_and_types)
{
    br_tok *t = tk_data("bpe.gguf");
    size_t n;
    const int32_t *eog = br_tok_eog(t, &n);

    ck_assert_int_eq(br_tok_count(t), 320);
    ck_assert_str_eq(br_tok_pre_name(t), "qwen2");
    ck_assert_int_eq(br_tok_role_id(t, BR_TOK_BOS), 315);
    ck_assert_int_eq(br_tok_role_id(t, BR_TOK_EOS), 314);
    ck_assert_int_eq(br_tok_role_id(t, BR_TOK_MASK), BR_TOK_NONE);
    ck_assert_uint_eq(n, 2); /* <|endoftext|> and <|im_end|> */
    ck_assert(eog[0] == 312 && eog[1] == 314);
    ck_assert(br_tok_is_eog(t, 314) && !br_tok_is_eog(t, 315));
    ck_assert(br_tok_is_special(t, 313) && !br_tok_is_special(t, 316));
    ck_assert_int_eq(br_tok_type_of(t, 316), BR_TOK_USER);
    ck_assert_int_eq(br_tok_find(t, BR_TEXT("<|im_start|>")), 313);
    ck_assert_int_eq(br_tok_find(t, BR_TEXT("nothing")), BR_TOK_NONE);
    ck_assert_int_eq(br_tok_find(t, BR_TEXT("")), BR_TOK_NONE);
    ck_assert(br_text_is(br_tok_bytes(t, 256), " t"));
    ck_assert(br_text_is(br_tok_text(t, 256), "\xC4\xA0t"));
    ck_assert(br_tok_bytes(t, 320).n == 0 && br_tok_text(t, -1).n == 0);
    ck_assert(!br_tok_is_special(t, 320) && !br_tok_is_eog(t, -1));
    ck_assert_int_eq(br_tok_type_of(t, 320), BR_TOK_UNDEFINED);
    ck_assert(!br_tok_adds_bos(t) && !br_tok_adds_eos(t));
    br_tok_free(t);
}

TEST(tok_harmony_goes_on_after_end)
{
    tk_vocab *v = t_keep(calloc(1, sizeof *v));
    br_tok *t;
    int32_t end;

    v->model = "gpt2";
    v->pre = "gpt-4o";
    tk_add_letters(v);
    tk_merge(v, "a b");
    tk_add(v, "ab", BR_TOK_NORMAL, 0);
    end = tk_add(v, "<|end|>", BR_TOK_CONTROL, 0);
    t = tk_open(v, NULL);
    ck_assert(br_tok_is_eog(t, end));
    br_tok_free(t);
    tk_add(v, "<|return|>", BR_TOK_CONTROL, 0);
    tk_add(v, "<|call|>", BR_TOK_CONTROL, 0);
    t = tk_open(v, NULL);
    ck_assert(!br_tok_is_eog(t, end) && br_tok_is_eog(t, end + 1));
    ck_assert(br_tok_is_special(t, end));
    br_tok_free(t);
}

/* ---- SPM and MPE ------------------------------------------------------- */

TEST(tok_spm_falls_back_to_bytes)
{
    br_tok *t = tk_data("spm.gguf");

    /* 3 + byte: the tokens of E4 B8 96, and of a byte that is no UTF-8 */
    ck_assert_str_eq(tk_ids(t, "\xE4\xB8\x96", 0), "279 231 187 153");
    ck_assert_str_eq(tk_ids(t, "\xFF", 0), "279 258");
    ck_assert_str_eq(tk_text(t, "279 231 187 153", 0), "\xE4\xB8\x96");
    ck_assert_str_eq(tk_text(t, "1 279 231 187 153",
                             BR_TOK_SHOW_SPECIAL | BR_TOK_STRIP_SPECIAL),
                     " \xE4\xB8\x96");
    br_tok_free(t);
}

TEST(tok_mpe_takes_newlines_whole)
{
    br_tok *t = tk_data("mpe.gguf");
    const char *ids = tk_ids(t, "a\n\nb", 0);

    ck_assert_ptr_nonnull(
        strstr(ids, t_printf(" %d ", br_tok_find(t, BR_TEXT("\n\n")))));
    ck_assert_str_eq(tk_text(t, tk_ids(t, "a  b\n\xF0\x9F\x98\x80", 0), 0),
                     "a  b\n\xF0\x9F\x98\x80");
    br_tok_free(t);
}

/* ---- WPM and UGM ------------------------------------------------------- */

TEST(tok_wpm_takes_the_longest_piece_or_the_whole_word_is_unknown)
{
    tk_vocab *v = t_keep(calloc(1, sizeof *v));
    br_tok *t;

    v->model = "bert";
    for (int i = 0; i < 100; i++)
        tk_add(v, t_printf("[unused%d]", i), BR_TOK_UNUSED, 0);
    tk_add(v, "[UNK]", BR_TOK_UNKNOWN, 0); /* 100 */
    tk_add(v, "[CLS]", BR_TOK_CONTROL, 0);
    tk_add(v, "[SEP]", BR_TOK_CONTROL, 0);
    tk_add(v, "\xE2\x96\x81un", BR_TOK_NORMAL, 0); /* 103 */
    tk_add(v, "aff", BR_TOK_NORMAL, 0);
    tk_add(v, "able", BR_TOK_NORMAL, 0);
    tk_add(v, "\xE2\x96\x81!", BR_TOK_NORMAL, 0); /* 106 */
    tk_add(v, "\xE2\x96\x81\xE4\xB8\xAD", BR_TOK_NORMAL, 0);
    tk_add(v,
           "\xE2\x96\x81"
           "eau",
           BR_TOK_NORMAL, 0); /* 108 */
    t = tk_open(v, NULL);
    ck_assert_str_eq(tk_ids(t, "unaffable!", BR_TOK_ADD_SPECIAL),
                     "101 103 104 105 106 102");
    ck_assert_str_eq(tk_ids(t, "unaffablex UN", 0), "100 103");
    ck_assert_str_eq(tk_ids(t, "un\xE4\xB8\xADun", 0), "103 107 103");
    ck_assert_str_eq(tk_ids(t,
                            "\xC3\x89"
                            "A\xCC\x81U",
                            0),
                     "108");
    ck_assert_str_eq(tk_text(t, "103 104 105 106", 0), " unaffable!");
    br_tok_free(t);
}

static void
prefix(br_gguf_writer *w)
{
    br_gguf_w_bool(w, "tokenizer.ggml.add_space_prefix", true);
    br_gguf_w_bool(w, "tokenizer.ggml.remove_extra_whitespaces", true);
}

static void
t5(tk_vocab *v)
{
    v->model = "t5";
    v->scores = true;
    tk_add(v, "<pad>", BR_TOK_CONTROL, 0);
    tk_add(v, "</s>", BR_TOK_CONTROL, 0);
    tk_add(v, "<unk>", BR_TOK_UNKNOWN, 0);
    tk_add(v, "\xE2\x96\x81", BR_TOK_NORMAL, -2);
    tk_add(v, "a", BR_TOK_NORMAL, -3);
    tk_add(v, "b", BR_TOK_NORMAL, -3.5F);
    tk_add(v, "ab", BR_TOK_NORMAL, -5);
    tk_add(v,
           "\xE2\x96\x81"
           "ab",
           BR_TOK_NORMAL, -8.6F);
    tk_add(v, "ba", BR_TOK_NORMAL, -4);
    tk_add(v, "<x>", BR_TOK_USER, 0); /* 9 */
}

TEST(tok_ugm_finds_the_likeliest_spelling)
{
    tk_vocab *v = t_keep(calloc(1, sizeof *v));
    br_tok *t;

    t5(v);
    t = tk_open(v, prefix);
    ck_assert_str_eq(tk_ids(t, "ab", BR_TOK_ADD_SPECIAL), "3 6 1");
    ck_assert_str_eq(tk_ids(t, "aba", 0), "3 4 8");
    ck_assert_str_eq(tk_ids(t, "  ab   a ", 0), "3 6 3 4");
    ck_assert_str_eq(tk_ids(t, "aXYb", 0), "3 4 2 5");
    ck_assert_str_eq(tk_ids(t, "a<x>b", 0), "3 4 9 3 5");
    ck_assert_str_eq(tk_ids(t, "", 0), "");
    ck_assert_str_eq(tk_text(t, "3 6 3 4", 0), "ab a");
    br_tok_free(t);
}

/* Viterbi against trying all ways, with scores that leave no tie. */
struct ways {
    const tk_vocab *v;
    const char *text;
    double best;
    int ids[32], best_ids[32];
    int n_best;
};

static void
try_all(struct ways *w, size_t at, int n, double score)
{
    if (!w->text[at]) {
        if (score > w->best) {
            w->best = score;
            w->n_best = n;
            memcpy(w->best_ids, w->ids, sizeof w->ids);
        }
        return;
    }
    for (size_t i = 3; i < w->v->n; i++) {
        br_text x = w->v->text[i];

        if (strncmp(w->text + at, x.p, x.n) != 0)
            continue;
        w->ids[n] = (int)i;
        try_all(w, at + x.n, n + 1, score + (double)w->v->score[i]);
    }
}

TEST(tok_ugm_is_as_good_as_trying_all_ways)
{
    tk_vocab *v = t_keep(calloc(1, sizeof *v));
    uint64_t seed = 5;
    br_tok *t;

    v->model = "t5";
    v->scores = true;
    tk_add(v, "<pad>", BR_TOK_CONTROL, 0);
    tk_add(v, "</s>", BR_TOK_CONTROL, 0);
    tk_add(v, "<unk>", BR_TOK_UNKNOWN, 0);
    for (unsigned k = 2; k < 16; k++) { /* a b aa ab ba .. bbb */
        char s[4] = {0};
        unsigned n = k >= 8 ? 3 : k >= 4 ? 2 : 1;

        for (unsigned i = 0; i < n; i++)
            s[i] = (char)('a' + (k >> i & 1));
        tk_add(v, t_printf("%s", s), BR_TOK_NORMAL,
               -1.0F - (float)(t_rand(&seed) % 100000) * 1.0e-4F);
    }
    t = tk_open(v, NULL);
    for (int round = 0; round < 200; round++) {
        struct ways w = {.v = v, .best = -1e30};
        char text[12] = {0};
        br_str want = {0};

        for (size_t i = 0; i < 1 + (size_t)round % 11; i++)
            text[i] = (char)('a' + t_rand(&seed) % 2);
        w.text = text;
        try_all(&w, 0, 0, 0);
        for (int i = 0; i < w.n_best; i++)
            br_str_printf(&want, "%s%d", i ? " " : "", w.best_ids[i]);
        ck_assert_str_eq(tk_ids(t, text, 0), br_str_z(&want));
        br_str_fini(&want);
    }
    br_tok_free(t);
}

/* ---- long words -------------------------------------------------------- */

/* The definition: again and again the best pair, the leftmost of equals. */
static size_t
slow_merge(const tk_vocab *v, br_text text, int32_t *ids)
{
    size_t n = 0;

    for (size_t i = 0; i < text.n; i++)
        ids[n++] = (uint8_t)text.p[i]; /* letters are their own bytes */
    for (;;) {
        size_t best = SIZE_MAX, rank = SIZE_MAX;
        int32_t made = 0;

        for (size_t i = 0; i + 1 < n; i++)
            for (size_t m = 0; m < v->n_merges && m < rank; m++) {
                br_text a = v->text[ids[i]], b = v->text[ids[i + 1]];
                br_text x = v->merge[m];

                if (x.n == a.n + b.n + 1 && x.p[a.n] == ' ' &&
                    memcmp(x.p, a.p, a.n) == 0 &&
                    memcmp(x.p + a.n + 1, b.p, b.n) == 0) {
                    rank = m;
                    best = i;
                }
            }
        if (best == SIZE_MAX)
            return n;
        for (size_t k = 256; k < v->n; k++) {
            br_text x = v->merge[rank], y = v->text[k];
            size_t cut = (size_t)((char *)memchr(x.p, ' ', x.n) - x.p);

            if (y.n == x.n - 1 && memcmp(x.p, y.p, cut) == 0 &&
                memcmp(x.p + cut + 1, y.p + cut, y.n - cut) == 0)
                made = (int32_t)k;
        }
        ids[best] = made;
        memmove(ids + best + 1, ids + best + 2, (n - best - 2) * sizeof *ids);
        n--;
    }
}

/* Merges in any order, so that ranks do not rise with length. */
static void
random_merges(tk_vocab *v, uint64_t *seed, size_t n)
{
    static const char *const first[] = {"a", "b", "c"};
    br_text made[64];
    size_t k = 3;

    for (size_t i = 0; i < 3; i++)
        made[i] = br_text_z(first[i]);
    while (v->n_merges < n) {
        br_text a = made[t_rand(seed) % k], b = made[t_rand(seed) % k];
        const char *both = t_printf("%.*s%.*s", (int)a.n, a.p, (int)b.n, b.p);
        bool known = a.n + b.n > 9;

        for (size_t i = 256; i < v->n && !known; i++)
            known = br_text_is(v->text[i], both);
        if (known)
            continue;
        made[k++] = br_text_z(both);
        tk_add(v, both, BR_TOK_NORMAL, 0);
        tk_merge(v, t_printf("%.*s %.*s", (int)a.n, a.p, (int)b.n, b.p));
    }
    for (size_t i = v->n_merges; i > 1; i--) {
        size_t j = t_rand(seed) % i;
        br_text x = v->merge[i - 1];

        v->merge[i - 1] = v->merge[j];
        v->merge[j] = x;
    }
}

static void
compare_slow(const tk_vocab *v, const br_tok *t, br_tok_work *w, br_text text)
{
    int32_t *want = t_keep(malloc((text.n + 1) * sizeof *want));
    size_t n = slow_merge(v, text, want);
    br_tok_ids got = {0};
    br_status st = {0};

    t_ok(br_tok_encode(t, w, text, 0, &got, &st), &st);
    ck_assert_uint_eq(got.n, n);
    ck_assert_int_eq(memcmp(got.at, want, n * sizeof *want), 0);
    br_vec_fini(&got);
}

TEST_WITHIN(tok_merges_are_those_of_the_definition, 120)
{
    uint64_t seed = 1;

    for (int round = 0; round < 24; round++) {
        tk_vocab *v = t_keep(calloc(1, sizeof *v));
        br_tok_work *w = br_tok_work_new();
        br_tok *t;

        ck_assert_ptr_nonnull(w);
        v->model = "gpt2";
        v->pre = "gpt-2";
        tk_add_letters(v);
        random_merges(v, &seed, 4 + (size_t)round % 12);
        t = tk_open(v, NULL);
        for (size_t n = 2; n < 300; n = n * 3 / 2 + 1) {
            char text[300];

            for (size_t i = 0; i < n; i++)
                text[i] = (char)('a' + t_rand(&seed) % (2 + (size_t)round % 2));
            compare_slow(v, t, w, (br_text){text, n});
        }
        br_tok_free(t);
        br_tok_work_free(w);
    }
}

/* A word of several windows against the same word in one: a word that is
 * shorter than a window is one heap, and heaps are tested above. So the text
 * is built of a long word's own tokens, two by two, each pair alone. */
TEST_WITHIN(tok_windows_give_what_one_heap_gives, 120)
{
    uint64_t seed = 3;
    enum { N = 6000 };

    for (int round = 0; round < 4; round++) {
        tk_vocab *v = t_keep(calloc(1, sizeof *v));
        br_tok_work *w = br_tok_work_new();
        char *text = t_keep(malloc(N));
        br_tok *t;

        ck_assert_ptr_nonnull(w);
        v->model = "gpt2";
        v->pre = "gpt-2";
        tk_add_letters(v);
        random_merges(v, &seed, 14);
        t = tk_open(v, NULL);
        for (size_t i = 0; i < N; i++)
            text[i] = (char)('a' + (round == 0 ? 0 : t_rand(&seed) % 3));
        compare_slow(v, t, w, (br_text){text, N});
        br_tok_free(t);
        br_tok_work_free(w);
    }
}

/* ---- the cache --------------------------------------------------------- */

TEST(tok_work_serves_several_tokenizers)
{
    br_tok *a = tk_data("bpe.gguf"), *b = tk_data("mpe.gguf");
    br_tok_work *w = br_tok_work_new();
    br_status st = {0};
    br_tok_ids ids = {0};

    ck_assert_ptr_nonnull(w);
    for (int i = 0; i < 3; i++) {
        ids.n = 0;
        t_ok(
            br_tok_encode(i % 2 ? b : a, w, BR_TEXT("the other"), 0, &ids, &st),
            &st);
        ck_assert_int_eq(ids.at[0], i % 2 ? br_tok_find(b, BR_TEXT("t"))
                                          : br_tok_find(a, BR_TEXT("t")));
    }
    br_vec_fini(&ids);
    br_tok_work_free(w);
    br_tok_free(a);
    br_tok_free(b);
}

/* ---- streams ----------------------------------------------------------- */

static const char *
stream(const char *bytes, size_t n, size_t step)
{
    br_tok_stream s;
    br_str out = {0}, all = {0};
    const char *kept;

    br_tok_stream_begin(&s, NULL, false);
    for (size_t i = 0; i < n; i += step) {
        br_str_clear(&out);
        br_tok_stream_bytes(&s, (br_text){bytes + i, BR_MIN(step, n - i)},
                            &out);
        br_str_printf(&all, "%s|", br_str_z(&out));
    }
    br_str_clear(&out);
    br_tok_stream_end(&s, &out);
    br_str_printf(&all, "%s", br_str_z(&out));
    kept = t_printf("%s", br_str_z(&all));
    br_str_fini(&out);
    br_str_fini(&all);
    return kept;
}

#define BAD "\xEF\xBF\xBD"

TEST(tok_streams_hold_back_half_a_character)
{
    ck_assert_str_eq(stream("a\xE4\xB8\xAD"
                            "b",
                            5, 1),
                     "a|||\xE4\xB8\xAD|b|");
    ck_assert_str_eq(stream("\xF0\x9F\x98\x80!", 5, 3), "|\xF0\x9F\x98\x80!|");
    ck_assert_str_eq(stream("\xF0\x9F", 2, 1), "||" BAD);
}

TEST(tok_streams_are_valid_utf8_whatever_comes)
{
    ck_assert_str_eq(stream("\xE4\xB8"
                            "b",
                            3, 1),
                     "||" BAD "b|");
    ck_assert_str_eq(stream("\x80\xFF", 2, 1), BAD "|" BAD "|");
    ck_assert_str_eq(stream("\xC0\x80", 2, 2), BAD BAD "|");
    ck_assert_str_eq(stream("\xED\xA0\x80", 3, 3), BAD BAD BAD "|");
    ck_assert_str_eq(stream("\xF0\x9F\xE4\xB8\xAD", 5, 5), BAD "\xE4\xB8\xAD|");
    ck_assert_str_eq(stream("\xF4\x90\x80\x80", 4, 4), BAD BAD BAD BAD "|");
}

TEST(tok_streams_hide_control_tokens_unless_asked)
{
    br_tok *t = tk_data("bpe.gguf");
    br_tok_stream s;
    br_str out = {0};

    for (int show = 0; show < 2; show++) {
        br_str_clear(&out);
        br_tok_stream_begin(&s, t, show);
        br_tok_stream_put(&s, 313, &out);
        br_tok_stream_put(&s, 256, &out);
        br_tok_stream_put(&s, 999, &out);
        br_tok_stream_end(&s, &out);
        ck_assert_str_eq(br_str_z(&out), show ? "<|im_start|> t" : " t");
    }
    br_str_fini(&out);
    br_tok_free(t);
}

TEST(tok_decode_cleans_spaces_only_where_the_model_wants_it)
{
    tk_vocab *v = t_keep(calloc(1, sizeof *v));
    static const char dirty[] = "a ? b 's ' c 'll";
    br_tok *t;
    br_status st = {0};
    br_str out = {0};

    v->model = "gpt2";
    v->pre = "gpt-2";
    tk_add_letters(v);
    tk_merge(v, "a b");
    tk_add(v, "ab", BR_TOK_NORMAL, 0);
    t = tk_open(v, NULL);
    ck_assert_str_eq(tk_text(t, tk_ids(t, dirty, 0), 0), "a? b's'c 'll");
    br_tok_free(t);
    v->pre = "qwen2";
    t = tk_open(v, NULL);
    ck_assert_str_eq(tk_text(t, tk_ids(t, dirty, 0), 0), dirty);
    ck_assert_int_eq(br_tok_decode(t, (int32_t[]){1, 257}, 2, 0, &out, &st),
                     BR_E_FORMAT);
    ck_assert_str_eq(st.msg, "ids[1]: 257 is not below the 257 tokens");
    br_tok_free(t);
}

/* ---- files that lie ---------------------------------------------------- */

static void
refused(const tk_vocab *v, tk_more more, const char *why)
{
    br_str file = {0};
    br_status st = {0};
    br_tok *t;

    tk_file(v, more, &file);
    ck_assert_int_ne(tk_load(&t, &file, NULL, &st), BR_OK);
    ck_assert_ptr_null(t);
    ck_assert_msg(strstr(st.msg, why) != NULL, "'%s' has no '%s'", st.msg, why);
    br_str_fini(&file);
}

static tk_vocab *
small_bpe(void)
{
    tk_vocab *v = t_keep(calloc(1, sizeof *v));

    v->model = "gpt2";
    v->pre = "gpt-2";
    tk_add_letters(v);
    tk_merge(v, "a b");
    tk_add(v, "ab", BR_TOK_NORMAL, 0);
    return v;
}

static void
far_bos(br_gguf_writer *w)
{
    br_gguf_w_u32(w, "tokenizer.ggml.bos_token_id", 257);
}

static void
no_bos(br_gguf_writer *w)
{
    br_gguf_w_u32(w, "tokenizer.ggml.bos_token_id", UINT32_MAX);
    br_gguf_w_bool(w, "tokenizer.ggml.add_bos_token", true);
}

static void
odd_bool(br_gguf_writer *w)
{
    br_gguf_w_u32(w, "tokenizer.ggml.add_bos_token", 7);
}

static void
few_scores(br_gguf_writer *w)
{
    static const float f[3];

    br_gguf_w_array(w, "tokenizer.ggml.scores", BR_GGUF_F32, f, 3);
}

static void
text_types(br_gguf_writer *w)
{
    br_gguf_w_str(w, "tokenizer.ggml.token_type", BR_TEXT("x"));
}

TEST(tok_files_that_lie_are_refused)
{
    tk_vocab *v = small_bpe();

    refused(v, far_bos, "bos_token_id: 257 is not below 257");
    refused(v, no_bos, "it adds BOS, and does not say which");
    refused(v, odd_bool, "add_bos_token: it is no bool");
    refused(v, few_scores, "scores: 3 elements for 257 tokens");
    refused(v, text_types, "token_type: it is no array");
    v->pre = NULL;
    refused(v, NULL,
            "pre: missing, so how words are cut is not known: take a "
            "newer file of this model (brass tokenize --pre NAME ");
    v->pre = "qwen3";
    refused(v, NULL, "'qwen3' is not known; did you mean 'qwen2'?");
    v->pre = "gpt-2";
    v->model = "gpt3";
    refused(v, NULL, "model: 'gpt3' is not known");
    v->model = "rwkv";
    refused(v, NULL, "model: 'rwkv' is not known");
    v = small_bpe();
    v->type[3] = 9;
    refused(v, NULL, "token_type[3]: 9 is no type");
    v->type[3] = BR_TOK_BYTE;
    refused(v, NULL, "tokens[3]");
}

TEST(tok_vocabularies_that_lie_are_refused)
{
    tk_vocab *v = small_bpe();

    tk_add(v, "ab", BR_TOK_NORMAL, 0);
    refused(v, NULL, "tokens[257]: 'ab' is token 256 already");
    v = small_bpe();
    tk_merge(v, "a xyz");
    refused(v, NULL, "merges[1]: 'xyz' is no token");
    v = small_bpe();
    tk_merge(v, "b a");
    refused(v, NULL, "merges[1]: 'ba' is no token");
    v = small_bpe();
    tk_merge(v, "ab");
    refused(v, NULL, "merges[1]: 'ab' is not two parts");
    v = small_bpe();
    v->n_merges = 0;
    refused(v, NULL, "merges: missing");
    v = small_bpe();
    v->text['q'] = BR_TEXT("qq");
    refused(v, NULL, "no token stands for the byte 0x71");
    v = small_bpe();
    v->text[5] = (br_text){t_keep(calloc(1, 70000)), 70000};
    refused(v, NULL, "tokens[5]: 70000 bytes are more than 65535");
    v = small_bpe();
    v->model = "llama";
    v->scores = true;
    v->score[9] = NAN;
    refused(v, NULL, "scores[9]: it is not a number");
    v->model = "t5";
    v->score[9] = INFINITY;
    refused(v, NULL, "scores[9]: it is not finite");
}

/* The same pair of merges twice keeps the first; an empty spelling is no
 * token that could be found. */
TEST(tok_what_is_odd_but_harmless_is_taken)
{
    tk_vocab *v = small_bpe();
    br_tok *t;

    tk_add(v, "", BR_TOK_NORMAL, 0);
    tk_add(v, "", BR_TOK_NORMAL, 0);
    tk_merge(v, "a b");
    t = tk_open(v, NULL);
    ck_assert_str_eq(tk_ids(t, "abab", 0), "256 256");
    br_tok_free(t);
}

/* ---- memory ------------------------------------------------------------ */

static br_code
load_once(void *arg, br_status *st)
{
    br_tok *t;
    br_code code = tk_load(&t, arg, NULL, st);

    br_tok_free(t);
    return code;
}

TEST(tok_loading_runs_out_of_memory_cleanly)
{
    static const char *const names[] = {"bpe", "spm", "mpe"};
    tk_vocab *v = t_keep(calloc(1, sizeof *v));
    br_str file = {0};

    for (size_t i = 0; i < BR_COUNT(names); i++) {
        size_t n;
        char *p =
            t_read(t_repo(t_printf("tests/data/tok/%s.gguf", names[i])), &n);
        br_str whole = {p, n, n, false};

        t_each_oom(load_once, &whole);
    }
    t5(v);
    tk_file(v, prefix, &file);
    t_each_oom(load_once, &file);
    br_str_fini(&file);
}

static br_code
encode_once(void *arg, br_status *st)
{
    br_tok_work *w = br_tok_work_new();
    br_tok_ids ids = {0};
    br_str text = {0};
    br_code code;

    if (!w)
        return br_fail(st, BR_E_OOM, "no work");
    for (int i = 0; i < 2000; i++)
        br_str_puts(&text, "thean\xFF ");
    code = text.oom
               ? br_fail(st, BR_E_OOM, "no text")
               : br_tok_encode(arg, w, (br_text){text.at, text.n}, 0, &ids, st);
    if (code != BR_OK)
        ck_assert_uint_eq(ids.n, 0);
    br_str_fini(&text);
    br_vec_fini(&ids);
    br_tok_work_free(w);
    return code;
}

TEST(tok_encoding_runs_out_of_memory_cleanly)
{
    static const char *const names[] = {"bpe.gguf", "spm.gguf", "mpe.gguf"};

    for (size_t i = 0; i < BR_COUNT(names); i++) {
        br_tok *t = tk_data(names[i]);

        t_each_oom(encode_once, t);
        br_tok_free(t);
    }
}

TEST(tok_texts_over_the_limit_are_refused)
{
    br_tok *t = tk_data("bpe.gguf");
    br_tok_work *w = br_tok_work_new();
    br_tok_ids ids = {0};
    br_status st = {0};

    ck_assert_ptr_nonnull(w);
    ck_assert_int_eq(br_tok_encode(t, w,
                                   (br_text){"", (size_t)BR_TOK_MAX_TEXT + 1},
                                   0, &ids, &st),
                     BR_E_LIMIT);
    br_tok_work_free(w);
    br_tok_free(t);
}

/* With a tokenizer whose makers leave out blanks for people ("ok, it's"). */
TEST(cli_detokenize_prints_the_text_that_was_tokenized)
{
    static const char text[] = "ok , it 's\n  ... ! done";
    char *model = t_printf("%s", t_repo("models/demo.gguf"));
    t_proc ids, back;

    t_run(&ids, "tokenize", model, text, "--ids", "--no-bos");
    ck_assert_int_eq(ids.exit, 0);
    t_run(&back, "tokenize", model, "--detokenize", ids.out);
    ck_assert_int_eq(back.exit, 0);
    ck_assert_str_eq(back.out, text);
}

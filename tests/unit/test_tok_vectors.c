/* test_tok_vectors.c - ids and texts against those of a public engine.
 *
 * tokenizer/cases.json: 5,840 texts in 26 files; the .inp/.out pairs beside
 * it; `tokenize_check` of logits/cases.json.
 * SPDX-License-Identifier: Apache-2.0 */
#include "t.h"

#include "base/json.h"
#include "model/tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

T_ONE_THREAD();

static br_json *
parse(br_arena *a, const char *path)
{
    br_status st = {0};
    br_json *j;
    size_t n;
    const char *text = t_read(path, &n);

    t_ok(br_json_parse(&j, a, text, n, 0, &st), &st);
    return j;
}

static br_tok *
open_vocab(const char *path, const char *pre)
{
    br_status st = {0};
    br_gguf *g;
    br_tok *t;

    t_ok(br_gguf_open(&g, path, &st), &st);
    t_ok(br_tok_from_gguf(&t, g, pre, &st), &st);
    br_gguf_close(g);
    return t;
}

static size_t
unhex(const char *h, size_t n, char *to)
{
    for (size_t i = 0; i + 1 < n; i += 2) {
        unsigned v = 0;

        ck_assert_int_eq(sscanf((char[]){h[i], h[i + 1], 0}, "%x", &v), 1);
        to[i / 2] = (char)v;
    }
    return n / 2;
}

static const char *
ids_text(const int32_t *ids, size_t n)
{
    br_str s = {0};
    const char *kept;

    for (size_t i = 0; i < n; i++)
        br_str_printf(&s, "%d ", ids[i]);
    kept = t_printf("%s", br_str_z(&s));
    br_str_fini(&s);
    return kept;
}

struct sum {
    size_t n, bad;
};

static bool
same_ids(const br_tok_ids *got, const br_json *want)
{
    const br_json *x;
    size_t i = 0;

    if (got->n != want->n)
        return false;
    for (x = want->child; x; x = x->next, i++)
        if (x->i != got->at[i])
            return false;
    return true;
}

static void
complain(const char *what, const char *text, const br_tok_ids *got,
         const br_json *want)
{
    br_str s = {0};

    for (const br_json *x = want->child; x; x = x->next)
        br_str_printf(&s, "%d ", (int)x->i);
    fprintf(stderr, "%s: %s\n  want %s\n  got  %s\n", what, text, br_str_z(&s),
            ids_text(got->at, got->n));
    br_str_fini(&s);
}

static void
check_decode(const br_tok *t, const br_tok_ids *ids, const br_json *want,
             const char *what, struct sum *sum)
{
    br_status st = {0};
    br_str out = {0};
    char *bytes;
    size_t n;

    if (!want)
        return;
    bytes = t_keep(malloc(want->n / 2 + 1));
    n = unhex(want->s, want->n, bytes);
    t_ok(br_tok_decode(t, ids->at, ids->n, BR_TOK_SHOW_SPECIAL, &out, &st),
         &st);
    if (out.n != n || memcmp(br_str_z(&out), bytes, n) != 0) {
        if (sum->bad++ < 5)
            fprintf(stderr, "%s: detok of %s\n  got \"%s\"\n", what,
                    ids_text(ids->at, ids->n), br_str_z(&out));
    }
    br_str_fini(&out);
}

static void
check_case(const br_tok *t, br_tok_work *w, const br_json *c, const char *what,
           struct sum *sum)
{
    const br_json *hex = br_json_get(c, "text_hex");
    const br_json *want = br_json_get(c, "ids");
    char *text = t_keep(malloc(hex->n / 2 + 1));
    br_status st = {0};
    br_tok_ids ids = {0};
    int flags = (br_json_get(c, "add_special")->i ? BR_TOK_ADD_SPECIAL : 0) |
                (br_json_get(c, "parse_special")->i ? BR_TOK_PARSE_SPECIAL : 0);
    size_t n = unhex(hex->s, hex->n, text);

    t_ok(br_tok_encode(t, w, (br_text){text, n}, flags, &ids, &st), &st);
    sum->n++;
    if (!same_ids(&ids, want)) {
        if (sum->bad++ < 5)
            complain(what, hex->s, &ids, want);
    } else {
        check_decode(t, &ids, br_json_get(c, "detok_hex"), what, sum);
    }
    br_vec_fini(&ids);
}

TEST_WITHIN(tok_gives_the_ids_of_all_cases, 120)
{
    const char *dir = t_vectors("tokenizer");
    br_arena a;
    struct sum sum = {0};
    br_tok_work *w;

    if (!dir)
        t_skip("no ../shared/vectors here");
    w = br_tok_work_new();
    ck_assert_ptr_nonnull(w);
    br_arena_init(&a, 0);
    for (const br_json *f =
             br_json_get(parse(&a, t_printf("%s/cases.json", dir)), "files")
                 ->child;
         f; f = f->next) {
        const char *name = br_json_get(f, "file")->s;
        const br_json *pre = br_json_get(f, "pre_override"), *cases;
        br_tok *t =
            open_vocab(t_printf("%s/%s", dir, br_json_get(f, "vocab")->s),
                       pre->kind == BR_J_STR ? pre->s : NULL);

        cases = br_json_get(parse(&a, t_printf("%s/%s", dir, name)), "cases");
        ck_assert_int_eq(cases->n, br_json_get(f, "n")->i);
        for (const br_json *c = cases->child; c; c = c->next)
            check_case(t, w, c, name, &sum);
        br_tok_free(t);
    }
    br_tok_work_free(w);
    br_arena_fini(&a);
    ck_assert_uint_eq(sum.n, 5840);
    ck_assert_msg(sum.bad == 0, "%zu wrong", sum.bad);
}

/* One text of a .inp file, whose ids are one line of the .out file. */
static size_t
check_pair(const br_tok *t, br_tok_work *w, br_text text, const char **line)
{
    br_status st = {0};
    br_tok_ids ids = {0};
    size_t bad = 0;

    t_ok(br_tok_encode(t, w, text, 0, &ids, &st), &st);
    for (size_t i = 0; i < ids.n; i++) {
        char *end;

        bad += strtol(*line, &end, 10) != ids.at[i] || end == *line;
        *line = end;
    }
    *line += strspn(*line, " ");
    bad += **line != '\n';
    *line += strcspn(*line, "\n");
    *line += **line == '\n';
    if (bad)
        fprintf(stderr, "\"%.*s\": got %s\n", (int)text.n, text.p,
                ids_text(ids.at, ids.n));
    br_vec_fini(&ids);
    return bad;
}

TEST(tok_gives_the_ids_of_the_upstream_pairs)
{
    static const char mark[] = "\n__ggml_vocab_test__\n";
    const char *dir = t_vectors("tokenizer");
    br_tok_work *w;
    size_t texts = 0, bad = 0;

    if (!dir)
        t_skip("no ../shared/vectors here");
    w = br_tok_work_new();
    ck_assert_ptr_nonnull(w);
    for (char **f = t_ls(dir, ".gguf"); *f; f++) {
        const char *path = t_printf("%s/%s", dir, *f);
        br_tok *t = open_vocab(path, NULL);
        const char *in = t_read(t_printf("%s.inp", path), NULL);
        const char *line = t_read(t_printf("%s.out", path), NULL), *end;

        for (; (end = strstr(in, mark)); in = end + strlen(mark), texts++)
            bad += check_pair(t, w, (br_text){in, (size_t)(end - in)}, &line);
        br_tok_free(t);
    }
    br_tok_work_free(w);
    ck_assert_uint_ge(texts, 4 * 46);
    ck_assert_uint_eq(bad, 0);
}

TEST(tok_gives_the_ids_of_the_logits_cases)
{
    const char *dir = t_vectors("logits");
    br_arena a;
    br_tok_work *w;
    size_t n = 0, bad = 0;

    if (!dir)
        t_skip("no ../shared/vectors here");
    w = br_tok_work_new();
    ck_assert_ptr_nonnull(w);
    br_arena_init(&a, 0);
    for (const br_json *c = parse(&a, t_printf("%s/cases.json", dir))->child; c;
         c = c->next) {
        br_tok *t = open_vocab(
            t_printf("%s/%s", dir, br_json_get(c, "model")->s), NULL);

        for (const br_json *k = br_json_get(c, "tokenize_check")->child; k;
             k = k->next, n++) {
            const br_json *text = br_json_get(k, "text");
            br_status st = {0};
            br_tok_ids ids = {0};

            t_ok(br_tok_encode(t, w, (br_text){text->s, text->n},
                               BR_TOK_ADD_SPECIAL | BR_TOK_PARSE_SPECIAL, &ids,
                               &st),
                 &st);
            if (!same_ids(&ids, br_json_get(k, "ids"))) {
                complain(br_json_get(c, "name")->s, text->s, &ids,
                         br_json_get(k, "ids"));
                bad++;
            }
            br_vec_fini(&ids);
        }
        br_tok_free(t);
    }
    br_tok_work_free(w);
    br_arena_fini(&a);
    ck_assert_uint_ge(n, 44);
    ck_assert_uint_eq(bad, 0);
}

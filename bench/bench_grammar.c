/* bench_grammar.c - what the mask of a token costs.
 *
 *   bench_grammar [MODEL]   a GGUF file or tokenizer.json; without: a made-up
 *                           vocabulary of 150,000 tokens
 *
 * Answers are drawn at random under each grammar: the first with nothing kept,
 * then 100 more, as a server has them that was asked before. Time is that of
 * this process; a mask's includes writing -inf into the logits.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/rng.h"
#include "kit.h"
#include "model/tok_int.h"
#include "model/unicode.h"
#include "run/grammar.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VOCAB = 150000, ANSWERS = 101, LONGEST = 200 };

static void
add(br_json_writer *w, int *n, const char *text, size_t len)
{
    br_str s = {0};

    for (const char *end = text + len; text < end; text++) {
        char c[4];

        br_str_put(&s, c, br_utf8_put(c, br_gpt2_letter((uint8_t)*text)));
    }
    br_json_w_key_n(w, (br_text){br_str_z(&s), s.n});
    br_json_w_i64(w, (*n)++);
    br_str_fini(&s);
}

/* Words with and without a space, a capital and marks, in equal parts. */
static br_tok *
make(void)
{
    static const char *const parts[] = {"ba", "ter", "ing", "o", "qu", "strа",
                                        "ne", "l",   "ex",  "y", "ми", "de"};
    static const char *const ends[] = {"", "\"", "\":", ",", "\",", ".", "_"};
    br_str doc = {0};
    br_status st = {0};
    br_json_writer w;
    br_tok *t;
    br_rng r;
    int n = 0;

    br_rng_init(&r, 1, 0);
    br_json_w_begin(&w, &doc, 0);
    w.utf8 = true;
    br_json_w_obj(&w);
    br_json_w_key(&w, "added_tokens");
    br_json_w_raw(&w, BR_TEXT("[{\"id\":150000,\"content\":\"</s>\",\"special\""
                              ":true}]"));
    br_json_w_key(&w, "pre_tokenizer");
    br_json_w_raw(&w, BR_TEXT("{\"type\":\"ByteLevel\",\"add_prefix_space\":"
                              "false,\"use_regex\":true}"));
    br_json_w_key(&w, "model");
    br_json_w_obj(&w);
    br_json_w_key_strz(&w, "type", "BPE");
    br_json_w_key(&w, "vocab");
    br_json_w_obj(&w);
    for (int b = 0; b < 256; b++)
        add(&w, &n, (char[1]){(char)b}, 1);
    for (int i = 0; n < VOCAB; i++) {
        char x[96];
        int at = snprintf(x, sizeof x, "%s", i & 1 ? " " : "");

        for (int k = i; k; k /= 12)
            at += snprintf(x + at, sizeof x - (size_t)at, "%s", parts[k % 12]);
        snprintf(x + at, sizeof x - (size_t)at, "%s",
                 ends[br_rng_below(&r, 4) ? 0 : br_rng_below(&r, 7)]);
        add(&w, &n, x, strlen(x));
    }
    br_json_w_obj_end(&w);
    br_json_w_key(&w, "merges");
    br_json_w_raw(&w, BR_TEXT("[]"));
    br_json_w_obj_end(&w);
    br_json_w_obj_end(&w);
    must(br_tok_from_json(&t, (br_text){doc.at, doc.n},
                          BR_TEXT("{\"eos_token\":\"</s>\"}"), &st),
         &st);
    br_str_fini(&doc);
    return t;
}

/* A token that may come, at random; once it is long, a short one. */
static int32_t
draw(const br_tok *t, const float *logits, br_rng *r, int n_out)
{
    int32_t n = br_tok_count(t), from = (int32_t)br_rng_below(r, (uint32_t)n);
    int32_t any = -1;

    for (int32_t i = 0; i < n; i++) {
        int32_t id = (from + i) % n;

        if (logits[id] == -INFINITY)
            continue;
        any = any < 0 ? id : any;
        if (br_tok_is_eog(t, id) ||
            (n_out > 60 && strchr("\"]}", br_tok_bytes(t, id).p[0])))
            return id;
        if (n_out <= 60 && i > n / 2)
            break;
    }
    return any;
}

typedef struct cost {
    double sum_us, most_us;
    int n;
} cost;

static void
answer(br_grammar *g, const br_tok *t, float *logits, br_rng *r, cost *c)
{
    br_matcher *m;
    br_status st = {0};
    size_t bytes = (size_t)br_tok_count(t) * sizeof *logits;

    must(br_matcher_new(&m, g, &st), &st);
    for (int i = 0; i < LONGEST; i++) {
        int32_t id;
        double t0, us;

        memset(logits, 0, bytes);
        t0 = kit_cpu_ms();
        if (!br_matcher_mask(m, logits, br_tok_count(t)))
            must(BR_E_INTERNAL, &st);
        us = (kit_cpu_ms() - t0) * 1e3;
        c->sum_us += us;
        c->most_us = fmax(c->most_us, us);
        c->n++;
        id = draw(t, logits, r, i);
        if (br_tok_is_eog(t, id) || !br_matcher_accept(m, id))
            break;
    }
    br_matcher_free(m);
}

static void
run(const char *name, br_text text, const br_vocab *v, float *logits)
{
    br_grammar *g;
    br_status st = {0};
    cost first = {0}, rest = {0};
    double t0 = kit_cpu_ms(), made;
    br_rng r;

    br_rng_init(&r, 5, 0);
    must(br_grammar_new(&g, text, v, &st), &st);
    made = kit_cpu_ms() - t0;
    for (int i = 0; i < ANSWERS; i++)
        answer(g, v->tok, logits, &r, i ? &rest : &first);
    printf("%-10s compile %5.2f ms   first: %3d tokens, mean %7.1f us, most "
           "%7.1f   then: %5d tokens, mean %6.1f us, most %7.1f\n",
           name, made, first.n, first.sum_us / first.n, first.most_us, rest.n,
           rest.sum_us / rest.n, rest.most_us);
    br_grammar_free(g);
}

static void
run_schema(const char *name, const char *schema, const br_vocab *v,
           float *logits)
{
    br_json *tree = NULL;
    br_status st = {0};
    br_str text = {0};
    br_arena a;

    br_arena_init(&a, 0);
    if (schema)
        must(br_json_parse(&tree, &a, schema, strlen(schema), 0, &st), &st);
    must(br_schema_grammar(tree, &text, &st), &st);
    run(name, (br_text){text.at, text.n}, v, logits);
    br_str_fini(&text);
    br_arena_fini(&a);
}

int
main(int argc, char **argv)
{
    br_status st = {0};
    br_tok *t = NULL;
    br_vocab *v;
    float *logits;
    char cpu[128];
    double t0;

    if (argc > 1)
        must(br_tok_open(&t, argv[1], NULL, &st), &st);
    else
        t = make();
    kit_cpu(cpu, sizeof cpu);
    t0 = kit_cpu_ms();
    must(br_vocab_new(&v, t, NULL, &st), &st);
    printf("%s\n%d tokens, tree of %u nodes in %.0f ms\n", cpu, br_tok_count(t),
           v->n_nodes, kit_cpu_ms() - t0);
    logits = br_alloc((size_t)br_tok_count(t) * sizeof *logits);
    run("text", BR_TEXT("root ::= [^\\x00]*"), v, logits);
    run_schema("object", NULL, v, logits);
    run_schema("schema",
               "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":"
               "\"string\"},\"legs\":{\"type\":\"integer\",\"minimum\":0,"
               "\"maximum\":8},\"kind\":{\"enum\":[\"fox\",\"cat\",\"hen\"]},"
               "\"notes\":{\"type\":\"string\"},\"tags\":{\"type\":\"array\","
               "\"items\":{\"type\":\"string\"}},\"size\":{\"type\":\"number\","
               "\"minimum\":0}},\"required\":[\"name\",\"legs\",\"kind\","
               "\"notes\",\"tags\",\"size\"]}",
               v, logits);
    run_schema("bounded",
               "{\"type\":\"array\",\"items\":{\"type\":\"string\","
               "\"maxLength\":100}}",
               v, logits);
    br_free(logits);
    br_vocab_free(v);
    br_tok_free(t);
    return 0;
}

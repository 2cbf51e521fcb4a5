/* test_think.c - what models think, apart from what they answer.
 * SPDX-License-Identifier: Apache-2.0 */
#include "serve_kit.h"

#include "run/grammar.h"
#include "run/think.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char harmony[] = "<|channel|> <|message|>",
                  qwen[] = "<think></think>";

static void
hear(void *ctx, bool thought, br_text piece)
{
    br_str *s = ctx;

    br_str_puts(s, thought ? "~" : "");
    br_str_put(s, piece.p, piece.n);
    br_str_puts(s, thought ? "~" : "");
}

/* ~thought~text, pieces joined. */
static char *
read_in_pieces(const char *template, bool open, const char *text, size_t piece)
{
    br_think_reader r;
    br_str s = {0};
    size_t n = strlen(text);
    char *out, *seam;

    br_think_begin_in(&r, br_think_of(br_text_z(template)), open);
    for (size_t i = 0; i < n; i += piece)
        ck_assert(br_think_read(&r, (br_text){text + i, BR_MIN(piece, n - i)},
                                i + piece >= n, hear, &s));
    br_think_reader_fini(&r);
    out = t_printf("%s", br_str_z(&s));
    br_str_fini(&s);
    while ((seam = strstr(out, "~~")))
        memmove(seam, seam + 2, strlen(seam + 2) + 1);
    return out;
}

TEST(thoughts_are_told_from_answers_in_any_pieces)
{
    static const struct {
        const char *template;
        bool open;
        const char *text, *heard;
    } rows[] = {
        {qwen, false, "<think>\nA < B\n\n</think>\n\nYes </think>.",
         "~A < B~Yes </think>."},
        {qwen, false, "\n<think>A</think>B", "~A~B"},
        {qwen, false, " No <think>x</think>", " No <think>x</think>"},
        {qwen, false, "  ", "  "},
        {qwen, true, "A <think> b</think>C", "~A <think> b~C"},
        {qwen, true, "A</thin", "~A</thin~"},
        {"[THINK][/THINK]", false, "[THINK]A[/THINK]B", "~A~B"},
        {"<|channel><channel|>", false, "<|channel>thought\nA<channel|>B",
         "~A~B"},
        {harmony, false,
         "<|channel|>analysis<|message|>Hm<|end|><|start|>assistant<|channel|>"
         "commentary<|message|>Wait.<|end|><|start|>assistant<|channel|>final"
         "<|message|>Yes",
         "~Hm~Wait.Yes"},
        {harmony, false,
         "<|channel|>analysis<|message|>Hm<|end|><|start|>assistant<|channel|>"
         "commentary to=functions.a <|constrain|>json<|message|>{}",
         "~Hm~<|channel|>commentary to=functions.a <|constrain|>json<|message|>"
         "{}"},
        {harmony, false, "Plain", "Plain"},
    };

    for (size_t i = 0; i < BR_COUNT(rows); i++)
        for (size_t piece = 1; piece < 30; piece += 2)
            ck_assert_str_eq(read_in_pieces(rows[i].template, rows[i].open,
                                            rows[i].text, piece),
                             rows[i].heard);
    ck_assert_ptr_null(br_think_of(BR_TEXT("<think> only")));
    ck_assert(
        br_think_open(br_think_of(br_text_z(qwen)), BR_TEXT("x<think>\n")));
    ck_assert(!br_think_open(br_think_of(br_text_z(qwen)),
                             BR_TEXT("<think>\n\n</think>\n")));
}

/* Characters of s as tokens of one character each. */
static bool
feed(br_matcher *m, const br_tok *tok, const char *s)
{
    float *logits = malloc((size_t)br_tok_count(tok) * sizeof *logits);
    bool ok = true;

    for (; ok && *s; s++) {
        int32_t id = 0;

        while (!br_text_eq(br_tok_bytes(tok, id), (br_text){s, 1}))
            id++;
        memset(logits, 0, (size_t)br_tok_count(tok) * sizeof *logits);
        ck_assert(br_matcher_mask(m, logits, br_tok_count(tok)));
        ok = logits[id] > -INFINITY && br_matcher_accept(m, id);
    }
    free(logits);
    return ok;
}

TEST(a_grammar_begins_behind_the_thought)
{
    static const struct {
        const char *grammar, *text;
        bool open, ok, done;
    } rows[] = {
        {"root ::= \"no\"", "any<thing</think>no", true, true, true},
        {"root ::= \"no\"", "any</think>yes", true, false, false},
        {"root ::= \"no\"", "no", false, true, true},
        {"root ::= \"no\"", "<think>x</think>no", false, false, false},
        {"root ::= [^y]* \"n\"", "<think>yy</think>n", false, true, true},
        {"root ::= [^y]* \"n\"", "<think>yy</think>y", false, false, false},
        {"root ::= [^y]* \"n\"", "<thi", false, true, false},
        {"root ::= [^y]* \"n\"", "a<think>y", false, false, false},
    };
    br_status st = {0};
    br_vocab *vocab;
    br_tok *tok;

    t_ok(br_tok_open(&tok, t_repo("models/demo.gguf"), NULL, &st), &st);
    t_ok(br_vocab_new(&vocab, tok, NULL, &st), &st);
    for (size_t i = 0; i < BR_COUNT(rows); i++) {
        br_grammar *g;
        br_matcher *m;

        t_ok(br_grammar_new(&g, br_text_z(rows[i].grammar), vocab, &st), &st);
        t_ok(br_matcher_new(&m, g, &st), &st);
        br_matcher_after(m, "<think>", "</think>", rows[i].open);
        ck_assert_int_eq(feed(m, tok, rows[i].text), rows[i].ok);
        ck_assert(!rows[i].ok || br_matcher_done(m) == rows[i].done);
        br_matcher_free(m);
        br_grammar_free(g);
    }
    br_vocab_free(vocab);
    br_tok_free(tok);
}

/* ---- over HTTP ----------------------------------------------------------- */

#define TEMPLATE                                                       \
    "{% for m in messages %}{{ m.role }}{{ m.reasoning_content }}: "   \
    "{{ m.content }}{% endfor %}{% if enable_thinking is defined and " \
    "not enable_thinking %}<think></think>{% else %}<think>\n{% endif %}"

/* The prompt begins the thought, and the model never ends it. */
TEST(thoughts_in_each_api)
{
    static const struct {
        const char *path, *body, *whole, *stream;
    } rows[] = {
        {"POST /v1/chat/completions",
         "{\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"},{\"role\":"
         "\"assistant\",\"content\":\"A\",\"reasoning_content\":\"B\"}],"
         "\"max_tokens\":5",
         "\"content\":\"\",\"reasoning_content\":\"",
         "\"delta\":{\"reasoning_content\":\""},
        {"POST /v1/messages",
         "{\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"},{\"role\":"
         "\"assistant\",\"content\":[{\"type\":\"thinking\",\"thinking\":\"B\","
         "\"signature\":\"\"},{\"type\":\"text\",\"text\":\"A\"}]}],"
         "\"max_tokens\":5",
         "\"content\":[{\"type\":\"thinking\",\"thinking\":\"",
         "{\"type\":\"thinking_delta\",\"thinking\":\""},
        {"POST /v1/responses",
         "{\"input\":[{\"role\":\"user\",\"content\":\"Hi\"},{\"type\":"
         "\"reasoning\",\"content\":[{\"type\":\"reasoning_text\",\"text\":"
         "\"B\""
         "}]},{\"role\":\"assistant\",\"content\":\"A\"}],"
         "\"max_output_tokens\":5",
         "\"type\":\"reasoning\",\"status\":\"incomplete\",\"summary\":[],"
         "\"content\":[{\"type\":\"reasoning_text\",\"text\":\"",
         "\"type\":\"response.reasoning_text.delta\""},
    };
    sk k;

    sk_open(&k, &(sk_config){.template = TEMPLATE});
    for (size_t i = 0; i < BR_COUNT(rows); i++) {
        sk_answer a =
            sk_ask(&k, rows[i].path, "", t_printf("%s}", rows[i].body));

        ck_assert_int_eq(a.status, 200);
        ck_assert_msg(strstr(a.body, rows[i].whole), "%s", a.body);
        ck_assert_msg(i == 1 || strstr(a.body, "\"reasoning_tokens\":5"), "%s",
                      a.body);
        a = sk_ask(&k, rows[i].path, "",
                   t_printf("%s,\"stream\":true}", rows[i].body));
        ck_assert_msg(strstr(a.body, rows[i].stream), "%s", a.body);
    }
    /* what was thought before goes back to the template */
    ck_assert_ptr_nonnull(
        strstr(sk_ask(&k, "POST /apply-template", "",
                      "{\"messages\":[{\"role\":\"assistant\",\"content\":\"A\""
                      ",\"reasoning_content\":\"B\"}]}")
                   .body,
               "assistantB: A<think>"));
    sk_close(&k);
}

TEST(how_much_to_think)
{
    static const struct {
        const char *more;
        int status;
        const char *says;
    } rows[] = {
        {"", 200, "<think>\\n\""},
        {",\"reasoning_effort\":\"none\"", 200, "<think></think>"},
        {",\"reasoning_effort\":\"medium\"", 200, "<think>\\n\""},
        {",\"reasoning_effort\":\"high\"", 400,
         "\"reasoning_effort: the "
         "model's chat template "
         "has no reasoning effort "
         "'high'"},
        {",\"reasoning_effort\":\"huge\"", 400, "must be none"},
        {",\"chat_template_kwargs\":{\"enable_thinking\":false}", 200,
         "<think></think>"},
        {"", 200, "<think>\\n\""}, /* nothing is left of the one before */
        {",\"chat_template_kwargs\":{\"messages\":[]}", 400, "server's own"},
        {",\"chat_template_kwargs\":1", 400, "must be an object"},
    };
    sk k;
    sk_answer a;

    sk_open(&k, &(sk_config){.template = TEMPLATE});
    for (size_t i = 0; i < BR_COUNT(rows); i++) {
        a = sk_ask(&k, "POST /apply-template", "",
                   t_printf("{\"messages\":[{\"role\":\"user\",\"content\":"
                            "\"Hi\"}]%s}",
                            rows[i].more));
        ck_assert_int_eq(a.status, rows[i].status);
        ck_assert_msg(strstr(a.body, rows[i].says), "%zu: %s", i, a.body);
    }
    a = sk_ask(&k, "POST /v1/responses", "",
               "{\"input\":\"Hi\",\"reasoning\":{\"effort\":\"none\"},"
               "\"max_output_tokens\":3}");
    ck_assert_msg(a.status == 200 && strstr(a.body, "\"type\":\"message\""),
                  "%s", a.body);
    sk_close(&k);
}

/* Thoughts that would not end by themselves end when they are to, and the rest
 * is text; the same tokens again are those of the first time. */
TEST(a_thought_ends_when_its_tokens_are_used_up)
{
    static const struct {
        const char *path, *more, *has, *not ;
    } rows[] = {
        {"POST /v1/chat/completions", ",\"thinking_budget_tokens\":0",
         "\"content\":\"", "\"content\":\"\""},
        {"POST /v1/chat/completions", ",\"thinking_token_budget\":3",
         "\"reasoning_content\":\"", "\"content\":\"\""},
        {"POST /v1/chat/completions",
         ",\"thinking_token_budget\":3,\"response_format\":{\"type\":"
         "\"json_object\"}",
         "\"content\":\"{", "\"content\":\"\""},
        {"POST /v1/chat/completions", ",\"thinking_budget_tokens\":-1",
         "\"content\":\"\"", "\"stop\""},
        {"POST /v1/messages",
         ",\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":2}",
         "{\"type\":\"text\",\"text\":\"", "\"text\":\"\""},
        {"POST /v1/messages",
         ",\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":2,"
         "\"display\":\"omitted\"}",
         "{\"type\":\"text\",\"text\":\"", "thinking"},
        {"POST /v1/messages",
         ",\"thinking\":{\"type\":\"adaptive\"},\"output_config\":{"
         "\"effort\":\"max\"},\"context_management\":{\"edits\":[{\"type\":"
         "\"clear_thinking_20251015\",\"keep\":\"all\"}]}",
         "{\"type\":\"thinking\",\"thinking\":\"", "\"type\":\"text\""},
    };
    sk k;

    sk_open(&k, &(sk_config){.template = TEMPLATE});
    for (size_t i = 0; i < BR_COUNT(rows); i++) {
        char *body = t_printf("{\"messages\":[{\"role\":\"user\",\"content\":"
                              "\"Hi\"}],\"max_tokens\":24,\"temperature\":0%s}",
                              rows[i].more);
        sk_answer a = sk_ask(&k, rows[i].path, "", body);

        ck_assert_int_eq(a.status, 200);
        ck_assert_msg(strstr(a.body, rows[i].has) &&
                          !strstr(a.body, rows[i].not ),
                      "%zu: %s", i, a.body);
    }
    sk_close(&k);
}

/* Where the model shows no thoughts, a permission to think is no demand. */
TEST(who_may_think_need_not)
{
    static const struct {
        const char *more;
        int status;
        const char *says;
    } rows[] = {
        {"{\"type\":\"enabled\",\"budget_tokens\":1024}", 200, ""},
        {"{\"type\":\"adaptive\",\"display\":\"summarized\"}", 200, ""},
        {"{\"type\":\"disabled\"}", 200, ""},
        {"{\"type\":\"enabled\"}", 400, "budget_tokens"},
        {"{\"type\":\"enabled\",\"budget_tokens\":0}", 400, "budget_tokens"},
        {"{\"type\":\"enabled\",\"budget_tokens\":1e3}", 400, "budget_tokens"},
        {"{\"type\":\"adaptive\",\"budget_tokens\":1}", 400, "budget_tokens"},
        {"{\"type\":\"adaptive\",\"display\":\"x\"}", 400, "display"},
        {"{\"type\":\"deep\"}", 400, "thinking"},
        {"[]", 400, "thinking"},
        {"{}", 400, "thinking"},
    };
    sk k;

    sk_open(&k,
            &(sk_config){.template = "{% for m in messages %}{{ m.content }}"
                                     "{% endfor %}"});
    for (size_t i = 0; i < BR_COUNT(rows); i++) {
        sk_answer a =
            sk_ask(&k, "POST /v1/messages", "",
                   t_printf("{\"messages\":[{\"role\":\"user\",\"content\":"
                            "\"Hi\"}],\"max_tokens\":3,\"thinking\":%s}",
                            rows[i].more));

        ck_assert_msg(a.status == rows[i].status &&
                          strstr(a.body, rows[i].says),
                      "%zu: %d %s", i, a.status, a.body);
    }
    sk_close(&k);
}

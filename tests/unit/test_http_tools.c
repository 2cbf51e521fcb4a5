/* test_http_tools.c - tools: what models write, and what clients get of it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "serve_kit.h"

#include "run/toolcall.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of each family: what its template holds. */
static const char *const families[] = {
    "x <tool_call> \"arguments\"",
    "[TOOL_CALLS][",
    "[TOOL_CALLS] [ARGS]",
    "<｜tool▁sep｜> ```json",
    "<｜tool▁sep｜>",
    "Respond {\"name\": function, \"parameters\": ...}",
};

/* What the reader says, on one line. */
typedef struct heard {
    br_str s;
    int calls;
} heard;

static void
hear(void *ctx, br_tool_event e, br_text piece)
{
    heard *h = ctx;
    static const char *const marks[] = {"", "{", "", "}"};

    br_str_puts(&h->s, marks[e]);
    br_str_put(&h->s, piece.p ? piece.p : "", piece.n);
    br_str_puts(&h->s, e == BR_TOOL_BEGIN ? ":" : "");
    h->calls += e == BR_TOOL_END;
}

static char *
read_in_pieces(const br_tool_syntax *s, const char *text, size_t piece)
{
    br_tool_reader r = {.s = s};
    heard h = {0};
    size_t n = strlen(text);
    char *out;

    for (size_t i = 0; i < n; i += piece)
        ck_assert(br_tool_read(&r, (br_text){text + i, BR_MIN(piece, n - i)},
                               i + piece >= n, hear, &h));
    br_tool_reader_fini(&r);
    out = t_printf("%s", br_str_z(&h.s));
    br_str_fini(&h.s);
    return out;
}

TEST(calls_are_read_in_any_pieces)
{
    static const struct {
        int family;
        const char *text, *heard;
    } rows[] = {
        {0, "no <tool_calx", "no <tool_calx"},
        {0,
         "Well <<tool_call>\n{\"name\": \"a\", \"arguments\": "
         "{\"x\":\"}\\\"{\"}"
         "}\n</tool_call>\n<tool_call>\n{\"name\": \"b\", \"arguments\": {}}\n"
         "</tool_call>",
         "Well <{a:{\"x\":\"}\\\"{\"}}{b:{}}"},
        {1,
         "[TOOL_CALLS][{\"name\": \"a\", \"arguments\": {\"x\": [1]}}, "
         "{\"name\": \"b\", \"arguments\": {}}]",
         "{a:{\"x\": [1]}}{b:{}}"},
        {2, "[TOOL_CALLS]a[ARGS]{}[TOOL_CALLS]b[ARGS]{\"y\":1}",
         "{a:{}}{b:{\"y\":1}}"},
        {3,
         "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>a\n"
         "```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
         "{a:{}}"},
        {4,
         "Hm<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>a<｜tool▁sep｜>{}"
         "<｜tool▁call▁end｜><｜tool▁call▁begin｜>b<｜tool▁sep｜>{}"
         "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
         "Hm{a:{}}{b:{}}"},
        {5, "{\"name\": \"a\", \"parameters\": {\"q\":{}}}", "{a:{\"q\":{}}}"},
    };

    for (size_t i = 0; i < BR_COUNT(rows); i++)
        for (size_t piece = 1; piece < 40; piece += 3)
            ck_assert_str_eq(read_in_pieces(br_tool_syntax_of(br_text_z(
                                                families[rows[i].family])),
                                            rows[i].text, piece),
                             rows[i].heard);
    ck_assert_ptr_null(br_tool_syntax_of(BR_TEXT("<tool_call><function=")));
    ck_assert_ptr_null(br_tool_syntax_of(BR_TEXT("hello")));
}

TEST(calls_in_no_known_form_are_not_read)
{
    const br_tool_syntax *s = br_tool_syntax_of(br_text_z(families[0]));
    br_tool_reader r = {.s = s};
    heard h = {0};

    ck_assert(!br_tool_read(&r, BR_TEXT("<tool_call>{"), false, hear, &h));
    br_tool_reader_fini(&r);
    br_str_fini(&h.s);
}

/* ---- answers drawn under the grammar of tools ---------------------------- */

typedef struct drawn {
    br_tok *tok;
    br_vocab *vocab;
    float *logits;
} drawn;

/* Any token that may come; once it is long, marks that end things. */
static int32_t
draw(const drawn *d, uint64_t *seed, int n)
{
    static const char *const ends[] = {"}", "\"", "]", "<", "{", ":"};
    int32_t v = br_tok_count(d->tok), at = (int32_t)(t_rand(seed) % 2048);

    for (int32_t i = 0; n > 30 && i < v; i++)
        if (d->logits[i] > -INFINITY && br_tok_is_eog(d->tok, i))
            return i;
    for (size_t k = 0; n > 30 && k < BR_COUNT(ends); k++)
        for (int32_t i = 0; i < v; i++)
            if (d->logits[i] > -INFINITY &&
                br_text_is(br_tok_bytes(d->tok, i), ends[k]))
                return i;
    for (int32_t i = 0; i < v; i++, at = (at + 1) % v)
        if (d->logits[at] > -INFINITY)
            return at;
    ck_abort_msg("nothing may come");
}

static int
draw_answer(const drawn *d, const br_tool_syntax *s, br_grammar *g,
            uint64_t *seed)
{
    br_matcher *m;
    br_status st = {0};
    br_tool_reader r = {.s = s};
    heard h = {0};
    bool over = false;

    t_ok(br_matcher_new(&m, g, &st), &st);
    for (int n = 0; n < 300 && !over; n++) {
        int32_t id;

        memset(d->logits, 0, (size_t)br_tok_count(d->tok) * sizeof(float));
        ck_assert(br_matcher_mask(m, d->logits, br_tok_count(d->tok)));
        id = draw(d, seed, n);
        over = br_tok_is_eog(d->tok, id);
        ck_assert(over || br_matcher_accept(m, id));
        ck_assert(br_tool_read(
            &r, over ? BR_TEXT("") : br_tok_bytes(d->tok, id), over, hear, &h));
    }
    ck_assert(over);
    br_matcher_free(m);
    br_tool_reader_fini(&r);
    br_str_fini(&h.s);
    return h.calls;
}

TEST(answers_with_tools_are_read_as_they_were_made)
{
    static const char schema[] =
        "{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\","
        "\"minimum\":1,\"maximum\":9}},\"required\":[\"n\"]}";
    br_json *tree;
    br_status st = {0};
    uint64_t seed = 3;
    br_arena a;
    drawn d;

    br_arena_init(&a, 0);
    t_ok(br_json_parse(&tree, &a, schema, strlen(schema), 0, &st), &st);
    t_ok(br_tok_open(&d.tok, t_repo("models/demo.gguf"), NULL, &st), &st);
    t_ok(br_vocab_new(&d.vocab, d.tok, NULL, &st), &st);
    d.logits = malloc((size_t)br_tok_count(d.tok) * sizeof(float));
    for (size_t f = 0; f < BR_COUNT(families); f++) {
        const br_tool_syntax *s = br_tool_syntax_of(br_text_z(families[f]));
        const br_tool tools[] = {{"get_n", tree, true}, {"stop", NULL, false}};

        for (int choice = BR_TOOL_AUTO; choice <= BR_TOOL_REQUIRED; choice++) {
            br_str text = {0};
            br_grammar *g;

            t_ok(br_tool_grammar(s, tools, 2, (br_tool_choice)choice, f & 1,
                                 &text, &st),
                 &st);
            t_ok(br_grammar_new(&g, (br_text){text.at, text.n}, d.vocab, &st),
                 &st);
            for (int i = 0; i < 8; i++) {
                int calls = draw_answer(&d, s, g, &seed);

                ck_assert(choice == BR_TOOL_AUTO || calls == 1 ||
                          (calls > 1 && (f & 1)));
            }
            br_grammar_free(g);
            br_str_fini(&text);
        }
    }
    free(d.logits);
    br_vocab_free(d.vocab);
    br_tok_free(d.tok);
    br_arena_fini(&a);
}

/* ---- over HTTP ----------------------------------------------------------- */

#define TEMPLATE                                                             \
    "{% for t in tools or [] %}<tool_call>{{ t.function.name }}{% endfor %}" \
    "{% for m in messages %}{{ m.role }}: {{ m.content }}"                   \
    "{% for c in m.tool_calls or [] %}{{ c.function.name }}"                 \
    "{{ c.function.arguments | tojson }}{% endfor %}{% endfor %}\"arguments\""
#define TOOLS                                                                 \
    "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"weather\","   \
    "\"parameters\":{\"type\":\"object\",\"properties\":{\"city\":{\"enum\":" \
    "[\"Oslo\"]}},\"required\":[\"city\"]}}},{\"type\":\"function\","         \
    "\"function\":{\"name\":\"bed\",\"strict\":true}}]"
#define ASK "{\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}],"

static sk_answer
chat(const sk *k, const char *more)
{
    return sk_ask(k, "POST /v1/chat/completions", "",
                  t_printf(ASK TOOLS ",\"temperature\":0%s}", more));
}

TEST(a_named_tool_is_called)
{
    sk k;
    sk_answer a;
    const char *named = ",\"tool_choice\":{\"type\":\"function\",\"function\":"
                        "{\"name\":\"weather\"}}";

    sk_open(&k, &(sk_config){.template = TEMPLATE});
    a = chat(&k, named);
    ck_assert_int_eq(a.status, 200);
    ck_assert_ptr_nonnull(
        strstr(a.body, "\"content\":null,\"tool_calls\":[{\"id\":\"call_"));
    ck_assert_ptr_nonnull(strstr(
        a.body, "\"type\":\"function\",\"function\":{\"name\":\"weather\","
                "\"arguments\":\"{\\\"city\\\":\\\"Oslo\\\"}\"}}]"));
    ck_assert_ptr_nonnull(strstr(a.body, "\"finish_reason\":\"tool_calls\""));
    a = chat(&k, t_printf("%s,\"stream\":true", named));
    ck_assert_int_eq(a.status, 200);
    ck_assert_ptr_nonnull(
        strstr(a.body, "\"name\":\"weather\",\"arguments\":\"\"}}]}"));
    ck_assert_ptr_nonnull(strstr(a.body,
                                 "{\"tool_calls\":[{\"index\":0,\"function\":{"
                                 "\"arguments\":\"{"));
    ck_assert_ptr_null(strstr(a.body, "\"index\":1"));
    ck_assert_ptr_nonnull(strstr(a.body, "\"finish_reason\":\"tool_calls\""));
    sk_close(&k);
}

TEST(anthropic_tools)
{
    static const char ask[] =
        "{\"max_tokens\":100,\"temperature\":0,\"messages\":[{\"role\":"
        "\"user\",\"content\":\"Hi\"},{\"role\":\"assistant\",\"content\":["
        "{\"type\":\"text\",\"text\":\"I look\"},{\"type\":\"tool_use\","
        "\"id\":\"c1\",\"name\":\"weather\",\"input\":{\"city\":\"Oslo\"}}]},"
        "{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\","
        "\"tool_use_id\":\"c1\",\"content\":\"sun\"},{\"type\":\"text\","
        "\"text\":\"Again\"}]}],\"tools\":[{\"name\":\"weather\","
        "\"input_schema\":{\"type\":\"object\",\"properties\":{\"city\":{"
        "\"enum\":[\"Oslo\"]}},\"required\":[\"city\"]}}],\"tool_choice\":{"
        "\"type\":\"tool\",\"name\":\"weather\"}%s}";
    sk k;
    sk_answer a;

    sk_open(&k, &(sk_config){.template = TEMPLATE});
    a = sk_ask(&k, "POST /v1/messages", "", t_printf(ask, ""));
    ck_assert_msg(
        a.status == 200 &&
            strstr(a.body, "\"content\":[{\"type\":\"tool_use\"") &&
            strstr(a.body,
                   "\"name\":\"weather\",\"input\":{\"city\":\"Oslo\"}}]"
                   ",\"stop_reason\":\"tool_use\""),
        "%s", a.body);
    a = sk_ask(&k, "POST /v1/messages", "", t_printf(ask, ",\"stream\":true"));
    ck_assert_msg(a.status == 200 &&
                      strstr(a.body, "\"index\":0,\"content_block\":{\"type\":"
                                     "\"tool_use\"") &&
                      strstr(a.body, "\"type\":\"input_json_delta\","
                                     "\"partial_json\":\"{\"") &&
                      strstr(a.body, "{\"type\":\"content_block_stop\","
                                     "\"index\":0}") &&
                      strstr(a.body, "\"stop_reason\":\"tool_use\""),
                  "%s", a.body);
    sk_close(&k);
}

TEST(tools_that_are_not_called)
{
    sk k;
    sk_answer a;

    sk_open(&k, &(sk_config){.template = TEMPLATE});
    a = chat(&k, ",\"tool_choice\":\"none\",\"max_tokens\":4");
    ck_assert_int_eq(a.status, 200);
    ck_assert_ptr_null(strstr(a.body, "tool_calls"));
    a = chat(&k, ",\"max_tokens\":4");
    ck_assert_int_eq(a.status, 200);
    ck_assert_ptr_nonnull(strstr(a.body, "\"finish_reason\":\"length\""));
    /* what was called, and what came of it */
    a = sk_ask(
        &k, "POST /apply-template", "",
        "{\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"},{\"role\":"
        "\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"c1\","
        "\"type\":\"function\",\"function\":{\"name\":\"bed\","
        "\"arguments\":\"{\\\"a\\\": 1}\"}}]},{\"role\":\"tool\","
        "\"tool_call_id\":\"c1\",\"content\":\"soft\"}]}");
    ck_assert_msg(a.status == 200 && strstr(a.body, "bed{\\\"a\\\": 1}") &&
                      strstr(a.body, "tool: soft"),
                  "%s", a.body);
    sk_close(&k);
}

TEST(tools_that_are_refused)
{
    static const struct {
        const char *body, *says;
    } rows[] = {
        {ASK "\"tools\":[{\"type\":\"web\"}]}", "tools[0]: only functions"},
        {ASK "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"a b\"}"
             "}]}",
         "tools[0].name"},
        {ASK "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"a\","
             "\"strict\":true,\"parameters\":{\"type\":\"object\",\"not\":{}}}"
             "}]}",
         "'not'"},
        {ASK "\"tool_choice\":\"required\"}", "there are no tools"},
        {ASK TOOLS ",\"tool_choice\":{\"type\":\"function\",\"function\":{"
                   "\"name\":\"x\"}}}",
         "names none"},
        {ASK TOOLS ",\"response_format\":{\"type\":\"json_object\"}}",
         "another form"},
    };
    sk k;

    sk_open(&k, &(sk_config){.template = TEMPLATE});
    for (size_t i = 0; i < BR_COUNT(rows); i++) {
        sk_answer a = sk_ask(&k, "POST /v1/chat/completions", "", rows[i].body);

        ck_assert_int_eq(a.status, 400);
        ck_assert_msg(strstr(a.body, rows[i].says), "%s", a.body);
    }
    sk_close(&k);
    sk_open(&k, &(sk_config){0});
    ck_assert_int_eq(chat(&k, "").status, 400); /* its template knows none */
    sk_close(&k);
}

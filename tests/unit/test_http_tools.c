/* test_http_tools.c - tools: what models write, and what clients get of it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "serve_kit.h"

#include "http/ask.h"
#include "run/toolcall.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

T_THREADS_OF("answers_with_tools_are_read_as_they_were_made");

/* Of each family: what its template holds. */
static const char *const families[] = {
    "x <tool_call> \"arguments\"",
    "[TOOL_CALLS][",
    "[TOOL_CALLS] [ARGS]",
    "<｜tool▁sep｜> ```json",
    "<｜tool▁sep｜>",
    "Respond {\"name\": function, \"parameters\": ...}",
    "<tool_call> <function=x> <parameter=y>",
    "<tool_call> <arg_key> <arg_value>",
    "<minimax:tool_call>",
    "<|tool_call_begin|> <|tool_call_argument_begin|>",
    "<|channel|> functions.",
};

/* Of tool a: w is a text, n and o are not. */
static const char schema[] =
    "{\"type\":\"object\",\"properties\":{\"w\":{\"type\":\"string\"},"
    "\"n\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":9},"
    "\"o\":{\"$ref\":\"#/$defs/o\"},\"e\":{\"enum\":[\"up\",\"down\"]}},"
    "\"$defs\":{\"o\":{\"type\":\"array\",\"items\":{\"type\":\"string\"},"
    "\"maxItems\":1}},\"required\":[\"n\"],\"additionalProperties\":false}";

static br_tool
tool_a(br_arena *a)
{
    br_status st = {0};
    br_json *tree;

    br_arena_init(a, 0);
    t_ok(br_json_parse(&tree, a, schema, strlen(schema), 0, &st), &st);
    return (br_tool){"a", tree, true};
}

/* What the reader says, on one line. */
typedef struct heard {
    br_str s, args; /* args: of the latest call */
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
    if (e == BR_TOOL_BEGIN)
        br_str_clear(&h->args);
    if (e == BR_TOOL_ARGS)
        br_str_put(&h->args, piece.p, piece.n);
    if (e == BR_TOOL_END) {
        br_status st = {0};
        br_json *tree;
        br_arena a;

        br_arena_init(&a, 0);
        t_ok(br_json_parse(&tree, &a, br_str_z(&h->args), h->args.n, 0, &st),
             &st);
        br_arena_fini(&a);
    }
}

static char *
read_in_pieces(const br_tool_syntax *s, const char *text, size_t piece)
{
    br_arena a;
    br_tool tools[] = {tool_a(&a)};
    br_tool_reader r = {.s = s, .tools = tools, .n_tools = 1};
    heard h = {0};
    size_t n = strlen(text);
    char *out;

    for (size_t i = 0; i < n; i += piece)
        ck_assert(br_tool_read(&r, (br_text){text + i, BR_MIN(piece, n - i)},
                               i + piece >= n, hear, &h));
    br_tool_reader_fini(&r);
    br_arena_fini(&a);
    out = t_printf("%s", br_str_z(&h.s));
    br_str_fini(&h.s);
    br_str_fini(&h.args);
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
        {6,
         "So\n\n<tool_call>\n<function=a>\n<parameter=w>\n \"1\"\n</par\n"
         "</parameter>\n<parameter=n>\n7\n</parameter>\n</function>\n"
         "</tool_call>\n<tool_call>\n<function=b>\n</function>\n</tool_call>",
         "So\n\n{a:{\"w\":\" \\\"1\\\"\\n</par\",\"n\":7}}{b:{}}"},
        {7,
         "<tool_call>a\n<arg_key>o</arg_key>\n<arg_value>[\"</arg_value>\\n"
         "\"]</arg_value>\n<arg_key>w</arg_key>\n<arg_value></arg_value>\n"
         "</tool_call>",
         "{a:{\"o\":[\"</arg_value>\\n\"],\"w\":\"\"}}"},
        {8,
         "<minimax:tool_call>\n<invoke name=\"a\">\n<parameter name=\"e\">up"
         "</parameter>\n</invoke>\n<invoke name=\"b\">\n<parameter name=\"z\""
         ">1</parameter>\n</invoke>\n</minimax:tool_call>",
         "{a:{\"e\":\"up\"}}{b:{\"z\":\"1\"}}"},
        {9,
         "Hm<|tool_calls_section_begin|><|tool_call_begin|>functions.a:0"
         "<|tool_call_argument_begin|>{\"n\": 1}<|tool_call_end|>"
         "<|tool_call_begin|>functions.b:12<|tool_call_argument_begin|>{}"
         "<|tool_call_end|><|tool_calls_section_end|>",
         "Hm{a:{\"n\": 1}}{b:{}}"},
        {10,
         "<|channel|>commentary to=functions.a <|constrain|>json<|message|>"
         "{\"n\":1}",
         "{a:{\"n\":1}}"},
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

/* The token that is this character, where it may come; or -1. */
static int32_t
character(const drawn *d, char c)
{
    const char z[] = {c, 0};

    for (int32_t i = 0; i < br_tok_count(d->tok); i++)
        if (d->logits[i] > -INFINITY && br_text_is(br_tok_bytes(d->tok, i), z))
            return i;
    return -1;
}

/* Any token that may come; once it is long, the end, or what leads there: the
 * next of `way`, of which *at have come, or marks that end things. */
static int32_t
draw(const drawn *d, uint64_t *seed, int n, const char *way, size_t *at)
{
    static const char ends[] = "}\"]<{:";
    int32_t v = br_tok_count(d->tok), id = (int32_t)(t_rand(seed) % 2048);

    for (int32_t i = 0; n > 30 && i < v; i++)
        if (d->logits[i] > -INFINITY && br_tok_is_eog(d->tok, i))
            return i;
    if (n > 30) {
        if (character(d, way[*at]) < 0)
            *at = 0;
        if (character(d, way[*at]) >= 0) {
            char c = way[*at];

            *at = way[*at + 1] ? *at + 1 : 0;
            return character(d, c);
        }
        for (size_t k = 0; ends[k]; k++)
            if (character(d, ends[k]) >= 0)
                return character(d, ends[k]);
    }
    for (int32_t i = 0; i < v; i++, id = (id + 1) % v)
        if (d->logits[id] > -INFINITY)
            return id;
    ck_abort_msg("nothing may come");
}

static int
draw_answer(const drawn *d, br_tool_reader r, br_grammar *g, bool must,
            uint64_t *seed)
{
    const char *way = "\"";
    size_t at = 0;
    br_matcher *m;
    br_status st = {0};
    heard h = {0};
    bool over = false;

    if (r.s->key)
        way = t_printf("\"%s", r.s->end);
    else if (r.s->close)
        way = t_printf("%s\"", r.s->close);
    else if (r.s->before)
        way = must ? "\"<|end|><|start|>assistant<|channel|>commentary to="
                   : "\"<|end|><|start|>assistant<|channel|>final<|message|>";

    t_ok(br_matcher_new(&m, g, &st), &st);
    for (int n = 0; n < 400 && !over; n++) {
        int32_t id;

        memset(d->logits, 0, (size_t)br_tok_count(d->tok) * sizeof(float));
        ck_assert(br_matcher_mask(m, d->logits, br_tok_count(d->tok)));
        id = draw(d, seed, n, way, &at);
        over = br_tok_is_eog(d->tok, id);
        ck_assert(over || br_matcher_accept(m, id));
        ck_assert(br_tool_read(
            &r, over ? BR_TEXT("") : br_tok_bytes(d->tok, id), over, hear, &h));
    }
    ck_assert_msg(over, "%s: %s", r.s->needle, br_str_z(&h.s));
    br_matcher_free(m);
    br_tool_reader_fini(&r);
    br_str_fini(&h.s);
    br_str_fini(&h.args);
    return h.calls;
}

TEST(answers_with_tools_are_read_as_they_were_made)
{
    br_status st = {0};
    uint64_t seed = 3;
    br_arena a;
    drawn d;

    br_tool one = tool_a(&a);

    t_ok(br_tok_open(&d.tok, t_repo("models/demo.gguf"), NULL, &st), &st);
    t_ok(br_vocab_new(&d.vocab, d.tok, NULL, &st), &st);
    d.logits = malloc((size_t)br_tok_count(d.tok) * sizeof(float));
    for (size_t f = 0; f < BR_COUNT(families); f++) {
        const br_tool_syntax *s = br_tool_syntax_of(br_text_z(families[f]));
        const br_tool tools[] = {one, {"stop", NULL, false}};

        for (int choice = BR_TOOL_AUTO; choice <= BR_TOOL_REQUIRED; choice++) {
            bool several = (f & 1) && f < 9; /* the last rows are long */
            br_str text = {0};
            br_grammar *g;

            t_ok(br_tool_grammar(s, tools, 2, (br_tool_choice)choice, several,
                                 &text, &st),
                 &st);
            t_ok(br_grammar_new(&g, (br_text){text.at, text.n}, d.vocab, &st),
                 &st);
            for (int i = 0; i < 8; i++) {
                br_tool_reader r = {.s = s, .tools = tools, .n_tools = 2};
                int calls =
                    draw_answer(&d, r, g, choice == BR_TOOL_REQUIRED, &seed);

                ck_assert(choice == BR_TOOL_AUTO || calls == 1 ||
                          (calls > 1 && several));
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

/* Families whose arguments are texts: what cannot be enforced is refused. */
TEST(arguments_that_cannot_be_enforced)
{
    static const struct {
        const char *schema, *says;
    } rows[] = {
        {"{\"type\":\"object\",\"properties\":{\"w\":{\"type\":\"string\","
         "\"pattern\":\"x\"}}}",
         "'w': pattern"},
        {"{\"type\":\"object\",\"properties\":{\"a<\":{\"type\":\"string\"}}}",
         "such a name"},
        {"{\"type\":\"object\",\"properties\":{\"n\":{\"not\":{}}}}", "'not'"},
        {"{\"type\":\"object\",\"required\":[\"q\"]}", "'required'"},
        {"{\"type\":\"object\",\"properties\":{\"e\":{\"enum\":["
         "\"\\n</parameter>\\n\"]}}}",
         "'e': enum"},
        {"{\"type\":\"object\",\"minProperties\":1}", "'minProperties'"},
        {"{\"type\":\"array\"}", "one of an object"},
    };
    const br_tool_syntax *s = br_tool_syntax_of(br_text_z(families[6]));
    br_vocab *vocab;
    br_status st = {0};
    br_tok *tok;

    t_ok(br_tok_open(&tok, t_repo("models/demo.gguf"), NULL, &st), &st);
    t_ok(br_vocab_new(&vocab, tok, NULL, &st), &st);
    for (size_t i = 0; i < BR_COUNT(rows); i++)
        for (int strict = 0; strict < 2; strict++) {
            br_str text = {0};
            br_json *tree;
            br_grammar *g;
            br_arena a;
            br_tool t = {.name = "a", .strict = strict};

            br_arena_init(&a, 0);
            st = (br_status){0};
            t_ok(br_json_parse(&tree, &a, rows[i].schema,
                               strlen(rows[i].schema), 0, &st),
                 &st);
            t.schema = tree;
            ck_assert_int_eq(
                br_tool_grammar(s, &t, 1, BR_TOOL_AUTO, true, &text, &st),
                strict ? BR_E_UNSUPPORTED : BR_OK);
            if (strict)
                ck_assert_msg(strstr(st.msg, rows[i].says), "%s", st.msg);
            else {
                t_ok(br_grammar_new(&g, (br_text){text.at, text.n}, vocab, &st),
                     &st);
                br_grammar_free(g);
            }
            br_str_fini(&text);
            br_arena_fini(&a);
        }
    br_vocab_free(vocab);
    br_tok_free(tok);
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

/* The same tools as that API writes them, and items in and out. */
#define FLAT                                                                   \
    "\"tools\":[{\"type\":\"function\",\"name\":\"weather\",\"strict\":true,"  \
    "\"parameters\":{\"type\":\"object\",\"properties\":{\"city\":{\"enum\":[" \
    "\"Oslo\"]}},\"required\":[\"city\"],\"additionalProperties\":false}},{"   \
    "\"type\":\"function\",\"name\":\"bed\"}]"
#define ITEMS                                                                  \
    "\"input\":[{\"role\":\"user\",\"content\":\"Hi\"},{\"type\":\"message\"," \
    "\"role\":\"assistant\",\"content\":[{\"type\":\"output_text\",\"text\":"  \
    "\"I look\"}]},{\"type\":\"function_call\",\"call_id\":\"c1\",\"name\":"   \
    "\"weather\",\"arguments\":\"{\\\"city\\\":1}\"},{\"type\":"               \
    "\"function_call\",\"call_id\":\"c2\",\"name\":\"bed\",\"arguments\":\"{}" \
    "\"}"                                                                      \
    ",{\"type\":\"function_call_output\",\"call_id\":\"c1\",\"output\":"       \
    "\"sun\"}"                                                                 \
    ",{\"type\":\"function_call_output\",\"call_id\":\"c2\",\"output\":"       \
    "\"soft\"}]"

static sk_answer
respond(const sk *k, const char *more)
{
    return sk_ask(k, "POST /v1/responses", "",
                  t_printf("{" ITEMS "," FLAT ",\"temperature\":0%s}", more));
}

/* Of the tools some may be called; the prompt tells of all. */
TEST(tools_that_are_allowed)
{
    static const char form[] =
        ",\"tool_choice\":{\"type\":\"allowed_tools\",\"allowed_tools\":{"
        "\"mode\":\"required\",\"tools\":[{\"type\":\"function\",\"function\":"
        "{\"name\":\"%s\"}}]}}";
    static const char flat[] =
        ",\"tool_choice\":{\"type\":\"allowed_tools\",\"mode\":\"required\","
        "\"tools\":[{\"type\":\"function\",\"name\":\"%s\"}]}";
    static const char *const names[] = {"weather", "bed"};
    sk k;
    sk_answer a;

    sk_open(&k, &(sk_config){.template = TEMPLATE});
    for (size_t i = 0; i < BR_COUNT(names); i++) {
        const char *call = t_printf("\"name\":\"%s\",\"arguments\"", names[i]);
        const char *other =
            t_printf("\"name\":\"%s\",\"arguments\"", names[!i]);

        a = chat(&k, t_printf(form, names[i]));
        ck_assert_msg(a.status == 200 && strstr(a.body, call) &&
                          !strstr(a.body, other),
                      "%s", a.body);
        a = respond(&k, t_printf(flat, names[i]));
        ck_assert_msg(a.status == 200 && strstr(a.body, call) &&
                          !strstr(a.body, other) &&
                          strstr(a.body, "\"tool_choice\":{\"type\":"
                                         "\"allowed_tools\",\"mode\""),
                      "%s", a.body);
    }
    ck_assert_int_eq(chat(&k, t_printf(form, "nothing")).status, 400);
    a = chat(&k, ",\"tool_choice\":{\"type\":\"allowed_tools\"}");
    ck_assert_msg(a.status == 400 && strstr(a.body, "mode"), "%s", a.body);
    a = chat(&k, ",\"tool_choice\":{\"type\":\"function\",\"function\":7}");
    ck_assert_msg(a.status == 400 && strstr(a.body, "names none"), "%s",
                  a.body);
    sk_close(&k);
}

TEST(tools_in_responses)
{
    static const char named[] = ",\"tool_choice\":{\"type\":\"function\","
                                "\"name\":\"weather\"}";
    static const char *const events[] = {
        "event: response.output_item.added\ndata: {\"type\":"
        "\"response.output_item.added\",\"sequence_number\":2,"
        "\"output_index\":0,\"item\":{\"id\":\"fc_",
        "\"type\":\"function_call\",\"status\":\"in_progress\",\"call_id\":"
        "\"call_",
        "response.function_call_arguments.delta\",\"sequence_number\":3,",
        "\"output_index\":0,\"delta\":\"{",
        "\"name\":\"weather\",\"arguments\":\"{\\\"city\\\":\\\"Oslo\\\"}\"}"
        "\n\nevent: response.output_item.done",
        "event: response.completed",
    };
    sk k;
    sk_answer a;
    const char *at;

    sk_open(&k, &(sk_config){.template = TEMPLATE});
    a = respond(&k, named);
    ck_assert_msg(
        a.status == 200 && strstr(a.body, "\"output\":[{\"id\":\"fc_") &&
            strstr(a.body, "\"type\":\"function_call\",\"status\":"
                           "\"completed\",\"call_id\":\"call_") &&
            strstr(a.body, "\"name\":\"weather\",\"arguments\":\"{\\\"city"
                           "\\\":\\\"Oslo\\\"}\"}],") &&
            strstr(a.body, "\"tool_choice\":{\"type\":\"function\",\"name\":"
                           "\"weather\"},\"tools\":[{\"type\":\"function\","
                           "\"name\":\"weather\",\"parameters\":{"),
        "%s", a.body);
    a = respond(&k, t_printf("%s,\"stream\":true", named));
    at = a.body;
    for (size_t i = 0; i < BR_COUNT(events); i++) {
        ck_assert_msg((at = strstr(at, events[i])), "%zu in %s", i, a.body);
        at++;
    }
    ck_assert_ptr_null(strstr(a.body, "output_text"));
    /* text and no calls: a message, when it begins */
    a = sk_ask(&k, "POST /v1/responses", "",
               "{\"input\":\"Hello\"," FLAT ",\"temperature\":0,"
               "\"max_output_tokens\":1,\"stream\":true}");
    ck_assert_msg(strstr(a.body, "response.output_text.delta") &&
                      strstr(a.body, "event: response.incomplete"),
                  "%s", a.body);
    ck_assert_ptr_null(strstr(a.body, "function_call_arguments"));
    sk_close(&k);
}

TEST(several_calls_in_one_response)
{
    sk k;
    sk_answer a = {0};

    sk_open(&k, &(sk_config){.template = TEMPLATE});
    for (int i = 0; i < 40; i++) {
        a = sk_ask(&k, "POST /v1/responses", "",
                   t_printf("{\"input\":\"Hello %d\"," FLAT
                            ",\"temperature\":2,\"stream\":true,"
                            "\"max_output_tokens\":300,"
                            "\"tool_choice\":\"required\"}",
                            i));
        ck_assert_int_eq(a.status, 200);
        if (strstr(a.body, "\"output_index\":1"))
            break;
    }
    ck_assert_msg(strstr(a.body, "\"output_index\":1,\"item\":{\"id\":\"fc_"),
                  "%s", a.body);
    ck_assert_str_ne(sk_between(a.body, "\"call_id\":\"", "\""),
                     sk_between(strstr(a.body, "\"output_index\":1"),
                                "\"call_id\":\"", "\""));
    sk_close(&k);
}

TEST(items_become_messages)
{
    static const char *const bad[][2] = {
        {"{\"type\":\"function_call\",\"name\":\"a\",\"arguments\":\"\"}",
         "input[0]: a function_call has"},
        {"{\"type\":\"function_call\",\"call_id\":\"c\",\"name\":\"a b\","
         "\"arguments\":\"\"}",
         "input[0].name"},
        {"{\"type\":\"function_call_output\",\"call_id\":\"c\",\"output\":7}",
         "input[0].output: must be a string or a list"},
        {"{\"type\":\"function_call_output\",\"call_id\":\"c\",\"output\":[{"
         "\"type\":\"input_image\"}]}",
         "input[0].output[0].type: 'input_image'"},
        {"{\"type\":\"function_call_output\",\"call_id\":\"c\",\"output\":"
         "\"\",\"x\":1}",
         "input[0].x"},
        {"{\"type\":\"reasoning\",\"content\":[{\"type\":\"x\"}]}",
         "one reasoning_text"},
        {"{\"type\":\"web_search_call\"}", "input[0]"},
    };
    br_sample_params sample = br_sample_defaults();
    br_status st = {0};
    br_ask a;

    t_ok(
        br_ask_read(&a, BR_API_RESPONSES, &sample, BR_TEXT("{" ITEMS "}"), &st),
        &st);
    ck_assert_uint_eq(a.messages.n, 4);
    ck_assert_str_eq(a.messages.at[1].role, "assistant");
    ck_assert_str_eq(br_json_get(a.messages.at[1].json, "content")->s,
                     "I look");
    ck_assert_uint_eq(br_json_get(a.messages.at[1].json, "tool_calls")->n, 2);
    ck_assert_str_eq(br_json_get(a.messages.at[3].json, "tool_call_id")->s,
                     "c2");
    br_ask_fini(&a);
    t_ok(
        br_ask_read(
            &a, BR_API_RESPONSES, &sample,
            BR_TEXT("{\"input\":[{\"type\":\"reasoning\",\"summary\":[],"
                    "\"content\":[{\"type\":\"reasoning_text\",\"text\":"
                    "\"Hm\"}]},{\"role\":\"assistant\",\"content\":\"Yes\"}]}"),
            &st),
        &st);
    ck_assert_uint_eq(a.messages.n, 1);
    ck_assert_str_eq(br_json_get(a.messages.at[0].json, "reasoning_content")->s,
                     "Hm");
    ck_assert_str_eq(br_json_get(a.messages.at[0].json, "content")->s, "Yes");
    br_ask_fini(&a);
    t_ok(br_ask_read(&a, BR_API_RESPONSES, &sample,
                     BR_TEXT("{\"input\":[{\"type\":\"function_call_output\","
                             "\"call_id\":\"c\",\"output\":[{\"type\":"
                             "\"input_text\",\"text\":\"so\"},{\"type\":"
                             "\"input_text\",\"text\":\"ft\"}]}]}"),
                     &st),
         &st);
    ck_assert_str_eq(br_json_get(a.messages.at[0].json, "content")->s, "soft");
    br_ask_fini(&a);
    for (size_t i = 0; i < BR_COUNT(bad); i++) {
        char *body = t_printf("{\"input\":[%s]}", bad[i][0]);

        st = (br_status){0};
        ck_assert_int_eq(
            br_ask_read(&a, BR_API_RESPONSES, &sample, br_text_z(body), &st),
            BR_E_USAGE);
        ck_assert_msg(strstr(st.msg, bad[i][1]), "%s", st.msg);
        br_ask_fini(&a);
    }
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

/* The assistant's last message is the beginning of the answer: the prompt ends
 * with it, whatever the template puts behind messages. */
TEST(the_last_message_goes_on)
{
#define WITH(role, said)                                                   \
    "{\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"},"               \
    "{\"role\":\"" role "\",\"content\":\"" said "\"}],\"temperature\":0," \
    "\"max_tokens\":4"
    static const char open[] =
        "{% for m in messages %}<{{ m.role }}>{{ m.content | trim }}"
        "<end>{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}";
    sk k;
    sk_answer a;
    char *want;

    sk_open(&k, &(sk_config){.template = open});
    a = sk_ask(&k, "POST /v1/completions", "",
               "{\"prompt\":\"<user>Hi<end><assistant>Long ago\","
               "\"temperature\":0,\"max_tokens\":4}");
    ck_assert_int_eq(a.status, 200);
    want = sk_between(a.body, "\"text\":\"", "\"");
    a = sk_ask(
        &k, "POST /v1/chat/completions", "",
        WITH("assistant", "Long ago") ",\"add_generation_prompt\":false,"
                                      "\"continue_final_message\":true}");
    ck_assert_int_eq(a.status, 200);
    ck_assert_str_eq(sk_between(a.body, "\"content\":\"", "\""), want);
    a = sk_ask(&k, "POST /v1/messages", "", WITH("assistant", "Long ago") "}");
    ck_assert_int_eq(a.status, 200);
    ck_assert_str_eq(sk_between(a.body, "\"text\":\"", "\""), want);
    /* a turn that is over, and one that cannot go on */
    a = sk_ask(&k, "POST /v1/chat/completions", "",
               WITH("assistant", "Long ago") "}");
    ck_assert_int_eq(a.status, 200);
    ck_assert_str_ne(sk_between(a.body, "\"content\":\"", "\""), want);
    a = sk_ask(&k, "POST /v1/chat/completions", "",
               WITH("user", "Long ago") ",\"continue_final_message\":true}");
    ck_assert_int_eq(a.status, 400);
    sk_close(&k);
#undef WITH
}

/* The tokens of the list, put together. */
static char *
logged_text(const char *body)
{
    char *out = t_printf("%s", "");

    for (const char *at = body; (at = strstr(at, "\"token\":\"")); at++)
        out = t_printf("%s%s", out, sk_between(at, "\"token\":\"", "\",\"log"));
    return out;
}

/* No token twice in 8: "name" and those that open a call, in that order; then the
 * grammar alone says what comes. */
#define NAME_THEN_CALL                                                   \
    ",\"repetition_penalty\":100,\"repeat_last_n\":8,\"logprobs\":true," \
    "\"logit_bias\":{"                                                   \
    "\"1874\":100,\"33\":90,\"89\":80,\"377\":70,\"81\":60,\"68\":50,"   \
    "\"72\":40,\"657\":30,\"35\":20},\"max_tokens\":%d%s"

TEST(logprobs_are_those_of_the_text_beside_calls)
{
    sk k;
    sk_answer a;
    char *text;

    sk_open(&k, &(sk_config){.template = TEMPLATE});
    a = chat(&k, ",\"logprobs\":true,\"max_tokens\":4");
    text = sk_between(a.body, "\"content\":\"", "\",\"ref");
    ck_assert_msg(a.status == 200 && text && *text, "%s", a.body);
    ck_assert_str_eq(logged_text(a.body), text);
    a = chat(&k, ",\"logprobs\":true,\"tool_choice\":\"required\"");
    ck_assert_msg(strstr(a.body, "\"logprobs\":{\"content\":[],"), "%s",
                  a.body);
    /* the sign of a call, a call that is begun, and one that has its name */
    for (int i = 0; i < 6; i++) {
        static const int most[] = {5, 12, 40};
        static const char *const texts[] = {"name<tool", "name", "name"};

        a = chat(&k, t_printf(NAME_THEN_CALL, most[i / 2],
                              i % 2 ? ",\"stream\":true" : ""));
        ck_assert_int_eq(a.status, 200);
        ck_assert_msg(strcmp(logged_text(a.body), texts[i / 2]) == 0,
                      "%d: '%s' of %s", i, logged_text(a.body), a.body);
        ck_assert_int_eq(strstr(a.body, "\"tool_calls\":[") != NULL,
                         i / 2 == 2);
        if (i % 2 == 0)
            ck_assert_str_eq(sk_between(a.body, "\"content\":\"", "\""),
                             texts[i / 2]);
    }
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
        {"{" TOOLS ",\"messages\":[{\"role\":\"tool\",\"tool_call_id\":\"c\","
         "\"content\":[{\"type\":\"image_url\"}]}]}",
         "messages[0].content[0].type: 'image_url': this server reads text"},
    };
    static const char image[] =
        "{\"max_tokens\":1,\"messages\":[{\"role\":\"user\",\"content\":[{"
        "\"type\":\"tool_result\",\"tool_use_id\":\"c\",\"content\":[{\"type\":"
        "\"image\"}]}]}]}";
    sk_answer a;
    sk k;

    sk_open(&k, &(sk_config){.template = TEMPLATE});
    for (size_t i = 0; i < BR_COUNT(rows); i++) {
        a = sk_ask(&k, "POST /v1/chat/completions", "", rows[i].body);

        ck_assert_int_eq(a.status, 400);
        ck_assert_msg(strstr(a.body, rows[i].says), "%s", a.body);
    }
    a = sk_ask(&k, "POST /v1/chat/completions", "",
               "{\"max_tokens\":1," TOOLS ",\"messages\":[{\"role\":\"tool\","
               "\"content\":[{\"type\":\"input_text\",\"text\":\"x\"}]}]}");
    ck_assert_int_eq(a.status, 200);
    a = sk_ask(&k, "POST /v1/messages", "", image);
    ck_assert_msg(a.status == 400 &&
                      strstr(a.body, "it has no model of images"),
                  "%s", a.body);
    sk_close(&k);
    sk_open(&k, &(sk_config){0});
    ck_assert_int_eq(chat(&k, "").status, 400); /* its template knows none */
    sk_close(&k);
}

typedef struct asked {
    br_api api;
    const char *body;
} asked;

static br_code
read_asked(void *arg, br_status *st)
{
    const asked *of = arg;
    br_ask a;
    br_code code = br_ask_read(&a, of->api, &(br_sample_params){0},
                               br_text_z(of->body), st);

    br_ask_fini(&a);
    return code;
}

/* What these have is made into other trees: a part of it that there is no
 * memory for is told, not left out. Fewer of them move what comes last to
 * where the arena needs another chunk. */
TEST(what_finds_no_memory_is_told)
{
    static const struct {
        br_api api;
        const char *before, *part, *rest, *after;
        int n;
    } rows[] = {
        {BR_API_MESSAGES,
         "\"max_tokens\":1,\"messages\":[{\"role\":\"user\",\"content\":\"x\"}"
         "],\"tools\":[",
         "{\"input_schema\":{\"type\":\"object\"},\"name\":\"f", "\"}", "]",
         BR_TOOL_MAX},
        {BR_API_RESPONSES, "\"input\":\"x\",\"tools\":[",
         "{\"type\":\"function\",\"name\":\"f", "\"}", "]", BR_TOOL_MAX},
        {BR_API_RESPONSES, "\"input\":[",
         "{\"type\":\"reasoning\",\"content\":[{\"type\":\"reasoning_text\","
         "\"text\":\"t\"}]},{\"type\":\"function_call\",\"call_id\":\"c\","
         "\"name\":\"f",
         "\",\"arguments\":\"{}\"},{\"type\":\"function_call_output\","
         "\"call_id\":\"c\",\"output\":\"x\"}",
         "]", 128},
        {BR_API_MESSAGES,
         "\"max_tokens\":1,\"messages\":[{\"role\":\"user\",\"content\":[",
         "{\"type\":\"text\",\"text\":\"",
         "\"},{\"type\":\"tool_use\",\"id\":\"c\",\"name\":\"f\",\"input\":{}"
         "},{\"type\":\"tool_result\",\"tool_use_id\":\"c\",\"content\":\"x\"},"
         "{\"type\":\"tool_result\",\"tool_use_id\":\"c\"},{\"type\":"
         "\"thinking\",\"thinking\":\"t\"}",
         "]}]", 128},
    };

    for (size_t r = 0; r < BR_COUNT(rows) * 96; r++) {
        int less = (int)(r / BR_COUNT(rows)), k = (int)(r % BR_COUNT(rows));
        br_str body = {0};
        asked of = {.api = rows[k].api};

        br_str_printf(&body, "{%s", rows[k].before);
        for (int i = less; i < rows[k].n; i++)
            br_str_printf(&body, "%s%s%d%s", i > less ? "," : "", rows[k].part,
                          i, rows[k].rest);
        br_str_printf(&body, "%s}", rows[k].after);
        of.body = t_printf("%s", br_str_z(&body));
        br_str_fini(&body);
        t_each_oom(read_asked, &of);
    }
}

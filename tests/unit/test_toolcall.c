/* test_toolcall.c - tools: what models write, and the grammars that they keep to.
 * SPDX-License-Identifier: Apache-2.0 */
#include "serve_kit.h"

#include "run/toolcall.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

T_ONE_THREAD();

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

/* What one schema may take all of a request's may: of these each takes more than a
 * third of it. */
TEST(schemas_of_all_tools_take_bounded_work)
{
    const br_tool_syntax *s = br_tool_syntax_of(br_text_z(families[0]));
    br_tool t[3] = {{.name = "a"}, {.name = "b"}, {.name = "c"}};
    br_str one = {0}, text = {0};
    br_status st = {0};
    br_json *tree;
    br_arena a;

    br_arena_init(&a, 0);
    br_str_puts(&one,
                "{\"type\":\"object\",\"properties\":{\"x\":{\"oneOf\":[");
    for (int i = 0; i < 2; i++) {
        br_str_puts(&one, i ? ",{\"enum\":[0" : "{\"enum\":[\"\"");
        for (int v = 0; v < 2499; v++)
            br_str_printf(&one, ",%d", i ? 2 * v + 2 : 2 * v + 1);
        br_str_puts(&one, "]}");
    }
    br_str_puts(&one, "]}}}");
    t_ok(br_json_parse(&tree, &a, one.at, one.n, 0, &st), &st);
    for (size_t i = 0; i < BR_COUNT(t); i++) {
        t[i].schema = tree;
        t[i].strict = true;
    }
    t_ok(br_tool_grammar(s, t, 2, BR_TOOL_AUTO, true, &text, &st), &st);
    br_str_clear(&text);
    ck_assert_int_eq(br_tool_grammar(s, t, 3, BR_TOOL_AUTO, true, &text, &st),
                     BR_E_UNSUPPORTED);
    ck_assert_msg(strstr(st.msg, "tool 'c': ") &&
                      strstr(st.msg, "takes too much work"),
                  "%s", st.msg);
    br_str_fini(&one);
    br_str_fini(&text);
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

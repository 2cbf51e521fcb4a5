/* test_http_tools.c - tools over HTTP: what clients ask, and what they get.
 * SPDX-License-Identifier: Apache-2.0 */
#include "serve_kit.h"

#include "http/ask.h"

#include <string.h>

T_THREADS_OF("a_named_tool_is_called");

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

/* A call, a thought and a name in messages as OpenAI and others answer them. */
TEST(answers_of_other_servers_may_be_sent_back)
{
    static const struct {
        const char *more, *says; /* NULL: it is taken */
    } rows[] = {
        {"\"annotations\":[],\"refusal\":null,\"audio\":null,"
         "\"function_call\":null",
         NULL},
        {"\"id\":\"m\",\"type\":\"message\",\"status\":\"completed\"", NULL},
        {"\"audio\":{\"id\":\"a\"}", "messages[0].audio: not supported"},
    };
    static const char *const is[] = {
        "\"tool_calls\":[{\"function\":{\"name\":\"bed\"}}]",
        "\"content\":\"x\",\"reasoning_content\":\"hm\"",
        "\"content\":\"x\",\"name\":\"Ann\"",
    };
    br_sample_params sample = br_sample_defaults();

    for (size_t i = 0; i < BR_COUNT(rows) * BR_COUNT(is); i++) {
        const char *more = rows[i % BR_COUNT(rows)].more;
        const char *says = rows[i % BR_COUNT(rows)].says;
        char *body = t_printf("{\"messages\":[{\"role\":\"assistant\",%s,%s}]}",
                              is[i / BR_COUNT(rows)], more);
        br_status st = {0};
        br_ask a;

        ck_assert_int_eq(
            br_ask_read(&a, BR_API_CHAT, &sample, br_text_z(body), &st),
            says ? BR_E_USAGE : BR_OK);
        ck_assert_msg(!says || strstr(st.msg, says), "%s: %s", body, st.msg);
        br_ask_fini(&a);
    }
}

/* As vLLM calls it: templates know it by its older name. */
TEST(a_thought_may_be_sent_back_as_reasoning)
{
    static const char *const said[] = {
        "\"reasoning\":\"Hm\"",
        "\"reasoning_content\":null,\"reasoning\":\"Hm\"",
        "\"reasoning\":\"Hm\",\"reasoning_content\":\"Hm\"",
    };
    sk_answer a;
    sk k;

    sk_open(&k, &(sk_config){.template =
                                 "{% for m in messages %}{{ m.role }}"
                                 "<{{ m.reasoning_content }}>{{ m.content }}"
                                 "{% endfor %}"});
    for (size_t i = 0; i < BR_COUNT(said); i++) {
        a = sk_ask(&k, "POST /apply-template", "",
                   t_printf("{\"messages\":[{\"role\":\"assistant\",%s,"
                            "\"content\":\"Yes\"}]}",
                            said[i]));
        ck_assert_msg(a.status == 200 && strstr(a.body, "assistant<Hm>Yes"),
                      "%s: %s", said[i], a.body);
    }
    a = sk_ask(&k, "POST /apply-template", "",
               "{\"messages\":[{\"role\":\"user\",\"reasoning\":\"Hm\","
               "\"content\":\"Yes\"}]}");
    ck_assert_msg(a.status == 400 && strstr(a.body, "messages[0].reasoning"),
                  "%s", a.body);
    sk_close(&k);
}

/* Not only what messages say: it is refused by its bytes, without being read. */
TEST(calls_that_no_context_holds_are_not_read)
{
    br_str body = {0};
    sk_answer a;
    sk k;

    sk_open(&k, &(sk_config){.template = TEMPLATE});
    br_str_puts(&body,
                "{\"messages\":[{\"role\":\"assistant\",\"content\":null,"
                "\"tool_calls\":[{\"id\":\"c\",\"type\":\"function\","
                "\"function\":{\"name\":\"bed\",\"arguments\":\"{");
    for (int i = 0; i < 200000; i++)
        br_str_printf(&body, "%s\\\"%d\\\":1", i ? "," : "", i);
    br_str_puts(&body, "}\"}}]},{\"role\":\"user\",\"content\":\"Hi\"}]}");
    a = sk_ask(&k, "POST /v1/chat/completions", "", br_str_z(&body));
    ck_assert_msg(a.status == 400 &&
                      strstr(a.body, " bytes; the context of ") &&
                      strstr(a.body, "context_length_exceeded"),
                  "%d %s", a.status, a.body);
    br_str_fini(&body);
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

TEST(a_stop_string_in_the_sign_of_a_call_leaves_none_of_it)
{
    static const struct {
        const char *stop, *text;
    } rows[] = {
        {"_c", "name"}, {">", "name"}, {"ool_call>", "name"}, {"am", "n"}};
    sk k;

    sk_open(&k, &(sk_config){.template = TEMPLATE});
    for (size_t i = 0; i < BR_COUNT(rows); i++) {
        sk_answer a =
            chat(&k, t_printf(NAME_THEN_CALL, 40,
                              t_printf(",\"stop\":\"%s\"", rows[i].stop)));

        ck_assert_msg(a.status == 200 &&
                          strstr(a.body, "\"finish_reason\":\"stop\"") &&
                          strcmp(sk_between(a.body, "\"content\":\"", "\""),
                                 rows[i].text) == 0,
                      "%s: %s", rows[i].stop, a.body);
    }
    sk_close(&k);
}

TEST(tools_that_are_refused)
{
    static const struct {
        const char *body, *says;
    } rows[] = {
        {ASK "\"tools\":[{\"type\":\"web\"}]}", "tools[0]: only functions"},
        {ASK "\"tools\":[{\"type\":\"function\"}]}",
         "tools[0].function: must be an object"},
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

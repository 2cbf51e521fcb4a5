/* test_http_fields.c - fields that clients of other servers send.
 * SPDX-License-Identifier: Apache-2.0 */
#include "serve_kit.h"

#include "http/ask.h"

#include <stdio.h>
#include <string.h>

enum {
    C = BR_API_CHAT,
    T = BR_API_TEXT,
    M = BR_API_MESSAGES,
    R = BR_API_RESPONSES
};

/* NULL: it is taken; else what the refusal says. */
static const struct {
    int api;
    const char *more, *says;
} rows[] = {
    /* llama-server */
    {C, "\"cache_prompt\":true,\"id_slot\":-1,\"n_predict\":-1", NULL},
    {C, "\"n_predict\":5,\"max_tokens\":6",
     "n_predict: 5 differs from 6, which another name of it says"},
    {T, "\"n_predict\":5,\"max_tokens\":6", "n_predict: 5 differs from 6"},
    {C, "\"repetition_penalty\":1,\"repeat_penalty\":1.5",
     "repeat_penalty: 1.5 differs from 1, which another name of it says"},
    {T, "\"repeat_penalty\":1.5,\"repetition_penalty\":1.5", NULL},
    {T, "\"n_predict\":6,\"max_tokens\":6", NULL},
    {C, "\"max_completion_tokens\":5,\"max_tokens\":6",
     "max_completion_tokens: 5 differs from 6"},
    {C, "\"timings_per_token\":true", NULL},
    {C, "\"timings_per_token\":1", "timings_per_token"},
    {C, "\"return_progress\":true", NULL},
    {T, "\"return_progress\":1", "return_progress"},
    {M, "\"max_tokens\":9,\"timings_per_token\":true", "timings_per_token"},
    {C, "\"dry_multiplier\":0.8,\"dry_base\":1.75,\"dry_allowed_length\":2",
     NULL},
    {C, "\"dry_base\":0", "dry_base"},
    {C,
     "\"response_format\":{\"type\":\"json_object\",\"schema\":{\"type\":"
     "\"integer\"}}",
     NULL},
    {C,
     "\"response_format\":{\"type\":\"json_object\",\"schema\":{\"not\":{}}}",
     "'not'"},
    {C, "\"response_format\":{\"type\":\"json_object\",\"shape\":1}",
     "more than"},
    /* languages whose numbers are all of one kind */
    {C, "\"max_tokens\":9.0,\"seed\":-5.0,\"n\":1e0,\"top_k\":5.0", NULL},
    {C, "\"max_tokens\":9.5", "whole number"},
    {C, "\"temperature\":0.001", NULL},
    {R, "\"temperature\":2", NULL},
    {C, "\"temperature\":1e-5",
     "temperature: 1e-05 is below 0.001; 0 takes the likeliest token"},
    {M, "\"max_tokens\":9,\"temperature\":1.5",
     "temperature: must be a number from 0 to 1"},
    {C, "\"max_tokens\":0.0", "whole number"},
    {C, "\"seed\":1e17",
     "seed: beyond 2^53 a whole number must be written with all of its digits, "
     "not as 1e+17"},
    {C, "\"seed\":1e19", "whole number from -9223372036854775808 to"},
    {C, "\"n\":1e17", "n: must be a whole number from 1 to 128"},
    {C, "\"seed\":\"1\"", "whole number"},
    {C, "\"seed\":-9223372036854775808", NULL},
    {C, "\"seed\":9223372036854775807", NULL},
    {C, "\"seed\":9223372036854775808",
     "seed: must be a whole number from -9223372036854775808 to "
     "9223372036854775807"},
    /* what newer clients have a name for */
    {R, "\"context_management\":[],\"moderation\":null", NULL},
    {R, "\"context_management\":[{\"type\":\"compaction\"}]",
     "context_management"},
    {C, "\"prompt_cache_options\":{}", NULL},
    {M, "\"max_tokens\":9,\"speed\":\"standard\",\"inference_geo\":null", NULL},
    {M, "\"max_tokens\":9,\"speed\":\"fast\"", "speed"},
    {M, "\"max_tokens\":9,\"inference_geo\":\"us\"", "inference_geo"},
    {M, "\"max_tokens\":9,\"fallbacks\":[],\"workspace_id\":\"w\"",
     "fallbacks"},
    {M,
     "\"max_tokens\":9,\"output_format\":{\"type\":\"json_schema\",\"schema\":{"
     "\"type\":\"integer\"}}",
     NULL},
    {M,
     "\"max_tokens\":9,\"output_format\":{\"type\":\"json_schema\",\"schema\":{"
     "\"not\":{}}}",
     "'not'"},
    /* vLLM */
    {T, "\"top_k\":-1,\"skip_special_tokens\":true,\"priority\":3", NULL},
    {T, "\"top_k\":-2", "top_k"},
    {T, "\"skip_special_tokens\":false", "skip_special_tokens"},
    {T, "\"use_beam_search\":true", "use_beam_search"},
    {C, "\"guided_json\":{\"type\":\"integer\"}", NULL},
    {C, "\"guided_json\":{\"not\":{}}", "'not'"},
    {C, "\"guided_choice\":[\"yes\",\"n\\\"o\"]", NULL},
    {C, "\"guided_choice\":[]", "list of texts"},
    {C, "\"guided_choice\":[\"a\",1]", "list of texts"},
    {C, "\"guided_choice\":[\"a\"],\"guided_json\":{}", "another form"},
    {C, "\"guided_regex\":\"a+\"", NULL},
    {C, "\"guided_regex\":\"\"", "a regular expression"},
    {C, "\"guided_regex\":\"(?=a)\"", "guided_regex: (?"},
    {C, "\"guided_regex\":\"a\",\"guided_choice\":[\"a\"]", "another form"},
    {C, "\"structured_outputs\":{\"choice\":[\"a\"],\"json\":null}", NULL},
    {C, "\"structured_outputs\":{\"json_object\":true}", NULL},
    {C, "\"structured_outputs\":{\"regex\":\"a\"}", NULL},
    {C, "\"structured_outputs\":{\"regex\":7}", "a regular expression"},
    {C, "\"structured_outputs\":{\"shape\":7}", "shape"},
    {C, "\"structured_outputs\":{\"json\":{},\"choice\":[\"a\"]}",
     "another form"},
    {C, "\"structured_outputs\":1", "an object"},
    {T, "\"logprobs\":20", NULL},
    {T, "\"logprobs\":21", "logprobs: must be a whole number from 0 to 20"},
    /* others */
    {C, "\"logprobs\":true,\"top_logprobs\":20", NULL},
    {C, "\"logprobs\":true,\"top_logprobs\":21",
     "top_logprobs: must be a whole number from 0 to 20"},
    {C, "\"top_logprobs\":2", "top_logprobs: needs logprobs true"},
    {C, "\"seed\\u0000x\":1", "does not know"},
    {C, "\"model\":\"m\\u0000x\"", "model: holds a NUL"},
    {C, "\"response_format\":{\"type\":\"json_object\\u0000\"}", "must be"},
    {C, "\"guided_json\":{\"type\":\"integer\\u0000\"}", "no such type"},
    {C, "\"guided_json\":{\"minimum\\u0000\":1}", "holds a NUL"},
    {R, "\"previous_response_id\":\"r\\u0000x\"", "must be the id"},
    {C, "\"max_tokens\":-1", NULL},
    {M, "\"max_tokens\":-1", "max_tokens"},
    {M, "\"max_tokens\":9,\"cache_control\":{\"type\":\"ephemeral\"}", NULL},
    {M, "\"max_tokens\":9,\"output_config\":{\"effort\":\"huge\"}", "effort"},
    {M, "\"max_tokens\":9,\"output_config\":{\"size\":1}", "size"},
    {M, "\"max_tokens\":9,\"output_config\":[]", "an object"},
    {M,
     "\"max_tokens\":9,\"output_config\":{\"format\":{\"type\":"
     "\"json_schema\",\"schema\":{\"type\":\"integer\"}}}",
     NULL},
    {M,
     "\"max_tokens\":9,\"output_config\":{\"format\":{\"type\":"
     "\"json_schema\",\"schema\":{\"not\":{}}}}",
     "'not'"},
    {M, "\"max_tokens\":9,\"context_management\":{}", NULL},
    {M,
     "\"max_tokens\":9,\"context_management\":{\"edits\":[{\"type\":"
     "\"clear_tool_uses_20250919\"}]}",
     "clear_thinking"},
    {M, "\"max_tokens\":9,\"context_management\":{\"edit\":[]}", "edits"},
    {C, "\"add_generation_prompt\":true,\"continue_final_message\":false",
     NULL},
    {C, "\"continue_final_message\":true", "continue_final_message: the last"},
    {C, "\"add_generation_prompt\":false", "add_generation_prompt: false only"},
    {C, "\"add_generation_prompt\":0", "true or false"},
    {R, "\"prompt\":null,\"max_tool_calls\":null", NULL},
    {R, "\"prompt\":{\"id\":\"p\"}", "prompt: only null"},
};

TEST(fields_of_other_servers_are_known_or_refused)
{
    br_sample_params sample = br_sample_defaults();

    for (size_t i = 0; i < BR_COUNT(rows); i++) {
        const char *what = rows[i].api == T ? "\"prompt\":\"Hi\""
                           : rows[i].api == R
                               ? "\"input\":\"Hi\""
                               : "\"messages\":[{\"role\":\"user\",\"content\":"
                                 "\"Hi\"}]";
        char *body = t_printf("{%s,%s}", what, rows[i].more);
        br_status st = {0};
        br_ask a;
        br_code code =
            br_ask_read(&a, (br_api)rows[i].api, &sample, br_text_z(body), &st);

        if (rows[i].says)
            ck_assert_msg(code == BR_E_USAGE && strstr(st.msg, rows[i].says),
                          "%s: %s", rows[i].more, st.msg);
        else
            ck_assert_msg(code == BR_OK, "%s: %s", rows[i].more, st.msg);
        br_ask_fini(&a);
    }
}

/* No reason to send a shorter prompt. */
TEST(a_stop_that_is_too_long_is_refused_by_its_name)
{
    static const struct {
        br_api api;
        const char *before, *says;
    } stops[] = {
        {BR_API_TEXT, "{\"prompt\":\"a\",\"stop\":[\"b\",\"",
         "stop: a text of over 4096 bytes"},
        {BR_API_MESSAGES,
         "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],"
         "\"max_tokens\":9,\"stop_sequences\":[\"",
         "stop_sequences: a text of over 4096 bytes"},
    };
    br_sample_params sample = br_sample_defaults();

    for (size_t i = 0; i < BR_COUNT(stops); i++)
        for (int n = 4096; n < 4098; n++) {
            br_str body = {0};
            br_status st = {0};
            br_code code;
            br_ask a;

            br_str_puts(&body, stops[i].before);
            for (int k = 0; k < n; k++)
                br_str_putc(&body, 'x');
            br_str_puts(&body, "\"]}");
            code = br_ask_read(&a, stops[i].api, &sample,
                               (br_text){body.at, body.n}, &st);
            ck_assert_int_eq(code, n == 4096 ? BR_OK : BR_E_USAGE);
            if (code != BR_OK)
                ck_assert_str_eq(st.msg, stops[i].says);
            br_ask_fini(&a);
            br_str_fini(&body);
        }
}

TEST(forms_of_other_servers_are_enforced)
{
    static const char *const forms[][2] = {
        {"\"guided_choice\":[\"yes\",\"no\"]", "root ::= \"yes\" | \"no\""},
        {"\"response_format\":{\"type\":\"json_object\",\"schema\":{\"enum\":["
         "\"a\"]}}",
         "\\\"a\\\""},
    };
    br_sample_params sample = br_sample_defaults();

    for (size_t i = 0; i < BR_COUNT(forms); i++) {
        char *body = t_printf("{\"prompt\":\"Hi\",%s}", forms[i][0]);
        br_status st = {0};
        br_ask a;

        t_ok(br_ask_read(&a, BR_API_TEXT, &sample, br_text_z(body), &st), &st);
        ck_assert_msg(strstr(br_str_z(&a.grammar), forms[i][1]), "%s",
                      br_str_z(&a.grammar));
        br_ask_fini(&a);
    }
}

TEST(messages_that_are_refused)
{
    static const struct {
        br_api api;
        const char *message, *says;
    } bad[] = {
        {BR_API_CHAT, "{\"role\":\"wizard\",\"name\":\"x\",\"content\":\"y\"}",
         "wizard"},
        {BR_API_CHAT,
         "{\"role\":\"user\",\"name\":\"x\",\"odd\":1,"
         "\"content\":\"y\"}",
         "odd"},
        {BR_API_MESSAGES,
         "{\"role\":\"assistant\",\"content\":[{\"type\":\"thinking\","
         "\"thinking\":5}]}",
         "must be a text"},
        {BR_API_MESSAGES,
         "{\"role\":\"assistant\",\"content\":[{\"type\":\"thinking\"}]}",
         "must be a text"},
    };
    br_sample_params sample = br_sample_defaults();

    for (size_t i = 0; i < BR_COUNT(bad); i++) {
        char *body =
            t_printf("{\"max_tokens\":1,\"messages\":[%s]}", bad[i].message);
        br_status st = {0};
        br_ask a;

        ck_assert_int_eq(
            br_ask_read(&a, bad[i].api, &sample, br_text_z(body), &st),
            BR_E_USAGE);
        ck_assert_msg(strstr(st.msg, bad[i].says), "%s", st.msg);
        br_ask_fini(&a);
    }
}

TEST(who_says_a_message_reaches_the_template)
{
    br_sample_params sample = br_sample_defaults();
    br_status st = {0};
    br_ask a;

    t_ok(br_ask_read(
             &a, BR_API_CHAT, &sample,
             BR_TEXT("{\"messages\":[{\"role\":\"user\",\"name\":\"Ann\","
                     "\"content\":\"Hi\"}]}"),
             &st),
         &st);
    ck_assert_uint_eq(a.messages.n, 1);
    ck_assert_str_eq(br_json_get(a.messages.at[0].json, "name")->s, "Ann");
    br_ask_fini(&a);
}

/* Of ten alternatives that were asked for a form leaves one, twice, and then two:
 * each token has its own, and no more. */
TEST(logprobs_of_a_form_are_each_tokens_own)
{
    static const struct {
        const char *path, *more, *first, *next, *last;
    } of[] = {
        {"POST /v1/chat/completions",
         "\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}],"
         "\"logprobs\":true,\"top_logprobs\":10",
         "\"top_logprobs\":[{\"token\":\"x\",\"logprob\":0,\"bytes\":[120]}]}",
         "\"top_logprobs\":[{\"token\":\"y\",\"logprob\":0,\"bytes\":[121]}]}",
         "\"top_logprobs\":[{\"token\":\"a\",\"logprob\":-0.693147,\"bytes\":"
         "[97]},{\"token\":\"b\",\"logprob\":-0.693147,\"bytes\":[98]}]}"},
        {"POST /v1/completions", "\"prompt\":\"Hi\",\"logprobs\":10",
         "{\"x\":0}", "{\"y\":0}", "{\"a\":-0.693147,\"b\":-0.693147}"},
    };
    sk k;

    sk_open(&k, &(sk_config){0});
    for (int i = 0; i < 4; i++) {
        sk_answer a =
            sk_ask(&k, of[i / 2].path, "",
                   t_printf("{%s,\"guided_choice\":[\"xya\",\"xyb\"],"
                            "\"stream\":%s}",
                            of[i / 2].more, i % 2 ? "true" : "false"));

        ck_assert_msg(strstr(a.body, of[i / 2].first) &&
                          strstr(a.body, of[i / 2].next) &&
                          strstr(a.body, of[i / 2].last),
                      "%s", a.body);
    }
    sk_close(&k);
}

/* Bytes that are no UTF-8 are all written as U+FFFD: of 120 of them, each chosen
 * beside the likeliest, some have one of their kind there. */
TEST(a_name_stands_once_among_the_alternatives_of_completions)
{
    br_str ids = {0};
    sk_answer a;
    sk k;

    for (int i = 0; i < 120; i++)
        br_str_printf(&ids, "%s%d", i ? "," : "", 133 + i);
    sk_open(&k, &(sk_config){0});
    a = sk_ask(&k, "POST /v1/completions", "",
               t_printf("{\"prompt\":[%s],\"max_tokens\":0,\"echo\":true,"
                        "\"logprobs\":1}",
                        br_str_z(&ids)));
    ck_assert_int_eq(a.status, 200);
    ck_assert_ptr_nonnull(strstr(a.body, "{\"\ufffd\":-4.21915e-06}"));
    ck_assert_msg(!strstr(a.body, "{\"\ufffd\":-4.21915e-06,\"\ufffd\""), "%s",
                  a.body);
    br_str_fini(&ids);
    sk_close(&k);
}

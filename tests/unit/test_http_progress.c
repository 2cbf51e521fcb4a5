/* test_http_progress.c - how far a prompt was read, in its stream.
 * SPDX-License-Identifier: Apache-2.0 */
#include "serve_kit.h"

#include <stdlib.h>
#include <string.h>

static int64_t
member(const char *chunk, const char *name)
{
    const char *at = strstr(chunk, t_printf("\"%s\":", name));

    ck_assert_msg(at, "%s: %.200s", name, chunk);
    return strtoll(strchr(at, ':') + 1, NULL, 10);
}

/* Of each event of a stream that says it, in order. Returns how many. */
static int
progress_of(const char *body, int64_t total, int64_t *cache)
{
    const char *text = strstr(body, "\"content\":\"");
    int64_t before = -1;
    int n = 0;

    for (const char *at = body; (at = strstr(at, "\"prompt_progress\":{"));
         at++, n++) {
        ck_assert_int_eq(member(at, "total"), total);
        *cache = member(at, "cache");
        ck_assert_int_ge(member(at, "processed"), BR_MAX(before + 1, *cache));
        ck_assert_int_ge(member(at, "time_ms"), 0);
        before = member(at, "processed");
    }
    ck_assert_int_eq(before, n ? total : -1);
    for (text = text ? text + 11 : body;
         (text = strstr(text, "\"content\":\"")); text++)
        if (text[11] != '"') /* behind the role's, and nothing comes after it */
            ck_assert(!strstr(text, "prompt_progress"));
    return n;
}

TEST(http_says_how_far_a_prompt_was_read)
{
    char *ask =
        t_printf("{\"messages\":[{\"role\":\"user\",\"content\":\"%s\"}],"
                 "\"max_tokens\":3,\"stream\":true,\"ignore_eos\":true,"
                 "\"return_progress\":",
                 "The quick brown fox jumps over the lazy dog. The quick "
                 "brown fox jumps over the lazy dog. The quick brown fox.");
    int64_t total, cache;
    sk_answer a;
    sk k;

    sk_open(&k, &(sk_config){.fake = {.chunk = 16, .n_slots = 4}});
    a = sk_ask(&k, "POST /v1/chat/completions", "", t_printf("%sfalse}", ask));
    ck_assert_int_eq(a.status, 200);
    ck_assert(!strstr(a.body, "prompt_progress"));
    sk_close(&k);
    sk_open(&k, &(sk_config){.fake = {.chunk = 16, .n_slots = 4}});
    a = sk_ask(&k, "POST /v1/chat/completions", "", t_printf("%strue}", ask));
    ck_assert_int_eq(a.status, 200);
    total = member(a.body, "total");
    ck_assert_int_gt(total, 32);
    ck_assert_int_ge(progress_of(a.body, total, &cache), 1 + (int)total / 16);
    ck_assert_int_eq(cache, 0);
    a = sk_ask(&k, "POST /v1/chat/completions", "", t_printf("%strue}", ask));
    ck_assert_int_ge(progress_of(a.body, total, &cache), 2);
    ck_assert_int_eq(cache, (total - 1) / 16 * 16);
    a = sk_ask(&k, "POST /v1/completions", "",
               "{\"prompt\":[1,2,3],\"max_tokens\":1,\"stream\":true,"
               "\"return_progress\":true}");
    ck_assert_int_eq(a.status, 200);
    ck_assert_int_eq(progress_of(a.body, 3, &cache), 2);
    a = sk_ask(
        &k, "POST /v1/completions", "",
        "{\"prompt\":[1,2,3],\"max_tokens\":1,\"return_progress\":true}");
    ck_assert_int_eq(a.status, 200);
    ck_assert(!strstr(a.body, "prompt_progress")); /* there is no stream */
    sk_close(&k);
}

static int64_t
cached_of(const sk *k, const char *prompts, int n)
{
    sk_answer a = sk_ask(
        k, "POST /v1/completions", "",
        t_printf("{\"prompt\":[%s],\"n\":%d,\"max_tokens\":2}", prompts, n));

    ck_assert_msg(a.status == 200, "%s", a.body);
    return member(a.body, "cached_tokens");
}

/* Whoever reads it first; of the others all of it is known. */
TEST(http_a_prompt_that_choices_share_is_cached_where_it_was_known_before)
{
    const char *words =
        "The quick brown fox jumps over the lazy dog again, and "
        "once more, and then it rests";
    const char *one = t_printf("\"%s.\"", words);
    const char *two = t_printf("\"Once %s.\",\"Twice %s.\"", words, words);
    int64_t known;
    sk k;

    sk_open(&k, &(sk_config){.fake = {.chunk = 16, .n_slots = 4}});
    ck_assert_int_eq(cached_of(&k, one, 3), 0);
    known = cached_of(&k, one, 1);
    ck_assert_int_gt(known, 0);
    ck_assert_int_eq(cached_of(&k, one, 3), known);
    ck_assert_int_eq(cached_of(&k, two, 2), 0);
    known = cached_of(&k, two, 1);
    ck_assert_int_gt(known, 0);
    ck_assert_int_eq(cached_of(&k, two, 2), known);
    sk_close(&k);
}

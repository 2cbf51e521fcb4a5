/* fuzz_jinja.c - any bytes as a template, over a fixed conversation.
 *
 * Whatever the template: it ends, within its limits, with text or with an
 * error that says where. Rendered twice it gives the same.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "model/jinja.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char context[] =
    "{\"messages\": [{\"role\": \"system\", \"content\": \"Be brief.\"},"
    "{\"role\": \"user\", \"content\": \"caf\\u00e9 {x}\"},"
    "{\"role\": \"assistant\", \"content\": null, \"tool_calls\": [{\"type\":"
    "\"function\", \"function\": {\"name\": \"f\", \"arguments\": {\"a\": 1,"
    "\"b\": [1.5, true]}}}]}], \"tools\": [{\"type\": \"function\"}],"
    "\"bos_token\": \"<s>\", \"eos_token\": \"</s>\","
    "\"add_generation_prompt\": true, \"n\": 3, \"f\": -0.5, \"e\": []}";

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    br_status st = {0}, again = {0};
    br_jinja *t = NULL;
    br_json *ctx = NULL;
    br_str a = {0}, b = {0};
    br_arena arena;

    if (size > 4096)
        return 0;
    br_arena_init(&arena, 0);
    br_check(br_json_parse(&ctx, &arena, context, sizeof context - 1, 0,
                           NULL) == BR_OK);
    if (br_jinja_compile(&t, (const char *)data, size, &st) == BR_OK) {
        br_code rc = br_jinja_render(t, ctx, 1768478400, &a, &st);
        br_check(br_jinja_render(t, ctx, 1768478400, &b, &again) == rc);
        if (rc == BR_OK)
            br_check(a.n == b.n && (!a.n || !memcmp(a.at, b.at, a.n)));
    }
    br_check(st.code == BR_OK || st.code == BR_E_FORMAT ||
             st.code == BR_E_LIMIT || st.code == BR_E_REJECTED);
    br_check((st.code == BR_OK) == (st.msg[0] == 0) ||
             st.code == BR_E_REJECTED);
    br_str_fini(&a);
    br_str_fini(&b);
    br_jinja_free(t);
    br_arena_fini(&arena);
    return 0;
}

/* fuzz_http_ask.c - any bytes as the body of a request to any of the APIs.
 *
 * The first byte chooses the API. What is refused says why; what is accepted
 * keeps every limit that the engine relies on.
 * SPDX-License-Identifier: Apache-2.0 */
#include "http/ask.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check_accepted(const br_ask *a)
{
    size_t prompts = BR_MAX(a->prompts.n, (size_t)1);

    if (a->api == BR_API_RERANK) /* the query is one more */
        br_check(a->query.n && prompts >= 2 &&
                 prompts <= BR_ASK_MAX_INPUTS + 1);
    else
        br_check(a->n >= 1 &&
                 (a->api == BR_API_EMBED
                      ? prompts <= BR_ASK_MAX_INPUTS
                      : (size_t)a->n * prompts <= BR_ASK_MAX_CHOICES));
    br_check(a->n_stop <= BR_ASK_MAX_STOPS);
    br_check(a->n_stop_tokens <= BR_ASK_MAX_STOPS / 2);
    br_check(a->sample.temperature >= 0 && a->sample.temperature <= 2);
    br_check(a->sample.n_bias <= BR_SAMPLE_MAX_BIAS);
    for (size_t i = 0; i < a->n_stop; i++)
        br_check(a->stop[i][0]);
    for (size_t i = 0; i < a->messages.n; i++)
        br_check(a->messages.at[i].role[0]);
    br_check(a->messages.n || a->prompts.n);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    br_sample_params sample = br_sample_defaults();
    br_status st = {0};
    br_code code;
    br_api api;
    br_ask a;

    if (size < 1 || size > 65536)
        return 0;
    api = data[0] == 'E'   ? BR_API_EMBED
          : data[0] == 'Z' ? BR_API_RERANK
                           : (br_api)(1 << data[0] % 6);
    code = br_ask_read(&a, api, &sample,
                       (br_text){(const char *)data + 1, size - 1}, &st);
    if (code == BR_OK)
        check_accepted(&a);
    else
        br_check(st.msg[0] && (code == BR_E_USAGE || code == BR_E_FORMAT ||
                               code == BR_E_LIMIT));
    br_ask_fini(&a);
    return 0;
}

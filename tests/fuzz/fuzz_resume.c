/* fuzz_resume.c - any bytes as the file of answers that a restart broke off:
 * what is taken over keeps what the server relies on.
 * SPDX-License-Identifier: Apache-2.0 */
#include "http/resume.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    br_resumed *list = br_resume_read((const char *)data, size, "fuzz");
    br_tok_ids ids = {0};

    for (const br_resumed *r = list; r; r = r->next) {
        size_t sum = 0;

        br_check(r->id[0] && !strpbrk(r->id, "\"\\/\n") && strlen(r->id) < 40);
        br_check(r->tenant < BR_MAX_TENANTS && r->created >= 0 && r->model);
        br_check(br_resume_path(r->wire)[0] == '/' && !r->begun && !r->status);
        for (uint32_t i = 0; i < 4; i++) {
            br_request_desc d = {0};

            if (!br_resume_choice(r, i, &ids, &d))
                break;
            sum += d.n_done;
            br_check(d.n_counted <= INT32_MAX);
            br_check(d.counted || (!d.prompt_counted && !d.n_counted));
        }
        br_check(ids.n == sum);
        for (size_t i = 0; i < ids.n; i++)
            br_check(ids.at[i] >= 0);
        ids.n = 0;
    }
    br_vec_fini(&ids);
    br_resumed_free(list);
    return 0;
}

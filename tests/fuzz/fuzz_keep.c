/* fuzz_keep.c - any bytes as a file of kept sessions, into the cache of a model
 * with a window and a state; what was taken is written again.
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/keep.h"
#include "run/lm_fake.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    br_lm_fake_config fc = {.n_slots = 1, .window = 32, .recurrent = true};
    br_kv_config kc = {.n_slots = 1, .max_tokens = 64, .n_pages = {9, 8}};
    br_prefix_config pc = {
        .n_blocks = 12, .n_states = 2, .n_scopes = 4, .recurrent = true};
    float states[4] = {0};
    br_keeper k = {.states = states, .max_blocks = 10};
    br_lm_fake *fake;
    const br_lm *lm;

    if (br_lm_fake_open(&fake, &fc, NULL) != BR_OK)
        abort();
    k.lm = lm = br_lm_fake_lm(fake);
    if (br_kv_new(&k.kv, lm->plan, &kc, NULL) != BR_OK ||
        br_prefix_new(&k.prefix, k.kv, lm->plan, &pc, NULL) != BR_OK)
        abort();
    (void)!br_keep_read(&k, p, n, NULL);
    br_prefix_audit(k.prefix);
    if (br_keep_save(&k, "/dev/null", NULL) != BR_OK ||
        br_keep_load(&k, "/dev/null", NULL) == BR_OK)
        abort();
    br_prefix_free(k.prefix);
    br_kv_free(k.kv);
    br_lm_fake_close(fake);
    return 0;
}

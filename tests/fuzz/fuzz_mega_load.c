/* fuzz_mega_load.c - any bytes as a task program.
 *
 * Whatever loads must save, load again and save to the same bytes; the fast
 * reader and the exact one must agree on every text; and memory must keep the
 * bound that mega.h states.
 * SPDX-License-Identifier: Apache-2.0 */
#include "mega/load.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
save(const br_mega_prog *p, br_str *out)
{
    br_check(br_mega_save(p, out, NULL) == BR_OK && "what loads saves");
}

static bool
same(const br_str *a, const br_str *b)
{
    return a->n == b->n && memcmp(a->at, b->at, a->n) == 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    br_text text = {(const char *)data, size};
    br_status fast = {0}, exact = {0};
    br_mega_prog *p, *q;
    br_str a = {0}, b = {0};

    br_load_text(&p, text, false, &fast);
    br_load_text(&q, text, true, &exact);
    br_check(fast.code == exact.code && "both readers give one verdict");
    if (!p) {
        br_check(strcmp(fast.msg, exact.msg) == 0 && "and one message");
        br_check(fast.msg[0] && "that says something");
        return 0;
    }
    br_check(p->arena.used <= size * BR_MEGA_MAX_GROWTH + (64u << 10));
    save(p, &a);
    save(q, &b);
    br_check(same(&a, &b) && "both readers give one program");
    br_mega_free(p);
    br_mega_free(q);
    br_str_clear(&b);
    br_check(br_mega_load(&p, a.at, a.n, NULL) == BR_OK && "saved text loads");
    save(p, &b);
    br_check(same(&a, &b) && "saving is stable");
    br_mega_free(p);
    br_str_fini(&a);
    br_str_fini(&b);
    return 0;
}

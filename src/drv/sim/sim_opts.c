/* sim_opts.c - which kernel, BAR and queues a simulated GPU has, as text.
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/sim/sim_crowd.h"
#include "drv/sim/sim_gpu.h"

#include <string.h>

enum { USERQ_SLOTS = 8, MAX_SLOTS = 8, MAX_VALUE = 24 };

/* Decimal digits and nothing else. */
static bool
number(br_text t, uint64_t most, uint64_t *v)
{
    *v = 0;
    for (size_t k = 0; k < t.n; k++) {
        const uint64_t d = (uint64_t)t.p[k] - '0';

        if (d > 9 || d > most || *v > (most - d) / 10)
            return false;
        *v = *v * 10 + d;
    }
    return t.n > 0;
}

/* Linux 6.12 looks at sizes, 6.16 has user queues. */
static bool
kernel(br_simgpu_opts *o, br_text t)
{
    const char *dot = memchr(t.p, '.', t.n);
    size_t n = dot ? (size_t)(dot - t.p) : t.n;
    uint64_t major, minor;

    if (!dot || !number((br_text){t.p, n}, 99, &major) ||
        !number((br_text){dot + 1, t.n - n - 1}, 999, &minor))
        return false;
    o->lax = major < 6 || (major == 6 && minor < 12);
    o->no_userq = major < 6 || (major == 6 && minor < 16);
    return true;
}

static bool
one(br_simgpu_opts *o, br_text key, br_text v)
{
    uint64_t n;

    if (br_text_is(key, "kernel"))
        return kernel(o, v);
    if (br_text_is(key, "bar")) {
        o->small_bar = br_text_is(v, "small");
        return o->small_bar || br_text_is(v, "large");
    }
    if (br_text_is(key, "userq") && number(v, MAX_SLOTS, &n)) {
        o->userq_slots = (uint32_t)n;
        return true;
    }
    if (br_text_is(key, "check") && number(v, 1, &n)) {
        o->check = n;
        return true;
    }
    if (br_text_is(key, "threads") && number(v, SIM_MAX_THREADS, &n)) {
        o->threads = (uint32_t)n;
        return true;
    }
    return br_text_is(key, "seed") && number(v, UINT64_MAX, &o->seed);
}

br_code
br_simgpu_read(br_simgpu_opts *o, const char *text, br_status *st)
{
    o->userq_slots = USERQ_SLOTS;
    while (text && *text) {
        size_t n = strcspn(text, ","), k = strcspn(text, "=,");

        if (k == n ||
            !one(o, (br_text){text, k}, (br_text){text + k + 1, n - k - 1}))
            return br_fail(st, BR_E_USAGE,
                           "simulated GPU: '%.*s': kernel=M.N, bar=small|large,"
                           " userq=0..%d, check=0|1, seed=N, threads=0..%d are "
                           "known",
                           (int)BR_MIN(n, (size_t)MAX_VALUE), text, MAX_SLOTS,
                           SIM_MAX_THREADS);
        text += n + (text[n] == ',');
    }
    return BR_OK;
}

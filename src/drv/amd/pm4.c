/* pm4.c - writing and reading PM4 packets.
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/amd/pm4.h"

#include <string.h>

enum {
    TYPE3 = 3,
    COMPUTE_SHADER_EN = 1,
    FORCE_START_AT_000 = 4,
    CS_W32_EN = 0x8000,
    /* CACHE_FLUSH_AND_INV_TS, event index 5; GLM, V$, L1 and L2 */
    FLUSH_EVENT = 0x0070f514,
    STORE_32 = 0x20000000, /* DATA_SEL 1, no interrupt */
};

static const struct {
    uint8_t op, body;
} rows[] = {
#define PM4(name, op, body) {op, body},
#include "drv/amd/pm4.def"
#undef PM4
};

/* -1: no such packet. */
static int
body_of(unsigned op)
{
    for (size_t k = 0; k < BR_COUNT(rows); k++)
        if (rows[k].op == op)
            return rows[k].body;
    return -1;
}

void
br_pm4_put(br_pm4 *s, br_pm4_op op, const uint32_t *body, size_t n)
{
    int want = body_of(op);

    br_assert(n && n <= BR_PM4_MAX_BODY && (want ? n == (size_t)want : n > 1));
    (void)want;
    s->full = s->full || n >= s->cap - s->n;
    if (s->full)
        return;
    s->at[s->n++] =
        (uint32_t)TYPE3 << 30 | (uint32_t)(n - 1) << 16 | (uint32_t)op << 8;
    memcpy(s->at + s->n, body, n * 4);
    s->n += n;
}

void
br_pm4_set_sh(br_pm4 *s, unsigned reg, const uint32_t *v, size_t n)
{
    uint32_t body[17];

    br_assert(n && n < BR_COUNT(body) && reg + n - 1 <= BR_PM4_SH_LAST);
    body[0] = reg;
    memcpy(body + 1, v, n * 4);
    br_pm4_put(s, BR_PM4_SET_SH_REG, body, n + 1);
}

void
br_pm4_dispatch(br_pm4 *s, const uint32_t groups[3], bool wave64)
{
    uint32_t how = COMPUTE_SHADER_EN | FORCE_START_AT_000;
    uint32_t body[4] = {groups[0], groups[1], groups[2],
                        how | (wave64 ? 0u : CS_W32_EN)};

    br_pm4_put(s, BR_PM4_DISPATCH_DIRECT, body, BR_COUNT(body));
}

void
br_pm4_acquire(br_pm4 *s, uint32_t gcr)
{
    /* all addresses: size is all ones, base 0; then how often to poll */
    uint32_t body[7] = {0, 0xffffffff, 0x00ffffff, 0, 0, 10, gcr};

    br_pm4_put(s, BR_PM4_ACQUIRE_MEM, body, BR_COUNT(body));
}

void
br_pm4_release(br_pm4 *s, uint64_t address, uint32_t value)
{
    uint32_t body[7] = {FLUSH_EVENT,
                        STORE_32,
                        (uint32_t)address,
                        (uint32_t)(address >> 32),
                        value,
                        0,
                        0};

    br_assert(address % 4 == 0);
    br_pm4_put(s, BR_PM4_RELEASE_MEM, body, BR_COUNT(body));
}

size_t
br_pm4_next(const uint32_t *w, size_t n, br_pm4_view *out)
{
    size_t body = n ? (*w >> 16 & BR_PM4_MAX_BODY) + 1u : 0;
    int want = n ? body_of(*w >> 8 & 255) : -1;

    if (!n || *w >> 30 != TYPE3 || *w & 0xfc || want < 0 || n - 1 < body ||
        (want ? body != (size_t)want : body < 2))
        return 0;
    *out = (br_pm4_view){(br_pm4_op)(*w >> 8 & 255), w + 1, body};
    return body + 1;
}

/* ir_flat.c - a graph from its block of bytes, mapped or read.
 *
 * The head's numbers are checked against the size before any is used; then the
 * verifier judges what the block holds. Nothing is copied.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "ir/ir_int.h"

#include <string.h>

static br_code
bad(br_status *st, const char *rule)
{
    return br_fail(st, BR_E_FORMAT, "graph: %s", rule);
}

/* A part of `count` records at `at`, inside of `total`. */
static bool
inside(uint64_t at, uint64_t count, uint64_t size, uint64_t total)
{
    uint64_t bytes;

    return at % 8 == 0 && at <= total &&
           !__builtin_mul_overflow(count, size, &bytes) && bytes <= total - at;
}

static br_code
check_head(const br_ir_head *h, size_t n, br_status *st)
{
    if (memcmp(h->magic, BR_IR_MAGIC, 4) != 0)
        return bad(st, "does not begin with BRIR");
    if (h->version != BR_IR_VERSION)
        return br_fail(st, BR_E_VERSION, "graph: version %u, this build has %d",
                       h->version, BR_IR_VERSION);
    if (h->value_bytes != sizeof(br_ir_value) ||
        h->node_bytes != sizeof(br_ir_node))
        return bad(st, "records are of another size");
    if (h->stage >= BR_IR_STAGE_COUNT)
        return bad(st, "no such stage");
    if (h->total != n)
        return bad(st, "is not as long as it says");
    if (h->n_values > BR_IR_MAX_VALUES || h->n_nodes > BR_IR_MAX_NODES)
        return br_fail(st, BR_E_LIMIT, "graph: more than %d values or nodes",
                       BR_IR_MAX_VALUES);
    if (!inside(h->values_at, h->n_values, sizeof(br_ir_value), n) ||
        !inside(h->nodes_at, h->n_nodes, sizeof(br_ir_node), n) ||
        !inside(h->data_at, h->n_data, sizeof(float), n) ||
        !inside(h->strings_at, h->n_strings, 1, n))
        return bad(st, "a part lies outside of it");
    return BR_OK;
}

br_code
br_ir_map(br_ir **out, const void *p, size_t n, br_status *st)
{
    const br_ir_head *h = p;
    const char *strings;
    br_ir *g;
    br_code code;

    *out = NULL;
    if ((uintptr_t)p % 8 != 0)
        return bad(st, "is not 8-aligned");
    if (n < sizeof *h)
        return bad(st, "is shorter than its head");
    BR_TRY(check_head(h, n, st));
    strings = (const char *)p + h->strings_at;
    if (h->name >= h->n_strings ||
        !memchr(strings + h->name, 0, h->n_strings - h->name))
        return bad(st, "has no name");
    g = br_try_calloc(1, sizeof *g);
    if (!g)
        return br_fail(st, BR_E_OOM, "graph: out of memory");
    br_ir_view(g, p);
    code = br_ir_verify(g, st);
    if (code != BR_OK) {
        br_ir_free(g);
        return code;
    }
    *out = g;
    return BR_OK;
}

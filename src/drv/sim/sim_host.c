/* sim_host.c - see sim_host.h and kernels/host/host.cu. What lies in the block
 * was written by a kernel, so each number is checked.
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/sim/sim_host.h"

#include "../../../kernels/host/host_block.h"
#include "cg/kprint.h"
#include "drv/sim/sim_int.h"

#include <string.h>

enum {
    HEAD = 4096, /* of the block, before ring and heap */
    ALL = HEAD + BR_HOST_RING + BR_HOST_HEAP
};

static uint8_t *
ring_of(const br_gcn_module *m)
{
    return (uint8_t *)m->host + HEAD;
}

void
sim_host_share(br_gcn_module *m, const br_klaunch *l)
{
    if (!l->block_of_all)
        return;
    if (m->host && !m->host_of_all)
        br_free(m->host);
    m->host_of_all = true;
    m->host = *l->block_of_all;
}

br_code
sim_host_begin(br_gcn_module *m, const br_klaunch *l, br_status *st)
{
    uint64_t base;

    if (!m->host) {
        m->host = br_try_calloc(ALL, 1);
        if (!m->host)
            return br_fail(st, BR_E_OOM, "out of memory");
        m->host->top = BR_HOST_GRAIN; /* place 0 is none */
        if (l->block_of_all)
            *l->block_of_all = m->host;
    }
    base = (uint64_t)(uintptr_t)m->host;
    m->host->ring = base + HEAD;
    m->host->heap = base + HEAD + BR_HOST_RING;
    m->host->used = 0;
    m->host->fault = BR_HOST_NO_FAULT;
    return BR_OK;
}

br_kregion
sim_host_region(const br_gcn_module *m)
{
    return (br_kregion){.addr = (uint64_t)(uintptr_t)m->host,
                        .bytes = ALL,
                        .host = (uint8_t *)m->host,
                        .name = "memory of printf and malloc"};
}

/* ---- what was printed ----------------------------------------------------- */

static bool
text_at(br_sim *s, uint64_t addr, char *buf, size_t size)
{
    size_t n = 0;

    for (; n + 1 < size; n++) {
        const uint8_t *p = sim_at(s, addr + n, 1, false);

        if (!p || !*p)
            break;
        buf[n] = (char)*p;
    }
    buf[n] = 0;
    return n || sim_at(s, addr, 1, false);
}

typedef struct record {
    const uint8_t *args, *texts, *end;
    size_t at, arg_bytes;
} record;

static bool
next_arg(void *ctx, bool wide, uint64_t *v)
{
    record *r = ctx;
    size_t n = wide ? 8 : 4, at = (r->at + n - 1) & ~(n - 1);

    if (at > r->arg_bytes || r->arg_bytes - at < n)
        return false;
    *v = 0;
    memcpy(v, r->args + at, n);
    r->at = at + n;
    return true;
}

static bool
next_text(void *ctx, uint64_t v, char *buf, size_t size)
{
    record *r = ctx;
    const uint8_t *nul = memchr(r->texts, 0, (size_t)(r->end - r->texts));
    size_t n;

    (void)v;
    if (!nul)
        return false;
    n = BR_MIN((size_t)(nul - r->texts), size - 1);
    memcpy(buf, r->texts, n);
    buf[n] = 0;
    r->texts = nul + 1;
    return true;
}

/* The record at the ring's place; the next place, or 0: it is none. */
static size_t
print_one(br_gcn_module *m, br_sim *s, br_klaunch *l, size_t at, br_str *out)
{
    char f[BR_KPRINT_MAX];
    const uint8_t *p = ring_of(m) + at;
    br_host_print h;
    record r;
    br_kprint_from from = {next_arg, next_text, &r};

    memcpy(&h, p, sizeof h);
    if (h.bytes < sizeof h || h.bytes > BR_HOST_RING - at ||
        h.bytes % BR_HOST_GRAIN || h.arg_bytes > h.bytes - sizeof h)
        return 0;
    r = (record){.args = p + sizeof h,
                 .texts = p + sizeof h + h.arg_bytes,
                 .end = p + h.bytes,
                 .arg_bytes = h.arg_bytes};
    if (!text_at(s, h.format, f, sizeof f) || !br_kprint(out, f, &from))
        return 0;
    if (l->print && out->n)
        l->print(l->arg, out->at, out->n);
    out->n = 0;
    return at + h.bytes;
}

static void
print_all(br_gcn_module *m, br_sim *s, br_klaunch *l)
{
    size_t at = 0, n;
    br_str out = {0};

    while (BR_HOST_RING - at >= sizeof(br_host_print)) {
        n = print_one(m, s, l, at, &out);
        if (!n)
            break;
        at = n;
    }
    br_str_fini(&out);
    memset(ring_of(m), 0, (size_t)BR_MIN(m->host->used, BR_HOST_RING + 0ull));
}

/* ---- why it stopped ------------------------------------------------------- */

br_code
sim_host_end(br_gcn_module *m, br_sim *s, br_klaunch *l, br_code code,
             br_status *st)
{
    char what[200], file[200];

    if (m->host->used)
        print_all(m, s, l);
    if (code != BR_E_FAULT)
        return code;
    if (m->host->fault == BR_HOST_BAD_FREE) {
        *st = (br_status){0}; /* it says "trap" */
        return br_fail(st, code, "free of 0x%llx, which malloc did not give",
                       m->host->what);
    }
    if (m->host->fault != BR_HOST_ASSERT ||
        !text_at(s, m->host->what, what, sizeof what) ||
        !text_at(s, m->host->file, file, sizeof file))
        return code;
    l->fault = BR_KFAULT_ASSERT;
    *st = (br_status){0};
    return br_fail(st, code, "assertion `%s' failed at %s:%u", what, file,
                   m->host->line);
}

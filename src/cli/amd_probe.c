/* amd_probe.c - brass test-pm4: every packet that we use, tried once.
 *
 * Each step is one stream of its own, its effect in memory is looked at, and the
 * first that fails is named: a packet processor that does not know a packet may
 * do anything with what follows it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/amd_probe.h"

#include "base/json.h"
#include "cg/gcn/gcn_file.h"
#include "drv/amd/amd_trace.h"
#include "drv/sim/sim_replay.h"

#include <string.h>

enum {
    RING = 1024, /* dwords */
    SLOTS = 64,
    OLD = 0x11111111,
    NEW = 0x22222222,
    IB_AT = 1024, /* in the page; arguments lie behind */
    ARGS_AT = 2048,
    WAIT_EQUAL = 0x13,    /* in memory */
    TO_MEMORY = 0x100500, /* and wait until it is there */
    IB_VALID = 1 << 23,
};
static const int64_t patience_ns = 5 * 1000000000ll;

typedef struct probe {
    br_amd_dev d;
    br_amd_queue pm4, aql;
    br_amd_mem page, code;
    br_gcn_co co;
    br_aql_launch launch;
    br_pm4 s;
    uint32_t words[256];
} probe;

static _Atomic uint32_t *
word(const probe *p, unsigned at)
{
    return (_Atomic uint32_t *)(void *)(p->page.host + at);
}

/* A write of NEW to the page's word. */
static void
write_data(br_pm4 *s, uint64_t at)
{
    uint32_t b[] = {TO_MEMORY, (uint32_t)at, (uint32_t)(at >> 32), NEW};

    br_pm4_put(s, BR_PM4_WRITE_DATA, b, BR_COUNT(b));
}

/* ---- the steps; each leaves NEW in the page's word --------------------- */

static br_code
step_nop(probe *p, br_status *st)
{
    (void)st;
    br_pm4_put(&p->s, BR_PM4_NOP, (uint32_t[]){OLD, OLD}, 2);
    write_data(&p->s, p->page.va);
    return BR_OK;
}

static br_code
step_acquire(probe *p, br_status *st)
{
    (void)st;
    br_pm4_acquire(&p->s, BR_PM4_BEFORE);
    write_data(&p->s, p->page.va);
    return BR_OK;
}

static br_code
step_wait(probe *p, br_status *st)
{
    uint32_t b[] = {
        WAIT_EQUAL, (uint32_t)p->page.va, (uint32_t)(p->page.va >> 32),
        OLD,        UINT32_MAX,           4};

    (void)st;
    br_pm4_put(&p->s, BR_PM4_WAIT_REG_MEM, b, BR_COUNT(b));
    write_data(&p->s, p->page.va);
    return BR_OK;
}

static br_code
step_event(probe *p, br_status *st)
{
    uint32_t flush = BR_PM4_PARTIAL_FLUSH;

    (void)st;
    br_pm4_put(&p->s, BR_PM4_EVENT_WRITE, &flush, 1);
    write_data(&p->s, p->page.va);
    return BR_OK;
}

static br_code
step_release(probe *p, br_status *st)
{
    (void)st;
    br_pm4_release(&p->s, p->page.va, NEW);
    return BR_OK;
}

static br_code
step_indirect(probe *p, br_status *st)
{
    br_pm4 ib = {.at = (uint32_t *)(void *)(p->page.host + IB_AT), .cap = 16};
    uint64_t at = p->page.va + IB_AT;
    uint32_t b[3] = {(uint32_t)at, (uint32_t)(at >> 32)};

    (void)st;
    write_data(&ib, p->page.va);
    b[2] = (uint32_t)ib.n | IB_VALID;
    br_pm4_put(&p->s, BR_PM4_INDIRECT_BUFFER, b, BR_COUNT(b));
    return BR_OK;
}

static br_code
step_dispatch(probe *p, br_status *st)
{
    const uint8_t *kd = p->code.host + (p->launch.kernel - p->code.va);

    return br_amd_pm4_launch(&p->pm4, &p->s, &p->launch, kd, st);
}

static br_code
step_aql(probe *p, br_status *st)
{
    BR_TRY(br_amd_queue_init(&p->aql, &p->d, false, SLOTS, st));
    BR_TRY(br_amd_launch(&p->aql, &p->launch, st));
    return br_amd_wait(&p->aql, patience_ns, st);
}

static const struct {
    const char *what;
    br_code (*fn)(probe *p, br_status *st);
} steps[] = {
    {"WRITE_DATA, NOP", step_nop},
    {"ACQUIRE_MEM", step_acquire},
    {"WAIT_REG_MEM", step_wait},
    {"EVENT_WRITE", step_event},
    {"RELEASE_MEM", step_release},
    {"INDIRECT_BUFFER", step_indirect},
    {"SET_SH_REG, DISPATCH_DIRECT", step_dispatch},
    {"a packet of AQL", step_aql},
};

/* ---- around them ------------------------------------------------------- */

/* A kernel that stores NEW where its argument says. */
static br_code
kernel(probe *p, br_status *st)
{
    static const char text[] =
        "k:\ns_load_b64 s[2:3], s[0:1], 0x0\nv_mov_b32 v1, 0\n"
        "v_mov_b32 v2, 0x22222222\n%s\n"
        "global_store_b32 v1, v2, s[2:3]\ns_endpgm\n.amdhsa_kernel k\n"
        ".amdhsa_user_sgpr_kernarg_segment_ptr 1\n"
        ".amdhsa_user_sgpr_count 15\n.amdhsa_kernarg_size 8\n"
        ".amdhsa_next_free_vgpr 8\n.amdhsa_next_free_sgpr 18\n"
        ".end_amdhsa_kernel\n";
    const br_gcn_cpu *cpu = br_gcn_cpu_find(p->d.node.name);
    br_amd_want w = {.heap = p->d.node.small_bar || p->d.user ? BR_AMD_HOST
                                                              : BR_AMD_BAR,
                     .exec = true};
    br_str s = {0}, o = {0};
    br_code c;

    if (!cpu)
        return br_fail(st, BR_E_UNSUPPORTED, "no code is made for %s",
                       p->d.node.name);
    br_str_printf(&s, text,
                  cpu->gen == 12 ? "s_wait_kmcnt 0x0" : "s_waitcnt lgkmcnt(0)");
    c = br_gcn_assemble(&o, cpu, br_str_z(&s), s.n, st);
    if (c == BR_OK)
        c = br_gcn_load(&p->co, o.at, o.n, st);
    br_str_fini(&s);
    br_str_fini(&o);
    BR_TRY(c);
    w.bytes = p->co.bytes;
    BR_TRY(br_amd_alloc(&p->d, &p->code, &w, st));
    memcpy(p->code.host, p->co.image, p->co.bytes);
    br_amd_flush(&p->d);
    memcpy(p->page.host + ARGS_AT, &p->page.va, 8);
    p->launch = (br_aql_launch){.groups = {1, 1, 1},
                                .group = {1, 1, 1},
                                .kernel = p->code.va +
                                          br_gcn_kernel_find(&p->co, "k")->at,
                                .kernarg = p->page.va + ARGS_AT};
    return BR_OK;
}

static br_code
step(probe *p, size_t k, br_status *st)
{
    p->s = (br_pm4){.at = p->words, .cap = BR_COUNT(p->words)};
    atomic_store_explicit(word(p, 0), OLD, memory_order_relaxed);
    BR_TRY(steps[k].fn(p, st));
    if (p->s.n) {
        BR_TRY(br_amd_pm4_submit(&p->pm4, &p->s, st));
        BR_TRY(br_amd_wait(&p->pm4, patience_ns, st));
    }
    if (atomic_load_explicit(word(p, 0), memory_order_acquire) != NEW)
        return br_fail(st, BR_E_FAULT, "it did not write");
    return BR_OK;
}

static br_code
run(probe *p, const br_amd_os *os, const br_amd_node *n, bool user,
    br_status *st)
{
    br_amd_want page = {.bytes = BR_KFD_PAGE, .heap = BR_AMD_HOST};

    BR_TRY(user ? br_amd_open_user(&p->d, os, n, st)
                : br_amd_open(&p->d, os, n, st));
    BR_TRY(br_amd_queue_init(&p->pm4, &p->d, true, RING, st));
    BR_TRY(br_amd_alloc(&p->d, &p->page, &page, st));
    return kernel(p, st);
}

br_code
br_amd_probe(const br_amd_os *os, const br_amd_node *n, bool user,
             br_amd_tell t, br_status *st)
{
    probe p = {.page = {0}};
    br_code c = run(&p, os, n, user, st);

    for (size_t k = 0; c == BR_OK && k < BR_COUNT(steps); k++) {
        if (user && steps[k].fn == step_aql)
            continue;
        c = step(&p, k, st);
        if (c != BR_OK)
            br_prefix(st, "%s", steps[k].what);
        else if (t.say)
            t.say(t.arg, steps[k].what);
    }
    br_amd_queue_fini(&p.aql);
    br_amd_queue_fini(&p.pm4);
    br_amd_free(&p.d, &p.code);
    br_amd_free(&p.d, &p.page);
    br_amd_close(&p.d);
    br_gcn_unload(&p.co);
    return c;
}

br_code
br_amd_probe_os(br_cli *cli, const br_amd_os **os, br_simgpu **sim,
                br_status *st)
{
    const char *name = br_opt_str(cli, BR_OPT_sim);
    br_simgpu_opts o = {.cpu = name, .check = true};

    *sim = NULL;
    *os = &br_amd_os_real;
    if (!name)
        return BR_OK;
    BR_TRY(br_simgpu_read(&o, br_opt_str(cli, BR_OPT_sim_opts), st));
    BR_TRY(br_simgpu_new(sim, &o, st));
    *os = br_simgpu_os(*sim);
    return BR_OK;
}

static void
print(void *arg, const char *what)
{
    br_cli *cli = arg;

    if (!br_opt_bool(cli, BR_OPT_json))
        fprintf(cli->out, "ok  %s\n", what);
}

/* The file of --trace, after a failure as well: then it is wanted most. */
static br_code
keep_trace(br_cli *cli, const br_amd_trace *t, br_status *st)
{
    br_text text;

    if (!br_amd_trace_text(t, &text))
        return br_fail(st, BR_E_OOM, "no memory for the trace");
    return br_file_write(br_opt_str(cli, BR_OPT_amd_trace), text.p, text.n, st);
}

/* T1, then T2, of which user says why not: without it the GPU is as good. */
static br_code
probe_traced(br_cli *cli, const br_amd_os *os, br_amd_node *n, br_status *user,
             br_status *st)
{
    br_amd_trace *t =
        br_opt_str(cli, BR_OPT_amd_trace) ? br_amd_trace_new(os) : NULL;
    br_status file = {0};
    br_code c;

    if (!t && br_opt_str(cli, BR_OPT_amd_trace))
        return br_fail(st, BR_E_OOM, "no memory for a trace");
    os = t ? br_amd_trace_os(t) : os;
    c = br_amd_node_get(n, os, 0, st);
    if (c == BR_OK)
        c = br_amd_probe(os, n, false, (br_amd_tell){print, cli}, st);
    if (c == BR_OK)
        (void)!br_amd_probe(os, n, true, (br_amd_tell){NULL, NULL}, user);
    if (t && keep_trace(cli, t, &file) != BR_OK && c == BR_OK) {
        *st = file;
        c = file.code;
    }
    br_amd_trace_free(t);
    return c;
}

static int
replay(br_cli *cli, const char *path)
{
    br_simgpu_replayed r = {.chip = ""};
    br_status st = {0};
    char *text = NULL;
    size_t n;
    br_code c = br_file_read(path, BR_AMD_TRACE_MAX_BYTES, &text, &n, &st);

    if (c == BR_OK)
        c = br_simgpu_replay(&r, text, n, patience_ns, &st);
    br_free(text);
    if (c == BR_OK && br_opt_bool(cli, BR_OPT_json))
        fprintf(cli->out,
                "{\"device\":\"%s\",\"calls\":%u,\"rings\":%u,\"words\":%u,"
                "\"differences\":%u}\n",
                r.chip, r.calls, r.rings, r.words, r.differences);
    else if (c == BR_OK)
        fprintf(cli->out,
                "%s%s: %u calls, %u doorbells, %u words of the GPU's: %u "
                "differences\n",
                br_str_z(&r.said), r.chip, r.calls, r.rings, r.words,
                r.differences);
    br_str_fini(&r.said);
    if (c != BR_OK)
        return br_cli_fail(cli, &st);
    return r.differences ? 4 : 0;
}

int
br_cmd_test_pm4(br_cli *cli)
{
    const char *trace = br_opt_str(cli, BR_OPT_amd_replay);
    const br_amd_os *os;
    br_simgpu *sim;
    br_amd_node n;
    br_status st = {0}, user = {0};
    br_code c;

    if (trace)
        return replay(cli, trace);
    c = br_amd_probe_os(cli, &os, &sim, &st);
    if (c == BR_OK)
        c = probe_traced(cli, os, &n, &user, &st);
    br_simgpu_free(sim);
    if (c != BR_OK)
        return br_cli_fail(cli, &st);
    if (br_opt_bool(cli, BR_OPT_json))
        fprintf(cli->out,
                "{\"device\":\"%s\",\"ok\":true,\"user_queues\":%s}\n", n.name,
                user.code == BR_OK ? "true" : "false");
    else
        fprintf(cli->out, "%s takes every packet; user queues: %s\n", n.name,
                user.code == BR_OK ? "as well" : user.msg);
    return 0;
}

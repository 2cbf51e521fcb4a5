/* test_kfd.c - the driver of AMD GPUs against the simulated kernel and GPU.
 *
 * Milestone A: an empty kernel, assembled, linked, described, dispatched by a
 * packet that is built field by field. Then each fault of a ring that the packet
 * processor has to report; what the kernel refuses: test_kfd_calls.c.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kfd_kit.h"
#include "t.h"

#include "base/thread.h"

#include <string.h>

#define SECOND 1000000000ll

static void
begin(rig *r, const br_simgpu_opts *o)
{
    kfd_begin(r, o, false);
}

/* Assembles kernel k and puts it into memory of the GPU. */
static br_aql_launch
load(rig *r, const char *body, const char *directives)
{
    const char *text = t_printf(
        "k:\n%s\ns_endpgm\n.amdhsa_kernel k\n.amdhsa_next_free_vgpr 8\n"
        ".amdhsa_next_free_sgpr 8\n%s\n.end_amdhsa_kernel\n",
        body, directives);
    br_amd_want w = {.heap = BR_AMD_BAR, .exec = true};
    br_status st = {0};
    br_str o = {0};
    const br_gcn_symbol *kd;
    uint32_t need[2];

    t_ok(br_gcn_assemble(&o, br_gcn_cpu_find(r->node.name), text, strlen(text),
                         &st),
         &st);
    t_ok(br_gcn_load(&r->co, o.at, o.n, &st), &st);
    br_str_fini(&o);
    w.bytes = r->co.bytes;
    t_ok(br_amd_alloc(&r->d, &r->code, &w, &st), &st);
    memcpy(r->code.host, r->co.image, r->co.bytes);
    br_amd_flush(&r->d);
    kd = br_gcn_kernel_find(&r->co, "k");
    memcpy(need, r->co.image + kd->at, sizeof need);
    return (br_aql_launch){.groups = {1, 1, 1},
                           .group = {1, 1, 1},
                           .group_bytes = need[0],
                           .private_bytes = need[1],
                           .kernel = r->code.va + kd->at};
}

static const char *const cpus[] = {"gfx1100", "gfx1151", "gfx1201"};

TEST(an_empty_kernel_is_dispatched_by_hand)
{
    for (size_t k = 0; k < BR_COUNT(cpus); k++) {
        br_amd_control *c;
        br_amd_signal *s;
        br_aql_packet *p;
        br_aql_launch l;
        rig r;

        begin(&r, &(br_simgpu_opts){.cpu = cpus[k], .check = true});
        l = load(&r, "", "");
        c = (void *)r.q.control.host;
        s = (void *)r.q.signal.host;
        p = (void *)r.q.ring.host;
        p->setup = 1;
        p->group[0] = p->group[1] = p->group[2] = 1;
        p->grid[0] = p->grid[1] = p->grid[2] = 1;
        p->kernel = l.kernel;
        p->completion = r.q.signal.va;
        atomic_store_explicit(&p->header, 2 | 1 << 8 | 2 << 9 | 2 << 11,
                              memory_order_release);
        atomic_store_explicit(&c->write, 1, memory_order_release);
        atomic_store_explicit(r.q.doorbell, 0, memory_order_release);
        r.q.next = 1;
        t_ok(br_amd_wait(&r.q, 10 * SECOND, NULL), &(br_status){0});
        ck_assert_int_eq(s->value, -1);
        ck_assert_uint_eq(c->read, 1);
        ck_assert_uint_eq(br_simgpu_waves(r.g)->steps, 1);
        kfd_finish(&r, NULL);
    }
}

/* Three times around the ring; no ioctl while nobody has to sleep. */
TEST(launches_go_around_the_ring)
{
    rig r;
    br_status st = {0};
    br_aql_launch l;
    uint64_t before;
    br_amd_mem m;

    begin(&r, &(br_simgpu_opts){.cpu = "gfx1201", .tells_sizes = true});
    t_ok(br_amd_alloc(&r.d, &m,
                      &(br_amd_want){.bytes = 4096, .heap = BR_AMD_HOST}, &st),
         &st);
    l = load(&r,
             "s_load_b64 s[2:3], s[0:1], 0x0\nv_mov_b32 v1, 0\n"
             "v_mov_b32 v2, 1\ns_wait_kmcnt 0x0\n"
             "global_atomic_add_u32 v1, v2, s[2:3]\ns_wait_storecnt 0x0",
             ".amdhsa_user_sgpr_kernarg_segment_ptr 1\n"
             ".amdhsa_user_sgpr_count 2\n.amdhsa_kernarg_size 8");
    l.kernarg = m.va + 1024;
    memcpy(m.host + 1024, &m.va, 8);
    l.group[0] = 32;
    before = br_simgpu_ioctls(r.g);
    for (int k = 0; k < 50; k++)
        t_ok(br_amd_launch(&r.q, &l, &st), &st);
    ck_assert_uint_eq(br_simgpu_ioctls(r.g), before);
    for (int k = 0; k < 150; k++)
        t_ok(br_amd_launch(&r.q, &l, &st), &st);
    t_ok(br_amd_wait(&r.q, 10 * SECOND, &st), &st);
    ck_assert_uint_eq(*(uint32_t *)(void *)m.host, 200 * 32);
    br_amd_free(&r.d, &m);
    kfd_finish(&r, NULL);
}

TEST(scratch_comes_with_the_first_kernel_that_has_some)
{
    rig r;
    br_status st = {0};
    br_aql_launch l;

    begin(&r, &(br_simgpu_opts){.cpu = "gfx1100"});
    l = load(&r,
             "v_mov_b32 v1, 7\nscratch_store_b32 off, v1, off offset:12\n"
             "s_waitcnt_vscnt null, 0x0",
             ".amdhsa_private_segment_fixed_size 400\n"
             ".amdhsa_enable_private_segment 1");
    ck_assert_uint_eq(l.private_bytes, 400);
    t_ok(br_amd_launch(&r.q, &l, &st), &st);
    t_ok(br_amd_wait(&r.q, 10 * SECOND, &st), &st);
    /* 96 CUs of 32 waves of 64 lanes of 512 bytes, in 6 engines */
    ck_assert_uint_eq(r.q.scratch.bytes, 96ull * 32 * 64 * 512);
    ck_assert_uint_eq(((br_amd_control *)(void *)r.q.control.host)->tmpring,
                      512 | 512 * 64 / 256 << 12);
    kfd_finish(&r, NULL);
}

/* What a wave does wrong ends the wait, with the reason in the reports. */
TEST(a_fault_of_a_kernel_wakes_who_waits)
{
    static const struct {
        const char *body, *says;
        br_code code;
    } bad[] = {{"v_mov_b32 v0, 0\nv_mov_b32 v1, 0\n"
                "global_load_b32 v0, v[0:1], off",
                "outside of what is there", BR_E_FAULT},
               {"l:\ns_branch l", "more than 1000 instructions", BR_E_TIMEOUT}};

    for (size_t k = 0; k < BR_COUNT(bad); k++) {
        rig r;
        br_status st = {0};
        br_aql_launch l;

        begin(&r, &(br_simgpu_opts){.cpu = "gfx1100", .max_steps = 1000});
        l = load(&r, bad[k].body, "");
        t_ok(br_amd_launch(&r.q, &l, &st), &st);
        ck_assert_int_eq(br_amd_wait(&r.q, 10 * SECOND, &st), BR_E_FAULT);
        st = (br_status){0};
        ck_assert_int_eq(br_simgpu_fault(r.g, &st), bad[k].code);
        ck_assert_int_eq(br_amd_launch(&r.q, &l, NULL), BR_E_FAULT);
        kfd_finish(&r, bad[k].says);
    }
}

/* As on a card, a queue goes with the waves that run; others do not notice. */
TEST(a_queue_is_destroyed_while_its_kernel_runs)
{
    for (int pm4 = 0; pm4 < 2; pm4++) {
        uint32_t w[128];
        br_pm4 s = {.at = w, .cap = BR_COUNT(w)};
        br_status st = {0};
        br_aql_launch l;
        int64_t begun;
        rig r;

        kfd_begin(&r, &(br_simgpu_opts){.cpu = "gfx1201", .check = pm4}, pm4);
        l = load(&r, "x: s_branch x", ".amdhsa_user_sgpr_count 2");
        if (pm4) {
            t_ok(br_amd_pm4_launch(&r.q, &s, &l, (uint8_t *)(uintptr_t)l.kernel,
                                   &st),
                 &st);
            t_ok(br_amd_pm4_submit(&r.q, &s, &st), &st);
        } else {
            t_ok(br_amd_launch(&r.q, &l, &st), &st);
        }
        ck_assert_int_eq(br_amd_wait(&r.q, SECOND / 50, NULL), BR_E_TIMEOUT);
        begun = br_now_ns();
        br_amd_queue_fini(&r.q);
        ck_assert_int_lt(br_now_ns() - begun, 10 * SECOND);
        /* and the next one works */
        t_ok(br_amd_queue_init(&r.q, &r.d, false, 64, &st), &st);
        kfd_finish(&r, NULL);
    }
}

/* ---- faults of the ring ------------------------------------------------ */

typedef void (*fault_fn)(rig *r, br_aql_launch *l);

static void
put(rig *r, uint64_t n, const br_aql_launch *l, bool publish)
{
    br_aql_packet *p = (br_aql_packet *)(void *)r->q.ring.host + n % 64;
    br_aql_launch mine = *l;
    br_status st = {0};

    mine.completion = r->q.signal.va;
    t_ok(br_aql_fill(p, &mine, &st), &st);
    if (publish)
        br_aql_publish(p, br_aql_header(BR_AQL_DISPATCH, true, 2, 2));
}

static void
ring(rig *r, uint64_t written, uint64_t doorbell)
{
    br_amd_control *c = (void *)r->q.control.host;

    atomic_store_explicit(&c->write, written, memory_order_release);
    atomic_store_explicit(r->q.doorbell, doorbell, memory_order_release);
    r->q.next = BR_MAX(written, 1);
}

static void
no_header(rig *r, br_aql_launch *l)
{
    put(r, 0, l, true);
    put(r, 1, l, false);
    ring(r, 2, 1);
}

static void
too_far(rig *r, br_aql_launch *l)
{
    put(r, 0, l, true);
    ring(r, 0, 0);
}

static void
backwards(rig *r, br_aql_launch *l)
{
    for (uint64_t k = 0; k < 3; k++)
        put(r, k, l, true);
    ring(r, 3, 2);
    t_ok(br_amd_wait(&r->q, 10 * SECOND, NULL), &(br_status){0});
    ring(r, 4, 0);
}

static void
overrun(rig *r, br_aql_launch *l)
{
    for (uint64_t k = 0; k < 65; k++)
        put(r, k, l, true);
    ring(r, 65, 64);
}

static void
zeros(rig *r, br_aql_launch *l)
{
    br_aql_packet *p = (void *)r->q.ring.host;

    (void)l;
    memset((char *)p + 4, 0, sizeof *p - 4);
    br_aql_publish(p, 0); /* type 0; the processor looks at headers any time */
    ring(r, 1, 0);
}

static void
little_lds(rig *r, br_aql_launch *l)
{
    l->group_bytes = 0;
    put(r, 0, l, true);
    ring(r, 1, 0);
}

static void
no_scratch(rig *r, br_aql_launch *l)
{
    l->private_bytes = 16;
    put(r, 0, l, true);
    ring(r, 1, 0);
}

static void
no_signal(rig *r, br_aql_launch *l)
{
    ((br_amd_signal *)(void *)r->q.signal.host)->kind = 0;
    put(r, 0, l, true);
    ring(r, 1, 0);
}

static void
no_mailbox(rig *r, br_aql_launch *l)
{
    ((br_amd_signal *)(void *)r->q.signal.host)->mailbox = 64;
    put(r, 0, l, true);
    put(r, 1, l, true);
    ring(r, 2, 1);
}

static void
bad_setup(rig *r, br_aql_launch *l)
{
    l->groups[1] = 2;
    put(r, 0, l, false);
    ((br_aql_packet *)(void *)r->q.ring.host)->setup = 1;
    br_aql_publish((br_aql_packet *)(void *)r->q.ring.host, 0x1502);
    ring(r, 1, 0);
}

static const struct {
    fault_fn fn;
    const char *says;
} faults[] = {
    {no_header, "half written: packet 1 was rung for, its header is invalid"},
    {too_far, "doorbell order: it names packet 0, the write index is 0"},
    {backwards, "doorbell order: packet 0 after packet 2"},
    {overrun, "ring overrun: packet 64 is written, packet 0 was not taken"},
    {zeros, "packet 0: type 0"},
    {little_lds, "0 bytes of LDS, 0 of scratch; the kernel has 64 and 0"},
    {no_scratch, "16 bytes of scratch a lane, and the queue has no such"},
    {no_signal, "no signal at 0x"},
    {no_mailbox, "no mailbox at 0x40"},
    {bad_setup, "packet 0: a size in a dimension that is not there"},
};

TEST(the_packet_processor_reports_each_fault_of_a_ring)
{
    for (size_t k = 0; k < BR_COUNT(faults); k++) {
        rig r;
        br_aql_launch l;

        begin(&r, &(br_simgpu_opts){.cpu = "gfx1201"});
        l = load(&r, "", ".amdhsa_group_segment_fixed_size 64");
        faults[k].fn(&r, &l);
        ck_assert_int_eq(br_amd_wait(&r.q, 10 * SECOND, NULL), BR_E_FAULT);
        kfd_finish(&r, faults[k].says);
    }
}

/* A packet that waits behind a barrier is written again meanwhile. */
TEST(a_packet_that_changes_after_its_doorbell_is_reported)
{
    rig r;
    br_aql_launch l;
    br_aql_packet *p;
    uint64_t dep;

    if (strcmp(t_conf(), "thread") == 0)
        t_skip("the fault is a data race, which TSan reports first");
    for (int change = 0; change < 2; change++) {
        begin(&r, &(br_simgpu_opts){.cpu = "gfx1201"});
        l = load(&r, "", "");
        p = (void *)r.q.ring.host;
        dep = r.q.signal.va + 64;
        memcpy(r.q.signal.host + 64, &(int64_t[2]){1, 1}, 16);
        memcpy((char *)p + 8, &dep, 8);
        p->completion = r.q.signal.va;
        br_aql_publish(p, br_aql_header(BR_AQL_BARRIER_AND, true, 0, 0));
        put(&r, 1, &l, true);
        ring(&r, 2, 1);
        ck_assert_int_eq(br_amd_wait(&r.q, SECOND / 4, NULL), BR_E_TIMEOUT);
        p[1].kernarg += change ? 16 : 0;
        atomic_fetch_sub((_Atomic int64_t *)(void *)(r.q.signal.host + 64 + 8),
                         1);
        ck_assert_int_eq(br_amd_wait(&r.q, 10 * SECOND, NULL),
                         change ? BR_E_FAULT : BR_OK);
        kfd_finish(&r, change ? "packet 1 changed after its header was" : NULL);
    }
}

TEST(a_header_before_its_body_is_reported)
{
    rig r;
    br_aql_launch l;
    br_aql_packet *p;

    if (strcmp(t_conf(), "thread") == 0)
        t_skip("the fault is a data race, which TSan reports first");
    begin(&r, &(br_simgpu_opts){.cpu = "gfx1201"});
    l = load(&r, "", "");
    p = (void *)r.q.ring.host;
    br_aql_publish(p, 0x1502);
    r.q.next = 1;
    ck_assert_int_eq(br_amd_wait(&r.q, SECOND / 4, NULL), BR_E_TIMEOUT);
    l.completion = r.q.signal.va;
    t_ok(br_aql_fill(p, &l, NULL), &(br_status){0});
    br_aql_publish(p, 0x1502);
    ring(&r, 1, 0);
    ck_assert_int_eq(br_amd_wait(&r.q, 10 * SECOND, NULL), BR_E_FAULT);
    kfd_finish(&r, "packet 0 changed after its header was published");
}

TEST(a_doorbell_that_is_never_rung_is_reported_at_the_end)
{
    rig r;
    br_aql_launch l;
    br_amd_control *c;

    begin(&r, &(br_simgpu_opts){.cpu = "gfx1201"});
    l = load(&r, "", "");
    put(&r, 0, &l, true);
    c = (void *)r.q.control.host;
    atomic_store_explicit(&c->write, 1, memory_order_release);
    r.q.next = 1;
    ck_assert_int_eq(br_amd_wait(&r.q, SECOND / 50, NULL), BR_E_TIMEOUT);
    kfd_finish(&r,
               "queue ends with 1 packets written, the doorbell rung for 0");
}

/* New code at the same place: an acquire makes the processor read it. */
TEST(code_that_changes_is_read_anew_after_an_acquire)
{
    rig r;
    br_status st = {0};
    br_aql_launch l;
    uint32_t trap = 0xbf900001; /* s_trap 1 */

    begin(&r, &(br_simgpu_opts){.cpu = "gfx1201"});
    l = load(&r, "s_nop 0", "");
    t_ok(br_amd_launch(&r.q, &l, &st), &st);
    t_ok(br_amd_wait(&r.q, 10 * SECOND, &st), &st);
    memcpy(r.code.host + r.co.text_at, &trap, 4);
    put(&r, 1, &l, false); /* no acquire: the old code */
    br_aql_publish((br_aql_packet *)(void *)r.q.ring.host + 1, 0x0102);
    ring(&r, 2, 1);
    t_ok(br_amd_wait(&r.q, 10 * SECOND, &st), &st);
    t_ok(br_amd_launch(&r.q, &l, &st), &st);
    ck_assert_int_eq(br_amd_wait(&r.q, 10 * SECOND, NULL), BR_E_FAULT);
    kfd_finish(&r, "s_trap");
}

/* ---- PM4 --------------------------------------------------------------- */

/* Launches with arguments, LDS and scratch, around the ring. */
TEST(pm4_launches_go_around_the_ring)
{
    for (size_t k = 0; k < BR_COUNT(cpus); k++) {
        bool gfx12 = strstr(cpus[k], "gfx12") != NULL;
        br_status st = {0};
        br_aql_launch l;
        br_amd_mem m;
        rig r;

        kfd_begin(&r, &(br_simgpu_opts){.cpu = cpus[k], .check = true}, true);
        t_ok(br_amd_alloc(&r.d, &m,
                          &(br_amd_want){.bytes = 4096, .heap = BR_AMD_HOST},
                          &st),
             &st);
        l = load(&r,
                 t_printf("s_load_b64 s[2:3], s[0:1], 0x0\nv_mov_b32 v1, 0\n"
                          "v_mov_b32 v2, 1\n%s\n"
                          "scratch_store_b32 off, v2, off offset:12\n"
                          "global_atomic_add_u32 v1, v2, s[2:3]\n%s",
                          gfx12 ? "s_wait_kmcnt 0x0" : "s_waitcnt lgkmcnt(0)",
                          gfx12 ? "s_wait_storecnt 0x0"
                                : "s_waitcnt_vscnt null, 0x0"),
                 ".amdhsa_user_sgpr_kernarg_segment_ptr 1\n"
                 ".amdhsa_user_sgpr_count 2\n.amdhsa_kernarg_size 8\n"
                 ".amdhsa_group_segment_fixed_size 600\n"
                 ".amdhsa_private_segment_fixed_size 64\n"
                 ".amdhsa_enable_private_segment 1");
        l.kernarg = m.va + 1024;
        memcpy(m.host + 1024, &m.va, 8);
        l.group[0] = 32;
        for (int i = 0; i < 40; i++) {
            uint32_t w[128];
            br_pm4 s = {.at = w, .cap = BR_COUNT(w)};

            t_ok(br_amd_pm4_launch(&r.q, &s, &l, (uint8_t *)(uintptr_t)l.kernel,
                                   &st),
                 &st);
            ck_assert_uint_eq(s.n, 69);
            t_ok(br_amd_pm4_submit(&r.q, &s, &st), &st);
        }
        t_ok(br_amd_wait(&r.q, 10 * SECOND, &st), &st);
        ck_assert_uint_eq(*(uint32_t *)(void *)m.host, 40 * 32);
        br_amd_free(&r.d, &m);
        kfd_finish(&r, NULL);
    }
}

/* A stream of words, then what has to stand in the reports. */
TEST(pm4_streams_that_are_wrong_are_reported)
{
    static const struct {
        uint32_t w[12];
        size_t n;
        const char *says;
    } bad[] = {
        {{0xc0036900, 0, 0, 0, 0}, 5, "dword 0: 0xc0036900 begins no whole"},
        {{0xc0007600, 0x20c}, 2, "0xc0007600 begins no whole packet"},
        {{0xc0017600, 0x100, 0}, 3, "SET_SH_REG 0x100: no compute register"},
        {{0xc0027600, 0x27f, 0, 0}, 4, "SET_SH_REG 0x27f: no compute"},
        {{0xc0031500, 1, 1, 1, 0x8005}, 5, "register 0x204 was never set"},
        {{0xc0031500, 1, 1, 1, 0}, 5, "initiator 0x0"},
        {{0xc0064900, 0x14, 0x40000000, 0, 0, 0, 0, 0}, 8, "RELEASE_MEM 0x"},
        {{0xc0064900, 0x0070f514, 0x40000000, 64, 0, 0, 0, 0},
         8,
         "writes 8 bytes at 0x40: no memory"},
        {{0xc0053c00, 0x13, 64, 0, 0, 0, 0}, 7, "reads 4 bytes at 0x40"},
        {{0xc0053c00, 0x3, 64, 0, 0, 0, 0}, 7, "WAIT_REG_MEM 0x00000003"},
        {{0xc0033700, 0, 64, 0, 0}, 5, "WRITE_DATA 0x00000000"},
        {{0xc0004600, 0x10}, 2, "EVENT_WRITE 0x10"},
        {{0xc0023f00, 64, 0, 4}, 4, "INDIRECT_BUFFER 0x00000004: not VALID"},
        {{0xc0017900, 0, 0}, 3, "SET_UCONFIG_REG"},
    };

    for (size_t k = 0; k < BR_COUNT(bad); k++) {
        uint32_t w[12];
        br_pm4 s = {.at = w, .n = bad[k].n, .cap = BR_COUNT(w)};
        rig r;

        memcpy(w, bad[k].w, sizeof w);
        kfd_begin(&r, &(br_simgpu_opts){.cpu = "gfx1100"}, true);
        t_ok(br_amd_pm4_submit(&r.q, &s, NULL), &(br_status){0});
        ck_assert_int_eq(br_amd_wait(&r.q, 10 * SECOND, NULL), BR_E_FAULT);
        kfd_finish(&r, bad[k].says);
    }
}

/* What an indirect buffer may not hold; 64: the address of a word that stays
 * zero. */
TEST(pm4_indirect_buffers_that_are_wrong_are_reported)
{
    static const struct {
        uint32_t w[8];
        size_t n;
        const char *says;
    } bad[] = {
        {{0x12345678}, 1, "indirect buffer, dword 0: 0x12345678 is no packet"},
        {{0xc0011000, 0, 0, 0xc0031500, 1},
         5,
         "indirect buffer, dword 3: 0xc0031500 is no packet"},
        {{0xc0053c00, 0x13, 64, 0, 1, 0xffffffff, 4},
         7,
         "a wait in an indirect buffer"},
        {{0xc0023f00, 64, 0, 0x800001}, 4, "nested indirect buffers"},
    };

    for (size_t k = 0; k < BR_COUNT(bad); k++) {
        uint32_t w[4] = {0xc0023f00};
        br_pm4 s = {.at = w, .n = 4, .cap = 4};
        br_amd_want want = {.bytes = 4096, .heap = BR_AMD_HOST};
        br_status st = {0};
        br_amd_mem m;
        uint64_t va;
        rig r;

        kfd_begin(&r, &(br_simgpu_opts){.cpu = "gfx1201"}, true);
        t_ok(br_amd_alloc(&r.d, &m, &want, &st), &st);
        memcpy(m.host + 1024, bad[k].w, sizeof bad[k].w);
        va = m.va + 64;
        for (int i = 1; i < 3; i++) /* the address, where it belongs */
            if (bad[k].w[i] == 64)
                memcpy(m.host + 1024 + 4 * i, &va, 8);
        w[1] = (uint32_t)(m.va + 1024);
        w[2] = (uint32_t)((m.va + 1024) >> 32);
        w[3] = (uint32_t)bad[k].n | 1 << 23;
        t_ok(br_amd_pm4_submit(&r.q, &s, &st), &st);
        ck_assert_int_eq(br_amd_wait(&r.q, 10 * SECOND, NULL), BR_E_FAULT);
        br_amd_free(&r.d, &m);
        kfd_finish(&r, bad[k].says);
    }
}

/* An interrupt whose slot of the event page holds nothing: nobody is woken. */
TEST(interrupts_without_a_slot_are_reported)
{
    uint32_t w[8] = {0xc0064900, 0x0070f514, 0x42000000, 0, 0, 1, 0, 0};
    br_pm4 s = {.at = w, .n = 8, .cap = 8};
    br_status st = {0};
    uint64_t at;
    rig r;

    kfd_begin(&r, &(br_simgpu_opts){.cpu = "gfx1100"}, true);
    at = r.q.signal.va + 512;
    w[3] = (uint32_t)at;
    w[4] = (uint32_t)(at >> 32);
    w[7] = r.d.event;
    t_ok(br_amd_pm4_submit(&r.q, &s, &st), &st);
    t_ok(br_amd_wait(&r.q, 10 * SECOND, &st), &st);
    kfd_finish(&r,
               t_printf("an interrupt for event %u, whose slot nobody wrote",
                        r.d.event));
}

/* The stream stops at the write pointer: half a packet is not executed. */
TEST(pm4_doorbells_in_the_middle_of_a_packet_are_reported)
{
    static const struct {
        uint64_t write, doorbell;
        const char *says;
    } bad[] = {
        {3, 3, "dword 0: 0xc0064900 begins no whole packet"},
        {3, 8, "doorbell order: it names dword 7, the write index is 3"},
        {2000, 2000, "ring overrun: dword 1999 is written, dword 0 was not"},
    };

    for (size_t k = 0; k < BR_COUNT(bad); k++) {
        rig r;

        kfd_begin(&r, &(br_simgpu_opts){.cpu = "gfx1100"}, true);
        memcpy(r.q.ring.host, &(uint32_t){0xc0064900}, 4);
        ring(&r, bad[k].write, bad[k].doorbell);
        ck_assert_int_eq(br_amd_wait(&r.q, 10 * SECOND, NULL), BR_E_FAULT);
        kfd_finish(&r, bad[k].says);
    }
}

/* ---- topology ---------------------------------------------------------- */

TEST(sizes_of_known_chips)
{
    br_kfd_sizes xtx = br_kfd_sizes_of(110000, 96, 1);
    br_kfd_sizes r9700 = br_kfd_sizes_of(120001, 64, 1);

    ck_assert_uint_eq(xtx.ctl, 0xa000);
    ck_assert_uint_eq(xtx.cwsr, 0x2bea000);
    ck_assert_uint_eq(xtx.debug, 0x18000);
    ck_assert_uint_eq(r9700.ctl, 0x7000);
    ck_assert_uint_eq(r9700.cwsr, 0x1d40000 + 0x7000);
    ck_assert_uint_eq(r9700.debug, 0x10000);
}

TEST(a_topology_that_is_none_is_refused)
{
    static const char good[] =
        "simd_count 192\nsimd_per_cu 2\narray_count 12\n"
        "simd_arrays_per_engine 2\nmax_slots_scratch_cu 32\n"
        "lds_size_in_kb 64\ndrm_render_minor 128\nnew_key 1\n"
        "gfx_target_version 110501\n";
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"simd_count 192\n", "no gfx_target_version"},
        {"simd_count\n", "no line"},
        {"simd_count -1\n", "no line"},
        {"simd_count 99999999999999999999\n", "no line"},
        {"simd_count 1x\n", "no line"},
        {"\n", "no line"},
    };
    br_amd_node n = {.index = 0};
    br_status st = {0};

    t_ok(br_amd_node_read(&n, good, &st), &st);
    ck_assert_str_eq(n.name, "gfx1151");
    ck_assert_uint_eq(n.xccs, 1);
    for (size_t k = 0; k < BR_COUNT(bad); k++) {
        st = (br_status){0};
        ck_assert_int_eq(br_amd_node_read(&n, bad[k].text, &st), BR_E_FORMAT);
        ck_assert_msg(strstr(st.msg, bad[k].says) != NULL, "%s", st.msg);
    }
    ck_assert_int_eq(
        br_amd_node_read(&n, t_printf("%ssimd_per_cu 999\n", good), NULL),
        BR_E_LIMIT);
}

/* ---- without memory ---------------------------------------------------- */

static br_code
whole(void *arg, br_status *st)
{
    br_simgpu *g;
    br_amd_node n;
    br_amd_dev d = {.os = NULL};
    br_amd_queue q = {.d = NULL};
    br_code c = br_simgpu_new(&g, &(br_simgpu_opts){.cpu = "gfx1201"}, st);

    (void)arg;
    if (c == BR_OK)
        c = br_amd_node_get(&n, br_simgpu_os(g), 0, st);
    if (c == BR_OK)
        c = br_amd_open(&d, br_simgpu_os(g), &n, st);
    if (c == BR_OK)
        c = br_amd_queue_init(&q, &d, false, 64, st);
    br_amd_queue_fini(&q);
    br_amd_close(&d);
    ck_assert(br_simgpu_free(g));
    /* Errno is all that the kernel has to say. */
    if (c == BR_E_NO_DEVICE && t_mem_failed())
        *st = (br_status){.code = c = BR_E_OOM};
    return c;
}

TEST(a_device_opens_or_says_that_memory_is_out)
{
    t_each_oom(whole, NULL);
}

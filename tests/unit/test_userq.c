/* test_userq.c - user queues: what the render node gives, and refuses.
 *
 * That they run kernels is test_amd_probe.c's.
 * SPDX-License-Identifier: Apache-2.0 */
#include "t.h"

#include "drv/amd/drm.h"
#include "drv/sim/sim_gpu.h"

#include "drv/amd/amd_dev.h"

#include <errno.h>
#include <string.h>

typedef struct rig {
    br_simgpu *g;
    const br_amd_os *os;
    br_amd_node node;
    br_amd_dev d;
    br_amd_queue q;
} rig;

static void
begin(rig *r, const br_simgpu_opts *o)
{
    br_status st = {0};

    *r = (rig){.g = NULL};
    t_ok(br_simgpu_new(&r->g, o, &st), &st);
    r->os = br_simgpu_os(r->g);
    t_ok(br_amd_node_get(&r->node, r->os, 0, &st), &st);
}

static void
finish(rig *r, const char *says)
{
    br_str s = {0};

    br_amd_queue_fini(&r->q);
    br_amd_close(&r->d);
    br_simgpu_reports(r->g, &s);
    ck_assert_msg(says ? strstr(br_str_z(&s), says) != NULL : s.n == 0, "%s",
                  br_str_z(&s));
    br_str_fini(&s);
    ck_assert(br_simgpu_free(r->g));
}

TEST(why_there_are_no_user_queues_is_told)
{
    static const struct {
        br_simgpu_opts o;
        const char *says;
    } cases[] = {
        {{.cpu = "gfx1201", .no_userq = true, .userq_slots = 8},
         "gfx1201: this kernel has no user queues; Linux 6.16 is the first"},
        {{.cpu = "gfx1201"}, "they are turned off (amdgpu.user_queue=1"},
    };

    for (size_t k = 0; k < BR_COUNT(cases); k++) {
        br_status st = {0};
        rig r;

        begin(&r, &cases[k].o);
        ck_assert_int_eq(br_amd_open_user(&r.d, r.os, &r.node, &st),
                         BR_E_NO_DEVICE);
        ck_assert_msg(strstr(st.msg, cases[k].says) != NULL, "%s", st.msg);
        finish(&r, NULL);
    }
}

/* The same launch is the same dwords on both kinds of queue. */
TEST(a_launch_is_the_same_dwords_on_both_tiers)
{
    static const br_aql_launch l = {.groups = {3, 2, 1},
                                    .group = {64, 2, 1},
                                    .group_bytes = 700,
                                    .kernel = 0x7f0000001000,
                                    .kernarg = 0x7f0000002000};
    uint8_t kd[64] = {0};
    uint32_t w[2][128] = {{0}};
    br_status st = {0};

    kd[16] = 0xc0; /* 256 bytes on */
    kd[57] = 4;    /* wave32 */
    for (int user = 0; user < 2; user++) {
        br_pm4 s = {.at = w[user], .cap = 128};
        rig r;

        begin(&r, &(br_simgpu_opts){.cpu = "gfx1100", .userq_slots = 1});
        t_ok(user ? br_amd_open_user(&r.d, r.os, &r.node, &st)
                  : br_amd_open(&r.d, r.os, &r.node, &st),
             &st);
        t_ok(br_amd_queue_init(&r.q, &r.d, true, 1024, &st), &st);
        t_ok(br_amd_pm4_launch(&r.q, &s, &l, kd, &st), &st);
        ck_assert_uint_eq(s.n, 69);
        finish(&r, NULL);
    }
    ck_assert(memcmp(w[0], w[1], sizeof w[0]) == 0);
}

TEST(a_user_queue_takes_pm4_and_two_heaps)
{
    br_amd_want bar = {.bytes = 4096, .heap = BR_AMD_BAR};
    br_status st = {0};
    br_amd_mem m;
    rig r;

    begin(&r, &(br_simgpu_opts){.cpu = "gfx1100", .userq_slots = 1});
    t_ok(br_amd_open_user(&r.d, r.os, &r.node, &st), &st);
    ck_assert_int_eq(br_amd_alloc(&r.d, &m, &bar, NULL), BR_E_UNSUPPORTED);
    ck_assert_int_eq(br_amd_queue_init(&r.q, &r.d, false, 64, NULL),
                     BR_E_UNSUPPORTED);
    finish(&r, NULL);
}

/* A queue's arguments, each wrong in one way; `field` gets `value`. */
TEST(the_render_node_answers_with_its_errno)
{
    static const struct {
        size_t at, bytes;
        uint64_t value;
        int e;
    } bad[] = {
#define AT(field)                         \
    offsetof(struct br_drm_userq, field), \
        sizeof((struct br_drm_userq *)0)->field
        {AT(op), 7, -EINVAL},
        {AT(op), 2, -EINVAL}, /* free with other fields set */
        {AT(ip), 0, -EINVAL},
        {AT(doorbell), 99, -EINVAL},
        {AT(doorbell_offset), 512, -EINVAL},
        {AT(flags), 3, -EACCES},
        {AT(flags), 8, -EINVAL},
        {AT(ring), 4096, -EINVAL},
        {AT(ring_bytes), 2048, -EINVAL},
        {AT(ring_bytes), 6144, -EINVAL},
        {AT(ring_bytes), 8192, -EINVAL},
        {AT(read_pointer), 8, -EINVAL},
        {AT(write_pointer), 8, -EINVAL},
        {AT(mqd), 0, -EFAULT},
        {AT(mqd_bytes), 16, -EINVAL},
#undef AT
    };
    br_status st = {0};
    struct br_drm_mqd mqd;
    struct br_drm_userq good, u;
    struct br_drm_gem_create c = {.bytes = 4096, .domains = 6};
    struct br_drm_gem_va va = {.handle = 77, .op = 1, .va = 8, .bytes = 4096};
    rig r;

    begin(&r, &(br_simgpu_opts){.cpu = "gfx1201", .userq_slots = 4});
    t_ok(br_amd_open_user(&r.d, r.os, &r.node, &st), &st);
    t_ok(br_amd_queue_init(&r.q, &r.d, true, 1024, &st), &st);
    mqd.eop = r.q.eop.va;
    good = (struct br_drm_userq){.op = 1,
                                 .ip = 1,
                                 .doorbell = (uint32_t)r.q.bell.handle,
                                 .doorbell_offset = 1,
                                 .ring = r.q.ring.va,
                                 .ring_bytes = 4096,
                                 .read_pointer = r.q.control.va + 0x80,
                                 .write_pointer = r.q.control.va + 0x38,
                                 .mqd = (uint64_t)(uintptr_t)&mqd,
                                 .mqd_bytes = 8};
    for (size_t k = 0; k < BR_COUNT(bad); k++) {
        int e;

        u = good;
        memcpy((char *)&u + bad[k].at, &bad[k].value, bad[k].bytes);
        e = r.os->ioctl(r.os->ctx, r.d.drm, BR_DRM(userq), &u);
        ck_assert_msg(e == bad[k].e, "row %zu: %d", k, e);
    }
    ck_assert_int_eq(r.os->ioctl(r.os->ctx, r.d.drm, BR_DRM(gem_create), &c),
                     -EINVAL);
    ck_assert_int_eq(r.os->ioctl(r.os->ctx, r.d.drm, BR_DRM(gem_va), &va),
                     -EINVAL);
    va.va = 4096;
    ck_assert_int_eq(r.os->ioctl(r.os->ctx, r.d.drm, BR_DRM(gem_va), &va),
                     -ENOENT);
    u = good;
    ck_assert_int_eq(r.os->ioctl(r.os->ctx, r.d.drm, BR_DRM(userq), &u), 0);
    u = (struct br_drm_userq){.op = 2, .queue_id = u.created};
    ck_assert_int_eq(r.os->ioctl(r.os->ctx, r.d.drm, BR_DRM(userq), &u), 0);
    finish(&r, NULL);
}

/* Buffers of a queue, and parts of buffers. */
TEST(mappings_of_user_queues_that_are_wrong_are_reported)
{
    br_status st = {0};
    struct br_drm_gem_va va = {.op = BR_DRM_VA_MAP, .va = 1 << 30};
    struct br_drm_gem_close c = {0};
    rig r;

    for (int k = 0; k < 3; k++) {
        begin(&r, &(br_simgpu_opts){.cpu = "gfx1201", .userq_slots = 4});
        t_ok(br_amd_open_user(&r.d, r.os, &r.node, &st), &st);
        t_ok(br_amd_queue_init(&r.q, &r.d, true, 1024, &st), &st);
        va.handle = c.handle = (uint32_t)r.q.ring.handle;
        va.bytes = k ? r.q.ring.bytes : r.q.ring.bytes * 2;
        va.op = k ? BR_DRM_VA_UNMAP : BR_DRM_VA_MAP;
        va.va = r.q.ring.va;
        if (k < 2)
            ck_assert_int_eq(
                r.os->ioctl(r.os->ctx, r.d.drm, BR_DRM(gem_va), &va),
                k ? 0 : -EINVAL);
        else
            ck_assert_int_eq(
                r.os->ioctl(r.os->ctx, r.d.drm, BR_DRM(gem_close), &c), -EBUSY);
        finish(&r, k == 0   ? "a part of a buffer is mapped"
                   : k == 1 ? "memory of a queue is unmapped"
                            : "memory of a queue is closed");
    }
}

/* The driver's calls, but for waiting. */
static const br_amd_os *under;

static int
impatient(void *ctx, int fd, unsigned long request, void *arg)
{
    return request == BR_DRM(sync_wait) ? 0
                                        : under->ioctl(ctx, fd, request, arg);
}

TEST(a_queue_before_its_page_tables_is_reported)
{
    br_amd_os os;
    br_status st = {0};
    rig r;

    begin(&r, &(br_simgpu_opts){.cpu = "gfx1201", .userq_slots = 4});
    under = r.os;
    os = *r.os;
    os.ioctl = impatient;
    t_ok(br_amd_open_user(&r.d, &os, &r.node, &st), &st);
    t_ok(br_amd_queue_init(&r.q, &r.d, true, 1024, &st), &st);
    finish(&r, "a user queue before its page tables are waited for");
}

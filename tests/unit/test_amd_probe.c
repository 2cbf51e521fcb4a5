/* test_amd_probe.c - brass test-pm4 and doctor on simulated AMD GPUs.
 * SPDX-License-Identifier: Apache-2.0 */
#include "t.h"

#include "cli/amd_probe.h"
#include "drv/amd/drm.h"

#include <errno.h>
#include <string.h>

TEST(test_pm4_tries_every_packet)
{
    static const char *const cpus[] = {"gfx1102", "gfx1151", "gfx1200"};
    t_proc r;

    for (size_t k = 0; k < BR_COUNT(cpus); k++) {
        t_run(&r, "test-pm4", "--sim", cpus[k]);
        ck_assert_int_eq(r.exit, 0);
        ck_assert_str_eq(
            r.out, t_printf("ok  WRITE_DATA, NOP\nok  ACQUIRE_MEM\n"
                            "ok  WAIT_REG_MEM\nok  EVENT_WRITE\n"
                            "ok  RELEASE_MEM\nok  INDIRECT_BUFFER\n"
                            "ok  SET_SH_REG, DISPATCH_DIRECT\n"
                            "ok  a packet of AQL\n%s takes every packet; user "
                            "queues: as well\n",
                            cpus[k]));
    }
    t_run(&r, "test-pm4", "--sim", "gfx1201", "--json");
    ck_assert_str_eq(r.out, "{\"device\":\"gfx1201\",\"ok\":true,"
                            "\"user_queues\":true}\n");
    t_run(&r, "doctor", "--sim", "gfx1100");
    ck_assert_msg(strstr(r.out, "simulated gfx1100, 96 CUs, 24 GiB: takes "
                                "every packet") != NULL,
                  "%s", r.out);
}

/* The kernel in between, where a call may fail. */
typedef struct bad_os {
    br_amd_os os;
    const br_amd_os *real;
    unsigned calls, fail;
} bad_os;

static int
bad_ioctl(void *ctx, int fd, unsigned long request, void *arg)
{
    bad_os *b = ctx;
    bool ends =
        request == BR_KFD(unmap_memory) || request == BR_KFD(free_memory) ||
        request == BR_KFD(destroy_queue) || request == BR_KFD(destroy_event) ||
        request == BR_DRM(gem_close) || request == BR_DRM(sync_end);
    const struct br_drm_gem_va *va = arg;
    const struct br_drm_userq *q = arg;

    ends |= request == BR_DRM(gem_va) && va->op == BR_DRM_VA_UNMAP;
    ends |= request == BR_DRM(userq) && q->op == BR_DRM_USERQ_FREE;

    if (!ends && ++b->calls == b->fail)
        return -EIO;
    return b->real->ioctl(b->real->ctx, fd, request, arg);
}

static int
bad_open(void *ctx, const char *path)
{
    bad_os *b = ctx;

    return ++b->calls == b->fail ? -EACCES : b->real->open(b->real->ctx, path);
}

static void
bad_close(void *ctx, int fd)
{
    bad_os *b = ctx;

    b->real->close(b->real->ctx, fd);
}

static int
bad_map(void *ctx, int fd, void **at, uint64_t bytes, uint64_t offset)
{
    bad_os *b = ctx;

    return ++b->calls == b->fail
               ? -EPERM
               : b->real->map(b->real->ctx, fd, at, bytes, offset);
}

static void
bad_unmap(void *ctx, void *p, uint64_t bytes)
{
    bad_os *b = ctx;

    b->real->unmap(b->real->ctx, p, bytes);
}

/* Whatever the kernel refuses first, the reason is said and nothing is left. */
static void
each_call(bool user)
{
    unsigned n = 0;
    br_code c;

    do {
        br_simgpu *g;
        br_amd_node node;
        br_status st = {0};
        bad_os b = {.os = {&b, bad_open, bad_close, bad_ioctl, bad_map,
                           bad_unmap, NULL},
                    .fail = ++n};

        t_ok(
            br_simgpu_new(
                &g, &(br_simgpu_opts){.cpu = "gfx1201", .userq_slots = 1}, &st),
            &st);
        b.real = br_simgpu_os(g);
        t_ok(br_amd_node_get(&node, b.real, 0, &st), &st);
        c = br_amd_probe(&b.os, &node, user, (br_amd_tell){NULL, NULL}, &st);
        ck_assert_msg((c == BR_OK) == (b.calls < n), "call %u: %s", n, st.msg);
        ck_assert(c == BR_OK || strstr(st.msg, "gfx1201: ") != NULL);
        ck_assert_msg(br_simgpu_free(g), "call %u: something is left", n);
    } while (c != BR_OK);
    ck_assert_uint_gt(n, user ? 25 : 40);
}

TEST(every_call_of_the_kernel_may_fail)
{
    each_call(false);
    each_call(true);
}

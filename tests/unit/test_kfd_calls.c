/* test_kfd_calls.c - calls and mappings that the kernel answers with its errno.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kfd_kit.h"
#include "t.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

static void
begin(rig *r, const br_simgpu_opts *o)
{
    kfd_begin(r, o, false);
}

static int
call(rig *r, uint32_t request, void *arg)
{
    return r->os->ioctl(r->os->ctx, r->d.kfd, request, arg);
}

/* The queue's arguments as the driver makes them. */
static struct br_kfd_create_queue
queue_args(rig *r)
{
    return (struct br_kfd_create_queue){.ring = r->q.ring.va,
                                        .write_pointer = r->q.control.va + 0x38,
                                        .read_pointer = r->q.control.va + 0x80,
                                        .ring_bytes = 4096,
                                        .gpu_id = r->node.gpu_id,
                                        .type = BR_KFD_QUEUE_AQL,
                                        .percentage = 100,
                                        .eop = r->q.eop.va,
                                        .eop_bytes = 4096,
                                        .save = r->q.save.va,
                                        .save_bytes = (uint32_t)r->d.sizes.cwsr,
                                        .ctl_bytes = (uint32_t)r->d.sizes.ctl};
}

/* Sizes as in notes on kfd_queue.c, each wrong by a page or the like. */
TEST(the_kernel_takes_a_queue_of_exact_sizes_only)
{
    static const struct {
        size_t at, bytes;
        int64_t add;
        bool lax_too; /* refused before Linux 6.12 as well */
    } wrong[] = {
#define AT(field)                                \
    offsetof(struct br_kfd_create_queue, field), \
        sizeof((struct br_kfd_create_queue *)0)->field
        {AT(ring), 4096, true},
        {AT(ring_bytes), 4096, false},
        {AT(ring_bytes), 24, true},
        {AT(write_pointer), -4096, true},
        {AT(read_pointer), 4096, true},
        {AT(eop_bytes), 4096, false},
        {AT(eop), 1ll << 40, true},
        {AT(ctl_bytes), 4096, false},
        {AT(save_bytes), 4096, false},
        {AT(save_bytes), -4096, false},
        {AT(save), 4096, false},
        {AT(percentage), 1, true},
        {AT(priority), 16, true},
        {AT(gpu_id), 1, true},
        {AT(type), 7, true},
#undef AT
    };

    for (int lax = 0; lax < 2; lax++) {
        struct br_kfd_create_queue good, bad;
        rig r;

        begin(&r, &(br_simgpu_opts){.cpu = "gfx1201", .lax = lax});
        good = queue_args(&r);
        for (size_t k = 0; k < BR_COUNT(wrong); k++) {
            uint64_t v = 0;
            int e;

            bad = good;
            memcpy(&v, (char *)&bad + wrong[k].at, wrong[k].bytes);
            v += (uint64_t)wrong[k].add;
            memcpy((char *)&bad + wrong[k].at, &v, wrong[k].bytes);
            e = call(&r, BR_KFD(create_queue), &bad);
            ck_assert_msg(e == (lax && !wrong[k].lax_too ? 0 : -EINVAL),
                          "row %zu, lax %d: %d", k, lax, e);
            if (e == 0)
                ck_assert_int_eq(
                    call(&r, BR_KFD(destroy_queue),
                         &(struct br_kfd_destroy_queue){bad.queue_id, 0}),
                    0);
        }
        kfd_finish(&r, NULL);
    }
}

TEST(the_kernel_answers_with_its_errno)
{
    uint32_t other = 7;
    struct br_kfd_alloc_memory a;
    struct br_kfd_map_memory m;
    struct br_kfd_free_memory f;
    struct br_kfd_acquire_vm vm;
    struct br_kfd_event_data e = {.event_id = 50};
    struct br_kfd_wait_events w = {.n = 1};
    struct br_kfd_create_event ev = {.page_offset = 1};
    struct br_kfd_destroy_queue q = {.queue_id = 9};
    void *at = NULL;
    rig r;

    begin(&r, &(br_simgpu_opts){.cpu = "gfx1100", .small_bar = true});
    a = (struct br_kfd_alloc_memory){
        .va = 1 << 30, .gpu_id = r.node.gpu_id, .flags = BR_KFD_MEM_VRAM};
    ck_assert_int_eq(call(&r, BR_KFD(alloc_memory), &a), -EINVAL); /* 0 bytes */
    a.bytes = 25ull << 30;
    ck_assert_int_eq(call(&r, BR_KFD(alloc_memory), &a), -ENOMEM);
    a.bytes = 4096;
    a.flags |= BR_KFD_MEM_PUBLIC; /* the BAR is small */
    ck_assert_int_eq(call(&r, BR_KFD(alloc_memory), &a), -EINVAL);
    a.flags = BR_KFD_MEM_USERPTR; /* no address */
    ck_assert_int_eq(call(&r, BR_KFD(alloc_memory), &a), -EINVAL);
    a.flags = BR_KFD_MEM_VRAM;
    ck_assert_int_eq(call(&r, BR_KFD(alloc_memory), &a), 0);
    ck_assert_int_eq(r.os->map(r.os->ctx, r.d.drm, &at, 4096, a.mmap_offset),
                     -EPERM); /* not PUBLIC */
    m = (struct br_kfd_map_memory){.handle = a.handle, .n = 1};
    ck_assert_int_eq(call(&r, BR_KFD(map_memory), &m), -EFAULT);
    m.gpu_ids = (uint64_t)(uintptr_t)&other;
    ck_assert_int_eq(call(&r, BR_KFD(map_memory), &m), -EINVAL);
    m.gpu_ids = (uint64_t)(uintptr_t)&r.node.gpu_id;
    ck_assert_int_eq(call(&r, BR_KFD(map_memory), &m), 0);
    ck_assert_uint_eq(m.n_success, 1);
    f.handle = a.handle;
    ck_assert_int_eq(call(&r, BR_KFD(free_memory), &f), -EBUSY);
    m.n_success = 0;
    m.handle = r.q.ring.handle;
    ck_assert_int_eq(call(&r, BR_KFD(unmap_memory), &m), -EBUSY); /* a queue */
    m.handle = a.handle;
    ck_assert_int_eq(call(&r, BR_KFD(unmap_memory), &m), 0);
    ck_assert_int_eq(call(&r, BR_KFD(free_memory), &f), 0);
    ck_assert_int_eq(call(&r, BR_KFD(free_memory), &f), -EINVAL);
    ck_assert_int_eq(call(&r, BR_KFD(unmap_memory), &m), -ENOMEM);
    vm = (struct br_kfd_acquire_vm){1, r.node.gpu_id};
    ck_assert_int_eq(call(&r, BR_KFD(acquire_vm), &vm), -EINVAL);
    ck_assert_int_eq(call(&r, BR_KFD(wait_events), &w), -EFAULT);
    w.events = (uint64_t)(uintptr_t)&e;
    ck_assert_int_eq(call(&r, BR_KFD(wait_events), &w), -EINVAL);
    ck_assert_int_eq(call(&r, BR_KFD(create_event), &ev), -EINVAL);
    ck_assert_int_eq(call(&r, BR_KFD(destroy_queue), &q), -EINVAL);
    ck_assert_int_eq(call(&r, 0xc0085a01, &q), -ENOTTY);
    ck_assert_int_eq(r.os->ioctl(r.os->ctx, 5, BR_KFD(version), &q), -EBADF);
    ck_assert_int_eq(r.os->open(r.os->ctx, "/dev/nvidia0"), -ENOENT);
    kfd_finish(&r, NULL);
}

/* What a driver should not do, beside the kernel's errno. */
TEST(mappings_and_calls_that_are_wrong_are_reported)
{
    struct br_kfd_alloc_memory a = {0};
    void *at = NULL;
    rig r;

    begin(&r, &(br_simgpu_opts){.cpu = "gfx1100"});
    r.os->unmap(r.os->ctx, &r, 4096);
    kfd_finish(&r, "4096 bytes are unmapped that were not mapped");
    begin(&r, &(br_simgpu_opts){.cpu = "gfx1100"});
    ck_assert_int_eq(call(&r, 0xc0084b20, &a), -ENOTTY);
    kfd_finish(&r, "ioctl 0x20 of /dev/kfd is not simulated");
    begin(&r, &(br_simgpu_opts){.cpu = "gfx1100"});
    a = (struct br_kfd_alloc_memory){.va = 1 << 30,
                                     .bytes = 4096,
                                     .gpu_id = r.node.gpu_id,
                                     .flags = BR_KFD_MEM_GTT};
    ck_assert_int_eq(call(&r, BR_KFD(alloc_memory), &a), 0);
    ck_assert_int_eq(r.os->map(r.os->ctx, r.d.drm, &at, 4096, a.mmap_offset),
                     0);
    ck_assert_int_eq(r.os->map(r.os->ctx, r.d.drm, &at, 4096, a.mmap_offset),
                     -EBUSY); /* to a place, after it had one */
    r.os->unmap(r.os->ctx, at, 4096);
    ck_assert_int_eq(call(&r, BR_KFD(free_memory), &a.handle), 0);
    kfd_finish(&r, "memory moves after the GPU or the CPU has it");
}

/* A user with older or newer structs: what both know is copied. */
TEST(the_kernel_copies_what_both_sides_know)
{
    struct {
        struct br_kfd_version v;
        uint64_t more;
    } big = {{9, 9}, 77};
    uint32_t small[2] = {9, 9};
    rig r;

    begin(&r, &(br_simgpu_opts){.cpu = "gfx1100"});
    ck_assert_int_eq(call(&r, 2u << 30 | 16 << 16 | 'K' << 8 | 1, &big), 0);
    ck_assert_uint_eq(big.v.minor, 17);
    ck_assert_uint_eq(big.more, 77);
    ck_assert_int_eq(call(&r, 2u << 30 | 4 << 16 | 'K' << 8 | 1, small), 0);
    ck_assert_uint_eq(small[0], 1);
    ck_assert_uint_eq(small[1], 9);
    kfd_finish(&r, NULL);
}

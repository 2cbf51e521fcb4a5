/* amd_os.h - what the AMD driver asks of an operating system: a table.
 *
 *     amd_dev.c --> br_amd_os --> open, ioctl, mmap of Linux (br_amd_os_real)
 *                           '---> the simulated kernel (sim_kfd.c)
 *
 * Errors are negative errno, as the kernel gives them. Above the table nothing
 * knows which of the two is below.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_DRV_AMD_OS_H
#define BR_DRV_AMD_OS_H

#include "base/base.h"

typedef struct br_amd_os {
    void *ctx;
    int (*open)(void *ctx, const char *path); /* to read and write */
    void (*close)(void *ctx, int fd);
    int (*ioctl)(void *ctx, int fd, unsigned long request, void *arg);
    /* Shared, to read and write; at: where, in place of what is there, or
     * NULL. 0, or negative errno. */
    int (*map)(void *ctx, int fd, void **at, uint64_t bytes, uint64_t offset);
    void (*unmap)(void *ctx, void *p, uint64_t bytes);
    /* A file of sysfs and a NUL; bytes, or negative errno. */
    int (*read)(void *ctx, const char *path, char *out, size_t size);
    /* For who listens, else NULL: before a doorbell is rung; when what was
     * waited for is there. */
    void (*ring)(void *ctx, const _Atomic uint64_t *doorbell, uint64_t value);
    void (*settled)(void *ctx);
} br_amd_os;

extern const br_amd_os br_amd_os_real;
/* Addresses that nobody uses, without memory; NULL: none left. */
void *br_amd_reserve(uint64_t bytes);
void br_amd_unreserve(void *p, uint64_t bytes);

#endif

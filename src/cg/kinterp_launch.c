/* kinterp_launch.c - what a launch may be: its grid, its blocks and its clusters, by the
 * machine's limits and the kernel's own.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/kinterp_int.h"

/* Blocks of a cluster: what the launch says, or the kernel; else one. */
uint32_t
br_kcluster(const br_klaunch *l, uint32_t c[3])
{
    const uint32_t *f = l->image->m->fns.at[l->fn].cluster;
    uint32_t n = 1;

    for (int d = 0; d < 3; d++) {
        c[d] = l->cluster[d] ? l->cluster[d] : f[d] ? f[d] : 1;
        n = c[d] > BR_KMAX_CLUSTER ? UINT32_MAX / BR_KMAX_CLUSTER : n * c[d];
    }
    return n;
}

static br_code
check_cluster(const br_klaunch *l, br_status *st)
{
    const uint32_t *f = l->image->m->fns.at[l->fn].cluster;
    const uint32_t most = l->image->m->fns.at[l->fn].max_cluster;
    uint32_t c[3], n = br_kcluster(l, c);

    if (most && n > most)
        return br_fail(st, BR_E_USAGE,
                       "a cluster of %u blocks, over the kernel's "
                       ".maxclusterrank %u",
                       n, most);
    for (int d = 0; d < 3; d++)
        if (n > BR_KMAX_CLUSTER || l->grid[d] % c[d] || (f[d] && f[d] != c[d]))
            return br_fail(st, BR_E_USAGE,
                           "clusters of %u x %u x %u blocks: the kernel's, at "
                           "most %d, and they fill the grid",
                           c[0], c[1], c[2], BR_KMAX_CLUSTER);
    return BR_OK;
}

/* What the kernel says of its blocks. */
static br_code
check_own(const br_klaunch *l, uint64_t threads, br_status *st)
{
    const br_kfn *f = &l->image->m->fns.at[l->fn];

    if (f->max_threads && threads > f->max_threads)
        return br_fail(st, BR_E_USAGE,
                       "a block of %llu threads, over the kernel's .maxntid %u",
                       (unsigned long long)threads, f->max_threads);
    if (f->req_threads && threads != f->req_threads)
        return br_fail(
            st, BR_E_USAGE,
            "a block of %llu threads, but the kernel's .reqntid is %u",
            (unsigned long long)threads, f->req_threads);
    for (int k = 0; k < 3; k++)
        if (f->req_block[k] && l->block[k] != f->req_block[k])
            return br_fail(st, BR_E_USAGE,
                           "a block of %u x %u x %u threads, but the kernel's "
                           ".reqntid is %u, %u, %u",
                           l->block[0], l->block[1], l->block[2],
                           f->req_block[0], f->req_block[1], f->req_block[2]);
    return BR_OK;
}

br_code
ki_check_launch(const br_klaunch *l, br_status *st)
{
    const br_kfn *f = &l->image->m->fns.at[l->fn];
    uint64_t threads = (uint64_t)l->block[0] * l->block[1] * l->block[2];

    if (!f->entry || f->external)
        return br_fail(st, BR_E_USAGE, "%.*s is not a kernel with a body",
                       (int)f->name.n, f->name.p);
    for (int k = 0; k < 3; k++)
        if (!l->grid[k] || !l->block[k] || l->grid[k] > INT32_MAX ||
            (k && l->grid[k] > 65535))
            return br_fail(st, BR_E_USAGE,
                           "grid and block sizes start at 1; a grid has at "
                           "most 2147483647 x 65535 x 65535 blocks");
    for (int k = 0; k < 3; k++)
        if (l->block[k] > (k < 2 ? BR_KMAX_BLOCK : BR_KMAX_BLOCK / 16))
            return br_fail(
                st, BR_E_USAGE,
                "a block of %u x %u x %u threads: at most %d, %d, %d",
                l->block[0], l->block[1], l->block[2], BR_KMAX_BLOCK,
                BR_KMAX_BLOCK, BR_KMAX_BLOCK / 16);
    BR_TRY(check_cluster(l, st));
    if (threads > BR_KMAX_BLOCK)
        return br_fail(st, BR_E_USAGE, "a block of %llu threads, over %d",
                       (unsigned long long)threads, BR_KMAX_BLOCK);
    BR_TRY(check_own(l, threads, st));
    if (l->image->shared[l->fn] + l->shared_bytes > BR_KMAX_SHARED)
        return br_fail(st, BR_E_USAGE, "%llu bytes of shared memory, over %d",
                       (unsigned long long)l->image->shared[l->fn] +
                           l->shared_bytes,
                       BR_KMAX_SHARED);
    return BR_OK;
}

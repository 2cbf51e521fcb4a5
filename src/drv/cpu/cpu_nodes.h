/* cpu_nodes.h - memory nodes: which processors are next to which memory.
 *
 *   node 0: cpu 0-7   memory        thread 0   wherever its caller is
 *   node 1: cpu 8-15  memory        thread 1   8-15, thread 2 0-7, ...
 *
 * A node is what it has of the processors that this process may run on, less what
 * nodes before it have: memory without processors of its own, such as HBM beside
 * DRAM, is no node. /sys/devices/system/node has a line of text a node. Where
 * that makes two or more and the build has hwloc, hwloc has the word, so that
 * what it was told (HWLOC_XMLFILE, ...) holds here, too; where it fails, /sys
 * has. With one node there is nothing to do, and a start 6 ms faster without
 * hwloc. Nodes from BR_CPU_MAX_NODES on are not seen. docs/decisions/0027.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_CPU_NODES_H
#define BR_CPU_NODES_H

#include "base/thread.h"

enum { BR_CPU_MAX_NODES = 64 };

typedef struct br_cpu_nodes {
    uint32_t n;       /* below 2: nobody is moved, nothing is spread */
    uint64_t numbers; /* a bit for each that counts */
    br_os_cpuset cpus[BR_CPU_MAX_NODES];
} br_cpu_nodes;

/* folder: BR_CPU_NODES_SYS, or one like it. What hwloc could not do is logged. */
#define BR_CPU_NODES_SYS "/sys/devices/system/node"
void br_cpu_nodes_find(br_cpu_nodes *to, const char *folder);
/* UNSUPPORTED: built without it; IO: it fails, or tells of another machine. */
br_code br_cpu_nodes_by_hwloc(br_cpu_nodes *to, br_status *st) BR_MUST_USE;
void br_cpu_nodes_by_sys(br_cpu_nodes *to, const char *folder);

/* This thread to the processors of one node, the i-th in turn; false: it stays
 * where it may be. */
bool br_cpu_nodes_go(const br_cpu_nodes *nodes, uint32_t i);
/* Memory that nobody has touched to all nodes, page by page. */
void br_cpu_nodes_spread(const br_cpu_nodes *nodes, void *p, size_t n);

#endif

/* cpu_nodes.c - see cpu_nodes.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/cpu/cpu_nodes.h"

#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What node `number` has of the processors left becomes its own. */
static void
take(br_cpu_nodes *to, uint32_t number, const br_os_cpuset *of_node,
     br_os_cpuset *left)
{
    br_os_cpuset *own = &to->cpus[to->n];
    uint64_t any = 0;

    for (size_t i = 0; i < BR_COUNT(own->bits); i++) {
        own->bits[i] = of_node->bits[i] & left->bits[i];
        left->bits[i] &= ~own->bits[i];
        any |= own->bits[i];
    }
    if (any) {
        to->n++;
        to->numbers |= (uint64_t)1 << number;
    }
}

static void
add(br_os_cpuset *set, unsigned long cpu)
{
    if (cpu < BR_OS_MAX_CPUS)
        set->bits[cpu / 64] |= (uint64_t)1 << cpu % 64;
}

/* ---- by /sys -------------------------------------------------------------- */

/* A list like "0-3,8-11". */
static void
read_list(const char *list, br_os_cpuset *set)
{
    while (*list >= '0' && *list <= '9') {
        char *end;
        unsigned long from = strtoul(list, &end, 10), to = from;

        if (*end == '-')
            to = strtoul(end + 1, &end, 10);
        for (; from <= to && from < BR_OS_MAX_CPUS; from++)
            add(set, from);
        list = *end == ',' ? end + 1 : end;
    }
}

void
br_cpu_nodes_by_sys(br_cpu_nodes *to, const char *folder)
{
    char path[4096], list[4096];
    br_os_cpuset left;

    to->n = 0;
    to->numbers = 0;
    if (!br_os_allowed(&left))
        return;
    for (uint32_t node = 0; node < BR_CPU_MAX_NODES; node++) {
        br_os_cpuset set = {0};

        snprintf(path, sizeof path, "%s/node%u/cpulist", folder, node);
        if (!br_os_read(path, list, sizeof list))
            continue;
        read_list(list, &set);
        take(to, node, &set, &left);
    }
}

/* ---- by hwloc ------------------------------------------------------------- */

#ifdef BR_HAVE_HWLOC
#    include <hwloc.h>

static void
ask(hwloc_topology_t t, br_cpu_nodes *to, br_os_cpuset *left)
{
    for (uint32_t node = 0; node < BR_CPU_MAX_NODES; node++) {
        hwloc_obj_t o = hwloc_get_numanode_obj_by_os_index(t, node);
        br_os_cpuset set = {0};

        if (!o || !o->cpuset)
            continue;
        for (int cpu = hwloc_bitmap_first(o->cpuset);
             cpu >= 0 && cpu < BR_OS_MAX_CPUS;
             cpu = hwloc_bitmap_next(o->cpuset, cpu))
            add(&set, (unsigned long)cpu);
        take(to, node, &set, left);
    }
}

br_code
br_cpu_nodes_by_hwloc(br_cpu_nodes *to, br_status *st)
{
    hwloc_topology_t t;
    br_os_cpuset left;
    br_code rc = BR_OK;

    to->n = 0;
    to->numbers = 0;
    if (!br_os_allowed(&left) || hwloc_topology_init(&t) != 0)
        return br_fail(st, BR_E_IO, "hwloc does not start");
    /* Memory that is not ours still tells the processors beside it apart. */
    if (hwloc_topology_set_flags(t, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED) !=
            0 ||
        hwloc_topology_load(t) != 0)
        rc = br_fail(st, BR_E_IO, "hwloc finds no topology: %s",
                     strerror(errno));
    else if (!hwloc_topology_is_thissystem(t))
        rc = br_fail(st, BR_E_IO, "hwloc was told of another machine");
    else
        ask(t, to, &left);
    hwloc_topology_destroy(t);
    return rc;
}
#else
br_code
br_cpu_nodes_by_hwloc(br_cpu_nodes *to, br_status *st)
{
    to->n = 0;
    return br_fail(st, BR_E_UNSUPPORTED, "built without hwloc");
}
#endif

void
br_cpu_nodes_find(br_cpu_nodes *to, const char *folder)
{
    br_status st = {0};
    br_code rc = BR_OK;

    br_cpu_nodes_by_sys(to, folder);
    if (to->n < 2)
        return;
    rc = br_cpu_nodes_by_hwloc(to, &st);
    if (rc != BR_OK)
        br_cpu_nodes_by_sys(to, folder);
    br_log(BR_EV_cpu_nodes, "%u memory nodes by %s%s%s", to->n,
           rc == BR_OK ? "hwloc" : folder, rc == BR_OK ? "" : ": ", st.msg);
}

/* ---- where threads and pages go ------------------------------------------- */

bool
br_cpu_nodes_go(const br_cpu_nodes *nodes, uint32_t i)
{
    return nodes->n > 1 && br_os_run_on(&nodes->cpus[i % nodes->n]);
}

void
br_cpu_nodes_spread(const br_cpu_nodes *nodes, void *p, size_t n)
{
    /* Who may not say where goes by who touches a page first: the threads are
     * on all nodes, so most likely that is even, too. */
    if (nodes->n > 1 && !br_os_interleave(p, n, nodes->numbers))
        br_log(BR_EV_cpu_nodes, "pages of weights are where they fall: %s",
               strerror(errno));
}

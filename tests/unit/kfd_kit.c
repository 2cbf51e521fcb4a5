/* kfd_kit.c - see kfd_kit.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kfd_kit.h"

#include "t.h"

#include <string.h>

void
kfd_begin(rig *r, const br_simgpu_opts *o, bool pm4)
{
    br_status st = {0};

    *r = (rig){.g = NULL};
    t_ok(br_simgpu_new(&r->g, o, &st), &st);
    r->os = br_simgpu_os(r->g);
    t_ok(br_amd_node_get(&r->node, r->os, 0, &st), &st);
    ck_assert_str_eq(r->node.name, o->cpu);
    t_ok(br_amd_open(&r->d, r->os, &r->node, &st), &st);
    t_ok(br_amd_queue_init(&r->q, &r->d, pm4, pm4 ? 1024 : 64, &st), &st);
}

void
kfd_finish(rig *r, const char *says)
{
    br_str s = {0};

    br_amd_queue_fini(&r->q);
    br_amd_free(&r->d, &r->code);
    br_amd_close(&r->d);
    br_simgpu_reports(r->g, &s);
    ck_assert_msg(says ? strstr(br_str_z(&s), says) != NULL : s.n == 0, "%s",
                  br_str_z(&s));
    br_str_fini(&s);
    ck_assert_msg(br_simgpu_free(r->g), "something was left open");
    br_gcn_unload(&r->co);
}
